//! `catena ctl`: controls an instance that runs.

mod capture;
mod flows;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, Subcommand};
use engine::control::protocol::{self, Ask, Bound, Piece};
use engine::control::{self, Client, Received};
use serde::Serialize;
use serde_json::Value;
use view::table::{Table, grouped};

use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::socket;
use crate::terminal::{colours, for_output, print, print_as_it_is, print_error};

/// Control a running chain: handlers, counters, flows, captures, traces, hot swap
#[derive(Args, Debug)]
pub(crate) struct Ctl {
    /// Control socket of the instance; default: the usual place
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List handlers of an element, or of all elements
    Handlers {
        /// Full name of the element
        element: Option<String>,
    },
    /// Read a handler
    Read {
        /// ELEMENT.HANDLER, and the handler's arguments
        #[arg(required = true, value_name = "ELEMENT.HANDLER")]
        handler: Vec<String>,
    },
    /// Write a handler on every worker
    Write {
        /// ELEMENT.HANDLER
        #[arg(value_name = "ELEMENT.HANDLER")]
        handler: String,
        /// Value to write; words are joined by spaces
        value: Vec<String>,
    },
    /// List, count or delete flows while packets pass
    Flows(flows::Flows),
    /// Show packets, drops and held packets of every element
    Counters,
    /// Show how packets are dispatched to workers, or move traffic between workers
    ///
    /// Groups of traffic classes are listed with their tags and workers. With --json, also what a switch
    /// must match to tag their frames. What comes in over interfaces is dispatched and counted by group; captures and
    /// generated traffic are not: the first worker takes them.
    Dispatch {
        #[command(subcommand)]
        action: Option<Dispatch>,
    },
    /// Show or change the number of active workers, if the run began with --workers
    ///
    /// Flows move with their state. No packet is lost, and none overtakes another of its flow. Captures and generated
    /// traffic stay with the first worker.
    Workers {
        /// New number of workers
        #[arg(value_name = "N")]
        count: Option<usize>,
    },
    /// Write the state of all elements (flows, counters, cells) to a file, or load what another run wrote: flows go
    /// on there as they were
    State {
        #[command(subcommand)]
        action: State,
    },
    /// Show or change injected faults, if the run began with --faults
    Faults {
        /// Faults as for --faults of 'catena run'; 'none' ends them
        #[arg(value_name = "FAULT=SHARE,…")]
        faults: Option<String>,
    },
    /// Capture packets between elements until Ctrl-C
    Capture(Capture),
    /// Trace packets through the chain: what each element did, and what the program did
    Trace {
        /// Filter, as for capture
        filter: Vec<String>,
        /// Number of packets
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        count: u64,
        /// Where packets enter, as for capture; default: everywhere
        #[arg(long = "in", value_name = "EDGE")]
        edge: Option<String>,
    },
    /// Replace the running chain by another configuration without losing packets (hot swap)
    Swap {
        /// Configuration file; `-` for standard input
        file: String,
        /// Report what state would be kept or lost, and whether the swap would be refused; change nothing
        #[arg(long, conflicts_with = "force")]
        check: bool,
        /// Replace the chain even if the new one ends or comes to rest, and the running one does not
        #[arg(long)]
        force: bool,
    },
    /// Return to the configuration that ran before
    Rollback {
        /// As for swap
        #[arg(long)]
        force: bool,
    },
    /// Show the state of the instance and its workers
    Status,
    /// Stop the run
    Stop,
    /// Print the JSON Schema of the control protocol; needs no instance
    Schema,
}

