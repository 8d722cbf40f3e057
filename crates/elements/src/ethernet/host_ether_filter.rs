//! HostEtherFilter.

use ir::field::{eth, meta};
use ir::model::{Block, reject};
use ir::{Expr, Model, Op, Reason};
use net::wire::EtherAddr;
use net::wire::Ethernet;
use net::{Batch, Packet, PacketType};

use crate::argument::{EtherAddress, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_header;

element! {
    /// HostEtherFilter(ETHER [, DROP_OWN, DROP_OTHER, KEYWORDS OFFSET]) -- finds for whom frames are
    ///
    /// Expects Ethernet frames and sets their packet type annotation by their destination: to
    /// this host, whose address is ETHER, to all, to many, or to another host. Frames to other
    /// hosts go to output 1, or are dropped if that is not connected; so do frames that end
    /// within their Ethernet header.
    ///
    /// = KEYWORDS
    ///
    /// DROP_OWN (bool, default false): whether frames from ETHER go to output 1.
    /// DROP_OTHER (bool, default true): whether frames to other hosts go to output 1.
    /// OFFSET (number, default 0): where the Ethernet header starts.
    ///
    /// = HANDLERS
    ///
    /// ether (read, write): the address.
    ///
    /// = SEE ALSO
    ///
    /// DropBroadcasts
    HostEtherFilter {
        category: Ethernet, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("02:00:00:00:00:02", 1, 1), ("02:00:00:00:00:02, true, false", 1, 2),
            ("02:00:00:00:00:02, OFFSET 14", 1, 2)
        ]
    }
}

/// See [`HostEtherFilter::CLASS`].
pub(crate) struct HostEtherFilter {
    address: EtherAddr,
    drop_own: bool,
    drop_other: bool,
    offset: u16,
    outputs: usize,
}

/// The frame was sent by this host.
const OWN: Reason = Reason("own-frame");
/// The frame is for another host.
const OTHER: Reason = Reason("other-host");
const TOO_SHORT: Reason = Reason("too-short");

impl HostEtherFilter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["ETHER", "DROP_OWN", "DROP_OTHER", "OFFSET"]);
        let address = arguments.required("ETHER");
        let drop_own = arguments.optional("DROP_OWN").unwrap_or(false);
        let drop_other = arguments.optional("DROP_OTHER").unwrap_or(true);
        let offset = arguments.keyword_argument("OFFSET");
        let offset = offset.map_or(0, |o| ip_header::parse_offset(&mut arguments, "OFFSET", &o));
        arguments.finish()?;
        Ok(Self { address, drop_own, drop_other, offset, outputs })
    }

    fn filter(&self, packet: &mut Packet) -> Verdict {
        let offset = usize::from(self.offset);
        let Some(frame) = packet.data().get(offset..).and_then(Ethernet::new) else {
            return Verdict::Reject(1, TOO_SHORT);
        };
        let destination = frame.dst();
        if self.drop_own && self.address == frame.src() {
            return Verdict::Reject(1, OWN);
        }
        let packet_type = if destination == self.address {
            PacketType::Host
        } else if destination.is_broadcast() {
            PacketType::Broadcast
        } else if destination.is_multicast() {
            PacketType::Multicast
        } else {
            PacketType::OtherHost
        };
        packet.set_packet_type(packet_type);
        if packet_type == PacketType::OtherHost && self.drop_other {
            return Verdict::Reject(1, OTHER);
        }
        Verdict::Pass
    }
}

impl Element for HostEtherFilter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.filter(packet));
    }

    fn model(&self) -> Model {
        let own = self.address.to_bits();
        let destination = || Expr::from(ip_header::unmarked(eth::DST, self.offset));
        let source = Expr::from(ip_header::unmarked(eth::SRC, self.offset));
        let pass = |packet_type: PacketType| -> Block {
            vec![meta::TYPE.set(packet_type as u8), Op::emit(0u8)]
        };
        let mut block =
            vec![Op::when(meta::LEN.lt(self.offset + 14), reject(1, self.outputs, TOO_SHORT))];
        if self.drop_own {
            block.push(Op::when(source.eq(own), reject(1, self.outputs, OWN)));
        }
        block.extend([
            Op::when(destination().eq(own), pass(PacketType::Host)),
            Op::when(destination().eq((1u64 << 48) - 1), pass(PacketType::Broadcast)),
            Op::when(((destination() >> 40u8) & 1u8).eq(1u8), pass(PacketType::Multicast)),
            meta::TYPE.set(PacketType::OtherHost as u8),
        ]);
        if self.drop_other {
            block.extend(reject(1, self.outputs, OTHER));
        } else {
            block.push(Op::emit(0u8));
        }
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("ether")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(format!("{:#}", self.address))
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.address = parse_value::<EtherAddress>(value)?;
        Ok(())
    }
}
