//! The verifier: what it finds in small models, and that it is right about any model.

#[allow(dead_code)]
mod arbitrary;
#[path = "arbitrary/repair.rs"]
mod repair;
mod world;

use catena_ir as ir;
use ir::field::meta;
use ir::interp::Fault;
use ir::model::{Block, Reg};
use ir::verify::{is_well_formed, verify};
use ir::{Base, Expr, Field, FileId, Model, Op, Severity, text};
use proptest::prelude::*;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_model_makes_the_interpreter_fall(
        model in arbitrary::any_model(), frames in any_frames(),
    ) {
        let mut world = World::new();
        for frame in &frames {
            let _ = world.run(&model, frame);
        }
        verify(&model);
    }

    #[test]
    fn well_formed_models_end(model in arbitrary::any_model(), frames in any_frames()) {
        let model = repair::well_formed(&model, false);
        let problems = verify(&model);
        let errors: Vec<_> = problems.iter().filter(|p| p.severity == Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{:?} of\n{}", errors, model);
        let noted = problems.iter().any(|p| p.severity == Severity::Note);
        let mut world = World::new();
        for frame in &frames {
            match world.run(&model, frame) {
                Err(Fault::NoEnd) if model.inputs.is_empty() => {}
                Err(Fault::NoEnd) => prop_assert!(false, "no end of\n{}", model),
                Err(Fault::Malformed(why)) => prop_assert!(noted, "{} in\n{}", why, model),
                Err(Fault::OutOfBounds(_)) | Ok(_) => {}
            }
        }
    }

    #[test]
    fn models_without_a_note_never_fault(block in arbitrary::any_block(), frames in any_frames()) {
        let model = Model { state: vec![], inputs: vec![block] };
        let model = repair::well_formed(&model, true);
        let problems = verify(&model);
        prop_assume!(problems.iter().all(|p| ["constant-too-large", "unused-arm", "unreachable"].contains(&p.code)));
        let mut world = World::new();
        for frame in &frames {
            let end = world.run(&model, frame);
            prop_assert!(end.is_ok(), "{:?} in\n{}", end, model);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 800, ..ProptestConfig::default()
    })]

    #[test]
    fn guards_are_seen_rightly(
        block in any_moves(), length in 8usize..14,
    ) {
        let mut model = Model::from_block(block);
        model.inputs[0].push(Op::emit(0u8));
        // Take out what it objects to; the rest must run.
        while let Some(problem) = verify(&model).iter().find(|p| !matches!(p.code, "constant-too-large" | "unreachable")) {
            let op = problem.place.split(", op ").nth(1).and_then(|p| p.split(',').next());
            model.inputs[0].remove(op.and_then(|op| op.parse().ok()).expect("the place of an operation"));
        }
        let end = World::new().run(&model, &vec![1; length]);
        prop_assert!(end.is_ok(), "{:?} in\n{}", end, model);
    }
}

