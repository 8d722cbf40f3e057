//! Frames in memory, sent round and round.

use std::path::Path;
use std::rc::Rc;

use elements::device::{Device, Received};
use net::pcap::Reader;
use net::wire::{Ipv4, Tcp, Udp, ip_protocol};
use net::{Batch, Pool};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Frames, one after another.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    /// How many source addresses frames have in turn; 0 if each has its own.
    sources: u32,
}

impl Frames {
    /// Reads a capture of IPv4 frames and pads them to `size` bytes.
    pub(crate) fn read(path: &Path, size: usize) -> Self {
        let explain = |why: String| -> ! { panic!("{}: {why}", path.display()) };
        let file = std::fs::File::open(path).unwrap_or_else(|e| explain(e.to_string()));
        let mut reader = Reader::open(file).unwrap_or_else(|e| explain(e.to_string()));
        let mut frames = Self { bytes: Vec::new(), ends: Vec::new(), sources: 0 };
        while let Some(record) = reader.next().unwrap_or_else(|e| explain(e.to_string())) {
            let mut frame = record.data.to_vec();
            frame.resize(size.max(frame.len()), 0);
            frames.push(frame);
        }
        frames
    }

    /// The same frames with their UDP datagrams bound for this port.
    pub(crate) fn to_udp_port(&self, port: u16) -> Self {
        let mut frames = Self { bytes: Vec::new(), ends: Vec::new(), sources: 0 };
        let mut start = 0;
        for &end in &self.ends {
            let mut frame = self.bytes[start..end].to_vec();
            start = end;
            let mut packet = Ipv4::new_checked(&mut frame[ETHERNET..]).expect("IPv4");
            Udp::new(packet.payload_mut()).expect("UDP").set_dst_port(port);
            frames.push(frame);
        }
        frames
    }

    /// Frames of IPv4, with lengths and checksums made right.
    pub(crate) fn of(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut all = Self { bytes: Vec::new(), ends: Vec::new(), sources: 0 };
        frames.into_iter().for_each(|frame| all.push(frame));
        all
    }

    /// The frames, one after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// The same frames, but one after the other comes from another of so many addresses: so many
    /// flows, if they are a multiple of the frames.
    pub(crate) fn with_sources(&self, sources: u32) -> Self {
        Self { bytes: self.bytes.clone(), ends: self.ends.clone(), sources }
    }

    /// How many frames there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a frame with lengths and checksums made right.
    fn push(&mut self, mut frame: Vec<u8>) {
        complete(&mut frame[ETHERNET..]);
        self.bytes.extend_from_slice(&frame);
        self.ends.push(self.bytes.len());
    }
}

/// Sets lengths and checksums of an IPv4 packet that takes all these bytes. ICMP needs nothing:
/// zeros do not change its checksum.
fn complete(bytes: &mut [u8]) {
    let length = bytes.len();
    let mut packet = Ipv4::new_checked(bytes).expect("IPv4");
    packet.set_total_len(length as u16);
    packet.fill_checksum();
    let transport = length - packet.header_len();
    let (protocol, sum) = (packet.protocol(), packet.pseudo_header(transport as u16));
    match protocol {
        ip_protocol::TCP => {
            Tcp::new_checked(packet.payload_mut()).expect("TCP").fill_checksum(sum);
        }
        ip_protocol::UDP => {
            let mut datagram = Udp::new(packet.payload_mut()).expect("UDP");
            datagram.set_len(transport as u16);
            datagram.fill_checksum(sum);
        }
        _ => {}
    }
}

/// Sets the source address of a frame's IPv4 packet with a UDP datagram in it, and makes the checksums right.
fn set_source(frame: &mut [u8], address: u32) {
    let old = u32::from_be_bytes(frame[26..30].try_into().expect("four bytes"));
    let words = |n: u32| (n >> 16) + (n & 0xffff);
    for at in [24, 40] {
        // RFC 1624.
        let sum = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let sum = u32::from(!sum) + words(!old) + words(address);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    frame[26..30].copy_from_slice(&address.to_be_bytes());
}

/// Sends frames for ever.
pub(super) struct Source {
    frames: Rc<Frames>,
    next: usize,
    source: u32,
}

impl Source {
    pub(super) fn new(frames: &Rc<Frames>) -> Self {
        Self { frames: Rc::clone(frames), next: 0, source: 0 }
    }
}

impl Device for Source {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let Frames { bytes, ends, sources } = &*self.frames;
        for _ in 0..burst {
            let start = if self.next == 0 { 0 } else { ends[self.next - 1] };
            let mut packet = pool.packet(&bytes[start..ends[self.next]]);
            if *sources > 0 {
                self.source = (self.source + 1) % sources;
                set_source(packet.data_mut(), 0x0a00_0000 + self.source);
            }
            batch.push(packet);
            self.next += 1;
            if self.next == ends.len() {
                self.next = 0;
            }
        }
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("only a source".into())
    }
}

/// A device whose packets are gone once they are sent.
pub(super) struct Nowhere;

impl Device for Nowhere {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }
}
