//! What a P4 switch is given, with mistakes in it that reading or the proof must find.

use compiler::partition::Trust;

use crate::mistakes::{CHAINS, Mistake, are_found, change, replace};

const PROGRAM: &str = "catena.p4";
const ENTRIES: &str = "entries.json";

const MISTAKES: &[Mistake] = &[
    ("a priority is off by one", ENTRIES, |line| {
        let (before, rest) = line.split_once("\"priority\":")?;
        let end = rest.find(',')?;
        let priority: u32 = rest[..end].parse().ok()?;
        Some(format!("{before}\"priority\":{}{}", priority + 1, &rest[end..]))
    }),
    ("a prefix is a bit short", ENTRIES, |line| {
        let (before, rest) = line.split_once("\"prefix_len\":")?;
        let end = rest.find('}')?;
        let length: u32 = rest[..end].parse().ok()?;
        Some(format!("{before}\"prefix_len\":{}{}", length - 1, &rest[end..]))
    }),
    ("a mask is off by a bit", ENTRIES, |line| {
        let mask = change(line, "\"mask\":\"", |mask| mask & (mask - 1))?;
        change(&mask, "\"ternary\":{\"value\":\"", |value| value & !1)
    }),
    ("a number is another", ENTRIES, |line| {
        change(line, "\"exact\":{\"value\":\"", |value| value ^ 1)
    }),
    ("bytes are turned around", ENTRIES, |line| {
        change(line, "\"lpm\":{\"value\":\"", |value| (value as u32).swap_bytes().into())
    }),
    ("a range ends early", ENTRIES, |line| change(line, "\"high\":\"", |high| high - 1)),
    ("an entry leads to another table", ENTRIES, |line| {
        change(line, "{\"name\":\"at\",\"value\":\"", |table| table + 1)
    }),
    ("an entry is too many", ENTRIES, |line| line.ends_with(',').then(|| format!("{line}{line}"))),
    ("an entry is lost", ENTRIES, |line| {
        (line.contains("Ingress.r") && line.ends_with(',')).then(String::new)
    }),
    ("a packet is dropped", ENTRIES, |line| replace(line, "Ingress.leave", "Ingress.discard")),
    ("the port is another", ENTRIES, |line| {
        change(line, "{\"name\":\"port\",\"value\":\"", |port| if port == 1 { 2 } else { 1 })
    }),
    ("commands say something else", "commands.txt", |line| {
        change(line, "=> ", |number| number ^ 1)
    }),
    ("a command is lost", "commands.txt", |line| line.starts_with("table_add").then(String::new)),
    ("a guard is lost", PROGRAM, |line| {
        let is_guard = line.contains("<= standard_metadata.packet_length) {");
        is_guard.then(|| "if (16w1 == 16w1) {".to_string())
    }),
    ("arms are swapped", PROGRAM, |line| {
        let when = line.trim_start().strip_prefix("if (")?.strip_suffix(") {")?;
        Some(format!("if (!({when})) {{"))
    }),
    ("a wrong checksum is right", PROGRAM, |line| {
        replace(line, "checksum_error == 1w0", "checksum_error == 1w1")
    }),
    ("a checksum covers less", PROGRAM, |line| {
        replace(line, ", hdr.ipv4.src, hdr.ipv4.dst }", " }")
    }),
    ("0 stands for 0xffff", PROGRAM, |line| {
        replace(line, " = (~sum0[15:0])", " = (~(sum0[15:0] + 16w1))")
    }),
    ("a carry is lost", PROGRAM, |line| replace(line, "+ (sum0 >> 16)", "+ (sum0 >> 17)")),
    ("time to live stays", PROGRAM, |line| {
        replace(line, "hdr.ipv4.ttl = (hdr.ipv4.ttl - ", "meta.arm = (16w9 - ")
            .map(|line| line.replace("8w", "16w"))
    }),
    ("time to live is counted down once more", PROGRAM, |line| {
        replace(
            line,
            "hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w",
            "hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w1 - 8w",
        )
    }),
    ("addresses are exchanged", PROGRAM, |line| {
        replace(line, "hdr.ethernet.dst = ", "hdr.ethernet.src = ")
    }),
    ("a tag is not taken off", PROGRAM, |line| replace(line, "hdr.vlan.setInvalid();", "")),
    ("a tag is not put on", PROGRAM, |line| replace(line, "hdr.tag.setValid();", "")),
    ("a tag is of another type", PROGRAM, |line| replace(line, "= 16w0x88a8;", "= 16w0x8100;")),
    ("a tag is used for another place", PROGRAM, |line| {
        replace(line, "hdr.tag.vid = place;", "hdr.tag.vid = 12w1;")
    }),
    ("headers leave in another order", PROGRAM, |line| {
        let is_first = line.contains("packet.emit(hdr.ethernet)");
        is_first.then(|| "packet.emit(hdr.ipv4);".to_string())
    }),
    ("the parser takes another type", PROGRAM, |line| {
        replace(line, "16w0x800: parse_ipv4", "16w0x806: parse_ipv4")
    }),
    ("a packet is counted as another", PROGRAM, |line| {
        replace(line, "count((bit<32>)meta.class)", "count((bit<32>)meta.class + 32w1)")
    }),
    ("the end is not cut", PROGRAM, |line| {
        line.trim_start().starts_with("truncate").then(String::new)
    }),
    ("a field is too wide", PROGRAM, |line| replace(line, "bit<8> ttl;", "bit<16> ttl;")),
    ("the return path leads elsewhere", PROGRAM, |line| {
        replace(
            line,
            "hdr.ethernet.ether_type = hdr.tag.ether_type;",
            "hdr.ethernet.ether_type = 16w0x800;",
        )
    }),
];

