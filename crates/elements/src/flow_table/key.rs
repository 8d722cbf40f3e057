//! What flows are found by.

use std::net::Ipv4Addr;

use net::flow::FlowHash;

use crate::listing::Tuple;

/// What packets of one direction of a flow have in common. The map distinguishes tables that share
/// a capacity: a rewriter's number among those that share, and what else is part of the key, such
/// as the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// Source address, destination address.
    pub addresses: u64,
    /// Source port, destination port.
    pub ports: u32,
    /// Number of the rewriter and protocol.
    pub map: u16,
}

/// A key, and what it is found by in a table ([`super::FlowTable::hashed`]): computed once for all that is done with it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashed {
    pub key: Key,
    pub hash: u64,
}

impl Key {
    /// From its parts.
    pub(crate) fn new(map: u16, src: u32, src_port: u16, dst: u32, dst_port: u16) -> Self {
        Self {
            addresses: u64::from(src) << 32 | u64::from(dst),
            ports: u32::from(src_port) << 16 | u32::from(dst_port),
            map,
        }
    }

    pub(crate) fn src(&self) -> u32 {
        (self.addresses >> 32) as u32
    }

    pub(crate) fn dst(&self) -> u32 {
        self.addresses as u32
    }

    pub(crate) fn src_port(&self) -> u16 {
        (self.ports >> 16) as u16
    }

    pub(crate) fn dst_port(&self) -> u16 {
        self.ports as u16
    }

    pub(crate) fn set_src(&mut self, src: u32) {
        self.addresses = self.addresses & 0xffff_ffff | u64::from(src) << 32;
    }

    pub(crate) fn set_dst(&mut self, dst: u32) {
        self.addresses = self.addresses & !0xffff_ffff | u64::from(dst);
    }

    pub(crate) fn set_src_port(&mut self, port: u16) {
        self.ports = self.ports & 0xffff | u32::from(port) << 16;
    }

    pub(crate) fn set_dst_port(&mut self, port: u16) {
        self.ports = self.ports & !0xffff | u32::from(port);
    }

    /// Its addresses and ports.
    pub(crate) fn tuple(&self) -> Tuple {
        let (src, dst) = (Ipv4Addr::from_bits(self.src()), Ipv4Addr::from_bits(self.dst()));
        Tuple { src, src_port: self.src_port(), dst, dst_port: self.dst_port() }
    }

    /// What it is found by.
    #[inline]
    pub(super) fn hash(&self, with: &FlowHash) -> u64 {
        with.two(self.addresses, u64::from(self.ports) << 16 | u64::from(self.map))
    }

    /// Source and destination exchanged.
    #[inline]
    pub(crate) fn reverse(&self) -> Self {
        Self {
            addresses: self.addresses.rotate_left(32),
            ports: self.ports.rotate_left(16),
            map: self.map,
        }
    }

    /// The declared form: map, source, source port, destination, destination port.
    pub(crate) fn numbers(&self) -> [u128; 5] {
        [
            self.map.into(),
            self.src().into(),
            self.src_port().into(),
            self.dst().into(),
            self.dst_port().into(),
        ]
    }

    /// From the declared form.
    pub(crate) fn from_numbers(numbers: &[u128]) -> Option<Self> {
        let &[map, src, src_port, dst, dst_port] = numbers else { return None };
        Some(Self::new(
            map.try_into().ok()?,
            src.try_into().ok()?,
            src_port.try_into().ok()?,
            dst.try_into().ok()?,
            dst_port.try_into().ok()?,
        ))
    }
}
