//! Instances that run, controlled from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command};

use serde_json::Value;

use crate::program::{Ended, Folder};

/// A chain of which the source ends and nothing else does.
const CHAIN: &str = "src :: InfiniteSource(LIMIT 1000, STOP false) -> c :: Counter
    -> s :: Switch(0) -> d :: Discard; s[1] -> e :: Counter -> Discard;";

/// An instance; it is ended with the test.
struct Instance<'a> {
    folder: &'a Folder,
    child: Child,
    said: BufReader<ChildStderr>,
}

impl<'a> Instance<'a> {
    /// Starts `chain.click` and waits until it says where it is controlled.
    fn start(folder: &'a Folder, options: &[&str]) -> (Self, Vec<String>) {
        let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
        command.args(["run", "chain.click", "--control", "s"]).args(options);
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut instance = Self { folder, child, said };
        let lines = 1 + usize::from(options.contains(&"--metrics"));
        let lines = (0..lines).map(|_| instance.line()).collect();
        (instance, lines)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended");
        line.trim_end().to_string()
    }

    /// Hears that what it was told to reload was not taken over.
    #[track_caller]
    fn refuses_to_reload(&mut self) {
        loop {
            let line = self.line();
            assert!(!line.contains("swapped in"), "{line}");
            if line.ends_with("the running chain continues") {
                break;
            }
        }
    }

