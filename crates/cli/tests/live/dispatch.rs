//! Frames that say by a tag which worker is theirs.

use std::net::{Ipv6Addr, UdpSocket};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use crate::CATENA;
use crate::change::CONNECTIONS;
use crate::protocols::speak_ipv6;
use crate::talk::{self, Talk};
use crate::traffic::{BOUND, nat};
use lab::live::{Lab, MACS, Process, possible, until};

/// A chain in the middle that runs on two workers.
pub(crate) struct Tagged {
    pub(crate) lab: Lab,
    pub(crate) running: Process,
    pub(crate) socket: PathBuf,
}

/// Tells the hosts for good whom they send to. Who had to ask would give up after three seconds without an answer, and
/// drop what waits: where CPUs are busy, a worker may have to wait longer for its own.
fn lead_to(lab: &Lab, [left, right]: [&str; 2]) {
    for (host, gateway, mac) in [("left", "10.1.0.1", left), ("right", "10.2.0.1", right)] {
        let known =
            ["neigh", "replace", gateway, "lladdr", mac, "dev", "veth0", "nud", "permanent"];
        lab.ip(host, &known);
    }
}

impl Tagged {
    pub(crate) fn run(chain: &str, mode: &str, dispatch: &[&str]) -> Self {
        Self::within(Lab::new(CATENA, 1500), chain, mode, dispatch)
    }

    fn within(lab: Lab, chain: &str, mode: &str, dispatch: &[&str]) -> Self {
        let socket = lab.file("ctl", "").with_extension("sock");
        let path = socket.to_str().unwrap();
        let how = ["--io", mode, "--cores", "0,1", "--control", path];
        let mut running = lab.run(chain, &[&BOUND[..], &how, dispatch].concat());
        running.wait_for("control: ");
        lead_to(&lab, MACS);
        Self { lab, running, socket }
    }

    fn ask(&self, what: &[&str]) -> Value {
        serde_json::from_str(&CATENA.ctl(&self.socket, &[&["--json"], what].concat())).unwrap()
    }

    /// Has the left host's packets tagged as a group's.
    pub(crate) fn tag(&self, group: usize) {
        let known = self.ask(&["dispatch"]);
        let tag = known["groups"][group]["tag"].as_str().unwrap();
        self.lab.ip("left", &["neigh", "replace", "10.1.0.1", "lladdr", tag, "dev", "veth0"]);
    }

    /// The left host sends so many packets as a group's.
    fn send(&self, group: usize, count: usize) {
        self.tag(group);
        let send = move || {
            let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
            for _ in 0..count {
                socket.send_to(&[7; 100], "10.2.0.2:9").unwrap();
            }
        };
        self.lab.at("left", send).join().unwrap();
    }

    /// Packets that a worker has handed to another.
    fn handed(&self, from: usize, to: usize) -> u64 {
        let known = self.ask(&["dispatch"]);
        let all = known["handed"].as_array().unwrap();
        let is_meant = |pair: &&Value| pair["from"] == from && pair["to"] == to;
        all.iter().find(is_meant).map_or(0, |pair| pair["packets"].as_u64().unwrap())
    }

    /// Packets that were dropped for this reason.
    fn dropped(&self, reason: &str) -> u64 {
        let counters = self.ask(&["counters"]);
        let all = counters["all"]["elements"].as_array().unwrap().iter();
        all.filter_map(|element| element["dropped"][reason].as_u64()).sum()
    }

    /// Takes a group to a worker.
    pub(crate) fn take(&self, group: usize, worker: usize) {
        let said = self.ask(&["dispatch", "move", &group.to_string(), &worker.to_string()]);
        assert_eq!(said["held_back"], 0, "{said}");
        assert_eq!(self.ask(&["dispatch"])["groups"][group]["worker"], worker);
    }

    /// Packets that each worker received from each side.
    fn received(&self) -> Vec<[u64; 2]> {
        let counters = self.ask(&["counters"]);
        let workers = counters["workers"].as_array().unwrap().iter();
        let of = |worker: &Value| {
            let all = worker["elements"].as_array().unwrap().iter();
            let packets = all.filter_map(|element| element["in"]["packets"].as_u64());
            <[u64; 2]>::try_from(packets.collect::<Vec<_>>()).unwrap()
        };
        workers.map(of).collect()
    }
}

/// What stands before the chain and tags what comes from the left host.
struct VlanSwitch {
    _running: Process,
    socket: PathBuf,
}

