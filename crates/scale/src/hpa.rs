//! Kubernetes' horizontal pod autoscaler, with cores for pods and load for the metric.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Nanos, Observation, Policy, S};
use crate::spread::{loads, resize};

/// What is set: defaults of Kubernetes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (`--horizontal-pod-autoscaler-sync-period`: 15 s).
    pub period: Nanos,
    /// Average load that is sought (as users set it: 0.8).
    pub target: f64,
    /// Deviation of the ratio that is left alone (`--horizontal-pod-autoscaler-tolerance`: 0.1).
    pub tolerance: f64,
    /// Nanoseconds over which the greatest recommendation counts before a core goes (`stabilizationWindowSeconds`: 300).
    pub window: Nanos,
    /// Cores more in a period at the most, as a multiple (`scaleUp.policies`: 100 %), or `step` if that is more.
    pub grow: usize,
    /// Cores more in a period that are always allowed (`scaleUp.policies`: 4).
    pub step: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: 15 * S, target: 0.8, tolerance: 0.1, window: 300 * S, grow: 2, step: 4 }
    }
}

/// The autoscaler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hpa {
    settings: Settings,
    past: Vec<(Nanos, usize)>,
}

impl Hpa {
    /// One that recommended nothing yet.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), past: Vec::new() }
    }

    /// The number of cores that loads ask for.
    pub fn desired(&self, loads: &[f64]) -> usize {
        let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        let ratio = mean / self.settings.target;
        if (ratio - 1.0).abs() <= self.settings.tolerance {
            return loads.len();
        }
        // Products such as 4 · 1.25 leave dust.
        ((loads.len() as f64 * ratio - 1e-9).ceil() as usize).max(1)
    }
}

impl Policy for Hpa {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let loads = loads(seen);
        let Settings { window, grow, step, .. } = self.settings;
        self.past.retain(|(at, _)| now.saturating_sub(*at) < window);
        self.past.push((now, self.desired(&loads)));
        let stable = self.past.iter().map(|(_, of)| *of).max().unwrap_or(1);
        let have = loads.len();
        let most = (have * grow).max(have + step);
        let want = if stable > have { self.desired(&loads).clamp(have, most) } else { stable };
        if want == have { Vec::new() } else { resize(seen, want, true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Core, CoreSeen, Role};

    fn decide(of: &mut Hpa, now: Nanos, load: f64, dedicated: u32) -> Vec<Action> {
        let core = |core| match core < dedicated {
            true => CoreSeen { load, ..CoreSeen::idle(Core(core), Role::Dedicated) },
            false => CoreSeen::idle(Core(core), Role::Spare),
        };
        let cores = (0..20).map(core).collect();
        of.decide(now, &Observation { cores, ..Observation::default() })
    }

    /// The documentation's own arithmetic: a metric of twice the target doubles, half of it halves; within 0.1 nothing happens.
    #[test]
    fn the_ratio_decides() {
        let of = Hpa::new(&Settings { target: 0.5, ..Settings::default() });
        assert_eq!(of.desired(&[1.0, 1.0]), 4);
        assert_eq!(of.desired(&[0.25; 4]), 2);
        assert_eq!(of.desired(&[0.54; 4]), 4);
    }

    #[test]
    fn cores_come_at_once_and_go_after_the_window() {
        let mut of = Hpa::new(&Settings::default());
        assert_eq!(decide(&mut of, 0, 1.0, 4).len(), 1, "5 of 4");
        assert_eq!(decide(&mut of, 15 * S, 0.2, 5), []);
        assert_eq!(decide(&mut of, 299 * S, 0.2, 5), [], "five were recommended within 300 s");
        assert!(!decide(&mut of, 301 * S, 0.2, 5).is_empty());
    }
}
