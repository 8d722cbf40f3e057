//! What works on any packet: counting, printing, cutting, copying.

pub(crate) mod align;
pub(crate) mod average_counter;
pub(crate) mod check_length;
pub(crate) mod counter;
pub(crate) mod discard;
pub(crate) mod flood_detector;
pub(crate) mod flow_key;
pub(crate) mod flow_monitor;
pub(crate) mod ip_print;
mod ipfix;
pub(crate) mod null;
pub(crate) mod print;
pub(crate) mod restore_anno;
pub(crate) mod set_timestamp;
mod space_saving;
pub(crate) mod store_data;
pub(crate) mod strip;
pub(crate) mod tee;
pub(crate) mod truncate;
