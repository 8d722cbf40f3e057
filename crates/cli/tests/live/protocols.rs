//! What hosts do besides sending whole packets that fit: IPv6, fragments, packets that are too
//! long for a link, errors on the return path.

use std::net::UdpSocket;

use crate::CATENA;
use crate::traffic::{ROUTER, in_each_mode, nat};
use lab::live::{Lab, PATIENCE, bytes, possible};

const ROUTER6: &str = include_str!("router6.click");

/// Gives the hosts their IPv6 addresses, and makes them believe them at once.
pub(crate) fn speak_ipv6(lab: &Lab) {
    for (host, net) in [("left", "fd01"), ("right", "fd02")] {
        lab.on(host, "sh", &["-c", "echo 0 > /proc/sys/net/ipv6/conf/veth0/disable_ipv6"]);
        let address = format!("{net}::2/64");
        lab.ip(host, &["addr", "add", &address, "dev", "veth0", "nodad"]);
        let router = format!("{net}::1");
        lab.ip(host, &["-6", "route", "add", "default", "via", &router, "dev", "veth0"]);
    }
}

/// What a ping that gets an error as its answer says.
#[track_caller]
fn told_by_ping(lab: &Lab, arguments: &[&str]) -> String {
    let all = [&["-n", "-c", "1", "-W", "5"], arguments].concat();
    String::from_utf8_lossy(&lab.try_on("left", "ping", &all).stdout).into_owned()
}

#[test]
fn ipv6_neighbours_are_found_and_errors_told() {
    in_each_mode(1500, ROUTER6, |lab, _| {
        speak_ipv6(lab);
        lab.ping("left", &["fd02::2"]);
        lab.ping("right", &["fd01::2"]);
        lab.ping("left", &["-s", "1352", "-M", "do", "fd02::2"]);
        lab.exchange("fd02::2", 300_000);
        let told = told_by_ping(lab, &["-t", "1", "fd02::2"]);
        assert!(told.contains("From fd02::1") && told.contains("Hop limit"), "{told}");
    });
}

/// The sender hears which packets fit the farther link, and keeps to it.
#[test]
fn too_long_ipv6_packets_are_answered_with_what_fits() {
    in_each_mode(1500, ROUTER6, |lab, _| {
        speak_ipv6(lab);
        let told = told_by_ping(lab, &["-s", "1452", "-M", "do", "fd02::2"]);
        assert!(told.contains("Packet too big: mtu=1400"), "{told}");
        // In fragments now.
        lab.ping("left", &["-s", "1452", "fd02::2"]);
    });
}

#[test]
fn packets_that_do_not_fit_behind_nat_are_told_to_their_sender() {
    let chain = nat().replace("Interface($WAN, $WAN_MAC, 1500)", "Interface($WAN, $WAN_MAC, 1400)");
    in_each_mode(1500, &chain, |lab, _| {
        let told = told_by_ping(lab, &["-s", "1472", "-M", "do", "10.2.0.2"]);
        assert!(told.contains("Frag needed and DF set (mtu = 1400)"), "{told}");
        // TCP learns it by an error about a translated packet.
        lab.ip("left", &["route", "flush", "cache"]);
        lab.exchange("10.2.0.2", 300_000);
    });
}

#[test]
fn packets_that_expire_behind_nat_are_told_to_their_sender() {
    in_each_mode(1500, &nat(), |lab, _| {
        let told = told_by_ping(lab, &["-t", "1", "10.2.0.2"]);
        assert!(told.contains("From 10.1.0.1") && told.contains("Time to live exceeded"), "{told}");
    });
}

#[test]
fn fragments_are_routed_and_made() {
    let chain = ROUTER.replace("Interface(2, $B, $BM, 1500)", "Interface(2, $B, $BM, 1000)");
    in_each_mode(1500, &chain, |lab, _| {
        lab.ping("left", &["-s", "4000", "-M", "dont", "10.2.0.2"]);
        lab.ping("right", &["-s", "4000", "-M", "dont", "10.1.0.2"]);
    });
}

/// A translator needs ports, which later fragments have not: they are put together before.
#[test]
fn fragments_pass_nat_behind_a_reassembler() {
    let chain = nat().replace("-> CheckIPHeader ->", "-> CheckIPHeader -> IPReassembler ->");
    assert_ne!(chain, nat());
    in_each_mode(1500, &chain, |lab, _| {
        lab.ping("left", &["-s", "4000", "-M", "dont", "10.2.0.2"]);
    });
}

/// A link's MTU shrinks and grows while a chain runs on it.
#[test]
fn links_change_their_mtu() {
    in_each_mode(1500, ROUTER, |lab, _| {
        for mtu in ["1300", "1500"] {
            lab.ip("middle", &["link", "set", "eth1", "mtu", mtu]);
            lab.ip("right", &["link", "set", "veth0", "mtu", mtu]);
            lab.ping("left", &["-s", "1200", "-M", "do", "10.2.0.2"]);
        }
        lab.ping("left", &["-s", "1472", "-M", "do", "10.2.0.2"]);
    });
}

