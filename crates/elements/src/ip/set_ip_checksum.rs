//! SetIPChecksum.

use ir::field::{ip, meta};
use ir::{Base, Expr, Field, Model, Op, Reason};
use net::wire::Ipv4;
use net::wire::ipv4::HEADER_LEN;
use net::{Batch, Header};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_header::NETWORK;

element! {
    /// SetIPChecksum() -- computes the checksum of IP headers
    ///
    /// Computes the checksum of the marked IP header anew, or of one at the start of the data if
    /// none is marked. Packets that end within their header, or whose header length cannot be,
    /// are dropped.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets dropped.
    ///
    /// = SEE ALSO
    ///
    /// CheckIPHeader, SetTCPChecksum, SetUDPChecksum
    SetIPChecksum {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`SetIPChecksum::CLASS`].
pub(crate) struct SetIPChecksum;

const BAD_HEADER: Reason = Reason("bad-ip-header-length");

impl SetIPChecksum {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for SetIPChecksum {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let bytes = match packet.header_offset(Header::Network) {
                Some(_) => packet.network_mut().unwrap_or_default(),
                None => packet.data_mut(),
            };
            let ip = Ipv4::new(bytes)
                .filter(|ip| (HEADER_LEN..=ip.bytes().len()).contains(&ip.header_len()));
            let Some(mut ip) = ip else { return Verdict::Drop(BAD_HEADER) };
            ip.fill_checksum();
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let at = |base: Base, available: Field| {
            let field = |f: Field| Field { base, ..f };
            let length = || field(ip::HL).get() * 4u8;
            let valid = available.ge(20u8).and(field(ip::HL).ge(5u8)).and(length().le(available));
            vec![
                Op::when(valid.not(), vec![Op::Drop(BAD_HEADER)]),
                field(ip::CHECKSUM).set(0u8),
                field(ip::CHECKSUM).set(Expr::sum16(base, 0u8, length()) ^ 0xffffu16),
                Op::emit(0u8),
            ]
        };
        Model::from_block(vec![Op::If(
            meta::HAS_NET.eq(1u8),
            at(NETWORK, meta::AVAIL_NET),
            at(Base::Data, meta::LEN),
        )])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.total().to_string())
    }
}
