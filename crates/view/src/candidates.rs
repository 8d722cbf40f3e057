//! What is known of the network functions of chains before they are placed: which device could run them, and what they cost.

use std::fmt::Write;

use ::placement::Kind;
use compiler::functions::Candidate;
use compiler::partition::Stay;
use ir::{NodeId, Sources};
use serde_json::{Value, json};

use crate::paint::{Paint, count, shown};
use crate::table::{Table, grouped, wrapped};

/// A function of a chain.
#[derive(Clone, Debug)]
pub struct Known {
    /// The chain.
    pub chain: String,
    /// The function.
    pub function: String,
    /// Its class.
    pub class: String,
    /// What a packet costs on a core.
    pub cycles: f64,
    /// How that is known, in words.
    pub cost: String,
    /// Whether it is a guess.
    pub is_guess: bool,
    /// What all packets share, so that one core has to have all of them.
    pub shared: Option<String>,
    /// Devices that are no cores.
    pub devices: Vec<Verdict>,
}

/// What a device would do of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The device.
    pub device: String,
    /// Its kind.
    pub kind: Kind,
    /// Whether the function runs there.
    pub runs: bool,
    /// The share of packets that cores take all the same.
    pub left: f64,
    /// What it takes there, in words; nothing, if it takes nothing.
    pub takes: String,
    /// What is left to cores, and why: what concerns most packets first.
    pub why: Vec<String>,
}

impl Verdict {
    /// Of what a target says.
    pub fn of(
        (device, kind): (&str, Kind),
        (chain, sources): (&compiler::Chain, &Sources),
        candidate: &Result<Candidate, (Option<NodeId>, String)>,
    ) -> Self {
        let place = |element: NodeId| {
            let node = &chain.graph.nodes[element];
            format!("{} ({})", node.name, sources.landmark(node.span))
        };
        let none = Self {
            device: device.to_string(),
            kind,
            runs: false,
            left: 1.0,
            takes: String::new(),
            why: Vec::new(),
        };
        match candidate {
            Err((None, why)) => Self { why: vec![why.clone()], ..none },
            Err((Some(element), why)) => {
                Self { why: vec![format!("{}: {why}", place(*element))], ..none }
            }
            Ok(candidate) => {
                let said = |stay: &Stay| format!("{}: {}", place(stay.element), stay.lack);
                Self {
                    runs: candidate.runs(),
                    left: candidate.left,
                    takes: takes(candidate),
                    why: candidate.stays.iter().map(said).collect(),
                    ..none
                }
            }
        }
    }

    /// Whether it runs there, as a word for a table.
    fn word(&self) -> String {
        match (self.runs, self.left) {
            (true, left) if left > 0.0 => format!("yes, {} left", percent(left)),
            (true, _) => "yes".into(),
            (false, left) if left < 1.0 => format!("no, {} left", percent(left)),
            (false, _) => "no".into(),
        }
    }
}

/// What a function takes on a device.
fn takes(of: &Candidate) -> String {
    let mut all = Vec::new();
    if of.pipeline.is_some() {
        all.push(count(of.tables(), "table"));
        let entries = of.entries();
        let word = if entries == 1 { "entry" } else { "entries" };
        all.push(format!("{} {word}", grouped(entries)));
    } else {
        all.push(count(of.bytes, "byte"));
    }
    if let Some(stages) = of.stages {
        all.push(count(stages as usize, "stage"));
    }
    if of.numbers > 0 {
        all.push(count(of.numbers, "tag"));
    }
    all.join(", ")
}

/// `12 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        of if of >= 10.0 || of == 0.0 => format!("{of:.0} %"),
        of if of >= 0.1 => format!("{of:.1} %"),
        _ => "under 0.1 %".into(),
    }
}

/// How a cost is known, at a time in seconds since 1970.
pub fn cost(known: &::placement::Known<'_>, now: u64) -> String {
    let days = now.saturating_sub(known.unix_time) / 86_400;
    let age = match days {
        0 => "today".into(),
        days => format!("{} ago", count(usize::try_from(days).unwrap_or(usize::MAX), "day")),
    };
    let extended = if known.extended { ", extended to as many rules and flows" } else { "" };
    format!(
        "the most of {} to {}, {} on average{extended}; measured {age} on {} at {:.2} GHz",
        grouped(known.measured.min.round() as u64),
        grouped(known.measured.max.round() as u64),
        grouped(known.measured.mean.round() as u64),
        known.processor.name,
        known.processor.frequency / 1e9
    )
}

