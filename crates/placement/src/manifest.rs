//! The manifest: chains of network functions with their SLOs, in YAML.
//!
//! ```yaml
//! packet: 1500 bytes
//! require: [functions.click]
//! costs: [costs.json]
//! chains:
//!   - name: customer-7
//!     chain: ACL(c7.rules) -> NAPT(198.51.100.7) -> Router(r7.routes)
//!     traffic: [{ in: isp, src: 10.7.0.0/16 }]
//!     slo: { min: 2 Gbps, max: 10 Gbps, delay: 45 us, price: 1.0 }
//!   - name: customer-8
//!     file: customer-8.click
//!     splits: { url/web: 0.3 }
//!     slo: { elastic-pipe: [2 Gbps, 10 Gbps] }
//! ```
//!
//! Chains are Click, which whoever reads it for the manifest understands ([`Library`]). Without Click, `functions` says by hand
//! what each costs and runs on, and `chain` names them: `name :: Function` where one is named again. Without `splits`, the
//! outputs of a function get equal shares.

mod drawn;
mod measured;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use ir::quantity::Unit;
use ir::topology::{PortName, Topology};
use ir::yaml::Reading;
use ir::{Diagnostic, FileId, Span, nearest};
use serde_saphyr::Spanned;

use crate::costs::Hop;
use crate::problem::{Card, Chain, Function, Host, Kind, Problem, Replication, Slo, Wish};
use drawn::Drawn;

/// Chains, as a manifest has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// A packet's length in bits.
    pub packet_bits: f64,
    /// Whether no chain shall get more as long as one with less could have it.
    pub fair: bool,
    /// Chains.
    pub chains: Vec<Chain>,
}

/// Functions that a chain may have: more are an error.
const MAX_FUNCTIONS: usize = 256;

/// Chains that a manifest may have: more are an error.
const MAX_CHAINS: usize = 100_000;

/// An 802.1Q tag, which packets have on links between the switch and hosts, in bits.
const TAG: f64 = 32.0;

/// A rate that no chain has, for SLOs that have no greatest.
const UNBOUNDED: f64 = 1e12;

