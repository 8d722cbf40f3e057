//! A receive ring of AF_PACKET (TPACKET_V2): the kernel puts each frame into a slot of shared
//! memory, and hands it over at once. No system call while frames come. (TPACKET_V3 hands over
//! blocks of frames: they are fewer words to share, but a frame that comes alone waits until its
//! block is a millisecond old.)

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use net::{Batch, Packet, Pool};

use super::messages::tag;
use super::offload::{VNET_HEADER, VnetHeader, complete};
use super::port::{ETHERNET, Losses, REFUSED, RUNT, TRUNCATED};
use super::sys::{self, Mapping};

const TPACKET_V2: c_int = 1;
/// Memory of a ring; it is allocated block by block.
const MEMORY: u32 = 1 << 23;
const BLOCK: u32 = 1 << 18;
/// The smallest and the largest slot.
const SLOTS: [u32; 2] = [1 << 11, 1 << 16];
/// Bytes in front of a frame in its slot, and those that the MTU does not count, with some to spare.
const ROOM: u32 = 192;
/// Bytes of the longest super-frame, with its virtio-net header.
const LONGEST: usize = (1 << 16) + 256;

/// In a slot's header: whose it is, how long the frame is, how much of it is there, where.
const STATUS: u64 = 0;
const FRAME_LENGTH: usize = 4;
const KEPT: usize = 8;
const START: usize = 12;
const TAG: usize = 24;
const TAG_PROTOCOL: usize = 26;
/// Bytes of a `struct tpacket2_hdr`.
const HEADER: usize = 32;

/// The ring of a socket.
pub(super) struct PacketRing {
    memory: Mapping,
    /// Bytes of a slot, and the one that is next.
    slot: u32,
    next: u32,
    /// Room for a frame that does not fit a slot.
    long: Vec<u8>,
}

/// Bytes of a slot for frames of an interface.
fn slot(mtu: usize) -> u32 {
    let needed = u32::try_from(mtu).unwrap_or(u32::MAX).saturating_add(ROOM);
    needed.clamp(SLOTS[0], SLOTS[1]).next_power_of_two()
}

