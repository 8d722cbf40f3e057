//! Applications of `catena netbench` in containers, by the runtimes themselves.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use serde_json::Value;

use crate::CATENA;
use crate::netbench::{count, left, netbench, short};

/// The runtimes that give applications a root file system.
const RUNTIMES: [&str; 4] = ["runc", "crun", "podman", "lxc"];

/// Bits of the capabilities for raw sockets and AF_XDP: NET_BIND_SERVICE, NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, SYS_NICE, PERFMON, BPF.
const CAPABILITIES: u64 =
    1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21 | 1 << 23 | 1 << 38 | 1 << 39;

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_of(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|last| last.to_string_lossy().starts_with(name))
}

/// What a run of netbench makes, as it is found from outside.
struct Made {
    /// What names of its namespaces and journals begin with.
    name: String,
    /// The marks of its journals.
    marks: BTreeSet<String>,
}

impl Made {
    fn of(run: &Process) -> Self {
        Self { name: format!("netbench{}-", run.id()), marks: BTreeSet::new() }
    }

    /// Reads the journals that are there now.
    fn look(&mut self) {
        for folder in below(Path::new("/run/catena/netbench")).filter(|of| is_of(of, &self.name)) {
            let text = fs::read_to_string(folder.join("journal")).unwrap_or_default();
            let marks = text.lines().filter_map(|line| line.strip_prefix("mark "));
            self.marks.extend(marks.map(str::to_string));
        }
    }

    fn names(&self, text: &str) -> bool {
        text.contains(&self.name) || self.marks.iter().any(|mark| text.contains(mark))
    }

    /// Its processes: their folders below /proc.
    fn processes(&self) -> Vec<PathBuf> {
        let read = |path: PathBuf| {
            String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
        };
        let is_own = |process: &PathBuf| {
            ["environ", "cmdline"].iter().any(|file| self.names(&read(process.join(file))))
        };
        below(Path::new("/proc"))
            .filter(|path| path.join("environ").exists())
            .filter(is_own)
            .collect()
    }

    /// A receiver in a container: its folder below /proc.
    fn receiver(&self) -> Option<PathBuf> {
        self.processes().into_iter().find(|process| {
            let words = fs::read(process.join("cmdline")).unwrap_or_default();
            words.starts_with(b"/usr/bin/catena\0netbench\0recv\0")
        })
    }

    /// All that is left of it.
    fn left(&self) -> Vec<String> {
        assert!(!self.marks.is_empty());
        let mut found = left(&self.name);
        let mut groups = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
        while let Some((folder, depth)) = groups.pop() {
            for group in below(&folder).filter(|path| path.is_dir()) {
                if self.names(&group.to_string_lossy()) {
                    found.push(group.display().to_string());
                }
                if depth < 3 {
                    groups.push((group, depth + 1));
                }
            }
        }
        let images = self.marks.iter().map(|mark| Path::new("/var/lib/catena/images").join(mark));
        let locks = below(Path::new("/run/lxc/lock/run/catena/netbench"));
        let short = self.marks.iter().map(|mark| Path::new("/tmp").join(format!("catena-{mark}")));
        let files = images.chain(short).filter(|path| path.exists());
        let files = files.chain(locks.filter(|path| is_of(path, &self.name)));
        found.extend(files.chain(self.processes()).map(|path| path.display().to_string()));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        found.extend(mounts.lines().filter(|line| self.names(line)).map(str::to_string));
        found
    }
}

const LOAD: [&str; 12] = [
    "--switch",
    "linux-bridge",
    "--size",
    "64",
    "--rate",
    "10k",
    "--burst",
    "4",
    "--repeat",
    "1",
    "--json",
    "--keep-settings",
];

fn start(runtime: &str, more: &[&str]) -> Process {
    Process::start(&mut netbench(&[&["run", "--container", runtime], &LOAD[..], more].concat()))
}

/// Waits for a receiver of a run: its folder below /proc.
fn receiver(made: &mut Made) -> PathBuf {
    let mut found = None;
    until("a receiver is in a container", || {
        made.look();
        found = made.receiver();
        found.is_some()
    });
    found.unwrap()
}

