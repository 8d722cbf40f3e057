//! What isolation costs: chains of one to six NFs, each of which looks 200 addresses up a packet, on one core.
//!
//! The same NFs run as processes that a turn goes through (`yield` and `baton`), in one thread with nothing between them, and in threads
//! under SCHED_OTHER that poll rings for packets: with a spin, and with sched_yield where there is nothing to do. All receive from
//! the same generator, and are measured by turns. `quick` measures one round.
//!
//! `languages` measures an access list in each language alone.
#![allow(clippy::print_stdout, reason = "benches report")]

extern crate nf as catena_nf;

#[path = "isolation/languages.rs"]
mod languages;
#[path = "run/mod.rs"]
mod run;

use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catena_host::HostChain;
use catena_host::manifest::{Function, HandOff, Nf, Policy};
use catena_host::scheduler::{self, Class};
use dataplane::io::{Binding, Bindings};
use elements::device::DeviceRequest;
use net::{Packet, Pool};
use nf::NetworkFunction;
use run::shown;

const GENERATOR: &str = "gen:proto=udp,size=60,flows=1000,count=0";
const LOOKUPS: u32 = 200;
const BATCH: usize = 32;
const LONGEST: usize = 6;
const WINDOW: Duration = Duration::from_millis(100);

/// A table of prefixes: an entry for each value of the upper 14 bits, and for some of these one for each of the next 6. It has 64 kB: the tables
/// of six NFs fit into the second cache.
struct Table {
    upper: Vec<u16>,
    lower: Vec<[u16; 64]>,
}

const BELOW: u16 = 1 << 15;

impl Table {
    fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(3);
        let mut table = Self { upper: Vec::new(), lower: Vec::new() };
        for at in 0..1u16 << 14 {
            let entry = match random.u32(..64) {
                0 => {
                    table.lower.push(std::array::from_fn(|_| random.u16(..64)));
                    BELOW | (table.lower.len() as u16 - 1)
                }
                _ => at % 61,
            };
            table.upper.push(entry);
        }
        table
    }

    fn find(&self, address: u32) -> u32 {
        match self.upper[(address >> 18) as usize] {
            entry if entry & BELOW != 0 => {
                self.lower[usize::from(entry & !BELOW)][(address >> 12 & 63) as usize].into()
            }
            entry => entry.into(),
        }
    }

    /// What an NF does with a packet.
    fn process(&self, bytes: &[u8], lookups: u32) -> u32 {
        let address =
            bytes.get(30..34).and_then(|of| of.try_into().ok()).map_or(0, u32::from_be_bytes);
        let mut sum = address;
        for _ in 0..lookups {
            sum = sum.wrapping_mul(0x9e37_79b1).wrapping_add(self.find(sum));
        }
        sum
    }
}

struct Router(Table, u32);

impl NetworkFunction for Router {
    fn init(config: &str, _: &mut nf::Setup) -> Result<Self, String> {
        Ok(Self(Table::new(), config.parse().map_err(|_| "a number of lookups")?))
    }

    fn process(&mut self, batch: &mut nf::Batch) {
        batch.for_each(|packet| {
            black_box(self.0.process(packet.bytes(), self.1));
        });
    }
}

/// Nanoseconds of a chain of processes.
struct Measured {
    per_packet: f64,
    /// A batch in the chain.
    per_batch: f64,
    /// A packet in `process` of the first NF.
    in_process: f64,
}

/// Those of a chain of processes that look addresses up.
fn isolated(length: usize, hand_off: HandOff, lookups: u32, batch: usize) -> Measured {
    let own = std::env::current_exe().expect("this program");
    let nfs = (0..length).map(|at| {
        let function = Function::Program(own.clone(), vec!["nf".into()]);
        Nf { config: lookups.to_string(), ..Nf::new(&format!("nf{at}"), function) }
    });
    measured(nfs.collect(), hand_off, batch)
}

