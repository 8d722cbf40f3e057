//! Real hosts speak with each other through a chain, by each I/O mode.

use std::net::UdpSocket;

use crate::CATENA;
use lab::live::{Lab, PATIENCE, bytes, possible};

/// The I/O modes that work on the links of a [`Lab`].
const MODES: [&str; 4] = ["af-xdp", "af-packet-mmsg", "af-packet-ring", "af-packet"];

pub(crate) const BOUND: [&str; 4] = ["--in", "left=eth0", "--in", "right=eth1"];

/// Frames go through as they are.
const WIRE: &str = "FromDevice(left) -> ToDevice(right); FromDevice(right) -> ToDevice(left);";

pub(crate) const ROUTER: &str = include_str!("router.click");

/// The example, between the two sides.
pub(crate) fn nat() -> String {
    let example = include_str!("../../../../examples/home-router.click");
    example.replace("Device(lan)", "Device(left)").replace("Device(wan)", "Device(right)")
}

/// The address that stands for the two servers of [`edge`], 10.2.0.2 and 10.2.0.3.
pub(crate) const SERVICE: &str = "10.2.0.100";

/// The same with a firewall and a balancer in front of the translator.
pub(crate) fn edge() -> String {
    let parts = [
        ("lan[1] -> here", "lan[1] -> firewall :: IPFilter(deny dst port 9, allow all) -> here"),
        (
            "here[2] -> [0] flows;",
            "servers :: RoundRobinIPMapper(- - 10.2.0.2 - 0 1, - - 10.2.0.3 - 0 1);
             balance :: IPRewriter(servers, pass 1);
             here[2] -> [0] balance;
             balance[0] -> [0] flows;",
        ),
        ("flows[1] -> [1] lan;", "flows[1] -> [1] balance; balance[1] -> [1] lan;"),
    ];
    parts.iter().fold(nat(), |chain, (part, with)| {
        assert!(chain.contains(part), "{part}");
        chain.replace(part, with)
    })
}

#[track_caller]
pub(crate) fn in_each_mode(mtu: usize, chain: &str, check: impl Fn(&Lab, &str)) {
    if !possible() {
        return;
    }
    for mode in MODES {
        let lab = Lab::new(CATENA, mtu);
        let arguments = [&BOUND[..], &["--io", mode]].concat();
        let running = lab.run(chain, &arguments);
        assert!(running.told().contains(&format!("left: eth0: {mode}")), "{}", running.told());
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&lab, mode)));
        let summary = running.stop();
        assert!(told.is_ok(), "by {mode}: {summary}");
    }
}

#[test]
fn pings_and_errors_are_routed() {
    in_each_mode(1500, ROUTER, |lab, _| {
        lab.ping("left", &["10.2.0.2"]);
        lab.ping("right", &["10.1.0.2"]);
        lab.ping("left", &["-s", "1472", "-M", "do", "10.2.0.2"]);
        lab.ping("left", &["10.1.0.1"]);
        let far = lab.try_on("left", "ping", &["-n", "-c", "1", "-W", "5", "-t", "1", "10.2.0.2"]);
        let told = String::from_utf8_lossy(&far.stdout).into_owned();
        assert!(told.contains("From 10.1.0.1") && told.contains("Time to live exceeded"), "{told}");
    });
}

#[test]
fn tcp_through_nat_with_checksums_and_segments_left_to_hardware() {
    in_each_mode(1500, &nat(), |lab, _| {
        lab.exchange("10.2.0.2", 3_000_000);
        lab.ping("left", &["10.2.0.2"]);
        lab.ping("left", &["10.1.0.1"]);
    });
}

#[test]
fn tcp_over_a_wire() {
    in_each_mode(1500, WIRE, |lab, _| {
        lab.exchange("10.9.0.3", 1_000_000);
    });
}

#[test]
fn udp_through_nat() {
    in_each_mode(1500, &nat(), |lab, _| {
        let (to, from) = std::sync::mpsc::channel();
        let server = lab.at("right", move || {
            let socket = UdpSocket::bind("10.2.0.2:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            to.send(socket.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 2000];
            let (n, peer) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..n], peer).unwrap();
            peer
        });
        let client = lab.at("left", move || {
            let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.send_to(&bytes(1400), from.recv().unwrap()).unwrap();
            let mut buffer = [0; 2000];
            let n = socket.recv(&mut buffer).unwrap();
            buffer[..n].to_vec()
        });
        assert_eq!(client.join().unwrap(), bytes(1400));
        assert_eq!(
            server.join().unwrap().ip().to_string(),
            "10.2.0.1",
            "the address is translated"
        );
    });
}

