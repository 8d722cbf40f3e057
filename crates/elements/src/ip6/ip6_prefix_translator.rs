//! IP6PrefixTranslator.

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;
use ir::field::{anno, ip6, meta};
use ir::model::{Block, Reg, reject};
use ir::{Cond, Expr, Field, IntervalSet, Model, Op, Reason};
use net::checksum::Sum;
use net::wire::Ipv6;
use net::{Batch, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_header::NETWORK;
use crate::ip6::ip6_header::{self, ICMP6, NO_HEADER};

element! {
    /// IP6PrefixTranslator(INSIDE, OUTSIDE) -- translates the prefix of IPv6 addresses (NPTv6)
    ///
    /// IPv6-to-IPv6 network prefix translation (RFC 6296), without state. Expects IPv6 packets
    /// with their header marked. Packets from inside come in on input 0 and leave on output 0: a
    /// source with the prefix INSIDE gets the prefix OUTSIDE. Packets from outside come in on
    /// input 1 and leave on output 1: a destination with the prefix OUTSIDE gets the prefix
    /// INSIDE, and the destination annotation becomes that address. Packets with other addresses
    /// pass unchanged.
    ///
    /// Prefixes have at most 64 bits. If one is shorter, it is extended with zeros. Translation is
    /// neutral to checksums: where the prefix has at most 48 bits, the subnet in bits 48 to 63
    /// makes up for the change; otherwise the first 16-bit word of the interface identifier that
    /// is not 0xffff. An address has no translation if its subnet, or its whole interface
    /// identifier, is all ones. Its packets leave unchanged on output 2, or are dropped if that is
    /// not connected.
    ///
    /// A packet from inside to an address with the prefix OUTSIDE is translated in both
    /// directions and leaves on output 1 (hairpinning). In an ICMPv6 error that follows the IPv6
    /// header, the quoted packet's address is translated, too, where that is possible: its
    /// destination on input 0, its source on input 1. Addresses in extension headers stay.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets whose address has no translation.
    ///
    /// = EXAMPLE
    ///
    /// npt :: IP6PrefixTranslator(fd01:203:405::/48, 2001:db8:1::/48);
    /// npt[2] -> ICMP6Error(2001:db8:1::1, 4, 0) -> ...
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, ICMP6Error, CheckIP6Header
    IP6PrefixTranslator {
        category: Ip6, ports: "2/2-3", processing: "h/h",
        samples: [
            ("fd01:203:405::/48, 2001:db8:1::/48", 2, 2),
            ("a00::/8, 2001:db8::/56", 2, 3),
        ]
    }
}

/// See [`IP6PrefixTranslator::CLASS`].
pub(crate) struct IP6PrefixTranslator {
    outward: Mapping,
    inward: Mapping,
    outputs: usize,
}

/// The subnet or the interface identifier is all ones (RFC 6296, 3.7 and 4.2).
const NO_TRANSLATION: Reason = Reason("no-address-translation");

/// Most bits of a prefix for which the subnet makes up.
const SUBNET: u8 = 48;
/// Bytes of an IPv6 header and an ICMPv6 error's header, which a quoted packet follows.
const QUOTED: u16 = 48;
/// Number of the first ICMPv6 message that is no error.
const NO_ERROR: u8 = 128;

/// What becomes of addresses in one direction.
#[derive(Clone, Copy)]
struct Mapping {
    /// Bits of both prefixes.
    length: u8,
    from: u128,
    to: u128,
    /// Sum of the words of `from` minus that of `to`, in ones' complement, below 0xffff.
    adjustment: u16,
}

/// What a mapping makes of an address.
enum Mapped {
    Other,
    To(Ipv6Addr),
    Nothing,
}

/// The checksum-neutral translation of a word other than 0xffff.
fn adjusted(word: u16, adjustment: u16) -> u16 {
    let sum = Sum::of_u16(word).plus(Sum::of_u16(adjustment)).fold();
    if sum == 0xffff { 0 } else { sum }
}

impl Mapping {
    fn new(from: Ipv6Net, to: Ipv6Net) -> Self {
        let sum = |net: Ipv6Net| Sum::of(&net.network().octets()).fold();
        let difference = Sum::of_u16(sum(from)).plus(Sum::of_u16(!sum(to))).fold();
        Self {
            length: from.prefix_len().max(to.prefix_len()),
            from: from.network().to_bits(),
            to: to.network().to_bits(),
            adjustment: difference % 0xffff,
        }
    }

    fn mask(&self) -> u128 {
        !(u128::MAX >> self.length)
    }

    /// Numbers of the 16-bit words that may make up for the change, in order.
    fn words(&self) -> std::ops::Range<u16> {
        if self.length <= SUBNET { 3..4 } else { 4..8 }
    }

    fn map(&self, address: Ipv6Addr) -> Mapped {
        let bits = address.to_bits();
        if bits & self.mask() != self.from {
            return Mapped::Other;
        }
        let at = |word: u16| 112 - 16 * word;
        let value = |word: u16| (bits >> at(word)) as u16;
        let Some(word) = self.words().find(|&word| value(word) != 0xffff) else {
            return Mapped::Nothing;
        };
        let kept = bits & !self.mask() & !(0xffff << at(word));
        let new = u128::from(adjusted(value(word), self.adjustment)) << at(word);
        Mapped::To((self.to | kept | new).into())
    }
}

impl IP6PrefixTranslator {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["INSIDE", "OUTSIDE"]);
        let mut words = Vec::new();
        let mut prefix = |name: &'static str| -> Ipv6Net {
            let word = arguments.keyword_argument(name).or_else(|| arguments.next_raw());
            let Some(word) = word else { return arguments.required(name) };
            let net: Ipv6Net = arguments.parse(name, &word).unwrap_or_default();
            if net.prefix_len() > 64 {
                let message = format!("{name} has {} bits: at most 64", net.prefix_len());
                arguments.error(&word, message);
            }
            words.push(word);
            net.trunc()
        };
        let (inside, outside) = (prefix("INSIDE"), prefix("OUTSIDE"));
        let outward = Mapping::new(inside, outside);
        if let Some(word) = words.get(1).filter(|_| outward.from == outward.to) {
            arguments.error(word, "INSIDE and OUTSIDE are the same prefix".to_string());
        }
        arguments.finish()?;
        Ok(Self { outward, inward: Mapping::new(outside, inside), outputs })
    }

    fn outward(&self, packet: &mut Packet) -> Verdict {
        let Some(mut ip) = ip6_header::view_mut(packet) else {
            return Verdict::Drop(NO_HEADER);
        };
        let (source, destination) = match self.outward.map(ip.src()) {
            Mapped::Other => return Verdict::To(0),
            Mapped::Nothing => return Verdict::Reject(2, NO_TRANSLATION),
            Mapped::To(source) => (source, self.inward.map(ip.dst())),
        };
        if let Mapped::Nothing = destination {
            return Verdict::Reject(2, NO_TRANSLATION);
        }
        ip.set_src(source);
        if let Some(mut quoted) = quoted(packet)
            && let Mapped::To(address) = self.outward.map(quoted.dst())
        {
            quoted.set_dst(address);
        }
        match destination {
            Mapped::To(destination) => self.arrive(packet, destination),
            _ => Verdict::To(0),
        }
    }

    fn inward(&self, packet: &mut Packet) -> Verdict {
        let Some(ip) = ip6_header::view(packet) else {
            return Verdict::Drop(NO_HEADER);
        };
        match self.inward.map(ip.dst()) {
            Mapped::Other => Verdict::To(1),
            Mapped::Nothing => Verdict::Reject(2, NO_TRANSLATION),
            Mapped::To(destination) => self.arrive(packet, destination),
        }
    }

    /// Sends a packet to an address inside.
    fn arrive(&self, packet: &mut Packet, destination: Ipv6Addr) -> Verdict {
        if let Some(mut ip) = ip6_header::view_mut(packet) {
            ip.set_dst(destination);
        }
        if let Some(mut quoted) = quoted(packet)
            && let Mapped::To(address) = self.inward.map(quoted.src())
        {
            quoted.set_src(address);
        }
        packet.annotations_mut().set_dst_ip6(destination);
        Verdict::To(1)
    }
}

