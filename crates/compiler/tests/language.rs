//! What configurations mean, case by case.

mod shape;

use catena_compiler::{Chain, flatten};
use shape::{assert_same, chain, chain_with, edges, elements, good, on_devices};

/// The one thing that is said about a text.
fn said(text: &str) -> String {
    let (_, said) = chain(text);
    assert_eq!(said.len(), 1, "{said:#?} about {text}");
    said[0].clone()
}

/// What is said about a text, by its codes.
fn codes(text: &str) -> Vec<String> {
    let (_, said) = chain(text);
    said.iter().map(|s| s[..s.find(']').map_or(s.len(), |end| end + 1)].to_owned()).collect()
}

#[test]
fn anonymous_elements_are_numbered_over_the_file_groups_included() {
    let chain = good("FromDump(x) -> a :: Counter -> Counter -> (-> Counter ->) -> Discard;");
    assert_eq!(
        elements(&chain),
        [
            "FromDump@1 :: FromDump(x)",
            "a :: Counter",
            "Counter@3 :: Counter",
            "Counter@7 :: Counter",
            "Discard@8 :: Discard"
        ]
    );
    let chain = good("Counter@2 :: Counter; FromDump(x) -> Counter -> Counter@2 -> Discard");
    let names: Vec<&str> = chain.graph.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["Counter@2", "FromDump@2", "Counter@3", "Discard@4"]);
    assert_eq!(chain.find("Counter@3"), Some(2));
    assert_eq!(chain.find("Counter@9"), None);
}

#[test]
fn compounds_become_their_elements_after_those_of_the_file() {
    let chain = good(
        "elementclass Pair { input -> a :: Counter -> { -> Strip(1) -> } -> output }
         f :: FromDump(x) -> p :: Pair -> Pair -> Discard;",
    );
    assert_eq!(
        elements(&chain),
        [
            "f :: FromDump(x)",
            "Discard@4 :: Discard",
            "p/a :: Counter",
            "p/@2/Strip@1 :: Strip(1)",
            "Pair@3/a :: Counter",
            "Pair@3/@2/Strip@1 :: Strip(1)"
        ]
    );
    assert_eq!(
        edges(&chain),
        [
            "f -> p/a",
            "p/a -> p/@2/Strip@1",
            "p/@2/Strip@1 -> Pair@3/a",
            "Pair@3/a -> Pair@3/@2/Strip@1",
            "Pair@3/@2/Strip@1 -> Discard@4"
        ]
    );
    let groups: Vec<(&str, &str, Option<usize>)> =
        chain.graph.groups.iter().map(|g| (g.name.as_str(), g.class.as_str(), g.parent)).collect();
    assert_eq!(
        groups,
        [
            ("p", "Pair", None),
            ("Pair@3", "Pair", None),
            ("p/@2", "", Some(0)),
            ("Pair@3/@2", "", Some(1))
        ]
    );
    assert_eq!(chain.graph.nodes[3].group, Some(2));
}

#[test]
fn arguments_reach_the_elements_of_a_compound() {
    let chain = good(
        "elementclass A { $n, K $k, __REST__ $r | define($m $n)
           input -> Strip($m) -> s :: Strip(${k-5}) -> Tee($r) -> output }
         define($x 4); FromDump(f) -> A($x, K ${x}) -> A(1, 2) -> Discard;",
    );
    assert_eq!(
        elements(&chain)[2..],
        [
            "A@2/Strip@1 :: Strip(4)",
            "A@2/s :: Strip(4)",
            "A@2/Tee@3 :: Tee",
            "A@3/Strip@1 :: Strip(1)",
            "A@3/s :: Strip",
            "A@3/Tee@3 :: Tee(2)"
        ]
    );
}