    /// Sends it SIGHUP.
    fn hang_up(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    #[track_caller]
    fn ctl(&self, arguments: &[&str]) -> Ended {
        let all = ["ctl", "--socket", "s"].iter().chain(arguments);
        self.folder.run(all)
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.ctl(arguments);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{arguments:?}");
        ended.out
    }

    /// Waits until a handler reads this.
    #[track_caller]
    fn until(&self, handler: &str, value: &str) {
        while self.ok(&["read", handler]).trim_end() != value {}
    }

    fn stop(mut self) -> (Option<i32>, String) {
        self.ok(&["stop"]);
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out)
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_chain_is_read_written_changed_and_ended() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, said) = Instance::start(&folder, &[]);
    assert_eq!(said, ["control: s"]);
    instance.until("c.count", "1000");
    // Handlers.
    assert_eq!(instance.ok(&["read", "s.switch"]), "0\n");
    assert_eq!(instance.ok(&["write", "s.switch", "1"]), "");
    assert_eq!(instance.ok(&["--json", "read", "s.switch"]), "\"1\"\n");
    let listed = instance.ok(&["handlers", "c"]);
    assert!(
        listed.contains("count  read\n") && listed.contains("reset_counts  write\n"),
        "{listed}"
    );
    assert!(instance.ok(&["handlers"]).contains("s.switch  read, write\n"));
    let wrong = instance.ctl(&["read", "c.nothing"]);
    assert_eq!(
        (wrong.code, wrong.err.as_str()),
        (Some(1), "error: no handler named 'c.nothing'\n")
    );
    // Counters.
    let counters: Value = serde_json::from_str(&instance.ok(&["counters", "--json"])).unwrap();
    let element = |name: &str| {
        let all = counters["all"]["elements"].as_array().unwrap();
        all.iter().find(|e| e["name"] == name).unwrap().clone()
    };
    assert_eq!(element("c")["counted"]["packets"], 1000);
    assert_eq!(element("d")["dropped"]["discarded"], 1000);
    let shown = instance.ok(&["counters"]);
    assert!(shown.contains("1,000") && shown.contains("discarded"), "{shown}");
    // A change: what would be lost is told before.
    folder
        .file("next.click", CHAIN.replace("e :: Counter", "e2 :: Counter").replace("1000", "1500"));
    let tried = instance.ok(&["swap", "next.click", "--check"]);
    assert!(tried.contains("lost   e") && tried.contains("nothing was changed"), "{tried}");
    assert!(instance.ok(&["status"]).contains("configuration number 1"));
    let done: Value =
        serde_json::from_str(&instance.ok(&["--json", "swap", "next.click"])).unwrap();
    assert_eq!((&done["changed"], &done["loses"]), (&Value::Bool(true), &Value::Bool(true)));
    let fate = |name: &str| {
        let plan = done["plan"].as_array().unwrap();
        plan.iter().find(|line| line["element"] == name).unwrap()["fate"].clone()
    };
    assert_eq!((fate("c"), fate("e"), fate("e2")), ("kept".into(), "lost".into(), "new".into()));
    assert!(done["standstill_ms"][0].as_f64().is_some());
    // What was counted goes on, the switch stands where it stood.
    assert_eq!(instance.ok(&["read", "s.switch"]), "1\n");
    instance.until("c.count", "2500");
    let counters: Value = serde_json::from_str(&instance.ok(&["counters", "--json"])).unwrap();
    let elements = counters["all"]["elements"].as_array().unwrap();
    let came =
        |name: &str| elements.iter().find(|e| e["name"] == name).unwrap()["packets"].as_u64();
    assert_eq!([came("c"), came("s"), came("e2")], [Some(2500), Some(2500), Some(1500)]);
    // Something wrong is refused.
    folder.file("wrong.click", "c :: Counter(;");
    let wrong = instance.ctl(&["swap", "wrong.click"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("wrong.click:1"), "{}", wrong.err);
    assert!(instance.ctl(&["swap", "absent.click"]).err.contains("absent.click"));
    assert!(instance.ok(&["status"]).contains("configuration number 2"));
    // And back.
    instance.ok(&["rollback"]);
    let status: Value = serde_json::from_str(&instance.ok(&["--json", "status"])).unwrap();
    assert_eq!(
        (&status["generation"], &status["configuration"]),
        (&3.into(), &"chain.click".into())
    );
    let (code, out) = instance.stop();
    assert_eq!(code, Some(0));
    assert!(out.contains("dropped"), "{out}");
    assert!(!folder.path().join("s").exists(), "the socket is left");
}

/// Flows are listed, chosen, sorted, counted, and one of them is removed.
#[test]
fn flows_are_looked_at_and_removed() {
    let folder = Folder::new();
    let chain = "FromDevice(lan) -> Strip(14) -> CheckIPHeader
        -> nat :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0) -> c :: Counter -> Discard;
        Idle -> rr :: IPAddrRewriter(drop) -> Discard;";
    folder.file("chain.click", chain);
    let (instance, _) = Instance::start(&folder, &["--in", "lan=gen:flows=1500,count=4500"]);
    instance.until("c.count", "4500");
    assert_eq!(instance.ok(&["flows", "--count"]), "1500\n");
    assert_eq!(instance.ok(&["flows", "--count", "tcp"]), "0\n");
    assert_eq!(instance.ok(&["flows", "--count", "--element", "rr"]), "0\n");
    assert_eq!(instance.ok(&["read", "nat.table"]).lines().count(), 3000);
    assert_eq!(instance.ok(&["read", "nat.table_size"]), "1500\n");
    let json = |options: &[&str]| -> Vec<Value> {
        let out = instance.ok(&[&["--json", "flows"], options].concat());
        let mut flows = serde_json::from_str::<Value>(&out).unwrap()["flows"].clone();
        let flows = flows.as_array_mut().unwrap();
        // Time passes.
        let left = flows.iter_mut().map(|flow| flow.as_object_mut().unwrap().remove("expires_s"));
        assert!(left.into_iter().all(|left| left.unwrap().as_f64().unwrap() > 0.0));
        std::mem::take(flows)
    };
    let all = json(&["--limit", "0", "--sort", "src"]);
    let source = |flow: &Value| -> std::net::Ipv4Addr {
        flow["from"]["src"].as_str().unwrap().parse().unwrap()
    };
    assert_eq!(all.len(), 1500);
    assert!(all.is_sorted_by_key(source));
    assert!(all.iter().all(|flow| flow["to"]["src"] == "1.0.0.1" && flow["protocol"] == 17));
    assert_eq!(json(&["--sort", "src", "--skip", "20", "--limit", "10"]), all[20..30]);
    let backwards: Vec<Value> = all.iter().rev().take(3).cloned().collect();
    assert_eq!(json(&["--sort", "src", "--reverse", "--limit", "3"]), backwards);
    assert_eq!(json(&[]).len(), 1000);
    // A flow has its packets before and after translation, in both directions.
    let one = &all[700];
    let (from, to) = (&one["from"], &one["to"]);
    let inside = format!("udp and src host {} and src port {}", source(one), from["sport"]);
    let answers = format!("dst host 1.0.0.1 and dst udp port {}", to["sport"]);
    for filter in [&inside, &answers] {
        assert_eq!(json(&[filter]), std::slice::from_ref(one), "{filter}");
    }
    let shown = instance.ok(&["flows", &inside]);
    assert!(shown.contains("-> 20.") && shown.contains("nat"), "{shown}");
    assert!(
        instance.ok(&["flows"]).ends_with("1,000 of 1,500 flows; --skip and --limit show others\n")
    );
    let many = instance.ctl(&["flows", "--delete", "udp"]);
    assert!(many.err.contains("'udp' chooses 1500 flows, not one"), "{}", many.err);
    assert!(instance.ok(&["flows", "--delete", &inside]).contains("removed: udp"));
    assert_eq!(instance.ctl(&["flows", "--delete", &inside]).code, Some(1));
    assert_eq!(instance.ok(&["flows", "--count"]), "1499\n");
    for (options, why) in [
        (&["--sort", "luck"][..], "unknown variant `luck`"),
        (&["--element", "c"], "there is no element 'c' that has flows"),
        (&["not", "a", "filter"], "'not a filter'"),
    ] {
        let wrong = instance.ctl(&[&["flows"], options].concat());
        assert!(wrong.code != Some(0) && wrong.err.contains(why), "{}", wrong.err);
    }
}

