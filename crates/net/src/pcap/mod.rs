//! Captures: pcap and pcapng files, plain or gzip.
//!
//! A [`Reader`] finds out by itself which of them it reads, in which byte order and with which resolution of
//! time. It never allocates per record, and its [errors](Error) name the byte where the file is wrong; what came
//! before has been delivered by then.

mod error;
mod ng;
mod reader;
mod source;
mod writer;

pub use error::{Error, ErrorKind, FilePart};
pub use ng::{InterfaceOptions, PcapngWriter};
pub use reader::{Interface, Reader, Record, RecordHeader};
pub use writer::{Format, Options, Writer};

use std::fmt;

/// The longest record that is read, in bytes, whatever snap length a file announces.
pub const MAX_CAPTURED_LEN: u32 = 16 << 20;

/// The snap length that writers announce by default, in bytes.
pub const DEFAULT_SNAP_LEN: u32 = 1 << 18;

/// What a record's bytes begin with: a number of the tcpdump project's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: the address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: LinkType = LinkType(101);
    /// Raw IP, as some systems number it.
    pub const RAW_12: LinkType = LinkType(12);
    /// Raw IP, as OpenBSD numbers it.
    pub const RAW_14: LinkType = LinkType(14);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IPv4 without a link header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// True if records begin with an IP header.
    pub const fn is_raw_ip(self) -> bool {
        matches!(self, Self::RAW | Self::RAW_12 | Self::RAW_14 | Self::IPV4 | Self::IPV6)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::RAW | Self::RAW_12 | Self::RAW_14 => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::LINUX_SLL2 => "Linux cooked v2",
            LinkType(number) => return write!(f, "link type {number}"),
        })
    }
}
