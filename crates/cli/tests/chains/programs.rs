//! Programs as text: what is printed reads back as the same program, and a dozen chains become what
//! they became before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use compiler::{Chain, Synthesis, synthesize, synthesize_tables};
use engine::session;
use engine::{Closed, Disk};
use ir::Base;
use ir::program::{Entries, Step, Term, TermId, verify};
use ir::text::parse_programs;
use ir::{FileId, Model, Program, Sources};

use crate::filetests;
use crate::support::Started;
use crate::tables::models;
use lab::shared;

/// The text of what a chain became, with what it is about.
fn text(synthesis: &Synthesis, chain: &Chain) -> String {
    let texts = synthesis.programs.iter().map(|p| p.text(&chain.graph).to_string());
    texts.collect::<Vec<_>>().join("\n")
}

/// What is wrong with the text of a chain's programs, or with their tables.
fn fault(chain: &Chain, models: &[Model]) -> Option<String> {
    for synthesis in [synthesize(&chain.graph, models), synthesize_tables(&chain.graph, models)] {
        let text = text(&synthesis, chain);
        let read = match parse_programs(FileId(0), &text) {
            Ok(read) => read,
            Err(errors) => {
                let at = errors[0].span().map_or("", |span| &text[span.range().start..]);
                return Some(format!("{:?} at\n{}", errors[0], &at[..at.len().min(300)]));
            }
        };
        if read.programs != synthesis.programs {
            let unlike = read.programs.iter().zip(&synthesis.programs).find(|(a, b)| a != b);
            return Some(match unlike {
                Some((a, b)) => format!("{b}\nreads back as\n{a}"),
                None => "there are more or fewer programs".into(),
            });
        }
        for program in &synthesis.programs {
            let lowered = program.clone().lower();
            let problems = verify::verify(&lowered);
            if lowered.has_prefixes() || !problems.is_empty() {
                return Some(format!("{problems:?} of what is lowered from\n{program}"));
            }
        }
    }
    None
}

#[test]
fn programs_read_back_as_they_were() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let mut faults = Vec::new();
    let mut count = 0;
    for (name, begin) in filetests::chains(&folder) {
        let Some(mut started) = begin(session::Path::Native.into()) else { continue };
        let models = models(&mut started);
        count += 1;
        let Started { chain, .. } = started;
        faults.extend(fault(&chain, &models).map(|fault| format!("{name}: {fault}")));
    }
    assert!(count > 100, "{count} filetests");
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n\n"));
}

/// A chain of a file, and what its elements mean; devices are not opened.
pub fn chain(path: &Path) -> (Chain, Vec<Model>) {
    let (mut sources, mut files) = (Sources::new(), Disk::default());
    let name = path.display().to_string();
    let file = files.configuration(&mut sources, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let options = compiler::Options::of(Vec::new());
    let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let chain = chain.unwrap_or_else(|| panic!("{name}: {found:?}"));
    let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
    let mut made = made.unwrap_or_else(|| panic!("{name}: {found:?}"));
    let mut closed = Closed::beside(path.parent().unwrap().to_path_buf());
    made.initialize(&chain, &mut sources, &mut files, &mut closed, &mut found);
    let models = made.elements.iter().map(|e| e.model()).collect();
    (chain, models)
}

/// What a program has twice: a table of one sort of one element.
fn twice(program: &Program) -> Option<String> {
    let mut owners = BTreeMap::new();
    for table in &program.tables {
        let sort = match table.entries {
            Entries::Flows(state) => u32::from(state.0),
            Entries::Prefixes(_) => u32::MAX,
            Entries::Rules(_) => u32::MAX - 1,
        };
        *owners.entry((table.element, sort)).or_insert(0) += 1;
    }
    let (owner, _) = owners.into_iter().find(|(_, count)| *count > 1)?;
    Some(format!("tables of element {} stand here more than once", owner.0))
}

/// A table of rules that asks how long packets are, rather than look at headers that are there.
fn asks_length(program: &Program) -> Option<String> {
    let is_length = |key: &TermId| match program.term(*key) {
        Term::Input(field) => field.base == Base::Meta,
        Term::Binary(..) => true,
        _ => false,
    };
    let asks = |step: &Step| match step {
        Step::Classify { table, keys, .. } => table.filter(|_| keys.iter().any(is_length)),
        _ => None,
    };
    let table = program.steps.iter().find_map(asks)?;
    Some(format!("table {} has a length among its keys", table.0))
}

/// `BLESS=1` writes down what chains become now.
#[test]
fn chains_become_what_they_became() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = root.join("filetests/programs");
    let mut golden: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    golden.sort();
    let mut faults = Vec::new();
    for path in golden.iter().filter(|p| p.extension().is_some_and(|e| e == "prog")) {
        let expected = fs::read_to_string(path).unwrap();
        let first = expected.lines().next().and_then(|l| l.strip_prefix("// "));
        let of = first.unwrap_or_else(|| panic!("{}: names no chain", path.display()));
        let (chain, models) = chain(&root.join(of));
        let synthesis = synthesize_tables(&chain.graph, &models);
        let text = format!("// {of}\n{}", text(&synthesis, &chain));
        faults.extend(fault(&chain, &models).map(|fault| format!("{of}: {fault}")));
        let why = |program| [twice(program), asks_length(program)].into_iter().flatten();
        faults.extend(synthesis.programs.iter().flat_map(why).map(|why| format!("{of}: {why}")));
        if std::env::var_os("BLESS").is_some() {
            fs::write(path, text).unwrap();
        } else if text != expected {
            let line = text.lines().zip(expected.lines()).position(|(a, b)| a != b);
            let line = line.unwrap_or(expected.lines().count().min(text.lines().count()));
            faults.push(format!(
                "{} line {}: {:?} instead of {:?}; BLESS=1 takes it",
                path.display(),
                line + 1,
                text.lines().nth(line),
                expected.lines().nth(line)
            ));
        }
    }
    assert!(golden.len() >= 12, "{} golden programs", golden.len());
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Programs of the conformance corpus, too, read back.
#[test]
fn programs_of_the_corpus_read_back() {
    let Some(corpus) = shared("conformance") else { return };
    let mut count = 0;
    for case in fs::read_dir(corpus).unwrap().map(|e| e.unwrap().path()) {
        let (file, refused) = (case.join("case.click"), case.join("expect.exit").exists());
        if !file.exists() || refused {
            continue;
        }
        let before = std::env::current_dir().unwrap();
        let (chain, models) = chain(&file);
        assert_eq!(before, std::env::current_dir().unwrap());
        count += 1;
        if let Some(fault) = fault(&chain, &models) {
            panic!("{}: {fault}", case.display());
        }
    }
    assert!(count > 50, "{count} cases");
}