/// Those of checksums, where the parser takes words off and the deparser adds those that leave.
const OF_SUMS: &[Mistake] = &[
    ("a checksum is not taken off", PROGRAM, |line| {
        replace(line, ".subtract({ hdr.ipv4.checksum, ", ".subtract({ ")
    }),
    ("a word is not taken off", PROGRAM, |line| {
        let line = line.contains(".subtract({").then_some(line)?;
        replace(line, ", hdr.ipv4.src }", " }").or_else(|| replace(line, "hdr.ipv4.src", ""))
    }),
    ("a word is not added", PROGRAM, |line| {
        replace(line, ".update({ hdr.ipv4.src, ", ".update({ ")
    }),
    ("what is left is not added", PROGRAM, |line| replace(line, "meta.ipv4_rest, ", "")),
    ("what is left is that of another", PROGRAM, |line| {
        replace(line, "meta.tcp_rest, meta", "meta.ipv4_rest, meta")
    }),
    ("something else is added", ENTRIES, |line| change(line, "_add\",\"value\":\"", |add| add ^ 1)),
    ("0 is added in the place of 0xffff", ENTRIES, |line| {
        change(line, "_add\",\"value\":\"", |_| 0)
    }),
    ("an update is left out", PROGRAM, |line| line.contains("_set = 1w1;").then(String::new)),
    ("an update is made where it was not wanted", PROGRAM, |line| {
        replace(line, "_set == 1w1) {", "_set == 1w0) {")
    }),
    ("0xffff stands for 0", PROGRAM, |line| replace(line, "_add }, false)", "_add }, true)")),
    ("UDP's checksum is none", PROGRAM, |line| replace(line, "_add }, true)", "_add }, false)")),
    ("headers behind it are taken off, too", PROGRAM, |line| {
        let early = "ipv4_rest.subtract_all_and_deposit(meta.ipv4_rest);";
        line.contains("ipv4_rest.subtract({").then(|| format!("{line} {early}"))
    }),
    ("a checksum is updated when it has left", PROGRAM, |line| {
        line.contains("if (meta.ipv4_set").then(|| format!("packet.emit(hdr.ethernet); {line}"))
    }),
    ("time to live is counted down once more", PROGRAM, |line| {
        replace(
            line,
            "hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w",
            "hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w1 - 8w",
        )
    }),
];

#[test]
fn mistakes_in_checksums_of_tna_are_found() {
    are_found("p4 tna", &Trust::ALL.map(|of| of.1), &["p4/nat"], OF_SUMS, "commands.txt");
}

#[test]
fn mistakes_in_p4_are_found() {
    // Commands that say something else would give entries away.
    are_found("p4", &[], CHAINS, MISTAKES, "commands.txt");
}
