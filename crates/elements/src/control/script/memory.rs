//! What a script keeps while it runs: variables and errors, neither without bounds.

/// Bytes of a text that a script makes or reads, at the most.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// Bytes of all variables of a script together.
const MAX_VARIABLES: usize = 16 << 20;
/// What a variable takes besides its name and value.
const OVERHEAD: usize = 2 * size_of::<String>();
/// Errors of a step, and bytes of one, that are kept.
const MAX_ERRORS: usize = 64;
const MAX_ERROR: usize = 1024;

/// Named values.
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    /// These variables, which are empty.
    pub(super) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| (name.clone(), String::new())).collect())
    }

    /// The number of the variable of a name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == name)
    }

    pub(super) fn name(&self, number: usize) -> &str {
        &self.0[number].0
    }

    pub(super) fn value(&self, number: usize) -> &str {
        &self.0[number].1
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// If there is no room for it; the variable is as it was.
    pub(super) fn set(&mut self, number: usize, value: String) -> Result<(), String> {
        self.check(self.0[number].1.len(), value.len())?;
        self.0[number].1 = value;
        Ok(())
    }

    /// The same for the variable of a name, which is made if there is none.
    ///
    /// # Errors
    /// As for [`Variables::set`].
    pub(super) fn set_named(&mut self, name: &str, value: String) -> Result<(), String> {
        if let Some(number) = self.find(name) {
            return self.set(number, value);
        }
        self.check(0, name.len() + value.len() + OVERHEAD)?;
        self.0.push((name.to_string(), value));
        Ok(())
    }

    /// Whether there is room when `more` bytes replace `less`.
    fn check(&self, less: usize, more: usize) -> Result<(), String> {
        let taken: usize = self.0.iter().map(|(n, v)| n.len() + v.len() + OVERHEAD).sum();
        // What there was at the start, as the configuration has it, may be more.
        match more > less && taken - less + more > MAX_VARIABLES {
            true => Err(format!("the script's variables take more than {MAX_VARIABLES} bytes")),
            false => Ok(()),
        }
    }
}

/// What went wrong and was not reported yet.
#[derive(Default)]
pub(super) struct Errors {
    /// Each once, and how often it came.
    errors: Vec<(String, usize)>,
    /// How many there was no room for.
    missing: usize,
}

impl Errors {
    pub(super) fn push(&mut self, mut error: String) {
        if error.len() > MAX_ERROR {
            let end = (0..=MAX_ERROR).rev().find(|&at| error.is_char_boundary(at));
            error.truncate(end.unwrap_or(0));
            error.push('…');
        }
        match self.errors.iter().position(|(known, _)| *known == error) {
            Some(at) => self.errors[at].1 += 1,
            None if self.errors.len() == MAX_ERRORS => self.missing += 1,
            None => self.errors.push((error, 1)),
        }
    }

    /// All of them, which are told then.
    pub(super) fn take(&mut self) -> Vec<String> {
        let missing = std::mem::take(&mut self.missing);
        let told = |(error, times): (String, usize)| match times {
            1 => error,
            _ => format!("{error} ({times} times)"),
        };
        let mut errors: Vec<String> =
            std::mem::take(&mut self.errors).into_iter().map(told).collect();
        errors.extend((missing > 0).then(|| format!("{missing} more errors")));
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_errors_have_bounds() {
        let mut variables = Variables::new(&["a".to_string()]);
        let full = "x".repeat(MAX_VARIABLES - OVERHEAD - 1);
        assert!(variables.set(0, full).is_ok());
        assert!(variables.set_named("b", String::new()).is_err());
        assert!(variables.set(0, "x".repeat(MAX_VARIABLES)).is_err());
        assert!(variables.set_named("a", String::new()).is_ok());
        assert!(variables.set_named("b", "1".into()).is_ok());
        assert_eq!(variables.find("b").map(|b| variables.value(b)), Some("1"));
        let mut errors = Errors::default();
        (0..1000).for_each(|n| errors.push(format!("{n:04}{}", "µ".repeat(MAX_ERROR))));
        let told = errors.take();
        assert_eq!((told.len(), told[0].len()), (MAX_ERRORS + 1, MAX_ERROR + '…'.len_utf8()));
        assert_eq!((told[MAX_ERRORS].as_str(), errors.take().len()), ("936 more errors", 0));
        ["a", "b", "a"].into_iter().for_each(|error| errors.push(error.into()));
        assert_eq!(errors.take(), ["a (2 times)", "b"]);
    }
}
