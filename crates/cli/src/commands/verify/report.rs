//! What `catena verify` prints.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use compiler::prove::differential::Disagreement;
use compiler::prove::witness::{START, Witness};
use compiler::prove::{
    Difference, Fate, Held, Observation, Outcome, Proof, Shown, Verdict, Verification,
};
use net::pcap::LinkType;
use serde_json::{Value, json};
use view::explain::numbers;
use view::paint::{Paint, count};

use super::replay::Replayer;
use super::{Loaded, fields};

/// So many lines tell of what only one side shows.
const LINES: usize = 20;

/// A packet that comes in.
pub(super) struct Input<'a> {
    /// The element that it comes to.
    pub(super) source: String,
    /// What its bytes begin with.
    pub(super) link_type: LinkType,
    pub(super) frame: &'a [u8],
    /// Nanoseconds after the start.
    pub(super) time: u64,
}

/// A packet in words.
pub(super) fn described(frame: &[u8]) -> String {
    let ethernet = is_ethernet(frame);
    let exactly = net::notation::describe(frame, ethernet);
    match net::notation::describe_headers(frame, ethernet) {
        Some(headers) if exactly.starts_with("bare raw") => format!("about {headers}"),
        _ => exactly,
    }
}

/// Whether a frame looks like one with an Ethernet header.
fn is_ethernet(frame: &[u8]) -> bool {
    let typed = frame
        .get(12..14)
        .is_some_and(|t| matches!(t, [0x08, 0x00 | 0x06] | [0x81 | 0x88, _] | [0x86, 0xdd]));
    typed || !matches!(frame.first(), Some(0x45..=0x4f | 0x60..=0x6f))
}

pub(super) struct Report<'a> {
    pub(super) files: &'a [String],
    pub(super) chains: &'a [Loaded],
    pub(super) verification: &'a Verification,
    /// Runs chains, if there are two.
    pub(super) replayer: Option<&'a Replayer>,
    pub(super) time: Duration,
    pub(super) paint: Paint,
}

