//! Queues, schedulers, shapers and meters.

pub(crate) mod codel_queue;
pub(crate) mod delay;
pub(crate) mod drr_sched;
pub(crate) mod flow_rated_splitter;
mod htb;
pub(crate) mod htb_sched;
mod managed;
pub(crate) mod meter;
pub(crate) mod queues;
pub(crate) mod red_queue;
pub(crate) mod round_robin_sched;
pub(crate) mod shaper;
pub(crate) mod stride;
pub(crate) mod stride_sched;
pub(crate) mod suppressor;
pub(crate) mod unqueue;
