//! Medians and how sure they are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was measured several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// The middle one.
    pub median: f64,
    /// The median's confidence interval of 95 %, which supposes nothing of how samples are distributed.
    pub confidence: (f64, f64),
    /// In the order in which they were taken.
    pub values: Vec<f64>,
}

impl Samples {
    /// Of values that were measured alike.
    pub fn of(values: Vec<f64>) -> Self {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        // Order statistics: the median lies below the k-th value as often as a coin falls on one side fewer than k times.
        let count = sorted.len() as f64;
        let reach = 0.98 * count.sqrt();
        let at = |rank: f64| {
            let rank = rank.clamp(0.0, (count - 1.0).max(0.0)) as usize;
            sorted.get(rank).copied().unwrap_or(f64::NAN)
        };
        let confidence =
            (at((count / 2.0 - reach).round() - 1.0), at((count / 2.0 + reach).round()));
        Self { median: middle(&sorted), confidence, values }
    }
}

/// The middle of samples, and how far they lie apart.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Of values that were measured alike.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let [least, median, greatest] = [0.0, 0.5, 1.0].map(|p| percentile(&sorted, p));
        Self { median, least, greatest }
    }

    /// Of the ratios of samples that were taken in the same rounds.
    pub fn of_ratios(samples: &[f64], to: &[f64]) -> Self {
        Self::of(samples.iter().zip(to).map(|(s, t)| s / t))
    }

    /// Of the differences of samples that were taken in the same rounds.
    pub fn of_differences(samples: &[f64], to: &[f64]) -> Self {
        Self::of(samples.iter().zip(to).map(|(s, t)| s - t))
    }

    /// The range as text, `least–greatest`.
    pub fn range(&self) -> String {
        format!("{:.1}–{:.1}", self.least, self.greatest)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ({})", self.median, self.range())
    }
}

/// The value below which this share (0 to 1) of ascending values lies.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// The median of ascending values.
fn middle(sorted: &[f64]) -> f64 {
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (count, half) if count % 2 == 0 => (sorted[half - 1] + sorted[half]) / 2.0,
        (_, half) => sorted[half],
    }
}

/// Resamplings of a bootstrap.
const RESAMPLED: usize = 2000;

/// The ratio of the medians of two lots of samples, and its confidence interval of 95 % by bootstrap. The same samples
/// give the same interval.
pub(crate) fn ratio(of: &[f64], to: &[f64]) -> (f64, (f64, f64)) {
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        middle(&sorted)
    };
    let mut random = fastrand::Rng::with_seed(1);
    let mut draw = |values: &[f64]| {
        let drawn: Vec<f64> = values.iter().map(|_| values[random.usize(..values.len())]).collect();
        median(&drawn)
    };
    if of.is_empty() || to.is_empty() {
        return (f64::NAN, (f64::NAN, f64::NAN));
    }
    let mut ratios: Vec<f64> = (0..RESAMPLED).map(|_| draw(of) / draw(to)).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * (RESAMPLED - 1) as f64) as usize];
    (median(of) / median(to), (at(0.025), at(0.975)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut draw = |count: usize| (0..count).map(|_| random.f64().powi(3)).collect::<Vec<_>>();
        let (truth, rounds) = (0.125, 1000);
        let (mut held, mut equal) = (0, 0);
        for _ in 0..rounds {
            let (a, b) = (draw(21), draw(21));
            let (least, greatest) = Samples::of(a.clone()).confidence;
            held += usize::from((least..=greatest).contains(&truth));
            let (_, (least, greatest)) = ratio(&a, &b);
            equal += usize::from((least..=greatest).contains(&1.0));
        }
        assert!((930..=990).contains(&held), "{held}");
        assert!((920..=995).contains(&equal), "{equal}");
    }

    #[test]
    fn few_samples_have_medians_too() {
        assert_eq!(Samples::of(vec![3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Samples::of(vec![4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Samples::of(vec![5.0]).confidence, (5.0, 5.0));
        assert!(Samples::of(Vec::new()).median.is_nan());
        let (ratio, (least, greatest)) = ratio(&[2.0; 9], &[1.0; 9]);
        assert_eq!((ratio, least, greatest), (2.0, 2.0, 2.0));
    }
}
