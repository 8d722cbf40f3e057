//! Programs: what a chain becomes when it is synthesised (SNF §7.2.1.3).
//!
//! A program replaces the elements behind one input port, its *entry*, up to where packets
//! leave what models can express. It is a decision graph over the packet **as it came in**:
//! nodes only decide, and nothing is written on the path. An *exit* then does at once all that the
//! elements on that path would have done: every place is written once, checksums are updated once,
//! headers that were pushed and pulled again never were, and a packet that will be dropped is
//! dropped without having been touched.
//!
//! Conditions and written values are [`Term`]s: numbers computed from the packet as it came in,
//! from what lookups in flow tables bound, and from what cells hold. Equal terms are one term.
//!
//! Packets go through a program one after the other: what an exit writes to state, the next packet
//! finds.

mod barrier;
pub mod interp;
mod lower;
mod normal;
pub mod numbers;
mod ones_sum;
mod table;
mod text;
pub mod verify;

use std::sync::Arc;

use net::Header;

use crate::Span;
use crate::field::Field;
use crate::graph::{NodeId, Port};
use crate::hash::HashFunction;
use crate::interval::IntervalSet;
use crate::model::{BinaryOp, CompareOp, Reason, StateKind};
use crate::range_map::RangeMap;

pub use barrier::Barrier;
pub use normal::Ref;
pub use ones_sum::OnesSum;
pub use table::{Entries, MatchKind, Table, TableId};

/// Index of a [`Term`] in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// Index of a [`Lookup`] in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LookupId(pub u16);

/// Index of a [`StateOf`] in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u16);

/// Index of a [`Step`] in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

/// A place in a program where a part of it that runs elsewhere goes on: a frame that goes there
/// carries the number. Unique within a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Continuation(pub u16);

/// A number of at most 128 bits, unsigned. Arithmetic wraps at 128 bits, as that of
/// [`crate::Expr`] does. Operands stand before the term in [`Program::terms`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// A constant.
    Const(u128),
    /// A field of the packet as it came in: [`crate::Base::Data`] counts from its first data byte then.
    /// Never of [`crate::Base::Header`]: where headers lie is resolved, see [`Term::Position`]. A field
    /// beyond the packet's bytes reads as 0; programs test lengths before it matters.
    Input(Field),
    /// Bytes from the first data byte to a header that was marked before the packet came in; two's
    /// complement in 32 bits, and `0x8000_0000` if it is not marked.
    Position(Header),
    /// The `index`th number that a lookup bound: its values first, then the common cells.
    Bound(LookupId, u8),
    /// What the cell of this index of a [`StateKind::Cells`] holds when the packet comes in.
    Cell(StateId, u16),
    /// Ones' complement sum (RFC 1071) of `length` bytes of the packet as it came in, from byte
    /// `offset` of the data on, folded to 16 bits, not inverted; 0 if they lie beyond the packet.
    Sum16 {
        /// Offset in bytes.
        offset: u16,
        /// Number of bytes.
        length: TermId,
    },
    /// An operation on two numbers, as [`crate::Expr::Binary`].
    Binary(BinaryOp, TermId, TermId),
    /// `width` bits of a number, from bit `low` (the least significant is 0) on.
    Slice {
        /// The number.
        of: TermId,
        /// Its lowest bit that counts.
        low: u8,
        /// How many bits.
        width: u8,
    },
    /// `high << width | low`; `low` has at most `width` bits.
    Concat {
        /// The upper bits.
        high: TermId,
        /// The lower bits.
        low: TermId,
        /// How many lower bits.
        width: u8,
    },
    /// A ones' complement sum or its complement: a checksum that is computed, updated or verified
    /// (if the sum over what it covers is 0xffff, it is right).
    OnesSum(OnesSum),
    /// 0xffff instead of 0: a UDP checksum that is there (RFC 768).
    NonZero(TermId),
    /// One of two numbers.
    Choose(Atom, TermId, TermId),
    /// What a table maps a number to.
    Map(TermId, Arc<RangeMap>),
    /// A hash of numbers.
    Hash(HashFunction, Vec<TermId>),
    /// Nanoseconds of the worker's clock.
    Now,
}

/// A condition that is not made from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// The number is in the set.
    Test(TermId, Arc<IntervalSet>),
    /// Two numbers compare so.
    Compare(CompareOp, TermId, TermId),
}

/// A piece of declared state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateOf {
    /// Full name of the element that owns it.
    pub owner: String,
    /// The element through whose model it was met; the owner or one that shares its state.
    pub element: NodeId,
    /// Its name within the owner.
    pub name: &'static str,
    /// What it is.
    pub kind: StateKind,
}

