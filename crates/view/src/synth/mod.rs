//! What a chain became, for people and programs.

mod flows;
pub mod headers;
pub mod json;
mod names;
pub mod picture;
pub mod tables;
pub mod text;
mod words;

use std::collections::{HashMap, HashSet};
use std::mem::size_of;
use std::rc::Rc;
use std::time::Duration;

use compiler::explain::provenance::{
    Alternatives, BitRange, Condition, ConditionSubject, Conditions, Figures, Paths, Replayer,
    Space, Visit, conditions, of_chain, of_path,
};
use compiler::{Chain, Synthesis};
use ir::layout::{Facts, Layout, Layouts};
use ir::program::{Effect, End, Exit, Mark, StateId, StepId, Term, TermId, Write};
use ir::{Graph, Model, NodeId, Program, Sources, Span};

pub(crate) use names::named;
pub(crate) use words::Words;

use crate::explain::Placed;

/// Paths to a class that are shown one by one.
const MAX_PATHS: usize = 24;

/// What a chain became.
pub struct Report<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) models: &'a [Model],
    pub(crate) sources: &'a Sources,
    pub(crate) name: String,
    pub(crate) synthesis: &'a Synthesis,
    pub(crate) programs: Vec<Became<'a>>,
    /// What it took.
    pub cost: Cost,
}

/// Time and memory that a synthesis took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Of reading the configuration and making its elements.
    pub elaboration: Duration,
    /// Of synthesis.
    pub synthesis: Duration,
    /// Of proving that programs do what symbolic execution of the chain says.
    pub proof: Duration,
    /// Of finding out what there is to tell of programs.
    pub description: Duration,
    /// So many programs are proven.
    pub proven: usize,
    /// Most memory that the process had, in bytes; absent where the system does not tell.
    pub peak: Option<u64>,
}

/// A program and its classes.
pub(crate) struct Became<'a> {
    pub(crate) program: &'a Program,
    /// The outputs that feed it, and the elements that they belong to.
    pub(crate) feeders: Vec<NodeId>,
    pub(crate) classes: Vec<Class<'a>>,
    /// Bytes of memory that its terms, steps and rules take, about.
    pub(crate) size: usize,
}

/// How packets of a class end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Egress {
    /// At an element that nothing follows: they leave the chain.
    Leaves(NodeId),
    /// At an element that is not looked into, or at another program: they go on there.
    GoesOn(NodeId),
    /// In the native code of an element whose model says what becomes of other packets.
    HandedOver(NodeId),
    /// They are dropped.
    Dropped(NodeId, &'static str),
}

/// A traffic class: packets that end alike.
pub(crate) struct Class<'a> {
    /// Its place among those of its program, from 1.
    pub(crate) number: usize,
    pub(crate) step: StepId,
    pub(crate) exit: &'a Exit,
    pub(crate) egress: Egress,
    /// How many paths lead to it.
    pub(crate) paths: u128,
    /// What holds for all of its packets.
    pub(crate) known: Conditions,
    /// One of these holds too; absent if they are too many to tell.
    pub(crate) alternatives: Option<Vec<Conditions>>,
    pub(crate) visits: Vec<Visit>,
    /// Where headers are as its packets come in, and as they leave.
    pub(crate) layout: Layout,
    pub(crate) leaving: Layout,
    /// The same of each alternative, as its packets come in.
    pub(crate) layouts: Vec<Layout>,
    pub(crate) chain: Figures,
    pub(crate) figures: Figures,
}

/// Something that is done to the packets of a class, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// What is written; empty for what is not a place.
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) elements: Vec<NodeId>,
    /// Where in the packet's bytes it is done, and to what field if it is a whole one.
    pub(crate) place: Option<(i32, u32, Option<Placed>)>,
}

impl Done {
    fn of(name: &str, what: String, elements: Vec<NodeId>) -> Self {
        Self { name: name.to_string(), what, elements, place: None }
    }

    /// In words.
    pub(crate) fn said(&self) -> String {
        match self.name.as_str() {
            "" => self.what.clone(),
            name => format!("{name} {}", self.what),
        }
    }
}

