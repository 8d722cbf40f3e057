//! Numbers that a device's program computes, as terms of a program.

use std::collections::{HashMap, HashSet};

use ir::field::meta;
use ir::model::BinaryOp;
use ir::program::numbers::Numbers;
use ir::program::{Atom, OnesSum, Term, TermId};
use ir::{Base, Field, IntervalSet};

/// Terms: those of the segment first, so that what is recognised is called as it is there.
pub(crate) struct Terms {
    all: Vec<Term>,
    known: HashMap<Term, TermId>,
    /// What lookups found that is never 0.
    never_zero: HashSet<TermId>,
    numbers: Vec<Numbers>,
}

/// So many ones.
pub(crate) fn ones(width: u16) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(width.min(128))).unwrap_or(0)
}

impl Terms {
    #[allow(clippy::mutable_key_type, reason = "what a range map caches is no part of what it is")]
    pub(crate) fn new(all: Vec<Term>) -> Self {
        let mut terms = Self {
            all: Vec::new(),
            known: HashMap::new(),
            never_zero: HashSet::new(),
            numbers: Vec::new(),
        };
        for term in all {
            let id = TermId(terms.all.len() as u32);
            terms.known.entry(term.clone()).or_insert(id);
            terms.push(term);
        }
        terms
    }

    fn push(&mut self, term: Term) {
        let numbers = match &term {
            Term::Input(field) if *field == meta::LEN => Numbers::of_width(32),
            term => Numbers::of(term, |operand| self.numbers[operand.0 as usize]),
        };
        self.numbers.push(numbers);
        self.all.push(term);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn add(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.known.get(&term) {
            return id;
        }
        let id = TermId(self.all.len() as u32);
        self.known.insert(term.clone(), id);
        self.push(term);
        id
    }

    pub(crate) fn term(&self, id: TermId) -> &Term {
        &self.all[id.0 as usize]
    }

    pub(crate) fn into_all(self) -> Vec<Term> {
        self.all
    }

    pub(crate) fn value(&self, id: TermId) -> Option<u128> {
        if let Term::Const(value) = self.term(id) { Some(*value) } else { None }
    }

    /// The least and the greatest that a number can be.
    pub(crate) fn bounds(&self, id: TermId) -> (u128, u128) {
        self.numbers[id.0 as usize].bounds
    }

    pub(crate) fn constant(&mut self, value: u128) -> TermId {
        self.add(Term::Const(value))
    }

    pub(crate) fn data(&mut self, bit: u16, width: u16) -> TermId {
        self.add(Term::Input(Field::bits(Base::Data, bit, width)))
    }

    /// The bits of a number from `low` on.
    pub(crate) fn slice(&mut self, of: TermId, low: u16, width: u16) -> TermId {
        match self.term(of).clone() {
            Term::Const(value) => {
                self.constant(value.checked_shr(low.into()).unwrap_or(0) & ones(width))
            }
            Term::Input(field) if field.base == Base::Data => match field.width.checked_sub(low) {
                None | Some(0) => self.constant(0),
                Some(left) => {
                    let width = width.min(left);
                    self.data(field.offset + left - width, width)
                }
            },
            Term::Slice { of, low: from, width: own } => {
                let width = width.min(u16::from(own).saturating_sub(low));
                if width == 0 {
                    self.constant(0)
                } else {
                    self.slice(of, low + u16::from(from), width)
                }
            }
            Term::Concat { high, low: tail, width: own } => {
                let own = u16::from(own);
                if low >= own {
                    return self.slice(high, low - own, width);
                }
                if low + width <= own {
                    return self.slice(tail, low, width);
                }
                let (high, tail) =
                    (self.slice(high, 0, low + width - own), self.slice(tail, low, own - low));
                self.concat(high, tail, own - low)
            }
            _ if low == 0 && self.bounds(of).1 <= ones(width) => of,
            _ => self.add(Term::Slice {
                of,
                low: low.min(127) as u8,
                width: width.min(128 - low.min(127)) as u8,
            }),
        }
    }

    /// One number in front of another of so many bits.
    pub(crate) fn concat(&mut self, high: TermId, low: TermId, width: u16) -> TermId {
        if let (Some(high), Some(low)) = (self.value(high), self.value(low)) {
            return self.constant(high.checked_shl(width.into()).unwrap_or(0) | low);
        }
        if self.value(high) == Some(0) {
            return low;
        }
        // Bits of the packet that lie beside each other are one field.
        if let (Term::Input(a), Term::Input(b)) = (self.term(high), self.term(low))
            && a.base == Base::Data
            && b.base == Base::Data
            && a.offset + a.width == b.offset
            && b.width == width
            && a.width + b.width <= 128
        {
            let (bit, width) = (a.offset, a.width + b.width);
            return self.data(bit, width);
        }
        if let (Term::Concat { high: first, low: second, width: own }, _) =
            (self.term(high).clone(), 0)
        {
            let joined = self.concat_inputs(second, low, width);
            if let Some(joined) = joined {
                return self.concat(first, joined, width + u16::from(own));
            }
        }
        self.add(Term::Concat { high, low, width: width as u8 })
    }

    fn concat_inputs(&mut self, high: TermId, low: TermId, width: u16) -> Option<TermId> {
        match (self.term(high), self.term(low)) {
            (Term::Input(a), Term::Input(b))
                if a.offset + a.width == b.offset
                    && b.width == width
                    && a.width + b.width <= 128 =>
            {
                let (bit, width) = (a.offset, a.width + b.width);
                Some(self.data(bit, width))
            }
            (Term::Const(_), Term::Const(_)) => Some(self.concat(high, low, width)),
            _ => None,
        }
    }

    /// A number of so many bits that is computed from two.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId, width: u16) -> TermId {
        if let (Some(a), Some(b)) = (self.value(a), self.value(b)) {
            let value = op.apply(a, b) & ones(width);
            return self.constant(value);
        }
        match (op, self.value(b)) {
            (BinaryOp::Shr, Some(by)) if by < 128 => {
                let by = by as u16;
                if by >= width {
                    return self.constant(0);
                }
                return self.slice(a, by, width - by);
            }
            (BinaryOp::Shl, Some(by)) if by < 128 => {
                let by = by as u16;
                if by >= width {
                    return self.constant(0);
                }
                let (a, zero) = (self.slice(a, 0, width - by), self.constant(0));
                return if by == 0 { a } else { self.concat(a, zero, by) };
            }
            (BinaryOp::And, Some(mask)) if mask > 0 && mask & mask.wrapping_add(1) == 0 => {
                return self.slice(a, 0, (128 - mask.leading_zeros()) as u16);
            }
            (BinaryOp::Add | BinaryOp::Sub, Some(0)) => return a,
            _ => {}
        }
        if op == BinaryOp::Add
            && let Some(folded) = self.folded(a, b)
        {
            return folded;
        }
        let all = self.add(Term::Binary(op, a, b));
        self.slice(all, 0, width)
    }

