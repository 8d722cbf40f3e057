//! `catena bench`.

use std::path::Path;

use ir::costs::CostProfile;
use serde_json::Value;

use crate::program::{Ended, Folder};

const CHAIN: &str = "\
elementclass Firewall { input -> Strip(14) -> CheckIPHeader -> IPFilter(deny src host 10.0.0.1, allow all) -> output; }
FromDevice(in) -> fw :: Firewall -> DecIPTTL -> Unstrip(14) -> ToDevice(out);
";

/// Trials are of milliseconds: what comes out is no measurement, but all of it comes out.
fn bench(folder: &Folder, arguments: &[&str]) -> Ended {
    folder.file("a.click", CHAIN);
    folder.run(["bench", "a.click", "--trial", "0.002"].iter().chain(arguments))
}

#[test]
fn a_report_has_all_figures() {
    let folder = Folder::new();
    let ended = bench(&folder, &["--in", "in=gen:flows=100,count=1000,size=96", "--json"]);
    let report: Value = serde_json::from_str(ended.well()).unwrap();
    assert_eq!(report["traffic"][0]["frames"], 1000);
    assert_eq!(report["frame_size"], 100.0);
    // 16 of the 100 flows are of the host that is denied.
    assert!((report["forwarded"].as_f64().unwrap() - 0.84).abs() < 0.01, "{report}");
    assert!(report["cost"]["time"]["median"].as_f64().unwrap() > 0.0);
    let goals: Vec<_> =
        report["throughput"].as_array().unwrap().iter().map(|t| &t["goal"]).collect();
    assert_eq!(goals, ["NDR", "PDR"]);
    let names = |list: &str| -> Vec<String> {
        let shares = report[list].as_array().unwrap();
        shares.iter().map(|share| share["name"].as_str().unwrap().to_string()).collect()
    };
    assert!(names("functions").contains(&"fw".to_string()), "{report}");
}

#[test]
fn tables_have_the_same() {
    let folder = Folder::new();
    let ended = bench(&folder, &[]);
    let text = ended.well();
    let expected = [
        "in memory",
        "a look takes ",
        "ns per packet",
        "NDR (loss ≤ 0 %)",
        "PDR (loss ≤ 0.5 %)",
        "element by element",
    ];
    for words in expected {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("! in: its traffic is not bound"), "{text}");
    // What the chain would have written is not.
    assert!(!folder.path().join("out").exists());
}

