//! Time, as a worker sees it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock in nanoseconds since the Unix epoch that never goes back.
pub trait Clock {
    /// The time now.
    fn now(&mut self) -> u64;

    /// Waits until `time`, or a while less: there is nothing to do before.
    fn wait_until(&mut self, time: u64);
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
    pub fn new() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        Self { epoch, start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&mut self) -> u64 {
        self.epoch + self.start.elapsed().as_nanos() as u64
    }

    fn wait_until(&mut self, time: u64) {
        let left = Duration::from_nanos(time.saturating_sub(self.now()));
        std::thread::park_timeout(left.min(PATIENCE));
    }
}

/// A clock that stands still but for waits, which pass at once: runs are repeatable, and waiting
/// costs nothing. Clones show the same time.
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
