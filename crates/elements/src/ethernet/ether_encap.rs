//! EtherEncap.

use ir::field::eth;
use ir::model::{Block, set_bytes};
use ir::{Base, Expr, Model, Op};
use net::wire::{EtherAddr, Ethernet, ether};
use net::{Batch, Header, Packet};

use crate::argument::{EtherAddress, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};

element! {
    /// EtherEncap(ETHERTYPE, SRC, DST) -- puts an Ethernet header in front of packets
    ///
    /// The header has the type ETHERTYPE, source SRC and destination DST. It is marked, and what
    /// follows it as the network header.
    ///
    /// = HANDLERS
    ///
    /// src, dst, ethertype (read, write): the fields.
    ///
    /// = EXAMPLE
    ///
    /// EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
    ///
    /// = SEE ALSO
    ///
    /// EtherVLANEncap, ARPQuerier, EtherRewrite, Strip
    EtherEncap {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [("0x0800, 1:1:1:1:1:1, 2-2-2-2-2-2", 1, 1)]
    }
}

/// See [`EtherEncap::CLASS`].
pub(crate) struct EtherEncap {
    source: EtherAddr,
    destination: EtherAddr,
    ether_type: u16,
}

impl EtherEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ETHERTYPE", "SRC", "DST"]);
        let ether_type = arguments.required("ETHERTYPE");
        let source: EtherAddress = arguments.required("SRC");
        let destination: EtherAddress = arguments.required("DST");
        arguments.finish()?;
        Ok(Self { source, destination, ether_type })
    }
}

/// An Ethernet header.
#[inline]
pub(crate) fn header(to: EtherAddr, from: EtherAddr, ether_type: u16) -> [u8; ether::HEADER_LEN] {
    let mut bytes = [0; ether::HEADER_LEN];
    if let Some(mut header) = Ethernet::new(&mut bytes[..]) {
        header.set_dst(to);
        header.set_src(from);
        header.set_ether_type(ether_type);
    }
    bytes
}

/// Puts an Ethernet header in front of a packet. It is marked, and what follows it as the network
/// header.
#[inline]
pub(crate) fn encapsulate(packet: &mut Packet, header: &[u8; ether::HEADER_LEN]) {
    packet.prepend(header);
    mark(packet);
}

/// Marks the header that a frame begins with, and what follows it as the network header.
#[inline]
pub(crate) fn mark(packet: &mut Packet) {
    packet.set_header_offset(Header::Mac, 0);
    packet.set_header_offset(Header::Network, ether::HEADER_LEN as isize);
}

/// What [`encapsulate`] means.
pub(crate) fn model_encapsulate(to: impl Into<Expr>, from: EtherAddr, ether_type: u16) -> Block {
    vec![
        Op::pull(-(ether::HEADER_LEN as i32)),
        eth::DST.set(to),
        eth::SRC.set(from.to_bits()),
        eth::TYPE.set(ether_type),
        Op::Mark(Header::Mac, 0u8.into()),
        Op::Mark(Header::Network, ether::HEADER_LEN.into()),
    ]
}

impl Element for EtherEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        let header = header(self.destination, self.source, self.ether_type);
        for packet in batch.iter_mut() {
            encapsulate(packet, &header);
        }
    }

    fn model(&self) -> Model {
        // One run of bytes is one write.
        let mut block = vec![Op::pull(-(ether::HEADER_LEN as i32))];
        let header = header(self.destination, self.source, self.ether_type);
        block.extend(set_bytes(Base::Data, 0, &header));
        block.extend([
            Op::Mark(Header::Mac, 0u8.into()),
            Op::Mark(Header::Network, ether::HEADER_LEN.into()),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("dst"), Handler::both("ethertype")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "src" => format!("{:#}", self.source),
            "dst" => format!("{:#}", self.destination),
            _ => self.ether_type.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "src" => self.source = parse_value::<EtherAddress>(value)?,
            "dst" => self.destination = parse_value::<EtherAddress>(value)?,
            _ => self.ether_type = parse_value(value)?,
        }
        Ok(())
    }
}