impl<'a> Report<'a> {
    /// Looks at what became of a chain whose elements mean `models`.
    pub fn of(
        chain: &'a Chain,
        sources: &'a Sources,
        name: &str,
        models: &'a [Model],
        synthesis: &'a Synthesis,
        cost: Cost,
    ) -> Self {
        let graph = &chain.graph;
        let mut programs: Vec<Became<'a>> =
            synthesis.programs.iter().map(|p| Became::of(graph, models, p)).collect();
        // Those that packets come to from outside come first.
        let is_fed_by_source =
            |became: &Became<'_>| became.feeders.iter().any(|&n| graph.nodes[n].inputs.is_empty());
        programs.sort_by_key(|became| !is_fed_by_source(became));
        Self { graph, models, sources, name: name.to_string(), synthesis, programs, cost }
    }

    /// Words for a class of a program.
    pub(crate) fn words<'w>(&'w self, program: &'w Program, class: &'w Class<'_>) -> Words<'w> {
        let Self { graph, models, sources, .. } = self;
        let Class { layout, leaving, .. } = class;
        Words { graph, models, sources, program, layout, leaving }
    }

    pub(crate) fn element(&self, node: NodeId) -> &str {
        self.graph.nodes.get(node).map_or("?", |n| n.name.as_str())
    }

    /// `file:line` of an element.
    pub(crate) fn place(&self, node: NodeId) -> String {
        self.graph.nodes.get(node).map_or(String::new(), |n| self.sources.landmark(n.span))
    }
}

impl<'a> Became<'a> {
    pub(crate) fn of(graph: &'a Graph, models: &'a [Model], program: &'a Program) -> Self {
        let (paths, alternatives) = (Paths::of(program), Alternatives::of(program));
        let mut replayer = Replayer::new(graph, models);
        let mut classes = Vec::new();
        for (step, known) in conditions(program) {
            let ir::program::Step::Exit(exit) = program.step(step) else { continue };
            let path = paths.shortest(step);
            let visits = replayer.visits(program, &path, exit);
            classes.push(Class {
                number: 0,
                step,
                exit,
                egress: egress(graph, models, program.entry, exit),
                paths: paths.count(step),
                alternatives: alternatives.at(step, &known, MAX_PATHS),
                known,
                layout: Layout::default(),
                leaving: Layout::default(),
                layouts: Vec::new(),
                chain: of_chain(&visits),
                figures: of_path(program, models, &path, exit),
                visits,
            });
        }
        // Where no packet passes, all go on.
        let passed: HashSet<ir::Port> = program.exits().flat_map(|e| e.1.visited.clone()).collect();
        for class in &mut classes {
            if let (Egress::HandedOver(node), End::Push { to, .. }) = (class.egress, class.exit.end)
                && !passed.contains(&to)
            {
                class.egress = Egress::GoesOn(node);
            }
        }
        let askers = askers(program);
        for class in &mut classes {
            let visited: HashSet<NodeId> = class.exit.visited.iter().map(|p| p.node).collect();
            let alternatives = class.alternatives.iter_mut().flatten();
            for known in alternatives.chain([&mut class.known]) {
                also(known, &askers, &visited);
            }
        }
        // Where most classes have their network header, those have it of which nothing is known.
        let mut votes: HashMap<i32, usize> = HashMap::new();
        for at in classes.iter().filter_map(|c| names::came_in(&c.visits)) {
            *votes.entry(at).or_default() += 1;
        }
        let usual = votes.into_iter().max_by_key(|&(at, n)| (n, -at)).map(|v| v.0);
        let layouts = Layouts::of(program);
        for class in &mut classes {
            let Some(facts) = layouts.facts(class.step) else { continue };
            let writes = &class.exit.writes;
            let coming_in =
                |facts: &Facts| names::coming_in(program, writes, facts, &class.visits, usual);
            class.layout = coming_in(facts);
            class.leaving = class.layout.leaving(program, writes, facts);
            let alternatives = class.alternatives.iter().flatten();
            let layouts = alternatives.map(|a| coming_in(&names::learnt(program, facts, a)));
            class.layouts = layouts.collect();
        }
        let outside =
            |p: &ir::Port| !synthesised(models, p.node) || graph.nodes[p.node].inputs.is_empty();
        let mut feeders: Vec<NodeId> =
            graph.predecessors(program.entry).filter(outside).map(|p| p.node).collect();
        if feeders.is_empty() {
            feeders = graph.predecessors(program.entry).map(|p| p.node).collect();
        }
        // Each once, however many of its outputs lead here.
        let mut told = HashSet::new();
        feeders.retain(|&feeder| told.insert(feeder));
        classes.sort_by_key(|c| (rank(c.egress), std::cmp::Reverse(c.visits.len()), c.step));
        for (number, class) in (1..).zip(&mut classes) {
            class.number = number;
        }
        Self { program, feeders, classes, size: size(program) }
    }

