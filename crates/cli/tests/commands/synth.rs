//! `catena synth`.

use crate::program::{Ended, Folder};
use serde_json::{Value, json};

const ROUTER: &str = "\
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader
  -> rt :: StaticIPLookup(20.0.0.0/13 0, 0.0.0.0/0 1);
rt[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> lan :: ToDump(lan.pcap);
rt[1] -> first :: DecIPTTL -> second :: DecIPTTL -> Unstrip(14) -> wan :: ToDump(wan.pcap);
";

const NAPT: &str = "\
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader
  -> nat :: UDPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1)
  -> Unstrip(14) -> out :: ToDump(out.pcap);
nat[1] -> Discard;
";

const FIREWALL: &str = "\
FromDump(in.pcap) -> c :: Classifier(12/0800, -);
c[0] -> Strip(14) -> CheckIPHeader -> fw :: IPFilter(
    allow tcp && dst port 80,
    deny src net 10.0.0.0/8,
    allow udp)
  -> Counter -> ToDump(out.pcap);
c[1] -> Queue -> Discard;
";

fn synth(chain: &str, arguments: &[&str]) -> Ended {
    let folder = Folder::new();
    folder.file("a.click", chain).run(["synth", "a.click"].iter().chain(arguments))
}

/// What is told of a chain, without its last line (times and memory) and the line of sizes; words
/// a space apart.
fn summary(chain: &str) -> String {
    let ended = synth(chain, &[]);
    let text = ended.well();
    let (text, cost) = text.trim_end().rsplit_once("\n\n").unwrap();
    assert!(
        cost.starts_with("elaborated in ")
            && cost.contains(", synthesised in ")
            && cost.contains(", proven in "),
        "{cost}"
    );
    let sizes = |line: &&str| !(line.contains(" steps, ") && line.contains(" terms, "));
    let told = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // How many decisions the program takes is a matter of how well it is simplified.
        if words.first() == Some(&"program") && words.len() == 10 {
            words[2] = "_";
        }
        words.join(" ")
    };
    let lines: Vec<String> = text.lines().filter(sizes).map(told).collect();
    lines.join("\n")
}

/// A text without places and with a space between words.
fn plain(text: &str) -> String {
    // Long conditions are wrapped.
    let words = text.split_whitespace().filter(|word| !word.starts_with("a.click:"));
    words.collect::<Vec<_>>().join(" ")
}

/// Where the first class goes whose egress has this text in it, and what is done to its packets,
/// after a look at its conditions.
fn class(chain: &str, egress: &str, conditions: &[&str]) -> String {
    let ended = synth(chain, &["--egress", egress, "--limit", "1"]);
    let text = ended.well();
    let (_, text) = text.split_once("\n\nclass ").unwrap_or_else(|| panic!("{text}"));
    let text = text.split("\n\n").next().unwrap().trim_end();
    for condition in conditions {
        assert!(text.contains(condition), "{condition} is missing in {text}");
    }
    let (head, rest) = text.split_once('\n').unwrap();
    let to = head.split("  ").nth(1).unwrap();
    match rest.split_once("  then  ") {
        Some((_, then)) => format!("{to}\n  then  {then}"),
        None => to.to_string(),
    }
}

#[test]
fn a_router_becomes_one_decision_and_one_write() {
    let expected = r"a.click: 11 elements became 1 program

FromDump@1 → Strip@2 a.click:1
14 classes of packets: 4 leave, 1 falls back to an element, 9 are dropped
longest path to elements decisions reads writes sums checked sums written flow lookups tables headers moved
lan chain 5 9 6 3 1 1 0 1 2
program 1 _ 6 3 1 1 0 1 0
wan chain 6 12 8 4 1 2 0 1 2
program 1 _ 6 2 1 1 0 1 0
programs end, and elements take over, at
Strip@2 1 pulls more than there is a.click:1";
    assert_eq!(summary(ROUTER), expected);
    let expected = r"leaves by wan
  then    CheckIPHeader@3           length ip.len + 14, anno.dst_ip = ip.dst, as it came in, network  a.click:1
                                    header at byte 14, transport header at byte 34, counted by
                                    CheckIPHeader@3
          first                     ip.ttl -= 2, ip.checksum updated (also second)                    a.click:4";
    assert_eq!(
        class(
            ROUTER,
            "leaves by wan",
            &["ip.dst not 20.0.0.0/13", "ip.ttl at least 3 (also second)", "ip.hl 5"]
        ),
        expected
    );
}

