//! What an element leaves to the one that takes its place when a chain is changed while it runs.

use std::any::Any;

use ir::Reason;
use net::Packet;

/// Whose state goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it, to the element that replaces this one.
    All,
    /// That of a group of traffic classes ([`Packet::group`]), to another worker.
    Group(u16),
}

/// All that an element keeps beyond the state that its model declares, in a form that can go to
/// another thread. Both elements are of one class, so they agree on what stands where.
#[derive(Default)]
pub struct HandoverState {
    /// Counts that handlers show.
    pub numbers: Vec<u64>,
    /// Packets that were held, in their order.
    pub packets: Vec<Packet>,
    /// Declared state that is too large to be written down flow by flow, as the element has it.
    pub native: Option<Box<dyn Any + Send>>,
}

/// A packet that was held by an element that has no successor, or one that does not hold packets
/// any more.
pub const UNCLAIMED: Reason = Reason("unclaimed-in-change");

impl HandoverState {
    /// Counts alone.
    pub fn numbers(numbers: impl Into<Vec<u64>>) -> Self {
        Self { numbers: numbers.into(), ..Self::default() }
    }

    /// The counts, if there are so many.
    pub fn counts<const N: usize>(&self) -> Option<[u64; N]> {
        self.numbers.as_slice().try_into().ok()
    }

    /// The native state, if it is of this type.
    pub fn take_native<T: 'static>(&mut self) -> Option<Box<T>> {
        match self.native.take()?.downcast() {
            Ok(native) => Some(native),
            Err(other) => {
                self.native = Some(other);
                None
            }
        }
    }
}
