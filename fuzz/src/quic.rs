//! What clients say first in connections of QUIC, sealed with the keys that anybody can derive (RFC 9001, RFC 9369).

use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, KeyInit};
use hmac_sha256::HKDF;

use crate::fed::{Fed, Records};

const CHAIN: &str = "
    in :: Idle -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> urls :: URLFilter(urls.txt, MEMORY 4096) -> out :: Queue -> Idle;";
/// Bytes that streams may take, and that each takes at least.
const MEMORY: u64 = 4096;
const STREAM: u64 = 192;

/// Number, salt, bits of the first byte, and label of a version.
const VERSIONS: [(u32, [u8; 20], u8, &str); 2] = [
    (
        1,
        [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        0xc0,
        "quic",
    ),
    (
        0x6b33_43cf,
        [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
        0xd0,
        "quicv2",
    ),
];

fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> [u8; N] {
    let label = format!("tls13 {label}");
    let info = [&[0, N as u8, label.len() as u8][..], label.as_bytes(), &[0]].concat();
    let mut out = [0; N];
    HKDF::expand(&mut out, secret, info);
    out
}

/// An initial packet with these frames.
fn initial(version: usize, id: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    let (version, salt, first, label) = VERSIONS[version];
    let secret: [u8; 32] = expand(&HKDF::extract(salt, id), "client in");
    let key: [u8; 16] = expand(&secret, &format!("{label} key"));
    let mut nonce: [u8; 12] = expand(&secret, &format!("{label} iv"));
    let protection: [u8; 16] = expand(&secret, &format!("{label} hp"));
    nonce[11] ^= number;
    // With room for the sample.
    let mut text = frames.to_vec();
    text.resize(text.len().max(20), 0);
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.push(id.len() as u8);
    packet.extend(id);
    packet.extend([0, 0]);
    packet.extend((0x4000 | (1 + text.len() + 16) as u16).to_be_bytes());
    let at = packet.len();
    packet.push(number);
    let tag = Aes128Gcm::new(&key.into())
        .encrypt_inout_detached(&nonce.into(), &packet, text.as_mut_slice().into())
        .expect("it is short");
    packet.extend(text);
    packet.extend(tag);
    let sample: [u8; 16] = *packet[at + 4..].first_chunk().expect("there is room");
    let mut mask = sample.into();
    Aes128::new(&protection.into()).encrypt_block(&mut mask);
    packet[0] ^= mask[0] & 0x0f;
    packet[at] ^= mask[1];
    packet
}

/// Datagrams of clients: all pass or are counted, and memory is bounded.
///
/// An input is a list of datagrams: a byte of bits, a length, and the frames of an initial packet, or bytes as they are.
pub fn quic(data: &[u8]) {
    let (mut records, mut chain) = (Records(data), Fed::start(CHAIN));
    let (mut fed, mut left) = (0, 0);
    while let (Some(bits), Some(length)) = (records.byte(), records.number()) {
        let bytes = records.bytes(length.into());
        let id = &[7; 20][..usize::from(bits >> 4)];
        let datagram = match bits & 3 {
            version @ 0..=1 => initial(version.into(), id, fed as u8, bytes),
            2 => bytes.to_vec(),
            _ => [&initial(0, id, fed as u8, bytes)[..], &initial(1, id, 9, bytes)].concat(),
        };
        let payload: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = 1024 + u16::from(bits >> 2 & 3);
        let words = format!("udp 10.0.0.1:{port} > 10.0.0.2:443 payload {payload}");
        let Ok(frame) = net::notation::parse(&words) else { continue };
        chain.feed("in", &frame);
        fed += 1;
        left += chain.left("out").len() as u64;
        assert_eq!(left + chain.dropped(), fed);
        assert_eq!(chain.dropped(), chain.count("urls.blocked"));
        assert!(chain.count("urls.streams") * STREAM <= MEMORY);
    }
}
