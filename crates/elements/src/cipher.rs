//! Ciphers with their keys, which nothing shows and which are zeroed when they are dropped; and nonces that are used
//! once.

use aes::Aes128;
use aes::cipher::array::Array;
use aes::cipher::{
    BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit, KeyIvInit,
    StreamCipher,
};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20::ChaCha20;
use chacha20poly1305::ChaCha20Poly1305;
use hmac_sha256::HMAC;
use ir::Reason;
use zeroize::Zeroizing;

use crate::configure::{Arguments, Configure, Failed};

/// Packets that are left for a nonce to be used once.
const MOST_NONCES: u64 = 1 << 48;

/// All nonces of an element were used: another key is needed.
pub(crate) const USED_UP: Reason = Reason("nonces-used-up");
/// The packet was changed, or sealed with another key.
pub(crate) const NOT_AUTHENTIC: Reason = Reason("not-authentic");

/// Bytes of an authentication tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a block of AES.
pub(crate) const BLOCK: usize = 16;

/// What packets are sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// AES-128 in CBC mode, without authentication.
    Aes128Cbc,
    /// The same, with HMAC-SHA-256-128 (RFC 4868).
    Aes128CbcHmacSha256,
    Aes128Gcm,
    Aes256Gcm,
    /// Without authentication.
    ChaCha20,
    ChaCha20Poly1305,
}

impl Algorithm {
    const ALL: [Self; 6] = [
        Self::Aes128Cbc,
        Self::Aes128CbcHmacSha256,
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20,
        Self::ChaCha20Poly1305,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Aes128Cbc => "aes-128-cbc",
            Self::Aes128CbcHmacSha256 => "aes-128-cbc-hmac-sha256",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20 => "chacha20",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// Bytes of its keys: of both, if it has two, the one for encryption first.
    pub(crate) fn key_len(self) -> usize {
        match self {
            Self::Aes128Cbc | Self::Aes128Gcm => 16,
            Self::Aes128CbcHmacSha256 => 16 + 32,
            Self::Aes256Gcm | Self::ChaCha20 | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Whether it is a block mode, whose texts are padded.
    pub(crate) fn is_cbc(self) -> bool {
        matches!(self, Self::Aes128Cbc | Self::Aes128CbcHmacSha256)
    }

    /// Bytes of the tag behind a ciphertext.
    pub(crate) fn tag_len(self) -> usize {
        if matches!(self, Self::Aes128Cbc | Self::ChaCha20) { 0 } else { TAG }
    }

    /// Bytes of a nonce, or of an initialisation vector.
    pub(crate) fn nonce_len(self) -> usize {
        if self.is_cbc() { BLOCK } else { 12 }
    }

    /// The keyword ALGORITHM: one of these, the first by default.
    pub(crate) fn argument(arguments: &mut Arguments<'_, '_>, of: &[Self]) -> Self {
        let Some(word) = arguments.keyword_argument("ALGORITHM") else { return of[0] };
        let named = Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(&word.text));
        named.filter(|algorithm| of.contains(algorithm)).unwrap_or_else(|| {
            let names: Vec<&str> = of.iter().map(|algorithm| algorithm.name()).collect();
            let message = format!("'{}' is not one of {}", word.text, names.join(", "));
            arguments.error(&word, message);
            of[0]
        })
    }
}

/// A key of so many bytes that the argument KEY names: a file with hexadecimal digits, or `env:` and an
/// environment variable with them.
pub(crate) fn key(
    arguments: &mut Arguments<'_, '_>,
    algorithm: Algorithm,
    length: usize,
) -> Option<Zeroizing<Vec<u8>>> {
    let Some(place) = arguments.keyword_argument("KEY").or_else(|| arguments.next_plain()) else {
        let span = arguments.cx().span();
        let error = ir::Diagnostic::error("missing-argument", "KEY is missing").label(span, "");
        arguments.report(error.help("name a file with a key, or env:VARIABLE"));
        return None;
    };
    let text = arguments.read_key(&place)?;
    let digits = text.trim().as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16);
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    let is_hex = digits.len() <= 2 * length
        && digits.chunks(2).all(|pair| {
            match (digit(pair[0]), pair.get(1).and_then(|b| digit(*b))) {
                (Some(high), Some(low)) => {
                    bytes.push((high << 4 | low) as u8);
                    true
                }
                _ => false,
            }
        });
    if is_hex && bytes.len() == length {
        return Some(bytes);
    }
    // Not a byte of it is shown, not even one that is wrong.
    let message = format!(
        "the key of '{}' is not one of {}: {length} bytes as {} hexadecimal digits, and nothing else",
        place.text,
        algorithm.name(),
        2 * length
    );
    let error = ir::Diagnostic::error("bad-key", message).label(place.span, "");
    arguments.report(error.help(format!("`openssl rand -hex {length}` makes one")));
    None
}

/// A cipher with its key.
pub(crate) enum Cipher {
    Cbc(Box<Aes128>, Option<Zeroizing<[u8; 32]>>),
    Gcm128(Box<Aes128Gcm>),
    Gcm256(Box<Aes256Gcm>),
    ChaCha(Zeroizing<[u8; 32]>),
    ChaChaPoly(Box<ChaCha20Poly1305>),
}

impl Cipher {
    /// A cipher; none if the key is not of its length.
    pub(crate) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        if key.len() != algorithm.key_len() {
            return None;
        }
        Some(match algorithm {
            Algorithm::Aes128Cbc => Self::Cbc(Box::new(Aes128::new_from_slice(key).ok()?), None),
            Algorithm::Aes128CbcHmacSha256 => {
                let (key, of_tag) = key.split_at(16);
                let of_tag = Zeroizing::new(*of_tag.first_chunk()?);
                Self::Cbc(Box::new(Aes128::new_from_slice(key).ok()?), Some(of_tag))
            }
            Algorithm::Aes128Gcm => Self::Gcm128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            Algorithm::Aes256Gcm => Self::Gcm256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            Algorithm::ChaCha20 => Self::ChaCha(Zeroizing::new(*key.first_chunk()?)),
            Algorithm::ChaCha20Poly1305 => {
                Self::ChaChaPoly(Box::new(ChaCha20Poly1305::new_from_slice(key).ok()?))
            }
        })
    }

