//! Writes the page and the plots of the figures that `cargo xtask bench --gate --record` recorded: reads the history from
//! the standard input, and prints a JSON object of file names with their texts.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task of the project reads what it prints"
)]

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::ExitCode;

use bench::plot::{Lines, Look, Scale};
use bench::statistics::Spread;
use serde_json::{Map, Value};

/// Records in a table. Plots have all.
const SHOWN: usize = 20;

const HEAD: &str = "\
# History of speed

What packets cost in commits of Catena, from [history.jsonl](history.jsonl). Figures of one machine compare with each other,
those of two machines do not. This page and its plots are written by `cargo xtask docs`.

## Method

```sh root
cargo xtask bench --gate --record
```

measures by turns a release build of the commit and one of the commit before, seven rounds, with `catena bench --trial 0.01`
on one CPU in memory ([Measure a chain](../docs/howto-bench.md)). A record has what the commit's own build took. Cost is CPU
time of a packet at full load, copying it in and out of memory included. Each round finds a median of 21 repeats; given is the
median of the rounds with the least and the greatest, which hold the true median with 98 %. Between commits, the ratio that the
gate prints is more exact than these figures, because both builds are measured at the same time.

## Format

`history.jsonl` has a JSON object in each line. Lines are added at the end and never changed.

| field | what it is |
|---|---|
| `date` | when it was measured (UTC) |
| `commit` | the commit that was built, 12 digits |
| `chain` | the chain's file, and the generated traffic that it is offered, if it is |
| `machine` | `processor`, `cpus` that could be used, the `cpu` that was measured on, whether it `is_virtual`, the `kernel`'s release |
| `debug_build` | whether it was built without optimisation: `false` |
| `ns` | CPU time of a packet in nanoseconds: `median` of the rounds, and `interval`: least and greatest |
| `ndr` | non-drop rate in packets per second, median of the rounds |
| `rounds` | how many rounds |
| `seed` | seed of the chain's random choices |
";

/// A figure of a chain.
struct Record {
    date: String,
    commit: String,
    kernel: String,
    ns: Spread,
    ndr: f64,
    rounds: u64,
}

/// A chain on a machine.
struct Section {
    machine: String,
    chain: String,
    records: Vec<Record>,
}

