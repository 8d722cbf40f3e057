//! Gates: steps that decide by cells that packets change. Lanes wait there for all that may come, pass one after the other
//! in the order of packets, and each leaves in the cells what its exit says, so that the next decides by that.
//!
//! Lanes pass before the burst is committed. What they left is taken back where a lane before them turns out to change
//! the cells first, or to wait for its turn: they are walked again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ir::model::{BinaryOp, StateKind};
use ir::program::{Atom, Program, StateId, Step, StepId, Term, TermId};

use super::Pipeline;
use super::compile::{Compiler, sets_of};
use super::gate::{
    Arm, CellAt, Check, Decision, Gate, Gates, Group, Instruction, Leaves, MOST_CELLS, Numbers, Set,
};
use super::lanes::{LANES, Packets, Reg, lanes_of};
use super::plan::Node;

/// Groups of such cells.
const MOST_GROUPS: usize = 64;

impl Gates {
    /// Finds and compiles them.
    pub(super) fn new(compiler: &mut Compiler<'_>) -> Self {
        let program = compiler.program();
        let gates: Vec<(usize, BTreeSet<CellAt>)> = (0..)
            .zip(&program.steps)
            .filter(|(_, step)| matches!(step, Step::Test { .. } | Step::Switch { .. }))
            .filter(|(_, step)| step.terms().iter().any(|&term| compiler.is_changing(term)))
            .map(|(at, step)| (at, cells_of(program, step.terms())))
            .collect();
        if gates.is_empty() {
            return Self::default();
        }
        let Some(sorted) = sorted(program, &gates) else { return Self::default() };
        let mut all = Self { avoided: vec![u64::MAX; program.steps.len()], ..Self::default() };
        for (number, cells) in sorted.iter().enumerate() {
            all.group_of.extend(cells.iter().map(|&cell| (cell, number)));
        }
        let group_of = |cells: &BTreeSet<CellAt>| cells.first().and_then(|c| all.group_of.get(c));
        let gates: BTreeMap<usize, usize> =
            gates.iter().filter_map(|(at, cells)| Some((*at, *group_of(cells)?))).collect();
        let behind = behind(program, &gates);
        for (number, cells) in sorted.into_iter().enumerate() {
            let sets = sets(program, &cells);
            let steps = || gates.iter().filter(|(_, group)| **group == number).map(|(at, _)| *at);
            let mut coder = Coder::new(compiler, &cells, steps());
            for at in steps() {
                let arm = |to: StepId| match gates.get(&(to.0 as usize)) {
                    Some(next) if *next == number => Some(None),
                    _ if behind[to.0 as usize] >> number & 1 == 1 => None,
                    _ => sets[to.0 as usize].clone().map(Some),
                };
                let gate = coder.gate(StepId(at as u32), number, arm);
                all.gates.extend(gate.map(|gate| (StepId(at as u32), gate)));
            }
            let watched = coder.watched;
            let group = coder.finish();
            all.groups.push(Group { cells, ..group });
            all.complete(number, watched);
        }
        // From the first step on, as far as packets have not passed gates.
        let groups = all.groups.len();
        all.avoided.fill(0);
        if let Some(first) = all.avoided.first_mut() {
            *first = u64::MAX >> (MOST_GROUPS - groups);
        }
        for (at, step) in program.steps.iter().enumerate() {
            let gate = all.gates.get(&StepId(at as u32));
            let avoided = all.avoided[at] & !gate.map_or(0, |gate| 1 << gate.group);
            step.next().for_each(|to| all.avoided[to.0 as usize] |= avoided);
        }
        all
    }
}

