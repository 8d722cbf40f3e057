//! Packet annotations: 48 bytes that travel with a packet, laid out as Click lays them out, so
//! that configurations which name them by offset mean the same here.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Size of the annotation area in bytes.
pub const SIZE: usize = 48;

/// Destination IPv4 address: 4 bytes.
pub const DST_IP: usize = 0;
/// Destination IPv6 address: 16 bytes, over [`DST_IP`].
pub const DST_IP6: usize = 0;
/// Paint colour: 1 byte.
pub const PAINT: usize = 16;
/// Offset of the bad byte for an ICMP parameter problem: 1 byte.
pub const ICMP_PARAMETER_PROBLEM: usize = 17;
/// Whether the source address must be fixed before sending: 1 byte.
pub const FIX_IP_SRC: usize = 19;
/// VLAN tag control information: 2 bytes, over [`AGGREGATE`].
pub const VLAN_TCI: usize = 20;
/// Aggregate number: 4 bytes.
pub const AGGREGATE: usize = 20;
/// Packets that this one stands for beyond itself: 2 bytes.
pub const EXTRA_PACKETS: usize = 26;
/// Bytes of the original frame that were not captured: 4 bytes.
pub const EXTRA_LENGTH: usize = 28;
/// Packet number: 4 bytes.
pub const PACKET_NUMBER: usize = 32;
/// Sequence number: 4 bytes.
pub const SEQUENCE_NUMBER: usize = 36;
/// First timestamp: 8 bytes.
pub const FIRST_TIMESTAMP: usize = 32;
/// Performance counter: 8 bytes.
pub const PERFCTR: usize = 40;

/// The annotation area. Numbers are kept in network byte order, so that a field of it is a
/// plain run of bits as in any header. Reads beyond the area give zero; writes there do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub struct Annotations([u8; SIZE]);

impl Default for Annotations {
    fn default() -> Self {
        Self([0; SIZE])
    }
}

macro_rules! number {
    ($get:ident, $set:ident, $type:ty) => {
        /// The number at a byte offset.
        #[inline]
        pub fn $get(&self, at: usize) -> $type {
            const N: usize = size_of::<$type>();
            match self.0.get(at..at + N) {
                Some(bytes) => <$type>::from_be_bytes(bytes.try_into().expect("N bytes")),
                None => 0,
            }
        }

        /// Sets the number at a byte offset.
        #[inline]
        pub fn $set(&mut self, at: usize, value: $type) {
            if let Some(bytes) = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *bytes = value.to_be_bytes();
            }
        }
    };
}

impl Annotations {
    number!(u8, set_u8, u8);
    number!(u16, set_u16, u16);
    number!(u32, set_u32, u32);
    number!(u64, set_u64, u64);

    /// The destination address annotation.
    #[inline]
    pub fn dst_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.u32(DST_IP))
    }

    /// Sets the destination address annotation.
    #[inline]
    pub fn set_dst_ip(&mut self, address: Ipv4Addr) {
        self.set_u32(DST_IP, address.to_bits());
    }

    /// The IPv6 destination address annotation.
    #[inline]
    pub fn dst_ip6(&self) -> Ipv6Addr {
        let bytes = self.0[DST_IP6..DST_IP6 + 16].iter();
        Ipv6Addr::from_bits(bytes.fold(0, |n, &b| n << 8 | u128::from(b)))
    }

    /// Sets the IPv6 destination address annotation.
    #[inline]
    pub fn set_dst_ip6(&mut self, address: Ipv6Addr) {
        self.0[DST_IP6..DST_IP6 + 16].copy_from_slice(&address.octets());
    }

    /// The whole area.
    #[inline]
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.0
    }

    /// The whole area, to change.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8; SIZE] {
        &mut self.0
    }
}
