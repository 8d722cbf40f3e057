//! Chains that are synthesised, changed through handlers while packets move, and synthesised again.

use std::path::Path as Folder;

use engine::session::Path;

use crate::outcome::{Seen, Tallies, drain, feed, tallies};
use crate::support::{MODES, Mode, Started, start};
use lab::seeds;

const TEXT: &str = "src :: InfiniteSource(DATA \\<4500 001c 0001 0000 4011 0000 01020304 05060708
        0001 0002 0008 0000>, LIMIT 100000, BURST 1, STOP false)
    -> MarkIPHeader -> GetIPAddress(16) -> rt :: RadixIPLookup(5.0.0.0/8 0, 0.0.0.0/0 1);
    rt[0] -> a :: Counter -> Discard; rt[1] -> b :: Counter -> Discard; rt[2] -> c :: Counter -> Discard;";

fn counts(started: &mut Started) -> [u64; 3] {
    ["a.count", "b.count", "c.count"]
        .map(|h| started.router.read_handler(h).expect("a count").parse().expect("a number"))
}

#[track_caller]
fn changes(path: Path) {
    let mut started = start("change", TEXT, Folder::new("."), path)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
    let rounds = |started: &mut Started, count| {
        for _ in 0..count {
            started.router.round();
        }
    };
    rounds(&mut started, 10);
    assert_eq!(counts(&mut started), [10, 0, 0]);
    for (change, at) in [("add 5.6.0.0/16 2", 2), ("remove 5.6.0.0/16", 0), ("remove 5.0.0.0/8", 1)]
    {
        let before = counts(&mut started);
        let (handler, value) = change.split_once(' ').expect("a handler and a value");
        started.router.write_handler(&format!("rt.{handler}"), value).expect("a handler");
        rounds(&mut started, 10);
        let mut expected = before;
        expected[at] += 10;
        assert_eq!(counts(&mut started), expected, "{change}");
    }
    started.router.write_handler("a.reset", "").expect("a handler");
    assert_eq!(counts(&mut started)[0], 0);
}

#[test]
fn a_route_that_changes_is_synthesised_again() {
    changes(Path::Synthesised);
}

#[test]
fn interpreted_programs_are_made_again_too() {
    changes(Path::SynthesisedInterpreted);
}

