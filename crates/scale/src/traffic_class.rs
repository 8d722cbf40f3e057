//! Metron's scaling (§2.3.4): groups of traffic classes are split in two and merged.
//!
//! The paper prints no thresholds. Three signals can be had: the one of the authors' published balancer, that of their agent,
//! and loss at the switch, as Ironside's evaluation reads Metron (§4.4.1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, CoreSeen, GroupSeen, MS, Nanos, Note, Observation, Policy, S};

/// By what a core is found to have too much or too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Load and its last change, as the authors' balancer has it.
    Load,
    /// The share of useful polls, as the authors' agent has it.
    Polls,
    /// Packets that the switch lost before a core; too little is as with `Load`.
    Loss,
}

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (Metron §3.2: 500 ms).
    pub period: Nanos,
    /// By what is decided.
    pub signal: Signal,
    /// Load above which a core has too much (the authors' balancer: 0.75).
    pub over: f64,
    /// Load below which a core has too little (the authors' balancer: 0.25).
    pub under: f64,
    /// Nanoseconds in which a core takes part in one change (the authors' balancer: 3 s).
    pub pause: Nanos,
    /// Weight of a new share of useful polls that is greater (the authors' agent: 0.5).
    pub rise: f64,
    /// Weight of a new share of useful polls that is smaller (the authors' agent: 0.3).
    pub fall: f64,
    /// Share of useful polls above which a core is added (the authors' agent: 0.7).
    pub busy: f64,
    /// Share of useful polls below which a core is taken away (the authors' agent: 0.4).
    pub idle: f64,
    /// Nanoseconds between two additions, and between two removals, by polls (the authors' agent: 5 s).
    pub agent_pause: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            period: 500 * MS,
            signal: Signal::Load,
            over: 0.75,
            under: 0.25,
            pause: 3 * S,
            rise: 0.5,
            fall: 0.3,
            busy: 0.7,
            idle: 0.4,
            agent_pause: 5 * S,
        }
    }
}

/// What is kept of a core.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Past {
    load: f64,
    useful: f64,
    changed: Option<Nanos>,
}

/// Metron's controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metron {
    settings: Settings,
    past: BTreeMap<Core, Past>,
    added: Option<Nanos>,
    removed: Option<Nanos>,
    notes: Vec<Note>,
}

/// What of a core was found.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    TooMuch,
    TooLittle,
}

impl Metron {
    /// One that knows nothing yet.
    pub fn new(settings: &Settings) -> Self {
        let (past, notes) = (BTreeMap::new(), Vec::new());
        Self { settings: settings.clone(), past, added: None, removed: None, notes }
    }

    fn found(&self, of: &CoreSeen) -> Option<Found> {
        let Settings { signal, over, under, busy, idle, .. } = self.settings;
        let past = self.past.get(&of.core).copied().unwrap_or_default();
        let next = of.load + (of.load - past.load);
        let is_low = past.load < under && of.load < under && next < under;
        let (too_much, too_little) = match signal {
            Signal::Load => (of.load > over || next > over, is_low),
            Signal::Polls => (past.useful > busy, past.useful < idle),
            Signal::Loss => (of.lost > 0, is_low),
        };
        let found = too_little.then_some(Found::TooLittle);
        if too_much { Some(Found::TooMuch) } else { found }
    }

    fn rests(&self, core: Core, now: Nanos) -> bool {
        let changed = self.past.get(&core).and_then(|past| past.changed);
        changed.is_some_and(|at| now.saturating_sub(at) < self.settings.pause)
    }

    fn change(&mut self, now: Nanos, cores: [Core; 2]) {
        for core in cores {
            self.past.entry(core).or_default().changed = Some(now);
        }
    }

    /// Whether the agent's pause between changes of a kind is over.
    fn may(&self, last: Option<Nanos>, now: Nanos) -> bool {
        self.settings.signal != Signal::Polls
            || last.is_none_or(|at| now.saturating_sub(at) >= self.settings.agent_pause)
    }

