//! `catena place`.

use engine::control::protocol::{CountersAnswer, Counts, FunctionCounts};
use serde_json::Value;

use crate::program::Folder;

const CHAINS: &str = "\
functions:
  ACL: { cycles: 985, on: [switch, core] }
  Encrypt: { cycles: 9123, on: [core] }
  Limiter: { cycles: 20, on: [core], replicates: false }
  Forward: { on: [switch] }
chains:
  - name: a
    chain: 'acl :: ACL -> Encrypt -> f :: Forward; acl[1] -> f'
    splits: { acl: [0.25, 0.75] }
    slo: { min: 2 Gbps, max: 20 Gbps }
  - name: b
    chain: Limiter -> ACL -> Encrypt -> Forward
    slo: { max: 3 Gbps, delay: 40 us, price: 2 }
";

const RACK: &str = "\
switches:
  tor: { target: ovs, ports: { down: { number: 1 } } }
servers:
  s1: { cores: 4, keep: 1, clock: 2 GHz, ports: { eth0: { rate: 40 Gbps, delay: 1 us } } }
links: [[tor.down, s1.eth0]]
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("chains.yaml", CHAINS);
    folder.file("rack.yaml", RACK);
    folder
}

const PLACE: [&str; 4] = ["place", "chains.yaml", "--topology", "rack.yaml"];

