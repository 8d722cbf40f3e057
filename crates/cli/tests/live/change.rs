//! Chains that are changed while hosts speak through them.

use crate::CATENA;
use crate::talk::Talk;
use crate::traffic::{BOUND, SERVICE, edge};
use lab::live::{Lab, possible};

/// TCP connections at a time.
pub(crate) const CONNECTIONS: usize = 200;

/// Hundreds of connections through a firewall, a balancer and a translator while these are
/// replaced again and again: none breaks, and no byte changes.
#[test]
fn connections_outlive_a_hundred_changes() {
    if !possible() {
        return;
    }
    let chain = edge();
    let other = chain.replace("flows[0] -> [1] wan;", "flows[0] -> out :: Counter -> [1] wan;");
    for (mode, changes) in [("af-xdp", 100), ("af-packet-mmsg", 30)] {
        let lab = Lab::new(CATENA, 1500);
        lab.ip("right", &["addr", "add", "10.2.0.3/24", "dev", "veth0"]);
        let socket = lab.file("ctl", "").with_extension("sock");
        let path = socket.to_str().unwrap();
        let arguments = [&BOUND[..], &["--io", mode, "--control", path]].concat();
        let mut running = lab.run(&chain, &arguments);
        running.wait_for("control: ");
        let files = [lab.file("b", &other), lab.file("a", &chain)];
        let talk = Talk::begin(&lab, SERVICE, CONNECTIONS);
        talk.go_on(CONNECTIONS as u64);
        for i in 0..changes {
            let done = CATENA.ctl(&socket, &["swap", files[i % 2].to_str().unwrap()]);
            assert!(done.contains("packets waited"), "{done}");
            talk.go_on(20);
        }
        let counters = CATENA.ctl(&socket, &["--json", "counters"]);
        let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
        let elements = counters["all"]["elements"].as_array().unwrap();
        for name in ["balance", "flows"] {
            let element = elements.iter().find(|element| element["name"] == name).unwrap();
            assert!(element["flows"].as_u64().unwrap() >= CONNECTIONS as u64, "{element}");
        }
        talk.end();
        running.stop();
    }
}
