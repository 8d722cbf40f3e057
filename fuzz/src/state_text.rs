//! The text of state that goes to another process.

use ir::state::snapshot::Snapshot;

/// The parser of snapshots: what it reads is written again as it was read.
pub fn state(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Snapshot::parse(&text) {
        Ok(read) => assert_eq!(Snapshot::parse(&read.to_string()), Ok(read)),
        Err(why) => assert!(!why.is_empty(), "nothing is said against it"),
    }
}
