use std::path::{Path, PathBuf};
use std::{env, fs};

use elements::configure::Files;
use ir::field::{ip, transport};
use ir::{Base, Cond, Expr, Field, FileId, IntervalSet, Sources};
use proptest::prelude::*;

use super::List;
use super::cover::{Budget, Fate, fates};

fn of(conditions: &[Cond]) -> Vec<Fate> {
    fates(conditions.iter(), &mut Budget::default())
}

fn src(prefix: u32, length: u16) -> Cond {
    ip::SRC.is_in(IntervalSet::prefix(32, prefix.into(), length))
}

fn ports(field: Field, low: u128, high: u128) -> Cond {
    field.is_in(IntervalSet::range(low, high))
}

fn shadowed(rules: &[u32]) -> Fate {
    Fate::Shadowed(rules.to_vec())
}

#[test]
fn one_rule_covers() {
    let rules =
        [src(0x0a00_0000, 8), src(0x0a01_0000, 16), src(0x0b00_0000, 8), src(0x0a01_0000, 16)];
    // The second is dead itself, so that it is not what covers the last.
    assert_eq!(of(&rules), [Fate::Alive, shadowed(&[0]), Fate::Alive, shadowed(&[0])]);
}

#[test]
fn several_rules_cover_together_and_none_is_named_that_can_be_spared() {
    let rules = [
        src(0x0a00_0000, 9),
        ports(transport::SPORT, 0, 80).and(src(0x0a80_0000, 10)),
        src(0x0ac0_0000, 10),
        ports(transport::SPORT, 70, 100).and(src(0x0a80_0000, 9)),
        ports(transport::SPORT, 79, u16::MAX.into()),
        src(0x0a00_0000, 8),
    ];
    assert_eq!(of(&rules)[5], shadowed(&[0, 1, 2, 4]));
    assert!(of(&rules)[..5].iter().all(|fate| *fate == Fate::Alive));
}

#[test]
fn a_hole_of_one_packet_keeps_a_rule_alive() {
    let point = |port, address| ports(transport::SPORT, port, port).and(src(address, 32));
    let mut rules = vec![
        ports(transport::SPORT, 0, 79),
        ports(transport::SPORT, 81, u16::MAX.into()),
        ip::SRC.is_in(IntervalSet::range(0, 0x0a00_0000)),
        ip::SRC.is_in(IntervalSet::range(0x0a00_0002, u32::MAX.into())),
        Cond::Const(true),
    ];
    assert_eq!(of(&rules)[4], Fate::Alive);
    rules.insert(4, point(80, 0x0a00_0001));
    assert_eq!(of(&rules)[5], shadowed(&[0, 1, 2, 3, 4]));
}

#[test]
fn conditions_that_exclude_one_another_are_empty() {
    let rules = [
        ip::PROTO.eq(6u8).and(ip::PROTO.eq(17u8)),
        Cond::Const(false),
        src(0, 0).not(),
        ip::FLAGS_FRAG.eq(1u8).and(ip::FRAG.eq(0u8)),
        Cond::Const(true),
    ];
    let mut expected = vec![Fate::Empty; 4];
    expected.push(Fate::Alive);
    assert_eq!(of(&rules), expected);
}

#[test]
fn fields_that_overlap_are_distinguished_by_their_bits() {
    let rules = [
        ip::FRAG.eq(0u8),
        ip::MF.eq(1u8),
        ip::FLAGS_FRAG.is_in(IntervalSet::range(0, 0x1fff)),
        ip::FLAGS.is_in(IntervalSet::from_intervals(vec![(2, 2), (4, 4), (6, 6)])),
        Cond::Const(true),
    ];
    assert_eq!(of(&rules)[3], Fate::Alive);
    assert_eq!(of(&rules)[4], shadowed(&[1, 2, 3]));
}

#[test]
fn what_is_not_about_fields_is_left_alone() {
    let random = Cond::Test(Expr::Random(0, 1), IntervalSet::single(0));
    let rules = [random.clone(), random, Cond::Const(true), Cond::Const(true)];
    assert_eq!(of(&rules), [Fate::Unknown, Fate::Unknown, Fate::Alive, shadowed(&[2])]);
}