/// A lookup that binds numbers: in a table of flows, or of prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The table.
    pub table: TableId,
    /// What is looked up. May be made from what earlier lookups bound.
    pub key: Vec<TermId>,
    /// How many numbers of the direction, or of the row, it binds.
    pub values: u8,
    /// How many common cells of the flow it binds.
    pub common: u8,
    /// The element that looks.
    pub element: NodeId,
}

/// One rule of a [`Step::Classify`]: a union of conjunctions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassifyRule {
    /// Conjunctions: for some of the keys, by index, the numbers that match. Lists that have a rule
    /// in common share them.
    pub cubes: Arc<[Vec<(u8, IntervalSet)>]>,
    /// Index of the arm that it leads to.
    pub arm: u32,
    /// Its number among the element's rules, from 0.
    pub number: u32,
    /// Where it was written.
    pub span: Option<Span>,
}

impl ClassifyRule {
    /// Whether it matches whatever comes to it.
    pub fn takes_all(&self) -> bool {
        self.cubes.iter().any(Vec::is_empty)
    }
}

/// A node of the decision graph. The steps that it leads to stand behind it in
/// [`Program::steps`], so one pass in order visits each after all that lead to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Tests a condition.
    Test {
        /// The condition.
        atom: Atom,
        /// If it holds.
        yes: StepId,
        /// If not.
        no: StepId,
        /// The element that asks.
        element: NodeId,
    },
    /// Goes where the set that a number lies in leads; the sets are disjoint.
    Switch {
        /// The number.
        on: TermId,
        /// Sets, and where they lead.
        cases: Vec<(IntervalSet, StepId)>,
        /// If it is in none.
        otherwise: StepId,
        /// The element that asks.
        element: NodeId,
    },
    /// Goes where the first rule that matches leads.
    Classify {
        /// The table that these are all the rules of; `None` where some were left out, as no
        /// packet that comes here matches them.
        table: Option<TableId>,
        /// Numbers that rules look at.
        keys: Vec<TermId>,
        /// In order of precedence.
        rules: Arc<[ClassifyRule]>,
        /// Where rules lead.
        arms: Vec<StepId>,
        /// When none matches.
        otherwise: StepId,
        /// The element that asks.
        element: NodeId,
    },
    /// Looks a flow or a prefix up and binds its numbers.
    Lookup {
        /// The lookup.
        lookup: LookupId,
        /// When there is such an entry.
        hit: StepId,
        /// When there is none.
        miss: StepId,
    },
    /// The end of the path.
    Exit(Box<Exit>),
}

impl Step {
    /// The terms that it is about, some of them more than once; not those of a lookup's key.
    pub fn terms(&self) -> Vec<TermId> {
        match self {
            Step::Test { atom, .. } => atom.operands(),
            Step::Switch { on, .. } => vec![*on],
            Step::Classify { keys, .. } => keys.clone(),
            Step::Lookup { .. } => Vec::new(),
            Step::Exit(exit) => exit.terms(),
        }
    }

    /// The steps that it may lead to.
    pub fn next(&self) -> impl Iterator<Item = StepId> + '_ {
        let (mut list, mut cases): (&[StepId], &[(IntervalSet, StepId)]) = (&[], &[]);
        let mut two = [None; 2];
        match self {
            Step::Test { yes, no, .. } => two = [Some(*yes), Some(*no)],
            Step::Switch { cases: all, otherwise, .. } => {
                (cases, two[0]) = (all, Some(*otherwise));
            }
            Step::Classify { arms, otherwise, .. } => (list, two[0]) = (arms, Some(*otherwise)),
            Step::Lookup { hit, miss, .. } => two = [Some(*hit), Some(*miss)],
            Step::Exit(_) => {}
        }
        list.iter().copied().chain(cases.iter().map(|c| c.1)).chain(two.into_iter().flatten())
    }

    /// Replaces the steps that it leads to.
    pub fn map_next(&mut self, mut to: impl FnMut(StepId) -> StepId) {
        match self {
            Step::Test { yes, no, .. } => (*yes, *no) = (to(*yes), to(*no)),
            Step::Switch { cases, otherwise, .. } => {
                cases.iter_mut().for_each(|case| case.1 = to(case.1));
                *otherwise = to(*otherwise);
            }
            Step::Classify { arms, otherwise, .. } => {
                arms.iter_mut().for_each(|arm| *arm = to(*arm));
                *otherwise = to(*otherwise);
            }
            Step::Lookup { hit, miss, .. } => (*hit, *miss) = (to(*hit), to(*miss)),
            Step::Exit(_) => {}
        }
    }
}

