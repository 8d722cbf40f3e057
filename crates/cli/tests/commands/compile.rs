//! `catena compile`, and `catena verify` of what it writes.

use serde_json::Value;

use crate::program::Folder;

const ROUTER: &str = "\
FromDevice(lan) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> f :: IPFilter(deny src net 10.9.0.0/16, allow tcp dst port 80, allow udp dst port 53, deny all)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 20.0.0.0/8 1);
rt[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> Queue -> ToDevice(wan);
rt[1] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:03) -> Queue -> ToDevice(dmz);
FromDevice(wan) -> Discard;
";

const RACK: &str = "\
switches:
  tor:
    target: ovs
    ports:
      lan: { number: 7, trust: [lengths, ip-checksum, ip-options] }
      wan: { number: 8 }
      dmz: { number: 9 }
      up: { number: 10 }
servers:
  s1: { ports: { eth0: {} } }
links: [[tor.up, s1.eth0]]
wires: { lan: tor.lan, wan: tor.wan, dmz: tor.dmz }
";

const ALL: &str = "lengths,ip-checksum,ip-options";

#[test]
fn each_class_is_told_where_it_is_taken_care_of() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER);
    let strict = folder.run(["compile", "r.click", "--target", "ovs"]);
    assert!(
        strict.well().contains("0 done there, 7 decided there, 6 left to cores"),
        "{}",
        strict.out
    );
    assert!(strict.out.contains("proven to do what the chain does"), "{}", strict.out);
    assert!(
        strict.out.contains("Classifier@2 (r.click:1): lengths are not tested"),
        "{}",
        strict.out
    );
    let trusting = folder.run(["compile", "r.click", "--target", "ovs", "--trust", ALL, "--json"]);
    let json: Value = serde_json::from_str(trusting.well()).expect("JSON");
    let part = &json["parts"][0];
    assert_eq!((&json["target"], &part["wires"][0]), (&"ovs".into(), &"lan".into()));
    assert_eq!((&part["proven"], &part["handoffs"]), (&true.into(), &0.into()));
    let classes = part["classes"].as_array().expect("classes");
    let leaves =
        classes.iter().find(|class| class["ends"] == "leaves by wan (port 3)").expect("a class");
    assert_eq!(leaves["where"], "done there");
}

#[test]
fn trust_in_lengths_says_nothing_of_other_lengths() {
    let folder = Folder::new();
    // More becomes of long packets.
    let chain = "FromDevice(lan) -> l :: CheckLength(100); l[0] -> Queue -> ToDevice(wan);
        l[1] -> c :: Classifier(12/0800, 12/0806, -); c[0] -> Queue -> ToDevice(a);
        c[1] -> Queue -> ToDevice(b); c[2] -> Queue -> ToDevice(d);";
    folder.file("l.click", chain);
    let compiled = folder.run(["compile", "l.click", "--target", "ovs", "--trust", "lengths,mtu"]);
    assert!(compiled.well().contains(": 0 done there, "), "{}", compiled.out);
}

#[test]
fn an_artefact_is_written_and_verified() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER).file("rack.yaml", RACK);
    folder.run(["compile", "r.click", "--topology", "rack.yaml", "-o", "out"]).well();
    let flows = folder.read("out/flows.txt");
    assert!(flows.contains("in_port=7") && flows.contains("output:8"), "{flows}");
    let verify = ["verify", "r.click", "--topology", "rack.yaml", "--artefact", "out"];
    let equal = folder.run(verify);
    assert!(equal.well().contains("proven to do what the chain does"), "{}", equal.out);
    assert!(
        equal.out.contains("where frames are not what --trust states, it differs"),
        "{}",
        equal.out
    );
    for (from, to) in [
        ("tcp_dst=0x50", "tcp_dst=0x51"),
        ("dec_ttl,output:9", "output:9"),
        ("02:00:00:00:01:03->eth_dst", "02:00:00:00:01:02->eth_dst"),
        ("ip_src=10.9.0.0/255.255.0.0", "ip_src=10.8.0.0/255.254.0.0"),
    ] {
        assert!(flows.contains(from), "{from}");
        folder.file("out/flows.txt", flows.replace(from, to));
        let different = folder.run(verify);
        assert_eq!(different.code, Some(1), "{to}: {}", different.out);
        assert!(different.out.contains("DIFFERENT\n  packet "), "{}", different.out);
    }
    folder.file("out/flows.txt", flows.replace("goto_table:2", "goto_table:1"));
    let unread = folder.run(verify);
    assert_eq!(unread.code, Some(2));
    assert!(unread.err.contains("ovs: flows.txt:"), "{}", unread.err);
}