impl VlanSwitch {
    fn before(lab: &Lab) -> Self {
        let socket = lab.file("switch", "").with_extension("sock");
        let chain = "FromDevice(host) -> tag :: VLANEncap(VLAN_ID 1) -> ToDevice(wire);
            FromDevice(wire) -> ToDevice(host);";
        let bound = ["--in", "host=tap:host0", "--in", "wire=veth0"];
        let control = ["--control", socket.to_str().unwrap()];
        let mut running = lab.run_on("left", chain, &[&bound[..], &control].concat());
        running.wait_for("control: ");
        lab.ip("left", &["addr", "flush", "dev", "veth0"]);
        lab.ip("left", &["addr", "add", "10.1.0.2/24", "dev", "host0"]);
        lab.ip("left", &["route", "add", "default", "via", "10.1.0.1"]);
        Self { _running: running, socket }
    }
}

/// Tagged frames and the answers to what becomes of them are at one worker: that of their group.
#[test]
fn a_tag_brings_both_directions_to_its_worker() {
    if !possible() {
        return;
    }
    for (mode, tags) in [
        ("af-xdp", "tags=mac"),
        ("af-packet-mmsg", "tags=mac"),
        ("af-xdp", "tags=vlan:7"),
        ("af-packet-ring", "tags=vlan:7"),
    ] {
        let tagged = Tagged::run(&nat(), mode, &["--dispatch", tags, "--groups", "4"]);
        let told = tagged.running.told();
        assert!(told.contains(&format!("dispatch: {tags} (asked for), ")), "{told}");
        let known = tagged.ask(&["dispatch"]);
        let groups = known["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &known["mode"]), (4, &Value::from(tags)));
        let switch = (tags != "tags=mac").then(|| VlanSwitch::before(&tagged.lab));
        for (number, group) in groups.iter().enumerate() {
            let tag = group["tag"].as_str().unwrap();
            let worker = group["worker"].as_u64().unwrap() as usize;
            assert_eq!(worker, number % 2);
            match &switch {
                None => {
                    let via = ["neigh", "replace", "10.1.0.1", "lladdr", tag, "dev", "veth0"];
                    tagged.lab.ip("left", &via);
                }
                Some(switch) => drop(CATENA.ctl(&switch.socket, &["write", "tag.vlan_id", tag])),
            }
            let before = tagged.received();
            tagged.lab.exchange("10.2.0.2", 20_000);
            tagged.lab.exchange("10.2.0.2", 20_000);
            let after = tagged.received();
            for side in 0..2 {
                let came = |worker: usize| after[worker][side] - before[worker][side];
                // Others: neighbours' questions.
                assert!(came(worker) >= 20 && came(1 - worker) < 5, "{before:?} {after:?}");
            }
            let now = tagged.ask(&["dispatch"]);
            assert!(now["groups"][number]["packets"].as_u64().unwrap() >= 20, "{now:#}");
        }
        tagged.running.stop();
    }
}

/// Flows of numbered datagrams to the right and back, each on a socket of its own.
pub(crate) struct Numbers {
    /// Tells the left side to end, and the right side.
    over: [Arc<AtomicBool>; 2],
    /// How many came back.
    back: Arc<AtomicU64>,
    left: Vec<std::thread::JoinHandle<()>>,
    right: Vec<std::thread::JoinHandle<()>>,
}

/// Datagrams of a flow that are in flight: the rings of a link hold all flows' together.
const IN_FLIGHT: u64 = 24;
const FLOWS: usize = 4;

/// Keeps a thread's packets in the order in which it sends them: a link has a queue for each CPU.
fn stay_on(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

impl Numbers {
    pub(crate) fn begin(lab: &Lab) -> Self {
        // A host with several CPUs overtakes itself, unless one handles all that comes in.
        for host in ["left", "right"] {
            let one = "for q in /sys/class/net/veth0/queues/rx-*; do echo 1 > $q/rps_cpus; done";
            lab.on(host, "sh", &["-c", one]);
        }
        let over = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let back = Arc::new(AtomicU64::new(0));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for flow in 0..FLOWS {
            let (to, from) = std::sync::mpsc::channel();
            let until = Arc::clone(&over[1]);
            right.push(lab.at("right", move || {
                stay_on(flow % 2);
                let socket = UdpSocket::bind("10.2.0.2:0").unwrap();
                socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
                to.send(socket.local_addr().unwrap()).unwrap();
                let (mut buffer, mut expected) = ([0; 100], 0);
                while !until.load(Ordering::Relaxed) {
                    let Ok((n, peer)) = socket.recv_from(&mut buffer) else { continue };
                    let number = u64::from_be_bytes(*buffer.first_chunk().unwrap());
                    assert_eq!(number, expected, "on the forward path");
                    expected += 1;
                    socket.send_to(&buffer[..n], peer).unwrap();
                }
            }));
            let (until, count) = (Arc::clone(&over[0]), Arc::clone(&back));
            left.push(lab.at("left", move || {
                stay_on(flow % 2);
                let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
                socket.set_read_timeout(Some(talk::PATIENCE)).unwrap();
                socket.connect(from.recv().unwrap()).unwrap();
                let (mut buffer, mut sent) = ([0; 100], 0u64);
                for expected in 0u64.. {
                    let enough = until.load(Ordering::Relaxed);
                    while !enough && sent < expected + IN_FLIGHT {
                        let datagram = [&sent.to_be_bytes()[..], &[7; 42]].concat();
                        socket.send(&datagram).unwrap();
                        sent += 1;
                    }
                    if enough {
                        break;
                    }
                    socket.recv(&mut buffer).expect("none is lost");
                    let number = u64::from_be_bytes(*buffer.first_chunk().unwrap());
                    assert_eq!(number, expected, "on the return path");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Self { over, back, left, right }
    }

    /// Waits until so many more came back.
    pub(crate) fn go_on(&self, more: u64) {
        let until = self.back.load(Ordering::Relaxed) + more;
        while self.back.load(Ordering::Relaxed) < until {
            let mut threads = self.left.iter().chain(&self.right);
            let broken = threads.any(std::thread::JoinHandle::is_finished);
            assert!(!broken, "a number was lost, or overtaken");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn end(self) {
        for (over, threads) in self.over.iter().zip([self.left, self.right]) {
            over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().expect("all numbers came, in their order");
            }
        }
    }
}

/// A group goes to and fro between two workers while its flows go on through a translator: no
/// datagram is lost or overtaken, no connection breaks, and no byte changes.
#[test]
fn groups_move_without_losing_or_overtaking() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        let how = ["--dispatch", "tags=mac", "--groups", "4"];
        let tagged = Tagged::run(&nat(), mode, &how);
        tagged.tag(2);
        let numbers = Numbers::begin(&tagged.lab);
        numbers.go_on(1000);
        for i in 1..=40 {
            tagged.take(2, i % 2);
            numbers.go_on(500);
        }
        numbers.end();
        let received = tagged.received();
        assert!(received.iter().flatten().all(|packets| *packets > 5000), "{received:?}");
        let talk = Talk::begin(&tagged.lab, "10.2.0.2", CONNECTIONS);
        talk.go_on(CONNECTIONS as u64);
        for i in 1..=20 {
            tagged.take(2, i % 2);
            talk.go_on(CONNECTIONS as u64);
        }
        talk.end();
        tagged.running.stop();
    }
}

/// Workers come and go while flows go on through a translator: no datagram is lost or overtaken, no connection
/// breaks, no byte changes, and nothing that was counted is forgotten.
#[test]
fn workers_come_and_go_without_losing_or_overtaking() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        let tagged = Tagged::run(&nat(), mode, &["--workers", "1"]);
        let told = tagged.running.told();
        assert!(told.contains("dispatch: hash (the default) to 1 of 2"), "{told}");
        let status = |worker: usize| tagged.ask(&["status"])["workers"][worker]["status"].clone();
        assert_eq!([status(0), status(1)], ["running", "parked"]);
        let set = |workers: usize| {
            let said = tagged.ask(&["workers", &workers.to_string()]);
            assert_eq!(
                (&said["workers"], &said["held_back"]),
                (&workers.into(), &0.into()),
                "{said}"
            );
            let known = tagged.ask(&["dispatch"]);
            let groups = known["groups"].as_array().unwrap().iter();
            let at = |worker: usize| groups.clone().filter(|g| g["worker"] == worker).count();
            assert_eq!((at(0) + at(1), at(1)), (16, if workers == 2 { 8 } else { 0 }), "{known}");
        };
        let numbers = Numbers::begin(&tagged.lab);
        numbers.go_on(1000);
        assert_eq!(tagged.received()[1], [0, 0]);
        for i in 1..=20 {
            set(1 + i % 2);
            numbers.go_on(500);
        }
        set(2);
        numbers.end();
        // Flows that begin now come to both.
        until("both workers receive", || {
            tagged.lab.exchange("10.2.0.2", 1000);
            tagged.received()[1].iter().all(|packets| *packets > 0)
        });
        let talk = Talk::begin(&tagged.lab, "10.2.0.2", CONNECTIONS);
        talk.go_on(CONNECTIONS as u64);
        for i in 1..=20 {
            set(1 + (i + 1) % 2);
            talk.go_on(CONNECTIONS as u64);
        }
        talk.end();
        let before = tagged.received()[1];
        set(1);
        assert_eq!(status(1), "parked");
        assert!((0..2).all(|side| tagged.received()[1][side] >= before[side]), "{before:?}");
        // The chain is changed on all workers, also on those that stand by.
        let again = tagged.lab.file("again", &nat());
        CATENA.ctl(&tagged.socket, &["swap", again.to_str().unwrap()]);
        tagged.lab.exchange("10.2.0.2", 20_000);
        set(2);
        tagged.lab.exchange("10.2.0.2", 20_000);
        tagged.running.stop();
    }
}

/// A policy has a worker come when there is load and go when there is less than it asks for, while flows go on through a
/// translator: no datagram is lost or overtaken. What it decided is told, and decided alike when it is replayed.
#[test]
fn a_policy_scales_a_run_without_losing_or_overtaking() {
    if !possible() {
        return;
    }
    // Any load is too much, or none is enough.
    let more = ["rss_plus_plus.target=0", "rss_plus_plus.add=0", "rss_plus_plus.remove=1000000"];
    let fewer = ["rss_plus_plus.add=-1000", "rss_plus_plus.remove=-1000", "guards.confirm=3"];
    for (constants, [before, after], order) in
        [(more, [1, 2], "add core 1"), (fewer, [2, 1], "release core 1")]
    {
        let lab = Lab::new(CATENA, 1500);
        let log = lab.folder().join("log");
        let sets = |option: &'static str| constants.iter().flat_map(move |set| [option, *set]);
        let before = before.to_string();
        let mut options = vec!["--workers", &before, "--scale", "rss++"];
        options.extend(["--scale-log", log.to_str().unwrap()]);
        options.extend(sets("--scale-set"));
        let tagged = Tagged::within(lab, &nat(), "af-packet-mmsg", &options);
        let numbers = Numbers::begin(&tagged.lab);
        until("the number of workers changed", || {
            numbers.go_on(100);
            tagged.ask(&["workers"])["workers"] == after
        });
        numbers.go_on(1000);
        numbers.end();
        let scale = |arguments: &[&str]| {
            let output = Command::new(CATENA.0).arg("scale").args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let why = scale(&["why", "--socket", tagged.socket.to_str().unwrap()]);
        let (head, orders) = (format!("rss++: {after} of 2 workers"), format!("-> {order}"));
        assert!(why.contains(&head) && why.contains(&orders), "{why}");
        assert!(!why.contains("not done"), "{why}");
        let known = tagged.ask(&["dispatch"]);
        let groups = known["groups"].as_array().unwrap().iter();
        assert_eq!(groups.filter(|group| group["worker"] == 1).count() > 0, after == 2, "{known}");
        tagged.running.stop();
        let mut replay = vec!["replay", log.to_str().unwrap(), "--policy", "rss++", "--json"];
        replay.extend(sets("--set"));
        let replayed: Value = serde_json::from_str(&scale(&replay)).unwrap();
        assert!(replayed["looks"].as_u64() > Some(1), "{replayed}");
        assert_eq!(replayed["same"], replayed["looks"], "{replayed}");
    }
}

/// Connections through a translator go on in another process with more workers, or fewer: each flow is where its
/// packets come.
#[test]
fn flows_go_on_with_another_number_of_workers() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let socket = lab.file("ctl", "").with_extension("sock");
    let state = lab.folder().join("state");
    let (path, state) = (socket.to_str().unwrap(), state.to_str().unwrap());
    let all = ["--io", "af-packet-mmsg", "--cores", "0,1", "--control", path];
    let start = |workers: &str| {
        let mut running = lab.run(&nat(), &[&BOUND[..], &all, &["--workers", workers]].concat());
        running.wait_for("control: ");
        running
    };
    // While one ends and the other begins, nobody may begin a flow that is there already.
    const NOBODY: &str = "02:00:00:00:00:99";
    let mut running = start("1");
    let talk = Talk::begin(&lab, "10.2.0.2", CONNECTIONS);
    talk.go_on(CONNECTIONS as u64);
    for workers in ["2", "1"] {
        lead_to(&lab, [NOBODY; 2]);
        CATENA.ctl(&socket, &["state", "export", state]);
        running.stop();
        running = start(workers);
        let said = CATENA.ctl(&socket, &["--json", "state", "import", state]);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["flows"].as_u64() >= Some(CONNECTIONS as u64), "{said}");
        assert!(said["lost"].is_null(), "{said}");
        lead_to(&lab, MACS);
        talk.go_on(10 * CONNECTIONS as u64);
        let counters = CATENA.ctl(&socket, &["--json", "counters"]);
        let counters: Value = serde_json::from_str(&counters).unwrap();
        let flows = |worker: &Value| {
            let elements = worker["elements"].as_array().unwrap();
            let flows = elements.iter().find(|element| element["name"] == "flows").unwrap();
            flows["flows"].as_u64().unwrap_or(0)
        };
        let at: Vec<u64> = counters["workers"].as_array().unwrap().iter().map(flows).collect();
        assert!(at[0] > 0 && (at[1] > 0) == (workers == "2"), "{at:?}");
        assert!(at[0] + at[1] < 2 * CONNECTIONS as u64, "none was made anew: {at:?}");
    }
    talk.end();
    running.stop();
}

/// A group's flows, and no others, go on in another process.
#[test]
fn a_groups_flows_go_on_in_another_process() {
    if !possible() {
        return;
    }
    let tagged =
        Tagged::run(&nat(), "af-packet-mmsg", &["--dispatch", "tags=mac", "--groups", "4"]);
    tagged.tag(1);
    let talk = Talk::begin(&tagged.lab, "10.2.0.2", CONNECTIONS);
    talk.go_on(CONNECTIONS as u64);
    let files = ["2", "1"].map(|group| {
        let file = tagged.lab.folder().join(group).to_str().unwrap().to_string();
        CATENA.ctl(&tagged.socket, &["state", "export", "--group", group, &file]);
        file
    });
    lead_to(&tagged.lab, ["02:00:00:00:00:99"; 2]);
    let Tagged { lab, running, socket } = tagged;
    running.stop();
    let how = ["--io", "af-packet-mmsg", "--control", socket.to_str().unwrap()];
    let mut running = lab.run(&nat(), &[&BOUND[..], &how].concat());
    running.wait_for("control: ");
    let flows = files.map(|file| {
        let said = CATENA.ctl(&socket, &["--json", "state", "import", &file]);
        serde_json::from_str::<Value>(&said).unwrap()["flows"].as_u64().unwrap()
    });
    assert!(flows[0] == 0 && flows[1] >= CONNECTIONS as u64, "{flows:?}");
    lead_to(&lab, MACS);
    talk.go_on(10 * CONNECTIONS as u64);
    talk.end();
    let all = CATENA.ctl(&socket, &["flows", "--count"]);
    let all: u64 = all.trim().parse().unwrap();
    assert!(all < 2 * CONNECTIONS as u64, "none was made anew: {all}");
    running.stop();
}

/// Each group tells how many of its packets wait in queues.
#[test]
fn queues_are_as_long_as_what_waits_of_each_group() {
    if !possible() {
        return;
    }
    let chain = "FromDevice(left) -> Queue(1000) -> Unqueue(ACTIVE false) -> ToDevice(right);
        FromDevice(right) -> Discard;";
    let tagged = Tagged::run(chain, "af-packet-mmsg", &["--dispatch", "tags=mac", "--groups", "4"]);
    for (group, count) in [(1, 30), (2, 7)] {
        tagged.send(group, count);
        until("all wait", || tagged.ask(&["dispatch"])["groups"][group]["queued"] == count);
    }
    let known = tagged.ask(&["dispatch"]);
    let queued: Vec<Option<u64>> =
        (0..4).map(|group| known["groups"][group]["queued"].as_u64()).collect();
    assert_eq!(queued, [None, Some(30), Some(7), None]);
    tagged.running.stop();
}

/// Packets that a worker does not take wait in its receive queue, and are there when it does.
#[test]
fn receive_queues_are_as_long_as_what_waits_of_each_worker() {
    if !possible() {
        return;
    }
    let chain = "in :: FromDevice(left, ACTIVE false) -> c :: Counter -> ToDevice(right);
        FromDevice(right) -> Discard;";
    for mode in ["af-xdp", "af-packet-ring"] {
        let tagged = Tagged::run(chain, mode, &["--dispatch", "tags=mac", "--groups", "4"]);
        let workers: Vec<u64> = {
            let known = tagged.ask(&["dispatch"]);
            let worker = |group: usize| known["groups"][group]["worker"].as_u64().unwrap();
            [0, 1].map(worker).into()
        };
        assert_ne!(workers[0], workers[1]);
        for (group, count) in [(0, 30), (1, 7)] {
            tagged.send(group, count);
        }
        // Hosts may send a frame of their own in between.
        let waiting = || {
            let counters = tagged.ask(&["counters"]);
            let of = |worker: &u64| {
                let all = counters["workers"].as_array().unwrap();
                let own = all.iter().find(|own| own["worker"] == *worker).unwrap();
                own["waiting"]["eth0"].as_u64().unwrap()
            };
            workers.iter().map(of).collect::<Vec<_>>()
        };
        until("all wait", || waiting().iter().zip([30, 7]).all(|(n, sent)| *n >= sent));
        assert!(waiting()[0] > waiting()[1]);
        CATENA.ctl(&tagged.socket, &["write", "in.active", "true"]);
        until("none waits", || waiting() == [0, 0]);
        let count: u64 = CATENA.ctl(&tagged.socket, &["read", "c.count"]).trim().parse().unwrap();
        assert!(count >= 37, "{count}");
        tagged.running.stop();
    }
}

/// Where the number of workers cannot change, that is said, with what to start with.
#[test]
fn workers_stay_where_flows_cannot_move() {
    if !possible() {
        return;
    }
    for (how, why) in [
        (["--dispatch", "queue"], "is fixed where packets find them by queue"),
        (["--dispatch", "hash"], "is fixed: the run did not begin with a number that can change"),
    ] {
        let tagged = Tagged::run(&nat(), "af-packet-mmsg", &how);
        let said = CATENA.refused(&tagged.socket, &["workers", "1"]);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("start with `catena run --workers N`"), "{said}");
        let said = tagged.ask(&["workers"]);
        assert_eq!((&said["workers"], &said["most"]), (&2.into(), &2.into()));
        tagged.running.stop();
    }
    let tagged = Tagged::run(&nat(), "af-packet-mmsg", &["--workers", "2"]);
    for (wanted, mend) in
        [("0", "there can be 1 to 2 workers, not 0"), ("3", "--cores selects CPUs")]
    {
        let said = CATENA.refused(&tagged.socket, &["workers", wanted]);
        assert!(said.contains(mend), "{said}");
    }
    tagged.running.stop();
}

/// Networks of a routing table, and packets that are sent at once.
const NETWORKS: usize = 1000;
const BURST: usize = 200;

/// What a table of a thousand networks tells apart goes to different workers: the left host tags as
/// it is told to, with a route to each network by the neighbour whose address is the tag.
#[test]
fn a_routing_table_spreads_its_networks_over_workers() {
    if !possible() {
        return;
    }
    let network = |i: usize| format!("2001:db8:{:x}:{:x}::", i / 7, i % 7);
    let routes: Vec<String> =
        (0..NETWORKS).map(|i| format!("{}/64 {}", network(i), i % 2)).collect();
    let chain = format!(
        "FromDevice(left) -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24)
           -> r :: LookupIP6Route({});
         r[0] -> n0 :: Counter -> Unstrip(14) -> out :: ToDevice(right);
         r[1] -> n1 :: Counter -> Unstrip(14) -> out; FromDevice(right) -> Discard;",
        routes.join(", ")
    );
    let tagged = Tagged::run(&chain, "af-xdp", &["--dispatch", "tags=mac"]);
    let lab = &tagged.lab;
    speak_ipv6(lab);
    let known = tagged.ask(&["dispatch"]);
    let groups = known["groups"].as_array().unwrap();
    let holds = |group: &Value, to: Ipv6Addr| {
        let classes = group["classes"].as_array().unwrap().iter();
        let mut ranges = classes
            .flat_map(|class| class["fields"].as_array().unwrap())
            .filter(|field| field["field"] == "ip6.dst")
            .flat_map(|field| field["ranges"].as_array().unwrap());
        let end = |end: &Value| end.as_str().unwrap().parse::<Ipv6Addr>().unwrap();
        ranges.any(|range| (end(&range[0])..=end(&range[1])).contains(&to))
    };
    let of = |i: usize| {
        let to = format!("{}1", network(i)).parse().unwrap();
        let all: Vec<usize> =
            (0..groups.len()).filter(|&group| holds(&groups[group], to)).collect();
        let [group] = all[..] else { panic!("{to} is of groups {all:?}") };
        group
    };
    let first = [of(0), of(1)];
    assert_ne!(groups[first[0]]["worker"], groups[first[1]]["worker"], "{known:#}");
    let mut lines = String::new();
    for (group, known) in groups.iter().enumerate() {
        let tag = known["tag"].as_str().unwrap();
        lines += &format!("neigh replace fd01::ff:{group:x} lladdr {tag} dev veth0\n");
    }
    for i in 0..NETWORKS {
        lines += &format!("route add {}/64 via fd01::ff:{:x} dev veth0\n", network(i), of(i));
    }
    let batch = lab.folder().join("routes");
    std::fs::write(&batch, lines).unwrap();
    lab.ip("left", &["-6", "-batch", batch.to_str().unwrap()]);
    // By worker and kind of network: packets.
    let counts = || {
        let counters = tagged.ask(&["counters"]);
        let of = |worker: &Value, name: &str| {
            let all = worker["elements"].as_array().unwrap();
            let element = all.iter().find(|element| element["name"] == name).unwrap();
            element["packets"].as_u64().unwrap() as usize
        };
        let workers = counters["workers"].as_array().unwrap().iter();
        workers.map(|worker| ["n0", "n1"].map(|name| of(worker, name))).collect::<Vec<_>>()
    };
    let send = |some: Range<usize>| {
        let all: Vec<String> = some.map(|i| format!("[{}1]:9", network(i))).collect();
        let sent = lab.at("left", move || {
            let socket = UdpSocket::bind("[fd01::2]:0").unwrap();
            for to in all {
                socket.send_to(&[7; 20], to).unwrap();
            }
        });
        sent.join().unwrap();
    };
    let at = |group: usize| tagged.ask(&["dispatch"])["groups"][group]["worker"].as_u64().unwrap();
    let mut expected = counts();
    for moves in [false, true] {
        if moves {
            tagged.take(first[1], 1 - at(first[1]) as usize);
        }
        // No more at once than a ring has room for.
        for from in (0..NETWORKS).step_by(BURST) {
            send(from..from + BURST);
            for (kind, group) in first.into_iter().enumerate() {
                expected[at(group) as usize][kind] += BURST / 2;
            }
            until("all come where their group is", || counts() == expected);
        }
    }
    assert_eq!(at(first[0]), at(first[1]));
    tagged.running.stop();
}

/// A rule that a handler wrote distinguishes classes at once; what is of the group before stays in it.
#[test]
fn classes_are_those_of_the_rules_that_there_are() {
    if !possible() {
        return;
    }
    let chain = "FromDevice(left) -> Strip(14) -> CheckIPHeader
           -> f :: IPFilter(allow dst net 10.2.0.0/16, deny all) -> Unstrip(14) -> ToDevice(right);
         FromDevice(right) -> Discard;";
    let tagged = Tagged::run(chain, "af-packet-mmsg", &["--dispatch", "tags=mac"]);
    // By group: the classes that know of the network.
    let told = || -> Vec<(usize, String)> {
        let known = tagged.ask(&["dispatch"]);
        let groups = known["groups"].as_array().unwrap().iter().enumerate();
        let told = groups.map(|(group, known)| (group, known["classes"].to_string()));
        told.filter(|(_, classes)| classes.contains("\"10.2.")).collect()
    };
    let before = told();
    CATENA.ctl(&tagged.socket, &["write", "f.rule_insert", "1 deny dst host 10.2.0.9"]);
    let after = told();
    let ([(group, was)], [(same, is)]) = (&before[..], &after[..]) else {
        panic!("{before:?} {after:?}")
    };
    assert_eq!(group, same);
    assert!(was.contains(r#"["10.2.0.0","10.2.255.255"]"#), "{was}");
    assert!(is.contains(r#"["10.2.0.0","10.2.0.8"],["10.2.0.10","10.2.255.255"]"#), "{is}");
    tagged.running.stop();
}

/// Of two groups with much to do at one worker, one goes to the other worker.
#[test]
fn groups_are_spread_by_what_there_is_to_do() {
    if !possible() {
        return;
    }
    let how = ["--dispatch", "tags=mac", "--groups", "4"];
    let tagged = Tagged::run(&nat(), "af-xdp", &how);
    // What goes to a second address on the right is of another group at the same worker.
    tagged.tag(0);
    let other = tagged.ask(&["dispatch"])["groups"][2]["tag"].as_str().unwrap().to_string();
    let lab = &tagged.lab;
    lab.ip("right", &["addr", "add", "10.2.0.3/24", "dev", "veth0"]);
    lab.ip("left", &["neigh", "replace", "10.1.0.99", "lladdr", &other, "dev", "veth0"]);
    lab.ip("left", &["route", "add", "10.2.0.3/32", "via", "10.1.0.99"]);
    let mut floods = ["10.2.0.2", "10.2.0.3"].map(|address| {
        let mut flood = Command::new("ping");
        flood.args(["-q", "-f", address]).stdout(Stdio::null());
        lab.at("left", move || flood.spawn().unwrap()).join().unwrap()
    });
    until("packets of both groups", || {
        let known = tagged.ask(&["dispatch"]);
        [0, 2].iter().all(|&group: &usize| known["groups"][group]["packets"].as_u64() > Some(9))
    });
    let said = tagged.ask(&["dispatch", "balance"]);
    let moved = said["moved"].as_array().unwrap();
    assert!(moved.len() == 1 && moved[0]["from"] == 0 && moved[0]["to"] == 1, "{said}");
    let known = tagged.ask(&["dispatch"]);
    assert_ne!(known["groups"][0]["worker"], known["groups"][2]["worker"], "{known}");
    for flood in &mut floods {
        flood.kill().unwrap();
        flood.wait().unwrap();
    }
    tagged.running.stop();
}

/// Where workers hand frames to each other, none is lost or overtaken, both directions of a flow
/// are at one worker, and one that sleeps is woken.
#[test]
fn frames_are_handed_to_the_worker_that_has_their_flow() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        for dispatch in ["software", "hand-off"] {
            let tagged = Tagged::run(&nat(), mode, &["--dispatch", dispatch]);
            let told = tagged.running.told();
            assert!(told.contains(&format!("dispatch: {dispatch} (asked for); ")), "{told}");
            tagged.lab.ping("left", &["10.2.0.2"]);
            tagged.lab.ping("left", &["10.1.0.1"]);
            let numbers = Numbers::begin(&tagged.lab);
            numbers.go_on(5000);
            numbers.end();
            for _ in 0..8 {
                tagged.lab.exchange("10.2.0.2", 50_000);
            }
            // Where RSS brings a connection is chance.
            let in_both_directions = || tagged.handed(0, 1) > 100 && tagged.handed(1, 0) > 100;
            for _ in 0..if dispatch == "hand-off" { 50 } else { 0 } {
                if in_both_directions() {
                    break;
                }
                tagged.lab.exchange("10.2.0.2", 50_000);
            }
            assert_eq!(tagged.dropped("hand-off-queue-full"), 0);
            let (there, back) = (tagged.handed(0, 1), tagged.handed(1, 0));
            let received = tagged.received();
            let of = |worker: usize| received[worker][0] + received[worker][1];
            match dispatch {
                // All but answers of neighbours.
                "software" => {
                    assert!(there > 10_000 && of(1) >= there && of(0) < 10, "{there} {received:?}");
                }
                _ => assert!(there > 100 && back > 100, "{there} {back} {received:?}"),
            }
            tagged.running.stop();
        }
    }
}

/// What cannot be is refused, with the mend.
#[test]
fn handing_on_takes_two_workers_and_frames_that_come_to_the_first() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let software = ["--dispatch", "software"];
    let told = lab.refusal(&nat(), &[&BOUND[..], &software].concat());
    assert!(told.contains("--dispatch software needs at least two workers"), "{told}");
    let tap = ["--in", "left=tap:tap0", "--in", "right=eth1", "--cores", "0,1"];
    let told = lab.refusal(&nat(), &[&tap[..], &["--dispatch", "tags=mac"]].concat());
    assert!(told.contains("tap does not dispatch frames by their tags"), "{told}");
    let told = lab.run(&nat(), &[&tap[..], &software].concat()).told();
    assert!(told.contains("tap0: tap, all frames to the worker that hands them on"), "{told}");
}
