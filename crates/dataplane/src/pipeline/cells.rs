//! The cells that a program reads and writes. Packets change them one after the other, so lanes are given what cells
//! hold, and write them, in the order of packets.

use std::collections::HashSet;

use elements::cells::Cells;
use ir::NodeId;
use ir::model::{BinaryOp, StateKind};
use ir::program::{Exit, Program, StateId, StepId, Term, TermId};
use smallvec::SmallVec;

use super::compile::{Compiler, sets, sets_of};
use super::lanes::{LANES, Lanes, Op, Reg, for_lanes, lanes_of};
use super::{MayChange, NONE, Pipeline, Surroundings};

/// Elements' cells, by the program's state, and the greatest number that they hold.
#[derive(Default)]
pub(super) struct CellTable {
    all: Vec<Option<(Cells, u64)>>,
    /// Those that packets change.
    changing: Vec<Cells>,
}

impl CellTable {
    pub(super) fn new(program: &Program, chain: &dyn Surroundings) -> Result<Self, String> {
        let used = |state: usize| {
            let is_it = |cells: StateId| usize::from(cells.0) == state;
            program.terms.iter().any(|term| matches!(term, Term::Cell(cells, _) if is_it(*cells)))
                || sets(program).any(|(cells, ..)| is_it(cells))
        };
        let cells = |(at, state): (usize, &ir::program::StateOf)| {
            let StateKind::Cells { width, initial } = &state.kind else { return Ok(None) };
            if !used(at) {
                return Ok(None);
            }
            let owner = chain.node(&state.owner).unwrap_or(state.element);
            let cells = chain.cells(owner, state.name);
            let cells = cells.filter(|cells| *width <= 64 && cells.len() == initial.len());
            let most = u64::MAX >> (64 - (*width).clamp(1, 64));
            let refused = || format!("'{}' of '{}' is its element's own", state.name, state.owner);
            cells.map(|cells| Some((cells, most))).ok_or_else(refused)
        };
        let all = program.state.iter().enumerate().map(cells).collect::<Result<Vec<_>, _>>()?;
        let written: HashSet<_> = sets(program).map(|(cells, ..)| usize::from(cells.0)).collect();
        let changing = all.iter().enumerate().filter(|(at, _)| written.contains(at));
        let changing = changing.filter_map(|(_, cells)| Some(cells.as_ref()?.0.clone())).collect();
        Ok(Self { all, changing })
    }

    #[inline]
    pub(super) fn get(&self, cells: StateId, index: u16) -> u64 {
        let cells = self.all.get(usize::from(cells.0)).and_then(Option::as_ref);
        cells.map_or(0, |(cells, _)| cells.get(index.into()))
    }

    #[inline]
    pub(super) fn set(&self, cells: StateId, index: u16, number: u64) {
        if let Some(Some((cells, most))) = self.all.get(usize::from(cells.0)) {
            cells.set(index.into(), number & most);
        }
    }

    /// Whether packets change any.
    pub(super) fn change(&self) -> bool {
        !self.changing.is_empty()
    }

    /// Whether an element refers to any that packets change.
    pub(super) fn is_changed_by(
        &self,
        node: NodeId,
        program: &Program,
        chain: &dyn Surroundings,
    ) -> bool {
        self.change()
            && program.state.iter().any(|state| {
                let its = chain.cells(node, state.name);
                its.is_some_and(|its| self.changing.iter().any(|cells| its.is(cells)))
            })
    }

    /// A number, cut to a cell's width.
    #[inline]
    pub(super) fn cut(&self, cells: StateId, number: u64) -> u64 {
        let cells = self.all.get(usize::from(cells.0)).and_then(Option::as_ref);
        cells.map_or(0, |(_, most)| number & most)
    }
}

/// A cell that an exit reads or writes.
pub(super) struct CellUse {
    cells: StateId,
    index: u16,
    /// The column of what it holds, if anything is made from it.
    column: Option<Reg>,
    new: Option<New>,
}

/// What a cell holds after a packet.
enum New {
    /// So much more than before.
    More(u64),
    /// What a column holds that is made from no cells.
    Column(Reg),
}

