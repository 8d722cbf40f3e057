//! State of flows in a real Redis, with TLS and users: it equals a model that replays the packets.

extern crate nf as catena_nf;

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use catena_host::manifest::{Function, Nf};
use catena_host::state::Durability;
use nf::{Flow, field};
use support::redis::Redis;
use support::{Folder, number, run, spec_of};

/// The quota in C.
fn quota(name: &str, most: u64) -> Nf {
    static MADE: OnceLock<std::path::PathBuf> = OnceLock::new();
    let program = MADE.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("quota{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in
            nf::sources::C.iter().chain(&[("quota.c", nf::sources::C_STATE_EXAMPLE)])
        {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-o", "quota", "quota.c", "catena_nf.c"]);
        assert!(cc.current_dir(&folder).status().expect("a C compiler").success());
        folder.join("quota")
    });
    let function = Function::Program(program.clone(), Vec::new());
    Nf { config: most.to_string(), ..Nf::new(name, function) }
}

/// A numbered frame of one of so many flows.
fn frame(number: u64, flows: u64) -> Vec<u8> {
    let flow = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&[10, 0, 0, 1]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, 2]);
    bytes[34..36].copy_from_slice(&((flow % flows) as u16 + 1).to_be_bytes());
    bytes[36..38].copy_from_slice(&[0, 53]);
    bytes[42..50].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// What is kept if these frames went through a quota, and which of them pass.
fn model<'a>(
    frames: impl Iterator<Item = &'a Vec<u8>>,
    most: u64,
) -> (BTreeMap<Flow, u64>, Vec<u64>) {
    let (mut counts, mut passed) = (BTreeMap::new(), Vec::new());
    for frame in frames {
        let count: &mut u64 = counts.entry(Flow::of(frame, field::ALL).unwrap()).or_default();
        if *count < most {
            *count += 1;
            passed.push(number(frame));
        }
    }
    (counts, passed)
}

/// What a server keeps of an NF.
fn kept(redis: &Redis, prefix: &str) -> BTreeMap<Flow, u64> {
    let all = redis.all().into_iter().filter_map(|(key, value)| {
        let flow = key.strip_prefix(prefix.as_bytes())?.try_into().ok()?;
        Some((Flow(flow), u64::from_le_bytes(value.try_into().unwrap())))
    });
    all.collect()
}

#[test]
fn state_equals_a_model_that_replays_the_packets() {
    let folder = Folder::new("model");
    let redis = Redis::start(&folder.0, true);
    let frames: Vec<Vec<u8>> = (0..3_000).map(|number| frame(number, 300)).collect();
    let (counts, passed) = model(frames.iter(), 9);
    let mut spec = spec_of(&folder, vec![quota("quota", 9)], &frames);
    spec.state = Some(redis.state(Durability::Strict));
    let (status, out, said, _) = run(&folder, spec);
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    // Flows keep their order; others overtake those that wait.
    let of_flows = |frames: &[Vec<u8>]| {
        let mut all: BTreeMap<Flow, Vec<u64>> = BTreeMap::new();
        for frame in frames {
            all.entry(Flow::of(frame, field::ALL).unwrap()).or_default().push(number(frame));
        }
        all
    };
    let expected: Vec<Vec<u8>> =
        passed.iter().map(|number| frames[*number as usize].clone()).collect();
    assert_eq!(of_flows(&out), of_flows(&expected));
    assert_eq!(kept(&redis, "journal:quota:"), counts);
    let (held, state) = (status.held.unwrap(), status.nfs[0].state.clone().unwrap());
    assert_eq!((held.waiting, held.dropped, held.passed), (0, 0, 0));
    assert!(held.waited > 0);
    assert_eq!((state.updates, state.acknowledged), (passed.len() as u64, passed.len() as u64));
    // One request a batch, for the flows that are new in it.
    assert_eq!((state.flows, state.unread, state.connections), (300, 0, 1));
    assert!(state.requests <= status.batches, "{state:?}");
    // Its user has gone.
    assert!(
        redis
            .operator()
            .values(&[b"ACL", b"USERS"])
            .iter()
            .all(|user| !user.starts_with(b"catena:"))
    );
}
