//! Access lists beside the kernel: what `nft list ruleset` prints of generated rules is read by IPFilter, and both judge the
//! same packets.

use fastrand::Rng;
use lab::chain;
use lab::live::possible;
use lab::outcome::{drain, feed};

use crate::kernel::Kernel;

const LISTS: u64 = 12;
const RULES: usize = 40;
const PACKETS: usize = 400;

/// Rules of the chain `forward`, which sees packets before the kernel forwards them.
fn generated(rng: &mut Rng) -> String {
    let policy = pick(rng, &["accept", "drop"]);
    let rules: String = (0..RULES).map(|_| format!("    {}\n", rule(rng))).collect();
    format!(
        "table inet filter {{
  set hosts {{ type ipv4_addr; flags interval; elements = {{ 10.0.0.0/30, 10.0.0.9, 192.0.2.2-192.0.2.5 }} }}
  set served {{ type ipv4_addr . inet_service; elements = {{ 10.0.0.1 . 80, 192.0.2.3 . 22, 10.0.0.6 . 53 }} }}
  set six {{ type ipv6_addr; elements = {{ 2001:db8::1 }} }}
  chain forward {{
    type filter hook prerouting priority 0; policy {policy};
{rules}  }}
}}
"
    )
}

fn pick<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    rng.choice(all).expect("there are some")
}

/// A rule of one to three matches, of one protocol.
fn rule(rng: &mut Rng) -> String {
    if rng.u8(0..20) == 0 {
        let six = ["ip6 saddr @six", "meta nfproto ipv6", "icmpv6 type echo-request"];
        return format!("{} {}", pick(rng, &six), pick(rng, &["accept", "drop"]));
    }
    let protocol = pick(rng, &["", "", "th", "tcp", "tcp", "udp", "icmp"]);
    let mut all: Vec<String> = (0..rng.usize(1..=3)).map(|_| matches(rng, protocol)).collect();
    // Of two that look at one field, nft prints a range, which may be none; of type and code of ICMP, another field.
    let words = |text: &str| if text.starts_with("icmp") { 1 } else { 2 };
    let field = |text: &str| text.split(' ').take(words(text)).collect::<String>();
    all.sort_by_key(|text| field(text));
    all.dedup_by_key(|text| field(text));
    let mut text: String = all.into_iter().map(|text| text + " ").collect();
    text += pick(rng, &["", "", "counter ", "counter log prefix \"seen, and: \" level debug "]);
    text += pick(
        rng,
        &[
            "accept",
            "drop",
            "accept comment \"one, two\"",
            "reject",
            "reject with icmp host-prohibited",
        ],
    );
    text
}

/// A match that packets of a protocol may pass, if one is given.
fn matches(rng: &mut Rng, protocol: &str) -> String {
    let not = pick(rng, &["", "", "!= "]);
    let address = pick(
        rng,
        &["10.0.0.4", "10.0.0.0/29", "192.0.2.1-192.0.2.6", "{ 10.0.0.2, 192.0.2.0/30 }", "@hosts"],
    );
    let ports = pick(rng, &["80", "20-60", "{ 22, 53, 80-90 }", "{ 443 }"]);
    let order = pick(rng, &["<", "<=", ">", ">="]);
    let number = rng.u8(1..250);
    if rng.bool() {
        return match rng.u8(0..7) {
            0 | 1 => format!("ip saddr {not}{address}"),
            2 => format!("ip daddr {not}{address}"),
            3 => format!("ip ttl {order} {number}"),
            4 => format!("ip length {order} {}", 20 + number / 4),
            5 => format!("ip dscp {not}{}", pick(rng, &["ef", "{ cs1, af11, af12 }", "0x0c"])),
            _ => format!("ip {}", pick(rng, &["frag-off & 0x1fff != 0", "id 0-999"])),
        };
    }
    match (protocol, rng.u8(0..3)) {
        ("tcp", 0) => {
            let flags = [
                "syn",
                "! syn",
                "syn,ack",
                "== syn",
                "!= ack",
                "& (fin | syn | rst | ack) == syn",
                "& (syn | ack) != syn | ack",
                "syn / syn,ack",
                "& rst == 0",
                "{ syn, syn | ack }",
            ];
            format!("tcp flags {}", pick(rng, &flags))
        }
        ("tcp", 1) => {
            let served = ["@served", "{ 10.0.0.3 . 80, 192.0.2.2 . 22 }"];
            format!("ip saddr . tcp dport {not}{}", pick(rng, &served))
        }
        ("tcp" | "udp", _) => {
            format!("{protocol} {} {not}{ports}", pick(rng, &["sport", "dport"]))
        }
        ("icmp", 0) => {
            format!("icmp code {not}{}", pick(rng, &["port-unreachable", "frag-needed", "0"]))
        }
        ("icmp", _) => {
            let kinds =
                ["echo-request", "{ echo-request, echo-reply }", "destination-unreachable", "13"];
            format!("icmp type {not}{}", pick(rng, &kinds))
        }
        ("th", _) => format!("meta l4proto {{ tcp, udp }} th dport {not}{ports}"),
        (_, 0) => format!("meta l4proto {not}{}", pick(rng, &["tcp", "{ tcp, udp }", "gre", "47"])),
        (..) => format!("ip protocol {not}{}", pick(rng, &["icmp", "{ udp, sctp }", "17"])),
    }
}

