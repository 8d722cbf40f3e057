//! Names that configurations give to addresses, ports (AddressInfo, PortInfo) and
//! annotations (AnnotationInfo).

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::configure::scopes;

/// What a name stands for; one name may stand for several kinds of things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meanings {
    /// An IPv4 address.
    pub ip: Option<Ipv4Addr>,
    /// An IPv4 network, with its host bits.
    pub ip_prefix: Option<Ipv4Net>,
    /// An IPv6 address.
    pub ip6: Option<Ipv6Addr>,
    /// An IPv6 network, with its host bits.
    pub ip6_prefix: Option<Ipv6Net>,
    /// An Ethernet address.
    pub ether: Option<[u8; 6]>,
    /// A TCP port.
    pub tcp_port: Option<u16>,
    /// A UDP port.
    pub udp_port: Option<u16>,
    /// An annotation: offset and size in bytes, 0 for any size.
    pub annotation: Option<(usize, usize)>,
    /// A pattern of rewriters: the element that defines it, and its number there.
    pub pattern: Option<(String, usize)>,
}

/// All names of a chain, by the compound in which they were defined.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: HashMap<String, Meanings>,
}

impl Names {
    /// What `name` stands for in the scope of `element`'s compound, to define it.
    pub fn define(&mut self, element: &str, name: &str) -> &mut Meanings {
        let scope = scopes(element).next().unwrap_or("");
        self.names.entry(format!("{scope}{name}")).or_default()
    }

    /// The first meaning that `choose` accepts, looking from `element`'s compound outwards.
    pub fn find<T>(
        &self,
        element: &str,
        name: &str,
        choose: impl Fn(&Meanings) -> Option<T>,
    ) -> Option<T> {
        scopes(element).find_map(|scope| choose(self.names.get(&format!("{scope}{name}"))?))
    }
}
