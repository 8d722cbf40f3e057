//! Numbers and conditions as expressions.

use std::collections::{BTreeMap, BTreeSet};

use ir::field::meta;
use ir::layout::Facts;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, OnesSum, Program, Term, TermId};
use ir::{Base, Field, IntervalSet};

use super::super::Arch;
use super::checksum::Sums;
use crate::Lack;
use crate::headers::{self, Instance, Placed, is_implied};
use crate::number::{evaluate, ones};
use crate::rule::prefixes;

/// An expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expr {
    pub(super) text: String,
    pub(super) width: u16,
    /// Fields that it reads.
    pub(super) reads: BTreeSet<String>,
    /// Headers that have to be there.
    pub(super) needs: BTreeSet<Instance>,
    /// The number, if it is a constant.
    pub(super) constant: Option<u128>,
}

impl Expr {
    fn constant(value: u128, width: u16) -> Self {
        let text = format!("{width}w{:#x}", value & ones(width.into()));
        Self { text, width, constant: Some(value & ones(width.into())), ..Self::default() }
    }

    fn with(self, other: &Self, width: u16, text: String) -> Self {
        let reads = self.reads.union(&other.reads).cloned().collect();
        let needs = self.needs.union(&other.needs).copied().collect();
        let constant = match (self.constant, other.constant) {
            (Some(high), Some(low)) if self.width + other.width == width && width > 0 => {
                Some(high.checked_shl(other.width.into()).unwrap_or(0) | low)
            }
            _ => None,
        };
        let text = constant.map_or(text, |value| format!("{width}w{value:#x}"));
        Self { text, width, reads, needs, constant }
    }

    fn become_(self, width: u16, text: String) -> Self {
        Self { text, width, constant: None, ..self }
    }

    fn cast(self, width: u16) -> Self {
        if self.width == width {
            return self;
        }
        let text = format!("(bit<{width}>){}", self.text);
        self.become_(width, format!("({text})"))
    }

    /// A field of the metadata, or a local variable.
    pub(super) fn variable(name: String, width: u16) -> Self {
        Self { reads: BTreeSet::from([name.clone()]), text: name, width, ..Self::default() }
    }

    /// Two, the first in the higher bits.
    pub(super) fn beside(self, low: Self) -> Self {
        let (text, width) = (format!("({} ++ {})", self.text, low.text), self.width + low.width);
        self.with(&low, width, text)
    }

    pub(super) fn is_constant(&self) -> bool {
        self.reads.is_empty() && self.constant.is_some()
    }

    pub(super) fn as_constant(&self) -> u128 {
        self.constant.unwrap_or(0)
    }

    /// Whether a table's key can be this as it is.
    pub(super) fn is_plain(&self) -> bool {
        let is_valid = self.text.ends_with(".isValid()");
        !self.is_constant() && (is_valid || !self.text.contains(['(', ' ']))
    }

    /// Whether a header is there.
    pub(super) fn valid(header: Instance) -> Self {
        Self::variable(format!("hdr.{}.isValid()", header.name()), 1)
    }
}

pub(super) use crate::number::Rows;

/// The metadata that keeps what the lookups of a table found.
pub(super) fn found(table: u16, index: u8) -> String {
    format!("meta.found{table}_{index}")
}

/// Makes expressions of a step's numbers.
pub(super) struct Numbers<'a> {
    pub(super) arch: Arch,
    pub(super) program: &'a Program,
    pub(super) placed: &'a [Placed],
    /// What is known of packets that come to the step.
    pub(super) facts: Option<&'a Facts>,
    pub(super) rows: &'a Rows,
    /// By lookup: the number of its table, where several have one.
    pub(super) slots: Option<&'a BTreeMap<LookupId, u16>>,
    /// The words that are taken off checksums, where all exits are known.
    pub(super) sums: Option<&'a Sums>,
    /// Statements that have to come before: where variables may be declared.
    pub(super) before: Option<Vec<String>>,
    /// Prefix of the names of variables.
    pub(super) variables: usize,
}

impl<'a> Numbers<'a> {
    /// The metadata that keeps what a lookup found.
    pub(super) fn found(&self, lookup: LookupId, index: u8) -> String {
        match self.slots.and_then(|slots| slots.get(&lookup)) {
            Some(table) => found(*table, index),
            None => format!("meta.alone{}_{index}", lookup.0),
        }
    }

    /// What the architecture lacks to know a number.
    pub(super) fn lack(&self, term: TermId) -> Lack {
        headers::lack(self.program, self.placed, term)
    }

