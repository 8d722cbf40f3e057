//! Frames of the applications: UDP over IPv4 from one application to the other.

use std::net::Ipv4Addr;

use net::wire::{EtherAddr, Ethernet, Ipv4, Udp, ether, ether_type, ip_protocol, ipv4, udp};

use crate::stamp;

/// The UDP port of all applications.
pub(super) const PORT: u16 = 9;

/// Bytes in front of the payload.
pub(super) const HEADERS: usize = ether::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;

/// Bytes of a frame, without frame check sequence: with room for a stamp, and no more than Ethernet takes.
pub const SIZES: std::ops::RangeInclusive<usize> = HEADERS + stamp::LENGTH..=1514;

/// Who an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its IP address.
    pub ip: Ipv4Addr,
    /// Its MAC address.
    pub mac: EtherAddr,
}

/// A frame from one application to the other, complete but for the stamp.
///
/// # Errors
/// If there is no frame of this size.
pub(crate) fn template(from: &Endpoint, to: &Endpoint, size: usize) -> Result<Vec<u8>, String> {
    if !SIZES.contains(&size) {
        return Err(format!(
            "there is no frame of {size} bytes: it has {} to {} bytes, without frame check sequence",
            SIZES.start(),
            SIZES.end()
        ));
    }
    let mut frame = vec![0; size];
    let too_short = || format!("{size} bytes are too few");
    let mut outer = Ethernet::new(&mut frame[..]).ok_or_else(too_short)?;
    outer.set_dst(to.mac);
    outer.set_src(from.mac);
    outer.set_ether_type(ether_type::IPV4);
    let length = size - ether::HEADER_LEN;
    let mut packet = Ipv4::new(&mut frame[ether::HEADER_LEN..]).ok_or_else(too_short)?;
    packet.set_header_len(ipv4::HEADER_LEN);
    packet.set_total_len(length as u16);
    packet.set_fragment_word(ipv4::DF);
    packet.set_ttl(64);
    packet.set_protocol(ip_protocol::UDP);
    packet.set_src(from.ip);
    packet.set_dst(to.ip);
    packet.fill_checksum();
    let length = length - ipv4::HEADER_LEN;
    let pseudo = packet.pseudo_header(length as u16);
    let mut datagram = Udp::new(packet.payload_mut()).ok_or_else(too_short)?;
    datagram.set_src_port(PORT);
    datagram.set_dst_port(PORT);
    datagram.set_len(length as u16);
    datagram.fill_checksum(pseudo);
    Ok(frame)
}

/// Whether a frame is from an endpoint and for the other.
pub(crate) fn is_from(frame: &[u8], from: &Endpoint, to: &Endpoint) -> bool {
    Ethernet::new(frame).is_some_and(|outer| {
        let packet = Ipv4::new(outer.payload()).filter(|_| outer.ether_type() == ether_type::IPV4);
        outer.src() == from.mac
            && outer.dst() == to.mac
            && packet.is_some_and(|packet| (packet.src(), packet.dst()) == (from.ip, to.ip))
    })
}

/// Sends a frame back: swaps its MAC addresses, IP addresses and ports. All checksums stay right.
pub(crate) fn turn_back(frame: &mut [u8]) {
    const IP: usize = ether::HEADER_LEN + 12;
    const PORTS: usize = ether::HEADER_LEN + ipv4::HEADER_LEN;
    for (at, length) in [(0, 6), (IP, 4), (PORTS, 2)] {
        let Some(both) = frame.get_mut(at..at + 2 * length) else { return };
        let (first, second) = both.split_at_mut(length);
        first.swap_with_slice(second);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stamp::{Stamp, StampClock};

    pub(in super::super) fn endpoint(number: u8) -> Endpoint {
        let mac = EtherAddr([2, 0, 0, 0, 0, number]);
        Endpoint { ip: Ipv4Addr::new(198, 18, 0, number), mac }
    }

    /// Whether all checksums are right.
    pub(in super::super) fn is_right(frame: &[u8]) -> bool {
        let packet = Ipv4::new_checked(&frame[14..]).unwrap();
        let datagram = Udp::new_checked(packet.payload()).unwrap();
        packet.checksum_ok()
            && datagram.checksum_ok(packet.pseudo_header(packet.payload().len() as u16))
    }

    #[test]
    fn frames_go_there_and_back_with_right_checksums() {
        let (a, b) = (endpoint(1), endpoint(2));
        for size in [60, 64, 1500, 1514] {
            let mut frame = template(&a, &b, size).unwrap();
            let stamp = Stamp { clock: StampClock::Monotonic, stream: 1, sequence: 7, due: 9 };
            assert!(stamp.write(&mut frame) && is_right(&frame) && frame.len() == size);
            assert!(is_from(&frame, &a, &b) && !is_from(&frame, &b, &a));
            turn_back(&mut frame);
            assert!(is_right(&frame) && is_from(&frame, &b, &a));
            assert_eq!(Stamp::read(&frame), Some(stamp));
        }
        for size in [0, 59, 1515] {
            assert!(template(&a, &b, size).unwrap_err().contains("60 to 1514"));
        }
        turn_back(&mut [0; 20]);
    }
}