/// What happens besides to the packet, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Counts the packet in a [`StateKind::Counter`].
    Count {
        /// The counter.
        counter: StateId,
        /// Its length there, in bytes.
        length: TermId,
    },
    /// Counts a reason at an element without dropping.
    Note {
        /// The element.
        element: NodeId,
        /// Why.
        reason: Reason,
    },
    /// Sets the common cells, the expiry and the guarantee of the flow that a lookup found, as
    /// [`crate::Op::FlowUpdate`] does.
    Update {
        /// The lookup.
        lookup: LookupId,
        /// New common cells.
        common: Vec<TermId>,
        /// When the flow expires, in nanoseconds of the worker's clock.
        expiry: TermId,
        /// Until when it may not be evicted.
        guarantee: TermId,
    },
    /// Writes a cell of a [`StateKind::Cells`]; each at most once.
    Set {
        /// The cells.
        cells: StateId,
        /// Which of them.
        index: u16,
        /// What it holds from now on; cut to the cell's width.
        value: TermId,
    },
}

/// Whole bytes that are written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// Where: bytes from where the data started when the packet came in (negative before it), or
    /// bytes of the annotation area.
    pub offset: i32,
    /// How many bytes, at most 16.
    pub length: u8,
    /// What, big-endian.
    pub value: TermId,
}

/// What becomes of a header's mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mark {
    /// It stays where it is in the packet's memory.
    #[default]
    Keep,
    /// It is forgotten.
    Clear,
    /// It is so many bytes (two's complement) from where the data started when the packet came in.
    At(TermId),
}

/// What becomes of the packet: computed from the packet as it came in, then all written at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Writes {
    /// Where the data starts, in bytes from where it started when the packet came in: positive if
    /// bytes were pulled, negative if bytes were pushed. Bytes that appear and are not written
    /// keep what was there before, or are zero.
    pub start: i32,
    /// Length of the data that is left, if it was cut; else the data ends where it did.
    pub length: Option<TermId>,
    /// Bytes of the packet; disjoint, in order of their offsets.
    pub bytes: Vec<Write>,
    /// Bytes of the annotation area; disjoint, in order of their offsets.
    pub annotations: Vec<Write>,
    /// Bytes that are handed over with the packet ([`crate::Base::Carried`]); disjoint, in order of
    /// their offsets. Of a packet that is handed over nothing else is written.
    pub carried: Vec<Write>,
    /// The marks of the MAC, network and transport headers.
    pub marks: [Mark; 3],
    /// The packet's type ([`crate::field::meta::TYPE`]).
    pub packet_type: Option<TermId>,
    /// The packet's timestamp.
    pub timestamp: Option<TermId>,
}

/// How a packet's path through a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It comes to an input port. With `native` it is the element's native code that takes it, even
    /// if the port is the entry of a program.
    Push {
        /// The input port.
        to: Port,
        /// Whether the element's native code must take it.
        native: bool,
    },
    /// It is dropped at an element.
    Drop {
        /// The element.
        element: NodeId,
        /// Why.
        reason: Reason,
    },
    /// Another part of the program goes on: nothing was done to the packet yet, and what
    /// was decided is not decided again. Where there is no such part, the entry's native code takes the
    /// packet.
    Handoff {
        /// Where it goes on.
        to: Continuation,
    },
}

/// The end of a path through a program: a traffic class, with its operations and egress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exit {
    /// What happens besides, in order.
    pub effects: Vec<Effect>,
    /// What becomes of the packet. Of a packet that is dropped only the length matters.
    pub writes: Writes,
    /// Where it goes.
    pub end: End,
    /// Why the path ends there, if packets could have gone on element by element.
    pub barrier: Option<Barrier>,
    /// The input ports that it came through, from the entry on; none if the packet is handed
    /// back to the entry's native code as it came, or handed off.
    pub visited: Vec<Port>,
    /// What becomes of copies of the packet, in the order in which they leave; all of them before the
    /// packet itself. Their paths begin at the input of the element that copied. They have no copies.
    pub copies: Vec<Exit>,
}

