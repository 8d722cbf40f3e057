//! Splitting, unquoting and expanding configuration strings.

use catena_click::Argument;
use catena_click::config::{Text, Variable, quote, unquote, words};
use ir::{FileId, Span};
use proptest::prelude::*;

fn split(text: &str) -> Vec<String> {
    Text::bare(text).arguments().into_iter().map(|a| a.text).collect()
}

fn expand(text: &str) -> String {
    let text = Text::bare(text);
    text.expand(&mut |variable| {
        let value = match variable {
            Variable::Name("a") => "1, 2",
            Variable::Name("q") => "x\"$\\\ny\u{e9}",
            Variable::Name("0") => "zero",
            Variable::Name("?") => "status",
            Variable::Name("empty") => "",
            Variable::Name(_) => return None,
            Variable::Call("c.count") => "42",
            Variable::Call("get 1, 2") => "nested",
            Variable::Call(_) => return None,
        };
        Some(Argument::bare(value))
    })
    .as_str()
    .to_owned()
}

#[test]
fn arguments_end_at_commas_outside_quotations_and_comments() {
    assert_eq!(split(""), [""; 0]);
    assert_eq!(split("  /* only a comment */ "), [""; 0]);
    assert_eq!(split("a, b , c"), ["a", "b", "c"]);
    assert_eq!(split("a,, b,"), ["a", "", "b"]);
    assert_eq!(split(","), [""]);
    assert_eq!(
        split("\"x, y\", 'p, q', \\<2c, /*>*/ 2c>"),
        ["\"x, y\"", "'p, q'", "\\<2c, /*>*/ 2c>"]
    );
    assert_eq!(split("a\\, b"), ["a\\", "b"]);
}

#[test]
fn comments_become_spaces_and_other_white_space_stays() {
    assert_eq!(split(" a  b\t\nc "), ["a  b\t\nc"]);
    assert_eq!(split("a /* Comment */       b"), ["a b"]);
    assert_eq!(split("a/**/b // end\n"), ["a b"]);
    assert_eq!(split("a // one,\n, /* x */ b\r// two\rc"), ["a", "b c"]);
    assert_eq!(split("\" /* in */ \" '// too'"), ["\" /* in */ \" '// too'"]);
    assert_eq!(split("a /* never closed"), ["a"]);
}

#[test]
fn quotations_that_are_never_closed_end_with_the_text() {
    assert_eq!(split("\"a, b"), ["\"a, b"]);
    assert_eq!(split("'a, b"), ["'a, b"]);
    assert_eq!(split("\\<61, b"), ["\\<61, b"]);
    assert_eq!(split("\"\\"), ["\"\\"]);
    assert_eq!(unquote("\"a\\"), b"a\\");
    assert_eq!(unquote("\\<61 6"), b"a");
}

#[test]
fn unquoting_removes_one_level_of_quotation() {
    assert_eq!(unquote("\"\\n\" abc /* 123 */ '/* def */'"), b"\n abc /* def */");
    assert_eq!(unquote("a\"b\"'c'd"), b"abcd");
    assert_eq!(unquote("'(c\\n'"), b"(c\\n");
    assert_eq!(unquote("\"q\\\"q\"'s't\"\\<DE ad>\""), b"q\"qst\xde\xad");
    assert_eq!(unquote("\\<48656c6C 6f 2 /* And finally > */ 1>"), b"Hello!");
    assert_eq!(unquote("\"\\t\\x41\\102\\\\\\$\\,\\q\\\nz\""), b"\tAB\\$,qz");
    assert_eq!(unquote("\"\\x1041 \\777\""), b"A \xff");
    assert_eq!(unquote("a\\nb"), b"a\\nb");
    assert_eq!(unquote("\"\""), b"");
    assert_eq!(unquote("\"\u{e9}\""), "\u{e9}".as_bytes());
}

