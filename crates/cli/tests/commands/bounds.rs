//! What is read and allocated has bounds, and what others wrote does nothing to a terminal.

use std::path::Path;
use std::process::Command;

use net::pcap::{Options, Writer};

use crate::program::{Ended, Folder};

/// Runs `catena` as on a terminal with colours.
fn on_terminal(folder: &Folder, arguments: &[&str]) -> Ended {
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    command.args(arguments).output().unwrap().into()
}

#[track_caller]
fn is_told(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is missing: {text}");
    }
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    let folder = Folder::new();
    for (chain, parts) in [
        ("InfiniteSource(LENGTH 4000000000) -> Discard;", ["the longest are of 65535", ""]),
        ("Idle -> q :: Queue(4000000000) -> Idle;", ["CAPACITY of Queue 'q' takes", "1024.0 MiB"]),
        (
            "Idle -> q :: Queue(18446744073709551615) -> Idle;",
            ["CAPACITY of Queue 'q'", "of memory"],
        ),
        (
            "m :: SourceIPHashMapper(99999999999 1, - - 1.0.0.1 - 0 0 7);",
            ["POINTS of SourceIPHashMapper 'm' takes", "--max-memory"],
        ),
    ] {
        let checked = folder.file("c.click", chain).run(["check", "c.click"]);
        assert_eq!(checked.code, Some(1), "{chain}");
        is_told(&checked.out, &parts);
    }
    // All elements together.
    folder.file("c.click", "InfiniteSource(LENGTH 65535) -> Discard;".repeat(20));
    folder.run(["check", "c.click", "--quiet"]).well();
    let checked = folder.run(["check", "c.click", "--max-memory", "900k"]);
    let parts = ["LENGTH of InfiniteSource '", "takes 64.0 KiB", "of 900.0 KiB for all"];
    is_told(&checked.out, &parts);
    folder.file("c.click", "Idle -> IPRRSwitch -> Discard;".repeat(20));
    let checked = folder.run(["check", "c.click", "--max-memory", "1M"]);
    is_told(&checked.out, &["IPRRSwitch '"]);
    folder.file("c.click", "Idle -> Discard;".repeat(1000));
    let checked = folder.run(["check", "c.click", "--max-memory", "1M"]);
    assert_eq!(checked.out.matches("error[too-much-memory]").count(), 1, "{}", checked.out);
    folder.file("c.click", "FromDevice(a) -> Discard;");
    let refused = folder.run(["run", "c.click", "--in", "a=gen:zipf=10,flows=100M"]);
    is_told(refused.refused(), &["with zipf there are at most 4194304 flows"]);
}

#[test]
fn text_is_read_up_to_a_limit() {
    let folder = Folder::new();
    folder.file("c.click", format!("Idle -> Discard; // {}", "x".repeat(2000)));
    folder.run(["check", "c.click", "--quiet"]).well();
    let why = "more than 1024 bytes of text in all; `--max-source SIZE` allows more";
    let limit = ["--max-source", "1k"];
    is_told(&folder.run(["check", "c.click"].iter().chain(&limit)).out, &[why]);
    is_told(&folder.run(["fmt", "--check", "c.click"].iter().chain(&limit)).err, &[why]);
    is_told(folder.run(["run", "c.click"].iter().chain(&limit)).refused(), &[why]);
    let piped = folder.run_with(["flatten", "-"].iter().chain(&limit), &"x".repeat(2000));
    is_told(piped.refused(), &["standard input: more than 1024 bytes"]);
    // Of all together.
    folder.file("l.click", format!("// {}", "x".repeat(600)));
    folder.file(
        "c.click",
        format!("require(library l.click); Idle -> Discard; // {}", "x".repeat(600)),
    );
    is_told(&folder.run(["check", "c.click"].iter().chain(&limit)).out, &["'l.click'", why]);
    // Decompressed.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut bomb, &vec![b' '; 1 << 20]).unwrap();
    folder.file("c.click", bomb.finish().unwrap());
    is_told(
        &folder.run(["check", "c.click", "--max-source", "64k"]).out,
        &["more than 65536 bytes"],
    );
    // What is made of it takes more than its bytes.
    folder.file("c.click", ";".repeat(3 << 20));
    is_told(&folder.run(["check", "c.click"]).out, &["error[file-too-large]", "2097152 tokens"]);
    folder.file("c.click", format!("Idle -> Classifier({}) -> Discard;", ",".repeat(3 << 20)));
    is_told(&folder.run(["check", "c.click"]).out, &["error[file-too-large]"]);
    // Many come of one variable.
    folder.file("c.click", format!("Idle -> Classifier({}) -> Discard;", "$a,".repeat(64)));
    let checked = folder.run(["check", "c.click", &format!("a=1{}", ",1".repeat(40_000))]);
    is_told(&checked.out, &["error[chain-too-large]", "2097152 arguments"]);
}

