//! Checksums that change on TNA: a parser takes words off a checksum, and a deparser adds the words that leave.
//!
//! What is taken off is the same for all packets: the words that some exit takes off. An exit adds, as a number in metadata, what its
//! update comes to beside that. This number is never 0, so that a sum is 0xffff where it could be 0, as in the program.

use std::collections::{BTreeMap, BTreeSet};

use ir::layout::Evidence;
use ir::model::BinaryOp;
use ir::program::{End, Exit, LookupId, OnesSum, Program, Step, Term, TermId};
use ir::{Base, IntervalSet};

use super::number::{Numbers, Rows};
use super::steps::routes;
use crate::Lack;
use crate::headers::{Instance, Placed};
use crate::leave::{Bits, bits};
use crate::number::ones;

/// By the header with the checksum: the words that are taken off, as headers and numbers of words in them.
pub(super) type Sums = BTreeMap<Instance, BTreeSet<(Instance, u16)>>;

/// Bits of a word.
const WORD: u16 = 16;
/// Sums are counted modulo this.
const MODULUS: u64 = 0xffff;
/// Headers whose checksums may change.
const SUMMED: [Instance; 3] = [Instance::Ipv4, Instance::Tcp, Instance::Udp];

/// Whether a field is a checksum that may change.
pub(super) fn is_checksum(header: Instance, field: &str) -> bool {
    field == "checksum" && SUMMED.contains(&header)
}

/// Metadata for a checksum: what is left of it where words were taken off, what is added, and whether it changes.
pub(super) fn metadata(header: Instance) -> [(String, u16); 3] {
    [("rest", WORD), ("add", WORD), ("set", 1)]
        .map(|(what, width)| (format!("{}_{what}", header.name()), width))
}

/// The fields that words of a header are.
pub(super) fn fields(header: Instance, words: &BTreeSet<(Instance, u16)>) -> Vec<String> {
    let mut bit = 0;
    let mut all = Vec::new();
    for (field, width) in header.fields() {
        if words.contains(&(header, bit / WORD)) {
            all.push(format!("hdr.{}.{field}", header.name()));
        }
        bit += width;
    }
    all
}

/// The number of the word that a header's checksum is.
pub(super) fn own_word(header: Instance) -> (Instance, u16) {
    let before = header.fields().iter().take_while(|field| field.0 != "checksum");
    (header, before.map(|field| field.1).sum::<u16>() / WORD)
}

/// What an exit writes in the place of a checksum that lies at a bit.
fn update<'p>(program: &'p Program, exit: &Exit, bit: i32) -> Option<(&'p OnesSum, bool)> {
    let written = bits(exit, bit, WORD)?;
    let [(Bits::Written(term, low), WORD)] = written[..] else { return None };
    let (mut term, mut low) = (term, low);
    loop {
        match program.term(term) {
            Term::Concat { high, low: tail, width } if low >= u16::from(*width) => {
                (term, low) = (*high, low - u16::from(*width));
                let _ = tail;
            }
            Term::Concat { low: tail, width, .. } if low + WORD <= u16::from(*width) => {
                term = *tail;
            }
            Term::Slice { of, low: from, width } if low + WORD <= u16::from(*width) => {
                (term, low) = (*of, low + u16::from(*from));
            }
            Term::NonZero(of) if low == 0 => match program.term(*of) {
                Term::OnesSum(sum) => return sum.complement.then_some((sum, true)),
                _ => return None,
            },
            Term::OnesSum(sum) if low == 0 => return sum.complement.then_some((sum, false)),
            _ => return None,
        }
    }
}

/// The word of a header that a term is.
fn word(program: &Program, placed: &[Placed], term: TermId) -> Option<(Instance, u16)> {
    let Term::Input(field) = program.term(term) else { return None };
    let bit = i32::from(field.offset);
    let around = placed.iter().find(|of| (of.bit..of.bit + of.instance.bits()).contains(&bit))?;
    let within = u16::try_from(bit - around.bit).ok()?;
    let is_word = field.base == Base::Data && field.width == WORD && within % WORD == 0;
    is_word.then_some((around.instance, within / WORD))
}

