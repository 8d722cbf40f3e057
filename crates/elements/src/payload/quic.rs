//! What clients say first in connections of QUIC (RFC 9000, 9001; version 2: RFC 9369): the handshake of TLS in packets
//! whose keys anybody can derive from the connection's first ID.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use hmac_sha256::HKDF;

use super::tls::Reader;
use crate::cipher::{Algorithm, Cipher, TAG};

/// A connection ID, of 20 bytes at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    bytes: [u8; MOST_ID],
    length: u8,
}

const MOST_ID: usize = 20;
/// Packets of a datagram that are looked at.
const MOST_PACKETS: usize = 8;
/// Where the sample for the protection of a header begins, behind the beginning of the packet number.
const SAMPLE: usize = 4;

/// What differs between versions.
struct Version {
    number: u32,
    salt: [u8; 20],
    /// The type of initial packets.
    initial: u8,
    /// What labels of keys begin with.
    label: &'static str,
}

const VERSIONS: [Version; 2] = [
    Version {
        number: 1,
        salt: [
            0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
            0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
        ],
        initial: 0,
        label: "quic",
    },
    Version {
        number: 0x6b33_43cf,
        salt: [
            0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26,
            0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
        ],
        initial: 1,
        label: "quicv2",
    },
];

/// Keys of a client's initial packets.
struct Keys {
    key: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
}

/// A packet with a long header that is an initial one, with protection.
struct Initial<'a> {
    version: &'static Version,
    id: ConnectionId,
    /// All of its bytes, and where its packet number begins.
    bytes: &'a [u8],
    number_at: usize,
}

impl ConnectionId {
    fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; MOST_ID];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { bytes, length: id.len() as u8 })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> [u8; N] {
    let mut info = vec![0, N as u8, (6 + label.len()) as u8];
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    let mut out = [0; N];
    HKDF::expand(&mut out, secret, info);
    out
}

impl Keys {
    /// Keys of the client (RFC 9001, 5.2).
    fn new(version: &Version, id: &ConnectionId) -> Self {
        let secret = HKDF::extract(version.salt, id.bytes());
        let client: [u8; 32] = expand(&secret, "client in");
        let label = |name: &str| format!("{} {name}", version.label);
        Self {
            key: expand(&client, &label("key")),
            iv: expand(&client, &label("iv")),
            header: expand(&client, &label("hp")),
        }
    }

    /// What the bits of a header are protected with (RFC 9001, 5.4.3).
    fn mask(&self, sample: &[u8; 16]) -> [u8; 16] {
        let mut block = (*sample).into();
        Aes128::new(&self.header.into()).encrypt_block(&mut block);
        block.into()
    }

    fn nonce(&self, number: u32) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// The frames of a packet, if it was made with these keys.
    fn open(&self, packet: &Initial<'_>) -> Option<Vec<u8>> {
        let at = packet.number_at;
        let mask = self.mask(packet.bytes.get(at + SAMPLE..)?.first_chunk()?);
        let mut head = packet.bytes.get(..at + 4)?.to_vec();
        head[0] ^= mask[0] & 0x0f;
        let length = usize::from(head[0] & 3) + 1;
        head.truncate(at + length);
        let mut number = 0;
        for (byte, mask) in head[at..].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            number = number << 8 | u32::from(*byte);
        }
        let sealed = packet.bytes.get(at + length..)?;
        let (text, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG)?)?;
        let mut text = text.to_vec();
        let cipher = Cipher::new(Algorithm::Aes128Gcm, &self.key)?;
        cipher.open(&self.nonce(number), &head, &mut text, tag).then_some(text)
    }
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// An integer of variable length (RFC 9000, 16).
    fn integer(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let rest = self.take((1 << (first >> 6)) - 1)?;
        Some(rest.iter().fold(u64::from(first & 0x3f), |n, &byte| n << 8 | u64::from(byte)))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.integer()?).ok()?;
        self.take(length)
    }
}

/// The initial packets at the front of a datagram.
fn initials(datagram: &[u8]) -> impl Iterator<Item = Initial<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let (packet, is_initial, behind) = long_packet(rest)?;
            rest = behind;
            if is_initial {
                return Some(packet);
            }
        }
    })
    .take(MOST_PACKETS)
}

