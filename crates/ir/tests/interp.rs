//! The interpreter, operation by operation, on packets of a few bytes.

mod world;

use catena_ir as ir;
use ir::hash::HashFunction;
use ir::interp::{End, Fault};
use ir::model::StateDecl;
use ir::state::{Flow, StateValue};
use ir::{Base, Expr, Field, FileId, Model, Op, Reason, text};
use net::{HEADROOM, Header, Packet, PacketType};
use proptest::prelude::*;
use world::World;

const STATE: &str = "\
state count: counter
state cells: cells 12 [1, 2, 3]
state flows: flows 2
";

fn model(body: &str) -> Model {
    let source = format!("{STATE}input 0 {{ {body} }}");
    text::parse_model(FileId(0), &source).unwrap_or_else(|e| panic!("{body}: {e:?}"))
}

/// The number that an expression yields for a packet.
fn value_in(world: &mut World, expr: &str, frame: &[u8]) -> Result<u128, Fault> {
    let mut packet = world.pool.packet(&[&[0; 16], frame].concat());
    packet.pull(16);
    let outcome =
        world.run_on(&model(&format!("{MARKS} store(mac, 0, 128) = {expr} emit 0")), &mut packet);
    let bytes: [u8; 16] = packet.header(Header::Mac).expect("marked")[..16].try_into().unwrap();
    world.pool.recycle(packet);
    outcome.map(|_| u128::from_be_bytes(bytes))
}

/// `mac` lies before the data, where a result can be put; `net` and `transport` in them.
const MARKS: &str = "mark mac at -16 mark net at 2 mark transport at 4";

fn value(expr: &str, frame: &[u8]) -> Result<u128, Fault> {
    value_in(&mut World::new(), expr, frame)
}

/// What becomes of a packet.
fn run(body: &str, frame: &[u8]) -> (Result<End, Fault>, Vec<u8>) {
    let mut world = World::new();
    let mut packet = world.pool.packet(frame);
    let end = world.run_on(&model(body), &mut packet);
    (end, packet.data().to_vec())
}

/// The bytes of a packet that is emitted on port 0.
#[track_caller]
fn bytes_after(body: &str, frame: &[u8]) -> Vec<u8> {
    let (end, bytes) = run(&format!("{body} emit 0"), frame);
    assert_eq!(end, Ok(End::Emit(0)), "{body}");
    bytes
}

fn beyond<T: std::fmt::Debug>(result: &Result<T, Fault>) -> bool {
    matches!(result, Err(Fault::OutOfBounds(_)))
}

fn malformed<T: std::fmt::Debug>(result: &Result<T, Fault>) -> bool {
    matches!(result, Err(Fault::Malformed(_)))
}

#[test]
fn fields_are_runs_of_bits_in_network_order() {
    let frame: Vec<u8> = (0x10..0x30).collect();
    for (expr, expected) in [
        ("data[0+8]", 0x10),
        ("data[0+16]", 0x1011),
        ("data[4+8]", 0x01),
        ("data[12+4]", 0x1),
        ("data[15+1]", 1),
        ("net[0+16]", 0x1213),
        ("transport[0+24]", 0x141516),
        ("data[0+128]", 0x1011_1213_1415_1617_1819_1a1b_1c1d_1e1f),
        ("data[4+128]", 0x0111_2131_4151_6171_8191_a1b1_c1d1_e1f2),
        ("data[1+128]", 0x1011_1213_1415_1617_1819_1a1b_1c1d_1e1f << 1),
        ("data[128+128]", 0x2021_2223_2425_2627_2829_2a2b_2c2d_2e2f),
    ] {
        assert_eq!(value(expr, &frame), Ok(expected), "{expr}");
    }
    for expr in ["data[250+8]", "data[129+128]", "net[240+1]", "transport[9999+1]"] {
        assert!(beyond(&value(expr, &frame)), "{expr}");
    }
}