    pub(crate) fn rules(&self) -> usize {
        // Paths may share a list of rules.
        let mut seen = HashSet::new();
        let mut rules = |step: &ir::program::Step| match step {
            ir::program::Step::Classify { rules, .. } if seen.insert(rules.as_ptr()) => rules.len(),
            _ => 0,
        };
        self.program.steps.iter().map(&mut rules).sum()
    }
}

/// The elements that ask of each number. Where several do, a program may ask once for all.
fn askers(program: &Program) -> HashMap<TermId, Vec<NodeId>> {
    use ir::program::{Atom, Step};
    let mut askers: HashMap<TermId, Vec<NodeId>> = HashMap::new();
    for step in &program.steps {
        if let Step::Test { atom: Atom::Test(term, _), element, .. }
        | Step::Switch { on: term, element, .. } = step
        {
            let all = askers.entry(*term).or_default();
            if !all.contains(element) {
                all.push(*element);
            }
        }
    }
    askers
}

/// Adds to conditions the elements that the packets came through and that asked the same.
fn also(known: &mut Conditions, askers: &HashMap<TermId, Vec<NodeId>>, visited: &HashSet<NodeId>) {
    for (asked, condition) in known {
        let ConditionSubject::Number(term) = asked else { continue };
        for asker in askers.get(term).into_iter().flatten() {
            if visited.contains(asker) && !condition.elements.contains(asker) {
                Rc::make_mut(&mut condition.elements).push(*asker);
            }
        }
    }
}

fn synthesised(models: &[Model], node: NodeId) -> bool {
    models.get(node).is_some_and(|m| !m.is_opaque())
}

fn rank(egress: Egress) -> (u8, NodeId) {
    match egress {
        Egress::Leaves(node) => (0, node),
        Egress::GoesOn(node) => (1, node),
        Egress::HandedOver(node) => (2, node),
        Egress::Dropped(node, _) => (3, node),
    }
}

fn egress(graph: &Graph, models: &[Model], entry: ir::Port, exit: &Exit) -> Egress {
    match exit.end {
        End::Drop { element, reason } => Egress::Dropped(element, reason.0),
        // Another part of the entry's program goes on.
        End::Handoff { .. } => Egress::GoesOn(entry.node),
        End::Push { to, native } => match graph.nodes.get(to.node) {
            Some(node) if node.outputs.is_empty() => Egress::Leaves(to.node),
            Some(_) if native && synthesised(models, to.node) => Egress::HandedOver(to.node),
            _ => Egress::GoesOn(to.node),
        },
    }
}

