//! StripIPHeader, UnstripIPHeader and StripToNetworkHeader.

use ir::field::meta;
use ir::{Cond, Expr, Model, Op};
use net::{Batch, Header};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::NO_HEADER;

element! {
    /// StripIPHeader() -- removes the IP header and all before it
    ///
    /// Removes everything before the marked transport header. Packets without a mark are dropped.
    ///
    /// = SEE ALSO
    ///
    /// UnstripIPHeader, StripToNetworkHeader, CheckIPHeader, MarkIPHeader
    StripIPHeader {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`StripIPHeader::CLASS`].
pub(crate) struct StripIPHeader;

/// The marked header lies before the first data byte, or further from it than packets are long.
fn is_before(header: Header) -> Cond {
    Expr::Position(header).ge(1u64 << 32)
}

impl StripIPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for StripIPHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(offset) = packet.header_offset(Header::Transport) else {
                return Verdict::Drop(NO_HEADER);
            };
            packet.pull(usize::try_from(offset).unwrap_or(0));
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(meta::HAS_TRANSPORT.eq(0u8), vec![Op::Drop(NO_HEADER)]),
            Op::when(is_before(Header::Transport), vec![Op::emit(0u8)]),
            Op::pull(Expr::Position(Header::Transport)),
            Op::emit(0u8),
        ])
    }
}

element! {
    /// UnstripIPHeader() -- brings a stripped IP header back
    ///
    /// Adds the bytes from the marked IP header on that were removed from the front. Packets
    /// whose header was not stripped pass unchanged; packets without a mark are dropped.
    ///
    /// = SEE ALSO
    ///
    /// StripIPHeader, Unstrip
    UnstripIPHeader {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`UnstripIPHeader::CLASS`].
pub(crate) struct UnstripIPHeader;

impl UnstripIPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for UnstripIPHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| match packet.header_offset(Header::Network) {
            Some(offset) => {
                if offset < 0 {
                    packet.push(offset.unsigned_abs());
                }
                Verdict::Pass
            }
            None => Verdict::Drop(NO_HEADER),
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(meta::HAS_NET.eq(0u8), vec![Op::Drop(NO_HEADER)]),
            Op::when(is_before(Header::Network), vec![Op::pull(Expr::Position(Header::Network))]),
            Op::emit(0u8),
        ])
    }
}

element! {
    /// StripToNetworkHeader() -- lets packets start with their network header
    ///
    /// Removes everything before the marked network header, or brings back what was stripped of
    /// it. Packets without a mark are dropped.
    ///
    /// = SEE ALSO
    ///
    /// Strip, StripIPHeader, CheckIPHeader, MarkIPHeader
    StripToNetworkHeader {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`StripToNetworkHeader::CLASS`].
pub(crate) struct StripToNetworkHeader;

impl StripToNetworkHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for StripToNetworkHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| match packet.header_offset(Header::Network) {
            Some(offset) if offset >= 0 => {
                packet.pull(offset.unsigned_abs());
                Verdict::Pass
            }
            Some(offset) => {
                packet.push(offset.unsigned_abs());
                Verdict::Pass
            }
            None => Verdict::Drop(NO_HEADER),
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(meta::HAS_NET.eq(0u8), vec![Op::Drop(NO_HEADER)]),
            Op::pull(Expr::Position(Header::Network)),
            Op::emit(0u8),
        ])
    }
}
