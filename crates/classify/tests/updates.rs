//! Rules that change give the answers of a plain map of rules, whatever came before.

use std::collections::BTreeMap;

use catena_classify::{Cube, Key, RuleSet, Updatable};
use fastrand::Rng;
use proptest::prelude::*;

#[path = "../benches/rule_sets/classbench.rs"]
mod classbench;

/// The definition.
#[derive(Clone, Default)]
struct Rules(BTreeMap<u64, Vec<Cube>>);

impl Rules {
    fn lookup(&self, key: &Key) -> Option<u64> {
        let holds = |(_, cubes): &(&u64, &Vec<Cube>)| cubes.iter().any(|c| c.contains(key));
        self.0.iter().find(holds).map(|(&priority, _)| priority)
    }
}

/// A cube of small spaces, where much overlaps, or of large ones.
fn cube(greatest: &[u32], random: &mut Rng) -> Cube {
    let mut cube = RuleSet::new(greatest, 0).everything(0);
    for (d, &greatest) in greatest.iter().enumerate() {
        let at = random.u32(..=greatest);
        (cube.low[d], cube.high[d]) = match random.u8(..4) {
            0 => (0, greatest),
            1 => (at, at),
            2 => (at, at.saturating_add(random.u32(..=greatest / 4)).min(greatest)),
            _ => {
                let free = greatest >> random.u32(..16);
                (at & !free, (at | free).min(greatest))
            }
        };
    }
    cube
}

fn check(updatable: &Updatable, rules: &Rules, greatest: &[u32], random: &mut Rng) {
    assert_eq!(updatable.len(), rules.0.len());
    let corner = |random: &mut Rng| -> Key {
        let some: Vec<&Cube> = rules.0.values().flatten().collect();
        std::array::from_fn(|d| match greatest.get(d) {
            None => 0,
            Some(_) if !some.is_empty() && random.u8(..4) > 0 => {
                let cube = some[random.usize(..some.len())];
                if random.bool() { cube.low[d] } else { cube.high[d] }
            }
            Some(&greatest) => random.u32(..=greatest),
        })
    };
    let keys: Vec<Key> = (0..70).map(|_| corner(random)).collect();
    let mut found = vec![Some(7); keys.len()];
    updatable.lookup_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found, rules.lookup(key), "{key:?}");
        assert_eq!(updatable.lookup(key), found, "{key:?} alone");
    }
}

fn replay(greatest: &[u32], seed: u64, steps: usize) {
    let mut random = Rng::with_seed(seed);
    let (mut set, mut rules) = (RuleSet::new(greatest, 1000), Rules::default());
    for priority in 0..random.u32(..60) {
        let cube = Cube { rule: 3 * priority, ..cube(greatest, &mut random) };
        set.push(cube).unwrap();
        rules.0.entry(cube.rule.into()).or_default().push(cube);
    }
    let mut updatable = Updatable::new(&set);
    let (mut building, mut stale) = (None, None);
    for _ in 0..steps {
        let priority = random.u64(..200);
        match random.u8(..20) {
            0..8 => {
                let count = random.usize(..3);
                let cubes: Vec<Cube> = (0..count).map(|_| cube(greatest, &mut random)).collect();
                updatable.insert(priority, &cubes);
                rules.0.insert(priority, cubes);
            }
            8..16 => {
                assert_eq!(updatable.remove(priority), rules.0.remove(&priority).is_some());
            }
            16 => {
                if let Some(rebuild) = building.replace(updatable.rebuild()) {
                    stale = Some(rebuild);
                }
            }
            17 => {
                if let Some(rebuild) = stale.take() {
                    updatable.adopt(rebuild.build());
                }
            }
            18 => {
                if let Some(rebuild) = building.take() {
                    updatable.adopt(rebuild.build());
                }
            }
            _ => check(&updatable, &rules, greatest, &mut random),
        }
    }
    check(&updatable, &rules, greatest, &mut random);
    let rebuild = updatable.rebuild();
    updatable.adopt(rebuild.build());
    assert_eq!(updatable.changes(), 0);
    check(&updatable, &rules, greatest, &mut random);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn small_spaces_agree(
        greatest in prop::collection::vec(0u32..40, 1..=8),
        seed in any::<u64>(),
    ) {
        replay(&greatest, seed, 200);
    }

    #[test]
    fn wide_spaces_agree(seed in any::<u64>()) {
        replay(&classbench::FIVE, seed, 300);
    }
}

/// A structure is built in another thread while rules change and keys are looked up here.
#[test]
fn rebuilding_goes_on_meanwhile() {
    let set = classbench::ACL.rules(3000, 5);
    let more = classbench::ACL.rules(1200, 6);
    let mut random = Rng::with_seed(3);
    let mut updatable = Updatable::new(&set);
    let mut rules = Rules::default();
    for cube in set.cubes() {
        rules.0.insert(cube.rule.into(), vec![*cube]);
    }
    for (i, cube) in more.cubes().iter().enumerate() {
        if i % 400 == 399 {
            let rebuild = updatable.rebuild();
            let building = std::thread::spawn(move || rebuild.build());
            for priority in (0..3000).step_by(7 + i / 400) {
                assert_eq!(updatable.remove(priority), rules.0.remove(&priority).is_some());
            }
            check(&updatable, &rules, &classbench::FIVE, &mut random);
            updatable.adopt(building.join().unwrap());
            check(&updatable, &rules, &classbench::FIVE, &mut random);
        }
        let priority = random.u64(..3000);
        updatable.insert(priority, &[*cube]);
        rules.0.insert(priority, vec![*cube]);
    }
    check(&updatable, &rules, &classbench::FIVE, &mut random);
}

/// Rules made to fill one bucket, or a table each, change no answer.
#[test]
fn hostile_rules_agree() {
    let mut random = Rng::with_seed(9);
    let everything = RuleSet::new(&classbench::FIVE, 0).everything(0);
    let mut rules = Rules::default();
    let mut updatable = Updatable::new(&RuleSet::new(&classbench::FIVE, 0));
    for priority in 0..3000u64 {
        let mut cube = everything;
        let nested = priority as u32 / 2;
        if priority % 2 == 0 {
            (cube.low[2], cube.high[2]) = (nested, 65536 - nested);
        } else {
            for (d, shift) in [(0, nested % 33), (1, nested / 33 % 33)] {
                let free = u32::MAX.checked_shr(shift).unwrap_or(0);
                let at = random.u32(..);
                (cube.low[d], cube.high[d]) = (at & !free, at | free);
            }
        }
        updatable.insert(5000 - priority, &[cube]);
        rules.0.insert(5000 - priority, vec![cube]);
    }
    check(&updatable, &rules, &classbench::FIVE, &mut random);
    for priority in (2001..=5000).step_by(3) {
        assert!(updatable.remove(priority));
        rules.0.remove(&priority);
    }
    check(&updatable, &rules, &classbench::FIVE, &mut random);
}
