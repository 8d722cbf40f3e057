//! The text of the P4 program.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use net::wire::{ether_type, ip_protocol};

use super::super::Arch;
use super::checksum::{self, Sums};
use super::pipeline::{CLASS, Call, Pipeline, Statement, Table};
use crate::Device;
use crate::headers::Instance;

/// Text that is written line by line.
struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, text: &str) {
        let opens = text.ends_with('{');
        if text.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        if !text.is_empty() {
            // A string takes whatever is written.
            let _ = write!(self.out, "{:1$}{text}", "", 4 * self.depth);
        }
        self.out.push('\n');
        if opens {
            self.depth += 1;
        }
    }

    fn lines(&mut self, all: &[&str]) {
        all.iter().for_each(|line| self.line(line));
    }
}

pub(super) fn program(arch: Arch, pipeline: &Pipeline, device: &Device<'_>) -> String {
    let mut text = Text { out: String::new(), depth: 0 };
    let headers = pipeline.extracted();
    let compile = match arch {
        Arch::V1model => "// Compile with p4c-bm2-ss, or check with p4test.",
        Arch::Tna => "// Compile with p4c --target tofino --arch tna.",
    };
    text.line(compile);
    text.line("// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.");
    text.line("#include <core.p4>");
    text.line(match arch {
        Arch::V1model => "#include <v1model.p4>",
        Arch::Tna => "#include <tna.p4>",
    });
    text.line("");
    text.line("// The port towards the cores");
    text.line(&format!("const bit<9> CORES = 9w{:#x};", device.cores));
    text.line("");
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for header in &headers {
        if kinds.insert(header.kind()) {
            text.line(&format!("header {} {{", header.kind()));
            for (field, width) in header.fields() {
                text.line(&format!("bit<{width}> {field};"));
            }
            text.line("}");
            text.line("");
        }
    }
    text.line("struct headers_t {");
    for header in &headers {
        text.line(&format!("{} {};", header.kind(), header.name()));
    }
    text.lines(&["}", "", "struct metadata_t {"]);
    for (name, width) in &pipeline.metadata {
        text.line(&format!("bit<{width}> {name};"));
    }
    if pipeline.verifies {
        text.line("bit<16> zero;");
    }
    text.lines(&["}", ""]);
    parser(&mut text, arch, pipeline, &headers, classes(device));
    if arch == Arch::V1model {
        verify(&mut text, pipeline);
    }
    ingress(&mut text, arch, pipeline, device);
    if arch == Arch::V1model {
        text.lines(&[
            "control Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
            "apply {",
            "}",
            "}",
            "",
            "control Update(inout headers_t hdr, inout metadata_t meta) {",
            "apply {",
            "}",
            "}",
            "",
        ]);
    }
    text.line(match arch {
        Arch::V1model => "control Deparse(packet_out packet, in headers_t hdr) {",
        Arch::Tna => "control Deparse(packet_out packet, inout headers_t hdr, in metadata_t meta, in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {",
    });
    for header in pipeline.sums.keys() {
        text.line(&format!("Checksum() {}_sum;", header.name()));
    }
    text.line("apply {");
    update(&mut text, &pipeline.sums);
    for header in &headers {
        text.line(&format!("packet.emit(hdr.{});", header.name()));
    }
    text.lines(&["}", "}", ""]);
    match arch {
        Arch::V1model => text.line("V1Switch(Parse(), Verify(), Ingress(), Egress(), Update(), Deparse()) main;"),
        Arch::Tna => text.lines(&[
            "struct egress_headers_t {",
            "}",
            "",
            "struct egress_metadata_t {",
            "}",
            "",
            "parser EgressParse(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {",
            "state start {",
            "packet.extract(eg_intr_md);",
            "transition accept;",
            "}",
            "}",
            "",
            "control Egress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md, in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md, inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {",
            "apply {",
            "}",
            "}",
            "",
            "control EgressDeparse(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta, in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {",
            "apply {",
            "}",
            "}",
            "",
            "Pipeline(Parse(), Ingress(), Deparse(), EgressParse(), Egress(), EgressDeparse()) pipe;",
            "Switch(pipe) main;",
        ]),
    }
    text.out
}