proptest! {
    /// A write changes the field's bits, all of them, and no other.
    #[test]
    fn writes_leave_neighbours_alone(
        frame in prop::collection::vec(any::<u8>(), 24), v in any::<u128>(),
        offset in 0u16..64, width in 1u16..=128,
    ) {
        let field = Field::bits(Base::Data, offset, width);
        let model = Model::from_block(vec![field.set(v), Op::emit(0u8)]);
        let mut world = World::new();
        let mut packet = world.pool.packet(&frame);
        prop_assert_eq!(world.run_on(&model, &mut packet), Ok(End::Emit(0)));
        let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (7 - i % 8) & 1;
        for i in 0..frame.len() * 8 {
            let within = i.checked_sub(offset.into()).filter(|&k| k < width.into());
            let expected = match within {
                Some(k) => (v >> (usize::from(width) - 1 - k) & 1) as u8,
                None => bit(&frame, i),
            };
            prop_assert_eq!(bit(packet.data(), i), expected, "bit {}", i);
        }
    }

    /// Sums agree with sums over the words and bytes one by one, odd ends and all.
    #[test]
    fn sums_are_of_words_and_bytes(frame in prop::collection::vec(any::<u8>(), 0..40), from in 0usize..3) {
        let from = from.min(frame.len());
        let run = &frame[from..];
        let words: u64 = run.chunks(2).map(|w| u64::from(w[0]) * 256 + w.get(1).map_or(0, |&b| b.into())).sum();
        // Ones' complement: zero stays zero, everything else is folded into 1..=0xffff.
        let folded = if words == 0 { 0 } else { (words - 1) % 0xffff + 1 };
        let length = run.len();
        prop_assert_eq!(value(&format!("sum16(data, {from}, {length})"), &frame), Ok(folded.into()));
        let sum: u128 = run.iter().map(|&b| u128::from(b)).sum();
        prop_assert_eq!(value(&format!("bytesum(data, {from}, {length})"), &frame), Ok(sum));
        prop_assert_eq!(value(&format!("fold16({words})"), &frame), Ok(folded.into()));
    }
}

#[test]
fn sums_and_loads_stop_at_the_end() {
    let frame = [1, 2, 3, 4, 5];
    assert_eq!(value("sum16(data, 0, 0)", &frame), Ok(0));
    assert_eq!(value("sum16(data, 5, 0)", &frame), Ok(0));
    assert_eq!(value("sum16(data, 0, 5)", &frame), Ok(0x0102 + 0x0304 + 0x0500));
    assert_eq!(value("sum16(net, 0, 3)", &frame), Ok(0x0304 + 0x0500));
    assert_eq!(value("sum16(data, 0, 2) + sum16(data, 2, 2)", &[0xff; 4]), Ok(0x1fffe));
    assert_eq!(value("sum16(data, 0, 4)", &[0xff; 4]), Ok(0xffff));
    assert_eq!(value("bytesum(net, 1, 2)", &frame), Ok(9));
    assert_eq!(value("load(data, 1, 24)", &frame), Ok(0x020304));
    assert_eq!(
        value("load(net, r9 & 0, 8)", &frame),
        Err(Fault::Malformed("register 9 is read before it is written".into()))
    );
    for expr in [
        "sum16(data, 0, 6)",
        "sum16(data, 6, 0)",
        "bytesum(data, 5, 1)",
        "load(data, 4, 16)",
        "load(data, -1, 8)",
        "sum16(data, 1, -1)",
        "load(transport, 1, 8)",
        "load(meta, 0, 8)",
    ] {
        assert!(beyond(&value(expr, &frame)), "{expr}");
    }
}

