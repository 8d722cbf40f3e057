//! `catena explain`.

use crate::program::{Ended, Folder};
use serde_json::Value;

const DNS: &str = "udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3";

fn explain(chain: &str, arguments: &[&str]) -> Ended {
    let folder = Folder::new();
    folder.file("a.click", chain);
    let ended = folder.run(["explain", "a.click"].iter().chain(arguments));
    // Nothing is opened or written.
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["a.click"]);
    ended
}

const ROUTER: &str = "\
src :: FromDump(none.pcap, STOP true) -> cl :: Classifier(12/0800, -);
cl [0] -> Strip(14)
  -> CheckIPHeader -> dt :: DecIPTTL
  -> out :: ToDump(out.pcap);
cl [1] -> Discard;
dt [1] -> ICMPError(10.0.0.254, timeexceeded) -> err :: ToDump(err.pcap);
";

#[test]
fn every_element_met_is_told() {
    let expected = "\
packet  udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3  into src

  ● src :: FromDump(none.pcap, STOP true)  a.click:1
  ● cl :: Classifier(12/0800, -)  a.click:1
  │   matches 12/0800  a.click:1:59
  │   → output 0
  ● Strip(14)  a.click:2
  │   − 14 bytes in front: Ethernet 02:00:00:00:00:01 > 02:00:00:00:00:02, type 0x0800 (IPv4)
  ● CheckIPHeader  a.click:3
  │   anno.dst_ip     0.0.0.0 → 8.8.8.8
  │   marks: network header at byte 0, transport header at byte 20
  ● dt :: DecIPTTL  a.click:3
  │   ip.ttl          3 → 2
  │   ip.checksum     0x9dc1 → 0x9ec1
  │   → output 0
  ● out :: ToDump(out.pcap)  a.click:4
  ■ leaves by out.pcap  udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 2
";
    let elements = explain(ROUTER, &["--packet", DNS, "--no-synthesis"]);
    assert_eq!(elements.well(), expected);
    let synthesised = "\
\x20         dt                        ip.ttl at least 2                                                 a.click:3
  then    Strip@3                   14 bytes stripped in front                                        a.click:2
          CheckIPHeader@4           length ip.len, anno.dst_ip = ip.dst, as it came in, network       a.click:3
                                    header at byte 14, transport header at byte 34, counted by
                                    CheckIPHeader@4
          dt                        ip.ttl 3 → 2, ip.checksum 0x9dc1 → 0x9ec1                         a.click:3
";
    let both = explain(ROUTER, &["--packet", DNS]).well().to_string();
    let rest = both.strip_prefix(expected).unwrap_or_else(|| panic!("{both}"));
    let (head, rest) = rest.trim_start().split_once('\n').unwrap();
    assert!(head.starts_with("synthesised  src → cl, ") && head.ends_with(": leaves by out"));
    let first = rest.lines().next().unwrap();
    assert!(
        first.starts_with("  if      cl  ") && first.ends_with("so ‘12/0800’          a.click:1")
    );
    let (conditions, _) = rest.split_once("          dt  ").unwrap();
    assert!(
        conditions.contains("ip.version 4, ip.hl at least 5") && conditions.contains("a.click:3")
    );
    assert_eq!(&rest[conditions.len()..], synthesised);
}

#[test]
fn errors_and_the_packets_they_cause_are_told() {
    let out =
        explain(ROUTER, &["--packet", "udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 1"]).well().to_string();
    assert!(out.contains("counted as ttl-expired\n  │   → output 1\n"), "{out}");
    assert!(out.contains("+ 28 bytes in front: IPv4 10.0.0.254 > 10.0.0.1"), "{out}");
    assert!(out.contains("■ leaves by err.pcap  icmp 10.0.0.254 > 10.0.0.1"), "{out}");
    let arp = ["--packet", "arp who-has 1.2.3.4 tell 1.2.3.5", "--no-synthesis"];
    let arp = explain(ROUTER, &arp).well().to_string();
    assert!(arp.contains("matches -  a.click:1:68") && arp.ends_with("■ discarded\n"), "{arp}");
    let bad = explain(ROUTER, &["--packet", &format!("{DNS} badsum")]).well().to_string();
    assert!(bad.contains("✗ dropped by CheckIPHeader@"), "{bad}");
}

