//! ToIPSummaryDump.

use std::fmt::Write as _;
use std::io::Write;

use click::config::quote;
use ir::{Model, Span};
use net::annotation::{AGGREGATE, EXTRA_LENGTH, EXTRA_PACKETS, FIRST_TIMESTAMP, PAINT};
use net::wire::{Ethernet, Ipv4, Tcp};
use net::{Batch, Header, Packet};

use super::{FLAGS, Field, ICMP, TCP, UDP, fields, transport_length};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Traffic, Work};
use crate::plumbing::print::show_time;

element! {
    /// ToIPSummaryDump(FILENAME [, KEYWORDS]) -- writes a line of text for each packet
    ///
    /// Writes the named fields of each packet, whose IP header must be marked, as a line of a
    /// text file. FILENAME - is the standard output. A field that a packet does not have is
    /// written as -. With an output, packets go on there.
    ///
    /// Fields are timestamp, ts_sec, ts_usec, first_timestamp; eth_src, eth_dst, eth_type; ip_src,
    /// ip_dst, ip_len, ip_proto, ip_id, ip_ttl, ip_tos, ip_frag, ip_fragoff; sport, dport;
    /// tcp_seq, tcp_ack, tcp_flags, tcp_window; udp_len; icmp_type, icmp_code; payload_len,
    /// payload; wire_len, count, link, paint and aggregate.
    ///
    /// = KEYWORDS
    ///
    /// FIELDS (NAME ..., default ip_src ip_dst): the columns. CONTENTS and DATA are older names.
    /// HEADER (bool, default true): whether the file begins with its version and its columns.
    /// VERBOSE (bool, default false): whether creator and starting time are written too.
    /// BANNER (string): the creator.
    /// MULTIPACKET (bool, default false): whether a packet that stands for several has as many
    /// lines.
    /// BAD_PACKETS (bool, default false): whether packets with bad headers have a line that says
    /// so instead.
    /// CAREFUL_TRUNC (bool, default true): whether packets that lack bytes are bad, too.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// reset_counts (write): starts the count again from zero.
    /// filename (read): the file's name.
    /// flush (write): writes out what is still in memory.
    ///
    /// = SEE ALSO
    ///
    /// FromIPSummaryDump, ToDump, IPPrint
    ToIPSummaryDump {
        category: Io, ports: "1/0-1", processing: "a/a",
        boundary: Egress,
        samples: []
    }
}

/// See [`ToIPSummaryDump::CLASS`].
pub(crate) struct ToIPSummaryDump {
    path: String,
    span: Span,
    fields: Vec<Field>,
    header: bool,
    /// Who made the file, to be written into it.
    creator: Option<String>,
    /// Whether the time of the first packet is to be written.
    start_time: bool,
    multipacket: bool,
    bad_packets: bool,
    careful: bool,
    pulls: bool,
    passes: bool,
    file: Option<Box<dyn Write>>,
    /// The lines of a batch.
    text: String,
    count: u64,
    bytes: u64,
}

/// The parts of a packet that fields are taken from.
struct View<'a> {
    packet: &'a Packet,
    ether: Option<Ethernet<&'a [u8]>>,
    /// The IPv4 header with what follows it.
    ip: Option<Ipv4<&'a [u8]>>,
    /// What follows the header, in a packet that is not a later fragment.
    transport: Option<&'a [u8]>,
}

impl<'a> View<'a> {
    fn new(packet: &'a Packet) -> Self {
        let ip = packet.network().and_then(Ipv4::new).filter(|ip| ip.version() == 4);
        let transport = ip.filter(|ip| !ip.is_later_fragment()).and_then(|ip| {
            let bytes = ip.into_inner();
            bytes.get(ip_header_length(ip)?..bytes.len().min(usize::from(ip.total_len())))
        });
        let ether = packet.header(Header::Mac).and_then(Ethernet::new);
        Self { packet, ether, ip, transport }
    }

