//! Rules and patterns that sort packets.

pub(crate) mod classifier;
pub(crate) mod ip_classifier;
pub(crate) mod ip_filter;
pub(crate) mod pattern;
