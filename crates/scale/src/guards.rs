//! Guards around any policy: fresh observations, what moves is at rest, bounds, budgets, pauses, confirmation, and no swinging.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, Group, GroupSeen, Nanos, Note, Observation, Policy, S};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Age of an observation from which on it is stale, and time after which a core that is not seen any more counts as gone, in
    /// periods of the policy (ours).
    pub stale: u64,
    /// Fewest dedicated cores.
    pub least: usize,
    /// Most dedicated cores.
    pub most: usize,
    /// Moves of buckets, groups and flows in a window at the most; 0: without bound.
    pub moves: usize,
    /// The window, in nanoseconds.
    pub window: Nanos,
    /// Nanoseconds in which a bucket or group moves once.
    pub pause: Nanos,
    /// Decisions in a row that must want fewer cores before one goes (hysteresis); 1: at once.
    pub confirm: u32,
    /// Reversals of a core's state in a minute from which on the policy swings and is frozen; 0: never (ours).
    pub swings: usize,
    /// Nanoseconds for which a policy that swings is frozen (ours).
    pub freeze: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        let (stale, least, most, moves, window, pause, confirm) = (3, 1, usize::MAX, 0, S, 0, 1);
        Self { stale, least, most, moves, window, pause, confirm, swings: 8, freeze: 30 * S }
    }
}

/// Nanoseconds over which reversals are counted.
const SWINGING: Nanos = 60 * S;

/// A policy behind guards. Orders that are held back are not kept: the policy decides anew by what it sees next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guarded<P> {
    /// The policy.
    pub policy: P,
    settings: Settings,
    /// Of the last observation that was no worse: when it was made, and the dedicated cores in it.
    last: Option<(Nanos, Vec<Core>)>,
    is_lost: bool,
    /// Since when a core of the last observation has not been seen.
    #[serde(default)]
    absent: Option<Nanos>,
    moved: BTreeMap<Group, Nanos>,
    spent: Vec<Nanos>,
    fewer: u32,
    /// By core: whether it was added last, and when its state was reversed.
    turns: BTreeMap<Core, (bool, Vec<Nanos>)>,
    frozen: Option<Nanos>,
    notes: Vec<Note>,
}

impl<P: Policy> Guarded<P> {
    /// A policy behind guards.
    pub fn new(policy: P, settings: &Settings) -> Self {
        Self {
            policy,
            settings: settings.clone(),
            last: None,
            is_lost: false,
            absent: None,
            moved: BTreeMap::new(),
            spent: Vec::new(),
            fewer: 0,
            turns: BTreeMap::new(),
            frozen: None,
            notes: Vec::new(),
        }
    }

    fn note(&mut self, at: Nanos, why: String) {
        self.notes.push(Note { at, why });
    }

    /// Why an observation says nothing: the last decision stands then.
    fn wrong(&self, now: Nanos, seen: &Observation) -> Option<String> {
        let most = self.settings.stale * self.policy.period();
        if seen.at > now {
            return Some(format!("an observation of {} ns is from the future", seen.at));
        }
        if now - seen.at > most {
            return Some(format!("the observation is {} ns old", now - seen.at));
        }
        if self.last.as_ref().is_some_and(|last| last.0 > seen.at) {
            return Some("an observation is older than the one before it".into());
        }
        let is_number = |value: f64| value.is_finite() && value >= 0.0;
        let core = seen
            .cores
            .iter()
            .find(|of| ![of.load, of.rate, of.flows, of.useful].iter().all(|v| is_number(*v)));
        if let Some(of) = core {
            return Some(format!("core {} reports what is no number", of.core.0));
        }
        if seen.groups.iter().any(|of| ![of.load, of.rate, of.flows].iter().all(|v| is_number(*v)))
        {
            return Some("a bucket reports what is no number".into());
        }
        None
    }

