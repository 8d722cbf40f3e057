//! `catena netbench`: switches between applications, against the kernel's counters.

use std::path::Path;
use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::CATENA;

fn netbench(arguments: &[&str]) -> Command {
    let mut command = Command::new(CATENA.0);
    command.arg("netbench").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run printed as JSON, and what it said.
#[track_caller]
fn measured(arguments: &[&str]) -> (Value, String) {
    let process = Process::start(&mut netbench(&[&["run", "--json"], arguments].concat()));
    let name = format!("netbench{}-", process.id());
    let (code, text, told) = process.ended();
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(left(&name), Vec::<String>::new());
    (serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}")), told)
}

/// The only cell of a run with its parts, without what is long.
fn short(of: &Value) -> String {
    let mut of = of.clone();
    for sample in of["samples"].as_array_mut().into_iter().flatten() {
        sample["round_trips"]["distribution"] = Value::Null;
    }
    of.to_string()
}

/// Namespaces and journals of a run that are there.
fn left(name: &str) -> Vec<String> {
    let of = |folder: &str| -> Vec<String> {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.map(|entry| entry.path().display().to_string()).collect()
    };
    let mut all = of("/run/netns");
    all.extend(of("/run/catena/netbench"));
    all.retain(|path| path.rsplit('/').next().is_some_and(|last| last.starts_with(name)));
    all
}

#[track_caller]
fn count(of: &Value, what: &str) -> u64 {
    of[what].as_u64().unwrap_or_else(|| panic!("{what}: {of}"))
}

/// What applications say they sent and received is what the kernel counted, to the packet, through every switch.
#[test]
fn packets_are_those_that_the_kernel_counts() {
    if !possible() {
        return;
    }
    let load = ["--rate", "10k", "--burst", "4", "--seconds", "0.2", "--repeat", "1"];
    for more in [&["--size", "64,1514"][..], &["--pairs", "2", "--size", "60", "--touch"]] {
        let (results, told) = measured(&[&load[..], more].concat());
        assert!(told.contains("applications share"), "{told}");
        let cells = results["cells"].as_array().unwrap();
        assert!(cells.len() >= 6, "{}", cells.len());
        for cell in cells {
            let sample = &cell["samples"][0];
            let all = &sample["throughput"];
            let pairs = count(cell, "pairs");
            assert_eq!(count(all, "attempted"), pairs * 2000, "{}", short(cell));
            assert_eq!(count(all, "sent"), count(all, "counted_sent"), "{}", short(cell));
            let came = count(all, "received") + count(all, "overrun");
            assert_eq!(came, count(all, "counted_received"), "{}", short(cell));
            assert_eq!(
                count(all, "sent"),
                count(all, "received") + count(all, "lost"),
                "{}",
                short(cell)
            );
            assert_eq!(
                (count(all, "duplicates"), count(all, "reordered")),
                (0, 0),
                "{}",
                short(cell)
            );
            let trips = &sample["round_trips"];
            assert_eq!(count(trips, "sent"), pairs * 2000, "{}", short(cell));
            assert_eq!(
                count(trips, "received"),
                pairs * 2000 - count(trips, "lost"),
                "{}",
                short(cell)
            );
            let latency = &trips["latency"];
            assert!(count(latency, "p50") > 0, "{}", short(cell));
            assert!(count(latency, "p99_99") >= count(latency, "p50"), "{}", short(cell));
            let has_processes = cell["has_processes"].as_bool().unwrap();
            assert_eq!(all["switch_ns"].is_number(), has_processes, "{}", short(cell));
        }
    }
}

/// A chain between two devices, of whose packets in one direction every hundredth goes elsewhere.
fn chain(elsewhere: &str) -> String {
    let mut text = format!(
        "out :: ToDevice(p1); FromDevice(p0) -> turns :: RoundRobinSwitch; turns[0] -> {elsewhere};
         FromDevice(p1) -> ToDevice(p0);\n"
    );
    (1..100).for_each(|output| text += &format!("turns[{output}] -> out;\n"));
    text
}

/// Losses, duplicates and reordering of a chain are measured as they are, and told apart.
#[test]
fn what_a_chain_does_to_packets_is_told_apart() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let load = ["--throughput", "--rate", "10k", "--burst", "1", "--seconds", "1", "--repeat", "1"];
    for (name, elsewhere, expected) in [
        ("drops", "Discard", [100, 0, 0]),
        ("doubles", "t :: Tee; t[0] -> out; t[1] -> out", [0, 100, 0]),
        ("delays", "Queue -> DelayUnqueue(5ms) -> out", [0, 0, 100]),
    ] {
        let file = network.file(name, &chain(elsewhere));
        let switch = format!("catena:{}", file.display());
        let (results, _) = measured(&[&["--switch", &switch, "--size", "64"], &load[..]].concat());
        let all = &results["cells"][0]["samples"][0]["throughput"];
        assert_eq!(count(all, "sent"), 10_000);
        let found = ["lost", "duplicates", "reordered"].map(|what| count(all, what));
        let cell = short(&results["cells"][0]);
        assert!(found[0].abs_diff(expected[0]) <= expected[0] / 50, "{name}: {cell}");
        assert!(found[1].abs_diff(expected[1]) <= expected[1] / 50, "{name}: {cell}");
        // Elements take packets of a burst output by output, which changes the order of others, too.
        assert!(found[2] >= expected[2] - expected[2] / 50, "{name}: {cell}");
    }
}

