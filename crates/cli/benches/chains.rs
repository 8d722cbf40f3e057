//! Nanoseconds per packet of whole chains: one core, in memory (replay -> chain -> a device that keeps
//! nothing), 60-byte frames, bursts of 32. Chains end in a device and not in Discard, which no write
//! would have to reach. Every round measures every chain once, so that the machine's moods touch
//! all alike; ratios to bare forwarding are taken within a round.
//!
//! `cargo bench -p catena-cli --bench chains -- [FILTER…] [--rounds N] [--packets N] [--interpret | --synthesise]`
//!
//! Chains, access lists and traffic are those of the shared data folder (`bench-chains`, `isp-acl`).
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catena_cli::session::{self, Path as Execution, Setup};
use cpu_time::ThreadTime;
use dataplane::clock::RealClock;
use dataplane::io::{Binding, Bindings, Replay};
use dataplane::{Router, Transcript};
use elements::configure::{Devices, Files};
use elements::device::{Device, DeviceRequest, Received};
use ir::{FileId, Sources};
use net::{Batch, Pool};

struct Chain {
    name: String,
    text: String,
    traffic: PathBuf,
}

/// Opens every capture that is read as a replay from memory, and sends nowhere.
struct Memory(Bindings);

impl Devices for Memory {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        match request {
            DeviceRequest::CaptureOut { .. } => Ok(Box::new(Nowhere)),
            _ => self.0.open(&DeviceRequest::Interface { name: "in".into(), receive: true }),
        }
    }
}

/// A device whose packets are gone once they are sent.
struct Nowhere;

impl Device for Nowhere {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }
}

struct Disk(PathBuf);

impl Files for Disk {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        let bytes = std::fs::read(self.0.join(path)).map_err(|e| e.to_string())?;
        let text = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut text = String::new();
            std::io::Read::read_to_string(
                &mut flate2::read::MultiGzDecoder::new(&bytes[..]),
                &mut text,
            )
            .map_err(|e| e.to_string())?;
            text
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(sources.add(path, text))
    }
}

/// The chains of the reference measurements.
fn chains(shared: &Path) -> Vec<Chain> {
    let folder = shared.join("data/bench-chains");
    let nfs = std::fs::read_to_string(folder.join("nfs.click")).expect("nfs.click");
    let mix = folder.join("mix-10k-60.pcap.gz");
    let mut chains = Vec::new();
    let mut add = |name: String, body: String, traffic: &Path| {
        let text = format!("{nfs}\nFromDump(in, BURST 32) {body} -> ToDump(out);\n");
        chains.push(Chain { name, text, traffic: traffic.to_path_buf() });
    };
    add("bare".into(), String::new(), &mix);
    add("strip+check".into(), "-> Strip(14) -> CheckIPHeader".into(), &mix);
    for n in [1, 2, 4, 6, 8, 10] {
        let router =
            |i: usize| format!("-> R({i}, 172.16.{i}.1, 02:00:00:00:01:01, 02:00:00:00:01:02) ");
        add(format!("routers-{n}"), (1..=n).map(router).collect(), &mix);
    }
    for n in [1, 2, 4, 10] {
        let napt = |i: usize| format!("-> N(30.0.{i}.1, 02:00:00:01:01:01, 02:00:00:01:01:02) ");
        add(format!("napts-{n}"), (1..=n).map(napt).collect(), &mix);
    }
    for set in ["acl1", "fw1", "ipc1"] {
        for rules in [250, 700, 8500] {
            let list = format!("../isp-acl/{set}-{rules}.ipfilter.gz");
            let traffic = shared.join(format!("data/isp-acl/{set}-{rules}.pcap.gz"));
            let filter = format!("-> F({list}, 02:00:00:02:01:01, 02:00:00:02:01:02) ");
            add(format!("filter-{set}-{rules}"), filter.clone(), &traffic);
            let rest = "-> RI(1, 172.16.1.1, 02:00:00:00:01:01, 02:00:00:00:01:02) \
                        -> N(30.0.1.1, 02:00:00:01:01:01, 02:00:00:01:01:02)";
            add(format!("acl-router-napt-{set}-{rules}"), filter + rest, &traffic);
        }
    }
    chains
}

