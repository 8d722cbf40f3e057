//! Racks of namespaces that `catena lab` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lab::live::network::run;
use lab::live::{Process, possible, until};

use serde_json::Value;

use crate::CATENA;

/// A rack of one switch, two servers and two hosts, with names that nobody else has.
pub struct Rack {
    /// What names begin with.
    pub name: String,
    folder: PathBuf,
    /// Deployments to be taken back before it goes.
    plans: Vec<PathBuf>,
    /// The topology's file.
    pub file: PathBuf,
    /// Whether it is taken down in the end.
    is_up: bool,
}

impl Rack {
    /// Writes the topology; `XX` in it stands for what names begin with.
    pub fn write(name: &str, topology: &str) -> Self {
        let name = format!("c{}{name}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.yaml"));
        let control = folder.join("tor.mgmt");
        let topology = topology.replace("XX", &name).replace("CONTROL", &control.to_string_lossy());
        std::fs::write(&file, topology).unwrap();
        Self { name, folder, plans: Vec::new(), file, is_up: false }
    }

    /// Makes the rack, which stays until this is dropped.
    #[track_caller]
    pub fn make(mut self) -> Self {
        run(self.command().arg("--detach"));
        self.is_up = true;
        self
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file beside the topology; `XX` in it stands for what names begin with.
    pub fn write_beside(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text.replace("XX", &self.name)).unwrap();
        path
    }

    /// Places the chains of a manifest; the plan, which is taken back before the rack goes.
    #[track_caller]
    pub fn place(&mut self, manifest: &Path) -> PathBuf {
        let plan = self.folder.join(format!("{}.json", self.name));
        let mut place = Command::new(CATENA.0);
        place.arg("place").arg(manifest).arg("--topology").arg(&self.file);
        run(place.arg("-o").arg(&plan));
        self.plans.push(plan.clone());
        plan
    }

    /// Places chains anew from an earlier plan.
    #[track_caller]
    pub fn place_from(&self, manifest: &Path, from: &Path, options: &[&str]) -> PathBuf {
        let plan = self.folder.join(format!("{}-next.json", self.name));
        let mut place = Command::new(CATENA.0);
        place.arg("place").arg(manifest).arg("--topology").arg(&self.file).args(options);
        run(place.arg("--from").arg(from).arg("-o").arg(&plan));
        plan
    }

    /// Ends the process of a server that was deployed, as a failure does.
    #[track_caller]
    pub fn end_server(&self, name: &str) {
        let path = format!("/run/catena/deploy/{}/state.json", self.name);
        let state: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut servers = state["servers"].as_array().unwrap().iter();
        let number = &servers.find(|server| server["name"] == name).unwrap()["process"];
        run(Command::new("kill").args(["-9", &number.to_string()]));
    }

    #[track_caller]
    fn flows(&self) -> String {
        let socket = format!("unix:{}", self.folder.join("tor.mgmt").display());
        run(Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "dump-flows", &socket]))
    }

    /// Flow entries of the switch.
    #[track_caller]
    pub fn entries(&self) -> usize {
        self.flows().matches("cookie=").count()
    }

    /// Packets that met entries with some text.
    #[track_caller]
    pub fn packets(&self, text: &str) -> u64 {
        let flows = self.flows();
        let lines = flows.lines().filter(|line| line.contains(text));
        let count =
            |line: &str| line.split("n_packets=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        lines.filter_map(count).sum::<u64>()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(CATENA.0);
        command.arg("lab").arg(&self.file).stdin(Stdio::null());
        command
    }

    /// The name of a namespace.
    pub fn namespace(&self, of: &str) -> String {
        format!("{}{of}", self.name)
    }

    /// A command in a namespace.
    pub fn within(&self, of: &str, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(of), program]).args(arguments);
        command
    }

    /// What is there of it: namespaces, processes, files.
    fn left(&self) -> (Vec<String>, usize, bool) {
        let all = std::fs::read_dir("/run/netns").map(|all| {
            let names = all.map(|of| of.unwrap().file_name().to_string_lossy().into_owned());
            names.filter(|name| name.starts_with(&self.name)).collect()
        });
        let processes = std::fs::read_dir("/proc").unwrap().filter(|of| {
            let words = of.as_ref().map(|of| std::fs::read(of.path().join("environ")));
            let words = words.map(Result::unwrap_or_default).unwrap_or_default();
            let folder = format!("/run/catena/lab/{}", self.name);
            words.windows(folder.len()).any(|part| part == folder.as_bytes())
        });
        let journal = Path::new("/run/catena/lab").join(&self.name);
        (all.unwrap_or_default(), processes.count(), journal.exists())
    }

    #[track_caller]
    fn is_gone(&self) {
        assert_eq!(self.left(), (Vec::new(), 0, false));
        assert!(std::fs::symlink_metadata(self.folder.join("tor.mgmt")).is_err());
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for plan in &self.plans {
            let _ = Command::new(CATENA.0).arg("deploy").arg(plan).arg("--down").output();
        }
        if self.is_up {
            let _ = self.command().arg("--down").output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A switch, two servers, two hosts.
const RACK: &str = "\
switches:
  XXtor:
    target: ovs
    control: unix:CONTROL
    ports: { left: { number: 1 }, right: { number: 2 }, up: { number: 3 }, other: { number: 4 } }
servers:
  s1: { netns: XXs1, ports: { eth0: {} } }
  s2: { netns: XXs2, ports: { eth0: {} } }
links: [[XXtor.up, s1.eth0], [XXtor.other, s2.eth0]]
wires: { XXleft: XXtor.left, XXright: XXtor.right }
hosts:
  XXleft: { addresses: [10.1.0.2/24, 'fd00::2/64'], gateway: 10.1.0.1, mac: 02:00:00:00:01:02 }
";

pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_rack_is_made_once_and_taken_down() {
    if !possible() {
        return;
    }
    let rack = Rack::write("a", RACK).make();
    let shown = run(&mut rack.within("left", "ip", &["-o", "addr", "show", "dev", "eth0"]));
    assert!(shown.contains("10.1.0.2/24") && shown.contains("fd00::2/64"), "{shown}");
    let shown = run(&mut rack.within("left", "ip", &["link", "show", "dev", "eth0"]));
    assert!(shown.contains("mtu 1500") && shown.contains("02:00:00:00:01:02"), "{shown}");
    let shown = run(&mut rack.within("s2", "ip", &["link", "show", "dev", "eth0"]));
    assert!(shown.contains("mtu 1504"), "{shown}");
    let socket = format!("unix:{}", rack.folder().join("tor.mgmt").display());
    let ports = run(Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "show", &socket]));
    for port in ["1(left)", "2(right)", "3(up)", "4(other)"] {
        assert!(ports.contains(port), "{port}: {ports}");
    }
    let again = rack.command().output().unwrap();
    assert!(!again.status.success() && said(&again).contains("is there already"), "{again:?}");
    let down = run(rack.command().arg("--down"));
    assert_eq!(down, "taken down: 5 namespaces, 2 processes\n");
    rack.is_gone();
    assert_eq!(run(rack.command().arg("--down")), "nothing of this rack is there\n");
}

