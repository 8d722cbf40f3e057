//! Filetests: a chain, packets in, and the packets, handler values and drops that must come out,
//! in one readable file. Each is taken through every way of executing it; all must agree.
//!
//! The format is described in `filetests/README.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use catena_cli::session;
use elements::registry::CLASSES;
use ir::Port;
use net::{Batch, notation};

use crate::support::{Started, start};

#[derive(Debug, Default)]
struct Filetest {
    chain: String,
    /// Inputs in order: packets for a port, or time that passes.
    steps: Vec<Step>,
    outputs: BTreeMap<usize, Vec<String>>,
    handlers: Vec<(String, String)>,
    drops: Option<Vec<String>>,
    /// `LINE: CODE` of each error.
    errors: Option<Vec<String>>,
    /// Whether the order of packets may differ between bursts.
    any_order: bool,
}

#[derive(Debug)]
enum Step {
    Packet(usize, Vec<u8>),
    Wait(u64),
    Write(String, String),
}

fn parse(text: &str) -> Result<Filetest, String> {
    let mut test = Filetest::default();
    let mut section = String::new();
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("line {}: {why}", number + 1);
        if let Some(title) = line.strip_suffix(':').filter(|t| is_section(t)) {
            section = title.to_string();
            match title.split_once(' ') {
                Some(("out", port)) => {
                    test.outputs
                        .entry(port.parse().map_err(|_| wrong("a port is missing".into()))?)
                        .or_default();
                }
                None if title == "drops" => test.drops = Some(Vec::new()),
                None if title == "errors" => test.errors = Some(Vec::new()),
                None if title == "any order" => test.any_order = true,
                _ => {}
            }
            continue;
        }
        if section == "chain" {
            test.chain += line;
            test.chain += "\n";
            continue;
        }
        let line = line.split(" ## ").next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match section.split_once(' ').unwrap_or((section.as_str(), "")) {
            ("in", port) => {
                let port = port.parse().map_err(|_| wrong("a port is missing".into()))?;
                if let Some(time) = line.strip_prefix("wait ") {
                    let ns =
                        elements::argument::parse_value::<elements::argument::Nanoseconds>(time)
                            .map_err(wrong)?;
                    steps.push(Step::Wait(ns.0));
                } else if let Some(write) = line.strip_prefix("write ") {
                    let (handler, value) = write.split_once('=').unwrap_or((write, ""));
                    steps.push(Step::Write(handler.trim().into(), value.trim().into()));
                } else {
                    let (times, line) = match line.split_once("x ") {
                        Some((n, rest)) if n.parse::<usize>().is_ok() => {
                            (n.parse().unwrap_or(1), rest)
                        }
                        _ => (1, line),
                    };
                    let frame = notation::parse(line).map_err(wrong)?;
                    steps.extend((0..times).map(|_| Step::Packet(port, frame.clone())));
                }
            }
            ("out", port) => {
                let port = port.parse().map_err(|_| wrong("a port is missing".into()))?;
                let frame = notation::parse(line).map_err(wrong)?;
                test.outputs.entry(port).or_default().push(hex(&frame));
            }
            ("handlers", _) => {
                let (handler, value) =
                    line.split_once('=').ok_or_else(|| wrong("'=' is missing".into()))?;
                test.handlers.push((handler.trim().into(), value.trim().into()));
            }
            ("drops", _) => test.drops.get_or_insert_default().push(line.to_string()),
            ("errors", _) => test.errors.get_or_insert_default().push(line.to_string()),
            _ => return Err(wrong(format!("'{line}' stands in no section"))),
        }
    }
    test.steps = steps;
    Ok(test)
}

fn is_section(title: &str) -> bool {
    let mut words = title.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("chain" | "handlers" | "drops" | "errors"), None, None) => true,
        (Some("any"), Some("order"), None) => true,
        (Some("in" | "out"), Some(port), None) => port.parse::<usize>().is_ok(),
        _ => false,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// How packets are handed in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Burst {
    One,
    Many,
}