/// A NAPT's flows go on in another process: packets of theirs are translated as before.
#[test]
fn flows_go_on_in_another_process() {
    let folders = [Folder::new(), Folder::new(), Folder::new()];
    let chain = "nat :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0) -> c :: Counter -> Discard;
        one :: InfiniteSource(LIMIT 1, ACTIVE false, STOP false)
            -> UDPIPEncap(10.0.0.1, 5, 8.8.8.8, 53) -> nat;
        two :: InfiniteSource(LIMIT 1, ACTIVE false, STOP false)
            -> UDPIPEncap(10.0.0.2, 5, 8.8.8.8, 53) -> nat;";
    for folder in &folders {
        folder.file("chain.click", chain);
    }
    let (old, _) = Instance::start(&folders[0], &[]);
    for (source, count) in [("one.active", "1"), ("two.active", "2")] {
        old.ok(&["write", source, "true"]);
        old.until("c.count", count);
    }
    let mappings = |instance: &Instance<'_>| {
        let text = instance.ok(&["--json", "flows", "--sort", "src"]);
        let mut flows = serde_json::from_str::<Value>(&text).unwrap()["flows"].take();
        // Time passes.
        for flow in flows.as_array_mut().unwrap() {
            flow.as_object_mut().unwrap().remove("expires_s");
        }
        flows
    };
    let before = mappings(&old);
    assert_eq!(before.as_array().map(Vec::len), Some(2));
    let file = folders[0].path().join("nat.state");
    let file = file.to_str().unwrap();
    old.ok(&["state", "export", file]);

    let (new, _) = Instance::start(&folders[1], &[]);
    assert_eq!(new.ok(&["flows", "--count"]), "0\n");
    let out = new.ok(&["state", "import", file]);
    assert!(out.ends_with("elements, with 2 flows\n"), "{out}");
    assert_eq!(mappings(&new), before);
    new.ok(&["write", "two.active", "true"]);
    new.until("c.count", "3");
    assert_eq!(mappings(&new), before, "its packet made no other flow");

    // A worker's share is added to what is there, and its counts are added up.
    old.ok(&["state", "export", "--worker", "0", file]);
    let (third, _) = Instance::start(&folders[2], &[]);
    for count in ["2", "4"] {
        let out = third.ok(&["state", "import", file]);
        assert!(out.ends_with("elements, with 2 flows\n"), "{out}");
        assert_eq!(mappings(&third), before, "what is there already stays");
        assert_eq!(third.ok(&["read", "c.count"]).trim(), count);
    }
    let none = old.ctl(&["state", "export", "--worker", "7", file]);
    assert!(none.code == Some(1) && none.err.contains("no worker 7"), "{}", none.err);
    old.ok(&["state", "export", file]);

    let text = std::fs::read_to_string(file).unwrap();
    for (from, to, why) in [
        ("catena-state 1", "catena-state 7", "version 7"),
        ("end\n", "", "cut off"),
        ("element c Counter", "element d Counter", "no element 'd'"),
        ("element c Counter", "element c Discard", "of class Counter, not Discard"),
        ("counter count", "cells count", "does not fit"),
        ("flow ", "flow x", "line "),
    ] {
        folders[1].file("bad.state", text.replacen(from, to, 1));
        let bad = folders[1].path().join("bad.state");
        let refused = new.ctl(&["state", "import", bad.to_str().unwrap()]);
        assert!(refused.code == Some(1) && refused.err.contains(why), "{why}: {}", refused.err);
    }
    assert_eq!(mappings(&new), before, "what is refused changes nothing");
}

/// Where packets find their workers by a hash, what could move starts in another mode.
#[test]
fn groups_that_could_move_are_made_by_tags() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &[]);
    for action in [&["move", "0", "1"][..], &["balance"]] {
        let wrong = instance.ctl(&[&["dispatch"], action].concat());
        let why = "there are no groups of traffic classes to move where packets find their workers by hash; start with `catena run --dispatch tags=mac`";
        assert!(wrong.refused().contains(why), "{}", wrong.err);
    }
}

/// What the first worker reads alone is no work for others, and reported.
#[test]
fn generated_traffic_stays_with_the_first_worker() {
    let why =
        "captures and generated traffic are not dispatched: the first worker takes all of them";
    let folder = Folder::new();
    folder.file("chain.click", "FromDevice(lan) -> c :: Counter -> Discard;");
    let options = ["--in", "lan=gen:rate=10000", "--workers", "2"];
    let (mut instance, _) = Instance::start(&folder, &options);
    while !instance.line().contains(why) {}
    for command in ["workers", "dispatch"] {
        let shown = instance.ok(&[command]);
        assert!(shown.contains("2 ") && shown.contains(why), "{shown}");
        let json: Value = serde_json::from_str(&instance.ok(&[command, "--json"])).unwrap();
        assert!(json["note"].as_str().unwrap().contains(why), "{json}");
    }
    let taken = || {
        let counters: Value = serde_json::from_str(&instance.ok(&["counters", "--json"])).unwrap();
        [0, 1].map(|worker| counters["workers"][worker]["in"].as_u64().unwrap())
    };
    while taken()[0] == 0 {}
    assert_eq!(taken()[1], 0);
    drop(instance);
    // Each worker has a source of its own.
    folder.file("chain.click", "RatedSource(RATE 1000) -> c :: Counter -> Discard;");
    let (instance, _) = Instance::start(&folder, &["--workers", "2"]);
    assert!(!instance.ok(&["workers"]).contains(why));
}

