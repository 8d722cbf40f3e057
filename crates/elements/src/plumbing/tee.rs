//! Tee.

use ir::{Model, Op};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

element! {
    /// Tee([N]) -- sends every packet to all outputs
    ///
    /// Each output gets its own copy; the last gets the packet itself. N, if given, must be the
    /// number of outputs.
    ///
    /// = SEE ALSO
    ///
    /// PaintTee, RoundRobinSwitch
    Tee {
        category: Plumbing, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("3", 1, 3)]
    }
}

/// See [`Tee::CLASS`].
pub(crate) struct Tee {
    outputs: usize,
}

impl Tee {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["N"]);
        if let Some(n) = arguments.optional::<usize>("N")
            && n != outputs
        {
            let span = arguments.cx().span();
            let error = ir::Diagnostic::error(
                "bad-argument",
                format!("{n} outputs are configured, {outputs} connected"),
            );
            arguments.report(error.label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { outputs })
    }
}

impl Element for Tee {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            for port in 0..self.outputs - 1 {
                let copy = cx.core.pool.copy(&packet);
                cx.emit(port, copy);
            }
            cx.emit(self.outputs - 1, packet);
        }
    }

    fn model(&self) -> Model {
        let last = self.outputs - 1;
        let copies = (0..last).map(|port| Op::EmitCopy(port.into()));
        Model::from_block(copies.chain([Op::emit(last)]).collect())
    }
}
