//! Ethernet frames, walked as elements walk them.

use std::hint::black_box;

use net::notation::describe;
use net::wire::{
    Arp, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Tcp, Udp, ether_type, ip_protocol, vlan,
};

/// Packets in packets are followed this deep.
const MAX_DEPTH: u32 = 8;

/// The header views: whatever a header claims, views stay inside the frame.
pub fn frame(data: &[u8]) {
    ethernet(data, MAX_DEPTH);
    black_box((describe(data, true), describe(data, false)));
}

fn ethernet(bytes: &[u8], depth: u32) {
    let Some(view) = Ethernet::new(bytes) else { return };
    black_box((view.dst(), view.src()));
    let Some(found) = vlan::network(bytes) else { return };
    let rest = bytes.get(found.offset..).expect("the network header starts inside the frame");
    network(found.ether_type, rest, depth);
}

fn network(kind: u16, bytes: &[u8], depth: u32) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match kind {
        ether_type::ARP => {
            black_box(Arp::new_checked(bytes).map(|arp| (arp.sender_ip(), arp.target_ether())));
        }
        ether_type::IPV4 => ipv4(bytes, depth),
        ether_type::IPV6 => ipv6(bytes, depth),
        _ => {}
    }
}

fn ipv4(bytes: &[u8], depth: u32) {
    let Some(ip) = Ipv4::new(bytes) else { return };
    black_box((ip.checksum_ok(), ip.options().count()));
    if ip.fragment_offset() > 0 {
        return;
    }
    let payload = ip.payload();
    let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
    match ip.protocol() {
        ip_protocol::TCP => {
            if let Some(tcp) = Tcp::new(payload) {
                black_box((tcp.options().count(), tcp.checksum_ok(ip.pseudo_header(length))));
            }
        }
        ip_protocol::UDP => {
            if let Some(udp) = Udp::new(payload) {
                black_box(udp.checksum_ok(ip.pseudo_header(length)));
                network(ether_type::IPV4, udp.payload(), depth);
            }
        }
        ip_protocol::ICMP => {
            if let Some(icmp) = Icmpv4::new(payload) {
                black_box(icmp.checksum_ok());
                // An error quotes the packet that it is about.
                network(ether_type::IPV4, icmp.payload(), depth);
            }
        }
        _ => network(ether_type::IPV4, payload, depth),
    }
}

fn ipv6(bytes: &[u8], depth: u32) {
    let Some(ip) = Ipv6::new(bytes) else { return };
    let payload = ip.payload();
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let pseudo_header = ip.pseudo_header(ip.next_header(), length);
    match ip.next_header() {
        ip_protocol::TCP => {
            black_box(Tcp::new(payload).map(|tcp| tcp.checksum_ok(pseudo_header)));
        }
        ip_protocol::UDP => {
            if let Some(udp) = Udp::new(payload) {
                black_box(udp.checksum_ok(pseudo_header));
                network(ether_type::IPV4, udp.payload(), depth);
            }
        }
        ip_protocol::ICMPV6 => {
            if let Some(icmp) = Icmpv6::new(payload) {
                black_box((icmp.checksum_ok(pseudo_header), icmp.neighbor_options().count()));
            }
        }
        _ => {}
    }
}
