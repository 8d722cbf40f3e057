//! `catena ctl`: controls an instance that runs.

mod capture;
mod flows;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, Subcommand};
use engine::control;
use serde_json::{Map, Value, json};
use view::table::{Table, grouped};

use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::socket;
use crate::terminal::{colours, for_output, print, print_as_it_is, print_error};

/// Control a chain that runs
#[derive(Args, Debug)]
pub(crate) struct Ctl {
    /// The instance's control socket
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
    /// List the handlers of an element, or of all
    Handlers {
        /// The element's full name
        element: Option<String>,
    },
    /// Read a handler
    Read {
        /// ELEMENT.HANDLER, and what it is to be given
        #[arg(required = true, value_name = "ELEMENT.HANDLER")]
        handler: Vec<String>,
    },
    /// Write a handler, on every core
    Write {
        /// ELEMENT.HANDLER
        #[arg(value_name = "ELEMENT.HANDLER")]
        handler: String,
        /// What is written; words are joined by spaces
        value: Vec<String>,
    },
    /// List the flows of elements, count them, or delete one; packets pass meanwhile
    Flows(flows::Flows),
    /// Show what every element took in, gave out, counted, dropped and holds
    Counters,
    /// Show how packets find their workers: the groups of traffic classes, what a switch must match
    /// to tag their frames (all of it with --json), and where they are
    Dispatch {
        #[command(subcommand)]
        action: Option<Dispatch>,
    },
    /// Show or change the faults that devices have, where the run began with --faults
    Faults {
        /// As for --faults; 'none' ends them
        #[arg(value_name = "FAULT=SHARE,…")]
        faults: Option<String>,
    },
    /// Write packets that pass from element to element into a capture, until Ctrl-C
    Capture(Capture),
    /// Follow packets that come in through the chain, and tell what each element did with them and
    /// what the program did that takes the elements' place
    Trace {
        /// Which packets: as for capture
        filter: Vec<String>,
        /// How many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        count: u64,
        /// Where they come in, as for capture; everywhere if nothing is said
        #[arg(long = "in", value_name = "EDGE")]
        edge: Option<String>,
    },
    /// Let another configuration take the place of the one that runs; no packet is lost
    Swap {
        /// The configuration; `-` for the standard input
        file: String,
        /// Only show what would become of the state of elements, and whether the change would be
        /// refused, which the exit status says, too
        #[arg(long, conflicts_with = "force")]
        check: bool,
        /// Change the chain also where the new one ends by itself and the one that runs does not
        #[arg(long)]
        force: bool,
    },
    /// Return to the configuration that ran before
    Rollback {
        /// As for swap
        #[arg(long)]
        force: bool,
    },
    /// Show what runs
    Status,
    /// End the run
    Stop,
}

