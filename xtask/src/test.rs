//! `cargo xtask test`: the steps that must pass before a change goes in.

use std::process::Command;
use std::time::Instant;

use crate::command::{self, cargo};
use crate::{Result, debian, docs, examples, tidy};

struct Step {
    name: &'static str,
    run: fn(&[&str]) -> Result,
}

const STEPS: [Step; 9] = [
    Step { name: "packages", run: |_| debian::install() },
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: |_| tidy::run() },
    Step { name: "rustdoc", run: rustdoc },
    Step { name: "generated", run: |_| generated() },
    Step { name: "test", run: test },
    Step { name: "miri", run: miri },
    Step { name: "dpdk", run: dpdk },
];

/// Runs all steps, or only one; `args` go to the one, or to the step `test`.
pub(crate) fn run(only: Option<&str>, args: &[&str]) -> Result {
    let steps: Vec<&Step> = STEPS.iter().filter(|s| only.is_none_or(|o| o == s.name)).collect();
    if steps.is_empty() {
        let names = STEPS.map(|step| step.name).join(", ");
        return Err(format!("no step `{}`; the steps are {names}", only.unwrap_or_default()).into());
    }
    let mut times = Vec::new();
    for step in steps {
        println!("\n== {}", step.name);
        let args = if only.is_some() || step.name == "test" { args } else { &[] };
        let start = Instant::now();
        let result = (step.run)(args);
        let seconds = start.elapsed().as_secs_f64();
        if let Err(error) = result {
            let again = format!("cargo xtask test --only {}", step.name);
            return Err(format!(
                "{error}\n\nstep `{}` failed after {seconds:.1} s; again: {again}",
                step.name
            )
            .into());
        }
        println!("== {} passed in {seconds:.1} s", step.name);
        times.push(format!("{} {seconds:.1} s", step.name));
    }
    println!("\nall passed: {}", times.join(", "));
    Ok(())
}

fn fmt(args: &[&str]) -> Result {
    command::run(cargo(["fmt", "--all", "--check"]).args(args))
        .map_err(|error| format!("{error}; to format: cargo fmt --all").into())
}

fn clippy(args: &[&str]) -> Result {
    command::run(
        cargo(["clippy", "--all-targets"])
            .args(packages(args))
            .args(args)
            .args(["--", "-D", "warnings"]),
    )
}

fn rustdoc(args: &[&str]) -> Result {
    command::run(
        cargo(["doc", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(packages(args))
            .args(args),
    )
}

fn test(args: &[&str]) -> Result {
    command::run(cargo(["test", "--no-fail-fast"]).args(packages(args)).args(args))
}

/// What has its own memory and what hands it to other threads, under Miri, where that is installed.
fn miri(args: &[&str]) -> Result {
    // `cargo +nightly` is rustup's doing.
    let miri = |words: &[&str]| {
        let mut command = command::at_root("cargo");
        command.env_remove("RUSTUP_TOOLCHAIN").args(["+nightly", "miri"]).args(words);
        command
    };
    let is_there = || miri(&["--version"]).output().is_ok_and(|output| output.status.success());
    if !is_there() {
        // Continuous integration gets it where rustup can.
        let mut install = Command::new("timeout");
        install.args(["300", "rustup", "toolchain", "install", "nightly", "--no-self-update"]);
        install.args(["--profile", "minimal"]);
        install.args(["--component", "miri,rust-src"]);
        let wanted = std::env::var_os("CI").is_some();
        if !wanted || command::run(&mut install).is_err() || !is_there() {
            println!("not run: Miri is not installed; to install it: {install:?}");
            return Ok(());
        }
    }
    // Miri knows no poll(2), and is slow.
    for (package, tests) in [
        ("catena-net", &["buffer"][..]),
        ("catena-dataplane", &["hand_off::tests::frames", "rings::tests"]),
    ] {
        let mut command = miri(&["test", "-p", package, "--lib", "--target-dir", "target/miri"]);
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation").args(args);
        command::run(command.arg("--").args(tests))?;
    }
    Ok(())
}

/// What is only there with DPDK, which not every machine has; in continuous integration it must.
fn dpdk(args: &[&str]) -> Result {
    if !Command::new("pkg-config").args(["--exists", "libdpdk"]).status().is_ok_and(|s| s.success())
    {
        let why = "DPDK is not installed (Debian: libdpdk-dev and pkgconf)";
        if std::env::var_os("CI").is_some() {
            return Err(why.into());
        }
        println!("not run: {why}");
        return Ok(());
    }
    // Of the whole workspace, dependencies have the features that they have in the step `test`, and are built already.
    let with = ["--workspace", "--features", "catena-cli/dpdk"];
    let of = ["--lib", "--bins", "--test", "dpdk"];
    command::run(cargo(["clippy"]).args(with).args(of).args(["--", "-D", "warnings"]))?;
    let tests = || {
        let mut tests = cargo(["test", "--no-fail-fast"]);
        tests.args(with).args(["--test"]);
        tests
    };
    command::run(tests().arg("dpdk").args(args))?;
    command::run(tests().args(["chains", "swx::real"]))
}

/// Files that tasks write are what these would write now.
fn generated() -> Result {
    docs::check()?;
    examples::run(true)
}

/// The whole workspace, unless the arguments choose packages.
pub(crate) fn packages(args: &[&str]) -> Option<&'static str> {
    let chosen = args
        .iter()
        .take_while(|arg| **arg != "--")
        .any(|arg| arg.starts_with("-p") || arg.starts_with("--package"));
    (!chosen).then_some("--workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_choose_packages_replace_the_workspace() {
        assert_eq!(packages(&["nat"]), Some("--workspace"));
        assert_eq!(packages(&["-p", "catena-net"]), None);
        assert_eq!(packages(&["--package=catena-net"]), None);
        assert_eq!(packages(&["--", "-p"]), Some("--workspace"));
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let error = run(Some("tests"), &[]).unwrap_err().to_string();
        assert!(error.contains("`tests`") && error.contains("packages, fmt"), "{error}");
    }
}
