//! What devices in front of the cores cost: programs in the kernel, frame by frame, and how long it takes until a chain is
//! compiled for a target and proven.
//!
//! `cargo bench -p catena-cli --bench targets -- [FILTER…] [--rounds N]`
//!
//! The kernel runs each program on a frame as if it had come in, and says how long it took; beside it one that does
//! nothing, which shows what the question costs. Programs take turns. Needs root. `compile` is the whole command `catena
//! compile`, from the file of the chain to the proof.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod in_kernel;
#[path = "../../bench/benches/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Instant;

use dataplane::io::Loaded;

use support::{Data, Frames, RuleSet, Spread, access, filter, routers};

const SETS: [&str; 3] = ["acl1", "fw1", "ipc1"];
const SIZES: [u32; 3] = [250, 700, 8500];
/// Frames that each program is run on, at most.
const FRAMES: usize = 4000;

/// A chain between two wires, and traffic for it.
struct Subject {
    name: String,
    body: String,
    traffic: Rc<Frames>,
}

impl Subject {
    fn new(name: String, body: String, traffic: Rc<Frames>) -> Self {
        Self { name, body, traffic }
    }

    fn frames(&self) -> Vec<&[u8]> {
        let step = self.traffic.len().div_ceil(FRAMES).max(1);
        self.traffic.iter().step_by(step).collect()
    }

    /// Its file, in a folder of its own.
    fn write(&self, data: &Data) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets").join(&self.name);
        fs::create_dir_all(&folder).expect("a folder");
        let lists = data.folder().join("../isp-acl").canonicalize().expect("access lists");
        let body = self.body.replace("../isp-acl", &lists.display().to_string());
        let text = format!("{}\nFromDevice(in) {body} -> ToDevice(out);\n", data.functions());
        let path = folder.join("chain.click");
        fs::write(&path, text).expect("the chain");
        path
    }
}

/// Compiles and proves a chain; gives milliseconds.
fn compile(chain: &Path, target: &str, output: &Path) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    command.arg("compile").arg(chain).args([
        "--target",
        target,
        "--unproven",
        "--json",
        "--output",
    ]);
    let start = Instant::now();
    let ran = command.arg(output).output().expect("it starts");
    let took = start.elapsed();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {target}: {said}", chain.display());
    took.as_secs_f64() * 1e3
}

/// The artefact of a chain, in the kernel.
fn load(chain: &Path) -> Loaded {
    let folder = chain.with_file_name("ebpf");
    compile(chain, "ebpf", &folder);
    let files = ["catena.o", "catena.maps"].map(|name| {
        let contents = fs::read(folder.join(name)).expect("a part of the artefact");
        codegen::File { name: name.into(), contents }
    });
    in_kernel::load(&chain.display().to_string(), &files)
}

/// The share of frames that no core sees, in percent.
fn done(loaded: &Loaded, frames: &[&[u8]]) -> f64 {
    // In front of what is handed to cores stands a tag.
    let is_done = |frame: &&&[u8]| {
        let ran = loaded.test_run(0, frame, 1).expect("it runs");
        ran.frame[12..14] != [0x88, 0xa8]
    };
    100.0 * frames.iter().filter(is_done).count() as f64 / frames.len() as f64
}

fn in_the_kernel(data: &Data, subjects: &[Subject], rounds: usize) {
    let empty = Subject::new("empty".into(), String::new(), data.mix(60));
    let mut rows: Vec<(&Subject, Loaded, Vec<f64>)> =
        vec![(&empty, in_kernel::nothing(), Vec::new())];
    rows.extend(subjects.iter().map(|of| (of, load(&of.write(data)), Vec::new())));
    for _ in 0..rounds {
        for (subject, loaded, times) in &mut rows {
            let frames = subject.frames();
            // What other programs left in the caches goes.
            in_kernel::run(loaded, 0, &frames);
            times.push(in_kernel::run(loaded, 0, &frames));
        }
    }
    let median = |times: &[f64]| Spread::of(times.iter().copied()).median;
    let base = median(&rows[0].2);
    let of =
        |name: &str| rows.iter().find(|row| row.0.name == name).map(|row| median(&row.2) - base);
    println!(
        "{:<20} {:>24} {:>14} {:>10} {:>10}",
        "ns a frame", "", "above empty", "ratio", "done, %"
    );
    for (subject, loaded, times) in &rows {
        let done = done(loaded, &subject.frames());
        let spread = Spread::of(times.clone());
        let (name, above) = (&subject.name, spread.median - base);
        // Beside the smallest of its kind.
        let smallest = name.rsplit_once('-').map(|(kind, _)| {
            let first = if kind == "routers" { "1".into() } else { SIZES[0].to_string() };
            format!("{kind}-{first}")
        });
        let ratio = smallest
            .and_then(|name| of(&name))
            .map_or(String::new(), |small| format!("{:.2}", above / small));
        let time = spread.to_string();
        println!("{name:<20} {time:>24} {above:>14.1} {ratio:>10} {done:>10.1}");
    }
}

fn compiled(data: &Data, subjects: &[Subject], rounds: usize) {
    let mut targets: Vec<&str> = codegen::targets().iter().map(|target| target.name()).collect();
    // One of several architectures.
    targets.dedup();
    print!("{:<20}", "compile, ms");
    targets.iter().for_each(|target| print!(" {target:>22}"));
    println!();
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let example = |name: &str| (name.to_string(), examples.join(name).with_extension("click"));
    let mut chains = vec![example("ten-routers"), example("home-router"), example("isp-edge")];
    chains.extend(subjects.iter().map(|of| (of.name.clone(), of.write(data))));
    for (name, chain) in chains {
        print!("{name:<20}");
        for target in &targets {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets").join(target);
            let times = (0..rounds).map(|_| compile(&chain, target, &folder));
            let spread = Spread::of(times);
            print!(" {:>22}", spread.to_string());
        }
        println!();
    }
}

fn main() {
    let (mut filters, mut rounds) = (Vec::new(), 15usize);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => rounds = arguments.next().and_then(|n| n.parse().ok()).expect("a number"),
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    let Some(data) = Data::find() else { return };
    let is_wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let lists = |kind: &str, body: fn(RuleSet) -> String| {
        let sets = SETS.iter().flat_map(|set| SIZES.map(|size| (*set, size)));
        let of = |set: RuleSet| {
            Subject::new(format!("{kind}{}-{}", set.0, set.1), body(set), data.reaching(set, 60))
        };
        sets.map(of).collect::<Vec<_>>()
    };
    let mut subjects: Vec<Subject> =
        [1, 10].map(|n| Subject::new(format!("routers-{n}"), routers(n), data.mix(60))).into();
    subjects.extend(lists("", filter));
    subjects.extend(lists("isp-", access));
    subjects.retain(|subject| is_wanted(&subject.name));
    in_the_kernel(&data, &subjects, rounds);
    if is_wanted("compile") {
        subjects.retain(|of| of.name.ends_with("8500"));
        println!();
        compiled(&data, &subjects, rounds.min(5));
    }
}
