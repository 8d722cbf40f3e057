//! SWX itself: what it does to frames is what the reference interpreter does, and it counts what the interpreter counts.

use std::collections::BTreeMap;
use std::time::Instant;

use codegen::swx::change::{Edit, Entries, Held, first};
use codegen::swx::spec::{Failure, Spec, TableEntry};
use codegen::{Device, File, swx};
use compiler::partition::{Site, Trust, compile};
use dataplane::io::swx::{Attached, Control, Runner, build};
use ir::program::End;
use ir::program::interp::interpret;
use ir::{NodeId, Span, Store};

use crate::ebpf::kernel::{self, World, packet};
use crate::ebpf::{Subject, subjects};
use crate::targets::wires;

/// What DPDK is started with.
const EAL: &str = "--no-huge -m 256 --no-telemetry --no-pci --no-shconf";

/// Frames that come in at a time: each may leave by any port, whose ring holds some more.
const BURST: usize = 512;

/// Where all headers end that SWX may look for. A shorter frame has none of them cut off if it is as long.
const LONGEST_HEADERS: usize = 96;

/// Longer frames take several buffers.
const LONGEST: usize = 1500;

fn file<'f>(files: &'f [File], name: &str) -> &'f str {
    let file = files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("{name}"));
    std::str::from_utf8(&file.contents).unwrap()
}

