//! Open vSwitch does what the entries that it is given are read as, with every frame.

use std::collections::BTreeMap;

use catena_lab::ovs::{Sent, Switch};
use codegen::target;
use ir::program::End;
use ir::program::interp::interpret;
use ir::{Program, Store};
use net::Pool;

use crate::frames;
use crate::proof::CHAINS;
use crate::segments::{CORES, Made, Path, is_sane};

/// What a program does with a frame, as it shows outside.
pub(crate) fn expected(made: &Made, program: &Program, frame: &[u8]) -> Vec<Sent> {
    let mut packet = Pool::new().packet(frame);
    let exit = interpret(program, &mut packet, &mut Store::default(), &mut Path::default());
    let bytes = packet.data().to_vec();
    match exit.unwrap().end {
        End::Drop { .. } => Vec::new(),
        End::Push { to, .. } => vec![Sent { port: made.egress[&to], bytes }],
        End::Handoff { to } => {
            let [high, low] = to.0.to_be_bytes();
            let mut tagged = bytes;
            tagged.splice(12..12, [0x88, 0xa8, high, low]);
            vec![Sent { port: CORES, bytes: tagged }]
        }
    }
}

/// Loads a text, and compares what is sent with what it was read as; for frames whose headers are right also
/// with what it was made from. How many packets came to each exit.
fn compare(
    switch: &mut Switch,
    made: &Made,
    text: &str,
    read: &Program,
    seed: u64,
) -> BTreeMap<String, usize> {
    switch.load(text);
    let mut random = fastrand::Rng::with_seed(seed);
    let frame =
        |_| if random.bool() { frames::good(&mut random) } else { frames::odd(&mut random) };
    let mut all: Vec<Vec<u8>> = (0..3000).map(frame).collect();
    all.retain(|frame| frame.len() >= 14 && frame[12..14] != [0x88, 0xb5]);
    let mut ends = BTreeMap::new();
    let results = switch.send(made.segment.ingress[0], &all);
    for (frame, sent) in all.iter().zip(results) {
        let wanted = expected(made, read, frame);
        let shown = net::notation::describe(frame, true);
        assert_eq!(sent, wanted, "{shown}\n{frame:02x?}\n{text}\n{read}");
        if is_sane(frame) {
            let wanted = expected(made, &made.segment.program, frame);
            assert_eq!(sent, wanted, "{shown}\n{frame:02x?}\n{text}\n{}", made.segment.program);
            *ends.entry("right".to_string()).or_default() += 1;
        }
        let end = sent.first().map_or("dropped".into(), |sent| format!("port {}", sent.port));
        *ends.entry(end).or_default() += 1;
    }
    ends
}

#[test]
fn a_switch_does_what_was_read() {
    let mut switch = Switch::start(CORES);
    let targets = ["openflow", "ovs"].map(|name| target(name).unwrap());
    let all = targets.iter().flat_map(|target| CHAINS.iter().map(move |chain| (*target, chain)));
    for (seed, (target, chain)) in (0..).zip(all) {
        let made = Made::of_chain(target, chain);
        let (text, read) = made.prove(target);
        let ends = compare(&mut switch, &made, &text, &read, seed);
        println!("{ends:?}");
        for (_, exit) in made.segment.program.exits() {
            let End::Push { to, .. } = exit.end else { continue };
            let port = made.egress[&to];
            assert!(ends.contains_key(&format!("port {port}")), "{ends:?}: nothing left by {port}");
        }
    }
}

/// A switch sends no frame where it came from, unless it is told so by name.
#[test]
fn frames_go_back_where_they_came_from() {
    let mut switch = Switch::start(CORES);
    let ovs = target("ovs").unwrap();
    for ingress in [vec![2, 1, 3], vec![3, 2], vec![1, 4]] {
        let made = Made::of_chain(ovs, CHAINS[2]).at(ingress);
        let (text, read) = made.prove(ovs);
        let ends = compare(&mut switch, &made, &text, &read, 7);
        assert!(ends.contains_key("port 2") && ends.contains_key("port 3"), "{ends:?}");
    }
}

#[test]
fn frames_from_the_cores_leave_by_the_port_that_their_tag_names() {
    let mut switch = Switch::start(CORES);
    let ovs = target("ovs").unwrap();
    let made = Made::of_chain(ovs, CHAINS[2]);
    switch.load(&made.emit(ovs));
    let mut random = fastrand::Rng::with_seed(5);
    for port in [2, 3, 4, 5] {
        let frames: Vec<Vec<u8>> = (0..40).map(|_| frames::good(&mut random)).collect();
        let tagged = |frame: &Vec<u8>| {
            let mut frame = frame.clone();
            frame.splice(12..12, [0x88, 0xa8, 0, port as u8]);
            frame
        };
        let all: Vec<Vec<u8>> = frames.iter().map(tagged).collect();
        for (frame, sent) in frames.into_iter().zip(switch.send(CORES, &all)) {
            let wanted = Sent { port, bytes: frame };
            assert_eq!(sent, if port < 5 { vec![wanted] } else { Vec::new() });
        }
    }
}
