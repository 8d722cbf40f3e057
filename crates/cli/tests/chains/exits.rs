//! Packets, and the flows that they are of, made to order for every exit of every program: of the
//! chains of filetests, examples and conformance cases. Every execution mode does the
//! same with each of them.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path as Folder, PathBuf};
use std::sync::Mutex;
use std::thread::available_parallelism;

use compiler::prove::Held;
use compiler::prove::differential::{Arrival, Effort, Sequence, Subject, record};
use compiler::prove::witness::START;
use compiler::synthesize;
use dataplane::change::HandoverState;
use dataplane::io::{Binding, Bindings};
use engine::session::Path;
use ir::model::StateKind;
use ir::state::{Flow, Flows};
use ir::{Model, StateValue};
use net::Batch;

use crate::classes::{Classified, Programmed};
use crate::filetests::{self, Begin};
use crate::outcome::{Arrivals, Seen, Tallies, arrivals, drain, handlers, state, tallies};
use crate::support::{MODES, Mode, Started, start_bound};
use lab::shared;

/// Packets that are made for a chain: for each exit so many, and between these all in all.
const PACKETS: usize = 8;
const ALL: (usize, usize) = (300, 9000);

/// All that can be seen after packets passed.
#[derive(PartialEq)]
struct Outcome {
    left: Vec<(String, Vec<Seen>)>,
    tallies: Tallies,
    arrivals: Arrivals,
    state: ir::Store,
    handlers: Vec<(String, Result<String, String>)>,
}

/// Time that flows live on, in nanoseconds.
const LIFE: u64 = 1_000_000_000_000;

/// A rewriter's flow. What a packet of it becomes is how answers come, in the other direction.
fn rewritten(held: &Held, now: u64) -> Option<Flow> {
    let (key, values) = (&held.key, &held.values);
    let (&[map, _, _, _, _], &[src, src_port, dst, dst_port, output, side]) =
        (&key[..], &values[..])
    else {
        return None;
    };
    let answer = vec![map, dst, dst_port, src, src_port];
    let back = vec![key[3], key[4], key[1], key[2], output, 1 - side];
    let (mut keys, mut both) = ([key.clone(), answer], [values.clone(), back]);
    if side == 1 {
        keys.reverse();
        both.reverse();
    }
    let mut common = held.common.clone();
    // Where no condition says which protocol the packet had that made it, it is the key's.
    if let [_, _, protocol @ 0, _] = &mut common[..] {
        *protocol = map & 0xff;
    }
    let expiry = now + LIFE;
    Some(Flow { keys, values: both, common, expiry, guarantee: expiry })
}

/// Makes these flows all that tables hold that hold one.
fn hold(started: &mut Started, flows: &[Held]) {
    let now = started.router.time();
    let mut state = started.router.state();
    let mut tables: BTreeMap<(&str, &str), Flows> = BTreeMap::new();
    for held in flows {
        let Some(flow) = rewritten(held, now) else { continue };
        let capacity = match state.get(&held.owner, held.name) {
            Some(StateValue::Flows(flows)) => flows.capacity(),
            _ => continue,
        };
        let table = tables.entry((&held.owner, held.name));
        table.or_insert_with(|| Flows::new(capacity)).insert(flow, now);
    }
    for ((owner, name), flows) in &tables {
        state.set(owner, name, StateValue::Flows(flows.clone()));
    }
    started.router.import(HandoverState::declared(state));
    let state = started.router.state();
    for ((owner, name), flows) in tables {
        let Some(StateValue::Flows(held)) = state.get(owner, name) else { panic!("a table") };
        let is_held = |flow: &Flow| flow.keys.iter().all(|key| held.find(key, now).is_some());
        assert!(flows.iter().all(is_held), "{owner} holds what it was given");
    }
}

/// Takes sequences of packets through a chain, up to `burst` of them at once.
fn take(started: &mut Started, sequences: &[Sequence], burst: usize) -> Outcome {
    for sequence in sequences {
        if !sequence.flows.is_empty() {
            hold(started, &sequence.flows);
        }
        // A flow's first packet, the next one, and those after it are executed in other modes.
        let times = if sequence.flows.is_empty() { 1 } else { 3 };
        let arrivals: Vec<Arrival> =
            vec![&sequence.arrivals; times].into_iter().flatten().cloned().collect();
        let mut now = START;
        let mut rest = &arrivals[..];
        while let Some(first) = rest.first() {
            let with = |a: &&Arrival| (a.at, a.packet.now) == (first.at, first.packet.now);
            let count = rest.iter().take(burst).take_while(with).count();
            let (together, behind) = rest.split_at(count);
            rest = behind;
            // Tasks have no turn: there are no packets but these.
            started.clock.advance(first.packet.now.saturating_sub(now));
            now = first.packet.now;
            let mut batch = Batch::new();
            for arrival in together {
                batch.push(arrival.packet.packet(&mut started.router.core().pool));
            }
            started.router.push(first.at, batch);
        }
    }
    let names: Vec<String> = started.chain.graph.nodes.iter().map(|n| n.name.clone()).collect();
    let is_queue = |name: &&String| {
        let node = started.chain.graph.find(name).map(|node| &started.chain.graph.nodes[node]);
        node.is_some_and(|node| node.class == "Queue" && !node.outputs.is_empty())
    };
    let queues: Vec<String> = names.iter().filter(is_queue).cloned().collect();
    Outcome {
        tallies: tallies(&mut started.router),
        arrivals: arrivals(&mut started.router),
        state: state(&mut started.router),
        handlers: names.iter().flat_map(|name| handlers(&mut started.router, name)).collect(),
        left: queues.into_iter().map(|queue| (queue.clone(), drain(started, &queue))).collect(),
    }
}