#[test]
fn a_plan_says_what_each_chain_gets_and_where_it_runs() {
    let folder = folder();
    let placed = folder.run(PLACE.into_iter().chain(["--policy", "exact", "-o", "plan.json"]));
    let text = placed.well();
    for expected in [
        "no plan gains more",
        // A quarter of its packets is encrypted, on two cores.
        "a      20.00   2.00  20.00",
        // 2 GHz x 12,000 bits / (20 + 985 + 9,123).
        "b       2.37   0.00   3.00",
        "1 core of Limiter",
        // The switch has it where that saves a core.
        "ACL: saves no core",
        "s1: cores                 3 cores",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let json = folder.run(PLACE.into_iter().chain(["--check", "plan.json", "--json"]));
    let document: Value = serde_json::from_str(json.well()).unwrap();
    assert_eq!(document["plan"]["chains"][0]["functions"][0]["on"], "switch");
    let constraints = document["constraints"].as_array().unwrap();
    assert!(constraints.iter().any(|of| of["what"] == "s1: link to the switch"), "{document}");
}

#[test]
fn a_chain_is_explained_and_a_plan_is_drawn() {
    let folder = folder();
    let explained = folder.run(PLACE.into_iter().chain(["--explain", "b", "--svg", "rack.svg"]));
    let text = explained.well();
    for expected in [
        "b  2.37 Gb/s of 0 b/s to 3.00 Gb/s, bound by 1 core of Limiter",
        "2.0 us of links (2 passes)",
        "Encrypt     100 %   9,123  s1, 1 core",
        "not on the switch: saves no core",
        "delay                        7.7 us",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let drawn = folder.read("rack.svg");
    for expected in
        ["<title>chains.yaml</title>", ">Limiter</text>", "cores 3/3", "stroke-width=\"12\""]
    {
        assert!(drawn.contains(expected), "{expected}\n{drawn}");
    }
    let refused = folder.run(PLACE.into_iter().chain(["--explain", "B"]));
    assert!(refused.refused().contains("there is no chain 'B'"), "{}", refused.refused());
}

#[test]
fn a_plan_that_does_not_hold_is_refused() {
    let folder = folder();
    folder.run(PLACE.into_iter().chain(["-o", "plan.json"])).well();
    let check = || folder.run(PLACE.into_iter().chain(["--check", "plan.json"]));
    folder.file("rack.yaml", RACK.replace("keep: 1", "keep: 2"));
    let refused = check();
    assert!(refused.refused().contains("s1: cores: 3"), "{}", refused.refused());
    folder.file("rack.yaml", RACK.replace("s1", "s2"));
    assert!(check().refused().contains("there is no host 's1' at hand"));
    folder.file("rack.yaml", RACK);
    folder.file("chains.yaml", CHAINS.replace("name: b", "name: c"));
    assert!(check().refused().contains("it is for the chains a, b; at hand are a, c"));
}

#[test]
fn what_is_wrong_with_a_manifest_is_named_with_its_line() {
    let folder = folder();
    for (from, to, expected) in [
        ("min: 2 Gbps", "min: 2", "chains.yaml:10:17"),
        ("min: 2 Gbps", "min: 30 Gbps", "its least rate is above the greatest"),
        ("[0.25, 0.75]", "[0.25, 0.7]", "the shares of 'acl' do not add up to 1"),
        ("[0.25, 0.75]", "[1.0]", "1 shares for the 2 ports of 'acl'"),
        (
            "acl[1] -> f",
            "acl[1] -> f; Limiter -> f",
            "packets enter at one function, not at acl, Limiter",
        ),
        (
            "Limiter -> ACL -> Encrypt -> Forward",
            "'ACL -> l :: Limiter -> ACL -> l'",
            "in a circle",
        ),
        ("'acl :: ACL", "acl :: ACL", "stands in quotes"),
        ("ACL -> Encrypt -> Forward", "ACL -> Encrypd -> Forward", "did you mean 'Encrypt'?"),
        ("on: [switch]", "on: [swich]", "there is no kind of device 'swich'"),
        ("name: b", "name: a", "two chains are called 'a'"),
        (
            "max: 3 Gbps, delay: 40 us",
            "max: 3 Gbps, delay: 1 us",
            "no placement of chain b meets its SLO",
        ),
        ("cycles: 985", "cycles: -1", "chains.yaml:2:18"),
        ("cycles: 985", "cycles: 0", "ACL takes 0 cycles"),
        ("cycles: 985", "cycles: 1e12", "ACL takes 1000000000000 cycles"),
        ("cycles: 985, ", "", "ACL runs on cores and has no cycles"),
    ] {
        folder.file("chains.yaml", CHAINS.replacen(from, to, 1));
        let placed = folder.run(PLACE.into_iter().chain(["--policy", "exact"]));
        assert!(placed.refused().contains(expected), "{expected}\n{}", placed.refused());
    }
    folder.file("chains.yaml", CHAINS);
    folder.file("rack.yaml", RACK.replace("cores: 4, keep: 1, clock: 2 GHz, ", ""));
    let placed = folder.run(PLACE);
    assert!(
        placed.refused().contains("no server of the topology has cores"),
        "{}",
        placed.refused()
    );
}

const FUNCTIONS: &str = "\
elementclass ACL { __REST__ $rules |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPFilter($rules) -> Unstrip(14) -> output; }
elementclass Forward { input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Unstrip(14) -> output; }
elementclass NAT { $public |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> kind :: IPClassifier(tcp or udp, -);
  kind[0] -> IPRewriter(pattern $public 1024-65535# - - 0 0) -> Unstrip(14) -> output;
  kind[1] -> Discard; }
elementclass Limiter { input -> Queue(100) -> BandwidthShaper(1000000) -> Unqueue -> output; }
elementclass Turns { input -> r :: RoundRobinSwitch; r[0] -> [0] output; r[1] -> [1] output; }
";

const CLICK: &str = "\
require: [functions.click]
chains:
  - name: a
    chain: ACL(allow src net 10.0.0.0/8) -> NAT(198.51.100.7) -> Limiter -> Forward
    traffic: [{ in: lan, out: wan, src: 10.7.0.0/16 }]
    slo: { elastic-pipe: [1 Mbps, 10 Gbps] }
  - name: b
    nfs: [{ name: fw, click: fw.click }]
    chain: |
      lan -> fw -> t :: Turns;
      t[0] -> up :: Forward -> wan;
      t[1] -> up
    splits: { t/up: 1 }
    slo: { max: 3 Gbps }
  - name: c
    file: c.click
    slo: { max: 1 Gbps }
";

const OVS: &str = "\
switches:
  tor:
    target: ovs
    ports:
      lan: { number: 1, trust: [lengths, ip-checksum, ip-options, mtu] }
      wan: { number: 2, trust: [lengths, ip-checksum, ip-options, mtu] }
      down: { number: 3 }
servers:
  s1: { cores: 8, clock: 2 GHz, ports: { eth0: { rate: 40 Gbps, delay: 1 us } } }
links: [[tor.down, s1.eth0]]
wires: { lan: tor.lan, wan: tor.wan }
";

/// The profile of a function `fw`.
const COSTS: &str = "\
costs: 1
chain: b.click
processor: { name: Some processor, frequency: 2.1e9, is_virtual: true, kernel: '6' }
unix_time: 1764000000
method: by hand
traffic: [as given]
functions:
  - { name: fw, cost: { min: 300, mean: 400, max: 500, samples: [] } }
programs: []
io: []
hand_off: null
";

fn clicked() -> Folder {
    let folder = Folder::new();
    folder.file("functions.click", FUNCTIONS);
    folder.file("fw.click", "input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPFilter(allow tcp, allow udp)\n-> Unstrip(14) -> output;\n");
    folder.file(
        "c.click",
        format!("{FUNCTIONS}lan :: FromDevice(lan) -> f :: Forward -> wan :: ToDevice(wan);\n"),
    );
    folder.file("chains.yaml", CLICK);
    folder.file("rack.yaml", OVS);
    folder.file("costs.yaml", COSTS);
    folder
}

#[test]
fn chains_are_click_and_devices_say_what_they_can_run() {
    let folder = clicked();
    let matrix =
        folder.run(PLACE.into_iter().chain(["--matrix", "--json", "--costs", "costs.yaml"]));
    let document: Value = serde_json::from_str(matrix.well()).unwrap();
    let of = |chain: &str, function: &str| {
        let all = document["functions"].as_array().unwrap();
        let found = all.iter().find(|of| of["chain"] == chain && of["function"] == function);
        found.unwrap_or_else(|| panic!("{function} of {chain}: {document:#}")).clone()
    };
    for (chain, function, runs, shared) in [
        ("a", "ACL", true, false),
        ("a", "NAT", false, false),
        ("a", "Limiter", false, true),
        ("a", "Forward", true, false),
        ("b", "fw", true, false),
        ("b", "t", false, true),
        ("c", "f", true, false),
    ] {
        let known = of(chain, function);
        let device = &known["devices"][0];
        assert_eq!(
            (&device["device"], &device["runs"]),
            (&"tor".into(), &runs.into()),
            "{known:#}"
        );
        assert_eq!(known["shared"].is_string(), shared, "{known:#}");
        assert_eq!(known["guess"], function != "fw", "{known:#}");
    }
    let why = of("a", "NAT")["devices"][0]["why"][0].to_string();
    assert!(why.contains("IPRewriter") && why.contains("functions.click:6"), "{why}");
    assert_eq!(of("b", "fw")["cycles"], 500.0);
    let placed = folder.run(PLACE.into_iter().chain(["--costs", "costs.yaml"]));
    assert!(
        placed.err.contains("7 functions, such as ACL of a, have no cost profile"),
        "{}",
        placed.err
    );
    assert!(placed.code == Some(0) && placed.out.contains("Limiter"), "{}", placed.out);
}

#[test]
fn what_is_wrong_with_a_chain_in_a_manifest_is_shown_there() {
    let folder = clicked();
    for (from, to, expected) in [
        ("ACL(allow", "ACI(allow", "chains.yaml:4:"),
        ("t[1] -> up", "t[1] -> upp", "chains.yaml:12:"),
        ("click: fw.click", "click: fv.click", "chains.yaml:8:"),
        ("file: c.click", "file: d.click", "chains.yaml:16:11"),
        ("[functions.click]", "[function.click]", "function.click"),
        ("file: c.click", "file: c.click, chain: NAT", "mapping"),
        ("t/up: 1", "t/upp: 1", "no output of 't' leads to 'upp'"),
        ("src: 10.7.0.0/16", "src: 10.7.0.0/33", "'10.7.0.0/33' is no network of IPv4"),
        ("{ max: 3 Gbps }", "{ max: 3 Gbps, virtual-pipe: 1 Gbps }", "given once"),
        (
            "file: c.click",
            "file: c.click\n    on: { f: [not core, not switch] }",
            "'f' can run on switch and core alone",
        ),
        ("file: c.click", "file: c.click\n    on: { g: [core] }", "the chain has no function 'g'"),
        (
            "t/up: 1 }",
            "t/up: 1 }\n    together: [[fw, t]]\n    apart: [[t, fw]]",
            "shall be together, too",
        ),
    ] {
        folder.file("chains.yaml", CLICK.replacen(from, to, 1));
        let placed = folder.run(PLACE);
        assert!(placed.refused().contains(expected), "{to}: {expected}\n{}", placed.refused());
    }
    // All at once.
    folder.file(
        "chains.yaml",
        CLICK.replace("ACL(allow", "ACI(allow").replace("t/up: 1", "t/upp: 1"),
    );
    let placed = folder.run(PLACE);
    assert!(
        placed.refused().contains("ACI") && placed.refused().contains("upp"),
        "{}",
        placed.refused()
    );
}

/// Static NATs and a router.
const TRANSLATED: &str = "\
elementclass NAT { __REST__ $all |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> GetIPAddress(12) -> RadixIPLookup($all)
    -> StoreIPAddress(src) -> Unstrip(14) -> output;
}
elementclass Forward {
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
    -> RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 0) -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:2:0) -> output;
}
";

