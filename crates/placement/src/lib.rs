//! Placement: which part of each chain runs on the switch, on cards and on how many cores, so that every
//! chain gets its SLO and most is gained beyond (Lemur §2.3).
#![forbid(unsafe_code)]

mod baseline;
mod change;
mod check;
mod choose;
mod costs;
mod delay;
mod dual;
mod explain;
mod fair;
mod heuristic;
pub mod lemur;
pub mod linear;
mod manifest;
mod options;
mod pack;
mod plan;
mod policy;
mod problem;
mod rack;
mod search;
mod seat;
mod shape;
mod two_choices;

pub use baseline::at_real_rates;
pub use change::{Changed, MOVE, Step, WORTH, backup, change, transition, without_hosts};
pub use check::{Slack, check};
pub use costs::{Costs, GUESS, Hop, Known, Wanted};
pub use delay::{BATCH, Delay, Waiting};
pub use explain::{Demand, Explanation, Remedy, explain};
pub use fair::fair;
pub use manifest::{ByHand, Click, Library, Manifest, Outline, Text, Traffic};
pub use plan::{Backup, Bound, Document, MadeOf, Placed, Plan, Site};
pub use policy::{NotPlaced, Policy, place};
pub use problem::{
    Card, Chain, Edge, FixedOrder, Function, Host, Kind, Problem, Relief, Replication, Roomy, Slo,
    Switch, Wish,
};
pub use shape::{Group, Island, Load, Shape};
pub use two_choices::{ProbedPlan, two_choices};