impl Gates {
    /// Adds to the gates of a group what is only known once all are compiled: the columns of those that decide on behind
    /// them, and which cells numbers are made from.
    fn complete(&mut self, group: usize, watched: u64) {
        let mut steps: Vec<StepId> =
            self.gates.iter().filter(|(_, gate)| gate.group == group).map(|(at, _)| *at).collect();
        // Steps lead to later ones.
        steps.sort_unstable_by(|a, b| b.cmp(a));
        for at in steps {
            let Some(mut gate) = self.gates.remove(&at) else { continue };
            let mut needs: BTreeSet<Reg> = gate.needs.iter().copied().collect();
            for Arm { to, leaves } in &mut gate.arms {
                match leaves {
                    Leaves::Undecided => {
                        needs.extend(self.gates.get(to).iter().flat_map(|g| &g.needs))
                    }
                    Leaves::Cells { sets, .. } => {
                        sets.iter_mut()
                            .for_each(|set| set.is_watched = watched >> set.cell & 1 == 1);
                    }
                }
            }
            gate.needs = needs.into_iter().collect();
            self.gates.insert(at, gate);
        }
    }
}

/// The cells that terms are made from.
fn cells_of(program: &Program, terms: Vec<TermId>) -> BTreeSet<CellAt> {
    let (mut waiting, mut seen, mut cells) = (terms, BTreeSet::new(), BTreeSet::new());
    while let Some(term) = waiting.pop() {
        if seen.insert(term) {
            if let Term::Cell(state, index) = program.term(term) {
                cells.insert((*state, *index));
            }
            waiting.extend(program.term(term).operands());
        }
    }
    cells
}

/// By step: the groups, as bits, of which packets may come to a gate from there on.
fn behind(program: &Program, gates: &BTreeMap<usize, usize>) -> Vec<u64> {
    let mut behind = vec![0u64; program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        let own = gates.get(&at).map_or(0, |group| 1 << group);
        behind[at] = step.next().fold(own, |all, to| all | behind[to.0 as usize]);
    }
    behind
}

/// The cells that gates ask, and those that these depend on, as groups: of each, packets come to the gates before they come
/// to those of later ones. `None` if there is no such order, or there are too many.
fn sorted(program: &Program, gates: &[(usize, BTreeSet<CellAt>)]) -> Option<Vec<Vec<CellAt>>> {
    let mut groups: Vec<BTreeSet<CellAt>> = Vec::new();
    let mut join = |cells: BTreeSet<CellAt>, is_asked: bool| {
        let meets = |group: &mut BTreeSet<CellAt>| !group.is_disjoint(&cells);
        let met: Vec<_> = groups.extract_if(.., meets).collect();
        if is_asked || !met.is_empty() {
            groups.push(met.into_iter().flatten().chain(cells).collect());
        }
    };
    gates.iter().for_each(|(_, cells)| join(cells.clone(), true));
    let terms = (0..program.terms.len() as u32).map(TermId).collect();
    let mut of_state: BTreeMap<StateId, BTreeSet<CellAt>> = BTreeMap::new();
    let set = super::compile::sets(program).map(|(state, index, _)| (state, index));
    for cell in cells_of(program, terms).into_iter().chain(set) {
        of_state.entry(cell.0).or_default().insert(cell);
    }
    of_state.into_values().for_each(|cells| join(cells, false));
    // What is set is made from others; once more for each that joined.
    for _ in 0..MOST_CELLS {
        for (state, index, value) in super::compile::sets(program) {
            let mut cells = cells_of(program, vec![value]);
            cells.insert((state, index));
            if cells.len() > 1 {
                join(cells, false);
            }
        }
    }
    if groups.len() > MOST_GROUPS || groups.iter().any(|cells| cells.len() > MOST_CELLS) {
        return None;
    }
    let number = |cells: &BTreeSet<CellAt>| groups.iter().position(|g| !g.is_disjoint(cells));
    let numbered: BTreeMap<usize, usize> =
        gates.iter().filter_map(|(at, cells)| Some((*at, number(cells)?))).collect();
    let behind = behind(program, &numbered);
    let mut leads = vec![0u64; groups.len()];
    for (&at, &group) in &numbered {
        let next = program.steps[at].next();
        leads[group] |= next.fold(0, |all, to| all | behind[to.0 as usize]) & !(1 << group);
    }
    let (mut order, mut left) = (Vec::new(), u64::MAX >> (MOST_GROUPS - groups.len().max(1)));
    while order.len() < groups.len() {
        let is_first = |group: &usize| {
            let before = (0..groups.len()).filter(|other| left >> other & 1 == 1);
            left >> group & 1 == 1
                && before.fold(0, |all, other| all | leads[other]) >> group & 1 == 0
        };
        let first = (0..groups.len()).find(is_first)?;
        left &= !(1 << first);
        order.push(first);
    }
    Some(order.into_iter().map(|group| groups[group].iter().copied().collect()).collect())
}

