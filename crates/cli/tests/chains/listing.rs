//! What handlers list is read slice by slice, and packets pass in between.

use std::path::Path as Folder;

use dataplane::io::{Binding, Bindings};
use dataplane::{Reading, Router};
use elements::listing::{Record, SLICE, Slice, render};
use engine::session::Path;

use crate::support::{start, start_bound};

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
                    Record::Row(..) => 0,
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
