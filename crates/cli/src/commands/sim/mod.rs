//! `catena sim`: a rack is simulated whose cores are scaled.

mod asked;
mod fit;
mod shown;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, Subcommand};
use ir::quantity::{self, Unit};
use sim::{Outlook, Report, Scheme, Setup};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::terminal::print;
use asked::{SimRequest, Source};

/// Simulate a rack whose cores are scaled
///
/// Packets of a trace go through a switch, links, receive queues and cores; a policy decides how many cores there are and
/// which flows they have. The same input and seed give the same report, to the byte.
#[derive(Args, Debug)]
pub(crate) struct Sim {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Run(Run),
    Compare(Compare),
    Fit(fit::Fit),
    Tables(tables::Tables),
}

impl Sim {
    /// Whether it was asked for JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.command {
            Sub::Run(run) => run.common.json,
            Sub::Compare(compare) => compare.common.json,
            Sub::Fit(fit) => fit.json,
            Sub::Tables(_) => false,
        }
    }
}

/// What both commands take.
#[derive(Args, Debug)]
struct Common {
    /// The rack: servers with cores and clocks, as `catena place` reads it
    topology: String,
    /// Traffic: a capture, gen:KEY=VALUE,… with a rate, or generated with superbursts: backbone or as
    #[arg(long, value_name = "FILE|gen:…|backbone|as")]
    trace: String,
    /// How packets of gen: arrive: constant, poisson, trains=N or bursts=ON:OFF
    #[arg(long, value_name = "PROCESS", default_value = "constant")]
    arrivals: bench::arrivals::Arrivals,
    /// End after so much time of the trace
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<u64>,
    /// Play a capture so many times as fast as it was recorded, such as 20 or 0.5
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    speed: Option<u64>,
    /// Leave so much time at the start out of the figures
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = time)]
    warmup: u64,
    /// The chain: chain1 or chain2, whose costs are fitted to Ironside's tables, or a cost profile
    #[arg(long, value_name = "NAME|COSTS.json", default_value = "chain1")]
    chain: String,
    /// Cores at the start, instead of those that the trace takes on average
    #[arg(long, value_name = "N")]
    cores: Option<usize>,
    /// Set a constant, such as metron.over=0.8, rack.ring=1024, chain.touch=0 or traffic.whales=0.01
    ///
    /// --set list shows all of them with their values.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of generated traffic
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the report into a folder: JSON, text and plots
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Simulate one policy
#[derive(Args, Debug)]
struct Run {
    #[command(flatten)]
    common: Common,
    /// What decides; --policy list shows all
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// What is sought: p99=TIME
    #[arg(long, value_name = "p99=TIME", value_parser = slo)]
    slo: u64,
}

/// Simulate several policies and SLOs, and compare them
#[derive(Args, Debug)]
struct Compare {
    #[command(flatten)]
    common: Common,
    /// What decides, with commas between; `oracle` is the fewest cores that suffice for what comes in each half of an SLO
    #[arg(long, value_name = "POLICIES", value_delimiter = ',')]
    policies: Vec<String>,
    /// What is sought: a p99, several with commas between, or FROM..TO for five of them
    #[arg(long, value_name = "TIMES", value_parser = slos)]
    slo: Slos,
}

/// SLOs in nanoseconds.
#[derive(Clone, Debug)]
struct Slos(Vec<u64>);

/// A time in nanoseconds.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let nanoseconds = (quantity::parse(text, Unit::Time)? * 1e9).round();
    match nanoseconds <= 1e15 {
        true => Ok(nanoseconds as u64),
        false => Err(format!("'{text}' is more than eleven days")),
    }
}

/// Thousandths of a speed.
fn speed(text: &str) -> Result<u64, String> {
    let times: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    match (0.001..=1e9).contains(&times) {
        true => Ok((times * 1000.0).round() as u64),
        false => Err("a speed is 0.001 to 1,000,000,000 times that of the capture".into()),
    }
}

