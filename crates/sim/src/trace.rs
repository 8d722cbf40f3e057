//! What arrives at the rack: packets of flows, one after another, and where they come from.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use net::pcap::{LinkType, Reader};

/// Identity of a flow: addresses and ports as one number each. IPv6 addresses are folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port, destination port.
    pub ports: [u16; 2],
    /// Protocol.
    pub protocol: u8,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds since the first.
    pub at: u64,
    /// Its flow.
    pub key: Key,
    /// Bytes of the frame.
    pub size: u16,
}

/// Packets in the order of their arrival.
pub trait Trace {
    /// The next one; nothing at the end.
    ///
    /// # Errors
    /// What is wrong with the trace.
    fn next(&mut self) -> Result<Option<Arrival>, String>;

    /// The next one, and the number of its flow where the trace has numbered its flows from 0 on.
    ///
    /// # Errors
    /// What is wrong with the trace.
    fn next_numbered(&mut self) -> Result<Option<(Arrival, Option<u32>)>, String> {
        Ok(self.next()?.map(|arrival| (arrival, None)))
    }
}

impl<T: Trace + ?Sized> Trace for Box<T> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        (**self).next()
    }

    fn next_numbered(&mut self) -> Result<Option<(Arrival, Option<u32>)>, String> {
        (**self).next_numbered()
    }
}

/// A trace that is there.
impl<I: Iterator<Item = Arrival>> Trace for std::iter::Fuse<I> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        Ok(Iterator::next(self))
    }
}

/// A trace that ends after some time.
pub struct Until<T> {
    /// The trace.
    pub trace: T,
    /// When it ends, in nanoseconds.
    pub end: u64,
}

impl<T: Trace> Trace for Until<T> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        Ok(self.trace.next()?.filter(|arrival| arrival.at < self.end))
    }
}

/// A trace that comes faster or slower than it was.
pub struct Faster<T> {
    /// The trace.
    pub trace: T,
    /// So many thousandths of its speed; above 0.
    pub thousandths: u64,
}

impl<T: Trace> Trace for Faster<T> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let scaled = |at: u64| u128::from(at) * 1000 / u128::from(self.thousandths.max(1));
        let at = |arrival: &Arrival| u64::try_from(scaled(arrival.at)).unwrap_or(u64::MAX);
        Ok(self.trace.next()?.map(|arrival| Arrival { at: at(&arrival), ..arrival }))
    }
}

/// A capture file, read as a stream.
pub struct Capture<R> {
    path: PathBuf,
    reader: Reader<R>,
    first: Option<u64>,
    last: u64,
    number: u64,
}

impl Capture<io::BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// The path, and why it cannot be read.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|why| format!("{}: {why}", path.display()))?;
        Self::of(path, io::BufReader::new(file))
    }
}

impl<R: Read> Capture<R> {
    /// Reads what a file holds.
    ///
    /// # Errors
    /// The path, and that it is no capture.
    pub fn of(path: &Path, bytes: R) -> Result<Self, String> {
        let reader = Reader::open(bytes).map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self { path: path.into(), reader, first: None, last: 0, number: 0 })
    }
}

impl<R: Read> Trace for Capture<R> {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        loop {
            let path = self.path.display();
            let record = self.reader.next().map_err(|why| format!("{path}: {why}"))?;
            let Some(record) = record else { return Ok(None) };
            self.number += 1;
            let time = record.header.timestamp_ns;
            if time == 0 {
                return Err(format!("{path}: packet {} has no time", self.number));
            }
            let first = *self.first.get_or_insert(time);
            if time < first + self.last {
                let back = first + self.last - time;
                return Err(format!(
                    "{path}: packet {} is {back} ns earlier than the one before it",
                    self.number
                ));
            }
            self.last = time - first;
            if let Some(key) = key(record.header.link_type, record.data) {
                let size = record.header.original_len.min(u32::from(u16::MAX)) as u16;
                return Ok(Some(Arrival { at: self.last, key, size }));
            }
        }
    }
}

/// The flow of a frame; nothing if it is not IP.
pub fn key(link: LinkType, frame: &[u8]) -> Option<Key> {
    let word = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let mut at = 0;
    if link == LinkType::ETHERNET {
        at = 12;
        // 802.1Q and 802.1ad.
        while matches!(word(at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
        if !matches!(word(at)?, 0x0800 | 0x86dd) {
            return None;
        }
        at += 2;
    } else if !link.is_raw_ip() {
        return None;
    }
    let ip = frame.get(at..)?;
    let address = |range: std::ops::Range<usize>| {
        let parts = ip.get(range)?.chunks_exact(4);
        Some(parts.fold(0u32, |sum, part| {
            sum.rotate_left(7) ^ u32::from_be_bytes([part[0], part[1], part[2], part[3]])
        }))
    };
    let (source, destination, protocol, header, is_first) = match ip.first()? >> 4 {
        4 => {
            let length = usize::from(ip[0] & 15) * 4;
            let is_first = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x1fff == 0;
            (address(12..16)?, address(16..20)?, *ip.get(9)?, length, is_first)
        }
        6 => (address(8..24)?, address(24..40)?, *ip.get(6)?, 40, true),
        _ => return None,
    };
    let mut ports = [0; 2];
    if is_first && matches!(protocol, 6 | 17 | 132) {
        let of = |at: usize| Some(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?]));
        ports = [of(header).unwrap_or(0), of(header + 2).unwrap_or(0)];
    }
    Some(Key { source, destination, ports, protocol })
}

