//! Whole chains: a chain against its programs, and a chain against another.

use std::collections::HashMap;

use ir::model::StateDecl;
use ir::{Graph, Model, NodeId, Port, Program, Store};

use super::differential::{self, Effort, Evidence, Subject};
use super::{BUDGET, Comparison, Verdict, View, compare};
use crate::synthesize::{synthesize, synthesize_plainly};

/// A chain with what its elements mean.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// The chain.
    pub graph: Graph,
    /// Its elements' models, in the order of the graph.
    pub models: Vec<Model>,
    /// State at the beginning.
    pub state: Store,
}

/// What was found for the packets that come to one input.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The input, of the first chain.
    pub at: Port,
    /// The element and the port that they come to.
    pub entry: (String, usize),
    /// What was found.
    pub verdict: Verdict,
    /// Steps that the two programs have.
    pub steps: (usize, usize),
    /// Pairs of steps that were looked at.
    pub visited: u64,
}

/// What is known of two chains, or of a chain and its programs.
#[derive(Clone, Debug)]
pub struct Verification {
    /// For each input of programs.
    pub proofs: Vec<Proof>,
    /// What packets showed.
    pub evidence: Evidence,
    /// Why more cannot be said.
    pub notes: Vec<String>,
}

/// How a verification ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same, for every packet.
    Equal,
    /// A packet shows a difference.
    Different,
    /// Neither was shown.
    Undecided,
}

impl Verification {
    /// What it comes to.
    pub fn outcome(&self) -> Outcome {
        let different = |p: &Proof| matches!(p.verdict, Verdict::Different(_));
        if self.evidence.disagreement.is_some() || self.proofs.iter().any(different) {
            return Outcome::Different;
        }
        let open = self.proofs.iter().any(|p| matches!(p.verdict, Verdict::Unproven(_)));
        let untried = self.evidence.packets == 0 && !self.proofs.is_empty();
        if open || untried || !self.notes.is_empty() { Outcome::Undecided } else { Outcome::Equal }
    }
}

/// Verifies what a chain becomes: that simplification changes nothing for any packet, and that no
/// packet of many goes another way than element by element.
pub fn verify_chain(chain: &Subjects, effort: Option<Effort>) -> Verification {
    let programs = synthesize(&chain.graph, &chain.models).programs;
    verify_programs(chain, &programs, effort)
}

/// The same for given programs.
pub fn verify_programs(
    chain: &Subjects,
    programs: &[Program],
    effort: Option<Effort>,
) -> Verification {
    let proofs = prove_programs(&chain.graph, &chain.models, programs, BUDGET);
    let subject =
        Subject { graph: &chain.graph, models: &chain.models, state: &chain.state, programs };
    let effort = effort.unwrap_or_else(|| Effort::fitting(&chain.models));
    Verification { proofs, evidence: differential::run(&subject, effort), notes: Vec::new() }
}

/// Proves that programs that a chain became are what symbolic execution of it comes to. Of each
/// no more than `budget` pairs of steps and rules are looked at.
pub fn prove_programs(
    graph: &Graph,
    models: &[Model],
    programs: &[Program],
    budget: u64,
) -> Vec<Proof> {
    let plain = synthesize_plainly(graph, models).programs;
    let name = |node: NodeId| graph.nodes[node].name.clone();
    let proof = |program: &Program| match plain.iter().find(|p| p.entry == program.entry) {
        Some(before) => prove(before, program, (&name, &name), View::Whole, budget),
        None => Proof {
            at: program.entry,
            entry: (name(program.entry.node), program.entry.port),
            verdict: Verdict::Unproven("there is nothing to compare the program with".into()),
            steps: (0, program.steps.len()),
            visited: 0,
        },
    };
    programs.iter().map(proof).collect()
}

type Names<'a> = &'a (dyn Fn(NodeId) -> String + Sync);

fn prove(
    a: &Program,
    b: &Program,
    (names_a, names_b): (Names<'_>, Names<'_>),
    view: View,
    budget: u64,
) -> Proof {
    let compared = compare(&Comparison { a, b, names_a, names_b, view, budget });
    Proof {
        at: a.entry,
        entry: (names_a(a.entry.node), a.entry.port),
        verdict: compared.verdict,
        steps: (a.steps.len(), b.steps.len()),
        visited: compared.visited,
    }
}

