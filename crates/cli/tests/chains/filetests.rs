//! Filetests: a chain, packets in, and the packets, handler values and drops that must come out,
//! in one readable file. Each is taken through every execution mode; all must agree.
//!
//! The format is described in `filetests/README.md`.

mod format;
mod real;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dataplane::Rest;
use dataplane::clock::Clock;
use dataplane::io::{Binding, Bindings};
use elements::registry::CLASSES;
use ir::{Diagnostic, Port, Sources};
use net::pcap::{Options, Reader, Writer};
use net::{Batch, notation};

use crate::support::{MODES, Mode, Started, start_bound};
use format::{Filetest, Step, parse};
use lab::front::receive;

/// How packets are handed in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Burst {
    One,
    Many,
}

/// The type of frames that hold no IP packets (IEEE 802, for experiments).
const RAW: &str = "88b6";

/// A packet in a frame of a type.
fn framed(packet: &[u8], header: &str) -> Vec<u8> {
    let number = u16::from_str_radix(header, 16).expect("digits");
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    [&addresses[..], &number.to_be_bytes(), packet].concat()
}

/// How text is packed into one line.
fn one_line(text: &str) -> String {
    text.trim().replace('\n', "\\n").replace('\t', "\\t")
}

impl Filetest {
    /// The chain as a compound, with sources and sinks for its inputs and outputs. Devices take and give frames.
    fn text(&self, framed: bool) -> String {
        let fed = self.steps.iter().filter_map(|s| match s {
            Step::Packet(port, _) => Some(*port + 1),
            _ => None,
        });
        // The chain comes first so that the lines of errors are the lines of the chain. It becomes a
        // compound, but for its requirements: files are what requires libraries.
        let requirements = self.chain.lines().take_while(|l| l.starts_with("require("));
        let (requirements, chain) = self.chain.split_at(requirements.map(|l| l.len() + 1).sum());
        let mut text = format!("{requirements}elementclass Filetest {{ {chain}}} t :: Filetest;\n");
        for port in 0..fed.max().unwrap_or(0) {
            let strip = match self.header(port).filter(|_| framed) {
                Some(header) if header != RAW => format!("Classifier(12/{header}) -> Strip(14) ->"),
                Some(_) => "Strip(14) ->".into(),
                None => String::new(),
            };
            text += &format!("in{port} :: Idle -> {strip} [{port}] t;\n");
        }
        for port in self.outputs.keys() {
            let encap = match framed && self.takes_off(*port) {
                true => "EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) ->",
                false => "",
            };
            text += &format!("t[{port}] -> {encap} out{port} :: Queue(1000000) -> Idle;\n");
        }
        text
    }

