//! Waiting for packets: busily for a short while, then in poll(2).
//!
//! How long is worth being busy is found as KVM finds how long a halted processor should poll: a
//! wait that ended soon after the thread fell asleep would have been shorter without sleeping, so
//! the busy while grows; one that lasted long lets it shrink. A chain without traffic costs no
//! core; one with traffic pays for no wake-up. Devices that wake nobody are asked again after a
//! short sleep, and the busy while grows when packets came meanwhile.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::sys;
use crate::thread_owned;

/// How a worker with nothing to do waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polling {
    /// Busily for a while that adapts itself, then asleep until something comes.
    #[default]
    Adaptive,
    /// Busily always: the least latency, and a whole core.
    Busy,
    /// Asleep at once until something comes: a CPU that several instances share is left to the others.
    Sleep,
    /// Busily, but others that want the CPU have a turn each time that nothing came. It is for programs of one real-time
    /// priority that poll devices on one CPU.
    Yield,
}

/// The shortest and the longest busy while.
const SHORTEST: Duration = Duration::from_micros(4);
const LONGEST: Duration = Duration::from_micros(200);
/// How long it takes to wake up, or a little more: measured on a virtual machine.
const WAKING: Duration = Duration::from_micros(20);
/// How long devices that wake nobody are left alone.
const NAP: Duration = Duration::from_micros(100);

/// How a worker waits.
#[derive(Debug)]
pub struct Waiter {
    polling: Polling,
    /// How long it is busy before it sleeps.
    busy: Duration,
    /// Since when there was nothing to do.
    idle: Option<Instant>,
    /// Whether it slept and nothing woke it.
    napped: bool,
}

impl Waiter {
    /// Waits so.
    pub fn new(polling: Polling) -> Self {
        Self { polling, busy: SHORTEST, idle: None, napped: false }
    }

    /// There was something to do.
    #[inline]
    pub fn worked(&mut self) {
        self.idle = None;
        if std::mem::take(&mut self.napped) {
            self.busy = (self.busy * 4).min(LONGEST);
        }
    }

    /// How long to wait at most for being awake when so much time has passed.
    pub fn ahead_of(&self, left: Duration) -> Duration {
        match self.polling {
            Polling::Adaptive => left.saturating_sub(WAKING),
            Polling::Busy | Polling::Yield | Polling::Sleep => left,
        }
    }

    /// Waits until one of the descriptors becomes readable or so much time has passed, or comes
    /// back earlier to be called again if there is still nothing to do. `polled` says that there
    /// may be something to do though nothing becomes readable.
    pub fn wait(&mut self, on: &[RawFd], polled: bool, longest: Duration) {
        match self.polling {
            Polling::Busy => return std::hint::spin_loop(),
            Polling::Yield => {
                thread_owned::release();
                return std::thread::yield_now();
            }
            Polling::Adaptive | Polling::Sleep => {}
        }
        let begin = Instant::now();
        let idle = *self.idle.get_or_insert(begin);
        let is_busy =
            self.polling == Polling::Adaptive && begin.saturating_duration_since(idle) < self.busy;
        if is_busy {
            std::hint::spin_loop();
            return;
        }
        let longest = if polled { longest.min(NAP) } else { longest };
        thread_owned::release();
        let came = sys::wait_readable(on, longest);
        self.napped = polled && !came;
        let slept = begin.elapsed();
        if came && slept < LONGEST {
            self.busy = (self.busy * 2).min(LONGEST);
        } else {
            self.busy = (self.busy / 2).max(SHORTEST);
        }
        if !came {
            // Nothing came: no reason to be busy before the next sleep.
            return;
        }
        self.idle = None;
    }
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new(Polling::default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn sleeps_until_something_comes() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut waiter = Waiter::default();
        near.write_all(b"x").unwrap();
        // Whatever busy rounds come first, it ends well before the hour is over.
        let mut rounds = 0;
        waiter.worked();
        while waiter.idle.is_some() || rounds == 0 {
            waiter.wait(&[far.as_raw_fd()], false, Duration::from_secs(3600));
            rounds += 1;
        }
    }

    #[test]
    fn who_sleeps_at_once_is_never_busy() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        let mut waiter = Waiter { busy: LONGEST, ..Waiter::new(Polling::Sleep) };
        waiter.worked();
        waiter.wait(&[far.as_raw_fd()], false, Duration::from_secs(3600));
        assert_eq!(waiter.idle, None, "it did not look whether something came");
    }

    #[test]
    fn being_busy_is_given_up_when_it_is_in_vain() {
        let (_near, far) = UnixStream::pair().unwrap();
        let mut waiter = Waiter::new(Polling::Adaptive);
        waiter.busy = LONGEST;
        let mut rounds = 0;
        while waiter.busy > SHORTEST {
            waiter.wait(&[far.as_raw_fd()], false, Duration::from_micros(1));
            rounds += 1;
            assert!(rounds < 100_000_000, "it stays busy");
        }
    }

    #[test]
    fn a_descriptor_that_is_gone_does_not_hang() {
        let mut waiter = Waiter { busy: Duration::ZERO, ..Waiter::default() };
        waiter.wait(&[-1, 1 << 20], false, Duration::from_millis(1));
    }
}
