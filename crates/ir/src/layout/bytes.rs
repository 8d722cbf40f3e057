//! The bytes of a packet as evidence.

use super::{Evidence, Header, Kind, Layout, Start};
use crate::IntervalSet;
use crate::field::{Base, Field};

/// The bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Evidence for Bytes<'_> {
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet> {
        let at = usize::try_from(start.div_euclid(8)).ok()?;
        let offset = start.rem_euclid(8) as u16;
        let field = Field::bits(Base::Data, offset, u16::try_from(width).ok()?);
        self.read(at, field).map(IntervalSet::single)
    }

    fn reaches(&self, end: i32) -> bool {
        usize::try_from(end).is_ok_and(|end| end <= self.0.len())
    }
}

impl Bytes<'_> {
    /// The number of a field, wherever it counts from, from byte `at` on; `None` if they end before.
    pub fn read(&self, at: usize, field: Field) -> Option<u128> {
        let (first, last) = field.byte_range();
        let bytes = self.0.get(at.checked_add(first)?..at.checked_add(last)?)?;
        let bit = |bit: u16| bytes[usize::from(bit) / 8 - first] >> (7 - bit % 8) & 1;
        let bits = field.offset..field.offset + field.width;
        Some(bits.fold(0, |value, at| value << 1 | u128::from(bit(at))))
    }

    /// Whether they begin with a whole header of IP.
    pub fn begin_with_ip(&self) -> bool {
        let layout = Layout::parse(self, Start { network: Some(0), ..Start::default() });
        layout.network().is_some_and(|header| header.kind != Kind::Arp)
    }
}

impl Layout {
    /// The headers of a packet of which nothing but its bytes is known: a frame, if it does not begin
    /// with a header of IP.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let bytes = Bytes(bytes);
        let frame = (!bytes.begin_with_ip()).then_some(0);
        let network = Some(if frame.is_some() { Kind::Ethernet.length().into() } else { 0 });
        Self::parse(&bytes, Start { frame, network, ..Start::default() })
    }

    /// The outermost header that a field of the catalogue lies in.
    pub fn header_of(&self, field: Field) -> Option<&Header> {
        let has = |header: &&Header| header.kind.catalogue().any(|(_, known)| known == field);
        self.headers().iter().find(has)
    }
}
