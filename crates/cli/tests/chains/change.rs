//! Chains that are synthesised, changed through handlers while packets move, and synthesised again.

use std::path::Path as Folder;

use catena_cli::session::Path;

use crate::support::{Started, start};

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
