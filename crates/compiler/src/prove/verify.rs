//! A chain against its programs, and what verifications find.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use elements::element::{Boundary, HandlerCalls};
use ir::{Expr, Graph, Model, NodeId, Op, Port, Program, Store};

use super::alignment::{boundary, device};
use super::differential::{self, Effort, Evidence, Subject};
use super::replay::Shown;
use super::subjects::Subjects;
use super::{BUDGET, Comparison, Verdict, View, compare};
use crate::synthesize::{synthesize, synthesize_unsimplified};

impl Subjects {
    /// The elements that packets may come out of, or end at, that come to an element.
    fn ends(&self, node: NodeId) -> Vec<NodeId> {
        let is_end = |node: &ir::Node| {
            boundary(&node.class) == Some(Boundary::Egress) || node.outputs.is_empty()
        };
        let behind = self.behind(node).into_iter();
        behind.filter(|&at| is_end(&self.graph.nodes[at])).collect()
    }

    /// An element and all that packets may come to from it.
    fn behind(&self, node: NodeId) -> Vec<NodeId> {
        let (mut seen, mut waiting) = (HashSet::from([node]), vec![node]);
        let mut behind = Vec::new();
        while let Some(at) = waiting.pop() {
            behind.push(at);
            let next = self.graph.edges.iter().filter(|e| e.from.node == at);
            waiting.extend(next.map(|e| e.to.node).filter(|&to| seen.insert(to)));
        }
        behind
    }

    /// The same by class, with the device or file that it stands for.
    pub fn sinks(&self, node: NodeId) -> BTreeSet<String> {
        let nodes = self.ends(node).into_iter().map(|end| &self.graph.nodes[end]);
        nodes.map(|node| device(&node.class, &node.config)).collect()
    }

    /// Whether packets that come to an element leave the chain, or make handlers be called.
    pub(super) fn leads_out(&self, node: NodeId) -> bool {
        let calls = |at: NodeId| *self.calls(at) != HandlerCalls::None;
        self.ends(node).into_iter().any(|end| self.models[end].is_opaque())
            || self.behind(node).into_iter().any(calls)
    }

    /// Whether nothing that packets may come to from an element sees more of them than frames.
    pub(super) fn leads_to_frames(&self, node: NodeId) -> bool {
        let passes = |op: &Op| matches!(op, Op::Emit(Expr::Const(_)) | Op::Count(_) | Op::Drop(_));
        self.behind(node).into_iter().all(|at| {
            let model = &self.models[at];
            let sees_frames_only = self.frames_only.get(at).is_some_and(|&only| only);
            sees_frames_only || model.inputs.iter().flatten().all(passes)
        })
    }

    /// Whether all packets that come to an input have no annotations.
    pub(super) fn is_bare(&self, at: Port) -> bool {
        let makes_bare = |node: NodeId| self.makes_bare.get(node).is_some_and(|&bare| bare);
        let mut into = self.graph.edges.iter().filter(|edge| edge.to == at).peekable();
        into.peek().is_some() && into.all(|edge| makes_bare(edge.from.node))
    }

    /// The handlers that an element calls by itself.
    pub(super) fn calls(&self, node: NodeId) -> &HandlerCalls {
        self.calls.get(node).unwrap_or(&HandlerCalls::None)
    }
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
    /// Packets that show that two chains differ.
    pub shown: Option<Shown>,
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
        if self.evidence.disagreement.is_some()
            || self.shown.is_some()
            || self.proofs.iter().any(different)
        {
            return Outcome::Different;
        }
        let open = self.proofs.iter().any(|p| matches!(p.verdict, Verdict::Unproven(_)));
        let untried = self.evidence.sequences == 0 && !self.proofs.is_empty();
        if open || untried || !self.notes.is_empty() { Outcome::Undecided } else { Outcome::Equal }
    }
}

/// Verifies what a chain becomes: that simplification changes nothing for any packet, and that no
/// packet of many takes another path than element by element.
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
    let evidence = differential::run(&subject, effort);
    Verification { proofs, evidence, shown: None, notes: Vec::new() }
}

