//! Payloads of IPv4 packets.

use net::Packet;
use net::wire::Ipv4;

use super::search::Seen;

/// A byte of TCP's flags.
const SYN: u8 = 2;
const ACK: u8 = 16;

/// What a packet with a marked IPv4 header is; none without such a header, and for fragments but the first.
pub(crate) fn seen(packet: &Packet) -> Option<Seen<'_>> {
    let network = packet.network()?;
    let ip = Ipv4::new(network)?;
    if ip.fragment_offset() != 0 {
        return None;
    }
    let length = usize::from(ip.total_len()).min(network.len());
    let behind = network.get(ip.header_len()..length)?;
    let (src, dst, protocol) = (ip.src().to_bits(), ip.dst().to_bits(), ip.protocol());
    let mut seen = Seen { protocol, src, dst, payload: behind, ..Seen::default() };
    let headers = match protocol {
        6 => usize::from(*behind.get(12)? >> 4) * 4,
        17 => 8,
        1 => 8,
        _ => return Some(seen),
    };
    if protocol == 1 {
        seen.icmp = Some((*behind.first()?, *behind.get(1)?));
    } else {
        let ports = behind.first_chunk::<4>()?;
        seen.src_port = u16::from_be_bytes([ports[0], ports[1]]);
        seen.dst_port = u16::from_be_bytes([ports[2], ports[3]]);
        let flags = behind.get(13).copied().unwrap_or(0);
        seen.established = protocol == 6 && flags & (SYN | ACK) == ACK;
    }
    seen.payload = behind.get(headers..).filter(|_| protocol != 6 || headers >= 20)?;
    Some(seen)
}