/// The processes of a run that are applications of a role.
fn applications(run: u32, role: &str) -> Vec<u32> {
    let all = std::fs::read_to_string(format!("/proc/{run}/task/{run}/children"));
    let all = all.unwrap_or_default();
    let numbers = all.split_whitespace().filter_map(|word| word.parse().ok());
    let is_role = |number: &u32| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        // Before it is one, it is `ip`.
        words.next() == Some(CATENA.0.as_bytes()) && words.any(|word| word == role.as_bytes())
    };
    numbers.filter(is_role).collect()
}

/// An application that is killed fails its cell, with a reason; others are measured.
#[test]
fn an_application_that_dies_fails_its_cell_alone() {
    if !possible() {
        return;
    }
    let arguments = ["run", "--switch", "direct,linux-bridge", "--size", "64", "--throughput"];
    let more = ["--seconds", "0.3", "--repeat", "1", "--json"];
    let run = Process::start(&mut netbench(&[&arguments[..], &more].concat()));
    let mut victim = None;
    until("a receiver runs", || {
        victim = applications(run.id(), "recv").first().copied();
        victim.is_some()
    });
    let pid = victim.and_then(|number| Pid::from_raw(number as i32)).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let name = format!("netbench{}-", run.id());
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(1), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let cells = results["cells"].as_array().unwrap();
    let failed: Vec<&Value> =
        cells.iter().filter(|cell| !cell["failures"].as_array().unwrap().is_empty()).collect();
    assert_eq!(failed.len(), 1);
    let why = failed[0]["failures"][0].as_str().unwrap();
    assert!(why.contains("recv of pair 1 ended (signal: 9"), "{why}");
    assert!(told.contains("failed: recv of pair 1"), "{told}");
    let went = cells.iter().filter(|cell| cell["samples"].as_array().unwrap().len() == 1);
    assert_eq!(went.count(), 1);
    assert_eq!(left(&name), Vec::<String>::new());
}

/// Ctrl-C takes everything down and reports what was measured; after kill -9, the next command takes it down.
#[test]
fn nothing_is_left_behind() {
    if !possible() {
        return;
    }
    let arguments = ["run", "--switch", "linux-bridge,catena", "--size", "64", "--latency"];
    let more = ["--seconds", "0.05", "--repeat", "1000", "--json"];
    let start = || Process::start(&mut netbench(&[&arguments[..], &more].concat()));
    let run = start();
    let name = format!("netbench{}-", run.id());
    let third = format!("/run/catena/netbench/{name}2");
    until("the third run has begun", || Path::new(&third).exists());
    run.interrupt();
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(0), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["interrupted"], true);
    let samples = |cell: &Value| cell["samples"].as_array().unwrap().len();
    let samples: usize = results["cells"].as_array().unwrap().iter().map(samples).sum();
    assert!((2..2000).contains(&samples), "{samples}");
    assert_eq!(left(&name), Vec::<String>::new());

    let run = start();
    let name = format!("netbench{}-", run.id());
    until("a namespace is there", || left(&name).iter().any(|path| path.contains("netns")));
    run.kill();
    // Another run may take it down, too.
    until("it is taken down", || {
        let (code, _, told) = Process::start(&mut netbench(&["clean"])).ended();
        assert_eq!(code, Some(0), "{told}");
        left(&name).is_empty()
    });
}