    /// Splits the greatest group of a core.
    fn split(
        &mut self,
        now: Nanos,
        seen: &Observation,
        from: &CoreSeen,
        added: &[Core],
    ) -> Vec<Action> {
        let of_core =
            seen.groups.iter().filter(|of| of.core == from.core && !of.moves() && of.parts > 1);
        let Some(group) =
            of_core.max_by(|a, b| a.load.total_cmp(&b.load).then(b.group.cmp(&a.group)))
        else {
            let why = format!(
                "core {}: load {:.2}, and its groups are single flows",
                from.core.0, from.load
            );
            self.notes.push(Note { at: now, why });
            return Vec::new();
        };
        let spare = seen.spare().find(|of| !added.contains(&of.core)).map(|of| of.core);
        let free = |of: &&CoreSeen| of.core != from.core && !self.rests(of.core, now);
        // Half of the group must not overload the core that gets it.
        let least = || {
            let others = seen.dedicated().filter(free);
            let least =
                others.min_by(|a, b| a.load.total_cmp(&b.load).then(a.core.cmp(&b.core)))?;
            (least.load + group.load / 2.0 < self.settings.over).then_some(least.core)
        };
        let Some(to) = spare.or_else(least) else {
            let why = format!(
                "core {}: load {:.2}, and no core takes half of a group",
                from.core.0, from.load
            );
            self.notes.push(Note { at: now, why });
            return Vec::new();
        };
        let why = format!(
            "core {}: load {:.2}, {} packets lost: half of group {} goes to core {}",
            from.core.0, from.load, from.lost, group.group.0, to.0
        );
        self.notes.push(Note { at: now, why });
        self.change(now, [from.core, to]);
        self.added = Some(now);
        let split = Action::Split { group: group.group, from: from.core, to };
        if spare == Some(to) { vec![Action::Add(to), split] } else { vec![split] }
    }

    /// Merges all groups of a core with those of another one.
    fn merge(
        &mut self,
        now: Nanos,
        seen: &Observation,
        from: &CoreSeen,
        busy: &[Core],
    ) -> Vec<Action> {
        let of = |core| seen.groups.iter().filter(move |of: &&GroupSeen| of.core == core);
        if of(from.core).any(|group| group.moves()) {
            return Vec::new();
        }
        let free = |to: &&CoreSeen| {
            to.core != from.core
                && !self.rests(to.core, now)
                && !busy.contains(&to.core)
                && to.load + from.load < self.settings.over
        };
        let to = seen.dedicated().filter(free);
        let Some(to) = to.min_by(|a, b| a.load.total_cmp(&b.load).then(a.core.cmp(&b.core))) else {
            return Vec::new();
        };
        let to = to.core;
        let mut actions: Vec<Action> = Vec::new();
        for group in of(from.core) {
            let equal = of(to).find(|other| other.operations == group.operations && !other.moves());
            actions.push(match equal {
                Some(into) => {
                    Action::Merge { group: group.group, from: from.core, into: into.group, to }
                }
                None => Action::Move { group: group.group, from: from.core, to },
            });
        }
        actions.push(Action::Release(from.core));
        let why =
            format!("core {}: load {:.2} is merged into core {}", from.core.0, from.load, to.0);
        self.notes.push(Note { at: now, why });
        self.change(now, [from.core, to]);
        self.removed = Some(now);
        actions
    }
}

