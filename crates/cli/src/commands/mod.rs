//! The commands, one file each.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod click;
pub(crate) mod compile;
pub(crate) mod ctl;
pub(crate) mod deploy;
pub(crate) mod elements;
pub(crate) mod explain;
pub(crate) mod flatten;
pub(crate) mod fmt;
pub(crate) mod r#gen;
pub(crate) mod graph;
pub(crate) mod host;
pub(crate) mod lab;
pub(crate) mod nf;
pub(crate) mod offload;
pub(crate) mod place;
pub(crate) mod profile;
pub(crate) mod recv;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod swx;
pub(crate) mod synth;
pub(crate) mod top;
pub(crate) mod verify;