#[test]
fn quoting_is_undone_by_unquoting() {
    let all: Vec<u8> = (0..=255).collect();
    for bytes in [&all[..], b"", b"a b", b"$x, \"y\"\r\n\t\\"] {
        let quoted = quote(bytes);
        assert_eq!(unquote(&quoted), bytes);
        assert_eq!(split(&quoted), [quoted.as_str()]);
        assert_eq!(expand(&quoted), quoted);
    }
    assert_eq!(quote(b"a\t\"$\x80"), "\"a\\t\\\"\\$\\200\"");
}

#[test]
fn words_end_at_white_space_outside_quotations() {
    let all = |text| words(text).collect::<Vec<_>>();
    assert_eq!(all("a  b, c"), ["a", "b,", "c"]);
    assert_eq!(
        all("  'a /*?*/ b'c /* x */ d/**/e \\<61 62>f"),
        ["'a /*?*/ b'c", "d", "e", "\\<61 62>f"]
    );
    assert_eq!(all(" "), [""; 0]);
    let (first, rest) = Argument::bare("a 'b c' d").split_word();
    assert_eq!((first.text.as_str(), rest.text.as_str()), ("a", "'b c' d"));
}

#[test]
fn keywords_are_followed_by_a_value() {
    let keyword = |text| {
        let argument = Argument::bare(text);
        argument.keyword().map(|(keyword, value)| (keyword.to_owned(), value.text))
    };
    assert_eq!(keyword("STOP  true"), Some(("STOP".into(), "true".into())));
    assert_eq!(keyword("a.b:c?! x y"), Some(("a.b:c?!".into(), "x y".into())));
    assert_eq!(keyword("STOP"), None);
    assert_eq!(keyword("1/2 3"), None);
    assert_eq!(keyword("\"STOP\" true"), None);
    assert_eq!(keyword(""), None);
}

#[test]
fn variables_expand_in_bare_text_and_double_quotes() {
    assert_eq!(expand("$a/24 ${a}b $0"), "1, 2/24 1, 2b zero");
    assert_eq!(expand("\"$a\" '$a' \"\\$a\" \\$a"), "\"1, 2\" '$a' \"\\$a\" \\1, 2");
    assert_eq!(expand("\"$q\""), "\"x\\\"\\$\\\\\\ny\\303\\251\"");
    assert_eq!(expand("// $a\n$a /* $a */"), "// $a\n1, 2 /* $a */");
    assert_eq!(expand("$? x$empty."), "status x.");
    assert_eq!(split(&expand("$a, b")), ["1", "2", "b"]);
}

#[test]
fn unknown_variables_stay_and_braces_give_defaults() {
    assert_eq!(expand("$none ${none} $ $$ $- ${"), "$none ${none} $ $$ $- ${");
    assert_eq!(expand("${none-a b} ${a-x} \"${none-\\\"}\""), "a b 1, 2 \"\\\\\\\"\"");
    assert_eq!(expand("$(none) $(unclosed"), "$(none) $(unclosed");
    // As shells have it, `:-` also fills in for an empty value.
    assert_eq!(expand("x${empty-1}y x${empty:-1-2}y ${none:-3} ${a:-4}"), "xy x1-2y 3 1, 2");
    assert_eq!(expand("${none:} ${none:-}."), "${none:} .");
}

#[test]
fn calls_expand_the_variables_inside_them() {
    assert_eq!(expand("$(c.count)+\"$(c.count)\""), "42+\"42\"");
    assert_eq!(expand("$(get $a)"), "nested");
    assert_eq!(expand("$(put $a)"), "$(put 1, 2)");
    assert_eq!(expand("$(x ')' \")\" \\) $0 (y))"), "$(x ')' \")\" \\) zero (y))");
}

/// A configuration and a variable's value in one source.
const SOURCE: &str = "X(foo bar, 2); Strip( $v/24, a /*c*/ b, $v, \"$v\" )";

fn span_of(text: &str) -> Span {
    let start = SOURCE.find(text).expect("part of the source");
    Span::new(FileId(0), start, start + text.len())
}

