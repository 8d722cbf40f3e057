//! Frames in memory, sent round and round.

use std::ops::Deref;
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
    vary: Vary,
}

/// What makes more flows of frames than there are.
#[derive(Clone, Copy)]
enum Vary {
    Nothing,
    /// They have so many source addresses in turn.
    Sources(u32),
    /// Each is of one of so many flows at random, which have source ports of their own.
    Flows(u32),
}

impl Frames {
    /// Reads a capture of IPv4 frames and pads them to `size` bytes.
    pub(crate) fn read(path: &Path, size: usize) -> Self {
        let explain = |why: String| -> ! { panic!("{}: {why}", path.display()) };
        let file = std::fs::File::open(path).unwrap_or_else(|e| explain(e.to_string()));
        let mut reader = Reader::open(file).unwrap_or_else(|e| explain(e.to_string()));
        let mut frames = Self { bytes: Vec::new(), ends: Vec::new(), vary: Vary::Nothing };
        while let Some(record) = reader.next().unwrap_or_else(|e| explain(e.to_string())) {
            let mut frame = record.data.to_vec();
            frame.resize(size.max(frame.len()), 0);
            frames.push(frame);
        }
        frames
    }

    /// The same frames with their UDP datagrams bound for this port.
    pub(crate) fn to_udp_port(&self, port: u16) -> Self {
        let mut frames = Self { bytes: Vec::new(), ends: Vec::new(), vary: Vary::Nothing };
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
        let mut all = Self { bytes: Vec::new(), ends: Vec::new(), vary: Vary::Nothing };
        frames.into_iter().for_each(|frame| all.push(frame));
        all
    }

    /// Frames as they are, whatever they hold.
    pub(crate) fn raw(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut all = Self { bytes: Vec::new(), ends: Vec::new(), vary: Vary::Nothing };
        for frame in frames {
            all.bytes.extend_from_slice(&frame);
            all.ends.push(all.bytes.len());
        }
        all
    }

    /// The frames, one after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.frame(at))
    }

    /// The same frames, but one after the other comes from another of so many addresses: so many
    /// flows, if they are a multiple of the frames.
    pub(crate) fn with_sources(&self, sources: u32) -> Self {
        Self { bytes: self.bytes.clone(), ends: self.ends.clone(), vary: Vary::Sources(sources) }
    }

    /// The same frames in any order, but from other ports, so that they are of so many flows.
    pub(crate) fn with_flows(&self, flows: u32) -> Self {
        Self { bytes: self.bytes.clone(), ends: self.ends.clone(), vary: Vary::Flows(flows) }
    }

    /// How many frames there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// After how many frames most flows have come.
    pub(crate) fn cycle(&self) -> usize {
        match self.vary {
            Vary::Flows(flows) => 2 * flows as usize,
            Vary::Nothing | Vary::Sources(_) => self.len(),
        }
    }

    fn frame(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
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

/// Where IPv4 addresses and the ports behind them start in a frame, without options.
const SOURCE: usize = ETHERNET + 12;
const SOURCE_PORT: usize = ETHERNET + 20;

/// Where the checksums of a frame's IPv4 header and of the TCP segment or UDP datagram in it are.
fn checksums(frame: &[u8]) -> [usize; 2] {
    let transport = if frame[ETHERNET + 9] == ip_protocol::TCP { 16 } else { 6 };
    [ETHERNET + 10, SOURCE_PORT + transport]
}

/// Makes a checksum right after what it sums up changed (RFC 1624).
fn update(frame: &mut [u8], at: usize, old: u32, new: u32) {
    let words = |n: u32| (n >> 16) + (n & 0xffff);
    let sum = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let sum = u32::from(!sum) + words(!old) + words(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Sets the source address of a frame and makes the checksums right.
fn set_source(frame: &mut [u8], address: u32) {
    let place = SOURCE..SOURCE + 4;
    let old = u32::from_be_bytes(frame[place.clone()].try_into().expect("four bytes"));
    for at in checksums(frame) {
        update(frame, at, old, address);
    }
    frame[place].copy_from_slice(&address.to_be_bytes());
}

/// Sets the source port of a frame and makes the checksum right.
fn set_source_port(frame: &mut [u8], port: u16) {
    let place = SOURCE_PORT..SOURCE_PORT + 2;
    let old = u16::from_be_bytes(frame[place.clone()].try_into().expect("two bytes"));
    let [_, transport] = checksums(frame);
    update(frame, transport, 0xffff_0000 | u32::from(old), 0xffff_0000 | u32::from(port));
    frame[place].copy_from_slice(&port.to_be_bytes());
}

/// Sends frames for ever.
pub(crate) struct Source<F = Rc<Frames>> {
    frames: F,
    next: usize,
    source: u32,
    random: fastrand::Rng,
}

impl<F: Deref<Target = Frames>> Source<F> {
    pub(crate) fn new(frames: F) -> Self {
        let random = fastrand::Rng::with_seed(1);
        Self { frames, next: 0, source: 0, random }
    }
}

impl<F: Deref<Target = Frames>> Device for Source<F> {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let frames = &*self.frames;
        let all = frames.len();
        if let Vary::Nothing = frames.vary {
            let mut wanted = burst;
            while wanted > 0 {
                let ends = &frames.ends[self.next..];
                let ends = &ends[..wanted.min(ends.len())];
                let mut start = self.next.checked_sub(1).map_or(0, |before| frames.ends[before]);
                let frame = |&end: &usize| &frames.bytes[std::mem::replace(&mut start, end)..end];
                pool.packets(batch, ends.iter().map(frame));
                wanted -= ends.len();
                self.next = (self.next + ends.len()) % all;
            }
            return Ok(Received::More);
        }
        for _ in 0..burst {
            let mut variant = 0;
            if let Vary::Flows(flows) = frames.vary {
                let flow = self.random.u32(..flows) as usize;
                (self.next, variant) = (flow % all, flow / all);
            }
            let mut packet = pool.packet(frames.frame(self.next));
            match frames.vary {
                Vary::Nothing => {}
                Vary::Sources(sources) => {
                    self.source = (self.source + 1) % sources;
                    set_source(packet.data_mut(), 0x0a00_0000 + self.source);
                }
                Vary::Flows(_) => set_source_port(packet.data_mut(), 1024 + variant as u16),
            }
            batch.push(packet);
            self.next += 1;
            if self.next == all {
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
