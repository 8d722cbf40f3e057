//! VLANEncap and VLANDecap: tags in frames that have an Ethernet header.

use ir::field::{anno, eth, meta, vlan};
use ir::model::Reg;
use ir::{Model, Op, Reason};
use net::wire::ether_type::VLAN;
use net::wire::{Ethernet, Vlan};
use net::{Batch, Header, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ethernet::vlan_tag::Tag;

element! {
    /// VLANEncap([VLAN_TCI, VLAN_PCP, KEYWORDS]) -- puts a VLAN tag into Ethernet frames
    ///
    /// Inserts an IEEE 802.1Q tag behind the addresses of the frame's Ethernet header and marks
    /// that header. VLAN_TCI is the whole tag control information, or ANNO for each packet's VLAN
    /// annotation. Frames that end within their Ethernet addresses are dropped.
    ///
    /// = KEYWORDS
    ///
    /// VLAN_ID (number, default 0): the VLAN, if VLAN_TCI is not given.
    /// VLAN_PCP (0 to 7, default 0): the priority.
    /// NATIVE_VLAN (number, default 0): the VLAN whose frames stay untagged; -1 for none.
    /// ETHERTYPE (number, default 0x8100): the type before the tag, such as 0x88a8.
    ///
    /// = HANDLERS
    ///
    /// vlan_tci, vlan_id, vlan_pcp, native_vlan (read, write): as configured.
    ///
    /// = SEE ALSO
    ///
    /// VLANDecap, EtherVLANEncap, SetVLANAnno, CheckVLAN
    VLANEncap {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [
            ("VLAN_ID 30, VLAN_PCP 2", 1, 1), ("ANNO", 1, 1), ("0", 1, 1),
            ("ANNO, NATIVE_VLAN -1, ETHERTYPE 0x88a8", 1, 1), ("ANNO, NATIVE_VLAN 5", 1, 1)
        ]
    }
}

/// See [`VLANEncap::CLASS`].
pub(crate) struct VLANEncap {
    tag: Tag,
    ether_type: u16,
}

const TOO_SHORT: Reason = Reason("too-short");

impl VLANEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments =
            cx.arguments(&["VLAN_TCI", "VLAN_PCP", "VLAN_ID", "NATIVE_VLAN", "ETHERTYPE"]);
        let tag = Tag::configure_with_native(&mut arguments);
        let ether_type = arguments.keyword("ETHERTYPE").unwrap_or(VLAN);
        arguments.finish()?;
        Ok(Self { tag, ether_type })
    }
}

impl Element for VLANEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let tci = self.tag.tci(packet.annotations());
            let mut header = 14;
            if !self.tag.is_native(tci) {
                let Some(&addresses) = packet.data().first_chunk::<12>() else {
                    return Verdict::Drop(TOO_SHORT);
                };
                packet.push(4);
                let (front, rest) = packet.data_mut().split_at_mut(addresses.len());
                front.copy_from_slice(&addresses);
                let tag = [self.ether_type.to_be_bytes(), tci.to_be_bytes()];
                rest[..4].copy_from_slice(tag.as_flattened());
                header = 18;
            }
            packet.set_header_offset(Header::Mac, 0);
            packet.set_header_offset(Header::Network, header);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        const TCI: Reg = Reg(0);
        const TO: Reg = Reg(1);
        const FROM: Reg = Reg(2);
        let (tci, native) = self.tag.model();
        let mark = |length: u8| {
            vec![
                Op::Mark(Header::Mac, 0u8.into()),
                Op::Mark(Header::Network, length.into()),
                Op::emit(0u8),
            ]
        };
        let mut block = vec![
            Op::when(native, mark(14)),
            Op::when(meta::LEN.lt(12u8), vec![Op::Drop(TOO_SHORT)]),
            Op::Let(TCI, tci),
            Op::Let(TO, eth::DST.get()),
            Op::Let(FROM, eth::SRC.get()),
            Op::pull(-4),
            eth::DST.set(TO),
            eth::SRC.set(FROM),
            eth::TYPE.set(self.ether_type),
            vlan::TCI.set(TCI),
        ];
        block.extend(mark(18));
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        Tag::HANDLERS
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.tag.read(handler))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.tag.write(handler, value)
    }
}

element! {
    /// VLANDecap([ANNO, KEYWORDS ETHERTYPE]) -- takes the VLAN tag out of Ethernet frames
    ///
    /// Removes the tag behind the addresses, if there is one, and marks the Ethernet header.
    /// Unless ANNO is false, the tag is put into the VLAN annotation, 0 for untagged frames.
    /// Frames that end within their header are dropped.
    ///
    /// = KEYWORDS
    ///
    /// ETHERTYPE (number, default 0x8100): the type before the tag.
    ///
    /// = SEE ALSO
    ///
    /// VLANEncap, StripEtherVLANHeader, CheckVLAN
    VLANDecap {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("false", 1, 1), ("ETHERTYPE 0x88a8", 1, 1)]
    }
}

/// See [`VLANDecap::CLASS`].
pub(crate) struct VLANDecap {
    annotate: bool,
    ether_type: u16,
}

impl VLANDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ANNO", "ETHERTYPE"]);
        let annotate = arguments.optional("ANNO").unwrap_or(true);
        let ether_type = arguments.keyword("ETHERTYPE").unwrap_or(VLAN);
        arguments.finish()?;
        Ok(Self { annotate, ether_type })
    }
}

impl Element for VLANDecap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(mut frame) = Ethernet::new(packet.data_mut()) else {
                return Verdict::Drop(TOO_SHORT);
            };
            let mut tci = 0;
            if frame.ether_type() == self.ether_type {
                let Some(tag) = Vlan::new(frame.payload_mut()) else {
                    return Verdict::Drop(TOO_SHORT);
                };
                tci = tag.tci().0;
                frame.into_inner().copy_within(..12, 4);
                packet.pull(4);
            }
            packet.set_header_offset(Header::Mac, 0);
            packet.set_header_offset(Header::Network, 14);
            if self.annotate {
                packet.annotations_mut().set_u16(annotation::VLAN_TCI, tci);
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        const TCI: Reg = Reg(0);
        const TO: Reg = Reg(1);
        const FROM: Reg = Reg(2);
        let tagged = vec![
            Op::when(meta::LEN.lt(18u8), vec![Op::Drop(TOO_SHORT)]),
            Op::Let(TCI, vlan::TCI.get()),
            Op::Let(TO, eth::DST.get()),
            Op::Let(FROM, eth::SRC.get()),
            Op::pull(4u8),
            eth::DST.set(TO),
            eth::SRC.set(FROM),
        ];
        let mut block = vec![
            Op::when(meta::LEN.lt(14u8), vec![Op::Drop(TOO_SHORT)]),
            Op::Let(TCI, 0u8.into()),
            Op::when(eth::TYPE.eq(self.ether_type), tagged),
            Op::Mark(Header::Mac, 0u8.into()),
            Op::Mark(Header::Network, 14u8.into()),
        ];
        if self.annotate {
            block.push(anno::VLAN_TCI.set(TCI));
        }
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }
}