#[test]
fn xdp_objects_are_verified_too() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER);
    folder.run(["compile", "r.click", "--target", "ebpf", "-o", "out"]).well();
    let verify = ["verify", "r.click", "--target", "ebpf", "--artefact", "out"];
    folder.run(verify).well();
    // Of a router with other networks, and of half an object.
    folder.file("other.click", ROUTER.replace("20.0.0.0/8", "21.0.0.0/8"));
    let other = folder.run(["verify", "other.click", "--target", "ebpf", "--artefact", "out"]);
    assert_eq!(other.code, Some(1), "{}{}", other.out, other.err);
    let object = std::fs::read(folder.path().join("out/catena.o")).expect("an object");
    folder.file("out/catena.o", &object[..object.len() / 2]);
    let half = folder.run(verify);
    assert_eq!(half.code, Some(2));
    assert!(half.err.contains("ebpf: catena.o"), "{}", half.err);
}

#[test]
fn packets_of_a_capture_are_counted() {
    let folder = Folder::new();
    let chain = ROUTER.replace("FromDevice(lan)", "FromDump(lan.pcap)");
    let chain = chain.replace("allow udp dst port 53", "allow udp");
    folder.file("r.click", chain);
    let make = "FromDevice(x) -> ToDump(lan.pcap)";
    folder.file("make.click", make);
    let traffic = "x=gen:proto=udp,src=10.0.0.1,dst=20.0.0.1,count=10";
    folder.run(["run", "make.click", "--in", traffic]).well();
    let counted = |trust: &[&str]| {
        let compile = ["compile", "r.click", "--target", "ovs", "--traffic", "lan.pcap=lan.pcap"];
        folder.run(compile.iter().chain(trust)).well().to_string()
    };
    let strict = counted(&[]);
    assert!(strict.contains("of 10 packets: 0.0 % done there, 100.0 % decided there"), "{strict}");
    let trusting = counted(&["--trust", ALL]);
    assert!(trusting.contains("of 10 packets: 100.0 % done there"), "{trusting}");
}

#[test]
fn wires_take_the_places_of_elements_of_their_names() {
    let folder = Folder::new();
    let chain = "lan :: { FromDump(lan.pcap) -> output; input -> ToDump(out.pcap) }; \
                 dmz :: { FromDump(dmz.pcap) -> output; input -> Discard }; \
                 lan -> c :: Classifier(12/0800, -); c[1] -> Discard; c -> dmz -> lan;";
    folder.file("c.click", chain).file("rack.yaml", RACK);
    folder.file("lan.pcap", "").file("dmz.pcap", "");
    let split = folder.run(["offload", "c.click", "--topology", "rack.yaml"]);
    let text = split.well();
    assert!(text.contains("lan → tor") && text.contains("dmz → tor"), "{text}");
    assert!(text.contains("leaves by dmz"), "{text}");
}

#[test]
fn what_is_wrong_is_named() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER).file("rack.yaml", RACK);
    folder.file("typo.yaml", RACK.replace("tor.dmz", "tor.dmx"));
    folder.file("lacks.yaml", RACK.replace(", dmz: tor.dmz", ""));
    folder.file("alone.yaml", RACK.replace("links: [[tor.up, s1.eth0]]", "links: []"));
    folder.file("none.click", "Idle -> Discard;").file("empty.click", "");
    for (arguments, expected) in [
        (&["r.click"][..], "--target"),
        (&["r.click", "--target", "p5"], "possible values: openflow, ovs, ebpf"),
        (&["r.click", "--target", "ovs", "--trust", "all"], "possible values: lengths"),
        (&["r.click", "--topology", "typo.yaml"], "did you mean 'tor.dmz'?"),
        (&["r.click", "--topology", "typo.yaml"], "typo.yaml:12:"),
        (&["r.click", "--topology", "lacks.yaml"], "the topology has no wire 'dmz'"),
        (&["r.click", "--topology", "alone.yaml"], "no link leads from 'tor' to a server"),
        (&["none.click", "--target", "ovs"], "no frames come into the chain"),
        (&["r.click", "--target", "ovs", "--traffic", "r.click"], "--traffic needs WIRE="),
        (&["r.click", "--target", "ovs", "--traffic", "lan=r.click"], "r.click: "),
        (
            &["r.click", "--target", "ovs", "--traffic", "lon=x.pcap"],
            "no frames come in from 'lon'",
        ),
        (&["r.click", "--target", "ovs", "-o", "r.click/x"], "r.click/x"),
    ] {
        let ended = folder.run(["compile"].iter().chain(arguments));
        assert_ne!(ended.code, Some(0), "{arguments:?}");
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
    }
    let missing = folder.run(["verify", "r.click", "--target", "ovs", "--artefact", "nowhere"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("nowhere: "), "{}", missing.err);
}

