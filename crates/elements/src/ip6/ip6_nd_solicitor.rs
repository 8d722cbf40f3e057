//! IP6NDSolicitor.

use std::cell::RefCell;
use std::net::Ipv6Addr;
use std::rc::Rc;

use ir::field::{anno, eth, ip6, meta};
use ir::model::Block;
use ir::{Base, Cond, Expr, Field, Model, Op, Reason};
use net::wire::icmpv6::{self, message, option};
use net::wire::{EtherAddr, Ethernet, Icmpv6, Ipv6, ether, ether_type, ipv6};
use net::{Batch, Packet};

use crate::argument::{EtherAddress, Ip6, Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::ethernet::ether_encap;
use crate::ethernet::neighbours::{Answer, KEYWORDS, Neighbours, Unsolicited};
use crate::ethernet::resolver::{Hop, Link, NO_NEXT_HOP, Resolver, Wanted};
use crate::flow_access::FlowAccess;
use crate::ip::ip_header;
use crate::ip6::ip6_header::{self, ICMP6};
use crate::listing::Slice;

element! {
    /// IP6NDSolicitor(IP, ETH [, KEYWORDS]) -- puts Ethernet headers in front of IPv6 packets
    ///
    /// Input 0 takes IPv6 packets whose IPv6 destination address annotation is the next hop. They
    /// leave output 0 with an Ethernet header from ETH to the next hop's Ethernet address. While
    /// that is not known, they wait, and a neighbour solicitation (RFC 4861) leaves the last
    /// output. Packets to groups go to the group's Ethernet address (RFC 2464). Packets without
    /// next hop are dropped.
    ///
    /// Input 1 takes neighbour advertisements in Ethernet frames, which let packets go that wait
    /// for them. Advertisements that were not asked for are dropped. Known addresses are asked for
    /// again from time to time, by multicast.
    ///
    /// = KEYWORDS
    ///
    /// CAPACITY, ENTRY_CAPACITY, INCOMPLETE_CAPACITY, ENTRY_PACKET_CAPACITY: as of ARPTable.
    /// CAPACITY_SLIM_FACTOR, QUERY_RATE, UNSOLICITED_RATE: the same.
    /// TIMEOUT (time, default 2 min): how long an address is believed; 0 for ever.
    /// POLL_TIMEOUT (time, default 1 min): when known addresses are asked for again; 0 for never.
    /// UNSOLICITED (never, new or always, default never): which advertisements are believed that
    /// were not asked for: none, those to IP whose address is not in the table, or all.
    ///
    /// = HANDLERS
    ///
    /// table, count, length, drops (read), insert, delete, clear (write): as of ARPTable.
    /// stats (read): packets dropped and solicitations sent, in words.
    ///
    /// = SEE ALSO
    ///
    /// IP6NDAdvertiser, ARPQuerier
    IP6NDSolicitor {
        category: Ip6, ports: "1-2/1-2", processing: "h/h",
        samples: [
            ("2001:db8::1, 02:00:00:00:00:11", 2, 2),
            ("2001:db8::1, 02:00:00:00:00:11, TIMEOUT 1, POLL_TIMEOUT 100ms, CAPACITY 4", 2, 1),
            ("2001:db8::1, 02:00:00:00:00:11, UNSOLICITED new, QUERY_RATE 2, INCOMPLETE_CAPACITY 2", 2, 2)
        ]
    }
}

/// See [`IP6NDSolicitor::CLASS`].
pub(crate) struct IP6NDSolicitor {
    address: Ipv6Addr,
    ether: EtherAddr,
    unsolicited: Unsolicited,
    poll_timeout: u64,
    /// Shared with the programs that look addresses up in it.
    neighbours: Rc<RefCell<Neighbours>>,
    outputs: usize,
    queries: u64,
}

/// Not a valid ICMPv6 neighbour advertisement.
const NOT_AN_ADVERTISEMENT: Reason = Reason("not-a-neighbour-advertisement");

/// Bytes of a frame with a solicitation or advertisement and its option.
pub(crate) const FRAME: usize = ICMP + BARE + 8;
/// Where the ICMP message starts in a frame.
pub(crate) const ICMP: usize = ether::HEADER_LEN + ipv6::HEADER_LEN;
/// Length of a message without option.
pub(crate) const BARE: usize = icmpv6::NEIGHBOR_LEN;

impl IP6NDSolicitor {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let all = [&["IP", "ETH", "POLL_TIMEOUT", "UNSOLICITED"][..], &KEYWORDS].concat();
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&all);
        let neighbours = Neighbours::configure(&mut arguments, 120);
        let poll_timeout = arguments.keyword("POLL_TIMEOUT").unwrap_or(Nanoseconds(60_000_000_000));
        let unsolicited = arguments.keyword("UNSOLICITED").unwrap_or(Unsolicited::Never);
        let address: Ip6 = arguments.required("IP");
        let ether: EtherAddress = arguments.required("ETH");
        arguments.finish()?;
        Ok(Self {
            address: address.0,
            ether,
            unsolicited,
            poll_timeout: poll_timeout.0,
            neighbours: Rc::new(RefCell::new(neighbours)),
            outputs,
            queries: 0,
        })
    }
}