#[test]
fn variables_are_those_of_the_text_around_not_of_the_caller() {
    let chain = good(
        "define($v file)
         elementclass Free { input -> Strip($v) -> output }
         elementclass Outer { $v |
           elementclass Inner { input -> Strip($v) -> output }
           input -> Inner -> Free -> output }
         FromDump(x) -> Outer(own) -> Discard",
    );
    assert_eq!(
        elements(&chain)[2..],
        ["Outer@2/Inner@1/Strip@1 :: Strip(own)", "Outer@2/Free@2/Strip@1 :: Strip(file)"]
    );
}

#[test]
fn definitions_may_use_others_and_unknown_variables_stay() {
    let chain = good(
        "FromDump($a, \"$b\", '$b', $c, $d, $(x.y), ${none-2, 3}) -> Discard;
         define($a 1, $b \"q $a\", $c $e, $d $d, $e late)",
    );
    assert_eq!(
        elements(&chain)[0],
        r#"FromDump@1 :: FromDump(1, "\"q 1\"", '$b', late, $d, $(x.y), 2, 3)"#
    );
}

#[test]
fn the_command_line_overrides_definitions_of_the_file_only() {
    let text = "define($a 1) elementclass A { define($a 2) input -> Strip($a) -> output }
        FromDump($a, $new) -> A -> Discard";
    let (chain, said) = chain_with(text, &[], &[("a", "x, y"), ("new", "z")]);
    assert_eq!(said, [""; 0]);
    let chain = chain.expect("no errors");
    assert_eq!(elements(&chain)[0], "FromDump@1 :: FromDump(x, y, z)");
    assert_eq!(elements(&chain)[2], "A@2/Strip@1 :: Strip(2)");
}

#[test]
fn overloads_are_chosen_by_arguments_and_ports() {
    let class = "elementclass A { input -> Counter -> output
         || $n | input -> Strip($n) -> output
         || input -> t :: Tee -> output; t[1] -> [1] output }
         elementclass A { $a, $b | input -> Unstrip($a) -> Unstrip($b) -> output || ... }";
    let chain =
        good(&format!("{class} FromDump(x) -> A -> A(3) -> A(1, 2) -> a :: A; a[0,1] -> Discard"));
    assert_eq!(
        elements(&chain)[2..],
        [
            "A@2/Counter@1 :: Counter",
            "A@3/Strip@1 :: Strip(3)",
            "A@4/Unstrip@1 :: Unstrip(1)",
            "A@4/Unstrip@2 :: Unstrip(2)",
            "a/t :: Tee"
        ]
    );
    let error = said(&format!("{class} FromDump(x) -> A(1, 2, 3) -> Discard"));
    assert!(error.contains("no overload of A takes 3 arguments and has 1 input and 1 output"));
    assert!(error.contains("`A($a, $b)` with 1 input and 1 output"), "{error}");
    // What is extended may be an element of the library.
    let chain = good(
        "elementclass Strip { input -> output || ... } FromDump(x) -> Strip -> Strip(3) -> Discard",
    );
    assert_eq!(elements(&chain)[1], "Strip@3 :: Strip(3)");
}

#[test]
fn arguments_that_a_compound_does_not_take_are_pointed_at() {
    let class = "elementclass A { $x, K $k | input -> Strip($x) -> output }";
    let with = |call: &str| said(&format!("{class} FromDump(x) -> {call} -> Discard;"));
    assert!(with("A").starts_with("error[missing-argument] t:1: A is missing its argument $x `A`"));
    assert!(
        with("A(1, 2)")
            .starts_with("error[too-many-arguments] t:1: A does not take this argument `2`")
    );
    assert!(
        with("A(1, L 2)")
            .starts_with("error[unknown-keyword] t:1: A has no keyword argument L `L 2`")
    );
    assert!(with("A").ends_with("help: write `A($x, K $k)`"));
}

