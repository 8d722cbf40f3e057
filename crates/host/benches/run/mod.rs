//! Chains that run for a while, and what rounds of measurements show.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use catena_host::service::{Client, Request, Status};
use catena_host::{HostChain, Journal, Service};

/// Batches that are not measured.
const WARM: u64 = 50;

/// Runs a chain without end for so long; how it does when it has begun, and then.
pub(crate) fn sampled(spec: HostChain, window: Duration) -> (Status, Status) {
    let folder = std::env::temp_dir().join(format!("catena-bench-{}", std::process::id()));
    let journal = Journal::begin(&folder).expect("a folder of its own");
    let socket = folder.join("socket");
    // A chain that starts to stand by takes time. Behind a replay there is none.
    let has_spare = !spec.input.starts_with("replay:");
    let nobody = (PathBuf::from("/nonexistent"), Vec::new());
    let service = Service::new(spec, &nobody, journal).expect("a service");
    let handle = service.handle();
    let control = socket.clone();
    let runs = std::thread::spawn(move || service.run(Some(control), &mut |_| ()));
    let ask = || -> Status {
        loop {
            match Client::ask(&socket, Request::Status) {
                Ok(status) if status.batches >= WARM && status.spare == has_spare => return status,
                _ => assert!(!runs.is_finished(), "it ends at once"),
            }
            std::thread::yield_now();
        }
    };
    let first = ask();
    let begin = Instant::now();
    while let Some(rest) = window.checked_sub(begin.elapsed()) {
        std::thread::park_timeout(rest);
    }
    let second = ask();
    handle.stop();
    runs.join().expect("it ends").expect("it runs");
    assert_eq!(second.failures, 0);
    (first, second)
}

/// Lower quartile, median and upper quartile.
pub(crate) fn quartiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| all[(all.len() - 1) * quarter / 4])
}

/// The median, with the lower and the upper quartile.
pub(crate) fn shown(all: Vec<f64>) -> String {
    let [low, middle, high] = quartiles(all);
    format!("{middle:.2} ({low:.2}–{high:.2})")
}