impl Resolver for IP6NDSolicitor {
    const ETHER_TYPE: u16 = ether_type::IPV6;

    #[inline]
    fn link(&self) -> Link<'_> {
        let Self { neighbours, ether, poll_timeout, outputs, .. } = self;
        Link { neighbours, ether: *ether, poll_timeout: *poll_timeout, outputs: *outputs }
    }

    #[inline]
    fn next_hop(packet: &Packet) -> u128 {
        packet.annotations().dst_ip6().to_bits()
    }

    #[inline]
    fn unlisted(&self, to: u128) -> Hop {
        match to {
            0 => Hop::Unfit(NO_NEXT_HOP),
            to if to >> 120 == 0xff => Hop::Known(group(to)),
            _ => Hop::Unknown,
        }
    }

    fn query(&mut self, wanted: &Wanted, _: Option<EtherAddr>, cx: &mut Context<'_>) -> Packet {
        self.queries += 1;
        // The group of nodes whose addresses end alike (RFC 4291, 2.7.1).
        let to = (0xff02_u128 << 112) | 0x1_ff00_0000 | wanted.address & 0xff_ffff;
        let mut query = cx.core.pool.alloc(FRAME);
        write(
            query.data_mut(),
            (self.ether, self.address),
            (group(to), to.into()),
            &Message {
                message_type: message::NEIGHBOR_SOLICIT,
                flags: 0,
                target: wanted.address.into(),
                option: option::SOURCE_LINK_LAYER,
            },
        );
        ether_encap::mark(&mut query);
        query
    }

    fn answer(&self, frame: &[u8]) -> Result<Answer, Reason> {
        let (address, ether, to) = advertisement(frame).ok_or(NOT_AN_ADVERTISEMENT)?;
        let is_host = address != 0 && address >> 120 != 0xff && address != self.address.to_bits();
        let unsolicited = match self.unsolicited {
            Unsolicited::New if to != self.address.to_bits() => Unsolicited::Never,
            unsolicited if is_host => unsolicited,
            _ => Unsolicited::Never,
        };
        Ok(Answer { address, ether, unsolicited })
    }
}

/// The Ethernet address of a group (RFC 2464, 7).
fn group(address: u128) -> EtherAddr {
    let [a, b, c, d] = (address as u32).to_be_bytes();
    EtherAddr([0x33, 0x33, a, b, c, d])
}

/// A neighbour solicitation or advertisement, with an option about its sender's Ethernet address.
pub(crate) struct Message {
    pub message_type: u8,
    pub flags: u32,
    pub target: Ipv6Addr,
    pub option: u8,
}

/// Writes a frame with a message from a station to another one.
pub(crate) fn write(
    frame: &mut [u8],
    (from_ether, from): (EtherAddr, Ipv6Addr),
    (to_ether, to): (EtherAddr, Ipv6Addr),
    message: &Message,
) {
    let Some((header, packet)) = frame.split_first_chunk_mut() else { return };
    *header = ether_encap::header(to_ether, from_ether, ether_type::IPV6);
    let Some(mut ip) = Ipv6::new(packet) else { return };
    ip.set_first_word(0, 0);
    ip.set_payload_len((FRAME - ICMP) as u16);
    ip.set_next_header(ICMP6);
    ip.set_hop_limit(255);
    ip.set_src(from);
    ip.set_dst(to);
    let pseudo = ip.pseudo_header(ICMP6, (FRAME - ICMP) as u32);
    let Some(mut icmp) = Icmpv6::new(ip.payload_mut()) else { return };
    icmp.set_message_type(message.message_type);
    icmp.set_code(0);
    icmp.set_rest(message.flags);
    icmp.set_neighbor_target(message.target);
    icmp.set_link_layer_addr(message.option, from_ether);
    icmp.fill_checksum(pseudo);
}

/// A neighbour solicitation or advertisement that was received, and the IP packet that it is in.
pub(crate) struct Received<'a> {
    pub ip: Ipv6<&'a [u8]>,
    pub icmp: Icmpv6<&'a [u8]>,
}

