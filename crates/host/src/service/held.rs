//! Packets that wait until the state that they depend on is stored: they have gone through the chain and do not leave yet.
//!
//! Packets of the same flow wait behind them, in their order; others do not.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use net::{Batch, Packet, Pool};
use smallvec::SmallVec;

use crate::state::{Policy, Session, Standing, State, Stored};

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    /// Of its flow, as it came.
    hash: u32,
    due: Instant,
    updates: Updates,
}

/// Updates that a packet waits for.
type Updates = SmallVec<[(Arc<Session>, u64); 1]>;

/// Whether Redis does not take an update now.
fn is_away((session, _): &(Arc<Session>, u64)) -> bool {
    session.store.standing() != Standing::Well
}

/// What was counted of packets that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Packets that wait.
    pub(crate) waiting: u64,
    /// Packets that waited, whatever became of them.
    pub(crate) waited: u64,
    /// Packets that were dropped, as their updates were not stored in time, or there was no room to wait.
    pub(crate) dropped: u64,
    /// Packets that passed though their updates were not stored.
    pub(crate) opened: u64,
}

/// Packets that wait.
#[derive(Debug)]
pub(super) struct Held {
    state: Option<State>,
    waiting: VecDeque<Waiting>,
    /// How many packets of each flow wait.
    flows: HashMap<u32, u32, RandomState>,
    /// Flows of packets that stay, of those that were looked at.
    blocked: HashSet<u32, RandomState>,
    /// Whether what the policy says of packets may have changed though nothing was stored.
    look: bool,
    now: Instant,
    pub(super) counts: Counts,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    PassUnstored,
    Drop,
    Stay,
}

impl Held {
    pub(super) fn new(state: Option<State>) -> Self {
        Self {
            state,
            waiting: VecDeque::new(),
            flows: HashMap::default(),
            blocked: HashSet::default(),
            look: false,
            now: Instant::now(),
            counts: Counts::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the first of them has waited for long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|of| of.due)
    }

    /// How many packets may come beside others that are in the chain, so that all find room to wait. They come without bounds while Redis does
    /// not answer: then the policy is what becomes of them, and those that need not wait pass.
    pub(super) fn room(&self, others: usize) -> usize {
        let Some(state) = self.state.as_ref().filter(|of| of.away == Policy::Hold) else {
            return usize::MAX;
        };
        let waiting = self.waiting.len() + others;
        match self.waiting.front() {
            Some(first) if first.updates.iter().any(is_away) => usize::MAX,
            _ => state.hold.saturating_sub(waiting),
        }
    }

    /// Packets of another batch are taken.
    pub(super) fn begin(&mut self) {
        if self.state.is_some() {
            self.now = Instant::now();
        }
    }

    /// Takes a packet that has gone through the chain: it waits, if it has to.
    pub(super) fn take<'a>(
        &mut self,
        packet: Packet,
        hash: u32,
        updates: impl Iterator<Item = (&'a Arc<Session>, u64)>,
        sent: &mut Batch,
        pool: &mut Pool,
    ) {
        let Some(state) = &self.state else { return sent.push(packet) };
        let updates: Updates = updates
            .filter(|(session, number)| session.stored(*number) != Stored::Yes)
            .map(|(session, number)| (Arc::clone(session), number))
            .collect();
        if updates.is_empty() && !self.flows.contains_key(&hash) {
            return sent.push(packet);
        }
        if self.waiting.len() < state.hold {
            self.counts.waited += 1;
            *self.flows.entry(hash).or_default() += 1;
            let due = self.now + state.wait;
            self.look |= state.away != Policy::Hold && updates.iter().any(is_away);
            self.waiting.push_back(Waiting { packet, hash, due, updates });
        } else if state.away == Policy::Open {
            self.counts.opened += 1;
            sent.push(packet);
        } else {
            self.counts.dropped += 1;
            pool.recycle(packet);
        }
    }

    /// Lets those go that need not wait any more. All are looked at if something was stored, or the first has waited for long enough.
    pub(super) fn release(&mut self, is_stored: bool, sent: &mut Batch, pool: &mut Pool) {
        let Some(policy) = self.state.as_ref().map(|state| state.away) else { return };
        self.counts.waiting = self.waiting.len() as u64;
        let now = Instant::now();
        let look = is_stored | std::mem::take(&mut self.look);
        if self.due().is_none_or(|due| !look && due > now) {
            return;
        }
        let mut blocked = std::mem::take(&mut self.blocked);
        for _ in 0..self.waiting.len() {
            let Some(one) = self.waiting.pop_front() else { break };
            let fate = match blocked.contains(&one.hash) {
                true => Fate::Stay,
                false => fate(&one, policy, now),
            };
            match fate {
                Fate::Stay => {
                    blocked.insert(one.hash);
                    self.waiting.push_back(one);
                    continue;
                }
                _ => self.forget(one.hash),
            }
            match fate {
                Fate::Stay => {}
                Fate::Pass => sent.push(one.packet),
                Fate::PassUnstored => {
                    self.counts.opened += 1;
                    sent.push(one.packet);
                }
                Fate::Drop => {
                    self.counts.dropped += 1;
                    pool.recycle(one.packet);
                }
            }
        }
        blocked.clear();
        self.blocked = blocked;
        self.counts.waiting = self.waiting.len() as u64;
    }

    fn forget(&mut self, hash: u32) {
        if let Some(count) = self.flows.get_mut(&hash) {
            *count -= 1;
            if *count == 0 {
                self.flows.remove(&hash);
            }
        }
    }

    /// Drops those that wait.
    pub(super) fn end(&mut self, pool: &mut Pool) {
        self.counts.dropped += self.waiting.len() as u64;
        self.counts.waiting = 0;
        self.waiting.drain(..).for_each(|one| pool.recycle(one.packet));
    }
}

fn fate(of: &Waiting, policy: Policy, now: Instant) -> Fate {
    let mut fate = Fate::Pass;
    for (session, number) in &of.updates {
        let is_over = match session.stored(*number) {
            Stored::Yes => continue,
            Stored::Never => true,
            Stored::NotYet => {
                of.due <= now
                    || (policy != Policy::Hold && session.store.standing() != Standing::Well)
            }
        };
        match (is_over, policy) {
            (false, _) => return Fate::Stay,
            (true, Policy::Open) => fate = Fate::PassUnstored,
            (true, _) => return Fate::Drop,
        }
    }
    fate
}
