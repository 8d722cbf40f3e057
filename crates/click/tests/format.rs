//! The formatter's layout, and its law: the meaning stays, and formatting twice changes nothing more.

mod shape;

use catena_click::format;
use ir::{Sources, has_errors};
use proptest::collection::vec;
use proptest::prelude::*;
use shape::{formatted, parsed, shape};

/// Formats a text after checking the law on it.
fn lawful(text: &str) -> String {
    let (before, _) = parsed(text);
    let output = formatted(text);
    let (after, diagnostics) = parsed(&output);
    assert!(!has_errors(&diagnostics), "{text}\n----\n{output}\n{diagnostics:#?}");
    assert_eq!(shape(&before), shape(&after), "{text}\n----\n{output}");
    assert_eq!(comments(text), comments(&output), "{text}\n----\n{output}");
    let again = formatted(&output);
    assert_eq!(output, again, "{text}\n----\n{output}");
    output
}

/// The letters of all comments, sorted, as they may change places.
fn comments(text: &str) -> Vec<char> {
    let mut marks: Vec<char> = text.chars().filter(|c| matches!(c, 'ä'..='ü')).collect();
    marks.sort_unstable();
    marks
}

#[test]
fn statements_are_spaced_and_closed() {
    let text = "a,b::Counter;;src::FromDump( in.pcap,STOP   true )->[ 1 ]a [0]->Strip(14)->d::{[0 , 1]=>[0-]}\n\n\n\ndefine( $A 1,$B 2 )elementclass T Counter";
    assert_eq!(
        lawful(text),
        "a, b :: Counter;\n\
         src :: FromDump(in.pcap, STOP   true) -> [1] a[0] -> Strip(14) -> d :: { [0,1] => [0-] };\n\n\
         define($A 1, $B 2);\n\
         elementclass T Counter;\n"
    );
}

#[test]
fn long_chains_break_before_arrows_and_long_configurations_after_commas() {
    let text = "source :: FromDump(a-long-name-of-a-file.pcap, STOP true) -> filter :: IPFilter(allow src 10.0.0.0/8, allow src 20.0.0.0/8 && dst port 80, deny all, allow nothing at all) -> Discard;";
    assert_eq!(
        lawful(text),
        "source :: FromDump(a-long-name-of-a-file.pcap, STOP true)
  -> filter :: IPFilter(
    allow src 10.0.0.0/8,
    allow src 20.0.0.0/8 && dst port 80,
    deny all,
    allow nothing at all
  )
  -> Discard;
"
    );
}

#[test]
fn a_first_argument_on_a_new_line_keeps_one_argument_a_line() {
    let text = "rt :: Lookup(\n1 2,  3 4, // last of the first\n // before\n 5 6 /* x */);";
    assert_eq!(
        lawful(text),
        "rt :: Lookup(
  1 2,
  3 4, // last of the first
  // before
  5 6 /* x */
);
"
    );
}

#[test]
fn compounds_stay_on_the_line_that_they_were_written_on() {
    assert_eq!(
        lawful(
            "elementclass T{input->n::Counter->output}\nelementclass U {\n$p,K $k|\ninput->output;;|| ...}"
        ),
        "elementclass T { input -> n :: Counter -> output }
elementclass U { $p, K $k |
  input -> output;
|| ...
}
"
    );
    assert_eq!(
        lawful("elementclass M { input -> output\n|| $p | input -> P($p)->output || a || ...}"),
        "elementclass M {
  input -> output;
|| $p |
  input -> P($p) -> output;
||
  a;
|| ...
}
"
    );
    assert_eq!(
        lawful("a => ([0] -> b -> [0]\n; [1] -> [1]) => c"),
        "a
  => (
    [0] -> b -> [0];
    [1] -> [1];
  )
  => c;
"
    );
}

#[test]
fn comments_stay_where_they_belong() {
    let text = "// ä: first\n\n\n/* ö */ a /* ü */ :: B; // ë: behind\n\n// ï\n\n  c -> // é: inside\n d\n // è: before e\n -> e;\nelementclass X { // ê\n  // ì\n\n  a; // í\n\n // î\n}\n// ñ";
    assert_eq!(
        lawful(text),
        "// ä: first

/* ö */
a :: /* ü */ B; // ë: behind

// ï

c // é: inside
  -> d
  // è: before e
  -> e;
elementclass X { // ê
  // ì

  a; // í

  // î
}
// ñ
"
    );
}

