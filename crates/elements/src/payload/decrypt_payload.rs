//! DecryptPayload.

use ir::{Model, Reason};
use net::{Batch, Packet};

use super::encrypt_payload::{UNFIT, configure};
use super::sealed::PayloadLayout;
use crate::cipher::{Algorithm, BLOCK, Cipher, NOT_AUTHENTIC};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};

element! {
    /// DecryptPayload(KEY [, KEYWORDS]) -- decrypts what packets carry
    ///
    /// Undoes what EncryptPayload did with the same key and algorithm. Expects IPv4 packets with their
    /// header marked. Packets without a payload pass. Fragments are dropped, and so are packets whose
    /// lengths do not agree, that are too short to be encrypted, that are not authentic or, with
    /// `aes-128-cbc`, not padded as they should be.
    ///
    /// = KEYWORDS
    ///
    /// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, aes-128-cbc, chacha20-poly1305 or
    /// chacha20.
    ///
    /// = HANDLERS
    ///
    /// algorithm (read): the algorithm.
    /// count (read): packets whose payload was decrypted.
    ///
    /// = EXAMPLE
    ///
    /// CheckIPHeader -> IPReassembler -> DecryptPayload(site.key, ALGORITHM chacha20-poly1305) -> ...
    ///
    /// = SEE ALSO
    ///
    /// EncryptPayload, ESPDecap, IPReassembler
    DecryptPayload { category: Payload, ports: "1/1", processing: "a/a", samples: [] }
}

/// The payload is not what EncryptPayload makes.
const NOT_ENCRYPTED: Reason = Reason("not-encrypted");
/// The padding is none that the algorithm makes: the key is another one, or the packet was changed.
const PADDING: Reason = Reason("bad-padding");

/// See [`DecryptPayload::CLASS`].
pub(crate) struct DecryptPayload {
    algorithm: Algorithm,
    cipher: Cipher,
    count: u64,
}

impl DecryptPayload {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (algorithm, cipher) = configure(cx)?;
        Ok(Self { algorithm, cipher, count: 0 })
    }

    fn open(&mut self, packet: &mut Packet) -> Result<(), Reason> {
        let place = PayloadLayout::of(packet)?;
        let length = packet.len() - place.payload;
        if length == 0 {
            return Ok(());
        }
        let (nonce, tag) = (self.algorithm.nonce_len(), self.algorithm.tag_len());
        let text = length.checked_sub(nonce + tag).filter(|text| *text > 0).ok_or(NOT_ENCRYPTED)?;
        if self.algorithm.is_cbc() && text % BLOCK != 0 {
            return Err(NOT_ENCRYPTED);
        }
        let payload = &mut packet.data_mut()[place.payload..];
        let (head, rest) = payload.split_at_mut(nonce);
        let (body, end) = rest.split_at_mut(text);
        if !self.cipher.open(head, &[], body, end) {
            return Err(if tag > 0 { NOT_AUTHENTIC } else { UNFIT });
        }
        let padding = if self.algorithm.is_cbc() { padding(body).ok_or(PADDING)? } else { 0 };
        payload.copy_within(nonce..nonce + text - padding, 0);
        packet.take(nonce + padding + tag);
        place.finish(packet);
        self.count += 1;
        Ok(())
    }
}

/// The length of a padding, which each of its bytes says.
fn padding(text: &[u8]) -> Option<usize> {
    let length = usize::from(*text.last()?);
    let padding = &text[text.len().checked_sub(length)?..];
    let fits = (1..=BLOCK).contains(&length) && padding.iter().all(|b| usize::from(*b) == length);
    fits.then_some(length)
}

impl Element for DecryptPayload {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            self.open(packet).map_or_else(Verdict::Drop, |()| Verdict::Pass)
        });
    }

    fn model(&self) -> Model {
        Model::opaque("decrypts payloads")
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