#[test]
fn arithmetic_wraps_and_division_by_zero_is_zero() {
    let max = u128::MAX;
    for (expr, expected) in [
        ("1 + 2", 3),
        ("0 - 1", max),
        ("-1 + 2", 1),
        ("-1 * -1", 1),
        ("7 / 2", 3),
        ("7 / 0", 0),
        ("7 % 4", 3),
        ("7 % 0", 0),
        ("6 & 3", 2),
        ("6 | 3", 7),
        ("6 ^ 3", 5),
        ("1 << 127", 1 << 127),
        ("1 << 128", 0),
        ("1 << -1", 0),
        ("-1 >> 127", 1),
        ("-1 >> 128", 0),
        ("min(3, 4)", 3),
        ("max(3, -1)", max),
        ("choose(1 < 2, 5, load(data, 99, 8))", 5),
        ("choose(2 < 1, load(data, 99, 8), 6)", 6),
        ("mixed_fnv1a(1, 2)", HashFunction::MixedFnv1a.hash([1, 2]).into()),
        ("now", 1000),
        ("position(net)", 2),
        ("position(mac)", -16i128 as u128),
    ] {
        assert_eq!(value(expr, &[]), Ok(expected), "{expr}");
    }
    let mut world = World::new();
    assert_eq!(value_in(&mut world, "random(3, 9)", &[]), Ok(9));
    assert_eq!(world.seen.events, ["random 3..9"]);
    assert!(malformed(&value("random(9, 3)", &[])));
    assert!(malformed(&value("random(0, 99999999999999999999)", &[])));
}

#[test]
fn conditions_compare_and_stop_early() {
    for (cond, expected) in [
        ("true", true),
        ("5 in {1..5, 9}", true),
        ("6 in {1..5, 9}", false),
        ("6 not in {1..5, 9}", true),
        ("compare(5 == 5)", true),
        ("compare(5 != 5)", false),
        ("compare(4 < 5) && compare(5 <= 5)", true),
        ("compare(5 > 5) || compare(5 >= 6)", false),
        ("now == now", true),
        ("all()", true),
        ("any()", false),
        ("false && load(data, 99, 8) == 1", false),
        ("true || load(data, 99, 8) == 1", true),
        ("!(1 == 2)", true),
        ("exists(flows, 1)", false),
    ] {
        let (end, _) = run(&format!("if {cond} {{ drop yes }} else {{ drop no }}"), &[]);
        let reason = if expected { "yes" } else { "no" };
        assert_eq!(end, Ok(End::Drop(Reason(reason))), "{cond}");
    }
    assert!(beyond(&run("if true && load(data, 99, 8) == 1 { } drop x", &[]).0));
}

#[test]
fn stores_write_whole_bytes() {
    assert_eq!(bytes_after("store(data, 1, 16) = 0x12345", &[9; 4]), [9, 0x23, 0x45, 9]);
    assert_eq!(bytes_after("mark net at 2 store(net, 1 + 0, 8) = 7", &[9; 4]), [9, 9, 9, 7]);
    let wide = bytes_after("store(data, 0, 128) = -2", &[0; 17]);
    assert_eq!(wide, [[0xff; 15].as_slice(), &[0xfe, 0]].concat());
    for body in ["store(data, 3, 16) = 1", "store(data, -1, 8) = 1", "store(net, 0, 8) = 1"] {
        assert!(beyond(&run(body, &[9; 4]).0), "{body}");
    }
    assert!(malformed(&run("store(data, 0, 12) = 1", &[9; 4]).0));
    assert!(beyond(&run("set data[25+8] = 1", &[9; 4]).0));
}

#[test]
fn pulls_remove_and_bring_back() {
    assert_eq!(bytes_after("pull 2", b"abcd"), b"cd");
    assert_eq!(bytes_after("pull 9", b"abcd"), b"");
    assert_eq!(bytes_after("pull 3 pull -2", b"abcd"), b"bcd");
    assert_eq!(bytes_after("mark net at 1 pull 3 store(net, 0, 8) = 88 pull -3", b"abcd"), b"aXcd");
    let beyond_headroom = HEADROOM as i32 + 5;
    let bytes =
        bytes_after(&format!("mark net at 0 pull -{beyond_headroom} set net[0+8] = 88"), b"abcd");
    assert_eq!((bytes.len(), &bytes[HEADROOM + 5..]), (HEADROOM + 9, &b"Xbcd"[..]));
    assert!(malformed(&run("pull -65536", b"abcd").0));
    assert!(malformed(&run("pull -1 << 100", b"abcd").0));
    assert_eq!(bytes_after("pull 18446744073709551615", b"abcd"), b"");
    assert!(malformed(&run("pull 18446744073709551616", b"abcd").0));
    assert!(malformed(&run("repeat 4000000000 { pull -65535 } emit 0", b"abcd").0));
    assert!(malformed(&run("repeat 4000000000 { extend 65536 } emit 0", b"abcd").0));
}