impl PacketRing {
    /// Gives a socket a ring for frames of an interface with this MTU.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(socket: &OwnedFd, mtu: usize) -> Result<Self> {
        sys::set::<c_int>(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
        sys::set::<c_int>(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        // Super-frames, which are longer than slots, come by the socket.
        sys::set::<c_int>(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        let slot = slot(mtu);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK,
            tp_block_nr: MEMORY / BLOCK,
            tp_frame_size: slot,
            tp_frame_nr: MEMORY / slot,
        };
        sys::set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::of(socket, MEMORY as usize, 0)?;
        Ok(Self { memory, slot, next: 0, long: Vec::new() })
    }

    /// Whether the kernel has handed over nothing that was not read.
    pub(super) fn is_empty(&self) -> bool {
        self.handed().is_none()
    }

    /// How many frames the kernel has handed over that were not read.
    pub(super) fn waiting(&self) -> u64 {
        let slots = MEMORY / self.slot;
        let is_handed = |after: &u32| self.status((self.next + after) % slots).is_some();
        (0..slots).take_while(is_handed).count() as u64
    }

    /// Appends up to `most` frames that are there; how many were taken from the ring.
    pub(super) fn receive(
        &mut self,
        socket: &OwnedFd,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> usize {
        for count in 0..most {
            let Some(status) = self.handed() else { return count };
            self.read(socket, status, batch, pool, losses);
        }
        most
    }

    fn start(&self) -> u64 {
        self.start_of(self.next)
    }

    fn start_of(&self, slot: u32) -> u64 {
        u64::from(slot) * u64::from(self.slot)
    }

    /// The status of the slot that is next, if it is this process's turn.
    fn handed(&self) -> Option<u32> {
        self.status(self.next)
    }

    /// The status of a slot, if it is this process's turn.
    fn status(&self, slot: u32) -> Option<u32> {
        let status = self.memory.word(self.start_of(slot) + STATUS)?.load(Ordering::Acquire);
        (status & libc::TP_STATUS_USER != 0).then_some(status)
    }

    /// Gives the slot back to the kernel and goes on to the next.
    fn give_back(&mut self) {
        if let Some(status) = self.memory.word(self.start() + STATUS) {
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % (MEMORY / self.slot);
    }

    /// A frame that did not fit its slot, with its virtio-net header in front.
    #[cold]
    fn read_long(
        &mut self,
        socket: &OwnedFd,
        vnet: &mut [u8; VNET_HEADER],
        pool: &mut Pool,
    ) -> Option<(Packet, usize)> {
        self.long.resize(LONGEST, 0);
        let count = sys::receive_now(socket, &mut self.long).ok()?;
        let (header, frame) = self.long.get(..count)?.split_at_checked(VNET_HEADER)?;
        vnet.copy_from_slice(header);
        Some((pool.packet(frame), frame.len()))
    }

    fn read(
        &mut self,
        socket: &OwnedFd,
        status: u32,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) {
        let (start, mut header) = (self.start(), [0; HEADER]);
        if self.memory.read(start, &mut header).is_none() {
            losses.received(REFUSED, 1, 0);
            return self.give_back();
        }
        let word = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let (mut kept, length) = (word(KEPT) as usize, word(FRAME_LENGTH) as usize);
        let offset = u64::from(half(START));
        let vlan = tag(status, half(TAG_PROTOCOL), half(TAG));
        let mut vnet = [0; VNET_HEADER];
        let is_inside =
            offset >= (HEADER + VNET_HEADER) as u64 && offset + kept as u64 <= u64::from(self.slot);
        let mut packet = pool.alloc(if is_inside { kept } else { 0 });
        let read = is_inside.then(|| {
            self.memory.read(start + offset - VNET_HEADER as u64, &mut vnet)?;
            self.memory.read(start + offset, packet.data_mut())
        });
        if status & libc::TP_STATUS_COPY != 0
            && let Some((whole, count)) = self.read_long(socket, &mut vnet, pool)
        {
            pool.recycle(std::mem::replace(&mut packet, whole));
            kept = count;
        }
        let completed = if read.flatten().is_none() {
            Err((packet, REFUSED))
        } else if kept < length {
            Err((packet, TRUNCATED))
        } else if kept < ETHERNET {
            Err((packet, RUNT))
        } else {
            complete(packet, &VnetHeader::parse(&vnet), vlan, batch, pool)
        };
        if let Err((packet, why)) = completed {
            losses.received(why, 1, length as u64);
            pool.recycle(packet);
        }
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use elements::device::Event;
    use ir::Reason;

    use super::*;

    /// A frame in a slot: how much of it is there, how long it is, and where it begins.
    struct Entry {
        kept: u32,
        length: u32,
        start: u16,
        status: u32,
    }

    /// A ring whose first slots the kernel has handed over.
    fn ring(entries: &[Entry]) -> PacketRing {
        let mut memory = Mapping::anonymous(MEMORY as usize).unwrap();
        let slot = slot(1500);
        assert_eq!(slot, 2048);
        for (entry, at) in entries.iter().zip((0..).step_by(slot as usize)) {
            let mut put = |at: u64, word: u32| memory.write(at, &word.to_ne_bytes()).unwrap();
            put(at + STATUS, libc::TP_STATUS_USER | entry.status);
            put(at + FRAME_LENGTH as u64, entry.length);
            put(at + KEPT as u64, entry.kept);
            memory.write(at + START as u64, &entry.start.to_ne_bytes()).unwrap();
        }
        PacketRing { memory, slot, next: 0, long: Vec::new() }
    }

    /// What comes of it: how many packets, and how many are lost for which reason.
    fn received(entries: &[Entry]) -> (usize, Vec<(Reason, u64)>) {
        let mut ring = ring(entries);
        assert_eq!(ring.waiting(), entries.len() as u64);
        let (mut batch, mut pool, mut losses) = (Batch::new(), Pool::new(), Losses::default());
        let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).unwrap();
        let taken = ring.receive(&socket, 100, &mut batch, &mut pool, &mut losses);
        assert!(taken == entries.len() && ring.is_empty() && ring.waiting() == 0);
        assert_eq!(ring.next as usize, entries.len());
        for slot in 0..entries.len() as u64 {
            let status = ring.memory.word(slot * 2048 + STATUS).unwrap().load(Ordering::Relaxed);
            assert_eq!(status, libc::TP_STATUS_KERNEL, "the slot is given back");
        }
        let mut lost = Vec::new();
        while let Some(Event::Lost { reason, packets, .. }) = losses.next(false) {
            lost.push((reason, packets));
        }
        let count = batch.len();
        pool.recycle_all(&mut batch);
        assert_eq!(pool.outstanding(), 0);
        (count, lost)
    }

    #[test]
    fn frames_that_are_cut_short_or_make_no_sense_are_counted() {
        let whole = || Entry { kept: 60, length: 60, start: 80, status: 0 };
        assert_eq!(received(&[whole(), whole()]), (2, vec![]));
        let cut = Entry { length: 1500, ..whole() };
        assert_eq!(received(&[cut, whole()]), (1, vec![(TRUNCATED, 1)]));
        // The rest of it is not there, whatever the kernel says.
        let copied = Entry { length: 3000, status: libc::TP_STATUS_COPY, ..whole() };
        assert_eq!(received(&[copied, whole()]), (1, vec![(TRUNCATED, 1)]));
        let runt = Entry { kept: 13, length: 13, ..whole() };
        assert_eq!(received(&[runt, whole()]), (1, vec![(RUNT, 1)]));
        for astray in [
            Entry { start: 2000, ..whole() },
            Entry { start: 41, ..whole() },
            Entry { kept: u32::MAX, ..whole() },
        ] {
            assert_eq!(received(&[astray, whole()]), (1, vec![(REFUSED, 1)]));
        }
    }

    #[test]
    fn slots_hold_the_frames_of_an_interface() {
        assert_eq!([68, 1500, 1857, 9000, 65_535].map(slot), [2048, 2048, 4096, 16_384, 65_536]);
    }
}
