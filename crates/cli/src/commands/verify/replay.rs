//! Two chains, run with made-up packets at their sources: each element's native code, on a clock that
//! only moves when nothing is left to do.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use compiler::Chain;
use compiler::prove::witness::START;
use compiler::prove::{Incoming, Left, Replay, Sent};
use dataplane::clock::{Clock, VirtualClock};
use dataplane::{Listener, ProgramUse, Rest, Router};
use elements::configure::{Devices, WorkerShare};
use elements::device::{Device, DeviceRequest, Received};
use engine::Disk;
use engine::session::{Path, Setup, assemble};
use ir::{NodeId, Sources};
use net::{Batch, Pool};

use super::link_type;

/// Rounds after a packet, by which most chains are at rest.
const ROUNDS: u32 = 200;

/// Rounds after each packet of a chain that never is, as its sources make packets by themselves.
const ENDLESS_ROUNDS: u32 = 2;

/// Rounds at the end, and nanoseconds that pass then, for what is held back.
const LAST_ROUNDS: u32 = 20_000;
const LAST_WAIT: u64 = 60_000_000_000;

/// Packets that leave a chain that never is at rest; it has shown enough then.
const ENOUGH: usize = 20_000;

/// Seeds that random choices are tried with.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// A chain as it is started.
struct Started {
    chain: Chain,
    sources: Sources,
    files: Disk,
    /// Elements that read a device or a capture, and the link type of its frames.
    fed: HashMap<NodeId, u32>,
}

/// Two chains that can be run.
pub(super) struct Replayer {
    chains: [Started; 2],
}

/// What a run of a chain came to.
struct Run {
    left: Left,
    /// Whether it would have gone on for ever.
    endless: bool,
    /// Whether random numbers were drawn.
    random: bool,
}

impl Replayer {
    pub(super) fn new(chains: [(&Chain, &Sources, &Disk); 2]) -> Self {
        let chains = chains.map(|(chain, sources, files)| {
            let (chain, sources, files) = (chain.clone(), sources.clone(), files.clone());
            let mut started = Started { chain, sources, files, fed: HashMap::new() };
            let ends = Ends::of(&started.chain);
            if started.router(&ends, &VirtualClock::new(START), 1).is_some() {
                let inputs = ends.inputs.borrow();
                let of = |(name, input): (&String, &(Input, u32))| {
                    Some((started.chain.find(name)?, input.1))
                };
                started.fed = inputs.iter().filter_map(of).collect();
            }
            started
        });
        Self { chains }
    }

    /// What frames begin with that come to a source.
    pub(super) fn link_type(&self, side: usize, source: NodeId) -> Option<u32> {
        self.chains[side].fed.get(&source).copied()
    }

    fn run(&mut self, side: usize, sequence: &[Incoming], seed: u64) -> Option<Run> {
        self.chains[side].run(side, sequence, seed)
    }

    /// Whether two runs differ whatever random choices are made.
    fn differ_always(&mut self, sequence: &[Incoming]) -> bool {
        let runs = [0, 1].map(|side| {
            SEEDS.map(|seed| Some(self.run(side, sequence, seed)?.left.sent)).collect::<Vec<_>>()
        });
        let [Some(a), Some(b)] =
            runs.map(|runs| runs.into_iter().collect::<Option<Vec<Vec<Sent>>>>())
        else {
            return false;
        };
        // Bytes that are random in one of them do not count; anything else must not be.
        let (Some(x), Some(y)) = (random_bytes(&a), random_bytes(&b)) else { return false };
        let masked = |sent: &[Sent]| {
            let mut masked: Vec<(String, Vec<Option<u8>>)> = Vec::new();
            for (i, Sent { sink, frame, .. }) in sent.iter().enumerate() {
                let is_random = |at: usize| {
                    [&x, &y].iter().any(|all| all.get(i).is_some_and(|all| all.contains(&at)))
                };
                let byte = |(at, &byte): (usize, &u8)| (!is_random(at)).then_some(byte);
                masked.push((sink.clone(), frame.iter().enumerate().map(byte).collect()));
            }
            masked.sort();
            masked
        };
        masked(&a[0]) != masked(&b[0])
    }
}

