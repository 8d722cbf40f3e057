//! State of flows in a real Redis, with TLS and users: it equals a model that replays the packets.

extern crate nf as catena_nf;

mod support;

use catena_host::state::Durability;
use support::redis::{Line, Redis};
use support::state::{
    NEVER, frame, kept, kept_of, model, of_flows, only, quota, stopping, stops, users,
};
use support::{Folder, run, run_as, rust, spec_of};

#[test]
fn state_equals_a_model_that_replays_the_packets() {
    let folder = Folder::new("model");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let (counts, passed) = model(&frames, 9);
    let mut spec = spec_of(&folder, vec![quota("quota", "9")], &frames);
    spec.state = Some(redis.state(Durability::Strict));
    let (status, out, said, _) = run(&folder, spec);
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    assert_eq!(of_flows(&out), of_flows(only(&frames, &passed)));
    assert_eq!(kept(&redis, "journal:quota:"), counts);
    let (held, state) = (status.held.unwrap(), status.nfs[0].state.clone().unwrap());
    assert_eq!((held.waiting, held.dropped, held.passed), (0, 0, 0));
    assert!(held.waited > 0);
    assert_eq!((state.updates, state.acknowledged), (passed.len() as u64, passed.len() as u64));
    // One request a batch, for the flows that are new in it.
    assert_eq!((state.flows, state.unread, state.connections), (300, 0, 1));
    assert!(state.requests <= status.batches, "{state:?}");
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