/// A chain that would end the run, or lacks a device, does not replace one that goes on for ever.
#[test]
fn a_swap_ends_no_run_unless_it_is_forced() {
    let endless = "src :: RatedSource(RATE 1000) -> c :: Counter -> d :: Discard;";
    let folder = Folder::new();
    folder.file("chain.click", endless);
    let (mut instance, _) = Instance::start(&folder, &[]);
    let ends = [
        ("Idle -> Discard;", "comes to rest: no element of it receives from an interface"),
        ("src :: InfiniteSource(LIMIT 10) -> Discard;", "no element of it receives"),
        ("src :: RatedSource(LIMIT 10, STOP true) -> Discard;", "'src' stops the driver"),
        ("RatedSource -> c :: Counter(COUNT_CALL 10 stop) -> Discard;", "'c' stops the driver"),
        ("RatedSource -> Discard; m :: DriverManager(wait 1s);", "'m' stops the driver"),
        ("RatedSource -> Discard; s :: Script(wait 1s, write stop);", "'s' stops the driver"),
    ];
    for (chain, why) in ends {
        folder.file("next.click", chain);
        let refused = instance.ctl(&["swap", "next.click"]);
        assert_eq!(refused.code, Some(1), "{chain}");
        assert!(refused.err.contains(why) && refused.err.contains("--force"), "{}", refused.err);
        let tried = instance.ctl(&["swap", "next.click", "--check"]);
        assert_eq!((tried.code, tried.err.as_str()), (Some(1), ""));
        let line = tried.out.lines().last().unwrap();
        assert!(
            line.contains("without --force it would be refused") && line.contains(why),
            "{line}"
        );
        let json = instance.ctl(&["--json", "swap", "next.click", "--check"]);
        let json: Value = serde_json::from_str(&json.out).unwrap();
        assert!(json["objection"].as_str().unwrap().contains(why), "{json}");
    }
    // SIGHUP forces nothing.
    folder.file("chain.click", "Idle -> Discard;");
    instance.hang_up();
    instance.refuses_to_reload();
    folder.file("chain.click", endless);
    folder.file("next.click", "FromDevice(nowhere) -> Discard;");
    for force in [&[][..], &["--force"]] {
        let refused = instance.ctl(&[&["swap", "next.click"], force].concat());
        assert_eq!((refused.code, refused.err.matches("error").count()), (Some(1), 1));
        let json = instance.ctl(&[&["--json", "swap", "next.click"], force].concat());
        assert_eq!((json.code, json.err.as_str()), (Some(1), ""));
        let json: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(
            (&json["errors"], &json["diagnostics"][0]["code"]),
            (&1.into(), &"device".into())
        );
        assert!(refused.err.contains("nothing is bound to 'nowhere'"), "{}", refused.err);
    }
    // A source that ends without a limit on the run is no reason to refuse anything.
    folder.file("next.click", endless.replace("1000", "2000"));
    instance.ok(&["swap", "next.click", "--check"]);
    assert!(instance.ok(&["status"]).contains("configuration number 1"));
    // What is forced is done; it can be undone.
    folder.file("next.click", "Idle -> Discard;");
    assert!(instance.ok(&["swap", "--force", "next.click"]).contains("changed"));
    instance.ok(&["rollback"]);
    assert!(instance.ctl(&["rollback"]).err.contains("--force"));
    folder.file("next.click", "InfiniteSource(LIMIT 1, STOP true) -> Discard;");
    let done = instance.ctl(&["--json", "swap", "--force", "next.click"]);
    assert!(done.out.contains("stops the driver"), "{}", done.out);
    let mut out = String::new();
    instance.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(instance.child.wait().unwrap().code(), Some(3), "it was to go on for ever");
}

#[test]
fn a_configuration_comes_from_the_standard_input() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &[]);
    let done = folder.run_with(["ctl", "--socket", "s", "swap", "-"], CHAIN);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert!(instance.ok(&["status"]).contains("<stdin>"));
    drop(instance);
    // It has said all: there is nothing to reload.
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.args(["run", "-", "--control", "s"]).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(CHAIN.as_bytes()).unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let mut instance = Instance { folder: &folder, child, said };
    while instance.line() != "control: s" {}
    // Once it answers, it hears signals.
    instance.ok(&["status"]);
    instance.hang_up();
    instance.refuses_to_reload();
    assert!(instance.ok(&["read", "d.count"]).contains("1000"));
}

/// Neither files that never end, nor chains that want too much, reach a chain that runs.
#[test]
fn nothing_that_is_to_take_over_brings_it_down() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &["--max-source", "1M", "--max-memory", "8M"]);
    assert!(Command::new("mkfifo").arg(folder.path().join("fifo")).status().unwrap().success());
    folder.file("length.click", "InfiniteSource(LENGTH 4000000000) -> Discard;");
    folder.file("queue.click", "Idle -> Queue(4000000000) -> Idle;");
    folder.file("many.click", "InfiniteSource(LENGTH 65535) -> Discard;".repeat(200));
    folder.file("large.click", "/".repeat(2 << 20));
    for (file, why) in [
        ("/dev/zero", "is a device"),
        ("fifo", "is a FIFO"),
        ("length.click", "the longest are of 65535"),
        ("queue.click", "CAPACITY of Queue"),
        ("many.click", "LENGTH of InfiniteSource"),
        ("large.click", "more than 1048576 bytes"),
    ] {
        for arguments in [&["swap", file][..], &["swap", file, "--check"]] {
            let ended = instance.ctl(arguments);
            assert!(ended.refused().contains(why), "{}", ended.err);
        }
    }
    assert!(instance.ok(&["read", "d.count"]).contains("1000"));
}

