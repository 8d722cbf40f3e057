//! Medians and spreads.

use std::fmt;

/// The middle of samples, and how far they lie apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let [least, median, greatest] = [0.0, 0.5, 1.0].map(|p| percentile(&sorted, p));
        Self { median, least, greatest }
    }

    /// Of the ratios of samples that were taken in the same rounds.
    pub(crate) fn of_ratios(samples: &[f64], to: &[f64]) -> Self {
        Self::of(samples.iter().zip(to).map(|(s, t)| s / t))
    }

    /// Of the differences of samples that were taken in the same rounds.
    pub(crate) fn of_differences(samples: &[f64], to: &[f64]) -> Self {
        Self::of(samples.iter().zip(to).map(|(s, t)| s - t))
    }

    /// The range as text, `least–greatest`.
    pub(crate) fn range(&self) -> String {
        format!("{:.1}–{:.1}", self.least, self.greatest)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ({})", self.median, self.range())
    }
}

/// The value below which this share (0 to 1) of ascending values lies.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
