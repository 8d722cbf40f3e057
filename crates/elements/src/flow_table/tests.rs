use ir::state::{Flow as DeclaredFlow, Flows};
use proptest::prelude::*;

use super::expiry::REMOVED_AT_ONCE;
use super::*;

const SECOND: u64 = 1_000_000_000;
/// Of tables with timeouts of a few seconds.
const TICK: u64 = SHORTEST_TICK;
/// Timeout and guarantee.
const CLASSES: [(u64, u64); 4] =
    [(3 * SECOND, SECOND), (2 * SECOND, 0), (5 * SECOND, SECOND), (SECOND, 2 * SECOND)];

fn table(capacity: u64) -> FlowTable {
    let mut table = FlowTable::with_seed(capacity, 1, Sizes::SMALL);
    for (timeout, guarantee) in CLASSES {
        table.class(timeout, guarantee);
    }
    table
}

fn declared(flow: &Flow, class: usize, now: u64) -> DeclaredFlow {
    let (timeout, guarantee) = CLASSES[class];
    let value = |side: usize| {
        let [_, value @ ..] = flow.rewritten(side).numbers();
        [&value[..], &[flow.output(side).into(), side as u128][..]].concat()
    };
    DeclaredFlow {
        keys: [flow.key(0).numbers().to_vec(), flow.key(1).numbers().to_vec()],
        values: [value(0), value(1)],
        common: vec![flow.state.into(), 0, 0, 0],
        expiry: (now | TICK) + timeout.max(guarantee),
        guarantee: if guarantee == 0 { 0 } else { (now | TICK) + guarantee },
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert { from: u32, to: u32, class: usize },
    Touch { key: u32, class: usize, state: u8 },
    Pass { nanoseconds: u64 },
    Expire { most: usize },
    Allocate { from: u32, start: u32, class: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = 0..CLASSES.len();
    let step = prop_oneof![
        6 => (0u32..60, 0u32..60, class.clone())
            .prop_map(|(from, to, class)| Step::Insert { from, to, class }),
        4 => (0u32..60, class.clone(), any::<u8>())
            .prop_map(|(key, class, state)| Step::Touch { key, class, state }),
        2 => prop_oneof![0..SECOND / 4, 0..3 * SECOND]
            .prop_map(|nanoseconds| Step::Pass { nanoseconds }),
        1 => (0usize..3).prop_map(|most| Step::Expire { most }),
        6 => (0u32..60, 0u32..60, class)
            .prop_map(|(from, start, class)| Step::Allocate { from, start, class }),
    ];
    proptest::collection::vec(step, 0..250)
}

/// What [`FlowTable::allocate`] gives, but for the key.
fn free_number(
    table: &mut FlowTable,
    range: (u32, u32),
    start: u32,
    pool: Option<Pool>,
    key_of: impl Fn(u32) -> Key,
    now: u64,
) -> Option<u32> {
    let (number, key) = table.allocate(range, start, pool, &key_of, now)?;
    assert_eq!((key.key, key.hash), (key_of(number), table.hashed(key_of(number)).hash));
    Some(number)
}

/// A key that is sometimes the forward one of a flow, sometimes the reverse one.
fn key(n: u32) -> Key {
    Key::new(17, 1, 53, 9, 1000 + n as u16)
}

fn forward(n: u32) -> Key {
    match n % 3 {
        0 => key(n),
        _ => Key::new(17, n, 1, 2, 3),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn does_what_is_declared(capacity in prop_oneof![0u64..6, Just(40), Just(1000)], steps in steps()) {
        let mut native = table(capacity);
        let mut model = Flows::new(capacity);
        let pool = Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1000, 1049) };
        native.watch(pool);
        let mut now = 1_700_000_000 * SECOND;
        for step in steps {
            match step {
                Step::Insert { from, to, class } => {
                    let flow = Flow::new(forward(from), key(to));
                    let expected = model.insert(declared(&flow, class, now), now);
                    let inserted = native.insert(flow, class as u16, now);
                    prop_assert_eq!(inserted.is_some(), expected);
                }
                Step::Touch { key: n, class, state } => {
                    let key = if n % 2 == 0 { key(n) } else { forward(n) };
                    let found = native.lookup(&key, now);
                    let expected = model.find(&key.numbers(), now);
                    prop_assert_eq!(found.map(|f| f.1), expected.map(|e| e.1));
                    let (Some((number, side)), Some((flow, _))) = (found, expected) else { continue };
                    let (expected_values, common) = (flow.values[side].clone(), flow.common.clone());
                    let [_, value @ ..] = native.flow(number).rewritten(side).numbers();
                    prop_assert_eq!(&expected_values[..4], &value[..]);
                    prop_assert_eq!(common[0], u128::from(native.flow(number).state));
                    let mut batch = [(native.hashed(key).hash, None)];
                    native.guess(&mut batch, |(hash, guess)| (*hash, guess));
                    let guessed = batch[0].1.and_then(|guess| native.is(guess, &native.hashed(key)));
                    prop_assert!(guessed.is_none_or(|guessed| guessed == (number, side)));
                    native.touch(number, class as u16, now);
                    native.set_state(number, state);
                    let flow = declared(native.flow(number), class, now);
                    model.update(&key.numbers(), flow.common, flow.expiry, flow.guarantee, now);
                }
                Step::Pass { nanoseconds } => {
                    now += nanoseconds;
                    native.remove_expired(now, 0);
                }
                Step::Expire { most } => {
                    native.remove_expired(now, most);
                    model.expire(now);
                }
                Step::Allocate { from, start, class } => {
                    let (low, high) = (1000, 1049);
                    let at = 1000 + start.min(49);
                    let expected = (at..=high).chain(low..at)
                        .find(|&n| model.find(&key(n - 1000).numbers(), now).is_none());
                    let found = free_number(&mut native, (low, high), at, Some(pool), |n| key(n - 1000), now);
                    prop_assert_eq!(found, expected);
                    let Some(found) = found else { continue };
                    let flow = Flow::new(Key::new(17, 77, from as u16, 2, 3), key(found - 1000));
                    let expected = model.insert(declared(&flow, class, now), now);
                    prop_assert_eq!(native.insert(flow, class as u16, now).is_some(), expected);
                }
            }
            prop_assert_eq!(&native.export(None), &model);
        }
        let mut copy = table(1);
        copy.watch(pool);
        let class_of = |flow: &Flow| {
            let (number, _) = native.lookup(&flow.key(1), now)?;
            Some(native.flow(number).class)
        };
        copy.import(&native.export(None), class_of, |_| [0, 0]);
        native.remove_expired(now, usize::MAX);
        prop_assert_eq!(copy.export(None), native.export(None));
    }
}

/// A flow of a flood: no two have a key in common.
fn flood(n: u32) -> Flow {
    let from = Key::new(17, n, n as u16, 5, 53);
    let to = Key::new(17, 100, (n >> 16) as u16, n, 53);
    Flow::new(from, to.reverse())
}

#[test]
fn a_flood_of_new_flows_stays_within_the_capacity() {
    let mut table = table(5000);
    let now = SECOND;
    for n in 0..50_000 {
        assert!(table.insert(flood(n), 1, now + u64::from(n)).is_some());
    }
    assert_eq!(table.flows.len(), 5000);
    assert!(table.flows.room() <= 5000 + 1024);
    let newest = table.lookup(&flood(49_999).key(0), now);
    let oldest = table.lookup(&flood(0).key(0), now);
    assert!(newest.is_some() && oldest.is_none());
}

#[test]
fn guaranteed_flows_outlast_a_flood() {
    let mut table = table(1000);
    for n in 0..1000 {
        assert!(table.insert(flood(n), 0, 0).is_some());
    }
    for n in 1000..10_000 {
        assert!(table.insert(flood(n), 0, 0).is_none());
    }
    assert!((0..1000).all(|n| table.lookup(&flood(n).key(1), 0).is_some()));
}

#[test]
fn an_exhausted_pool_costs_no_search_through_it() {
    let mut table = table(1 << 20);
    let range = (1024, 65535);
    let pool = Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1024, 65535) };
    table.watch(pool);
    let tried = std::cell::Cell::new(0);
    let reply = |port: u32| {
        tried.set(tried.get() + 1);
        Key::new(17, 1, 53, 9, port as u16)
    };
    let from = |n: u32| Key::new(17, n, 1, 1, 53);
    for n in 0..=range.1 - range.0 {
        let port = free_number(&mut table, range, range.0 + n, Some(pool), reply, 0);
        assert_eq!(port, Some(range.0 + n));
        let to = reply(range.0 + n).reverse();
        assert!(table.insert(Flow::new(from(n), to.reverse()), 0, 0).is_some());
    }
    tried.set(0);
    for n in 0..1000 {
        assert_eq!(free_number(&mut table, range, range.0 + n * 60, Some(pool), reply, 0), None);
    }
    // Once more for each that came before there was a tree.
    assert!(tried.get() <= 1000 * (TRIES + 3) + 100, "{} candidates", tried.get());
    let (number, _) = table.lookup(&from(5000), 0).unwrap();
    table.remove(number);
    assert_eq!(free_number(&mut table, range, 40_000, Some(pool), reply, 0), Some(1024 + 5000));
}

