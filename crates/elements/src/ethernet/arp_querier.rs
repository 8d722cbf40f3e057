//! ARPQuerier.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use ir::field::{anno, arp};
use ir::model::Block;
use ir::{Diagnostic, Expr, IntervalSet, Model, Op, Reason};
use net::wire::{EtherAddr, arp as wire, ether, ether_type};
use net::{Batch, Packet, annotation};

use crate::argument::{EtherAddress, Ip, IpMask, Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::ethernet::arp_responder::{self, FRAME};
use crate::ethernet::arp_table::{ip_address, parse_ip};
use crate::ethernet::ether_encap;
use crate::ethernet::neighbours::{Answer, KEYWORDS, Neighbours, Unsolicited};
use crate::ethernet::resolver::{Hop, Link, NO_NEXT_HOP, Resolver, Wanted};
use crate::flow_access::FlowAccess;
use crate::ip::ip_header;
use crate::listing::Slice;

element! {
    /// ARPQuerier(IP, ETH [, KEYWORDS]) -- puts Ethernet headers in front of IP packets
    ///
    /// Input 0 takes IP packets whose destination address annotation is the next hop. They leave
    /// output 0 with an Ethernet header from ETH to the next hop's Ethernet address. While that
    /// is not known, they wait, and an ARP request (RFC 826) leaves the last output. IP may have
    /// a network's length. Packets to 255.255.255.255 and the network's broadcast address
    /// go to the Ethernet broadcast address, multicast packets to their group's (RFC 1112).
    /// Packets without next hop are dropped.
    ///
    /// Input 1 takes ARP replies in Ethernet frames, which let packets go that wait for them.
    /// Replies that were not asked for are believed if they are addressed to IP, belong to its
    /// network, if its length is known, and if their address is not in the table. One that
    /// contradicts the table has the address be asked for again, by broadcast.
    ///
    /// Known addresses are asked for again from time to time, of the neighbour alone, and if it
    /// does not answer three times, by broadcast.
    ///
    /// If there is one argument, it is a name that stands for both addresses.
    ///
    /// = KEYWORDS
    ///
    /// TABLE (element): an ARPTable to share with others.
    /// CAPACITY, ENTRY_CAPACITY, INCOMPLETE_CAPACITY, ENTRY_PACKET_CAPACITY: as of ARPTable, if
    /// TABLE is not given.
    /// CAPACITY_SLIM_FACTOR, TIMEOUT, QUERY_RATE, UNSOLICITED_RATE: the same.
    /// BROADCAST (address): the network's broadcast address, if it does not follow from IP.
    /// POLL_TIMEOUT (time, default 1 min): when known addresses are asked for again; 0 for never.
    /// BROADCAST_POLL (bool, default false): whether these requests are broadcast from the first.
    /// UNSOLICITED (never, new or always, default new): which replies are believed that were not
    /// asked for: none, those above, or also gratuitous ones and those that change a known address.
    ///
    /// = HANDLERS
    ///
    /// table, count, length (read), insert, delete, clear (write): as of ARPTable.
    /// queries, responses, drops (read): requests sent, replies taken, packets without next hop.
    /// stats (read): drops and queries in words.
    /// ipaddr, broadcast (read, write): the addresses.
    ///
    /// = SEE ALSO
    ///
    /// ARPTable, ARPResponder, EtherEncap
    ARPQuerier {
        category: Ethernet, ports: "1-2/1-2", processing: "h/h",
        phase: Late,
        samples: [
            ("10.0.0.1/24, 02:00:00:00:00:11", 2, 2),
            ("10.0.0.1, 02:00:00:00:00:11, TIMEOUT 1, POLL_TIMEOUT 100ms, CAPACITY 4", 2, 1),
            ("10.0.0.1, 02:00:00:00:00:11, TABLE t, BROADCAST_POLL true, POLL_TIMEOUT 10ms", 2, 2),
            ("10.0.0.1/24, 02:00:00:00:00:11, UNSOLICITED always, QUERY_RATE 3, UNSOLICITED_RATE 2", 2, 2),
            ("10.0.0.1/8, 02:00:00:00:00:11, UNSOLICITED never, INCOMPLETE_CAPACITY 2", 2, 1)
        ],
        prelude: "t :: ARPTable(ENTRY_CAPACITY 2, INCOMPLETE_CAPACITY 3, ENTRY_PACKET_CAPACITY 1);"
    }
}

/// See [`ARPQuerier::CLASS`].
pub(crate) struct ARPQuerier {
    address: u32,
    /// The mask of its network, or that of its address alone.
    mask: u32,
    ether: EtherAddr,
    broadcast: u32,
    unsolicited: Unsolicited,
    poll_timeout: u64,
    broadcast_poll: bool,
    table: Rc<RefCell<Neighbours>>,
    /// Full name of the ARPTable that the table is of, if it is not the element's own.
    owner: Option<String>,
    outputs: usize,
    queries: u64,
    responses: u64,
}

/// The element has no address to send requests from.
const NO_ADDRESS: Reason = Reason("arp-not-configured");
/// Not a valid ARP reply.
const NOT_A_REPLY: Reason = Reason("not-an-arp-reply");

impl ARPQuerier {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let own =
            ["IP", "ETH", "TABLE", "BROADCAST", "POLL_TIMEOUT", "BROADCAST_POLL", "UNSOLICITED"];
        let all = [&own[..], &KEYWORDS].concat();
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&all);
        let table = Neighbours::configure(&mut arguments, 300);
        let broadcast = arguments.keyword::<Ip>("BROADCAST");
        let poll_timeout = arguments.keyword("POLL_TIMEOUT").unwrap_or(Nanoseconds(60_000_000_000));
        let broadcast_poll = arguments.keyword("BROADCAST_POLL").unwrap_or(false);
        let unsolicited = arguments.keyword("UNSOLICITED").unwrap_or(Unsolicited::New);
        let shared = arguments.keyword_argument("TABLE");
        let first = arguments.keyword_argument("IP").or_else(|| arguments.next_raw());
        let second = arguments.keyword_argument("ETH").or_else(|| arguments.next_raw());
        let second = second.or_else(|| first.clone());
        let span = arguments.cx().span();
        let (network, ether) = match (first, second) {
            (Some(first), Some(second)) => (
                arguments.parse::<IpMask>("IP", &first).unwrap_or_default(),
                arguments.parse::<EtherAddress>("ETH", &second).unwrap_or(EtherAddr::ZERO),
            ),
            _ => {
                let error = "ARPQuerier is missing its arguments IP and ETH";
                arguments.report(Diagnostic::error("missing-argument", error).label(span, ""));
                (IpMask::default(), EtherAddr::ZERO)
            }
        };
        let mut owner = None;
        let mut found = None;
        if let Some(word) = shared {
            let cx = arguments.cx();
            owner = cx.resolve(&word.text);
            found = owner.as_deref().and_then(|name| cx.shared::<RefCell<Neighbours>>(name));
            if found.is_none() {
                arguments.error(&word, format!("there is no ARPTable '{}'", word.text));
            }
        }
        arguments.finish()?;
        let own = network.address | !network.mask;
        let own = if own == network.address { u32::MAX } else { own };
        Ok(Self {
            address: network.address,
            mask: network.mask,
            ether,
            broadcast: broadcast.map_or(own, |b| b.0.to_bits()),
            unsolicited,
            poll_timeout: poll_timeout.0,
            broadcast_poll,
            table: found.unwrap_or_else(|| Rc::new(RefCell::new(table))),
            owner,
            outputs,
            queries: 0,
            responses: 0,
        })
    }

    /// Whether a reply that was not asked for may be believed, by what it is about and for.
    fn unsolicited(&self, address: u32, to: u32) -> Unsolicited {
        let is_own = self.mask == u32::MAX || (address ^ self.address) & self.mask == 0;
        let is_host = address != 0 && address >> 28 < 0xe && address != self.broadcast;
        match is_own && is_host && address != self.address {
            true if to == self.address || self.unsolicited == Unsolicited::Always => {
                self.unsolicited
            }
            _ => Unsolicited::Never,
        }
    }
}

