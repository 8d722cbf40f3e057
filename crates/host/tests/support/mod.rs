//! Chains of real processes: numbered packets go through NFs in every language, which end, hang, and forge.
//!
//! The test `nf_acts` is an NF where a host starts it: the program of the tests is run again for that.
#![allow(dead_code, reason = "each program of tests uses some of it")]

pub(crate) mod languages;
pub(crate) mod redis;
pub(crate) mod state;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use catena_host::manifest::{Function, Nf};
use catena_host::service::Status;
use catena_host::{Failure, HostChain, Journal, Limits, Service};
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

pub(crate) fn number(bytes: &[u8]) -> u64 {
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
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

/* What must fail. */
#define NEVER(call) do { if ((long)(call) >= 0) { fprintf(stderr, "%s was allowed\n", #call); abort(); } } while (0)

static int has_own_user(void) { return getuid() >= 0x70000000u; }

/* Tries to reach into its siblings and into who started it. */
static void reach(int tried) {
    DIR *all = opendir("/proc");
    struct dirent *entry;
    while (all && (entry = readdir(all))) {
        int pid = atoi(entry->d_name), parent = 0;
        char path[64], bytes[64];
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *stat = pid ? fopen(path, "r") : NULL;
        if (!stat) continue;
        if (fscanf(stat, "%*d (%*[^)]) %*c %d", &parent) != 1) parent = 0;
        fclose(stat);
        if (pid == getpid() || (pid != getppid() && parent != getppid())) continue;
        catena_count(tried, 1);
        NEVER(ptrace(PTRACE_ATTACH, pid, 0, 0));
        NEVER(ptrace(PTRACE_SEIZE, pid, 0, 0));
        struct iovec here = {bytes, sizeof bytes}, there = {(void *)self.host, sizeof bytes};
        NEVER(process_vm_readv(pid, &here, 1, &there, 1, 0));
        NEVER(process_vm_writev(pid, &here, 1, &there, 1, 0));
        int handle = (int)syscall(SYS_pidfd_open, pid, 0);
        for (int file = 0; file < 64; file++) NEVER(syscall(SYS_pidfd_getfd, handle, file, 0));
        struct sched_param priority = {.sched_priority = 1};
        NEVER(sched_setscheduler(pid, SCHED_FIFO, &priority));
        if (!has_own_user()) continue;
        NEVER(kill(pid, 0));
        snprintf(path, sizeof path, "/proc/%d/mem", pid);
        NEVER(open(path, O_RDWR));
        NEVER(open(path, O_RDONLY));
        for (int file = 0; file < 64; file++) {
            snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
            NEVER(open(path, O_RDWR));
        }
    }
    closedir(all);
}

static void *sleeps(void *of) {
    for (;;) pause();
    return of;
}

/* Tries to take cores, priorities, processes, and what the kernel has beside. */
static void take_more(void) {
    struct sched_param priority = {.sched_priority = 99};
    cpu_set_t cores;
    memset(&cores, 0xff, sizeof cores);
    NEVER(sched_setscheduler(0, SCHED_FIFO, &priority));
    NEVER(sched_setparam(0, &priority));
    NEVER(sched_setaffinity(0, sizeof cores, &cores));
    NEVER(setpriority(PRIO_PROCESS, 0, -20));
    NEVER(syscall(SYS_sched_setattr, 0, &priority, 0));
    for (int i = 0; i < 1000; i++) NEVER(fork());
    NEVER(vfork());
    NEVER(unshare(CLONE_NEWUSER));
    NEVER(unshare(CLONE_NEWNS));
    NEVER(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    NEVER(syscall(SYS_clone3, 0, 0));
    pthread_t thread;
    NEVER(pthread_create(&thread, NULL, sleeps, NULL) == 0 ? 0 : -1);
    NEVER(socket(AF_INET, SOCK_STREAM, 0));
    NEVER(socket(AF_UNIX, SOCK_STREAM, 0));
    NEVER(syscall(SYS_bpf, 0, 0, 0));
    NEVER(syscall(SYS_memfd_create, "x", 0));
    NEVER(syscall(SYS_userfaultfd, 0));
    NEVER(syscall(SYS_io_uring_setup, 1, 0));
    NEVER(syscall(SYS_perf_event_open, 0, 0, 0, 0, 0));
    NEVER(syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, 0));
    NEVER(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -1 : 0);
    NEVER(open("/etc/passwd", O_WRONLY));
    NEVER(open("/usr/bin/new", O_WRONLY | O_CREAT, 0755));
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    /* A container has none; its control group limits it. */
    if (has_own_user() && getppid() != 0) NEVER(setrlimit(RLIMIT_DATA, &all));
}

/* Threads of which it may have four, and no more of its own user. */
static void have_threads(void) {
    pthread_t thread;
    int made = 0;
    while (made < 200 && pthread_create(&thread, NULL, sleeps, NULL) == 0) made++;
    if (made < 3 || (has_own_user() && made == 200)) abort();
}

/* Memory without end; it gives up where it gets no more. */
static void eat(int flags) {
    for (int i = 0; i < 1024; i++) {
        void *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
        if (at == MAP_FAILED) return;
        memset(at, 1, 1 << 20);
    }
    fprintf(stderr, "it has a gigabyte\n");
    abort();
}

static char what[16];
static int due, had, tried;

static int init(const char *config, struct catena_setup *setup) {
    catena_counter(setup, "seen");
    tried = catena_counter(setup, "tried");
    if (strcmp(config, "refuse") == 0) return catena_refuse(setup, "as it was told to");
    sscanf(config, "%15s %d", what, &due);
    return 0;
}

static void process(struct catena_packet *packets, uint32_t count) {
    catena_count(0, count);
    had += (int)count;
    if (had == (int)count) {
        if (strcmp(what, "reach") == 0) reach(tried);
        if (strcmp(what, "take") == 0) take_more();
        if (strcmp(what, "threads") == 0) have_threads();
        if (strcmp(what, "eat") == 0) eat(MAP_PRIVATE);
        if (strcmp(what, "share") == 0) eat(MAP_SHARED);
    }
    if (strcmp(what, "crash") == 0 && had >= due) abort();
    if (strcmp(what, "hang") == 0 && had >= due) for (;;) __asm__ volatile("");
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
pub(crate) fn in_c() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nf{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in nf::sources::C.iter().chain(&[("attack.c", ATTACK)]) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-pthread", "-o", "attack", "attack.c"])
            .current_dir(&folder);
        assert!(cc.status().expect("a C compiler").success());
        folder.join("attack")
    })
    .clone()
}

