//! How a chain behaves towards the interfaces it runs on: what it refuses, what it survives, and
//! how it leaves them.

use std::fs::{File, read_dir};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{Action, tcflow};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::CATENA;
use lab::live::{Lab, MACS, possible, until};

const WIRE: &str = "FromDevice(left) -> ToDevice(right); FromDevice(right) -> ToDevice(left);";
const BOUND: [&str; 4] = ["--in", "left=eth0", "--in", "right=eth1"];

#[test]
fn what_cannot_be_opened_is_refused_with_the_mend() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let told = lab.refusal(WIRE, &["--in", "left=dev:eth7", "--in", "right=eth1"]);
    assert!(told.contains("there is no interface 'eth7'; `ip link` lists"), "{told}");
    lab.on("middle", "ethtool", &["-L", "eth0", "rx", "1", "tx", "1"]);
    let told = lab.refusal(WIRE, &[&BOUND[..], &["--io", "af-xdp"]].concat());
    let why = "sends on more queues than eth0 receives on; `ethtool -L eth0 rx N` gives it more";
    assert!(told.contains(why), "{told}");
    lab.ip("middle", &["link", "set", "eth0", "down"]);
    let told = lab.refusal(WIRE, &BOUND);
    assert!(told.contains("eth0 is down; switch it on with `ip link set eth0 up`"), "{told}");
    let told = lab.refusal(WIRE, &["--in", "left=eth1", "--in", "right=eth1"]);
    assert!(told.contains("'left' and 'right' would both receive from eth1"), "{told}");
    let told = lab.refusal(WIRE, &["--in", "left=eth0", "--in", "right=eth1", "--io", "eth9=auto"]);
    assert!(told.contains("no name is bound to the interface 'eth9'"), "{told}");
    let told = lab.refusal(WIRE, &["--in", "left=eth7", "--in", "right=eth1"]);
    let why = "--in left=eth7: there is no interface 'eth7', and no file; `ip link` lists the \
               interfaces there are, and ./eth7 is a file";
    assert!(told.contains(why), "{told}");
    let told = lab.refusal(WIRE, &[&BOUND[..], &["--out", "right=eht1"]].concat());
    assert!(told.contains("--out right=eht1: there is no interface 'eht1'"), "{told}");
    let told = lab.refusal(WIRE, &["--in", "left=eth0", "--in", "right=eth1", "--io", "fast"]);
    assert!(told.contains("'fast' is not an I/O mode; the modes are auto, af-"), "{told}");
}

#[test]
fn what_is_said_of_one_interface_holds_and_what_is_of_none_is_told() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let spare = ["--in", "spare=eth1", "--out", "other=./other.pcap", "--out", "left=eth0"];
    let io = ["--io", "eth0=af-packet", "--io", "af-xdp"];
    let chain = "FromDevice(left) -> Discard; Idle -> ToDevice(left);";
    let mut running = lab.run(chain, &[&["--in", "left=eth0"], &spare[..], &io].concat());
    assert!(running.told().contains("left: eth0: af-packet,"), "{}", running.told());
    running.wait_for("--in spare=…: no element of the chain names the device 'spare'");
    running.wait_for("--out other=…: no element of the chain names the device 'other'");
    assert!(!running.told().contains("device 'left'"), "{}", running.told());
    running.stop();
}

#[test]
fn without_capabilities_they_are_named() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let file = lab.file("chain", WIRE).display().to_string();
    let catena = CATENA.0;
    let without = ["--bounding-set=-all", "--inh-caps=-all", catena, "run", &file];
    for (mode, capability) in [
        ("auto", "needs the capability CAP_NET_RAW"),
        ("af-xdp", "needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"),
    ] {
        let output =
            lab.try_on("middle", "setpriv", &[&without, &BOUND[..], &["--io", mode]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(capability), "{told}");
    }
}

#[test]
fn without_programs_of_the_kernel_their_capability_is_named() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let chain = "FromDevice(left) -> Discard; Script(stop);";
    let file = lab.file("chain", chain).display().to_string();
    let catena = CATENA.0;
    let with = ["--bounding-set=-all,+net_raw,+net_admin", "--inh-caps=-all", catena, "run", &file];
    let how = ["--in", "left=eth0", "--io", "af-packet", "--control", "none"];
    let output = lab.try_on("middle", "setpriv", &[&with[..], &how, &["--cores", "0,1"]].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = "needs the capability CAP_BPF";
    assert!(!output.status.success() && told.contains(why), "{told}");
    assert!(!told.contains("CAP_NET_RAW"), "{told}");
}

