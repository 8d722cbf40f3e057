//! Segments of TCP that take a packet's place.

use std::net::IpAddr;

use ir::Reason;
use net::annotation::{self, Annotations};
use net::wire::ip_protocol::TCP;
use net::wire::tcp::flag::ACK;
use net::wire::{Ipv4, Ipv6, Tcp};
use net::{Header, Packet, PacketType};

use super::segments::Seen;

/// Nobody answers what several hosts get.
pub(crate) const ABOUT_BROADCAST: Reason = Reason("about-broadcast");

/// Whether a packet is between two hosts (RFC 1122, 4.2.3.10).
pub(crate) fn may_be_answered(packet: &Packet, seen: &Seen<'_>) -> bool {
    let is_several = |address: IpAddr| match address {
        IpAddr::V4(of) => of.is_multicast() || of.is_broadcast() || of.is_unspecified(),
        IpAddr::V6(of) => of.is_multicast() || of.is_unspecified(),
    };
    let is_broadcast =
        matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast);
    !is_broadcast && !is_several(seen.src) && !is_several(seen.dst)
}

/// A segment without payload, of IPv4 or IPv6.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSegment<'a> {
    /// Addresses of one version, with ports.
    pub from: (IpAddr, u16),
    pub to: (IpAddr, u16),
    pub sequence: u32,
    /// Without ACK if none.
    pub acknowledged: Option<u32>,
    /// Flags besides ACK.
    pub flags: u8,
    pub window: u16,
    /// A multiple of four bytes, 40 at the most.
    pub options: &'a [u8],
}

impl NewSegment<'_> {
    /// Writes it in place of a packet with a marked header, behind what stands in front of that. The IP header has no
    /// options, and the annotations are those of a packet that goes to its destination.
    pub(crate) fn write(&self, packet: &mut Packet) {
        let start = packet.header_offset(Header::Network).unwrap_or(0);
        if start >= 0 {
            packet.pull(start as usize);
        } else {
            packet.push(start.unsigned_abs());
        }
        let header = if self.to.0.is_ipv6() { 40 } else { 20 };
        let length = 20 + self.options.len();
        packet.truncate(header + length);
        let missing = header + length - packet.len();
        packet.put(missing);
        let (ip, segment) = packet.data_mut().split_at_mut(header);
        ip.fill(0);
        segment.fill(0);
        let pseudo_header = match (self.from.0, self.to.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                if let Some(mut ip) = Ipv4::new(ip) {
                    ip.set_header_len(header);
                    ip.set_total_len((header + length) as u16);
                    ip.set_fragment_word(0x4000);
                    ip.set_ttl(64);
                    ip.set_protocol(TCP);
                    ip.set_src(from);
                    ip.set_dst(to);
                    ip.fill_checksum();
                }
                net::checksum::pseudo_header_v4(from, to, TCP, length as u16)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip[0] = 0x60;
                if let Some(mut ip) = Ipv6::new(ip) {
                    ip.set_payload_len(length as u16);
                    ip.set_next_header(TCP);
                    ip.set_hop_limit(64);
                    ip.set_src(from);
                    ip.set_dst(to);
                }
                net::checksum::pseudo_header_v6(from, to, TCP, length as u32)
            }
            // Both are of one version.
            _ => return,
        };
        segment[20..].copy_from_slice(self.options);
        if let Some(mut tcp) = Tcp::new(segment) {
            tcp.set_src_port(self.from.1);
            tcp.set_dst_port(self.to.1);
            tcp.set_seq(self.sequence);
            tcp.set_ack(self.acknowledged.unwrap_or(0));
            tcp.set_header_len(length);
            tcp.set_flags(self.flags | if self.acknowledged.is_some() { ACK } else { 0 });
            tcp.set_window(self.window);
            tcp.fill_checksum(pseudo_header);
        }
        let mut annotations = Annotations::default();
        if let IpAddr::V4(to) = self.to.0 {
            annotations.set_u32(annotation::DST_IP, to.to_bits());
        }
        *packet.annotations_mut() = annotations;
        packet.set_packet_type(PacketType::Host);
        packet.set_ip_header(0, header);
    }
}
