//! IPv4 and ICMP.

pub(crate) mod check_icmp_header;
pub(crate) mod check_ip_header;
pub(crate) mod dec_ip_ttl;
pub(crate) mod fix_ip_src;
pub(crate) mod get_ip_address;
pub(crate) mod icmp_error;
pub(crate) mod icmp_ping_responder;
pub(crate) mod icmp_quote;
pub(crate) mod ip_combo;
pub(crate) mod ip_encap;
pub(crate) mod ip_fragmenter;
pub(crate) mod ip_gw_options;
pub(crate) mod ip_header;
pub(crate) mod ip_mirror;
pub(crate) mod ip_options;
pub(crate) mod ip_reassembler;
pub(crate) mod mark_ip_header;
pub(crate) mod set_ip_address;
pub(crate) mod set_ip_checksum;
pub(crate) mod set_ip_dscp;
pub(crate) mod store_ip_address;
pub(crate) mod strip_ip_header;
