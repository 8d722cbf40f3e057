//! EncryptPayload.

use ir::{Model, Reason};
use net::{Batch, Packet};

use super::sealed::PayloadLayout;
use crate::cipher::{self, Algorithm, BLOCK, Cipher, Nonces, USED_UP};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// EncryptPayload(KEY [, KEYWORDS]) -- encrypts what packets carry
    ///
    /// Expects IPv4 packets with their header marked. What is behind the header of TCP or UDP, and behind
    /// that of IP for other protocols, is replaced by a nonce, the ciphertext, and the tag that
    /// authenticates it. Headers stay readable; their lengths and checksums are made anew. Packets
    /// without a payload pass. Fragments are dropped, and so are packets that would be longer than
    /// 65,535 bytes or whose lengths do not agree.
    ///
    /// KEY is a file with hexadecimal digits, or `env:` and the name of an environment variable with them.
    /// Keys are read when the element is made, are shown by nothing, and are zeroed at the end.
    ///
    /// A nonce is used once. Each worker and each start count from a random number of their own, so one
    /// key may serve several workers, and hot swaps. After 2^48 packets, packets are dropped: a new
    /// start and a new key are due. An initialisation vector of CBC is such a number encrypted.
    ///
    /// `aes-128-cbc` and `chacha20` do not authenticate: whoever changes packets is not noticed. Headers
    /// are authenticated by none, as address translation may change them, and packets that are sent
    /// again are not noticed: ESPEncap does that.
    ///
    /// = KEYWORDS
    ///
    /// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, aes-128-cbc, chacha20-poly1305 or
    /// chacha20. Payloads grow by 28 bytes, by 17 to 32 with `aes-128-cbc`, by 12 with `chacha20`.
    ///
    /// = HANDLERS
    ///
    /// algorithm (read): the algorithm.
    /// count (read): packets whose payload was encrypted.
    ///
    /// = EXAMPLE
    ///
    /// CheckIPHeader -> EncryptPayload(site.key, ALGORITHM chacha20-poly1305) -> IPFragmenter(1500) -> ...
    ///
    /// = SEE ALSO
    ///
    /// DecryptPayload, ESPEncap, IPFragmenter
    EncryptPayload { category: Payload, ports: "1/1", processing: "a/a", samples: [] }
}

/// What payloads are encrypted with.
pub(super) const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::Aes128Gcm,
    Algorithm::Aes256Gcm,
    Algorithm::Aes128Cbc,
    Algorithm::ChaCha20Poly1305,
    Algorithm::ChaCha20,
];

/// The text does not fit the cipher: never, as its length is made to.
pub(super) const UNFIT: Reason = Reason("unfit-for-cipher");

/// The arguments that both elements have.
pub(super) fn configure(cx: &mut Configure<'_>) -> Result<(Algorithm, Cipher), Failed> {
    let mut arguments = cx.arguments(&["KEY", "ALGORITHM"]);
    let algorithm = Algorithm::argument(&mut arguments, &ALGORITHMS);
    let key = cipher::key(&mut arguments, algorithm, algorithm.key_len());
    arguments.finish()?;
    let cipher = key.and_then(|key| Cipher::new(algorithm, &key)).ok_or(Failed)?;
    Ok((algorithm, cipher))
}

/// See [`EncryptPayload::CLASS`].
pub(crate) struct EncryptPayload {
    algorithm: Algorithm,
    cipher: Cipher,
    nonces: Nonces,
    count: u64,
}

impl EncryptPayload {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (algorithm, cipher) = configure(cx)?;
        Ok(Self { algorithm, cipher, nonces: Nonces::new(cx)?, count: 0 })
    }

    fn verdict(&mut self, packet: &mut Packet) -> Verdict {
        let place = match PayloadLayout::of(packet) {
            Ok(place) => place,
            Err(why) => return Verdict::Drop(why),
        };
        let length = packet.len() - place.payload;
        if length == 0 {
            return Verdict::Pass;
        }
        let (nonce, tag) = (self.algorithm.nonce_len(), self.algorithm.tag_len());
        let padding = if self.algorithm.is_cbc() { BLOCK - length % BLOCK } else { 0 };
        let grown = nonce + padding + tag;
        if packet.len() - place.network + grown > 0xffff {
            return Verdict::Drop(TOO_LONG);
        }
        let Some(number) = self.nonces.next() else { return Verdict::Drop(USED_UP) };
        packet.put(grown);
        let payload = &mut packet.data_mut()[place.payload..];
        payload.copy_within(..length, nonce);
        let (nonce, rest) = payload.split_at_mut(nonce);
        let (text, tag) = rest.split_at_mut(length + padding);
        text[length..].fill(padding as u8);
        self.cipher.nonce(number, nonce);
        if !self.cipher.seal(nonce, &[], text, tag) {
            return Verdict::Drop(UNFIT);
        }
        place.finish(packet);
        self.count += 1;
        Verdict::Pass
    }
}

impl Element for EncryptPayload {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.verdict(packet));
    }

    fn model(&self) -> Model {
        Model::opaque("encrypts payloads")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("algorithm"), Handler::count("count")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.count.to_string(),
            _ => self.algorithm.name().to_string(),
        })
    }
}
