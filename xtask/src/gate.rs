//! The gate against regressions: `catena` of this working tree beside that of an earlier commit, measured by turns.
//!
//! Both builds measure the same chains, of this working tree, on the same CPU. A round gives the ratio of their two
//! costs, so what changes on the machine from round to round affects both.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Result;
use crate::command::{self, at_root, cargo, root};

/// What is measured: a chain, and the traffic that it is offered if it does not read a capture.
struct Case {
    chain: &'static str,
    traffic: &'static [&'static str],
}

impl Case {
    const fn reading_captures(chain: &'static str) -> Self {
        Self { chain, traffic: &[] }
    }

    /// What tells it from others, in tables and in the history.
    fn name(&self) -> String {
        let traffic = self.traffic.iter().filter_map(|word| word.strip_prefix("in="));
        std::iter::once(self.chain).chain(traffic).collect::<Vec<_>>().join(" ")
    }
}

/// A router; an access list, router and NAPT; a NAPT, firewall and load balancer; ten routers in a row; and with generated
/// traffic a list of rules of which each decides packets, and a NAPT and balancer with many flows of unequal shares.
const CASES: [Case; 6] = [
    Case::reading_captures("examples/ip-router.click"),
    Case::reading_captures("examples/isp-edge.click"),
    Case::reading_captures("examples/snf-motivating.click"),
    Case::reading_captures("examples/ten-routers.click"),
    Case {
        chain: "perf/gate/firewall.click",
        traffic: &["--in", "in=gen:rules=target/gate/isp-edge.rules,flows=10000"],
    },
    Case {
        chain: "perf/gate/napt.click",
        traffic: &["--in", "in=gen:flows=10000,proto=udp+tcp,size=imix,zipf=1"],
    },
];
/// The list of rules of a case, and the same as plain text.
const LIST: &str = "examples/isp-edge.rules.gz";
const PLAIN_LIST: &str = "target/gate/isp-edge.rules";
/// Rounds in which both builds measure each chain.
const ROUNDS: usize = 7;
/// Seconds of each trial of a measurement.
const TRIAL: &str = "0.01";
/// Seed of the chains' random choices.
const SEED: u64 = 0;
/// A chain may become slower by this share.
const TOLERANCE: f64 = 0.05;
/// A share of the CPU's time that went elsewhere, from which on figures are worth little.
const DISTURBED: f64 = 0.05;
/// What builds and measurements are made of.
const SOURCES: [&str; 6] =
    ["crates", "examples", "perf/gate", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];
/// Where figures are recorded.
pub(crate) const HISTORY: &str = "perf/history.jsonl";

/// Fails if a chain is slower than it was at a revision.
pub(crate) fn run(args: &[&str]) -> Result {
    let (revision, records) = options(args)?;
    let changes = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    let is_changed = !changes.is_empty();
    if records && is_changed {
        return Err(
            format!("--record: a record is of a commit; commit these first:\n{changes}").into()
        );
    }
    let revision = revision.unwrap_or(if is_changed { "HEAD" } else { "HEAD~1" });
    let before = Build::of(revision)?;
    let after = Build::of_this_tree(is_changed)?;
    // Earlier builds draw packets only for a list that is not compressed.
    let rules = command::read(at_root("gzip").args(["--decompress", "--stdout", LIST]))?;
    fs::write(root().join(PLAIN_LIST), rules)?;
    let cpu = last_cpu()?;
    println!("before: {}\nafter:  {}\non CPU {cpu}", before.name, after.name);

    let mut pairs = CASES.map(|_| Vec::new());
    for round in 1..=ROUNDS {
        println!("round {round} of {ROUNDS}");
        for (case, pairs) in CASES.iter().zip(&mut pairs) {
            // The build that goes first changes from round to round.
            pairs.push(if round % 2 == 1 {
                let first = before.measure(case, cpu)?;
                (first, after.measure(case, cpu)?)
            } else {
                let first = after.measure(case, cpu)?;
                (before.measure(case, cpu)?, first)
            });
        }
    }
    let compared: Vec<_> = (CASES.iter().zip(&pairs))
        .flat_map(|(case, pairs)| {
            let name = case.name();
            // Where elements are faster, programs do not show in what packets cost.
            let programs = Comparison::of_programs(pairs);
            let programs = programs.map(|found| (format!("{name}: programs"), found));
            [(name, Comparison::of(pairs))].into_iter().chain(programs)
        })
        .collect();
    print!("\n{}", table(&compared));
    let disturbed = pairs.iter().flatten().flat_map(|(a, b)| [a.disturbed, b.disturbed]);
    let disturbed = disturbed.fold(0.0, f64::max);
    if disturbed > DISTURBED {
        let share = 100.0 * disturbed;
        println!(
            "! up to {share:.0} % of the CPU's time went elsewhere: measure again when it is quiet"
        );
    }
    if records {
        record(&pairs)?;
    }
    let slower: Vec<&str> =
        compared.iter().filter(|(_, c)| c.verdict() == "SLOWER").map(|(name, _)| &**name).collect();
    match slower.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "slower than {} by more than {:.0} %: {}",
            before.name,
            100.0 * TOLERANCE,
            slower.join(", ")
        )
        .into()),
    }
}

