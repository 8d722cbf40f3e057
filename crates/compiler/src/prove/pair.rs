//! A chain against another.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use ir::program::{End, Mark, Step, Term, Write, Writes};
use ir::{Base, NodeId, Port, Program};
use net::annotation::{DST_IP, EXTRA_LENGTH};

use super::alignment::{Alignment, InputPair, ORDINALS, Side, handing_over};
use super::differential::{self, Arrival, Effort, Subject, Walk};
use super::observe::{Fate, Held, Judgement, Observation, Queue};
use super::replay::Replay;
use super::search::{self, Entry};
use super::subjects::Subjects;
use super::verify::{Proof, Verification};
use super::{Around, BUDGET, Compared, Comparison, Verdict, View, compare_within, handlers};
use crate::prove::witness::Witness;
use crate::synthesize::synthesize_rare_paths;

/// Compares what two chains do with packets: which come out where, and how. Sources and sinks are
/// the same that stand for the same device or file; queues, what pulls from them, and elements that
/// only their native code can speak for are compared by class, configuration and what follows. Elements
/// with state in common were given the same name, or have the same class, configuration and order.
///
/// That they are equal is proven; that they differ is shown by packets at their sources, for which
/// `replay` runs both.
pub fn verify_pair(
    a: &Subjects,
    b: &Subjects,
    effort: Option<Effort>,
    replay: &mut dyn Replay,
) -> Verification {
    let chains = [a, b];
    let reached = chains.map(handlers::reached);
    let prepared = [0, 1].map(|side: Side| handlers::prepared(chains[side], &reached[side]));
    let mut pair = Pair::new([&prepared[0], &prepared[1]], chains, [&reached[0], &reached[1]]);
    let places = pair.places();
    let words = |side: Side, node| pair.alignment.words(side, node);
    let unlike = handlers::unlike_callers(chains, pair.alignment.names(), words);
    pair.notes = [unlike, std::mem::take(&mut pair.notes)].concat();
    let proofs: Vec<Proof> = places.iter().map(|place| pair.prove(place)).collect();
    let is_proven = proofs.iter().all(|proof| matches!(proof.verdict, Verdict::Equal));
    // Packets are looked for in chains in which nothing holds them back.
    let opened = chains.map(search::opened);
    let mut guess = Pair::new([&opened[0], &opened[1]], [&opened[0], &opened[1]], [&[], &[]]);
    let entries = guess.entries();
    let candidates = match is_proven && pair.notes.is_empty() {
        true => Vec::new(),
        false => guess.candidates(&entries),
    };
    let effort = effort.unwrap_or_else(|| Effort::fitting(&a.models));
    let subjects = [guess.subject(0), guess.subject(1)];
    let (evidence, shown) = search::search(&subjects, &entries, candidates, effort, replay);
    Verification { proofs, evidence, shown, notes: pair.notes }
}

/// Two chains and their programs.
struct Pair<'a> {
    chains: [&'a Subjects; 2],
    alignment: Alignment<'a>,
    programs: [Vec<Program>; 2],
    /// The elements behind which nothing sees more of packets than frames.
    frames_only: [Vec<bool>; 2],
    notes: Vec<String>,
}

