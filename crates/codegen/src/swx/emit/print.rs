//! The specification as text, the entries of its tables, and commands that load them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ir::IntervalSet;
use net::wire::{ether_type, ip_protocol};

use super::super::change::ROOM;
use super::super::{CLASSES, COMMANDS, SPEC, entries_of};
use super::code::{Code, Label, Line, containers};
use super::exit;
use super::number::Numbers;
use super::steps::Builder;
use super::table::Table;
use crate::headers::Instance;
use crate::{Device, File, Lack};

pub(super) fn files(mut builder: Builder<'_>, device: &Device<'_>) -> Result<Vec<File>, Lack> {
    let mut lines = begin(&mut builder, device)?;
    lines.append(&mut builder.code.lines);
    lines.append(&mut end(&mut builder, device)?);
    let text = specification(&builder, device, &lines)?;
    let file = |name: String, text: String| File { name, contents: text.into_bytes() };
    let mut files = vec![file(SPEC.into(), text), file(COMMANDS.into(), commands(&builder.tables))];
    for table in &builder.tables {
        files.push(file(entries_of(&table.name), entries(table, &builder.actions)));
        if table.is_long() {
            let text = "# What is added here comes before all else\n";
            files.push(file(entries_of(&table.front().name), text.into()));
        }
    }
    Ok(files)
}

/// Numbers without a packet's.
fn bare<'c>(code: &'c mut Code, program: &'c ir::Program) -> Numbers<'c> {
    Numbers { program, placed: &[], facts: None, code, read: BTreeSet::new() }
}

/// Receives a packet, finds its headers, and leads to the segment of its port.
fn begin(builder: &mut Builder<'_>, device: &Device<'_>) -> Result<Vec<Line>, Lack> {
    let Some(first) = device.segments.first() else { return Ok(Vec::new()) };
    let body = std::mem::take(&mut builder.code.lines);
    let (back, parsed, lost) = (builder.code.label(), builder.code.label(), builder.lost);
    let code = &mut builder.code;
    if [Instance::Tcp, Instance::Udp, Instance::Icmp].iter().any(|of| code.headers.contains(of)) {
        code.headers.insert(Instance::Transport);
    }
    let tags = [Instance::Vlan, Instance::InnerVlan].into_iter().zip(&builder.tags);
    code.headers.extend(tags.filter(|(_, types)| !types.is_empty()).map(|(of, _)| of));
    code.headers.insert(Instance::Tag);
    code.run("rx m.port_in".into());
    code.jump("jmpeq", back, format!("m.port_in {:#x}", device.cores));
    parser(code, &builder.tags, parsed);
    code.place(parsed);
    let sets: Vec<(IntervalSet, Label)> = builder
        .starts
        .iter()
        .flat_map(|(ports, start)| {
            ports.iter().map(|port| (IntervalSet::single((*port).into()), *start))
        })
        .collect();
    let to = code.number(0)?;
    code.run(format!("mov {to} m.port_in"));
    let cases: Vec<_> = sets.iter().map(|(set, to)| (set, *to)).collect();
    bare(code, &first.program).decide(32, &cases, lost)?;
    // Frames from the cores: their tag says by which port they leave.
    code.place(back);
    let out = code.label();
    code.lines
        .push(Line::Comment("Frames from the cores leave by the port that their tag names".into()));
    code.run("extract h.ethernet".into());
    code.jump("jmpneq", lost, format!("h.ethernet.ether_type {:#x}", ether_type::QINQ));
    code.run("extract h.tag".into());
    code.run(format!("mov {to} h.tag.pcp_dei_vid"));
    code.run(format!("and {to} 0xfff"));
    code.run(format!("mov m.port_out {to}"));
    let ports: BTreeSet<u128> = device.egress.values().map(|port| u128::from(*port)).collect();
    let ports = ports.into_iter().map(IntervalSet::single).collect::<Vec<_>>();
    let ports = IntervalSet::union_of(&ports);
    bare(code, &first.program).decide(12, &[(&ports, out)], lost)?;
    code.place(out);
    code.run("mov h.ethernet.ether_type h.tag.ether_type".into());
    code.run("invalidate h.tag".into());
    code.go(builder.ends.send);
    Ok(std::mem::replace(&mut code.lines, body))
}