pub(crate) fn rust(name: &str, config: &str) -> Nf {
    let words = ["--exact", "support::nf_acts", "--nocapture", "--quiet", "--test-threads=1"]
        .map(str::to_string);
    let function = Function::Program(std::env::current_exe().unwrap(), words.to_vec());
    // The harness of tests runs each in a thread.
    let limits = Limits { threads: 2, ..Limits::default() };
    Nf { config: config.into(), limits, ..Nf::new(name, function) }
}

pub(crate) fn c(name: &str, config: &str) -> Nf {
    let function = Function::Program(in_c(), Vec::new());
    Nf { config: config.into(), ..Nf::new(name, function) }
}

/// A folder for a test's files, which goes with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-host-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        // NFs have users of their own.
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&path, all).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn frame(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A chain between captures, with so many numbered packets.
pub(crate) fn spec(folder: &Folder, nfs: Vec<Nf>, packets: u64) -> HostChain {
    spec_of(folder, nfs, &(0..packets).map(frame).collect::<Vec<_>>())
}

/// A chain between captures, with these packets.
pub(crate) fn spec_of(folder: &Folder, nfs: Vec<Nf>, frames: &[Vec<u8>]) -> HostChain {
    let input = folder.path("in.pcap");
    let options = Options::for_file_name(Path::new(&input));
    let mut writer = Writer::new(File::create(&input).unwrap(), &options).unwrap();
    for (time, frame) in (0..).zip(frames) {
        writer.write(time, frame, frame.len() as u32).unwrap();
    }
    writer.finish().unwrap();
    let nothing = Function::Click(String::new());
    let mut spec = HostChain::alone("none", nothing, String::new(), input, folder.path("out.pcap"));
    spec.nfs = nfs;
    spec.timeout = Duration::from_secs(10);
    spec
}

/// What came of it, the frames that were sent, what was said meanwhile, and the mark of what was made.
pub(crate) type Ran = (Result<Status, Failure>, Vec<Vec<u8>>, Vec<String>, String);

/// Runs a chain to the end of its capture.
pub(crate) fn run(folder: &Folder, spec: HostChain) -> Ran {
    run_as("journal", folder, spec)
}

/// The same of a chain of this name.
pub(crate) fn run_as(name: &str, folder: &Folder, spec: HostChain) -> Ran {
    let at = folder.0.join(name);
    let journal = Journal::begin(&at).unwrap();
    let written = std::fs::read_to_string(at.join("journal")).unwrap();
    let mark = written.lines().find_map(|line| line.strip_prefix("mark ")).unwrap().to_string();
    let nobody = (PathBuf::from("/nonexistent"), Vec::new());
    let output = spec.output.clone();
    let service = Service::new(spec, &nobody, journal).unwrap();
    let mut said = Vec::new();
    let status = service.run(None, &mut |line| said.push(line.to_string()));
    assert!(!at.exists(), "all is taken down");
    let mut frames = Vec::new();
    let mut reader = Reader::open(BufReader::new(File::open(output).unwrap())).unwrap();
    while let Ok(Some(record)) = reader.next() {
        frames.push(record.data.to_vec());
    }
    (status, frames, said, mark)
}

pub(crate) fn in_order(frames: &[Vec<u8>]) -> bool {
    frames.windows(2).all(|pair| number(&pair[0]) < number(&pair[1]))
}

/// Control groups, files and mounts that carry a mark.
pub(crate) fn left(mark: &str) -> Vec<String> {
    let short = Path::new("/tmp").join(format!("catena-{mark}"));
    let mut found = vec![Path::new("/var/lib/catena/images").join(mark), short];
    let mut folders = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in below.map(|of| of.path()).filter(|path| path.is_dir()) {
            found.push(path.clone());
            if depth < 4 {
                folders.push((path, depth + 1));
            }
        }
    }
    let is_left = |path: &PathBuf| path.exists() && path.to_string_lossy().contains(mark);
    let mut found: Vec<String> =
        found.into_iter().filter(is_left).map(|path| path.display().to_string()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(mark)).map(str::to_string));
    found
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0)
}
