//! Batches that have come and wait for the turn: the state of their flows is read meanwhile.
//!
//! They have the turn in the order in which they came, so flows keep their order.

use std::collections::VecDeque;

use net::{Batch, Packet, Pool};

use crate::chain::Chain;
use crate::state::Reader;

/// Packets that wait, after which no further batch is received.
const MOST: usize = 1024;

/// A batch, and what is read for it: by which reader, and the number of the request.
#[derive(Debug, Default)]
pub(super) struct Next {
    pub(super) batch: Batch,
    reads: Vec<(usize, u64)>,
}

/// Batches that wait.
#[derive(Debug, Default)]
pub(super) struct Coming {
    readers: Vec<Reader>,
    waiting: VecDeque<Next>,
    packets: usize,
    /// Those that are done, for their memory.
    done: Vec<Next>,
}

impl Coming {
    /// From now on, batches go into this chain.
    pub(super) fn begin(&mut self, chain: &Chain) {
        self.readers = chain.sessions().map(Reader::new).collect();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Whether another batch may come: one, and more if state is read for them.
    pub(super) fn has_room(&self) -> bool {
        self.is_empty() || (self.packets < MOST && self.readers.iter().any(Reader::reads))
    }

    /// An empty batch.
    pub(super) fn batch(&mut self) -> Batch {
        let mut next = self.done.pop().unwrap_or_default();
        next.reads.clear();
        next.batch
    }

    /// A batch has come, or an empty one is given back.
    pub(super) fn push(&mut self, batch: Batch) {
        if batch.is_empty() {
            return self.done.push(Next { batch, reads: Vec::new() });
        }
        let readers = self.readers.iter_mut().enumerate();
        let reads = readers.filter_map(|(at, reader)| {
            let number = reader.read(batch.iter().map(Packet::data))?;
            Some((at, number))
        });
        let reads = reads.collect();
        self.packets += batch.len();
        self.waiting.push_back(Next { batch, reads });
    }

    /// Whether the next one need not wait.
    pub(super) fn is_ready(&self) -> bool {
        let mut reads = self.waiting.front().into_iter().flat_map(|next| &next.reads);
        reads.all(|(at, number)| self.readers.get(*at).is_none_or(|of| of.has_read(*number)))
    }

    /// The next one.
    pub(super) fn pop(&mut self) -> Option<Next> {
        let next = self.waiting.pop_front()?;
        self.packets -= next.batch.len();
        Some(next)
    }

    /// It had its turn.
    pub(super) fn end(&mut self, mut next: Next, pool: &mut Pool) {
        for (at, number) in next.reads.drain(..) {
            if let Some(reader) = self.readers.get_mut(at) {
                reader.end(number);
            }
        }
        pool.recycle_all(&mut next.batch);
        self.done.push(next);
    }
}