#[test]
fn a_cover_of_thousands_is_found() {
    let cell = |i, j| ports(transport::SPORT, i, i).and(ports(transport::DPORT, j, j));
    let below = |n| ports(transport::SPORT, 0, n).and(ports(transport::DPORT, 0, 49));
    let mut rules: Vec<Cond> = (0..50).flat_map(|i| (0..50).map(move |j| cell(i, j))).collect();
    rules.extend([below(49), below(50)]);
    let fates = of(&rules);
    assert_eq!(fates[2500], shadowed(&(0..2500).collect::<Vec<_>>()));
    assert_eq!(fates[2501], Fate::Alive);
}

#[test]
fn work_is_bounded_and_then_nothing_is_said() {
    // Terms of three random literals, none of which holds where all bits are zero: whether they
    // cover everything is as hard as any such question.
    let mut random = 1u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (random >> 33) % n
    };
    let mut rules: Vec<Cond> = (0..270)
        .map(|_| {
            let mut literal = |may_be_zero| {
                let bit = Field::bits(Base::Data, below(64) as u16, 1);
                bit.eq(if may_be_zero { below(2) } else { 1 })
            };
            literal(false).and(literal(true)).and(literal(true))
        })
        .collect();
    rules.push(Cond::Const(true));
    let found = fates(rules.iter(), &mut Budget::of(1 << 20));
    assert_eq!(found[270], Fate::TooMuchWork);
}

#[test]
fn conditions_of_too_many_boxes_are_left_alone() {
    let even = |field: Field| {
        field.is_in(IntervalSet::from_intervals((0..100).map(|n| (2 * n, 2 * n)).collect()))
    };
    let rules = [even(transport::SPORT).and(even(transport::DPORT)), Cond::Const(true)];
    assert_eq!(of(&rules), [Fate::TooMuchWork, Fate::Alive]);
}

/// Two bytes at different bases, the first of which is looked at in overlapping pieces.
const BITS: u16 = 6;

fn value(field: Field, point: u16) -> u128 {
    let half = match field.base {
        Base::Data => point >> BITS,
        _ => point & ((1 << BITS) - 1),
    };
    u128::from(half >> (BITS - field.offset - field.width)) & Field::max(field)
}

fn holds(cond: &Cond, point: u16) -> bool {
    match cond {
        Cond::Const(value) => *value,
        Cond::Test(Expr::Field(field), set) => set.contains(value(*field, point)),
        Cond::All(all) => all.iter().all(|c| holds(c, point)),
        Cond::Any(any) => any.iter().any(|c| holds(c, point)),
        Cond::Not(cond) => !holds(cond, point),
        _ => unreachable!("not generated"),
    }
}

