//! IPPrint.

use std::fmt::Write;

use ir::{Diagnostic, Model, Span};
use net::annotation::{AGGREGATE, PAINT, VLAN_TCI};
use net::wire::icmpv6::message::{ECHO, ECHO_REPLY};
use net::wire::ip_protocol::{ICMPV6, TCP, UDP};
use net::wire::ipv6::HEADER_LEN;
use net::wire::{EtherAddr, Ethernet, Icmpv4, Ipv4, Ipv6, icmpv6};
use net::{Batch, Header, Packet};

use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::element::Element;
use crate::ip6::upper::Whole;
use crate::plumbing::print::{Contents, first, show_time};

element! {
    /// IPPrint([LABEL, KEYWORDS]) -- prints IP packets in the manner of tcpdump
    ///
    /// Expects packets of IPv4 or IPv6 with their header marked, and shows a line for each; packets without
    /// pass unseen.
    ///
    /// = KEYWORDS
    ///
    /// LABEL (string): what the line begins with.
    /// CONTENTS (NONE, HEX or ASCII, default NONE): how the packet's bytes are shown.
    /// PAYLOAD (NONE, HEX or ASCII, default NONE): the same for the bytes behind the transport
    /// header.
    /// MAXLENGTH (number, default 1500): bytes that are shown; a negative number shows all.
    /// NBYTES is an older name.
    /// TIMESTAMP (bool, default true), ETHER, ID, TTL, TOS, LENGTH, PAINT, AGGREGATE, VLAN (bool,
    /// default false): whether these are shown.
    /// SWAP (bool, default true): whether the numbers of ICMP echoes are shown in the order of
    /// the network; else they are shown with their bytes swapped.
    /// OUTFILE (file): where lines are written to instead.
    /// ACTIVE (bool, default true): whether anything is shown.
    /// CHANNEL is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// active (read, write): whether anything is shown.
    ///
    /// = IPV6
    ///
    /// Shown; ports and types are found behind extension headers.
    ///
    /// = SEE ALSO
    ///
    /// Print
    IPPrint {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("x, PAYLOAD ASCII, ETHER true, ID true, AGGREGATE true", 1, 1)]
    }
}

/// See [`IPPrint::CLASS`].
pub(crate) struct IPPrint {
    label: String,
    contents: Contents,
    payload: bool,
    length: i64,
    timestamp: bool,
    shown: Shown,
    swap: bool,
    active: bool,
    out: Option<(String, Span)>,
    file: Option<Box<dyn std::io::Write>>,
}

/// Parts that are shown only if asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    ether: bool,
    id: bool,
    ttl: bool,
    tos: bool,
    length: bool,
    paint: bool,
    aggregate: bool,
    vlan: bool,
}

