//! From terms to columns, and from steps to what is done with all lanes that come to them.

use std::collections::HashMap;

use ir::model::BinaryOp;
use ir::program::{Atom, Program, Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet};

use super::lanes::{Cond, Lanes, Op, Reg};

/// A number in a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) reg: Reg,
    /// The greatest value that it can have, if the column holds it exactly; else only its lower
    /// 32 bits are right.
    pub(super) most: Option<u32>,
}

/// What a slot of the flow cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A term's value. With `exact`, no more than 32 bits of it may be set.
    Term { term: TermId, exact: bool },
    /// A sum of terms, folded to 16 bits.
    Sum(Vec<TermId>),
}

/// What is the same for all packets with the same inputs that flows are looked up by.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// By term: whether it is.
    pub(super) fixed: Vec<bool>,
}

/// The slots that an exit wants, and the terms that were compiled with them.
pub(super) struct Residual<'a> {
    pub(super) known: &'a Known,
    pub(super) slots: Vec<Slot>,
    memo: HashMap<TermId, Option<Value>>,
}

impl<'a> Residual<'a> {
    pub(super) fn new(known: &'a Known) -> Self {
        Self { known, slots: Vec::new(), memo: HashMap::new() }
    }
}

/// Makes columns for terms.
pub(super) struct Compiler<'a> {
    program: &'a Program,
    pub(super) lanes: Lanes,
    ops: HashMap<Op, Reg>,
    memo: HashMap<TermId, Option<Value>>,
    /// By term: whether it is made from what lookups bind.
    bound: Vec<bool>,
    /// How deep terms are nested: those that would take too much stack are not compiled.
    depth: Vec<u32>,
}

const MOST: u64 = u32::MAX as u64;
/// Terms may be nested so deeply.
const DEEPEST: u32 = 500;

fn ones(bits: u32) -> u32 {
    u32::MAX.checked_shr(32 - bits.min(32)).unwrap_or(0)
}