/// Workers share the frames of each interface, whatever numbers interfaces have.
#[test]
fn groups_of_sockets_have_numbers_of_their_own() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    for (interface, number) in [("one", "1010"), ("two", "1266")] {
        let link = ["link", "add", interface, "index", number, "type", "veth"];
        lab.ip("middle", &[&link[..], &["peer", "name", &format!("{interface}b")]].concat());
        lab.ip("middle", &["link", "set", interface, "up"]);
        lab.ip("middle", &["link", "set", &format!("{interface}b"), "up"]);
    }
    let bound = ["--in", "left=one", "--in", "right=two", "--cores", "0,1"];
    let running = lab.run(WIRE, &[&bound[..], &["--io", "af-packet-mmsg"]].concat());
    running.stop();
}

/// By queues, a translator's flows may come to workers that do not know them; it is said at once.
#[test]
fn flows_by_queues_are_warned_of() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let chain = "FromDevice(left) -> Strip(14) -> CheckIPHeader
        -> nat :: IPAddrPairRewriter(keep 0 0) -> Unstrip(14) -> ToDevice(right);
        FromDevice(right) -> ToDevice(left);";
    let warning =
        "with --dispatch queue, packets of a flow of 'nat' may reach workers without the flow";
    for (chain, options, warned) in [
        (chain, &["--cores", "0,1", "--dispatch", "queue"][..], true),
        (chain, &["--cores", "0,1"], false),
        (chain, &["--cores", "0", "--dispatch", "queue"], false),
        (WIRE, &["--cores", "0,1", "--dispatch", "queue"], false),
    ] {
        let running = lab.run(chain, &[&BOUND[..], options, &["--io", "af-packet-mmsg"]].concat());
        running.interrupt();
        let (_, _, told) = running.ended();
        assert_eq!(told.contains(warning), warned, "{told}");
    }
}

/// Does something where a kind of socket cannot be had, as in a kernel without it.
fn without_sockets<T: Send>(family: libc::c_int, work: impl FnOnce() -> T + Send) -> T {
    let is_it = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family as u64);
    let rule = SeccompRule::new(vec![is_it.unwrap()]).unwrap();
    let filter = SeccompFilter::new(
        [(libc::SYS_socket, vec![rule])].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EAFNOSUPPORT as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    // A filter is its thread's, and that of the programs that this starts.
    let limited = move || {
        apply_filter(&program).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(limited).join().unwrap())
}

#[test]
fn a_kernel_without_af_xdp_is_told_of() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    without_sockets(libc::AF_XDP, || {
        let told = lab.refusal(WIRE, &[&BOUND[..], &["--io", "af-xdp"]].concat());
        let why = "eth0: af-xdp: this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); --io eth0=auto";
        assert!(told.contains(why), "{told}");
        let running = lab.run(WIRE, &BOUND);
        let why = "left: eth0: af-packet-mmsg, mtu 1500; not af-xdp: this kernel has no AF_XDP";
        assert!(running.told().contains(why), "{}", running.told());
        lab.ping("left", &["10.9.0.3"]);
        running.stop();
    });
}

/// Workers share the queues there are.
#[test]
fn one_queue_is_enough_for_several_workers() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    for interface in ["eth0", "eth1"] {
        lab.on("middle", "ethtool", &["-L", interface, "rx", "1", "tx", "1"]);
        let far = if interface == "eth0" { "left" } else { "right" };
        lab.on(far, "ethtool", &["-L", "veth0", "rx", "1", "tx", "1"]);
    }
    let running = lab.run(WIRE, &[&BOUND[..], &["--io", "af-xdp", "--cores", "0,1"]].concat());
    let line = "1 queue, flows to 2 workers by a symmetric hash";
    assert!(running.told().contains(line), "{}", running.told());
    lab.ping("left", &["10.9.0.3"]);
    lab.ping("right", &["10.9.0.2"]);
    running.stop();
}

