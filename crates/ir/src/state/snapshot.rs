//! Snapshots: the declared state of a chain that runs, as text that another process can read.
//!
//! ```text
//! catena-state 1
//! worker
//! element count Counter
//! counter count 12 720
//! element nat IPRewriter
//! cells failures 0
//! flows flows 4194304
//! flow 17,167772161,1024,335544321,874/17,… 3405803777,…/… 6,0,17,0 1795806066536396799 1795805771536396799
//! end
//! ```
//!
//! The first line has the version of the format. A line `part` behind it says that it is a part of the state, a group's
//! or a worker's, whose flows are added to those that are there, and whose counts are added up. Each `worker` begins the state of one, each `element` that of an element
//! with its full name and its class, and each following line is a piece of its state by its declared name: `counter` with
//! packets and bytes, `cells` with numbers, `flows` with a capacity. A `flow` of the table before it has the keys of both
//! directions, their values, the numbers that they share (`-` for none), when it expires, and until when it may not be
//! evicted: both in nanoseconds since 1970. Flows stand in the order in which they were touched. Numbers are decimal.
//! Packets that elements hold are no declared state, and not in a snapshot.

use std::collections::BTreeMap;
use std::fmt;

use super::{Flow, Flows, StateValue};

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// The state of an element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementState {
    /// Its class.
    pub class: String,
    /// By declared name.
    pub state: BTreeMap<String, StateValue>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Whether it is added to what is there, and does not replace it.
    pub is_part: bool,
    /// By worker: its elements by full name.
    pub workers: Vec<BTreeMap<String, ElementState>>,
}

/// Numbers with something between them; `-` for none.
struct Numbers<'a>(&'a [u128]);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_first() {
            None => f.write_str("-"),
            Some((first, rest)) => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|number| write!(f, ",{number}"))
            }
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "catena-state {VERSION}")?;
        if self.is_part {
            writeln!(f, "part")?;
        }
        for worker in &self.workers {
            writeln!(f, "worker")?;
            for (name, ElementState { class, state }) in worker {
                writeln!(f, "element {name} {class}")?;
                for (name, value) in state {
                    write_value(f, name, value)?;
                }
            }
        }
        writeln!(f, "end")
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, name: &str, value: &StateValue) -> fmt::Result {
    match value {
        StateValue::Counter { packets, bytes } => writeln!(f, "counter {name} {packets} {bytes}"),
        StateValue::Cells(cells) => {
            write!(f, "cells {name}")?;
            cells.iter().try_for_each(|number| write!(f, " {number}"))?;
            writeln!(f)
        }
        StateValue::Flows(flows) => {
            writeln!(f, "flows {name} {}", flows.capacity())?;
            for flow in flows.iter() {
                let Flow { keys, values, common, expiry, guarantee } = flow;
                let [forward, reverse] = [0, 1].map(|side| Numbers(&keys[side]));
                let [there, back] = [0, 1].map(|side| Numbers(&values[side]));
                let common = Numbers(common);
                writeln!(
                    f,
                    "flow {forward}/{reverse} {there}/{back} {common} {expiry} {guarantee}"
                )?;
            }
            Ok(())
        }
    }
}

fn number<N: std::str::FromStr>(word: Option<&str>, what: &str) -> Result<N, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("{what} is '{word}', which is no number of its range"))
}

fn numbers(text: &str, what: &str) -> Result<Vec<u128>, String> {
    match text {
        "-" => Ok(Vec::new()),
        text => text.split(',').map(|word| number(Some(word), what)).collect(),
    }
}

fn pair(word: Option<&str>, what: &str) -> Result<[Vec<u128>; 2], String> {
    let both = word.and_then(|word| word.split_once('/'));
    let (one, other) = both.ok_or_else(|| format!("{what} of two directions are missing"))?;
    Ok([numbers(one, what)?, numbers(other, what)?])
}

