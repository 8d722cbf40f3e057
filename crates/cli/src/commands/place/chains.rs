//! Chains of a manifest that are Click: read, taken apart into functions, and asked what each device would do of these.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use codegen::Target;
use codegen::stages::{Hardware, Member};
use compiler::functions::{self, Around, Functions, candidate, shared};
use compiler::partition::Trust;
use elements::configure::Files;
use engine::Disk;
use engine::control::protocol::CountersAnswer;
use ir::topology::Topology;
use ir::{Diagnostic, FileId, Sources, Span};
use placement::{
    Click, Costs, Function, GUESS, Hop, Kind, Library, Outline, Text, Traffic, Wanted,
};
use view::candidates::{Known, Verdict};

use super::inline::Inline;
use super::switch;
use crate::commands::compile::origin;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::{ModelledChain, make};

/// A device that is no core.
struct Device {
    name: String,
    kind: Kind,
    target: &'static dyn Target,
    hardware: Option<Hardware>,
}

/// The chains of a manifest, and the rack that they are placed on.
pub(super) struct Chains<'a> {
    pub(super) sources: Sources,
    manifest: FileId,
    files: Disk,
    limits: &'a Limits,
    topology: &'a Topology,
    devices: Vec<Device>,
    costs: Costs,
    /// Files of cost profiles that were read.
    profiles: BTreeSet<String>,
    /// When it is, in seconds since 1970.
    now: u64,
    /// What is known of functions.
    pub(super) known: Vec<Known>,
    /// Tables that functions are on the first switch.
    pub(super) tables: switch::Known,
    /// Chains as they were read, if they are wanted.
    pub(super) read: Option<Vec<Read>>,
}

/// A chain of a manifest.
pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) chain: compiler::Chain,
    pub(crate) functions: Functions,
    pub(crate) traffic: Vec<Traffic>,
    /// Frames of its traffic.
    pub(crate) frames: Vec<Vec<u8>>,
    /// A digest of what its elements read, such as lists of rules.
    pub(crate) digest: u64,
}

impl<'a> Chains<'a> {
    /// Those of a manifest that was read.
    pub(super) fn new(
        (sources, manifest, files): (Sources, FileId, Disk),
        limits: &'a Limits,
        topology: &'a Topology,
        now: u64,
    ) -> Result<Self, Failure> {
        let mut devices = Vec::new();
        for (name, switch) in &topology.switches {
            let (arch, device) = (switch.arch.as_deref(), switch.device.as_deref());
            let target = codegen::target_for(&switch.target, arch, device)?;
            let named = device.or(target.hardware());
            let hardware = named.map(Hardware::known).transpose()?;
            devices.push(Device { name: name.clone(), kind: Kind::Switch, target, hardware });
        }
        for (server, of) in &topology.servers {
            for (port, card) in of.ports.iter().filter(|(_, port)| port.card.is_some()) {
                let Some(target) = card.target.as_deref().and_then(codegen::target) else {
                    continue;
                };
                let name = format!("{server}.{port}");
                devices.push(Device { name, kind: Kind::Card, target, hardware: None });
            }
        }
        Ok(Self {
            sources,
            manifest,
            files,
            limits,
            topology,
            devices,
            costs: Costs::default(),
            profiles: BTreeSet::new(),
            now,
            known: Vec::new(),
            tables: switch::Known::new(),
            read: None,
        })
    }

    /// The switch that functions are placed on, and what it has room for, if that is known.
    pub(super) fn switch(&self) -> (&str, Option<Hardware>) {
        let first = self.devices.iter().find(|of| of.kind == Kind::Switch);
        first.map_or(("", None), |of| (&of.name, of.hardware.clone()))
    }

    /// Reads a cost profile, once.
    pub(super) fn profile(&mut self, path: &str) -> Result<(), Vec<Diagnostic>> {
        if !self.profiles.insert(path.to_string()) {
            return Ok(());
        }
        let file = self.read(path).map_err(|why| vec![Diagnostic::error("costs", why)])?;
        let text = std::sync::Arc::clone(self.sources.text(file));
        self.costs.read(file, &text)
    }

    /// Reads cost profiles that the manifest names.
    fn profiles(&mut self, all: &[(&str, Span)]) -> Result<(), Vec<Diagnostic>> {
        for (path, span) in all {
            self.profile(path).map_err(|mut found| {
                for error in &mut found {
                    if error.labels.is_empty() {
                        *error = error.clone().label(*span, "");
                    }
                }
                found
            })?;
        }
        Ok(())
    }

    /// Reads a file, which may lie beside the manifest.
    fn read(&mut self, path: &str) -> Result<FileId, String> {
        let read = self.files.read(&mut self.sources, self.manifest, path);
        read.map_err(|why| format!("{path}: {why}"))
    }

