//! Reading configurations from files, the standard input or the command line.

use std::collections::HashMap;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataplane::file;
use elements::configure::{Files, Zeroizing};
use ir::{FileId, Sources};

/// Bytes of a file with a key.
const MOST_OF_KEY: u64 = 4096;

/// Reads configurations and the files that they name; relative paths count from the current folder,
/// and then from the folder of the file that names them. Only regular files are read, and all together
/// no more than a limit.
#[derive(Clone, Debug)]
pub struct Disk {
    read: HashMap<PathBuf, FileId>,
    most: u64,
    /// Whether the limit was chosen, by an option that can choose another one.
    is_chosen: bool,
    environment: Option<fn(&str) -> Option<String>>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            read: HashMap::new(),
            most: compiler::Limits::default().text,
            is_chosen: false,
            environment: None,
        }
    }
}

impl Disk {
    /// Reads so many bytes at the most, which `--max-source` says.
    pub fn up_to(most: u64) -> Self {
        Self { most, is_chosen: true, ..Self::default() }
    }

    /// Reads what options allow: so many bytes, and environment variables.
    pub fn of(options: &compiler::Options) -> Self {
        Self { environment: options.environment, ..Self::up_to(options.limits.text) }
    }

    /// Where a file is that a source calls `path`.
    fn place(sources: &Sources, from: FileId, path: &str) -> PathBuf {
        let beside = Path::new(sources.name(from)).parent().map(|folder| folder.join(path));
        match beside {
            Some(beside) if !Path::new(path).exists() && beside.exists() => beside,
            _ => PathBuf::from(path),
        }
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
        let found = Self::place(sources, from, path);
        let key = found.canonicalize().map_err(|e| e.to_string())?;
        if let Some(&file) = self.read.get(&key) {
            return Ok(file);
        }
        let text = self.text(sources, &found.display().to_string())?;
        let file = sources.add(found.display().to_string(), text);
        self.read.insert(key, file);
        Ok(file)
    }

    fn key(
        &mut self,
        sources: &Sources,
        from: FileId,
        path: &str,
    ) -> Result<Zeroizing<String>, String> {
        let bytes = file::read(&Self::place(sources, from, path), MOST_OF_KEY);
        let text = String::from_utf8(bytes.map_err(|why| why.to_string())?);
        text.map(Zeroizing::new).map_err(|why| {
            drop(Zeroizing::new(why.into_bytes()));
            "it is not text".to_string()
        })
    }

    fn variable(&mut self, name: &str) -> Result<Zeroizing<String>, String> {
        let read = self.environment.ok_or("the environment is not read here")?;
        read(name).map(Zeroizing::new).ok_or_else(|| "the variable is not set".to_string())
    }

    fn entropy(&mut self) -> Result<[u8; 16], String> {
        let mut bytes = [0; 16];
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(16) => Ok(bytes),
            Ok(_) => Err("the system gives too few random bytes".to_string()),
            Err(why) => Err(format!("the system gives no random bytes: {why}")),
        }
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