/// Those of a chain.
fn measured(nfs: Vec<Nf>, hand_off: HandOff, batch: usize) -> Measured {
    let nothing = Function::Click(String::new());
    let mut spec =
        HostChain::alone("x", nothing, String::new(), GENERATOR.into(), "/dev/null".into());
    spec.nfs = nfs;
    spec.policy = Policy::Cooperative;
    spec.hand_off = hand_off;
    spec.batch = Some(batch as u32);
    spec.timeout = Duration::from_secs(5);
    let (first, second) = run::sampled(spec, WINDOW);
    let packets = (second.received - first.received) as f64;
    Measured {
        per_packet: (second.seconds - first.seconds) * 1e9 / packets,
        per_batch: second.ns_per_batch.unwrap_or(0.0),
        in_process: second.nfs[0].ns_per_packet.unwrap_or(0.0),
    }
}

/// Runs something on a core with a class, in a thread of its own.
fn on<T: Send>(core: usize, policy: Policy, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let placed = move || {
            scheduler::pin(None, core).expect("a core that is there");
            scheduler::set_class(0, Class { policy, priority: 10, slice: None }).expect("a class");
            work()
        };
        scope.spawn(placed).join().expect("it ends")
    })
}

fn source() -> Box<dyn elements::device::Device + Send> {
    let mut bindings = Bindings::default();
    bindings.inputs.insert("in".into(), Binding::source(GENERATOR).expect("a generator"));
    let request = DeviceRequest::Interface { name: "in".into(), receive: true };
    bindings.open_device(&request).expect("it opens")
}

/// Nanoseconds a packet where one thread does the work of all.
fn one_thread(length: usize, core: usize) -> f64 {
    on(core, Policy::Fifo, || {
        let tables: Vec<Table> = (0..length).map(|_| Table::new()).collect();
        let (mut device, mut pool, mut batch) = (source(), Pool::new(), net::Batch::new());
        let (begin, mut packets) = (Instant::now(), 0);
        while begin.elapsed() < WINDOW {
            device.receive(BATCH, &mut batch, &mut pool).expect("packets");
            for table in &tables {
                for packet in batch.iter() {
                    black_box(table.process(packet.data(), LOOKUPS));
                }
            }
            packets += batch.len();
            pool.recycle_all(&mut batch);
        }
        begin.elapsed().as_nanos() as f64 / packets as f64
    })
}

/// A ring between two threads: what is in it, and a flag that is polled.
#[derive(Default)]
struct Ring {
    filled: AtomicU64,
    packets: Mutex<VecDeque<Packet>>,
}

/// Packets of a ring at most.
const RING: usize = 512;

impl Ring {
    /// Takes up to a batch; none if there is nothing.
    fn take(&self, to: &mut Vec<Packet>) {
        if self.filled.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut packets = self.packets.lock().expect("no thread panics");
        let count = packets.len().min(BATCH);
        to.extend(packets.drain(..count));
        self.filled.store(packets.len() as u64, Ordering::Release);
    }

    /// Puts them in, if there is room for all.
    fn put(&self, from: &mut Vec<Packet>) {
        if self.filled.load(Ordering::Acquire) as usize + from.len() > RING {
            return;
        }
        let mut packets = self.packets.lock().expect("no thread panics");
        packets.extend(from.drain(..));
        self.filled.store(packets.len() as u64, Ordering::Release);
    }
}

