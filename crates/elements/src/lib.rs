//! The library of network functions: one file an element (or a few that are one thing), each
//! with its configuration, its model, its push and its manual.
#![forbid(unsafe_code)]

pub mod argument;
pub mod configure;
pub mod context;
pub mod device;
#[macro_use]
pub mod element;
pub mod names;
pub mod registry;

mod align;
mod arp_responder;
mod average_counter;
mod check_icmp_header;
mod check_ip_header;
mod check_length;
mod check_tcp_header;
mod check_udp_header;
mod check_vlan;
mod classifier;
mod counter;
mod dec_ip_ttl;
mod discard;
mod drop_broadcasts;
mod drr_sched;
mod ether_encap;
mod ether_rewrite;
mod ether_vlan_encap;
mod fix_ip_src;
mod from_dump;
mod get_ip_address;
mod handler_call;
mod header_check;
mod host_ether_filter;
mod icmp_error;
mod icmp_ping_responder;
mod ip_classifier;
mod ip_encap;
mod ip_filter;
mod ip_fragmenter;
mod ip_gw_options;
mod ip_header;
mod ip_mirror;
mod ip_options;
mod mark_ip_header;
mod null;
mod pattern;
mod queue;
mod rate;
mod round_robin_sched;
mod set_ip_address;
mod set_ip_checksum;
mod set_ip_dscp;
mod set_tcp_checksum;
mod set_timestamp;
mod set_udp_checksum;
mod store_data;
mod store_ip_address;
mod stride_sched;
mod strip;
mod strip_ip_header;
mod tee;
mod to_dump;
mod transport_checksum;
mod truncate;
mod udp_ip_encap;
mod unqueue;
mod vlan_encap;
mod vlan_tag;

pub use element::Element;
