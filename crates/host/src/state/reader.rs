//! Who reads ahead for a process: which flows its runtime will ask for.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use nf::Flow;

use super::store::Session;

/// Hashes of flows that share a place.
const SHARING: usize = 8;

/// Batches in which nothing is read ahead after it has been of no use.
const PAUSE: u32 = 1024;

/// Reads ahead for a process.
#[derive(Debug)]
pub(crate) struct Reader {
    session: Arc<Session>,
    /// Hashes of flows that its runtime has, the last first in each place. A flow that is missed is read ahead for nothing, and one that the
    /// runtime has forgotten is read when it asks.
    known: Vec<[u64; SHARING]>,
    hasher: RandomState,
    flows: Vec<Flow>,
    pause: u32,
}

impl Reader {
    pub(crate) fn new(session: &Arc<Session>) -> Self {
        // Places are not equally full: there is room for twice as many flows as the runtime has.
        let places = (2 * session.store.cache() / SHARING).next_power_of_two();
        Self {
            session: Arc::clone(session),
            known: vec![[0; SHARING]; places],
            hasher: RandomState::default(),
            flows: Vec::new(),
            pause: 0,
        }
    }

    /// Whether it reads anything.
    pub(crate) fn reads(&self) -> bool {
        self.pause == 0 && self.session.fields().is_some()
    }

    /// Reads the flows of packets that came; the number of the request, if there is one.
    pub(crate) fn read<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
        let fields = self.session.fields()?;
        self.flows.clear();
        for flow in frames.filter_map(|frame| Flow::of(frame, fields)) {
            let hash = self.hasher.hash_one(flow);
            let place = hash as usize & (self.known.len() - 1);
            let known = &mut self.known[place];
            if !known.contains(&hash) {
                known.copy_within(..SHARING - 1, 1);
                known[0] = hash;
                self.flows.push(flow);
            }
        }
        let is_pause = self.pause > 0;
        self.pause -= u32::from(is_pause);
        match self.flows.is_empty() || is_pause {
            true => None,
            false => self.session.store.read_ahead(&self.session, &self.flows),
        }
    }

    /// Whether what a request has read is there.
    pub(crate) fn has_read(&self, number: u64) -> bool {
        self.session.store.has_read(number)
    }

    /// The batch of a request is done.
    pub(crate) fn end(&mut self, number: u64) {
        if !self.session.store.forget(number) {
            self.pause = PAUSE;
        }
    }
}
