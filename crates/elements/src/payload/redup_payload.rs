//! RedupPayload.

use ir::{Model, Reason};
use net::{Batch, Packet};

use super::dedup_payload::memory;
use super::redundancy::{Decoder, Wrong};
use super::sealed::PayloadLayout;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// RedupPayload([MEMORY]) -- gives payloads back that DedupPayload replaced
    ///
    /// Expects IPv4 packets with their header marked. What DedupPayload, with the same MEMORY, made of payloads
    /// is undone. Packets without a payload pass. Fragments are dropped, and so are payloads that
    /// DedupPayload does not make, and those that refer to a payload that was not received.
    ///
    /// What was received leaves on output 1, if that is connected: after a burst, packets of up to 256 numbers
    /// of four bytes, without any header. They are to go to DedupPayload's input 1, in packets of UDP for
    /// instance. Where some are lost, less is saved.
    ///
    /// = KEYWORDS
    ///
    /// MEMORY (number, default 16777216): bytes that payloads take at the most.
    ///
    /// = HANDLERS
    ///
    /// count (read): payloads that were given back.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> IPReassembler -> r :: RedupPayload -> ...
    /// r[1] -> UDPIPEncap(192.0.2.2, 4000, 192.0.2.1, 4000) -> ...
    ///
    /// = SEE ALSO
    ///
    /// DedupPayload, DecryptPayload
    RedupPayload { category: Payload, ports: "1/1-2", processing: "h/h", samples: [] }
}

/// The payload is none that DedupPayload makes.
const NOT_CODED: Reason = Reason("not-deduplicated");
/// The payload refers to one that was not received.
const MISSING: Reason = Reason("missing-reference");

/// Numbers in a packet of them.
const NUMBERS: usize = 256;

/// See [`RedupPayload::CLASS`].
pub(crate) struct RedupPayload {
    decoder: Decoder,
    payload: Vec<u8>,
    /// Payloads that the other side has not heard of.
    received: Vec<u32>,
    reports: bool,
    count: u64,
}

impl RedupPayload {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let reports = cx.outputs() > 1;
        let decoder = Decoder::new(memory(cx)?);
        Ok(Self { decoder, payload: Vec::new(), received: Vec::new(), reports, count: 0 })
    }

    fn give_back(&mut self, packet: &mut Packet) -> Result<(), Reason> {
        let place = PayloadLayout::of(packet)?;
        let coded = &packet.data()[place.payload..];
        if coded.is_empty() {
            return Ok(());
        }
        let number =
            self.decoder.decode(coded, &mut self.payload).map_err(|wrong| match wrong {
                Wrong::Format => NOT_CODED,
                Wrong::Reference => MISSING,
            })?;
        if place.payload - place.network + self.payload.len() > 0xffff {
            return Err(TOO_LONG);
        }
        place.replace(packet, &self.payload);
        if self.reports {
            self.received.push(number);
        }
        self.count += 1;
        Ok(())
    }
}

impl Element for RedupPayload {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            self.give_back(packet).map_or_else(Verdict::Drop, |()| Verdict::Pass)
        });
        for numbers in self.received.chunks(NUMBERS) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            let packet = cx.core.pool.packet(&bytes);
            cx.emit(1, packet);
        }
        self.received.clear();
    }

    fn model(&self) -> Model {
        Model::opaque("keeps payloads")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.count.to_string())
    }
}
