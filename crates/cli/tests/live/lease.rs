//! A NAPT whose known flows the kernel's XDP takes care of at the interfaces of one host.

use std::net::UdpSocket;
use std::time::Duration;

use lab::live::{possible, until};

use crate::CATENA;
use crate::nic::Nic;
use crate::talk::Talk;

const NAT: &str = include_str!("nat.click");

/// Frames that the server receives while so much is said.
fn seen_by_cores(nic: &Nic, talk: &Talk) -> u64 {
    let before = nic.frames_of("server", "eth0")[0];
    talk.go_on(400);
    nic.frames_of("server", "eth0")[0] - before
}

#[test]
fn known_flows_need_no_core() {
    if !possible() {
        return;
    }
    let nic = Nic::new(NAT);
    nic.told(&["--install"]);
    let server = nic.serve();
    let talk = Talk::begin(&nic.lab, "10.2.0.2", 8);
    // Each piece is some frames, in both directions.
    until("connections go past the cores", || seen_by_cores(&nic, &talk) < 40);
    assert!(nic.told(&["--diff"]).0, "leases are no difference");
    // Connections that end and begin need cores.
    let others = Talk::begin(&nic.lab, "10.2.0.2", 3);
    others.go_on(20);
    others.end();
    // Elements count what the interfaces did, and flows live on.
    until("the run counts what interfaces did", || {
        let count = |name: &str| nic.count(name, "out");
        count("ToDevice@8") > 400 && count("ToDevice@9") > 400
    });
    let flows = CATENA.ctl(&nic.socket, &["flows"]);
    assert!(flows.contains("10.1.0.2"), "{flows}");
    // The chain is swapped for one that does something else: the device goes by its flows no more.
    let swapped = nic.lab.file("swapped", &NAT.replace("-29999", "-29998"));
    CATENA.ctl(&nic.socket, &["swap", swapped.to_str().unwrap()]);
    talk.go_on(400);
    assert!(seen_by_cores(&nic, &talk) > 400);
    talk.end();
    server.stop();
}

/// Leases end by themselves when their run is gone, and another run begins with none.
#[test]
fn leases_do_not_outlive_their_run() {
    if !possible() {
        return;
    }
    let nic = Nic::new(NAT);
    nic.told(&["--install"]);
    let server = nic.serve();
    let (to, from) = std::sync::mpsc::channel();
    let answer = nic.lab.at("right", move || {
        let socket = UdpSocket::bind("10.2.0.2:0").unwrap();
        to.send(socket.local_addr().unwrap().port()).unwrap();
        let mut buffer = [0; 16];
        loop {
            let (length, peer) = socket.recv_from(&mut buffer).unwrap();
            if &buffer[..length] == b"end" {
                return;
            }
            socket.send_to(&buffer[..length], peer).unwrap();
        }
    });
    let port = from.recv().unwrap();
    let (ask, asked) = std::sync::mpsc::channel::<&'static [u8]>();
    let (told, said) = std::sync::mpsc::channel();
    let asking = nic.lab.at("left", move || {
        let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
        socket.connect(("10.2.0.2", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        for question in asked {
            socket.send(question).unwrap();
            told.send(socket.recv(&mut [0; 16]).is_ok()).unwrap();
        }
    });
    let answered = || {
        ask.send(b"here?").unwrap();
        said.recv().unwrap()
    };
    let mut frames = 0;
    until("datagrams go past the cores", || {
        let before = nic.frames_of("server", "eth0")[0];
        let all = (0..50).filter(|_| answered()).count();
        frames = nic.frames_of("server", "eth0")[0] - before;
        all == 50 && frames < 10
    });
    until("the run counts what interfaces did", || {
        [("FromDevice@6", "eth0"), ("FromDevice@7", "eth1")]
            .iter()
            .all(|(name, interface)| nic.count(name, "in") == nic.frames_of("middle", interface)[0])
    });
    // Nobody is told.
    server.kill();
    assert!(answered(), "a lease lasts for a while");
    until("leases end", || !answered());
    let server = nic.serve();
    until("the flow is there again", answered);
    ask.send(b"end").unwrap();
    drop(ask);
    asking.join().unwrap();
    answer.join().unwrap();
    server.stop();
}
