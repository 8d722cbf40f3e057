//! Simulated time, for all threads of an instance: it passes only when somebody lets it.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Clock, Time};

/// A clock that goes from one time at which a worker has something to do to the next, and no further than it
/// is told to. While workers work it stands still, so whatever they do is done at the time for which it was due,
/// however long it takes. Clones show the same time.
#[derive(Clone, Debug)]
pub struct SimulatedClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told when a worker falls asleep or ends, and when time passes.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    now: u64,
    workers: Vec<Worker>,
    /// How many workers there have been.
    count: usize,
}

#[derive(Debug)]
struct Worker {
    number: usize,
    /// Until when it sleeps, if it does; `None` is until something else wakes it.
    sleeps: Option<Option<u64>>,
    /// A byte wakes it.
    bell: UnixStream,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedClock {
    /// A clock that shows `now`, in nanoseconds since the Unix epoch.
    pub fn new(now: u64) -> Self {
        let state = Mutex::new(State { now, workers: Vec::new(), count: 0 });
        Self(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    /// Lets time pass. All that workers have to do until then is done when this ends: it waits for them, and for
    /// workers that were made and did not begin yet.
    pub fn advance(&self, by: Duration) {
        let mut state = self.0.lock();
        let end = state.now.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
        loop {
            while state.workers.iter().any(|worker| worker.sleeps.is_none()) {
                state = self.0.wait(state);
            }
            let due = state.workers.iter().filter_map(|worker| worker.sleeps.flatten()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            state.pass(due);
            self.0.changed.notify_all();
        }
        state.pass(end);
        self.0.changed.notify_all();
    }
}

impl State {
    /// Wakes those whose time has come.
    fn pass(&mut self, now: u64) {
        self.now = self.now.max(now);
        for worker in &mut self.workers {
            if worker.sleeps.flatten().is_some_and(|until| until <= self.now) {
                worker.sleeps = None;
                // Full means that it has been rung.
                let _ = (&worker.bell).write(&[1]);
            }
        }
    }
}

impl Time for SimulatedClock {
    fn now(&self) -> u64 {
        self.0.lock().now
    }

    fn wait_until(&self, time: u64) {
        let mut state = self.0.lock();
        while state.now < time {
            state = self.0.wait(state);
        }
    }

    fn patience(&self, _: Duration) -> Duration {
        Duration::MAX
    }

    fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
        let (bell, rung) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let mut state = self.0.lock();
        let number = state.count;
        state.count += 1;
        state.workers.push(Worker { number, sleeps: None, bell });
        Ok(Box::new(WorkerClock { shared: Arc::clone(&self.0), number, rung }))
    }
}

/// A worker's clock.
struct WorkerClock {
    shared: Arc<Shared>,
    number: usize,
    rung: UnixStream,
}

impl WorkerClock {
    fn set(&self, sleeps: Option<Option<u64>>) {
        let mut state = self.shared.lock();
        let own = state.workers.iter_mut().find(|worker| worker.number == self.number);
        own.into_iter().for_each(|worker| worker.sleeps = sleeps);
        self.shared.changed.notify_all();
    }
}

impl Clock for WorkerClock {
    fn now(&mut self) -> u64 {
        self.shared.lock().now
    }

    fn wait_until(&mut self, time: u64) {
        self.wait(Some(time), &mut |_, bell| crate::io::sleep_until_readable(bell.as_slice()));
    }

    fn wait(&mut self, time: Option<u64>, sleep: &mut dyn FnMut(Option<Duration>, Option<RawFd>)) {
        if time.is_some_and(|time| time <= Clock::now(self)) {
            return;
        }
        self.set(Some(time));
        sleep(None, Some(self.rung.as_raw_fd()));
        self.set(None);
        let mut bytes = [0; 16];
        while let Ok(1..) = (&self.rung).read(&mut bytes) {}
    }
}

impl Drop for WorkerClock {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.workers.retain(|worker| worker.number != self.number);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Times at which a worker wakes that has something to do every so often, until an end.
    fn worker(time: &SimulatedClock, every: u64, end: u64, wakes: impl Fn(u64) + Send + 'static) {
        let time = time.clone();
        let (ready, begun) = channel();
        std::thread::spawn(move || {
            let mut clock = time.clock().unwrap();
            let mut next = clock.now() + every;
            ready.send(()).unwrap();
            while next <= end {
                while clock.now() < next {
                    clock.wait_until(next);
                }
                wakes(next);
                next += every;
            }
        });
        begun.recv().unwrap();
    }

    #[test]
    fn workers_wake_in_the_order_of_time_and_no_later_than_it_goes() {
        let time = SimulatedClock::new(0);
        let (to, woken) = channel();
        for every in [7, 10] {
            let to = to.clone();
            worker(&time, every, 1000, move |at| to.send((at, every)).unwrap());
        }
        time.advance(Duration::from_nanos(69));
        let so_far: Vec<(u64, u64)> = woken.try_iter().collect();
        let expected = (1..=69).flat_map(|at| [7, 10].map(|every| (at, every)));
        assert_eq!(so_far, expected.filter(|(at, every)| at % every == 0).collect::<Vec<_>>());
        assert_eq!(Time::now(&time), 69);
        // Both at one time, in whichever order.
        time.advance(Duration::from_nanos(1));
        assert_eq!(woken.try_iter().count(), 2);
    }

    #[test]
    fn whoever_is_no_worker_waits_for_time_too() {
        let time = SimulatedClock::new(5);
        let other = time.clone();
        let waiting = std::thread::spawn(move || {
            other.wait_until(1_000_000_000_005);
            Time::now(&other)
        });
        time.advance(Duration::from_secs(1000));
        assert_eq!(waiting.join().unwrap(), 1_000_000_000_005);
    }
}
