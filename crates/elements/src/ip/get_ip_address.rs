//! GetIPAddress.

use ir::field::meta;
use ir::{Base, Diagnostic, Field, Model, Op, Reason};
use net::{Batch, annotation};

use crate::argument::AnnotationOffset;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, End, NO_HEADER};

element! {
    /// GetIPAddress(OFFSET [, ANNO, KEYWORDS IP]) -- copies an IP address into an annotation
    ///
    /// Copies the four bytes that stand OFFSET bytes behind the start of the data into the
    /// destination address annotation, or into the annotation ANNO. Usually OFFSET is 16, the
    /// place of the destination address in an IP header. Packets that end before are dropped.
    ///
    /// = KEYWORDS
    ///
    /// IP (src or dst): instead of OFFSET; copies the address of the marked IP header.
    ///
    /// = SEE ALSO
    ///
    /// SetIPAddress, StoreIPAddress
    GetIPAddress {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("16", 1, 1), ("30, ANNO 20", 1, 1), ("IP src", 1, 1), ("IP dst, ANNO 8", 1, 1)]
    }
}

/// See [`GetIPAddress::CLASS`].
pub(crate) struct GetIPAddress {
    from: From,
    to: usize,
}

#[derive(Clone, Copy)]
enum From {
    /// So many bytes behind the start of the data.
    Data(u16),
    /// From the marked IP header.
    Header(End),
}

const TOO_SHORT: Reason = Reason("too-short");

impl GetIPAddress {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let mut arguments = cx.arguments(&["OFFSET", "ANNO", "IP"]);
        let offset = arguments.keyword_argument("OFFSET").or_else(|| arguments.next_raw());
        let to = arguments.optional::<AnnotationOffset<4>>("ANNO");
        let from = match (offset, arguments.keyword_argument("IP")) {
            (Some(offset), None) => {
                From::Data(ip_header::parse_offset(&mut arguments, "OFFSET", &offset))
            }
            (None, Some(word)) if word.text == "src" => From::Header(End::Source),
            (None, Some(word)) if word.text == "dst" => From::Header(End::Destination),
            (None, Some(word)) => {
                arguments.error(&word, format!("'{}' is neither src nor dst", word.text));
                From::Header(End::Source)
            }
            _ => {
                let error = "one of OFFSET and IP is needed";
                arguments.report(Diagnostic::error("bad-argument", error).label(span, ""));
                From::Header(End::Source)
            }
        };
        arguments.finish()?;
        Ok(Self { from, to: to.map_or(annotation::DST_IP, |a| a.0) })
    }
}

impl Element for GetIPAddress {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let to = self.to;
        match self.from {
            From::Data(offset) => cx.each(batch, |packet, _| {
                if packet.len() < usize::from(offset) + 4 {
                    return Verdict::Drop(TOO_SHORT);
                }
                let Some(&address) = packet.window(i32::from(offset)) else {
                    return Verdict::Drop(TOO_SHORT);
                };
                packet.annotations_mut().set_u32(to, u32::from_be_bytes(address));
                Verdict::Pass
            }),
            From::Header(end) => cx.each(batch, |packet, _| {
                let Some(ip) = ip_header::fixed(packet) else {
                    return Verdict::Drop(NO_HEADER);
                };
                let address = end.address(&ip);
                packet.annotations_mut().set_u32(to, address);
                Verdict::Pass
            }),
        }
    }

    fn model(&self) -> Model {
        let (unfit, reason, from) = match self.from {
            From::Data(offset) => {
                (meta::LEN.lt(offset + 4), TOO_SHORT, Field::bytes(Base::Data, offset, 4))
            }
            From::Header(end) => (ip_header::is_missing(), NO_HEADER, end.field()),
        };
        let to = Field::bytes(Base::Annotation, self.to as u16, 4);
        Model::from_block(vec![
            Op::when(unfit, vec![Op::Drop(reason)]),
            to.set(from),
            Op::emit(0u8),
        ])
    }
}
