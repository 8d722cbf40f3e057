//! Longest-prefix match in a full routing table and in a million made prefixes: nanoseconds per
//! lookup alone and in batches of 32, of addresses at random and as flows bring them; time to
//! build, bytes per prefix, and time to change a route.
//!
//! `cargo bench -p catena-classify --bench prefixes`
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "rule_sets/classbench.rs"]
mod classbench;

use std::hint::black_box;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::BitXor;
use std::time::Instant;

use catena_classify::lpm::{Address, PrefixMap};
use cpu_time::ThreadTime;
use fastrand::Rng;

const ADDRESSES: usize = 1 << 17;
const BATCH: usize = 32;
const ROUNDS: usize = 15;

type Prefixes<A> = Vec<((A, u8), u32)>;

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn measure<A: Address + BitXor<Output = A>>(
    name: &str,
    prefixes: &Prefixes<A>,
    random_address: fn(&mut Rng) -> A,
) {
    let start = Instant::now();
    let mut map: PrefixMap<A> = prefixes.iter().copied().collect();
    println!(
        "{name}: {} prefixes in {:.0} ms, {:.1} bytes each",
        map.len(),
        start.elapsed().as_secs_f64() * 1e3,
        map.memory() as f64 / map.len() as f64
    );
    let mut random = Rng::with_seed(1);
    // Below a random prefix.
    let mut address = || {
        let ((prefix, length), _) = prefixes[random.usize(..prefixes.len())];
        let below = random_address(&mut random);
        prefix.first(length) ^ below ^ below.first(length)
    };
    let uniform: Vec<A> = (0..ADDRESSES).map(|_| address()).collect();
    let mut random = Rng::with_seed(2);
    // One of sixteen is new, the others are of the last 256.
    let mut flows: Vec<A> = Vec::with_capacity(ADDRESSES);
    for &new in &uniform {
        let old = flows.len().checked_sub(1 + random.usize(..256));
        let again = old.filter(|_| random.u8(..16) > 0);
        flows.push(again.map_or(new, |i| flows[i]));
    }
    for (kind, addresses) in [("random", &uniform), ("flows", &flows)] {
        let mut found = [None; BATCH];
        let (mut alone, mut batched) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let start = ThreadTime::now();
            let sum: u32 = addresses
                .iter()
                .map(|&a| map.lookup(black_box(a)).unwrap_or(0))
                .fold(0, u32::wrapping_add);
            black_box(sum);
            let one = start.elapsed().as_nanos() as f64 / ADDRESSES as f64;
            let start = ThreadTime::now();
            for addresses in addresses.chunks(BATCH) {
                map.lookup_batch(black_box(addresses), &mut found);
                black_box(&found);
            }
            let many = start.elapsed().as_nanos() as f64 / ADDRESSES as f64;
            if round > 0 {
                alone.push(one);
                batched.push(many);
            }
        }
        for (how, samples) in [("alone", alone), ("batched", batched)] {
            let (median, low, high) = median(samples);
            println!("{name} {kind} {how}: {median:.1} ns ({low:.1}-{high:.1})");
        }
    }
    let (mut removes, mut inserts) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        let ((address, length), value) = prefixes[random.usize(..prefixes.len())];
        let start = Instant::now();
        black_box(map.remove(address, length));
        removes.push(start.elapsed().as_nanos() as f64);
        let start = Instant::now();
        black_box(map.insert(address, length, value));
        inserts.push(start.elapsed().as_nanos() as f64);
    }
    for (what, mut samples) in [("remove", removes), ("insert", inserts)] {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| samples[(samples.len() as f64 * part) as usize] / 1e3;
        println!(
            "{name} {what}: median {:.2} us, mean {:.2}, p99 {:.2}",
            at(0.5),
            mean / 1e3,
            at(0.99)
        );
    }
    println!("{name}: {:.1} bytes each after these", map.memory() as f64 / map.len() as f64);
}

/// The routing table's prefixes, numbered by origin.
fn table(text: &str) -> (Prefixes<u32>, Prefixes<u128>) {
    let (mut four, mut six) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let Some((prefix, origin)) = line.split_once('\t') else { continue };
        let Some((address, length)) = prefix.split_once('/') else { continue };
        let (Ok(length), origin) = (length.parse(), origin.parse::<u32>().unwrap_or(0)) else {
            continue;
        };
        let value = origin % 1024;
        if let Ok(address) = address.parse::<Ipv4Addr>() {
            four.push(((u32::from(address), length), value));
        } else if let Ok(address) = address.parse::<Ipv6Addr>() {
            six.push(((u128::from(address), length), value));
        }
    }
    (four, six)
}

fn main() {
    let four: fn(&mut Rng) -> u32 = |random| random.u32(..);
    let six: fn(&mut Rng) -> u128 = |random| random.u128(..);
    match classbench::shared() {
        Some(folder) => {
            let file = std::fs::File::open(folder.join("data/prefixes/rib-2015-11-01.tsv.gz"));
            let mut text = String::new();
            flate2::read::MultiGzDecoder::new(file.expect("the routing table"))
                .read_to_string(&mut text)
                .expect("text");
            let table = table(&text);
            measure("table, IPv4", &table.0, four);
            measure("table, IPv6", &table.1, six);
        }
        None => eprintln!("the routing table is not measured: no shared folder"),
    }
    // Lengths as in routing tables: mostly /24 and /48.
    let mut random = Rng::with_seed(4);
    let mut make = |lengths: &[u8], count: u32| -> Vec<(u128, u8, u32)> {
        let mut seen = std::collections::HashSet::new();
        while seen.len() < count as usize {
            let length = lengths[random.usize(..lengths.len())];
            let address = random.u128(..).first(length);
            // Unicast, of which a part is used.
            let used = address >> 3 | 1 << 125;
            seen.insert((used.first(length), length));
        }
        let mut all: Vec<_> = seen.into_iter().collect();
        all.sort_unstable();
        all.into_iter().map(|(a, l)| (a, l, random.u32(..1024))).collect()
    };
    let lengths = [24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 18, 16];
    let made: Prefixes<u32> =
        make(&lengths, 1_000_000).into_iter().map(|(a, l, v)| (((a >> 96) as u32, l), v)).collect();
    measure("made, IPv4", &made, four);
    let lengths = [48, 48, 48, 48, 48, 44, 40, 36, 32, 32, 32, 29, 64];
    let made: Prefixes<u128> =
        make(&lengths, 1_000_000).into_iter().map(|(a, l, v)| ((a, l), v)).collect();
    measure("made, IPv6", &made, six);
}