    /// The type, as digits, of frames that packets are put in which come without to an input.
    fn header(&self, input: usize) -> Option<&'static str> {
        let mut packets = self.steps.iter().filter_map(|step| match step {
            Step::Packet(port, packet) if *port == input => Some(packet),
            _ => None,
        });
        if self.framed[0].contains(&input) {
            return None;
        }
        let is =
            |version: u8| packets.clone().all(|p| p.first().is_some_and(|b| b >> 4 == version));
        let header = if is(4) {
            "0800"
        } else if is(6) {
            "86dd"
        } else {
            RAW
        };
        packets.next().map(|_| header)
    }

    /// Whether packets leave an output without an Ethernet header.
    fn takes_off(&self, output: usize) -> bool {
        !self.outputs[&output].is_empty() && !self.framed[1].contains(&output)
    }

    /// Writes the files that the chain reads.
    fn prepare(&self, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).unwrap();
        for (name, text) in &self.files {
            fs::write(folder.join(name), text).unwrap();
        }
        for (name, frames) in &self.captures {
            let options = Options::for_file_name(Path::new(name));
            let mut writer = Writer::new(Vec::new(), &options).unwrap();
            for frame in frames {
                writer.write(0, frame, frame.len() as u32).unwrap();
            }
            fs::write(folder.join(name), writer.finish().unwrap()).unwrap();
        }
    }

    /// Interfaces are bound to the captures of their name.
    fn bindings(&self, folder: &Path) -> Bindings {
        let bind = |name: &String| {
            let interface = name.split('.').next().unwrap_or_default().to_string();
            (interface, Binding::Capture(folder.join(name)))
        };
        Bindings {
            inputs: self.captures.keys().map(bind).collect(),
            outputs: self.written.keys().map(bind).collect(),
            folder: folder.to_path_buf(),
            ..Bindings::default()
        }
    }

    fn run(&self, folder: &Path, mode: Mode, burst: Burst) -> Result<(), String> {
        self.prepare(folder);
        let mut started = match start_bound(
            "chain",
            &self.text(mode.device.is_some()),
            folder,
            mode,
            self.bindings(folder),
        ) {
            Ok(started) if self.errors.is_none() => started,
            Ok(_) => return Err("is accepted but must be refused".into()),
            Err((diagnostics, sources)) => return self.refused(&diagnostics, &sources),
        };
        started.router.set_folder(folder.to_path_buf());
        // Tasks and timers of the chain run before the first packet and while time passes.
        settle(&mut started);
        let mut faults = self.feed(&mut started, burst)?;
        settle(&mut started);
        faults.extend(self.compare_packets(&mut started, burst));
        started.router.finish();
        faults.extend(self.compare_files(folder));
        faults.extend(self.compare_words(&mut started));
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }

    /// Compares the errors of a chain with those it must have.
    fn refused(&self, diagnostics: &[Diagnostic], sources: &Sources) -> Result<(), String> {
        let line =
            |d: &Diagnostic| d.span().map_or(0, |s| sources.line_column(s.file, s.start).line);
        let mut wanted: Vec<_> = self.errors.iter().flatten().collect();
        let mut all_wanted = true;
        for d in diagnostics {
            let at = wanted.iter().position(|w| {
                w.line == line(d) as usize && w.code == d.code && d.message.contains(&w.words)
            });
            all_wanted &= at.map(|at| wanted.remove(at)).is_some();
        }
        if self.errors.is_some() && all_wanted && wanted.is_empty() {
            return Ok(());
        }
        let found: Vec<String> =
            diagnostics.iter().map(|d| format!("{}: {} {}", line(d), d.code, d.message)).collect();
        Err(format!("is refused:\n{}", found.join("\n")))
    }

    /// Lets the steps happen. Gives what is wrong with handlers read between them.
    fn feed(&self, started: &mut Started, burst: Burst) -> Result<Vec<String>, String> {
        let mut faults = Vec::new();
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
                    let device = started.mode.device.is_some();
                    let header = self.header(*port).filter(|_| device);
                    let frame =
                        header.map_or_else(|| frame.clone(), |header| framed(frame, header));
                    let mut packet = started.router.core().pool.packet(&frame);
                    if device {
                        receive(&mut packet);
                    }
                    pending.get_or_insert_with(|| (*port, Batch::new())).1.push(packet);
                }
                Step::Wait(time) => wait(started, *time),
                Step::Write(handler, value) => {
                    let result = started.router.write_handler(&format!("t/{handler}"), value);
                    result.map_err(|e| format!("write {handler}: {e}"))?;
                }
                Step::Read(handler, value) => faults.extend(read(started, handler, value)),
            }
        }
        if let Some((port, batch)) = pending.take() {
            push(started, port, batch);
        }
        Ok(faults)
    }

    fn compare_packets(&self, started: &mut Started, burst: Burst) -> Vec<String> {
        let mut faults = Vec::new();
        for (port, wanted) in &self.outputs {
            let node = started.chain.graph.find(&format!("out{port}")).expect("it is declared");
            let mut got = Vec::new();
            while let Some(packet) = started.router.pull(Port { node, port: 0 }) {
                let taken_off = started.mode.device.is_some() && self.takes_off(*port);
                let data = packet.data();
                got.push(data[if taken_off { 14.min(data.len()) } else { 0 }..].to_vec());
                started.router.core().pool.recycle(packet);
            }
            let (mut got_sorted, mut wanted_sorted) = (got.clone(), wanted.clone());
            if self.any_order && burst == Burst::Many {
                got_sorted.sort();
                wanted_sorted.sort();
            }
            let same = |(wanted, got): (&Vec<u8>, &Vec<u8>)| match started.mode.device {
                Some(front) => front.is_same(wanted, got),
                None => wanted == got,
            };
            if got.len() != wanted.len() || !wanted_sorted.iter().zip(&got_sorted).all(same) {
                faults.push(format!("out {port}: got\n{}", in_words(&got)));
            }
        }
        faults
    }

    fn compare_files(&self, folder: &Path) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, wanted) in &self.written {
            let bytes = fs::read(folder.join(name)).unwrap_or_default();
            match Reader::in_memory(bytes) {
                Ok(mut reader) => {
                    let mut got = Vec::new();
                    while let Ok(Some(record)) = reader.next() {
                        got.push(record.data.to_vec());
                    }
                    if got != *wanted {
                        faults.push(format!("out {name}: got\n{}", in_words(&got)));
                    }
                }
                Err(why) => faults.push(format!("out {name}: {why}")),
            }
        }
        faults
    }

    /// Compares handlers, what was printed, drops and errors.
    fn compare_words(&self, started: &mut Started) -> Vec<String> {
        let mut faults = Vec::new();
        for (handler, value) in &self.handlers {
            faults.extend(read(started, handler, value));
        }
        let heard = started.heard.0.borrow();
        if let Some(wanted) = &self.prints {
            let got: Vec<&str> =
                heard.messages.iter().flat_map(|m| m.lines()).chain(heard.output.lines()).collect();
            if got != *wanted {
                faults.push(format!("prints: got\n{}", got.join("\n")));
            }
        }
        if !heard.errors.is_empty() {
            faults.push(format!("errors while running: {:?}", heard.errors));
        }
        if let Some(wanted) = &self.drops {
            let mut got = Vec::new();
            for (name, _, tally, _) in started.router.report() {
                let dropped = tally.lines().iter().filter(|l| l.dropped > 0);
                let name = name.strip_prefix("t/").unwrap_or(name);
                got.extend(dropped.map(|l| format!("{name} {} {}", l.reason, l.dropped)));
            }
            let mut wanted = wanted.clone();
            got.sort();
            wanted.sort();
            if got != wanted {
                faults.push(format!("drops: got\n{}", got.join("\n")));
            }
        }
        faults
    }
}

