//! Numbers as terms of a program.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use ir::field::meta;
use ir::model::BinaryOp;
use ir::program::{Atom, LookupId, OnesSum, Program, Step, Term, TermId};
use ir::{Base, Field, IntervalSet};

use super::decode::Alu;
use super::numbers::{Node, Num, Numbers, Of, Piece};

/// Terms: those of the segment first, so that what is recognised is called as it is there.
pub(super) struct Terms {
    pub(super) all: Vec<Term>,
    ids: HashMap<Term, TermId>,
    of: HashMap<Num, TermId>,
    /// What the segment has terms for.
    known: HashSet<Num>,
    /// By term of the segment: what it is.
    nums: Vec<Option<Num>>,
    /// Lookups of the segment: those that are met have greater numbers.
    lookups: u16,
}

impl Terms {
    pub(super) fn new(program: &Program, numbers: &mut Numbers) -> Self {
        let mut terms = Self {
            all: program.terms.clone(),
            ids: HashMap::new(),
            of: HashMap::new(),
            known: HashSet::new(),
            nums: Vec::new(),
            lookups: program.lookups.len() as u16,
        };
        for (index, term) in program.terms.iter().enumerate() {
            terms.ids.entry(term.clone()).or_insert(TermId(index as u32));
        }
        let mut known: Vec<Option<Num>> = Vec::with_capacity(program.terms.len());
        for term in &program.terms {
            let num = meaning(program, term, &known, numbers);
            known.push(num);
        }
        // What is tested is called as it is where it is tested.
        let tested = program.steps.iter().filter(|step| !matches!(step, Step::Exit(_)));
        let tested: Vec<TermId> = tested.flat_map(Step::terms).collect();
        let all = (0..program.terms.len() as u32).map(TermId);
        for term in tested.into_iter().chain(all) {
            if let Some(num) = known[term.0 as usize].filter(|num| numbers.is_exact(*num)) {
                terms.of.entry(num).or_insert(term);
                terms.known.insert(num);
            }
        }
        terms.nums = known;
        terms
    }

    /// What a term of the segment is, if that is a number of 64 bits.
    pub(super) fn exact(&self, term: TermId, numbers: &Numbers) -> Option<Num> {
        let num = self.nums.get(term.0 as usize).copied().flatten();
        num.filter(|num| numbers.is_exact(*num))
    }

    /// A bit, as a condition.
    pub(super) fn is_one(&mut self, bit: Term) -> Atom {
        super::flows::is_one(self.add(bit))
    }

    /// A number that a lookup of the segment binds.
    pub(super) fn bound(&mut self, lookup: LookupId, index: u8) -> TermId {
        self.add(Term::Bound(lookup, index))
    }

    fn add(&mut self, term: Term) -> TermId {
        let next = TermId(self.all.len() as u32);
        let id = *self.ids.entry(term.clone()).or_insert(next);
        if id == next {
            self.all.push(term);
        }
        id
    }

    pub(super) fn constant(&mut self, value: u128) -> TermId {
        self.add(Term::Const(value))
    }

    fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        self.add(Term::Binary(op, a, b))
    }

    fn slice(&mut self, of: TermId, low: u8, width: u8) -> TermId {
        self.add(Term::Slice { of, low, width })
    }

    /// Bits beside bits, the lowest first; of any number.
    pub(super) fn joined(&mut self, pieces: &[Piece], numbers: &Numbers) -> Result<TermId, String> {
        let mut pieces = pieces.to_vec();
        while pieces.len() > 1 && pieces.last().is_some_and(|piece| piece.of == Of::Number(0)) {
            pieces.pop();
        }
        let mut joined: Vec<Piece> = Vec::new();
        let mut all: Option<TermId> = None;
        // Bits of the frame that lie beside each other are one field.
        for piece in pieces {
            if let Some(last) = joined.last_mut()
                && let (Of::Data(low), Of::Data(high)) = (last.of, piece.of)
                && high + u32::from(piece.width) == low
                && u16::from(last.width) + u16::from(piece.width) <= 128
            {
                *last = Piece { width: last.width + piece.width, of: piece.of };
                continue;
            }
            joined.push(piece);
        }
        for piece in joined.iter().rev() {
            let term = match piece.of {
                Of::Number(value) => self.constant(value.into()),
                Of::Data(bit) => {
                    let bit = u16::try_from(bit).map_err(|_| "it is far behind".to_string())?;
                    self.add(Term::Input(Field::bits(Base::Data, bit, piece.width.into())))
                }
                Of::Num(num, low) => {
                    let term = self.term(num, numbers)?;
                    let most = numbers.most(num);
                    match low == 0 && most.checked_shr(piece.width.into()).unwrap_or(0) == 0 {
                        true => term,
                        false => self.slice(term, low, piece.width),
                    }
                }
            };
            all = Some(match all {
                None => term,
                Some(high) => self.add(Term::Concat { high, low: term, width: piece.width }),
            });
        }
        all.ok_or_else(|| "no bits".into())
    }

    /// A sum modulo 2^128, of which the number is the low 64 bits.
    fn sum(&mut self, num: Num, numbers: &Numbers) -> Result<TermId, String> {
        let Node::Sum(parts, constant) = numbers.node(num) else {
            return self.term(num, numbers);
        };
        let mut sum = self.constant((*constant).max(0) as u128);
        let mut is_empty = *constant <= 0;
        let by_sign = |negative: bool| parts.iter().filter(move |p| (p.1 < 0) == negative);
        for (part, factor) in by_sign(false).chain(by_sign(true)) {
            let mut term = self.term(*part, numbers)?;
            if factor.unsigned_abs() != 1 {
                let factor = self.constant(factor.unsigned_abs());
                term = self.binary(BinaryOp::Mul, term, factor);
            }
            sum = match (is_empty, *factor < 0) {
                (true, false) => term,
                (_, true) => self.binary(BinaryOp::Sub, sum, term),
                (false, false) => self.binary(BinaryOp::Add, sum, term),
            };
            is_empty &= *factor < 0;
        }
        if *constant < 0 {
            let less = self.constant(constant.unsigned_abs());
            sum = self.binary(BinaryOp::Sub, sum, less);
        }
        Ok(sum)
    }

    /// A number that may be negative as a term that wraps at 128 bits and not at 64, if it is one.
    fn signed(&mut self, num: Num, numbers: &Numbers) -> Result<Option<TermId>, String> {
        let (least, most) = numbers.range(num);
        let half = 1_i128 << 63;
        match self.known.contains(&num) || least >= 0 || least < -half || most >= half {
            true => Ok(None),
            false => self.sum(num, numbers).map(Some),
        }
    }

    /// What is a length, of which only the low 64 bits count, or all are beyond every frame.
    pub(super) fn length(&mut self, num: Num, numbers: &Numbers) -> Result<TermId, String> {
        match self.signed(num, numbers)? {
            Some(term) => Ok(term),
            None => self.term(num, numbers),
        }
    }

    /// A test of a number of 64 bits.
    pub(super) fn test(
        &mut self,
        num: Num,
        set: IntervalSet,
        numbers: &Numbers,
    ) -> Result<Atom, String> {
        let Some(term) = self.signed(num, numbers)? else {
            return Ok(Atom::Test(self.term(num, numbers)?, set.into()));
        };
        let (half, more) = (1_u128 << 63, u128::MAX - u128::from(u64::MAX));
        let negative = set.intersect(&IntervalSet::range(half, u64::MAX.into()));
        let moved = negative.intervals().iter().map(|(low, high)| (low + more, high + more));
        let set = set.intersect(&IntervalSet::range(0, half - 1));
        let all = set.union(&IntervalSet::from_intervals(moved.collect()));
        Ok(Atom::Test(term, all.into()))
    }

    /// A number as a term.
    pub(super) fn term(&mut self, num: Num, numbers: &Numbers) -> Result<TermId, String> {
        if let Some(term) = self.of.get(&num) {
            return Ok(*term);
        }
        let term = match numbers.node(num) {
            Node::Bits(pieces) => self.joined(pieces, numbers)?,
            Node::Length => self.add(Term::Input(meta::LEN)),
            Node::Bound(lookup, index, half) => {
                let lookup = self.lookups.checked_add(*lookup).ok_or("too many lookups")?;
                let bound = self.bound(LookupId(lookup), *index);
                self.slice(bound, 64 * half, 64)
            }
            Node::Leased { lookup, index, .. } => self.bound(LookupId(*lookup), *index),
            Node::Tick | Node::Slot(_) | Node::Until(_) | Node::Held(..) => {
                return Err("what tells whether there is a lease becomes a number".into());
            }
            Node::Sum(..) => {
                let sum = self.sum(num, numbers)?;
                match numbers.range(num) {
                    (0.., most) if most <= i128::from(u64::MAX) => sum,
                    _ => self.slice(sum, 0, 64),
                }
            }
            Node::Fold(of) => {
                let of = self.term(*of, numbers)?;
                let (low, high) = (self.slice(of, 0, 16), self.slice(of, 16, 48));
                self.binary(BinaryOp::Add, low, high)
            }
            Node::Ones(_) => {
                let (from, turned) = numbers.folded_from(num).ok_or("a sum of nothing")?;
                let of = self.term(from, numbers)?;
                let sum = self.add(Term::OnesSum(OnesSum::of(of)));
                match turned {
                    false => sum,
                    true => {
                        let (high, low) = (self.slice(sum, 0, 8), self.slice(sum, 8, 8));
                        self.add(Term::Concat { high, low, width: 8 })
                    }
                }
            }
            Node::Window { offset, length, at } => {
                let length = self.term(*length, numbers)?;
                let at = u16::from(*at);
                let byte = Field::bytes(Base::Data, offset + at, 1);
                let (byte, none) = (self.add(Term::Input(byte)), self.constant(0));
                let longer = IntervalSet::range(u128::from(at) + 1, u128::MAX);
                self.add(Term::Choose(Atom::Test(length, longer.into()), byte, none))
            }
            Node::Sum16 { offset, length } => {
                let length = self.length(*length, numbers)?;
                self.add(Term::Sum16 { offset: *offset, length })
            }
            Node::Op(op, a, b) => {
                let (op, x, y) = (*op, self.term(*a, numbers)?, self.term(*b, numbers)?);
                let wraps = matches!(op, Alu::Add | Alu::Sub | Alu::Mul | Alu::Shl);
                let op = match op {
                    Alu::Add => BinaryOp::Add,
                    Alu::Sub => BinaryOp::Sub,
                    Alu::Mul => BinaryOp::Mul,
                    Alu::Div => BinaryOp::Div,
                    Alu::Or => BinaryOp::Or,
                    Alu::And => BinaryOp::And,
                    Alu::Xor => BinaryOp::Xor,
                    Alu::Rem if numbers.range(*b).0 > 0 => BinaryOp::Rem,
                    Alu::Shl | Alu::Shr if numbers.most(*b) < 64 => match op {
                        Alu::Shl => BinaryOp::Shl,
                        _ => BinaryOp::Shr,
                    },
                    _ => return Err("a number is computed that is not understood".into()),
                };
                let all = self.binary(op, x, y);
                if wraps { self.slice(all, 0, 64) } else { all }
            }
        };
        self.of.insert(num, term);
        Ok(term)
    }
}