fn parser(
    text: &mut Text,
    arch: Arch,
    pipeline: &Pipeline,
    headers: &BTreeSet<Instance>,
    classes: usize,
) {
    match arch {
        Arch::V1model => text.lines(&[
            "parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
            "state start {",
        ]),
        Arch::Tna => {
            text.line("parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {");
            for header in pipeline.sums.keys() {
                text.line(&format!("Checksum() {}_rest;", header.name()));
            }
            text.lines(&[
                "state start {",
                "packet.extract(ig_intr_md);",
                "packet.advance(PORT_METADATA_SIZE);",
            ]);
        }
    }
    let is_left = |name: &str| {
        let rest = |header: &Instance| checksum::metadata(*header)[0].0 == name;
        pipeline.sums.keys().any(rest)
    };
    for (name, width) in pipeline.metadata.iter().filter(|(name, _)| !is_left(name)) {
        let value = if name == CLASS { classes } else { 0 };
        text.line(&format!("meta.{name} = {width}w{value:#x};"));
    }
    if pipeline.verifies {
        text.line("meta.zero = 16w0;");
    }
    text.lines(&[
        &format!("transition select({}) {{", arch.ingress()),
        "CORES: from_cores;",
        "default: parse_ethernet;",
        "}",
        "}",
        "state from_cores {",
        "packet.extract(hdr.ethernet);",
        "transition select(hdr.ethernet.ether_type) {",
        &format!("16w{:#x}: parse_tag;", ether_type::QINQ),
        "default: accept;",
        "}",
        "}",
        "state parse_tag {",
        "packet.extract(hdr.tag);",
        "transition accept;",
        "}",
    ]);
    let has = |instance: Instance| headers.contains(&instance);
    let networks = [
        (Instance::Arp, ether_type::ARP),
        (Instance::Ipv4, ether_type::IPV4),
        (Instance::Ipv6, ether_type::IPV6),
    ];
    // A Tofino drops a frame that ends before a header that it extracts: none of these ends behind its 60 bytes.
    let is_bare = arch == Arch::Tna;
    let select = |of: Instance, tags: Option<(&BTreeSet<u128>, &str)>| {
        let mut cases: Vec<String> = Vec::new();
        if let Some((types, state)) = tags {
            cases.extend(types.iter().map(|of| format!("16w{of:#x}: {state};")));
        }
        let is_near =
            |network: Instance| of == Instance::Ethernet || network != Instance::Ipv6 || !is_bare;
        let networks = networks.iter().filter(|(network, _)| has(*network) && is_near(*network));
        cases.extend(
            networks.map(|(instance, of)| format!("16w{of:#x}: parse_{};", instance.name())),
        );
        cases
    };
    let first = (&pipeline.tags[0], "parse_vlan");
    let second = (&pipeline.tags[1], "parse_inner_vlan");
    let sums = &pipeline.sums;
    let by_type = [
        (Instance::Ethernet, select(Instance::Ethernet, Some(first))),
        (Instance::Vlan, select(Instance::Vlan, Some(second))),
        (Instance::InnerVlan, select(Instance::InnerVlan, None)),
    ];
    for (instance, cases) in by_type {
        if has(instance) {
            state(text, sums, instance, ("ether_type", &cases, "accept"));
        }
    }
    if has(Instance::Arp) {
        state(text, sums, Instance::Arp, ("", &[], "accept"));
    }
    let with_transport = has(Instance::Transport);
    // Headers that are extracted behind what is deposited would be taken off, too: it is deposited where all are.
    let last = match sums.contains_key(&Instance::Ipv4) {
        true => "parse_rest",
        false => "accept",
    };
    if has(Instance::Ipv4) {
        let cases: Vec<String> =
            with_transport.then(|| "4w5: parse_transport4;".into()).into_iter().collect();
        state(text, sums, Instance::Ipv4, ("ihl", &cases, last));
    }
    let numbers = [
        (Instance::Tcp, ip_protocol::TCP, ip_protocol::TCP),
        (Instance::Udp, ip_protocol::UDP, ip_protocol::UDP),
        (Instance::Icmp, ip_protocol::ICMP, ip_protocol::ICMPV6),
    ];
    if has(Instance::Ipv6) {
        let cases = numbers.iter().filter(|_| with_transport && !is_bare);
        let cases: Vec<String> =
            cases.map(|(_, _, of)| format!("8w{of:#x}: parse_transport6;")).collect();
        state(text, sums, Instance::Ipv6, ("next_header", &cases, "accept"));
    }
    for (network, number, field) in
        [(Instance::Ipv4, "4", "protocol"), (Instance::Ipv6, "6", "next_header")]
    {
        if !with_transport || !has(network) || network == Instance::Ipv6 && is_bare {
            continue;
        }
        text.line(&format!("state parse_transport{number} {{"));
        text.line("packet.extract(hdr.transport);");
        take_off(text, sums, Instance::Transport);
        let cases: Vec<String> = numbers
            .iter()
            .filter(|(instance, ..)| has(*instance))
            .map(|(instance, of, of6)| {
                let of = if network == Instance::Ipv4 { of } else { of6 };
                format!("8w{of:#x}: parse_{};", instance.name())
            })
            .collect();
        let last = if network == Instance::Ipv4 { last } else { "accept" };
        transition(text, &format!("hdr.{}.{field}", network.name()), &cases, last);
        text.line("}");
    }
    for instance in [Instance::Tcp, Instance::Udp, Instance::Icmp] {
        if has(instance) {
            state(text, sums, instance, ("", &[], last));
        }
    }
    if sums.contains_key(&Instance::Ipv4) {
        text.line("state parse_rest {");
        deposit(text, Instance::Ipv4);
        text.lines(&["transition accept;", "}"]);
    }
    text.lines(&["}", ""]);
}