impl Outcome {
    /// What differs, in a few lines.
    fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        for ((queue, a), (_, b)) in self.left.iter().zip(&other.left) {
            let at = a.iter().zip(b).position(|(a, b)| a != b);
            if a != b {
                let at = at.unwrap_or(a.len().min(b.len()));
                lines.push(format!("{queue}, packet {at}: {:?} is {:?}", a.get(at), b.get(at)));
            }
        }
        let (a, b) = (&self.tallies, &other.tallies);
        lines.extend(a.iter().filter(|l| !b.contains(l)).map(|l| format!("not counted: {l:?}")));
        lines.extend(b.iter().filter(|l| !a.contains(l)).map(|l| format!("counted: {l:?}")));
        for (a, b) in self.arrivals.iter().zip(&other.arrivals).filter(|(a, b)| a != b) {
            lines.push(format!("what came is {b:?}, not {a:?}"));
        }
        for (a, b) in self.handlers.iter().zip(&other.handlers).filter(|(a, b)| a != b) {
            lines.push(format!("{a:?} is {b:?}"));
        }
        if self.state != other.state {
            lines.push("the state is another".into());
        }
        lines.join("\n")
    }
}

/// How many exits packets came to.
#[derive(Default)]
struct Reached {
    /// Of how many, in chains that look no flows up.
    plain: (usize, usize),
    /// In all others.
    with_flows: (usize, usize),
}

impl Reached {
    fn add(&mut self, other: &Self) {
        let sum = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        self.plain = sum(self.plain, other.plain);
        self.with_flows = sum(self.with_flows, other.with_flows);
    }

    /// Nearly all: some ends are on paths that no packet takes, and some are hard to find.
    fn is_enough(&self) -> bool {
        [self.plain, self.with_flows].iter().all(|(reached, all)| 10 * reached >= 9 * all)
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [(a, b), (c, d)] = [self.plain, self.with_flows];
        write!(f, "{a} of {b} exits reached, {c} of {d} in chains with flows")
    }
}

/// Takes packets through a chain in every mode; nothing if it does not start.
fn examine(begin: impl Fn(Mode) -> Option<Started>) -> Option<Result<Reached, String>> {
    let mut first = begin(Path::Native.into())?;
    let graph = first.chain.graph.clone();
    let model = |name: &str| first.router.element(name).map(|e| e.model()).unwrap_or_default();
    let mut model = model;
    let models: Vec<Model> = graph.nodes.iter().map(|node| model(&node.name)).collect();
    let state = first.router.state();
    let programs = synthesize(&graph, &models).programs;
    let subject = Subject { graph: &graph, models: &models, state: &state, programs: &programs };
    let exits: usize = programs.iter().map(|program| program.exits().count()).sum();
    let packets = (exits * PACKETS * programs.len()).clamp(ALL.0, ALL.1);
    let (evidence, sequences) = record(&subject, Effort { packets, seed: 1 });
    if let Some(found) = evidence.disagreement {
        return Some(Err(format!("models and programs differ: {found:?}")));
    }
    let classified = Classified::new(&graph, &models, &state, &programs);
    let mut pool = net::Pool::new();
    for arrival in sequences.iter().flat_map(|sequence| &sequence.arrivals) {
        let at = |program: &&Programmed| program.0.entry == arrival.at;
        let Some(program) = classified.programs.iter().find(at) else { continue };
        if let Err(why) = classified.examine(program, arrival.packet.packet(&mut pool)) {
            return Some(Err(why));
        }
    }
    let has_state = models.iter().flat_map(|m| &m.state).any(|s| s.kind != StateKind::Counter);
    let expected = take(&mut first, &sequences, 1);
    for mode in MODES.into_iter().skip(1) {
        let got = take(&mut begin(mode)?, &sequences, 1);
        if got != expected {
            return Some(Err(format!("{mode:?}: {}", expected.difference(&got))));
        }
    }
    // Many at once take one order on each path; what is counted is the same where nothing
    // depends on the order.
    if !has_state && models.iter().all(|model| !model.is_opaque()) {
        let got = take(&mut begin(Path::Synthesised.into())?, &sequences, 64);
        let sorted = |outcome: &Outcome| {
            let mut all: Vec<Seen> =
                outcome.left.iter().flat_map(|(_, seen)| seen).cloned().collect();
            all.sort();
            all
        };
        let same = (&got.tallies, &got.arrivals) == (&expected.tallies, &expected.arrivals);
        if sorted(&got) != sorted(&expected) || !same {
            return Some(Err(format!("bursts: {}", expected.difference(&got))));
        }
    }
    let mut reached = Reached::default();
    match programs.iter().all(|program| program.lookups.is_empty()) {
        true => reached.plain = evidence.exits,
        false => reached.with_flows = evidence.exits,
    }
    Some(Ok(reached))
}

