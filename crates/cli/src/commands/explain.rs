//! `catena explain`: what a chain does to packets, step by step.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{stderr, stdout};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use codegen::openflow::{self, Class, FlowEntry};
use codegen::{Device, Target, ebpf};
use compiler::Chain;
use compiler::partition::Compiled;
use dataplane::clock::VirtualClock;
use dataplane::trace::{Fate, Hearing, Stage, Trace};
use dataplane::{Rest, Router};
use engine::Disk;
use ir::program::StepId;
use ir::{Model, NodeId, Port, Sources, has_errors, nearest};
use net::pcap::Reader;
use view::diagnostics;
use view::explain::{Story, tell, to_json};
use view::offload::Offloaded;
use view::paint::Paint;
use view::synth::{Cost, Report};

use super::compile::{self, Rack};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::Loaded;
use crate::terminal::{colours, print, print_error};
use crate::variables;

/// Follow packets through a chain: every element, what matched, what changed and why
///
/// Packets are sent one after the other; later ones meet the state that earlier ones left. Nothing is
/// sent to devices and no file is written; sources emit no packets of their own.
///
/// Packets are described like this:
///
///   udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3 payload 'hello'
///   tcp 10.0.0.1:5000 > 192.0.2.1:80 flags S seq 7
///   eth 00:00:00:00:00:01 > 00:00:00:00:00:02 vlan 5 icmp 10.0.0.1 > 10.0.0.2
///   arp who-has 10.0.0.2 tell 10.0.0.1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Explain {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    #[command(flatten)]
    packets: Packets,
    /// Print JSON: every step, with the packet's bytes before and after
    #[arg(long)]
    pub(crate) json: bool,
    /// Show elements only, not the program that replaces them
    #[arg(long)]
    no_synthesis: bool,
    /// The rack that the chain runs in: also show the packets' path over switch and server: ports, tables and entries, tags,
    /// and what cores do
    #[arg(long, value_name = "FILE.yaml")]
    topology: Option<String>,
    /// Seed of random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    limits: Limits,
}

/// The options that say what is sent in, in the order in which they were given.
#[derive(Debug, Default)]
struct Packets(Vec<Item>);

#[derive(Clone, Debug)]
enum Item {
    In(String),
    Packet(String),
    Pcap(String),
    Frame(RangeInclusive<usize>),
}

const OPTIONS: [(&str, &str, &str); 4] = [
    ("packet", "PACKET", "A packet, described in words"),
    ("pcap", "FILE", "A capture file; its first packet is used unless --frame selects others"),
    ("frame", "N[-M]", "Packets of the capture named before, counted from 1"),
    (
        "in",
        "ELEMENT[PORT]",
        "Where packets enter: a source, the device or file that it reads, or an element's input; default: the \
         first source. Each --in applies to the packets named after it",
    ),
];

