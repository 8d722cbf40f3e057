//! Flow entries as `ovs-ofctl add-flows` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use ir::program::{End, Program, Step, StepId};
use net::wire::ip_protocol;

use super::action::Action;
use super::condition::{Conditions, Match, TAGGED};
use super::table::{Graph, Node, Origin};
use super::{Dialect, FLOWS};
use crate::{Device, File, Lack};

/// The greatest priority.
const MOST_PRIORITIES: usize = 65535;

/// VLAN IDs that can be used.
const MOST_TAGS: u32 = 4094;

/// Cookie of entries that take frames from the cores back out.
pub(super) const BACK: u64 = 1 << 62;

/// Bit of the cookies of entries that only lead to others.
const INNER: u64 = 1 << 63;

pub(super) fn emit(
    dialect: Dialect,
    device: &Device<'_>,
) -> Result<Vec<File>, (usize, StepId, Lack)> {
    let graphs = device.segments.iter().enumerate().map(|(index, segment)| {
        Graph::new(dialect, segment).map_err(|(step, lack)| (index, step, lack))
    });
    let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
    let depth = graphs.iter().map(|graph| graph.levels.len()).max().unwrap_or(0);
    let most = dialect.tables();
    if depth + 1 > most {
        return Err((0, StepId(0), Lack::Room("tables", depth + 1, most)));
    }
    // Nodes of one table are told apart by a number, if there are several.
    let mut states = BTreeMap::new();
    for level in 0..depth {
        let here: Vec<(usize, usize)> = graphs
            .iter()
            .enumerate()
            .flat_map(|(index, graph)| {
                graph.levels.get(level).into_iter().flatten().map(move |&node| (index, node))
            })
            .collect();
        let several = here.len() > 1;
        for (number, place) in (1u32..).zip(here) {
            states.insert(place, (level + 1, several.then_some(number)));
        }
    }
    let mut text = Text { dialect, device, graphs: &graphs, states, out: String::new() };
    text.write()?;
    Ok(vec![File { name: FLOWS.into(), contents: text.out.into_bytes() }])
}

struct Text<'a> {
    dialect: Dialect,
    device: &'a Device<'a>,
    graphs: &'a [Graph],
    /// Where the nodes are: table, and number in it. By segment and node.
    states: BTreeMap<(usize, usize), (usize, Option<u32>)>,
    out: String,
}

/// The place of an error.
type Failure = (usize, StepId, Lack);