/// What is left in some cells.
type Sets = Vec<(CellAt, TermId)>;

/// By step: what all exits that packets come to from there leave in some cells; `None` if they differ.
fn sets(program: &Program, cells: &[CellAt]) -> Vec<Option<Sets>> {
    let mut sets: Vec<Option<Sets>> = vec![None; program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        sets[at] = match step {
            Step::Exit(exit) => {
                let set = exit.all().flat_map(sets_of).map(|(s, i, value)| ((s, i), value));
                let mut set: Sets = set.filter(|(cell, _)| cells.contains(cell)).collect();
                set.sort_unstable();
                Some(set)
            }
            step => {
                let mut next = step.next().map(|to| &sets[to.0 as usize]);
                let first = next.next().cloned().flatten();
                first.filter(|first| next.all(|other| other.as_ref() == Some(first)))
            }
        };
    }
    sets
}

/// By cell: whether what packets leave there is made from the time and other such cells alone. Packets mostly leave what was there.
fn is_settling(program: &Program, cells: &[CellAt]) -> Vec<bool> {
    let sets: Vec<(usize, TermId)> = super::compile::sets(program)
        .filter_map(|(s, i, value)| Some((cells.iter().position(|c| *c == (s, i))?, value)))
        .collect();
    let mut settling = vec![true; cells.len()];
    let is_made = |term: TermId, settling: &[bool]| {
        let (mut waiting, mut seen) = (vec![term], BTreeSet::new());
        while let Some(term) = waiting.pop() {
            let is_one = match program.term(term) {
                Term::Const(_) | Term::Now => true,
                Term::Cell(state, index) => {
                    let cell = cells.iter().position(|c| *c == (*state, *index));
                    cell.is_some_and(|cell| settling[cell])
                }
                other => !other.operands().is_empty(),
            };
            if !is_one {
                return false;
            }
            waiting.extend(program.term(term).operands().into_iter().filter(|t| seen.insert(*t)));
        }
        true
    };
    for _ in 0..cells.len() {
        for &(cell, value) in &sets {
            settling[cell] &= is_made(value, &settling);
        }
    }
    settling
}

/// What a number is made from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Basis {
    Time,
    /// Cells that packets rarely change, too.
    Cells,
    Packet,
}

/// Makes code for the gates of a group.
struct Coder<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    cells: &'c [CellAt],
    numbers: Numbers,
    /// How many there are.
    count: u8,
    /// By term: the index of its number.
    lasting: HashMap<TermId, (u8, Basis)>,
    /// The same of what is computed for each packet, as far as it is computed here.
    own: HashMap<TermId, u8>,
    /// Terms of which more than the lowest 64 bits matter.
    exact: HashSet<TermId>,
    by_time: Vec<(u8, Instruction)>,
    by_cells: Vec<(u8, Instruction)>,
    /// The cells that this depends on, as bits.
    watched: u64,
    /// Columns, and whether they are made from what lookups bind.
    regs: Vec<(Reg, bool)>,
    settling: Vec<bool>,
    /// Whether what changes with cells is computed when they change, and not for each packet.
    decides: bool,
}

