//! Ethernet frames, VLAN tags and ARP.

pub(crate) mod arp_querier;
pub(crate) mod arp_responder;
pub(crate) mod arp_table;
pub(crate) mod check_vlan;
pub(crate) mod drop_broadcasts;
pub(crate) mod ether_encap;
pub(crate) mod ether_rewrite;
pub(crate) mod ether_switch;
pub(crate) mod ether_vlan_encap;
pub(crate) mod host_ether_filter;
pub(crate) mod neighbours;
pub(crate) mod resolver;
pub(crate) mod vlan_encap;
pub(crate) mod vlan_tag;