#[test]
fn a_guess_is_not_of_a_flow_that_was_removed() {
    let mut table = table(100);
    let flows = [0, 1].map(|n| table.insert(flood(n), 0, 0).expect("there is room"));
    let key = table.hashed(flood(1).key(0));
    let mut batch = [(key.hash, None)];
    table.guess(&mut batch, |(hash, guess)| (*hash, guess));
    let guess = batch[0].1.expect("one flow has the hash");
    assert_eq!(table.is(guess, &key), Some((flows[1], 0)));
    // The flow goes, and comes again in another's place.
    flows.iter().for_each(|&flow| table.remove(flow));
    assert!(table.insert(flood(1), 0, 0).is_some());
    assert_eq!(table.is(guess, &key), None);
    assert_eq!(table.holder(&key), Some((flows[0], 0)));
}

#[test]
fn removal_of_many_expired_flows_is_spread() {
    let mut table = table(100_000);
    for n in 0..10_000 {
        assert!(table.insert(flood(n), 0, 0).is_some());
    }
    table.expire(0);
    let later = table.tick_end(0) + CLASSES[0].0;
    assert!(table.lookup(&flood(1).key(0), later).is_none());
    // As many as came since the batch before, an eighth more, and one.
    for n in 0..100 {
        (0..8).for_each(|more| {
            assert!(table.insert(flood(10_000 + 8 * n + more), 0, later).is_some())
        });
        table.expire(later);
        assert_eq!(table.flows.len(), 10_000 - 2 * (n as usize + 1));
    }
    // They have been waiting for a tick.
    let late = later + table.tick() + 2;
    table.expire(late);
    assert_eq!(table.flows.len(), 9800 - REMOVED_AT_ONCE);
    table.remove_expired(late, usize::MAX);
    assert_eq!(table.flows.len(), 800);
}

