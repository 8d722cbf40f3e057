//! Leases of flows, as instructions go by them.
//!
//! Whether there is a lease is nothing that a packet shows: it is read as a number that may be anything, so that what
//! is proven holds whether or not there is one. A flow that a lease leads to is that of the element's table
//! only once all that says so was asked: the key is the slot's, and its time is not over.

use ir::program::{Atom, LookupId, Term, TermId};
use ir::{Base, Field, IntervalSet, Program};

use super::super::lease::{self, KEY, Leases, UNTIL, USED};
use super::super::object::{Map, MapKind};
use super::decode::Comparison;
use super::machine::Around;
use super::numbers::{Node, Num};

/// Lookups that there are chances for: as many as annotations have room for.
const LOOKUPS: usize = 24;

/// A lookup of the segment in a table of flows.
pub(super) struct Flow {
    pub(super) lookup: LookupId,
    /// The maps, by number.
    index: usize,
    slots: usize,
    key: Vec<Num>,
    leases: Leases,
    /// Bits of the numbers that it binds.
    widths: Vec<u8>,
}

/// What is known of a slot: which of its numbers are the key's, and whether its time is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Known {
    same: u16,
    lives: bool,
}

/// What decides whether a lease is there, with the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lease {
    /// Whether the key leads to a slot.
    Leads(u16),
    /// Whether there is such a slot.
    Is(u16),
    /// Whether its time is not over.
    Lives(u16),
    /// Whether a number of its key is this one.
    Holds(u16, u8, Num),
}

impl Lease {
    pub(super) fn flow(self) -> u16 {
        match self {
            Lease::Leads(flow) | Lease::Is(flow) | Lease::Lives(flow) => flow,
            Lease::Holds(flow, ..) => flow,
        }
    }

    /// A bit that no packet shows.
    pub(super) fn chance(self) -> Term {
        let place = match self {
            Lease::Leads(_) => 0,
            Lease::Is(_) => 1,
            Lease::Lives(_) => 2,
            Lease::Holds(_, at, _) => 3 + u16::from(at),
        };
        Term::Input(Field::bits(Base::Annotation, 16 * self.flow() + place, 1))
    }
}

/// A test whether a bit is 1.
pub(super) fn is_one(term: TermId) -> Atom {
    Atom::Test(term, IntervalSet::single(1).into())
}

/// The lookups of a segment in flows that the device has leases of; `num` gives what a term is.
pub(super) fn flows(
    program: &Program,
    all: &[Leases],
    maps: &[Map],
    num: impl Fn(TermId) -> Option<Num>,
) -> Result<Vec<Flow>, String> {
    let map = |name: String, kind, key: usize, value: usize| {
        let is_it = |map: &Map| {
            map.name == name
                && map.kind == kind
                && (map.key as usize, map.value as usize) == (key, value)
                && map.entries.is_empty()
        };
        maps.iter().position(is_it)
    };
    let mut found = Vec::new();
    for (at, lookup) in (0..).map(LookupId).zip(&program.lookups) {
        let Some(leases) = all.iter().find(|leases| leases.has(program, at)) else { continue };
        let key: Option<Vec<Num>> = lookup.key.iter().map(|term| num(*term)).collect();
        let index = map(leases.index_map(), MapKind::Hash, 8 * leases.key, 4);
        let slots = map(leases.slots_map(), MapKind::Array, 4, 8 * leases.words());
        let (Some(key), Some(index), Some(slots)) = (key, index, slots) else { continue };
        let bound = 0..leases.values + leases.common;
        let widths = bound.map(|index| program.bound_width(at, index as u8) as u8).collect();
        found.push(Flow { lookup: at, index, slots, key, leases: leases.clone(), widths });
    }
    match found.len() <= LOOKUPS {
        true => Ok(found),
        false => Err("too many lookups of flows".into()),
    }
}