impl Text<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes whatever is written.
        let _ = self.out.write_fmt(text);
        self.out.push('\n');
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.line(format_args!(
            "# Load with: ovs-ofctl -O OpenFlow13 --bundle add-flows BRIDGE {FLOWS}"
        ));
        if self.dialect == Dialect::OpenVSwitch {
            self.line(format_args!("# First fragments show their ports after: ovs-ofctl -O OpenFlow13 set-frags BRIDGE nx-match"));
        }
        for (segment, graph) in self.graphs.iter().enumerate() {
            for &port in &self.device.segments[segment].ingress {
                self.line(format_args!("# Frames that come in at port {port}"));
                let when = Conditions::exact(Match::InPort, port.into());
                self.entry(segment, 0, 1, &when, graph.root)?;
            }
        }
        self.back();
        let depth = self.graphs.iter().map(|graph| graph.levels.len()).max().unwrap_or(0);
        for level in 0..depth {
            for segment in 0..self.graphs.len() {
                let nodes = self.graphs[segment].levels.get(level).cloned().unwrap_or_default();
                nodes.into_iter().try_for_each(|node| self.node(segment, node))?;
            }
        }
        Ok(())
    }

    /// Frames from the cores: their tag says by which port they leave.
    fn back(&mut self) {
        let cores = self.device.cores;
        self.line(format_args!("# Frames from the cores leave by the port that their tag names"));
        let ports: BTreeSet<u32> = self.device.egress.values().copied().collect();
        for port in ports {
            self.line(format_args!(
                "cookie={BACK:#x},table=0,priority=1,in_port={cores},vlan_vid={:#x},actions=pop_vlan,{}",
                TAGGED | u128::from(port),
                if port == cores { "in_port".into() } else { format!("output:{port}") },
            ));
        }
        self.line(format_args!("cookie={BACK:#x},table=0,priority=0,in_port={cores},actions=drop"));
    }

    fn node(&mut self, segment: usize, node: usize) -> Result<(), Failure> {
        let Node::Table { step, lines } = &self.graphs[segment].nodes[node] else { return Ok(()) };
        let (step, lines) = (*step, lines.clone());
        let (table, state) = self.states[&(segment, node)];
        let mut at = Conditions::default();
        if let Some(number) = state {
            at = Conditions::exact(Match::State, number.into());
        }
        let orders = lines.last().map_or(0, |line| line.order);
        if orders > MOST_PRIORITIES {
            let lack = Lack::Room("priorities", orders, MOST_PRIORITIES);
            return Err((segment, step, lack));
        }
        let mut said: Origin = None;
        for line in &lines {
            if line.origin.is_some() && line.origin != said {
                said = line.origin;
                let (element, span) = said.unwrap_or_default();
                let origin = (self.device.origin)(element, span).replace(['\n', '\r'], " ");
                self.line(format_args!("# {origin}"));
            }
            let when = at.and(&line.when).unwrap_or_default();
            let priority = orders - line.order;
            self.entry(segment, table, priority, &when, line.to)?;
        }
        Ok(())
    }

    /// An entry that leads to a node.
    fn entry(
        &mut self,
        segment: usize,
        table: usize,
        priority: usize,
        when: &Conditions,
        to: usize,
    ) -> Result<(), Failure> {
        let place = segment as u64 + 1;
        let (step, node) = match &self.graphs[segment].nodes[to] {
            Node::Table { step, .. } => {
                let (next, state) = self.states[&(segment, to)];
                let state = state.map_or(String::new(), |number| self.state(number) + ",");
                let cookie = INNER | place << 32 | u64::from(step.0);
                let actions = format!("{state}goto_table:{next}");
                self.print(cookie, table, priority, when, &actions);
                return Ok(());
            }
            Node::Exit { step, actions, needs } => (*step, (actions.clone(), needs.clone())),
        };
        let (actions, needs) = node;
        let cookie = place << 32 | u64::from(step.0);
        let program: &Program = &self.device.segments[segment].program;
        let Step::Exit(exit) = program.step(step) else { return Ok(()) };
        match exit.end {
            End::Drop { .. } => self.print(cookie, table, priority, when, "drop"),
            End::Handoff { to } => {
                if u32::from(to.0) > MOST_TAGS {
                    let lack = Lack::Room("continuations", to.0.into(), MOST_TAGS as usize);
                    return Err((segment, step, lack));
                }
                let tag = TAGGED | u128::from(to.0);
                let cores = self.device.cores;
                let actions = format!("push_vlan:0x88a8,set_field:{tag}->vlan_vid,output:{cores}");
                self.print(cookie, table, priority, when, &actions);
            }
            End::Push { to, .. } => {
                let Some(&port) = self.device.egress.get(&to) else {
                    return Err((segment, step, Lack::Element));
                };
                if port > MOST_TAGS {
                    let lack = Lack::Room("ports", port as usize, MOST_TAGS as usize);
                    return Err((segment, step, lack));
                }
                let Some(when) = when.and(&needs) else { return Ok(()) };
                let mut all = String::new();
                for action in &actions {
                    let _ = write!(all, "{},", said(action, &when));
                }
                // A switch never sends a frame where it came from unless it is told so by name.
                let ingress = &self.device.segments[segment].ingress;
                if !ingress.contains(&port) {
                    let actions = format!("{all}output:{port}");
                    self.print(cookie, table, priority, &when, &actions);
                    return Ok(());
                }
                for &from in ingress {
                    let from = Conditions::exact(Match::InPort, from.into());
                    let Some(when) = when.and(&from) else { continue };
                    let back = from.of(Match::InPort).is_some_and(|from| from.0 == port.into());
                    let out = if back { "in_port".into() } else { format!("output:{port}") };
                    self.print(cookie, table, priority, &when, &format!("{all}{out}"));
                }
            }
        }
        Ok(())
    }

    fn state(&self, number: u32) -> String {
        match self.dialect {
            Dialect::OpenVSwitch => format!("set_field:{number}->reg0"),
            Dialect::Standard => format!("write_metadata:{number}"),
        }
    }

    fn print(
        &mut self,
        cookie: u64,
        table: usize,
        priority: usize,
        when: &Conditions,
        actions: &str,
    ) {
        let mut matched = String::new();
        for &(field, value, mask) in when.fields() {
            matched.push_str(&written(self.dialect, field, value, mask, when));
            matched.push(',');
        }
        // Instructions that go on stand behind actions.
        self.line(format_args!(
            "cookie={cookie:#x},table={table},priority={priority},{matched}actions={actions}"
        ));
    }
}

