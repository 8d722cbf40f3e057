//! State of an element that goes to another: a copy, all of it, or what belongs to a group.

use std::any::Any;

use ir::{Reason, StateValue, Store};
use net::Packet;

/// Which state of an element is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything. A chain's state is sharded by worker, so of a worker's element this is the worker's shard.
    All,
    /// That of a group of traffic classes ([`Packet::group`]).
    Group(u16),
}

/// What an element keeps of a [`Scope`], in a form that can go to another thread. What is declared can go to another
/// process, too: see [`ir::state::snapshot`]. Both elements are of one class, so they agree on what stands where.
pub struct ElementState {
    scope: Scope,
    is_copy: bool,
    /// Declared state, by element and name.
    pub declared: Store,
    /// Counts that handlers show.
    pub numbers: Vec<u64>,
    /// Packets that were held, in their order. Those that an element leaves here when it imports are dropped.
    pub packets: Vec<Packet>,
    /// Packets that an element has no room for when it imports, and why they are dropped.
    pub refused: Vec<(Packet, Reason)>,
    /// Declared state that is too large to be written down flow by flow, as the element has it.
    pub native: Option<Box<dyn Any + Send>>,
}

/// A packet that was held by an element that has no successor, or one that does not hold packets
/// any more.
pub const UNCLAIMED: Reason = Reason("unclaimed-in-change");

impl ElementState {
    /// Nothing yet of a scope, which is to move to another element.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            is_copy: false,
            declared: Store::new(),
            numbers: Vec::new(),
            packets: Vec::new(),
            refused: Vec::new(),
            native: None,
        }
    }

    /// The same, of which a copy of the declared state is to be made: the element keeps what it has.
    pub fn copy(scope: Scope) -> Self {
        Self { is_copy: true, ..Self::new(scope) }
    }

    /// Declared state alone.
    pub fn declared(declared: Store) -> Self {
        Self { declared, ..Self::copy(Scope::All) }
    }

    /// A copy of an element's declared state.
    pub fn copy_of(element: &mut (impl crate::Element + ?Sized), name: &str) -> Store {
        let mut state = Self::copy(Scope::All);
        element.export(name, &mut state);
        state.declared
    }

    /// Whether nothing but declared state is there.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.packets.is_empty() && self.native.is_none()
    }

    /// The group that is to be exported, if it is one.
    pub fn group(&self) -> Option<u16> {
        match self.scope {
            Scope::All => None,
            Scope::Group(group) => Some(group),
        }
    }

    /// Whether a copy of the declared state is to be exported, and nothing else.
    pub fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether everything is to move.
    pub fn is_all(&self) -> bool {
        self.scope == Scope::All && !self.is_copy
    }

    /// Adds declared state that belongs to no group.
    pub fn set(&mut self, owner: &str, name: &'static str, value: StateValue) {
        if self.group().is_none() {
            self.declared.set(owner, name, value);
        }
    }

    /// Packets and bytes of a counter, if there is one.
    pub fn counter(&self, owner: &str, name: &str) -> Option<(u64, u64)> {
        match self.declared.get(owner, name) {
            Some(&StateValue::Counter { packets, bytes }) => Some((packets, bytes)),
            _ => None,
        }
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