/// Bytes of a file that are kept.
const MOST_KEPT: usize = 1 << 18;

/// `filetests/p4` holds what P4's own compilers and switches can be tried with elsewhere. `BLESS=1` writes it anew.
#[test]
fn the_p4_of_examples_is_what_it_was() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = Folder::new();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(format!("{root}/examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        folder.file(&name, std::fs::read(&path).unwrap());
        names.extend(name.strip_suffix(".click").map(String::from));
    }
    names.sort_unstable();
    let mut unlike = Vec::new();
    for name in names {
        let out = format!("out-{name}");
        let file = format!("{name}.click");
        for arch in ["v1model", "tna"] {
            let to = format!("{out}/{arch}");
            let all = ["--target", "p4", "--arch", arch, "--output", &to];
            folder.run(["compile", &file[..]].iter().chain(&all)).well();
        }
        // Where frames are trusted, a Tofino does the writes, too.
        let to = format!("{out}/trusting");
        let all = ["--target", "p4", "--arch", "tna", "--trust", ALL, "--output", &to];
        folder.run(["compile", &file[..]].iter().chain(&all)).well();
        for (written, kept) in [
            ("v1model/catena.p4", "v1model.p4"),
            ("v1model/commands.txt", "v1model.txt"),
            ("tna/catena.p4", "tna.p4"),
            ("trusting/catena.p4", "tna-trusting.p4"),
        ] {
            let mut text = folder.read(&format!("{out}/{written}"));
            // Of long lists of entries the first suffice.
            text.truncate(text[..text.len().min(MOST_KEPT)].rfind('\n').map_or(0, |end| end + 1));
            let golden = format!("{root}/filetests/p4/{name}/{kept}");
            if std::env::var_os("BLESS").is_some() {
                std::fs::create_dir_all(format!("{root}/filetests/p4/{name}")).unwrap();
                std::fs::write(&golden, &text).unwrap();
            }
            if std::fs::read_to_string(&golden).unwrap_or_default() != text {
                unlike.push(format!("{name}/{kept}"));
            }
        }
    }
    assert!(unlike.is_empty(), "{unlike:?} became something else (BLESS=1 writes it down)");
}

#[test]
fn tables_are_found_a_place_on_a_device() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER);
    let stages = |device: &str| {
        let all = [
            "compile", "r.click", "--target", "ovs", "--trust", ALL, "--stages", "--device", device,
        ];
        folder.run(all)
    };
    let fits = stages("noviflow-1132");
    assert!(
        fits.well().contains("ovs → noviflow-1132  3 tables; the device has 55"),
        "{}",
        fits.out
    );
    assert!(fits.out.contains("f (r.click:2)") && fits.out.contains("4,096"), "{}", fits.out);
    // One table is too few, and one in a fixed order does not match what others leave to it.
    for (device, why) in [
        (
            "hp-5130",
            "no table of hp-5130 holds table '1' (f (r.click:2), Classifier@2 (r.click:1)). There is one",
        ),
        ("of-dpa", "'unicast routing': vlan_vid is not matched"),
    ] {
        let short = stages(device);
        assert_eq!(short.code, Some(1), "{device}: {}{}", short.out, short.err);
        assert!(short.out.contains("does not fit: ") && short.out.contains(why), "{}", short.out);
    }
    // In stages: each table has a reason to lie where it does.
    let json = ["--target", "ovs", "--trust", ALL, "--stages", "--device", "tofino-1", "--json"];
    let staged = folder.run(["compile", "r.click"].iter().chain(&json));
    let json: Value = serde_json::from_str(staged.well()).expect("JSON");
    assert_eq!((&json["fits"], &json["stages"]["available"]), (&true.into(), &12.into()));
    assert_eq!(
        (&json["tables"][1]["first"], &json["tables"][1]["depends"]["on"]),
        (&1.into(), &"0".into())
    );
    // A device of one's own, and those that there are.
    let mine =
        "name: mine\nabout: two tables\ntables:\n  - count: 2\n    holds: [{ entries: 9 }]\n";
    folder.file("mine.yaml", mine);
    let short = stages("mine.yaml");
    assert!(short.out.contains("no table of mine holds table"), "{}{}", short.out, short.err);
    folder.file("mine.yaml", mine.replace("holds", "hold"));
    let wrong = stages("mine.yaml");
    assert!(wrong.err.contains("mine.yaml:5") && wrong.code != Some(0), "{}", wrong.err);
    let unknown = stages("noviflow-1123");
    assert!(unknown.err.contains("did you mean 'noviflow-1132'?"), "{}", unknown.err);
    let none = folder.run(["compile", "r.click", "--target", "ebpf", "--stages"]);
    assert!(none.err.contains("what ebpf is given has no tables"), "{}", none.err);
}

