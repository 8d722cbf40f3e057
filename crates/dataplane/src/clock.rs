//! Time: of a worker, and of all threads of an instance. What this crate and the engine do by other time says so, with the
//! reason: `clippy.toml` refuses it otherwise.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod simulated;

pub use simulated::SimulatedClock;

/// A worker's clock in nanoseconds since the Unix epoch that never goes back.
pub trait Clock {
    /// The time now.
    fn now(&mut self) -> u64;

    /// Waits until `time`, or a while less: there is nothing to do before.
    fn wait_until(&mut self, time: u64);

    /// Waits until `time` if there is one, or a while less, where something may come before: `sleep` sleeps until
    /// something does, no longer than it is told, and until another descriptor is readable if there is one.
    fn wait(&mut self, time: Option<u64>, sleep: &mut dyn FnMut(Option<Duration>, Option<RawFd>)) {
        sleep(time.map(|time| Duration::from_nanos(time.saturating_sub(self.now()))), None);
    }
}

/// The time of an instance, which all of its threads go by.
pub trait Time: Send + Sync {
    /// The time now, in nanoseconds since the Unix epoch.
    fn now(&self) -> u64;

    /// Has this thread, which is no worker, wait until `time`.
    fn wait_until(&self, time: u64);

    /// How long to wait for another thread that should take no longer than this: for ever where no time
    /// passes while threads work.
    fn patience(&self, limit: Duration) -> Duration;

    /// A clock for a worker.
    ///
    /// # Errors
    /// If the system gives no sockets.
    fn clock(&self) -> std::io::Result<Box<dyn Clock>>;
}

/// The machine's clock: monotonic, starting at the wall clock's time.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    epoch: u64,
    start: Instant,
}

/// The longest wait in one piece, so that signals and control connections are seen.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

impl RealClock {
    /// Starts the clock.
    #[expect(clippy::disallowed_methods, reason = "this is where real time comes from")]
    pub fn new() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        Self { epoch, start: Instant::now() }
    }

    fn left(&self, time: u64) -> Duration {
        Duration::from_nanos(time.saturating_sub(Time::now(self)))
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&mut self) -> u64 {
        Time::now(self)
    }

    #[expect(clippy::disallowed_methods, reason = "this is where real time is waited for")]
    fn wait_until(&mut self, time: u64) {
        std::thread::park_timeout(self.left(time).min(PATIENCE));
    }
}

impl Time for RealClock {
    fn now(&self) -> u64 {
        self.epoch + self.start.elapsed().as_nanos() as u64
    }

    #[expect(clippy::disallowed_methods, reason = "this is where real time is waited for")]
    fn wait_until(&self, time: u64) {
        while Time::now(self) < time {
            std::thread::park_timeout(self.left(time));
        }
    }

    fn patience(&self, limit: Duration) -> Duration {
        limit
    }

    fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
        Ok(Box::new(*self))
    }
}

/// A clock that stands still but for waits, which pass at once: runs are repeatable, and waiting
/// costs nothing. Clones show the same time. For one worker; [`SimulatedClock`] is for several.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    now: Rc<Cell<u64>>,
}

impl VirtualClock {
    /// A clock that shows `now`.
    pub fn new(now: u64) -> Self {
        Self { now: Rc::new(Cell::new(now)) }
    }

    /// Lets time pass, in nanoseconds.
    pub fn advance(&self, by: u64) {
        self.now.set(self.now.get() + by);
    }
}

impl Clock for VirtualClock {
    fn now(&mut self) -> u64 {
        self.now.get()
    }

    fn wait_until(&mut self, time: u64) {
        self.now.set(self.now.get().max(time));
    }
}
