//! AF_PACKET with a receive ring (TPACKET_V3): the kernel puts frames into blocks of shared
//! memory, and hands over a block when it is full or a millisecond old. No system call while
//! blocks come; frames that come alone wait up to that millisecond.

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use net::{Batch, Pool};

use super::af_packet::{Group, Sending, attach, count_overruns, receiving_socket, spread_by};
use super::messages::tag;
use super::offload::{VNET_HEADER, VnetHeader, complete};
use super::port::{Backlog, ETHERNET, Losses, MOST, Port, REFUSED, RUNT, TRUNCATED};
use super::sys::{self, Mapping};

const TPACKET_V3: c_int = 2;
/// A block holds the largest super-frame, and a ring of them what a socket would keep.
const BLOCK: u32 = 1 << 18;
const BLOCKS: u32 = 32;
/// Milliseconds after which a block is handed over as it is.
const RETIRE: u32 = 1;

/// In a block's header: whose it is, how many packets it holds, where the first is.
const BLOCK_STATUS: u64 = 8;
const BLOCK_PACKETS: u64 = 12;
const BLOCK_FIRST: u64 = 16;
/// Bytes of a `struct tpacket3_hdr` that are read.
const HEADER: usize = 38;

/// Frames from a ring, and out by sendmmsg(2).
pub(super) struct PacketRing {
    // The socket goes before the memory that it uses.
    receiving: OwnedFd,
    memory: Mapping,
    block: u32,
    /// Packets of the block that have not been read, and where the next is.
    left: u32,
    next: u64,
    backlog: Backlog,
    sending: Sending,
}

