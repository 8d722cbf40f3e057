//! What tests and benches of several crates share: chains in every execution mode, random packets, what can
//! be seen of both, hosts with links on which programs run, and switches. Only tests and benches depend on it, so it may depend on crates of all floors.
#![forbid(unsafe_code)]

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
