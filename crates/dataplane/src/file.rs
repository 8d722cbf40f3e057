//! Files that are read: regular ones only. Whoever opens a FIFO waits until somebody writes to it, and a device may
//! never end.

use std::fs::{File, FileType, OpenOptions, metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file to read it. Nothing else is opened, and nothing is waited for.
///
/// # Errors
/// If it cannot be opened, or is none; the message says what it is.
pub fn open(path: &Path) -> Result<File> {
    // Opening some devices has effects: what it is, is looked at before.
    check(metadata(path)?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // It may have been replaced meanwhile.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// The bytes of a regular file of at most `most` bytes.
///
/// # Errors
/// If it is larger, or cannot be read; see [`open`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// All that a reader gives, at most `most` bytes.
///
/// # Errors
/// If it gives more, or cannot be read.
pub fn read_all(from: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// What was compressed with gzip, if bytes begin as that does: at most `most` bytes; others as they are.
///
/// # Errors
/// If it is more, or broken.
pub fn decompressed(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>> {
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => read_all(flate2::read::MultiGzDecoder::new(&bytes[..]), most),
        false => Ok(bytes),
    }
}

fn check(kind: FileType) -> Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "is a folder",
        kind if kind.is_fifo() => "is a FIFO, not a file; '-' is the standard input",
        kind if kind.is_socket() => "is a socket, not a file",
        _ => "is a device, not a file; '-' is the standard input",
    };
    Err(Error::new(ErrorKind::InvalidInput, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = std::env::temp_dir().join(format!("catena-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let why = |path: &Path| read(path, 5).unwrap_err().to_string();
        assert_eq!(why(&folder), "is a folder");
        assert!(why(Path::new("/dev/zero")).starts_with("is a device"));
        let fifo = folder.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(why(&fifo).starts_with("is a FIFO"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