/// A packet with a long header, whether it is an initial one, and what follows.
fn long_packet(bytes: &[u8]) -> Option<(Initial<'_>, bool, &[u8])> {
    let mut reader = Reader(bytes);
    let first = reader.byte().filter(|first| first & 0xc0 == 0xc0)?;
    let number = u32::from_be_bytes(*reader.take(4)?.first_chunk()?);
    let version = VERSIONS.iter().find(|version| version.number == number)?;
    let length = reader.byte()?.into();
    let id = ConnectionId::new(reader.take(length)?)?;
    let length = reader.byte()?.into();
    reader.take(length)?;
    let kind = (first >> 4 & 3).wrapping_sub(version.initial) & 3;
    // Initial, 0-RTT and handshake packets have a length; a retry ends the datagram.
    match kind {
        0 => drop(reader.bytes()?),
        1 | 2 => {}
        _ => return None,
    }
    let length = usize::try_from(reader.integer()?).ok()?;
    let number_at = bytes.len() - reader.0.len();
    reader.take(length)?;
    let (bytes, behind) = bytes.split_at(number_at + length);
    Some((Initial { version, id, bytes, number_at }, kind == 0, behind))
}

/// Whether a datagram may begin with an initial packet of a version that is known.
pub(crate) fn may_be_initial(datagram: &[u8]) -> bool {
    let Some([first, number @ ..]) = datagram.first_chunk::<5>() else { return false };
    let number = u32::from_be_bytes(*number);
    let is_initial = |of: &Version| of.number == number && of.initial == first >> 4 & 3;
    first & 0xc0 == 0xc0 && VERSIONS.iter().any(is_initial)
}

/// Shows the pieces of a client's handshake in a datagram: the connection's first ID, where a piece begins, and its
/// bytes. The ID is that of the packet, or the one that is known if the packet was made with its keys.
pub(crate) fn handshake(
    datagram: &[u8],
    known: Option<ConnectionId>,
    mut show: impl FnMut(&ConnectionId, u32, &[u8]),
) {
    for packet in initials(datagram) {
        let ids = [Some(packet.id), known.filter(|id| *id != packet.id)];
        let opened = ids
            .into_iter()
            .flatten()
            .find_map(|id| Some((id, Keys::new(packet.version, &id).open(&packet)?)));
        if let Some((id, frames)) = opened {
            // What is not understood ends the packet.
            let _ = pieces(&frames, |offset, bytes| show(&id, offset, bytes));
        }
    }
}

