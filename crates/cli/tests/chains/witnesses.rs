//! Chains and what small changes make of them: every difference that `catena verify` shows is one
//! when the packets that it writes are sent through both.

use std::collections::BTreeMap;
use std::path::Path as Folder;
use std::process::Command;

use dataplane::Rest;
use engine::session::Path;
use ir::Port;
use net::pcap::Reader;
use net::{Batch, HEADROOM, Header, PacketType};

use crate::outcome::{Seen, drain};
use crate::support::{EPOCH, Started, start};

/// Chains from `IN` to `OUT0` and `OUT1`.
const CHAINS: &[&str] = &[
    "IN -> Strip(14) -> CheckIPHeader -> IPFilter(allow tcp dst port 80, deny udp src port 53, allow src net 10.0.0.0/8, deny all) -> DecIPTTL -> Unstrip(14) -> OUT0;",
    "IN -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(tcp syn, udp dst port 53, icmp type echo, -); c[0] -> Paint(1) -> OUT0; c[1] -> SetIPDSCP(3) -> OUT0; c[2] -> ICMPPingResponder -> OUT1; c[3] -> OUT1;",
    "IN -> c :: Classifier(12/0800, 12/0806, -); c[0] -> Strip(14) -> CheckIPHeader -> rt :: StaticIPLookup(10.0.0.0/8 0, 20.0.0.0/9 1, 0.0.0.0/0 2); rt[0] -> DecIPTTL -> OUT0; rt[1] -> IPGWOptions(1.2.3.4) -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> OUT1; rt[2] -> Discard; c[1] -> OUT0; c[2] -> Discard;",
    "IN -> Strip(14) -> CheckIPHeader -> IPFilter(allow src 10.0.0.0/8 and tcp, deny all) -> rw :: IPRewriter(pattern 30.0.0.1 1024-1030# - - 0 1) -> IPFilter(allow src host 30.0.0.1 and dst port < 1024, deny all) -> OUT0; rw[1] -> OUT1;",
    "IN -> Strip(14) -> CheckIPHeader -> k :: IPClassifier(tcp or udp, -); rw :: IPRewriter(pattern 100.0.0.1 2000-2001 - - 0 1, drop, UDP_TIMEOUT 5); k[0] -> [0] rw; rw[0] -> SetIPDSCP(9) -> OUT0; rw[1] -> OUT1; k[1] -> DecIPTTL -> OUT1;",
    "IN -> Strip(14) -> IPEncap(4, 1.1.1.1, 2.2.2.2, TTL 9) -> CheckIPHeader -> DecIPTTL -> c :: IPClassifier(ip ttl 8, -); c[0] -> OUT0; c[1] -> OUT1;",
    "IN -> Strip(14) -> CheckIPHeader -> Queue(50) -> SetIPDSCP(1) -> Unqueue -> c :: IPClassifier(udp, -); c[0] -> OUT0; c[1] -> Null -> OUT1;",
    "IN -> p :: PaintSwitch; p[0] -> Paint(2) -> CheckPaint(2) -> OUT0; p[1] -> OUT1;",
    "IN -> Strip(14) -> CheckIPHeader -> t :: Tee -> OUT0; t[1] -> GetIPAddress(16) -> StoreIPAddress(12) -> OUT1;",
    "IN -> VLANEncap(VLAN_ID 7) -> c :: Classifier(14/0007%0fff 16/0800, -); c[0] -> VLANDecap -> OUT0; c[1] -> Truncate(40) -> OUT1;",
    "IN -> Strip(14) -> CheckIPHeader -> Counter(COUNT_CALL 3 sw.switch 1) -> sw :: Switch(0); sw[0] -> OUT0; sw[1] -> SetIPDSCP(8) -> OUT1;",
    "IN -> Strip(14) -> CheckIPHeader -> lb :: RoundRobinSwitch; lb[0] -> SetIPAddress(9.0.0.1) -> StoreIPAddress(dst) -> OUT0; lb[1] -> f :: IPFragmenter(60) -> OUT1; f[1] -> Discard;",
];

