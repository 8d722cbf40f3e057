//! Flow entries from the tables of segments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::program::{End, Program, Step, StepId};
use net::wire::ip_protocol;

use super::Dialect;
use super::action::Action;
use super::condition::{Conditions, Match, TAGGED};
use super::flow::{self, Bits, Class, Field, Flow, FlowEntry, IN_PORT};
use super::table::{Graph, Node};
use crate::rule::Key as _;
use crate::{Device, Lack};

/// The greatest priority.
const MOST_PRIORITIES: usize = 65535;

/// VLAN IDs that can be used.
const MOST_TAGS: u32 = 4094;

/// Priorities of table 0: entries of others that take whatever is left have 0.
const OF_PORTS: u16 = 2;
const OF_OTHER_TAGS: u16 = 1;

/// Entries of a device.
pub(super) struct Emitted {
    /// In the order of their tables.
    pub(super) entries: Vec<FlowEntry>,
    /// By table: the segment and step that most of its entries are for.
    pub(super) steps: Vec<(usize, StepId)>,
}

/// The entries of a device.
pub(super) fn emit(dialect: Dialect, device: &Device<'_>) -> Result<Emitted, Failure> {
    let segments = device.segments.len();
    if segments > Class::MOST_SEGMENTS {
        return Err((0, StepId(0), Lack::Room("segments", segments, Class::MOST_SEGMENTS)));
    }
    for (index, segment) in device.segments.iter().enumerate() {
        let steps = segment.program.steps.len();
        if steps > Class::MOST_STEPS {
            return Err((index, StepId(0), Lack::Room("steps", steps, Class::MOST_STEPS)));
        }
    }
    let graphs = device.segments.iter().enumerate().map(|(index, segment)| {
        Graph::new(dialect, segment).map_err(|(step, lack)| (index, step, lack))
    });
    let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
    let depth = graphs.iter().map(|graph| graph.levels.len()).max().unwrap_or(0);
    let most = dialect.tables();
    if depth + 1 > most {
        return Err((0, StepId(0), Lack::Room("tables", depth + 1, most)));
    }
    // Nodes of one table are distinguished by a number, if there are several.
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
    let mut emitter =
        Emitter { dialect, device, graphs: &graphs, states, origin: "".into(), out: Vec::new() };
    emitter.write()?;
    let entries = emitter.out;
    Ok(Emitted { entries, steps: largest(&graphs, depth) })
}

/// By table: the node with most lines.
fn largest(graphs: &[Graph], depth: usize) -> Vec<(usize, StepId)> {
    let mut steps = vec![(0, StepId(0))];
    for level in 0..depth {
        let mut most = (0, (0, StepId(0)));
        for (segment, graph) in graphs.iter().enumerate() {
            for &node in graph.levels.get(level).into_iter().flatten() {
                if let Node::List { step, lines } = &graph.lists.nodes[node]
                    && lines.len() > most.0
                {
                    most = (lines.len(), (segment, *step));
                }
            }
        }
        steps.push(most.1);
    }
    steps
}

struct Emitter<'a> {
    dialect: Dialect,
    device: &'a Device<'a>,
    graphs: &'a [Graph],
    /// Where the nodes are: table, and number in it. By segment and node.
    states: BTreeMap<(usize, usize), (usize, Option<u32>)>,
    /// What the next entries are for.
    origin: Arc<str>,
    out: Vec<FlowEntry>,
}

/// The place of an error.
type Failure = (usize, StepId, Lack);

/// What an entry does.
#[derive(Default)]
struct Does {
    actions: Vec<flow::Action>,
    metadata: Option<(u64, u64)>,
    goto: Option<u8>,
}

impl Does {
    fn only(actions: Vec<flow::Action>) -> Self {
        Self { actions, ..Self::default() }
    }
}