/// Shows the pieces of the handshake in the frames that initial packets may have (RFC 9000, 17.2.2).
fn pieces(frames: &[u8], mut show: impl FnMut(u32, &[u8])) -> Option<()> {
    let mut reader = Reader(frames);
    while !reader.0.is_empty() {
        match reader.integer()? {
            // PADDING, PING
            0 | 1 => {}
            // ACK, with counts of congestion marks or without
            kind @ (2 | 3) => {
                reader.integer()?;
                reader.integer()?;
                let ranges = reader.integer()?;
                reader.integer()?;
                // Each takes two bytes at least.
                for _ in 0..ranges.min(reader.0.len() as u64) {
                    reader.integer()?;
                    reader.integer()?;
                }
                for _ in 0..if kind == 3 { 3 } else { 0 } {
                    reader.integer()?;
                }
            }
            // CRYPTO
            6 => {
                let offset = reader.integer()?;
                let bytes = reader.bytes()?;
                if let Ok(offset) = u32::try_from(offset) {
                    show(offset, bytes);
                }
            }
            _ => return None,
        }
    }
    Some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cipher::tests::hex;

    /// A datagram of a client with these pieces of its handshake, made as RFC 9001 says.
    pub(crate) fn datagram(
        version: usize,
        first_id: &[u8],
        id: &[u8],
        number: u32,
        pieces: &[(usize, &[u8])],
    ) -> Vec<u8> {
        let mut frames = Vec::new();
        for (offset, bytes) in pieces {
            let long = |n: usize| (n as u16 | 0x4000).to_be_bytes();
            frames.push(6);
            // The example of RFC 9001 writes a small offset in one byte.
            match offset {
                0..64 => frames.push(*offset as u8),
                _ => frames.extend(long(*offset)),
            }
            frames.extend(long(bytes.len()));
            frames.extend_from_slice(bytes);
        }
        frames.resize(frames.len().max(1162), 0);
        let version = &VERSIONS[version];
        let mut packet = vec![0xc3 | version.initial << 4];
        packet.extend(version.number.to_be_bytes());
        packet.push(id.len() as u8);
        packet.extend(id);
        packet.extend([0, 0]);
        packet.extend(((4 + frames.len() + TAG) as u16 | 0x4000).to_be_bytes());
        let at = packet.len();
        packet.extend(number.to_be_bytes());
        let keys = Keys::new(version, &ConnectionId::new(first_id).unwrap());
        let mut tag = [0; TAG];
        let cipher = Cipher::new(Algorithm::Aes128Gcm, &keys.key).unwrap();
        assert!(cipher.seal(&keys.nonce(number), &packet, &mut frames, &mut tag));
        packet.extend(frames);
        packet.extend(tag);
        let mask = keys.mask(packet[at + SAMPLE..].first_chunk().unwrap());
        packet[0] ^= mask[0] & 0x0f;
        for (byte, mask) in packet[at..at + 4].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        packet
    }

    fn shown(datagram: &[u8], known: Option<ConnectionId>) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        handshake(datagram, known, |_, offset, bytes| all.push((offset, bytes.to_vec())));
        all
    }

    /// RFC 9001, A.1 and A.2.
    #[test]
    fn keys_and_a_packet_are_the_published_ones() {
        let id = hex("8394c8f03e515708");
        let keys = Keys::new(&VERSIONS[0], &ConnectionId::new(&id).unwrap());
        assert_eq!(keys.key[..], hex("1f369613dd76d5467730efcbe3b1a22d"));
        assert_eq!(keys.iv[..], hex("fa044b2f42a3fd3b46fb255c"));
        assert_eq!(keys.header[..], hex("9f50449e04a0e810283a1e9933adedd2"));
        let sample = hex("d1b1c98dd7689fb8ec11d242b123dc9b");
        assert_eq!(keys.mask(sample[..].first_chunk().unwrap())[..5], hex("437b9aec36"));
        let hello = hex("010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c
             00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d00170018
             00100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171
             fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408050806002d0002010100
             1c00024001003900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075300901100f088394c8
             f03e51570806048000ffff");
        let packet = datagram(0, &id, &id, 2, &[(0, &hello)]);
        assert_eq!(packet.len(), 1200);
        assert_eq!(packet[..22], hex("c000000001088394c8f03e5157080000449e7b9aec34"));
        assert_eq!(packet[22..38], sample);
        assert_eq!(packet[1184..], hex("e221af44860018ab0856972e194cd934"));
        assert_eq!(shown(&packet, None), [(0, hello)]);
    }

    /// RFC 9369, A.1.
    #[test]
    fn keys_of_version_2_are_the_published_ones() {
        let id = ConnectionId::new(&hex("8394c8f03e515708")).unwrap();
        let keys = Keys::new(&VERSIONS[1], &id);
        assert_eq!(keys.key[..], hex("8b1a0bc121284290a29e0971b5cd045d"));
        assert_eq!(keys.iv[..], hex("91f73e2351d8fa91660e909f"));
        assert_eq!(keys.header[..], hex("45b95e15235d6f45a6b19cbcb0294ba9"));
    }

    #[test]
    fn packets_behind_each_other_and_with_later_ids_are_read() {
        let first = datagram(1, b"first", b"first", 0, &[(3, b"lo"), (0, b"hel")]);
        let later = datagram(1, b"first", b"another", 1, &[(5, &[b'x'; 300])]);
        let known = ConnectionId::new(b"first");
        assert_eq!(shown(&first, None), [(3, b"lo".to_vec()), (0, b"hel".to_vec())]);
        assert_eq!(shown(&later, None), []);
        assert_eq!(shown(&later, known), [(5, vec![b'x'; 300])]);
        assert_eq!(shown(&[&first[..], &later].concat(), known).len(), 3);
        assert!(may_be_initial(&first) && !may_be_initial(&first[..4]));
        for end in 0..first.len() {
            assert_eq!(shown(&first[..end], known), [], "{end}");
        }
        let mut changed = first.clone();
        for at in 0..first.len() {
            changed[at] ^= 1;
            assert_eq!(shown(&changed, None), [], "{at}");
            changed[at] ^= 1;
        }
    }

    proptest! {
        #[test]
        fn whatever_stands_in_a_packet_is_read_to_its_end(
            frames in proptest::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..200),
            datagram in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = pieces(&frames, |_, _| {});
            let start = [&[0xc0, 0, 0, 0, 1][..], &datagram].concat();
            prop_assert_eq!(shown(&start, None), []);
        }
    }
}