/// A reader of the standard error who stops reading holds up no packet; what there was no room for
/// is counted, and all else is written in the end.
#[test]
fn packets_do_not_wait_for_who_reads_what_is_told() {
    if !possible() {
        return;
    }
    let chain = "FromDevice(left) -> a :: Counter -> Print(there, -1) -> ToDevice(right);
                 FromDevice(right) -> b :: Counter -> Print(back, -1) -> ToDevice(left);";
    let lab = Lab::new(CATENA, 1500);
    let counts = ["-h", "a.count", "-h", "b.count", "--io", "af-packet-mmsg"];
    let mut running = lab.run(chain, &[&BOUND[..], &counts].concat());
    let reading = Arc::clone(&running.reading);
    let unread = reading.lock().unwrap();
    lab.on("left", "ping", &["-f", "-q", "-c", "2000", "-s", "1400", "-w", "20", "10.9.0.3"]);
    drop(unread);
    running.wait_for(" messages are missing here");
    running.interrupt();
    let (well, summary, told) = running.end();
    assert!(well, "{summary}");
    let counted = summary.lines().filter_map(|line| line.parse::<usize>().ok()).sum::<usize>();
    let missing = told.lines().filter_map(|line| line.split_once(" messages are missing here"));
    let missing: usize = missing.map(|(count, _)| count.parse::<usize>().unwrap()).sum();
    let whole = |line: &&str| line.starts_with("there: ") || line.starts_with("back: ");
    let written = told.lines().filter(whole).count();
    assert!(missing > 0 && written > 0);
    assert_eq!(written + missing, counted, "{summary}");
}

#[test]
fn the_limit_of_open_files_is_named() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let file = lab.file("wire", WIRE);
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let run = format!(
            "ulimit -n 12; exec {} run {} --in left=eth0 --in right=eth1 --control none --io {mode}",
            CATENA.0,
            file.display()
        );
        let ended = lab.try_on("middle", "sh", &["-c", &run]);
        let told = String::from_utf8_lossy(&ended.stderr);
        let names_it = told.contains("limit of 12;") && told.contains("`ulimit -n 65536`");
        assert!(!ended.status.success() && names_it && told.contains("LimitNOFILE"), "{told}");
    }
}

/// Frames that do not fit the interface are counted, by each I/O mode.
#[test]
fn oversize_frames_are_counted() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring", "af-packet"] {
        let lab = Lab::new(CATENA, 9000);
        lab.ip("middle", &["link", "set", "eth1", "mtu", "1500"]);
        let running = lab.run(WIRE, &[&BOUND[..], &["--io", mode]].concat());
        lab.ping("left", &["10.9.0.3"]);
        let large = ["-n", "-c", "1", "-W", "1", "-s", "4000", "-M", "do", "10.9.0.3"];
        assert!(!lab.try_on("left", "ping", &large).status.success());
        let summary = running.stop();
        let counted = |line: &str| line.contains("ToDevice") && line.contains("oversize");
        assert!(summary.lines().any(counted), "by {mode}: {summary}");
    }
}

/// Frames that are too long are told from those that there was no room for, also while workers have no room at all.
#[test]
fn oversize_frames_are_told_from_others_that_were_lost() {
    if !possible() {
        return;
    }
    const LONG: usize = 40;
    let lab = Lab::new(CATENA, 1500);
    let far = ["neigh", "add", "10.9.0.3", "lladdr", MACS[1], "dev", "veth0"];
    lab.ip("left", &far);
    let how = ["--in", "left=eth0", "--io", "af-xdp", "--cores", "0,1"];
    let running = lab.run("FromDevice(left) -> Discard;", &how);
    for (host, interface) in [("middle", "eth0"), ("left", "veth0")] {
        lab.ip(host, &["link", "set", interface, "mtu", "3000"]);
    }
    running.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", running.id());
    until("workers that stand still", || {
        std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
    });
    // Far more than the rings of all queues hold, of many flows.
    let sent = lab.at("left", || {
        let flows: Vec<UdpSocket> =
            (0..64).map(|_| UdpSocket::bind("10.9.0.2:0").unwrap()).collect();
        let send = |flow: &UdpSocket, length| {
            flow.send_to(&vec![0; length], "10.9.0.3:9").unwrap();
        };
        (0..40_000).for_each(|n| send(&flows[n % 64], 20));
        (0..LONG).for_each(|n| send(&flows[n % 64], 2000));
    });
    sent.join().unwrap();
    running.signal(Signal::CONT);
    let summary = running.stop();
    let lost = |why: &str| -> usize {
        let line = summary.lines().find(|line| line.contains(why));
        let line = line.unwrap_or_else(|| panic!("no {why}: {summary}"));
        line.split_whitespace().nth(3).unwrap().replace(',', "").parse().unwrap()
    };
    assert!(lost("receive-queue-full") > 1000, "{summary}");
    assert_eq!(lost("oversize"), LONG, "{summary}");
}