/// The two sides of a difference, as people read them.
type Sides = [&'static str; 2];

impl Report<'_> {
    fn is_pair(&self) -> bool {
        self.chains.len() > 1
    }

    /// The difference to show: one with a sequence of packets before one with a state.
    fn sequence(&self) -> Option<&Disagreement> {
        self.verification.evidence.disagreement.as_ref()
    }

    fn difference(&self) -> Option<(&Proof, &Difference)> {
        self.verification.proofs.iter().find_map(|proof| match &proof.verdict {
            Verdict::Different(difference) => Some((proof, &**difference)),
            _ => None,
        })
    }

    /// The packets that show a difference.
    pub(super) fn inputs<'s>(&'s self) -> Vec<Input<'s>> {
        if let Some(shown) = &self.verification.shown {
            let incoming = shown.sequence.iter().map(|incoming| {
                let (source, link_type) = self.source(incoming.at);
                let time = incoming.now.saturating_sub(START);
                Input { source, link_type, frame: &incoming.frame, time }
            });
            return incoming.collect();
        }
        let packets: Vec<&Witness> = match (self.sequence(), self.difference()) {
            (Some(found), _) => {
                found.sequence.arrivals.iter().map(|arrival| &arrival.packet).collect()
            }
            (None, Some((_, difference))) => vec![&difference.packet],
            (None, None) => Vec::new(),
        };
        // Packets of one chain come to elements within it: all of them to one capture.
        let link_type = match packets.iter().any(|packet| is_ethernet(&packet.frame)) {
            true => LinkType::ETHERNET,
            false => LinkType::RAW,
        };
        let input = |packet: &'s Witness| Input {
            source: String::new(),
            link_type,
            frame: &packet.frame,
            time: packet.now.saturating_sub(START),
        };
        packets.into_iter().map(input).collect()
    }

    /// A source in words, and what its frames begin with.
    fn source(&self, at: [Option<ir::NodeId>; 2]) -> (String, LinkType) {
        let of = |side: usize| {
            let chain = self.chains.get(side)?;
            let node = chain.subjects.graph.nodes.get(at[side]?)?;
            let name = match node.name.contains('@') {
                true => String::new(),
                false => format!("'{}', ", node.name),
            };
            let first = node.config.split(',').next().unwrap_or_default().trim().to_string();
            let place = chain.sources.landmark(node.span);
            let words = format!("{}({first}) ({name}{place})", node.class);
            let link_type = self.replayer.and_then(|replayer| replayer.link_type(side, at[side]?));
            Some((words, link_type.map_or(LinkType::ETHERNET, LinkType)))
        };
        of(0).or_else(|| of(1)).unwrap_or((String::new(), LinkType::ETHERNET))
    }

    fn sides(&self, by_packets: bool) -> Sides {
        match (self.is_pair(), by_packets) {
            (true, _) => ["the first", "the second"],
            (false, true) => ["the elements", "the program"],
            (false, false) => ["before simplification", "after it"],
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let (proofs, evidence) = (&self.verification.proofs, &self.verification.evidence);
        let paint = self.paint;
        let verdict = match self.verification.outcome() {
            Outcome::Equal => paint.green("equal"),
            Outcome::Different => paint.red("different"),
            Outcome::Undecided => paint.yellow("undecided"),
        };
        let names = self.files.join(" and ");
        let _ = writeln!(text, "{verdict} {names} ({:.2} s)", self.time.as_secs_f64());
        let proven = proofs.iter().filter(|p| matches!(p.verdict, Verdict::Equal)).count();
        let steps: usize = proofs.iter().map(|p| p.steps.1).sum();
        let visited: u64 = proofs.iter().map(|p| p.visited).sum();
        if proofs.is_empty() {
            let settled = self.verification.outcome() == Outcome::Equal;
            text += match (self.is_pair(), settled) {
                (true, true) => "  nothing comes out of either chain, whatever comes in\n",
                (true, false) => "",
                (false, _) => "  no program replaces elements\n",
            };
        } else if self.verification.shown.is_none() {
            let (all, what) = match self.is_pair() {
                true => (count(proofs.len(), "input"), "proven to be treated alike"),
                false => (count(proofs.len(), "program"), "equal the chain's symbolic execution"),
            };
            let steps = count(steps, "step");
            let _ = writeln!(
                text,
                "  {proven} of {all} {what}, for every packet and state ({steps}, {visited} pairs compared)",
            );
        }
        if evidence.packets > 0 {
            let found = evidence.disagreement.is_some() || self.verification.shown.is_some();
            let how = match (self.is_pair(), found) {
                (_, true) => "until the difference",
                (true, false) => "come out of both alike",
                (false, false) => "give the same result in programs and elements",
            };
            let ends = match evidence.exits {
                (_, 0) => String::new(),
                (reached, all) => format!(" ({reached} of {all} exits reached)"),
            };
            let _ = writeln!(
                text,
                "  {} in {} {how}{ends}",
                count(evidence.packets, "packet"),
                count(evidence.sequences, "sequence"),
            );
        }
        // What is shown needs no proof.
        let open = proofs.iter().filter(|_| self.verification.shown.is_none());
        for proof in open {
            if let Verdict::Unproven(why) = &proof.verdict {
                let (element, port) = &proof.entry;
                let _ = writeln!(text, "  not proven behind '{element}' [{port}]: {why}");
            }
        }
        for note in self.remarks() {
            let _ = writeln!(text, "  {note}");
        }
        if let Some(shown) = &self.verification.shown {
            self.show_shown(&mut text, shown);
        } else if let Some(found) = self.sequence() {
            self.show_sequence(&mut text, found);
        } else if let Some((proof, difference)) = self.difference() {
            self.show_difference(&mut text, proof, difference);
        }
        text
    }

    /// What there is to say besides: what differs first.
    fn remarks(&self) -> Vec<&String> {
        let Verification { notes, evidence, .. } = self.verification;
        notes.iter().chain(&evidence.unclear).collect()
    }

    /// The packets that show that two chains differ, and what becomes of them.
    fn show_shown(&self, text: &mut String, shown: &Shown) {
        let inputs = self.inputs();
        if inputs.is_empty() {
            let _ = writeln!(text, "  without any packet from outside:");
        }
        for (i, input) in inputs.iter().enumerate() {
            let title = if i + 1 == inputs.len() { "packet" } else { "after packet" };
            let time = Duration::from_nanos(input.time).as_secs_f64();
            let words = clipped(described(input.frame));
            let _ =
                writeln!(text, "  {title} {} to {} at {time:.9} s: {words}", i + 1, input.source);
            let _ = writeln!(text, "    {}", clipped(hex(input.frame)));
        }
        for side in [0, 1] {
            let name = self.paint.bold(self.sides(true)[side]);
            let _ = writeln!(text, "  {name}: {}", self.becomes(shown, side).join("; then "));
            for part in differing(shown, side) {
                let _ = writeln!(text, "    {}", self.paint.yellow(&part));
            }
        }
    }

    /// What becomes of the packets that show a difference in one of the chains.
    fn becomes(&self, shown: &Shown, side: usize) -> Vec<String> {
        let only = &shown.only()[side];
        let others = &shown.only()[1 - side];
        let mut becomes: Vec<String> = only
            .iter()
            .take(LINES)
            .enumerate()
            .map(|(i, sent)| {
                let other = others.get(i).map_or(String::new(), |other| described(&other.frame));
                let words = self.highlighted(&clipped(described(&sent.frame)), &other);
                format!("sends to {}: {words}", sent.sink)
            })
            .collect();
        if let Some(more) = only.len().checked_sub(LINES).filter(|&more| more > 0) {
            becomes.push(format!("sends {more} more"));
        }
        let dropped = shown.left[side].dropped.iter().map(|(element, reason)| {
            format!("drops at '{element}'{} as {reason}", self.place(side, element))
        });
        becomes.extend(dropped);
        if becomes.is_empty() {
            becomes.push("sends nothing else".into());
        }
        becomes
    }

    /// A description with the words in bold that another does not have in their place.
    fn highlighted(&self, mine: &str, theirs: &str) -> String {
        let theirs: Vec<&str> = theirs.split(' ').collect();
        let words = mine.split(' ').enumerate().map(|(i, word)| {
            let is_same = theirs.len() < 2 || theirs.get(i) == Some(&word);
            if is_same { word.to_string() } else { self.paint.bold(word) }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn show_packet(&self, text: &mut String, title: &str, packet: &Witness) {
        let words = described(&packet.frame);
        let _ = writeln!(text, "  {title} {}", clipped(words));
        let _ = writeln!(text, "    {}", clipped(hex(&packet.frame)));
        if packet.annotations.iter().any(|&b| b != 0) {
            let _ = writeln!(text, "    annotations {}", hex(&packet.annotations));
        }
    }

    fn show_sequence(&self, text: &mut String, found: &Disagreement) {
        let arrivals = &found.sequence.arrivals;
        for (i, arrival) in arrivals.iter().enumerate() {
            let node = &self.chains[0].subjects.graph.nodes[arrival.at.node].name;
            let after = Duration::from_nanos(arrival.packet.now.saturating_sub(START));
            let last = i + 1 == arrivals.len();
            let title = format!(
                "{} {} to '{node}' [{}] at {:.9} s:",
                if last { "packet" } else { "after packet" },
                i + 1,
                arrival.at.port,
                after.as_secs_f64()
            );
            self.show_packet(text, &title, &arrival.packet);
        }
        show_flows(text, &found.sequence.flows);
        self.show_sides(text, self.sides(true), &found.elements, &found.programs);
    }

    fn show_difference(&self, text: &mut String, proof: &Proof, difference: &Difference) {
        let (element, port) = &proof.entry;
        self.show_packet(text, &format!("packet to '{element}' [{port}]:"), &difference.packet);
        show_flows(text, &difference.flows);
        self.show_sides(text, self.sides(false), &difference.a, &difference.b);
    }

    /// Where an element was declared.
    fn place(&self, side: usize, element: &str) -> String {
        let chain = self.chains.get(side).or(self.chains.first());
        let place = chain.and_then(|chain| {
            let node = chain.subjects.graph.nodes.iter().find(|n| n.name == element)?;
            Some(chain.sources.landmark(node.span))
        });
        place.map_or_else(String::new, |place| format!(" ({place})"))
    }

    fn fate(&self, side: usize, fate: &Fate) -> String {
        match fate {
            Fate::Arrived(queue, packet) => {
                let place = self.place(side, &queue.element);
                let words = clipped(described(&packet.frame));
                format!("sends to '{}' [{}]{place}: {words}", queue.element, queue.port)
            }
            Fate::Dropped(element, reason, length) => {
                let place = self.place(side, element);
                format!("drops at '{element}'{place} as {reason}, {length} bytes")
            }
            Fate::Fault(why) => format!("fails: {why}"),
        }
    }

    fn show_sides(&self, text: &mut String, sides: Sides, a: &Observation, b: &Observation) {
        for (side, seen, other) in [(0, a, b), (1, b, a)] {
            let name = self.paint.bold(sides[side]);
            let fates: Vec<String> = seen.fates.iter().map(|f| self.fate(side, f)).collect();
            let _ = writeln!(text, "  {name}: {}", fates.join("; then "));
            for (fate, theirs) in seen.fates.iter().zip(&other.fates) {
                if let (Fate::Arrived(_, mine), Fate::Arrived(_, theirs)) = (fate, theirs)
                    && mine != theirs
                {
                    let _ = writeln!(text, "    {}", difference_of(mine, theirs));
                }
            }
            let lines = only_here(seen, other);
            for line in lines.iter().take(LINES) {
                let _ = writeln!(text, "    {line}");
            }
            if let Some(more) = lines.len().checked_sub(LINES).filter(|&more| more > 0) {
                let _ = writeln!(text, "    and {more} more");
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        let verification = self.verification;
        let evidence = &verification.evidence;
        let proofs: Vec<Value> = verification
            .proofs
            .iter()
            .map(|proof| {
                let (verdict, why) = match &proof.verdict {
                    Verdict::Equal => ("equal", None),
                    Verdict::Different(_) => ("different", None),
                    Verdict::Unproven(why) => ("unproven", Some(why)),
                };
                json!({
                    "element": proof.entry.0, "port": proof.entry.1, "verdict": verdict, "why": why,
                    "steps": [proof.steps.0, proof.steps.1], "pairs": proof.visited,
                })
            })
            .collect();
        let difference = match (self.sequence(), self.difference()) {
            (Some(found), _) => {
                let flows = &found.sequence.flows;
                Some((self.sides(true), flows, &found.elements, &found.programs))
            }
            (None, Some((_, d))) => Some((self.sides(false), &d.flows, &d.a, &d.b)),
            (None, None) => None,
        };
        let packets: Vec<Value> = self
            .inputs()
            .iter()
            .map(|input| {
                json!({
                    "source": input.source,
                    "nanoseconds": input.time,
                    "words": described(input.frame),
                    "hex": hex(input.frame),
                })
            })
            .collect();
        let shown = self.verification.shown.as_ref().map(|shown| {
            let side = |side: usize| {
                json!({
                    "side": self.sides(true)[side],
                    "does": self.becomes(shown, side),
                    "only": differing(shown, side),
                })
            };
            json!({ "packets": packets, "flows": [], "sides": [side(0), side(1)] })
        });
        let difference = difference.map(|(sides, flows, a, b)| {
            let flow = |held: &Held| {
                let Held { owner, name, key, values, common, .. } = held;
                let [key, values, common] = [key, values, common]
                    .map(|numbers| numbers.iter().map(u128::to_string).collect::<Vec<_>>());
                json!({
                    "owner": owner, "table": name, "key": key, "values": values, "common": common,
                })
            };
            let flows: Vec<Value> = flows.iter().map(flow).collect();
            let side = |i: usize, seen: &Observation, other: &Observation| {
                let fates: Vec<String> = seen.fates.iter().map(|f| self.fate(i, f)).collect();
                json!({ "side": sides[i], "does": fates, "only": only_here(seen, other) })
            };
            json!({ "packets": packets, "flows": flows, "sides": [side(0, a, b), side(1, b, a)] })
        });
        json!({
            "files": self.files,
            "verdict": match verification.outcome() {
                Outcome::Equal => "equal",
                Outcome::Different => "different",
                Outcome::Undecided => "undecided",
            },
            "seconds": self.time.as_secs_f64(),
            "proofs": proofs,
            "packets": evidence.packets,
            "sequences": evidence.sequences,
            "ends": { "reached": evidence.exits.0, "all": evidence.exits.1 },
            "notes": self.remarks(),
            "difference": shown.or(difference),
        })
    }
}

/// How packets that leave one of two chains differ from those that leave the other instead.
fn differing(shown: &Shown, side: usize) -> Vec<String> {
    let only = shown.only();
    let mut parts = Vec::new();
    for (one, other) in only[side].iter().zip(&only[1 - side]).take(LINES) {
        if one.sink != other.sink {
            parts.push(format!("to {}, not to {}", one.sink, other.sink));
        }
        let ethernet = is_ethernet(&one.frame) && is_ethernet(&other.frame);
        parts.extend(fields::difference(&one.frame, &other.frame, ethernet));
    }
    parts
}

/// The flows that are in tables when packets come.
fn show_flows(text: &mut String, flows: &[Held]) {
    for Held { owner, key, values, common, .. } in flows {
        let _ = writeln!(
            text,
            "    while '{owner}' holds the flow {} with {} and {}",
            numbers(key),
            numbers(values),
            numbers(common)
        );
    }
}

/// How a packet as it came out differs from another.
fn difference_of(mine: &Witness, theirs: &Witness) -> String {
    let mut parts = Vec::new();
    if mine.frame != theirs.frame {
        parts.push(format!("bytes {}", clipped(hex(&mine.frame))));
    }
    if mine.annotations != theirs.annotations {
        parts.push(format!("annotations {}", hex(&mine.annotations)));
    }
    if mine.marks != theirs.marks {
        let marks = ["MAC", "network", "transport"].iter().zip(mine.marks);
        let marks = marks.filter_map(|(name, at)| Some(format!("{name} header at {}", at?)));
        parts.push(marks.collect::<Vec<_>>().join(", "));
    }
    if mine.packet_type != theirs.packet_type {
        parts.push(format!("type {:?}", mine.packet_type));
    }
    if mine.timestamp != theirs.timestamp {
        parts.push(format!("timestamp {}", mine.timestamp));
    }
    match parts.is_empty() {
        true => "room before the packet".into(),
        false => parts.join("; "),
    }
}

/// Counters, reasons and elements that only one side shows.
fn only_here(seen: &Observation, other: &Observation) -> Vec<String> {
    let mut lines = Vec::new();
    for (owner, name, value) in &seen.state {
        let same = |(o, n, v): &&(String, String, _)| (o, n, v) == (owner, name, value);
        if !other.state.iter().any(|theirs| same(&theirs)) {
            lines.push(match value {
                ir::StateValue::Counter { packets, bytes } => {
                    format!("'{owner}' {name}: {packets} packets, {bytes} bytes")
                }
                ir::StateValue::Cells(cells) => format!("'{owner}' {name}: {cells:?}"),
                ir::StateValue::Flows(flows) => format!("'{owner}' {name}: {} flows", flows.len()),
            });
        }
    }
    for (element, reason) in seen.notes.iter().filter(|note| !other.notes.contains(note)) {
        lines.push(format!("'{element}' counts {reason}"));
    }
    let mut left: HashMap<&(String, usize), usize> = HashMap::new();
    other.visited.iter().for_each(|port| *left.entry(port).or_default() += 1);
    for port in &seen.visited {
        match left.get_mut(port).filter(|n| **n > 0) {
            Some(n) => *n -= 1,
            None => lines.push(format!("passes '{}' [{}]", port.0, port.1)),
        }
    }
    lines
}

/// Text that is cut where it is too long to be read.
pub(super) fn clipped(mut text: String) -> String {
    const LONGEST: usize = 320;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
