//! TCP and UDP.

pub(crate) mod check_tcp_header;
pub(crate) mod check_udp_header;
pub(crate) mod new_segment;
pub(crate) mod segments;
pub(crate) mod set_tcp_checksum;
pub(crate) mod set_udp_checksum;
pub(crate) mod syn_proxy;
pub(crate) mod tcp_reset;
pub(crate) mod tcp_tracker;
pub(crate) mod transport_checksum;
pub(crate) mod udp_ip_encap;