    /// The core that nothing is known of any more. One that stays away for long is gone, and is not waited for.
    fn missing(&mut self, now: Nanos, seen: &Observation) -> Option<String> {
        let dedicated = self.last.as_ref().map_or(&[][..], |last| &last.1);
        let Some(core) = dedicated.iter().find(|core| seen.core(**core).is_none()).copied() else {
            self.absent = None;
            return None;
        };
        let since = *self.absent.get_or_insert(now);
        if now.saturating_sub(since) < self.settings.stale * self.policy.period() {
            return Some(format!("nothing is known of core {}", core.0));
        }
        self.absent = None;
        let time = now.saturating_sub(since);
        self.note(now, format!("core {} has not been seen for {time} ns: it is gone", core.0));
        None
    }

    /// Counts reversals of cores; freezes the policy if there are too many.
    fn swings(&mut self, now: Nanos, actions: &[Action]) {
        for action in actions {
            let (core, is_added) = match action {
                Action::Add(core) => (*core, true),
                Action::Release(core) => (*core, false),
                _ => continue,
            };
            let (was, turns) = self.turns.entry(core).or_insert((is_added, Vec::new()));
            turns.retain(|at| now.saturating_sub(*at) < SWINGING);
            if *was != is_added {
                *was = is_added;
                turns.push(now);
            }
            if self.settings.swings > 0 && turns.len() >= self.settings.swings {
                turns.clear();
                self.frozen = Some(now + self.settings.freeze);
                self.note(
                    now,
                    format!("core {} came and went too often: the policy is frozen", core.0),
                );
            }
        }
    }

    /// What of a decision is allowed.
    fn allowed(&mut self, now: Nanos, seen: &Observation, wanted: Vec<Action>) -> Vec<Action> {
        let Settings { least, most, moves, window, pause, confirm, .. } = self.settings;
        let mut have = seen.dedicated().count();
        let wants_fewer = wanted.iter().any(|of| matches!(of, Action::Release(_)));
        self.fewer = if wants_fewer { self.fewer + 1 } else { 0 };
        let may_shrink = self.fewer >= confirm;
        self.spent.retain(|at| now.saturating_sub(*at) < window);
        self.moved.retain(|_, at| now.saturating_sub(*at) < pause);
        // Something comes to those that must stay, or could not leave them.
        let mut kept: Vec<Core> = seen.groups.iter().filter_map(|of| of.next).collect();
        let mut absent: Vec<Core> = Vec::new();
        let leaving: Vec<Core> = wanted
            .iter()
            .filter_map(|action| match action {
                Action::Release(core) => Some(*core),
                _ => None,
            })
            .collect();
        let room = if may_shrink { have.saturating_sub(least) } else { 0 };
        kept.extend(leaving.iter().rev().skip(room));
        let mut allowed = Vec::new();
        for action in wanted {
            let is_held = match &action {
                Action::Add(core) if have >= most => {
                    absent.push(*core);
                    true
                }
                Action::Release(core) => kept.contains(core),
                action => {
                    let rests = action.groups().any(|group| {
                        let moves = |of: &GroupSeen| of.group == group && of.moves();
                        seen.groups.iter().any(moves) || self.moved.contains_key(&group)
                    });
                    let is_move = action.groups().next().is_some()
                        || matches!(action, Action::Migrate { .. });
                    let is_spent = is_move && moves > 0 && self.spent.len() >= moves;
                    // What was to empty a core that stays would be in vain.
                    let in_vain = |from: Core| leaving.contains(&from) && kept.contains(&from);
                    let leaves_kept = is_move && action.from().is_some_and(in_vain);
                    let is_held = rests
                        || is_spent
                        || leaves_kept
                        || action.to().is_some_and(|to| absent.contains(&to));
                    if is_held {
                        kept.extend(action.from());
                    } else if is_move {
                        kept.extend(action.to());
                        self.spent.push(now);
                        if pause > 0 {
                            self.moved.extend(action.groups().map(|group| (group, now)));
                        }
                    }
                    is_held
                }
            };
            if !is_held {
                match action {
                    Action::Add(_) => have += 1,
                    Action::Release(_) => have -= 1,
                    _ => {}
                }
                allowed.push(action);
            }
        }
        allowed
    }
}

