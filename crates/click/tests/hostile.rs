//! Bad text yields errors, not crashes: every input here once is repeated to a megabyte.

mod shape;

use ir::has_errors;
use shape::parsed;

const PIECES: [&str; 34] = [
    "(",
    "{",
    "[",
    "a(",
    "a{",
    "a::{",
    "a::",
    "$",
    "\"",
    "'",
    "/*",
    "a(\"",
    "\\<",
    "->",
    "=>",
    "||",
    "a->",
    "#\n",
    "# 1\n",
    "\0",
    "\r",
    "define(",
    "elementclass a{",
    "require(\"",
    "a[0-",
    ")",
    "}",
    "{||",
    "{...",
    "{$a,",
    "a(/*",
    "é",
    "(a,",
    "~/",
];

#[test]
fn repeated_pieces_do_not_crash_the_parser() {
    for piece in PIECES {
        let text = piece.repeat(1_000_000 / piece.len());
        let (file, diagnostics) = parsed(&text);
        let harmless = matches!(piece, "\r" | "# 1\n");
        assert_eq!(has_errors(&diagnostics), !harmless, "{piece:?}");
        assert!(diagnostics.len() <= 402, "{piece:?}: {}", diagnostics.len());
        for statement in &file.statements {
            assert!(text.get(statement.span().range()).is_some(), "{piece:?}");
        }
    }
}

#[test]
fn every_cut_of_a_text_parses_without_a_crash() {
    let text = "elementclass X { $a, K $k | input -> [0] y :: { -> Z('a', \"b\\<61>\") -> } [1-2] => output || ... }\n\
                # 4 \"é\"\ndefine($V 1); /* c */ require(library \"x\"); a, b :: X(1, K ${V}) ~> ( [0] -> [0] ); // end";
    for start in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        for end in (start..=text.len()).step_by(3).filter(|&at| text.is_char_boundary(at)) {
            let (file, diagnostics) = parsed(&text[start..end]);
            for label in diagnostics.iter().flat_map(|d| &d.labels) {
                assert!(text[start..end].get(label.span.range()).is_some());
            }
            assert!(file.statements.len() <= end - start);
        }
    }
}

#[test]
fn nesting_to_the_limit_is_accepted_and_beyond_it_is_one_error() {
    let nested = |depth: usize| "{".repeat(depth) + "a" + &"}".repeat(depth);
    assert_eq!(parsed(&nested(catena_click::MAX_DEPTH)).1, []);
    let (_, diagnostics) = parsed(&nested(catena_click::MAX_DEPTH + 1));
    assert_eq!(diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), ["nesting-too-deep"]);
    let (_, diagnostics) = parsed(&nested(100_000));
    assert_eq!(diagnostics.len(), 1);
}

#[test]
fn a_file_of_errors_is_cut_short() {
    let (_, diagnostics) = parsed(&"-> ".repeat(10_000));
    assert_eq!(diagnostics.len(), 201);
    assert_eq!(diagnostics.iter().filter(|d| d.code == "too-many-errors").count(), 1);
}
