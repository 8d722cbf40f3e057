//! Frames: such as hosts send, and such as nobody should.

use fastrand::Rng;

/// Addresses that chains of the tests know, and others.
const ADDRESSES: [[u8; 4]; 10] = [
    [10, 0, 0, 1],
    [10, 1, 2, 3],
    [10, 1, 9, 9],
    [20, 1, 2, 3],
    [30, 1, 2, 3],
    [1, 2, 3, 4],
    [192, 168, 7, 7],
    [172, 16, 1, 1],
    [0, 0, 0, 0],
    [255, 255, 255, 255],
];

const PORTS: [u16; 9] = [0, 53, 80, 81, 443, 999, 1000, 5000, 65535];

fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Makes an IPv4 header's checksum right.
pub(crate) fn mend(frame: &mut [u8], ip: usize) {
    let words = usize::from(frame.get(ip).map_or(0, |byte| byte & 15));
    if let Some(header) = frame.get_mut(ip..ip + 4 * words.max(5)) {
        header[10..12].fill(0);
        let right = !sum(header);
        header[10..12].copy_from_slice(&right.to_be_bytes());
    }
}

fn ipv4(random: &mut Rng) -> Vec<u8> {
    let protocol = random.choice([6u8, 6, 17, 17, 1]).unwrap();
    let mut body: Vec<u8> = Vec::new();
    match protocol {
        1 => {
            body.extend([random.choice([0, 3, 8, 11]).unwrap(), random.u8(0..3), 0, 0, 0, 1, 0, 2])
        }
        _ => {
            for _ in 0..2 {
                body.extend(random.choice(PORTS).unwrap().to_be_bytes());
            }
        }
    }
    match protocol {
        6 => {
            body.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, random.u8(0..64), 4, 0]);
            body.extend([random.u8(..), random.u8(..), 0, 0]);
        }
        17 => body.extend([0, 8, random.u8(..), random.u8(..)]),
        _ => {}
    }
    body.resize(body.len() + random.usize(0..9), 7);
    let mut packet = vec![0x45, random.u8(..)];
    packet.extend((20 + body.len() as u16).to_be_bytes());
    let fragment: u16 = match random.u8(0..8) {
        0 => 0x2000,
        1 => 0x2007,
        2 => 7,
        3 => 0x4000,
        _ => 0,
    };
    packet.extend([0, 1]);
    packet.extend(fragment.to_be_bytes());
    packet.push(random.choice([0u8, 1, 2, 3, 4, 5, 64, 255]).unwrap());
    packet.extend([protocol, 0, 0]);
    packet.extend(random.choice(ADDRESSES).unwrap());
    packet.extend(random.choice(ADDRESSES).unwrap());
    mend(&mut packet, 0);
    packet.extend(body);
    packet
}

fn arp(random: &mut Rng) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, random.u8(1..3), 2, 0, 0, 0, 0, 9];
    packet.extend(random.choice(ADDRESSES).unwrap());
    packet.extend([0; 6]);
    packet.extend(random.choice(ADDRESSES).unwrap());
    packet
}

fn ipv6(random: &mut Rng) -> Vec<u8> {
    let body = vec![9; random.usize(0..40)];
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([random.choice([0u8, 6, 17, 44, 58, 59]).unwrap(), random.u8(0..4)]);
    for last in 1..3 {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(body);
    packet
}

/// A frame whose headers are right.
pub(crate) fn good(random: &mut Rng) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, random.u8(1..4), 2, 0, 0, 0, 0, random.u8(7..9)];
    if random.u8(0..4) == 0 {
        frame.extend([0x81, 0, random.u8(..) & 0xef, random.u8(..)]);
    }
    let (ether_type, packet) = match random.u8(0..10) {
        0 => (0x0806u16, arp(random)),
        1 => (0x86dd, ipv6(random)),
        2 => (random.u16(0x0600..), vec![3; 40]),
        _ => (0x0800, ipv4(random)),
    };
    // Tags are put on above.
    let ether_type = if matches!(ether_type, 0x8100 | 0x88a8) { 0x9999 } else { ether_type };
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    // As short frames are on a wire.
    if random.bool() {
        frame.resize(frame.len().max(60), 0);
    }
    frame
}

/// A frame in which something is wrong, or rare.
pub(crate) fn odd(random: &mut Rng) -> Vec<u8> {
    let mut frame = good(random);
    let ip = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let is_ip = frame[ip - 2..ip] == [8, 0];
    match random.u8(0..16) {
        0 => frame.truncate(random.usize(14..=frame.len())),
        1 => {
            let at = random.usize(0..frame.len());
            frame[at] = random.u8(..);
        }
        2 => frame[12..14].copy_from_slice(&[0x88, 0xa8]),
        3 => drop(frame.splice(12..12, [0x88, 0xa8, 0, 9])),
        4 => drop(frame.splice(12..12, [0x81, 0, 0x40, 9])),
        5 => drop(frame.splice(12..12, [0, 50, 0xaa, 0xaa, 3, 0, 0, 0])),
        6 => drop(frame.splice(12..14, [0, 20])),
        7 if is_ip => {
            // Options.
            let words = random.u8(1..11);
            let more = vec![1; 4 * usize::from(words)];
            frame.splice(ip + 20..ip + 20, more);
            frame[ip] += words;
            let length = u16::from_be_bytes([frame[ip + 2], frame[ip + 3]]) + 4 * u16::from(words);
            frame[ip + 2..ip + 4].copy_from_slice(&length.to_be_bytes());
            mend(&mut frame, ip);
        }
        8 if is_ip => frame[ip] = random.u8(..),
        9 if is_ip => frame[ip + 3] = random.u8(..),
        10 if is_ip => {
            frame[ip + 9] = random.choice([0u8, 0, 2, 132, 50]).unwrap();
            mend(&mut frame, ip);
        }
        11 if is_ip => {
            frame[ip + 10..ip + 12].fill(0xff);
        }
        12 => drop(frame.splice(12..12, [0x81, 0, 0xf0, 9])),
        13 => frame.truncate(random.usize(14..22).min(frame.len())),
        14 if frame[ip - 2..ip] == [8, 6] => frame[ip + random.usize(0..8)] ^= 1,
        _ => {
            for _ in 0..3 {
                let at = random.usize(12..frame.len());
                frame[at] ^= 1 << random.u8(0..8);
            }
        }
    }
    frame
}
