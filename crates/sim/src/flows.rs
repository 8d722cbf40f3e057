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

/// All flows that are alive.
pub(crate) struct Flows {
    numbers: HashMap<Key, u32, FixedState>,
    states: Vec<FlowState>,
    free: Vec<u32>,
}

impl Flows {
    pub(crate) fn new() -> Self {
        let numbers = HashMap::with_hasher(FixedState::with_seed(0));
        Self { numbers, states: Vec::new(), free: Vec::new() }
    }

    /// The number of a flow, and whether it is new.
    pub(crate) fn find(&mut self, key: Key, prefix_bits: u32) -> (u32, bool) {
        if let Some(number) = self.numbers.get(&key) {
            return (*number, false);
        }
        let state = FlowState {
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
        let number = match self.free.pop() {
            Some(number) => {
                self.states[number as usize] = state;
                number
            }
            None => {
                self.states.push(state);
                self.states.len() as u32 - 1
            }
        };
        self.numbers.insert(key, number);
        (number, true)
    }

    pub(crate) fn alive(&self) -> usize {
        self.numbers.len()
    }

    /// Numbers that were ever in use lie below this.
    pub(crate) fn end(&self) -> usize {
        self.states.len()
    }

    /// Forgets flows without packets since a time, and gives their numbers to a function.
    pub(crate) fn expire(&mut self, since: u64, mut forgotten: impl FnMut(u32)) {
        let states = &self.states;
        let free = &mut self.free;
        self.numbers.retain(|_, number| {
            let state = &states[*number as usize];
            let lives = state.pending > 0 || state.seen >= since;
            if !lives {
                free.push(*number);
            }
            lives
        });
        // The order of a table is no order to rely on.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        self.free.iter().for_each(|number| forgotten(*number));
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
