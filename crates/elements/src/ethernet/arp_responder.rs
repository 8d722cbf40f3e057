//! ARPResponder.

use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::sync::Arc;

use click::config::Argument;
use ir::field::{arp, eth, meta};
use ir::model::{Reg, Rule, reject};
use ir::{Cond, IntervalSet, Model, Op, Reason, Span};
use net::wire::{Arp, EtherAddr, Ethernet, arp as wire, ether, ether_type};
use net::{Batch, Packet};

use crate::argument::{Ip, IpMask, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ethernet::ether_encap;
use crate::ethernet::neighbours::{Stations, model_refresh, parse_stations, refresh};
use crate::ip::ip_header;
use crate::names::Names;

element! {
    /// ARPResponder(IP/MASK ... ETH, ...) -- answers ARP requests
    ///
    /// Expects Ethernet frames. Each argument says that ETH is the Ethernet address of some IP
    /// addresses or networks. ARP requests (RFC 826) for one of them are answered on output 0;
    /// where several networks hold an address, the most specific counts, and of equal ones the
    /// last. All other frames go to output 1, or are dropped if that is not connected.
    ///
    /// = HANDLERS
    ///
    /// table (read): the networks and their Ethernet addresses.
    /// lookup ADDR (read): the Ethernet address of an IP address.
    /// add (write): adds an entry `IP/MASK ETH`.
    /// remove (write): removes the entry of a network.
    ///
    /// = EXAMPLE
    ///
    /// ARPResponder(18.26.4.24 18.26.7.0/24 00:00:C0:AE:67:EF)
    ///
    /// = SEE ALSO
    ///
    /// ARPQuerier
    ARPResponder {
        category: Ethernet, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("10.0.0.1 10.1.0.0/16 02:00:00:00:00:11, 10.0.0.0/8 02:00:00:00:00:33", 1, 2),
            ("0.0.0.1/0.0.0.1 02:00:00:00:00:11", 1, 1), ("", 1, 1)
        ]
    }
}

/// See [`ARPResponder::CLASS`].
pub(crate) struct ARPResponder {
    /// The most specific first.
    entries: Vec<Entry>,
    outputs: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    network: IpMask,
    ether: EtherAddr,
    /// Where it was written; `None` of one that a handler added.
    span: Option<Span>,
}

/// Not a valid ARP request for one of the addresses.
const UNANSWERED: Reason = Reason("not-an-arp-request-for-us");
const IP_NETWORK: &str = "an IP network";

impl ARPResponder {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&[]);
        let mut element = Self { entries: Vec::new(), outputs };
        for argument in arguments.rest() {
            let cx = arguments.cx();
            match parse_stations(&argument, IP_NETWORK, cx.names(), cx.name()) {
                Ok(stations) => element.add(stations, Some),
                Err((at, why)) => arguments.error(&at, why),
            }
        }
        arguments.finish()?;
        Ok(element)
    }

    /// Adds entries, each for a network that is written at a place.
    fn add(&mut self, (networks, ether): Stations<IpMask>, place: impl Fn(Span) -> Option<Span>) {
        for (network, span) in networks {
            let network = IpMask { address: network.address & network.mask, ..network };
            self.entries.retain(|known| known.network != network);
            self.entries.push(Entry { network, ether, span: place(span) });
        }
        self.entries.sort_by_key(|entry| Reverse(entry.network.mask.count_ones()));
    }

    #[inline]
    fn lookup(&self, address: u32) -> Option<EtherAddr> {
        self.entries.iter().find(|e| e.network.contains(address)).map(|e| e.ether)
    }

    fn respond(&self, packet: &mut Packet) -> Verdict {
        let request = message(packet.data(), wire::REQUEST);
        let answer = request.and_then(|request| {
            let (wanted, asker) = (request.target_ip(), request.sender_ip());
            Some((wanted, asker, request.sender_ether(), self.lookup(wanted.to_bits())?))
        });
        let Some((wanted, asker, theirs, mine)) = answer else {
            return Verdict::Reject(1, UNANSWERED);
        };
        packet.truncate(FRAME);
        write(packet.data_mut(), wire::REPLY, (mine, wanted), (theirs, asker), theirs);
        refresh(packet);
        Verdict::Pass
    }
}

/// Bytes of a frame with an ARP message.
pub(crate) const FRAME: usize = ether::HEADER_LEN + wire::HEADER_LEN;

/// The ARP message in a frame, if it is one about IPv4 over Ethernet with this operation.
pub(crate) fn message(frame: &[u8], operation: u16) -> Option<Arp<&[u8]>> {
    let message = Arp::new(frame.get(ether::HEADER_LEN..)?)?;
    let is_it = Ethernet::new(frame)?.ether_type() == ether_type::ARP
        && message.hardware_type() == wire::ETHERNET
        && message.protocol_type() == ether_type::IPV4
        && message.operation() == operation;
    is_it.then_some(message)
}

