//! `--cores 0-3,6`: the CPUs that workers are bound to.

/// The CPUs of a list, in its order.
///
/// # Errors
/// What is not understood, not there, or there twice.
pub(crate) fn parse(text: &str, available: &[usize]) -> Result<Vec<usize>, String> {
    let expected = || format!("--cores {text}: takes CPU numbers such as 2, 0-3 or 0,2");
    let mut all = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |word: &str| word.trim().parse::<usize>().map_err(|_| expected());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(expected());
        }
        for cpu in first..=last {
            if !available.contains(&cpu) {
                let there: Vec<String> = available.iter().map(usize::to_string).collect();
                return Err(format!(
                    "--cores {text}: there is no CPU {cpu} for this process, only {}",
                    there.join(", ")
                ));
            }
            if all.contains(&cpu) {
                return Err(format!("--cores {text}: CPU {cpu} is there twice"));
            }
            all.push(cpu);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lists_and_ranges() {
        let there = [0, 1, 2, 3];
        assert_eq!(parse("2", &there), Ok(vec![2]));
        assert_eq!(parse("0-2", &there), Ok(vec![0, 1, 2]));
        assert_eq!(parse("3,0-1", &there), Ok(vec![3, 0, 1]));
        for wrong in ["", "x", "1-0", "0,", "0-1,1", "4", "0-18446744073709551615", "-1", "1--2"] {
            assert!(parse(wrong, &there).is_err(), "{wrong}");
        }
    }
}
