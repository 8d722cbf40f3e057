//! Measures chains: throughput, latency under load, and what network functions cost.
//!
//! [`measure`] runs a chain in memory on this thread, and offers it traffic that a capture or a generator gave once.
//! Its [`Report`] has, in the terms of RFC 2544, RFC 8219 and MLRsearch (RFC 9971),
//!
//! - what a packet costs when the chain gets as many as it takes,
//! - the loads that it forwards without loss (NDR) and with 0.5 % of loss (PDR), see [`search`],
//! - latencies under parts of that load, counted from when packets were due, see [`memory`],
//! - what each network function takes, element by element, and what the programs take that replace them.
//!
//! [`measure_on_cores`] has a worker on each of several CPUs. [`measure_live`] measures over interfaces, other systems in turns
//! with the chain; [`measure_costs`] finds what placement needs to know.
//!
//! [`compare`](compare::compare) says what became slower between two reports.
//!
//! [`send`](send::send) offers frames to a device open loop, and [`receive`](receive::receive) counts what arrives of them:
//! the traffic generator and the receiver on their own, which know packets by their [`stamp`]s.
//!
//! [`netbench`] measures virtual switches between applications in network namespaces.
//!
//! The time, the CPU's counters and what disturbs a measurement are passed in ([`Meter`]): the search and the taking of
//! latencies are tested on devices whose limits and delays are known.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod compare;
mod cores;
mod costs;
mod hand_off;
pub mod live;
pub mod machine;
mod measure;
pub mod memory;
pub mod netbench;
mod page;
pub mod plot;
pub mod profile;
pub mod receive;
pub mod report;
mod rule_list;
pub mod schema;
pub mod search;
pub mod send;
pub mod stamp;
pub mod statistics;
mod traffic;

pub use cores::measure_on_cores;
pub use costs::measure_costs;
pub use live::{Live, measure_live};
pub use machine::{Machine, Meter};
pub use measure::{Effort, Failed, Request, Size, measure};
pub use report::Report;
pub use statistics::{Samples, percentile_distribution};