/// What is captured, and where to.
#[derive(Args, Debug)]
struct Capture {
    /// What to capture: a connection 'A -> B', an output 'A[1]', an input '[1]B', or the name of an
    /// element, network function or interface
    edge: String,
    /// Filter: a pattern of IPClassifier such as 'tcp port 80 and host 10.0.0.1', or ip, ip6, arp; default:
    /// all packets
    filter: Vec<String>,
    /// Write pcapng to this file; `-` for standard output. By default a line is printed per packet
    #[arg(short, long, value_name = "FILE")]
    write: Option<String>,
    /// Stop after this many packets
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Maximum number of bytes kept of each packet
    #[arg(short, long, value_name = "BYTES")]
    snap_length: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum Dispatch {
    /// Move a group of traffic classes to another worker, without losing or reordering packets
    Move {
        /// Number of the group
        group: usize,
        /// Number of the worker
        worker: usize,
    },
    /// Measure for a second, then move as few groups as needed to balance packets between workers
    Balance,
}

#[derive(Debug, Subcommand)]
enum State {
    /// Write the state of all elements to a file, or a worker's or a group's; packets pass meanwhile
    Export {
        /// Where to
        file: PathBuf,
        /// Only what this worker has
        #[arg(long, conflicts_with = "group")]
        worker: Option<usize>,
        /// Only the flows of this group of traffic classes
        #[arg(long)]
        group: Option<usize>,
    },
    /// Load the state in a file that another run of this chain wrote; nothing changes if it does not fit
    ///
    /// State of a whole chain replaces what is there. Flows of a worker or a group are added.
    Import {
        /// Where from
        file: PathBuf,
    },
}

/// The protocol's word for one of a few.
pub(crate) fn word(one: &impl Serialize) -> String {
    match serde_json::to_value(one) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Connects to the instance whose socket is at a path, or at the usual one.
///
/// # Errors
/// A message that says what to do.
pub(crate) fn connect(path: Option<&Path>) -> Result<Client, Failure> {
    let path = path.map_or_else(socket::default_path, Path::to_path_buf);
    Ok(Client::connect(&path)
        .map_err(|e| format!("{}: {e}; is there a 'catena run --control {0}'?", path.display()))?)
}

/// Has the answer end when a signal says so; a second one ends the program.
fn end_by_signal(client: &Client) -> Result<(), String> {
    let explain = |e: std::io::Error| e.to_string();
    let end = client.ender().map_err(explain)?;
    let interrupted = interrupt_flag();
    let wait = move || {
        while !interrupted.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        end();
    };
    std::thread::Builder::new().spawn(wait).map_err(explain).map(drop)
}

impl Ctl {
    /// Asks, and shows the answer for people or for programs.
    fn ask<R: Ask>(
        &self,
        request: R,
        show: impl FnOnce(&R::Answer) -> String,
    ) -> Result<R::Answer, Failure> {
        let answer = connect(self.socket.as_deref())?.ask(request)?;
        let text = match self.json {
            true => format!("{}\n", serde_json::to_value(&answer).map_err(|e| e.to_string())?),
            false => show(&answer),
        };
        print(&text);
        Ok(answer)
    }
}

/// The request for another configuration.
fn swap(file: &str, check: bool, force: bool) -> Result<protocol::Swap, String> {
    if file == "-" {
        let bytes = dataplane::file::read_all(std::io::stdin(), control::LONGEST as u64);
        let text = bytes.map_err(|e| format!("standard input: {e}"))?;
        let text = String::from_utf8(text).map_err(|e| format!("standard input: {e}"))?;
        return Ok(protocol::Swap { path: "<stdin>".to_string(), text: Some(text), check, force });
    }
    // The instance may have been started elsewhere.
    let path = std::path::absolute(file).map_err(|e| format!("{file}: {e}"))?;
    let path = path.to_str().ok_or_else(|| format!("{file}: not UTF-8"))?.to_string();
    Ok(protocol::Swap { path, text: None, check, force })
}

/// Runs the command.
pub(crate) fn main(ctl: &Ctl) -> Result<ExitCode, Failure> {
    let nothing = |_: &()| String::new();
    match &ctl.action {
        Action::Handlers { element } => {
            let one = element.is_some();
            let request = protocol::Handlers { element: element.clone() };
            ctl.ask(request, |all| show_handlers(all, one)).map(drop)
        }
        Action::Read { handler } => {
            let request = protocol::Read { handler: handler.join(" ") };
            ctl.ask(request, |value| format!("{}\n", value.strip_suffix('\n').unwrap_or(value)))
                .map(drop)
        }
        Action::Write { handler, value } => {
            let (handler, value) = (handler.clone(), value.join(" "));
            ctl.ask(protocol::Write { handler, value }, nothing)
        }
        Action::Flows(flows) => flows.run(ctl),
        Action::Counters => ctl
            .ask(protocol::Counters {}, |answer| {
                answer.all.as_ref().map_or(String::new(), show_counters)
            })
            .map(drop),
        Action::Dispatch { action: None } => {
            ctl.ask(protocol::Dispatch {}, show_dispatch).map(drop)
        }
        Action::Dispatch { action: Some(Dispatch::Move { group, worker }) } => {
            let request = protocol::Move { group: *group, worker: *worker };
            ctl.ask(request, show_move).map(drop)
        }
        Action::Dispatch { action: Some(Dispatch::Balance) } => {
            ctl.ask(protocol::Balance {}, show_balance).map(drop)
        }
        Action::Workers { count } => {
            let request = protocol::Workers { count: *count };
            ctl.ask(request, |answer| show_workers(answer, count.is_some())).map(drop)
        }
        Action::State { action: State::Export { file, worker, group } } => {
            let request = protocol::ExportState { worker: *worker, group: *group };
            let text = connect(ctl.socket.as_deref())?.ask(request)?;
            std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
            Ok(())
        }
        Action::State { action: State::Import { file } } => {
            let explain = |e: std::io::Error| format!("{}: {e}", file.display());
            let read = std::fs::File::open(file).map_err(explain)?;
            let bytes = dataplane::file::read_all(read, control::LONGEST as u64);
            let text = String::from_utf8(bytes.map_err(explain)?);
            let text = text.map_err(|e| format!("{}: {e}", file.display()))?;
            let show = |answer: &protocol::StateImported| {
                let protocol::StateImported { elements, flows, lost } = answer;
                let lost = match lost {
                    0 => String::new(),
                    _ => format!(
                        "; {lost} flows are lost, whose directions come to different workers"
                    ),
                };
                format!("  took over the state of {elements} elements, with {flows} flows{lost}\n")
            };
            ctl.ask(protocol::ImportState { text }, show).map(drop)
        }
        Action::Faults { faults } => {
            let request = protocol::Faults { set: faults.clone() };
            ctl.ask(request, |faults| format!("  {faults}\n")).map(drop)
        }
        Action::Capture(capture) => capture::run(ctl, capture),
        Action::Trace { filter, count, edge } => {
            let (filter, edge) = (filter.join(" "), edge.clone());
            let colours = colours(&std::io::stdout());
            trace(ctl, protocol::Trace { filter, count: Some(*count), edge, colours })
        }
        Action::Swap { file, check, force } => {
            let changed = ctl.ask(swap(file, *check, *force)?, show_change)?;
            let is_refused = !changed.changed && changed.objection.is_some();
            return Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        Action::Rollback { force } => {
            ctl.ask(protocol::Rollback { check: false, force: *force }, show_change).map(drop)
        }
        Action::Status => ctl.ask(protocol::Status {}, show_status).map(drop),
        Action::Stop => ctl.ask(protocol::Stop {}, nothing),
        Action::Schema => {
            print(&format!("{:#}\n", protocol::schema()));
            Ok(())
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the stories of packets.
fn trace(ctl: &Ctl, request: protocol::Trace) -> Result<(), Failure> {
    let mut client = connect(ctl.socket.as_deref())?;
    end_by_signal(&client)?;
    let ended = client.follow(request, |received| {
        let Received::Piece(Piece::Followed(followed)) = received else { return Ok(()) };
        let line = match ctl.json {
            true => serde_json::to_string(&followed.packet).map_err(|e| e.to_string())? + "\n",
            false => format!("{}\n", followed.text),
        };
        if print_as_it_is(&for_output(&line)) {
            Ok(())
        } else {
            Err("the reader is gone".to_string())
        }
    })?;
    if let Some(why) = ended.ended {
        print_error(&format!("ended: {why}\n"));
    }
    Ok(())
}

fn show_handlers(all: &[protocol::ElementHandlers], one: bool) -> String {
    let line = |element: &str, handler: &protocol::Handler| {
        let access = match (handler.read, handler.write) {
            (true, true) => "read, write",
            (true, false) => "read",
            _ => "write",
        };
        match one {
            true => format!("{}  {access}\n", handler.name),
            false => format!("{element}.{}  {access}\n", handler.name),
        }
    };
    all.iter().flat_map(|of| of.handlers.iter().map(|own| line(&of.element, own))).collect()
}

fn show_counters(all: &protocol::Counts) -> String {
    let columns = ["element", "class", "packets", "in", "out", "counted", "dropped", "held"];
    let mut table = Table::new(columns);
    let mut functions = Table::new(["function", "packets"]);
    for function in &all.functions {
        functions.row([function.name.clone(), grouped(function.packets)]);
    }
    let mut reasons = Table::new(["element", "class", "reason", "packets"]);
    for element in &all.elements {
        let packets = |traffic: Option<protocol::Traffic>| {
            traffic.map_or(String::new(), |traffic| grouped(traffic.packets))
        };
        let (name, class) = (&element.name, &element.class);
        for (lines, note) in [(&element.dropped, ""), (&element.errors, " (to an error output)")] {
            for (reason, count) in lines {
                let reason = format!("{reason}{note}");
                reasons.row([name.clone(), class.clone(), reason, grouped(*count)]);
            }
        }
        let held = [(element.held, "packets"), (element.flows, "flows")];
        let held = held.into_iter().filter(|(count, _)| *count > 0);
        let held: Vec<String> =
            held.map(|(count, unit)| format!("{} {unit}", grouped(count))).collect();
        let dropped: u64 = element.dropped.values().sum();
        table.row([
            name.clone(),
            class.clone(),
            element.packets.map_or(String::new(), grouped),
            packets(element.taken),
            packets(element.given),
            packets(element.counted),
            if dropped > 0 { grouped(dropped) } else { String::new() },
            held.join(", "),
        ]);
    }
    let tables = [table, functions, reasons];
    let tables = tables.iter().filter(|table| !table.is_empty()).map(Table::render);
    tables.collect::<Vec<_>>().join("\n")
}

/// What of a group's traffic is shown in a line of a table.
const SHOWN: usize = 2;
/// Runs of numbers of a field that are shown there.
const RANGES: usize = 4;

fn show_dispatch(answer: &protocol::DispatchAnswer) -> String {
    let protocol::DispatchAnswer { mode, why, workers, most, .. } = answer;
    let mut out = match (workers, most) {
        (1, 1) => format!("  by {mode} ({why}) to 1 worker\n"),
        _ if workers == most => format!("  by {mode} ({why}) to {workers} workers\n"),
        _ => format!("  by {mode} ({why}) to {workers} of {most} workers\n"),
    };
    if let Some(note) = &answer.note {
        let _ = writeln!(out, "  {note}");
    }
    let mut handed = Table::new(["from worker", "to worker", "packets", "per second"]);
    for one in &answer.handed {
        let (packets, rate) = (grouped(one.packets), grouped(one.rate as u64));
        handed.row([one.from.to_string(), one.to.to_string(), packets, rate]);
    }
    if !handed.is_empty() {
        let _ = write!(out, "\n{}", handed.render());
    }
    let head = ["group", "tag", "worker", "packets", "per second", "queued", "traffic"];
    let mut table = Table::new(head);
    for group in &answer.groups {
        let (mut tag, mut traffic) = ("", Vec::new());
        if let Some(tagged) = &group.tagged {
            tag = &tagged.tag;
            traffic.extend(tagged.classes.iter().take(SHOWN).map(class_in_words));
            if tagged.classes.len() > SHOWN {
                traffic.push(format!("{} more", tagged.classes.len() - SHOWN));
            }
            let answers = tagged.answers.iter().map(answers_in_words);
            traffic.extend(answers.map(|own| format!("answers to {own}")));
        }
        table.row([
            group.group.to_string(),
            tag.to_string(),
            match group.cpu {
                Some(cpu) => format!("{} (core {cpu})", group.worker),
                None => group.worker.to_string(),
            },
            grouped(group.packets),
            grouped(group.rate as u64),
            grouped(group.queued),
            traffic.join("; "),
        ]);
    }
    if !table.is_empty() {
        let _ = write!(out, "\n{}", table.render());
    }
    out
}

fn show_move(moved: &protocol::Moved) -> String {
    let waited = moved.waited_ms;
    format!("  moved; packets waited {waited:.1} ms at most\n{}", held_back(moved))
}

fn show_workers(answer: &protocol::WorkersAnswer, is_changed: bool) -> String {
    let protocol::WorkersAnswer { workers, most, note, moved } = answer;
    let mut out = format!("  {workers} of {most} workers\n");
    if let Some(note) = note {
        let _ = writeln!(out, "  {note}");
    }
    if is_changed {
        let groups = grouped(moved.groups as u64);
        let _ = match moved.groups {
            0 => writeln!(out, "  no flows moved"),
            _ => writeln!(
                out,
                "  {groups} groups of flows moved; packets waited {:.1} ms at most",
                moved.waited_ms
            ),
        };
    }
    out + &held_back(moved)
}

/// What is reported of packets that did not move with their group.
fn held_back(moved: &protocol::Moved) -> String {
    match moved.held_back {
        0 => String::new(),
        held_back => format!(
            "  {} packets that wait for something else leave from where they are\n",
            grouped(held_back as u64)
        ),
    }
}

fn show_balance(answer: &protocol::Balanced) -> String {
    let mut out = String::new();
    for protocol::GroupMoved { group, from, to, waited_ms } in &answer.moved {
        let _ = writeln!(
            out,
            "  group {group}: worker {from} → {to}; packets waited {waited_ms:.1} ms at most"
        );
    }
    if out.is_empty() {
        out.push_str("  all groups stay where they are\n");
    }
    let list = |all: &[u64]| all.iter().copied().map(grouped).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        out,
        "  packets with tags in a second, by worker: {}; as groups are now: {}",
        list(&answer.before),
        list(&answer.after)
    );
    out
}

/// `low-high`, or the number if it is one.
fn range<T: PartialEq>((low, high): &(T, T), show: impl Fn(&T) -> String) -> String {
    match low == high {
        true => show(low),
        false => format!("{}-{}", show(low), show(high)),
    }
}

/// `lan: ip.proto 6, transport.dport 80`
fn class_in_words(class: &protocol::Class) -> String {
    let field = |field: &protocol::FieldRanges| {
        let show = |end: &Bound| match (end, field.field.as_str()) {
            (Bound::Number(number), "eth.type") => format!("{number:#06x}"),
            (Bound::Number(number), _) => number.to_string(),
            (Bound::Text(text), _) => text.clone(),
        };
        let ranges = &field.ranges;
        let mut all: Vec<String> = ranges.iter().take(RANGES).map(|r| range(r, show)).collect();
        if ranges.len() > RANGES {
            all.push(format!("{} more", ranges.len() - RANGES));
        }
        let bits = match field.bits {
            Some(bits) => format!(" bits {}..{}", bits.lowest, bits.lowest + bits.count),
            None => String::new(),
        };
        format!("{}{bits} {}", field.field, all.join(" or "))
    };
    let fields: Vec<String> = class.fields.iter().map(field).collect();
    let fields = if fields.is_empty() { "all".to_string() } else { fields.join(", ") };
    format!("{}: {fields}", class.input)
}

/// `10.2.0.1:1024-2047`
fn answers_in_words(own: &protocol::Answers) -> String {
    format!(
        "{}:{}",
        range(&own.addresses, ToString::to_string),
        range(&own.ports, ToString::to_string)
    )
}

fn show_change(changed: &protocol::Changed) -> String {
    let mut out = changed.warnings.clone();
    let mut table = Table::new(["state", "element", "class", "holds", "why"]);
    for line in &changed.plan {
        let held = [(line.packets, "packets"), (line.flows, "flows")];
        let held = held.into_iter().filter(|(count, _)| *count > 0);
        let mut holds: Vec<String> =
            held.map(|(count, unit)| format!("{} {unit}", grouped(count))).collect();
        if holds.is_empty() {
            holds.extend(line.state.iter().cloned());
        }
        let (element, class, why) = (line.element.clone(), line.class.clone(), line.why.clone());
        table.row([word(&line.fate), element, class, holds.join(", "), why]);
    }
    if !table.is_empty() {
        let _ = writeln!(out, "{}", table.render());
    }
    let made = changed.preparation_ms;
    if changed.changed {
        let longest = changed.standstill_ms.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "  changed: built in {made:.1} ms; packets waited {longest:.3} ms at most"
        );
        if changed.unclaimed_packets > 0 {
            let unclaimed = grouped(changed.unclaimed_packets);
            let _ = writeln!(
                out,
                "  {unclaimed} packets were dropped: no element of the new chain takes them"
            );
        }
    } else {
        let _ = writeln!(out, "  nothing was changed: it can be built, in {made:.1} ms");
        if let Some(why) = &changed.objection {
            let _ = writeln!(out, "  without --force it would be refused: {why}");
        }
    }
    out
}

fn show_status(answer: &protocol::StatusAnswer) -> String {
    let protocol::StatusAnswer {
        version,
        pid,
        seconds,
        configuration,
        generation,
        elements,
        workers,
    } = answer;
    let mut out = format!(
        "  catena {version} (pid {pid}), {seconds:.0} s: {configuration} ({elements} elements, \
         configuration number {generation})\n"
    );
    for worker in workers {
        let bound = match worker.cpu {
            Some(cpu) => format!(" on core {cpu}"),
            None => String::new(),
        };
        let status = word(&worker.status);
        let _ = writeln!(out, "  worker {}{bound}: {status}", worker.worker);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes_of_large_tables_are_told_in_a_line() {
        let runs: Vec<[u8; 2]> = (0..100).map(|n| [2 * n, 2 * n]).collect();
        let class = |class| class_in_words(&serde_json::from_value(class).unwrap());
        let large = json!({ "in": "lan", "fields": [
            { "field": "eth.type", "ranges": [[0, 0x7ff], [0x86dd, 0x86dd]] },
            { "field": "ip.src", "ranges": [["10.0.0.0", "10.0.0.3"]] },
            { "field": "ip.dst", "ranges": runs, "bits": { "lowest": 0, "count": 8 } },
        ] });
        assert_eq!(
            class(large),
            "lan: eth.type 0x0000-0x07ff or 0x86dd, ip.src 10.0.0.0-10.0.0.3, \
             ip.dst bits 0..8 0 or 2 or 4 or 6 or 96 more"
        );
        assert_eq!(class(json!({ "in": "wan", "fields": [] })), "wan: all");
    }
}
