//! Logs: what an NF prints, in a file that does not grow without end.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use crate::Failure;

/// Bytes of a file; the one before is kept.
const LONGEST: u64 = 1 << 20;

/// The log of an NF, in the folder of its service.
pub fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// A log that grows by lines.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    /// Opens one; lines go behind those that are there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let made = || {
            let file = File::options().append(true).create(true).open(path)?;
            let length = file.metadata()?.len();
            Ok(Self { path: path.to_path_buf(), file, length })
        };
        made().map_err(Failure::at(path))
    }

    /// Writes to it.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.length > LONGEST {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            self.file = File::options().append(true).create(true).open(&self.path)?;
            self.length = 0;
        }
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// Two ends of a log for a process that starts.
pub(crate) fn open(folder: &Path, name: &str) -> Result<[Stdio; 2], Failure> {
    watched(folder, name).map(|(output, _)| output)
}

/// The same, and what is closed when all that the process printed is written.
pub(crate) fn watched(folder: &Path, name: &str) -> Result<([Stdio; 2], Receiver<()>), Failure> {
    let path = path(folder, name);
    let failed = |why| Failure::File(path.clone(), why);
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let second = writer.try_clone().map_err(failed)?;
    let log = Log::open(&path)?;
    let (end, ended) = channel();
    let copy = move || {
        let _ = copy(reader, log);
        drop(end);
    };
    std::thread::Builder::new().name("log".into()).spawn(copy).map_err(failed)?;
    Ok(([writer.into(), second.into()], ended))
}

/// What was printed last, on a line.
pub(crate) fn tail(folder: &Path, name: &str) -> Option<String> {
    const SHOWN: usize = 300;
    let bytes = std::fs::read(path(folder, name)).ok()?;
    let text =
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4 * SHOWN)..]).into_owned();
    let words: Vec<char> = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let last: String =
        words[words.len().saturating_sub(SHOWN)..].iter().filter(|of| !of.is_control()).collect();
    (!last.is_empty()).then_some(last)
}

fn copy(mut from: PipeReader, mut to: Log) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => to.write(&bytes[..count])?,
        }
    }
}
