//! Gates: steps that decide by cells that packets change. Lanes wait there for all that may come, pass one after the other
//! in the order of packets, and each leaves in the cells what its exit says, so that the next decides by that.
//!
//! Lanes pass before the burst is committed. What they left is taken back where a lane before them turns out to change
//! the cells first, or to wait for its turn: they are walked again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::program::{Atom, Program, StateId, Step, StepId, Term, TermId};

use super::Pipeline;
use super::compile::{Compiler, sets_of};
use super::gate::{Arm, CellAt, Check, Decision, Gate, Gates, Group, Instruction, Leaves, Sources};
use super::lanes::{LANES, Packets, Reg, lanes_of};
use super::plan::Node;

/// Cells that depend on each other, at the most.
const MOST_CELLS: usize = 16;
/// Groups of such cells.
const MOST_GROUPS: usize = 64;
/// Numbers that are computed at a gate.
const MOST_NUMBERS: usize = 100;

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
        for (number, cells) in sorted.into_iter().enumerate() {
            all.group_of.extend(cells.iter().map(|&cell| (cell, number)));
            let held = vec![[0; LANES]; cells.len()];
            all.groups.push(Group { cells, passed: 0, held });
        }
        let group_of = |cells: &BTreeSet<CellAt>| cells.first().and_then(|c| all.group_of.get(c));
        let gates: BTreeMap<usize, usize> =
            gates.iter().filter_map(|(at, cells)| Some((*at, *group_of(cells)?))).collect();
        let behind = behind(program, &gates);
        for number in 0..all.groups.len() {
            let sets = sets(program, &all.groups[number].cells);
            for (&at, _) in gates.iter().filter(|(_, group)| **group == number) {
                let arm = |to: StepId| match gates.get(&(to.0 as usize)) {
                    Some(next) if *next == number => Some(None),
                    _ if behind[to.0 as usize] >> number & 1 == 1 => None,
                    _ => sets[to.0 as usize].clone().map(Some),
                };
                let gate = compile(compiler, StepId(at as u32), (number, &all.groups[number]), arm);
                all.gates.extend(gate.map(|gate| (StepId(at as u32), gate)));
            }
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

/// Makes a gate of a step; `arm` says what is left in the cells where it leads: `None` if that is not the same for all
/// packets, and nothing if another gate of the group decides next.
fn compile(
    compiler: &mut Compiler<'_>,
    at: StepId,
    (number, group): (usize, &Group),
    arm: impl Fn(StepId) -> Option<Option<Sets>>,
) -> Option<Gate> {
    let program = compiler.program();
    let cells = &group.cells;
    let (at_term, steady, regs) = (HashMap::new(), Vec::new(), Vec::new());
    let mut coder = Coder { compiler, cells, at: at_term, steady, count: 0, regs };
    let mut code = Vec::new();
    let (decision, next) = match program.step(at) {
        Step::Test { atom, yes, no, .. } => {
            (Decision::Test(coder.check(atom, &mut code)?), vec![*yes, *no])
        }
        Step::Switch { on, cases, otherwise, .. } => {
            let on = coder.number(*on, &mut code)?;
            let mut ranges = Vec::new();
            for ((set, _), arm) in cases.iter().zip(0u8..) {
                ranges.extend(set.intervals().iter().map(|&(low, high)| (low, high, arm)));
            }
            let next = cases.iter().map(|case| case.1).chain([*otherwise]).collect();
            (Decision::Switch(on, ranges.into()), next)
        }
        _ => return None,
    };
    u8::try_from(next.len()).ok()?;
    let bound_before = coder.regs.len();
    let known = coder.at.clone();
    let mut arms = Vec::new();
    for to in next {
        let leaves = match arm(to)? {
            None => Leaves::Undecided,
            Some(left) => {
                let (mut code, mut sets) = (Vec::new(), Vec::new());
                for (cell, value) in left {
                    let cell = cells.iter().position(|c| *c == cell)? as u8;
                    sets.push((cell, coder.number(value, &mut code)?));
                }
                Leaves::Cells { code: code.into(), sets: sets.into() }
            }
        };
        arms.push(Arm { to, leaves });
        coder.at.clone_from(&known);
    }
    // Of flows that are looked up later, nothing is known here.
    if coder.regs[bound_before..].iter().any(|(_, is_bound)| *is_bound) {
        return None;
    }
    let steady: Box<[_]> = coder.steady.into();
    let regs: Vec<Reg> = coder.regs.iter().map(|(reg, _)| *reg).collect();
    let needs = coder.compiler.lanes.needs(regs);
    let arms = arms.into();
    let numbers = vec![0; MOST_NUMBERS].into();
    let code = code.into();
    Some(Gate { group: number, needs, steady, time: None, numbers, code, decision, arms })
}

/// Makes code for terms.
struct Coder<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    cells: &'c [CellAt],
    /// By term: the index of its number, and whether it is steady.
    at: HashMap<TermId, (u8, bool)>,
    steady: Vec<(u8, Instruction)>,
    count: u8,
    /// Columns, and whether they are made from what lookups bind.
    regs: Vec<(Reg, bool)>,
}

