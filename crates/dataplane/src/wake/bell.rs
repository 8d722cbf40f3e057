//! Wakes a worker that finds nothing in its rings. It is rung only if the worker said that it may sleep: a
//! system call for each burst would cost more than all else.

use std::io::Result;
use std::sync::Arc;

use super::signal::Signal;
use super::sync::{AtomicBool, Ordering, fence};

/// The end of who puts something into a ring.
pub(crate) struct Bell {
    /// Whether the worker found nothing and may sleep.
    armed: AtomicBool,
    signal: Signal,
}

impl Bell {
    /// Wakes the worker if it may sleep, after something was put into a ring.
    #[inline]
    pub(crate) fn ring(&self) {
        // Either the worker sees what is in the ring, or its bell is seen to be armed.
        fence(Ordering::SeqCst);
        if self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::AcqRel) {
            self.signal.send();
        }
    }
}

/// The worker's end.
pub(crate) struct Sleeper {
    bell: Arc<Bell>,
    /// Whether the bell was armed; whether it was rung, and that was not read yet.
    armed: bool,
    rung: bool,
}

impl Sleeper {
    /// # Errors
    /// The kernel's.
    pub(crate) fn new() -> Result<Self> {
        let bell = Bell { armed: AtomicBool::new(false), signal: Signal::new()? };
        Ok(Self { bell: Arc::new(bell), armed: false, rung: false })
    }

    pub(crate) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Sent when this worker may sleep and the bell is rung.
    pub(crate) fn signal(&self) -> &Signal {
        &self.bell.signal
    }

    /// There was something to do: nobody needs to wake this worker.
    #[inline]
    pub(crate) fn worked(&mut self) {
        if self.armed {
            self.armed = false;
            self.rung |= !self.bell.armed.swap(false, Ordering::AcqRel);
        }
        self.hear();
    }

    /// There was nothing to do: this worker may sleep, unless it takes something now.
    pub(crate) fn rest(&mut self) {
        if self.armed && !self.bell.armed.load(Ordering::Acquire) {
            (self.armed, self.rung) = (false, true);
        }
        self.hear();
        // Where it was rung and that cannot be read yet, it soon can, which ends the sleep.
        if !self.armed && !self.rung {
            self.armed = true;
            self.bell.armed.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Reads that the bell was rung; who rings it disarms it first.
    fn hear(&mut self) {
        if self.rung {
            self.rung = !self.bell.signal.take();
        }
    }
}