/// Reads snapshots line by line.
#[derive(Default)]
struct Reader {
    read: Snapshot,
    /// The element that lines are about.
    element: Option<String>,
    /// The table that flows are of.
    table: Option<String>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        if kind == "flow" {
            return self.flow(words);
        }
        self.table = None;
        if kind == "part" {
            let is_first = self.read.workers.is_empty() && !self.read.is_part;
            self.read.is_part = true;
            return is_first.then_some(()).ok_or("'part' stands behind the first line".to_string());
        }
        if kind == "worker" {
            self.element = None;
            self.read.workers.push(BTreeMap::new());
            return Ok(());
        }
        let name = words.next().ok_or("a name is missing")?.to_string();
        if kind == "element" {
            let class = words.next().ok_or("a class is missing")?.to_string();
            let worker = self.read.workers.last_mut().ok_or("no worker begins before")?;
            let new = ElementState { class, state: BTreeMap::new() };
            if worker.insert(name.clone(), new).is_some() {
                return Err(format!("'{name}' is there twice"));
            }
            self.element = Some(name);
            return Ok(());
        }
        let value = match kind {
            "counter" => {
                let packets = number(words.next(), "the number of packets")?;
                let bytes = number(words.next(), "the number of bytes")?;
                StateValue::Counter { packets, bytes }
            }
            "cells" => {
                let cells = words.by_ref().map(|word| number(Some(word), "a cell"));
                StateValue::Cells(cells.collect::<Result<_, _>>()?)
            }
            "flows" => {
                self.table = Some(name.clone());
                StateValue::Flows(Flows::new(number(words.next(), "the capacity")?))
            }
            other => return Err(format!("'{other}' begins no line")),
        };
        if words.next().is_some() {
            return Err("there is more than belongs there".to_string());
        }
        match self.element()?.state.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(format!("'{name}' is there twice")),
        }
    }

    fn element(&mut self) -> Result<&mut ElementState, String> {
        let (worker, name) = (self.read.workers.last_mut(), self.element.as_ref());
        let element = worker.zip(name).and_then(|(worker, name)| worker.get_mut(name));
        element.ok_or_else(|| "no element begins before".to_string())
    }

    fn flow<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let keys = pair(words.next(), "keys")?;
        let values = pair(words.next(), "values")?;
        let common = numbers(words.next().ok_or("shared numbers are missing")?, "a number")?;
        let expiry = number(words.next(), "the expiry")?;
        let guarantee = number(words.next(), "the guarantee")?;
        if expiry == 0 || words.next().is_some() {
            return Err("the flow has no expiry, or more than belongs there".to_string());
        }
        let table = self.table.clone().ok_or("no table of flows begins before")?;
        let Some(StateValue::Flows(flows)) = self.element()?.state.get_mut(&table) else {
            return Err("no table of flows begins before".to_string());
        };
        if flows.len() as u64 >= flows.capacity() {
            return Err(format!("there are more than {} flows", flows.capacity()));
        }
        if keys.iter().any(|key| flows.index.contains_key(key)) {
            return Err("another flow has the same key".to_string());
        }
        flows.insert(Flow { keys, values, common, expiry, guarantee }, 0);
        Ok(())
    }
}

impl Snapshot {
    /// Reads what was written by [`fmt::Display`].
    ///
    /// # Errors
    /// The line that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().zip(1usize..);
        let first = lines.next().map_or("", |(line, _)| line);
        match first.strip_prefix("catena-state ").map(|version| version.trim().parse::<u32>()) {
            Some(Ok(VERSION)) => {}
            Some(Ok(other)) => {
                return Err(format!("it is of version {other}; version {VERSION} can be read"));
            }
            _ => return Err("it is no state of Catena: 'catena-state 1' does not begin it".into()),
        }
        let mut reader = Reader::default();
        let mut ended = false;
        for (line, at) in lines {
            if ended && !line.trim().is_empty() {
                return Err(format!("line {at}: there is more behind the end"));
            }
            match line.trim() {
                "end" => ended = true,
                "" => {}
                line => reader.line(line).map_err(|why| format!("line {at}: {why}"))?,
            }
        }
        match ended {
            true => Ok(reader.read),
            false => Err("it is cut off: 'end' does not end it".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let mut flows = Flows::new(4);
        let flow = |n: u128, expiry| Flow {
            keys: [vec![n, u128::MAX], vec![n]],
            values: [vec![7], vec![]],
            common: vec![],
            expiry,
            guarantee: 3,
        };
        assert!(flows.insert(flow(1, 50), 0) && flows.insert(flow(2, 40), 0));
        let state = [
            ("count".to_string(), StateValue::Counter { packets: 1, bytes: u64::MAX }),
            ("next".to_string(), StateValue::Cells(vec![0, u128::MAX])),
            ("none".to_string(), StateValue::Cells(vec![])),
            ("flows".to_string(), StateValue::Flows(flows)),
        ];
        let element = ElementState { class: "X".to_string(), state: state.into() };
        let worker = BTreeMap::from([("a/x@1".to_string(), element)]);
        Snapshot { is_part: true, workers: vec![worker, BTreeMap::new()] }
    }

    #[test]
    fn snapshots_read_back() {
        let before = snapshot();
        let text = before.to_string();
        let read = Snapshot::parse(&text).expect("it reads what it wrote");
        assert_eq!(read, before);
        assert_eq!(read.to_string(), text, "flows keep their order");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        let text = snapshot().to_string();
        let wrong = |from: &str, to: &str| Snapshot::parse(&text.replace(from, to)).unwrap_err();
        assert!(wrong("catena-state 1", "catena-state 2").contains("version 2"));
        assert!(wrong("catena-state 1", "state").contains("no state of Catena"));
        assert!(wrong("end\n", "").contains("cut off"));
        assert!(wrong("counter count 1", "counter count -1").starts_with("line 5: "));
        assert!(wrong("flows flows 4", "flows flows 1").contains("more than 1 flows"));
        assert!(wrong("worker\nelement", "element").contains("no worker"));
        assert!(wrong("part\nworker", "worker\npart").contains("behind the first line"));
        assert!(wrong(" 50 3", " 50").contains("guarantee"));
    }
}
