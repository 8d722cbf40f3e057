//! The longest prefix is found, whatever was inserted and removed before.

use std::collections::BTreeMap;

use catena_classify::lpm::{Address, PrefixMap};
use proptest::prelude::*;

/// The definition.
fn longest<A: Address>(prefixes: &BTreeMap<(A, u8), u32>, address: A) -> Option<u32> {
    let holds = |&(&(prefix, length), _): &(&(A, u8), &u32)| address.first(length) == prefix;
    prefixes.iter().filter(holds).max_by_key(|((_, length), _)| *length).map(|(_, &v)| v)
}

fn check<A: Address>(map: &PrefixMap<A>, prefixes: &BTreeMap<(A, u8), u32>) {
    assert!(map.iter().eq(prefixes.iter().map(|(&p, &v)| (p, v))));
    let ends = prefixes.keys().flat_map(|&(a, l)| [Some(a), Some(a.last(l)), a.last(l).next()]);
    let addresses: Vec<A> = ends.flatten().chain([A::ZERO, A::ZERO.last(0)]).collect();
    let mut found = vec![Some(7); addresses.len()];
    map.lookup_batch(&addresses, &mut found);
    for (&address, found) in addresses.iter().zip(found) {
        assert_eq!(map.lookup(address), longest(prefixes, address), "{address:?}");
        assert_eq!(map.lookup(address), found, "{address:?} in a batch");
    }
}

/// Inserts and removes prefixes one by one, and compares with a map made at once.
fn replay<A: Address>(steps: Vec<(A, u8, Option<u32>)>) {
    let mut map = PrefixMap::default();
    let mut prefixes = BTreeMap::new();
    for (i, (address, length, value)) in steps.iter().copied().enumerate() {
        let key = (address.first(length), length);
        match value {
            Some(value) => {
                assert_eq!(map.insert(address, length, value), prefixes.insert(key, value))
            }
            None => assert_eq!(map.remove(address, length), prefixes.remove(&key)),
        }
        if i % 16 == 0 {
            check(&map, &prefixes);
        }
    }
    check(&map, &prefixes);
    check(&prefixes.iter().map(|(&p, &v)| (p, v)).collect(), &prefixes);
}

/// Addresses that share long prefixes with others.
fn step4() -> impl Strategy<Value = (u32, u8, Option<u32>)> {
    let address = prop_oneof![
        any::<u32>(),
        (0u32..4, 0u32..256).prop_map(|(a, b)| 0x0a01_0000 | a << 8 | b),
        (0u32..8).prop_map(|a| a << 28),
    ];
    (address, 0u8..=32, prop::option::weighted(0.8, 0u32..50))
}

fn step6() -> impl Strategy<Value = (u128, u8, Option<u32>)> {
    let site = 0x2001_0db8u128 << 96;
    let address = prop_oneof![
        any::<u128>(),
        (0u128..16).prop_map(move |a| site | a << 76),
        (0u128..300).prop_map(move |a| site | a),
    ];
    (address, 0u8..=128, prop::option::weighted(0.8, 0u32..50))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn ipv4_agrees(steps in prop::collection::vec(step4(), 0..160)) {
        replay(steps);
    }

    #[test]
    fn ipv6_agrees(steps in prop::collection::vec(step6(), 0..160)) {
        replay(steps);
    }
}

#[test]
fn a_default_route_comes_and_goes_under_many() {
    let mut map: PrefixMap<u32> = (0..2000u32).map(|i| ((i << 12, 24), i)).collect();
    assert_eq!(map.lookup(u32::MAX), None);
    map.insert(0, 0, 7);
    assert_eq!((map.lookup(u32::MAX), map.lookup(5 << 12)), (Some(7), Some(5)));
    assert_eq!(map.lookup(5 << 12 | 0x800), Some(7));
    assert_eq!(map.remove(0, 0), Some(7));
    assert_eq!((map.lookup(u32::MAX), map.lookup(5 << 12)), (None, Some(5)));
}

/// One inside the other at every length, from the outermost to the innermost and back, and from both ends at once.
#[test]
fn nested_prefixes_come_and_go() {
    let outward = |i: u8| if i.is_multiple_of(2) { i / 2 } else { 128 - i / 2 };
    let orders: [Box<dyn Fn(u8) -> u8>; 3] =
        [Box::new(|i| i), Box::new(|i| 128 - i), Box::new(outward)];
    for order in &orders {
        let inserted = (0..=128).map(|i| (u128::MAX / 3, order(i), Some(u32::from(order(i)))));
        let removed = (0..=128).map(|i| (u128::MAX / 3, outward(i), None));
        replay(inserted.chain(removed).collect());
    }
}

#[test]
fn changes_do_not_leak_memory() {
    let mut map: PrefixMap<u32> = (0..100u32).map(|i| ((i << 8, 24), i)).collect();
    let before = map.memory();
    for i in 0..20_000 {
        map.insert((i % 100) << 8, 24, i);
    }
    assert!(map.memory() < before + (1 << 20));
}

#[test]
fn few_prefixes_take_little_memory() {
    let map: PrefixMap<u32> = (0..10u32).map(|i| ((20 << 24 | i << 16, 16), i)).collect();
    assert!(map.memory() < 512);
    assert_eq!(map.lookup(20 << 24 | 3 << 16 | 9), Some(3));
    assert_eq!(map.lookup(21 << 24), None);
}

/// So many prefixes that the trie's table is of the larger kind.
#[test]
fn a_large_table_agrees() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut prefixes = BTreeMap::new();
    while prefixes.len() < 70_000 {
        let length = random.u8(14..=30);
        prefixes.insert((random.u32(..0x2000_0000).first(length), length), random.u32(..1000));
    }
    let defined = |prefixes: &BTreeMap<(u32, u8), u32>, address: u32| {
        (0..=32).rev().find_map(|l| prefixes.get(&(address.first(l), l)).copied())
    };
    let mut map: PrefixMap<u32> = prefixes.iter().map(|(&p, &v)| (p, v)).collect();
    for round in 0..2 {
        let addresses: Vec<u32> = (0..4_000).map(|_| random.u32(..0x2100_0000)).collect();
        let mut found = vec![None; addresses.len()];
        map.lookup_batch(&addresses, &mut found);
        for (&address, found) in addresses.iter().zip(found) {
            assert_eq!(found, defined(&prefixes, address), "{address:#x}");
        }
        for _ in 0..2_000 {
            let (&(address, length), _) = prefixes
                .range((random.u32(..0x1fff_ffff), 0)..)
                .next()
                .unwrap_or_else(|| prefixes.iter().next().unwrap());
            if random.bool() {
                assert_eq!(map.remove(address, length), prefixes.remove(&(address, length)));
            } else {
                let length = random.u8(18..=32);
                let old = map.insert(address, length, round);
                assert_eq!(old, prefixes.insert((address.first(length), length), round));
            }
        }
        assert_eq!(map.len(), prefixes.len());
    }
}
