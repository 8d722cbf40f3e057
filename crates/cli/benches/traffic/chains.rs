//! The chains: routers, translators, an access list, a load balancer.

use std::fmt::Write as _;

use crate::workload::Workload;

/// Routers and translators as `bench-chains` of the shared data has them.
/// `R` routes 20.0.0.0/16 to 20.9.0.0/16, `RI` everything.
const FUNCTIONS: &str = "
elementclass R { $ip |
  input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24) -> GetIPAddress(16)
    -> rt :: RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 0, 20.2.0.0/16 0, 20.3.0.0/16 0, 20.4.0.0/16 0,
                           20.5.0.0/16 0, 20.6.0.0/16 0, 20.7.0.0/16 0, 20.8.0.0/16 0, 20.9.0.0/16 0);
  rt[0] -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc($ip) -> fr :: IPFragmenter(1500)
        -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> output;
  dt[1] -> ICMPError($ip, timeexceeded) -> Discard;
  fr[1] -> ICMPError($ip, unreachable, needfrag) -> Discard;
}
elementclass RI { $ip |
  input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24) -> GetIPAddress(16)
    -> rt :: RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 0, 20.0.0.0/8 0, 40.0.0.0/8 0, 60.0.0.0/8 0, 80.0.0.0/8 0,
                           100.0.0.0/8 0, 120.0.0.0/8 0, 160.0.0.0/8 0, 200.0.0.0/8 0);
  rt[0] -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc($ip) -> fr :: IPFragmenter(1500)
        -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> output;
  dt[1] -> ICMPError($ip, timeexceeded) -> Discard;
  fr[1] -> ICMPError($ip, unreachable, needfrag) -> Discard;
}
elementclass N { $ip, $timeout, $guarantee |
  input -> Strip(14) -> CheckIPHeader
    -> rw :: IPRewriter(pattern $ip 1024-65535 - - 0 1, UDP_TIMEOUT $timeout,
                        UDP_STREAMING_TIMEOUT $timeout, UDP_GUARANTEE $guarantee);
  rw[0] -> EtherEncap(0x0800, 02:00:00:01:01:01, 02:00:00:01:01:02) -> output;
  rw[1] -> Discard;
}
";

/// A chain of network functions.
pub(crate) struct Chain {
    pub(crate) name: &'static str,
    /// How many tables of flows a packet passes.
    pub(crate) tables: u64,
    parts: &'static [Part],
}

#[derive(Clone, Copy)]
enum Part {
    Router,
    Napt,
    /// An access list of a thousand rules.
    List,
    /// Four translators beside each other, chosen by the source address.
    Homes,
    /// A load balancer in front of 128 servers.
    Balancer,
}

use Part::{Balancer, Homes, List, Napt, Router};

/// Chains, the shortest first.
pub(crate) const CHAINS: [Chain; 10] = [
    Chain { name: "R1", tables: 0, parts: &[Router] },
    Chain { name: "R4", tables: 0, parts: &[Router; 4] },
    Chain { name: "N1", tables: 1, parts: &[Napt] },
    Chain { name: "N2", tables: 2, parts: &[Napt; 2] },
    Chain { name: "N10", tables: 10, parts: &[Napt; 10] },
    Chain { name: "R1-N1", tables: 1, parts: &[Router, Napt] },
    Chain { name: "R4-N2", tables: 2, parts: &[Router, Router, Router, Router, Napt, Napt] },
    Chain { name: "ACL-R-N", tables: 1, parts: &[List, Router, Napt] },
    Chain { name: "nested-NATs", tables: 2, parts: &[Homes, Napt] },
    Chain { name: "LB-N", tables: 2, parts: &[Balancer, Napt] },
];

/// Bare forwarding.
pub(crate) const BARE: Chain = Chain { name: "bare", tables: 0, parts: &[] };

impl Chain {
    /// Its configuration for packets of a workload.
    pub(crate) fn text(&self, workload: &Workload, burst: usize) -> String {
        let router = if workload.any_destination { "RI" } else { "R" };
        // Click's defaults, or flows that are soon forgotten.
        let lifetime = if workload.short_lived { "1, 1" } else { "300, 5" };
        let mut text = FUNCTIONS.to_owned();
        let mut chain = String::new();
        for (at, part) in self.parts.iter().enumerate() {
            let i = at + 1;
            let _ = match part {
                Router => write!(chain, " -> {router}(172.16.{i}.1)"),
                Napt => write!(chain, " -> N(30.0.{i}.1, {lifetime})"),
                List => {
                    let rules = rules();
                    let _ = writeln!(
                        text,
                        "elementclass F {{ input -> Strip(14) -> CheckIPHeader -> IPFilter({rules}) -> EtherEncap(0x0800, 02:00:00:02:01:01, 02:00:00:02:01:02) -> output; }}"
                    );
                    write!(chain, " -> F")
                }
                Homes => {
                    let _ = writeln!(
                        text,
                        "elementclass Homes {{ input -> c :: Classifier(29/00%03, 29/01%03, 29/02%03, -);
                           c[0] -> N(100.64.0.1, {lifetime}) -> output; c[1] -> N(100.64.0.2, {lifetime}) -> output;
                           c[2] -> N(100.64.0.3, {lifetime}) -> output; c[3] -> N(100.64.0.4, {lifetime}) -> output; }}"
                    );
                    write!(chain, " -> Homes")
                }
                Balancer => {
                    let server = |s: u32| format!("- - 20.{}.{}.9 - 0 1", s % 10, s / 10);
                    let servers: Vec<String> = (0..128).map(server).collect();
                    let (servers, (timeout, guarantee)) =
                        (servers.join(", "), lifetime.split_once(", ").expect("two"));
                    let _ = writeln!(
                        text,
                        "elementclass B {{ input -> Strip(14) -> CheckIPHeader -> lb :: IPRewriter(m, UDP_TIMEOUT {timeout},
                             UDP_STREAMING_TIMEOUT {timeout}, UDP_GUARANTEE {guarantee});
                           m :: RoundRobinIPMapper({servers});
                           lb[0] -> EtherEncap(0x0800, 02:00:00:03:01:01, 02:00:00:03:01:02) -> output; lb[1] -> Discard; }}"
                    );
                    write!(chain, " -> B")
                }
            };
        }
        let _ = writeln!(text, "FromDump(in, BURST {burst}){chain} -> ToDump(out);");
        text
    }
}

/// A thousand rules: for each /23 of the servers what may reach it, between rules for others.
fn rules() -> String {
    let mut rules = Vec::new();
    for i in 0..500 {
        let (network, part) = (i % 10, i / 10 * 2);
        rules.push(format!(
            "deny src net 192.168.{}.0/24 && dst net 20.{network}.{part}.0/24 && tcp dst port {}",
            i % 256,
            1000 + i
        ));
        rules.push(format!(
            "allow src net 10.0.0.0/8 && dst net 20.{network}.{part}.0/23 && dst port 443"
        ));
    }
    rules.push("allow all".into());
    rules.join(", ")
}
