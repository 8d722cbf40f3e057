//! A folder that is removed when it is dropped, or when this process ends, however it ends.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A temporary folder. Nobody else may look into it: programs obey what lies there.
pub(crate) struct Folder {
    path: PathBuf,
    watcher: Child,
}

/// Removes the folder when its standard input ends, as it does with the process that holds the other end. Processes that
/// end at the same time may still write.
const WATCHER: &str = "read -r _; n=0
    until rm -rf -- \"$0\" || [ $n -ge 100 ]; do n=$((n + 1)); sleep 0.05; done";

impl Folder {
    /// # Errors
    /// In words: there is no room for it, or no shell to watch over it.
    pub(crate) fn new() -> Result<Self, String> {
        let made = tempfile::Builder::new().prefix("catena-bench-").tempdir();
        let made = made.map_err(|why| format!("a temporary folder: {why}"))?;
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER]).arg(made.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A signal to this process's group does not reach it.
        let watcher = command.process_group(0).spawn().map_err(|why| format!("sh: {why}"))?;
        Ok(Self { path: made.keep(), watcher })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_all_that_is_in_it() {
        let folder = Folder::new().unwrap();
        let path = folder.path().to_path_buf();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
