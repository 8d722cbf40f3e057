//! Bare forwarding over a device of DPDK's, by Catena and by DPDK's testpmd in turn. On the other side of the device
//! testpmd sends back what it gets, so that the same frames go round and round, as fast as the slower of both.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::live::{Process, until};

use crate::Arguments;
use crate::support::Spread;
use crate::testbed::{CATENA, LOADING, MEASURED, pause, start as start_process};

/// The chain: whatever comes goes back.
const BACK: &str = "FromDevice(device) -> ToDevice(device);";

/// Pages of 2 MiB that all of it together needs.
const PAGES: u32 = 512;
const PAGES_FILE: &str = "/proc/sys/vm/nr_hugepages";

/// Bursts of 32 frames that go round: as many frames as a ring has entries.
const BURSTS: u32 = 32;

/// Parts of a round, of which the fastest counts: one in which nobody else had the CPUs.
const WINDOWS: u32 = 8;

/// Two devices that are connected; `SOCKET` stands for the path of their socket.
struct Loop {
    name: &'static str,
    /// The device of the side that sends back.
    there: &'static str,
    /// The device of the side that is measured.
    here: &'static str,
    /// Whether the side that is measured makes the socket, and so must be there first.
    here_first: bool,
    /// What DPDK is told besides.
    eal: &'static str,
}

const VHOST: &str = "net_vhost0,iface=SOCKET";
const VIRTIO_USER: &str = "virtio_user0,path=SOCKET,queue_size=1024";
const ONE_FILE: &str = "--in-memory --single-file-segments";

const LOOPS: [Loop; 3] = [
    Loop {
        name: "memif",
        there: "net_memif0,role=server,socket=SOCKET,socket-abstract=no",
        here: "net_memif0,role=client,socket=SOCKET,socket-abstract=no",
        here_first: false,
        eal: "--in-memory",
    },
    Loop { name: "virtio_user", there: VHOST, here: VIRTIO_USER, here_first: false, eal: ONE_FILE },
    Loop { name: "vhost", there: VIRTIO_USER, here: VHOST, here_first: true, eal: ONE_FILE },
];

/// Huge pages for as long as it lives.
struct Pages(String);

impl Pages {
    fn new() -> Self {
        let before = std::fs::read_to_string(PAGES_FILE).expect("the number of huge pages");
        std::fs::write(PAGES_FILE, PAGES.to_string()).expect("huge pages");
        Self(before)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = std::fs::write(PAGES_FILE, &self.0);
    }
}

/// A testpmd that forwards what comes on its port to the same port.
struct Testpmd(Process);

impl Testpmd {
    fn start(device: &str, eal: &str, cpu: usize) -> Self {
        let mut command = Command::new("nice");
        command.args([
            "-n",
            "-20",
            "stdbuf",
            "-oL",
            "dpdk-testpmd",
            "--no-pci",
            "--no-telemetry",
            "--vdev",
            device,
        ]);
        command.args(eal.split(' ')).args(["--lcores", &format!("0@{cpu},1@{cpu}")]);
        command.args(["--", "-i", "--forward-mode=io", "--nb-cores=1", "--total-num-mbufs=16384"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut testpmd = Self(Process::start(&mut command));
        // Once it answers it has begun.
        testpmd.received();
        testpmd
    }

    fn say(&mut self, command: &str) {
        let input = self.0.input.as_mut().expect("its standard input");
        writeln!(input, "{command}").expect("testpmd listens");
    }

    /// Its next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.output.as_mut().expect("its standard output");
        assert!(output.read_line(&mut line).unwrap_or(0) > 0, "testpmd ended");
        line
    }

    /// Frames received so far.
    fn received(&mut self) -> u64 {
        self.say("show port stats 0");
        loop {
            if let Some(rest) = self.line().trim().strip_prefix("RX-packets:") {
                let number = rest.split_whitespace().next().and_then(|n| n.parse().ok());
                return number.expect("a number of frames");
            }
        }
    }

    /// Waits until its link is up.
    fn wait_for_link(&mut self) {
        until("the link comes up", || {
            self.say("show port summary 0");
            let mut line = self.line();
            while !line.starts_with("0    ") {
                line = self.line();
            }
            line.contains(" up ")
        });
    }
}

/// What is measured, until it is dropped.
fn start(kind: &str, device: &str, eal: &str, folder: &std::path::Path) -> Box<dyn std::any::Any> {
    if kind == "testpmd" {
        let mut testpmd = Testpmd::start(device, eal, MEASURED);
        testpmd.say("start");
        return Box::new(testpmd);
    }
    let file = folder.join("chain.click");
    std::fs::write(&file, BACK).expect("the chain is written");
    let mut command = Command::new("nice");
    command
        .args(["-n", "-20", CATENA.0, "run"])
        .arg(file)
        .args(["--in", &format!("device=dpdk:{device}")]);
    command.args(["--cores", &MEASURED.to_string(), "--poll", "busy", "--control", "none"]);
    command.args(["--dpdk-eal", &format!("{eal} --no-pci --no-telemetry")]);
    let mut process = start_process(&mut command);
    process.wait_for(", mtu ");
    Box::new(process)
}

pub(crate) fn run(arguments: &Arguments) {
    if !cfg!(feature = "dpdk") {
        println!("not run: it needs --features dpdk");
        return;
    }
    let _pages = Pages::new();
    let folder = std::env::temp_dir().join(format!("catena{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    println!("{:<22} {:>20} {:>20} {:>20}", "Mpps", "testpmd", "catena", "catena ÷ testpmd");
    for Loop { name, there, here, here_first, eal } in LOOPS {
        if !arguments.wants(name) {
            continue;
        }
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..arguments.rounds {
            for (kind, samples) in ["testpmd", "catena"].into_iter().zip(&mut samples) {
                if arguments.interrupted() {
                    return;
                }
                let socket = folder.join("socket").display().to_string();
                let _ = std::fs::remove_file(&socket);
                let with_socket = |device: &str| device.replace("SOCKET", &socket);
                let begin = || start(kind, &with_socket(here), eal, &folder);
                let first = here_first.then(begin);
                let mut peer = Testpmd::start(&with_socket(there), eal, LOADING);
                let forwarder = first.unwrap_or_else(begin);
                peer.wait_for_link();
                peer.say(&format!("start tx_first {BURSTS}"));
                let window = Duration::from_secs_f64(arguments.seconds / f64::from(WINDOWS));
                pause(window);
                let (mut since, mut before) = (Instant::now(), peer.received());
                let rates = (0..WINDOWS).map(|_| {
                    pause(window);
                    let (now, received) = (Instant::now(), peer.received());
                    let rate = (received - before) as f64 / 1e6 / (now - since).as_secs_f64();
                    (since, before) = (now, received);
                    rate
                });
                samples.push(rates.fold(0.0, f64::max));
                drop(forwarder);
            }
        }
        let [testpmd, catena] = &samples;
        let of = |samples: &[f64]| Spread::of(samples.iter().copied()).to_string();
        let ratio = Spread::of_ratios(catena, testpmd);
        println!(
            "{name:<22} {:>20} {:>20} {:>20}",
            of(testpmd),
            of(catena),
            format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.least, ratio.greatest),
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
}
