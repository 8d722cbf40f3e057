//! Listings: what an element keeps many of, read a slice at a time.
//!
//! A handler that lists is not read at once, for packets would wait meanwhile: each slice looks at
//! a bounded number of records and says where the next begins, and packets pass in between. What
//! is there from the first slice to the last is listed once; what comes or goes meanwhile may be
//! listed or not. Slices hold plain data, so that text is made of them by another thread.

use std::fmt;
use std::net::Ipv4Addr;

use net::wire::{Ethernet, Ipv4, Tcp};
use net::wire::{ether, ether_type, icmpv4, ip_protocol, ipv4};
use net::{Packet, Pool};

/// Records that a slice looks at, at the most.
pub const SLICE: usize = 512;

/// Rows that a slice makes the text of, at the most.
pub(crate) const ROWS: usize = 128;

/// A part of what a handler lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// What is in it.
    pub records: Vec<Record>,
    /// Where the next slice begins, if this is not the last.
    pub next: Option<u64>,
    /// How many flows have been touched, modulo 2^32.
    pub touches: u32,
}

/// Something that is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A direction of a flow.
    Flow(FlowRecord),
    /// A row, which may be counted in.
    Row(usize, String),
    /// So many more of what a row counts.
    Count(usize, u64),
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
    pub src: Ipv4Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Destination port.
    pub dst_port: u16,
}

impl Tuple {
    /// That of answers.
    pub fn reverse(&self) -> Self {
        Self { src: self.dst, src_port: self.dst_port, dst: self.src, dst_port: self.src_port }
    }

    /// A packet of it, to be looked at; the source port is the identifier of a ping.
    pub fn packet(&self, protocol: u8, pool: &mut Pool) -> Packet {
        let mut bytes = [0; 60];
        let (ether, packet) = bytes.split_at_mut(ether::HEADER_LEN);
        let length = packet.len() as u16;
        let (ip, transport) = packet.split_at_mut(ipv4::HEADER_LEN);
        if let Some(mut ether) = Ethernet::new(ether) {
            ether.set_ether_type(ether_type::IPV4);
        }
        if let Some(mut ip) = Ipv4::new(ip) {
            ip.set_header_len(ipv4::HEADER_LEN);
            ip.set_total_len(length);
            ip.set_ttl(64);
            ip.set_protocol(protocol);
            ip.set_src(self.src);
            ip.set_dst(self.dst);
        }
        // Ports lie where TCP has them, whatever the protocol.
        if let Some(mut tcp) = Tcp::new(&mut *transport) {
            tcp.set_src_port(self.src_port);
            tcp.set_dst_port(self.dst_port);
            tcp.set_header_len(20);
        }
        if protocol == ip_protocol::ICMP {
            transport.copy_within(..2, 4);
            transport[..4].copy_from_slice(&[icmpv4::message::ECHO, 0, 0, 0]);
        }
        pool.packet(&bytes)
    }
}

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
/// touched, rows with their counts, or a count.
pub fn render(slices: impl IntoIterator<Item = Slice>) -> String {
    let (mut flows, mut rows, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut touches = 0;
    for slice in slices {
        touches = slice.touches;
        for record in slice.records {
            match record {
                Record::Flow(flow) => flows.push(flow),
                Record::Row(row, text) => rows.push((row, text)),
                Record::Count(row, count) => {
                    if counts.len() <= row {
                        counts.resize(row + 1, 0);
                    }
                    counts[row] += count;
                }
            }
        }
    }
    in_order(&mut flows, touches);
    if rows.is_empty() && !counts.is_empty() {
        return counts.iter().sum::<u64>().to_string();
    }
    let line = |(row, text): &(usize, String)| match counts.get(*row) {
        None | Some(0) => format!("{text}\n"),
        Some(count) => format!("{text} [{count}]\n"),
    };
    flows.iter().map(|flow| format!("{flow}\n")).chain(rows.iter().map(line)).collect()
}

/// Puts flows into the order in which they were touched, when so many had been at the end.
pub fn in_order(flows: &mut [FlowRecord], touches: u32) {
    flows.sort_by_key(|flow| std::cmp::Reverse(touches.wrapping_sub(flow.touched)));
}
