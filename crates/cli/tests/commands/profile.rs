//! `catena profile`.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Ended, Folder};

const CHAIN: &str = "\
elementclass Firewall { input -> Strip(14) -> CheckIPHeader -> IPFilter(deny src host 10.0.0.1, allow all) -> output; }
elementclass Router { input -> DecIPTTL -> Unstrip(14) -> output; }
FromDevice(in) -> fw :: Firewall -> router :: Router -> ToDevice(out);
";

/// Measures for a moment: what comes out is no measurement, but all of it comes out.
fn profile(folder: &Folder, arguments: &[&str]) -> Ended {
    folder.file("a.click", CHAIN);
    folder.run(["profile", "a.click", "--seconds", "0.02"].iter().chain(arguments))
}

fn names(report: &Value, list: &str) -> Vec<String> {
    let shares = report[list].as_array().unwrap();
    shares.iter().map(|share| share["name"].as_str().unwrap().to_string()).collect()
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(ended.well()).unwrap()
}

#[test]
fn a_chain_is_divided_into_functions_elements_and_sources() {
    let folder = Folder::new();
    let traffic = ["--in", "in=gen:flows=100,count=1000", "--json", "--flame", "a.svg"];
    let report = json(&profile(&folder, &traffic));
    assert_eq!(names(&report, "functions"), ["fw", "router"]);
    let elements = names(&report, "elements");
    assert!(elements.iter().any(|name| name.starts_with("fw/")), "{elements:?}");
    assert!(elements.iter().any(|name| name.starts_with("router/")), "{elements:?}");
    assert!(report["cost"]["time"]["median"].as_f64().unwrap() > 0.0);
    // Each source is known, or why it is not.
    let terms = report["decomposition"]["terms"].as_array().unwrap();
    assert_eq!(terms.len(), 9);
    let switches = terms.iter().find(|term| term["source"] == "context_switch").unwrap();
    assert!(switches["time"].is_f64() && switches["cost"].as_f64().unwrap() >= 0.0, "{terms:?}");
    let missing = report["missing"].as_array().unwrap();
    let is_missing = missing.iter().any(|missing| missing["event"] == "l1d_loads");
    assert_eq!(terms[0]["time"].is_null(), is_missing, "{report}");
    let picture = folder.read("a.svg");
    for name in ["a.click", "fw", "router"] {
        assert!(picture.contains(&format!("<title>{name}: ")), "{name}: {picture}");
    }
}