impl PacketRing {
    /// Opens a ring on the interface with this number.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(index: u32, group: Option<&Group>) -> Result<Self> {
        let receiving = receiving_socket()?;
        sys::set::<c_int>(&receiving, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V3)?;
        sys::set::<c_int>(&receiving, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        let frame = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK,
            tp_block_nr: BLOCKS,
            tp_frame_size: frame,
            tp_frame_nr: BLOCK / frame * BLOCKS,
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        sys::set(&receiving, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::of(&receiving, (BLOCK * BLOCKS) as usize, 0)?;
        attach(&receiving, index, group)?;
        let sending = Sending::open(index, MOST)?;
        let backlog = Backlog::default();
        Ok(Self { receiving, memory, block: 0, left: 0, next: 0, backlog, sending })
    }

    fn start(&self) -> u64 {
        u64::from(self.block) * u64::from(BLOCK)
    }

    fn number(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.memory.read(at, &mut bytes).map_or(0, |()| u32::from_ne_bytes(bytes))
    }

    /// Whether there is a packet to read in the block that is this process's turn.
    fn has_packet(&mut self) -> bool {
        if self.left > 0 {
            return true;
        }
        let start = self.start();
        let status = self.memory.word(start + BLOCK_STATUS);
        let handed = status.is_some_and(|s| s.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0);
        if handed {
            self.left = self.number(start + BLOCK_PACKETS);
            self.next = start + u64::from(self.number(start + BLOCK_FIRST));
            if self.left == 0 {
                self.give_back();
            }
        }
        self.left > 0
    }

    /// Gives the block back to the kernel and goes on to the next.
    fn give_back(&mut self) {
        self.left = 0;
        if let Some(status) = self.memory.word(self.start() + BLOCK_STATUS) {
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.block = (self.block + 1) % BLOCKS;
    }

    fn read(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) {
        let mut header = [0; HEADER];
        let inside = self.start()..self.start() + u64::from(BLOCK);
        if !inside.contains(&self.next) || self.memory.read(self.next, &mut header).is_none() {
            // Nothing in the block can be found after this.
            losses.received(REFUSED, self.left.into(), 0);
            return self.give_back();
        }
        let word = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let (kept, length) = (word(12) as usize, word(16) as usize);
        let data = self.next + u64::from(half(24));
        let mut vnet = [0; VNET_HEADER];
        let mut packet = pool.alloc(kept.min(BLOCK as usize));
        let read = self
            .memory
            .read(data.saturating_sub(VNET_HEADER as u64), &mut vnet)
            .and_then(|()| self.memory.read(data, packet.data_mut()));
        let vlan = tag(word(20), half(36), word(32) as u16);
        let completed = if read.is_none() {
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
        self.left -= 1;
        self.next += u64::from(word(0));
        if self.left == 0 {
            self.give_back();
        }
    }
}

impl Port for PacketRing {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        for _ in 0..most {
            if !self.has_packet() {
                break;
            }
            self.read(batch, pool, losses);
            self.backlog.received(1);
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        self.sending.send(batch, pool, losses)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.receiving.as_raw_fd()]
    }

    fn spread_by(&mut self, program: &OwnedFd) -> Result<()> {
        spread_by(&self.receiving, program)
    }

    fn mark(&mut self) {
        self.backlog.mark();
    }

    fn is_drained(&mut self) -> bool {
        !self.has_packet() && self.backlog.is_over(&self.receiving)
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        count_overruns(&self.receiving, losses);
    }
}

#[cfg(test)]
mod tests {
    use elements::device::Event;
    use ir::Reason;

    use super::*;

    /// A packet of a block: how far it is to the next, how many bytes were kept of how many.
    struct Entry {
        next: u32,
        kept: u32,
        length: u32,
        data: u16,
    }

    /// A ring whose first block the kernel has handed over with these entries, each where the one
    /// before says.
    fn ring(first: u32, entries: &[Entry]) -> PacketRing {
        let memory = Mapping::anonymous((BLOCK * BLOCKS) as usize).unwrap();
        let put = |at: u64, word: u32| memory.write(at, &word.to_ne_bytes()).unwrap();
        put(BLOCK_STATUS, libc::TP_STATUS_USER);
        put(BLOCK_PACKETS, entries.len() as u32);
        put(BLOCK_FIRST, first);
        let mut at = u64::from(first);
        for entry in entries {
            put(at, entry.next);
            put(at + 12, entry.kept);
            put(at + 16, entry.length);
            memory.write(at + 24, &entry.data.to_ne_bytes()).unwrap();
            at += u64::from(entry.next);
        }
        let socket = || sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).unwrap();
        PacketRing {
            receiving: socket(),
            memory,
            block: 0,
            left: 0,
            next: 0,
            backlog: Backlog::default(),
            sending: Sending::of(socket()),
        }
    }

    /// What comes of it: how many packets, and how many are lost for which reason.
    fn received(mut ring: PacketRing) -> (usize, Vec<(Reason, u64)>) {
        let (mut batch, mut pool, mut losses) = (Batch::new(), Pool::new(), Losses::default());
        ring.receive(100, &mut batch, &mut pool, &mut losses).unwrap();
        let status = ring.memory.word(BLOCK_STATUS).unwrap().load(Ordering::Relaxed);
        assert_eq!((status, ring.block), (libc::TP_STATUS_KERNEL, 1), "the block is given back");
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
    fn entries_that_are_cut_short_or_make_no_sense_are_counted() {
        let whole = || Entry { next: 256, kept: 60, length: 60, data: 80 };
        assert_eq!(received(ring(48, &[whole(), whole()])), (2, vec![]));
        let cut = Entry { length: 1500, ..whole() };
        assert_eq!(received(ring(48, &[cut, whole()])), (1, vec![(TRUNCATED, 1)]));
        let runt = Entry { kept: 13, length: 13, ..whole() };
        assert_eq!(received(ring(48, &[runt, whole()])), (1, vec![(RUNT, 1)]));
        // Nothing is found behind an entry that leads out of its block.
        let astray = Entry { next: BLOCK, ..whole() };
        assert_eq!(received(ring(48, &[astray, whole(), whole()])), (1, vec![(REFUSED, 2)]));
        assert_eq!(received(ring(u32::MAX, &[])), (0, vec![]));
    }
}
