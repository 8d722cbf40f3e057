//! The project's tasks, run as `cargo xtask TASK`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tasks talk to people")]

mod command;
mod debian;
mod docs;
mod examples;
mod gate;
mod test;
mod tidy;

use std::env;
use std::error::Error;
use std::fs;
use std::process::{ExitCode, Stdio};

use command::cargo;

/// A task fails with a message for people.
type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--only STEP] [-- ARGS]   all that must hold before a change goes in; stops at the first failing step
                                 steps: packages, fmt, clippy, tidy, rustdoc, generated, test, miri, dpdk
                                 ARGS go to STEP's command; without --only, to `cargo test`
  tidy                           the project's own rules, such as: crates import lower floors only
  docs [--book]                  write the generated pages, and build the book into target/book if mdbook is installed;
                                 with --book, install it below target first
  docs --check                   check that the generated pages are as they would be written
  examples [--check]             make the inputs of the examples, or check that they are as they would be made
  bench [ARGS]                   all benches; `-p CRATE` for those of one crate, `-- ARGS` for the benches
  bench --gate [REVISION] [--record]
                                 measure four examples with release builds of REVISION and of this tree by turns, and fail if one
                                 became slower by more than 5 % (some minutes); without REVISION, the commit before, or HEAD where
                                 the tree has changes. --record adds this tree's figures to perf/history.jsonl
  soak [SECONDS]                 run a chain under faults of all kinds, 15 minutes if not said, and watch its memory (as root);
                                 ask for 10,000 URLs through a filter, flood a firewall with ten million SYNs,
                                 take all filetests and conformance cases through all targets, trusting ports and not,
                                 look for 20,000 packets of a chain which traffic class they are of,
                                 compare elements with their models on fifty times as many packets as tests do, new ones,
                                 take thousands of chains, put together at random, through all modes and targets, compare
                                 as many random linear programs with what glpsol finds, and change what is in the corpora
                                 of parsers 20,000 times at random
  figures PAPER [ARGS]           repeat the experiments of papers and write their pages and plots below docs:
                                 snf (docs/snf.md; needs the shared data folder), scc (docs/scc.md; as root), lemur
                                 (docs/lemur.md and docs/metron-placement.md), ironside (docs/ironside.md and
                                 docs/scaling.md), netbench (docs/netbench.md; as root), offload (docs/offload.md; as root, needs
                                 the shared data folder; `offload functions` needs neither), or all, which takes hours
  fuzz TARGET [ARGS]             fuzz one target (needs a nightly toolchain and cargo-fuzz)
  deny [ARGS]                    cargo-deny, for what tidy does not see: advisories, duplicates";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["test"] => test::run(None, &[]),
        ["test", "--", ref rest @ ..] => test::run(None, rest),
        ["test", "--only", step] => test::run(Some(step), &[]),
        ["test", "--only", step, "--", ref rest @ ..] => test::run(Some(step), rest),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::run(false),
        ["docs", "--book"] => docs::run(true),
        ["docs", "--check"] => docs::check(),
        ["examples"] => examples::run(false),
        ["examples", "--check"] => examples::run(true),
        ["bench", "--gate", ref rest @ ..] => gate::run(rest),
        // Without `--bench` it would also run unit tests, which know none of a bench's arguments.
        ["bench", ref rest @ ..] => command::run(
            cargo(["bench"]).args(test::packages(rest)).args(["--bench", "*"]).args(rest),
        ),
        ["soak"] => soak("900"),
        ["soak", seconds] => soak(seconds),
        ["figures", "all"] => {
            PAPERS.iter().try_for_each(|paper| figures(paper, &[]))?;
            netbench(&[])
        }
        ["figures", "netbench", ref rest @ ..] => netbench(rest),
        ["figures", paper, ref rest @ ..] if PAPERS.contains(&paper) => figures(paper, rest),
        ["fuzz", target, ref rest @ ..] => fuzz(target, rest),
        ["deny", ref rest @ ..] => deny(rest),
        [] | ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("cannot make sense of `{}`\n\n{USAGE}", args.join(" ")).into()),
    }
}

