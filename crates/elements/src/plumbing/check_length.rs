//! CheckLength.

use ir::field::{anno, meta};
use ir::model::reject;
use ir::{Model, Op, Reason};
use net::{Batch, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};

element! {
    /// CheckLength(LENGTH [, KEYWORDS EXTRA_LENGTH]) -- lets packets of at most a length pass
    ///
    /// Packets longer than LENGTH bytes go to output 1, or are dropped if that is not connected.
    ///
    /// = KEYWORDS
    ///
    /// EXTRA_LENGTH (bool, default false): whether bytes that were cut off count too.
    ///
    /// = HANDLERS
    ///
    /// length (read, write): the greatest length that passes.
    ///
    /// = SEE ALSO
    ///
    /// Truncate, IPFragmenter
    CheckLength {
        category: Plumbing, ports: "1/1-2", processing: "a/ah",
        samples: [("60", 1, 1), ("100", 1, 2), ("100, EXTRA_LENGTH true", 1, 2)]
    }
}

/// See [`CheckLength::CLASS`].
pub(crate) struct CheckLength {
    length: u32,
    extra: bool,
    outputs: usize,
}

const TOO_LONG: Reason = Reason("too-long");

impl CheckLength {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["LENGTH", "EXTRA_LENGTH"]);
        let length = arguments.required("LENGTH");
        let extra = arguments.keyword("EXTRA_LENGTH").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { length, extra, outputs })
    }
}

impl Element for CheckLength {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let mut length = packet.len() as u64;
            if self.extra {
                length += u64::from(packet.annotations().u32(annotation::EXTRA_LENGTH));
            }
            if length > self.length.into() { Verdict::Reject(1, TOO_LONG) } else { Verdict::Pass }
        });
    }

    fn model(&self) -> Model {
        let length =
            if self.extra { meta::LEN.get() + anno::EXTRA_LENGTH } else { meta::LEN.get() };
        Model::from_block(vec![
            Op::when(length.gt(self.length), reject(1, self.outputs, TOO_LONG)),
            Op::emit(0u8),
        ])
    }

    value_handler!("length", length);
}
