//! Programs that are cut, and what their parts do together.

use std::collections::BTreeSet;
use std::slice;

use catena_compiler::partition::{Apart, Partition, Refused, behind, join, partition};
use catena_compiler::prove::Verdict;
use catena_compiler::synthesize_tables;
use ir::program::{Continuation, End, Exit, Step, StepId, Term, TermId, Write, verify};
use ir::{Base, FileId, Program};

use super::{Made, chains, compared};

/// Its steps, each alone.
fn each(program: &Program) -> impl Iterator<Item = BTreeSet<StepId>> {
    (1..program.steps.len() as u32).map(|step| BTreeSet::from([StepId(step)]))
}

/// Some of its steps, at random.
fn some(program: &Program, random: &mut fastrand::Rng) -> BTreeSet<StepId> {
    let steps = 0..program.steps.len() as u32;
    (0..random.usize(2..12)).map(|_| StepId(random.u32(steps.clone()))).collect()
}

fn carries(program: &Program) -> bool {
    let field = |term: &Term| matches!(term, Term::Input(field) if field.base == Base::Carried);
    program.terms.iter().any(field)
}

/// The programs of a chain, specialised and with whole tables.
fn programs(made: &Made) -> Vec<Program> {
    let tables = synthesize_tables(&made.graph, &made.models).programs;
    made.synthesis.programs.iter().cloned().chain(tables).collect()
}

/// Cuts, and proves that the parts together are what was cut.
fn cut(made: &Made, program: &Program, at: &BTreeSet<StepId>) -> Partition {
    let parts = partition(program, at, Continuation(7));
    for part in parts.continuations.iter().chain([&parts.front]) {
        assert_eq!(verify::verify(part), [], "{at:?} of\n{program}\n{part}");
    }
    let numbers = parts.continuations.iter().map(|part| part.continuation);
    assert!(numbers.eq((7..).map(Continuation).map(Some).take(parts.continuations.len())));
    let whole = join(&parts.front, &parts.continuations).expect("they fit");
    assert_eq!(verify::verify(&whole), [], "{at:?}\n{whole}");
    match compared(made, program, &whole) {
        Verdict::Equal => {}
        verdict => panic!("{at:?}: {verdict:?} of\n{program}\n{whole}"),
    }
    parts
}

#[test]
fn parts_are_together_what_was_cut() {
    let mut random = fastrand::Rng::with_seed(5);
    let (mut parts, mut carried, mut again, mut refused) = (0, 0, 0, 0);
    for made in chains() {
        for program in programs(&made) {
            let many: Vec<_> = (0..40).map(|_| some(&program, &mut random)).collect();
            for at in each(&program).chain(many) {
                let found = cut(&made, &program, &at);
                parts += found.continuations.len();
                carried += found.continuations.iter().filter(|part| carries(part)).count();
                let starts = |part: &&Program| matches!(part.steps[0], Step::Lookup { .. });
                again += found.continuations.iter().filter(starts).count();
                let other = |why: &&(StepId, Refused)| why.1 != Refused::Root;
                refused += found.refused.iter().filter(other).count();
            }
        }
    }
    assert!(carried >= 30 && again > 50, "{carried} and {again} of {parts} parts");
    assert!(refused * 20 < parts, "{refused} cuts were refused, {parts} made");
}

#[test]
fn parts_can_be_cut_again() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut twice = 0;
    for made in chains() {
        for program in programs(&made) {
            for _ in 0..20 {
                let outer = cut(&made, &program, &some(&program, &mut random));
                let mut all = Vec::new();
                for part in &outer.continuations {
                    let first = Continuation(100 * (all.len() as u16 + 1));
                    let inner = partition(part, &some(part, &mut random), first);
                    twice += inner.continuations.iter().filter(|part| carries(part)).count();
                    all.push(inner.front);
                    all.extend(inner.continuations);
                }
                assert!(all.iter().all(verify::is_well_formed));
                let whole = join(&outer.front, &all).expect("they fit");
                let verdict = compared(&made, &program, &whole);
                assert!(matches!(verdict, Verdict::Equal), "{verdict:?}");
            }
        }
    }
    assert!(twice >= 5, "{twice} carry what was carried to them");
}

#[test]
fn what_is_cut_off_decides_nothing_again() {
    for made in chains() {
        for program in programs(&made) {
            let exits: Vec<StepId> = program.exits().map(|exit| exit.0).collect();
            let parts = cut(&made, &program, &exits.iter().copied().collect());
            for part in &parts.continuations {
                // Flows, which may have changed, are looked up once more.
                let decides = |step: &Step| !matches!(step, Step::Exit(_) | Step::Lookup { .. });
                assert!(!part.steps.iter().any(decides), "{part}");
            }
            let done = parts.front.exits().filter(|e| !matches!(e.1.end, End::Handoff { .. }));
            let refused = parts.refused.iter().filter(|(step, _)| exits.contains(step));
            assert!(done.count() <= refused.count(), "{}", parts.front);
        }
    }
}

