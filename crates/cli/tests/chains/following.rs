//! Packets that are followed through chains that run, also where they wait.

use std::path::Path as Folder;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use dataplane::trace::live::{TracedPacket, Tracing};
use dataplane::trace::{Fate, Step};
use dataplane::{Router, Tap};
use elements::selector::Selector;
use engine::session::Path;
use ir::Port;

use crate::support::{Started, start};

/// A chain of which packets that come to `in` are followed.
struct Watched {
    started: Started,
    tap: Option<Tap>,
    heard: Receiver<TracedPacket>,
    names: Vec<String>,
}

impl Watched {
    /// `text` is what comes behind `in`; so many packets for port 53 are followed.
    fn start(text: &str, path: Path, most: u64) -> Self {
        let text = format!("in :: Idle -> first :: Counter {text}");
        let mut started = start("following", &text, Folder::new("."), path)
            .unwrap_or_else(|(diagnostics, _)| panic!("{text}\nis refused: {diagnostics:?}"));
        started.router.round();
        let nodes = &started.chain.graph.nodes;
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let (tap, heard) = Self::follow(&mut started, ("in", "first"), most);
        Self { started, tap: Some(tap), heard, names }
    }

    fn follow(
        started: &mut Started,
        (from, to): (&str, &str),
        most: u64,
    ) -> (Tap, Receiver<TracedPacket>) {
        let port = |name| Port { node: started.chain.graph.find(name).expect("one"), port: 0 };
        let (from, to) = (port(from), port(to));
        let (sender, heard) = channel();
        let following = Tracing {
            selector: Selector::new("udp dst port 53").expect("a pattern"),
            left: Arc::new(most.into()),
            programs: [].into(),
            to: sender,
        };
        let tap = following.tap(&mut started.router, (from, to), 0, 0).expect("the connection");
        (tap, heard)
    }

    fn router(&mut self) -> &mut Router {
        &mut self.started.router
    }

    /// Packets come in one batch, to these ports.
    fn come(&mut self, ports: &[u16]) {
        let router = &mut self.started.router;
        let mut batch = router.core().batch();
        for port in ports {
            let words = format!("bare udp 10.0.0.1:1000 > 10.0.0.2:{port}");
            let bytes = net::notation::parse(&words).expect("the words are right");
            let mut packet = router.core().pool.packet(&bytes);
            packet.set_ip_header(0, 20);
            batch.push(packet);
        }
        let tap = router.taps().all().first().expect("a tap").node;
        router.push(Port { node: tap, port: 0 }, batch);
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.router().round();
        }
    }

    fn write(&mut self, handler: &str, value: &str) {
        self.router().write_handler(handler, value).expect("a handler");
    }

    /// What was told meanwhile: the visits in words, and why that was not all.
    fn told(&self) -> Vec<String> {
        let outcome = |step: &Step, name: &str| -> Vec<String> {
            let of = |outcome: &dataplane::trace::Outcome| match &outcome.fate {
                Fate::Left(port) => format!("{name}>{port}"),
                Fate::Dropped(reason) => format!("{name}!{}", reason.0),
                Fate::Sent(to) => format!("{name}={to}"),
                Fate::Kept => format!("{name}~"),
                Fate::UsedUp => format!("{name}."),
            };
            step.outcomes.iter().map(of).collect()
        };
        let all = self.heard.try_iter().map(|followed| {
            let visits = followed.steps.iter();
            let words = visits.flat_map(|step| outcome(step, &self.names[step.node]));
            words.chain(followed.unfinished.map(|why| format!("({why})"))).collect::<Vec<_>>()
        });
        all.map(|words| words.join(" ")).collect()
    }
}

const PATHS: [Path; 3] = [Path::Native, Path::Synthesised, Path::SynthesisedInterpreted];

/// From where it waits a packet is followed on, whoever asks for it; others with it are not.
#[test]
fn packets_are_followed_through_queues() {
    for path in PATHS {
        let mut watched = Watched::start(
            "-> q :: Queue -> u :: Unqueue(8, ACTIVE false) -> f :: IPFilter(allow udp) -> p :: Paint(3)
               -> r :: Queue -> s :: Shaper(100000) -> g :: DecIPTTL
               -> t :: Unqueue(8, ACTIVE false) -> Discard",
            path,
            10,
        );
        watched.come(&[54, 53, 55, 53]);
        watched.rounds(3);
        assert_eq!(watched.told(), [""; 0], "{path:?}: they wait");
        watched.write("u.active", "true");
        watched.rounds(3);
        assert_eq!(watched.told(), [""; 0], "{path:?}: they wait again");
        watched.write("t.active", "true");
        watched.rounds(3);
        let visits = "first>0 q~ q>0 u>0 f>0 p>0 r~ r>0 s>0 g>0 t>0 Discard@11!discarded";
        assert_eq!(watched.told(), [visits, visits], "{path:?}");
    }
}

/// Copies go their own paths, and wait where they do.
#[test]
fn copies_are_followed_each() {
    for path in PATHS {
        let mut watched = Watched::start(
            "-> tee :: Tee -> q :: Queue -> u :: Unqueue -> a :: Discard;
             tee[1] -> r :: Queue -> v :: Unqueue(ACTIVE false) -> b :: Discard",
            path,
            10,
        );
        watched.come(&[53]);
        watched.rounds(3);
        assert_eq!(watched.told(), [""; 0], "{path:?}: a copy waits");
        watched.write("v.active", "true");
        watched.rounds(3);
        let told = watched.told().concat();
        for part in ["tee>0", "tee>1", "q~", "r~", "a!discarded", "r>0 v>0 b!discarded"] {
            assert_eq!(told.matches(part).count(), 1, "{path:?}: {part} in {told}");
        }
    }
}