impl<P: Policy> Policy for Guarded<P> {
    fn period(&self) -> Nanos {
        self.policy.period()
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        if let Some(why) = self.wrong(now, seen).or_else(|| self.missing(now, seen)) {
            if !self.is_lost {
                self.note(now, format!("{why}: the last decision stands"));
            }
            self.is_lost = true;
            return Vec::new();
        }
        self.is_lost = false;
        let is_known = self.last.as_ref().is_some_and(|last| last.0 == seen.at);
        self.last = Some((seen.at, seen.dedicated().map(|of| of.core).collect()));
        if is_known || self.frozen.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.frozen = None;
        let wanted = self.policy.decide(now, seen);
        let allowed = self.allowed(now, seen, wanted);
        self.swings(now, &allowed);
        allowed
    }

    fn notes(&mut self) -> Vec<Note> {
        let mut notes = self.policy.notes();
        notes.append(&mut self.notes);
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CoreSeen, MS, Role};

    /// Orders what it was given.
    #[derive(Clone)]
    struct Orders(Vec<Action>);

    impl Policy for Orders {
        fn period(&self) -> Nanos {
            100 * MS
        }

        fn decide(&mut self, _: Nanos, _: &Observation) -> Vec<Action> {
            self.0.clone()
        }
    }

    fn seen(at: Nanos, dedicated: u32) -> Observation {
        let role = |core| if core < dedicated { Role::Dedicated } else { Role::Spare };
        let group = |core| GroupSeen {
            group: Group(core),
            core: Core(core),
            load: 0.5,
            rate: 1.0,
            flows: 1.0,
            parts: 2,
            operations: 0,
            next: (core == 3).then_some(Core(7)),
        };
        Observation {
            at,
            cores: (0..8).map(|core| CoreSeen::idle(Core(core), role(core))).collect(),
            groups: (0..4).map(group).collect(),
            ..Observation::default()
        }
    }

    fn shift(group: u32, to: u32) -> Action {
        Action::Move { group: Group(group), from: Core(group), to: Core(to) }
    }

    fn run(settings: &Settings, orders: &[Action], at: Nanos, dedicated: u32) -> Vec<Action> {
        let mut of = Guarded::new(Orders(orders.to_vec()), settings);
        of.decide(at, &seen(at, dedicated))
    }

    #[test]
    fn bounds_hold_with_all_that_depends_on_them() {
        let settings = Settings { least: 4, most: 4, ..Settings::default() };
        let orders = [Action::Add(Core(5)), shift(0, 5), shift(1, 2)];
        assert_eq!(run(&settings, &orders, 0, 4), [shift(1, 2)]);
        assert_eq!(run(&settings, &[shift(1, 2), Action::Release(Core(1))], 0, 4), []);
    }

    /// A core that something comes to can be relieved, and not released.
    #[test]
    fn what_moves_holds_no_other_group() {
        let mut seen = seen(0, 4);
        seen.groups[2].core = Core(3);
        let of_three = Action::Move { group: Group(2), from: Core(3), to: Core(1) };
        seen.groups[3].next = Some(Core(3));
        let mut of = Guarded::new(Orders(vec![of_three.clone()]), &Settings::default());
        assert_eq!(of.decide(0, &seen), std::slice::from_ref(&of_three));
        let mut of =
            Guarded::new(Orders(vec![of_three, Action::Release(Core(3))]), &Settings::default());
        assert_eq!(of.decide(0, &seen), []);
    }

    #[test]
    fn a_core_whose_buckets_could_not_all_leave_stays() {
        let settings = Settings { moves: 1, ..Settings::default() };
        let orders = [shift(0, 2), shift(1, 2), Action::Release(Core(1))];
        assert_eq!(run(&settings, &orders, 0, 4), [shift(0, 2)]);
        assert_eq!(run(&Settings::default(), &[shift(3, 0)], 0, 4), [], "it moves already");
    }