impl IPPrint {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "LABEL",
            "CONTENTS",
            "PAYLOAD",
            "MAXLENGTH",
            "NBYTES",
            "ETHER",
            "ID",
            "TIMESTAMP",
            "PAINT",
            "TOS",
            "TTL",
            "SWAP",
            "LENGTH",
            "AGGREGATE",
            "VLAN",
            "ACTIVE",
            "OUTFILE",
            "CHANNEL",
        ]);
        let label = arguments.optional("LABEL").unwrap_or_default();
        let contents: Contents = arguments.keyword("CONTENTS").unwrap_or_default();
        let payload: Contents = arguments.keyword("PAYLOAD").unwrap_or_default();
        let length = ["MAXLENGTH", "NBYTES"].map(|name| arguments.keyword::<i64>(name));
        let mut flag = |name, default| arguments.keyword(name).unwrap_or(default);
        let shown = Shown {
            ether: flag("ETHER", false),
            id: flag("ID", false),
            ttl: flag("TTL", false),
            tos: flag("TOS", false),
            length: flag("LENGTH", false),
            paint: flag("PAINT", false),
            aggregate: flag("AGGREGATE", false),
            vlan: flag("VLAN", false),
        };
        let (timestamp, swap) = (flag("TIMESTAMP", true), flag("SWAP", true));
        let active = flag("ACTIVE", true);
        arguments.keyword_argument("CHANNEL");
        let out = arguments.keyword_argument("OUTFILE");
        let out = out.and_then(|out| Some((arguments.parse("OUTFILE", &out)?, out.span)));
        if contents != Contents::None && payload != Contents::None {
            let span = arguments.cx().span();
            let message = "CONTENTS and PAYLOAD exclude each other";
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        Ok(Self {
            label,
            contents: if payload == Contents::None { contents } else { payload },
            payload: payload != Contents::None,
            length: length[0].or(length[1]).unwrap_or(1500),
            timestamp,
            shown,
            swap,
            active,
            out,
            file: None,
        })
    }

    /// The line for a packet; `None` for one without an IP header.
    fn line(&self, packet: &Packet) -> Option<String> {
        let network = packet.network()?;
        let anno = packet.annotations();
        let mut line = String::new();
        let shown = self.shown;
        if !self.label.is_empty() {
            line = format!("{}: ", self.label);
        }
        if self.timestamp {
            line += &show_time(packet.timestamp());
            line += ": ";
        }
        if shown.aggregate {
            let _ = write!(line, "#{}", anno.u32(AGGREGATE));
        }
        if shown.vlan {
            let _ = write!(line, " VLAN:{}", anno.u16(VLAN_TCI));
        }
        if shown.paint {
            let word = if shown.aggregate { "." } else { "paint " };
            let _ = write!(line, "{word}{}", anno.u8(PAINT));
        }
        if shown.aggregate || shown.paint {
            line += ": ";
        }
        if shown.ether
            && let (Some(mac), Some(ip)) =
                (packet.header_offset(Header::Mac), packet.header_offset(Header::Network))
            && mac + 14 <= ip
            && let Some(ether) = packet.header(Header::Mac).and_then(Ethernet::new)
        {
            let address = |EtherAddr(bytes)| bytes.map(|b| format!("{b:02X}")).join("-");
            let _ = write!(line, "{} > {}: ", address(ether.src()), address(ether.dst()));
        }
        match Ipv4::new(network) {
            _ if network.first().is_some_and(|first| first >> 4 == 6) => {
                self.ip6(&mut line, packet)
            }
            None => line += "truncated-ip",
            Some(ip) => self.ip(&mut line, packet, ip),
        }
        Some(line)
    }

    fn ip(&self, line: &mut String, packet: &Packet, ip: Ipv4<&[u8]>) {
        let (total, header) = (i32::from(ip.total_len()), ip.header_len() as i32);
        let transport = packet.transport().unwrap_or(&[]);
        let present = (transport.len() as i32).min(total - header).max(0);
        let transport = &transport[..present as usize];
        for (shown, name, value) in [
            (self.shown.id, "id", i32::from(ip.id())),
            (self.shown.ttl, "ttl", i32::from(ip.ttl())),
            (self.shown.tos, "tos", i32::from(ip.tos())),
            (self.shown.length, "length", total),
        ] {
            if shown {
                let _ = write!(line, "{name} {value} ");
            }
        }
        let later = ip.is_later_fragment();
        let (source, destination) = (ip.src(), ip.dst());
        let between = format!("{source} > {destination}: ");
        match ip.protocol() {
            1 if later => *line += &format!("{between}icmp"),
            1 => {
                *line += &between;
                self.icmp(line, transport);
            }
            protocol @ (6 | 17) => {
                let name = if protocol == 6 { "tcp" } else { "udp" };
                let ports = transport.first_chunk::<4>().filter(|_| !later);
                let Some(ports) = ports else {
                    let cut = if later { "" } else { "truncated-" };
                    *line += &format!("{between}{cut}{name}");
                    return self.tail(line, packet, ip, total - header);
                };
                let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
                let _ = write!(line, "{source}.{} > {destination}.{}: ", port(0), port(2));
                if protocol == 6 {
                    tcp(line, transport, packet.len(), total, header);
                } else {
                    match transport.get(4..6) {
                        Some(length) if transport.len() >= 8 => {
                            let length = u16::from_be_bytes([length[0], length[1]]);
                            let _ = write!(line, "udp {length}");
                        }
                        _ => *line += "truncated-udp",
                    }
                }
            }
            other => {
                let _ = write!(line, "{between}ip-proto-{other}");
            }
        }
        self.tail(line, packet, ip, total - header);
    }

    fn ip6(&self, line: &mut String, packet: &Packet) {
        let network = packet.network().unwrap_or_default();
        let Some(ip) = Ipv6::new(network) else { return *line += "truncated-ip6" };
        let total = (HEADER_LEN + ip.payload_len()) as i32;
        for (shown, name, value) in [
            (self.shown.ttl, "ttl", i32::from(ip.hop_limit())),
            (self.shown.tos, "tos", i32::from(ip.traffic_class())),
            (self.shown.length, "length", total),
        ] {
            if shown {
                let _ = write!(line, "{name} {value} ");
            }
        }
        let (source, destination) = (ip.src(), ip.dst());
        let between = format!("{source} > {destination}: ");
        let body = match Whole::of(packet) {
            Err(reason) => {
                let _ = write!(line, "{between}{reason}");
                &[]
            }
            Ok(whole) => {
                let ports = whole.half(0).zip(whole.half(2));
                match (whole.protocol, ports) {
                    (TCP, Some((from, to))) => {
                        let _ = write!(line, "{source}.{from} > {destination}.{to}: ");
                        let header = total - whole.body.len() as i32;
                        tcp(line, whole.body, packet.len(), total, header);
                    }
                    (UDP, Some((from, to))) => {
                        let length = whole.half(4).unwrap_or(0);
                        let _ = write!(line, "{source}.{from} > {destination}.{to}: udp {length}");
                    }
                    (ICMPV6, Some(_)) => {
                        let kind = whole.body[0];
                        let name = icmpv6::type_name(kind);
                        let name = name.map_or_else(|| format!("type {kind}"), String::from);
                        let _ = write!(line, "{between}icmp6 {name}");
                        if let (ECHO | ECHO_REPLY, Some(id), Some(number)) =
                            (kind, whole.half(4), whole.half(6))
                        {
                            let _ = write!(line, " ({id}, {number})");
                        }
                    }
                    (other, _) => {
                        let _ = write!(line, "{between}ip-proto-{other}");
                    }
                }
                let header = match whole.protocol {
                    TCP => whole.body.get(12).map_or(0, |b| usize::from(b >> 4) * 4),
                    UDP => 8,
                    _ => 0,
                };
                whole.body.get(header..).unwrap_or_default()
            }
        };
        let bytes = if self.payload { body } else { packet.data() };
        self.contents.show(line, first(bytes, self.length), 6, "\n  ");
    }

    /// What is shown of fragments, and of the packet's bytes.
    fn tail(&self, line: &mut String, packet: &Packet, ip: Ipv4<&[u8]>, payload: i32) {
        if ip.is_fragment() {
            let at = ip.fragment_offset();
            let more = if ip.more_fragments() { "+" } else { "" };
            let _ = write!(line, " (frag {}:{payload}@{at}{more})", ip.id());
        }
        let bytes = if self.payload {
            let transport = packet.transport().unwrap_or(&[]);
            let header = match ip.protocol() {
                _ if ip.is_later_fragment() => 0,
                6 => transport.get(12).map_or(0, |b| usize::from(b >> 4) * 4),
                17 => 8,
                _ => 0,
            };
            transport.get(header..).unwrap_or(&[])
        } else {
            packet.data()
        };
        self.contents.show(line, first(bytes, self.length), 6, "\n  ");
    }

    fn icmp(&self, line: &mut String, icmp: &[u8]) {
        let [kind, code] = match icmp.first_chunk::<2>() {
            Some(start) => *start,
            None => return *line += "truncated-icmp",
        };
        let names = [
            (3, "unreachable"),
            (4, "sourcequench"),
            (5, "redirect"),
            (9, "routeradvert"),
            (10, "routersolicit"),
            (11, "timeexceeded"),
            (12, "parameterproblem"),
            (13, "timestamp"),
            (14, "timestamp-reply"),
            (15, "inforeq"),
            (16, "inforeq-reply"),
            (17, "maskreq"),
            (18, "maskreq-reply"),
        ];
        match kind {
            0 | 8 => {
                *line += if kind == 0 { "icmp echo-reply " } else { "icmp echo " };
                let Some(numbers) = icmp.get(4..8) else { return *line += "truncated-icmp" };
                let number = |at: usize| {
                    let number = u16::from_be_bytes([numbers[at], numbers[at + 1]]);
                    if self.swap { number } else { number.swap_bytes() }
                };
                let _ = write!(line, "({}, {})", number(0), number(2));
            }
            3 => unreachable(line, icmp, code),
            _ => {
                *line += "icmp ";
                match names.iter().find(|(n, _)| *n == kind) {
                    Some((_, name)) => *line += name,
                    None => {
                        let _ = write!(line, "type {kind}");
                    }
                }
                match code_name(kind, code) {
                    Some(name) => *line += &format!(" {name}"),
                    None if code != 0 => *line += &format!(" code {code}"),
                    None => {}
                }
            }
        }
    }
}

fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    const UNREACHABLE: [&str; 16] = [
        "net",
        "host",
        "protocol",
        "port",
        "needfrag",
        "srcroutefail",
        "netunknown",
        "hostunknown",
        "hostisolated",
        "netprohibited",
        "hostprohibited",
        "nettos",
        "hosttos",
        "filterprohibited",
        "hostprecedence",
        "precedencecutoff",
    ];
    let names: &[&str] = match kind {
        3 => &UNREACHABLE,
        5 => &["net", "host", "tosnet", "toshost"],
        11 => &["transit", "reassembly"],
        12 => &["erroratptr", "missingopt", "length"],
        _ => &[],
    };
    names.get(usize::from(code)).copied()
}

/// An ICMP error about a destination that cannot be reached, with what it quotes.
fn unreachable(line: &mut String, icmp: &[u8], code: u8) {
    let name = code_name(3, code).map_or_else(|| format!("code {code}"), str::to_string);
    let quoted = icmp.get(8..).unwrap_or(&[]);
    let (Some(ip), Some(message)) = (Ipv4::new(quoted), Icmpv4::new(icmp)) else {
        let _ = write!(line, "icmp unreachable {name} truncated-icmp");
        return;
    };
    let _ = write!(line, "icmp {} unreachable {name}", ip.dst());
    let protocol = match ip.protocol() {
        1 => "icmp".to_string(),
        6 => "tcp".to_string(),
        17 => "udp".to_string(),
        other => other.to_string(),
    };
    match code {
        2 => *line += &format!(" {protocol}"),
        3 => {
            let named = protocol.parse::<u8>().is_err();
            *line += &if named { format!(" {protocol}") } else { format!(" protocol {protocol}") };
            let at = ip.header_len();
            match quoted.get(at + 2..at + 4) {
                Some(port) => *line += &format!("/{}", u16::from_be_bytes([port[0], port[1]])),
                None => *line += "truncated-icmp",
            }
        }
        4 => {
            let mtu = message.mtu();
            if mtu > 0 {
                *line += &format!(" (mtu {mtu})");
            }
        }
        _ => {}
    }
}

