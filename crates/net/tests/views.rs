//! Whatever the bytes: once a view exists, none of its accessors and setters panics.

use catena_net::checksum::Sum;
use catena_net::wire::*;
use proptest::prelude::*;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Calls each named accessor.
macro_rules! read {
    ($view:expr; $($accessor:ident),*) => { $(let _ = black_box($view.$accessor());)* };
}

fn ethernet(bytes: &mut [u8]) {
    black_box(vlan::network(bytes));
    if let Some(mut view) = Ethernet::new(&mut *bytes) {
        read!(view; dst, src, ether_type, payload, payload_mut, bytes);
    }
    if let Some(mut view) = Vlan::new(&mut *bytes) {
        read!(view; tci, ether_type, payload, payload_mut);
    }
    if let Some(view) = Arp::new(&*bytes) {
        read!(view; hardware_type, protocol_type, hardware_len, protocol_len, operation);
        read!(view; sender_ether, sender_ip, target_ether, target_ip);
    }
    black_box(Arp::new_checked(bytes));
}

fn ip(bytes: &mut [u8], number: u16) {
    black_box(Ipv4::new_checked(&*bytes));
    if let Some(mut view) = Ipv4::new(&mut *bytes) {
        read!(view; version, header_len, tos, dscp, ecn, total_len, id, fragment_word, fragment_offset);
        read!(view; ttl, protocol, checksum, src, dst, header, payload, checksum_ok, is_fragment);
        black_box(view.options().count());
        read!(view; options_mut, payload_mut, fill_checksum);
        view.set_total_len(number);
        view.set_header_len(usize::from(number % 16) * 4);
        read!(view; header, payload, options, options_mut, payload_mut, fill_checksum, checksum_ok);
        view.pseudo_header(number);
    }
    black_box(Ipv6::new_checked(&*bytes));
    if let Some(mut view) = Ipv6::new(&mut *bytes) {
        read!(view; version, traffic_class, flow_label, payload_len, next_header, hop_limit, src, dst);
        read!(view; payload, upper_layer, payload_mut);
        black_box(view.extensions().count());
        for kind in [0, 43, 44, 60, 51] {
            view.set_next_header(kind);
            if let Ok(upper) = view.upper_layer() {
                assert!(upper.offset <= view.bytes().len());
            }
        }
        view.set_payload_len(number);
        read!(view; payload, upper_layer, payload_mut);
        view.set_src(Ipv6Addr::LOCALHOST);
        view.pseudo_header(6, number.into());
    }
}

fn transport(bytes: &mut [u8], number: u16) {
    black_box(Tcp::new_checked(&*bytes));
    if let Some(mut view) = Tcp::new(&mut *bytes) {
        read!(view; src_port, dst_port, seq, ack, header_len, flags, window, checksum, urgent_pointer);
        black_box(view.options().count());
        view.set_header_len(usize::from(number % 16) * 4);
        read!(view; payload, options, options_mut, payload_mut);
        view.fill_checksum(Sum::ZERO);
        assert!(view.checksum_ok(Sum::ZERO));
    }
    black_box(Udp::new_checked(&*bytes));
    if let Some(mut view) = Udp::new(&mut *bytes) {
        read!(view; src_port, dst_port, len, checksum, payload, payload_mut);
        view.set_len(number);
        read!(view; payload, payload_mut);
        view.fill_checksum(Sum::of_u16(number));
        assert!(view.checksum_ok(Sum::of_u16(number)));
    }
    if let Some(mut view) = Icmpv4::new(&mut *bytes) {
        read!(view; message_type, code, checksum, rest, id, seq, gateway, mtu, pointer, payload);
        read!(view; payload_mut, fill_checksum);
        assert!(view.checksum_ok());
    }
    if let Some(mut view) = Icmpv6::new(&mut *bytes) {
        read!(view; message_type, code, checksum, rest, id, seq, payload, neighbor_target);
        view.link_layer_addr(1);
        black_box(view.neighbor_options().count());
        view.set_neighbor_target(Ipv6Addr::LOCALHOST);
        view.set_link_layer_addr(2, EtherAddr::BROADCAST);
        view.fill_checksum(Sum::ZERO);
        assert!(view.checksum_ok(Sum::ZERO));
    }
}

fn tunnels(bytes: &mut [u8], number: u16) {
    black_box(Gre::new_checked(&*bytes));
    if let Some(mut view) = Gre::new(&mut *bytes) {
        read!(view; flags, version, ether_type, header_len, checksum, key, sequence, payload);
        read!(view; checksum_ok, payload_mut);
    }
    black_box(Vxlan::new_checked(&*bytes));
    if let Some(mut view) = Vxlan::new(&mut *bytes) {
        read!(view; flags, vni, payload, payload_mut);
    }
    black_box(Nsh::new_checked(&*bytes));
    if let Some(mut view) = Nsh::new(&mut *bytes) {
        read!(view; version, is_oam, ttl, header_len, md_type, next_protocol, service_path);
        read!(view; service_index, context, payload, context_mut);
        view.set_ttl(number as u8);
        view.set_service_path(number.into());
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_view_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        number in any::<u16>(),
    ) {
        ethernet(&mut bytes.clone());
        ip(&mut bytes.clone(), number);
        transport(&mut bytes.clone(), number);
        tunnels(&mut bytes, number);
    }

    // Random bytes seldom begin with a version, so these do.
    #[test]
    fn no_options_make_ipv4_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 20..80),
        words in 5u8..=15,
        number in any::<u16>(),
    ) {
        bytes[0] = 0x40 | words;
        ip(&mut bytes, number);
    }

    #[test]
    fn a_filled_ipv4_checksum_is_right(
        mut bytes in prop::collection::vec(any::<u8>(), 60..80),
        words in 5usize..=15,
        src in any::<u32>(),
    ) {
        let mut view = Ipv4::new(&mut bytes[..]).unwrap();
        view.set_header_len(words * 4);
        view.set_src(Ipv4Addr::from_bits(src));
        view.fill_checksum();
        prop_assert!(view.checksum_ok());
        prop_assert_eq!(view.src().to_bits(), src);
    }
}
