use std::fmt;
use std::io;

/// Why a capture could not be read on, and where.
#[derive(Debug)]
pub struct Error {
    /// Where the part that is wrong begins, in bytes from the start of the (decompressed) file.
    pub offset: u64,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// A part of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePart {
    /// The header of a pcap file.
    FileHeader,
    /// A record of a pcap file, or a packet block of a pcapng file.
    Record,
    /// Another block of a pcapng file.
    Block,
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FilePart::FileHeader => "file header",
            FilePart::Record => "record",
            FilePart::Block => "block",
        })
    }
}

/// What is wrong with a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading failed, or decompressing did.
    Io(FilePart, io::Error),
    /// There are no bytes at all.
    Empty,
    /// It begins neither as pcap nor as pcapng: the first four bytes.
    NotACapture([u8; 4]),
    /// A version that is not known: major and minor.
    Version(u16, u16),
    /// A part ends too early.
    CutOff {
        /// What ends too early.
        part: FilePart,
        /// Bytes that it should have, as far as is known.
        needed: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// A record is longer than the snap length allows.
    BeyondSnapLength {
        /// Captured length that the record announces.
        captured: u32,
        /// Snap length of the file or the interface.
        snap_length: u32,
    },
    /// A record is longer than [`MAX_CAPTURED_LEN`](super::MAX_CAPTURED_LEN).
    TooLong(u32),
    /// A pcapng block's length is no multiple of 4, too small for its type, or not repeated at its end.
    BadBlockLength(u32),
    /// A pcapng section's byte-order mark is neither of the two.
    BadByteOrderMark([u8; 4]),
    /// A packet of an interface that no block described.
    UnknownInterface {
        /// Index that the packet names.
        index: u32,
        /// Number of described interfaces.
        described: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match &self.kind {
            ErrorKind::Io(part, error) => write!(f, "{part} at byte {at}: {error}"),
            ErrorKind::Empty => f.write_str("the file is empty; a capture begins with a header"),
            ErrorKind::NotACapture([a, b, c, d]) => {
                write!(
                    f,
                    "neither pcap nor pcapng: the file begins with {a:02x} {b:02x} {c:02x} {d:02x}"
                )
            }
            ErrorKind::Version(major, minor) => {
                write!(f, "header at byte {at}: version {major}.{minor} is not known")
            }
            ErrorKind::CutOff { part, needed, present } => {
                write!(f, "{part} at byte {at}: cut off after {present} of {needed} bytes")
            }
            ErrorKind::BeyondSnapLength { captured, snap_length } => write!(
                f,
                "record at byte {at}: captured length {captured} is beyond the snap length {snap_length}"
            ),
            ErrorKind::TooLong(captured) => write!(
                f,
                "record at byte {at}: captured length {captured} is beyond the limit of {}",
                super::MAX_CAPTURED_LEN
            ),
            ErrorKind::BadBlockLength(length) => {
                write!(f, "block at byte {at}: its length of {length} cannot be right")
            }
            ErrorKind::BadByteOrderMark([a, b, c, d]) => {
                write!(
                    f,
                    "block at byte {at}: {a:02x} {b:02x} {c:02x} {d:02x} is no byte-order mark"
                )
            }
            ErrorKind::UnknownInterface { index, described } => write!(
                f,
                "record at byte {at}: its interface is number {index}, but only {described} are described"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