#[test]
fn a_napt_looks_flows_up_once() {
    let expected = r"a.click: 7 elements became 1 program

FromDump@1 → Strip@2 a.click:1
17 classes of packets: 4 leave, 4 fall back to elements, 9 are dropped
longest path to elements decisions reads writes sums checked sums written flow lookups tables headers moved
out chain 4 10 12 6 1 2 1 0 2
program 1 _ 11 6 1 2 1 0 0
programs end, and elements take over, at
Strip@2 1 pulls more than there is a.click:1
nat 1 holds what its configuration does not make a.click:2
nat 1 makes a flow a.click:2
nat 1 reads behind a header with options a.click:2";
    assert_eq!(summary(NAPT), expected);
    let expected = r"leaves by out
  then    CheckIPHeader@3           length ip.len + 14, network header at byte 14, transport header   a.click:1
                                    at byte 34, counted by CheckIPHeader@3
          nat                       ip.checksum updated, ip.src from nat's flow, ip.dst from nat's    a.click:2
                                    flow, tcp.sport from nat's flow, tcp.dport from nat's flow,
                                    tcp.checksum updated, anno.dst_ip from nat's flow, nat's flow
                                    renewed";
    assert_eq!(
        class(
            NAPT,
            "leaves by out",
            &["ip.proto 6 (tcp)", "a flow known to nat", "nat's flow leads to output 0"]
        ),
        expected
    );
    let expected = r"falls back to nat (makes a flow)
  then    Strip@2                   14 bytes stripped in front                                        a.click:1
          CheckIPHeader@3           length ip.len, anno.dst_ip = ip.dst, as it came in, network       a.click:1
                                    header at byte 14, transport header at byte 34, counted by
                                    CheckIPHeader@3";
    assert_eq!(class(NAPT, "makes a flow", &["no flow known to nat"]), expected);
}

#[test]
fn a_firewall_tells_which_packets_belong_to_a_class() {
    let expected = r"a.click: 9 elements became 1 program

FromDump@1 → c a.click:1
11 classes of packets: 2 leave, 1 continues elsewhere, 1 falls back to an element, 7 are dropped
longest path to elements decisions reads writes sums checked sums written flow lookups tables headers moved
ToDump@7 chain 5 8 9 0 1 0 0 2 1
program 1 _ 7 0 1 0 0 0 1
Queue@8 chain 1 1 1 0 0 0 0 1 0
program 1 _ 1 0 0 0 0 0 0
programs end, and elements take over, at
fw 1 reads behind a header with options a.click:2
Queue@8 1 stores packets a.click:7";
    assert_eq!(summary(FIREWALL), expected);
    let expected = r"leaves by ToDump@7
  then    Strip@3                   14 bytes stripped in front                                        a.click:2
          CheckIPHeader@4           length ip.len, anno.dst_ip = ip.dst, as it came in, network       a.click:2
                                    header at byte 14, transport header at byte 34, counted by
                                    CheckIPHeader@4
          Counter@6                 counted by Counter@6                                              a.click:6";
    assert_eq!(
        class(
            FIREWALL,
            "ToDump@7",
            &[
                "ip.proto 6 (tcp) or 17 (udp)",
                "either  fw",
                "ip.frag 0, ip.len not 20..23, tcp.dport 80",
                "ip.src not 10.0.0.0/8"
            ]
        ),
        expected
    );
    let expected = r"continues at Queue@8 (stores packets)";
    assert_eq!(class(FIREWALL, "Queue", &["eth.type not 0x0800 (IPv4)"]), expected);
}

