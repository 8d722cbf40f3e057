//! The Firewall beside the kernel's connection tracking: the same packets, verdict by verdict.

mod played;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use lab::chain::{self, Started};
use lab::live::possible;
use lab::outcome::{drain, feed};
use net::pcap::Reader;
use net::wire::{Ipv4, Tcp};

use crate::kernel::Kernel;
use played::{INSIDE, OUTSIDE, Played, connection};

/// Passes each packet through the kernel; which of them left.
fn kernel(packets: &[Played]) -> Vec<bool> {
    let rules = include_str!("conntrack/rules.nft");
    let mut kernel = Kernel::start(rules, "echo 0 > netfilter/nf_conntrack_tcp_loose", None);
    packets.iter().map(|Played { from, packet, .. }| kernel.forwards(*from, packet)).collect()
}

/// The same through the Firewall.
struct Firewall(Started);

impl Firewall {
    fn start() -> Self {
        let chain = "require(nf);
            fw :: Firewall(allow tcp, MTU 65535);
            in0 :: Idle -> [0] fw [0] -> out0 :: Queue -> Idle;
            in1 :: Idle -> [1] fw [1] -> out1 :: Queue -> Idle;";
        let started =
            chain::start("firewall", chain, Path::new("."), engine::session::Path::Native);
        Self(started.unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}")))
    }

    fn passes(&mut self, Played { from, packet, .. }: &Played) -> bool {
        let ether_type: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
        let ends = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let frame = [&ends[..], &ether_type, packet].concat();
        // Packets come one by one.
        self.0.clock.advance(1000);
        feed(&mut self.0, &format!("in{from}"), &[frame]);
        let left = drain(&mut self.0, &format!("out{from}"));
        assert!(left.len() <= 1 && drain(&mut self.0, &format!("out{}", 1 - from)).is_empty());
        !left.is_empty()
    }
}

/// Packets whose verdicts differ, and whether the Firewall passes them; of each connection only the first, as after it
/// the two know different things. Packets say which connection they belong to.
fn differences(packets: &[Played]) -> Vec<(&Played, bool)> {
    let kernel = kernel(packets);
    assert_eq!(kernel.len(), packets.len());
    let passed = kernel.iter().filter(|passes| **passes).count();
    assert!(passed > 100, "only {passed} of {} packets pass", packets.len());
    let (mut firewall, mut apart) = (Firewall::start(), HashSet::new());
    let both = packets.iter().zip(kernel);
    let differs = both.filter_map(|(packet, by_kernel)| {
        let passes = firewall.passes(packet);
        let differs = passes != by_kernel && apart.insert(packet.connection);
        differs.then_some((packet, passes))
    });
    // The first difference of each: later ones are found out by the set.
    differs.collect()
}

/// What differs, and why, is on this page.
const PAGE: &str = include_str!("../../../../docs/firewall-conntrack.md");