/// The same as a condition.
pub(crate) fn is_message(operation: u16) -> Cond {
    let field = |field| ip_header::unmarked(field, ether::HEADER_LEN as u16);
    meta::LEN
        .ge(FRAME)
        .and(eth::TYPE.eq(ether_type::ARP))
        .and(field(arp::HTYPE).eq(wire::ETHERNET))
        .and(field(arp::PTYPE).eq(ether_type::IPV4))
        .and(field(arp::OP).eq(operation))
}

/// Writes a frame with an ARP message from a station about another one to the address `to`.
pub(crate) fn write(
    frame: &mut [u8],
    operation: u16,
    (sender_ether, sender): (EtherAddr, Ipv4Addr),
    (target_ether, target): (EtherAddr, Ipv4Addr),
    to: EtherAddr,
) {
    let Some((header, message)) = frame.split_first_chunk_mut() else { return };
    *header = ether_encap::header(to, sender_ether, ether_type::ARP);
    let Some(mut message) = Arp::new(message) else { return };
    message.init();
    message.set_operation(operation);
    message.set_sender_ether(sender_ether);
    message.set_sender_ip(sender);
    message.set_target_ether(target_ether);
    message.set_target_ip(target);
}

/// `ADDR`, `ADDR/LENGTH` or `ADDR/MASK`.
fn describe(network: IpMask) -> String {
    let IpMask { address, mask } = network;
    match network.prefix() {
        Some(prefix) => prefix.to_string(),
        None => format!("{}/{}", Ipv4Addr::from_bits(address), Ipv4Addr::from_bits(mask)),
    }
}

impl Element for ARPResponder {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.respond(packet));
    }

    fn model(&self) -> Model {
        const MINE: Reg = Reg(0);
        const THEIRS: Reg = Reg(1);
        const ADDRESS: Reg = Reg(2);
        const TCI: Reg = Reg(3);
        const WANTED: Reg = Reg(4);
        let field = |field| ip_header::unmarked(field, 14);
        let unanswered = || reject(1, self.outputs, UNANSWERED);
        let wanted = field(arp::TPA);
        let rule = |(arm, entry): (usize, &Entry)| Rule {
            when: match IntervalSet::masked(
                32,
                entry.network.address.into(),
                entry.network.mask.into(),
            ) {
                Some(set) => wanted.is_in(set),
                None => (wanted.get() & entry.network.mask).eq(entry.network.address),
            }
            .into(),
            arm: arm as u32,
            text: Arc::from(describe(entry.network)),
            span: entry.span,
        };
        let rules: Vec<Rule> = self.entries.iter().enumerate().map(rule).collect();
        let arms = self.entries.iter().map(|e| vec![Op::Let(MINE, e.ether.to_bits().into())]);
        let mut block = vec![
            Op::when(is_message(wire::REQUEST).not(), unanswered()),
            Op::Match { rules: rules.into(), arms: arms.collect(), otherwise: unanswered() },
            Op::Let(THEIRS, field(arp::SHA).get()),
            Op::Let(ADDRESS, field(arp::SPA).get()),
            Op::Let(WANTED, wanted.get()),
            Op::Truncate(FRAME.into()),
        ];
        block.extend(model_refresh(TCI));
        block.extend([
            eth::DST.set(THEIRS),
            eth::SRC.set(MINE),
            arp::HLEN.set(6u8),
            arp::PLEN.set(4u8),
            arp::OP.set(wire::REPLY),
            arp::SHA.set(MINE),
            arp::SPA.set(WANTED),
            arp::THA.set(THEIRS),
            arp::TPA.set(ADDRESS),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::read("lookup"),
                Handler::write("add"),
                Handler::write("remove"),
            ]
        }
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        _: &HandlerContext<'_>,
    ) -> Result<String, String> {
        if handler == "lookup" {
            let address = parse_value::<Ip>(parameter)?.0.to_bits();
            return Ok(self.lookup(address).map_or(String::new(), |ether| format!("{ether:#}")));
        }
        let line = |e: &Entry| format!("{} {:#}\n", describe(e.network), e.ether);
        Ok(self.entries.iter().map(line).collect())
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "add" {
            let stations =
                parse_stations(&Argument::bare(value), IP_NETWORK, &Names::default(), "");
            self.add(stations.map_err(|(_, why)| why)?, |_| None);
            return Ok(());
        }
        let mut network = parse_value::<IpMask>(value)?;
        network.address &= network.mask;
        let before = self.entries.len();
        self.entries.retain(|entry| entry.network != network);
        if self.entries.len() < before {
            Ok(())
        } else {
            Err(format!("there is no entry for {}", describe(network)))
        }
    }
}