    /// keda#6659 and #5514: a source of metrics that is lost neither scales down nor flaps.
    #[test]
    fn stale_missing_or_absurd_observations_hold_the_last_decision() {
        let mut of =
            Guarded::new(Orders(vec![shift(0, 1), Action::Release(Core(0))]), &Settings::default());
        assert_eq!(of.decide(S, &seen(S, 4)).len(), 2);
        assert_eq!(of.decide(S + 1, &seen(S, 4)), [], "nothing new was seen");
        let mut partial = seen(2 * S, 4);
        partial.cores.remove(0);
        let mut absurd = seen(2 * S, 4);
        absurd.cores[1].load = f64::NAN;
        let all = [seen(S, 4), seen(9 * S, 4), seen(S / 2, 4), partial, absurd];
        let expected = ["is 1000000000 ns old", "from the future", "ns old", "of core 0", "core 1"];
        for (wrong, expected) in all.into_iter().zip(expected) {
            let mut of = of.clone();
            of.notes();
            assert_eq!(of.decide(2 * S, &wrong), []);
            let notes = of.notes();
            assert!(notes[0].why.contains(expected), "{notes:?}");
            let again = seen(3 * S, 4);
            assert_eq!(of.decide(3 * S, &again).len(), 2, "what is known again is decided by");
        }
    }

    /// A core that fails, or that its user takes back, does not stop scaling: it is waited for as long as an observation may be old.
    #[test]
    fn a_core_that_stays_away_is_gone() {
        let mut of = Guarded::new(Orders(vec![shift(0, 1)]), &Settings::default());
        let without = |at: Nanos| {
            let mut seen = seen(at * 100 * MS, 4);
            seen.cores.remove(3);
            seen
        };
        assert_eq!(of.decide(100 * MS, &seen(100 * MS, 4)).len(), 1);
        let lengths: Vec<usize> =
            (2..=7).map(|at| of.decide(at * 100 * MS, &without(at)).len()).collect();
        assert_eq!(lengths, [0, 0, 0, 1, 1, 1]);
        let notes = of.notes();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].why.contains("nothing is known of core 3"), "{notes:?}");
        assert!(
            notes[1].why.contains("has not been seen for 300000000 ns: it is gone"),
            "{notes:?}"
        );
        // One that comes back in time was never gone.
        let mut of = Guarded::new(Orders(vec![shift(0, 1)]), &Settings::default());
        for at in 1..=12 {
            let seen = if at % 3 == 0 { seen(at * 100 * MS, 4) } else { without(at) };
            of.decide(at * 100 * MS, &seen);
        }
        assert!(of.notes().iter().all(|note| !note.why.contains("it is gone")));
    }

    #[test]
    fn fewer_cores_must_be_confirmed_and_groups_pause() {
        let settings = Settings { confirm: 3, pause: S, ..Settings::default() };
        let mut of = Guarded::new(Orders(vec![shift(0, 1), Action::Release(Core(0))]), &settings);
        let lengths: Vec<usize> =
            (1..=4).map(|at| of.decide(at * 100 * MS, &seen(at * 100 * MS, 4)).len()).collect();
        assert_eq!(lengths, [0, 0, 2, 0]);
    }

    #[test]
    fn a_policy_that_swings_is_frozen_and_reported() {
        let mut of = Guarded::new(Orders(Vec::new()), &Settings::default());
        let mut decisions = 0;
        for at in 0..20 {
            let core = Core(6);
            of.policy.0 = vec![if at % 2 == 0 { Action::Add(core) } else { Action::Release(core) }];
            decisions += of.decide(at * S, &seen(at * S, 4)).len();
        }
        assert_eq!(decisions, 9, "eight reversals");
        assert!(of.notes().iter().any(|of| of.why.contains("core 6 came and went too often")));
    }

    /// The state is the value: what was read back decides as what was written.
    #[test]
    fn a_restart_goes_on_where_it_was() {
        let mut of = Guarded::new(crate::Knative::new(&Default::default()), &Settings::default());
        for at in 0..40 {
            of.decide(at * 2 * S, &seen(at * 2 * S, 4));
        }
        let text = serde_json::to_string(&of).unwrap();
        let mut back: Guarded<crate::Knative> = serde_json::from_str(&text).unwrap();
        let next = seen(80 * S, 4);
        assert_eq!(of.decide(80 * S, &next), back.decide(80 * S, &next));
    }
}
