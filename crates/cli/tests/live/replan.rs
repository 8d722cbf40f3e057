//! Plans that replace each other under traffic: what does not change is left alone, and what changes loses no packet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use lab::live::network::run;
use lab::live::{PATIENCE, possible, until};
use serde_json::Value;

use crate::CATENA;
use crate::deploy::{HEAD, NAT, RACK, ROUTER, at, chain, deploy, planned_on, routed};
use crate::namespaces::Rack;

/// Datagrams that are on their path at once.
const WINDOW: u32 = 8;

/// Datagrams of one flow that are all answered: the first that is not ends it.
struct Flow {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    client: JoinHandle<Result<(), String>>,
}

impl Flow {
    /// From the left to an address of the right, and back.
    fn begin(rack: &Rack, address: &'static str) -> Self {
        let (is_over, answered) = <(Arc<AtomicBool>, Arc<AtomicU64>)>::default();
        let (to, from) = channel();
        let ended = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&ended);
        at(rack.namespace("right"), move || {
            let socket = UdpSocket::bind((address, 0)).unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
            to.send(socket.local_addr().unwrap()).unwrap();
            let (mut number, mut known) = ([0; 4], None);
            while !ends.load(Ordering::Relaxed) {
                let Ok((_, peer)) = socket.recv_from(&mut number) else { continue };
                // A translator that lost the flow gives it another port, most likely.
                if *known.get_or_insert(peer) == peer {
                    socket.send_to(&number, peer).unwrap();
                }
            }
        });
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&answered));
        let client = at(rack.namespace("left"), move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(from.recv().unwrap()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let (mut next, mut read) = (0_u32, [0; 4]);
            while !over.load(Ordering::Relaxed) {
                for number in next..next + WINDOW {
                    socket.send(&number.to_be_bytes()).unwrap();
                }
                let mut open: Vec<u32> = (next..next + WINDOW).collect();
                while !open.is_empty() {
                    socket.recv(&mut read).map_err(|_| format!("{open:?} were lost"))?;
                    open.retain(|number| *number != u32::from_be_bytes(read));
                }
                next += WINDOW;
                count.fetch_add(WINDOW.into(), Ordering::Relaxed);
            }
            ended.store(true, Ordering::Relaxed);
            Ok(())
        });
        Self { is_over, answered, client }
    }

    /// Waits until more is answered.
    #[track_caller]
    fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        until("more is answered", || {
            assert!(!self.client.is_finished(), "something was lost");
            self.answered.load(Ordering::Relaxed) > before + 100
        });
    }

    #[track_caller]
    fn end(self) {
        self.goes_on();
        self.is_over.store(true, Ordering::Relaxed);
        self.client.join().expect("the client").expect("all is answered");
    }
}

/// A rack with so many servers.
fn rack_of(servers: usize) -> String {
    let (mut all, mut ports, mut links) = (String::new(), String::new(), String::new());
    for number in 2..=servers {
        let _ = writeln!(
            all,
            "  s{number}: {{ netns: XXs{number}, cores: 2, clock: 2.1 GHz, ports: {{ eth0: {{ rate: 10 Gbps, delay: 5 us }} }} }}"
        );
        let port = number + 2;
        let _ = writeln!(
            ports,
            "      up{number}: {{ number: {port}, trust: [lengths, ip-checksum, ip-options, mtu] }}"
        );
        let _ = write!(links, ", [XXtor.up{number}, s{number}.eth0]");
    }
    RACK.replace("  s1:", &(all + "  s1:"))
        .replace("servers:", &(ports + "servers:"))
        .replace("s1.eth0]]", &format!("s1.eth0]{links}]"))
        .replace("10.8.0.2/24", "10.8.0.2/24, 10.9.0.2/24")
        .replace("10.99.0.1/24", "10.99.0.1/24, 10.99.1.1/24")
}

/// A translator of a network, with rules in front.
fn nat(network: char, rules: &str) -> String {
    NAT.replace('8', &network.to_string())
        .replace("XXleft -> nat", &format!("XXleft -> rules :: Filter({rules}) -> nat"))
        .replace("    traffic:", "    on: { rules: [not switch] }\n    traffic:")
}

