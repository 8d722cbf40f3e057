//! Values of an option: lists and ranges, such as `64,256..1024x2,1500`.

use std::fmt;
use std::str::FromStr;

use crate::send::Rate;

/// Values that a range may have at most.
const MOST: usize = 10_000;

/// Values in the order in which they were written, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(pub Vec<u64>);

/// Rates: packets per second, such as `100k,1M..20M+1M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates(pub Vec<u64>);

/// What a list may have.
const TAKES: &str = "takes numbers with commas between them, and ranges such as 64..1500x2 (each twice the one before) or 1..8+1";

/// Reads a list.
fn read(text: &str, number: &dyn Fn(&str) -> Option<u64>) -> Result<Vec<u64>, String> {
    let wrong = |word: &str| format!("'{word}': {TAKES}");
    let mut all = Vec::new();
    for word in text.split(',') {
        let mut add = |value: u64| {
            if !all.contains(&value) {
                all.push(value);
            }
        };
        let Some((first, rest)) = word.split_once("..") else {
            add(number(word).ok_or_else(|| wrong(word))?);
            continue;
        };
        let at = rest.find(['x', '+']);
        let (last, by) = at.map_or((rest, "x2"), |at| rest.split_at(at));
        let bounds = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let (first, last) = bounds.ok_or_else(|| wrong(word))?;
        let (kind, by) = by.split_at(1);
        let by = number(by).filter(|by| *by > u64::from(kind == "x")).ok_or_else(|| wrong(word))?;
        let (mut next, mut count) = (first, 0);
        while next < last {
            add(next);
            count += 1;
            if count > MOST {
                return Err(format!("'{word}': has more than {MOST} values"));
            }
            next = if kind == "x" { next.saturating_mul(by) } else { next.saturating_add(by) };
        }
        // The end is there whatever the step is.
        add(last);
    }
    Ok(all)
}

impl FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| word.parse().ok().filter(|number| *number > 0);
        read(text, &number).map(Self)
    }
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| match word.parse() {
            Ok(Rate::Packets(rate)) if rate >= 1.0 => Some(rate as u64),
            _ => None,
        };
        read(text, &number).map(Self)
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read_or_refused() {
        let values = |text: &str| text.parse::<Values>().map(|values| values.0);
        assert_eq!(values("64"), Ok(vec![64]));
        assert_eq!(values("64..1500x2"), Ok(vec![64, 128, 256, 512, 1024, 1500]));
        assert_eq!(values("1,4,1..4"), Ok(vec![1, 4, 2]));
        assert_eq!(values("64..256+96"), Ok(vec![64, 160, 256]));
        assert_eq!(values("7..7x3"), Ok(vec![7]));
        let rates = "1k..2k+500,1.5M".parse::<Rates>().map(|rates| rates.0);
        assert_eq!(rates, Ok(vec![1000, 1500, 2000, 1_500_000]));
        for wrong in
            ["", "x", "0", "1,", "4..1", "1..8x1", "1..8+0", "1..8x", "1..", "-1", "1..2..3"]
        {
            assert!(values(wrong).is_err(), "{wrong}");
        }
        assert!(values("1..1000000+1").unwrap_err().contains("more than"));
        for wrong in ["10%", "0", "1M..2M+10%"] {
            assert!(wrong.parse::<Rates>().is_err(), "{wrong}");
        }
    }
}
