//! Elaborates every case of the conformance corpus, where it is there.

mod shape;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use catena_compiler::prove::differential::Effort;
use catena_compiler::prove::{Outcome, Subjects, verify_chain};
use catena_compiler::{Chain, Options, elaborate, flatten, instantiate};
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use elements::element_state::{ElementState, Scope};
use ir::{Diagnostic, Severity, Sources};
use net::{Batch, Pool};
use shape::{Folder, show};

/// The folder of the corpus; says why if it is missing, which is a failure in CI.
#[allow(clippy::print_stderr)]
fn corpus() -> Option<PathBuf> {
    let root = env::var_os("CATENA_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = root.join("conformance");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("not run: {} is missing (set CATENA_SHARED)", path.display());
    assert!(env::var_os("CATENA_SHARED").is_none(), "the conformance corpus is missing");
    None
}

fn cases(errors: bool) -> Vec<PathBuf> {
    let Some(root) = corpus() else { return Vec::new() };
    let entries = fs::read_dir(root).expect("the corpus can be listed");
    let mut cases: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("case.click").is_file())
        .filter(|path| path.join("expect.err").is_file() == errors)
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

struct Elaborated {
    sources: Sources,
    chain: Option<Chain>,
    diagnostics: Vec<Diagnostic>,
}

impl Elaborated {
    fn shown(&self) -> Vec<String> {
        self.diagnostics.iter().map(|d| show(&self.sources, d)).collect()
    }
}

/// Opens whatever exists, and then neither receives nor sends.
struct Existing {
    root: PathBuf,
}

struct Silent;

impl Devices for Existing {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        if let DeviceRequest::CaptureIn { path } = request {
            let path = self.root.join(path);
            fs::metadata(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(Box::new(Silent))
    }
}

impl Device for Silent {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        while let Some(packet) = batch.pop() {
            pool.recycle(packet);
        }
        Ok(())
    }
}

fn elaborated(case: &Path) -> Elaborated {
    let mut sources = Sources::new();
    let text = fs::read_to_string(case.join("case.click")).expect("a case has a configuration");
    let file = sources.add("case.click", text);
    let mut files = Folder::new(case);
    let (chain, mut diagnostics) = elaborate(&mut sources, file, &Options::default(), &mut files);
    if let Some(chain) = &chain
        && let Some(mut elements) = instantiate(chain, &mut sources, &mut files, &mut diagnostics)
    {
        let mut devices = Existing { root: case.to_owned() };
        elements.initialize(chain, &mut sources, &mut files, &mut devices, &mut diagnostics);
    }
    Elaborated { sources, chain, diagnostics }
}

#[test]
fn every_case_elaborates() {
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in cases(false) {
        let outcome = elaborated(&case);
        assert!(outcome.chain.is_some());
        let name = name_of(&case);
        // What is not there yet may define what others need.
        let waits = outcome.diagnostics.iter().any(|d| d.code == "unknown-class");
        for (diagnostic, shown) in outcome.diagnostics.iter().zip(outcome.shown()) {
            let class = diagnostic.span().map_or("", |span| outcome.sources.slice(span));
            if diagnostic.code == "unknown-class" {
                *unknown.entry(class.to_owned()).or_default() += 1;
            } else if diagnostic.severity == Severity::Error && !waits {
                failures.push(format!("{name}: {shown}"));
            }
        }
    }
    println!("unknown classes: {unknown:#?}");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_case_is_the_same_flat() {
    for case in cases(false) {
        let outcome = elaborated(&case);
        let Some(chain) = outcome.chain else { continue };
        let (again, said) = shape::chain(&flatten(&chain));
        let said: Vec<String> =
            said.into_iter().filter(|s| !s.starts_with("error[unknown-class]")).collect();
        if outcome.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            continue;
        }
        assert_eq!(said, [""; 0], "{}", case.display());
        let again = again.expect("a flat chain elaborates");
        shape::assert_same(&chain, &again);
        assert!(again.graph.groups.is_empty());
    }
}

#[test]
fn every_case_equals_what_it_becomes() {
    let mut proofs = 0;
    for case in cases(false) {
        let mut sources = Sources::new();
        let text = fs::read_to_string(case.join("case.click")).expect("a configuration");
        let file = sources.add("case.click", text);
        let (mut files, mut said) = (Folder::new(&case), Vec::new());
        let (chain, _) = elaborate(&mut sources, file, &Options::default(), &mut files);
        let chain = chain.expect("a chain");
        let made = instantiate(&chain, &mut sources, &mut files, &mut said);
        let Some(mut made) = made else { continue };
        let mut devices = Existing { root: case.clone() };
        made.initialize(&chain, &mut sources, &mut files, &mut devices, &mut said);
        let mut state = ElementState::copy(Scope::All);
        for (element, node) in made.elements.iter_mut().zip(&chain.graph.nodes) {
            element.export(&node.name, &mut state);
        }
        let models = made.elements.iter().map(|element| element.model()).collect();
        let (calls, frames_only, makes_bare) = (Vec::new(), Vec::new(), Vec::new());
        let (graph, places) = (chain.graph, Vec::new());
        let state = state.declared;
        let subjects = Subjects { graph, models, state, calls, frames_only, makes_bare, places };
        let found = verify_chain(&subjects, Some(Effort { packets: 150, seed: 1 }));
        assert_eq!(found.outcome(), Outcome::Equal, "{}: {found:#?}", name_of(&case));
        proofs += found.proofs.len();
    }
    assert!(corpus().is_none() || proofs > 50, "only {proofs} programs");
}

fn name_of(case: &Path) -> &str {
    case.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Where each case is to be refused, and as what.
const REFUSALS: &[(&str, u32, &str)] = &[
    ("error-bad-argument-type", 1, "bad-argument"),
    ("error-bad-classifier-pattern", 1, ""),
    ("error-bad-route", 1, ""),
    ("error-compound-arguments", 2, "no-overload"),
    ("error-missing-argument", 1, "missing-argument"),
    ("error-missing-file", 1, "device"),
    ("error-no-such-port", 3, "no-such-port"),
    ("error-push-pull-agnostic", 1, "push-pull"),
    ("error-recursive-compound", 1, "unknown-class"),
    ("error-redeclared", 2, "redeclared"),
    ("error-several-errors", 1, "unknown-class"),
    ("error-too-many-arguments", 1, "too-many-arguments"),
    ("error-unclosed-paren", 1, "unclosed-delimiter"),
    ("error-unknown-class", 1, "unknown-class"),
    ("error-unknown-keyword", 1, "unknown-keyword"),
    ("error-unknown-requirement", 1, "unknown-requirement"),
    ("error-use-before-declaration", 2, "undeclared"),
];

#[test]
fn every_error_is_refused_at_its_line() {
    let mut met = 0;
    let mut failures = Vec::new();
    for case in cases(true) {
        let outcome = elaborated(&case);
        let name = name_of(&case);
        let shown = outcome.shown();
        println!("{name}:\n  {}", shown.join("\n  "));
        let Some(&(_, line, code)) = REFUSALS.iter().find(|r| r.0 == name) else {
            failures.push(format!("{name} is not in the table"));
            continue;
        };
        met += 1;
        let refused = outcome.diagnostics.iter().any(|d| {
            let at = d.span().map(|s| outcome.sources.line_column(s.file, s.start).line);
            d.severity == Severity::Error && d.code.starts_with(code) && at == Some(line)
        });
        // Elements that are not there yet say nothing about their arguments.
        let waits = outcome.diagnostics.iter().any(|d| d.code == "unknown-class");
        if !refused && !waits {
            failures.push(format!("{name}: {shown:#?}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(met == 0 || met == REFUSALS.len());
}