/// Whether an interface of the middle merges what comes in.
#[track_caller]
fn merges(lab: &Lab, interface: &str) -> bool {
    let features = lab.on("middle", "ethtool", &["-k", interface]);
    features.contains("generic-receive-offload: on")
}

/// A service manager can tell a run that ended by itself from one that somebody ended.
#[test]
fn a_run_that_ends_by_itself_says_so() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let socket = lab.folder().join("ctl.sock");
    let socket = socket.to_str().unwrap();
    let all = [&BOUND[..], &["--control", socket, "--json", "--io", "af-packet-mmsg"]].concat();
    let catena = CATENA.0;
    let ctl = |arguments: &[&str]| {
        lab.try_on("middle", catena, &[&["ctl", "--socket", socket], arguments].concat())
    };
    let stopped = |text: &str| {
        let summary: serde_json::Value = serde_json::from_str(text).unwrap();
        summary["stopped"].as_bool().unwrap()
    };
    let running = lab.run(WIRE, &all);
    running.interrupt();
    let (status, text, told) = running.ended();
    assert_eq!((status, stopped(&text)), (Some(0), true), "{told}");
    for how in [&["stop"][..], &["write", "stop"]] {
        let running = lab.run(WIRE, &all);
        ctl(how);
        let (status, text, told) = running.ended();
        assert_eq!((status, stopped(&text)), (Some(0), true), "{how:?}: {told}");
    }
    // As its configuration says, and against it.
    let running = lab.run(&format!("{WIRE} DriverManager(wait 1ms);"), &all);
    let (status, text, told) = running.ended();
    assert_eq!((status, stopped(&text)), (Some(0), false), "{told}");
    let running = lab.run(WIRE, &all);
    let ending = lab.file("next", "InfiniteSource(LIMIT 1, STOP true) -> Discard;");
    assert!(!ctl(&["swap", ending.to_str().unwrap()]).status.success());
    assert!(ctl(&["swap", "--force", ending.to_str().unwrap()]).status.success());
    let (status, text, told) = running.ended();
    assert_eq!((status, stopped(&text)), (Some(3), false), "{told}");
    assert!(told.contains("the run ended by itself: an element of the chain stopped"), "{told}");
    // A swap that forgets an interface says so.
    let running = lab.run(WIRE, &all);
    let next = lab.file("next", "FromDevice(left) -> ToDevice(left);");
    let tried = ctl(&["swap", "--check", next.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&tried.stdout).into_owned();
    assert!(tried.status.success(), "{text}");
    assert!(text.contains("no element names the device 'right' any more"), "{text}");
    let absent = lab.file("next", "FromDevice(left) -> ToDevice(rihgt);");
    let refused = ctl(&["swap", "--force", absent.to_str().unwrap()]);
    assert!(!refused.status.success());
    running.stop();
}

#[test]
fn offloads_are_as_found_after_ctrl_c() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.on("middle", "ethtool", &["-K", "eth0", "gro", "on"]);
    let running = lab.run(WIRE, &[&BOUND[..], &["--io", "af-packet-mmsg"]].concat());
    let told = running.told();
    assert!(told.contains("left: eth0: af-packet-mmsg, mtu 1500; switched off: gro\n"), "{told}");
    assert!(!merges(&lab, "eth0"));
    running.stop();
    assert!(merges(&lab, "eth0") && !merges(&lab, "eth1"));
}

