//! How packets find their workers, and where groups of traffic classes are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dataplane::io::DispatchMode;
use dataplane::stats::Interval;
use ir::Model;

use super::protocol::{Balanced, DispatchAnswer, Group, GroupMoved, Handed};
use crate::error::Error;
use crate::groups::Grouping;
use crate::instance::{Instance, Workers};

/// How long packets are counted before groups are spread by how many came.
const COUNTING: Duration = Duration::from_secs(1);

/// What is reported of dispatch that the instance does not know.
pub struct DispatchState {
    /// Why it is this mode.
    why: String,
    /// Why workers have nothing to do.
    note: Option<String>,
    /// The groups of the configuration with this number, of elements that mean this.
    grouping: Mutex<Option<(u64, Vec<Model>, Grouping)>>,
    /// When packets were counted last, if they were, and how many there were: of each group, or from each
    /// worker to each.
    counted: Mutex<Option<(u64, Vec<u64>)>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DispatchState {
    /// Of dispatch in a mode that was chosen for this reason. `note` says why workers have nothing to do, if the
    /// packets that come are not dispatched.
    pub fn new(why: String, note: Option<String>) -> Self {
        Self { why, note, grouping: Mutex::new(None), counted: Mutex::new(None) }
    }

    /// Why workers have nothing to do, if that is known.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// All there is to report. Rates are since the last call.
    ///
    /// # Errors
    /// If a worker is dead.
    pub(super) fn report(&self, instance: &Instance) -> Result<DispatchAnswer, Error> {
        let (dispatch, Workers { running: workers, most }) =
            (instance.dispatch(), instance.workers());
        let (mode, why) = (dispatch.mode().to_string(), self.why.clone());
        let (groups, handed) = (Vec::new(), Vec::new());
        let note = self.note.clone().filter(|_| most > 1);
        let mut report = DispatchAnswer { mode, why, workers, most, note, groups, handed };
        let mut counted = lock(&self.counted);
        let now = instance.time().now();
        let (interval, before) = match counted.take() {
            Some((then, before)) => (Interval::between(then, now), before),
            None => (Interval::of(instance.age()), Vec::new()),
        };
        let mut counts = Vec::new();
        let mut rate = |packets: u64| {
            let before = before.get(counts.len()).copied().unwrap_or(0);
            counts.push(packets);
            interval.rate(before, packets)
        };
        if let dispatch_mode @ (DispatchMode::Software | DispatchMode::HandOff) = dispatch.mode() {
            for from in 0..if dispatch_mode == DispatchMode::Software { 1 } else { workers } {
                for to in (0..workers).filter(|&to| to != from) {
                    let packets = dispatch.handed(from, to);
                    report.handed.push(Handed { from, to, packets, rate: rate(packets) });
                }
            }
        } else {
            let mut known = lock(&self.grouping);
            let tags = match dispatch.mode() {
                DispatchMode::Tags(tags) => Some(tags),
                _ => None,
            };
            if tags.is_some() {
                let (generation, configuration) = instance.current();
                let models = instance.meaning(&configuration)?;
                if known.as_ref().is_none_or(|known| (known.0, &known.1) != (generation, &models)) {
                    let count = (dispatch.groups(), workers);
                    let before = known.as_ref().map(|known| &known.2);
                    let grouping = Grouping::now(&configuration, &models, count, before)?;
                    *known = Some((generation, models, grouping));
                }
            }
            let mut queued: HashMap<u16, u64> = HashMap::new();
            for (_, groups) in instance.fleet().call_all(|router| router.queued()) {
                groups.into_iter().for_each(|(group, n)| *queued.entry(group).or_default() += n);
            }
            let tagged = |group| Some(known.as_ref()?.2.tagged(group, tags?, workers));
            let group = |group: usize| {
                let (worker, packets) = dispatch.group(group)?;
                let (cpu, rate) = (instance.fleet().cpu(worker), rate(packets));
                let queued = queued.get(&(group as u16 + 1)).copied().unwrap_or(0);
                Some(Group { group, worker, cpu, packets, rate, queued, tagged: tagged(group) })
            };
            report.groups = (0..dispatch.groups()).filter_map(group).collect();
        }
        *counted = Some((now, counts));
        Ok(report)
    }
}

/// Spreads groups over the workers by the packets with their tags that come in a second.
///
/// # Errors
/// A message; groups that were taken elsewhere before stay there.
pub(super) fn balance(instance: &Instance) -> Result<Balanced, Error> {
    let (dispatch, workers) = (instance.dispatch(), instance.workers().running);
    if dispatch.groups() == 0 {
        return Err(Error::NoGroups { mode: dispatch.mode() });
    }
    let now = || (0..dispatch.groups()).filter_map(|group| dispatch.group(group));
    let (before, time) = (now().collect::<Vec<_>>(), instance.time());
    time.wait_until(time.now() + COUNTING.as_nanos() as u64);
    let came = now().zip(before).map(|((worker, after), (_, before))| (worker, after - before));
    let mut groups: Vec<(usize, u64)> = came.collect();
    let loads = |groups: &[(usize, u64)]| {
        let of =
            |worker| groups.iter().filter(|group| group.0 == worker).map(|group| group.1).sum();
        (0..workers).map(of).collect::<Vec<u64>>()
    };
    let (was, mut moved) = (loads(&groups), Vec::new());
    for (group, to) in moves(&groups, workers) {
        let waited_ms = instance.move_group(group, to)?.waited.as_secs_f64() * 1e3;
        let from = std::mem::replace(&mut groups[group].0, to);
        moved.push(GroupMoved { group, from, to, waited_ms });
    }
    Ok(Balanced { before: was, after: loads(&groups), moved })
}

/// Which groups go to which other workers, so that none has much more to do than another; `groups`
/// gives the worker of each and its packets. As few go as will do: who has least to do gets from
/// who has most what evens them out best, while that takes a twentieth off what the latter does.
fn moves(groups: &[(usize, u64)], workers: usize) -> Vec<(usize, usize)> {
    let mut at: Vec<usize> = groups.iter().map(|group| group.0).collect();
    loop {
        let mut loads = vec![0; workers];
        at.iter().zip(groups).for_each(|(&worker, group)| loads[worker] += group.1);
        let Some(most) = (0..workers).max_by_key(|&worker| loads[worker]) else { break };
        let Some(least) = (0..workers).min_by_key(|&worker| loads[worker]) else { break };
        let gap = loads[most] - loads[least];
        let relieves = |&group: &usize| {
            let packets = groups[group].1;
            at[group] == most && packets.min(gap.saturating_sub(packets)) > loads[most] / 20
        };
        let evens = |&group: &usize| gap.abs_diff(2 * groups[group].1);
        match (0..groups.len()).filter(relieves).min_by_key(evens) {
            Some(group) => at[group] = least,
            None => break,
        }
    }
    let gone = |&group: &usize| at[group] != groups[group].0;
    (0..groups.len()).filter(gone).map(|group| (group, at[group])).collect()
}

#[cfg(test)]
mod tests {
    use super::moves;

