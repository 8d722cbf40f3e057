//! Servers of a balancer are killed and started under load, and probes of its own drain and add them.

use lab::live::{bytes, possible, until};

use super::balanced::{Loading, answers};
use super::served::Server;
use super::{Clients, LARGE};
use crate::CATENA;
use crate::traffic::BOUND;

const CHAIN: &str = include_str!("checked.click");

/// How many probes a line of the check's handler shows for a server, and how many answers.
fn probes(lines: &str, server: &str) -> (u64, u64) {
    let line = lines.lines().find_map(|line| line.strip_prefix(server));
    let numbers = line.unwrap_or_else(|| panic!("{server} in {lines}")).split(' ');
    let mut numbers = numbers.filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn servers_are_killed_and_started_under_load() {
    if !possible() {
        return;
    }
    let counts = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
        all.iter().map(|(server, count)| ((*server).to_owned(), *count)).collect()
    };
    let clients = Clients::new();
    clients.keep_busy();
    let socket = clients.path("ctl.sock");
    let control = ["--io", "af-packet-mmsg", "--control", socket.to_str().unwrap()];
    let running = clients.lab.run(CHAIN, &[&BOUND[..], &control].concat());
    let first = Server::start_at(&clients, "10.2.0.2");
    let second = Server::start_at(&clients, "10.2.0.3");
    std::fs::write(clients.path("www/large"), bytes(LARGE)).unwrap();
    std::fs::write(clients.path("www/small"), bytes(100)).unwrap();
    let read = |handler: &str| CATENA.ctl(&socket, &["read", handler]);
    let is = |state: &'static str| {
        until(state, || read("lb/servers.backends").lines().any(|line| line.starts_with(state)));
    };
    // Servers that were not there yet may have been drained.
    is("10.2.0.2 active");
    is("10.2.0.3 active");

    let loading: Vec<_> = (0..8).map(|number| Loading::begin(&clients, number)).collect();
    let (dying, living): (Vec<_>, Vec<_>) =
        loading.into_iter().partition(|of| of.server() == "10.2.0.2");
    assert_eq!((dying.len(), living.len()), (4, 4));
    first.stop();
    is("10.2.0.2 drained");
    assert_eq!(answers(&clients, 6), counts(&[("10.2.0.3", 6)]));

    // Another chain goes on with what is known: the server is not taken for one that is up, and counts go on.
    let before = read("check/probe.backends");
    let swapped = clients.path("swapped.click");
    std::fs::write(&swapped, CHAIN.replace("-> [0] check", "-> Counter -> [0] check")).unwrap();
    CATENA.ctl(&socket, &["swap", swapped.to_str().unwrap()]);
    assert!(read("lb/servers.backends").contains("10.2.0.2 drained"));
    let after = read("check/probe.backends");
    assert!(after.contains("10.2.0.2 down"), "{after}");
    for server in ["10.2.0.2 down ", "10.2.0.3 up "] {
        let (before, after) = (probes(&before, server), probes(&after, server));
        assert!(after.0 >= before.0 && after.1 >= before.1, "{server}: {before:?} {after:?}");
    }
    assert_eq!(answers(&clients, 3), counts(&[("10.2.0.3", 3)]));

    let first = Server::start_at(&clients, "10.2.0.2");
    is("10.2.0.2 active");
    assert_eq!(answers(&clients, 6), counts(&[("10.2.0.2", 3), ("10.2.0.3", 3)]));
    living.into_iter().for_each(Loading::end);
    drop(dying);

    // Without any server, clients are refused at once.
    first.stop();
    second.stop();
    is("10.2.0.2 drained");
    is("10.2.0.3 drained");
    let ask = ["-sS", "--max-time", "120", "http://10.2.0.100/small"];
    let refused = clients.lab.try_on("left", "curl", &ask);
    // It failed to connect; a timeout has another number.
    assert_eq!(refused.status.code(), Some(7), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(clients.errors()[..2], [0; 2], "wrong checksums");
    running.stop();
}
