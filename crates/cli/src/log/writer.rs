//! Writing what is told in a thread of its own: whoever tells does not wait for whoever reads.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::terminal::{print_as_it_is, print_error_as_it_is};

/// Bytes that may wait to be written, besides those that are being written.
const ROOM: usize = 1 << 20;

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Output,
    Error,
}

impl To {
    /// Writes what may go there to one of the process's streams.
    pub(super) fn write(self, text: &str) {
        match self {
            Self::Output => {
                print_as_it_is(text);
            }
            Self::Error => print_error_as_it_is(text),
        }
    }
}

#[derive(Default)]
struct Waiting {
    /// Neighbours go to different streams.
    texts: Vec<(To, String)>,
    bytes: usize,
    /// Texts that there was no room for since the last one that there was.
    lost: u64,
    writing: bool,
}

impl Waiting {
    fn push(&mut self, to: To, text: &str) {
        self.bytes += text.len();
        match self.texts.last_mut() {
            Some((last, waiting)) if *last == to => waiting.push_str(text),
            _ => self.texts.push((to, text.to_string())),
        }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.lost == 0
    }
}

/// What waits to be written. What there is no room for is counted, and reported where it is missing.
pub(super) struct Writer {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// What is said of so many texts that are missing, a line for the standard error.
    missing: fn(u64) -> String,
}

impl Writer {
    /// Begins to write.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(super) fn start(
        missing: fn(u64) -> String,
        write: impl Fn(To, &str) + Send + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let (waiting, changed) = (Mutex::default(), Condvar::new());
        let writer = Arc::new(Self { waiting, changed, missing });
        let own = Arc::clone(&writer);
        let work = move || {
            loop {
                own.take().iter().for_each(|(to, text)| write(*to, text));
            }
        };
        std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok(writer)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a text written after what waits already, if there is room for it.
    pub(super) fn tell(&self, to: To, text: &str) {
        let mut waiting = self.lock();
        if waiting.bytes > 0 && waiting.bytes + text.len() > ROOM {
            waiting.lost += 1;
            return;
        }
        self.tell_missing(&mut waiting);
        waiting.push(to, text);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Has a text written if nothing else waits to be: one that is of no use later.
    pub(super) fn offer(&self, to: To, text: &str) {
        let mut waiting = self.lock();
        if !waiting.writing && waiting.is_empty() {
            waiting.push(to, text);
            drop(waiting);
            self.changed.notify_all();
        }
    }

    fn tell_missing(&self, waiting: &mut Waiting) {
        if waiting.lost > 0 {
            let missing = (self.missing)(std::mem::take(&mut waiting.lost));
            waiting.push(To::Error, &missing);
        }
    }

    /// What is to be written next, once there is something.
    fn take(&self) -> Vec<(To, String)> {
        let mut waiting = self.lock();
        waiting.writing = false;
        self.changed.notify_all();
        while waiting.is_empty() {
            waiting = self.wait(waiting);
        }
        self.tell_missing(&mut waiting);
        (waiting.writing, waiting.bytes) = (true, 0);
        std::mem::take(&mut waiting.texts)
    }

    /// Waits until all that was logged is written.
    pub(super) fn flush(&self) {
        let mut waiting = self.lock();
        while waiting.writing || !waiting.is_empty() {
            waiting = self.wait(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;

    #[test]
    fn nobody_waits_and_what_is_missing_is_told_where_it_is() {
        let (reads, read) = sync_channel::<()>(0);
        let (said, heard) = channel();
        // A reader that takes a text when it is asked to.
        let write = move |to: To, text: &str| {
            let _ = read.recv();
            let _ = said.send((to, text.to_string()));
        };
        let writer = Writer::start(|count| format!("[{count}]"), write).unwrap();
        writer.tell(To::Output, "a");
        // It is being written: what follows waits.
        while !writer.lock().writing {
            std::thread::yield_now();
        }
        let line = "x".repeat(ROOM / 4);
        (0..7).for_each(|_| writer.tell(To::Error, &line));
        writer.tell(To::Output, "b");
        (0..2).for_each(|_| reads.send(()).unwrap());
        assert_eq!(heard.recv().unwrap(), (To::Output, "a".to_string()));
        // All is missing that came when there was no room, and nothing else.
        assert_eq!(heard.recv().unwrap(), (To::Error, format!("{}[4]", line.repeat(4))));
        writer.flush();
        writer.offer(To::Output, "c");
        while !writer.lock().writing {
            std::thread::yield_now();
        }
        writer.offer(To::Output, "d");
        reads.send(()).unwrap();
        writer.flush();
        assert_eq!(heard.try_recv().unwrap(), (To::Output, "c".to_string()));
        assert!(
            heard.try_recv().is_err(),
            "what was offered when something waited is of no use later"
        );
    }
}
