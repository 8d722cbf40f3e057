//! Elements that depend on time, under a clock that only waiting moves.

use std::path::Path as Folder;

use dataplane::Rest;
use engine::session::Path;

use crate::support::{EPOCH, Started, start};

const SECOND: u64 = 1_000_000_000;

fn started(text: &str) -> Started {
    start("test", text, Folder::new("."), Path::Native)
        .unwrap_or_else(|(diagnostics, _)| panic!("{text}\nis refused: {diagnostics:?}"))
}

/// Runs for so long; what the handlers answer then.
#[track_caller]
fn after(text: &str, nanoseconds: u64, answers: &[(&str, &str)]) {
    let mut started = started(text);
    run_until(&mut started, EPOCH + nanoseconds);
    for (handler, value) in answers {
        let answer = started.router.read_handler(handler);
        assert_eq!(answer.as_deref(), Ok(*value), "{text}: {handler}");
    }
    assert!(started.heard.0.borrow().errors.is_empty(), "{text}");
}

fn run_until(started: &mut Started, end: u64) {
    use dataplane::clock::Clock;
    let mut clock = started.clock.clone();
    started.router.run(|_, rest| matches!(rest, Rest::Until(time) if time > end));
    if clock.now() < end {
        clock.wait_until(end);
    }
}

#[test]
fn sources_keep_their_pace() {
    let rated = "s :: RatedSource(RATE 100, LIMIT 1000) -> c :: Counter -> Discard;";
    after(rated, SECOND, &[("c.count", "101"), ("s.count", "101"), ("c.byte_count", "6969")]);
    after(rated, 20 * SECOND, &[("c.count", "1000")]);
    let bandwidth = "RatedSource(LENGTH 100, BANDWIDTH 8kbps) -> c :: Counter -> Discard;";
    after(bandwidth, 10 * SECOND, &[("c.count", "101")]);
    let pulled = "RatedSource(RATE 50, LIMIT 500) -> Unqueue -> c :: Counter -> Discard;";
    after(pulled, 2 * SECOND, &[("c.count", "101")]);
    let timed = "s :: TimedSource(0.1, abc, LIMIT 15) -> c :: Counter -> Discard;";
    after(timed, SECOND, &[("c.count", "10"), ("c.byte_count", "30"), ("s.interval", "0.1")]);
    after(timed, 9 * SECOND, &[("c.count", "15")]);
}

#[test]
fn a_source_stops_the_driver_or_writes_a_handler_at_its_end() {
    for source in ["InfiniteSource", "RatedSource", "TimedSource"] {
        let text = format!(
            "{source}(LIMIT 3, END_CALL s.run) -> c :: Counter -> Discard;
             s :: Script(TYPE PASSIVE, print c.count, stop)"
        );
        let mut started = started(&text);
        assert_eq!(started.router.run(|_, _| false), Rest::Stopped, "{source}");
        assert_eq!(started.heard.0.borrow().output, "3\n", "{source}");
        let text = format!("x :: {source}(LIMIT 2, STOP true) -> c :: Counter -> Discard");
        let mut started = self::started(&text);
        assert_eq!(started.router.run(|_, _| false), Rest::Stopped, "{source}");
        assert_eq!(started.router.read_handler("x.count").as_deref(), Ok("2"));
    }
    let wrong = "InfiniteSource(END_CALL nobody.run) -> Discard";
    assert!(start("test", wrong, Folder::new("."), Path::Native).is_err());
}

#[test]
fn a_source_can_be_started_again() {
    let mut started = started("s :: InfiniteSource(x, 2, LENGTH 3) -> c :: Counter -> Discard");
    let router = &mut started.router;
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    router.write_handler("s.reset", "").unwrap();
    router.write_handler("s.length", "10").unwrap();
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(router.read_handler("c.byte_count").as_deref(), Ok("26"));
    assert!(router.write_handler("s.length", "100000").is_err());
    assert!(router.write_handler("s.burst", "0").is_err());
}

#[test]
fn shapers_let_through_what_the_rate_allows() {
    let queue = "InfiniteSource(LENGTH 100, LIMIT 5000, BURST 100) -> Queue(5000)";
    // What the rate brings and the burst that was saved up.
    after(
        &format!("{queue} -> Shaper(1000) -> Unqueue -> c :: Counter -> Discard"),
        SECOND,
        &[("c.count", "1010")],
    );
    after(
        &format!("{queue} -> BandwidthShaper(100kBps) -> Unqueue -> c :: Counter -> Discard"),
        SECOND,
        &[("c.count", "1010")],
    );
    after(
        &format!("{queue} -> RatedUnqueue(1000) -> c :: Counter -> Discard"),
        SECOND,
        &[("c.count", "1020")],
    );
    after(
        &format!("{queue} -> RatedUnqueue(1000, BURST_SIZE 1) -> c :: Counter -> Discard"),
        SECOND,
        &[("c.count", "1001")],
    );
    after(
        &format!(
            "{queue} -> u :: BandwidthRatedUnqueue(800kbps, BURST_BYTES 1000) -> c :: Counter -> Discard"
        ),
        SECOND,
        &[("c.count", "1010"), ("u.rate", "100000")],
    );
    after(
        &format!("{queue} -> RatedUnqueue(0) -> c :: Counter -> Discard"),
        1,
        &[("c.count", "5000")],
    );
}

