//! Batches: the unit in which packets travel between elements and devices.

use crate::packet::Packet;

/// An ordered burst of packets. It keeps its storage when emptied.
#[derive(Debug, Default)]
pub struct Batch {
    packets: Vec<Packet>,
}

impl Batch {
    /// Usual number of packets in a burst.
    pub const DEFAULT_BURST: usize = 32;

    /// An empty batch with room for a usual burst.
    pub fn new() -> Self {
        Self { packets: Vec::with_capacity(Self::DEFAULT_BURST) }
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        self.packets.push(packet);
    }

    /// Removes the last packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop()
    }

    /// The packets in order.
    #[inline]
    pub fn as_slice(&self) -> &[Packet] {
        &self.packets
    }

    /// The packets in order, to change.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        &mut self.packets
    }

    /// The packets in order.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.packets.iter()
    }

    /// The packets in order, to change.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Packet> {
        self.packets.iter_mut()
    }

    /// Takes all packets out, in order.
    #[inline]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..)
    }

    /// Takes the first packets out, up to `count`, in order.
    #[inline]
    pub fn drain_first(&mut self, count: usize) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..count.min(self.packets.len()))
    }

    /// Moves the packets from the `at`th on to the end of `other`.
    pub fn split_to(&mut self, at: usize, other: &mut Batch) {
        other.packets.extend(self.packets.drain(at.min(self.packets.len())..));
    }

    /// Moves all packets of `other` to the end of this one.
    #[inline]
    pub fn append(&mut self, other: &mut Batch) {
        self.packets.append(&mut other.packets);
    }

    /// The storage.
    #[inline]
    pub(crate) fn packets(&mut self) -> &mut Vec<Packet> {
        &mut self.packets
    }

    /// Sum of the packets' lengths in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.iter().map(|p| p.len() as u64).sum()
    }
}

impl Extend<Packet> for Batch {
    fn extend<I: IntoIterator<Item = Packet>>(&mut self, packets: I) {
        self.packets.extend(packets);
    }
}