impl Filetest {
    fn text(&self) -> String {
        let inputs = self.steps.iter().filter_map(|s| match s {
            Step::Packet(port, _) => Some(*port + 1),
            _ => None,
        });
        let inputs = inputs.max().unwrap_or(0);
        // The chain comes first so that the lines of errors are the lines of the chain.
        let mut text = format!("elementclass Filetest {{ {}}} t :: Filetest;\n", self.chain);
        for port in 0..inputs {
            text += &format!("Idle -> [{port}] t;\n");
        }
        for port in self.outputs.keys() {
            text += &format!("t[{port}] -> q{port} :: Queue(1000000) -> Idle;\n");
        }
        text
    }

    fn run(&self, folder: &Path, path: session::Path, burst: Burst) -> Result<(), String> {
        let started = start("chain", &self.text(), folder, path);
        let mut started = match (started, &self.errors) {
            (Ok(started), None) => started,
            (Ok(_), Some(_)) => return Err("is accepted but must be refused".into()),
            (Err((diagnostics, sources)), errors) => {
                let mut found: Vec<String> = diagnostics
                    .iter()
                    .map(|d| {
                        let line =
                            d.span().map_or(0, |s| sources.line_column(s.file, s.start).line);
                        format!("{line}: {}", d.code)
                    })
                    .collect();
                found.sort();
                let mut wanted = errors.clone().unwrap_or_default();
                wanted.sort();
                if errors.is_some() && found == wanted {
                    return Ok(());
                }
                let messages: Vec<String> = diagnostics
                    .iter()
                    .zip(&found)
                    .map(|(d, f)| format!("{f} ({})", d.message))
                    .collect();
                return Err(format!("is refused: {}", messages.join("; ")));
            }
        };
        // Tasks and timers of the chain run before the first packet and while time passes.
        settle(&mut started);
        self.feed(&mut started, burst)?;
        settle(&mut started);
        self.compare(&mut started, burst)
    }

    fn feed(&self, started: &mut Started, burst: Burst) -> Result<(), String> {
        let mut pending: Option<(usize, Batch)> = None;
        for step in &self.steps {
            let joins =
                matches!((step, &pending), (Step::Packet(port, _), Some((p, _))) if port == p);
            if (!joins || burst == Burst::One)
                && let Some((port, batch)) = pending.take()
            {
                push(started, port, batch);
            }
            match step {
                Step::Packet(port, frame) => {
                    let packet = started.router.core().pool.packet(frame);
                    pending.get_or_insert_with(|| (*port, Batch::new())).1.push(packet);
                }
                Step::Wait(time) => {
                    started.clock.advance(*time);
                    settle(started);
                }
                Step::Write(handler, value) => {
                    let result = started.router.write_handler(&format!("t/{handler}"), value);
                    result.map_err(|e| format!("write {handler}: {e}"))?;
                }
            }
        }
        if let Some((port, batch)) = pending.take() {
            push(started, port, batch);
        }
        Ok(())
    }