/// A field with its number, and its mask unless all bits count.
fn written(dialect: Dialect, field: Match, value: u128, mask: u128, when: &Conditions) -> String {
    let all = mask == u128::MAX >> (128 - field.width());
    let protocol = when.of(Match::IpProto).and_then(|p| u8::try_from(p.0).ok());
    let name = name(dialect, field, protocol);
    match field {
        Match::VlanId if value == 0 && mask == TAGGED => format!("{name}=0"),
        Match::IpFrag => {
            let words = match (value, mask) {
                (0, 3) => "no",
                (1, 1) => "yes",
                (1, 3) => "first",
                (2 | 3, _) => "later",
                _ => "not_later",
            };
            format!("{name}={words}")
        }
        _ if all => format!("{name}={}", number(field, value)),
        _ => format!("{name}={}/{}", number(field, value), number(field, mask)),
    }
}

/// A number as its field is written.
fn number(field: Match, value: u128) -> String {
    match field {
        Match::EthDst | Match::EthSrc | Match::ArpSha | Match::ArpTha => {
            let bytes: Vec<String> =
                value.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect();
            bytes.join(":")
        }
        Match::IpSrc | Match::IpDst | Match::ArpSpa | Match::ArpTpa => {
            Ipv4Addr::from_bits(value as u32).to_string()
        }
        Match::Ip6Src | Match::Ip6Dst => Ipv6Addr::from_bits(value).to_string(),
        Match::EthType
        | Match::VlanId
        | Match::TcpFlags
        | Match::Ip6Label
        | Match::SourcePort
        | Match::DestinationPort => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

fn name(dialect: Dialect, field: Match, protocol: Option<u8>) -> &'static str {
    match field {
        Match::InPort => "in_port",
        Match::State if dialect == Dialect::OpenVSwitch => "reg0",
        Match::State => "metadata",
        Match::EthDst => "eth_dst",
        Match::EthSrc => "eth_src",
        Match::VlanId => "vlan_vid",
        Match::VlanPriority => "vlan_pcp",
        Match::EthType => "eth_type",
        Match::ArpOp => "arp_op",
        Match::ArpSpa => "arp_spa",
        Match::ArpTpa => "arp_tpa",
        Match::ArpSha => "arp_sha",
        Match::ArpTha => "arp_tha",
        Match::IpProto => "ip_proto",
        Match::IpSrc => "ip_src",
        Match::IpDst => "ip_dst",
        Match::IpDscp => "ip_dscp",
        Match::IpEcn => "ip_ecn",
        Match::IpTtl => "nw_ttl",
        Match::IpFrag => "ip_frag",
        Match::Ip6Src => "ipv6_src",
        Match::Ip6Dst => "ipv6_dst",
        Match::Ip6Label => "ipv6_label",
        Match::SourcePort => match protocol {
            Some(ip_protocol::UDP) => "udp_src",
            Some(ip_protocol::SCTP) => "sctp_src",
            _ => "tcp_src",
        },
        Match::DestinationPort => match protocol {
            Some(ip_protocol::UDP) => "udp_dst",
            Some(ip_protocol::SCTP) => "sctp_dst",
            _ => "tcp_dst",
        },
        Match::TcpFlags => "tcp_flags",
        Match::IcmpType => "icmp_type",
        Match::IcmpCode => "icmp_code",
    }
}

fn said(action: &Action, when: &Conditions) -> String {
    match *action {
        Action::PopTag => "pop_vlan".into(),
        Action::PushTag(ether_type) => format!("push_vlan:{ether_type:#x}"),
        Action::Age => "dec_ttl".into(),
        Action::Set(field, value) => {
            let protocol = when.of(Match::IpProto).and_then(|p| u8::try_from(p.0).ok());
            let name = name(Dialect::OpenVSwitch, field, protocol);
            format!("set_field:{}->{name}", number(field, value))
        }
    }
}
