//! `catena top`: what an instance does now.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use view::paint::{fit, shown as for_terminal};
use view::table::{Table, grouped};

use super::ctl::Client;
use super::latency;
use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::terminal::{for_output, print_as_it_is, size};

/// Watch a chain that runs: rates by core, network function and element
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// The instance's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Show one interval and end
    #[arg(long)]
    once: bool,
    /// Print a line of JSON for each interval
    #[arg(long)]
    pub(crate) json: bool,
}

/// Packets or bytes that were counted, by what they are; `None` where nobody counts.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Packets that came.
    packets: Option<u64>,
    /// Packets that a source took in.
    taken: Option<u64>,
    /// Packets that a sink gave out.
    given: Option<u64>,
    /// Of both, and of what a counter counts.
    bytes: Option<u64>,
    dropped: u64,
    held: u64,
    flows: u64,
}

/// Adds what is known.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

impl Sums {
    fn of(element: &Value) -> Self {
        let drops = element["dropped"].as_object().into_iter().flatten();
        let mut bytes = None;
        ["in", "out", "counted"]
            .iter()
            .for_each(|kind| add(&mut bytes, element[kind]["bytes"].as_u64()));
        Self {
            packets: element["packets"].as_u64(),
            taken: element["in"]["packets"].as_u64(),
            given: element["out"]["packets"].as_u64(),
            bytes,
            dropped: drops.map(|(_, count)| number(count)).sum(),
            held: number(&element["held"]),
            flows: number(&element["flows"]),
        }
    }

    fn add(&mut self, other: Self) {
        add(&mut self.packets, other.packets);
        add(&mut self.taken, other.taken);
        add(&mut self.given, other.given);
        add(&mut self.bytes, other.bytes);
        self.dropped += other.dropped;
        self.held += other.held;
        self.flows += other.flows;
    }

    /// What came since; counters may have been reset in between.
    fn since(self, before: Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        Self {
            packets: since(self.packets, before.packets),
            taken: since(self.taken, before.taken),
            given: since(self.given, before.given),
            bytes: since(self.bytes, before.bytes),
            dropped: self.dropped.saturating_sub(before.dropped),
            ..self
        }
    }
}

/// The elements of an answer by name, in their order.
fn elements(of: &Value) -> impl Iterator<Item = (&str, &str, Sums)> {
    let all = of["elements"].as_array().into_iter().flatten();
    all.map(|e| (e["name"].as_str().unwrap_or(""), e["class"].as_str().unwrap_or(""), Sums::of(e)))
}

fn sums(of: &Value) -> BTreeMap<&str, Sums> {
    elements(of).map(|(name, _, sums)| (name, sums)).collect()
}

/// Packets that came to network functions.
fn came(of: &Value) -> BTreeMap<&str, u64> {
    let all = of["functions"].as_array().into_iter().flatten();
    all.filter_map(|f| Some((f["name"].as_str()?, f["packets"].as_u64()?))).collect()
}