#[test]
fn the_end_moves() {
    assert_eq!(bytes_after("truncate 2", b"abcd"), b"ab");
    assert_eq!(bytes_after("truncate 9", b"abcd"), b"abcd");
    assert_eq!(bytes_after("truncate -1", b"abcd"), b"abcd");
    assert_eq!(bytes_after("extend 2", b"abcd"), b"abcd\0\0");
    assert_eq!(bytes_after("truncate 2 extend 2", b"abcd"), b"ab\0\0");
    assert!(malformed(&run("extend 65537", b"abcd").0));
    assert_eq!(
        bytes_after("mark net at 2 truncate 1 set data[0+8] = meta.avail_net + 65", b"abcd"),
        b"A"
    );
    assert!(beyond(&run("mark net at 2 truncate 2 r0 = net[0+8]", b"abcd").0));
}

/// What a model sees of the packet's properties.
fn properties(body: &str, frame: &[u8]) -> Vec<u128> {
    let names =
        ["len", "avail_mac", "avail_net", "avail_transport", "has_mac", "has_net", "has_transport"];
    let mut world = World::new();
    let writes: String = (0..7).map(|i| format!("write cells[{i}] = meta.{} ", names[i])).collect();
    let source =
        format!("state cells: cells 32 [0,0,0,0,0,0,0] input 0 {{ {body} {writes} emit 0 }}");
    let model = text::parse_model(FileId(0), &source).expect("it reads");
    assert_eq!(world.run(&model, frame), Ok(End::Emit(0)));
    world.store.cells("e", "cells").to_vec()
}

