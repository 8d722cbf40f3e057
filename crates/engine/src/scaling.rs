//! Scaling of a run: a policy sees workers and groups of flows, and has workers come and go and groups move.
//!
//! Cores of the policy are workers, by number. The first one always runs, as frames of no group come to it: what these
//! take is shown as a group that cannot move.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dataplane::stats::{Interval, Stats};
use scale::{
    Action, ByLoad, Core, CoreSeen, Group, GroupSeen, Guarded, Nanos, Note, Observation, Policy,
    Role, Scaler, Settings,
};
use serde::{Deserialize, Serialize};

use crate::control::Controlled;
use crate::error::Error;
use crate::instance::{Instance, Moved};

/// Decisions that are kept.
const KEPT: usize = 1000;
/// How long it takes at most until the end of the run is seen.
const PATIENCE: Duration = Duration::from_millis(20);

/// Constants of policies as they suit workers: as packets of a group wait for some milliseconds when it moves, it then
/// stays for a second.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.guards.pause = scale::S;
    settings
}

/// What was seen, what was decided, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What was seen.
    pub seen: Observation,
    /// What was ordered.
    pub actions: Vec<Action>,
    /// Why.
    pub notes: Vec<Note>,
    /// Groups of flows that moved.
    pub groups: usize,
    /// The longest that packets of a group waited, in milliseconds.
    pub waited_ms: f64,
    /// Why orders failed.
    pub failed: Vec<String>,
}

impl Decision {
    /// Whether there is something to tell.
    pub fn tells(&self) -> bool {
        !(self.actions.is_empty() && self.notes.is_empty() && self.failed.is_empty())
    }
}

/// A policy that scales a run.
pub struct Scaling {
    policy: ByLoad,
    state: Mutex<State>,
}

struct State {
    policy: Guarded<Scaler>,
    before: Option<Readings>,
    decisions: VecDeque<Decision>,
}

/// Counters at a moment.
struct Readings {
    /// When, since the run began.
    at: Nanos,
    /// By worker; nothing of those that stand by.
    workers: Vec<Option<Reading>>,
    /// By group: the worker that has it, and its packets so far.
    groups: Vec<(usize, u64)>,
}

#[derive(Clone, Copy, Default)]
struct Reading {
    now: u64,
    busy: u64,
    packets: u64,
    lost: u64,
    flows: u64,
    waiting: u64,
}

impl Reading {
    fn of(stats: &Stats, waiting: u64) -> Self {
        let sources = stats
            .elements
            .iter()
            .filter(|element| element.traffic.as_ref().is_some_and(|traffic| traffic.source));
        let lost = sources.flat_map(|element| &element.tally).map(|line| line.dropped).sum();
        Self {
            now: stats.now,
            busy: stats.load.busy,
            packets: stats.packets().0,
            lost,
            flows: stats.elements.iter().map(|element| element.holding.flows as u64).sum(),
            waiting,
        }
    }
}

impl Readings {
    fn of(instance: &Instance) -> Result<Self, Error> {
        let dispatch = instance.dispatch();
        let worker = |worker: usize| {
            if !dispatch.is_running(worker) {
                return Ok(None);
            }
            let stats = instance.fleet().call(worker, |router| router.stats());
            let waiting = instance.waiting(worker).values().sum();
            stats.map(|stats| Some(Reading::of(&stats, waiting))).ok_or(Error::WorkerDead)
        };
        Ok(Self {
            at: instance.age().as_nanos() as Nanos,
            workers: (0..instance.fleet().len()).map(worker).collect::<Result<_, _>>()?,
            groups: (0..dispatch.groups()).filter_map(|group| dispatch.group(group)).collect(),
        })
    }

    fn core(&self, worker: usize, before: &Self) -> CoreSeen {
        let core = Core(worker as u32);
        let Some(now) = self.workers[worker] else { return CoreSeen::idle(core, Role::Spare) };
        let mut seen = CoreSeen::idle(core, Role::Dedicated);
        seen.queued = now.waiting.min(u32::MAX.into()) as u32;
        seen.flows = now.flows as f64;
        // Of a worker that was not there before nothing is known of the time before.
        let Some(then) = before.workers.get(worker).copied().flatten() else { return seen };
        let interval = Interval::between(then.now, now.now);
        seen.load = (interval.rate(then.busy, now.busy) / 1e9).min(1.0);
        seen.useful = seen.load;
        seen.rate = interval.rate(then.packets, now.packets);
        seen.lost = now.lost.saturating_sub(then.lost);
        seen
    }

