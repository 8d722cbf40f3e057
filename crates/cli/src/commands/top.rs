//! `catena top`: what an instance does now.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use engine::control::protocol::Counters;
use engine::control::rates::Rates;
use view::paint::{fit, shown as for_terminal};
use view::table::{Table, grouped};

use super::ctl::{connect, word};
use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::terminal::{for_output, print_as_it_is, size};

/// Watch a running chain: rates by core, network function and element
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Control socket of the instance
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Show one interval and exit
    #[arg(long)]
    once: bool,
    /// Print a line of JSON per interval
    #[arg(long)]
    pub(crate) json: bool,
}

/// A rate for people; nothing for none.
fn rate(rate: f64) -> String {
    match rate.round() as u64 {
        0 => String::new(),
        rate => grouped(rate),
    }
}

/// The same, where nothing says that nobody counts.
fn known(rate: Option<f64>) -> String {
    rate.map_or(String::new(), |rate| grouped(rate.round() as u64))
}

fn show(rates: &Rates) -> String {
    let mut cores = Table::new([
        "core",
        "in/s",
        "out/s",
        "dropped/s",
        "busy",
        "ns/packet",
        "cycles/packet",
        "batch",
        "waiting",
        "held",
        "flows",
    ]);
    for core in &rates.cores {
        let some = |value: Option<f64>, places: usize| {
            value.map_or(String::new(), |value| format!("{value:.places$}"))
        };
        cores.row([
            core.cpu.map_or_else(|| format!("worker {}", core.worker), |cpu| cpu.to_string()),
            grouped(core.taken.round() as u64),
            grouped(core.given.round() as u64),
            rate(core.dropped),
            format!("{:.0}%", core.busy * 100.0),
            some(core.ns_per_packet, 0),
            some(core.cycles_per_packet, 0),
            some(core.packets_per_round, 1),
            core.waiting.map_or(String::new(), grouped),
            rate(core.held as f64),
            rate(core.flows as f64),
        ]);
    }
    let mut text = cores.render();
    for (title, lines) in [("function", &rates.functions), ("element", &rates.elements)] {
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
        for line in lines {
            let rates = [line.packets, line.taken, line.given, line.bits, Some(line.dropped)];
            let did_nothing = rates.iter().flatten().all(|rate| rate.round() < 1.0);
            if did_nothing && line.held == 0 && line.flows == 0 {
                continue;
            }
            table.row([
                line.name.clone(),
                line.class.clone(),
                known(line.packets),
                known(line.taken),
                known(line.given),
                line.bits.map(|bits| format!("{:.2}", bits / 1e6)).unwrap_or_default(),
                rate(line.dropped),
                rate(line.held as f64),
                rate(line.flows as f64),
            ]);
        }
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.render());
        }
    }
    let mut drops = Table::new(["dropped at", "reason", "packets/s"]);
    for line in &rates.drops {
        drops.row([line.name.clone(), line.reason.clone(), rate(line.dropped)]);
    }
    let mut latencies =
        Table::new(["latency in µs", "of", "p50", "p90", "p99", "p99.9", "packets timed"]);
    for latency in &rates.latencies {
        let times = [latency.p50, latency.p90, latency.p99, latency.p999];
        let [p50, p90, p99, p999] = times.map(|time| format!("{:.2}", time as f64 / 1e3));
        let (name, packets) = (latency.name.clone(), grouped(latency.packets));
        latencies.row([name, word(&latency.of), p50, p90, p99, p999, packets]);
    }
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
    let mut client = connect(top.socket.as_deref())?;
    let redraws = !top.once && !top.json && std::io::stdout().is_terminal();
    let mut before = client.ask(Counters {})?;
    loop {
        let then = Instant::now();
        while then.elapsed() < pause {
            // Short pieces, so that a signal is seen.
            let left = pause.saturating_sub(then.elapsed());
            std::thread::park_timeout(left.min(Duration::from_millis(50)));
            if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let after = client.ask(Counters {})?;
        let rates = Rates::between(&before, &after);
        let text = match (top.json, redraws) {
            (true, _) => serde_json::to_string(&rates).map_err(|e| e.to_string())? + "\n",
            // Home, the text with each line's rest cleared, and the rest of the screen cleared.
            (false, true) => {
                let (columns, rows) = size().unwrap_or((80, 24));
                let text = fit(&for_terminal(&show(&rates)), columns, rows);
                format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
            }
            (false, false) => for_output(&format!("{}\n", show(&rates))).into_owned(),
        };
        if !print_as_it_is(&text) || top.once {
            return Ok(ExitCode::SUCCESS);
        }
        before = after;
    }
}
