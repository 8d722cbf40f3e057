//! Sources that wait for room, by every execution mode: what Click's full notifiers do.

use std::path::Path as Folder;

use dataplane::Rest;
use dataplane::change::Plan;

use crate::support::{EPOCH, MODES, Mode, Started, start};

const SECOND: u64 = 1_000_000_000;
/// Rounds in which every chain here comes to rest; one that does not would go on for ever.
const ROUNDS: usize = 20_000;

fn started(text: &str, mode: impl Into<Mode>) -> Started {
    start("room", text, Folder::new("."), mode)
        .unwrap_or_else(|(diagnostics, _)| panic!("{text}\nis refused: {diagnostics:?}"))
}

/// Runs until there is nothing to do before a time, which is how it comes to rest.
#[track_caller]
fn rest(started: &mut Started, end: u64) -> Rest {
    let mut rounds = 0;
    let rest = started.router.run(|_, rest| {
        rounds += 1;
        rounds > ROUNDS || matches!(rest, Rest::Until(time) if time > end)
    });
    assert_ne!(rest, Rest::Busy, "it does not come to rest");
    rest
}

#[track_caller]
fn answers(started: &mut Started, handlers: &[(&str, &str)]) {
    for (handler, value) in handlers {
        let answer = started.router.read_handler(handler);
        assert_eq!(answer.as_deref(), Ok(*value), "{handler}");
    }
}

/// What a chain comes to that is left alone.
#[track_caller]
fn settles(text: &str, handlers: &[(&str, &str)]) {
    for mode in MODES {
        let mut started = started(text, mode);
        assert_eq!(rest(&mut started, EPOCH + 60 * SECOND), Rest::Idle, "{mode:?}: {text}");
        answers(&mut started, handlers);
    }
}

/// Packets that programs can take, so many at a time.
fn source(burst: usize) -> String {
    format!(
        "src :: InfiniteSource(DATA \\<4500 001c 0001 0000 4011 0000 01020304 05060708 0001 0002 0008 0000>,
             BURST {burst}) -> MarkIPHeader -> c :: Counter "
    )
}

#[test]
fn a_source_rests_while_the_queue_behind_it_is_full() {
    let text =
        format!("{}-> q :: Queue -> RatedUnqueue(10) -> out :: Counter -> Discard", source(1));
    for mode in MODES {
        let mut started = started(&text, mode);
        rest(&mut started, EPOCH + 5 * SECOND);
        answers(
            &mut started,
            &[("src.count", "1051"), ("out.count", "51"), ("q.length", "1000"), ("q.drops", "0")],
        );
    }
    // A burst that has room only in part is dropped in part.
    let text = format!("{}-> q :: Queue(100) -> Idle", source(32));
    settles(&text, &[("src.count", "128"), ("q.length", "100"), ("q.drops", "28")]);
}

#[test]
fn a_source_rests_only_while_no_path_has_room() {
    let both = |sinks: &str| format!("{}-> t :: Tee; {sinks}", source(1));
    settles(
        &both("t -> q :: Queue(10) -> Idle; t[1] -> Counter -> r :: Queue(20) -> Idle"),
        &[("src.count", "20"), ("q.drops", "10"), ("r.drops", "0")],
    );
    // Nobody waits for what is only thrown away.
    settles(&both("t -> q :: Queue(10) -> Idle; t[1] -> Idle"), &[("src.count", "10")]);
    // Nor for what a full queue sends elsewhere.
    settles(
        &both(
            "t -> q :: Queue(10) -> Idle; q[1] -> Discard; t[1] -> p :: ThreadSafeQueue(5) -> Idle",
        ),
        &[("src.count", "10"), ("p.drops", "5")],
    );
    // Packets of the other input take another output.
    settles(
        "InfiniteSource -> s :: Suppressor -> q :: Queue(10) -> Idle; Idle -> [1] s; s[1] -> Discard",
        &[("q.length", "10"), ("q.drops", "0")],
    );
}

#[test]
fn where_there_is_always_room_sources_go_on() {
    let limited = "src :: InfiniteSource(x, 50) -> t :: Tee -> Queue(10) -> Idle; t[1] -> ";
    for sink in ["Discard", "SimpleQueue(9) -> Idle", "FrontDropQueue(9) -> Idle"] {
        settles(&format!("{limited}{sink}"), &[("src.count", "50")]);
    }
    // The clock says when these send.
    let rated = "src :: RatedSource(RATE 100, LIMIT 50) -> q :: Queue(10) -> Idle";
    settles(rated, &[("src.count", "50"), ("q.drops", "40")]);
    let timed = "src :: TimedSource(0.1, LIMIT 50) -> q :: Queue(10) -> Idle";
    settles(timed, &[("src.count", "50"), ("q.drops", "40")]);
}

#[test]
fn room_that_comes_back_is_used() {
    let text = format!("{}-> q :: Queue(10) -> u :: Unqueue(ACTIVE false) -> Discard", source(1));
    for mode in MODES {
        let mut started = started(&text, mode);
        let mut after = |handler: &str, value: &str, expected: &[(&str, &str)]| {
            started.router.write_handler(handler, value).expect("a handler");
            rest(&mut started, EPOCH);
            answers(&mut started, expected);
        };
        after("u.limit", "3", &[("src.count", "10")]);
        after("u.active", "true", &[("src.count", "13"), ("q.drops", "0")]);
        after("q.capacity", "15", &[("src.count", "18"), ("q.drops", "0")]);
        after("q.reset", "", &[("src.count", "33"), ("q.drops", "0")]);
    }
}

#[test]
fn a_swap_keeps_a_source_waiting() {
    let chain = |queue: &str| format!("{}-> q :: {queue} -> Idle", source(1));
    for mode in MODES {
        let mut first = started(&chain("Queue(10)"), mode);
        rest(&mut first, EPOCH);
        for (queue, length) in [("Queue(10)", "10"), ("Queue(25)", "25"), ("Queue(25)", "25")] {
            let mut next = started(&chain(queue), mode);
            let plan = Plan::new(
                &first.router.inventory(),
                &first.router.holdings(),
                &next.router.inventory(),
            );
            next.router.take_over(first.router.hand_over(), &plan);
            rest(&mut next, EPOCH);
            answers(&mut next, &[("q.length", length), ("q.drops", "0")]);
            first = next;
        }
    }
}

#[test]
fn pulling_rests_while_nothing_waits() {
    let text = "q :: Queue -> d :: DelayShaper(1s) -> s :: RoundRobinSched -> u :: RatedUnqueue(1000)
             -> c :: Counter -> Discard; Idle -> [1] s;
         src :: TimedSource(10s, x, LIMIT 3) -> q; other :: RatedSource(RATE 100, LIMIT 5000) -> Discard";
    for mode in MODES {
        let mut started = started(text, mode);
        rest(&mut started, EPOCH + 35 * SECOND);
        answers(&mut started, &[("src.count", "3"), ("c.count", "3")]);
        let calls = started.router.read_handler("u.calls").expect("it can be read");
        let turns: u64 = calls.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        // Those in which the delay had a packet: about one in ten of all rounds.
        assert!(turns < 1000, "{mode:?}: {calls}");
    }
}
