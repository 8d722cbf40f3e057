//! What translation of IP packets to the other version of IP has in common in both directions (RFC 7915).

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::rc::Rc;

use click::config::Argument;
use ir::model::{Block, Reg, StateRef};
use ir::{Expr, Model, Op, Reason};
use net::checksum::{Sum, udp_field};
use net::wire::ip_protocol::{ICMP, TCP, UDP};
use net::wire::{Ipv4, Ipv6, ipv4, ipv6};
use net::{Header, Packet};

use crate::configure::Arguments;
use crate::element::HandlerContext;
use crate::element_state::ElementState;
use crate::ip::{ip_header, ip_options};
use crate::ip6::embedding::{Embedding, NOT_EMBEDDED, NOT_GLOBAL, NOT_HOST};
use crate::ip6::host_table::{BAD_SOURCE, FULL, HostTable, NETWORK_LIMIT, NO_HOST, Sender, state};
use crate::ip6::icmp_translation::NO_MESSAGE;
use crate::ip6::ip6_header::{self, ICMP6};

/// The version is another.
pub(crate) const VERSION: Reason = Reason("bad-ip-version");
/// The packet ends before its headers say.
pub(crate) const LENGTH: Reason = Reason("bad-ip-length");
/// A source route, or a routing header, that is not used up (RFC 7915, 4.1 and 5.1).
pub(crate) const ROUTE: Reason = Reason("source-route");
/// A fragment header before another extension header (RFC 7915, 5.1.1).
pub(crate) const BEHIND_FRAGMENT: Reason = Reason("extension-in-fragment");
/// Fragments of ICMP messages, whose checksum cannot be known (RFC 7915, 1.2).
pub(crate) const ICMP_FRAGMENT: Reason = Reason("icmp-fragment");
/// UDP without a checksum where IPv6 demands one (RFC 7915, 4.5).
pub(crate) const NO_CHECKSUM: Reason = Reason("no-udp-checksum");
/// A protocol of the other version only, or of one link.
pub(crate) const PROTOCOL: Reason = Reason("not-translatable");
/// An ICMP error about an ICMP error, or that quotes no packet.
pub(crate) const QUOTE: Reason = Reason("bad-icmp-quote");
/// The source is the address of an IPv4 host: whoever sends so would be answered in a circle (RFC 6146, 3.5).
pub(crate) const LOOP: Reason = Reason("translated-source");
/// The translated packet would be longer than IP allows.
pub(crate) const TOO_LONG: Reason = Reason("too-long");

/// Where a packet is cut from a longer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// In units of eight bytes.
    pub offset: u16,
    pub more: bool,
    pub id: u32,
}

/// A packet's headers up to its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Bytes of all headers that translation replaces.
    pub length: usize,
    /// Bytes of the payload, as the header says.
    pub payload: usize,
    /// The payload's protocol, ICMP with the number of its version.
    pub protocol: u8,
    pub fragment: Option<Fragment>,
    /// Type of service or traffic class.
    pub class: u8,
    /// Time-to-live or hop limit.
    pub hops: u8,
}

impl Headers {
    /// Whether the payload begins with the header of its protocol.
    pub(crate) fn is_first(&self) -> bool {
        self.fragment.is_none_or(|f| f.offset == 0)
    }

    /// Whether the payload is a part of a message only.
    pub(crate) fn is_part(&self) -> bool {
        self.fragment.is_some_and(|f| f.offset != 0 || f.more)
    }
}

/// The headers of an IPv6 packet. The reason [`ROUTE`] comes with the place of what is wrong.
pub(crate) fn headers6(bytes: &[u8]) -> Result<Headers, (Reason, usize)> {
    let ip = Ipv6::new(bytes).ok_or((LENGTH, 0))?;
    if ip.version() != 6 {
        return Err((VERSION, 0));
    }
    let (mut at, mut next, mut fragment) = (ipv6::HEADER_LEN, ip.next_header(), None);
    loop {
        let header = || bytes.get(at..).and_then(|b| b.first_chunk::<8>()).ok_or((LENGTH, 0));
        match next {
            HOP_BY_HOP | ROUTING | OPTIONS => {
                let &[following, eights, _, left, ..] = header()?;
                if next == ROUTING && left != 0 {
                    return Err((ROUTE, at + 3));
                }
                (next, at) = (following, at + 8 * (usize::from(eights) + 1));
            }
            FRAGMENT => {
                let &[following, _, high, low, a, b, c, d] = header()?;
                let word = u16::from_be_bytes([high, low]);
                let id = u32::from_be_bytes([a, b, c, d]);
                fragment = Some(Fragment { offset: word >> 3, more: word & 1 != 0, id });
                (next, at) = (following, at + 8);
                if EXTENSIONS.contains(&next) {
                    return Err((BEHIND_FRAGMENT, 0));
                }
                break;
            }
            _ => break,
        }
    }
    let payload = (ipv6::HEADER_LEN + ip.payload_len()).checked_sub(at).ok_or((LENGTH, 0))?;
    if next == ICMP {
        return Err((PROTOCOL, 0));
    }
    let (class, hops) = (ip.traffic_class(), ip.hop_limit());
    Ok(Headers { length: at, payload, protocol: next, fragment, class, hops })
}

