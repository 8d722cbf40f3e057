//! Gates, the steps that decide by cells that packets change, and how one is decided.

use std::collections::HashMap;

use ir::model::{BinaryOp, CompareOp};
use ir::program::{StateId, StepId};

use super::lanes::{LANES, Lanes, Reg};

/// A cell: its state, and the index there.
pub(super) type CellAt = (StateId, u16);

/// Cells that depend on each other, at the most, and as many as most groups have.
pub(super) const MOST_CELLS: usize = 16;
const FEW_CELLS: usize = 4;

/// Numbers of a group. A group has room for as many as a byte counts.
pub(super) type Numbers = [u64; 256];

/// Code that computes numbers: where each is, and how it is made.
pub(super) type Code = Box<[(u8, Instruction)]>;

/// A step that decides by cells.
pub(super) struct Gate {
    /// The group of its cells. Lanes pass those of lower numbers first.
    pub(super) group: usize,
    /// The columns that it and those that decide on behind it are computed from.
    pub(super) needs: Box<[Reg]>,
    /// What is computed for each packet.
    pub(super) code: Code,
    pub(super) decision: Decision,
    pub(super) arms: Box<[Arm]>,
}

pub(super) enum Decision {
    /// To the first arm if the condition holds, else to the second.
    Test(Check),
    /// To the arm of the first range that the number is in, or to the last arm.
    Switch(u8, Box<[(u64, u64, u8)]>),
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
    Cells { code: Code, sets: Box<[Set]> },
}

/// A cell, and the number that it holds next, which is not that of a cell.
pub(super) struct Set {
    pub(super) cell: u8,
    pub(super) number: u8,
    /// How much of the number the cell holds.
    pub(super) most: u64,
    /// Whether numbers are computed when the cell changes.
    pub(super) is_watched: bool,
}

/// How a number of 64 bits is computed, from others by their index. Results are cut; what is done exactly fails if there is more.
#[derive(Clone, Copy)]
pub(super) enum Instruction {
    Column(Reg),
    AddExactly(u8, u8),
    SubExactly(u8, u8),
    MulExactly(u8, u8),
    ShlExactly(u8, u8),
    Add(u8, u8),
    Sub(u8, u8),
    Mul(u8, u8),
    Div(u8, u8),
    Rem(u8, u8),
    And(u8, u8),
    Or(u8, u8),
    Xor(u8, u8),
    Shl(u8, u8),
    Shr(u8, u8),
    Min(u8, u8),
    Max(u8, u8),
    /// The sum of two, or a third if that is less: a level that rises up to a limit.
    AddUpTo(u8, u8, u8),
    /// A difference, or 0: a level that falls.
    SubDownToZero(u8, u8),
    Choose(Check, u8, u8),
}

impl Instruction {
    pub(super) fn binary(op: BinaryOp, exactly: bool, a: u8, b: u8) -> Self {
        match op {
            BinaryOp::Add if exactly => Self::AddExactly(a, b),
            BinaryOp::Sub if exactly => Self::SubExactly(a, b),
            BinaryOp::Mul if exactly => Self::MulExactly(a, b),
            BinaryOp::Shl if exactly => Self::ShlExactly(a, b),
            BinaryOp::Add => Self::Add(a, b),
            BinaryOp::Sub => Self::Sub(a, b),
            BinaryOp::Mul => Self::Mul(a, b),
            BinaryOp::Div => Self::Div(a, b),
            BinaryOp::Rem => Self::Rem(a, b),
            BinaryOp::And => Self::And(a, b),
            BinaryOp::Or => Self::Or(a, b),
            BinaryOp::Xor => Self::Xor(a, b),
            BinaryOp::Shl => Self::Shl(a, b),
            BinaryOp::Shr => Self::Shr(a, b),
            BinaryOp::Min => Self::Min(a, b),
            BinaryOp::Max => Self::Max(a, b),
        }
    }
}

/// A condition on numbers.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// Whether one is not less than another, and not more than a third.
    Within(u8, u8, u8),
    Compare(CompareOp, u8, u8),
}

impl Check {
    #[inline]
    fn holds(self, numbers: &Numbers) -> bool {
        let get = |at: u8| numbers[usize::from(at)];
        match self {
            Check::Within(of, low, high) => (get(low)..=get(high)).contains(&get(of)),
            Check::Compare(op, a, b) => op.holds(get(a).into(), get(b).into()),
        }
    }
}