    fn input(&self, field: Field) -> Option<Expr> {
        if field == meta::LEN && self.arch == Arch::V1model {
            return Some(Expr::variable("standard_metadata.packet_length".into(), 32));
        }
        if field.base != Base::Data {
            return None;
        }
        let pieces = headers::pieces(self.placed, field.offset.into(), field.width)?;
        let text: Vec<String> = pieces.iter().map(|(piece, _)| piece.text()).collect();
        let is_known = |placed: &Placed| {
            let facts = self.facts?;
            placed.needs.iter().all(|need| is_implied(self.program, facts, need)).then_some(())
        };
        let reads = pieces
            .iter()
            .map(|(piece, _)| format!("hdr.{}.{}", piece.instance.name(), piece.field));
        let unsure = pieces.iter().filter(|(_, placed)| is_known(placed).is_none());
        Some(Expr {
            text: if text.len() == 1 {
                text[0].clone()
            } else {
                format!("({})", text.join(" ++ "))
            },
            width: field.width,
            reads: reads.collect(),
            needs: unsure.map(|(piece, _)| piece.instance).collect(),
            constant: None,
        })
    }

    /// Bits of the packet as it came in.
    pub(super) fn data(&self, bit: u16, width: u16) -> Option<Expr> {
        self.input(Field::bits(Base::Data, bit, width))
    }

    pub(super) fn zero(&self, width: u16) -> Expr {
        Expr::constant(0, width)
    }

    /// A number, if it is a constant.
    pub(super) fn value(&self, term: TermId) -> Option<u128> {
        match self.program.term(term) {
            Term::Input(_) => None,
            Term::Const(value) => Some(*value),
            _ => evaluate(self.program, term, self.rows, None),
        }
    }

    /// A whole number: as many bits as it can have.
    pub(super) fn whole(&mut self, term: TermId) -> Result<Expr, Lack> {
        let width = self.program.width(term).max(1);
        self.number(term, width)
    }

    /// The lowest bits of a number.
    pub(super) fn number(&mut self, term: TermId, width: u16) -> Result<Expr, Lack> {
        if let Some(value) = self.value(term) {
            return Ok(Expr::constant(value, width));
        }
        let lack = |this: &Self| Err(this.lack(term));
        match self.program.term(term).clone() {
            Term::Input(field) => match self.input(field) {
                Some(all) if width < all.width && field.base == Base::Data => {
                    self.bits(term, 0, width)
                }
                Some(all) => Ok(all.cast(width)),
                None => lack(self),
            },
            Term::Bound(lookup, index) => {
                if self.program.flows(lookup).is_some() {
                    return Err(Lack::Flows);
                }
                let of = self.program.bound_width(lookup, index);
                Ok(Expr::variable(self.found(lookup, index), of).cast(width))
            }
            Term::Slice { of, low, width: own } => {
                let own = u16::from(own);
                Ok(self.bits(of, low.into(), own.min(width))?.cast(width))
            }
            Term::Concat { high, low, width: own } => {
                let own = u16::from(own);
                let low = self.number(low, own.min(width))?;
                if width <= own {
                    return Ok(low);
                }
                let high = self.number(high, width - own)?;
                let text = format!("({} ++ {})", high.text, low.text);
                Ok(high.with(&low, width, text))
            }
            Term::Binary(op, a, b) => self.binary(term, op, (a, b), width),
            Term::OnesSum(sum) => Ok(self.ones_sum(&sum)?.cast(width)),
            Term::NonZero(sum) if self.arch == Arch::V1model => {
                let sum = self.number(sum, 16)?;
                let text = format!("({0} == 16w0 ? 16w0xffff : {0})", sum.text);
                Ok(sum.become_(16, text).cast(width))
            }
            Term::Choose(atom, yes, no) if self.arch == Arch::V1model => {
                let when = self.condition(&atom)?;
                let (yes, no) = (self.number(yes, width)?, self.number(no, width)?);
                let text = format!("({} ? {} : {})", when.text, yes.text, no.text);
                Ok(when.with(&yes, width, String::new()).with(&no, width, text))
            }
            _ => lack(self),
        }
    }

    /// Some bits of a number.
    pub(super) fn bits(&mut self, term: TermId, low: u16, width: u16) -> Result<Expr, Lack> {
        if let Some(value) = self.value(term) {
            return Ok(Expr::constant(value.checked_shr(low.into()).unwrap_or(0), width));
        }
        match self.program.term(term).clone() {
            Term::Input(field) if field.base == Base::Data && low + width <= field.width => {
                let part = Field::bits(Base::Data, field.offset + field.width - low - width, width);
                self.input(part).ok_or(self.lack(term))
            }
            Term::Slice { of, low: from, width: own } if low + width <= u16::from(own) => {
                self.bits(of, low + u16::from(from), width)
            }
            Term::Concat { high, low: tail, width: own } => {
                let own = u16::from(own);
                if low >= own {
                    return self.bits(high, low - own, width);
                }
                if low + width <= own {
                    return self.bits(tail, low, width);
                }
                let (high, tail) =
                    (self.bits(high, 0, low + width - own)?, self.bits(tail, low, own - low)?);
                let text = format!("({} ++ {})", high.text, tail.text);
                Ok(high.with(&tail, width, text))
            }
            Term::Binary(BinaryOp::Shr, a, b) if let Some(by) = self.value(b) => {
                let by = u16::try_from(by).unwrap_or(128);
                self.bits(a, low.saturating_add(by), width)
            }
            _ => {
                if low >= 128 {
                    return Ok(Expr::constant(0, width));
                }
                let all = self.number(term, low + width)?;
                if low == 0 {
                    return Ok(all);
                }
                let text = format!("{}[{}:{low}]", all.text, low + width - 1);
                Ok(all.become_(width, text))
            }
        }
    }