/// A class of differences.
struct Class {
    /// What the page calls it.
    name: &'static str,
    /// Whether the Firewall passes it.
    passes: bool,
    /// Texts that all are in what a packet is called, each one of several.
    texts: &'static [&'static [&'static str]],
}

const fn class(
    name: &'static str,
    passes: bool,
    texts: &'static [&'static [&'static str]],
) -> Class {
    Class { name, passes, texts }
}

/// The first that fits counts.
const CLASSES: [Class; 13] = [
    class(
        "SYN-ACK of a SYN that another one replaced",
        false,
        &[&["behind SYN with another number from inside after the SYN"]],
    ),
    class(
        "segments behind a SYN with a number from before",
        false,
        &[&["behind SYN with the number before"]],
    ),
    class("segments behind a reset that crosses a simultaneous open", false, &[&["behind RST"]]),
    class("data and ACKs of long ago", false, &[&["data of long ago", "ACK of long ago"]]),
    class("a byte behind the window", false, &[&["a byte behind"]]),
    class(
        "segments of the peer in a simultaneous open, but SYN and SYN-ACK",
        false,
        &[
            &["data", "keep-alive", "ACK of", "ACK with a number"],
            &["from outside after both SYNs"],
        ],
    ),
    class(
        "SYN-ACKs with another number in a simultaneous open",
        false,
        &[&["SYN-ACK with another number from inside after both SYNs"]],
    ),
    class(
        "resets that do not acknowledge a SYN",
        false,
        &[&["RST"], &["from outside after the SYN"]],
    ),
    class(
        "resets outside the window, after a FIN or before the peer has acknowledged anything",
        false,
        &[&["RST"]],
    ),
    class(
        "answers to a SYN behind a reset of long ago",
        true,
        &[&["behind RST of long ago from inside after the SYN"]],
    ),
    class("resets of a SYN by its sender", true, &[&["RST"], &["from inside after the SYN"]]),
    class("a byte at the end of the window", true, &[&["a byte behind"]]),
    class("ACKs behind segments of another connection", true, &[&["ACK from"], &["behind"]]),
];

#[test]
fn generated_connections_are_judged_as_by_the_kernel() {
    if !possible() {
        return;
    }
    let packets: Vec<Played> = (0..8000).flat_map(connection).collect();
    let mut counts = [0; CLASSES.len()];
    for (packet, passes) in differences(&packets) {
        let fits = |class: &Class| {
            let mut texts = class.texts.iter();
            let has = |of: &&[&str]| of.iter().any(|text| packet.what.contains(text));
            class.passes == passes && texts.all(has)
        };
        let class = CLASSES.iter().position(fits);
        let class = class.unwrap_or_else(|| panic!("not explained: {passes}, {}", packet.what));
        counts[class] += 1;
    }
    let mut missing = Vec::new();
    for (class, count) in CLASSES.iter().zip(counts) {
        let [ours, theirs] = if class.passes { ["passes", "drops"] } else { ["drops", "passes"] };
        let row = format!("| {} | {ours} | {theirs} | {count} |", class.name);
        missing.extend((!PAGE.contains(&row)).then_some(row));
    }
    assert!(missing.is_empty(), "the page lacks {missing:#?}");
    let rows =
        PAGE.lines().filter(|line| line.contains(" | drops | ") || line.contains(" | passes | "));
    assert_eq!(rows.count(), CLASSES.len());
    let all = format!("{} packets of 8000 connections", packets.len());
    assert!(PAGE.contains(&all), "{all}");
}

#[test]
fn connections_over_ipv6_are_judged_as_over_ipv4() {
    if !possible() {
        return;
    }
    let four: Vec<Played> = (0..2000).flat_map(connection).collect();
    let six: Vec<Played> = four.iter().map(Played::over_ipv6).collect();
    let all = |packets: &[Played]| -> Vec<(String, bool)> {
        let differing = differences(packets).into_iter();
        differing.map(|(packet, passes)| (packet.what.clone(), passes)).collect()
    };
    let (four, six) = (all(&four), all(&six));
    assert_eq!(four, six);
    let all = format!("{} differences of the first 2000 connections", six.len());
    assert!(PAGE.contains(&all), "{all}");
}

/// The segments of a capture; inside is who sends the first of a connection.
fn captured(file: &Path) -> Vec<Played> {
    let mut reader = Reader::in_memory(std::fs::read(file).unwrap()).unwrap();
    let (mut packets, mut known) = (Vec::new(), HashMap::new());
    while let Some(record) = reader.next().unwrap() {
        let Some(ip) = record.data.get(14..).filter(|_| record.data[12..14] == [8, 0]) else {
            continue;
        };
        let Some(view) = Ipv4::new(ip).filter(|ip| ip.protocol() == 6 && !ip.is_fragment()) else {
            continue;
        };
        let Some(packet) = ip.get(..usize::from(view.total_len())) else { continue };
        let Some(tcp) = packet.get(view.header_len()..).and_then(Tcp::new) else { continue };
        let ends = [(view.src(), tcp.src_port()), (view.dst(), tcp.dst_port())];
        let number = known.len() as u16;
        let (from, connection) = match known.get(&[ends[1], ends[0]]) {
            Some(&number) => (OUTSIDE, number),
            None => (INSIDE, *known.entry(ends).or_insert(number)),
        };
        let what = format!("({ends:?}) {:#x} seq {} ack {}", tcp.flags(), tcp.seq(), tcp.ack());
        packets.push(Played { from, packet: packet.to_vec(), connection, what });
    }
    packets
}

#[test]
fn captures_are_judged_as_by_the_kernel() {
    let Some(folder) = lab::shared("data/pcap").filter(|_| possible()) else { return };
    // In netflix.pcap, a reset answers a segment that came before the last one, behind its own FIN.
    for (name, differing) in [("instagram", 0), ("1kxun", 0), ("netflix", 1), ("gnutella", 0)] {
        let packets = captured(&folder.join(name).with_extension("pcap"));
        let differences: Vec<_> =
            differences(&packets).iter().map(|(packet, passes)| (*passes, &packet.what)).collect();
        assert_eq!(differences.len(), differing, "{name}: {differences:#?}");
        assert!(differences.iter().all(|(passes, what)| !passes && what.contains(") 0x4 ")));
        let row = format!("| {name}.pcap | {} | {differing} |", packets.len());
        assert!(PAGE.contains(&row), "it is not on the page: {row}");
    }
}
