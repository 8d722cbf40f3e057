//! Rules as testpmd's commands, and as JSON.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use ir::program::{End, Step, StepId};
use net::wire::{ether_type, ip_protocol};
use serde_json::{Map, Value, json};

use super::action::Action;
use super::exact;
use super::field::{Conditions, Key, ListRule};
use super::{COMMANDS, Driver, JSON, TRANSPORTS};
use crate::rule::{self, Key as _, Node};
use crate::{Device, File, Lack};

/// The lists of a segment.
type Lists = rule::Lists<Key, Vec<Action>>;

/// Characters of a line that testpmd reads.
const MOST_CHARACTERS: usize = 511;

/// Steps of a segment that counters can name, and segments.
const MOST_STEPS: u32 = 1 << 24;
const MOST_SEGMENTS: usize = 255;

/// Marks that all drivers have.
const MOST_MARKS: u32 = 0xffff;

/// The place of an error.
type Failure = (usize, StepId, Lack);

/// An item: its name, and its fields with number and mask.
type Item = (&'static str, Vec<(&'static str, String, String)>);

/// An action with its arguments.
type Act = (&'static str, Vec<(&'static str, String)>);

struct Rule {
    port: u32,
    group: u32,
    priority: usize,
    items: Vec<Item>,
    acts: Vec<Act>,
    origin: String,
}

pub(super) fn emit(driver: &Driver, device: &Device<'_>) -> Result<Vec<File>, Failure> {
    let mut rules = Vec::new();
    let mut first_group = u32::from(driver.groups);
    if device.segments.len() > MOST_SEGMENTS {
        let lack = Lack::Room("segments", device.segments.len(), MOST_SEGMENTS);
        return Err((MOST_SEGMENTS, StepId(0), lack));
    }
    for (index, segment) in device.segments.iter().enumerate() {
        let fail = |(step, lack)| (index, step, lack);
        let lists = Lists::new(driver, segment).map_err(fail)?;
        let emitter = Emitter { driver, device, index, lists: &lists, first_group };
        let of_segment = emitter.rules().map_err(fail)?;
        for &port in &segment.ingress {
            rules.extend(of_segment.iter().map(|rule| rule.at(port)));
        }
        first_group += lists.order.len() as u32;
    }
    if driver.takes_rest() && rules.len() > driver.rules {
        return Err((0, StepId(0), Lack::Room("rules", rules.len(), driver.rules)));
    }
    let text = commands(driver, &rules);
    let json = as_json(driver, &rules);
    let file = |name: &str, text: String| File { name: name.into(), contents: text.into_bytes() };
    Ok(vec![file(COMMANDS, text), file(JSON, json)])
}

