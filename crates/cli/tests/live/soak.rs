//! A firewall, a balancer and a translator under traffic and faults of all kinds, changed and looked
//! at all the while: flows go on when the faults end, every frame is accounted for, and memory does
//! not grow.
//!
//! As long as `SOAK` says, in seconds, or for a few laps: `cargo xtask soak [SECONDS]`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::CATENA;
use crate::talk::{Datagrams, Talk};
use crate::traffic::{BOUND, SERVICE, edge};
use lab::live::{Lab, PATIENCE, Process, possible, until};

/// Faults of each lap, in turns.
const FAULTS: [&str; 5] = [
    "drop=0.02,seed=1",
    "duplicate=0.02,reorder=0.05,seed=2",
    "corrupt=0.01,short=0.01,seed=3",
    "down=0.0002,seed=4",
    "drop=0.01,duplicate=0.01,reorder=0.01,corrupt=0.005,short=0.005,down=0.0001,seed=5",
];
/// Laps of a run that has no time to fill.
const LAPS: usize = FAULTS.len() + 3;
/// After so many it must have all memory that it needs: how many laps that takes depends on how much passes in one.
const MOST_LAPS: usize = 8 * FAULTS.len();
/// What a turn of faults may add to the memory of the laps before: in some laps several times as many flows begin as in
/// others.
const GROWTH: u64 = 32 << 20;

/// TCP connections, and what they exchange in a lap under faults and after them.
const CONNECTIONS: usize = 40;
const PIECES: u64 = 200;

