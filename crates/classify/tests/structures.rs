//! Every structure gives the answers of the definition: the least rule whose cube holds the key.

use catena_classify::{
    BitVector, Classifier, Cube, Forest, Key, Linear, MAX_DIMENSIONS, RuleSet, TooManyCubes,
    TupleSpace, build,
};
use proptest::prelude::*;

#[path = "../benches/rule_sets/classbench.rs"]
mod classbench;

fn defined(rules: &RuleSet, key: &Key) -> Option<u32> {
    rules.cubes().iter().find(|c| c.contains(key)).map(|c| c.rule)
}

/// Compares all structures with the definition.
fn check(rules: &RuleSet, keys: &[Key]) {
    let structures: [Box<dyn Classifier>; 5] = [
        Box::new(Linear::new(rules)),
        Box::new(Forest::new(rules)),
        Box::new(BitVector::new(rules)),
        Box::new(TupleSpace::new(rules)),
        build(rules),
    ];
    for structure in structures {
        let mut found = vec![Some(7); keys.len()];
        structure.lookup_batch(keys, &mut found);
        for (key, found) in keys.iter().zip(found) {
            let expected = defined(rules, key);
            assert_eq!(structure.lookup(key), expected, "{} at {key:?}", structure.describe());
            assert_eq!(found, expected, "{} in a batch at {key:?}", structure.describe());
        }
    }
}

/// Corners of cubes and their neighbours: where mistakes would be.
fn telling_keys(rules: &RuleSet, random: &mut fastrand::Rng, count: usize) -> Vec<Key> {
    let cubes = rules.cubes();
    let number = |random: &mut fastrand::Rng, d: usize| {
        let greatest = rules.greatest()[d];
        if cubes.is_empty() || random.u8(..8) == 0 {
            return random.u32(..=greatest);
        }
        let cube = &cubes[random.usize(..cubes.len())];
        let corner = if random.bool() { cube.low[d] } else { cube.high[d] };
        match random.u8(..4) {
            0 => corner.saturating_sub(1),
            1 => corner.saturating_add(1).min(greatest),
            _ => corner,
        }
    };
    let key = |random: &mut fastrand::Rng| {
        let mut key = [0; MAX_DIMENSIONS];
        let base =
            (!cubes.is_empty() && random.bool()).then(|| cubes[random.usize(..cubes.len())].low);
        for (d, k) in key.iter_mut().enumerate() {
            *k = match base {
                Some(base) if random.u8(..4) > 0 => base[d],
                _ => number(random, d),
            };
        }
        key
    };
    (0..count).map(|_| key(random)).collect()
}

const FIVE: [u32; 5] = [u32::MAX, u32::MAX, 65536, 65536, 256];

/// `count` rules, each range made by `range`.
fn rules_of(
    count: u32,
    random: &mut fastrand::Rng,
    range: impl Fn(&mut fastrand::Rng, u32) -> (u32, u32),
) -> RuleSet {
    let mut rules = RuleSet::new(&FIVE, count as usize);
    for rule in 0..count {
        let mut cube = rules.everything(rule);
        for (d, &greatest) in FIVE.iter().enumerate() {
            (cube.low[d], cube.high[d]) = range(random, greatest);
        }
        rules.push(cube).expect("room");
    }
    rules
}

fn any_range(random: &mut fastrand::Rng, greatest: u32) -> (u32, u32) {
    let (a, b) = (random.u32(..=greatest), random.u32(..=greatest));
    (a.min(b), a.max(b))
}

fn nested_range(random: &mut fastrand::Rng, greatest: u32) -> (u32, u32) {
    let free = greatest.checked_shr(random.u32(..34)).unwrap_or(0);
    let low = random.u32(..=greatest) & !free;
    (low, (low | free).min(greatest))
}

