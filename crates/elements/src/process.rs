//! Programs that packets of a chain go through, in processes of their own.
//!
//! An element says what is to run ([`ProcessSpec`]); whoever runs the chain starts it.

use std::net::IpAddr;

/// The interfaces of a program: its first, and its second.
pub const INTERFACES: [&str; 2] = ["eth0", "eth1"];

/// What a program may be allowed to do in its network namespace: addresses, routes, rules and bridges; packet
/// sockets and raw sockets; ports below 1024.
pub const PRIVILEGES: [&str; 3] = ["net-admin", "net-raw", "net-bind"];

/// A program that packets go through, in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessSpec {
    /// The full name of the element that asks for it.
    pub element: String,
    /// What runs.
    pub command: Command,
    /// How packets reach it.
    pub api: Api,
    /// Bytes of memory at most, if they are given.
    pub memory: Option<u64>,
    /// Threads and processes at most, if they are given.
    pub threads: Option<u32>,
    /// Its core, if one is given.
    pub core: Option<usize>,
}

/// How packets reach a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// By two interfaces, in a network namespace of its own.
    Interfaces {
        /// Addresses of each, with the lengths of their prefixes.
        addresses: [Vec<String>; 2],
        /// Routes, as `ip route` takes them.
        routes: Vec<String>,
        /// Whether the kernel forwards between them.
        forwards: bool,
        /// Of [`PRIVILEGES`].
        privileges: Vec<String>,
    },
    /// By shared memory: it is made with the NF runtime. Packets go one direction.
    Runtime {
        /// Its configuration.
        config: String,
        /// Whether it may write to packets.
        writes: bool,
    },
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A program of the host, with arguments.
    Program(Vec<String>),
    /// An image, with arguments in the place of its own, and the container runtime that starts it.
    Image(Vec<String>, Option<String>),
}

impl ProcessSpec {
    /// Stands in all names, and in no name of an element or an interface.
    pub const SEPARATOR: char = ':';

    /// What distinguishes it from all others: two with the same element are the same if all else is.
    pub fn name(&self) -> String {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{}{}{:08x}", self.element, Self::SEPARATOR, hasher.finish() as u32)
    }
}

/// Whether the name of a device can only be that of an interface of a program.
pub fn is_process_device(name: &str) -> bool {
    let name = name.rsplit_once('.').filter(|(_, interface)| INTERFACES.contains(interface));
    name.is_some_and(|(process, _)| process.contains(ProcessSpec::SEPARATOR))
}

/// An address with the length of its prefix, such as `192.0.2.1/24`.
pub fn prefix(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (length <= longest).then(|| format!("{address}/{length}"))
}

/// A route: `default via A`, `PREFIX via A` or `PREFIX dev eth1`.
pub fn route(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let &[to, how, by] = words.as_slice() else { return None };
    let to = if to == "default" { to.to_string() } else { prefix(to)? };
    let by = match how {
        "via" => by.parse::<IpAddr>().ok()?.to_string(),
        "dev" if INTERFACES.contains(&by) => by.to_string(),
        _ => return None,
    };
    Some(format!("{to} {how} {by}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_those_of_ip() {
        for good in ["default via 10.0.0.1", "10.0.0.0/8 via 10.0.0.1", "2001:db8::/32  dev eth1"] {
            assert!(route(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "default",
            "default via x",
            "10.0.0.0 via 10.0.0.1",
            "10.0.0.0/33 via 10.0.0.1",
            "default dev lo",
            "default via 10.0.0.1\nlink del eth0",
        ] {
            assert!(route(bad).is_none(), "{bad}");
        }
    }
}
