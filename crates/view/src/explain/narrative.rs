//! A story for people.

use std::fmt::Write;

use dataplane::trace::{Decision, Fate, Outcome, Step, StepId};
use ir::Span;

use super::Story;
use super::anatomy::brief;
use super::difference::{Change, changes};
use super::synthesised;
use crate::paint::{Paint, count};

/// Steps that are shown of one packet; a packet that goes round and round would be shown for ever.
const MAX_STEPS: usize = 2000;
/// Copies in copies that are shown.
const MAX_DEPTH: usize = 40;
/// Characters of configurations and rules that are shown.
const SHOWN: usize = 60;
/// Width of the names of fields.
const NAMES: usize = 15;

struct Teller<'a> {
    story: &'a Story<'a>,
    paint: Paint,
    text: String,
    told: usize,
    /// What was sent in last, as far as the story has come.
    phase: usize,
}

/// Tells everything.
pub fn tell(story: &Story<'_>, paint: Paint) -> String {
    let mut teller = Teller { story, paint, text: String::new(), told: 0, phase: 0 };
    for message in &story.trace.messages {
        let _ = writeln!(teller.text, "{}", paint.dim(message));
    }
    for phase in 0..=story.packets.len() + 1 {
        let beginnings = story.beginnings(phase);
        match phase.checked_sub(1).and_then(|i| story.packets.get(i)) {
            Some((packet, place)) => {
                let title = match story.packets.len() {
                    1 => "packet".to_string(),
                    _ => format!("packet {phase}"),
                };
                if phase > 1 {
                    teller.text.push('\n');
                }
                let place = paint.dim(&format!("into {place}"));
                let _ = writeln!(teller.text, "{}  {packet}  {place}\n", paint.bold(&title));
                if beginnings.is_empty() {
                    teller.line(0, &paint.yellow("it was not taken in"));
                }
            }
            None if beginnings.is_empty() => continue,
            None if phase == 0 => {}
            None => {
                let _ = writeln!(teller.text, "\n{}\n", paint.bold("after the last packet"));
            }
        }
        (teller.told, teller.phase) = (0, phase);
        for step in beginnings {
            teller.follow(step, 0);
        }
        teller.text.push_str(&synthesised::tell(story, phase, paint));
    }
    teller.text
}