/// Nanoseconds a packet where each NF is a thread of SCHED_OTHER that polls the ring before it.
fn polling(length: usize, core: usize, yields: bool) -> f64 {
    let rings: Vec<Ring> = (0..=length).map(|_| Ring::default()).collect();
    let (stop, counted, nanoseconds) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let rest = || if yields { std::thread::yield_now() } else { spin_loop() };
    std::thread::scope(|scope| {
        let (rings, stop, counted, nanoseconds, rest) =
            (&rings, &stop, &counted, &nanoseconds, &rest);
        for at in 0..length {
            scope.spawn(move || {
                scheduler::pin(None, core).expect("a core that is there");
                let table = Table::new();
                let mut held = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    if held.is_empty() {
                        rings[at].take(&mut held);
                        for packet in &held {
                            black_box(table.process(packet.data(), LOOKUPS));
                        }
                    }
                    rings[at + 1].put(&mut held);
                    if !held.is_empty() || rings[at].filled.load(Ordering::Acquire) == 0 {
                        rest();
                    }
                }
            });
        }
        // The switch: it receives, and takes back what went through.
        scope.spawn(move || {
            scheduler::pin(None, core).expect("a core that is there");
            let (mut device, mut pool, mut batch) = (source(), Pool::new(), net::Batch::new());
            let (mut coming, mut gone) = (Vec::new(), Vec::new());
            let mut begin = Instant::now();
            let (mut packets, mut is_warm) = (0u64, false);
            while begin.elapsed() < WINDOW * 2 {
                if coming.is_empty() {
                    device.receive(BATCH, &mut batch, &mut pool).expect("packets");
                    coming.extend(batch.drain());
                }
                rings[0].put(&mut coming);
                rings[length].take(&mut gone);
                let is_idle = gone.is_empty() && !coming.is_empty();
                packets += gone.len() as u64;
                gone.drain(..).for_each(|packet| pool.recycle(packet));
                if !is_warm && packets > 0 && begin.elapsed() > WINDOW / 3 {
                    (begin, packets, is_warm) = (Instant::now(), 0, true);
                }
                if is_idle {
                    rest();
                }
            }
            nanoseconds.store(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
            counted.store(packets, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        });
    });
    let packets = counted.into_inner().max(1) as f64;
    nanoseconds.into_inner() as f64 / packets
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| word == "nf") {
        return nf::main::<Router>();
    }
    if std::env::args().nth(1).is_some_and(|word| word == "acl") {
        return nf::main::<languages::acl::AccessList>();
    }
    let rounds = if std::env::args().any(|word| word == "quick") { 1 } else { 5 };
    if let Err(why) = scheduler::may_be_fifo() {
        println!("SCHED_FIFO is refused here ({why}): `catena host doctor` shows more");
        return ExitCode::FAILURE;
    }
    if std::env::args().any(|word| word == "languages") {
        languages::show(rounds);
        return ExitCode::SUCCESS;
    }
    let core = *scheduler::cores().last().expect("a core");
    // By length: one thread, yield, baton, spin, spin with yield.
    let mut seen: Vec<[Vec<f64>; 5]> = (0..LONGEST).map(|_| Default::default()).collect();
    let mut hand_offs: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        for length in 1..=LONGEST {
            let all = &mut seen[length - 1];
            all[0].push(one_thread(length, core));
            all[1].push(isolated(length, HandOff::Yield, LOOKUPS, BATCH).per_packet);
            all[2].push(isolated(length, HandOff::Baton, LOOKUPS, BATCH).per_packet);
            all[3].push(polling(length, core, false));
            all[4].push(polling(length, core, true));
        }
        for (hand_off, times) in [HandOff::Yield, HandOff::Baton].into_iter().zip(&mut hand_offs) {
            let batch = |length| isolated(length, hand_off, 0, 1).per_batch;
            times.push((batch(LONGEST) - batch(1)) / (LONGEST - 1) as f64);
        }
    }
    println!(
        "| NFs | one thread, ns a packet | yield / one thread | baton / one thread | spin / yield | spin with sched_yield / yield |"
    );
    println!("|---|---|---|---|---|---|");
    for (length, all) in (1..).zip(&seen) {
        // Throughput of the first in that of the second, round by round.
        let ratio = |of: usize, to: usize| {
            shown(all[to].iter().zip(&all[of]).map(|(a, b)| a / b).collect())
        };
        let cost = |of: usize, to: usize| {
            shown(all[of].iter().zip(&all[to]).map(|(a, b)| a / b).collect())
        };
        println!(
            "| {length} | {} | {} | {} | {} | {} |",
            shown(all[0].clone()).replace(".00", ""),
            ratio(1, 0),
            ratio(2, 0),
            cost(3, 1),
            cost(4, 1),
        );
    }
    let [by_yield, by_baton] = hand_offs;
    println!(
        "\nA hand-off with a batch of one packet that is not looked at: yield {} ns, baton {} ns.",
        shown(by_yield),
        shown(by_baton)
    );
    languages::show(rounds);
    ExitCode::SUCCESS
}