/// What knows Click: finds the functions of chains.
pub trait Library {
    /// The functions of a chain, and how they are connected.
    ///
    /// # Errors
    /// All that is wrong with its text.
    fn outline(&mut self, chain: &Click<'_>) -> Result<Outline, Vec<Diagnostic>>;

    /// What it takes packets of so many bytes to get to a process over a switch. `words` name the switch, and perhaps the I/O
    /// mode behind it; `costs` are the profiles that the manifest names.
    ///
    /// # Errors
    /// Why that is not known.
    fn hop(
        &mut self,
        words: &str,
        _bytes: f64,
        _costs: &[(&str, Span)],
    ) -> Result<Hop, Vec<Diagnostic>> {
        Err(vec![Diagnostic::error("costs", format!("hops over {words} are not known here"))])
    }

    /// By function: the packets that came into it in a run whose counters a file has.
    ///
    /// # Errors
    /// Why they cannot be read, in words.
    fn counters(&mut self, _path: &str) -> Result<BTreeMap<String, u64>, String> {
        Err("counters are not read here".into())
    }
}

/// It knows no Click.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByHand;

impl Library for ByHand {
    fn outline(&mut self, chain: &Click<'_>) -> Result<Outline, Vec<Diagnostic>> {
        let message = "chains in Click are not read here";
        Err(vec![Diagnostic::error("manifest", message).label(chain.span, "")])
    }
}

/// A chain in Click.
#[derive(Clone, Debug)]
pub struct Click<'a> {
    /// Its name in the manifest.
    pub name: &'a str,
    /// Its file, or its text.
    pub text: Text<'a>,
    /// Libraries that texts of the manifest have.
    pub require: Vec<(&'a str, Span)>,
    /// Cost profiles that the manifest names.
    pub costs: Vec<(&'a str, Span)>,
    /// Functions with a file of their own: names, files.
    pub functions: Vec<(&'a str, &'a str, Span)>,
    /// Traffic.
    pub traffic: Vec<Traffic>,
    /// Where the manifest has it.
    pub span: Span,
}

/// Where a chain's Click stands.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// In this file.
    File(&'a str),
    /// In the manifest.
    Inline(&'a str),
}

/// Traffic that a chain takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The wire that it comes from.
    pub from: Option<String>,
    /// The wire that it goes to.
    pub to: Option<String>,
    /// Its source addresses: one, and how many of its bits all have.
    pub source: Option<(std::net::Ipv4Addr, u8)>,
    /// Its destination addresses.
    pub destination: Option<(std::net::Ipv4Addr, u8)>,
    /// How many flows there are.
    pub flows: Option<u64>,
}

/// A chain's functions in Click.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Functions, each with its class, and what can run it.
    pub functions: Vec<(Function, String)>,
    /// From which output of a function to which.
    pub links: Vec<(usize, usize, usize)>,
    /// The functions that packets enter.
    pub entries: Vec<usize>,
    /// The outputs of functions at which packets leave the chain, and the wires that they go to.
    pub exits: Vec<(usize, usize, String)>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// All that is wrong with it, and with its chains.
    pub fn parse(
        file: FileId,
        text: &str,
        library: &mut dyn Library,
    ) -> Result<Self, Vec<Diagnostic>> {
        let help = "a chain with `::` stands in quotes, or behind `|` on lines of its own";
        let (written, errors) =
            Reading::of::<written::Manifest>(file, text, "manifest", Some(help))?;
        let mut reading = Chains { found: errors, library };
        let manifest = reading.manifest(&written);
        match reading.found.found.is_empty() {
            true => Ok(manifest),
            false => Err(reading.found.found),
        }
    }

    /// The problem of placing its chains on a rack.
    ///
    /// # Errors
    /// What the topology lacks, in words.
    pub fn on(self, topology: &Topology) -> Result<Problem, String> {
        let mut hosts = Vec::new();
        for (name, server) in &topology.servers {
            let Some(cores) = server.cores else { continue };
            let linked = server.ports.iter().filter(|(port, _)| {
                let port = PortName { device: name.clone(), port: (*port).clone() };
                topology
                    .peer(&port)
                    .is_some_and(|peer| topology.switches.contains_key(&peer.device))
            });
            let linked: Vec<_> = linked.collect();
            let [(port, of)] = linked[..] else {
                return Err(format!(
                    "{} links lead from '{name}' to switches: cores are behind one; a server with several is written as \
                     several, each with its cores",
                    linked.len()
                ));
            };
            let Some(link_rate) = of.rate else {
                return Err(format!("'{name}.{port}' has no rate, such as `rate: 40 Gbps`"));
            };
            hosts.push(Host {
                name: name.clone(),
                cores: cores.count,
                hertz: cores.hertz,
                link_rate,
                link_delay: of.delay,
                card: of.card.map(|hertz| Card { hertz }),
            });
        }
        if hosts.is_empty() {
            return Err("no server of the topology has cores, such as `cores: 16`".into());
        }
        if topology.switches.len() > 1 {
            return Err("the topology has several switches: chains are placed behind one".into());
        }
        Ok(Problem {
            chains: self.chains,
            hosts,
            packet_bits: self.packet_bits,
            tag_bits: TAG,
            replication: Replication::Model,
            headroom: 0.0,
        })
    }
}

/// The chains of a manifest while they are read.
struct Chains<'l> {
    found: Reading,
    library: &'l mut dyn Library,
}

/// What a manifest says of a function by hand.
#[derive(Clone, Debug, Default)]
struct Said {
    on: Option<Vec<Kind>>,
    cycles: Option<f64>,
    card_cycles: Option<f64>,
    replicates: Option<bool>,
    /// How packets get to its process, which is its own.
    hop: Option<Hop>,
}

