//! What a worker is told. To see that there is nothing costs it a look at a flag.

use std::io::Result;
use std::sync::PoisonError;

use super::signal::Signal;
use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// Commands for a worker. It outlives the worker's thread.
pub(crate) struct Mailbox<C> {
    /// `None` once nobody reads them any more.
    commands: Mutex<Option<Vec<C>>>,
    /// Whether there are commands. Changed where they are locked, as is the signal that tells a worker which
    /// waits for packets.
    waiting: AtomicBool,
    signal: Signal,
}

impl<C> Mailbox<C> {
    /// # Errors
    /// The kernel's.
    pub(crate) fn new() -> Result<Self> {
        let (commands, waiting) = (Mutex::new(Some(Vec::new())), AtomicBool::new(false));
        Ok(Self { commands, waiting, signal: Signal::new()? })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<C>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn post(&self, command: C) {
        let mut commands = self.lock();
        let Some(all) = commands.as_mut() else { return };
        all.push(command);
        if !self.waiting.swap(true, Ordering::Release) {
            self.signal.send();
        }
    }

    /// Whether there are commands.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Sent while there are commands.
    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// The commands so far.
    pub(crate) fn take(&self) -> Vec<C> {
        let mut commands = self.lock();
        // Before the lock, one that is being posted would leave a signal behind that nothing takes.
        self.signal.take();
        self.waiting.store(false, Ordering::Relaxed);
        commands.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Lets nobody wait for an answer that will not come.
    pub(crate) fn close(&self) {
        let commands = self.lock().take();
        drop(commands);
    }
}