/// The chains of a folder's files of this name, or of all if it is empty.
fn files(folder: &Folder, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(files(&entry, name));
        } else if entry.extension().is_some_and(|e| e == "click")
            && (name.is_empty() || entry.ends_with(name))
        {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// Copies of all files that lie beside a chain, for the chain to read and to write.
fn beside(file: &Folder) -> PathBuf {
    let name = file.to_string_lossy().replace(['/', '.'], "-");
    let copies = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exits").join(name);
    let _ = std::fs::remove_dir_all(&copies);
    std::fs::create_dir_all(&copies).expect("a folder");
    let entries = std::fs::read_dir(file.parent().expect("a folder")).expect("a folder");
    for entry in entries.map(|e| e.expect("an entry").path()).filter(|entry| entry.is_file()) {
        let to = copies.join(entry.file_name().expect("a name"));
        std::fs::copy(&entry, to).expect("it can be copied");
    }
    copies
}

/// Takes packets through chains, several at a time.
fn examine_all(chains: impl IntoIterator<Item = (String, Begin), IntoIter: Send>) {
    let only = std::env::var("EXITS").unwrap_or_default();
    let rest = Mutex::new(chains.into_iter().filter(|(name, _)| name.contains(&only)));
    let next = || rest.lock().expect("nobody panicked with it").next();
    let examined = || {
        let (mut reached, mut faults) = (Reached::default(), Vec::new());
        while let Some((name, begin)) = next() {
            match examine(begin) {
                Some(Ok(here)) => {
                    eprintln!("{name}: {here}");
                    reached.add(&here);
                }
                Some(Err(why)) => faults.push(format!("{name}: {why}")),
                None => {}
            }
        }
        (reached, faults)
    };
    let cores = available_parallelism().map_or(1, |count| count.get());
    let (mut reached, mut faults) = (Reached::default(), Vec::new());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..cores).map(|_| scope.spawn(examined)).collect();
        for one in all {
            let (here, more) = one.join().unwrap_or_else(|panic| resume_unwind(panic));
            reached.add(&here);
            faults.extend(more);
        }
    });
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n\n"));
    eprintln!("{reached}");
    assert!(reached.is_enough(), "{reached}");
}

/// The chains of files.
fn chains(files: Vec<PathBuf>) -> impl Iterator<Item = (String, Begin)> + Send {
    files.into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).expect("a file");
        let name = file.display().to_string();
        let begin = move |mode: Mode| {
            let folder = beside(&file);
            // Interfaces are captures that nobody reads, and such that nobody fills.
            let bind = |name: &str, end: &str| {
                (name.to_string(), Binding::Capture(folder.join(format!("{name}{end}"))))
            };
            let names = ["lan", "wan"];
            let bindings = Bindings {
                folder: folder.clone(),
                inputs: names.map(|name| bind(name, ".pcap.gz")).into(),
                outputs: names.map(|name| bind(name, "-out.pcap")).into(),
                ..Bindings::default()
            };
            start_bound("chain", &text, &folder, mode, bindings).ok()
        };
        (name, Box::new(begin) as Begin)
    })
}

#[test]
fn exits_of_examples() {
    let folder = Folder::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    examine_all(chains(files(folder, "")));
}

#[test]
fn exits_of_conformance_cases() {
    let Some(folder) = shared("conformance") else { return };
    examine_all(chains(files(&folder, "case.click")));
}

/// What hosts are given from blocks depends on when flows that expired are removed, which is before bursts for elements,
/// and later where programs take them.
const WITH_BLOCKS: [&str; 3] =
    ["nat/pool_mapper_blocks.test", "nf/napt_exhausted.test", "nf/napt_pool_carrier.test"];

#[test]
fn exits_of_filetests() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exits-filetests");
    let chains = filetests::chains(&folder).into_iter();
    examine_all(chains.filter(|(name, _)| !WITH_BLOCKS.contains(&name.as_str())));
}