#[test]
fn classes_are_in_words_of_networks() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for name in ["home-router", "ip-router", "isp-edge", "snf-motivating"] {
        let file = format!("{examples}/{name}.click");
        let ended = Folder::new().run(["synth", &file, "--classes", "--limit", "0"]);
        let text = ended.well();
        for other in
            ["(number ", "that of ", "packet type not 1", "packet type = 0", "000000000", "value "]
        {
            assert!(!text.contains(other), "{name}: {other} in {text}");
        }
    }
    let file = format!("{examples}/home-router.click");
    let text = Folder::new().run(["synth", &file, "--classes", "--limit", "0"]).out;
    let words = text.split_whitespace().filter(|word| !word.contains(".click:"));
    let words = words.collect::<Vec<_>>().join(" ");
    for said in [
        "a neighbour known to lan/arp",
        "lan/arp's neighbour confirmed within 60 s",
        "eth.dst from lan/arp's neighbour",
        "in reply direction of pings's flow",
        "packet type = host",
    ] {
        assert!(words.contains(said), "{said} is missing");
    }
    let file = format!("{examples}/ip-router.click");
    let text = Folder::new().run(["synth", &file, "--classes", "--limit", "0"]).out;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("packet type not broadcast or multicast"), "{text}");
    // What sources feed comes first; classes that leave come first, and are counted.
    assert!(
        text.starts_with("FromDump@5 → lan/HostEtherFilter@1  72 classes\n\nclass 1 of 72  leaves")
    );
    assert!(text.contains("\nclass 72 of 72  is dropped by "), "{text}");
    // Copies whose path forks begin one of their own.
    assert!(text.contains("\nlan/redirect → lan/ICMPError@16  48 classes\n"), "{text}");
}

#[test]
fn json_tells_elements_and_lines() {
    let ended = synth(ROUTER, &["--json"]);
    let value: Value = serde_json::from_str(ended.well()).unwrap();
    let program = &value["programs"][0];
    assert_eq!(program["entry"]["element"]["name"], "Strip@2");
    assert!(program["text"].as_str().unwrap().starts_with("program behind [0] \"Strip@2\"\n"));
    let classes = program["classes"].as_array().unwrap();
    let wan = classes.iter().find(|c| c["egress"]["element"]["name"] == "wan").unwrap();
    let operations = wan["operations"].as_array().unwrap();
    let ttl = operations.iter().find(|o| o["field"] == "ip.ttl").unwrap();
    assert_eq!(ttl["what"], "-= 2");
    let by: Vec<(&str, u64)> = ttl["elements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["name"].as_str().unwrap(), e["place"]["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(by, [("first", 4), ("second", 4)]);
    assert_eq!(wan["chain"]["elements"], 6);
    assert_eq!(wan["program"]["checksums_updated"], 1);
    for time in ["elaboration_ns", "synthesis_ns", "proof_ns", "description_ns"] {
        assert!(value[time].as_u64().is_some_and(|time| time > 0), "{time}");
    }
    // Every exit of the program's text is a class.
    let exits = program["text"].as_str().unwrap().matches(": exit ").count();
    assert_eq!(exits, classes.len());
}

#[test]
fn the_program_is_printed() {
    let text = synth(FIREWALL, &["--program"]).well().to_string();
    assert!(text.starts_with("program behind [0] c\n") && text.contains("\ns0: c if "), "{text}");
    let folder = Folder::new();
    folder.file("a.click", "FromDump(x) -> Strip($N) -> Discard;");
    let text = folder.run(["synth", "a.click", "N=4", "--program"]).well().to_string();
    assert!(text.contains("{4..4294967295}"), "{text}");
}

#[test]
fn what_cannot_become_a_program_is_said() {
    for (chain, elements) in [
        ("", "0 elements"),
        ("Idle -> Queue -> Discard;", "3 elements"),
        ("FromDump(a) -> ToDump(b);", "2 elements"),
    ] {
        let text = synth(chain, &[]).well().to_string();
        assert!(text.starts_with(&format!("a.click: {elements} became 0 programs\n")), "{text}");
        assert!(text.contains("no packet comes to an element that a program could take over"));
        assert_eq!(synth(chain, &["--classes"]).well(), "");
    }
    let round = synth("Idle -> a :: Null -> b :: Null -> a;", &[]).well().to_string();
    assert!(round.contains("the chain leads back here  a.click:1"), "{round}");
    let switch = "FromDump(a) -> Strip(4) -> t :: StrideSwitch(1, 1) -> Discard; t[1] -> Discard;";
    let switch = synth(switch, &[]);
    assert!(switch.well().contains("determines which of its numbers it uses"), "{switch:?}");
}

#[test]
fn wrong_arguments_and_chains_are_refused() {
    let folder = Folder::new();
    assert!(folder.run(["synth", "none.click"]).refused().contains("none.click: No such file"));
    folder.file("a.click", "Idle -> Discard;").file("b.click", "Idle -> Countr;");
    assert!(folder.run(["synth", "a.click", "x"]).refused().contains("VAR=VALUE"));
    assert!(folder.run(["synth", "b.click"]).refused().contains("did you mean 'Counter'?"));
    for wrong in [["--json", "--classes"], ["--program", "--json"], ["--limit", "x"]] {
        assert_eq!(folder.run(["synth", "a.click"].iter().chain(&wrong)).code, Some(2));
    }
}

#[test]
fn the_examples_become_programs() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let folder = Folder::new();
    // One for each input, and where paths of copies fork.
    for (name, programs) in [
        ("ip-router", 4),
        ("isp-edge", 1),
        ("nested-nats", 3),
        ("snf-motivating", 1),
        ("ten-routers", 1),
    ] {
        let file = format!("{examples}/{name}.click");
        let ended = folder.run(["synth", &file, "--json"]);
        let value: Value = serde_json::from_str(ended.well()).unwrap();
        let all = value["programs"].as_array().unwrap();
        assert_eq!(all.len(), programs, "{name}");
        for class in all.iter().flat_map(|p| p["classes"].as_array().unwrap()) {
            // A packet that leaves or goes on is written by elements that are known.
            for operation in class["operations"].as_array().unwrap() {
                let elements = operation["elements"].as_array().unwrap();
                assert!(!elements.is_empty(), "{name}: {operation} of {}", class["class"]);
            }
            let number = |who: &str, what: &str| class[who][what].as_u64().unwrap();
            assert!(number("program", "writes") <= number("chain", "writes").max(1), "{class}");
        }
    }
}

