//! `catena verify`.

use crate::program::Folder;

const FILTER: &str = "\
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader
  -> f :: IPFilter(allow tcp && dst port 80, allow udp, drop all)
  -> DecIPTTL -> Unstrip(14) -> ToDump(out.pcap);
";

#[test]
fn a_chain_equals_what_it_becomes() {
    let folder = Folder::new();
    let ended = folder.file("a.click", FILTER).run(["verify", "a.click", "--packets", "500"]);
    let text = ended.well();
    assert!(text.starts_with("equal a.click"), "{text}");
    assert!(text.contains("1 of 1 program"), "{text}");
}

#[test]
fn a_chain_written_otherwise_is_equal() {
    let folder = Folder::new();
    // Rules that exclude each other in another order, and an element that does nothing.
    let other = FILTER
        .replace("allow tcp && dst port 80, allow udp", "allow udp, allow tcp && dst port 80")
        .replace("-> DecIPTTL", "-> Null -> DecIPTTL")
        .replace("in.pcap", "in.pcap, BURST 8");
    folder.file("a.click", FILTER).file("b.click", other);
    let ended = folder.run(["verify", "a.click", "b.click", "--packets", "500"]);
    assert!(ended.well().starts_with("equal a.click and b.click"), "{}", ended.out);
}

#[test]
fn a_difference_is_shown_by_a_packet() {
    let folder = Folder::new();
    let other = FILTER.replace("allow udp", "allow udp && dst port 53");
    folder.file("a.click", FILTER).file("b.click", other);
    let ended = folder.run(["verify", "a.click", "b.click", "--pcap", "d.pcap"]);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.out.starts_with("different a.click and b.click"), "{}", ended.out);
    let dropped = "the second: drops at 'f' (b.click:2) as denied";
    assert!(ended.out.contains(dropped), "{}", ended.out);
    // The packet shows it when it is sent through the chains.
    for (file, came) in [("a.click", 1), ("b.click", 0)] {
        let text = folder
            .read(file)
            .replace("in.pcap", "d.pcap")
            .replace("ToDump(out.pcap)", "c :: Counter -> Discard");
        folder.file("run.click", text);
        let ran = folder.run(["run", "run.click", "-h", "c.count"]);
        assert!(ran.well().contains(&came.to_string()), "{file}: {}", ran.out);
    }
    let json = folder.run(["verify", "a.click", "b.click", "--json"]);
    assert_eq!(json.code, Some(1));
    assert!(json.out.contains("\"verdict\": \"different\"") && json.out.contains("\"hex\""));
}

#[test]
fn what_cannot_be_asked_ends_with_another_status() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Countr -> Discard;");
    assert_eq!(folder.run(["verify", "a.click"]).code, Some(2));
    assert_eq!(folder.run(["verify", "missing.click"]).code, Some(2));
}

/// What comparing two chains, each behind the same device, says of them.
fn compared(one: &str, other: &str) -> String {
    let folder = Folder::new();
    let chain = |rest: &str| format!("FromDevice(lan) -> Strip(14) -> {rest}");
    folder.file("a.click", chain(one)).file("b.click", chain(other));
    let ended = folder.run(["verify", "a.click", "b.click", "--packets", "200"]);
    let code = match ended.out.split(' ').next() {
        Some("equal") => 0,
        Some("different") => 1,
        _ => 2,
    };
    assert_eq!(ended.code, Some(code), "{}{}", ended.out, ended.err);
    ended.out
}

const SPLIT: &str = "CheckIPHeader -> c :: IPClassifier(tcp, -);";

