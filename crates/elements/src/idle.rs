//! Idle.

use ir::{Model, Op, Reason};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

element! {
    /// Idle() -- never does anything
    ///
    /// Takes packets that are pushed to it and drops them; never pulls, pushes or hands out any.
    /// It fills ports that must be connected.
    ///
    /// = SEE ALSO
    ///
    /// Discard
    Idle {
        ports: "-/-", processing: "a/a",
        flow: "x/y",
        samples: [("", 1, 0)]
    }
}

/// See [`Idle::CLASS`].
pub(crate) struct Idle;

/// Nobody wants it.
const IDLE: Reason = Reason("idle");

impl Idle {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for Idle {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            cx.drop(packet, IDLE);
        }
    }

    fn pull(&mut self, _port: usize, _cx: &mut Context<'_>) -> Option<net::Packet> {
        None
    }

    fn model(&self) -> Model {
        Model::from_block(vec![Op::Drop(IDLE)])
    }
}