#[test]
fn the_picture_shows_both_sides() {
    let folder = Folder::new();
    let nested = "elementclass Hop { $n | input -> Strip(14) -> CheckIPHeader -> DecIPTTL
        -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> output }
        FromDump(x) -> first :: Hop(1) -> second :: Hop(2) -> out :: ToDump(y);";
    folder.file("a.click", nested).run(["synth", "a.click", "--svg", "a.svg"]).well();
    let svg = folder.read("a.svg");
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    let heading = |name: &str| svg.contains(&format!("<tspan class=\"name\">{name}</tspan>"));
    assert!(heading("first") && heading("second"), "{svg}");
    for said in
        [">classify<", ">write<", ">egress<", ">ip.ttl -= 2<", "leaves by out", "8 elements"]
    {
        assert!(svg.contains(said), "{said} is missing in {svg}");
    }
    assert_eq!(svg.matches(">DecIPTTL<").count(), 2);
    let light = folder.run(["synth", "a.click", "--svg", "-", "--theme", "light"]);
    assert!(light.well().contains("</svg>") && !light.out.contains("prefers-color-scheme"));
    let nothing = folder.file("b.click", "").run(["synth", "b.click", "--svg", "-"]);
    assert!(nothing.well().contains("</svg>"));
    let lost = folder.run(["synth", "a.click", "--svg", "none/a.svg"]);
    assert!(lost.refused().contains("none/a.svg: No such file"));
}

