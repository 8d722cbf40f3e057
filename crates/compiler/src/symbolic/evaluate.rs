//! Models' expressions and conditions as terms.

use ir::field::Base;
use ir::model::BinaryOp;
use ir::program::{Barrier, TermId};
use ir::{Cond, Expr, Field, IntervalSet};

use super::execute::{Machine, Path};
use super::packet::{Stop, field_at};
use super::terms::Decided;

/// So many bytes are added up at the most.
const MOST_BYTES: u128 = 64;
/// Headers that are pushed, and summed word by word, have so many bytes at the most.
const MOST_PUSHED: u128 = 60;

impl<'a> Machine<'a> {
    pub(super) fn numbers(&mut self, path: &Path<'a>, exprs: &[Expr]) -> Result<Vec<TermId>, Stop> {
        exprs.iter().map(|e| self.expr(path, e)).collect()
    }

    /// A number that must be known here.
    pub(super) fn constant(&mut self, path: &Path<'a>, expr: &Expr) -> Result<u128, Stop> {
        let term = self.expr(path, expr)?;
        match self.terms.as_constant(term).or_else(|| path.facts.single(&self.terms, term)) {
            Some(value) => Ok(value),
            None => {
                // Mostly a header's length: the usual one may do.
                let linear = self.terms.linear(term);
                if let [(part, _)] = linear.terms[..] {
                    let (least, _) = path.facts.bounds(&self.terms, part);
                    let (first, _) = self.terms.bounds(part);
                    if least <= first.max(5) {
                        let test = self.terms.test(part, &IntervalSet::single(least.max(5)));
                        if path.facts.resolve(&mut self.terms, &test).is_none() {
                            return Err(Stop::Split(test));
                        }
                    }
                }
                Err(Stop::Unsupported(Barrier::ComputedPlace))
            }
        }
    }