/// Adds the words that an exit takes off checksums.
pub(super) fn take_off(program: &Program, exit: &Exit, placed: &[Placed], sums: &mut Sums) {
    if !matches!(exit.end, End::Push { .. }) {
        return;
    }
    for of in placed.iter().filter(|of| SUMMED.contains(&of.instance)) {
        let own = own_word(of.instance);
        let Some((sum, _)) = update(program, exit, of.bit + i32::from(WORD * own.1)) else {
            continue;
        };
        let words = sums.entry(of.instance).or_default();
        for term in &sum.minus {
            let Some((header, at)) = word(program, placed, *term) else { continue };
            // Of a field all words are taken off.
            let mut bit = 0;
            for (_, width) in header.fields() {
                let last = (bit + width - 1) / WORD;
                if (bit / WORD..=last).contains(&at) {
                    let all = (bit / WORD..=last).map(|at| (header, at));
                    words.extend(all.filter(|word| *word != own));
                }
                bit += width;
            }
        }
    }
}

/// The words that all exits of a program take off.
pub(super) fn taken_off(program: &Program, places: &[Vec<Placed>], sums: &mut Sums) {
    for (step, placed) in program.steps.iter().zip(places) {
        if let Step::Exit(exit) = step {
            take_off(program, exit, placed, sums);
        }
    }
}

/// A bit that is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bit {
    Came(u16),
    Of(TermId, u16),
}

/// A sum modulo 0xffff: bits with their factors, and a constant.
#[derive(Default)]
struct Total {
    bits: BTreeMap<Bit, u64>,
    constant: u64,
}

impl Total {
    fn count(&mut self, bit: Bit, factor: u64) {
        let all = self.bits.entry(bit).or_default();
        *all = (*all + factor) % MODULUS;
    }

    fn constant(&mut self, value: u128, factor: u64) {
        let value = (value % u128::from(MODULUS)) as u64;
        self.constant = (self.constant + value * factor) % MODULUS;
    }

    /// Bits of the packet as it came in.
    fn came(&mut self, bit: u16, width: u16, factor: u64) {
        for at in 0..width {
            self.count(Bit::Came(bit + width - 1 - at), shifted(factor, at));
        }
    }

    /// Some bits of a number.
    fn number(
        &mut self,
        numbers: &Numbers<'_>,
        term: TermId,
        (low, width): (u16, u16),
        factor: u64,
    ) {
        let mask = ones(width.into());
        if let Some(value) = numbers.value(term) {
            return self.constant(value.checked_shr(low.into()).unwrap_or(0) & mask, factor);
        }
        match numbers.program.term(term) {
            Term::Input(field) if field.base == Base::Data => {
                if let Some(left) = field.width.checked_sub(low) {
                    let width = width.min(left);
                    self.came(field.offset + left - width, width, factor);
                }
            }
            Term::Slice { of, low: from, width: own } => {
                let width = width.min(u16::from(*own).saturating_sub(low));
                self.number(numbers, *of, (low + u16::from(*from), width), factor);
            }
            Term::Concat { high, low: tail, width: own } => {
                let own = u16::from(*own);
                if low < own {
                    self.number(numbers, *tail, (low, width.min(own - low)), factor);
                }
                if low + width > own {
                    let (from, before) = (low.saturating_sub(own), own.saturating_sub(low));
                    let factor = shifted(factor, before);
                    self.number(numbers, *high, (from, width - before), factor);
                }
            }
            Term::Binary(BinaryOp::Mul, of, by)
                if low == 0
                    && width >= numbers.program.width(term)
                    && numbers.value(*by).is_some() =>
            {
                let by = (numbers.value(*by).unwrap_or(0) % u128::from(MODULUS)) as u64;
                let width = numbers.program.width(*of);
                self.number(numbers, *of, (0, width), factor * by % MODULUS);
            }
            Term::Binary(BinaryOp::Sub, of, by) if low == 0 && stays(numbers, *of, *by) => {
                let by = numbers.value(*by).unwrap_or(0);
                self.number(numbers, *of, (0, width), factor);
                self.constant(by, MODULUS - factor);
            }
            _ => (0..width).for_each(|at| {
                self.count(Bit::Of(term, low + at), shifted(factor, at));
            }),
        }
    }
}

/// A factor times a power of two.
fn shifted(factor: u64, by: u16) -> u64 {
    factor * (1 << (by % WORD)) % MODULUS
}

/// Whether a number of the packet is never below a constant that is taken off.
fn stays(numbers: &Numbers<'_>, of: TermId, by: TermId) -> bool {
    least(numbers, of) >= numbers.value(by).unwrap_or(u128::MAX)
}