/// Neither an impatient user nor another name keeps offloads from being as they were.
#[test]
fn offloads_are_as_found_whatever_happens() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.on("middle", "ethtool", &["-K", "eth0", "gro", "on"]);
    let socket = lab.folder().join("ctl.sock");
    let packets = [&BOUND[..], &["--io", "af-packet-mmsg"]].concat();
    let [of_option, of_element] = ["option", "element"].map(|name| lab.folder().join(name));
    let all = ["--control", socket.to_str().unwrap(), "-u", of_option.to_str().unwrap()];
    let controlled = [&packets[..], &all].concat();
    let asked = format!("ControlSocket(unix, {});", of_element.display());
    let running = lab.run(&format!("{WIRE} {asked}"), &controlled);
    assert!(!merges(&lab, "eth0"));
    assert!([&socket, &of_option, &of_element].iter().all(|socket| socket.exists()));
    let pid = Pid::from_raw(running.id() as i32).unwrap();
    // Both signals wait for it when it goes on, so that the second comes before it has ended.
    for signal in [Signal::STOP, Signal::INT, Signal::TERM, Signal::CONT] {
        kill_process(pid, signal).unwrap();
    }
    running.end();
    assert!(merges(&lab, "eth0"), "a second signal while it ends");
    assert!([&socket, &of_option, &of_element].iter().all(|socket| !socket.exists()));

    let mut running = lab.run(WIRE, &[&packets[..], &["--control", "none"]].concat());
    let pid = Pid::from_raw(running.id() as i32).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    running.wait_for("swapped in");
    lab.ip("middle", &["link", "set", "eth0", "down"]);
    lab.ip("middle", &["link", "set", "eth0", "name", "wan0"]);
    lab.ip("middle", &["link", "set", "wan0", "up"]);
    running.wait_for("eth0: the interface is called wan0 now");
    assert!(!merges(&lab, "wan0"));
    running.stop();
    assert!(merges(&lab, "wan0"), "under another name");
}

#[test]
fn what_fails_to_start_leaves_interfaces_as_found() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.on("middle", "ethtool", &["-K", "eth0", "gro", "on"]);
    lab.ip("middle", &["link", "set", "lo", "up"]);
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = lab.at("middle", listen).join().unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let metrics = format!("127.0.0.1:{port}");
    let asking = format!("{WIRE} ControlSocket(TCP, {port});");
    for (chain, option) in [
        (WIRE, &["--metrics", &metrics][..]),
        (WIRE, &["-p", &port]),
        (WIRE, &["-w", "nothing.at all"]),
        (&asking, &[]),
    ] {
        let told = lab.refusal(chain, &[&BOUND[..], &["--io", "af-packet-mmsg"], option].concat());
        assert!(told.contains("in use") || told.contains("no element"), "{told}");
        assert!(merges(&lab, "eth0"), "{option:?}");
    }
}

/// Nobody can tell the ports of a translator beforehand (RFC 6056).
#[test]
fn what_is_random_differs_after_every_start_unless_a_seed_is_given() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let chain = "FromDevice(left) -> Discard; Script(print $(random 0 2000000000), stop);";
    let drawn = |more: &[&str]| {
        let how = ["--in", "left=eth0", "--control", "none", "-q"];
        let (well, out, told) = lab.start_on("middle", chain, &[&how[..], more].concat()).end();
        assert!(well, "{told}");
        out.trim().parse::<u32>().unwrap()
    };
    assert_ne!(drawn(&[]), drawn(&[]));
    assert_eq!(drawn(&["--seed", "7"]), drawn(&["--seed", "7"]));
}

/// Whatever a configuration names, it is read as the user that the run becomes.
#[test]
fn what_root_can_read_is_not_read_for_others() {
    if !possible() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new(CATENA, 1500);
    let secret = lab.file("secret", "Idle -> Discard;");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let library = lab.file("library", "require(library secret.click); Idle -> Discard;");
    let catena = CATENA.0;
    for file in [secret, library] {
        let file = file.to_str().unwrap();
        let as_root = lab.try_on("middle", catena, &["run", "-q", file]);
        assert!(as_root.status.success(), "{as_root:?}");
        let as_nobody = lab.try_on("middle", catena, &["run", "-q", file, "--user", "nobody"]);
        let told = String::from_utf8_lossy(&as_nobody.stderr);
        assert!(!as_nobody.status.success() && told.contains("Permission denied"), "{told}");
    }
}

