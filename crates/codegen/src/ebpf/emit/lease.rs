//! Flows that a device has leases of.

use ir::Program;
use ir::program::{Effect, Entries, Exit, LookupId, StepId, Term, TermId};

use super::super::insn::{self, Cond};
use super::super::lease::{KEY, UNTIL, USED};
use super::{ABORT, Emitter, Label, MAP_LOOKUP, STACK, TICK};
use crate::Lack;

/// Where a word of a slot is.
fn place(word: usize) -> i16 {
    8 * word as i16
}

/// Whether all that a term says follows from the flow and the time.
fn is_of_flow(program: &Program, lookup: LookupId, term: TermId) -> bool {
    let mut waiting = vec![term];
    while let Some(term) = waiting.pop() {
        match program.term(term) {
            Term::Bound(of, _) if *of != lookup => return false,
            Term::Bound(..) | Term::Const(_) | Term::Now => {}
            Term::Input(_) | Term::Position(_) | Term::Cell(..) | Term::Sum16 { .. } => {
                return false;
            }
            of => waiting.extend(of.operands()),
        }
    }
    true
}

/// Whether a number depends on conditions: whoever reads what is computed sees only one of its outcomes.
fn is_chosen(program: &Program, term: TermId) -> bool {
    let mut waiting = vec![term];
    while let Some(term) = waiting.pop() {
        match program.term(term) {
            Term::Choose(..) | Term::Map(..) | Term::NonZero(_) => return true,
            of => waiting.extend(of.operands()),
        }
    }
    false
}

/// What flows become at an exit: whoever owns them can do that later if they only live longer.
pub(super) fn prolongs(program: &Program, effect: &Effect) -> Result<(), Lack> {
    let Effect::Update { lookup, common, expiry, guarantee } = effect else { return Ok(()) };
    let of = &program.lookups[usize::from(lookup.0)];
    let (values, is_bound) = (of.values, common.len() <= usize::from(of.common));
    let same = |(index, term): (u8, &TermId)| *program.term(*term) == Term::Bound(*lookup, index);
    let is_same = (values..).zip(common).all(same);
    let is_of_flow = |term: &TermId| is_of_flow(program, *lookup, *term);
    match is_bound && is_same && is_of_flow(expiry) && is_of_flow(guarantee) {
        true => Ok(()),
        false => Err(Lack::Changed),
    }
}

impl Emitter<'_, '_> {
    /// The maps of a table of flows, by its number.
    fn maps_of(&mut self, table: usize) -> [usize; 2] {
        if let Some(maps) = self.around.leases[table].1 {
            return maps;
        }
        let maps = self.around.leases[table].0.maps().map(|map| self.map(map));
        self.around.leases[table].1 = Some(maps);
        maps
    }

    fn table_of(&self, lookup: LookupId) -> Result<usize, Lack> {
        let mut all = self.around.leases.iter();
        all.position(|(of, _)| of.has(self.program, lookup)).ok_or(Lack::Flows)
    }

    fn slot(&mut self, lookup: LookupId) -> Result<i16, Lack> {
        if let Some(slot) = self.slots.get(&lookup) {
            return Ok(*slot);
        }
        let slot = self.keep(8)?;
        self.slots.insert(lookup, slot);
        Ok(slot)
    }

    /// Looks up in a map what a key on the stack leads to; where it leads nowhere, goes elsewhere.
    fn look_up_at(&mut self, map: usize, key: i16, otherwise: Label) {
        self.ops(insn::load_map(1, map as i32));
        self.op(insn::copy(2, STACK));
        self.op(insn::advance(2, key.into()));
        self.op(insn::call(MAP_LOOKUP));
        self.jump_number(Cond::Eq, 0, 0, u64::MAX, otherwise, 0);
    }

    /// Looks a flow up. What is found is copied before anything else is done.
    pub(super) fn look_up_flow(
        &mut self,
        lookup: LookupId,
        hit: StepId,
        miss: StepId,
    ) -> Result<(), Lack> {
        let asked = &self.program.lookups[usize::from(lookup.0)];
        debug_assert!(matches!(
            self.program.tables[usize::from(asked.table.0)].entries,
            Entries::Flows(_)
        ));
        let table = self.table_of(lookup)?;
        let [index, slots] = self.maps_of(table);
        let leases = self.around.leases[table].0.clone();
        let before = self.held;
        let clock = self.hold(8)?;
        self.op(insn::call(TICK));
        self.op(insn::store(STACK, clock, 0));
        let key = self.hold(8 * leases.key as i32)?;
        for (at, term) in asked.key.iter().enumerate() {
            self.exact(*term)?;
            if is_chosen(self.program, *term) {
                return Err(Lack::Number("a key that is chosen"));
            }
            let number = self.value(*term, 0)?;
            self.op(insn::store(STACK, key + place(at), number));
        }
        self.look_up_at(index, key, miss.0);
        let slot = self.slot(lookup)?;
        self.op(insn::load_memory(insn::WORD, 1, 0, 0));
        self.op(insn::store(STACK, slot, 1));
        self.look_up_at(slots, slot, miss.0);
        self.op(insn::load_stored(1, 0, place(UNTIL)));
        self.op(insn::load_stored(2, STACK, clock));
        self.jump(Cond::Ge, 2, 1, miss.0);
        for at in 0..leases.key {
            self.op(insn::load_stored(1, 0, place(KEY + at)));
            self.op(insn::load_stored(2, STACK, key + place(at)));
            self.jump(Cond::Ne, 1, 2, miss.0);
        }
        for bound in self.wanted_at(hit, lookup) {
            let to = self.bound(lookup, bound)?;
            self.op(insn::load_stored(1, 0, place(leases.bound(bound.into()))));
            self.op(insn::store(STACK, to, 1));
        }
        self.held = before;
        self.goto(hit.0);
        Ok(())
    }

    /// Notes that flows had a packet which prolongs them.
    pub(super) fn note_uses(&mut self, exit: &Exit) -> Result<(), Lack> {
        for effect in &exit.effects {
            let Effect::Update { lookup, .. } = effect else { continue };
            let table = self.table_of(*lookup)?;
            let [_, slots] = self.maps_of(table);
            let slot = self.slot(*lookup)?;
            self.look_up_at(slots, slot, ABORT);
            self.op(insn::store_number(insn::DOUBLE, 0, place(USED), 1));
        }
        Ok(())
    }
}
