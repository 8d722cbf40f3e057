//! Numbers and conditions as instructions.

use std::collections::BTreeSet;

use ir::layout::Facts;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, OnesSum, Program, Term, TermId};
use ir::{Base, Field, IntervalSet};

use super::code::{Code, Container, Label, containers};
use crate::Lack;
use crate::headers::{self, Instance, Placed};
use crate::number::{Rows, evaluate, ones};

/// Comparisons that one number may take.
const MOST_COMPARISONS: usize = 64;

/// Widths of numbers that are computed with.
pub(super) const WORD: u16 = 64;

/// Bits of a container.
pub(super) struct Piece<'a> {
    pub(super) placed: &'a Placed,
    pub(super) container: Container,
    /// The lowest bit, and how many.
    pub(super) low: u16,
    pub(super) width: u16,
}

impl Piece<'_> {
    /// The container as an operand.
    pub(super) fn operand(&self) -> String {
        format!("h.{}.{}", self.placed.instance.name(), self.container.name)
    }
}

/// The pieces that some bits of packets are, the highest first; `None` if they lie in no header.
pub(super) fn pieces(placed: &[Placed], bit: i32, width: u16) -> Option<Vec<Piece<'_>>> {
    let (mut at, end) = (bit, bit + i32::from(width));
    let mut found = Vec::new();
    while at < end {
        let inside =
            |placed: &&Placed| (placed.bit..placed.bit + placed.instance.bits()).contains(&at);
        let placed = placed.iter().find(inside)?;
        let around = |of: &Container| {
            let from = placed.bit + of.bit;
            (from..from + i32::from(of.width)).contains(&at)
        };
        let container = containers(placed.instance).into_iter().find(around)?;
        let until = placed.bit + container.bit + i32::from(container.width);
        let stop = until.min(end);
        let (low, width) = ((until - stop) as u16, (stop - at) as u16);
        found.push(Piece { placed, container, low, width });
        at = stop;
    }
    Some(found)
}

/// The metadata that keeps what a lookup found.
pub(super) fn found(lookup: LookupId, index: u8) -> String {
    format!("found{}_{index}", lookup.0)
}

/// Writes instructions for a step's numbers.
pub(super) struct Numbers<'a> {
    pub(super) program: &'a Program,
    pub(super) placed: &'a [Placed],
    /// What is known of packets that come to the step.
    pub(super) facts: Option<&'a Facts>,
    pub(super) code: &'a mut Code,
    /// Headers that were read.
    pub(super) read: BTreeSet<Instance>,
}

