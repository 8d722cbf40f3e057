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
    if let Some(view) = Vlan::new(&*bytes) {
        read!(view; tci, ether_type);
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
        read!(view; version, header_len, tos, ecn, total_len, id, fragment_word, fragment_offset);
        read!(view; ttl, protocol, checksum, src, dst, header, payload, checksum_ok, is_fragment);
        black_box(view.options().count());
        read!(view; options_mut, payload_mut, fill_checksum);
        view.set_total_len(number);
        view.set_header_len(usize::from(number % 16) * 4);
        read!(view; header, payload, options, options_mut, payload_mut, fill_checksum, checksum_ok);
        view.pseudo_header(number);
    }
    if let Some(mut view) = Ipv6::new(&mut *bytes) {
        read!(view; version, traffic_class, payload_len, next_header, hop_limit, src, dst);
        read!(view; payload, payload_mut);
        view.set_payload_len(number);
        read!(view; payload, payload_mut, swap_addresses);
        view.set_src(Ipv6Addr::LOCALHOST);
        view.pseudo_header(6, number.into());
    }
}

fn transport(bytes: &mut [u8], number: u16) {
    black_box(Tcp::new_checked(&*bytes));
    if let Some(mut view) = Tcp::new(&mut *bytes) {
        read!(view; src_port, dst_port, seq, ack, header_len, flags, window, checksum);
        black_box(view.options().count());
        view.set_header_len(usize::from(number % 16) * 4);
        read!(view; options);
        view.fill_checksum(Sum::ZERO);
        assert!(view.checksum_ok(Sum::ZERO));
    }
    black_box(Udp::new_checked(&*bytes));
    if let Some(mut view) = Udp::new(&mut *bytes) {
        read!(view; src_port, dst_port, len, checksum, payload);
        view.set_len(number);
        read!(view; payload);
        view.fill_checksum(Sum::of_u16(number));
        assert!(view.checksum_ok(Sum::of_u16(number)));
    }
    if let Some(mut view) = Icmpv4::new(&mut *bytes) {
        read!(view; message_type, code, checksum, rest, mtu, payload, fill_checksum);
        assert!(view.checksum_ok());
    }
    if let Some(mut view) = Icmpv6::new(&mut *bytes) {
        read!(view; message_type, code, payload, neighbor_target);
        black_box(view.neighbor_options().count());
        view.set_neighbor_target(Ipv6Addr::LOCALHOST);
        view.set_link_layer_addr(2, EtherAddr::BROADCAST);
        view.fill_checksum(Sum::ZERO);
        assert!(view.checksum_ok(Sum::ZERO));
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
        transport(&mut bytes, number);
    }

    // Random bytes rarely begin with a version, so these do.
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
