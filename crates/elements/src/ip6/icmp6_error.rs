//! ICMP6Error.

use std::net::Ipv6Addr;

use ir::field::{anno, icmp, ip6, meta};
use ir::model::{Block, Reg};
use ir::{Cond, Expr, Field, IntervalSet, Model, Op, Reason};
use net::wire::icmpv6::message;
use net::wire::{Icmpv6, Ipv6};
use net::{Annotations, Batch, Header, Packet, PacketType, annotation};

use crate::argument::Ip6;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{NETWORK, TRANSPORT};
use crate::ip6::ip6_header::{self, ICMP6, NO_HEADER};

element! {
    /// ICMP6Error(SRC, TYPE, CODE [, KEYWORDS MTU]) -- answers packets with ICMPv6 errors
    ///
    /// Expects IPv6 packets with their header marked, and turns each into an ICMPv6 error message
    /// (RFC 4443) to its source, which quotes as much of it as fits into 1280 bytes. TYPE is 1 for
    /// unreachable, 2 for packet too big, 3 for time exceeded, 4 for parameter problem, or 137 for
    /// redirect (RFC 4861). No message is made about ICMPv6 errors and redirects, about packets
    /// whose source is not a single host, and, unless it says that the packet is too big or has
    /// an unknown option, about packets to groups; they are dropped.
    ///
    /// The message has the source SRC, fresh annotations except for its destination address, and
    /// the fix-IP-source annotation. Redirects name the destination address annotation as the
    /// better next hop, parameter problems the offset that is in an annotation.
    ///
    /// = KEYWORDS
    ///
    /// MTU (number, default 1500): the MTU that "packet too big" reports.
    ///
    /// = SEE ALSO
    ///
    /// DecIP6HLIM, IP6Fragmenter, ICMPError
    ICMP6Error {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [
            ("2001:db8::9, 3, 0", 1, 1), ("2001:db8::9, 2, 0, MTU 1400", 1, 1),
            ("2001:db8::9, 4, 2", 1, 1), ("2001:db8::9, 137, 0", 1, 1)
        ]
    }
}

/// See [`ICMP6Error::CLASS`].
pub(crate) struct ICMP6Error {
    source: Ipv6Addr,
    message_type: u8,
    code: u8,
    mtu: u32,
}

const ABOUT_ERROR: Reason = Reason("error-about-icmp-error");
/// No ICMPv6 error of this type is sent about a packet to a group.
const ABOUT_GROUP: Reason = Reason("error-about-multicast");
const ABOUT_LINK_BROADCAST: Reason = Reason("error-about-link-broadcast");
const BAD_SOURCE: Reason = Reason("error-to-bad-source");

/// Length of the longest message: the least MTU of IPv6.
const MOST: usize = 1280;
/// Code of a parameter problem that may be told about packets to groups.
const UNKNOWN_OPTION: u8 = 2;
/// Kind of the option that quotes a packet in redirects.
const REDIRECTED_HEADER: u8 = 4;

impl ICMP6Error {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SRC", "TYPE", "CODE", "MTU"]);
        let source: Ip6 = arguments.required("SRC");
        let word = arguments.keyword_argument("TYPE").or_else(|| arguments.next_raw());
        let message_type = match &word {
            Some(word) => arguments.parse("TYPE", word).unwrap_or(message::UNREACHABLE),
            None => arguments.required("TYPE"),
        };
        let known = (message::UNREACHABLE..=message::PARAMETER_PROBLEM).contains(&message_type);
        if let Some(word) = word.filter(|_| !known && message_type != message::REDIRECT) {
            arguments.error(&word, format!("{} is no ICMPv6 error type", word.text));
        }
        let code = arguments.required("CODE");
        let mtu = arguments.keyword("MTU").unwrap_or(1500);
        arguments.finish()?;
        Ok(Self { source: source.0, message_type, code, mtu })
    }

    /// Whether the message may also be about packets to groups (RFC 4443, 2.4 e).
    fn is_about_groups_too(&self) -> bool {
        self.message_type == message::PACKET_TOO_BIG
            || (self.message_type, self.code) == (message::PARAMETER_PROBLEM, UNKNOWN_OPTION)
    }

    fn is_redirect(&self) -> bool {
        self.message_type == message::REDIRECT
    }

    /// Bytes of all headers before the quoted packet.
    fn headers(&self) -> usize {
        if self.is_redirect() { 40 + 40 + 8 } else { 40 + 8 }
    }

    fn turn(&self, packet: &mut Packet, now: u64) -> Verdict {
        let Some(ip) = ip6_header::view(packet) else {
            return Verdict::Drop(NO_HEADER);
        };
        let is_error = |t: &[u8]| t.first().is_none_or(|&t| t < 128 || t == message::REDIRECT);
        if ip.next_header() == ICMP6 && is_error(packet.transport().unwrap_or(&[])) {
            return Verdict::Drop(ABOUT_ERROR);
        }
        let link_broadcast =
            matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast);
        if !self.is_about_groups_too() {
            if ip.dst().is_multicast() {
                return Verdict::Drop(ABOUT_GROUP);
            }
            if link_broadcast {
                return Verdict::Drop(ABOUT_LINK_BROADCAST);
            }
        }
        let to = ip.src();
        if to.is_multicast() || to.is_unspecified() || to.is_loopback() {
            return Verdict::Drop(BAD_SOURCE);
        }
        let destination = ip.dst();
        let headers = self.headers();
        let mut quoted = ip.bytes().len().min(MOST - headers);
        if self.is_redirect() {
            quoted &= !7;
        }
        let annotations = packet.annotations();
        let target = annotations.dst_ip6();
        let second = match self.message_type {
            message::PACKET_TOO_BIG => self.mtu,
            message::PARAMETER_PROBLEM => annotations.u8(annotation::ICMP_PARAMETER_PROBLEM).into(),
            _ => 0,
        };

        let start = packet.header_offset(Header::Network).unwrap_or(0);
        if start >= 0 {
            packet.pull(start as usize)
        } else {
            packet.push(start.unsigned_abs())
        }
        packet.truncate(quoted);
        packet.push(headers);
        let (header, message) = packet.data_mut().split_at_mut(40);
        let length = message.len() as u16;
        if let (Some(mut ip), Some(mut icmp)) = (Ipv6::new(header), Icmpv6::new(message)) {
            ip.set_first_word(0, 0);
            ip.set_payload_len(length);
            ip.set_next_header(ICMP6);
            ip.set_hop_limit(255);
            ip.set_src(self.source);
            ip.set_dst(to);
            icmp.set_message_type(self.message_type);
            icmp.set_code(self.code);
            icmp.set_rest(second);
            let (addresses, option) = icmp.payload_mut().split_at_mut(32);
            if self.is_redirect() {
                addresses.copy_from_slice(&[target.octets(), destination.octets()].concat());
                let eights = (quoted / 8 + 1) as u8;
                option[..8].copy_from_slice(&[REDIRECTED_HEADER, eights, 0, 0, 0, 0, 0, 0]);
            }
            icmp.fill_checksum(ip.pseudo_header(ICMP6, length.into()));
        }

        let mut annotations = Annotations::default();
        annotations.set_dst_ip6(to);
        annotations.set_u8(annotation::FIX_IP_SRC, 1);
        *packet.annotations_mut() = annotations;
        packet.set_packet_type(PacketType::Host);
        packet.set_timestamp(now);
        packet.clear_header(Header::Mac);
        packet.set_ip_header(0, 40);
        Verdict::Pass
    }
}

