//! The same functions in every language that has a runtime.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use catena_host::Limits;
use catena_host::manifest::{Function, Nf};
use nf::sources;
use nf::{Batch, Counter, NetworkFunction, Packet, Reason, Setup};

use super::Folder;

#[path = "../../../nf/examples/acl.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod acl;
#[path = "../../../nf/examples/quota.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
mod quota;

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The access list that `catena nf init` writes.
    Acl,
    /// The quota, which keeps state.
    Quota,
    /// `same.c`, `same.go`, `same.py`, and [`Same`].
    Same,
}

impl What {
    fn source(self, of: [&str; 3]) -> &str {
        of[self as usize]
    }
}

/// `same.c` in Rust.
struct Same {
    divisor: Option<u64>,
    counters: [Counter; 3],
    reasons: [Reason; 2],
}

impl NetworkFunction for Same {
    fn init(config: &str, setup: &mut Setup) -> Result<Self, String> {
        let words: Vec<&str> = config.split(' ').collect();
        let (counters, reasons, divisor) = match words[0] {
            "name" => (["bad name"; 3], ["x"; 2], None),
            "many" => {
                for number in 0..65 {
                    let _ = setup.counter(&format!("c{number}"));
                }
                (["c0"; 3], ["x"; 2], None)
            }
            "count" => (["packets", "bytes", "bytes"], ["divided", "empty"], words[1].parse().ok()),
            "rewrite" => (["grown", "shrunk", "full"], ["room"; 2], None),
            _ => return Err(format!("no act '{config}'")),
        };
        Ok(Self {
            divisor,
            counters: counters.map(|name| setup.counter(name)),
            reasons: reasons.map(|name| setup.reason(name)),
        })
    }

    fn process(&mut self, batch: &mut Batch) {
        batch.for_each(|packet| match self.divisor {
            Some(divisor) => self.count(packet, divisor),
            None => self.rewrite(packet),
        });
    }
}

impl Same {
    fn count(&self, packet: &mut Packet<'_>, divisor: u64) {
        let [packets, bytes, _] = self.counters;
        let length = packet.bytes().len() as u64;
        packet.count(packets, 1);
        packet.count(bytes, length);
        if length == 0 {
            packet.drop(self.reasons[1]);
        } else if packet.bytes().iter().map(|of| u64::from(*of)).sum::<u64>() % divisor == 0 {
            packet.drop(self.reasons[0]);
        }
    }

    fn rewrite(&self, packet: &mut Packet<'_>) {
        let [grown, shrunk, full] = self.counters;
        let length = packet.bytes().len();
        let tag = [0x81, 0, packet.port() as u8, packet.group() as u8];
        let (time, hash) = (packet.time().to_le_bytes(), packet.hash() as u8);
        match length % 4 {
            0 if packet.push(4) => {
                let bytes = packet.bytes_mut().unwrap();
                bytes.copy_within(4..4 + length.min(12), 0);
                if let Some(place) = bytes.get_mut(12..16) {
                    place.copy_from_slice(&tag);
                }
                packet.count(grown, 1);
            }
            1 if packet.pull(3) => packet.count(shrunk, 1),
            2 if packet.resize(length + 9) => {
                let behind = &mut packet.bytes_mut().unwrap()[length..];
                behind[..8].copy_from_slice(&time);
                behind[8] = hash;
                packet.count(grown, 1);
            }
            3 if packet.resize(length - 1) => {
                packet.bytes_mut().unwrap()[0] ^= 0x5a;
                packet.count(shrunk, 1);
            }
            2 => packet.drop(self.reasons[0]),
            _ => packet.count(full, 1),
        }
    }
}

#[test]
fn nf_same() {
    if std::env::args().any(|word| word == "--nocapture") {
        nf::run::<Same>().unwrap();
    }
}

#[test]
fn nf_acl() {
    if std::env::args().any(|word| word == "--nocapture") {
        nf::run::<acl::AccessList>().unwrap();
    }
}

#[test]
fn nf_quota() {
    if std::env::args().any(|word| word == "--nocapture") {
        nf::run::<quota::Quota>().unwrap();
    }
}