impl Policy for Metron {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let (rise, fall) = (self.settings.rise, self.settings.fall);
        for of in seen.dedicated() {
            let past =
                self.past.entry(of.core).or_insert(Past { load: of.load, ..Past::default() });
            let weight = if of.useful > past.useful { rise } else { fall };
            past.useful += (of.useful - past.useful) * weight;
        }
        let (mut actions, mut touched): (Vec<Action>, Vec<Core>) = (Vec::new(), Vec::new());
        let mut cores: Vec<CoreSeen> = seen.dedicated().copied().collect();
        cores.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.core.cmp(&b.core)));
        for of in &cores {
            if !self.rests(of.core, now)
                && self.found(of) == Some(Found::TooMuch)
                && self.may(self.added, now)
            {
                let split = self.split(now, seen, of, &touched);
                touched.extend(split.iter().filter_map(Action::to));
                actions.extend(split);
            }
        }
        for of in cores.iter().rev() {
            let left =
                cores.len() - actions.iter().filter(|of| matches!(of, Action::Release(_))).count();
            if left > 1
                && !self.rests(of.core, now)
                && self.found(of) == Some(Found::TooLittle)
                && self.may(self.removed, now)
            {
                actions.extend(self.merge(now, seen, of, &touched));
            }
        }
        for of in &cores {
            self.past.entry(of.core).or_default().load = of.load;
        }
        actions
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Group, Role};

    fn core(core: u32, load: f64) -> CoreSeen {
        CoreSeen { load, useful: load, ..CoreSeen::idle(Core(core), Role::Dedicated) }
    }

    fn seen(cores: &[CoreSeen], parts: u32) -> Observation {
        let group = |of: &CoreSeen| GroupSeen {
            group: Group(of.core.0),
            core: of.core,
            load: of.load,
            rate: 0.0,
            flows: 0.0,
            parts,
            operations: 7,
            next: None,
        };
        let groups = cores.iter().map(group).collect();
        let mut cores = cores.to_vec();
        cores.push(CoreSeen::idle(Core(9), Role::Spare));
        Observation { cores, groups, ..Observation::default() }
    }

    #[test]
    fn load_above_three_quarters_splits_to_a_spare_core_once_in_three_seconds() {
        let mut metron = Metron::new(&Settings::default());
        let all = seen(&[core(0, 0.5), core(1, 0.8)], 64);
        let split =
            [Action::Add(Core(9)), Action::Split { group: Group(1), from: Core(1), to: Core(9) }];
        assert_eq!(metron.decide(0, &all), split);
        assert_eq!(metron.decide(500 * MS, &all), []);
        assert_eq!(metron.decide(2999 * MS, &all), []);
        assert_eq!(metron.decide(3 * S, &all), split);
    }

    #[test]
    fn load_that_will_be_too_much_at_its_last_change_splits_too() {
        let mut metron = Metron::new(&Settings::default());
        assert_eq!(metron.decide(0, &seen(&[core(0, 0.4)], 64)), []);
        assert_eq!(
            metron.decide(500 * MS, &seen(&[core(0, 0.6)], 64)).len(),
            2,
            "0.6 + 0.2 > 0.75"
        );
        assert!(metron.notes()[0].why.contains("load 0.60"));
    }

    #[test]
    fn two_idle_cores_merge_and_one_of_them_is_released() {
        let mut metron = Metron::new(&Settings::default());
        let all = seen(&[core(0, 0.1), core(1, 0.2), core(2, 0.6)], 64);
        let merge = Action::Merge { group: Group(0), from: Core(0), into: Group(1), to: Core(1) };
        assert_eq!(metron.decide(0, &all), [merge, Action::Release(Core(0))]);
    }

    #[test]
    fn a_single_flow_is_not_split_and_the_note_says_so() {
        let mut metron = Metron::new(&Settings::default());
        assert_eq!(metron.decide(0, &seen(&[core(0, 1.0)], 1)), []);
        assert!(metron.notes()[0].why.contains("single flows"));
    }

    #[test]
    fn loss_splits_whatever_the_load() {
        let mut metron = Metron::new(&Settings { signal: Signal::Loss, ..Settings::default() });
        assert_eq!(metron.decide(0, &seen(&[core(0, 1.0)], 64)), []);
        let lossy = CoreSeen { lost: 1, ..core(0, 0.3) };
        assert_eq!(metron.decide(500 * MS, &seen(&[lossy], 64)).len(), 2);
    }

    #[test]
    fn useful_polls_are_smoothed_upwards_by_half_and_downwards_by_less() {
        let mut metron = Metron::new(&Settings { signal: Signal::Polls, ..Settings::default() });
        let all = seen(&[core(0, 0.95)], 64);
        assert_eq!(metron.decide(0, &all), [], "0.475 is not above 0.7");
        assert_eq!(metron.decide(500 * MS, &all).len(), 2, "0.7125 is");
        assert_eq!(metron.decide(5 * S, &all), [], "5 s are not over");
        assert_eq!(metron.decide(5500 * MS, &all).len(), 2);
    }
}
