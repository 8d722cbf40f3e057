//! The topology of a rack: switches, servers, what connects them, and where the wires of a chain are.
//!
//! It is written in YAML. Everything that has a port is a *device*; a port is named `device.port`.
//!
//! ```yaml
//! switches:
//!   tor:
//!     target: ovs
//!     control: unix:/var/run/openvswitch/br0.mgmt
//!     ports:
//!       lan: { number: 1, trust: [lengths, ip-checksum] }
//!       wan: { number: 2 }
//!       up: { number: 3 }
//! servers:
//!   s1:
//!     ports:
//!       eth0: {}
//! links:
//!   - [tor.up, s1.eth0]
//! wires:
//!   lan: tor.lan
//!   wan: tor.wan
//! ```
//!
//! Where several servers are behind a switch, each says what of the chain it runs (`runs: [nat, cache]`): names of elements and
//! compounds. A device of the chain that is named `server.port/1` stands for packets that come back from that server's port, for
//! the switch to go on with them; behind the slash may be any name.
//!
//! `limits` has the switch drop what exceeds a rate, of packets that go through an element or compound: `limits: { nat: 1 Gbps }`.
//!
//! `tags` has numbers that packets bear between switch and servers, by where the switch stops and by wires that packets come back
//! by, and numbers of meters (`meter(nat)`).
//! What has no number there gets one. So it keeps its number when the rest of the chain changes; `catena deploy` writes them.
//!
//! For a rack on one host, a server says in which network namespace it is (`netns: s1`), and `hosts` has what stands at
//! wires: `lan: { addresses: [10.1.0.2/24], gateway: 10.1.0.1, mac: 02:00:00:00:01:02 }`.
//!
//! For placement, a server says what cores it has (`cores: 16`, `keep: 2` for those that nothing is placed on, `clock: 1.7 GHz`),
//! and its ports what their links carry (`rate: 40 Gbps`, `delay: 1 us`), and which cycles a card has that runs functions
//! (`card: 20 GHz`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::diagnostic::{Diagnostic, FileId, nearest};
use crate::quantity::Unit;
use crate::yaml;

/// What the words of a topology may be.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// Names of targets.
    pub targets: &'a [&'a str],
    /// Names of architectures that some targets are for.
    pub archs: &'a [&'a str],
    /// Names of devices whose room is known.
    pub devices: &'a [&'a str],
    /// Names of what a port may be trusted in.
    pub trust: &'a [&'a str],
}

/// A rack.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Switches, by name.
    pub switches: BTreeMap<String, Switch>,
    /// Servers, by name.
    pub servers: BTreeMap<String, Server>,
    /// Ports that are connected.
    pub links: Vec<[PortName; 2]>,
    /// By device or file of the chain: the port at which its frames come in and leave.
    pub wires: BTreeMap<String, PortName>,
    /// By wire: the host that stands there, where Catena makes it.
    pub hosts: BTreeMap<String, Host>,
    /// By element or compound of the chain: bits a second that a switch lets pass of packets that go through it.
    pub limits: BTreeMap<String, f64>,
    /// By where packets are handed off or come back: the number of their tag.
    pub tags: BTreeMap<String, u16>,
}

/// A host at a wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its addresses, with the lengths of their prefixes.
    pub addresses: Vec<String>,
    /// Where it sends what is not beside it, at most one each for IPv4 and IPv6.
    pub gateways: Vec<String>,
    /// Its MAC address.
    pub mac: Option<String>,
}

/// `device.port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortName {
    /// The switch or server.
    pub device: String,
    /// Its port.
    pub port: String,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The target that it takes.
    pub target: String,
    /// The architecture that this is for, if it is not what the device implies.
    pub arch: Option<String>,
    /// Where it listens for who installs entries.
    pub control: Option<Address>,
    /// What device it is, if its room is to be kept to.
    pub device: Option<String>,
    /// Its ports, by name.
    pub ports: BTreeMap<String, SwitchPort>,
}

/// Where a switch is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket of this host: `unix:PATH`.
    Unix(PathBuf),
    /// `tcp:HOST:PORT`; an IPv6 address stands in brackets.
    Tcp(String, u16),
    /// The kernel of this host, whose interfaces have the names of the ports: `xdp`, or with a colon `xdp:netns=NAME`,
    /// `xdp:generic` or both.
    Xdp(Xdp),
}

