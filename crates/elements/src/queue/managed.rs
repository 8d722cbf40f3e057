//! A queue whose packets remember when they came, and are marked or dropped before it is full.

use std::collections::VecDeque;

use ir::Reason;
use net::Packet;
use net::wire::{Ipv4, Ipv6};

use crate::configure::Arguments;
use crate::element_state::ElementState;

/// The queue is full.
pub(super) const FULL: Reason = Reason("queue-full");
/// Queue management dropped the packet, as congestion builds up.
pub(super) const EARLY: Reason = Reason("congestion");
/// The packet was in a queue when the handler `reset` was written.
pub(super) const RESET: Reason = Reason("queue-reset");

/// Packets for which room is made in advance.
const INITIAL_ROOM: usize = 1 << 12;

/// Packets in their order, each with the time that it came at.
pub(super) struct Managed {
    packets: VecDeque<(Packet, u64)>,
    pub capacity: usize,
    /// Of all packets.
    pub bytes: usize,
    /// Whether packets that say that they can be marked are marked and not dropped.
    pub ecn: bool,
    pub highwater: usize,
    /// Packets that the queue had no room for.
    pub full: u64,
    /// Packets that queue management dropped, and marked.
    pub drops: u64,
    pub marks: u64,
}

impl Managed {
    /// Reads CAPACITY, the next argument, and ECN.
    pub(super) fn of(arguments: &mut Arguments<'_, '_>) -> Self {
        let capacity = arguments.optional("CAPACITY").unwrap_or(1000usize);
        let ecn = arguments.keyword("ECN").unwrap_or(true);
        arguments
            .claim("CAPACITY", (capacity as u64).saturating_mul(size_of::<(Packet, u64)>() as u64));
        Self::new(capacity, ecn)
    }

    pub(super) fn new(capacity: usize, ecn: bool) -> Self {
        let packets = VecDeque::with_capacity(capacity.min(INITIAL_ROOM));
        Self { packets, capacity, bytes: 0, ecn, highwater: 0, full: 0, drops: 0, marks: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().map(|(packet, _)| packet)
    }

    /// Takes a packet in, if there is room.
    ///
    /// # Errors
    /// The packet.
    pub(super) fn push(&mut self, packet: Packet, now: u64) -> Result<(), Packet> {
        if self.packets.len() >= self.capacity {
            self.full += 1;
            return Err(packet);
        }
        self.bytes += packet.len();
        self.packets.push_back((packet, now));
        self.highwater = self.highwater.max(self.packets.len());
        Ok(())
    }

    /// The packet that came first, and when.
    pub(super) fn pop(&mut self) -> Option<(Packet, u64)> {
        let (packet, came) = self.packets.pop_front()?;
        self.bytes -= packet.len();
        Some((packet, came))
    }

    /// What the capacity has no room for any more.
    pub(super) fn excess(&mut self) -> Option<Packet> {
        if self.packets.len() <= self.capacity {
            return None;
        }
        let (packet, _) = self.packets.pop_back()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    /// Marks a packet as having met congestion, if it and the configuration allow it (RFC 3168); if not, it is to be
    /// dropped.
    pub(super) fn mark(&mut self, packet: &mut Packet) -> bool {
        let marked = self.ecn && mark_congestion(packet);
        *(if marked { &mut self.marks } else { &mut self.drops }) += 1;
        marked
    }

    /// Hands packets over, and with all of them the counts.
    pub(super) fn export(&mut self, to: &mut ElementState) {
        if to.is_copy() {
            return;
        }
        let of_group = |packet: &Packet| to.group().is_none_or(|group| packet.group() == group);
        let all = std::mem::take(&mut self.packets);
        let (given, kept): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|(packet, _)| of_group(packet));
        self.packets = kept;
        self.bytes = self.packets.iter().map(|(packet, _)| packet.len()).sum();
        if to.is_all() {
            to.numbers = vec![self.full, self.drops, self.marks, self.highwater as u64];
        }
        // When each came, behind the counts.
        to.numbers.extend(given.iter().map(|(_, came)| came));
        to.packets = given.into_iter().map(|(packet, _)| packet).collect();
    }

    /// Takes what another handed over.
    pub(super) fn import(&mut self, from: &mut ElementState, now: u64) {
        let counts = from.numbers.len().saturating_sub(from.packets.len());
        let (counts, came) = from.numbers.split_at(counts);
        if let [full, drops, marks, highwater] = *counts {
            (self.full, self.drops, self.marks) = (full, drops, marks);
            self.highwater = highwater as usize;
        }
        let came = came.iter().copied().chain(std::iter::repeat(now));
        for (packet, came) in from.packets.drain(..).zip(came) {
            self.bytes += packet.len();
            self.packets.push_back((packet, came));
        }
        while let Some(packet) = self.excess() {
            from.refused.push((packet, FULL));
        }
        self.highwater = self.highwater.max(self.packets.len());
    }

    /// The handlers that all such queues have.
    pub(super) fn read(&self, handler: &str) -> Option<String> {
        Some(match handler {
            "length" => self.len().to_string(),
            "byte_length" => self.bytes.to_string(),
            "highwater_length" => self.highwater.to_string(),
            "capacity" => self.capacity.to_string(),
            "full" => self.full.to_string(),
            "drops" => self.drops.to_string(),
            "marks" => self.marks.to_string(),
            _ => return None,
        })
    }

    pub(super) fn reset_counts(&mut self) {
        (self.full, self.drops, self.marks, self.highwater) = (0, 0, 0, self.len());
    }
}

/// Sets "congestion experienced" in an IP packet whose header is marked and says that it can be marked.
fn mark_congestion(packet: &mut Packet) -> bool {
    const CONGESTED: u8 = 3;
    let Some(header) = packet.network_mut() else { return false };
    match header.first().map(|byte| byte >> 4) {
        Some(4) => match Ipv4::new(header) {
            Some(mut ip) if ip.ecn() != 0 => {
                ip.replace_tos(ip.tos() | CONGESTED);
                true
            }
            _ => false,
        },
        Some(6) => match Ipv6::new(header) {
            Some(mut ip) if ip.ecn() != 0 => {
                ip.set_traffic_class(ip.traffic_class() | CONGESTED);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
