//! State of flows in a real Redis, with TLS and users: it equals a model that replays the packets.

extern crate nf as catena_nf;

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use catena_host::state::{Durability, Policy, Secret, State};
use catena_host::{Journal, Service};
use nf::{Flow, field};
use support::languages::{LANGUAGES, What, function};
use support::redis::{Line, OPERATOR, Redis};
use support::state::{
    NEVER, frame, frame_of, kept, kept_of, model, of_flows, only, quota, stopping, stops, users,
};
use support::{Folder, number, run, run_as, rust, spec_of};

#[test]
fn state_equals_a_model_that_replays_the_packets() {
    let folder = Folder::new("model");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let (counts, passed) = model(&frames, 9);
    let mut spec = spec_of(&folder, vec![quota("quota", "9")], &frames);
    spec.batch = Some(50);
    spec.state = Some(redis.state(Durability::Strict));
    let (status, out, said, _) = run(&folder, spec);
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)));
    assert_eq!(kept(&redis, "journal:quota:"), counts);
    let (held, state) = (status.held.unwrap(), status.nfs[0].state.clone().unwrap());
    assert_eq!((held.waiting, held.dropped, held.passed), (0, 0, 0));
    assert!(held.waited > 0);
    assert_eq!((state.updates, state.acknowledged), (passed.len() as u64, passed.len() as u64));
    // One request a batch, for the flows that are new in it. Those of the first batch show which fields are read; others are read ahead.
    assert_eq!((state.flows, state.unread, state.connections), (300, 0, 1));
    assert!(state.requests <= status.batches, "{state:?}");
    let first: BTreeSet<Flow> =
        frames[..50].iter().filter_map(|of| Flow::of(of, field::ALL)).collect();
    assert_eq!(state.ahead, 300 - first.len() as u64);
    // Its user has gone.
    assert!(users(&redis).is_empty());
}

#[test]
fn an_nf_reaches_its_own_keys_alone() {
    let folder = Folder::new("own");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..200).map(|number| frame(number, 20)).collect();
    let hostile = format!("{} inject", stops(&folder, 9, [100, NEVER]));
    let nfs = vec![quota("one", &hostile), quota("other", "3")];
    let state = redis.state(Durability::Strict);
    let (status, out, said, _) = stopping(&folder, nfs, &frames, state, |gates| {
        gates[0].reached();
        // With what its user may do, which the test gives a second password.
        let user = users(&redis).into_iter().find(|user| user.contains(":one:")).unwrap();
        let mut operator = redis.operator();
        assert_eq!(operator.call(&["SET", "journal:other:key", "secret"]), "+OK");
        assert_eq!(operator.call(&["ACL", "SETUSER", &user, ">known"]), "+OK");
        let mut line = Line::open(redis.port());
        assert_eq!(line.call(&["AUTH", &user, "known"]), "+OK");
        assert_eq!(line.call(&["SELECT", "1"]), "+OK");
        assert_eq!(line.call(&["SET", "journal:one:key", "own"]), "+OK");
        assert_eq!(line.values(&[b"GET", b"journal:one:key"]), [b"own"]);
        assert_eq!(line.call(&["DEL", "journal:one:key"]), ":1");
        for words in [
            &["GET", "journal:other:key"][..],
            &["SET", "journal:other:key", "x"],
            &["DEL", "journal:other:key"],
            &["GET", "journal:on"],
            &["KEYS", "*"],
            &["SCAN", "0"],
            &["RENAME", "journal:one:key", "journal:other:key"],
            &["COPY", "journal:one:key", "journal:other:key"],
            &["EVAL", "return 1", "0"],
            &["CONFIG", "GET", "*"],
            &["ACL", "LIST"],
            &["CLIENT", "LIST"],
            &["FLUSHALL"],
            &["MONITOR"],
            &["SUBSCRIBE", "x"],
            &["SHUTDOWN"],
        ] {
            let said = line.call(words);
            assert!(said.starts_with("-NOPERM"), "{words:?}: {said}");
        }
        assert_eq!(operator.call(&["DEL", "journal:other:key"]), ":1");
        gates[0].open();
    });
    status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    // What looks like a command in a flow or a value is a flow or a value.
    let written = b"\r\n$8\r\nFLUSHALL\r\n*1\r\n$8\r\nFLUSHALL\r\n      ";
    let mut all = redis.all();
    assert_eq!(all.remove(&[b"journal:one:", &written[..]].concat()), Some(written.to_vec()));
    // The same flows have another state for each of the two.
    let (counts, passed) = model(&frames, 9);
    assert_eq!(kept_of(&all, "journal:one:"), counts);
    let (counts, passed) = model(only(&frames, &passed), 3);
    assert_eq!(kept_of(&all, "journal:other:"), counts);
    assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)));
    assert_eq!(all.len(), 40);
}

