//! Programs read back from instruction words, proven to be the ones that these were made from.

use std::fs;

use codegen::Target;
use codegen::ebpf::{self, Object};
use compiler::prove::{BUDGET, Comparison, Verdict, View, compare};
use ir::program::{Atom, Step, StepId, Term, TermId};
use ir::{Base, NodeId, Program};

use super::{device, root, subjects, without_flows};

fn name(node: NodeId) -> String {
    format!("element {node}")
}

/// What is done where there is a lease of every flow.
fn with_leases(read: &mut Program) {
    let is_chance = |term: TermId| match read.term(term) {
        Term::Input(field) => field.base == Base::Annotation,
        _ => false,
    };
    let there = |step: &Step| match step {
        Step::Test { atom: Atom::Test(term, _), yes, .. } => is_chance(*term).then_some(*yes),
        _ => None,
    };
    let leads: Vec<Option<StepId>> = read.steps.iter().map(there).collect();
    let behind = |mut at: StepId| {
        while let Some(next) = leads[at.0 as usize] {
            at = next;
        }
        at
    };
    if let at @ StepId(1..) = behind(StepId(0)) {
        read.steps[0] = read.step(at).clone();
    }
    for step in &mut read.steps {
        step.map_next(behind);
    }
}

/// What comparing a program with what is read from an object finds.
pub(super) fn judge(program: &Program, object: &Object) -> Result<Verdict, String> {
    let read = ebpf::decompile(object, 0, &device(program));
    let mut read = read.map_err(|(at, why)| format!("instruction {at}: {why}"))?;
    with_leases(&mut read);
    let compared = compare(&Comparison {
        a: &program.clone().lower(),
        b: &read.clone().lower(),
        names_a: &name,
        names_b: &name,
        view: View::Whole,
        budget: BUDGET,
    });
    if std::env::var_os("SHOW").is_some() && !matches!(compared.verdict, Verdict::Equal) {
        eprintln!("SEGMENT\n{program}\nREAD\n{read}");
    }
    Ok(compared.verdict)
}

/// Programs that the prover gives up: where a packet begins follows from the lengths of two headers of extension, or IPv4
/// becomes IPv6. The tests that run programs in the kernel compare these, too.
const GIVEN_UP: [&str; 5] = [
    "ip6/protocol_translator46.test t/CheckIPHeader@2",
    "ip6/protocol_translator46_drops.test t/CheckIPHeader@5",
    "ip6/protocol_translator46_drops.test t/MarkIPHeader@3",
    "nf/nat64_464xlat.test t/CheckIPHeader@2",
    "tunnel/gtp.test t/CheckIPHeader@1",
];

