//! `catena ctl capture`: what is captured goes to a file, or is told line by line.

use std::io::{Read, Write, stdout};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use dataplane::guarded_path;
use engine::control::Received;
use engine::control::protocol::{self, Piece};
use net::pcap::Reader;
use view::explain::brief_of;
use view::table::grouped;

use super::{Capture, Ctl, connect, end_by_signal};
use crate::failure::Failure;
use crate::terminal::{for_output, print_as_it_is, print_error};

/// Where what is captured goes.
enum Sink {
    File(Box<dyn Write>),
    /// A thread that reports each packet.
    Lines(Sender<Vec<u8>>, JoinHandle<()>),
}

/// Bytes that come piece by piece.
struct Pieces {
    from: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.piece.len() {
            (self.piece, self.at) = (self.from.recv().unwrap_or_default(), 0);
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Prints a line for each packet of a capture.
fn tell(from: Receiver<Vec<u8>>) {
    let pieces = Pieces { from, piece: Vec::new(), at: 0 };
    let Ok(mut reader) = Reader::open(pieces) else { return };
    while let Ok(Some(record)) = reader.next() {
        let (seconds, rest) = (
            record.header.timestamp_ns / 1_000_000_000,
            record.header.timestamp_ns % 1_000_000_000,
        );
        let time = format!(
            "{:02}:{:02}:{:02}.{:06}",
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            rest / 1000
        );
        let brief = brief_of(record.data, record.header.link_type.0 == 1);
        let length = record.header.original_len;
        let line = format!("{time} {brief}, {length} bytes\n");
        if !print_as_it_is(&for_output(&line)) {
            return;
        }
    }
}

impl Sink {
    fn open(path: Option<&str>) -> Result<Self, String> {
        Ok(match path {
            Some("-") => Self::File(Box::new(stdout())),
            Some(path) => {
                let file = guarded_path::create(Path::new(path), false);
                Self::File(Box::new(file.map_err(|e| format!("{path}: {e}"))?))
            }
            None => {
                let (to, from) = channel();
                let thread = std::thread::Builder::new().spawn(move || tell(from));
                Self::Lines(to, thread.map_err(|e| e.to_string())?)
            }
        })
    }

    fn take(&mut self, bytes: Vec<u8>) -> Result<(), String> {
        match self {
            Self::File(file) => {
                file.write_all(&bytes).and_then(|()| file.flush()).map_err(|e| e.to_string())
            }
            Self::Lines(to, _) => to.send(bytes).map_err(|_| "the reader is gone".to_string()),
        }
    }
}

/// Captures until it is over, and says what came of it.
pub(super) fn run(ctl: &Ctl, capture: &Capture) -> Result<(), Failure> {
    let mut client = connect(ctl.socket.as_deref())?;
    let mut sink = None;
    end_by_signal(&client)?;
    let request = protocol::Capture {
        edge: capture.edge.clone(),
        filter: capture.filter.join(" "),
        count: capture.count,
        snap: capture.snap_length.map(u64::from),
    };
    let ended = client.follow(request, |received| match received {
        Received::Piece(piece) => {
            // Whatever stood in the file stands there until there is something to capture.
            if sink.is_none() {
                sink = Some(Sink::open(capture.write.as_deref())?);
            }
            if let Piece::Edges(edges) = piece {
                for protocol::Edge { edge, place } in edges {
                    print_error(&format!("capturing {edge} ({place})\n"));
                }
            }
            Ok(())
        }
        Received::Bytes(bytes) => sink.as_mut().map_or(Ok(()), |sink| sink.take(bytes)),
    });
    if let Some(Sink::Lines(to, thread)) = sink {
        drop(to);
        let _ = thread.join();
    }
    let ended = ended?;
    if ctl.json {
        // The standard output may be the capture's.
        print_error(&format!("{}\n", serde_json::to_string(&ended).map_err(|e| e.to_string())?));
        return Ok(());
    }
    if let Some(why) = &ended.ended {
        print_error(&format!("ended: {why}\n"));
    }
    let missing = match ended.missing {
        0 => String::new(),
        missing => {
            format!(", {} missing: they came faster than they were written", grouped(missing))
        }
    };
    print_error(&format!("{} packets captured{missing}\n", grouped(ended.captured)));
    Ok(())
}