/// A run that gave up root and what system calls it does not need still carries packets, is
/// changed, looked at and reloaded, and leaves everything as it was.
#[test]
fn what_is_not_needed_is_given_up() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let lab = Lab::new(CATENA, 1500);
        lab.on("middle", "ethtool", &["-K", "eth0", "gro", "on"]);
        // The folder is the test's, who lets everybody in.
        let socket = lab.file("ctl", "").with_extension("sock");
        let path = socket.to_str().unwrap();
        let own = ["--io", mode, "--control", path, "--user", "nobody", "--seccomp"];
        let metrics = ["--metrics", "127.0.0.1:0", "--cores", "0,1"];
        let mut running = lab.run(WIRE, &[&BOUND[..], &own, &metrics].concat());
        running.wait_for("metrics: ");
        let threads = std::fs::read_dir(format!("/proc/{}/task", running.id())).unwrap();
        let mut seen = 0;
        for thread in threads {
            // Threads of the start may end while they are listed.
            let status = thread.and_then(|it| std::fs::read_to_string(it.path().join("status")));
            let Ok(status) = status else { continue };
            seen += 1;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().trim().to_string()
            };
            // NET_ADMIN (12), NET_RAW (13), IPC_LOCK (14) and BPF (39).
            let kept = (0b111u64 << 12) | 1 << 39;
            for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
                assert_eq!(u64::from_str_radix(&field(set), 16).unwrap() & !kept, 0, "{status}");
            }
            assert_eq!(field("CapEff:"), format!("{kept:016x}"));
            assert_eq!((field("NoNewPrivs:"), field("CapInh:")), ("1".into(), "0".repeat(16)));
            assert_eq!(field("Seccomp:"), "2", "a filter");
            assert!(!field("Uid:").split_whitespace().any(|uid| uid == "0"), "{status}");
        }
        assert!(seen >= 3, "main and two workers, not {seen}");
        lab.ping("left", &["10.9.0.3"]);
        let catena = CATENA.0;
        let next = lab.file("next", &WIRE.replace("ToDevice(right)", "Counter -> ToDevice(right)"));
        let next = next.to_str().unwrap();
        let ctl = |arguments: &[&str]| {
            lab.on("middle", catena, &[&["ctl", "--socket", path], arguments].concat())
        };
        let changed = "changed: built in";
        assert!(ctl(&["swap", next]).contains(changed));
        lab.ping("left", &["10.9.0.3"]);
        assert!(ctl(&["rollback"]).contains(changed));
        std::thread::scope(|scope| {
            let capture = scope.spawn(|| ctl(&["capture", "left", "icmp", "-c", "2"]));
            let trace = scope.spawn(|| ctl(&["trace", "-n", "1"]));
            until("a ping is captured and followed", || {
                lab.ping("left", &["10.9.0.3"]);
                capture.is_finished() && trace.is_finished()
            });
        });
        kill_process(Pid::from_raw(running.id() as i32).unwrap(), Signal::HUP).unwrap();
        running.wait_for("swapped in");
        lab.ip("middle", &["link", "del", "eth1"]);
        lab.connect("right", "eth1", MACS[1], 1500);
        lab.ip("left", &["neigh", "flush", "dev", "veth0"]);
        running.wait_for("; it is back");
        lab.ping("left", &["10.9.0.3"]);
        assert_eq!(merges(&lab, "eth0"), mode == "af-xdp", "by {mode}");
        running.stop();
        assert!(merges(&lab, "eth0"), "by {mode}");
        assert!(!lab.ip("middle", &["-d", "link", "show", "eth0"]).contains("prog/xdp"));
    }
    let lab = Lab::new(CATENA, 1500);
    let told = lab.refusal(WIRE, &[&BOUND[..], &["--user", "nobody at all"]].concat());
    assert!(told.contains("there is no such user"), "{told}");
}

