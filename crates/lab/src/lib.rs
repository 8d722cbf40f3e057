//! What tests and benches of several crates share: chains in every execution mode, random packets, what can
//! be seen of both, hosts with links on which programs run, and switches. Only tests and benches depend on it, so it may depend on crates of all floors.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::PathBuf;

pub mod callgrind;
pub mod chain;
pub mod divided;
pub mod front;
pub mod live;
pub mod outcome;
pub mod ovs;
pub mod packets;

/// The folder of shared data, if it is there. That which `CATENA_SHARED` names must be.
#[allow(clippy::print_stderr, reason = "who runs a test shall know what it did not test")]
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CATENA_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CATENA_SHARED").is_none(), "{} is missing", folder.display());
    eprintln!("not run: {} is missing", folder.display());
    None
}

/// How many cases a test takes: `usual`, or what `CASES` says.
pub fn cases(usual: u64) -> u64 {
    std::env::var("CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// The seeds of that many cases, or what `SEED` says: the one of a case, or `fresh` ones.
pub fn seeds(usual: u64) -> Range<u64> {
    let cases = cases(usual);
    match std::env::var("SEED").ok().as_deref() {
        Some("fresh") => {
            let first = fastrand::u32(..).into();
            first..first + cases
        }
        Some(seed) => seed.parse().map_or(0..cases, |seed| seed..seed + 1),
        None => 0..cases,
    }
}
