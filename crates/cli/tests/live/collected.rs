//! A real collector of IPFIX (nfcapd, of nfdump) has the flows that Monitor counted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use lab::live::network::run;
use lab::live::{Lab, Process, possible, until};
use serde_json::Value;

use crate::CATENA;
use crate::traffic::BOUND;

/// Flows with their packets and bytes: protocol, addresses and ports, which only TCP and UDP have.
type Flows = BTreeMap<(String, [IpAddr; 2], [u64; 2]), [u64; 2]>;

/// Adds up what is known of flows. Records of one flow may be many.
fn flows(records: &Value, read: impl Fn(&Value) -> (String, [IpAddr; 2], [&str; 4])) -> Flows {
    let mut flows = Flows::new();
    for record in records.as_array().unwrap() {
        let (protocol, addresses, [from, to, packets, bytes]) = read(record);
        let has_ports = ["tcp", "udp"].contains(&&protocol[..]);
        let port = |name: &str| record[name].as_u64().filter(|_| has_ports).unwrap_or(0);
        let sum = flows.entry((protocol, addresses, [port(from), port(to)])).or_default();
        sum[0] += record[packets].as_u64().unwrap();
        sum[1] += record[bytes].as_u64().unwrap();
    }
    flows
}

fn address(record: &Value, names: &[&str]) -> IpAddr {
    let text = names.iter().find_map(|name| record[name].as_str());
    text.unwrap_or_else(|| panic!("{record}")).parse().unwrap()
}

/// What Monitor shows.
fn counted(json: &str) -> Flows {
    flows(&serde_json::from_str(json).unwrap(), |record| {
        let addresses = ["source", "destination"].map(|name| address(record, &[name]));
        let protocol = record["protocol"].as_str().unwrap().to_owned();
        (protocol, addresses, ["source_port", "destination_port", "packets", "bytes"])
    })
}

/// nfcapd on the right.
struct Collector(Process);

/// Where the collector is, seen from the right host.
const PORT: &str = "0.0.0.0:4739";

impl Collector {
    fn start(lab: &Lab) -> Self {
        lab.ip("right", &["link", "set", "veth0", "address", "02:00:00:00:02:02"]);
        let folder = lab.folder().join("flows");
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = lab.command("right", "nfcapd");
        command.args(["-p", "4739", "-t", "3600", "-w"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let collector = Self(Process::start(&mut command));
        until("the collector listens", || lab.on("right", "ss", &["-Hlun"]).contains(PORT));
        collector
    }

    /// Has it end when it has read all that came; the flows it wrote.
    #[track_caller]
    fn end(self, lab: &Lab) -> Flows {
        until("the collector read everything", || {
            let sockets = lab.on("right", "ss", &["-Hlun"]);
            let line = sockets.lines().find(|line| line.contains(PORT)).expect("it listens");
            line.split_whitespace().nth(1) == Some("0")
        });
        self.0.signal(rustix::process::Signal::TERM);
        let (_, _, told) = self.0.end();
        assert!(told.contains("Sequence Errors: 0, Bad Packets: 0"), "{told}");
        let folder = lab.folder().join("flows");
        let text = run(Command::new("nfdump").arg("-R").arg(folder).args(["-o", "json"]));
        let records = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        flows(&records, |record| {
            let protocol = match record["proto"].as_u64().unwrap() {
                1 => "icmp".to_owned(),
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                58 => "icmp6".to_owned(),
                other => other.to_string(),
            };
            let addresses = ["src", "dst"]
                .map(|end| address(record, &[&format!("{end}4_addr"), &format!("{end}6_addr")]));
            (protocol, addresses, ["src_port", "dst_port", "in_packets", "in_bytes"])
        })
    }
}

/// What a handler gave, of what a run printed at its end.
fn handler<'a>(printed: &'a str, name: &str) -> &'a str {
    let (_, value) = printed.split_once(&format!("{name}:\n")).expect("it was read");
    value.split("\n\n").next().unwrap()
}