impl Said {
    /// A function of which nothing else is known.
    fn alone(&self, name: &str) -> Function {
        let cycles = self.cycles.unwrap_or(0.0);
        Function {
            name: name.to_string(),
            runs_on: self.on.clone().unwrap_or_default(),
            core_cycles: cycles,
            card_cycles: self.card_cycles.unwrap_or(cycles),
            replicates: self.replicates.unwrap_or(true),
            entries: 0,
            flows: 0,
            waits: 0.0,
        }
    }

    /// What is said goes before what was found.
    fn correct(&self, function: &mut Function) {
        if let Some(on) = &self.on {
            function.runs_on.clone_from(on);
        }
        if let Some(cycles) = self.cycles {
            (function.core_cycles, function.card_cycles) = (cycles, cycles);
        }
        if let Some(cycles) = self.card_cycles {
            function.card_cycles = cycles;
        }
        if let Some(replicates) = self.replicates {
            function.replicates = replicates;
        }
    }
}

impl Chains<'_> {
    fn manifest(&mut self, written: &written::Manifest) -> Manifest {
        let packet_bits = written
            .packet
            .as_ref()
            .map_or(12_000.0, |text| self.found.quantity(text, Unit::Length));
        let objective = written.objective.as_ref();
        let fair = objective.is_some_and(|of| of.value == "fair");
        if let Some(of) = objective.filter(|of| !["fair", "gain"].contains(&of.value.as_str())) {
            let help = Some("there are gain and fair".into());
            self.found.wrong(of, format!("there is no objective '{}'", of.value), help);
        }
        let mut said: BTreeMap<&str, Said> = BTreeMap::new();
        for (name, function) in &written.functions {
            let function = Said {
                on: function.on.as_ref().map(|on| self.kinds(on)),
                cycles: self.cycles(name, function.cycles.as_ref()),
                card_cycles: self.cycles(name, function.card_cycles.as_ref()),
                replicates: function.replicates,
                hop: self.hop(function.hop.as_ref(), packet_bits, &written.costs),
            };
            if let (Some(on), None) = (&function.on, function.cycles)
                && on.contains(&Kind::Core)
                && let Some(first) = written.functions[name].on.iter().flatten().next()
            {
                let help = Some("say what a packet costs, such as `cycles: 985`".into());
                self.found.wrong(first, format!("{name} runs on cores and has no cycles"), help);
            }
            said.insert(name, function);
        }
        let by_hand = written.require.is_empty() && said.values().any(|of| of.on.is_some());
        let mut names = BTreeSet::new();
        let mut chains = Vec::new();
        if let Some(one) = written.chains.get(MAX_CHAINS) {
            let message =
                format!("{} chains, at most {MAX_CHAINS} are placed", written.chains.len());
            self.found.wrong(&one.name, message, None);
            return Manifest { packet_bits, fair, chains };
        }
        for chain in &written.chains {
            if !names.insert(&chain.name.value) {
                let message = format!("two chains are called '{}'", chain.name.value);
                self.found.wrong(&chain.name, message, None);
            }
            chains.extend(self.chain(chain, written, &said, by_hand));
        }
        Manifest { packet_bits, fair, chains }
    }

    /// The kinds of devices that are named.
    fn kinds(&mut self, words: &[Spanned<String>]) -> Vec<Kind> {
        let kinds = words.iter().filter_map(|word| self.kind(word, &word.value));
        kinds.collect::<BTreeSet<Kind>>().into_iter().collect()
    }

    fn kind(&mut self, at: &Spanned<String>, word: &str) -> Option<Kind> {
        let kind = Kind::ALL.iter().find(|(kind, _)| *kind == word);
        if kind.is_none() {
            let help = Some("there are switch, card and core".to_string());
            self.found.wrong(at, format!("there is no kind of device '{word}'"), help);
        }
        kind.map(|(_, kind)| *kind)
    }

    fn cycles(&mut self, name: &str, cycles: Option<&Spanned<f64>>) -> Option<f64> {
        let cycles = cycles?;
        if !(cycles.value > 0.0 && cycles.value <= MAX_CYCLES) {
            let message = format!("{name} takes {} cycles", cycles.value);
            let help = format!("cycles of a packet are above 0, and at most {MAX_CYCLES}");
            self.found.wrong(cycles, message, Some(help));
        }
        Some(cycles.value)
    }

    fn hop(
        &mut self,
        words: Option<&Spanned<String>>,
        packet_bits: f64,
        costs: &[Spanned<String>],
    ) -> Option<Hop> {
        let words = words?;
        let costs = self.named(costs);
        let hop = self.library.hop(&words.value, packet_bits / 8.0, &costs);
        let at = self.found.span(words);
        let labelled = |error: Diagnostic| match error.labels.is_empty() {
            true => error.label(at, ""),
            false => error,
        };
        hop.map_err(|found| self.found.found.extend(found.into_iter().map(labelled))).ok()
    }

    fn chain(
        &mut self,
        written: &written::Chain,
        manifest: &written::Manifest,
        said: &BTreeMap<&str, Said>,
        by_hand: bool,
    ) -> Option<Chain> {
        let before = self.found.found.len();
        let slo = self.slo(&written.slo);
        let drawn = match (&written.chain, &written.file) {
            (Some(text), None) if by_hand && written.nfs.is_empty() => {
                let functions = said.iter().map(|(name, of)| (*name, of.alone(name))).collect();
                Drawn::read(&text.value, &functions).map_err(|(message, help)| {
                    self.found.wrong(text, message, help);
                })
            }
            (Some(text), None) => {
                self.click(written, manifest, said, text, Text::Inline(&text.value))
            }
            (None, Some(file)) => {
                self.click(written, manifest, said, file, Text::File(&file.value))
            }
            _ => {
                let help = Some("`file: chain.click` or `chain: ACL(rules) -> NAT`".into());
                let message =
                    format!("chain {} is in one place: a file, or here", written.name.value);
                self.found.wrong(&written.name, message, help);
                Err(())
            }
        };
        let mut drawn = drawn.ok()?;
        let hops = said.iter().filter_map(|(name, of)| Some((name, of.hop?)));
        let hops = hops.flat_map(|(name, hop)| {
            drawn.all_called(name).into_iter().map(move |at| (at, hop)).collect::<Vec<_>>()
        });
        let hops = hops.collect();
        drawn.in_processes(&hops);
        self.shares(&written.splits, &mut drawn);
        let wishes = self.wishes(written, &drawn);
        let names: Vec<String> = drawn.names().map(str::to_string).collect();
        let (functions, edges) = match drawn.in_order() {
            Ok(ordered) => ordered,
            Err(message) => {
                self.found.wrong(written.text(), message, None);
                return None;
            }
        };
        // Functions have other numbers now.
        let at = |of: usize| functions.iter().position(|function| function.name == names[of]);
        let at = |of: usize| at(of).unwrap_or(0);
        let wishes = wishes.into_iter().map(|wish| match wish {
            Wish::Only(of, kinds) => Wish::Only(at(of), kinds),
            Wish::Never(of, kinds) => Wish::Never(at(of), kinds),
            Wish::Together(a, b) => Wish::Together(at(a), at(b)),
            Wish::Apart(a, b) => Wish::Apart(at(a), at(b)),
        });
        let wishes = wishes.collect();
        let chain = Chain { name: written.name.value.clone(), functions, edges, slo, wishes };
        if self.found.found.len() == before {
            for fault in chain.faults() {
                self.found.wrong(&written.name, fault, None);
            }
        }
        Some(chain)
    }

    /// What the library makes of a chain.
    fn click(
        &mut self,
        written: &written::Chain,
        manifest: &written::Manifest,
        said: &BTreeMap<&str, Said>,
        at: &Spanned<String>,
        text: Text<'_>,
    ) -> Result<Drawn, ()> {
        let functions = written.nfs.iter();
        let functions = functions
            .map(|nf| (nf.name.as_str(), nf.click.value.as_str(), self.found.span(&nf.click)));
        let click = Click {
            name: &written.name.value,
            text,
            require: self.named(&manifest.require),
            costs: self.named(&manifest.costs),
            functions: functions.collect(),
            traffic: Vec::new(),
            span: self.found.span(at),
        };
        let before = self.found.found.len();
        let traffic = written.traffic.iter().map(|of| self.traffic(of)).collect();
        if self.found.found.len() > before {
            return Err(());
        }
        let click = Click { traffic, ..click };
        let mut outline = self.library.outline(&click).map_err(|found| {
            self.found.found.extend(found);
        })?;
        for (function, class) in &mut outline.functions {
            for key in [class.as_str(), &function.name.clone()] {
                if let Some(said) = said.get(key) {
                    said.correct(function);
                }
            }
        }
        if outline.functions.is_empty() {
            let help = "a chain's functions are its compounds: `elementclass ACL { input -> … -> output }`";
            self.found.wrong(at, "the chain has no function".into(), Some(help.into()));
            return Err(());
        }
        if outline.functions.len() > MAX_FUNCTIONS {
            let message = format!("the chain has more than {MAX_FUNCTIONS} functions");
            self.found.wrong(at, message, None);
            return Err(());
        }
        Ok(Drawn::of(outline))
    }

    fn named<'a>(&self, files: &'a [Spanned<String>]) -> Vec<(&'a str, Span)> {
        files.iter().map(|file| (file.value.as_str(), self.found.span(file))).collect()
    }

    fn traffic(&mut self, written: &written::Traffic) -> Traffic {
        let mut prefix = |text: &Option<Spanned<String>>| {
            let text = text.as_ref()?;
            let (address, length) = text.value.split_once('/').unwrap_or((&text.value, "32"));
            let found = address.parse().ok().zip(length.parse().ok().filter(|bits| *bits <= 32));
            if found.is_none() {
                let help = Some("write addresses as 10.7.0.0/16".into());
                self.found.wrong(text, format!("'{}' is no network of IPv4", text.value), help);
            }
            found
        };
        Traffic {
            source: prefix(&written.src),
            destination: prefix(&written.dst),
            from: written.from.clone(),
            to: written.to.clone(),
            flows: written.flows,
        }
    }

    fn slo(&mut self, written: &Spanned<written::Slo>) -> Slo {
        let of = &written.value;
        let mut rate = |text: &Spanned<String>| self.found.quantity(text, Unit::Rate);
        let mut pipes: Vec<(f64, f64)> = Vec::new();
        pipes.extend(of.elastic_pipe.as_ref().map(|[min, max]| (rate(min), rate(max))));
        pipes.extend(of.virtual_pipe.as_ref().map(&mut rate).map(|all| (all, all)));
        pipes.extend(of.infinite_pipe.as_ref().map(&mut rate).map(|min| (min, UNBOUNDED)));
        pipes.extend(of.metered_bulk.as_ref().map(&mut rate).map(|max| (0.0, max)));
        let min = of.min.as_ref().map(&mut rate);
        let max = of.max.as_ref().map(&mut rate);
        let (min, max) = match (pipes[..].first(), pipes.len(), max) {
            (Some(pipe), 1, None) if min.is_none() => *pipe,
            (None, _, Some(max)) => (min.unwrap_or(0.0), max),
            _ => {
                let help = "write `min` and `max`, or one of `elastic-pipe: [2 Gbps, 10 Gbps]`, `virtual-pipe`, \
                            `infinite-pipe`, `metered-bulk: 2 Gbps`";
                let message = "the rates of an SLO are given once: none or several are".into();
                self.found.wrong(written, message, Some(help.into()));
                (0.0, 0.0)
            }
        };
        Slo {
            min,
            max,
            delay: of.delay.as_ref().map(|delay| self.found.quantity(delay, Unit::Time)),
            price: of.price.unwrap_or(1.0),
        }
    }

    /// The shares of branches: of all outputs of a function, or `function/next` for one.
    fn shares(&mut self, splits: &BTreeMap<String, Spanned<written::Split>>, drawn: &mut Drawn) {
        // By function: a port, its share, and where that is said.
        type One<'a> = (usize, &'a Spanned<written::Split>, f64);
        let mut single: BTreeMap<usize, Vec<One<'_>>> = BTreeMap::new();
        for (key, split) in splits {
            if let (MEASURED, written::Split::Measured(path)) = (key.as_str(), &split.value) {
                let counts = self.library.counters(path);
                match counts.and_then(|counts| measured::shares(drawn, &counts)) {
                    Ok(shares) => drawn.shares.extend(shares),
                    Err(why) => self.found.wrong(split, format!("{path}: {why}"), None),
                }
            }
        }
        let by_hand = |(key, split): &(&String, &Spanned<written::Split>)| {
            *key != MEASURED || !matches!(split.value, written::Split::Measured(_))
        };
        for (key, split) in splits.iter().filter(by_hand) {
            let (name, next) = match key.split_once('/') {
                Some((name, next)) if drawn.find(key).is_none() => (name, Some(next)),
                _ => (key.as_str(), None),
            };
            let Some(at) = drawn.find(name) else {
                let help =
                    nearest(name, drawn.names()).map(|near| format!("did you mean '{near}'?"));
                self.found.wrong(split, format!("the chain has no function '{name}'"), help);
                continue;
            };
            match (&split.value, next) {
                (written::Split::Each(shares), None) => {
                    let ports = drawn.ports(at);
                    if shares.len() != ports {
                        let message =
                            format!("{} shares for the {ports} ports of '{name}'", shares.len());
                        self.found.wrong(split, message, None);
                    } else if (shares.iter().sum::<f64>() - 1.0).abs() > 1e-3 {
                        let message = format!("the shares of '{name}' do not add up to 1");
                        self.found.wrong(split, message, None);
                    } else {
                        drawn.shares.insert(at, shares.clone());
                    }
                }
                (written::Split::One(share), Some(next)) => match drawn.port_to(at, next) {
                    Some(port) => single.entry(at).or_default().push((port, split, *share)),
                    None => {
                        let message = format!("no output of '{name}' leads to '{next}'");
                        self.found.wrong(split, message, None);
                    }
                },
                _ => {
                    let help =
                        "write `f: [0.7, 0.3]` for all outputs of f, `f/next: 0.3` for one, or \
                         `measured: counters.json` for what a run counted"
                            .into();
                    self.found.wrong(split, format!("'{key}' has no share"), Some(help));
                }
            }
        }
        for (at, given) in single {
            let (ports, sum) = (drawn.ports(at), given.iter().map(|of| of.2).sum::<f64>());
            let others = ports.saturating_sub(given.len());
            let is_whole = if others == 0 { (sum - 1.0).abs() < 1e-3 } else { sum <= 1.0 };
            if !is_whole || given.iter().any(|of| !(0.0..=1.0).contains(&of.2)) {
                let name = drawn.names().nth(at).unwrap_or_default();
                let message = format!("the shares of '{name}' do not add up to 1");
                self.found.wrong(given[0].1, message, None);
                continue;
            }
            let rest = (1.0 - sum) / others.max(1) as f64;
            let mut shares = vec![rest; ports];
            given.iter().for_each(|(port, _, share)| shares[*port] = *share);
            drawn.shares.insert(at, shares);
        }
    }

    /// Where functions shall run only (`[switch]`), or not (`[not switch]`), and which together or apart.
    fn wishes(&mut self, written: &written::Chain, drawn: &Drawn) -> Vec<Wish> {
        let mut wishes = Vec::new();
        // By function: what is left of the kinds of devices that run it, and where that was wished.
        let mut kinds: Vec<Vec<Kind>> =
            drawn.functions.iter().map(|of| of.runs_on.clone()).collect();
        let mut wished: BTreeMap<usize, Span> = BTreeMap::new();
        for (name, words) in &written.on {
            let Some(first) = words.first() else { continue };
            let (mut only, mut never) = (Vec::new(), Vec::new());
            for word in words {
                match word.value.strip_prefix("not ") {
                    Some(not) => never.extend(self.kind(word, not.trim())),
                    None => only.extend(self.kind(word, &word.value)),
                }
            }
            for at in self.called(name, first, drawn) {
                let could = &drawn.functions[at].runs_on;
                let is_left =
                    |kind: &Kind| (only.is_empty() || only.contains(kind)) && !never.contains(kind);
                kinds[at].retain(is_left);
                wished.insert(at, self.found.span(first));
                if !could.is_empty() && !could.iter().any(is_left) {
                    let can: Vec<String> = could.iter().map(Kind::to_string).collect();
                    let message = format!("'{name}' can run on {} alone", can.join(" and "));
                    let help =
                        Some("the wish leaves nothing that runs it: `--matrix` shows why".into());
                    self.found.wrong(first, message, help);
                }
                wishes.extend((!only.is_empty()).then(|| Wish::Only(at, only.clone())));
                wishes.extend((!never.is_empty()).then(|| Wish::Never(at, never.clone())));
            }
        }
        // By function: the first of those that it shall be together with, and where that was wished.
        let mut first: Vec<usize> = (0..kinds.len()).collect();
        let mut joined: Vec<(usize, Span)> = Vec::new();
        for (pairs, is_together) in [(&written.together, true), (&written.apart, false)] {
            for [a, b] in pairs {
                let ends = [a, b].map(|name| self.called(&name.value, name, drawn));
                let all = ends[0].iter().flat_map(|a| ends[1].iter().map(move |b| (*a, *b)));
                let here = self.found.span(a);
                for (one, other) in all {
                    let (from, to) = (first[one], first[other]);
                    let pair = format!("'{}' and '{}' cannot be", a.value, b.value);
                    if is_together {
                        wishes.push(Wish::Together(one, other));
                        joined.push((one, here));
                        let both: Vec<Kind> = kinds[from]
                            .iter()
                            .copied()
                            .filter(|of| kinds[to].contains(of))
                            .collect();
                        let is_known = !kinds[from].is_empty() && !kinds[to].is_empty();
                        if both.is_empty() && is_known {
                            let can = |of: &[Kind]| {
                                of.iter().map(Kind::to_string).collect::<Vec<_>>().join(" or ")
                            };
                            let (left, right) = (can(&kinds[from]), can(&kinds[to]));
                            let message = format!(
                                "{pair} together: one can be on {left}, the other on {right}"
                            );
                            let others = [one, other].into_iter().filter_map(|of| wished.get(&of));
                            self.contradicts(here, message, others.copied());
                        }
                        kinds[from] = both;
                        first.iter_mut().filter(|of| **of == to).for_each(|of| *of = from);
                    } else {
                        wishes.push(Wish::Apart(one, other));
                        if one == other {
                            let message = format!("{pair} apart: that is one function");
                            self.contradicts(here, message, std::iter::empty());
                        } else if from == to {
                            let message = format!("{pair} apart: they shall be together, too");
                            let others = joined.iter().filter(|(of, _)| first[*of] == from);
                            let others: Vec<Span> = others.map(|(_, span)| *span).collect();
                            self.contradicts(here, message, others.into_iter());
                        }
                    }
                }
            }
        }
        wishes
    }

    /// A wish that contradicts others.
    fn contradicts(&mut self, here: Span, message: String, others: impl Iterator<Item = Span>) {
        let error = Diagnostic::error("manifest", message).label(here, "");
        let error = others.fold(error, |error, at| error.label(at, "and this is wished"));
        self.found.found.push(error);
    }

    /// The functions of that name or class, which has to be there.
    fn called(&mut self, name: &str, at: &Spanned<String>, drawn: &Drawn) -> Vec<usize> {
        let all = drawn.all_called(name);
        if all.is_empty() {
            let help = nearest(name, drawn.names()).map(|near| format!("did you mean '{near}'?"));
            self.found.wrong(at, format!("the chain has no function '{name}'"), help);
        }
        all
    }
}

/// The key of shares that a run counted.
const MEASURED: &str = "measured";

/// Cycles of a packet that are believed.
const MAX_CYCLES: f64 = 1e9;