#[test]
fn line_directives_stay_at_the_start_of_their_lines() {
    let text = "#! /usr/bin/click\na ->\n# 4 \"x\"\n  b(1,\n# 7 \"y\"\n2);";
    assert_eq!(lawful(text), "#! /usr/bin/click\na\n# 4 \"x\"\n  -> b(1,\n# 7 \"y\"\n2);\n");
}

#[test]
fn empty_arguments_and_odd_ports_survive() {
    assert_eq!(
        lawful("a(,); b(,,); c(x,); d(); e( /* ä */ )"),
        "a(,);\nb(,,);\nc(x);\nd();\ne(/* ä */);\n"
    );
    assert_eq!(lawful("a [] => [1,] b [0-2,5-] => c"), "a[0-] => [1-] b[0-2,5-] => c;\n");
    assert_eq!(
        lawful("{ -> a -> ; [0], [1] -> b -> [1], [0] }"),
        "{ -> a ->; [0], [1] -> b -> [1], [0] };\n"
    );
    assert_eq!(lawful(""), "");
    assert_eq!(lawful(" ;; // ä"), "// ä\n");
}

#[test]
fn what_does_not_parse_is_not_formatted() {
    let mut sources = Sources::new();
    let file = sources.add("test.click", "a -> ;");
    assert!(format(&mut sources, file).is_err());
}

// Random files, as tokens with random blanks between them.

fn blank() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\r\n\r\n\n".to_owned()),
        1 => Just(" /* ä */ ".to_owned()),
        1 => Just("/*ö*/".to_owned()),
        1 => Just(" // ü\n".to_owned()),
        1 => Just("\n  // ë \n".to_owned()),
        1 => Just("\n\n /* ï */\n".to_owned()),
        1 => Just(" /* é\n  é */ ".to_owned()),
        1 => Just("\n# 12 \"è\" \n".to_owned()),
    ]
}

fn config_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z0-9.&$-]{1,6}(/[a-z0-9.&$-]{1,6})?",
        1 => Just("\"q, \\\" // (\"".to_owned()),
        1 => Just("'s, /* ) \n'".to_owned()),
        1 => Just("\\<61 /* > */ 62>".to_owned()),
        1 => Just("(x, y)".to_owned()),
        3 => Just(",".to_owned()),
        1 => Just(", ,".to_owned()),
    ]
}

fn config() -> impl Strategy<Value = String> {
    vec((config_piece(), blank()), 0..8).prop_map(|pieces| {
        let inside: String = pieces.into_iter().map(|(piece, blank)| piece + &blank).collect();
        format!("({inside})")
    })
}

fn maybe(strategy: impl Strategy<Value = Vec<String>>) -> impl Strategy<Value = Vec<String>> {
    prop_oneof![Just(Vec::new()), strategy]
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

/// The lists of tokens with a separating token between them.
fn joined(lists: Vec<Vec<String>>, separator: &str) -> Vec<String> {
    lists.join(&separator.to_owned())
}

fn name() -> impl Strategy<Value = Vec<String>> {
    "[a-zA-Z][a-z0-9_@]{0,9}(/[a-z]{1,3})?".prop_map(|name| vec![name])
}

fn ports() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        Just("[ 0 ]"),
        Just("[ 1 , 2 ]"),
        Just("[ 0 - 3 , 7 ]"),
        Just("[ 1 - ]"),
        Just("[ 2 , ]"),
        Just("[ ]"),
    ]
    .prop_map(|ports| ports.split(' ').map(str::to_owned).collect())
}

fn parameters() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        4 => Just(""),
        1 => Just("|"),
        2 => Just("$a |"),
        2 => Just("$a , KEY $k , __REST__ $rest |"),
    ]
    .prop_map(|text| text.split_whitespace().map(str::to_owned).collect())
}

fn flatten(lists: Vec<Vec<String>>) -> Vec<String> {
    lists.concat()
}

fn compound(
    statement: impl Strategy<Value = Vec<String>> + Clone,
) -> impl Strategy<Value = Vec<String>> {
    let body = (parameters(), vec(statement, 0..4)).prop_map(|(p, s)| [p, flatten(s)].concat());
    (vec(body, 1..3), any::<bool>()).prop_map(|(bodies, extends)| {
        let end = if extends { vec!["||".to_owned(), "...".to_owned()] } else { Vec::new() };
        [one("{"), joined(bodies, "||"), end, one("}")].concat()
    })
}