#[test]
fn what_others_made_is_left_alone() {
    if !possible() {
        return;
    }
    let rack = Rack::write("b", RACK);
    let others = rack.namespace("right");
    run(Command::new("ip").args(["netns", "add", &others]));
    let refused = rack.command().output().unwrap();
    run(rack.command().arg("--down"));
    let left = rack.left();
    run(Command::new("ip").args(["netns", "del", &others]));
    let why = said(&refused);
    assert!(!refused.status.success() && why.contains("was not made here"), "{why}");
    assert_eq!(left, (vec![others], 0, false));
}

#[test]
fn a_rack_whose_maker_was_killed_is_taken_down_by_the_next() {
    if !possible() {
        return;
    }
    let rack = Rack::write("c", RACK);
    let namespaces = || rack.left().0.len();
    for there in 0..=5 {
        let mut command = rack.command();
        let made = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        until("something is there", || namespaces() >= there);
        made.kill();
        // Commands that it ran may go on until they are done.
        if there % 2 == 0 {
            run(rack.command().arg("--down"));
            rack.is_gone();
        }
    }
    let mut made = Process::start(rack.command().stdout(Stdio::piped()));
    made.wait_for_output("Ctrl-C takes it down");
    assert!(made.stop().contains("taken down: 5 namespaces, 2 processes"));
    rack.is_gone();
}

#[test]
fn what_is_no_rack_is_named_before_anything_is_made() {
    for (from, to, expected) in [
        ("    control: unix:CONTROL\n", "", "add `control: unix:/run/catena/"),
        ("netns: XXs1, ", "", "add `netns: s1`"),
        ("netns: XXs2", "netns: XXs1", "would be made twice"),
        ("target: ovs", "target: swx", "nothing here takes swx"),
        ("up", "br0", "cannot be the name of an interface"),
        ("up", "a;b", "cannot be the name of an interface"),
        ("10.1.0.2/24", "10.1.0.2", "is no address with a prefix's length"),
        ("mac: 02", "mac: 2", "is no MAC address"),
        ("hosts:\n  XXleft", "hosts:\n  XXlift", "is at no wire"),
        (RACK, "", "it has no switches, servers or wires"),
    ] {
        let rack = Rack::write("d", &RACK.replace(from, to));
        let refused = rack.command().output().unwrap();
        assert!(!refused.status.success(), "{expected}");
        assert!(said(&refused).contains(expected), "{expected}: {}", said(&refused));
        assert_eq!(rack.left(), (Vec::new(), 0, false));
    }
}