impl Teller<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "  {}{text}", self.paint.dim(&"│ ".repeat(depth)));
    }

    fn detail(&mut self, depth: usize, text: &str) {
        self.line(depth, &format!("{}   {text}", self.paint.dim("│")));
    }

    /// Tells of a step and of all that follows it.
    fn follow(&mut self, mut id: StepId, depth: usize) {
        loop {
            self.told += 1;
            if self.told > MAX_STEPS || depth > MAX_DEPTH {
                if self.told <= MAX_STEPS + 1 {
                    self.line(depth, &self.paint.yellow("… and so on; the rest is not shown"));
                }
                self.told = self.told.max(MAX_STEPS + 1);
                return;
            }
            let step = &self.story.trace.steps[id];
            if step.phase != self.phase {
                let text = match self.story.packets.len() {
                    n if step.phase > n => "later, after the last packet:".to_string(),
                    _ => format!("later, when packet {} came:", step.phase),
                };
                self.line(depth, &self.paint.yellow(&text));
            }
            let phase = std::mem::replace(&mut self.phase, step.phase);
            // What an element kept leaves it again: it was introduced before.
            let again = step.from.is_some_and(|(from, outcome)| {
                let from = &self.story.trace.steps[from];
                from.node == step.node && from.outcomes[outcome].fate == Fate::Kept
            });
            if again {
                self.line(depth, &self.paint.dim("◌ and leaves it"));
            }
            self.step(step, again, depth);
            let next = self.outcomes(step, depth);
            self.phase = if next.is_some() { step.phase } else { phase };
            match next {
                Some(next) => id = next,
                None => return,
            }
        }
    }

    /// What is known of a step before its end; its element is named unless it was before.
    fn step(&mut self, step: &Step, again: bool, depth: usize) {
        let (story, paint) = (self.story, self.paint);
        let node = &story.graph.nodes[step.node];
        let config = match shorten(&node.config, SHOWN) {
            config if config.is_empty() => String::new(),
            config => format!("({config})"),
        };
        let input = match step.input {
            Some(port) if node.inputs.len() > 1 => format!("[{port}] "),
            _ => String::new(),
        };
        let anonymous = node.name.rsplit('/').next().is_some_and(|n| n.contains('@'));
        let what = match anonymous {
            true => paint.bold(&node.class) + &config,
            false => format!("{} :: {}{config}", paint.bold(&node.name), node.class),
        };
        let place = paint.dim(&story.sources.landmark(node.span));
        if !again {
            self.line(depth, &format!("{} {input}{what}  {place}", paint.blue("●")));
        }
        for decision in &step.decisions {
            if let Some(text) = self.decision(decision) {
                self.detail(depth, &text);
            }
        }
        for note in &step.notes {
            self.detail(depth, &paint.yellow(&format!("counted as {note}")));
        }
        for message in &step.messages {
            for line in message.lines() {
                self.detail(depth, &format!("says {}", paint.green(line)));
            }
        }
    }

    fn decision(&self, decision: &Decision) -> Option<String> {
        let paint = self.paint;
        Some(match decision {
            Decision::Matched(Some((text, span))) => {
                let place = span.map_or(String::new(), |s| self.place(s));
                format!("matches {}  {}", paint.cyan(&shorten(text, SHOWN)), paint.dim(&place))
            }
            Decision::Matched(None) => "matches no rule".to_string(),
            Decision::LookedUp { key, width, entry: Some((prefix, length, row)) } => {
                let row: Vec<String> = row.iter().map(|n| number(*n)).collect();
                let prefix = format!("{}/{length}", address(*prefix, *width));
                let (key, row) = (address(*key, *width), row.join(", "));
                format!("looks up {key}: {} yields {row}", paint.cyan(&prefix))
            }
            Decision::LookedUp { key, width, entry: None } => {
                format!("looks up {}: {}", address(*key, *width), paint.yellow("no prefix"))
            }
            Decision::KnownFlow(numbers, reverse) => {
                let direction = if *reverse { ", in the other direction" } else { "" };
                format!("known flow {}{direction}", paint.cyan(&self::numbers(numbers)))
            }
            Decision::UnknownFlow(numbers) => format!("no flow {}", self::numbers(numbers)),
            Decision::NewFlow([forward, reverse]) => format!(
                "new flow {}, answers are {}",
                paint.cyan(&numbers(forward)),
                paint.cyan(&numbers(reverse))
            ),
            Decision::FullTable => paint.yellow("the flow table is full"),
            Decision::Opaque(_) => return None,
        })
    }

    fn place(&self, span: Span) -> String {
        let at = self.story.sources.line_column(span.file, span.start);
        format!("{}:{}", self.story.sources.landmark(span), at.column)
    }

    /// Tells what became of a step's packet; returns the step that it went on with.
    fn outcomes(&mut self, step: &Step, depth: usize) -> Option<StepId> {
        let paint = self.paint;
        let node = &self.story.graph.nodes[step.node];
        let source = step.before.is_none();
        // The packet's own path is shown last and without indentation, if nothing else follows it.
        let own = (0..step.outcomes.len()).filter(|&i| {
            self.story.goes_on(step, i) || source && matches!(step.outcomes[i].fate, Fate::Left(_))
        });
        let own = own.max();
        let mut on = None;
        for (i, outcome) in step.outcomes.iter().enumerate().filter(|(i, _)| Some(*i) != own) {
            self.branch(step, i, outcome, depth);
        }
        let outcome = &step.outcomes[own?];
        if let (Some(before), Some(after)) = (&step.before, &outcome.packet) {
            self.changes(&changes(before, after), depth);
        }
        match outcome.fate {
            Fate::Left(port) => {
                let connected = self.story.after(step, port).is_some();
                let branched =
                    step.outcomes.iter().any(|o| o.fate != outcome.fate && o.next.is_some());
                if branched {
                    self.line(depth, &format!("{} the packet → output {port}", paint.cyan("├")));
                } else if node.outputs.len() > 1 && connected {
                    self.detail(depth, &paint.dim(&format!("→ output {port}")));
                }
                if outcome.next.is_none() {
                    let text = match connected {
                        true => "its path was not seen further".to_string(),
                        false => format!("lost: output {port} leads nowhere"),
                    };
                    self.line(depth, &paint.red(&format!("✗ {text}")));
                }
                on = on.or(outcome.next);
            }
            Fate::Kept => {
                let name = &node.name;
                self.line(depth, &paint.yellow(&format!("◌ waits in {name}")));
                on = on.or(outcome.next);
            }
            _ => {}
        }
        on
    }

    /// Tells of something that is not the packet's own going on.
    fn branch(&mut self, step: &Step, index: usize, outcome: &Outcome, depth: usize) {
        let paint = self.paint;
        match &outcome.fate {
            Fate::Dropped(reason) if reason.0 == "discarded" => {
                self.line(depth, &paint.dim("■ discarded"));
            }
            Fate::Dropped(reason) => {
                let name = &self.story.graph.nodes[step.node].name;
                self.line(depth, &paint.red(&format!("✗ dropped by {name}: {reason}")));
            }
            Fate::Sent(to) => {
                let said = outcome.packet.as_ref().map_or(String::new(), brief);
                self.line(depth, &format!("{}  {said}", paint.green(&format!("■ leaves by {to}"))));
            }
            Fate::UsedUp => self.line(depth, &paint.dim("■ ends here")),
            Fate::Kept => {
                let name = &self.story.graph.nodes[step.node].name;
                self.line(depth, &paint.yellow(&format!("◌ waits in {name}")));
                if let Some(next) = outcome.next {
                    self.follow(next, depth + 1);
                }
            }
            Fate::Left(port) => {
                let copy = match (&step.before, &outcome.packet) {
                    (Some(before), Some(after)) if before.data() == after.data() => {
                        "a copy".to_string()
                    }
                    (_, Some(after)) if outcome.made => format!("a new packet, {}", brief(after)),
                    _ => "the packet".to_string(),
                };
                let to = format!("{copy} → output {port}");
                self.line(depth, &format!("{} {to}", paint.cyan("├")));
                debug_assert!(index < step.outcomes.len());
                match outcome.next {
                    Some(next) => self.follow(next, depth + 1),
                    None => self.line(depth + 1, &paint.red("✗ lost: the output leads nowhere")),
                }
            }
        }
    }

    fn changes(&mut self, changes: &[Change], depth: usize) {
        let paint = self.paint;
        let mut marks = Vec::new();
        for change in changes {
            let text = match change {
                Change::Field { name, before, after } => {
                    let name = format!("{name:NAMES$}");
                    format!("{} {} → {}", paint.cyan(&name), paint.dim(before), paint.bold(after))
                }
                Change::Removed { bytes, front, what } => {
                    let place = if *front { "in front" } else { "at the end" };
                    paint.red(&format!("− {} {place}", count(*bytes, "byte"))) + &after(what)
                }
                Change::Added { bytes, front, what } => {
                    let place = if *front { "in front" } else { "at the end" };
                    paint.green(&format!("+ {} {place}", count(*bytes, "byte"))) + &after(what)
                }
                Change::Replaced { after, .. } => format!("becomes {}", paint.bold(after)),
                Change::Mark { header, after, .. } => {
                    marks.push(match after {
                        Some(at) => format!("{header} header at byte {at}"),
                        None => format!("{header} header unknown"),
                    });
                    continue;
                }
            };
            self.detail(depth, &text);
        }
        if !marks.is_empty() {
            self.detail(depth, &paint.dim(&format!("marks: {}", marks.join(", "))));
        }
    }
}