/// Statements in a file (`nested` false) or inside a compound.
fn statement(depth: u32, nested: bool) -> BoxedStrategy<Vec<String>> {
    let class = if depth == 0 {
        name().boxed()
    } else {
        prop_oneof![3 => name(), 1 => compound(statement(depth - 1, true))].boxed()
    };
    let configured = || maybe(config().prop_map(|config| vec![config]));
    let declared = (name(), class.clone(), configured())
        .prop_map(|(name, class, config)| [name, one("::"), class, config].concat());
    let group = if depth == 0 {
        name().boxed()
    } else {
        vec(statement(depth - 1, true), 0..3)
            .prop_map(|statements| [one("("), flatten(statements), one(")")].concat())
            .boxed()
    };
    let node = prop_oneof![
        4 => (name(), configured()).prop_map(|(name, config)| [name, config].concat()),
        2 => declared,
        1 => group,
    ]
    .boxed();
    let node = if depth == 0 {
        node
    } else {
        let inline = (compound(statement(depth - 1, true)), configured());
        prop_oneof![5 => node, 1 => inline.prop_map(|(class, config)| [class, config].concat())]
            .boxed()
    };
    let arrow = prop_oneof![4 => Just("->"), 1 => Just("=>"), 1 => Just("~HTTP>")];
    let inner = (maybe(ports()), node.clone(), maybe(ports()))
        .prop_map(|(inputs, node, outputs)| [inputs, node, outputs].concat());
    let middle = vec(inner, 1..3).prop_map(|endpoints| joined(endpoints, ","));
    let implied = prop_oneof![Just(Vec::new()), ports()];
    let first = (node.clone(), maybe(ports())).prop_map(|(node, ports)| [node, ports].concat());
    let last = (maybe(ports()), node).prop_map(|(ports, node)| [ports, node].concat());
    let first =
        if nested { prop_oneof![3 => first, 1 => implied.clone()].boxed() } else { first.boxed() };
    let last = if nested { prop_oneof![3 => last, 1 => implied].boxed() } else { last.boxed() };
    let chain = (first, vec((arrow.clone(), middle), 0..4), arrow, last).prop_map(
        |(first, middle, arrow, last)| {
            let middle = middle.into_iter().map(|(arrow, stage)| [one(arrow), stage].concat());
            [first, flatten(middle.collect()), one(arrow), last, one(";")].concat()
        },
    );
    let declaration =
        (vec(name(), 1..4), class.clone(), configured()).prop_map(|(names, class, config)| {
            [joined(names, ","), one("::"), class, config, one(";")].concat()
        });
    let elementclass =
        (name(), class).prop_map(|(name, class)| [one("elementclass"), name, class].concat());
    prop_oneof![
        4 => chain,
        2 => declaration,
        2 => elementclass,
        1 => Just(one(";")),
        1 => Just(vec!["define".to_owned(), "($A 1, /* ö */ $B 'x, y')".to_owned()]),
        1 => Just(vec!["require".to_owned(), "(package p, library \"l.click\")".to_owned(), ";".to_owned()]),
    ]
    .boxed()
}

fn file() -> impl Strategy<Value = String> {
    (vec(statement(2, false), 0..4), vec(blank(), 1..20)).prop_map(|(statements, blanks)| {
        let tokens = flatten(statements);
        let blanks = blanks.iter().map(String::as_str).cycle();
        tokens.iter().zip(blanks).flat_map(|(token, blank)| [token.as_str(), blank]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formatting_keeps_the_meaning_and_is_idempotent(text in file()) {
        let (_, diagnostics) = parsed(&text);
        prop_assert!(!has_errors(&diagnostics), "{}\n{:#?}", text, diagnostics);
        lawful(&text);
    }

    #[test]
    fn any_text_parses_without_a_crash(text in "[a-c0-2 \n\r\t(){}\\[\\],;:|$#/*'\"\\\\<>~=é.-]{0,80}") {
        let (_, diagnostics) = parsed(&text);
        if !has_errors(&diagnostics) {
            lawful(&text);
        }
    }
}

#[test]
fn the_deepest_nesting_is_formatted() {
    for (open, close) in [("{", "}"), ("{ -> (", ") -> }"), ("{\n", "}")] {
        let depth = catena_click::MAX_DEPTH / open.matches(['{', '(']).count();
        lawful(&(open.repeat(depth) + "a" + &close.repeat(depth)));
    }
}
