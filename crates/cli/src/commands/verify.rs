//! `catena verify`: whether a chain and what it becomes, or two chains, do the same.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use compiler::equivalence::differential::{Disagreement, Effort};
use compiler::equivalence::{
    Difference, Fate, Held, Observation, Outcome, Proof, Subjects, Verdict, Verification,
    verify_chain, verify_pair,
};
use compiler::witness::{START, Witness};
use dataplane::place;
use ir::{Sources, has_errors};
use net::pcap::{LinkType, Options, Writer};
use serde_json::{Value, json};

use crate::commands::check::Closed;
use crate::explain::numbers;
use crate::load::{self, Disk};
use crate::terminal::{Paint, colours, count, print, print_error};
use crate::{diagnostics, variables};

/// Neither equality nor a difference was shown, or the question could not be asked.
const UNDECIDED: u8 = 2;

/// Prove that a chain and what it becomes, or two chains, do the same
///
/// With one FILE: that simplification of its synthesised programs changes nothing for any packet and
/// any state, and that packets and flows made for every way through them, and sequences of packets,
/// go the same way as from element to element. With two: that the same packets come out of both,
/// whatever comes in. Sources and sinks are the same that stand for one device or file. Queues, schedulers, and
/// elements that only their own code can speak for must have the same class, configuration and
/// successors; names and the order of statements do not matter. A difference is shown by a packet, or
/// by the source that only one of them has. Ends with status 0 if all is equal, 1 if there is a
/// difference, and 2 if neither could be shown.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// One or two configurations (`-` for the standard input), and values of their variables
    #[arg(value_name = "FILE|VAR=VALUE", required = true)]
    files: Vec<String>,
    /// Write the packets that show a difference to a capture
    #[arg(long, value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// About how many packets to try, if not as many as fit the chain
    #[arg(long, value_name = "N")]
    packets: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// So many lines tell of what only one side shows.
const LINES: usize = 20;

/// A configuration with what its elements mean.
struct Loaded {
    sources: Sources,
    subjects: Subjects,
}

fn load(name: &str, variables: &[(String, String)]) -> Result<Option<Loaded>, String> {
    let mut sources = Sources::new();
    let file = load::configuration(&mut sources, name)?;
    let options = compiler::Options::of(variables.to_vec());
    let mut files = Disk::default();
    let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let mut subjects = None;
    if let Some(chain) = chain
        && let Some(mut made) = compiler::instantiate(&chain, &mut sources, &mut files, &mut found)
    {
        // Devices that are not there do not change what the elements between them do.
        let mut ignored = Vec::new();
        let mut closed = Closed::default();
        made.initialize(&chain, &mut sources, &mut files, &mut closed, &mut ignored);
        ignored.retain(|d| d.code != "device");
        found.append(&mut ignored);
        let mut state = ir::Store::new();
        for (element, node) in made.elements.iter().zip(&chain.graph.nodes) {
            element.export(&node.name, &mut state);
        }
        let models = made.elements.iter().map(|element| element.model()).collect();
        let places = chain.graph.nodes.iter().map(|node| sources.landmark(node.span)).collect();
        subjects = Some(Subjects { graph: chain.graph, models, state, places });
    }
    found.retain(|d| d.severity == ir::Severity::Error);
    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
    Ok(subjects.filter(|_| !has_errors(&found)).map(|subjects| Loaded { sources, subjects }))
}

/// Runs the command.
pub(crate) fn main(args: &Verify) -> Result<ExitCode, String> {
    Ok(run(args).unwrap_or_else(|why| {
        print_error(&format!("error: {why}\n"));
        ExitCode::from(UNDECIDED)
    }))
}