#[test]
fn arrows_connect_lists_of_ports() {
    let of = |text: &str| edges(&good(&format!("FromDump(x) -> t :: Tee; {text}")))[1..].join(", ");
    assert_eq!(
        of("t -> Discard; t[1], t[2] -> d :: Discard"),
        "t -> Discard@3, t[1] -> d, t[2] -> d"
    );
    assert_eq!(
        of("t[0-2] => a :: Discard, b :: Discard, c :: Discard"),
        "t -> a, t[1] -> b, t[2] -> c"
    );
    assert_eq!(of("t => a :: Discard, b :: Discard"), "t -> a, t[1] -> b");
    assert_eq!(of("t[0-] => a :: Discard, b :: Discard"), "t -> a, t[1] -> b");
    assert_eq!(of("t[] => a :: Discard, b :: Discard"), "t -> a, t[1] -> b");
    assert_eq!(
        of(
            "c, d :: Discard; t -> c; t[1,3-] => a :: Discard, b :: Discard, e :: Discard; t[2] -> d"
        ),
        "t -> c, t[1] -> a, t[3] -> b, t[4] -> e, t[2] -> d"
    );
    assert_eq!(of("t[1,0] => a :: Discard, b :: Discard"), "t[1] -> a, t -> b");
    assert_eq!(
        of(
            "t[0,1] => ([1] -> a :: Counter -> [0]; [0] -> b :: Counter -> [1]) => c :: Discard, d :: Discard"
        ),
        "a -> c, b -> d, t -> b, t[1] -> a"
    );
    // Written twice is written once.
    assert_eq!(of("t -> d :: Discard; t -> d"), "t -> d");
}

#[test]
fn arrows_that_cannot_connect_say_so() {
    let text = |chain: &str| format!("FromDump(x) -> t :: Tee; {chain}");
    assert_eq!(
        codes(&text("t[0-1] -> [0-1] q :: { [0,1] => [0,1] }; q[0,1] -> Discard")),
        ["error[many-to-many]"]
    );
    assert_eq!(codes(&text("t[0-2] => Discard, Discard")), ["error[port-mismatch]"]);
    assert_eq!(codes(&text("t[0-] => [0-] q :: { -> }; q -> Discard"))[0], "error[open-ports]");
    assert_eq!(codes("FromDump(f) ~> Discard"), ["error[context-link]"]);
}

#[test]
fn packets_pass_through_compounds_that_hold_nothing() {
    let chain = good(
        "x :: { input -> output; input[1] -> [1] output };
         FromDump(f) -> x -> [1] x; x [1] -> { -> } -> d :: Discard",
    );
    assert_eq!(edges(&chain), ["FromDump@2 -> d"]);
    assert_eq!(
        codes(
            "x :: { input -> output; input[1] -> [1] output }; FromDump(f) -> x -> [1] x; x[1] -> y :: {->} -> y"
        )[..1],
        ["error[empty-cycle]"]
    );
    assert_eq!(codes("FromDump(f) -> {->} -> y :: {->} -> y"), ["error[empty-cycle]"]);
}

#[test]
fn names_must_be_known_where_they_are_used() {
    let error = said("src :: FromDump(x); src -> c -> Discard; c :: Counter;");
    assert!(
        error.starts_with("error[undeclared] t:1: 'c' is used before it is declared `c` | t:1 `c`")
    );
    let error = said("FromDump(x) -> Countr -> Discard; FromDump(x) -> Countr -> Discard");
    assert!(error.starts_with("error[unknown-class] t:1: there is no element class 'Countr' `Countr` | t:1 `Countr` and here"));
    assert!(error.ends_with("did you mean 'Counter'?"));
    let error = said("elementclass A { input -> A -> output } FromDump(x) -> A -> Discard");
    assert!(error.contains("a compound cannot contain itself"));
    let error = said("FromDump(x) -> A -> Discard; elementclass A { -> }");
    assert!(error.contains("move the definition before"), "{error}");
    let error = said("FromDump(x) -> input");
    assert!(error.contains("only compounds and groups have an `input`"), "{error}");
    assert!(said("src :: FromDump(x); src -> { -> src -> } -> Discard").contains("by its `input`"));
    assert_eq!(codes("elementclass A { || ... }"), ["error[unknown-class]"]);
    assert_eq!(
        codes("a :: { -> || ... }"),
        ["error[unknown-class]", "error[unconnected-element]"][..1]
    );
}