    /// The whole of a number whose lower 16 bits and whose higher bits these are.
    fn halves(&self, low: TermId, high: TermId) -> Option<TermId> {
        match (self.term(low), self.term(high)) {
            (Term::Slice { of: a, low: 0, width: 16 }, Term::Slice { of: b, low: 16, .. })
                if a == b =>
            {
                Some(*a)
            }
            _ => None,
        }
    }

    /// A sum whose carries are added for the second time: there are none left.
    fn folded(&mut self, a: TermId, b: TermId) -> Option<TermId> {
        let once = self.halves(a, b)?;
        let Term::Binary(BinaryOp::Add, low, high) = self.term(once) else { return None };
        let whole = self.halves(*low, *high)?;
        if self.bounds(whole).1 > u32::MAX.into() {
            return None;
        }
        let mut sum = OnesSum::default();
        let (mut constant, mut waiting) = (0_u128, vec![whole]);
        while let Some(of) = waiting.pop() {
            match self.term(of).clone() {
                Term::Const(value) => constant += value,
                Term::Binary(BinaryOp::Add, a, b) => waiting.extend([b, a]),
                Term::Binary(BinaryOp::Xor, a, b)
                    if self.value(b) == Some(0xffff) && self.bounds(a).1 <= 0xffff =>
                {
                    sum.minus.push(a);
                }
                _ => sum.plus.push(of),
            }
        }
        match u16::try_from(constant) {
            Ok(constant) => sum.constant = constant,
            Err(_) => sum.plus.push(self.constant(constant)),
        }
        sum.plus.sort_unstable();
        sum.minus.sort_unstable();
        Some(self.add(Term::OnesSum(sum)))
    }

