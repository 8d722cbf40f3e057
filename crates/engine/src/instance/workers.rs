//! Which worker has what: groups go from worker to worker, and workers come and go.

use std::collections::BTreeMap;
use std::time::Duration;

use dataplane::Router;
use dataplane::worker::Status;
use elements::element_state::Scope;

use super::{Instance, lock};
use crate::error::Error;

/// What moving groups of flows to other workers came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// How many groups moved.
    pub groups: usize,
    /// The longest that packets of a group waited.
    pub waited: Duration,
    /// Packets that went along.
    pub packets: usize,
    /// Packets that the elements of the former worker hold for other reasons (an address that is
    /// asked for, a delay), which leave from there, whosever they are.
    pub held_back: usize,
}

impl Moved {
    /// What both came to.
    pub fn add(&mut self, other: Self) {
        self.groups += other.groups;
        self.waited = self.waited.max(other.waited);
        self.packets += other.packets;
        self.held_back += other.held_back;
    }
}

/// How many workers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Those that get packets.
    pub running: usize,
    /// As many as there can be; the others stand by.
    pub most: usize,
}

/// How long a worker may take to receive what has come already, how long it is waited for what
/// it holds and has not sent, and how long where it is to stand by from then on.
const DRAINING: Duration = Duration::from_secs(10);
const SENDING: Duration = Duration::from_millis(100);
const ENDING: Duration = Duration::from_secs(1);
/// How often it is looked.
const LOOK: Duration = Duration::from_micros(100);

/// Gives other threads a while before what they do is looked at again.
#[expect(
    clippy::disallowed_methods,
    reason = "threads work by real time, whatever time they simulate"
)]
fn pause() {
    std::thread::park_timeout(LOOK);
}

impl Instance {
    /// Looks until something is so, at most for this time; whether it is.
    pub(crate) fn comes_to_be(&self, so_long: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let begin = self.time().now();
        while !is_so() {
            if self.elapsed(begin) > so_long {
                return false;
            }
            pause();
        }
        true
    }

    /// How many workers there are, and can be.
    pub fn workers(&self) -> Workers {
        let most = self.fleet.len();
        match self.options.dispatch.is_elastic() {
            true => Workers { running: self.options.dispatch.running(), most },
            false => Workers { running: most, most },
        }
    }

    /// Has so many workers take packets from now on: those that do stay, lower numbers first. Workers that come take
    /// groups of flows over from those that have most, and those that go leave theirs to the others, as
    /// [`Instance::move_group`] does: with all that elements keep of them, so that no packet is lost, and none
    /// overtakes another of its flow. A worker that stands by keeps its counts.
    ///
    /// It blocks until all has moved, some milliseconds for each worker.
    ///
    /// # Errors
    /// If the number cannot change, or a worker does not come to an end with what it has received. Asked again, it
    /// goes on where it ended.
    pub fn set_workers(&self, wanted: usize) -> Result<Moved, Error> {
        let _one = lock(&self.changing);
        let most = self.elastic()?;
        if !(1..=most).contains(&wanted) {
            return Err(Error::WorkerCount { wanted, most });
        }
        let dispatch = &self.options.dispatch;
        let before = self.running();
        let after = so_many(&before, wanted);
        self.wake(&after)?;
        let at: Vec<usize> = (0..dispatch.groups())
            .filter_map(|group| dispatch.group(group))
            .map(|(worker, _)| worker)
            .collect();
        let mut all = Moved::default();
        for (from, to, groups) in resettle(&at, &before, &after) {
            all.add(self.bring_groups(&groups, from, to)?);
        }
        for worker in (0..most).filter(|&worker| !after[worker]) {
            all.held_back += self.retire(worker)?;
        }
        Ok(all)
    }

    /// Has a worker that stands by take packets from now on: those of no group yet.
    ///
    /// # Errors
    /// If the number of workers cannot change.
    pub fn add_worker(&self, worker: usize) -> Result<(), Error> {
        let _one = lock(&self.changing);
        let workers = self.elastic()?;
        if worker >= workers {
            return Err(Error::NoWorker { worker, workers });
        }
        let mut running = self.running();
        running[worker] = true;
        self.wake(&running)
    }

    /// Has a worker without groups stand by; how many packets its elements hold for long, with which it goes on.
    ///
    /// # Errors
    /// If the number of workers cannot change, it has groups, it is the first, or it does not come to an end with
    /// what it has received.
    pub fn release_worker(&self, worker: usize) -> Result<usize, Error> {
        let _one = lock(&self.changing);
        let workers = self.elastic()?;
        if worker >= workers {
            return Err(Error::NoWorker { worker, workers });
        }
        let dispatch = &self.options.dispatch;
        let at = (0..dispatch.groups()).filter_map(|group| dispatch.group(group));
        let groups = at.filter(|(at, _)| *at == worker).count();
        if worker == 0 || groups > 0 {
            return Err(Error::StillNeeded { worker, groups });
        }
        let mut running = self.running();
        running[worker] = false;
        dispatch.run(&running)?;
        self.retire(worker)
    }

