//! How well `catena netbench` measures, and how fast its applications are.
//!
//! - `client`: what a client adds to a round trip by itself: one over a device that has sent frames back at once.
//! - `hold`: a chain that holds each frame for 200 µs, beside one that does not: the difference of round trips.
//! - `send`: frames that `send` gives to a link in a second, beside `trafgen` (Debian's netsniff-ng), where it is installed.
//! - `datagrams`: datagrams that come from `send` to `recv` in a second, beside `iperf3`.
//!
//! `cargo bench -p catena-cli --bench netbench -- [WHAT] [--rounds N] [--seconds S]`
//!
//! Those that are compared run by turns, in namespaces of the bench's own, who sends on CPU 0 and who receives on CPU 1.
//! A ratio is that of two neighbours. Only root can make namespaces; `client` needs none.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use bench::netbench::application::{Options, Role, run_over};
use bench::netbench::{Carrier, Endpoint};
use bench::statistics::Spread;
use dataplane::io::{Interfaces, Polling};
use elements::device::{Device, Received, Wake};
use lab::live::{Network, Process, possible, until};
use net::{Batch, Packet, Pool};
use serde_json::Value;

const CATENA: &str = env!("CARGO_BIN_EXE_catena");

struct Arguments {
    rounds: usize,
    seconds: f64,
}

fn main() {
    let (mut what, mut arguments) = (None, Arguments { rounds: 5, seconds: 1.0 });
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse::<f64>().ok()).expect("a number");
        match word.as_str() {
            "--rounds" => arguments.rounds = number() as usize,
            "--seconds" => arguments.seconds = number(),
            "--bench" => {}
            _ => what = Some(word),
        }
    }
    let wants = |name: &str| what.as_deref().is_none_or(|what| what == name);
    if wants("client") {
        client(&arguments);
    }
    if !possible() {
        return;
    }
    for (name, run) in [("hold", hold as fn(&Arguments)), ("send", send), ("datagrams", datagrams)]
    {
        if wants(name) {
            run(&arguments);
        }
    }
}

fn spread(of: &Spread, unit: &str) -> String {
    format!("{:.3}{unit} ({:.3}–{:.3})", of.median, of.least, of.greatest)
}

/// Frames that were sent and not yet received.
struct Loop(Rc<RefCell<VecDeque<Packet>>>);

impl Device for Loop {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        _: &mut Pool,
    ) -> Result<Received, String> {
        let mut frames = self.0.borrow_mut();
        let count = burst.min(frames.len());
        frames.drain(..count).for_each(|frame| batch.push(frame));
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, _: &mut Pool) -> Result<(), String> {
        self.0.borrow_mut().extend(batch.drain());
        Ok(())
    }

    fn wait_on(&self) -> Option<Wake> {
        Some(Wake::Polled)
    }
}

fn client(arguments: &Arguments) {
    let end = |number: u8| Endpoint {
        ip: Ipv4Addr::new(198, 18, 0, number),
        mac: net::wire::EtherAddr([2, 0, 0, 0, 0, number]),
    };
    let carrier: Carrier = "af-packet-mmsg".parse().expect("an I/O mode");
    for burst in [1, 32] {
        let mut medians = Vec::new();
        for _ in 0..arguments.rounds {
            let options = Options {
                role: Role::Client,
                local: end(1),
                remote: end(2),
                carrier: carrier.clone(),
                interface: None,
                rate: Some(10_000.0),
                size: 64,
                burst,
                touches: false,
                seconds: Some(arguments.seconds),
                polling: Polling::Busy,
                eal: None,
                stream: 0,
            };
            let frames = Rc::default();
            let devices: [Box<dyn Device>; 2] =
                [Box::new(Loop(Rc::clone(&frames))), Box::new(Loop(frames))];
            let devices = (devices, &Interfaces::default());
            let outcome = run_over(&options, devices, None, None, &|| false).expect("it runs");
            assert!(outcome.sent > 0 && outcome.received == outcome.sent, "{outcome:?}");
            medians.push(outcome.percentiles().expect("round trips").p50 as f64 / 1e3);
        }
        println!(
            "client, bursts of {burst}: {} of its own in the median round trip",
            spread(&Spread::of(medians), " µs")
        );
    }
}

