//! A rack of namespaces: what a topology becomes on one host.
//!
//! A switch is Open vSwitch in a namespace, or a namespace whose interfaces run programs for XDP. A server is a namespace,
//! and so is what stands at a wire: a host that sends and receives. Links are pairs of veth.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use ir::topology::{Address, Host, PortName, Topology};

use crate::namespace::{is_interface_name, is_name};
use crate::ovs::{Access, BRIDGE, Bridge};
use crate::process::run;
use crate::{Failure, Journal, Namespace, OpenVSwitch};

/// Bytes of an IP packet on a link between wires and switches; other links have room for a tag more.
const MTU: u32 = 1500;
const TAG: u32 = 4;

/// Queues of an interface in each direction.
const QUEUES: usize = 4;

/// The interface of a host at a wire.
const AT_WIRE: &str = "eth0";

/// What a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Open vSwitch that is reached there; its interfaces have these numbers.
    Switch(PathBuf, Vec<(String, u32)>),
    /// Interfaces that run programs for XDP.
    Xdp,
    /// A server.
    Server,
    /// What stands at a wire.
    Host(Host),
}

/// A link between interfaces of two namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    /// Namespace and interface.
    ends: [(String, String); 2],
    mtu: u32,
}

/// What is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By name: namespaces.
    pub devices: BTreeMap<String, Device>,
    links: Vec<Link>,
}