#[test]
fn the_switch_is_asked_whether_functions_of_all_chains_fit_its_stages() {
    let folder = Folder::new();
    folder.file("functions.click", TRANSLATED);
    // Each looks up what the one before it wrote: none shares a stage with another.
    let nats = (1..10).map(|at| {
        let before = at - 1;
        format!("n{at} :: NAT(10.0.0.0/8 192.0.0.{at} 0, 192.0.0.{before}/32 192.0.0.{at} 0)")
    });
    let nats = nats.collect::<Vec<_>>().join(" -> ");
    let chains = format!(
        "\
packet: 1500 bytes
require: [functions.click]
functions: {{ NAT: {{ cycles: 519, replicates: false }}, Forward: {{ cycles: 500, on: [switch] }} }}
chains:
  - name: c
    chain: |
      lan -> {nats} -> Forward -> wan
    traffic: [{{ in: lan, out: wan, src: 10.0.0.0/8 }}]
    slo: {{ min: 1 Gbps, max: 100 Gbps }}
"
    );
    folder.file("chains.yaml", chains);
    let ports = "ports: { lan: { number: 1, trust: [lengths, ip-checksum, ip-options, mtu] }, \
                 wan: { number: 2 }, down: { number: 3 } }";
    let rack = |device: &str| {
        let tor = format!("{{ target: p4, {device}{ports} }}");
        let rack = RACK.replace("{ target: ovs, ports: { down: { number: 1 } } }", &tor);
        folder.file("rack.yaml", format!("{rack}wires: {{ lan: tor.lan, wan: tor.wan }}\n"));
    };
    // Nothing is known of the switch's room: it has all.
    rack("");
    let roomy = folder.run(PLACE.into_iter().chain(["-o", "plan.json"]));
    assert!(roomy.well().contains("c      switch  n1 n2 "), "{}", roomy.out);
    rack("device: tofino-1, ");
    for policy in ["improved", "exact", "lemur"] {
        let placed = folder.run(PLACE.into_iter().chain(["--policy", policy]));
        for expected in [": no stage left: ", " of 12, needed by ", "tor: stages", "s1, 1 core"] {
            assert!(placed.well().contains(expected), "{policy}, {expected}\n{}", placed.out);
        }
    }
    for policy in ["hw-preferred", "greedy"] {
        let placed = folder.run(PLACE.into_iter().chain(["--policy", policy]));
        assert!(placed.refused().contains("not all chains get"), "{policy}: {}", placed.err);
    }
    let checked = folder.run(PLACE.into_iter().chain(["--check", "plan.json"]));
    assert!(checked.refused().contains("no stage left: "), "{}", checked.refused());
    // No core is as fast, so the switch would have to hold more.
    let chains = folder.read("chains.yaml");
    folder.file("chains.yaml", chains.replace("min: 1 Gbps", "min: 90 Gbps"));
    let refused = folder.run(PLACE);
    for expected in
        ["chain c: min 90.000 Gb/s", "each of these suffices:", "the switch: ", " more stage"]
    {
        assert!(refused.refused().contains(expected), "{expected}\n{}", refused.err);
    }
}

