//! `catena netbench`: switches between applications, against the kernel's counters.

use std::path::Path;
use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::CATENA;

pub(crate) fn netbench(arguments: &[&str]) -> Command {
    let mut command = Command::new(CATENA.0);
    command.arg("netbench").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run printed as JSON, and what it said. Settings of the host stay: tests run beside each other.
#[track_caller]
fn measured(arguments: &[&str]) -> (Value, String) {
    let process =
        Process::start(&mut netbench(&[&["run", "--json", "--keep-settings"], arguments].concat()));
    let name = format!("netbench{}-", process.id());
    let (code, text, told) = process.ended();
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(left(&name), Vec::<String>::new());
    (serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}")), told)
}

/// The only cell of a run with its parts, without what is long.
pub(crate) fn short(of: &Value) -> String {
    let mut of = of.clone();
    for sample in of["samples"].as_array_mut().into_iter().flatten() {
        sample["round_trips"]["distribution"] = Value::Null;
    }
    of.to_string()
}

/// Namespaces and journals of a run that are there.
pub(crate) fn left(name: &str) -> Vec<String> {
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
pub(crate) fn count(of: &Value, what: &str) -> u64 {
    of[what].as_u64().unwrap_or_else(|| panic!("{what}: {of}"))
}

/// What applications say they sent and received is what the kernel counted, to the packet, through every switch.
#[test]
fn packets_are_those_that_the_kernel_counts() {
    if !possible() {
        return;
    }
    let load = ["--rate", "10k", "--burst", "4", "--seconds", "0.2", "--repeat", "1"];
    let switches = ["--switch", "direct,linux-bridge,ovs", "--size"];
    let sockets = ["1514", "--io", "udp,udp-mmsg,af-packet", "--direction", "back"];
    for (more, least) in [
        (&["--size", "64,1514"][..], 12),
        (&["--pairs", "2", "--size", "60", "--touch", "--direction", "both"], 6),
        (&[&switches[..], &sockets].concat(), 9),
        // A switch that has no ports for TAP interfaces is left out.
        (&["--size", "64,1514", "--io", "tap"], 10),
    ] {
        let (results, told) = measured(&[&load[..], more].concat());
        assert!(told.contains("applications share"), "{told}");
        let cells = results["cells"].as_array().unwrap();
        assert!(cells.len() >= least, "{}", cells.len());
        for cell in cells {
            let sample = &cell["samples"][0];
            let all = &sample["throughput"];
            let pairs = count(cell, "pairs");
            assert_eq!(count(all, "attempted"), pairs * 2000, "{}", short(cell));
            assert_eq!(count(all, "sent"), count(all, "counted_sent"), "{}", short(cell));
            let came = count(all, "received") + count(all, "overrun");
            // Entries that Open vSwitch made before it knew an address flood for a while.
            let others = if cell["switch"].as_str().is_some_and(|name| name.starts_with("ovs-")) {
                (pairs - 1) * 2000 * pairs
            } else {
                0
            };
            let counted = count(all, "counted_received");
            assert!((came..=came + others).contains(&counted), "{}", short(cell));
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

/// Losses, duplicates and reordering of a chain are measured as they are, and distinguished.
#[test]
fn what_a_chain_does_to_packets_is_distinguished() {
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

/// Runs two cells, and kills a process once it is there. One cell fails, and the other is measured: the switch of the one that failed,
/// why, and what was told.
#[track_caller]
fn killed(switches: &str, victim: impl Fn(u32) -> Option<u32>) -> (String, String, String) {
    let arguments = ["run", "--switch", switches, "--size", "64", "--throughput", "--json"];
    let more = ["--seconds", "1", "--repeat", "1", "--keep-settings"];
    let run = Process::start(&mut netbench(&[&arguments[..], &more].concat()));
    let mut found = None;
    until("the process runs", || {
        found = victim(run.id());
        found.is_some()
    });
    let pid = found.and_then(|number| Pid::from_raw(number as i32)).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let name = format!("netbench{}-", run.id());
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(1), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let count = |cell: &Value, of: &str| cell[of].as_array().unwrap().len();
    let (failed, went): (Vec<&Value>, Vec<&Value>) =
        results["cells"].as_array().unwrap().iter().partition(|cell| count(cell, "failures") > 0);
    let counts = |cells: &[&Value]| -> Vec<_> {
        cells.iter().map(|cell| (count(cell, "failures"), count(cell, "samples"))).collect()
    };
    assert_eq!((counts(&failed), counts(&went)), (vec![(1, 0)], vec![(0, 1)]), "{told}");
    assert_eq!(left(&name), Vec::<String>::new());
    let text = |of: &Value| of.as_str().unwrap().to_string();
    (text(&failed[0]["switch"]), text(&failed[0]["failures"][0]), told)
}

/// An application that is killed fails its cell, with a reason; others are measured.
#[test]
fn an_application_that_dies_fails_its_cell_alone() {
    if !possible() {
        return;
    }
    let receiver = |run| applications(run, "recv").first().copied();
    let (_, why, told) = killed("direct,linux-bridge", receiver);
    assert!(why.contains("recv of pair 1 ended (signal: 9"), "{why}");
    assert!(told.contains("failed: recv of pair 1"), "{told}");
}

/// A switch that is killed fails its cell, with a reason; others are measured.
#[test]
fn a_switch_that_dies_fails_its_cell_alone() {
    if !possible() {
        return;
    }
    // Once applications run, it has started.
    let switch = |run| applications(run, "send").first().and(applications(run, "run").pop());
    let (failed, why, _) = killed("catena-af-packet,linux-bridge", switch);
    assert_eq!(failed, "catena-af-packet");
    assert!(why.contains("the switch ended (signal 9 ended it)"), "{why}");
}

/// Ctrl-C takes everything down and reports what was measured; after kill -9, the next command takes it down.
#[test]
fn nothing_is_left_behind() {
    if !possible() {
        return;
    }
    // Interrupts are moved meanwhile, if there is one that can be, and then are where they were.
    let affinity = || {
        let all = std::fs::read_dir("/proc/irq").unwrap().flatten();
        let read = |entry: std::fs::DirEntry| {
            std::fs::read_to_string(entry.path().join("smp_affinity_list")).ok()
        };
        let mut all: Vec<_> = all.map(|entry| (entry.path(), read(entry))).collect();
        all.sort();
        all
    };
    let before = affinity();
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

    assert!(results["settings"].as_array().is_some_and(|all| !all.is_empty()), "{results}");
    assert_eq!(affinity(), before);
    let run = start();
    let name = format!("netbench{}-", run.id());
    until("a namespace is there", || left(&name).iter().any(|path| path.contains("netns")));
    let settings = results["settings"].as_array().into_iter().flatten();
    let moves = settings
        .filter_map(Value::as_str)
        .any(|of| of.starts_with("interrupts: ") && !of.starts_with("interrupts: 0 "));
    let is_everywhere = |(_, list): &(_, Option<String>)| {
        list.as_ref().is_some_and(|list| list.contains(['-', ',']))
    };
    if moves && before.iter().all(is_everywhere) {
        assert_ne!(affinity(), before);
    }
    run.kill();
    // Another run may take it down, too.
    until("it is taken down", || {
        let (code, _, told) = Process::start(&mut netbench(&["clean"])).ended();
        assert_eq!(code, Some(0), "{told}");
        left(&name).is_empty()
    });
    assert_eq!(affinity(), before);
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
    // What else is measured stands beside what is there.
    let other = ["--size", "64", "--io", "udp", "--repeat", "1", "--resume"];
    let (fourth, _) = measured(&[&load[..], &other].concat());
    assert_eq!(fourth["cells"].as_array().unwrap()[1..], second["cells"].as_array().unwrap()[..]);
    assert_eq!(fourth["cells"][0]["io"], "udp");
    std::fs::write(format!("{folder}/results.json"), "{\"version\": 99}").unwrap();
    let (code, _, told) = report(&[&folder]);
    assert!(code == Some(1) && told.contains("results of version 99"), "{told}");
}

/// What cannot be measured is refused with what would do.
#[test]
fn bad_input_is_refused() {
    for (arguments, expected) in [
        (&["--switch", "linux-brigde"][..], "did you mean 'linux-bridge'?"),
        (&["--switch", "hub"], "--switch hub: there is no switch 'hub'; the switches are direct,"),
        (
            &["--size", "60..1514+1", "--burst", "1..256+1"],
            "error: there are more than 100000 combinations: take fewer values",
        ),
        (&["--switch", "catena:/nowhere.click"], "there is no chain /nowhere.click"),
        (&["--size", "59"], "--size 59: takes 60 to 1514"),
        (&["--size", "1500..64"], "takes numbers with commas between them"),
        (&["--pairs", "65"], "--pairs 65: takes 1 to 64"),
        (&["--cores-for-switch", "1000"], "--cores-for-switch 1000: takes 1 to"),
        (&["--rate", "10%"], "takes numbers with commas between them"),
        (&["--io", "af-xpd"], "the modes are auto"),
        (&["--seconds", "0"], "takes seconds from 0.01"),
        (&["--direction", "up"], "'up': takes there, back, both"),
        (&["--container", "runk"], "did you mean 'runc'?"),
        (&["--switch", "sriov:nothing"], "it needs a card with virtual functions"),
        (
            &["--switch", "direct,macvlan", "--io", "tap"],
            "macvlan is not measured with --io tap: its ports are interfaces, not TAP interfaces",
        ),
        (
            &["--switch", "linux-bridge", "--io", "tap", "--container", "runc"],
            "takes --container plain",
        ),
        #[cfg(not(feature = "dpdk"))]
        (&["--io", "virtio-user"], "it needs a build with the feature dpdk"),
        #[cfg(not(feature = "dpdk"))]
        (&["--switch", "catena-vhost"], "it needs a build with the feature dpdk"),
    ] {
        let (code, text, told) =
            Process::start(&mut netbench(&[&["run"], arguments].concat())).ended();
        assert_eq!(code, Some(2), "{arguments:?}: {told}{text}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

/// A test set, with the containers of Ara's framework: two pairs, of which one is measured for throughput and one for round
/// trips at once, with the addresses that the file says.
#[test]
fn a_test_set_has_containers_of_a_file() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let containers = network.file(
        "containers",
        "LXC_CONT_NAMES=( a b c d far )
         LXC_CONT_MACS=( 02:00:00:00:01:00 02:00:00:00:01:01 02:00:00:00:01:02 02:00:00:00:01:03 02:00:00:00:01:04 )
         LXC_CONT_IPS=( 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 )
         LXC_CONT_OTHER_IPS=( 192.0.2.2 192.0.2.1 192.0.2.4 192.0.2.3 192.0.2.9 )
         LXC_CONT_OTHER_MACS=( 02:00:00:00:01:01 02:00:00:00:01:00 02:00:00:00:01:03 02:00:00:00:01:02 02:00:00:00:01:09 )
         LXC_CONT_CMDNAMES=( recv send client server send )\n",
    );
    let containers = containers.file_name().unwrap().to_string_lossy().into_owned();
    let text = "kind: TestSet
repeat: 1
containers: FILE
defaults: {seconds: 0.1, warm-up: 0.05, rate: 10k, burst: 4}
sets:
  - {switch: [linux-bridge, catena], size: 64}
  - {switch: linux-bridge, size: [64, 128], io: udp}\n";
    let set = network.file("set", &text.replace("FILE", &containers));
    let set = set.display().to_string();
    let (results, told) = measured(&[&set]);
    assert!(told.contains("far is left out: 192.0.2.9 is no container of this host"), "{told}");
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert_eq!(count(cell, "pairs"), 2);
        let sample = &cell["samples"][0];
        let all = &sample["throughput"];
        // One pair is of a sender: its packets alone are counted.
        assert_eq!((count(all, "sent"), all["pairs"].as_array().unwrap().len()), (1000, 1));
        assert_eq!(count(all, "counted_sent"), 1000, "{}", short(cell));
        assert_eq!(count(&sample["round_trips"], "sent"), 1000, "{}", short(cell));
    }
    // Options stand above what the file says.
    let (results, _) = measured(&[&set, "--switch", "direct", "--size", "60", "--io", "af-packet"]);
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!((&cells[0]["switch"], &cells[0]["io"]), (&"direct".into(), &"af-packet".into()));

    for (text, expected) in [
        ("kind: TestSet\nsets: [{sise: 64}]\n", ":2:"),
        ("LXC_CONT_NAMES=( a b\n", "this array has no `)`"),
        ("", "a test set begins with `kind: TestSet`"),
    ] {
        let file = network.file("set", text).display().to_string();
        let (code, _, told) = Process::start(&mut netbench(&["run", &file])).ended();
        assert!(code == Some(1) && told.contains(expected), "{code:?} {told}");
    }
    let run = Process::start(&mut netbench(&["run", &set, "--pairs", "3"]));
    assert_ne!(run.ended().0, Some(0));
}

/// Applications by hand, over UDP sockets of this host: what is done each second is told, unless they are to be silent.
#[test]
fn applications_tell_what_they_do_each_second() {
    if !possible() {
        return;
    }
    const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
    let at = |process: &str, [own, other]: [&str; 2], more: &[&str]| {
        let addresses = [process, own, MACS[0], other, MACS[1]];
        Process::start(&mut netbench(&[&addresses[..], more].concat()))
    };
    let there = ["127.90.0.1", "127.90.0.2"];
    let back = [there[1], there[0]];
    let listens = || {
        let sockets = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
        sockets.contains("02005A7F:0009")
    };
    let server = at("server", back, &["-B"]);
    until("the server listens", listens);
    let more = ["--rate", "1k", "--burst", "4", "--seconds", "1.5", "-m"];
    let (code, text, told) = at("client", there, &more).ended();
    assert_eq!(code, Some(0), "{told}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("dropped 0, received") && first.contains("mean round trip"), "{text}");
    assert!(text.contains("received: 1,500 packets"), "{text}");
    server.interrupt();
    let (code, text, _) = server.ended();
    assert!(code == Some(0) && text.starts_with("received: 1,500 packets"), "{text}");

    let receiver = at("recv", back, &["--silent"]);
    until("the receiver listens", listens);
    let (code, text, told) = at("send", there, &["--rate", "1k", "--seconds", "1.5"]).ended();
    assert_eq!(code, Some(0), "{told}");
    assert!(text.contains("attempted 1,0") && text.contains("sent: 1,5"), "{text}");
    receiver.interrupt();
    let (code, text, _) = receiver.ended();
    assert!(code == Some(0) && text.starts_with("received: "), "{text}");
    for (more, expected) in [
        (&["--io", "af-packet"][..], "--io af-packet: needs an interface, --raw"),
        (&["--io", "udp", "--raw", "lo"], "chooses the interface, not --raw lo"),
    ] {
        let (code, _, told) = at("send", there, more).ended();
        assert!(code == Some(2) && told.contains(expected), "{told}");
    }
    // The port of another, and an address of nobody (RFC 5737).
    let _taken = std::net::UdpSocket::bind((there[0], 9)).unwrap();
    for (addresses, expected) in [
        (there, "another program has this address and port"),
        (["192.0.2.1", there[1]], "no interface here has this address"),
    ] {
        let (code, _, told) = at("send", addresses, &["--seconds", "0.1"]).ended();
        assert!(code == Some(1) && told.contains(expected), "{told}");
    }
}

/// What a dry run prints measures what a run does, for every switch that is here.
#[test]
fn a_dry_run_prints_what_would_be_run() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let here = CATENA.netbench_switches();
    // In a build with DPDK, other switches are here, too: they have a test of their own.
    let here = here.iter().filter(|name| !name.ends_with("vhost") && !name.ends_with("memif"));
    for switch in here {
        match switch.as_str() {
            // A shell does not see when it is there: on a busy host, packets come before.
            "testpmd" => drop(CATENA.netbench_dry_run(&network, &["--switch", switch])),
            _ => CATENA.netbench_by_hand(&network, switch, &[]),
        }
    }
    for (switch, io) in [("linux-bridge", "udp"), ("ovs", "udp"), ("catena", "tap")] {
        CATENA.netbench_by_hand(&network, switch, &["--io", io]);
    }
}

/// A dry run names switches that are not here, without making anything up.
#[test]
fn a_dry_run_of_a_switch_that_is_not_here_says_so() {
    let network = Network::new(&[]);
    for (switch, line) in [
        ("vpp", "set interface l2 bridge host-p1 1"),
        ("snabb", "config.link(c, \"bridge.p1 -> p1_nic.rx\")"),
        ("bess", "switch.add(entries=[{'addr': '02:00:00:00:00:01', 'gate': 1}])"),
        ("sriov", "vf 1 mac 02:00:00:00:00:01"),
        ("vale", "vale-ctl -a vale0:p1"),
        ("ipvlan", "type ipvlan mode l2"),
    ] {
        let script = CATENA.netbench_dry_run(&network, &["--switch", switch]);
        for expected in ["# untested", "# not here: it needs ", line] {
            assert!(script.contains(expected), "{switch}: no {expected}: {script}");
        }
    }
}