    fn binary(
        &mut self,
        term: TermId,
        op: BinaryOp,
        (a, b): (TermId, TermId),
        width: u16,
    ) -> Result<Expr, Lack> {
        let sign = match op {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul if self.arch == Arch::V1model => "*",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl if let Some(by) = self.value(b) => {
                let by = u16::try_from(by).unwrap_or(128);
                if by >= width {
                    return Ok(Expr::constant(0, width));
                }
                let a = self.number(a, width - by)?;
                let text = format!("({} ++ {by}w0)", a.text);
                return Ok(if by == 0 { a } else { a.become_(width, text) });
            }
            BinaryOp::Shr if let Some(by) = self.value(b) => {
                let by = u16::try_from(by).unwrap_or(128);
                let own = self.program.width(a).saturating_sub(by).min(width);
                if own == 0 {
                    return Ok(Expr::constant(0, width));
                }
                return Ok(self.bits(a, by, own)?.cast(width));
            }
            _ => return Err(self.lack(term)),
        };
        let (a, b) = (self.number(a, width)?, self.number(b, width)?);
        let text = format!("({} {sign} {})", a.text, b.text);
        Ok(a.with(&b, width, text))
    }

    fn ones_sum(&mut self, sum: &OnesSum) -> Result<Expr, Lack> {
        let lack = Lack::Number("a ones' complement sum");
        if self.arch != Arch::V1model || self.before.is_none() {
            return Err(lack);
        }
        let mut most = u128::from(sum.constant);
        let mut all = Expr { width: 32, ..Expr::default() };
        let mut parts = Vec::new();
        for (&term, is_minus) in
            sum.plus.iter().map(|t| (t, false)).chain(sum.minus.iter().map(|t| (t, true)))
        {
            let of = if is_minus { 16 } else { self.program.width(term) };
            if of > 32 || is_minus && self.program.width(term) > 16 {
                return Err(lack);
            }
            let part = self.number(term, of)?;
            parts.push(match (is_minus, of) {
                (true, _) => format!("(bit<32>)(~{})", part.text),
                (false, 32) => part.text.clone(),
                (false, _) => format!("(bit<32>){}", part.text),
            });
            most += ones(of.into());
            all = all.with(&part, 32, String::new());
        }
        if most > u32::MAX.into() {
            return Err(lack);
        }
        if sum.constant != 0 || parts.is_empty() {
            parts.push(format!("32w{:#x}", sum.constant));
        }
        let name = format!("sum{}", self.variables);
        self.variables += 1;
        let fold = format!("{name} = ({name} & 32w0xffff) + ({name} >> 16);");
        let before = self.before.get_or_insert_with(Vec::new);
        before.push(format!("bit<32> {name} = {};", parts.join(" + ")));
        before.push(fold.clone());
        before.push(fold);
        let sign = if sum.complement { "~" } else { "" };
        Ok(all.become_(16, format!("({sign}{name}[15:0])")))
    }

    /// A condition; its width is 0.
    pub(super) fn condition(&mut self, atom: &Atom) -> Result<Expr, Lack> {
        match atom {
            Atom::Test(term, set) => self.is_in(*term, set),
            Atom::Compare(op, a, b) => {
                if self.arch != Arch::V1model {
                    let worst = [self.lack(*a), self.lack(*b)];
                    let is_length = worst.contains(&Lack::Length);
                    return Err(if is_length { Lack::Length } else { Lack::Comparison });
                }
                let width = self.program.width(*a).max(self.program.width(*b));
                let (a, b) = (self.number(*a, width)?, self.number(*b, width)?);
                let sign = match op {
                    CompareOp::Eq => "==",
                    CompareOp::Ne => "!=",
                    CompareOp::Lt => "<",
                    CompareOp::Le => "<=",
                    CompareOp::Gt => ">",
                    CompareOp::Ge => ">=",
                };
                let text = format!("{} {sign} {}", a.text, b.text);
                Ok(a.with(&b, 0, text))
            }
        }
    }