/// The headers of an IPv4 packet.
pub(crate) fn headers4(bytes: &[u8]) -> Result<Headers, Reason> {
    let ip = Ipv4::new(bytes).ok_or(LENGTH)?;
    if ip.version() != 4 {
        return Err(VERSION);
    }
    let length = ip.header_len();
    let payload = usize::from(ip.total_len()).checked_sub(length).ok_or(LENGTH)?;
    if length < ipv4::HEADER_LEN || bytes.len() < length {
        return Err(LENGTH);
    }
    for option in ip_options::of(ip).map_while(Result::ok) {
        let pointer = option.data.first().copied().unwrap_or(0);
        let is_left = usize::from(pointer) <= option.data.len() + 2;
        if ip_options::is_source_route(option.kind) && is_left {
            return Err(ROUTE);
        }
    }
    if matches!(ip.protocol(), ICMP6 | IGMP) {
        return Err(PROTOCOL);
    }
    let fragment = ip.is_fragment().then(|| Fragment {
        offset: ip.fragment_word() & 0x1fff,
        more: ip.more_fragments(),
        id: ip.id().into(),
    });
    let (protocol, class, hops) = (ip.protocol(), ip.tos(), ip.ttl());
    Ok(Headers { length, payload, protocol, fragment, class, hops })
}

const HOP_BY_HOP: u8 = 0;
/// The Internet Group Management Protocol.
pub(crate) const IGMP: u8 = 2;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const OPTIONS: u8 = 60;
/// What must not follow a fragment header.
const EXTENSIONS: [u8; 8] = [HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, OPTIONS, 135, 139, 140];

/// How the addresses of one side are translated.
#[derive(Clone)]
pub(crate) enum AddressMap {
    /// By a prefix.
    Embedded(Embedding),
    /// By the table of IPv6 hosts that an element of this name has.
    Bound(Rc<str>, Rc<RefCell<HostTable>>),
}

impl AddressMap {
    /// What an argument says: a prefix, or the name of an element with a table.
    pub(crate) fn hosts(
        name: &'static str,
        word: Option<Argument>,
        arguments: &mut Arguments<'_, '_>,
    ) -> Option<Self> {
        let word = word?;
        let cx = arguments.cx();
        if let Some(owner) = cx.resolve(&word.text) {
            if let Some(prefix) = cx.shared::<Embedding>(&owner) {
                return Some(Self::Embedded(*prefix));
            }
            if let Some(table) = cx.shared::<RefCell<HostTable>>(&owner) {
                return Some(Self::Bound(owner.into(), table));
            }
        }
        arguments.parse(name, &word).map(Self::Embedded)
    }

    /// The IPv4 address of an IPv6 address.
    pub(crate) fn extract(&self, address: Ipv6Addr, now: u64) -> Result<Ipv4Addr, Reason> {
        match self {
            Self::Embedded(embedding) => embedding.extract(address),
            Self::Bound(_, table) => {
                table.borrow().find(address, now).map(|(_, stand_in)| stand_in).ok_or(NO_HOST)
            }
        }
    }

    /// The IPv6 address of an IPv4 address.
    pub(crate) fn embed(&self, address: Ipv4Addr, now: u64) -> Result<Ipv6Addr, Reason> {
        match self {
            Self::Embedded(embedding) => Ok(embedding.embed(address)),
            Self::Bound(_, table) => {
                table.borrow().host(address, now).map(|(_, host)| host).ok_or(NO_HOST)
            }
        }
    }

    /// Why an IPv4 address must not be translated.
    pub(crate) fn refusal(&self, address: Ipv4Addr) -> Option<Reason> {
        match self {
            Self::Embedded(embedding) => embedding.refusal(address),
            Self::Bound(..) => None,
        }
    }

    /// Has a binding live on, as a packet of it passes: from the host that has the IPv4 address, or to it.
    pub(crate) fn touch(&self, stand_in: Ipv4Addr, from: Sender, now: u64) {
        if let Self::Bound(_, table) = self {
            let mut table = table.borrow_mut();
            if let Some((number, _)) = table.host(stand_in, now) {
                table.touch(number, from, now);
            }
        }
    }

    /// Writes the table, which moves with the element that has it.
    pub(crate) fn export(&self, to: &mut ElementState) {
        if let Self::Bound(owner, table) = self
            && !to.is_all()
        {
            table.borrow_mut().export(owner, to);
        }
    }