const SAME_C: &str = include_str!("same/same.c");
const SAME_GO: &str = include_str!("same/same.go");
const SAME_PYTHON: &str = include_str!("same/same.py");

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Where programs are built, once for all tests of a process.
fn built(name: &str, build: impl FnOnce(&Path)) -> PathBuf {
    let folder = format!("{name}{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    build(&folder);
    folder.join("program")
}

fn in_c(what: What) -> PathBuf {
    static MADE: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let build = |folder: &Path| {
        let main = what.source([sources::C_EXAMPLE, sources::C_STATE_EXAMPLE, SAME_C]);
        sources::C
            .iter()
            .chain(&[("main.c", main)])
            .for_each(|(name, text)| write(folder, name, text));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror", "-o", "program", "main.c", "catena_nf.c"]);
        assert!(cc.current_dir(folder).status().expect("a C compiler").success());
    };
    MADE[what as usize].get_or_init(|| built(&format!("c-{what:?}"), build)).clone()
}

fn in_go(what: What) -> PathBuf {
    static MADE: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let build = |folder: &Path| {
        let main = what.source([sources::GO_EXAMPLE, sources::GO_STATE_EXAMPLE, SAME_GO]);
        write(folder, "main.go", main);
        for (name, text) in sources::GO {
            write(folder, &format!("nf/{name}"), text);
        }
        let (module, version) = (sources::GO_MODULE, sources::GO_VERSION);
        write(folder, "nf/go.mod", &format!("module {module}\n\ngo {version}\n"));
        let own = format!(
            "module example.com/f\n\ngo {version}\n\nrequire {module} v0.0.0\n\nreplace {module} => ./nf\n"
        );
        write(folder, "go.mod", &own);
        let mut go = Command::new("go");
        go.args(["build", "-o", "program", "."]).current_dir(folder);
        // It is built in a folder of this repository, of which nothing is asked.
        go.env("GOPROXY", "off").env("GOFLAGS", "-buildvcs=false").env("GOTOOLCHAIN", "local");
        assert!(go.status().expect("Go: Debian's package golang-go").success());
    };
    MADE[what as usize].get_or_init(|| built(&format!("go-{what:?}"), build)).clone()
}

/// The script is where everybody can read it: its function has a user of its own.
fn in_python(what: What, folder: &Folder) -> PathBuf {
    let main = what.source([sources::PYTHON_EXAMPLE, sources::PYTHON_STATE_EXAMPLE, SAME_PYTHON]);
    let name = format!("{what:?}/main.py");
    write(&folder.0, &name, main);
    for (file, text) in sources::PYTHON {
        write(&folder.0, &format!("{what:?}/{file}"), text);
    }
    let path = folder.0.join(name);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, all).unwrap();
    path
}

pub(crate) const LANGUAGES: [&str; 4] = ["rust", "c", "go", "python"];

/// A function in a language.
pub(crate) fn function(what: What, language: &str, folder: &Folder, config: &str) -> Nf {
    let (program, arguments, threads) = match language {
        "rust" => {
            let test = what.source(["nf_acl", "nf_quota", "nf_same"]);
            let test = format!("support::languages::{test}");
            let words = ["--exact", &test, "--nocapture", "--quiet", "--test-threads=1"];
            (std::env::current_exe().unwrap(), words.map(str::to_string).to_vec(), 2)
        }
        "c" => (in_c(what), Vec::new(), 1),
        "go" => (in_go(what), Vec::new(), sources::GO_THREADS),
        _ => (in_python(what, folder), Vec::new(), 1),
    };
    let limits = Limits { threads, ..Limits::default() };
    let function = Function::Program(program, arguments);
    Nf { config: config.into(), limits, ..Nf::new(language, function) }
}

/// One that passes what comes, and looks that it comes in order: in a language that is named, as `name`.
pub(crate) fn passes(language: &str, name: &str, folder: &Folder) -> Nf {
    match language {
        "rust" => super::rust(name, "pass"),
        "c" => super::c(name, "pass"),
        _ => Nf { name: name.into(), ..function(What::Same, language, folder, "pass") },
    }
}