#[test]
fn the_way_of_io_is_told_and_programs_go_with_the_chain() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let attached = || lab.ip("middle", &["-d", "link", "show", "eth0"]).contains("prog/xdp");
    let running = lab.run(WIRE, &BOUND);
    let told = running.told();
    let promiscuous =
        || lab.ip("middle", &["-d", "link", "show", "eth0"]).contains("promiscuity 1");
    assert!(promiscuous());
    let line = "left: eth0: af-xdp, copy mode (veth has no zero-copy), 4 queues, mtu 1500\n";
    assert!(told.contains(line), "{told}");
    assert!(attached());
    // While one chain has the interface, another takes the next best mode, and says why; or
    // refuses.
    let told = lab.refusal(WIRE, &BOUND);
    let mend = format!("eth0: another catena (process {}) has it", running.id());
    assert!(told.contains(&mend) && told.contains("--io eth0=shared"), "{told}");
    let told = lab.refusal(WIRE, &[&BOUND[..], &["--io", "af-xdp,shared"]].concat());
    let mend = "another XDP program or socket has eth0: end the program that set it up (perhaps \
                another catena), or, if `ip` did, say `ip link set eth0 xdp off` or `xdpgeneric off`";
    assert!(told.contains(mend), "{told}");
    running.stop();
    assert!(!attached() && !promiscuous(), "Ctrl-C");
    let running = lab.run(WIRE, &[&BOUND[..], &["--log", "json"]].concat());
    let line =
        running.told().lines().find(|line| line.contains("left: eth0:")).unwrap().to_string();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let message = line["message"].as_str().unwrap();
    assert!(line["level"] == "info" && message.starts_with("left: eth0: af-xdp"), "{line}");
    assert!(attached());
    drop(running);
    until("the program goes when the process is killed", || !attached());
}

#[test]
fn the_next_best_way_is_taken_with_a_word_why() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let first = lab.run("FromDevice(left) -> Discard;", &["--in", "left=eth0"]);
    let shared = ["--in", "left=eth0", "--io", "eth0=shared"];
    let second = lab.run("FromDevice(left) -> Discard;", &shared);
    let (told, process) = (second.told(), first.id());
    let line = format!(
        "eth0: af-packet-mmsg, shared with another catena (process {process}), mtu 1500; not af-xdp: another XDP"
    );
    assert!(told.contains(&line), "{told}");
    // Who shares it excludes a third, who does not.
    lab.refusal("FromDevice(left) -> Discard;", &["--in", "left=eth0"]);
    first.stop();
    second.stop();
    let cores = ["--in", "left=eth0", "--cores", "0,1"];
    let several = lab.run("FromDevice(left) -> Discard;", &cores);
    let told = several.told();
    assert!(
        told.contains("af-xdp, copy mode (veth has no zero-copy), 4 queues, flows to 2"),
        "{told}"
    );
    several.stop();
    let cores = ["--in", "left=tap:cat0", "--in", "right=eth1", "--cores", "0,1"];
    let told = lab.run(WIRE, &[&cores[..], &["--io", "af-xdp"]].concat()).told();
    assert!(told.contains("cat0: tap, flows to 2 workers"), "{told}");
}

#[test]
fn links_flap_and_interfaces_come_back() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let mut running = lab.run(WIRE, &[&BOUND[..], &["--cores", "0,1"]].concat());
    let reachable = || {
        let ping = lab.try_on("left", "ping", &["-n", "-c", "1", "-W", "1", "10.9.0.3"]);
        ping.status.success()
    };
    assert!(reachable());
    lab.ip("middle", &["link", "set", "eth1", "down"]);
    running.wait_for("eth1: the link is switched off");
    lab.ip("middle", &["link", "set", "eth1", "up"]);
    until("frames after the link came back", reachable);
    running.wait_for("eth1: the link is up");
    lab.ip("middle", &["link", "del", "eth1"]);
    running.wait_for("eth1: the interface is gone");
    lab.connect("right", "eth1", MACS[1], 1500);
    // The host behind it has another address now.
    lab.ip("left", &["neigh", "flush", "dev", "veth0"]);
    running.wait_for("; it is back");
    until("frames after the interface came back", reachable);
    running.interrupt();
    let (_, _, told) = running.end();
    // An interface that is removed may have been seen switched off before, so only what came before counts.
    let (flap, _) = told.split_once("eth1: the link is up").expect("told of");
    assert_eq!(flap.matches("the link is switched off").count(), 1, "{told}");
    for once in ["eth1: the interface is gone", "; it is back"] {
        assert_eq!(told.matches(once).count(), 1, "{told}");
    }
}

