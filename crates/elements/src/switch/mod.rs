//! Outputs by turn, hash, chance, colour or a handler.

pub(crate) mod ip_rr_switch;
pub(crate) mod paint;
pub(crate) mod random;
pub(crate) mod stride_switch;
pub(crate) mod switches;
