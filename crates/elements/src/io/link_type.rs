//! What frames of a link type begin with, and where the IP packet in them is.

use net::wire::Ipv4;
use net::{Batch, Header, Packet};

/// Link types by the names that configurations use; of several names the first is shown.
const NAMES: [(&str, u32); 21] = [
    ("ETHER", 1),
    ("IP", 101),
    ("FDDI", 10),
    ("ATM", 100),
    ("RFC1483", 100),
    ("ATM-RFC1483", 100),
    ("802_11", 105),
    ("802.11", 105),
    ("802_11_RADIO", 127),
    ("SLL", 113),
    ("AIRONET", 120),
    ("HDLC", 104),
    ("C_HDLC", 104),
    ("PPP_HDLC", 50),
    ("PPP", 9),
    ("SUNATM", 123),
    ("PRISM", 119),
    ("NULL", 0),
    ("LOOP", 108),
    ("IPV4", 228),
    ("IPV6", 229),
];

/// Ethernet.
pub(crate) const ETHERNET: u32 = 1;
/// IP without anything in front of it.
pub(crate) const RAW_IP: u32 = 101;

/// The link type of this name or number.
pub(crate) fn parse(text: &str) -> Option<u32> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, n)| *n);
    named.or_else(|| text.parse().ok())
}

/// The name of a link type, or its number.
pub(crate) fn name(link_type: u32) -> String {
    let named = NAMES.iter().find(|(_, n)| *n == link_type || is_raw(*n) && is_raw(link_type));
    named.map_or_else(|| link_type.to_string(), |(name, _)| (*name).to_string())
}

/// Whether frames are IP packets without anything in front of them.
pub(crate) fn is_raw(link_type: u32) -> bool {
    matches!(link_type, 12 | 14 | 101 | 228 | 229)
}

/// Whether [`find_ip`] understands frames of this type.
pub(crate) fn holds_ip(link_type: u32) -> bool {
    is_raw(link_type) || matches!(link_type, ETHERNET | 0 | 9 | 50 | 104 | 108 | 113)
}

fn is_ip(protocol: Option<&[u8; 2]>) -> bool {
    matches!(protocol, Some([0x08, 0x00] | [0x86, 0xdd]))
}

/// Where the IP packet in a frame begins, if it holds one. One VLAN tag may precede it.
fn find_ip(link_type: u32, frame: &[u8]) -> Option<usize> {
    let protocol = |at: usize| frame.get(at..)?.first_chunk::<2>();
    match link_type {
        raw if is_raw(raw) => Some(0),
        ETHERNET if is_ip(protocol(12)) => Some(14),
        ETHERNET if protocol(12) == Some(&[0x81, 0x00]) && is_ip(protocol(16)) => Some(18),
        113 if is_ip(protocol(14)) => Some(16),
        104 if is_ip(protocol(2)) => Some(4),
        // PPP: protocol numbers 0x0021 and 0x0057, after an address and a control byte.
        9 | 50 if matches!(frame.get(2..4), Some([0x00, 0x21 | 0x57])) => Some(4),
        // The address family, in the byte order of whatever machine it was.
        0 | 108 if frame.len() > 4 => Some(4),
        _ => None,
    }
}

/// The IP packet in a frame; empty if it holds none.
pub(crate) fn ip_in(link_type: u32, frame: &[u8]) -> &[u8] {
    find_ip(link_type, frame).and_then(|at| frame.get(at..)).unwrap_or(&[])
}

/// The EtherType of a packet, behind one VLAN tag if it has one.
pub(crate) fn protocol_of(packet: &Packet) -> Option<u16> {
    let mac = packet.header(Header::Mac);
    let word =
        |frame: &[u8], at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk::<2>()?));
    let of_frame = |frame: &[u8]| match word(frame, 12)? {
        0x8100 => word(frame, 16),
        protocol => Some(protocol),
    };
    let link_type = crate::selector::link_type_of(packet);
    match mac {
        Some(frame) => of_frame(frame),
        None if link_type == ETHERNET => of_frame(packet.data()),
        None => match packet.data().first().map(|b| b >> 4).filter(|_| is_raw(link_type))? {
            4 => Some(0x0800),
            6 => Some(0x86dd),
            _ => None,
        },
    }
}

/// Marks the beginning of each frame, as a source does.
#[inline]
pub(crate) fn mark_starts(batch: &mut Batch, link_type: u32) {
    let header = if is_raw(link_type) { Header::Network } else { Header::Mac };
    for packet in batch.iter_mut() {
        packet.set_header_offset(header, 0);
    }
}

/// Marks the IP header of a frame and notes its destination; `false` if the frame holds no IP
/// packet with a complete header.
pub(crate) fn mark_ip(packet: &mut Packet, link_type: u32) -> bool {
    let Some(at) = find_ip(link_type, packet.data()) else { return false };
    let header = &packet.data()[at.min(packet.len())..];
    match header.first().map(|b| b >> 4) {
        Some(4) => {
            let Some(ip) = Ipv4::new(header) else { return false };
            let (length, to) = (ip.header_len(), ip.dst());
            if length < 20 || header.len() < length {
                return false;
            }
            packet.set_ip_header(at, length);
            packet.annotations_mut().set_dst_ip(to);
            true
        }
        Some(6) if header.len() >= 40 => {
            packet.set_ip_header(at, 40);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::Pool;

    #[test]
    fn types_have_names() {
        assert_eq!((parse("ether"), parse("IP"), parse("147")), (Some(1), Some(101), Some(147)));
        assert_eq!((parse("ARCNET"), parse("")), (None, None));
        assert_eq!((name(12), name(105), name(147)), ("IP".into(), "802_11".into(), "147".into()));
    }

    #[test]
    fn ip_is_found_in_whole_headers_only() {
        let mut ip = [0u8; 20];
        (ip[0], ip[19]) = (0x45, 9);
        let (mut pool, mut tagged) = (Pool::new(), vec![0; 12]);
        tagged.extend([0x81, 0, 0, 5, 8, 0]);
        tagged.extend(ip);
        for length in 0..tagged.len() {
            assert!(!mark_ip(&mut pool.packet(&tagged[..length]), 1), "{length}");
        }
        let mut packet = pool.packet(&tagged);
        assert!(mark_ip(&mut packet, 1));
        assert_eq!(packet.header_offset(Header::Network), Some(18));
        assert_eq!(packet.header_offset(Header::Transport), Some(38));
        assert_eq!(packet.annotations().dst_ip().to_bits(), 9);
        assert!(mark_ip(&mut pool.packet(&ip), 101));
        ip[0] = 0x44;
        assert!(!mark_ip(&mut pool.packet(&ip), 101));
        assert!(!mark_ip(&mut pool.packet(&[]), 101));
        assert!(!mark_ip(&mut pool.packet(&tagged), 105));
    }
}
