use std::sync::Arc;

use super::*;
use crate::field::{anno, meta};
use crate::graph::Port;
use crate::program::{Atom, End, Exit, Program, Step, StepId, Term, TermId, Write, Writes};
use crate::{Base, IntervalSet};

struct Bytes(Vec<u8>);

impl Evidence for Bytes {
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet> {
        let bit = |at: i32| {
            let byte = self.0.get(usize::try_from(at / 8).ok()?)?;
            Some(u128::from(byte >> (7 - at % 8) & 1))
        };
        let all = start..start + width as i32;
        let value = all.map(bit).try_fold(0, |value, bit| Some(value << 1 | bit?))?;
        Some(IntervalSet::single(value))
    }

    fn reaches(&self, end: i32) -> bool {
        end <= self.0.len() as i32
    }
}

/// The headers of a frame of those bytes and zeros behind, as `name@offset`.
fn headers(bytes: &[u8]) -> String {
    let mut data = bytes.to_vec();
    data.resize(data.len().max(200), 0);
    let layout = Layout::parse(&Bytes(data), Start { frame: Some(0), ..Start::default() });
    let all = layout.headers().iter().map(|h| format!("{}@{}", h.name(), h.offset));
    all.collect::<Vec<_>>().join(" ")
}

fn frame(ether_type: u16, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(behind);
    bytes
}

fn ipv4(protocol: u8, words: u8, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4 * usize::from(words)];
    (bytes[0], bytes[9]) = (0x40 | words, protocol);
    bytes.extend(behind);
    bytes
}

fn ipv6(next: u8, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    (bytes[0], bytes[6]) = (0x60, next);
    bytes.extend(behind);
    bytes
}

fn udp(port: u16, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend(port.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(behind);
    bytes
}

#[test]
fn bytes_say_which_headers_follow() {
    assert_eq!(headers(&frame(0x0806, &[])), "eth@0 arp@14");
    assert_eq!(headers(&frame(0x1234, &[])), "eth@0");
    assert_eq!(headers(&frame(0x0800, &ipv4(6, 5, &[]))), "eth@0 ip@14 tcp@34");
    assert_eq!(headers(&frame(0x0800, &ipv4(1, 7, &[]))), "eth@0 ip@14 icmp@42");
    let tagged = [&[0, 5, 0x81, 0, 0, 6, 0x08, 0][..], &ipv4(17, 5, &[])].concat();
    assert_eq!(headers(&frame(0x88a8, &tagged)), "eth@0 vlan@14 vlan2@18 ip@22 udp@42");
    // Later fragments have no ports.
    let mut later = frame(0x0800, &ipv4(6, 5, &[]));
    later[21] = 1;
    assert_eq!(headers(&later), "eth@0 ip@14");
    let extended = ipv6(0, &[[44, 1].as_slice(), &[0; 14], &[6, 0, 0, 0, 0, 0, 0, 0]].concat());
    assert_eq!(headers(&frame(0x86dd, &extended)), "eth@0 ip6@14 ip6_ext@54 ip6_frag@70 tcp@78");
    assert_eq!(headers(&frame(0x86dd, &ipv6(58, &[135]))), "eth@0 ip6@14 icmp6@54");
}

#[test]
fn tunnels_have_inner_headers() {
    let inner = frame(0x0800, &ipv4(6, 5, &[]));
    let vxlan = udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner].concat());
    assert_eq!(
        headers(&frame(0x0800, &ipv4(17, 5, &vxlan))),
        "eth@0 ip@14 udp@34 vxlan@42 inner.eth@50 inner.ip@64 inner.tcp@84"
    );
    // A key makes GRE's header longer.
    let gre = [&[0x20, 0, 0x86, 0xdd, 0, 0, 0, 1][..], &ipv6(17, &[])].concat();
    assert_eq!(
        headers(&frame(0x0800, &ipv4(47, 5, &gre))),
        "eth@0 ip@14 gre@34 inner.ip6@42 inner.udp@82"
    );
    assert_eq!(
        headers(&frame(0x0800, &ipv4(4, 5, &ipv4(1, 5, &[])))),
        "eth@0 ip@14 inner.ip@34 inner.icmp@54"
    );
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &ipv4(17, 5, &[])].concat();
    assert_eq!(
        headers(&frame(0x0800, &ipv4(1, 5, &error))),
        "eth@0 ip@14 icmp@34 inner.ip@42 inner.udp@62"
    );
    let nsh = [&[0, 6, 1, 1, 0, 0, 1, 255][..], &[0; 16], &ipv4(6, 5, &[])].concat();
    assert_eq!(headers(&frame(0x894f, &nsh)), "eth@0 nsh@14 ip@38 tcp@58");
}

#[test]
fn hostile_bytes_end() {
    let mut chain = frame(0x0800, &[]);
    (0..4000).for_each(|_| chain.extend(ipv4(4, 5, &[])));
    assert_eq!(headers(&chain).split(' ').count(), 32);
    for end in 0..chain.len().min(100) {
        let cut = Bytes(chain[..end].to_vec());
        Layout::parse(&cut, Start { frame: Some(0), ..Start::default() });
    }
}

