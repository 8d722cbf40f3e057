//! GENEVEEncap.

use ir::Model;

use super::udp_tunnel::{HEADER, Inside, UdpTunnel};
use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::tunnel::vxlan_encap::Vni;

element! {
    /// GENEVEEncap(VNI, SRC, DST [, KEYWORDS]) -- puts Ethernet frames into GENEVE packets
    ///
    /// Puts a GENEVE header (RFC 8926) without options and with the network identifier VNI in front of
    /// each frame, and in front of that UDP and IP headers, from SRC to DST. All else is as VXLANEncap
    /// does it: DST may be DST_ANNO, the source port distinguishes flows, and "do not fragment" is set.
    ///
    /// = KEYWORDS
    ///
    /// SPORT (port): a fixed UDP source port.
    /// DPORT (port, default 6081): the UDP destination port.
    /// TTL (number, default 250), TOS (number, default 0): fields of the IP header.
    ///
    /// = HANDLERS
    ///
    /// vni, src, dst (read, write): the arguments.
    ///
    /// = EXAMPLE
    ///
    /// ... -> GENEVEEncap(5000, 192.0.2.1, 192.0.2.2) -> EtherEncap(0x0800, ...) -> ToDevice(...)
    ///
    /// = SEE ALSO
    ///
    /// GENEVEDecap, VXLANEncap, UDPIPEncap
    GENEVEEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [
            ("5000, 192.0.2.1, 192.0.2.2", 1, 1),
            ("0xffffff, 192.0.2.1, DST_ANNO, SPORT 4000, TTL 3, TOS 0xb8", 1, 1)
        ]
    }
}

/// UDP destination port.
pub(super) const PORT: u16 = 6081;
/// Protocol of Ethernet frames.
pub(super) const FRAMES: u16 = 0x6558;

/// See [`GENEVEEncap::CLASS`].
pub(crate) struct GENEVEEncap {
    vni: Vni,
    tunnel: UdpTunnel,
}

/// The header for a network identifier of 24 bits.
fn header(vni: u32) -> [u8; HEADER] {
    let ([_, a, b, c], [high, low]) = (vni.to_be_bytes(), FRAMES.to_be_bytes());
    [0, 0, high, low, a, b, c, 0]
}

impl GENEVEEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VNI", "SRC", "DST", "SPORT", "DPORT", "TTL", "TOS"]);
        let vni = arguments.required("VNI");
        let tunnel = UdpTunnel::of(&mut arguments, PORT);
        arguments.finish()?;
        Ok(Self { vni, tunnel })
    }
}

impl Element for GENEVEEncap {
    fn model(&self) -> Model {
        self.tunnel.model(header(self.vni.0), Inside::Frame)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("vni"), Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(if handler == "vni" { self.vni.0.to_string() } else { self.tunnel.read(handler) })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "vni" {
            self.vni = parse_value(value)?;
            return Ok(());
        }
        self.tunnel.write(handler, value)
    }
}