/// Packets come to a tap from a program as well as from elements, also once programs end there.
#[test]
fn packets_that_programs_bring_are_followed() {
    for path in PATHS {
        let mut watched = Watched::start(
            "-> t :: DecIPTTL -> e :: UDPIPEncap(10.0.0.3, 1, 10.0.0.4, 53) -> f :: IPFilter(allow udp) -> d :: Discard",
            path,
            0,
        );
        let (tap, heard) = Watched::follow(&mut watched.started, ("e", "f"), 100);
        watched.heard = heard;
        watched.come(&[54]);
        watched.rounds(3);
        watched.come(&[54, 55]);
        let visits = "f>0 d!discarded";
        assert_eq!(watched.told(), [visits; 3], "{path:?}");
        watched.router().taps().remove(tap);
        watched.rounds(3);
        watched.come(&[54]);
        assert_eq!(watched.told(), [""; 0], "{path:?}");
    }
}

/// A packet that finds a queue full, and one that has to leave for another, are told to be dropped.
#[test]
fn drops_in_queues_end_a_packets_path() {
    let chain = |queue| format!("-> q :: {queue}(2) -> u :: Unqueue(ACTIVE false) -> Discard");
    let mut watched = Watched::start(&chain("Queue"), Path::Synthesised, 10);
    watched.come(&[53, 54, 55, 53]);
    assert_eq!(watched.told(), ["first>0 q!queue-full"]);
    // What waits is dropped by a handler, and told; its buffer is somebody else's then.
    watched.write("q.reset", "");
    assert_eq!(watched.told(), ["first>0 q~ q!queue-reset"]);
    watched.come(&[54, 55]);
    watched.write("u.active", "true");
    watched.rounds(5);
    assert_eq!(watched.told(), [""; 0]);
    let mut watched = Watched::start(&chain("FrontDropQueue"), Path::Synthesised, 10);
    watched.come(&[53, 54]);
    watched.come(&[55]);
    assert_eq!(watched.told(), ["first>0 q~ q!queue-full"]);
    watched.come(&[53]);
    assert_eq!(watched.told(), [""; 0], "the one that was dropped is another");
}

/// A packet that waits for a neighbour goes on when the neighbour answers somebody else's packet.
#[test]
fn packets_wait_for_neighbours() {
    let mut watched = Watched::start(
        "-> GetIPAddress(16) -> [0] arp :: ARPQuerier(10.0.0.1, 02:00:00:00:00:01) -> q :: Queue -> Discard;
         answers :: Idle -> [1] arp",
        Path::Synthesised,
        10,
    );
    watched.come(&[53]);
    watched.rounds(2);
    assert_eq!(watched.told(), [""; 0]);
    let words = "eth 02:00:00:00:00:02 > 02:00:00:00:00:01 arp reply 10.0.0.2 is-at 02:00:00:00:00:02 to 10.0.0.1";
    let bytes = net::notation::parse(words).unwrap_or_else(|why| panic!("{why:?}"));
    let arp = watched.started.chain.graph.find("arp").expect("one");
    let router = watched.router();
    let mut batch = router.core().batch();
    let packet = router.core().pool.packet(&bytes);
    batch.push(packet);
    router.push(Port { node: arp, port: 1 }, batch);
    watched.rounds(3);
    let told = watched.told().concat();
    assert!(told.contains("arp~") && told.contains("arp>0 q~ q>0"), "{told}");
}

/// What waits when the trace ends is told as it is; its mark says nothing to a trace after it.
#[test]
fn a_trace_ends_while_packets_wait() {
    let mut watched = Watched::start(
        "-> q :: Queue -> u :: Unqueue(ACTIVE false) -> Discard",
        Path::Synthesised,
        2,
    );
    watched.come(&[53, 53, 53]);
    let tap = watched.tap.take().expect("a tap");
    watched.router().taps().remove(tap);
    let held = "first>0 q~ (the trace ended)";
    assert_eq!(watched.told(), [held, held]);
    let (tap, heard) = Watched::follow(&mut watched.started, ("in", "first"), 10);
    (watched.tap, watched.heard) = (Some(tap), heard);
    watched.come(&[53]);
    watched.write("u.active", "true");
    watched.rounds(10);
    assert_eq!(watched.told(), ["first>0 q~ q>0 u>0 Discard@5!discarded"]);
}

/// Nobody waits for ever for a packet that does.
#[test]
fn packets_that_wait_long_are_told_of() {
    let mut watched = Watched::start(
        "-> q :: Queue -> u :: Unqueue(ACTIVE false) -> Discard",
        Path::Synthesised,
        10,
    );
    watched.come(&[53]);
    watched.started.clock.advance(6_000_000_000);
    watched.come(&[53]);
    watched.rounds(2);
    assert_eq!(watched.told(), [""; 0]);
    watched.started.clock.advance(5_000_000_000);
    watched.rounds(2);
    assert_eq!(watched.told(), ["first>0 q~ (it waited for 10 s)"]);
    watched.started.clock.advance(5_000_000_000);
    watched.rounds(2);
    assert_eq!(watched.told(), ["first>0 q~ (it waited for 10 s)"]);
    // Then nothing has to be waited for any more.
    assert_eq!(watched.router().round(), dataplane::Rest::Idle);
}
