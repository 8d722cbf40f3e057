//! PPPoEEncap.

use ir::field::meta;
use ir::model::{Reg, set_bytes};
use ir::{Base, Field, Model, Op};
use net::Header;

use super::udp_tunnel::NOT_IP;
use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// PPPoEEncap(SESSION) -- puts IP packets into packets of a PPPoE session
    ///
    /// Puts the headers of PPPoE (RFC 2516) with the session identifier SESSION, and of PPP, in front of
    /// each IPv4 or IPv6 packet. Other packets are dropped, and so are those of more than 65,533 bytes.
    /// EtherEncap with the type 0x8864 comes next, and packets inside may have 1,492 bytes on Ethernet. No
    /// header is marked. Sessions are not negotiated.
    ///
    /// = HANDLERS
    ///
    /// session (read, write): the session identifier.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> IPFragmenter(1492) -> PPPoEEncap(7) -> EtherEncap(0x8864, ...) -> ...
    ///
    /// = SEE ALSO
    ///
    /// PPPoEDecap, EtherEncap, GTPEncap
    PPPoEEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [("7", 1, 1), ("65535", 1, 1)]
    }
}

/// Version and type, and the code of sessions.
pub(super) const SESSION: u16 = 0x1100;
/// Protocols of PPP.
pub(super) const IPV4: u16 = 0x0021;
pub(super) const IPV6: u16 = 0x0057;
/// Bytes of the header of PPPoE, and of the protocol behind it.
pub(super) const HEADER: u16 = 6;
pub(super) const PROTOCOL: u16 = 2;

/// See [`PPPoEEncap::CLASS`].
pub(crate) struct PPPoEEncap {
    session: u16,
}

impl PPPoEEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SESSION"]);
        let session = arguments.required("SESSION");
        arguments.finish()?;
        Ok(Self { session })
    }
}

impl Element for PPPoEEncap {
    fn model(&self) -> Model {
        const OF: Reg = Reg(0);
        let version = || Field::bits(Base::Data, 0, 4);
        let mut template = [0; HEADER as usize];
        template[..2].copy_from_slice(&SESSION.to_be_bytes());
        template[2..4].copy_from_slice(&self.session.to_be_bytes());
        let other =
            Op::If(version().eq(6u8), vec![Op::Let(OF, IPV6.into())], vec![Op::Drop(NOT_IP)]);
        let mut block = vec![
            Op::when(meta::LEN.eq(0u8), vec![Op::Drop(NOT_IP)]),
            Op::when(meta::LEN.gt(0xffff - PROTOCOL), vec![Op::Drop(TOO_LONG)]),
            Op::If(version().eq(4u8), vec![Op::Let(OF, IPV4.into())], vec![other]),
            Op::pull(-i32::from(HEADER + PROTOCOL)),
        ];
        block.extend(set_bytes(Base::Data, 0, &template));
        block.extend([
            Field::bytes(Base::Data, 4, 2).set(meta::LEN.get() - HEADER),
            Field::bytes(Base::Data, HEADER, 2).set(OF),
            Op::Unmark(Header::Network),
            Op::Unmark(Header::Transport),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    value_handler!("session", session);
}
