//! IPv4 addresses in IPv6 addresses (RFC 6052).

use std::net::{Ipv4Addr, Ipv6Addr};

use click::config::Argument;
use ipnet::Ipv6Net;
use ir::model::{Block, Reg};
use ir::{Cond, Expr, Field, IntervalSet, Op, Reason};

use crate::argument::FromArgument;
use crate::names::Names;

/// An address without the prefix that embeds IPv4 addresses.
pub(crate) const NOT_EMBEDDED: Reason = Reason("no-embedded-address");
/// An IPv4 address that no single host can have (RFC 7915, 4.1).
pub(crate) const NOT_HOST: Reason = Reason("bad-ip4-address");
/// The well-known prefix must not embed addresses that are not global (RFC 6052, 3.1).
pub(crate) const NOT_GLOBAL: Reason = Reason("not-global-address");

/// The well-known prefix.
const WELL_KNOWN: u128 = 0x0064_ff9b << 96;

/// IPv4 addresses by prefix.
type Networks = &'static [(u32, u8)];

/// Addresses that no single host on a network has.
const NO_HOSTS: Networks = &[(0, 8), (0x7f00_0000, 8), (0xe000_0000, 3)];
/// Addresses that are not global (RFC 5735, 3).
const LOCAL: Networks = &[
    (0x0a00_0000, 8),
    (0x6440_0000, 10),
    (0xa9fe_0000, 16),
    (0xac10_0000, 12),
    (0xc000_0000, 24),
    (0xc000_0200, 24),
    (0xc0a8_0000, 16),
    (0xc612_0000, 15),
    (0xc633_6400, 24),
    (0xcb00_7100, 24),
];

/// A prefix by which IPv6 addresses embed IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Embedding {
    bits: u128,
    length: u8,
}

impl Default for Embedding {
    /// That of IPv4-mapped addresses.
    fn default() -> Self {
        Self { bits: 0xffff << 32, length: 96 }
    }
}

impl FromArgument for Embedding {
    const EXPECTED: &'static str = "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let net = Ipv6Net::from_argument(argument, names, element)?;
        let (bits, length) = (net.trunc().addr().to_bits(), net.prefix_len());
        if !matches!(length, 32 | 40 | 48 | 56 | 64 | 96) {
            return Err(format!("{net} has {length} bits: 32, 40, 48, 56, 64 or 96 (RFC 6052)"));
        }
        if bits >> 56 & 0xff != 0 {
            return Err(format!("bits 64 to 71 of {net} must be 0 (RFC 6052)"));
        }
        Ok(Self { bits, length })
    }
}

impl Embedding {
    /// Number of bits of the IPv4 address before bit 64, and whether it all is behind bit 71.
    fn before(&self) -> u32 {
        match self.length {
            96 => 32,
            length => 64 - u32::from(length),
        }
    }

    /// The IPv6 address that stands for an IPv4 address.
    pub(crate) fn embed(&self, address: Ipv4Addr) -> Ipv6Addr {
        let address = u128::from(address.to_bits());
        let embedded = if self.length == 96 {
            address
        } else {
            let after = 32 - self.before();
            let (high, low) = (address >> after, address & ((1 << after) - 1));
            high << 64 | low << (56 - after)
        };
        (self.bits | embedded).into()
    }

    /// The IPv4 address that an IPv6 address embeds.
    pub(crate) fn extract(&self, address: Ipv6Addr) -> Result<Ipv4Addr, Reason> {
        let bits = address.to_bits();
        let mask = !(u128::MAX >> self.length) | 0xff << 56;
        if bits & mask != self.bits {
            return Err(NOT_EMBEDDED);
        }
        let embedded = if self.length == 96 {
            bits as u32
        } else {
            let after = 32 - self.before();
            let high = (bits >> 64) as u64 & ((1u64 << self.before()) - 1);
            let low = (bits >> (56 - after)) as u64 & ((1 << after) - 1);
            (high << after | low) as u32
        };
        Ok(embedded.into())
    }