    /// At least `length` bytes of the transport header of one of these protocols.
    fn transport(&self, protocols: &[u8], length: usize) -> Option<&'a [u8]> {
        protocols.contains(&self.ip?.protocol()).then_some(())?;
        self.transport.filter(|t| t.len() >= length)
    }

    /// How many bytes the headers from the IP header on have.
    fn headers(&self) -> Option<usize> {
        let ip = self.ip?;
        let own = ip_header_length(ip)?;
        Some(match ip.protocol() {
            _ if ip.is_later_fragment() => own,
            TCP => own + (usize::from(self.transport(&[TCP], 13)?[12]) >> 4) * 4,
            protocol => own + transport_length(protocol),
        })
    }

    fn payload(&self) -> Option<&'a [u8]> {
        let Some(ip) = self.ip else { return Some(self.packet.data()) };
        let bytes = ip.into_inner();
        bytes.get(self.headers()?..bytes.len().min(usize::from(ip.total_len())))
    }

    fn wire_length(&self) -> u64 {
        let captured = self.packet.len();
        let held = self.ether.map_or(captured, |e| e.bytes().len().max(captured));
        held as u64 + u64::from(self.packet.annotations().u32(EXTRA_LENGTH))
    }

    /// What is wrong with the headers.
    fn fault(&self, careful: bool) -> Option<String> {
        let Some(ip) = self.ip else {
            return Some(match self.packet.network() {
                None => "no IP header".to_string(),
                Some(ip) if ip.len() < 20 => "truncated IP header".to_string(),
                Some(ip) => format!("IP version {}", ip[0] >> 4),
            });
        };
        let total = usize::from(ip.total_len());
        let Some(own) = ip_header_length(ip).filter(|own| *own <= total) else {
            return Some("IP header length".to_string());
        };
        let wanted = own + transport_length(ip.protocol());
        if !ip.is_later_fragment() && total < wanted {
            return Some("IP length too short for the transport header".to_string());
        }
        let there =
            ip.bytes().len() as u64 + u64::from(self.packet.annotations().u32(EXTRA_LENGTH));
        let missing = (total as u64).saturating_sub(there);
        (careful && missing > 0).then(|| format!("truncated IP missing {missing}"))
    }

    /// Adds a field to a line; `None` if the packet does not have it.
    fn write(&self, field: Field, line: &mut String) -> Option<()> {
        let annotations = self.packet.annotations();
        let time = self.packet.timestamp();
        let ports = || self.transport(&[TCP, UDP, 33, 136], 4);
        let tcp = || self.transport(&[TCP], 20).and_then(Tcp::new);
        let icmp = || self.transport(&[ICMP], 2);
        let number = match field {
            Field::Timestamp => return push(line, &show_time(time)),
            Field::FirstTimestamp => {
                return push(line, &show_time(annotations.u64(FIRST_TIMESTAMP)));
            }
            Field::EtherSource => return push(line, &self.ether?.src().to_string()),
            Field::EtherDestination => return push(line, &self.ether?.dst().to_string()),
            Field::EtherType => return push(line, &format!("{:04x}", self.ether?.ether_type())),
            Field::Source => return push(line, &self.ip?.src().to_string()),
            Field::Destination => return push(line, &self.ip?.dst().to_string()),
            Field::Protocol => match self.ip?.protocol() {
                TCP => return push(line, "T"),
                UDP => return push(line, "U"),
                ICMP => return push(line, "I"),
                other => u64::from(other),
            },
            Field::Fragment => {
                let ip = self.ip?;
                return push(
                    line,
                    match (ip.is_later_fragment(), ip.more_fragments(), ip.dont_fragment()) {
                        (true, ..) => "f",
                        (_, true, _) => "F",
                        (.., true) => "!",
                        _ => ".",
                    },
                );
            }
            Field::FragmentOffset => {
                let ip = self.ip?;
                let more = if ip.more_fragments() { "+" } else { "" };
                let keep = if ip.dont_fragment() { "!" } else { "" };
                return push(line, &format!("{}{more}{keep}", ip.fragment_offset()));
            }
            Field::TcpFlags => {
                let flags = word(tcp()?.into_inner(), 12) & 0x1ff;
                if flags == 0 {
                    line.push('.');
                }
                line.extend(
                    FLAGS.chars().enumerate().filter(|(i, _)| flags >> i & 1 == 1).map(|f| f.1),
                );
                return Some(());
            }
            Field::Payload => return push(line, &quote(self.payload()?)),
            Field::Link => match annotations.u8(PAINT) {
                0 => return push(line, ">"),
                1 => return push(line, "<"),
                other => u64::from(other),
            },
            Field::Seconds => time / 1_000_000_000,
            Field::Microseconds => time % 1_000_000_000 / 1000,
            Field::Length => {
                self.ip.map_or(self.packet.len() as u64, |ip| u64::from(ip.total_len()))
            }
            Field::Id => u64::from(self.ip?.id()),
            Field::Ttl => u64::from(self.ip?.ttl()),
            Field::Tos => u64::from(self.ip?.tos()),
            Field::SourcePort => u64::from(word(ports()?, 0)),
            Field::DestinationPort => u64::from(word(ports()?, 2)),
            Field::TcpSequence => u64::from(tcp()?.seq()),
            Field::TcpAcknowledgement => u64::from(tcp()?.ack()),
            Field::TcpWindow => u64::from(tcp()?.window()),
            Field::UdpLength => u64::from(word(self.transport(&[UDP], 6)?, 4)),
            Field::IcmpType => u64::from(icmp()?[0]),
            Field::IcmpCode => u64::from(icmp()?[1]),
            Field::PayloadLength => match self.ip {
                Some(ip) => usize::from(ip.total_len()).checked_sub(self.headers()?)? as u64,
                None => self.packet.len() as u64,
            },
            Field::WireLength => self.wire_length(),
            Field::Count => u64::from(annotations.u16(EXTRA_PACKETS)) + 1,
            Field::Paint => u64::from(annotations.u8(PAINT)),
            Field::Aggregate => u64::from(annotations.u32(AGGREGATE)),
        };
        let _ = write!(line, "{number}");
        Some(())
    }
}

/// The length that an IP header says it has, if it can be true.
fn ip_header_length(ip: Ipv4<&[u8]>) -> Option<usize> {
    Some(ip.header_len()).filter(|own| (20..=ip.bytes().len()).contains(own))
}

