//! Reading configurations from files, the standard input or the command line.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use elements::configure::Files;
use ir::{FileId, Sources};

/// Reads the files that a configuration names; relative paths count from the current folder, and
/// then from the folder of the file that names them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    read: HashMap<PathBuf, FileId>,
}

impl Files for Disk {
    fn read(&mut self, sources: &mut Sources, from: FileId, path: &str) -> Result<FileId, String> {
        let beside = Path::new(sources.name(from)).parent().map(|folder| folder.join(path));
        let found = match beside {
            Some(beside) if !Path::new(path).exists() && beside.exists() => beside,
            _ => PathBuf::from(path),
        };
        let key = found.canonicalize().map_err(|e| e.to_string())?;
        if let Some(&file) = self.read.get(&key) {
            return Ok(file);
        }
        let text = read_text(&found)?;
        let file = sources.add(found.display().to_string(), text);
        self.read.insert(key, file);
        Ok(file)
    }
}

/// The text of a file; what is not UTF-8 in it is replaced. A file compressed with gzip is
/// decompressed.
fn read_text(path: &Path) -> Result<Arc<str>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let limit = 1 << 30;
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(limit);
        reader.read_to_end(&mut plain).map_err(|e| e.to_string())?;
        plain
    } else {
        bytes
    };
    Ok(String::from_utf8_lossy(&bytes).into())
}

/// Adds the configuration in a file (`-` is the standard input) to the sources.
///
/// # Errors
/// A message with the file's name.
pub(crate) fn configuration(sources: &mut Sources, path: &str) -> Result<FileId, String> {
    if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| format!("standard input: {e}"))?;
        return Ok(sources.add("<stdin>", String::from_utf8_lossy(&bytes)));
    }
    let text = read_text(Path::new(path)).map_err(|e| format!("{path}: {e}"))?;
    Ok(sources.add(path, text))
}
