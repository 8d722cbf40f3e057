//! Packets that wait until the state that they depend on is stored: they have gone through the chain and do not leave yet.
//!
//! Packets of the same flow wait behind them, in their order; others do not.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use net::{Batch, Packet, Pool};

use crate::state::{Policy, Session, Standing, State, Stored};

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    packet: Packet,
    /// Of its flow, as it came.
    hash: u32,
    due: Instant,
    updates: Vec<(Arc<Session>, u64)>,
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
    flows: HashMap<u32, u32>,
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
        Self { state, waiting: VecDeque::new(), flows: HashMap::new(), counts: Counts::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the first of them has waited for long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|of| of.due)
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
        let updates: Vec<(Arc<Session>, u64)> = updates
            .filter(|(session, number)| session.stored(*number) != Stored::Yes)
            .map(|(session, number)| (Arc::clone(session), number))
            .collect();
        if updates.is_empty() && !self.flows.contains_key(&hash) {
            return sent.push(packet);
        }
        if self.waiting.len() < state.hold {
            self.counts.waited += 1;
            *self.flows.entry(hash).or_default() += 1;
            let due = Instant::now() + state.wait;
            self.waiting.push_back(Waiting { packet, hash, due, updates });
        } else if state.away == Policy::Open {
            self.counts.opened += 1;
            sent.push(packet);
        } else {
            self.counts.dropped += 1;
            pool.recycle(packet);
        }
    }

    /// Lets those go that need not wait any more.
    pub(super) fn release(&mut self, sent: &mut Batch, pool: &mut Pool) {
        let Some(policy) = self.state.as_ref().map(|state| state.away) else { return };
        if self.waiting.is_empty() {
            self.counts.waiting = 0;
            return;
        }
        let now = Instant::now();
        let mut blocked = HashSet::new();
        for one in std::mem::take(&mut self.waiting) {
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
