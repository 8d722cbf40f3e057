//! Align, which older configurations hold.

use ir::{Model, Op};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

element! {
    /// Align(MODULUS, OFFSET) -- passes packets unchanged
    ///
    /// In Click, moves packets in memory so that their data starts OFFSET bytes behind a multiple
    /// of MODULUS, which some processors need. Here no element needs it.
    ///
    /// = SEE ALSO
    ///
    /// AlignmentInfo
    Align {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("4, 2", 1, 1)]
    }
}

/// See [`Align::CLASS`].
pub(crate) struct Align;

impl Align {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["MODULUS", "OFFSET"]);
        arguments.required::<u32>("MODULUS");
        arguments.required::<u32>("OFFSET");
        arguments.finish()?;
        Ok(Self)
    }
}

impl Element for Align {
    fn push(&mut self, _port: usize, _batch: &mut Batch, _cx: &mut Context<'_>) {}

    fn model(&self) -> Model {
        Model::from_block(vec![Op::emit(0u8)])
    }
}
