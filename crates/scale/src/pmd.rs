//! Open vSwitch's automatic load balancing of PMD threads: queues are dealt anew when a thread was overloaded for a while.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, Nanos, Note, Observation, Policy, S};

/// What is set: defaults of `other_config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between two looks at loads (`ovs-vswitchd`: 10 s).
    pub period: Nanos,
    /// Load from which on a thread is overloaded (`pmd-auto-lb-load-threshold`: 95 %).
    pub over: f64,
    /// Looks in a row that find it so (`pmd-auto-lb-rebal-interval`: 1 min, six looks).
    pub times: u32,
    /// Least share by which the variance of loads must fall (`pmd-auto-lb-improvement-threshold`: 25 %).
    pub improvement: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: 10 * S, over: 0.95, times: 6, improvement: 0.25 }
    }
}

/// The balancer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pmd {
    settings: Settings,
    /// By core: looks in a row that found it overloaded.
    looks: Vec<(Core, u32)>,
    notes: Vec<Note>,
}

fn variance(loads: &[f64]) -> f64 {
    let count = loads.len().max(1) as f64;
    let mean = loads.iter().sum::<f64>() / count;
    loads.iter().map(|load| (load - mean) * (load - mean)).sum::<f64>() / count
}

impl Pmd {
    /// One that has not looked yet.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), looks: Vec::new(), notes: Vec::new() }
    }
}

impl Policy for Pmd {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let before = std::mem::take(&mut self.looks);
        for of in seen.dedicated() {
            let past = before.iter().find(|(core, _)| *core == of.core).map_or(0, |(_, n)| *n);
            self.looks.push((of.core, if of.load >= self.settings.over { past + 1 } else { 0 }));
        }
        if !self.looks.iter().any(|(_, looks)| *looks >= self.settings.times) {
            return Vec::new();
        }
        self.looks.iter_mut().for_each(|(_, looks)| *looks = 0);
        let mut loads: Vec<(Core, f64)> = seen.dedicated().map(|of| (of.core, 0.0)).collect();
        let mut current = loads.clone();
        let mut groups: Vec<_> = seen.groups.iter().collect();
        groups.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.group.cmp(&b.group)));
        let mut moves = Vec::new();
        for of in groups {
            if let Some((_, load)) = current.iter_mut().find(|(core, _)| *core == of.core) {
                *load += of.load;
            }
            let least = loads.iter_mut().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
            let Some((to, load)) = least else { break };
            *load += of.load;
            if *to != of.core && !of.moves() {
                moves.push(Action::Move { group: of.group, from: of.core, to: *to });
            }
        }
        let of = |loads: &[(Core, f64)]| {
            variance(&loads.iter().map(|(_, load)| *load).collect::<Vec<_>>())
        };
        let (was, will) = (of(&current), of(&loads));
        let gains = was > 0.0 && (was - will) / was >= self.settings.improvement;
        let why = format!("the variance of loads would fall from {was:.4} to {will:.4}");
        self.notes.push(Note { at: now, why });
        if gains { moves } else { Vec::new() }
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CoreSeen, Group, GroupSeen, Role};

    fn seen(loads: &[(u32, f64)], busy: f64) -> Observation {
        let group = |(at, (core, load)): (usize, &(u32, f64))| GroupSeen {
            group: Group(at as u32),
            core: Core(*core),
            load: *load,
            rate: 0.0,
            flows: 0.0,
            parts: 1,
            operations: 0,
            next: None,
        };
        let core = |(at, load)| CoreSeen { load, ..CoreSeen::idle(Core(at), Role::Dedicated) };
        let groups = loads.iter().enumerate().map(group).collect();
        Observation {
            cores: [(0, busy), (1, 0.1)].map(core).to_vec(),
            groups,
            ..Observation::default()
        }
    }

    #[test]
    fn the_sixth_look_in_a_row_moves_queues() {
        let mut of = Pmd::new(&Settings::default());
        let mut look = |busy| of.decide(0, &seen(&[(0, 0.6), (0, 0.36), (1, 0.1)], busy)).len();
        assert_eq!([0.96; 5].map(&mut look), [0; 5]);
        assert_eq!(look(0.5), 0, "the row is broken");
        assert_eq!([0.96; 6].map(&mut look), [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn one_queue_that_is_too_much_gains_nothing_by_moving() {
        let mut of = Pmd::new(&Settings::default());
        for _ in 0..12 {
            assert_eq!(of.decide(0, &seen(&[(0, 1.0), (1, 0.1)], 1.0)), []);
        }
        assert!(of.notes()[0].why.contains("variance"));
    }
}