#[test]
fn no_packet_waits_until_all_expired_flows_are_removed() {
    let mut table = table(100_000);
    let range = (1024, 65535);
    let pool = Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1024, 65535) };
    table.watch(pool);
    let reply = |port: u32| Key::new(17, 1, 53, 9, port as u16);
    let take = |table: &mut FlowTable, port: u32, now| {
        let flow = Flow::new(Key::new(17, port, 1, 1, 53), reply(port));
        assert!(table.insert(flow, 0, now).is_some());
    };
    for n in 0..20_000 {
        assert!(table.insert(flood(n), 0, 0).is_some());
    }
    // The last of those that expire first.
    take(&mut table, 1524, 0);
    (1024..2024).filter(|&port| port != 1524).for_each(|port| take(&mut table, port, 2 * SECOND));
    let later = 4 * SECOND;
    for (start, free) in [(1024, 1524), (1525, 2024), (1024, 1524)] {
        let before = table.len();
        assert_eq!(free_number(&mut table, range, start, Some(pool), reply, later), Some(free));
        let (removed, most) = (before - table.len(), Sizes::SMALL.removed);
        assert!((most..=500 + most).contains(&(removed as u32)), "{removed}");
    }
}

#[test]
fn lowering_the_capacity_keeps_guaranteed_flows_longest() {
    let mut table = table(10);
    for n in 0..10 {
        assert!(table.insert(flood(n), u16::from(n % 2 == 0), 0).is_some());
    }
    table.set_capacity(5, 0);
    assert_eq!((table.capacity(), table.flows.len()), (5, 5));
    assert!((0..10).all(|n| table.lookup(&flood(n).key(0), 0).is_some() == (n % 2 == 1)));
    table.clear();
    assert_eq!(table.flows.len(), 0);
    assert!(table.lookup(&flood(1).key(0), 0).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// As they are and as declared: what another table takes over is the same.
    #[test]
    fn what_is_handed_over_is_what_is_declared(
        flows in proptest::collection::vec((0u32..60, 0u32..60, 0..CLASSES.len(), 0..SECOND), 0..80),
        room in prop_oneof![Just(1000u64), 0u64..40],
        other in any::<bool>(),
    ) {
        let all = |table: &mut FlowTable| {
            let mut now = 1_700_000_000 * SECOND;
            for &(from, to, class, pause) in &flows {
                now += pause;
                table.insert(Flow::new(forward(from), key(to)), class as u16, now);
            }
            now
        };
        let pool = Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1000, 1049) };
        let mut old = table(1000);
        if other {
            old.watch(Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1000, 1020) });
        }
        let now = all(&mut old);
        let mut declared = old.export(None);
        declared.resize(room);
        let mut new = table(room);
        new.watch(pool);
        new.take_over(old.hand_over());
        for (timeout, guarantee) in CLASSES {
            new.class(timeout, guarantee);
        }
        prop_assert_eq!(old.len(), 0);
        // Those that there is no room for go a few at a time.
        while new.len() as u64 > room {
            let before = new.len();
            new.remove_expired(now, 2);
            prop_assert!((1..=2 + 2 * CLASSES.len()).contains(&(before - new.len())));
        }
        prop_assert_eq!(&new.export(None), &declared);
        // Both go on as they would have, and find the same numbers free.
        let mut other = table(room);
        other.watch(pool);
        other.import(&declared, |flow| new.holder(&new.hashed(flow.key(1))).map(|(n, _)| new.flow(n).class), |flow| flow.deltas);
        let free = |table: &mut FlowTable| {
            free_number(table, (1000, 1049), 1000, Some(pool), |n| key(n - 1000), now)
        };
        prop_assert_eq!(free(&mut new), free(&mut other));
        new.remove_expired(now + 10 * SECOND, usize::MAX);
        prop_assert_eq!(new.len(), 0);
    }
}

