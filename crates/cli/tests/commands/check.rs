//! `catena check`.

use crate::program::Folder;

#[test]
fn a_good_file_is_good() {
    let folder = Folder::new();
    let ended = folder.file("a.click", "Idle -> Strip(14) -> Discard;").run(["check", "a.click"]);
    assert_eq!(ended.well(), "ok a.click (3 elements)\n");
    assert_eq!(folder.run(["check", "-q", "a.click"]).well(), "");
}

#[test]
fn all_errors_come_at_once_with_their_places() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Strip(x)\n  -> Countr -> Discard;\n");
    let ended = folder.run(["check", "a.click"]);
    ended.refused();
    let expected = "\
error[bad-argument]: 'x' is not a number from 0 to 4294967295
 --> a.click:1:15
  |
1 | Idle -> Strip(x)
  |               ^ LENGTH takes a number from 0 to 4294967295

error[unknown-class]: there is no element class 'Countr'
 --> a.click:2:6
  |
2 |   -> Countr -> Discard;
  |      ^^^^^^
  |
  = help: did you mean 'Counter'?

2 errors, 0 warnings (1 file in ";
    assert!(ended.out.starts_with(expected), "{}", ended.out);
}

#[test]
fn labels_in_one_file_are_shown_together_and_far_ones_apart() {
    let folder = Folder::new();
    let padding = "// filler\n".repeat(20_000);
    folder.file("a.click", format!("c :: Counter;\n{padding}c :: Discard;\nIdle -> c;\n"));
    let ended = folder.run(["check", "a.click"]);
    assert!(ended.out.contains("20002 | c :: Discard;"), "{}", ended.out);
    assert!(ended.out.contains("1 | c :: Counter;"), "{}", ended.out);
    assert!(ended.out.len() < 2000, "{}", ended.out.len());
}

#[test]
fn long_names_are_not_shown_whole() {
    let folder = Folder::new();
    let name = "n".repeat(100_000);
    for text in [format!("{name};"), format!("Idle -> {name} -> Discard;")] {
        let ended = folder.file("a.click", text).run(["check", "a.click"]);
        ended.refused();
        assert!(ended.out.contains("nnn…"), "{}", ended.out.len());
        assert!(ended.out.len() < 10_000, "{}", ended.out.len());
    }
}

#[test]
fn warnings_do_not_fail_unless_they_are_to() {
    let folder = Folder::new();
    folder.file("a.click", "FromDump(missing.pcap) -> Discard;\nIdle -> ToDump(none/out.pcap);\n");
    let ended = folder.run(["check", "a.click"]);
    assert!(ended.well().contains("warning[device]: missing.pcap: No such file"), "{}", ended.out);
    assert!(ended.out.contains("there is no folder none"), "{}", ended.out);
    folder.run(["check", "--strict", "a.click"]).refused();
    assert!(!folder.path().join("none").exists());
}

#[test]
fn nothing_is_written() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> ToDump(out.pcap);").run(["check", "a.click"]).well();
    assert!(!folder.path().join("out.pcap").exists());
}

#[test]
fn json_has_spans() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Strip(x)\n  -> Discard;\n").file("b.click", "");
    let ended = folder.run(["check", "--json", "a.click", "b.click"]);
    assert_eq!(ended.code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(value[0]["file"], "a.click");
    let label = &value[0]["diagnostics"][0]["labels"][0];
    assert_eq!((label["line"].as_u64(), label["column"].as_u64()), (Some(1), Some(15)));
    assert_eq!((label["end_line"].as_u64(), label["end_column"].as_u64()), (Some(1), Some(16)));
    assert_eq!(value[0]["diagnostics"][0]["code"], "bad-argument");
    assert_eq!((value[1]["errors"].as_u64(), value[1]["warnings"].as_u64()), (Some(0), Some(1)));
    assert_eq!(value[1]["diagnostics"][0]["code"], "empty-configuration");
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let folder = Folder::new();
    folder.file("a.click", " \n").file("b.click", "// later\n");
    folder.file("c.click", "elementclass Hop { input -> output }\n");
    let ended = folder.run(["check", "a.click", "b.click", "c.click"]);
    let text = ended.well();
    assert_eq!(text.matches("warning[empty-configuration]: the configuration is empty").count(), 2);
    assert!(text.contains("only comments") && !text.contains("ok a.click"), "{text}");
    assert!(text.contains("ok c.click (0 elements)"), "{text}");
    folder.run(["check", "--strict", "a.click"]).refused();
}

#[test]
fn the_standard_input_and_variables_are_taken() {
    let folder = Folder::new();
    let text = "Idle -> Strip($N) -> Discard;";
    assert!(folder.run_with(["check", "-", "N=14"], text).well().contains("ok <stdin>"));
    assert!(folder.run_with(["check", "-", "N=x"], text).out.contains("is not a number"));
    assert!(folder.run(["check", "N=14"]).refused().contains("no FILE is given"));
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    let ended = folder.run(["check", "none.click"]);
    assert!(
        ended.out.contains("error[unreadable-file]: none.click: No such file"),
        "{}",
        ended.out
    );
    ended.refused();
    folder
        .file("bytes.click", [0xff, 0xfe, 0, 1, b'(', b'"'])
        .run(["check", "bytes.click"])
        .refused();
    assert_eq!(folder.run(["check"]).code, Some(2));
}