/// What a core does in an epoch: no more with more flows, in each form of the report.
#[test]
fn capacity_is_flows_against_packets() {
    let folder = Folder::new();
    let capacity = ["--capacity", "--slo", "p99=4ms"];
    let with = |more: &[&str]| profile(&folder, &[&capacity[..], more].concat());
    let found = json(&with(&["--json", "--plot", "a.svg"]));
    assert_eq!((&found["epoch"], &found["batch"]), (&2_000_000.into(), &32.into()));
    let points = |list: &str, value: &str| {
        let of = |point: &Value| (point["flows"].as_u64().unwrap(), point[value].as_f64().unwrap());
        found[list].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let (frontier, rates) = (points("frontier", "packets"), points("rates", "rate"));
    // A machine that is busy may sustain no rate within the SLO.
    assert!(!frontier.is_empty());
    for points in [frontier, rates] {
        let falls = |pair: &[(u64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1;
        assert!(points.windows(2).all(falls), "{points:?}");
    }
    assert!(folder.read("a.svg").contains("active flows"));

    // A capture with few flows ends the frontier; in a cost profile, the simulator finds what a flow costs.
    folder.run(["gen", "gen:flows=6,count=600", "--out", "few.pcap", "--rate", "100k"]).well();
    let few = with(&["--in", "in=few.pcap", "--costs", "a.json"]);
    assert!(few.well().contains("the traffic has 6 flows"), "{}", few.out);
    let costs: Value = serde_json::from_str(&folder.read("a.json")).unwrap();
    assert_eq!(costs["capacity"]["frontier"].as_array().unwrap().len(), 3, "{costs}");

    // The same chain is compared, another one is not.
    let again = with(&["--in", "in=few.pcap", "--against", "a.json"]);
    assert!(again.well().contains("beside a.json, medians of the frontier are"), "{}", again.out);
    folder.file("b.click", "FromDevice(in) -> ToDevice(out);");
    let other = ["profile", "b.click", "--seconds", "0.02", "--in", "in=few.pcap"];
    let other = folder.run(other.iter().chain(&capacity).chain(&["--against", "a.json"]));
    assert!(other.refused().contains("it is of another chain"), "{}", other.err);
    let edited =
        folder.read("a.json").replace("{\"flows\":1,\"packets\":", "{\"flows\":9,\"packets\":");
    folder.file("bad.json", &edited);
    let bad = with(&["--in", "in=few.pcap", "--against", "bad.json"]);
    assert!(bad.refused().contains("the frontier has 9 flows before 2"), "{}", bad.err);

    for (arguments, expected) in [
        (&["--capacity"][..], "--slo"),
        (&["--capacity", "--slo", "p99=0"], "--slo"),
        (&["--slo", "p99=1ms"], "--capacity"),
    ] {
        let found = profile(&folder, arguments);
        assert!(found.misused().contains(expected), "{}", found.err);
    }
    let tight = profile(&folder, &["--capacity", "--slo", "p99=1ns"]);
    assert!(tight.refused().contains("a packet alone takes"), "{}", tight.err);
}

#[test]
fn a_function_is_profiled_alone() {
    let folder = Folder::new();
    let report = json(&profile(&folder, &["--nf", "router", "--json"]));
    assert_eq!(
        (report["function"].as_str(), names(&report, "functions")),
        (Some("router"), vec!["router".into()])
    );
    let elements = names(&report, "elements");
    assert!(elements.iter().all(|name| name.starts_with("router/")), "{elements:?}");
    assert_eq!(elements.len(), 2);
    let refused = profile(&folder, &["--nf", "nat"]);
    assert_eq!(refused.refused(), "error: no network function 'nat': packets came to fw, router\n");
}

#[test]
fn tables_have_the_same() {
    let folder = Folder::new();
    let ended = profile(&folder, &[]);
    let text = ended.well();
    for words in [
        "in memory",
        "ns per packet",
        "context switches",
        "page walks",
        "network functions",
        "elements",
        "as programs",
        "! in: its traffic is not bound",
        "counted over",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_machine_has_levels_and_policies() {
    let folder = Folder::new();
    let report = json(&folder.run(["profile", "--machine", "--json"]));
    let levels = report["memory"]["levels"].as_array().unwrap();
    assert_eq!(levels.last().unwrap()["name"], "memory");
    assert_eq!(levels.len(), report["caches"].as_array().unwrap().len() + 1);
    let curve = report["memory"]["curve"].as_array().unwrap();
    assert!(curve.len() >= 12 && curve.iter().all(|p| p["times"].as_array().unwrap().len() == 7));
    assert!(report["system"]["system_call"]["median"].as_f64().unwrap() > 0.0);
    let text = folder.run(["profile", "--machine"]);
    for words in ["ns per load", "page walk", "system call", "context switch, SCHED_OTHER"] {
        assert!(text.well().contains(words), "{words}: {text:?}");
    }
}

/// A process that does what a shell script says, until the test ends.
struct Process(Child);

impl Process {
    /// Returns once the script has printed a line.
    fn start(script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        while byte != *b"\n" {
            child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        }
        Self(child)
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_runs_and_one_that_waits_are_distinguished() {
    let folder = Folder::new();
    let busy = Process::start("echo; while :; do :; done");
    let idle = Process::start("echo; read line");
    let pids = format!("{},{}", busy.id(), idle.id());
    let report = json(&folder.run(["profile", "--pid", &pids, "--seconds", "0.5", "--json"]));
    let of = |pid: &str| {
        let pid: u64 = pid.parse().unwrap();
        let all = report["processes"].as_array().unwrap();
        all.iter().find(|p| p["pid"] == pid).unwrap().clone()
    };
    let (runs, waits) = (of(&busy.id()), of(&idle.id()));
    assert_eq!((runs["name"].as_str(), runs["ended"].as_bool()), (Some("sh"), Some(false)));
    assert!(runs["total"]["run"].as_u64().unwrap() > 0, "{report}");
    // A process that computes waits for nothing but a CPU, however busy the machine is: what is left is when the kernel
    // last updated its figures.
    let [run, contention, wait] =
        ["run", "contention", "wait"].map(|time| runs["total"][time].as_u64().unwrap());
    assert!(run + contention > wait, "{report}");
    assert_eq!(waits["total"]["run"], 0);
    assert!(waits["total"]["wait_per_run"].is_null());
    assert_eq!(report["total"]["run"], runs["total"]["run"]);
    // Of a process that did nothing, there is nothing to draw.
    let idle_alone = ["profile", "--pid", &idle.id(), "--seconds", "0.05", "--flame", "idle.svg"];
    let idle_alone = folder.run(idle_alone);
    assert!(idle_alone.well().contains("! no function was sampled: --flame"), "{idle_alone:?}");
    assert!(idle_alone.out.contains("Wait/RunTime") && !folder.path().join("idle.svg").exists());
    let text =
        folder.run(["profile", "--pid", &busy.id(), "--pid", &idle.id(), "--seconds", "0.05"]);
    for words in ["Wait/RunTime", "SchedContention/RunTime", "together", "sh"] {
        assert!(text.well().contains(words), "{words}: {text:?}");
    }
}

/// Where perf_event is not permitted, or tracefs not mounted, that is said instead.
#[test]
fn functions_and_system_calls_of_a_process_are_found() {
    let folder = Folder::new();
    let process = Process::start("echo; while :; do : < /dev/null; done");
    let watch = ["profile", "--pid", &process.id(), "--seconds", "0.5"];
    let report = json(&folder.run(watch.iter().chain(&["--json"])));
    let is_said = |why: &str| {
        let remarks = report["remarks"].as_array().unwrap();
        remarks.iter().any(|remark| remark.as_str().unwrap().contains(why))
    };
    let of = |list: &str| report["processes"][0][list].as_array().unwrap().clone();
    let (functions, calls) = (of("functions"), of("system_calls"));
    if !is_said("functions of the code were not sampled") {
        let shares: f64 = functions.iter().map(|f| f["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{report}");
        let of_kernel = functions.iter().any(|function| function["module"] == "[kernel]");
        assert!(of_kernel || is_said("not permitted"), "{report}");
        let drawn = folder.run(watch.iter().chain(&["--flame", "sh.svg"]));
        assert!(drawn.well().contains("functions"), "{drawn:?}");
        let picture = folder.read("sh.svg");
        assert!(picture.contains(&format!("<title>sh ({}): ", process.id())), "{picture}");
    }
    if !is_said("names of system calls were not sampled") {
        let names: Vec<&str> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.starts_with("open")), "{names:?}");
    }
}

#[test]
fn functions_of_a_chains_code_are_found() {
    let folder = Folder::new();
    folder.file("a.click", CHAIN);
    let report = json(&folder.run(["profile", "a.click", "--seconds", "0.3", "--json"]));
    let remarks = report["remarks"].to_string();
    let code = report["code"].as_array().unwrap();
    let is_own = |share: &Value| share["module"] == "catena";
    let costs = profile(&folder, &["--costs", "costs.json"]);
    assert!(costs.well().contains("cycles per packet"), "{costs:?}");
    assert!(folder.read("costs.json").contains("\"functions\""));
    assert!(code.iter().any(is_own) || remarks.contains("were not sampled"), "{report}");
}

#[test]
fn descendants_are_profiled_with_their_parents() {
    let folder = Folder::new();
    let parent = Process::start("(echo; read line; :) ; :");
    let watch = |more: &[&str]| {
        let id = parent.id();
        let arguments = ["profile", "--pid", &id, "--seconds", "0.05", "--json"];
        json(&folder.run(arguments.iter().chain(more)))["processes"].as_array().unwrap().len()
    };
    assert_eq!((watch(&[]), watch(&["--children"])), (1, 2));
}

#[test]
fn a_process_that_ends_is_reported() {
    let folder = Folder::new();
    let mut process = Process::start("echo; read line");
    let id = process.id();
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let child = command.args(["profile", "--pid", &id, "--seconds", "600"]).spawn().unwrap();
    until_it_catches(&child);
    // It catches signals before it looks at the process: that it looked, its counters or its waiting show.
    until_it_sleeps(&child);
    drop(process.0.stdin.take());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.well().contains(&format!("! process {id} ended")), "{ended:?}");
}

#[test]
fn an_interrupt_ends_watching_with_a_report() {
    let folder = Folder::new();
    let process = Process::start("echo; read line");
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let child =
        command.args(["profile", "--pid", &process.id(), "--seconds", "600"]).spawn().unwrap();
    until_it_catches(&child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.well().contains("Wait/RunTime"), "{ended:?}");
}

fn status(child: &Child, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    status.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_string()
}

/// Until it catches interrupts.
fn until_it_catches(child: &Child) {
    let bit = 1 << (Signal::INT.as_raw() - 1);
    while u64::from_str_radix(&status(child, "SigCgt:"), 16).unwrap() & bit == 0 {
        std::thread::yield_now();
    }
}

/// Until it waits a second time.
fn until_it_sleeps(child: &Child) {
    let count = || status(child, "voluntary_ctxt_switches:").parse::<u64>().unwrap();
    let before = count();
    while count() < before + 2 {
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_profiled_is_refused() {
    let folder = Folder::new();
    folder.file("a.click", CHAIN).file("b.click", "InfiniteSource -> Discard;");
    folder.file("c.click", "FromDevice(in) -> Nonsense;");
    let refused: [(&[&str], &str); 5] = [
        (&["--pid", "2147483647"], "error: --pid: no process 2147483647\n"),
        (&["a.click", "--in", "other=gen"], "no FromDevice of the chain has the name 'other'"),
        (&["b.click"], "the chain has no FromDevice or FromDump"),
        (&["c.click"], "Nonsense"),
        (&["a.click", "--seconds", "0.02", "--flame", "none/a.svg"], "none/a.svg: "),
    ];
    for (arguments, expected) in refused {
        let ended = folder.run(["profile"].iter().chain(arguments));
        assert!(ended.refused().contains(expected), "{expected}: {ended:?}");
        assert_eq!(ended.out, "");
    }
    let wrong: [&[&str]; 14] = [
        &["--machine", "--cpu", "1000000"],
        &["a.click", "--traffic", "gen:flows=0"],
        &["a.click", "--costs", "c.json", "--nf", "fw"],
        &[],
        &["a.click", "--seconds", "0"],
        &["a.click", "--in", "in"],
        &["a.click", "--pid", "1"],
        &["a.click", "--machine"],
        &["--pid", "0"],
        &["--pid", "x"],
        &["--pid", "1", "--nf", "fw"],
        &["--pid", "1", "--cpu", "0"],
        &["--machine", "--children"],
        &["--machine", "--flame", "a.svg"],
    ];
    for arguments in wrong {
        let ended = folder.run(["profile"].iter().chain(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?} {ended:?}");
    }
}
