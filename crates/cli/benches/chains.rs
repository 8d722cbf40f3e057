//! Nanoseconds per packet of whole chains: one core, in memory (frames copied from memory -> chain
//! -> a device that keeps nothing), 60-byte frames, bursts of 32. Chains end in a device and not in
//! Discard, which no write would have to reach. Every round measures every chain once, so that the
//! machine's moods touch all alike; ratios to bare forwarding are taken within a round.
//!
//! `cargo bench -p catena-cli --bench chains -- [FILTER…] [--rounds N] [--packets N] [--interpret | --synthesise]`
//!
//! Chains, access lists and traffic are those of the shared data folder (`bench-chains`, `isp-acl`).
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../bench/benches/support/mod.rs"]
mod support;

use std::rc::Rc;

use engine::session::Path as Execution;

use support::{
    Chain, Data, RuleSet, Running, Spread, access, filter, isp, large_napts, napts, routers,
};

/// The access list before flows that are drawn at random.
const LARGEST: RuleSet = ("acl1", 8500);

/// The chains of the reference measurements.
fn chains(data: &Data) -> Vec<Chain> {
    let mix = data.mix(60);
    let mut chains = vec![
        Chain::new("bare", String::new(), &mix),
        Chain::new("strip+check", "-> Strip(14) -> CheckIPHeader".into(), &mix),
    ];
    chains
        .extend([1, 2, 4, 6, 8, 10].map(|n| Chain::new(format!("routers-{n}"), routers(n), &mix)));
    chains.extend([1, 2, 4, 10].map(|n| Chain::new(format!("napts-{n}"), napts(n), &mix)));
    let sources = |count| Rc::new(data.udp(60).with_sources(count));
    let (million, new) = (sources(1_000_000), sources(1 << 24));
    let large = |name: &str, n: u32, seconds: u32, traffic, settle| {
        let beside = (1..=n).map(|i| format!("rw{i}[1] -> Discard;\n")).collect();
        let chain = Chain::new(format!("{name}-{n}"), large_napts(n, seconds), traffic);
        Chain { beside, settle, ..chain }
    };
    chains.extend([1, 10].map(|n| large("million-flows", n, 300, &million, 1_000_000)));
    // Flows live for a second; more NAPTs take longer for a packet.
    chains.extend([1, 2, 10].map(|n| large("new-flows", n, 1, &new, u64::from(3_000_000 / n))));
    // One flow is drawn for each packet.
    let reaching = data.reaching(LARGEST, 60);
    for flows in [10_000, 60_000, 100_000, 200_000, 300_000, 1_000_000] {
        let body = access(LARGEST) + &large_napts(1, 300);
        let chain =
            Chain::new(format!("drawn-flows-{flows}"), body, &Rc::new(reaching.with_flows(flows)));
        let beside = "rw1[1] -> Discard;".into();
        chains.push(Chain { beside, settle: 15 * u64::from(flows), ..chain });
    }
    chains.push(Chain::new("denied-flows", isp(LARGEST), &new));
    for set in ["acl1", "fw1", "ipc1"] {
        for rules in [250, 700, 8500] {
            let traffic = data.reaching((set, rules), 60);
            let set_name = format!("{set}-{rules}");
            let mut add = |name: &str, body| {
                chains.push(Chain::new(format!("{name}-{set_name}"), body, &traffic));
            };
            add("filter", filter((set, rules)));
            add("acl-router-napt", isp((set, rules)));
        }
    }
    chains
}

fn main() {
    let (mut filters, mut rounds, mut packets, mut path) =
        (Vec::new(), 7u64, 200_000u64, Execution::Native);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect("a number");
        match argument.as_str() {
            "--rounds" => rounds = number(),
            "--packets" => packets = number(),
            "--interpret" => path = Execution::Interpreted,
            "--synthesise" => path = Execution::Synthesised,
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    let Some(data) = Data::find() else { return };
    let chosen = |c: &Chain| {
        c.name == "bare"
            || filters.is_empty()
            || filters.iter().any(|f| c.name.contains(f.as_str()))
    };
    let mut running: Vec<Running> =
        chains(&data).iter().filter(|c| chosen(c)).map(|c| data.start(c, path)).collect();
    running.iter_mut().for_each(Running::settle);
    for _ in 0..rounds {
        for chain in &mut running {
            chain.warm();
            chain.measure(packets);
        }
    }
    println!(
        "{:<28} {:>9} {:>17} {:>8} {:>13} {:>10}",
        "chain", "ns/packet", "(min-max)", "x bare", "(min-max)", "configure"
    );
    let bare = running[0].samples.clone();
    for chain in &running {
        let (time, ratio) =
            (Spread::of(chain.samples.iter().copied()), Spread::of_ratios(&chain.samples, &bare));
        println!(
            "{:<28} {:>9.1} {:>17} {:>8.2} {:>13} {:>7.0} ms",
            chain.name,
            time.median,
            format!("({})", time.range()),
            ratio.median,
            format!("({})", ratio.range()),
            chain.configured.as_secs_f64() * 1e3,
        );
    }
}