#[test]
fn copies_are_followed() {
    let chain = "Idle -> t :: Tee -> Strip(1) -> a :: Discard; t [1] -> b :: Discard;";
    let out = explain(chain, &["--packet", DNS, "--no-synthesis"]).well().to_string();
    let expected = "\
  ● t :: Tee  a.click:1
  ├ a copy → output 0
  │ ● Strip(1)  a.click:1
  │ │   − 1 byte in front
  │ ● a :: Discard  a.click:1
  │ ■ discarded
  ├ the packet → output 1
  ● b :: Discard  a.click:1
  ■ discarded
";
    assert!(out.ends_with(expected), "{out}");
    assert!(out.starts_with(&format!("packet  {DNS}  into input 0 of t\n")), "{out}");
}

#[test]
fn packets_are_followed_through_queues() {
    let chain = "Idle -> q :: Queue -> u :: Unqueue -> Counter -> ToDump(x.pcap);";
    let out = explain(chain, &["--packet", DNS, "--no-synthesis"]).well().to_string();
    let expected = "  ◌ waits in q\n  ◌ and leaves it\n  ● u :: Unqueue  a.click:1\n";
    assert!(out.contains(expected), "{out}");
    assert!(out.ends_with(&format!("■ leaves by x.pcap  {DNS}\n")), "{out}");
    let still = explain("Idle -> q :: Queue -> Idle;", &["--packet", DNS]);
    assert!(still.well().ends_with("◌ waits in q\n"), "{}", still.out);
}

#[test]
fn state_is_kept_from_packet_to_packet() {
    let chain = "Idle -> q :: Queue(2) -> Idle;";
    let arguments = ["--packet", DNS, "--packet", DNS, "--packet", DNS, "--in", "q"];
    let out = explain(chain, &arguments).well().to_string();
    let fates: Vec<&str> = out.lines().filter(|l| l.contains("q") && !l.contains("::")).collect();
    let wait = "  ◌ waits in q";
    assert_eq!(fates[1..].iter().filter(|l| **l == wait).count(), 2, "{out}");
    assert!(out.ends_with("✗ dropped by q: queue-full\n") && out.contains("packet 3  "), "{out}");
}

#[test]
fn each_packet_can_come_in_elsewhere() {
    let chain =
        "FromDump(lan) -> a :: Strip(1) -> Discard; FromDump(wan) -> b :: Strip(2) -> Discard;";
    let arguments = [
        "--in", "wan", "--packet", DNS, "--in", "lan", "--packet", DNS, "--in", "b[0]", "--packet",
        DNS,
    ];
    let out = explain(chain, &arguments).well().to_string();
    let places: Vec<&str> =
        out.lines().filter_map(|l| l.split_once("  into ")).map(|(_, p)| p).collect();
    assert_eq!(places, ["FromDump@4", "FromDump@1", "input 0 of b"], "{out}");
    assert_eq!(out.matches("− 2 bytes").count(), 2, "{out}");
}

#[test]
fn json_tells_every_step() {
    let ended = explain(ROUTER, &["--packet", DNS, "--json"]);
    let value: Value = serde_json::from_str(ended.well()).unwrap();
    let steps = value["steps"].as_array().unwrap();
    let named = |name: &str| steps.iter().find(|s| s["element"] == name).unwrap();
    assert_eq!(named("cl")["decisions"][0]["rule"], "12/0800");
    assert_eq!(named("cl")["decisions"][0]["place"]["column"], 59);
    let change = &named("dt")["outcomes"][0]["changes"][0];
    assert_eq!((change["name"].as_str(), change["after"].as_str()), (Some("ip.ttl"), Some("2")));
    assert_eq!(named("out")["outcomes"][0]["device"], "out.pcap");
    // The links lead from the first step to the last.
    let mut at = 0;
    while let Some(next) = steps[at]["outcomes"][0]["next"].as_u64() {
        assert_eq!(steps[next as usize]["from"]["step"].as_u64(), Some(at as u64));
        at = next as usize;
    }
    assert_eq!(steps[at]["element"], "out");
}