impl<'a> Pair<'a> {
    /// Two chains as they are looked at, as they are configured, and which of their elements
    /// handlers reach.
    fn new(
        chains: [&'a Subjects; 2],
        configured: [&'a Subjects; 2],
        reached: [&'a [bool]; 2],
    ) -> Self {
        let mut programs =
            chains.map(|chain| synthesize_rare_paths(&chain.graph, &chain.models).programs);
        let models = configured.map(|chain| &chain.models[..]);
        let alignment = Alignment::new(chains, models, reached, [&programs[0], &programs[1]]);
        for (side, programs) in programs.iter_mut().enumerate() {
            programs.retain(|program| alignment.is_alive(side, program.entry.node));
        }
        let frames_only = chains.map(|chain| {
            let nodes = 0..chain.graph.nodes.len();
            nodes.map(|n| chain.models[n].is_opaque() && chain.leads_to_frames(n)).collect()
        });
        Self { chains, alignment, programs, frames_only, notes: Vec::new() }
    }

    /// The sources of both chains and the inputs behind their outputs. Where only one chain has a
    /// program there, the other gets one that does nothing.
    fn entries(&mut self) -> Vec<Entry> {
        let pairs = self.alignment.pair_sources();
        let mut entries = Vec::new();
        for &(a, b) in &pairs {
            let places = self.alignment.places_behind((a, b));
            let entry =
                |place: InputPair| Entry { source: [Some(a), Some(b)], at: place.at.map(Some) };
            entries.extend(places.into_iter().map(entry));
        }
        for side in [0, 1] {
            for (from, to) in self.alignment.lacking(side, &pairs) {
                let pair = pairs.iter().find(|pair| [pair.0, pair.1][side] == from.node);
                let mut source = pair.map_or([None; 2], |&(a, b)| [Some(a), Some(b)]);
                let mut at = [None; 2];
                (source[side], at[side]) = (Some(from.node), Some(to));
                entries.push(Entry { source, at });
            }
        }
        for entry in &entries {
            for side in [0, 1] {
                if let Some(at) = entry.at[side]
                    && self.program(side, at).is_none()
                {
                    self.programs[side].push(handing_over(at));
                }
            }
        }
        entries
    }

    /// Packets at sources that may be treated otherwise by the two chains.
    fn candidates(&self, entries: &[Entry]) -> Vec<(usize, Witness)> {
        let both = entries.iter().enumerate().filter_map(|(number, entry)| match entry.at {
            [Some(a), Some(b)] => Some((number, [a, b])),
            _ => None,
        });
        let of = |(number, at): (usize, [Port; 2])| {
            let within = Within::new(self, at, false);
            self.compare_at(at, &within);
            let found = within.found.into_inner().unwrap_or_else(PoisonError::into_inner);
            found.into_iter().map(move |packet| (number, packet))
        };
        both.flat_map(of).collect()
    }

    fn subject(&self, side: Side) -> Subject<'_> {
        let Subjects { graph, models, state, .. } = self.chains[side];
        Subject { graph, models, state, programs: &self.programs[side] }
    }

    fn program(&self, side: Side, at: Port) -> Option<&Program> {
        self.programs[side].iter().find(|program| program.entry == at)
    }

    /// The inputs that the same packets come to. Where one chain has a program and the other has
    /// none, the other gets one that does nothing.
    fn places(&mut self) -> Vec<InputPair> {
        let pairs = self.alignment.pair_sources();
        for side in [0, 1] {
            for (from, to) in self.alignment.lacking(side, &pairs) {
                if self.chains[side].leads_out(to.node) {
                    let output = match from.port {
                        0 => String::new(),
                        port => format!("output {port} of "),
                    };
                    self.notes.push(format!(
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
            places.extend(self.alignment.places_behind((a, b)));
        }
        // Where there are no programs behind them, what follows them says whether they are alike.
        let from_sources = places.len();
        for pair in self.alignment.pair_opaque() {
            places.extend(self.alignment.places_behind(pair));
        }
        // Stages that chains are cut into.
        for program in &self.programs[0] {
            let name = self.alignment.name(0, program.entry.node);
            let there = self.programs[1].iter().find(|other| {
                let at = other.entry;
                at.port == program.entry.port && self.alignment.name(1, at.node) == name
            });
            places.extend(there.map(|other| InputPair { at: [program.entry, other.entry] }));
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

    /// Both programs at two inputs; what state they share is called by its common name.
    fn programs_at(&self, at: [Port; 2]) -> [Program; 2] {
        [0, 1].map(|side| {
            let program = self.program(side, at[side]).cloned();
            let mut program = program.unwrap_or_else(|| handing_over(at[side]));
            if [0, 1].iter().all(|&side: &Side| self.chains[side].is_bare(at[side])) {
                without_annotations(&mut program);
            }
            for step in &mut program.steps {
                for_leaving(step, |end, writes| {
                    if let End::Push { to, .. } = end
                        && self.frames_only[side][to.node]
                    {
                        // Nobody sees the rest.
                        writes.annotations.retain(|write| {
                            overlap((write.offset, write.length.into()), EXTRA_LENGTH)
                        });
                        writes.marks = [Mark::Keep; 3];
                        writes.packet_type = None;
                    }
                });
            }
            for state in &mut program.state {
                if let Some(owner) = self.alignment.find(side, &state.owner) {
                    state.owner = self.alignment.name(side, owner).to_string();
                }
            }
            program
        })
    }

    fn compare_at(&self, at: [Port; 2], within: &Within<'_>) -> Compared {
        let [a, b] = &self.programs_at(at);
        let names_a = |node: NodeId| within.end(0, node, false);
        let names_b = |node: NodeId| within.end(1, node, false);
        let (names_a, names_b) = (&names_a, &names_b);
        let (view, budget) = (View::Packets, BUDGET);
        compare_within(&Comparison { a, b, names_a, names_b, view, budget }, within)
    }

    fn prove(&self, place: &InputPair) -> Proof {
        let entry = place.at[0];
        let programs = self.programs_at(place.at);
        let found = self.compare_at(place.at, &Within::new(self, place.at, false));
        let (mut verdict, mut visited) = (found.verdict, found.visited);
        if let (Verdict::Equal, Some(several)) = (&verdict, self.crowd(&programs)) {
            let named = self.compare_at(place.at, &Within::new(self, place.at, true));
            visited += named.visited;
            if !matches!(named.verdict, Verdict::Equal) {
                verdict = Verdict::Unproven(several);
            }
        }
        let [a, b] = &programs;
        Proof {
            at: entry,
            entry: (self.chains[0].graph.nodes[entry.node].name.clone(), entry.port),
            verdict,
            steps: (a.steps.len(), b.steps.len()),
            visited,
        }
    }

    /// Why a difference of two programs is none of the chains yet.
    fn only_here(&self, a: &Observation, b: &Observation) -> String {
        let does = |side: Side, seen: &Observation| {
            let words = |name: &str| match self.alignment.find(side, name) {
                Some(node) => self.alignment.words(side, node),
                None => format!("'{name}'"),
            };
            let fates: Vec<String> = seen
                .fates
                .iter()
                .map(|fate| match fate {
                    Fate::Arrived(queue, _) => format!("comes to {}", words(&queue.element)),
                    Fate::Dropped(element, ..) => format!("is dropped at {}", words(element)),
                    Fate::Fault(why) => format!("fails ({why})"),
                })
                .collect();
            fates.join(" and ")
        };
        let (one, other) = (does(0, a), does(1, b));
        let otherwise = if one == other { ", but not the same" } else { "" };
        format!(
            "no packets at the sources were found that show a difference; a packet made up for this \
             place {one} in the first chain, and {other} in the second{otherwise}"
        )
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

/// Whether a run of bytes, by its start and length, overlaps an annotation of four bytes.
fn overlap((start, length): (i32, i32), annotation: usize) -> bool {
    let at = annotation as i32;
    start < at + 4 && at < start + length
}

/// A program for packets that have no annotations but those that sources may set.
fn without_annotations(program: &mut Program) {
    let is_set = |run: (i32, i32)| [EXTRA_LENGTH, DST_IP].iter().any(|&at| overlap(run, at));
    for term in &mut program.terms {
        if let Term::Input(field) = term
            && field.base == Base::Annotation
        {
            let (first, end) = field.byte_range();
            if !is_set((first as i32, (end - first) as i32)) {
                *term = Term::Const(0);
            }
        }
    }
    let terms = &program.terms;
    for step in &mut program.steps {
        for_leaving(step, |_, writes| {
            // What is made zero is left as it is.
            let all = writes.annotations.clone();
            writes.annotations.retain(|write| {
                let run = |write: &Write| (write.offset, write.offset + i32::from(write.length));
                let (start, end) = run(write);
                let is_alone = !all.iter().any(|other| {
                    let (from, to) = run(other);
                    other != write && from < end && start < to
                });
                let is_zero = terms.get(write.value.0 as usize) == Some(&Term::Const(0));
                !(is_zero && is_alone && !is_set((start, end - start)))
            });
        });
    }
}

/// Does something with what an exit writes to the packet and to its copies.
fn for_leaving(step: &mut Step, mut with: impl FnMut(End, &mut Writes)) {
    let Step::Exit(exit) = step else { return };
    exit.copies.iter_mut().for_each(|copy| with(copy.end, &mut copy.writes));
    with(exit.end, &mut exit.writes);
}

/// What lies around two programs of a pair.
struct Within<'a> {
    pair: &'a Pair<'a>,
    /// Their inputs.
    at: [Port; 2],
    /// Whether elements that are alike are distinguished by their names.
    named: bool,
    /// The elements of each chain, by the names of the ends that they are.
    nodes: [HashMap<String, NodeId>; 2],
    /// Packets that the two do not treat alike, as far as can be told here.
    found: Mutex<Vec<Witness>>,
}

impl<'a> Within<'a> {
    fn new(pair: &'a Pair<'a>, at: [Port; 2], named: bool) -> Self {
        let mut within =
            Self { pair, at, named, nodes: Default::default(), found: Mutex::default() };
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
        let judgement = match self.pair.judge(&a, &b) {
            // Whether such a packet comes here, and such flows are held then, is not known.
            Judgement::Different => Judgement::Unclear(self.pair.only_here(&a, &b)),
            other => other,
        };
        if judgement != Judgement::Same {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(packet.clone());
        }
        (judgement, a, b)
    }

    fn words(&self, end: &str) -> String {
        let word = |side: Side| Some(self.pair.alignment.words(side, *self.nodes[side].get(end)?));
        word(0).or_else(|| word(1)).unwrap_or_default()
    }

    fn why_left_open(&self, a: &str, b: &str) -> String {
        let element = |side: Side, end: &str| {
            let node = self.left(side, end)?;
            let exits = self.pair.programs[side].iter().flat_map(Program::exits);
            let why: BTreeSet<String> = exits
                .filter(|(_, exit)| match exit.end {
                    End::Push { to, native } => native && to.node == node,
                    End::Drop { .. } | End::Handoff { .. } => false,
                })
                .filter_map(|(_, exit)| Some(exit.barrier?.to_string()))
                .collect();
            let why: Vec<String> = why.into_iter().collect();
            Some(format!("{} ({})", self.pair.alignment.words(side, node), why.join("; ")))
        };
        let both: Vec<String> = [element(0, a), element(1, b)].into_iter().flatten().collect();
        format!("packets that programs leave to {} are compared one by one only", both.join(" or "))
    }
}
