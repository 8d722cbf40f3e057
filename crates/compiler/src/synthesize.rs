//! Synthesis: a chain becomes programs (SNF §7.2), one for each input that packets come to from
//! outside of what models can say.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ir::program::{Barrier, End, Step};
use ir::{Edge, Graph, Model, NodeId, Op, Port, Processing, Program};

use crate::symbolic::cache::Cache;
use crate::symbolic::draft::Draft;
use crate::symbolic::execute::{Chain, Cut, MAX_LENGTH, MAX_STEPS, Machine, Order, TooManySteps};
use crate::symbolic::simplify::simplify;

/// So much work is done in vain at the most until all stages of a chain are small enough; in steps
/// and inputs that paths come to.
const MAX_VAIN: usize = 500_000;

/// What a chain became.
#[derive(Clone, Debug, Default)]
pub struct Synthesis {
    /// A program for each entry, in the order of the chain's connections.
    pub programs: Vec<Program>,
    /// What kept the chain from becoming one program.
    pub notes: Vec<Note>,
    /// Work that it was, that in vain included: steps that were taken, and inputs that paths came to.
    pub work: usize,
}

impl Synthesis {
    /// Adds a note for each list of rules that is looked up behind another.
    fn tell_lists(mut self, graph: &Graph) -> Self {
        // By pair: the most rules of either that follow each other.
        let mut told: BTreeMap<[NodeId; 2], [usize; 2]> = BTreeMap::new();
        for (pair, rules) in self.programs.iter().flat_map(lists_in_a_row) {
            let most = told.entry(pair).or_default();
            *most = [most[0].max(rules[0]), most[1].max(rules[1])];
        }
        let several = told.into_iter().filter(|(_, rules)| rules.iter().all(|&n| n > 1));
        self.notes.extend(several.map(|([before, element], [more, rules])| {
            let name = &graph.nodes[before].name;
            let message = format!(
                "its {rules} rules are looked up behind the {more} of {name}: they would multiply"
            );
            Note { element, message }
        }));
        self
    }
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
    programs(chain(graph, models), &mut Cache::default(), simplify).tell_lists(graph)
}

/// The same with the paths that few packets take, to compare chains with each other. Where that makes
/// too many paths it is as [`synthesize`].
pub fn synthesize_rare_paths(graph: &Graph, models: &[Model]) -> Synthesis {
    let whole = Chain { explore_rare_paths: true, ..chain(graph, models) };
    let whole = programs(whole, &mut Cache::default(), simplify).tell_lists(graph);
    let usual = synthesize(graph, models);
    let entries = |made: &Synthesis| made.programs.iter().map(|p| p.entry).collect::<Vec<_>>();
    if entries(&whole) == entries(&usual) { whole } else { usual }
}

/// The same with whole tables, each once however many paths lead to it: what targets, updates and
/// people want to see. [`Program::lower`] makes of them what the data plane can run.
pub fn synthesize_tables(graph: &Graph, models: &[Model]) -> Synthesis {
    let chain = Chain { tables: true, ..chain(graph, models) };
    programs(chain, &mut Cache::default(), simplify).tell_lists(graph)
}

/// The same without simplification: what symbolic execution of the chain comes to, to compare
/// with.
pub fn synthesize_unsimplified(graph: &Graph, models: &[Model]) -> Synthesis {
    programs(chain(graph, models), &mut Cache::default(), |_| {}).tell_lists(graph)
}

/// Synthesises a chain again and again while its elements change, keeping what stays the same.
pub struct Synthesizer {
    graph: Graph,
    models: Vec<Model>,
    /// Whether tables stay whole; see [`synthesize_tables`].
    tables: bool,
    cache: Cache,
    last: Option<Last>,
}

/// What was made last.
struct Last {
    /// Without notes about lists.
    synthesis: Synthesis,
    /// What elements that changed since meant then.
    models: BTreeMap<NodeId, Model>,
}

impl Synthesizer {
    /// For a chain; `models` are those of its elements, in the graph's order.
    pub fn new(graph: Graph, models: Vec<Model>) -> Self {
        Self { graph, models, tables: false, cache: Cache::default(), last: None }
    }

    /// One whose programs keep tables whole, as those of [`synthesize_tables`] do.
    pub fn whole_tables(self) -> Self {
        Self { tables: true, ..self }
    }

