//! A packet as it was at a moment.

use net::{Annotations, Header, Packet, PacketType};

/// All that can be seen of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its bytes, those of headers that were stripped in front.
    bytes: Vec<u8>,
    /// Where the data starts in `bytes`.
    start: usize,
    /// Where headers start, counted from the first data byte.
    headers: [Option<isize>; 3],
    /// Its annotations.
    pub annotations: Annotations,
    /// Whom the frame was addressed to.
    pub packet_type: PacketType,
    /// Nanoseconds since the epoch.
    pub timestamp: u64,
}

const HEADERS: [Header; 3] = [Header::Mac, Header::Network, Header::Transport];

impl Seen {
    /// What a packet is now.
    pub fn of(packet: &Packet) -> Self {
        let headers = HEADERS.map(|h| packet.header_offset(h));
        let first = (0..3).filter(|&i| headers[i].is_some()).min_by_key(|&i| headers[i]);
        let stripped = first.and_then(|i| {
            let before = headers[i].filter(|offset| *offset < 0)?.unsigned_abs();
            Some((packet.header(HEADERS[i])?.to_vec(), before))
        });
        let (bytes, start) = stripped.unwrap_or_else(|| (packet.data().to_vec(), 0));
        Self {
            bytes,
            start,
            headers,
            annotations: *packet.annotations(),
            packet_type: packet.packet_type(),
            timestamp: packet.timestamp(),
        }
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Where a header starts, counted from the first data byte; negative if it was stripped.
    pub fn header_offset(&self, header: Header) -> Option<isize> {
        self.headers[header as usize]
    }

    /// The bytes from a header on, stripped ones included.
    pub fn header(&self, header: Header) -> Option<&[u8]> {
        self.from(self.header_offset(header)?)
    }

    /// The bytes from an offset to the first data byte on; `None` if they are not known.
    pub fn from(&self, offset: isize) -> Option<&[u8]> {
        self.bytes.get(self.start.checked_add_signed(offset)?..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripped_headers_are_still_seen() {
        let mut pool = net::Pool::new();
        let mut packet = pool.packet(b"ethernetip");
        packet.set_header_offset(Header::Mac, 0);
        packet.pull(8);
        packet.set_header_offset(Header::Network, 0);
        let seen = Seen::of(&packet);
        assert_eq!(seen.data(), b"ip");
        assert_eq!(seen.header(Header::Mac), Some(&b"ethernetip"[..]));
        assert_eq!(seen.header(Header::Network), Some(&b"ip"[..]));
        assert_eq!((seen.header(Header::Transport), seen.from(-9)), (None, None));
    }
}