/// What changed from one look to the next, in so many seconds.
fn interval(before: &Value, after: &Value, seconds: f64) -> Value {
    let rate = |count: u64| count as f64 / seconds;
    let line = |name: &str, class: &str, sums: Sums| {
        json!({
            "name": name, "class": class, "packets": sums.packets.map(rate),
            "in": sums.taken.map(rate), "out": sums.given.map(rate),
            "bits": sums.bytes.map(|bytes| rate(bytes) * 8.0), "dropped": rate(sums.dropped),
            "held": sums.held, "flows": sums.flows,
        })
    };
    let cores = after["workers"].as_array().into_iter().flatten().map(|worker| {
        let former = before["workers"].as_array().into_iter().flatten();
        let same = |former: &&Value| former["worker"] == worker["worker"];
        let former = former.into_iter().find(same).unwrap_or(&Value::Null);
        let since = |name: &str| number(&worker[name]).saturating_sub(number(&former[name]));
        let then = sums(former);
        let mut dropped = 0;
        let (mut held, mut flows) = (0, 0);
        for (name, _, now) in elements(worker) {
            let since = now.since(then.get(name).copied().unwrap_or_default());
            dropped += since.dropped;
            held += now.held;
            flows += now.flows;
        }
        let (taken, busy) = (since("in"), since("busy"));
        json!({
            "worker": worker["worker"], "cpu": worker["cpu"],
            "in": rate(taken), "out": rate(since("out")), "dropped": rate(dropped),
            "busy": (busy as f64 / 1e9 / seconds).min(1.0),
            "ns_per_packet": (taken > 0).then(|| busy as f64 / taken as f64),
            "cycles_per_packet": (taken > 0)
                .then(|| Some(busy as f64 / taken as f64 * worker["mhz"].as_f64()? / 1e3))
                .flatten(),
            "packets_per_round": (since("rounds") > 0).then(|| taken as f64 / since("rounds") as f64),
            "held": held, "flows": flows,
        })
    });
    let (then, now) = (sums(&before["all"]), &after["all"]);
    let mut functions: BTreeMap<&str, Sums> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut drops = Vec::new();
    for (name, class, sums) in elements(now) {
        let since = sums.since(then.get(name).copied().unwrap_or_default());
        lines.push(line(name, class, since));
        if let Some((function, _)) = name.split_once('/') {
            // What comes from one of its elements to another does not come to it, and what is counted inside
            // is not all that passes.
            let is_device = since.taken.is_some() || since.given.is_some();
            let bytes = since.bytes.filter(|_| is_device);
            functions.entry(function).or_default().add(Sums { packets: None, bytes, ..since });
        }
    }
    let (came_then, came_now) = (came(&before["all"]), came(now));
    for (function, sums) in &mut functions {
        let before = came_then.get(function).copied().unwrap_or(0);
        sums.packets = came_now.get(function).map(|now| now.saturating_sub(before));
    }
    let former = |name: &Value| {
        let all = before["all"]["elements"].as_array().into_iter().flatten();
        all.into_iter().find(|e| e["name"] == *name).unwrap_or(&Value::Null)
    };
    for element in now["elements"].as_array().into_iter().flatten() {
        let before = former(&element["name"]);
        for (reason, count) in element["dropped"].as_object().into_iter().flatten() {
            let since = number(count).saturating_sub(number(&before["dropped"][reason]));
            if since > 0 {
                drops.push(json!({
                    "name": element["name"], "reason": reason, "dropped": rate(since),
                }));
            }
        }
    }
    let functions = functions.into_iter().map(|(name, sums)| line(name, "", sums));
    let latencies = latency::since(&before["all"], now);
    json!({
        "seconds": seconds,
        "cores": cores.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "elements": lines,
        "drops": drops,
        "latencies": latencies,
    })
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// A rate for people; nothing for none.
fn rate(value: &Value) -> String {
    match real(value).round() as u64 {
        0 => String::new(),
        rate => grouped(rate),
    }
}

/// The same, where nothing says that nobody counts.
fn known(value: &Value) -> String {
    value.as_f64().map_or(String::new(), |rate| grouped(rate.round() as u64))
}

fn show(interval: &Value) -> String {
    let mut cores = Table::new([
        "core",
        "in/s",
        "out/s",
        "dropped/s",
        "busy",
        "ns/packet",
        "cycles/packet",
        "batch",
        "held",
        "flows",
    ]);
    for core in interval["cores"].as_array().into_iter().flatten() {
        let name = match core["cpu"].as_u64() {
            Some(cpu) => format!("{cpu}"),
            None => format!("worker {}", number(&core["worker"])),
        };
        let some = |value: &Value, places: usize| {
            value.as_f64().map_or(String::new(), |value| format!("{value:.places$}"))
        };
        cores.row([
            name,
            grouped(real(&core["in"]).round() as u64),
            grouped(real(&core["out"]).round() as u64),
            rate(&core["dropped"]),
            format!("{:.0}%", real(&core["busy"]) * 100.0),
            some(&core["ns_per_packet"], 0),
            some(&core["cycles_per_packet"], 0),
            some(&core["packets_per_round"], 1),
            rate(&core["held"]),
            rate(&core["flows"]),
        ]);
    }
    let mut text = cores.render();
    for (title, key) in [("function", "functions"), ("element", "elements")] {
        let mut table = Table::new([
            title,
            "class",
            "packets/s",
            "in/s",
            "out/s",
            "Mbit/s",
            "dropped/s",
            "held",
            "flows",
        ]);
        for line in interval[key].as_array().into_iter().flatten() {
            let counts = ["packets", "in", "out", "bits", "dropped", "held", "flows"];
            if counts.iter().all(|key| rate(&line[key]).is_empty()) {
                continue;
            }
            let name = |key: &str| line[key].as_str().unwrap_or("").to_string();
            let mbit = line["bits"].as_f64().map(|bits| format!("{:.2}", bits / 1e6));
            table.row([
                name("name"),
                name("class"),
                known(&line["packets"]),
                known(&line["in"]),
                known(&line["out"]),
                mbit.unwrap_or_default(),
                rate(&line["dropped"]),
                rate(&line["held"]),
                rate(&line["flows"]),
            ]);
        }
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.render());
        }
    }
    let mut drops = Table::new(["dropped at", "reason", "packets/s"]);
    for line in interval["drops"].as_array().into_iter().flatten() {
        let name = |key: &str| line[key].as_str().unwrap_or("").to_string();
        drops.row([name("name"), name("reason"), rate(&line["dropped"])]);
    }
    let latencies = latency::table(interval["latencies"].as_array().into_iter().flatten());
    for table in [drops, latencies].iter().filter(|table| !table.is_empty()) {
        text.push('\n');
        text.push_str(&table.render());
    }
    text
}