/// A pipeline of what a device is given, with rings for all its ports.
fn start(name: &str, files: &[File], device: &Device<'_>) -> (Runner, Control) {
    let spec = Spec::read(file(files, swx::SPEC))
        .unwrap_or_else(|(line, why): Failure| panic!("{name}: {line}: {why}"));
    let ports = device.segments.iter().flat_map(|segment| segment.ingress.iter());
    let ports = ports.chain(device.egress.values()).chain([&device.cores]);
    let ports: BTreeMap<u32, Attached> = ports.map(|port| (*port, Attached::Rings)).collect();
    let (runner, control) =
        build("chain", &spec, &ports, Some(EAL)).unwrap_or_else(|why| panic!("{name}: {why}"));
    for table in &spec.tables {
        for line in file(files, &swx::entries_of(&table.name)).lines() {
            control.add(&table.name, line).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
    control.commit().unwrap_or_else(|why| panic!("{name}: {why}"));
    (runner, control)
}

/// Has frames come in and go out.
fn carry(runner: &mut Runner, port: u32, frames: &[Vec<u8>]) {
    for frame in frames {
        assert!(runner.inject(port, frame), "there is room for a burst");
    }
    while runner.waiting(port) > 0 {
        runner.run(10_000);
    }
    // Those that were taken last are in flight.
    for _ in 0..20 {
        runner.run(10_000);
    }
    runner.flush();
}

/// Carries frames of all segments; gives how many exits they reached.
fn run(
    name: &str,
    files: &[File],
    device: &Device<'_>,
    frames: &BTreeMap<ir::Port, Vec<Vec<u8>>>,
) -> usize {
    let (mut runner, control) = start(name, files, device);
    let mut base = 0;
    let mut counted: BTreeMap<u32, u64> = BTreeMap::new();
    for segment in &device.segments {
        let program = &segment.program;
        let none = Vec::new();
        let all = frames.get(&program.entry).unwrap_or(&none);
        let all: Vec<Vec<u8>> = all
            .iter()
            .filter(|frame| (14..LONGEST).contains(&frame.len()))
            .map(|frame| {
                let mut frame = frame.clone();
                frame.resize(frame.len().max(LONGEST_HEADERS), 0);
                frame
            })
            .collect();
        for burst in all.chunks(BURST) {
            let mut expected: BTreeMap<u32, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
            for frame in burst {
                let (mut packet, mut world) = (packet(frame), World::default());
                let exit = interpret(program, &mut packet, &mut Store::new(), &mut world)
                    .unwrap_or_else(|fault| panic!("{name}: {fault:?} of {frame:02x?}"));
                let step = base + world.last.expect("it came to a step").0;
                *counted.entry(step).or_default() += 1;
                let (port, frame) = match exit.end {
                    End::Drop { .. } => continue,
                    End::Push { to, .. } => (device.egress[&to], packet.data().to_vec()),
                    End::Handoff { to } => {
                        let tag = [0x88, 0xa8, (to.0 >> 8) as u8, to.0 as u8];
                        (device.cores, [&frame[..12], &tag, &frame[12..]].concat())
                    }
                };
                expected.entry(port).or_default().push((frame, step));
            }
            carry(&mut runner, segment.ingress[0], burst);
            let ports = device.egress.values().chain([&device.cores]);
            for port in ports.copied().collect::<std::collections::BTreeSet<u32>>() {
                let mut all = expected.remove(&port).unwrap_or_default();
                let mut came: Vec<Vec<u8>> = std::iter::from_fn(|| runner.take(port)).collect();
                // Packets overtake each other in SWX: each of its threads has one.
                came.sort_unstable();
                all.sort_unstable();
                for (frame, (expected, step)) in came.iter().zip(&all) {
                    assert!(
                        frame == expected,
                        "{name}, port {port}, s{step}: {frame:02x?} instead of {expected:02x?}"
                    );
                }
                assert_eq!(came.len(), all.len(), "{name}: frames by port {port}");
            }
        }
        // Frames that are cut off come out somewhere, or are dropped: the pipeline goes on.
        let cut: Vec<Vec<u8>> = (14..60).map(|length| vec![0x45; length]).collect();
        carry(&mut runner, segment.ingress[0], &cut);
        let ports = device.egress.values().chain([&device.cores]);
        let left: Vec<Vec<u8>> = ports
            .flat_map(|port| std::iter::from_fn(|| runner.take(*port)).collect::<Vec<_>>())
            .collect();
        assert!(left.iter().all(|frame| frame.len() < 64), "{name}: a frame grew");
        base += program.steps.len() as u32;
    }
    // What was cut off is counted, too.
    for (step, count) in &counted {
        let there = control.register(swx::CLASSES, *step).unwrap();
        assert!(there >= *count, "{name}: s{step} is counted {there} times instead of {count}");
    }
    let total: u64 = (0..base).map(|step| control.register(swx::CLASSES, step).unwrap()).sum();
    let cut = 46 * device.segments.len() as u64;
    assert_eq!(total, counted.values().sum::<u64>() + cut, "{name}: each is counted once");
    back(name, &mut runner, device);
    counted.len()
}

/// Frames from the cores leave by the port that their tag names, without it.
fn back(name: &str, runner: &mut Runner, device: &Device<'_>) {
    for &port in device.egress.values() {
        let plain: Vec<u8> = (0..80).collect();
        let tag = [0x88, 0xa8, 0xe0 | (port >> 8) as u8, port as u8];
        carry(runner, device.cores, &[[&plain[..12], &tag, &plain[12..]].concat()]);
        assert_eq!(runner.take(port), Some(plain), "{name}: back by port {port}");
    }
    let foreign: Vec<u8> = (0..80).collect();
    carry(runner, device.cores, &[foreign]);
    for &port in device.egress.values() {
        assert_eq!(runner.take(port), None, "{name}: without a tag");
    }
}

#[test]
fn chains_run_in_swx() {
    let (mut reached, mut chains) = (0, 0);
    for subject in subjects("swx") {
        let Subject { name, graph, models } = &subject;
        let wires = wires(graph, models);
        let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
        let target = codegen::target("swx").unwrap();
        let frames = kernel::frames(&subject);
        let all: Vec<Trust> = Trust::ALL.iter().map(|of| of.1).collect();
        for trust in [&[][..], &all] {
            let site = Site::numbered(&wires, trust);
            let Ok(compiled) = compile(graph, models, &wires, target, &site, &origin, None) else {
                continue;
            };
            chains += 1;
            reached += run(name, &compiled.files, &compiled.device(&origin), &frames);
        }
    }
    println!("{reached} exits of {chains} chains");
    assert!(std::env::var_os("FILETEST").is_some() || reached > 8 * chains, "{reached} exits");
}

/// A list of rules on two numbers, with a small table in front of it: packets leave by the port that the rule says.
const LIST: &str = "struct numbers_t {
	bit<32> a
	bit<32> b
}
header numbers instanceof numbers_t
struct metadata_t {
	bit<32> port_in
	bit<32> arm
	bit<32> a
	bit<32> b
}
metadata instanceof metadata_t
struct go_args_t {
	bit<32> arm
}
action go args instanceof go_args_t {
	mov m.arm t.arm
	return
}
action otherwise args none {
	mov m.arm 0x0
	return
}
table rules_changes {
	key {
		m.a wildcard
		m.b wildcard
	}
	actions {
		go
		otherwise
	}
	default_action otherwise args none const
	size 0x400
}
table rules {
	key {
		m.a wildcard
		m.b wildcard
	}
	actions {
		go
		otherwise
	}
	default_action otherwise args none const
	size 0x8000
}
apply {
	rx m.port_in
	extract h.numbers
	mov m.a h.numbers.a
	mov m.b h.numbers.b
	table rules_changes
	jmph FOUND
	table rules
	FOUND : emit h.numbers
	tx m.arm
}
";

/// A rule that is about a few numbers.
fn rule(random: &mut fastrand::Rng) -> TableEntry {
    let mut one = || {
        let mask = u128::from(u32::MAX << random.u32(..24));
        (u128::from(random.u32(..) & 0x0fff_ffff) & mask, Some(mask))
    };
    let (matches, arm) = (vec![one(), one()], random.u128(1..4));
    let arguments = vec![("arm".to_string(), arm)];
    let (action, wide) = ("go".into(), Vec::new());
    TableEntry { line: 0, matches, priority: 0, action, arguments, wide }
}

fn numbered(mut all: Vec<TableEntry>) -> Entries {
    (0..).zip(&mut all).for_each(|(at, entry)| entry.priority = at);
    [("rules".to_string(), all), ("rules_changes".to_string(), Vec::new())].into()
}

fn apply(control: &Control, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::Delete(table, line) => control.delete(table, line).unwrap(),
            Edit::Add(table, line) => control.add(table, line).unwrap(),
        }
    }
    control.commit().unwrap();
}

