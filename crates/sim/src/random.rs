//! Random numbers of distributions, the same on every machine.

use crate::math::{exp, ln};

/// A generator with a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    /// That of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Above 0 and at most 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.u64(..) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below another one.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0.u32(..end.max(1))
    }

    /// Whether something happens that has a probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Exponentially distributed, with a mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -ln(self.unit()) * mean
    }
}

/// Pareto-distributed numbers between two bounds, with a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pareto {
    low: f64,
    high: f64,
    shape: f64,
    ratio: f64,
}

impl Pareto {
    pub(crate) fn new(low: f64, high: f64, shape: f64) -> Self {
        Self { low, high, shape, ratio: exp(shape * ln(low / high)) }
    }

    /// The number of a draw above 0 and at most 1: greater ones of smaller draws from the upper end.
    pub(crate) fn of(&self, unit: f64) -> f64 {
        let u = 1.0 - unit * (1.0 - self.ratio);
        (self.low * exp(-ln(u.max(self.ratio)) / self.shape)).min(self.high)
    }
}

/// Numbers evenly distributed on a logarithmic scale between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogUniform {
    low: f64,
    ratio: f64,
}

impl LogUniform {
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self { low, ratio: ln(high / low) }
    }

    pub(crate) fn of(&self, unit: f64) -> f64 {
        self.low * exp(unit * self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_bounds_are_right() {
        let mut random = Random::new(1);
        let count = 200_000;
        let mean = |mut next: Box<dyn FnMut() -> f64>| {
            (0..count).map(|_| next()).sum::<f64>() / f64::from(count)
        };
        let mut copy = random.clone();
        assert!((mean(Box::new(move || copy.exponential(5.0))) / 5.0 - 1.0).abs() < 0.01);
        // The mean of a bounded Pareto of shape 1/2 between 1 and 10,000 is 100.
        let mut copy = random.clone();
        assert!(
            (mean(Box::new(move || Pareto::new(1.0, 1e4, 0.5).of(copy.unit()))) / 100.0 - 1.0)
                .abs()
                < 0.05
        );
        for _ in 0..1000 {
            assert!((1.0..=9.0).contains(&Pareto::new(1.0, 9.0, 1.1).of(random.unit())));
            assert!((1.0..=9.0 + 1e-9).contains(&LogUniform::new(1.0, 9.0).of(random.unit())));
        }
    }
}
