//! GTPEncap.

use ir::Model;

use super::udp_tunnel::{HEADER, Inside, UdpTunnel};
use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};

element! {
    /// GTPEncap(TEID, SRC, DST [, KEYWORDS]) -- puts IP packets into packets of GTP-U
    ///
    /// Puts the header of a G-PDU (3GPP TS 29.281) with the tunnel endpoint identifier TEID in front of
    /// each IPv4 or IPv6 packet, without a sequence number or extensions, and in front of that UDP and IP
    /// headers, from SRC to DST. Other packets are dropped. All else is as VXLANEncap does it: DST may be
    /// DST_ANNO, the source port distinguishes flows, and "do not fragment" is set.
    ///
    /// = KEYWORDS
    ///
    /// SPORT (port): a fixed UDP source port.
    /// DPORT (port, default 2152): the UDP destination port.
    /// TTL (number, default 250), TOS (number, default 0): fields of the IP header.
    ///
    /// = HANDLERS
    ///
    /// teid, src, dst (read, write): the arguments.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> GTPEncap(0x10, 192.0.2.1, 192.0.2.2) -> EtherEncap(0x0800, ...) -> ...
    ///
    /// = SEE ALSO
    ///
    /// GTPDecap, GENEVEEncap, UDPIPEncap
    GTPEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [
            ("16, 192.0.2.1, 192.0.2.2", 1, 1),
            ("0xfffffffe, 192.0.2.1, DST_ANNO, SPORT 2152, TTL 3, TOS 0xb8", 1, 1)
        ]
    }
}

/// UDP destination port.
pub(super) const PORT: u16 = 2152;
/// Version 1, GTP and not GTP', and no optional field.
const FLAGS: u8 = 0x30;
/// Message type: a packet of a user.
pub(super) const DATA: u8 = 255;

/// See [`GTPEncap::CLASS`].
pub(crate) struct GTPEncap {
    teid: u32,
    tunnel: UdpTunnel,
}

/// The header for a tunnel, without the length.
fn header(teid: u32) -> [u8; HEADER] {
    let [a, b, c, d] = teid.to_be_bytes();
    [FLAGS, DATA, 0, 0, a, b, c, d]
}

impl GTPEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["TEID", "SRC", "DST", "SPORT", "DPORT", "TTL", "TOS"]);
        let teid = arguments.required("TEID");
        let tunnel = UdpTunnel::of(&mut arguments, PORT);
        arguments.finish()?;
        Ok(Self { teid, tunnel })
    }
}

impl Element for GTPEncap {
    fn model(&self) -> Model {
        self.tunnel.model(header(self.teid), Inside::Ip { length_at: 2 })
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("teid"), Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(if handler == "teid" { self.teid.to_string() } else { self.tunnel.read(handler) })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "teid" {
            self.teid = parse_value(value)?;
            return Ok(());
        }
        self.tunnel.write(handler, value)
    }
}