    /// Takes groups of traffic classes from one worker to another, as [`Instance::move_group`] does.
    ///
    /// # Errors
    /// Why it cannot be; the groups stay where they are.
    pub fn move_groups(&self, groups: &[usize], to: usize) -> Result<Moved, Error> {
        let _one = lock(&self.changing);
        let dispatch = &self.options.dispatch;
        let mut by_worker: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &group in groups {
            let (from, _) = dispatch.group(group).ok_or_else(|| self.no_group(group))?;
            by_worker.entry(from).or_default().push(group);
        }
        match self.running().get(to) {
            Some(true) => {}
            Some(false) => return Err(Error::StandsBy { worker: to }),
            None => return Err(Error::NoWorker { worker: to, workers: self.fleet.len() }),
        }
        let mut all = Moved::default();
        for (from, groups) in by_worker.into_iter().filter(|(from, _)| *from != to) {
            all.add(self.bring_groups(&groups, from, to)?);
        }
        Ok(all)
    }

    /// How many workers there can be, where their number can change.
    fn elastic(&self) -> Result<usize, Error> {
        let (mode, workers) = (self.options.dispatch.mode(), self.fleet.len());
        match self.options.dispatch.is_elastic() {
            true => Ok(workers),
            false => Err(Error::FixedWorkers { mode, workers }),
        }
    }

    /// By worker: whether it takes packets.
    fn running(&self) -> Vec<bool> {
        let dispatch = &self.options.dispatch;
        let is_elastic = dispatch.is_elastic();
        (0..self.fleet.len()).map(|worker| !is_elastic || dispatch.is_running(worker)).collect()
    }

    /// Has these workers take packets, which stood by or not, and the others get none but those of their groups.
    fn wake(&self, running: &[bool]) -> Result<(), Error> {
        let (dispatch, interfaces) = (&self.options.dispatch, &self.options.interfaces);
        let sleeps = |worker: &usize| running[*worker] && !dispatch.is_running(*worker);
        for worker in (0..running.len()).filter(sleeps) {
            interfaces.forget(worker);
            self.fleet.unpark(worker);
        }
        Ok(dispatch.run(running)?)
    }

    /// Has a worker that gets no packets any more stand by, unless its elements hold packets for long: how many.
    fn retire(&self, worker: usize) -> Result<usize, Error> {
        let (dispatch, interfaces) = (&self.options.dispatch, &self.options.interfaces);
        if self.fleet.status(worker) == Status::Parked {
            return Ok(0);
        }
        // What is of no group comes to the first worker by now.
        interfaces.bring(dispatch, &[], worker, 0)?;
        if !self.comes_to_be(DRAINING, || interfaces.is_drained(worker)) {
            return Err(Error::NotDrained { worker });
        }
        let mut held = 0;
        let has_ended = self.comes_to_be(ENDING, || {
            let holdings = self.fleet.call(worker, |router| router.holdings());
            held = holdings.iter().flat_map(|all| all.values()).map(|held| held.packets).sum();
            held == 0 && interfaces.is_sent(worker)
        });
        if has_ended {
            self.fleet.park(worker);
        }
        Ok(held)
    }

    /// Why there is no group of this number.
    pub(super) fn no_group(&self, group: usize) -> Error {
        match self.options.dispatch.groups() {
            0 => Error::NoGroups { mode: self.options.dispatch.mode() },
            groups => Error::NoGroup { group, groups },
        }
    }

    /// Takes a group of traffic classes to another worker. No packet is lost, and none of a flow
    /// overtakes another: the new worker puts the group's packets aside while the old one handles
    /// what has come to it, sends it, and hands over the group's flows and packets in queues.
    ///
    /// It blocks until the group has moved, some milliseconds.
    ///
    /// # Errors
    /// Why it cannot be; the group stays where it is.
    pub fn move_group(&self, group: usize, to: usize) -> Result<Moved, Error> {
        self.move_groups(&[group], to)
    }

