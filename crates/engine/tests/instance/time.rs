//! Chains under a simulated clock: minutes pass in no time, and nothing happens at another time than it is due.

use std::sync::Arc;
use std::time::Duration;

use catena_engine::io::{Binding, Bindings};
use catena_engine::session::Path;
use catena_engine::{Configuration, Extent, Instance, Options};
use dataplane::clock::SimulatedClock;

const SECOND: Duration = Duration::from_secs(1);

/// A translator whose flows time out, and sources that go by time.
const CHAIN: &str = "FromDevice(in) -> Strip(14) -> CheckIPHeader
        -> nat :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, UDP_TIMEOUT 300)
        -> Queue -> d :: DelayUnqueue(0.5) -> late :: Counter -> Discard;
    nat[1] -> Discard;
    RatedSource(RATE 2, LIMIT -1, STOP false) -> rated :: Counter -> Discard;
    TimedSource(INTERVAL 60) -> timed :: Counter -> Discard;";

fn read(text: &str) -> Configuration {
    Configuration::of_text("chain", text, &Default::default()).unwrap()
}

/// A number, or the sum of those that lines for each worker end with.
fn count(instance: &Instance, handler: &str) -> u64 {
    let value = instance.read(handler).unwrap();
    value.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn timers_timeouts_and_delays_go_by_the_clock_that_is_passed_in() {
    for (path, workers) in [(Path::Native, 1), (Path::Synthesised, 1), (Path::Synthesised, 2)] {
        let time = SimulatedClock::new(1_700_000_000_000_000_000);
        let mut bindings = Bindings::default();
        bindings.inputs.insert("in".into(), Binding::source("gen:count=5,flows=5").unwrap());
        let (cpus, clock) = (vec![None; workers], Arc::new(time.clone()));
        let options = Options { path, cpus, time: clock, ..Options::default() };
        let instance = Instance::start(read(CHAIN), bindings, options).unwrap();
        // What is there at once is done at once, and what is delayed is not.
        time.advance(Duration::ZERO);
        let flows = |instance: &Instance| count(instance, "nat.table_size");
        assert_eq!((flows(&instance), count(&instance, "late.count")), (5, 0));
        time.advance(SECOND / 2 - Duration::from_nanos(1));
        assert_eq!(count(&instance, "late.count"), 0);
        time.advance(SECOND);
        assert_eq!(count(&instance, "late.count"), 5);
        // Each worker has the sources of the chain.
        let each = workers as u64;
        time.advance(298 * SECOND);
        assert_eq!((flows(&instance), count(&instance, "timed.count")), (5, 4 * each));
        // What is preserved in another chain has as long to live as it had.
        let other = read(&CHAIN.replace("late ::", "later ::"));
        instance.change(other, Extent::Change).unwrap();
        assert_eq!(flows(&instance), 5);
        time.advance(3 * SECOND);
        assert_eq!(flows(&instance), 0);
        let rated = count(&instance, "rated.count");
        time.advance(600 * SECOND);
        assert_eq!(count(&instance, "rated.count") - rated, 1200 * each);
        let age = 600 * SECOND + 302 * SECOND + SECOND / 2 - Duration::from_nanos(1);
        assert_eq!(instance.age(), age);
    }
}
