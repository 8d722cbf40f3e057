//! The chain access list, router, NAPT on live interfaces, beside the kernel (nftables, routing, masquerade) and Open
//! vSwitch (userspace datapath, OpenFlow, connection tracking with NAT): the same rules, frames and links.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::live::network::run as run_program;
use lab::live::{MACS, Process, until};

use crate::Arguments;
use crate::load::Flood;
use crate::rules::List;
use crate::support::{Data, Spread};
use crate::testbed::{MEASURED, NEXT_MAC, Testbed, Work, pause, start as start_process};

/// The sizes of the access lists.
const SIZES: [u32; 3] = [250, 700, 8500];
/// Addresses of the measured host, and of the next one behind it.
const ADDRESSES: [&str; 2] = ["172.16.1.1/24", "30.0.1.1/24"];
const NEXT: &str = "30.0.1.254";

/// What is measured.
const KINDS: [&str; 8] = [
    "catena af-xdp",
    "af-xdp, no chain",
    "catena af-packet",
    "catena af-packet ring",
    "linux",
    "linux, marked",
    "ovs",
    "ovs af-xdp",
];

/// What was measured of one kind on one list.
#[derive(Default)]
struct Samples {
    /// Thousand frames per second that came out.
    rate: Vec<f64>,
    /// CPUs that were busy for it.
    cores: Vec<f64>,
    /// Thousand frames per second and core.
    per_core: Vec<f64>,
}

/// Something that forwards frames from eth0 to eth1 until it is dropped.
struct Forwarder {
    testbed: Arc<Testbed>,
    processes: Vec<Process>,
    is_kernel: bool,
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // Processes end in their order: who needs another before that.
        for process in self.processes.drain(..) {
            drop(process);
        }
        if self.is_kernel {
            let script = "nft delete table ip catena; echo 0 > /proc/sys/net/ipv4/ip_forward;
                          ip addr flush dev eth0; ip addr flush dev eth1";
            self.testbed.on("middle", "sh", &["-c", script]);
        }
    }
}

fn catena(testbed: &Arc<Testbed>, data: &Data, list: &List, mode: &str) -> Forwarder {
    let rules = testbed.folder().join("rules");
    std::fs::write(&rules, list.click()).expect("rules are written");
    let [from, to] = [MACS[1], NEXT_MAC];
    let text = format!(
        "{}\nFromDevice(in) -> F({}, {from}, {to}) -> RI(1, 172.16.1.1, {from}, {to})
           -> N(30.0.1.1, {from}, {to}) -> ToDevice(out);",
        data.functions(),
        rules.display()
    );
    on_interfaces(testbed, &text, mode)
}

fn on_interfaces(testbed: &Arc<Testbed>, text: &str, mode: &str) -> Forwarder {
    let io = ["--in", "in=eth0", "--out", "out=eth1", "--io", mode];
    let processes = vec![testbed.catena(text, &io)];
    Forwarder { testbed: Arc::clone(testbed), processes, is_kernel: false }
}

fn linux(testbed: &Arc<Testbed>, list: &List, marked: bool) -> Forwarder {
    let rules = testbed.folder().join("rules.nft");
    std::fs::write(&rules, list.nftables(marked)).expect("rules are written");
    let script = format!(
        "set -e
         ip addr add {} dev eth0; ip addr add {} dev eth1
         for i in all default eth0 eth1; do echo 0 > /proc/sys/net/ipv4/conf/$i/rp_filter; done
         echo 1 > /proc/sys/net/ipv4/ip_forward
         ip neigh replace {NEXT} lladdr {} dev eth1
         ip route replace default via {NEXT} dev eth1
         nft -f {}",
        ADDRESSES[0],
        ADDRESSES[1],
        NEXT_MAC,
        rules.display()
    );
    testbed.on("middle", "sh", &["-c", &script]);
    Forwarder { testbed: Arc::clone(testbed), processes: Vec::new(), is_kernel: true }
}

