//! IPv6, ICMPv6 and neighbour discovery.

pub(crate) mod check_ip6_header;
pub(crate) mod dec_ip6_hlim;
pub(crate) mod embedding;
pub(crate) mod get_ip6_address;
pub(crate) mod host_table;
pub(crate) mod icmp6_error;
pub(crate) mod icmp_translation;
pub(crate) mod ip6_encap;
pub(crate) mod ip6_flow_tracker;
pub(crate) mod ip6_header;
pub(crate) mod ip6_host_mapper;
pub(crate) mod ip6_nd_advertiser;
pub(crate) mod ip6_nd_solicitor;
pub(crate) mod ip6_prefix_translator;
pub(crate) mod protocol_translator46;
pub(crate) mod protocol_translator64;
pub(crate) mod translation;
pub(crate) mod upper;
