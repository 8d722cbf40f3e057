//! Listings: what an element keeps many of, read a slice at a time.
//!
//! A handler that lists is not read at once, for packets would wait meanwhile: each slice looks at
//! a bounded number of records and says where the next begins, and packets pass in between. What
//! is there from the first slice to the last is listed once; what comes or goes meanwhile may be
//! listed or not. What is listed by position tells slices of one version from those of another.
//! Slices hold plain data, so that text is made of them by another thread.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use net::wire::{Ethernet, Ipv4, Ipv6, Tcp};
use net::wire::{ether, ether_type, icmpv4, icmpv6, ip_protocol, ipv4, ipv6};
use net::{Packet, Pool};

/// Records that a slice looks at, at the most.
pub const SLICE: usize = 128;

/// Rows that a slice makes the text of, at the most.
pub(crate) const ROWS: usize = 32;

/// Bytes of text beyond which no further row is put into a slice.
const BYTES: usize = 1 << 14;

/// A part of what a handler lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What is in it.
    pub records: Vec<Record>,
    /// Where the next slice begins, if this is not the last.
    pub next: Option<u64>,
    /// How many flows have been touched, modulo 2^32.
    pub touches: u32,
    /// How often what is listed has changed its positions; slices that differ in it do not belong together.
    pub version: u64,
}

/// Something that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A direction of a flow.
    Flow(FlowRecord),
    /// A row, which may be counted in. Rows are shown in the order of their numbers, then of their texts.
    Row(u64, String),
    /// So many more of what a row counts.
    Count(u64, u64),
    /// A part of a text.
    Text(Arc<str>),
}

/// What the packets of a direction have in common, and what they become, as far as it concerns
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Addresses and ports.
    Ports,
    /// The source address.
    Address,
    /// Both addresses.
    Pair,
    /// Addresses and the identifier of ICMP echo, which is the source port.
    Identifier,
}

/// Addresses and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    /// Source address.
    pub src: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination address, of the same version of IP.
    pub dst: IpAddr,
    /// Destination port.
    pub dst_port: u16,
}

impl Tuple {
    /// That of answers.
    pub fn reverse(&self) -> Self {
        Self { src: self.dst, src_port: self.dst_port, dst: self.src, dst_port: self.src_port }
    }

    /// A packet of it, to be looked at; the source port is the identifier of a ping, and of IPv6 the destination port that
    /// of its answer.
    pub fn packet(&self, protocol: u8, pool: &mut Pool) -> Packet {
        let mut bytes = [0; ether::HEADER_LEN + ipv6::HEADER_LEN + TRANSPORT];
        let (ether, packet) = bytes.split_at_mut(ether::HEADER_LEN);
        let (kind, header) = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                if let Some(mut ip) = Ipv4::new(&mut *packet) {
                    ip.set_header_len(ipv4::HEADER_LEN);
                    ip.set_total_len((ipv4::HEADER_LEN + TRANSPORT) as u16);
                    ip.set_ttl(64);
                    ip.set_protocol(protocol);
                    ip.set_src(src);
                    ip.set_dst(dst);
                }
                (ether_type::IPV4, ipv4::HEADER_LEN)
            }
            (src, dst) => {
                let six = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                if let Some(mut ip) = Ipv6::new(&mut *packet) {
                    ip.set_first_word(0, 0);
                    ip.set_payload_len(TRANSPORT as u16);
                    ip.set_hop_limit(64);
                    ip.set_next_header(protocol);
                    ip.set_src(six(src));
                    ip.set_dst(six(dst));
                }
                (ether_type::IPV6, ipv6::HEADER_LEN)
            }
        };
        if let Some(mut ether) = Ethernet::new(ether) {
            ether.set_ether_type(kind);
        }
        let transport = &mut packet[header..header + TRANSPORT];
        // Ports lie where TCP has them, whatever the protocol.
        if let Some(mut tcp) = Tcp::new(&mut *transport) {
            tcp.set_src_port(self.src_port);
            tcp.set_dst_port(self.dst_port);
            tcp.set_header_len(20);
        }
        match protocol {
            ip_protocol::ICMP => {
                transport.copy_within(..2, 4);
                transport[..4].copy_from_slice(&[icmpv4::message::ECHO, 0, 0, 0]);
            }
            ip_protocol::ICMPV6 => {
                let is_reply = self.src_port == 0;
                let kind = icmpv6::message::ECHO + u8::from(is_reply);
                transport.copy_within(if is_reply { 2..4 } else { 0..2 }, 4);
                transport[..4].copy_from_slice(&[kind, 0, 0, 0]);
            }
            _ => {}
        }
        pool.packet(&bytes[..ether::HEADER_LEN + header + TRANSPORT])
    }
}