    /// Makes the nonce that goes with a packet of a number that is used once. An initialisation vector of CBC is
    /// that number encrypted, so that nobody can predict it (NIST SP 800-38A, appendix C).
    pub(crate) fn nonce(&self, number: [u8; BLOCK], nonce: &mut [u8]) {
        match self {
            Self::Cbc(aes, _) => {
                let mut block = Array::from(number);
                aes.encrypt_block(&mut block);
                nonce.copy_from_slice(&block);
            }
            _ => nonce.copy_from_slice(&number[BLOCK - nonce.len()..]),
        }
    }

    /// Encrypts a text in place and writes its tag, which covers `head`, too. The nonce and the tag have the
    /// algorithm's length, and the text is whole blocks if it is a block mode; `false` if not. With CBC, the tag
    /// covers the nonce, which lies between.
    #[must_use]
    pub(crate) fn seal(&self, nonce: &[u8], head: &[u8], text: &mut [u8], tag: &mut [u8]) -> bool {
        let sealed = match self {
            Self::Cbc(aes, of_tag) => {
                let (Ok(mode), (blocks, [])) = (
                    cbc::Encryptor::<&Aes128>::inner_iv_slice_init(aes, nonce),
                    Array::slice_as_chunks_mut(text),
                ) else {
                    return false;
                };
                { mode }.encrypt_blocks(blocks);
                let Some(of_tag) = of_tag else { return tag.is_empty() };
                return tag_of(of_tag, [head, nonce, text], |made| {
                    tag.copy_from_slice(&made[..tag.len()]);
                    true
                });
            }
            Self::ChaCha(key) => return chacha(key, nonce, text) && tag.is_empty(),
            Self::Gcm128(gcm) => seal_with(&**gcm, nonce, head, text),
            Self::Gcm256(gcm) => seal_with(&**gcm, nonce, head, text),
            Self::ChaChaPoly(poly) => seal_with(&**poly, nonce, head, text),
        };
        sealed.is_some_and(|made| {
            let fits = made.len() == tag.len();
            if fits {
                tag.copy_from_slice(&made);
            }
            fits
        })
    }

