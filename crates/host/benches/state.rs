//! What state in Redis costs: an access list and a function with state of flows, which is in Redis or in the function's own memory.
//!
//! Redis is a server of its own on the loopback interface, without TLS, with `durability: fast` and `strict`. Where state is, is
//! all that differs; the places are measured by turns. One round with `quick`.
//!
//! `cargo bench -p catena-host --bench state -- [quick] [yield] [WORD…]`: words choose the cases that have them in their names. Turns are
//! handed off by `baton`, or by `yield`.
#![allow(clippy::print_stdout, reason = "benches report")]

extern crate nf as catena_nf;

#[path = "../../nf/examples/acl.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod acl;
#[path = "state/mapping.rs"]
mod mapping;
#[path = "../tests/support/redis.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod redis;
#[path = "run/mod.rs"]
mod run;

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use catena_host::HostChain;
use catena_host::manifest::{Function, HandOff, Nf, Policy};
use catena_host::scheduler;
use catena_host::service::{NfState, Status};
use catena_host::state::{Durability, State};
use net::pcap::{Options, Writer};
use redis::Redis;
use run::shown;

const CONFIG: &str = "deny 10.9.9.1\ndeny 10.9.9.2\ndeny 10.9.9.3\ndeny 10.9.9.4\n";

/// Packets of a capture, which is replayed with other addresses each time.
const PACKETS: u32 = 50_000;
const REPLAYED: &str = "loops=1000000,rewrite=4096";

/// Flows that begin between two packets of one.
const BETWEEN: u32 = 200;

/// Packets of a batch.
const BATCHES: [u32; 2] = [32, 256];

/// What goes through the chain.
struct Case {
    name: &'static str,
    /// Packets of a flow; none if there are 16 flows without end.
    packets: Option<u32>,
    /// The configuration of the function.
    does: &'static str,
}

const CASES: [Case; 5] = [
    Case { name: "five packets, one update", packets: Some(5), does: mapping::MAPS },
    Case { name: "five packets, five updates", packets: Some(5), does: mapping::COUNTS },
    Case { name: "each packet a new flow", packets: Some(1), does: mapping::MAPS },
    Case { name: "16 long flows, one update", packets: None, does: mapping::MAPS },
    Case { name: "16 long flows, each packet an update", packets: None, does: mapping::COUNTS },
];

impl Case {
    /// The flow of a packet. One in five packets begins a flow if these have five; a flow's next packet comes later than all
    /// of the same batch.
    fn flow(&self, number: u32) -> u32 {
        match self.packets {
            None => number % 16,
            Some(packets) => {
                let flows = PACKETS / packets;
                (number / packets + flows - number % packets * BETWEEN) % flows
            }
        }
    }

    /// A device that receives its packets without end.
    fn device(&self, folder: &Path) -> String {
        let path = folder.join("in.pcap");
        let options = Options::for_file_name(&path);
        let file = File::create(&path).expect("a file");
        let mut writer = Writer::new(file, &options).expect("a capture");
        for number in 0..PACKETS {
            let frame = frame(self.flow(number));
            writer.write(0, &frame, frame.len() as u32).expect("a packet");
        }
        writer.finish().expect("a capture");
        let rewritten = if self.packets.is_some() { REPLAYED } else { "loops=1000000" };
        format!("replay:{},{rewritten}", path.display())
    }
}

fn frame(flow: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    bytes[16..18].copy_from_slice(&46u16.to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 17]);
    bytes[26..30].copy_from_slice(&[10, 0, (flow >> 14) as u8, 1]);
    bytes[30..34].copy_from_slice(&[20, 0, 0, 2]);
    bytes[34..36].copy_from_slice(&((flow as u16 & 0x3fff) + 1024).to_be_bytes());
    bytes[36..38].copy_from_slice(&[0, 53]);
    bytes[38..40].copy_from_slice(&26u16.to_be_bytes());
    bytes
}

/// What was seen of a chain in a while.
struct Seen {
    /// Packets sent in a second.
    rate: f64,
    batches: f64,
    packets: f64,
    /// Of what Redis counts: reads of what is sent to it.
    reads: f64,
    state: Option<[NfState; 2]>,
    dropped: f64,
}

impl Seen {
    /// What was counted of the state, a batch.
    fn a_batch(&self, of: impl Fn(&NfState) -> u64) -> f64 {
        let counted = |[first, second]: &[NfState; 2]| (of(second) - of(first)) as f64;
        self.state.as_ref().map_or(0.0, counted) / self.batches
    }
}

/// Reads of a server from its connections.
fn reads(redis: &Redis) -> f64 {
    let info = redis.operator().values(&[b"INFO", b"stats"]).remove(0);
    let info = String::from_utf8(info).expect("text");
    let line = info.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
    line.and_then(|number| number.parse().ok()).expect("a number of reads")
}

/// The state without TLS.
fn plain(redis: &Redis, durability: Durability) -> State {
    let mut state = redis.state(durability);
    (state.server.tls, state.server.port) = (false, redis.port());
    state.server.host = "127.0.0.1".into();
    state
}