    fn bring_groups(&self, groups: &[usize], from: usize, to: usize) -> Result<Moved, Error> {
        let (dispatch, interfaces) = (&self.options.dispatch, &self.options.interfaces);
        let begin = self.time().now();
        interfaces.bring(dispatch, groups, from, to)?;
        let is_dead = || self.fleet.status(from) == Status::Dead;
        let numbers: Vec<u16> = groups.iter().map(|&group| group as u16 + 1).collect();
        let mut handed_over = None;
        if self.comes_to_be(DRAINING, || interfaces.is_drained(from) || is_dead()) {
            // Between two rounds what was received is handled. What cannot be sent now, elements
            // hold back.
            self.comes_to_be(SENDING, || {
                let held = self.fleet.call(from, |router| router.holds_back()).unwrap_or(0);
                held == 0 && interfaces.is_sent(from) || is_dead()
            });
            handed_over = self.fleet.call(from, move |router: &mut Router| {
                let all: Vec<_> =
                    numbers.iter().map(|&number| router.export(Scope::Group(number))).collect();
                (all, router.holds_back())
            });
        }
        let Some((states, held_back)) = handed_over else {
            let back = interfaces.bring(dispatch, groups, to, from);
            interfaces.hand_out(to);
            interfaces.hand_out(from);
            back?;
            return Err(Error::NotDrained { worker: from });
        };
        let packets = states.iter().map(|state| state.packets()).sum();
        let handing_out = interfaces.clone();
        let join = move |router: &mut Router| {
            states.into_iter().for_each(|state| router.import(state));
            handing_out.hand_out(to);
        };
        self.fleet.call(to, join).ok_or(Error::WorkerDead)?;
        Ok(Moved { groups: groups.len(), waited: self.elapsed(begin), packets, held_back })
    }
}

/// So many workers: of those that run the first ones, and of those that stand by the first ones.
fn so_many(before: &[bool], wanted: usize) -> Vec<bool> {
    let all = || 0..before.len();
    let order = all().filter(|&worker| before[worker]).chain(all().filter(|&w| !before[w]));
    let chosen: Vec<usize> = order.take(wanted).collect();
    all().map(|worker| chosen.contains(&worker)).collect()
}

/// Which groups go from which worker to which when workers come and go; `at` gives the worker of each
/// group. Those of workers that go come to who has fewest; workers that come take from who has most, until
/// they have their part.
fn resettle(at: &[usize], before: &[bool], after: &[bool]) -> Vec<(usize, usize, Vec<usize>)> {
    let workers: Vec<usize> = (0..after.len()).filter(|&worker| after[worker]).collect();
    let mut now = at.to_vec();
    let count = |now: &[usize], worker: usize| now.iter().filter(|w| **w == worker).count();
    let least = |now: &[usize]| workers.iter().copied().min_by_key(|&worker| count(now, worker));
    let most = |now: &[usize]| workers.iter().copied().max_by_key(|&worker| count(now, worker));
    for group in 0..at.len() {
        if !after[now[group]]
            && let Some(worker) = least(&now)
        {
            now[group] = worker;
        }
    }
    for &worker in workers.iter().filter(|worker| !before[**worker]) {
        while count(&now, worker) < at.len() / workers.len() {
            let most = most(&now);
            let Some(group) = now.iter().rposition(|at| Some(*at) == most) else { break };
            now[group] = worker;
        }
    }
    let mut moves: Vec<(usize, usize, Vec<usize>)> = Vec::new();
    for (group, (&from, &to)) in at.iter().zip(&now).enumerate().filter(|(_, (a, b))| a != b) {
        match moves.iter_mut().find(|(f, t, _)| (*f, *t) == (from, to)) {
            Some((.., groups)) => groups.push(group),
            None => moves.push((from, to, vec![group])),
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::{resettle, so_many};

    #[test]
    fn those_that_run_stay_lower_numbers_first() {
        let now = [true, false, true, false, true];
        assert_eq!(so_many(&now, 3), now);
        assert_eq!(so_many(&now, 2), [true, false, true, false, false]);
        assert_eq!(so_many(&now, 4), [true, true, true, false, true]);
        // Groups of the one that goes are spread over those that stay.
        let moves = resettle(&[0, 2, 4, 4], &now, &so_many(&now, 2));
        assert_eq!(moves, [(4, 0, vec![2]), (4, 2, vec![3])]);
    }

    #[test]
    fn groups_are_even_and_few_move() {
        let at = |workers: usize, groups| (0..groups).map(|g| g % workers).collect::<Vec<usize>>();
        for (running, wanted, groups) in
            [(1, 2, 16), (2, 1, 16), (2, 4, 32), (4, 2, 32), (3, 5, 255), (7, 3, 56), (3, 3, 24)]
        {
            let before = at(running, groups);
            let mut after = before.clone();
            let first = |count: usize| (0..8).map(|worker| worker < count).collect::<Vec<bool>>();
            let moves = resettle(&before, &first(running), &first(wanted));
            for (from, to, groups) in &moves {
                for &group in groups {
                    assert_eq!(std::mem::replace(&mut after[group], *to), *from);
                }
            }
            let count = |worker| after.iter().filter(|at| **at == worker).count();
            let counts: Vec<usize> = (0..wanted).map(count).collect();
            let (fewest, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(after.iter().all(|at| *at < wanted) && most - fewest <= 1, "{counts:?}");
            // Nothing goes between workers that stay.
            let stays = |worker: usize| worker < running.min(wanted);
            assert!(!moves.iter().any(|(from, to, _)| stays(*from) && stays(*to)));
        }
    }
}