/// Compares what two chains do with packets: which come out where, and how. Elements that were
/// given the same name are taken for the same, sources and sinks that stand for the same device or
/// file, and others by class, configuration and order.
pub fn verify_pair(a: &Subjects, b: &Subjects, effort: Option<Effort>) -> Verification {
    let (names_a, names_b) = common_names(&a.graph, &b.graph);
    let (a, b) = (renamed(a, &names_a), renamed(b, &names_b));
    let (pa, pb) =
        (synthesize(&a.graph, &a.models).programs, synthesize(&b.graph, &b.models).programs);
    let (ea, eb) = (sources(&a.graph, &pa), sources(&b.graph, &pb));
    let (mut proofs, mut notes) = (Vec::new(), Vec::new());
    let mut places: Vec<(Port, Port)> = Vec::new();
    for (i, source) in ea.iter().enumerate() {
        let Some(j) = eb.iter().position(|other| other == source) else {
            notes.push(format!("what comes from {source} has no counterpart in the second chain"));
            continue;
        };
        places.push((pa[i].entry, pb[j].entry));
        let name_a = |node: NodeId| a.graph.nodes[node].name.clone();
        let name_b = |node: NodeId| b.graph.nodes[node].name.clone();
        proofs.push(prove(&pa[i], &pb[j], (&name_a, &name_b), View::Packets, BUDGET));
    }
    for source in eb.iter().filter(|source| !ea.contains(source)) {
        notes.push(format!("what comes from {source} has no counterpart in the first chain"));
    }
    if places.is_empty() {
        notes.push("no packets come from the same place in both chains".into());
    }
    let first = Subject { graph: &a.graph, models: &a.models, state: &a.state, programs: &pa };
    let second = Subject { graph: &b.graph, models: &b.models, state: &b.state, programs: &pb };
    let effort = effort.unwrap_or_else(|| Effort::fitting(&a.models));
    Verification {
        proofs,
        evidence: differential::run_pair(&first, &second, &places, effort),
        notes,
    }
}

/// Where the packets of each program come from.
fn sources(graph: &Graph, programs: &[Program]) -> Vec<String> {
    let from = |program: &Program| {
        let edge = graph.edges.iter().find(|e| e.to == program.entry);
        edge.map_or_else(
            || format!("'{}' [{}]", graph.nodes[program.entry.node].name, program.entry.port),
            |e| format!("'{}' [{}]", graph.nodes[e.from.node].name, e.from.port),
        )
    };
    programs.iter().map(from).collect()
}

/// Names of the elements of two graphs by which they are compared; each names one element of a
/// graph.
fn common_names(a: &Graph, b: &Graph) -> (Vec<String>, Vec<String>) {
    let given = |graph: &Graph, name: &str| {
        !name.contains('@') && graph.nodes.iter().any(|node| node.name == name)
    };
    let names = |graph: &Graph, other: &Graph| {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let name = |node: &ir::Node| {
            if given(other, &node.name) && given(graph, &node.name) {
                return node.name.clone();
            }
            // Of sources and sinks, what they are connected to says who they are.
            let is_end = node.inputs.is_empty() || node.outputs.is_empty();
            let first = node.config.split(',').next().unwrap_or_default().trim();
            let config = if is_end { first } else { &node.config };
            let kind = match config.is_empty() {
                true => node.class.clone(),
                false => format!("{}({config})", node.class),
            };
            let count = seen.entry(kind.clone()).or_default();
            *count += 1;
            if *count == 1 { kind } else { format!("{kind} #{count}") }
        };
        graph.nodes.iter().map(name).collect::<Vec<String>>()
    };
    (names(a, b), names(b, a))
}

/// The chain with other names of its elements.
fn renamed(chain: &Subjects, names: &[String]) -> Subjects {
    let of: HashMap<&str, &str> =
        chain.graph.nodes.iter().zip(names).map(|(n, to)| (&*n.name, &**to)).collect();
    let rename = |name: &str| of.get(name).map_or_else(|| name.to_string(), |to| (*to).to_string());
    let mut graph = chain.graph.clone();
    graph.nodes.iter_mut().for_each(|node| node.name = rename(&node.name));
    let mut models = chain.models.clone();
    for StateDecl { owner, .. } in models.iter_mut().flat_map(|model| &mut model.state) {
        *owner = owner.as_deref().map(rename);
    }
    let mut state = Store::new();
    for (owner, name, value) in chain.state.iter() {
        state.set(&rename(owner), name, value.clone());
    }
    Subjects { graph, models, state }
}
