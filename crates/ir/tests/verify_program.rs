//! The verifier of programs: each of its checks refuses a program that is wrong in that alone.

use catena_ir as ir;
use ir::{FileId, text};

/// A program that is well formed, at some limits of what is.
const BASE: &str = r#"
program behind [0] rt
elements 0 rt, 1 nat
state flows of "nat" at nat: flows 64 (32, 8)
state count of "rt" at rt: counter
table 0 nat: flows of "nat" (32)
table 1 rt: routes (32)
  10.0.0.0/8 => (1, 2)
table 2 rt: rules (8, 16)
  0: key 0 == 6 arm 0
  1: key 0 == 17 && key 1 == 53 arm 1
l0: nat find table 0 (data[96+32]) binding 1 + 1
l1: rt find table 1 (l0.0) binding 2 + 0

s0: rt classify table 2 (data[72+8], data[176+16]) arms s1, s5 else s8
s1: find l0 s2 else s5
s2: find l1 s3 else s4
s3: exit visited [0] rt, [0] nat
  count count of "rt" by meta.len
  update l0 common (1) expiry now guarantee now
  start -65535
  data[-65535..-65519] = l1.0
  data[-65519..-65518] = concat(l1.1, 3, 2)
  anno[47..48] = data[0+128].bits(100+28)
  mark net at -2147483648
  push [0] nat
  because cells
s4: nat if l0.0 in {0..9} s6 else s7
s5: rt switch data[0+8] {0..9} s6, {10} s8, else s7
s6: exit visited [0] rt
  drop no-route at rt
s7: exit visited
  push [0] rt, slow path
s8: exit visited
  carried[0..16] = data[0+128]
  carried[16..32] = concat(1, data[0+8].bits(0+1), 127)
  hand off to continuation 3
"#;

/// What is wrong with a text; terms without their numbers.
fn wrong(source: &str) -> Vec<String> {
    let Err(all) = text::parse_programs(FileId(0), source) else { return Vec::new() };
    let is_term = |word: &str| {
        let digits = word.strip_prefix('t').map(|rest| rest.trim_end_matches(':'));
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let line = |found: &ir::Diagnostic| {
        let words = found.message.split(' ').map(|word| match is_term(word) {
            true if word.ends_with(':') => "t:",
            true => "t",
            false => word,
        });
        [&[found.code], &words.collect::<Vec<_>>()[..]].concat().join(" ")
    };
    all.iter().map(line).collect()
}

/// The base with pieces replaced, each of which stands there once.
fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(BASE.to_string(), |source, (from, to)| {
        assert_eq!(source.matches(from).count(), 1, "{from}");
        source.replace(from, to)
    })
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &[&str]) {
    let source = changed(&[(from, to)]);
    assert_eq!(wrong(&source), expected, "{source}");
}

#[test]
fn what_is_well_formed_is_read() {
    assert_eq!(wrong(BASE), [""; 0]);
}

#[test]
fn terms() {
    refused("l1.1", "l0.2", &["not-bound t: l0 binds no 2"]);
    refused("l1.1", "l9.0", &["no-such-lookup t: there is no l9"]);
    refused("bits(100+28)", "bits(100+29)", &["bad-width t: there are no bits 100+29"]);
    refused("bits(100+28)", "bits(100+0)", &["bad-width t: there are no bits 100+0"]);
    refused("3, 2)", "4, 2)", &["bad-width t: 3 bits are more than 2"]);
    refused("3, 2)", "data[0+8].bits(0+3), 2)", &["bad-width t: 3 bits are more than 2"]);
    refused("3, 2)", "3, 0)", &["bad-width t: 0 lower bits"]);
    refused("+1), 127)", "+1), 128)", &["bad-width t: 128 lower bits"]);
}

#[test]
fn fields() {
    let reads = |field: &str| format!("s5: rt switch {field} {{");
    let input = |field: &str, expected: &[&str]| {
        refused("s5: rt switch data[0+8] {", &reads(field), expected);
    };
    input("anno[376+8]", &[]);
    input("anno[377+8]", &["no-such-field t: there is no anno[377+8]"]);
    input("net[64+9]", &["unresolved t: net[64+9] counts from a header"]);
    input("meta[0+31]", &["no-such-field t: there is no meta[0+31]"]);
    // Devices that stop somewhere hand over where, to whole programs, too.
    input("carried[248+8]", &[]);
    input("carried[249+8]", &["no-such-field t: there is no carried[249+8]"]);
}