/// The packet that an ICMPv6 error quotes.
fn quoted(packet: &mut Packet) -> Option<Ipv6<&mut [u8]>> {
    let ip = ip6_header::view_mut(packet)?;
    if ip.next_header() != ICMP6 || ip.payload_len() < QUOTED.into() {
        return None;
    }
    let (headers, packet) = ip.into_inner().split_at_mut_checked(QUOTED.into())?;
    let quoted = Ipv6::new(packet)?;
    (headers[40] < NO_ERROR && quoted.version() == 6).then_some(quoted)
}

impl Element for IP6PrefixTranslator {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        match port {
            0 => cx.each(batch, |packet, _| self.outward(packet)),
            _ => cx.each(batch, |packet, _| self.inward(packet)),
        }
    }

    fn model(&self) -> Model {
        let unmappable = || reject(2, self.outputs, NO_TRANSLATION);
        let arrive = || {
            let mut block = self.inward.translate(ip6::DST);
            block.push(Op::when(
                is_quoting().and(self.inward.can(QUOTED_SRC)),
                self.inward.translate(QUOTED_SRC),
            ));
            block.extend([anno::DST_IP6.set(ip6::DST), Op::emit(1u8)]);
            block
        };
        let leave = |then: Block| {
            let mut block = self.outward.translate(ip6::SRC);
            block.push(Op::when(
                is_quoting().and(self.outward.can(QUOTED_DST)),
                self.outward.translate(QUOTED_DST),
            ));
            block.extend(then);
            block
        };
        let none = Op::when(ip6_header::is_missing(), vec![Op::Drop(NO_HEADER)]);
        let out = vec![
            none.clone(),
            Op::when(self.outward.matches(ip6::SRC).not(), vec![Op::emit(0u8)]),
            Op::when(self.outward.cannot(ip6::SRC), unmappable()),
            Op::If(
                self.inward.matches(ip6::DST),
                [vec![Op::when(self.inward.cannot(ip6::DST), unmappable())], leave(arrive())]
                    .concat(),
                leave(vec![Op::emit(0u8)]),
            ),
        ];
        let mut back = vec![
            none,
            Op::when(self.inward.matches(ip6::DST).not(), vec![Op::emit(1u8)]),
            Op::when(self.inward.cannot(ip6::DST), unmappable()),
        ];
        back.extend(arrive());
        Model { state: Vec::new(), inputs: vec![out, back] }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.count(NO_TRANSLATION).to_string())
    }
}

