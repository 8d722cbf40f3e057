//! Medians and how sure they are.

use std::fmt::{self, Write as _};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decimal digits to which latencies are distinguished.
const DIGITS: u8 = 3;
/// The greatest latency that is distinguished from greater ones: a minute.
const LONGEST: u64 = 60_000_000_000;

/// A histogram of latencies in nanoseconds, with none in it.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST, DIGITS).expect("constants that a histogram can have")
}

/// The percentile distribution of latencies in nanoseconds as HdrHistogram's tools read it (`.hgrm`), in microseconds.
pub fn percentile_distribution(latencies: &Histogram<u64>) -> String {
    const TICKS: u32 = 5;
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let micros = |nanoseconds: f64| nanoseconds / 1e3;
    let mut count = 0;
    for step in latencies.iter_quantiles(TICKS) {
        count += step.count_since_last_iteration();
        let (value, share) = (micros(step.value_iterated_to() as f64), step.quantile_iterated_to());
        let _ = write!(out, "{value:12.3} {share:2.12} {count:10}");
        let _ = match share < 1.0 {
            true => writeln!(out, " {:14.2}", 1.0 / (1.0 - share)),
            false => writeln!(out),
        };
    }
    let (mean, deviation) = (micros(latencies.mean()), micros(latencies.stdev()));
    let max = micros(latencies.max() as f64);
    // The crate does not tell how buckets are divided: so many that all digits can be distinguished.
    let parts = (2 * 10u64.pow(u32::from(latencies.sigfig()))).next_power_of_two();
    let (all, buckets) = (latencies.len(), latencies.buckets());
    let _ = writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(out, "#[Max     = {max:12.3}, Total count    = {all:12}]");
    let _ = writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {parts:12}]");
    out
}

/// What was measured several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Packets per second as Mpps: with three decimals, or as many as show three digits.
pub(crate) fn mpps(rate: f64) -> String {
    let rate = rate / 1e6;
    let zeros = if rate > 0.0 { -rate.log10().floor() } else { 0.0 };
    format!("{rate:.*}", (zeros as usize + 2).clamp(3, 9))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_percentile_distribution_is_as_tools_read_it() {
        let mut all = super::latencies();
        (1..=1000u64).for_each(|value| all.record(value * 1000).unwrap());
        let text = super::percentile_distribution(&all);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().last(), Some("1/(1-Percentile)"));
        let half = lines.iter().find(|line| line.contains(" 0.500000000000 ")).unwrap();
        let words: Vec<f64> = half.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert!((words[0] - 500.0).abs() < 1.0 && words[2] == 500.0 && words[3] == 2.0, "{half}");
        let last = lines.iter().rfind(|line| !line.starts_with('#')).unwrap();
        assert!(last.contains(" 1.000000000000       1000"), "{last}");
        let [mean, max, buckets] = lines[lines.len() - 3..] else { panic!("{text}") };
        assert!(mean.starts_with("#[Mean    =      500."), "{mean}");
        assert!(max.ends_with("Total count    =         1000]"), "{max}");
        assert!(buckets.ends_with("SubBuckets     =         2048]"), "{buckets}");
    }

    use super::*;

    #[test]
    fn slow_rates_keep_three_digits() {
        let all = [0.0, 12.3, 1234.0, 99_999.0, 1_234_567.0, 12_345_678.0].map(mpps);
        assert_eq!(all, ["0.000", "0.0000123", "0.00123", "0.1000", "1.235", "12.346"]);
    }

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