/// Chains that a change to one place of a chain makes.
fn changed(chain: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (from, to) in [
        ("allow", "deny"),
        ("deny", "allow"),
        ("tcp", "udp"),
        ("udp", "tcp"),
        ("src", "dst"),
        ("OUT0", "OUT1"),
        ("OUT1", "OUT0"),
    ] {
        for (at, _) in chain.match_indices(from) {
            all.push(format!("{}{to}{}", &chain[..at], &chain[at + from.len()..]));
        }
    }
    // Another number.
    let is_digit = |at: usize| chain.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    for (at, digit) in chain.match_indices(|c: char| c.is_ascii_digit()) {
        if is_digit(at + 1) || chain[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let other =
            if digit == "9" { "8".into() } else { (digit.as_bytes()[0] - b'0' + 1).to_string() };
        all.push(format!("{}{other}{}", &chain[..at], &chain[at + 1..]));
    }
    // An element less, and one more.
    for (at, arrow) in chain.match_indices("-> ") {
        let rest = &chain[at + arrow.len()..];
        if let Some(end) = rest.find(" -> ") {
            all.push(format!("{}{}", &chain[..at], &rest[end + 1..]));
        }
        for more in ["Null", "DecIPTTL", "Paint(4)", "IPFilter(allow ip ttl > 3)"] {
            all.push(format!("{}{arrow}{more} -> {rest}", &chain[..at]));
        }
    }
    all
}

/// A chain with its ends between devices, or between what a test feeds and drains.
fn with_ends(chain: &str, is_run: bool) -> String {
    let (input, outputs) = match is_run {
        true => ("in0 :: Idle", ["o0", "o1"]),
        false => ("in0 :: FromDevice(lan)", ["o0", "o1"]),
    };
    let mut text = chain.replace("IN ->", &format!("{input} ->"));
    for (number, name) in outputs.iter().enumerate() {
        let end = match is_run {
            true => format!("{name} :: Queue(100000) -> Idle;"),
            false => format!("{name} :: ToDevice(w{number});"),
        };
        let from = format!("OUT{number}");
        if text.contains(&from) {
            text = format!("{end}\n{}", text.replace(&from, name));
        }
    }
    text
}

fn started(text: &str) -> Started {
    start("test", text, Folder::new("."), Path::Native)
        .unwrap_or_else(|(found, _)| panic!("{text}\nis refused: {found:?}"))
}

/// What leaves a chain when it is sent packets at these times.
fn sent(chain: &str, packets: &[(u64, Vec<u8>)]) -> BTreeMap<String, Vec<String>> {
    let mut started = started(&with_ends(chain, true));
    let graph = &started.chain.graph;
    let node = graph.find("in0").expect("there is an input");
    let to = graph.successors(Port { node, port: 0 }).next().expect("it leads somewhere");
    started.router.round();
    for (time, frame) in packets {
        use dataplane::clock::Clock;
        let mut clock = started.clock.clone();
        clock.wait_until(EPOCH + time);
        let bytes = [&[0; HEADROOM], &frame[..]].concat();
        let mut packet = started.router.core().pool.packet(&bytes);
        packet.pull(HEADROOM);
        packet.set_header_offset(Header::Mac, 0);
        packet.set_timestamp(EPOCH + time);
        if frame.first().is_some_and(|byte| byte & 1 == 1) {
            let all = frame.starts_with(&[0xff; 6]);
            packet.set_packet_type(if all { PacketType::Broadcast } else { PacketType::Multicast });
        }
        let mut batch = Batch::new();
        batch.push(packet);
        started.router.push(to, batch);
        started.router.run(|_, rest| !matches!(rest, Rest::Busy));
    }
    let mut all = BTreeMap::new();
    for name in ["o0", "o1"] {
        if started.chain.graph.find(name).is_some() {
            let mut sent: Vec<String> =
                drain(&mut started, name).iter().map(Seen::digits).collect();
            sent.sort();
            if !sent.is_empty() {
                all.insert(name.to_string(), sent);
            }
        }
    }
    all
}

/// What `catena verify` says of two chains, and the packets that it writes.
fn verified(folder: &Folder, one: &str, other: &str) -> (String, Vec<(u64, Vec<u8>)>) {
    for (name, chain) in [("a.click", one), ("b.click", other)] {
        std::fs::write(folder.join(name), with_ends(chain, false)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_catena"))
        .args(["verify", "a.click", "b.click", "--packets", "100", "--pcap", "d.pcap"])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let verdict = text.split(' ').next().unwrap_or_default().to_string();
    if verdict.is_empty() {
        return (String::from_utf8(output.stderr).unwrap(), Vec::new());
    }
    let bytes = std::fs::read(folder.join("d.pcap")).unwrap();
    let mut reader = Reader::in_memory(bytes).unwrap();
    let (mut data, mut packets) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next_record(&mut data).unwrap() {
        packets.push((record.timestamp_ns, data.clone()));
    }
    (verdict, packets)
}

/// `PAIRS=500 cargo test -p catena-cli --test chains witnesses -- --nocapture` takes more of them.
#[test]
fn every_difference_that_is_shown_is_one() {
    let folder = std::env::temp_dir().join(format!("catena-witnesses-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let most: usize = std::env::var("PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(48);
    // A change of each chain in turn.
    let mut rng = fastrand::Rng::with_seed(7);
    let mut all: Vec<Vec<String>> = CHAINS.iter().map(|chain| changed(chain)).collect();
    all.iter_mut().for_each(|changes| rng.shuffle(changes));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    'pairs: loop {
        let before = counts.values().sum::<usize>();
        for (chain, changes) in CHAINS.iter().zip(&mut all) {
            let Some(other) = changes.pop() else { continue };
            if counts.values().sum::<usize>() == most {
                break 'pairs;
            }
            let (verdict, packets) = verified(&folder, chain, &other);
            if !["equal", "different", "undecided"].contains(&&*verdict) {
                // Not every change is a chain.
                *counts.entry("refused".into()).or_default() += 1;
                continue;
            }
            if verdict == "different" && sent(chain, &packets) == sent(&other, &packets) {
                wrong.push(format!("{chain}\n{other}\n{packets:?}"));
            }
            *counts.entry(verdict).or_default() += 1;
        }
        if counts.values().sum::<usize>() == before {
            break;
        }
    }
    eprintln!("{counts:?}");
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "{} of {counts:?}:\n{}", wrong.len(), wrong.join("\n\n"));
    // Not all are given up.
    let count = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    assert!(2 * count("different") > count("equal") + count("undecided"), "{counts:?}");
}
