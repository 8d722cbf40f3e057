//! What is tracked of a TCP segment.

use ir::Reason;
use net::Packet;
use net::wire::Tcp;
use net::wire::ip_protocol::{ICMP, TCP};
use net::wire::tcp::{flag, option};

use super::connection::after;
use super::{BAD_FLAGS, NO_CONNECTION};
use crate::flow_table::{Hashed, Key};
use crate::header_check::Check;
use crate::ip::icmp_quote::Quote;
use crate::ip::ip_header;
use crate::transport::check_tcp_header::CheckTCPHeader;

/// The largest shift of a window (RFC 7323, 2.3).
pub(super) const MOST_SCALE: u8 = 14;

/// What a segment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    SynAck,
    /// An acknowledgment, with data or without, or with FIN.
    Ack,
    Rst,
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
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
pub(super) enum What {
    Segment(Segment),
    /// An ICMP error about a segment of this number.
    Error(u32),
    /// Neither TCP nor about TCP.
    Other,
}

/// A packet as it was seen, and where its connection is looked up: that of an error has the key of what it quotes.
pub(super) struct Seen {
    pub what: Result<What, Reason>,
    pub at: Hashed,
    /// See [`crate::flow_table::FlowTable::guess`].
    pub guess: Option<u32>,
}

impl Seen {
    /// Looks at a packet. Its key is not hashed yet.
    pub(super) fn of(packet: &mut Packet, header: &CheckTCPHeader) -> Self {
        let (key, what) = match seen(packet, header) {
            Ok((key, what)) => (key, Ok(what)),
            Err(reason) => (Key::default(), Err(reason)),
        };
        Self { what, at: Hashed { key, hash: 0 }, guess: None }
    }
}

fn seen(packet: &mut Packet, header: &CheckTCPHeader) -> Result<(Key, What), Reason> {
    let ip = ip_header::view(packet).ok_or(ip_header::NO_HEADER)?;
    match ip.protocol() {
        TCP => {
            header.check(packet)?;
            let (key, segment) = Segment::of(packet).ok_or(BAD_FLAGS)?;
            Ok((key, What::Segment(segment)))
        }
        ICMP => match Quote::of(packet) {
            Ok(Quote { protocol: TCP, src, dst, ports: Some(ports), seq: Some(seq), .. }) => {
                let addresses = u64::from(src) << 32 | u64::from(dst);
                Ok((Key { addresses, ports, map: TCP.into() }, What::Error(seq)))
            }
            // Without ports nobody knows which segment it is about.
            Ok(Quote { protocol: TCP, .. }) => Err(NO_CONNECTION),
            _ => Ok((Key::default(), What::Other)),
        },
        _ => Ok((Key::default(), What::Other)),
    }
}

impl Segment {
    /// A packet's segment with its key; none if its flags contradict each other. The header was checked.
    fn of(packet: &Packet) -> Option<(Key, Self)> {
        let ip = ip_header::view(packet)?;
        let tcp = packet.transport().and_then(Tcp::new)?;
        let kind = kind(tcp.flags())?;
        let has = |flag: u8| tcp.flags() & flag != 0;
        let headers = ip.header_len() + tcp.header_len();
        let data = usize::from(ip.total_len()).saturating_sub(headers) as u32;
        let numbers = data + u32::from(has(flag::SYN)) + u32::from(has(flag::FIN));
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
            segment.read_options(&tcp);
        }
        let (src, dst) = (ip.src().to_bits(), ip.dst().to_bits());
        Some((Key::new(ip.protocol().into(), src, tcp.src_port(), dst, tcp.dst_port()), segment))
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