    /// What a policy sees, since other readings: each group, or what each worker has as one group with parts.
    fn seen(&self, before: &Self, splits: bool) -> Observation {
        let cores: Vec<CoreSeen> =
            (0..self.workers.len()).map(|worker| self.core(worker, before)).collect();
        let interval = Interval::between(before.at, self.at);
        let rate = |group: usize, packets: u64| {
            interval.rate(before.groups.get(group).map_or(0, |of| of.1), packets)
        };
        let mut groups: Vec<GroupSeen> = Vec::new();
        for (group, &(worker, packets)) in self.groups.iter().enumerate() {
            let (core, rate) = (&cores[worker], rate(group, packets));
            let load = if core.rate > 0.0 { core.load * (rate / core.rate).min(1.0) } else { 0.0 };
            groups.push(GroupSeen {
                group: Group(group as u32),
                core: core.core,
                load,
                rate,
                flows: 0.0,
                parts: 1,
                operations: 0,
                next: None,
            });
        }
        let of_groups: f64 = groups.iter().filter(|of| of.core == Core(0)).map(|of| of.load).sum();
        if splits {
            groups = joined(&groups);
        }
        groups.extend(cores.first().map(|first| GroupSeen {
            group: Group(if splits { cores.len() } else { self.groups.len() } as u32),
            core: first.core,
            load: (first.load - of_groups).max(0.0),
            rate: 0.0,
            flows: 0.0,
            parts: 1,
            operations: 0,
            next: Some(first.core),
        }));
        Observation { at: self.at, cores, groups, ..Observation::default() }
    }
}

/// All groups of a worker as one, with its number.
fn joined(groups: &[GroupSeen]) -> Vec<GroupSeen> {
    let mut all: Vec<GroupSeen> = Vec::new();
    for of in groups {
        match all.iter_mut().find(|one| one.core == of.core) {
            Some(one) => {
                one.load += of.load;
                one.rate += of.rate;
                one.parts += 1;
            }
            None => all.push(GroupSeen { group: Group(of.core.0), ..*of }),
        }
    }
    all.sort_by_key(|of| of.group);
    all
}

/// Every second group of a worker, the one with the most packets first: the half that goes.
fn half(groups: &[(usize, u64)], worker: usize) -> Vec<usize> {
    let mut own: Vec<usize> =
        (0..groups.len()).filter(|&group| groups[group].0 == worker).collect();
    own.sort_by_key(|&group| std::cmp::Reverse(groups[group].1));
    own.into_iter().skip(1).step_by(2).collect()
}

/// Orders as an instance executes them.
#[derive(Debug, PartialEq)]
enum Step {
    Add(usize),
    Move { groups: Vec<usize>, from: usize, to: usize },
    Release(usize),
}