#[test]
fn bits_have_names_by_where_headers_lie() {
    let tagged = [&[0, 5, 0x81, 0, 0, 6, 0x08, 0][..], &ipv4(17, 5, &[])].concat();
    let bytes = Bytes(frame(0x88a8, &[tagged, vec![0; 30]].concat()));
    let layout = Layout::parse(&bytes, Start { frame: Some(0), ..Start::default() });
    let name = |start, width| layout.name(start, width).map(|name| name.text);
    assert_eq!(name(96, 16).as_deref(), Some("eth.type"));
    assert_eq!(name(116, 12).as_deref(), Some("vlan.id"));
    assert_eq!(name(148, 12).as_deref(), Some("vlan.id2"));
    assert_eq!(name(22 * 8 + 128, 32).as_deref(), Some("ip.dst"));
    assert_eq!(name(22 * 8 + 136, 8).as_deref(), Some("ip.dst[8+8]"));
    assert_eq!(name(42 * 8, 16).as_deref(), Some("udp.sport"));
    assert_eq!(name(60 * 8, 16), None);
    assert_eq!(layout.find("ip.dst"), Some((22 * 8 + 128, 32)));
    assert_eq!(layout.parts(112, 32), [(112, 3), (115, 1), (116, 12), (128, 16)]);
    // All names lead back to their bits.
    for header in layout.headers() {
        for (_, field) in header.kind.catalogue() {
            let found = layout.find(&header.field_name(field));
            assert_eq!(found, Some((header.bit(field), field.width)), "{field}");
        }
    }
}

/// A program over one term for each field, terms in that order.
fn program(fields: &[Field], steps: Vec<Step>) -> Program {
    let terms = fields.iter().map(|field| Term::Input(*field)).collect();
    let entry = Port { node: 0, port: 0 };
    Program {
        entry,
        continuation: None,
        terms,
        state: Vec::new(),
        tables: Vec::new(),
        lookups: Vec::new(),
        steps,
    }
}

fn test(term: u32, set: IntervalSet, yes: u32, no: u32) -> Step {
    let atom = Atom::Test(TermId(term), Arc::new(set));
    Step::Test { atom, yes: StepId(yes), no: StepId(no), element: 0 }
}

fn leaves(writes: Writes) -> Step {
    let end = End::Push { to: Port { node: 1, port: 0 }, native: false };
    Step::Exit(Box::new(Exit {
        effects: Vec::new(),
        writes,
        end,
        barrier: None,
        visited: Vec::new(),
        copies: Vec::new(),
    }))
}

fn data(offset: u16, width: u16) -> Field {
    Field::bits(Base::Data, offset, width)
}

/// Ethernet's type, then IP's protocol, then a port; or an ARP operation.
fn decisions() -> Program {
    let fields = [data(96, 16), data(184, 8), data(288, 16), data(160, 16), meta::LEN];
    let single = IntervalSet::single;
    let steps = vec![
        test(4, IntervalSet::range(34, u32::MAX.into()), 1, 7),
        test(0, single(0x0800), 2, 5),
        test(1, single(17), 3, 6),
        test(2, single(53), 4, 6),
        leaves(Writes {
            bytes: vec![Write { offset: 30, length: 4, value: TermId(1) }],
            ..Writes::default()
        }),
        test(0, single(0x0806), 8, 7),
        leaves(Writes::default()),
        leaves(Writes::default()),
        test(3, single(1), 6, 7),
    ];
    program(&fields, steps)
}