/// What comes behind all steps.
fn end(builder: &mut Builder<'_>, device: &Device<'_>) -> Result<Vec<Line>, Lack> {
    let Some(first) = device.segments.first() else { return Ok(Vec::new()) };
    builder.code.place(builder.lost);
    builder.code.run("drop".into());
    exit::ends(&mut bare(&mut builder.code, &first.program), &builder.ends, device.cores)?;
    Ok(std::mem::take(&mut builder.code.lines))
}

/// Extracts the headers that are used.
fn parser(code: &mut Code, tags: &[BTreeSet<u128>; 2], parsed: Label) {
    let headers = code.headers.clone();
    let labels: BTreeMap<Instance, Label> =
        headers.iter().map(|header| (*header, code.label())).collect();
    let networks = [
        (Instance::Arp, ether_type::ARP),
        (Instance::Ipv4, ether_type::IPV4),
        (Instance::Ipv6, ether_type::IPV6),
    ];
    let protocols = [
        (Instance::Tcp, ip_protocol::TCP, ip_protocol::TCP),
        (Instance::Udp, ip_protocol::UDP, ip_protocol::UDP),
        (Instance::Icmp, ip_protocol::ICMP, ip_protocol::ICMPV6),
    ];
    let transports: BTreeMap<Instance, Label> =
        [Instance::Ipv4, Instance::Ipv6].into_iter().map(|of| (of, code.label())).collect();
    let extract = |code: &mut Code, header: Instance| {
        code.place(labels[&header]);
        code.run(format!("extract h.{}", header.name()));
    };
    let types = |code: &mut Code, header: Instance, tags: Option<(&BTreeSet<u128>, Instance)>| {
        let of = format!("h.{}.ether_type", header.name());
        if let Some((types, tag)) = tags {
            for number in types {
                code.jump("jmpeq", labels[&tag], format!("{of} {number:#x}"));
            }
        }
        for (network, number) in networks.iter().filter(|(of, _)| headers.contains(of)) {
            code.jump("jmpeq", labels[network], format!("{of} {number:#x}"));
        }
        code.go(parsed);
    };
    extract(code, Instance::Ethernet);
    types(code, Instance::Ethernet, Some((&tags[0], Instance::Vlan)));
    if headers.contains(&Instance::Vlan) {
        extract(code, Instance::Vlan);
        types(code, Instance::Vlan, Some((&tags[1], Instance::InnerVlan)));
    }
    if headers.contains(&Instance::InnerVlan) {
        extract(code, Instance::InnerVlan);
        types(code, Instance::InnerVlan, None);
    }
    if headers.contains(&Instance::Arp) {
        extract(code, Instance::Arp);
        code.go(parsed);
    }
    let has_transport = headers.contains(&Instance::Transport);
    if headers.contains(&Instance::Ipv4) {
        extract(code, Instance::Ipv4);
        if has_transport {
            let length = code.number(0).unwrap_or_default();
            code.run(format!("mov {length} h.ipv4.version_ihl"));
            code.run(format!("and {length} 0xf"));
            code.jump("jmpeq", transports[&Instance::Ipv4], format!("{length} 0x5"));
        }
        code.go(parsed);
    }
    if headers.contains(&Instance::Ipv6) {
        extract(code, Instance::Ipv6);
        if has_transport {
            for (_, _, number) in protocols {
                let of = format!("h.ipv6.next_header {number:#x}");
                code.jump("jmpeq", transports[&Instance::Ipv6], of);
            }
        }
        code.go(parsed);
    }
    for (network, field) in [(Instance::Ipv4, "protocol"), (Instance::Ipv6, "next_header")] {
        if !has_transport || !headers.contains(&network) {
            continue;
        }
        code.place(transports[&network]);
        code.run("extract h.transport".into());
        for (of, four, six) in protocols.iter().filter(|(of, ..)| headers.contains(of)) {
            let number = if network == Instance::Ipv4 { four } else { six };
            let operands = format!("h.{}.{field} {number:#x}", network.name());
            code.jump("jmpeq", labels[of], operands);
        }
        code.go(parsed);
    }
    for header in [Instance::Tcp, Instance::Udp, Instance::Icmp] {
        if headers.contains(&header) {
            extract(code, header);
            code.go(parsed);
        }
    }
}

