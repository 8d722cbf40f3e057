//! The tree that each construct of the language becomes, and the errors of what is not the language.

mod shape;

use catena_click::ast::{Class, Node, Statement};
use ir::{Diagnostic, Sources};
use shape::{parsed, shape_of};

/// The codes and the texts under the primary labels.
fn errors(text: &str) -> Vec<(&'static str, &str)> {
    let (_, diagnostics) = parsed(text);
    let under = |d: &Diagnostic| d.span().map_or("", |span| &text[span.range()]);
    diagnostics.iter().map(|d| (d.code, under(d))).collect()
}

#[test]
fn a_class_spreads_over_the_names_of_a_declaration() {
    assert_eq!(shape_of("a, b, c :: Counter(1, 2);"), "a, b, c :: Counter(<1>, <2>)");
    assert_eq!(shape_of("a :: Counter"), "a :: Counter");
    // With an arrow, ports or a second class behind it, it is a stage of a chain.
    assert_eq!(shape_of("a, b :: Counter -> c"), "a, (b :: Counter) -> c");
    assert_eq!(shape_of("a :: X, b :: Y"), "(a :: X), (b :: Y)");
    assert_eq!(shape_of("a, b"), "a, b");
}

#[test]
fn chains_hold_inline_declarations_anonymous_elements_and_ports() {
    assert_eq!(
        shape_of("src :: From(x) -> [1] b [ 2 ] -> Strip(14)->[0]c::D[1] -> e/f@2"),
        "(src :: From(<x>)) -> [1]b[2] -> Strip(<14>) -> [0](c :: D)[1] -> e/f@2"
    );
    assert_eq!(shape_of("a ~> b ~HTTP> c ~/HTTP> d"), "a ~> b ~HTTP> c ~/HTTP> d");
    assert_eq!(shape_of("a\n-> b c\n-> d ;;; e"), "a -> b; c -> d; e");
}

#[test]
fn ports_are_lists_of_ranges_and_may_be_open() {
    assert_eq!(shape_of("a [0,1,2] => [0-2, 0x10, 010] b"), "a[0,1,2] => [0-2,16,8]b");
    assert_eq!(shape_of("a [] => [1-] b"), "a[0,...] => [1,...]b");
    assert_eq!(shape_of("a [1,] => b"), "a[1,...] => b");
}

#[test]
fn ports_alone_mean_input_and_output_inside_compounds_and_groups() {
    assert_eq!(
        shape_of("n :: { [0,1,2] => [0,1,2] };"),
        "n :: {  | <input>[0,1,2] => [0,1,2]<output> }"
    );
    assert_eq!(
        shape_of("x => ( [0] -> a :: C -> [0]; -> b -> ) => y"),
        "x => ( <input>[0] -> (a :: C) -> [0]<output>; <input> -> b -> <output> ) => y"
    );
    assert_eq!(
        shape_of("{ [0], [1] -> a, b -> [0], [1] }"),
        "{  | <input>[0], <input>[1] -> a, b -> [0]<output>, [1]<output> }"
    );
    assert_eq!(errors("-> a"), [("unexpected-token", "->")]);
    assert_eq!(errors("a -> ;"), [("unexpected-token", ";")]);
    assert_eq!(errors("{ a -> [0], [1] b -> c }"), [("implicit-port", "[0], [1] b ->")]);
}

#[test]
fn compounds_have_parameters_overloads_and_extensions() {
    assert_eq!(
        shape_of(
            "elementclass X { $a, KEY $k, __REST__ $r | input -> output || | a || $p | b || ... }"
        ),
        "class X = { $a, KEY $k, __REST__ $r | input -> output ||  | a || $p | b || ... }"
    );
    assert_eq!(shape_of("elementclass Tally Counter; a"), "class Tally = Counter; a");
    assert_eq!(
        shape_of("x :: { $n | a -> B($n) }(3) -> { c }(4)"),
        "(x :: { $n | a -> B(<$n>) }(<3>)) -> {  | c }(<4>)"
    );
    assert_eq!(shape_of("elementclass E {}"), "class E = {  |  }");
}

#[test]
fn parameters_out_of_order_or_declared_twice_are_errors() {
    assert_eq!(errors("{ $a, $a | b }"), [("bad-parameter", "$a")]);
    assert_eq!(errors("{ K $a, K $b | b }"), [("bad-parameter", "K")]);
    assert_eq!(errors("{ K $a, $b | b }"), [("bad-parameter", "$b")]);
    assert_eq!(errors("{ __REST__ $a, K $b | b }"), [("bad-parameter", "K $b")]);
    assert_eq!(errors("{ $a $b | b }"), [("unexpected-token", "$b")]);
    assert_eq!(errors("{ a | b }"), [("unexpected-token", "|")]);
}

#[test]
fn define_and_require_are_taken_apart() {
    assert_eq!(
        shape_of("define($A 1, $B a b /* c */ d,, $C)"),
        "define $A = <1> $B = <a b d> $C = <>"
    );
    assert_eq!(
        shape_of("require(package p); require(q, library \"x y.click\", compact_config)"),
        "require Package(\"p\"); require Package(\"q\") Library(\"x y.click\") CompactConfig"
    );
    assert_eq!(
        errors("define(A 1, $B 2, $C-D 3)"),
        [("bad-definition", "A"), ("bad-definition", "$C-D")]
    );
    assert_eq!(
        errors("require(package, library a b)"),
        [("bad-requirement", "package"), ("bad-requirement", "library a b")]
    );
    assert_eq!(errors("define $A 1; a"), [("unexpected-token", "$A")]);
}

