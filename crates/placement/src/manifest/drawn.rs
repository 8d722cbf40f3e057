//! A chain's functions as they are drawn: named, connected, and put in the order of packets.

use std::collections::{BTreeMap, BTreeSet};

use ir::nearest;

use super::{MAX_FUNCTIONS, Outline};
use crate::costs::Hop;
use crate::problem::{Edge, Function, Kind};

/// A chain as it is drawn.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) functions: Vec<Function>,
    /// By function: what it is; nothing where that is its name.
    classes: Vec<String>,
    /// From which port of a function to which.
    links: Vec<(usize, usize, usize)>,
    /// By function: the shares of its ports, where they are not equal.
    pub(super) shares: BTreeMap<usize, Vec<f64>>,
    /// Those that are places where packets enter or leave.
    pub(super) wires: BTreeSet<usize>,
}

/// What is wrong, and what to do.
type Wrong = (String, Option<String>);

/// A place where packets enter or leave a chain whose functions cannot say it: all of them are on the switch.
fn wire(name: String) -> Function {
    Function {
        name,
        runs_on: vec![Kind::Switch],
        core_cycles: 0.0,
        card_cycles: 0.0,
        replicates: true,
        entries: 0,
        flows: 0,
        waits: 0.0,
    }
}

impl Drawn {
    /// As Click has it.
    pub(super) fn of(outline: Outline) -> Self {
        let Outline { functions, mut links, entries, exits } = outline;
        let (mut functions, mut classes): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
        let inside = functions.len();
        // Packets enter at one place, and leave where no function is behind.
        if entries.len() > 1 {
            let root = functions.len();
            functions.push(wire("from wires".into()));
            links.extend(entries.iter().enumerate().map(|(port, to)| (root, port, *to)));
        }
        let inner: BTreeSet<usize> = links.iter().map(|(from, ..)| *from).collect();
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for (from, port, to) in exits {
            if inner.contains(&from) {
                let end = *ends.entry(to).or_insert_with_key(|to| {
                    functions.push(wire(format!("to {to}")));
                    functions.len() - 1
                });
                links.push((from, port, end));
            }
        }
        classes.resize(functions.len(), String::new());
        let wires = (inside..functions.len()).collect();
        Self { functions, classes, links, shares: BTreeMap::new(), wires }
    }

    /// Has functions be in processes of their own, which packets get to and come back from by hops. From one such process to
    /// the next it is one hop.
    pub(super) fn in_processes(&mut self, hops: &BTreeMap<usize, Hop>) {
        for (&at, hop) in hops {
            let mut next = self.links.iter().filter(|(from, ..)| *from == at).peekable();
            let returns = next.peek().is_none() || next.any(|(.., to)| !hops.contains_key(to));
            let count = if returns { 2.0 } else { 1.0 };
            let function = &mut self.functions[at];
            function.runs_on.retain(|kind| *kind == Kind::Core);
            let cycles = function.core_cycles + count * hop.cycles;
            function.core_cycles = cycles.max(hop.least_cycles);
            function.waits = count * hop.waits;
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|of| of.name.as_str())
    }

    pub(super) fn links(&self) -> &[(usize, usize, usize)] {
        &self.links
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names().position(|of| of == name)
    }

    /// The function of that name, or all of that class.
    pub(super) fn all_called(&self, name: &str) -> Vec<usize> {
        match self.find(name) {
            Some(at) => vec![at],
            None => (0..self.functions.len())
                .filter(|at| self.classes.get(*at).is_some_and(|class| class == name))
                .collect(),
        }
    }

    /// How many ports of a function lead on.
    pub(super) fn ports(&self, of: usize) -> usize {
        let ports = self.links.iter().filter(|(from, ..)| *from == of);
        ports.map(|(_, port, _)| port + 1).max().unwrap_or(0)
    }

    /// The port of a function that leads to another, or to a wire.
    pub(super) fn port_to(&self, of: usize, next: &str) -> Option<usize> {
        let is_next = |to: &usize| {
            let name = &self.functions[*to].name;
            name == next || name.strip_prefix("to ") == Some(next)
        };
        let mut links = self.links.iter();
        links.find(|(from, _, to)| *from == of && is_next(to)).map(|(_, port, _)| *port)
    }

    pub(super) fn read(text: &str, functions: &BTreeMap<&str, Function>) -> Result<Self, Wrong> {
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
    pub(super) fn in_order(&self) -> Result<(Vec<Function>, Vec<Edge>), String> {
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
            order.push(next.ok_or_else(|| {
                // What is left is in a circle, or behind one: back from any of it, one comes to a circle.
                let left = |at: &usize| !order.contains(at);
                let mut path: Vec<usize> = (0..count).find(left).into_iter().collect();
                while let Some(at) = path.last().copied()
                    && let Some(from) = before[at].iter().copied().find(left)
                {
                    if let Some(first) = path.iter().position(|of| *of == from) {
                        path.drain(..first);
                        break;
                    }
                    path.push(from);
                }
                let names = path.iter().chain(path.first()).rev();
                let names: Vec<&str> = names.map(|at| self.functions[*at].name.as_str()).collect();
                format!("packets would go in a circle: {}", names.join(" -> "))
            })?);
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
