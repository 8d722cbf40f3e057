//! `catena netbench run --hosts`: two hosts with an sshd each, and a link of 10 Gb/s between them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::CATENA;

/// Two hosts, the one that measures them, and what is between their uplinks.
struct Hosts {
    network: Network,
    _daemons: Vec<Process>,
}

const ADDRESSES: [(&str, &str, &str); 2] =
    [("a", "10.77.1.1/30", "10.77.1.2"), ("b", "10.77.2.1/30", "10.77.2.2")];

impl Hosts {
    fn new() -> Self {
        let network = Network::new(&["desk", "a", "b", "wire"]);
        network.ip("wire", &["link", "add", "bridge", "up", "type", "bridge"]);
        for (number, (host, near, far)) in ADDRESSES.into_iter().enumerate() {
            let (desk, mac) = (format!("to-{host}"), format!("02:00:00:01:00:0{number}"));
            network.link([("desk", &desk), (host, "eth0")], &mac, &[]);
            network.ip("desk", &["addr", "add", near, "dev", &desk]);
            network.ip(host, &["addr", "add", &format!("{far}/30"), "dev", "eth0"]);
            network.ip(host, &["link", "set", "lo", "up"]);
            let wire = format!("w{number}");
            let queues = ["numrxqueues", "4", "numtxqueues", "4"];
            let mac = format!("02:00:00:02:00:0{number}");
            network.link([("wire", &wire), (host, "up0")], &mac, &queues);
            network.ip("wire", &["link", "set", &wire, "master", "bridge"]);
            let shape = ["rate", "10gbit", "burst", "2mb", "latency", "20ms"];
            let at = ["qdisc", "add", "dev", &wire, "root", "tbf"];
            network.on("wire", "tc", &[&at[..], &shape].concat());
        }
        let mut hosts = Self { network, _daemons: Vec::new() };
        hosts.start_daemons();
        hosts
    }

    fn path(&self, name: &str) -> PathBuf {
        self.network.folder().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// An sshd on each host, which takes one key and no password, and a configuration for `ssh`.
    fn start_daemons(&mut self) {
        for key in ["host", "user"] {
            let mut generate = Command::new("ssh-keygen");
            generate.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(key));
            assert!(generate.status().unwrap().success());
        }
        // Where it is apart from its privileges; packages make it when the system starts.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let folder = self.network.folder().display().to_string();
        let mut client = String::new();
        for (host, _, address) in ADDRESSES {
            let server = self.write(
                &format!("sshd-{host}"),
                &format!(
                    "ListenAddress {address}\nPort 2222\nHostKey {folder}/host\nPidFile none\nUsePAM no\nStrictModes no\n\
                     AuthorizedKeysFile {folder}/user.pub\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
                ),
            );
            // In the network of the host alone, so that all see one set of named namespaces.
            let mut daemon = Command::new("nsenter");
            daemon.arg(format!("--net=/run/netns/{}", self.network.namespace(host)));
            daemon.args(["/usr/sbin/sshd", "-D", "-e", "-f", &server]);
            daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut daemon = Process::start(&mut daemon);
            daemon.wait_for("Server listening");
            self._daemons.push(daemon);
            client += &format!(
                "Host {host}\n HostName {address}\n Port 2222\n User root\n IdentityFile {folder}/user\n IdentitiesOnly yes\n \
                 StrictHostKeyChecking no\n UserKnownHostsFile {folder}/known\n"
            );
        }
        self.write("ssh", &client);
    }

    fn start(&self, hosts: &str, more: &[&str]) -> Process {
        let mut command = self.network.command("desk", CATENA.0);
        command.args(["netbench", "run", "--json", "--keep-settings", "--repeat", "1"]);
        command.args(["--hosts", hosts, "--uplink", "up0", "--ssh-config"]).arg(self.path("ssh"));
        command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Process::start(&mut command)
    }

    /// Waits until uplinks are where they were: the hosts have taken down what they made.
    fn is_free(&self) -> bool {
        ["a", "b"].iter().all(|host| {
            self.network.try_on(host, "ip", &["link", "show", "dev", "up0", "up"]).status.success()
        })
    }
}

/// Senders that are to send for so many seconds, which no other test has.
fn senders(seconds: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_sender = |number: &u32| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        ["netbench", "send", seconds].iter().all(|word| words.contains(&word.as_bytes()))
    };
    numbers.filter(is_sender).collect()
}