#[test]
fn headers_are_marked_relative_to_the_data() {
    assert_eq!(properties("", b"abcd"), [4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        properties("mark mac at 0 mark net at 1 mark transport at position(net) + 2", b"abcd"),
        [4, 4, 3, 1, 1, 1, 1]
    );
    assert_eq!(properties("mark net at 2 pull 3", b"abcd"), [1, 0, 2, 0, 0, 1, 0]);
    assert_eq!(properties("pull 2 mark net at -2", b"abcd"), [2, 0, 4, 0, 0, 1, 0]);
    assert_eq!(properties("mark net at 9", b"abcd"), [4, 0, 0, 0, 0, 1, 0]);
    assert_eq!(properties("mark net at 1 mark net at -99999", b"abcd"), [4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(properties("mark net at 1 unmark net", b"abcd"), [4, 0, 0, 0, 0, 0, 0]);
    assert!(malformed(&run("mark net at 99999999999", b"abcd").0));
    assert!(malformed(&run("mark net at -9223372036854775808", b"abcd").0));
    assert!(beyond(&run("r0 = position(net)", b"abcd").0));
}

#[test]
fn annotations_and_properties_are_read_and_written() {
    let mut world = World::new();
    let mut packet = world.pool.packet(b"ab");
    let body = "set anno.paint = 300 set anno.dst_ip = 10.0.0.1 set meta.timestamp = 7 \
                set meta.type = 2 mark net at 0 emit anno.paint";
    assert_eq!(world.run_on(&model(body), &mut packet), Ok(End::Emit(300 & 255)));
    assert_eq!(packet.annotations().u8(net::annotation::PAINT), 44);
    assert_eq!(packet.annotations().dst_ip().octets(), [10, 0, 0, 1]);
    assert_eq!((packet.timestamp(), packet.packet_type()), (7, PacketType::Multicast));
    let copy = "set anno.paint = meta.type + meta.timestamp + meta.headroom emit anno.paint";
    let port = (2 + 7 + HEADROOM) & 255;
    assert_eq!(world.run_on(&model(copy), &mut packet), Ok(End::Emit(port)));
    assert_eq!(world.run_on(&model("fresh emit 0"), &mut packet), Ok(End::Emit(0)));
    assert_eq!(packet.annotations().bytes(), &[0; net::annotation::SIZE]);
    assert_eq!((packet.timestamp(), packet.packet_type()), (0, PacketType::Host));
    assert_eq!((packet.network(), packet.data()), (None, &b"ab"[..]));
    for body in ["set meta.len = 1", "set meta[0+8] = 1", "r0 = meta[0+8]"] {
        assert!(malformed(&world.run_on(&model(body), &mut packet)), "{body}");
    }
    assert!(beyond(&world.run_on(&model("set anno[380+8] = 1"), &mut packet)));
}

#[test]
fn blocks_run_in_order_and_paths_end() {
    let port = |body: &str| match run(body, b"abcd").0 {
        Ok(End::Emit(port)) => port,
        other => panic!("{body}: {other:?}"),
    };
    assert_eq!(port("r0 = 3 if r0 == 3 { r0 = 4 } else { r0 = 5 } emit r0"), 4);
    assert_eq!(port("r0 = 0 repeat 5 { r0 = r0 + 1 } emit r0"), 5);
    assert_eq!(port("r0 = 0 repeat 5 { r0 = r0 + 1 if r0 == 2 { break } } emit r0"), 2);
    assert_eq!(port("r0 = 0 repeat 3 { repeat 3 { r0 = r0 + 1 break } } emit r0"), 3);
    assert_eq!(port("repeat 3 { emit 7 }"), 7);
    assert_eq!(port("emit -1"), usize::MAX);
    assert_eq!(run("drop x", b"").0, Ok(End::Drop(Reason("x"))));
    assert_eq!(run("opaque why", b"").0, Ok(End::Opaque("why")));
    assert_eq!(run("", b"").0, Err(Fault::NoEnd));
    assert_eq!(run("break", b"").0, Err(Fault::NoEnd));
    assert_eq!(
        run("emit r3", b"").0,
        Err(Fault::Malformed("register 3 is read before it is written".into()))
    );
}

#[test]
fn the_last_input_serves_all_further_ports() {
    let source = "input 0 { emit 0 } input 1 { emit 1 }";
    let model = text::parse_model(FileId(0), source).expect("it reads");
    let mut world = World::new();
    let mut packet = world.pool.packet(b"");
    for (input, port) in [(0, 0), (1, 1), (5, 1)] {
        let (store, seen) = (&mut world.store, &mut world.seen);
        let end = ir::interp::interpret(&model, "e", input, &mut packet, store, seen);
        assert_eq!(end, Ok(End::Emit(port)));
    }
    assert_eq!(world.run(&Model::default(), b""), Err(Fault::NoEnd));
}

#[test]
fn matches_take_the_first_rule() {
    let body = "match {
        rule load(data, 0, 8) == 1 => 1 \"one\"
        rule load(data, 0, 8) in {1..2} => 0 \"few\"
        arm 0 { r0 = 10 }
        arm 1 { emit 11 }
        else { r0 = 12 }
    } emit r0";
    let mut world = World::new();
    for (byte, port) in [(1, 11), (2, 10), (3, 12)] {
        assert_eq!(world.run(&model(body), &[byte]), Ok(End::Emit(port)));
    }
    assert_eq!(world.seen.events, ["matched one", "matched few", "matched nothing"]);
    assert!(malformed(&run("match { rule true => 1 arm 0 { } } drop x", b"").0));
}

#[test]
fn lookups_take_the_longest_prefix() {
    let body = "lookup data[0+32] width 32 bind (r0, r1) {
        0.0.0.0/0 => (1, 10)
        10.0.0.0/8 => (2, 20)
        10.1.0.0/16 => (3, 30)
        10.1.0.0/16 => (4, 40)
        10.1.2.3/32 => (5, 50)
    } else { drop none } emit r0 + r1";
    for (address, port) in
        [([9, 0, 0, 0], 11), ([10, 9, 9, 9], 22), ([10, 1, 9, 9], 44), ([10, 1, 2, 3], 55)]
    {
        assert_eq!(run(body, &address).0, Ok(End::Emit(port)), "{address:?}");
    }
    let miss = "lookup 5 width 8 bind (r0) { 8/5 => (1) } else { r0 = 9 } emit r0";
    assert_eq!(run(miss, b"").0, Ok(End::Emit(9)));
    // A key that is wider than the table has no prefix in it.
    assert_eq!(
        run("lookup 264 width 8 bind (r0) { 8/5 => (1) } drop x", b"").0,
        Ok(End::Drop(Reason("x")))
    );
    let wide = "lookup -1 width 128 bind (r0) { 0/0 => (1) } emit r0";
    assert_eq!(run(wide, b"").0, Ok(End::Emit(1)));
    assert_eq!(run("lookup 1 width 8 bind (r0) { 1/9 => (1) } emit r0", b"").0, Ok(End::Emit(1)));
}

#[test]
fn counters_and_cells_keep_their_state() {
    let mut world = World::new();
    let body = "count count read r0 = cells[1] write cells[1] = r0 + 4095 emit r0";
    assert_eq!(world.run(&model(body), b"abc"), Ok(End::Emit(2)));
    assert_eq!(world.run(&model(body), b"de"), Ok(End::Emit(1)));
    assert_eq!(world.store.counter("e", "count"), (2, 5));
    // Cells are cut to their width.
    assert_eq!(world.store.cells("e", "cells"), [1, 0, 3]);
    for body in [
        "read r0 = cells[3]",
        "write cells[-1] = 0",
        "read r0 = count[0]",
        "count cells",
        "count #9",
        "r0 = choose(exists(cells, 1), 0, 1)",
    ] {
        assert!(malformed(&world.run(&model(body), b"")), "{body}");
    }
}

#[test]
fn state_belongs_to_its_owner() {
    let mut shared = model("count count emit 0");
    shared.state[0] = StateDecl { owner: Some("other".into()), ..shared.state[0].clone() };
    let mut world = World::new();
    assert_eq!(world.run(&shared, b"abc"), Ok(End::Emit(0)));
    assert_eq!(world.store.counter("other", "count"), (1, 3));
    assert_eq!(world.store.counter("e", "count"), (0, 0));
}

const INSERT: &str = "insert flows forward (1, 2) => (3) reverse (4, 5) => (6) common (7) \
                      expiry 2000 guarantee 1500 else { drop full } emit 0";

#[test]
fn flows_are_found_from_both_sides() {
    let mut world = World::new();
    let find = |key: &str| {
        format!("find flows({key}) bind (r0) common (r1) else {{ drop none }} emit r0 * 10 + r1")
    };
    assert_eq!(world.run(&model(&find("1, 2")), b""), Ok(End::Drop(Reason("none"))));
    assert_eq!(world.run(&model(INSERT), b""), Ok(End::Emit(0)));
    assert_eq!(world.run(&model(&find("1, 2")), b""), Ok(End::Emit(37)));
    assert_eq!(world.run(&model(&find("4, 5")), b""), Ok(End::Emit(67)));
    assert_eq!(world.run(&model(&find("4, 6")), b""), Ok(End::Drop(Reason("none"))));
    let exists = "if exists(flows, 4, 5) { emit 1 } emit 0";
    assert_eq!(world.run(&model(exists), b""), Ok(End::Emit(1)));
    let update = "update flows(4, 5) common (8) expiry 3000 guarantee 0 \
                  update flows(9) common (9) expiry 1 guarantee 1 emit 0";
    assert_eq!(world.run(&model(update), b""), Ok(End::Emit(0)));
    assert_eq!(world.run(&model(&find("1, 2")), b""), Ok(End::Emit(38)));
    world.seen.now = 3000;
    assert_eq!(world.run(&model(exists), b""), Ok(End::Emit(0)));
}

#[test]
fn flows_are_kept_as_they_were_inserted() {
    let mut world = World::new();
    assert_eq!(world.run(&model(INSERT), b""), Ok(End::Emit(0)));
    let Some(StateValue::Flows(flows)) = world.store.get("e", "flows") else { panic!("no flows") };
    let expected = Flow {
        keys: [vec![1, 2], vec![4, 5]],
        values: [vec![3], vec![6]],
        common: vec![7],
        expiry: 2000,
        guarantee: 1500,
    };
    assert_eq!(flows.iter().collect::<Vec<_>>(), [&expected]);
    // Times beyond 64 bits are the end of time.
    let far = INSERT.replace("expiry 2000", "expiry -1");
    assert_eq!(world.run(&model(&far), b""), Ok(End::Emit(0)));
    let Some(StateValue::Flows(flows)) = world.store.get("e", "flows") else { panic!("no flows") };
    assert_eq!(flows.iter().map(|f| f.expiry).collect::<Vec<_>>(), [u64::MAX]);
}

#[test]
fn a_full_table_takes_the_other_branch() {
    let mut world = World::new();
    let insert = |key: usize| {
        model(
            &INSERT
                .replace("(1, 2)", &format!("({key})"))
                .replace("(4, 5)", &format!("({key}, 0)")),
        )
    };
    assert_eq!(world.run(&insert(1), b""), Ok(End::Emit(0)));
    assert_eq!(world.run(&insert(2), b""), Ok(End::Emit(0)));
    assert_eq!(world.run(&insert(3), b""), Ok(End::Drop(Reason("full"))));
    world.seen.now = 1500;
    assert_eq!(world.run(&insert(3), b""), Ok(End::Emit(0)));
}

#[test]
fn allocation_goes_around_and_ends() {
    let mut world = World::new();
    let body = |start: &str| {
        format!(
            "allocate r0 in 5..6 from {start} unless flows(r0) else {{ drop none }} \
             insert flows forward (r0) => () reverse (r0, 0) => () common () expiry 2000 \
             guarantee 2000 emit r0"
        )
    };
    assert_eq!(world.run(&model(&body("99")), b""), Ok(End::Emit(6)));
    assert_eq!(world.run(&model(&body("6")), b""), Ok(End::Emit(5)));
    assert_eq!(world.run(&model(&body("0")), b""), Ok(End::Drop(Reason("none"))));
    world.seen.now = 2000;
    assert_eq!(world.run(&model(&body("0")), b""), Ok(End::Emit(5)));
    assert!(run("allocate r0 in 9..3 from 5 unless flows(r0) emit r0", b"").0.is_ok());
    world.seen.now = 1000;
    let hopeless = "allocate r0 in 1..9 from 7 unless flows(5) else { drop none } emit r0";
    assert_eq!(world.run(&model(hopeless), b""), Ok(End::Drop(Reason("none"))));
}

#[test]
fn copies_and_notes_reach_the_world() {
    let mut world = World::new();
    let body = "copy 3 set data[0+8] = 9 copy 4 note odd emit 0";
    assert_eq!(world.run(&model(body), &[1, 2]), Ok(End::Emit(0)));
    assert_eq!(world.seen.events, ["copy to 3 of [1, 2]", "copy to 4 of [9, 2]", "note odd"]);
}

#[test]
fn widths_that_cannot_be_are_faults() {
    let run = |op: Op| {
        let mut world = World::new();
        let mut packet: Packet = world.pool.packet(&[0; 64]);
        let model = Model::from_block(vec![op, Op::emit(0u8)]);
        world.run_on(&model, &mut packet)
    };
    for width in [0, 129, 200, u16::MAX] {
        let field = Field { base: Base::Data, offset: 0, width };
        assert!(malformed(&run(Op::Set(field, 1u8.into()))));
        assert!(malformed(&run(Op::Let(ir::model::Reg(0), field.get()))));
        assert!(malformed(&run(Op::Let(ir::model::Reg(0), Expr::load(Base::Data, 0u8, width)))));
        let (offset, value) = (0u8.into(), 0u8.into());
        assert!(malformed(&run(Op::Store { base: Base::Data, offset, width, value })));
    }
    let last = Field { base: Base::Data, offset: u16::MAX, width: 128 };
    assert!(beyond(&run(Op::Set(last, 1u8.into()))));
}