/// Proves that programs that a chain became are what symbolic execution of it comes to. Of each
/// no more than `budget` pairs of steps and rules are looked at.
pub fn prove_programs(
    graph: &Graph,
    models: &[Model],
    programs: &[Program],
    budget: u64,
) -> Vec<Proof> {
    let plain = synthesize_unsimplified(graph, models).programs;
    let name = |node: NodeId| graph.nodes[node].name.clone();
    let proof = |program: &Program| {
        let lowered = program.has_prefixes().then(|| program.clone().lower());
        let program = lowered.as_ref().unwrap_or(program);
        let before = plain.iter().find(|p| p.entry == program.entry);
        let (verdict, visited) = match before {
            Some(a) => {
                let (names_a, names_b) = (&name, &name);
                let view = View::Whole;
                let found = compare(&Comparison { a, b: program, names_a, names_b, view, budget });
                (found.verdict, found.visited)
            }
            None => (Verdict::Unproven("there is nothing to compare the program with".into()), 0),
        };
        Proof {
            at: program.entry,
            entry: (name(program.entry.node), program.entry.port),
            verdict,
            steps: (before.map_or(0, |p| p.steps.len()), program.steps.len()),
            visited,
        }
    };
    programs.iter().map(proof).collect()
}

/// Whether a program can be installed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// It is proven to be what symbolic execution of the chain comes to.
    Proven,
    /// A packet shows that it is not.
    Wrong,
    /// There is no proof, but packets made for each of its exits do what the models do.
    Checked {
        /// Why there is no proof.
        why: String,
        /// How many packets.
        packets: usize,
        /// How many exits it has.
        exits: usize,
    },
    /// There is no proof, and packets came to some of its exits only.
    Unchecked {
        /// Why there is no proof.
        why: String,
        /// Exits that packets came to, of how many.
        exits: (usize, usize),
    },
}

impl fmt::Display for Assurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven => f.write_str("the program is proven"),
            Self::Wrong => f.write_str("the program is wrong"),
            Self::Unchecked { why, exits: (_, 0) } => {
                write!(f, "the program is not proven ({why})")
            }
            Self::Checked { why, packets, exits } => write!(
                f,
                "the program is not proven ({why}), but checked by {packets} packets for all its {exits} exits"
            ),
            Self::Unchecked { why, exits: (reached, all) } => write!(
                f,
                "the program is not proven ({why}), and packets made for its exits reach {reached} of {all}"
            ),
        }
    }
}

/// Proves programs as [`prove_programs`] does, and checks by packets what cannot be proven.
pub fn assure_programs(
    graph: &Graph,
    models: &[Model],
    programs: &[Program],
    budget: u64,
) -> Vec<(Port, Assurance)> {
    let assure = |(program, proof): (&Program, Proof)| {
        let assurance = match proof.verdict {
            Verdict::Equal => Assurance::Proven,
            Verdict::Different(_) => Assurance::Wrong,
            Verdict::Unproven(why) => check_program(graph, models, program, why),
        };
        (program.entry, assurance)
    };
    let proofs = prove_programs(graph, models, programs, budget);
    programs.iter().zip(proofs).map(assure).collect()
}

/// Compares a program that is not proven, for this reason, with the chain's models: by packets made for
/// each of its exits, and by random ones, from the elements' first state on.
pub fn check_program(graph: &Graph, models: &[Model], program: &Program, why: String) -> Assurance {
    let programs = std::slice::from_ref(program);
    let subject = Subject { graph, models, state: &Store::new(), programs };
    let evidence = differential::run(&subject, Effort::fitting(models));
    let (packets, (reached, all)) = (evidence.packets, evidence.exits);
    if evidence.disagreement.is_some() {
        Assurance::Wrong
    } else if reached == all && evidence.unclear.is_none() {
        Assurance::Checked { why, packets, exits: all }
    } else {
        Assurance::Unchecked { why, exits: (reached, all) }
    }
}
