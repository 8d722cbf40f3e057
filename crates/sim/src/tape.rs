//! A trace that is held in memory, for runs that see the same packets: flows have numbers instead of keys.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::trace::{Arrival, Key, Trace};

/// A packet of a tape.
#[derive(Clone, Copy)]
struct Held {
    at: u64,
    flow: u32,
    size: u16,
}

/// A trace in memory.
pub(crate) struct Tape {
    keys: Vec<Key>,
    packets: Vec<Held>,
}

impl Tape {
    /// Reads a trace to its end; nothing if it has more than so many packets.
    ///
    /// # Errors
    /// What is wrong with the trace.
    pub(crate) fn record(trace: &mut dyn Trace, most: usize) -> Result<Option<Self>, String> {
        let mut numbers: HashMap<Key, u32, FixedState> =
            HashMap::with_hasher(FixedState::with_seed(0));
        let (mut keys, mut packets) = (Vec::new(), Vec::new());
        while let Some(Arrival { at, key, size, .. }) = trace.next()? {
            if packets.len() >= most {
                return Ok(None);
            }
            let flow = *numbers.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            });
            packets.push(Held { at, flow, size });
        }
        Ok(Some(Self { keys, packets }))
    }

    /// Its packets, from the first.
    pub(crate) fn play(&self) -> Player<'_> {
        Player { tape: self, at: 0 }
    }
}

/// A tape that plays.
pub(crate) struct Player<'a> {
    tape: &'a Tape,
    at: usize,
}

impl Trace for Player<'_> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        Ok(self.next_numbered()?.map(|(arrival, _)| arrival))
    }

    fn next_numbered(&mut self) -> Result<Option<(Arrival, Option<u32>)>, String> {
        let Some(Held { at, flow, size }) = self.tape.packets.get(self.at).copied() else {
            return Ok(None);
        };
        self.at += 1;
        let key = self.tape.keys[flow as usize];
        Ok(Some((Arrival { at, key, size }, Some(flow))))
    }
}
