//! Capture files.

use std::io::{self, Read};

use net::pcap::{Error, Reader, RecordHeader};

/// A capture yields so many packets at most here: a few compressed bytes may hold many.
const MAX_RECORDS: usize = 10_000;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The capture reader: in memory or byte by byte, it finds the same packets and the same end.
pub fn pcap(data: &[u8]) {
    let whole = read(Reader::in_memory(data.to_vec()));
    let dripping = read(Reader::open(Drip(data)));
    if data.starts_with(&GZIP) && whole.1.is_some() {
        // How much of a corrupt stream is decompressed before the error depends on the reads.
        assert!(dripping.1.is_some());
        assert!(whole.0.iter().zip(&dripping.0).all(|(a, b)| a == b));
    } else {
        assert_eq!(whole, dripping);
    }
}

/// The packets, and the offset and text of the error that ended them.
type Outcome = (Vec<(RecordHeader, Vec<u8>)>, Option<(u64, String)>);

fn read<R: Read>(reader: Result<Reader<R>, Error>) -> Outcome {
    let end = |error: Error| Some((error.offset, error.to_string()));
    let mut records = Vec::new();
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return (records, end(error)),
    };
    while records.len() < MAX_RECORDS {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.data.len(), record.header.captured_len as usize);
                records.push((record.header, record.data.to_vec()));
            }
            Ok(None) => return (records, None),
            Err(error) => return (records, end(error)),
        }
    }
    (records, None)
}

/// Yields one byte at a time.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = buffer.len().min(1);
        self.0.read(&mut buffer[..end])
    }
}