/// The kernel takes tags out of frames; they are put back.
#[test]
fn vlan_tags_stay() {
    in_each_mode(1500, WIRE, |lab, mode| {
        let received = "FromDevice(veth0) -> Classifier(12/8100 14/a00a 16/0800 30/0a0a0a0a)
            -> Counter(COUNT_CALL 9 stop) -> Discard;";
        let receiver = lab.run_on("right", received, &["--in", "veth0=veth0", "--io", mode]);
        let sent =
            "InfiniteSource(LENGTH 1400, LIMIT 10) -> UDPIPEncap(10.10.10.10, 1, 10.9.0.3, 2)
            -> EtherVLANEncap(0x0800, 02:00:00:00:00:09, 02:00:00:00:00:08, VLAN_TCI 0xa00a)
            -> ToDevice(veth0);";
        let sender = lab.start_on("left", sent, &["--out", "veth0=veth0", "--io", mode]);
        let (well, _, told) = sender.end();
        assert!(well, "{told}");
        let (well, _, told) = receiver.end();
        assert!(well, "{told}");
    });
}

/// Senders leave SCTP's checksum to hardware, too, and do not tell XDP so.
#[test]
fn sctp_checksums_are_completed() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let running = lab.run(WIRE, &[&BOUND[..], &["--io", "af-xdp"]].concat());
    let received =
        "FromDevice(veth0) -> Classifier(23/84 42/88693a9c) -> Counter(COUNT_CALL 9 stop)
        -> Discard;";
    let by_sockets = ["--io", "af-packet-mmsg"];
    let receiver =
        lab.run_on("right", received, &[&["--in", "veth0=veth0"], &by_sockets[..]].concat());
    // Ports, tag, no checksum yet, and a chunk without meaning to anybody.
    let sent = "InfiniteSource(DATA \\<1388 1389 00000001 00000000 fe000004>, LIMIT 10)
        -> IPEncap(132, 10.9.0.2, 10.9.0.3)
        -> EtherEncap(0x0800, 02:00:00:00:00:09, 02:00:00:00:00:08) -> ToDevice(veth0);";
    let sender = lab.start_on("left", sent, &[&["--out", "veth0=veth0"], &by_sockets[..]].concat());
    for end in [sender, receiver] {
        let (well, _, told) = end.end();
        assert!(well, "{told}");
    }
    running.stop();
}

#[test]
fn jumbo_frames_pass() {
    in_each_mode(9000, WIRE, |lab, _| {
        lab.ping("left", &["-s", "8972", "-M", "do", "10.9.0.3"]);
        lab.exchange("10.9.0.3", 1_000_000);
    });
}

#[test]
fn a_tap_interface_speaks_with_a_link() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let running = lab.run(WIRE, &["--in", "left=eth0", "--in", "right=tap:cat0"]);
    assert!(running.told().contains("right: cat0: tap, mtu 1500\n"), "{}", running.told());
    lab.ip("middle", &["addr", "add", "10.9.0.9/24", "dev", "cat0"]);
    lab.ping("left", &["10.9.0.9"]);
    lab.ping("middle", &["-s", "1472", "-M", "do", "10.9.0.2"]);
    running.stop();
    let links = lab.ip("middle", &["link"]);
    assert!(!links.contains("cat0"), "it is still there: {links}");
}

/// Several workers share nothing: each finds its neighbours for itself, and both directions of a
/// flow meet on one.
#[test]
fn several_workers_route() {
    if !possible() {
        return;
    }
    for (mode, how) in [
        ("af-xdp", "4 queues, flows to 2 workers by a symmetric hash"),
        ("af-packet-mmsg", "flows to 2 workers by a symmetric hash"),
        ("af-packet-ring", "flows to 2 workers by a symmetric hash"),
    ] {
        let lab = Lab::new(CATENA, 1500);
        let arguments = [&BOUND[..], &["--io", mode, "--cores", "0,1"]].concat();
        let running = lab.run(ROUTER, &arguments);
        assert!(running.told().contains(how), "{}", running.told());
        for _ in 0..8 {
            lab.exchange("10.2.0.2", 50_000);
        }
        lab.ping("right", &["10.1.0.2"]);
        running.stop();
    }
}

/// A chain that lets answers in only where it saw the question, on each worker for itself.
#[test]
fn both_directions_of_a_flow_meet_on_one_worker() {
    if !possible() {
        return;
    }
    let chain = nat().replace("pattern $WAN 1024-65535 - - 0 1", "pattern - - - - 0 1");
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        let lab = Lab::new(CATENA, 1500);
        let arguments = [&BOUND[..], &["--io", mode, "--cores", "0,1"]].concat();
        let running = lab.run(&chain, &arguments);
        for _ in 0..12 {
            lab.exchange("10.2.0.2", 5_000);
        }
        lab.ping("left", &["10.2.0.2"]);
        running.stop();
    }
}

/// Answers come to addresses and ports that a worker allocated, and find that worker.
#[test]
fn answers_through_nat_find_their_worker() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring"] {
        let lab = Lab::new(CATENA, 1500);
        let arguments = [&BOUND[..], &["--io", mode, "--cores", "0,1"]].concat();
        let running = lab.run(&nat(), &arguments);
        for _ in 0..12 {
            lab.exchange("10.2.0.2", 20_000);
        }
        for _ in 0..6 {
            lab.ping("left", &["10.2.0.2"]);
        }
        running.stop();
    }
}