impl Around<'_> {
    fn flow(&self, flow: u16) -> Option<&Flow> {
        self.flows.get(usize::from(flow))
    }

    /// The lookup that a key in a map is.
    pub(super) fn led_by(&self, map: usize, key: &[Num]) -> Option<u16> {
        let is_it = |flow: &Flow| flow.index == map && flow.key == key;
        self.flows.iter().position(is_it).map(|at| at as u16)
    }

    /// The lookup whose slot has this number in a map.
    pub(super) fn slot_of(&self, map: usize, number: Num) -> Option<u16> {
        let &Node::Slot(flow) = self.numbers.node(number) else { return None };
        self.flow(flow).is_some_and(|of| of.slots == map).then_some(flow)
    }

    /// Whether a map holds slots, and nothing that is known.
    pub(super) fn is_of_slots(&self, map: usize) -> bool {
        self.flows.iter().any(|flow| flow.slots == map)
    }

    /// Whether all is known of a slot that makes it a lease.
    pub(super) fn is_lease(&self, flow: u16, known: Option<&Known>) -> bool {
        let all = self.flow(flow).map(|flow| (1 << flow.leases.key) - 1);
        known.is_some_and(|known| known.lives && Some(known.same) == all)
    }

    /// A word of a slot, of which this is known.
    pub(super) fn slot_word(
        &mut self,
        flow: u16,
        known: Option<&Known>,
        offset: i32,
    ) -> Result<Num, String> {
        let is_lease = self.is_lease(flow, known);
        let of = self.flow(flow).ok_or("there is no such lookup")?;
        let word = usize::try_from(offset).ok().filter(|at| at % 8 == 0).map(|at| at / 8);
        let word = word.filter(|word| *word < of.leases.words()).ok_or("it lies beside a slot")?;
        let node = match word {
            UNTIL => Node::Until(flow),
            USED => return Err("it is read whether packets came".into()),
            word if word < of.leases.bound(0) => Node::Held(flow, (word - KEY) as u8),
            _ if !is_lease => {
                return Err("a flow is read before it is known to be the packet's".into());
            }
            word => {
                let index = word - of.leases.bound(0);
                Node::Leased { lookup: of.lookup.0, index: index as u8, width: of.widths[index] }
            }
        };
        Ok(self.numbers.intern(node))
    }

    /// What a comparison of two numbers says of a lease, and whether it is there if the comparison holds.
    pub(super) fn about_lease(&self, a: Num, how: Comparison, b: Num) -> Option<(Lease, bool)> {
        let equal = match how {
            Comparison::Eq => Some(true),
            Comparison::Ne => Some(false),
            _ => None,
        };
        Some(match (self.numbers.node(a), self.numbers.node(b)) {
            (&Node::Held(flow, at), _) => (Lease::Holds(flow, at, b), equal?),
            (_, &Node::Held(flow, at)) => (Lease::Holds(flow, at, a), equal?),
            (Node::Tick, &Node::Until(flow)) => match how {
                Comparison::Ge => (Lease::Lives(flow), false),
                Comparison::Lt => (Lease::Lives(flow), true),
                _ => return None,
            },
            (&Node::Until(flow), Node::Tick) => match how {
                Comparison::Le => (Lease::Lives(flow), false),
                Comparison::Gt => (Lease::Lives(flow), true),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What is known of a slot once that is there.
    pub(super) fn with(&self, lease: Lease, known: Option<Known>) -> Option<Known> {
        let mut known = known.unwrap_or_default();
        match lease {
            Lease::Leads(_) => return None,
            Lease::Is(_) => {}
            Lease::Lives(_) => known.lives = true,
            Lease::Holds(flow, at, num) => {
                let of = self.flow(flow).and_then(|flow| flow.key.get(usize::from(at)));
                if of == Some(&num) {
                    known.same |= 1 << at;
                }
            }
        }
        Some(known)
    }
}

/// The word of a slot that says whether packets came.
pub(super) fn is_use(offset: i32) -> bool {
    usize::try_from(offset) == Ok(8 * lease::USED)
}