#[test]
fn rules_that_are_left_out_are_told() {
    let hosts = |from: u32| (from..from + 70).map(|n| format!("deny src host 10.0.0.{n}"));
    let all = hosts(0).chain(["allow src net 10.0.0.0/24".into()]).chain(hosts(60));
    let rules = all.collect::<Vec<_>>().join(", ");
    let text = summary(&format!(
        "FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> fw :: IPFilter({rules}) -> Discard;"
    ));
    // The network covers 60 hosts, and ten stand in the list already.
    assert!(text.contains("fw 70 of 141 rules can never match"), "{text}");
    let text = summary(&format!(
        "FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> fw :: IPFilter({}) -> Discard;",
        hosts(0).collect::<Vec<_>>().join(", ")
    ));
    assert!(!text.contains("can never match"), "{text}");
}

#[test]
fn headers_are_named_as_packets_leave() {
    let untagged = class(
        "FromDump(in.pcap) -> Classifier(12/8100 16/0800) -> VLANDecap -> Strip(14) -> CheckIPHeader
           -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> out :: ToDump(out.pcap);",
        "out",
        &["vlan.type 0x0800", "ip.ttl at least 2"],
    );
    let written = "eth.dst = 02:00:00:00:00:02, eth.src = 02:00:00:00:00:01, eth.type = 0x0800";
    assert!(plain(&untagged).contains(written), "{untagged}");
    assert!(!untagged.contains("vlan.id ="), "{untagged}");
    // The frame says what is in a tunnel.
    let inner = class(
        "FromDump(in.pcap) -> Strip(24) -> MarkIP6Header -> DecIP6HLIM
           -> EtherEncap(0x86dd, 02:00:00:00:00:01, 02:00:00:00:00:02) -> out :: ToDump(out.pcap);",
        "out",
        &["ip6.hlim at least 2"],
    );
    assert!(plain(&inner).contains("eth.type = 0x86dd"), "{inner}");
    assert!(inner.contains("ip6.hlim -= 1"), "{inner}");
    // What is in front of a header that was pushed is where it came in.
    let tunnel = class(
        "FromDump(in.pcap) -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header -> DecIP6HLIM
           -> IP6Encap(41, 2001:db8::1, 2001:db8::2) -> out :: ToDump(out.pcap);",
        "out",
        &["ip6.plen + 54 ≤ length", "ip6.hlim at least 2"],
    );
    assert!(plain(&tunnel).contains("ip6.plen = ip6.plen + 40, ip6.next = 41"), "{tunnel}");
}

#[test]
fn each_alternative_is_named_by_its_own_headers() {
    let chain = "FromDump(in.pcap)
        -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800 14/45, -);
        kind[0] -> Discard; kind[1] -> Discard; kind[2] -> Discard; kind[3] -> out :: ToDump(out.pcap);";
    let text = synth(chain, &["--egress", "out"]);
    let text = plain(text.well());
    assert!(text.contains("eth.type 0x0806 (ARP), arp.op not 1 (request)..2 (reply)"), "{text}");
}

#[test]
fn the_parse_graph_has_headers_by_name() {
    let text = synth(FIREWALL, &["--headers"]);
    let expected = "\
→ c  3 headers

  eth         at byte 0
    found by    packets begin with it
    needs       14 bytes; tested: 14
    decides     eth.type

  ip          at byte 14, options
    found by    eth.type 0x0800 (IPv4)
    needs       20 bytes; tested: 20; length compared with ip.len
    decides     ip.frag, ip.hl, ip.len, ip.proto, ip.src, ip.version
    reads       ip.dst, ip.hl, ip.len, its checksum

  tcp         at byte 34
    found by    ip.proto 6 (tcp)
    needs       4 bytes
    decides     tcp.dport
";
    assert_eq!(text.well(), expected);
}