#[test]
fn nothing_but_regular_files_is_read() {
    let folder = Folder::new();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (name, kind) in [("fifo", "is a FIFO"), ("/dev/zero", "is a device"), (".", "is a folder")]
    {
        is_told(folder.run(["run", name]).refused(), &[name, kind]);
        is_told(&folder.run(["check", name]).out, &[name, kind]);
        is_told(&folder.run(["fmt", "--check", name]).err, &[name, kind]);
        folder.file("c.click", format!("require(library {name}); Idle -> Discard;"));
        is_told(&folder.run(["check", "c.click"]).out, &["cannot be read", kind]);
        folder.file("c.click", format!("FromDump({name}) -> Discard;"));
        is_told(&folder.run(["check", "c.click"]).out, &["warning[device]", kind]);
        is_told(folder.run(["run", "c.click"]).refused(), &[kind]);
        folder.file("c.click", format!("Script(print $(cat {name}), stop);"));
        is_told(folder.run(["run", "c.click"]).refused(), &[kind]);
        folder.file("c.click", "FromDevice(a) -> Discard;");
        is_told(
            folder.run(["run", "c.click", "--in", &format!("a=replay:{name}")]).refused(),
            &[kind],
        );
    }
}

#[test]
fn scripts_do_not_grow_without_bounds() {
    let folder = Folder::new();
    for (script, why) in [
        ("set x abcdefgh, label l, set x $x$x, goto l", "a text becomes longer than 1048576 bytes"),
        (
            "set y abcdefgh, label l, set y $(sprintf '%04096d%s' 1 $y), goto l",
            "longer than 1048576 bytes",
        ),
        ("label l, error $(cat /dev/zero), goto l", "is a device"),
    ] {
        let ended = folder.file("c.click", format!("Script({script});")).run(["run", "c.click"]);
        is_told(ended.refused(), &[why]);
        assert!(ended.err.len() < 1 << 20, "{} bytes", ended.err.len());
    }
    // Variables whose names are made.
    let filling =
        "set long $(sprintf '%04096d' 1), set long $long$long$long$long$long$long$long$long,
        set long $long$long$long$long$long$long$long$long, set n 0, label l, set n $(add $n 1),
        write s.set v$n $long, goto l";
    let ended = folder.file("c.click", format!("s :: Script({filling});")).run(["run", "c.click"]);
    is_told(ended.refused(), &["the script's variables take more than 16777216 bytes"]);
}

/// Fragments of a byte or eight take two thousand of memory.
#[test]
fn small_fragments_take_no_more_memory_than_large_ones() {
    let folder = Folder::new();
    let file = std::fs::File::create(folder.path().join("in.pcap")).unwrap();
    let mut writer = Writer::new(std::io::BufWriter::new(file), &Options::default()).unwrap();
    for id in 0..20_000_u16 {
        let mut frame = vec![0; 14 + 20 + 8];
        frame[12] = 8;
        frame[14..22].copy_from_slice(&[0x45, 0, 0, 28, (id >> 8) as u8, id as u8, 0x20, 0]);
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[29] = 1;
        frame[33] = 2;
        writer.write(1_000_000_000, &frame, frame.len() as u32).unwrap();
    }
    writer.finish().unwrap();
    let given_up = |memory: &str| {
        let chain = format!(
            "FromDump(in.pcap, STOP true) -> Strip(14) -> MarkIPHeader
                -> r :: IPReassembler(HIMEM {memory}) -> Discard;"
        );
        let ended = folder.file("c.click", chain).run(["run", "c.click", "-h", "r.dump"]);
        let dump = ended.out.lines().find_map(|line| line.strip_prefix("packets given up: "));
        dump.unwrap_or_else(|| panic!("{ended:?}")).parse::<u64>().unwrap()
    };
    // 48 bytes each as fragments are counted, and 2,100 as they are kept.
    assert!((8_000..18_000).contains(&given_up("1000000")), "{}", given_up("1000000"));
    assert_eq!(given_up("100000000"), 0);
}