#[test]
fn state_and_tables() {
    let count = "state count of \"rt\" at rt: counter\n";
    let twice = format!("{count}{count}");
    refused(count, &twice, &["duplicate-state state 2: count of rt stands here twice"]);
    // Of another owner, or by another name, it is another.
    let other = format!("{count}state count of \"nat\" at rt: counter\n");
    refused(count, &other, &[]);
    let other = format!("{count}state counts of \"rt\" at rt: counter\n");
    refused(count, &other, &[]);
    let flows = "table 0 nat: flows of \"nat\" (32)\n";
    let no_flows = "table 0 nat: count of \"rt\" (32)\n";
    let source = changed(&[(flows, no_flows)]);
    assert_eq!(wrong(&source)[0], "wrong-state table 0: state 1 is no flows");
    let rules = "  1: key 0 == 17 && key 1 == 53 arm 1\n";
    let again = format!("{rules}table 3 nat: flows of \"nat\" (32)\n");
    refused(rules, &again, &["duplicate-table table 3: it stands here twice"]);
    let rule = |rule: &str, expected| refused("key 0 == 17 && key 1 == 53", rule, expected);
    rule("key 0 == 17 && key 1 in {}", &["empty-set table 2: no number is in the empty set"]);
    rule("key 0 == 17 && key 2 == 53", &["bad-cube table 2: key 2 of rule 1"]);
    rule("key 1 == 17 && key 1 == 53", &["bad-cube table 2: key 1 of rule 1"]);
}

#[test]
fn lookups() {
    let l1 = |to: &str, expected| refused("l1: rt find table 1 (l0.0) binding 2 + 0", to, expected);
    l1("l1: rt find table 3 (l0.0) binding 2 + 0", &["no-such-table l1: there is no table 3"]);
    l1("l1: rt find table 1 (l0.0, 1) binding 2 + 0", &["wrong-table l1: the table has 1 keys"]);
    l1(
        "l1: rt find table 1 (l0.0) binding 2 + 1",
        &["wrong-table l1: rows of prefixes have no common cells"],
    );
    l1(
        "l1: rt find table 2 (l0.0, 1) binding 2 + 0",
        &["wrong-table l1: rules bind no numbers: they lead to steps"],
    );
}

/// A program of one table of flows: its lookups and steps, and two exits.
fn walk(lookups: &str, steps: &str) -> Vec<String> {
    wrong(&format!(
        "program behind [0] a
         elements 0 a
         state f of \"a\" at a: flows 4 (8)
         table 0 a: f of \"a\" (8)
         l0: a find table 0 (data[0+8]) binding 1 + 0
         {lookups}
         {steps}"
    ))
}

/// An exit that needs a number of `l0`, and one that needs none.
const USES: &str = "exit visited [0] a timestamp = l0.0 push [0] a";
const ENDS: &str = "exit visited [0] a drop no-route at a";

#[test]
fn what_lookups_bound_is_used_where_they_hit() {
    let unbound = |steps: &str, place: &str| {
        let expected = format!("unbound {place}: t needs l0, which may not have hit");
        assert_eq!(walk("", steps), [expected], "{steps}");
    };
    let hit = format!("s0: find l0 s1 else s2 s1: {USES} s2: {ENDS}");
    assert_eq!(walk("", &hit), [""; 0]);
    unbound(&format!("s0: find l0 s2 else s1 s1: {USES} s2: {ENDS}"), "s1");
    unbound(&format!("s0: find l0 s1 else s1 s1: {USES}"), "s1");
    // A step that both lead to what hit and what did not, in either order.
    let test = "a if data[8+8] == 1";
    unbound(&format!("s0: {test} s1 else s2 s1: find l0 s2 else s3 s2: {USES} s3: {ENDS}"), "s2");
    unbound(
        &format!(
            "s0: find l0 s1 else s2 s1: {test} s3 else s4 s2: {test} s3 else s4 s3: {USES} s4: {ENDS}"
        ),
        "s3",
    );
    let both = format!(
        "s0: {test} s1 else s2 s1: find l0 s3 else s4 s2: find l0 s3 else s4 s3: {USES} s4: {ENDS}"
    );
    assert_eq!(walk("", &both), [""; 0]);
    // What each kind of step is about.
    let miss = |step: &str| format!("s0: find l0 s2 else s1 s1: {step} s2: {ENDS}");
    unbound(&miss("a if l0.0 == 1 s2 else s2"), "s1");
    unbound(&miss("a switch l0.0 {1} s2, else s2"), "s1");
    unbound(&miss("a classify (l0.0) arms s2 else s2 0: key 0 == 1 arm 0"), "s1");
    let update = "exit visited [0] a update l0 common () expiry now guarantee now push [0] a";
    assert_eq!(walk("", &miss(update)), ["unbound s1: l0, to update, may not have hit"]);
    // The key of a lookup.
    let lookup = "l1: a find table 0 (l0.0) binding 1 + 0";
    let keys = |hit, miss| {
        walk(lookup, &format!("s0: find l0 {hit} else {miss} s1: find l1 s2 else s2 s2: {ENDS}"))
    };
    assert_eq!(keys("s1", "s2"), [""; 0]);
    assert_eq!(keys("s2", "s1"), ["unbound s1: t needs l0, which may not have hit"]);
    // What a term is made from.
    let made = format!("t1 = l0.0 + 1 {}", miss("a if t1 == 1 s2 else s2"));
    assert_eq!(walk("", &made), ["unbound s1: t needs l0, which may not have hit"]);
}

