//! Packet buffers and the pool that recycles them.
//!
//! A [`Packet`] owns a frame with room before it (headroom) and after it (tailroom), so that
//! headers are pushed and popped without copying. Header positions are offsets into the buffer,
//! hence they survive pushes and pops. All packets come from a [`Pool`] and go back to it: in
//! steady state none costs an allocation. Their bytes lie in the pool's memory, or in that of a
//! device which lends it.

use std::ptr::NonNull;

use crate::annotation::Annotations;
use crate::batch::Batch;
use crate::buffer::{Buffer, Loan};

/// Bytes before the data of a new packet: enough for several encapsulations.
pub const HEADROOM: usize = 128;
/// Size of the buffers that hold ordinary frames.
pub const BUFFER_SIZE: usize = 2048;

/// A header's offset is not known.
const UNSET: u32 = u32::MAX;

/// Which hosts a frame was addressed to (Linux's and Click's packet type annotation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host, or not known.
    #[default]
    Host = 0,
    /// To everybody.
    Broadcast = 1,
    /// To a group.
    Multicast = 2,
    /// To somebody else.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
}

impl PacketType {
    /// The type with this number; numbers beyond the last are read as [`PacketType::Host`].
    pub fn from_u8(value: u8) -> Self {
        match value {
            1 => Self::Broadcast,
            2 => Self::Multicast,
            3 => Self::OtherHost,
            4 => Self::Outgoing,
            _ => Self::Host,
        }
    }
}

/// The headers whose position a packet remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Header {
    /// Link layer.
    Mac,
    /// Network layer: IPv4, IPv6, ARP.
    Network,
    /// Transport layer: TCP, UDP, ICMP.
    Transport,
}

#[derive(Debug)]
struct Inner {
    /// Offset of the first data byte in `buffer`.
    start: u32,
    /// Offset one past the last data byte.
    end: u32,
    /// Offsets of the headers in `buffer`, by [`Header`].
    headers: [u32; 3],
    packet_type: PacketType,
    group: u16,
    trace_id: u16,
    timestamp: u64,
    annotations: Annotations,
    buffer: Buffer,
    carried: [u8; CARRIED],
}

impl Inner {
    /// Sees to it that there is memory for so many bytes, and not far more: one jumbo frame must
    /// not pin memory for ever.
    #[inline]
    fn fit(&mut self, capacity: usize) {
        let length = self.buffer.len();
        if length < capacity || (length > 2 * BUFFER_SIZE && capacity <= BUFFER_SIZE) {
            self.buffer = Buffer::new(capacity.max(BUFFER_SIZE));
        }
    }
}

/// Size in bytes of what a part of a program can carry to the part that goes on.
pub const CARRIED: usize = 32;

/// A frame, its header positions and its annotations.
#[derive(Debug)]
pub struct Packet(Box<Inner>);

impl Packet {
    fn with(buffer: Buffer) -> Self {
        Self(Box::new(Inner {
            start: 0,
            end: 0,
            headers: [UNSET; 3],
            packet_type: PacketType::Host,
            group: 0,
            trace_id: 0,
            timestamp: 0,
            annotations: Annotations::default(),
            buffer,
            carried: [0; CARRIED],
        }))
    }

    #[inline]
    fn reset(&mut self, start: usize, len: usize) {
        let p = &mut *self.0;
        p.start = start as u32;
        p.end = (start + len) as u32;
        p.headers = [UNSET; 3];
        p.packet_type = PacketType::Host;
        p.group = 0;
        p.trace_id = 0;
        p.timestamp = 0;
        p.annotations = Annotations::default();
    }

    /// A number that no other packet has that lives at the same time. A packet keeps it until it is
    /// given back to its pool, whatever happens to its bytes.
    pub fn identity(&self) -> usize {
        std::ptr::from_ref(&*self.0).addr()
    }