#[test]
fn what_is_read_back_is_proven_equal() {
    let (mut failed, mut count, mut given_up) = (Vec::new(), 0, 0);
    for subject in subjects("ebpf-proof") {
        // Its 8,550 rules take minutes; `FILETEST=isp-edge` proves them.
        if subject.name.contains("isp-edge") && std::env::var_os("FILETEST").is_none() {
            continue;
        }
        for (name, _, program) in subject.segments() {
            count += 1;
            let device = device(&program);
            let compiled = match ebpf::compile(&device) {
                Ok(compiled) => compiled,
                Err((_, step, lack)) => {
                    failed.push(format!("{name}: s{}: {lack}", step.0));
                    continue;
                }
            };
            let files = ebpf::EBPF.emit(&device).expect("it fits");
            let object = ebpf::object(&files).unwrap_or_else(|unread| panic!("{name}: {unread}"));
            assert_eq!(object, compiled.object, "{name}");
            match judge(&program, &object) {
                Ok(Verdict::Equal) => {}
                // Flows whose lookups are not proven are left to cores.
                Ok(Verdict::Unproven(_)) if looks_flows_up(&program) => {
                    let program = without_flows(&program);
                    let compiled = ebpf::compile(&super::device(&program)).expect("it fits");
                    if !matches!(judge(&program, &compiled.object), Ok(Verdict::Equal)) {
                        failed.push(format!("{name}, without flows"));
                    }
                }
                Ok(Verdict::Unproven(_)) if GIVEN_UP.contains(&&*name) => given_up += 1,
                other => failed.push(format!("{name}: {other:?}")),
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed.join("\n"));
    let is_whole = std::env::var_os("FILETEST").is_none();
    assert!(count > 100 || !is_whole, "{count} programs");
    assert!(given_up == GIVEN_UP.len() || !is_whole, "a program that was given up is proven now");
}

fn looks_flows_up(program: &Program) -> bool {
    let is_one = |step: &Step| match step {
        Step::Lookup { lookup, .. } => program.flows(*lookup).is_some(),
        _ => false,
    };
    program.steps.iter().any(is_one)
}

/// What is changed in a program's words, by what it is about.
type Fault = (&'static str, fn(&mut Object) -> bool);

/// The first instruction that fits is changed.
fn change(object: &mut Object, fits: fn(u64) -> bool, to: fn(u64) -> u64) -> bool {
    let words = &mut object.programs[0].words;
    let found = words.iter().position(|word| fits(*word));
    found.map(|at| words[at] = to(words[at])).is_some()
}

fn code(word: u64) -> u8 {
    word as u8
}

fn number(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Faults of which each is one that an emitter might have.
const FAULTS: [Fault; 10] = [
    ("a mask is off by a bit", |object| {
        change(object, |w| code(w) == 0x57 && number(w) == 0xf, |w| w ^ 8 << 32)
    }),
    ("the byte order of a port or type is dropped", |object| {
        change(object, |w| code(w) == 0xdc && number(w) == 16, |w| w & !0xff | 0xd4)
    }),
    ("a jump leads one instruction too far", |object| {
        let is_jump = |w: u64| code(w) & 7 == 6 && code(w) != 6 && w >> 16 & 0xffff > 8;
        change(object, is_jump, |w| w + (1 << 16))
    }),
    ("0xffff is taken for 0", |object| {
        change(object, |w| code(w) & 7 == 6 && number(w) == 0xffff, |w| w & 0xffff_ffff)
    }),
    ("a guard is lost", |object| {
        // Never equal to what no number of 8 bits is.
        change(object, |w| code(w) & 0xf7 == 0x56 && number(w) == 4, |w| w & !0xff | 0xb4)
    }),
    ("arms are swapped", |object| {
        change(object, |w| code(w) == 0x16 || code(w) == 0x56, |w| w ^ 0x40)
    }),
    ("a number that is compared is off by one", |object| {
        change(object, |w| matches!(code(w), 0xa6 | 0xb6 | 0x26 | 0x36), |w| w + (1 << 32))
    }),
    ("a complement is forgotten", |object| {
        change(object, |w| code(w) == 0xa7, |w| w & 0xffff_ffff)
    }),
    ("a frame leaves by another port", |object| {
        change(
            object,
            |w| code(w) == 0xb7 && w >> 8 & 0xf == 2 && number(w) < 100,
            |w| w + (1 << 32),
        )
    }),
    ("another class is counted", |object| {
        change(
            object,
            |w| code(w) == 0x62 && w >> 8 & 0xf == 10 && number(w) > 9,
            |w| w - (1 << 32),
        )
    }),
];

#[test]
fn faults_in_instructions_are_found() {
    let (mut found, mut missed) = (std::collections::BTreeMap::new(), Vec::new());
    for subject in subjects("ebpf-faults") {
        if !subject.name.contains("ten-routers") && !subject.name.contains("programs/") {
            continue;
        }
        for (name, _, program) in subject.segments() {
            let compiled = ebpf::compile(&device(&program)).expect("it fits");
            for (fault, make) in FAULTS {
                let mut object = compiled.object.clone();
                if !make(&mut object) {
                    continue;
                }
                match judge(&program, &object) {
                    Ok(Verdict::Different(_)) | Err(_) => *found.entry(fault).or_insert(0) += 1,
                    Ok(other) => missed.push(format!("{name}: {fault}: {other:?}")),
                }
            }
        }
    }
    eprintln!("{found:?}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let unseen: Vec<&str> =
        FAULTS.iter().map(|fault| fault.0).filter(|fault| !found.contains_key(fault)).collect();
    assert!(unseen.is_empty() || std::env::var_os("FILETEST").is_some(), "{unseen:?}");
}

/// `BLESS=1` writes down what the program becomes now.
#[test]
fn ten_routers_become_what_they_became() {
    let all = subjects("ebpf-listing");
    let subject = all.iter().find(|subject| subject.name == "examples/ten-routers.click");
    let (_, _, program) = subject.expect("it is there").segments().remove(0);
    let names = |node: NodeId, _| subject.expect("it is there").graph.nodes[node].name.clone();
    let device = codegen::Device { origin: &names, ..device(&program) };
    let files = ebpf::EBPF.emit(&device).expect("it fits");
    let listing = files.iter().find(|file| file.name.ends_with(".lst")).expect("it is there");
    let golden = root().join("filetests/programs/ten-routers.ebpf");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &listing.contents).unwrap();
    }
    assert!(fs::read(&golden).unwrap() == listing.contents, "BLESS=1 takes what it becomes now");
}

/// Files may hold anything: whatever is changed in them is read, or refused.
#[test]
fn hostile_files_are_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut read, mut refused) = (0, 0);
    let all = subjects("ebpf-hostile");
    for subject in all.iter().filter(|subject| subject.name.starts_with("filetests/programs/")) {
        for (_, _, program) in subject.segments() {
            let device = device(&program);
            let files = ebpf::EBPF.emit(&device).expect("it fits");
            for _ in 0..200 {
                let mut files = files.clone();
                let file = random.usize(..2);
                let bytes = &mut files[file].contents;
                match random.u8(..8) {
                    0 => bytes.truncate(random.usize(..bytes.len())),
                    1 => bytes.extend([random.u8(..); 9]),
                    _ => {
                        for _ in 0..random.usize(1..4) {
                            let at = random.usize(..bytes.len());
                            bytes[at] = random.u8(..);
                        }
                    }
                }
                match ebpf::EBPF.read(&files, &device) {
                    Ok(_) => read += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