#[test]
fn a_huge_line_is_not_shown_as_a_whole() {
    let folder = Folder::new();
    let arguments = "x, ".repeat(200_000);
    folder.file("a.click", format!("Idle -> Strip({arguments}14) -> Discard;"));
    let ended = folder.run(["check", "a.click"]);
    ended.refused();
    assert!(ended.out.len() < 2_000_000, "{}", ended.out.len());
}

#[test]
fn rules_that_can_never_match_are_named_with_those_that_cover_them() {
    let folder = Folder::new();
    let text = "\
Idle -> f :: IPFilter(
  allow src net 10.0.0.0/9,
  1 src net 10.128.0.0/9 && dst port 80,
  allow src net 10.128.0.0/9,
  deny src net 10.0.0.0/8 && udp,
  allow src host 10.1.2.3,
  deny tcp && udp,
  deny all) -> Discard;
f[1] -> Discard;
";
    folder.file("a.click", text);
    let expected = "\
warning[shadowed-rule]: rule 4 can never match: shadowed by 1 and 3
 --> a.click:5:3
  |
2 |   allow src net 10.0.0.0/9,
  |   ------------------------ rule 1, with another action
3 |   1 src net 10.128.0.0/9 && dst port 80,
4 |   allow src net 10.128.0.0/9,
  |   -------------------------- rule 3, with another action
5 |   deny src net 10.0.0.0/8 && udp,
  |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: its packets get another action before; move it up if they should not

warning[shadowed-rule]: rule 5 can never match: shadowed by 1
 --> a.click:6:3
  |
2 |   allow src net 10.0.0.0/9,
  |   ------------------------ rule 1, with the same action
...
6 |   allow src host 10.1.2.3,
  |   ^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: its packets get the same action before; it can be removed

warning[empty-rule]: rule 6 can never match: its conditions exclude one another
 --> a.click:7:3
  |
7 |   deny tcp && udp,
  |   ^^^^^^^^^^^^^^^

0 errors, 3 warnings (1 file in ";
    let ended = folder.run(["check", "a.click"]);
    assert!(ended.well().starts_with(expected), "{}", ended.out);
    folder.run(["check", "--strict", "a.click"]).refused();
}

#[test]
fn a_rule_that_says_false_is_meant_so() {
    let folder = Folder::new();
    folder.file(
        "a.click",
        "Idle -> c :: IPClassifier(tcp and false, -) -> Discard; c[1] -> Discard;",
    );
    assert!(folder.run(["check", "a.click"]).well().starts_with("ok"));
}

#[test]
fn a_rule_that_only_packets_without_a_header_get_to_can_match() {
    let folder = Folder::new();
    folder.file(
        "a.click",
        "Idle -> c :: IPClassifier(ip vers 4, not ip vers 4 && ip vers < 17, -);\n\
         c[0], c[1], c[2] -> Discard;\n\
         Idle -> d :: IPClassifier(ip vers 4, not ip vers 4, -); d[0], d[1], d[2] -> Discard;\n",
    );
    let ended = folder.run(["check", "a.click"]);
    let warnings: Vec<&str> = ended.well().lines().filter(|l| l.starts_with("warning")).collect();
    assert_eq!(
        warnings,
        ["warning[shadowed-rule]: rule 3 can never match: shadowed by 1 and 2"],
        "{}",
        ended.out
    );
    assert!(ended.out.contains("--> a.click:3:"), "{}", ended.out);
}

#[test]
fn rules_are_checked_in_files_and_compounds_and_many_are_summed_up() {
    let folder = Folder::new();
    let rules: String = (0..100).map(|port| format!("deny udp dst port {port}\n")).collect();
    folder.file("rules", format!("# all\nallow udp\n{rules}allow udp\n"));
    let text = "elementclass F { input -> IPFilter(file rules) -> output }\n\
                Idle -> F -> F -> Discard;\n";
    let ended = folder.file("a.click", text).run(["check", "a.click"]);
    assert_eq!(ended.well().matches("can never match: shadowed by 1\n").count(), 20);
    let further = "81 further rules can never match: 22, 23, 24, ";
    assert_eq!(ended.out.matches(further).count(), 1, "{}", ended.out);
    assert!(ended.out.contains(" and 41 more\n"), "{}", ended.out);
    assert!(ended.out.contains("--> rules:3:1\n"), "{}", ended.out);
    // What would change nothing is left to the sum.
    assert!(!ended.out.contains("the same action"), "{}", ended.out);
}

/// Flows need packets of both directions at one worker, which queues do not bring about.
#[test]
fn flows_do_not_go_with_dispatch_by_queues() {
    let folder = Folder::new();
    let chain = "Idle -> nat :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0) -> c :: Counter -> Discard;";
    folder.file("a.click", chain);
    for mode in ["hash", "tags=mac"] {
        assert!(
            folder.run(["check", "--dispatch", mode, "a.click"]).well().starts_with("ok"),
            "{mode}"
        );
    }
    let ended = folder.run(["check", "--dispatch", "queue", "a.click"]);
    let why = "warning[flows-by-queue]: with --dispatch queue, packets of a flow of 'nat' may reach workers";
    assert!(ended.out.starts_with(why) && ended.code == Some(0), "{}", ended.out);
    assert_eq!(ended.out.matches("flows-by-queue").count(), 1, "{}", ended.out);
    assert_eq!(folder.run(["check", "--dispatch", "luck", "a.click"]).code, Some(2));
}
