//! How workers are woken, in every order that threads and memory allow.

use std::sync::Arc;

use loom::sync::atomic::AtomicUsize;
use loom::thread;

#[path = "../src/wake/bell.rs"]
mod bell;
#[path = "../src/wake/mailbox.rs"]
mod mailbox;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering, fence};
    pub(super) use loom::sync::{Mutex, MutexGuard};
}

/// A signal without a kernel.
mod signal {
    use loom::sync::{Condvar, Mutex};

    #[derive(Default)]
    pub(crate) struct Signal {
        sent: Mutex<bool>,
        changed: Condvar,
    }

    impl Signal {
        pub(crate) fn new() -> std::io::Result<Self> {
            Ok(Self::default())
        }

        pub(crate) fn send(&self) {
            *self.sent.lock().unwrap() = true;
            self.changed.notify_one();
        }

        pub(crate) fn take(&self) -> bool {
            std::mem::take(&mut *self.sent.lock().unwrap())
        }

        /// Sleeps until it is sent; it stays so.
        pub(crate) fn wait(&self) {
            let mut sent = self.sent.lock().unwrap();
            while !*sent {
                sent = self.changed.wait(sent).unwrap();
            }
        }
    }
}

use bell::Sleeper;
use mailbox::Mailbox;
use sync::Ordering;

/// A worker that sleeps while something lies in a ring for it never wakes, which is reported. One frame: loom does not
/// order a store behind another thread's exchange that precedes it, and takes a second frame's load for a stale one.
#[test]
fn no_frame_is_slept_over() {
    const FRAMES: usize = 1;
    loom::model(|| {
        let mut sleeper = Sleeper::new().unwrap();
        // The end of a ring that is written.
        let (bell, ring) = (sleeper.bell(), Arc::new(AtomicUsize::new(0)));
        let written = Arc::clone(&ring);
        let other = thread::spawn(move || {
            for frames in 1..=FRAMES {
                written.store(frames, Ordering::Release);
                bell.ring();
            }
        });
        let (mut taken, mut may_sleep) = (0, false);
        while taken < FRAMES {
            let there = ring.load(Ordering::Acquire);
            if there > taken {
                (taken, may_sleep) = (there, false);
                sleeper.worked();
            } else if may_sleep {
                sleeper.signal().wait();
                may_sleep = false;
            } else {
                sleeper.rest();
                may_sleep = true;
            }
        }
        other.join().unwrap();
    });
}

/// Every command is read once, and a worker that is woken finds one.
#[test]
fn no_command_is_slept_over() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let others = [0, 10].map(|first| {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.post(first))
        });
        let mut read: Vec<i32> = Vec::new();
        while read.len() < 2 {
            if !mailbox.is_waiting() {
                mailbox.signal().wait();
                assert!(mailbox.is_waiting(), "it is woken for nothing");
            }
            read.extend(mailbox.take());
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        read.sort();
        assert_eq!(read, [0, 10]);
        assert!(mailbox.take().is_empty());
        mailbox.close();
        mailbox.post(3);
        assert!(mailbox.take().is_empty(), "nobody reads it");
    });
}
