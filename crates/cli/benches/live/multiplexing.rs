//! SCC's table of I/O multiplexing (§6.5.1, figure 6.10): latency of a wire over AF_PACKET by how many frames a system
//! call carries, and of the batch that adapts itself, at several loads and frame sizes.
//!
//! One thread on CPU 0 sends frames when they are due and takes those that come back; a chain on CPU 1, which is
//! always awake, carries them from one interface to the other. Latency counts from when a frame was due, so that what
//! cannot be sent in time is not left out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use elements::device::Device;
use net::{Batch, Pool};

use crate::Arguments;
use crate::load::open;
use crate::support::percentile;
use crate::testbed::Testbed;

/// Frame sizes, as SCC's.
const SIZES: [usize; 4] = [64, 128, 256, 1500];
/// Frames per second.
const LOADS: [u64; 5] = [50_000, 100_000, 150_000, 200_000, 250_000];

/// `None` is the batch that adapts itself.
const BATCHES: [Option<usize>; 10] =
    [Some(1), Some(2), Some(4), Some(8), Some(16), Some(32), Some(64), Some(128), Some(256), None];

/// The chain: whatever comes on eth0 goes out on eth1.
const WIRE: &str = "FromDevice(in) -> ToDevice(out);";

/// Where the time stands in a frame.
const STAMP: usize = 16;
/// What frames of the bench begin with: their destination, which nobody has.
const TO: [u8; 6] = [2, 0, 0, 0, 9, 9];
/// An EtherType for experiments (IEEE 802, 88B5).
const TYPE: [u8; 2] = [0x88, 0xb5];

/// Latencies in microseconds, ascending, and the share of frames that did not come.
struct Latencies {
    sorted: Vec<f64>,
    lost: f64,
}

impl Latencies {
    fn at(&self, share: f64) -> f64 {
        percentile(&self.sorted, share)
    }
}

/// The two ends of the chain.
struct Ends {
    to: Box<dyn Device + Send>,
    from: Box<dyn Device + Send>,
    begin: Instant,
}

impl Ends {
    /// In a thread of its own, which ends up where frames come out.
    fn open(testbed: &Testbed) -> Self {
        testbed.enter_loading("load");
        let to = open(false);
        testbed.enter_loading("end");
        Self { to, from: open(true), begin: Instant::now() }
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Takes what has come.
    fn take(&mut self, batch: &mut Batch, pool: &mut Pool, into: &mut Vec<f64>) -> usize {
        self.from.receive(256, batch, pool).expect("frames are received");
        let now = self.now();
        let mut taken = 0;
        for packet in batch.iter() {
            let data = packet.data();
            if data.get(..6) != Some(&TO[..]) {
                continue;
            }
            if let Some(stamp) = data.get(STAMP..).and_then(|rest| rest.first_chunk()) {
                into.push(now.saturating_sub(u64::from_be_bytes(*stamp)) as f64 / 1e3);
                taken += 1;
            }
        }
        pool.recycle_all(batch);
        taken
    }

    /// Sends frames of this size at this rate for a while.
    fn measure(&mut self, size: usize, rate: u64, seconds: f64) -> Latencies {
        let (mut pool, mut batch, mut back) = (Pool::new(), Batch::new(), Batch::new());
        let mut frame = vec![0; size];
        frame[..6].copy_from_slice(&TO);
        frame[12..14].copy_from_slice(&TYPE);
        let mut latencies = Vec::new();
        // What an earlier measurement left.
        while self.take(&mut back, &mut pool, &mut latencies) > 0 {}
        latencies.clear();
        let count = (rate as f64 * seconds) as u64;
        let (start, mut sent) = (self.now() + 1_000_000, 0);
        while sent < count {
            let now = self.now();
            let due = (now.saturating_sub(start) as u128 * u128::from(rate) / 1_000_000_000) as u64;
            // One at a time while it is in time, several when it is late.
            while sent < due.min(count) && batch.len() < 32 {
                let stamp = start + (sent as u128 * 1_000_000_000 / u128::from(rate)) as u64;
                frame[STAMP..STAMP + 8].copy_from_slice(&stamp.to_be_bytes());
                batch.push(pool.packet(&frame));
                sent += 1;
            }
            if !batch.is_empty() {
                self.to.send(&mut batch, &mut pool).expect("frames are sent");
            }
            self.take(&mut back, &mut pool, &mut latencies);
        }
        let last = Instant::now();
        while (latencies.len() as u64) < count && last.elapsed() < Duration::from_millis(200) {
            self.take(&mut back, &mut pool, &mut latencies);
        }
        pool.recycle_all(&mut batch);
        let lost = 1.0 - latencies.len() as f64 / count as f64;
        latencies.sort_by(f64::total_cmp);
        Latencies { sorted: latencies, lost }
    }
}

pub(crate) fn run(arguments: &Arguments) {
    let testbed = Arc::new(Testbed::new());
    let mut ends = Ends::open(&testbed);
    println!(
        "{:>5} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
        "bytes", "kpps", "batch", "median", "p99", "jitter", "x batch 1", "lost %"
    );
    for size in SIZES {
        for rate in LOADS {
            if !arguments.wants(&format!("{size}B-{}k", rate / 1000)) {
                continue;
            }
            let mut all: Vec<(Option<usize>, Vec<Latencies>)> =
                BATCHES.into_iter().map(|batch| (batch, Vec::new())).collect();
            for _ in 0..arguments.rounds {
                for (batch, samples) in &mut all {
                    if arguments.interrupted() {
                        return;
                    }
                    let io = match batch {
                        Some(batch) => format!("af-packet-mmsg,batch={batch}"),
                        None => "af-packet-mmsg".to_string(),
                    };
                    let io =
                        ["--in", "in=eth0", "--out", "out=eth1", "--poll", "busy", "--io", &io];
                    let chain = testbed.catena(WIRE, &io);
                    ends.measure(size, rate, arguments.seconds / 10.0);
                    samples.push(ends.measure(size, rate, arguments.seconds));
                    drop(chain);
                }
            }
            let mut first = None;
            for (batch, samples) in &all {
                let middle = |of: &dyn Fn(&Latencies) -> f64| {
                    let mut values: Vec<f64> = samples.iter().map(of).collect();
                    values.sort_by(f64::total_cmp);
                    percentile(&values, 0.5)
                };
                let (median, p99) = (middle(&|l| l.at(0.5)), middle(&|l| l.at(0.99)));
                // As SCC has it: how far the 1st and the 99th percentile lie apart.
                let jitter = middle(&|l| l.at(0.99) - l.at(0.01));
                let first = *first.get_or_insert(median);
                let name = batch.map_or("adaptive".to_string(), |batch| batch.to_string());
                println!(
                    "{size:>5} {:>7} {name:>9} {median:>9.1} {p99:>9.1} {jitter:>9.1} {:>9.2} {:>7.2}",
                    rate / 1000,
                    median / first,
                    middle(&|l| l.lost) * 100.0
                );
            }
        }
    }
}
