//! Logs: what an NF prints, in a file that does not grow without end.

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::Failure;

/// Bytes of a file; the one before is kept.
const LONGEST: u64 = 1 << 20;

/// The log of an NF, in the folder of its service.
pub fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Two ends of a log for a process that starts.
pub(crate) fn open(folder: &Path, name: &str) -> Result<[Stdio; 2], Failure> {
    let path = path(folder, name);
    let failed = |why| Failure::File(path.clone(), why);
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let second = writer.try_clone().map_err(failed)?;
    let file = File::options().append(true).create(true).open(&path).map_err(failed)?;
    let copied = path.clone();
    let copy = move || drop(copy(reader, file, &copied));
    std::thread::Builder::new().name("log".into()).spawn(copy).map_err(failed)?;
    Ok([writer.into(), second.into()])
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

fn copy(mut from: PipeReader, mut to: File, path: &Path) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    let mut length = to.metadata()?.len();
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        if length > LONGEST {
            std::fs::rename(path, path.with_extension("log.1"))?;
            to = File::options().append(true).create(true).open(path)?;
            length = 0;
        }
        to.write_all(&bytes[..count])?;
        length += count as u64;
    }
}