/// Bytes of a made packet behind its IP header.
const TRANSPORT: usize = 26;

/// A direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Its packets.
    pub from: Tuple,
    /// What they become.
    pub to: Tuple,
    /// What of these counts.
    pub form: Form,
    /// The protocol; 0 if the flow has that of any packet.
    pub protocol: u8,
    /// Whether it is the direction that answers come in.
    pub is_reply: bool,
    /// Whether it is the first of the flow's directions that are listed, the forward one unless both
    /// are one.
    pub is_first: bool,
    /// The outputs of the forward direction and of answers.
    pub outputs: [u16; 2],
    /// The input of the packet that made it.
    pub input: u16,
    /// Nanoseconds until it expires.
    pub left: u64,
    /// How many flows had been touched when it was last, modulo 2^32.
    pub touched: u32,
}

/// As Click prints it.
impl fmt::Display for FlowRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (&self.from, &self.to);
        let tuple = |t: &Tuple| format!("({}, {}, {}, {})", t.src, t.src_port, t.dst, t.dst_port);
        let triple = |t: &Tuple| format!("({}, {}, {})", t.src, t.dst, t.src_port);
        match self.form {
            Form::Ports => write!(f, "{} => {}", tuple(from), tuple(to)),
            Form::Address => write!(f, "{} => {}", from.src, to.src),
            Form::Pair => {
                write!(f, "({}, {}) => ({}, {})", from.src, from.dst, to.src, to.dst)
            }
            Form::Identifier => write!(f, "{} => {}", triple(from), triple(to)),
        }?;
        let star = |reply| if self.is_reply == reply { "*" } else { "" };
        // Rounded to seconds.
        let left = self.left.saturating_add(500_000_000) / 1_000_000_000;
        let [forward, reverse] = self.outputs;
        write!(f, " [{}{forward} {}{reverse}] i{} exp{left}", star(false), star(true), self.input)
    }
}

impl Slice {
    /// Some of so many parts of a text, from one on.
    pub(crate) fn of_parts(count: usize, from: u64, part: impl Fn(usize) -> String) -> Self {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(count);
        let most = from.saturating_add(ROWS).min(count);
        let (mut end, mut text) = (from, String::new());
        while end < most && text.len() < BYTES {
            text += &part(end);
            end += 1;
        }
        Self { next: (end < count).then_some(end as u64), ..Self::of_text(text.into()) }
    }

    /// A text that is at hand.
    pub fn of_text(text: Arc<str>) -> Self {
        Self { records: vec![Record::Text(text)], ..Self::default() }
    }
}

/// What is listed by slices that begin where the one before says.
pub(crate) fn whole(mut slice: impl FnMut(u64) -> Option<Slice>) -> String {
    let mut from = Some(0);
    render(std::iter::from_fn(|| {
        let slice = slice(from.take()?)?;
        from = slice.next;
        Some(slice)
    }))
}

/// What slices that follow one another list, for people: flows in the order in which they were
/// touched, rows with their counts, a count, or a text.
pub fn render(slices: impl IntoIterator<Item = Slice>) -> String {
    let (mut flows, mut rows, mut counts) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut touches, mut text) = (0, String::new());
    for slice in slices {
        touches = slice.touches;
        for record in slice.records {
            match record {
                Record::Flow(flow) => flows.push(flow),
                Record::Row(row, text) => rows.push((row, text)),
                Record::Count(row, count) => *counts.entry(row).or_insert(0) += count,
                Record::Text(part) => text += &part,
            }
        }
    }
    in_order(&mut flows, touches);
    rows.sort_unstable();
    if rows.is_empty() && !counts.is_empty() {
        return counts.values().sum::<u64>().to_string();
    }
    let line = |(row, text): &(u64, String)| match counts.get(row) {
        None | Some(0) => format!("{text}\n"),
        Some(count) => format!("{text} [{count}]\n"),
    };
    let flows = flows.iter().map(|flow| format!("{flow}\n"));
    flows.chain(rows.iter().map(line)).chain([text]).collect()
}

/// Puts flows into the order in which they were touched, when so many had been at the end.
pub fn in_order(flows: &mut [FlowRecord], touches: u32) {
    flows.sort_by_key(|flow| std::cmp::Reverse(touches.wrapping_sub(flow.touched)));
}