impl Plan {
    /// That of a topology.
    ///
    /// # Errors
    /// All that cannot be made of it, in words.
    pub fn of(topology: &Topology) -> Result<Self, Vec<String>> {
        let mut plan = Self::default();
        let mut wrong = Vec::new();
        // By device: its namespace.
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, switch) in &topology.switches {
            let (namespace, device) = match (switch.target.as_str(), &switch.control) {
                ("ovs" | "openflow", Some(Address::Unix(path))) => {
                    let ports = switch.ports.iter().map(|(port, of)| (port.clone(), of.number));
                    (name.as_str(), Device::Switch(path.clone(), ports.collect()))
                }
                ("ovs" | "openflow", _) => {
                    wrong.push(format!(
                        "switch '{name}' is to say where it will be reached: add `control: unix:/run/catena/{name}.mgmt` to it"
                    ));
                    continue;
                }
                ("ebpf", Some(Address::Xdp(xdp))) if xdp.namespace.is_some() => {
                    (xdp.namespace.as_deref().unwrap_or_default(), Device::Xdp)
                }
                ("ebpf", _) => {
                    wrong.push(format!(
                        "switch '{name}' is to say in which namespace its interfaces will be: add `control: xdp:netns={name}` to it"
                    ));
                    continue;
                }
                (target, _) => {
                    wrong.push(format!(
                        "switch '{name}': nothing here takes {target}; Open vSwitch takes ovs and openflow, the kernel takes ebpf"
                    ));
                    continue;
                }
            };
            names.insert(name, namespace);
            plan.device(namespace, device, &format!("switch '{name}'"), &mut wrong);
        }
        for (name, server) in &topology.servers {
            let Some(namespace) = &server.netns else {
                wrong.push(format!(
                    "server '{name}' is to say in which namespace it will be: add `netns: {name}` to it"
                ));
                continue;
            };
            names.insert(name, namespace);
            plan.device(namespace, Device::Server, &format!("server '{name}'"), &mut wrong);
        }
        let is_switch = |port: &PortName| topology.switches.contains_key(&port.device);
        let number = |port: &PortName| topology.switches[&port.device].ports[&port.port].number;
        for (wire, port) in &topology.wires {
            let host = topology.hosts.get(wire).cloned().unwrap_or_default();
            plan.device(
                wire,
                Device::Host(host),
                &format!("the host at wire '{wire}'"),
                &mut wrong,
            );
            if !is_switch(port) {
                wrong.push(format!("wire '{wire}' comes to '{}', which is no switch", port.device));
            } else if number(port) > 0xfeff {
                wrong.push(format!("Open vSwitch has no port {}", number(port)));
            }
            if let Some(near) = names.get(port.device.as_str()) {
                let ends = [(near.to_string(), port.port.clone()), (wire.clone(), AT_WIRE.into())];
                plan.links.push(Link { ends, mtu: MTU });
            }
        }
        for [a, b] in &topology.links {
            if let (Some(near), Some(far)) =
                (names.get(a.device.as_str()), names.get(b.device.as_str()))
            {
                let ends = [(near.to_string(), a.port.clone()), (far.to_string(), b.port.clone())];
                plan.links.push(Link { ends, mtu: MTU + TAG });
            }
        }
        let mut seen = BTreeSet::new();
        for (namespace, interface) in plan.links.iter().flat_map(|link| &link.ends) {
            if !is_interface_name(interface) || interface == BRIDGE {
                wrong.push(format!(
                    "'{interface}' of '{namespace}' cannot be the name of an interface: at most 15 letters, digits and `._-@`, and not lo, all, default or {BRIDGE}"
                ));
            }
            if !seen.insert((namespace, interface)) {
                wrong.push(format!("'{interface}' of '{namespace}' has two links"));
            }
        }
        if plan.devices.is_empty() && wrong.is_empty() {
            wrong.push("it has no switches, servers or wires, so there is nothing to make".into());
        }
        match wrong.is_empty() {
            true => Ok(plan),
            false => Err(wrong),
        }
    }

    fn device(&mut self, namespace: &str, device: Device, what: &str, wrong: &mut Vec<String>) {
        if !is_name(namespace) {
            wrong.push(format!(
                "{what}: '{namespace}' cannot be the name of a namespace: letters, digits and `._-`, at most 64"
            ));
        } else if self.devices.insert(namespace.to_string(), device).is_some() {
            wrong.push(format!("{what}: the namespace '{namespace}' would be made twice"));
        }
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Makes all of it. `go_on` is asked in between. If that fails, what was made is in the journal.
    ///
    /// # Errors
    /// What could not be made.
    pub fn make(&self, journal: &mut Journal, go_on: &dyn Fn() -> bool) -> Result<(), Failure> {
        if self.devices.values().any(|device| matches!(device, Device::Switch(..))) {
            OpenVSwitch::is_here()?;
        }
        let go_on = || if go_on() { Ok(()) } else { Err(Failure::Interrupted) };
        let mut namespaces = BTreeMap::new();
        for (name, device) in &self.devices {
            go_on()?;
            // Where no IPv6 address is given, none is made up, and nothing is sent for it.
            let has_6 = matches!(device, Device::Host(host) if host.addresses.iter().any(|a| a.contains(':')));
            let namespace = match has_6 {
                true => Namespace::make(name, journal)?,
                false => journal.namespace(name)?,
            };
            namespaces.insert(name.as_str(), namespace);
        }
        go_on()?;
        run(journal.marked(Command::new("ip")).args(["-batch", "-"]), &self.add_links())?;
        for (name, namespace) in &namespaces {
            go_on()?;
            namespace.ip(journal, &self.set_up(name))?;
        }
        for (name, device) in &self.devices {
            go_on()?;
            if let Device::Switch(path, ports) = device {
                let (folder, namespace) = (journal.folder().join(name), &namespaces[name.as_str()]);
                // Where it will be is seen before it is started.
                let there = OpenVSwitch::at(&folder);
                journal.link(path, &there.socket())?;
                let mut ports = ports.clone();
                ports.retain(|(port, _)| self.has_link(name, port));
                there.start(journal, namespace, Bridge::Entries, &ports, Access::AfPacket)?;
            }
        }
        go_on()
    }

    fn has_link(&self, namespace: &str, interface: &str) -> bool {
        let mut ends = self.links.iter().flat_map(|link| &link.ends);
        ends.any(|(of, port)| of == namespace && port == interface)
    }

    /// Commands of `ip` that make all links, both ends where they belong.
    fn add_links(&self) -> String {
        let mut text = String::new();
        for Link { ends: [(near, interface), (far, other)], mtu } in &self.links {
            let options = format!("mtu {mtu} numrxqueues {QUEUES} numtxqueues {QUEUES}");
            let _ = writeln!(
                text,
                "link add name {interface} netns {near} {options} type veth peer name {other} netns {far} {options}"
            );
        }
        text
    }

    /// Commands of `ip` in a namespace.
    fn set_up(&self, namespace: &str) -> String {
        let mut text = String::from("link set dev lo up\n");
        let all = self.links.iter().flat_map(|link| &link.ends);
        for (_, interface) in all.filter(|(of, _)| of == namespace) {
            if let Some(Device::Host(host)) = self.devices.get(namespace) {
                if let Some(mac) = &host.mac {
                    let _ = writeln!(text, "link set dev {interface} address {mac}");
                }
                // Switches take checksums that are left to them, but no more than one segment at a time.
                let _ = writeln!(text, "link set dev {interface} gso_max_segs 1");
                for address in &host.addresses {
                    let nodad = if address.contains(':') { " nodad" } else { "" };
                    let _ = writeln!(text, "addr add {address} dev {interface}{nodad}");
                }
            }
            let _ = writeln!(text, "link set dev {interface} up");
            if let Some(Device::Host(host)) = self.devices.get(namespace) {
                for gateway in &host.gateways {
                    let _ = writeln!(text, "route add default via {gateway}");
                }
            }
        }
        text
    }
}