#[test]
fn another_device_behind_a_queue_is_a_difference() {
    let (b, d) = ("Queue -> ToDevice(b)", "Queue -> ToDevice(d)");
    let one = format!("{SPLIT} c[0] -> {b}; c[1] -> {d};");
    let swapped = format!("{SPLIT} c[0] -> {d}; c[1] -> {b};");
    let text = compared(&one, &swapped);
    assert!(text.starts_with("different") && text.contains("sends to ToDevice(d)"), "{text}");
    // Only in other words.
    let text = compared(&one, &format!("{SPLIT} c[1] -> {d}; c[0] -> {b};"));
    assert!(text.starts_with("equal"), "{text}");
    for (one, other) in [
        ("q :: Queue -> ToDevice(w);", "q :: Queue -> ToDevice(x);"),
        ("p :: ToDump(a.pcap);", "p :: ToDump(b.pcap);"),
    ] {
        let text = compared(one, other);
        assert!(text.starts_with("different"), "{text}");
    }
}

#[test]
fn another_source_is_a_difference() {
    let folder = Folder::new();
    folder.file("a.click", "in :: FromDevice(a) -> Queue -> ToDevice(w);");
    folder.file("b.click", "in :: FromDevice(b) -> Queue -> ToDevice(w);");
    folder.file("c.click", "Idle -> Discard;");
    for other in ["b.click", "c.click"] {
        let ended = folder.run(["verify", "a.click", other]);
        assert_eq!(ended.code, Some(1), "{}", ended.out);
        assert!(ended.out.contains("what comes from 'in' (a.click:1)"), "{}", ended.out);
    }
    let ended = folder.run(["verify", "a.click", "a.click"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
}

#[test]
fn chains_that_nothing_comes_out_of_are_equal() {
    let silent = [
        "",
        "// Nothing.",
        "Idle -> Counter -> Discard;",
        "Idle -> ToDump(out.pcap);",
        "Idle -> Queue -> Unqueue -> Strip(14) -> ToDump(out.pcap);",
        "FromDevice(a) -> Strip(14) -> Discard;",
    ];
    let verify = |one: &str, other: &str| {
        let folder = Folder::new();
        let folder = folder.file("a.click", one).file("b.click", other);
        folder.run(["verify", "a.click", "b.click", "--packets", "20"])
    };
    let speaking = "in :: FromDevice(a) -> Queue -> ToDevice(b);";
    for one in silent {
        for other in silent {
            let ended = verify(one, other);
            assert!(ended.well().starts_with("equal"), "{one} and {other}: {}", ended.out);
        }
        for ended in [verify(one, speaking), verify(speaking, one)] {
            assert_eq!(ended.code, Some(1), "{one}: {}", ended.out);
            // In the last, the other chain has that source, too.
            let told = ["what comes from 'in'", "sends to ToDevice(b)"];
            assert!(told.iter().any(|told| ended.out.contains(told)), "{}", ended.out);
        }
    }
    assert!(verify("", "").out.contains("nothing comes out of either chain"));
    // What nothing comes to does not matter.
    let ended = verify(speaking, &format!("{speaking} Idle -> Strip(1) -> ToDump(o.pcap);"));
    assert!(ended.well().starts_with("equal"), "{}", ended.out);
}

#[test]
fn an_output_that_one_source_lacks_is_a_difference() {
    let one = "in :: FromDevice(a, FORCE_IP true) -> Queue -> ToDevice(b);";
    let more = format!("{one} in[1] -> Queue -> ToDevice(c);");
    let folder = Folder::new();
    folder.file("a.click", one).file("b.click", more);
    for pair in [["a.click", "b.click"], ["b.click", "a.click"]] {
        let ended = folder.run(["verify", pair[0], pair[1], "--packets", "20"]);
        assert_eq!(ended.code, Some(1), "{}", ended.out);
        assert!(
            ended.out.contains("what comes from output 1 of 'in' (b.click:1)"),
            "{}",
            ended.out
        );
    }
}

#[test]
fn what_lies_behind_programs_is_compared() {
    let scheduled = "c[0] -> Queue -> [0] s :: PrioSched -> ToDevice(w); c[1] -> Queue -> [1] s;";
    let others = "c[1] -> Queue -> [0] s :: PrioSched -> ToDevice(w); c[0] -> Queue -> [1] s;";
    let (scheduled, others) = (format!("{SPLIT} {scheduled}"), format!("{SPLIT} {others}"));
    for (one, other, why) in [
        ("Queue -> ToDevice(w);", "Queue -> Shaper(10) -> ToDevice(w);", "is Shaper(10)"),
        (
            "Queue -> s :: Shaper(10) -> ToDevice(w);",
            "Queue -> s :: Shaper(20) -> ToDevice(w);",
            "'s' (a.click:1) is Shaper(10) and 's' (b.click:1) is Shaper(20)",
        ),
        ("q :: Queue(1000) -> ToDevice(w);", "q :: Queue(1) -> ToDevice(w);", "is Queue(1)"),
        (
            "m :: Meter(100) -> q :: Queue -> ToDevice(w); m[1] -> Discard;",
            "m :: Meter(200) -> q :: Queue -> ToDevice(w); m[1] -> Discard;",
            "whether any does is not clear",
        ),
        (&scheduled, &others, "leads to other ports"),
    ] {
        let text = compared(one, other);
        assert!(text.starts_with("undecided") && text.contains(why), "{one} and {other}: {text}");
        for same in [one, other] {
            let text = compared(same, same);
            assert!(text.starts_with("equal"), "{same}: {text}");
        }
    }
    // Programs before and behind an element with code of its own.
    let metered =
        |rest: &str| format!("m :: Meter(100) {rest} -> Queue -> ToDevice(w); m[1] -> Discard;");
    let text = compared(&metered(""), &metered("-> Null"));
    assert!(text.starts_with("equal"), "{text}");
    let text = compared(&metered(""), &metered("-> Strip(1)"));
    assert!(text.starts_with("different"), "{text}");
}

#[test]
fn a_translator_is_compared_with_its_patterns() {
    let nat = |pattern: &str, rest: &str| {
        format!(
            "CheckIPHeader -> IPClassifier(tcp) -> rw :: IPRewriter(pattern {pattern} 0 1) {rest}
            -> Queue -> ToDevice(w); rw[1] -> Discard;"
        )
    };
    let one = nat("30.0.0.1 1024-65535 - -", "");
    let text = compared(&one, &nat("30.0.0.2 1024-65535 - -", ""));
    assert!(text.starts_with("different"), "{text}");
    // Flows that only one of them can hold are none that packets can be tried with.
    let in_turn = |most: u16| nat(&format!("30.0.0.1 1024-{most}# - -"), "");
    let text = compared(&in_turn(65535), &in_turn(65534));
    assert!(text.starts_with("undecided") && !text.contains("malformed"), "{text}");
    // What follows is compared for packets of flows.
    let text = compared(&one, &nat("30.0.0.1 1024-65535 - -", "-> Null"));
    assert!(text.starts_with("equal"), "{text}");
    let text = compared(&one, &nat("30.0.0.1 1024-65535 - -", "-> IPFilter(allow dst port 80)"));
    assert!(text.starts_with("different"), "{text}");
}

#[test]
fn packets_that_programs_leave_to_elements_are_compared() {
    let one = "CheckIPHeader -> IPFilter(allow tcp dst port 80, deny all) -> Queue -> ToDevice(w);";
    for same in [
        "CheckIPHeader -> IPFilter(allow tcp, deny all) -> IPFilter(allow dst port 80, deny all)
            -> Queue -> ToDevice(w);",
        "CheckIPHeader -> IPClassifier(tcp dst port 80) -> Queue -> ToDevice(w);",
    ] {
        let text = compared(one, same);
        assert!(text.starts_with("equal"), "{text}");
    }
    // Where ports are in packets without options.
    let fixed = "CheckIPHeader -> IPFilter(allow tcp, deny all) -> IPClassifier(not ip frag)
        -> c :: Classifier(22/0050) -> Queue -> ToDevice(w);";
    let read = "CheckIPHeader -> IPFilter(allow tcp, deny all) -> IPClassifier(not ip frag)
        -> c :: IPClassifier(dst port 80) -> Queue -> ToDevice(w);";
    let text = compared(fixed, read);
    assert!(text.starts_with("different"), "{text}");
}

#[test]
fn loops_and_long_chains_are_no_difference() {
    let folder = Folder::new();
    folder.file("loop.click", "FromDevice(a) -> l :: Null -> c :: Counter -> l;");
    let ended = folder.run(["verify", "loop.click", "--packets", "20"]);
    assert!(ended.well().starts_with("equal"), "{}", ended.out);
    assert!(ended.out.contains("packets that go round in circles"), "{}", ended.out);
    assert!(ended.out.lines().count() < 10, "{}", ended.out);
    let long = format!("FromDevice(a) {}-> Discard;", "-> Counter ".repeat(4200));
    let ended = folder.file("long.click", long).run(["verify", "long.click", "--packets", "20"]);
    assert!(ended.well().starts_with("equal"), "{}", &ended.out[..ended.out.len().min(1000)]);
    assert!(!ended.out.contains("not compared"), "{}", ended.out);
}

#[test]
fn what_handlers_change_is_compared() {
    let chain = |front: &str, one: &str, script: &str| {
        format!("{front} sw :: Switch(0); sw[0] -> Queue -> ToDevice(w); sw[1] -> {one}; {script}")
    };
    let script = "s :: Script(wait 1, write sw.switch 1);";
    let plain = chain("", "Discard", "");
    // A script, a driver manager, a trigger and the end of a source, each in one chain only.
    for (other, name) in [
        (chain("", "Discard", script), "'s' (b.click:1)"),
        (chain("", "Discard", "d :: DriverManager(wait 5s, stop);"), "'d' (b.click:1)"),
        (chain("c :: Counter(COUNT_CALL 2000 sw.switch 1) ->", "Discard", ""), "'c' (b.click:1)"),
        (
            chain("p :: Script(TYPE PACKET, write sw.switch 1, return 0) ->", "Discard", ""),
            "'p' (b.click:1)",
        ),
        (
            chain("", "Discard", "s :: Script(set x sw, wait 1, write $x.switch 1);"),
            "'s' (b.click:1)",
        ),
    ] {
        let text = compared(&plain, &other);
        assert!(!text.starts_with("equal"), "{other}: {text}");
        assert!(text.contains(name), "{other}: {text}");
        let text = compared(&other, &other);
        assert!(text.starts_with("equal"), "{other}: {text}");
    }
    // The same script: what it writes is compared with all that it leads to, by name.
    let written = chain("", "Discard", script);
    let text = compared(&written, &chain("Null ->", "Null -> Discard", script));
    assert!(text.starts_with("equal"), "{text}");
    let elsewhere = chain("", "Queue -> ToDevice(x)", script);
    for text in [compared(&written, &elsewhere), compared(&elsewhere, &written)] {
        assert!(!text.starts_with("equal"), "{text}");
    }
    let renamed = written.replace("sw :: ", "tw :: ").replace("sw[", "tw[");
    let renamed =
        format!("{renamed} sw :: Switch(0); Idle -> sw; sw[0] -> Discard; sw[1] -> Discard;");
    let text = compared(&written, &renamed);
    assert!(!text.starts_with("equal"), "{text}");
    let queue = |script: &str| format!("q :: Queue(10) -> ToDevice(w); {script}");
    let text = compared(&queue(""), &queue("s :: Script(wait 5, write q.reset);"));
    let why = "handlers may change 'q' (b.click:1) of the second chain, and not 'q' (a.click:1)";
    assert!(text.contains(why), "{text}");
    let folder = Folder::new();
    let source = |more: &str| format!("f :: FromDump(in.pcap{more}) -> Queue -> ToDevice(w);");
    folder.file("in.pcap", "").file("a.click", source("")).file("b.click", source(", STOP true"));
    let ended = folder.run(["verify", "a.click", "b.click", "--packets", "50"]);
    assert!(ended.code != Some(0), "{}{}", ended.out, ended.err);
}

#[test]
fn a_trigger_that_packets_reach_is_shown_by_them() {
    let chain = |calls: &str| {
        format!(
            "c :: Counter{calls} -> sw :: Switch(0); sw[0] -> Queue -> ToDevice(w);
            sw[1] -> Discard;"
        )
    };
    let text = compared(&chain(""), &chain("(COUNT_CALL 3 sw.switch 1)"));
    assert!(text.starts_with("different"), "{text}");
    assert!(text.contains("  packet 3 to FromDevice(lan) (a.click:1)"), "{text}");
}

#[test]
fn a_witness_is_no_longer_than_what_captures_hold() {
    // Of 65,535 bytes, 14 are stripped.
    for (one, other, expected) in [(65_520, 66_000, "different"), (65_521, 66_000, "undecided")] {
        let [one, other] = [one, other]
            .map(|most| format!("CheckIPHeader -> CheckLength({most}) -> ToDevice(w);"));
        let text = compared(&one, &other);
        assert!(text.starts_with(expected), "{one}: {text:.300}");
    }
}

#[test]
fn what_no_source_gives_is_no_difference() {
    // Flows that a translator cannot hold, frames that do not come behind an encapsulation, and
    // annotations that nothing sets or nobody sees.
    let nat = "CheckIPHeader -> IPFilter(allow src 10.0.0.0/8 and tcp, deny all)
        -> rw :: IPRewriter(pattern 30.0.0.1 1024-65535 - - 0 1)";
    for (one, other) in [
        (
            format!("{nat} -> Queue -> ToDevice(w); rw[1] -> Discard;"),
            format!(
                "{nat} -> IPFilter(allow src host 30.0.0.1, deny all) -> Queue -> ToDevice(w); rw[1] -> Discard;"
            ),
        ),
        (
            "IPEncap(4, 1.1.1.1, 2.2.2.2) -> Queue -> ToDevice(w);".into(),
            "IPEncap(4, 1.1.1.1, 2.2.2.2) -> Queue -> CheckIPHeader -> ToDevice(w);".into(),
        ),
    ] {
        let text = compared(&one, &other);
        assert!(!text.starts_with("different"), "{one} and {other}: {text}");
    }
    let painted = "p :: PaintSwitch; p[0] -> Queue -> ToDevice(w); p[1] -> Discard;";
    let text = compared("Queue -> ToDevice(w);", painted);
    assert!(text.starts_with("equal"), "{text}");
    for same in ["Paint(3) -> ToDump(w);", "MarkIPHeader -> Queue -> Unqueue -> ToDump(w);"] {
        let plain = same.replace("Paint(3) -> ", "").replace("MarkIPHeader -> ", "");
        let text = compared(&plain, same);
        assert!(text.starts_with("equal"), "{same}: {text}");
    }
}

#[test]
fn differences_behind_what_holds_packets_are_found() {
    for (one, other, field) in [
        (
            "CheckIPHeader -> Queue -> SetIPDSCP(1) -> Unqueue -> ToDump(w);",
            "CheckIPHeader -> Queue -> SetIPDSCP(2) -> Unqueue -> ToDump(w);",
            "ip.dscp 1, not 2",
        ),
        (
            "CheckIPHeader -> IPGWOptions(1.2.3.4) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
                -> Queue -> ToDevice(w);",
            "CheckIPHeader -> IPGWOptions(1.2.3.4) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:3)
                -> Queue -> ToDevice(w);",
            "eth.dst 02:02:02:02:02:02, not 02:02:02:02:02:03",
        ),
        (
            "CheckIPHeader -> IPClassifier(udp) -> Queue -> ToDevice(w);",
            "CheckIPHeader -> IPClassifier(udp) -> SetIPAddress(9.9.9.9) -> StoreIPAddress(9.9.9.9, dst)
                -> Queue -> ToDevice(w);",
            "not 9.9.9.9",
        ),
    ] {
        let text = compared(one, other);
        assert!(text.starts_with("different"), "{one} and {other}: {text}");
        assert!(text.to_lowercase().contains(&field.to_lowercase()), "{one} and {other}: {text}");
        assert!(compared(one, one).starts_with("equal"), "{one}");
    }
    let text = compared(
        "CheckIPHeader -> Queue -> SetIPDSCP(1) -> Unqueue -> ToDump(w);",
        "CheckIPHeader -> Queue -> Null -> SetIPDSCP(1) -> Unqueue -> ToDump(w);",
    );
    assert!(text.starts_with("equal"), "{text}");
    // Packets with options that only the element's native code handles.
    let behind = |rest: &str| {
        format!("CheckIPHeader -> IPGWOptions(1.2.3.4) -> {rest}, 2:2:2:2:2:2) -> ToDump(w);")
    };
    let plain = behind("EtherEncap(0x0800, 1:1:1:1:1:1");
    for (rest, expected) in [
        ("Null -> n :: Null -> EtherEncap(0x0800, 1:1:1:1:1:1", "equal"),
        ("Null -> EtherEncap(0x0800, 1:1:1:1:1:3", "different"),
    ] {
        let text = compared(&plain, &behind(rest));
        assert!(text.starts_with(expected), "{rest}: {text}");
    }
}

#[test]
fn one_rule_of_many_that_overlap_is_found() {
    // Rules that overlap in both addresses and both ports.
    let mut random = 1u64;
    let mut below = |n: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let mut rules: Vec<String> = Vec::new();
    for _ in 0..2000 {
        let (a, b, x, y) = (below(200), below(200), below(60_000), below(60_000));
        let action = ["allow", "deny"][below(2) as usize];
        rules.push(format!(
            "{action} src net 10.{a}.0.0/{} && dst net 20.{b}.0.0/{} \
             && src port >= {x} && src port <= {} && dst port >= {y} && dst port <= {}",
            10 + below(7),
            10 + below(7),
            x + 4000,
            y + 4000,
        ));
    }
    let chain = |rules: &[String]| {
        format!(
            "CheckIPHeader -> IPFilter({}, deny all) -> Queue -> ToDevice(w);",
            rules.join(", ")
        )
    };
    let one = chain(&rules);
    let flipped = match rules[1500].strip_prefix("allow") {
        Some(rest) => format!("deny{rest}"),
        None => rules[1500].replacen("deny", "allow", 1),
    };
    rules[1500] = flipped;
    let text = compared(&one, &chain(&rules));
    assert!(text.starts_with("different"), "{text}");
}

#[test]
fn witnesses_of_several_sources_are_an_interface_each() {
    let folder = Folder::new();
    let chain = |rest: &str| {
        format!(
            "rw :: IPRewriter(pattern 30.0.0.1 1024 - - 0 1, drop);
            a :: FromDevice(a) -> Strip(14) -> CheckIPHeader -> IPClassifier(udp src 10.0.0.1) -> [0] rw;
            b :: FromDevice(b) -> Strip(14) -> CheckIPHeader -> IPClassifier(udp) -> [1] rw;
            rw[0] -> Queue -> ToDevice(b); rw[1] -> {rest} Queue -> ToDevice(a);"
        )
    };
    folder.file("a.click", chain("")).file("b.click", chain("SetIPDSCP(5) ->"));
    let ended = folder.run(["verify", "a.click", "b.click", "--pcap", "d.pcap", "--json"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let packets = json["difference"]["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 2, "{}", ended.out);
    let bytes = std::fs::read(folder.path().join("d.pcap")).unwrap();
    let mut reader = net::pcap::Reader::in_memory(bytes).unwrap();
    let (mut data, mut seen) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next_record(&mut data).unwrap() {
        seen.push((record.interface, data.clone()));
    }
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].0, seen[1].0);
}
