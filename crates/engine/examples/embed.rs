//! Runs a chain, changes it and watches it, without the command line: `cargo run --example embed`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::thread::yield_now;

use catena_engine::io::{Binding, Bindings};
use catena_engine::{Configuration, Extent, Instance, Options};

const CHAIN: &str = "FromDevice(lan) -> Strip(14) -> CheckIPHeader
    -> acl :: IPFilter(deny src host 10.0.0.1, allow all) -> passed :: Counter -> end :: Discard;";

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // Run: packets of 100 hosts, from 10.0.0.1 on, without end. An interface or a capture would do as well.
    let mut bindings = Bindings::default();
    bindings.inputs.insert("lan".to_string(), Binding::source("gen:flows=100,count=0")?);
    let read = |text: &str| Configuration::of_text("embed", text, &Default::default());
    let instance = Instance::start(read(CHAIN)?, bindings, Options::default())?;
    let passed = || -> Result<u64, Box<dyn Error>> { Ok(instance.read("passed.count")?.parse()?) };
    while passed()? < 10_000 {
        yield_now();
    }
    // Change it: one rule more, and then another chain, in which the counter goes on.
    instance.write("acl.rule_insert", "1 deny src host 10.0.0.2")?;
    let before = passed()?;
    let longer = CHAIN.replace("-> end", "-> DecIPTTL -> late :: Counter -> end");
    let changed = instance.change(read(&longer)?, Extent::Change)?;
    let waited = changed.swapped.iter().map(|worker| worker.standstill).max().unwrap_or_default();
    println!("swapped: packets waited {waited:?}; state was lost: {}", changed.plan.loses());
    while passed()? < before + 10_000 {
        yield_now();
    }
    // Watch it.
    let (_, stats) = instance.stats();
    for element in stats.ok_or("no worker runs")?.elements {
        let dropped: u64 = element.tally.iter().map(|line| line.dropped).sum();
        let packets = element.packets.unwrap_or(0);
        println!("{:<16} {packets:>10} packets, {dropped:>8} dropped", element.name);
    }
    Ok(())
}