/// `RULES=8550` takes a longer list; what changes take is printed.
#[test]
fn a_rule_of_a_long_list_is_exchanged() {
    let count = std::env::var("RULES").map_or(400, |count| count.parse().unwrap());
    let spec = Spec::read(LIST).unwrap();
    let ports = (0..4).map(|port| (port, Attached::Rings)).collect();
    let (mut runner, control) = build("list", &spec, &ports, Some(EAL)).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let mut list: Vec<TableEntry> = (0..count).map(|_| rule(&mut random)).collect();
    let begun = Instant::now();
    let (edits, mut held) = Held::default().fold(&numbered(list.clone()));
    apply(&control, &edits);
    println!("{count} rules: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    let mut check = |list: &[TableEntry], about: &TableEntry, random: &mut fastrand::Rng| {
        let mut numbers: Vec<[u32; 2]> = Vec::new();
        for at in 0..200 {
            let near = if at % 2 == 0 { about } else { &list[random.usize(..list.len())] };
            let of = |at: usize, random: &mut fastrand::Rng| {
                let (value, mask) = near.matches[at];
                value as u32 | random.u32(..) & 0x0fff_ffff & !(mask.unwrap_or(0) as u32)
            };
            numbers.push([of(0, random), of(1, random)]);
        }
        let frame = |numbers: &[u32; 2]| numbers.map(u32::to_be_bytes).concat();
        let frames: Vec<Vec<u8>> =
            numbers.iter().map(|of| [frame(of), vec![0; 52]].concat()).collect();
        carry(&mut runner, 0, &frames);
        for port in 0..4 {
            let says = |numbers: &&[u32; 2]| {
                let at = first(list, &numbers.map(u128::from));
                at.map_or(0, |at| list[at].arguments[0].1) == port.into()
            };
            let mut expected: Vec<Vec<u8>> = numbers.iter().filter(says).map(frame).collect();
            let mut came: Vec<Vec<u8>> = std::iter::from_fn(|| runner.take(port)).collect();
            came.iter_mut().for_each(|frame| frame.truncate(8));
            expected.sort_unstable();
            came.sort_unstable();
            assert_eq!(came, expected, "by port {port}");
        }
    };
    let (mut took, mut most) = (Vec::new(), 0);
    for round in 0..30 {
        let at = random.usize(..list.len());
        let about = list[at].clone();
        match round % 3 {
            0 => list[at].arguments[0].1 = list[at].arguments[0].1 % 3 + 1,
            1 => drop(list.remove(at)),
            _ => list.insert(at, rule(&mut random)),
        }
        let new = numbered(list.clone());
        let begun = Instant::now();
        let (edits, after) = held.change(&spec, &new);
        apply(&control, &edits);
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(edits.iter().all(|edit| matches!(edit, Edit::Add(table, _) | Edit::Delete(table, _) if table == "rules_changes")));
        held = after;
        most = most.max(edits.len());
        check(&list, &about, &mut random);
        if round % 3 == 2 {
            check(&list, &list[at].clone(), &mut random);
        }
        if held.is_full() || round == 14 {
            let begun = Instant::now();
            let (edits, after) = held.fold(&new);
            apply(&control, &edits);
            println!("built anew: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
            held = after;
            check(&list, &about, &mut random);
        }
    }
    took.sort_unstable_by(f64::total_cmp);
    println!(
        "one rule: {:.2} ms ({:.2} to {:.2}), at most {most} entries",
        took[15], took[0], took[29]
    );
}