/// Copies of the program that are there.
fn copies() -> usize {
    let all = std::fs::read_dir("/var/tmp").into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with("catena-")).count()
}

#[track_caller]
fn count(of: &Value, what: &str) -> u64 {
    of[what].as_u64().unwrap_or_else(|| panic!("{what}: {of}"))
}

/// The program is copied, and packets between hosts are those that their kernels count, through switches on both.
#[test]
fn packets_between_hosts_are_those_that_kernels_count() {
    if !possible() {
        return;
    }
    let hosts = Hosts::new();
    let load = ["--size", "64", "--rate", "10k", "--burst", "4", "--seconds", "0.2"];
    let one = ["--switch", "direct,linux-bridge,macvlan,catena", "--direction", "back"];
    let two = ["--switch", "linux-bridge", "--pairs", "2", "--io", "udp", "--remote-program"];
    let near = ["--switch", "direct,linux-bridge", "--pairs", "2", "--peer", "local"];
    let runs = [(&one[..], 4), (&[&two[..], &[CATENA.0]].concat(), 1), (&near, 2)];
    for (more, cells) in runs {
        let (code, text, told) = hosts.start("a,b", &[&load[..], more].concat()).ended();
        assert_eq!(code, Some(0), "{told}");
        let results: Value = serde_json::from_str(&text).unwrap();
        let names = [0, 1].map(|at| results["hosts"][at]["name"].as_str().unwrap().to_string());
        assert_eq!(names, ["a", "b"]);
        assert_eq!(results["cells"].as_array().unwrap().len(), cells);
        for cell in results["cells"].as_array().unwrap() {
            let sample = &cell["samples"][0];
            let all = &sample["throughput"];
            let pairs = count(cell, "pairs");
            assert_eq!(count(all, "attempted"), pairs * 2000, "{all}");
            assert_eq!(count(all, "sent"), count(all, "counted_sent"), "{all}");
            let came = count(all, "received") + count(all, "overrun");
            assert_eq!(count(all, "counted_received"), came, "{all}");
            assert_eq!(count(all, "sent"), count(all, "received") + count(all, "lost"), "{all}");
            let trips = &sample["round_trips"];
            assert_eq!(count(trips, "sent"), pairs * 2000, "{}", cell["switch"]);
            assert!(count(&trips["latency"], "p50") > 0, "{}", cell["switch"]);
            let peer = if more == near { "local" } else { "remote" };
            assert_eq!(cell["peer"], peer);
        }
        assert!(hosts.is_free());
    }
    assert_eq!(copies(), 0);
}

/// The `ssh` of a run that leads to a host's agent.
fn connection(run: u32, host: &str) -> Option<Pid> {
    let all = std::fs::read_to_string(format!("/proc/{run}/task/{run}/children")).ok()?;
    let is_it = |number: &str| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        words.first() == Some(&&b"ssh"[..]) && words.contains(&host.as_bytes())
    };
    let number = all.split_whitespace().find(|number| is_it(number))?;
    Pid::from_raw(number.parse().ok()?)
}

/// A connection that ends fails its cell, with a reason; the host takes all down, and the next cell is measured on a new one.
#[test]
fn a_connection_that_ends_fails_its_cell_alone() {
    if !possible() {
        return;
    }
    let hosts = Hosts::new();
    let load = ["--size", "64,128", "--seconds", "0.3", "--throughput", "--switch", "linux-bridge"];
    let run = hosts.start("a,b", &[&load[..], &["--remote-program", CATENA.0]].concat());
    until("the uplink is in use", || !hosts.is_free());
    let ssh = connection(run.id(), "b").expect("a connection");
    kill_process(ssh, Signal::KILL).unwrap();
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("failed: host b: the connection ended (signal: 9"), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let cells = results["cells"].as_array().unwrap();
    let went = cells.iter().filter(|cell| cell["samples"].as_array().unwrap().len() == 1).count();
    assert_eq!((cells.len(), went), (2, 1), "{told}");
    until("the hosts have their uplinks", || hosts.is_free());
}