    /// The source of a chain that stands in the manifest.
    fn inline(&mut self, chain: &Click<'_>, text: &str) -> Result<Inline, Vec<Diagnostic>> {
        let mut bodies = Vec::new();
        let mut found = Vec::new();
        for (name, file, span) in &chain.functions {
            match self.read(file) {
                Ok(id) => bodies.push((*name, id)),
                Err(why) => found.push(Diagnostic::error("manifest", why).label(*span, "")),
            }
        }
        if !found.is_empty() {
            return Err(found);
        }
        let topology = self.topology;
        let is_wire = |name: &str| topology.wires.contains_key(name);
        Ok(Inline::of(chain, text, &bodies, &mut self.sources, &is_wire))
    }

    /// What frames are known to be, whichever of some wires they come from.
    fn trust(&self, functions: &Functions) -> Vec<Trust> {
        let wires: BTreeSet<&String> = functions.entries.values().flatten().collect();
        let trusted = |wire: &&String, name: &str| {
            let port = self.topology.wires.get(*wire);
            let port =
                port.and_then(|at| self.topology.switches.get(&at.device)?.ports.get(&at.port));
            port.is_some_and(|port| port.trust.iter().any(|of| of == name))
        };
        let all = Trust::ALL
            .iter()
            .filter(|(name, _)| !wires.is_empty() && wires.iter().all(|wire| trusted(wire, name)));
        all.map(|(_, trust)| *trust).collect()
    }

    /// What is known of a function, and what can run it.
    fn function(
        &mut self,
        chain: &Click<'_>,
        made: &ModelledChain,
        (function, outputs): (&functions::Function, usize),
        (trust, frames): (&[Trust], &[Vec<u8>]),
    ) -> Function {
        let ModelledChain { chain: whole, models, owns_parts, .. } = made;
        let graph = &whole.graph;
        let words = origin(whole, &self.sources);
        let wires = made.wires();
        let mut tables = None;
        let mut verdict = |device: &Device| {
            let around = Around {
                hardware: device.hardware.as_ref(),
                trust,
                frames,
                wires: &wires,
                origin: &words,
            };
            let found = candidate((graph, models), function, device.target, &around);
            if let Ok(of) = &found
                && device.kind == Kind::Switch
                && let Some(pipeline) = &of.pipeline
                && tables.is_none()
            {
                tables = Some(Member {
                    name: format!("{} of {}", function.name, chain.name),
                    pipeline: pipeline.clone(),
                    numbers: of.numbers,
                    forks: outputs > 1,
                });
            }
            Verdict::of((&device.name, device.kind), (whole, &self.sources), &found)
        };
        let devices: Vec<Verdict> = self.devices.iter().map(&mut verdict).collect();
        let entries_of = |of: &Member| of.pipeline.tables.iter().map(|table| table.entries).sum();
        let entries = tables.as_ref().map_or(0, entries_of);
        if let Some(member) = tables {
            self.tables.insert((chain.name.to_string(), function.name.clone()), member);
        }
        let shares = function.elements.iter().find_map(|&node| {
            let why = shared(&models[node], owns_parts[node])?;
            Some(format!(
                "{} ({}): {why}",
                graph.nodes[node].name,
                self.sources.landmark(graph.nodes[node].span)
            ))
        });
        let flows: u64 = chain.traffic.iter().filter_map(|of| of.flows).sum();
        let wanted = Wanted {
            chain: match chain.text {
                Text::File(path) => Some(path),
                Text::Inline(_) => None,
            },
            names: [&function.full_name, &function.name, &function.class],
            rules: function.rules(models),
            flows: (flows > 0).then_some(flows),
        };
        let cost = self.costs.of(&wanted);
        let (cycles, is_guess) = cost.as_ref().map_or((GUESS, true), |known| (known.cycles, false));
        let words = cost.map_or_else(
            || "a guess: no profile has it".to_string(),
            |known| {
                let file = self.sources.name(known.file);
                format!("{}, in {file}", view::candidates::cost(&known, self.now))
            },
        );
        let mut runs_on: Vec<Kind> =
            devices.iter().filter(|of| of.runs).map(|of| of.kind).chain([Kind::Core]).collect();
        runs_on.sort_unstable();
        runs_on.dedup();
        let replicates = shares.is_none();
        let keeps_flows = |node: &ir::NodeId| {
            let state = &models[*node].state;
            state.iter().any(|of| matches!(of.kind, ir::model::StateKind::Flows { .. }))
        };
        let flows = if function.elements.iter().any(keeps_flows) { flows } else { 0 };
        self.known.push(Known {
            chain: chain.name.to_string(),
            function: function.name.clone(),
            class: function.class.clone(),
            cycles,
            cost: words,
            is_guess,
            shared: shares,
            devices,
        });
        Function {
            name: function.name.clone(),
            runs_on,
            core_cycles: cycles,
            card_cycles: cycles,
            replicates,
            entries,
            flows,
            waits: 0.0,
        }
    }
}