/// Tests of lengths, moves of edges and headers, and reads close to them.
fn any_moves() -> impl Strategy<Value = Block> {
    use arbitrary::any_header;
    let n = || 0u16..12;
    let reg = || (0u16..2).prop_map(Reg);
    let base = prop_oneof![2 => Just(Base::Data), 3 => any_header().prop_map(Base::Header)].boxed();
    let length = prop::sample::select(vec![
        meta::LEN,
        meta::AVAIL_MAC,
        meta::AVAIL_NET,
        meta::AVAIL_TRANSPORT,
        meta::HAS_NET,
    ])
    .boxed();
    let number = prop_oneof![
        3 => n().prop_map(Expr::from),
        1 => length.clone().prop_map(Expr::Field),
        1 => any_header().prop_map(Expr::Position),
        1 => reg().prop_map(Expr::Reg),
    ]
    .boxed();
    let sum = (number.clone(), number.clone(), 0..4).prop_map(|(a, b, op)| match op {
        0 => a + b,
        1 => a - b,
        2 => a.min(b),
        _ => a,
    });
    let sum = sum.boxed();
    let cond = (sum.clone(), number.clone(), 0..4).prop_map(|(a, b, op)| match op {
        0 => a.lt(b),
        1 => a.ge(b),
        2 => a.eq(b),
        _ => a.lt(b).not(),
    });
    let read = prop_oneof![
        3 => (base.clone(), n()).prop_map(|(b, at)| Expr::Field(Field::bytes(b, at, 1))),
        1 => (base.clone(), sum.clone()).prop_map(|(b, at)| Expr::load(b, at, 8)),
        1 => (base, n(), sum.clone()).prop_map(|(b, at, n)| Expr::sum16(b, at, n)),
        1 => sum.clone(),
    ];
    let op = prop_oneof![
        9 => (reg(), read).prop_map(|(r, e)| Op::Let(r, e)),
        1 => sum.clone().prop_map(Op::Pull),
        1 => (0u8..4).prop_map(Op::pull),
        1 => n().prop_map(|n| Op::pull(-i32::from(n))),
        1 => sum.clone().prop_map(Op::Truncate),
        1 => n().prop_map(|n| Op::Extend(n.into())),
        1 => (any_header(), n()).prop_map(|(h, n)| Op::Mark(h, n.into())),
        2 => (any_header(), sum).prop_map(|(h, e)| Op::Mark(h, e)),
        1 => any_header().prop_map(Op::Unmark),
        1 => Just(Op::Fresh),
        2 => (length, n()).prop_map(|(f, n)| Op::when(f.lt(n), vec![Op::drop("short")])),
    ];
    let op = op.boxed().prop_recursive(2, 12, 4, move |inner| {
        let block = prop::collection::vec(inner, 0..4);
        prop_oneof![
            3 => (cond.clone(), block.clone(), block.clone()).prop_map(|(c, a, b)| Op::If(c, a, b)),
            1 => (1u32..4, block).prop_map(|(limit, body)| Op::Repeat { limit, body }),
        ]
    });
    let start =
        text::parse_model(FileId(0), "input 0 { if meta.len < 10 { drop x } mark net at 2 }");
    let start = start.expect("it reads").inputs.remove(0);
    prop::collection::vec(op, 3..20).prop_map(move |ops| [start.clone(), ops].concat())
}

fn any_frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let shortest = usize::from(repair::SHORTEST);
    let frame = prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..120),
        2 => prop::collection::vec(any::<u8>(), shortest..shortest + 3),
    ];
    prop::collection::vec(frame, 1..5)
}

/// Severity, code and place of everything that is found.
fn found(source: &str) -> Vec<String> {
    let model = text::parse_model(FileId(0), source).expect("it reads");
    let show = |p: &ir::verify::Problem| format!("{} {} at {}", p.severity, p.code, p.place);
    verify(&model).iter().map(show).collect()
}

#[track_caller]
fn assert_found(body: &str, expected: &[&str]) {
    let state = "state count: counter\nstate cells: cells 8 [0, 1]\nstate flows: flows 4\n";
    assert_eq!(found(&format!("{state}input 0 {{ {body} }}")), expected, "{body}");
}

#[test]
fn registers_are_written_first() {
    assert_found("emit r0", &["error unwritten-register at input 0, op 0"]);
    assert_found("r0 = 1 emit r0", &[]);
    assert_found(
        "if now == 0 { r0 = 1 } emit r0",
        &["warning unwritten-register at input 0, op 1"],
    );
    assert_found("if now == 0 { r0 = 1 } else { r0 = 2 } emit r0", &[]);
    assert_found("if now == 0 { r0 = 1 } else { drop x } emit r0", &[]);
    assert_found("find flows(1) bind (r0) common () else { drop x } emit r0", &[]);
    assert_found(
        "find flows(1) bind (r0) common () emit r0",
        &["warning unwritten-register at input 0, op 1"],
    );
    assert_found("repeat 3 { r0 = 1 if now == 0 { break } } emit r0", &[]);
    assert_found(
        "repeat 3 { if now == 0 { break } r0 = 1 } emit r0",
        &["warning unwritten-register at input 0, op 1"],
    );
}

#[test]
fn paths_end_once() {
    assert_found("", &["error no-end at input 0"]);
    assert_found("if now == 0 { emit 0 }", &["error no-end at input 0"]);
    assert_found("if now == 0 { emit 0 } else { drop x }", &[]);
    assert_found("emit 0 drop x", &["error unreachable at input 0, op 1"]);
    assert_found(
        "if now == 0 { emit 0 } else { drop x } drop y",
        &["warning unreachable at input 0, op 1"],
    );
    assert_found("break", &["error stray-break at input 0, op 0"]);
    assert_found("repeat 2 { emit 0 }", &[]);
    assert_found("repeat 2 { break } drop x", &[]);
    assert_found("repeat 0 { } drop x", &["warning empty-loop at input 0, op 0"]);
}

