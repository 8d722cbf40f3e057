//! FromIPSummaryDump and ToIPSummaryDump: packets as lines of text, a column for each field.

mod read;
mod write;

use click::config::{Argument, unquote};

use crate::configure::Arguments;

pub(crate) use read::FromIPSummaryDump;
pub(crate) use write::ToIPSummaryDump;

/// A column of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Timestamp,
    Seconds,
    Microseconds,
    FirstTimestamp,
    EtherSource,
    EtherDestination,
    EtherType,
    Source,
    Destination,
    Length,
    Protocol,
    Id,
    Ttl,
    Tos,
    Fragment,
    FragmentOffset,
    SourcePort,
    DestinationPort,
    TcpSequence,
    TcpAcknowledgement,
    TcpFlags,
    TcpWindow,
    UdpLength,
    IcmpType,
    IcmpCode,
    PayloadLength,
    Payload,
    WireLength,
    Count,
    Link,
    Paint,
    Aggregate,
}

/// Columns by their names; of several names the first is written.
const NAMES: [(&str, Field); 50] = [
    ("timestamp", Field::Timestamp),
    ("ntimestamp", Field::Timestamp),
    ("ts", Field::Timestamp),
    ("ts_sec", Field::Seconds),
    ("sec", Field::Seconds),
    ("ts_usec", Field::Microseconds),
    ("usec", Field::Microseconds),
    ("first_timestamp", Field::FirstTimestamp),
    ("first_ntimestamp", Field::FirstTimestamp),
    ("eth_src", Field::EtherSource),
    ("eth_dst", Field::EtherDestination),
    ("eth_type", Field::EtherType),
    ("ip_src", Field::Source),
    ("src", Field::Source),
    ("ip_dst", Field::Destination),
    ("dst", Field::Destination),
    ("ip_len", Field::Length),
    ("len", Field::Length),
    ("length", Field::Length),
    ("ip_proto", Field::Protocol),
    ("proto", Field::Protocol),
    ("ip_id", Field::Id),
    ("id", Field::Id),
    ("ip_ttl", Field::Ttl),
    ("ttl", Field::Ttl),
    ("ip_tos", Field::Tos),
    ("tos", Field::Tos),
    ("ip_frag", Field::Fragment),
    ("frag", Field::Fragment),
    ("ip_fragoff", Field::FragmentOffset),
    ("fragoff", Field::FragmentOffset),
    ("sport", Field::SourcePort),
    ("dport", Field::DestinationPort),
    ("tcp_seq", Field::TcpSequence),
    ("tcp_ack", Field::TcpAcknowledgement),
    ("tcp_flags", Field::TcpFlags),
    ("tcp_window", Field::TcpWindow),
    ("udp_len", Field::UdpLength),
    ("icmp_type", Field::IcmpType),
    ("icmp_code", Field::IcmpCode),
    ("payload_len", Field::PayloadLength),
    ("payload", Field::Payload),
    ("wire_len", Field::WireLength),
    ("count", Field::Count),
    ("pkt_count", Field::Count),
    ("packets", Field::Count),
    ("link", Field::Link),
    ("direction", Field::Link),
    ("paint", Field::Paint),
    ("aggregate", Field::Aggregate),
];

impl Field {
    /// The field of a name, which may be quoted and have spaces, as in older dumps.
    fn parse(word: &str) -> Option<Self> {
        let name = String::from_utf8(unquote(word)).ok()?.replace(' ', "_");
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, field)| *field)
    }

    fn name(self) -> &'static str {
        NAMES.iter().find(|(_, f)| *f == self).map_or("-", |(name, _)| name)
    }
}

/// The flags of TCP by their bits, the lowest first.
const FLAGS: &str = "FSRPAUECN";

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Bytes of the transport header without options, of protocols that have one with columns.
fn transport_length(protocol: u8) -> usize {
    match protocol {
        TCP => 20,
        UDP | ICMP => 8,
        _ => 0,
    }
}

/// The fields that an argument names, of several keywords the first that is given.
fn fields(arguments: &mut Arguments<'_, '_>, keywords: &[&'static str]) -> Option<Vec<Field>> {
    let given: Vec<Argument> =
        keywords.iter().filter_map(|k| arguments.keyword_argument(k)).collect();
    let argument = given.first()?;
    let mut fields = Vec::new();
    for word in argument.words() {
        match Field::parse(&word.text) {
            Some(field) => fields.push(field),
            None => arguments.error(&word, format!("'{}' is not a field", word.text)),
        }
    }
    Some(fields)
}
