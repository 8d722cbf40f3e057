//! How much longer it takes to make programs of large tables: instructions are counted, not time.

use std::process::Command;

use crate::program::Folder;

/// A router with so many routes, in no order, over so many next hops.
fn router(routes: u32, hops: u32) -> String {
    let route = |number: u32| {
        let [a, b, c, _] = (number.wrapping_mul(0x9e37_79b1) << 8).to_be_bytes();
        let [d, e] = ((number % hops) as u16).to_be_bytes();
        format!("{a}.{b}.{c}.0/24 192.168.{d}.{e} {}", number % 2)
    };
    let routes: Vec<String> = (1..=routes).map(route).collect();
    format!(
        "Idle -> Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup({});
         rt[0] -> DecIPTTL -> a :: Queue -> Discard;
         rt[1] -> DecIPTTL -> b :: Queue -> Discard;",
        routes.join(",\n")
    )
}

/// The instructions that a command takes with a chain.
fn instructions(command: &[&str], chain: &str) -> u64 {
    let folder = Folder::new();
    folder.file("a.click", chain);
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_catena"))
        .args(command)
        .arg(folder.path().join("a.click"))
        .output()
        .expect("valgrind counts instructions (`cargo xtask test` installs it)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let count = said.lines().find_map(|line| line.split_once("refs:"));
    let count = count.expect("a count").1.trim().replace(',', "");
    count.parse().expect("a number")
}

/// Twice as many routes take hardly more than twice the work.
#[track_caller]
fn grows_with_the_table(command: &[&str], router: impl Fn(u32) -> String, routes: u32) {
    let [once, twice] =
        [routes, 2 * routes].map(|routes| instructions(command, &router(routes)) as f64);
    assert!(twice < 2.3 * once, "{command:?}: {once} instructions, {twice} for twice the routes");
}

#[test]
fn synthesis_and_proof_grow_with_routes_and_next_hops() {
    grows_with_the_table(&["synth"], |routes| router(routes, routes), 2000);
}

#[test]
fn few_next_hops_more_or_less_hardly_matter_to_synthesis_and_proof() {
    let [few, more] = [8, 60].map(|hops| instructions(&["synth"], &router(8000, hops)) as f64);
    assert!(more < 1.6 * few, "{few} instructions for 8 next hops, {more} for 60");
}

#[test]
fn a_start_grows_with_routes_and_next_hops() {
    grows_with_the_table(&["click", "-q"], |routes| router(routes, routes), 2000);
}