    /// Whether somebody lends it the memory that its bytes lie in.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.0.buffer.is_lent()
    }

    /// The loan that its bytes lie in, see [`Buffer::loan`].
    #[inline]
    pub fn loan<L: Loan>(&self) -> Option<NonNull<()>> {
        self.0.buffer.loan::<L>()
    }

    /// The frame's bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.0.buffer[self.0.start as usize..self.0.end as usize]
    }

    /// The frame's bytes, to change.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let p = &mut *self.0;
        &mut p.buffer[p.start as usize..p.end as usize]
    }

    /// `N` bytes of the packet's memory from `offset` bytes behind the first data byte on, as
    /// [`Packet::window_mut`].
    #[inline]
    pub fn window<const N: usize>(&self, offset: i32) -> Option<&[u8; N]> {
        let p = &*self.0;
        let at = p.start.wrapping_add_signed(offset) as usize;
        p.buffer.get(at..at + N)?.first_chunk()
    }

    /// `N` bytes of the packet's memory from `offset` bytes behind the first data byte on, whether
    /// they are data or lie before or behind it; `None` where there is no memory.
    #[inline]
    pub fn window_mut<const N: usize>(&mut self, offset: i32) -> Option<&mut [u8; N]> {
        let p = &mut *self.0;
        // One that lies before the buffer wraps to one that lies behind it.
        let at = p.start.wrapping_add_signed(offset) as usize;
        p.buffer.get_mut(at..at + N)?.first_chunk_mut()
    }

    /// Length of the data in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        (self.0.end - self.0.start) as usize
    }

    /// Bytes of memory that it takes, with all room before and after its data.
    pub fn memory(&self) -> usize {
        size_of::<Inner>() + self.0.buffer.len()
    }

    /// Bytes available before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.0.start as usize
    }

    /// Bytes available after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.0.buffer.len() - self.0.end as usize
    }

    /// Removes up to `n` bytes from the front; more than there are leaves an empty packet.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        self.0.start = (self.0.start as usize).saturating_add(n).min(self.0.end as usize) as u32;
    }

    /// Adds `n` bytes in front. Their content is what the buffer last held there, so that
    /// stripping a header and unstripping it brings it back.
    #[inline]
    pub fn push(&mut self, n: usize) {
        if n > self.headroom() {
            self.make_room(n + HEADROOM, 0);
        }
        self.0.start -= n as u32;
    }

    /// Adds these bytes in front.
    #[inline]
    pub fn prepend<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.push(N);
        if let Some(front) = self.window_mut(0) {
            *front = *bytes;
        }
    }

    /// Removes up to `n` bytes from the end.
    #[inline]
    pub fn take(&mut self, n: usize) {
        self.0.end = (self.0.end as usize).saturating_sub(n).max(self.0.start as usize) as u32;
    }

    /// Cuts the data to at most `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.0.end = self.0.start + len as u32;
        }
    }

    /// Moves the start of the data by `by` bytes, as [`Packet::pull`] if positive and
    /// [`Packet::push`] if negative, and then cuts it to at most `len` bytes.
    #[inline]
    pub fn reframe(&mut self, by: i32, len: u32) {
        let p = &mut *self.0;
        // What lies before the buffer wraps to what lies behind it.
        let start = p.start.wrapping_add_signed(by);
        if start <= p.end {
            p.start = start;
        } else if by < 0 {
            self.push(by.unsigned_abs() as usize);
        } else {
            self.pull(by as usize);
        }
        let p = &mut *self.0;
        p.end = p.end.min(p.start.saturating_add(len));
    }

    /// Adds `n` zero bytes at the end.
    pub fn put(&mut self, n: usize) {
        if n > self.tailroom() {
            self.make_room(0, n);
        }
        let p = &mut *self.0;
        p.buffer[p.end as usize..p.end as usize + n].fill(0);
        p.end += n as u32;
    }

    /// Moves into a larger buffer with at least `front` and `back` spare bytes; the old data,
    /// what lies before it, and the header positions move along.
    #[cold]
    fn make_room(&mut self, front: usize, back: usize) {
        let p = &mut *self.0;
        let shift = front.saturating_sub(p.start as usize);
        let capacity = shift + p.buffer.len() + back;
        let mut buffer = Buffer::new(capacity);
        buffer[shift..shift + p.buffer.len()].copy_from_slice(&p.buffer);
        p.buffer = buffer;
        p.start += shift as u32;
        p.end += shift as u32;
        for h in p.headers.iter_mut().filter(|h| **h != UNSET) {
            *h += shift as u32;
        }
    }

    /// Moves the data by `by` bytes inside the buffer (towards its end if positive), header
    /// positions along, growing the buffer where it must.
    pub fn shift_data(&mut self, by: isize) {
        if by < 0 && by.unsigned_abs() > self.headroom() {
            self.make_room(by.unsigned_abs() + HEADROOM, 0);
        } else if by > 0 && by as usize > self.tailroom() {
            self.make_room(0, by as usize);
        }
        let p = &mut *self.0;
        let to = p.start as isize + by;
        p.buffer.copy_within(p.start as usize..p.end as usize, to as usize);
        let move_by = |at: &mut u32| *at = (*at as isize + by).max(0) as u32;
        move_by(&mut p.start);
        move_by(&mut p.end);
        p.headers.iter_mut().filter(|h| **h != UNSET).for_each(move_by);
    }

    /// Where a header starts, counted from the first data byte; negative when it lies before
    /// the data (it was stripped). `None` when it was never set.
    #[inline]
    pub fn header_offset(&self, header: Header) -> Option<isize> {
        let at = self.0.headers[header as usize];
        (at != UNSET).then(|| at as isize - self.0.start as isize)
    }

    /// Sets where a header starts, counted from the first data byte. A position before the
    /// buffer clears it.
    #[inline]
    pub fn set_header_offset(&mut self, header: Header, offset: isize) {
        let at = self.0.start as isize + offset;
        self.0.headers[header as usize] = u32::try_from(at).unwrap_or(UNSET);
    }

    /// Sets where all headers start, as [`Packet::set_header_offset`].
    #[inline]
    pub fn set_header_offsets(&mut self, offsets: [i32; 3]) {
        let p = &mut *self.0;
        let [a, b, c] = offsets;
        if p.start as i32 + a.min(b).min(c) >= 0 {
            p.headers = offsets.map(|offset| p.start.wrapping_add_signed(offset));
            return;
        }
        let headers = [Header::Mac, Header::Network, Header::Transport];
        for (header, offset) in headers.into_iter().zip(offsets) {
            self.set_header_offset(header, offset as isize);
        }
    }

    /// Forgets where a header starts.
    #[inline]
    pub fn clear_header(&mut self, header: Header) {
        self.0.headers[header as usize] = UNSET;
    }

    /// The bytes from a header to the end of the data, if the header is set and starts there or
    /// before; a stripped header is still readable.
    #[inline]
    pub fn header(&self, header: Header) -> Option<&[u8]> {
        let at = self.0.headers[header as usize] as usize;
        self.0.buffer.get(at..self.0.end as usize)
    }

    /// Like [`Packet::header`], to change.
    #[inline]
    pub fn header_mut(&mut self, header: Header) -> Option<&mut [u8]> {
        let p = &mut *self.0;
        let at = p.headers[header as usize] as usize;
        p.buffer.get_mut(at..p.end as usize)
    }

    /// Bytes from a header to the end of the data; 0 if the header is not set or starts behind it.
    #[inline]
    pub fn header_len(&self, header: Header) -> usize {
        self.0.end.saturating_sub(self.0.headers[header as usize]) as usize
    }

    /// The first `N` bytes of a header, if the header is set and so many are there.
    #[inline]
    pub fn header_chunk<const N: usize>(&self, header: Header) -> Option<&[u8; N]> {
        let p = &*self.0;
        let at = p.headers[header as usize] as usize;
        let bytes = p.buffer.get(at..at + N)?;
        if at + N <= p.end as usize { bytes.first_chunk() } else { None }
    }

    /// Like [`Packet::header_chunk`], to change.
    #[inline]
    pub fn header_chunk_mut<const N: usize>(&mut self, header: Header) -> Option<&mut [u8; N]> {
        let p = &mut *self.0;
        let at = p.headers[header as usize] as usize;
        let bytes = p.buffer.get_mut(at..at + N)?;
        if at + N <= p.end as usize { bytes.first_chunk_mut() } else { None }
    }

    /// From the network header to the end.
    #[inline]
    pub fn network(&self) -> Option<&[u8]> {
        self.header(Header::Network)
    }

    /// From the network header to the end, to change.
    #[inline]
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        self.header_mut(Header::Network)
    }

    /// From the transport header to the end.
    #[inline]
    pub fn transport(&self) -> Option<&[u8]> {
        self.header(Header::Transport)
    }

    /// From the transport header to the end, to change.
    #[inline]
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        self.header_mut(Header::Transport)
    }

    /// The network header and the bytes after the transport header's start, both to change.
    /// `None` unless both are set and the transport header follows the network header.
    #[inline]
    pub fn network_and_transport_mut(&mut self) -> Option<(&mut [u8], &mut [u8])> {
        let p = &mut *self.0;
        let (n, t) = (p.headers[1] as usize, p.headers[2] as usize);
        let both = p.buffer.get_mut(n..p.end as usize)?;
        both.split_at_mut_checked(t.checked_sub(n)?)
    }

    /// Marks data offset `offset` as an IPv4 header of `header_len` bytes, and the transport
    /// header right behind it.
    #[inline]
    pub fn set_ip_header(&mut self, offset: usize, header_len: usize) {
        let p = &mut *self.0;
        let at = |offset| p.start.saturating_add(u32::try_from(offset).unwrap_or(UNSET));
        let (network, transport) = (at(offset), at(offset + header_len));
        p.headers[Header::Network as usize] = network;
        p.headers[Header::Transport as usize] = transport;
    }

    /// The group of traffic classes that a tag said it is of when it came in, from 1 on; 0 if it had
    /// no tag.
    #[inline]
    pub fn group(&self) -> u16 {
        self.0.group
    }

    /// Sets the group of traffic classes.
    #[inline]
    pub fn set_group(&mut self, group: u16) {
        self.0.group = group;
    }

    /// The number by which whoever follows it finds it again, see [`Pool::fresh_trace_id`]; 0 if nobody
    /// does. Copies carry it, too.
    #[inline]
    pub fn trace_id(&self) -> u16 {
        self.0.trace_id
    }

    /// Sets the number by which it is found again.
    #[inline]
    pub fn set_trace_id(&mut self, trace_id: u16) {
        self.0.trace_id = trace_id;
    }

    /// The annotations.
    #[inline]
    pub fn annotations(&self) -> &Annotations {
        &self.0.annotations
    }

    /// The annotations, to change.
    #[inline]
    pub fn annotations_mut(&mut self) -> &mut Annotations {
        &mut self.0.annotations
    }

    /// What a part of a program hands to the part that goes on: unspecified where none did.
    #[inline]
    pub fn carried(&self) -> &[u8; CARRIED] {
        &self.0.carried
    }

    /// The same, to change.
    #[inline]
    pub fn carried_mut(&mut self) -> &mut [u8; CARRIED] {
        &mut self.0.carried
    }

    /// Whom the frame was addressed to.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        self.0.packet_type
    }

    /// Says whom the frame was addressed to.
    #[inline]
    pub fn set_packet_type(&mut self, packet_type: PacketType) {
        self.0.packet_type = packet_type;
    }

    /// Nanoseconds since the epoch at which the frame was captured; 0 if never stamped.
    #[inline]
    pub fn timestamp(&self) -> u64 {
        self.0.timestamp
    }

    /// Stamps the frame, in nanoseconds since the epoch.
    #[inline]
    pub fn set_timestamp(&mut self, nanoseconds: u64) {
        self.0.timestamp = nanoseconds;
    }
}

