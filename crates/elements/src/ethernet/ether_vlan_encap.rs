//! EtherVLANEncap and StripEtherVLANHeader.

use crate::ethernet::ether_encap;
use ir::field::{anno, eth, meta, vlan};
use ir::model::{Reg, reject};
use ir::{Model, Op, Reason};
use net::wire::EtherAddr;
use net::wire::ether;
use net::wire::ether_type::VLAN;
use net::wire::vlan::{HEADER_LEN as TAG_LEN, Tci};
use net::wire::{Ethernet, Vlan};
use net::{Batch, Header, annotation};

use crate::argument::{EtherAddress, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ethernet::vlan_tag::Tag;

element! {
    /// EtherVLANEncap(ETHERTYPE, SRC, DST [, VLAN_TCI, VLAN_PCP, KEYWORDS]) -- puts an Ethernet header with a VLAN tag in front of packets
    ///
    /// The header has source SRC, destination DST, an IEEE 802.1Q tag, and the type ETHERTYPE. It
    /// is marked, and what follows it as the network header. VLAN_TCI is the whole tag control
    /// information, or ANNO for each packet's VLAN annotation.
    ///
    /// = KEYWORDS
    ///
    /// VLAN_ID (number, default 0): the VLAN, if VLAN_TCI is not given.
    /// VLAN_PCP (0 to 7, default 0): the priority.
    /// NATIVE_VLAN (number, default 0): the VLAN whose frames get no tag; -1 for none.
    ///
    /// = HANDLERS
    ///
    /// src, dst, ethertype, vlan_tci, vlan_id, vlan_pcp, native_vlan (read, write): as configured.
    ///
    /// = SEE ALSO
    ///
    /// EtherEncap, VLANEncap, StripEtherVLANHeader
    EtherVLANEncap {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [
            ("0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2, VLAN_ID 99, VLAN_PCP 6", 1, 1),
            ("0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2, ANNO", 1, 1),
            ("0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2, ANNO, NATIVE_VLAN -1", 1, 1),
            ("0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2", 1, 1)
        ]
    }
}

/// See [`EtherVLANEncap::CLASS`].
pub(crate) struct EtherVLANEncap {
    source: EtherAddr,
    destination: EtherAddr,
    tag: Tag,
    ether_type: u16,
}

impl EtherVLANEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "ETHERTYPE",
            "SRC",
            "DST",
            "VLAN_TCI",
            "VLAN_PCP",
            "VLAN_ID",
            "NATIVE_VLAN",
        ]);
        let ether_type = arguments.required("ETHERTYPE");
        let source: EtherAddress = arguments.required("SRC");
        let destination: EtherAddress = arguments.required("DST");
        let tag = Tag::configure_with_native(&mut arguments);
        arguments.finish()?;
        Ok(Self { source, destination, tag, ether_type })
    }
}

/// Bytes of an Ethernet header with a VLAN tag.
const TAGGED: isize = (ether::HEADER_LEN + TAG_LEN) as isize;

impl EtherVLANEncap {
    fn header(&self, ether_type: u16) -> [u8; ether::HEADER_LEN] {
        ether_encap::header(self.destination, self.source, ether_type)
    }
}