/// Lemur's table 2.3: functions by devices.
pub struct Matrix<'a> {
    /// Functions of all chains.
    pub known: &'a [Known],
}

/// Chains that are named.
const NAMED: usize = 3;

impl Matrix<'_> {
    /// As text. Functions of several chains that are alike stand in one row.
    pub fn text(&self, paint: Paint) -> String {
        let mut rows: Vec<(&Known, Vec<&str>)> = Vec::new();
        for known in self.known {
            let is_like = |other: &Known| {
                (&other.function, &other.cost, &other.shared, &other.devices)
                    == (&known.function, &known.cost, &known.shared, &known.devices)
            };
            match rows.iter_mut().find(|(other, _)| is_like(other)) {
                Some((_, chains)) => chains.push(&known.chain),
                None => rows.push((known, vec![&known.chain])),
            }
        }
        let devices: Vec<&str> = self
            .known
            .first()
            .map_or_else(Vec::new, |known| known.devices.iter().map(|of| &*of.device).collect());
        let mut titles = vec!["function", "chains"];
        titles.extend(&devices);
        titles.extend(["cores", "cycles"]);
        let mut table = Table::titled(&titles);
        for (known, chains) in &rows {
            let mut names: Vec<&str> = chains.iter().copied().take(NAMED).collect();
            let more = format!("and {} more", chains.len().saturating_sub(NAMED));
            if chains.len() > NAMED {
                names.push(&more);
            }
            let mut cells =
                vec![shown(&known.function).into_owned(), shown(&names.join(", ")).into_owned()];
            cells.extend(known.devices.iter().map(Verdict::word));
            cells.push(if known.shared.is_some() { "one" } else { "many" }.into());
            let mark = if known.is_guess { "?" } else { "" };
            cells.push(format!("{}{mark}", grouped(known.cycles.round() as u64)));
            table.cells(cells);
        }
        let mut text = table.render();
        for (known, chains) in &rows {
            let name = match chains.len() {
                1 if rows.iter().filter(|(of, _)| of.function == known.function).count() > 1 => {
                    format!("{} of {}", known.function, known.chain)
                }
                _ => known.function.clone(),
            };
            let _ = write!(text, "\n{}\n", paint.bold(&shown(&name)));
            for line in known.words() {
                text.push_str(&wrapped(&shown(&line), 2));
            }
        }
        text
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let device = |of: &Verdict| json!({"device": of.device, "kind": of.kind, "runs": of.runs, "left": of.left, "takes": of.takes, "why": of.why});
        let function = |of: &Known| {
            json!({
                "chain": of.chain,
                "function": of.function,
                "class": of.class,
                "cycles": of.cycles,
                "cost": of.cost,
                "guess": of.is_guess,
                "shared": of.shared,
                "devices": of.devices.iter().map(device).collect::<Vec<_>>(),
            })
        };
        json!({"functions": self.known.iter().map(function).collect::<Vec<_>>()})
    }
}

impl Known {
    /// What a function takes where, and why not elsewhere: a line each.
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for of in &self.devices {
            let left = match of.left {
                left if of.runs && left > 0.0 => {
                    format!("; {} of the packets go to cores", percent(left))
                }
                left if !of.runs && left < 1.0 => {
                    format!("; {} of the packets would go to cores", percent(left))
                }
                _ => String::new(),
            };
            let takes = match (of.runs, of.takes.is_empty()) {
                (true, _) => of.takes.clone(),
                (false, _) => "no".into(),
            };
            let mut line = format!("{}: {takes}{left}", of.device);
            if (!of.runs || of.left > 0.0) && !of.why.is_empty() {
                let shown = of.why.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
                let more = of.why.len().saturating_sub(2);
                let more = if more > 0 {
                    format!("; and {}", count(more, "more reason"))
                } else {
                    String::new()
                };
                let _ = write!(line, ": {shown}{more}");
            }
            lines.push(line);
        }
        let many = match &self.shared {
            Some(why) => format!("one core: {why}"),
            None => "cores".into(),
        };
        lines.push(format!(
            "{many}: {} cycles a packet, {}",
            grouped(self.cycles.round() as u64),
            self.cost
        ));
        lines
    }
}
