//! Profiles: where the time of packets and processes goes.
//!
//! After the profiler of SCC (chapter 6 of G. P. Katsikas, *NFV Service Chains at the Speed of the Underlying Commodity
//! Hardware*, KTH, 2018):
//!
//! - [`machine`] measures what the machine takes: loads by level of memory ([`loads`]), address translation, system calls
//!   and context switches ([`system`]);
//! - [`formula`] composes the latency of a packet from them and from counts of events, which [`counters`] reads;
//! - [`chain`] attributes what a packet takes to these, and to network functions and elements;
//! - [`capacity`] measures how much a core does of a chain within an SLO;
//! - [`process`] watches any processes: time that they run, wait and are ready to run;
//! - [`sampling`] finds the functions of the code that both are in, and the system calls that they make.

pub mod caches;
pub mod capacity;
pub mod chain;
pub mod counters;
pub mod formula;
pub mod loads;
pub mod machine;
pub mod process;
pub mod sampling;
mod symbols;
pub mod system;