/// The 16-bit number at a constant offset.
fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn push(line: &mut String, text: &str) -> Option<()> {
    line.push_str(text);
    Some(())
}

impl ToIPSummaryDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, passes) = (cx.span(), cx.outputs() > 0);
        let pulls = cx.pulls() && !passes;
        let mut arguments = cx.arguments(&[
            "FILENAME",
            "FIELDS",
            "CONTENTS",
            "DATA",
            "HEADER",
            "VERBOSE",
            "BANNER",
            "MULTIPACKET",
            "BAD_PACKETS",
            "CAREFUL_TRUNC",
        ]);
        let path = arguments.required("FILENAME");
        let fields = fields(&mut arguments, &["FIELDS", "CONTENTS", "DATA"])
            .unwrap_or_else(|| vec![Field::Source, Field::Destination]);
        let header = arguments.keyword("HEADER").unwrap_or(true);
        let verbose = arguments.keyword("VERBOSE").unwrap_or(false);
        let banner: Option<String> = arguments.keyword("BANNER");
        let multipacket = arguments.keyword("MULTIPACKET").unwrap_or(false);
        let bad_packets = arguments.keyword("BAD_PACKETS").unwrap_or(false);
        let careful = arguments.keyword("CAREFUL_TRUNC").unwrap_or(true);
        arguments.finish()?;
        Ok(Self {
            path,
            span,
            multipacket: multipacket && !fields.contains(&Field::Count),
            fields,
            header,
            creator: banner.or_else(|| verbose.then(|| "catena".to_string())),
            start_time: verbose,
            bad_packets,
            careful,
            pulls,
            passes,
            file: None,
            text: String::new(),
            count: 0,
            bytes: 0,
        })
    }

    fn write_header(&mut self) {
        if self.header {
            self.text.push_str("!IPSummaryDump 1.3\n");
        }
        if let Some(creator) = &self.creator {
            let _ = writeln!(self.text, "!creator {}", quote(creator.as_bytes()));
        }
        if self.header {
            self.text.push_str("!data");
            for field in &self.fields {
                self.text.push(' ');
                self.text.push_str(field.name());
            }
            self.text.push('\n');
        }
    }

    fn write_packet(&mut self, packet: &Packet) {
        let view = View::new(packet);
        if self.bad_packets
            && let Some(fault) = view.fault(self.careful)
        {
            let _ = writeln!(self.text, "!bad {fault}");
            return;
        }
        let start = self.text.len();
        for (i, &field) in self.fields.iter().enumerate() {
            if i > 0 {
                self.text.push(' ');
            }
            if view.write(field, &mut self.text).is_none() {
                self.text.push('-');
            }
        }
        self.text.push('\n');
        if self.multipacket {
            let line = self.text[start..].to_string();
            for _ in 0..packet.annotations().u16(EXTRA_PACKETS) {
                self.text.push_str(&line);
            }
        }
    }

    fn write_batch(&mut self, batch: &Batch, cx: &mut Context<'_>) {
        if self.start_time && !batch.is_empty() {
            self.start_time = false;
            let _ = writeln!(self.text, "!starttime {}", show_time(cx.now()));
        }
        for packet in batch.iter() {
            self.count += 1;
            self.bytes += packet.len() as u64;
            self.write_packet(packet);
        }
        if let Err(why) = self.write_out() {
            cx.error(&why);
        }
    }

    /// Hands the lines to the file; after an error there is none.
    fn write_out(&mut self) -> Result<(), String> {
        let result = self.file.as_mut().map_or(Ok(()), |f| f.write_all(self.text.as_bytes()));
        self.text.clear();
        result.map_err(|why| {
            self.file = None;
            format!("{}: {why}", self.path)
        })
    }
}

impl Element for ToIPSummaryDump {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.write_batch(batch, cx);
        if !self.passes {
            cx.core.pool.recycle_all(batch);
        }
    }

    fn model(&self) -> Model {
        Model::opaque("writes a file")
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.file = Some(cx.create(&self.path, self.span)?);
        // Stays in memory until there is more, or the end.
        self.write_header();
        Ok(())
    }

    fn has_task(&self) -> bool {
        self.pulls
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        let mut batch = cx.core.batch();
        while batch.len() < Batch::DEFAULT_BURST
            && let Some(packet) = cx.pull(0)
        {
            batch.push(packet);
        }
        let work = if batch.is_empty() { Work::Idle } else { Work::Done };
        self.write_batch(&batch, cx);
        cx.core.pool.recycle_all(&mut batch);
        cx.core.recycle_batch(batch);
        work
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Err(why) = self.write("flush", "", cx) {
            cx.error(&why);
        }
        self.file = None;
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: false, packets: self.count, bytes: self.bytes })
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::write("reset_counts"),
                Handler::read("filename"),
                Handler::write("flush"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "filename" => self.path.clone(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, handler: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "flush" {
            self.write_out()?;
            return self.file.as_mut().map_or(Ok(()), |f| f.flush()).map_err(|e| e.to_string());
        }
        (self.count, self.bytes) = (0, 0);
        Ok(())
    }
}
