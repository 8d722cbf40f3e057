//! FromIPSummaryDump.

use std::cell::Cell;
use std::rc::Rc;

use click::config::{unquote, words};
use ir::{Model, Processing};
use net::annotation::{AGGREGATE, EXTRA_LENGTH, EXTRA_PACKETS, FIRST_TIMESTAMP, PAINT};
use net::checksum::{Sum, udp_field};
use net::wire::{Ethernet, Icmpv4, Ipv4, Tcp, Udp};
use net::{Batch, Header, Packet, Pool};

use super::{FLAGS, Field, ICMP, TCP, UDP, fields, transport_length};
use crate::argument::{Nanoseconds, parse_integer, parse_ipv4, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerCalls, HandlerContext, Traffic, Work};
use crate::io::from_dump::LinkType;

element! {
    /// FromIPSummaryDump(FILENAME [, KEYWORDS]) -- makes packets from lines of text
    ///
    /// Makes an IPv4 packet from each line of a file as ToIPSummaryDump writes it, and pushes it
    /// out with its timestamp, or hands it out when it is pulled. FILENAME - is the standard
    /// input. IP and transport header are marked; what a line does not say is zero, but for the
    /// time to live, which is 100. Packets have only the payload that a line spells out: what is
    /// missing from their length is noted in the extra length annotation. A line that cannot be
    /// understood is passed over and counted; the first of them is reported. The file is read
    /// when the first packet is wanted.
    ///
    /// = KEYWORDS
    ///
    /// STOP (bool, default false): whether the driver stops at the end.
    /// ACTIVE (bool, default true): whether it reads.
    /// CHECKSUM (bool, default false): whether checksums are set, a missing payload taken as
    /// zeros.
    /// PROTO (0 to 255, default 6): the protocol of packets whose lines name none.
    /// DEFAULT_FIELDS (NAME ...): the columns of a file that does not name them.
    /// DEFAULT_CONTENTS, FIELDS and CONTENTS are older names.
    /// BURST (number, default 32): how many packets are made at a time.
    /// ZERO is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// bad_lines (read): lines that were passed over.
    /// reset_counts (write): starts both again from zero.
    /// active (read, write): whether it reads.
    /// encap (read): IP.
    /// filename (read): the file's name.
    /// stop (write): stops reading and asks the driver to stop.
    ///
    /// = SEE ALSO
    ///
    /// ToIPSummaryDump, FromDump
    FromIPSummaryDump {
        category: Io, ports: "0/1", processing: "a/a",
        boundary: Ingress,
        samples: []
    }
}

/// See [`FromIPSummaryDump::CLASS`].
pub(crate) struct FromIPSummaryDump {
    path: String,
    /// The file once it has been read, and where the next line begins.
    text: Option<String>,
    position: usize,
    /// Lines so far.
    line: u64,
    fields: Vec<Field>,
    protocol: u8,
    /// Whether fragment offsets count eight bytes each, as in version 1.0.
    old_offsets: bool,
    checksum: bool,
    burst: usize,
    pulled: bool,
    active: bool,
    stop: bool,
    ended: bool,
    bad_lines: u64,
    count: u64,
    bytes: u64,
}

/// Lines that may be passed over in one go.
const MAX_LINES: usize = 4096;
/// Bytes of a file at the most: it is kept in memory.
const MAX_FILE: u64 = 1 << 30;

/// The type of bare IP packets.
const RAW: u32 = 101;

/// What a line says about its packet.
#[derive(Default)]
struct Described {
    seconds: u64,
    nanoseconds: u64,
    first_timestamp: u64,
    ether: Option<[u8; 14]>,
    ip: [u8; 20],
    protocol: Option<u8>,
    /// TCP's header; the ports are UDP's, too.
    tcp: [u8; 20],
    icmp: [u8; 2],
    ip_length: Option<usize>,
    udp_length: Option<u16>,
    payload_length: Option<usize>,
    wire_length: Option<usize>,
    payload: Vec<u8>,
    extra_packets: u16,
    paint: u8,
    aggregate: u32,
}

/// A number within the range of its type.
fn number<T: TryFrom<i128>>(word: &str) -> Option<T> {
    parse_integer(word).and_then(|n| T::try_from(n).ok())
}

/// Nanoseconds since the epoch.
fn time(word: &str) -> Option<u64> {
    parse_value::<Nanoseconds>(word).ok().map(|t| t.0)
}

fn protocol(word: &str) -> Option<u8> {
    match word {
        "T" => Some(TCP),
        "U" => Some(UDP),
        "I" => Some(ICMP),
        _ => number(word),
    }
}

