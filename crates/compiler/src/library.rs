//! Library of network functions: compounds in the Click language, built in, that `require(nf)` makes known.
//!
//! Each stands in a file of its own in the folder `nf`, whose first comment is its manual.

use ir::{FileId, Sources};

/// The package that configurations require.
pub const PACKAGE: &str = "nf";

/// A network function of the library.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The class that configurations name.
    pub name: &'static str,
    /// The name of its file in the folder `nf`.
    pub file: &'static str,
    /// What stands in it.
    pub text: &'static str,
}

/// The functions, by name.
pub const FUNCTIONS: &[Function] = &[
    function("ACL", "acl.click", include_str!("../../../nf/acl.click")),
    function("AQM", "aqm.click", include_str!("../../../nf/aqm.click")),
    function("DDoSDetect", "ddos_detect.click", include_str!("../../../nf/ddos_detect.click")),
    function("Decrypt", "decrypt.click", include_str!("../../../nf/decrypt.click")),
    function("Dedup", "dedup.click", include_str!("../../../nf/dedup.click")),
    function("DirectLB", "direct_lb.click", include_str!("../../../nf/direct_lb.click")),
    function("DPI", "dpi.click", include_str!("../../../nf/dpi.click")),
    function("Encrypt", "encrypt.click", include_str!("../../../nf/encrypt.click")),
    function("ESPDetunnel", "esp_detunnel.click", include_str!("../../../nf/esp_detunnel.click")),
    function("ESPTunnel", "esp_tunnel.click", include_str!("../../../nf/esp_tunnel.click")),
    function("FastDecrypt", "fast_decrypt.click", include_str!("../../../nf/fast_decrypt.click")),
    function("FastEncrypt", "fast_encrypt.click", include_str!("../../../nf/fast_encrypt.click")),
    function("Firewall", "firewall.click", include_str!("../../../nf/firewall.click")),
    function(
        "GENEVEDetunnel",
        "geneve_detunnel.click",
        include_str!("../../../nf/geneve_detunnel.click"),
    ),
    function(
        "GENEVETunnel",
        "geneve_tunnel.click",
        include_str!("../../../nf/geneve_tunnel.click"),
    ),
    function("GREDetunnel", "gre_detunnel.click", include_str!("../../../nf/gre_detunnel.click")),
    function("GRETunnel", "gre_tunnel.click", include_str!("../../../nf/gre_tunnel.click")),
    function("GTPDetunnel", "gtp_detunnel.click", include_str!("../../../nf/gtp_detunnel.click")),
    function("GTPTunnel", "gtp_tunnel.click", include_str!("../../../nf/gtp_tunnel.click")),
    function("HealthCheck", "health_check.click", include_str!("../../../nf/health_check.click")),
    function(
        "IPIPDetunnel",
        "ipip_detunnel.click",
        include_str!("../../../nf/ipip_detunnel.click"),
    ),
    function("IPIPTunnel", "ipip_tunnel.click", include_str!("../../../nf/ipip_tunnel.click")),
    function("IPv4Fwd", "ipv4_fwd.click", include_str!("../../../nf/ipv4_fwd.click")),
    function("IPv6Fwd", "ipv6_fwd.click", include_str!("../../../nf/ipv6_fwd.click")),
    function("LB", "lb.click", include_str!("../../../nf/lb.click")),
    function("Limiter", "limiter.click", include_str!("../../../nf/limiter.click")),
    function("Match", "match.click", include_str!("../../../nf/match.click")),
    function("Mirror", "mirror.click", include_str!("../../../nf/mirror.click")),
    function("Monitor", "monitor.click", include_str!("../../../nf/monitor.click")),
    function("NAPT", "napt.click", include_str!("../../../nf/napt.click")),
    function("NAT64", "nat64.click", include_str!("../../../nf/nat64.click")),
    function("NPTv6", "nptv6.click", include_str!("../../../nf/nptv6.click")),
    function(
        "PPPoEDetunnel",
        "pppoe_detunnel.click",
        include_str!("../../../nf/pppoe_detunnel.click"),
    ),
    function("PPPoETunnel", "pppoe_tunnel.click", include_str!("../../../nf/pppoe_tunnel.click")),
    function("Redup", "redup.click", include_str!("../../../nf/redup.click")),
    function("Router", "router.click", include_str!("../../../nf/router.click")),
    function("ThirdParty", "third_party.click", include_str!("../../../nf/third_party.click")),
    function("UrlFilter", "url_filter.click", include_str!("../../../nf/url_filter.click")),
    function(
        "VLANDetunnel",
        "vlan_detunnel.click",
        include_str!("../../../nf/vlan_detunnel.click"),
    ),
    function("VLANTunnel", "vlan_tunnel.click", include_str!("../../../nf/vlan_tunnel.click")),
    function(
        "VXLANDetunnel",
        "vxlan_detunnel.click",
        include_str!("../../../nf/vxlan_detunnel.click"),
    ),
    function("VXLANTunnel", "vxlan_tunnel.click", include_str!("../../../nf/vxlan_tunnel.click")),
];

/// What the names of the library's sources begin with: nothing that a file is called.
const FOLDER: &str = "<nf>/";

const fn function(name: &'static str, file: &'static str, text: &'static str) -> Function {
    Function { name, file, text }
}

/// The function of that name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|of| of.name == name)
}

impl Function {
    /// The name under which its text is among the sources.
    pub(crate) fn source(&self) -> String {
        format!("{FOLDER}{}", self.file)
    }
}

/// Whether a source text is one of the library's.
pub(crate) fn holds(sources: &Sources, file: FileId) -> bool {
    sources.name(file).starts_with(FOLDER)
}