impl Element for EtherVLANEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            let tci = self.tag.tci(packet.annotations());
            if self.tag.is_native(tci) {
                ether_encap::encapsulate(packet, &self.header(self.ether_type));
                continue;
            }
            let mut tag = Vlan::of([0; TAG_LEN]);
            tag.set_tci(Tci(tci));
            tag.set_ether_type(self.ether_type);
            packet.prepend(&tag.into_inner());
            packet.prepend(&self.header(VLAN));
            packet.set_header_offset(Header::Mac, 0);
            packet.set_header_offset(Header::Network, TAGGED);
        }
    }

    fn model(&self) -> Model {
        const TCI: Reg = Reg(0);
        let (tci, native) = self.tag.model();
        let header = |length: i32| {
            let mut block = vec![Op::pull(-length)];
            block.extend([
                eth::DST.set(self.destination.to_bits()),
                eth::SRC.set(self.source.to_bits()),
            ]);
            block.extend([
                Op::Mark(Header::Mac, 0u8.into()),
                Op::Mark(Header::Network, length.into()),
            ]);
            block
        };
        let mut plain = header(14);
        plain.push(eth::TYPE.set(self.ether_type));
        let mut tagged = header(18);
        tagged.extend([eth::TYPE.set(VLAN), vlan::TCI.set(TCI), vlan::TYPE.set(self.ether_type)]);
        Model::from_block(vec![Op::Let(TCI, tci), Op::If(native, plain, tagged), Op::emit(0u8)])
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("src"),
                Handler::both("dst"),
                Handler::both("ethertype"),
                Handler::both("vlan_tci"),
                Handler::both("vlan_id"),
                Handler::both("vlan_pcp"),
                Handler::both("native_vlan"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "src" => format!("{:#}", self.source),
            "dst" => format!("{:#}", self.destination),
            "ethertype" => self.ether_type.to_string(),
            _ => self.tag.read(handler),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "src" => self.source = parse_value(value)?,
            "dst" => self.destination = parse_value(value)?,
            "ethertype" => self.ether_type = parse_value(value)?,
            _ => self.tag.write(handler, value)?,
        }
        Ok(())
    }
}

element! {
    /// StripEtherVLANHeader([NATIVE_VLAN]) -- removes Ethernet headers with or without VLAN tag
    ///
    /// Removes the Ethernet header and, if there is one, the IEEE 802.1Q tag behind it, which is
    /// put into the VLAN annotation. For untagged frames that becomes NATIVE_VLAN (by default 0);
    /// if NATIVE_VLAN is -1 they go to output 1, or are dropped if that is not connected. So do
    /// frames that end within their header.
    ///
    /// = SEE ALSO
    ///
    /// EtherVLANEncap, VLANDecap, Strip
    StripEtherVLANHeader {
        category: Ethernet, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("-1", 1, 2), ("5", 1, 2)]
    }
}

/// See [`StripEtherVLANHeader::CLASS`].
pub(crate) struct StripEtherVLANHeader {
    native: Option<u16>,
    outputs: usize,
}

const UNTAGGED: Reason = Reason("untagged");
const TOO_SHORT: Reason = Reason("too-short");

impl StripEtherVLANHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["NATIVE_VLAN"]);
        let native = arguments.keyword_argument("NATIVE_VLAN").or_else(|| arguments.next_raw());
        let native = match native {
            Some(word) => {
                let id: i32 = arguments.parse("NATIVE_VLAN", &word).unwrap_or(0);
                if id > 0xfff {
                    arguments.error(&word, format!("{id} is out of range: -1 to 4095"));
                }
                u16::try_from(id).ok()
            }
            None => Some(0),
        };
        arguments.finish()?;
        Ok(Self { native, outputs })
    }
}

impl Element for StripEtherVLANHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(frame) = Ethernet::new(packet.data()) else {
                return Verdict::Reject(1, TOO_SHORT);
            };
            let (tci, length) = match (frame.ether_type(), self.native) {
                (VLAN, _) => match Vlan::new(frame.payload()) {
                    Some(tag) => (tag.tci().0, 18),
                    None => return Verdict::Reject(1, TOO_SHORT),
                },
                (_, Some(native)) => (native, 14),
                (_, None) => return Verdict::Reject(1, UNTAGGED),
            };
            packet.annotations_mut().set_u16(annotation::VLAN_TCI, tci);
            packet.pull(length);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let too_short = || reject(1, self.outputs, TOO_SHORT);
        let tagged = vec![
            Op::when(meta::LEN.lt(18u8), too_short()),
            anno::VLAN_TCI.set(vlan::TCI),
            Op::pull(18u8),
        ];
        let untagged = match self.native {
            Some(native) => vec![anno::VLAN_TCI.set(native), Op::pull(14u8)],
            None => reject(1, self.outputs, UNTAGGED),
        };
        Model::from_block(vec![
            Op::when(meta::LEN.lt(14u8), too_short()),
            Op::If(eth::TYPE.eq(VLAN), tagged, untagged),
            Op::emit(0u8),
        ])
    }
}
