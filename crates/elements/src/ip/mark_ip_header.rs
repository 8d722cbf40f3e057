//! MarkIPHeader.

use ir::field::{ip, meta};
use ir::{Expr, Model, Op};
use net::{Batch, Header};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;
use crate::ip::ip_header;

element! {
    /// MarkIPHeader([OFFSET]) -- marks where IP headers are, without checking them
    ///
    /// Marks the IP header OFFSET bytes (by default 0) behind the start of the data, and the
    /// transport header behind it. Packets that end before lose their marks.
    ///
    /// = SEE ALSO
    ///
    /// CheckIPHeader
    MarkIPHeader {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("14", 1, 1)]
    }
}

/// See [`MarkIPHeader::CLASS`].
pub(crate) struct MarkIPHeader {
    offset: u16,
}

impl MarkIPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["OFFSET"]);
        let offset = arguments.keyword_argument("OFFSET").or_else(|| arguments.next_raw());
        let offset = offset.map_or(0, |o| ip_header::parse_offset(&mut arguments, "OFFSET", &o));
        arguments.finish()?;
        Ok(Self { offset })
    }
}

impl Element for MarkIPHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        let offset = usize::from(self.offset);
        for packet in batch.iter_mut() {
            match packet.data().get(offset) {
                Some(first) => {
                    let length = usize::from(first & 0xf) * 4;
                    packet.set_ip_header(offset, length);
                }
                None => {
                    packet.clear_header(Header::Network);
                    packet.clear_header(Header::Transport);
                }
            }
        }
    }

    fn model(&self) -> Model {
        let length = Expr::from(ip_header::unmarked(ip::HL, self.offset)) * 4u8;
        Model::from_block(vec![
            Op::If(
                meta::LEN.gt(self.offset),
                vec![
                    Op::Mark(Header::Network, self.offset.into()),
                    Op::Mark(Header::Transport, length + self.offset),
                ],
                vec![Op::Unmark(Header::Network), Op::Unmark(Header::Transport)],
            ),
            Op::emit(0u8),
        ])
    }
}