/// Another pool is counted bit by bit, while flows come and go; as long as that takes, and then,
/// the numbers are free that no flow has.
#[test]
fn a_pool_that_changes_is_counted_bit_by_bit() {
    let range = (1000, 3999);
    let pool =
        |high| Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1000, high) };
    let reply = |port: u32| Key::new(17, 1, 53, 9, port as u16);
    let flow = |port: u32| Flow::new(Key::new(17, port, 1, 1, 53), reply(port));
    let mut rng = fastrand::Rng::with_seed(1);
    for crowded in [false, true] {
        let mut old = table(10_000);
        old.watch(pool(2000));
        let mut has: std::collections::BTreeSet<u32> =
            (1000..4000).filter(|port| crowded || port % 3 == 0).collect();
        for &port in &has {
            old.insert(flow(port), 2, 0).unwrap();
        }
        let mut new = table(10_000);
        new.watch(pool(3999));
        new.take_over(old.hand_over());
        assert_eq!(new.counted, 0);
        while new.counted < ALL {
            new.remove_expired(0, 0);
            let port = rng.u32(1000..4000);
            match new.lookup(&reply(port), 0) {
                Some((number, _)) => {
                    new.remove(number);
                    has.remove(&port);
                }
                None => {
                    new.insert(flow(port), 2, 0).unwrap();
                    has.insert(port);
                }
            }
            let start = rng.u32(1000..4000);
            let free = (start..4000).chain(1000..start).find(|port| !has.contains(port));
            assert_eq!(free_number(&mut new, range, start, Some(pool(3999)), reply, 0), free);
        }
        // Each was counted once, or that of the last would not come to nothing.
        for port in std::mem::take(&mut has) {
            let (number, _) = new.lookup(&reply(port), 0).unwrap();
            new.remove(number);
        }
        assert_eq!(new.taken.counted(), (0, 0));
    }
}