/// What is wrong with a handler's value.
fn read(started: &mut Started, handler: &str, value: &str) -> Option<String> {
    match started.router.read_handler(&format!("t/{handler}")) {
        Ok(actual) if one_line(&actual) == value => None,
        Ok(actual) => Some(format!("{handler} = {}", one_line(&actual))),
        Err(why) => Some(format!("{handler}: {why}")),
    }
}

fn in_words(frames: &[Vec<u8>]) -> String {
    let words = frames.iter().map(|f| match notation::describe(f, true) {
        frame if frame.starts_with("bare raw") => notation::describe(f, false),
        frame => frame,
    });
    words.collect::<Vec<_>>().join("\n")
}

fn push(started: &mut Started, port: usize, batch: Batch) {
    let graph = &started.chain.graph;
    let node = graph.find(&format!("in{port}")).expect("it is declared");
    let to = graph.successors(Port { node, port: 0 }).next().expect("inputs are connected");
    started.router.push(to, batch);
}

/// Runs tasks and timers that are due until nothing is left to do at once.
fn settle(started: &mut Started) -> Rest {
    for _ in 0..100_000 {
        match started.router.round() {
            Rest::Busy => {}
            rest => return rest,
        }
    }
    panic!("the chain is never idle");
}

/// Lets time pass; timers fire when they are due.
fn wait(started: &mut Started, time: u64) {
    let end = started.clock.now() + time;
    while let Rest::Until(next) | Rest::IdleUntil(next) = settle(started)
        && next < end
    {
        started.clock.wait_until(next);
    }
    started.clock.wait_until(end);
    settle(started);
}

