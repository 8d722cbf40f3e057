//! The text form: what is printed reads back the same, errors point at their place, and nothing
//! that can be written makes the parser fall.

#[allow(dead_code)]
mod arbitrary;

use catena_ir as ir;
use ir::{Cond, Diagnostic, FileId, HeaderSpace, Model, Sources, field, text};
use proptest::prelude::*;

const LIMIT: usize = 1 << 12;

fn model(source: &str) -> Result<Model, Vec<Diagnostic>> {
    text::parse_model(FileId(0), source)
}

proptest! {
    #[test]
    fn models_read_back(model in arbitrary::any_model()) {
        let printed = model.to_string();
        prop_assert_eq!(self::model(&printed), Ok(model), "{}", printed);
    }

    #[test]
    fn expressions_and_conditions_read_back(e in arbitrary::any_expr(), c in arbitrary::any_cond()) {
        prop_assert_eq!(text::parse_expr(FileId(0), &e.to_string()), Ok(e));
        prop_assert_eq!(text::parse_cond(FileId(0), &c.to_string()), Ok(c));
    }

    #[test]
    fn header_spaces_read_back(
        tests in prop::collection::vec((arbitrary::any_field(), arbitrary::any_set()), 0..5),
        any in any::<bool>(),
    ) {
        let tests = tests.into_iter().map(|(f, s)| f.is_in(s)).collect();
        let cond = if any { Cond::Any(tests) } else { Cond::All(tests) };
        let Ok(Some(space)) = HeaderSpace::from_cond(&cond, LIMIT) else {
            return Err(TestCaseError::reject("too many cubes"));
        };
        let back = text::parse_header_space(FileId(0), &space.to_string(), LIMIT);
        let back = back.map_err(|e| TestCaseError::fail(format!("{space}: {e:?}")))?;
        prop_assert_eq!(space.is_subset(&back, LIMIT), Ok(true));
        prop_assert_eq!(back.is_subset(&space, LIMIT), Ok(true));
    }

    #[test]
    fn no_text_makes_the_parser_fall(source in any_text()) {
        if let Err(errors) = model(&source) {
            prop_assert!(!errors.is_empty());
            let mut sources = Sources::new();
            let file = sources.add("x", source.as_str());
            for span in errors.iter().filter_map(Diagnostic::span) {
                prop_assert!(source.get(span.range()).is_some(), "{:?}", span);
                sources.line_column(file, span.start);
            }
        }
        let _ = text::parse_cond(FileId(0), &source);
        let _ = text::parse_header_space(FileId(0), &source, 50);
    }
}

/// Bits of the language in any order, and anything else.
fn any_text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "state",
        "input 0 {",
        "input",
        "}",
        "{",
        "(",
        ")",
        "\n",
        "if",
        "else",
        "match",
        "rule",
        "arm 0",
        "set ip.ttl = ",
        "ip.ttl",
        "r0",
        "r70000",
        "= ",
        "in",
        "not",
        "{0..1}",
        "10.0.0.0/8",
        "::/0",
        "drop a",
        "\"",
        "\"x\"",
        "\\u{",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "<<",
        "count",
        "#0",
        "net[64+8]",
        "net[65535+128]",
        "lookup ip.dst width 32 bind (r0) {",
        "=> (1)",
        "allocate r0 in 1..2",
        ",",
        "99999999999999999999999999999999999999999999",
        "0x",
        "1:2:3",
        "1.2.3",
        "load(net, 0, 16)",
        "compare(",
        "exists(",
        "//",
        "é",
        "everything",
        "read r1 = cells[0]",
        ": cells 8 [1, 2]",
    ];
    let piece = prop_oneof![
        9 => prop::sample::select(PIECES).prop_map(String::from),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(" "))
}

