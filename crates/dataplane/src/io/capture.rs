//! Capture files as devices.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use elements::device::{Device, Received};
use net::annotation::EXTRA_LENGTH;
use net::pcap::{Options, Reader, Writer};
use net::{Batch, Pool};

use crate::guarded_path;

/// A capture file that is read. `-` is the standard input.
pub(super) struct Input {
    path: PathBuf,
    reader: Reader<Box<dyn Read + Send>>,
    link_type: u32,
}

fn explain(path: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

fn open(path: &Path) -> Result<Reader<Box<dyn Read + Send>>, String> {
    let file: Box<dyn Read + Send> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(crate::file::open(path).map_err(|e| explain(path, e))?)
    };
    Reader::open(file).map_err(|e| explain(path, e))
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Box<dyn Device + Send>, String> {
        let reader = open(path)?;
        let link_type = reader.link_type().map_or(1, |l| l.0);
        Ok(Box::new(Self { path: path.to_path_buf(), reader, link_type }))
    }
}

impl Device for Input {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        for _ in 0..burst {
            match self.reader.next() {
                Ok(Some(record)) => {
                    // Some programs record more bytes than they say the frame had.
                    let original = record.header.original_len as usize;
                    let data = &record.data[..record.data.len().min(original)];
                    let mut packet = pool.packet(data);
                    packet.set_timestamp(record.header.timestamp_ns);
                    let extra = record.header.original_len - data.len() as u32;
                    packet.annotations_mut().set_u32(EXTRA_LENGTH, extra);
                    batch.push(packet);
                }
                Ok(None) => return Ok(Received::End),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Err("a capture that is read cannot be written to".to_string())
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }

    fn position(&self) -> Option<u64> {
        Some(self.reader.offset())
    }

    fn seek(&mut self, position: u64) -> Result<(), String> {
        // What has been read cannot be had again from the same reader.
        if position < self.reader.offset() {
            self.reader = open(&self.path)?;
        }
        match position.checked_sub(self.reader.offset()) {
            Some(missing) => self.reader.skip(missing),
            None => return Err(explain(&self.path, "no packet begins inside of the header")),
        }
        Ok(())
    }

    fn length(&self) -> Option<u64> {
        std::fs::metadata(&self.path).ok().map(|m| m.len())
    }
}

/// A capture file that is written. `-` is the standard output.
pub(super) struct Output {
    path: PathBuf,
    link_type: u32,
    unbuffered: bool,
    /// Gone once the file is complete or an error ended it.
    writer: Option<Writer<Box<dyn Write + Send>>>,
}

impl Output {
    pub(super) fn create(
        path: &Path,
        options: &Options,
        unbuffered: bool,
    ) -> Result<Box<dyn Device + Send>, String> {
        let file: Box<dyn Write + Send> = if path.as_os_str() == "-" {
            Box::new(std::io::stdout())
        } else {
            Box::new(guarded_path::create(path, false).map_err(|e| explain(path, e))?)
        };
        let writer = Writer::new(file, options).map_err(|e| explain(path, e))?;
        let link_type = options.link_type.0;
        let path = path.to_path_buf();
        Ok(Box::new(Self { path, link_type, unbuffered, writer: Some(writer) }))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), String> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        let mut result = Ok(());
        for packet in batch.iter() {
            let length = packet.len() as u32;
            let original = length.saturating_add(packet.annotations().u32(EXTRA_LENGTH));
            result =
                result.and_then(|()| writer.write(packet.timestamp(), packet.data(), original));
        }
        if self.unbuffered {
            result = result.and_then(|()| writer.flush());
        }
        result.map_err(|why| {
            self.writer = None;
            explain(&self.path, why)
        })
    }
}

impl Device for Output {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Err("a capture that is written cannot be read from".to_string())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let result = self.write(batch);
        batch.drain().for_each(|packet| pool.recycle(packet));
        result
    }

    fn send_copies(&mut self, batch: &Batch, _: &mut Pool) -> Result<usize, String> {
        self.write(batch).map(|()| batch.len())
    }

    fn flush(&mut self) -> Result<(), String> {
        match self.writer.take().map(Writer::finish) {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(explain(&self.path, why)),
        }
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }
}