/// The revision to compare with, and whether to record.
fn options<'a>(args: &[&'a str]) -> Result<(Option<&'a str>, bool)> {
    let (mut revision, mut records) = (None, false);
    for &arg in args {
        match arg {
            "--record" => records = true,
            _ if arg.starts_with('-') || revision.is_some() => {
                let usage = "cargo xtask bench --gate [REVISION] [--record]";
                return Err(format!("cannot make sense of `{arg}`; usage: {usage}").into());
            }
            _ => revision = Some(arg),
        }
    }
    Ok((revision, records))
}

fn git(args: &[&str]) -> Result<String> {
    Ok(command::read(at_root("git").args(args))?.trim_end().to_owned())
}

/// The last CPU that this process may use, which `catena bench` would choose, too.
fn last_cpu() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let last = allowed.and_then(|list| list.rsplit([',', '-']).next());
    Ok(last.ok_or("/proc/self/status does not list CPUs")?.trim().parse()?)
}

/// A `catena` to measure.
struct Build {
    /// What it was built from.
    name: String,
    program: PathBuf,
}

impl Build {
    fn of_this_tree(is_changed: bool) -> Result<Self> {
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
        let name = if is_changed { format!("{commit} with changes") } else { commit };
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), |t| root().join(t));
        Self::make(name, root(), &target)
    }

    /// Of a revision, in a working tree of its own, which is kept: the next build takes less time.
    fn of(revision: &str) -> Result<Self> {
        let wanted = format!("{revision}^{{commit}}");
        let commit =
            git(&["rev-parse", "--verify", "--quiet", "--short=12", &wanted]).map_err(|_| {
                format!("there is no commit `{revision}` here; name another: --gate REVISION")
            })?;
        let tree = root().join("target/gate/tree");
        git(&["worktree", "prune"])?;
        if tree.join(".git").exists() {
            let checkout = ["checkout", "--quiet", "--detach", "--force", &commit];
            command::read(command::at_root("git").arg("-C").arg(&tree).args(checkout))?;
        } else {
            let add = ["worktree", "add", "--quiet", "--detach"];
            command::read(at_root("git").args(add).arg(&tree).arg(&commit))?;
        }
        Self::make(commit, &tree, &root().join("target/gate/target"))
    }

    fn make(name: String, tree: &Path, target: &Path) -> Result<Self> {
        let build = ["build", "--release", "--package", "catena-cli", "--bin", "catena"];
        let mut cargo = cargo(build);
        command::run(cargo.arg("--target-dir").arg(target).current_dir(tree))
            .map_err(|why| format!("{name} does not build: {why}"))?;
        Ok(Self { name, program: target.join("release/catena") })
    }

    /// One short measurement.
    fn measure(&self, case: &Case, cpu: usize) -> Result<Measured> {
        let chain = case.chain;
        let mut catena = at_root(&self.program);
        let (cpu, seed) = (cpu.to_string(), SEED.to_string());
        catena.args(["bench", chain, "--json", "--trial", TRIAL, "--cpu", &cpu, "--seed", &seed]);
        catena.args(case.traffic);
        let measured = command::read(&mut catena).and_then(|json| Measured::read(&json));
        measured.map_err(|why| {
            format!("{}: this build cannot measure {chain} as the gate does: {why}", self.name)
                .into()
        })
    }
}

/// What a measurement found.
#[derive(Debug)]
struct Measured {
    /// CPU time of a packet, in nanoseconds.
    cost: f64,
    /// Time of a packet in the programs together, in nanoseconds, whether or not elements are faster; nothing without any.
    programs: Option<f64>,
    /// The non-drop rate, in packets per second.
    ndr: f64,
    /// The share of the time that was taken from the measuring thread.
    disturbed: f64,
    /// What it was measured on.
    environment: Value,
}

