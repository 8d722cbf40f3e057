//! Packets in packets: ESP, GENEVE, GRE, GTP-U, PPPoE and VXLAN.

mod esp;
pub(crate) mod esp_decap;
pub(crate) mod esp_encap;
pub(crate) mod geneve_decap;
pub(crate) mod geneve_encap;
pub(crate) mod gre_decap;
pub(crate) mod gre_encap;
pub(crate) mod gtp_decap;
pub(crate) mod gtp_encap;
pub(crate) mod pppoe_decap;
pub(crate) mod pppoe_encap;
mod udp_tunnel;
pub(crate) mod vxlan_decap;
pub(crate) mod vxlan_encap;
