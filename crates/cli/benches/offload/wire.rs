//! Latency of single frames between namespaces, through interfaces whose XDP programs do their part of a chain, or hand all frames to
//! the server behind them.
//!
//! The host `load` sends a frame and looks for it on the host `end`, busily, on CPU 0; the server polls on CPU 1.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::live::{MACS, Network, Process};
use net::{Batch, Pool};

use crate::CATENA;
use crate::cases::Cases;
use crate::cores::Case;
use crate::load::open;
use crate::paper::Page;
use crate::support::{Spread, percentile};
use crate::testbed::{MEASURED, bind, pause, start};

/// Between two frames.
const REST: Duration = Duration::from_micros(200);
/// Frames in a round.
const FRAMES: usize = 2000;
/// Frames of a case that are sent in turns.
const DIFFERENT: usize = 200;
/// How long a frame is waited for.
const PATIENCE: Duration = Duration::from_millis(20);

/// Median and 99th percentile of each round, in microseconds.
#[derive(Default)]
pub(crate) struct Latency {
    medians: Vec<f64>,
    lates: Vec<f64>,
}

impl Latency {
    pub(crate) fn spreads(&self) -> [Spread; 2] {
        [&self.medians, &self.lates].map(|all| Spread::of(all.iter().copied()))
    }

    /// How much longer frames took than in the same round of another.
    pub(crate) fn ratios(&self, to: &Self) -> [Spread; 2] {
        [Spread::of_ratios(&self.medians, &to.medians), Spread::of_ratios(&self.lates, &to.lates)]
    }
}

/// Hosts `load` and `end`, interfaces between them with programs, and a server behind these.
struct Rack {
    network: Network,
    topology: PathBuf,
}

impl Rack {
    fn new() -> Self {
        let network = Network::new(&["load", "middle", "end", "server"]);
        let wide = ["mtu", "1504"];
        network.link([("middle", "eth0"), ("load", "veth0")], MACS[0], &[]);
        network.link([("middle", "eth1"), ("end", "veth0")], MACS[1], &[]);
        network.link([("server", "eth0"), ("middle", "up0")], "02:00:00:00:00:09", &wide);
        for host in ["load", "end"] {
            network.take_frames(host, "veth0");
        }
        let topology = network.folder().join("rack.yaml");
        let namespace = network.namespace("middle");
        let text = format!(
            "switches:
  nic:
    target: ebpf
    control: xdp:netns={namespace}
    ports: {{ eth0: {{ number: 1 }}, eth1: {{ number: 2 }}, up0: {{ number: 3 }} }}
servers:
  s1: {{ ports: {{ eth0: {{}} }} }}
links: [[nic.up0, s1.eth0]]
wires: {{ in: nic.eth0, out: nic.eth1 }}
"
        );
        fs::write(&topology, text).expect("a topology");
        Self { network, topology }
    }

    /// Installs a chain and runs the server. Where nothing is to be offloaded, a queue stands before the chain, which no device
    /// has.
    fn serve(&self, case: &Case, offloads: bool) -> Process {
        let text = fs::read_to_string(&case.file).expect("the chain");
        let first = if offloads { "FromDevice(in)" } else { "FromDevice(in) -> Queue -> Unqueue" };
        let file = self.network.file("chain", &text.replace("FromDevice(in)", first));
        let mut command = Command::new(CATENA.0);
        command.arg("offload").arg(&file).arg("--topology").arg(&self.topology);
        let installed = command.arg("--install").output().expect("it starts");
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "{}: {said}", case.name);
        let cpu = MEASURED.to_string();
        let mut command = self.network.command("server", "nice");
        command.args(["-n", "-20", "taskset", "-c", &cpu, CATENA.0, "run"]).arg(&file);
        command.arg("--topology").arg(&self.topology);
        command.args(["--control", "none", "--poll", "busy", "--cores", &cpu]);
        let mut server = start(&mut command);
        server.wait_for(", mtu ");
        server
    }
}