impl Exit {
    /// A packet is handed off as it came in, with what is carried.
    pub fn handoff(to: Continuation, carried: Vec<Write>) -> Self {
        Self {
            effects: Vec::new(),
            writes: Writes { carried, ..Writes::default() },
            end: End::Handoff { to },
            barrier: None,
            visited: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// The ends of the packet's copies, and its own: what leaves first comes first.
    pub fn all(&self) -> impl Iterator<Item = &Exit> + Clone {
        self.copies.iter().chain([self])
    }

    /// The terms that it writes or hands to state, and those of its copies, some of them more than once.
    pub fn terms(&self) -> Vec<TermId> {
        let mut all: Vec<TermId> = self.copies.iter().flat_map(Exit::terms).collect();
        for effect in &self.effects {
            match effect {
                Effect::Set { value, .. } => all.push(*value),
                Effect::Count { length, .. } => all.push(*length),
                Effect::Note { .. } => {}
                Effect::Update { common, expiry, guarantee, .. } => {
                    all.extend(common.iter().chain([expiry, guarantee]));
                }
            }
        }
        let writes = &self.writes;
        let bytes = writes.bytes.iter().chain(&writes.annotations).chain(&writes.carried);
        all.extend(bytes.map(|write| write.value));
        all.extend(writes.marks.iter().filter_map(|mark| match mark {
            Mark::At(term) => Some(*term),
            Mark::Keep | Mark::Clear => None,
        }));
        all.extend([writes.length, writes.packet_type, writes.timestamp].into_iter().flatten());
        all
    }
}

/// What the elements behind an input port become.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Where packets come in.
    pub entry: Port,
    /// If it is a part that goes on where others handed off: packets are as they came to the entry,
    /// and it begins at this place.
    pub continuation: Option<Continuation>,
    /// Numbers; each behind its operands.
    pub terms: Vec<Term>,
    /// State that is looked at or changed.
    pub state: Vec<StateOf>,
    /// What packets are looked up in, each table once.
    pub tables: Vec<Table>,
    /// Lookups that bind numbers.
    pub lookups: Vec<Lookup>,
    /// The decision graph; the first step is where a packet starts.
    pub steps: Vec<Step>,
}

impl Program {
    /// A term.
    ///
    /// # Panics
    /// If the program has no such term.
    #[inline]
    pub fn term(&self, term: TermId) -> &Term {
        &self.terms[term.0 as usize]
    }

    /// A step.
    ///
    /// # Panics
    /// If the program has no such step.
    #[inline]
    pub fn step(&self, step: StepId) -> &Step {
        &self.steps[step.0 as usize]
    }

    /// The flows that a lookup is in; `None` if it is in a table of another sort, or there is none.
    pub fn flows(&self, lookup: LookupId) -> Option<StateId> {
        let lookup = self.lookups.get(usize::from(lookup.0))?;
        match self.tables.get(usize::from(lookup.table.0))?.entries {
            Entries::Flows(state) => Some(state),
            Entries::Prefixes(_) | Entries::Rules(_) => None,
        }
    }

    /// The state that these flows are.
    pub fn flows_of(&self, lookup: LookupId) -> Option<&StateOf> {
        self.state.get(usize::from(self.flows(lookup)?.0))
    }

    /// Whether it looks prefixes up, and has to be lowered for executors that cannot.
    pub fn has_prefixes(&self) -> bool {
        self.tables.iter().any(|table| matches!(table.entries, Entries::Prefixes(_)))
    }

    /// All exits, in the order of the steps; those of copies stand in them.
    pub fn exits(&self) -> impl Iterator<Item = (StepId, &Exit)> {
        self.steps.iter().enumerate().filter_map(|(i, s)| match s {
            Step::Exit(exit) => Some((StepId(i as u32), &**exit)),
            _ => None,
        })
    }
}

impl Term {
    /// The terms that it is made from.
    pub fn operands(&self) -> Vec<TermId> {
        match self {
            Term::Const(_)
            | Term::Input(_)
            | Term::Position(_)
            | Term::Bound(..)
            | Term::Cell(..)
            | Term::Now => Vec::new(),
            Term::Sum16 { length: t, .. }
            | Term::Slice { of: t, .. }
            | Term::NonZero(t)
            | Term::Map(t, _) => vec![*t],
            Term::Binary(_, a, b) | Term::Concat { high: a, low: b, .. } => vec![*a, *b],
            Term::Choose(atom, a, b) => {
                let mut all = atom.operands();
                all.extend([*a, *b]);
                all
            }
            Term::OnesSum(sum) => sum.operands().collect(),
            Term::Hash(_, all) => all.clone(),
        }
    }
}

impl Atom {
    /// The terms that it compares.
    pub fn operands(&self) -> Vec<TermId> {
        match self {
            Atom::Test(t, _) => vec![*t],
            Atom::Compare(_, a, b) => vec![*a, *b],
        }
    }
}