fn tcp(line: &mut String, tcp: &[u8], captured: usize, total: i32, header: i32) {
    let Some(fixed) = tcp.first_chunk::<14>() else { return *line += "truncated-tcp" };
    let u32_at =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let (sequence, flags) = (u32_at(4), fixed[13]);
    let mut length = (total - header - i32::from(fixed[12] >> 4) * 4) as u32;
    for (bit, letter, counts) in [(2, 'S', true), (1, 'F', true), (4, 'R', false), (8, 'P', false)]
    {
        if flags & bit != 0 {
            line.push(letter);
            length = length.wrapping_add(u32::from(counts));
        }
    }
    if flags & 0xf == 0 {
        line.push('.');
    }
    let end = sequence.wrapping_add(length);
    let _ = write!(line, " {sequence}:{end}({},{captured},{total})", length as i32);
    if flags & 0x10 != 0 {
        let _ = write!(line, " ack {}", u32_at(8));
    }
    match tcp.get(14..16) {
        Some(window) => {
            let _ = write!(line, " win {}", u16::from_be_bytes([window[0], window[1]]));
        }
        None => *line += "truncated-tcp",
    }
}

impl Element for IPPrint {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if !self.active {
            return;
        }
        for packet in batch.iter() {
            let Some(line) = self.line(packet) else { continue };
            match &mut self.file {
                None => cx.message(&line),
                Some(file) => {
                    if let Err(why) = writeln!(file, "{line}") {
                        self.file = None;
                        cx.error(&why.to_string());
                    }
                }
            }
        }
    }

    fn model(&self) -> Model {
        Model::opaque("prints")
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        if let Some((path, span)) = &self.out {
            self.file = Some(cx.create(path, *span)?);
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut file) = self.file.take()
            && let Err(why) = file.flush()
        {
            cx.error(&why.to_string());
        }
    }

    value_handler!("active", active);
}
