//! Frames of generated traffic: templates that are complete but for what differs between packets.

use std::net::IpAddr;

use elements::rule_packets::HEADERS;
use net::checksum::{Sum, udp_field};
use net::wire::vlan::Tci;
use net::wire::{EtherAddr, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Tcp, Udp, Vlan};
use net::wire::{
    ether, ether_type, icmpv4, icmpv6, ip_protocol, ipv4, ipv6, tcp, udp, vlan as tag,
};

/// A protocol that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP over IPv4.
    Udp,
    /// TCP over IPv4.
    Tcp,
    /// ICMP echo over IPv4.
    Icmp,
    /// UDP over IPv6.
    Udp6,
    /// TCP over IPv6.
    Tcp6,
    /// ICMPv6 echo.
    Icmp6,
}

impl Protocol {
    /// All of them, with the names that `proto=` takes.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("udp", Self::Udp),
        ("tcp", Self::Tcp),
        ("icmp", Self::Icmp),
        ("udp6", Self::Udp6),
        ("tcp6", Self::Tcp6),
        ("icmp6", Self::Icmp6),
    ];

    pub(super) const fn is_ipv6(self) -> bool {
        matches!(self, Self::Udp6 | Self::Tcp6 | Self::Icmp6)
    }

    pub(super) const fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Tcp6)
    }

    pub(super) const fn has_ports(self) -> bool {
        !matches!(self, Self::Icmp | Self::Icmp6)
    }

    const fn number(self) -> u8 {
        match self {
            Self::Udp | Self::Udp6 => ip_protocol::UDP,
            Self::Tcp | Self::Tcp6 => ip_protocol::TCP,
            Self::Icmp => ip_protocol::ICMP,
            Self::Icmp6 => ip_protocol::ICMPV6,
        }
    }

    const fn ip_header(self) -> usize {
        if self.is_ipv6() { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN }
    }

    const fn transport_header(self) -> usize {
        match self {
            Self::Udp | Self::Udp6 => udp::HEADER_LEN,
            Self::Tcp | Self::Tcp6 => tcp::HEADER_LEN,
            Self::Icmp => icmpv4::HEADER_LEN,
            Self::Icmp6 => icmpv6::HEADER_LEN,
        }
    }
}

/// The shortest frame of Ethernet, without FCS.
const MIN_FRAME: usize = 60;

/// What differs between packets of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// Of the template's version of IP, as is the destination.
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Source and destination port; the first is the identifier of an echo.
    pub(super) ports: (u16, u16),
    /// What TCP has besides.
    pub(super) segment: Segment,
}

/// What is written into a copy of a template.
pub(super) enum Contents {
    Headers(Headers),
    /// The headers of IP and of the transport as a whole.
    Drawn([u8; HEADERS]),
}

/// Flags and numbers of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) flags: u8,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
}

impl Segment {
    /// A segment of a flow without a state.
    pub(super) const PLAIN: Self = Self { flags: tcp::flag::ACK, sequence: 0, acknowledgment: 0 };
}

/// A frame with everything but [`Headers`], whose bytes are zero.
pub(super) struct Template {
    frame: Vec<u8>,
    protocol: Protocol,
    /// Where the IP header begins.
    network: usize,
    payload: usize,
    /// The sum of the IPv4 header.
    header: Sum,
    /// The sum of what the transport's checksum covers.
    covered: Sum,
}

/// The frames that packets are copies of.
pub(super) struct Templates {
    /// Of each protocol, one of each size, and one without a payload.
    all: Vec<Template>,
    sizes: usize,
}

impl Templates {
    pub(super) fn new(protocols: &[Protocol], sizes: &[u16], vlan: Option<u16>) -> Self {
        let of = |&protocol: &Protocol| {
            let sized = sizes.iter().map(move |&size| Template::new(protocol, vlan, size));
            sized.chain([Template::bare(protocol, vlan)])
        };
        Self { all: protocols.iter().flat_map(of).collect(), sizes: sizes.len() }
    }

    /// The frame of the protocol at a place among the protocols, of the size that is the packet's turn.
    pub(super) fn sized(&self, protocol: usize, packet: u64) -> &Template {
        let size = (packet % self.sizes as u64) as usize;
        &self.all[protocol * (self.sizes + 1) + size]
    }

    /// The frame of a protocol without a payload.
    pub(super) fn bare(&self, protocol: usize) -> &Template {
        &self.all[protocol * (self.sizes + 1) + self.sizes]
    }
}