#[test]
fn pages_and_sizes_are_made() {
    let folder = Folder::new();
    let ended = bench(&folder, &["--sizes", "64,imix", "--html", "r.html", "--seed", "5"]);
    let text = ended.well();
    for words in ["frames, bytes", "imix", "NDR, Gb/s L2"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let report: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    let sizes: Vec<_> = report["sizes"].as_array().unwrap().iter().collect();
    let size = |at: usize| {
        (sizes[at]["size"].as_str().unwrap(), sizes[at]["frame_size"].as_f64().unwrap())
    };
    assert_eq!(size(0), ("64", 64.0));
    // 7 × 64, 4 × 594 and 1 × 1,518 bytes in 12 frames, of which the last turn may not be whole.
    let (name, mean) = size(1);
    assert!(name == "imix" && (mean - 361.8).abs() < 0.1, "{mean}");
    assert_eq!(report["seed"], 5);
    assert!(report["environment"]["command"].as_array().unwrap().contains(&"--sizes".into()));
    assert!(report["latency"][0]["distribution"].as_array().unwrap().len() > 3);
    let page = folder.read("r.html");
    assert!(page.contains("<h1>a.click</h1>") && page.contains("href=\"r.json\""), "{page}");
    for plot in
        ["Throughput by frame size", "Latency by percentile", "Time of bursts that were timed"]
    {
        assert!(page.contains(&format!("<title>{plot}")), "{plot}");
    }
    // Whoever compares has the figures of each size.
    let compared = folder.run(["bench", "--compare", "r.json", "r.json", "--json"]);
    assert!(compared.well().contains("NDR Mpps, frames of 64 bytes"), "{compared:?}");
}

#[test]
fn latencies_are_written_for_plotters() {
    let folder = Folder::new();
    let report: Value =
        serde_json::from_str(bench(&folder, &["--hgrm", ".", "--json"]).well()).unwrap();
    let loads = report["latency"].as_array().unwrap();
    assert!(!loads.is_empty(), "{report}");
    for load in loads {
        let text = folder.read(&format!("a-{}.hgrm", load["percent"]));
        // The last line of the distribution has all packets and the greatest latency, in microseconds.
        let last = text.lines().rfind(|line| !line.starts_with('#')).unwrap();
        let words: Vec<f64> = last.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let max = load["percentiles"]["max"].as_f64().unwrap() / 1e3;
        assert!(words[..] == [words[0], 1.0, load["packets"].as_f64().unwrap()], "{last} {load}");
        assert!((words[0] - max).abs() < 0.001, "{last} {load}");
    }
    // What the files have is no part of the document.
    assert!(loads[0].get("histogram").is_none(), "{report}");
    bench(&folder, &["--hgrm", "b.hgrm"]).well();
    assert!(folder.read("b-0.hgrm").contains("#[Max"));
    folder.file("c.click", "FromDevice(in) -> Discard;");
    let none = folder.run(["bench", "c.click", "--trial", "0.002", "--hgrm", "c"]);
    assert_eq!(none.refused(), "error: --hgrm: no latencies were taken\n");
}

#[test]
fn cost_profiles_are_written() {
    let folder = Folder::new();
    folder.file("c.pcap.gz", include_bytes!("../../../../examples/lan.pcap.gz"));
    let told = bench(&folder, &["--costs", "costs.json"]).well().to_string();
    let profile: Value = serde_json::from_str(&folder.read("costs.json")).unwrap();
    assert_eq!((&profile["costs"], &profile["chain"]), (&1.into(), &"a.click".into()));
    let traffic: Vec<&str> =
        profile["traffic"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let attacks = ["new flows (SYN flood)", "tuple space explosion"];
    assert!(traffic.len() == 8 && traffic.contains(&"100,000 flows"), "{traffic:?}");
    assert!(attacks.iter().all(|attack| traffic.contains(attack)), "{traffic:?}");
    let number = |value: &Value| value.as_f64().unwrap();
    for (list, name) in [("functions", "fw"), ("programs", "fw/Strip@1")] {
        let key = if list == "functions" { "name" } else { "entry" };
        let all = profile[list].as_array().unwrap();
        let one =
            all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("{name} in {all:?}"));
        let cost = &one["cost"];
        assert!(number(&cost["min"]) > 0.0, "{cost}");
        assert!(number(&cost["min"]) <= number(&cost["mean"]), "{cost}");
        assert!(number(&cost["mean"]) <= number(&cost["max"]), "{cost}");
        assert_eq!(cost["samples"].as_array().unwrap().len(), 8, "{cost}");
        assert!(told.contains(name), "{told}");
    }
    let of_two_rules = &profile["functions"][0];
    assert!(of_two_rules["rules"].is_null() && of_two_rules["per_rule"].is_null(), "{profile}");
    // Where there is one CPU, it says so.
    match dataplane::worker::cpus().len() {
        1 => {
            assert!(profile["hand_off"].is_null(), "{profile}");
            assert!(told.contains("a hand-off was not measured"), "{told}");
        }
        _ => {
            let sizes = ["bursts of 1", "bursts of 8", "bursts of 32", "bursts of 256"];
            for side in ["give", "take"] {
                let samples = profile["hand_off"][side]["samples"].as_array().unwrap();
                assert!(samples.iter().map(|sample| &sample["traffic"]).eq(sizes), "{samples:?}");
            }
            assert!(told.contains("hand-off from CPU "), "{told}");
        }
    }
    // The digest is the program's, and another chain's is another.
    let digest = |profile: &Value| profile["programs"][0]["program"].as_str().unwrap().to_string();
    assert_eq!(digest(&profile).len(), 16);
    let again: Value =
        serde_json::from_str(bench(&folder, &["--costs", "again.json", "--json"]).well()).unwrap();
    assert_eq!(digest(&again), digest(&profile));
    folder.file("b.click", CHAIN.replace("10.0.0.1", "10.0.0.2"));
    folder.run(["bench", "b.click", "--trial", "0.002", "--costs", "other.json"]).well();
    let other: Value = serde_json::from_str(&folder.read("other.json")).unwrap();
    assert_ne!(digest(&other), digest(&profile));
    // A list of rules is cut, and each of its rules has packets.
    let rules: Vec<String> = (1..32).map(|n| format!("deny src host 10.9.9.{n}")).collect();
    let rules = format!("IPFilter({}, allow all)", rules.join(", "));
    folder.file("l.click", CHAIN.replace("IPFilter(deny src host 10.0.0.1, allow all)", &rules));
    folder.run(["bench", "l.click", "--trial", "0.002", "--costs", "l.json"]).well();
    let listed: Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    let functions = listed["functions"].as_array().unwrap();
    for function in functions {
        let samples = function["cost"]["samples"].as_array().unwrap();
        let last = samples.last().unwrap()["traffic"].as_str().unwrap();
        match function["name"].as_str().unwrap() {
            "fw" => assert_eq!((&function["rules"], last), (&32.into(), "packets for each rule")),
            _ => assert!(function["rules"].is_null() && last == "frames of 1,518 bytes"),
        }
    }
    assert!(functions.iter().any(|function| function["name"] == "fw"), "{functions:?}");
    assert_eq!(listed["traffic"][8], "packets for each rule");
    // So it is for the program that replaces the function.
    let program = &listed["programs"][0];
    let samples = program["cost"]["samples"].as_array().unwrap();
    assert_eq!(program["rules"], 32, "{program}");
    assert_eq!(samples.last().unwrap()["traffic"], "packets for each rule", "{program}");
    // A capture has the traffic that it has.
    folder.file("d.click", "FromDump(c.pcap.gz) -> Counter -> ToDevice(out);");
    let one = folder.run(["bench", "d.click", "--trial", "0.002", "--costs", "d.json", "--json"]);
    let one: Value = serde_json::from_str(one.well()).unwrap();
    assert_eq!(one["traffic"], serde_json::json!(["as given"]));
}

/// What of a document its schema does not allow, or wants and does not find.
fn differences(value: &Value, schema: &Value, root: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let named = root.pointer(name.trim_start_matches('#')).expect("a definition");
        return differences(value, named, root, at, found);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choice = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return differences(value, choice.expect("a choice"), root, at, found);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed =
        schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    if !allowed.iter().any(|of| of == kind || (of == "number" && kind == "integer")) {
        found.push(format!("{at} is {kind}"));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        found.push(format!("{at} is {value}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let of = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
        differences(item, of, root, &format!("{at}/{index}"), found);
    }
    let Some(members) = value.as_object() else { return };
    for (name, member) in members {
        let at = format!("{at}/{name}");
        match schema["properties"].get(name) {
            None => found.push(format!("{at} is unknown")),
            Some(of) => differences(member, of, root, &at, found),
        }
    }
    let required =
        schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
    found.extend(
        required
            .filter(|name| !members.contains_key(*name))
            .map(|name| format!("{at} has no {name}")),
    );
}

#[test]
fn documents_are_as_their_schemas_say() {
    let folder = Folder::new();
    let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let differ = |document: &Value, name: &str| {
        let schema = json(folder.run(["bench", "--schema", name]).well());
        let mut found = Vec::new();
        differences(document, &schema, &schema, "", &mut found);
        found
    };
    let mut report = json(bench(&folder, &["--sizes", "64", "--json"]).well());
    assert_eq!(differ(&report, "report"), Vec::<String>::new());
    // Cycles follow from the time.
    let frequency =
        |cost: &Value| Some(cost["cycles"].as_f64()? / cost["time"]["median"].as_f64().unwrap());
    let [whole, sized] = [&report["cost"], &report["sizes"][0]["cost"]].map(frequency);
    assert!(whole.zip(sized).is_none_or(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{report}");
    let mut profile = json(bench(&folder, &["--costs", "c.json", "--json"]).well());
    assert_eq!(differ(&profile, "costs"), Vec::<String>::new());
    // Readers leave aside what later releases add.
    let read = |profile: &Value| serde_json::from_value::<CostProfile>(profile.clone()).unwrap();
    let known = read(&profile);
    profile["later"] = serde_json::json!([{ "from": "a" }]);
    profile["functions"][0]["later"] = 1.into();
    assert_eq!(read(&profile), known);
    report["bench"] = 2.into();
    report["latency"][0]["rate"] = "fast".into();
    report["cost"].as_object_mut().unwrap().remove("time");
    let wrong = ["/bench is 2", "/cost has no time", "/latency/0/rate is string"];
    assert_eq!(differ(&report, "report"), wrong);
    for arguments in [&["--schema", "page"][..], &["--schema", "report", "a.click"]] {
        assert_eq!(folder.run(["bench"].iter().chain(arguments)).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn packets_arrive_as_asked() {
    let folder = Folder::new();
    let ended = bench(&folder, &["--arrivals", "bursts=10us:90us", "--json"]);
    let report: Value = serde_json::from_str(ended.well()).unwrap();
    assert_eq!(report["arrivals"], "bursts=10us:90us");
    assert!(!report["latency"].as_array().unwrap().is_empty(), "{report}");
    let ended = bench(&folder, &["--arrivals", "poisson"]);
    assert!(ended.well().contains("arrivals: poisson, on average at these rates"), "{ended:?}");
    folder.file("c.pcap.gz", include_bytes!("../../../../examples/lan.pcap.gz"));
    for capture in ["in=c.pcap.gz", "in=replay:c.pcap.gz"] {
        let ended = bench(&folder, &["--arrivals", "recorded", "--in", capture]);
        assert!(ended.well().contains("arrivals: recorded, "), "{ended:?}");
    }
    let ended = bench(&folder, &["--arrivals", "recorded"]);
    assert!(ended.refused().contains("recorded takes captures with times"), "{ended:?}");
    let ended = bench(&folder, &["--arrivals", "bursts=1:2"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("two durations of 1ns to 1h, such as bursts=200us:1ms"),
        "{ended:?}"
    );
}

#[test]
fn limits_that_are_missed_fail() {
    let folder = Folder::new();
    let ended = bench(&folder, &["--min-mpps", "1000000", "--max-p99-us", "0"]);
    assert!(ended.refused().contains("error: --min-mpps 1000000: the NDR is "), "{ended:?}");
    assert!(ended.err.contains("error: --max-p99-us 0: "), "{ended:?}");
    assert!(ended.out.contains("ns per packet"), "{ended:?}");
    assert_eq!(bench(&folder, &["--min-mpps", "0"]).code, Some(0));
}

#[test]
fn reports_are_compared() {
    let folder = Folder::new();
    let old = bench(&folder, &["--json"]).well().to_string();
    folder.file("old.json", &old);
    let compare = |new: &str| folder.run(["bench", "--compare", "old.json", new]);
    let same = compare("old.json");
    assert!(same.well().contains("ns per packet") && !same.out.contains("WORSE"), "{same:?}");
    let mut slower: Value = serde_json::from_str(&old).unwrap();
    for time in slower["cost"]["time"]["values"].as_array_mut().unwrap() {
        *time = (time.as_f64().unwrap() * 10.0).into();
    }
    slower["environment"]["kernel"] = "another".into();
    folder.file("slower.json", slower.to_string());
    let worse = compare("slower.json");
    assert_eq!((worse.code, worse.err.as_str()), (Some(1), ""));
    assert!(worse.out.contains("WORSE") && worse.out.contains("! the kernel differs"), "{worse:?}");
    let json = folder.run(["bench", "--compare", "slower.json", "old.json", "--json"]);
    let json: Value = serde_json::from_str(json.well()).unwrap();
    assert_eq!(json["figures"][0]["verdict"], "better");
    // A difference within the tolerance is none.
    let tolerant = ["bench", "--compare", "old.json", "slower.json", "--tolerance", "1000"];
    assert_eq!(folder.run(tolerant).code, Some(0));
    let mut empty: Value = serde_json::from_str(&old).unwrap();
    empty["cost"] = Value::Null;
    for list in ["throughput", "latency", "sizes"] {
        empty[list] = Value::Array(Vec::new());
    }
    folder.file("empty.json", empty.to_string());
    assert!(compare("empty.json").refused().contains("no figure in common"));
    folder.file("none.json", "{}");
    assert!(compare("none.json").refused().contains("none.json: not a report"));
    assert!(compare("gone.json").refused().contains("gone.json: "));
    folder.file("later.json", old.replacen("\"bench\":1", "\"bench\":2", 1));
    assert!(compare("later.json").refused().contains("a report of version 2"));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = Folder::new();
    folder.file("c.pcap.gz", include_bytes!("../../../../examples/lan.pcap.gz"));
    // A capture without a packet.
    folder
        .file("empty.pcap", b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0");
    // It fails once it is measured: what is wrong with the command line comes first.
    const IDLE: &str = "FromDevice(in, ACTIVE false) -> ToDevice(out);";
    folder.file("file", "");
    let cases: [(&str, &[&str], &str); 13] = [
        (IDLE, &["--costs", "no/c.json"], "--costs: no/c.json: No such file or directory"),
        (IDLE, &["--costs", "file/c.json"], "--costs: file/c.json: Not a directory"),
        (IDLE, &["--html", "."], "--html .: is a folder"),
        (
            "FromDump(c.pcap.gz) -> ToDevice(out);",
            &["--sizes", "64"],
            "'c.pcap.gz' is read from a capture",
        ),
        (CHAIN, &["--html", "no/r.html"], "--html no/r.html: there is no folder no"),
        (
            CHAIN,
            &["--html", "r.json"],
            "--html r.json: the JSON document beside it would have this name",
        ),
        (CHAIN, &["--hgrm", "no/r"], "--hgrm no/r: there is no folder no"),
        (CHAIN, &["--in", "in=empty.pcap"], "empty.pcap: there are no packets in it"),
        (CHAIN, &["--in", "in=lo"], "'out' is bound to no interface"),
        (CHAIN, &["--in", "other=gen"], "no FromDevice of the chain has the name 'other'"),
        ("InfiniteSource -> Discard;", &[], "the chain has no FromDevice or FromDump"),
        (IDLE, &[], "takes no packets"),
        ("", &[], "no FromDevice or FromDump"),
    ];
    for (chain, arguments, expected) in cases {
        folder.file("a.click", chain);
        let ended = folder.run(["bench", "a.click"].iter().chain(arguments));
        assert!(ended.refused().contains(expected), "{expected}: {ended:?}");
        assert_eq!(ended.out, "");
    }
    folder.file("a.click", IDLE);
    let misuses: [(&[&str], &str); 14] = [
        (&["--min-mpps", "nan"], "'nan' for '--min-mpps <MPPS>': takes a number from 0 to"),
        (
            &["--max-p99-us", "inf"],
            "'inf' for '--max-p99-us <MICROSECONDS>': takes a number from 0",
        ),
        (&["--tolerance", "3"], "--tolerance is for --compare"),
        (&["--vs", "ovs"], "--vs ovs changes how the host forwards: it takes --veth"),
        (&["--vs", "a.click", "--vs-script", "file"], "no --vs names a peer"),
        (&["--veth", "--vs", "ovs", "--vs-script", "no.sh"], "--vs-script no.sh: No such"),
        (&["--veth", "--vs", "kernel:no.nft"], "there is no file 'no.nft' with nftables rules"),
        (&["--vs", "kernel:a.click"], "--vs kernel:a.click changes how the host forwards"),
        (&["--sizes", "63"], "sizes are 64 to 9220 bytes"),
        (&["--in", "in="], "--in takes NAME=VALUE"),
        (&["--trial", "0"], "takes a number from 0.001 to 60"),
        (&["--cpu", "1000000"], "--cpu: this process may not run on CPU 1000000"),
        (&["--cores", "1-0"], "--cores 1-0: takes CPU numbers"),
        (&["--traffic", "gen:flows=0"], "--traffic gen:flows=0"),
    ];
    for (arguments, expected) in misuses {
        let ended = folder.run(["bench", "a.click"].iter().chain(arguments));
        assert!(ended.misused().contains(expected), "{expected}: {ended:?}");
        assert_eq!(ended.out, "");
    }
    folder.file("a.click", "FromDevice(in) -> Nonsense;");
    assert!(folder.run(["bench", "a.click"]).refused().contains("Nonsense"));
    assert!(folder.run(["bench", "gone.click"]).refused().contains("gone.click"));
}

#[test]
fn an_interrupt_ends_it() {
    use rustix::process::{Pid, Signal, kill_process};

    let folder = Folder::new();
    folder.file("a.click", CHAIN);
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let child = command.args(["bench", "a.click", "--trial", "60"]).spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    // Once the signal is caught.
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (Signal::INT.as_raw() - 1)) != 0
    };
    while !catches() {
        std::thread::yield_now();
    }
    kill_process(pid, Signal::INT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.refused(), "error: interrupted: nothing is reported\n");
}

#[test]
fn chains_are_compared_in_the_same_rounds() {
    let folder = Folder::new();
    folder.file("b.click", "FromDevice(other) -> Discard;");
    folder.file("c.click", "Idle -> Discard;");
    let others = ["--vs", "b.click", "--vs", "c.click"];
    let ended = bench(&folder, &[&others[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(ended.well()).unwrap();
    let peers = report["peers"].as_array().unwrap();
    let [other, idle] = &peers[..] else { panic!("{report}") };
    assert_eq!(other["forwarded"], 0.0);
    let ratios = &other["ratios"][0];
    assert_eq!(ratios[0], "time per packet");
    let (ours, theirs) = (&report["cost"]["time"], &other["cost"]["time"]);
    let of = |samples: &Value, at: usize| samples["values"][at].as_f64().unwrap();
    assert!((of(&ratios[1], 3) - of(theirs, 3) / of(ours, 3)).abs() < 1e-9, "{report}");
    assert_eq!(idle["failed"], "it has no FromDevice or FromDump");
    let told = bench(&folder, &others);
    let told = told.well();
    assert!(
        told.contains("× as fast") && told.contains("! c.click: it has no FromDevice"),
        "{told}"
    );
}

#[test]
fn what_is_wrong_about_interfaces_is_said() {
    let folder = Folder::new();
    folder.file("a.click", CHAIN);
    folder.file("b.click", "FromDevice(a/b) -> ToDevice(out);");
    folder.file("c.click", "FromDump(x.pcap) -> ToDevice(out);");
    folder.file("d.click", "FromDevice(lo) -> ToDevice(out);");
    folder.file("x.pcap", include_bytes!("../../../../examples/lan.pcap.gz"));
    for (arguments, why) in [
        (&["a.click", "--in", "in=gen:flows=", "--veth"][..], "--in in=gen:flows="),
        (
            &["a.click", "--in", "gen:flows=1", "--veth"],
            "--traffic gen:flows=1 is offered to all inputs",
        ),
        (&["a.click", "--in", "nosuch0"], "there is no interface 'nosuch0'"),
        (&["a.click", "--in", "lo", "--veth"], "--veth makes interfaces"),
        (&["a.click", "--in", "lo", "--out", "lo"], "--via FROM,TO"),
        (&["a.click", "--in", "x=lo", "--out", "lo"], "no input of the chain has the name 'x'"),
        (&["a.click", "--in", "lo", "--out", "lo", "--vs", "kernel"], "it takes --veth"),
        (&["a.click", "--out", "x.pcap"], "takes an interface"),
        (&["a.click", "--io", "af-xdp"], "are for interfaces"),
        (&["a.click", "--cores", "0,1", "--vs", "b.click"], "takes neither --cpu nor --vs"),
        (&["a.click", "--veth", "--cores", "9999"], "there is no CPU 9999"),
        (&["a.click", "--vs", "nosuch"], "--vs nosuch: neither a file nor kernel"),
        (&["--via", "eth0"], "the tester's two interfaces"),
        (&["b.click", "--veth"], "cannot be an interface's name"),
        (&["d.click", "--veth"], "'lo' cannot be an interface's name"),
        (&["c.click", "--veth"], "over interfaces it reads interfaces only"),
    ] {
        let ended = folder.run([&["bench"], arguments].concat());
        assert_ne!(ended.code, Some(0), "{arguments:?}");
        assert!(ended.err.contains(why), "{arguments:?}: {}", ended.err);
    }
}

/// Every worker has flows of its own.
#[test]
fn several_cores_are_measured_together() {
    let folder = Folder::new();
    let traffic = ["--in", "in=gen:flows=100,count=1000,size=96", "--cores", "0,1", "--json"];
    let ended = bench(&folder, &traffic);
    let report: Value = serde_json::from_str(ended.well()).unwrap();
    assert_eq!(
        (&report["cores"], &report["place"]),
        (&2.into(), &"in memory, 2 cores, no network card".into())
    );
    assert_eq!(report["traffic"][0]["frames"], 1000);
    // 16 of the 100 flows are of the host that is denied, in the shares of both workers together.
    assert!((report["forwarded"].as_f64().unwrap() - 0.84).abs() < 0.05, "{report}");
    assert_eq!(report["cost"]["time"]["values"].as_array().unwrap().len(), 21);
    assert_eq!(report["throughput"].as_array().unwrap().len(), 2);
    let told = bench(&folder, &traffic[..4]);
    assert!(told.well().contains("NDR of each of 2 cores: "), "{told:?}");
    // Costs are the first core's, while the other works.
    let costs = bench(&folder, &["--cores", "0,1", "--costs", "two.json"]);
    assert!(costs.well().contains(", while 2 cores work\n"), "{costs:?}");
    let two: CostProfile = serde_json::from_str(&folder.read("two.json")).unwrap();
    assert_eq!((two.cores, two.functions[0].name.as_str()), (2, "fw"));
    // One flow is one worker's.
    let one = bench(&folder, &["--in", "in=gen:flows=1,count=10", "--cores", "0,1"]);
    assert!(one.refused().contains("no flow goes to worker"), "{one:?}");
}
