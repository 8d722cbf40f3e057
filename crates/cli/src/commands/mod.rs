//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod elements;
pub(crate) mod fmt;
pub(crate) mod run;