/// Where packets come from and go back to. One per worker; never shared.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<Packet>,
    /// Packets without memory of their own, for bytes that somebody lends.
    bare: Vec<Packet>,
    created: usize,
    /// Whether there ever was a packet whose bytes somebody lent.
    lends: bool,
    /// The last trace id that was allocated.
    last_trace_id: u16,
}

impl Pool {
    /// An empty pool; it grows when a packet is asked for and none is free.
    pub fn new() -> Self {
        Self::default()
    }

    /// A pool with `count` packets ready.
    pub fn with_packets(count: usize) -> Self {
        let free = (0..count).map(|_| Packet::with(Buffer::new(BUFFER_SIZE))).collect();
        Self { free, created: count, ..Self::default() }
    }

    /// Packets that are its own, free or in use.
    pub fn created(&self) -> usize {
        self.created
    }

    /// Packets that are in use: taken and not given back.
    pub fn outstanding(&self) -> usize {
        self.created - self.free.len() - self.bare.len()
    }

    #[inline]
    fn take(&mut self, capacity: usize) -> Packet {
        let mut packet = self.free.pop().or_else(|| self.bare.pop()).unwrap_or_else(|| {
            self.created += 1;
            Packet::with(Buffer::new(BUFFER_SIZE))
        });
        packet.0.fit(capacity);
        packet
    }