impl Measured {
    fn read(json: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(json)?;
        let cost = report["cost"]["time"]["median"].as_f64().filter(|cost| *cost > 0.0);
        let goals = report["throughput"].as_array().into_iter().flatten();
        let programs = report["programs"].as_array().into_iter().flatten();
        let programs: f64 = programs.filter_map(|program| program["time"].as_f64()).sum();
        let ndr =
            goals.filter(|found| found["goal"] == "NDR").find_map(|f| f["throughput"].as_f64());
        Ok(Self {
            cost: cost.ok_or("its report has no `cost.time.median`")?,
            programs: (programs > 0.0).then_some(programs),
            ndr: ndr.ok_or("its report has no `throughput` with the goal `NDR`")?,
            disturbed: report["cost"]["disturbed"].as_f64().unwrap_or(0.0),
            environment: report["environment"].clone(),
        })
    }
}

/// Least, median and greatest of an odd number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self { least: at(0), median: at(last / 2), greatest: at(last) }
    }
}

/// A chain's rounds: what it cost before and after, and the ratios.
struct Comparison {
    before: f64,
    after: f64,
    ratio: Spread,
}

impl Comparison {
    fn of(rounds: &[(Measured, Measured)]) -> Self {
        let costs: Vec<_> =
            rounds.iter().map(|(before, after)| (before.cost, after.cost)).collect();
        Self::of_times(&costs)
    }

    /// Of programs alone; nothing if a round has none.
    fn of_programs(rounds: &[(Measured, Measured)]) -> Option<Self> {
        let times = rounds.iter().map(|(before, after)| before.programs.zip(after.programs));
        Some(Self::of_times(&times.collect::<Option<Vec<_>>>()?))
    }

    fn of_times(rounds: &[(f64, f64)]) -> Self {
        Self {
            before: Spread::of(rounds.iter().map(|(before, _)| *before)).median,
            after: Spread::of(rounds.iter().map(|(_, after)| *after)).median,
            ratio: Spread::of(rounds.iter().map(|(before, after)| after / before)),
        }
    }

    /// A chain is slower if the median of the ratios is beyond the tolerance and no round says otherwise. Least and
    /// greatest of seven ratios are the bounds of a confidence interval of 98 % for the median, however ratios are
    /// distributed: all seven lie on one side of it as often as seven coins fall alike.
    fn verdict(&self) -> &'static str {
        let Spread { least, median, greatest } = self.ratio;
        if median > 1.0 + TOLERANCE && least > 1.0 {
            "SLOWER"
        } else if median < 1.0 / (1.0 + TOLERANCE) && greatest < 1.0 {
            "faster"
        } else {
            "same"
        }
    }
}

fn table(compared: &[(String, Comparison)]) -> String {
    let width = compared.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$} {:>10} {:>10}   {:21} verdict\n",
        "chain", "before, ns", "after, ns", "ratio (least–greatest)"
    );
    for (name, found) in compared {
        let Spread { least, median, greatest } = found.ratio;
        let ratio = format!("{median:.3} ({least:.3}–{greatest:.3})");
        text += &format!(
            "{name:width$} {:10.1} {:10.1}   {ratio:22} {}\n",
            found.before,
            found.after,
            found.verdict()
        );
    }
    text
}

/// Adds what this tree's build took to the history.
fn record(pairs: &[Vec<(Measured, Measured)>]) -> Result {
    let date = command::read(at_root("date").args(["--utc", "+%Y-%m-%d"]))?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut history = OpenOptions::new().create(true).append(true).open(root().join(HISTORY))?;
    for (case, rounds) in CASES.iter().zip(pairs) {
        let after: Vec<&Measured> = rounds.iter().map(|(_, after)| after).collect();
        writeln!(history, "{}", entry(&case.name(), date.trim(), &commit, &after))?;
    }
    println!("recorded in {HISTORY}; `cargo xtask docs` writes its page");
    Ok(())
}