/// A chain as an ISP's edge has it, whose access list is of many rules.
fn edge(rules: &[String]) -> String {
    format!(
        "in0 :: Idle -> CheckIPHeader -> acl :: IPFilter({}) -> GetIPAddress(16)
             -> rt :: RadixIPLookup(20.0.0.0/8 0, 0.0.0.0/0 1);
         acl[1] -> other :: Counter -> out1 :: Queue(100000) -> Idle;
         rt[1] -> beside :: Counter -> Discard;
         rt[0] -> ttl :: DecIPTTL -> rw :: IPRewriter(pattern 30.0.0.1 1024-65535# - - 0 1)
             -> out0 :: Queue(100000) -> Idle;
         ttl[1] -> ICMPError(172.16.1.1, timeexceeded) -> Discard; rw[1] -> Discard;",
        rules.join(", ")
    )
}

/// A rule, most of them of the kinds that rules before it were of.
fn rule(rng: &mut fastrand::Rng) -> String {
    let action = *rng.choice(["allow", "deny", "1"].iter()).expect("there are some");
    let source = format!("src net 10.0.{}.0/{}", rng.u8(..4), rng.u8(22..25));
    let port = format!("dst port {}", rng.u16(1..8));
    let ports = format!("src port >= {} and src port <= 1007", rng.u16(1000..1008));
    let pattern = match rng.u8(..60) {
        0..18 => format!("{source} and {port}"),
        18..30 => format!("tcp and {port}"),
        30..39 => format!("dst host 20.0.0.{} and {ports}", rng.u8(..4)),
        39..50 => format!("udp and {source} and {ports}"),
        50..55 => format!("@10.0.0.0/8 20.0.0.{}/32 1000 : 1003 0 : 65535 0x06/0xFF", rng.u8(..4)),
        55..59 => format!("ip ttl < {}", rng.u8(2..5)),
        // With these, rules look at more than one structure tells apart.
        _ if rng.bool() => format!("tcp opt syn and {port}"),
        _ => format!("ip tos {}", rng.u8(..3)),
    };
    if pattern.starts_with('@') { pattern } else { format!("{action} {pattern}") }
}

fn packet(rng: &mut fastrand::Rng) -> Vec<u8> {
    let (source, destination) = (rng.u8(..4), rng.u8(..4));
    let (kind, flags) =
        *rng.choice(&[("udp", ""), ("tcp", " flags S"), ("tcp", " flags A")]).expect("some");
    let ttl = if rng.u8(..8) == 0 { rng.u8(1..5) } else { 64 };
    let words = format!(
        "bare {kind} 10.0.{source}.{}:{} > 20.0.0.{destination}:{}{flags} ttl {ttl} tos {}",
        rng.u8(1..4),
        rng.u16(1000..1008),
        rng.u16(1..8),
        rng.u8(..3),
    );
    net::notation::parse(&words).expect("the words are right")
}

/// A change that can be made to so many rules, and what it makes of their number.
fn change(rng: &mut fastrand::Rng, count: usize) -> (&'static str, String, usize) {
    match rng.u8(..8) {
        0..3 => ("rule_insert", format!("{} {}", rng.usize(1..count + 2), rule(rng)), count + 1),
        3..5 if count > 1 => ("rule_remove", rng.usize(1..=count).to_string(), count - 1),
        3..7 if count > 0 => {
            ("rule_replace", format!("{} {}", rng.usize(1..=count), rule(rng)), count)
        }
        _ if rng.u8(..4) > 0 => ("rule_insert", format!("1 {}", rule(rng)), count + 1),
        _ => {
            let new: Vec<String> = (0..rng.usize(1..100)).map(|_| rule(rng)).collect();
            ("config", new.join(", "), new.len())
        }
    }
}

/// Rules come and go under traffic; every execution mode gives the same, packet by
/// packet and count by count, and what a chain gives that was started with the rules. `CASES` asks for more chains.
#[test]
fn rules_that_come_and_go_are_the_same_in_every_mode() {
    let mut left = 0;
    for seed in seeds(4) {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let mut count = [0, 3, 40, 90][seed as usize % 4];
        let rules: Vec<String> = (0..count).map(|_| rule(rng)).collect();
        let begin = |text: &str, mode: Mode| {
            start("edge", text, Folder::new("."), mode)
                .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
        };
        let mut runs = MODES.map(|mode| begin(&edge(&rules), mode));
        for step in 0..10 {
            let (handler, value, new) = change(rng, count);
            count = new;
            let frames: Vec<Vec<u8>> = (0..24).map(|_| packet(rng)).collect();
            let results = runs.each_mut().map(|run| {
                let written = run.router.write_handler(&format!("acl.{handler}"), &value);
                written.unwrap_or_else(|why| panic!("{handler} {value}: {why}"));
                push(run, &frames)
            });
            for (mode, result) in MODES.iter().zip(&results) {
                assert_eq!(
                    *result, results[0],
                    "{mode:?}, seed {seed}, step {step}: {handler} {value}"
                );
            }
            let config = runs[0].router.read_handler("acl.config").expect("it can be read");
            assert_eq!(config.split(", ").count(), count, "{config}");
            left += results[0].0[0].len();
        }
        // As good as new, but for what was counted and the flows that there are.
        let config = runs[0].router.read_handler("acl.config").expect("it can be read");
        let rules: Vec<String> = config.split(", ").map(str::to_string).collect();
        let mut fresh = begin(&edge(&rules), Path::Native.into());
        for _ in 0..4 {
            let frames: Vec<Vec<u8>> = (0..24).map(|_| packet(rng)).collect();
            let ([_, new], _) = push(&mut fresh, &frames);
            for run in &mut runs {
                let ([_, old], _) = push(run, &frames);
                assert_eq!(old, new, "seed {seed}");
            }
        }
    }
    assert!(left > 16, "only {left} packets left");
}

/// What left on both outputs, and what was counted.
type Result = ([Vec<Seen>; 2], Tallies);

/// Pushes packets one by one.
fn push(run: &mut Started, frames: &[Vec<u8>]) -> Result {
    run.router.round();
    frames.chunks(1).for_each(|frame| feed(run, "in0", frame));
    run.router.round();
    (["out0", "out1"].map(|queue| drain(run, queue)), tallies(&mut run.router))
}

#[test]
fn wrong_rules_change_nothing() {
    let text = edge(&["deny src net 10.9.0.0/16".to_string(), "allow all".to_string()]);
    let mut started = start("edge", &text, Folder::new("."), Path::Synthesised)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
    for (handler, value, why) in [
        ("rule_insert", "", "the number of a rule is missing"),
        ("rule_insert", "0 allow all", "'0' is not the number of a rule, from 1 to 3"),
        ("rule_insert", "4 allow all", "'4' is not the number of a rule, from 1 to 3"),
        ("rule_insert", "x allow all", "'x' is not the number of a rule, from 1 to 3"),
        ("rule_insert", "1", "a rule is missing behind its number"),
        (
            "rule_insert",
            "1 permit all",
            "'permit' is not an action (a rule starts with allow, deny, drop or the number of an output)",
        ),
        ("rule_insert", "1 2 tcp", "there is no output 2: the last is 1"),
        ("rule_remove", "3", "'3' is not the number of a rule, from 1 to 2"),
        ("rule_remove", "1 2", "'2' is too much: rule_remove takes a number"),
        ("rule_replace", "1 allow tcp dst prot 80", "nothing"),
        (
            "config",
            "allow tcp, permit udp",
            "column 12: 'permit' is not an action (a rule starts with allow, deny, drop or the number of an output)",
        ),
        ("config", "allow tcp,\nFOO 1", "nothing"),
        ("config", "file none.rules", "nothing"),
    ] {
        let told = started.router.write_handler(&format!("acl.{handler}"), value);
        let told = told.expect_err("it is wrong");
        assert!(told == why || why == "nothing" && !told.is_empty(), "{handler} {value}: {told}");
    }
    let rules = started.router.read_handler("acl.rules").expect("they can be read");
    assert_eq!(rules, "1 deny src net 10.9.0.0/16\n2 allow all\n");
}