#[test]
fn lookups_are_made_once_on_a_path() {
    let test = "a if data[8+8] == 1";
    let repeated = |steps: &str, place: &str| {
        assert_eq!(walk("", steps), [format!("repeated-lookup {place}: l0 was made before")]);
    };
    repeated(&format!("s0: find l0 s1 else s2 s1: find l0 s2 else s2 s2: {ENDS}"), "s1");
    repeated(&format!("s0: find l0 s2 else s1 s1: find l0 s2 else s2 s2: {ENDS}"), "s1");
    // On one of two paths, in either order.
    repeated(
        &format!("s0: {test} s1 else s2 s1: find l0 s3 else s2 s2: find l0 s3 else s3 s3: {ENDS}"),
        "s2",
    );
    repeated(
        &format!(
            "s0: {test} s1 else s2 s1: find l0 s3 else s4 s2: {test} s3 else s4 s3: find l0 s4 else s4 s4: {ENDS}"
        ),
        "s3",
    );
}

/// Sets of lookups are as long as they need to be.
#[test]
fn many_lookups() {
    let last = 130;
    let lookup = |n| format!("l{n}: a find table 0 (data[0+8]) binding 1 + 0\n");
    let lookups: String = (1..=last).map(lookup).collect();
    let find = |n: u32| format!("s{n}: find l{n} s{} else s{}\n", n + 1, last + 2);
    let finds: String = (0..=last).map(find).collect();
    let hits = |used: u32, until: u32| {
        let uses = format!("exit visited [0] a timestamp = l{used}.0 push [0] a");
        let finds: String =
            finds.lines().take(until as usize).map(|line| format!("{line}\n")).collect();
        let rest = |step: &str| step.replace(&format!("s{}", last + 2), &format!("s{}", until + 1));
        walk(&lookups, &rest(&format!("{finds}s{until}: {uses}\ns{}: {ENDS}", last + 2)))
    };
    assert_eq!(hits(last, last + 1), [""; 0]);
    assert_eq!(hits(64, 65), [""; 0]);
    assert_eq!(hits(64, 64), ["unbound s64: t needs l64, which may not have hit"]);
    assert_eq!(hits(last, 3), [format!("unbound s3: t needs l{last}, which may not have hit")]);
}

#[test]
fn steps() {
    assert_eq!(wrong("program behind [0] #0"), ["no-steps steps: there is nothing to do"]);
    let findings = |steps: &str, expected: &[&str]| {
        assert_eq!(walk("", &format!("{steps} s1: {ENDS}")), expected, "{steps}");
    };
    let alone = format!("s0: {ENDS}");
    findings(&alone, &["unreachable s1: nothing leads here"]);
    let test = |yes, no| format!("s0: a if now == 1 {yes} else {no}");
    findings(&test("s1", "s1"), &[]);
    findings(&test("s1", "s2"), &["bad-step s0: s2 does not stand behind it"]);
    findings(&test("s0", "s1"), &["bad-step s0: s0 does not stand behind it"]);
    findings("s0: a if now in {} s1 else s1", &["empty-set s0: no number is in the empty set"]);
    let switch =
        |cases: &str, expected| findings(&format!("s0: a switch now {cases}, else s1"), expected);
    switch("{0..4} s1, {5} s1", &[]);
    switch("{0..4} s1, {4} s1", &["overlap s0: the case of s1 meets another"]);
    switch("{0..4} s1, {9} s1, {2} s1", &["overlap s0: the case of s1 meets another"]);
    switch("{} s1", &["empty-set s0: no number is in the empty set"]);
    findings("s0: find l1 s1 else s1", &["no-such-lookup s0: there is no l1"]);
    let classify = |rule: &str, expected| {
        findings(&format!("s0: a classify (now, 1) arms s1 else s1 7: {rule}"), expected);
    };
    classify("key 0 == 1 && key 1 == 1 arm 0", &[]);
    classify("key 0 == 1 arm 1", &["no-such-arm s0: rule 7 has no arm"]);
    classify("key 2 == 1 arm 0", &["bad-cube s0: key 2 of rule 7"]);
    classify("key 0 == 1 && key 0 == 1 arm 0", &["bad-cube s0: key 0 of rule 7"]);
    classify("key 0 in {} arm 0", &["empty-set s0: no number is in the empty set"]);
    // Of a table of rules, with other keys than it has, and with another arm.
    let table = "data[72+8], data[176+16]";
    refused(table, "data[72+8]", &["wrong-table s0: table 2 has other rules or keys"]);
    refused("arm 0\n", "arm 2\n", &["no-such-arm s0: rule 0 has no arm"]);
}