#[test]
fn arguments_know_where_they_stand_also_through_variables() {
    let inside = "$v/24, a /*c*/ b, $v, \"$v\"";
    let value = Text::new("foo bar", span_of("foo bar")).arguments().remove(0);
    let text = Text::new(inside, span_of(inside)).expand(&mut |_| Some(value.clone()));
    let arguments = text.arguments();
    let under: Vec<_> = arguments.iter().map(|a| &SOURCE[a.span.range()]).collect();
    assert_eq!(under, ["$v/24", "a /*c*/ b", "foo bar", "\"$v\""]);
    let texts: Vec<_> = arguments.iter().map(|a| a.text.as_str()).collect();
    assert_eq!(texts, ["foo bar/24", "a b", "foo bar", "\"foo bar\""]);
    // Words of what came whole through a variable are found where the value is written.
    let words: Vec<_> = arguments[2].words().map(|w| &SOURCE[w.span.range()]).collect();
    assert_eq!(words, ["foo", "bar"]);
    // In what was put together, a word that comes from one place is found there, another where it is used.
    let words: Vec<_> = arguments[0].words().map(|w| &SOURCE[w.span.range()]).collect();
    assert_eq!(words, ["foo", "$v/24"]);
    assert_eq!(&SOURCE[arguments[0].locate(4..5).range()], "b");
}

#[test]
fn a_value_from_nowhere_is_found_where_the_variable_stands() {
    let inside = "$v/24, a /*c*/ b, $v, \"$v\"";
    let text = Text::new(inside, span_of(inside)).expand(&mut |_| Some(Argument::bare("1")));
    let arguments = text.arguments();
    assert_eq!(&SOURCE[arguments[0].span.range()], "$v/24");
    assert_eq!(&SOURCE[arguments[2].span.range()], "$v");
    assert!(arguments.iter().all(Argument::has_source));
    assert!(!Text::bare("a").arguments()[0].has_source());
}

#[test]
fn nested_calls_do_not_exhaust_the_stack() {
    let deep = "$(".repeat(100_000) + &")".repeat(100_000);
    assert!(!expand(&deep).is_empty());
    let open = "$(${".repeat(100_000);
    assert_eq!(expand(&open), open);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spans_show_the_text_of_arguments_and_words(text in "[ab,$ \n\r\t(){}/*'\"\\\\<>6é-]{0,60}") {
        let span = Span::new(FileId(0), 0, text.len());
        for argument in Text::new(&text, span).arguments() {
            let written = &text[argument.span.range()];
            prop_assert!(written == argument.text || written.contains("/*") || written.contains("//"));
            prop_assert_eq!(split(written).concat(), argument.text.as_str());
            for word in argument.words() {
                prop_assert!(argument.text.contains(&word.text));
                prop_assert!(argument.span.start <= word.span.start && word.span.end <= argument.span.end);
            }
            unquote(&argument.text);
        }
    }

    #[test]
    fn expansion_keeps_what_is_not_a_variable(text in "[ab$ \n(){}/*'\"\\\\<>6é?#-]{0,60}") {
        let span = Span::new(FileId(0), 0, text.len());
        let whole = Text::new(&text, span);
        let same = whole.expand(&mut |_| None);
        if !text.contains("${") && !text.contains("$(") {
            prop_assert_eq!(same.as_str(), &text);
            prop_assert_eq!(same.arguments(), whole.arguments());
        }
        let expanded = whole.expand(&mut |_| Some(Argument::bare("x, y")));
        for argument in expanded.arguments() {
            prop_assert!(text.get(argument.span.range()).is_some());
        }
    }

    #[test]
    fn any_bytes_survive_quoting(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let quoted = quote(&bytes);
        prop_assert_eq!(unquote(&quoted), bytes);
        prop_assert_eq!(split(&quoted), [quoted.as_str()]);
    }
}
