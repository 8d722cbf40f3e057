//! Information elements without ports that concern machinery which is not there: accepted, so
//! that configurations that have them run.

use ir::Model;

use crate::configure::{Configure, Failed};
use crate::element::Element;

/// Checks that each argument starts with a name, followed by `least` numbers or more.
fn check(cx: &mut Configure<'_>, least: usize) -> Result<(), Failed> {
    let mut arguments = cx.arguments(&[]);
    for argument in arguments.rest() {
        let mut words = argument.words();
        words.next();
        let numbers: Vec<_> = words.collect();
        for number in &numbers {
            arguments.parse::<f64>("", number);
        }
        if numbers.len() < least {
            arguments.error(&argument, "a name with a number behind it is expected");
        }
    }
    arguments.finish()
}

macro_rules! information {
    ($name:ident, $least:literal) => {
        #[doc = concat!("See [`", stringify!($name), "::CLASS`].")]
        pub(crate) struct $name;

        impl $name {
            fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
                check(cx, $least).map(|()| Self)
            }
        }

        impl Element for $name {
            fn model(&self) -> Model {
                Model::default()
            }
        }
    };
}

element! {
    /// ScheduleInfo(ELEMENT TICKETS, ...) -- accepted, without effect
    ///
    /// In Click, sets how often elements that do work of their own are scheduled. Here every
    /// such element gets its turn, and takes a burst.
    ///
    /// = SEE ALSO
    ///
    /// StaticThreadSched
    ScheduleInfo { category: Control, ports: "0/0", processing: "a/a", samples: [] }
}
information!(ScheduleInfo, 1);

element! {
    /// StaticThreadSched(ELEMENT THREAD, ...) -- accepted, without effect
    ///
    /// In Click, sets which thread runs an element. Here a packet stays on the core that its
    /// flow belongs to.
    ///
    /// = SEE ALSO
    ///
    /// ScheduleInfo
    StaticThreadSched { category: Control, ports: "0/0", processing: "a/a", samples: [] }
}
information!(StaticThreadSched, 1);

element! {
    /// BalancedThreadSched([INTERVAL]) -- accepted, without effect
    ///
    /// In Click, moves tasks between threads every INTERVAL milliseconds. Here a packet stays on
    /// the core that its flow belongs to.
    ///
    /// = SEE ALSO
    ///
    /// StaticThreadSched
    BalancedThreadSched { category: Control, ports: "0/0", processing: "a/a", samples: [] }
}
information!(BalancedThreadSched, 0);

element! {
    /// AlignmentInfo(...) -- information that is accepted and not needed
    ///
    /// In Click, declares how packets are aligned in memory. Its arguments are ignored.
    ///
    /// = SEE ALSO
    ///
    /// Align
    AlignmentInfo {
        category: Control, ports: "0/0", processing: "a/a",
        samples: []
    }
}

/// See [`AlignmentInfo::CLASS`].
pub(crate) struct AlignmentInfo;

impl AlignmentInfo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[]);
        arguments.rest();
        arguments.finish()?;
        Ok(Self)
    }
}

impl Element for AlignmentInfo {
    fn model(&self) -> Model {
        Model::opaque("takes no packets")
    }
}