/// What is captured, and where to.
#[derive(Args, Debug)]
struct Capture {
    /// A connection, 'A -> B', or those of an output, 'A[1]', of an input, '[1]B', or all of an
    /// element, a network function or an interface: its name
    edge: String,
    /// Which packets: a pattern of IPClassifier such as 'tcp port 80 and host 10.0.0.1', or ip,
    /// ip6 or arp; all of them if there is none
    filter: Vec<String>,
    /// The capture, in pcapng; `-` for the standard output. Without it a line is printed for each
    /// packet
    #[arg(short, long, value_name = "FILE")]
    write: Option<String>,
    /// End after so many packets
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Bytes of a packet that are kept at the most
    #[arg(short, long, value_name = "BYTES")]
    snap_length: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum Dispatch {
    /// Take a group of traffic classes to another worker; no packet is lost or overtakes another
    Move {
        /// The group's number
        group: usize,
        /// The worker's number
        worker: usize,
    },
    /// Count packets for a second and take groups to other workers, as few as will do, so that all
    /// workers have about as many
    Balance,
}

/// A connection to an instance.
pub(crate) struct Client {
    reader: BufReader<UnixStream>,
}

/// A piece of an answer that goes on.
pub(crate) enum Piece {
    /// A part of it.
    More(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// An answer can hold the values of many handlers.
const LONGEST_ANSWER: u64 = 1 << 28;

impl Client {
    /// Connects to the socket at a path, or at the usual one.
    ///
    /// # Errors
    /// A message that says what to do.
    pub(crate) fn connect(path: Option<&Path>) -> Result<Self, String> {
        let path = path.map_or_else(socket::default_path, Path::to_path_buf);
        let stream = UnixStream::connect(&path).map_err(|e| {
            format!("{}: {e}; is there a 'catena run --control {0}'?", path.display())
        })?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    /// Asks for something.
    ///
    /// # Errors
    /// What the instance says is wrong, or that it is gone.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, Failure> {
        self.follow(request, |_| Ok(()))
    }

    /// Asks for something whose answer goes on, until it ends or a signal says stop; gives its end.
    ///
    /// # Errors
    /// What the instance or whoever takes the pieces says is wrong.
    pub(crate) fn follow(
        &mut self,
        request: &Value,
        mut take: impl FnMut(Piece) -> Result<(), String>,
    ) -> Result<Value, Failure> {
        let gone = |e: std::io::Error| format!("the instance is gone: {e}");
        // Who is turned away is told so before he asks.
        let asked = writeln!(self.reader.get_mut(), "{request}");
        loop {
            let mut line = String::new();
            (&mut self.reader).take(LONGEST_ANSWER).read_line(&mut line).map_err(gone)?;
            if line.is_empty() {
                asked.map_err(gone)?;
                return Err("the instance hung up".to_string().into());
            }
            let mut answer: Map<String, Value> =
                serde_json::from_str(&line).map_err(|e| format!("an answer that is none: {e}"))?;
            if let Some(value) = answer.remove("ok") {
                return Ok(value);
            }
            let error = answer.get("error").and_then(Value::as_str).map(str::to_string);
            if let Some(more) = answer.get("more") {
                take(Piece::More(more.clone()))?;
            } else if let Some(count) = answer.get("bytes").and_then(Value::as_u64) {
                let mut bytes = Vec::new();
                let count = count.min(LONGEST_ANSWER);
                (&mut self.reader).take(count).read_to_end(&mut bytes).map_err(gone)?;
                take(Piece::Bytes(bytes))?;
            } else {
                let error = error.unwrap_or_else(|| format!("an answer that is none: {line}"));
                return Err(match answer.remove("diagnostics") {
                    Some(diagnostics) => Failure::Reported(error, diagnostics),
                    None => error.into(),
                });
            }
        }
    }

    /// Has the answer end when a signal says so; a second one ends the program.
    fn end_by_signal(&self) -> Result<(), String> {
        let explain = |e: std::io::Error| e.to_string();
        let stream = self.reader.get_ref().try_clone().map_err(explain)?;
        let interrupted = interrupt_flag();
        let wait = move || {
            while !interrupted.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(20));
            }
            let _ = stream.shutdown(Shutdown::Write);
        };
        std::thread::Builder::new().spawn(wait).map_err(explain).map(drop)
    }
}

fn request(action: &Action) -> Result<Value, String> {
    Ok(match action {
        Action::Handlers { element } => json!({ "do": "handlers", "element": element }),
        Action::Read { handler } => json!({ "do": "read", "handler": handler.join(" ") }),
        Action::Write { handler, value } => {
            json!({ "do": "write", "handler": handler, "value": value.join(" ") })
        }
        Action::Flows(flows) => flows.request(),
        Action::Counters => json!({ "do": "counters" }),
        Action::Dispatch { action: None } => json!({ "do": "dispatch" }),
        Action::Dispatch { action: Some(Dispatch::Move { group, worker }) } => {
            json!({ "do": "move", "group": group, "worker": worker })
        }
        Action::Dispatch { action: Some(Dispatch::Balance) } => json!({ "do": "balance" }),
        Action::Swap { file, check, force } if file == "-" => {
            let bytes = dataplane::file::read_all(std::io::stdin(), control::LONGEST as u64);
            let text = bytes.map_err(|e| format!("standard input: {e}"))?;
            let text = String::from_utf8(text).map_err(|e| format!("standard input: {e}"))?;
            json!({ "do": "swap", "path": "<stdin>", "text": text, "check": check, "force": force })
        }
        Action::Swap { file, check, force } => {
            // The instance may have been started elsewhere.
            let path = std::path::absolute(file).map_err(|e| format!("{file}: {e}"))?;
            let path = path.to_str().ok_or_else(|| format!("{file}: not UTF-8"))?;
            json!({ "do": "swap", "path": path, "check": check, "force": force })
        }
        Action::Capture(capture) => json!({
            "do": "capture", "edge": capture.edge, "filter": capture.filter.join(" "),
            "count": capture.count, "snap": capture.snap_length,
        }),
        Action::Trace { filter, count, edge } => json!({
            "do": "trace", "filter": filter.join(" "), "count": count, "edge": edge,
            "colours": colours(&std::io::stdout()),
        }),
        Action::Faults { faults } => json!({ "do": "faults", "set": faults }),
        Action::Rollback { force } => json!({ "do": "rollback", "force": force }),
        Action::Status => json!({ "do": "status" }),
        Action::Stop => json!({ "do": "stop" }),
    })
}

/// Runs the command.
pub(crate) fn main(ctl: &Ctl) -> Result<ExitCode, Failure> {
    let request = request(&ctl.action)?;
    if let Action::Capture(capture) = &ctl.action {
        let client = Client::connect(ctl.socket.as_deref())?;
        return capture::run(client, &request, capture.write.as_deref(), ctl.json);
    }
    if let Action::Trace { .. } = &ctl.action {
        return trace(Client::connect(ctl.socket.as_deref())?, &request, ctl.json);
    }
    let answer = Client::connect(ctl.socket.as_deref())?.ask(&request)?;
    print(&if ctl.json { format!("{answer}\n") } else { show(&ctl.action, &answer) });
    let is_objected_to = answer["changed"] == false && answer["objection"].is_string();
    Ok(if is_objected_to { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints the stories of packets.
fn trace(mut client: Client, request: &Value, json: bool) -> Result<ExitCode, Failure> {
    client.end_by_signal()?;
    let ended = client.follow(request, |piece| {
        let Piece::More(more) = piece else { return Ok(()) };
        let line = match (json, more["text"].as_str()) {
            (_, None) => String::new(),
            (true, Some(_)) => format!("{}\n", more["packet"]),
            (false, Some(text)) => format!("{text}\n"),
        };
        if print_as_it_is(&for_output(&line)) {
            Ok(())
        } else {
            Err("nobody reads it any more".to_string())
        }
    })?;
    if let Some(why) = ended["ended"].as_str() {
        print_error(&format!("ended: {why}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn show(action: &Action, answer: &Value) -> String {
    match action {
        Action::Read { .. } => {
            let value = answer.as_str().unwrap_or("");
            format!("{}\n", value.strip_suffix('\n').unwrap_or(value))
        }
        Action::Write { .. } | Action::Stop | Action::Capture(_) | Action::Trace { .. } => {
            String::new()
        }
        Action::Handlers { .. } => show_handlers(answer),
        Action::Faults { .. } => format!("  {}\n", answer.as_str().unwrap_or("")),
        Action::Flows(flows) => flows.show(answer),
        Action::Counters => show_counters(&answer["all"]),
        Action::Dispatch { action: None } => show_dispatch(answer),
        Action::Dispatch { action: Some(Dispatch::Move { .. }) } => show_move(answer),
        Action::Dispatch { action: Some(Dispatch::Balance) } => show_balance(answer),
        Action::Swap { .. } | Action::Rollback { .. } => show_change(answer),
        Action::Status => show_status(answer),
    }
}

fn show_handlers(answer: &Value) -> String {
    let line = |prefix: &str, handler: &Value| {
        let access = match (handler["read"] == true, handler["write"] == true) {
            (true, true) => "read, write",
            (true, false) => "read",
            _ => "write",
        };
        format!("{prefix}{}  {access}\n", text(handler, "name"))
    };
    let list = |prefix: &str, handlers: &Value| -> String {
        handlers.as_array().into_iter().flatten().map(|h| line(prefix, h)).collect()
    };
    match answer {
        Value::Object(all) => {
            all.iter().map(|(element, own)| list(&format!("{element}."), own)).collect()
        }
        own => list("", own),
    }
}

fn show_counters(all: &Value) -> String {
    let columns = ["element", "class", "packets", "in", "out", "counted", "dropped", "held"];
    let mut table = Table::new(columns);
    let mut functions = Table::new(["function", "packets"]);
    for function in all["functions"].as_array().into_iter().flatten() {
        functions.row([text(function, "name").into(), grouped(number(&function["packets"]))]);
    }
    let mut reasons = Table::new(["element", "class", "reason", "packets"]);
    for element in all["elements"].as_array().into_iter().flatten() {
        let packets = |side: &str| {
            element.get(side).map_or(String::new(), |s| grouped(number(&s["packets"])))
        };
        let (name, class) = (text(element, "name"), text(element, "class"));
        let mut dropped = 0;
        for (kind, note) in [("dropped", ""), ("errors", " (to an error output)")] {
            for (reason, count) in element[kind].as_object().into_iter().flatten() {
                dropped += if kind == "dropped" { number(count) } else { 0 };
                let reason = format!("{reason}{note}");
                reasons.row([name.into(), class.into(), reason, grouped(number(count))]);
            }
        }
        let mut held = Vec::new();
        for (what, unit) in [("held", "packets"), ("flows", "flows")] {
            if let Some(count) = element.get(what) {
                held.push(format!("{} {unit}", grouped(number(count))));
            }
        }
        let dropped = if dropped > 0 { grouped(dropped) } else { String::new() };
        let came = element["packets"].as_u64().map_or(String::new(), grouped);
        table.row([
            name.into(),
            class.into(),
            came,
            packets("in"),
            packets("out"),
            packets("counted"),
            dropped,
            held.join(", "),
        ]);
    }
    let tables = [table, functions, reasons];
    let tables = tables.iter().filter(|table| !table.is_empty()).map(Table::render);
    tables.collect::<Vec<_>>().join("\n")
}

/// What of a group's traffic is told in a line of a table.
const SHOWN: usize = 2;
/// Runs of numbers of a field that are told there.
const RANGES: usize = 4;

fn show_dispatch(answer: &Value) -> String {
    let (way, why) = (text(answer, "way"), text(answer, "why"));
    let workers = number(&answer["workers"]);
    let mut out = match workers {
        1 => format!("  by {way} ({why}) to 1 worker\n"),
        _ => format!("  by {way} ({why}) to {workers} workers\n"),
    };
    let mut handed = Table::new(["from worker", "to worker", "packets", "per second"]);
    for way in answer["handed"].as_array().into_iter().flatten() {
        handed.row([
            number(&way["from"]).to_string(),
            number(&way["to"]).to_string(),
            grouped(number(&way["packets"])),
            grouped(way["rate"].as_f64().unwrap_or(0.0) as u64),
        ]);
    }
    if !handed.is_empty() {
        let _ = write!(out, "\n{}", handed.render());
    }
    let mut table = Table::new(["group", "tag", "worker", "packets", "per second", "traffic"]);
    for group in answer["groups"].as_array().into_iter().flatten() {
        let list = |name: &str| group[name].as_array().cloned().unwrap_or_default();
        let classes = list("classes");
        let mut traffic: Vec<String> = classes.iter().take(SHOWN).map(class_in_words).collect();
        if classes.len() > SHOWN {
            traffic.push(format!("{} more", classes.len() - SHOWN));
        }
        let answers = list("answers");
        traffic.extend(answers.iter().map(|own| format!("answers to {}", answer_in_words(own))));
        let worker = number(&group["worker"]).to_string();
        table.row([
            number(&group["group"]).to_string(),
            text(group, "tag").to_string(),
            match group["cpu"].as_u64() {
                Some(cpu) => format!("{worker} (core {cpu})"),
                None => worker,
            },
            grouped(number(&group["packets"])),
            grouped(group["rate"].as_f64().unwrap_or(0.0) as u64),
            traffic.join("; "),
        ]);
    }
    if !table.is_empty() {
        let _ = write!(out, "\n{}", table.render());
    }
    out
}

fn show_move(answer: &Value) -> String {
    let waited = answer["waited_ms"].as_f64().unwrap_or(0.0);
    let mut out = format!("  moved; packets waited {waited:.1} ms at the most\n");
    let held_back = number(&answer["held_back"]);
    if held_back > 0 {
        let _ = writeln!(
            out,
            "  {} packets that wait for something else leave from where they are",
            grouped(held_back)
        );
    }
    out
}

fn show_balance(answer: &Value) -> String {
    let mut out = String::new();
    for moved in answer["moved"].as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "  group {}: worker {} → {}; packets waited {:.1} ms at the most",
            moved["group"],
            moved["from"],
            moved["to"],
            moved["waited_ms"].as_f64().unwrap_or(0.0)
        );
    }
    if out.is_empty() {
        out.push_str("  all groups stay where they are\n");
    }
    let list = |name: &str| {
        let all = answer[name].as_array().into_iter().flatten();
        all.map(|packets| grouped(number(packets))).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        out,
        "  packets with tags in a second, by worker: {}; as groups are now: {}",
        list("before"),
        list("after")
    );
    out
}

/// A number or an address.
fn plain(of: &Value) -> String {
    of.as_str().map_or_else(|| of.to_string(), str::to_string)
}

/// `low-high`, or the number if it is one.
fn range(range: &Value, show: impl Fn(&Value) -> String) -> String {
    match range[0] == range[1] {
        true => show(&range[0]),
        false => format!("{}-{}", show(&range[0]), show(&range[1])),
    }
}

/// `lan: ip.proto 6, transport.dport 80`
fn class_in_words(class: &Value) -> String {
    let field = |field: &Value| {
        let ranges = field["ranges"].as_array().map_or(&[][..], Vec::as_slice);
        let show = |end: &Value| match text(field, "field") {
            "eth.type" => format!("{:#06x}", number(end)),
            _ => plain(end),
        };
        let mut all: Vec<String> = ranges.iter().take(RANGES).map(|r| range(r, show)).collect();
        if ranges.len() > RANGES {
            all.push(format!("{} more", ranges.len() - RANGES));
        }
        let bits = match field["bits"]["lowest"].as_u64() {
            Some(lowest) => {
                format!(" bits {lowest}..{}", lowest + number(&field["bits"]["count"]))
            }
            None => String::new(),
        };
        format!("{}{bits} {}", text(field, "field"), all.join(" or "))
    };
    let fields: Vec<String> = class["fields"].as_array().into_iter().flatten().map(field).collect();
    let fields = if fields.is_empty() { "all".to_string() } else { fields.join(", ") };
    format!("{}: {fields}", text(class, "in"))
}

/// `10.2.0.1:1024-2047`
fn answer_in_words(own: &Value) -> String {
    format!("{}:{}", range(&own["ip.dst"], plain), range(&own["transport.dport"], plain))
}

fn show_change(answer: &Value) -> String {
    let mut out = String::from(text(answer, "warnings"));
    let mut table = Table::new(["state", "element", "class", "holds", "why"]);
    for line in answer["plan"].as_array().into_iter().flatten() {
        let mut holds = Vec::new();
        for unit in ["packets", "flows"] {
            let count = number(&line[unit]);
            if count > 0 {
                holds.push(format!("{} {unit}", grouped(count)));
            }
        }
        if holds.is_empty() {
            let names = line["state"].as_array().into_iter().flatten().filter_map(Value::as_str);
            holds.extend(names.map(str::to_string));
        }
        table.row([
            text(line, "fate").into(),
            text(line, "element").into(),
            text(line, "class").into(),
            holds.join(", "),
            text(line, "why").into(),
        ]);
    }
    if !table.is_empty() {
        let _ = writeln!(out, "{}", table.render());
    }
    let made = answer["preparation_ms"].as_f64().unwrap_or(0.0);
    if answer["changed"] == true {
        let still = answer["standstill_ms"].as_array().into_iter().flatten();
        let longest = still.filter_map(Value::as_f64).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "  changed: made aside in {made:.1} ms; packets waited {longest:.3} ms at the most"
        );
        let unclaimed = number(&answer["unclaimed_packets"]);
        if unclaimed > 0 {
            let _ = writeln!(out, "  {} packets had nobody to go on with", grouped(unclaimed));
        }
    } else {
        let _ = writeln!(out, "  nothing was changed: it could be made, in {made:.1} ms");
        if let Some(why) = answer["objection"].as_str() {
            let _ = writeln!(out, "  without --force it would be refused: {why}");
        }
    }
    out
}

fn show_status(answer: &Value) -> String {
    let mut out = format!(
        "  catena {} (pid {}), {:.0} s: {} ({} elements, configuration number {})\n",
        text(answer, "version"),
        number(&answer["pid"]),
        answer["seconds"].as_f64().unwrap_or(0.0),
        text(answer, "configuration"),
        number(&answer["elements"]),
        number(&answer["generation"]),
    );
    for worker in answer["workers"].as_array().into_iter().flatten() {
        let bound = match worker["cpu"].as_u64() {
            Some(cpu) => format!(" on core {cpu}"),
            None => String::new(),
        };
        let index = number(&worker["worker"]);
        let _ = writeln!(out, "  worker {index}{bound}: {}", text(worker, "status"));
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
        let class = json!({ "in": "lan", "fields": [
            { "field": "eth.type", "ranges": [[0, 0x7ff], [0x86dd, 0x86dd]] },
            { "field": "ip.src", "ranges": [["10.0.0.0", "10.0.0.3"]] },
            { "field": "ip.dst", "ranges": runs, "bits": { "lowest": 0, "count": 8 } },
        ] });
        assert_eq!(
            class_in_words(&class),
            "lan: eth.type 0x0000-0x07ff or 0x86dd, ip.src 10.0.0.0-10.0.0.3, \
             ip.dst bits 0..8 0 or 2 or 4 or 6 or 96 more"
        );
        assert_eq!(class_in_words(&json!({ "in": "wan", "fields": [] })), "wan: all");
    }
}
