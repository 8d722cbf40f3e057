//! `catena sim`.

use serde_json::Value;

use crate::program::Folder;

const RACK: &str = "\
servers:
  s1: { cores: 8, clock: 2.8 GHz, ports: { eth0: { rate: 100 Gbps, delay: 2.5 us } } }
";

const TRACE: &str = "gen:flows=500,size=imix,rate=300k,count=100k";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("rack.yaml", RACK);
    folder
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["sim", "run", "rack.yaml", "--trace", TRACE, "--arrivals", "bursts=200us:1ms"], more]
        .concat()
}

const IRONSIDE: [&str; 4] = ["--policy", "ironside", "--slo", "p99=500us"];

#[test]
fn a_run_says_what_came_of_it_and_again_the_same() {
    let folder = folder();
    let ran = folder.run(run(&[&IRONSIDE[..], &["--report", "out"]].concat()));
    for expected in
        ["100000 packets of 500 flows", "ironside", "500.0", "times that flows were lent"]
    {
        assert!(ran.well().contains(expected), "{expected}\n{}", ran.out);
    }
    let report = folder.read("out/report.json");
    let document: Value = serde_json::from_str(&report).unwrap();
    let of = &document["runs"][0];
    assert_eq!((&of["packets"], &of["out_of_order"]), (&100_000.into(), &0.into()));
    assert!(of["latency"]["p99"].as_u64().unwrap() <= 500_000, "{of}");
    assert_eq!(document["constants"]["metron"]["over"], 0.75);
    folder.run(run(&[&IRONSIDE[..], &["--report", "again"]].concat())).well();
    assert!(folder.read("again/report.json") == report, "the same seed, other bytes");
}

#[test]
fn policies_are_compared_and_drawn() {
    let folder = folder();
    let compare = [
        "sim",
        "compare",
        "rack.yaml",
        "--trace",
        TRACE,
        "--policies",
        "static-peak,rss++,ironside,oracle",
        "--slo",
        "200us..400us",
        "--report",
        "out",
    ];
    let text = folder.run(compare);
    for expected in ["static-peak", "350.0", "oracle"] {
        assert!(text.well().contains(expected), "{expected}\n{}", text.out);
    }
    assert!(folder.read("out/latency.svg").contains("ironside"));
    assert!(folder.read("out/cores.svg").contains("rss++"));
}

#[test]
fn a_capture_is_a_trace_and_constants_can_be_set() {
    let folder = folder();
    let made = folder.run(["gen", TRACE, "--out", "t.pcap", "--arrivals", "poisson"]);
    made.well();
    let capture = [
        "sim",
        "run",
        "rack.yaml",
        "--trace",
        "t.pcap",
        "--policy",
        "quadrant",
        "--slo",
        "p99=300us",
    ];
    assert!(folder.run(capture).well().contains("100000 packets of 500 flows"));
    let slower =
        [&capture[..], &["--set", "rack.ring=32", "--set", "chain.touch=90000", "--json"]].concat();
    let document: Value = serde_json::from_str(folder.run(slower).well()).unwrap();
    assert!(document["runs"][0]["lost"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(document["constants"]["chain"]["touch"], 90_000);
    let listed = folder.run([&capture[..], &["--set", "list"]].concat());
    assert!(listed.well().contains("quadrant.alpha=0.6\n"), "{}", listed.out);
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder();
    let cases: [(&[&str], &str); 7] = [
        (&["--policy", "ironsides", "--slo", "1ms"], "there is no policy 'ironsides'"),
        (&["--policy", "ironside", "--slo", "5"], "'5' has no unit"),
        (&["--policy", "oracle", "--slo", "1ms"], "`oracle` is for comparing"),
        (
            &["--policy", "rss", "--slo", "1ms", "--set", "metron.ovr=1"],
            "there is no 'ovr': did you mean 'over'?",
        ),
        (
            &["--policy", "rss", "--slo", "1ms", "--set", "rack.ring=0"],
            "rack.ring and rack.queue are above 0",
        ),
        (&["--policy", "rss", "--slo", "1ms", "--set", "rack.ring=x"], "'x' cannot replace 2048"),
        (&["--policy", "rss", "--slo", "1ms", "--set", "metron.pause=-1"], "--set: "),
    ];
    for (arguments, expected) in cases {
        let found = folder.run(run(arguments));
        assert!(found.misused().contains(expected), "{expected}\n{}", found.err);
    }
    let tight = folder.run(run(&["--policy", "rss", "--slo", "2us"]));
    assert!(
        tight.refused().contains("an SLO of 2 us is less than one packet takes alone"),
        "{}",
        tight.err
    );
    let many = folder.run(run(&["--policy", "rss", "--slo", "1ms", "--cores", "9"]));
    assert!(many.refused().contains("9 cores are asked for, and the rack has 8"));
    folder.file("rack.yaml", "servers:\n  s1: { cores: 8, ports: { eth0: {} } }\n");
    let rack = folder.run(run(&IRONSIDE));
    assert!(rack.refused().contains("rack.yaml:2:"), "{}", rack.err);
    folder.file("rack.yaml", RACK);
    let other = ["sim", "run", "rack.yaml", "--policy", "rss", "--slo", "1ms", "--trace"];
    for (trace, expected) in [
        ("gen:rate=0", "say how many packets come in a second"),
        ("backbone", "--trace backbone has no end"),
    ] {
        let found = folder.run(other.into_iter().chain([trace]));
        assert!(found.misused().contains(expected), "{}", found.err);
    }
    assert!(folder.run(other.into_iter().chain(["rack.yaml"])).refused().contains("rack.yaml"));
}

#[test]
fn what_superbursts_do_stands_beside_what_is_published() {
    let folder = folder();
    let fit = folder.run(["sim", "fit", "as", "--time", "20ms"]);
    for expected in ["whales", "minnows", "14558.0", "25 %"] {
        assert!(fit.well().contains(expected), "{expected}\n{}", fit.out);
    }
    folder.run(["gen", TRACE, "--out", "t.pcap", "--arrivals", "poisson"]).well();
    let of_capture = folder.run(["sim", "fit", "t.pcap"]);
    assert!(of_capture.well().contains("500 flows") && !of_capture.out.contains("published"));
    let wrong = folder.run(["sim", "fit", "t.pcap", "--tries", "3"]);
    assert!(wrong.err.contains("are for generated traffic"), "{}", wrong.err);
}

#[test]
fn a_capture_is_played_faster() {
    let folder = folder();
    folder.run(["gen", TRACE, "--out", "t.pcap", "--arrivals", "poisson"]).well();
    let cores = |speed: &str| {
        let mut run = vec!["sim", "run", "rack.yaml", "--trace", "t.pcap", "--speed", speed];
        run.extend(IRONSIDE);
        let run = folder.run(run.into_iter().chain(["--json"]));
        let document: Value = serde_json::from_str(run.well()).unwrap();
        document["runs"][0]["time"].as_u64().unwrap()
    };
    let (once, twice) = (cores("1"), cores("2"));
    assert!(once.abs_diff(2 * twice) <= 2, "{once} {twice}");
    let wrong = folder.run(run(&[&IRONSIDE[..], &["--speed", "2"]].concat()));
    assert!(wrong.err.contains("--speed is for captures"), "{}", wrong.err);
}
