//! Packets in packets: VXLAN and GRE.

pub(crate) mod gre_decap;
pub(crate) mod gre_encap;
pub(crate) mod vxlan_decap;
pub(crate) mod vxlan_encap;
