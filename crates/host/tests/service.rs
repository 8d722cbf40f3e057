//! Chains of real processes: numbered packets go through NFs in every language, which end, hang, and forge.

extern crate nf as catena_nf;

mod support;

use std::path::PathBuf;
use std::time::Duration;

use catena_host::manifest::{Function, HandOff, Nf, Policy, Within};
use catena_host::{Journal, Service};
use support::languages::{LANGUAGES, What, function, passes};
use support::{Folder, c, frame, in_order, is_root, left, number, run, rust, spec};

#[test]
fn all_packets_go_through_chains_of_every_length_in_order() {
    let modes = [
        (HandOff::Baton, Within::Temporal, Policy::Other),
        (HandOff::Yield, Within::Temporal, Policy::Other),
        (HandOff::Baton, Within::Copy, Policy::Batch),
    ];
    for length in 1..=4 {
        for (hand_off, within, policy) in modes {
            let folder = Folder::new(&format!("order{length}{hand_off:?}{within:?}"));
            let nfs = (0..length).map(|at| {
                let language = LANGUAGES[(at + length) % 4];
                passes(language, &format!("nf{at}"), &folder)
            });
            let mut spec = spec(&folder, nfs.collect(), 2_000);
            (spec.hand_off, spec.within, spec.policy) = (hand_off, within, policy);
            let (status, frames, said, _) = run(&folder, spec);
            let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
            assert!(frames.iter().enumerate().all(|(at, of)| number(of) == at as u64));
            assert_eq!((frames.len(), status.received, status.sent), (2_000, 2_000, 2_000));
            for nf in status.nfs {
                assert_eq!((nf.received, nf.passed, nf.counters["seen"]), (2_000, 2_000, 2_000));
            }
        }
    }
}

#[test]
fn packets_are_dropped_by_reason_and_changed() {
    for within in [Within::Temporal, Within::Copy] {
        let folder = Folder::new(&format!("drop{within:?}"));
        let nfs = vec![
            rust("third", "drop 3"),
            rust("in", "tag"),
            c("middle", "pass"),
            passes("go", "go", &folder),
            passes("python", "python", &folder),
            rust("out", "untag"),
        ];
        let mut spec = spec(&folder, nfs, 999);
        spec.within = within;
        let (status, frames, ..) = run(&folder, spec);
        let status = status.unwrap();
        let expected = (0..999).filter(|number| number % 3 != 0);
        assert_eq!(
            frames.iter().map(|of| number(of)).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>()
        );
        assert!(frames.iter().all(|of| of.len() == 60 && of[12..14] == [8, 0]));
        assert_eq!(status.nfs[0].dropped["divided"], 333);
        assert_eq!((status.received, status.sent), (999, 666));
    }
}

#[test]
fn an_nf_that_ends_or_hangs_is_replaced_and_loses_its_batch_alone() {
    for (language, act, said_of) in [
        ("rust", "end", "signal 6 ended it"),
        ("rust", "hang", "has kept a batch"),
        ("go", "end", "exited with status 2"),
        ("go", "hang", "has kept a batch"),
        ("python", "end", "exited with status 1"),
        ("python", "hang", "has kept a batch"),
    ] {
        let folder = Folder::new(&format!("{act}-{language}"));
        let acts = format!("{act} {} 1000", folder.path("once"));
        let acting = match language {
            "rust" => rust("acts", &acts),
            _ => {
                let nf = function(What::Same, language, &folder, &acts);
                Nf { name: "acts".into(), ..nf }
            }
        };
        let nfs = vec![c("before", "pass"), acting, passes("python", "after", &folder)];
        let mut spec = spec(&folder, nfs, 3_000);
        spec.batch = Some(50);
        spec.timeout = Duration::from_millis(300);
        let (status, frames, said, _) = run(&folder, spec);
        let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
        assert!(
            said.iter().any(|line| line.contains("'acts'") && line.contains(said_of)),
            "{said:?}"
        );
        assert_eq!((status.failures, status.generation, status.lost_in_nf), (1, 2, 50));
        assert!(in_order(&frames));
        let lost = (0..3_000).filter(|of| !frames.iter().any(|frame| number(frame) == *of));
        assert_eq!(lost.collect::<Vec<_>>(), (1_000..1_050).collect::<Vec<_>>());
    }
}

#[test]
fn an_nf_that_ends_again_and_again_is_given_up() {
    let folder = Folder::new("again");
    let mut nf = c("writer", "write");
    nf.writes = false;
    let (status, frames, said, _) =
        run(&folder, spec(&folder, vec![rust("first", "pass"), nf], 100));
    assert!(status.unwrap_err().to_string().contains("in a row"), "{said:?}");
    // It may read packets alone.
    assert!(said.iter().any(|line| line.contains("'writer' ended: signal 11")), "{said:?}");
    assert!(frames.is_empty());
}