#[test]
fn conditions_on_all_paths_say_which_headers_there_are() {
    let program = decisions();
    let layouts = Layouts::of(&program);
    let at = |step: u32| {
        let names = layouts.at(StepId(step)).headers().iter().map(Header::name);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!((at(1), at(2)), ("eth".into(), "eth ip transport".into()));
    assert_eq!((at(3), at(8)), ("eth ip udp".into(), "eth arp".into()));
    // IP's paths and that of ARP meet: nothing but the frame is known.
    assert_eq!(at(6), "eth");
    assert_eq!(layouts.at(StepId(4)).name(240, 32).unwrap().text, "ip.dst");
    assert_eq!(layouts.at(StepId(8)).name(160, 16).unwrap().text, "arp.op");
}

#[test]
fn marks_and_positions_say_where_ip_begins() {
    let mut program = decisions();
    program.terms.push(Term::Const(0));
    let marks =
        [crate::program::Mark::Keep, crate::program::Mark::At(TermId(5)), Default::default()];
    program.steps = vec![
        test(1, IntervalSet::single(17), 1, 2),
        leaves(Writes { marks, ..Writes::default() }),
        leaves(Writes { marks, ..Writes::default() }),
    ];
    let layouts = Layouts::of(&program);
    let layout = layouts.at(StepId(0));
    let header = layout.network().unwrap();
    assert_eq!((header.offset, header.assumed), (0, true));
    assert_eq!(layout.name(128, 32).unwrap().text, "ip.dst");
    // A position that is tested is stronger.
    program.terms.push(Term::Position(net::Header::Network));
    program.steps.insert(0, test(6, IntervalSet::single(14), 1, 2));
    program.steps[1] = test(1, IntervalSet::single(17), 3, 3);
    let layouts = Layouts::of(&program);
    assert_eq!(layouts.at(StepId(1)).name(240, 32).unwrap().text, "ip.dst");
    assert_eq!(layouts.at(StepId(2)).name(240, 32), None);
}

#[test]
fn the_parse_graph_has_headers_fields_and_lengths() {
    let program = decisions();
    let graph = ParseGraph::of(&program, &Layouts::of(&program));
    let names: Vec<&str> = graph.headers.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["eth", "arp", "ip", "udp"]);
    let edge = |from: usize, to, field, value| Edge {
        from: Some(from),
        to,
        select: Some(Select { field, value }),
    };
    let begin = Edge { from: None, to: 0, select: None };
    let arp = edge(0, 1, eth::TYPE, 0x0806);
    let expected = [begin, arp, edge(0, 2, eth::TYPE, 0x0800), edge(2, 3, ip::PROTO, 17)];
    assert_eq!(graph.edges, expected);
    let ip = graph.header("ip").unwrap();
    assert_eq!(ip.availability.tested, [20].into());
    assert_eq!(ip.availability.needed, 20);
    assert!(ip.fields["ip.proto"].decides && ip.fields["ip.dst"].written);
    assert_eq!(graph.header("udp").unwrap().availability.needed, 4);
    assert_eq!((graph.unnamed.len(), graph.lengths.len()), (0, 0));
}

#[test]
fn what_leaves_is_named_as_it_leaves() {
    let mut program = decisions();
    program.terms.extend([Term::Const(0x0800), Term::Const(-14i128 as u128), Term::Const(0)]);
    let at = |term| crate::program::Mark::At(TermId(term));
    let writes = Writes {
        start: -14,
        bytes: vec![Write { offset: -2, length: 2, value: TermId(5) }],
        marks: [at(6), at(7), Default::default()],
        ..Writes::default()
    };
    let start = Start { network: Some(0), ..Start::default() };
    let known = Facts::default();
    let layout = Layout::coming_in(&program, &writes, &known, start);
    assert_eq!(layout.name(64, 8).unwrap().text, "ip.ttl");
    let leaving = layout.leaving(&program, &writes, &known);
    assert_eq!(leaving.name(-16, 16).unwrap().text, "eth.type");
    assert_eq!(leaving.name(64, 8).unwrap().text, "ip.ttl");
}

#[test]
fn parts_of_known_bits_are_known() {
    let fields = [data(112, 8), data(96, 8), data(104, 8), anno::PAINT];
    let program = program(&fields, Vec::new());
    let facts = Facts::default()
        .with(&program, TermId(0), &IntervalSet::range(0x45, 0x4f))
        .with(&program, TermId(1), &IntervalSet::single(8))
        .with(&program, TermId(2), &IntervalSet::single(0))
        .with(&program, TermId(3), &IntervalSet::single(0));
    assert_eq!(facts.bits(112, 4), Some(IntervalSet::single(4)));
    assert_eq!(facts.bits(116, 4), Some(IntervalSet::range(5, 15)));
    assert_eq!(facts.bits(96, 16), Some(IntervalSet::single(0x0800)));
    assert_eq!(facts.bits(120, 8), None);
}

#[test]
fn tests_and_comparisons_say_how_long_the_data_is() {
    // An IP packet behind 14 bytes, as `CheckIPHeader` asks for it.
    let source = "
        program behind [0] #0
        t0 = data[116+4] * 4
        s0: #0 if meta.len in {34..65535} s1 else s8
        s1: #0 if data[116+4] in {6..15} s2 else s8
        s2: #0 if data[128+16] + 14 <= meta.len s3 else s8
        s3: #0 if data[128+16] < t0 s8 else s4
        s4: #0 if data[176+8] == 1 s5 else s6
        s5: #0 if data[128+16] == t0 s7 else s6
        s6: #0 if compare(60 > data[128+16]) s8 else s7
        s7: exit visited [0] #0 drop x at #0
        s8: exit visited [0] #0 drop x at #0";
    let read = crate::text::parse_programs(crate::FileId(0), source).expect("it reads");
    let program = &read.programs[0];
    let layouts = Layouts::of(program);
    let least = |step| layouts.facts(StepId(step)).expect("known").least_length(program);
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(least), [0, 34, 34, 34, 38, 38, 38]);
    // Where paths meet, the least counts.
    assert_eq!((least(7), least(8)), (38, 0));
    let term = |term: Term| program.terms.iter().position(|t| *t == term).map(|t| TermId(t as u32));
    let length = term(Term::Input(data(128, 16))).expect("it is read");
    let range = |step| layouts.facts(StepId(step)).expect("known").range(program, length);
    assert_eq!((range(3), range(4)), (Some((0, 0xffff)), Some((24, 0xffff))));
}