fn open_vswitch(testbed: &Arc<Testbed>, list: &List, by_xdp: bool) -> Forwarder {
    let folder = testbed.folder().join("ovs");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name).display().to_string();
    let (database, socket) = (at("conf.db"), at("db.sock"));
    let schema = "/usr/share/openvswitch/vswitch.ovsschema";
    run_program(Command::new("ovsdb-tool").args(["create", &database, schema]));
    let environment = |mut command: Command| {
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(name, &folder);
        }
        command
    };
    let mut server = Command::new("ovsdb-server");
    server.args([&database, &format!("--remote=punix:{socket}"), "--unixctl", &at("server.ctl")]);
    let server = start_process(&mut environment(server));
    until("the database is there", || folder.join("db.sock").exists());
    let mut switch = testbed.command_on("middle", &MEASURED.to_string(), "ovs-vswitchd");
    switch.args([&format!("unix:{socket}"), "--unixctl", &at("switch.ctl")]);
    let switch = start_process(&mut environment(switch));
    let mut setup = Command::new("ovs-vsctl");
    setup.args(["--timeout=20", &format!("--db=unix:{socket}")]);
    setup.args("init -- set open . other_config:pmd-cpu-mask=2 -- add-br br0".split(' '));
    setup.args("-- set bridge br0 datapath_type=netdev fail-mode=secure".split(' '));
    for (i, port) in ["eth0", "eth1"].into_iter().enumerate() {
        setup.args(["--", "add-port", "br0", port, "--", "set", "interface", port]);
        setup.arg(format!("ofport_request={}", i + 1));
        if by_xdp {
            setup.arg("type=afxdp");
        }
    }
    run_program(&mut environment(setup));
    until("the bridge is there", || folder.join("br0.mgmt").exists());
    let flows = folder.join("flows");
    std::fs::write(&flows, list.openflow("30.0.1.1", [MACS[1], NEXT_MAC])).expect("written");
    let mut add = Command::new("ovs-ofctl");
    add.args(["-O", "OpenFlow14", "--bundle", "add-flows"]);
    add.arg(format!("unix:{}", at("br0.mgmt"))).arg(&flows);
    run_program(&mut environment(add));
    Forwarder { testbed: Arc::clone(testbed), processes: vec![switch, server], is_kernel: false }
}

fn start(kind: &str, testbed: &Arc<Testbed>, data: &Data, list: &List) -> Forwarder {
    match kind {
        "catena af-xdp" => catena(testbed, data, list, "af-xdp"),
        // The floor: what carrying frames costs before anything is done with them.
        "af-xdp, no chain" => on_interfaces(testbed, "FromDevice(in) -> ToDevice(out);", "af-xdp"),
        "catena af-packet" => catena(testbed, data, list, "af-packet-mmsg"),
        "catena af-packet ring" => catena(testbed, data, list, "af-packet-ring"),
        "linux" => linux(testbed, list, false),
        "linux, marked" => linux(testbed, list, true),
        "ovs" => open_vswitch(testbed, list, false),
        _ => open_vswitch(testbed, list, true),
    }
}

pub(crate) fn run(arguments: &Arguments) {
    let Some(data) = Data::find() else { return };
    println!(
        "{:>6} {:<22} {:>9} {:>6} {:>22} {:>20}",
        "rules", "", "kpps", "cores", "kpps per core", "catena af-xdp is"
    );
    let sizes = if arguments.rules.is_empty() { &SIZES[..] } else { &arguments.rules };
    for &size in sizes {
        let list = List::read(&data, size, [2, 0, 0, 0, 0, 1]);
        let frames = Arc::new(list.frames.clone());
        let mut all: Vec<(&str, Samples)> = KINDS
            .into_iter()
            .filter(|kind| *kind == KINDS[0] || arguments.wants(kind))
            .map(|kind| (kind, Samples::default()))
            .collect();
        for _ in 0..arguments.rounds {
            for (kind, samples) in &mut all {
                if arguments.interrupted() {
                    return;
                }
                measure(kind, samples, &data, &list, &frames, arguments.seconds);
            }
        }
        let ours = all[0].1.per_core.clone();
        for (kind, samples) in &all {
            let of = |samples: &[f64]| Spread::of(samples.iter().copied());
            let (per_core, ratio) =
                (of(&samples.per_core), Spread::of_ratios(&ours, &samples.per_core));
            println!(
                "{size:>6} {kind:<22} {:>9.1} {:>6.2} {:>22} {:>20}",
                of(&samples.rate).median,
                of(&samples.cores).median,
                per_core.to_string(),
                format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.least, ratio.greatest),
            );
        }
    }
}

fn measure(
    kind: &str,
    samples: &mut Samples,
    data: &Data,
    list: &List,
    frames: &Arc<Vec<Vec<u8>>>,
    seconds: f64,
) {
    // Whatever one leaves behind, flows and caches, the next one does not find.
    let testbed = Arc::new(Testbed::new());
    let forwarder = start(kind, &testbed, data, list);
    let flood = Flood::start(&testbed, frames, None);
    // Flows are known and tables are filled before.
    pause(Duration::from_secs_f64(seconds));
    let count = || testbed.count("middle", "eth1", "tx_packets");
    let (begin, packets, work) = (Instant::now(), count(), Work::now());
    pause(Duration::from_secs_f64(seconds));
    let (elapsed, packets, cores) =
        (begin.elapsed(), count() - packets, Work::now().since(work, begin.elapsed()));
    let rate = packets as f64 / 1e3 / elapsed.as_secs_f64();
    samples.rate.push(rate);
    samples.cores.push(cores);
    samples.per_core.push(rate / cores);
    drop(flood);
    drop(forwarder);
}