#[test]
fn the_parse_graph_goes_into_tunnels() {
    let chain = "FromDump(in.pcap) -> Classifier(12/0800 14/45 23/11 36/12b5 62/86dd 70/06)
        -> Discard;";
    let ended = synth(chain, &["--headers", "--json"]);
    let json: Value = serde_json::from_str(ended.well()).unwrap();
    let program = &json["programs"][0];
    let edges = program["edges"].as_array().unwrap().iter().map(|edge| {
        let select = &edge["select"];
        format!("{} {} {}", edge["from"], select["field"], edge["to"]).replace('"', "")
    });
    let edges: Vec<String> = edges.collect();
    assert_eq!(
        edges,
        [
            "null null eth",
            "eth eth.type ip",
            "ip ip.proto udp",
            "udp udp.dport vxlan",
            "vxlan null inner.eth",
            "inner.eth inner.eth.type inner.ip6",
        ]
    );
    let inner = program["headers"].as_array().unwrap().iter().find(|h| h["name"] == "inner.ip6");
    let inner = inner.unwrap();
    assert_eq!((&inner["offsets"][0], &inner["needs_bytes"]), (&64.into(), &7.into()));
    assert_eq!(inner["fields"][0]["name"], "inner.ip6.next");
    assert_eq!(program["unnamed"].as_array().map(Vec::len), Some(0), "{program:#}");
}

#[test]
fn an_egress_that_no_packet_goes_to_is_said() {
    let nowhere = synth(ROUTER, &["--egress", "nowhere"]);
    assert_eq!(nowhere.well(), "no class of packets goes to, or is dropped by or for, 'nowhere'\n");
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let folder = Folder::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended: Ended = folder
        .file("a.click", ROUTER)
        .command(std::path::Path::new(env!("CARGO_BIN_EXE_catena")))
        .args(["synth", "a.click"])
        .stdout(full)
        .output()
        .unwrap()
        .into();
    assert!(ended.refused().starts_with("error: standard output: No space left"), "{ended:?}");
}

/// Programs are printed, read back, and checked for themselves and against their chain.
#[test]
fn programs_are_read_and_checked() {
    let folder = Folder::new();
    folder.file("a.click", ROUTER);
    let text = folder.run(["synth", "a.click", "--program"]).well().to_string();
    folder.file("a.prog", &text);
    assert_eq!(folder.run(["synth", "--read", "a.prog"]).well(), text);
    let told = folder.run(["synth", "--read", "a.prog", "--check"]);
    assert!(told.well().ends_with(" steps: well formed\n"), "{told:?}");
    let told = folder.run(["synth", "a.click", "--read", "a.prog", "--check"]);
    assert!(told.well().ends_with("well formed, and what a.click means\n"), "{told:?}");
    // A packet with a TTL of 1 would pass.
    let wrong = text.replace(" in {0..1} ", " in {0..0} ");
    assert_ne!(wrong, text);
    folder.file("wrong.prog", wrong);
    assert!(
        folder.run(["synth", "--read", "wrong.prog", "--check"]).well().contains("well formed")
    );
    let told = folder.run(["synth", "a.click", "--read", "wrong.prog", "--check"]);
    assert!(told.refused().contains("does not do what the chain does"), "{told:?}");
    let told = folder.run_with(["synth", "--read", "-", "--check"], "\n");
    assert!(told.refused().contains("- holds no programs"), "{told:?}");
    // Steps only lead forwards.
    folder.file("loop.prog", text.replacen("else s", "else s0\n// s", 1));
    let told = folder.run(["synth", "--read", "loop.prog", "--check"]);
    assert!(told.refused().contains("error["), "{told:?}");
    folder.file("b.click", "FromDump(in.pcap) -> Discard;");
    let told = folder.run(["synth", "b.click", "--read", "a.prog", "--check"]);
    assert!(told.refused().contains("b.click"), "{told:?}");
    folder.file(
        "none.prog",
        "program behind [0] #999\n\ns0: exit visited\n  push [0] #999, slow path\n",
    );
    let told = folder.run(["synth", "b.click", "--read", "none.prog", "--check"]);
    assert!(told.refused().contains("there is no element #999"), "{told:?}");
}