fn soak(seconds: &str) -> Result {
    let test = ["test", "--release", "--package", "catena-cli", "--test", "live"];
    let chosen = ["soak", "--", "--nocapture"];
    command::run(cargo(test).args(chosen).env("SOAK", seconds))?;
    let test = ["test", "--release", "--package", "catena-cli", "--test", "chains", "--"];
    let chosen = ["flood", "behind_devices", "devices_and_cores_agree"];
    command::run(cargo(test).args(chosen).env("SOAK", seconds))?;
    for (package, test, chosen, cases) in MORE_CASES {
        let test = ["test", "--release", "--package", package, "--test", test, "--"];
        let cases = cases.to_string();
        command::run(cargo(test).args(chosen).env("SEED", "fresh").env("CASES", cases))?;
    }
    Ok(())
}

/// Tests that take more cases, and new ones, if they are asked for: of which package and file, those meant, and how many cases.
const MORE_CASES: [(&str, &str, &[&str], u32); 6] = [
    ("catena-cli", "chains", &["classes"], 20_000),
    ("catena-cli", "chains", &["random_chains", "conversations"], 2000),
    ("catena-cli", "chains", &["rules_that_come_and_go"], 200),
    ("catena-elements", "conformance", &[], 2400),
    ("catena-placement", "linear", &[], 3000),
    ("catena-fuzz", "changed", &[], 20_000),
];

/// Papers whose experiments a bench of the crate `bench` repeats, or for `ironside` the program itself. What devices do with
/// chains of several papers is a bench of the crate `cli`.
const PAPERS: [&str; 5] = ["snf", "scc", "lemur", "ironside", "offload"];

fn figures(paper: &str, args: &[&str]) -> Result {
    // The chains of processes run the program, which cargo builds for benches of its own crate alone.
    if paper == "scc" {
        command::run(&mut cargo(["build", "--release", "--package", "catena-cli"]))?;
    }
    if paper == "ironside" {
        let tables =
            ["run", "--release", "--package", "catena-cli", "--", "sim", "tables", "--report"];
        return command::run(cargo(tables).arg(command::root().join("docs")).args(args));
    }
    let package = if paper == "offload" { "catena-cli" } else { "catena-bench" };
    let bench = ["bench", "--package", package, "--bench", paper, "--", "--write"];
    command::run(cargo(bench).arg(command::root().join("docs")).args(args))
}

/// Measures networks between containers, as root, and writes `docs/netbench.md`.
fn netbench(args: &[&str]) -> Result {
    command::run(&mut cargo(["build", "--release", "--package", "catena-cli"]))?;
    let catena = || command::at_root("target/release/catena");
    let out = "target/netbench";
    let run = ["netbench", "run", "examples/netbench.yaml", "--report", out];
    // A cell that failed stands on the page with its reason.
    let measured = catena().args(run).args(args).status()?;
    if measured.code() != Some(1) && !measured.success() {
        return Err(format!("catena netbench run: {measured}").into());
    }
    let page = ["netbench", "report", out, "--markdown", "docs/netbench.md"];
    command::run(catena().args(page).stdout(Stdio::null()))
}

fn fuzz(target: &str, args: &[&str]) -> Result {
    require("fuzz", "cargo install cargo-fuzz")?;
    // What is found goes to the first corpus, which is not committed; the second one is only read.
    let found = format!("fuzz/libfuzzer/corpus/{target}");
    let kept = format!("fuzz/corpus/{target}");
    fs::create_dir_all(command::root().join(&found))?;
    // `cargo +nightly` is rustup's doing, so this one goes through rustup's `cargo` and not $CARGO.
    command::run(
        command::at_root("cargo")
            .env_remove("RUSTUP_TOOLCHAIN")
            .args([
                "+nightly",
                "fuzz",
                "run",
                "--fuzz-dir",
                "fuzz/libfuzzer",
                target,
                &found,
                &kept,
            ])
            .args(args),
    )
}

fn deny(args: &[&str]) -> Result {
    require("deny", "cargo install --locked cargo-deny")?;
    command::run(cargo(["deny", "check"]).args(args))
}

/// Fails with how to mend it unless cargo knows the subcommand.
fn require(subcommand: &str, install: &str) -> Result {
    match cargo([subcommand, "--version"]).output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("cargo-{subcommand} is not installed; run: {install}").into()),
    }
}