/// A state that extracts a header; `(field, cases, otherwise)` says where it leads by which field.
fn state(
    text: &mut Text,
    sums: &Sums,
    of: Instance,
    (field, cases, otherwise): (&str, &[String], &str),
) {
    text.line(&format!("state parse_{} {{", of.name()));
    text.line(&format!("packet.extract(hdr.{});", of.name()));
    take_off(text, sums, of);
    if matches!(of, Instance::Tcp | Instance::Udp) && sums.contains_key(&of) {
        deposit(text, of);
    }
    transition(text, &format!("hdr.{}.{field}", of.name()), cases, otherwise);
    text.line("}");
}

/// Takes words of a header off the checksums, and a checksum that lies in it.
fn take_off(text: &mut Text, sums: &Sums, of: Instance) {
    for (header, words) in sums {
        let mut words = words.clone();
        words.insert(checksum::own_word(*header));
        let fields = checksum::fields(of, &words);
        if !fields.is_empty() {
            let fields = fields.join(", ");
            text.line(&format!("{}_rest.subtract({{ {fields} }});", header.name()));
        }
    }
}

fn deposit(text: &mut Text, of: Instance) {
    let [(rest, _), ..] = checksum::metadata(of);
    text.line(&format!("{rest}.subtract_all_and_deposit(meta.{rest});"));
}

fn transition(text: &mut Text, on: &str, cases: &[String], otherwise: &str) {
    if cases.is_empty() {
        text.line(&format!("transition {otherwise};"));
        return;
    }
    text.line(&format!("transition select({on}) {{"));
    cases.iter().for_each(|case| text.line(case));
    text.lines(&[&format!("default: {otherwise};"), "}"]);
}

/// Adds the words that leave to what is left of checksums, where they change.
fn update(text: &mut Text, sums: &Sums) {
    for (header, words) in sums {
        let name = header.name();
        let [rest, add, set] = checksum::metadata(*header).map(|of| of.0);
        let mut all: Vec<String> =
            Instance::ALL.iter().flat_map(|of| checksum::fields(*of, words)).collect();
        all.extend([rest, add].map(|of| format!("meta.{of}")));
        // UDP's 0 says that there is none.
        let zero = *header == Instance::Udp;
        text.line(&format!("if (meta.{set} == 1w1) {{"));
        let all = all.join(", ");
        text.line(&format!("hdr.{name}.checksum = {name}_sum.update({{ {all} }}, {zero});"));
        text.line("}");
    }
}

/// The sum over an IPv4 header with its checksum is right if its complement is 0; so 0xffff in the place of 0 is right, too.
fn verify(text: &mut Text, pipeline: &Pipeline) {
    text.lines(&["control Verify(inout headers_t hdr, inout metadata_t meta) {", "apply {"]);
    if pipeline.verifies {
        let fields = Instance::Ipv4.fields().iter().map(|(field, _)| format!("hdr.ipv4.{field}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        text.line(&format!(
            "verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w5, {{ {fields} }}, meta.zero, HashAlgorithm.csum16);"
        ));
    }
    text.lines(&["}", "}", ""]);
}

