//! Leases: flows that elements own, and that a device goes by for a while.
//!
//! A table of flows is two maps. The first one has the number of a slot (4 bytes) under the key of a flow's direction (8
//! bytes for each number). The second one is an array of slots, which whoever gives leases maps into memory. A slot holds
//! words of 64 bits:
//!
//! | word | what it is |
//! |---|---|
//! | [`UNTIL`] | when the lease ends, by the kernel's monotonic clock; 0 if there is none |
//! | [`USED`] | 1 once a packet came that prolongs the flow |
//! | from [`KEY`] on | the key |
//! | behind it | what a lookup binds: the direction's numbers, then those that both directions share |
//!
//! A slot whose key is another one, or whose time is over, is none. So an entry of the first map that was replaced while a
//! program held it leads nowhere, and a lease ends by one store into memory.

use ir::Program;
use ir::program::{Atom, End, LookupId, Step, StepId, Term};

use super::object::{Map, MapKind};

/// The word that says when the lease ends, in nanoseconds.
pub const UNTIL: usize = 0;
/// The word that says whether packets came.
pub const USED: usize = 1;
/// The first word of the key.
pub const KEY: usize = 2;

/// Leases of a table at most, one for each direction of a flow.
pub const SLOTS: u32 = 1 << 16;

/// Numbers of a key at most, and those that a lookup binds.
const MOST: usize = 8;
const MOST_BOUND: usize = 16;

/// Room is taken as entries come.
const NO_PREALLOC: u32 = 1;
/// The array can be mapped into memory.
const MMAPABLE: u32 = 1 << 10;

/// A table of flows of which a device has leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    /// The element that owns it.
    pub owner: String,
    /// Its name within the element.
    pub name: &'static str,
    /// Numbers of a key.
    pub key: usize,
    /// Numbers that a lookup binds of a direction.
    pub values: usize,
    /// Numbers that it binds of both.
    pub common: usize,
    /// Its number on the device.
    pub number: usize,
}

impl Leases {
    fn of(program: &Program, lookup: LookupId) -> Option<Self> {
        let state = program.flows_of(lookup)?;
        let asked = program.lookups.get(usize::from(lookup.0))?;
        let (values, common) = (usize::from(asked.values), usize::from(asked.common));
        let is_narrow = (0..values + common).all(|at| program.bound_width(lookup, at as u8) <= 64);
        let fits = asked.key.len() <= MOST && values + common <= MOST_BOUND && is_narrow;
        fits.then(|| Self {
            owner: state.owner.clone(),
            name: state.name,
            key: asked.key.len(),
            values,
            common,
            number: 0,
        })
    }

    /// Whether a lookup is in it, with keys and numbers as it has them.
    pub fn has(&self, program: &Program, lookup: LookupId) -> bool {
        Self::of(program, lookup).is_some_and(|of| Self { number: self.number, ..of } == *self)
    }

    /// Words of a slot.
    pub fn words(&self) -> usize {
        KEY + self.key + self.values + self.common
    }

    /// The word of a number that a lookup binds.
    pub fn bound(&self, index: usize) -> usize {
        KEY + self.key + index
    }

    /// The name of the map with the slots' numbers by key.
    pub fn index_map(&self) -> String {
        format!("leases{}", self.number)
    }

    /// The name of the array of slots.
    pub fn slots_map(&self) -> String {
        format!("slots{}", self.number)
    }

    /// Both maps.
    pub(super) fn maps(&self) -> [Map; 2] {
        let map = |name, kind, key: usize, value: usize, flags| Map {
            name,
            kind,
            key: key as u32,
            value: value as u32,
            room: SLOTS,
            flags,
            entries: Vec::new(),
        };
        [
            map(self.index_map(), MapKind::Hash, 8 * self.key, 4, NO_PREALLOC),
            map(self.slots_map(), MapKind::Array, 4, 8 * self.words(), MMAPABLE),
        ]
    }
}

/// The lookup of flows from which a condition follows, with the time. As long as a lease lasts, whoever gave it promises
/// how such a condition comes out: a device has no clock that flows go by.
pub fn timed(program: &Program, atom: &Atom) -> Option<LookupId> {
    let (mut lookup, mut tells_time, mut waiting) = (None, false, atom.operands());
    while let Some(term) = waiting.pop() {
        match program.term(term) {
            Term::Now => tells_time = true,
            Term::Bound(of, _) if *lookup.get_or_insert(*of) == *of => {}
            Term::Bound(..) | Term::Input(_) | Term::Position(_) | Term::Cell(..) => return None,
            Term::Sum16 { .. } => return None,
            of => waiting.extend(of.operands()),
        }
    }
    lookup.filter(|of| tells_time && program.flows(*of).is_some())
}

/// How a condition comes out as long as there is a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The lookup that it is about.
    pub lookup: LookupId,
    /// The condition.
    pub atom: Atom,
    /// Whether it holds.
    pub holds: bool,
}

/// What is promised at a step of a device, and where it leads then: not to a core.
pub fn promise(program: &Program, step: &Step) -> Option<(Promise, StepId)> {
    let Step::Test { atom, yes, no, .. } = step else { return None };
    let lookup = timed(program, atom)?;
    let needs_core = |at: StepId| match program.step(at) {
        Step::Exit(exit) => matches!(exit.end, End::Handoff { .. }),
        _ => false,
    };
    let (holds, next) = match (needs_core(*yes), needs_core(*no)) {
        (true, false) => (false, *no),
        (false, true) => (true, *yes),
        _ => return None,
    };
    Some((Promise { lookup, atom: atom.clone(), holds }, next))
}

/// All that is promised for leases of what a lookup finds.
pub fn promises(program: &Program, lookup: LookupId) -> Vec<Promise> {
    let mut all: Vec<Promise> = Vec::new();
    for (promise, _) in program.steps.iter().filter_map(|step| promise(program, step)) {
        if promise.lookup == lookup && !all.contains(&promise) {
            all.push(promise);
        }
    }
    all
}

/// The tables that programs look flows up in, in the order in which they come.
pub fn leases<'a>(programs: impl IntoIterator<Item = &'a Program>) -> Vec<Leases> {
    let mut all: Vec<Leases> = Vec::new();
    for program in programs {
        for step in &program.steps {
            let Step::Lookup { lookup, .. } = step else { continue };
            let Some(of) = Leases::of(program, *lookup) else { continue };
            if !all.iter().any(|known| (&known.owner, known.name) == (&of.owner, of.name)) {
                all.push(Leases { number: all.len(), ..of });
            }
        }
    }
    all
}