    /// Takes what [`AddressMap::export`] wrote.
    pub(crate) fn import(&self, from: &mut ElementState, now: u64) {
        if let Self::Bound(owner, table) = self {
            table.borrow_mut().import(owner, from, now);
        }
    }

    /// Drops packets with an address that must not be translated.
    pub(crate) fn model_refusal(&self, address: Reg) -> Block {
        match self {
            Self::Embedded(embedding) => embedding.model_refusal(address),
            Self::Bound(..) => Vec::new(),
        }
    }

    /// What refers to the table, if there is one.
    pub(crate) fn declare(&self, model: &mut Model) -> Option<StateRef> {
        let Self::Bound(owner, table) = self else { return None };
        let kind = table.borrow().state_kind();
        Some(model.declare_of(Some(owner.to_string()), HostTable::STATE, kind))
    }

    /// Has a binding live on that was looked up by a key: see [`AddressMap::touch`].
    pub(crate) fn model_touch(
        &self,
        flows: StateRef,
        key: Expr,
        state: Reg,
        from: Sender,
    ) -> Option<Op> {
        let Self::Bound(_, table) = self else { return None };
        let is_answered = || Expr::from(state).ge(state::ANSWERED);
        let after = match from {
            Sender::Host => Expr::choose(is_answered(), state::ESTABLISHED, state::NEW),
            Sender::Server => Expr::choose(is_answered(), state, state::ANSWERED),
        };
        let expiry = |is_established| {
            let (tick, timeout) = table.borrow().lifetime(is_established);
            (Expr::Now | tick) + timeout
        };
        let is_established = match from {
            Sender::Host => is_answered(),
            Sender::Server => Expr::from(state).eq(state::ESTABLISHED),
        };
        Some(Op::FlowUpdate {
            flows,
            key: vec![key],
            common: vec![after],
            expiry: Expr::choose(is_established, expiry(true), expiry(false)),
            guarantee: 0u8.into(),
        })
    }
}

/// How sources and destinations are translated.
#[derive(Clone)]
pub(crate) struct AddressMaps {
    pub source: AddressMap,
    pub destination: AddressMap,
}

impl AddressMaps {
    /// Those of packets in the other direction.
    pub(crate) fn reverse(&self) -> Self {
        Self { source: self.destination.clone(), destination: self.source.clone() }
    }

    /// The IPv4 addresses of a packet's addresses.
    pub(crate) fn extract(&self, ip: Ipv6<&[u8]>, now: u64) -> Result<[Ipv4Addr; 2], Reason> {
        Ok([self.source.extract(ip.src(), now)?, self.destination.extract(ip.dst(), now)?])
    }

    /// The IPv6 addresses of a packet's addresses.
    pub(crate) fn embed(&self, ip: Ipv4<&[u8]>, now: u64) -> Result<[Ipv6Addr; 2], Reason> {
        Ok([self.source.embed(ip.src(), now)?, self.destination.embed(ip.dst(), now)?])
    }

    pub(crate) fn refusal(&self, [source, destination]: [Ipv4Addr; 2]) -> Option<Reason> {
        self.source.refusal(source).or(self.destination.refusal(destination))
    }
}

/// The IPv4 header of a translated packet.
pub(crate) fn header4(
    from: &Headers,
    id: u16,
    [src, dst]: [Ipv4Addr; 2],
) -> [u8; ipv4::HEADER_LEN] {
    let mut header = [0; ipv4::HEADER_LEN];
    let length = ipv4::HEADER_LEN + from.payload;
    let (id, word) = match from.fragment {
        Some(f) => (f.id as u16, f.offset | if f.more { ipv4::MF } else { 0 }),
        None => (id, if length > LARGEST_TO_CUT { ipv4::DF } else { 0 }),
    };
    let mut ip = Ipv4::of(&mut header);
    ip.set_header_len(ipv4::HEADER_LEN);
    ip.set_tos(from.class);
    ip.set_total_len(length as u16);
    ip.set_id(id);
    ip.set_fragment_word(word);
    ip.set_ttl(from.hops);
    ip.set_protocol(if from.protocol == ICMP6 { ICMP } else { from.protocol });
    ip.set_src(src);
    ip.set_dst(dst);
    ip.fill_checksum();
    header
}

/// The longest IPv4 packet that may be cut on its path (RFC 7915, 5.1).
pub(crate) const LARGEST_TO_CUT: usize = 1260;

