//! What is tracked of a TCP segment.

use ir::Reason;
use net::Packet;
use net::wire::Tcp;
use net::wire::tcp::{flag, option};

use super::connection::after;
use super::version::Version;
use crate::flow_table::{FlowKey, HashedKey};

/// The largest shift of a window (RFC 7323, 2.3).
pub(super) const MOST_SCALE: u8 = 14;

/// What a segment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Syn,
    SynAck,
    /// An acknowledgment, with data or without, or with FIN.
    Ack,
    Rst,
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub kind: Kind,
    /// Whether its acknowledgment number counts.
    pub acknowledges: bool,
    pub fin: bool,
    pub seq: u32,
    /// Behind its last byte; SYN and FIN count as one each.
    pub end: u32,
    pub ack: u32,
    /// The furthest that it acknowledges selectively, `ack` without that.
    pub sack: u32,
    /// As it stands in the header.
    pub window: u32,
    /// The shift of windows that a SYN offers.
    pub scale: Option<u8>,
}

/// What is tracked of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Segment(Segment),
    /// An ICMP error about a segment of this number.
    Error(u32),
    /// Neither TCP nor about TCP.
    Other,
}

/// A packet as it was seen, and where its connection is looked up: that of an error has the key of what it quotes.
pub(super) struct Seen<A> {
    pub what: Result<What, Reason>,
    pub at: HashedKey<A>,
    /// See [`crate::flow_table::FlowTable::guess`].
    pub guess: Option<u32>,
}

impl<A: Default> Seen<A> {
    /// Looks at a packet. Its key is not hashed yet.
    pub(super) fn of<V: Version<Addresses = A>>(packet: &mut Packet, checksum: bool) -> Self {
        let (key, what) = match V::see(packet, checksum) {
            Ok((key, what)) => (key, Ok(what)),
            Err(reason) => (FlowKey::default(), Err(reason)),
        };
        Self { what, at: HashedKey { key, hash: 0 }, guess: None }
    }
}

impl Segment {
    /// Of a header with so many bytes of data behind it; none if its flags contradict each other.
    pub(super) fn of(tcp: &Tcp<&[u8]>, data: usize) -> Option<Self> {
        let kind = kind(tcp.flags())?;
        let has = |flag: u8| tcp.flags() & flag != 0;
        let numbers = data as u32 + u32::from(has(flag::SYN)) + u32::from(has(flag::FIN));
        let mut segment = Self {
            kind,
            acknowledges: has(flag::ACK),
            fin: has(flag::FIN),
            seq: tcp.seq(),
            end: tcp.seq().wrapping_add(numbers),
            ack: tcp.ack(),
            sack: tcp.ack(),
            window: tcp.window().into(),
            scale: None,
        };
        if tcp.header_len() > 20 {
            segment.read_options(tcp);
        }
        Some(segment)
    }

    fn read_options(&mut self, tcp: &Tcp<&[u8]>) {
        for found in tcp.options().map_while(Result::ok) {
            match (found.kind, found.data) {
                (option::WINDOW_SCALE, &[scale]) => self.scale = Some(scale.min(MOST_SCALE)),
                (option::SACK, blocks) if self.acknowledges => {
                    for block in blocks.as_chunks::<8>().0 {
                        let edge = u32::from_be_bytes([block[4], block[5], block[6], block[7]]);
                        if after(edge, self.sack) {
                            self.sack = edge;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// What flags mean, if they go together.
fn kind(flags: u8) -> Option<Kind> {
    const NO_URG: u8 = flag::FIN | flag::SYN | flag::RST | flag::ACK;
    // PSH, ECE and CWR go with all; URG with what may have data.
    Some(match (flags & NO_URG, flags & flag::URG != 0) {
        (flag::SYN, _) => Kind::Syn,
        (both, false) if both == flag::SYN | flag::ACK => Kind::SynAck,
        (rst, false) if rst & !flag::ACK == flag::RST => Kind::Rst,
        (ack, _) if ack & !flag::FIN == flag::ACK => Kind::Ack,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_together_or_not() {
        use flag::{ACK, CWR, ECE, FIN, PSH, RST, SYN, URG};
        for (flags, meant) in [
            (SYN, Some(Kind::Syn)),
            (SYN | ECE | CWR, Some(Kind::Syn)),
            (SYN | ACK, Some(Kind::SynAck)),
            (SYN | ACK | URG, None),
            (ACK, Some(Kind::Ack)),
            (ACK | PSH | URG, Some(Kind::Ack)),
            (FIN | ACK, Some(Kind::Ack)),
            (RST, Some(Kind::Rst)),
            (RST | ACK, Some(Kind::Rst)),
            (RST | SYN, None),
            (RST | FIN, None),
            (SYN | FIN, None),
            (SYN | FIN | ACK, None),
            (FIN, None),
            (FIN | PSH | URG, None),
            (PSH, None),
            (0, None),
        ] {
            assert_eq!(kind(flags), meant, "{flags:#x}");
        }
    }
}