/// Toeplitz hash with a key of period 16, by which both directions of a flow have the same hash.
pub fn symmetric_hash(key: &Key) -> u32 {
    // The key is 0x6d5a over and over: a bit's place within 16 decides by which rotation of it the hash changes.
    const PAIR: u32 = 0x6d5a_6d5a;
    let words = [
        (key.source >> 16) ^ key.source,
        (key.destination >> 16) ^ key.destination,
        u32::from(key.ports[0]),
        u32::from(key.ports[1]),
    ];
    let folded = words.iter().fold(0, |sum, word| sum ^ (word & 0xffff));
    (0..16)
        .filter(|bit| folded & (0x8000 >> bit) != 0)
        .fold(0, |sum, bit| sum ^ PAIR.rotate_left(bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_toeplitz_and_symmetric() {
        // Bit by bit, as Microsoft's specification defines it.
        let slow = |key: &Key| {
            let mut bytes = Vec::new();
            bytes.extend(key.source.to_be_bytes());
            bytes.extend(key.destination.to_be_bytes());
            key.ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
            let secret: Vec<u8> = [0x6d, 0x5a].into_iter().cycle().take(40).collect();
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            let mut hash = 0u32;
            for at in (0..bytes.len() * 8).filter(|at| bit(&bytes, *at) == 1) {
                hash ^= (0..32).fold(0, |sum, next| sum << 1 | u32::from(bit(&secret, at + next)));
            }
            hash
        };
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let ports = [random.u16(..), random.u16(..)];
            let key =
                Key { source: random.u32(..), destination: random.u32(..), ports, protocol: 6 };
            let back = Key {
                source: key.destination,
                destination: key.source,
                ports: [ports[1], ports[0]],
                protocol: 6,
            };
            assert_eq!(symmetric_hash(&key), slow(&key));
            assert_eq!(symmetric_hash(&key), symmetric_hash(&back));
        }
    }

    #[test]
    fn nothing_hostile_crashes_it() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..5000 {
            let bytes: Vec<u8> = (0..random.usize(..80)).map(|_| random.u8(..)).collect();
            for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::NULL] {
                let _ = key(link, &bytes);
            }
            if let Ok(mut of) = Capture::of(Path::new("x"), &bytes[..]) {
                while let Ok(Some(_)) = of.next() {}
            }
        }
    }

    fn capture(times: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(0xa1b2_3c4du32.to_le_bytes());
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        for time in times {
            let header = [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, 24, 1500];
            header.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            let mut packet = [0u8; 24];
            packet[0] = 0x45;
            packet[9] = 17;
            packet[15] = 1;
            packet[19] = 2;
            packet[23] = 9;
            bytes.extend(packet);
        }
        bytes
    }

    #[test]
    fn captures_count_from_their_first_packet() {
        let bytes = capture(&[5_000_000_000, 5_000_000_700]);
        let mut of = Capture::of(Path::new("x"), &bytes[..]).unwrap();
        let first = of.next().unwrap().unwrap();
        assert_eq!(
            (first.at, first.size, first.key.ports, first.key.destination),
            (0, 1500, [0, 9], 2)
        );
        assert_eq!(of.next().unwrap().unwrap().at, 700);
        assert_eq!(of.next(), Ok(None));
    }

    #[test]
    fn a_trace_is_scaled_in_time() {
        let arrival = |at| Arrival { at, key: Key::default(), size: 64 };
        let scaled = |thousandths| {
            let trace = [0, 100, 350].map(arrival).into_iter().fuse();
            let mut of = Faster { trace, thousandths };
            std::iter::from_fn(|| of.next().unwrap()).map(|of| of.at).collect::<Vec<_>>()
        };
        assert_eq!(scaled(20_000), [0, 5, 17]);
        assert_eq!(scaled(500), [0, 200, 700]);
    }

    #[test]
    fn times_must_be_there_and_rise() {
        for (times, expected) in
            [(vec![0], "packet 1 has no time"), (vec![9, 4], "packet 2 is 5 ns earlier")]
        {
            let bytes = capture(&times);
            let mut of = Capture::of(Path::new("x.pcap"), &bytes[..]).unwrap();
            let found = std::iter::from_fn(|| of.next().transpose()).find_map(Result::err);
            assert!(found.as_ref().is_some_and(|why| why.contains(expected)), "{found:?}");
        }
    }
}