#[test]
fn what_an_nf_asks_wrongly_of_its_state_hurts_itself_alone() {
    let folder = Folder::new("wrong");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..64).map(|number| frame(number, 8)).collect();
    let acts = ["short", "none", "empty", "kind", "again", "huge", "number", "long", "cut", "raw"];
    for act in acts {
        let folder = Folder::new(&format!("wrong-{act}"));
        // It stops nowhere.
        std::fs::write(folder.0.join("once0"), "").unwrap();
        let hostile = format!("{} {act}", stops(&folder, 9, [20, NEVER]));
        let nfs = vec![rust("first", "pass"), quota("hostile", &hostile), quota("after", "9")];
        let mut spec = spec_of(&folder, nfs, &frames);
        spec.batch = Some(8);
        spec.state = Some(redis.state(Durability::Strict));
        let (_, out, said, _) = run_as(act, &folder, spec);
        let said = said.join("\n");
        let due = "the NF 'hostile' asks for state as the ABI has it not";
        assert!(said.contains(due), "{act}: {said}");
        assert!(!said.contains("'first'") && !said.contains("'after'"), "{act}: {said}");
        // What went through before stays, and nothing of what it said wrongly is there.
        assert!(out.len() >= 16, "{act}: {}", out.len());
        assert_eq!(kept(&redis, &format!("{act}:after:")), model(&out, 9).0, "{act}");
        let has_asked = |key: &Vec<u8>| key.windows(8).any(|of| of == b"FLUSHALL");
        assert!(!redis.all().keys().any(has_asked), "{act}");
    }
    assert!(users(&redis).is_empty());
}

#[test]
fn a_process_that_is_killed_loses_its_batch_alone_and_the_next_goes_on_with_its_state() {
    let folder = Folder::new("killed");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let nfs = vec![quota("quota", &stops(&folder, 9, [1_025, NEVER]))];
    let state = redis.state(Durability::Strict);
    let (status, out, said, _) = stopping(&folder, nfs, &frames, state, |gates| {
        let process = rustix::process::Pid::from_raw(gates[0].reached()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    });
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    // Its batch is lost, and what came before is not counted anew.
    let came = frames.iter().filter(|frame| !(1_000..1_050).contains(&number(frame)));
    let (counts, passed) = model(came, 9);
    assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)));
    assert_eq!(kept(&redis, "journal:quota:"), counts);
    assert_eq!(status.generation, 2, "{said:?}");
}

#[test]
fn what_is_acknowledged_outlives_the_server_and_packets_that_wait_go_on() {
    let folder = Folder::new("restarted");
    let mut redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let nfs = vec![quota("quota", &stops(&folder, 9, [1_500, 2_500]))];
    let mut state = redis.state(Durability::Strict);
    state.wait = Duration::from_secs(60);
    let (status, out, said, _) = stopping(&folder, nfs, &frames, state, |gates| {
        gates[0].reached();
        let before = kept(&redis, "journal:quota:");
        redis.kill();
        gates[0].open();
        gates[1].reached();
        redis.restart();
        let after = kept(&redis, "journal:quota:");
        let is_there = |(flow, count): (&nf::Flow, &u64)| after.get(flow) >= Some(count);
        assert!(!before.is_empty() && before.iter().all(is_there));
        gates[1].open();
    });
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    let (counts, passed) = model(&frames, 9);
    assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)));
    assert_eq!(kept(&redis, "journal:quota:"), counts);
    let held = status.held.unwrap();
    assert_eq!((held.waiting, held.dropped, held.passed), (0, 0, 0));
    assert!(said.iter().any(|line| line.contains("read and written again")), "{said:?}");
    assert!(users(&redis).is_empty());
}

