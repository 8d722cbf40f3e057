//! Packets made to order: concrete packets that take given paths through a program.
//!
//! The conditions of a path are solved by repair: a packet is changed until every condition holds,
//! one that does not at a time, the number that it asks for written through the term into the
//! packet. That finds no packet for some paths that have one; what it finds is confirmed.

mod paths;
mod random;
mod seeds;
mod solve;
mod values;

use ir::layout::{Bytes, Layout, Start};
use net::{HEADROOM, Header, Packet, PacketType, Pool, annotation};

pub(crate) use paths::paths;
pub(crate) use random::Random;
pub(crate) use seeds::seeds;
pub(crate) use solve::{Goal, solve};
pub(crate) use values::Values;

/// Time of the worker's clock at which packets come by default, in nanoseconds.
pub const START: u64 = 1_000_000_000_000;

/// A packet as it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its bytes.
    pub frame: Vec<u8>,
    /// Its annotations.
    pub annotations: [u8; annotation::SIZE],
    /// Where the MAC, network and transport headers lie, in bytes from the first byte on.
    pub marks: [Option<i32>; 3],
    /// Whom it was addressed to.
    pub packet_type: PacketType,
    /// When it was captured, in nanoseconds since the epoch.
    pub timestamp: u64,
    /// When it comes, in nanoseconds of the worker's clock.
    pub now: u64,
    /// Bytes that are free before its first.
    pub headroom: usize,
}

impl Witness {
    /// A packet of these bytes, as a device would give it.
    pub fn new(frame: Vec<u8>) -> Self {
        Self {
            frame,
            annotations: [0; annotation::SIZE],
            marks: [None; 3],
            packet_type: PacketType::Host,
            timestamp: 0,
            now: START,
            headroom: HEADROOM,
        }
    }

    /// Its headers: where they are marked, else what its bytes look like.
    pub(crate) fn layout(&self) -> Layout {
        let bytes = Bytes(&self.frame);
        match self.marks {
            [_, None, _] => Layout::of_bytes(&self.frame),
            [_, network, transport] => Layout::parse(&bytes, Start::of(&bytes, network, transport)),
        }
    }

    /// The packet.
    pub fn packet(&self, pool: &mut Pool) -> Packet {
        let length = self.frame.len();
        let mut packet = pool.alloc(length + self.headroom.saturating_sub(HEADROOM));
        match self.headroom.checked_sub(HEADROOM) {
            Some(more) => packet.pull(more),
            None => {
                packet.push(HEADROOM - self.headroom);
                packet.truncate(length);
            }
        }
        packet.data_mut().copy_from_slice(&self.frame);
        // What lies before is read when bytes are added to the front: it is not that of another packet.
        let headroom = packet.headroom();
        packet.push(headroom);
        packet.data_mut()[..headroom].fill(0);
        packet.pull(headroom);
        *packet.annotations_mut().bytes_mut() = self.annotations;
        packet.set_packet_type(self.packet_type);
        packet.set_timestamp(self.timestamp);
        for (header, mark) in
            [Header::Mac, Header::Network, Header::Transport].into_iter().zip(self.marks)
        {
            if let Some(at) = mark {
                packet.set_header_offset(header, at as isize);
            }
        }
        packet
    }

    /// A packet as it is now.
    pub fn of(packet: &Packet, now: u64) -> Self {
        let headers = [Header::Mac, Header::Network, Header::Transport];
        let mark = |h| packet.header_offset(h).and_then(|at| i32::try_from(at).ok());
        Self {
            frame: packet.data().to_vec(),
            annotations: *packet.annotations().bytes(),
            marks: headers.map(mark),
            packet_type: packet.packet_type(),
            timestamp: packet.timestamp(),
            now,
            headroom: packet.headroom(),
        }
    }
}
