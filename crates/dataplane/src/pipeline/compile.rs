//! From terms to columns, and from steps to what is done with all lanes that come to them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ir::field::meta;
use ir::model::BinaryOp;
use ir::program::numbers::{Numbers, Range, is_decided, total};
use ir::program::{Atom, Effect, Exit, LookupId, OnesSum, Program, StateId, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, RangeMap};
use net::Header;

use super::gate::Gates;
use super::lanes::{Area, Cond, Lanes, Op, Reg};
use super::prepared::Ranges;
use super::range_table::ranges_of;
use super::words::{self, Layout};

/// What a slot of the flow cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// 32 bits of a term's value: the word of this number, the lowest first.
    Term(TermId, u8),
    /// A sum folded to 16 bits: 0 only if the sum is.
    Sum {
        /// The sum.
        sum: Sum,
        /// One with the same remainder by 0xffff: mostly shorter, as what one translator adds, the next takes away.
        congruent: Sum,
    },
    /// A sum folded to 16 bits that is not 0 whatever it comes to.
    Residue(Sum),
}

/// A sum of multiples of terms, and a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) terms: Vec<(i64, TermId)>,
    pub(super) more: i64,
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
    memo: HashMap<(TermId, u8), Option<Reg>>,
}

impl<'a> Residual<'a> {
    pub(super) fn new(known: &'a Known) -> Self {
        Self { known, slots: Vec::new(), memo: HashMap::new() }
    }
}

/// Makes columns for terms. A column holds 32 bits of a number, mostly the lowest; where more matters, its
/// range tells whether they are all, and there are further columns for the rest (`wide.rs`).
pub(super) struct Compiler<'a> {
    program: &'a Program,
    prepared: &'a Ranges,
    pub(super) lanes: Lanes,
    ops: HashMap<Op, Reg>,
    memo: HashMap<(TermId, u8), Option<Reg>>,
    /// By lookup: where what it takes and yields stands.
    layouts: Vec<Layout>,
    /// By term: whether it is made from what lookups bind.
    bound: Vec<bool>,
    /// By term: whether it is made from a cell that packets change.
    changing: Vec<bool>,
    numbers: Vec<Numbers>,
    /// How deep terms are nested: those that would take too much stack are not compiled.
    depth: Vec<u32>,
    /// Tables, and their numbers.
    tables: Vec<(Arc<RangeMap>, usize)>,
    /// Found before steps are compiled.
    pub(super) gates: Gates,
}

/// The cells that exits write, and what.
pub(super) fn sets(program: &Program) -> impl Iterator<Item = (StateId, u16, TermId)> {
    program.exits().flat_map(|(_, exit)| exit.all()).flat_map(sets_of)
}

/// The cells that an exit writes, and what; not those of copies.
pub(super) fn sets_of(exit: &Exit) -> impl Iterator<Item = (StateId, u16, TermId)> {
    exit.effects.iter().filter_map(|effect| match effect {
        Effect::Set { cells, index, value } => Some((*cells, *index, *value)),
        _ => None,
    })
}

/// By term: whether it is made from cells of which packets change any: an element that takes a packet may change the others.
fn changing(program: &Program) -> Vec<bool> {
    let written: HashSet<_> = sets(program).map(|(cells, ..)| cells).collect();
    let mut changing: Vec<bool> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        changing.push(match term {
            Term::Cell(cells, _) => written.contains(cells),
            other => other.operands().iter().any(|t| changing[t.0 as usize]),
        });
    }
    changing
}

/// Terms may be nested so deeply.
const DEEPEST: u32 = 500;

pub(super) fn ones(bits: u32) -> u32 {
    u32::MAX.checked_shr(32 - bits.min(32)).unwrap_or(0)
}

/// How terms of a sum are collected: subtracted or added.
type Signed = Vec<(bool, TermId)>;

