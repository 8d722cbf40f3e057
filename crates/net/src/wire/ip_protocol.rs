//! IP protocol numbers (IANA), their names, and IPv6's extension headers among them.

macro_rules! protocols {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal $(| $alias:literal)*;)*) => {
        $($(#[$doc])* pub const $constant: u8 = $number;)*

        // The first name of each number is the one to print.
        const NAMES: &[(&str, u8)] = &[$(($name, $number), $(($alias, $number),)*)*];
    };
}

protocols! {
    /// IPv6 hop-by-hop options.
    HOP_BY_HOP = 0, "hopopt" | "ip";
    /// ICMP for IPv4.
    ICMP = 1, "icmp";
    /// IGMP.
    IGMP = 2, "igmp";
    /// Gateway-to-gateway protocol.
    GGP = 3, "ggp";
    /// IPv4 in IP.
    IPIP = 4, "ipip" | "ipencap";
    /// Stream protocol.
    ST = 5, "st";
    /// TCP.
    TCP = 6, "tcp";
    /// Exterior gateway protocol.
    EGP = 8, "egp";
    /// Any interior gateway protocol.
    IGP = 9, "igp";
    /// PARC universal packet.
    PUP = 12, "pup";
    /// UDP.
    UDP = 17, "udp";
    /// Host monitoring protocol.
    HMP = 20, "hmp";
    /// Xerox NS internet datagrams.
    XNS_IDP = 22, "xns-idp";
    /// Reliable datagram protocol.
    RDP = 27, "rdp";
    /// ISO transport class 4.
    ISO_TP4 = 29, "iso-tp4";
    /// DCCP.
    DCCP = 33, "dccp";
    /// Xpress transfer protocol.
    XTP = 36, "xtp";
    /// IPv6 in IP.
    IPV6 = 41, "ipv6";
    /// IPv6 routing header.
    IPV6_ROUTING = 43, "ipv6-route";
    /// IPv6 fragment header.
    IPV6_FRAGMENT = 44, "ipv6-frag";
    /// RSVP.
    RSVP = 46, "rsvp";
    /// GRE.
    GRE = 47, "gre";
    /// IPsec encapsulated payload.
    ESP = 50, "esp" | "ipsec-esp";
    /// IPsec authentication header.
    AH = 51, "ah" | "ipsec-ah";
    /// SKIP.
    SKIP = 57, "skip";
    /// ICMP for IPv6.
    ICMPV6 = 58, "icmp6" | "ipv6-icmp" | "icmpv6";
    /// Nothing follows (IPv6).
    NO_NEXT = 59, "ipv6-nonxt";
    /// IPv6 destination options.
    DESTINATION_OPTIONS = 60, "ipv6-opts";
    /// EIGRP.
    EIGRP = 88, "eigrp";
    /// OSPF.
    OSPF = 89, "ospf" | "ospfigp";
    /// IP in IP with the older number.
    IPIP_OLD = 94, "ipip-old";
    /// Ethernet in IP.
    ETHERIP = 97, "etherip";
    /// Private encapsulation.
    ENCAP = 98, "encap";
    /// PIM.
    PIM = 103, "pim";
    /// IP payload compression.
    IPCOMP = 108, "ipcomp";
    /// VRRP.
    VRRP = 112, "vrrp";
    /// L2TP version 3.
    L2TP = 115, "l2tp";
    /// IS-IS over IPv4.
    ISIS = 124, "isis";
    /// SCTP.
    SCTP = 132, "sctp";
    /// Fibre Channel.
    FC = 133, "fc";
    /// IPv6 mobility header.
    MOBILITY = 135, "mobility-header";
    /// UDP-Lite.
    UDPLITE = 136, "udplite";
    /// MPLS in IP.
    MPLS_IN_IP = 137, "mpls-in-ip";
    /// Host identity protocol.
    HIP = 139, "hip";
    /// Shim6.
    SHIM6 = 140, "shim6";
    /// Ethernet (RFC 8986).
    ETHERNET = 143, "ethernet";
}

/// The number of a protocol by name, as /etc/protocols and Click spell it; case does not matter.
pub fn by_name(name: &str) -> Option<u8> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, number)| number)
}

/// The usual name of a protocol.
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|&&(_, known)| known == number).map(|&(name, _)| name)
}

/// True if a header of this kind begins with the two ports.
#[inline]
pub const fn has_ports(number: u8) -> bool {
    matches!(number, TCP | UDP | DCCP | SCTP | UDPLITE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(by_name("tcp"), Some(TCP));
        assert_eq!(by_name("UDP"), Some(UDP));
        assert_eq!(by_name("ipencap"), Some(4));
        assert_eq!(by_name("no such"), None);
        assert_eq!(name(4), Some("ipip"));
        assert_eq!(name(58), Some("icmp6"));
        assert_eq!(name(254), None);
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        for (i, &(name, number)) in NAMES.iter().enumerate() {
            assert_eq!(by_name(name), Some(number));
            assert!(NAMES[..i].iter().all(|(earlier, _)| *earlier != name), "{name} twice");
        }
    }
}
