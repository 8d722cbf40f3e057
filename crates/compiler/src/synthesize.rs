//! Synthesis: a chain becomes programs (SNF §7.2), one for each input that packets come to from
//! outside of what models can say.

use std::collections::{HashMap, HashSet};

use ir::program::End;
use ir::{Edge, Graph, Model, NodeId, Op, Port, Processing, Program};

use crate::simplify::simplify;
use crate::symbolic::draft::Draft;
use crate::symbolic::execute::{Cache, Chain, Machine, TooManySteps};

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
    // By entry: the program, if there is one, and the inputs that its ways come to.
    let mut made: HashMap<Port, (Option<Program>, HashSet<Port>)> = HashMap::new();
    'again: loop {
        synthesis.programs.clear();
        let mut entries = entries(&chain);
        let mut begun = 0;
        while let Some(&entry) = entries.get(begun) {
            begun += 1;
            if !made.contains_key(&entry) {
                let new = match Machine::run(&chain, cache, entry, MAX_STEPS) {
                    Ok((mut draft, visits)) => {
                        simplify(&mut draft);
                        (Some(draft.finish()), visits.into_keys().collect())
                    }
                    Err(TooManySteps { visits }) => {
                        if let Some(at) = cut(&visits, &chain, entry).filter(|_| cuts < MAX_CUTS) {
                            cuts += 1;
                            let ways = visits[&at];
                            let note = format!(
                                "{ways} ways lead here and multiply: it begins a stage of its own"
                            );
                            synthesis.notes.push(Note { element: at.node, message: note });
                            chain.stages.insert(at);
                            made.retain(|_, (_, inputs)| !inputs.contains(&at));
                            continue 'again;
                        }
                        let note = format!(
                            "more than {MAX_STEPS} steps lead on from here: there is no program"
                        );
                        synthesis.notes.push(Note { element: entry.node, message: note });
                        (None, visits.into_keys().collect())
                    }
                };
                made.insert(entry, new);
            }
            let program = made.get(&entry).and_then(|(program, _)| program.as_ref());
            synthesis.programs.extend(program.filter(|program| is_worth_it(program)).cloned());
            if begun == entries.len() {
                let programs = entries.iter().filter_map(|entry| made[entry].0.as_ref());
                entries.extend(behind_barriers(&chain, programs, &entries));
            }
        }
        return synthesis;
    }
}

/// Further entries: behind elements that no program leads through, though models say something of
/// them. All packets leave those by their own code.
fn behind_barriers<'a>(
    chain: &Chain<'_>,
    programs: impl Iterator<Item = &'a Program>,
    known: &[Port],
) -> Vec<Port> {
    let mut passed = HashSet::new();
    let mut barriers = HashSet::new();
    for (_, exit) in programs.flat_map(Program::exits) {
        let ends_at_last = matches!(exit.end, End::Drop { .. });
        let through = exit.through.len().saturating_sub(usize::from(ends_at_last));
        passed.extend(exit.through[..through].iter().map(|port| port.node));
        if let End::Push { to, native: true } = exit.end {
            barriers.insert(to.node);
        }
    }
    let mut further: Vec<Port> = Vec::new();
    for Edge { from, to, .. } in &chain.graph.edges {
        let leaves = barriers.contains(&from.node) && !passed.contains(&from.node);
        let goes_on = !chain.graph.nodes[to.node].outputs.is_empty();
        if leaves
            && goes_on
            && chain.is_program_input(*to)
            && !known.contains(to)
            && !further.contains(to)
        {
            further.push(*to);
        }
    }
    further
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
        let enters = comes_from_outside || chain.stages.contains(&edge.to);
        if enters && chain.is_program_input(edge.to) && !entries.contains(&edge.to) {
            entries.push(edge.to);
        }
    }
    entries
}