#[test]
fn a_model_reads_like_this() {
    let source = "\
state count: counter
state map of \"nat/rw\": flows 65536
state next: cells 16 [0, 5]

input 0 {
  if meta.avail_net in {0..19} {
    drop too-short
  }
  match {
    rule ip.src in {10.0.0.0/8, 192.168.0.1} && ip.proto == 6 => 0 \"allow src 10.0.0.0/8\"
    rule ip.ttl not in {0..1} || !exists(map, ip.src, ip.dst) => 1
    arm 0 {
    }
    arm 1 {
      set ip.dst = 10.0.0.1
    }
    else {
      opaque \"reassembly holds packets back\"
    }
  }
  r0 = load(net, 4 * (r1 + 2), 16) - -14 & 255
  lookup ip.dst width 32 bind (r1, r2) {
    0.0.0.0/0 => (0, 0)
    10.0.0.0/8 => (1, 10.0.0.1)
  } else {
    drop no-route
  }
  find map(ip.src, transport.sport) bind (r3) common (r4) else if r0 == 1 {
    allocate r5 in 1024..65535 from random(1024, 65535) unless map(r5) else {
      drop no-mapping
    }
    insert map
      forward (ip.src) => (r5)
      reverse (r5) => (ip.src)
      common (0) expiry now + 1000 guarantee now else {
      drop no-room
    }
  } else {
    update map(ip.src) common (1) expiry now guarantee now
  }
  repeat 8 {
    if compare(r0 < 5) {
      break
    }
    read r6 = next[0]
    write next[0] = (r6 + 1) % 2
  }
  store(transport, 2, 16) = sum16(net, 0, min(20, meta.len))
  set ip.ttl = ip.ttl - 1
  mark transport at position(net) + 20
  count count
  emit 0
}
";
    let parsed = model(source).expect("it reads");
    let printed = parsed.to_string();
    assert_eq!(model(&printed), Ok(parsed));
    // Printing differs only in that numbers without the notation of a field are in decimal.
    assert_eq!(printed, source.replace("(1, 10.0.0.1)", "(1, 167772161)"));
}

#[test]
fn errors_are_many_and_point_at_their_place() {
    let source = "\
input 0 {
  set ip.tll = 1
  dorp x
  emit (1
  r0 = 1 == 2
  if ip.ttl { emit 0 }
  count cuont
  drop late
}
input 2 {
}
";
    let errors = model(source).unwrap_err();
    let mut sources = Sources::new();
    let file = sources.add("m", source);
    let shown: Vec<String> = errors
        .iter()
        .map(|e| {
            let span = e.span().expect("a place");
            let at = sources.line_column(file, span.start);
            let help = e.help.as_deref().unwrap_or("-");
            format!("{}:{} {} [{}] {help}", at.line, at.column, e.code, sources.slice(span))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "2:7 unknown-field [ip.tll] did you mean `ip.ttl`?",
            "3:3 unknown-operation [dorp] did you mean `drop`?",
            "5:3 syntax [r0] -",
            "5:10 syntax [==] -",
            "6:6 syntax [ip.ttl] -",
            "7:9 unknown-state [cuont] -",
            "10:7 input-order [2] -",
        ]
    );
}

#[test]
fn numbers_and_fields_have_bounds() {
    for (source, code) in [
        ("input 0 { pull 340282366920938463463374607431768211456 }", "syntax"),
        ("input 0 { pull net[65500+100] }", "bad-field"),
        ("input 0 { pull net[0+129] }", "bad-width"),
        ("input 0 { pull net[70000+1] }", "number-too-large"),
        ("input 0 { pull load(net, 0, 0) }", "bad-width"),
        ("input 0 { if ip.src in {10.0.0.0/33} { } }", "bad-prefix"),
        ("input 0 { if ip.src in {10/8} { } }", "bad-prefix"),
        ("input 0 { drop \"x }", "syntax"),
    ] {
        let errors = model(source).unwrap_err();
        assert_eq!(errors[0].code, code, "{source}: {errors:?}");
    }
}

#[test]
fn depth_is_bounded() {
    let n = 100_000;
    let deep = [
        format!("input 0 {{ pull {}1{} }}", "(".repeat(n), ")".repeat(n)),
        format!("input 0 {{ pull 1{} }}", " + 1".repeat(n)),
        format!(
            "input 0 {{ pull {}1{} }}",
            "(".repeat(90),
            " + 1)".repeat(90) + &" + 1".repeat(200)
        ),
        format!("input 0 {{ if {}true {{ }} }}", "!".repeat(n)),
        format!("input 0 {{ pull {}1", "min(1, ".repeat(n)),
        format!("input 0 {}", "{ repeat 1".repeat(n)),
        format!("input 0 {{ {}", "if true { } else ".repeat(n)),
    ];
    for source in deep {
        let errors = model(&source).unwrap_err();
        assert_eq!(errors[0].code, "too-deep", "{errors:?}");
        assert!(errors.len() < 30);
    }
    // Chains of conditions are flat, however long.
    let long = format!("true{}", " && ip.ttl == 1 + ip.tos".repeat(n));
    assert!(text::parse_cond(FileId(0), &long).is_ok());
}

#[test]
fn spaces_have_words_for_all_and_nothing() {
    let space = |s| text::parse_header_space(FileId(0), s, LIMIT);
    assert_eq!(space("everything"), Ok(HeaderSpace::full()));
    assert_eq!(space("nothing"), Ok(HeaderSpace::empty()));
    let masked = HeaderSpace::masked(field::ip::FLAGS_FRAG, 0, 0x3fff);
    assert_eq!(space("ip.flags_frag & 0x3fff == 0"), Ok(masked));
    assert_eq!(space("ip.src == ip.dst").unwrap_err()[0].code, "not-a-space");
}
