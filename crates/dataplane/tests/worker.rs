//! Threads that take each other's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use catena_dataplane::change::Plan;
use catena_dataplane::clock::VirtualClock;
use catena_dataplane::worker::{self, Prepared};
use catena_dataplane::{Listener, Router};
use ir::Graph;
use rustix::thread::{Pid, gettid};

/// How many routers were taken apart.
static APART: AtomicUsize = AtomicUsize::new(0);

/// Counts its router when that is taken apart.
struct Counted;

impl Listener for Counted {
    fn message(&mut self, _: &str) {}
    fn output(&mut self, _: &str) {}
    fn error(&mut self, _: &str, _: &str) {}
}

impl Drop for Counted {
    fn drop(&mut self) {
        APART.fetch_add(1, Ordering::SeqCst);
    }
}

fn prepare() -> Prepared<()> {
    let made = worker::prepare(&[None, None], 0, |_| {
        let clock = Box::new(VirtualClock::new(0));
        Ok((Router::new(&Graph::default(), Vec::new(), clock, 1, Box::new(Counted)), ()))
    });
    made.unwrap_or_else(|_| panic!("a router of nothing can be made"))
}

/// A thread sleeps, or is gone.
fn is_at_rest(thread: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_pid()));
    stat.map_or(true, |stat| stat.contains(") S "))
}

/// A router that was replaced is taken apart once all workers go on, so that it takes none of their time before.
#[test]
fn what_was_before_waits_for_all_to_go_on() {
    let (fleet, _rests) = prepare().start(&[None, None], 2).unwrap();
    let thread = || fleet.call(0, |_| gettid()).unwrap();
    let old = thread();
    std::thread::scope(|threads| {
        let (release, released) = channel::<()>();
        let (holds, held) = channel();
        let fleet = &fleet;
        threads.spawn(move || {
            fleet.call(1, move |_| {
                holds.send(()).unwrap();
                let _ = released.recv();
            })
        });
        held.recv().unwrap();
        let swap = threads.spawn(|| fleet.swap(prepare(), &Arc::new(Plan::default())));
        while thread() == old {}
        // The other worker has not come to it yet. Whoever made room waits, or would be gone.
        while !is_at_rest(old) {
            std::thread::yield_now();
        }
        assert_eq!(APART.load(Ordering::SeqCst), 0);
        drop(release);
        assert_eq!(swap.join().unwrap().unwrap().0.len(), 2);
    });
    while APART.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
}