fn ingress(text: &mut Text, arch: Arch, pipeline: &Pipeline, device: &Device<'_>) {
    text.line(match arch {
        Arch::V1model => "control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
        Arch::Tna => "control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md, in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {",
    });
    let classes = classes(device) + 1;
    text.line("// Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them");
    text.line(&match arch {
        Arch::V1model => format!("counter({classes}, CounterType.packets_and_bytes) classes;"),
        Arch::Tna => format!(
            "Counter<bit<64>, bit<16>>({classes}, CounterType_t.PACKETS_AND_BYTES) classes;"
        ),
    });
    for (name, width) in &pipeline.variables {
        text.line(&format!("bit<{width}> {name};"));
    }
    text.line("");
    for action in &pipeline.actions {
        let parameters: Vec<String> =
            action.parameters.iter().map(|(name, width)| format!("bit<{width}> {name}")).collect();
        text.line(&format!("action {}({}) {{", action.name, parameters.join(", ")));
        action.body.iter().for_each(|line| text.line(line));
        text.line("}");
    }
    // Frames from the cores: their tag says by which port they leave.
    text.line("action back(bit<9> port) {");
    text.line("hdr.ethernet.ether_type = hdr.tag.ether_type;");
    text.line("hdr.tag.setInvalid();");
    text.line(&format!("{} = port;", arch.egress()));
    text.lines(&["}", "action lost() {"]);
    text.line(match arch {
        Arch::V1model => "mark_to_drop(standard_metadata);",
        Arch::Tna => "ig_dprsr_md.drop_ctl = 3w1;",
    });
    text.lines(&["}", "action count() {"]);
    text.line(match arch {
        Arch::V1model => "classes.count((bit<32>)meta.class);",
        Arch::Tna => "classes.count(meta.class);",
    });
    text.lines(&[
        "}",
        "",
        "// Frames from the cores leave by the port that their tag names",
        "table ports {",
        "key = {",
    ]);
    text.lines(&[
        "hdr.tag.vid: exact;",
        "}",
        "actions = {",
        "back;",
        "lost;",
        "}",
        "default_action = lost();",
    ]);
    text.lines(&[&format!("size = {};", device.egress.len().max(1)), "}"]);
    for table in &pipeline.tables {
        write_table(text, pipeline, table);
    }
    text.lines(&["", "apply {"]);
    let is = |port: &u32| format!("{} == 9w{port:#x}", arch.ingress());
    text.line(&format!("if ({} == CORES) {{", arch.ingress()));
    text.lines(&["if (hdr.tag.isValid()) {", "ports.apply();", "} else {", "lost();", "}"]);
    for (ports, statements) in &pipeline.segments {
        let when: Vec<String> = ports.iter().map(is).collect();
        text.line(&format!("}} else if ({}) {{", when.join(" || ")));
        block(text, pipeline, statements);
    }
    text.lines(&["} else {", "lost();", "}", "count();", "}", "}", ""]);
}

/// Numbers that exits may have.
fn classes(device: &Device<'_>) -> usize {
    device.segments.iter().map(|segment| segment.program.steps.len()).sum()
}

fn write_table(text: &mut Text, pipeline: &Pipeline, table: &Table) {
    text.line("");
    text.line(&format!("// {}", table.origin));
    text.line(&format!("table {} {{", table.name));
    text.line("key = {");
    for key in &table.keys {
        text.line(&format!("{}: {};", key.text, key.kind.name()));
    }
    text.lines(&["}", "actions = {"]);
    for action in table.actions() {
        text.line(&format!("{};", pipeline.actions[action].name));
    }
    text.line("}");
    text.line(&format!("default_action = {};", call(pipeline, &table.otherwise)));
    text.line(&format!("size = {};", table.entries.len()));
    text.line("}");
}

fn call(pipeline: &Pipeline, call: &Call) -> String {
    let action = &pipeline.actions[call.action];
    let arguments = action.parameters.iter().zip(&call.arguments);
    let arguments: Vec<String> =
        arguments.map(|((_, width), value)| format!("{width}w{value:#x}")).collect();
    format!("{}({})", action.name, arguments.join(", "))
}

fn block(text: &mut Text, pipeline: &Pipeline, statements: &[Statement]) {
    for statement in statements {
        match statement {
            Statement::Step(_, of) => text.line(&format!("// {of}")),
            Statement::If(when, yes, no) => {
                text.line(&format!("if ({}) {{", when.text));
                block(text, pipeline, yes);
                if !no.is_empty() {
                    text.line("} else {");
                    block(text, pipeline, no);
                }
                text.line("}");
            }
            Statement::Apply(table) => {
                text.line(&format!("{}.apply();", pipeline.tables[*table].name))
            }
            Statement::Call(of) => text.line(&format!("{};", call(pipeline, of))),
            Statement::Arms(arms) => {
                for (at, (number, statements)) in arms.iter().enumerate() {
                    let before = if at > 0 { "} else " } else { "" };
                    text.line(&format!("{before}if (meta.at == 16w{number:#x}) {{"));
                    block(text, pipeline, statements);
                }
                text.line("}");
            }
            Statement::Set(name, value, _) => text.line(&format!("{name} = {value};")),
        }
    }
}
