//! `catena scale`: policies that scale a run, what one decided, and what another would have.

mod of_run;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand};
use engine::control::protocol;
use engine::scaling::{self, Decision};
use ir::nearest;
use scale::{ByLoad, Guarded, Policy as _};
use serde_json::json;
use view::paint::count;
use view::table::Table;

use super::ctl::connect;
use super::sim::time;
use crate::constants;
use crate::failure::Failure;
use crate::terminal::print;

pub(crate) use of_run::ScaleOptions;

/// Policies that scale a run: what one decided and why, and what another would have decided
#[derive(Args, Debug)]
pub(crate) struct Scale {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Why(Why),
    Replay(Replay),
    /// List the policies
    Policies,
}

/// Show what the policy of a run decided: what it saw, why, what it ordered and what came of it
#[derive(Args, Debug)]
struct Why {
    /// Control socket of the instance; default: the usual place
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Decisions of so much time before now, such as 30s, 5m or 2h; default: the last 1,000
    #[arg(long, value_name = "TIME", value_parser = ago)]
    since: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show what a policy orders on what another one saw, and wrote with --scale-log
///
/// What would have come of its orders is not known: from the first one that differs, it might have seen something else.
/// 'catena sim' runs policies on a trace.
#[derive(Args, Debug)]
struct Replay {
    /// What 'catena run --scale-log' wrote
    file: PathBuf,
    /// The policy
    #[arg(long, value_name = "POLICY")]
    policy: Policy,
    /// Set a constant, such as rss_plus_plus.target=0.7
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A time in nanoseconds, also in minutes and hours.
fn ago(text: &str) -> Result<u64, String> {
    for (unit, seconds) in [('m', 60), ('h', 3600)] {
        if let Some(Ok(count)) = text.strip_suffix(unit).map(|number| number.trim().parse::<u32>())
        {
            return Ok(u64::from(count) * seconds * scale::S);
        }
    }
    time(text)
}

impl Scale {
    /// Whether it was asked for JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.command {
            Sub::Why(why) => why.json,
            Sub::Replay(replay) => replay.json,
            Sub::Policies => false,
        }
    }
}

/// A policy that the command line names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy(ByLoad);

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = ByLoad::ALL.map(|(_, name, _)| name);
        ByLoad::named(name).map(Self).ok_or_else(|| {
            let near = nearest(name, names);
            let near = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
            format!("the policies that scale a run are {}{near}", names.join(", "))
        })
    }
}

/// Runs the command.
pub(crate) fn main(args: &Scale) -> Result<ExitCode, Failure> {
    match &args.command {
        Sub::Why(of) => why(of)?,
        Sub::Replay(of) => replay(of)?,
        Sub::Policies => {
            let mut table = Table::new(["policy", "what it is"]);
            for (_, name, what) in ByLoad::ALL {
                table.row([name.into(), what.into()]);
            }
            print(&table.render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn why(of: &Why) -> Result<(), Failure> {
    let since = of.since.map(|since| since as f64 / 1e9);
    let answer = connect(of.socket.as_deref())?.ask(protocol::Scaling { since })?;
    if of.json {
        let json = serde_json::to_string_pretty(&answer).map_err(|why| why.to_string())?;
        print(&format!("{json}\n"));
        return Ok(());
    }
    let protocol::ScalingAnswer { policy, seconds, workers, most, decisions } = answer;
    let mut text = format!("  {policy}: {workers} of {most} workers\n");
    if decisions.is_empty() {
        text += "  nothing was decided\n";
    }
    for of in decisions {
        let ago = seconds - of.seconds;
        text += &format!(
            "\n  {ago:.1} s ago: load {:.2} on {}\n",
            of.load,
            count(of.workers, "worker")
        );
        of.why.iter().for_each(|why| text += &format!("    {why}\n"));
        of.orders.iter().for_each(|order| text += &format!("    -> {order}\n"));
        if of.groups > 0 {
            let (groups, waited) = (count(of.groups, "group"), of.waited_ms);
            text += &format!("    {groups} moved; packets waited {waited:.1} ms at most\n");
        }
        of.failed.iter().for_each(|why| text += &format!("    not done: {why}\n"));
    }
    print(&text);
    Ok(())
}

/// Bytes of a line of a log at the most.
const LONGEST: u64 = 1 << 24;

/// Reads a log line by line.
fn decisions(path: &Path, mut take: impl FnMut(Decision)) -> Result<usize, String> {
    let name = path.display();
    let mut file = BufReader::new(File::open(path).map_err(|e| format!("{name}: {e}"))?);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = file.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(|e| format!("{name}: {e}"))? == 0 {
            return Ok(number);
        }
        number += 1;
        let decision = serde_json::from_slice(&line).map_err(|why| {
            format!("{name}:{number}: what was seen and decided is not there: {why}")
        })?;
        take(decision);
    }
}

fn replay(of: &Replay) -> Result<(), Failure> {
    let settings =
        constants::policies(scaling::settings(), "--set", &of.set).map_err(Failure::Usage)?;
    let mut policy = Guarded::new(of.policy.0.scaler(&settings), &settings.guards);
    let (mut rows, mut same) = (Vec::new(), 0usize);
    // It is asked as often as it would be; looks come a little sooner or later.
    let (mut next, early) = (0, policy.period() / 10);
    let looks = decisions(&of.file, |then| {
        let at = then.seen.at;
        let actions = match at + early >= next {
            true => {
                next = at + policy.period();
                policy.decide(at, &then.seen)
            }
            false => Vec::new(),
        };
        let why: Vec<String> = policy.notes().into_iter().map(|note| note.why).collect();
        if actions == then.actions {
            same += 1;
        }
        if !(actions.is_empty() && then.actions.is_empty()) {
            rows.push((then, actions, why));
        }
    })?;
    if looks == 0 {
        return Err(format!("{}: it is empty", of.file.display()).into());
    }
    if of.json {
        let row = |(then, actions, why): &(Decision, Vec<scale::Action>, Vec<String>)| {
            json!({
                "seconds": then.seen.at as f64 / 1e9,
                "ordered": scale::told(&then.actions),
                "orders": scale::told(actions),
                "why": why,
            })
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        print(&format!("{:#}\n", json!({ "looks": looks, "same": same, "differ_or_act": rows })));
        return Ok(());
    }
    let mut text = format!("  of {looks} looks, {same} were decided alike\n");
    for (then, actions, why) in &rows {
        text += &format!("\n  at {:.1} s\n", then.seen.at as f64 / 1e9);
        let list = |text: &mut String, what: &str, orders: Vec<String>| {
            let all = if orders.is_empty() { "nothing".into() } else { orders.join(", ") };
            *text += &format!("    {what}: {all}\n");
        };
        list(&mut text, "then", scale::told(&then.actions));
        list(&mut text, of.policy.0.name(), scale::told(actions));
        why.iter().for_each(|why| text += &format!("    {why}\n"));
    }
    print(&text);
    Ok(())
}
