//! What the manifest says of NFs that have interfaces.

use elements::process::{self, prefix, route};
use ir::nearest;
use ir::yaml::Reading;
use rustix::thread::CapabilitySet;
use serde_saphyr::Spanned;

use super::written;

/// The interfaces of an NF: the one that packets of the chain come by, and the one that they leave by.
pub(crate) use elements::process::INTERFACES;

/// What the end of a chain begins with that is a link of its own.
pub(crate) const LINK: &str = "veth:";

/// What an NF finds in its namespace, where it has its interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Addresses of each, as `ip address` takes them.
    pub addresses: [Vec<String>; 2],
    /// Routes, as `ip route` takes them.
    pub routes: Vec<String>,
    /// Whether the kernel forwards between them.
    pub forward: bool,
    /// What it may do there.
    pub privileges: Vec<Privilege>,
}

impl Interfaces {
    /// Whether it has addresses of IPv6.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.addresses.iter().flatten().any(|address| address.contains(':'))
    }
}

/// What an NF may do in its network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Addresses, routes, rules, bridges.
    Admin,
    /// Packet sockets and raw sockets.
    Raw,
    /// Ports below 1024.
    Bind,
}

/// What they are, in the order of their names.
const PRIVILEGES: [Privilege; 3] = [Privilege::Admin, Privilege::Raw, Privilege::Bind];

impl Privilege {
    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        process::PRIVILEGES.iter().position(|known| *known == name).map(|at| PRIVILEGES[at])
    }

    /// The capability's name.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Admin => "CAP_NET_ADMIN",
            Self::Raw => "CAP_NET_RAW",
            Self::Bind => "CAP_NET_BIND_SERVICE",
        }
    }

    /// All of them.
    pub(crate) fn capabilities(all: &[Self]) -> CapabilitySet {
        let one = |of: &Self| match of {
            Self::Admin => CapabilitySet::NET_ADMIN,
            Self::Raw => CapabilitySet::NET_RAW,
            Self::Bind => CapabilitySet::NET_BIND_SERVICE,
        };
        all.iter().map(one).collect()
    }
}

/// Reads it.
pub(super) fn read(nf: &written::Nf, found: &mut Reading) -> Interfaces {
    let mut read = Interfaces::default();
    for (name, all) in nf.addresses.iter().flat_map(|addresses| &addresses.value) {
        let Some(at) = INTERFACES.iter().position(|known| known == name) else {
            let message = format!("'{name}' is no interface of an NF");
            found.wrong(all, message, Some("`eth0` or `eth1`".into()));
            continue;
        };
        for address in all.value.split_whitespace() {
            match prefix(address) {
                Some(address) => read.addresses[at].push(address),
                None => found.wrong(
                    all,
                    format!("'{address}' is no address with a prefix"),
                    Some("such as `192.0.2.1/24`".into()),
                ),
            }
        }
    }
    for text in nf.routes.iter().flat_map(|routes| &routes.value) {
        match route(&text.value) {
            Some(route) => read.routes.push(route),
            None => found.wrong(
                text,
                format!("'{}' is no route", text.value),
                Some(
                    "`default via 192.0.2.1`, `10.0.0.0/8 via 192.0.2.1` or `10.0.0.0/8 dev eth1`"
                        .into(),
                ),
            ),
        }
    }
    read.forward = nf.forward.as_ref().is_some_and(|forward| forward.value);
    for text in nf.privileges.iter().flat_map(|privileges| &privileges.value) {
        match Privilege::find(&text.value) {
            Some(privilege) => read.privileges.push(privilege),
            None => {
                let names = process::PRIVILEGES;
                let help = match nearest(&text.value, names) {
                    Some(near) => format!("'{near}'?"),
                    None => format!("one of {}", names.join(", ")),
                };
                found.wrong(text, format!("'{}' is no privilege", text.value), Some(help));
            }
        }
    }
    read
}

/// What an NF says that is of interfaces, where it has none.
pub(super) fn refuse(nf: &written::Nf, found: &mut Reading) {
    refuse_one(nf.addresses.as_ref(), "addresses", found);
    refuse_one(nf.routes.as_ref(), "routes", found);
    refuse_one(nf.forward.as_ref(), "forward", found);
    refuse_one(nf.privileges.as_ref(), "privileges", found);
}

fn refuse_one<T>(at: Option<&Spanned<T>>, what: &str, found: &mut Reading) {
    if let Some(at) = at {
        let help = "it is for programs between interfaces: `api: veth`";
        found.wrong(at, format!("`{what}` of an NF that has no interfaces"), Some(help.into()));
    }
}