#[test]
fn while_the_server_is_away_the_policy_is_what_packets_do() {
    // Those that wait are dropped in the end; before the server goes, that may happen to some on a slow disk.
    for (away, wait) in [(Policy::Open, 60_000), (Policy::Closed, 60_000), (Policy::Hold, 20)] {
        let folder = Folder::new(&format!("{away:?}"));
        let mut redis = Redis::start(&folder.0, true);
        // The last 500 are of flows that are new.
        let known = (0..2_000).map(|number| frame(number, 300));
        let new = (2_000..2_500).map(|number| frame_of(number, 1_000 + number % 50));
        let frames: Vec<Vec<u8>> = known.chain(new).collect();
        let nfs = vec![quota("quota", &stops(&folder, 9, [1_000, NEVER]))];
        let mut state = redis.state(Durability::Strict);
        (state.away, state.hold, state.wait) = (away, 100, Duration::from_millis(wait));
        let (status, out, said, _) = stopping(&folder, nfs, &frames, state, |gates| {
            gates[0].reached();
            redis.kill();
            gates[0].open();
        });
        let status = status.unwrap_or_else(|why| panic!("{away:?}: {why} {said:?}"));
        let (held, nf) = (status.held.unwrap(), &status.nfs[0]);
        let (_, passed) = model(&frames[..2_000], 9);
        let unread = nf.dropped.get("no-state").copied().unwrap_or(0);
        assert!(said.iter().any(|line| line.contains("cannot be reached")), "{away:?}: {said:?}");
        let out: Vec<u64> = out.iter().map(|frame| number(frame)).collect();
        if away == Policy::Open {
            assert_eq!((out.len(), unread), (passed.len() + 500, 0), "{away:?}");
            assert!(held.passed > 0 && held.dropped == 0, "{away:?}");
        } else {
            // What passes was stored, and nothing is lost without being counted.
            assert!(out.iter().all(|number| *number < 1_000), "{away:?}");
            let dropped: u64 = nf.dropped.values().sum();
            assert_eq!(out.len() as u64 + held.dropped + dropped, 2_500, "{away:?}");
            assert!(unread >= 500, "{away:?}: {unread}");
            assert_eq!(held.passed, 0, "{away:?}");
        }
        if away == Policy::Closed {
            assert_eq!(out.len() as u64 + held.dropped, passed.len() as u64);
        }
        assert_eq!(held.waiting, 0, "{away:?}");
    }
}

#[test]
fn a_server_that_has_no_room_or_has_become_a_replica_is_waited_for() {
    let cases: [(&[&str], &[&str], &str); 2] = [
        (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"], "no room"),
        (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"], "become a replica"),
    ];
    for (index, (refuse, take, due)) in cases.into_iter().enumerate() {
        let folder = Folder::new(&format!("refuses{index}"));
        let redis = Redis::start(&folder.0, true);
        let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
        let nfs = vec![quota("quota", &stops(&folder, 9, [1_500, 2_500]))];
        let mut state = redis.state(Durability::Strict);
        state.wait = Duration::from_secs(60);
        let (status, out, said, _) = stopping(&folder, nfs, &frames, state, |gates| {
            gates[0].reached();
            assert_eq!(redis.operator().call(refuse), "+OK");
            gates[0].open();
            gates[1].reached();
            let is_refused = |info: Vec<u8>| {
                let info = String::from_utf8(info).unwrap();
                info.contains("errorstat_OOM") || info.contains("errorstat_READONLY")
            };
            while !is_refused(redis.operator().values(&[b"INFO", b"errorstats"]).remove(0)) {
                std::thread::yield_now();
            }
            assert_eq!(redis.operator().call(take), "+OK");
            gates[1].open();
        });
        let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
        let (counts, passed) = model(&frames, 9);
        assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)), "{due}");
        assert_eq!(kept(&redis, "journal:quota:"), counts, "{due}");
        assert_eq!(status.held.unwrap().dropped, 0, "{due}");
        assert!(said.iter().any(|line| line.contains(due)), "{due}: {said:?}");
    }
}

