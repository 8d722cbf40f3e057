//! How numbers are written: addresses as addresses, their sets as prefixes, all else in decimal.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Field;
use crate::field::{anno, arp, eth, ip, ip6};
use crate::interval::IntervalSet;

/// How the numbers of a field are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Decimal,
    Ethernet,
    Ipv4,
    Ipv6,
}

impl Notation {
    pub(crate) fn of(field: Field) -> Self {
        match field {
            eth::DST | eth::SRC | arp::SHA | arp::THA => Self::Ethernet,
            ip::SRC | ip::DST | arp::SPA | arp::TPA | anno::DST_IP => Self::Ipv4,
            ip6::SRC | ip6::DST | anno::DST_IP6 => Self::Ipv6,
            _ => Self::Decimal,
        }
    }

    /// As addresses, where numbers are as wide as those.
    pub(crate) fn of_width(width: u16) -> Self {
        match width {
            32 => Self::Ipv4,
            48 => Self::Ethernet,
            128 => Self::Ipv6,
            _ => Self::Decimal,
        }
    }

    fn width(self) -> u32 {
        match self {
            Self::Ethernet => 48,
            Self::Ipv4 => 32,
            Self::Ipv6 | Self::Decimal => 128,
        }
    }

    fn has_prefixes(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv6)
    }
}

/// A number in a notation; one that is too large for an address is written in decimal.
pub(crate) struct Number(pub(crate) Notation, pub(crate) u128);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number(notation, value) = *self;
        if notation.width() < 128 && value >> notation.width() != 0 {
            return write!(f, "{value}");
        }
        match notation {
            Notation::Decimal => write!(f, "{value}"),
            Notation::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(value as u32)),
            Notation::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(value)),
            Notation::Ethernet => {
                let bytes = &value.to_be_bytes()[10..];
                for (i, byte) in bytes.iter().enumerate() {
                    write!(f, "{}{byte:02x}", if i == 0 { "" } else { ":" })?;
                }
                Ok(())
            }
        }
    }
}

/// A set in a notation: `{6, 17, 80..443}` or `{10.0.0.0/8}`; both ends of a range belong to it.
pub(crate) struct Numbers<'a>(pub(crate) Notation, pub(crate) &'a IntervalSet);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notation = self.0;
        f.write_str("{")?;
        for (i, &(low, high)) in self.1.intervals().iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            let free = (low ^ high).count_ones();
            let prefix = (low ^ high).checked_add(1).is_none_or(u128::is_power_of_two)
                && low & (low ^ high) == 0
                && high.checked_shr(notation.width()).unwrap_or(0) == 0;
            write!(f, "{}", Number(notation, low))?;
            if low == high {
            } else if notation.has_prefixes() && prefix {
                write!(f, "/{}", notation.width() - free)?;
            } else {
                write!(f, "..{}", Number(notation, high))?;
            }
        }
        f.write_str("}")
    }
}
