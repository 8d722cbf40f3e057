//! Chains that take each other's place while they know more flows than are looked at at once: every execution mode
//! them gives the same, packet by packet, while what goes on is seen to bit by bit.

use std::path::Path as Folder;

use dataplane::change::Plan;
use engine::session::Path;

use crate::outcome::{Seen, Tallies, drain, feed, state, tallies};
use crate::support::{MODES, Mode, Started, start};

/// Flows of each kind that there are before the change: with those of the other kind, more than are looked at in two
/// steps.
const FLOWS: u16 = 1500;
const SECOND: u64 = 1_000_000_000;

/// A translator with arguments of its own behind its pattern's ports.
fn chain(ports: &str, arguments: &str) -> String {
    format!(
        "in0 :: Idle -> CheckIPHeader -> rw :: IPRewriter(pattern 30.0.0.1 {ports} - - 0 1, drop{arguments});
         in1 :: Idle -> CheckIPHeader -> [1] rw;
         rw[0] -> ttl :: DecIPTTL -> out0 :: Queue(100000) -> Idle;
         rw[1] -> out1 :: Queue(100000) -> Idle;"
    )
}

/// Changes, and how the new chain's translator is.
const CHANGES: [(&str, &str, &str); 5] = [
    ("nothing", "1024-65535", ""),
    ("shorter timeouts", "1024-65535", ", UDP_TIMEOUT 20, TCP_NODATA_TIMEOUT 15"),
    (
        "longer timeouts",
        "1024-65535",
        ", UDP_TIMEOUT 900, UDP_GUARANTEE 10, TCP_NODATA_TIMEOUT 700",
    ),
    ("other ports", "3000-9000", ""),
    ("less room", "1024-65535", ", MAPPING_CAPACITY 2000"),
];

fn begin(text: &str, mode: impl Into<Mode>) -> Started {
    start("handover", text, Folder::new("."), mode)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
}

/// The flow of this number, of one kind or the other.
fn frame(number: u16) -> Vec<u8> {
    let (kind, of_kind) = if number.is_multiple_of(2) { ("udp", "") } else { ("tcp", " flags A") };
    let (host, port) = (number % 7 + 1, 1000 + number);
    let words = format!("bare {kind} 10.0.0.{host}:{port} > 20.0.0.1:80{of_kind}");
    net::notation::parse(&words).expect("the words are right")
}

/// What comes back for what left.
fn answer(seen: &Seen) -> Vec<u8> {
    let mut ip = seen.bytes();
    let ports = 20;
    (0..4).for_each(|i| ip.swap(12 + i, 16 + i));
    (0..2).for_each(|i| ip.swap(ports + i, ports + 2 + i));
    ip
}

type Outcome = ([Vec<Seen>; 2], Tallies);

/// Pushes packets one by one, so that packets come between the steps.
fn push(run: &mut Started, frames: &[(&str, Vec<u8>)]) -> Outcome {
    for (input, frame) in frames {
        feed(run, input, std::slice::from_ref(frame));
        run.router.round();
    }
    (["out0", "out1"].map(|queue| drain(run, queue)), tallies(&mut run.router))
}

/// Lets another chain take over.
fn replace(run: &mut Started, text: &str, mode: impl Into<Mode>) {
    let mut next = begin(text, mode);
    let plan = Plan::new(&run.router.inventory(), &run.router.holdings(), &next.router.inventory());
    next.clock.advance(run.router.time() - next.router.time());
    let taken = next.router.take_over(run.router.hand_over(), &plan);
    assert_eq!(taken.unclaimed, 0);
    *run = next;
}

