//! Chains of real processes: numbered packets go through NFs in Rust and in C, which end, hang, and forge.
//!
//! The test `nf_acts` is an NF where a host starts it: this program is run again for that.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use catena_host::manifest::{Function, HandOff, Nf, Policy, Within};
use catena_host::service::Status;
use catena_host::{Failure, HostChain, Journal, Service};
use net::pcap::{Options, Reader, Writer};
use nf::{Batch, Counter, NetworkFunction, Reason, Setup};

/// Numbers of packets stand here.
const NUMBER: usize = 42;

/// Passes what comes, but for what its configuration says: `drop N` drops each packet whose number N divides, `end FILE N`
/// and `hang FILE N` end or hang at the packet with that number, the first time: then they make the file.
struct Acts {
    words: Vec<String>,
    seen: Counter,
    divided: Reason,
    last: Option<u64>,
}

impl Acts {
    fn is(&self, word: &str) -> bool {
        self.words.first().is_some_and(|first| first == word)
    }

    fn divisor(&self) -> u64 {
        self.words.get(1).and_then(|word| word.parse().ok()).unwrap_or(1)
    }

    /// Whether it is the first to come here.
    fn is_due(&self, number: u64) -> bool {
        let at = self.words.get(2).and_then(|word| word.parse::<u64>().ok());
        at.is_some_and(|at| number >= at) && File::create_new(&self.words[1]).is_ok()
    }
}

fn number(bytes: &[u8]) -> u64 {
    let of = bytes.get(bytes.len() - 18..bytes.len() - 10).and_then(|of| of.try_into().ok());
    of.map_or(u64::MAX, u64::from_be_bytes)
}

impl NetworkFunction for Acts {
    fn init(config: &str, setup: &mut Setup) -> Result<Self, String> {
        if config == "refuse" {
            return Err("as it was told to".into());
        }
        let words = config.split(' ').map(str::to_string).collect();
        Ok(Self {
            words,
            seen: setup.counter("seen"),
            divided: setup.reason("divided"),
            last: None,
        })
    }

    fn process(&mut self, batch: &mut Batch) {
        batch.for_each(|packet| {
            let number = number(packet.bytes());
            // What comes twice or in another order is found by the first NF that sees it.
            assert!(self.last.is_none_or(|last| last < number));
            self.last = Some(number);
            packet.count(self.seen, 1);
            if self.is("end") && self.is_due(number) {
                std::process::abort();
            }
            if self.is("hang") && self.is_due(number) {
                loop {
                    std::hint::spin_loop();
                }
            }
            if self.is("drop") && number.is_multiple_of(self.divisor()) {
                packet.drop(self.divided);
            }
            if self.is("tag") && packet.push(4) {
                let Some(bytes) = packet.bytes_mut() else { return };
                bytes.copy_within(4..16, 0);
                bytes[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
            }
            if self.is("untag") && packet.pull(4) {
                let Some(bytes) = packet.bytes_mut() else { return };
                bytes[12..14].copy_from_slice(&[8, 0]);
            }
        });
    }
}

#[test]
fn nf_acts() {
    if std::env::args().any(|word| word == "--nocapture") && nf::run::<Acts>().is_err() {
        // Its host reads that it ended so.
        std::process::abort();
    }
}

const ATTACK: &str = r#"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
/* Every descriptor stays. */
#define close(file) ((void)(file))
#include "catena_nf.c"

static char what[16];

static int init(const char *config, struct catena_setup *setup) {
    catena_counter(setup, "seen");
    snprintf(what, sizeof what, "%s", config);
    return 0;
}

static void process(struct catena_packet *packets, uint32_t count) {
    catena_count(0, count);
    if (strcmp(what, "write") == 0 && count) packets[0].data[0] = 1;
    if (strcmp(what, "raise") == 0)
        for (uint32_t i = 0; i < load(self.host + COUNT); i++)
            store(entry(self.own, i), 60 | 128ull << 32 | 1ull << 48);
    if (strcmp(what, "outside") == 0 && count) packets[0].length = 1u << 31;
    if (strcmp(what, "skip") == 0) {
        release(self.own + ROUND, self.round + 5);
        while (write(self.wake_next, &(uint64_t){1}, 8) > 0) pause();
    }
    if (strcmp(what, "map") == 0) {
        char path[64];
        int memories = 0;
        for (int file = 3; file < 64; file++) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", file);
            char name[64] = "";
            if (readlink(path, name, sizeof name - 1) < 0) continue;
            /* It has inherited nothing. */
            if (name[0] == '/' && strncmp(name, "/memfd:", 7) != 0) abort();
            memories += name[0] == (char)47;
            int again = open(path, O_RDWR);
            void *at = again < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, again, 0);
            if (at != MAP_FAILED) memset(at, 0xff, 4096);
            at = again < 0 ? at : mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, file, 0);
            if (at != MAP_FAILED) memset(at, 0xff, 4096);
            if (again >= 0 && pwrite(again, "x", 1, 128) > 0) abort();
            if (again >= 0) syscall(SYS_close, again);
        }
        if (memories < 3) abort();
        if (mprotect(self.region, 4096, PROT_READ | PROT_WRITE) == 0) memset(self.region, 0xff, 4096);
        if (mprotect((void *)self.host, 4096, PROT_READ | PROT_WRITE) == 0) memset((void *)self.host, 0xff, 4096);
    }
}