#[test]
fn classes_are_known_only_in_their_compound() {
    let text = "elementclass A { elementclass B { -> Counter -> } input -> B -> output }";
    good(&format!("{text} FromDump(x) -> A -> Discard"));
    assert_eq!(
        codes(&format!("{text} FromDump(x) -> A -> B -> Discard")),
        ["error[unknown-class]"]
    );
    // A group is not a scope.
    good("FromDump(x) -> (elementclass B { -> Counter -> } -> B ->) -> B -> Discard");
}

#[test]
fn names_are_given_once() {
    assert_eq!(
        codes("c :: Counter; c :: Strip(1); FromDump(x) -> c -> Discard"),
        ["error[redeclared]"]
    );
    assert_eq!(
        codes("FromDump(x) -> Discard :: Counter -> d :: Discard"),
        ["error[class-as-element]"]
    );
    assert_eq!(
        codes(
            "elementclass A { input -> Strip(1) -> output } x/Strip@1 :: Counter; FromDump(f) -> x :: A -> x/Strip@1 -> Discard"
        ),
        ["error[redeclared]"]
    );
    assert_eq!(codes("elementclass A { input -> output :: Counter }")[..1], ["error[redeclared]"]);
    assert_eq!(
        codes("c :: Counter; FromDump(x) -> c(3) -> Discard"),
        ["error[configured-reference]"]
    );
    assert_eq!(codes("define($a 1, $a 2)"), ["error[redefined-variable]"]);
    assert_eq!(codes("elementclass A { $a | define($a 2) -> }"), ["error[redefined-variable]"]);
    assert_eq!(
        codes("elementclass A { -> } elementclass A { -> Counter -> } FromDump(x) -> A -> Discard"),
        ["warning[shadowed-class]"]
    );
}

#[test]
fn ports_are_counted() {
    let error = said("FromDump(x) -> s :: Strip(1) -> Discard; s[1] -> Discard");
    assert!(error.starts_with("error[no-such-port] t:1: 's' has no output 1 `s[1] -> Discard` connected here | t:1 `s :: Strip`"));
    assert!(error.contains("Strip has 1 input and 1 output"));
    let error = said("a :: Counter -> Discard");
    assert!(error.starts_with("error[unconnected-input] t:1: input 0 of 'a' is not connected"));
    let error = said("FromDump(x) -> t :: Tee; t[2] -> Discard");
    assert!(
        error.starts_with("error[unconnected-output] t:1: outputs 0-1 of 't' are not connected"),
        "{error}"
    );
    assert_eq!(codes("a :: Counter"), ["error[unconnected-element]"]);
    assert_eq!(codes("FromDump(x) -> Tee[65535] -> Discard"), ["error[unconnected-output]"]);
}

#[test]
fn ports_of_compounds_are_counted() {
    let with = |class: &str, use_: &str| codes(&format!("elementclass A {{ {class} }} {use_}"));
    let plain = "input -> Strip(1) -> output";
    assert_eq!(
        with(plain, "FromDump(x) -> a :: A -> Discard; a[1] -> Discard"),
        ["error[no-such-port]"]
    );
    assert_eq!(
        with(plain, "FromDump(x) -> a :: A -> Discard; FromDump(y) -> [3] a"),
        ["error[no-such-port]"]
    );
    assert_eq!(
        with("input -> Discard; input[1] -> Discard", "FromDump(x) -> A"),
        ["error[unconnected-input]"]
    );
    assert_eq!(
        with("input -> t :: Tee -> output; t[1] -> [1] output", "FromDump(x) -> A -> Discard"),
        ["error[unconnected-output]"]
    );
    assert_eq!(
        with("input -> Strip(1) -> [1] output", "FromDump(x) -> A -> Discard"),
        ["error[missing-port]"]
    );
    assert_eq!(with("output -> Strip(1) -> Discard", ""), ["error[misused-pseudo-element]"]);
    // One word about the definition, whatever the number of instances.
    assert_eq!(
        with("input -> Discard; c :: Counter", "FromDump(x) -> A; FromDump(x) -> A"),
        ["error[unconnected-element]"]
    );
}