/// Timeouts that were alike become different, others alike, longer and shorter, while packets come and flows go.
#[test]
fn flows_do_not_outlive_a_timeout_that_became_shorter() {
    let start = 1_700_000_000 * SECOND;
    let kind = |n: u32| (n % 3) as usize;
    // By change and kind of flow.
    let timeouts = [[9, 9, 5], [4, 9, 9], [2, 2, 20], [9, 9, 5]].map(|of| of.map(|t| t * SECOND));
    for seed in 0..40 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let mut now = start;
        let sizes = if seed % 2 == 0 { Sizes::SMALL } else { Sizes::USUAL };
        let mut table = FlowTable::with_seed(1000, seed, sizes);
        let mut classes = timeouts[0].map(|timeout| table.class(timeout, 0));
        // When flows expire.
        let mut flows = std::collections::BTreeMap::new();
        for n in 0..60 {
            now += rng.u64(..SECOND / 16);
            table.insert(Flow::new(key(n), key(n)), classes[kind(n)], now).unwrap();
            flows.insert(n, table.tick_end(now) + timeouts[0][kind(n)]);
        }
        for after in &timeouts[1..] {
            let mut next = FlowTable::with_seed(1000, 100 + seed, sizes);
            next.take_over(table.hand_over());
            next.change_timeouts();
            classes = after.map(|timeout| next.class(timeout, 0));
            table = next;
            let from = table.tick_end(now);
            for (&n, expiry) in &mut flows {
                *expiry = (*expiry).min(from + after[kind(n)]);
            }
            let mut batches = 0;
            while table.is_mixed() {
                batches += 1;
                table.regroup(|flow| {
                    let n = u32::from(flow.key(0).dst_port()) - 1000;
                    Some(classes[kind(n)])
                });
                let n = rng.u32(..60);
                if let Some((number, _)) = table.lookup(&key(n), now) {
                    table.touch(number, classes[kind(n)], now);
                    flows.insert(n, table.tick_end(now) + after[kind(n)]);
                    if rng.u8(..8) == 0 {
                        table.remove(number);
                        flows.remove(&n);
                    }
                }
                now += rng.u64(..SECOND / 64);
                table.remove_expired(now, 0);
            }
            // As many as are looked at for a batch.
            assert!(batches > flows.len() / (2 * sizes.looked_at), "{batches}");
            for (&n, &expiry) in &flows {
                let (number, _) = table.holder(&table.hashed(key(n))).unwrap();
                assert_eq!(table.flow(number).expiry(), expiry, "{n}, seed {seed}");
            }
        }
        assert!(table.classes.len() < 12, "lists without flows are used again");
        // Each goes when it expires, and none before.
        while let Some(&first) = flows.values().min() {
            table.remove_expired(first - 1, usize::MAX);
            assert_eq!(table.len(), flows.len(), "seed {seed}");
            table.remove_expired(first, usize::MAX);
            flows.retain(|_, expiry| *expiry > first);
            assert_eq!(table.len(), flows.len(), "seed {seed}");
        }
    }
}