/// The message of a frame, if it is a valid one of this type (RFC 4861, 7.1) with at least so many
/// bytes.
pub(crate) fn neighbour_message(
    frame: &[u8],
    message_type: u8,
    least: usize,
) -> Option<Received<'_>> {
    let ip = Ipv6::new(frame.get(ether::HEADER_LEN..)?)?;
    let icmp = frame.get(ICMP..ICMP + ip.payload_len()).filter(|icmp| icmp.len() >= least)?;
    let icmp = Icmpv6::new(icmp)?;
    let fits = Ethernet::new(frame)?.ether_type() == ether_type::IPV6
        && (ip.next_header(), ip.hop_limit()) == (ICMP6, 255)
        && (icmp.message_type(), icmp.code()) == (message_type, 0)
        && icmp.checksum_ok(ip.pseudo_header(ICMP6, ip.payload_len() as u32));
    fits.then_some(Received { ip, icmp })
}

/// The same as a condition.
pub(crate) fn is_neighbour_message(message_type: u8, least: usize) -> Cond {
    let field = |field| ip_header::unmarked(field, 14);
    let byte = |at: usize| Field::bytes(Base::Data, at as u16, 1);
    let length = field(ip6::PLEN).get();
    meta::LEN
        .ge(ICMP)
        .and(eth::TYPE.eq(ether_type::IPV6))
        .and(length.clone().ge(least))
        .and((length.clone() + ICMP).le(meta::LEN))
        .and(field(ip6::NEXT).eq(ICMP6))
        .and(field(ip6::HLIM).eq(255u8))
        .and(byte(ICMP).eq(message_type))
        .and(byte(ICMP + 1).eq(0u8))
        .and(ip6_header::icmp_sum(Base::Data, 14, &length).eq(0xffffu16))
}

/// What a frame says if it is an advertisement with an Ethernet address: whose it is, which, and
/// whom it was sent to.
fn advertisement(frame: &[u8]) -> Option<(u128, EtherAddr, u128)> {
    let Received { ip, icmp } = neighbour_message(frame, message::NEIGHBOR_ADVERT, BARE + 8)?;
    let option = icmp.neighbor_options().next()?.ok()?;
    let ether = EtherAddr(*option.data.first_chunk()?);
    let is_ether = option.kind == option::TARGET_LINK_LAYER && option.data.len() == 6;
    let address = icmp.neighbor_target()?.to_bits();
    (is_ether && !ether.is_multicast()).then_some((address, ether, ip.dst().to_bits()))
}

impl Element for IP6NDSolicitor {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.resolve(port, batch, cx);
    }

    fn model(&self) -> Model {
        let to = || anno::DST_IP6.get();
        let unlisted = |send: &dyn Fn(Expr) -> Block| {
            let group = (to() & 0xffff_ffffu32) | 0x3333_0000_0000u64;
            vec![
                Op::when(to().is_in(ip6_header::groups()), send(group)),
                Op::when(to().eq(0u8), vec![Op::Drop(NO_NEXT_HOP)]),
            ]
        };
        let at = |offset: usize, length| Field::bytes(Base::Data, (ICMP + offset) as u16, length);
        let kind = u16::from(option::TARGET_LINK_LAYER) << 8 | 1;
        let is_advertisement = is_neighbour_message(message::NEIGHBOR_ADVERT, BARE + 8)
            .and(at(BARE, 2).eq(kind))
            .and(Field::bits(Base::Data, ((ICMP + BARE + 2) * 8 + 7) as u16, 1).eq(0u8));
        let others = vec![Op::when(is_advertisement.not(), vec![Op::Drop(NOT_AN_ADVERTISEMENT)])];
        self.model_resolve(None, anno::DST_IP6, unlisted, others)
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.neighbours.borrow_mut().export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.neighbours.borrow_mut().import(name, from);
    }

    fn held(&self) -> usize {
        self.neighbours.borrow().held()
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.neighbours) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::read("stats"),
                Handler::count("count"),
                Handler::count("length"),
                Handler::count("drops"),
                Handler::write("insert"),
                Handler::write("delete"),
                Handler::write("clear"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        if handler == "stats" {
            let drops = cx.tally.total();
            return Ok(format!("{drops} packets killed\n{} solicitations sent\n", self.queries));
        }
        Ok(self.neighbours.borrow().read(handler, cx.now, ip6_address))
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        self.neighbours.borrow().list(handler, from, cx.now, ip6_address)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        let parse = |text: &str| Ok(parse_value::<Ip6>(text)?.0.to_bits());
        self.neighbours.borrow_mut().write(handler, value, cx, parse)
    }
}

/// How the table's handlers write an address.
fn ip6_address(address: u128) -> String {
    Ipv6Addr::from_bits(address).to_string()
}
