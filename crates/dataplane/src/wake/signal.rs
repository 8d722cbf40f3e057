//! A descriptor that is readable from when a signal is sent until it is taken.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

pub(crate) struct Signal(OwnedFd);

impl Signal {
    /// # Errors
    /// The kernel's.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn send(&self) {
        // Nothing can be wrong with it: it is open, and far from full.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes what was sent; whether there was something.
    pub(crate) fn take(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

impl AsRawFd for Signal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
