//! How long it takes until a switch has confirmed what it was given: 1,000 and 4,000 rules, all new, one of them changed, and
//! removed; beside `ovs-ofctl --bundle add-flows`, by turns on one switch.
//!
//! `cargo bench -p catena-control --bench install`
//!
//! A time begins with the question which entries the switch has, and ends when it answers the barrier behind the bundle. Tables give
//! the median of the rounds, with minimum and maximum. Entries match an address, a protocol and a port, as those of an access list.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use catena_control::openflow::{Mark, Plan, Switch};
use codegen::openflow::{Action, Bits, Class, Field, Flow, FlowEntry, text};
use ir::topology::Address;
use lab::ovs;

const ROUNDS: usize = 15;
const SIZES: [u32; 2] = [1000, 4000];

fn rule(number: u32, out: u32) -> FlowEntry {
    let exact = |field: Field, value: u128| Bits { field, value, mask: field.ones() };
    let when = vec![
        exact(Field::EthType, 0x800),
        exact(Field::IpProto, 6),
        Bits {
            field: Field::IpDst,
            value: u128::from(0x0a00_0000 + (number << 4)),
            mask: 0xffff_fff0,
        },
        exact(Field::TcpDst, 80),
    ];
    let (cookie, actions) =
        (Class::Exit(0, number).number(), vec![Action::DecTtl, Action::Output(out)]);
    let flow = Flow { cookie, table: 1, priority: 10, when, actions, metadata: None, goto: None };
    FlowEntry { flow, origin: format!("rule {number}").into() }
}

fn timed(what: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    what();
    begin.elapsed()
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let [least, median, most] = [times[0], times[times.len() / 2], times[times.len() - 1]].map(ms);
    println!("| {name} | {median:.1} | {least:.1}–{most:.1} |");
}

fn main() {
    let ovs = ovs::Switch::start(3);
    let address = Address::Unix(ovs.socket());
    let mark = Mark::of("bench");
    let mut switch = Switch::connect(&address, Duration::from_secs(20)).unwrap();
    let file = ovs.socket().with_file_name("bench.txt");
    println!("| what | ms | range |\n|---|---:|---:|");
    for size in SIZES {
        let entries: Vec<FlowEntry> = (0..size).map(|number| rule(number, 2)).collect();
        let mut times: [Vec<Duration>; 4] = Default::default();
        for round in 0..ROUNDS {
            let mut install = |entries: &[FlowEntry]| {
                let plan = Plan::new(switch.entries().unwrap(), entries.to_vec(), mark);
                switch.apply(&plan).unwrap();
            };
            times[0].push(timed(|| install(&entries)));
            let mut changed = entries.clone();
            let at = round % entries.len();
            changed[at] = rule(at as u32, 3);
            times[1].push(timed(|| install(&changed)));
            times[2].push(timed(|| assert_eq!(switch.remove(mark), Ok(size as usize))));
            std::fs::write(&file, text("ovs", &entries).unwrap()).unwrap();
            let load = ["--bundle", "add-flows", "br0", &file.to_string_lossy()];
            times[3].push(timed(|| drop(ovs.flows(&load))));
            ovs.flows(&["del-flows", "br0"]);
        }
        for (what, times) in
            ["installed", "one changed", "removed", "`ovs-ofctl --bundle add-flows`"]
                .iter()
                .zip(&mut times)
        {
            row(&format!("{size} rules, {what}"), times);
        }
    }
}