/// Nanoseconds of an SLO.
pub(crate) fn slo(text: &str) -> Result<u64, String> {
    let of = time(text.strip_prefix("p99=").unwrap_or(text))?;
    if of == 0 { Err("an SLO is above 0".into()) } else { Ok(of) }
}

fn slos(text: &str) -> Result<Slos, String> {
    let Some((from, to)) = text.split_once("..") else {
        return text.split(',').map(slo).collect::<Result<_, _>>().map(Slos);
    };
    let (from, to) = (slo(from)?, slo(to)?);
    match from < to {
        true => Ok(Slos((0..5).map(|at| from + (to - from) * at / 4).collect())),
        false => Err(format!("'{text}': the first is to be less than the last")),
    }
}

/// The policies, for who asks.
fn policies() -> String {
    let mut table = view::table::Table::new(["policy", "what it is"]);
    for (name, what) in Scheme::ALL {
        table.row([name.into(), what.into()]);
    }
    table.row([
        "oracle".into(),
        "for comparison: the fewest cores for what comes in each half of an SLO".into(),
    ]);
    table.render()
}

/// Runs the command.
pub(crate) fn main(args: &Sim) -> Result<ExitCode, Failure> {
    let (common, policies_of, slos) = match &args.command {
        Sub::Run(run) => (&run.common, vec![run.policy.clone()], vec![run.slo]),
        Sub::Compare(compare) => (&compare.common, compare.policies.clone(), compare.slo.0.clone()),
        Sub::Fit(fit) => return fit.main(),
        Sub::Tables(tables) => return tables.main(),
    };
    if policies_of.iter().any(|name| name == "list") {
        print(&policies());
        return Ok(ExitCode::SUCCESS);
    }
    let is_oracle = |name: &String| name == "oracle";
    let is_run = matches!(args.command, Sub::Run(_));
    if policies_of.is_empty() || (is_run && policies_of.iter().any(is_oracle)) {
        return Err(Failure::Usage(
            "name a policy; --policy list shows them, `oracle` is for comparing".into(),
        ));
    }
    let schemes: Vec<Scheme> = policies_of
        .iter()
        .filter(|name| !is_oracle(name))
        .map(|name| Scheme::named(name))
        .collect::<Result<_, _>>()
        .map_err(Failure::Usage)?;
    let asked = SimRequest::read(common)?;
    if common.set.iter().any(|of| of == "list") {
        print(&asked.listed());
        return Ok(ExitCode::SUCCESS);
    }
    let mut outlooks = Vec::new();
    for slo in &slos {
        outlooks.push(asked.outlook(common, *slo)?);
    }
    let mut setups: Vec<Setup> = Vec::new();
    for (slo, outlook) in slos.iter().zip(&outlooks) {
        setups.extend(schemes.iter().map(|scheme| asked.setup(common, scheme, (*slo, *outlook))));
    }
    let reports = run_all(&setups, &asked.source, common)?;
    let oracle = policies_of.iter().any(is_oracle);
    let oracles: Vec<(u64, Outlook)> =
        slos.iter().copied().zip(outlooks).filter(|_| oracle).collect();
    let shown = shown::Shown {
        asked: &asked,
        common,
        setups: &setups,
        reports: &reports,
        oracles: &oracles,
    };
    match common.json {
        true => print(&format!("{:#}\n", shown.json())),
        false => print(&shown.text(is_run)),
    }
    if let Some(folder) = &common.report {
        shown.write(folder, is_run)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs them, as many at a time as there are CPUs. Each has a trace of its own.
fn run_all(setups: &[Setup], source: &Source, common: &Common) -> Result<Vec<Report>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Report, String>)>> = Mutex::new(Vec::new());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(setups.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(setup) = setups.get(number) else { break };
                    let report = source
                        .open(common)
                        .and_then(|mut trace| setup.run(&mut *trace))
                        .map_err(|why| format!("{}: {why}", setup.scheme.name));
                    if let Ok(mut done) = done.lock() {
                        done.push((number, report));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| "a run broke off".to_string())?;
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, report)| report).collect::<Result<_, _>>()?)
}
