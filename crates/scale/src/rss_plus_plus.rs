//! RSS++: every 100 ms, a core more or less by the sum of unused load, and buckets moved to the least squared imbalance.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, MS, Nanos, Note, Observation, Policy};
use crate::spread::{loads, resize};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (RSS++: 100 ms).
    pub period: Nanos,
    /// Load that cores are to have (the authors' code: 0.8).
    pub target: f64,
    /// Sum of unused load below which a core is added (the authors' code: -0.1).
    pub add: f64,
    /// Sum of unused load above which a core may go (the authors' code: 1.2).
    pub remove: f64,
    /// The least that each core left must have unused beyond (the authors' code: 0.05).
    pub margin: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: 100 * MS, target: 0.8, add: -0.1, remove: 1.2, margin: 0.05 }
    }
}

/// RSS++'s balancer of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RssPlusPlus {
    settings: Settings,
    notes: Vec<Note>,
}

impl RssPlusPlus {
    /// One that has seen nothing.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), notes: Vec::new() }
    }

    /// How many cores there are to be for some loads.
    pub fn cores(&self, loads: &[f64]) -> usize {
        let Settings { target, add, remove, margin, .. } = self.settings;
        let unused: f64 = loads.iter().map(|load| target - load).sum();
        let most = loads.iter().copied().fold(0.0, f64::max);
        let kept = remove + (loads.len() as f64 + 1.0) * margin.max(most - target);
        match loads.len() {
            n if unused < add => n + 1,
            n if unused > kept => (n - 1).max(1),
            n => n,
        }
    }
}

impl Policy for RssPlusPlus {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let loads = loads(seen);
        let want = self.cores(&loads).min(loads.len() + seen.spare().count());
        if want != loads.len() {
            let why = format!(
                "cores: {} -> {want}, at a load of {:.2}",
                loads.len(),
                loads.iter().sum::<f64>()
            );
            self.notes.push(Note { at: now, why });
        }
        resize(seen, want, true)
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Core, CoreSeen, Group, GroupSeen, Role};

    /// By hand from the rule: -0.2 unused adds; 4 cores at 0.3 have 2.0 unused, and 1.2 + 5 · 0.05 = 1.45 is less.
    #[test]
    fn cores_follow_the_sum_of_unused_load() {
        let of = RssPlusPlus::new(&Settings::default());
        assert_eq!(of.cores(&[0.9, 0.9]), 3);
        assert_eq!(of.cores(&[0.85, 0.84]), 2, "-0.09 is not below -0.1");
        assert_eq!(of.cores(&[0.3; 4]), 3);
        assert_eq!(of.cores(&[0.5; 4]), 4, "1.2 is not above 1.45");
        // One core at 1.0 keeps the others: 2.4 - 0.2 unused, and 1.2 + 6 · 0.2 = 2.4 is more.
        assert_eq!(of.cores(&[0.2, 0.2, 0.2, 0.2, 1.0]), 5);
    }

    #[test]
    fn buckets_move_to_the_least_squared_imbalance() {
        let loads = [(0, 0, 0.4), (1, 0, 0.3), (2, 0, 0.2), (3, 1, 0.1)];
        let group = |(group, core, load): &(u32, u32, f64)| GroupSeen {
            group: Group(*group),
            core: Core(*core),
            load: *load,
            rate: 0.0,
            flows: 0.0,
            parts: 1,
            operations: 0,
            next: None,
        };
        let core = |core, load| CoreSeen { load, ..CoreSeen::idle(Core(core), Role::Dedicated) };
        let seen = Observation {
            cores: vec![core(0, 0.9), core(1, 0.1)],
            groups: loads.iter().map(group).collect(),
            ..Observation::default()
        };
        let mut of = RssPlusPlus::new(&Settings::default());
        assert_eq!(
            of.decide(0, &seen),
            [Action::Move { group: Group(0), from: Core(0), to: Core(1) }]
        );
    }
}