// The model.

const QUOTED_SRC: Field = Field::bytes(NETWORK, QUOTED + 8, 16);
const QUOTED_DST: Field = Field::bytes(NETWORK, QUOTED + 24, 16);

/// The packet is an ICMPv6 error that quotes a whole IPv6 header.
fn is_quoting() -> Cond {
    Cond::All(vec![
        ip6::NEXT.eq(ICMP6),
        ip6::PLEN.ge(QUOTED),
        meta::AVAIL_NET.ge(QUOTED + 40),
        Field::bytes(NETWORK, 40, 1).lt(NO_ERROR),
        Field::bits(NETWORK, QUOTED * 8, 4).eq(6u8),
    ])
}

/// Some bits of an address.
fn part(address: Field, offset: u16, width: u16) -> Field {
    Field::bits(address.base, address.offset + offset, width)
}

impl Mapping {
    fn matches(&self, address: Field) -> Cond {
        address.is_in(IntervalSet::prefix(128, self.from, self.length.into()))
    }

    /// A matching address has no translation.
    fn cannot(&self, address: Field) -> Cond {
        if self.length <= SUBNET {
            part(address, 48, 16).eq(0xffffu16)
        } else {
            part(address, 64, 64).eq(u64::MAX)
        }
    }

    fn can(&self, address: Field) -> Cond {
        self.matches(address).and(self.cannot(address).not())
    }

    /// Translates an address that can be.
    fn translate(&self, address: Field) -> Block {
        const SUM: Reg = Reg(0);
        let length = u16::from(self.length);
        let adjust = |word: u16| -> Block {
            let field = part(address, word * 16, 16);
            let sum = (field.get() + self.adjustment).fold16();
            let normal = Expr::choose(Expr::from(SUM).eq(0xffffu16), 0u8, SUM);
            vec![Op::Let(SUM, sum), field.set(normal)]
        };
        let words = self.words();
        let mut block = adjust(words.end - 1);
        for word in words.rev().skip(1) {
            let ones = part(address, word * 16, 16).eq(0xffffu16);
            block = vec![Op::If(ones, block, adjust(word))];
        }
        if length > 0 {
            block.push(part(address, 0, length).set(self.to >> (128 - length)));
        }
        block
    }
}
