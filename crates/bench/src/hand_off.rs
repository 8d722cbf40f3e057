//! Cost of handing packets from one core to another: two threads, each bound to its CPU, and the data plane's hand-off
//! between them.
//!
//! Both sides always have packets: the one that gives stays a few bursts ahead, and the one that takes waits until there is a
//! whole burst. Waiting is not counted. A side's cost is the time that it takes for a burst less the time for a burst that
//! stays on its core, so it includes the cache misses of packets that come from another core.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dataplane::io::{Giver, Taker, hand_off};
use ir::costs::{Cost, HandOffCost, Sample};
use net::{Batch, Pool};

use crate::machine::{Meter, bind_thread};
use crate::measure::Failed;
use crate::statistics::Samples;

/// Packets of a burst.
const BURSTS: [usize; 4] = [1, 8, 32, 256];
/// Packets that the giving side is ahead at the most.
const WINDOW: u64 = 1024;
const ROUNDS: usize = 11;
/// Packets of a round: whole bursts of each size.
const PACKETS: u64 = 1 << 13;
const FRAME: [u8; 60] = [0; 60];
/// Looks at the other side's counter before the CPU is yielded.
const LOOKS: u32 = 10_000;

/// What both sides know.
#[derive(Default)]
struct Shared {
    given: AtomicU64,
    taken: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    /// Waits until `ready`; whether it is before the measurement is over.
    fn wait(&self, mut ready: impl FnMut(&Self) -> bool) -> bool {
        let mut looks = 0;
        while !ready(self) {
            if self.is_over.load(Ordering::Acquire) {
                return ready(self);
            }
            looks += 1;
            match looks % LOOKS {
                // Where a CPU has other threads to run, the other side may be one of them.
                0 => std::thread::yield_now(),
                _ => spin_loop(),
            }
        }
        true
    }
}

/// Ends the measurement for the other side, however this one ends.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

/// A side's packets.
#[derive(Default)]
struct Side {
    pool: Pool,
    batch: Batch,
}

impl Side {
    fn make(&mut self, burst: usize) {
        self.pool.packets(&mut self.batch, std::iter::repeat_n(&FRAME[..], burst));
    }

    /// Reads what every function reads, and gives the packets back.
    fn consume(&mut self) {
        self.batch.iter().for_each(|packet| _ = black_box(packet.data().first()));
        self.pool.recycle_all(&mut self.batch);
    }
}

/// Median over rounds of the cycles per packet, where `burst` does one burst and says how many cycles it took.
fn median(size: usize, mut burst: impl FnMut() -> Option<u64>) -> Option<f64> {
    let mut round = |_| -> Option<f64> {
        let bursts = PACKETS / size as u64;
        let cycles = (0..bursts).map(|_| burst()).sum::<Option<u64>>()?;
        Some(cycles as f64 / PACKETS as f64)
    };
    // The first fills caches.
    round(0)?;
    Some(Samples::of((0..ROUNDS).map(round).collect::<Option<_>>()?).median)
}

/// Cycles of some work.
fn timed(now: impl Fn() -> u64, work: impl FnOnce()) -> u64 {
    let begin = now();
    work();
    now().saturating_sub(begin)
}

/// Cycles per packet on the giving side; nothing if the other side ended before.
fn give(
    mut giver: Giver,
    burst: usize,
    shared: &Shared,
    now: impl Fn() -> u64 + Copy,
) -> Option<f64> {
    let mut side = Side::default();
    let kept = median(burst, || {
        let cycles = timed(now, || side.make(burst));
        side.consume();
        Some(cycles)
    })?;
    let mut given = 0;
    let handed = median(burst, || {
        let has_room =
            |shared: &Shared| given + burst as u64 <= shared.taken.load(Ordering::Acquire) + WINDOW;
        shared.wait(has_room).then_some(())?;
        let cycles = timed(now, || {
            side.make(burst);
            given += giver.give(&mut side.batch, &mut side.pool);
        });
        shared.given.store(given, Ordering::Release);
        Some(cycles)
    })?;
    Some((handed - kept).max(0.0))
}