    /// A packet of `len` bytes of unspecified content (zero or what an earlier packet left),
    /// with [`HEADROOM`] before it.
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Packet {
        let mut packet = self.take(HEADROOM + len);
        packet.reset(HEADROOM, len);
        packet
    }

    /// A packet with these bytes.
    #[inline]
    pub fn packet(&mut self, bytes: &[u8]) -> Packet {
        let mut packet = self.alloc(bytes.len());
        packet.data_mut().copy_from_slice(bytes);
        packet
    }

    /// Appends packets with these frames to a batch.
    #[inline]
    pub fn packets<'a>(
        &mut self,
        batch: &mut Batch,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        while self.free.len() < frames.len() {
            self.created += 1;
            self.free.push(Packet::with(Buffer::new(BUFFER_SIZE)));
        }
        let (first, rest) = (batch.len(), self.free.len() - frames.len());
        batch.extend(self.free.drain(rest..));
        for (packet, frame) in batch.as_mut_slice()[first..].iter_mut().zip(frames) {
            let p = &mut *packet.0;
            p.fit(HEADROOM + frame.len());
            p.buffer[HEADROOM..HEADROOM + frame.len()].copy_from_slice(frame);
            packet.reset(HEADROOM, frame.len());
        }
    }

    /// A copy: bytes (stripped ones before the data too), header positions and annotations.
    pub fn copy(&mut self, packet: &Packet) -> Packet {
        let from = &*packet.0;
        let mut copy = self.take(from.buffer.len().max(from.end as usize));
        let to = &mut *copy.0;
        let used = 0..from.end as usize;
        to.buffer[used.clone()].copy_from_slice(&from.buffer[used]);
        (to.start, to.end, to.headers) = (from.start, from.end, from.headers);
        (to.packet_type, to.group, to.trace_id) = (from.packet_type, from.group, from.trace_id);
        to.timestamp = from.timestamp;
        to.annotations = from.annotations;
        copy
    }

    /// A packet without memory, to be let go to a pool that lends.
    #[inline]
    pub fn bare(&mut self) -> Packet {
        self.bare.pop().unwrap_or_else(|| {
            self.created += 1;
            Packet::with(Buffer::EMPTY)
        })
    }

    /// Appends packets to a batch whose bytes lie in buffers that somebody lends: of each so many from some byte on, as
    /// `(buffer, start, length)`.
    #[inline]
    pub fn lend(
        &mut self,
        batch: &mut Batch,
        lent: impl ExactSizeIterator<Item = (Buffer, usize, usize)>,
    ) {
        self.lends = true;
        while self.bare.len() < lent.len() {
            self.created += 1;
            self.bare.push(Packet::with(Buffer::EMPTY));
        }
        let (first, rest) = (batch.len(), self.bare.len() - lent.len());
        batch.extend(self.bare.drain(rest..));
        for (packet, (buffer, start, len)) in batch.as_mut_slice()[first..].iter_mut().zip(lent) {
            debug_assert!(start + len <= buffer.len());
            packet.0.buffer.replace(buffer);
            packet.reset(start, len);
        }
    }

    /// Takes the first packets of a batch back. Loans of this kind are not given back: who calls this has got them
    /// already by [`Packet::loan`], or else they are lost.
    #[inline]
    pub fn recycle_sent<L: Loan>(&mut self, count: usize, batch: &mut Batch) {
        let mut all_lent = true;
        for packet in &mut batch.as_mut_slice()[..count] {
            match packet.loan::<L>().is_some() {
                true => packet.0.buffer.replace(Buffer::EMPTY),
                false => all_lent = false,
            }
        }
        match all_lent {
            true if count == batch.len() => self.bare.append(batch.packets()),
            true => self.bare.extend(batch.drain_first(count)),
            false => batch.drain_first(count).for_each(|packet| self.recycle(packet)),
        }
    }

    /// A trace id that no packet was given for the longest time.
    pub fn fresh_trace_id(&mut self) -> u16 {
        self.last_trace_id = self.last_trace_id.checked_add(1).unwrap_or(1);
        self.last_trace_id
    }

    /// Whether a packet ([`Packet::identity`]) is one of up to `most` that came back last.
    pub fn came_back(&self, identity: usize, most: usize) -> bool {
        let last = |packets: &[Packet]| {
            packets.iter().rev().take(most).any(|packet| packet.identity() == identity)
        };
        last(&self.free) || last(&self.bare)
    }

    /// Takes over a packet that another pool let go.
    pub fn adopt(&mut self, packet: &Packet) {
        self.created += 1;
        self.lends |= packet.is_lent();
    }

    /// Lets a packet go to another pool, which must adopt it.
    pub fn let_go(&mut self) {
        self.created -= 1;
    }

    /// Takes a packet back.
    #[inline]
    pub fn recycle(&mut self, mut packet: Packet) {
        debug_assert!(self.outstanding() > 0, "a packet of another pool");
        if self.lends && !packet.0.buffer.is_own() {
            packet.0.buffer = Buffer::EMPTY;
            self.bare.push(packet);
        } else {
            self.free.push(packet);
        }
    }

    /// Takes all packets of a batch back.
    #[inline]
    pub fn recycle_all(&mut self, batch: &mut Batch) {
        debug_assert!(batch.len() <= self.outstanding(), "packets of another pool");
        if self.lends {
            batch.drain().for_each(|packet| self.recycle(packet));
        } else {
            self.free.append(batch.packets());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripped_bytes_come_back() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"abcdef");
        p.pull(4);
        assert_eq!(p.data(), b"ef");
        p.push(4);
        assert_eq!(p.data(), b"abcdef");
        p.pull(9);
        assert_eq!(p.data(), b"");
    }

    #[test]
    fn headers_stay_where_they_are_when_data_moves() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"0123456789");
        p.set_header_offset(Header::Network, 4);
        p.pull(6);
        assert_eq!(p.header_offset(Header::Network), Some(-2));
        assert_eq!(p.network(), Some(&b"456789"[..]));
        p.push(6 + HEADROOM + 1);
        assert_eq!(p.network(), Some(&b"456789"[..]));
        assert_eq!(p.len(), 10 + HEADROOM + 1);
        p.shift_data(3);
        assert_eq!(p.network(), Some(&b"456789"[..]));
        assert_eq!(p.transport(), None);
    }

    #[test]
    fn a_copy_is_independent() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"abc");
        p.pull(1);
        let mut q = pool.copy(&p);
        q.data_mut()[0] = b'x';
        q.push(1);
        assert_eq!(q.data(), b"axc");
        assert_eq!(p.data(), b"bc");
    }

    #[test]
    fn recycled_packets_are_reused_and_clean() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"abc");
        p.set_timestamp(5);
        p.annotations_mut().set_u8(3, 9);
        p.set_trace_id(7);
        let identity = p.identity();
        assert!(!pool.came_back(identity, 1));
        pool.recycle(p);
        assert_eq!((pool.outstanding(), pool.came_back(identity, 1)), (0, true));
        let q = pool.packet(b"d");
        assert_eq!((q.timestamp(), q.annotations().u8(3), q.data()), (0, 0, &b"d"[..]));
        assert_eq!((q.trace_id(), pool.came_back(identity, 1)), (0, false));
        assert_eq!(pool.outstanding(), 1);
    }

    #[test]
    fn parts_of_headers_are_given_only_where_all_of_them_is_data() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"0123456789");
        assert_eq!(
            (p.header_len(Header::Network), p.header_chunk::<1>(Header::Network)),
            (0, None)
        );
        p.set_header_offset(Header::Network, 4);
        p.pull(6);
        assert_eq!(p.header_len(Header::Network), 6);
        assert_eq!(p.header_chunk(Header::Network), Some(b"456789"));
        assert_eq!(p.header_chunk::<7>(Header::Network), None);
        p.header_chunk_mut::<2>(Header::Network).unwrap()[1] = b'x';
        assert_eq!(p.network(), Some(&b"4x6789"[..]));
        p.set_ip_header(4, 20);
        assert_eq!(p.header_len(Header::Transport), 0);
        assert_eq!(p.header_chunk::<1>(Header::Transport), None);
        assert_eq!(p.header_chunk_mut::<1>(Header::Transport), None);
        p.set_ip_header(usize::MAX / 2, 20);
        assert_eq!((p.network(), p.transport()), (None, None));
    }

    #[test]
    fn bytes_are_added_in_front() {
        let mut pool = Pool::new();
        let mut p = pool.packet(b"cd");
        p.prepend(b"ab");
        assert_eq!(p.data(), b"abcd");
        p.prepend(&[b'x'; HEADROOM]);
        assert_eq!(p.len(), HEADROOM + 4);
        assert_eq!(p.data()[HEADROOM - 1..], *b"xabcd");
    }

    #[test]
    fn many_packets_are_as_one_by_one() {
        let mut pool = Pool::with_packets(2);
        let jumbo = vec![7; 5000];
        for _ in 0..3 {
            let mut batch = Batch::new();
            batch.push(pool.packet(b"first"));
            pool.packets(&mut batch, [&b"abc"[..], b"", &jumbo].into_iter());
            let lengths: Vec<usize> = batch.iter().map(Packet::len).collect();
            assert_eq!(lengths, [5, 3, 0, 5000]);
            assert_eq!((batch.as_slice()[1].data(), pool.outstanding()), (&b"abc"[..], 4));
            for packet in batch.iter_mut() {
                assert_eq!((packet.timestamp(), packet.network()), (0, None));
                packet.set_timestamp(1);
                packet.set_header_offset(Header::Network, 0);
            }
            pool.recycle_all(&mut batch);
        }
        assert_eq!((pool.created(), pool.outstanding()), (4, 0));
    }

    #[test]
    fn jumbo_frames_fit_and_tails_grow() {
        let mut pool = Pool::new();
        let mut p = pool.packet(&vec![7; 70_000]);
        p.put(10);
        assert_eq!((p.len(), p.data()[70_009]), (70_010, 0));
        p.take(20);
        assert_eq!(p.len(), 69_990);
        pool.recycle(p);
        assert_eq!(pool.outstanding(), 0);
    }
}