impl<'a> Compiler<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let (mut bound, mut depth) = (Vec::new(), Vec::<u32>::new());
        for term in &program.terms {
            let operands = term.operands();
            let made = operands.iter().any(|t| bound[t.0 as usize]);
            bound.push(made || matches!(term, Term::Bound(..)));
            let deepest = operands.iter().map(|t| depth[t.0 as usize]).max();
            depth.push(deepest.map_or(0, |d| d.saturating_add(1)));
        }
        Self {
            program,
            lanes: Lanes::default(),
            ops: HashMap::new(),
            memo: HashMap::new(),
            bound,
            depth,
        }
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    fn op(&mut self, op: Op) -> Reg {
        if let Some(&reg) = self.ops.get(&op) {
            return reg;
        }
        let reg = self.lanes.add(op.clone());
        self.ops.insert(op, reg);
        reg
    }

    fn exact(&mut self, op: Op, most: u64) -> Option<Value> {
        let most = u32::try_from(most).ok();
        Some(Value { reg: self.op(op), most })
    }

    pub(super) fn constant(&mut self, value: u128) -> Value {
        let most = u32::try_from(value).ok();
        Value { reg: self.op(Op::Const(value as u32)), most }
    }

    /// A column for a term; `None` if it takes more than columns can do.
    pub(super) fn term(&mut self, term: TermId) -> Option<Value> {
        self.compile(term, &mut None)
    }

    /// A column for a term, some of it taken from the flow cache.
    pub(super) fn residual(&mut self, term: TermId, with: &mut Residual<'_>) -> Option<Value> {
        self.compile(term, &mut Some(with))
    }

    /// The columns that are computed when one is.
    pub(super) fn exactly(&mut self, term: TermId) -> Option<Reg> {
        self.term(term).filter(|v| v.most.is_some()).map(|v| v.reg)
    }

    fn compile(&mut self, term: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Value> {
        let at = term.0 as usize;
        if self.depth[at] > DEEPEST {
            return None;
        }
        let own = match with {
            Some(_) if !self.bound[at] => return self.compile(term, &mut None),
            Some(residual) => residual.memo.get(&term),
            None if self.bound[at] => return None,
            None => self.memo.get(&term),
        };
        if let Some(&known) = own {
            return known;
        }
        let value = match with {
            Some(residual) if residual.known.fixed[at] => {
                let exact = self.width(term) <= 32;
                let slot = residual.slot(Slot::Term { term, exact })?;
                Some(self.slot(slot, exact.then(|| ones(self.width(term).into()))))
            }
            _ => self.make(term, with),
        };
        match with {
            Some(residual) => residual.memo.insert(term, value),
            None => self.memo.insert(term, value),
        };
        value
    }

    fn slot(&mut self, slot: u8, most: Option<u32>) -> Value {
        Value { reg: self.op(Op::Slot(slot)), most }
    }

    /// How many bits a term has at the most.
    fn width(&self, term: TermId) -> u16 {
        match self.program.term(term) {
            Term::Const(value) => 128 - value.leading_zeros() as u16,
            Term::Input(field) => field.width,
            Term::Position(_) => 32,
            Term::Bound(lookup, index) => {
                let flows = self.program.lookups[usize::from(lookup.0)].flows;
                self.program.state[usize::from(flows.0)].kind.width(usize::from(*index))
            }
            Term::Slice { width, .. } => u16::from(*width),
            Term::Concat { high, width, .. } => self.width(*high).saturating_add((*width).into()),
            Term::Sum16 { .. } | Term::Fold(_) => 16,
            Term::NonZero(of) => self.width(*of).max(16),
            Term::Binary(BinaryOp::And | BinaryOp::Min, a, b) => self.width(*a).min(self.width(*b)),
            Term::Binary(BinaryOp::Rem, _, b) => self.width(*b),
            Term::Binary(BinaryOp::Or | BinaryOp::Xor | BinaryOp::Max, a, b) => {
                self.width(*a).max(self.width(*b))
            }
            Term::Choose(_, a, b) => self.width(*a).max(self.width(*b)),
            _ => 128,
        }
    }

    fn input(&mut self, field: Field) -> Option<Value> {
        if field.width > 32 {
            return None;
        }
        let (first, last) = field.byte_range();
        let most = u64::from(ones(field.width.into()));
        let at = u16::try_from(first).ok()?;
        let bytes = (last - first) as u8;
        let shift = (last * 8 - usize::from(field.offset) - usize::from(field.width)) as u8;
        let mask = most as u32;
        match field.base {
            Base::Data => self.exact(Op::Data { at, bytes, shift, mask }, most),
            Base::Annotation => self.exact(Op::Annotation { at, bytes, shift, mask }, most),
            Base::Header(_) => None,
            Base::Meta => {
                use ir::field::meta;
                use net::Header::{Mac, Network, Transport};
                let op = match field {
                    meta::LEN => Op::Length,
                    meta::HEADROOM => Op::Headroom,
                    meta::TYPE => Op::Type,
                    meta::AVAIL_MAC => Op::Available(Mac),
                    meta::AVAIL_NET => Op::Available(Network),
                    meta::AVAIL_TRANSPORT => Op::Available(Transport),
                    meta::HAS_MAC => Op::Has(Mac),
                    meta::HAS_NET => Op::Has(Network),
                    meta::HAS_TRANSPORT => Op::Has(Transport),
                    _ => return None,
                };
                // No packet is as long as that; sums of lengths stay exact.
                let most = if most == MOST { MOST >> 8 } else { most };
                self.exact(op, most)
            }
        }
    }

    fn make(&mut self, term: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Value> {
        let both = |value: Value| value.most.map(u64::from);
        match self.program.term(term) {
            Term::Const(value) => Some(self.constant(*value)),
            Term::Input(field) => self.input(*field),
            Term::Position(header) => self.exact(Op::Position(*header), MOST),
            Term::Sum16 { offset, length } => {
                let length = self.compile(*length, with)?;
                length.most?;
                self.exact(Op::Sum16 { at: *offset, length: length.reg }, 0xffff)
            }
            Term::Binary(op, a, b) => self.binary(*op, *a, *b, with),
            Term::Slice { of, low, width } => {
                let of = self.compile(*of, with)?;
                let (low, width) = (u32::from(*low), u32::from(*width));
                if width > 32 || low >= 32 || (of.most.is_none() && low + width > 32) {
                    return None;
                }
                let shifted = self.op(Op::Shr(of.reg, low as u8));
                let mask = self.constant(ones(width).into());
                self.exact(Op::And(shifted, mask.reg), ones(width).into())
            }
            Term::Concat { high, low, width } => {
                let (high, low) = (self.compile(*high, with)?, self.compile(*low, with)?);
                let width = u32::from(*width).min(32);
                let shifted = match width {
                    32 => self.constant(0).reg,
                    width => self.op(Op::Shl(high.reg, width as u8)),
                };
                let most = both(high).zip(both(low)).map(|(h, l)| (h << width) + l);
                self.exact(Op::Or(shifted, low.reg), most.unwrap_or(u64::MAX))
            }
            Term::Fold(sum) => self.fold(*sum, with),
            Term::NonZero(of) => {
                let of = self.compile(*of, with)?;
                let most = both(of)?;
                self.exact(Op::NonZero(of.reg), most.max(0xffff))
            }
            Term::Choose(atom, a, b) => {
                let cond = self.cond(atom, with)?;
                let (a, b) = (self.compile(*a, with)?, self.compile(*b, with)?);
                let most = both(a).zip(both(b)).map(|(a, b)| a.max(b));
                self.exact(Op::Choose(cond, a.reg, b.reg), most.unwrap_or(u64::MAX))
            }
            Term::Bound(..) | Term::Hash(_) | Term::Now => None,
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: TermId,
        b: TermId,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Value> {
        let constant = match self.program.term(b) {
            Term::Const(value) => Some(*value),
            _ => None,
        };
        let a = self.compile(a, with)?;
        let exactly = a.most.map(u64::from);
        match (op, constant) {
            (BinaryOp::Shl, Some(by)) => {
                let by = u8::try_from(by).ok().filter(|by| *by < 32)?;
                let most = exactly.map_or(u64::MAX, |a| a << by);
                return self.exact(Op::Shl(a.reg, by), most);
            }
            (BinaryOp::Shr, Some(by)) => {
                let by = u8::try_from(by).ok().filter(|by| *by < 32)?;
                return self.exact(Op::Shr(a.reg, by), exactly? >> by);
            }
            (BinaryOp::Div, Some(by)) => {
                let by = u32::try_from(by).ok().filter(|by| *by > 0)?;
                return self.exact(Op::Div(a.reg, by), exactly? / u64::from(by));
            }
            (BinaryOp::Rem, Some(by)) => {
                let by = u32::try_from(by).ok().filter(|by| *by > 0)?;
                return self.exact(Op::Rem(a.reg, by), exactly?.min(u64::from(by) - 1));
            }
            _ => {}
        }
        let b = self.compile(b, with)?;
        let both = exactly.zip(b.most.map(u64::from));
        let ones_of = |n: u64| u64::from(ones(64 - n.leading_zeros()));
        let (op, most) = match op {
            BinaryOp::Add => (Op::Add(a.reg, b.reg), both.map(|(a, b)| a + b)),
            BinaryOp::Sub => (Op::Sub(a.reg, b.reg), None),
            BinaryOp::Mul => (Op::Mul(a.reg, b.reg), both.map(|(a, b)| a.saturating_mul(b))),
            BinaryOp::And => {
                let least = match (exactly, b.most) {
                    (Some(a), Some(b)) => Some(a.min(b.into())),
                    (a, b) => a.or(b.map(u64::from)),
                };
                (Op::And(a.reg, b.reg), least)
            }
            BinaryOp::Or => (Op::Or(a.reg, b.reg), both.map(|(a, b)| ones_of(a | b))),
            BinaryOp::Xor => (Op::Xor(a.reg, b.reg), both.map(|(a, b)| ones_of(a | b))),
            BinaryOp::Min => (Op::Min(a.reg, b.reg), Some(both.map(|(a, b)| a.min(b))?)),
            BinaryOp::Max => (Op::Max(a.reg, b.reg), Some(both.map(|(a, b)| a.max(b))?)),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Div | BinaryOp::Rem => return None,
        };
        self.exact(op, most.unwrap_or(u64::MAX))
    }

    /// `fold(a + fold(b))` is `fold(a + b)`, so all that is fixed in a sum of sums is one slot.
    fn fold(&mut self, sum: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Value> {
        let (mut fixed, mut rest) = (Vec::new(), Vec::new());
        let mut waiting = vec![sum];
        while let Some(term) = waiting.pop() {
            let at = term.0 as usize;
            let residual = with.as_ref().filter(|_| self.bound[sum.0 as usize]);
            if residual.is_some_and(|r| r.known.fixed[at]) {
                fixed.push(term);
                continue;
            }
            match self.program.term(term) {
                Term::Binary(BinaryOp::Add, a, b) => waiting.extend([*b, *a]),
                Term::Fold(of) => waiting.push(*of),
                _ => match self.inverse_of_inverse(term) {
                    Some(inner) => waiting.push(inner),
                    None => rest.push(term),
                },
            }
        }
        let mut addends = Vec::new();
        if !fixed.is_empty() {
            let slot = with.as_mut()?.slot(Slot::Sum(fixed))?;
            addends.push(self.slot(slot, Some(0xffff)));
        }
        for term in rest {
            addends.push(self.compile(term, with)?);
        }
        let most = addends.iter().try_fold(0, |sum, a| Some(sum + u64::from(a.most?)))?;
        if most > MOST {
            return None;
        }
        let mut addends = addends.into_iter();
        let first = addends.next()?.reg;
        let sum = addends.fold(first, |sum, next| self.op(Op::Add(sum, next.reg)));
        self.exact(Op::Fold(sum), 0xffff)
    }

    /// `x` of `0xffff ^ (0xffff ^ x)`, if `x` has 16 bits.
    fn inverse_of_inverse(&self, term: TermId) -> Option<TermId> {
        let inverse = |term: TermId| match self.program.term(term) {
            Term::Binary(BinaryOp::Xor, a, b) => {
                match (self.program.term(*a), self.program.term(*b)) {
                    (Term::Const(0xffff), _) => Some(*b),
                    (_, Term::Const(0xffff)) => Some(*a),
                    _ => None,
                }
            }
            _ => None,
        };
        let inner = inverse(inverse(term)?)?;
        (self.width(inner) <= 16).then_some(inner)
    }

    /// A condition on columns.
    pub(super) fn cond(
        &mut self,
        atom: &Atom,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Cond> {
        match atom {
            Atom::Test(term, set) => {
                let value = self.compile(*term, with)?;
                value.most?;
                Some(test(value.reg, set))
            }
            Atom::Compare(op, a, b) => {
                let (a, b) = (self.compile(*a, with)?, self.compile(*b, with)?);
                a.most.and(b.most)?;
                Some(Cond::Compare(*op, a.reg, b.reg))
            }
        }
    }

    /// A condition on the packet alone.
    pub(super) fn atom(&mut self, atom: &Atom) -> Option<Cond> {
        self.cond(atom, &mut None)
    }
}

impl Residual<'_> {
    fn slot(&mut self, slot: Slot) -> Option<u8> {
        let at = self.slots.iter().position(|s| *s == slot).unwrap_or_else(|| {
            self.slots.push(slot);
            self.slots.len() - 1
        });
        u8::try_from(at).ok()
    }
}

/// The ranges of 32-bit numbers in a set.
pub(super) fn ranges(set: &IntervalSet) -> Vec<(u32, u32)> {
    let small = set.intervals().iter().filter(|i| i.0 <= u32::MAX.into());
    small.map(|&(low, high)| (low as u32, u32::try_from(high).unwrap_or(u32::MAX))).collect()
}

/// The condition that a number is in a set.
pub(super) fn test(of: Reg, set: &IntervalSet) -> Cond {
    match ranges(set)[..] {
        [(low, high)] => Cond::Range { of, low, span: high - low },
        ref ranges => Cond::Ranges { of, ranges: ranges.to_vec() },
    }
}

/// Steps that lead to some of which a condition holds, themselves included.
pub(super) fn leading_to(program: &Program, wanted: impl Fn(&Step) -> bool) -> Vec<bool> {
    let mut leads = vec![false; program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        leads[at] = wanted(step) || step.next().any(|to| leads[to.0 as usize]);
    }
    leads
}

/// The steps that a step leads to, itself included, in order.
pub(super) fn reachable(program: &Program, from: StepId) -> Vec<StepId> {
    let mut reached = vec![false; program.steps.len()];
    reached[from.0 as usize] = true;
    let mut all = Vec::new();
    for at in from.0 as usize..program.steps.len() {
        if reached[at] {
            all.push(StepId(at as u32));
            program.steps[at].next().for_each(|to| reached[to.0 as usize] = true);
        }
    }
    all
}