#[test]
fn configurations_are_raw_text_with_spans() {
    let text = "a :: B( x, \"y)\" /* ) */, 'z(' // )\n, \\<29 /*>*/ 28>, (p, q));";
    let (file, diagnostics) = parsed(text);
    assert_eq!(diagnostics, []);
    let Statement::Declaration(declaration) = &file.statements[0] else { panic!("{file:?}") };
    let config = declaration.config.as_ref().expect("a configuration");
    assert_eq!(&text[config.span.range()], config.text);
    assert!(config.text.ends_with("(p, q)"));
    let arguments: Vec<_> =
        config.arguments().iter().map(|a| text[a.span.range()].to_owned()).collect();
    assert_eq!(arguments, ["x", "\"y)\"", "'z('", "\\<29 /*>*/ 28>", "(p", "q)"]);
}

#[test]
fn line_directives_name_the_lines_and_vanish_from_configurations() {
    let text = "# 100 \"else where.click\"\na(1,\n# line 7 \"b\"\n2)\n# 9 \"\" 3\n-> b";
    let mut sources = Sources::new();
    let id = sources.add("test.click", text);
    let (file, diagnostics) = catena_click::parse(&mut sources, id);
    assert_eq!(diagnostics, []);
    let Statement::Chain(chain) = &file.statements[0] else { panic!("{file:?}") };
    assert_eq!(sources.landmark(chain.stages[0][0].span), "else where.click:100");
    assert_eq!(sources.landmark(chain.stages[1][0].span), "test.click:9");
    let Node::Name { config: Some(config), .. } = &chain.stages[0][0].node else {
        panic!("{chain:?}")
    };
    let arguments = config.arguments();
    assert_eq!(arguments.iter().map(|a| a.text.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(sources.landmark(arguments[1].span), "b:7");
    assert_eq!(errors("a;\n#include x\nb"), [("unknown-directive", "#include x")]);
}

#[test]
fn comments_are_kept_aside() {
    let text = "#! /usr/bin/click\n// one\na /* two */ -> b; // three";
    let (file, diagnostics) = parsed(text);
    assert_eq!(diagnostics, []);
    let comments: Vec<_> = file.comments.iter().map(|span| &text[span.range()]).collect();
    assert_eq!(comments, ["#! /usr/bin/click", "// one", "/* two */", "// three"]);
    assert_eq!(errors("a /* b"), [("unclosed-comment", "/*")]);
}

#[test]
fn every_error_of_a_file_is_reported() {
    let text = "a :: ;\nb -> -> c;\nd : E;\nf [x] -> g;\nelementclas H { i };\nj - > k;\nl }\nm <";
    assert_eq!(
        errors(text),
        [
            ("unexpected-token", ";"),
            ("unexpected-token", "->"),
            ("unexpected-token", ":"),
            ("bad-port", "x"),
            ("unexpected-token", "elementclas"),
            ("unexpected-token", "- >"),
            ("unexpected-token", "}"),
            ("unexpected-token", "<"),
        ]
    );
}

#[test]
fn what_an_erroneous_chain_declares_is_still_declared() {
    let (file, _) = parsed("a :: X -> -> b :: Y; c :: Z(3 -> d :: W; e :: V");
    let mut names = Vec::new();
    for statement in &file.statements {
        match statement {
            Statement::Declaration(d) => names.extend(d.names.iter().map(|n| n.text.clone())),
            Statement::Chain(chain) => {
                for endpoint in chain.stages.iter().flatten() {
                    if let Node::Declaration { name, class: Class::Named(_), .. } = &endpoint.node {
                        names.push(name.text.clone());
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

#[test]
fn ports_must_face_the_chain_and_be_small_numbers() {
    assert_eq!(errors("[0] a -> b [1]"), [("useless-port", "[0]"), ("useless-port", "[1]")]);
    assert_eq!(errors("a [70000] -> [3-1] b"), [("bad-port", "70000"), ("bad-port", "3-1")]);
    assert_eq!(errors("a [0 -> b"), [("unexpected-token", "->")]);
    assert_eq!(
        errors("3 :: X; a/4 :: X; a5 :: X"),
        [("bad-element-name", "3"), ("bad-element-name", "a/4")]
    );
}

#[test]
fn unclosed_delimiters_are_one_error_and_what_follows_is_read() {
    assert_eq!(
        errors("a -> Strip(14 -> b;\nc :: ;"),
        [("unclosed-delimiter", "("), ("unexpected-token", ";")]
    );
    assert_eq!(errors("{ ( a; { b"), [("unclosed-delimiter", "{")]);
    assert_eq!(
        errors("a(\"x) -> b;\nc :: ;"),
        [("unclosed-quote", "\""), ("unexpected-token", ";")]
    );
    assert_eq!(errors("{ ( a } ) b"), [("unexpected-token", "}"), ("unexpected-token", ")")]);
}

#[test]
fn an_extension_stands_last() {
    assert_eq!(errors("elementclass X { ... }"), [("bad-extension", "...")]);
    assert_eq!(errors("elementclass X { a || ... b }"), [("bad-extension", "...")]);
}
