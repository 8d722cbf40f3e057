//! The text of filetests: see `filetests/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use elements::argument::{Nanoseconds, parse_value};
use net::notation;

/// A chain, what happens to it, and what must come of it.
#[derive(Debug, Default)]
pub(super) struct Filetest {
    pub(super) chain: String,
    /// Text files beside the chain, by name.
    pub(super) files: BTreeMap<String, String>,
    /// Captures that the chain reads, by name.
    pub(super) captures: BTreeMap<String, Vec<Vec<u8>>>,
    /// What happens, in order.
    pub(super) steps: Vec<Step>,
    /// Packets that must leave on each output.
    pub(super) outputs: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Packets that must stand in captures that the chain writes.
    pub(super) written: BTreeMap<String, Vec<Vec<u8>>>,
    /// Handlers and the values that they must have at the end.
    pub(super) handlers: Vec<(String, String)>,
    /// Lines that the chain must print.
    pub(super) prints: Option<Vec<String>>,
    /// `ELEMENT REASON COUNT` of all that must be dropped.
    pub(super) drops: Option<Vec<String>>,
    /// Why the chain must be refused.
    pub(super) errors: Option<Vec<Refusal>>,
    /// Whether packets on an output may come in another order in bursts.
    pub(super) any_order: bool,
    /// Inputs and outputs that take or give frames: with Ethernet headers.
    pub(super) framed: [BTreeSet<usize>; 2],
}

/// Something that happens to the chain.
#[derive(Debug)]
pub(super) enum Step {
    /// A packet comes in on a port.
    Packet(usize, Vec<u8>),
    /// Time passes, in nanoseconds.
    Wait(u64),
    /// A handler is written.
    Write(String, String),
    /// A handler is read and must have this value.
    Read(String, String),
}

/// An error that the chain must be refused for.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Line of the chain.
    pub(super) line: usize,
    pub(super) code: String,
    /// What the message must hold.
    pub(super) words: String,
}

/// What the lines below a title are.
#[derive(Clone, Debug)]
enum Section {
    None,
    Chain,
    File(String),
    /// Steps; packets need a port.
    In(Option<usize>),
    Capture(String),
    Out(usize),
    Written(String),
    Handlers,
    Prints,
    Drops,
    Errors,
    AnyOrder,
}

impl Section {
    /// The section that a line begins, if it is a title.
    fn titled(line: &str) -> Option<Self> {
        let title = line.strip_suffix(':')?;
        let (kind, rest) = title.split_once(' ').unwrap_or((title, ""));
        let port = rest.parse().ok();
        let name = || rest.to_string();
        Some(match (kind, rest) {
            ("chain", "") => Self::Chain,
            ("in", "") => Self::In(None),
            ("in", _) if port.is_some() => Self::In(port),
            ("out", _) if port.is_some() => Self::Out(port?),
            ("in", _) if is_file_name(rest) => Self::Capture(name()),
            ("out", _) if is_file_name(rest) => Self::Written(name()),
            ("file", _) if is_file_name(rest) => Self::File(name()),
            ("handlers", "") => Self::Handlers,
            ("prints", "") => Self::Prints,
            ("drops", "") => Self::Drops,
            ("errors", "") => Self::Errors,
            ("any", "order") => Self::AnyOrder,
            _ => return None,
        })
    }
}

