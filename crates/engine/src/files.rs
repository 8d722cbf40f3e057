//! Reading configurations from files, the standard input or the command line.

use std::collections::HashMap;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataplane::file;
use elements::configure::Files;
use ir::{FileId, Sources};

/// Reads configurations and the files that they name; relative paths count from the current folder,
/// and then from the folder of the file that names them. Only regular files are read, and all together
/// no more than a limit.
#[derive(Clone, Debug)]
pub struct Disk {
    read: HashMap<PathBuf, FileId>,
    most: u64,
    /// Whether the limit was chosen, by an option that can choose another one.
    is_chosen: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self { read: HashMap::new(), most: compiler::Limits::default().text, is_chosen: false }
    }
}

impl Disk {
    /// Reads so many bytes at the most, which `--max-source` says.
    pub fn up_to(most: u64) -> Self {
        Self { read: HashMap::new(), most, is_chosen: true }
    }

    /// The bytes of a file alone (`-` is the standard input), as they are.
    ///
    /// # Errors
    /// Why not, without the file's name.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        read_bytes(path, self.most).map_err(|why| self.explain(&why))
    }

    /// Adds the configuration in a file (`-` is the standard input) to the sources.
    ///
    /// # Errors
    /// A message with the file's name.
    pub fn configuration(&mut self, sources: &mut Sources, path: &str) -> Result<FileId, String> {
        let text = self.text(sources, path).map_err(|why| match path {
            "-" => format!("standard input: {why}"),
            path => format!("{path}: {why}"),
        })?;
        Ok(sources.add(if path == "-" { "<stdin>" } else { path }, text))
    }

    /// The text of a file besides what was read before; what is not UTF-8 in it is replaced. A file
    /// compressed with gzip is decompressed.
    fn text(&self, sources: &Sources, path: &str) -> Result<Arc<str>, String> {
        let room = self.most.saturating_sub(sources.bytes());
        let bytes = read_bytes(path, room).and_then(|bytes| file::decompressed(bytes, room));
        Ok(String::from_utf8_lossy(&bytes.map_err(|why| self.explain(&why))?).into())
    }

    fn explain(&self, why: &std::io::Error) -> String {
        let hint = if self.is_chosen { "; `--max-source SIZE` allows more" } else { "" };
        match why.kind() {
            std::io::ErrorKind::FileTooLarge => {
                format!("more than {} bytes of text in all{hint}", self.most)
            }
            _ => why.to_string(),
        }
    }
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
        let text = self.text(sources, &found.display().to_string())?;
        let file = sources.add(found.display().to_string(), text);
        self.read.insert(key, file);
        Ok(file)
    }
}

/// The bytes of a file (`-` is the standard input), no more than `most`.
///
/// # Errors
/// Why not.
pub fn read_bytes(path: &str, most: u64) -> std::io::Result<Vec<u8>> {
    match path {
        "-" => file::read_all(stdin(), most),
        path => file::read(Path::new(path), most),
    }
}
