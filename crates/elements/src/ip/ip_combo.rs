//! IPInputCombo and IPOutputCombo: the paths into and out of a router, each as one element.

use std::net::Ipv4Addr;

use ir::field::{anno, ip, meta};
use ir::model::reject;
use ir::{IntervalSet, Model, Op, Reason};
use net::{Batch, PacketType, annotation};

use crate::argument::Ip;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::header_check::Check;
use crate::ip::check_ip_header::ValidHeader;
use crate::ip::ip_gw_options::{BAD_OPTION, Router};
use crate::ip::ip_header::{self, NO_HEADER};

element! {
    /// IPInputCombo(COLOR [, BADADDRS, KEYWORDS INTERFACES, BADSRC, GOODDST]) -- what a router does with frames that come in
    ///
    /// Does what Paint(COLOR) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) do, with the
    /// given keywords of CheckIPHeader. Invalid packets are dropped.
    ///
    /// = HANDLERS
    ///
    /// drops (read): invalid packets.
    ///
    /// = SEE ALSO
    ///
    /// Paint, Strip, CheckIPHeader, GetIPAddress, IPOutputCombo
    IPInputCombo {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("3, INTERFACES 10.0.0.1/24 10.1.0.1/16", 1, 1), ("255, 18.26.4.9", 1, 1)]
    }
}

/// See [`IPInputCombo::CLASS`].
pub(crate) struct IPInputCombo {
    color: u8,
    header: ValidHeader,
}

impl IPInputCombo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["COLOR", "INTERFACES", "BADSRC", "GOODDST"]);
        let color = arguments.required("COLOR");
        let mut header = ValidHeader { checksum: true, ..ValidHeader::default() };
        if let Some(list) = arguments.next_raw() {
            header.read_bad_sources(&mut arguments, &list);
        }
        header.read_lists(&mut arguments);
        arguments.finish()?;
        Ok(Self { color, header })
    }
}

impl Element for IPInputCombo {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            packet.annotations_mut().set_u8(annotation::PAINT, self.color);
            packet.pull(14);
            self.header.check(packet).map_or_else(Verdict::Drop, |()| Verdict::Pass)
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![anno::PAINT.set(self.color), Op::pull(14u8)];
        block.extend(self.header.model(&|reason| vec![Op::Drop(reason)]));
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.total().to_string())
    }
}

element! {
    /// IPOutputCombo(COLOR, IPADDR, MTU) -- what a router does with packets that go out
    ///
    /// Does what DropBroadcasts, PaintTee(COLOR), IPGWOptions(IPADDR), FixIPSrc(IPADDR), DecIPTTL
    /// and the length check of IPFragmenter(MTU) do, one after the other. Packets go to output 0;
    /// copies of packets painted COLOR to output 1, for redirects; packets with malformed options
    /// to output 2; expired ones to output 3; and those longer than MTU to output 4.
    ///
    /// = SEE ALSO
    ///
    /// DropBroadcasts, PaintTee, IPGWOptions, FixIPSrc, DecIPTTL, IPFragmenter, IPInputCombo
    IPOutputCombo {
        category: Ip, ports: "1/5", processing: "h/h",
        samples: [("3, 10.0.0.1, 60", 1, 5)]
    }
}

/// See [`IPOutputCombo::CLASS`].
pub(crate) struct IPOutputCombo {
    color: u8,
    address: Ipv4Addr,
    mtu: u32,
    router: Router,
}

/// Outputs after the first.
const REDIRECT: usize = 1;
const PROBLEM: usize = 2;
const TTL: usize = 3;
const FRAGMENT: usize = 4;
const OUTPUTS: usize = 5;

const BROADCAST: Reason = Reason("link-broadcast");
const EXPIRED: Reason = Reason("ttl-expired");
/// The packet is longer than the MTU, and its DF bit is set.
const TOO_LONG: Reason = Reason("fragmentation-needed");

impl IPOutputCombo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["COLOR", "IPADDR", "MTU"]);
        let color = arguments.required("COLOR");
        let address: Ip = arguments.required("IPADDR");
        let mtu = arguments.required("MTU");
        arguments.finish()?;
        Ok(Self { color, address: address.0, mtu, router: Router::new(address.0) })
    }
}

impl Element for IPOutputCombo {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, cx| {
            if matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast) {
                return Verdict::Drop(BROADCAST);
            }
            if packet.annotations().u8(annotation::PAINT) == self.color {
                let copy = cx.core.pool.copy(packet);
                cx.emit(REDIRECT, copy);
            }
            let fix = packet.annotations().u8(annotation::FIX_IP_SRC) != 0;
            let Some(mut ip) = ip_header::view_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            if let Err(at) = self.router.process(&mut ip, cx.now()) {
                packet.annotations_mut().set_u8(annotation::ICMP_PARAMETER_PROBLEM, at);
                return Verdict::Reject(PROBLEM, BAD_OPTION);
            }
            if fix {
                ip.set_src(self.address);
                ip.fill_checksum();
            }
            let expired = ip.ttl() <= 1;
            if !expired {
                ip.decrement_ttl();
            }
            if fix {
                packet.annotations_mut().set_u8(annotation::FIX_IP_SRC, 0);
            }
            if expired {
                return Verdict::Reject(TTL, EXPIRED);
            }
            if packet.len() > self.mtu as usize {
                return Verdict::Reject(FRAGMENT, TOO_LONG);
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let (broadcast, multicast) = (PacketType::Broadcast as u128, PacketType::Multicast as u128);
        let mut fix = vec![ip::SRC.set(self.address.to_bits())];
        fix.extend(ip_header::model_fill_checksum());
        fix.push(anno::FIX_IP_SRC.set(0u8));
        let mut block = vec![
            Op::when(
                meta::TYPE.is_in(IntervalSet::range(broadcast, multicast)),
                vec![Op::Drop(BROADCAST)],
            ),
            Op::when(anno::PAINT.eq(self.color), vec![Op::EmitCopy(REDIRECT.into())]),
            Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
        ];
        block.extend(self.router.model(&reject(PROBLEM, OUTPUTS, BAD_OPTION)));
        block.extend([
            Op::when(anno::FIX_IP_SRC.ne(0u8), fix),
            Op::when(ip::TTL.le(1u8), reject(TTL, OUTPUTS, EXPIRED)),
        ]);
        block.extend(ip_header::model_decrement_ttl());
        block.extend([
            Op::when(meta::LEN.gt(self.mtu), reject(FRAGMENT, OUTPUTS, TOO_LONG)),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }
}