impl Numbers<'_> {
    pub(super) fn lack(&self, term: TermId) -> Lack {
        headers::lack(self.program, self.placed, term)
    }

    /// A number, if it is a constant.
    pub(super) fn value(&self, term: TermId) -> Option<u128> {
        match self.program.term(term) {
            Term::Input(_) | Term::Bound(..) => None,
            Term::Const(value) => Some(*value),
            _ => evaluate(self.program, term, &Rows::new(), None),
        }
    }

    /// Headers that were read and need not be there, by what is known.
    pub(super) fn unsure(&self) -> Vec<Instance> {
        let is_known = |of: &Placed| {
            let Some(facts) = self.facts else { return true };
            let mut needs = of.needs.iter().filter(|need| need.0 != ir::field::meta::LEN);
            needs.all(|need| headers::is_implied(self.program, facts, need))
        };
        let unsure =
            self.placed.iter().filter(|of| self.read.contains(&of.instance) && !is_known(of));
        unsure.map(|of| of.instance).collect()
    }

    /// What is 128 bits wide as one operand.
    pub(super) fn operand(&mut self, term: TermId) -> Option<String> {
        match *self.program.term(term) {
            Term::Input(field) if field.base == Base::Data => {
                self.whole(field.offset.into(), field.width)
            }
            Term::Bound(lookup, index) if self.program.flows(lookup).is_none() => {
                let width = self.program.bound_width(lookup, index);
                (width > WORD).then(|| format!("m.{}", found(lookup, index)))
            }
            _ => None,
        }
    }

    /// The container that some bits of the packet are.
    pub(super) fn whole(&mut self, bit: i32, width: u16) -> Option<String> {
        let all = pieces(self.placed, bit, width)?;
        let [piece] = &all[..] else { return None };
        let is_whole = piece.width == piece.container.width;
        is_whole.then(|| {
            self.read.insert(piece.placed.instance);
            piece.operand()
        })
    }

    /// Some bits of the packet, in the number `to`.
    pub(super) fn data(&mut self, bit: i32, width: u16, to: usize) -> Result<(), Lack> {
        let Some(all) = pieces(self.placed, bit, width) else {
            return Err(Lack::Field(Field::bits(Base::Data, bit.max(0) as u16, width).to_string()));
        };
        for (at, piece) in all.into_iter().enumerate() {
            let Piece { low, width, .. } = piece;
            if piece.container.width > WORD {
                return Err(Lack::Match(format!("a part of {}", piece.operand()), None));
            }
            self.read.insert(piece.placed.instance);
            let part = self.code.number(to + usize::from(at > 0))?;
            self.code.run(format!("mov {part} {}", piece.operand()));
            self.cut(&part, low, width, piece.container.width);
            if at > 0 {
                self.append(to, width)?;
            }
        }
        Ok(())
    }

    /// Leaves some bits of a number of so many.
    fn cut(&mut self, of: &str, low: u16, width: u16, all: u16) {
        if low > 0 {
            self.code.run(format!("shr {of} {low:#x}"));
        }
        if low + width < all {
            self.code.run(format!("and {of} {:#x}", ones(width.into())));
        }
    }

    /// Puts the number behind `to` behind its bits.
    pub(super) fn append(&mut self, to: usize, width: u16) -> Result<(), Lack> {
        let (high, low) = (self.code.number(to)?, self.code.number(to + 1)?);
        self.code.run(format!("shl {high} {width:#x}"));
        self.code.run(format!("or {high} {low}"));
        Ok(())
    }

    pub(super) fn set(&mut self, to: usize, value: u128) -> Result<(), Lack> {
        let to = self.code.number(to)?;
        self.code.run(format!("mov {to} {value:#x}"));
        Ok(())
    }

    /// Some bits of a number, at most 64, in the number `to`. Those behind it may be used.
    pub(super) fn bits(
        &mut self,
        term: TermId,
        low: u16,
        width: u16,
        to: usize,
    ) -> Result<(), Lack> {
        if let Some(value) = self.value(term) {
            let value = value.checked_shr(low.into()).unwrap_or(0) & ones(width.into());
            return match value <= u64::MAX.into() {
                true => self.set(to, value),
                false => Err(Lack::Number("a number of that size")),
            };
        }
        let own = self.program.width(term).max(1);
        if low >= own {
            return self.set(to, 0);
        }
        let width = width.min(own - low);
        if width > WORD {
            return Err(self.lack_of_size(term));
        }
        match self.program.term(term).clone() {
            Term::Input(field) if field.base == Base::Data => {
                let bit = i32::from(field.offset + field.width - low - width);
                self.data(bit, width, to).map_err(|lack| match lack {
                    Lack::Field(_) => self.lack(term),
                    lack => lack,
                })
            }
            Term::Bound(lookup, index) if self.program.flows(lookup).is_none() => {
                if own > WORD {
                    return Err(Lack::Match("a part of what a lookup found".into(), None));
                }
                let to = self.code.number(to)?;
                self.code.run(format!("mov {to} m.{}", found(lookup, index)));
                self.cut(&to, low, width, own);
                Ok(())
            }
            Term::Slice { of, low: from, .. } => self.bits(of, low + u16::from(from), width, to),
            Term::Concat { high, low: tail, width: own } => {
                let own = u16::from(own);
                if low >= own {
                    return self.bits(high, low - own, width, to);
                }
                if low + width <= own {
                    return self.bits(tail, low, width, to);
                }
                self.bits(high, 0, low + width - own, to)?;
                self.bits(tail, low, own - low, to + 1)?;
                self.append(to, own - low)
            }
            Term::Binary(op, a, b) => self.binary(term, op, (a, b), (low, width), to),
            Term::OnesSum(sum) => {
                self.ones_sum(&sum, to)?;
                let to = self.code.number(to)?;
                self.cut(&to, low, width, 16);
                Ok(())
            }
            Term::NonZero(sum) => {
                self.bits(sum, 0, 16, to)?;
                let (to, end) = (self.code.number(to)?, self.code.label());
                self.code.jump("jmpneq", end, format!("{to} 0x0"));
                self.code.run(format!("mov {to} 0xffff"));
                self.code.place(end);
                self.cut(&to, low, width, 16);
                Ok(())
            }
            Term::Choose(atom, yes, no) => {
                self.bits(no, low, width, to)?;
                self.bits(yes, low, width, to + 1)?;
                let end = self.code.label();
                self.unless(&atom, end, to + 2)?;
                let (yes, to) = (self.code.number(to + 1)?, self.code.number(to)?);
                self.code.run(format!("mov {to} {yes}"));
                self.code.place(end);
                Ok(())
            }
            _ => Err(self.lack(term)),
        }
    }

    fn lack_of_size(&self, term: TermId) -> Lack {
        match self.lack(term) {
            Lack::Field(_) | Lack::Found => {
                Lack::Match("a number of more than 64 bits".into(), None)
            }
            lack => lack,
        }
    }

    fn binary(
        &mut self,
        term: TermId,
        op: BinaryOp,
        (a, b): (TermId, TermId),
        (low, width): (u16, u16),
        to: usize,
    ) -> Result<(), Lack> {
        let by = self.value(b).map(|by| u16::try_from(by).unwrap_or(128).min(128));
        match (op, by) {
            (BinaryOp::Shr, Some(by)) => return self.bits(a, low + by, width, to),
            (BinaryOp::Shl, Some(by)) if low >= by => return self.bits(a, low - by, width, to),
            (BinaryOp::Shl, Some(by)) if low + width <= by => return self.set(to, 0),
            (BinaryOp::Shl, Some(by)) => {
                self.bits(a, 0, low + width - by, to)?;
                let to = self.code.number(to)?;
                self.code.run(format!("shl {to} {:#x}", by - low));
                return Ok(());
            }
            _ => {}
        }
        let (name, carries) = match op {
            BinaryOp::Add => ("add", true),
            BinaryOp::Sub => ("sub", true),
            BinaryOp::And => ("and", false),
            BinaryOp::Or => ("or", false),
            BinaryOp::Xor => ("xor", false),
            _ => return Err(self.lack(term)),
        };
        let (from, count) = if carries { (0, low + width) } else { (low, width) };
        if count > WORD {
            return Err(self.lack_of_size(term));
        }
        self.bits(a, from, count, to)?;
        let operand = match self.value(b) {
            Some(value) => {
                let value = value.checked_shr(from.into()).unwrap_or(0);
                format!("{:#x}", value & ones(count.into()))
            }
            None => {
                self.bits(b, from, count, to + 1)?;
                self.code.number(to + 1)?
            }
        };
        let to = self.code.number(to)?;
        self.code.run(format!("{name} {to} {operand}"));
        if carries {
            self.cut(&to, low, width, WORD);
        }
        Ok(())
    }

    fn ones_sum(&mut self, sum: &OnesSum, to: usize) -> Result<(), Lack> {
        let lack = Lack::Number("a ones' complement sum");
        let mut most = u128::from(sum.constant);
        let all = sum
            .plus
            .iter()
            .map(|term| (term, false))
            .chain(sum.minus.iter().map(|term| (term, true)));
        self.set(to, sum.constant.into())?;
        for (&term, is_minus) in all {
            let width = self.program.width(term).max(1);
            if width > 32 || is_minus && width > 16 {
                return Err(lack);
            }
            self.bits(term, 0, width, to + 1)?;
            let (all, part) = (self.code.number(to)?, self.code.number(to + 1)?);
            if is_minus {
                self.code.run(format!("xor {part} 0xffff"));
            }
            self.code.run(format!("add {all} {part}"));
            most += ones(if is_minus { 16 } else { width.into() });
        }
        if most > u32::MAX.into() {
            return Err(lack);
        }
        self.fold(to)?;
        if sum.complement {
            let to = self.code.number(to)?;
            self.code.run(format!("xor {to} 0xffff"));
        }
        Ok(())
    }

    /// Adds the carries of a number of at most 32 bits.
    fn fold(&mut self, to: usize) -> Result<(), Lack> {
        let (all, carries) = (self.code.number(to)?, self.code.number(to + 1)?);
        for _ in 0..2 {
            self.code.run(format!("mov {carries} {all}"));
            self.code.run(format!("shr {carries} 0x10"));
            self.code.run(format!("and {all} 0xffff"));
            self.code.run(format!("add {all} {carries}"));
        }
        Ok(())
    }

    /// The IPv4 header whose checksum a number is the sum for.
    pub(super) fn verified(&self, term: TermId) -> Option<&Placed> {
        let Term::Sum16 { offset, length } = self.program.term(term) else { return None };
        let ip = self.placed.iter().find(|placed| placed.instance == Instance::Ipv4)?;
        (ip.bit == 8 * i32::from(*offset) && self.value(*length) == Some(20)).then_some(ip)
    }

    /// A whole number of at most 64 bits in the number 0; how many bits it has.
    pub(super) fn number(&mut self, term: TermId) -> Result<u16, Lack> {
        if let Some(ip) = self.verified(term) {
            let bit = ip.bit;
            self.set(0, 0)?;
            for word in 0..10 {
                self.data(bit + 16 * word, 16, 1)?;
                let (all, part) = (self.code.number(0)?, self.code.number(1)?);
                self.code.run(format!("add {all} {part}"));
            }
            self.fold(0)?;
            return Ok(16);
        }
        let width = self.program.width(term).max(1);
        self.bits(term, 0, width, 0)?;
        Ok(width)
    }

    /// Goes elsewhere if a condition does not hold that takes one comparison.
    fn unless(&mut self, atom: &Atom, to: Label, from: usize) -> Result<(), Lack> {
        let (term, op, than) = match atom {
            Atom::Compare(op, a, b) => {
                let (x, y) = (self.program.width(*a).max(1), self.program.width(*b).max(1));
                self.bits(*a, 0, x, from)?;
                self.bits(*b, 0, y, from + 1)?;
                let (a, b) = (self.code.number(from)?, self.code.number(from + 1)?);
                let (name, a, b) = match op {
                    CompareOp::Eq => ("jmpneq", a, b),
                    CompareOp::Ne => ("jmpeq", a, b),
                    CompareOp::Le => ("jmpgt", a, b),
                    CompareOp::Ge => ("jmplt", a, b),
                    // One comparison has no such form.
                    CompareOp::Lt | CompareOp::Gt => return Err(Lack::Comparison),
                };
                self.code.jump(name, to, format!("{a} {b}"));
                return Ok(());
            }
            Atom::Test(term, set) => {
                let width = self.program.width(*term).max(1);
                let rest = set.complement(width);
                let most = ones(width.into());
                match (
                    set.as_single(),
                    rest.as_single(),
                    IntervalSet::min(set),
                    IntervalSet::max(set),
                ) {
                    (Some(value), ..) => (*term, "jmpneq", value),
                    (_, Some(value), ..) => (*term, "jmpeq", value),
                    (.., Some(0), Some(high)) if set.intervals().len() == 1 => {
                        (*term, "jmpgt", high)
                    }
                    (.., Some(low), Some(high)) if set.intervals().len() == 1 && high >= most => {
                        (*term, "jmplt", low)
                    }
                    _ => return Err(Lack::Match("a number".into(), Some(set.intervals().len()))),
                }
            }
        };
        let width = self.program.width(term).max(1);
        self.bits(term, 0, width, from)?;
        let number = self.code.number(from)?;
        self.code.jump(op, to, format!("{number} {than:#x}"));
        Ok(())
    }

    /// Goes where a condition says.
    pub(super) fn branch(&mut self, atom: &Atom, yes: Label, no: Label) -> Result<(), Lack> {
        match atom {
            Atom::Test(term, set) => {
                let width = self.number(*term)?;
                self.decide(width, &[(set, yes)], no)
            }
            Atom::Compare(op, a, b) => {
                let (x, y) = (self.program.width(*a).max(1), self.program.width(*b).max(1));
                self.bits(*a, 0, x, 0)?;
                self.bits(*b, 0, y, 1)?;
                let (a, b) = (self.code.number(0)?, self.code.number(1)?);
                let (name, then, otherwise) = match op {
                    CompareOp::Eq => ("jmpeq", yes, no),
                    CompareOp::Ne => ("jmpeq", no, yes),
                    CompareOp::Lt => ("jmplt", yes, no),
                    CompareOp::Ge => ("jmplt", no, yes),
                    CompareOp::Gt => ("jmpgt", yes, no),
                    CompareOp::Le => ("jmpgt", no, yes),
                };
                self.code.jump(name, then, format!("{a} {b}"));
                self.code.go(otherwise);
                Ok(())
            }
        }
    }

    /// Goes where the number 0, of so many bits, says.
    pub(super) fn decide(
        &mut self,
        width: u16,
        cases: &[(&IntervalSet, Label)],
        otherwise: Label,
    ) -> Result<(), Lack> {
        let of = self.code.number(0)?;
        let most = ones(width.into());
        // A mask takes two instructions, whatever many intervals it is.
        if let [(set, to)] = cases
            && set.intervals().len() > 2
            && let Some((value, mask)) = set.as_masked(width)
        {
            self.code.run(format!("and {of} {mask:#x}"));
            self.code.jump("jmpeq", *to, format!("{of} {value:#x}"));
            self.code.go(otherwise);
            return Ok(());
        }
        let mut ranges: Vec<(u128, u128, Label)> = Vec::new();
        for (set, to) in cases {
            let inside = set.intervals().iter().filter(|range| range.0 <= most);
            ranges.extend(inside.map(|(low, high)| (*low, (*high).min(most), *to)));
        }
        if ranges.len() > MOST_COMPARISONS {
            return Err(Lack::Match("a number".into(), Some(ranges.len())));
        }
        ranges.sort_unstable();
        let mut parts: Vec<(u128, Label)> = Vec::new();
        let mut next = 0;
        for (low, high, to) in ranges {
            if low > next {
                parts.push((next, otherwise));
            }
            parts.push((low, to));
            next = high + 1;
        }
        if next <= most {
            parts.push((next, otherwise));
        }
        parts.dedup_by(|later, earlier| later.1 == earlier.1);
        self.parts(&of, &parts, most);
        Ok(())
    }

    /// Goes where the part of its numbers leads that a number is in; parts begin at these numbers.
    fn parts(&mut self, of: &str, parts: &[(u128, Label)], most: u128) {
        match parts {
            [] => {}
            [(_, to)] => self.code.go(*to),
            // One number among others.
            [(_, a), (from, b), (next, c)] if a == c && *next == from + 1 => {
                self.code.jump("jmpeq", *b, format!("{of} {from:#x}"));
                self.code.go(*a);
            }
            [(0, a), (1, b)] => {
                self.code.jump("jmpeq", *a, format!("{of} 0x0"));
                self.code.go(*b);
            }
            [(_, a), (from, b)] if *from == most => {
                self.code.jump("jmpeq", *b, format!("{of} {from:#x}"));
                self.code.go(*a);
            }
            [(_, a), (from, b)] => {
                self.code.jump("jmplt", *a, format!("{of} {from:#x}"));
                self.code.go(*b);
            }
            _ => {
                let (below, above) = parts.split_at(parts.len() / 2);
                let (from, label) = (above[0].0, self.code.label());
                self.code.jump("jmplt", label, format!("{of} {from:#x}"));
                self.parts(of, above, most);
                self.code.place(label);
                self.parts(of, below, from - 1);
            }
        }
    }
}
