//! DropBroadcasts.

use ir::field::meta;
use ir::model::reject;
use ir::{IntervalSet, Model, Op, Reason};
use net::{Batch, PacketType};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};

element! {
    /// DropBroadcasts() -- drops packets that were sent to all or to many
    ///
    /// Drops packets whose packet type annotation says that their frame went to a broadcast or
    /// multicast address, or sends them to output 1 if that is connected. HostEtherFilter and
    /// devices set the packet type. A router must not forward such packets (RFC 1812, 5.3.4).
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets dropped.
    ///
    /// = SEE ALSO
    ///
    /// HostEtherFilter
    DropBroadcasts {
        category: Ethernet, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("", 1, 2)]
    }
}

/// See [`DropBroadcasts::CLASS`].
pub(crate) struct DropBroadcasts {
    outputs: usize,
}

/// The frame was a link-layer broadcast or multicast.
const BROADCAST: Reason = Reason("link-broadcast");

impl DropBroadcasts {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        cx.arguments(&[]).finish()?;
        Ok(Self { outputs })
    }
}

impl Element for DropBroadcasts {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| match packet.packet_type() {
            PacketType::Broadcast | PacketType::Multicast => Verdict::Reject(1, BROADCAST),
            _ => Verdict::Pass,
        });
    }

    fn model(&self) -> Model {
        let (broadcast, multicast) = (PacketType::Broadcast as u128, PacketType::Multicast as u128);
        let dropped = meta::TYPE.is_in(IntervalSet::range(broadcast, multicast));
        Model::from_block(vec![Op::If(
            dropped,
            reject(1, self.outputs, BROADCAST),
            vec![Op::emit(0u8)],
        )])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.total().to_string())
    }
}
