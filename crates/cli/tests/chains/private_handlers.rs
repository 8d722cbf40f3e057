//! What those outside of a chain can have of its handlers, by every entry point: the command
//! line, `catena ctl`, Click's ControlSocket protocol and metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path as Folder, PathBuf};
use std::process::{Child, Command, Stdio};

use dataplane::io::{Binding, Bindings};
use elements::element::Handler;
use elements::registry::CLASSES;
use engine::session::Path;
use net::pcap::{Options, Writer};
use serde_json::{Value, json};

use crate::support::start_bound;

/// The content of a file that nobody may have from the chain.
const SECRET: &str = "toor:$6$kept";

/// Chains around an element `x` of the classes that have no samples, and ports or arguments.
const WITHOUT_SAMPLES: &[(&str, &str)] = &[
    ("BackendMapper", "x :: BackendMapper(- - - - 0 1, BACKENDS 10.0.0.1);"),
    (
        "BackendProbe",
        "m :: BackendMapper(- - - - 0 1, BACKENDS 10.0.0.1);
         Idle -> x :: BackendProbe(m, SOURCE 10.0.0.2) -> Idle;",
    ),
    ("BandwidthRatedUnqueue", "Idle -> Queue -> x :: BandwidthRatedUnqueue(1kBps) -> Idle;"),
    ("BandwidthShaper", "Idle -> Queue -> x :: BandwidthShaper(1kBps) -> Unqueue -> Idle;"),
    ("CoDelQueue", "Idle -> x :: CoDelQueue -> Unqueue -> Idle;"),
    ("ControlSocket", "x :: ControlSocket(unix, element);"),
    ("DRRSched", "Idle -> Queue -> x :: DRRSched -> Unqueue -> Idle;"),
    ("DecryptPayload", "Idle -> x :: DecryptPayload(in.key) -> Idle;"),
    ("DedupPayload", "Idle -> x :: DedupPayload -> Idle;"),
    ("DelayShaper", "Idle -> Queue -> x :: DelayShaper(1s) -> Unqueue -> Idle;"),
    ("DelayUnqueue", "Idle -> Queue -> x :: DelayUnqueue(1s) -> Idle;"),
    ("DriverManager", "x :: DriverManager(pause, pause);"),
    ("ESPDecap", "Idle -> x :: ESPDecap(256, in.sa) -> Idle;"),
    ("ESPEncap", "Idle -> x :: ESPEncap(256, 10.0.0.1, 10.0.0.2, in.sa) -> Idle;"),
    ("EncryptPayload", "Idle -> x :: EncryptPayload(in.key) -> Idle;"),
    ("FlowMonitor", "Idle -> x :: FlowMonitor -> Idle;"),
    ("FromDevice", "x :: FromDevice(dev, ACTIVE false) -> Idle;"),
    ("FromDump", "x :: FromDump(in.pcap) -> Idle;"),
    ("FromIPSummaryDump", "x :: FromIPSummaryDump(in.dump) -> Idle;"),
    ("HTBSched", "Idle -> Queue -> x :: HTBSched(a 1) -> Unqueue -> Idle;"),
    ("InfiniteSource", "x :: InfiniteSource(ACTIVE false) -> Idle;"),
    ("PoolMapper", "x :: PoolMapper(203.0.113.0/30 0 1, MAPPING endpoint);"),
    ("PrioSched", "Idle -> Queue -> x :: PrioSched -> Unqueue -> Idle;"),
    ("PullSwitch", "Idle -> Queue -> x :: PullSwitch(0) -> Unqueue -> Idle;"),
    ("REDQueue", "Idle -> x :: REDQueue(1, 2, 0.1) -> Unqueue -> Idle;"),
    ("RRSched", "Idle -> Queue -> x :: RRSched -> Unqueue -> Idle;"),
    ("RatedSource", "x :: RatedSource(ACTIVE false) -> Idle;"),
    ("RatedUnqueue", "Idle -> Queue -> x :: RatedUnqueue(1) -> Idle;"),
    ("RedupPayload", "Idle -> x :: RedupPayload -> Idle;"),
    ("RestoreAnno", "Idle -> x :: RestoreAnno -> Idle; Idle -> [1] x [1] -> Idle;"),
    ("RoundRobinIPMapper", "x :: RoundRobinIPMapper(- - - - 0 0);"),
    ("RoundRobinSched", "Idle -> Queue -> x :: RoundRobinSched -> Unqueue -> Idle;"),
    ("Shaper", "Idle -> Queue -> x :: Shaper(1) -> Unqueue -> Idle;"),
    ("SimplePrioSched", "Idle -> Queue -> x :: SimplePrioSched -> Unqueue -> Idle;"),
    ("SnortFilter", "Idle -> x :: SnortFilter(in.rules) -> Idle;"),
    ("SourceIPHashMapper", "x :: SourceIPHashMapper(2 0xbadbeef, - - - - 0 0 1);"),
    ("StaticPullSwitch", "Idle -> Queue -> x :: StaticPullSwitch(0) -> Unqueue -> Idle;"),
    ("StrideSched", "Idle -> Queue -> x :: StrideSched(1) -> Unqueue -> Idle;"),
    ("TimedSource", "x :: TimedSource(ACTIVE false) -> Idle;"),
    ("ToDevice", "Idle -> x :: ToDevice(dev);"),
    ("ToDump", "Idle -> x :: ToDump(out.pcap);"),
    ("ToIPSummaryDump", "Idle -> x :: ToIPSummaryDump(out.dump);"),
    ("URLFilter", "Idle -> x :: URLFilter(in.urls) -> Idle;"),
    ("Unqueue", "Idle -> Queue -> x :: Unqueue -> Idle;"),
];

