//! Lookups per structure and size: 1,024 keys that match, in batches of 32. Figures are per key.

use catena_classify::lpm::PrefixMap;
use catena_classify::{BitVector, Classifier, Forest, Key, Linear, RuleSet, build};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

const KEYS: usize = 1024;

/// Rules as access lists have them: hosts and short networks of some sites, one of ten wild in
/// an address, services or ranges of ports.
fn access_list(count: u32) -> RuleSet {
    let mut random = fastrand::Rng::with_seed(u64::from(count));
    let mut rules = RuleSet::new(&[u32::MAX, u32::MAX, 65536, 65536, 256], count as usize);
    let sites: Vec<u32> = (0..64).map(|_| random.u32(..) & !0xffff).collect();
    for rule in 0..count {
        let mut cube = rules.everything(rule);
        for d in 0..2 {
            if random.u8(..10) > 0 {
                let free = (1u32 << [0, 0, 0, 1, 2, 4, 8, 10][random.usize(..8)]) - 1;
                let address = sites[random.usize(..64)] | random.u32(..0x10000);
                (cube.low[d], cube.high[d]) = (address & !free, address | free);
            }
        }
        (cube.low[3], cube.high[3]) = match random.u8(..4) {
            0 => (0, 65536),
            1 => (1024, 65535),
            _ => [(53, 53), (80, 80), (443, 443), (1521, 1521)][random.usize(..4)],
        };
        cube.low[4] = if random.bool() { 6 } else { 17 };
        cube.high[4] = cube.low[4];
        rules.push(cube).expect("room");
    }
    rules
}

fn keys(rules: &RuleSet) -> Vec<Key> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut key = || {
        let cube = &rules.cubes()[random.usize(..rules.cubes().len())];
        std::array::from_fn(|d| random.u32(cube.low[d]..=cube.high[d]))
    };
    (0..KEYS).map(|_| key()).collect()
}

fn measure(bencher: Bencher, classifier: &dyn Classifier, keys: &[Key]) {
    let mut found = [None; 32];
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        for keys in keys.chunks(32) {
            classifier.lookup_batch(black_box(keys), &mut found);
            black_box(&found);
        }
    });
}

#[divan::bench(args = [8, 250])]
fn linear(bencher: Bencher, count: u32) {
    let rules = access_list(count);
    measure(bencher, &Linear::new(&rules), &keys(&rules));
}

#[divan::bench(args = [8, 250, 8_500, 100_000])]
fn forest(bencher: Bencher, count: u32) {
    let rules = access_list(count);
    measure(bencher, &Forest::new(&rules), &keys(&rules));
}

#[divan::bench(args = [250, 8_500])]
fn bit_vector(bencher: Bencher, count: u32) {
    let rules = access_list(count);
    measure(bencher, &BitVector::new(&rules), &keys(&rules));
}

#[divan::bench(args = [250, 8_500, 100_000])]
fn building(bencher: Bencher, count: u32) {
    let rules = access_list(count);
    bencher.counter(ItemsCount::new(count)).bench_local(|| build(black_box(&rules)));
}

#[divan::bench(args = [10, 1_000, 100_000])]
fn longest_prefix(bencher: Bencher, count: u32) {
    let mut random = fastrand::Rng::with_seed(2);
    let prefixes: Vec<((u32, u8), u32)> =
        (0..count).map(|i| ((random.u32(..), random.u8(8..=24)), i)).collect();
    let map: PrefixMap<u32> = prefixes.iter().copied().collect();
    let addresses: Vec<u32> = (0..KEYS)
        .map(|_| prefixes[random.usize(..prefixes.len())].0.0 ^ random.u32(..256))
        .collect();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        addresses.iter().map(|&a| map.lookup(black_box(a)).unwrap_or(0)).fold(0, u32::wrapping_add)
    });
}

fn main() {
    divan::main();
}