/// Eight bits of a wide term, from bit `low` on.
fn wide(program: &Program, term: TermId, low: u16, numbers: &mut Numbers) -> Option<Num> {
    match program.term(term) {
        Term::Input(field) if field.base == Base::Data => {
            let width = field.width.saturating_sub(low).min(8);
            if width == 0 {
                return Some(numbers.number(0));
            }
            let bit = field.offset + field.width - low - width;
            Some(numbers.data(bit.into(), width as u8))
        }
        _ => None,
    }
}

/// What a term of the segment is as a number of 64 bits, if it is one and instructions compute it
/// without deciding anything.
fn meaning(
    program: &Program,
    term: &Term,
    known: &[Option<Num>],
    numbers: &mut Numbers,
) -> Option<Num> {
    let any = |term: &TermId| known.get(term.0 as usize).copied().flatten();
    if let Term::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = term {
        // Sums that may be less than nothing are parts of others.
        let (a, b) = (any(a)?, any(b)?);
        return Some(numbers.apply(if *op == BinaryOp::Add { Alu::Add } else { Alu::Sub }, a, b));
    }
    let fits = |numbers: &Numbers, num: Num| numbers.is_exact(num).then_some(num);
    let exact: Vec<Option<Num>> =
        term.operands().iter().map(|term| fits(numbers, any(term)?)).collect();
    let of = |wanted: &TermId| {
        let at = term.operands().iter().position(|term| term == wanted)?;
        exact.get(at).copied().flatten()
    };
    match term {
        Term::Const(value) => Some(numbers.number(u64::try_from(*value).ok()?)),
        Term::Input(field) if *field == meta::LEN => Some(numbers.intern(Node::Length)),
        Term::Input(field) if field.base == Base::Data && field.width <= 64 => {
            Some(numbers.data(field.offset.into(), field.width as u8))
        }
        Term::Sum16 { offset, length } => {
            let length = of(length)?;
            let Some(bytes) = numbers.as_number(length) else {
                return Some(numbers.intern(Node::Sum16 { offset: *offset, length }));
            };
            if bytes > 1024 {
                return None;
            }
            let mut sum = numbers.number(0);
            for at in (0..bytes as u32).step_by(2) {
                let bit = 8 * (u32::from(*offset) + at);
                let word = match u64::from(at) + 1 < bytes {
                    true => numbers.data(bit, 16),
                    false => {
                        let byte = numbers.data(bit, 8);
                        let by = numbers.number(8);
                        numbers.apply(Alu::Shl, byte, by)
                    }
                };
                sum = numbers.sum(sum, word, 1);
            }
            Some(numbers.ones(sum))
        }
        Term::Binary(op, a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            let op = match op {
                BinaryOp::Mul => Alu::Mul,
                BinaryOp::And => Alu::And,
                BinaryOp::Or => Alu::Or,
                BinaryOp::Xor => Alu::Xor,
                BinaryOp::Div => Alu::Div,
                BinaryOp::Rem if numbers.range(b).0 > 0 => Alu::Rem,
                BinaryOp::Shr if numbers.as_number(b)? < 64 => Alu::Shr,
                BinaryOp::Shl if numbers.most(b) < u64::from(numbers.most(a).leading_zeros()) => {
                    Alu::Shl
                }
                _ => return None,
            };
            let num = numbers.apply(op, a, b);
            // What wraps at 64 bits does not at 128.
            let wraps = matches!(op, Alu::Mul) && matches!(numbers.node(num), Node::Op(..));
            fits(numbers, num).filter(|_| !wraps)
        }
        Term::Slice { of: whole, low, width } => {
            if let Some(num) = of(whole) {
                let width = (*width).min(64_u8.checked_sub(*low)?);
                return Some(numbers.slice(num, *low, width));
            }
            let Term::Input(field) = program.term(*whole) else { return None };
            let (low, width) = (u16::from(*low), u16::from(*width));
            if field.base != Base::Data || width > 64 || low + width > field.width {
                return None;
            }
            let bit = field.offset + field.width - low - width;
            Some(numbers.data(bit.into(), width as u8))
        }
        Term::Concat { high, low, width } => {
            let (high, low) = (of(high)?, of(low)?);
            if *width >= 64
                || numbers.most(high).checked_shl((*width).into())? >> width != numbers.most(high)
            {
                return None;
            }
            let by = numbers.number((*width).into());
            let high = numbers.apply(Alu::Shl, high, by);
            Some(numbers.apply(Alu::Or, high, low))
        }
        Term::OnesSum(sum) => {
            let mut all = numbers.number(sum.constant.into());
            for part in &sum.plus {
                all = numbers.sum(all, of(part)?, 1);
            }
            let word = numbers.number(0xffff);
            for part in &sum.minus {
                let part = of(part)?;
                if numbers.most(part) > 0xffff {
                    return None;
                }
                all = numbers.sum(all, word, 1);
                all = numbers.sum(all, part, -1);
            }
            let all = fits(numbers, all)?;
            let folded = numbers.ones(all);
            Some(if sum.complement { numbers.sum(word, folded, -1) } else { folded })
        }
        Term::Hash(function, parts) => {
            let ir::hash::HashFunction::MixedFnv1a = function;
            let mut hash = numbers.number(0xcbf2_9ce4_8422_2325);
            let prime = numbers.number(0x0000_0100_0000_01b3);
            for part in parts {
                for byte in (0..16).rev() {
                    let byte = match of(part) {
                        Some(_) if byte >= 8 => numbers.number(0),
                        Some(part) => numbers.slice(part, 8 * byte as u8, 8),
                        None => wide(program, *part, 8 * byte, numbers)?,
                    };
                    hash = numbers.apply(Alu::Xor, hash, byte);
                    hash = numbers.apply(Alu::Mul, hash, prime);
                }
            }
            let half = |numbers: &mut Numbers, hash| {
                let upper = numbers.slice(hash, 32, 32);
                numbers.apply(Alu::Xor, hash, upper)
            };
            let mixed = half(numbers, hash);
            let factor = numbers.number(0xd6e8_feb8_6659_fd93);
            let mixed = numbers.apply(Alu::Mul, mixed, factor);
            Some(half(numbers, mixed))
        }
        Term::Bound(lookup, index) if program.flows(*lookup).is_some() => {
            let width = program.bound_width(*lookup, *index);
            let width = u8::try_from(width).ok().filter(|width| *width <= 64)?;
            Some(numbers.intern(Node::Leased { lookup: lookup.0, index: *index, width }))
        }
        _ => None,
    }
}
