//! A chain against another.

use std::collections::{BTreeSet, HashMap};

use ir::program::End;
use ir::{NodeId, Port, Program};

use super::alignment::{Alignment, Place, Side, handing_over};
use super::differential::{self, Arrival, Effort, Subject, Walk};
use super::observe::{Fate, Held, Judgement, Observation, Queue};
use super::verify::{Proof, Subjects, Verification};
use super::{Around, BUDGET, Comparison, Verdict, View, compare_within};
use crate::synthesize::synthesize_wholly;
use crate::witness::Witness;

/// Compares what two chains do with packets: which come out where, and how. Sources and sinks are
/// the same that stand for the same device or file; queues, what pulls from them, and elements that
/// only their own code can speak for are compared by class, configuration and what follows. Elements
/// with state in common were given the same name, or have the same class, configuration and order.
pub fn verify_pair(a: &Subjects, b: &Subjects, effort: Option<Effort>) -> Verification {
    let chains = [a, b];
    let mut programs = chains.map(|chain| synthesize_wholly(&chain.graph, &chain.models).programs);
    let alignment = Alignment::new(chains, [&programs[0], &programs[1]]);
    for (side, programs) in programs.iter_mut().enumerate() {
        programs.retain(|program| alignment.is_alive(side, program.entry.node));
    }
    let mut pair = Pair { chains, alignment, programs, differences: Vec::new(), notes: Vec::new() };
    let places = pair.places();
    let proofs: Vec<Proof> = places.iter().map(|place| pair.prove(place)).collect();
    let effort = effort.unwrap_or_else(|| Effort::fitting(&a.models));
    let entries: Vec<(Port, Port)> =
        places.iter().filter(|place| place.certain).map(|p| (p.at[0], p.at[1])).collect();
    let judge = |a: &Observation, b: &Observation| pair.judge(a, b);
    let (one, other) = (pair.subject(0), pair.subject(1));
    let evidence = differential::run_pair(&one, &other, &entries, &judge, effort);
    let Pair { differences, mut notes, .. } = pair;
    let told = |why: &String| {
        let told = |p: &Proof| matches!(&p.verdict, Verdict::Unproven(known) if known == why);
        proofs.iter().any(told)
    };
    notes.extend(evidence.unclear.clone().filter(|why| !told(why)));
    Verification { proofs, evidence, differences, notes }
}

/// Two chains and their programs.
struct Pair<'a> {
    chains: [&'a Subjects; 2],
    alignment: Alignment<'a>,
    programs: [Vec<Program>; 2],
    differences: Vec<String>,
    notes: Vec<String>,
}

const ORDINALS: [&str; 2] = ["first", "second"];

