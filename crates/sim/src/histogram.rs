//! Times in a histogram whose steps grow with them: percentiles within 0.8 %, means exact.

/// Steps between a power of two and the next.
const STEPS: u32 = 128;

/// A histogram of times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    total: u64,
    sum: u128,
    most: u64,
}

/// The step of a time.
fn step(time: u64) -> usize {
    let shift = time.max(1).ilog2().saturating_sub(STEPS.ilog2());
    (shift * STEPS) as usize + (time >> shift) as usize
}

/// The middle of a step.
fn middle(step: usize) -> u64 {
    let steps = STEPS as usize;
    if step < 2 * steps {
        return step as u64;
    }
    let shift = step / steps - 1;
    let low = (step - shift * steps) as u64;
    (low << shift) + ((1 << shift) >> 1)
}

impl Histogram {
    /// One without times.
    pub(crate) const fn new() -> Self {
        Self { counts: Vec::new(), total: 0, sum: 0, most: 0 }
    }

    /// Counts a time.
    pub(crate) fn add(&mut self, time: u64) {
        let at = step(time);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
        self.sum += u128::from(time);
        self.most = self.most.max(time);
    }

    /// How many were counted.
    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    /// The greatest.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// The mean; 0 of none.
    pub(crate) fn mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 }
    }

    /// The time that a share of all, in thousandths, does not exceed, with others counted as infinite; nothing if that is
    /// infinite, or if there are none.
    pub(crate) fn percentile(&self, thousandths: u64, infinite: u64) -> Option<u64> {
        let all = u128::from(self.total) + u128::from(infinite);
        let rank = (all * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return Some(middle(at).min(self.most));
            }
        }
        None
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        (self.total, self.sum, self.most) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_near_and_losses_are_infinite() {
        let mut of = Histogram::default();
        (1..=100_000).for_each(|time| of.add(time));
        for (thousandths, expected) in
            [(500, 50_000.0), (990, 99_000.0), (999, 99_900.0), (1, 100.0)]
        {
            let found = of.percentile(thousandths, 0).unwrap() as f64;
            assert!((found / expected - 1.0).abs() < 0.008, "{thousandths}: {found}");
        }
        assert_eq!(of.mean(), 50_000.5);
        assert_eq!(of.percentile(990, 2000), None, "2 % were lost");
        assert!(of.percentile(990, 500).is_some());
        assert_eq!(Histogram::default().percentile(500, 0), None);
    }

    #[test]
    fn steps_rise_and_hold_their_middles() {
        let mut last = 0;
        for time in (0..100_000u64).chain([u64::MAX / 2, u64::MAX]) {
            assert!(step(time) >= last && step(middle(step(time))) == step(time), "{time}");
            last = step(time);
        }
    }
}