/// Flows go on as those of the rewriter that they were of, whatever its number.
#[test]
fn flows_go_along_with_their_numbers() {
    let of = |member: u16, n: u32| Key { map: member << 8 | 17, ..key(n) };
    let mut old = table(100);
    for (member, n) in [(0, 1), (1, 2), (2, 3), (1, 4)] {
        let from = Key { map: member << 8 | 17, ..Key::new(0, n, 7, 8, 9) };
        old.insert(Flow::new(from, of(member, n)), 2, 0).unwrap();
    }
    let mut new = table(100);
    let pool = Pool { member: 2, numbers: Numbers::Ports, addresses: (9, 9), ports: (1000, 1049) };
    new.watch(pool);
    new.take_over(old.hand_over());
    new.renumber(|member| [Some(0), Some(2), None].get(usize::from(member)).copied().flatten());
    assert_eq!(new.len(), 3);
    let found = |member, n| {
        new.lookup(&of(member, n), 0).map(|(number, side)| (new.flow(number).key(0).map >> 8, side))
    };
    assert_eq!([found(0, 1), found(2, 2), found(2, 4)], [Some((0, 1)), Some((2, 1)), Some((2, 1))]);
    assert_eq!([found(1, 2), found(1, 4), found(2, 3)], [None; 3]);
    let free = free_number(&mut new, (1002, 1049), 1002, Some(pool), |n| of(2, n - 1000), 0);
    assert_eq!(free, Some(1003));
    new.remove_expired(100 * SECOND, usize::MAX);
    assert_eq!((new.len(), new.taken.counted()), (0, (0, 0)));
}

/// Flows that come from another worker's table expire when they would have there, whenever those
/// that are here do.
#[test]
fn flows_of_another_worker_expire_in_their_time() {
    let (mut one, mut other) = (table(100), table(100));
    let add = |table: &mut FlowTable, n: u32, group, now| {
        let number = table.insert(Flow::new(key(n), key(n)), 2, now).unwrap();
        table.set_group(number, group);
    };
    for n in 0..10 {
        add(&mut one, n, 1000, u64::from(n) * SECOND / 2);
        add(&mut other, 20 + n, 2, u64::from(n) * SECOND / 2 + SECOND / 4);
    }
    let now = 5 * SECOND;
    let flows = one.export_group(1000);
    assert_eq!((flows.flows.len(), one.len()), (10, 0));
    // A flow that gets the number of one that went is of no group until somebody says so.
    one.insert(Flow::new(key(50), key(50)), 2, now).unwrap();
    assert_eq!(one.export_group(1000).flows.len(), 0);
    other.import_group(flows, now, |_| Some(2));
    let all = other.export_group(1000);
    assert_eq!((all.flows.len(), other.len()), (10, 10));
    other.import_group(all, now, |_| Some(2));
    for n in 0..10 {
        // The last nanosecond of the tick in which it was touched, and five seconds.
        let until = other.tick_end(u64::from(n) * SECOND / 2) + 5 * SECOND;
        let beside = other.tick_end(u64::from(n) * SECOND / 2 + SECOND / 4) + 5 * SECOND;
        let is_there = |table: &FlowTable, n| table.holder(&table.hashed(key(n))).is_some();
        for (flow, until) in [(n, until), (20 + n, beside)] {
            other.remove_expired(until - 1, usize::MAX);
            assert!(is_there(&other, flow), "{flow} lives");
            other.remove_expired(until, usize::MAX);
            assert!(!is_there(&other, flow), "{flow} is over");
        }
    }
    assert_eq!(other.len(), 0);
}

#[test]
fn ticks_are_as_long_as_the_shortest_timeout_allows() {
    let mut table = FlowTable::with_seed(10, 1, Sizes::SMALL);
    let mut tick = |seconds: u64, guarantee: u64| {
        table.class(seconds * SECOND, guarantee * SECOND);
        table.tick()
    };
    assert_eq!(tick(86_400, 5), (1 << 32) - 1, "some seconds at most");
    assert_eq!(tick(240, 5), (1 << 31) - 1, "2.1 seconds are less than a 64th");
    assert_eq!(tick(300, 5), (1 << 31) - 1, "the shortest counts");
    assert_eq!(tick(60, 100), (1 << 30) - 1, "no flow expires before its guarantee is over");
    assert_eq!(tick(1, 0), (1 << 27) - 1, "not shorter than an eighth of a second");
    assert_eq!(tick(0, 0), (1 << 27) - 1);
}

