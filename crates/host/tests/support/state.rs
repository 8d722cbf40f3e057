//! A quota whose state a chain keeps, what is to become of its packets, and places where it stops for a test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use catena_host::manifest::{Function, Nf};
use catena_host::state::State;
use nf::{Flow, field};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::redis::Redis;
use super::{Folder, Ran, number, run, spec_of};

/// The quota in C, which stops at numbered packets for the test, and says to its host what it must not.
const GATES: &str = include_str!("state/gates.c");

/// No packet has this number.
pub(crate) const NEVER: u64 = u64::MAX;

/// The quota in C.
pub(crate) fn quota(name: &str, config: &str) -> Nf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let program = MADE.get_or_init(|| {
        let folder = format!("quota{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let own = [("quota.c", nf::sources::C_STATE_EXAMPLE), ("gates.c", GATES)];
        for (name, text) in nf::sources::C.iter().chain(&own) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-Wno-unused-function", "-o", "quota", "gates.c"]);
        assert!(cc.current_dir(&folder).status().expect("a C compiler").success());
        folder.join("quota")
    });
    let function = Function::Program(program.clone(), Vec::new());
    Nf { config: config.into(), ..Nf::new(name, function) }
}

/// Where a quota stops for the test: pipes that both have open.
pub(crate) struct Gate {
    here: File,
    go: File,
}

impl Gate {
    fn new(folder: &Folder, index: u32) -> Self {
        let open = |name: &str| {
            let path = folder.0.join(format!("{name}{index}"));
            let made = Command::new("mkfifo").args(["-m", "666"]).arg(&path).status();
            assert!(made.expect("mkfifo").success());
            File::options().read(true).write(true).open(path).unwrap()
        };
        Self { here: open("here"), go: open("go") }
    }

    /// Waits until the quota is here; its process.
    pub(crate) fn reached(&mut self) -> i32 {
        let mut wanted = [PollFd::new(&self.here, PollFlags::IN)];
        let longest = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut wanted, Some(&longest)).unwrap(), 1, "it does not come here");
        let mut text = [0; 32];
        let length = self.here.read(&mut text).unwrap();
        std::str::from_utf8(&text[..length]).unwrap().trim().parse().unwrap()
    }

    /// Lets it go on.
    pub(crate) fn open(&mut self) {
        self.go.write_all(b"x").unwrap();
    }
}

/// A chain that stops at packets, where the test does something. The rounds have 50 packets.
pub(crate) fn stopping(
    folder: &Folder,
    nfs: Vec<Nf>,
    frames: &[Vec<u8>],
    state: State,
    act: impl FnOnce(&mut [Gate; 2]) + Send,
) -> Ran {
    let mut spec = spec_of(folder, nfs, frames);
    spec.state = Some(state);
    spec.batch = Some(50);
    spec.timeout = Duration::from_secs(60);
    let mut gates = [0, 1].map(|index| Gate::new(folder, index));
    std::thread::scope(|scope| {
        scope.spawn(|| act(&mut gates));
        run(folder, spec)
    })
}

/// The configuration of a quota that stops at one or two packets.
pub(crate) fn stops(folder: &Folder, most: u64, gates: [u64; 2]) -> String {
    format!("{most} {} {} {}", folder.0.display(), gates[0], gates[1])
}

/// A numbered frame of one of so many flows.
pub(crate) fn frame(number: u64, flows: u64) -> Vec<u8> {
    let flow = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    frame_of(number, flow % flows)
}

/// A numbered frame of a flow.
pub(crate) fn frame_of(number: u64, flow: u64) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&[10, 0, 0, 1]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, 2]);
    bytes[34..36].copy_from_slice(&(flow as u16 + 1).to_be_bytes());
    bytes[36..38].copy_from_slice(&[0, 53]);
    bytes[42..50].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// What is kept if these frames went through a quota, and which of them pass.
pub(crate) fn model<'a>(
    frames: impl IntoIterator<Item = &'a Vec<u8>>,
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
pub(crate) fn kept(redis: &Redis, prefix: &str) -> BTreeMap<Flow, u64> {
    kept_of(&redis.all(), prefix)
}

/// The same of all that it keeps.
pub(crate) fn kept_of(all: &BTreeMap<Vec<u8>, Vec<u8>>, prefix: &str) -> BTreeMap<Flow, u64> {
    let all = all.iter().filter_map(|(key, value)| {
        let flow = key.strip_prefix(prefix.as_bytes())?.try_into().ok()?;
        Some((Flow(flow), u64::from_le_bytes(value[..].try_into().unwrap())))
    });
    all.collect()
}

/// The numbers of packets by flow: flows keep their order, others overtake those that wait.
pub(crate) fn of_flows<'a>(
    frames: impl IntoIterator<Item = &'a Vec<u8>>,
) -> BTreeMap<Flow, Vec<u64>> {
    let mut all: BTreeMap<Flow, Vec<u64>> = BTreeMap::new();
    for frame in frames {
        all.entry(Flow::of(frame, field::ALL).unwrap()).or_default().push(number(frame));
    }
    all
}

/// Those with these numbers.
pub(crate) fn only<'a>(
    frames: &'a [Vec<u8>],
    numbers: &'a [u64],
) -> impl Iterator<Item = &'a Vec<u8>> {
    frames.iter().filter(|frame| numbers.contains(&number(frame)))
}

/// Users of NFs.
pub(crate) fn users(redis: &Redis) -> Vec<String> {
    let all = redis.operator().values(&[b"ACL", b"USERS"]);
    let all = all.into_iter().map(|user| String::from_utf8(user).unwrap());
    all.filter(|user| user.starts_with("catena:")).collect()
}