/// Cycles per packet on the taking side; nothing if the other side ended before.
fn take(
    mut taker: Taker,
    burst: usize,
    shared: &Shared,
    now: impl Fn() -> u64 + Copy,
    is_stopped: &dyn Fn() -> bool,
) -> Option<f64> {
    let mut side = Side::default();
    let kept = median(burst, || {
        side.make(burst);
        Some(timed(now, || side.consume()))
    })?;
    let mut taken = 0;
    let came = median(burst, || {
        let is_there = |shared: &Shared| {
            shared.given.load(Ordering::Acquire) >= taken + burst as u64 || is_stopped()
        };
        (shared.wait(is_there) && !is_stopped()).then_some(())?;
        let cycles = timed(now, || {
            taken += taker.take(burst, &mut side.batch, &mut side.pool) as u64;
            side.consume();
        });
        shared.taken.store(taken, Ordering::Release);
        Some(cycles)
    })?;
    Some((came - kept).max(0.0))
}

/// Measures what handing packets from the first CPU to the second costs; this thread is bound to the second.
///
/// # Errors
/// That it was stopped, or the kernel's.
pub(crate) fn measure_hand_off(
    cpus: [usize; 2],
    meter: &dyn Meter,
    is_stopped: &dyn Fn() -> bool,
) -> Result<HandOffCost, Failed> {
    let explain = |why: std::io::Error| Failed::Message(format!("measuring a hand-off: {why}"));
    let (mut gives, mut takes) = (Vec::new(), Vec::new());
    for burst in BURSTS {
        let (giver, taker) = hand_off().map_err(explain)?;
        let shared = Shared::default();
        let (gave, took) = std::thread::scope(|scope| {
            let giving = std::thread::Builder::new().spawn_scoped(scope, || {
                let _ending = Ending(&shared);
                bind_thread(cpus[0])?;
                let counter = quanta::Clock::new();
                Ok::<_, std::io::Error>(give(giver, burst, &shared, || counter.raw()))
            })?;
            let took = {
                let _ending = Ending(&shared);
                let now = || meter.cycles().unwrap_or_default();
                take(taker, burst, &shared, now, is_stopped)
            };
            let gave = giving.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
            Ok((gave?, took))
        })
        .map_err(explain)?;
        let (Some(gave), Some(took)) = (gave, took) else { return Err(Failed::Interrupted) };
        let packets = ROUNDS as u64 * PACKETS;
        for (samples, cycles) in [(&mut gives, gave), (&mut takes, took)] {
            samples.push(Sample { traffic: format!("bursts of {burst}"), cycles, packets });
        }
    }
    let cost = |samples| Cost::of(samples).expect("there are burst sizes");
    Ok(HandOffCost { cpus, give: cost(gives), take: cost(takes) })
}

#[cfg(test)]
mod tests {
    use rustix::thread::CpuSet;

    use super::*;
    use crate::machine::Machine;

    fn measure(first: impl Fn(usize) -> usize, stopped: bool) -> Result<HandOffCost, Failed> {
        let machine = Machine::bind(None).unwrap();
        let cpu = machine.environment().cpu.unwrap();
        measure_hand_off([first(cpu), cpu], &machine, &|| stopped)
    }

    #[test]
    fn both_sides_have_a_cost_for_each_size() {
        // On one CPU they take turns.
        let found = measure(|cpu| cpu, false).unwrap();
        let names = BURSTS.map(|burst| format!("bursts of {burst}"));
        for cost in [found.give, found.take] {
            assert!(cost.samples.iter().map(|sample| &sample.traffic).eq(&names), "{cost:?}");
            assert!(cost.min >= 0.0 && cost.max > 0.0, "{cost:?}");
        }
    }

    #[test]
    fn neither_side_waits_for_one_that_ended() {
        assert!(matches!(measure(|cpu| cpu, true), Err(Failed::Interrupted)));
        let absent = measure(|_| CpuSet::MAX_CPU - 1, false).unwrap_err();
        assert!(absent.to_string().starts_with("measuring a hand-off: "), "{absent}");
    }
}