/// The flags' bits; an older notation for them is a number.
fn tcp_flags(word: &str) -> Option<u16> {
    if word == "." {
        return Some(0);
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return number::<u16>(word).filter(|flags| *flags < 0x200);
    }
    word.chars().try_fold(0, |flags, c| {
        let bit = match c {
            'X' => 6,
            'Y' => 7,
            _ => FLAGS.find(c)?,
        };
        Some(flags | 1 << bit)
    })
}

/// The IP header's word of flags and offset.
fn fragment(word: &str, old_offsets: bool) -> Option<u16> {
    match word {
        "." => return Some(0),
        "!" => return Some(0x4000),
        "F" => return Some(0x2000),
        // Some later fragment; which is not known.
        "f" => return Some(100),
        _ => {}
    }
    let digits = word.trim_end_matches(['+', '!']);
    let offset: u32 = number(digits)?;
    let offset = u16::try_from(if old_offsets { offset } else { offset / 8 }).ok()?;
    let flag = |sign, bit| if word[digits.len()..].contains(sign) { bit } else { 0u16 };
    (offset < 0x2000).then_some(offset | flag('+', 0x2000) | flag('!', 0x4000))
}

impl Described {
    fn new() -> Self {
        let mut described = Self::default();
        described.ip().set_header_len(20);
        described.ip().set_ttl(100);
        described.tcp().set_header_len(20);
        described
    }

    fn ether(&mut self) -> Ethernet<&mut [u8; 14]> {
        Ethernet::of(self.ether.get_or_insert([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]))
    }

    fn ip(&mut self) -> Ipv4<&mut [u8; 20]> {
        Ipv4::of(&mut self.ip)
    }

    /// What holds the ports of UDP, too.
    fn tcp(&mut self) -> Tcp<&mut [u8; 20]> {
        Tcp::of(&mut self.tcp)
    }