#[test]
fn push_meets_push_and_pull_meets_pull() {
    let chain = good("FromDump(x) -> Counter -> Queue -> Strip(1) -> Counter -> Discard");
    assert_eq!(
        edges(&chain),
        [
            "FromDump@1 -> Counter@2",
            "Counter@2 -> Queue@3",
            "Queue@3 => Strip@4",
            "Strip@4 => Counter@5",
            "Counter@5 => Discard@6"
        ]
    );
    let error = said("FromDump(f) -> Queue -> Counter -> Strip(3) -> q :: Queue -> Discard");
    assert!(error.starts_with("error[push-pull] t:1: pull output 0 of 'Queue@2' is connected to push input 0 of 'q' through 'Counter@3', 'Strip@4' "), "{error}");
    assert!(error.contains(
        "| t:1 `Queue` output 0 of 'Queue@2' is pull | t:1 `q :: Queue` input 0 of 'q' is push"
    ));
    assert!(error.ends_with("an Unqueue between them turns pull into push"));
    // What is decided nowhere is push.
    let (chain, _) = shape::chain("a :: Counter -> b :: Strip(1) -> a");
    assert_eq!(edges(&chain.expect("only a warning")), ["a -> b", "b -> a"]);
}

#[test]
fn active_ports_are_connected_once() {
    let error = said("f :: FromDump(f) -> a :: Discard; f -> b :: Discard;");
    assert!(
        error.starts_with(
            "error[port-reused] t:1: push output 0 of 'f' is connected more than once"
        )
    );
    assert!(error.contains("to input 0 of 'b' | ") && error.contains("to input 0 of 'a'"));
    let error = said("FromDump(f) -> q :: Queue -> d :: Discard; FromDump(f) -> r :: Queue -> d;");
    assert!(error.contains("pull input 0 of 'd' is connected more than once"));
    // Passive ports may be shared.
    good("FromDump(f) -> q :: Queue -> Discard; q -> Discard; FromDump(g) -> q");
}

#[test]
fn libraries_stand_where_they_are_first_required() {
    let files = [
        ("a", "require(library b); elementclass A { input -> B -> output } define($v 7);"),
        ("b", "require(library a); elementclass B { input -> Strip($v) -> output }"),
    ];
    let text = "require(library a, package userlevel, compact_config); require(library \"b\"); FromDump(x) -> A -> Discard";
    let (chain, said) = chain_with(text, &files, &[]);
    assert_eq!(said, [""; 0]);
    let chain = chain.expect("no errors");
    assert_eq!(elements(&chain)[2], "A@2/B@1/Strip@1 :: Strip(7)");
    assert_eq!(chain.requirements, ["userlevel"]);
    let (_, said) = chain_with("require(library none);", &files, &[]);
    assert!(
        said[0]
            .starts_with("error[unreadable-file] t:1: library 'none' cannot be read: No such file")
    );
    assert_eq!(codes("require(package nonesuch)"), ["error[unknown-requirement]"]);
    assert_eq!(codes("elementclass A { require(library a) -> }"), ["error[misplaced-requirement]"]);
}

#[test]
fn circles_without_a_source_are_warned_of() {
    let warning = said("a :: Counter -> b :: Strip(1) -> a");
    assert!(
        warning.starts_with("warning[unreachable] t:1: no packet can reach 'a', 'b'"),
        "{warning}"
    );
    good("FromDump(x) -> a :: Counter -> b :: Strip(1) -> a");
}