fn hold(arguments: &Arguments) {
    const HELD: f64 = 200.0;
    let network = Network::new(&[]);
    let back = "FromDevice(p1) -> ToDevice(p0);\n";
    let pass = network.file("pass", &format!("FromDevice(p0) -> ToDevice(p1);\n{back}"));
    let held = "FromDevice(p0) -> Queue -> DelayUnqueue(200us) -> ToDevice(p1);\n";
    let held = network.file("hold", &format!("{held}{back}"));
    let switches = format!("catena:{},catena:{}", pass.display(), held.display());
    let mut run = Command::new(CATENA);
    run.args(["netbench", "run", "--switch", &switches, "--size", "64", "--latency", "--json"]);
    run.args(["--io", "af-xdp", "--latency-rate", "1000", "--repeat"]);
    run.args([&arguments.rounds.to_string(), "--seconds", &arguments.seconds.to_string()]);
    let output = run.stderr(Stdio::inherit()).output().expect("it runs");
    let results: Value = serde_json::from_slice(&output.stdout).expect("results");
    let medians = |cell: usize| -> Vec<f64> {
        let samples = results["cells"][cell]["samples"].as_array().expect("samples");
        let p50 = |sample: &Value| sample["round_trips"]["latency"]["p50"].as_f64();
        samples.iter().filter_map(p50).map(|p50| p50 / 1e3).collect()
    };
    let [pass, held] = [medians(0), medians(1)];
    let differences = Spread::of_differences(&held, &pass);
    println!(
        "hold: {} without, {} with 200 µs: {} more, {:.1} % beside",
        spread(&Spread::of(pass), " µs"),
        spread(&Spread::of(held), " µs"),
        spread(&differences, " µs"),
        100.0 * (differences.median - HELD) / HELD
    );
}

/// Two hosts with a link between them.
fn two_hosts() -> Network {
    let network = Network::new(&["a", "b"]);
    let queues = ["numrxqueues", "4", "numtxqueues", "4"];
    network.link([("a", "v0"), ("b", "v1")], MACS[0], &queues);
    network.ip("b", &["link", "set", "v1", "address", MACS[1]]);
    network
}