impl Resolver for ARPQuerier {
    const ETHER_TYPE: u16 = ether_type::IPV4;

    #[inline]
    fn link(&self) -> Link<'_> {
        let Self { table, ether, poll_timeout, outputs, .. } = self;
        Link { neighbours: table, ether: *ether, poll_timeout: *poll_timeout, outputs: *outputs }
    }

    #[inline]
    fn unfit(&self) -> Option<Reason> {
        (self.address == 0).then_some(NO_ADDRESS)
    }

    #[inline]
    fn next_hop(packet: &Packet) -> u128 {
        packet.annotations().u32(annotation::DST_IP).into()
    }

    #[inline]
    fn unlisted(&self, to: u128) -> Hop {
        let to = to as u32;
        if to == u32::MAX || to == self.broadcast {
            Hop::Known(EtherAddr::BROADCAST)
        } else if to >> 28 == 0xe {
            let [_, b, c, d] = to.to_be_bytes();
            Hop::Known(EtherAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
        } else if to == 0 {
            Hop::Unfit(NO_NEXT_HOP)
        } else {
            Hop::Unknown
        }
    }

    fn query(
        &mut self,
        wanted: &Wanted,
        neighbour: Option<EtherAddr>,
        cx: &mut Context<'_>,
    ) -> Packet {
        self.queries += 1;
        let to = neighbour.filter(|_| !self.broadcast_poll).unwrap_or(EtherAddr::BROADCAST);
        let mut query = cx.core.pool.alloc(FRAME);
        let own = (self.ether, Ipv4Addr::from_bits(self.address));
        let asked = (EtherAddr::ZERO, Ipv4Addr::from_bits(wanted.address as u32));
        arp_responder::write(query.data_mut(), wire::REQUEST, own, asked, to);
        ether_encap::mark(&mut query);
        query.set_timestamp(wanted.timestamp);
        query.annotations_mut().set_u16(annotation::VLAN_TCI, wanted.vlan_tci);
        query
    }

    fn answer(&self, frame: &[u8]) -> Result<Answer, Reason> {
        let reply = arp_responder::message(frame, wire::REPLY);
        let reply =
            reply.filter(|reply| !reply.sender_ether().is_multicast()).ok_or(NOT_A_REPLY)?;
        let (ether, to) = (reply.sender_ether(), reply.target_ip().to_bits());
        let address = reply.sender_ip().to_bits();
        let unsolicited = self.unsolicited(address, to);
        Ok(Answer { address: address.into(), ether, unsolicited })
    }

    fn answered(&mut self) {
        self.responses += 1;
    }
}