/// Bytes of the process that are in memory.
fn resident(running: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// What a chain has done.
#[derive(PartialEq)]
struct Account {
    /// Frames that interfaces gave it, each once.
    received: u64,
    /// Frames that its elements got, each worker's a neighbour's answer, and that they made (queries
    /// of neighbours' addresses), and those that they gave devices, took (answers to these), dropped
    /// and hold.
    came: u64,
    made: u64,
    left: u64,
    taken: u64,
    dropped: u64,
    held: u64,
    /// Buffers that are in use.
    buffers: u64,
    /// Frames that faults took.
    faults: u64,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

impl Account {
    fn of(socket: &Path) -> Self {
        let counters: Value =
            serde_json::from_str(&CATENA.ctl(socket, &["--json", "counters"])).unwrap();
        let all = &counters["all"];
        let mut account = Self {
            received: number(&all["in"]),
            came: 0,
            made: 0,
            left: number(&all["out"]),
            taken: 0,
            dropped: 0,
            held: 0,
            buffers: number(&all["buffers"]),
            faults: 0,
        };
        for element in all["elements"].as_array().unwrap() {
            let dropped = element["dropped"].as_object().into_iter().flatten();
            for (reason, count) in dropped {
                if matches!(reason.as_str(), "fault" | "link-down") {
                    account.faults += number(count);
                }
                // Those are not among the frames that an element got.
                if element["class"] != "FromDevice" {
                    account.dropped += number(count);
                }
            }
            account.held += number(&element["held"]);
            if element["class"] == "FromDevice" {
                account.came += number(&element["packets"]);
            }
        }
        for querier in ["lan/arp", "wan/arp"] {
            let read = |handler: &str| -> u64 {
                CATENA
                    .ctl(socket, &["read", &format!("{querier}.{handler}")])
                    .trim()
                    .parse()
                    .unwrap()
            };
            account.made += read("queries");
            account.taken += read("responses");
        }
        account
    }

    /// Whether nothing is in flight any more, and nothing is missing.
    fn is_settled(&self) -> bool {
        self.held == 0 && self.came + self.made == self.left + self.taken + self.dropped
    }

    fn told(&self) -> String {
        let Self { received: _, came, made, left, taken, dropped, held, buffers, faults } = self;
        format!(
            "{came} came, {made} were made; {left} left, {taken} were taken, {dropped} were dropped, {held} are held; \
             {faults} were lost by faults; {buffers} buffers are in use"
        )
    }
}

/// What went from host to host.
#[derive(PartialEq)]
struct Exchange {
    /// Frames that both hosts sent, and that they received.
    sent: u64,
    received: u64,
    account: Account,
}

impl Exchange {
    fn of(lab: &Lab, socket: &Path) -> Self {
        let count = |counter: &str| -> u64 {
            let path = format!("/sys/class/net/veth0/statistics/{counter}");
            ["left", "right"]
                .map(|host| lab.on(host, "cat", &[&path]).trim().parse::<u64>().unwrap())
                .iter()
                .sum()
        };
        let (sent, received) = (count("tx_packets"), count("rx_packets"));
        Self { sent, received, account: Account::of(socket) }
    }

    /// When nothing is in flight: hosts speak to themselves of neighbours and ended connections.
    #[track_caller]
    fn at_rest(lab: &Lab, socket: &Path) -> Self {
        let mut now = Self::of(lab, socket);
        until("nothing is in flight", || {
            let before = std::mem::replace(&mut now, Self::of(lab, socket));
            before == now && now.account.is_settled()
        });
        now
    }
}

/// Laps until the time is over, or so many.
struct Laps {
    begin: Instant,
    long: Option<Duration>,
    done: usize,
}

impl Laps {
    fn of_the_environment(modes: u32) -> Self {
        let seconds = std::env::var("SOAK").ok().map(|text| text.parse().expect("SOAK=SECONDS"));
        let long = seconds.map(|seconds| Duration::from_secs(seconds) / modes);
        Self { begin: Instant::now(), long, done: 0 }
    }

    fn next(&mut self, memory: &[u64]) -> Option<usize> {
        let more = self.done < LAPS
            || match self.long {
                Some(long) => self.begin.elapsed() < long,
                None => self.done < MOST_LAPS && !self.is_steady(memory),
            };
        self.done += 1;
        more.then_some(self.done - 1)
    }

    /// Whether the last turn of faults, or the last half of a long run, added no memory to the laps before.
    fn is_steady(&self, memory: &[u64]) -> bool {
        let last = if self.long.is_some() { memory.len() / 2 } else { FAULTS.len() };
        let (before, after) = memory.split_at(memory.len() - last);
        let most = |laps: &[u64]| laps.iter().copied().max().unwrap_or(0);
        most(after) <= most(before) + GROWTH
    }
}

/// Changes the chain, and looks at what passes it.
fn change(socket: &Path, lap: usize, files: &[std::path::PathBuf; 2], lab: &Lab) {
    let changed = match lap % 3 {
        2 => CATENA.ctl(socket, &["rollback"]),
        lap => CATENA.ctl(socket, &["swap", files[lap].to_str().unwrap()]),
    };
    assert!(changed.contains("changed: ") && !changed.contains("nobody"), "{changed}");
    let capture = lab.folder().join("lap.pcapng");
    CATENA.ctl(socket, &["capture", "balance", "-w", capture.to_str().unwrap(), "-c", "200"]);
    assert!(std::fs::metadata(&capture).unwrap().len() > 1000);
    let traced = CATENA.ctl(socket, &["trace", "tcp or udp", "-n", "2"]);
    assert!(!traced.contains("PLEASE REPORT"), "{traced}");
}

#[test]
fn faults_neither_lose_track_of_a_frame_nor_of_memory() {
    // With the buffers that sockets of AF_PACKET have ready to receive into: those of answers of
    // neighbours to the second worker, and those of all frames.
    const MODES: [(&str, u64); 2] = [("af-xdp", 2 * 16), ("af-packet-mmsg", 2 * 16 + 4 * 256)];
    if !possible() {
        return;
    }
    for (mode, ready) in MODES {
        let lab = Lab::new(CATENA, 1500);
        lab.ip("right", &["addr", "add", "10.2.0.3/24", "dev", "veth0"]);
        let socket = lab.folder().join("ctl.sock");
        let own = ["--io", mode, "--cores", "0,1", "--faults", "none", "--control"];
        let arguments = [&BOUND[..], &own, &[socket.to_str().unwrap()]].concat();
        let chain = edge();
        let mut running = lab.run(&chain, &arguments);
        running.wait_for("control: ");
        let other = chain.replace("deny dst port 9,", "deny dst port 9, deny dst port 7,");
        let files = [lab.file("other", &other), lab.file("first", &chain)];
        let (talk, datagrams) =
            (Talk::begin(&lab, SERVICE, CONNECTIONS), Datagrams::begin(&lab, SERVICE));
        let (mut memory, mut laps) = (Vec::new(), Laps::of_the_environment(MODES.len() as u32));
        let mut table = String::new();
        while let Some(lap) = laps.next(&memory) {
            CATENA.ctl(&socket, &["faults", FAULTS[lap % FAULTS.len()]]);
            talk.go_on(PIECES);
            change(&socket, lap, &files, &lab);
            if lap % 4 == 3 {
                lab.ip("middle", &["link", "set", "eth1", "down"]);
                lab.ip("middle", &["link", "set", "eth1", "up"]);
            }
            datagrams.go_on(10);
            CATENA.ctl(&socket, &["faults", "none"]);
            // Each connection once at least: it is alive.
            talk.go_on(PIECES.max(2 * CONNECTIONS as u64));
            let now = resident(&running);
            memory.push(now);
            let (came, seconds) = (Account::of(&socket).came, laps.begin.elapsed().as_secs());
            let _ = writeln!(table, "{lap:>5} {seconds:>6} s {came:>12} {:>6} kB", now >> 10);
        }
        talk.end();
        datagrams.end();
        let mut account = Account::of(&socket);
        let begin = Instant::now();
        while !account.is_settled() && begin.elapsed() < PATIENCE {
            account = Account::of(&socket);
        }
        eprintln!("{mode}\n{table}{}", account.told());
        assert!(account.is_settled(), "{}", CATENA.ctl(&socket, &["counters"]));
        assert!(account.buffers <= ready, "{}", account.told());
        assert!(account.faults > 0, "{}", account.told());
        assert!(laps.is_steady(&memory), "memory grows:\n{table}");
        // From host to host.
        let before = Exchange::at_rest(&lab, &socket);
        CATENA.ctl(&socket, &["write", "wan/arp.delete", "10.2.0.2"]);
        lab.on("left", "ping", &["-q", "-f", "-c", "1000", "10.2.0.2"]);
        let after = Exchange::at_rest(&lab, &socket);
        let (a, b) = (&after.account, &before.account);
        assert_eq!(
            (after.sent - before.sent, after.received - before.received),
            (a.received - b.received, a.left - b.left),
            "from {} to {}",
            before.account.told(),
            after.account.told()
        );
        running.stop();
    }
}