/// Bytes that a program takes, about.
fn size(program: &Program) -> usize {
    use ir::program::Step;
    let set = |s: &ir::IntervalSet| size_of_val(s.intervals());
    let mut bytes =
        size_of::<Term>() * program.terms.len() + size_of::<Step>() * program.steps.len();
    let mut seen = HashSet::new();
    for step in &program.steps {
        bytes += match step {
            Step::Test { atom: ir::program::Atom::Test(_, s), .. } => set(s),
            Step::Test { .. } | Step::Lookup { .. } => 0,
            Step::Switch { cases, .. } => cases.iter().map(|c| set(&c.0) + size_of_val(c)).sum(),
            Step::Classify { rules, .. } if seen.insert(rules.as_ptr()) => {
                let cube = |c: &Vec<(u8, ir::IntervalSet)>| {
                    c.iter().map(|(_, s)| set(s) + 32).sum::<usize>() + 24
                };
                rules.iter().map(|r| size_of_val(r) + r.cubes.iter().map(cube).sum::<usize>()).sum()
            }
            Step::Classify { .. } => 0,
            Step::Exit(exit) => {
                size_of::<Exit>()
                    + size_of::<Effect>() * exit.effects.len()
                    + size_of::<Write>() * (exit.writes.bytes.len() + exit.writes.annotations.len())
                    + size_of::<ir::Port>() * exit.visited.len()
            }
        };
    }
    bytes
}