/// All filetests by name.
fn filetests() -> BTreeMap<String, String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../filetests"));
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == "test") {
                let name = entry.strip_prefix(root).unwrap().display().to_string();
                files.insert(name, fs::read_to_string(entry).unwrap());
            }
        }
    }
    files
}

/// What starts a chain in one mode.
pub(crate) type Begin = Box<dyn Fn(Mode) -> Option<Started> + Send>;

/// The chains of all filetests that are not refused, by name; each reads and writes files in a folder of its own below this one.
pub(crate) fn chains(folder: &Path) -> Vec<(String, Begin)> {
    let mut chains: Vec<(String, Begin)> = Vec::new();
    for (name, text) in filetests() {
        let folder = folder.join(name.replace(['/', '.'], "-"));
        let Ok(test) = parse(&text) else { continue };
        let begin = move |mode: Mode| {
            test.prepare(&folder);
            let bindings = test.bindings(&folder);
            let text = test.text(mode.device.is_some());
            let started = start_bound("chain", &text, &folder, mode, bindings);
            let mut started = started.ok()?;
            started.router.set_folder(folder.clone());
            Some(started)
        };
        chains.push((name, Box::new(begin)));
    }
    chains
}

/// Takes all filetests through execution modes.
fn run_all(folder: &str, modes: &[(Mode, Burst)]) {
    let only = std::env::var("FILETEST").unwrap_or_default();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut faults = Vec::new();
    let mut ran = 0;
    for (name, text) in filetests().iter().filter(|(name, _)| name.contains(&only)) {
        ran += 1;
        let test = match parse(text) {
            Ok(test) => test,
            Err(why) => {
                faults.push(format!("{name}: {why}"));
                continue;
            }
        };
        // Modes that fail for the same reason are named together.
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for &(mode, burst) in modes.iter().filter(|(mode, _)| mode.is_for(name)) {
            // One that panics is a failure like another.
            let run = AssertUnwindSafe(|| test.run(&folder, mode, burst));
            let result = catch_unwind(run).unwrap_or_else(|_| Err("panics".into()));
            if let Err(why) = result {
                reasons.entry(why).or_default().push(format!("{mode:?} {burst:?}"));
            }
        }
        for (why, modes) in reasons {
            faults.push(format!("{name} ({}): {why}", modes.join(", ")));
        }
    }
    assert!(ran > 0, "no filetest's name holds '{only}'");
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n\n"));
}

#[test]
fn every_execution_mode_agrees() {
    let modes: Vec<_> =
        MODES.into_iter().flat_map(|mode| [Burst::One, Burst::Many].map(|b| (mode, b))).collect();
    run_all("filetests", &modes);
}

#[test]
fn devices_and_cores_agree_with_elements() {
    let modes = Mode::behind_devices().into_iter();
    run_all("filetests-devices", &modes.map(|mode| (mode, Burst::Many)).collect::<Vec<_>>());
}

/// Whoever adds an element adds a filetest for it.
#[test]
fn every_class_has_a_filetest() {
    let texts = filetests();
    let words: BTreeSet<&str> = texts
        .values()
        .flat_map(|t| t.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .collect();
    let missing: Vec<&str> =
        CLASSES.iter().map(|c| c.name).filter(|n| !words.contains(n)).collect();
    assert!(missing.is_empty(), "these classes stand in no filetest: {missing:?}");
}