/// Small spaces, in which everything overlaps.
fn small_set() -> impl Strategy<Value = (RuleSet, Vec<Key>)> {
    let dimensions = prop::collection::vec(0u32..40, 1..=MAX_DIMENSIONS);
    (dimensions, any::<u64>(), 0u32..120).prop_map(|(greatest, seed, count)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut rules = RuleSet::new(&greatest, 1000);
        for i in 0..count {
            let mut cube = rules.everything(i / 3);
            for (d, &greatest) in greatest.iter().enumerate() {
                if random.u8(..3) > 0 {
                    (cube.low[d], cube.high[d]) = any_range(&mut random, greatest);
                }
            }
            rules.push(cube).expect("room");
        }
        let keys = telling_keys(&rules, &mut random, 200);
        (rules, keys)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn small_sets_agree((rules, keys) in small_set()) {
        check(&rules, &keys);
    }

    #[test]
    fn wide_sets_agree(seed in any::<u64>(), count in 0u32..400, nested in any::<bool>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let range = if nested { nested_range } else { any_range };
        let rules = rules_of(count, &mut random, range);
        let keys = telling_keys(&rules, &mut random, 200);
        check(&rules, &keys);
    }
}

/// Sets made to hurt keep their answers and their memory.
#[test]
fn hostile_sets_stay_small() {
    for kind in classbench::HOSTILE {
        let mut random = fastrand::Rng::with_seed(7);
        let rules = classbench::hostile(kind, 3000, 7);
        let keys = telling_keys(&rules, &mut random, 300);
        check(&rules, &keys);
        let memory = build(&rules).memory();
        assert!(memory < 20 << 20, "{kind}: {memory} bytes");
    }
}

/// Bit vectors of so many segments that several share a row.
#[test]
fn segments_that_share_rows_agree() {
    let mut random = fastrand::Rng::with_seed(9);
    let rules = rules_of(6000, &mut random, any_range);
    let vectors = BitVector::new(&rules);
    assert!(vectors.memory() < 20 << 20, "{} bytes", vectors.memory());
    for key in telling_keys(&rules, &mut random, 1000) {
        assert_eq!(vectors.lookup(&key), defined(&rules, &key), "{key:?}");
    }
}

/// However rules overlap, a forest's memory grows no faster than their number.
#[test]
fn forests_grow_with_their_rules() {
    for kind in classbench::HOSTILE {
        for count in [500, 4000] {
            let bytes = Forest::new(&classbench::hostile(kind, count, 3)).memory() / count;
            assert!(bytes < 2500, "{kind}: {bytes} bytes for each of {count} rules");
        }
    }
}

#[test]
fn a_rule_with_sets_of_intervals_becomes_cubes() {
    let mut rules = RuleSet::new(&[100, 100], 10);
    rules.push_rule(0, &[(0, &[(1, 2), (5, 5)]), (1, &[(0, 3), (90, 100)])]).unwrap();
    assert_eq!(rules.cubes().len(), 4);
    let cube: &Cube = &rules.cubes()[3];
    assert_eq!((cube.low[0], cube.high[1]), (5, 100));
    rules.push_rule(1, &[(0, &[])]).unwrap();
    assert_eq!(rules.cubes().len(), 4, "a rule that nothing matches");
    let many: Vec<(u32, u32)> = (0..7).map(|i| (2 * i, 2 * i)).collect();
    assert_eq!(rules.push_rule(2, &[(0, &many)]), Err(TooManyCubes));
    check(&rules, &telling_keys(&rules, &mut fastrand::Rng::with_seed(1), 50));
}

#[test]
fn few_rules_are_a_list_and_many_a_forest() {
    let mut random = fastrand::Rng::with_seed(3);
    let host = |random: &mut fastrand::Rng, greatest| {
        let host = random.u32(..=greatest);
        (host, host)
    };
    assert!(build(&rules_of(4, &mut random, host)).describe().contains("list"));
    assert!(build(&rules_of(3000, &mut random, host)).describe().contains("trees"));
    let hostile = rules_of(10_000, &mut random, |random, greatest| {
        let half = random.u32(..=greatest / 2);
        (half, greatest - half)
    });
    assert!(build(&hostile).describe().contains("bit vectors"));
}

#[test]
fn no_rules_match_nothing() {
    check(&RuleSet::new(&FIVE, 0), &[[0; MAX_DIMENSIONS], [1, 2, 3, 4, 5, 0, 0, 0]]);
    check(&RuleSet::new(&[], 0), &[[0; MAX_DIMENSIONS]]);
}

/// Sets like those that devices have.
#[test]
fn made_rule_sets_agree() {
    for flavour in classbench::FLAVOURS {
        for count in [100, 2000] {
            let rules = flavour.rules(count, 3);
            let mut keys = telling_keys(&rules, &mut fastrand::Rng::with_seed(4), 200);
            keys.extend(classbench::trace(&rules, 200, 1, 5));
            check(&rules, &keys);
        }
    }
}
