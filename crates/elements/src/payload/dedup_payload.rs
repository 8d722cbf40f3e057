//! DedupPayload.

use ir::Model;
use net::{Batch, Packet};

use super::redundancy::{Encoder, HEAD, MOST};
use super::sealed::PayloadLayout;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// DedupPayload([MEMORY]) -- replaces what payloads repeat by references to earlier ones
    ///
    /// Expects IPv4 packets with their header marked on input 0. Bytes behind the header of TCP or UDP, and
    /// behind that of IP for other protocols, that a recent payload had, too, are replaced by references to
    /// it, if they are 32 bytes or more: network redundancy elimination, with fingerprints of the kind of
    /// Rabin's. RedupPayload gives the payloads back. Headers stay readable; their lengths and checksums are
    /// made anew. Payloads without repeated bytes grow by 9 bytes. Packets without a payload pass.
    /// Fragments are dropped, and so are payloads of more than 32,767 bytes.
    ///
    /// Where packets may be lost, input 1 takes what RedupPayload's output 1 says that it received, and only
    /// such payloads are referred to. Without it, each payload is referred to that was sent: packets that
    /// refer to a lost one are lost, too.
    ///
    /// Payloads take at most MEMORY bytes, and the oldest are forgotten. Both sides need the same MEMORY. A
    /// packet may be overtaken by as many bytes as a quarter of it.
    /// Fingerprints depend on a random number, so that nobody can choose payloads whose fingerprints meet.
    ///
    /// = KEYWORDS
    ///
    /// MEMORY (number, default 16777216): bytes that payloads take at the most.
    ///
    /// = HANDLERS
    ///
    /// bytes_in, bytes_out (read): bytes of payloads as they came and as they left.
    /// saved (read): the difference; negative if there is little that repeats.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> d :: DedupPayload -> ...
    /// ... -> StripIPHeader -> Strip(8) -> [1] d;
    ///
    /// = SEE ALSO
    ///
    /// RedupPayload, EncryptPayload
    DedupPayload { category: Payload, ports: "1-2/1", processing: "h/h", samples: [] }
}

/// Bytes that payloads take if nothing else is said.
pub(super) const MEMORY: usize = 1 << 24;
/// The least that is of use: a few payloads.
pub(super) const LEAST_MEMORY: usize = 1 << 16;

/// See [`DedupPayload::CLASS`].
pub(crate) struct DedupPayload {
    encoder: Encoder,
    coded: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
}

/// Reads MEMORY, which is claimed.
pub(super) fn memory(cx: &mut Configure<'_>) -> Result<usize, Failed> {
    let span = cx.span();
    let mut arguments = cx.arguments(&["MEMORY"]);
    let memory = arguments.optional("MEMORY").unwrap_or(MEMORY);
    arguments.claim("MEMORY", memory as u64);
    arguments.finish()?;
    if memory < LEAST_MEMORY {
        return Err(cx.error(span, format!("MEMORY is {LEAST_MEMORY} bytes or more")));
    }
    Ok(memory)
}

impl DedupPayload {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let waits = cx.inputs() > 1;
        let memory = memory(cx)?;
        let random = u128::from_be_bytes(cx.entropy()?);
        // A start is told from the one before by its numbers.
        let encoder = Encoder::new(memory, random as u64, (random >> 64) as u32, waits);
        Ok(Self { encoder, coded: Vec::new(), bytes_in: 0, bytes_out: 0 })
    }

    fn code(&mut self, packet: &mut Packet) -> Verdict {
        let place = match PayloadLayout::of(packet) {
            Ok(place) => place,
            Err(why) => return Verdict::Drop(why),
        };
        let payload = &packet.data()[place.payload..];
        if payload.is_empty() {
            return Verdict::Pass;
        }
        if payload.len() > MOST || packet.len() - place.network + HEAD > 0xffff {
            return Verdict::Drop(TOO_LONG);
        }
        self.encoder.encode(payload, &mut self.coded);
        self.bytes_in += payload.len() as u64;
        self.bytes_out += self.coded.len() as u64;
        place.replace(packet, &self.coded);
        Verdict::Pass
    }
}

impl Element for DedupPayload {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if port == 0 {
            cx.each(batch, |packet, _| self.code(packet));
            return;
        }
        for packet in batch.drain() {
            for number in packet.data().chunks_exact(4) {
                let number = number.first_chunk().copied().unwrap_or_default();
                self.encoder.known(u32::from_be_bytes(number));
            }
            cx.core.pool.recycle(packet);
        }
    }

    fn model(&self) -> Model {
        Model::opaque("keeps payloads")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("bytes_in"), Handler::count("bytes_out"), Handler::read("saved")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "bytes_in" => self.bytes_in.to_string(),
            "bytes_out" => self.bytes_out.to_string(),
            _ => (self.bytes_in as i64 - self.bytes_out as i64).to_string(),
        })
    }
}
