//! Truncate and Pad.

use ir::field::{anno, meta};
use ir::model::Reg;
use ir::{Base, Expr, Model, Op, Reason};
use net::{Batch, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};

element! {
    /// Truncate(LENGTH [, KEYWORDS EXTRA_LENGTH]) -- cuts packets to a length
    ///
    /// Cuts packets to at most LENGTH bytes.
    ///
    /// = KEYWORDS
    ///
    /// EXTRA_LENGTH (bool, default true): whether the number of bytes cut off is added to the
    /// extra length annotation, so that counts and captures know the packet's true length.
    ///
    /// = HANDLERS
    ///
    /// nbytes (read, write): the length.
    ///
    /// = SEE ALSO
    ///
    /// Pad, Strip, CheckLength
    Truncate {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("50", 1, 1), ("20, EXTRA_LENGTH false", 1, 1)]
    }
}

/// See [`Truncate::CLASS`].
pub(crate) struct Truncate {
    length: u32,
    extra: bool,
}

impl Truncate {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["LENGTH", "EXTRA_LENGTH"]);
        let length = arguments.required("LENGTH");
        let extra = arguments.keyword("EXTRA_LENGTH").unwrap_or(true);
        arguments.finish()?;
        Ok(Self { length, extra })
    }
}

impl Element for Truncate {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        let length = self.length as usize;
        for packet in batch.iter_mut().filter(|packet| packet.len() > length) {
            if self.extra {
                let cut = (packet.len() - length) as u32;
                let annotations = packet.annotations_mut();
                let extra = annotations.u32(annotation::EXTRA_LENGTH).wrapping_add(cut);
                annotations.set_u32(annotation::EXTRA_LENGTH, extra);
            }
            packet.truncate(length);
        }
    }

    fn model(&self) -> Model {
        let mut cut = Vec::new();
        if self.extra {
            let extra = anno::EXTRA_LENGTH.get() + meta::LEN - self.length;
            cut.push(anno::EXTRA_LENGTH.set(extra));
        }
        cut.push(Op::Truncate(self.length.into()));
        Model::from_block(vec![Op::when(meta::LEN.gt(self.length), cut), Op::emit(0u8)])
    }

    value_handler!("nbytes", length);
}

element! {
    /// Pad([LENGTH, KEYWORDS ZERO, RANDOM]) -- extends packets to a length
    ///
    /// Adds bytes at the end of packets that are shorter than LENGTH bytes. If LENGTH is 0 or not
    /// given, as many bytes are added as the extra length annotation says; that is cleared.
    /// Packets that would grow beyond 65,535 bytes are dropped.
    ///
    /// = KEYWORDS
    ///
    /// ZERO (bool, default true): accepted; bytes are zero in any case.
    /// RANDOM (bool, default false): whether the bytes are random, four at a time.
    ///
    /// = SEE ALSO
    ///
    /// Truncate
    Pad {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("60", 1, 1), ("", 1, 1), ("90, ZERO false, RANDOM true", 1, 1)]
    }
}

/// See [`Pad::CLASS`].
pub(crate) struct Pad {
    length: u16,
    random: bool,
}

const TOO_LONG: Reason = Reason("too-long");

impl Pad {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["LENGTH", "ZERO", "RANDOM"]);
        let length = arguments.optional("LENGTH").unwrap_or(0);
        arguments.keyword::<bool>("ZERO");
        let random = arguments.keyword("RANDOM").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { length, random })
    }
}

impl Element for Pad {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, cx| {
            let length = packet.len();
            let extra = match self.length {
                0 => packet.annotations().u32(annotation::EXTRA_LENGTH) as usize,
                wanted => usize::from(wanted).saturating_sub(length),
            };
            if extra > 0 && length + extra > 0xffff {
                return Verdict::Drop(TOO_LONG);
            }
            packet.put(extra);
            packet.annotations_mut().set_u32(annotation::EXTRA_LENGTH, 0);
            if self.random {
                for bytes in packet.data_mut()[length..].chunks_exact_mut(4) {
                    bytes.copy_from_slice(&(cx.random(0, u32::MAX.into()) as u32).to_be_bytes());
                }
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        const AT: Reg = Reg(0);
        const EXTRA: Reg = Reg(1);
        let reg = Expr::from;
        let extra = match self.length {
            0 => anno::EXTRA_LENGTH.get(),
            wanted => meta::LEN.get().max(wanted) - meta::LEN,
        };
        let mut block = vec![
            Op::Let(EXTRA, extra),
            Op::when(
                reg(EXTRA).gt(0u8).and((meta::LEN.get() + EXTRA).gt(0xffffu16)),
                vec![Op::Drop(TOO_LONG)],
            ),
            Op::Let(AT, meta::LEN.get()),
            Op::Extend(reg(EXTRA)),
            anno::EXTRA_LENGTH.set(0u8),
        ];
        if self.random {
            let fill = vec![
                Op::when((reg(AT) + 4u8).gt(meta::LEN), vec![Op::Break]),
                Op::Store {
                    base: Base::Data,
                    offset: reg(AT),
                    width: 32,
                    value: Expr::Random(0, u32::MAX.into()),
                },
                Op::Let(AT, reg(AT) + 4u8),
            ];
            block.push(Op::Repeat { limit: 1 << 14, body: fill });
        }
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }
}
