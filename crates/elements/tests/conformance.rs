//! Model conformance: pushing packets through an element does exactly what interpreting its model
//! does.
//!
//! Each class of the registry has a test, under each of its samples: the same random sequence of
//! packets through the element's native code, through the interpreter and through the program that the
//! element becomes must leave the same packets on the same outputs, the same counts by reason, the
//! same declared state, and the same handler values.
//!
//! The sequences are always the same, unless `SEED` says a number to begin from, or `fresh`;
//! `CASES` says how many a sample has.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path as Folder;

use catena_elements::element::{Class, Sample as Configured};
use catena_elements::registry::{CLASSES, find};
use engine::session::Path;
use ir::Port;
use ir::model::StateKind;
use lab::chain::{MODES, Mode, Started, start};
use lab::outcome::{self, Seen, Tallies, drain};
use lab::packets::{Sample, samples};
use net::Batch;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Who moves packets through the element under test where it can be either.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moved {
    Pushed,
    Pulled,
}

/// Whether each of `n` ports is pulled, by one side of Click's processing code.
fn pulled(code: &str, n: usize, agnostic: Moved) -> Vec<bool> {
    let last = code.chars().last().unwrap_or('a');
    let codes = code.chars().chain(std::iter::repeat(last));
    codes.take(n).map(|c| c == 'l' || (c == 'a' && agnostic == Moved::Pulled)).collect()
}

/// The chain under test: the element `x`, fed by hand, its outputs collected in queues.
fn chain(class: &Class, configured: &Configured, moved: Moved) -> String {
    let mut text = format!("{}\nx :: {}({});\n", class.prelude, class.name, configured.config);
    let (inputs, outputs) =
        class.processing.split_once('/').unwrap_or((class.processing, class.processing));
    for (input, pulled) in pulled(inputs, configured.inputs, moved).into_iter().enumerate() {
        let feed = if pulled { format!("i{input} :: Queue(1000000) -> ") } else { String::new() };
        text += &format!("Idle -> {feed}[{input}] x;\n");
    }
    for (output, pulled) in pulled(outputs, configured.outputs, moved).into_iter().enumerate() {
        let push = if pulled { "Unqueue -> " } else { "" };
        text += &format!("x [{output}] -> {push}q{output} :: Queue(1000000) -> Idle;\n");
    }
    text
}

/// All that can be seen after a sequence of packets.
#[derive(Debug, PartialEq)]
struct Outcome {
    outputs: Vec<Vec<Seen>>,
    tallies: Tallies,
    state: ir::Store,
    handlers: Vec<(String, Result<String, String>)>,
    errors: Vec<String>,
}

impl Outcome {
    /// What differs, in a few lines.
    fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        for (port, (native, model)) in self.outputs.iter().zip(&other.outputs).enumerate() {
            if let Some(i) =
                (0..native.len().max(model.len())).find(|&i| native.get(i) != model.get(i))
            {
                let (native, model) = (native.get(i), model.get(i));
                lines.push(format!(
                    "output {port}, packet {i}:\n  pushed    {native:?}\n  otherwise {model:?}"
                ));
            }
        }
        if self.tallies != other.tallies {
            lines.push(format!(
                "drops:\n  pushed    {:?}\n  otherwise {:?}",
                self.tallies, other.tallies
            ));
        }
        if self.state != other.state {
            lines.push(format!(
                "state:\n  pushed    {:?}\n  otherwise {:?}",
                self.state, other.state
            ));
        }
        for (native, model) in self.handlers.iter().zip(&other.handlers).filter(|(n, m)| n != m) {
            lines.push(format!("handler:\n  pushed    {native:?}\n  otherwise {model:?}"));
        }
        lines.join("\n")
    }
}