    pub(super) fn expr(&mut self, path: &Path<'a>, expr: &Expr) -> Result<TermId, Stop> {
        Ok(match expr {
            Expr::Const(value) => self.terms.constant(*value),
            Expr::Field(field) => path.packet.read(&mut self.terms, &path.facts, *field)?,
            Expr::Reg(reg) => path
                .registers
                .get(usize::from(reg.0))
                .copied()
                .flatten()
                .ok_or(Stop::Unsupported(Barrier::UnwrittenRegister))?,
            Expr::Load { base, offset, width } => {
                let offset = self.constant(path, offset)?;
                let field = field_at(*base, offset, *width)?;
                path.packet.read(&mut self.terms, &path.facts, field)?
            }
            Expr::Position(header) => {
                let at = path.packet.position(&mut self.terms, &path.facts, *header)?;
                let start = self.terms.constant(i128::from(path.packet.start) as u128);
                self.terms.binary(BinaryOp::Sub, at, start)
            }
            Expr::Choose(cond, then, otherwise) => self.choose(path, cond, then, otherwise)?,
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(path, a)?, self.expr(path, b)?);
                match op {
                    BinaryOp::Min => path.facts.min(&mut self.terms, a, b),
                    _ => self.terms.binary(*op, a, b),
                }
            }
            Expr::Sum16 { base, offset, length } => {
                let offset = self.constant(path, offset)?;
                let length = self.expr(path, length)?;
                self.sum16(path, *base, offset, length)?
            }
            Expr::Fold16(sum) => {
                let sum = self.expr(path, sum)?;
                self.terms.fold(sum)
            }
            Expr::Hash(function, numbers) => {
                let numbers = self.numbers(path, numbers)?;
                self.terms.hash(*function, numbers)
            }
            Expr::Now => self.terms.now(),
            Expr::ByteSum { base, offset, length } => {
                let (offset, length) = (self.constant(path, offset)?, self.constant(path, length)?);
                if length > MOST_BYTES {
                    return Err(Stop::Unsupported(Barrier::ByteSum));
                }
                let mut sum = self.terms.constant(0);
                for at in offset..offset.saturating_add(length) {
                    let byte =
                        path.packet.read(&mut self.terms, &path.facts, field_at(*base, at, 8)?)?;
                    sum = self.terms.binary(BinaryOp::Add, sum, byte);
                }
                sum
            }
            Expr::Random(..) => return Err(Stop::Unsupported(Barrier::Random)),
        })
    }

    fn choose(
        &mut self,
        path: &Path<'a>,
        cond: &Cond,
        then: &Expr,
        otherwise: &Expr,
    ) -> Result<TermId, Stop> {
        if let Some(known) = self.try_cond(path, cond)? {
            return self.expr(path, if known { then } else { otherwise });
        }
        let (then, otherwise) = (self.expr(path, then)?, self.expr(path, otherwise)?);
        self.choose_terms(path, cond, then, otherwise)
    }

    fn choose_terms(
        &mut self,
        path: &Path<'a>,
        cond: &Cond,
        then: TermId,
        otherwise: TermId,
    ) -> Result<TermId, Stop> {
        match cond {
            Cond::Not(inner) => self.choose_terms(path, inner, otherwise, then),
            Cond::All(all) => all
                .iter()
                .rev()
                .try_fold(then, |then, c| self.choose_terms(path, c, then, otherwise)),
            Cond::Any(any) => any
                .iter()
                .rev()
                .try_fold(otherwise, |otherwise, c| self.choose_terms(path, c, then, otherwise)),
            _ => {
                let decided = self.atom(path, cond)?;
                match path.facts.resolve(&mut self.terms, &decided) {
                    Some(true) => Ok(then),
                    Some(false) => Ok(otherwise),
                    None => Ok(self.terms.choose(decided, then, otherwise)),
                }
            }
        }
    }

    /// A condition that is not made from others.
    fn atom(&mut self, path: &Path<'a>, cond: &Cond) -> Result<Decided, Stop> {
        match cond {
            Cond::Const(value) => Ok(Decided::Known(*value)),
            Cond::Test(expr, set) => {
                let term = self.expr(path, expr)?;
                Ok(self.terms.test(term, set))
            }
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.expr(path, a)?, self.expr(path, b)?);
                let decided = self.terms.compare(*op, a, b);
                Ok(path.facts.plain(&mut self.terms, decided))
            }
            _ => Err(Stop::Unsupported(Barrier::FlowTest)),
        }
    }

    /// Whether a condition holds, if that is known.
    fn try_cond(&mut self, path: &Path<'a>, cond: &Cond) -> Result<Option<bool>, Stop> {
        match self.cond(path, cond) {
            Ok(known) => Ok(Some(known)),
            Err(Stop::Split(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Whether a condition holds; asks for a split if it is not known.
    pub(super) fn cond(&mut self, path: &Path<'a>, cond: &Cond) -> Result<bool, Stop> {
        match cond {
            Cond::All(all) => {
                for c in all {
                    if !self.cond(path, c)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Cond::Any(any) => {
                for c in any {
                    if self.cond(path, c)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Cond::Not(inner) => Ok(!self.cond(path, inner)?),
            _ => {
                let decided = self.atom(path, cond)?;
                path.facts.resolve(&mut self.terms, &decided).ok_or(Stop::Split(decided))
            }
        }
    }

    /// The ones' complement sum of some bytes: that of the bytes as they came in, with what was
    /// written added and what was there before taken off.
    fn sum16(
        &mut self,
        path: &Path<'a>,
        base: Base,
        offset: u128,
        length: TermId,
    ) -> Result<TermId, Stop> {
        if !matches!(base, Base::Data | Base::Header(_)) {
            return Err(Stop::Unsupported(Barrier::OtherSum));
        }
        let base = path.packet.base(&mut self.terms, &path.facts, base)?;
        let at = i32::try_from(offset).ok().and_then(|o| base.checked_add(o));
        let at = at.ok_or(Stop::Unsupported(Barrier::FarSum))?;
        // What was pushed is summed word by word.
        let Ok(offset) = u16::try_from(at) else {
            let pushed = u128::from(at.unsigned_abs());
            let known = path.facts.single(&self.terms, length);
            if let Some(length) = known.filter(|n| n.is_multiple_of(2) && *n <= MOST_PUSHED) {
                let words = self.words(path, at, length)?;
                return Ok(self.terms.fold(words));
            }
            let (least, _) = path.facts.bounds(&self.terms, length);
            if !pushed.is_multiple_of(2) || pushed > MOST_PUSHED || least < pushed {
                return Err(Stop::Unsupported(Barrier::PushedSum));
            }
            let words = self.words(path, at, pushed)?;
            let pushed = self.terms.constant(pushed);
            let length = self.terms.binary(BinaryOp::Sub, length, pushed);
            let rest = self.sum_from(path, 0, length, words)?;
            let sum = self.terms.binary(BinaryOp::Add, words, rest);
            return Ok(self.terms.fold(sum));
        };
        // Without options, most headers: worth a path of its own.
        let linear = self.terms.linear(length);
        if let ([(part, 4)], 0) = (&linear.terms[..], linear.constant) {
            let usual = self.terms.test(*part, &IntervalSet::single(5));
            if path.facts.resolve(&mut self.terms, &usual).is_none() {
                return Err(Stop::Split(usual));
            }
        }
        let nothing = self.terms.constant(0);
        self.sum_from(path, offset, length, nothing)
    }

    /// The sum of so many bytes from one on that came in, which is added to `other`.
    fn sum_from(
        &mut self,
        path: &Path<'a>,
        offset: u16,
        length: TermId,
        other: TermId,
    ) -> Result<TermId, Stop> {
        let (least, most) = path.facts.bounds(&self.terms, length);
        let all = path.packet.data.changed_words(8 * i32::from(offset), most);
        let sure = path.packet.data.changed_words(8 * i32::from(offset), least & !1);
        if all != sure {
            return Err(Stop::Unsupported(Barrier::WrittenSum));
        }
        let length = match path.facts.single(&self.terms, length) {
            Some(known) => self.terms.constant(known),
            None => length,
        };
        let mut sum = self.terms.sum16(offset, length);
        if all.is_empty() {
            return Ok(sum);
        }
        // A sum of numbers that are not all zero is not zero, however it is computed.
        let first = 8 * i32::from(offset);
        let mut known = vec![other];
        if !all.contains(&first) {
            known.push(self.terms.input(Field::bits(Base::Data, offset * 8, 16)));
        }
        let ones = self.terms.constant(0xffff);
        for at in all {
            let new = path.packet.data.read(&mut self.terms, at, 16);
            let new = new.ok_or(Stop::Unsupported(Barrier::UnwrittenSum))?;
            known.push(new);
            let old = self.terms.input(Field::bits(Base::Data, at as u16, 16));
            let old = self.terms.binary(BinaryOp::Sub, ones, old);
            sum = self.terms.binary(BinaryOp::Add, sum, old);
            sum = self.terms.binary(BinaryOp::Add, sum, new);
        }
        if known.iter().all(|&term| path.facts.bounds(&self.terms, term).0 == 0) {
            return Err(Stop::Unsupported(Barrier::ZeroSum));
        }
        Ok(self.terms.fold(sum))
    }

    /// So many bytes, word by word, added up.
    fn words(&mut self, path: &Path<'a>, at: i32, length: u128) -> Result<TermId, Stop> {
        let mut sum = self.terms.constant(0);
        for at in (at..).step_by(2).take(length as usize / 2) {
            let word = path.packet.data.read(&mut self.terms, 8 * at, 16);
            let word = word.ok_or(Stop::Unsupported(Barrier::UnwrittenSum))?;
            sum = self.terms.binary(BinaryOp::Add, sum, word);
        }
        Ok(sum)
    }
}
