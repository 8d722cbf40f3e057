//! `catena run` to the end of its input.

use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::program::Folder;

#[test]
fn what_is_printed_is_complete_however_slowly_it_is_read() {
    let folder = Folder::new();
    folder.file("c.click", "InfiniteSource(LENGTH 1400, LIMIT 2000) -> Print(x, -1) -> Discard;");
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let mut child = command.args(["run", "c.click"]).spawn().unwrap();
    let (mut said, mut lines) = (child.stderr.take().unwrap(), 0);
    let mut piece = [0; 16];
    loop {
        match said.read(&mut piece).unwrap() {
            0 => break,
            n => lines += piece[..n].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(lines, 2000);
}

/// Nothing but captures and generated traffic comes in: what is random is the same every time.
#[test]
fn runs_without_interfaces_repeat() {
    let folder = Folder::new();
    folder.file("c.click", "Script(print $(random 0 2000000000), stop);");
    let drawn = |more: &[&str]| {
        let ended = folder.run(["run", "c.click", "-q"].iter().chain(more));
        ended.well().to_string()
    };
    assert_eq!(drawn(&[]), drawn(&["--seed", "0"]));
    assert_ne!(drawn(&[]), drawn(&["--seed", "1"]));
}

/// A policy has other workers only where packets can go to them.
#[test]
fn what_cannot_be_scaled_is_refused() {
    let folder = Folder::new();
    folder.file("c.click", "FromDevice(lan) -> Discard;").file("log", "");
    let run = ["run", "c.click", "--in", "lan=gen:count=10", "--cores", "0,1"];
    for (options, why) in [
        (&["--scale", "rss++"][..], "only packets of interfaces can go to other workers"),
        (&["--scale", "rs++"], "did you mean 'rss++'?"),
        (&["--scale", "rss++", "--scale-set", "rss_plus_plus.targt=1"], "mean 'target'?"),
        (&["--scale-log", "log"], "--scale <POLICY>"),
    ] {
        let refused = folder.run(run.iter().chain(options));
        assert!(refused.code > Some(0), "{options:?}");
        assert!(refused.err.contains(why), "{options:?}: {}", refused.err);
    }
    for (options, why) in [
        (["replay", "log", "--policy", "hpa"], "log: it is empty"),
        (["replay", "c.click", "--policy", "hpa"], "c.click:1: what was seen and decided"),
        (["replay", "none", "--policy", "hpa"], "none: No such file"),
    ] {
        let refused = folder.run(["scale"].iter().chain(&options));
        assert!(refused.refused().contains(why), "{options:?}: {}", refused.err);
    }
}

#[test]
fn drops_are_told_in_the_same_order_synthesised_or_not() {
    let folder = Folder::new();
    // Each comes to drop for another reason first.
    let chain = "tiny :: CheckIPHeader -> Discard; wrong :: CheckIPHeader -> Discard;
        InfiniteSource(LENGTH 40, LIMIT 3) -> wrong; InfiniteSource(LENGTH 10, LIMIT 2) -> wrong;
        InfiniteSource(LENGTH 10, LIMIT 3) -> tiny; InfiniteSource(LENGTH 40, LIMIT 2) -> tiny;";
    folder.file("c.click", chain);
    let dropped = |more: &[&str]| {
        let ended = folder.run(["run", "c.click", "--json"].iter().chain(more));
        let told: serde_json::Value = serde_json::from_str(ended.well()).unwrap();
        told["dropped"].clone()
    };
    let synthesised = dropped(&[]);
    assert_eq!(synthesised.as_array().unwrap().len(), 4, "{synthesised}");
    assert_eq!(synthesised, dropped(&["--no-synthesis"]));
}

/// A signal while a chain is synthesised and proven ends the run at once, and not after it: packets
/// never pass.
#[test]
fn a_signal_ends_a_start_in_the_middle() {
    // Enough of them for synthesis and proof to take many times as long as to look at a file.
    let routes: Vec<String> = (0u32..60_000)
        .map(|n| {
            format!("{}/24 172.16.{}.{} 0", Ipv4Addr::from((20 << 24) + (n << 8)), n >> 8, n & 255)
        })
        .collect();
    let chain = format!(
        "InfiniteSource(LIMIT 5, STOP true) -> CheckIPHeader -> DecIPTTL -> GetIPAddress(16)
         -> RadixIPLookup({}) -> arp :: ARPQuerier(10.0.0.1, 00:00:00:00:00:01) -> Discard;
         Idle -> [1] arp; ControlSocket(unix, element);",
        routes.join(", ")
    );
    for (signal, number) in [("-TERM", 15), ("-INT", 2)] {
        let folder = Folder::new();
        folder.file("c.click", &chain);
        let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
        let options = ["run", "c.click", "--control", "control", "-u", "option"];
        let mut child = command.args(options).spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        // It is in its thread that a worker's programs are made.
        let makes_programs = || {
            let tasks = std::fs::read_dir(&tasks).unwrap().flatten();
            let mut names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
            names.any(|name| name.is_ok_and(|name| name == "worker 0\n"))
        };
        while !makes_programs() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(number), "{ended:?}");
        assert!(ended.stdout.is_empty(), "a summary: {ended:?}");
        let left = ["control", "option", "element"].map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false; 3], "sockets that are left");
    }
}