fn outcome(
    class: &Class,
    configured: &Configured,
    packets: &[Sample],
    moved: Moved,
    mode: impl Into<Mode>,
) -> Outcome {
    let text = chain(class, configured, moved);
    let mut started =
        start("sample", &text, Folder::new("."), mode).unwrap_or_else(|(diagnostics, _)| {
            panic!(
                "the sample '{}' of {} is refused: {diagnostics:?}",
                configured.config, class.name
            )
        });
    let x = started.chain.graph.find("x").expect("x is declared");
    let feeds: Vec<Port> = (0..configured.inputs)
        .map(|port| match started.chain.graph.find(&format!("i{port}")) {
            Some(node) => Port { node, port: 0 },
            None => Port { node: x, port },
        })
        .collect();
    let Started { router, clock, .. } = &mut started;
    let mut batches: Vec<(usize, Batch)> = Vec::new();
    let flush = |router: &mut dataplane::Router, batches: &mut Vec<(usize, Batch)>| {
        for (port, batch) in batches.drain(..) {
            router.push(feeds[port], batch);
        }
        // What is pulled is pulled by tasks.
        for _ in 0..1000 {
            if router.round() != dataplane::Rest::Busy {
                break;
            }
        }
    };
    for sample in packets {
        if sample.starts_batch
            || sample.pause > 0
            || batches.first().is_some_and(|(p, _)| *p != sample.input)
        {
            flush(router, &mut batches);
        }
        clock.advance(sample.pause);
        let packet = sample.packet(&mut router.core().pool);
        if batches.is_empty() {
            batches.push((sample.input, Batch::new()));
        }
        batches[0].1.push(packet);
    }
    flush(router, &mut batches);
    let queues = (0..configured.outputs).map(|output| format!("q{output}"));
    let outputs = queues.map(|queue| drain(&mut started, &queue)).collect();
    let router = &mut started.router;
    let mut tallies = outcome::tallies(router);
    tallies.retain(|(name, ..)| name == "x");
    let (handlers, state) = (outcome::handlers(router, "x"), outcome::state(router));
    let errors = started.heard.0.borrow().errors.clone();
    Outcome { outputs, tallies, state, handlers, errors }
}

/// What sequences begin from.
fn seed() -> u64 {
    match std::env::var("SEED").as_deref() {
        Ok("fresh") => RandomState::new().build_hasher().finish(),
        Ok(number) => number.parse().expect("SEED is a number, or fresh"),
        Err(_) => 0,
    }
}

/// How a class does something else than its model, if it does.
fn violation(class: &Class, configured: &Configured, moved: Moved) -> Option<String> {
    // A sample that is refused needs no packets to be seen.
    drop(outcome(class, configured, &[], moved, Path::Native));
    // A sample has so many sequences of packets.
    let cases = lab::cases(48) as u32;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let seed = seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let vocabulary = format!("{} {}", class.prelude, configured.config);
    let result = runner.run(&samples(&vocabulary, configured.inputs), |packets| {
        let native = outcome(class, configured, &packets, moved, Path::Native);
        for mode in MODES.into_iter().skip(1) {
            let other = outcome(class, configured, &packets, moved, mode);
            prop_assert!(other.errors.is_empty(), "{mode:?}: it is wrong: {:?}", other.errors);
            prop_assert!(native == other, "{mode:?}: {}", native.difference(&other));
        }
        Ok(())
    });
    match result {
        Ok(()) => None,
        Err(TestError::Fail(why, packets)) => {
            let (name, config) = (class.name, configured.config);
            Some(format!("{name}({config}), {moved:?}, SEED={seed}: {why}\npackets: {packets:#?}"))
        }
        Err(TestError::Abort(why)) => Some(format!("{}: {why}", class.name)),
    }
}