/// Writes the IPv6 header of a translated packet, and its fragment header if it is a fragment. Returns their length.
pub(crate) fn header6(from: &Headers, [src, dst]: [Ipv6Addr; 2], to: &mut [u8; 48]) -> usize {
    let protocol = if from.protocol == ICMP { ICMP6 } else { from.protocol };
    let (fixed, fragment) = to.split_at_mut(ipv6::HEADER_LEN);
    let length = if from.fragment.is_some() { 8 } else { 0 };
    if let Some(mut ip) = Ipv6::new(fixed) {
        ip.set_first_word(from.class, 0);
        ip.set_payload_len((from.payload + length) as u16);
        ip.set_next_header(if from.fragment.is_some() { FRAGMENT } else { protocol });
        ip.set_hop_limit(from.hops);
        ip.set_src(src);
        ip.set_dst(dst);
    }
    if let Some(f) = from.fragment {
        let [high, low] = (f.offset << 3 | u16::from(f.more)).to_be_bytes();
        let [a, b, c, d] = f.id.to_be_bytes();
        fragment.copy_from_slice(&[protocol, 0, high, low, a, b, c, d]);
    }
    ipv6::HEADER_LEN + length
}

/// A checksum after some bytes that it covers became others (RFC 1624, equation 3).
pub(crate) fn updated(checksum: u16, old: Sum, new: Sum) -> u16 {
    let sum = Sum::of_u16(!checksum).plus(Sum::of_u16(!old.fold())).plus(new);
    sum.checksum()
}

/// Where the checksum of TCP or UDP stands, which covers the addresses.
pub(crate) fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    }
}

/// Two bytes of a packet as a number.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..).and_then(|b| b.first_chunk()).map(|&word| u16::from_be_bytes(word))
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, word: u16) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&word.to_be_bytes());
    }
}

/// Updates a checksum that covers the addresses, if it is there. Returns what it was and what it is.
pub(crate) fn update_transport(
    payload: &mut [u8],
    protocol: u8,
    old: Sum,
    new: Sum,
) -> Option<(u16, u16)> {
    let at = checksum_at(protocol)?;
    let before = word_at(payload, at)?;
    let after = match (protocol, before) {
        (UDP, 0) => 0,
        (UDP, _) => udp_field(updated(before, old, new)),
        _ => updated(before, old, new),
    };
    put_word(payload, at, after);
    Some((before, after))
}

/// Replaces what stands from the network header on up to `kept` by other headers, of which the first has `length` bytes
/// and is marked.
pub(crate) fn replace(packet: &mut Packet, kept: Range<usize>, headers: &[u8], length: usize) {
    let start = packet.header_offset(Header::Network).unwrap_or(0) + kept.start as isize;
    if start >= 0 {
        packet.pull(start as usize)
    } else {
        packet.push(start.unsigned_abs())
    }
    packet.truncate(kept.len());
    packet.push(headers.len());
    packet.data_mut()[..headers.len()].copy_from_slice(headers);
    packet.clear_header(Header::Mac);
    packet.set_ip_header(0, length);
}

/// The reasons for which packets are not translated.
const REASONS: &[Reason] = &[
    ip_header::NO_HEADER,
    ip6_header::NO_HEADER,
    VERSION,
    LENGTH,
    ROUTE,
    BEHIND_FRAGMENT,
    ICMP_FRAGMENT,
    NO_CHECKSUM,
    PROTOCOL,
    QUOTE,
    TOO_LONG,
    NOT_EMBEDDED,
    NOT_HOST,
    NOT_GLOBAL,
    NO_MESSAGE,
    LOOP,
    NO_HOST,
    BAD_SOURCE,
    FULL,
    NETWORK_LIMIT,
];

/// How many packets were not translated.
pub(crate) fn drops(cx: &HandlerContext<'_>) -> String {
    REASONS.iter().map(|&reason| cx.tally.count(reason)).sum::<u64>().to_string()
}

/// Updates what stands behind a quoted packet's headers: a checksum that covers its addresses, or an echo message.
pub(crate) fn update_quoted(
    payload: &mut [u8],
    headers: &Headers,
    [old, new]: [Sum; 2],
    echo: Option<(u8, [Sum; 2])>,
) -> [Sum; 2] {
    if !headers.is_first() {
        return [Sum::ZERO; 2];
    }
    if let Some((kind, [old, new])) = echo {
        let Some(first) = word_at(payload, 0) else { return [Sum::ZERO; 2] };
        let word = u16::from(kind) << 8 | first & 0xff;
        let mut changed = [Sum::of_u16(first), Sum::of_u16(word)];
        put_word(payload, 0, word);
        if let Some(before) = word_at(payload, 2) {
            let after = updated(before, old.plus(changed[0]), new.plus(changed[1]));
            put_word(payload, 2, after);
            changed = [changed[0].plus(Sum::of_u16(before)), changed[1].plus(Sum::of_u16(after))];
        }
        return changed;
    }
    match update_transport(payload, headers.protocol, old, new) {
        Some((before, after)) => [Sum::of_u16(before), Sum::of_u16(after)],
        None => [Sum::ZERO; 2],
    }
}
