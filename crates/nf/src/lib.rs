//! Network functions in processes of their own: the ABI between them and their host, and its Rust binding.
//!
//! A chain's packets are in shared memory that the host lends to each of its NFs. A batch goes from one to the next by a
//! turn: who has it processes the batch, says what became of each packet, and hands it on. `docs/nf-abi.md` has the whole.
//!
//! ```no_run
//! use catena_nf::{Batch, NetworkFunction, Reason, Setup};
//!
//! struct Short(Reason);
//!
//! impl NetworkFunction for Short {
//!     fn init(_config: &str, setup: &mut Setup) -> Result<Self, String> {
//!         Ok(Self(setup.reason("short")))
//!     }
//!
//!     fn process(&mut self, batch: &mut Batch) {
//!         batch.for_each(|packet| {
//!             if packet.bytes().len() < 34 {
//!                 packet.drop(self.0);
//!             }
//!         });
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     catena_nf::main::<Short>()
//! }
//! ```
#![deny(unsafe_code)]

mod abi;
mod cache;
mod channel;
mod flow;
mod memory;
mod page;
mod runtime;
pub mod sources;
mod store;

pub use abi::{
    CACHE, FLOW, LONGEST_MESSAGE, LONGEST_VALUE, MALFORMED, MOST_COUNTERS, MOST_PACKETS,
    MOST_REASONS, NO_STATE, VERSION,
};
pub use cache::Away;
pub use channel::{Asked, HostEnd, Kept, Names, Offer, Trouble};
pub use flow::{Flow, field};
pub use memory::{Mapping, Memory};
pub use page::{Arrival, Counts, Extent, Layout, Page, State, Verdict};
pub use runtime::{Batch, Counter, NetworkFunction, Packet, Reason, Setup, main, run};
pub use store::{Answer, MOST_READ, Update};
