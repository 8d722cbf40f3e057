//! What handlers list is read slice by slice, and packets pass in between.

use std::path::Path as Folder;

use dataplane::io::{Binding, Bindings};
use dataplane::{Reading, Router};
use elements::listing::{Record, SLICE, Slice, render};
use engine::session::Path;

use crate::support::{Started, start, start_bound};

const FLOWS: usize = 3000;

/// Two rewriters that share a table; only the first one makes flows.
const CHAIN: &str = "FromDevice(lan) -> Strip(14) -> CheckIPHeader
    -> nat :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 0, drop) -> Discard; Idle -> [1] nat;
    Idle -> UDPRewriter(drop, MAPPING_CAPACITY nat) -> Discard;";

/// The slices of a handler.
fn slices(router: &mut Router, handler: &str) -> Vec<Slice> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let Ok(Reading::Slice(slice)) = router.read_slice(handler, at) else {
            panic!("{handler} is not read in slices")
        };
        from = slice.next;
        all.push(slice);
    }
    all
}

#[test]
fn flows_are_listed_in_slices() {
    for path in [Path::Native, Path::Synthesised] {
        let source = format!("gen:flows={FLOWS},count={}", 3 * FLOWS);
        let mut bindings = Bindings::default();
        bindings.inputs.insert("lan".to_string(), Binding::source(&source).unwrap());
        let Ok(mut started) = start_bound("flows", CHAIN, Folder::new(""), path, bindings) else {
            panic!("it does not start")
        };
        let router = &mut started.router;
        router.run(|_, _| false);
        for handler in ["nat.table", "nat.udp_table", "nat.size", "nat.nmappings", "nat.patterns"] {
            let all = slices(router, handler);
            assert!(all.len() >= FLOWS / SLICE, "{handler}: {} slices", all.len());
            let flows = |slice: &Slice| -> usize {
                let of = |record: &Record| match record {
                    Record::Flow(flow) => usize::from(flow.is_first),
                    Record::Count(_, count) => *count as usize,
                    Record::Row(..) | Record::Text(_) => 0,
                };
                slice.records.iter().map(of).sum()
            };
            assert!(all.iter().all(|slice| flows(slice) <= SLICE), "{handler}");
            assert_eq!(all.iter().map(flows).sum::<usize>(), FLOWS, "{handler}");
            // What is read at once, by scripts and in other modes, is the same.
            assert_eq!(render(all), router.read_handler(handler).unwrap(), "{handler}");
        }
        assert_eq!(router.read_handler("nat.tcp_table").unwrap(), "");
        assert_eq!(router.read_handler("nat.size").unwrap(), FLOWS.to_string());
        let patterns = router.read_handler("nat.patterns").unwrap();
        assert!(patterns.ends_with(&format!(" [{FLOWS}]\n<drop>\n")), "{patterns}");
        // What lists nothing, or cannot be read, is read as it was.
        assert!(matches!(router.read_slice("nat.capacity", 0), Ok(Reading::Whole(_))));
        assert!(router.read_slice("nat.clear", 0).unwrap_err().contains("write-only"));
        // A flow that was listed is removed, once.
        let first = slices(router, "nat.table").remove(0).records.remove(0);
        let Record::Flow(flow) = first else { panic!("no flow: {first:?}") };
        assert!(router.remove_flow("nat", &flow) && !router.remove_flow("nat", &flow));
        assert_eq!(router.read_handler("nat.size").unwrap(), (FLOWS - 1).to_string());
    }
}

/// Routes, too, are listed a bounded number at a time, in their order.
#[test]
fn routes_are_listed_in_slices() {
    let routes: Vec<String> =
        (0..1000).map(|n| format!("10.{}.{}.0/24 {}", n / 256, n % 256, n % 2)).collect();
    let chain = format!(
        "Idle -> rt :: RadixIPLookup({}); rt[0] -> Discard; rt[1] -> Discard;",
        routes.join(", ")
    );
    let Ok(mut started) = start("routes", &chain, Folder::new(""), Path::Native) else {
        panic!("it does not start")
    };
    let router = &mut started.router;
    router.write_handler("rt.remove", "10.0.5.0/24").unwrap();
    let all = slices(router, "rt.table");
    assert!(all.len() > 5 && all.iter().all(|slice| slice.records.len() <= SLICE / 2));
    let text = render(all);
    assert_eq!(text, router.read_handler("rt.table").unwrap());
    let shown: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
    let kept = routes.iter().filter_map(|route| route.split(' ').next());
    assert!(shown.into_iter().eq(kept.filter(|network| *network != "10.0.5.0/24")));
}

