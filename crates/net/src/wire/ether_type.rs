//! Ether types (IEEE 802 numbers).

/// Smaller values of the type field are lengths of IEEE 802.3 frames.
pub const MIN: u16 = 0x0600;
/// IPv4.
pub const IPV4: u16 = 0x0800;
/// ARP.
pub const ARP: u16 = 0x0806;
/// Wake-on-LAN.
pub const WAKE_ON_LAN: u16 = 0x0842;
/// Transparent Ethernet bridging, as GRE and NSH name an Ethernet payload.
pub const TEB: u16 = 0x6558;
/// RARP.
pub const RARP: u16 = 0x8035;
/// 802.1Q customer tag.
pub const VLAN: u16 = 0x8100;
/// IPX.
pub const IPX: u16 = 0x8137;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// Pause frames and other MAC control.
pub const MAC_CONTROL: u16 = 0x8808;
/// LACP and other slow protocols.
pub const SLOW: u16 = 0x8809;
/// MPLS unicast.
pub const MPLS: u16 = 0x8847;
/// MPLS with an upstream-assigned label.
pub const MPLS_MULTICAST: u16 = 0x8848;
/// PPPoE discovery.
pub const PPPOE_DISCOVERY: u16 = 0x8863;
/// PPPoE session.
pub const PPPOE_SESSION: u16 = 0x8864;
/// Network Service Header (RFC 8300).
pub const NSH: u16 = 0x894f;
/// 802.1ad service tag.
pub const QINQ: u16 = 0x88a8;
/// LLDP.
pub const LLDP: u16 = 0x88cc;
/// Precision Time Protocol.
pub const PTP: u16 = 0x88f7;
/// The service tag's number before 802.1ad.
pub const QINQ_OLD: u16 = 0x9100;

/// True for the types that announce a VLAN tag.
#[inline]
pub const fn is_vlan(ether_type: u16) -> bool {
    matches!(ether_type, VLAN | QINQ | QINQ_OLD)
}

/// The protocol's usual name.
pub const fn name(ether_type: u16) -> Option<&'static str> {
    Some(match ether_type {
        IPV4 => "IPv4",
        ARP => "ARP",
        WAKE_ON_LAN => "Wake-on-LAN",
        TEB => "Ethernet",
        RARP => "RARP",
        VLAN => "802.1Q",
        IPX => "IPX",
        IPV6 => "IPv6",
        MAC_CONTROL => "MAC control",
        SLOW => "slow protocols",
        MPLS | MPLS_MULTICAST => "MPLS",
        PPPOE_DISCOVERY => "PPPoE discovery",
        PPPOE_SESSION => "PPPoE",
        NSH => "NSH",
        QINQ | QINQ_OLD => "802.1ad",
        LLDP => "LLDP",
        PTP => "PTP",
        _ => return None,
    })
}
