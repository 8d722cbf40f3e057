use super::{DEFAULT_SNAP_LEN, LinkType, MAX_CAPTURED_LEN, ng};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// File formats of captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// pcap with timestamps in microseconds, which everything reads.
    #[default]
    PcapMicroseconds,
    /// pcap with timestamps in nanoseconds.
    PcapNanoseconds,
    /// pcapng with one interface and timestamps in nanoseconds.
    Pcapng,
}

/// How to write a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// File format.
    pub format: Format,
    /// What the packets begin with.
    pub link_type: LinkType,
    /// Bytes of a packet that are kept at most; 0 if all.
    pub snap_length: u32,
    /// Compress with gzip.
    pub gzip: bool,
    /// A comment on the capture; only pcapng can hold one.
    pub comment: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            format: Format::default(),
            link_type: LinkType::ETHERNET,
            snap_length: DEFAULT_SNAP_LEN,
            gzip: false,
            comment: None,
        }
    }
}

impl Options {
    /// The defaults, with what a file's name says: `.pcapng` and `.gz`, in any case.
    pub fn for_file_name(name: &Path) -> Options {
        let mut name = name.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let gzip = name.ends_with(".gz");
        if gzip {
            name.truncate(name.len() - ".gz".len());
        }
        let format = if name.ends_with(".pcapng") { Format::Pcapng } else { Format::default() };
        Options { format, gzip, ..Options::default() }
    }
}

enum Output<W: Write> {
    Plain(BufWriter<W>),
    Gzip(GzEncoder<BufWriter<W>>),
}

/// Writes packets to a capture, in the machine's byte order and buffered.
///
/// Dropping a writer flushes it but hides errors; [`finish`](Writer::finish) does not.
pub struct Writer<W: Write> {
    output: Output<W>,
    format: Format,
    // Bytes of a packet that are kept at most.
    limit: usize,
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("format", &self.format)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a capture by writing its header.
    pub fn new(write: W, options: &Options) -> io::Result<Self> {
        let write = BufWriter::with_capacity(1 << 16, write);
        let output = if options.gzip {
            Output::Gzip(GzEncoder::new(write, Compression::fast()))
        } else {
            Output::Plain(write)
        };
        let limit = match options.snap_length {
            0 => MAX_CAPTURED_LEN,
            snap_length => snap_length.min(MAX_CAPTURED_LEN),
        };
        let mut writer = Writer { output, format: options.format, limit: limit as usize };
        let header = match options.format {
            Format::PcapMicroseconds => pcap_header(0xa1b2_c3d4, options),
            Format::PcapNanoseconds => pcap_header(0xa1b2_3c4d, options),
            Format::Pcapng => pcapng_header(options)?,
        };
        writer.put(&header)?;
        Ok(writer)
    }

    /// Writes a packet that had `original_len` bytes on the wire at a time in nanoseconds since 1970; bytes
    /// beyond the snap length are left out.
    #[inline]
    pub fn write(&mut self, timestamp_ns: u64, data: &[u8], original_len: u32) -> io::Result<()> {
        let data = &data[..data.len().min(self.limit)];
        let captured_len = data.len() as u32;
        let tick = match self.format {
            Format::PcapMicroseconds => 1000,
            Format::PcapNanoseconds => 1,
            Format::Pcapng => return self.write_block(timestamp_ns, data, original_len),
        };
        // Seconds have 32 bits: the last moment stands for all later ones.
        let seconds = u32::try_from(timestamp_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let fraction = (timestamp_ns % 1_000_000_000) as u32 / tick;
        let header = [seconds, fraction, captured_len, original_len].map(u32::to_ne_bytes);
        self.put(header.as_flattened())?;
        self.put(data)
    }

    fn write_block(&mut self, timestamp_ns: u64, data: &[u8], original_len: u32) -> io::Result<()> {
        let (head, padding, length) = ng::packet(0, timestamp_ns, data.len(), original_len, 0);
        self.put(&head)?;
        self.put(data)?;
        self.put(&[0; 3][..padding])?;
        self.put(&length)
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.output {
            Output::Plain(write) => write.write_all(bytes),
            Output::Gzip(write) => write.write_all(bytes),
        }
    }

    /// Hands on what is buffered. A compressed file is complete only after [`finish`](Writer::finish).
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::Plain(write) => write.flush(),
            Output::Gzip(write) => write.flush(),
        }
    }

    /// Completes the capture.
    pub fn finish(self) -> io::Result<W> {
        let write = match self.output {
            Output::Plain(write) => write,
            Output::Gzip(write) => write.finish()?,
        };
        write.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn pcap_header(magic: u32, options: &Options) -> Vec<u8> {
    let mut header = magic.to_ne_bytes().to_vec();
    header.extend(2u16.to_ne_bytes());
    header.extend(4u16.to_ne_bytes());
    for word in [0, 0, options.snap_length, options.link_type.0] {
        header.extend(word.to_ne_bytes());
    }
    header
}

// A section header and an interface description.
fn pcapng_header(options: &Options) -> io::Result<Vec<u8>> {
    let mut section = vec![];
    if let Some(comment) = &options.comment {
        ng::put_option(&mut section, ng::COMMENT, comment.as_bytes())?;
    }
    let mut header = ng::section(section)?;
    header.extend(ng::interface(options.link_type, options.snap_length, vec![])?);
    Ok(header)
}