#[test]
fn exits() {
    let nat = "s3: exit visited [0] rt, [0] nat\n";
    let began = "bad-path s3: the path does not begin at the entry";
    refused(nat, "s3: exit visited [0] nat, [0] rt\n", &[began]);
    refused(nat, "s3: exit visited [1] rt\n", &[began]);
    refused(nat, "s3: exit visited\n", &[began]);
    // It is handed back as it came only to the entry's native code.
    let began = "bad-path s7: the path does not begin at the entry";
    refused("push [0] rt, slow path", "push [0] rt", &[began]);
    refused("push [0] rt, slow path", "push [1] rt, slow path", &[began]);
    refused(
        "count count of \"rt\" by meta.len",
        "count flows of \"nat\" by meta.len",
        &["wrong-state s3: state 0 is no counter"],
    );
    refused(
        "update l0 common (1)",
        "update l1 common ()",
        &["wrong-table s3: l1, to update, is in no flows"],
    );
    refused(
        "  drop no-route at rt\n",
        "  drop no-route at rt\n  because cells\n",
        &["bad-end s6: a drop is no barrier"],
    );
    refused(
        "  drop no-route at rt\n",
        "  carried[0..1] = 1\n  drop no-route at rt\n",
        &["bad-end s6: what is carried is for another part of the program"],
    );
}

#[test]
fn writes() {
    refused("start -65535", "start -65536", &["bad-start s3: the data starts at -65536"]);
    refused("start -65535", "start 65536", &["bad-start s3: the data starts at 65536"]);
    refused("start -65535", "start 65535", &[]);
    let first = "data[-65535..-65519]";
    refused(first, "data[-65536..-65520]", &[]);
    let meets = |place: &str, length: u8| {
        [format!("overlap s3: {place} of {length} bytes meets what is before")]
    };
    let write = |from: &str, to: &str, expected: &[String]| {
        let source = changed(&[(from, to)]);
        assert_eq!(wrong(&source), expected, "{source}");
    };
    write(first, "data[-65537..-65521]", &meets("data[-65537]", 16));
    write(first, "data[-65534..-65518]", &meets("data[-65519]", 1));
    write(first, "data[-65536..-65519]", &["bad-width s3: data[-65536] of 17 bytes".into()]);
    write(first, "data[-65535..-65535]", &["bad-width s3: data[-65535] of 0 bytes".into()]);
    let anno = "anno[47..48]";
    write(anno, "anno[47..49]", &["out-of-bounds s3: anno is written up to byte 49".into()]);
    write(anno, "anno[-1..1]", &meets("anno[-1]", 2));
    let mark = |to: &str, expected: &[&str]| refused("net at -2147483648", to, expected);
    mark("net at 4294967295", &[]);
    mark(
        "net at -2147483649",
        &["bad-mark s3: a header at 340282366920938463463374607429620727807"],
    );
    mark("net at 4294967296", &["bad-mark s3: a header at 4294967296"]);
    mark("transport at 4294967296", &["bad-mark s3: a header at 4294967296"]);
}

#[test]
fn handing_off() {
    let with = |line: &str| format!("{line}\n  hand off to continuation 3");
    let hands = |line: &str, expected: &[&str]| {
        refused("hand off to continuation 3", &with(line), expected);
    };
    let changed_packet = "bad-end s8: a packet that is handed off is as it came in";
    hands("start 1", &[changed_packet]);
    hands("length now", &[changed_packet]);
    hands("unmark net", &[changed_packet]);
    hands("note x at rt", &[changed_packet]);
    hands("carried[31..32] = 1", &["overlap s8: carried[31] of 1 bytes meets what is before"]);
    hands("carried[32..33] = 1", &["out-of-bounds s8: carried is written up to byte 33"]);
    let visited = "s8: exit visited\n";
    refused(visited, "s8: exit visited [0] rt\n", &[changed_packet]);
    let back = "behind [0] rt from continuation 3\n";
    let from = "bad-end s8: it is handed off to where it came from, continuation 3";
    refused("behind [0] rt\n", back, &[from]);
}