/// A chain that the switch does alone.
const PROBE: &str = "  - name: probe
    chain: |
      XXleft -> probe :: Filter(allow all) -> XXright;
      XXright -> back :: Filter(allow all) -> XXleft
    traffic:
      - { in: XXleft, src: 10.77.0.0/24 }
      - { in: XXright, dst: 10.77.0.0/24 }
    on: { probe: [switch], back: [switch] }
    slo: { min: 1 Mbps, max: 1 Gbps }
";

fn manifest(chains: &[&str]) -> String {
    format!(
        "{HEAD}functions: {{ nat: {{ cycles: 1000 }}, rules: {{ cycles: 100 }} }}\nchains:\n{}",
        chains.concat()
    )
}

/// A plan of other chains, in which a chain's functions on cores are on this server, with one core each.
fn plan(rack: &Rack, name: &str, chains: &[&str], hosts: &[(&str, &str)]) -> PathBuf {
    let file = rack.write_beside("chains.yaml", &manifest(chains));
    let path = rack.place_from(&file, &rack.folder().join(format!("{}.json", rack.name)), &[]);
    let mut plan: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    move_to(&mut plan, hosts);
    rack.write_beside(&format!("{name}.json"), &plan.to_string())
}

fn move_to(plan: &mut Value, hosts: &[(&str, &str)]) {
    for chain in plan["chains"].as_array_mut().unwrap() {
        let own = hosts.iter().find(|(name, _)| chain["name"] == *name);
        let Some((_, host)) = own else { continue };
        let text = chain.to_string();
        let moved = ["s1", "s2", "s3"].iter().fold(text, |text, server| {
            text.replace(&format!("\"host\":\"{server}\""), &format!("\"host\":\"{host}\""))
        });
        *chain = serde_json::from_str(&moved).unwrap();
    }
}

/// By server: the number of its process.
fn processes(rack: &Rack) -> BTreeMap<String, u64> {
    let path = Path::new("/run/catena/deploy").join(&rack.name).join("state.json");
    let state: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let of = |server: &Value| {
        (server["name"].as_str().unwrap().to_string(), server["process"].as_u64().unwrap())
    };
    state["servers"].as_array().unwrap().iter().map(of).collect()
}

/// Packets that came to a core in a second.
fn taken(core: &Value) -> f64 {
    core["in"].as_f64().unwrap()
}