/// A packet that rules are about, whole or cut, of any fragment.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let address = |rng: &mut Rng| match rng.bool() {
        true => [10, 0, 0, rng.u8(1..12)],
        false => [192, 0, 2, rng.u8(1..8)],
    };
    let port = |rng: &mut Rng| match rng.u8(0..4) {
        0 => rng.u16(..),
        1 => rng.u16(15..100),
        _ => *rng.choice(&[22, 53, 80, 443, 60]).expect("there are some"),
    };
    let protocol = *rng.choice(&[6, 6, 6, 17, 17, 1, 1, 47, 132]).expect("there are some");
    let mut transport = vec![0; rng.usize(0..40)];
    if rng.u8(0..8) > 0 {
        transport.resize(transport.len().max(20), 0);
    }
    let ports = [port(rng).to_be_bytes(), port(rng).to_be_bytes()].concat();
    let icmp = [*rng.choice(&[0, 3, 5, 8, 13]).expect("there are some"), rng.u8(0..6)];
    let start: &[u8] = if protocol == 1 { &icmp } else { &ports };
    let common = transport.len().min(start.len());
    transport[..common].copy_from_slice(&start[..common]);
    if let Some(flags) = transport.get_mut(13).filter(|_| protocol == 6) {
        let any = rng.u8(..);
        *flags = *rng.choice(&[2, 16, 18, 4, 17, 24, any]).expect("there are some");
    }
    let fragment: u16 = match rng.u8(0..8) {
        // Linux 6.18 takes what a later fragment holds for ports, unless connections are tracked: IPFilter does not.
        0 if !matches!(protocol, 1 | 6 | 17) => rng.u16(1..100),
        1 => 0x2000,
        _ => 0,
    };
    let any = rng.u8(..) & 0xfc;
    let tos = *rng.choice(&[0, 0xb8, 0x20, 0x28, 0x30, any]).expect("there are some");
    let mut packet = vec![0x45, tos];
    packet.extend((20 + transport.len() as u16).to_be_bytes());
    packet.extend(rng.u16(0..2000).to_be_bytes());
    packet.extend(fragment.to_be_bytes());
    packet.extend([rng.u8(2..=255), protocol, 0, 0]);
    packet.extend(address(rng));
    packet.extend(address(rng));
    let sum = net::checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(transport);
    packet
}

#[test]
fn lists_that_nft_prints_are_judged_as_by_the_kernel() {
    if !possible() {
        return;
    }
    let (mut passed, mut all) = (0, 0);
    for seed in 0..LISTS {
        let mut rng = Rng::with_seed(seed);
        let mut kernel = Kernel::start(&generated(&mut rng), "true", None);
        let listing = kernel.listing();
        std::fs::write(kernel.folder().join("list.nft"), &listing).unwrap();
        let chain =
            "in0 :: Idle -> Strip(14) -> CheckIPHeader -> IPFilter(file list.nft) -> Unstrip(14)
            -> out0 :: Queue -> Idle;";
        let started =
            chain::start("list", chain, kernel.folder(), engine::session::Path::Synthesised);
        let mut started = started.unwrap_or_else(|(errors, _)| panic!("{errors:?}\n{listing}"));
        for _ in 0..PACKETS {
            let packet = packet(&mut rng);
            let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], &packet[..]].concat();
            feed(&mut started, "in0", &[frame]);
            let passes = drain(&mut started, "out0").len() == 1;
            let by_kernel = kernel.forwards(0, &packet);
            assert_eq!(passes, by_kernel, "list {seed}, packet {packet:02x?}\n{listing}");
            passed += usize::from(passes);
            all += 1;
        }
    }
    // Neither is rare.
    assert!((all / 4..3 * all / 4).contains(&passed), "{passed} of {all} pass");
}