/// The cells that an exit and its copies use; `None` if what is written takes more than columns can do.
/// What is left at gates is not among them.
pub(super) fn uses(
    compiler: &mut Compiler<'_>,
    (at, exit): (StepId, &Exit),
    regs: &mut Vec<Reg>,
) -> Option<Vec<CellUse>> {
    let program = compiler.program();
    let mut uses: Vec<CellUse> = Vec::new();
    let (mut waiting, mut seen) = (compiler.terms_of(exit), HashSet::new());
    while let Some(term) = waiting.pop() {
        if !seen.insert(term) || !compiler.is_changing(term) {
            continue;
        }
        if let Term::Cell(cells, index) = *program.term(term) {
            // When the exit is known, the cell holds what packets behind left.
            if compiler.gates.has((cells, index)) {
                return None;
            }
            let column = Some(compiler.term(term)?);
            uses.push(CellUse { cells, index, column, new: None });
        }
        waiting.extend(program.term(term).operands());
    }
    for (cells, index, value) in exit.all().flat_map(sets_of) {
        if compiler.gates.has((cells, index)) {
            match compiler.gates.leave(at, (cells, index)) {
                true => continue,
                false => return None,
            }
        }
        let new = match more(program, (cells, index), value) {
            Some(more) => New::More(more),
            None if compiler.is_changing(value) => return None,
            None => {
                let column = compiler.exactly(value)?;
                regs.push(column);
                New::Column(column)
            }
        };
        match uses.iter_mut().find(|of| (of.cells, of.index) == (cells, index)) {
            Some(of) => of.new = Some(new),
            None => uses.push(CellUse { cells, index, column: None, new: Some(new) }),
        }
    }
    Some(uses)
}

/// What a term adds to a cell, if it does no more; in the cell's width.
fn more(program: &Program, (cells, index): (StateId, u16), value: TermId) -> Option<u64> {
    let is_cell = |term: &TermId| *program.term(*term) == Term::Cell(cells, index);
    let sum = match program.term(value) {
        Term::Slice { of, low: 0, .. } => of,
        _ => &value,
    };
    match program.term(*sum) {
        Term::Binary(BinaryOp::Add, a, b) if is_cell(a) => match program.term(*b) {
            Term::Const(more) => u64::try_from(*more).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Gives lanes what cells hold, and writes them, in order.
pub(super) fn pass(uses: &[CellUse], table: &CellTable, lanes: &mut Lanes, these: u32) {
    for CellUse { cells, index, column, new } in uses {
        let mut number = table.get(*cells, *index);
        let mut held = [0; LANES];
        for_lanes(these, |lane| {
            held[lane] = number as u32;
            match new {
                Some(New::More(more)) => number = table.cut(*cells, number.wrapping_add(*more)),
                Some(New::Column(of)) => number = lanes.column(*of)[lane].into(),
                None => {}
            }
        });
        if let Some(column) = column {
            lanes.set(*column, these, &held);
        }
        table.set(*cells, *index, number);
    }
}

/// Columns of cells, which packets change or not.
#[derive(Default)]
pub(super) struct CellColumns {
    /// Those that no packet changes: all lanes hold the same.
    pub(super) steady: SmallVec<[(Reg, StateId, u16); 2]>,
    /// Those that are computed from ones that packets change.
    pub(super) derived: Vec<Reg>,
}

impl CellColumns {
    pub(super) fn new(lanes: &Lanes, program: &Program) -> Self {
        let written: HashSet<_> = sets(program).map(|(cells, ..)| cells).collect();
        let mut all = Self::default();
        let mut derived = HashSet::new();
        for (reg, op) in lanes.ops() {
            match op {
                Op::Cell(cells, _) if written.contains(cells) => {
                    derived.insert(reg);
                }
                Op::Cell(cells, index) => all.steady.push((reg, *cells, *index)),
                op if op.operands().any(|of| derived.contains(&of)) => {
                    derived.insert(reg);
                    all.derived.push(reg);
                }
                _ => {}
            }
        }
        all
    }
}

impl Pipeline {
    /// Gives lanes whose plans use cells what these hold, and writes them, in order.
    pub(super) fn pass_cells(&mut self, these: u32) {
        let Self { burst, plans, cells, lanes, .. } = self;
        let uses = |plan: u32| plan != NONE && !plans[plan as usize].cells.is_empty();
        if !burst.used.iter().any(|&plan| uses(plan)) {
            return;
        }
        let mut left = lanes_of(these).peekable();
        while let Some(first) = left.next() {
            let plan = burst.plan_of[first];
            let mut run = 1 << first;
            while let Some(lane) = left.next_if(|&lane| burst.plan_of[lane] == plan) {
                run |= 1 << lane;
            }
            if uses(plan) {
                pass(&plans[plan as usize].cells, cells, lanes, run);
            }
        }
    }

    /// Lanes that use cells, or may, and those that elements take at once that do.
    pub(super) fn cell_lanes(&self) -> u32 {
        if !self.cells.change() {
            return 0;
        }
        let at_once = |may: MayChange| may.flows && may.cells;
        let uses = |plan: usize| !self.plans[plan].cells.is_empty() || at_once(self.barriers[plan]);
        let with = self.burst.used.iter().filter(|plan| uses(**plan as usize));
        with.fold(self.burst.single | self.passed_gates(), |lanes, &plan| {
            lanes | self.burst.planned[plan as usize]
        })
    }
}