fn main() -> ExitCode {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text).map_err(|why| why.to_string());
    match read.and_then(|_| files(&text)) {
        Ok(files) => {
            println!("{}", Value::Object(files));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The page and its plots by their names.
fn files(history: &str) -> Result<Map<String, Value>, String> {
    let mut sections = Vec::new();
    for (number, line) in history.lines().enumerate() {
        let value = serde_json::from_str(line).map_err(|why| why.to_string());
        value
            .and_then(|value| add(&value, &mut sections))
            .map_err(|why| format!("line {} of the history: {why}", number + 1))?;
    }
    // Machines in the order in which they first came, each with its chains.
    let mut machines: Vec<&str> = Vec::new();
    for section in &sections {
        if !machines.contains(&&*section.machine) {
            machines.push(&section.machine);
        }
    }
    let (mut page, mut files) = (HEAD.to_string(), Map::new());
    for machine in machines {
        let _ = writeln!(page, "\n## {machine}");
        for section in sections.iter().filter(|section| section.machine == machine) {
            section.write(&mut page, &mut files);
        }
    }
    files.insert("history.md".into(), page.into());
    Ok(files)
}

fn add(value: &Value, sections: &mut Vec<Section>) -> Result<(), String> {
    let missing = |path: &str| format!("no {path}");
    let text = |path: &str| -> Result<String, String> {
        Ok(value.pointer(path).and_then(Value::as_str).ok_or_else(|| missing(path))?.to_string())
    };
    let number =
        |path: &str| value.pointer(path).and_then(Value::as_f64).ok_or_else(|| missing(path));
    let kind = match value["machine"]["is_virtual"]
        .as_bool()
        .ok_or_else(|| missing("/machine/is_virtual"))?
    {
        true => ", virtual machine",
        false => "",
    };
    let cpus = number("/machine/cpus")?;
    let machine = format!("{}, {cpus} CPUs{kind}", text("/machine/processor")?);
    let chain = text("/chain")?;
    let record = Record {
        date: text("/date")?,
        commit: text("/commit")?,
        kernel: text("/machine/kernel")?,
        ns: Spread {
            median: number("/ns/median")?,
            least: number("/ns/interval/0")?,
            greatest: number("/ns/interval/1")?,
        },
        ndr: number("/ndr")?,
        rounds: number("/rounds")? as u64,
    };
    match sections.iter_mut().find(|s| s.machine == machine && s.chain == chain) {
        Some(section) => section.records.push(record),
        None => sections.push(Section { machine, chain, records: vec![record] }),
    }
    Ok(())
}

impl Section {
    fn write(&self, page: &mut String, files: &mut Map<String, Value>) {
        let Self { machine, chain, records } = self;
        let _ = writeln!(page, "\n### {chain}\n");
        if let Some(plot) = self.plot() {
            let name = format!("history-{}.svg", self.slug());
            let _ = writeln!(page, "![{chain}: ns per packet on {machine}]({name})\n");
            files.insert(name, plot.into());
        }
        page.push_str("| | date | commit | ns per packet (least–greatest) | NDR, Mpps | rounds | Linux |\n|---|---|---|---|---|---|---|\n");
        for (index, record) in records.iter().enumerate().rev().take(SHOWN) {
            let Record { date, commit, kernel, ns, ndr, rounds } = record;
            let (number, mpps) = (index + 1, ndr / 1e6);
            let _ = writeln!(
                page,
                "| {number} | {date} | `{commit}` | {ns} | {mpps:.3} | {rounds} | {kernel} |"
            );
        }
    }

    /// Costs over records; nothing of a single one.
    fn plot(&self) -> Option<String> {
        let points: Vec<Spread> = self.records.iter().map(|record| record.ns).collect();
        let xs: Vec<u32> = (1..).take(points.len()).collect();
        let greatest = points.iter().map(|ns| ns.greatest);
        let lines = Lines {
            title: format!("{} on {}", self.chain, self.machine),
            across: "record".into(),
            up: Scale::linear("ns per packet", greatest),
            series: vec![(
                "median, least and greatest of the rounds".into(),
                Look::Reference(0),
                points,
            )],
            xs,
        };
        (lines.xs.len() > 1).then(|| lines.draw())
    }

    /// Its name as a part of a file's name.
    fn slug(&self) -> String {
        let chain = self.chain.trim_start_matches("examples/").trim_end_matches(".click");
        let name = format!("{chain} {}", self.machine).to_lowercase();
        let words =
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(commit: &str, processor: &str, ns: f64) -> String {
        let record = serde_json::json!({
            "date": "2025-01-02", "commit": commit, "chain": "examples/a.click", "ndr": 2_500_000, "rounds": 7, "seed": 0,
            "machine": { "processor": processor, "cpus": 2, "cpu": 1, "is_virtual": true, "kernel": "6.1" },
            "ns": { "median": ns, "interval": [ns - 1.0, ns + 1.0] }, "debug_build": false,
        });
        format!("{record}\n")
    }

    #[test]
    fn chains_on_machines_have_tables_and_plots() {
        let history =
            line("one", "P (R)", 30.0) + &line("other", "Q", 99.0) + &line("two", "P (R)", 31.0);
        let files = files(&history).unwrap();
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(names, ["history-a-p-r-2-cpus-virtual-machine.svg", "history.md"]);
        let page = files["history.md"].as_str().unwrap();
        let new = "| 2 | 2025-01-02 | `two` | 31.0 (30.0–32.0) | 2.500 | 7 | 6.1 |\n| 1 | 2025-01-02 | `one` |";
        assert!(page.contains(new), "{page}");
        assert!(
            page.contains("## Q, 2 CPUs, virtual machine\n\n### examples/a.click\n\n| |"),
            "{page}"
        );
        assert!(page.contains(&format!("]({})", names[0])), "{page}");
        assert!(files[names[0]].as_str().unwrap().contains("a.click on P (R)"));
    }

    #[test]
    fn a_line_that_lacks_something_is_named() {
        let wrong = line("one", "P", 1.0) + "{}\n";
        assert_eq!(files(&wrong).unwrap_err(), "line 2 of the history: no /machine/is_virtual");
        assert!(files("{").unwrap_err().starts_with("line 1 of the history: "));
    }
}
