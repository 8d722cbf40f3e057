//! What is to happen, in the order of time; at the same time, in the order in which it was planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A core is done with its batch, or is to look for packets.
    Core(u32),
    /// An epoch of an auxiliary core, or of one that only deals, ends.
    Epoch(u32),
    /// A policy is asked.
    Decide(u32),
    /// The order at a place of the list takes effect.
    Effect(u32),
    /// A core that was added polls.
    Started(u32),
    /// Flows that are silent are forgotten.
    Expire,
}

/// Events to come.
#[derive(Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
}

impl Events {
    pub(crate) fn plan(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.heap.push(Reverse((at, self.number, event)));
    }

    /// The next one, if it is not after some time.
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, Event)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > until {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// How many were planned.
    pub(crate) fn planned(&self) -> u64 {
        self.number
    }
}
