//! Recent rates: exponentially weighted moving averages.

/// Nanoseconds after which the average takes in what was counted.
const EPOCH: u64 = 10_000_000;
/// Part of the average that each epoch replaces.
const WEIGHT: f64 = 1.0 / 16.0;

/// The recent rate at which totals grow. It is told the totals from time to time, and may be
/// asked at any time.
#[derive(Clone, Debug)]
pub(crate) struct Rates<const N: usize> {
    /// When the current epoch ends.
    until: u64,
    /// Totals when it began.
    began: [u64; N],
    /// Growth per epoch.
    average: [f64; N],
}

impl<const N: usize> Default for Rates<N> {
    fn default() -> Self {
        Self { until: 0, began: [0; N], average: [0.0; N] }
    }
}

impl<const N: usize> Rates<N> {
    /// Takes note of the totals before what happens now is added to them.
    #[inline]
    pub(crate) fn observe(&mut self, totals: [u64; N], now: u64) {
        if now >= self.until {
            self.close_epoch(totals, now);
        }
    }

    #[cold]
    fn close_epoch(&mut self, totals: [u64; N], now: u64) {
        let idle = ((now - self.until) / EPOCH).min(1 << 20);
        let decay = (1.0 - WEIGHT).powi(idle as i32);
        for ((average, total), began) in self.average.iter_mut().zip(totals).zip(self.began) {
            // A total that went back was reset.
            let grown = total.saturating_sub(began) as f64;
            *average = (*average + (grown - *average) * WEIGHT) * decay;
        }
        self.began = totals;
        self.until = (now / EPOCH + 1).saturating_mul(EPOCH);
    }

    /// Growth of the totals per second. Measured anew where an epoch has ended since.
    pub(crate) fn per_second(&self, totals: [u64; N], now: u64) -> [f64; N] {
        let mut rates = self.clone();
        rates.observe(totals, now);
        rates.current()
    }

    /// Growth of the totals per second when an epoch last ended.
    #[inline]
    pub(crate) fn current(&self) -> [f64; N] {
        self.average.map(|a| a * (1e9 / EPOCH as f64))
    }
}

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
    fn a_steady_rate_is_found_and_forgotten() {
        let mut rates = Rates::<1>::default();
        let mut total = 0;
        for ms in 0..2000u64 {
            rates.observe([total], 1_000_000_000 + ms * 1_000_000);
            total += 5;
        }
        let [rate] = rates.per_second([total], 3_000_000_000);
        assert!((rate - 5000.0).abs() < 50.0, "{rate}");
        let [later] = rates.per_second([total], 4_000_000_000);
        assert!(later < 20.0, "{later}");
        assert_eq!(rates.per_second([total], u64::MAX)[0], 0.0);
    }

    #[test]
    fn totals_may_go_back() {
        let mut rates = Rates::<1>::default();
        rates.observe([100], 1);
        rates.observe([0], u64::MAX - 1);
        assert_eq!(rates.per_second([0], u64::MAX), [0.0]);
    }

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