    fn compare(&self, started: &mut Started, burst: Burst) -> Result<(), String> {
        let mut faults = Vec::new();
        for (port, expected) in &self.outputs {
            let node = started.chain.graph.find(&format!("q{port}")).expect("queues are declared");
            let mut actual = Vec::new();
            while let Some(packet) = started.router.pull(Port { node, port: 0 }) {
                actual.push(packet.data().to_vec());
                started.router.core().pool.recycle(packet);
            }
            let mut got: Vec<String> = actual.iter().map(|a| hex(a)).collect();
            let mut wanted = expected.clone();
            if self.any_order && burst == Burst::Many {
                got.sort();
                wanted.sort();
            }
            if got != wanted {
                let words: Vec<String> = actual
                    .iter()
                    .map(|a| {
                        let frame = notation::describe(a, true);
                        if frame.starts_with("bare raw") {
                            notation::describe(a, false)
                        } else {
                            frame
                        }
                    })
                    .collect();
                faults.push(format!("out {port}: got\n{}", words.join("\n")));
            }
        }
        for (handler, value) in &self.handlers {
            match started.router.read_handler(&format!("t/{handler}")) {
                Ok(actual) if actual.trim_end().replace('\n', "\\n") == *value => {}
                Ok(actual) => {
                    faults.push(format!("{handler} = {}", actual.trim_end().replace('\n', "\\n")))
                }
                Err(why) => faults.push(format!("{handler}: {why}")),
            }
        }
        if let Some(wanted) = &self.drops {
            let mut got: Vec<String> = started
                .router
                .report()
                .filter_map(|(name, _, tally, _)| Some((name.strip_prefix("t/")?, tally)))
                .flat_map(|(name, tally)| {
                    let dropped = tally.lines().iter().filter(|l| l.dropped > 0);
                    dropped
                        .map(move |l| format!("{name} {} {}", l.reason, l.dropped))
                        .collect::<Vec<_>>()
                })
                .collect();
            got.sort();
            let mut wanted = wanted.clone();
            wanted.sort();
            if got != wanted {
                faults.push(format!("drops: got\n{}", got.join("\n")));
            }
        }
        let errors = started.heard.0.borrow().errors.clone();
        if !errors.is_empty() {
            faults.push(format!("errors while running: {errors:?}"));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }
}

fn push(started: &mut Started, port: usize, batch: Batch) {
    // The compound is gone: its input leads where the Idle in front of it leads.
    let idle = format!("Idle@{}", port + 1);
    let graph = &started.chain.graph;
    let node = (0..graph.nodes.len())
        .filter(|&n| {
            graph.nodes[n].class == "Idle"
                && graph.nodes[n].group.is_none()
                && !graph.nodes[n].outputs.is_empty()
        })
        .nth(port)
        .unwrap_or_else(|| panic!("{idle} is declared"));
    let to = graph.successors(Port { node, port: 0 }).next().expect("inputs are connected");
    started.router.push(to, batch);
}

/// Runs tasks and timers that are due until nothing is left to do at once.
fn settle(started: &mut Started) {
    for _ in 0..100_000 {
        if started.router.round() != dataplane::Rest::Busy {
            return;
        }
    }
    panic!("the chain is never idle");
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../filetests"));
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == "test") {
                files.push(entry);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn every_way_of_executing_a_chain_agrees() {
    let only = std::env::var("FILETEST").ok();
    let mut faults = Vec::new();
    let mut ran = 0;
    for file in files() {
        let name = file
            .strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/../../filetests"))
            .unwrap_or(&file);
        let name = name.display().to_string();
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        ran += 1;
        let test = match parse(&fs::read_to_string(&file).unwrap()) {
            Ok(test) => test,
            Err(why) => {
                faults.push(format!("{name}: {why}"));
                continue;
            }
        };
        for path in [session::Path::Native, session::Path::Interpreted] {
            for burst in [Burst::One, Burst::Many] {
                if let Err(why) = test.run(file.parent().unwrap(), path, burst) {
                    faults.push(format!("{name} ({path:?}, burst of {burst:?}): {why}"));
                }
            }
        }
    }
    assert!(ran > 0, "no filetests found");
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n\n"));
}

/// Whoever adds an element adds a filetest for it.
#[test]
fn every_class_has_a_filetest() {
    let texts: Vec<String> = files().iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    let words: std::collections::BTreeSet<&str> = texts
        .iter()
        .flat_map(|t| t.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .collect();
    let missing: Vec<&str> =
        CLASSES.iter().map(|c| c.name).filter(|n| !words.contains(n)).collect();
    assert!(missing.is_empty(), "these classes stand in no filetest: {missing:?}");
}
