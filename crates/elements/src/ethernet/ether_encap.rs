//! EtherEncap.

use ir::model::set_bytes;
use ir::{Base, Model, Op};
use net::wire::EtherAddr;
use net::{Batch, Header};

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
    header: [u8; 14],
}

impl EtherEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ETHERTYPE", "SRC", "DST"]);
        let ether_type: u16 = arguments.required("ETHERTYPE");
        let source: EtherAddress = arguments.required("SRC");
        let destination: EtherAddress = arguments.required("DST");
        arguments.finish()?;
        let mut header = [0; 14];
        header[..6].copy_from_slice(&destination.0);
        header[6..12].copy_from_slice(&source.0);
        header[12..].copy_from_slice(&ether_type.to_be_bytes());
        Ok(Self { header })
    }
}

impl Element for EtherEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        let header = self.header;
        for packet in batch.iter_mut() {
            packet.prepend(&header);
            packet.set_header_offset(Header::Mac, 0);
            packet.set_header_offset(Header::Network, 14);
        }
    }

    fn model(&self) -> Model {
        let mut block = vec![Op::pull(-14)];
        block.extend(set_bytes(Base::Data, 0, &self.header));
        block.extend([
            Op::Mark(Header::Mac, 0u8.into()),
            Op::Mark(Header::Network, 14u8.into()),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("dst"), Handler::both("ethertype")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let address = |at: usize| self.header[at..at + 6].try_into().map(EtherAddr);
        Ok(match (handler, address(0), address(6)) {
            ("src", _, Ok(source)) => format!("{source:#}"),
            ("dst", Ok(destination), _) => format!("{destination:#}"),
            _ => u16::from_be_bytes([self.header[12], self.header[13]]).to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "src" => self.header[6..12].copy_from_slice(&parse_value::<EtherAddress>(value)?.0),
            "dst" => self.header[..6].copy_from_slice(&parse_value::<EtherAddress>(value)?.0),
            _ => self.header[12..].copy_from_slice(&parse_value::<u16>(value)?.to_be_bytes()),
        }
        Ok(())
    }
}
