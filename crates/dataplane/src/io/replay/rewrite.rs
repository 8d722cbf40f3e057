//! Other addresses for the flows of a capture, with checksums adapted (RFC 1624).

use std::net::{Ipv4Addr, Ipv6Addr};

use net::checksum::Delta;
use net::wire::{Ipv4, Ipv6};
use net::wire::{ether_type, icmpv4, icmpv6, ip_protocol, ipv6, vlan};

/// How far the hosts of a capture move within their networks: the last 16 bits of an IPv4 address and the last 64 of an
/// IPv6 address change, so private addresses stay private. An address has one other, so both directions of a flow stay one
/// flow, and hosts stay different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    v4: u16,
    v6: u64,
}

/// Shifts at the most: so many are different.
pub(super) const MAX_SHIFTS: u64 = 1 << 16;

impl Shift {
    /// A shift by its number; that of 0 leaves everything as it is. Shifts are far from each other, so that a host does not
    /// become a neighbour that is in the capture, too.
    pub(super) const fn new(number: u64) -> Self {
        Self {
            v4: (number as u16).wrapping_mul(0x9e37),
            v6: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Rewrites a frame of Ethernet.
    pub(super) fn rewrite_frame(self, frame: &mut [u8]) {
        if let Some(network) = vlan::network(frame)
            && matches!(network.ether_type, ether_type::IPV4 | ether_type::IPV6)
        {
            self.rewrite(&mut frame[network.offset..]);
        }
    }

    /// Rewrites an IP packet.
    pub(super) fn rewrite(self, packet: &mut [u8]) {
        self.rewrite_ip(packet, false);
    }

    /// What a checksum that covers the packet changes by. Errors quote a packet, but none that quotes another.
    fn rewrite_ip(self, packet: &mut [u8], is_quoted: bool) -> Delta {
        match packet.first().map(|first| first >> 4) {
            Some(4) => self.rewrite_v4(packet, is_quoted),
            Some(6) => self.rewrite_v6(packet, is_quoted),
            _ => None,
        }
        .unwrap_or(Delta::NONE)
    }

    fn rewrite_v4(self, packet: &mut [u8], is_quoted: bool) -> Option<Delta> {
        let mut ip = Ipv4::new(&mut *packet)?;
        let (source, destination, old) = (ip.src(), ip.dst(), ip.checksum());
        let (from, to) = (self.v4(source), self.v4(destination));
        let addresses = Delta::NONE.u32(source.into(), from.into());
        let addresses = addresses.u32(destination.into(), to.into());
        let new = addresses.apply(old);
        ip.set_src(from);
        ip.set_dst(to);
        ip.set_checksum(new);
        let header = addresses.u16(old, new);
        if ip.is_later_fragment() {
            return Some(header);
        }
        let (begin, end, protocol) = (ip.header_len(), ip.total_len().into(), ip.protocol());
        let end = packet.len().min(end);
        let Some(transport) = packet.get_mut(begin..end) else { return Some(header) };
        Some(header.plus(self.rewrite_transport(protocol, transport, addresses, is_quoted)))
    }

    fn rewrite_v6(self, packet: &mut [u8], is_quoted: bool) -> Option<Delta> {
        let (protocol, begin) = upper_layer(packet)?;
        let mut ip = Ipv6::new(&mut *packet)?;
        let (source, destination) = (ip.src(), ip.dst());
        let (from, to) = (self.v6(source), self.v6(destination));
        let addresses = Delta::NONE.bytes(&source.octets(), &from.octets());
        let addresses = addresses.bytes(&destination.octets(), &to.octets());
        ip.set_src(from);
        ip.set_dst(to);
        let end = packet.len().min(ipv6::HEADER_LEN + Ipv6::new(&*packet)?.payload_len());
        let (Some(protocol), Some(transport)) = (protocol, packet.get_mut(begin..end)) else {
            return Some(addresses);
        };
        Some(addresses.plus(self.rewrite_transport(protocol, transport, addresses, is_quoted)))
    }

    /// Adapts the checksum of a transport header, and what an error quotes.
    fn rewrite_transport(
        self,
        protocol: u8,
        transport: &mut [u8],
        addresses: Delta,
        is_quoted: bool,
    ) -> Delta {
        let first = transport.first().copied().unwrap_or_default();
        let quotes = !is_quoted
            && match protocol {
                ip_protocol::ICMP => icmpv4::is_error(first),
                ip_protocol::ICMPV6 => icmpv6::is_error(first),
                _ => false,
            };
        let quoted = match transport.get_mut(icmpv4::HEADER_LEN..) {
            Some(packet) if quotes => self.rewrite_ip(packet, true),
            _ => Delta::NONE,
        };
        let (at, change) = match protocol {
            ip_protocol::TCP => (16, addresses),
            ip_protocol::UDP | ip_protocol::UDPLITE | ip_protocol::DCCP => (6, addresses),
            // ICMP has no pseudo-header, ICMPv6 has.
            ip_protocol::ICMP => (2, quoted),
            ip_protocol::ICMPV6 => (2, addresses.plus(quoted)),
            _ => return Delta::NONE,
        };
        let Some(field) = transport.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else {
            return quoted;
        };
        let old = u16::from_be_bytes(*field);
        let new = match protocol {
            ip_protocol::UDP => change.apply_udp(old),
            _ => change.apply(old),
        };
        *field = new.to_be_bytes();
        quoted.u16(old, new)
    }

    fn v4(self, address: Ipv4Addr) -> Ipv4Addr {
        let [a, b, c, d] = address.octets();
        // This network, loopback; multicast, reserved and broadcast.
        if matches!(a, 0 | 127 | 224..) {
            return address;
        }
        let [c, d] = u16::from_be_bytes([c, d]).wrapping_add(self.v4).to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    }

    fn v6(self, address: Ipv6Addr) -> Ipv6Addr {
        let bits = address.to_bits();
        let network = (bits >> 64) as u64;
        // Unspecified, loopback and mapped; multicast and link-local.
        if network == 0 || address.is_multicast() || address.is_unicast_link_local() {
            return address;
        }
        (u128::from(network) << 64 | u128::from((bits as u64).wrapping_add(self.v6))).into()
    }
}

/// Extension headers that are passed over at the most.
const MAX_EXTENSIONS: usize = 8;

/// The kind of a packet's upper layer, none of a later fragment, and where it begins. Nothing if the packet's addresses are
/// not to be changed: those that its checksum covers are not in its header, or its payload names them.
fn upper_layer(packet: &[u8]) -> Option<(Option<u8>, usize)> {
    let ip = Ipv6::new(packet)?;
    let (mut kind, mut at) = (ip.next_header(), ipv6::HEADER_LEN);
    for _ in 0..MAX_EXTENSIONS {
        let Some(&[next, length, _, last, ..]) = packet.get(at..) else {
            return Some((None, at));
        };
        match kind {
            ip_protocol::HOP_BY_HOP | ip_protocol::DESTINATION_OPTIONS => {}
            // Segments are left: the last address that is routed to counts (RFC 8200, section 8.1).
            ip_protocol::IPV6_ROUTING if last != 0 => return None,
            ip_protocol::IPV6_ROUTING => {}
            ip_protocol::IPV6_FRAGMENT => {
                let word = u16::from_be_bytes([*packet.get(at + 2)?, last]);
                if word >> 3 != 0 {
                    return Some((None, at));
                }
                (kind, at) = (next, at + 8);
                continue;
            }
            // Neighbour discovery.
            ip_protocol::ICMPV6 if matches!(packet[at], 133..=137) => return None,
            _ => return Some((Some(kind), at)),
        }
        (kind, at) = (next, at + 8 + 8 * usize::from(length));
    }
    Some((None, at))
}

#[cfg(test)]
mod tests {
    use net::checksum::{Sum, checksum};
    use net::wire::{Icmpv4, Icmpv6, Tcp, Udp};

    use super::*;

    /// Whether all checksums of an IP packet are right, also in what it quotes.
    fn is_right(packet: &[u8]) -> bool {
        let (protocol, transport, pseudo) = match packet[0] >> 4 {
            4 => {
                let ip = Ipv4::new(packet).unwrap();
                if !ip.checksum_ok() {
                    return false;
                }
                if ip.is_later_fragment() {
                    return true;
                }
                let length = usize::from(ip.total_len()) - ip.header_len();
                let transport = &packet[ip.header_len()..][..length];
                (ip.protocol(), transport, ip.pseudo_header(length as u16))
            }
            _ => {
                let (protocol, at) = upper_layer(packet).unwrap();
                let ip = Ipv6::new(packet).unwrap();
                let transport = &packet[at..40 + ip.payload_len()];
                let pseudo = ip.pseudo_header(protocol.unwrap(), transport.len() as u32);
                (protocol.unwrap(), transport, pseudo)
            }
        };
        match protocol {
            ip_protocol::UDP => Udp::new(transport).unwrap().checksum_ok(pseudo),
            ip_protocol::TCP => Tcp::new(transport).unwrap().checksum_ok(pseudo),
            ip_protocol::SCTP => true,
            ip_protocol::ICMP => {
                let icmp = Icmpv4::new(transport).unwrap();
                icmp.checksum_ok()
                    && (!icmpv4::is_error(icmp.message_type()) || is_right(icmp.payload()))
            }
            _ => {
                let icmp = Icmpv6::new(transport).unwrap();
                icmp.checksum_ok(pseudo)
                    && (!icmpv6::is_error(icmp.message_type()) || is_right(icmp.payload()))
            }
        }
    }

    const V4: [[u8; 4]; 2] = [[192, 168, 1, 2], [8, 8, 4, 4]];

    fn v4(protocol: u8, [source, destination]: [[u8; 4]; 2], transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend(source.iter().chain(&destination).chain(transport));
        let length = packet.len() as u16;
        let mut ip = Ipv4::new(&mut packet[..]).unwrap();
        ip.set_total_len(length);
        ip.fill_checksum();
        let pseudo = ip.pseudo_header(length - 20);
        fill(protocol, &mut packet[20..], pseudo);
        packet
    }

    fn v6(chain: &[u8], protocol: u8, ends: [&str; 2], transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet.extend(chain.iter().chain(transport));
        let length = packet.len() as u16 - 40;
        let mut ip = Ipv6::new(&mut packet[..]).unwrap();
        ip.set_first_word(0, 0);
        ip.set_payload_len(length);
        ip.set_next_header(if chain.is_empty() { protocol } else { ip_protocol::HOP_BY_HOP });
        ip.set_src(ends[0].parse().unwrap());
        ip.set_dst(ends[1].parse().unwrap());
        let pseudo = ip.pseudo_header(protocol, transport.len() as u32);
        fill(protocol, &mut packet[40 + chain.len()..], pseudo);
        packet
    }

    fn fill(protocol: u8, transport: &mut [u8], pseudo: Sum) {
        match protocol {
            ip_protocol::UDP => Udp::new(transport).unwrap().fill_checksum(pseudo),
            ip_protocol::TCP => Tcp::new(transport).unwrap().fill_checksum(pseudo),
            ip_protocol::ICMP => Icmpv4::new(transport).unwrap().fill_checksum(),
            ip_protocol::SCTP => {}
            _ => Icmpv6::new(transport).unwrap().fill_checksum(pseudo),
        }
    }

    const UDP: &[u8] = &[4, 0, 0, 53, 0, 11, 0, 0, 1, 2, 3];
    const TCP: &[u8] = &[4, 0, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 2, 9, 9, 0, 0, 0, 0, 77];
    const V6: [&str; 2] = ["2001:db8::1", "2600::ffff:ffff:ffff:ffff"];

    #[test]
    fn checksums_stay_right_and_addresses_change_within_their_networks() {
        let error = |kind: u8, quoted: &[u8]| [&[kind, 0, 0, 0, 0, 0, 0, 0], quoted].concat();
        let hop_by_hop = [ip_protocol::UDP, 0, 1, 4, 0, 0, 0, 0];
        let destination = [ip_protocol::DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0];
        let two = [destination, hop_by_hop].concat();
        let udp6 = v6(&[], ip_protocol::UDP, V6, UDP);
        let packets = [
            v4(ip_protocol::UDP, V4, UDP),
            v4(ip_protocol::TCP, V4, TCP),
            v4(ip_protocol::ICMP, V4, &[8, 0, 0, 0, 1, 2, 3, 4, 5]),
            v4(ip_protocol::ICMP, V4, &error(3, &v4(ip_protocol::TCP, [V4[1], V4[0]], TCP))),
            v6(&[], ip_protocol::TCP, V6, TCP),
            v6(&two, ip_protocol::UDP, V6, UDP),
            v6(&[], ip_protocol::ICMPV6, V6, &[128, 0, 0, 0, 1, 2, 3, 4, 5]),
            v6(&[], ip_protocol::ICMPV6, V6, &error(1, &udp6)),
            // Where a quoted packet has no checksum over its addresses, that of the error covers the change.
            v6(&[], ip_protocol::ICMPV6, V6, &error(1, &v6(&[], ip_protocol::SCTP, V6, TCP))),
            v4(ip_protocol::ICMP, V4, &error(3, &v4(ip_protocol::SCTP, V4, TCP))),
            udp6,
        ];
        for packet in packets {
            assert!(is_right(&packet), "{packet:x?}");
            for number in [1, 2, 3, 65535] {
                let mut moved = packet.clone();
                Shift::new(number).rewrite(&mut moved);
                assert!(is_right(&moved), "{number} {packet:x?} {moved:x?}");
                match packet[0] >> 4 {
                    4 => {
                        assert_eq!(
                            (&moved[12..14], &moved[16..18]),
                            (&packet[12..14], &packet[16..18])
                        );
                        assert!(moved[14..16] != packet[14..16] && moved[18..20] != packet[18..20]);
                    }
                    _ => {
                        assert_eq!(
                            (&moved[8..16], &moved[24..32]),
                            (&packet[8..16], &packet[24..32])
                        );
                        assert!(moved[16..24] != packet[16..24] && moved[32..40] != packet[32..40]);
                    }
                }
                // All that is not an address or a checksum stays.
                let changed = packet.iter().zip(&moved).filter(|(old, new)| old != new).count();
                assert!(changed <= 2 * 16 + 4 + 32, "{changed}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_changes_as_the_whole_does() {
        let whole = v4(ip_protocol::TCP, V4, TCP);
        for length in 0..whole.len() {
            let mut moved = whole.clone();
            let mut cut = whole[..length].to_vec();
            Shift::new(5).rewrite(&mut moved);
            Shift::new(5).rewrite(&mut cut);
            let expected = match length {
                0..20 => &whole,
                20..38 => &[&moved[..36], &whole[36..]].concat(),
                _ => &moved,
            };
            assert_eq!(cut, expected[..length], "{length}");
        }
        let later = {
            let mut packet = v4(ip_protocol::TCP, V4, TCP);
            let mut ip = Ipv4::new(&mut packet[..]).unwrap();
            ip.set_fragment_word(3);
            ip.fill_checksum();
            packet
        };
        let mut moved = later.clone();
        Shift::new(5).rewrite(&mut moved);
        assert!(moved[20..] == later[20..] && moved != later && checksum(&moved[..20]) == 0);
    }

    #[test]
    fn a_udp_checksum_that_is_absent_stays_absent() {
        let mut packet = v4(ip_protocol::UDP, V4, UDP);
        packet[26..28].fill(0);
        Shift::new(1).rewrite(&mut packet);
        assert_eq!(packet[26..28], [0, 0]);
    }

    #[test]
    fn addresses_of_no_host_stay() {
        let shift = Shift::new(1);
        for address in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "239.1.2.3", "255.255.255.255"] {
            let address = address.parse().unwrap();
            assert_eq!(shift.v4(address), address);
        }
        for address in ["::", "::1", "ff02::1", "fe80::1"] {
            let address = address.parse().unwrap();
            assert_eq!(shift.v6(address), address);
        }
        // A routing header with a segment left.
        let routing = [ip_protocol::UDP, 0, 0, 1, 0, 0, 0, 0];
        let hop_by_hop = [ip_protocol::IPV6_ROUTING, 0, 1, 4, 0, 0, 0, 0];
        let routed = v6(&hop_by_hop, ip_protocol::UDP, V6, &routing);
        let solicitation = v6(&[], ip_protocol::ICMPV6, V6, &[135, 0, 0, 0, 0, 0, 0, 0]);
        for packet in [routed, solicitation] {
            let mut moved = packet.clone();
            shift.rewrite(&mut moved);
            assert_eq!(moved, packet);
        }
        let mut arp = [0xff; 60];
        arp[12..14].copy_from_slice(&ether_type::ARP.to_be_bytes());
        let mut moved = arp;
        shift.rewrite_frame(&mut moved);
        assert_eq!(moved, arp);
    }

    #[test]
    fn shifts_are_different_and_that_of_zero_is_none() {
        let all: std::collections::HashSet<u16> =
            (0..MAX_SHIFTS).map(|number| Shift::new(number).v4).collect();
        assert_eq!(all.len() as u64, MAX_SHIFTS);
        assert_eq!(Shift::new(0), Shift { v4: 0, v6: 0 });
    }
}