/// What is left to cores although it was decided: exits that some packets come to which no rule takes.
pub(super) fn leaves(driver: &Driver, device: &Device<'_>) -> Vec<(usize, StepId, Lack)> {
    let mut all = Vec::new();
    for (index, segment) in device.segments.iter().enumerate().filter(|_| !driver.takes_rest()) {
        let Ok(lists) = Lists::new(driver, segment) else { continue };
        let lines = match &lists.nodes[lists.root] {
            Node::List { lines, .. } => lines,
            Node::Exit { step, .. } => {
                all.push((index, *step, Lack::Rest));
                continue;
            }
        };
        for (line, _) in lines.iter().zip(exact::kept(driver, lines)).filter(|(_, kept)| !kept) {
            if let Node::Exit { step, .. } = lists.nodes[line.to] {
                all.push((index, step, Lack::Rest));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

struct Emitter<'a> {
    driver: &'a Driver,
    device: &'a Device<'a>,
    index: usize,
    lists: &'a Lists,
    /// The group of the first list.
    first_group: u32,
}

impl Emitter<'_> {
    fn group(&self, node: usize) -> u32 {
        let at = self.lists.order.iter().position(|&other| other == node).unwrap_or(0);
        self.first_group + at as u32
    }

    /// The rules of the segment, for any port.
    fn rules(&self) -> Result<Vec<Rule>, (StepId, Lack)> {
        let (driver, lists) = (self.driver, self.lists);
        let mut rules = Vec::new();
        if let Node::Exit { .. } = lists.nodes[lists.root] {
            if driver.takes_rest() {
                let rest = ListRule {
                    order: 0,
                    when: Conditions::default(),
                    to: lists.root,
                    origin: None,
                };
                rules.push(self.rule(0, 0, &rest)?);
            }
            return Ok(rules);
        }
        if driver.groups {
            // The first group is the smallest and slowest of these cards.
            let rest =
                ListRule { order: 0, when: Conditions::default(), to: lists.root, origin: None };
            rules.push(self.rule(0, 0, &rest)?);
        }
        for &node in &lists.order {
            let Node::List { step, lines } = &lists.nodes[node] else { continue };
            let kept = match driver.takes_rest() {
                true => vec![true; lines.len()],
                false => exact::kept(driver, lines),
            };
            let most = lines.last().map_or(0, |last| last.order + 1);
            if driver.takes_rest() && most > driver.priorities {
                return Err((*step, Lack::Room("priorities", most, driver.priorities)));
            }
            let group = if driver.groups { self.group(node) } else { 0 };
            for (line, _) in lines.iter().zip(kept).filter(|of| of.1) {
                let priority = if driver.takes_rest() { line.order } else { 0 };
                let rule = self.rule(group, priority, line)?;
                let length = rule.at(u32::MAX).command(driver).len();
                if length > MOST_CHARACTERS {
                    let lack = Lack::Room("characters in a line", length, MOST_CHARACTERS);
                    return Err((*step, lack));
                }
                rules.push(rule);
            }
        }
        Ok(rules)
    }

    fn rule(&self, group: u32, priority: usize, line: &ListRule) -> Result<Rule, (StepId, Lack)> {
        let origin = line.origin.map_or_else(String::new, |(element, span)| {
            (self.device.origin)(element, span).replace(['\n', '\r'], " ")
        });
        let (items, acts) = (items(self.driver, &line.when), self.acts(line.to)?);
        Ok(Rule { port: 0, group, priority, items, acts, origin })
    }

    fn acts(&self, to: usize) -> Result<Vec<Act>, (StepId, Lack)> {
        let (step, actions) = match &self.lists.nodes[to] {
            Node::List { .. } => {
                return Ok(vec![("jump", vec![("group", self.group(to).to_string())])]);
            }
            Node::Exit { step, exit: actions } => (*step, actions),
        };
        let mut all: Vec<Act> = Vec::new();
        if self.driver.counts {
            if step.0 >= MOST_STEPS {
                let lack = Lack::Room("steps", step.0 as usize, MOST_STEPS as usize);
                return Err((step, lack));
            }
            let id = (self.index as u32 + 1) << 24 | step.0;
            all.push(("count", vec![("identifier", format!("{id:#x}"))]));
        }
        let segment = &self.device.segments[self.index];
        let Step::Exit(exit) = segment.program.step(step) else { return Ok(all) };
        match exit.end {
            End::Drop { .. } => all.push(("drop", Vec::new())),
            End::Handoff { to } => {
                if u32::from(to.0) > MOST_MARKS {
                    return Err((step, Lack::Room("marks", to.0.into(), MOST_MARKS as usize)));
                }
                // Flow Director wants the queue first.
                let mark = ("mark", vec![("id", to.0.to_string())]);
                all.push(("queue", vec![("index", "0".into())]));
                all.insert(all.len() - usize::from(self.driver.takes_rest()), mark);
            }
            End::Push { to, .. } => {
                let Some(port) = self.device.egress.get(&to) else {
                    return Err((step, Lack::Element));
                };
                all.extend(actions.iter().map(act));
                let queue = u64::from(*port) + 1;
                all.push(("queue", vec![("index", queue.to_string())]));
            }
        }
        Ok(all)
    }
}

fn act(action: &Action) -> Act {
    match action {
        Action::PopTag => ("of_pop_vlan", Vec::new()),
        Action::Age => ("dec_ttl", Vec::new()),
        Action::SetDestination(to) => ("set_mac_dst", vec![("mac_addr", mac(to))]),
        Action::SetSource(from) => ("set_mac_src", vec![("mac_addr", mac(from))]),
    }
}

fn mac(address: &[u8]) -> String {
    let bytes: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// The items of a conjunction.
fn items(driver: &Driver, when: &Conditions) -> Vec<Item> {
    let mut all: Vec<Item> = vec![("eth", Vec::new())];
    let is = |key, number: u128| when.of(key) == Some((number, key.ones()));
    let any = |from: Key, to: Key| when.fields().iter().any(|of| (from..=to).contains(&of.0));
    let tagged = any(Key::Tci, Key::InnerType);
    if tagged {
        all.push(("vlan", Vec::new()));
    }
    let exact = !driver.takes_rest();
    let carries =
        |number: u16| is(Key::EthType, number.into()) || is(Key::InnerType, number.into());
    let (ipv4, ipv6) = (any(Key::Tos, Key::Destination), any(Key::HopLimit, Key::Destination6));
    if ipv4 || exact && carries(ether_type::IPV4) {
        all.push(("ipv4", Vec::new()));
    }
    if ipv6 || exact && carries(ether_type::IPV6) {
        all.push(("ipv6", Vec::new()));
    }
    // What follows is said by an item alone, where its fields are matched.
    let protocol = TRANSPORTS.iter().find(|of| is(Key::Protocol, of.0.into())).map(|of| of.0);
    let transport = protocol.filter(|protocol| {
        any(Key::SourcePort, Key::IcmpCode) || exact && *protocol != ip_protocol::ICMP
    });
    if let Some(protocol) = transport {
        let name = match protocol {
            ip_protocol::TCP => "tcp",
            ip_protocol::UDP => "udp",
            ip_protocol::SCTP => "sctp",
            _ => "icmp",
        };
        all.push((name, Vec::new()));
    }
    for &(key, value, mask) in when.fields() {
        let (item, field) = match key {
            Key::EthDst => ("eth", "dst"),
            Key::EthSrc => ("eth", "src"),
            Key::EthType if exact => continue,
            Key::EthType => ("eth", "type"),
            Key::Tagged if tagged => continue,
            Key::Tagged => ("eth", "has_vlan"),
            Key::Tci => ("vlan", "tci"),
            Key::InnerType => ("vlan", "inner_type"),
            Key::Tos => ("ipv4", "tos"),
            Key::Ttl => ("ipv4", "ttl"),
            Key::Protocol if transport.is_some() => continue,
            Key::Protocol => ("ipv4", "proto"),
            Key::Source => ("ipv4", "src"),
            Key::Destination => ("ipv4", "dst"),
            Key::HopLimit => ("ipv6", "hop"),
            Key::Source6 => ("ipv6", "src"),
            Key::Destination6 => ("ipv6", "dst"),
            Key::SourcePort | Key::DestinationPort | Key::TcpFlags => {
                let field = match key {
                    Key::SourcePort => "src",
                    Key::DestinationPort => "dst",
                    _ => "flags",
                };
                (all.last().map_or("tcp", |last| last.0), field)
            }
            Key::IcmpType => ("icmp", "type"),
            Key::IcmpCode => ("icmp", "code"),
        };
        let of = (field, number(key, value, false), number(key, mask, true));
        if let Some(item) = all.iter_mut().find(|other| other.0 == item) {
            item.1.push(of);
        }
    }
    all
}

/// A number as its field is written.
fn number(key: Key, value: u128, is_mask: bool) -> String {
    match key {
        Key::EthDst | Key::EthSrc => mac(&value.to_be_bytes()[10..]),
        Key::Source | Key::Destination => Ipv4Addr::from_bits(value as u32).to_string(),
        Key::Source6 | Key::Destination6 => Ipv6Addr::from_bits(value).to_string(),
        Key::EthType | Key::InnerType => format!("{value:#06x}"),
        Key::Tci | Key::TcpFlags => format!("{value:#x}"),
        _ if is_mask => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

impl Rule {
    fn at(&self, port: u32) -> Self {
        let Self { group, priority, ref items, ref acts, ref origin, .. } = *self;
        let (items, acts, origin) = (items.clone(), acts.clone(), origin.clone());
        Self { port, group, priority, items, acts, origin }
    }

    /// As testpmd reads it.
    fn command(&self, driver: &Driver) -> String {
        // A string takes whatever is written.
        let mut text = format!("flow create {} ", self.port);
        if self.group > 0 {
            let _ = write!(text, "group {} ", self.group);
        }
        if driver.takes_rest() {
            let _ = write!(text, "priority {} ", self.priority);
        }
        text.push_str("ingress pattern");
        for (item, fields) in &self.items {
            let _ = write!(text, " {item}");
            for (field, spec, mask) in fields {
                let _ = write!(text, " {field} spec {spec} {field} mask {mask}");
            }
            text.push_str(" /");
        }
        text.push_str(" end actions");
        for (act, arguments) in &self.acts {
            let _ = write!(text, " {act}");
            for (name, value) in arguments {
                let _ = write!(text, " {name} {value}");
            }
            text.push_str(" /");
        }
        text.push_str(" end");
        text
    }

    fn json(&self) -> Value {
        let map = |all: &mut dyn Iterator<Item = (&str, &String)>| -> Map<String, Value> {
            all.map(|(name, value)| (name.into(), Value::String(value.clone()))).collect()
        };
        let item = |(item, fields): &Item| {
            let mut one = json!({ "type": item });
            if !fields.is_empty() {
                one["spec"] = map(&mut fields.iter().map(|of| (of.0, &of.1))).into();
                one["mask"] = map(&mut fields.iter().map(|of| (of.0, &of.2))).into();
            }
            one
        };
        let act = |(act, arguments): &Act| {
            let mut one = json!({ "type": act });
            if !arguments.is_empty() {
                one["conf"] = map(&mut arguments.iter().map(|of| (of.0, &of.1))).into();
            }
            one
        };
        json!({
            "port": self.port,
            "group": self.group,
            "priority": self.priority,
            "ingress": true,
            "pattern": self.items.iter().map(item).collect::<Vec<_>>(),
            "actions": self.acts.iter().map(act).collect::<Vec<_>>(),
            "origin": self.origin,
        })
    }
}

fn commands(driver: &Driver, rules: &[Rule]) -> String {
    let mut text = format!("# Load with: dpdk-testpmd … -- -i --cmdline-file={COMMANDS}\n");
    text.push_str("# Queue 0 leads to the cores; a mark says where they go on.\n");
    if driver.hairpin {
        text.push_str("# Queue N+1 is a hairpin queue, that leads to port N.\n");
    }
    for rule in rules {
        if !rule.origin.is_empty() {
            let _ = writeln!(text, "# {}", rule.origin);
        }
        let _ = writeln!(text, "{}", rule.command(driver));
    }
    text
}

fn as_json(driver: &Driver, rules: &[Rule]) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| format!("  {}", rule.json())).collect();
    format!("{{\"target\": {:?}, \"rules\": [\n{}\n]}}\n", driver.name, rules.join(",\n"))
}
