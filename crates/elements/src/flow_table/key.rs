//! What flows are found by.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use net::flow::FlowHash;

use crate::flow_access::{Column, columns, set};
use crate::listing::Tuple;

/// The addresses of a packet, source and destination, of one version of IP.
pub(crate) trait Addresses: Copy + Debug + Default + PartialEq + Send + 'static {
    /// An address as a number.
    type Address: Copy + Eq + Hash + Into<u128> + TryFrom<u128>;

    /// Those of no packet.
    const NONE: Self;
    /// Bits of an address.
    const WIDTH: u16;
    /// How many columns each number of a key takes: map, source, source port, destination, destination port.
    const COLUMNS: [u8; 5] = [1, columns(Self::WIDTH), 1, columns(Self::WIDTH), 1];

    fn of(src: Self::Address, dst: Self::Address) -> Self;
    fn src(self) -> Self::Address;
    fn dst(self) -> Self::Address;
    /// Source and destination exchanged.
    fn reverse(self) -> Self;
    /// An address as others know it.
    fn ip(address: Self::Address) -> IpAddr;
    /// The hash of the addresses and 48 bits more.
    fn hash(self, rest: u64, with: &FlowHash) -> u64;
    /// An address that stands in columns.
    fn read(columns: &[&Column], lane: usize) -> Option<Self::Address>;
    /// Writes an address to columns.
    fn write(address: Self::Address, columns: &mut [Column], first: usize, lane: usize);
    /// A key, if numbers of such keys can be allocated from pools.
    fn pooled(key: &FlowKey<Self>) -> Option<&Key>;
}

/// Of IPv4: the source in the upper half.
impl Addresses for u64 {
    type Address = u32;

    const NONE: Self = 0;
    const WIDTH: u16 = 32;

    #[inline]
    fn of(src: u32, dst: u32) -> Self {
        u64::from(src) << 32 | u64::from(dst)
    }

    #[inline]
    fn src(self) -> u32 {
        (self >> 32) as u32
    }

    #[inline]
    fn dst(self) -> u32 {
        self as u32
    }

    #[inline]
    fn reverse(self) -> Self {
        self.rotate_left(32)
    }

    fn ip(address: u32) -> IpAddr {
        Ipv4Addr::from_bits(address).into()
    }

    #[inline]
    fn hash(self, rest: u64, with: &FlowHash) -> u64 {
        with.two(self, rest)
    }

    #[inline]
    fn read(columns: &[&Column], lane: usize) -> Option<u32> {
        Some(columns.first()?[lane])
    }

    #[inline]
    fn write(address: u32, columns: &mut [Column], first: usize, lane: usize) {
        if let Some(column) = columns.get_mut(first) {
            column[lane] = address;
        }
    }

    #[inline]
    fn pooled(key: &FlowKey<Self>) -> Option<&Key> {
        Some(key)
    }
}

/// Of IPv6: source, destination.
impl Addresses for [u128; 2] {
    type Address = u128;

    const NONE: Self = [0; 2];
    const WIDTH: u16 = 128;

    #[inline]
    fn of(src: u128, dst: u128) -> Self {
        [src, dst]
    }

    #[inline]
    fn src(self) -> u128 {
        self[0]
    }

    #[inline]
    fn dst(self) -> u128 {
        self[1]
    }

    #[inline]
    fn reverse(self) -> Self {
        [self[1], self[0]]
    }

    fn ip(address: u128) -> IpAddr {
        Ipv6Addr::from_bits(address).into()
    }

    #[inline]
    fn hash(self, rest: u64, with: &FlowHash) -> u64 {
        let halves = |n: u128| with.two((n >> 64) as u64, n as u64);
        let [src, dst] = self.map(halves);
        // A source and a destination with the same hash are not each other's.
        with.two(with.two(src, dst), rest)
    }

    fn read(columns: &[&Column], lane: usize) -> Option<u128> {
        let words: &[&Column; 4] = columns.first_chunk()?;
        Some(words.iter().rev().fold(0, |n, column| n << 32 | u128::from(column[lane])))
    }

    fn write(address: u128, columns: &mut [Column], first: usize, lane: usize) {
        set(columns, first, lane, address as u64);
        set(columns, first + 2, lane, (address >> 64) as u64);
    }

    fn pooled(_: &FlowKey<Self>) -> Option<&Key> {
        None
    }
}

/// What packets of one direction of a flow have in common. The map distinguishes tables that share
/// a capacity: a rewriter's number among those that share, and what else is part of the key, such
/// as the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowKey<A> {
    /// Source address, destination address.
    pub addresses: A,
    /// Source port, destination port.
    pub ports: u32,
    /// Number of the rewriter and protocol.
    pub map: u16,
}

/// A key of IPv4.
pub(crate) type Key = FlowKey<u64>;

/// A key, and what it is found by in a table ([`super::Table::hashed`]): computed once for all that is done with it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HashedKey<A> {
    pub key: FlowKey<A>,
    pub hash: u64,
}

/// A hashed key of IPv4.
pub(crate) type Hashed = HashedKey<u64>;

impl<A: Addresses> FlowKey<A> {
    /// From its parts.
    #[inline]
    pub(crate) fn new(
        map: u16,
        src: A::Address,
        src_port: u16,
        dst: A::Address,
        dst_port: u16,
    ) -> Self {
        let ports = u32::from(src_port) << 16 | u32::from(dst_port);
        Self { addresses: A::of(src, dst), ports, map }
    }

    pub(crate) fn src(&self) -> A::Address {
        self.addresses.src()
    }

    pub(crate) fn dst(&self) -> A::Address {
        self.addresses.dst()
    }

    pub(crate) fn src_port(&self) -> u16 {
        (self.ports >> 16) as u16
    }

    pub(crate) fn dst_port(&self) -> u16 {
        self.ports as u16
    }

    pub(crate) fn set_src(&mut self, src: A::Address) {
        self.addresses = A::of(src, self.dst());
    }

    pub(crate) fn set_dst(&mut self, dst: A::Address) {
        self.addresses = A::of(self.src(), dst);
    }

    pub(crate) fn set_src_port(&mut self, port: u16) {
        self.ports = self.ports & 0xffff | u32::from(port) << 16;
    }

    pub(crate) fn set_dst_port(&mut self, port: u16) {
        self.ports = self.ports & !0xffff | u32::from(port);
    }

    /// Its addresses and ports.
    pub(crate) fn tuple(&self) -> Tuple {
        let (src, dst) = (A::ip(self.src()), A::ip(self.dst()));
        Tuple { src, src_port: self.src_port(), dst, dst_port: self.dst_port() }
    }

    /// What it is found by.
    #[inline]
    pub(super) fn hash(&self, with: &FlowHash) -> u64 {
        self.addresses.hash(u64::from(self.ports) << 16 | u64::from(self.map), with)
    }

    /// Source and destination exchanged.
    #[inline]
    pub(crate) fn reverse(&self) -> Self {
        Self {
            addresses: self.addresses.reverse(),
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