/// Computes numbers for a lane; gives whether all fit.
#[inline(always)]
fn run(code: &[(u8, Instruction)], numbers: &mut Numbers, (lanes, lane): (&Lanes, usize)) -> bool {
    use Instruction::*;
    let mut fits = true;
    for &(to, instruction) in code {
        let get = |at: u8| numbers[usize::from(at)];
        let shift = |at: u8| u32::try_from(get(at)).unwrap_or(u32::MAX);
        let mut cut = |(number, has_more): (u64, bool)| {
            fits &= !has_more;
            number
        };
        numbers[usize::from(to)] = match instruction {
            Column(reg) => lanes.column(reg)[lane].into(),
            AddExactly(a, b) => cut(get(a).overflowing_add(get(b))),
            SubExactly(a, b) => cut(get(a).overflowing_sub(get(b))),
            MulExactly(a, b) => cut(get(a).overflowing_mul(get(b))),
            ShlExactly(a, b) => {
                let has_more = get(a) != 0 && shift(b) > get(a).leading_zeros();
                cut((get(a).checked_shl(shift(b)).unwrap_or(0), has_more))
            }
            Add(a, b) => get(a).wrapping_add(get(b)),
            Sub(a, b) => get(a).wrapping_sub(get(b)),
            Mul(a, b) => get(a).wrapping_mul(get(b)),
            Div(a, b) => get(a).checked_div(get(b)).unwrap_or(0),
            Rem(a, b) => get(a).checked_rem(get(b)).unwrap_or(0),
            And(a, b) => get(a) & get(b),
            Or(a, b) => get(a) | get(b),
            Xor(a, b) => get(a) ^ get(b),
            Shl(a, b) => get(a).checked_shl(shift(b)).unwrap_or(0),
            Shr(a, b) => get(a).checked_shr(shift(b)).unwrap_or(0),
            Min(a, b) => get(a).min(get(b)),
            Max(a, b) => get(a).max(get(b)),
            AddUpTo(a, b, most) => get(a).saturating_add(get(b)).min(get(most)),
            SubDownToZero(a, b) => get(a).saturating_sub(get(b)),
            Choose(check, a, b) => get(if check.holds(numbers) { a } else { b }),
        };
    }
    fits
}

/// Copies the first of some numbers.
#[inline(always)]
fn copy<const N: usize>(from: &[u64], to: &mut [u64]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Cells that lanes pass gates by.
pub(super) struct Group {
    pub(super) cells: Vec<CellAt>,
    /// Lanes that passed, and what each of the cells held before them.
    pub(super) passed: u32,
    pub(super) held: Box<[[u64; MOST_CELLS]; LANES]>,
    /// What the cells hold, the time, and all that is made from them.
    pub(super) numbers: Box<Numbers>,
    /// What is computed when the time is another.
    pub(super) by_time: Code,
    /// What is computed when some cells are others, too: packets rarely change these.
    pub(super) by_cells: Code,
    /// Whether it is computed for what the cells hold now.
    pub(super) is_known: bool,
    pub(super) fits: bool,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            passed: 0,
            held: Box::new([[0; _]; _]),
            numbers: [0; _].into(),
            by_time: Code::default(),
            by_cells: Code::default(),
            is_known: false,
            fits: true,
        }
    }
}

impl Group {
    /// Takes over what cells hold, and the time.
    pub(super) fn begin(&mut self, held: impl Fn(CellAt) -> u64, now: u64) {
        let held = self.cells.iter().map(|&cell| held(cell)).chain([now]);
        for (number, held) in self.numbers.iter_mut().zip(held) {
            self.is_known &= *number == held;
            *number = held;
        }
    }

    /// Notes what the cells hold before a lane.
    #[inline]
    pub(super) fn hold(&mut self, lane: usize) {
        let (held, numbers) = (&mut self.held[lane], &*self.numbers);
        match self.cells.len() {
            0..=FEW_CELLS => copy::<FEW_CELLS>(numbers, held),
            _ => copy::<MOST_CELLS>(numbers, held),
        }
    }

    #[cold]
    fn learn(&mut self, from: (&Lanes, usize)) {
        let numbers = &mut self.numbers;
        self.fits = run(&self.by_time, numbers, from) & run(&self.by_cells, numbers, from);
        self.is_known = true;
    }