impl Emitter<'_> {
    fn write(&mut self) -> Result<(), Failure> {
        for (segment, graph) in self.graphs.iter().enumerate() {
            for &port in &self.device.segments[segment].ingress {
                self.write_ingress(segment, port, graph.lists.root)?;
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

    /// Frames of a segment where they come in: at a port, or back from a server, with a tag that goes first.
    fn write_ingress(&mut self, segment: usize, port: u32, root: usize) -> Result<(), Failure> {
        let Some(&server) = self.device.servers.returns.get(&port) else {
            self.origin = format!("Frames that come in at port {port}").into();
            let when = Conditions::exact(Match::InPort, port.into());
            return self.entry(segment, 0, OF_PORTS, &when, root);
        };
        if port > MOST_TAGS {
            return Err((
                segment,
                StepId(0),
                Lack::Room("ports", port as usize, MOST_TAGS as usize),
            ));
        }
        self.origin =
            format!("Frames that come back from port {server} with the tag {port}").into();
        let tagged = Conditions::exact(Match::VlanId, TAGGED | u128::from(port));
        let when = Conditions::exact(Match::InPort, server.into()).and(&tagged);
        let first = self.out.len();
        self.entry(segment, 0, OF_PORTS, &when.unwrap_or_default(), root)?;
        for FlowEntry { flow, .. } in &mut self.out[first..] {
            flow.actions.insert(0, flow::Action::PopVlan);
        }
        Ok(())
    }

    /// Frames from the cores: their tag says by which port they leave.
    fn back(&mut self) {
        self.origin = "Frames from the cores leave by the port that their tag names".into();
        let ports: BTreeSet<u32> = self.device.egress.values().copied().collect();
        for cores in self.device.server_ports().collect::<BTreeSet<u32>>() {
            let from_cores = Conditions::exact(Match::InPort, cores.into());
            for &port in &ports {
                let tagged = Conditions::exact(Match::VlanId, TAGGED | u128::from(port));
                let Some(when) = from_cores.and(&tagged) else { continue };
                let out = flow::Action::Output(if port == cores { IN_PORT } else { port });
                let does = Does::only(vec![flow::Action::PopVlan, out]);
                self.put(Class::Back, 0, OF_PORTS, &when, does);
            }
            self.put(Class::Back, 0, OF_OTHER_TAGS, &from_cores, Does::default());
        }
    }

    fn node(&mut self, segment: usize, node: usize) -> Result<(), Failure> {
        let Node::List { step, lines } = &self.graphs[segment].lists.nodes[node] else {
            return Ok(());
        };
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
        let mut last = None;
        for line in &lines {
            if let Some((element, span)) = line.origin
                && last.replace((element, span)) != Some((element, span))
            {
                let origin = (self.device.origin)(element, span).replace(['\n', '\r'], " ");
                self.origin = origin.into();
            }
            let when = at.and(&line.when).unwrap_or_default();
            let priority = (orders - line.order) as u16;
            self.entry(segment, table as u8, priority, &when, line.to)?;
        }
        Ok(())
    }

    /// An entry that leads to a node.
    fn entry(
        &mut self,
        segment: usize,
        table: u8,
        priority: u16,
        when: &Conditions,
        to: usize,
    ) -> Result<(), Failure> {
        let place = segment as u16;
        let graphs = self.graphs;
        let (step, actions, needs) = match &graphs[segment].lists.nodes[to] {
            Node::List { step, .. } => {
                let (next, state) = self.states[&(segment, to)];
                let does = self.go_on(next as u8, state);
                self.put(Class::Inner(place, step.0), table, priority, when, does);
                return Ok(());
            }
            Node::Exit { step, exit } => (*step, &exit.actions, &exit.needs),
        };
        let class = Class::Exit(place, step.0);
        let program: &Program = &self.device.segments[segment].program;
        let Step::Exit(exit) = program.step(step) else { return Ok(()) };
        let meter = self.device.meters.get(&(segment, step)).copied().map(flow::Action::Meter);
        match exit.end {
            End::Drop { .. } => self.put(class, table, priority, when, Does::default()),
            End::Handoff { to } => {
                if u32::from(to.0) > MOST_TAGS {
                    let lack = Lack::Room("continuations", to.0.into(), MOST_TAGS as usize);
                    return Err((segment, step, lack));
                }
                let tag = [
                    flow::Action::PushVlan(0x88a8),
                    flow::Action::Set(Field::VlanId, TAGGED | u128::from(to.0)),
                ];
                let tag: Vec<flow::Action> = meter.into_iter().chain(tag).collect();
                self.send(segment, class, (table, priority, when), (&tag, self.device.towards(to)));
            }
            End::Push { to, .. } => {
                let Some(&port) = self.device.egress.get(&to) else {
                    return Err((segment, step, Lack::Element));
                };
                if port > MOST_TAGS {
                    let lack = Lack::Room("ports", port as usize, MOST_TAGS as usize);
                    return Err((segment, step, lack));
                }
                let Some(when) = when.and(needs) else { return Ok(()) };
                let protocol = protocol(&when);
                let actions = actions.iter().map(|action| of(action, protocol));
                let actions: Vec<flow::Action> = meter.into_iter().chain(actions).collect();
                self.send(segment, class, (table, priority, &when), (&actions, port));
            }
        }
        Ok(())
    }

    /// Entries that send frames of a segment out of a port.
    fn send(
        &mut self,
        segment: usize,
        class: Class,
        (table, priority, when): (u8, u16, &Conditions),
        (actions, port): (&[flow::Action], u32),
    ) {
        let send = |port: u32| Does::only([actions, &[flow::Action::Output(port)]].concat());
        // A switch never sends a frame where it came from unless it is told so by name.
        let device = self.device;
        let come_in = |number: &u32| device.servers.returns.get(number).copied().unwrap_or(*number);
        let ingress: BTreeSet<u32> = device.segments[segment].ingress.iter().map(come_in).collect();
        if !ingress.contains(&port) {
            self.put(class, table, priority, when, send(port));
            return;
        }
        for from in ingress {
            let out = if from == port { IN_PORT } else { port };
            let from = Conditions::exact(Match::InPort, from.into());
            let Some(when) = when.and(&from) else { continue };
            self.put(class, table, priority, &when, send(out));
        }
    }

    /// Goes to a node of another table.
    fn go_on(&self, table: u8, state: Option<u32>) -> Does {
        let mut does = Does { goto: Some(table), ..Does::default() };
        match (state, self.dialect) {
            (None, _) => {}
            (Some(number), Dialect::OpenVSwitch) => {
                does.actions.push(flow::Action::Set(Field::Register0, number.into()));
            }
            (Some(number), Dialect::Standard) => does.metadata = Some((number.into(), u64::MAX)),
        }
        does
    }

    fn put(&mut self, class: Class, table: u8, priority: u16, when: &Conditions, does: Does) {
        let Does { actions, metadata, goto } = does;
        let protocol = protocol(when);
        let bits = |&(of, value, mask): &(Match, u128, u128)| {
            let name = field(self.dialect, of, protocol);
            let (value, mask) = match of {
                // Without a tag, no other bits of it are there.
                Match::VlanId if (value, mask) == (0, TAGGED) => (value, name.ones()),
                // What stands behind the first fragment is a fragment.
                Match::IpFrag if value & 2 != 0 => (3, 3),
                // The number of a state has more bits in the metadata.
                _ if mask == u128::MAX >> (128 - of.width()) => (value, name.ones()),
                _ => (value, mask),
            };
            Bits { field: name, value, mask }
        };
        let mut when: Vec<Bits> = when.fields().iter().map(bits).collect();
        when.sort_unstable();
        let cookie = class.number();
        let flow = Flow { cookie, table, priority, when, actions, metadata, goto };
        self.out.push(FlowEntry { flow, origin: Arc::clone(&self.origin) });
    }
}

fn protocol(when: &Conditions) -> Option<u8> {
    when.of(Match::IpProto).and_then(|protocol| u8::try_from(protocol.0).ok())
}

fn field(dialect: Dialect, field: Match, protocol: Option<u8>) -> Field {
    match field {
        Match::InPort => Field::InPort,
        Match::State if dialect == Dialect::OpenVSwitch => Field::Register0,
        Match::State => Field::Metadata,
        Match::EthDst => Field::EthDst,
        Match::EthSrc => Field::EthSrc,
        Match::VlanId => Field::VlanId,
        Match::VlanPriority => Field::VlanPriority,
        Match::EthType => Field::EthType,
        Match::ArpOp => Field::ArpOp,
        Match::ArpSpa => Field::ArpSpa,
        Match::ArpTpa => Field::ArpTpa,
        Match::ArpSha => Field::ArpSha,
        Match::ArpTha => Field::ArpTha,
        Match::IpProto => Field::IpProto,
        Match::IpSrc => Field::IpSrc,
        Match::IpDst => Field::IpDst,
        Match::IpDscp => Field::IpDscp,
        Match::IpEcn => Field::IpEcn,
        Match::IpTtl => Field::IpTtl,
        Match::IpFrag => Field::IpFrag,
        Match::Ip6Src => Field::Ip6Src,
        Match::Ip6Dst => Field::Ip6Dst,
        Match::Ip6Label => Field::Ip6Label,
        Match::SourcePort => match protocol {
            Some(ip_protocol::UDP) => Field::UdpSrc,
            Some(ip_protocol::SCTP) => Field::SctpSrc,
            _ => Field::TcpSrc,
        },
        Match::DestinationPort => match protocol {
            Some(ip_protocol::UDP) => Field::UdpDst,
            Some(ip_protocol::SCTP) => Field::SctpDst,
            _ => Field::TcpDst,
        },
        Match::TcpFlags => Field::TcpFlags,
        Match::IcmpType => Field::IcmpType,
        Match::IcmpCode => Field::IcmpCode,
    }
}

fn of(action: &Action, protocol: Option<u8>) -> flow::Action {
    match *action {
        Action::PopTag => flow::Action::PopVlan,
        Action::PushTag(ether_type) => flow::Action::PushVlan(ether_type),
        Action::Age => flow::Action::DecTtl,
        Action::Set(name, value) => {
            flow::Action::Set(field(Dialect::OpenVSwitch, name, protocol), value)
        }
    }
}
