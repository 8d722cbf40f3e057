//! DecIP6HLIM, SetIP6DSCP, IP6Mirror and IP6Fragmenter: small changes and checks of marked headers.

use ir::field::{ip6, meta, transport};
use ir::model::{Reg, reject};
use ir::{Expr, IntervalSet, Model, Op, Reason};
use net::Batch;
use net::wire::ip_protocol::{TCP, UDP};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip6::ip6_header::{self, NO_HEADER};

element! {
    /// DecIP6HLIM() -- decrements the IPv6 hop limit
    ///
    /// Expects IPv6 packets with their header marked. A packet whose hop limit is 0 or 1 has
    /// expired and goes unchanged to output 1, or is dropped if that is not connected.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets that expired.
    ///
    /// = SEE ALSO
    ///
    /// CheckIP6Header, ICMP6Error, DecIPTTL
    DecIP6HLIM {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("", 1, 2)]
    }
}

/// See [`DecIP6HLIM::CLASS`].
pub(crate) struct DecIP6HLIM {
    outputs: usize,
}

/// The hop limit is 0 or 1.
const EXPIRED: Reason = Reason("hop-limit-expired");

impl DecIP6HLIM {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        cx.arguments(&[]).finish()?;
        Ok(Self { outputs })
    }
}

impl Element for DecIP6HLIM {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip6_header::view_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            let limit = ip.hop_limit();
            if limit <= 1 {
                return Verdict::Reject(1, EXPIRED);
            }
            ip.set_hop_limit(limit - 1);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(ip6_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::when(ip6::HLIM.le(1u8), reject(1, self.outputs, EXPIRED)),
            ip6::HLIM.set(ip6::HLIM.get() - 1u8),
            Op::emit(0u8),
        ])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.count(EXPIRED).to_string())
    }
}

element! {
    /// SetIP6DSCP(DSCP) -- sets the differentiated services code point of IPv6 packets
    ///
    /// Expects IPv6 packets with their header marked. Sets their code point (RFC 2474) to DSCP, 0
    /// to 63, and leaves the ECN bits alone.
    ///
    /// = HANDLERS
    ///
    /// dscp (read, write): the code point.
    ///
    /// = SEE ALSO
    ///
    /// SetIPDSCP
    SetIP6DSCP {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [("10", 1, 1), ("63", 1, 1)]
    }
}

/// See [`SetIP6DSCP::CLASS`].
pub(crate) struct SetIP6DSCP {
    dscp: crate::ip::set_ip_dscp::Dscp,
}

impl SetIP6DSCP {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["DSCP"]);
        let dscp = arguments.required("DSCP");
        arguments.finish()?;
        Ok(Self { dscp })
    }
}

impl Element for SetIP6DSCP {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let dscp = self.dscp.0;
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip6_header::view_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            ip.set_traffic_class(dscp << 2 | ip.ecn());
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(ip6_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            ip6::DSCP.set(self.dscp.0),
            Op::emit(0u8),
        ])
    }

    value_handler!("dscp", dscp.0);
}

element! {
    /// IP6Mirror() -- swaps sources and destinations of IPv6 packets
    ///
    /// Expects IPv6 packets with their header marked. Swaps source and destination address, and
    /// the ports of TCP and UDP packets without extension headers. No checksum changes.
    ///
    /// = SEE ALSO
    ///
    /// IPMirror
    IP6Mirror {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`IP6Mirror::CLASS`].
pub(crate) struct IP6Mirror;

impl IP6Mirror {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for IP6Mirror {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip6_header::view_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            ip.swap_addresses();
            let has_ports = matches!(ip.next_header(), TCP | UDP);
            if has_ports && let Some(ports) = packet.transport_mut().and_then(|t| t.get_mut(..8)) {
                ports[..4].rotate_left(2);
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        const OLD: Reg = Reg(0);
        const PROTOCOL: Reg = Reg(1);
        let protocols = vec![(TCP.into(), TCP.into()), (UDP.into(), UDP.into())];
        let has_ports = Expr::from(PROTOCOL)
            .is_in(IntervalSet::from_intervals(protocols))
            .and(meta::AVAIL_TRANSPORT.ge(8u8));
        Model::from_block(vec![
            Op::when(ip6_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::Let(OLD, ip6::SRC.get()),
            ip6::SRC.set(ip6::DST),
            ip6::DST.set(OLD),
            Op::Let(PROTOCOL, ip6::NEXT.get()),
            Op::when(
                has_ports,
                vec![
                    Op::Let(OLD, transport::SPORT.get()),
                    transport::SPORT.set(transport::DPORT),
                    transport::DPORT.set(OLD),
                ],
            ),
            Op::emit(0u8),
        ])
    }
}

element! {
    /// IP6Fragmenter(MTU) -- sorts out IPv6 packets that are too long
    ///
    /// Expects IPv6 packets with their header marked. Packets of more than MTU bytes from the
    /// header on go to output 1, or are dropped if that is not connected: IPv6 routers do not
    /// fragment (RFC 8200, 5) but say that the packet is too big, which is ICMP6Error's part.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets that were too long.
    ///
    /// = EXAMPLE
    ///
    /// IP6Fragmenter(1500)[1] -> ICMP6Error(2001:db8::1, 2, 0, MTU 1500)
    ///
    /// = SEE ALSO
    ///
    /// ICMP6Error, IPFragmenter
    IP6Fragmenter {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [("1280", 1, 1), ("100", 1, 2)]
    }
}

/// See [`IP6Fragmenter::CLASS`].
pub(crate) struct IP6Fragmenter {
    mtu: u32,
    outputs: usize,
}

/// The packet is longer than the MTU of the next link.
const TOO_BIG: Reason = Reason("packet-too-big");

impl IP6Fragmenter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["MTU"]);
        let mtu = arguments.required("MTU");
        arguments.finish()?;
        Ok(Self { mtu, outputs })
    }
}

impl Element for IP6Fragmenter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| match ip6_header::view(packet) {
            None => Verdict::Drop(NO_HEADER),
            Some(ip) if ip.bytes().len() > self.mtu as usize => Verdict::Reject(1, TOO_BIG),
            Some(_) => Verdict::Pass,
        });
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::when(ip6_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::when(meta::AVAIL_NET.gt(self.mtu), reject(1, self.outputs, TOO_BIG)),
            Op::emit(0u8),
        ])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.count(TOO_BIG).to_string())
    }
}