/// A chain that is running, with how long it took to configure.
struct Running {
    name: String,
    router: Router,
    configured: Duration,
    samples: Vec<f64>,
}

fn prepare(chain: &Chain, folder: &Path, packets: u64, rounds: u64, path: Execution) -> Running {
    let mut sources = Sources::new();
    let start = Instant::now();
    let file = sources.add(chain.name.as_str(), chain.text.as_str());
    let mut bindings = Bindings::default();
    // One more round than is measured, to warm up.
    let replay = Replay { path: chain.traffic.clone(), count: packets * (rounds + 1) };
    bindings.inputs.insert("in".into(), Binding::Replay(replay));
    let setup = Setup {
        variables: Vec::new(),
        files: &mut Disk(folder.to_path_buf()),
        devices: &mut Memory(bindings),
        clock: Box::new(RealClock::new()),
        listener: Box::new(Transcript::default()),
        seed: 1,
        path,
    };
    let mut diagnostics = Vec::new();
    let Some((_, router)) = session::start(&mut sources, file, setup, &mut diagnostics) else {
        let messages: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
        panic!("{}: {}", chain.name, messages.join("; "));
    };
    Running { name: chain.name.clone(), router, configured: start.elapsed(), samples: Vec::new() }
}

impl Running {
    /// Moves this many packets and returns the thread's CPU nanoseconds per packet.
    fn measure(&mut self, packets: u64) -> f64 {
        let start = ThreadTime::now();
        for _ in 0..packets / 32 {
            self.router.round();
        }
        start.elapsed().as_nanos() as f64 / (packets / 32 * 32) as f64
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let (mut filters, mut rounds, mut packets, mut path) =
        (Vec::new(), 7u64, 200_000u64, Execution::Native);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect("a number");
        match argument.as_str() {
            "--rounds" => rounds = number(),
            "--packets" => packets = number(),
            "--interpret" => path = Execution::Interpreted,
            "--synthesise" => path = Execution::Synthesised,
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    let shared = std::env::var_os("CATENA_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    if !shared.is_dir() {
        eprintln!("not run: {} is missing", shared.display());
        return;
    }
    let chosen = |c: &Chain| {
        c.name == "bare"
            || filters.is_empty()
            || filters.iter().any(|f| c.name.contains(f.as_str()))
    };
    let folder = shared.join("data/bench-chains");
    let mut running: Vec<Running> = chains(&shared)
        .iter()
        .filter(|c| chosen(c))
        .map(|c| prepare(c, &folder, packets, rounds, path))
        .collect();
    running.iter_mut().for_each(|r| {
        r.measure(packets);
    });
    for _ in 0..rounds {
        for chain in &mut running {
            let sample = chain.measure(packets);
            chain.samples.push(sample);
        }
    }
    println!(
        "{:<28} {:>9} {:>17} {:>8} {:>13} {:>10}",
        "chain", "ns/packet", "(min-max)", "x bare", "(min-max)", "configure"
    );
    let bare = running[0].samples.clone();
    for chain in &running {
        let ratios: Vec<f64> = chain.samples.iter().zip(&bare).map(|(s, b)| s / b).collect();
        let low = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
        let high = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
        println!(
            "{:<28} {:>9.1} {:>17} {:>8.2} {:>13} {:>7.0} ms",
            chain.name,
            median(&chain.samples),
            format!("({:.1}-{:.1})", low(&chain.samples), high(&chain.samples)),
            median(&ratios),
            format!("({:.1}-{:.1})", low(&ratios), high(&ratios)),
            chain.configured.as_secs_f64() * 1e3,
        );
    }
}
