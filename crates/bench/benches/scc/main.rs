//! SCC's experiments on this machine: tables 6.2, 6.4, 6.5, 6.7 and 6.8 and figures 6.3, 6.4, 6.5, 6.10 and 6.12 of the thesis
//! that describes SCC.
//!
//! `cargo xtask figures scc` runs them and writes `docs/scc.md` and its plots. The bench alone prints the page:
//! `cargo bench -p catena-bench --bench scc -- [PART…] [--rounds N] [--write FOLDER]`.
//! Parts are `machine`; all of them if none is given.
#![allow(clippy::print_stderr)]

extern crate catena_bench as bench;

mod machine;
#[path = "../paper/mod.rs"]
mod paper;

use std::path::PathBuf;

use paper::Page;

/// What the command line says.
struct Arguments {
    rounds: usize,
    folder: Option<PathBuf>,
    /// What is measured; everything if nothing is given.
    parts: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        let mut read = Self { rounds: 3, folder: None, parts: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut next = || words.next().expect("a value");
            match word.as_str() {
                "--rounds" => read.rounds = next().parse().expect("a number"),
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
    if arguments.wants("machine") {
        eprintln!("table 6.2, figure 6.3 …");
        machine::Figures::measure(arguments.rounds).show(&mut page);
    }
    page.finish("scc.md", arguments.folder);
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
- The thesis: an Intel Xeon E5-2667 v3 at 3.2 GHz with Linux 3.13. It prints its curves without numbers; what its text states
  of them stands beside each table.
",
        arguments.rounds,
        machine::description(),
    )
}