/// A line of the history; the page that is made of it explains the fields.
fn entry(chain: &str, date: &str, commit: &str, rounds: &[&Measured]) -> Value {
    let cost = Spread::of(rounds.iter().map(|measured| measured.cost));
    let environment = rounds.first().map_or(&Value::Null, |measured| &measured.environment);
    let machine: serde_json::Map<String, Value> =
        ["processor", "cpus", "cpu", "is_virtual", "kernel"]
            .into_iter()
            .map(|name| (name.to_owned(), environment[name].clone()))
            .collect();
    let tenth = |ns: f64| (10.0 * ns).round() / 10.0;
    json!({
        "date": date,
        "commit": commit,
        "chain": chain,
        "machine": machine,
        "debug_build": environment["debug_build"],
        "ns": { "median": tenth(cost.median), "interval": [tenth(cost.least), tenth(cost.greatest)] },
        "ndr": Spread::of(rounds.iter().map(|measured| measured.ndr)).median.round(),
        "rounds": rounds.len(),
        "seed": SEED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cost: f64) -> Measured {
        let environment = json!({ "processor": "P", "cpus": 2, "cpu": 1, "is_virtual": true, "kernel": "6",
            "debug_build": false, "load_average": 0.5 });
        Measured { cost, programs: Some(2.0 * cost), ndr: 1e9 / cost, disturbed: 0.0, environment }
    }

    fn compare(ratios: [f64; 7]) -> Comparison {
        let rounds: Vec<_> =
            ratios.iter().map(|ratio| (measured(100.0), measured(100.0 * ratio))).collect();
        Comparison::of(&rounds)
    }

    #[test]
    fn only_what_is_slower_beyond_doubt_fails() {
        let cases = [
            ([1.06, 1.07, 1.06, 1.05, 1.08, 1.01, 1.06], "SLOWER"),
            // One round says otherwise.
            ([1.06, 1.07, 1.06, 1.05, 1.08, 0.99, 1.06], "same"),
            // Within the tolerance.
            ([1.04, 1.05, 1.04, 1.04, 1.20, 1.30, 1.03], "same"),
            ([0.90, 0.90, 0.90, 0.90, 0.90, 0.90, 0.99], "faster"),
            ([f64::NAN; 7], "same"),
        ];
        for (ratios, expected) in cases {
            assert_eq!(compare(ratios).verdict(), expected, "{ratios:?}");
        }
    }

    #[test]
    fn programs_are_compared_where_all_rounds_have_some() {
        let pair = |after: f64| {
            let mut pair = (measured(100.0), measured(100.0));
            pair.1.programs = (after > 0.0).then_some(after);
            pair
        };
        // The packets cost what they did.
        let slower: Vec<_> = [220.0; 7].map(pair).into();
        assert_eq!(Comparison::of(&slower).verdict(), "same");
        assert_eq!(Comparison::of_programs(&slower).unwrap().verdict(), "SLOWER");
        let none: Vec<_> = [220.0, 0.0].map(pair).into();
        assert!(Comparison::of_programs(&none).is_none());
    }

    #[test]
    fn a_table_has_both_costs_and_the_ratio() {
        let text = table(&[("a.click".to_string(), compare([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]))]);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["a.click", "100.0", "130.0", "1.300", "(1.000–1.600)", "same"]);
    }

    #[test]
    fn reports_without_what_is_needed_are_refused() {
        let read = |json: &str| Measured::read(json).map_err(|why| why.to_string());
        let report = r#"{"cost":{"time":{"median":50.5},"disturbed":0.1},"environment":{},
            "throughput":[{"goal":"PDR","throughput":3},{"goal":"NDR","throughput":2}],
            "programs":[{"time":20},{"time":1.5}]}"#;
        let found = read(report).unwrap();
        assert_eq!((found.cost, found.ndr, found.disturbed), (50.5, 2.0, 0.1));
        assert_eq!(found.programs, Some(21.5));
        assert!(read("usage").is_err());
        assert!(read("{}").unwrap_err().contains("no `cost.time.median`"));
        assert!(read(&report.replace("NDR", "N")).unwrap_err().contains("the goal `NDR`"));
    }

    #[test]
    fn an_entry_has_median_interval_and_machine() {
        let rounds = [30.04, 10.0, 20.06].map(measured);
        let entry = entry("a.click", "2025-01-02", "abc", &rounds.iter().collect::<Vec<_>>());
        assert_eq!(entry["ns"], json!({ "median": 20.1, "interval": [10.0, 30.0] }));
        assert_eq!(entry["ndr"], (1e9_f64 / 20.06).round());
        assert_eq!(entry["machine"]["kernel"], "6");
        assert_eq!((&entry["commit"], &entry["rounds"]), (&json!("abc"), &json!(3)));
        assert!(entry["machine"].get("load_average").is_none(), "{entry}");
    }

    #[test]
    fn a_build_that_cannot_measure_is_named() {
        let old = Build { name: "abc".into(), program: "false".into() };
        let why = old.measure(&Case::reading_captures("a.click"), 0).unwrap_err().to_string();
        assert!(
            why.starts_with("abc: this build cannot measure a.click as the gate does: "),
            "{why}"
        );
    }

    #[test]
    fn options_are_a_revision_and_record() {
        assert_eq!(options(&[]).unwrap(), (None, false));
        assert_eq!(options(&["--record", "HEAD~3"]).unwrap(), (Some("HEAD~3"), true));
        for wrong in [&["--records"][..], &["a", "b"]] {
            assert!(options(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_revision_that_there_is_not_is_named() {
        let why = Build::of("no-such-branch").err().unwrap().to_string();
        assert!(why.starts_with("there is no commit `no-such-branch`"), "{why}");
    }
}
