//! Synthesis: a chain becomes programs (SNF §7.2), one for each input that packets come to from
//! outside of what models can say.

use std::collections::{HashMap, HashSet};

use ir::{Graph, Model, NodeId, Op, Port, Processing, Program};

use crate::simplify::simplify;
use crate::symbolic::draft::Draft;
use crate::symbolic::execute::{Cache, Chain, Machine};

/// A program has at most so many steps; a chain that takes more is carried out in stages.
const MAX_STEPS: usize = 10_000;
/// An input that so many ways come to is a good place to begin a further stage.
const MANY_WAYS: usize = 64;
/// A chain is cut into so many further stages at the most.
const MAX_CUTS: usize = 64;

/// What a chain became.
#[derive(Clone, Debug, Default)]
pub struct Synthesis {
    /// A program for each entry, in the order of the chain's connections.
    pub programs: Vec<Program>,
    /// What kept the chain from becoming one program.
    pub notes: Vec<Note>,
}

/// Something to know about a synthesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The element that it is about.
    pub element: NodeId,
    /// What there is to know.
    pub message: String,
}

/// Makes programs for a chain; `models` are those of its elements, in the graph's order.
pub fn synthesize(graph: &Graph, models: &[Model]) -> Synthesis {
    programs(graph, models, &mut Cache::default(), simplify)
}

/// The same without simplification: what symbolic execution of the chain comes to, to compare
/// with.
pub fn synthesize_plainly(graph: &Graph, models: &[Model]) -> Synthesis {
    programs(graph, models, &mut Cache::default(), |_| {})
}

/// Synthesises a chain again and again while its elements change, keeping what stays the same.
pub struct Synthesizer {
    graph: Graph,
    models: Vec<Model>,
    cache: Cache,
}

impl Synthesizer {
    /// For a chain; `models` are those of its elements, in the graph's order.
    pub fn new(graph: Graph, models: Vec<Model>) -> Self {
        Self { graph, models, cache: Cache::default() }
    }

    /// Takes what an element means now. One that means what it did keeps what was made of it.
    /// Whether it means something else.
    pub fn change(&mut self, element: NodeId, model: Model) -> bool {
        let changed = self.models.get(element).is_some_and(|known| *known != model);
        if changed {
            self.cache.retire(&self.models[element]);
            self.models[element] = model;
        }
        changed
    }

    /// Goes on with another graph, whose first elements are those that there were; `models` are
    /// those of the others.
    pub fn rewire(&mut self, graph: Graph, models: impl IntoIterator<Item = Model>, known: usize) {
        self.models.truncate(known);
        self.models.extend(models);
        self.graph = graph;
    }

    /// The chain.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the elements mean, in the graph's order.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Makes programs for the chain as it is.
    pub fn synthesize(&mut self) -> Synthesis {
        let synthesis = programs(&self.graph, &self.models, &mut self.cache, simplify);
        self.cache.settle();
        synthesis
    }
}

fn programs(
    graph: &Graph,
    models: &[Model],
    cache: &mut Cache,
    simplify: impl Fn(&mut Draft),
) -> Synthesis {
    let mut synthesis = Synthesis::default();
    let mut chain = chain(graph, models);
    let mut cuts = 0;
    'again: loop {
        synthesis.programs.clear();
        for entry in entries(&chain) {
            match Machine::run(&chain, cache, entry, MAX_STEPS) {
                Ok(mut draft) => {
                    simplify(&mut draft);
                    let program = draft.finish();
                    if is_worth_it(&program) {
                        synthesis.programs.push(program);
                    }
                }
                Err(too_many) => {
                    let at = cut(&too_many.visits, &chain, entry);
                    let Some(at) = at.filter(|_| cuts < MAX_CUTS) else { continue };
                    cuts += 1;
                    synthesis.notes.push(Note {
                        element: at.node,
                        message: format!(
                            "{} ways lead here and multiply: it begins a stage of its own",
                            too_many.visits[&at]
                        ),
                    });
                    chain.stages.insert(at);
                    continue 'again;
                }
            }
        }
        return synthesis;
    }
}

/// Where to cut a chain that has too many ways: at the first input that many of them came to, so
/// that what lies before and what lies behind it are both small.
fn cut(visits: &HashMap<Port, usize>, chain: &Chain<'_>, entry: Port) -> Option<Port> {
    let open = || {
        let may = |p: &Port| *p != entry && !chain.stages.contains(p);
        visits.iter().filter(move |(port, _)| may(port)).map(|(&port, &count)| (count, port))
    };
    open().filter(|&(count, _)| count >= MANY_WAYS).min().or(open().max()).map(|(_, port)| port)
}

/// Whether a program does more than hand packets to its first element.
fn is_worth_it(program: &Program) -> bool {
    program.exits().any(|(_, exit)| !exit.through.is_empty())
}

fn chain<'a>(graph: &'a Graph, models: &'a [Model]) -> Chain<'a> {
    let opaque = graph.nodes.iter().zip(models).map(|(node, model)| {
        if node.inputs.contains(&Processing::Pull) {
            Some("packets are pulled from here on")
        } else if model.is_opaque() {
            match model.inputs.first().and_then(|block| block.first()) {
                Some(Op::Opaque(why)) => Some(*why),
                _ => Some("takes no packets"),
            }
        } else {
            None
        }
    });
    Chain {
        graph,
        models,
        to: graph.edges.iter().map(|e| (e.from, e.to)).collect(),
        stages: HashSet::new(),
        opaque: opaque.collect(),
    }
}

/// Inputs that packets come to from outside of programs.
fn entries(chain: &Chain<'_>) -> Vec<Port> {
    let mut entries: Vec<Port> = Vec::new();
    for edge in &chain.graph.edges {
        let from = &chain.graph.nodes[edge.from.node];
        let comes_from_outside = from.inputs.is_empty() || chain.opaque[edge.from.node].is_some();
        let pushed = chain.graph.nodes[edge.to.node].inputs[edge.to.port] != Processing::Pull;
        let enters = comes_from_outside || chain.stages.contains(&edge.to);
        if enters && pushed && chain.opaque[edge.to.node].is_none() && !entries.contains(&edge.to) {
            entries.push(edge.to);
        }
    }
    entries
}
