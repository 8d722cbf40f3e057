//! Average rates.

/// Average rates at which totals grow from one question to the next. Costs nothing while packets
/// pass.
#[derive(Clone, Debug)]
pub(crate) struct AskedRates<const N: usize> {
    /// Time and totals of the last measurement.
    since: u64,
    began: [u64; N],
    /// What it yielded; `None` before the first.
    rates: Option<[f64; N]>,
}

/// Questions that follow faster, in nanoseconds, get the same answer.
const SHORTEST: u64 = 100_000_000;

impl<const N: usize> Default for AskedRates<N> {
    fn default() -> Self {
        Self { since: 0, began: [0; N], rates: None }
    }
}

impl<const N: usize> AskedRates<N> {
    /// Starts anew, from these totals on.
    pub(crate) fn restart(&mut self, totals: [u64; N], now: u64) {
        *self = Self { since: now, began: totals, rates: None };
    }

    /// Growth per second since the last question, or since the start.
    pub(crate) fn ask(&mut self, totals: [u64; N], now: u64) -> [f64; N] {
        let passed = now.saturating_sub(self.since);
        if let Some(rates) = self.rates.filter(|_| passed < SHORTEST) {
            return rates;
        }
        let seconds = passed.max(1) as f64 / 1e9;
        let mut rates = [0.0; N];
        for ((rate, total), began) in rates.iter_mut().zip(totals).zip(self.began) {
            *rate = if passed == 0 { 0.0 } else { total.saturating_sub(began) as f64 / seconds };
        }
        *self = Self { since: now, began: totals, rates: Some(rates) };
        rates
    }
}

/// A real number with at most three decimals, as handlers show it.
pub(crate) fn show_real(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_for_the_time_since_the_last() {
        let mut rates = AskedRates::<1>::default();
        rates.restart([10], 1_000_000_000);
        assert_eq!(rates.ask([10], 1_000_000_000), [0.0]);
        assert_eq!(rates.ask([500], 1_000_000_001), [0.0]);
        assert_eq!(rates.ask([510], 2_000_000_000), [500.0]);
        assert_eq!(rates.ask([510], 4_000_000_000), [0.0]);
        assert_eq!(rates.ask([0], 5_000_000_000), [0.0]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(show_real(1.5), "1.5");
        assert_eq!(show_real(100.0), "100");
        assert_eq!(show_real(0.0), "0");
    }
}