#[test]
fn packets_are_delayed() {
    let text = "TimedSource(1, LIMIT 3) -> Queue -> DelayUnqueue(0.25) -> c :: Counter -> Discard";
    for (time, count) in
        [(SECOND, "0"), (SECOND * 5 / 4 - 1, "0"), (SECOND * 5 / 4, "1"), (SECOND * 4, "3")]
    {
        after(text, time, &[("c.count", count)]);
    }
    let text = "TimedSource(1, LIMIT 3) -> Queue -> d :: DelayShaper(0.25) -> Unqueue -> c :: Counter -> Discard";
    for (time, count) in [(SECOND, "0"), (SECOND * 5 / 4, "1"), (SECOND * 4, "3")] {
        after(text, time, &[("c.count", count), ("d.delay", "0.25")]);
    }
}

#[test]
fn meters_and_splitters_tell_rates_apart() {
    let source = "r :: RatedSource(LENGTH 100, RATE 100)";
    let meter = format!(
        "{source} -> m :: Meter(50, 500); m[0] -> a :: Counter -> Discard;
        m[1] -> b :: Counter -> Discard; m[2] -> c :: Counter -> Discard;"
    );
    let mut started = started(&meter);
    run_until(&mut started, EPOCH + 2 * SECOND);
    let count = |started: &mut Started, name: &str| -> u64 {
        started.router.read_handler(&format!("{name}.count")).unwrap().parse().unwrap()
    };
    let (slow, medium, fast) =
        (count(&mut started, "a"), count(&mut started, "b"), count(&mut started, "c"));
    assert!(slow < 40 && medium > 160 && fast == 0, "{slow} {medium} {fast}");
    started.router.write_handler("r.rate", "1000").unwrap();
    run_until(&mut started, EPOCH + 4 * SECOND);
    assert!(count(&mut started, "c") > 1500 && count(&mut started, "a") == slow);

    let split = format!(
        "{source} -> s :: RatedSplitter(25, BURST_SIZE 1);
        s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;"
    );
    after(&split, 4 * SECOND, &[("a.count", "101"), ("b.count", "300")]);
}

#[test]
fn counters_measure_rates_and_write_handlers() {
    let mut started = started(
        "RatedSource(LENGTH 100, RATE 100)
         -> c :: Counter(COUNT_CALL 50 s.run one, BYTE_COUNT_CALL 10000 s.run two)
         -> a :: AverageCounter(IGNORE 1) -> d :: Counter -> Discard;
         s :: Script(TYPE PASSIVE, print \"$args $(d.count)\")",
    );
    run_until(&mut started, EPOCH + 2 * SECOND);
    // The handlers are written before the packet goes on.
    assert_eq!(started.heard.0.borrow().output, "one 49\ntwo 99\n");
    let router = &mut started.router;
    assert_eq!(router.read_handler("c.rate").as_deref(), Ok("100.5"));
    assert_eq!(router.read_handler("c.byte_rate").as_deref(), Ok("10050"));
    assert_eq!(router.read_handler("c.bit_rate").as_deref(), Ok("80400"));
    assert_eq!(router.read_handler("a.count").as_deref(), Ok("101"));
    assert_eq!(router.read_handler("a.rate").as_deref(), Ok("101"));
    assert_eq!(router.read_handler("a.link_count").as_deref(), Ok("100192"));
}

#[test]
fn a_counter_stops_the_driver_at_a_packet() {
    let mut started = started("InfiniteSource -> c :: Counter(COUNT_CALL 10 stop) -> Discard");
    assert_eq!(started.router.run(|_, _| false), Rest::Stopped);
    assert_eq!(started.router.read_handler("c.count").as_deref(), Ok("10"));
}

#[test]
fn a_suppressed_flow_does_not_pass() {
    let mut started =
        started("InfiniteSource(LIMIT 5) -> s :: Suppressor -> c :: Counter -> Discard");
    let router = &mut started.router;
    assert_eq!(router.read_handler("s.active0").as_deref(), Ok("true"));
    router.write_handler("s.active0", "false").unwrap();
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(router.read_handler("c.count").as_deref(), Ok("0"));
    assert!(router.read_handler("s.active1").is_err());
}

/// Probes look about as long as there is something else to do.
#[test]
fn probes_keep_no_run() {
    let text = "
        require(nf);
        source :: InfiniteSource(LIMIT 1) -> Discard;
        Idle -> lb :: LB(10.0.0.1, VIP 10.0.0.100) -> [0] check :: HealthCheck(lb/servers, 10.0.0.254/24, 02:00:00:00:00:02) [0]
             -> out :: Counter -> Discard;
        Idle -> [1] check [1] -> [1] lb [1] -> Discard";
    let mut started = started(text);
    // Probes come for ever: a run that waited for them would not end.
    let mut rounds = 0;
    let rest = started.router.run(|_, _| {
        rounds += 1;
        rounds > 1000
    });
    assert!(matches!(rest, Rest::IdleUntil(_)), "{rest:?}");
    let text = text.replace("LIMIT 1)", "LIMIT 1) -> Queue -> DelayUnqueue(5s)");
    let mut started = self::started(&text);
    started.router.run(|_, _| false);
    let asked: u64 = started.router.read_handler("out.count").unwrap().parse().unwrap();
    assert!(asked >= 2, "{asked} probes in 5 s");
}
