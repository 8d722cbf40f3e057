//! SCC's experiments on this machine: tables 6.2, 6.4, 6.5, 6.7 and 6.8 and figures 6.3, 6.4, 6.5, 6.10 and 6.12 of the thesis
//! that describes SCC.
//!
//! `cargo xtask figures scc` runs them and writes `docs/scc.md` and its plots. The bench alone prints the page:
//! `cargo bench -p catena-bench --bench scc -- [PART…] [--rounds N] [--catena PATH] [--write FOLDER]`
//!
//! Parts are `machine`, which is always measured, `environments`, `batches` and `chains`; all of them if none is given. All but
//! `machine` take root and the program `catena`, which is looked for beside the benches.
#![allow(clippy::print_stderr)]

extern crate catena_bench as bench;

mod cells;
mod chains;
mod machine;
#[path = "../paper/mod.rs"]
mod paper;
mod routers;
mod testbed;

use std::path::PathBuf;

use paper::Page;
use testbed::Testbed;

/// What the command line says.
struct Arguments {
    rounds: usize,
    folder: Option<PathBuf>,
    /// The program that runs network functions.
    catena: Option<PathBuf>,
    /// What is measured; everything if nothing is given.
    parts: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        let mut read = Self { rounds: 3, folder: None, catena: None, parts: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut next = || words.next().expect("a value");
            match word.as_str() {
                "--rounds" => read.rounds = next().parse().expect("a number"),
                "--catena" => read.catena = Some(PathBuf::from(next())),
                "--write" => read.folder = Some(PathBuf::from(next())),
                "--bench" => {}
                _ => read.parts.push(word),
            }
        }
        read
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

fn main() {
    let arguments = Arguments::read();
    let mut page = Page::beginning(introduction(&arguments));
    eprintln!("table 6.2, figure 6.3 …");
    let machine = machine::Figures::measure(arguments.rounds);
    machine.show(&mut page);
    match Testbed::find(arguments.catena.clone()) {
        Ok(testbed) => {
            if processes(&arguments, &testbed, &machine, &mut page).is_none() {
                eprintln!("interrupted: nothing is written");
                return;
            }
        }
        Err(why) if arguments.folder.is_some() => {
            eprintln!("nothing is written: routers and chains cannot be measured: {why}");
            return;
        }
        Err(why) => eprintln!("not measured: routers and chains: {why}"),
    }
    page.finish("scc.md", arguments.folder);
}

/// Measures what runs as processes; nothing if it was interrupted.
fn processes(
    arguments: &Arguments,
    testbed: &Testbed,
    machine: &machine::Figures,
    page: &mut Page,
) -> Option<()> {
    if arguments.wants("environments") {
        eprintln!("figure 6.4, table 6.4 …");
        routers::Environments::measure(testbed, arguments.rounds)?.show(page, machine);
    }
    if arguments.wants("batches") {
        eprintln!("figure 6.10, table 6.7 …");
        routers::Batches::measure(testbed, arguments.rounds)?.show(page, machine);
    }
    if arguments.wants("chains") {
        eprintln!("figures 6.5, 6.11 and 6.12, tables 6.5 and 6.8 …");
        chains::Chains::measure(testbed, arguments.rounds)?.show(page, machine);
    }
    Some(())
}

fn introduction(arguments: &Arguments) -> String {
    format!(
        "# SCC's experiments on Catena

SCC (*Service Chain Coordinator*, chapter 6 of Georgios Katsikas's doctoral thesis on NFV service chains) profiles chains of
network functions that run as processes of their own, and speeds them up by I/O multiplexing and by scheduling. These are its
experiments on this machine. Written by a program from what it measured; to repeat it, as root:

```sh root
cargo xtask figures scc
```

## Method

- {} rounds. A round measures each kind once, so that other load on the machine affects all alike. Tables give the median round,
  with the least and the greatest in brackets.
- The machine: {}.
- Network functions are processes of `catena run`, on hosts of their own: network namespaces in a row, linked by veth pairs. All of
  them run on CPU 1, at nice -19. Each round starts them anew, and offers a load for 0.15 s that is not measured.
- One thread on CPU 0 sends each frame when it is due (`bench::send`), and takes what comes out in between (`bench::receive`).
  Latency counts from when a frame was due, so that what cannot be sent in time is not left out. Frames that came are known by
  their stamps.
- While it is watched (`catena profile --pid` does the same), a chain is offered a load of its own: counting slows it down.

## What differs from the thesis

| | the thesis | here |
|---|---|---|
| machine | Intel Xeon E5-2667 v3 at 3.2 GHz, Linux 3.13, cores and caches of its own | a virtual machine with two cores, of which one loads |
| links | 10-Gbit/s network cards, a machine that sends and one that receives | veth pairs: the kernel hands frames over in the sender's system call |
| network function | a router of FastClick in a container | the same router of Catena's elements, synthesised, in a network namespace |
| load | 820,000 frames per second, 5 million frames | stated for each figure |
| between routers | Open vSwitch in the kernel, or back to back | back to back; for figure 6.4, bridges of the kernel's too |
| default scheduler | CFS | EEVDF |
| loads by level of memory | counted by the processor, with Perf and Intel's PCM | counted by perf_event; empty where the machine counts none |

The thesis prints its curves without numbers; what its text states of them stands beside each table.
",
        arguments.rounds,
        machine::description(),
    )
}
