//! Where runs are controlled.

use std::path::PathBuf;

/// Where an instance is controlled unless the command line says otherwise.
pub(crate) fn default_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("catena/ctl.sock"),
        None => PathBuf::from("/run/catena/ctl.sock"),
    }
}
