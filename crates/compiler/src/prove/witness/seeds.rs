//! Ordinary packets to begin with.

use ir::Field;
use ir::field::{icmp, ip, tcp, udp};
use net::checksum::checksum;
use net::wire::{ether_type, ip_protocol};

use super::Witness;

const ETHERNET: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Writes two bytes of a header, if they are there.
fn put(header: &mut [u8], field: Field, number: u16) {
    let (first, last) = field.byte_range();
    if let Some(bytes) = header.get_mut(first..last) {
        bytes.copy_from_slice(&number.to_be_bytes());
    }
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = ETHERNET.to_vec();
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet with correct checksums.
pub(crate) fn ipv4(source: u32, destination: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    let sum = checksum(&packet);
    put(&mut packet, ip::CHECKSUM, sum);
    let length = (payload.len() as u16).to_be_bytes();
    let addresses = ip::SRC.byte_range().0..ip::DST.byte_range().1;
    let mut pseudo = [&packet[addresses], &[0, protocol], &length].concat();
    let field = match protocol {
        ip_protocol::TCP => tcp::CHECKSUM,
        ip_protocol::UDP => udp::CHECKSUM,
        ip_protocol::ICMP => {
            pseudo.clear();
            icmp::CHECKSUM
        }
        _ => return [packet, payload.to_vec()].concat(),
    };
    let mut message = payload.to_vec();
    let sum = checksum(&[&pseudo[..], payload].concat());
    put(&mut message, field, sum);
    [packet, message].concat()
}

/// A TCP segment without its checksum.
pub(crate) fn tcp(source: u16, destination: u16, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(source.to_be_bytes());
    segment.extend(destination.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    segment.extend(data);
    segment
}

/// A UDP datagram without its checksum.
pub(crate) fn udp(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(source.to_be_bytes());
    datagram.extend(destination.to_be_bytes());
    datagram.extend((8 + data.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(data);
    datagram
}

/// An ICMP echo request (8) or reply (0) without its checksum.
pub(crate) fn echo(kind: u8, identifier: u16) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend([0, 1, 1, 2, 3, 4]);
    message
}

/// Packets of every ordinary kind, in Ethernet frames and without.
pub(crate) fn seeds() -> Vec<Witness> {
    let (here, there) = (0x0a00_0001, 0x1400_0001);
    let data = [0x61; 18];
    let inner = [
        ipv4(here, there, 17, &udp(1234, 53, &data)),
        ipv4(here, there, 6, &tcp(1234, 80, 0x02, &[])),
        ipv4(there, here, 6, &tcp(80, 1234, 0x18, &data)),
        ipv4(here, there, 1, &echo(8, 7)),
    ];
    let mut all: Vec<Vec<u8>> = Vec::new();
    for packet in &inner {
        all.push(ethernet(ether_type::IPV4, packet));
        all.push(packet.clone());
    }
    let mut tagged = vec![0x20, 0x0a, 0x08, 0];
    tagged.extend(&inner[0]);
    all.push(ethernet(ether_type::VLAN, &tagged));
    let mut ip6 = vec![0x60, 0, 0, 0, 0, 26, 17, 64];
    ip6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    ip6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    ip6.extend(udp(1234, 53, &data));
    all.push(ethernet(ether_type::IPV6, &ip6));
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1];
    arp.extend([0, 0, 0, 0, 0, 0, 20, 0, 0, 1]);
    arp.extend([0; 18]);
    all.push(ethernet(ether_type::ARP, &arp));
    all.into_iter().map(Witness::new).collect()
}