/// Each table is listed once, with its keys by name.
#[test]
fn tables_are_listed_once() {
    let ended = synth(ROUTER, &["--tables"]);
    let text = ended.well();
    assert_eq!(text.matches("routes: 2 entries").count(), 1, "{text}");
    assert!(
        text.contains("rt :: StaticIPLookup") && text.contains("20.0.0.0/13 -> 0, 0"),
        "{text}"
    );
    assert!(text.contains("0.0.0.0/0 -> 0, 1  a.click:2"), "{text}");
    let stations = "FromDump(in.pcap) -> a :: ARPResponder(10.0.0.1 10.1.0.0/16 02:00:00:00:00:01,
        10.0.0.0/8 02:00:00:00:00:02) -> Discard; a[1]
        -> n :: IP6NDAdvertiser(2001:db8::1/128 02:00:00:00:00:01,
        2001:db8::/64 02:00:00:00:00:02) -> Discard; n[1] -> Discard;";
    let ended = synth(stations, &["--tables"]);
    let text = ended.well();
    for entry in [
        "10.0.0.1 -> arm 0  a.click:1",
        "10.1.0.0/16 -> arm 1  a.click:1",
        "10.0.0.0/8 -> arm 2  a.click:2",
    ] {
        assert!(text.contains(entry), "{entry} in {text}");
    }
    for entry in ["2001:db8::1/128 -> arm 0  a.click:3", "2001:db8::/64 -> arm 1  a.click:4"] {
        assert!(text.contains(entry), "{entry} in {text}");
    }
    let ended = synth(NAPT, &["--tables"]);
    let text = ended.well();
    for key in [
        "ip.src, 32 bits, exact",
        "transport.dport | tcp.dport, 16 bits, exact",
        "which packets make",
    ] {
        assert!(text.contains(key), "{key} in {text}");
    }
    let ended = synth(FIREWALL, &["--tables", "--json"]);
    let tables: Value = serde_json::from_str(ended.well()).unwrap();
    let tables = tables["tables"].as_array().unwrap();
    let rules: Vec<&Value> = tables.iter().filter(|table| table["owner"] == "fw").collect();
    assert_eq!(rules.len(), 1);
    assert_eq!((&rules[0]["kind"], &rules[0]["size"]), (&"rules".into(), &3.into()));
    assert_eq!(rules[0]["entries"][1]["matches"], "deny src net 10.0.0.0/8");
    assert_eq!(rules[0]["entries"][1]["place"], "a.click:4");
}

/// Whether it is the name of a field, also of one within a tunnel.
fn is_field(name: &str) -> bool {
    let (header, local) = name.trim_start_matches("inner.").split_once('.').unwrap_or_default();
    let families = match header {
        "tcp" | "udp" => &[header, "transport"][..],
        header => &[header],
    };
    families.iter().any(|family| ir::Field::named(&format!("{family}.{local}")).is_some())
}