#[test]
fn packets_come_from_captures() {
    let folder = Folder::new();
    let frames: Vec<Vec<u8>> = (1..=3)
        .map(|ttl| net::notation::parse(&format!("udp 10.0.0.1:1 > 10.0.0.2:2 ttl {ttl}")).unwrap())
        .collect();
    let mut writer = net::pcap::Writer::new(Vec::new(), &net::pcap::Options::default()).unwrap();
    for frame in &frames {
        writer.write(0, frame, frame.len() as u32).unwrap();
    }
    folder.file("in.pcap", writer.finish().unwrap()).file("a.click", "Idle -> Discard;");
    let titles = |arguments: &[&str]| {
        let ended = folder.run(["explain", "a.click", "--pcap", "in.pcap"].iter().chain(arguments));
        ended
            .well()
            .lines()
            .filter(|l| l.starts_with("packet"))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        titles(&[]),
        [
            "packet  frame 1 of in.pcap: udp 10.0.0.1:1 > 10.0.0.2:2 ttl 1  into input 0 of Discard@2"
        ]
    );
    assert_eq!(titles(&["--frame", "2-3"]).len(), 2);
    assert!(titles(&["--frame", "3", "--frame", "1"])[0].contains("frame 3 of"));
    let beyond = folder.run(["explain", "a.click", "--pcap", "in.pcap", "--frame", "4"]);
    assert!(beyond.refused().contains("there is no frame 4; it has 3"), "{beyond:?}");
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    let refused = |arguments: &[&str]| explain(ROUTER, arguments).refused().to_string();
    assert!(refused(&[]).contains("describe one with --packet"));
    assert!(refused(&["--packet", "udp 1"]).contains("--packet 'udp 1': "));
    assert!(refused(&["--packet", DNS, "--in", "ou"]).contains("did you mean out?"));
    assert!(refused(&["--packet", DNS, "--in", "zebra"]).contains("the sources are src"));
    assert!(refused(&["--packet", DNS, "--in", "dt[1]"]).contains("has 1 inputs"));
    assert!(
        refused(&["--packet", DNS, "--in", "dt", "--in", "out"])
            .contains("--in out is followed by no packet")
    );
    assert!(refused(&["--frame", "1", "--packet", DNS]).contains("must follow the --pcap"));
    assert!(refused(&["--pcap", "none.pcap"]).contains("--pcap none.pcap: No such file"));
    assert_eq!(explain(ROUTER, &["--pcap", "x", "--frame", "0"]).code, Some(2));
    assert!(
        explain("Idle -> Countr;", &["--packet", DNS])
            .refused()
            .contains("did you mean 'Counter'?")
    );
    assert!(explain("", &["--packet", DNS]).refused().contains("the chain has no source"));
}

#[test]
fn a_packet_that_goes_round_is_not_told_for_ever() {
    let out = explain("Idle -> a :: Null -> b :: Null -> a;", &["--packet", DNS, "--in", "a"]);
    assert!(out.out.contains("and so on") && out.out.len() < 500_000, "{}", out.out.len());
}

#[test]
fn the_way_through_the_program_is_told_with_its_state() {
    let chain = "\
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader
  -> nat :: UDPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1)
  -> fw :: IPFilter(allow dst port 80,
                    allow dst port 53) -> out :: ToDump(out.pcap);
nat[1] -> Discard;
";
    let folder = Folder::new();
    folder.file("a.click", chain);
    let arguments = ["explain", "a.click", "--packet", DNS, "--packet", DNS];
    let text = folder.run(arguments).well().to_string();
    let told: Vec<&str> = text.lines().filter(|l| l.contains("synthesised  ")).collect();
    assert!(told[0].ends_with(": falls back to nat (makes a flow)"), "{text}");
    let again = text.split("packet 2").nth(1).unwrap();
    let again = again.split("  synthesised  ").nth(1).unwrap();
    for said in [
        "leaves by out",
        "a flow known to",
        "ip.dst 8.8.8.8, as it was",
        "so ‘allow dst port 53’",
        "a.click:4",
        "ip.src 10.0.0.1 → 198.51.100.1",
        "nat's flow renewed",
    ] {
        assert!(again.contains(said), "{said} is missing in {again}");
    }
    let json = folder.run(arguments.iter().chain(&["--json"])).well().to_string();
    let value: Value = serde_json::from_str(&json).unwrap();
    let steps = value["steps"].as_array().unwrap();
    let programs: Vec<&Value> =
        steps.iter().map(|s| &s["synthesised"]).filter(|s| !s.is_null()).collect();
    assert_eq!(programs[1]["destination"], "leaves by out");
    let operations = programs[1]["operations"].as_array().unwrap();
    let source = operations.iter().find(|o| o["what"] == "ip.src 10.0.0.1 → 198.51.100.1").unwrap();
    assert_eq!(source["elements"][0]["place"]["line"], 2);
}

#[test]
fn a_header_that_leaves_is_not_said_to_have_been_what_was_in_its_place() {
    let chain = "FromDump(in.pcap) -> VLANDecap -> Strip(14) -> CheckIPHeader
        -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDump(out.pcap);";
    let ended = explain(
        chain,
        &[
            "--packet",
            "eth 00:00:00:00:00:01 > 00:00:00:00:00:02 vlan 5 udp 10.0.0.1:1 > 8.8.8.8:53",
        ],
    );
    let program = ended.well().split("  synthesised  ").nth(1).expect("the program's path");
    let program = program.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(program.contains("eth.dst 02:00:00:00:00:02"), "{program}");
    assert!(!program.contains("→ 02:00:00:00:00:02"), "{program}");
}
