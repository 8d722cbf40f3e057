//! The manifest: chains of network functions with their SLOs, in YAML.
//!
//! ```yaml
//! packet: 1500 bytes
//! functions:
//!   ACL: { cycles: 985, on: [switch, core] }
//!   Limiter: { cycles: 20, on: [core], replicates: false }
//!   Forward: { on: [switch] }
//! chains:
//!   - name: customer-7
//!     chain: |
//!       acl :: ACL -> Limiter -> out :: Forward;
//!       acl[1] -> out
//!     splits: { acl: [0.7, 0.3] }
//!     slo: { min: 2 Gbps, max: 10 Gbps, delay: 45 us, price: 1.0 }
//! ```
//!
//! A chain names functions, `name :: Function` where one is named again, and leads from a port of one to others.
//! Without `splits`, the ports of a function get equal shares.

use std::collections::{BTreeMap, BTreeSet};

use ir::quantity::Unit;
use ir::topology::{PortName, Topology};
use ir::yaml::Reading;
use ir::{Diagnostic, FileId, nearest};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::problem::{Card, Chain, Edge, Function, Host, Kind, Problem, Replication, Slo};

mod written {
    //! As it is written.

    use super::{BTreeMap, Deserialize, Spanned};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Manifest {
        pub(super) packet: Option<Spanned<String>>,
        pub(super) functions: BTreeMap<String, Function>,
        pub(super) chains: Vec<Chain>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Function {
        #[serde(default)]
        pub(super) cycles: f64,
        pub(super) card_cycles: Option<f64>,
        pub(super) on: Vec<Spanned<String>>,
        #[serde(default = "yes")]
        pub(super) replicates: bool,
    }

    fn yes() -> bool {
        true
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Chain {
        pub(super) name: Spanned<String>,
        pub(super) chain: Spanned<String>,
        #[serde(default)]
        pub(super) splits: BTreeMap<String, Spanned<Vec<f64>>>,
        pub(super) slo: Slo,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Slo {
        pub(super) min: Option<Spanned<String>>,
        pub(super) max: Spanned<String>,
        pub(super) delay: Option<Spanned<String>>,
        pub(super) price: Option<f64>,
    }
}

/// Chains, as a manifest has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// A packet's length in bits.
    pub packet_bits: f64,
    /// Chains.
    pub chains: Vec<Chain>,
}

/// Functions that a chain may have: more are an error.
const MAX_FUNCTIONS: usize = 256;

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: FileId, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let help = "a chain with `::` stands in quotes, or behind `|` on lines of its own";
        let (written, errors) =
            Reading::of::<written::Manifest>(file, text, "manifest", Some(help))?;
        let mut reading = Chains(errors);
        let manifest = reading.manifest(&written);
        match reading.0.found.is_empty() {
            true => Ok(manifest),
            false => Err(reading.0.found),
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
            replication: Replication::Model,
            headroom: 0.0,
        })
    }
}

/// The chains of a manifest while they are read.
struct Chains(Reading);

impl Chains {
    fn manifest(&mut self, written: &written::Manifest) -> Manifest {
        let packet_bits =
            written.packet.as_ref().map_or(12_000.0, |text| self.0.quantity(text, Unit::Length));
        let mut functions = BTreeMap::new();
        for (name, function) in &written.functions {
            let kinds = function.on.iter().filter_map(|word| {
                let kind = Kind::ALL.iter().find(|(kind, _)| *kind == word.value);
                if kind.is_none() {
                    let help = Some("there are switch, card and core".to_string());
                    self.0.wrong(
                        word,
                        format!("there is no kind of device '{}'", word.value),
                        help,
                    );
                }
                kind.map(|(_, kind)| *kind)
            });
            let kinds: BTreeSet<Kind> = kinds.collect();
            functions.insert(
                name.as_str(),
                Function {
                    name: name.clone(),
                    runs_on: kinds.into_iter().collect(),
                    core_cycles: function.cycles,
                    card_cycles: function.card_cycles.unwrap_or(function.cycles),
                    replicates: function.replicates,
                },
            );
        }
        let mut names = BTreeSet::new();
        let mut chains = Vec::new();
        for chain in &written.chains {
            if !names.insert(&chain.name.value) {
                let message = format!("two chains are called '{}'", chain.name.value);
                self.0.wrong(&chain.name, message, None);
            }
            chains.extend(self.chain(chain, &functions));
        }
        Manifest { packet_bits, chains }
    }

    fn chain(
        &mut self,
        written: &written::Chain,
        functions: &BTreeMap<&str, Function>,
    ) -> Option<Chain> {
        let before = self.0.found.len();
        let mut drawn = match Drawn::read(&written.chain.value, functions) {
            Ok(drawn) => drawn,
            Err((message, help)) => {
                self.0.wrong(&written.chain, message, help);
                return None;
            }
        };
        for (name, shares) in &written.splits {
            let Some(at) = drawn.functions.iter().position(|of| of.name == *name) else {
                let names = drawn.functions.iter().map(|of| of.name.as_str());
                let help = nearest(name, names).map(|near| format!("did you mean '{near}'?"));
                self.0.wrong(shares, format!("the chain has no function '{name}'"), help);
                continue;
            };
            let ports = drawn.links.iter().filter(|(from, ..)| *from == at);
            let ports = ports.map(|(_, port, _)| port + 1).max().unwrap_or(0);
            if shares.value.len() != ports {
                let message =
                    format!("{} shares for the {ports} ports of '{name}'", shares.value.len());
                self.0.wrong(shares, message, None);
            } else if (shares.value.iter().sum::<f64>() - 1.0).abs() > 1e-3 {
                self.0.wrong(shares, format!("the shares of '{name}' do not add up to 1"), None);
            } else {
                drawn.shares.insert(at, shares.value.clone());
            }
        }
        let (functions, edges) = match drawn.in_order() {
            Ok(ordered) => ordered,
            Err(message) => {
                self.0.wrong(&written.chain, message, None);
                return None;
            }
        };
        let slo = Slo {
            min: written.slo.min.as_ref().map_or(0.0, |min| self.0.quantity(min, Unit::Rate)),
            max: self.0.quantity(&written.slo.max, Unit::Rate),
            delay: written.slo.delay.as_ref().map(|delay| self.0.quantity(delay, Unit::Time)),
            price: written.slo.price.unwrap_or(1.0),
        };
        let chain =
            Chain { name: written.name.value.clone(), functions, edges, slo, wishes: Vec::new() };
        if self.0.found.len() == before {
            for fault in chain.faults() {
                self.0.wrong(&written.name, fault, None);
            }
        }
        Some(chain)
    }
}