/// Files live in one folder.
fn is_file_name(name: &str) -> bool {
    name.contains('.')
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Reads a filetest.
pub(super) fn parse(text: &str) -> Result<Filetest, String> {
    let mut test = Filetest::default();
    let mut section = Section::None;
    for (number, line) in text.lines().enumerate() {
        if let Some(next) = Section::titled(line) {
            test.open(&next);
            section = next;
            continue;
        }
        test.line(&section, line).map_err(|why| format!("line {}: {why}", number + 1))?;
    }
    if test.chain.is_empty() { Err("there is no chain".into()) } else { Ok(test) }
}

impl Filetest {
    /// A section that stands there expects something, even if it is empty.
    fn open(&mut self, section: &Section) {
        match section {
            Section::File(name) => drop(self.files.entry(name.clone()).or_default()),
            Section::Capture(name) => drop(self.captures.entry(name.clone()).or_default()),
            Section::Out(port) => drop(self.outputs.entry(*port).or_default()),
            Section::Written(name) => drop(self.written.entry(name.clone()).or_default()),
            Section::Prints => drop(self.prints.get_or_insert_default()),
            Section::Drops => drop(self.drops.get_or_insert_default()),
            Section::Errors => drop(self.errors.get_or_insert_default()),
            Section::AnyOrder => self.any_order = true,
            _ => {}
        }
    }

    fn line(&mut self, section: &Section, line: &str) -> Result<(), String> {
        let verbatim = match section {
            Section::Chain => Some(&mut self.chain),
            Section::File(name) => self.files.get_mut(name),
            _ => None,
        };
        if let Some(text) = verbatim {
            *text += line;
            *text += "\n";
            return Ok(());
        }
        if let Section::Prints = section {
            let printed = self.prints.get_or_insert_default();
            printed.extend((!line.is_empty()).then(|| line.to_string()));
            return Ok(());
        }
        let line = line.split(" ## ").next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        match section {
            Section::In(port) => self.step(*port, line)?,
            Section::Capture(name) => packets(self.captures.get_mut(name), line)?,
            Section::Out(port) => {
                packets(self.outputs.get_mut(port), line)?;
                self.framed[1].extend((!counted(line).1.starts_with("bare ")).then_some(*port));
            }
            Section::Written(name) => packets(self.written.get_mut(name), line)?,
            Section::Handlers => self.handlers.push(assignment(line)?),
            Section::Drops => self.drops.get_or_insert_default().push(line.to_string()),
            Section::Errors => self.errors.get_or_insert_default().push(refusal(line)?),
            _ => return Err(format!("'{line}' stands in no section")),
        }
        Ok(())
    }

    fn step(&mut self, port: Option<usize>, line: &str) -> Result<(), String> {
        let step = match line.split_once(' ') {
            Some(("wait", time)) => Step::Wait(parse_value::<Nanoseconds>(time)?.0),
            Some(("write", rest)) => {
                let (handler, value) = rest.split_once('=').unwrap_or((rest, ""));
                Step::Write(handler.trim().into(), value.trim().into())
            }
            Some(("read", rest)) => {
                let (handler, value) = assignment(rest)?;
                Step::Read(handler, value)
            }
            _ => {
                let port = port.ok_or("packets come in on a port: 'in N:'")?;
                let mut frames = Vec::new();
                packets(Some(&mut frames), line)?;
                self.framed[0].extend((!counted(line).1.starts_with("bare ")).then_some(port));
                self.steps.extend(frames.into_iter().map(|f| Step::Packet(port, f)));
                return Ok(());
            }
        };
        self.steps.push(step);
        Ok(())
    }
}

/// Adds a line's packet, as often as `Nx` in front of it says.
fn packets(to: Option<&mut Vec<Vec<u8>>>, line: &str) -> Result<(), String> {
    let (times, words) = counted(line);
    let frame = notation::parse(words)?;
    to.into_iter().for_each(|to| to.extend(std::iter::repeat_n(frame.clone(), times)));
    Ok(())
}

/// How often a packet comes, and its words.
fn counted(line: &str) -> (usize, &str) {
    let counted = line.split_once("x ").and_then(|(n, rest)| Some((n.parse().ok()?, rest)));
    counted.unwrap_or((1, line))
}

fn assignment(line: &str) -> Result<(String, String), String> {
    let (handler, value) = line.split_once('=').ok_or("'=' is missing")?;
    Ok((handler.trim().into(), value.trim().into()))
}

fn refusal(line: &str) -> Result<Refusal, String> {
    let (number, rest) = line.split_once(": ").ok_or("errors are written 'LINE: CODE'")?;
    let (code, words) = rest.split_once(' ').unwrap_or((rest, ""));
    let line = number.parse().map_err(|_| format!("'{number}' is not a line"))?;
    Ok(Refusal { line, code: code.into(), words: words.trim().into() })
}