    /// All bits of a number turned round.
    pub(crate) fn invert(&mut self, of: TermId, width: u16) -> TermId {
        match self.term(of).clone() {
            Term::Const(value) => self.constant(!value & ones(width)),
            Term::OnesSum(sum) if width == 16 => {
                self.add(Term::OnesSum(OnesSum { complement: !sum.complement, ..sum }))
            }
            _ => {
                let all = self.constant(ones(width));
                self.add(Term::Binary(BinaryOp::Xor, of, all))
            }
        }
    }

    /// One of two numbers.
    pub(crate) fn choose(&mut self, atom: Atom, yes: TermId, no: TermId) -> TermId {
        if yes == no {
            return yes;
        }
        if let Atom::Test(of, set) = &atom
            && *of == no
            && **set == IntervalSet::single(0)
            && self.value(yes) == Some(0xffff)
        {
            return self.add(Term::NonZero(no));
        }
        self.add(Term::Choose(atom, yes, no))
    }
}

impl Terms {
    /// Numbers of so many bits beside each other, as words of 16 bits.
    pub(crate) fn words(&mut self, numbers: &[(u16, TermId)]) -> Option<Vec<TermId>> {
        let mut words = Vec::new();
        let (mut pending, mut have): (Option<TermId>, u16) = (None, 0);
        for &(width, number) in numbers {
            let mut left = width;
            while left > 0 {
                let count = left.min(16 - have);
                left -= count;
                let part = self.slice(number, left, count);
                let all = match pending {
                    Some(high) => self.concat(high, part, count),
                    None => part,
                };
                (pending, have) = (Some(all), have + count);
                if have == 16 {
                    words.push(all);
                    (pending, have) = (None, 0);
                }
            }
        }
        pending.is_none().then_some(words)
    }

    /// The checksum over words. What was left of one before is taken apart where the sum cannot be 0: it is the same then.
    pub(crate) fn checksum(&mut self, words: &[TermId]) -> TermId {
        let constants: u128 = words.iter().filter_map(|of| self.value(*of)).sum();
        let mut sum = OnesSum { complement: true, ..OnesSum::default() };
        let is_positive = constants > 0;
        for &word in words {
            match self.term(word) {
                Term::Const(_) => {}
                Term::OnesSum(OnesSum { complement: true, plus, minus, constant: 0 })
                    if is_positive && minus.is_empty() =>
                {
                    sum.minus.extend(plus);
                }
                _ => sum.plus.push(word),
            }
        }
        if is_positive {
            sum.constant = ((constants - 1) % 0xffff + 1) as u16;
            // What is taken off and added is neither.
            for at in (0..sum.plus.len()).rev() {
                if let Some(same) = sum.minus.iter().position(|of| *of == sum.plus[at]) {
                    sum.minus.swap_remove(same);
                    sum.plus.swap_remove(at);
                }
            }
        }
        // A multiple of 0xffff makes no difference to a sum that is not 0 without it.
        if sum.constant == 0xffff && self.is_positive(&sum.plus) {
            sum.constant = 0;
        }
        sum.plus.sort_unstable();
        sum.minus.sort_unstable();
        self.add(Term::OnesSum(sum))
    }

    /// Takes for granted that a number, which a lookup found, is never 0.
    pub(crate) fn is_never_zero(&mut self, of: TermId) {
        self.never_zero.insert(of);
    }

    /// Whether words hold all of a number that is never 0.
    fn is_positive(&self, words: &[TermId]) -> bool {
        let has = |of: TermId, from: u8| {
            let is = |word: &&TermId| {
                matches!(self.term(**word), Term::Slice { of: whole, low, width: 16 }
                    if *whole == of && *low == from)
            };
            words.iter().any(|word| is(&word))
        };
        self.never_zero.iter().any(|of| match self.bounds(*of).1 {
            0..=0xffff => words.contains(of) || has(*of, 0),
            0x1_0000..=0xffff_ffff => has(*of, 0) && has(*of, 16),
            _ => false,
        })
    }
}