#[test]
fn what_does_not_change_is_left_alone_and_what_changes_loses_no_packet() {
    if !possible() {
        return;
    }
    let (one, other) = (nat('8', "allow all"), nat('9', "deny tcp dst port 25, allow all"));
    // All wires are shared from the beginning.
    let (rack, first) = planned_on(&rack_of(3), "r", &manifest(&[&one, PROBE]));
    let text = std::fs::read_to_string(&first).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    move_to(&mut document, &[("nat-8", "s1")]);
    let start = rack.write_beside("start.json", &document.to_string());
    let told = run(&mut deploy(&start, &[]));
    assert!(told.contains("nat on s1"), "{told}");
    let [address, second] = routed(&rack);
    let flow = Flow::begin(&rack, address);
    flow.goes_on();
    let before = processes(&rack);

    // Another chain comes, on another server.
    let next = plan(&rack, "second", &[&one, PROBE, &other], &[("nat-8", "s1"), ("nat-9", "s2")]);
    let told = run(&mut deploy(&next, &[]));
    for text in ["\ns1 runs on, untouched\n", "\ns2 started\n"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    let between = Flow::begin(&rack, second);
    between.goes_on();
    let with = processes(&rack);
    assert_eq!(with["s1"], before["s1"]);

    // Its rules change: its flow goes on, too.
    let changed = nat('9', "deny tcp dst port 26, allow all");
    let next = plan(&rack, "third", &[&one, PROBE, &changed], &[("nat-8", "s1"), ("nat-9", "s2")]);
    let told = run(&mut deploy(&next, &[]));
    for text in ["\ns1 runs on, untouched\n", "\ns2 was swapped (chain 'nat-9' changed)"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(processes(&rack), with);
    between.end();

    // One that the switch does alone comes, which the first server counts.
    let all = [&one, PROBE, &changed, ROUTER];
    let hosts = [("nat-8", "s1"), ("nat-9", "s2")];
    let next = plan(&rack, "fourth", &all, &hosts);
    let told = run(&mut deploy(&next, &[]));
    for text in ["\ns1 was swapped (chain 'router' is new)", "\ns2 runs on, untouched\n"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(processes(&rack), with);

    // One moves to another server.
    let next = plan(&rack, "fifth", &all, &[("nat-8", "s1"), ("nat-9", "s3")]);
    let told = run(&mut deploy(&next, &[]));
    for text in ["\ns1 runs on, untouched\n", "\ns2 ended: ", "\ns3 started\n"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(processes(&rack)["s1"], before["s1"]);
    let moved = Flow::begin(&rack, second);
    moved.goes_on();

    // Each chain is counted, wherever it is and however long its server has been running.
    until("both are counted", || {
        let said = deploy(&next, &["--status", "--json", "--for", "200 ms"]).output().unwrap();
        let status: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(status["wrong"], serde_json::json!([]), "{status}");
        let out = |name: &str| chain(&status, name)["out"].as_f64().unwrap() > 0.0;
        out("nat-8") && out("nat-9")
    });

    // One view of all: each chain beside its plan, each server's cores.
    let mut all = BTreeMap::new();
    until("it is seen", || {
        let mut top = Command::new(CATENA.0);
        top.args(["top", "--once", "--json", "--interval", "0.2", "--deployed"]).arg(&next);
        let seen: Value = serde_json::from_str(&run(&mut top)).unwrap();
        let load = seen["load"].as_array().unwrap().iter();
        let cores = |of: &Value| of["cores"].as_array().unwrap().iter().map(taken).sum::<f64>();
        all = load.map(|of| (of["name"].as_str().unwrap().to_string(), cores(of))).collect();
        chain(&seen, "nat-8")["out"].as_f64().unwrap() > 0.0
    });
    assert_eq!(all.keys().collect::<Vec<_>>(), ["s1", "s3"]);
    assert!(all["s1"] > 0.0, "{all:?}");
    let mut top = Command::new(CATENA.0);
    let told = run(top.args(["top", "--once", "--interval", "0.2", "--deployed"]).arg(&next));
    for text in [" nat-8 ", " router ", " server ", " s3 ", "cores busy"] {
        assert!(told.contains(text), "{text}: {told}");
    }

    // A chain goes.
    let last = plan(&rack, "sixth", &[PROBE, &changed, ROUTER], &[("nat-9", "s3")]);
    flow.end();
    let told = run(&mut deploy(&last, &[]));
    // The last server counts what the switch does alone now.
    for text in ["\ns3 was swapped (chain 'probe' is new", "\ns1 ended: "] {
        assert!(told.contains(text), "{text}: {told}");
    }
    moved.end();
}

/// Chains that share a server: it is another chain's rules that change.
#[test]
fn chains_of_one_server_go_on_while_another_one_changes() {
    if !possible() {
        return;
    }
    let (one, other) = (nat('8', "allow all"), nat('9', "deny tcp dst port 25, allow all"));
    let (rack, first) = planned_on(&rack_of(1), "s", &manifest(&[&one, &other]));
    run(&mut deploy(&first, &[]));
    let [address, second] = routed(&rack);
    let flows = [address, second].map(|address| Flow::begin(&rack, address));
    flows.iter().for_each(Flow::goes_on);
    let before = processes(&rack);
    for port in [26, 27] {
        let changed = nat('9', &format!("deny tcp dst port {port}, allow all"));
        let next = plan(&rack, "next", &[&one, &changed], &[]);
        let told = run(&mut deploy(&next, &[]));
        assert!(told.contains("\ns1 was swapped (chain 'nat-9' changed)"), "{told}");
        flows.iter().for_each(Flow::goes_on);
    }
    assert_eq!(processes(&rack), before);
    flows.into_iter().for_each(Flow::end);
}
