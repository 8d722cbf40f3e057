//! Placement: which part of each chain runs on the switch, on cards and on how many cores, so that every
//! chain gets its SLO and most is gained beyond (Lemur §2.3).
#![forbid(unsafe_code)]

mod baseline;
mod check;
mod choose;
mod heuristic;
mod manifest;
mod plan;
mod policy;
mod problem;
mod shape;

pub use check::{Slack, check};
pub use choose::{Choice, Chosen, Options, choose, gain, rates};
pub use manifest::Manifest;
pub use plan::{Bound, Document, Placed, Plan, Site};
pub use policy::{NotPlaced, Policy, place};
pub use problem::{
    Card, Chain, Edge, Function, Host, Kind, Problem, Replication, Roomy, Slo, Switch,
};
pub use shape::{Allocation, Group, Load, Shape, on_hosts};