impl<'c, 'a> Coder<'c, 'a> {
    fn new(
        compiler: &'c mut Compiler<'a>,
        cells: &'c [CellAt],
        steps: impl Iterator<Item = usize>,
    ) -> Self {
        let program = compiler.program();
        let mut coder = Self {
            settling: is_settling(compiler.program(), cells),
            compiler,
            cells,
            numbers: [0; _],
            // The cells, and the time.
            count: cells.len() as u8 + 1,
            lasting: HashMap::new(),
            own: HashMap::new(),
            exact: HashSet::new(),
            by_time: Vec::new(),
            by_cells: Vec::new(),
            watched: 0,
            regs: Vec::new(),
            decides: true,
        };
        for step in steps {
            coder.ask(program.steps[step].terms(), true);
        }
        coder.ask(super::compile::sets(program).map(|(.., value)| value).collect(), false);
        coder
    }

    /// The group, but for the names of its cells.
    fn finish(self) -> Group {
        Group {
            numbers: self.numbers.into(),
            by_time: self.by_time.into(),
            by_cells: self.by_cells.into(),
            ..Group::default()
        }
    }

    /// Makes a gate of a step; `arm` says what is left in the cells where it leads: `None` if that is not the same for all
    /// packets, and nothing if another gate of the group decides next.
    fn gate(
        &mut self,
        at: StepId,
        group: usize,
        arm: impl Fn(StepId) -> Option<Option<Sets>>,
    ) -> Option<Gate> {
        let program = self.compiler.program();
        self.own.clear();
        self.regs.clear();
        self.decides = true;
        let mut code = Vec::new();
        let (decision, next) = match program.step(at) {
            Step::Test { atom, yes, no, .. } => {
                (Decision::Test(self.check(atom, &mut code)?), vec![*yes, *no])
            }
            Step::Switch { on, cases, otherwise, .. } => {
                let on = self.number(*on, &mut code)?;
                let mut ranges = Vec::new();
                for ((set, _), arm) in cases.iter().zip(0u8..) {
                    let within = set.intervals().iter().filter_map(|&range| within(range));
                    ranges.extend(within.map(|(low, high)| (low, high, arm)));
                }
                let next = cases.iter().map(|case| case.1).chain([*otherwise]).collect();
                (Decision::Switch(on, ranges.into()), next)
            }
            _ => return None,
        };
        u8::try_from(next.len()).ok()?;
        self.decides = false;
        let bound_before = self.regs.len();
        let known = self.own.clone();
        let mut arms = Vec::new();
        for to in next {
            let leaves = match arm(to)? {
                None => Leaves::Undecided,
                Some(left) => {
                    let (mut code, mut sets) = (Vec::new(), Vec::new());
                    for (cell, value) in left {
                        let most = most(program, cell.0);
                        let cell = self.cells.iter().position(|c| *c == cell)? as u8;
                        let mut number = self.number(value, &mut code)?;
                        if usize::from(number) < self.cells.len() {
                            // As it was before any is set.
                            let held = number;
                            number = self.next()?;
                            code.push((number, Instruction::Or(held, held)));
                        }
                        sets.push(Set { cell, number, most, is_watched: false });
                    }
                    Leaves::Cells { code: code.into(), sets: sets.into() }
                }
            };
            arms.push(Arm { to, leaves });
            self.own.clone_from(&known);
        }
        // Of flows that are looked up later, nothing is known here.
        if self.regs[bound_before..].iter().any(|(_, is_bound)| *is_bound) {
            return None;
        }
        let regs: Vec<Reg> = self.regs.iter().map(|(reg, _)| *reg).collect();
        let needs = self.compiler.lanes.needs(regs);
        Some(Gate { group, needs, code: code.into(), decision, arms: arms.into() })
    }