impl Element for ICMP6Error {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.turn(packet, now));
    }

    fn model(&self) -> Model {
        const TO: Reg = Reg(0);
        const DESTINATION: Reg = Reg(1);
        const TARGET: Reg = Reg(2);
        const SECOND: Reg = Reg(3);
        let drop_when = |cond: Cond, reason| Op::when(cond, vec![Op::Drop(reason)]);
        let errors = IntervalSet::from_intervals(vec![
            (0, 127),
            (message::REDIRECT.into(), message::REDIRECT.into()),
        ]);
        let about_error = meta::AVAIL_TRANSPORT.eq(0u8).or(icmp::TYPE.is_in(errors));
        let mut block: Block = vec![
            drop_when(ip6_header::is_missing(), NO_HEADER),
            drop_when(ip6::NEXT.eq(ICMP6).and(about_error), ABOUT_ERROR),
        ];
        if !self.is_about_groups_too() {
            let (all, many) = (PacketType::Broadcast as u128, PacketType::Multicast as u128);
            block.extend([
                drop_when(ip6::DST.is_in(ip6_header::groups()), ABOUT_GROUP),
                drop_when(meta::TYPE.is_in(IntervalSet::range(all, many)), ABOUT_LINK_BROADCAST),
            ]);
        }
        let bad = ip6_header::groups().union(&IntervalSet::range(0, 1));
        let second = match self.message_type {
            message::PACKET_TOO_BIG => self.mtu.into(),
            message::PARAMETER_PROBLEM => anno::ICMP_PARAMETER_PROBLEM.get(),
            _ => 0u8.into(),
        };
        let headers = self.headers();
        block.extend([
            drop_when(ip6::SRC.is_in(bad), BAD_SOURCE),
            Op::Let(TO, ip6::SRC.get()),
            Op::Let(DESTINATION, ip6::DST.get()),
            Op::Let(TARGET, anno::DST_IP6.get()),
            Op::Let(SECOND, second),
            Op::pull(Expr::Position(Header::Network)),
            Op::Truncate((MOST - headers).into()),
        ]);
        if self.is_redirect() {
            block.push(Op::Truncate(meta::LEN.get() - meta::LEN.get() % 8u8));
        }
        block.extend([
            Op::pull(-(headers as i32)),
            Op::Fresh,
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 40u8.into()),
            Field::bytes(NETWORK, 0, 4).set(0x6000_0000u32),
            ip6::PLEN.set(meta::LEN.get() - 40u8),
            ip6::NEXT.set(ICMP6),
            ip6::HLIM.set(255u8),
            ip6::SRC.set(self.source.to_bits()),
            ip6::DST.set(TO),
            icmp::TYPE.set(self.message_type),
            icmp::CODE.set(self.code),
            icmp::CHECKSUM.set(0u8),
            icmp::REST.set(SECOND),
        ]);
        if self.is_redirect() {
            let eights = (meta::LEN.get() - 80u8) / 8u8;
            block.extend([
                Field::bytes(TRANSPORT, 8, 16).set(TARGET),
                Field::bytes(TRANSPORT, 24, 16).set(DESTINATION),
                Field::bytes(TRANSPORT, 40, 1).set(REDIRECTED_HEADER),
                Field::bytes(TRANSPORT, 41, 1).set(eights),
                Field::bytes(TRANSPORT, 42, 6).set(0u8),
            ]);
        }
        let sum = ip6_header::icmp_sum(NETWORK, 0, &meta::AVAIL_TRANSPORT.get());
        block.extend([
            icmp::CHECKSUM.set(sum ^ 0xffffu16),
            anno::DST_IP6.set(TO),
            anno::FIX_IP_SRC.set(1u8),
            meta::TIMESTAMP.set(Expr::Now),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }
}