/// Reads handlers slice by slice: none has much in it, and together they are what is read at once.
fn are_listed_in_slices(router: &mut Router, handlers: &[&str]) {
    for handler in handlers {
        let all = slices(router, handler);
        assert!(all.len() > 3, "{handler}: {} slices", all.len());
        for slice in &all {
            let bytes = |record: &Record| match record {
                Record::Row(_, text) => text.len(),
                Record::Text(text) => text.len(),
                Record::Flow(_) | Record::Count(..) => 0,
            };
            let bytes: usize = slice.records.iter().map(bytes).sum();
            assert!(slice.records.len() <= SLICE && bytes <= 1 << 14, "{handler}: {bytes} bytes");
        }
        assert_eq!(render(all), router.read_handler(handler).unwrap(), "{handler}");
    }
}

/// Reads handlers that share their text with whoever reads them, which takes no time.
fn are_shared(router: &mut Router, handlers: &[&str]) {
    for handler in handlers {
        let [one, other] = [0, 1].map(|_| slices(router, handler).remove(0).records.remove(0));
        let (Record::Text(one), Record::Text(other)) = (one, other) else { panic!("{handler}") };
        assert!(std::sync::Arc::ptr_eq(&one, &other), "{handler}");
        assert_eq!(*one, *router.read_handler(handler).unwrap(), "{handler}");
    }
}

fn started(chain: &str) -> Started {
    let started = start("listing", chain, Folder::new(""), Path::Native);
    started.unwrap_or_else(|(found, _)| panic!("{found:?}"))
}

#[test]
fn neighbours_are_listed_in_slices() {
    let Started { mut router, chain, .. } = started(
        "q :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1); Idle -> q -> Discard; Idle -> [1] q;
         t :: ARPTable;
         s :: IP6NDSolicitor(fd00::1, 2:0:0:0:0:1); Idle -> s -> Discard; Idle -> [1] s;
         Idle -> w :: EtherSwitch -> Discard;",
    );
    let [mut addresses, mut addresses6] = [String::new(), String::new()];
    for n in 0..1000u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a01_0000 + 997 * n % 1000);
        for table in ["q", "t"] {
            let value = format!("{address} 2:0:0:0:1:{:x}", n % 256);
            router.write_handler(&format!("{table}.insert"), &value).unwrap();
        }
        addresses += &format!("{address}\n");
        router.write_handler("s.insert", &format!("fd00::1:{n:x} 2:0:0:0:0:2")).unwrap();
        addresses6 += &format!("fd00::1:{n:x}\n");
        let mut frame = vec![2; 60];
        frame[8..12].copy_from_slice(&(n * 7919).to_be_bytes());
        let node = chain.graph.find("w").expect("a switch");
        let mut batch = net::Batch::new();
        batch.push(router.core().pool.packet(&frame));
        router.push(ir::Port { node, port: 0 }, batch);
    }
    are_listed_in_slices(&mut router, &["q.table", "t.table", "s.table", "w.table"]);
    // All at one time.
    for (table, addresses) in [("q", &addresses), ("t", &addresses), ("s", &addresses6)] {
        let text = router.read_handler(&format!("{table}.table")).unwrap();
        let shown: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        let mut expected: Vec<&str> = addresses.lines().collect();
        expected.sort_by_key(|address| format!("{address} "));
        assert_eq!(shown, expected, "{table}");
    }
    let switch = router.read_handler("w.table").unwrap();
    let ports: Vec<&str> = switch.lines().collect();
    assert!(ports.len() == 1000 && ports.is_sorted(), "{switch}");
}

#[test]
fn rules_and_configurations_are_listed_in_slices() {
    let rule =
        |n: usize| format!("allow src host 10.0.{}.{} && tcp dst port {n}", n / 256, n % 256);
    let rules: Vec<String> = (0..2000).map(rule).collect();
    let chain = format!(
        "Idle -> f :: IPFilter(ACTION drop, {}) -> Discard;
         Idle -> r :: StaticIPLookup({}) -> Discard;",
        rules.join(", "),
        (0..2000)
            .map(|n| format!("10.{}.{}.0/24 0", n / 256, n % 256))
            .collect::<Vec<_>>()
            .join(", "),
    );
    let mut router = started(&chain).router;
    are_listed_in_slices(&mut router, &["f.rules", "f.program", "r.table"]);
    are_shared(&mut router, &["f.config", "r.config"]);
    assert_eq!(
        router.read_handler("f.config").unwrap(),
        format!("ACTION drop, {}", rules.join(", "))
    );
    // Once a rule was changed, the configuration is put together of rules.
    router.write_handler("f.rule_insert", "1 deny udp").unwrap();
    are_listed_in_slices(&mut router, &["f.rules", "f.program", "f.config"]);
    let config = format!("ACTION drop, deny udp, {}", rules.join(", "));
    assert_eq!(router.read_handler("f.config").unwrap(), config);
    assert!(
        router
            .read_handler("f.rules")
            .unwrap()
            .starts_with(&format!("1 deny udp\n2 {}\n", rules[0]))
    );
    assert!(router.read_handler("f.program").unwrap().ends_with("drop\t(all others)\n"));
}