    /// The IPv4 header whose checksum a number is the sum for.
    pub(super) fn verified(&self, term: TermId) -> Option<&'a Placed> {
        let Term::Sum16 { offset, length } = self.program.term(term) else { return None };
        let ip = self.placed.iter().find(|placed| placed.instance == Instance::Ipv4)?;
        let is_ip = ip.bit == 8 * i32::from(*offset) && self.value(*length) == Some(20);
        (is_ip && self.arch == Arch::V1model).then_some(ip)
    }

    fn is_in(&mut self, term: TermId, set: &IntervalSet) -> Result<Expr, Lack> {
        if self.verified(term).is_some() {
            let no = if *set == IntervalSet::single(0xffff) { "==" } else { "!=" };
            if no == "!=" && set.complement(16) != IntervalSet::single(0xffff) {
                return Err(Lack::Checksum);
            }
            let mut right = Expr::variable("standard_metadata.checksum_error".into(), 0);
            let is_known =
                |need| self.facts.is_some_and(|facts| is_implied(self.program, facts, need));
            if let Some(ip) = self.verified(term)
                && !ip.needs.iter().all(is_known)
            {
                right.needs.insert(Instance::Ipv4);
            }
            right.text = format!("standard_metadata.checksum_error {no} 1w0");
            return Ok(right);
        }
        let of = self.whole(term)?;
        let text = match self.arch {
            Arch::V1model => within(&of, set),
            Arch::Tna => under_masks(&of, set),
        };
        let lack = || Lack::Match("a number".into(), Some(set.intervals().len()));
        let text = text.ok_or_else(lack)?;
        Ok(of.become_(0, text))
    }
}

/// Ranges that one condition compares a number with.
const RANGES: usize = 4;

/// A condition on a number by whole numbers and masks.
fn under_masks(of: &Expr, set: &IntervalSet) -> Option<String> {
    let set = set.intersect(&IntervalSet::full(of.width));
    let rest = IntervalSet::full(of.width).subtract(&set);
    if set.is_empty() || rest.is_empty() {
        return Some(rest.is_empty().to_string());
    }
    let all = |set: &IntervalSet| match set.as_masked(of.width) {
        Some(one) => Some(vec![one]),
        None => prefixes(set, of.width, RANGES).ok(),
    };
    let (is, parts) = match (all(&set), all(&rest)) {
        (Some(is), Some(not)) if is.len() <= not.len() => (true, is),
        (_, Some(not)) => (false, not),
        (Some(is), None) => (true, is),
        (None, None) => return None,
    };
    let (text, width) = (&of.text, of.width);
    let one = |sign: &str, (value, mask): (u128, u128)| match mask == ones(width.into()) {
        true => format!("{text} {sign} {width}w{value:#x}"),
        false => format!("({text} & {width}w{mask:#x}) {sign} {width}w{value:#x}"),
    };
    Some(match (is, &parts[..]) {
        (true, [part]) => one("==", *part),
        (false, [part]) => one("!=", *part),
        (true, parts) => {
            let all: Vec<String> = parts.iter().map(|part| one("==", *part)).collect();
            format!("({})", all.join(" || "))
        }
        (false, parts) => {
            let all: Vec<String> = parts.iter().map(|part| one("!=", *part)).collect();
            format!("({})", all.join(" && "))
        }
    })
}

/// A condition on a number.
fn within(of: &Expr, set: &IntervalSet) -> Option<String> {
    let all = IntervalSet::full(of.width);
    let set = set.intersect(&all);
    let rest = all.subtract(&set);
    if set.is_empty() || rest.is_empty() {
        return Some(rest.is_empty().to_string());
    }
    let (is, of_set) = match rest.intervals().len() < set.intervals().len() {
        true => (false, &rest),
        false => (true, &set),
    };
    if of_set.intervals().len() > RANGES {
        return None;
    }
    let (text, width) = (&of.text, of.width);
    let mut parts: Vec<String> = Vec::new();
    for &(low, high) in of_set.intervals() {
        parts.push(match (low, high) {
            (low, high) if low == high => format!("{text} == {width}w{low:#x}"),
            (0, high) => format!("{text} <= {width}w{high:#x}"),
            (low, high) if high == ones(width.into()) => format!("{text} >= {width}w{low:#x}"),
            (low, high) => format!("({text} >= {width}w{low:#x} && {text} <= {width}w{high:#x})"),
        });
    }
    let all = match &parts[..] {
        [one] if is => return Some(one.clone()),
        parts => parts.join(" || "),
    };
    match (is, of_set.as_single()) {
        (true, _) => Some(format!("({all})")),
        (false, Some(value)) => Some(format!("{text} != {width}w{value:#x}")),
        (false, None) => Some(format!("!({all})")),
    }
}
