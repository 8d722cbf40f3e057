//! Which elements of two chains stand for each other where no program takes their place.
//!
//! Behind programs lie queues, what pulls from them, devices, and elements that only their native code
//! can speak for. Two of them are alike if their class and configuration are, and so are all that
//! they lead to and pull from: names do not matter, nor does the order of statements.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use click::config::Text;
use elements::element::Boundary;
use elements::registry;
use ir::model::StateKind;
use ir::program::{End, Exit, Step, Writes};
use ir::{Graph, Model, NodeId, Op, Port, Processing, Program};

use super::subjects::Subjects;

/// One of the two chains.
pub(super) type Side = usize;

/// What the two chains are called.
pub(super) const ORDINALS: [&str; 2] = ["first", "second"];

/// Arguments of devices and files that do not change which packets pass.
const HARMLESS: [&str; 6] = ["BURST", "STOP", "MMAP", "PRELOAD", "PER_NODE", "UNBUFFERED"];

/// By chain and element, a number: elements of one number are alike.
type Kinds = [Vec<u32>; 2];

/// A chain's connections.
#[derive(Clone)]
struct Wiring {
    /// By element: its outputs and where they lead.
    out: Vec<Vec<(usize, Port)>>,
    /// By element: the inputs that it pulls from, and what they come from.
    pulled: Vec<Vec<(usize, Port)>>,
    /// The elements that only their native code can speak for.
    opaque: Vec<bool>,
    /// The elements that packets come from, or may come to.
    alive: Vec<bool>,
    names: HashMap<String, NodeId>,
}

impl Wiring {
    fn new(chain: &Subjects) -> Self {
        let nodes = &chain.graph.nodes;
        let (mut out, mut pulled) = (vec![Vec::new(); nodes.len()], vec![Vec::new(); nodes.len()]);
        for edge in &chain.graph.edges {
            out[edge.from.node].push((edge.from.port, edge.to));
        }
        let opaque = nodes.iter().zip(&chain.models);
        let opaque: Vec<bool> = opaque
            .map(|(node, model)| node.inputs.contains(&Processing::Pull) || model.is_opaque())
            .collect();
        // What programs pull through is no matter of who pulls.
        let into: HashMap<Port, Port> = chain.graph.edges.iter().map(|e| (e.to, e.from)).collect();
        let is_passed = |at: &Port| {
            !opaque[at.node] && nodes[at.node].outputs.get(at.port) == Some(&Processing::Pull)
        };
        for edge in &chain.graph.edges {
            if nodes[edge.to.node].inputs.get(edge.to.port) == Some(&Processing::Pull) {
                let mut from = edge.from;
                for _ in nodes {
                    let before = into.get(&Port { node: from.node, port: 0 });
                    match before.filter(|_| is_passed(&from)) {
                        Some(before) => from = *before,
                        None => break,
                    }
                }
                pulled[edge.to.node].push((edge.to.port, from));
            }
        }
        out.iter_mut().chain(&mut pulled).for_each(|ports| ports.sort_unstable());
        let names = nodes.iter().enumerate().map(|(i, node)| (node.name.clone(), i)).collect();
        // A model that says everything says what becomes of packets that come: where none can,
        // none is made.
        let mut waiting: Vec<NodeId> =
            (0..nodes.len()).filter(|&n| nodes[n].inputs.is_empty() && opaque[n]).collect();
        let mut alive = vec![false; nodes.len()];
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut alive[node], true) {
                waiting.extend(out[node].iter().map(|(_, to)| to.node));
            }
        }
        Self { opaque, alive, out, pulled, names }
    }

    /// Without elements that do nothing, where packets are pushed through them and no handler reaches them.
    fn shortened(&self, models: &[Model], reached: &[bool]) -> Self {
        let does_nothing = |node: NodeId| {
            let model = &models[node];
            let is_plain = model.state.is_empty() && model.inputs == [vec![Op::emit(0u8)]];
            is_plain && !self.opaque[node] && !reached.get(node).is_some_and(|&reached| reached)
        };
        let beyond = |mut to: Port| {
            for _ in models {
                match self.out[to.node].first().filter(|_| does_nothing(to.node)) {
                    Some((_, next)) => to = *next,
                    None => break,
                }
            }
            to
        };
        let out = self
            .out
            .iter()
            .map(|ports| ports.iter().map(|&(port, to)| (port, beyond(to))).collect());
        Self { out: out.collect(), ..self.clone() }
    }

    fn leads(&self, from: Port) -> Option<Port> {
        self.out[from.node].iter().find(|(port, _)| *port == from.port).map(|(_, to)| *to)
    }
}