#[test]
fn every_way_hands_over_many_flows_the_same() {
    let many: Vec<(&str, Vec<u8>)> = (0..2 * FLOWS).map(|n| ("in0", frame(n))).collect();
    for (seed, (change, ports, arguments)) in (0u64..).zip(CHANGES) {
        // Those that there is no room for go one after the other, but at once where models are interpreted.
        let modes = match change {
            "less room" => [Path::Native, Path::Synthesised].map(Mode::from).to_vec(),
            _ => MODES.to_vec(),
        };
        let start = |mode: Mode| (mode, begin(&chain("1024-65535", ""), mode));
        let mut runs: Vec<(Mode, Started)> = modes.into_iter().map(start).collect();
        let mut known = Vec::new();
        for (mode, run) in &mut runs {
            let ([left, _], _) = push(run, &many);
            assert_eq!(left.len(), many.len(), "{mode:?}");
            run.clock.advance(10 * SECOND);
            replace(run, &chain(ports, arguments), *mode);
            known = left;
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        for step in 0..12 {
            let pause = rng.u64(..3 * SECOND);
            let frames: Vec<(&str, Vec<u8>)> = (0..8)
                .map(|_| match rng.u8(..3) {
                    0 => ("in0", frame(rng.u16(..2 * FLOWS + 100))),
                    1 => ("in1", answer(&known[rng.usize(..known.len())])),
                    _ => ("in0", frame(rng.u16(..20))),
                })
                .collect();
            let take = |(_, run): &mut (Mode, Started)| {
                run.clock.advance(pause);
                push(run, &frames)
            };
            let mut results: Vec<Outcome> = runs.iter_mut().map(take).collect();
            for ((mode, _), outcome) in runs.iter().zip(&results) {
                assert_eq!(*outcome, results[0], "{mode:?} after {change}, step {step}");
            }
            let ([left, _], _) = results.swap_remove(0);
            known.extend(left);
        }
        // The flows themselves last: to write them down does at once what is done bit by bit.
        let states: Vec<_> = runs.iter_mut().map(|(_, run)| state(&mut run.router)).collect();
        for ((mode, _), state) in runs.iter().zip(&states) {
            assert!(*state == states[0], "{mode:?} after {change}: its flows differ");
        }
    }
}

/// What packets left for those behind them goes over: tokens, turns, rates, and where lots go on.
#[test]
fn tokens_turns_rates_and_lots_go_over() {
    let chain = "in0 :: Idle -> r :: RatedSplitter(1, BURST_SIZE 4) -> t :: RoundRobinSwitch -> out0 :: Queue(1000) -> Idle;
         t[1] -> out1 :: Queue(1000) -> Idle; r[1] -> m :: Meter(1000) -> Discard; m[1] -> fast :: Counter -> Discard;
         in1 :: Idle -> lots :: RandomSwitch -> out0; lots[1] -> out1;";
    let mut first = None;
    for mode in MODES {
        let mut run = begin(chain, mode);
        let packets = |count: u16| (0..count).map(|n| ("in0", frame(n))).collect::<Vec<_>>();
        let counts = |([a, b], _): Outcome| [a.len(), b.len()];
        assert_eq!(counts(push(&mut run, &packets(3))), [2, 1], "{mode:?}");
        replace(&mut run, chain, mode);
        assert_eq!(counts(push(&mut run, &packets(300))), [0, 1], "{mode:?}");
        // The rate shows when the epoch is over.
        run.clock.advance(20_000_000);
        push(&mut run, &packets(1));
        replace(&mut run, chain, mode);
        push(&mut run, &packets(1));
        assert_eq!(run.router.read_handler("fast.count").as_deref(), Ok("2"), "{mode:?}");
        let lots: Vec<_> = (0..40).map(|n| ("in1", frame(n))).collect();
        let drawn = (0..3).map(|_| {
            replace(&mut run, chain, mode);
            push(&mut run, &lots).0
        });
        let drawn: Vec<_> = drawn.collect();
        assert_ne!(drawn[0], drawn[1], "{mode:?}: they begin again");
        assert_eq!(*first.get_or_insert_with(|| drawn.clone()), drawn, "{mode:?}");
    }
}

/// What a handler chose goes over: it is no other configuration.
#[test]
fn a_chosen_output_stays_chosen() {
    let chain = "in0 :: Idle -> s :: Switch(0); s[0] -> out0 :: Queue -> Idle; s[1] -> out1 :: Queue -> Idle;";
    for mode in MODES {
        let mut run = begin(chain, mode);
        run.router.write_handler("s.switch", "1").unwrap();
        for _ in 0..2 {
            replace(&mut run, chain, mode);
            assert_eq!(run.router.read_handler("s.switch").as_deref(), Ok("1"), "{mode:?}");
            let ([first, second], _) = push(&mut run, &[("in0", frame(0))]);
            assert_eq!((first.len(), second.len()), (0, 1), "{mode:?}");
        }
    }
}

#[test]
fn identifications_go_on() {
    let text = "in0 :: Idle -> CheckIPHeader -> s :: Switch(0) -> ttl :: DecIPTTL -> t :: Tee
           -> u :: UDPIPEncap(30.0.0.1, 1, 30.0.0.2, 2) -> out0 :: Queue(100000) -> Idle;
         in1 :: Idle -> Discard; s[1] -> Discard;
         t[1] -> i :: IPEncap(4, 30.0.0.3, 30.0.0.4) -> out1 :: Queue(100000) -> Idle;
         ttl[1] -> e :: ICMPError(30.0.0.1, timeexceeded) -> out1;";
    let frames: Vec<Vec<u8>> = [1, 9, 9, 1, 9]
        .map(|ttl| format!("bare udp 10.0.0.1:1000 > 20.0.0.1:80 ttl {ttl}"))
        .map(|words| net::notation::parse(&words).expect("the words are right"))
        .into();
    let run = |mode: Mode, is_replaced: bool| {
        let mut run = begin(text, mode);
        let mut left = [const { Vec::new() }; 2];
        for turn in 0..6 {
            if turn == 2 && is_replaced {
                replace(&mut run, text, mode);
            }
            if let Some((_, output)) = [(1, "1"), (2, "0")].iter().find(|(at, _)| *at == turn) {
                run.router.write_handler("s.switch", output).expect("it is written");
            }
            frames.iter().for_each(|frame| feed(&mut run, "in0", std::slice::from_ref(frame)));
            for (left, queue) in left.iter_mut().zip(["out0", "out1"]) {
                left.extend(drain(&mut run, queue).iter().map(Seen::bytes));
            }
        }
        left
    };
    let wanted = run(MODES[0], false);
    assert_eq!(wanted.each_ref().map(|left| left.len()), [15, 25]);
    for mode in MODES {
        let left = run(mode, true);
        for (left, wanted) in left.iter().zip(&wanted) {
            let same = left.iter().zip(wanted).take_while(|(left, wanted)| left == wanted).count();
            assert_eq!((same, left.len()), (wanted.len(), wanted.len()), "{mode:?}");
        }
    }
}

#[test]
fn flows_of_ipv6_go_on_behind_another_firewall() {
    let text = |more: &str| {
        format!(
            "require(nf);
             fw :: Firewall(allow all{more});
             in0 :: Idle -> [0] fw [0] -> out0 :: Queue(1000) -> Idle;
             in1 :: Idle -> [1] fw [1] -> out1 :: Queue(1000) -> Idle;"
        )
    };
    let frames = |input: &'static str, words: &[&str]| -> Vec<(&str, Vec<u8>)> {
        let frame = |words: &&str| (input, net::notation::parse(words).expect("they are right"));
        words.iter().map(frame).collect()
    };
    let begun = [
        "tcp [2001:db8::1]:5000 > [2001:db8::2]:80 flags S seq 10",
        "udp [2001:db8::1]:5000 > [2001:db8::2]:53",
        "icmp 2001:db8::1 > 2001:db8::2 type 128 rest 458753",
    ];
    let answers = [
        "tcp [2001:db8::2]:80 > [2001:db8::1]:5000 flags SA seq 90 ack 11",
        "udp [2001:db8::2]:53 > [2001:db8::1]:5000",
        "icmp 2001:db8::2 > 2001:db8::1 type 129 rest 458753",
        // What nobody asked for: a number that the SYN has not, another port, another ping.
        "tcp [2001:db8::2]:80 > [2001:db8::1]:5000 seq 99000 ack 11 payload 'x'",
        "udp [2001:db8::2]:54 > [2001:db8::1]:5000",
        "icmp 2001:db8::2 > 2001:db8::1 type 129 rest 524289",
    ];
    for path in [Path::Native, Path::Synthesised] {
        let mut run = begin(&text(""), path);
        let ([left, _], _) = push(&mut run, &frames("in0", &begun));
        assert_eq!(left.len(), 3, "{path:?}");
        run.clock.advance(10 * SECOND);
        replace(&mut run, &text(", UDP_TIMEOUT 77"), path);
        let ([_, left], _) = push(&mut run, &frames("in1", &answers));
        assert_eq!(left.len(), 3, "{path:?}");
        let mut read = |handler| run.router.read_handler(handler).expect("it is there");
        assert_eq!(read("fw/windows6.count").trim(), "1");
        assert_eq!(read("fw/flows6.count").trim(), "2");
        assert!(
            read("fw/flows6.table")
                .contains("udp [2001:db8::1]:5000 > [2001:db8::2]:53 answered 7")
        );
    }
}
