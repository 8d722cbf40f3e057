//! SNF's own experiments, on one core and in memory: table 7.1 and figures 7.7, 7.8, 7.11 and 7.12
//! of the thesis that describes SNF, element by element and synthesised.
//!
//! `cargo xtask figures snf` runs them and writes `docs/snf.md` and its plots. The bench alone prints
//! the page: `cargo bench -p catena-bench --bench snf -- [--rounds N] [--packets N] [--write FOLDER]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

extern crate catena_bench as bench;

mod experiments;
mod page;
#[path = "../paper/mod.rs"]
mod paper;
#[path = "../support/mod.rs"]
mod support;

use std::path::PathBuf;

use experiments::Effort;
use paper::Page;
use support::Data;

fn main() {
    let mut effort = Effort { rounds: 9, packets: 100_000 };
    let mut folder = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().expect("a value");
        match argument.as_str() {
            "--rounds" => effort.rounds = next().parse().expect("a number"),
            "--packets" => effort.packets = next().parse().expect("a number"),
            "--write" => folder = Some(PathBuf::from(next())),
            "--bench" => {}
            _ => {
                eprintln!("cannot make sense of `{argument}`");
                return;
            }
        }
    }
    let Some(data) = Data::find() else { return };
    let mut page = Page::new(&effort);
    eprintln!("table 7.1 …");
    page.elements(&experiments::elements(&data, &effort));
    eprintln!("figure 7.7 …");
    page.lengths(&experiments::lengths(&data, &effort));
    eprintln!("figure 7.8 …");
    page.sizes(&experiments::sizes(&data, &effort));
    eprintln!("figure 7.11 …");
    page.stages(
        &experiments::classification(&data, &effort),
        &experiments::modification(&data, &effort),
    );
    eprintln!("figure 7.12 …");
    page.edge(&experiments::edge(&data, &effort));
    page.finish("snf.md", folder);
}