impl Class<'_> {
    /// What more is asked of its packets, if anything: one of these. Each comes with words for it.
    pub(crate) fn either<'w>(&'w self, words: Words<'w>) -> Vec<(&'w Conditions, Words<'w>)> {
        match self.alternatives.as_deref() {
            Some(all) if all.iter().all(|a| !a.is_empty()) => {
                let words = self.layouts.iter().map(|layout| Words { layout, ..words });
                all.iter().zip(words).collect()
            }
            _ => Vec::new(),
        }
    }

    /// All that is done to its packets, in the order of their bytes.
    pub(crate) fn done(&self, words: &Words<'_>) -> Vec<Done> {
        let exit = self.exit;
        let writes = &exit.writes;
        let mut all: Vec<Done> = Vec::new();
        let by = |of: &dyn Fn(&Visit) -> bool| -> Vec<NodeId> {
            self.visits.iter().filter(|v| of(v)).map(|v| v.at.node).collect()
        };
        let dropped = matches!(exit.end, End::Drop { .. });
        if !dropped && writes.start != 0 {
            let what = match writes.start {
                n if n > 0 => format!("{n} bytes stripped in front"),
                n => format!("{} bytes pushed in front", -n),
            };
            all.push(Done {
                name: String::new(),
                what,
                elements: by(&|v| v.moves > 0),
                place: None,
            });
        }
        if let Some(length) = writes.length.filter(|_| !dropped) {
            let what = format!("length {}", words.term(length));
            all.push(Done::of("", what, by(&|v| v.cut)));
        }
        let spaces = [(Space::Entry, &writes.bytes), (Space::Annotation, &writes.annotations)];
        for (space, list) in spaces {
            for write in list.iter() {
                let (start, bits) = (write.offset * 8, u32::from(write.length) * 8);
                let parts = match space {
                    Space::Entry => self.leaving.parts(start, bits),
                    _ => vec![(start, bits)],
                };
                for (at, width) in parts {
                    let low = bits - (at - start) as u32 - width;
                    let Some((name, what)) = words.written((space, at, width), write.value, low)
                    else {
                        continue;
                    };
                    let place = BitRange { space, start: at, width };
                    let mut elements = by(&|v| v.writes.iter().any(|w| w.overlaps(&place)));
                    if elements.is_empty() {
                        // Its path through the element is another one than was thought.
                        elements = by(&|v| v.might_write.iter().any(|w| w.overlaps(&place)));
                    }
                    if elements.is_empty() {
                        // Where it is written is not known; who writes at all may be who wrote it.
                        let somewhere = |w: &BitRange| matches!(w.space, Space::Somewhere(_));
                        elements = by(&|v| v.writes.iter().chain(&v.might_write).any(somewhere));
                        elements.drain(..elements.len().saturating_sub(1));
                    }
                    // What another wrote over is not shown, unless all of it is one sum.
                    let adds =
                        what == "updated" || what.starts_with("-=") || what.starts_with("+=");
                    if !adds {
                        elements.drain(..elements.len().saturating_sub(1));
                    }
                    let place = (space == Space::Entry)
                        .then(|| (at, width, named(&self.leaving, at, width).field));
                    all.push(Done { name, what, elements, place });
                }
            }
        }
        let meta = [
            ("packet type", writes.packet_type, ir::field::meta::TYPE),
            ("timestamp", writes.timestamp, ir::field::meta::TIMESTAMP),
        ];
        for (name, value, field) in meta {
            let Some(term) = value else { continue };
            let (start, width) = (i32::from(field.offset), u32::from(field.width));
            let place = BitRange { space: Space::Meta, start, width };
            let mut elements = by(&|v| v.writes.contains(&place));
            elements.drain(..elements.len().saturating_sub(1));
            all.push(Done::of(name, format!("= {}", words.value(field, term)), elements));
        }
        for (i, mark) in writes.marks.iter().enumerate() {
            let header = [net::Header::Mac, net::Header::Network, net::Header::Transport][i];
            let what = match mark {
                Mark::Keep => continue,
                Mark::Clear => "forgotten".to_string(),
                Mark::At(term) => format!("at byte {}", words.offset(*term)),
            };
            let mut elements = by(&|v| v.marks[i]);
            elements.drain(..elements.len().saturating_sub(1));
            let name = format!("{} header", words::header_name(header));
            all.push(Done::of(&name, what, elements));
        }
        for copy in &exit.copies {
            let name = |node: NodeId| words.graph.nodes.get(node).map_or("?", |n| n.name.as_str());
            let what = match copy.end {
                End::Push { to, .. } => format!("a copy sent to {} [{}]", name(to.node), to.port),
                End::Drop { element, reason } => {
                    format!("a copy dropped at {} ({reason})", name(element))
                }
                End::Handoff { to } => format!("a copy handed off to {to}"),
            };
            let through = copy.visited.iter().map(|port| port.node).collect();
            all.push(Done::of("", what, through));
        }
        for effect in &exit.effects {
            let element = |owner: &str, or: NodeId| words.graph.find(owner).unwrap_or(or);
            let owner = |state: StateId| {
                let state = words.program.state.get(usize::from(state.0));
                let owner = state.map_or("?", |s| s.owner.as_str());
                (owner, state.map(|s| element(owner, s.element)).into_iter().collect())
            };
            all.push(match effect {
                Effect::Count { counter, .. } => {
                    let (owner, elements) = owner(*counter);
                    Done::of("", format!("counted by {owner}"), elements)
                }
                Effect::Set { cells, value, .. } => {
                    let (owner, elements) = owner(*cells);
                    let name =
                        words.program.state.get(usize::from(cells.0)).map_or("?", |s| s.name);
                    Done::of(
                        &format!("{name} of {owner}"),
                        format!("= {}", words.term(*value)),
                        elements,
                    )
                }
                Effect::Note { element, reason } => {
                    let what = format!("counted as {reason}");
                    Done::of("", what, vec![*element])
                }
                Effect::Update { lookup, .. } => {
                    let flows = words.program.flows_of(*lookup);
                    let owner = flows.map_or("?", |flows| flows.owner.as_str());
                    let lookup = words.program.lookups.get(usize::from(lookup.0));
                    let what = format!("{owner}'s flow renewed");
                    let elements = lookup.map(|l| l.element).into_iter().collect();
                    Done::of("", what, elements)
                }
            });
        }
        all
    }
}

/// Conditions in the order in which they were asked.
pub(crate) fn in_order(known: &Conditions) -> Vec<(&ConditionSubject, &Condition)> {
    let mut all: Vec<_> = known.iter().collect();
    all.sort_by_key(|(_, c)| c.order);
    all
}

/// The place of the one rule that a condition is about.
pub(crate) fn one_rule(
    words: &Words<'_>,
    asked: &ConditionSubject,
    condition: &Condition,
) -> Option<Span> {
    let ConditionSubject::Rules(element) = asked else { return None };
    match words.spans(*element, &condition.set)[..] {
        [(_, span)] => span,
        _ => None,
    }
}