/// What was sent is what came, how long containers took is known, and nothing of them is left: also after kill -9.
fn measures_in_containers_of(runtime: &str) {
    if !possible() {
        return;
    }
    let own = |what: &str| fs::read_link(format!("/proc/self/ns/{what}")).unwrap();
    let systems =
        ["/var/lib/containers", "/dev/shm/libpod_lock"].map(|path| Path::new(path).exists());
    let run = start(runtime, &["--seconds", "0.2", "--io", "af-packet-mmsg,af-xdp"]);
    let mut made = Made::of(&run);
    receiver(&mut made);
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(0), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        let sample = &cell["samples"][0];
        let all = &sample["throughput"];
        assert_eq!(
            (count(all, "sent"), count(all, "counted_sent")),
            (2000, 2000),
            "{}",
            short(cell)
        );
        let came = count(all, "received") + count(all, "overrun");
        assert_eq!(came, count(all, "counted_received"), "{}", short(cell));
        assert_eq!(count(all, "received") + count(all, "lost"), 2000, "{}", short(cell));
        assert_eq!(count(&sample["round_trips"], "sent"), 2000, "{}", short(cell));
        let starts = sample["container_seconds"].as_array().unwrap();
        assert_eq!(starts.len(), 4);
        assert!(starts.iter().all(|seconds| seconds.as_f64().is_some_and(|s| s > 0.0)));
    }
    assert_eq!(made.left(), Vec::<String>::new());

    let run = start(runtime, &["--seconds", "1000", "--throughput"]);
    let mut made = Made::of(&run);
    let process = receiver(&mut made);
    // It is in a container: it has its own processes and files, and the capabilities that it needs.
    for what in ["pid", "mnt", "ipc", "uts", "net"] {
        assert_ne!(fs::read_link(process.join("ns").join(what)).unwrap(), own(what), "{what}");
    }
    let names = |folder: &str| {
        let all = below(&process.join("root").join(folder));
        all.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("usr/bin"), ["catena"]);
    let status = fs::read_to_string(process.join("status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
        assert_eq!(field(set), CAPABILITIES, "{set} {:x}", field(set));
    }
    assert_eq!(field("NoNewPrivs:"), 1);
    run.kill();
    // Another run may take it down, too.
    until("it is taken down", || {
        let (code, _, told) = Process::start(&mut netbench(&["clean"])).ended();
        assert_eq!(code, Some(0), "{told}");
        made.left().is_empty()
    });
    let now = ["/var/lib/containers", "/dev/shm/libpod_lock"].map(|path| Path::new(path).exists());
    assert_eq!(now, systems);
}

#[test]
fn applications_run_in_containers_of_runc() {
    measures_in_containers_of("runc");
}

#[test]
fn applications_run_in_containers_of_crun() {
    measures_in_containers_of("crun");
}

#[test]
fn applications_run_in_containers_of_podman() {
    measures_in_containers_of("podman");
}

#[test]
fn applications_run_in_containers_of_lxc() {
    measures_in_containers_of("lxc");
}

/// A container that does not start fails its cell with what its runtime printed; the set goes on.
#[test]
fn a_container_that_does_not_start_fails_its_cell_alone() {
    if !possible() {
        return;
    }
    // Root runs this program by a capability that applications in containers do not have. LXC starts it before it gives that up: its root file
    // system is where programs cannot be run, in this mount namespace alone.
    let network = Network::new(&[]);
    let program = network.folder().join("catena");
    fs::copy(CATENA.0, &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o001)).unwrap();
    let images = "/var/lib/catena/images";
    let script = format!(
        "mkdir -p {images} && mount -t tmpfs -o noexec tmpfs {images} && exec \"$0\" \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(&program);
    let all = format!("plain,{}", RUNTIMES.join(","));
    command.args(["netbench", "run", "--container", &all]);
    command.args(LOAD).args(["--seconds", "0.2", "--throughput"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Process::start(&mut command);
    let mut made = Made::of(&run);
    until("it has begun", || {
        made.look();
        !made.marks.is_empty()
    });
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(1), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 5);
    for cell in cells {
        let name = cell["container"].as_str().unwrap();
        let failures = cell["failures"].as_array().unwrap();
        let samples = cell["samples"].as_array().unwrap().len();
        if name == "plain" {
            assert_eq!((failures.len(), samples), (0, 1), "{told}");
            continue;
        }
        assert_eq!((failures.len(), samples), (1, 0), "{name}: {told}");
        let why = failures[0].as_str().unwrap();
        assert!(why.contains("of pair 1 ended (exit status: "), "{name}: {why}");
        assert!(why.to_lowercase().contains("permission denied"), "{name}: {why}");
    }
    assert_eq!(made.left(), Vec::<String>::new());
}