    /// Takes over a field; `None` if the word cannot be understood.
    fn set(&mut self, field: Field, word: &str, old_offsets: bool) -> Option<()> {
        match field {
            Field::Timestamp => {
                let time = time(word)?;
                (self.seconds, self.nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
            }
            Field::Seconds => self.seconds = number(word)?,
            Field::Microseconds => {
                self.nanoseconds = number::<u64>(word).filter(|u| *u < 1_000_000)? * 1000;
            }
            Field::FirstTimestamp => self.first_timestamp = time(word)?,
            Field::EtherSource => self.ether().set_src(word.parse().ok()?),
            Field::EtherDestination => self.ether().set_dst(word.parse().ok()?),
            Field::EtherType => {
                let digits = word.strip_prefix("0x").unwrap_or(word);
                let value = u16::from_str_radix(digits, 16).ok()?;
                self.ether().set_ether_type(value);
            }
            Field::Source => self.ip().set_src(parse_ipv4(word)?),
            Field::Destination => self.ip().set_dst(parse_ipv4(word)?),
            Field::Length => self.ip_length = Some(number::<u16>(word)?.into()),
            Field::Protocol => self.protocol = Some(protocol(word)?),
            Field::Id => self.ip().set_id(number(word)?),
            Field::Ttl => self.ip().set_ttl(number(word)?),
            Field::Tos => self.ip().set_tos(number(word)?),
            // The offset tells more than the letter if a line has both.
            Field::Fragment if self.ip().fragment_word() != 0 => drop(fragment(word, old_offsets)?),
            Field::Fragment | Field::FragmentOffset => {
                self.ip().set_fragment_word(fragment(word, old_offsets)?);
            }
            Field::SourcePort => self.tcp().set_src_port(number(word)?),
            Field::DestinationPort => self.tcp().set_dst_port(number(word)?),
            Field::TcpSequence => self.tcp().set_seq(number(word)?),
            Field::TcpAcknowledgement => self.tcp().set_ack(number(word)?),
            // One flag lies in the byte of the header's length.
            Field::TcpFlags => {
                let flags = 0x5000 | tcp_flags(word)?;
                self.tcp[12..14].copy_from_slice(&flags.to_be_bytes());
            }
            Field::TcpWindow => self.tcp().set_window(number(word)?),
            Field::UdpLength => self.udp_length = Some(number(word)?),
            Field::IcmpType => self.icmp[0] = number(word)?,
            Field::IcmpCode => self.icmp[1] = number(word)?,
            Field::PayloadLength => self.payload_length = Some(number::<u16>(word)?.into()),
            Field::Payload => self.payload = unquote(word),
            Field::WireLength => self.wire_length = Some(number::<u32>(word)? as usize),
            Field::Count => {
                let more = number::<u32>(word)?.saturating_sub(1);
                self.extra_packets = u16::try_from(more).unwrap_or(u16::MAX);
            }
            Field::Link | Field::Paint => {
                self.paint = match word {
                    ">" | "L" => 0,
                    "<" | "R" | "X" => 1,
                    _ => number(word)?,
                }
            }
            Field::Aggregate => self.aggregate = number(word)?,
        }
        Some(())
    }

    fn packet(mut self, default: u8, checksum: bool, pool: &mut Pool) -> Packet {
        let protocol = self.protocol.unwrap_or(default);
        let later = self.ip().is_later_fragment();
        let header = if later { 0 } else { transport_length(protocol) };
        let link = self.ether.map_or(0, |ether| ether.len());
        let total = (self.ip_length)
            .or_else(|| self.payload_length.map(|n| 20 + header + n))
            .or_else(|| self.udp_length.map(|n| 20 + usize::from(n)))
            .or_else(|| self.wire_length.map(|n| n.saturating_sub(link)))
            .unwrap_or(20 + header + self.payload.len())
            .min(0xffff);
        let segment = total.saturating_sub(20);
        self.ip().set_protocol(protocol);
        self.ip().set_total_len(total as u16);
        let mut bytes = self.ip.to_vec();
        match protocol {
            _ if header == 0 => {}
            TCP => bytes.extend(self.tcp),
            UDP => {
                bytes.extend(&self.tcp[..4]);
                bytes.extend(self.udp_length.unwrap_or(segment as u16).to_be_bytes());
                bytes.extend([0, 0]);
            }
            _ => bytes.extend([self.icmp[0], self.icmp[1], 0, 0, 0, 0, 0, 0]),
        }
        bytes.extend(&self.payload);
        bytes.truncate(total.max(20));
        if let Some(mut ip) = Ipv4::new(&mut bytes[..]).filter(|_| checksum) {
            ip.fill_checksum();
            if !ip.is_fragment() && segment >= header {
                fill_transport_checksum(ip, segment as u16);
            }
        }
        let wire = self.wire_length.unwrap_or(link + total);
        let extra = wire.saturating_sub(link + bytes.len());
        let mut packet = pool.alloc(link + bytes.len());
        let (front, rest) = packet.data_mut().split_at_mut(link);
        front.copy_from_slice(self.ether.as_ref().map_or(&[], |ether| ether));
        rest.copy_from_slice(&bytes);
        if link > 0 {
            packet.set_header_offset(Header::Mac, 0);
            packet.pull(link);
        }
        packet.set_ip_header(0, 20);
        let time = self.seconds.saturating_mul(1_000_000_000).saturating_add(self.nanoseconds);
        packet.set_timestamp(time);
        let annotations = packet.annotations_mut();
        annotations.set_u64(FIRST_TIMESTAMP, self.first_timestamp);
        annotations.set_u32(EXTRA_LENGTH, u32::try_from(extra).unwrap_or(u32::MAX));
        annotations.set_u16(EXTRA_PACKETS, self.extra_packets);
        annotations.set_u32(AGGREGATE, self.aggregate);
        annotations.set_u8(PAINT, self.paint);
        annotations.set_dst_ip(Ipv4::of(self.ip).dst());
        packet
    }
}

/// Sets the checksum of the whole transport header behind 20 bytes of IP header.
fn fill_transport_checksum(ip: Ipv4<&mut [u8]>, length: u16) {
    let (pseudo, protocol) = (ip.pseudo_header(length), ip.protocol());
    let segment = &mut ip.into_inner()[20..];
    let sum = Sum::of(segment);
    match protocol {
        TCP => {
            if let Some(mut tcp) = Tcp::new(segment) {
                tcp.set_checksum(sum.plus(pseudo).checksum());
            }
        }
        UDP => {
            if let Some(mut udp) = Udp::new(segment) {
                udp.set_checksum(udp_field(sum.plus(pseudo).checksum()));
            }
        }
        ICMP => {
            if let Some(mut icmp) = Icmpv4::new(segment) {
                icmp.set_checksum(sum.checksum());
            }
        }
        _ => {}
    }
}

/// What reading the next packet came to.
enum Next {
    Packet(Packet),
    /// Many lines were passed over; others want their turn.
    Passed,
    End,
}

impl FromIPSummaryDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let pulled = cx.output_processing().first() == Some(&Processing::Pull);
        let mut arguments = cx.arguments(&[
            "FILENAME",
            "STOP",
            "ACTIVE",
            "ZERO",
            "CHECKSUM",
            "PROTO",
            "DEFAULT_FIELDS",
            "DEFAULT_CONTENTS",
            "FIELDS",
            "CONTENTS",
            "BURST",
        ]);
        let path = arguments.required("FILENAME");
        let stop = arguments.keyword("STOP").unwrap_or(false);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let _: Option<bool> = arguments.keyword("ZERO");
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(false);
        let protocol = arguments.keyword("PROTO").unwrap_or(TCP);
        let names = ["DEFAULT_FIELDS", "DEFAULT_CONTENTS", "FIELDS", "CONTENTS"];
        let fields = fields(&mut arguments, &names).unwrap_or_default();
        let burst: usize = arguments.keyword("BURST").unwrap_or(Batch::DEFAULT_BURST);
        arguments.finish()?;
        cx.share(Rc::new(LinkType(Cell::new(Some(RAW)))));
        Ok(Self {
            path,
            text: None,
            position: 0,
            line: 0,
            fields,
            protocol,
            old_offsets: false,
            checksum,
            burst: burst.clamp(1, MAX_LINES),
            pulled,
            active,
            stop,
            ended: false,
            bad_lines: 0,
            count: 0,
            bytes: 0,
        })
    }

    /// The next line of the file without its end.
    fn next_line<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let rest = text.get(self.position..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        self.position += line.len();
        self.line += 1;
        Some(line.trim())
    }

    /// Takes over what a line that begins with `!` says about the lines after it.
    fn direct(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "!IPSummaryDump" => {
                let (major, minor) = rest.trim().split_once('.')?;
                self.old_offsets = number::<u32>(minor)? == 0;
                (major == "1").then_some(())
            }
            // A column that is not known has no place in a packet, but in the line.
            "!data" | "!contents" => {
                let fields: Option<Vec<_>> = words(rest).map(Field::parse).collect();
                self.fields = fields.unwrap_or_default();
                (!self.fields.is_empty()).then_some(())
            }
            "!proto" => {
                self.protocol = protocol(rest.trim())?;
                Some(())
            }
            "!binary" => None,
            _ => Some(()),
        }
    }

    /// What a line says; `None` if it cannot be understood.
    fn describe(&self, line: &str) -> Option<Described> {
        let mut described = Described::new();
        let mut words = words(line);
        if self.fields.is_empty() {
            return None;
        }
        for &field in &self.fields {
            match words.next()? {
                "-" => {}
                word => described.set(field, word, self.old_offsets)?,
            }
        }
        Some(described)
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Next {
        let text = match self.text.take() {
            Some(text) => text,
            None => self.read_file(cx),
        };
        let next = self.next_of(&text, cx);
        self.text = Some(text);
        next
    }

    fn read_file(&self, cx: &mut Context<'_>) -> String {
        match cx.services().read_file(&self.path, MAX_FILE) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(why) => {
                cx.error(&format!("{}: {why}", self.path));
                String::new()
            }
        }
    }

    fn next_of(&mut self, text: &str, cx: &mut Context<'_>) -> Next {
        for _ in 0..MAX_LINES {
            let Some(line) = self.next_line(text) else { return Next::End };
            let understood = match line.as_bytes().first() {
                None | Some(b'#') => Some(()),
                Some(b'!') => self.direct(line),
                Some(_) => match self.describe(line) {
                    None => None,
                    Some(described) => {
                        let packet =
                            described.packet(self.protocol, self.checksum, &mut cx.core.pool);
                        self.count += 1;
                        self.bytes += packet.len() as u64;
                        return Next::Packet(packet);
                    }
                },
            };
            if understood.is_none() {
                self.bad_lines += 1;
                if self.bad_lines == 1 {
                    let place = format!("{}:{}", self.path, self.line);
                    cx.message(&format!("{place}: this and further such lines are passed over"));
                }
            }
        }
        Next::Passed
    }

    fn reach_end(&mut self, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.ended, true) && self.stop {
            cx.stop();
        }
    }
}