#[test]
fn functions_rely_on_what_others_of_their_chain_found_out() {
    let folder = Folder::new();
    let functions = "\
elementclass Check { input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> output; }
elementclass ACL { __REST__ $rules | input -> IPFilter($rules) -> output; }
elementclass NAPT { $public | input -> IPRewriter(pattern $public 1024-65535# - - 0 0) -> output; }
elementclass Back { input -> Unstrip(14) -> output; }
";
    folder.file("functions.click", functions);
    let chains = "\
require: [functions.click]
functions: { Check: { cycles: 90 }, ACL: { cycles: 300 }, NAPT: { cycles: 600 }, Back: { cycles: 10 } }
chains:
  - name: c
    chain: lan -> Check -> NAPT(198.51.100.7) -> ACL(allow dst net 20.0.0.0/8) -> Back -> wan
    traffic: [{ in: lan, out: wan, src: 10.0.0.0/8, dst: 20.0.0.0/8 }]
    slo: { min: 1 Gbps, max: 10 Gbps }
";
    folder.file("chains.yaml", chains);
    let ports = "ports: { lan: { number: 1, trust: [lengths, ip-checksum, ip-options, mtu] }, \
                 wan: { number: 2 }, down: { number: 3 } }";
    let rack = RACK.replace("ports: { down: { number: 1 } }", ports);
    folder.file("rack.yaml", format!("{rack}wires: {{ lan: tor.lan, wan: tor.wan }}\n"));
    let matrix = folder.run(PLACE.into_iter().chain(["--matrix", "--json"]));
    let json: Value = serde_json::from_str(matrix.well()).unwrap();
    let all = json["functions"].as_array().unwrap();
    let runs: Vec<_> = all
        .iter()
        .map(|of| (of["function"].as_str().unwrap(), &of["devices"][0]["runs"]))
        .collect();
    let (yes, no) = (Value::Bool(true), Value::Bool(false));
    assert_eq!(runs, [("Check", &yes), ("NAPT", &no), ("ACL", &yes), ("Back", &yes)], "{json:#}");
    let why = all[1]["devices"][0]["why"].to_string();
    assert!(why.contains("flows are not looked up"), "{why}");
}

#[test]
fn wishes_that_contradict_are_shown_with_both_lines() {
    let folder = folder();
    for (wishes, message, lines) in [
        (
            "on: { ACL: [switch] }\n    together: [[ACL, Encrypt]]",
            "'ACL' and 'Encrypt' cannot be together: one can be on switch, the other on core",
            ["11 |     together: [[ACL, Encrypt]]", "10 |     on: { ACL: [switch] }"],
        ),
        (
            "together: [[ACL, Encrypt], [Encrypt, Limiter]]\n    apart: [[Limiter, ACL]]",
            "'Limiter' and 'ACL' cannot be apart: they shall be together, too",
            ["11 |     apart: [[Limiter, ACL]]", "10 |     together: [[ACL, Encrypt]"],
        ),
    ] {
        let chains = CHAINS.split("  - name: a").next().unwrap();
        let chain = "  - name: b\n    chain: Limiter -> ACL -> Encrypt -> Forward\n    slo: { max: 3 Gbps }\n";
        folder.file("chains.yaml", format!("{chains}{chain}    {wishes}\n"));
        let placed = folder.run(PLACE);
        for expected in [message, lines[0], lines[1]] {
            assert!(placed.refused().contains(expected), "{expected}\n{}", placed.err);
        }
    }
}

#[test]
fn chains_get_as_much_as_each_other_if_that_is_asked_for() {
    let folder = folder();
    let fair = folder.run(PLACE.into_iter().chain(["--objective", "fair"]));
    // The second has a core for its Limiter and one for Encrypt, where most is gained with one for both.
    for expected in ["b       2.63   0.00   3.00", "whether another gains more is not known"] {
        assert!(fair.well().contains(expected), "{expected}\n{}", fair.out);
    }
    // The manifest may ask for it, and the command line goes before it.
    folder.file("chains.yaml", format!("objective: fair\n{CHAINS}"));
    assert_eq!(folder.run(PLACE).well(), fair.out);
    let gain = folder.run(PLACE.into_iter().chain(["--objective", "gain"]));
    assert!(gain.well().contains("no plan gains more"), "{}", gain.out);
    let exact = folder.run(PLACE.into_iter().chain(["--objective", "fair", "--policy", "exact"]));
    assert!(exact.refused().contains("`improved` is the only policy for it"), "{}", exact.err);
}

/// Each server's failure has a plan ahead, which is checked with the plan.
#[test]
fn plans_have_backups_for_the_failure_of_each_server() {
    let folder = folder();
    let second = "  s2: { cores: 4, keep: 1, clock: 2 GHz, ports: { eth0: { rate: 40 Gbps, delay: 1 us } } }\n";
    let rack = RACK
        .replace("down: { number: 1 }", "down: { number: 1 }, more: { number: 2 }")
        .replace("links: [", &format!("{second}links: [[tor.more, s2.eth0], "));
    folder.file("rack.yaml", rack);
    folder.run(PLACE.into_iter().chain(["-o", "plan.json"])).well();
    let plan = folder.read("plan.json");
    let mut document: Value = serde_json::from_str(&plan).unwrap();
    let backups = document["backups"].as_object().expect("backups");
    assert_eq!(backups.keys().collect::<Vec<_>>(), ["s1", "s2"]);
    let check = || folder.run(PLACE.into_iter().chain(["--check", "plan.json"]));
    let checked = check();
    for expected in ["if s1 fails: ", "if s2 fails: ", " Gb/s in all remain of ", " for about "] {
        assert!(checked.well().contains(expected), "{expected}\n{}", checked.out);
    }
    let next = folder.run(PLACE.into_iter().chain(["--from", "plan.json", "--down", "s1"]));
    assert!(next.well().contains(", in about 0."), "{}", next.out);
    assert!(
        next.out.contains(": until then it gets ") || next.out.contains(": it keeps"),
        "{}",
        next.out
    );
    // One that is not there is said.
    let mut fewer = document.clone();
    fewer["backups"].as_object_mut().unwrap().remove("s2");
    folder.file("plan.json", fewer.to_string());
    assert!(check().well().contains("there are no backups for s2; "), "{}", check().out);
    let hurried = folder.run(PLACE.into_iter().chain(["-o", "plan.json", "--time", "1 ns"]));
    assert!(hurried.err.contains("there are no backups for "), "{}", hurried.err);
    // One that says less than it takes.
    let mut quick = document.clone();
    quick["backups"]["s1"]["takes"] = 0.001.into();
    folder.file("plan.json", quick.to_string());
    let refused = check();
    assert!(refused.refused().contains("but it says "), "{}", refused.err);
    // A backup that promises more than there is.
    for backup in document["backups"].as_object_mut().unwrap().values_mut() {
        for chain in backup["chains"].as_array_mut().unwrap() {
            chain["rate"] = 9e10.into();
        }
    }
    folder.file("plan.json", document.to_string());
    assert!(check().refused().contains("does not hold"), "{}", check().err);
}

#[test]
fn shares_of_branches_come_from_the_counters_of_a_run() {
    let folder = folder();
    let functions = [("acl", 1000), ("Encrypt", 100), ("f", 400)];
    let functions = functions.map(|(name, packets)| FunctionCounts { name: name.into(), packets });
    let all = Counts { functions: functions.into(), ..Counts::default() };
    let counters = CountersAnswer { workers: Vec::new(), all: Some(all) };
    folder.file("counters.json", serde_json::to_string(&counters).unwrap());
    folder.file("chains.yaml", CHAINS.replace("acl: [0.25, 0.75]", "measured: counters.json"));
    let explained = folder.run(PLACE.into_iter().chain(["--explain", "a"]));
    assert!(explained.well().contains("Encrypt      10 %"), "{}", explained.out);
    folder.file("counters.json", "{}");
    let refused = folder.run(PLACE);
    let expected = "counters.json: it is not what `catena ctl counters --json` prints";
    assert!(refused.refused().contains(expected), "{}", refused.err);
}

#[test]
fn functions_in_processes_of_their_own_cost_hops() {
    let folder = folder();
    let costs = "\
costs: 1
chain: ''
processor: { name: A processor, frequency: 2.0e9, is_virtual: false, kernel: '6' }
unix_time: 1764000000
method: by hand
traffic: []
functions: []
programs: []
io: []
hand_off: null
hops:
  - { switch: linux-bridge, version: x, io: af-xdp, pairs: 1, size: 1500, bursts: [32, 1], cores: 1, throughput: 5.0e5,
      round_trip: [20000, 50000], send: 1000, receive: 500, forward: 500 }
";
    folder.file("hops.yaml", costs);
    let chains = |more: &str| {
        format!(
            "costs: [hops.yaml]\nfunctions:\n  ACL: {{ cycles: 1000, on: [core] }}\n  \
             Proxy: {{ cycles: 3000, on: [core, switch], hop: {more} }}\n  Cache: {{ cycles: 1000, on: [core], hop: {more} }}\n\
             chains:\n  - {{ name: a, chain: ACL -> Proxy -> Cache, slo: {{ max: 1 Gbps }} }}\n"
        )
    };
    folder.file("chains.yaml", chains("linux-bridge"));
    let explained = folder.run(PLACE.into_iter().chain(["--explain", "a"]));
    let text = explained.well();
    for expected in [
        // One hop of 2,000 cycles to the next process; one there and one back, and no packet in less than 4,000.
        "Proxy       100 %   5,000",
        "Cache       100 %   5,000",
        // 11,000 cycles are 5.5 µs. A hop takes 10 µs, of which 1 µs is cycles: three of 9 µs more.
        "32.5 us of execution",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    folder.file("chains.yaml", chains("linux-brigde"));
    let refused = folder.run(PLACE);
    let text = refused.refused();
    assert!(text.contains("did you mean 'linux-bridge'?") && text.contains(":4:"), "{text}");
}
