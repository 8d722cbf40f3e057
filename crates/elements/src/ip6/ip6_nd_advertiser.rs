//! IP6NDAdvertiser.

use std::cmp::Reverse;
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::Ipv6Net;
use ir::field::{eth, icmp, ip6, meta};
use ir::model::{Reg, Rule, reject};
use ir::{Base, Expr, Field, IntervalSet, Model, Op, Reason, Span};
use net::wire::icmpv6::neighbor_flag::{ROUTER, SOLICITED};
use net::wire::icmpv6::{message, option};
use net::wire::{EtherAddr, Ethernet};
use net::{Batch, Header, Packet};

use crate::argument::{Ip6, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ethernet::neighbours::{model_refresh, parse_stations, refresh};
use crate::ip::ip_header::{self, NETWORK, TRANSPORT};
use crate::ip6::ip6_header;
use crate::ip6::ip6_nd_solicitor::{
    BARE, FRAME, ICMP, Message, Received, is_neighbour_message, neighbour_message, write,
};

element! {
    /// IP6NDAdvertiser(IP6/LENGTH ... ETH, ...) -- answers IPv6 neighbour solicitations
    ///
    /// Expects Ethernet frames. Each argument says that ETH is the Ethernet address of some IPv6
    /// addresses or networks. Valid solicitations (RFC 4861) for one of them are answered on
    /// output 0; where several networks hold an address, the most specific counts. Who probes
    /// whether an address is in use (RFC 4862) is answered on the group of all nodes. All other
    /// frames go to output 1, or are dropped if that is not connected.
    ///
    /// = HANDLERS
    ///
    /// table (read): the networks and their Ethernet addresses.
    /// lookup ADDR (read): the Ethernet address of an IPv6 address.
    ///
    /// = EXAMPLE
    ///
    /// IP6NDAdvertiser(2001:db8::1/128 2001:db8:1::/48 00:e0:29:05:e5:6f)
    ///
    /// = SEE ALSO
    ///
    /// IP6NDSolicitor, ARPResponder
    IP6NDAdvertiser {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("2001:db8::1 2001:db8::/64 02:00:00:00:00:11, fe80::/10 02:00:00:00:00:33", 1, 2),
            ("::/0 02:00:00:00:00:11", 1, 1)
        ]
    }
}

/// See [`IP6NDAdvertiser::CLASS`].
pub(crate) struct IP6NDAdvertiser {
    /// The most specific first.
    entries: Vec<Entry>,
    outputs: usize,
}

struct Entry {
    prefix: Ipv6Net,
    ether: EtherAddr,
    /// Where it was written.
    span: Span,
}

/// Not a valid neighbour solicitation for one of the addresses.
const UNANSWERED: Reason = Reason("not-a-solicitation-for-us");

/// The group of all nodes of the link, and its Ethernet address.
const ALL_NODES: u128 = 0xff02 << 112 | 1;
const ALL_NODES_ETHER: EtherAddr = EtherAddr([0x33, 0x33, 0, 0, 0, 1]);

impl IP6NDAdvertiser {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&[]);
        let mut entries: Vec<Entry> = Vec::new();
        for argument in arguments.rest() {
            let cx = arguments.cx();
            match parse_stations(&argument, "an IPv6 network", cx.names(), cx.name()) {
                Ok((networks, ether)) => {
                    let entry = |(prefix, span)| Entry { prefix, ether, span };
                    entries.extend(networks.into_iter().map(entry));
                }
                Err((at, why)) => arguments.error(&at, why),
            }
        }
        arguments.finish()?;
        entries.sort_by_key(|entry| Reverse(entry.prefix.prefix_len()));
        Ok(Self { entries, outputs })
    }

    fn lookup(&self, address: Ipv6Addr) -> Option<EtherAddr> {
        let found = self.entries.iter().find(|entry| entry.prefix.contains(&address));
        found.map(|entry| entry.ether)
    }

    fn answer(&self, packet: &mut Packet) -> Verdict {
        let data = packet.data();
        let asked = neighbour_message(data, message::NEIGHBOR_SOLICIT, BARE).and_then(
            |Received { ip, icmp }| {
                let wanted = icmp.neighbor_target()?;
                Some((ip.src(), wanted, self.lookup(wanted)?, Ethernet::new(data)?.src()))
            },
        );
        let Some((asker, wanted, mine, theirs)) = asked else {
            return Verdict::Reject(1, UNANSWERED);
        };
        let (to, flags) = match asker.is_unspecified() {
            true => ((ALL_NODES_ETHER, ALL_NODES.into()), ROUTER),
            false => ((theirs, asker), ROUTER | SOLICITED),
        };
        packet.truncate(FRAME);
        packet.put(FRAME - packet.len());
        write(
            packet.data_mut(),
            (mine, wanted),
            to,
            &Message {
                message_type: message::NEIGHBOR_ADVERT,
                flags,
                target: wanted,
                option: option::TARGET_LINK_LAYER,
            },
        );
        refresh(packet);
        packet.set_header_offset(Header::Transport, ICMP as isize);
        Verdict::Pass
    }
}