    /// Decrypts a text in place; `false`, and the text as it was, if its tag is another one.
    #[must_use]
    pub(crate) fn open(&self, nonce: &[u8], head: &[u8], text: &mut [u8], tag: &[u8]) -> bool {
        match self {
            Self::Cbc(aes, of_tag) => {
                let is_authentic = match of_tag {
                    None => tag.is_empty(),
                    Some(of_tag) => {
                        tag_of(of_tag, [head, nonce, text], |made| is_same(&made[..TAG], tag))
                    }
                };
                let mode = cbc::Decryptor::<&Aes128>::inner_iv_slice_init(aes, nonce);
                match (mode, Array::slice_as_chunks_mut(text)) {
                    (Ok(mut mode), (blocks, [])) if is_authentic => {
                        mode.decrypt_blocks(blocks);
                        true
                    }
                    _ => false,
                }
            }
            Self::ChaCha(key) => tag.is_empty() && chacha(key, nonce, text),
            Self::Gcm128(gcm) => open_with(&**gcm, nonce, head, text, tag),
            Self::Gcm256(gcm) => open_with(&**gcm, nonce, head, text, tag),
            Self::ChaChaPoly(poly) => open_with(&**poly, nonce, head, text, tag),
        }
    }
}

fn chacha(key: &[u8; 32], nonce: &[u8], text: &mut [u8]) -> bool {
    let cipher = ChaCha20::new_from_slices(key, nonce);
    cipher.is_ok_and(|mut cipher| cipher.try_apply_keystream(text).is_ok())
}

fn tag_of<T>(key: &[u8; 32], parts: [&[u8]; 3], then: impl FnOnce(&[u8; 32]) -> T) -> T {
    let mut made = HMAC::new(key);
    parts.into_iter().for_each(|part| made.update(part));
    then(&made.finalize())
}

/// Compares in a time that does not depend on the bytes.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && std::hint::black_box(one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

fn seal_with<A: AeadInOut>(
    aead: &A,
    nonce: &[u8],
    head: &[u8],
    text: &mut [u8],
) -> Option<Array<u8, A::TagSize>> {
    let nonce = Array::try_from(nonce).ok()?;
    aead.encrypt_inout_detached(&nonce, head, text.into()).ok()
}

fn open_with<A: AeadInOut>(
    aead: &A,
    nonce: &[u8],
    head: &[u8],
    text: &mut [u8],
    tag: &[u8],
) -> bool {
    match (Array::try_from(nonce), Array::try_from(tag)) {
        (Ok(nonce), Ok(tag)) => {
            aead.decrypt_inout_detached(&nonce, head, text.into(), &tag).is_ok()
        }
        _ => false,
    }
}

/// Numbers that are used once with a key, whoever else uses it: they count from a place that is drawn, for each
/// worker and each start anew, among 2^96 or more. Two that send a whole 2^48 packets each meet with a probability
/// below 2^-46.
pub(crate) struct Nonces {
    next: u128,
    left: u64,
}

impl Nonces {
    /// Draws where an element's numbers begin.
    ///
    /// # Errors
    /// [`Failed`] after reporting that there is no entropy.
    pub(crate) fn new(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Ok(Self::from(u128::from_be_bytes(cx.entropy()?)))
    }

    pub(crate) fn from(next: u128) -> Self {
        Self { next, left: MOST_NONCES }
    }

