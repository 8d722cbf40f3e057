//! GREDecap.

use ir::field::meta;
use ir::model::{Block, reject};
use ir::{Base, Expr, Field, Model, Op, Reason};
use net::Header;
use net::wire::{ether_type, gre};

use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::tunnel::udp_tunnel::TOO_SHORT;

element! {
    /// GREDecap(PROTOCOL [, KEYWORDS KEY, CHECKSUM]) -- takes packets out of GRE packets
    ///
    /// Expects packets that begin with a GRE header (RFC 2784, RFC 2890), as behind StripIPHeader.
    /// If the header says that the packet in it is of the ether type PROTOCOL, and its key is KEY,
    /// it is removed. What follows is marked: as an Ethernet header if PROTOCOL is 0x6558, else as
    /// a network header. Sequence numbers are not looked at.
    ///
    /// Packets of another protocol or key go to output 1 as they came, or are dropped if that is
    /// not connected. Packets are dropped that end within the header, have another version than 0
    /// or reserved bits set, or a wrong checksum.
    ///
    /// = KEYWORDS
    ///
    /// KEY (number): the key; without it, packets that have one are other packets.
    /// CHECKSUM (bool, default true): whether the checksum of packets that have one is checked.
    ///
    /// = EXAMPLE
    ///
    /// ... -> CheckIPHeader -> IPClassifier(ip proto gre) -> StripIPHeader -> GREDecap(0x0800)
    ///     -> CheckIPHeader -> ...
    ///
    /// = SEE ALSO
    ///
    /// GREEncap, StripIPHeader, VXLANDecap
    GREDecap {
        category: Tunnel, ports: "1/1-2", processing: "a/ah",
        samples: [("0x0800", 1, 2), ("0x6558, KEY 7", 1, 1), ("0x86dd, CHECKSUM false", 1, 2)]
    }
}

/// See [`GREDecap::CLASS`].
pub(crate) struct GREDecap {
    protocol: u16,
    key: Option<u32>,
    checksum: bool,
    outputs: usize,
}

/// GRE carries another protocol.
const OTHER_PROTOCOL: Reason = Reason("other-protocol");
/// The GRE key is another one.
const OTHER_KEY: Reason = Reason("other-key");
/// The GRE header is cut short, or has flags or a version that are not supported.
const HEADER: Reason = Reason("bad-gre-header");
/// The GRE checksum is wrong.
const CHECKSUM: Reason = Reason("bad-gre-checksum");

/// Bits of the first word that must be 0: routing, what RFC 2784 reserves, and the version.
const RESERVED: u16 = gre::ROUTING | 0x0c00 | 7;

/// A flag of the first word.
fn flag(mask: u16) -> Field {
    Field::bits(Base::Data, mask.leading_zeros() as u16, 1)
}

impl GREDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["PROTOCOL", "KEY", "CHECKSUM"]);
        let protocol = arguments.required("PROTOCOL");
        let key = arguments.keyword("KEY");
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(true);
        arguments.finish()?;
        Ok(Self { protocol, key, checksum, outputs: cx.outputs() })
    }

    /// What becomes of packets with these optional fields, and a key if there is to be one.
    fn with(&self, checksum: bool, sequence: bool) -> Block {
        let key = gre::HEADER_LEN as u16 + 4 * u16::from(checksum);
        let length = key + 4 * (u16::from(self.key.is_some()) + u16::from(sequence));
        let mut block = vec![Op::when(meta::LEN.lt(length), vec![Op::Drop(TOO_SHORT)])];
        if let Some(expected) = self.key {
            let other = Field::bytes(Base::Data, key, 4).ne(expected);
            block.push(Op::when(other, reject(1, self.outputs, OTHER_KEY)));
        }
        if checksum && self.checksum {
            let sum = Expr::sum16(Base::Data, 0u8, meta::LEN);
            block.push(Op::when(sum.ne(0xffffu16), vec![Op::Drop(CHECKSUM)]));
        }
        block.push(Op::pull(length));
        block
    }
}

impl Element for GREDecap {
    fn model(&self) -> Model {
        let word = |at| Field::bytes(Base::Data, at, 2);
        let reject = |reason| reject(1, self.outputs, reason);
        let by_sequence = |checksum| {
            let (with, without) = (self.with(checksum, true), self.with(checksum, false));
            Op::If(flag(gre::SEQUENCE).eq(1u8), with, without)
        };
        let mut block = vec![
            Op::when(meta::LEN.lt(gre::HEADER_LEN), vec![Op::Drop(TOO_SHORT)]),
            Op::when((word(0).get() & RESERVED).ne(0u8), vec![Op::Drop(HEADER)]),
            Op::when(word(2).ne(self.protocol), reject(OTHER_PROTOCOL)),
            Op::when(flag(gre::KEY).ne(u8::from(self.key.is_some())), reject(OTHER_KEY)),
            Op::If(flag(gre::CHECKSUM).eq(1u8), vec![by_sequence(true)], vec![by_sequence(false)]),
        ];
        let (inner, other) = match self.protocol {
            ether_type::TEB => (Header::Mac, Header::Network),
            _ => (Header::Network, Header::Mac),
        };
        block.extend([
            Op::Mark(inner, 0u8.into()),
            Op::Unmark(other),
            Op::Unmark(Header::Transport),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }
}
