//! Texts made to hurt: they end in an error, soon and without a panic.

mod shape;

use std::fmt::Write;

use shape::{chain, chain_with};

/// The codes of what is said about a text.
fn codes(text: &str) -> Vec<String> {
    let (_, said) = chain(text);
    said.iter().map(|s| s.split(' ').next().unwrap_or_default().to_owned()).collect()
}

fn doubling(levels: usize, innermost: &str) -> String {
    let mut text = format!("elementclass A0 {{ {innermost} }}\n");
    for level in 1..=levels {
        let below = level - 1;
        let _ = writeln!(text, "elementclass A{level} {{ -> A{below} -> A{below} -> }}");
    }
    text
}

#[test]
fn compounds_that_double_are_bounded() {
    for innermost in ["-> Counter ->", "->"] {
        let text = doubling(64, innermost);
        assert_eq!(
            codes(&format!("{text} FromDump(x) -> A64 -> Discard")),
            ["error[chain-too-large]"]
        );
    }
    // A modest one is expanded.
    let (chain, _) =
        chain(&format!("{} FromDump(x) -> A10 -> Discard", doubling(10, "-> Counter ->")));
    assert_eq!(chain.expect("no errors").graph.nodes.len(), 1026);
}

#[test]
fn compounds_in_compounds_are_bounded() {
    let mut text = String::from("elementclass A0 { -> }\n");
    for level in 1..100_000 {
        let _ = writeln!(text, "elementclass A{level} {{ -> A{} -> }}", level - 1);
    }
    assert_eq!(
        codes(&format!("{text} FromDump(x) -> A99999 -> Discard")),
        ["error[chain-too-large]"]
    );
    let braces =
        format!("FromDump(x) -> {}->{} -> Discard", "{".repeat(100_000), "}".repeat(100_000));
    assert!(!codes(&braces).is_empty());
    let groups =
        format!("FromDump(x) -> {}->{} -> Discard", "(".repeat(100_000), ")".repeat(100_000));
    assert!(!codes(&groups).is_empty());
}

#[test]
fn overloads_are_bounded() {
    let mut text = String::from("elementclass A { $a | -> }\n");
    for _ in 0..20_000 {
        text += "elementclass A { $a | -> || ... }\n";
    }
    assert!(
        codes(&format!("{text} FromDump(x) -> A -> Discard"))
            .contains(&"error[too-many-overloads]".into())
    );
    let many = format!("elementclass A {{ $a | -> {} }}", "|| $a | -> ".repeat(5000));
    assert!(
        codes(&format!("{many} FromDump(x) -> A -> Discard"))
            .contains(&"error[too-many-overloads]".into())
    );
}

#[test]
fn variables_that_grow_are_bounded() {
    let mut text = String::from("define($a0 0123456789)\n");
    for level in 1..64 {
        let _ = writeln!(text, "define($a{level} $a{}$a{0})", level - 1);
    }
    let said = codes(&format!("{text} FromDump($a63) -> Discard"));
    assert_eq!(said, ["error[chain-too-large]"]);
    let mut text = String::from("define($a0 0)\n");
    for level in 1..100_000 {
        let _ = writeln!(text, "define($a{level} $a{})", level - 1);
    }
    // Forwards and backwards.
    assert_eq!(codes(&format!("{text} FromDump($a99999) -> Discard")), [""; 0]);
    let backwards: Vec<&str> = text.lines().rev().collect();
    assert_eq!(codes(&format!("{} FromDump($a99999) -> Discard", backwards.join("\n"))), [""; 0]);
}

#[test]
fn long_names_in_many_instances_are_bounded() {
    let name = "n".repeat(100_000);
    let mut text = format!("elementclass A {{ -> {name} :: Counter -> }}\n FromDump(x)");
    for _ in 0..10_000 {
        text += " -> A";
    }
    assert_eq!(codes(&(text + " -> Discard")), ["error[chain-too-large]"]);
}

#[test]
fn port_lists_are_bounded() {
    let ports = "0-65535,".repeat(2000);
    let text = format!("a :: Tee; b :: Tee; FromDump(x) -> a; a[{ports} 0] => [{ports} 0] b");
    assert!(codes(&text).contains(&"error[too-many-connections]".into()));
    // Every input of a compound leads to every output.
    let text = "x :: { input -> output }; a :: Tee; b :: Tee; a[0-20000] -> x; x -> [0-20000] b;";
    assert!(codes(text).contains(&"error[chain-too-large]".into()));
    let text =
        "elementclass A { input[0-65535] => [0-65535] output } x :: A; FromDump(f) -> x -> Discard";
    assert!(codes(text).contains(&"error[unconnected-input]".into()));
    let many = "a :: { [65535] -> [65535] };\n".repeat(2000);
    assert!(codes(&many).contains(&"error[missing-port]".into()));
}

#[test]
fn long_ways_through_compounds_are_no_matter() {
    let mut text = String::from("elementclass P { -> } FromDump(x)");
    for _ in 0..50_000 {
        text += " -> P";
    }
    let (chain, said) = chain(&(text + " -> Discard"));
    assert_eq!(said, [""; 0]);
    assert_eq!(chain.expect("no errors").graph.edges.len(), 1);
}

#[test]
fn many_errors_are_cut_short() {
    let mut text = String::new();
    for n in 0..50_000 {
        let _ = writeln!(text, "x{n} :: Nonesuch{n};");
    }
    let said = codes(&text);
    assert_eq!(said.len(), 201);
    assert_eq!(said[200], "error[too-many-errors]");
}

#[test]
fn libraries_that_require_one_another_are_read_once() {
    let names: Vec<String> = (0..400).map(|n| format!("l{n}")).collect();
    let texts: Vec<String> = (0..400)
        .map(|n| {
            format!("require(library l{}); require(library l0); elementclass A{n} {{ -> }}", n + 1)
        })
        .collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(n, t)| (n.as_str(), t.as_str())).collect();
    let (_, said) = chain_with("require(library l0)", &files, &[]);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("more than 256 libraries"));
}

#[test]
fn any_text_is_dealt_with() {
    let words = [
        "a",
        "b",
        "Tee",
        "Queue",
        "Counter",
        "A",
        "input",
        "output",
        "::",
        "->",
        "=>",
        "[0]",
        "[1-]",
        "[]",
        "(",
        ")",
        "{",
        "}",
        ";",
        ",",
        "elementclass A {",
        "||",
        "...",
        "|",
        "$x",
        "($x)",
        "define($x 1)",
        "require(library l)",
        "FromDump(f) ->",
        "-> Discard;",
        "@",
        "x/y",
    ];
    let mut state = 1u64;
    for _ in 0..5_000 {
        let mut text = String::new();
        for _ in 0..30 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += words[(state >> 33) as usize % words.len()];
            text.push(' ');
        }
        let (chain, _) = chain_with(&text, &[("l", "elementclass L { -> }")], &[]);
        if let Some(chain) = chain {
            let _ = catena_compiler::flatten(&chain);
        }
    }
}