/// One host alone is the second, and the one that measures the first. A set may have pairs on one host and between two.
#[test]
fn one_host_alone_is_the_second() {
    if !possible() {
        return;
    }
    let hosts = Hosts::new();
    // The first is where the run is started.
    let set = hosts.write(
        "set.yaml",
        "kind: TestSet\ndefaults: {switch: linux-bridge, size: 64, rate: 10k, burst: 4, seconds: 0.2, what: throughput}\n\
         sets:\n  - {peer: [local, remote], direction: back}\n",
    );
    let mut command = hosts.network.command("a", CATENA.0);
    command.args(["netbench", "run", &set, "--json", "--keep-settings", "--repeat", "1"]);
    command.args(["--hosts", "b", "--uplink", "up0", "--remote-program", CATENA.0]);
    // By the other host, which has the address of the desk between.
    hosts.network.ip("a", &["route", "add", "10.77.2.0/30", "via", "10.77.1.1"]);
    hosts.network.ip("b", &["route", "add", "10.77.1.0/30", "via", "10.77.2.1"]);
    hosts.network.on("desk", "sysctl", &["-q", "net.ipv4.ip_forward=1"]);
    command.arg("--ssh-config").arg(hosts.path("ssh"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (code, text, told) = Process::start(&mut command).ended();
    assert_eq!(code, Some(0), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["hosts"][0]["name"], "this host");
    let cells = results["cells"].as_array().unwrap();
    let peers: Vec<&str> = cells.iter().map(|cell| cell["peer"].as_str().unwrap()).collect();
    assert_eq!(peers, ["local", "remote"]);
    for cell in cells {
        let all = &cell["samples"][0]["throughput"];
        assert_eq!((count(all, "sent"), count(all, "counted_sent")), (2000, 2000), "{all}");
        let came = count(all, "received") + count(all, "overrun");
        assert_eq!(count(all, "counted_received"), came, "{all}");
    }
    assert!(hosts.is_free());
}

/// Ctrl-C takes down what was made on both hosts, and reports what was measured until then.
#[test]
fn an_interrupted_run_leaves_hosts_as_they_were() {
    if !possible() {
        return;
    }
    let hosts = Hosts::new();
    let report = hosts.path("report");
    let report = report.to_str().unwrap();
    let load = ["--size", "64,128", "--throughput", "--switch", "linux-bridge", "--seconds", "61"];
    let more = ["--remote-program", CATENA.0, "--report", report];
    let run = hosts.start("a,b", &[&load[..], &more].concat());
    until("a sender runs", || !senders("61").is_empty());
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::INT).unwrap();
    let (code, text, told) = run.ended();
    assert_eq!(code, Some(1), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["interrupted"], true);
    until("the hosts have their uplinks", || hosts.is_free());
    until("no sender is left", || senders("61").is_empty());
    assert!(Path::new(report).join("results.json").exists());
}

/// Hosts that cannot be measured are named, with the reason.
#[test]
fn hosts_that_cannot_be_reached_are_named() {
    if !possible() {
        return;
    }
    let hosts = Hosts::new();
    let other = hosts.write(
        "other",
        "#!/bin/sh\necho '{\"hello\": {\"version\": \"0.0.9\", \"commit\": null}}'\nread -r line\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(Path::new(&other), mode).unwrap();
    for (names, more, expected) in [
        ("a,nowhere.invalid", &["--remote-program", CATENA.0][..], "host nowhere.invalid: "),
        ("nobody@a,b", &[], "host nobody@a: "),
        ("a,b", &["--remote-program", "/nowhere/catena"], "/nowhere/catena: not found"),
        ("a,b", &["--remote-program", &other], "there is Catena 0.0.9, and this program"),
        ("a,b", &["--remote-program", CATENA.0, "--cores", "900"], "host a: it has no CPU 900"),
        ("a,a", &[], "--hosts: both are a"),
        ("a,b,c", &[], "--hosts: takes one host or two"),
        ("a,-o", &[], "is no host"),
    ] {
        let (code, text, told) = hosts.start(names, more).ended();
        let told = told + &text;
        assert!(code != Some(0) && told.contains(expected), "{names}: {told}");
    }
    let arguments = ["--remote-program", CATENA.0, "--switch", "direct", "--pairs", "2"];
    let (code, _, told) = hosts.start("a,b", &arguments).ended();
    assert!(code == Some(1) && told.contains("host a: direct joins two ports"), "{told}");
    hosts.network.ip("b", &["addr", "add", "192.0.2.1/24", "dev", "up0"]);
    let arguments = ["--remote-program", CATENA.0, "--switch", "linux-bridge", "--size", "64"];
    let (code, _, told) = hosts.start("a,b", &arguments).ended();
    assert!(
        code == Some(1) && told.contains("host b: the interface 'up0' has the address"),
        "{told}"
    );
}