/// This takes rights that a test may not have. It has one handler, to read.
const STARTS_A_PROGRAM: &str = "Process";

/// A chain with an element of every class, each in a compound of its own.
fn all_classes() -> String {
    let mut text = String::new();
    for class in CLASSES.iter().filter(|class| class.name != STARTS_A_PROGRAM) {
        let name = class.name;
        let inside = match WITHOUT_SAMPLES.iter().find(|(other, _)| *other == name) {
            Some((_, inside)) => (*inside).to_string(),
            None if class.samples.is_empty() && class.ports == "0/0" => format!("x :: {name};"),
            None if class.samples.is_empty() => format!("Idle -> x :: {name} -> Idle;"),
            None => {
                let sample = &class.samples[0];
                let mut inside = format!("{} x :: {name}({});", class.prelude, sample.config);
                (0..sample.inputs).for_each(|port| inside += &format!(" Idle -> [{port}] x;"));
                (0..sample.outputs).for_each(|port| inside += &format!(" x [{port}] -> Idle;"));
                inside
            }
        };
        text += &format!("c{name} :: {{ {inside} }};\n");
    }
    text
}

/// A folder with the chain and what it reads.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("catena-private-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
        let empty = Writer::new(Vec::new(), &Options::for_file_name(Folder::new("in.pcap")));
        file("in.pcap", &empty.unwrap().finish().unwrap());
        file("in.dump", b"!data ip_src\n");
        file("in.rules", b"alert tcp any any -> any any (content:\"x\"; sid:1;)\n");
        file("in.key", b"000102030405060708090a0b0c0d0e0f\n");
        file("in.sa", b"000102030405060708090a0b0c0d0e0f10111213\n");
        file("in.urls", b"example.com\n");
        file("secret", SECRET.as_bytes());
        file("chain.click", all_classes().as_bytes());
        Self(folder)
    }

    fn run(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.current_dir(&self.0).args(["run", "chain.click", "--in", "dev=in.pcap"]);
        command.args(["--out", "dev=dev.pcap"]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Every handler of every element, private ones too.
    fn handlers(&self) -> Vec<(String, Handler)> {
        let mut bindings = Bindings { folder: self.0.clone(), ..Bindings::default() };
        let at = |name: &str| self.0.join(name).display().to_string();
        bindings.inputs.insert("dev".into(), Binding::source(&at("in.pcap")).unwrap());
        bindings.outputs.insert("dev".into(), Binding::sink(&at("dev.pcap")).unwrap());
        let started = start_bound("all", &all_classes(), &self.0, Path::Native, bindings);
        let mut router = match started {
            Ok(started) => started.router,
            Err((diagnostics, _)) => panic!("{diagnostics:?}"),
        };
        let mut all = Vec::new();
        for class in CLASSES.iter().filter(|class| class.name != STARTS_A_PROGRAM) {
            let element = format!("c{}/x", class.name);
            let own = router.element(&element).expect("each has an x").handlers();
            all.extend(own.iter().map(|handler| (element.clone(), *handler)));
        }
        all
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A conversation in lines.
struct Lines(BufReader<UnixStream>);

impl Lines {
    fn open(path: &Folder) -> Self {
        Self(BufReader::new(UnixStream::connect(path).unwrap()))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// What `catena ctl` is answered.
    fn ctl(&mut self, request: &Value) -> Value {
        writeln!(self.0.get_mut(), "{request}").unwrap();
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The last line and the data of an answer of the ControlSocket protocol.
    fn control(&mut self, command: &str) -> (String, String) {
        write!(self.0.get_mut(), "{command}\r\n").unwrap();
        let mut all = String::new();
        loop {
            let line = self.line();
            all += &line;
            if line.as_bytes().get(3) == Some(&b' ') {
                let mut data = Vec::new();
                if command.starts_with("READ") && line.starts_with("200") {
                    let length = self.line();
                    let length = length.trim().strip_prefix("DATA ").unwrap().parse().unwrap();
                    data.resize(length, 0);
                    self.0.read_exact(&mut data).unwrap();
                }
                return (all, String::from_utf8_lossy(&data).into_owned());
            }
        }
    }
}

#[test]
fn private_handlers_and_files_are_nobodys_by_any_socket() {
    let scratch = Scratch::new("sockets");
    let all = scratch.handlers();
    let full = |(element, handler): &(String, Handler)| format!("{element}.{}", handler.name);
    let (private, public): (Vec<_>, Vec<_>) = all.iter().partition(|(_, h)| h.private);
    let private: Vec<String> = private.into_iter().map(full).collect();
    let known =
        ["cDriverManager/x.cat", "cDriverManager/x.catq", "cScript/x.cat", "cScript/x.catq"];
    assert_eq!(private, known);

    let metrics = ["--control", "ctl", "-u", "option", "--metrics", "127.0.0.1:0"];
    let mut running = Running(scratch.run(&metrics));
    let mut told = BufReader::new(running.0.stderr.take().unwrap()).lines();
    let metrics = told.find_map(|line| line.unwrap().strip_prefix("metrics: ").map(str::to_string));
    let metrics = metrics.expect("where metrics are");
    // What it says is read, so that it can go on.
    std::thread::spawn(move || told.for_each(drop));
    let mut ctl = Lines::open(&scratch.0.join("ctl"));
    let mut sockets = ["option", "element"].map(|name| Lines::open(&scratch.0.join(name)));
    sockets.iter_mut().for_each(|socket| drop(socket.line()));

    for name in &private {
        let refused = json!({ "code": "handler", "message": format!("no handler named '{name}'") });
        let refused = json!({ "version": 1, "error": refused });
        for request in [
            json!({ "do": "read", "handler": format!("{name} secret") }),
            json!({ "do": "write", "handler": name, "value": "secret" }),
        ] {
            assert_eq!(ctl.ctl(&request), refused, "{request}");
        }
        for socket in &mut sockets {
            for command in ["READ", "WRITE", "GET", "SET", "CHECKREAD", "CHECKWRITE"] {
                let argument = if command.starts_with("CHECK") { "" } else { " secret" };
                let (said, _) = socket.control(&format!("{command} {name}{argument}"));
                assert_eq!(said, format!("511 No handler named '{name}'\r\n"), "{command}");
            }
            let (said, _) = socket.control(&format!("READDATA {name} 6\r\nsecret"));
            assert!(said.starts_with("511 "), "{said}");
        }
    }
    // Nobody is told of them, and no other handler gives a file away.
    let listed = ctl.ctl(&json!({ "do": "handlers" })).to_string();
    assert!(listed.contains("cScript/x") && !listed.contains("\"cat"), "{listed}");
    for (element, handler) in public {
        let name = format!("{element}.{}", handler.name);
        if handler.read {
            let answer = ctl.ctl(&json!({ "do": "read", "handler": format!("{name} secret") }));
            assert!(!answer.to_string().contains(SECRET), "{name}: {answer}");
            let (said, data) = sockets[0].control(&format!("READ {name} secret"));
            assert!(!said.contains(SECRET) && !data.contains(SECRET), "{name}: {said}{data}");
        }
        if handler.write && handler.name != "stop" {
            for value in ["secret", "file secret", "$(cat secret)"] {
                let (said, _) = sockets[1].control(&format!("WRITE {name} {value}"));
                assert!(!said.contains(SECRET), "{name}: {said}");
            }
        }
    }
    for socket in &mut sockets {
        let (_, listed) = socket.control("READ cScript/x.handlers");
        assert!(listed.contains("now\tr\n") && !listed.contains("cat"), "{listed}");
    }
    let address = metrics.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let mut scraped = TcpStream::connect(address).unwrap();
    scraped.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    scraped.read_to_string(&mut text).unwrap();
    assert!(text.contains("cScript/x") && !text.contains(SECRET), "{text}");
}

#[test]
fn private_handlers_are_nobodys_by_the_command_line() {
    let scratch = Scratch::new("options");
    std::fs::write(scratch.0.join("s.click"), "s :: Script(TYPE PASSIVE, end);").unwrap();
    for handler in ["cat", "catq"] {
        for arguments in [
            ["run", "-q", "s.click", "-h", &format!("s.{handler} secret")],
            ["run", "-q", "s.click", "-w", &format!("s.{handler}=secret")],
            ["click", "s.click", "-q", "-h", &format!("s.{handler} secret")],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
            let ended = command.current_dir(&scratch.0).args(arguments).output().unwrap();
            let why = String::from_utf8_lossy(&ended.stderr).into_owned();
            let refused = format!("no handler named 's.{handler}'");
            assert!(!ended.status.success() && why.contains(&refused), "{arguments:?}: {why}");
            assert!(ended.stdout.is_empty());
        }
    }
}

/// Elements of the chain can use them, a script itself too.
#[test]
fn private_handlers_are_there_for_the_chain() {
    let scratch = Scratch::new("own");
    let text = "s :: Script(TYPE PASSIVE, return $(cat secret)); t :: Script(TYPE PASSIVE, return $(s.catq secret));";
    let bindings = Bindings { folder: scratch.0.clone(), ..Bindings::default() };
    let started = start_bound("own", text, &scratch.0, Path::Native, bindings);
    let mut router = started.unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}")).router;
    router.set_folder(scratch.0.clone());
    assert_eq!(router.read_handler("s.run"), Ok(SECRET.to_string()));
    assert!(router.read_handler("t.run").unwrap().contains("kept"));
}