fn after(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!(": {what}") }
}

/// The numbers that a flow is known by, or tells.
pub fn numbers(all: &[u128]) -> String {
    all.iter().map(|&n| number(n)).collect::<Vec<_>>().join(" ")
}

/// A number that may well be an address, as one.
fn number(value: u128) -> String {
    match u32::try_from(value) {
        Ok(bits) if bits >= 1 << 24 => std::net::Ipv4Addr::from_bits(bits).to_string(),
        _ => value.to_string(),
    }
}

/// A number of so many bits, as an address if it is as long as one.
fn address(value: u128, width: u16) -> String {
    match width {
        32 => std::net::Ipv4Addr::from_bits(value as u32).to_string(),
        128 => std::net::Ipv6Addr::from_bits(value).to_string(),
        _ => value.to_string(),
    }
}

/// A text on one line, cut to so many characters.
pub(super) fn shorten(text: &str, length: usize) -> String {
    let mut short = String::new();
    // A list of rules may be megabytes long.
    for c in text.chars().take(4 * length) {
        if c.is_whitespace() {
            if !short.ends_with(' ') && !short.is_empty() {
                short.push(' ');
            }
        } else {
            short.push(c);
        }
    }
    let short = short.trim_end();
    match short.char_indices().nth(length) {
        Some((cut, _)) => format!("{}…", short[..cut].trim_end()),
        None => short.to_string(),
    }
}