/// The median and the 99th percentile of a round, in microseconds.
fn round(case: &Case, offloads: bool) -> [f64; 2] {
    let rack = Arc::new(Rack::new());
    let _server = rack.serve(case, offloads);
    let step = case.frames.len().div_ceil(DIFFERENT).max(1);
    let frames: Vec<Vec<u8>> = case.frames.iter().step_by(step).cloned().collect();
    let inside = Arc::clone(&rack);
    let measure = move || {
        let network = &inside.network;
        network.enter("load");
        bind(crate::testbed::LOADING);
        let _ = rustix::process::nice(-20);
        let mut to = open(false);
        network.enter("end");
        let mut from = open(true);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        let mut send = |frame: &[u8]| {
            batch.push(pool.packet(frame));
            let begin = Instant::now();
            to.send(&mut batch, &mut pool).expect("a frame is sent");
            while begin.elapsed() < PATIENCE {
                from.receive(32, &mut batch, &mut pool).expect("frames are received");
                let came = !batch.is_empty();
                pool.recycle_all(&mut batch);
                if came {
                    return Some(begin.elapsed().as_nanos() as f64 / 1e3);
                }
            }
            None
        };
        // Flows begin; what the chain drops is left out.
        let passing: Vec<Vec<u8>> =
            frames.into_iter().filter(|frame| send(frame).is_some()).collect();
        assert!(!passing.is_empty(), "frames leave");
        let mut latencies = Vec::new();
        for frame in passing.iter().cycle().take(FRAMES) {
            pause(REST);
            latencies.extend(send(frame));
        }
        latencies.sort_by(f64::total_cmp);
        [0.5, 0.99].map(|share| percentile(&latencies, share))
    };
    std::thread::spawn(measure).join().expect("latencies")
}

/// Measures cases without and with what devices do, by turns.
pub(crate) fn measure(cases: &[Case], rounds: usize) -> Vec<[Latency; 2]> {
    let mut all: Vec<[Latency; 2]> = cases.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds {
        for (case, both) in cases.iter().zip(&mut all) {
            for (offloads, latency) in [false, true].into_iter().zip(both) {
                let [median, late] = round(case, offloads);
                latency.medians.push(median);
                latency.lates.push(late);
            }
        }
    }
    all
}

pub(crate) const TITLE: &str = "Latency between namespaces";

/// Measures the papers' chains, and writes what devices save.
pub(crate) fn section(cases: &Cases<'_>, rounds: usize) -> Page {
    let chains = [
        cases.firewall(64),
        cases.firewall_then_forwarding(64),
        cases.firewall_and_dpi(),
        cases.stateful(),
        cases.classifier(8500, 64),
        cases.isp(8500, 64),
    ];
    let measured = measure(&chains, rounds);
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
Single frames from one network namespace to another, through a host whose interfaces run XDP programs in their drivers, and a server behind it: veth pairs, and AF_XDP on the server,
which polls on a core of its own. *Without*, XDP hands each frame to the server, which runs the whole chain (behind a queue, which no device has); *with*, XDP does its part. The path of frames that come to the server is the
same. {FRAMES} frames in a round, 200 µs apart; {rounds} rounds by turns; medians with the least and the greatest.
"
    ));
    page.head(&[
        "chain",
        "median without, µs",
        "with",
        "without / with",
        "99th percentile without, µs",
        "with",
        "without / with",
    ]);
    for (case, [without, with]) in chains.iter().zip(&measured) {
        let ([median, late], [less, less_late]) = (without.spreads(), with.spreads());
        let [ratio, late_ratio] = without
            .ratios(with)
            .map(|of| format!("{:.2} ({:.2}–{:.2})", of.median, of.least, of.greatest));
        let times = [median, less, late, less_late].map(|of| of.to_string());
        let [median, less, late, less_late] = times;
        page.row([case.name.clone(), median, less, ratio, late, less_late, late_ratio]);
    }
    page.put(format_args!(
        "
Metron's firewall with the rules on the switch has 2.9 to 4.7 times less latency with one core, whose queue is full in software; SNF's 99th percentiles behind the switch
stay below 800 µs. Here frames come one by one and no queue forms, so what is spared is the path to a server where none takes part (*firewall*, *classifier*). Where one does,
the path takes most of the time, and what a core does little of it."
    ));
    page
}