    #[test]
    fn groups_go_where_there_is_less_to_do() {
        // All at the first worker.
        assert_eq!(moves(&[(0, 50), (0, 30), (0, 20)], 2), [(0, 1)]);
        // Nobody would have less to do, or hardly.
        assert_eq!(moves(&[(0, 100), (1, 1)], 2), []);
        assert_eq!(moves(&[(0, 50), (0, 2), (1, 49)], 2), []);
        assert_eq!(moves(&[(0, 0), (1, 0)], 2), []);
        // One that none has yet.
        assert_eq!(moves(&[(0, 10), (1, 10), (0, 10), (1, 10)], 3), [(1, 2)]);
        assert_eq!(moves(&[], 2), []);
    }

    #[test]
    fn what_is_balanced_stays() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..1000 {
            let workers = random.usize(1..6);
            let group = |_| (random.usize(..workers), random.u64(..1000));
            let groups: Vec<(usize, u64)> = (0..20).map(group).collect();
            let mut after = groups.clone();
            moves(&groups, workers).into_iter().for_each(|(group, to)| after[group].0 = to);
            let most = |groups: &[(usize, u64)]| {
                let of = |w| groups.iter().filter(|g| g.0 == w).map(|g| g.1).sum::<u64>();
                (0..workers).map(of).max()
            };
            assert!(most(&after) <= most(&groups));
            assert_eq!(moves(&after, workers), []);
        }
    }
}