/// For each packet, the places of bytes that depend on the seed; `None` if more does.
fn random_bytes(runs: &[Vec<Sent>]) -> Option<Vec<BTreeSet<usize>>> {
    let first = runs.first()?;
    let mut random = vec![BTreeSet::new(); first.len()];
    for run in runs {
        if run.len() != first.len() {
            return None;
        }
        for ((one, other), random) in first.iter().zip(run).zip(&mut random) {
            if (&one.sink, one.frame.len()) != (&other.sink, other.frame.len()) {
                return None;
            }
            let bytes = one.frame.iter().zip(&other.frame).enumerate();
            random.extend(bytes.filter(|(_, (a, b))| a != b).map(|(at, _)| at));
        }
    }
    Some(random)
}

impl Replay for Replayer {
    fn is_fed(&self, side: usize, source: NodeId) -> bool {
        self.chains[side].fed.contains_key(&source)
    }

    fn difference(&mut self, sequence: &[Incoming]) -> Option<[Left; 2]> {
        let runs = [self.run(0, sequence, 1)?, self.run(1, sequence, 1)?];
        if !differ(&runs) {
            return None;
        }
        let random = runs.iter().any(|run| run.random);
        // What goes on for ever may be cut anywhere: then random choices cannot be distinguished.
        if random && (runs.iter().any(|run| run.endless) || !self.differ_always(sequence)) {
            return None;
        }
        Some(runs.map(|run| run.left))
    }
}

/// Whether something else left the chains.
fn differ(runs: &[Run; 2]) -> bool {
    let [a, b] = runs.each_ref().map(|run| {
        let sent = run.left.sent.iter().map(|sent| (&*sent.sink, &*sent.frame));
        let mut sent: Vec<(&str, &[u8])> = sent.collect();
        if !run.endless {
            sent.sort_unstable();
        }
        sent
    });
    if !runs.iter().any(|run| run.endless) {
        return a != b;
    }
    // How far they came by the end is no difference: only what one of them sends early and the
    // other never.
    let lacks = |one: &[(&str, &[u8])], other: &[(&str, &[u8])]| {
        let all: HashSet<&(&str, &[u8])> = other.iter().collect();
        one.iter().take(one.len().div_ceil(4)).any(|sent| !all.contains(sent))
    };
    lacks(&a, &b) || lacks(&b, &a)
}

impl Started {
    fn router(&mut self, ends: &Ends, clock: &VirtualClock, seed: u64) -> Option<Router> {
        let setup = Setup {
            part: WorkerShare::default(),
            files: &mut self.files,
            devices: &mut ends.clone(),
            clock: Box::new(clock.clone()),
            listener: Box::new(Silent),
            seed,
            path: Path::Native,
            background: None,
            program_use: ProgramUse::Always,
            cut: None,
            unproven: false,
        };
        let mut router = assemble(&self.chain, &mut self.sources, setup, &mut Vec::new())?;
        router.forbid_writing();
        Some(router)
    }

    fn run(&mut self, side: usize, sequence: &[Incoming], seed: u64) -> Option<Run> {
        let ends = Ends::of(&self.chain);
        let mut clock = VirtualClock::new(START);
        let mut router = self.router(&ends, &clock, seed)?;
        let fresh = router.core().rng.clone();
        let mut endless = !settle(&mut router, &mut clock, START, ROUNDS);
        let mut before = drops(&mut router);
        for (number, incoming) in sequence.iter().enumerate() {
            let rounds = if endless { ENDLESS_ROUNDS } else { ROUNDS };
            let until = incoming.now.max(START);
            endless |= !settle(&mut router, &mut clock, until, rounds);
            if endless {
                clock.wait_until(until);
            }
            if number + 1 == sequence.len() {
                before = drops(&mut router);
            }
            ends.after.set(number + 1);
            if let Some(source) = incoming.at[side]
                && let Some(node) = self.chain.graph.nodes.get(source)
                && let Some((input, _)) = ends.inputs.borrow().get(&node.name)
            {
                input.borrow_mut().push_back((incoming.frame.clone(), until));
            }
            endless |= !settle(&mut router, &mut clock, until, rounds);
        }
        let (until, rounds) = (clock.now() + LAST_WAIT, if endless { ROUNDS } else { LAST_ROUNDS });
        let enough = || ends.sent.borrow().len() >= ENOUGH;
        for _ in 0..rounds / ROUNDS {
            if settle(&mut router, &mut clock, until, ROUNDS) || enough() {
                break;
            }
        }
        endless |= !settle(&mut router, &mut clock, until, 1);
        let random = router.core().rng != fresh;
        let after = drops(&mut router);
        let more = |drop: &(&(String, String), &u64)| before.get(drop.0) < Some(drop.1);
        let mut dropped: Vec<(String, String)> =
            after.iter().filter(more).map(|(drop, _)| drop.clone()).collect();
        dropped.sort();
        router.finish();
        let sent = ends.sent.borrow().clone();
        Some(Run { left: Left { sent, dropped }, endless, random })
    }
}

