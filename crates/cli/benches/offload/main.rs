//! What devices in front of cores save them: Metron's table 1 and figures 6 and 7, and SNF's figures 7.14 to 7.16.
//!
//! `cargo xtask figures offload` writes `docs/offload.md`. The bench alone prints the page:
//! `cargo bench -p catena-cli --bench offload -- [functions] [cores] [latency] [--rounds N] [--packets N] [--write FOLDER]`
//!
//! Parts that are not named stay as they are in the page of the folder. All but `functions` need root and the shared data.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cases;
mod cores;
mod functions;
#[path = "../in_kernel/mod.rs"]
mod in_kernel;
#[path = "../live/load.rs"]
#[allow(dead_code)]
mod load;
#[path = "../../../bench/benches/paper/mod.rs"]
mod paper;
mod savings;
#[path = "../../../bench/benches/support/mod.rs"]
mod support;
#[path = "../live/testbed.rs"]
#[allow(dead_code)]
mod testbed;
mod wire;

use std::path::{Path, PathBuf};

use bench::machine::Machine;
use cases::Cases;
use lab::live::Catena;
use paper::Page;
use savings::Effort;
use support::Data;

/// The program.
pub(crate) const CATENA: Catena = Catena(env!("CARGO_BIN_EXE_catena"));

const PAGE: &str = "offload.md";
const PARTS: [&str; 3] = ["functions", "cores", "latency"];

/// What stands before the sections.
fn beginning() -> String {
    let machine = Machine::unbound().map(|machine| machine.environment());
    let machine = machine.map_or_else(
        |why| why,
        |machine| {
            let kind =
                if machine.is_virtual { ", a virtual machine that shares its host" } else { "" };
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let load = machine.load_average.map_or(String::new(), |load| {
                format!("; load average {load:.1} when measurements began")
            });
            let kernel: Vec<&str> = machine.kernel.split('.').take(2).collect();
            format!("{}, {cores} cores{kind}, Linux {}{load}", machine.processor, kernel.join("."))
        },
    );
    format!(
        "# What devices save

Part of a chain can run [on a switch, in the kernel, or on a card](howto-offload.md). This page has what that saves cores: which network functions
devices can be given, and the experiments of Metron (Katsikas et al., NSDI 2018, §3.1) and SNF (chapter 7 of
Georgios Katsikas's doctoral thesis, §7.5.4.2). Written by a program; to repeat it, as root:

```sh root
cargo xtask figures offload
```

It needs the shared data folder (`CATENA_SHARED`, or `../shared`). `cargo xtask figures offload functions` writes the first section alone, and needs neither.

**What stands for the hardware.** There is no switch and no card here, so a device's own speed is not measured; theirs forward at the rate of their ports. What cores
do behind a device depends only on where it stops and what it hands them, and that is what its artefact does, as read back and proven. XDP programs stand for a card where
something has to run: in the kernel, on the same processor.

The machine: {machine}.
"
    )
}

/// The page of a folder with some of its sections replaced.
fn merge(old: &str, new: Vec<(&str, String)>) -> String {
    let mut sections: Vec<(String, String)> = old
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .map(|(title, text)| (title.into(), text.trim_end().into()))
        .collect();
    for (title, text) in new {
        let text = text.trim_end().to_string();
        match sections.iter_mut().find(|(of, _)| of == title) {
            Some(section) => section.1 = text,
            None => sections.push((title.into(), text)),
        }
    }
    let mut page = beginning();
    for (title, text) in sections {
        page += &format!("\n## {title}\n{text}\n");
    }
    page
}

fn main() {
    let mut effort = Effort { rounds: 7, packets: 50_000 };
    let (mut folder, mut parts) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().expect("a value");
        match argument.as_str() {
            "--rounds" => effort.rounds = next().parse().expect("a number"),
            "--packets" => effort.packets = next().parse().expect("a number"),
            "--write" => folder = Some(PathBuf::from(next())),
            "--bench" => {}
            part if PARTS.contains(&part) => parts.push(part.to_string()),
            _ => {
                eprintln!("cannot make sense of `{argument}`");
                return;
            }
        }
    }
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|of| of == part);
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("offload");
    let mut sections: Vec<(&str, Page)> = Vec::new();
    if wants("functions") {
        sections.push((functions::TITLE, functions::section(&scratch)));
    }
    if wants("cores") || wants("latency") {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not run: programs in the kernel and namespaces are root's");
            return;
        }
        let Some(data) = Data::find() else { return };
        let cases = Cases { data: &data, folder: scratch };
        if wants("cores") {
            sections.extend(savings::sections(&cases, &effort));
        }
        if wants("latency") {
            sections.push((wire::TITLE, wire::section(&cases, effort.rounds)));
        }
    }
    let old = folder
        .as_ref()
        .and_then(|folder: &PathBuf| std::fs::read_to_string(folder.join(PAGE)).ok());
    let texts = sections.iter().map(|(title, page)| (*title, page.text().to_string()));
    let text = merge(&old.unwrap_or_default(), texts.collect());
    Page::beginning(text).finish(PAGE, folder);
}
