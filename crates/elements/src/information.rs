//! Elements that only inform the system, and about matters that are decided otherwise here: they
//! are accepted so that configurations that have them run.

use ir::Model;
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

/// An element without ports that does nothing.
pub(crate) struct Silent;

impl Silent {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).rest();
        Ok(Self)
    }
}

impl Element for Silent {
    fn push(&mut self, _port: usize, _batch: &mut Batch, _cx: &mut Context<'_>) {}

    fn model(&self) -> Model {
        Model::default()
    }
}

/// Declares a class whose elements are [`Silent`].
macro_rules! silent {
    ($name:ident, $($manual:literal)+) => {
        /// A class of [`Silent`] elements.
        pub(crate) struct $name;

        element! {
            $(#[doc = $manual])+
            $name { ports: "0/0", processing: "a/a", samples: [] }
        }

        impl $name {
            fn configure(cx: &mut Configure<'_>) -> Result<Silent, Failed> {
                Silent::configure(cx)
            }
        }
    };
}

silent!(BalancedThreadSched,
    "BalancedThreadSched([INTERVAL, ...]) -- moves tasks between threads"
    ""
    "Accepted, and means nothing: a chain runs on one worker."
    ""
    "= SEE ALSO"
    ""
    "StaticThreadSched");