const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
const IPS: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// An application by hand, on a CPU.
fn application(network: &Network, role: &str, words: &[&str]) -> Command {
    let is_sender = role == "send";
    let (host, own, cpu) = if is_sender { ("a", 0, "0") } else { ("b", 1, "1") };
    let mut command = network.command(host, CATENA);
    command.args(["netbench", role, IPS[own], MACS[own], IPS[1 - own], MACS[1 - own]]);
    command.args(["--size", "64", "--burst", "32", "--silent", "--json", "--cpu", cpu]);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Frames that an interface has sent.
fn frames(network: &Network) -> u64 {
    let text = network.ip("a", &["-s", "-j", "link", "show", "v0"]);
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all[0]["stats64"]["tx"]["packets"].as_u64().expect("a counter")
}

/// Prints what subjects did, and the ratio of the first to each of the others.
fn print(what: &str, names: &[&str], samples: &[Vec<f64>]) {
    for (name, of) in names.iter().zip(samples) {
        let of = of.iter().map(|rate| rate / 1e6);
        println!("{what}, {name}: {}", spread(&Spread::of(of), " Mpps"));
    }
    for (name, of) in names.iter().zip(samples).skip(1) {
        println!("  {} / {name}: {}", names[0], spread(&Spread::of_ratios(&samples[0], of), ""));
    }
}

fn send(arguments: &Arguments) {
    if Command::new("trafgen").arg("--version").output().is_err() {
        eprintln!("send: not run, as there is no trafgen (Debian: netsniff-ng)");
        return;
    }
    let network = two_hosts();
    // The other end has no address: frames end in the kernel's IP, for all alike.
    let frame = "{ 0x02,0,0,0,0,2, 0x02,0,0,0,0,1, 0x08,0, 0x45,0,0,50,0,0,0,0,64,17, csumip(14,33), 10,0,0,1, 10,0,0,2,
        0x23,0x82,0x23,0x82, 0,30, 0,0, fill(0x41,22) }";
    let frame = network.file("frame", frame);
    let seconds = arguments.seconds.to_string();
    let trafgen = |more: &[&str]| {
        let mut command = network.command("a", "timeout");
        command.args(["-s", "INT", &seconds, "trafgen", "-o", "v0", "-c"]).arg(&frame);
        command.args(["--cpus", "1"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let own = |io: &str| {
        application(&network, "send", &["--raw", "v0", "--io", io, "--seconds", &seconds])
    };
    let names = ["send by af-packet-mmsg", "send by af-packet", "trafgen by ring", "trafgen"];
    let mut samples = vec![Vec::new(); names.len()];
    for _ in 0..arguments.rounds {
        let commands =
            [own("af-packet-mmsg"), own("af-packet"), trafgen(&["-b", "0"]), trafgen(&["-t", "0"])];
        for (mut command, of) in commands.into_iter().zip(&mut samples) {
            let (before, begin) = (frames(&network), Instant::now());
            let (_, _, told) = Process::start(&mut command).ended();
            let sent = frames(&network) - before;
            assert!(sent > 0, "{told}");
            // Processes start and end in it: all do.
            of.push(sent as f64 / begin.elapsed().as_secs_f64());
        }
    }
    print("send", &names, &samples);
}

fn datagrams(arguments: &Arguments) {
    let network = two_hosts();
    for (host, ip, interface) in [("a", IPS[0], "v0"), ("b", IPS[1], "v1")] {
        network.ip(host, &["addr", "add", &format!("{ip}/24"), "dev", interface]);
    }
    let seconds = arguments.seconds;
    let own = |io: &str| -> f64 {
        let whole = (seconds + 1.0).to_string();
        let receiver = application(&network, "recv", &["--io", io, "--seconds", &whole]);
        let receiver = Process::start(&mut { receiver });
        until("it receives", || {
            network.on("b", "ss", &["-Hlun"]).contains(IPS[1])
                || network.on("b", "ss", &["-Hun", "-a"]).contains(IPS[1])
        });
        let sender =
            application(&network, "send", &["--io", io, "--seconds", &seconds.to_string()]);
        let (code, _, told) = Process::start(&mut { sender }).ended();
        assert_eq!(code, Some(0), "{told}");
        let (code, text, told) = receiver.ended();
        assert_eq!(code, Some(0), "{told}");
        let outcome: Value = serde_json::from_str(&text).expect("JSON");
        outcome["received"].as_f64().expect("packets") / seconds
    };
    let peer = || -> f64 {
        let mut server = network.command("b", "iperf3");
        server.args(["--server", "--one-off", "--bind", IPS[1], "--affinity", "1"]);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let server = Process::start(&mut server);
        until("it listens", || network.on("b", "ss", &["-Hltn"]).contains("5201"));
        let mut client = network.command("a", "iperf3");
        client.args(["--client", IPS[1], "--udp", "--bitrate", "0", "--length", "22", "--json"]);
        client.args(["--affinity", "0", "--time", &seconds.ceil().to_string()]);
        client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (_, text, told) = Process::start(&mut client).ended();
        server.ended();
        let all: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {told}"));
        let sum = &all["end"]["sum"];
        let of = |what: &str| sum[what].as_f64().unwrap_or_else(|| panic!("{what}: {sum}"));
        (of("packets") - of("lost_packets")) / of("seconds")
    };
    let names = ["send and recv by udp-mmsg", "send and recv by udp", "iperf3"];
    let mut samples = vec![Vec::new(); names.len()];
    for _ in 0..arguments.rounds {
        samples[0].push(own("udp-mmsg"));
        samples[1].push(own("udp"));
        samples[2].push(peer());
    }
    print("datagrams", &names, &samples);
}