/// A switch that is to run the examples needs each table once, and its keys as fields of headers.
#[test]
fn tables_of_examples_stand_once_with_fields_of_headers() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for (name, owners) in [
        ("ip-router", &["routes", "lan/kind", "wan/kind", "lan/arp", "wan/arp"][..]),
        ("isp-edge", &["fw/acl", "router/rt", "nat/flows", "nat/pings", "kind"]),
    ] {
        let file = format!("{examples}/{name}.click");
        let ended = Folder::new().run(["synth", &file, "--tables", "--json"]);
        let listed: Value = serde_json::from_str(ended.well()).unwrap();
        let tables = listed["tables"].as_array().unwrap();
        for owner in owners {
            let of: Vec<&Value> = tables.iter().filter(|table| table["owner"] == **owner).collect();
            assert_eq!(of.len(), 1, "{name}: {owner}");
            assert!(of[0]["lookups"].as_u64() > Some(0), "{name}: {owner}");
        }
        let entries = tables.iter().flat_map(|table| table["entries"].as_array().unwrap());
        let is_placed = |entry: &Value| entry["place"].as_str().unwrap().starts_with(examples);
        assert!(entries.clone().count() > 10, "{name}");
        entries.for_each(|entry| assert!(is_placed(entry), "{name}: {entry}"));
        // What a target matches on are fields of headers; only the identifier of pings is computed.
        for table in tables {
            let is_same =
                |other: &&Value| ["owner", "kind"].iter().all(|is| other[is] == table[is]);
            assert_eq!(tables.iter().filter(is_same).count(), 1, "{name}: {}", table["owner"]);
            for (at, key) in table["keys"].as_array().unwrap().iter().enumerate() {
                let is_identifier = table["owner"] == "nat/pings" && matches!(at, 2 | 4);
                let names = key["key"].as_str().unwrap().split(" | ").collect::<Vec<_>>();
                let is_named = |name: &&str| match is_identifier {
                    // Answers have a number more than requests where they have a port.
                    true => *name == "computed from icmp.id, icmp.type",
                    false => is_field(name),
                };
                assert!(names.iter().all(is_named), "{name}: {}: key {at}: {key}", table["owner"]);
            }
        }
        let lpm = tables.iter().filter(|table| table["kind"] == "routes");
        for table in lpm {
            let key = &table["keys"][0];
            assert_eq!((&key["match"], &key["width"]), (&"lpm".into(), &32.into()));
            // What answers a packet goes to its source.
            let mut names = key["key"].as_str().unwrap().split(" | ");
            assert!(names.all(|name| ["ip.dst", "ip.src", "anno.dst_ip"].contains(&name)), "{key}");
        }
    }
    let file = format!("{examples}/isp-edge.click");
    let ended = Folder::new().run(["synth", &file, "--tables", "--json"]);
    let listed: Value = serde_json::from_str(ended.well()).unwrap();
    let of = |owner: &str| {
        let tables = listed["tables"].as_array().unwrap();
        tables.iter().find(|table| table["owner"] == owner).expect(owner)
    };
    let key = |owner: &str, at: usize| of(owner)["keys"][at]["key"].clone();
    // TCP and UDP are looked up by steps of their own, with the protocol as a constant.
    assert_eq!(key("nat/flows", 0), "ip.proto");
    assert_eq!(key("nat/flows", 2), "tcp.sport | udp.sport");
    assert_eq!(of("nat/flows")["keys"][0]["width"], 8);
    assert_eq!(key("kind", 1), "arp.op");
    let acl = of("fw/acl");
    let arms = json!([
        { "arm": 0, "action": "output 0 -> fw/Unstrip@4" },
        { "arm": 2, "action": "drop denied" },
    ]);
    assert_eq!((&acl["arms"], &acl["default"]), (&arms, &"drop no-match".into()));
    let routes = of("router/rt");
    assert_eq!(routes["row"], json!(["new anno.dst_ip unless 0", "output"]));
    assert_eq!(routes["outputs"][2], json!({ "output": 2, "to": "router/self" }));
    assert_eq!(routes["default"], "drop no-route");
    assert_eq!(of("nat/flows")["row"][0], "new source address");
    assert_eq!(of("nat/flows")["default"], "slow path of nat/flows");
    // The arm sets registers; what answers stands behind the rules.
    assert_eq!(of("ARPResponder@7")["arms"][0]["action"], "output 0 -> isp/answers");
    assert_eq!(acl["entries"].as_array().unwrap().len(), 8550);
    let keys: Vec<&str> =
        acl["keys"].as_array().unwrap().iter().filter_map(|k| k["key"].as_str()).collect();
    for field in ["ip.src", "ip.dst", "ip.proto", "tcp.dport | udp.dport"] {
        assert!(keys.contains(&field), "{field} in {keys:?}");
    }
    // Errors of ICMP are looked up by the headers that they quote.
    let file = format!("{examples}/home-router.click");
    let ended = Folder::new().run(["synth", &file, "--tables", "--limit", "1"]);
    for line in [
        "  key 0: ip.proto | inner.ip.proto, 8 bits, exact\n",
        "  key 2: tcp.sport | udp.sport | inner.tcp.dport | inner.udp.dport, 16 bits, exact\n",
        "  key 3: icmp.type, 8 bits, ternary\n",
        "  arm 1: output 1 -> [1] lan/arp\n",
        "  output 1: wan/DropBroadcasts@9\n",
        "  default: slow path of wan/arp\n",
    ] {
        assert!(ended.well().contains(line), "{line} in {}", ended.out);
    }
}