/// An interface stays the chain's whatever it is called, and one that leaves is given up as a whole, also if it
/// comes back as the same.
#[test]
fn interfaces_are_renamed_and_leave_for_another_namespace() {
    if !possible() {
        return;
    }
    for how in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        let mut lab = Lab::new(CATENA, 1500);
        lab.add("aside");
        let arguments = [&BOUND[..], &["--cores", "0,1", "--io", how]].concat();
        let mut running = lab.run(WIRE, &arguments);
        let reachable = || {
            let ping = lab.try_on("left", "ping", &["-n", "-c", "1", "-W", "1", "10.9.0.3"]);
            ping.status.success()
        };
        assert!(reachable(), "{how}");
        for (from, to) in [("eth1", "wan0"), ("wan0", "eth1")] {
            lab.ip("middle", &["link", "set", from, "down"]);
            lab.ip("middle", &["link", "set", from, "name", to]);
            running.wait_for(&format!("eth1: the interface is called {to} now"));
            lab.ip("middle", &["link", "set", to, "up"]);
            until("frames of an interface with another name", reachable);
        }

        // In another namespace it is nobody's, and comes back with the number that it had.
        let number = |host: &str| lab.on(host, "cat", &["/sys/class/net/eth1/ifindex"]);
        let before = number("middle");
        lab.ip("middle", &["link", "set", "eth1", "netns", &lab.namespace("aside")]);
        running.wait_for("eth1: the interface is gone");
        lab.ip("aside", &["addr", "add", "10.9.0.9/24", "dev", "eth1"]);
        lab.ip("aside", &["link", "set", "eth1", "up"]);
        lab.ping("right", &["10.9.0.9"]);
        let come_back = || {
            lab.ip("aside", &["link", "set", "eth1", "netns", &lab.namespace("middle")]);
            assert_eq!(number("middle"), before, "the test is of an interface that is the same");
            lab.ip("middle", &["link", "set", "eth1", "up"]);
        };
        come_back();
        running.wait_for("; it is back");
        until("frames after the interface came back", reachable);

        // Away and back before anybody looked.
        running.signal(Signal::STOP);
        lab.ip("middle", &["link", "set", "eth1", "netns", &lab.namespace("aside")]);
        come_back();
        running.signal(Signal::CONT);
        until("frames of an interface that was away while nobody looked", reachable);
        running.stop();
    }
}

/// The user stops the terminal, by Ctrl-S, to read what it shows.
#[test]
fn a_terminal_that_stands_still_keeps_nothing_from_ending() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.on("middle", "ethtool", &["-K", "eth0", "gro", "on"]);
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&near).unwrap();
    let far = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far = File::options().read(true).write(true).open(far).unwrap();
    let mut command = lab.command("middle", CATENA.0);
    command.arg("run").arg(lab.file("chain", WIRE)).args(BOUND).args(["--io", "af-packet-mmsg"]);
    let output = Stdio::piped();
    let mut running = command.stdout(output).stderr(far.try_clone().unwrap()).spawn().unwrap();
    let mut shown = File::from(near);
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.contains(" in, ") {
        let n = shown.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    assert!(!merges(&lab, "eth0"), "{text}");
    tcflow(&far, Action::OOff).unwrap();
    let tasks = format!("/proc/{}/task", running.id());
    until("a thread that waits for the terminal", || {
        let calls = read_dir(&tasks).unwrap().flatten();
        let mut calls = calls.map(|task| std::fs::read_to_string(task.path().join("syscall")));
        calls.any(|call| {
            call.is_ok_and(|call| call.starts_with(&format!("{} 0x2 ", libc::SYS_write)))
        })
    });
    kill_process(Pid::from_raw(running.id() as i32).unwrap(), Signal::INT).unwrap();
    until("offloads that are as they were", || merges(&lab, "eth0"));
    tcflow(&far, Action::OOn).unwrap();
    assert!(running.wait().unwrap().success());
}

/// A chain without packets sleeps.
#[test]
fn an_idle_chain_burns_no_core() {
    if !possible() {
        return;
    }
    for how in [&[][..], &["--cores", "0,1", "--dispatch", "software"]] {
        let lab = Lab::new(CATENA, 1500);
        let mut running = lab.run(
            "FromDevice(left) -> Discard; FromDevice(right) -> Discard;
             Script(wait 1s, print \"now\", wait 1s, print \"then\", loop)",
            &[&BOUND[..], how].concat(),
        );
        running.wait_for_output("now");
        let before = running.processor_time();
        running.wait_for_output("then");
        let used = running.processor_time() - before;
        running.stop();
        assert!(used.as_millis() < 100, "{how:?}: {used:?} of a second of idleness");
    }
}