impl Pair<'_> {
    fn subject(&self, side: Side) -> Subject<'_> {
        let Subjects { graph, models, state, .. } = self.chains[side];
        Subject { graph, models, state, programs: &self.programs[side] }
    }

    fn program(&self, side: Side, at: Port) -> Option<&Program> {
        self.programs[side].iter().find(|program| program.entry == at)
    }

    /// The inputs that the same packets come to. Where one chain has a program and the other has
    /// none, the other gets one that does nothing.
    fn places(&mut self) -> Vec<Place> {
        let pairs = self.alignment.pair_sources();
        for side in [0, 1] {
            for (from, to) in self.alignment.lacking(side, &pairs) {
                if self.chains[side].leads_out(to.node) {
                    let output = match from.port {
                        0 => String::new(),
                        port => format!("output {port} of "),
                    };
                    self.differences.push(format!(
                        "what comes from {output}{} of the {} chain does not come from there in the {}",
                        self.alignment.words(side, from.node),
                        ORDINALS[side],
                        ORDINALS[1 - side],
                    ));
                }
            }
        }
        let mut places = Vec::new();
        for (a, b) in pairs {
            if !self.alignment.set_alike(a, b) {
                self.notes.push(self.alignment.unlike(a, b));
            }
            places.extend(self.alignment.places_behind((a, b), true));
        }
        // Where there are no programs behind them, what follows them says whether they are alike.
        let from_sources = places.len();
        for (pair, certain) in self.alignment.pair_opaque() {
            places.extend(self.alignment.places_behind(pair, certain));
        }
        // Stages that chains are cut into.
        for program in &self.programs[0] {
            let name = self.alignment.name(0, program.entry.node);
            let there = self.programs[1].iter().find(|other| {
                let at = other.entry;
                at.port == program.entry.port && self.alignment.name(1, at.node) == name
            });
            places.extend(
                there.map(|other| Place { at: [program.entry, other.entry], certain: true }),
            );
        }
        let mut seen = BTreeSet::new();
        let mut number = 0;
        places.retain(|place| {
            number += 1;
            let has_program = |side: Side| self.program(side, place.at[side]).is_some();
            let is_work = number <= from_sources || has_program(0) || has_program(1);
            is_work && seen.insert(place.at)
        });
        for side in [0, 1] {
            for place in &places {
                if self.program(side, place.at[side]).is_none() {
                    self.programs[side].push(handing_over(place.at[side]));
                }
            }
            for program in &self.programs[side] {
                let entry = program.entry;
                if !places.iter().any(|place| place.at[side] == entry)
                    && self.chains[side].leads_out(entry.node)
                {
                    self.notes.push(format!(
                        "what comes to {} of the {} chain has no counterpart in the {}",
                        self.alignment.words(side, entry.node),
                        ORDINALS[side],
                        ORDINALS[1 - side],
                    ));
                }
            }
        }
        places
    }

    fn prove(&self, place: &Place) -> Proof {
        let entry = place.at[0];
        let programs = [0, 1].map(|side| {
            let mut program = self
                .program(side, place.at[side])
                .cloned()
                .unwrap_or_else(|| handing_over(place.at[side]));
            for state in &mut program.state {
                if let Some(owner) = self.alignment.find(side, &state.owner) {
                    state.owner = self.alignment.name(side, owner).to_string();
                }
            }
            program
        });
        let [a, b] = &programs;
        let compared = |named: bool| {
            let within = Within::new(self, place.at, named);
            let names_a = |node: NodeId| within.end(0, node, false);
            let names_b = |node: NodeId| within.end(1, node, false);
            let (names_a, names_b) = (&names_a, &names_b);
            let (view, budget) = (View::Packets, BUDGET);
            compare_within(&Comparison { a, b, names_a, names_b, view, budget }, &within)
        };
        let found = compared(false);
        let (mut verdict, mut visited) = (found.verdict, found.visited);
        if let (Verdict::Equal, Some(several)) = (&verdict, self.crowd(&programs)) {
            let named = compared(true);
            visited += named.visited;
            if !matches!(named.verdict, Verdict::Equal) {
                verdict = Verdict::Unproven(several);
            }
        }
        if let (Verdict::Different(_), false) = (&verdict, place.certain) {
            let [one, other] = [0, 1].map(|side| self.alignment.words(side, place.at[side].node));
            verdict = Verdict::Unproven(format!(
                "{one} and {other} differ, but whether the same packets come to them is not clear"
            ));
        }
        Proof {
            at: entry,
            entry: (self.chains[0].graph.nodes[entry.node].name.clone(), entry.port),
            verdict,
            steps: (a.steps.len(), b.steps.len()),
            visited,
        }
    }

    /// Why it matters which of several elements takes what, if there are several alike.
    fn crowd(&self, [a, b]: &[Program; 2]) -> Option<String> {
        let one = std::slice::from_ref;
        let several = self.alignment.crowded([one(a), one(b)]);
        let words: Vec<String> =
            several.iter().take(4).map(|&node| self.alignment.words(0, node)).collect();
        (!words.is_empty()).then(|| {
            format!("{} are alike: which of them takes which packets may differ", words.join(", "))
        })
    }

    /// Whether the same packets come out of both chains.
    fn judge(&self, a: &Observation, b: &Observation) -> Judgement {
        if let Some(why) = differential::endless(a, b) {
            return Judgement::Unclear(why);
        }
        let fault = |seen: &Observation| seen.fates.iter().any(|f| matches!(f, Fate::Fault(_)));
        if fault(a) || fault(b) {
            return if a.fates == b.fates { Judgement::Same } else { Judgement::Different };
        }
        let arrived = |side: Side, seen: &Observation| -> Vec<(NodeId, Queue, Witness)> {
            let arrived = seen.fates.iter().filter_map(|fate| match fate {
                Fate::Arrived(queue, packet) => {
                    let node = self.alignment.find(side, &queue.element)?;
                    Some((node, queue.clone(), (**packet).clone()))
                }
                _ => None,
            });
            arrived.collect()
        };
        let (mut here, mut there) = (arrived(0, a), arrived(1, b));
        let alike = |(x, p, _): &(NodeId, Queue, Witness), (y, q, _): &(NodeId, Queue, Witness)| {
            self.alignment.alike(*x, *y) && p.port == q.port
        };
        here.retain(|one| {
            let same = |other: &_| alike(one, other) && one.2 == other.2;
            match there.iter().position(same) {
                Some(at) => {
                    there.remove(at);
                    false
                }
                None => true,
            }
        });
        let sinks = |side: Side, all: &[(NodeId, Queue, Witness)]| -> BTreeSet<String> {
            all.iter().flat_map(|(node, ..)| self.alignment.sinks(side, *node)).collect()
        };
        let (x, y) = (sinks(0, &here), sinks(1, &there));
        let another = |all: &[(NodeId, Queue, Witness)], side: Side, others: &BTreeSet<String>| {
            all.iter().any(|one| {
                let sinks = self.alignment.sinks(side, one.0);
                !sinks.is_empty() && sinks.is_disjoint(others)
            })
        };
        let same_place = here.iter().any(|one| there.iter().any(|other| alike(one, other)));
        match (here.first(), there.first()) {
            (None, None) => Judgement::Same,
            _ if same_place || another(&here, 0, &y) || another(&there, 1, &x) => {
                Judgement::Different
            }
            (Some((one, ..)), Some((other, ..))) => {
                Judgement::Unclear(self.alignment.unlike(*one, *other))
            }
            (one, _) => {
                let side = usize::from(one.is_none());
                let node = one.or(there.first()).map_or(0, |(node, ..)| *node);
                let words = self.alignment.words(side, node);
                let which = ORDINALS[side];
                Judgement::Unclear(format!("only in the {which} chain do packets come to {words}"))
            }
        }
    }
}

