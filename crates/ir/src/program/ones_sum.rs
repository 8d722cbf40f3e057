//! Ones' complement sums: checksums and their updates.

use super::{Program, Term, TermId};
use crate::interp::fold16;

/// A sum in ones' complement arithmetic (RFC 1071), by which checksums are computed and updated
/// (RFC 1624): `HC' = ~(~HC + ~m + m')`. It is folded to 16 bits, and 0 only if all that is added is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OnesSum {
    /// Whether the complement is meant: a checksum.
    pub complement: bool,
    /// Numbers that are added, of any width.
    pub plus: Vec<TermId>,
    /// Words of at most 16 bits whose complements are added: they are taken off.
    pub minus: Vec<TermId>,
    /// A constant that is added.
    pub constant: u16,
}

impl OnesSum {
    /// A number folded to 16 bits.
    pub fn of(number: TermId) -> Self {
        Self { plus: vec![number], ..Self::default() }
    }

    /// The number that is folded, if there is no more to it.
    pub fn only(&self) -> Option<TermId> {
        let alone = !self.complement && self.constant == 0 && self.minus.is_empty();
        self.plus.first().copied().filter(|_| alone && self.plus.len() == 1)
    }

    /// What is added and taken off.
    pub fn operands(&self) -> impl Iterator<Item = TermId> + '_ {
        self.plus.iter().chain(&self.minus).copied()
    }

    /// Replaces what is added and taken off.
    pub fn map_operands(&mut self, mut to: impl FnMut(TermId) -> TermId) {
        self.plus.iter_mut().chain(&mut self.minus).for_each(|term| *term = to(*term));
    }

    /// The constant, with what the complements of the words are more than these words taken off.
    pub fn excess(&self) -> u64 {
        u64::from(self.constant) + 0xffff * self.minus.len() as u64
    }

    /// What it comes to.
    pub fn value(&self, mut of: impl FnMut(TermId) -> u128) -> u128 {
        let sum = self
            .plus
            .iter()
            .fold(self.excess().into(), |sum: u128, term| sum.wrapping_add(of(*term)));
        let sum = fold16(self.minus.iter().fold(sum, |sum, term| sum.wrapping_sub(of(*term))));
        if self.complement { 0xffff - sum } else { sum }
    }
}

impl Program {
    /// Whether a number is the sum over bytes of the packet with their checksum, perhaps with what
    /// was written taken into account. The checksum is right if it is 0xffff: a test of that is how
    /// a program verifies one.
    pub fn verifies(&self, term: TermId) -> bool {
        let is_of_bytes = |term| matches!(self.term(term), Term::Sum16 { .. });
        match self.term(term) {
            Term::OnesSum(sum) => !sum.complement && sum.plus.iter().any(|term| is_of_bytes(*term)),
            _ => is_of_bytes(term),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An update as in RFC 1624, section 4, where the first equation of RFC 1141 gives 0xffff.
    #[test]
    fn a_checksum_is_updated_as_rfc_1624_says() {
        let numbers = [0xdd2f, 0x5555, 0x3285];
        let [old, before, after] = [0, 1, 2].map(TermId);
        let sum =
            OnesSum { complement: true, plus: vec![after], minus: vec![old, before], constant: 0 };
        assert_eq!(sum.value(|term| numbers[term.0 as usize]), 0);
        let sum = OnesSum { complement: false, constant: 7, ..sum };
        assert_eq!(sum.value(|term| numbers[term.0 as usize]), 7);
        assert_eq!((sum.only(), OnesSum::of(old).only()), (None, Some(old)));
    }
}
