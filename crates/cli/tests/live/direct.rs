//! Servers that a balancer sends packets to answer clients directly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use lab::live::{Lab, PATIENCE, bytes, possible};

use crate::CATENA;
use crate::traffic::BOUND;

/// Bytes of an answer.
const LENGTH: usize = 300_000;

/// A client, the balancer to its right, and behind a switch two servers, which reach the client past the balancer.
fn network() -> Lab {
    let mut lab = Lab::new(CATENA, 1500);
    for host in ["switch", "one", "two"] {
        lab.add(host);
    }
    // The right host is the switch's place: its interface to the balancer moves there.
    let switch = lab.namespace("switch");
    lab.ip("right", &["link", "set", "veth0", "netns", &switch]);
    lab.ip("switch", &["link", "add", "bridge", "type", "bridge"]);
    lab.link([("switch", "port1"), ("one", "veth0")], "02:00:00:00:03:01", &[]);
    lab.link([("switch", "port2"), ("two", "veth0")], "02:00:00:00:03:02", &[]);
    lab.link([("switch", "port3"), ("left", "veth1")], "02:00:00:00:03:03", &[]);
    for port in ["veth0", "port1", "port2", "port3"] {
        lab.ip("switch", &["link", "set", port, "master", "bridge", "up"]);
    }
    lab.ip("switch", &["link", "set", "bridge", "up"]);
    lab.ip("left", &["addr", "add", "10.3.0.1/24", "dev", "veth1"]);
    for (host, number) in [("one", "2"), ("two", "3")] {
        let address = [&format!("10.2.0.{number}/24"), &format!("10.3.0.{number}/24")];
        for address in address {
            lab.ip(host, &["addr", "add", address, "dev", "veth0"]);
        }
        lab.on(host, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore"]);
        lab.ip(host, &["link", "set", "lo", "up"]);
        lab.ip(host, &["addr", "add", "10.2.0.100/32", "dev", "lo"]);
        lab.ip(host, &["route", "add", "10.1.0.0/24", "via", "10.3.0.1"]);
    }
    for host in ["left", "one", "two"] {
        let off = "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done";
        lab.on(host, "sh", &["-c", off]);
    }
    lab
}

/// Answers so many connections on a host, for each byte that comes with the host's name and many bytes.
fn serve(lab: &Lab, host: &'static str, connections: usize) {
    let (listening, is_listening) = std::sync::mpsc::channel();
    lab.at(host, move || {
        let listener = TcpListener::bind("10.2.0.100:80").unwrap();
        listening.send(()).unwrap();
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || {
                let mut asked = [0];
                while stream.read_exact(&mut asked).is_ok() {
                    stream.write_all(host.as_bytes()).unwrap();
                    stream.write_all(&bytes(LENGTH)).unwrap();
                }
            });
        }
    });
    is_listening.recv().unwrap();
}

/// Asks once more; the name of the server.
fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"?").unwrap();
    let mut answer = vec![0; 3 + LENGTH];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer[3..] == bytes(LENGTH), "bytes changed");
    String::from_utf8_lossy(&answer[..3]).into_owned()
}

#[test]
fn servers_answer_directly_and_flows_keep_them() {
    if !possible() {
        return;
    }
    let lab = network();
    let socket = lab.folder().join("ctl.sock");
    let control = ["--io", "af-packet-mmsg", "--control", socket.to_str().unwrap()];
    let running = lab.run(include_str!("direct.click"), &[&BOUND[..], &control].concat());
    serve(&lab, "one", 3);
    serve(&lab, "two", 6);
    let control = socket.clone();
    let drain = move || CATENA.ctl(&control, &["write", "lb/servers.drain", "10.2.0.2"]);
    let client = lab.at("left", move || {
        let connect = || {
            let to = "10.2.0.100:80".parse().unwrap();
            let stream = TcpStream::connect_timeout(&to, PATIENCE).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        };
        let mut streams: Vec<_> = (0..6).map(|_| connect()).collect();
        let names: Vec<_> = streams.iter_mut().map(ask).collect();
        assert_eq!(names, ["one", "two", "one", "two", "one", "two"]);
        drain();
        assert_eq!(streams.iter_mut().map(ask).collect::<Vec<_>>(), names);
        assert_eq!((0..3).map(|_| ask(&mut connect())).collect::<Vec<_>>(), ["two"; 3]);
    });
    let told = client.join();
    assert_eq!(CATENA.ctl(&socket, &["read", "answers.count"]).trim(), "0");
    let refused = CATENA.refused(&socket, &["write", "lb/servers.add", "10.2.0.4:81"]);
    let summary = running.stop();
    assert!(told.is_ok(), "{summary}");
    assert!(refused.contains("has a port"), "{refused}");
}
