//! The same access list in each language: what a packet costs.

use std::path::{Path, PathBuf};
use std::process::Command;

use catena_host::Limits;
use catena_host::manifest::{Function, HandOff, Nf};
use nf::sources;

use super::{measured, run::shown};

#[path = "../../../nf/examples/acl.rs"]
#[allow(dead_code, reason = "it has a main of its own")]
pub(crate) mod acl;

const CONFIG: &str = "deny 10.9.9.1\ndeny 10.9.9.2\ndeny 10.9.9.3\ndeny 10.9.9.4\n";

/// Packets of a batch.
const BATCHES: [usize; 2] = [32, 256];

fn run(folder: &Path, words: &[&str]) {
    let (program, arguments) = words.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("GOPROXY", "off").env("GOFLAGS", "-buildvcs=false").env("GOTOOLCHAIN", "local");
    assert!(command.status().expect(program).success(), "{words:?}");
}

/// The access list in each language, in a folder.
fn functions(folder: &Path) -> [(&'static str, Nf); 4] {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    sources::C.iter().chain(&sources::PYTHON).for_each(|(name, text)| write(name, text));
    write("acl.c", sources::C_EXAMPLE);
    write("main.py", sources::PYTHON_EXAMPLE);
    write("go/main.go", sources::GO_EXAMPLE);
    sources::GO.iter().for_each(|(name, text)| write(&format!("go/nf/{name}"), text));
    let (module, version) = (sources::GO_MODULE, sources::GO_VERSION);
    write("go/nf/go.mod", &format!("module {module}\n\ngo {version}\n"));
    write(
        "go/go.mod",
        &format!(
            "module example.com/acl\n\ngo {version}\n\nrequire {module} v0.0.0\n\nreplace {module} => ./nf\n"
        ),
    );
    run(folder, &["cc", "-O2", "-o", "in-c", "acl.c", "catena_nf.c"]);
    run(&folder.join("go"), &["go", "build", "-o", "../in-go", "."]);
    run(folder, &["chmod", "-R", "a+rX", "."]);
    run(folder, &["chmod", "a+x", "main.py"]);
    let own = std::env::current_exe().expect("this program");
    let nf = |language: &'static str, program: PathBuf, words: &[&str], threads: u32| {
        let words = words.iter().map(|word| word.to_string()).collect();
        let limits = Limits { threads, ..Limits::default() };
        let function = Function::Program(program, words);
        (language, Nf { config: CONFIG.into(), limits, ..Nf::new(language, function) })
    };
    [
        nf("C", folder.join("in-c"), &[], 1),
        nf("Rust", own, &["acl"], 1),
        nf("Go", folder.join("in-go"), &[], sources::GO_THREADS),
        nf("Python", folder.join("main.py"), &[], 1),
    ]
}

/// Measures all by turns, and shows them.
pub(crate) fn show(rounds: usize) {
    let folder = std::env::temp_dir().join(format!("catena-languages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder of its own");
    let functions = functions(&folder);
    // By language and batch: nanoseconds a packet of the chain, and those in `process`.
    let mut seen: [[[Vec<f64>; 2]; 2]; 4] = Default::default();
    for _ in 0..rounds {
        for (number, batch) in BATCHES.into_iter().enumerate() {
            for ((_, nf), seen) in functions.iter().zip(&mut seen) {
                let found = measured(vec![nf.clone()], HandOff::Yield, batch);
                seen[number][0].push(found.per_packet);
                seen[number][1].push(found.in_process);
            }
        }
    }
    println!(
        "\n| access list in | ns a packet, batch of 32 | of it in `process` | ns a packet, batch of 256 | of it in `process` | million packets a second |"
    );
    println!("|---|---|---|---|---|---|");
    for ((language, _), [short, long]) in functions.iter().zip(seen) {
        let rates = long[0].iter().map(|of| 1e3 / of).collect();
        let [[all, inside], [all_long, inside_long]] = [short, long].map(|of| of.map(shown));
        println!(
            "| {language} | {all} | {inside} | {all_long} | {inside_long} | {} |",
            shown(rates)
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
}
