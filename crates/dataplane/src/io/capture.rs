//! Capture files as devices.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use elements::device::{Device, Received};
use net::annotation::EXTRA_LENGTH;
use net::pcap::{Options, Reader, Writer};
use net::{Batch, Pool};

/// A capture file that is read. `-` is the standard input.
pub(super) struct Input {
    reader: Reader<Box<dyn Read>>,
    link_type: u32,
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Box<dyn Device>, String> {
        let explain = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let file: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(std::io::stdin())
        } else {
            let file = File::open(path).map_err(|e| explain(&e))?;
            if file.metadata().is_ok_and(|m| m.is_dir()) {
                return Err(explain(&"is a folder"));
            }
            Box::new(file)
        };
        let reader = Reader::open(file).map_err(|e| explain(&e))?;
        let link_type = reader.link_type().map_or(1, |l| l.0);
        Ok(Box::new(Self { reader, link_type }))
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
                    let mut packet = pool.packet(record.data);
                    packet.set_timestamp(record.header.timestamp_ns);
                    let extra =
                        record.header.original_len.saturating_sub(record.header.captured_len);
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
}

/// A capture file that is written. `-` is the standard output.
pub(super) struct Output {
    path: PathBuf,
    link_type: u32,
    /// Gone once the file is complete or an error ended it.
    writer: Option<Writer<Box<dyn Write>>>,
}

impl Output {
    pub(super) fn create(path: &Path, options: &Options) -> Result<Box<dyn Device>, String> {
        let explain = |why: std::io::Error| format!("{}: {why}", path.display());
        let file: Box<dyn Write> = if path.as_os_str() == "-" {
            Box::new(std::io::stdout())
        } else {
            Box::new(File::create(path).map_err(explain)?)
        };
        let writer = Writer::new(file, options).map_err(explain)?;
        let link_type = options.link_type.0;
        Ok(Box::new(Self { path: path.to_path_buf(), link_type, writer: Some(writer) }))
    }
}

impl Device for Output {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Err("a capture that is written cannot be read from".to_string())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let mut result = Ok(());
        for packet in batch.drain() {
            if let Some(writer) = self.writer.as_mut() {
                let length = packet.len() as u32;
                let original = length.saturating_add(packet.annotations().u32(EXTRA_LENGTH));
                if let Err(why) = writer.write(packet.timestamp(), packet.data(), original) {
                    result = Err(format!("{}: {why}", self.path.display()));
                    self.writer = None;
                }
            }
            pool.recycle(packet);
        }
        result
    }

    fn flush(&mut self) -> Result<(), String> {
        match self.writer.take().map(Writer::finish) {
            None | Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(format!("{}: {why}", self.path.display())),
        }
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }
}
