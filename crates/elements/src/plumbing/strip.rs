//! Strip and Unstrip: bytes off the front, and back on.

use ir::{Model, Op, Reason};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};

element! {
    /// Strip(LENGTH) -- removes bytes from the front of packets
    ///
    /// Removes the first LENGTH bytes. A packet that is shorter becomes empty. Header positions
    /// and the removed bytes are remembered: Unstrip brings them back.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) removes an Ethernet header.
    ///
    /// = SEE ALSO
    ///
    /// Unstrip, StripToNetworkHeader, EtherEncap
    Strip {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("14", 1, 1), ("0", 1, 1), ("3000", 1, 1)]
    }
}

/// See [`Strip::CLASS`].
pub(crate) struct Strip {
    length: u32,
}

impl Strip {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["LENGTH"]);
        let length = arguments.required("LENGTH");
        arguments.finish()?;
        Ok(Self { length })
    }
}

impl Element for Strip {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            packet.pull(self.length as usize);
        }
    }

    fn model(&self) -> Model {
        Model::from_block(vec![Op::pull(self.length), Op::emit(0u8)])
    }
}

element! {
    /// Unstrip(LENGTH) -- adds bytes to the front of packets
    ///
    /// Adds LENGTH bytes to the front. If a Strip removed bytes before, these are what comes
    /// back; else their content is unspecified. Packets that would grow beyond 65,535 bytes are
    /// dropped.
    ///
    /// = SEE ALSO
    ///
    /// Strip
    Unstrip {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("14", 1, 1), ("0", 1, 1)]
    }
}

/// See [`Unstrip::CLASS`].
pub(crate) struct Unstrip {
    length: u16,
}

/// Larger than an IP packet or a buffer can be.
const TOO_LONG: Reason = Reason("too-long");

impl Unstrip {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["LENGTH"]);
        let length = arguments.required("LENGTH");
        arguments.finish()?;
        Ok(Self { length })
    }
}

impl Element for Unstrip {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            if packet.len() + usize::from(self.length) > 0xffff {
                return Verdict::Drop(TOO_LONG);
            }
            packet.push(usize::from(self.length));
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let fits = ir::field::meta::LEN.le(0xffffu32 - u32::from(self.length));
        Model::from_block(vec![Op::If(
            fits,
            vec![Op::pull(-i32::from(self.length)), Op::emit(0u8)],
            vec![Op::Drop(TOO_LONG)],
        )])
    }
}