fn condition() -> impl Strategy<Value = Cond> {
    let field = (any::<bool>(), 0..BITS).prop_flat_map(|(first, offset)| {
        let base = if first { Base::Data } else { Base::Annotation };
        (1..=BITS - offset).prop_map(move |width| Field::bits(base, offset, width))
    });
    let test =
        (field, prop::collection::vec((0..64u128, 0..64u128), 1..3)).prop_map(|(field, ends)| {
            let ends =
                ends.into_iter().map(|(a, b)| (a.min(b) & field.max(), a.max(b) & field.max()));
            field.is_in(IntervalSet::from_intervals(ends.collect()))
        });
    test.prop_recursive(2, 6, 3, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            4 => many.clone().prop_map(Cond::All),
            2 => many.prop_map(Cond::Any),
            1 => inner.prop_map(Cond::not),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A rule is reported exactly if no packet gets to it, and the rules that are named cover it
    /// with none to spare.
    #[test]
    fn fates_are_those_of_every_packet(rules in prop::collection::vec(condition(), 1..12)) {
        let points = || 0..1u16 << (2 * BITS);
        for (i, fate) in of(&rules).iter().enumerate() {
            let reached = points().any(|p| {
                holds(&rules[i], p) && !rules[..i].iter().any(|earlier| holds(earlier, p))
            });
            let possible = points().any(|p| holds(&rules[i], p));
            match fate {
                Fate::Alive => prop_assert!(reached, "rule {i} is dead"),
                Fate::Empty => prop_assert!(!possible, "rule {i} is not empty"),
                Fate::Shadowed(covers) => {
                    prop_assert!(possible, "rule {i} is empty");
                    let enough = |without: Option<u32>| points().filter(|&p| holds(&rules[i], p)).all(|p| {
                        covers.iter().any(|&c| Some(c) != without && holds(&rules[c as usize], p))
                    });
                    prop_assert!(covers.iter().all(|&c| (c as usize) < i));
                    prop_assert!(enough(None), "rule {i} is not covered by {covers:?}");
                    for &cover in covers {
                        prop_assert!(!enough(Some(cover)), "rule {i} does not need {cover} of {covers:?}");
                    }
                }
                Fate::Unknown | Fate::TooMuchWork => prop_assert!(false, "rule {i} was not checked"),
            }
        }
    }

    /// Without a budget nothing false is said.
    #[test]
    fn little_work_says_less_but_nothing_false(
        rules in prop::collection::vec(condition(), 1..12),
        work in 0..200u64,
    ) {
        let all = of(&rules);
        let some = fates(rules.iter(), &mut Budget::of(work));
        for (some, all) in some.iter().zip(&all) {
            match (some, all) {
                (Fate::TooMuchWork, _) | (Fate::Shadowed(_), Fate::Shadowed(_)) => {}
                _ => prop_assert_eq!(some, all),
            }
        }
    }
}

/// ClassBench's sets; says why if they are missing, which is a failure in CI.
#[allow(clippy::print_stderr)]
fn class_bench() -> Vec<String> {
    let root = env::var_os("CATENA_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = root.join("data/classbench");
    if !folder.is_dir() {
        eprintln!("not run: {} is missing (set CATENA_SHARED)", folder.display());
        assert!(env::var_os("CATENA_SHARED").is_none(), "the sets of rules are missing");
        return Vec::new();
    }
    let sets = ["acl1_1k", "fw1_1k", "ipc1_1k", "fw1_10k"];
    sets.map(|set| fs::read_to_string(folder.join(set)).expect("the set can be read")).into()
}

struct Rules(String);

impl Files for Rules {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        Ok(sources.add(path, self.0.as_str()))
    }
}

/// Least and greatest source, destination, ports, and the protocol.
type Ranges = [(u64, u64); 5];

fn ranges(line: &str) -> Ranges {
    let words: Vec<&str> = line.trim_start_matches('@').split_whitespace().collect();
    let network = |word: &str| {
        let (address, length) = word.split_once('/').unwrap();
        let address = address.parse::<std::net::Ipv4Addr>().unwrap().to_bits();
        let host = u32::MAX.checked_shr(length.parse().unwrap()).unwrap_or(0);
        (u64::from(address & !host), u64::from(address | host))
    };
    let number = |word: &str| word.parse::<u64>().unwrap();
    let ports = [(number(words[2]), number(words[4])), (number(words[5]), number(words[7]))];
    let protocol = match words[8].split_once('/').unwrap() {
        (value, "0xFF") => {
            let value = u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap();
            (value, value)
        }
        // Ports are TCP's or UDP's; no set names a protocol between the two.
        _ if ports.iter().any(|&p| p != (0, 65535)) => (6, 17),
        _ => (0, 255),
    };
    [network(words[0]), network(words[1]), ports[0], ports[1], protocol]
}

fn is_inside(inner: &Ranges, outer: &Ranges) -> bool {
    inner.iter().zip(outer).all(|(i, o)| o.0 <= i.0 && i.1 <= o.1)
}

/// Large sets are checked as a whole, and what single rules cover is what their ranges say.
#[test]
fn rules_of_class_bench_are_covered_as_their_ranges_say() {
    for rules in class_bench() {
        let ranges: Vec<Ranges> = rules.lines().map(ranges).collect();
        let mut sources = Sources::new();
        let file = sources.add("t", "Idle -> f :: IPFilter(file rules) -> Discard");
        let mut files = Rules(rules);
        let (chain, _) =
            crate::frontend::elaborate(&mut sources, file, &Default::default(), &mut files);
        let chain = chain.expect("no errors");
        let made = crate::frontend::instantiate(&chain, &mut sources, &mut files, &mut Vec::new());
        let filter = chain.graph.nodes.iter().position(|node| node.name == "f").unwrap();
        let model = made.expect("no errors").elements[filter].model();
        let list = List::of(&model, &mut Budget::default());
        assert_eq!(list.rules.len(), ranges.len());
        for (i, rule) in list.rules.iter().enumerate() {
            assert_eq!(rule.number, i + 1);
            assert!(rule.is_alive() || rule.is_dead());
            let covers: Vec<usize> = rule.covers.keys().copied().collect();
            if let [cover] = covers[..] {
                assert!(is_inside(&ranges[i], &ranges[cover - 1]), "{} by {cover}", i + 1);
            } else {
                let mut earlier = ranges[..i].iter().zip(&list.rules);
                let inside = earlier.find(|(o, r)| r.is_alive() && is_inside(&ranges[i], o));
                assert!(inside.is_none(), "rule {} and {covers:?}", i + 1);
            }
        }
    }
}