#[test]
fn an_instance_that_is_not_there_is_told_of() {
    let folder = Folder::new();
    let ended = folder.run(["ctl", "--socket", "s", "status"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("is there a 'catena run --control s'?"), "{}", ended.err);
    // A socket that nobody listens on is taken over; one that is in use, and a file, are not.
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap());
    folder.file("chain.click", CHAIN).file("plain", "");
    let (instance, _) = Instance::start(&folder, &[]);
    let second = folder.run(["run", "chain.click", "--control", "s"]);
    assert!(second.err.contains("another instance listens there"), "{}", second.err);
    let second = folder.run(["run", "chain.click", "--control", "plain"]);
    assert!(second.err.contains("no socket"), "{}", second.err);
    instance.ok(&["status"]);
}

#[test]
fn nonsense_on_the_socket_harms_nobody() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &[]);
    let connect = || UnixStream::connect(folder.path().join("s")).unwrap();
    let answer = |request: &[u8]| -> String {
        let mut stream = connect();
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line
    };
    let deep = [vec![b'['; 100_000], b"\n".to_vec()].concat();
    let nonsense: [&[u8]; 9] = [
        b"{}\n",
        b"[1]\n",
        b"\xff\xfe\x00\n",
        b"{\"do\": 7}\n",
        b"{\"do\": \"fly\"}\n",
        &deep,
        b"{\"do\": \"read\"}\n",
        b"{\"do\": \"swap\", \"path\": 3}\n",
        b"{\"do\": \"read\"",
    ];
    for bytes in nonsense {
        assert!(
            answer(bytes).starts_with("{\"version\":1,\"error\":"),
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    assert_eq!(answer(b"\n\n"), "");
    // Many requests at once, each answered in its turn; a client that hangs up is no harm.
    let mut stream = connect();
    stream.write_all(&b"{\"do\":\"status\"}\n".repeat(50)).unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines().take(50);
    assert_eq!(
        lines.filter(|l| l.as_ref().unwrap().starts_with("{\"version\":1,\"ok\":")).count(),
        50
    );
    connect().write_all(b"{\"do\":\"counters\"}\n").unwrap();
    // A request without end is given up.
    let mut endless = connect();
    let piece = vec![b'a'; 1 << 20];
    while endless.write_all(&piece).is_ok() {}
    // More connections than there is room for.
    let _idle: Vec<_> = (0..20).map(|_| connect()).collect();
    instance.ok(&["status"]);
}

/// What an HTTP server answers to a request.
fn http(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(request);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Name with labels, and value, of each sample of a text in the Prometheus format.
fn samples(text: &str) -> Vec<(String, f64)> {
    let mut typed = Vec::new();
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(!typed.contains(&name.to_string()), "{name} comes twice");
            typed.push(name.to_string());
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').expect(line);
            let plain = name.split('{').next().unwrap_or(name);
            let last = typed.last().unwrap();
            let part = plain.strip_prefix(last.as_str()).expect(line);
            assert!(["", "_bucket", "_sum", "_count"].contains(&part), "{line}");
            assert_eq!(name.contains('{'), name.ends_with('}'), "{line}");
            all.push((name.to_string(), value.parse().expect(line)));
        }
    }
    all
}

