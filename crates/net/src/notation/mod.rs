//! Packets in words: `udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3` becomes a complete frame, and a frame
//! becomes such words again.
//!
//! ```text
//! [eth SRC > DST] [vlan|svlan TCI]… | bare   link layer; by default 02:…:01 > 02:…:02; bare has none
//! udp|tcp SRC:PORT > DST:PORT            IPv4, or IPv6 with addresses as [2001:db8::1]:53
//! icmp SRC > DST                         ICMP, or ICMPv6 by the addresses
//! ip SRC > DST proto N                   any other protocol
//! arp who-has IP tell IP                 from the frame's source
//! arp reply IP is-at MAC [to IP]         to the frame's destination
//! raw HEX                                bytes as they are (behind the addresses unless bare)
//! ```
//! followed by any of `ttl N`, `tos N`, `id N`, `df`, `mf`, `frag BYTES`, `opt HEX` (IPv4 options),
//! `flags SAFRPUEC`, `seq N`, `ack N`, `win N`, `tcpopt HEX` (TCP), `type N|NAME`, `code N`, `rest N` (ICMP),
//! `payload HEX|'TEXT'|(PACKET)`
//! (a packet inside has no link layer: what an ICMP error quotes, or a tunnel's), `size BYTES` (the frame is padded inside the IP packet), `badsum` (wrong
//! IP checksum), `badl4sum` (wrong transport checksum), `nosum` (UDP without checksum), `cut BYTES`
//! (the frame ends there), `pad BYTES` (zeros behind the IP packet).

mod print;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::checksum::{Sum, pseudo_header_v4, pseudo_header_v6};
use crate::wire::{EtherAddr, icmpv4, ip_protocol, tcp};

pub use print::{describe, describe_headers};

/// Makes a frame from its description.
///
/// # Errors
/// What is not understood.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
    parse_nested(text, 0)
}

/// Makes a frame, or the packet inside `depth` others, which has no link layer.
fn parse_nested(text: &str, depth: u32) -> Result<Vec<u8>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("packets stand in packets at most {MAX_DEPTH} deep"));
    }
    let words = tokenize(text)?;
    Parser { words: &words, at: 0, depth }.packet()
}

/// Words at white space; a quoted text is one word with its opening quote kept, and so is what
/// stands in parentheses.
fn tokenize(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = match rest.as_bytes()[0] {
            b'\'' => 1 + rest[1..].find('\'').ok_or("a quotation mark is not closed")?,
            b'(' => closing(rest).ok_or("a parenthesis is not closed")?,
            _ => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        words.push(rest[..end].to_string());
        rest = rest[end..].strip_prefix(['\'', ')']).unwrap_or(&rest[end..]).trim_start();
    }
    Ok(words)
}

/// Where the parenthesis closes with which a text begins.
fn closing(text: &str) -> Option<usize> {
    let (mut open, mut quoted) = (0, false);
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'\'' => quoted = !quoted,
            b'(' if !quoted => open += 1,
            b')' if !quoted => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Everything that can be said of a packet.
struct Fields {
    ttl: u8,
    tos: u8,
    id: u16,
    flags: u16,
    fragment: u16,
    options: Vec<u8>,
    protocol: Option<u8>,
    tcp_flags: u8,
    seq: u32,
    ack: u32,
    window: u16,
    tcp_options: Vec<u8>,
    icmp_type: Option<u8>,
    icmp_code: u8,
    rest: u32,
    payload: Vec<u8>,
    size: Option<usize>,
    bad_sum: bool,
    bad_transport_sum: bool,
    no_sum: bool,
    cut: Option<usize>,
    pad: usize,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            ttl: 64,
            tos: 0,
            id: 0,
            flags: 0,
            fragment: 0,
            options: Vec::new(),
            protocol: None,
            tcp_flags: 0x10,
            seq: 0,
            ack: 0,
            window: 65535,
            tcp_options: Vec::new(),
            icmp_type: None,
            icmp_code: 0,
            rest: 0,
            payload: Vec::new(),
            size: None,
            bad_sum: false,
            bad_transport_sum: false,
            no_sum: false,
            cut: None,
            pad: 0,
        }
    }
}

/// Makes a checksum wrong by an amount that incremental updates (RFC 1624) keep.
fn spoil(checksum: u16) -> u16 {
    let (sum, carry) = checksum.overflowing_add(0x5555);
    sum + u16::from(carry)
}

