//! A flood of SYNs through the Firewall: established connections go on, and tables are bounded.

use std::path::Path;

use lab::chain::{Started, start};
use lab::outcome::{drain, feed};

/// Connections that are there when the flood begins.
const CONNECTIONS: u32 = 500;
/// Places in the Firewall's tables.
const CAPACITY: u32 = 16_384;
/// Nanoseconds from SYN to SYN.
const GAP: u64 = 200_000;
/// SYNs of a burst.
const BURST: u32 = 64;

/// SYNs of the flood: ten million, or the fiftieth of it; `cargo xtask soak` sends all.
fn flood() -> u32 {
    if std::env::var_os("SOAK").is_some() { 10_000_000 } else { 200_000 }
}

struct Firewall(Started);

impl Firewall {
    /// Sends a segment; whether it left on the other side.
    fn passes(&mut self, from: usize, words: &str) -> bool {
        let frame = net::notation::parse(words).expect("the words are right");
        self.0.clock.advance(1000);
        feed(&mut self.0, &format!("in{from}"), &[frame]);
        drain(&mut self.0, &format!("out{from}")).len() == 1
    }

    fn count(&mut self, handler: &str) -> u32 {
        self.0.router.read_handler(handler).expect("it is there").trim().parse().expect("a number")
    }
}

/// A connection by its number, and how much each end has sent.
struct Connection {
    number: u32,
    sent: [u32; 2],
    is_ipv6: bool,
}

impl Connection {
    fn segment(&self, from: usize, rest: &str) -> String {
        let host = match self.is_ipv6 {
            false => format!("10.1.{}.{}:5000", self.number / 250, 1 + self.number % 250),
            true => format!("[2001:db8:1::{:x}]:5000", self.number),
        };
        let ends = [host.as_str(), if self.is_ipv6 { "[2001:db8::1]:80" } else { "192.0.2.1:80" }];
        let [seq, ack] = [self.sent[from], self.sent[1 - from]];
        format!("tcp {} > {} seq {seq} ack {ack} win 60000 {rest}", ends[from], ends[1 - from])
    }

    /// Opens it.
    fn open(firewall: &mut Firewall, number: u32, is_ipv6: bool) -> Self {
        let mut connection = Self { number, sent: [1000, 0], is_ipv6 };
        assert!(firewall.passes(0, &connection.segment(0, "flags S")));
        connection.sent = [1001, 7000];
        assert!(firewall.passes(1, &connection.segment(1, "flags SA")));
        connection.sent[1] += 1;
        assert!(firewall.passes(0, &connection.segment(0, "")));
        connection
    }

    /// Sends data; whether it passes, and its acknowledgment.
    fn sends(&mut self, firewall: &mut Firewall, from: usize) -> bool {
        let passes = firewall.passes(from, &self.segment(from, "payload 'more'"));
        self.sent[from] += 4;
        passes && firewall.passes(1 - from, &self.segment(1 - from, ""))
    }
}

#[test]
fn established_connections_outlive_a_flood_of_syns() {
    outlive("tcp 9.9.9.9:9 > 192.0.2.1:80 flags S badl4sum", "fw/windows.count", false);
}

#[test]
fn established_connections_outlive_a_flood_of_syns_over_ipv6() {
    outlive("tcp [2001:db8:9::9]:9 > [2001:db8::1]:80 flags S", "fw/windows6.count", true);
}

/// Has connections outlive a flood of SYNs like one; a handler tells how many there are.
fn outlive(syn: &str, counted: &str, is_ipv6: bool) {
    let chain = format!(
        "require(nf);
        fw :: Firewall(allow tcp, OUTSIDE allow tcp, MAPPING_CAPACITY {CAPACITY});
        in0 :: Idle -> [0] fw [0] -> out0 :: Queue(1000) -> Idle;
        in1 :: Idle -> [1] fw [1] -> out1 :: Queue(1000) -> Idle;"
    );
    let started = start("flood", &chain, Path::new("."), engine::session::Path::Synthesised);
    let mut firewall = Firewall(started.unwrap_or_else(|(errors, _)| panic!("{errors:?}")));
    let mut all: Vec<_> =
        (0..CONNECTIONS).map(|n| Connection::open(&mut firewall, n, is_ipv6)).collect();
    // Whether they had data in both directions or none.
    for connection in all.iter_mut().step_by(2) {
        assert!([0, 1].iter().all(|&from| connection.sends(&mut firewall, from)));
    }
    let (mut random, count) = (fastrand::Rng::with_seed(7), flood());
    let mut syn = net::notation::parse(syn).unwrap();
    let (address, port) = if is_ipv6 { (30..38, 54..56) } else { (26..30, 34..36) };
    let mut new = 0;
    for burst in 0..count / BURST {
        let frames: Vec<Vec<u8>> = (0..BURST)
            .map(|_| {
                random.fill(&mut syn[address.clone()]);
                random.fill(&mut syn[port.clone()]);
                if is_ipv6 {
                    complete6(&mut syn)
                } else {
                    complete(&mut syn)
                }
                syn.clone()
            })
            .collect();
        firewall.0.clock.advance(GAP * u64::from(BURST));
        feed(&mut firewall.0, "in1", &frames);
        new += drain(&mut firewall.0, "out1").len() as u32;
        if burst % 500 == 499 {
            assert!(firewall.count(counted) <= CAPACITY);
        }
    }
    // It filled the table more than once.
    assert!(new > 2 * CAPACITY, "only {new} of {count} passed");
    for connection in &mut all {
        let number = connection.number;
        assert!(connection.sends(&mut firewall, 0), "{number} sends no more");
        assert!(connection.sends(&mut firewall, 1), "{number} receives no more");
    }
    assert!(firewall.count(counted) <= CAPACITY);
}

/// Computes the checksum of a segment over IPv6.
fn complete6(frame: &mut [u8]) {
    let (ip, tcp) = frame[14..].split_at_mut(40);
    let pseudo = net::wire::Ipv6::new(ip).unwrap().pseudo_header(6, tcp.len() as u32);
    net::wire::Tcp::new(tcp).unwrap().fill_checksum(pseudo);
}

/// Computes a frame's checksums.
fn complete(frame: &mut [u8]) {
    let (ip, tcp) = frame[14..].split_at_mut(20);
    let mut ip = net::wire::Ipv4::new(ip).unwrap();
    ip.fill_checksum();
    let pseudo = ip.pseudo_header(tcp.len() as u16);
    net::wire::Tcp::new(tcp).unwrap().fill_checksum(pseudo);
}