/// Wipes a screen, sets a title, turns text round; it must not get to a terminal.
const HOSTILE: &str = "\x1b[2J\x1b]0;gone\x07\x1b[32m\u{9b}1J\u{202e}\r";

/// Whether a text holds nothing but lines, tabs and styles of ours.
#[track_caller]
fn is_harmless(text: &str, styles: bool) {
    let mut rest = text.to_string();
    if styles {
        assert!(text.contains("\x1b[0m"), "no colours: {text:?}");
        for style in ["0", "1", "2", "31", "33", "34", "36", "91", "92", "93", "94", "96"] {
            rest = rest.replace(&format!("\x1b[{style}m"), "");
        }
    }
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!rest.contains(bad), "{text:?}");
}

#[test]
fn what_others_wrote_does_nothing_to_a_terminal() {
    let folder = Folder::new();
    // In configurations, as arguments, files and names, and in what is told of them.
    for chain in [
        format!("Idle -> Strip(\"{HOSTILE}\") -> Discard;"),
        format!("Idle -> x{HOSTILE} -> Discard;"),
        format!("require(library \"{HOSTILE}\"); Idle -> Discard;"),
        format!("Idle -> IPClassifier({HOSTILE}) -> Discard;"),
        format!(
            "Idle -> Paint({HOSTILE} 1, {HOSTILE}) -> Discard; FromDump({HOSTILE}) -> Discard;"
        ),
    ] {
        folder.file("c.click", chain);
        for command in ["check", "run", "synth", "explain", "graph"] {
            let plain = folder.run([command, "c.click"]);
            is_harmless(&plain.err, false);
            let shown = on_terminal(&folder, &[command, "c.click"]);
            let told = if command == "check" { &shown.out } else { &shown.err };
            if shown.code != Some(0) && (command != "explain" || told.contains("error[")) {
                is_harmless(told, true);
            }
        }
    }
    // In file names and command lines.
    let name = HOSTILE.replace('/', "");
    for arguments in
        [["check", name.as_str()], ["run", &name], ["fmt", &name], ["run", "--x\x1b[2J"]]
    {
        let ended = on_terminal(&folder, &arguments);
        assert_ne!(ended.code, Some(0));
        is_harmless(&ended.err, false);
        is_harmless(&ended.out, ended.out.contains("error["));
    }
    // In what handlers and scripts say: as it is where nobody looks, escaped on a terminal.
    let chain = format!(
        "s :: Script(TYPE PASSIVE, return \"{HOSTILE}\"); Script(printn \"{HOSTILE}\", stop);"
    );
    folder.file("c.click", chain);
    let run = ["run", "c.click", "-q", "-h", "s.run"];
    assert_eq!(folder.run(run).out.matches(HOSTILE).count(), 2);
    let shown = on_terminal(&folder, &run);
    is_harmless(&shown.out, false);
    assert_eq!(
        shown.out.matches("\\u001b[2J\\u001b]0;gone\\u0007\\u001b[32m").count(),
        2,
        "{shown:?}"
    );
    // What elements print on the standard error is escaped anywhere.
    folder.file("c.click", format!("InfiniteSource(LIMIT 1) -> Print(\"{HOSTILE}\") -> Discard;"));
    let told = folder.run(["run", "c.click", "-q"]).err;
    is_harmless(&told, false);
    assert!(told.contains("\\u001b[2J"), "{told:?}");
}