#[test]
fn what_an_nf_forges_hurts_itself_alone() {
    // Each of these the host sees by what the NF wrote, and in whose page.
    for act in ["raise", "outside", "skip"] {
        let folder = Folder::new(act);
        let nfs = vec![rust("half", "drop 2"), c("forger", act), rust("after", "pass")];
        let mut spec = spec(&folder, nfs, 64);
        spec.batch = Some(8);
        spec.timeout = Duration::from_millis(300);
        let (status, frames, said, _) = run(&folder, spec);
        assert!(in_order(&frames), "{act}");
        // What was dropped before it stays dropped.
        assert!(frames.iter().all(|frame| number(frame) % 2 == 1), "{act}");
        let said = format!("{said:?} {:?}", status.map(|status| status.remarks));
        assert!(said.contains("the NF 'forger' "), "{act}: {said}");
        assert!(!said.contains("'half'") && !said.contains("'after'"), "{act}: {said}");
    }
}

#[test]
fn memory_that_an_nf_may_only_read_cannot_be_opened_for_writing() {
    let folder = Folder::new("map");
    let mut attacker = c("attacker", "map");
    attacker.writes = false;
    let nfs = vec![rust("first", "pass"), attacker, rust("last", "pass")];
    let (status, frames, said, _) = run(&folder, spec(&folder, nfs, 200));
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    assert_eq!(frames, (0..200).map(frame).collect::<Vec<_>>());
    assert_eq!(status.failures, 0);
}

#[test]
fn why_an_nf_did_not_start_is_said() {
    let program = |path: &str| Nf::new("odd", Function::Program(path.into(), Vec::new()));
    for (nf, expected) in [
        (program("/bin/true"), "'odd' ended before it was ready: it exited with status 0"),
        (program("/nonexistent/nf"), "/nonexistent/nf"),
        (rust("odd", "refuse"), "'odd' refuses to start: as it was told to"),
    ] {
        let folder = Folder::new("start");
        let (status, ..) = run(&folder, spec(&folder, vec![nf], 1));
        let why = status.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn what_an_nf_must_not_do_is_refused() {
    // It says that something was allowed by ending.
    for act in ["reach", "take", "threads"] {
        let folder = Folder::new(act);
        let mut attacker = c("attacker", act);
        if act == "threads" {
            attacker.limits.threads = 4;
        }
        let nfs = vec![rust("first", "pass"), attacker, c("last", "pass")];
        let (status, frames, said, mark) = run(&folder, spec(&folder, nfs, 200));
        let status = status.unwrap_or_else(|why| panic!("{act}: {why} {said:?}"));
        assert_eq!((frames.len(), status.failures), (200, 0), "{act}: {said:?}");
        if act == "reach" {
            // Its siblings, and who started them.
            assert!(status.nfs[1].counters["tried"] >= 3, "{:?}", status.nfs[1]);
        }
        assert_eq!(left(&mark), [""; 0]);
    }
}

#[test]
fn an_nf_gets_no_more_memory_than_it_may_have() {
    // Root limits all of it, by control groups.
    let acts: &[&str] = if is_root() { &["eat", "share"] } else { &["eat"] };
    for act in acts {
        let folder = Folder::new(act);
        let mut hungry = c("hungry", act);
        hungry.limits.memory = 64 << 20;
        let (status, frames, said, mark) = run(&folder, spec(&folder, vec![hungry], 100));
        match *act {
            "eat" => assert_eq!((frames.len(), status.unwrap().failures), (100, 0), "{said:?}"),
            _ => {
                let ended = "'hungry' ended: signal 9 ended it, as it used all of its memory";
                assert!(said.iter().any(|line| line.contains(ended)), "{said:?}");
                assert!(status.is_err());
            }
        }
        assert_eq!(left(&mark), [""; 0]);
    }
}

#[test]
fn nothing_is_left_of_a_service_that_cannot_begin() {
    let folder = Folder::new("begin");
    let mut spec = spec(&folder, vec![c("first", "pass")], 1);
    spec.input = "no-such-if".into();
    let journal = Journal::begin(&folder.0.join("journal")).unwrap();
    let nobody = (PathBuf::from("/nonexistent"), Vec::new());
    let why = Service::new(spec, &nobody, journal).unwrap_err().to_string();
    assert!(why.contains("no-such-if"), "{why}");
    assert!(!folder.0.join("journal").exists());
}