#[test]
fn errors_come_all_at_once() {
    assert_eq!(
        codes(
            "require(nothing); FromDump(x) -> Nonesuch -> Strip(1) -> Discard; a :: Counter;
             q :: Queue; b -> q; q -> Queue -> Discard; b :: InfiniteSource; b[1] -> Discard;"
        ),
        [
            "error[unknown-requirement]",
            "error[unknown-class]",
            "error[undeclared]",
            "error[unconnected-element]",
            "error[no-such-port]",
            "error[push-pull]"
        ]
    );
}

#[test]
fn flat_text_has_chains_and_no_compounds() {
    let chain = good(
        "require(package userlevel);
         elementclass A { $n | input -> Strip($n) -> t :: Tee -> output; t[1] -> [1] output }
         f :: FromDump(a.pcap, \"b,) c\") -> /* c */ A@9 :: A(4);
         A@9[0,1] => q :: Queue(, ), c :: Counter;
         c -> q; FromDump(x) -> [0] q; q -> Discard@4 :: Discard(1, );",
    );
    let text = flatten(&chain);
    let expected = "\
        require(package userlevel);\n\
        f :: FromDump(a.pcap, \"b,) c\");\n\
        q :: Queue(, );\n\
        c :: Counter;\n\
        FromDump@5 :: FromDump(x);\n\
        Discard@4 :: Discard(1);\n\
        A@9/Strip@1 :: Strip(4);\n\
        A@9/t :: Tee;\n\
        \n\
        f -> A@9/Strip@1 -> A@9/t -> q -> Discard@4;\n\
        FromDump@5 -> q;\n\
        c -> q;\n\
        A@9/t[1] -> c;\n";
    assert_eq!(text, expected);
    assert_same(&chain, &good(&text));
}

#[test]
fn flat_text_of_what_variables_brought_in_can_be_read() {
    let text = "FromDump($a, $b, $c, $d, $e) -> Discard";
    let values = [("a", ")"), ("b", "(("), ("c", "\""), ("d", "x // y"), ("e", "#")];
    let (chain, said) = chain_with(text, &[], &values);
    assert_eq!(said, [""; 0]);
    let flat = flatten(&chain.expect("no errors"));
    let again = good(&flat);
    assert_eq!(flat, flatten(&again));
}

#[test]
fn a_device_takes_the_place_of_the_element_that_stands_for_it() {
    let pair = ["x/FromDevice@1 :: FromDevice(x)", "x/ToDevice@2 :: ToDevice(x)"];
    for text in [
        "a, x, b :: { i :: Idle -> output; input -> Discard }; a -> x; x -> b; b -> a;",
        "a, b :: { i :: Idle -> output; input -> Discard }; a -> x :: { Idle -> output; input -> Discard } -> b -> a;",
    ] {
        let of_x = |chain: &Chain| -> Vec<String> {
            elements(chain).into_iter().filter(|element| element.contains("x/")).collect()
        };
        assert_eq!(of_x(&on_devices(text, &["x", "y"])), pair, "{text}");
        assert_eq!(of_x(&good(text)).len(), 2, "{text}");
        assert_ne!(of_x(&good(text)), pair, "{text}");
        let edges = edges(&on_devices(text, &["x"]));
        assert!(edges.contains(&"a/i -> x/ToDevice@2".to_string()), "{edges:?}");
        assert!(edges.contains(&"x/FromDevice@1 -> b/Discard@2".to_string()), "{edges:?}");
    }
    // An element that has the name of a device that others are for stays what it is.
    let text = "x :: Counter; FromDevice(x) -> x -> ToDevice(x);";
    assert_eq!(elements(&on_devices(text, &["x"])), elements(&good(text)));
}