impl Template {
    /// A frame of so many bytes, or of as many as its headers need.
    pub(super) fn new(protocol: Protocol, vlan: Option<u16>, size: u16) -> Self {
        let headers = headers(protocol, vlan);
        Self::padded(protocol, vlan, headers.max(size.into()), 0)
    }

    /// A frame without a payload, padded to the least that Ethernet has.
    pub(super) fn bare(protocol: Protocol, vlan: Option<u16>) -> Self {
        let headers = headers(protocol, vlan);
        Self::padded(protocol, vlan, headers, MIN_FRAME.saturating_sub(headers))
    }

    fn padded(protocol: Protocol, vlan: Option<u16>, size: usize, padding: usize) -> Self {
        let network = network(vlan);
        let mut frame = vec![0; size];
        let (link, packet) = frame.split_at_mut(network);
        link_layer(link, protocol, vlan);
        let (ip, transport) = packet.split_at_mut(protocol.ip_header());
        transport_header(transport, protocol);
        let pseudo = ip_header(ip, protocol, transport.len() as u16);
        let header = Sum::of(ip);
        let covered = pseudo.plus(Sum::of(transport));
        let payload = size - headers(protocol, vlan);
        frame.resize(size + padding, 0);
        Self { frame, protocol, network, payload, header, covered }
    }

    /// Bytes behind the transport header.
    pub(super) fn payload(&self) -> usize {
        self.payload
    }

    pub(super) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Writes what a source has for the packet into a copy of the frame.
    pub(super) fn write(&self, frame: &mut [u8], contents: &Contents) {
        match contents {
            Contents::Headers(headers) => self.fill(frame, headers),
            Contents::Drawn(headers) => self.replace(frame, headers),
        }
    }

    /// Replaces the headers of IPv4 and of the transport, and completes lengths and checksums.
    fn replace(&self, frame: &mut [u8], headers: &[u8]) {
        let packet = &mut frame[self.network..];
        packet[..headers.len()].copy_from_slice(headers);
        let (ip, transport) = packet.split_at_mut(ipv4::HEADER_LEN);
        let Some(mut ip) = Ipv4::new(ip) else { return };
        ip.set_total_len((ipv4::HEADER_LEN + transport.len()) as u16);
        ip.fill_checksum();
        let length = transport.len() as u16;
        let pseudo = ip.pseudo_header(length);
        match ip.protocol() {
            _ if ip.is_later_fragment() => {}
            ip_protocol::UDP => {
                let Some(mut udp) = Udp::new(transport) else { return };
                udp.set_len(length);
                udp.fill_checksum(pseudo);
            }
            ip_protocol::TCP => {
                if let Some(mut tcp) = Tcp::new(transport) {
                    tcp.fill_checksum(pseudo);
                }
            }
            ip_protocol::ICMP => {
                if let Some(mut icmp) = Icmpv4::new(transport) {
                    icmp.fill_checksum();
                }
            }
            _ => {}
        }
    }

    /// Writes headers into a copy of the frame and completes its checksums. Sums of what all packets have in common
    /// are known, so the payload is not read.
    pub(super) fn fill(&self, frame: &mut [u8], headers: &Headers) {
        let (ip, transport) = frame[self.network..].split_at_mut(self.protocol.ip_header());
        let addresses = match (headers.source, headers.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let Some(mut ip) = Ipv4::new(ip) else { return };
                ip.set_src(source);
                ip.set_dst(destination);
                let addresses = Sum::of_u32(source.into()).plus(Sum::of_u32(destination.into()));
                ip.set_checksum(self.header.plus(addresses).checksum());
                addresses
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let Some(mut ip) = Ipv6::new(ip) else { return };
                ip.set_src(source);
                ip.set_dst(destination);
                Sum::of(&source.octets()).plus(Sum::of(&destination.octets()))
            }
            _ => return,
        };
        let (from, to) = headers.ports;
        let both = self.covered.plus(addresses).plus(Sum::of_u16(from));
        let all = both.plus(Sum::of_u16(to));
        match self.protocol {
            Protocol::Udp | Protocol::Udp6 => {
                let Some(mut udp) = Udp::new(transport) else { return };
                udp.set_src_port(from);
                udp.set_dst_port(to);
                udp.set_checksum(udp_field(all.checksum()));
            }
            Protocol::Tcp | Protocol::Tcp6 => {
                let Some(mut tcp) = Tcp::new(transport) else { return };
                tcp.set_src_port(from);
                tcp.set_dst_port(to);
                let Segment { flags, sequence, acknowledgment } = headers.segment;
                tcp.set_flags(flags);
                tcp.set_seq(sequence);
                tcp.set_ack(acknowledgment);
                let numbers = Sum::of_u32(sequence).plus(Sum::of_u32(acknowledgment));
                tcp.set_checksum(all.plus(numbers).plus(Sum::of_u16(flags.into())).checksum());
            }
            Protocol::Icmp => {
                let Some(mut icmp) = Icmpv4::new(transport) else { return };
                icmp.set_id(from);
                // ICMP has no pseudo-header.
                icmp.set_checksum(self.covered.plus(Sum::of_u16(from)).checksum());
            }
            Protocol::Icmp6 => {
                let Some(mut icmp) = Icmpv6::new(transport) else { return };
                icmp.set_rest(u32::from(from) << 16);
                icmp.set_checksum(both.checksum());
            }
        }
    }
}