    /// Takes what an element means now. One that means what it did keeps what was made of it.
    /// Whether it means something else.
    pub fn change(&mut self, element: NodeId, model: Model) -> bool {
        let changed = self.models.get(element).is_some_and(|known| *known != model);
        if changed {
            let old = std::mem::replace(&mut self.models[element], model);
            self.cache.retire(element, &old);
            if let Some(last) = &mut self.last {
                last.models.entry(element).or_insert(old);
            }
        }
        changed
    }

    /// Goes on with another graph, whose first elements are those that there were; `models` are
    /// those of the others.
    pub fn rewire(&mut self, graph: Graph, models: impl IntoIterator<Item = Model>, known: usize) {
        self.models.truncate(known);
        self.models.extend(models);
        self.graph = graph;
        self.last = None;
    }

    /// The chain.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the elements mean, in the graph's order.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Makes programs for the chain as it is: the same as [`synthesize`] or [`synthesize_tables`] does. Where only rules
    /// changed that the paths of packets do not depend on, they are exchanged.
    pub fn synthesize(&mut self) -> Synthesis {
        let last = self.last.take().filter(|_| !self.tables);
        let synthesis = last.and_then(|last| self.exchange(last)).unwrap_or_else(|| {
            self.cache.begin();
            let chain = Chain { tables: self.tables, ..chain(&self.graph, &self.models) };
            programs(chain, &mut self.cache, simplify)
        });
        self.cache.settle();
        self.last = Some(Last { synthesis: synthesis.clone(), models: BTreeMap::new() });
        synthesis.tell_lists(&self.graph)
    }

    /// What was made last, with the rules of now, if that is all that changed.
    fn exchange(&mut self, last: Last) -> Option<Synthesis> {
        let Last { mut synthesis, models } = last;
        synthesis.work = 0;
        for (element, old) in &models {
            let exchanged = self.cache.exchange(*element, old, &self.models[*element])?;
            let steps = synthesis.programs.iter_mut().flat_map(|program| &mut program.steps);
            for step in steps {
                if let Step::Classify { rules, .. } = step
                    && let Some((_, new)) = exchanged.iter().find(|e| Arc::ptr_eq(&e.0, rules))
                {
                    *rules = Arc::clone(new);
                }
            }
        }
        Some(synthesis)
    }
}

fn programs(chain: Chain<'_>, cache: &mut Cache, simplify: impl Fn(&mut Draft)) -> Synthesis {
    let mut making = Making {
        chain,
        made: BTreeMap::new(),
        multiply: HashSet::new(),
        vain: 0,
        synthesis: Synthesis::default(),
    };
    let mut open = entries(&making.chain);
    open.reverse();
    while let Some(entry) = open.pop() {
        if !making.made.contains_key(&entry) {
            open.extend(making.begin(cache, entry, &simplify));
        }
        if open.is_empty() {
            open = making.behind_barriers();
            open.reverse();
        }
    }
    making.finish()
}

/// What became of packets that come to an input.
struct Made {
    /// Their program, if there is one.
    program: Option<Program>,
    /// The inputs that its paths come to.
    inputs: HashSet<Port>,
}

/// The programs of a chain in the making.
struct Making<'a> {
    chain: Chain<'a>,
    made: BTreeMap<Port, Made>,
    /// Entries behind which paths multiply, or may.
    multiply: HashSet<Port>,
    /// Work that was done in vain.
    vain: usize,
    synthesis: Synthesis,
}