fn run(args: &Verify) -> Result<ExitCode, String> {
    let (files, variables) = variables::split(&args.files);
    if files.is_empty() || files.len() > 2 {
        return Err(format!("one or two configurations are wanted, not {}", files.len()));
    }
    let mut chains = Vec::new();
    for name in &files {
        match load(name, &variables)? {
            Some(loaded) => chains.push(loaded),
            None => return Ok(ExitCode::from(UNDECIDED)),
        }
    }
    let effort = args.packets.map(|packets| Effort { packets, seed: 1 });
    let start = Instant::now();
    let verification = match &chains[..] {
        [one] => verify_chain(&one.subjects, effort),
        [a, b, ..] => verify_pair(&a.subjects, &b.subjects, effort),
        [] => return Err("no configuration".into()),
    };
    let report = Report {
        files: &files,
        chains: &chains,
        verification: &verification,
        time: start.elapsed(),
        paint: Paint(!args.json && colours(&stdout())),
    };
    if let Some(path) = &args.pcap {
        write_capture(path, &report.packets()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    match args.json {
        true => print(&format!("{:#}\n", report.json())),
        false => print(&report.text()),
    }
    Ok(ExitCode::from(match verification.outcome() {
        Outcome::Equal => 0,
        Outcome::Different => 1,
        Outcome::Undecided => UNDECIDED,
    }))
}

fn write_capture(path: &Path, packets: &[&Witness]) -> std::io::Result<()> {
    let link_type = match packets.iter().all(|p| !is_ethernet(&p.frame)) && !packets.is_empty() {
        true => LinkType::RAW,
        false => LinkType::ETHERNET,
    };
    let options = Options { link_type, ..Options::for_file_name(path) };
    let mut writer = Writer::new(place::create(path, false)?, &options)?;
    for packet in packets {
        let length = u32::try_from(packet.frame.len()).unwrap_or(u32::MAX);
        writer.write(packet.now - START.min(packet.now), &packet.frame, length)?;
    }
    writer.finish().map(|_| ())
}

/// A packet in words.
fn described(frame: &[u8]) -> String {
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

struct Report<'a> {
    files: &'a [String],
    chains: &'a [Loaded],
    verification: &'a Verification,
    time: Duration,
    paint: Paint,
}

/// The two sides of a difference, as people are told of them.
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

    fn packets(&self) -> Vec<&Witness> {
        match (self.sequence(), self.difference()) {
            (Some(found), _) => {
                found.sequence.arrivals.iter().map(|arrival| &arrival.packet).collect()
            }
            (None, Some((_, difference))) => vec![&difference.packet],
            (None, None) => Vec::new(),
        }
    }

    fn sides(&self, by_packets: bool) -> Sides {
        match (self.is_pair(), by_packets) {
            (true, _) => ["the first", "the second"],
            (false, true) => ["the elements", "the program"],
            (false, false) => ["before simplification", "after it"],
        }
    }

    fn text(&self) -> String {
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
        let what = match self.is_pair() {
            true => "behind inputs with the same traffic do the same",
            false => "equal the chain's symbolic execution",
        };
        if proofs.is_empty() {
            text += match self.is_pair() {
                true if self.verification.differences.is_empty() => {
                    "  nothing comes out of either chain, whatever comes in\n"
                }
                _ => "  no element's work is carried out by programs\n",
            };
        } else {
            let _ = writeln!(
                text,
                "  {} of {} {what}, for every packet and state ({}, {visited} pairs looked at)",
                proven,
                count(proofs.len(), "program"),
                count(steps, "step"),
            );
        }
        if evidence.packets > 0 {
            let how = match (self.is_pair(), evidence.disagreement.is_some()) {
                (_, true) => "until the difference",
                (true, false) if evidence.unclear.is_some() => "were tried",
                (true, false) => "come out of both alike",
                (false, false) => "go the same way from element to element",
            };
            let _ = writeln!(
                text,
                "  {} in {} {how} ({} of {} ends reached)",
                count(evidence.packets, "packet"),
                count(evidence.sequences, "sequence"),
                evidence.exits.0,
                evidence.exits.1,
            );
        }
        for proof in proofs {
            if let Verdict::Unproven(why) = &proof.verdict {
                let (element, port) = &proof.entry;
                let _ = writeln!(text, "  not proven behind '{element}' [{port}]: {why}");
            }
        }
        for note in self.remarks() {
            let _ = writeln!(text, "  {note}");
        }
        if let Some(found) = self.sequence() {
            self.show_sequence(&mut text, found);
        } else if let Some((proof, difference)) = self.difference() {
            self.show_difference(&mut text, proof, difference);
        }
        text
    }

    /// What there is to say besides: what differs first.
    fn remarks(&self) -> Vec<&String> {
        let Verification { differences, notes, evidence, .. } = self.verification;
        let all = differences.iter().chain(notes);
        let unclear = evidence.unclear.iter().filter(|_| !self.is_pair());
        all.chain(unclear).collect()
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

    /// What packets come out of in the end that come to an element.
    fn sinks(&self, side: usize, element: &str) -> String {
        let subjects = &self.chains[side].subjects;
        let Some(node) = subjects.graph.find(element) else { return String::new() };
        let sinks: Vec<String> = subjects.sinks(node).into_iter().collect();
        match subjects.graph.nodes[node].outputs.is_empty() || sinks.is_empty() {
            true => String::new(),
            false => format!(", towards {}", sinks.join(" or ")),
        }
    }

    fn fate(&self, side: usize, fate: &Fate) -> String {
        match fate {
            Fate::Arrived(queue, packet) => {
                let place = self.place(side, &queue.element);
                let on =
                    if self.is_pair() { self.sinks(side, &queue.element) } else { String::new() };
                let words = clipped(described(&packet.frame));
                format!("sends to '{}' [{}]{place}{on}: {words}", queue.element, queue.port)
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

    fn json(&self) -> Value {
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
            .packets()
            .iter()
            .map(|packet| {
                json!({
                    "nanoseconds": packet.now.saturating_sub(START),
                    "words": described(&packet.frame),
                    "hex": hex(&packet.frame),
                    "annotations": hex(&packet.annotations),
                })
            })
            .collect();
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
            "difference": difference,
        })
    }
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
    other.through.iter().for_each(|port| *left.entry(port).or_default() += 1);
    for port in &seen.through {
        match left.get_mut(port).filter(|n| **n > 0) {
            Some(n) => *n -= 1,
            None => lines.push(format!("passes '{}' [{}]", port.0, port.1)),
        }
    }
    lines
}

/// Text that is cut where it is too long to be read.
fn clipped(mut text: String) -> String {
    const LONGEST: usize = 320;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
