//! Latency of packets that come one by one, with a pause in between, beside the kernel's forwarding over the same
//! interfaces: what a worker's wake-up costs, and what one costs that is always awake.
//!
//! One thread on CPU 0 sends a packet and looks for it until it comes out, busily, so that nobody need wake it; the
//! worker is on CPU 1, which has nothing else to do. Kinds take turns; a ratio is that of one round.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::live::MACS;
use net::{Batch, Pool, notation};

use crate::Arguments;
use crate::load::open;
use crate::support::{Spread, percentile};
use crate::testbed::{NEXT_MAC, Testbed, pause};

/// Between two packets.
const PAUSES: [Duration; 3] =
    [Duration::from_micros(50), Duration::from_micros(500), Duration::from_millis(2)];
/// Packets in a round.
const PACKETS: usize = 1000;

/// The first is what the others are compared with.
const KINDS: [(&str, &[&str]); 6] = [
    ("linux", &[]),
    ("af-xdp", &["--io", "af-xdp"]),
    ("af-xdp, busy", &["--io", "af-xdp", "--poll", "busy"]),
    ("af-packet-mmsg", &["--io", "af-packet-mmsg"]),
    ("af-packet-ring", &["--io", "af-packet-ring"]),
    ("af-packet-ring, busy", &["--io", "af-packet-ring", "--poll", "busy"]),
];

/// The median and the 99th percentile of a round, in microseconds.
fn round(arguments: &[&str], rest: Duration) -> [f64; 2] {
    let testbed = Arc::new(Testbed::new());
    let script = format!(
        "ip addr add 172.16.1.1/24 dev eth0; ip addr add 30.0.1.1/24 dev eth1
         echo 1 > /proc/sys/net/ipv4/ip_forward
         ip neigh replace 30.0.1.254 lladdr {NEXT_MAC} dev eth1"
    );
    let _process = match arguments {
        [] => {
            testbed.on("middle", "sh", &["-c", &script]);
            None
        }
        _ => {
            let chain = format!(
                "FromDevice(in) -> Strip(14) -> CheckIPHeader -> DecIPTTL
                   -> EtherEncap(0x0800, {}, {NEXT_MAC}) -> ToDevice(out);",
                MACS[1]
            );
            let devices = ["--in", "in=eth0", "--out", "out=eth1"];
            Some(testbed.catena(&chain, &[&devices, arguments].concat()))
        }
    };
    let measure = move || {
        testbed.enter_loading("load");
        let mut to = open(false);
        testbed.enter_loading("end");
        let mut from = open(true);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        let text = format!("eth 02:00:00:00:00:09 > {} udp 172.16.1.9:1 > 30.0.1.254:2", MACS[0]);
        let frame = notation::parse(&text).expect("a packet");
        let mut latencies = Vec::new();
        for _ in 0..PACKETS {
            pause(rest);
            batch.push(pool.packet(&frame));
            let begin = Instant::now();
            to.send(&mut batch, &mut pool).expect("a frame is sent");
            while begin.elapsed() < Duration::from_millis(50) {
                from.receive(32, &mut batch, &mut pool).expect("frames are received");
                let came =
                    batch.iter().any(|packet| packet.data().get(26..34) == frame.get(26..34));
                pool.recycle_all(&mut batch);
                if came {
                    latencies.push(begin.elapsed().as_nanos() as f64 / 1e3);
                    break;
                }
            }
        }
        latencies.sort_by(f64::total_cmp);
        [0.5, 0.99].map(|share| percentile(&latencies, share))
    };
    std::thread::spawn(measure).join().expect("latencies")
}

pub(crate) fn run(arguments: &Arguments) {
    println!(
        "{:<22} {:>8} {:>22} {:>22} {:>18} {:>18}",
        "kind", "pause µs", "median µs", "p99 µs", "median / linux", "p99 / linux"
    );
    for rest in PAUSES {
        let kinds: Vec<_> =
            KINDS.iter().filter(|(name, _)| *name == "linux" || arguments.wants(name)).collect();
        let mut samples = vec![[Vec::new(), Vec::new()]; kinds.len()];
        for _ in 0..arguments.rounds {
            for ((_, how), samples) in kinds.iter().zip(&mut samples) {
                if arguments.interrupted() {
                    return;
                }
                let measured = round(how, rest);
                samples.iter_mut().zip(measured).for_each(|(all, one)| all.push(one));
            }
        }
        for ((name, _), [medians, lates]) in kinds.iter().zip(&samples) {
            let ratio = |of: usize| Spread::of_ratios(&[medians, lates][of][..], &samples[0][of]);
            println!(
                "{name:<22} {:>8} {:>22} {:>22} {:>18} {:>18}",
                rest.as_micros(),
                Spread::of(medians.iter().copied()).to_string(),
                Spread::of(lates.iter().copied()).to_string(),
                ratio(0).to_string(),
                ratio(1).to_string(),
            );
        }
    }
}