/// Interfaces of this host that run programs for XDP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xdp {
    /// The network namespace that they are in, if it is not that of whoever asks.
    pub namespace: Option<String>,
    /// Whether programs run in the kernel's stack rather than in drivers.
    pub generic: bool,
}

impl FromStr for Xdp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut xdp = Self::default();
        for option in text.split(',') {
            match option.split_once('=') {
                None if option == "generic" => xdp.generic = true,
                Some(("netns", name))
                    if !name.is_empty() && !name.contains('/') && name != ".." =>
                {
                    xdp.namespace = Some(name.into());
                }
                _ => return Err("of XDP there are xdp, xdp:generic and xdp:netns=NAME".into()),
            }
        }
        Ok(xdp)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "an address is unix:PATH, tcp:HOST:PORT, or xdp for interfaces of this host";
        match text.split_once(':') {
            None if text == "xdp" => Ok(Address::Xdp(Xdp::default())),
            Some(("xdp", options)) => options.parse().map(Address::Xdp),
            Some(("unix", path)) if path.starts_with('/') => Ok(Address::Unix(path.into())),
            Some(("unix", _)) => Err("the path of a socket begins with /".into()),
            Some(("tcp", rest)) => {
                let (host, port) = rest.rsplit_once(':').ok_or(forms)?;
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                let host = bare.unwrap_or(host);
                let is_odd = |c: char| c.is_whitespace() || c.is_control() || "[]/".contains(c);
                if host.is_empty()
                    || host.contains(is_odd)
                    || (host.contains(':') && bare.is_none())
                {
                    return Err(forms.into());
                }
                let number = port.parse().ok().filter(|port| *port != 0);
                let number =
                    number.ok_or("a port is a number from 1 to 65535; OpenFlow's is 6653")?;
                Ok(Address::Tcp(host.into(), number))
            }
            _ => Err(forms.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(host, port) if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
            Address::Xdp(Xdp { namespace, generic }) => {
                let namespace = namespace.as_ref().map(|name| format!("netns={name}"));
                let generic = generic.then(|| "generic".to_string());
                let options: Vec<String> = generic.into_iter().chain(namespace).collect();
                let colon = if options.is_empty() { "" } else { ":" };
                write!(f, "xdp{colon}{}", options.join(","))
            }
        }
    }
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPort {
    /// Its number there.
    pub number: u32,
    /// What frames are known to be that come in.
    pub trust: Vec<String>,
}

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its cores, if placement is to use them.
    pub cores: Option<Cores>,
    /// The network namespace of this host that it is, if it is one.
    pub netns: Option<String>,
    /// Elements and compounds of the chain that it runs, if others run the rest.
    pub runs: Option<Vec<String>>,
    /// Its interfaces, by name.
    pub ports: BTreeMap<String, ServerPort>,
}

/// Cores of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cores {
    /// Those that functions can have.
    pub count: usize,
    /// Cycles of one in a second.
    pub hertz: f64,
}

/// An interface of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPort {
    /// What its link carries in each direction, in bits a second.
    pub rate: Option<f64>,
    /// How long a packet takes over its link, in seconds, without its transmission.
    pub delay: f64,
    /// Cycles in a second of all cores of the card, if it runs functions.
    pub card: Option<f64>,
    /// The target that the card takes, if any.
    pub target: Option<String>,
    /// What frames are known to be that come in.
    pub trust: Vec<String>,
}

mod written {
    //! As it is written.

