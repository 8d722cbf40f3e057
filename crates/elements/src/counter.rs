//! Counter.

use ir::model::StateKind;
use ir::{Model, Op, StateValue, Store};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};

element! {
    /// Counter([KEYWORDS]) -- counts packets and bytes
    ///
    /// Passes packets unchanged and counts them.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// byte_count (read): bytes so far.
    /// rate (read): packets per second since the last reset, recent ones weighing more.
    /// reset (write): starts again from zero; reset_counts does the same.
    ///
    /// = SEE ALSO
    ///
    /// AverageCounter
    Counter {
        ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`Counter::CLASS`].
#[derive(Default)]
pub(crate) struct Counter {
    packets: u64,
    bytes: u64,
}

impl Counter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self::default())
    }
}

impl Element for Counter {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        self.packets += batch.len() as u64;
        self.bytes += batch.bytes();
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        model.inputs = vec![vec![Op::Count(count), Op::emit(0u8)]];
        model
    }

    fn export(&self, name: &str, store: &mut Store) {
        store.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
    }

    fn import(&mut self, name: &str, store: &Store) {
        (self.packets, self.bytes) = store.counter(name, "count");
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("count"),
                Handler::read("byte_count"),
                Handler::write("reset"),
                Handler::write("reset_counts"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match handler {
            "byte_count" => Ok(self.bytes.to_string()),
            _ => Ok(self.packets.to_string()),
        }
    }

    fn write(&mut self, _: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        *self = Self::default();
        Ok(())
    }
}