/// By TAP, too, on either side of the translator: the host in the middle is the one at that side.
/// There are no queues to go by, and so flows' hashes say which worker a frame comes to first.
#[test]
fn answers_to_and_from_a_tap_interface_find_their_worker() {
    if !possible() {
        return;
    }
    for (bound, address, hosts) in [
        (["left=eth0", "right=tap:cat0"], "10.2.0.2/24", ["left", "middle"]),
        (["left=tap:cat0", "right=eth1"], "10.1.0.2/24", ["middle", "right"]),
    ] {
        for (dispatch, how) in [
            ("hash", "flows to 2 workers by a symmetric hash"),
            (
                "hand-off",
                "frames to 2 workers by a symmetric hash, as tap has no queues, and on to their flow's",
            ),
            ("software", "all frames to the worker that hands them on"),
        ] {
            let lab = Lab::new(CATENA, 1500);
            let [left, right] = bound;
            let workers = ["--cores", "0,1", "--dispatch", dispatch];
            let running = lab.run(&nat(), &[&["--in", left, "--in", right][..], &workers].concat());
            let how = format!("cat0: tap, {how}, mtu 1500\n");
            assert!(running.told().contains(&how), "{}", running.told());
            lab.ip("middle", &["addr", "add", address, "dev", "cat0"]);
            if hosts[0] == "middle" {
                lab.ip("middle", &["route", "add", "10.2.0.0/24", "via", "10.1.0.1"]);
            }
            for _ in 0..12 {
                lab.exchange_between(hosts, "10.2.0.2", 20_000);
            }
            be_refused(&lab, hosts);
            running.stop();
        }
    }
}

/// Sends datagrams to a host where nobody listens, and waits for the error about each.
#[track_caller]
fn be_refused(lab: &Lab, [client, server]: [&str; 2]) {
    lab.on(server, "sh", &["-c", "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit"]);
    lab.ping(client, &["10.2.0.2"]);
    let client = lab.at(client, || {
        for _ in 0..12 {
            let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect("10.2.0.2:9").unwrap();
            socket.send(b"nobody listens").unwrap();
            let error = socket.recv(&mut [0; 10]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        }
    });
    client.join().expect("all errors arrived");
}

/// Interfaces replace an example's customers and hosts, also in a chain that replaces it.
#[test]
fn interfaces_take_the_places_of_stand_ins() {
    if !possible() {
        return;
    }
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/isp-edge.rules.gz");
    let chain =
        include_str!("../../../../examples/isp-edge.click").replace("isp-edge.rules.gz", rules);
    let lab = Lab::new(CATENA, 1500);
    // Captures that it begins are in the test's folder.
    let written = format!("ToDump({}/", lab.folder().display());
    let chain = chain.replace("ToDump(", &written);
    for (host, interface, address) in [
        ("left", "veth0", "02:00:00:00:00:01"),
        ("middle", "eth0", "02:00:00:00:01:01"),
        ("middle", "eth1", "02:00:00:00:02:01"),
        ("right", "veth0", "02:00:00:00:fe:fe"),
    ] {
        lab.ip(host, &["link", "set", interface, "address", address]);
    }
    // Whom the access list lets ping whom.
    let (customer, server) = ("10.58.250.43", "54.155.97.18");
    lab.ip("left", &["addr", "add", &format!("{customer}/8"), "dev", "veth0"]);
    lab.ip("left", &["route", "replace", "default", "via", "10.255.255.254", "src", customer]);
    lab.ip("right", &["addr", "add", "203.0.113.254/24", "dev", "veth0"]);
    lab.ip("right", &["addr", "add", &format!("{server}/32"), "dev", "lo"]);
    let socket = lab.file("ctl", "").with_extension("sock");
    let control =
        ["--control", socket.to_str().unwrap(), "--in", "isp=eth0", "--in", "internet=eth1"];
    let mut running = lab.run(&chain, &control);
    running.wait_for("isp: eth0: ");
    lab.ping("left", &[server]);
    CATENA.ctl(&socket, &["swap", lab.file("next", &chain).to_str().unwrap()]);
    lab.ping("left", &[server]);
    running.stop();
}

/// An error that tells of a translated packet finds the worker that translated it.
#[test]
fn errors_through_nat_find_their_worker() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let lab = Lab::new(CATENA, 1500);
        let arguments = [&BOUND[..], &["--io", mode, "--cores", "0,1"]].concat();
        let running = lab.run(&nat(), &arguments);
        be_refused(&lab, ["left", "right"]);
        running.stop();
    }
}

/// Frames are lost, doubled, swapped, changed and cut in transit; TCP mends it all.
#[test]
fn tcp_outlives_faults() {
    if !possible() {
        return;
    }
    let faults = "drop=0.01,duplicate=0.01,reorder=0.01,corrupt=0.005,short=0.005,seed=5";
    let lab = Lab::new(CATENA, 1500);
    let running = lab.run(&nat(), &[&BOUND[..], &["--faults", faults]].concat());
    lab.exchange("10.2.0.2", 300_000);
    let summary = running.stop();
    let lost = |line: &str| line.contains("FromDevice") && line.contains(" fault ");
    assert!(summary.lines().any(lost), "{summary}");
}