#[test]
fn what_a_device_has_no_room_for_is_left_to_cores() {
    let folder = Folder::new();
    folder.file("r.click", ROUTER);
    let whole = ["compile", "r.click", "--target", "ovs", "--trust", ALL];
    let done = folder.run(whole);
    let small = "name: small\nabout: three tables\ntables:\n  - { count: 2 }\n  - holds: [{ entries: 2 }]\n";
    folder.file("small.yaml", small);
    let less = folder.run(whole.iter().chain(&["--device", "small.yaml"]));
    assert!(less.well().contains("entries, 2 fit"), "{}", less.out);
    assert!(less.out.contains("proven to do what the chain does"), "{}", less.out);
    assert!(done.well().contains("13 classes: 7 done there"), "{}", done.out);
    assert!(less.out.contains("13 classes: 2 done there"), "{}", less.out);
    // The topology says so, too.
    let rack = RACK.replace("target: ovs", "target: ovs\n    device: hp-5130");
    folder.file("rack.yaml", rack);
    let one = folder.run(["compile", "r.click", "--topology", "rack.yaml"]);
    assert!(one.well().contains("tables, 1 fit"), "{}", one.out);
}

#[test]
fn tables_of_p4_programs_lie_in_stages() {
    let folder = Folder::new();
    // Few routes would be part of another table.
    let more: Vec<String> = (21..30).map(|net| format!("{net}.0.0.0/8 1")).collect();
    folder.file("r.click", ROUTER.replace("20.0.0.0/8 1", &more.join(", ")));
    let compile = |more: &[&str]| folder.run(["compile", "r.click"].iter().chain(more));
    let tna = compile(&["--target", "p4", "--arch", "tna", "--stages"]);
    assert!(tna.well().contains("p4 tna → tofino-1  "), "{}", tna.out);
    // The device says so, too.
    let device = compile(&["--target", "p4", "--device", "tofino-1", "--stages"]);
    assert_eq!(device.well(), tna.out);
    let other = compile(&["--target", "p4,ovs", "--arch", "tna"]);
    assert_eq!(other.code, Some(1), "{}", other.out);
    assert!(
        other.err.contains("ovs has no architectures, and cannot be for 'tna'"),
        "{}",
        other.err
    );
    assert!(tna.out.contains("ipv4.dst lpm") && tna.out.contains("(r.click:2)"), "{}", tna.out);
    let json = compile(&["--target", "p4", "--arch", "tna", "--stages", "--json"]);
    let json: Value = serde_json::from_str(json.well()).expect("JSON");
    // The last is that which counts: it needs what the tables before decided.
    let tables = json["tables"].as_array().unwrap();
    let count = tables.last().unwrap();
    let stages = json["stages"]["needed"].as_u64().unwrap();
    assert_eq!((&count["name"], count["first"].as_u64()), (&"count".into(), Some(stages - 1)));
    assert_eq!(count["depends"]["fields"][0], "meta.class");
    // BMv2 has no stages; what does not fit a switch of two is left to cores, and proven.
    let bmv2 = compile(&["--target", "p4", "--stages"]);
    assert!(bmv2.err.contains("--device names what has room for p4's tables"), "{}", bmv2.err);
    let tofino = codegen::stages::Hardware::file("tofino-1").unwrap();
    folder.file("two.yaml", tofino.replace("count: 12", "count: 2").replace("tofino-1", "two"));
    let all = ["--target", "p4", "--trust", ALL, "--device", "two.yaml"];
    let short = compile(&[&all[..], &["--stages"]].concat());
    assert_eq!(short.code, Some(1), "{}{}", short.out, short.err);
    assert!(short.out.contains("stages are needed; two has 2"), "{}", short.out);
    let left = compile(&all);
    assert!(left.well().contains("stages, 2 fit"), "{}", left.out);
    assert!(left.out.contains("proven to do what the chain does"), "{}", left.out);
    let rack = RACK.replace("target: ovs", "target: p4\n    arch: tna\n    device: tofino-1");
    folder.file("rack.yaml", rack);
    compile(&["--topology", "rack.yaml", "--stages"]).well();
}

