//! Every configuration of the conformance corpus yields the packets and handler values recorded
//! for it, or is refused where it must be, in every execution mode.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use engine::session;
use lab::chain::Mode;
use lab::front::Front;
use net::pcap::Reader;

type Capture = (Option<u32>, Vec<(Vec<u8>, u32)>);

fn read_capture(path: &Path) -> Capture {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader =
        Reader::open(Cursor::new(bytes)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let link = reader.link_type().map(|l| l.0);
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        records.push((record.data.to_vec(), record.header.original_len));
    }
    (link, records)
}

/// Compares what came out with what must. Devices do not know how long frames were on the wire.
fn difference(expected: &Capture, actual: &Capture, front: Option<Front>) -> Option<String> {
    if expected.0 != actual.0 {
        return Some(format!("link type {:?} instead of {:?}", actual.0, expected.0));
    }
    let bare = expected.0 != Some(1);
    let say = |r: Option<&(Vec<u8>, u32)>| match r {
        Some((data, length)) => {
            let hex: String = data.iter().map(|b| format!("{b:02x}")).collect();
            format!("{} (length {length})\n      {hex}", net::notation::describe(data, !bare))
        }
        None => "nothing".to_string(),
    };
    let n = expected.1.len().max(actual.1.len());
    let same = |i: usize| match (expected.1.get(i), actual.1.get(i)) {
        (Some(wanted), Some(got)) => match front {
            Some(front) => front.is_same(&wanted.0, &got.0),
            None => wanted == got,
        },
        _ => false,
    };
    let at = (0..n).find(|&i| !same(i))?;
    Some(format!(
        "{} packets instead of {}; packet {at}:\n    expected {}\n    got      {}",
        actual.1.len(),
        expected.1.len(),
        say(expected.1.get(at)),
        say(actual.1.get(at))
    ))
}

fn run(case: &Path, mode: Mode, scratch: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch).unwrap();
    for entry in fs::read_dir(case).unwrap().map(Result::unwrap) {
        if !entry.file_name().to_string_lossy().starts_with("expect") {
            fs::copy(entry.path(), scratch.join(entry.file_name())).unwrap();
        }
    }
    let text = fs::read_to_string(case.join("case.click")).unwrap();
    let started = crate::support::start("case.click", &text, scratch, mode);
    let must_fail = case.join("expect.exit").exists();
    let mut started = match (started, must_fail) {
        (Err((diagnostics, sources)), true) => return refused(case, &diagnostics, &sources),
        (Ok(_), true) => return Err("is accepted but must be refused".into()),
        (Err((diagnostics, sources)), false) => {
            let lines = diagnostics.iter().map(|d| {
                let place = d.span().map_or(String::new(), |s| sources.landmark(s));
                format!("{place}: {}", d.message)
            });
            return Err(format!("is refused:\n    {}", lines.collect::<Vec<_>>().join("\n    ")));
        }
        (Ok(started), false) => started,
    };
    let mut rounds = 0;
    started.router.run(|_, _| {
        rounds += 1;
        rounds > 100_000
    });
    started.router.finish();
    let errors = started.heard.0.borrow().errors.clone();
    if !errors.is_empty() {
        return Err(format!("errors while running: {errors:?}"));
    }
    let mut faults = Vec::new();
    let mut expected: Vec<PathBuf> =
        fs::read_dir(case).unwrap().map(|e| e.unwrap().path()).collect();
    expected
        .retain(|p| p.extension().is_some_and(|e| e == "pcap") && name(p).starts_with("expect"));
    expected.sort();
    for path in expected {
        let out = scratch.join(name(&path).replace("expect", "out"));
        if let Some(difference) = difference(&read_capture(&path), &read_capture(&out), mode.device)
        {
            faults.push(format!("{}: {difference}", name(&out)));
        }
    }
    for line in fs::read_to_string(case.join("handlers.txt")).unwrap_or_default().lines() {
        let (handler, value) =
            line.split_once(" = ").unwrap_or((line.trim_end_matches([' ', '=']), ""));
        let value = value.replace("\\n", "\n").replace("\\\\", "\\");
        match started.router.read_handler(handler) {
            Ok(actual) if actual.trim_end_matches('\n') == value => {}
            Ok(actual) => faults.push(format!("{handler} is {actual:?} instead of {value:?}")),
            Err(why) => faults.push(format!("{handler}: {why}")),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n  ")) }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The refusal must name each line that the reference names.
fn refused(
    case: &Path,
    diagnostics: &[ir::Diagnostic],
    sources: &ir::Sources,
) -> Result<(), String> {
    let reference = fs::read_to_string(case.join("expect.err")).unwrap_or_default();
    let line_of =
        |l: &str| l.trim().strip_prefix("case.click:")?.split(':').next()?.parse::<u32>().ok();
    // Some of the reference's errors stand behind the last line, where it noticed them.
    let lines = fs::read_to_string(case.join("case.click")).unwrap().lines().count() as u32;
    let wanted: Vec<u32> = reference.lines().filter_map(line_of).filter(|&l| l <= lines).collect();
    let mut named = Vec::new();
    for label in diagnostics.iter().flat_map(|d| &d.labels) {
        let first = sources.line_column(label.span.file, label.span.start).line;
        let last = sources.line_column(label.span.file, label.span.end).line;
        named.extend(first..=last);
    }
    match wanted.iter().find(|l| !named.contains(l)) {
        None if !diagnostics.is_empty() => Ok(()),
        None => Err("is refused without a word".into()),
        Some(line) => Err(format!("line {line} is not named among {named:?}")),
    }
}

fn walk(mode: impl Into<Mode>) {
    let mode = mode.into();
    let Some(folder) = lab::shared("conformance") else { return };
    let only = std::env::var("CASE").ok();
    let mut results: BTreeMap<String, Result<(), String>> = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let case = name(&entry);
        if entry.join("case.click").exists()
            && mode.is_for(&case)
            && only.as_ref().is_none_or(|o| case.contains(o.as_str()))
        {
            let scratch =
                std::env::temp_dir().join(format!("catena-{}-{mode:?}-{case}", std::process::id()));
            // A case that panics is a failure like another.
            let result = std::panic::catch_unwind(|| run(&entry, mode, &scratch));
            results.insert(case, result.unwrap_or_else(|_| Err("panics".into())));
            let _ = fs::remove_dir_all(&scratch);
        }
    }
    assert!(!results.is_empty(), "no cases found");
    let failed: Vec<String> =
        results.iter().filter_map(|(c, r)| r.as_ref().err().map(|e| format!("{c}: {e}"))).collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases fail:\n{}",
        failed.len(),
        results.len(),
        failed.join("\n")
    );
}

#[test]
fn element_by_element() {
    walk(session::Path::Native);
}

#[test]
fn interpreted() {
    walk(session::Path::Interpreted);
}

#[test]
fn synthesised() {
    walk(session::Path::Synthesised);
}

#[test]
fn synthesised_and_interpreted() {
    walk(session::Path::SynthesisedInterpreted);
}

#[test]
fn synthesised_or_not() {
    walk(Mode { drawn: true, ..Mode::of(session::Path::Synthesised) });
}

#[test]
fn synthesised_and_cut() {
    walk(Mode { cut: true, ..Mode::of(session::Path::Synthesised) });
}

#[test]
fn synthesised_cut_and_interpreted() {
    walk(Mode { cut: true, ..Mode::of(session::Path::SynthesisedInterpreted) });
}

#[test]
fn behind_devices() {
    Mode::behind_devices().into_iter().for_each(walk);
}
