//! Null and its kin, which pass packets as they are, and Idle, which neither passes nor makes any.

use ir::{Model, Op, Reason};
use net::{Batch, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

/// Passes packets unchanged.
pub(crate) struct Passing;

impl Passing {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

impl Element for Passing {
    fn push(&mut self, _port: usize, _batch: &mut Batch, _cx: &mut Context<'_>) {}

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        cx.pull(0)
    }

    fn model(&self) -> Model {
        Model::from_block(vec![Op::emit(0u8)])
    }
}

/// Declares a class whose elements are [`Passing`].
macro_rules! passing {
    ($name:ident, $processing:literal, [$($sample:tt)*], $($manual:literal)+) => {
        /// A class of [`Passing`] elements.
        pub(crate) struct $name;

        element! {
            $(#[doc = $manual])+
            $name { category: Plumbing, ports: "1/1", processing: $processing, samples: [$($sample)*] }
        }

        impl $name {
            fn configure(cx: &mut Configure<'_>) -> Result<Passing, Failed> {
                Passing::configure(cx)
            }
        }
    };
}

passing!(Null, "a/a", [("", 1, 1)],
    "Null() -- passes packets unchanged"
    ""
    "Does nothing to packets. Useful as a name for a place in a chain, and to measure what an"
    "element costs."
    ""
    "= SEE ALSO"
    ""
    "Idle, PushNull, PullNull");
passing!(Null1, "a/a", [("", 1, 1)],
    "Null1() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null2, "a/a", [("", 1, 1)],
    "Null2() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null3, "a/a", [("", 1, 1)],
    "Null3() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null4, "a/a", [("", 1, 1)],
    "Null4() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null5, "a/a", [("", 1, 1)],
    "Null5() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null6, "a/a", [("", 1, 1)],
    "Null6() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null7, "a/a", [("", 1, 1)],
    "Null7() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(Null8, "a/a", [("", 1, 1)],
    "Null8() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(NullElement, "a/a", [("", 1, 1)],
    "NullElement() -- passes packets unchanged" "" "The same as Null."
    "" "= SEE ALSO" "" "Null");
passing!(PushNull, "h/h", [("", 1, 1)],
    "PushNull() -- passes packets that are pushed unchanged" "" "The same as Null, but only in push paths."
    "" "= SEE ALSO" "" "Null, PullNull");
passing!(PushNullElement, "h/h", [("", 1, 1)],
    "PushNullElement() -- passes packets that are pushed unchanged" "" "The same as PushNull."
    "" "= SEE ALSO" "" "PushNull");
passing!(PullNull, "l/l", [],
    "PullNull() -- passes packets that are pulled unchanged" "" "The same as Null, but only in pull paths."
    "" "= SEE ALSO" "" "Null, PushNull");
passing!(PullNullElement, "l/l", [],
    "PullNullElement() -- passes packets that are pulled unchanged" "" "The same as PullNull."
    "" "= SEE ALSO" "" "PullNull");

element! {
    /// Idle() -- drops packets and makes none
    ///
    /// Packets that are pushed to it are dropped, and nothing can be pulled from it: a plug for
    /// ports that are not used.
    ///
    /// = SEE ALSO
    ///
    /// Discard, Null
    Idle {
        category: Plumbing, ports: "-/-", processing: "a/a",
        flow: "x/y",
        samples: [("", 1, 0), ("", 2, 1)]
    }
}

/// See [`Idle::CLASS`].
pub(crate) struct Idle;

/// The element accepts no packets.
const IDLE: Reason = Reason("idle");

impl Idle {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        // Whatever arguments there are, they mean nothing.
        cx.arguments(&[]).rest();
        Ok(Self)
    }
}

impl Element for Idle {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.drop_all(batch, IDLE);
    }

    fn pull(&mut self, _port: usize, _cx: &mut Context<'_>) -> Option<Packet> {
        None
    }

    fn has_room(&self) -> Option<bool> {
        Some(false)
    }

    fn has_packets(&self) -> Option<bool> {
        Some(false)
    }

    fn model(&self) -> Model {
        Model::from_block(vec![Op::Drop(IDLE)])
    }
}