#[test]
fn parts_read_back() {
    let mut random = fastrand::Rng::with_seed(8);
    for made in chains() {
        for program in programs(&made) {
            let parts = partition(&program, &some(&program, &mut random), Continuation(0));
            for part in parts.continuations.into_iter().chain([parts.front]) {
                let text = part.text(&made.graph).to_string();
                let read = ir::text::parse_programs(FileId(0), &text).expect(&text).programs;
                assert_eq!(read, [part], "{text}");
            }
        }
    }
}

/// A program that does nothing but hand off, and say where with a tag.
fn tagged(program: &Program, tag: u16, to: Continuation) -> Program {
    let value = Write { offset: 0, length: 2, value: TermId(0) };
    let steps = vec![Step::Exit(Box::new(Exit::handoff(to, vec![value])))];
    let terms = vec![Term::Const(tag.into())];
    let (state, tables, lookups) = (Vec::new(), Vec::new(), Vec::new());
    Program { entry: program.entry, continuation: None, terms, state, tables, lookups, steps }
}

/// Cores behind a device run one program; a packet's tag says what it does.
#[test]
fn behind_a_device_a_tag_says_which_part_goes_on() {
    let mut random = fastrand::Rng::with_seed(9);
    let (mut shared, mut parts) = (0, 0);
    for made in chains() {
        for program in programs(&made).iter().flat_map(|program| [program; 4]) {
            let all = partition(program, &some(program, &mut random), Continuation(7));
            let all = all.continuations.into_iter().filter(|part| !carries(part));
            let all: Vec<Program> = all.collect();
            let one = behind(program.clone(), &all);
            assert_eq!(verify::verify(&one), [], "{one}");
            let lookups = all.iter().chain([program]).map(|part| part.lookups.len());
            shared += lookups.sum::<usize>() - one.lookups.len();
            let one = Program { continuation: Some(Continuation(1)), ..one };
            let whole = Program { continuation: Some(Continuation(0)), ..program.clone() };
            for part in all.iter().chain([&whole]) {
                parts += 1;
                let to = part.continuation.expect("a part");
                let wanted = tagged(program, 0, to);
                let wanted = join(&wanted, slice::from_ref(part)).expect("it fits");
                let got = tagged(program, to.0, Continuation(1));
                let got = join(&got, slice::from_ref(&one)).expect("it fits");
                let verdict = compared(&made, &wanted, &got);
                assert!(matches!(verdict, Verdict::Equal), "{verdict:?} of\n{wanted}\n{got}");
            }
        }
    }
    assert!(parts > 100 && shared > 40, "{parts} parts share {shared} lookups");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let made = chains().remove(0);
    let program = &programs(&made)[1];
    let all = each(program).map(|at| partition(program, &at, Continuation(0)));
    let Some(parts) = { all }.find(|parts| parts.continuations.iter().any(carries)) else {
        panic!("nothing is carried in\n{program}");
    };
    let (front, part) = (&parts.front, &parts.continuations[0]);
    assert_eq!(join(front, &[]), Err(Apart::NoPart(Continuation(0))));
    let mut silent = front.clone();
    for step in &mut silent.steps {
        if let Step::Exit(exit) = step {
            exit.writes.carried.clear();
        }
    }
    assert!(matches!(join(&silent, std::slice::from_ref(part)), Err(Apart::NotCarried(..))));
    let circle = Program { continuation: Some(Continuation(0)), ..front.clone() };
    assert_eq!(join(front, &[circle]), Err(Apart::Circle(Continuation(0))));
    let beyond = BTreeSet::from([StepId(0), StepId(1 << 20)]);
    let why = [(StepId(1 << 20), Refused::NoStep), (StepId(0), Refused::Root)];
    assert_eq!(partition(program, &beyond, Continuation(0)).refused, why);
    let last = partition(program, &each(program).flatten().collect(), Continuation(u16::MAX));
    assert_eq!(last.continuations.len(), 1);
    assert!(last.refused.iter().any(|(_, why)| *why == Refused::NoNumber));
}

#[test]
fn a_wrong_part_is_found_out() {
    let mut caught = 0;
    for made in chains() {
        for program in programs(&made) {
            for at in each(&program) {
                let mut parts = partition(&program, &at, Continuation(0));
                // Something else is carried.
                let mut wrong = false;
                for step in &mut parts.front.steps {
                    if let Step::Exit(exit) = step
                        && let Some(first) = exit.writes.carried.first_mut()
                        && first.value != TermId(0)
                    {
                        first.value = TermId(0);
                        wrong = true;
                    }
                }
                if !wrong {
                    continue;
                }
                let whole = join(&parts.front, &parts.continuations).expect("they fit");
                caught +=
                    u32::from(matches!(compared(&made, &program, &whole), Verdict::Different(_)));
            }
        }
    }
    assert!(caught > 0, "no mistake was made");
}
