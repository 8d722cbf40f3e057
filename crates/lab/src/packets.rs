//! Random packets: mostly sensible, often odd, sometimes garbage.

use std::net::{Ipv4Addr, Ipv6Addr};

use net::checksum::{Sum, pseudo_header_v4};
use net::{HEADROOM, Header, Packet, PacketType, Pool};
use proptest::prelude::*;

/// Where a packet's data starts and which of its headers are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// At the Ethernet header, as a device delivers it.
    Frame,
    /// At the Ethernet header, network header marked.
    MarkedFrame,
    /// At the network header, unmarked, as after Strip.
    Stripped,
    /// At the network header, which is marked with the transport header, as after CheckIPHeader.
    Checked,
    /// Like `Checked` with only the network header marked.
    NetworkOnly,
    /// At the transport header, headers marked.
    AtTransport,
}

/// A packet with all that an element can see of it.
#[derive(Clone)]
pub struct Sample {
    /// The input that it comes in on.
    pub input: usize,
    /// Its frame.
    pub bytes: Vec<u8>,
    /// Where its data starts, and which headers are marked.
    pub shape: Shape,
    /// Bytes of its annotations: which, and what.
    pub annotations: Vec<(u8, u8)>,
    /// Its destination address annotation.
    pub dst_annotation: Option<u32>,
    /// Its type, by number.
    pub packet_type: u8,
    /// Time that passes before it, in nanoseconds.
    pub pause: u64,
    /// Whether it starts a new batch.
    pub starts_batch: bool,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            input,
            bytes,
            shape,
            annotations,
            dst_annotation,
            packet_type,
            pause,
            starts_batch,
        } = self;
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        write!(
            f,
            "in {input}: {} ({hex}), {shape:?}, annotations {annotations:?}, destination {:?}, type {packet_type}, \
             after {pause} ns, batch starts {starts_batch}",
            net::notation::describe(bytes, true),
            dst_annotation.map(Ipv4Addr::from_bits),
        )
    }
}

impl Sample {
    /// Makes the packet. What lies before its data is zero, so that it is the same everywhere.
    pub fn packet(&self, pool: &mut Pool) -> Packet {
        let mut zeroed = vec![0; HEADROOM];
        zeroed.extend(&self.bytes);
        let mut packet = pool.packet(&zeroed);
        packet.pull(HEADROOM);
        packet.set_header_offset(Header::Mac, 0);
        packet.set_timestamp(1_000_000_007 * u64::from(self.packet_type));
        packet.set_packet_type(PacketType::from_u8(self.packet_type));
        let ip = 14.min(self.bytes.len());
        let v6 = self.bytes.get(14).is_some_and(|b| b >> 4 == 6);
        let header = match self.bytes.get(14) {
            Some(_) if v6 => 40,
            Some(b) => usize::from(b & 15) * 4,
            None => 20,
        };
        if matches!(
            self.shape,
            Shape::MarkedFrame | Shape::Checked | Shape::NetworkOnly | Shape::AtTransport
        ) {
            packet.set_header_offset(Header::Network, ip as isize);
        }
        if matches!(self.shape, Shape::MarkedFrame | Shape::Checked | Shape::AtTransport) {
            packet.set_header_offset(Header::Transport, (ip + header) as isize);
        }
        match self.shape {
            Shape::Frame | Shape::MarkedFrame => {}
            Shape::Stripped | Shape::Checked | Shape::NetworkOnly => packet.pull(ip),
            Shape::AtTransport => packet.pull(ip + header),
        }
        for &(at, value) in &self.annotations {
            packet.annotations_mut().set_u8(usize::from(at) % 48, value);
        }
        if let Some(address) = self.dst_annotation {
            packet.annotations_mut().set_dst_ip(Ipv4Addr::from_bits(address));
        }
        packet
    }
}

fn number(words: &[u32], usual: Vec<u32>) -> BoxedStrategy<u32> {
    let all: Vec<u32> = words.iter().copied().chain(usual).collect();
    prop_oneof![9 => proptest::sample::select(all), 1 => any::<u32>()].boxed()
}

/// Numbers worth trying that a configuration mentions: addresses, and other numbers.
pub fn vocabulary(config: &str) -> (Vec<u32>, Vec<u32>) {
    let (mut addresses, mut numbers) = (Vec::new(), Vec::new());
    for word in config.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')) {
        if let Ok(address) = word.parse::<Ipv4Addr>() {
            let bits = address.to_bits();
            addresses.extend([bits, bits.wrapping_add(1), bits.wrapping_sub(1)]);
        } else if let Ok(n) = word.parse::<u32>() {
            numbers.extend([n, n.wrapping_add(1), n.wrapping_sub(1)]);
        }
    }
    (addresses, numbers)
}

