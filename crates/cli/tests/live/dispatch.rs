//! Frames that say by a tag which worker is theirs.

use std::path::PathBuf;

use serde_json::Value;

use crate::lab::{Lab, Running, ctl, exchange, possible};
use crate::traffic::{BOUND, nat};

/// A chain in the middle that runs on two workers.
struct Tagged {
    lab: Lab,
    running: Running,
    socket: PathBuf,
}

impl Tagged {
    fn run(chain: &str, mode: &str, dispatch: &[&str]) -> Self {
        let lab = Lab::new(1500);
        let socket = lab.file("ctl", "").with_extension("sock");
        let path = socket.to_str().unwrap();
        let how = ["--io", mode, "--cores", "0,1", "--control", path];
        let mut running = lab.run(chain, &[&BOUND[..], &how, dispatch].concat());
        running.wait_for("control: ");
        Self { lab, running, socket }
    }

    fn ask(&self, what: &[&str]) -> Value {
        serde_json::from_str(&ctl(&self.socket, &[&["--json"], what].concat())).unwrap()
    }

    /// Packets that each worker received from each side.
    fn received(&self) -> Vec<[u64; 2]> {
        let counters = self.ask(&["counters"]);
        let workers = counters["workers"].as_array().unwrap().iter();
        let of = |worker: &Value| {
            let all = worker["elements"].as_array().unwrap().iter();
            let packets = all.filter_map(|element| element["in"]["packets"].as_u64());
            <[u64; 2]>::try_from(packets.collect::<Vec<_>>()).unwrap()
        };
        workers.map(of).collect()
    }
}

/// What stands before the chain and tags what comes from the left host.
struct VlanSwitch {
    _running: Running,
    socket: PathBuf,
}

impl VlanSwitch {
    fn before(lab: &Lab) -> Self {
        let socket = lab.file("switch", "").with_extension("sock");
        let chain = "FromDevice(host) -> tag :: VLANEncap(VLAN_ID 1) -> ToDevice(wire);
            FromDevice(wire) -> ToDevice(host);";
        let bound = ["--in", "host=tap:host0", "--in", "wire=veth0"];
        let control = ["--control", socket.to_str().unwrap()];
        let mut running = lab.run_on("left", chain, &[&bound[..], &control].concat());
        running.wait_for("control: ");
        lab.ip("left", &["addr", "flush", "dev", "veth0"]);
        lab.ip("left", &["addr", "add", "10.1.0.2/24", "dev", "host0"]);
        lab.ip("left", &["route", "add", "default", "via", "10.1.0.1"]);
        Self { _running: running, socket }
    }
}

/// Tagged frames and the answers to what becomes of them are at one worker: that of their group.
#[test]
fn a_tag_brings_both_directions_to_its_worker() {
    if !possible() {
        return;
    }
    for (mode, tags) in [
        ("af-xdp", "tags=mac"),
        ("af-packet-mmsg", "tags=mac"),
        ("af-xdp", "tags=vlan:7"),
        ("af-packet-ring", "tags=vlan:7"),
    ] {
        let tagged = Tagged::run(&nat(), mode, &["--dispatch", tags, "--groups", "4"]);
        let told = tagged.running.told();
        assert!(told.contains(&format!("dispatch: {tags} (asked for), ")), "{told}");
        let known = tagged.ask(&["dispatch"]);
        let groups = known["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &known["way"]), (4, &Value::from(tags)));
        let switch = (tags != "tags=mac").then(|| VlanSwitch::before(&tagged.lab));
        for (number, group) in groups.iter().enumerate() {
            let tag = group["tag"].as_str().unwrap();
            let worker = group["worker"].as_u64().unwrap() as usize;
            assert_eq!(worker, number % 2);
            match &switch {
                None => {
                    let via = ["neigh", "replace", "10.1.0.1", "lladdr", tag, "dev", "veth0"];
                    tagged.lab.ip("left", &via);
                }
                Some(switch) => drop(ctl(&switch.socket, &["write", "tag.vlan_id", tag])),
            }
            let before = tagged.received();
            exchange(&tagged.lab, "10.2.0.2", 20_000);
            exchange(&tagged.lab, "10.2.0.2", 20_000);
            let after = tagged.received();
            for side in 0..2 {
                let came = |worker: usize| after[worker][side] - before[worker][side];
                // Others: neighbours' questions.
                assert!(came(worker) >= 20 && came(1 - worker) < 5, "{before:?} {after:?}");
            }
            let now = tagged.ask(&["dispatch"]);
            assert!(now["groups"][number]["packets"].as_u64().unwrap() >= 20, "{now:#}");
        }
        tagged.running.stop();
    }
}
