//! GetIP6Address and SetIP6Address.

use ir::field::{anno, meta};
use ir::{Base, Field, Model, Op, Reason};
use net::Batch;

use crate::argument::Ip6;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header;

element! {
    /// GetIP6Address(OFFSET) -- copies an IPv6 address into an annotation
    ///
    /// Copies the sixteen bytes that stand OFFSET bytes behind the start of the data into the
    /// IPv6 destination address annotation. Usually OFFSET is 24, the place of the destination
    /// address in an IPv6 header. Packets that end before are dropped.
    ///
    /// = SEE ALSO
    ///
    /// SetIP6Address, LookupIP6Route, GetIPAddress
    GetIP6Address {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [("24", 1, 1), ("38", 1, 1)]
    }
}

/// See [`GetIP6Address::CLASS`].
pub(crate) struct GetIP6Address {
    offset: u16,
}

const TOO_SHORT: Reason = Reason("too-short");

impl GetIP6Address {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["OFFSET"]);
        let offset = match arguments.keyword_argument("OFFSET").or_else(|| arguments.next_raw()) {
            Some(word) => ip_header::parse_offset(&mut arguments, "OFFSET", &word),
            None => arguments.required("OFFSET"),
        };
        arguments.finish()?;
        Ok(Self { offset })
    }
}

impl Element for GetIP6Address {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let offset = usize::from(self.offset);
        cx.each(batch, |packet, _| {
            let bytes = packet.data().get(offset..);
            let Some(&address) = bytes.and_then(|b| b.first_chunk::<16>()) else {
                return Verdict::Drop(TOO_SHORT);
            };
            packet.annotations_mut().set_dst_ip6(address.into());
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(meta::LEN.lt(self.offset + 16), vec![Op::Drop(TOO_SHORT)]),
            anno::DST_IP6.set(Field::bytes(Base::Data, self.offset, 16)),
            Op::emit(0u8),
        ])
    }
}

element! {
    /// SetIP6Address(ADDR) -- sets the IPv6 destination address annotation
    ///
    /// Sets the annotation of every packet to ADDR, whatever is in the packet.
    ///
    /// = SEE ALSO
    ///
    /// GetIP6Address, SetIPAddress
    SetIP6Address {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [("2001:db8::1", 1, 1)]
    }
}

/// See [`SetIP6Address::CLASS`].
pub(crate) struct SetIP6Address {
    address: Ip6,
}

impl SetIP6Address {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ADDR"]);
        let address = arguments.required("ADDR");
        arguments.finish()?;
        Ok(Self { address })
    }
}

impl Element for SetIP6Address {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            packet.annotations_mut().set_dst_ip6(self.address.0);
        }
    }

    fn model(&self) -> Model {
        Model::from_block(vec![anno::DST_IP6.set(self.address.0.to_bits()), Op::emit(0u8)])
    }
}
