//! CheckVLAN.

use ir::field::{eth, meta, vlan};
use ir::model::reject;
use ir::{IntervalSet, Model, Op, Reason};
use net::Batch;
use net::wire::ether_type;
use net::wire::{Ethernet, Vlan};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};

element! {
    /// CheckVLAN([VLAN_ID ...]) -- lets frames of some VLANs pass
    ///
    /// Expects Ethernet frames. Frames with an IEEE 802.1Q or 802.1ad tag whose VLAN is one of
    /// the arguments pass unchanged, or any tagged frame if there are no arguments. Other frames
    /// go to output 1, or are dropped if that is not connected.
    ///
    /// = HANDLERS
    ///
    /// drops (read): frames that did not pass.
    ///
    /// = EXAMPLE
    ///
    /// CheckVLAN(10, 20)
    ///
    /// = SEE ALSO
    ///
    /// VLANEncap, VLANDecap, StripEtherVLANHeader
    CheckVLAN {
        category: Ethernet, ports: "1/1-2", processing: "a/ah",
        samples: [("5, 7", 1, 2), ("", 1, 1)]
    }
}

/// See [`CheckVLAN::CLASS`].
pub(crate) struct CheckVLAN {
    /// In order.
    ids: Vec<u16>,
    outputs: usize,
}

/// The frame has no VLAN tag.
const UNTAGGED: Reason = Reason("untagged");
/// The frame has another VLAN.
const OTHER: Reason = Reason("other-vlan");

impl CheckVLAN {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&[]);
        let mut ids = Vec::new();
        for argument in arguments.rest() {
            for word in argument.words() {
                let id: u16 = arguments.parse("VLAN_ID", &word).unwrap_or(0);
                if id > 0xfff {
                    arguments.error(&word, format!("{id} is out of range: 0 to 4095"));
                }
                ids.push(id);
            }
        }
        arguments.finish()?;
        ids.sort_unstable();
        Ok(Self { ids, outputs })
    }
}

impl Element for CheckVLAN {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let tag = Ethernet::new(packet.data())
                .filter(|frame| ether_type::is_vlan(frame.ether_type()))
                .and_then(|frame| Some(Vlan::new(frame.payload())?.tci()));
            let Some(tag) = tag else { return Verdict::Reject(1, UNTAGGED) };
            let id = tag.vid();
            if self.ids.is_empty() || self.ids.binary_search(&id).is_ok() {
                Verdict::Pass
            } else {
                Verdict::Reject(1, OTHER)
            }
        });
    }

    fn model(&self) -> Model {
        let set = |numbers: &mut dyn Iterator<Item = u16>| {
            IntervalSet::from_intervals(numbers.map(|n| (n.into(), n.into())).collect())
        };
        let types = set(&mut (0..=u16::MAX).filter(|&t| ether_type::is_vlan(t)));
        let untagged = meta::LEN.lt(18u8).or(eth::TYPE.is_in(types).not());
        let mut block = vec![Op::when(untagged, reject(1, self.outputs, UNTAGGED))];
        if !self.ids.is_empty() {
            let ids = set(&mut self.ids.iter().copied());
            block.push(Op::when(vlan::ID.is_in(ids).not(), reject(1, self.outputs, OTHER)));
        }
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