/// What short lookups find is decided beside all else: routers in a row do not take a stage each.
#[test]
fn ten_routers_in_a_row_take_four_stages() {
    let folder = Folder::new();
    let examples = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    for name in ["ten-routers.click", "lan.pcap.gz"] {
        folder.file(name, std::fs::read(format!("{examples}/{name}")).unwrap());
    }
    let all = ["--target", "p4", "--arch", "tna", "--trust", ALL, "--stages", "--json"];
    let staged = folder.run(["compile", "ten-routers.click"].iter().chain(&all));
    let json: Value = serde_json::from_str(staged.well()).expect("JSON");
    assert!(json["stages"]["needed"].as_u64().unwrap() <= 4, "{json:#}");
}

/// Tables of thousands of entries are proven, too.
#[test]
fn long_tables_of_translations_and_routes_are_proven() {
    let folder = Folder::new();
    let routes: Vec<String> =
        (0..3000).map(|at| format!("20.{}.{}.0/24 {}", at / 256, at % 256, at % 2)).collect();
    let from = nats(3, 100);
    let (before, rest) = from.split_once("20.0.0.0/16 0").unwrap();
    let (_, behind) = rest.split_once(");").unwrap();
    folder.file("nats.click", format!("{before}{});{behind}", routes.join(", ")));
    for arch in ["v1model", "tna"] {
        let all = ["--target", "p4", "--arch", arch, "--trust", ALL, "--limit", "1"];
        let compiled = folder.run(["compile", "nats.click"].iter().chain(&all));
        assert!(compiled.well().contains("proven to do what the chain does"), "{}", compiled.out);
    }
}

/// A filter, one of so many static NATs by what it decides, and a router behind all of them.
fn nats(count: usize, entries: usize) -> String {
    use std::fmt::Write;
    let arms: Vec<String> = (0..count).map(|arm| format!("src net 10.{arm}.0.0/16")).collect();
    let mut text = format!(
        "FromDevice(lan) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> bpf :: IPClassifier({});\n",
        arms.join(", ")
    );
    let routes: Vec<String> = (0..20).map(|at| format!("20.{at}.0.0/16 {}", at % 2)).collect();
    let _ =
        writeln!(text, "get :: GetIPAddress(16) -> fwd :: RadixIPLookup({});", routes.join(", "));
    for port in 0..2 {
        let _ = writeln!(
            text,
            "fwd[{port}] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:2:{port}) -> Queue -> ToDevice(w{port});"
        );
    }
    for arm in 0..count {
        let all: Vec<String> =
            (0..entries).map(|at| format!("10.{arm}.0.{at}/32 192.0.{arm}.{at} 0")).collect();
        let _ = writeln!(
            text,
            "bpf[{arm}] -> GetIPAddress(12) -> RadixIPLookup({}) -> StoreIPAddress(src) -> get;",
            all.join(", ")
        );
    }
    text
}

#[test]
fn eleven_nats_in_branches_are_one_table_and_the_router_behind_them_is_one() {
    let folder = Folder::new();
    folder.file("nats.click", nats(11, 12));
    let all = ["--target", "p4", "--arch", "tna", "--trust", ALL, "--stages", "--json"];
    let staged = folder.run(["compile", "nats.click"].iter().chain(&all));
    let json: Value = serde_json::from_str(staged.well()).expect("JSON");
    let tables = json["tables"].as_array().unwrap();
    let keyed = |field: &str| {
        let is = |of: &&Value| {
            of["name"].as_str().is_some_and(|name| name.starts_with("routes"))
                && of["keys"].as_array().unwrap().iter().any(|key| key["field"] == field)
        };
        tables.iter().filter(is).map(|of| of["entries"].as_u64().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!((keyed("meta.list"), keyed("ipv4.src")), (vec![132], vec![132]), "{json:#}");
    assert_eq!(keyed("ipv4.dst"), [20], "{json:#}");
    assert!(json["stages"]["needed"].as_u64().unwrap() <= 6, "{json:#}");
}
