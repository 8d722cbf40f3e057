//! What elements that check headers have in common: counts, messages, handlers, and what becomes
//! of invalid packets.

use ir::model::{Block, StateKind, reject};
use ir::{Model, Op, Reason, StateValue, Store};
use net::{Batch, Packet};

use crate::configure::Arguments;
use crate::context::{Context, Tally};
use crate::element::{Handler, HandlerContext, Verdict};

/// Reasons for which packets are found invalid, and what Click calls them, in Click's order.
pub(crate) type Reasons = &'static [(Reason, &'static str)];

/// Counts valid packets and sends invalid ones to output 1, or drops them if there is none.
pub(crate) struct HeaderCheck {
    /// The protocol whose header is checked.
    protocol: &'static str,
    reasons: Reasons,
    /// Who shows a message for each invalid packet, if anybody.
    verbose: Option<String>,
    details: bool,
    outputs: usize,
    packets: u64,
    bytes: u64,
}

impl HeaderCheck {
    /// Takes the keywords VERBOSE and DETAILS, which the caller has declared.
    pub(crate) fn configure(
        arguments: &mut Arguments<'_, '_>,
        protocol: &'static str,
        reasons: Reasons,
    ) -> Self {
        let verbose = arguments.keyword("VERBOSE").unwrap_or(false);
        let details = arguments.keyword("DETAILS").unwrap_or(false);
        let cx = arguments.cx();
        let (verbose, outputs) = (verbose.then(|| cx.name().to_string()), cx.outputs());
        Self { protocol, reasons, verbose, details, outputs, packets: 0, bytes: 0 }
    }

    /// Pushes a batch through a check.
    #[inline]
    pub(crate) fn push(
        &mut self,
        batch: &mut Batch,
        cx: &mut Context<'_>,
        mut check: impl FnMut(&mut Packet) -> Result<(), Reason>,
    ) {
        let mut bytes = 0;
        cx.each(batch, |packet, cx| match check(packet) {
            Ok(()) => {
                bytes += packet.len() as u64;
                Verdict::Pass
            }
            Err(reason) => {
                if self.verbose.is_some() {
                    self.complain(reason, cx);
                }
                Verdict::Reject(1, reason)
            }
        });
        // What is valid stays.
        self.packets += batch.len() as u64;
        self.bytes += bytes;
    }

    #[cold]
    fn complain(&self, reason: Reason, cx: &mut Context<'_>) {
        let Self { verbose: Some(name), protocol, reasons, .. } = self else { return };
        let text = reasons.iter().find(|(r, _)| *r == reason).map_or("", |(_, text)| text);
        cx.message(&format!("{name}: {protocol} header check failed: {text}"));
    }

    /// What becomes of packets that are invalid for a reason.
    pub(crate) fn invalid(&self, reason: Reason) -> Block {
        reject(1, self.outputs, reason)
    }

    /// The model of a check; its block goes on with valid packets only.
    pub(crate) fn model(&self, check: Block) -> Model {
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        let mut block = check;
        block.extend([Op::Count(count), Op::emit(0u8)]);
        model.inputs = vec![block];
        model
    }

    /// See [`crate::Element::export`].
    pub(crate) fn export(&self, name: &str, store: &mut Store) {
        store.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
    }

    /// See [`crate::Element::import`].
    pub(crate) fn import(&mut self, name: &str, store: &Store) {
        (self.packets, self.bytes) = store.counter(name, "count");
    }

    /// See [`crate::Element::handlers`].
    pub(crate) fn handlers(&self) -> &'static [Handler] {
        if self.details {
            const { &[Handler::count("count"), Handler::count("drops"), Handler::read("drop_details")] }
        } else {
            const { &[Handler::count("count"), Handler::count("drops")] }
        }
    }

    /// See [`crate::Element::read`].
    pub(crate) fn read(&self, handler: &str, cx: &HandlerContext<'_>) -> String {
        match handler {
            "count" => self.packets.to_string(),
            "drops" => cx.tally.total().to_string(),
            _ => details(self.reasons, cx.tally),
        }
    }
}

fn details(reasons: Reasons, tally: &Tally) -> String {
    let line = |(reason, text): &(Reason, _)| {
        format!("{:>15} packets due to: {text:>24}\n", tally.count(*reason))
    };
    reasons.iter().map(line).collect()
}
