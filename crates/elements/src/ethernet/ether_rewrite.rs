//! EtherRewrite and EtherMirror.

use ir::field::{eth, meta};
use ir::model::Reg;
use ir::{Base, Field, Model, Op, Reason};
use net::wire::EtherAddr;
use net::{Batch, Header};

use crate::argument::{EtherAddress, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};

element! {
    /// EtherRewrite(SRC, DST) -- sets the addresses of Ethernet headers
    ///
    /// Sets source and destination of the marked link-layer header, or of one at the start of
    /// the data if none is marked. Packets too short for the addresses are dropped.
    ///
    /// = HANDLERS
    ///
    /// src, dst (read, write): the addresses.
    ///
    /// = SEE ALSO
    ///
    /// EtherEncap, EtherMirror
    EtherRewrite {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [("02:11:11:11:11:11, 02:22:22:22:22:22", 1, 1)]
    }
}

/// See [`EtherRewrite::CLASS`].
pub(crate) struct EtherRewrite {
    source: EtherAddr,
    destination: EtherAddr,
}

/// The packet is too short for an Ethernet header's addresses.
const TOO_SHORT: Reason = Reason("too-short");

impl EtherRewrite {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SRC", "DST"]);
        let source = arguments.required("SRC");
        let destination = arguments.required("DST");
        arguments.finish()?;
        Ok(Self { source, destination })
    }
}

impl Element for EtherRewrite {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let addresses = [self.destination.0, self.source.0];
        let addresses = addresses.as_flattened();
        cx.each(batch, |packet, _| {
            let bytes = match packet.header_offset(Header::Mac) {
                Some(_) => packet.header_mut(Header::Mac).unwrap_or_default(),
                None => packet.data_mut(),
            };
            let Some(front) = bytes.get_mut(..12) else { return Verdict::Drop(TOO_SHORT) };
            front.copy_from_slice(addresses);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let at = |base: Base, available: Field| {
            vec![
                Op::when(available.lt(12u8), vec![Op::Drop(TOO_SHORT)]),
                Field::bytes(base, 0, 6).set(self.destination.to_bits()),
                Field::bytes(base, 6, 6).set(self.source.to_bits()),
                Op::emit(0u8),
            ]
        };
        Model::from_block(vec![Op::If(
            meta::HAS_MAC.eq(1u8),
            at(Base::Header(Header::Mac), meta::AVAIL_MAC),
            at(Base::Data, meta::LEN),
        )])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let address = if handler == "src" { self.source } else { self.destination };
        Ok(format!("{address:#}"))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let address = parse_value::<EtherAddress>(value)?;
        match handler {
            "src" => self.source = address,
            _ => self.destination = address,
        }
        Ok(())
    }
}

element! {
    /// EtherMirror() -- swaps the addresses of Ethernet headers
    ///
    /// Swaps source and destination of the Ethernet header at the start of the data. Packets too
    /// short for the addresses are dropped.
    ///
    /// = SEE ALSO
    ///
    /// EtherRewrite, IPMirror
    EtherMirror {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`EtherMirror::CLASS`].
pub(crate) struct EtherMirror;

impl EtherMirror {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for EtherMirror {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(addresses) = packet.data_mut().first_chunk_mut::<12>() else {
                return Verdict::Drop(TOO_SHORT);
            };
            addresses.rotate_left(6);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        const OLD: Reg = Reg(0);
        Model::from_block(vec![
            Op::when(meta::LEN.lt(12u8), vec![Op::Drop(TOO_SHORT)]),
            Op::Let(OLD, eth::DST.get()),
            eth::DST.set(eth::SRC),
            eth::SRC.set(OLD),
            Op::emit(0u8),
        ])
    }
}