    /// Notes which terms matter with all their bits, if some do, or with their lowest 64.
    fn ask(&mut self, terms: Vec<TermId>, exactly: bool) {
        let mut waiting: Vec<_> = terms.into_iter().map(|term| (term, exactly)).collect();
        let mut seen = HashSet::new();
        while let Some((term, exactly)) = waiting.pop() {
            let is_new = if exactly { self.exact.insert(term) } else { seen.insert(term) };
            if !is_new {
                continue;
            }
            use BinaryOp::{Add, And, Mul, Or, Sub, Xor};
            let of = self.compiler.program().term(term);
            let is_exact = match of {
                Term::Binary(op, ..) => exactly || !matches!(op, Add | Sub | Mul | And | Or | Xor),
                Term::Slice { low, width, .. } => u32::from(*low) + u32::from(*width) > 64,
                _ => true,
            };
            waiting.extend(of.operands().into_iter().map(|term| (term, is_exact)));
        }
    }

    /// The index of a term's number, with code that computes it.
    fn number(&mut self, term: TermId, code: &mut Vec<(u8, Instruction)>) -> Option<u8> {
        let known = self.lasting.get(&term).map(|(at, _)| at).or_else(|| self.own.get(&term));
        if let Some(&at) = known {
            return Some(at);
        }
        let program = self.compiler.program();
        let is_exact = self.exact.contains(&term);
        let (instructions, operands) = match program.term(term) {
            Term::Const(number) => {
                let cut = *number as u64;
                if is_exact && u128::from(cut) != *number {
                    return None;
                }
                let at = self.constant(cut)?;
                self.lasting.insert(term, (at, Basis::Time));
                return Some(at);
            }
            Term::Now => {
                let at = self.cells.len() as u8;
                self.lasting.insert(term, (at, Basis::Time));
                return Some(at);
            }
            Term::Cell(state, index) if self.compiler.is_changing(term) => {
                let cell = self.cells.iter().position(|c| *c == (*state, *index))?;
                let basis = if self.settling[cell] { Basis::Cells } else { Basis::Packet };
                self.lasting.insert(term, (cell as u8, basis));
                return Some(cell as u8);
            }
            // The lowest 64 bits are all that numbers have.
            Term::Slice { of, low: 0, width: 64 } if self.compiler.is_changing(term) => {
                return self.number(*of, code);
            }
            other => match self.column(term) {
                Some(reg) => (vec![Instruction::Column(reg)], vec![]),
                None => match self.level(other, code) {
                    Some((level, operands)) => (vec![level], operands),
                    None => (self.made(other, is_exact, code)?, other.operands()),
                },
            },
        };
        let basis = |term: &TermId| self.lasting.get(term).map_or(Basis::Packet, |l| l.1);
        let basis = operands.iter().map(basis).max().unwrap_or(Basis::Packet);
        let last = self.next()?;
        let at = |step| last + 1 + step as u8 - instructions.len() as u8;
        let new = instructions.iter().enumerate().map(|(step, made)| (at(step), *made));
        match basis {
            Basis::Time => self.by_time.extend(new),
            Basis::Cells if self.decides => {
                let cells = self.cells.len() as u8;
                let operands = operands.iter().filter_map(|term| self.lasting.get(term));
                let cells = operands.map(|(at, _)| *at).filter(|at| *at < cells);
                self.watched |= cells.fold(0, |all, cell| all | 1 << cell);
                self.by_cells.extend(new);
            }
            _ => {
                code.extend(new);
                self.own.insert(term, last);
                return Some(last);
            }
        }
        self.lasting.insert(term, (last, basis));
        Some(last)
    }

    fn constant(&mut self, number: u64) -> Option<u8> {
        let at = self.next()?;
        self.numbers[usize::from(at)] = number;
        Some(at)
    }

    fn next(&mut self) -> Option<u8> {
        let at = self.count;
        self.count = at.checked_add(1)?;
        Some(at)
    }