impl Coder<'_, '_> {
    /// The index of a term's number, with code that computes it.
    fn number(&mut self, term: TermId, code: &mut Vec<(u8, Instruction)>) -> Option<u8> {
        if let Some(&(at, _)) = self.at.get(&term) {
            return Some(at);
        }
        let program = self.compiler.program();
        let (instruction, operands) = match program.term(term) {
            Term::Const(number) => (Instruction::Const(*number), vec![]),
            Term::Now => (Instruction::Now, vec![]),
            Term::Cell(state, index) if self.compiler.is_changing(term) => {
                let cell = self.cells.iter().position(|c| *c == (*state, *index))?;
                (Instruction::Cell(cell as u8), vec![])
            }
            other => match self.column(term) {
                Some(reg) => (Instruction::Column(reg), vec![]),
                None => (self.made(other, code)?, other.operands()),
            },
        };
        let steady = match instruction {
            Instruction::Cell(_) | Instruction::Column(_) => false,
            _ => operands.iter().all(|of| self.at.get(of).is_some_and(|(_, steady)| *steady)),
        };
        let at = self.count;
        if usize::from(at) >= MOST_NUMBERS {
            return None;
        }
        self.count += 1;
        if steady {
            self.steady.push((at, instruction))
        } else {
            code.push((at, instruction))
        }
        self.at.insert(term, (at, steady));
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

    fn made(&mut self, term: &Term, code: &mut Vec<(u8, Instruction)>) -> Option<Instruction> {
        Some(match term {
            Term::Binary(op, a, b) => {
                Instruction::Binary(*op, self.number(*a, code)?, self.number(*b, code)?)
            }
            Term::Slice { of, low, width } if *low < 128 => {
                Instruction::Slice { of: self.number(*of, code)?, low: *low, width: *width }
            }
            Term::Concat { high, low, width } if *width < 128 => {
                let (high, low) = (self.number(*high, code)?, self.number(*low, code)?);
                Instruction::Concat { high, low, width: *width }
            }
            Term::Choose(atom, a, b) => {
                let check = self.check(atom, code)?;
                Instruction::Choose(check, self.number(*a, code)?, self.number(*b, code)?)
            }
            _ => return None,
        })
    }

    fn check(&mut self, atom: &Atom, code: &mut Vec<(u8, Instruction)>) -> Option<Check> {
        Some(match atom {
            Atom::Test(term, set) => match set.intervals() {
                [(low, high)] => Check::Range(self.number(*term, code)?, *low, *high),
                _ => return None,
            },
            Atom::Compare(op, a, b) => {
                Check::Compare(*op, self.number(*a, code)?, self.number(*b, code)?)
            }
        })
    }
}

impl Pipeline {
    /// Has lanes pass the gates of the first group that they wait at; gives whether any did.
    pub(super) fn pass_gates(&mut self, packets: &Packets<'_>, now: u64) -> bool {
        let Self { burst, nodes, lanes, cells, gates, .. } = self;
        let gate = |nodes: &[Node], step: StepId| match &nodes[step.0 as usize] {
            Node::Gate(gate) => gate.group,
            _ => usize::MAX,
        };
        let groups = burst.parked.iter().map(|&(step, _)| gate(nodes, step));
        let Some(number) = groups.min() else { return false };
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
        let Some(group) = gates.get_mut(number) else { return false };
        let mut numbers = [0; MOST_CELLS];
        for (number, &(state, index)) in numbers.iter_mut().zip(&group.cells) {
            *number = cells.get(state, index);
        }
        for lane in lanes_of(these) {
            group.held.iter_mut().zip(&numbers).for_each(|(held, number)| held[lane] = *number);
            let mut step = at[lane];
            // As far as gates of the group follow each other.
            let to = loop {
                let Node::Gate(gate) = &mut nodes[step.0 as usize] else { break step };
                let gate: &mut Gate = gate;
                let from = Sources { lanes, lane, now, cells: &numbers };
                let taken = gate.decide(&from);
                let arm = &gate.arms[taken];
                let Leaves::Cells { code, sets } = &arm.leaves else {
                    step = arm.to;
                    if let Node::Gate(next) = &nodes[step.0 as usize] {
                        lanes.compute(&next.needs, packets, &[]);
                    }
                    continue;
                };
                from.run(code, &mut gate.numbers);
                for &(cell, number) in sets {
                    let (state, _) = group.cells[usize::from(cell)];
                    let number = gate.numbers[usize::from(number)] as u64;
                    numbers[usize::from(cell)] = cells.cut(state, number);
                }
                break arm.to;
            };
            burst.send(to, 1 << lane);
        }
        group.passed |= these;
        for (&number, &(state, index)) in numbers.iter().zip(&group.cells) {
            cells.set(state, index, number);
        }
        true
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
            for (held, &(state, index)) in group.held.iter().zip(&group.cells) {
                cells.set(state, index, held[first]);
            }
            taken |= group.passed & these;
            group.passed &= !these;
        }
        taken
    }
}
