//! VXLANEncap.

use click::config::Argument;
use ir::Model;
use net::wire::vxlan;

use super::udp_tunnel::{Inside, UdpTunnel};
use crate::argument::{FromArgument, parse_integer, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::names::Names;

element! {
    /// VXLANEncap(VNI, SRC, DST [, KEYWORDS]) -- puts Ethernet frames into VXLAN packets
    ///
    /// Puts a VXLAN header (RFC 7348) with the network identifier VNI in front of each frame, and
    /// in front of that UDP and IP headers, from SRC to DST. DST may be DST_ANNO: then each
    /// packet's destination address annotation is taken; else the annotation is set to DST. The
    /// new headers are marked.
    ///
    /// The UDP source port is of 49152 to 65535. It is a hash of the frame's addresses and type
    /// and, behind them, of IP addresses, protocol and ports: packets of a flow take the same path,
    /// and those of many flows spread. The UDP checksum is 0. IP packets have "do not fragment"
    /// set and identification 0 (RFC 6864). Packets that would be longer than 65,535 bytes are
    /// dropped, and so are those too short for an Ethernet header.
    ///
    /// = KEYWORDS
    ///
    /// SPORT (port): a fixed UDP source port.
    /// DPORT (port, default 4789): the UDP destination port.
    /// TTL (number, default 250), TOS (number, default 0): fields of the IP header.
    ///
    /// = HANDLERS
    ///
    /// vni, src, dst (read, write): the arguments.
    ///
    /// = EXAMPLE
    ///
    /// ... -> VXLANEncap(5000, 192.0.2.1, 192.0.2.2) -> EtherEncap(0x0800, ...) -> ToDevice(...)
    ///
    /// = SEE ALSO
    ///
    /// VXLANDecap, GENEVEEncap, UDPIPEncap, GREEncap
    VXLANEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [
            ("5000, 192.0.2.1, 192.0.2.2", 1, 1),
            ("0xffffff, 192.0.2.1, DST_ANNO, SPORT 4000, DPORT 8472, TTL 3, TOS 0xb8", 1, 1)
        ]
    }
}

/// See [`VXLANEncap::CLASS`].
pub(crate) struct VXLANEncap {
    vni: Vni,
    tunnel: UdpTunnel,
}

/// A VXLAN network identifier.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vni(pub(crate) u32);

impl FromArgument for Vni {
    const EXPECTED: &'static str = "a VXLAN network identifier of 0 to 16777215";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let number = parse_integer(text).and_then(|n| u32::try_from(n).ok());
        let vni = number.filter(|n| *n < 1 << 24).map(Self);
        vni.ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

impl VXLANEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VNI", "SRC", "DST", "SPORT", "DPORT", "TTL", "TOS"]);
        let vni = arguments.required("VNI");
        let tunnel = UdpTunnel::of(&mut arguments, vxlan::PORT);
        arguments.finish()?;
        Ok(Self { vni, tunnel })
    }
}

impl Element for VXLANEncap {
    fn model(&self) -> Model {
        self.tunnel.model(vxlan::header(self.vni.0), Inside::Frame)
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
