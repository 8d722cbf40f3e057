//! Runs chains of network functions on this host, and changes them while they run.
//!
//! An [`Instance`] runs a [`Configuration`] in the Click language. Its devices are what [`io::Bindings`] says
//! that the names in it stand for: captures, generated traffic, interfaces. Here a capture's worth of generated
//! packets passes a filter:
//!
//! ```
//! use catena_engine::io::{Binding, Bindings};
//! use catena_engine::{Configuration, Instance, Options};
//!
//! let chain = "FromDevice(in) -> Strip(14) -> CheckIPHeader
//!     -> f :: IPFilter(deny src host 10.0.0.1, allow all) -> passed :: Counter -> Discard;";
//! let chain = Configuration::of_text("example", chain, &Default::default())?;
//! let mut bindings = Bindings::default();
//! bindings.inputs.insert("in".into(), Binding::source("gen:count=10000,flows=100")?);
//!
//! let instance = Instance::start(chain, bindings, Options::default())?;
//! instance.wait();
//! // 16 of the 100 flows are of the host that is denied.
//! assert_eq!(instance.read("passed.count")?, "8400");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/embed.rs` also changes a chain while it runs: by a handler, and by another configuration.
//!
//! # What it does
//!
//! - [`Instance::change`] lets another configuration replace the one that runs, between two bursts and with all
//!   state that can be carried over; [`Instance::roll_back`] returns.
//! - [`Instance::read`] and [`Instance::write`] are the elements' handlers, [`Instance::stats`] is what each element has
//!   done, [`Instance::tap`] sees packets pass.
//! - [`Instance::set_workers`] and [`Instance::move_group`] bring flows to other workers.
//! - [`supervision`] keeps a run going until it is over: it serves elements' control sockets, and reads the configuration
//!   again when it is asked to.
//! - [`control`] offers all that on a socket, as lines of JSON, and to Prometheus.
//! - [`privileges`] and [`system_calls`] give up what is not needed any more.
//!
//! # Threads
//!
//! Each worker is a thread that runs its own copy of the chain, bound to a CPU if [`Options::cpus`] says so; workers
//! share no state. Programs are synthesised and proven in threads of their own, off the workers' CPUs
//! where there are others. Any thread may use an instance: what it asks for is done by each worker between two
//! bursts. Dropping an instance ends its workers.
//!
//! # What blocks
//!
//! No packet waits for whoever asks for something, longer than that takes. The caller waits: for the
//! workers' current burst with [`Instance::read`], [`Instance::write`] and [`Instance::stats`]; until the new chain is
//! made and its programs are proven with [`Instance::change`], which can be seconds with large tables;
//! until flows have moved with [`Instance::set_workers`] and [`Instance::move_group`], some milliseconds.
//! Changes of a kind that exclude each other wait for each other.
//!
//! # Time
//!
//! Chains, and all that waits here, go by [`Options::time`], the machine's clock unless it is another. Under a
//! [`SimulatedClock`](dataplane::clock::SimulatedClock) time passes only when somebody lets it, and no further than to
//! what is due next. What waits for time then, such as flows that move while elements hold packets back, waits
//! until another thread lets it pass. Devices, clients and code itself go by real time.
//!
//! # Errors
//!
//! An [`Error`] is a kind with what belongs to it, and a code that does not change; of a configuration it is all
//! [`Findings`] with their places in the text. After an error all is as before: the chain that ran runs on.
#![forbid(unsafe_code)]

mod closed;
pub mod control;
mod error;
mod files;
mod findings;
pub mod groups;
mod installer;
pub mod instance;
pub mod privileges;
pub mod scaling;
pub mod session;
pub mod supervision;
pub mod system_calls;

pub use closed::Closed;
pub use dataplane::{io, stats};
pub use error::{CODES, Error};
pub use files::{Disk, read_bytes};
pub use findings::Findings;
pub use instance::{Configuration, Extent, Instance, Options};