#[derive(Clone, Debug)]
struct Ip {
    source: u32,
    destination: u32,
    protocol: u8,
    ttl: u8,
    tos: u8,
    id: u16,
    fragment: u16,
    options: Vec<u8>,
    ports: (u16, u16),
    body: Vec<u8>,
    flags: u8,
    damage: u8,
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn ipv4(ip: &Ip) -> Vec<u8> {
    let mut body = Vec::new();
    let first = ip.fragment & 0x1fff == 0;
    let sum_at = match ip.protocol {
        17 if first => {
            body = vec![0; 8];
            put16(&mut body, 4, 8 + ip.body.len() as u16);
            Some(6)
        }
        6 if first => {
            body = vec![0; 20];
            body[12] = 0x50;
            body[13] = ip.flags;
            Some(16)
        }
        1 if first => {
            body = vec![
                [8, 0, 3, 11, 5, 13, 30][usize::from(ip.flags) % 7],
                ip.flags >> 5,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            put16(&mut body, 4, ip.ports.0);
            // Errors quote a packet; half of the time a sensible one.
            if ip.flags.is_multiple_of(2) && matches!(body[0], 3 | 11 | 5) {
                let inner = Ip {
                    source: ip.destination,
                    destination: ip.source,
                    protocol: [17, 6, 1][usize::from(ip.id) % 3],
                    options: Vec::new(),
                    fragment: 0,
                    flags: 8,
                    damage: 255,
                    ..ip.clone()
                };
                body.extend(ipv4(&inner));
            }
            Some(2)
        }
        _ => None,
    };
    if matches!(ip.protocol, 6 | 17) && first {
        put16(&mut body, 0, ip.ports.0);
        put16(&mut body, 2, ip.ports.1);
    }
    body.extend(&ip.body);
    let mut options = ip.options.clone();
    options.truncate(40);
    options.resize(options.len().next_multiple_of(4), 0);
    let header = 20 + options.len();
    if let Some(at) = sum_at {
        let length = body.len() as u16;
        let pseudo = match ip.protocol {
            1 => Sum::ZERO,
            p => pseudo_header_v4(ip.source.into(), ip.destination.into(), p, length),
        };
        let sum = pseudo.plus(Sum::of(&body)).checksum();
        if !(ip.protocol == 17 && ip.damage % 8 == 1) {
            put16(&mut body, at, sum);
        }
    }
    let mut packet = vec![0x40 | (header / 4) as u8, ip.tos];
    packet.extend(((header + body.len()) as u16).to_be_bytes());
    packet.extend(ip.id.to_be_bytes());
    packet.extend(ip.fragment.to_be_bytes());
    packet.extend([ip.ttl, ip.protocol, 0, 0]);
    packet.extend(ip.source.to_be_bytes());
    packet.extend(ip.destination.to_be_bytes());
    packet.extend(&options);
    let sum = Sum::of(&packet).checksum();
    put16(&mut packet, 10, sum);
    packet.extend(body);
    // Some packets are wrong in one place.
    match ip.damage {
        0 => packet[0] = packet[0].wrapping_add(1),
        2 => packet[0] ^= 0x20,
        3 => packet[3] = packet[3].wrapping_add(9),
        4 => packet[3] = packet[3].wrapping_sub(9),
        5 => packet[10] ^= 1,
        6 => {
            let last = packet.len() - 1;
            packet[last] ^= 0xff;
        }
        7 if packet.len() > 26 => packet[25] ^= 4,
        _ => {}
    }
    packet
}

/// What GRE and VXLAN packets carry, whose keys and networks the configuration mentions.
fn tunnelled(numbers: &[u32]) -> BoxedStrategy<Vec<u8>> {
    let key = number(numbers, vec![7, 0x5a5a5a]);
    let gre_flags = prop_oneof![
        6 => (0..8u16).prop_map(|optional| (optional & 4) << 13 | (optional & 3) << 12),
        1 => any::<u16>(),
    ];
    let protocol = proptest::sample::select(vec![0x0800u16, 0x6558, 0x86dd]);
    let inner = proptest::collection::vec(any::<u8>(), 0..40);
    let gre = (gre_flags, protocol, key.clone(), inner.clone(), any::<bool>()).prop_map(
        |(flags, protocol, key, inner, is_right)| {
            let mut packet = [flags.to_be_bytes(), protocol.to_be_bytes()].concat();
            if flags & 0x8000 != 0 {
                packet.extend([0; 4]);
            }
            if flags & 0x2000 != 0 {
                packet.extend(key.to_be_bytes());
            }
            packet.extend(inner);
            if is_right && flags & 0x8000 != 0 && packet.len() >= 8 {
                let sum = Sum::of(&packet).checksum();
                put16(&mut packet, 4, sum);
            }
            packet
        },
    );
    let vxlan = (prop_oneof![6 => Just(8u8), 1 => any::<u8>()], key, inner).prop_map(
        |(flags, vni, inner)| [&[flags, 0, 0, 0][..], &(vni << 8).to_be_bytes(), &inner].concat(),
    );
    prop_oneof![gre, vxlan].boxed()
}

fn ipv4_packets(config: &str) -> BoxedStrategy<Vec<u8>> {
    let (addresses, numbers) = vocabulary(config);
    let usual = vec![0x0a00_0001, 0x0a00_0002, 0x0808_0808, 0xc0a8_0101, 0xe000_0001, u32::MAX, 0];
    let address = number(&addresses, usual);
    let tunnelled = tunnelled(&numbers);
    let ports: Vec<u32> = numbers.into_iter().filter(|&n| n < 65536).collect();
    let port = number(&ports, vec![53, 80, 1024, 5000, 4789]).prop_map(|p| p as u16);
    let protocol =
        prop_oneof![4 => Just(17u8), 4 => Just(6), 3 => Just(1), 1 => Just(47), 1 => any::<u8>()];
    let ttl =
        prop_oneof![1 => Just(0u8), 1 => Just(1), 1 => Just(2), 5 => Just(64), 1 => Just(255)];
    let fragment = prop_oneof![
        12 => Just(0u16), 2 => Just(0x4000), 1 => Just(0x2000), 1 => Just(0x00b9), 1 => Just(0x20b9), 1 => any::<u16>()
    ];
    let options = prop_oneof![
        8 => Just(Vec::new()),
        1 => proptest::collection::vec(any::<u8>(), 1..40),
        1 => Just(vec![7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        1 => Just(vec![68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        1 => Just(vec![1, 1, 131, 7, 4, 10, 0, 0, 1, 0]),
    ];
    let body = prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 0..60),
        2 => tunnelled,
        1 => proptest::collection::vec(any::<u8>(), 500..700),
        1 => (1400usize..1600).prop_map(|n| vec![0x5a; n]),
    ];
    let header = (address.clone(), address, protocol, ttl, any::<u8>(), any::<u16>());
    let rest = (fragment, options, (port.clone(), port), body, any::<u8>(), 0..40u8);
    (header, rest)
        .prop_map(
            |(
                (source, destination, protocol, ttl, tos, id),
                (fragment, options, ports, body, flags, damage),
            )| {
                ipv4(&Ip {
                    source,
                    destination,
                    protocol,
                    ttl,
                    tos,
                    id,
                    fragment,
                    options,
                    ports,
                    body,
                    flags,
                    damage,
                })
            },
        )
        .boxed()
}

/// Addresses in the IPv6 networks that a configuration mentions.
fn ipv6_vocabulary(config: &str) -> Vec<u128> {
    let words = config.split(|c: char| !(c.is_ascii_hexdigit() || ":./".contains(c)));
    let networks = words.filter_map(|word| {
        let (address, length) = word.split_once('/').unwrap_or((word, "128"));
        Some((address.parse::<Ipv6Addr>().ok()?.to_bits(), length.parse::<u32>().ok()?))
    });
    let hosts = [1, 0xffff_0000_0000_0000_0001, 0xffff_0000_0000_0001, u128::MAX, 0xa0a0_0001];
    let within = |(network, length): (u128, u32)| {
        let free = u128::MAX.checked_shr(length).unwrap_or(0);
        hosts.map(|host| network | host & free)
    };
    networks.flat_map(within).collect()
}

fn ipv6_packets(config: &str) -> BoxedStrategy<Vec<u8>> {
    let mut addresses =
        vec![1u128 << 96 | 1, 0x2001_0db8 << 96 | 1, 0x2001_0db8 << 96 | 2, 0xff02 << 112 | 1];
    addresses.extend(ipv6_vocabulary(config));
    let address = proptest::sample::select(addresses);
    let packet = ipv6_packet(address.clone(), proptest::collection::vec(any::<u8>(), 0..80));
    if ipv6_vocabulary(config).is_empty() {
        return packet;
    }
    // Errors quote a packet.
    let quoted = ipv6_packet(address.clone(), proptest::collection::vec(any::<u8>(), 0..30));
    let error = (proptest::sample::select(vec![1u8, 2, 3, 4, 128]), 0..8u8, 0..99u8, quoted)
        .prop_map(|(kind, code, rest, quoted)| {
            [&[kind, code, 0, 0, 0, 0, 0, rest][..], &quoted].concat()
        });
    prop_oneof![2 => packet, 1 => ipv6_packet(address, error)].boxed()
}

fn ipv6_packet(
    address: impl Strategy<Value = u128> + Clone + 'static,
    body: impl Strategy<Value = Vec<u8>> + 'static,
) -> BoxedStrategy<Vec<u8>> {
    let next = proptest::sample::select(vec![0u8, 6, 17, 43, 44, 58, 59, 60]);
    let hlim = proptest::sample::select(vec![0u8, 1, 2, 64, 255]);
    (address.clone(), address, next, hlim, any::<u8>(), body, 0..12u8)
        .prop_map(|(source, destination, next, hlim, class, body, damage)| {
            let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0];
            packet.extend((body.len() as u16 + u16::from(damage == 1) * 9).to_be_bytes());
            packet.extend([next, hlim]);
            packet.extend(source.to_be_bytes());
            packet.extend(destination.to_be_bytes());
            packet.extend(body);
            if damage == 0 {
                packet[0] ^= 0x10;
            }
            packet
        })
        .boxed()
}

fn arp_packets(config: &str) -> BoxedStrategy<Vec<u8>> {
    let address = number(&vocabulary(config).0, vec![0x0a00_0001, 0x0a00_0002]);
    (address.clone(), address, 1..3u8, 0..10u8)
        .prop_map(|(sender, target, operation, damage)| {
            let mut arp = vec![0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 9];
            arp.extend(sender.to_be_bytes());
            arp.extend([0; 6]);
            arp.extend(target.to_be_bytes());
            if damage == 0 {
                arp[1] = 7;
            }
            arp
        })
        .boxed()
}

/// Random packets for an element with this configuration and number of inputs.
pub fn samples(config: &str, inputs: usize) -> impl Strategy<Value = Vec<Sample>> + use<> {
    let ethernet = proptest::sample::select(vec![
        [2u8, 0, 0, 0, 0, 2],
        [0xff; 6],
        [1, 0, 0x5e, 0, 0, 1],
        [2, 0, 0, 0, 0, 7],
    ]);
    let ipv6_share = if ipv6_vocabulary(config).is_empty() { 2 } else { 14 };
    let network = prop_oneof![
        14 => (Just(0x0800u16), ipv4_packets(config)),
        ipv6_share => (Just(0x86dd), ipv6_packets(config)),
        2 => (Just(0x0806), arp_packets(config)),
        1 => (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..80)),
    ];
    let vlan = prop_oneof![6 => Just(None), 1 => any::<u16>().prop_map(Some)];
    let frame = (ethernet.clone(), ethernet, vlan, network).prop_map(
        |(to, from, vlan, (kind, network))| {
            let mut frame = [to, from].concat();
            if let Some(tci) = vlan {
                frame.extend([0x81, 0]);
                frame.extend(tci.to_be_bytes());
            }
            frame.extend(kind.to_be_bytes());
            frame.extend(network);
            frame
        },
    );
    let cut = prop_oneof![8 => Just(usize::MAX), 1 => 0..80usize];
    let pad = prop_oneof![6 => Just(0usize), 1 => 1..30usize];
    let shape = prop_oneof![
        2 => Just(Shape::Frame), 2 => Just(Shape::MarkedFrame), 2 => Just(Shape::Stripped), 6 => Just(Shape::Checked),
        1 => Just(Shape::NetworkOnly), 1 => Just(Shape::AtTransport)
    ];
    let annotations = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec((any::<u8>(), any::<u8>()), 0..4),
        1 => (0..4u8).prop_map(|colour| vec![(16, colour)]),
        1 => any::<u8>().prop_map(|value| vec![(19, 1), (17, value)]),
    ];
    let dst = prop_oneof![2 => Just(None), 3 => number(&vocabulary(config).0, vec![0x0a00_0001, 0xe000_0001]).prop_map(Some)];
    let pause =
        prop_oneof![8 => Just(0u64), 2 => 0..3_000_000_000u64, 1 => 0..1_000_000_000_000u64];
    let one = (
        0..inputs.max(1),
        frame,
        (cut, pad),
        shape,
        annotations,
        dst,
        0..5u8,
        pause,
        any::<bool>(),
    )
        .prop_map(
            |(
                input,
                mut bytes,
                (cut, pad),
                shape,
                annotations,
                dst_annotation,
                packet_type,
                pause,
                starts_batch,
            )| {
                bytes.resize(bytes.len() + pad, 0xee);
                bytes.truncate(cut);
                Sample {
                    input,
                    bytes,
                    shape,
                    annotations,
                    dst_annotation,
                    packet_type,
                    pause,
                    starts_batch,
                }
            },
        );
    proptest::collection::vec(one, 1..40)
}
