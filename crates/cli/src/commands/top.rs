//! `catena top`: what an instance does now.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use engine::control::Client;
use engine::control::protocol::{Counters, CountersAnswer};
use engine::control::rates::{CoreRates, Rates};
use view::paint::{fit, shown as for_terminal};
use view::table::{Table, grouped};

use super::ctl::{connect, word};
use super::deploy::{Deployed, deployed};
use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::terminal::{for_output, print_as_it_is, size};

/// Watch a running chain: rates by core, network function and element; or all servers of a deployed plan
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Control socket of the instance
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Watch the rack on which this plan was deployed: each chain beside its plan, and each server's cores
    #[arg(long, value_name = "PLAN", conflicts_with = "socket")]
    deployed: Option<String>,
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

/// What is shown of a core.
const CORES: [&str; 11] = [
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
];

fn of_core(core: &CoreRates) -> [String; 11] {
    let some = |value: Option<f64>, places: usize| {
        value.map_or(String::new(), |value| format!("{value:.places$}"))
    };
    [
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
    ]
}

fn show(rates: &Rates) -> String {
    let mut cores = Table::new(CORES);
    for core in &rates.cores {
        cores.row(of_core(core));
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
    let redraws = !top.once && !top.json && std::io::stdout().is_terminal();
    let mut watched = Watched::open(top)?;
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
        let Some(text) = watched.next(top.json)? else { continue };
        let text = match (top.json, redraws) {
            (true, _) => text,
            // Home, the text with each line's rest cleared, and the rest of the screen cleared.
            (false, true) => {
                let (columns, rows) = size().unwrap_or((80, 24));
                let text = fit(&for_terminal(&text), columns, rows);
                format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
            }
            (false, false) => for_output(&format!("{text}\n")).into_owned(),
        };
        if !print_as_it_is(&text) || top.once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// What is watched.
enum Watched {
    /// An instance, and what it counted last.
    Instance(Client, CountersAnswer),
    /// A rack.
    Rack(Deployed),
}

impl Watched {
    fn open(top: &Top) -> Result<Self, Failure> {
        if let Some(plan) = &top.deployed {
            return Ok(Self::Rack(deployed(plan)?));
        }
        let mut client = connect(top.socket.as_deref())?;
        let before = client.ask(Counters {})?;
        Ok(Self::Instance(client, before))
    }

    /// What happened since the last time; none if that is not known.
    fn next(&mut self, as_json: bool) -> Result<Option<String>, Failure> {
        match self {
            Self::Instance(client, before) => {
                let after = client.ask(Counters {})?;
                let rates = Rates::between(before, &after);
                *before = after;
                Ok(Some(match as_json {
                    true => serde_json::to_string(&rates).map_err(|e| e.to_string())? + "\n",
                    false => show(&rates),
                }))
            }
            Self::Rack(rack) => rack.next(as_json, |servers| {
                let mut table = Table::titled(&[&["server"], &CORES[..]].concat());
                for (server, cores) in servers {
                    for core in *cores {
                        let cells = [server.to_string()].into_iter().chain(of_core(core));
                        table.cells(cells.collect());
                    }
                }
                table.render()
            }),
        }
    }
}