fn set_of(prefix: &Ipv6Net) -> IntervalSet {
    IntervalSet::prefix(128, prefix.addr().to_bits(), prefix.prefix_len().into())
}

impl Element for IP6NDAdvertiser {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.answer(packet));
    }

    fn model(&self) -> Model {
        const MINE: Reg = Reg(0);
        const ETHER: Reg = Reg(1);
        const TO: Reg = Reg(2);
        const FLAGS: Reg = Reg(3);
        const WANTED: Reg = Reg(4);
        const TCI: Reg = Reg(5);
        let unanswered = || reject(1, self.outputs, UNANSWERED);
        let wanted = Field::bytes(Base::Data, (ICMP + 8) as u16, 16);
        let rule = |(arm, entry): (usize, &Entry)| Rule {
            when: wanted.is_in(set_of(&entry.prefix)).into(),
            arm: arm as u32,
            text: Arc::from(entry.prefix.to_string()),
            span: Some(entry.span),
        };
        let rules: Vec<Rule> = self.entries.iter().enumerate().map(rule).collect();
        let arms = self.entries.iter().map(|e| vec![Op::Let(MINE, e.ether.to_bits().into())]);
        let source = ip_header::unmarked(ip6::SRC, 14);
        let in_transport = |at, length| Field::bytes(TRANSPORT, at, length);
        let kind = u16::from(option::TARGET_LINK_LAYER) << 8 | 1;
        let sum = ip6_header::icmp_sum(NETWORK, 0, &Expr::from(FRAME - ICMP));
        let mut block = vec![
            Op::when(is_neighbour_message(message::NEIGHBOR_SOLICIT, BARE).not(), unanswered()),
            Op::Match { rules: rules.into(), arms: arms.collect(), otherwise: unanswered() },
            Op::Let(ETHER, eth::SRC.get()),
            Op::Let(TO, source.get()),
            Op::Let(FLAGS, (ROUTER | SOLICITED).into()),
            Op::Let(WANTED, wanted.get()),
            Op::when(
                Expr::from(TO).eq(0u8),
                vec![
                    Op::Let(ETHER, ALL_NODES_ETHER.to_bits().into()),
                    Op::Let(TO, ALL_NODES.into()),
                    Op::Let(FLAGS, ROUTER.into()),
                ],
            ),
            Op::Truncate(FRAME.into()),
            Op::Extend(Expr::from(FRAME) - meta::LEN),
        ];
        block.extend(model_refresh(TCI));
        block.extend([
            Op::Mark(Header::Transport, ICMP.into()),
            eth::DST.set(ETHER),
            eth::SRC.set(MINE),
            Field::bytes(NETWORK, 0, 4).set(0x6000_0000u32),
            ip6::PLEN.set(FRAME - ICMP),
            ip6::SRC.set(WANTED),
            ip6::DST.set(TO),
            icmp::TYPE.set(message::NEIGHBOR_ADVERT),
            icmp::CHECKSUM.set(0u8),
            icmp::REST.set(FLAGS),
            in_transport(BARE as u16, 2).set(kind),
            in_transport(BARE as u16 + 2, 6).set(MINE),
            icmp::CHECKSUM.set(sum ^ 0xffffu16),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("table"), Handler::read("lookup")] }
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        _: &HandlerContext<'_>,
    ) -> Result<String, String> {
        if handler == "lookup" {
            let address = parse_value::<Ip6>(parameter)?.0;
            return Ok(self.lookup(address).map_or(String::new(), |ether| format!("{ether:#}")));
        }
        let line = |entry: &Entry| format!("{} {:#}\n", entry.prefix, entry.ether);
        Ok(self.entries.iter().map(line).collect())
    }
}