/// TCP flag letters, from the lowest bit.
const TCP_FLAGS: &str = "FSRPAUEC";
/// Longest frame that is made.
const MAX_LENGTH: usize = 65_549;
/// Addresses of frames that name none.
const SOURCE: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 1]);
const DESTINATION: EtherAddr = EtherAddr([2, 0, 0, 0, 0, 2]);
/// How deep packets can stand in packets.
const MAX_DEPTH: u32 = 8;

struct Parser<'a> {
    words: &'a [String],
    at: usize,
    /// How many packets this one stands in.
    depth: u32,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        let word = self.peek().ok_or_else(|| format!("{what} is missing at the end"))?;
        self.at += 1;
        Ok(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == Some(word);
        self.at += usize::from(taken);
        taken
    }

    fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, String> {
        let word = self.next(what)?;
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        };
        value
            .and_then(|v| T::try_from(v).ok())
            .ok_or_else(|| format!("{what} '{word}' is not a number in range"))
    }

    fn parsed<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.next(what)?;
        word.parse().map_err(|_| format!("'{word}' is not {what}"))
    }

    fn packet(mut self) -> Result<Vec<u8>, String> {
        let mut link = Vec::new();
        if !self.take("bare") && self.depth == 0 {
            let (mut source, mut destination) = (SOURCE, DESTINATION);
            if self.take("eth") {
                source = self.parsed("an Ethernet address")?;
                self.arrow()?;
                destination = self.parsed("an Ethernet address")?;
            }
            link.extend(destination.0);
            link.extend(source.0);
            loop {
                let ether_type: u16 = match self.peek() {
                    Some("vlan") => 0x8100,
                    Some("svlan") => 0x88a8,
                    _ => break,
                };
                self.at += 1;
                let tci: u16 = self.number("a VLAN tag")?;
                link.extend(ether_type.to_be_bytes());
                link.extend(tci.to_be_bytes());
            }
        }
        let kind = self.next("a protocol")?;
        if kind == "raw" {
            link.extend(if self.peek().is_some() { self.bytes()? } else { Vec::new() });
            return self.end(link);
        }
        let (ether_type, network, fields) = match kind {
            "arp" => (0x0806u16, self.arp(&link)?, Fields::default()),
            "udp" | "tcp" | "icmp" | "ip" => self.ip(kind)?,
            _ => return Err(format!("'{kind}' is not a protocol: udp, tcp, icmp, ip, arp or raw")),
        };
        if !link.is_empty() {
            link.extend(ether_type.to_be_bytes());
        }
        let mut frame = link;
        frame.extend(network);
        frame.resize(frame.len() + fields.pad, 0);
        frame.truncate(fields.cut.unwrap_or(usize::MAX));
        self.end(frame)
    }

    fn end(&self, frame: Vec<u8>) -> Result<Vec<u8>, String> {
        match self.peek() {
            Some(word) => Err(format!("'{word}' is not understood here")),
            None => Ok(frame),
        }
    }

    fn arrow(&mut self) -> Result<(), String> {
        if self.take(">") { Ok(()) } else { Err("'>' is missing between the addresses".into()) }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, String> {
        let word = self.next("a payload")?;
        if let Some(text) = word.strip_prefix('\'') {
            return Ok(text.as_bytes().to_vec());
        }
        if let Some(packet) = word.strip_prefix('(') {
            return parse_nested(packet, self.depth + 1);
        }
        let hex = word.strip_prefix("0x").unwrap_or(word);
        let wrong = || format!("'{word}' is neither hexadecimal bytes nor a quoted text");
        if !hex.is_ascii() || hex.len() % 2 == 1 {
            return Err(wrong());
        }
        (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).map_err(|_| wrong()))
            .collect()
    }

    /// An ARP message, behind this link-layer header.
    fn arp(&mut self, link: &[u8]) -> Result<Vec<u8>, String> {
        let (to, from) = match link.first_chunk::<12>() {
            Some(addresses) => addresses.split_at(6),
            None => (&DESTINATION.0[..], &SOURCE.0[..]),
        };
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
        if self.take("reply") {
            arp[7] = 2;
            let address: Ipv4Addr = self.parsed("an IP address")?;
            if !self.take("is-at") {
                return Err("'is-at' is missing".into());
            }
            let ether: EtherAddr = self.parsed("an Ethernet address")?;
            arp.extend(ether.0);
            arp.extend(address.octets());
            arp.extend(to);
            arp.extend([0; 4]);
            if self.take("to") {
                let to: Ipv4Addr = self.parsed("an IP address")?;
                arp[24..28].copy_from_slice(&to.octets());
            }
        } else {
            if !self.take("who-has") {
                return Err("'who-has' or 'reply' is missing".into());
            }
            let target: Ipv4Addr = self.parsed("an IP address")?;
            if !self.take("tell") {
                return Err("'tell' is missing".into());
            }
            let sender: Ipv4Addr = self.parsed("an IP address")?;
            arp.extend(from);
            arp.extend(sender.octets());
            arp.extend([0; 6]);
            arp.extend(target.octets());
        }
        Ok(arp)
    }

    /// An address with its port where the protocol has them.
    fn endpoint(&mut self, ports: bool) -> Result<(IpAddr, u16), String> {
        let word = self.next("an address")?;
        let plain = || word.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        match word.parse::<SocketAddr>() {
            Ok(socket) if ports => Ok((socket.ip(), socket.port())),
            Ok(_) => Err(format!("'{word}' has a port, which this protocol has not")),
            Err(_) => {
                let address = plain().ok_or_else(|| format!("'{word}' is not an address"))?;
                Ok((address, 0))
            }
        }
    }

    fn ip(&mut self, kind: &str) -> Result<(u16, Vec<u8>, Fields), String> {
        let ports = matches!(kind, "udp" | "tcp");
        let (source, sport) = self.endpoint(ports)?;
        self.arrow()?;
        let (destination, dport) = self.endpoint(ports)?;
        let fields = self.fields()?;
        if source.is_ipv4() != destination.is_ipv4() {
            return Err("one address is IPv4, the other IPv6".into());
        }
        let v6 = source.is_ipv6();
        let protocol = match kind {
            "udp" => 17,
            "tcp" => 6,
            "icmp" if v6 => 58,
            "icmp" => 1,
            _ => fields.protocol.ok_or("'proto N' is missing")?,
        };
        let mut body = match kind {
            // Later fragments are all payload.
            _ if fields.fragment > 0 => Vec::new(),
            "udp" => [sport.to_be_bytes(), dport.to_be_bytes(), [0; 2], [0; 2]].concat(),
            "tcp" => {
                let mut tcp = [sport.to_be_bytes(), dport.to_be_bytes()].concat();
                tcp.extend(fields.seq.to_be_bytes());
                tcp.extend(fields.ack.to_be_bytes());
                let words = (tcp::HEADER_LEN + fields.tcp_options.len()) / 4;
                tcp.extend([(words as u8) << 4, fields.tcp_flags]);
                tcp.extend(fields.window.to_be_bytes());
                tcp.extend([0; 4]);
                tcp.extend(&fields.tcp_options);
                tcp
            }
            "icmp" => {
                let echo = if v6 { 128 } else { 8 };
                let mut icmp = vec![fields.icmp_type.unwrap_or(echo), fields.icmp_code, 0, 0];
                icmp.extend(fields.rest.to_be_bytes());
                icmp
            }
            _ => Vec::new(),
        };
        body.extend(&fields.payload);
        let header = if v6 { 40 } else { 20 + fields.options.len() };
        if let Some(size) = fields.size {
            let wanted = size.saturating_sub(14 + header);
            body.resize(body.len().max(wanted), 0);
        }
        if header + body.len() > MAX_LENGTH - 14 {
            return Err("the packet is longer than IP allows".into());
        }
        if kind == "udp" && fields.fragment == 0 {
            let length = (body.len() as u16).to_be_bytes();
            body[4..6].copy_from_slice(&length);
        }
        let pseudo = match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => pseudo_header_v4(s, d, protocol, body.len() as u16),
            (IpAddr::V6(s), IpAddr::V6(d)) => pseudo_header_v6(s, d, protocol, body.len() as u32),
            _ => Sum::ZERO,
        };
        let at = match kind {
            _ if fields.fragment > 0 => None,
            "udp" => Some(6),
            "tcp" => Some(16),
            "icmp" => Some(2),
            _ => None,
        };
        if let Some(at) = at.filter(|_| !(fields.no_sum && kind == "udp")) {
            let pseudo = if kind == "icmp" && !v6 { Sum::ZERO } else { pseudo };
            let mut sum = pseudo.plus(Sum::of(&body)).checksum();
            if sum == 0 && kind == "udp" {
                sum = 0xffff;
            }
            sum = if fields.bad_transport_sum { spoil(sum) } else { sum };
            body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let packet = match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => {
                let mut ip = vec![0x40 | (header / 4) as u8, fields.tos];
                ip.extend(((header + body.len()) as u16).to_be_bytes());
                ip.extend(fields.id.to_be_bytes());
                ip.extend((fields.flags | (fields.fragment / 8)).to_be_bytes());
                ip.extend([fields.ttl, protocol, 0, 0]);
                ip.extend(s.octets());
                ip.extend(d.octets());
                ip.extend(&fields.options);
                let sum = Sum::of(&ip).checksum();
                let sum = if fields.bad_sum { spoil(sum) } else { sum };
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                ip.extend(body);
                ip
            }
            (IpAddr::V6(s), IpAddr::V6(d)) => {
                let mut ip = (0x6000_0000 | u32::from(fields.tos) << 20).to_be_bytes().to_vec();
                ip.extend((body.len() as u16).to_be_bytes());
                ip.extend([protocol, fields.ttl]);
                ip.extend(s.octets());
                ip.extend(d.octets());
                ip.extend(body);
                ip
            }
            _ => unreachable!("both are of one family"),
        };
        Ok((if v6 { 0x86dd } else { 0x0800 }, packet, fields))
    }

    fn fields(&mut self) -> Result<Fields, String> {
        let mut f = Fields::default();
        while let Some(key) = self.peek() {
            self.at += 1;
            match key {
                "ttl" | "hlim" => f.ttl = self.number("a TTL")?,
                "tos" => f.tos = self.number("a TOS")?,
                "dscp" => f.tos = f.tos & 3 | self.number::<u8>("a DSCP")? << 2,
                "ecn" => f.tos = f.tos & !3 | self.number::<u8>("an ECN value")? & 3,
                "id" => f.id = self.number("an identification")?,
                "df" => f.flags |= 0x4000,
                "mf" => f.flags |= 0x2000,
                "frag" => {
                    f.fragment = self.number("a fragment offset in bytes")?;
                    if !f.fragment.is_multiple_of(8) {
                        return Err("fragments start at multiples of 8 bytes".into());
                    }
                }
                "opt" => {
                    f.options = self.bytes()?;
                    f.options.resize(f.options.len().next_multiple_of(4), 0);
                    if f.options.len() > 40 {
                        return Err("IPv4 options have at most 40 bytes".into());
                    }
                }
                "proto" => {
                    let word = self.next("a protocol number")?;
                    let number = word.parse().ok().or_else(|| ip_protocol::by_name(word));
                    f.protocol =
                        Some(number.ok_or_else(|| format!("'{word}' is not an IP protocol"))?);
                }
                "flags" => {
                    let letters = self.next("TCP flags")?;
                    f.tcp_flags = 0;
                    for letter in letters.chars().filter(|&c| c != '.' && c != '-') {
                        let bit = TCP_FLAGS.find(letter.to_ascii_uppercase());
                        f.tcp_flags |= 1
                            << bit
                                .ok_or_else(|| format!("'{letter}' is not one of {TCP_FLAGS}"))?;
                    }
                }
                "seq" => f.seq = self.number("a sequence number")?,
                "ack" => f.ack = self.number("an acknowledgment number")?,
                "win" => f.window = self.number("a window")?,
                "tcpopt" => {
                    f.tcp_options = self.bytes()?;
                    f.tcp_options.resize(f.tcp_options.len().next_multiple_of(4), 0);
                    if f.tcp_options.len() > 40 {
                        return Err("TCP options have at most 40 bytes".into());
                    }
                }
                "type" => {
                    let word = self.next("an ICMP type")?;
                    let number = word.parse().ok().or_else(|| icmpv4::type_by_name(word));
                    f.icmp_type =
                        Some(number.ok_or_else(|| format!("'{word}' is not an ICMP type"))?);
                }
                "code" => f.icmp_code = self.number("an ICMP code")?,
                "rest" => f.rest = self.number("the rest of the ICMP header")?,
                "payload" => f.payload = self.bytes()?,
                "size" => {
                    f.size = Some(self.number::<u64>("a size")?.min(MAX_LENGTH as u64 + 1) as usize)
                }
                "badsum" => f.bad_sum = true,
                "badl4sum" => f.bad_transport_sum = true,
                "nosum" => f.no_sum = true,
                "cut" => f.cut = Some(self.number::<u16>("a length")?.into()),
                "pad" => f.pad = self.number::<u16>("a number of bytes")?.into(),
                _ => return Err(format!("'{key}' is not understood here")),
            }
        }
        Ok(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Ipv4, Udp};

    #[test]
    fn a_description_becomes_a_valid_frame() {
        let frame = parse("udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3 payload 'hi'").unwrap();
        assert_eq!(&frame[12..14], &[8, 0]);
        let ip = Ipv4::new_checked(&frame[14..]).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!((ip.ttl(), ip.dst()), (3, Ipv4Addr::new(8, 8, 8, 8)));
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert!(udp.checksum_ok(ip.pseudo_header(10)));
        assert_eq!((udp.src_port(), udp.dst_port(), udp.payload()), (5000, 53, &b"hi"[..]));
    }

    #[test]
    fn what_is_said_is_what_is_printed() {
        for text in [
            "udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3 payload 6869",
            "tcp 10.0.0.1:5000 > 8.8.8.8:80 flags S seq 7",
            "tcp 10.0.0.1:5000 > 8.8.8.8:80 df id 9 flags PA seq 7 ack 8 win 100 payload 00ff",
            "icmp 10.0.0.1 > 10.0.0.2 type 8 rest 65537",
            "icmp 10.0.0.1 > 10.0.0.2 type 11 code 0",
            "ip 10.0.0.1 > 10.0.0.2 proto 47 payload 0102",
            "udp 10.0.0.1:1 > 10.0.0.2:2 badsum",
            "udp 10.0.0.1:1 > 10.0.0.2:2 nosum",
            "udp 10.0.0.1:1 > 10.0.0.2:2 badl4sum pad 18",
            "eth 00:00:00:00:00:01 > ff:ff:ff:ff:ff:ff vlan 5 udp 10.0.0.1:1 > 10.0.0.2:2",
            "bare udp 10.0.0.1:1 > 10.0.0.2:2 mf payload 0000000000000000",
            "ip 10.0.0.1 > 10.0.0.2 proto 17 frag 8 payload 01",
            "udp 10.0.0.1:1 > 10.0.0.2:2 opt 01010100",
            "tcp 10.0.0.1:1 > 10.0.0.2:2 flags S tcpopt 020405b401030307 payload 00",
            "udp [2001:db8::1]:53 > [2001:db8::2]:5353 ttl 255",
            "icmp 2001:db8::1 > 2001:db8::2 type 135 rest 1",
            "arp who-has 10.0.0.2 tell 10.0.0.1",
            "arp reply 10.0.0.2 is-at 00:01:02:03:04:05 to 10.0.0.1",
            "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 arp reply 10.0.0.2 is-at 00:00:00:00:00:01",
            "svlan 8197 vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2",
            "icmp 10.0.0.1 > 10.0.0.2 type 11 payload (udp 10.0.0.2:1 > 10.0.0.3:2 ttl 1)",
            "ip 10.0.0.1 > 10.0.0.2 proto 4 payload (icmp 10.0.0.2 > 10.0.0.1 type 3 rest 7 payload \
             (udp 10.0.0.1:1 > 10.0.0.2:2 payload 'a)'))",
            "raw 0102030405",
            "bare raw 0102",
            "bare raw",
        ] {
            let frame = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let bare = text.starts_with("bare");
            let printed = describe(&frame, !bare);
            let again = parse(&printed).unwrap_or_else(|e| panic!("{text} -> {printed}: {e}"));
            assert_eq!(again, frame, "{text} -> {printed}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "udp",
            "udp 1.2.3.4",
            "udp 1.2.3.4:5 > x",
            "udp 1.2.3.4:5 > 1.2.3.4:6 ttl 300",
            "foo",
            "raw 0",
            "raw xx",
            "icmp 1.2.3.4:5 > 1.2.3.4",
            "udp 1.1.1.1:1 > [::1]:2",
            "tcp 1.1.1.1:1 > 2.2.2.2:2 flags X",
            "udp 1.1.1.1:1 > 2.2.2.2:2 payload 'x",
            "udp 1.1.1.1:1 > 2.2.2.2:2 frag 3",
            "raw é1",
            "ip 1.1.1.1 > 2.2.2.2 proto 4 payload (udp 1.1.1.1:1 > 2.2.2.2:2",
            "ip 1.1.1.1 > 2.2.2.2 proto 4 payload (udp 1.1.1.1:1 > 2.2.2.2:2 x)",
            "udp 1.1.1.1:1 > 2.2.2.2:2 size 99999",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = "ip 1.1.1.1 > 2.2.2.2 proto 4 payload (".repeat(100_000) + &")".repeat(100_000);
        assert!(parse(&deep).is_err());
    }
}
