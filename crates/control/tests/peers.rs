//! Peers that are no switches, or do not go on.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use catena_control::openflow::{Failure, Switch};
use codegen::openflow::codec::{Message, encode};
use ir::topology::Address;

/// Connects to a peer that sends these bytes and then nothing; whether it also closes.
fn connect(bytes: Vec<u8>, closes: bool) -> Failure {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Who connects may have seen enough already.
        let _ = stream.write_all(&bytes);
        if closes {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
    });
    let patience = Duration::from_millis(if closes { 20_000 } else { 200 });
    let address = Address::Tcp("127.0.0.1".into(), port);
    let why = Switch::connect(&address, patience).err().expect("it is no switch");
    peer.join().unwrap();
    why
}

fn hello() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Message::Hello { version: 4, versions: 16 }, 1, &mut bytes);
    bytes
}

#[test]
fn garbage_is_no_switch() {
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for bytes in
        [http, vec![0xff; 70_000], vec![4, 0, 0, 3, 0, 0, 0, 0], [hello(), vec![9; 64]].concat()]
    {
        let why = connect(bytes.clone(), true);
        assert!(matches!(why, Failure::Malformed(_) | Failure::Closed), "{why:?}");
    }
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..300 {
        let junk: Vec<u8> = (0..random.usize(..400)).map(|_| random.u8(..)).collect();
        connect([hello(), junk].concat(), true);
    }
}

#[test]
fn peers_that_stop_are_given_up() {
    for bytes in [Vec::new(), hello(), hello()[..5].to_vec()] {
        assert!(matches!(connect(bytes.clone(), true), Failure::Closed));
        let why = connect(bytes, false);
        assert!(matches!(why, Failure::Silent(..)), "{why:?}");
    }
}

#[test]
fn other_versions_are_named() {
    let mut bytes = Vec::new();
    encode(&Message::Hello { version: 6, versions: 1 << 6 | 1 << 1 }, 1, &mut bytes);
    let why = connect(bytes, true);
    assert_eq!(why, Failure::Version(vec![1, 6]));
    assert!(why.to_string().contains("OpenFlow 1.0, 1.5, not 1.3"), "{why}");
    let mut bytes = Vec::new();
    encode(&Message::Hello { version: 1, versions: 0 }, 1, &mut bytes);
    assert_eq!(connect(bytes, true), Failure::Version(vec![1]));
}

#[test]
fn nobody_is_named() {
    let address = Address::Unix("/nonexistent/br0.mgmt".into());
    let why = Switch::connect(&address, Duration::from_secs(1)).err().expect("nobody");
    assert!(matches!(&why, Failure::Unreachable(ErrorKind::NotFound, _)), "{why:?}");
    assert!(why.to_string().contains("is ovs-vswitchd running"), "{why}");
}
