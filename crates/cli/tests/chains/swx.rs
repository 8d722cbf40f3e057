//! What SWX is given, with mistakes in it that reading or the proof must find.

#[cfg(feature = "dpdk")]
mod real;

use compiler::partition::Trust;

use crate::mistakes::{CHAINS, Mistake, are_found, change, replace};

const SPEC: &str = ".spec";
const ENTRIES: &str = ".txt";

const MISTAKES: &[Mistake] = &[
    ("an entry comes later", ENTRIES, |line| {
        let (before, rest) = line.split_once("priority ")?;
        let (number, behind) = rest.split_once(' ')?;
        let number: u32 = number.parse().ok()?;
        Some(format!("{before}priority {} {behind}", number + 100))
    }),
    ("two entries come first", ENTRIES, |line| replace(line, "priority 1 ", "priority 0 ")),
    ("a mask is off by a bit", ENTRIES, |line| {
        let (before, rest) = line.split_once('/')?;
        let mask = change(rest, "", |mask| mask & mask.saturating_sub(1))?;
        Some(format!("{before}/{mask}"))
    }),
    ("a number is another", ENTRIES, |line| change(line, "match ", |value| value ^ 1)),
    ("bytes are turned around", ENTRIES, |line| {
        change(line, "match ", |value| (value as u32).swap_bytes().into())
    }),
    ("an entry leads to another arm", ENTRIES, |line| change(line, " arm ", |arm| arm + 1)),
    ("an entry is too many", ENTRIES, |line| {
        line.starts_with("match").then(|| format!("{line}\n{line}"))
    }),
    ("an entry is lost", ENTRIES, |line| line.starts_with("match").then(String::new)),
    ("a packet is dropped", SPEC, |line| replace(line, "tx m.port_out", "drop")),
    ("the port is another", SPEC, |line| change(line, "mov m.port_out ", |port| port ^ 1)),
    ("a branch is turned around", SPEC, |line| replace(line, "jmpeq", "jmpneq")),
    ("a bound is off by one", SPEC, |line| {
        let from = line.find("jmplt ")?;
        let number = line.rfind(" 0x").filter(|number| *number > from)?;
        change(&line[number..], " ", |bound| bound + 1)
            .map(|end| format!("{}{end}", &line[..number]))
    }),
    ("another number is compared", SPEC, |line| {
        line.find("jmpeq ")?;
        let number = line.rfind(" 0x")?;
        change(&line[number..], " ", |value| value ^ 1)
            .map(|end| format!("{}{end}", &line[..number]))
    }),
    ("a guard is lost", SPEC, |line| {
        line.contains("jmpneq").then(|| {
            line.split(" : ")
                .next()
                .filter(|of| *of != line)
                .map_or_else(String::new, |label| format!("{label} : mov m.arm 0x0"))
        })
    }),
    ("a checksum covers less", SPEC, |line| replace(line, "mov m.t1 h.ipv4.src", "mov m.t1 0x0")),
    ("a wrong checksum is right", SPEC, |line| {
        change(line, "m.t0 0xffff", |_| 0).or_else(|| replace(line, "m.t0 0xffff", "m.t0 0xfffe"))
    }),
    ("a carry is lost", SPEC, |line| replace(line, "shr m.t1 0x10", "shr m.t1 0x11")),
    ("a carry is lost behind others", SPEC, |line| replace(line, "shr m.t2 0x10", "shr m.t2 0x11")),
    ("a checksum is no complement", SPEC, |line| replace(line, "xor m.t1 0xffff", "xor m.t1 0x0")),
    ("time to live is counted down once more", SPEC, |line| change(line, "sub m.t0 ", |by| by + 1)),
    ("time to live stays", SPEC, |line| replace(line, "mov h.ipv4.ttl", "mov m.arm")),
    ("addresses are exchanged", SPEC, |line| {
        replace(line, "mov h.ethernet.dst ", "mov h.ethernet.src ")
    }),
    ("a tag is not taken off", SPEC, |line| replace(line, "invalidate h.vlan", "emit h.vlan")),
    ("a tag is not put on", SPEC, |line| replace(line, "validate h.tag", "invalidate h.tag")),
    ("a tag is of another type", SPEC, |line| {
        replace(line, "mov h.ethernet.ether_type 0x88a8", "mov h.ethernet.ether_type 0x8100")
    }),
    ("a tag is used for another place", SPEC, |line| {
        replace(line, "mov h.tag.pcp_dei_vid m.t0", "mov h.tag.pcp_dei_vid 0x1")
    }),
    ("a header does not leave", SPEC, |line| replace(line, "emit h.ipv4", "mov m.arm 0x0")),
    ("headers leave in another order", SPEC, |line| {
        line.contains("emit h.ethernet").then(|| format!("\temit h.ipv4\n{line}"))
    }),
    ("the parser takes another type", SPEC, |line| {
        replace(line, "ether_type 0x800", "ether_type 0x806")
    }),
    ("a packet is counted as another", SPEC, |line| {
        change(line, "regadd classes ", |number| number + 1)
    }),
    ("a packet is not counted", SPEC, |line| {
        let (label, _) = line.split_once("regadd")?;
        Some(format!("{label}mov m.arm 0x0"))
    }),
    ("a packet is counted twice", SPEC, |line| {
        line.contains("regadd").then(|| format!("{line}\n\tregadd classes 0x0 0x1"))
    }),
    ("a field is too wide", SPEC, |line| replace(line, "bit<8> ttl", "bit<16> ttl")),
    ("a key is another", SPEC, |line| replace(line, "h.ipv4.dst", "h.ipv4.src")),
    ("the return path leads elsewhere", SPEC, |line| {
        replace(
            line,
            "mov h.ethernet.ether_type h.tag.ether_type",
            "mov h.ethernet.ether_type 0x800",
        )
    }),
    ("a jump leads back", SPEC, |line| {
        let to = line.find("jmp L")?;
        Some(format!("{}jmp L_ABOVE", &line[..to]))
    }),
];

#[test]
fn mistakes_in_swx_are_found() {
    are_found("swx", &Trust::ALL.map(|of| of.1), CHAINS, MISTAKES, "catena.cli");
}
