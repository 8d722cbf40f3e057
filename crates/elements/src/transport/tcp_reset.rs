//! TCPReset.

use std::net::IpAddr;

use ir::{Model, Reason};
use net::annotation::{self, Annotations};
use net::wire::ip_protocol::TCP;
use net::wire::tcp::flag::{ACK, FIN, RST, SYN};
use net::wire::{Ipv4, Ipv6, Tcp};
use net::{Batch, Header, Packet, PacketType};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::transport::segments;

element! {
    /// TCPReset([KEYWORDS]) -- turns TCP packets into resets
    ///
    /// Expects IPv4 and IPv6 packets with their header marked. A packet of TCP becomes one with RST to its
    /// sender, as from who it was for (RFC 9293, 3.10.7.1): its sequence number is what the packet
    /// acknowledges, or 0 and an acknowledgement of all of the packet if it acknowledges nothing. So it
    /// is accepted even where numbers are checked strictly (RFC 5961). With FORWARD it becomes one to
    /// its destination, in its place.
    ///
    /// Resets themselves are dropped as `about-reset`, fragments but the first and all that is not TCP as `not-tcp`,
    /// packets to several hosts as `about-broadcast`. The header has no options and no extension
    /// headers. Destination IP address annotations are set, others cleared. A link-layer header in
    /// front of the IP header stays where it is: EtherMirror sends it back.
    ///
    /// = KEYWORDS
    ///
    /// FORWARD (bool, default false): whether the reset goes on to the destination.
    ///
    /// = EXAMPLE
    ///
    /// filter :: URLFilter(urls.txt); filter[1] -> TCPReset -> Unstrip(14) -> EtherMirror -> ...
    ///
    /// = SEE ALSO
    ///
    /// ICMPError, URLFilter, EtherMirror
    TCPReset {
        category: Transport, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("FORWARD true", 1, 1)]
    }
}

/// Not TCP, or without its header.
const NOT_TCP: Reason = Reason("not-tcp");
/// Nobody answers a reset.
const ABOUT_RESET: Reason = Reason("about-reset");
/// Nobody answers what several hosts get.
const ABOUT_BROADCAST: Reason = Reason("about-broadcast");

/// See [`TCPReset::CLASS`].
pub(crate) struct TCPReset {
    forward: bool,
}

/// What a reset has.
struct Reset {
    from: (IpAddr, u16),
    to: (IpAddr, u16),
    sequence: u32,
    /// Without ACK if none.
    acknowledged: Option<u32>,
}

impl TCPReset {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["FORWARD"]);
        let forward = arguments.keyword("FORWARD").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { forward })
    }

    fn reset(&self, packet: &Packet) -> Result<Reset, Reason> {
        let seen = segments::seen(packet).filter(|seen| seen.protocol == TCP);
        let tcp = seen.and_then(|seen| Some((seen, seen.tcp?)));
        let Some((seen, tcp)) = tcp else { return Err(NOT_TCP) };
        if tcp.has(RST) {
            return Err(ABOUT_RESET);
        }
        let (from, to) = ((seen.src, seen.src_port), (seen.dst, seen.dst_port));
        let is_several = |(address, _): (IpAddr, u16)| match address {
            IpAddr::V4(of) => of.is_multicast() || of.is_broadcast() || of.is_unspecified(),
            IpAddr::V6(of) => of.is_multicast() || of.is_unspecified(),
        };
        let is_broadcast =
            matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast);
        if is_broadcast || is_several(from) || is_several(to) {
            return Err(ABOUT_BROADCAST);
        }
        let acknowledged = tcp.has(ACK).then_some(tcp.acknowledged);
        let length = seen.payload.len() as u32 + u32::from(tcp.has(FIN));
        Ok(match (self.forward, acknowledged) {
            // A SYN takes a number before its payload.
            (true, _) => Reset {
                from,
                to,
                sequence: tcp.sequence.wrapping_sub(u32::from(tcp.has(SYN))),
                acknowledged,
            },
            (false, Some(sequence)) => Reset { from: to, to: from, sequence, acknowledged: None },
            (false, None) => {
                let acknowledged = Some(tcp.sequence.wrapping_add(length));
                Reset { from: to, to: from, sequence: 0, acknowledged }
            }
        })
    }

    fn turn(&self, packet: &mut Packet) -> Verdict {
        match self.reset(packet) {
            Ok(reset) => {
                reset.write(packet);
                Verdict::Pass
            }
            Err(reason) => Verdict::Drop(reason),
        }
    }
}

impl Reset {
    /// Writes it in place of a packet, behind what stands in front of the marked header.
    fn write(&self, packet: &mut Packet) {
        let start = packet.header_offset(Header::Network).unwrap_or(0);
        if start >= 0 {
            packet.pull(start as usize);
        } else {
            packet.push(start.unsigned_abs());
        }
        let header = if self.to.0.is_ipv6() { 40 } else { 20 };
        packet.truncate(header + 20);
        let missing = header + 20 - packet.len();
        packet.put(missing);
        let (ip, segment) = packet.data_mut().split_at_mut(header);
        ip.fill(0);
        segment.fill(0);
        let pseudo_header = match (self.from.0, self.to.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                if let Some(mut ip) = Ipv4::new(ip) {
                    ip.set_header_len(header);
                    ip.set_total_len(40);
                    ip.set_fragment_word(0x4000);
                    ip.set_ttl(64);
                    ip.set_protocol(TCP);
                    ip.set_src(from);
                    ip.set_dst(to);
                    ip.fill_checksum();
                }
                net::checksum::pseudo_header_v4(from, to, TCP, 20)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip[0] = 0x60;
                if let Some(mut ip) = Ipv6::new(ip) {
                    ip.set_payload_len(20);
                    ip.set_next_header(TCP);
                    ip.set_hop_limit(64);
                    ip.set_src(from);
                    ip.set_dst(to);
                }
                net::checksum::pseudo_header_v6(from, to, TCP, 20)
            }
            // Both are of one packet.
            _ => return,
        };
        if let Some(mut tcp) = Tcp::new(segment) {
            tcp.set_src_port(self.from.1);
            tcp.set_dst_port(self.to.1);
            tcp.set_seq(self.sequence);
            tcp.set_ack(self.acknowledged.unwrap_or(0));
            tcp.set_header_len(20);
            tcp.set_flags(RST | if self.acknowledged.is_some() { ACK } else { 0 });
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

impl Element for TCPReset {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.turn(packet));
    }

    fn model(&self) -> Model {
        Model::opaque("writes packets anew")
    }
}