impl Element for ARPQuerier {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.resolve(port, batch, cx);
    }

    fn model(&self) -> Model {
        let to = || anno::DST_IP.get();
        let all = [u32::MAX, self.broadcast].map(|a| (a.into(), a.into()));
        let all = IntervalSet::from_intervals(all.to_vec());
        let groups = IntervalSet::prefix(32, 0xe000_0000, 4);
        let unlisted = |send: &dyn Fn(Expr) -> Block| {
            let group = (to() & 0x7f_ffffu32) | 0x0100_5e00_0000u64;
            vec![
                Op::when(to().is_in(all), send(EtherAddr::BROADCAST.to_bits().into())),
                Op::when(to().is_in(groups), send(group)),
                Op::when(to().eq(0u8), vec![Op::Drop(NO_NEXT_HOP)]),
            ]
        };
        let sender = ip_header::unmarked(arp::SHA, ether::HEADER_LEN as u16).get();
        let is_reply = arp_responder::is_message(wire::REPLY).and(((sender >> 40u8) & 1u8).eq(0u8));
        let others = vec![Op::when(is_reply.not(), vec![Op::Drop(NOT_A_REPLY)])];
        self.model_resolve(self.owner.clone(), anno::DST_IP, unlisted, others)
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        if self.owner.is_none() || !to.is_all() {
            self.table.borrow_mut().export(self.owner.as_deref().unwrap_or(name), to);
        }
        if to.is_all() {
            to.numbers = vec![self.queries, self.responses];
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.table.borrow_mut().import(self.owner.as_deref().unwrap_or(name), from);
        [self.queries, self.responses] = from.counts().unwrap_or([self.queries, self.responses]);
    }

    fn held(&self) -> usize {
        if self.owner.is_none() { self.table.borrow().held() } else { 0 }
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.table) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::read("stats"),
                Handler::count("count"),
                Handler::count("length"),
                Handler::count("queries"),
                Handler::count("responses"),
                Handler::count("drops"),
                Handler::both("broadcast"),
                Handler::both("ipaddr"),
                Handler::write("insert"),
                Handler::write("delete"),
                Handler::write("clear"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        let drops = cx.tally.count(NO_NEXT_HOP) + cx.tally.count(NO_ADDRESS);
        Ok(match handler {
            "stats" => {
                let all = cx.tally.total();
                format!("{all} packets killed\n{} ARP queries sent\n", self.queries)
            }
            "queries" => self.queries.to_string(),
            "responses" => self.responses.to_string(),
            "drops" => drops.to_string(),
            "broadcast" => Ipv4Addr::from_bits(self.broadcast).to_string(),
            "ipaddr" => Ipv4Addr::from_bits(self.address).to_string(),
            _ => self.table.borrow().read(handler, cx.now, ip_address),
        })
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        self.table.borrow().list(handler, from, cx.now, ip_address)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "broadcast" => self.broadcast = parse_value::<Ip>(value)?.0.to_bits(),
            "ipaddr" => self.address = parse_value::<Ip>(value)?.0.to_bits(),
            _ => {
                if handler == "clear" {
                    (self.queries, self.responses) = (0, 0);
                }
                self.table.borrow_mut().write(handler, value, cx, parse_ip)?;
            }
        }
        Ok(())
    }
}
