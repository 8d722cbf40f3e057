//! A capture replayed from memory, over and over: a source that costs little, to measure chains.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use elements::device::{Device, Received};
use net::pcap::Reader;
use net::{Batch, Pool};

/// What is replayed. Written as `FILE` or `FILE,count=N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The capture.
    pub path: PathBuf,
    /// Number of packets; 0 is the capture once.
    pub count: u64,
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, count) = match text.rsplit_once(",count=") {
            Some((path, count)) => {
                (path, count.parse().map_err(|_| format!("'{count}' is not a number of packets"))?)
            }
            None => (text, 0),
        };
        Ok(Self { path: path.into(), count })
    }
}

impl Replay {
    pub(super) fn start(&self) -> Result<Box<dyn Device + Send>, String> {
        Running::load(&self.path, self.count).map(|r| Box::new(r) as Box<dyn Device + Send>)
    }
}

/// Bytes that are kept at the most, compressed as the capture may be.
const MOST: usize = 1 << 30;

/// The frames, one after another.
struct Running {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    next: usize,
    left: u64,
    link_type: u32,
}

impl Running {
    fn load(path: &Path, count: u64) -> Result<Self, String> {
        let explain = |why: String| format!("{}: {why}", path.display());
        let file = crate::file::open(path).map_err(|e| explain(e.to_string()))?;
        let mut reader =
            Reader::open(Box::new(file) as Box<dyn Read>).map_err(|e| explain(e.to_string()))?;
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next().map_err(|e| explain(e.to_string()))? {
            bytes.extend_from_slice(record.data);
            ends.push(bytes.len());
            if bytes.len() + size_of_val(&ends[..]) > MOST {
                return Err(explain(format!(
                    "more than {MOST} bytes of frames; without 'replay:' they are not kept in memory"
                )));
            }
        }
        let left = match (ends.len() as u64, count) {
            (0, _) => 0,
            (all, 0) => all,
            (_, count) => count,
        };
        let link_type = reader.link_type().map_or(1, |l| l.0);
        Ok(Self { bytes, ends, next: 0, left, link_type })
    }
}

impl Device for Running {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let mut wanted = self.left.min(burst as u64) as usize;
        self.left -= wanted as u64;
        while wanted > 0 {
            // As many as there are before the capture begins anew.
            let ends = &self.ends[self.next..];
            let ends = &ends[..wanted.min(ends.len())];
            let mut start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
            let frame = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
            pool.packets(batch, ends.iter().map(frame));
            wanted -= ends.len();
            self.next = (self.next + ends.len()) % self.ends.len();
        }
        Ok(if self.left == 0 { Received::End } else { Received::More })
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Err("a replayed capture cannot be written to".to_string())
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }
}