impl Element for FromIPSummaryDump {
    fn starts_over(&self) -> bool {
        true
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        while self.active {
            match self.next(cx) {
                Next::Packet(packet) => return Some(packet),
                Next::Passed => {}
                Next::End => {
                    self.reach_end(cx);
                    return None;
                }
            }
        }
        None
    }

    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn handler_calls(&self) -> HandlerCalls {
        match self.stop {
            true => HandlerCalls::Of(Vec::new()),
            false => HandlerCalls::None,
        }
    }

    fn stops_driver(&self) -> bool {
        self.stop
    }

    fn has_task(&self) -> bool {
        !self.pulled
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        for _ in 0..self.burst {
            match self.next(cx) {
                Next::Packet(packet) => cx.emit(0, packet),
                Next::Passed => break,
                Next::End => {
                    self.reach_end(cx);
                    return Work::Ended;
                }
            }
        }
        Work::Done
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: true, packets: self.count, bytes: self.bytes })
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::count("bad_lines"),
                Handler::write("reset_counts"),
                Handler::both("active"),
                Handler::read("encap"),
                Handler::read("filename"),
                Handler::write("stop"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "bad_lines" => self.bad_lines.to_string(),
            "active" => self.active.to_string(),
            "encap" => "IP".to_string(),
            "filename" => self.path.clone(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "reset_counts" => (self.count, self.bytes, self.bad_lines) = (0, 0, 0),
            "active" => self.active = parse_value(value)?,
            _ => {
                self.active = false;
                cx.stop();
            }
        }
        Ok(())
    }
}