impl<'a> Compiler<'a> {
    pub(super) fn new(program: &'a Program, prepared: &'a Ranges) -> Self {
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
            prepared,
            lanes: Lanes::default(),
            ops: HashMap::new(),
            memo: HashMap::new(),
            layouts: Layout::of(program),
            bound,
            changing: changing(program),
            numbers: program.numbers(),
            depth,
            tables: Vec::new(),
            gates: Gates::default(),
        }
    }

    /// What an exit writes or hands to state, but for what is left at gates.
    pub(super) fn terms_of(&self, exit: &Exit) -> Vec<TermId> {
        let is_left = |effect: &Effect| match effect {
            Effect::Set { cells, index, .. } => self.gates.has((*cells, *index)),
            _ => false,
        };
        let mut exit = exit.clone();
        exit.copies.iter_mut().for_each(|copy| copy.effects.retain(|effect| !is_left(effect)));
        exit.effects.retain(|effect| !is_left(effect));
        exit.terms()
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    pub(super) fn prepared(&self) -> &'a Ranges {
        self.prepared
    }

    /// Where what a lookup takes and yields stands.
    pub(super) fn layout(&self, lookup: LookupId) -> &Layout {
        &self.layouts[usize::from(lookup.0)]
    }

    /// Takes in how a lookup's table wants its keys.
    pub(super) fn set_key_columns(&mut self, lookup: LookupId, columns: &'static [u8]) {
        self.layouts[usize::from(lookup.0)].key = columns;
    }

    pub(super) fn op(&mut self, op: Op) -> Reg {
        if let Some(&reg) = self.ops.get(&op) {
            return reg;
        }
        let reg = self.lanes.add(op.clone());
        self.ops.insert(op, reg);
        reg
    }

    pub(super) fn range(&self, term: TermId) -> Range {
        self.numbers[term.0 as usize].range
    }

    /// How many bits a term has.
    pub(super) fn width(&self, term: TermId) -> u16 {
        self.numbers[term.0 as usize].width
    }

    /// Whether 32 bits are all of a number.
    pub(super) fn is_whole(&self, term: TermId) -> bool {
        self.numbers[term.0 as usize].fits()
    }

    /// A column for the lower 32 bits of a term; `None` if it takes more than columns can do.
    pub(super) fn term(&mut self, term: TermId) -> Option<Reg> {
        self.word(term, 0, &mut None)
    }

    /// The same, some of it taken from the flow cache.
    pub(super) fn residual(
        &mut self,
        (term, word): (TermId, u8),
        with: &mut Residual<'_>,
    ) -> Option<Reg> {
        self.word(term, word, &mut Some(with))
    }

    /// A column for a term of which 32 bits are all.
    pub(super) fn exactly(&mut self, term: TermId) -> Option<Reg> {
        self.is_whole(term).then(|| self.term(term)).flatten()
    }

    /// A column that holds all of a number, and whether as a signed one.
    pub(super) fn number(&mut self, term: TermId) -> Option<(Reg, bool)> {
        let is_signed = !self.is_whole(term);
        let fits = |(low, high)| low >= i32::MIN.into() && high <= i32::MAX.into();
        if is_signed && !self.range(term).is_some_and(fits) {
            return None;
        }
        Some((self.term(term)?, is_signed))
    }

    fn compile(&mut self, term: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Reg> {
        self.word(term, 0, with)
    }

    /// A column for 32 bits of a term: the word of this number, the lowest first.
    pub(super) fn word(
        &mut self,
        term: TermId,
        word: u8,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Reg> {
        let at = term.0 as usize;
        if self.depth[at] > DEEPEST {
            return None;
        }
        let own = match with {
            Some(_) if !self.bound[at] => return self.word(term, word, &mut None),
            Some(residual) => residual.memo.get(&(term, word)),
            None => self.memo.get(&(term, word)),
        };
        if let Some(&known) = own {
            return known;
        }
        let reg = match with {
            _ if word > 0 && self.is_whole(term) => Some(self.op(Op::Const(0))),
            Some(residual) if residual.known.fixed[at] => {
                let slot = residual.slot(Slot::Term(term, word))?;
                Some(self.op(Op::Slot(slot)))
            }
            _ if word > 0 => self.make_word(term, word, with),
            _ => self.make(term, with),
        };
        match with {
            Some(residual) => residual.memo.insert((term, word), reg),
            None => self.memo.insert((term, word), reg),
        };
        reg
    }

    pub(super) fn input(&mut self, field: Field) -> Option<Reg> {
        let op = match field.base {
            Base::Data => return self.field(Area::Data, field),
            Base::Annotation => return self.field(Area::Annotations, field),
            Base::Carried => return self.field(Area::Carried, field),
            Base::Header(_) => return None,
            Base::Meta => match field {
                meta::LEN => Op::Length,
                meta::HEADROOM => Op::Headroom,
                meta::TYPE => Op::Type,
                meta::AVAIL_MAC => Op::Available(Header::Mac),
                meta::AVAIL_NET => Op::Available(Header::Network),
                meta::AVAIL_TRANSPORT => Op::Available(Header::Transport),
                meta::HAS_MAC => Op::Has(Header::Mac),
                meta::HAS_NET => Op::Has(Header::Network),
                meta::HAS_TRANSPORT => Op::Has(Header::Transport),
                _ => return None,
            },
        };
        Some(self.op(op))
    }

    /// A field that lies in an area, taken from a word that others may share.
    fn field(&mut self, area: Area, field: Field) -> Option<Reg> {
        let (first, last) = field.byte_range();
        let from_end =
            |end: usize| (end * 8 - usize::from(field.offset) - usize::from(field.width)) as u8;
        let mask = ones(field.width.into());
        // Behind an Ethernet header, tagged or not, these are the words that protocols count in.
        let origin = if area == Area::Data { 2 } else { 0 };
        let shared = ((first + origin) / 4 * 4).checked_sub(origin);
        let at = shared.filter(|at| last <= at + 4).unwrap_or(first);
        if last <= at + 4 && at + 4 <= area.size() {
            let word = self.op(Op::Word { area, at: at as u8 });
            return Some(self.bits(word, from_end(at + 4), mask));
        }
        let (Ok(at), Area::Data) = (u16::try_from(first), area) else { return None };
        let (bytes, shift) = ((last - first) as u8, from_end(last));
        Some(self.op(Op::Bytes { at, bytes, shift, mask }))
    }

    /// Some bits of a column.
    pub(super) fn bits(&mut self, of: Reg, shift: u8, mask: u32) -> Reg {
        if (shift, mask) == (0, u32::MAX) {
            return of;
        }
        match *self.lanes.op(of) {
            Op::Bits { of, shift: before, mask: inner } if before + shift < 32 => {
                self.op(Op::Bits { of, shift: before + shift, mask: inner >> shift & mask })
            }
            _ => self.op(Op::Bits { of, shift, mask }),
        }
    }

    /// The folded sum of a few whole words.
    fn sum_of_words(&mut self, at: usize, length: usize) -> Option<Op> {
        if length == 0 || !length.is_multiple_of(4) || at + length > Area::Data.size() {
            return None;
        }
        let words = (at..at + length).step_by(4);
        let words = words.map(|at| self.op(Op::Word { area: Area::Data, at: at as u8 })).collect();
        let sum = self.op(Op::Sum(words));
        Some(Op::Fold(sum))
    }

    fn make(&mut self, term: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Reg> {
        let op = match self.program.term(term) {
            Term::Const(value) => Op::Const(*value as u32),
            Term::Input(field) => return self.input(words::part(*field, 0)?),
            Term::Position(header) => Op::Position(*header),
            Term::Sum16 { offset, length } => {
                let words = match self.program.term(*length) {
                    Term::Const(length) => usize::try_from(*length).ok(),
                    _ => None,
                };
                match words.and_then(|length| self.sum_of_words((*offset).into(), length)) {
                    Some(sum) => sum,
                    None => Op::Sum16 { at: *offset, length: self.whole(*length, with)? },
                }
            }
            Term::Binary(op, a, b) => self.binary(*op, *a, *b, with)?,
            Term::Slice { of, low, width } => {
                let (low, bits) = (u32::from(*low), u32::from(*width));
                if low >= 32 || (low + bits > 32 && !self.is_whole(*of)) {
                    return self.slice(*of, (low, bits), with);
                }
                let of = self.compile(*of, with)?;
                return Some(self.bits(of, low as u8, ones(bits)));
            }
            Term::Concat { high, low, width } => {
                let (high, low) = (self.compile(*high, with)?, self.compile(*low, with)?);
                match width {
                    32.. => return Some(low),
                    width => Op::Or(self.op(Op::Shl(high, *width)), low),
                }
            }
            Term::OnesSum(sum) => {
                let never_zero = self.total(sum).bounds.0 > 0;
                self.ones_sum(sum, never_zero, with)?
            }
            Term::NonZero(of) => match self.program.term(*of) {
                // Whether a sum comes to 0 or to 0xffff is all the same here.
                Term::OnesSum(sum) if sum.complement => {
                    let checksum = self.ones_sum(sum, true, with)?;
                    Op::NonZero(self.op(checksum))
                }
                _ => Op::NonZero(self.whole(*of, with)?),
            },
            Term::Choose(atom, a, b) => {
                let cond = self.cond(atom, with)?;
                Op::Choose((cond, self.compile(*a, with)?, self.compile(*b, with)?).into())
            }
            Term::Map(of, table) => {
                let of = self.whole(*of, with)?;
                Op::Map { of, table: self.table(table)? }
            }
            // In columns of the flow cache, what lookups bind is a slot.
            Term::Bound(..) if with.is_some() => return None,
            Term::Bound(lookup, index) => self.bound_word(*lookup, *index, 0)?,
            Term::Cell(cells, index) => Op::Cell(*cells, *index),
            Term::Now => Op::Now(0),
            Term::Hash(..) => return None,
        };
        Some(self.op(op))
    }

    /// The number of a table whose numbers have 32 bits.
    fn table(&mut self, mapping: &Arc<RangeMap>) -> Option<usize> {
        if let Some((_, known)) = self.tables.iter().find(|(table, _)| table == mapping) {
            return Some(*known);
        }
        let number = self.lanes.add_table(self.prepared.mapping(mapping)?);
        self.tables.push((Arc::clone(mapping), number));
        Some(number)
    }

    fn whole(&mut self, term: TermId, with: &mut Option<&mut Residual<'_>>) -> Option<Reg> {
        self.is_whole(term).then(|| self.compile(term, with)).flatten()
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: TermId,
        b: TermId,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Op> {
        let constant = match self.program.term(b) {
            Term::Const(value) => u32::try_from(*value).ok(),
            _ => None,
        };
        Some(match op {
            BinaryOp::Shl => match constant {
                Some(by) if by < 32 => Op::Shl(self.compile(a, with)?, by as u8),
                Some(_) => return None,
                None => Op::ShlBy(self.compile(a, with)?, self.whole(b, with)?),
            },
            BinaryOp::Shr => {
                let by = constant.filter(|by| *by < 32)?;
                if !self.is_whole(a) {
                    let of = self.slice(a, (by, 32), with)?;
                    return Some(Op::Shr(of, 0));
                }
                Op::Shr(self.whole(a, with)?, by as u8)
            }
            BinaryOp::Div => Op::Div(self.whole(a, with)?, constant.filter(|by| *by > 0)?),
            BinaryOp::Rem => Op::Rem(self.whole(a, with)?, constant.filter(|by| *by > 0)?),
            BinaryOp::Min => Op::Min(self.whole(a, with)?, self.whole(b, with)?),
            BinaryOp::Max => Op::Max(self.whole(a, with)?, self.whole(b, with)?),
            BinaryOp::Add => Op::Add(self.compile(a, with)?, self.compile(b, with)?),
            BinaryOp::Sub => Op::Sub(self.compile(a, with)?, self.compile(b, with)?),
            BinaryOp::Mul => Op::Mul(self.compile(a, with)?, self.compile(b, with)?),
            BinaryOp::And => Op::And(self.compile(a, with)?, self.compile(b, with)?),
            BinaryOp::Or => Op::Or(self.compile(a, with)?, self.compile(b, with)?),
            BinaryOp::Xor => Op::Xor(self.compile(a, with)?, self.compile(b, with)?),
        })
    }

    /// What is folded in a ones' complement sum.
    fn total(&self, sum: &OnesSum) -> Numbers {
        total(sum, |term| self.numbers[term.0 as usize])
    }

    fn ones_sum(
        &mut self,
        sum: &OnesSum,
        modular: bool,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Op> {
        let folded = match with {
            Some(_) if sum.operands().any(|term| self.bound[term.0 as usize]) => {
                Op::Fold(self.sum(sum, modular, with)?)
            }
            _ => Op::Fold(self.plain_sum(sum)?),
        };
        if !sum.complement {
            return Some(folded);
        }
        let all = self.op(Op::Const(0xffff));
        Some(Op::Sub(all, self.op(folded)))
    }

    /// A column for what is folded.
    fn plain_sum(&mut self, sum: &OnesSum) -> Option<Reg> {
        if !self.total(sum).fits() {
            return None;
        }
        let excess = u32::try_from(sum.excess()).ok()?;
        let mut all = sum
            .plus
            .iter()
            .map(|term| (false, *term))
            .chain(sum.minus.iter().map(|term| (true, *term)));
        // A constant comes first where nothing else is added: equal sums are one.
        let mut total = match sum.plus.is_empty() {
            true => self.op(Op::Const(excess)),
            false => self.term(all.next()?.1)?,
        };
        for (minus, term) in all {
            let term = self.term(term)?;
            total = self.op(if minus { Op::Sub(total, term) } else { Op::Add(total, term) });
        }
        if !sum.plus.is_empty() && excess > 0 {
            let excess = self.op(Op::Const(excess));
            total = self.op(Op::Add(total, excess));
        }
        Some(total)
    }

    /// A column that folds to the same as a sum of which something is bound. `fold(a + fold(b))` is
    /// `fold(a + b)`, and of what is not 0 (or where that makes no difference: `modular`) only the
    /// remainder by 0xffff counts; so all that is fixed in a sum of sums is one slot.
    fn sum(
        &mut self,
        sum: &OnesSum,
        modular: bool,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Reg> {
        let is_fixed = |term: TermId, with: &Option<&mut Residual<'_>>| {
            with.as_ref().is_some_and(|r| r.known.fixed[term.0 as usize])
        };
        let (mut fixed, mut rest): (Signed, Signed) = (Vec::new(), Vec::new());
        let mut constant = i128::from(sum.excess());
        let signed = |sum: &OnesSum, minus: bool| -> Signed {
            let plus = sum.plus.iter().map(|term| (minus, *term));
            plus.chain(sum.minus.iter().map(|term| (!minus, *term))).collect()
        };
        let mut waiting = signed(sum, false);
        while let Some((minus, term)) = waiting.pop() {
            let is_whole = |of: &TermId| self.range(*of).is_some_and(|r| r.0 >= 0);
            match self.program.term(term) {
                Term::Const(value) => {
                    let value = i128::from(i64::try_from(*value as i128).ok()?);
                    constant += if minus { -value } else { value };
                }
                _ if is_fixed(term, with) => fixed.push((minus, term)),
                Term::Binary(BinaryOp::Add, a, b) => waiting.extend([(minus, *a), (minus, *b)]),
                Term::Binary(BinaryOp::Sub, a, b) => waiting.extend([(minus, *a), (!minus, *b)]),
                Term::OnesSum(inner)
                    if (modular || minus == inner.complement)
                        && self.total(inner).range.is_some() =>
                {
                    let of = minus != inner.complement;
                    if inner.complement {
                        constant += if minus { -0xffff } else { 0xffff };
                    }
                    let excess = i128::from(inner.excess());
                    constant += if of { -excess } else { excess };
                    waiting.extend(signed(inner, of));
                }
                Term::NonZero(of) if modular && is_whole(of) => waiting.push((minus, *of)),
                Term::Binary(BinaryOp::Rem, of, by)
                    if modular
                        && *self.program.term(*by) == Term::Const(0xffff)
                        && is_whole(of) =>
                {
                    waiting.push((minus, *of));
                }
                _ => rest.push((minus, term)),
            }
        }
        let of_all = |all: &Signed| {
            all.iter().try_fold((0i128, 0i128), |(low, high), &(minus, term)| {
                let (l, h) = self.range(term)?;
                Some(if minus { (low - h, high - l) } else { (low + l, high + h) })
            })
        };
        let (least, most) = of_all(&rest)?;
        let of_fixed = of_all(&fixed).map(|(low, _)| low);
        // So much must be added to what differs, lest it be negative.
        let own = (-least).max(0);
        let left = constant - own;
        let terms = fixed.iter().map(|&(minus, term)| (if minus { -1 } else { 1 }, term)).collect();
        let sum = Sum { terms, more: i64::try_from(left).ok()? };
        let congruent = self.congruent(&sum);
        let slot = if of_fixed.is_some_and(|low| low + left >= 0) {
            Slot::Sum { sum, congruent }
        } else if modular {
            Slot::Residue(congruent)
        } else {
            return None;
        };
        if most + own + 0xffff > u32::MAX.into() {
            return None;
        }
        let mut total = match &slot {
            // Nothing is fixed but a number.
            Slot::Sum { sum, .. } if sum.terms.is_empty() => {
                self.op(Op::Const(u32::try_from(sum.more).ok()?))
            }
            _ => {
                let slot = with.as_mut()?.slot(slot)?;
                self.op(Op::Slot(slot))
            }
        };
        if own > 0 {
            let own = self.op(Op::Const(u32::try_from(own).ok()?));
            total = self.op(Op::Add(total, own));
        }
        for (minus, term) in rest {
            let term = self.compile(term, with)?;
            total = self.op(if minus { Op::Sub(total, term) } else { Op::Add(total, term) });
        }
        Some(total)
    }

    /// A sum with the same remainder by 0xffff, made of what its terms are made of.
    pub(super) fn congruent(&self, sum: &Sum) -> Sum {
        let mut times: BTreeMap<TermId, i64> = BTreeMap::new();
        sum.terms.iter().for_each(|&(n, term)| *times.entry(term).or_default() += n);
        let (mut terms, mut more) = (Vec::new(), sum.more % 0xffff);
        // From the last term on, so that each is met once, with all that it is added to.
        while let Some((term, n)) = times.pop_last() {
            let n = n % 0xffff;
            let is_whole = |of: &TermId| self.range(*of).is_some_and(|r| r.0 >= 0);
            let never_wraps = self.range(term).is_some();
            let mut add = |of: &TermId, n: i64| *times.entry(*of).or_default() += n;
            match self.program.term(term) {
                _ if n == 0 => {}
                Term::Const(value) => more = (more + (*value as i128 % 0xffff) as i64 * n) % 0xffff,
                Term::Binary(BinaryOp::Add, a, b) if never_wraps => {
                    add(a, n);
                    add(b, n);
                }
                Term::Binary(BinaryOp::Sub, a, b) if never_wraps => {
                    add(a, n);
                    add(b, -n);
                }
                Term::OnesSum(of) if self.total(of).range.is_some() => {
                    let n = if of.complement { -n } else { n };
                    of.plus.iter().for_each(|term| add(term, n));
                    of.minus.iter().for_each(|term| add(term, -n));
                    more = (more + i64::from(of.constant) * n) % 0xffff;
                }
                Term::NonZero(of) if is_whole(of) => add(of, n),
                Term::Binary(BinaryOp::Rem, of, by)
                    if *self.program.term(*by) == Term::Const(0xffff) && is_whole(of) =>
                {
                    add(of, n);
                }
                _ => terms.push((n, term)),
            }
        }
        Sum { terms, more }
    }

    /// Whether a term is made from a cell that packets change.
    pub(super) fn is_changing(&self, term: TermId) -> bool {
        self.changing[term.0 as usize]
    }

    /// A condition on columns.
    pub(super) fn cond(
        &mut self,
        atom: &Atom,
        with: &mut Option<&mut Residual<'_>>,
    ) -> Option<Cond> {
        if atom.operands().into_iter().any(|term| self.is_changing(term)) {
            return None;
        }
        match atom {
            Atom::Test(term, set) => {
                let ranges = self.range(*term).and_then(|range| ranges_of(set, range));
                let Some(ranges) = ranges else {
                    return self.wide_test(*term, set, with);
                };
                Some(test(self.compile(*term, with)?, ranges))
            }
            Atom::Compare(op, a, b) => {
                let (Some(range), Some(other)) = (self.range(*a), self.range(*b)) else {
                    return self.wide_compare(*op, (*a, *b), with);
                };
                // Numbers that wrapped must be above all others in 32 bits too.
                if range.1.max(other.1) >= (1 << 32) + range.0.min(other.0).min(0) {
                    return self.wide_compare(*op, (*a, *b), with);
                }
                Some(Cond::Compare(*op, self.compile(*a, with)?, self.compile(*b, with)?))
            }
        }
    }

    /// Whether a condition says nothing, because it always holds or never.
    pub(super) fn is_decided(&self, atom: &Atom) -> bool {
        is_decided(&self.numbers, atom)
    }

    /// A condition on columns that nothing is left out of.
    pub(super) fn atom(&mut self, atom: &Atom) -> Option<Cond> {
        self.cond(atom, &mut None)
    }

    /// Whether a term is made from what lookups bind.
    pub(super) fn is_bound(&self, term: TermId) -> bool {
        self.bound[term.0 as usize]
    }

    /// A condition on the packet alone.
    pub(super) fn packet_atom(&mut self, atom: &Atom) -> Option<Cond> {
        let bound = atom.operands().iter().any(|&term| self.is_bound(term));
        if bound { None } else { self.atom(atom) }
    }

    /// The condition that a number of which 32 bits are all is in a set.
    pub(super) fn case(&mut self, term: TermId, set: &IntervalSet) -> Option<Cond> {
        let reg = self.exactly(term)?;
        Some(test(reg, ranges_of(set, (0, u32::MAX.into()))?))
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

/// The condition that a number is in one of some ranges, which are in order.
pub(super) fn test(of: Reg, ranges: Vec<(u32, u32)>) -> Cond {
    match ranges[..] {
        [(low, high)] => Cond::Range { of, low, span: high - low },
        _ => Cond::Ranges { of, ranges },
    }
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
