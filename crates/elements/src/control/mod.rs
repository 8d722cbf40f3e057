//! Names, scripts and what else concerns the chain rather than packets.

pub(crate) mod address_info;
pub(crate) mod annotation_info;
pub(crate) mod control_socket;
pub(crate) mod schedule_info;
pub(crate) mod script;