#[test]
fn metrics_are_scraped() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, said) = Instance::start(&folder, &["--metrics", "127.0.0.1:0"]);
    let address = said[1].strip_prefix("metrics: http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    instance.until("c.count", "1000");
    let nonsense: [&[u8]; 5] = [
        b"",
        b"\xff\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\n\r\n",
        &[b'a'; 50_000],
    ];
    for bytes in nonsense {
        let answer = http(address, bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert!(http(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let answer = http(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, content) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", content.len())), "{head}");
    let samples = samples(content);
    let value = |name: &str| samples.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let counted = "catena_counted_packets_total{worker=\"0\",element=\"c\",class=\"Counter\",side=\"through\"}";
    assert_eq!(value(counted), Some(1000.0), "{content}");
    let came = "catena_element_packets_total{worker=\"0\",element=\"d\",class=\"Discard\"}";
    assert_eq!(value(came), Some(1000.0), "{content}");
    let dropped = "catena_dropped_packets_total{worker=\"0\",element=\"d\",class=\"Discard\",reason=\"discarded\"}";
    assert_eq!(value(dropped), Some(1000.0));
    assert_eq!(value("catena_configurations_total"), Some(1.0));
    // Some bursts were timed; each bucket holds what those before it hold.
    let program = |part: &str| {
        let named = |(name, _): &&(String, f64)| {
            name.starts_with(&format!("catena_latency_seconds{part}"))
                && name.contains("of=\"program\"")
        };
        samples.iter().filter(named).map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let buckets = program("_bucket");
    assert!(buckets.is_sorted() && buckets.last() > Some(&0.0), "{content}");
    assert_eq!(program("_count").first(), buckets.last());
    assert!(program("_sum")[0] > 0.0);
    let taken = folder.run(["run", "chain.click", "--control", "t", "--metrics", address]);
    assert!(taken.err.contains("--metrics"), "{}", taken.err);
}

#[test]
fn who_is_one_too_many_is_told_what_to_do() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &[]);
    let connect = |_| {
        let mut stream = BufReader::new(UnixStream::connect(folder.path().join("s")).unwrap());
        writeln!(stream.get_mut(), "{{ \"do\": \"status\" }}").unwrap();
        stream.read_line(&mut String::new()).unwrap();
        stream
    };
    let mut connected: Vec<_> = (0..32).map(connect).collect();
    for _ in 0..20 {
        let refused = instance.ctl(&["status"]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.err.contains("32 clients are connected"), "{}", refused.err);
        assert!(refused.err.contains("end a capture"), "{}", refused.err);
    }
    connected.pop();
    while instance.ctl(&["status"]).code != Some(0) {}
}

#[test]
fn top_shows_rates() {
    let folder = Folder::new();
    folder.file(
        "chain.click",
        "in :: InfiniteSource -> nf :: { input -> c :: Counter -> Counter -> Counter -> Counter -> output } -> q :: Queue(9) -> u :: Unqueue -> d :: Discard;",
    );
    let (instance, _) = Instance::start(&folder, &[]);
    let top = |more: &[&str]| {
        let all = ["top", "--socket", "s", "--once", "--interval", "0.05"];
        let ended = folder.run(all.iter().chain(more));
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        ended.out
    };
    let shown: Value = serde_json::from_str(&top(&["--json"])).unwrap();
    let core = &shown["cores"][0];
    assert!(core["busy"].as_f64().unwrap() > 0.0, "{core}");
    let element = |list: &str, name: &str| {
        shown[list].as_array().unwrap().iter().find(|e| e["name"] == name).unwrap().clone()
    };
    for (list, name) in
        [("elements", "in"), ("elements", "nf/c"), ("elements", "d"), ("functions", "nf")]
    {
        assert!(element(list, name)["packets"].as_f64().unwrap() > 0.0, "{name}: {shown}");
    }
    assert!(element("elements", "d")["in"].is_null(), "{shown}");
    let latency = |of: &str, name: &str| {
        let same = |l: &&Value| l["of"] == of && l["name"] == name;
        shown["latencies"].as_array().unwrap().iter().find(same).unwrap().clone()
    };
    for (of, name) in [("chain", "d"), ("function", "nf"), ("program", "nf/c")] {
        let [half, most] = ["p50", "p999"].map(|p| latency(of, name)[p].as_u64().unwrap());
        assert!(0 < half && half <= most, "{shown}");
    }
    let table = top(&[]);
    assert!(table.contains("cycles/packet") && table.contains("nf/c"), "{table}");
    assert!(table.contains("latency in µs"), "{table}");
    assert!(!table.contains('\x1b'), "it redraws what is no terminal");
    drop(instance);
    assert_eq!(folder.run(["top", "--socket", "s", "--once"]).code, Some(1));
}

#[test]
fn two_cores_count_together() {
    let cpus = dataplane::worker::cpus();
    let cores: Vec<String> = cpus.iter().take(2).map(usize::to_string).collect();
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &["--cores", &cores.join(",")]);
    instance.until("c.count", &(1000 * cores.len()).to_string());
    instance.ok(&["swap", "chain.click"]);
    assert!(
        instance.ok(&["read", "c.count"]).trim().parse::<usize>().unwrap() >= 1000 * cores.len()
    );
    let status = instance.ok(&["status"]);
    for core in &cores {
        assert!(status.contains(&format!("on core {core}")), "{status}");
    }
    for wrong in [":9100", "127.0.0.1", "127.0.0.1:"] {
        let ended = folder.run(["run", "chain.click", "--metrics", wrong]);
        let mend = "--metrics: it takes ADDRESS:PORT, like 127.0.0.1:9100";
        assert!(ended.code == Some(1) && ended.err.contains(mend), "{}", ended.err);
    }
    let nowhere = folder.run(["run", "nosuch.click"]);
    assert!(nowhere.err.starts_with("error: nosuch.click: "), "{}", nowhere.err);
    assert!(nowhere.err.ends_with(")\n"), "{}", nowhere.err);
    let wrong = folder.run(["run", "chain.click", "--cores", "99999"]);
    assert!(wrong.err.contains("there is no CPU 99999"), "{}", wrong.err);
}

#[test]
fn a_service_manager_hears_of_it_and_reloads_it() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let path = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    let hear = || {
        let mut buffer = [0; 64];
        let n = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.args(["run", "chain.click", "--control", "s"]).env("NOTIFY_SOCKET", &path);
    let mut child = command.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let mut instance = Instance { folder: &folder, child, said };
    assert_eq!(instance.line(), "control: s");
    assert_eq!(hear(), "READY=1");
    folder.file("chain.click", CHAIN.replace("e ::", "f ::"));
    instance.hang_up();
    assert!(instance.line().starts_with("e: its state is lost (0 flows, 0 packets): "));
    let line = instance.line();
    assert!(line.starts_with("chain.click: swapped in; built in "), "{line}");
    assert!(line.ends_with(" ms at most"), "{line}");
    assert_eq!((hear(), hear()), ("RELOADING=1".into(), "READY=1".into()));
    assert_eq!(instance.ok(&["read", "f.count"]), "0\n");
    for wrong in ["nonsense", "", "// Soon.\n"] {
        folder.file("chain.click", wrong);
        instance.hang_up();
        instance.refuses_to_reload();
        assert_eq!((hear(), hear()), ("RELOADING=1".into(), "READY=1".into()));
        assert_eq!(instance.ctl(&["swap", "chain.click"]).code, Some(1), "{wrong}");
    }
    assert!(instance.ok(&["status"]).contains("configuration number 2"));
    assert_eq!(instance.stop().0, Some(0));
    assert_eq!(hear(), "STOPPING=1");
}

/// A chain that goes on without end, slowly enough for a capture to keep up.
const ENDLESS: &str = "RatedSource(DATA \\<0102030405060708090a0b0c0800>, RATE 20000) -> nf :: {
    input -> p :: Paint(1) -> k :: Counter -> output } -> d :: Discard;
    u :: RatedSource(RATE 5000, LENGTH 10) -> UDPIPEncap(10.0.0.1, 5, 10.0.0.2, 53) -> e :: Discard;";

#[test]
fn packets_are_captured_while_they_pass() {
    let folder = Folder::new();
    folder.file("chain.click", ENDLESS);
    let (instance, _) = Instance::start(&folder, &[]);
    // Inside of a network function, so many.
    let one = instance.ctl(&["capture", "nf/p -> nf/k", "-w", "one.pcapng", "-c", "500"]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert_eq!(one.err, "capturing nf/p -> nf/k (chain.click:2)\n500 packets captured\n");
    let bytes = std::fs::read(folder.path().join("one.pcapng")).unwrap();
    assert!(bytes.windows(12).any(|text| text == b"nf/p -> nf/k"), "the connection's name");
    let mut reader = net::pcap::Reader::in_memory(bytes).unwrap();
    let (mut count, mut last) = (0, 0);
    while let Some(record) = reader.next().unwrap() {
        assert_eq!(record.data[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(record.header.link_type, net::pcap::LinkType::ETHERNET);
        assert!(record.header.timestamp_ns >= last);
        (count, last) = (count + 1, record.header.timestamp_ns);
    }
    assert_eq!(count, 500);
    // Packets without Ethernet headers, chosen by a pattern, as lines; and none that match.
    let lines = instance.ctl(&["capture", "[0]e", "-c", "3", "udp dst port 53"]);
    assert_eq!(lines.out.matches("udp 10.0.0.1:5 > 10.0.0.2:53").count(), 3, "{}", lines.out);
    let wrong = instance.ctl(&["capture", "e", "-w", "two.pcapng", "udp port nothing"]);
    assert!(wrong.err.contains("nothing") && wrong.code == Some(1), "{}", wrong.err);
    assert!(!folder.path().join("two.pcapng").exists());
    let wrong = instance.ctl(&["capture", "nf -> e"]);
    assert!(wrong.err.contains("there is no connection 'nf -> e'"), "{}", wrong.err);
    // Ctrl-C ends it, and what came until then is there.
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.args(["ctl", "--socket", "s", "capture", "nf", "-w", "-"]);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut reader = net::pcap::Reader::open(child.stdout.take().unwrap()).unwrap();
    let first = reader.next().unwrap().map(|record| record.header.interface);
    assert_eq!(first, Some(0));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut count = 1;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    assert!(child.wait().unwrap().success());
    let mut told = String::new();
    said.read_to_string(&mut told).unwrap();
    let number: String =
        told.lines().last().unwrap().chars().filter(char::is_ascii_digit).collect();
    assert_eq!(number, count.to_string(), "{told}");
    // A client that vanishes leaves no taps behind, and the chain goes on.
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.args(["ctl", "--socket", "s", "capture", "nf", "-w", "-"]);
    let mut child = command.spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 100]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let before: u64 = instance.ok(&["read", "nf/k.count"]).trim().parse().unwrap();
    let more = || instance.ok(&["read", "nf/k.count"]).trim().parse::<u64>().unwrap() > before;
    while !more() {}
    assert_eq!(instance.stop().0, Some(0));
}

/// An interface's name means the interface, also where an element has that name: each packet once
/// as it comes in, once as it goes out.
#[test]
fn an_interface_is_captured_whatever_elements_are_called() {
    let folder = Folder::new();
    let chain =
        "lan :: FromDevice(lan) -> Strip(14) -> c :: Counter -> Unstrip(14) -> ToDevice(lan);
        nf :: { input -> Null -> output }; Idle -> nf -> Discard;";
    folder.file("chain.click", chain);
    let bound = ["--in", "lan=gen:rate=2000,count=0", "--out", "lan=out.pcap"];
    let (instance, _) = Instance::start(&folder, &bound);
    let captured = instance.ctl(&["capture", "lan", "-c", "10", "-w", "lan.pcapng"]);
    assert_eq!(captured.code, Some(0), "{}", captured.err);
    let edges: Vec<&str> = captured.err.lines().filter(|l| l.starts_with("capturing")).collect();
    assert_eq!(edges.len(), 2, "{}", captured.err);
    assert!(edges[0].contains("lan -> Strip@") && edges[1].contains("-> ToDevice@"), "{edges:?}");
    assert_eq!(instance.stop().0, Some(0));
}

/// Packets are followed through a chain that runs, whose program does the same.
#[test]
fn packets_are_followed_while_they_pass() {
    let folder = Folder::new();
    let chain = "u :: RatedSource(RATE 5000, LENGTH 10)
        -> UDPIPEncap(10.0.0.1, 5, 10.0.0.2, 53)
        -> ttl :: DecIPTTL
        -> acl :: IPFilter(deny dst port 54, allow udp)
        -> nat :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0)
        -> k :: Counter -> d :: Discard;
        v :: RatedSource(RATE 5000, LENGTH 10) -> UDPIPEncap(10.0.0.1, 6, 10.0.0.2, 54) -> [0] ttl;";
    folder.file("chain.click", chain);
    let (instance, _) = Instance::start(&folder, &[]);
    let allowed = instance.ok(&["trace", "-n", "3", "udp dst port 53", "--in", "[0]ttl"]);
    assert_eq!(allowed.matches("the program did the same").count(), 3, "{allowed}");
    for part in
        ["ttl", "chain.click:4", "allow udp", "10.0.0.1 → 1.0.0.1", "1.0.0.1", "synthesised"]
    {
        assert!(allowed.contains(part), "'{part}' is missing: {allowed}");
    }
    let json = instance.ok(&["--json", "trace", "-n", "2", "udp dst port 54", "--in", "[0]ttl"]);
    let packets: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(packets.len(), 2);
    for packet in packets {
        let steps = packet["steps"].as_array().unwrap();
        let last = steps.last().unwrap();
        assert_eq!(last["element"], "acl");
        assert_eq!(last["decisions"][0]["rule"], "deny dst port 54");
        assert_eq!(last["decisions"][0]["place"]["line"], 4);
        assert_eq!(last["outcomes"][0]["fate"], "dropped");
        let changes = steps[0]["outcomes"][0]["changes"].as_array().unwrap();
        assert!(changes.iter().any(|change| change["name"] == "ip.ttl"), "{changes:?}");
        assert_eq!((&packet["agrees"], &steps[0]["synthesised"].is_null()), (&true.into(), &false));
    }
    let wrong = instance.ctl(&["trace", "--in", "nowhere"]);
    assert!(wrong.err.contains("'nowhere'"), "{}", wrong.err);
    let none = instance.ctl(&["faults", "drop=1"]);
    assert!(none.err.contains("'catena run --faults none'"), "{}", none.err);
    // In another configuration nothing of this would be true.
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let mut follower =
        command.args(["ctl", "--socket", "s", "trace", "-n", "5000"]).spawn().unwrap();
    let mut told = BufReader::new(follower.stdout.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    instance.ok(&["swap", "chain.click"]);
    told.read_to_end(&mut Vec::new()).unwrap();
    let mut why = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut why).unwrap();
    follower.wait().unwrap();
    assert_eq!(why, "ended: the configuration changed\n");
    // Nothing was changed by looking.
    let count = || instance.ok(&["read", "k.count"]).trim().parse::<u64>().unwrap();
    let before = count();
    while count() <= before {}
    assert_eq!(instance.stop().0, Some(0));
}

/// A client and an instance of different releases do not guess what the other means.
#[test]
fn versions_of_the_protocol_are_compared_on_both_sides() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN);
    let (instance, _) = Instance::start(&folder, &[]);
    let mut raw = BufReader::new(UnixStream::connect(folder.path().join("s")).unwrap());
    let mut asked = |line: &str| -> Value {
        writeln!(raw.get_mut(), "{line}").unwrap();
        let mut answer = String::new();
        raw.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    let refused = asked(r#"{"version":2,"do":"read","handler":"c.count"}"#);
    assert_eq!(
        (&refused["version"], &refused["error"]["code"]),
        (&1.into(), &"protocol-version".into())
    );
    let unknown = asked(r#"{"do":"swap","path":"chain.click","try":true}"#);
    assert_eq!(unknown["error"]["code"], "request", "{unknown}");
    assert!(asked(r#"{"do":"read","handler":"s.switch"}"#)["ok"] == "0");
    drop(instance);

    let listener = UnixListener::bind(folder.path().join("later")).unwrap();
    let later = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        BufReader::new(&stream).read_line(&mut String::new()).unwrap();
        writeln!(stream, r#"{{"version":2,"ok":{{"state":"well"}}}}"#).unwrap();
    });
    let refused = folder.run(["ctl", "--socket", "later", "status"]);
    later.join().unwrap();
    let why = "the client uses version 1 of the control protocol, and the instance version 2; use the release of `catena`";
    assert!(refused.refused().contains(why), "{}", refused.err);
}