impl Library for Chains<'_> {
    fn outline(&mut self, chain: &Click<'_>) -> Result<Outline, Vec<Diagnostic>> {
        let wrong = |why: String| vec![Diagnostic::error("manifest", why).label(chain.span, "")];
        self.profiles(&chain.costs)?;
        let (file, inline) = match chain.text {
            Text::File(path) => (self.read(path).map_err(wrong)?, None),
            Text::Inline(text) => {
                let inline = self.inline(chain, text)?;
                (inline.file, Some(inline))
            }
        };
        let folder = Path::new(self.sources.name(file)).parent();
        let folder = folder.map_or_else(PathBuf::new, Path::to_path_buf);
        let options = self.limits.options(Vec::new());
        let made = make(&mut self.sources, &mut self.files, file, &options, folder);
        let made = made.map_err(|found| match &inline {
            Some(inline) => inline.placed(found),
            None => found,
        })?;
        let functions = Functions::of(&made.chain.graph, &made.wires());
        let trust = self.trust(&functions);
        let frames = frames(&chain.traffic);
        let functions_of = |(at, function): (usize, &functions::Function)| {
            let of = (function, functions.outputs(at));
            (self.function(chain, &made, of, (&trust, &frames)), function.class.clone())
        };
        let outline = Outline {
            functions: functions.all.iter().enumerate().map(functions_of).collect(),
            links: functions.links.clone(),
            entries: functions.entries.keys().copied().collect(),
            exits: functions.exits.clone(),
        };
        if let Some(read) = &mut self.read {
            let (name, traffic) = (chain.name.to_string(), chain.traffic.clone());
            let (chain, digest) = (made.chain, made.digest);
            read.push(Read { name, chain, functions, traffic, frames, digest });
        }
        Ok(outline)
    }

    fn hop(
        &mut self,
        words: &str,
        bytes: f64,
        costs: &[(&str, Span)],
    ) -> Result<Hop, Vec<Diagnostic>> {
        self.profiles(costs)?;
        self.costs.hop(words, bytes).map_err(|why| vec![Diagnostic::error("costs", why)])
    }

    fn counters(&mut self, path: &str) -> Result<BTreeMap<String, u64>, String> {
        // The manifest's own message names the file.
        let file = self.files.read(&mut self.sources, self.manifest, path);
        let file = file.map_err(|why| why.to_string())?;
        let expected = "it is not what `catena ctl counters --json` prints";
        counted(self.sources.text(file)).ok_or_else(|| expected.to_string())
    }
}

/// Packets of functions in what `catena ctl counters --json` prints.
fn counted(text: &str) -> Option<BTreeMap<String, u64>> {
    let answer: CountersAnswer = serde_json::from_str(text).ok()?;
    Some(answer.all?.functions.into_iter().map(|of| (of.name, of.packets)).collect())
}

/// Frames that are tried.
const TRIED: u32 = 256;

/// Frames of UDP and TCP whose addresses are spread over those of the traffic; without any, over two networks.
fn frames(traffic: &[Traffic]) -> Vec<Vec<u8>> {
    let usual = Traffic::default();
    let kinds: Vec<&Traffic> =
        if traffic.is_empty() { vec![&usual] } else { traffic.iter().collect() };
    // Numbers that look random, and are the same each time (Knuth's multiplicative hash).
    let spread = |number: u32| number.wrapping_mul(0x9e37_79b1);
    let address = |network: Option<(Ipv4Addr, u8)>, usual: Ipv4Addr, number: u32| {
        let (base, bits) = network.unwrap_or((usual, 8));
        let host = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
        // Neither the network's own address nor its broadcast.
        let within = if host > 1 { 1 + spread(number) % (host - 1) } else { spread(number) & host };
        Ipv4Addr::from((u32::from(base) & !host) | within)
    };
    let frame = |number: u32| {
        let of = kinds[number as usize % kinds.len()];
        let source = address(of.source, Ipv4Addr::new(10, 0, 0, 0), number);
        let destination = address(of.destination, Ipv4Addr::new(20, 0, 0, 0), number + TRIED);
        let protocol = if number % 4 < 2 { "udp" } else { "tcp" };
        let port = 1024 + spread(number) % 60_000;
        let to = [80, 443, 53, 8080][(number as usize / 3) % 4];
        net::notation::parse(&format!("{protocol} {source}:{port} > {destination}:{to} size 64"))
            .ok()
    };
    (0..TRIED).filter_map(frame).collect()
}
