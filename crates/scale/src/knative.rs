//! Knative's pod autoscaler, with cores for pods and load for concurrency: a stable window, and a panic window for bursts.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Nanos, Observation, Policy, S};
use crate::spread::{loads, resize};

/// What is set: defaults of `config-autoscaler`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (`tick-interval`: 2 s).
    pub period: Nanos,
    /// Load that is sought (`container-concurrency-target-percentage`: 70).
    pub target: f64,
    /// The stable window (`stable-window`: 60 s).
    pub stable: Nanos,
    /// The panic window (`panic-window-percentage`: 10 % of the stable one).
    pub panic: Nanos,
    /// Multiple of the cores there are from which on it panics (`panic-threshold-percentage`: 200).
    pub threshold: f64,
    /// Divisor by which cores go in a decision at the most (`max-scale-down-rate`: 2).
    pub shrink: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            period: 2 * S,
            target: 0.7,
            stable: 60 * S,
            panic: 6 * S,
            threshold: 2.0,
            shrink: 2.0,
        }
    }
}

/// The autoscaler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Knative {
    settings: Settings,
    /// When, and the load of all cores together.
    past: Vec<(Nanos, f64)>,
    /// Since when it observes.
    since: Option<Nanos>,
    /// When it last had reason to panic, and the most cores that it wanted then.
    panic: Option<(Nanos, usize)>,
}

impl Knative {
    /// One that knows nothing yet.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), past: Vec::new(), since: None, panic: None }
    }

    fn wanted(&self, now: Nanos, window: Nanos) -> usize {
        let recent = self.past.iter().filter(|(at, _)| now.saturating_sub(*at) < window);
        let (sum, count) =
            recent.fold((0.0, 0.0), |(sum, count), (_, load)| (sum + load, count + 1.0));
        if count == 0.0 {
            1
        } else {
            ((sum / count / self.settings.target - 1e-9).ceil() as usize).max(1)
        }
    }
}

impl Policy for Knative {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let Settings { stable, panic, threshold, shrink, .. } = self.settings;
        self.since.get_or_insert(now);
        self.past.retain(|(at, _)| now.saturating_sub(*at) < stable);
        self.past.push((now, loads(seen).iter().sum()));
        // Cores that start count: they were ordered for this very load.
        let have = seen.dedicated().count();
        let (slow, fast) = (self.wanted(now, stable), self.wanted(now, panic));
        if fast as f64 >= threshold * have as f64 {
            let most = self.panic.map_or(0, |(_, most)| most);
            self.panic = Some((now, most.max(fast)));
        } else if self.panic.is_some_and(|(at, _)| now.saturating_sub(at) >= stable) {
            self.panic = None;
        }
        let want = match self.panic {
            Some((_, most)) => most.max(fast).max(have),
            // Without a whole window, what is there is right until shown otherwise.
            None if self.since.is_none_or(|since| now.saturating_sub(since) < stable) => {
                slow.max(have)
            }
            None => slow.max((have as f64 / shrink).ceil() as usize),
        };
        if want == have { Vec::new() } else { resize(seen, want, true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Core, CoreSeen, Role};

    fn decide(of: &mut Knative, now: Nanos, total: f64, roles: &[Role]) -> usize {
        let ready = roles.iter().filter(|role| **role == Role::Dedicated).count().max(1) as f64;
        let core = |(core, role): (usize, &Role)| {
            let load = if *role == Role::Dedicated { total / ready } else { 0.0 };
            CoreSeen { load, ..CoreSeen::idle(Core(core as u32), *role) }
        };
        let cores = roles.iter().enumerate().map(core).collect();
        let seen = Observation { cores, ..Observation::default() };
        let have =
            roles.iter().filter(|role| matches!(role, Role::Dedicated | Role::Starting)).count();
        of.decide(now, &seen).iter().fold(have, |have, action| match action {
            Action::Add(_) => have + 1,
            Action::Release(_) => have - 1,
            _ => have,
        })
    }

    fn roles(dedicated: usize) -> Vec<Role> {
        (0..30).map(|at| if at < dedicated { Role::Dedicated } else { Role::Spare }).collect()
    }

    /// By hand: 7 cores of load at a target of 0.7 want 10.
    #[test]
    fn a_burst_panics_and_never_shrinks_meanwhile() {
        let mut of = Knative::new(&Settings::default());
        assert_eq!(decide(&mut of, 0, 1.4, &roles(2)), 2);
        assert_eq!(decide(&mut of, 2 * S, 14.0, &roles(2)), 11, "(1.4 + 14) / 2 / 0.7");
        assert_eq!(decide(&mut of, 8 * S, 1.4, &roles(11)), 11);
    }

    /// knative#3153: the stable average still holds the calm before the burst, and must not undo what the burst needs.
    #[test]
    fn leaving_panic_mode_does_not_undo_what_was_right() {
        let mut of = Knative::new(&Settings::default());
        let mut have = 2;
        for at in 0..60 {
            let load = if at < 25 { 1.4 } else { 14.0 };
            let next = decide(&mut of, at * 2 * S, load, &roles(have));
            assert!(next >= have, "second {}: {have} to {next}", at * 2);
            have = next;
        }
        assert!(have >= 20, "{have}");
    }

    /// knative#4795: after a restart without its state, seven cores stay seven until a whole window was seen.
    #[test]
    fn a_restart_does_not_scale_to_one() {
        let mut of = Knative::new(&Settings::default());
        for at in 0..29 {
            assert_eq!(decide(&mut of, 1000 * S + at * 2 * S, 0.1, &roles(7)), 7);
        }
        assert_eq!(decide(&mut of, 1060 * S, 0.1, &roles(7)), 4, "then by half at the most");
    }

    /// knative#4344: cores that were ordered and still start are not ordered again.
    #[test]
    fn cores_that_start_are_not_ordered_twice() {
        let mut of = Knative::new(&Settings::default());
        let mut roles = roles(2);
        assert_eq!(decide(&mut of, 0, 2.8, &roles), 4);
        roles[2..4].fill(Role::Starting);
        assert_eq!(decide(&mut of, 2 * S, 2.8, &roles), 4);
    }
}
