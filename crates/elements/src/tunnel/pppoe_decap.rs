//! PPPoEDecap.

use ir::field::meta;
use ir::model::{Reg, reject};
use ir::{Base, Expr, Field, Model, Op, Reason};
use net::Header;

use super::pppoe_encap::{HEADER, IPV4, IPV6, PROTOCOL, SESSION};
use crate::configure::{Configure, Failed};
use crate::element::Element;

element! {
    /// PPPoEDecap(SESSION) -- takes IP packets out of packets of a PPPoE session
    ///
    /// Expects packets that begin with a header of PPPoE (RFC 2516), as frames of the type 0x8864 do behind
    /// the Ethernet header. Of packets of the session SESSION that hold IPv4 or IPv6, the headers of
    /// PPPoE and PPP are removed, and so is what follows the packet inside. No header of it is marked:
    /// CheckIPHeader or CheckIP6Header comes next.
    ///
    /// Other sessions, other codes than that of sessions, and other protocols of PPP leave on output 1 as
    /// they came, or are dropped if that is not connected. Packets of another version are dropped, and
    /// those whose length is not there.
    ///
    /// = HANDLERS
    ///
    /// session (read, write): the session identifier.
    ///
    /// = EXAMPLE
    ///
    /// Classifier(12/8864) -> Strip(14) -> PPPoEDecap(7) -> CheckIPHeader -> ...
    ///
    /// = SEE ALSO
    ///
    /// PPPoEEncap, Classifier, GTPDecap
    PPPoEDecap {
        category: Tunnel, ports: "1/1-2", processing: "a/ah",
        samples: [("7", 1, 2), ("65535", 1, 1)]
    }
}

/// See [`PPPoEDecap::CLASS`].
pub(crate) struct PPPoEDecap {
    session: u16,
    outputs: usize,
}

/// The packet ends before its length says, or holds no protocol.
const LENGTH: Reason = Reason("bad-pppoe-length");
/// Version or type of PPPoE are not 1.
const VERSION: Reason = Reason("bad-pppoe-version");
/// The code is not that of a session.
const NOT_SESSION: Reason = Reason("not-a-pppoe-session");
/// The session is another one.
const OTHER_SESSION: Reason = Reason("other-session");
/// The protocol of PPP is neither IPv4 nor IPv6.
const OTHER_PROTOCOL: Reason = Reason("other-protocol");

impl PPPoEDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SESSION"]);
        let session = arguments.required("SESSION");
        arguments.finish()?;
        Ok(Self { session, outputs: cx.outputs() })
    }
}

impl Element for PPPoEDecap {
    fn model(&self) -> Model {
        const LEN: Reg = Reg(0);
        let reject = |reason| reject(1, self.outputs, reason);
        let bytes = |at: u16, count: u16| Field::bytes(Base::Data, at, count);
        let [version, code] = SESSION.to_be_bytes();
        let is_there = Expr::from(LEN).ge(PROTOCOL).and((Expr::from(LEN) + HEADER).le(meta::LEN));
        let is_ip = bytes(HEADER, PROTOCOL).eq(IPV4).or(bytes(HEADER, PROTOCOL).eq(IPV6));
        Model::from_block(vec![
            Op::when(meta::LEN.lt(HEADER + PROTOCOL), vec![Op::Drop(LENGTH)]),
            Op::when(bytes(0, 1).ne(version), vec![Op::Drop(VERSION)]),
            Op::when(bytes(1, 1).ne(code), reject(NOT_SESSION)),
            Op::when(bytes(2, 2).ne(self.session), reject(OTHER_SESSION)),
            Op::Let(LEN, bytes(4, 2).get()),
            Op::when(is_there.not(), vec![Op::Drop(LENGTH)]),
            Op::when(is_ip.not(), reject(OTHER_PROTOCOL)),
            Op::pull(i32::from(HEADER + PROTOCOL)),
            Op::Truncate(Expr::from(LEN) - PROTOCOL),
            Op::Unmark(Header::Network),
            Op::Unmark(Header::Transport),
            Op::emit(0u8),
        ])
    }

    value_handler!("session", session);
}