/// Two inputs that the same packets come to.
pub(super) struct InputPair {
    /// The input of each chain.
    pub(super) at: [Port; 2],
}

/// Two chains side by side.
pub(super) struct Alignment<'a> {
    chains: [&'a Subjects; 2],
    wiring: [Wiring; 2],
    /// The elements that handlers reach.
    reached: [&'a [bool]; 2],
    /// By class, configuration and meaning.
    own: Kinds,
    /// With all that follows, up to the inputs of programs.
    behind: Kinds,
    /// With all that follows, element by element.
    whole: Kinds,
    /// Names that both have in common.
    names: [Vec<String>; 2],
}

impl<'a> Alignment<'a> {
    /// Two chains; what their elements mean, also where that is not looked at; which of them
    /// handlers reach, and so by name; and the chains' programs.
    pub(super) fn new(
        chains: [&'a Subjects; 2],
        models: [&'a [Model]; 2],
        reached: [&'a [bool]; 2],
        programs: [&[Program]; 2],
    ) -> Self {
        let wiring = chains.map(Wiring::new);
        let names = common_names(chains, &wiring);
        let own = own_kinds(chains, models, reached, &names);
        let ends = [0, 1].map(|side: Side| ends_of(programs[side], &wiring[side]));
        let behind = refined(&wiring, &own, Some(&ends), None);
        // What is pulled from may lead here in other words.
        let short = [0, 1].map(|side: Side| wiring[side].shortened(models[side], reached[side]));
        let whole = refined(&short, &own, None, Some(&behind));
        Self { chains, wiring, reached, own, behind, whole, names }
    }

    /// A name by which elements of both chains are compared that state belongs to.
    pub(super) fn name(&self, side: Side, node: NodeId) -> &str {
        &self.names[side][node]
    }

    /// The names by which elements of both chains are compared.
    pub(super) fn names(&self) -> &[Vec<String>; 2] {
        &self.names
    }

    /// The name of the element that has this name in both chains.
    pub(super) fn original(&self, side: Side, name: &str) -> Option<&str> {
        let node = self.names[side].iter().position(|n| n == name)?;
        Some(&self.chains[side].graph.nodes[node].name)
    }

    /// Whether only an element's native code can speak for it.
    pub(super) fn is_opaque(&self, side: Side, node: NodeId) -> bool {
        self.wiring[side].opaque[node]
    }

    /// What tells apart the ends that packets come to.
    pub(super) fn end(&self, side: Side, node: NodeId, native: bool) -> String {
        match (self.is_opaque(side, node), native) {
            (true, _) => format!("end {}", self.behind[side][node]),
            (false, true) => format!("{} {}", self.names[side][node], self.whole[side][node]),
            (false, false) => self.names[side][node].clone(),
        }
    }

    /// The element of that name.
    pub(super) fn find(&self, side: Side, name: &str) -> Option<NodeId> {
        self.wiring[side].names.get(name).copied()
    }

    /// Whether two elements do the same, and so does all that follows.
    pub(super) fn alike(&self, a: NodeId, b: NodeId) -> bool {
        self.behind[0][a] == self.behind[1][b]
    }

    /// The owners of the tables of flows of two elements that themselves are alike.
    pub(super) fn tables(&self, a: NodeId, b: NodeId) -> Vec<&str> {
        if self.own[0][a] != self.own[1][b] || self.names[0][a] != self.names[1][b] {
            return Vec::new();
        }
        let state = self.chains[0].models[a].state.iter();
        let owner = |owner: &Option<String>| match owner {
            Some(name) => self.find(0, name),
            None => Some(a),
        };
        state
            .filter(|declared| matches!(declared.kind, StateKind::Flows { .. }))
            .filter_map(|declared| owner(&declared.owner).map(|node| self.name(0, node)))
            .collect()
    }

    /// An element in words.
    pub(super) fn words(&self, side: Side, node: NodeId) -> String {
        let chain = self.chains[side];
        let place = chain.places.get(node).map_or_else(String::new, |place| format!(" ({place})"));
        format!("'{}'{place}", chain.graph.nodes[node].name)
    }

    /// What packets may come out of that come to an element.
    pub(super) fn sinks(&self, side: Side, node: NodeId) -> BTreeSet<String> {
        self.chains[side].sinks(node)
    }

    /// Why two elements are not alike.
    pub(super) fn unlike(&self, a: NodeId, b: NodeId) -> String {
        let (mut seen, mut waiting) = (HashSet::from([(a, b)]), VecDeque::from([(a, b)]));
        while let Some((x, y)) = waiting.pop_front() {
            let (one, other) = (self.words(0, x), self.words(1, y));
            if self.own[0][x] != self.own[1][y] {
                let is = |side: Side, node: NodeId| {
                    let of = &self.chains[side].graph.nodes[node];
                    let config: String = of.config.chars().take(60).collect();
                    let more = if config.len() < of.config.len() { "…" } else { "" };
                    format!("{}({config}{more})", of.class)
                };
                let is_reached = [(0, x), (1, y)].map(|(side, node)| {
                    self.reached[side].get(node).is_some_and(|&reached| reached)
                });
                let only = |side: Side, one: &str, other: &str| {
                    let [first, second] = [ORDINALS[side], ORDINALS[1 - side]];
                    format!(
                        "handlers may change {one} of the {first} chain, and not {other} of the {second}"
                    )
                };
                return match is_reached {
                    [true, false] => only(0, &one, &other),
                    [false, true] => only(1, &other, &one),
                    _ => format!("{one} is {} and {other} is {}", is(0, x), is(1, y)),
                };
            }
            for (to, from, leads) in [
                (&self.wiring[0].out[x], &self.wiring[1].out[y], "leads"),
                (&self.wiring[0].pulled[x], &self.wiring[1].pulled[y], "is led"),
            ] {
                let ports = |of: &[(usize, Port)]| {
                    of.iter().map(|(port, to)| (*port, to.port)).collect::<Vec<_>>()
                };
                if ports(to) != ports(from) {
                    return format!("{one} {leads} to other ports than {other}");
                }
                let pairs = to.iter().zip(from).map(|((_, p), (_, q))| (p.node, q.node));
                waiting.extend(pairs.filter(|pair| seen.insert(*pair)));
            }
        }
        format!("what follows {} is not what follows {}", self.words(0, a), self.words(1, b))
    }

    /// Whether packets may come to an element.
    pub(super) fn is_alive(&self, side: Side, node: NodeId) -> bool {
        self.wiring[side].alive[node]
    }

    /// Elements that make packets, of a chain, in the order of their common names.
    fn sources(&self, side: Side) -> Vec<NodeId> {
        let nodes = self.chains[side].graph.nodes.iter().enumerate();
        let wiring = &self.wiring[side];
        let sources = nodes
            .filter(|(i, n)| n.inputs.is_empty() && wiring.alive[*i] && !wiring.out[*i].is_empty());
        let mut sources: Vec<NodeId> = sources.map(|(i, _)| i).collect();
        sources.sort_by_key(|&node| &self.names[side][node]);
        sources
    }

    /// The sources of both chains that stand for each other.
    pub(super) fn pair_sources(&self) -> Vec<(NodeId, NodeId)> {
        let of = |side: Side, node: NodeId| &self.chains[side].graph.nodes[node];
        let key = |side: Side, node: NodeId| device(&of(side, node).class, &of(side, node).config);
        let is_device = |node: &ir::Node| boundary(&node.class) == Some(Boundary::Ingress);
        let ([mut left, mut right], mut pairs) = ([self.sources(0), self.sources(1)], Vec::new());
        let rules: [&dyn Fn(NodeId, NodeId) -> bool; 3] = [
            &|a, b| key(0, a) == key(1, b) && of(0, a).name == of(1, b).name,
            &|a, b| key(0, a) == key(1, b),
            // Those that make packets of their own may be set otherwise.
            &|a, b| {
                let (a, b) = (of(0, a), of(1, b));
                a.class == b.class && a.name == b.name && !is_device(a)
            },
        ];
        for same in rules {
            left.retain(|&a| match right.iter().position(|&b| same(a, b)) {
                Some(at) => {
                    pairs.push((a, right.remove(at)));
                    false
                }
                None => true,
            });
        }
        pairs
    }

    /// Outputs of a chain's sources that the other chain lacks, by pairs of sources, and the inputs
    /// that they lead to.
    pub(super) fn lacking(&self, side: Side, pairs: &[(NodeId, NodeId)]) -> Vec<(Port, Port)> {
        let mut lacking = Vec::new();
        for node in self.sources(side) {
            let pair = pairs.iter().map(|&(a, b)| [a, b]).find(|pair| pair[side] == node);
            for &(port, to) in &self.wiring[side].out[node] {
                let there = pair.map(|pair| Port { node: pair[1 - side], port });
                if there.and_then(|from| self.wiring[1 - side].leads(from)).is_none() {
                    lacking.push((Port { node, port }, to));
                }
            }
        }
        lacking
    }

    /// Inputs behind two elements that emit the same packets.
    pub(super) fn places_behind(&self, (a, b): (NodeId, NodeId)) -> Vec<InputPair> {
        let out = self.wiring[0].out[a].iter();
        let place = |&(port, to): &(usize, Port)| {
            let there = self.wiring[1].leads(Port { node: b, port })?;
            Some(InputPair { at: [to, there] })
        };
        out.filter_map(place).collect()
    }

    /// Whether two elements are set alike.
    pub(super) fn set_alike(&self, a: NodeId, b: NodeId) -> bool {
        self.own[0][a] == self.own[1][b]
    }

    /// Elements with code of their own between programs that stand for each other.
    pub(super) fn pair_opaque(&self) -> Vec<(NodeId, NodeId)> {
        let passed_on = |side: Side| {
            let all = 0..self.wiring[side].opaque.len();
            let nodes = &self.chains[side].graph.nodes;
            let passes_on = |&n: &NodeId| {
                self.is_opaque(side, n) && self.is_alive(side, n) && !nodes[n].inputs.is_empty()
            };
            let mut all: Vec<NodeId> = all.filter(passes_on).collect();
            all.sort_by_key(|&node| &self.names[side][node]);
            all
        };
        let (mut pairs, mut left, mut right) = (Vec::new(), passed_on(0), passed_on(1));
        for kinds in [&self.behind, &self.own] {
            left.retain(|&a| {
                let kind = kinds[0][a];
                let name = &self.names[0][a];
                let same = |named: bool| {
                    right
                        .iter()
                        .position(|&b| kinds[1][b] == kind && (!named || self.names[1][b] == *name))
                };
                let Some(at) = same(true).or_else(|| same(false)) else { return true };
                pairs.push((a, right.remove(at)));
                false
            });
        }
        pairs
    }

    /// Elements that packets come to of which there are several alike in a chain: which of them
    /// takes what cannot be told by kind.
    pub(super) fn crowded(&self, programs: [&[Program]; 2]) -> Vec<NodeId> {
        let counts = |side: Side| {
            let mut counts: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
            for end in programs[side].iter().flat_map(pushes).collect::<BTreeSet<_>>() {
                if self.is_opaque(side, end.node) && !self.wiring[side].out[end.node].is_empty() {
                    let members = counts.entry(self.behind[side][end.node]).or_default();
                    if !members.contains(&end.node) {
                        members.push(end.node);
                    }
                }
            }
            counts
        };
        let (a, b) = (counts(0), counts(1));
        let several = a.iter().filter(|(kind, members)| {
            members.len() > 1 || b.get(kind).is_some_and(|others| others.len() > 1)
        });
        several.flat_map(|(_, members)| members.iter().copied()).collect()
    }

    /// As [`Alignment::end`], but those that are alike are distinguished by their names.
    pub(super) fn named_end(&self, side: Side, node: NodeId, native: bool) -> String {
        format!("{} {}", self.names[side][node], self.end(side, node, native))
    }
}

/// The inputs that packets of a program come to.
fn pushes(program: &Program) -> impl Iterator<Item = Port> + '_ {
    program.exits().flat_map(|(_, exit)| exit.all()).filter_map(|exit| match exit.end {
        End::Push { to, .. } => Some(to),
        End::Drop { .. } | End::Handoff { .. } => None,
    })
}

/// A program that hands all packets to an element.
pub(super) fn handing_over(to: Port) -> Program {
    let exit = Exit {
        effects: Vec::new(),
        writes: Writes::default(),
        end: End::Push { to, native: true },
        barrier: None,
        visited: Vec::new(),
        copies: Vec::new(),
    };
    Program {
        entry: to,
        continuation: None,
        terms: Vec::new(),
        state: Vec::new(),
        tables: Vec::new(),
        lookups: Vec::new(),
        steps: vec![Step::Exit(Box::new(exit))],
    }
}

/// Whether packets come into a chain, or go out of it, by elements of a class.
pub(super) fn boundary(class: &str) -> Option<Boundary> {
    registry::find(class)?.boundary
}

/// What a source or a sink stands for: its class, and its device or file.
pub(super) fn device(class: &str, config: &str) -> String {
    let arguments = arguments(class, config);
    match boundary(class) {
        Some(_) => format!("{class}({})", arguments.first().map_or("", |first| &**first)),
        None => format!("{class}({})", arguments.join(", ")),
    }
}

/// The arguments that matter.
pub(super) fn arguments(class: &str, config: &str) -> Vec<String> {
    let is_end = boundary(class).is_some();
    let all = Text::bare(config).arguments().into_iter();
    let matters = all.filter(|argument| {
        let harmless = argument.keyword().is_some_and(|(name, _)| HARMLESS.contains(&name));
        !(is_end && harmless)
    });
    matters.map(|argument| argument.text).collect()
}

/// The ends of programs that only elements' native code can speak for, by the programs' inputs.
fn ends_of(programs: &[Program], wiring: &Wiring) -> HashMap<Port, BTreeSet<Port>> {
    let ends = |p: &Program| pushes(p).filter(|to| wiring.opaque[to.node]).collect();
    programs.iter().map(|p| (p.entry, ends(p))).collect()
}

/// Elements by class, configuration and meaning: files may say more than the configuration.
fn own_kinds<'a>(
    chains: [&'a Subjects; 2],
    models: [&'a [Model]; 2],
    reached: [&[bool]; 2],
    names: &[Vec<String>; 2],
) -> Kinds {
    type Meanings<'a> = Vec<(&'a Model, u32)>;
    type Key<'a> = (&'a str, Vec<String>, Option<String>);
    let mut meanings: HashMap<Key<'a>, Meanings<'a>> = HashMap::new();
    let mut count = 0;
    let alike = |one: &Model, other: &Model| {
        let kinds = one.state.iter().map(|s| &s.kind).eq(other.state.iter().map(|s| &s.kind));
        kinds && one.inputs == other.inputs
    };
    [0, 1].map(|side: Side| {
        let nodes = chains[side].graph.nodes.iter().zip(models[side]).enumerate();
        let kind = |(at, (node, model)): (NodeId, (&'a ir::Node, &'a Model))| {
            let is_reached = reached[side].get(at).is_some_and(|&reached| reached);
            let name = is_reached.then(|| names[side][at].clone());
            let key = (&*node.class, arguments(&node.class, &node.config), name);
            let known = meanings.entry(key).or_default();
            match known.iter().find(|(other, _)| alike(model, other)) {
                Some((_, kind)) => *kind,
                None => {
                    count += 1;
                    known.push((model, count));
                    count
                }
            }
        };
        nodes.map(kind).collect()
    })
}

/// Kinds made finer until elements of one kind lead to the same kinds, and pull from the same: of
/// these kinds, if they are known.
fn refined(
    wiring: &[Wiring; 2],
    own: &Kinds,
    programs: Option<&[HashMap<Port, BTreeSet<Port>>; 2]>,
    sources: Option<&Kinds>,
) -> Kinds {
    /// An element as far as it is known.
    type Seen = (u32, Vec<(usize, BTreeSet<(u32, usize)>)>, Vec<(usize, u32, usize)>);
    let mut kinds = own.clone();
    let mut known = 0;
    loop {
        let mut seen: HashMap<Seen, u32> = HashMap::new();
        let finer = [0, 1].map(|side: Side| {
            let (wiring, kinds) = (&wiring[side], &kinds[side]);
            let kind = |port: &Port| (kinds[port.node], port.port);
            (0..kinds.len())
                .map(|node| {
                    let out = wiring.out[node].iter().map(|(port, to)| {
                        let program = programs.and_then(|all| all[side].get(to));
                        let leads = match program {
                            Some(ends) => ends.iter().map(kind).collect(),
                            None => BTreeSet::from([kind(to)]),
                        };
                        (*port, leads)
                    });
                    let pulled = wiring.pulled[node].iter().map(|(port, from)| {
                        let (kind, there) = kind(from);
                        let known = sources.map(|kinds| kinds[side][from.node]);
                        (*port, known.unwrap_or(kind), there)
                    });
                    let next = seen.len() as u32;
                    *seen.entry((kinds[node], out.collect(), pulled.collect())).or_insert(next)
                })
                .collect()
        });
        kinds = finer;
        if seen.len() == known {
            return kinds;
        }
        known = seen.len();
    }
}

/// The elements in the order in which packets come to them.
fn in_order(graph: &Graph, wiring: &Wiring) -> Vec<NodeId> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    let mut starts: Vec<NodeId> =
        (0..graph.nodes.len()).filter(|&n| graph.nodes[n].inputs.is_empty()).collect();
    starts.sort_by_key(|&n| device(&graph.nodes[n].class, &graph.nodes[n].config));
    starts.extend(0..graph.nodes.len());
    for start in starts {
        let mut waiting = vec![start];
        while let Some(node) = waiting.pop() {
            if seen.insert(node) {
                order.push(node);
                waiting.extend(wiring.out[node].iter().rev().map(|(_, to)| to.node));
            }
        }
    }
    order
}

/// Names of the elements of two chains by which they are compared: given names that both have, else
/// class, configuration and order. Each names one element of a chain.
fn common_names(chains: [&Subjects; 2], wiring: &[Wiring; 2]) -> [Vec<String>; 2] {
    let given = |name: &str| {
        !name.contains('@') && wiring.iter().all(|wiring| wiring.names.contains_key(name))
    };
    [0, 1].map(|side: Side| {
        let graph = &chains[side].graph;
        let mut names = vec![String::new(); graph.nodes.len()];
        let mut seen: HashMap<String, usize> = HashMap::new();
        for at in in_order(graph, &wiring[side]) {
            let node = &graph.nodes[at];
            names[at] = if given(&node.name) {
                node.name.clone()
            } else {
                let kind = device(&node.class, &node.config);
                let count = seen.entry(kind.clone()).or_default();
                *count += 1;
                format!("{kind} #{count}")
            };
        }
        names
    })
}