fn specification(
    builder: &Builder<'_>,
    device: &Device<'_>,
    lines: &[Line],
) -> Result<String, Lack> {
    let code = &builder.code;
    let mut text = String::from(
        "// For DPDK's SWX, 22.11: entries of tables are in a file each, catena.cli loads all.\n",
    );
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for header in code.headers.iter().filter(|header| kinds.insert(header.kind())) {
        let fields = containers(*header).into_iter().map(|of| (of.name, of.width));
        structure(&mut text, header.kind(), fields);
    }
    // The library writes eight bytes from wherever a field begins: behind a tag that is made, another header has room for them.
    let is_made = |header: &&Instance| matches!(header, Instance::Tag | Instance::Pushed);
    let (made, found): (Vec<&Instance>, Vec<&Instance>) = code.headers.iter().partition(is_made);
    for header in made.into_iter().chain(found) {
        let _ = writeln!(text, "header {} instanceof {}", header.name(), header.kind());
    }
    text.push('\n');
    structure(&mut text, "metadata_t", code.metadata()?.into_iter());
    text.push_str("metadata instanceof metadata_t\n\n");
    let classes: usize = device.segments.iter().map(|segment| segment.program.steps.len()).sum();
    text.push_str("// Packets of each exit, by its number\n");
    let size = classes.max(1).next_power_of_two();
    let _ = writeln!(text, "regarray {CLASSES} size {size:#x} initval 0\n");
    actions(&mut text, builder);
    for table in &builder.tables {
        if table.is_long() {
            write_table(&mut text, &table.front(), table);
        }
        write_table(&mut text, table, table);
    }
    text.push_str("apply {\n");
    instructions(&mut text, lines);
    text.push_str("}\n");
    Ok(text)
}

fn structure(text: &mut String, name: &str, fields: impl Iterator<Item = (String, u16)>) {
    let _ = writeln!(text, "struct {name} {{");
    for (field, width) in fields {
        let _ = writeln!(text, "\tbit<{width}> {field}");
    }
    text.push_str("}\n\n");
}

fn actions(text: &mut String, builder: &Builder<'_>) {
    if builder.tables.is_empty() {
        return;
    }
    let go = ("go".to_string(), Vec::new());
    let all = [go].into_iter().chain(builder.actions.clone());
    let used: BTreeSet<&str> = builder.tables.iter().flat_map(Table::actions).collect();
    for (name, kept) in all.filter(|(name, _)| used.contains(name.as_str())) {
        let fields = [("arm".to_string(), 32)].into_iter().chain(kept);
        let fields: Vec<(String, u16)> = fields.collect();
        structure(text, &format!("{name}_args_t"), fields.iter().cloned());
        let _ = writeln!(text, "action {name} args instanceof {name}_args_t {{");
        for (field, _) in &fields {
            let _ = writeln!(text, "\tmov m.{field} t.{field}");
        }
        text.push_str("\treturn\n}\n\n");
    }
    text.push_str("action otherwise args none {\n\tmov m.arm 0x0\n\treturn\n}\n\n");
}

/// A table with the actions of one.
fn write_table(text: &mut String, table: &Table, of: &Table) {
    for origin in &table.origins {
        let _ = writeln!(text, "// {origin}");
    }
    let _ = writeln!(text, "table {} {{\n\tkey {{", table.name);
    let kind = if table.is_exact { "exact" } else { "wildcard" };
    for key in &table.keys {
        let _ = writeln!(text, "\t\t{} {kind}", key.name);
    }
    text.push_str("\t}\n\n\tactions {\n");
    for action in of.actions() {
        let _ = writeln!(text, "\t\t{action}");
    }
    text.push_str("\t\totherwise\n\t}\n\n\tdefault_action otherwise args none const\n");
    let size = if table.entries.is_empty() { ROOM } else { 2 * table.entries.len() };
    let size = size.next_power_of_two();
    let _ = writeln!(text, "\tsize {size:#x}\n}}\n");
}

