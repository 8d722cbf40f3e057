//! Where packets come from and go to: interfaces, capture files, generators.

pub(crate) mod from_device;
pub(crate) mod from_dump;
pub(crate) mod ip_summary_dump;
pub(crate) mod link_type;
pub(crate) mod process;
pub(crate) mod source;
pub(crate) mod to_dump;