fn measured(
    case: &Case,
    batch: u32,
    input: &str,
    at: Option<(&Redis, Durability)>,
    (hand_off, window): (HandOff, Duration),
) -> Seen {
    let nothing = Function::Click(String::new());
    let mut spec = HostChain::alone("x", nothing, String::new(), input.into(), "/dev/null".into());
    let own = std::env::current_exe().expect("this program");
    let nf = |name: &str, config: &str| {
        let function = Function::Program(own.clone(), vec![name.into()]);
        Nf { config: config.into(), ..Nf::new(name, function) }
    };
    spec.nfs = vec![nf("acl", CONFIG), nf("mapping", case.does)];
    if scheduler::may_be_fifo().is_ok() {
        spec.policy = Policy::Cooperative;
    }
    spec.hand_off = hand_off;
    spec.batch = Some(batch);
    spec.timeout = Duration::from_secs(60);
    spec.state = at.map(|(redis, durability)| plain(redis, durability));
    if let Some((redis, _)) = at {
        // Flows are new in each chain.
        assert_eq!(redis.operator().call(&["FLUSHALL"]), "+OK");
    }
    let before = at.map_or(0.0, |(redis, _)| reads(redis));
    let (first, second) = run::sampled(spec, window);
    let after = at.map_or(0.0, |(redis, _)| reads(redis));
    let held = |of: &Status| of.held.as_ref().map_or(0, |of| of.dropped);
    let state = at.map(|_| [&first, &second].map(|of| of.nfs[1].state.clone().expect("state")));
    if let Some([_, state]) = &state {
        assert_eq!((&state.trouble, state.unread), (&None, 0));
        assert!(state.flows > 0);
    }
    Seen {
        rate: (second.sent - first.sent) as f64 / (second.seconds - first.seconds),
        batches: (second.batches - first.batches) as f64,
        packets: (second.received - first.received) as f64,
        // Those of the chain's whole life.
        reads: (after - before) / second.batches as f64,
        dropped: (held(&second) - held(&first)) as f64,
        state,
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("acl") => return nf::main::<acl::AccessList>(),
        Some("mapping") => return nf::main::<mapping::Mapping>(),
        _ => {}
    }
    let is_quick = words.iter().any(|word| word == "quick");
    let (rounds, window) = match is_quick {
        true => (1, Duration::from_millis(20)),
        false => (5, Duration::from_millis(400)),
    };
    let hand_off = match words.iter().any(|word| word == "yield") {
        true => HandOff::Yield,
        false => HandOff::Baton,
    };
    let how = (hand_off, window);
    let wanted: Vec<&String> = words
        .iter()
        .filter(|word| !word.starts_with("--") && !["quick", "yield"].contains(&word.as_str()))
        .collect();
    let folder = std::env::temp_dir().join(format!("catena-state-{}", std::process::id()));
    let servers = [("fast", Durability::Fast), ("strict", Durability::Strict)];
    let servers = servers.map(|(name, durability)| {
        let own = folder.join(name);
        std::fs::create_dir_all(&own).expect("a folder of its own");
        (name, durability, Redis::start(&own, durability == Durability::Strict))
    });
    println!(
        "| flows | batch | local, million packets a second | durability | Redis, million packets a second | Redis / local | \
         round trips a batch | reads by Redis a batch | flows read a batch | updates a batch | dropped |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|case| wanted.iter().all(|word| case.name.contains(*word))) {
        let input = case.device(&folder);
        for batch in BATCHES {
            let mut all: Vec<[Seen; 3]> = Vec::new();
            for _ in 0..rounds {
                let local = measured(case, batch, &input, None, how);
                let [fast, strict] = servers.each_ref().map(|(_, durability, redis)| {
                    measured(case, batch, &input, Some((redis, *durability)), how)
                });
                all.push([local, fast, strict]);
            }
            show(case, batch, &all, &servers.each_ref().map(|(name, ..)| *name));
        }
    }
    drop(servers);
    let _ = std::fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}

fn show(case: &Case, batch: u32, all: &[[Seen; 3]], names: &[&str; 2]) {
    let of = |what: &dyn Fn(&[Seen; 3]) -> f64| shown(all.iter().map(what).collect());
    for (at, name) in (1..).zip(names) {
        println!(
            "| {} | {batch} | {} | {name} | {} | {} | {} | {} | {} | {} | {} % |",
            case.name,
            of(&|seen| seen[0].rate / 1e6),
            of(&|seen| seen[at].rate / 1e6),
            of(&|seen| seen[at].rate / seen[0].rate),
            of(&|seen| seen[at].a_batch(|state| state.round_trips)),
            of(&|seen| seen[at].reads),
            of(&|seen| seen[at].a_batch(|state| state.flows)),
            of(&|seen| seen[at].a_batch(|state| state.updates)),
            of(&|seen| 100.0 * seen[at].dropped / seen[at].packets.max(1.0)),
        );
    }
}