/// Writes the VLAN of a frame that has a tag.
pub(super) fn set_vlan(frame: &mut [u8], id: u16) {
    if let Some(mut tag) = frame.get_mut(ether::HEADER_LEN..).and_then(Vlan::new) {
        tag.set_tci(Tci(id));
    }
}

/// Where the IP header begins.
fn network(vlan: Option<u16>) -> usize {
    ether::HEADER_LEN + vlan.map_or(0, |_| tag::HEADER_LEN)
}

/// Bytes of all headers.
fn headers(protocol: Protocol, vlan: Option<u16>) -> usize {
    network(vlan) + protocol.ip_header() + protocol.transport_header()
}

fn link_layer(link: &mut [u8], protocol: Protocol, vlan: Option<u16>) {
    let inner = if protocol.is_ipv6() { ether_type::IPV6 } else { ether_type::IPV4 };
    let (ethernet, rest) = link.split_at_mut(ether::HEADER_LEN);
    if let Some(mut ethernet) = Ethernet::new(ethernet) {
        ethernet.set_dst(EtherAddr([2, 0, 0, 0, 0, 1]));
        ethernet.set_src(EtherAddr([2, 0, 0, 0, 0, 2]));
        ethernet.set_ether_type(if vlan.is_some() { ether_type::VLAN } else { inner });
    }
    if let (Some(mut tag), Some(id)) = (Vlan::new(rest), vlan) {
        tag.set_tci(Tci(id));
        tag.set_ether_type(inner);
    }
}

/// Writes an IP header without addresses and gives the sum of the transport's pseudo-header without them.
fn ip_header(header: &mut [u8], protocol: Protocol, length: u16) -> Sum {
    if protocol.is_ipv6() {
        let Some(mut ip) = Ipv6::new(header) else { return Sum::ZERO };
        ip.set_first_word(0, 0);
        ip.set_payload_len(length);
        ip.set_next_header(protocol.number());
        ip.set_hop_limit(64);
        return ip.pseudo_header(protocol.number(), length.into());
    }
    let Some(mut ip) = Ipv4::new(header) else { return Sum::ZERO };
    ip.set_header_len(ipv4::HEADER_LEN);
    ip.set_total_len(ipv4::HEADER_LEN as u16 + length);
    ip.set_ttl(64);
    ip.set_protocol(protocol.number());
    if protocol == Protocol::Icmp { Sum::ZERO } else { ip.pseudo_header(length) }
}

fn transport_header(transport: &mut [u8], protocol: Protocol) {
    match protocol {
        Protocol::Udp | Protocol::Udp6 => {
            if let Some(mut udp) = Udp::new(transport) {
                udp.set_len(udp.bytes().len() as u16);
            }
        }
        Protocol::Tcp | Protocol::Tcp6 => {
            if let Some(mut tcp) = Tcp::new(transport) {
                tcp.set_header_len(tcp::HEADER_LEN);
                tcp.set_window(0xffff);
            }
        }
        Protocol::Icmp => {
            if let Some(mut icmp) = Icmpv4::new(transport) {
                icmp.set_message_type(icmpv4::message::ECHO);
            }
        }
        Protocol::Icmp6 => {
            if let Some(mut icmp) = Icmpv6::new(transport) {
                icmp.set_message_type(icmpv6::message::ECHO);
            }
        }
    }
}