/// A report is gone on with, shown again, and compared.
#[test]
fn a_report_is_resumed_and_compared() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let folder = network.folder().join("report").display().to_string();
    let load = ["--switch", "direct", "--rate", "10k", "--seconds", "0.05", "--report", &folder];
    let (first, _) = measured(&[&load[..], &["--size", "64", "--repeat", "1"]].concat());
    let more = ["--size", "64,128", "--repeat", "2", "--resume"];
    let (second, _) = measured(&[&load[..], &more].concat());
    let samples = |results: &Value, cell: usize| results["cells"][cell]["samples"].clone();
    assert_eq!(samples(&second, 0)[0], samples(&first, 0)[0]);
    assert_eq!([0, 1].map(|cell| samples(&second, cell).as_array().unwrap().len()), [2, 2]);
    // All is there: nothing is measured.
    let (third, _) = measured(&[&load[..], &more].concat());
    assert_eq!(third["cells"], second["cells"]);
    let page = std::fs::read_to_string(format!("{folder}/index.html")).unwrap();
    assert!(page.contains("Throughput") && page.contains("<svg"), "{page}");
    let csv = std::fs::read_to_string(format!("{folder}/results.csv")).unwrap();
    let columns = |line: &str| line.split(',').count();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().unwrap())), "{csv}");

    let report = |arguments: &[&str]| {
        Process::start(&mut netbench(&[&["report"], arguments].concat())).ended()
    };
    let (code, text, told) = report(&[&folder]);
    assert_eq!(code, Some(0), "{told}");
    assert!(text.contains("direct") && text.contains("Round trips"), "{text}");
    let (code, text, told) = report(&[&folder, "--compare", &folder]);
    assert_eq!(code, Some(0), "{told}");
    assert!(text.contains("1.000") && !text.contains("worse"), "{text}");
    let (code, _, told) = report(&["/nowhere"]);
    assert!(code == Some(1) && told.contains("/nowhere/results.json"), "{told}");
    let other = ["--size", "64", "--seconds", "0.1", "--switch", "direct", "--report", &folder];
    let run = Process::start(&mut netbench(&[&["run", "--resume"], &other[..]].concat()));
    let (code, _, told) = run.ended();
    assert!(code == Some(1) && told.contains("choose another folder"), "{told}");
    std::fs::write(format!("{folder}/results.json"), "{\"version\": 99}").unwrap();
    let (code, _, told) = report(&[&folder]);
    assert!(code == Some(1) && told.contains("results of version 99"), "{told}");
}

/// What cannot be measured is refused with what would do.
#[test]
fn bad_input_is_refused() {
    for (arguments, expected) in [
        (&["--switch", "linux-brigde"][..], "did you mean 'linux-bridge'?"),
        (&["--switch", "hub"], "the switches are direct, linux-bridge"),
        (&["--switch", "catena:/nowhere.click"], "there is no chain /nowhere.click"),
        (&["--size", "59"], "--size 59: takes 60 to 1514"),
        (&["--size", "1500..64"], "takes numbers with commas between them"),
        (&["--pairs", "65"], "--pairs 65: takes 1 to 64"),
        (&["--cores-for-switch", "1000"], "--cores-for-switch 1000: takes 1 to"),
        (&["--rate", "10%"], "takes numbers with commas between them"),
        (&["--io", "af-xpd"], "the modes are auto"),
        (&["--seconds", "0"], "takes a number from"),
    ] {
        let (code, text, told) =
            Process::start(&mut netbench(&[&["run"], arguments].concat())).ended();
        assert_eq!(code, Some(2), "{arguments:?}: {told}{text}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}