    /// Whether an IPv6 address has the prefix.
    pub(crate) fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ self.bits) >> (128 - self.length) == 0
    }

    /// Why an IPv4 address must not be translated.
    pub(crate) fn refusal(&self, address: Ipv4Addr) -> Option<Reason> {
        let within = |networks: Networks| {
            let mut all = networks.iter();
            all.any(|&(net, length)| (address.to_bits() ^ net).leading_zeros() >= length.into())
        };
        match () {
            () if within(NO_HOSTS) => Some(NOT_HOST),
            () if self.is_well_known() && within(LOCAL) => Some(NOT_GLOBAL),
            () => None,
        }
    }

    fn is_well_known(&self) -> bool {
        self.bits == WELL_KNOWN && self.length == 96
    }

    // The same as parts of models.

    /// The address as a number that stands for the IPv4 address in a register.
    pub(crate) fn model_embed(&self, address: Reg) -> Expr {
        let address = || Expr::from(address);
        let embedded = if self.length == 96 {
            address()
        } else {
            let after = 32 - self.before();
            let low = address() & ((1u64 << after) - 1);
            (address() >> after) << 64u8 | low << (56 - after)
        };
        embedded | self.bits
    }

    /// Whether the address in a field of 128 bits has the prefix.
    pub(crate) fn model_contains(&self, address: Field) -> Cond {
        let prefix = u16::from(self.length);
        Field::bits(address.base, address.offset, prefix).eq(self.bits >> (128 - prefix))
    }

    /// Binds the IPv4 address that a field of 128 bits embeds, or drops the packet.
    pub(crate) fn model_extract(&self, address: Field, to: Reg) -> Block {
        let part =
            |offset: u16, width| Field::bits(address.base, address.offset + offset, width).get();
        let prefix = u16::from(self.length);
        let other = Field::bits(address.base, address.offset, prefix)
            .ne(self.bits >> (128 - prefix))
            .or(part(64, 8).ne(0u8));
        let before = self.before() as u16;
        let embedded = match self.length {
            96 => part(96, 32),
            64 => part(72, 32),
            32 => part(32, 32),
            _ => part(prefix, before) << (32 - before) | part(72, 32 - before),
        };
        vec![Op::when(other, vec![Op::Drop(NOT_EMBEDDED)]), Op::Let(to, embedded)]
    }

    /// Drops packets with an address that must not be translated.
    pub(crate) fn model_refusal(&self, address: Reg) -> Block {
        let drop = |networks: Networks, reason| {
            let set =
                |&(net, length): &(u32, u8)| IntervalSet::prefix(32, net.into(), length.into());
            let all: Vec<IntervalSet> = networks.iter().map(set).collect();
            let is_in: Cond = Expr::from(address).is_in(IntervalSet::union_of(&all));
            Op::when(is_in, vec![Op::Drop(reason)])
        };
        let mut block = vec![drop(NO_HOSTS, NOT_HOST)];
        if self.is_well_known() {
            block.push(drop(LOCAL, NOT_GLOBAL));
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 6052, 2.4.
    #[test]
    fn addresses_are_those_of_rfc_6052() {
        let examples = [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ];
        let address: Ipv4Addr = "192.0.2.33".parse().unwrap();
        for (prefix, length, embedded) in examples {
            let prefix: Ipv6Addr = prefix.parse().unwrap();
            let embedded: Ipv6Addr = embedded.parse().unwrap();
            let embedding = Embedding { bits: prefix.to_bits(), length };
            assert_eq!(embedding.embed(address), embedded);
            assert_eq!(embedding.extract(embedded), Ok(address));
            let other = Ipv6Addr::from_bits(embedded.to_bits() ^ 1 << 120);
            assert_eq!(embedding.extract(other), Err(NOT_EMBEDDED));
            let reserved = Ipv6Addr::from_bits(embedded.to_bits() | 1 << 56);
            assert_eq!(embedding.extract(reserved), Err(NOT_EMBEDDED));
        }
    }
}
