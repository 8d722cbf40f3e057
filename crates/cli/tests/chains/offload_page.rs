//! The page of what devices save, where what it says does not have to be measured: what Open vSwitch does of network functions.

use std::fs;
use std::path::{Path, PathBuf};

use compiler::library::{FUNCTIONS, find};
use lab::divided::{Extent, Loaded};
use lab::front::Front;
use lab::live::Catena;

const TARGET: &str = "ovs";

/// By function: the cell of the target in the table.
fn cells(page: &str) -> Vec<(&str, &str)> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let rows = rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect());
    let rows: Vec<Vec<&str>> = rows.collect();
    let heading = format!("`{TARGET}`");
    let head = rows.iter().position(|row| row.contains(&&*heading)).expect("a table of targets");
    let at = rows[head].iter().position(|cell| *cell == heading).expect("the target");
    let name = |cell: &'_ str| -> Option<usize> { cell.find("](nfs.md#") };
    let rows = rows[head + 1..].iter().filter_map(|row| {
        let function = row.get(2)?;
        Some((function.get(1..name(function)?)?, *row.get(at)?))
    });
    rows.collect()
}

/// `cargo xtask figures offload functions` writes the table.
#[test]
fn the_page_has_what_switches_do_of_network_functions() {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/offload.md"));
    let page = fs::read_to_string(page).expect("the page");
    let cells = cells(&page);
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("offload-page");
    let mut faults = Vec::new();
    for function in FUNCTIONS {
        let loaded = Loaded::example(Catena(env!("CARGO_BIN_EXE_catena")), function, &scratch);
        let letter = |trusting| {
            let made = loaded.divide(Front { target: TARGET, trusting });
            made.map_or(Extent::Nothing, |made| loaded.taken(&made).extent).letter()
        };
        let wanted = format!("{} {}", letter(false), letter(true));
        let there = cells.iter().find(|(name, _)| *name == function.name).map(|of| of.1);
        if there != Some(&wanted) {
            faults.push(format!("{}: {wanted}, not {there:?}", function.name));
        }
    }
    faults.extend(
        cells.iter().filter(|of| find(of.0).is_none()).map(|of| format!("{} is no function", of.0)),
    );
    assert!(
        faults.is_empty(),
        "`cargo xtask figures offload functions` writes it anew:\n{}",
        faults.join("\n")
    );
}
