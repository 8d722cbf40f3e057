//! The rack of a deployment: servers that run something, and what. YAML has JSON in it, so it is a topology.

use std::collections::BTreeMap;

use ir::topology::{PortName, Topology};
use serde_json::{Value, json};

use super::chains::Joint;
use super::status::State;

/// What a topology has that the plan decides.
///
/// # Errors
/// Its field, in words.
pub(super) fn check(rack: &Topology) -> Result<(), String> {
    if !rack.limits.is_empty() {
        return Err("`limits:` is not for plans: `max` of a chain's `slo:` limits it".into());
    }
    match rack.servers.iter().find(|(_, server)| server.runs.is_some()) {
        None => Ok(()),
        Some((name, _)) => {
            Err(format!("`runs:` of '{name}' is not for plans: they say what each server runs"))
        }
    }
}

/// The topology's text.
pub(super) fn text(
    rack: &Topology,
    joint: &Joint<'_>,
    state: &State,
    tags: &BTreeMap<String, u16>,
) -> String {
    let limits: BTreeMap<&str, String> =
        state.limits().map(|(name, rate)| (name, format!("{:.0} kbps", rate / 1e3))).collect();
    let name = |port: &PortName| format!("{}.{}", port.device, port.port);
    let switch = |switch: &ir::topology::Switch| {
        let port =
            |port: &ir::topology::SwitchPort| json!({"number": port.number, "trust": port.trust});
        let ports: BTreeMap<&String, Value> =
            switch.ports.iter().map(|(name, of)| (name, port(of))).collect();
        let mut json = json!({"target": switch.target, "ports": ports});
        let control = switch.control.as_ref().map(ToString::to_string);
        for (key, value) in
            [("arch", &switch.arch), ("control", &control), ("device", &switch.device)]
        {
            if let Some(value) = value {
                json[key] = value.clone().into();
            }
        }
        json
    };
    let switches: BTreeMap<&String, Value> =
        rack.switches.iter().map(|(name, of)| (name, switch(of))).collect();
    let runs = |server: &String| state.servers.iter().any(|of| of.name == *server);
    let used: Vec<_> = rack.servers.iter().filter(|(name, _)| runs(name)).collect();
    let server = |(name, of): &(&String, &ir::topology::Server)| {
        let ports: BTreeMap<&String, Value> =
            of.ports.keys().map(|port| (port, json!({}))).collect();
        let mut json = json!({"ports": ports});
        if let Some(netns) = &of.netns {
            json["netns"] = netns.clone().into();
        }
        if used.len() > 1 {
            json["runs"] = joint.runs(name).into();
        }
        ((*name).clone(), json)
    };
    let servers: BTreeMap<String, Value> = used.iter().map(server).collect();
    let is_there = |port: &PortName| {
        rack.switches.contains_key(&port.device) || servers.contains_key(&port.device)
    };
    let links = rack.links.iter().filter(|ends| ends.iter().all(is_there));
    let links: Vec<[String; 2]> = links.map(|[a, b]| [name(a), name(b)]).collect();
    let wires: BTreeMap<&String, String> =
        rack.wires.iter().map(|(wire, port)| (wire, name(port))).collect();
    let all = json!({
        "switches": switches, "servers": servers, "links": links, "wires": wires, "limits": limits, "tags": tags,
    });
    format!("{all:#}\n")
}
