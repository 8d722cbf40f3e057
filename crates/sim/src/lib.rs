//! A discrete-event simulator of a rack whose cores are scaled.
//!
//! Packets of a [`Trace`] go through a switch, links, receive queues and cores; policies of `scale` see what they would see
//! of a real rack, and their orders take effect after what a real device takes. Time is in whole nanoseconds, events lie in
//! one heap, and all chance comes from one seed: the same run gives the same report, to the byte.
#![forbid(unsafe_code)]

mod cell;
mod chain;
mod control;
mod event;
pub mod experiments;
mod flows;
mod generate;
mod histogram;
mod math;
mod published;
mod rack;
mod random;
mod report;
mod scheme;
mod streams;
mod superbursts;
mod tape;
mod trace;
mod world;

pub use chain::{Chain, CoreCosts, Function};
pub use generate::{Generated, Traffic};
pub use published::{LOOSE, Row, TABLES, Table};
pub use rack::Rack;
pub use report::{Latencies, Report, Second};
pub use scheme::{Kind, Mode, Outlook, Scheme, Setup};
pub use streams::Streams;
pub use superbursts::{Fit, Published, SERVICES, Superbursts, published};
pub use trace::{Arrival, Capture, Faster, Key, Trace, Until, key, symmetric_hash};