/// A driver without XDP of its own: the kernel runs the program, behind its own reception.
#[test]
fn af_xdp_works_without_the_drivers_help() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let mac = "02:00:00:00:00:0a";
    lab.ip("middle", &["link", "add", "link", "eth0", "name", "upper0", "type", "macvlan"]);
    lab.ip("middle", &["link", "set", "upper0", "address", mac]);
    lab.ip("middle", &["link", "set", "upper0", "up"]);
    let chain = ROUTER.replace("$AM 02:00:00:00:00:01", &format!("$AM {mac}"));
    let arguments = ["--in", "left=upper0", "--in", "right=eth1", "--io", "af-xdp"];
    let running = lab.run(&chain, &arguments);
    assert!(running.told().contains("left: upper0: af-xdp"), "{}", running.told());
    lab.ping("left", &["10.2.0.2"]);
    lab.exchange("10.2.0.2", 20_000);
    // Segments that their sender left to be cut are longer than what a frame has room for.
    let summary = running.stop();
    let lost = |reason: &str| {
        summary.lines().any(|line| line.contains("FromDevice") && line.contains(reason))
    };
    assert!(lost("oversize") && !lost("receive-queue-full"), "{summary}");
    assert!(!lab.ip("middle", &["link", "show", "upper0"]).contains("xdp"));
}

/// A host in IPv6 and one in IPv4, which is [`SERVER`] to the first.
const NAT64: &str = include_str!("nat64.click");

/// 10.2.0.2.
const SERVER: &str = "fd64::a02:2";

/// Gives the hosts the Ethernet addresses that the chain knows, and the one on the left an IPv6 address that is not the
/// translator's choice.
fn choose_ipv6_address(lab: &Lab) {
    for (host, address) in [("left", "02:00:00:00:01:02"), ("right", "02:00:00:00:02:02")] {
        lab.ip(host, &["link", "set", "veth0", "address", address]);
    }
    lab.on("left", "sh", &["-c", "echo 0 > /proc/sys/net/ipv6/conf/veth0/disable_ipv6"]);
    lab.ip("left", &["addr", "add", "fd01::a8bb:ccff:fedd:1/64", "dev", "veth0", "nodad"]);
    lab.ip("left", &["-6", "route", "add", "default", "via", "fd01::1", "dev", "veth0"]);
}

/// Sends a datagram to the server, which sends it back.
fn exchange_datagram(lab: &Lab, count: usize) {
    let (to, from) = std::sync::mpsc::channel();
    let server = lab.at("right", move || {
        let socket = UdpSocket::bind("10.2.0.2:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        to.send(socket.local_addr().unwrap().port()).unwrap();
        let mut buffer = [0; 8000];
        let (n, peer) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..n], peer).unwrap();
        peer
    });
    let client = lab.at("left", move || {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(&bytes(count), (SERVER, from.recv().unwrap())).unwrap();
        let mut buffer = [0; 8000];
        let n = socket.recv(&mut buffer).unwrap();
        buffer[..n].to_vec()
    });
    assert!(client.join().unwrap() == bytes(count), "{count} bytes");
    assert_eq!(server.join().unwrap().ip().to_string(), "10.2.0.1", "the address is translated");
}

#[test]
fn a_host_with_any_ipv6_address_reaches_an_ipv4_server() {
    in_each_mode(1500, NAT64, |lab, _| {
        choose_ipv6_address(lab);
        lab.ping("left", &[SERVER]);
        lab.exchange_by(["left", "right"], ["10.2.0.2", SERVER], 1_000_000);
        exchange_datagram(lab, 1200);
        // In fragments.
        exchange_datagram(lab, 4000);
        let told = told_by_ping(lab, &["-t", "1", SERVER]);
        assert!(told.contains("From fd01::1") && told.contains("Hop limit"), "{told}");
        // The server tells that nobody listens.
        let refused = lab.at("left", || {
            let socket = UdpSocket::bind("[::]:0").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect((SERVER, 9)).unwrap();
            socket.send(b"hello").unwrap();
            socket.recv(&mut [0; 8]).unwrap_err().kind()
        });
        assert_eq!(refused.join().unwrap(), std::io::ErrorKind::ConnectionRefused);
    });
}

/// A router in IPv4 tells what fits its farther link, and the host in IPv6 keeps to it.
#[test]
fn a_host_behind_nat64_learns_what_fits_the_path() {
    let chain = NAT64.replace("$MTU4 1500", "$MTU4 1300");
    in_each_mode(1500, &chain, |lab, _| {
        choose_ipv6_address(lab);
        let told = told_by_ping(lab, &["-s", "1452", "-M", "do", SERVER]);
        assert!(told.contains("Packet too big: mtu=1320"), "{told}");
        lab.ip("left", &["-6", "route", "flush", "cache"]);
        lab.exchange_by(["left", "right"], ["10.2.0.2", SERVER], 300_000);
    });
}