/// However many flows there are, a visit looks at so many and no more; all visits together come to
/// each once, whatever comes and goes meanwhile.
#[test]
fn visits_are_bounded_and_come_to_every_flow() {
    let mut table = table(100_000);
    for n in 0..10_000 {
        assert!(table.insert(flood(n), 0, 0).is_some());
    }
    let mut seen = Vec::new();
    let (mut from, mut visits) = (Some(0), 0);
    while let Some(at) = from {
        let before = seen.len();
        (from, _) = table.visit(at, 100, |flow| seen.push(flow.key(0).src()));
        assert!(seen.len() - before <= 100);
        visits += 1;
        // One goes that may have been visited, one comes, and one that stays has a packet.
        let (number, _) = table.lookup(&flood(visits).key(0), 0).unwrap();
        table.remove(number);
        assert!(table.insert(flood(20_000 + visits), 0, 0).is_some());
        let (number, _) = table.lookup(&flood(5000 + visits).key(0), 0).unwrap();
        table.touch(number, 1, 1);
    }
    assert!((100..=102).contains(&visits), "{visits}");
    seen.sort_unstable();
    assert!(seen.is_sorted_by(|a, b| a < b), "one was visited twice");
    let stayed = (0..10_000).filter(|n| !(1..=visits).contains(n));
    assert!(stayed.into_iter().all(|n| seen.binary_search(&n).is_ok()));
    // Nonsense leads nowhere.
    assert_eq!(table.visit(u64::MAX, 100, |_| panic!("there is none")).0, None);
}

#[test]
fn flows_of_ipv6_are_found_in_columns_as_one_by_one() {
    use crate::flow_access::{BURST, Column, FlowAccess, FoundFlows};

    let mut table: Table<[u128; 2]> = Table::with_seed(1000, 1, Sizes::SMALL);
    let class = table.class(3 * SECOND, 0);
    let key = |n: u128| {
        FlowKey::<[u128; 2]>::new(6, 0x2001_0db8 << 96 | n << 60, 1000 + n as u16, n << 32 | 7, 80)
    };
    for n in 0..200 {
        let mut flow = FlowOf::new(key(n), key(n).reverse());
        flow.set_outputs([n as u16, 0]);
        assert!(table.insert(flow, class, 0).is_some());
    }
    let asked: Vec<_> = (190..222).map(|n| key(if n % 2 == 0 { n } else { n - 100 })).collect();
    let asked: Vec<_> =
        asked.iter().map(|k| if k.ports % 3 == 0 { k.reverse() } else { *k }).collect();
    let mut columns = vec![[0; BURST]; 11];
    for (lane, key) in asked.iter().enumerate() {
        let mut at = 0;
        for (number, width) in key.numbers().into_iter().zip(table.key_columns()) {
            for word in 0..*width {
                columns[at][lane] = (number >> (32 * word)) as u32;
                at += 1;
            }
        }
    }
    let columns: Vec<&Column> = columns.iter().collect();
    let mut found = FoundFlows::new(12, 4);
    table.find_all(&columns, u32::MAX, 1, &mut found);
    let mut lanes = 0;
    for (lane, key) in asked.iter().enumerate() {
        let Some(one) = FlowAccess::find(&table, &key.numbers(), 1) else { continue };
        lanes |= 1 << lane;
        let mut at = 0;
        for (value, width) in one.values.iter().zip([4, 1, 4, 1, 1, 1]) {
            for word in 0..width {
                assert_eq!(found.values[at][lane], (value >> (32 * word)) as u32);
                at += 1;
            }
        }
        assert_eq!(found.numbers[lane], one.number);
    }
    assert_eq!(found.lanes, lanes);
    assert!(lanes.count_ones() > 10 && lanes != u32::MAX);
}