/// Runs the command.
pub(crate) fn main(top: &Top) -> Result<ExitCode, Failure> {
    if !top.interval.is_finite() || !(0.01..=3600.0).contains(&top.interval) {
        return Err("--interval takes seconds from 0.01 to 3600".to_string().into());
    }
    let pause = Duration::from_secs_f64(top.interval);
    let interrupted = interrupt_flag();
    let mut client = Client::connect(top.socket.as_deref())?;
    let request = json!({ "do": "counters" });
    let redraws = !top.once && !top.json && std::io::stdout().is_terminal();
    let (mut before, mut then) = (client.ask(&request)?, Instant::now());
    loop {
        while then.elapsed() < pause {
            // Short pieces, so that a signal is seen.
            let left = pause.saturating_sub(then.elapsed());
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
            if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let (after, now) = (client.ask(&request)?, Instant::now());
        let shown = interval(&before, &after, now.duration_since(then).as_secs_f64());
        let text = match (top.json, redraws) {
            (true, _) => format!("{shown}\n"),
            // Home, the text with each line's rest cleared, and the rest of the screen cleared.
            (false, true) => {
                let (columns, rows) = size().unwrap_or((80, 24));
                let text = fit(&for_terminal(&show(&shown)), columns, rows);
                format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
            }
            (false, false) => for_output(&format!("{}\n", show(&shown))).into_owned(),
        };
        if !print_as_it_is(&text) || top.once {
            return Ok(ExitCode::SUCCESS);
        }
        (before, then) = (after, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_came_since() {
        let look = |taken: u64, dropped: u64, busy: u64| {
            let element = json!({
                "name": "f/in", "class": "FromDevice", "in": { "packets": taken, "bytes": taken * 100 },
                "packets": taken, "dropped": { "x": dropped }, "held": 3,
            });
            let script = json!({ "name": "f/s", "class": "Script" });
            let counter = json!({
                "name": "f/c", "class": "Counter", "counted": { "packets": taken, "bytes": taken * 100 },
            });
            let function = json!({ "name": "f", "packets": taken / 2 });
            let worker = json!({
                "worker": 0, "cpu": 2, "in": taken, "out": 0, "busy": busy, "rounds": taken / 10,
                "elements": [element],
            });
            json!({
                "workers": [worker],
                "all": { "elements": [element, script, counter], "functions": [function] },
            })
        };
        let got = interval(&look(100, 5, 1000), &look(300, 25, 401_000), 2.0);
        let core = &got["cores"][0];
        assert_eq!((real(&core["in"]), real(&core["dropped"])), (100.0, 10.0));
        assert_eq!(
            (real(&core["ns_per_packet"]), real(&core["packets_per_round"])),
            (2000.0, 10.0)
        );
        assert_eq!(real(&got["functions"][0]["bits"]), 80_000.0, "the device's");
        assert_eq!(real(&got["elements"][2]["bits"]), 80_000.0);
        assert_eq!(got["elements"][0]["packets"], 100.0);
        assert_eq!(got["functions"][0]["packets"], 50.0);
        // What nobody counts is not zero.
        assert!(got["elements"][0]["out"].is_null() && got["elements"][1]["packets"].is_null());
        assert_eq!(got["drops"][0]["reason"], "x");
        assert!(show(&got).contains("FromDevice"));
        // A counter that was reset, a worker that is new, and nonsense.
        assert_eq!(
            real(&interval(&look(300, 5, 9), &look(100, 5, 10), 1.0)["cores"][0]["in"]),
            0.0
        );
        show(&interval(&Value::Null, &look(1, 1, 1), 1.0));
        show(&interval(&json!([1]), &json!("x"), 1.0));
    }
}
