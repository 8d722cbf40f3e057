//! Gates, the steps that decide by cells that packets change, and how one is decided.

use std::collections::HashMap;

use ir::model::{BinaryOp, CompareOp};
use ir::program::{StateId, StepId};

use super::lanes::{LANES, Lanes, Reg};

/// A cell: its state, and the index there.
pub(super) type CellAt = (StateId, u16);

/// A step that decides by cells.
pub(super) struct Gate {
    /// The group of its cells. Lanes pass those of lower numbers first.
    pub(super) group: usize,
    /// The columns that it is computed from.
    pub(super) needs: Box<[Reg]>,
    /// The numbers that are the same for all lanes, and when they were computed.
    pub(super) steady: Box<[(u8, Instruction)]>,
    pub(super) time: Option<u64>,
    pub(super) numbers: Box<[u128]>,
    pub(super) code: Box<[(u8, Instruction)]>,
    pub(super) decision: Decision,
    pub(super) arms: Box<[Arm]>,
}

pub(super) enum Decision {
    /// To the first arm if the condition holds, else to the second.
    Test(Check),
    /// To the arm of the first range that the number is in, or to the last arm.
    Switch(u8, Box<[(u128, u128, u8)]>),
}

/// Where lanes go from a gate.
pub(super) struct Arm {
    pub(super) to: StepId,
    pub(super) leaves: Leaves,
}

pub(super) enum Leaves {
    /// The next gate of the group decides on.
    Undecided,
    /// What cells hold from then on.
    Cells { code: Box<[(u8, Instruction)]>, sets: Box<[(u8, u8)]> },
}

/// How a number is computed, from others by their index.
#[derive(Clone, Copy)]
pub(super) enum Instruction {
    Const(u128),
    Now,
    Column(Reg),
    Cell(u8),
    Binary(BinaryOp, u8, u8),
    Slice { of: u8, low: u8, width: u8 },
    Concat { high: u8, low: u8, width: u8 },
    Choose(Check, u8, u8),
}

#[derive(Clone, Copy)]
pub(super) enum Check {
    Range(u8, u128, u128),
    Compare(CompareOp, u8, u8),
}

impl Check {
    #[inline]
    fn holds(self, numbers: &[u128]) -> bool {
        match self {
            Check::Range(of, low, high) => (low..=high).contains(&numbers[usize::from(of)]),
            Check::Compare(op, a, b) => op.holds(numbers[usize::from(a)], numbers[usize::from(b)]),
        }
    }
}

/// What numbers are computed from.
pub(super) struct Sources<'a> {
    pub(super) lanes: &'a Lanes,
    pub(super) lane: usize,
    pub(super) now: u64,
    pub(super) cells: &'a [u64],
}

impl Sources<'_> {
    #[inline]
    pub(super) fn run(&self, code: &[(u8, Instruction)], numbers: &mut [u128]) {
        for &(to, instruction) in code {
            let get = |at: u8| numbers[usize::from(at)];
            numbers[usize::from(to)] = match instruction {
                Instruction::Const(number) => number,
                Instruction::Now => self.now.into(),
                Instruction::Column(reg) => self.lanes.column(reg)[self.lane].into(),
                Instruction::Cell(index) => self.cells[usize::from(index)].into(),
                Instruction::Binary(op, a, b) => op.apply(get(a), get(b)),
                Instruction::Slice { of, low, width } => get(of) >> low & ones(width),
                Instruction::Concat { high, low, width } => get(high) << width | get(low),
                Instruction::Choose(check, a, b) => get(if check.holds(numbers) { a } else { b }),
            };
        }
    }
}

fn ones(width: u8) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(width.min(128))).unwrap_or(0)
}

/// Cells that lanes pass gates by.
#[derive(Default)]
pub(super) struct Group {
    pub(super) cells: Vec<CellAt>,
    /// Lanes that passed, and what each of the cells held before them.
    pub(super) passed: u32,
    pub(super) held: Vec<[u64; LANES]>,
}

/// The gates of a program, and what exits leave in their cells.
#[derive(Default)]
pub(super) struct Gates {
    pub(super) groups: Vec<Group>,
    pub(super) group_of: HashMap<CellAt, usize>,
    pub(super) gates: HashMap<StepId, Gate>,
    /// By step: the groups, as bits, of which packets come there without having passed a gate.
    pub(super) avoided: Vec<u64>,
}

impl Gates {
    /// Whether what packets that end at an exit leave in a cell is left at a gate.
    pub(super) fn leave(&self, exit: StepId, cell: CellAt) -> bool {
        let avoided = self.avoided.get(exit.0 as usize).copied().unwrap_or(u64::MAX);
        self.group_of.get(&cell).is_some_and(|group| avoided >> group & 1 == 0)
    }

    /// Whether lanes pass gates by a cell.
    pub(super) fn has(&self, cell: CellAt) -> bool {
        self.group_of.contains_key(&cell)
    }

    /// The gate that a step is.
    pub(super) fn take(&mut self, at: StepId) -> Option<Gate> {
        self.gates.remove(&at)
    }
}

impl Gate {
    /// The arm that a lane takes.
    #[inline]
    pub(super) fn decide(&mut self, from: &Sources<'_>) -> usize {
        if self.time != Some(from.now) {
            self.time = Some(from.now);
            from.run(&self.steady, &mut self.numbers);
        }
        from.run(&self.code, &mut self.numbers);
        match &self.decision {
            Decision::Test(check) => usize::from(!check.holds(&self.numbers)),
            Decision::Switch(on, ranges) => {
                let on = self.numbers[usize::from(*on)];
                let range = ranges.iter().find(|(low, high, _)| (*low..=*high).contains(&on));
                range.map_or(self.arms.len() - 1, |(.., arm)| usize::from(*arm))
            }
        }
    }
}