    /// Has a lane pass a gate; gives where it goes, and whether another gate of the group decides on. `None` if its numbers
    /// do not fit.
    #[inline]
    pub(super) fn pass(&mut self, gate: &Gate, from: (&Lanes, usize)) -> Option<(StepId, bool)> {
        if !self.is_known {
            self.learn(from);
        }
        let numbers = &mut *self.numbers;
        if !run(&gate.code, numbers, from) || !self.fits {
            return None;
        }
        let arm = &gate.arms[match &gate.decision {
            Decision::Test(check) => usize::from(!check.holds(numbers)),
            Decision::Switch(on, ranges) => {
                let on = numbers[usize::from(*on)];
                let range = ranges.iter().find(|(low, high, _)| (*low..=*high).contains(&on));
                range.map_or(gate.arms.len() - 1, |(.., arm)| usize::from(*arm))
            }
        }];
        let Leaves::Cells { code, sets } = &arm.leaves else { return Some((arm.to, true)) };
        if !run(code, numbers, from) {
            return None;
        }
        for set in sets {
            let (number, cell) =
                (numbers[usize::from(set.number)] & set.most, usize::from(set.cell));
            self.is_known &= !set.is_watched || numbers[cell] == number;
            numbers[cell] = number;
        }
        Some((arm.to, false))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes.
    fn number(random: &mut fastrand::Rng) -> u64 {
        random.u64(..) >> (9 * random.u32(..8))
    }

    #[test]
    fn numbers_are_those_of_the_model_or_do_not_fit() {
        use BinaryOp::*;
        let ops = [Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Min, Max];
        let mut random = fastrand::Rng::with_seed(1);
        let lanes = Lanes::default();
        let mut misfits = [0; 12];
        for round in 0..24_000 {
            let op = ops[round % ops.len()];
            let (a, mut b) = (number(&mut random), number(&mut random));
            if matches!(op, Shl | Shr) {
                b %= 70;
            }
            let wanted = op.apply(a.into(), b.into());
            for exactly in [true, false] {
                let mut numbers = [0; _];
                (numbers[0], numbers[1]) = (a, b);
                let code = [(2, Instruction::binary(op, exactly, 0, 1))];
                let fits = run(&code, &mut numbers, (&lanes, 0));
                assert_eq!(numbers[2], wanted as u64, "{op:?} of {a} and {b}");
                let is_cut = u128::from(numbers[2]) != wanted;
                assert_eq!(fits, !exactly || !is_cut, "{op:?} of {a} and {b}");
                misfits[round % ops.len()] += usize::from(!fits);
            }
        }
        // Sums, differences, products, and what is shifted to the left.
        let are_cut = misfits.map(|count| count > 0);
        assert_eq!(are_cut, std::array::from_fn(|at| [0, 1, 2, 8].contains(&at)), "{misfits:?}");
    }

    #[test]
    fn levels_rise_up_to_a_limit_and_fall_to_zero() {
        let (mut random, lanes) = (fastrand::Rng::with_seed(2), Lanes::default());
        for _ in 0..10_000 {
            let [a, b, c] = [(); 3].map(|()| number(&mut random));
            let mut numbers = [0; _];
            (numbers[0], numbers[1], numbers[2]) = (a, b, c);
            let code = [(3, Instruction::AddUpTo(0, 1, 2)), (4, Instruction::SubDownToZero(0, 1))];
            assert!(run(&code, &mut numbers, (&lanes, 0)), "they always fit");
            let level = (u128::from(a) + u128::from(b)).min(c.into());
            assert_eq!(u128::from(numbers[3]), level, "{a} + {b} up to {c}");
            assert_eq!(numbers[4], a.max(b) - b, "{a} - {b}");
        }
    }

    #[test]
    fn a_lane_whose_numbers_do_not_fit_leaves_the_cells_as_they_are() {
        // A cell to which packets add 2^63, below 2^63: the second does not fit.
        let numbers = |group: &mut Group, held: [u64; 4]| group.numbers[..4].copy_from_slice(&held);
        let set = Set { cell: 0, number: 4, most: u64::MAX, is_watched: false };
        let leaves =
            Leaves::Cells { code: [(4, Instruction::AddExactly(0, 2))].into(), sets: [set].into() };
        let to = [StepId(7), StepId(8)];
        let gate = Gate {
            group: 0,
            needs: [].into(),
            code: [].into(),
            decision: Decision::Test(Check::Within(0, 3, 2)),
            arms: [Arm { to: to[0], leaves }, Arm { to: to[1], leaves: Leaves::Undecided }].into(),
        };
        let mut group = Group::default();
        let lanes = Lanes::default();
        numbers(&mut group, [5, 0, 1 << 63, 0]);
        group.hold(3);
        assert_eq!(group.pass(&gate, (&lanes, 3)), Some((to[0], false)));
        assert_eq!((group.held[3][0], group.numbers[0]), (5, 5 + (1 << 63)));
        assert_eq!(group.pass(&gate, (&lanes, 4)), Some((to[1], true)));
        numbers(&mut group, [1 << 63, 0, 1 << 63, 0]);
        assert_eq!(group.pass(&gate, (&lanes, 5)), None);
        assert_eq!(group.numbers[0], 1 << 63);
    }
}
