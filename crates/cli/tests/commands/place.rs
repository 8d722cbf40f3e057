//! `catena place`.

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
        "a      20.00 Gb/s",
        // 2 GHz x 12,000 bits / (20 + 985 + 9,123).
        "b      2.37 Gb/s",
        "cycles of 1 core of Limiter",
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
        ("cycles: 985", "cycles: -1", "takes -1 cycles"),
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