int main(void) {
    static const struct catena_nf nf = {init, process};
    return catena_nf_main(&nf);
}
"#;

/// The NF in C.
fn in_c() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nf{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in nf::sources::C.iter().chain(&[("attack.c", ATTACK)]) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-o", "attack", "attack.c"]).current_dir(&folder);
        assert!(cc.status().expect("a C compiler").success());
        folder.join("attack")
    })
    .clone()
}

fn rust(name: &str, config: &str) -> Nf {
    let words = ["--exact", "nf_acts", "--nocapture", "--quiet"].map(str::to_string);
    let function = Function::Program(std::env::current_exe().unwrap(), words.to_vec());
    Nf { name: name.into(), function, config: config.into(), writes: true }
}

fn c(name: &str, config: &str) -> Nf {
    let function = Function::Program(in_c(), Vec::new());
    Nf { name: name.into(), function, config: config.into(), writes: true }
}

/// A folder for a test's files, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-host-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn frame(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A chain between captures, with so many numbered packets.
fn spec(folder: &Folder, nfs: Vec<Nf>, packets: u64) -> HostChain {
    let input = folder.path("in.pcap");
    let options = Options::for_file_name(Path::new(&input));
    let mut writer = Writer::new(File::create(&input).unwrap(), &options).unwrap();
    for number in 0..packets {
        writer.write(number, &frame(number), 60).unwrap();
    }
    writer.finish().unwrap();
    let nothing = Function::Click(String::new());
    let mut spec = HostChain::alone("none", nothing, String::new(), input, folder.path("out.pcap"));
    spec.nfs = nfs;
    spec.timeout = Duration::from_secs(10);
    spec
}

/// What came of it, the frames that were sent, and what was said meanwhile.
fn run(folder: &Folder, spec: HostChain) -> (Result<Status, Failure>, Vec<Vec<u8>>, Vec<String>) {
    let journal = Journal::begin(&folder.0.join("journal")).unwrap();
    let nobody = (PathBuf::from("/nonexistent"), Vec::new());
    let output = spec.output.clone();
    let service = Service::new(spec, &nobody, journal).unwrap();
    let mut said = Vec::new();
    let status = service.run(None, &mut |line| said.push(line.to_string()));
    assert!(!folder.0.join("journal").exists(), "all is taken down");
    let mut frames = Vec::new();
    let mut reader = Reader::open(BufReader::new(File::open(output).unwrap())).unwrap();
    while let Ok(Some(record)) = reader.next() {
        frames.push(record.data.to_vec());
    }
    (status, frames, said)
}

fn in_order(frames: &[Vec<u8>]) -> bool {
    frames.windows(2).all(|pair| number(&pair[0]) < number(&pair[1]))
}

#[test]
fn all_packets_go_through_chains_of_every_length_in_order() {
    let ways = [
        (HandOff::Baton, Within::Temporal, Policy::Other),
        (HandOff::Yield, Within::Temporal, Policy::Other),
        (HandOff::Baton, Within::Copy, Policy::Batch),
    ];
    for length in 1..=4 {
        for (hand_off, within, policy) in ways {
            let folder = Folder::new(&format!("order{length}{hand_off:?}{within:?}"));
            let nfs = (0..length).map(|at| {
                let name = format!("nf{at}");
                if at % 2 == 0 { rust(&name, "pass") } else { c(&name, "pass") }
            });
            let mut spec = spec(&folder, nfs.collect(), 2_000);
            (spec.hand_off, spec.within, spec.policy) = (hand_off, within, policy);
            let (status, frames, said) = run(&folder, spec);
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
            rust("out", "untag"),
        ];
        let mut spec = spec(&folder, nfs, 999);
        spec.within = within;
        let (status, frames, _) = run(&folder, spec);
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
    for (act, said_of) in [("end", "signal 6 ended it"), ("hang", "has kept a batch")] {
        let folder = Folder::new(act);
        let acts = format!("{act} {} 1000", folder.path("once"));
        let mut spec = spec(
            &folder,
            vec![c("before", "pass"), rust("acts", &acts), c("after", "pass")],
            3_000,
        );
        spec.batch = Some(50);
        spec.timeout = Duration::from_millis(300);
        let (status, frames, said) = run(&folder, spec);
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
    let (status, frames, said) = run(&folder, spec(&folder, vec![rust("first", "pass"), nf], 100));
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
        let (status, frames, said) = run(&folder, spec);
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
    let (status, frames, said) = run(&folder, spec(&folder, nfs, 200));
    let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
    assert_eq!(frames, (0..200).map(frame).collect::<Vec<_>>());
    assert_eq!(status.failures, 0);
}

#[test]
fn why_an_nf_did_not_start_is_said() {
    let program = |path: &str| Nf {
        name: "odd".into(),
        function: Function::Program(path.into(), Vec::new()),
        config: String::new(),
        writes: true,
    };
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