    use super::{BTreeMap, Deserialize, Spanned};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Topology {
        #[serde(default)]
        pub(super) switches: BTreeMap<String, Switch>,
        #[serde(default)]
        pub(super) servers: BTreeMap<String, Server>,
        #[serde(default)]
        pub(super) links: Vec<[Spanned<String>; 2]>,
        #[serde(default)]
        pub(super) wires: BTreeMap<String, Spanned<String>>,
        #[serde(default)]
        pub(super) hosts: BTreeMap<String, Host>,
        #[serde(default)]
        pub(super) limits: BTreeMap<String, Spanned<String>>,
        #[serde(default)]
        pub(super) tags: BTreeMap<String, Spanned<u16>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Host {
        #[serde(default)]
        pub(super) addresses: Vec<Spanned<String>>,
        pub(super) gateway: Option<Spanned<String>>,
        pub(super) gateway6: Option<Spanned<String>>,
        pub(super) mac: Option<Spanned<String>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Switch {
        pub(super) target: Spanned<String>,
        pub(super) arch: Option<Spanned<String>>,
        pub(super) control: Option<Spanned<String>>,
        pub(super) device: Option<Spanned<String>>,
        pub(super) ports: BTreeMap<String, SwitchPort>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct SwitchPort {
        pub(super) number: Spanned<u32>,
        #[serde(default)]
        pub(super) trust: Vec<Spanned<String>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Server {
        pub(super) cores: Option<Spanned<usize>>,
        #[serde(default)]
        pub(super) keep: usize,
        pub(super) clock: Option<Spanned<String>>,
        pub(super) netns: Option<Spanned<String>>,
        pub(super) runs: Option<Vec<String>>,
        pub(super) ports: BTreeMap<String, ServerPort>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct ServerPort {
        pub(super) rate: Option<Spanned<String>>,
        pub(super) delay: Option<Spanned<String>>,
        pub(super) card: Option<Spanned<String>>,
        pub(super) target: Option<Spanned<String>>,
        #[serde(default)]
        pub(super) trust: Vec<Spanned<String>>,
    }
}

impl Topology {
    /// Reads a topology.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(
        file: FileId,
        text: &str,
        vocabulary: Vocabulary<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let (written, errors) = yaml::Reading::of(file, text, "topology", None)?;
        let mut reading = Reading { errors, vocabulary };
        let topology = reading.topology(written);
        match reading.errors.found.is_empty() {
            true => Ok(topology),
            false => Err(reading.errors.found),
        }
    }

    /// The other end of the link at a port.
    pub fn peer(&self, port: &PortName) -> Option<&PortName> {
        self.links.iter().find_map(|[a, b]| match () {
            () if a == port => Some(b),
            () if b == port => Some(a),
            () => None,
        })
    }

    fn ports(&self) -> impl Iterator<Item = PortName> + '_ {
        let of = |device: &String, port: &String| PortName {
            device: device.clone(),
            port: port.clone(),
        };
        let switches = self.switches.iter();
        let servers = self.servers.iter();
        let switches = switches.flat_map(move |(name, s)| s.ports.keys().map(move |p| of(name, p)));
        let servers = servers.flat_map(move |(name, s)| s.ports.keys().map(move |p| of(name, p)));
        switches.chain(servers)
    }
}

struct Reading<'a> {
    errors: yaml::Reading,
    vocabulary: Vocabulary<'a>,
}

impl Reading<'_> {
    /// One of some words.
    fn word(&mut self, what: &str, word: &Spanned<String>, words: &[&str]) -> String {
        if !words.contains(&word.value.as_str()) {
            let help = match nearest(&word.value, words.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("there are {}", words.join(", ")),
            };
            self.errors.wrong(word, format!("there is no {what} '{}'", word.value), Some(help));
        }
        word.value.clone()
    }

    fn trust(&mut self, trust: &[Spanned<String>]) -> Vec<String> {
        let words = self.vocabulary.trust;
        trust.iter().map(|word| self.word("trust", word, words)).collect()
    }

    fn topology(&mut self, written: written::Topology) -> Topology {
        let targets = self.vocabulary.targets;
        let mut topology = Topology {
            switches: BTreeMap::new(),
            servers: BTreeMap::new(),
            links: Vec::new(),
            wires: BTreeMap::new(),
            hosts: BTreeMap::new(),
            limits: BTreeMap::new(),
            tags: BTreeMap::new(),
        };
        for (name, switch) in written.switches {
            let target = self.word("target", &switch.target, targets);
            let archs = self.vocabulary.archs;
            let arch = switch.arch.map(|arch| self.word("architecture", &arch, archs));
            let control = switch.control.and_then(|written| match written.value.parse() {
                Ok(address) => Some(address),
                Err(why) => {
                    let message = format!("'{}' is no address", written.value);
                    self.errors.wrong(&written, message, Some(why));
                    None
                }
            });
            let devices = self.vocabulary.devices;
            let device = switch.device.map(|device| self.word("device", &device, devices));
            let mut numbers: BTreeMap<u32, String> = BTreeMap::new();
            let mut ports = BTreeMap::new();
            for (port, of) in switch.ports {
                let number = of.number.value;
                if let Some(other) = numbers.insert(number, port.clone()) {
                    let message =
                        format!("'{name}.{other}' and '{name}.{port}' are both port {number}");
                    self.errors.wrong(&of.number, message, None);
                }
                // OpenFlow 1.3 §A.2.1: numbers from 0xffffff00 on are reserved.
                if number == 0 || number >= 0xffff_ff00 {
                    let message = format!("{number} is no port's number");
                    self.errors.wrong(
                        &of.number,
                        message,
                        Some("ports are numbered from 1 on".into()),
                    );
                }
                let trust = self.trust(&of.trust);
                ports.insert(port, SwitchPort { number, trust });
            }
            topology.switches.insert(name, Switch { target, arch, control, device, ports });
        }
        for (name, server) in written.servers {
            let mut ports = BTreeMap::new();
            for (port, of) in server.ports {
                let target = of.target.map(|target| self.word("target", &target, targets));
                let rate = of.rate.map(|rate| self.errors.quantity(&rate, Unit::Rate));
                let delay = of.delay.map_or(0.0, |delay| self.errors.quantity(&delay, Unit::Time));
                let card = of.card.map(|card| self.errors.quantity(&card, Unit::Clock));
                let trust = self.trust(&of.trust);
                ports.insert(port, ServerPort { rate, delay, card, target, trust });
            }
            let cores = match (server.cores, server.clock) {
                (None, None) => None,
                (Some(cores), Some(clock)) => {
                    let hertz = self.errors.quantity(&clock, Unit::Clock);
                    let count = cores.value.checked_sub(server.keep);
                    if count.is_none() {
                        let message = format!("{} of {} cores are kept", server.keep, cores.value);
                        self.errors.wrong(&cores, message, None);
                    }
                    Some(Cores { count: count.unwrap_or(0), hertz })
                }
                (Some(cores), None) => {
                    let help = Some("say their clock, such as `clock: 2.1 GHz`".into());
                    self.errors.wrong(&cores, format!("the cores of '{name}' have no clock"), help);
                    None
                }
                (None, Some(clock)) => {
                    let help = Some("say how many cores there are, such as `cores: 16`".into());
                    self.errors.wrong(&clock, format!("'{name}' has a clock and no cores"), help);
                    None
                }
            };
            if topology.switches.contains_key(&name) {
                let message = format!("'{name}' is a switch and a server");
                self.errors.found.push(Diagnostic::error("topology", message));
            }
            let netns = server.netns.map(|netns| {
                let name = &netns.value;
                if name.is_empty() || name.starts_with(['.', '-']) || name.contains('/') {
                    let message = format!("'{name}' is no name of a network namespace");
                    self.errors.wrong(&netns, message, None);
                }
                netns.value
            });
            let runs = server.runs;
            topology.servers.insert(name, Server { cores, netns, runs, ports });
        }
        let known: BTreeSet<PortName> = topology.ports().collect();
        let mut taken: BTreeMap<PortName, String> = BTreeMap::new();
        for ends in written.links {
            let what = format!("the link to '{}'", ends[1].value);
            let [a, b] = ends.map(|end| self.port(&end, &known, &what, &mut taken));
            if let (Some(a), Some(b)) = (a, b) {
                topology.links.push([a, b]);
            }
        }
        for (wire, at) in written.wires {
            let what = format!("the wire '{wire}'");
            if let Some(port) = self.port(&at, &known, &what, &mut taken) {
                topology.wires.insert(wire, port);
            }
        }
        for (name, rate) in written.limits {
            topology.limits.insert(name, self.errors.quantity(&rate, Unit::Rate));
        }
        for (name, number) in written.tags {
            // IEEE 802.1Q §9.6: neither 0 nor 4,095 is a VLAN.
            if !(1..=4094).contains(&number.value) {
                let message = format!("{} is no tag's number", number.value);
                self.errors.wrong(
                    &number,
                    message,
                    Some("tags are numbered from 1 to 4094".into()),
                );
            }
            topology.tags.insert(name, number.value);
        }
        for (wire, host) in written.hosts {
            if !topology.wires.contains_key(&wire) {
                let near = nearest(&wire, topology.wires.keys().map(String::as_str));
                let near = near.map(|near| format!(": did you mean '{near}'?"));
                let message =
                    format!("the host '{wire}' is at no wire{}", near.unwrap_or_default());
                self.errors.found.push(Diagnostic::error("topology", message));
            }
            let host = self.host(host);
            topology.hosts.insert(wire, host);
        }
        topology
    }

    fn host(&mut self, written: written::Host) -> Host {
        let mut host = Host::default();
        for address in written.addresses {
            let parts = address.value.split_once('/');
            let bits = |of: IpAddr| if of.is_ipv4() { 32 } else { 128 };
            let is_good = parts.is_some_and(|(of, length)| {
                of.parse::<IpAddr>().is_ok_and(|of| length.parse().is_ok_and(|n: u8| n <= bits(of)))
            });
            if !is_good {
                let message = format!("'{}' is no address with a prefix's length", address.value);
                self.errors.wrong(&address, message, Some("such as 10.1.0.2/24".into()));
            }
            host.addresses.push(address.value);
        }
        for (gateway, is_6) in [(written.gateway, false), (written.gateway6, true)] {
            let Some(gateway) = gateway else { continue };
            if !gateway.value.parse::<IpAddr>().is_ok_and(|of| of.is_ipv6() == is_6) {
                let kind = if is_6 { "IPv6" } else { "IPv4" };
                let message = format!("'{}' is no {kind} address", gateway.value);
                self.errors.wrong(&gateway, message, None);
            }
            host.gateways.push(gateway.value);
        }
        host.mac = written.mac.map(|mac| {
            let is_byte = |part: &str| part.len() == 2 && u8::from_str_radix(part, 16).is_ok();
            let parts: Vec<&str> = mac.value.split(':').collect();
            if parts.len() != 6 || !parts.iter().all(|part| is_byte(part)) {
                let message = format!("'{}' is no MAC address", mac.value);
                self.errors.wrong(&mac, message, Some("such as 02:00:00:00:01:02".into()));
            }
            mac.value
        });
        host
    }

    /// A port that is there, and that nothing else takes.
    fn port(
        &mut self,
        written: &Spanned<String>,
        known: &BTreeSet<PortName>,
        what: &str,
        taken: &mut BTreeMap<PortName, String>,
    ) -> Option<PortName> {
        let name = &written.value;
        let Some((device, port)) = name.split_once('.') else {
            let message = format!("'{name}' names no port");
            self.errors.wrong(written, message, Some("a port is named device.port".into()));
            return None;
        };
        let port = PortName { device: device.into(), port: port.into() };
        if !known.contains(&port) {
            let names: Vec<String> =
                known.iter().map(|port| format!("{}.{}", port.device, port.port)).collect();
            let near = nearest(name, names.iter().map(String::as_str));
            let help = near.map(|near| format!("did you mean '{near}'?"));
            self.errors.wrong(written, format!("there is no port '{name}'"), help);
            return None;
        }
        if let Some(by) = taken.insert(port.clone(), what.to_string()) {
            self.errors.wrong(written, format!("'{name}' is taken by {by}"), None);
        }
        Some(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    const RACK: &str = "\
switches:
  tor:
    target: ovs
    control: unix:/run/br0.mgmt
    ports:
      lan: { number: 1, trust: [lengths] }
      wan: { number: 2 }
      up: { number: 3 }
servers:
  s1:
    ports:
      eth0: {}
links:
  - [tor.up, s1.eth0]
wires:
  lan: tor.lan
  wan: tor.wan
";

    fn parse(text: &str) -> Result<Topology, Vec<String>> {
        let mut sources = Sources::new();
        let file = sources.add("rack.yaml", text);
        let vocabulary = Vocabulary {
            targets: &["ovs", "ebpf"],
            archs: &["tna"],
            devices: &["noviflow-1132"],
            trust: &["lengths", "ip-checksum"],
        };
        let line = |found: &Diagnostic| {
            let at = found.labels.first().map(|label| sources.landmark(label.span));
            format!("{}: {}", at.unwrap_or_default(), found.message)
        };
        Topology::parse(file, text, vocabulary).map_err(|all| all.iter().map(line).collect())
    }

    #[test]
    fn a_rack_is_read() {
        let rack = parse(RACK).expect("it is right");
        let up = PortName { device: "tor".into(), port: "up".into() };
        assert_eq!(rack.peer(&up).map(|port| port.device.as_str()), Some("s1"));
        assert_eq!(rack.switches["tor"].ports["lan"].trust, ["lengths"]);
        assert_eq!(rack.wires["wan"].port, "wan");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, expected) in [
            ("number: 2", "number: 1", "rack.yaml:7: 'tor.lan' and 'tor.wan' are both port 1"),
            ("number: 2", "number: 0", "rack.yaml:7: 0 is no port's number"),
            ("unix:/run/br0.mgmt", "br0", "rack.yaml:4: 'br0' is no address"),
            ("unix:/run/br0.mgmt", "tcp:host:0", "rack.yaml:4: 'tcp:host:0' is no address"),
            ("target: ovs", "target: ofs", "rack.yaml:3: there is no target 'ofs'"),
            ("ovs\n", "ovs\n    arch: tnb\n", "rack.yaml:4: there is no architecture 'tnb'"),
            ("ovs\n", "ovs\n    device: noviflow\n", "rack.yaml:4: there is no device 'noviflow'"),
            ("[lengths]", "[length]", "rack.yaml:6: there is no trust 'length'"),
            ("tor.up, s1.eth0", "tor.up, s1.eth1", "rack.yaml:14: there is no port 's1.eth1'"),
            ("wan: tor.wan", "wan: tor", "rack.yaml:17: 'tor' names no port"),
            (
                "eth0: {}",
                "eth0: { rate: 40 }",
                "rack.yaml:12: '40' has no unit; units are bps, kbps, Mbps, Gbps, Tbps",
            ),
            (
                "    ports:\n      eth0",
                "    cores: 2\n    ports:\n      eth0",
                "rack.yaml:11: the cores of 's1' have no clock",
            ),
            (
                "    ports:\n      eth0",
                "    cores: 2\n    keep: 3\n    clock: 1 GHz\n    ports:\n      eth0",
                "rack.yaml:11: 3 of 2 cores are kept",
            ),
            ("wires:", "tags: { a: 1, b: 4095 }\nwires:", "rack.yaml:15: 4095 is no tag's number"),
            (
                "wan: tor.wan",
                "wan: tor.up",
                "rack.yaml:17: 'tor.up' is taken by the link to 's1.eth0'",
            ),
        ] {
            let found = parse(&RACK.replace(from, to)).expect_err(to);
            assert_eq!(found, [expected]);
        }
        let unknown = parse(&RACK.replace("links:", "link:")).expect_err("an unknown key");
        assert!(
            unknown[0].starts_with("rack.yaml:13: ") && unknown[0].contains("link"),
            "{unknown:?}"
        );
        let twice = parse(&RACK.replace("wan: { number: 2 }", "lan: { number: 2 }"));
        let twice = twice.expect_err("a port twice");
        assert!(twice[0].starts_with("rack.yaml:7: ") && twice[0].contains("lan"), "{twice:?}");
    }

    #[test]
    fn addresses_read_back() {
        for text in [
            "unix:/run/br0.mgmt",
            "tcp:127.0.0.1:6653",
            "tcp:[::1]:1",
            "tcp:switch.lab:66",
            "xdp",
            "xdp:generic",
            "xdp:netns=nic",
            "xdp:generic,netns=nic",
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "",
            "unix:",
            "unix:br0",
            "tcp:host",
            "tcp::1",
            "tcp:::1:5",
            "ssl:host:1",
            "tcp:h:70000",
            "xdp:",
            "xdp:fast",
            "xdp:netns=",
            "xdp:netns=../x",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_hostile_crashes_it() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut text = RACK.as_bytes().to_vec();
            let lines = random.usize(1..6);
            for _ in 0..lines {
                let at = random.usize(..text.len().max(1));
                if text.is_empty() {
                    break;
                }
                match random.u8(..3) {
                    0 => {
                        text[at] = random.choice(b"{}[]:&*!|>-# \n\t\"'x").copied().unwrap_or(b'x')
                    }
                    1 => drop(text.remove(at)),
                    _ => text.truncate(at.max(1)),
                }
            }
            let _ = parse(&String::from_utf8_lossy(&text));
        }
    }
}