    /// A column that is all of a number that no cell changes.
    fn column(&mut self, term: TermId) -> Option<Reg> {
        if self.compiler.is_changing(term) {
            return None;
        }
        let reg = self.compiler.exactly(term)?;
        self.regs.push((reg, self.compiler.is_bound(term)));
        Some(reg)
    }

    /// How a term's number is made from others: the last instruction, and one before it whose number is the one before.
    fn made(
        &mut self,
        term: &Term,
        is_exact: bool,
        code: &mut Vec<(u8, Instruction)>,
    ) -> Option<Vec<Instruction>> {
        Some(match term {
            Term::Binary(op, a, b) => {
                let (a, b) = (self.number(*a, code)?, self.number(*b, code)?);
                vec![Instruction::binary(*op, is_exact, a, b)]
            }
            Term::Slice { of, low, width } if *low < 64 => {
                let of = self.number(*of, code)?;
                let low = self.constant(u64::from(*low))?;
                let mask = self.constant(u64::MAX >> (64 - (*width).clamp(1, 64)))?;
                let at = self.next()?;
                vec![Instruction::Shr(of, low), Instruction::And(at, mask)]
            }
            Term::Concat { high, low, width } if *width < 64 => {
                let (high, low) = (self.number(*high, code)?, self.number(*low, code)?);
                let width = self.constant(u64::from(*width))?;
                let at = self.next()?;
                let shift = Instruction::binary(BinaryOp::Shl, is_exact, high, width);
                vec![shift, Instruction::Or(at, low)]
            }
            Term::Choose(atom, a, b) => {
                let check = self.check(atom, code)?;
                vec![Instruction::Choose(check, self.number(*a, code)?, self.number(*b, code)?)]
            }
            _ => return None,
        })
    }

    /// How a level that rises or falls is made by one instruction instead of two, and what from.
    fn level(
        &mut self,
        term: &Term,
        code: &mut Vec<(u8, Instruction)>,
    ) -> Option<(Instruction, Vec<TermId>)> {
        use BinaryOp::{Add, Max, Min, Sub};
        let program = self.compiler.program();
        let binary = |wanted: BinaryOp, term: TermId| match program.term(term) {
            Term::Binary(op, a, b) if *op == wanted => Some((*a, *b)),
            _ => None,
        };
        Some(match *term {
            Term::Binary(Min, sum, most) => {
                let (a, b) = binary(Add, sum)?;
                let made = [a, b, most].map(|term| self.number(term, code));
                (Instruction::AddUpTo(made[0]?, made[1]?, made[2]?), vec![a, b, most])
            }
            Term::Binary(Sub, mut greater, less) => {
                // What is subtracted may be so in parts.
                let mut parts = self.summands(less);
                while let Some((rest, part)) = binary(Sub, greater) {
                    parts.extend(self.summands(part));
                    greater = rest;
                }
                parts.sort_unstable();
                let (a, b) = binary(Max, greater)?;
                let all = |term: &TermId| self.summands(*term) == parts;
                let (of, less) = if all(&b) { (a, b) } else { Some((b, a)).filter(|_| all(&a))? };
                let made = [of, less].map(|term| self.number(term, code));
                (Instruction::SubDownToZero(made[0]?, made[1]?), vec![of, less])
            }
            _ => return None,
        })
    }

    /// The terms that one is the sum of, in order.
    fn summands(&self, term: TermId) -> Vec<TermId> {
        let (mut waiting, mut found) = (vec![term], Vec::new());
        while let Some(term) = waiting.pop() {
            match self.compiler.program().term(term) {
                Term::Binary(BinaryOp::Add, a, b) => waiting.extend([*a, *b]),
                _ => found.push(term),
            }
        }
        found.sort_unstable();
        found
    }