/// Compares a class with its model, under all of its samples.
fn conforms(name: &str) {
    let class = find(name).expect("the class is registered");
    let mut violations = Vec::new();
    for configured in class.samples {
        violations.extend(violation(class, configured, Moved::Pushed));
        // One input and one output of either kind: the element can stand on a pull path.
        let either =
            matches!(class.processing.split_once('/'), Some(("a", o)) if o.starts_with('a'));
        if either && configured.inputs == 1 && configured.outputs > 0 {
            violations.extend(violation(class, configured, Moved::Pulled));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n\n"));
}

/// A test for each class.
macro_rules! tests {
    ($($folder:ident::$file:ident::$name:ident,)*) => {
        #[allow(non_snake_case)]
        mod classes {
            $(#[test]
            fn $name() {
                super::conforms(stringify!($name));
            })*
        }
    };
}
catena_elements::classes!(tests);

/// Classes that make, store or consume packets have no sequences of packets; every other class must
/// have a sample.
#[test]
fn every_class_has_a_sample_or_a_reason_to_have_none() {
    let without: Vec<&str> = CLASSES
        .iter()
        .filter(|c| c.samples.is_empty())
        .filter(|c| {
            let source = c.ports.starts_with("0/");
            let pulls_or_stores = c.processing.contains('l');
            !source && !pulls_or_stores && !WITHOUT_SAMPLES.contains(&c.name)
        })
        .map(|c| c.name)
        .collect();
    assert!(without.is_empty(), "these classes have no samples: {without:?}");
}

/// Push elements without samples, because what they do lies outside the chain, or files say it.
const WITHOUT_SAMPLES: &[&str] = &[
    "BackendProbe",
    "DecryptPayload",
    "DedupPayload",
    "ESPDecap",
    "ESPEncap",
    "EncryptPayload",
    "FloodDetector",
    "FlowMonitor",
    "RedupPayload",
    "RestoreAnno",
    "SnortFilter",
    "ToDevice",
    "ToDump",
    "ToIPSummaryDump",
    "URLFilter",
];

/// Classes whose model is opaque for every packet though they stand on push paths, and why.
const OPAQUE: &[(&str, &str)] = &[
    ("FlowRatedSplitter", "keeps keys of both IP versions, behind extension headers"),
    ("IPPrint", "printing"),
    ("Print", "printing"),
    ("Script", "runs a program of the configuration"),
    ("SYNProxy", "answers for servers"),
    ("TCPReset", "writes packets anew"),
];

#[test]
fn an_opaque_model_has_its_reason() {
    let mut unexplained = Vec::new();
    for class in CLASSES.iter().filter(|c| !OPAQUE.iter().any(|(name, _)| *name == c.name)) {
        for configured in class.samples {
            let text = chain(class, configured, Moved::Pushed);
            let started = start("sample", &text, Folder::new("."), Path::Native);
            let mut started = started.unwrap_or_else(|(d, _)| panic!("{}: {d:?}", class.name));
            let model = started.router.element("x").expect("x is declared").model();
            if model.is_opaque() && !model.inputs.is_empty() {
                unexplained.push(format!("{}({})", class.name, configured.config));
            }
        }
    }
    assert!(unexplained.is_empty(), "opaque without a reason: {unexplained:?}");
}

/// A model as it is without what text leaves out: where rules were written.
fn without_spans(block: &mut ir::model::Block) {
    for op in block {
        if let ir::Op::Match { rules, .. } = op {
            let rule = |r: &ir::model::Rule| ir::model::Rule { span: None, ..r.clone() };
            *rules = rules.iter().map(rule).collect();
        }
        op.blocks_mut().for_each(without_spans);
    }
}

#[test]
fn flows_that_a_model_declares_are_found_without_its_element() {
    for class in CLASSES {
        for configured in class.samples {
            let text = chain(class, configured, Moved::Pushed);
            let started = start("sample", &text, Folder::new("."), Path::Native);
            let mut started = started.unwrap_or_else(|(d, _)| panic!("{}: {d:?}", class.name));
            let x = started.router.element("x").expect("x is declared");
            let is_flows = |kind: &StateKind| matches!(kind, StateKind::Flows { .. });
            let model = x.model();
            let mut own = model.state.iter().filter(|declared| declared.owner.is_none());
            let declares = own.any(|declared| is_flows(&declared.kind));
            assert!(!declares || x.flows().is_some(), "{}: programs find no flow", class.name);
        }
    }
}

#[test]
fn every_model_is_well_formed_and_reads_back() {
    let mut wrong = Vec::new();
    for class in CLASSES {
        for configured in class.samples {
            let text = chain(class, configured, Moved::Pushed);
            let started = start("sample", &text, Folder::new("."), Path::Native);
            let Ok(mut started) = started else { panic!("{} is refused", class.name) };
            let mut model = started.router.element("x").expect("x is declared").model();
            let name = format!("{}({})", class.name, configured.config);
            for problem in ir::verify::verify(&model) {
                if problem.severity == ir::Severity::Error {
                    wrong.push(format!("{name}: {problem}"));
                }
            }
            model.inputs.iter_mut().for_each(without_spans);
            let printed = model.to_string();
            match ir::text::parse_model(ir::FileId(0), &printed) {
                Ok(back) if back == model => {}
                Ok(_) => wrong.push(format!("{name} reads back differently:\n{printed}")),
                Err(errors) => wrong.push(format!("{name}: {errors:?} in\n{printed}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