#[test]
fn opaque_comes_first() {
    assert_found("r0 = meta.len if r0 in {0..9} { opaque short } emit 0", &[]);
    for effect in [
        "set anno.paint = 1",
        "pull 1",
        "mark net at 0",
        "fresh",
        "count count",
        "write cells[0] = 1",
        "note x",
        "copy 1",
        "r0 = random(0, 1)",
    ] {
        let body = format!("if now == 0 {{ {effect} }} opaque late");
        assert_found(&body, &["error late-opaque at input 0, op 1"]);
    }
}

#[test]
fn state_is_used_as_declared() {
    assert_found("count cells drop x", &["error wrong-state at input 0, op 0"]);
    assert_found("count #9 drop x", &["error undeclared-state at input 0, op 0"]);
    assert_found("read r0 = flows[0] drop x", &["error wrong-state at input 0, op 0"]);
    assert_found("read r0 = cells[2] drop x", &["error no-such-cell at input 0, op 0"]);
    assert_found("read r0 = cells[now] drop x", &["note unproven at input 0, op 0"]);
    assert_found("read r0 = cells[now % 2] drop x", &[]);
    assert_found("write cells[0] = 256 drop x", &["error constant-too-large at input 0, op 0"]);
    assert_found(
        "if exists(count, 1) { drop x } drop y",
        &["error wrong-state at input 0, op 0, condition"],
    );
    assert_found(
        "find flows(1) bind (r0, r1) common () else { insert flows forward (1) => (2) reverse (3) \
         => (4) common () expiry now guarantee 0 } drop x",
        &["error flow-arity at input 0, op 0"],
    );
    assert_found(
        "allocate r0 in 9..1 from 0 unless flows(1) drop x",
        &["error bad-range at input 0, op 0", "error idle-key at input 0, op 0"],
    );
    assert_eq!(found("state a: counter\nstate a: flows 1\n"), ["error duplicate-state at state 1"]);
    assert_eq!(found("state a: cells 4 [16]\n"), ["error constant-too-large at state 0"]);
}

#[test]
fn constants_and_arms_fit() {
    let guard = "if meta.avail_net in {0..19} { drop x } ";
    let with = |body: &str| format!("{guard}{body}");
    assert_found(&with("set ip.ttl = 256 drop x"), &["error constant-too-large at input 0, op 1"]);
    assert_found(&with("set ip.ttl = 255 drop x"), &[]);
    assert_found(
        &with("if ip.ttl in {250..256} { drop y } drop x"),
        &["warning constant-too-large at input 0, op 1, condition"],
    );
    assert_found(
        "match { rule now == 0 => 1 rule now == 1 => 2 arm 0 { } arm 1 { } } drop x",
        &[
            "error no-such-arm at input 0, op 0, rule 1",
            "warning unused-arm at input 0, op 0, arm 0",
        ],
    );
    assert_found(
        "lookup now width 8 bind (r0) { 8/5 => (1) 9/5 => (1) 0/9 => (1) 0/1 => () } drop x",
        &[
            "error bad-table at input 0, op 0, entry 0",
            "error bad-table at input 0, op 0, entry 1",
            "error bad-table at input 0, op 0, entry 3",
        ],
    );
    assert_found("set meta.len = 1 drop x", &["error bad-field at input 0, op 0"]);
    assert_found("set anno[380+8] = 1 drop x", &["error bad-field at input 0, op 0"]);
    assert_found("set meta.timestamp = 1 drop x", &[]);
    assert_found(
        "r0 = load(data, 0, 12) drop x",
        &["error bad-width at input 0, op 0", "warning unguarded at input 0, op 0"],
    );
}

