//! `catena sim fit`: what superbursts do to a trace's latency, beside what is published, and the search for traffic that has as much.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use sim::{Capture, Fit as Search, SERVICES, Superbursts, Traffic, Until, published};
use view::table::Table;

use super::time;
use crate::constants;
use crate::failure::Failure;
use crate::terminal::print;

/// Show what superbursts do to a trace's latency
///
/// Three chains take 5, 10 and 20 us for a packet. Whales: each flow has a core of its own, so who waits, waits for its own flow.
/// Minnows: flows are hashed to cores and the packets of each come evenly; there are as few cores as have a median below ten times
/// what a packet takes. Generated traffic stands beside what Ironside prints of its traces (tables 4.1 and 4.2). With --tries, what it
/// does not print is searched for.
#[derive(Args, Debug)]
pub(super) struct Fit {
    /// A capture, or generated traffic with superbursts: backbone or as
    #[arg(value_name = "FILE|backbone|as")]
    trace: String,
    /// Look at so much of the trace
    #[arg(long, value_name = "TIME", default_value = "2 s", value_parser = time)]
    time: u64,
    /// Search for better traffic so many times
    #[arg(long, value_name = "N", default_value_t = 0)]
    tries: u32,
    /// Set what traffic is begun with, such as traffic.whales=0.01; `--set list` shows all
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of the traffic and of the search
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Factor within which the fit is to be (part of the method: 25 %).
const NEAR: f64 = 1.25;

impl Fit {
    fn traffic(&self) -> Result<Option<Traffic>, Failure> {
        let of = match self.trace.as_str() {
            "backbone" => Traffic::backbone(),
            "as" => Traffic::autonomous_system(),
            _ if self.tries > 0 || !self.set.is_empty() => {
                let why = "--tries and --set are for generated traffic: backbone or as";
                return Err(Failure::Usage(why.into()));
            }
            _ => return Ok(None),
        };
        let mut value = json!({"traffic": Traffic { seed: self.seed, ..of }});
        let pairs: Vec<String> = self.set.iter().filter(|of| *of != "list").cloned().collect();
        constants::set_all(&mut value, "--set", &pairs).map_err(Failure::Usage)?;
        let traffic: Traffic = serde_json::from_value(value["traffic"].take())
            .map_err(|why| Failure::Usage(format!("--set: {why}")))?;
        traffic.check().map_err(|why| Failure::Usage(format!("--set traffic: {why}")))?;
        Ok(Some(traffic))
    }

    /// Runs the command.
    pub(super) fn main(&self) -> Result<ExitCode, Failure> {
        let named = |why: String| Failure::from(format!("{}: {why}", self.trace));
        let Some(traffic) = self.traffic()? else {
            let trace = Capture::open(Path::new(&self.trace))?;
            let found = Superbursts::of(&mut Until { trace, end: self.time }).map_err(named)?;
            match self.json {
                true => print(&format!("{:#}\n", json!({"trace": self.trace, "found": found}))),
                false => print(&self.text(&found, None)),
            }
            return Ok(ExitCode::SUCCESS);
        };
        if self.set.iter().any(|of| of == "list") {
            print(&listed(&traffic));
            return Ok(ExitCode::SUCCESS);
        }
        let published = published(&self.trace).unwrap_or_default();
        let mut search = Search::new(&traffic, &published, self.time).map_err(named)?;
        for _ in 0..self.tries {
            search.step().map_err(named)?;
        }
        let Search { traffic, found, .. } = &search;
        let off = found.off(&published);
        if self.json {
            let of = json!({"trace": self.trace, "traffic": traffic, "found": found, "published": published, "off": off});
            print(&format!("{of:#}\n"));
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = self.text(found, Some(&published));
        let how = if off <= NEAR { "within" } else { "beyond" };
        text.push_str(&format!("\nthe farthest is off by a factor of {off:.2}: {how} 25 %\n"));
        if self.tries > 0 {
            text.push_str(&format!(
                "\nthe traffic after {} tries:\n\n{}",
                self.tries,
                listed(traffic)
            ));
        }
        print(&text);
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, found: &Superbursts, published: Option<&[f64; 6]>) -> String {
        let seconds = found.time.max(1) as f64 / 1e9;
        let mut text = format!(
            "{}: {} packets of {} flows in {seconds:.3} s, {:.0} packets/s\n\n",
            self.trace,
            found.packets,
            found.flows,
            found.packets as f64 / seconds
        );
        let mut head = vec!["effect", "service us", "cores", "p99 us"];
        head.extend(published.map(|_| ["published us", "ours/theirs"]).into_iter().flatten());
        let mut table = Table::titled(&head);
        for (at, p99) in found.all().into_iter().enumerate() {
            let chain = at % 3;
            let (effect, cores) = match at / 3 {
                0 => ("whales", "one a flow".into()),
                _ => ("minnows", found.cores[chain].to_string()),
            };
            let mut row = vec![
                effect.into(),
                (SERVICES[chain] / 1000).to_string(),
                cores,
                format!("{p99:.1}"),
            ];
            if let Some(of) = published {
                row.extend([format!("{:.1}", of[at]), format!("{:.2}", p99 / of[at])]);
            }
            table.cells(row);
        }
        text.push_str(&table.render());
        text
    }
}

/// Constants of traffic, a line each.
fn listed(traffic: &Traffic) -> String {
    let value: Value = json!({"traffic": traffic});
    let mut text = String::new();
    constants::list(&value, "", &mut text);
    text
}