    /// The next number; none when all are used up, for no number comes again.
    pub(crate) fn next(&mut self) -> Option<[u8; BLOCK]> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next;
        self.next = number.wrapping_add(1);
        Some(number.to_be_bytes())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Seals and opens a text, and finds what a published vector says; nothing else opens.
    fn is_published(algorithm: Algorithm, vector: [&str; 6]) {
        let [key, nonce, head, text, sealed, tag] = vector.map(hex);
        let cipher = Cipher::new(algorithm, &key).unwrap();
        let (mut found, mut found_tag) = (text.clone(), vec![0; algorithm.tag_len()]);
        assert!(cipher.seal(&nonce, &head, &mut found, &mut found_tag));
        assert_eq!((&found, &found_tag), (&sealed, &tag), "{algorithm:?}");
        if !tag.is_empty() {
            for wrong in 0..tag.len() {
                let mut tag = tag.clone();
                tag[wrong] ^= 1;
                assert!(!cipher.open(&nonce, &head, &mut found, &tag));
                assert_eq!(found, sealed, "what is not authentic stays as it came");
            }
            assert!(!cipher.open(&nonce, b"other", &mut found, &tag));
            assert!(!cipher.open(&nonce, &head, &mut found, &tag[1..]));
        }
        assert!(!cipher.open(&nonce[1..], &head, &mut found.clone(), &tag));
        assert!(cipher.open(&nonce, &head, &mut found, &tag));
        assert_eq!(found, text);
    }

    #[test]
    fn ciphers_do_what_is_published() {
        // NIST SP 800-38A, F.2.1.
        is_published(
            Algorithm::Aes128Cbc,
            [
                "2b7e151628aed2a6abf7158809cf4f3c",
                "000102030405060708090a0b0c0d0e0f",
                "",
                "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
                "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
                "",
            ],
        );
        // The GCM specification of McGrew and Viega, test cases 4 and 16.
        let text = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                    1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let head = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
        is_published(
            Algorithm::Aes128Gcm,
            [
                "feffe9928665731c6d6a8f9467308308",
                "cafebabefacedbaddecaf888",
                head,
                text,
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ],
        );
        is_published(
            Algorithm::Aes256Gcm,
            [
                "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
                "cafebabefacedbaddecaf888",
                head,
                text,
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ],
        );
        // RFC 8439, 2.8.2.
        is_published(
            Algorithm::ChaCha20Poly1305,
            [
                "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
                "070000004041424344454647",
                "50515253c0c1c2c3c4c5c6c7",
                "4c616469657320616e642047656e746c656d656e206f662074686520636c6173\
                 73206f66202739393a204966204920636f756c64206f6666657220796f75206f\
                 6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73\
                 637265656e20776f756c642062652069742e",
                "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
                 3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
                 92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
                 3ff4def08e4b7a9de576d26586cec64b6116",
                "1ae10b594f09e26a7e902ecbd0600691",
            ],
        );
        // RFC 8439, A.1, test vector 1: the keystream of block 0.
        is_published(
            Algorithm::ChaCha20,
            [
                "0000000000000000000000000000000000000000000000000000000000000000",
                "000000000000000000000000",
                "",
                "0000000000000000000000000000000000000000000000000000000000000000",
                "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7",
                "",
            ],
        );
    }

    #[test]
    fn a_keyed_hash_covers_head_vector_and_text() {
        let key = [7; 48];
        let cipher = Cipher::new(Algorithm::Aes128CbcHmacSha256, &key).unwrap();
        let (mut text, mut tag) = ([1; 32], [0; TAG]);
        assert!(cipher.seal(&[3; 16], b"head", &mut text, &mut tag));
        let mac = HMAC::mac([&b"head"[..], &[3; 16], &text].concat(), [7; 32]);
        assert_eq!(tag, mac[..TAG]);
        for (nonce, head) in [([4; 16], &b"head"[..]), ([3; 16], b"hexd")] {
            assert!(!cipher.open(&nonce, head, &mut text, &tag));
        }
        assert!(!cipher.seal(&[3; 16], b"", &mut text[1..], &mut tag), "no whole blocks");
        assert!(cipher.open(&[3; 16], b"head", &mut text, &tag));
        assert_eq!(text, [1; 32]);
        assert!(Cipher::new(Algorithm::Aes128Gcm, &key).is_none());
    }

    #[test]
    fn a_nonce_is_given_once() {
        let mut nonces = Nonces::from(u128::MAX);
        assert_eq!((nonces.next(), nonces.next()), (Some([0xff; 16]), Some([0; 16])));
        nonces.left = 1;
        assert!(nonces.next().is_some());
        assert_eq!((nonces.next(), nonces.next()), (None, None));
    }
}