#[test]
fn reads_are_guarded() {
    let read = |guard: &str, field: &str| {
        let body = format!("{guard} r0 = {field} drop x");
        let state = "state count: counter\n";
        found(&format!("{state}input 0 {{ {body} }}")).is_empty()
    };
    for (guard, field, guarded) in [
        ("", "ip.ttl", false),
        ("if meta.avail_net in {0..8} { drop s }", "ip.ttl", true),
        ("if meta.avail_net in {0..7} { drop s }", "ip.ttl", false),
        ("if meta.avail_net < 9 { drop s }", "ip.ttl", true),
        ("if !(meta.avail_net >= 9) { drop s }", "ip.ttl", true),
        ("if compare(9 > meta.avail_net) { drop s }", "ip.ttl", true),
        ("if meta.avail_net in {9..99} && ip.ttl == 1 { drop s }", "0", true),
        ("if ip.ttl == 1 && meta.avail_net in {9..99} { drop s }", "0", false),
        ("if meta.avail_net < 9 || ip.ttl == 1 { drop s }", "ip.ttl", true),
        ("if meta.has_net == 0 { drop s }", "ip.ttl", false),
        ("if meta.has_net == 0 { drop s }", "position(net)", true),
        ("", "position(net)", false),
        ("if meta.len < 34 { drop s } mark net at 14", "ip.ttl", true),
        ("if meta.len < 22 { drop s } mark net at 14", "ip.ttl", false),
        ("mark net at 14 if meta.len < 34 { drop s }", "ip.ttl", true),
        ("if meta.len < 34 { drop s } pull 14 mark net at 0", "ip.ttl", true),
        ("if meta.len < 34 { drop s } mark net at 14 pull 20", "ip.ttl", true),
        ("if meta.len < 34 { drop s } mark net at 14 pull 20 pull -20", "data[0+112]", true),
        ("if meta.len < 34 { drop s } mark net at 14 truncate 20", "ip.ttl", false),
        ("if meta.len < 34 { drop s } mark net at 14 truncate 23", "ip.ttl", true),
        ("extend 9", "data[0+72]", true),
        ("if meta.len < 9 { drop s } mark net at 0 fresh", "ip.ttl", false),
        ("r1 = meta.avail_net if r1 < 9 { drop s }", "ip.ttl", true),
        ("r1 = meta.avail_net mark net at 1 if r1 < 9 { drop s }", "ip.ttl", false),
        ("if meta.avail_net - 9 < 9 { drop s }", "ip.ttl", false),
        ("if meta.avail_net + 9 < 18 { drop s }", "ip.ttl", true),
        ("if meta.avail_net + -9 < 18 { drop s }", "ip.ttl", false),
        (
            "if meta.avail_net < 40 { drop s } mark transport at position(net) + 20",
            "transport.dport",
            true,
        ),
        (
            "if meta.avail_net < 40 { drop s } mark transport at position(net) + ip.hl * 4",
            "transport.dport",
            false,
        ),
        ("if meta.avail_net < 99 { drop s }", "load(net, ip.hl * 4, 16)", true),
        ("if meta.avail_net < 61 { drop s }", "load(net, ip.hl * 4, 16)", false),
        ("if meta.avail_net == 0 { drop s }", "sum16(net, 0, meta.avail_net)", true),
        ("", "sum16(net, 0, meta.avail_net)", false),
        ("", "sum16(data, 0, meta.len)", true),
        ("", "sum16(data, 1, meta.len)", false),
        ("if meta.len == 0 { drop s }", "sum16(data, 1, meta.len - 1)", true),
        ("", "choose(meta.avail_net < 9, 0, ip.ttl)", true),
        ("", "choose(meta.avail_net < 8, 0, ip.ttl)", false),
        ("if meta.len < 40 { drop s } repeat 4 { pull 10 }", "0", true),
        ("if meta.len < 40 { drop s } repeat 4 { pull 10 }", "data[0+8]", false),
        ("repeat 9 { if meta.len < 4 { drop s } r1 = data[0+32] pull 4 }", "0", true),
        ("mark net at 12 pull 12 extend 9", "ip.ttl", false),
        ("", "anno.paint", true),
    ] {
        assert_eq!(read(guard, field), guarded, "{guard} {field}");
    }
}

#[test]
fn depth_is_bounded() {
    use ir::Cond;
    let deep = |n: usize| {
        let mut block = vec![Op::drop("x")];
        for _ in 0..n {
            block = vec![Op::If(Cond::Const(true), block, vec![])];
        }
        Model::from_block(block)
    };
    assert!(!is_well_formed(&deep(300)));
    assert!(is_well_formed(&deep(90)));
    assert_found(
        "repeat 1 { repeat 1 { repeat 1 { repeat 1 { repeat 1 { } } } } } drop x",
        &["error too-deep at input 0, op 0, body, op 0, body, op 0, body, op 0, body, op 0"],
    );
}
