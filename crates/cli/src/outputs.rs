//! Files that a command writes at its end.

use std::fs;
use std::path::Path;

use dataplane::guarded_path;

/// Checks that a file can be written, before the work whose result goes there. A file that is there stays as it is.
///
/// # Errors
/// The path, and why it cannot be written.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    // Opening a pipe waits for its reader.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let is_new = fs::symlink_metadata(path).is_err();
    let opened = guarded_path::create(path, true);
    opened.map_err(|why| format!("{}: {why}", path.display()))?;
    if is_new {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Writes a whole file.
///
/// # Errors
/// The path, and why it was not written.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    guarded_path::write(path, text).map_err(|why| format!("{}: {why}", path.display()))
}