/// What a number is at least.
fn least(numbers: &Numbers<'_>, term: TermId) -> u128 {
    if let Some(value) = numbers.value(term) {
        return value;
    }
    match numbers.program.term(term) {
        Term::Input(field) if field.base == Base::Data => {
            let bits = |facts: &ir::layout::Facts| {
                let known = facts.bits(field.offset.into(), field.width.into())?;
                IntervalSet::min(&known)
            };
            numbers.facts.and_then(bits).unwrap_or(0)
        }
        Term::Concat { high, low, width } => {
            let high = least(numbers, *high).checked_shl((*width).into()).unwrap_or(0);
            high.saturating_add(least(numbers, *low))
        }
        _ => 0,
    }
}

/// Whether a sum is never 0.
fn is_positive(numbers: &Numbers<'_>, sum: &OnesSum) -> bool {
    if sum.constant > 0 || sum.plus.iter().any(|term| least(numbers, *term) > 0) {
        return true;
    }
    // Whatever one of the lookups found.
    let mut lookups = BTreeSet::new();
    sum.plus.iter().for_each(|term| bound(numbers.program, *term, &mut lookups));
    lookups.into_iter().any(|lookup| {
        let Ok((_, table)) = routes(numbers.program, lookup) else { return false };
        table.entries().all(|entry| {
            let rows = Rows::from([(lookup, std::sync::Arc::clone(&entry.row))]);
            let found = Numbers { rows: &rows, before: None, ..*numbers };
            sum.plus.iter().any(|term| found.value(*term).is_some_and(|value| value > 0))
        })
    })
}

/// The lookups that a number depends on.
fn bound(program: &Program, term: TermId, lookups: &mut BTreeSet<LookupId>) {
    match program.term(term) {
        Term::Bound(lookup, _) => drop(lookups.insert(*lookup)),
        of => of.operands().into_iter().for_each(|operand| bound(program, operand, lookups)),
    }
}

/// What has to be added for a header's checksum to become what an exit writes; the words in `sums` that leave are added, too.
///
/// # Errors
/// It comes to no constant, or to 0 otherwise.
pub(super) fn added(
    numbers: &Numbers<'_>,
    exit: &Exit,
    header: &Placed,
    leaving: impl Fn(Instance) -> Option<i32>,
) -> Result<u16, Lack> {
    let own = i32::from(WORD * own_word(header.instance).1);
    let (sum, non_zero) = update(numbers.program, exit, header.bit + own)
        .ok_or(Lack::Number("a checksum that is no update"))?;
    if non_zero != (header.instance == Instance::Udp) {
        return Err(Lack::Number("0 in the place of a checksum"));
    }
    let alone;
    let words = match numbers.sums.and_then(|sums| sums.get(&header.instance)) {
        Some(words) => words,
        None => {
            let mut sums = Sums::new();
            take_off(numbers.program, exit, numbers.placed, &mut sums);
            alone = sums.remove(&header.instance).unwrap_or_default();
            &alone
        }
    };
    let mut total = Total { constant: sum.constant.into(), ..Total::default() };
    let plus = |total: &mut Total, term: TermId, factor: u64| {
        total.number(numbers, term, (0, numbers.program.width(term)), factor);
    };
    sum.plus.iter().for_each(|term| plus(&mut total, *term, 1));
    sum.minus.iter().for_each(|term| plus(&mut total, *term, MODULUS - 1));
    // The parser takes these off, and the deparser adds what leaves there.
    let came = |bit: i32| u16::try_from(bit).unwrap_or(u16::MAX - 128);
    total.came(came(header.bit + own), WORD, 1);
    for &(of, at) in words {
        let placed = numbers.placed.iter().find(|placed| placed.instance == of);
        let (Some(placed), Some(now)) = (placed, leaving(of)) else {
            return Err(Lack::Number("a checksum over other headers"));
        };
        let within = i32::from(WORD * at);
        total.came(came(placed.bit + within), WORD, 1);
        let Some(parts) = bits(exit, now + within, WORD) else {
            total.came(came(now + within), WORD, MODULUS - 1);
            continue;
        };
        let mut left = WORD;
        for (part, width) in parts {
            left -= width;
            let factor = shifted(MODULUS - 1, left);
            match part {
                Bits::Written(term, low) => {
                    total.number(numbers, term, (low, width), factor);
                }
                Bits::Zero => {}
                Bits::Came(bit) => total.came(bit, width, factor),
            }
        }
    }
    if total.bits.values().any(|factor| *factor != 0) {
        return Err(Lack::Number("this checksum"));
    }
    if !is_positive(numbers, sum) {
        return Err(Lack::Number("a checksum of which nothing says that its sum is not 0"));
    }
    Ok(if total.constant == 0 { 0xffff } else { total.constant as u16 })
}