/// What lies around two programs of a pair.
struct Within<'a> {
    pair: &'a Pair<'a>,
    /// Their inputs.
    at: [Port; 2],
    /// Whether elements that are alike are told apart by their names.
    named: bool,
    /// The elements of each chain, by the names of the ends that they are.
    nodes: [HashMap<String, NodeId>; 2],
}

impl<'a> Within<'a> {
    fn new(pair: &'a Pair<'a>, at: [Port; 2], named: bool) -> Self {
        let mut within = Self { pair, at, named, nodes: Default::default() };
        within.nodes = [0, 1].map(|side| {
            let nodes = 0..pair.chains[side].graph.nodes.len();
            let ends = nodes.flat_map(|node| [true, false].map(|native| (node, native)));
            ends.map(|(node, native)| (within.end(side, node, native), node)).collect()
        });
        within
    }

    /// The element of a chain that a program leaves packets to, if it leads through it otherwise.
    fn left(&self, side: Side, end: &str) -> Option<NodeId> {
        let node = self.nodes[side].get(end).copied()?;
        (!self.pair.alignment.is_opaque(side, node)).then_some(node)
    }
}

impl Around for Within<'_> {
    fn end(&self, side: usize, node: NodeId, native: bool) -> String {
        match self.named {
            true => self.pair.alignment.named_end(side, node, native),
            false => self.pair.alignment.end(side, node, native),
        }
    }

    fn is_left_open(&self, end: &str) -> bool {
        self.left(0, end).or_else(|| self.left(1, end)).is_some()
    }

    fn tables(&self, a: &str, b: &str) -> Vec<&str> {
        match (self.left(0, a), self.left(1, b)) {
            (Some(a), Some(b)) => self.pair.alignment.tables(a, b),
            _ => Vec::new(),
        }
    }

    fn show(&self, packet: &Witness, flows: &[Held]) -> (Judgement, Observation, Observation) {
        let [a, b] = [0, 1].map(|side| {
            let mut walk = Walk::new(&self.pair.subject(side));
            let held: Vec<Held> = flows
                .iter()
                .filter_map(|held| {
                    let owner = self.pair.alignment.original(side, &held.owner)?;
                    Some(Held { owner: owner.to_string(), ..held.clone() })
                })
                .collect();
            walk.hold(&held, packet.now);
            let mut seen = walk.step(&Arrival { at: self.at[side], packet: packet.clone() });
            seen.only_fates();
            seen
        });
        (self.pair.judge(&a, &b), a, b)
    }

    fn words(&self, end: &str) -> String {
        let word = |side: Side| Some(self.pair.alignment.words(side, *self.nodes[side].get(end)?));
        word(0).or_else(|| word(1)).unwrap_or_default()
    }

    fn why_left_open(&self, a: &str, b: &str) -> String {
        let element = |side: Side, end: &str| {
            let node = self.left(side, end)?;
            let exits = self.pair.programs[side].iter().flat_map(Program::exits);
            let why: BTreeSet<&str> = exits
                .filter(|(_, exit)| match exit.end {
                    End::Push { to, native } => native && to.node == node,
                    End::Drop { .. } => false,
                })
                .filter_map(|(_, exit)| exit.barrier)
                .collect();
            let why: Vec<&str> = why.into_iter().collect();
            Some(format!("{} ({})", self.pair.alignment.words(side, node), why.join("; ")))
        };
        let both: Vec<String> = [element(0, a), element(1, b)].into_iter().flatten().collect();
        format!("packets that programs leave to {} are compared one by one only", both.join(" or "))
    }
}