impl Making<'_> {
    /// Makes the program that begins at an entry, or cuts the chain behind it. Gives the entries to
    /// go on with, the first one last.
    fn begin(
        &mut self,
        cache: &mut Cache,
        entry: Port,
        simplify: impl Fn(&mut Draft),
    ) -> Vec<Port> {
        if self.vain >= MAX_VAIN {
            self.leave_out(entry, "too much multiplied in this chain".to_string());
            return Vec::new();
        }
        let order = if self.multiply.contains(&entry) { Order::Abreast } else { Order::Single };
        let TooManySteps { work, cut } = match Machine::run(&self.chain, cache, entry, order) {
            Ok((mut draft, inputs, work)) => {
                self.synthesis.work += work;
                simplify(&mut draft);
                self.made.insert(entry, Made { program: Some(draft.finish()), inputs });
                return Vec::new();
            }
            Err(too_many) => too_many,
        };
        self.synthesis.work += work;
        self.vain += work;
        let (at, why) = match cut {
            Some(Cut::Copy(at)) => (at, "the paths of copies fork behind this".to_string()),
            // Abreast they show where.
            _ if self.multiply.insert(entry) => return vec![entry],
            Some(Cut::Long(at)) => (at, format!("more than {MAX_LENGTH} elements lead here")),
            Some(Cut::Many(at, paths)) => {
                self.multiply.insert(at);
                (at, format!("{paths} paths lead here and multiply"))
            }
            None => {
                self.leave_out(entry, format!("more than {MAX_STEPS} steps lead on from here"));
                return Vec::new();
            }
        };
        self.note(at, format!("{why}: it begins a stage of its own"));
        self.chain.stages.insert(at);
        // What leads over the new stage is made again.
        let mut open = Vec::new();
        self.made.retain(|other, made| {
            let stays = *other == at || !made.inputs.contains(&at);
            if !stays {
                open.push(*other);
            }
            stays
        });
        open.extend([at, entry]);
        open
    }

    fn leave_out(&mut self, entry: Port, why: String) {
        self.note(entry, format!("{why}: there is no program"));
        self.made.insert(entry, Made { program: None, inputs: HashSet::new() });
    }

    fn note(&mut self, at: Port, message: String) {
        self.synthesis.notes.push(Note { element: at.node, message });
    }

    /// Further entries: behind elements that no program leads through, though models say something
    /// of them. All packets leave those by their native code.
    fn behind_barriers(&self) -> Vec<Port> {
        let mut passed = HashSet::new();
        let mut barriers = HashSet::new();
        let programs = self.made.values().filter_map(|made| made.program.as_ref());
        for exit in programs.flat_map(Program::exits).flat_map(|(_, exit)| exit.all()) {
            let ends_at_last = matches!(exit.end, End::Drop { .. });
            let visited = exit.visited.len().saturating_sub(usize::from(ends_at_last));
            passed.extend(exit.visited[..visited].iter().map(|port| port.node));
            if let End::Push { to, native: true } = exit.end {
                barriers.insert(to.node);
            }
        }
        let mut further: Vec<Port> = Vec::new();
        for Edge { from, to, .. } in &self.chain.graph.edges {
            let leaves = barriers.contains(&from.node) && !passed.contains(&from.node);
            let goes_on = !self.chain.graph.nodes[to.node].outputs.is_empty();
            let is_new = !self.made.contains_key(to) && !further.contains(to);
            if leaves && goes_on && is_new && self.chain.is_program_input(*to) {
                further.push(*to);
            }
        }
        further
    }

    /// All that was made, in the order of the chain's connections.
    fn finish(mut self) -> Synthesis {
        for Edge { to, .. } in &self.chain.graph.edges {
            let Some(program) = self.made.remove(to).and_then(|made| made.program) else {
                continue;
            };
            match gives_up_at_once(&program) {
                None => self.synthesis.programs.push(program),
                Some(why) => self.note(*to, format!("its native code takes all packets ({why})")),
            }
        }
        self.synthesis
    }
}

/// Lists of rules that are looked up one behind the other, with how many rules they have there. They
/// stay apart: rules of one and of the other would multiply, and each list can be changed rule by
/// rule.
fn lists_in_a_row(program: &Program) -> Vec<([NodeId; 2], [usize; 2])> {
    // By step: the list that packets were looked up in last, and how many rules it has.
    let mut last: Vec<Option<(NodeId, usize)>> = vec![None; program.steps.len()];
    let mut pairs = Vec::new();
    for (at, step) in program.steps.iter().enumerate() {
        let mut here = last[at];
        if let Step::Classify { rules, element, .. } = step {
            if let Some((before, more)) = here.filter(|(before, _)| before != element) {
                pairs.push(([before, *element], [more, rules.len()]));
            }
            here = Some((*element, rules.len()));
        }
        step.next().for_each(|to| last[to.0 as usize] = here.or(last[to.0 as usize]));
    }
    pairs
}

/// Why a program does no more than hand packets to its first element, if that is so.
fn gives_up_at_once(program: &Program) -> Option<Barrier> {
    let mut why = Barrier::NoInput;
    for (_, exit) in program.exits() {
        if !exit.visited.is_empty() {
            return None;
        }
        why = exit.barrier.unwrap_or(why);
    }
    Some(why)
}

fn chain<'a>(graph: &'a Graph, models: &'a [Model]) -> Chain<'a> {
    let opaque = graph.nodes.iter().zip(models).map(|(node, model)| {
        if node.inputs.contains(&Processing::Pull) {
            Some(Barrier::Pulled)
        } else if model.is_opaque() {
            match model.inputs.first().and_then(|block| block.first()) {
                Some(Op::Opaque(why)) => Some(Barrier::Opaque(why)),
                _ => Some(Barrier::NoInput),
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
        explore_rare_paths: false,
        tables: false,
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