/// Packets dropped so far, by element and reason.
fn drops(router: &mut Router) -> HashMap<(String, String), u64> {
    let mut drops = HashMap::new();
    for (name, _, tally, _) in router.report() {
        for line in tally.lines().iter().filter(|line| line.dropped > 0) {
            drops.insert((name.to_string(), line.reason.to_string()), line.dropped);
        }
    }
    drops
}

/// Runs until a time and until there is nothing left to do then; `false` if there still is.
fn settle(router: &mut Router, clock: &mut VirtualClock, until: u64, rounds: u32) -> bool {
    for _ in 0..rounds {
        match router.round() {
            Rest::Busy => {}
            Rest::Until(time) | Rest::IdleUntil(time) if time <= until => clock.wait_until(time),
            Rest::Stopped => return true,
            _ if clock.now() < until => clock.wait_until(until),
            _ => return true,
        }
    }
    false
}

/// Frames that come to an element, and when.
type Input = Rc<RefCell<VecDeque<(Vec<u8>, u64)>>>;

/// A chain's devices, whatever they are called.
#[derive(Clone)]
struct Ends {
    classes: Rc<HashMap<String, String>>,
    /// By the element that reads them, with their link types.
    inputs: Rc<RefCell<HashMap<String, (Input, u32)>>>,
    sent: Rc<RefCell<Vec<Sent>>>,
    /// How many packets came so far.
    after: Rc<Cell<usize>>,
}

impl Ends {
    fn of(chain: &Chain) -> Self {
        let class = |node: &ir::Node| (node.name.clone(), node.class.clone());
        Self {
            classes: Rc::new(chain.graph.nodes.iter().map(class).collect()),
            inputs: Rc::default(),
            sent: Rc::default(),
            after: Rc::default(),
        }
    }
}

impl Devices for Ends {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        self.open_for("", request)
    }

    fn open_for(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device>, String> {
        let class = self.classes.get(element).map_or("", |class| class.as_str());
        let (name, most) = match request {
            DeviceRequest::Interface { receive: true, .. } | DeviceRequest::CaptureIn { .. } => {
                let (input, link_type) = (Input::default(), link_type(request));
                let known = (Rc::clone(&input), link_type);
                self.inputs.borrow_mut().insert(element.to_string(), known);
                let is_capture = matches!(request, DeviceRequest::CaptureIn { .. });
                return Ok(Box::new(Source { input, link_type, is_capture }));
            }
            DeviceRequest::Interface { name, .. } => (name, 0),
            DeviceRequest::CaptureOut { path, snap_length, .. } => (path, *snap_length),
        };
        let most = if most == 0 { usize::MAX } else { most as usize };
        let sink = format!("{class}({name})");
        let (sent, after) = (Rc::clone(&self.sent), Rc::clone(&self.after));
        Ok(Box::new(Sink { sink, most, sent, after }))
    }
}

struct Source {
    input: Input,
    link_type: u32,
    is_capture: bool,
}

impl Device for Source {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let mut input = self.input.borrow_mut();
        let count = burst.min(input.len());
        for (frame, time) in input.drain(..count) {
            let mut packet = pool.packet(&frame);
            if self.is_capture {
                packet.set_timestamp(time);
            }
            batch.push(packet);
        }
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }
}

struct Sink {
    sink: String,
    /// Bytes that are kept of a packet.
    most: usize,
    sent: Rc<RefCell<Vec<Sent>>>,
    after: Rc<Cell<usize>>,
}

impl Device for Sink {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        for packet in batch.iter() {
            let frame = packet.data().iter().take(self.most).copied().collect();
            let (sink, after) = (self.sink.clone(), self.after.get());
            self.sent.borrow_mut().push(Sent { sink, frame, after });
        }
        pool.recycle_all(batch);
        Ok(())
    }
}

/// Nobody listens.
struct Silent;

impl Listener for Silent {
    fn message(&mut self, _: &str) {}

    fn output(&mut self, _: &str) {}

    fn error(&mut self, _: &str, _: &str) {}
}
