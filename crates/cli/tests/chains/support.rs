//! What the tests of whole chains share.

use std::path::PathBuf;

pub use lab::chain::*;

/// The folder of shared data, if it is there. In CI it must be.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CATENA_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing", folder.display());
    eprintln!("not run: {} is missing", folder.display());
    None
}
