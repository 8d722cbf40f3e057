//! Elements that check headers: counts, messages, handlers, and what becomes of invalid packets.

use ir::model::{Block, StateKind, reject};
use ir::{Model, Op, Reason, StateValue};
use net::{Batch, Packet};

use crate::configure::{Arguments, Failed};
use crate::context::{Context, Tally};
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;

/// Reasons for which packets are found invalid, and what Click calls them, in Click's order.
pub(crate) type Reasons = &'static [(Reason, &'static str)];

/// What makes a header valid.
pub(crate) trait Check {
    /// Checks a packet's header, and marks or cuts the packet where that belongs to it.
    ///
    /// # Errors
    /// Why it is invalid.
    fn check(&self, packet: &mut Packet) -> Result<(), Reason>;

    /// The same as a block that goes on with valid packets; `invalid` is what becomes of others.
    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block;
}

/// An element that counts valid packets and sends invalid ones to output 1, or drops them if there
/// is none.
pub(crate) struct HeaderCheck<C> {
    check: C,
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

impl<C: Check> HeaderCheck<C> {
    /// Takes the keywords VERBOSE and DETAILS, which the caller has declared, and all arguments
    /// must have been taken then.
    ///
    /// # Errors
    /// [`Failed`] after errors were reported.
    pub(crate) fn configure(
        mut arguments: Arguments<'_, '_>,
        protocol: &'static str,
        reasons: Reasons,
        check: C,
    ) -> Result<Self, Failed> {
        let verbose = arguments.keyword("VERBOSE").unwrap_or(false);
        let details = arguments.keyword("DETAILS").unwrap_or(false);
        let cx = arguments.cx();
        let (verbose, outputs) = (verbose.then(|| cx.name().to_string()), cx.outputs());
        arguments.finish()?;
        Ok(Self { check, protocol, reasons, verbose, details, outputs, packets: 0, bytes: 0 })
    }

    #[cold]
    fn complain(&self, reason: Reason, cx: &mut Context<'_>) {
        let Self { verbose: Some(name), protocol, reasons, .. } = self else { return };
        let text = reasons.iter().find(|(r, _)| *r == reason).map_or("", |(_, text)| text);
        cx.message(&format!("{name}: {protocol} header check failed: {text}"));
    }
}

impl<C: Check> Element for HeaderCheck<C> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut bytes = 0;
        cx.each(batch, |packet, cx| match self.check.check(packet) {
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

    fn model(&self) -> Model {
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        let mut block = self.check.model(&|reason| reject(1, self.outputs, reason));
        block.extend([Op::Count(count), Op::emit(0u8)]);
        model.inputs = vec![block];
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        (self.packets, self.bytes) =
            from.counter(name, "count").unwrap_or((self.packets, self.bytes));
    }

    fn handlers(&self) -> &'static [Handler] {
        if self.details {
            const { &[Handler::count("count"), Handler::count("drops"), Handler::read("drop_details")] }
        } else {
            const { &[Handler::count("count"), Handler::count("drops")] }
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.packets.to_string(),
            "drops" => cx.tally.total().to_string(),
            _ => details(self.reasons, cx.tally),
        })
    }
}

fn details(reasons: Reasons, tally: &Tally) -> String {
    let line = |(reason, text): &(Reason, _)| {
        format!("{:>15} packets due to: {text:>24}\n", tally.count(*reason))
    };
    reasons.iter().map(line).collect()
}