fn sums(flows: &Flows) -> [u64; 2] {
    flows.values().fold([0; 2], |sum, flow| [sum[0] + flow[0], sum[1] + flow[1]])
}

#[test]
fn a_collector_has_the_flows_of_captures() {
    let Some(folder) = lab::shared("data/pcap").filter(|_| possible()) else { return };
    for name in ["reddit.pcap", "sip.pcap", "teams.pcap", "ipv6-ext-headers.pcap", "synscan.pcap"] {
        let lab = Lab::new(CATENA, 1500);
        let collector = Collector::start(&lab);
        let chain = format!(
            "require(nf);
            mon :: Monitor(TOP 100000, INACTIVE 1s, COLLECTOR 10.9.0.3, SOURCE 10.9.0.1:4739);
            FromDump({}) -> mon -> Discard;
            mon[1] -> EtherEncap(0x0800, 02:00:00:00:00:02, 02:00:00:00:02:02) -> ToDevice(right);",
            folder.join(name).display()
        );
        let handlers = ["top_json", "count", "byte_count"].map(|name| format!("mon/flows.{name}"));
        let [json, count, bytes] = &handlers;
        let arguments = ["--out", "right=eth1", "-h", json, "-h", count, "-h", bytes];
        let (well, printed, told) = lab.start_on("middle", &chain, &arguments).end();
        assert!(well, "{name}: {told}");
        let counted = counted(handler(&printed, json));
        let of = |what: &str| handler(&printed, what).trim().parse::<u64>().unwrap();
        let all = [of(count), of(bytes)];
        assert!(all[0] > 0 && sums(&counted) == all, "{name}: {all:?}");
        let collected = collector.end(&lab);
        assert_eq!(sums(&collected), all, "{name}");
        assert_eq!(collected, counted, "{name}");
    }
}

/// Flows that are exported again and again add up to what passed.
#[test]
fn a_collector_has_the_flows_that_pass() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let collector = Collector::start(&lab);
    let chain = "require(nf);
        mon :: Monitor(TOP 100000, ACTIVE 1s, COLLECTOR 10.9.0.3, SOURCE 10.9.0.1:4739);
        FromDevice(left) -> mon; FromDevice(right) -> mon;
        mon -> to :: Classifier(0/020000000202, -);
        out :: ToDevice(right); to[0] -> out; to[1] -> ToDevice(left);
        mon[1] -> EtherEncap(0x0800, 02:00:00:00:00:02, 02:00:00:00:02:02) -> out;";
    let socket = lab.folder().join("ctl.sock");
    let control = ["--control", socket.to_str().unwrap()];
    let running = lab.run(chain, &[&BOUND[..], &control].concat());
    // Questions for addresses would have to leave on both sides.
    let mac = lab.on("left", "cat", &["/sys/class/net/veth0/address"]);
    lab.ip("right", &["neigh", "replace", "10.9.0.2", "lladdr", mac.trim(), "dev", "veth0"]);
    lab.ip(
        "left",
        &["neigh", "replace", "10.9.0.3", "lladdr", "02:00:00:00:02:02", "dev", "veth0"],
    );
    lab.ping("left", &["10.9.0.3"]);
    for _ in 0..4 {
        lab.exchange("10.9.0.3", 200_000);
        CATENA.ctl(&socket, &["write", "mon/flows.export", ""]);
    }
    let read = |name: &str| CATENA.ctl(&socket, &["read", &format!("mon/flows.{name}")]);
    // The last segments of the connections may still pass.
    let mut all = [String::new(), String::new()];
    until("nothing passes any more", || {
        let now = [read("top_json"), read("byte_count")];
        std::mem::replace(&mut all, now.clone()) == now
    });
    running.stop();
    let counted = counted(&all[0]);
    let collected = collector.end(&lab);
    assert_eq!(collected, counted);
    let [packets, bytes] = sums(&collected);
    assert!(collected.len() >= 10 && packets > 500 && bytes > 1_600_000, "{collected:?}");
}