    fn check(&mut self, atom: &Atom, code: &mut Vec<(u8, Instruction)>) -> Option<Check> {
        Some(match atom {
            Atom::Test(term, set) => match set.intervals() {
                [range] => {
                    let (low, high) = within(*range)?;
                    let of = self.number(*term, code)?;
                    Check::Within(of, self.constant(low)?, self.constant(high)?)
                }
                _ => return None,
            },
            Atom::Compare(op, a, b) => {
                Check::Compare(*op, self.number(*a, code)?, self.number(*b, code)?)
            }
        })
    }
}

/// The greatest number that a cell holds.
fn most(program: &Program, cells: StateId) -> u64 {
    match program.state.get(usize::from(cells.0)).map(|state| &state.kind) {
        Some(StateKind::Cells { width, .. }) => u64::MAX >> (64 - (*width).clamp(1, 64)),
        _ => 0,
    }
}

/// What of a range has 64 bits.
fn within((low, high): (u128, u128)) -> Option<(u64, u64)> {
    Some((u64::try_from(low).ok()?, u64::try_from(high).unwrap_or(u64::MAX)))
}

impl Pipeline {
    /// Has lanes pass the gates of the first group that they wait at; gives those that go on alone, as numbers there do not fit.
    pub(super) fn pass_gates(&mut self, packets: &Packets<'_>, now: u64) -> Option<u32> {
        let Self { burst, nodes, lanes, cells, gates, .. } = self;
        let gate = |nodes: &[Node], step: StepId| match &nodes[step.0 as usize] {
            Node::Gate(gate) => gate.group,
            _ => usize::MAX,
        };
        let groups = burst.parked.iter().map(|&(step, _)| gate(nodes, step));
        let number = groups.min()?;
        let (mut at, mut these) = ([StepId(0); LANES], 0);
        burst.parked.retain(|&(step, mask)| {
            if gate(nodes, step) != number {
                return true;
            }
            if let Node::Gate(gate) = &nodes[step.0 as usize] {
                lanes.compute(&gate.needs, packets, &[]);
            }
            lanes_of(mask).for_each(|lane| at[lane] = step);
            these |= mask;
            false
        });
        let group = gates.get_mut(number)?;
        group.begin(|(state, index)| cells.get(state, index), now);
        let mut misfits = 0;
        // Most go where the one before went.
        let (mut last, mut together) = (StepId(0), 0);
        for lane in lanes_of(these) {
            let mut step = at[lane];
            group.hold(lane);
            // As far as gates of the group follow each other.
            while let Node::Gate(gate) = &nodes[step.0 as usize] {
                let Some((to, is_undecided)) = group.pass(gate, (lanes, lane)) else {
                    misfits |= 1 << lane;
                    break;
                };
                step = to;
                if !is_undecided {
                    break;
                }
            }
            if misfits >> lane & 1 == 1 {
                burst.go_alone(at[lane], 1 << lane);
                continue;
            }
            if step != last {
                burst.send(last, std::mem::take(&mut together));
                last = step;
            }
            together |= 1 << lane;
        }
        burst.send(last, together);
        group.passed |= these & !misfits;
        for (&number, &(state, index)) in group.numbers.iter().zip(&group.cells) {
            cells.set(state, index, number);
        }
        Some(misfits)
    }

    /// Lanes that passed gates.
    pub(super) fn passed_gates(&self) -> u32 {
        self.gates.iter().fold(0, |lanes, group| lanes | group.passed)
    }

    /// Takes back what a lane and those behind it left in cells at gates; gives those that did.
    pub(super) fn take_back(&mut self, first: usize) -> u32 {
        let Self { gates, cells, .. } = self;
        let these = u32::MAX.checked_shl(first as u32).unwrap_or(0);
        let mut taken = 0;
        for group in gates.iter_mut().filter(|group| group.passed & these != 0) {
            let first = (group.passed & these).trailing_zeros() as usize;
            for (held, &(state, index)) in group.held[first].iter().zip(&group.cells) {
                cells.set(state, index, *held);
            }
            taken |= group.passed & these;
            group.passed &= !these;
        }
        taken
    }
}
