//! Open vSwitch, as tests and benches start it themselves: without a wire, a bridge of dummy ports, into which
//! frames are put by hand and whose frames are read from captures; or a [`Bridge`] between interfaces of a host. It
//! goes with the test that started it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

mod bridge;

pub use bridge::Bridge;

use crate::live::network::run;
use crate::live::{Process, until};

/// Type of the frames that tell what came before them from what comes behind: one for experiments.
const MARK: [u8; 2] = [0x88, 0xb5];

/// The daemons of Open vSwitch with one bridge, `br0`, and the folder of their sockets. They run without systemd, and
/// know of nobody else's.
struct Daemons {
    folder: PathBuf,
    // Dropped in this order.
    switch: Option<Process>,
    _database: Process,
}

impl Daemons {
    /// Starts them; `switch` is the command that will run `ovs-vswitchd`, and `bridge` what is done to the bridge when
    /// it is added.
    fn start(switch: Command, bridge: &[String]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("catena{}ovs{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        let tool = |program| in_folder(Command::new(program), &folder);
        run(tool("ovsdb-tool").args(["create", "conf.db", schema]));
        let mut database = tool("ovsdb-server");
        database.args(["--remote=punix:db.sock", "--unixctl=db.ctl", "conf.db"]).args(QUIET);
        let database = Process::start(&mut database);
        until("the database listens", || UnixStream::connect(folder.join("db.sock")).is_ok());
        run(tool("ovs-vsctl").args([DATABASE, "--no-wait", "init"]));
        // Hosts leave checksums and segments to their interfaces, and the switch has to be told so.
        let set = ["set", "Open_vSwitch", ".", "other_config:userspace-tso-enable=true"];
        run(tool("ovs-vsctl").args([DATABASE, "--no-wait"]).args(set));
        let mut daemons = Self { folder, switch: None, _database: database };
        daemons.run_switch(switch);
        let mut add = in_folder(Command::new("ovs-vsctl"), &daemons.folder);
        run(add.args([DATABASE, "add-br", "br0", "--", "set", "bridge", "br0"]).args(bridge));
        // First fragments show their ports.
        daemons.flows(&["set-frags", "br0", "nx-match"]);
        daemons
    }

    /// Runs the switch by this command.
    fn run_switch(&mut self, command: Command) {
        let mut switch = in_folder(command, &self.folder);
        switch.args(["--disable-system", "--unixctl=switch.ctl", "unix:db.sock"]).args(QUIET);
        self.switch = Some(Process::start(&mut switch));
    }

    /// A command of `ovs-ofctl` on the bridge, whose name stands for where it listens.
    fn control(&self, arguments: &[&str]) -> Command {
        let bridge = format!("unix:{}", self.folder.join("br0.mgmt").display());
        let arguments = arguments.iter().map(|a| if *a == "br0" { &bridge } else { *a });
        let mut command = Command::new("ovs-ofctl");
        command.args(["-O", "OpenFlow13"]).args(arguments);
        command
    }

    #[track_caller]
    fn flows(&self, arguments: &[&str]) -> String {
        run(&mut self.control(arguments))
    }

    /// Replaces all entries by those of a text.
    #[track_caller]
    fn load(&self, text: &str) {
        let file = self.folder.join("flows.txt");
        std::fs::write(&file, text).unwrap();
        self.flows(&["del-flows", "br0"]);
        self.flows(&["--bundle", "add-flows", "br0", &file.to_string_lossy()]);
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        // What is left in a folder for temporary files does no harm.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

const QUIET: [&str; 2] = ["-vconsole:off", "-vsyslog:off"];
const DATABASE: &str = "--db=unix:db.sock";

/// The same command, for the daemons in a folder.
fn in_folder(mut command: Command, folder: &Path) -> Command {
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
        command.env(variable, folder);
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// A bridge with dummy ports from 1 on.
pub struct Switch {
    ports: u32,
    control: UnixStream,
    /// Bytes of each port's capture that were read.
    read: Vec<usize>,
    daemons: Daemons,
}

/// A frame that a port sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The port.
    pub port: u32,
    /// The frame.
    pub bytes: Vec<u8>,
}

impl Switch {
    /// Starts a bridge with so many ports, that drops everything.
    pub fn start(ports: u32) -> Self {
        let mut bridge = vec!["datapath-type=dummy".to_string(), "fail-mode=secure".into()];
        for port in 1..=ports {
            let name = format!("p{port}");
            let add = ["--", "add-port", "br0", &name, "--", "set", "interface", &name];
            bridge.extend(add.map(String::from));
            bridge.extend(["type=dummy".into(), format!("ofport_request={port}")]);
            // It is the daemon's folder where it lies.
            bridge.push(format!("options:tx_pcap={name}.pcap"));
        }
        let daemons = Daemons::start(dummy(), &bridge);
        let control = UnixStream::connect(daemons.folder.join("switch.ctl")).unwrap();
        Self { ports, control, read: vec![0; ports as usize], daemons }
    }

    /// The socket at which the bridge listens.
    pub fn socket(&self) -> PathBuf {
        self.daemons.folder.join("br0.mgmt")
    }

    /// Runs `ovs-vsctl` for the bridge's database.
    #[track_caller]
    pub fn configure(&self, arguments: &[&str]) -> String {
        let mut command = in_folder(Command::new("ovs-vsctl"), &self.daemons.folder);
        run(command.arg(DATABASE).args(arguments))
    }

    /// Kills the switch, as a crash would end it.
    pub fn kill(&mut self) {
        if let Some(switch) = self.daemons.switch.take() {
            switch.kill();
        }
    }

    /// Starts the switch again, with its ports and without entries.
    pub fn start_again(&mut self) {
        let control = self.daemons.folder.join("switch.ctl");
        // What the dead one left would look as if the other was there.
        for left in [&control, &self.socket()] {
            drop(std::fs::remove_file(left));
        }
        self.daemons.run_switch(dummy());
        until("the switch is back", || {
            UnixStream::connect(self.socket()).is_ok() && control.exists()
        });
        self.control = UnixStream::connect(control).unwrap();
        self.read = vec![0; self.ports as usize];
    }

    /// Runs `ovs-ofctl` on the bridge, whose name stands for where it listens.
    #[track_caller]
    pub fn flows(&self, arguments: &[&str]) -> String {
        self.daemons.flows(arguments)
    }

    /// By cookie, what its entries counted: packets, and their bytes as they came in.
    #[track_caller]
    pub fn counters(&mut self) -> BTreeMap<u64, [u64; 2]> {
        // What the datapath counted is credited to entries when it forgets them.
        self.call("revalidator/purge", &[]);
        let mut all = BTreeMap::new();
        for line in self.flows(&["dump-flows", "br0"]).lines() {
            let text = |of: &str| line.split(&format!("{of}=")).nth(1)?.split([',', ' ']).next();
            let number = |of: &str| text(of)?.parse::<u64>().ok();
            let digits = text("cookie").and_then(|cookie| cookie.strip_prefix("0x"));
            let Some(cookie) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
            else {
                continue;
            };
            let [packets, bytes] = all.entry(cookie).or_insert([0; 2]);
            *packets += number("n_packets").expect("packets are counted");
            *bytes += number("n_bytes").expect("bytes are counted");
        }
        all
    }

    /// Replaces all entries by those of a file.
    #[track_caller]
    pub fn load(&mut self, text: &str) {
        self.daemons.load(text);
        let all: Vec<String> = (1..=self.ports).map(|port| format!("output:{port}")).collect();
        let mark = u16::from_be_bytes(MARK);
        let actions = all.join(",");
        // A port sends nothing that it received, unless it is told by name.
        let entry = format!("priority=65535,dl_type={mark:#x},actions={actions},in_port");
        self.flows(&["add-flow", "br0", &entry]);
        self.settle();
    }

    /// Has it forget what it found out by other entries, and count packets with those that it has.
    #[track_caller]
    pub fn settle(&mut self) {
        self.call("revalidator/wait", &[]);
        self.call("revalidator/purge", &[]);
    }

    /// Puts frames into a port, one after the other, and again when a busy switch lost some. What came out, frame by
    /// frame.
    #[track_caller]
    pub fn send(&mut self, port: u32, frames: &[Vec<u8>]) -> Vec<Vec<Sent>> {
        let mut all = Vec::with_capacity(frames.len());
        // A port holds 100 frames.
        for frames in frames.chunks(48) {
            let mut sent = None;
            until("every frame went through", || {
                sent = self.try_send(port, frames);
                sent.is_some()
            });
            all.append(&mut sent.unwrap_or_default());
        }
        all
    }

    /// Stops its clock: then time passes only by [`Switch::let_pass`].
    #[track_caller]
    pub fn stop_clock(&mut self) {
        self.call("time/stop", &[]);
    }

    /// Puts its clock forward by milliseconds.
    #[track_caller]
    pub fn let_pass(&mut self, milliseconds: u32) {
        self.call("time/warp", &[milliseconds.to_string()]);
    }

    /// How many frames the switch lost because it was not ready to find out what to do with them.
    fn lost(&mut self) -> u64 {
        let mut read = |counter: &str| {
            let reply = self.call("coverage/read-counter", &[counter.into()]);
            let digits = |c: char| !c.is_ascii_digit();
            let result = reply.split("\"result\":").nth(1).expect("a result");
            let number = result.trim_start_matches(digits).split(digits).next();
            number.and_then(|number| number.parse::<u64>().ok()).expect("a number")
        };
        read("datapath_drop_lock_error") + read("datapath_drop_upcall_error")
    }

    /// Puts at most 48 frames into a port, once. `None` if the switch lost some.
    pub fn try_send(&mut self, port: u32, frames: &[Vec<u8>]) -> Option<Vec<Vec<Sent>>> {
        let mut parameters = vec![format!("p{port}")];
        for frame in frames {
            parameters.extend([hex(frame), hex(&mark())]);
        }
        let lost = self.lost();
        self.call("netdev-dummy/receive", &parameters);
        let mut captured = Vec::new();
        // The switch turns to its ports between two calls; each time it takes one frame at least.
        for _ in 0..4 * frames.len() + 16 {
            self.call("version", &[]);
            captured = (1..=self.ports).map(|port| self.captured(port)).collect();
            if captured.iter().all(|all| all.1 == frames.len()) {
                break;
            }
        }
        let mut sent = vec![Vec::new(); frames.len()];
        let mut whole = self.lost() == lost;
        for (port, (all, marks, read)) in (1..).zip(captured) {
            self.read[port as usize - 1] += read;
            whole &= marks == frames.len();
            let mut at = 0;
            for bytes in all {
                match (bytes == mark(), sent.get_mut(at)) {
                    (true, _) => at += 1,
                    (false, Some(of)) => of.push(Sent { port, bytes }),
                    (false, None) => whole = false,
                }
            }
        }
        whole.then_some(sent)
    }

    /// What a port sent that was not looked at yet, the marks among it, and the bytes of its capture.
    fn captured(&self, port: u32) -> (Vec<Vec<u8>>, usize, usize) {
        let file = self.daemons.folder.join(format!("p{port}.pcap"));
        let (frames, read) = capture(&file, self.read[port as usize - 1]);
        let marks = frames.iter().filter(|bytes| **bytes == mark()).count();
        (frames, marks, read)
    }

    /// Calls a method of the switch.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: &[String]) -> String {
        let parameters: Vec<String> = parameters.iter().map(|p| format!("\"{p}\"")).collect();
        let parameters = parameters.join(",");
        let call = format!("{{\"id\":0,\"method\":\"{method}\",\"params\":[{parameters}]}}");
        self.control.write_all(call.as_bytes()).unwrap();
        let mut reply = String::new();
        let mut byte = [0];
        while reply.is_empty() || reply.matches('{').count() != reply.matches('}').count() {
            self.control.read_exact(&mut byte).unwrap();
            reply.push(byte[0].into());
        }
        assert!(reply.contains("\"error\":null"), "{call}: {reply}");
        reply
    }
}

/// The command that runs a switch without wires.
fn dummy() -> Command {
    let mut command = Command::new("ovs-vswitchd");
    command.arg("--enable-dummy=override");
    command
}

fn mark() -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(MARK);
    frame.resize(60, 0);
    frame
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The frames of a capture from a byte on, and the bytes that they take; the file's header is passed.
fn capture(file: &Path, from: usize) -> (Vec<Vec<u8>>, usize) {
    const HEADER: usize = 24;
    let bytes = std::fs::read(file).unwrap_or_default();
    let mut frames = Vec::new();
    let begin = if from == 0 { HEADER } else { from };
    let mut at = begin;
    while let Some(head) = bytes.get(at..at + 16) {
        let length = u32::from_ne_bytes(head[8..12].try_into().unwrap()) as usize;
        let Some(frame) = bytes.get(at + 16..at + 16 + length) else { break };
        frames.push(frame.to_vec());
        at += 16 + length;
    }
    (frames, at - from)
}
