//! Discard.

use ir::model::StateKind;
use ir::{Model, Op, Reason, StateValue};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Work};
use crate::element_state::ElementState;

element! {
    /// Discard([KEYWORDS ACTIVE, BURST]) -- drops all packets
    ///
    /// Takes packets that are pushed to it, or pulls them when its input is a pull port.
    ///
    /// = KEYWORDS
    ///
    /// ACTIVE (bool, default true): whether it pulls. Means nothing where packets are pushed.
    /// BURST (number, default 32): how many packets it pulls at a time; 0 for as many as come.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// reset_counts (write): starts again from zero.
    /// active (read, write): whether it pulls.
    ///
    /// = SEE ALSO
    ///
    /// Idle
    Discard {
        category: Plumbing, ports: "1/0", processing: "a/a",
        samples: [("", 1, 0)]
    }
}

/// See [`Discard::CLASS`].
pub(crate) struct Discard {
    pulls: bool,
    active: bool,
    burst: usize,
    packets: u64,
    bytes: u64,
}

/// What a packet that reaches the end of a chain on purpose is counted as.
pub(crate) const DISCARDED: Reason = Reason("discarded");

/// Packets that are pulled in one go however large the burst: others want their turn.
const LONGEST_TURN: usize = 4096;

impl Discard {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let pulls = cx.pulls();
        let mut arguments = cx.arguments(&["ACTIVE", "BURST"]);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let burst = match arguments.keyword("BURST") {
            Some(0) => usize::MAX,
            burst => burst.unwrap_or(Batch::DEFAULT_BURST),
        };
        arguments.finish()?;
        Ok(Self { pulls, active, burst, packets: 0, bytes: 0 })
    }
}

impl Element for Discard {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.packets += batch.len() as u64;
        self.bytes += batch.bytes();
        cx.drop_all(batch, DISCARDED);
    }

    fn has_task(&self) -> bool {
        self.pulls
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        for i in 0..self.burst.min(LONGEST_TURN) {
            match cx.pull(0) {
                Some(packet) => {
                    self.packets += 1;
                    self.bytes += packet.len() as u64;
                    cx.drop(packet, DISCARDED);
                }
                None if i == 0 => return Work::Idle,
                None => break,
            }
        }
        Work::Done
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        model.inputs = vec![vec![Op::Count(count), Op::Drop(DISCARDED)]];
        model
    }

    fn counted(&self) -> Option<(u64, u64)> {
        Some((self.packets, self.bytes))
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        (self.packets, self.bytes) =
            from.counter(name, "count").unwrap_or((self.packets, self.bytes));
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count"), Handler::write("reset_counts"), Handler::both("active")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match handler {
            "active" => Ok(self.active.to_string()),
            _ => Ok(self.packets.to_string()),
        }
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "active" => self.active = crate::argument::parse_value(value)?,
            _ => (self.packets, self.bytes) = (0, 0),
        }
        Ok(())
    }
}
