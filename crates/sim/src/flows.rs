//! Flows that are alive: memory is bounded by these, however long a trace is.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::trace::{Key, symmetric_hash};

/// Where packets of a flow go that another core lent, or where the last functions run for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loan {
    /// The auxiliary core.
    pub(crate) core: u32,
    /// Of which of its loans this is: the flow has returned when the core has begun another.
    pub(crate) turn: u32,
}

/// A flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    /// What it is found by; nothing of one that is forgotten.
    known: Option<Known>,
    pub(crate) hash: u32,
    /// Its prefix of the destination.
    pub(crate) prefix: u32,
    pub(crate) loan: Option<Loan>,
    /// The last functions run elsewhere: where, and how many.
    pub(crate) split: Option<(Loan, u8)>,
    /// The core that served it last.
    pub(crate) core: Option<u32>,
    /// When it was served.
    pub(crate) served: u64,
    pub(crate) seen: u64,
    /// Packets in the rack.
    pub(crate) pending: u32,
    /// Packets whose first function cores work on: where the chain is split for the flow, another core does the last ones meanwhile.
    pub(crate) working: u32,
    /// Number of the next packet that arrives, and that may leave.
    pub(crate) sent: u32,
    pub(crate) left: u32,
    /// Packets since the last observation.
    pub(crate) recent: u32,
    /// The last window in which it counted as active.
    pub(crate) window: u64,
    /// Used by whoever counts flows of a queue: the count in which it was met, and its packets there.
    pub(crate) met: (u64, u32),
}

/// What a flow is found by.
#[derive(Clone, Copy, Debug)]
enum Known {
    Key(Key),
    /// Its number in a trace that has numbered its flows.
    Number(u32),
}

/// All flows that are alive.
pub(crate) struct Flows {
    numbers: HashMap<Key, u32, FixedState>,
    /// The same by the number that a trace has given; `u32::MAX` if there is none.
    numbered: Vec<u32>,
    states: Vec<FlowState>,
    free: Vec<u32>,
}

impl Flows {
    pub(crate) fn new() -> Self {
        let numbers = HashMap::with_hasher(FixedState::with_seed(0));
        Self { numbers, numbered: Vec::new(), states: Vec::new(), free: Vec::new() }
    }

    /// The number of a flow, and whether it is new. The trace may have numbered it.
    pub(crate) fn find(&mut self, key: Key, number: Option<u32>, prefix_bits: u32) -> (u32, bool) {
        let found = match number {
            Some(number) => {
                if number as usize >= self.numbered.len() {
                    self.numbered.resize(number as usize + 1, u32::MAX);
                }
                Some(self.numbered[number as usize]).filter(|found| *found != u32::MAX)
            }
            None => self.numbers.get(&key).copied(),
        };
        if let Some(found) = found {
            return (found, false);
        }
        let state = FlowState {
            known: Some(number.map_or(Known::Key(key), Known::Number)),
            hash: symmetric_hash(&key),
            prefix: key.destination.checked_shr(32 - prefix_bits).unwrap_or(0),
            loan: None,
            split: None,
            core: None,
            served: 0,
            seen: 0,
            pending: 0,
            working: 0,
            sent: 0,
            left: 0,
            recent: 0,
            window: u64::MAX,
            met: (0, 0),
        };
        let flow = match self.free.pop() {
            Some(flow) => {
                self.states[flow as usize] = state;
                flow
            }
            None => {
                self.states.push(state);
                self.states.len() as u32 - 1
            }
        };
        match number {
            Some(number) => self.numbered[number as usize] = flow,
            None => {
                self.numbers.insert(key, flow);
            }
        }
        (flow, true)
    }

    pub(crate) fn alive(&self) -> usize {
        self.states.len() - self.free.len()
    }

    /// Numbers that were ever in use lie below this.
    pub(crate) fn end(&self) -> usize {
        self.states.len()
    }

    /// Forgets flows without packets since a time, and gives their numbers to a function.
    pub(crate) fn expire(&mut self, since: u64, mut forgotten: impl FnMut(u32)) {
        for (flow, state) in self.states.iter_mut().enumerate() {
            if state.pending > 0 || state.seen >= since {
                continue;
            }
            match state.known.take() {
                Some(Known::Key(key)) => {
                    self.numbers.remove(&key);
                }
                Some(Known::Number(number)) => self.numbered[number as usize] = u32::MAX,
                None => continue,
            }
            self.free.push(flow as u32);
            forgotten(flow as u32);
        }
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

impl std::ops::Index<u32> for Flows {
    type Output = FlowState;

    fn index(&self, number: u32) -> &FlowState {
        &self.states[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Flows {
    fn index_mut(&mut self, number: u32) -> &mut FlowState {
        &mut self.states[number as usize]
    }
}