/// Joins moves between the same workers, and finds what splits and merges move; `groups` gives the worker of each
/// group, and its packets since the last observation.
fn steps(actions: &[Action], groups: &[(usize, u64)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let all =
        |worker: usize| (0..groups.len()).filter(|&group| groups[group].0 == worker).collect();
    let shift = |steps: &mut Vec<Step>, more: Vec<usize>, (from, to): (Core, Core)| {
        let (from, to) = (from.0 as usize, to.0 as usize);
        let same = steps.iter_mut().rev().take_while(|step| matches!(step, Step::Move { .. }));
        for step in same {
            if let Step::Move { groups, from: f, to: t } = step
                && (*f, *t) == (from, to)
            {
                groups.extend(more);
                return;
            }
        }
        steps.push(Step::Move { groups: more, from, to });
    };
    for action in actions {
        match action {
            Action::Add(core) => steps.push(Step::Add(core.0 as usize)),
            Action::Release(core) => steps.push(Step::Release(core.0 as usize)),
            Action::Move { group, from, to } => {
                shift(&mut steps, vec![group.0 as usize], (*from, *to));
            }
            Action::Split { from, to, .. } => {
                shift(&mut steps, half(groups, from.0 as usize), (*from, *to));
            }
            Action::Merge { from, to, .. } => {
                shift(&mut steps, all(from.0 as usize), (*from, *to));
            }
            // No policy by load orders the rest.
            _ => {}
        }
    }
    steps
}

impl Scaling {
    /// Scaling by a policy.
    pub fn by(policy: ByLoad, settings: &Settings) -> Self {
        let guarded = Guarded::new(policy.scaler(settings), &settings.guards);
        let state = State { policy: guarded, before: None, decisions: VecDeque::new() };
        Self { policy, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// How often it decides.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.lock().policy.period())
    }

    /// The last decisions that there is something to tell of since so long after the run began, in their order.
    pub fn decisions(&self, since: Nanos) -> Vec<Decision> {
        let state = self.lock();
        state.decisions.iter().filter(|of| of.seen.at >= since).cloned().collect()
    }

    /// Looks at a run, decides, and executes that; `None` the first time, when nothing is known yet.
    ///
    /// It blocks until groups have moved, some milliseconds.
    ///
    /// # Errors
    /// If a worker is dead.
    pub fn step(&self, instance: &Instance) -> Result<Option<Decision>, Error> {
        let now = Readings::of(instance)?;
        let decided = {
            let mut state = self.lock();
            let decided = state.before.as_ref().map(|before| {
                let seen = now.seen(before, self.policy.splits());
                let since = |(group, of): (usize, &(usize, u64))| {
                    (of.0, of.1.saturating_sub(before.groups.get(group).map_or(0, |of| of.1)))
                };
                (seen, now.groups.iter().enumerate().map(since).collect::<Vec<_>>())
            });
            let at = now.at;
            state.before = Some(now);
            decided.map(|(seen, groups)| {
                let actions = state.policy.decide(at, &seen);
                (seen, actions, state.policy.notes(), groups)
            })
        };
        let Some((seen, actions, notes, groups)) = decided else { return Ok(None) };
        let (moved, failed) = execute(instance, &steps(&actions, &groups));
        let waited_ms = moved.waited.as_secs_f64() * 1e3;
        let decision = Decision { seen, actions, notes, groups: moved.groups, waited_ms, failed };
        if decision.tells() {
            let mut state = self.lock();
            state.decisions.push_back(decision.clone());
            if state.decisions.len() > KEPT {
                state.decisions.pop_front();
            }
        }
        Ok(Some(decision))
    }
}

/// Executes orders, and tells which failed.
fn execute(instance: &Instance, steps: &[Step]) -> (Moved, Vec<String>) {
    let (mut all, mut failed) = (Moved::default(), Vec::new());
    for step in steps {
        let done = match step {
            Step::Add(worker) => instance.add_worker(*worker),
            Step::Release(worker) => instance.release_worker(*worker).map(drop),
            Step::Move { groups, to, .. } => {
                instance.move_groups(groups, *to).map(|moved| all.add(moved))
            }
        };
        failed.extend(done.err().map(|why| why.to_string()));
    }
    (all, failed)
}

impl Controlled {
    /// Has a thread scale the run from now on, until it ends; `hear` is told all decisions, also to do nothing.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn scale(
        self: &Arc<Self>,
        hear: impl Fn(&Decision) + Send + 'static,
    ) -> std::io::Result<Option<JoinHandle<()>>> {
        let controlled = Arc::clone(self);
        if controlled.scaling.is_none() {
            return Ok(None);
        }
        let work = move || {
            let Some(scaling) = &controlled.scaling else { return };
            let time = controlled.instance.time();
            let period = scaling.period().as_nanos() as u64;
            let mut next = time.now();
            while !controlled.handle.is_stopped() {
                let now = time.now();
                if now < next {
                    time.wait_until(next.min(now + PATIENCE.as_nanos() as u64));
                    continue;
                }
                match scaling.step(&controlled.instance) {
                    Ok(decision) => decision.iter().for_each(&hear),
                    // The run ends when a worker is dead.
                    Err(_) => return,
                }
                next = now + period;
            }
        };
        std::thread::Builder::new().name("scaling".into()).spawn(work).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(at: u64, workers: &[Option<(u64, u64)>], groups: &[(usize, u64)]) -> Readings {
        let reading = |(busy, packets)| Reading { now: at, busy, packets, ..Reading::default() };
        Readings {
            at,
            workers: workers.iter().map(|of| of.map(reading)).collect(),
            groups: groups.to_vec(),
        }
    }

    const S: u64 = 1_000_000_000;

    /// Two of three workers run; the first had 1,000 packets in a second, 200 of them of no group.
    fn seen(splits: bool) -> Observation {
        let before = readings(S, &[Some((0, 0)), Some((0, 0)), None], &[(0, 0), (0, 0), (1, 0)]);
        let after = readings(
            2 * S,
            &[Some((S / 2, 1000)), Some((S / 10, 100)), None],
            &[(0, 600), (0, 200), (1, 100)],
        );
        after.seen(&before, splits)
    }

    #[test]
    fn load_is_divided_among_groups_by_their_packets() {
        let seen = seen(false);
        let roles: Vec<Role> = seen.cores.iter().map(|of| of.role).collect();
        assert_eq!(roles, [Role::Dedicated, Role::Dedicated, Role::Spare]);
        assert_eq!((seen.cores[0].load, seen.cores[0].rate), (0.5, 1000.0));
        let groups: Vec<(u32, u32, f64)> =
            seen.groups.iter().map(|of| (of.group.0, of.core.0, of.load)).collect();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let expected = [(0, 0, 0.3), (1, 0, 0.1), (2, 1, 0.1), (3, 0, 0.1)];
        assert_eq!(groups.len(), expected.len());
        for (of, expected) in groups.iter().zip(&expected) {
            assert!((of.0, of.1) == (expected.0, expected.1) && near(of.2, expected.2), "{of:?}");
        }
        // What is of no group stays where it is, and so does the first worker.
        assert!(seen.groups[3].moves() && !seen.groups[0].moves());
    }

    #[test]
    fn groups_of_a_worker_are_parts_where_a_policy_splits() {
        let seen = seen(true);
        let groups: Vec<(u32, u32, u32)> =
            seen.groups.iter().map(|of| (of.group.0, of.core.0, of.parts)).collect();
        assert_eq!(groups, [(0, 0, 2), (1, 1, 1), (3, 0, 1)]);
    }

    #[test]
    fn moves_between_the_same_workers_are_one_step() {
        let shift =
            |group, from, to| Action::Move { group: Group(group), from: Core(from), to: Core(to) };
        let actions = [
            Action::Add(Core(2)),
            shift(0, 1, 2),
            shift(3, 0, 2),
            shift(1, 1, 2),
            Action::Release(Core(1)),
        ];
        let expected = [
            Step::Add(2),
            Step::Move { groups: vec![0, 1], from: 1, to: 2 },
            Step::Move { groups: vec![3], from: 0, to: 2 },
            Step::Release(1),
        ];
        assert_eq!(steps(&actions, &[(1, 5), (1, 5), (0, 0), (0, 9)]), expected);
    }

    #[test]
    fn a_split_takes_every_second_group_by_packets() {
        let groups = [(0, 10), (0, 70), (1, 99), (0, 30), (0, 20)];
        let split = Action::Split { group: Group(0), from: Core(0), to: Core(2) };
        let expected = [Step::Move { groups: vec![3, 0], from: 0, to: 2 }];
        assert_eq!(steps(&[split], &groups), expected);
        let (group, into) = (Group(0), Group(1));
        let merge = Action::Merge { group, from: Core(0), into, to: Core(1) };
        let all = Step::Move { groups: vec![0, 1, 3, 4], from: 0, to: 1 };
        assert_eq!(steps(&[merge], &groups), [all]);
    }

    /// The first worker is never released, whatever a policy makes of its load.
    #[test]
    fn the_first_worker_stays() {
        let mut settings = Settings::default();
        settings.rss_plus_plus.remove = -1000.0;
        settings.rss_plus_plus.add = -1000.0;
        let before = readings(S, &[Some((0, 0)), Some((0, 0))], &[(0, 0), (1, 0)]);
        let after = readings(2 * S, &[Some((S / 10, 10)), Some((S / 2, 50))], &[(0, 10), (1, 50)]);
        let mut policy = Guarded::new(ByLoad::RssPlusPlus.scaler(&settings), &settings.guards);
        let actions = policy.decide(2 * S, &after.seen(&before, false));
        let expected = [
            Action::Move { group: Group(1), from: Core(1), to: Core(0) },
            Action::Release(Core(1)),
        ];
        assert_eq!(actions, expected);
    }
}
