//! A simulated core: its queues, its batch, and what is counted of it; and what moves as one.

use std::collections::VecDeque;

use scale::{Boost, CoreMapper, Role};

use crate::histogram::Histogram;

/// A packet in the rack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When it arrived at the switch.
    pub(crate) at: u64,
    /// When it is in the receive queue.
    pub(crate) ready: u64,
    pub(crate) flow: u32,
    pub(crate) group: u32,
    pub(crate) number: u32,
    pub(crate) size: u16,
    /// Whether the first functions are done, and the last so many are left.
    pub(crate) last: u8,
}

/// Whether a packet goes on to another core after the batch: where.
pub(crate) const STAYS: u32 = u32::MAX;

/// A core.
pub(crate) struct Cell {
    pub(crate) role: Role,
    pub(crate) server: u32,
    /// The receive queue of its own.
    pub(crate) ring: VecDeque<Packet>,
    /// The queue in software: what it pulled and was not lent, or what it was lent.
    pub(crate) queue: VecDeque<Packet>,
    /// What it works on, and where each packet goes afterwards.
    pub(crate) batch: Vec<(Packet, u32)>,
    /// Whether an event for it is planned.
    pub(crate) is_planned: bool,
    /// Cycles that it has spent on other things than its batch, and not slept off yet.
    pub(crate) debt: u64,
    pub(crate) epoch_end: u64,
    pub(crate) boost: Boost,
    pub(crate) mapper: Option<CoreMapper>,
    /// Which of its loans this is.
    pub(crate) turn: u32,
    /// Packets that other cores work on and pass on to it.
    pub(crate) expected: u32,
    /// The flow that it runs the last functions for.
    pub(crate) split_of: Option<u32>,
    /// Groups and flows that it owns.
    pub(crate) owned: u32,
    /// It becomes spare when it owns nothing and has nothing.
    pub(crate) retires: bool,
    /// Since when it has its role.
    pub(crate) since: u64,
    /// Counted since the last observation.
    pub(crate) seen: Counted,
}

/// What is counted of a core between observations.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) busy: u64,
    pub(crate) packets: u64,
    pub(crate) active: u64,
    pub(crate) lost: u64,
    pub(crate) batches: Histogram,
}

impl Cell {
    pub(crate) fn new(server: u32) -> Self {
        Self {
            role: Role::Spare,
            server,
            ring: VecDeque::new(),
            queue: VecDeque::new(),
            batch: Vec::new(),
            is_planned: false,
            debt: 0,
            epoch_end: 0,
            boost: Boost::default(),
            mapper: None,
            turn: 0,
            expected: 0,
            split_of: None,
            owned: 0,
            retires: false,
            since: 0,
            seen: Counted::default(),
        }
    }

    /// Whether it has no packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.queue.is_empty() && self.batch.is_empty() && self.expected == 0
    }
}

/// What moves as one: a bucket, a group of classes, or a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) core: u32,
    /// Packets of it that its core, or cores that this lent to, have.
    pub(crate) pending: u32,
    /// Where an order takes it that is in progress.
    pub(crate) ordered: Option<u32>,
    /// It waits for its old core: packets are held until that has none left.
    pub(crate) next: Option<u32>,
    pub(crate) held: VecDeque<Packet>,
    /// The classes that it has; no others are held by anything else.
    pub(crate) classes: Vec<u16>,
    /// What it becomes a part of, once it is there.
    pub(crate) into: Option<u32>,
    pub(crate) is_used: bool,
    /// Counted since the last observation.
    pub(crate) packets: u64,
    pub(crate) active: u64,
    pub(crate) busy: u64,
}