/// A chain as it is drawn.
#[derive(Default)]
struct Drawn {
    functions: Vec<Function>,
    /// From which port of a function to which.
    links: Vec<(usize, usize, usize)>,
    /// By function: the shares of its ports, where they are not equal.
    shares: BTreeMap<usize, Vec<f64>>,
}

/// What is wrong, and what to do.
type Wrong = (String, Option<String>);

impl Drawn {
    fn read(text: &str, functions: &BTreeMap<&str, Function>) -> Result<Self, Wrong> {
        let mut drawn = Self::default();
        for statement in text.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let mut from: Option<(usize, usize)> = None;
            for step in statement.split("->").map(str::trim) {
                let (step, port) = match step.split_once('[') {
                    None => (step, 0),
                    Some((name, port)) => {
                        let number =
                            port.strip_suffix(']').and_then(|port| port.trim().parse().ok());
                        let number = number.filter(|port| *port < MAX_FUNCTIONS);
                        (name.trim(), number.ok_or((format!("'{step}' names no port"), None))?)
                    }
                };
                let to = drawn.function(step, functions)?;
                if let Some((from, port)) = from {
                    drawn.links.push((from, port, to));
                }
                from = Some((to, port));
            }
        }
        match drawn.functions.is_empty() {
            true => Err(("the chain has no function".into(), None)),
            false => Ok(drawn),
        }
    }

    fn function(&mut self, step: &str, known: &BTreeMap<&str, Function>) -> Result<usize, Wrong> {
        let (name, class) = match step.split_once("::") {
            Some((name, class)) => (Some(name.trim()), class.trim()),
            None => (None, step),
        };
        let declared = self.functions.iter().position(|of| of.name == name.unwrap_or(class));
        match (name, declared) {
            // A function that has no name of its own is another each time.
            (None, Some(at)) if !known.contains_key(class) => return Ok(at),
            (Some(name), Some(_)) => return Err((format!("'{name}' is declared twice"), None)),
            _ => {}
        }
        let Some(function) = known.get(class) else {
            let near = nearest(class, known.keys().copied());
            let help = near.map(|near| format!("did you mean '{near}'?"));
            return Err((format!("there is no function '{class}'"), help));
        };
        let number = self.functions.len();
        if number == MAX_FUNCTIONS {
            return Err((format!("the chain has more than {MAX_FUNCTIONS} functions"), None));
        }
        let name = match name {
            Some(name) => name.to_string(),
            None => {
                let same =
                    self.functions.iter().filter(|of| of.name.split('@').next() == Some(class));
                match same.count() {
                    0 => class.to_string(),
                    more => format!("{class}@{}", more + 1),
                }
            }
        };
        self.functions.push(Function { name, ..function.clone() });
        Ok(number)
    }

    /// Functions behind all that lead to them, and what connects them.
    fn in_order(&self) -> Result<(Vec<Function>, Vec<Edge>), String> {
        let count = self.functions.len();
        let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
        for (from, _, to) in &self.links {
            before[*to].insert(*from);
        }
        let entries = (0..count).filter(|at| before[*at].is_empty());
        let entries: Vec<&str> = entries.map(|at| self.functions[at].name.as_str()).collect();
        if entries.len() > 1 {
            return Err(format!("packets enter at one function, not at {}", entries.join(", ")));
        }
        let mut order: Vec<usize> = Vec::new();
        while order.len() < count {
            let next = (0..count).find(|at| {
                !order.contains(at) && before[*at].iter().all(|from| order.contains(from))
            });
            order.push(next.ok_or("packets would go in a circle")?);
        }
        let mut place = vec![0; count];
        order.iter().enumerate().for_each(|(at, of)| place[*of] = at);
        let mut edges: Vec<Edge> = Vec::new();
        for (from, port, to) in &self.links {
            let ports: BTreeSet<usize> =
                self.links.iter().filter(|of| of.0 == *from).map(|of| of.1).collect();
            let same = self.links.iter().filter(|of| (of.0, of.1) == (*from, *port)).count();
            if same > 1 {
                let name = &self.functions[*from].name;
                return Err(format!("port {port} of '{name}' leads to {same} functions"));
            }
            let share = match self.shares.get(from) {
                Some(shares) => shares[*port],
                None => 1.0 / ports.len() as f64,
            };
            let (from, to) = (place[*from], place[*to]);
            match edges.iter_mut().find(|edge| (edge.from, edge.to) == (from, to)) {
                Some(edge) => edge.share += share,
                None if share > 0.0 => edges.push(Edge { from, to, share }),
                None => {}
            }
        }
        let functions = order.iter().map(|of| self.functions[*of].clone()).collect();
        Ok((functions, edges))
    }
}