impl Args for Packets {
    fn augment_args(command: Command) -> Command {
        let option = |(name, value, help): (&'static str, &'static str, &'static str)| {
            Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
        };
        command.args(OPTIONS.map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Packets {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut packets = Self::default();
        packets.update_from_arg_matches(matches)?;
        Ok(packets)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let mut items = Vec::new();
        for (name, ..) in OPTIONS {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            for (place, value) in places.zip(values) {
                let item = match name {
                    "packet" => Item::Packet(value.clone()),
                    "pcap" => Item::Pcap(value.clone()),
                    "in" => Item::In(value.clone()),
                    _ => Item::Frame(range(value).ok_or_else(|| {
                        let why = format!(
                            "'{value}' is neither a frame's number nor a range N-M, from 1 on"
                        );
                        clap::Error::raw(clap::error::ErrorKind::ValueValidation, why)
                    })?),
                };
                items.push((place, item));
            }
        }
        items.sort_by_key(|(place, _)| *place);
        self.0 = items.into_iter().map(|(_, item)| item).collect();
        Ok(())
    }
}

/// `3` or `3-5`.
fn range(text: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first >= 1 && first <= last).then_some(first..=last)
}

/// A packet to send in.
struct Injection {
    frame: Vec<u8>,
    /// In words.
    said: String,
    /// Whether it starts with its network header.
    bare: bool,
    place: Option<String>,
}

/// Most packets of a capture that are explained.
const MAX_FRAMES: usize = 1000;

impl Packets {
    fn read(&self) -> Result<Vec<Injection>, String> {
        let mut injections = Vec::new();
        let places = self.0.iter().filter_map(|item| match item {
            Item::In(name) => Some(name),
            _ => None,
        });
        // Packets named before the first place come in there too.
        let mut place = places.clone().next().cloned();
        let is_packet = |item: &Item| matches!(item, Item::Packet(_) | Item::Pcap(_));
        if places.count() > 1
            && let Some(Item::In(last)) =
                self.0.iter().rfind(|i| is_packet(i) || matches!(i, Item::In(_)))
        {
            return Err(format!(
                "--in {last} is followed by no packet; it stands before those that come in there"
            ));
        }
        for (i, item) in self.0.iter().enumerate() {
            match item {
                Item::In(name) => place = Some(name.clone()),
                Item::Packet(said) => {
                    let frame = net::notation::parse(said)
                        .map_err(|e| format!("--packet '{said}': {e}"))?;
                    let bare = said.trim_start().starts_with("bare");
                    let said = said.clone();
                    injections.push(Injection { frame, said, bare, place: place.clone() });
                }
                Item::Pcap(path) => {
                    let ranges = self.0[i + 1..].iter().map_while(|item| match item {
                        Item::Frame(range) => Some(range.clone()),
                        _ => None,
                    });
                    let ranges: Vec<_> = ranges.collect();
                    let ranges = if ranges.is_empty() { vec![1..=1] } else { ranges };
                    let frames =
                        frames(path, &ranges).map_err(|e| format!("--pcap {path}: {e}"))?;
                    injections.extend(
                        frames.into_iter().map(|f| Injection { place: place.clone(), ..f }),
                    );
                }
                Item::Frame(_) => {
                    let before = i.checked_sub(1).and_then(|b| self.0.get(b));
                    if !matches!(before, Some(Item::Pcap(_) | Item::Frame(_))) {
                        return Err("--frame must follow the --pcap that it counts in".to_string());
                    }
                }
            }
        }
        if injections.is_empty() {
            return Err("no packet is given: describe one with --packet, as in --packet 'udp 10.0.0.1:5000 > 8.8.8.8:53', \
                        or take one from a capture with --pcap"
                .to_string());
        }
        Ok(injections)
    }
}

/// Frames of a capture, in the order asked for.
fn frames(path: &str, ranges: &[RangeInclusive<usize>]) -> Result<Vec<Injection>, String> {
    let wanted: usize = ranges.iter().map(|r| r.end() - r.start() + 1).sum();
    if wanted > MAX_FRAMES {
        return Err(format!("{wanted} frames are too many to explain; at most {MAX_FRAMES}"));
    }
    let file = dataplane::file::open(path.as_ref()).map_err(|e| e.to_string())?;
    let mut reader =
        Reader::open(Box::new(file) as Box<dyn std::io::Read>).map_err(|e| e.to_string())?;
    let last = ranges.iter().map(|r| *r.end()).max().unwrap_or(0);
    let mut found = std::collections::HashMap::new();
    let mut number = 0;
    while number < last {
        let Some(record) = reader.next().map_err(|e| e.to_string())? else {
            return Err(format!("there is no frame {last}; it has {number}"));
        };
        number += 1;
        if ranges.iter().any(|r| r.contains(&number)) {
            found.insert(number, record.data.to_vec());
        }
    }
    let bare = reader.link_type().is_some_and(|l| l.0 != 1);
    let injection = |n: usize| {
        let frame = found[&n].clone();
        let said = format!("frame {n} of {path}: {}", view::explain::brief_of(&frame, !bare));
        Injection { frame, said, bare, place: None }
    };
    Ok(ranges.iter().cloned().flatten().map(injection).collect())
}

/// Where a packet goes in.
enum Entrance {
    /// A source takes it in.
    Source(String),
    /// It is pushed into an input.
    Input(Port),
}

fn entrance(chain: &Chain, trace: &Trace, place: Option<&str>) -> Result<Entrance, String> {
    let graph = &chain.graph;
    let makes = |n: NodeId| graph.nodes[n].inputs.is_empty() && !graph.nodes[n].outputs.is_empty();
    let at = |n: NodeId| -> Result<Entrance, String> {
        let node = &graph.nodes[n];
        if trace.is_source(&node.name) {
            return Ok(Entrance::Source(node.name.clone()));
        }
        match node.inputs.is_empty() {
            false => Ok(Entrance::Input(Port { node: n, port: 0 })),
            // In place of what it would make.
            true => graph
                .successors(Port { node: n, port: 0 })
                .next()
                .map(Entrance::Input)
                .ok_or_else(|| format!("'{}' has no inputs", node.name)),
        }
    };
    let Some(place) = place else {
        let sources = || (0..graph.nodes.len()).filter(|&n| makes(n));
        let first =
            sources().find(|&n| trace.is_source(&graph.nodes[n].name)).or_else(|| sources().next());
        return match first {
            Some(n) => at(n),
            None => {
                Err("the chain has no source; say with --in ELEMENT where packets come in"
                    .to_string())
            }
        };
    };
    if let Some(n) = chain.find(place) {
        return at(n);
    }
    if let Some((name, port)) = place.strip_suffix(']').and_then(|p| p.split_once('['))
        && let (Some(node), Ok(port)) = (chain.find(name.trim()), port.trim().parse())
    {
        return match graph.nodes[node].inputs.len() {
            n if port < n => Ok(Entrance::Input(Port { node, port })),
            n => Err(format!("--in {place}: '{}' has {n} inputs", name.trim())),
        };
    }
    let mut readers: Vec<&str> = trace.sources_of(place).collect();
    readers.sort_unstable();
    match readers[..] {
        [] => {}
        [reader] => return Ok(Entrance::Source(reader.to_string())),
        _ => {
            return Err(format!(
                "--in {place}: {} all read it; name one of them",
                readers.join(", ")
            ));
        }
    }
    let sources: Vec<&str> = (0..graph.nodes.len())
        .filter(|&n| makes(n))
        .map(|n| graph.nodes[n].name.as_str())
        .collect();
    let hint = match nearest(place, graph.nodes.iter().map(|n| n.name.as_str())) {
        Some(near) => format!("did you mean {near}?"),
        None if sources.is_empty() => "there are no sources".to_string(),
        None => format!("the sources are {}", sources.join(", ")),
    };
    Err(format!("--in {place}: there is no such element or device; {hint}"))
}

/// How often a packet and its copies may go round in circles.
const MAX_TURNS: u32 = 2000;
/// Rounds of the driver after a packet.
const MAX_ROUNDS: usize = 20_000;
/// Rounds in which nothing happens to a packet before the chain counts as quiet.
const QUIET: usize = 64;
/// How long, in nanoseconds, packets that wait are waited for.
const PATIENCE: u64 = 10_000_000_000;

/// Lets the chain run until nothing more happens to any packet.
fn settle(router: &mut Router, trace: &RefCell<Trace>, clock: &VirtualClock) {
    let (mut quiet, mut waited) = (0, 0);
    for _ in 0..MAX_ROUNDS {
        let before = trace.borrow().steps.len();
        let rest = router.round();
        let idle = trace.borrow().steps.len() == before;
        quiet = if idle { quiet + 1 } else { 0 };
        match rest {
            Rest::Busy if quiet < QUIET => {}
            Rest::Until(time) | Rest::IdleUntil(time) if waits(&trace.borrow()) => {
                let pause = time.saturating_sub(router.core().now).max(1);
                waited += pause;
                if waited > PATIENCE {
                    return;
                }
                clock.advance(pause);
            }
            _ => return,
        }
    }
}

/// Whether an element keeps a packet.
fn waits(trace: &Trace) -> bool {
    let outcomes = trace.steps.iter().flat_map(|s| &s.outcomes);
    outcomes.into_iter().any(|o| o.fate == Fate::Kept && o.next.is_none())
}

/// 2020-01-01, in nanoseconds: runs are repeatable.
const START: u64 = 1_577_836_800_000_000_000;

/// Runs the command.
pub(crate) fn main(args: &Explain) -> Result<ExitCode, Failure> {
    let mut sources = Sources::new();
    let mut files = args.limits.disk();
    let file = files.configuration(&mut sources, &args.file)?;
    let injections = args.packets.read()?;
    let trace = Trace::new();
    let clock = VirtualClock::new(START);
    let over = args.topology.as_deref().map(|path| Over::new(args, path)).transpose()?;
    let mut options = args.limits.options(variables::all(&args.variables)?);
    let wires = over.iter().flat_map(|over| over.rack.topology.wires.keys());
    options.devices = wires.map(|name| engine::session::device(name)).collect();
    let mut found = Vec::new();
    let started =
        start((&mut sources, file), &mut files, &options, &trace, &clock, args.seed, &mut found);
    let Some((chain, mut router, models)) = started.filter(|_| !has_errors(&found)) else {
        return Err(Failure::of(found, sources));
    };
    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
    let mut entrances = Vec::new();
    for injection in &injections {
        entrances.push(entrance(&chain, &trace.borrow(), injection.place.as_deref())?);
    }
    let synthesised = (!args.no_synthesis).then(|| {
        let synthesis = compiler::synthesize(&chain.graph, &models);
        trace.borrow_mut().set_programs(synthesis.programs.clone());
        synthesis
    });
    let mut paths = Vec::new();
    // What elements do at the start.
    settle(&mut router, &trace, &clock);
    let mut packets = Vec::new();
    for (injection, entrance) in injections.into_iter().zip(entrances) {
        let Injection { frame, said, bare, .. } = injection;
        trace.borrow_mut().phase += 1;
        trace.borrow_mut().set_link_type(if bare { 101 } else { 1 });
        clock.advance(1_000_000);
        if let Some(over) = &over {
            let entry = match &entrance {
                Entrance::Source(name) => chain
                    .find(name)
                    .and_then(|node| chain.graph.successors(Port { node, port: 0 }).next()),
                Entrance::Input(port) => Some(*port),
            };
            paths.push(over.follow(entry, &frame, router.core())?);
        }
        match entrance {
            Entrance::Source(name) => {
                trace.borrow_mut().take_in(&name, frame);
                packets.push((said, name));
            }
            Entrance::Input(port) => {
                let mut batch = router.core().batch();
                let packet = router.core().pool.packet(&frame);
                batch.push(packet);
                let name = &chain.graph.nodes[port.node].name;
                packets.push((said, format!("input {} of {name}", port.port)));
                router.push(port, batch);
            }
        }
        settle(&mut router, &trace, &clock);
    }
    // Some chains begin with what waits only when their input has ended.
    if waits(&trace.borrow()) {
        trace.borrow_mut().phase += 1;
        trace.borrow_mut().end_sources();
        settle(&mut router, &trace, &clock);
    }
    let trace = trace.borrow();
    let name = sources.name(file);
    let report = synthesised
        .as_ref()
        .map(|synthesis| Report::of(&chain, &sources, name, &models, synthesis, Cost::default()));
    let story = Story {
        graph: &chain.graph,
        sources: &sources,
        trace: &trace,
        packets: &packets,
        report: report.as_ref(),
    };
    print(&match args.json {
        true => {
            let mut json = to_json(&story);
            if over.is_some() {
                json["rack"] = paths.into_iter().map(|(_, path)| path).collect();
            }
            format!("{json:#}\n")
        }
        false => {
            let mut text = tell(&story, Paint(colours(&stdout())));
            for ((path, _), (said, _)) in paths.iter().zip(&packets) {
                text += &format!("\nover the rack  {said}\n\n{path}");
            }
            text
        }
    });
    Ok(if router.errors() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A chain that is divided between the switch of a rack and cores.
struct Over {
    loaded: Loaded,
    rack: Rack,
    compiled: Compiled,
    /// By segment and step: what the artefact has for it.
    places: BTreeMap<(usize, StepId), String>,
}

impl Over {
    fn new(args: &Explain, path: &str) -> Result<Self, Failure> {
        let (loaded, rack) = Rack::load(path, &args.limits, &args.variables, &args.file)?;
        let compiled = rack.sited.compile(&loaded, None)?;
        let places = {
            let origin = compile::origin(&loaded.chain, &loaded.sources);
            places(rack.sited.target.name(), &compiled.device(&origin))
        };
        Ok(Self { loaded, rack, compiled, places })
    }

    /// The path of a frame that comes to an entry: for people, and for programs.
    fn follow(
        &self,
        entry: Option<Port>,
        frame: &[u8],
        core: &mut elements::context::WorkerResources,
    ) -> Result<(String, serde_json::Value), String> {
        let Loaded { sources, chain, models, .. } = &self.loaded;
        let target = &self.rack.switch;
        let offloaded =
            Offloaded { chain, sources, models, target, compiled: &self.compiled, shares: &[] };
        let mut parts = self.compiled.parts.iter();
        let Some(number) = parts.position(|part| Some(part.program.entry) == entry) else {
            let why = format!("{target} does not see it: it comes in behind no wire\n");
            return Ok((why, serde_json::Value::Null));
        };
        let part = &self.compiled.parts[number];
        let wire = part.wires.join(", ");
        let ports = part.wires.iter().filter_map(|wire| self.rack.sited.site.ports.get(wire));
        let ports: Vec<String> = ports.map(|port| port.number.to_string()).collect();
        let wire = format!("{wire} (port {})", ports.join(", "));
        let packet = core.pool.packet(frame);
        let followed = part.follow(&packet, &mut core.pool);
        core.pool.recycle(packet);
        let followed = followed.map_err(|fault| format!("{fault:?}"))?;
        let places = |part: usize, step: StepId| self.places.get(&(part, step)).cloned();
        let server = self.rack.sited.site.server_names();
        let paint = Paint(colours(&stdout()));
        let text = offloaded.followed((number, &wire), &followed, &places, (&server, paint));
        Ok((text, offloaded.followed_json((number, &wire), &followed, &places)))
    }
}

/// The first few entries, a line for each.
fn few(all: &[&FlowEntry], shown: impl Fn(&FlowEntry) -> String) -> String {
    let mut lines: Vec<String> =
        all.iter().take(FEW).map(|entry| format!("  │     {}", shown(entry))).collect();
    if all.len() > FEW {
        lines.push(format!("  │     … {} more", all.len() - FEW));
    }
    lines.join("\n")
}

/// Entries that are shown where one of several takes a packet.
const FEW: usize = 4;

/// What an artefact has for steps: tables and entries that lead there, or instructions.
fn places(target: &str, device: &Device<'_>) -> BTreeMap<(usize, StepId), String> {
    let mut places: BTreeMap<(usize, StepId), String> = BTreeMap::new();
    if let Some(Ok(entries)) = openflow::entries(target, device) {
        let mut all: BTreeMap<(usize, StepId), Vec<&FlowEntry>> = BTreeMap::new();
        for entry in &entries {
            if let Some(Class::Exit(segment, step) | Class::Inner(segment, step)) =
                Class::of(entry.flow.cookie)
            {
                all.entry((segment.into(), StepId(step))).or_default().push(entry);
            }
        }
        for (at, entries) in all {
            // Cookies are numbered by who installs them.
            let shown = |entry: &FlowEntry| {
                let text = entry.flow.to_string();
                let bare = text.split_once(',').map_or("", |(_, rest)| rest);
                format!("{bare}  # {}", entry.origin)
            };
            let said = match &entries[..] {
                [entry] => shown(entry),
                all => {
                    let table = all[0].flow.table;
                    format!("table={table}, one of {} entries:\n{}", all.len(), few(all, shown))
                }
            };
            places.insert(at, said);
        }
    } else if target == ebpf::EBPF.name()
        && let Ok(compiled) = ebpf::compile(device)
    {
        for (segment, blocks) in compiled.blocks.iter().enumerate() {
            let ends = blocks.iter().skip(1).map(|block| block.first);
            let ends = ends.chain([compiled.object.programs[segment].words.len()]);
            for (block, end) in blocks.iter().zip(ends).filter(|(block, end)| block.first < *end) {
                let said = format!("instructions {} to {}", block.first, end.saturating_sub(1));
                places.entry((segment, block.step)).or_insert(said);
            }
        }
    }
    places
}

/// Makes the chain's elements, watched, with no device opened.
fn start(
    (sources, file): (&mut Sources, ir::FileId),
    files: &mut Disk,
    options: &compiler::Options,
    trace: &Rc<RefCell<Trace>>,
    clock: &VirtualClock,
    seed: u64,
    found: &mut Vec<ir::Diagnostic>,
) -> Option<(Chain, Router, Vec<Model>)> {
    let (chain, diagnostics) = compiler::elaborate(sources, file, options, files);
    found.extend(diagnostics);
    let chain = chain?;
    let mut made = compiler::instantiate(&chain, sources, files, found)?;
    let mut stage = Stage(Rc::clone(trace));
    if !made.initialize(&chain, sources, files, &mut stage, found) {
        return None;
    }
    let models = made.elements.iter().map(|e| e.model()).collect();
    let elements = Trace::watch(trace, &chain.graph, made.elements);
    let listener = Box::new(Hearing(Rc::clone(trace)));
    let mut router = Router::new(&chain.graph, elements, Box::new(clock.clone()), seed, listener);
    router.forbid_writing();
    router.limit_turns(MAX_TURNS);
    Some((chain, router, models))
}
