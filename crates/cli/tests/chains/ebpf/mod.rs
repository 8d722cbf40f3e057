//! A witness that programs are ready for targets: straight-line code after eBPF's manner, with jumps that lead forward
//! and every load's bounds known.

mod generate;
mod insn;

use std::fs;
use std::path::Path;

use compiler::prove::differential::{Effort, Subject, record};
use compiler::{Synthesis, synthesize, synthesize_tables};
use ir::layout::Layouts;
use ir::model::Reason;
use ir::program::interp::{Environment, interpret};
use ir::program::{End, StepId};
use ir::{NodeId, Program, Store};
use net::{Header, Pool};

use crate::programs::chain;
use generate::generate;
use insn::{Insn, Machine, NOW, check};

const HEADERS: [Header; 3] = [Header::Mac, Header::Network, Header::Transport];

/// Where keys of a lookup stand on the stack.
fn key_slot(number: usize) -> i32 {
    -8 * (1 + number as i32)
}

/// Where numbers stand that were looked up or computed.
fn value_slot(number: usize) -> i32 {
    key_slot(4 + number)
}

#[derive(Default)]
struct World {
    noted: Vec<(NodeId, Reason)>,
    last: Option<StepId>,
}

impl Environment for World {
    fn now(&self) -> u64 {
        NOW
    }

    fn note(&mut self, element: NodeId, reason: Reason) {
        self.noted.push((element, reason));
    }

    fn reached(&mut self, step: StepId) {
        self.last = Some(step);
    }
}

/// What becomes of a packet, by the program and by its instructions.
fn compare(
    program: &Program,
    code: &[Insn],
    packet: net::Packet,
    stores: &mut [Store; 2],
) -> StepId {
    let [ours, its] = stores;
    let mut machine = Machine::new(program, its, &packet);
    let (mut expected, mut world) = (packet, World::default());
    let exit = interpret(program, &mut expected, ours, &mut world).expect("it runs");
    let end = machine.run(code);
    assert_eq!(Some(end), world.last);
    let (start, stop) = machine.data;
    assert_eq!(machine.memory[start..stop], *expected.data(), "{end:?}");
    assert_eq!(machine.noted, world.noted, "{end:?}");
    // Nobody sees more of a packet that is dropped.
    if !matches!(exit.end, End::Drop { .. }) {
        let (packet_type, timestamp, marks) = machine.outside();
        assert_eq!(machine.context[..48], *expected.annotations().bytes(), "{end:?}");
        assert_eq!((packet_type, timestamp), (expected.packet_type(), expected.timestamp()));
        for (header, mark) in HEADERS.into_iter().zip(marks) {
            // From where the data starts now.
            let at = (u64::from(mark) != insn::context::UNMARKED)
                .then(|| mark as i32 as isize - exit.writes.start as isize);
            assert_eq!(at, expected.header_offset(header), "{end:?}, {header:?}");
        }
    }
    assert!(its.iter().eq(ours.iter()), "{end:?}");
    end
}

/// `BLESS=1` writes down what the programs become now.
#[test]
fn ten_routers_become_straight_line_code() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let (chain, models) = chain(&root.join("examples/ten-routers.click"));
    let programs = synthesize_tables(&chain.graph, &models).programs;
    let (state, mut text) = (Store::new(), String::from("// examples/ten-routers.click\n"));
    // What is specialised tells all paths apart.
    let Synthesis { programs: paths, .. } = synthesize(&chain.graph, &models);
    let subject = Subject { graph: &chain.graph, models: &models, state: &state, programs: &paths };
    let (evidence, sequences) = record(&subject, Effort { packets: 6000, seed: 1 });
    assert!(evidence.disagreement.is_none());
    let mut pool = Pool::new();
    let mut reached = 0;
    for program in &programs {
        let code = generate(program, &Layouts::of(program)).unwrap_or_else(|why| panic!("{why}"));
        check(&code).unwrap_or_else(|why| panic!("{why}"));
        let entry = &chain.graph.nodes[program.entry.node].name;
        text += &format!("\nprogram behind [{}] {entry}\n", program.entry.port);
        code.iter().for_each(|insn| text += &format!("{insn}\n"));
        let mut stores = [Store::new(), Store::new()];
        let all = sequences.iter().flat_map(|sequence| &sequence.arrivals);
        let mut ends: Vec<StepId> = all
            .filter(|arrival| arrival.at == program.entry)
            .map(|arrival| compare(program, &code, arrival.packet.packet(&mut pool), &mut stores))
            .collect();
        ends.sort();
        ends.dedup();
        reached += ends.len();
    }
    // All that the tables let packets come to.
    let exits = evidence.exits.1;
    assert!(reached >= exits, "{reached} of {exits} exits reached");
    let golden = root.join("filetests/programs/ten-routers.ebpf");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap();
    let line = text.lines().zip(expected.lines()).position(|(a, b)| a != b);
    assert!(
        text == expected,
        "{} line {:?} is another; BLESS=1 takes it",
        golden.display(),
        line.map(|line| line + 1)
    );
}