#[test]
fn a_server_that_cannot_keep_state_is_refused_with_its_reason() {
    let folder = Folder::new("unfit");
    let redis = Redis::start(&folder.0, false);
    let good = redis.state(Durability::Fast);
    let refused = |name: &str, state: State| {
        let mut spec = spec_of(&folder, vec![quota("quota", "9")], &[frame(0, 1)]);
        spec.state = Some(state);
        let journal = Journal::begin(&folder.0.join(name)).unwrap();
        let nobody = ("/nonexistent".into(), Vec::new());
        let said = Service::new(spec, &nobody, journal).expect_err(name).to_string();
        assert!(!folder.0.join(name).exists() && !said.contains(OPERATOR[1]), "{name}: {said}");
        said
    };
    let strict = || redis.state(Durability::Strict);
    assert!(refused("log", strict()).contains("it has `appendonly no`"));
    let mut operator = redis.operator();
    assert_eq!(operator.call(&["CONFIG", "SET", "appendonly", "yes"]), "+OK");
    assert!(refused("fsync", strict()).contains("it has `appendfsync everysec`"));
    assert_eq!(operator.call(&["CONFIG", "SET", "appendfsync", "always"]), "+OK");
    assert_eq!(operator.call(&["CONFIG", "SET", "no-appendfsync-on-rewrite", "yes"]), "+OK");
    assert!(refused("rewrite", strict()).contains("`no-appendfsync-on-rewrite yes`"));
    let mut wrong = good.clone();
    wrong.server.password = Some(Secret("wrong".into()));
    assert!(refused("password", wrong).contains("refuses the user or the password"));
    let mut wrong = strict();
    (wrong.server.user, wrong.server.password) = (Some("watcher".into()), Some(Secret("w".into())));
    assert!(refused("allowed", wrong).contains("`+config|get`"));
    let mut wrong = good.clone();
    wrong.server.authorities = Some(std::fs::read_to_string(folder.0.join("cert.pem")).unwrap());
    assert!(refused("authority", wrong).contains("TLS to Redis fails"));
    drop(redis);
    assert!(refused("away", good).contains("cannot be reached"));
}

#[test]
fn every_language_keeps_the_same_state() {
    let folder = Folder::new("alike");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..1_000).map(|number| frame(number, 100)).collect();
    let (counts, passed) = model(&frames, 9);
    for language in LANGUAGES {
        let folder = Folder::new(&format!("alike-{language}"));
        let mut spec =
            spec_of(&folder, vec![function(What::Quota, language, &folder, "9")], &frames);
        let name = spec.nfs[0].name.clone();
        spec.state = Some(redis.state(Durability::Strict));
        let (status, out, said, _) = run_as(language, &folder, spec);
        status.unwrap_or_else(|why| panic!("{language}: {why} {said:?}"));
        assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)), "{language}");
        assert_eq!(kept(&redis, &format!("{language}:{name}:")), counts, "{language}");
    }
}

#[test]
fn a_flow_goes_on_in_another_chain_that_shares_its_keys() {
    let folder = Folder::new("moves");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let mut state = redis.state(Durability::Strict);
    state.prefix = Some("shared".into());
    let (counts, passed) = model(&frames, 9);
    // The first chain has other flows after these.
    let others = (3_000..3_100).map(|number| frame_of(number, 2_000 + number % 10));
    let first: Vec<Vec<u8>> = frames[..1_500].iter().cloned().chain(others).collect();
    let nfs = vec![quota("quota", &stops(&folder, 9, [3_000, NEVER]))];
    let (status, _, said, _) = stopping(&folder, nfs, &first, state.clone(), |gates| {
        gates[0].reached();
        let stored = model(&frames[..1_500], 9).0;
        while kept(&redis, "shared:quota:") != stored {
            std::thread::yield_now();
        }
        let other = Folder::new("moved");
        let mut spec = spec_of(&other, vec![quota("quota", "9")], &frames[1_500..]);
        spec.state = Some(state);
        let (status, out, said, _) = run_as("second", &other, spec);
        status.unwrap_or_else(|why| panic!("{why} {said:?}"));
        let rest: Vec<u64> = passed.iter().copied().filter(|number| *number >= 1_500).collect();
        assert_eq!(of_flows(&out), of_flows(only(&frames, &rest)));
        assert_eq!(kept(&redis, "shared:quota:"), counts);
        // What the second takes with it is its own.
        assert_eq!(users(&redis).len(), 1);
        gates[0].open();
    });
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    assert_eq!(status.nfs[0].state.as_ref().unwrap().connections, 1);
    assert_eq!(kept(&redis, "shared:quota:").len(), counts.len() + 10);
}