/// Leaves out jumps to what comes next, until there are none, and all labels of an instruction but the first. By which
/// label others are called, too.
fn shorten(lines: &[Line]) -> (Vec<&Line>, BTreeMap<Label, Label>) {
    let mut names: BTreeMap<Label, Label> = BTreeMap::new();
    let mut kept: Vec<&Line> = lines.iter().collect();
    loop {
        let count = kept.len();
        let mut first: Option<Label> = None;
        kept.retain(|line| match line {
            Line::Label(label) => match first {
                Some(first) => {
                    names.insert(*label, first);
                    false
                }
                None => {
                    first = Some(*label);
                    true
                }
            },
            Line::Comment(_) => true,
            Line::Do(_) | Line::Jump(..) => {
                first = None;
                true
            }
        });
        // From the end on: the label of what comes next.
        let mut next: Option<Label> = None;
        let mut shorter: Vec<&Line> = Vec::with_capacity(kept.len());
        for line in kept.into_iter().rev() {
            match line {
                Line::Jump("jmp", to, _) if next.is_some_and(|next| next == name(&names, *to)) => {
                    continue;
                }
                Line::Label(label) => next = Some(*label),
                Line::Comment(_) => {}
                Line::Do(_) | Line::Jump(..) => next = None,
            }
            shorter.push(line);
        }
        shorter.reverse();
        kept = shorter;
        if kept.len() == count {
            return (kept, names);
        }
    }
}

fn name(names: &BTreeMap<Label, Label>, mut label: Label) -> Label {
    while let Some(first) = names.get(&label) {
        label = *first;
    }
    label
}

/// Instructions, with a label each at most.
fn instructions(text: &mut String, lines: &[Line]) {
    let (kept, names) = shorten(lines);
    let name = |label: &Label| name(&names, *label);
    let used: BTreeSet<Label> = kept
        .iter()
        .filter_map(|line| if let Line::Jump(_, to, _) = line { Some(name(to)) } else { None })
        .collect();
    let mut label: Option<Label> = None;
    for line in kept {
        let instruction = match line {
            Line::Label(of) => {
                label = Some(*of).filter(|of| used.contains(of)).or(label);
                continue;
            }
            Line::Comment(of) => {
                let _ = writeln!(text, "\t// {of}");
                continue;
            }
            Line::Do(instruction) => instruction.clone(),
            Line::Jump(what, to, operands) => {
                format!("{what} L{} {operands}", name(to)).trim_end().to_string()
            }
        };
        match label.take() {
            Some(label) => {
                let _ = writeln!(text, "\tL{label} : {instruction}");
            }
            None => {
                let _ = writeln!(text, "\t{instruction}");
            }
        }
    }
}

/// A number as the library reads it: one of more than 64 bits has all its digits.
fn number(value: u128, width: u16) -> String {
    if width > 64 { format!("{value:#034x}") } else { format!("{value:#x}") }
}

fn entries(table: &Table, actions: &BTreeMap<String, Vec<(String, u16)>>) -> String {
    let mut text = String::new();
    let mut said = "";
    for (index, entry) in table.entries.iter().enumerate() {
        if entry.origin != said {
            said = &entry.origin;
            let _ = writeln!(text, "# {said}");
        }
        text.push_str("match");
        for ((value, mask), key) in entry.matches.iter().zip(&table.keys) {
            let value = number(*value, key.width);
            let _ = match table.is_exact {
                true => write!(text, " {value}"),
                false => write!(text, " {value}/{}", number(*mask, key.width)),
            };
        }
        if !table.is_exact {
            // 0 comes first.
            let _ = write!(text, " priority {index}");
        }
        let _ = write!(text, " action {}", entry.call.action);
        for (name, value) in &entry.call.arguments {
            let mut kept = actions.get(&entry.call.action).into_iter().flatten();
            let width = kept.find(|of| of.0 == *name).map_or(32, |of| of.1);
            let _ = write!(text, " {name} {}", number(*value, width));
        }
        text.push('\n');
    }
    text
}

/// Commands for the example that DPDK has of a program that runs pipelines.
fn commands(tables: &[Table]) -> String {
    let mut text = String::from(
        "; DPDK's example 'pipeline': put the ports into catena.io, and give it this file with -s.\n\
         pipeline codegen catena.spec catena.c\n\
         pipeline libbuild catena.c catena.so\n\
         pipeline CATENA build lib catena.so io catena.io numa 0\n",
    );
    for table in tables {
        let _ = writeln!(text, "pipeline CATENA table {0} add {0}.txt", table.name);
    }
    text.push_str("pipeline CATENA commit\n");
    text
}
