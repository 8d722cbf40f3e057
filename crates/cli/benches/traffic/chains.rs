//! The chains: routers, translators, an access list, a load balancer; and functions of the library.

use std::fmt::Write as _;

use crate::workload::Workload;

/// Network functions with what comes from clients at input 0, and replies at input 1 where there are any. Routers and translators
/// are those of the reference measurements. `R` routes 20.0.0.0/16 to 20.9.0.0/16, `RI` everything.
const FUNCTIONS: &str = "
elementclass Forward { $ip |
  input -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc($ip) -> fr :: IPFragmenter(1500)
        -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> output;
  dt[1] -> ICMPError($ip, timeexceeded) -> Discard;
  fr[1] -> ICMPError($ip, unreachable, needfrag) -> Discard;
}
elementclass R { $ip |
  input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24, CHECKSUM true) -> GetIPAddress(16)
    -> RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 0, 20.2.0.0/16 0, 20.3.0.0/16 0, 20.4.0.0/16 0,
                     20.5.0.0/16 0, 20.6.0.0/16 0, 20.7.0.0/16 0, 20.8.0.0/16 0, 20.9.0.0/16 0)
    -> Forward($ip) -> output;
}
elementclass RI { $ip |
  input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24, CHECKSUM true) -> GetIPAddress(16)
    -> RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 0, 20.0.0.0/8 0, 40.0.0.0/8 0, 60.0.0.0/8 0, 80.0.0.0/8 0,
                     100.0.0.0/8 0, 120.0.0.0/8 0, 160.0.0.0/8 0, 200.0.0.0/8 0)
    -> Forward($ip) -> output;
}
elementclass RBoth { $ip |
  input[0] -> Strip(14) -> check :: CheckIPHeader(INTERFACES $ip/24, CHECKSUM true) -> GetIPAddress(16)
    -> rt :: RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 0, 20.2.0.0/16 0, 20.3.0.0/16 0, 20.4.0.0/16 0,
                           20.5.0.0/16 0, 20.6.0.0/16 0, 20.7.0.0/16 0, 20.8.0.0/16 0, 20.9.0.0/16 0,
                           10.0.0.0/8 1, 30.0.0.0/8 1, 100.64.0.0/10 1);
  input[1] -> Strip(14) -> check;
  rt[0] -> Forward($ip) -> [0] output;
  rt[1] -> Forward($ip) -> [1] output;
}
elementclass N { $ip, $timeout, $guarantee |
  input -> Strip(14) -> CheckIPHeader(CHECKSUM true)
    -> rw :: IPRewriter(pattern $ip 1024-65535 - - 0 1, MAPPING_CAPACITY 4194304, UDP_TIMEOUT $timeout,
                        UDP_STREAMING_TIMEOUT $timeout, UDP_GUARANTEE $guarantee);
  rw[0] -> EtherEncap(0x0800, 02:00:00:01:01:01, 02:00:00:01:01:02) -> output;
  rw[1] -> Discard;
}
elementclass NBoth { $ip, $timeout, $guarantee |
  rw :: IPRewriter(pattern $ip 1024-65535 - - 0 1, drop, MAPPING_CAPACITY 4194304, UDP_TIMEOUT $timeout,
                   UDP_STREAMING_TIMEOUT $timeout, UDP_GUARANTEE $guarantee);
  input[0] -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> [0] rw;
  input[1] -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> [1] rw;
  rw[0] -> EtherEncap(0x0800, 02:00:00:01:01:01, 02:00:00:01:01:02) -> [0] output;
  rw[1] -> EtherEncap(0x0800, 02:00:00:01:02:01, 02:00:00:01:02:02) -> [1] output;
}
elementclass T { $i |
  input -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> UDPIPEncap(172.17.$i.1, 4789, 172.17.$i.2, 4789)
    -> EtherEncap(0x0800, 02:00:00:04:01:01, 02:00:00:04:01:02) -> output;
}
elementclass M { $i |
  input -> t :: Tee -> output;
  t[1] -> Strip(14) -> EtherVLANEncap(0x0800, 02:00:00:05:01:01, 02:00:00:05:01:02, $i) -> ToDump(mirror);
}
elementclass P {
  input -> s :: BandwidthRatedSplitter(100GBps) -> m :: Meter(100000000) -> output;
  s[1] -> Discard; m[1] -> Discard;
}
elementclass PBoth { input[0] -> P -> [0] output; input[1] -> [1] output; }
elementclass TBoth { $i | input[0] -> T($i) -> [0] output; input[1] -> [1] output; }
elementclass MBoth { $i | input[0] -> M($i) -> [0] output; input[1] -> [1] output; }
elementclass Homes { $timeout, $guarantee |
  input -> c :: Classifier(29/00%03, 29/01%03, 29/02%03, -);
  c[0] -> N(100.64.0.1, $timeout, $guarantee) -> output; c[1] -> N(100.64.0.2, $timeout, $guarantee) -> output;
  c[2] -> N(100.64.0.3, $timeout, $guarantee) -> output; c[3] -> N(100.64.0.4, $timeout, $guarantee) -> output;
}
elementclass HomesBoth { $timeout, $guarantee |
  h0 :: NBoth(100.64.0.1, $timeout, $guarantee); h1 :: NBoth(100.64.0.2, $timeout, $guarantee);
  h2 :: NBoth(100.64.0.3, $timeout, $guarantee); h3 :: NBoth(100.64.0.4, $timeout, $guarantee);
  input[0] -> c :: Classifier(29/00%03, 29/01%03, 29/02%03, -);
  c[0] -> [0] h0 [0] -> [0] output; c[1] -> [0] h1 [0] -> [0] output;
  c[2] -> [0] h2 [0] -> [0] output; c[3] -> [0] h3 [0] -> [0] output;
  input[1] -> r :: Classifier(30/64400001, 30/64400002, 30/64400003, 30/64400004);
  r[0] -> [1] h0 [1] -> [1] output; r[1] -> [1] h1 [1] -> [1] output;
  r[2] -> [1] h2 [1] -> [1] output; r[3] -> [1] h3 [1] -> [1] output;
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
    /// A tunnel in UDP, which has no return path.
    Tunnel,
    /// A copy of each packet to a probe.
    Mirror,
    /// A token bucket and a meter, which let all pass.
    Policer,
    /// A function of the library.
    Function(&'static Function),
}

/// A function of the library, which stands on one path or between two.
struct Function {
    class: &'static str,
    /// Its arguments; `SERVERS` stands for 128 of them.
    arguments: &'static str,
    has_return_path: bool,
}

use Part::{Balancer, Homes, List, Mirror, Napt, Policer, Router, Tunnel};

const fn one_path(class: &'static str, arguments: &'static str) -> Function {
    Function { class, arguments, has_return_path: false }
}

const fn two_paths(class: &'static str, arguments: &'static str) -> Function {
    Function { class, arguments, has_return_path: true }
}

const FIREWALL: Part = Part::Function(&two_paths("Firewall", "allow all"));
const FIREWALL_FLOWS: Part = Part::Function(&two_paths("Firewall", "allow all, WINDOWS false"));
const NAPT: Part = Part::Function(&two_paths("NAPT", "30.0.1.1"));
const LB: Part = Part::Function(&two_paths("LB", "SERVERS, POLICY maglev"));
const MONITOR: Part = Part::Function(&one_path("Monitor", ""));
const MONITOR_FLOWS: Part = Part::Function(&one_path("Monitor", "TOP 20"));
const LIMITER: Part = Part::Function(&one_path("Limiter", "100GBps"));
const DETECTOR: Part = Part::Function(&one_path("DDoSDetect", "SYN_RATE 1000000000"));
const PROXY: Part = Part::Function(&two_paths("DDoSDetect", "SYN_RATE 1000000000"));

/// All chains.
pub(crate) const CHAINS: [Chain; 28] = [
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
    Chain { name: "R1-T", tables: 0, parts: &[Router, Tunnel] },
    Chain { name: "R1-M", tables: 0, parts: &[Router, Mirror] },
    Chain { name: "R4-M-T", tables: 0, parts: &[Router, Router, Router, Router, Mirror, Tunnel] },
    Chain { name: "R1-P", tables: 0, parts: &[Router, Policer] },
    Chain { name: "R4-P-T", tables: 0, parts: &[Router, Router, Router, Router, Policer, Tunnel] },
    Chain {
        name: "R4-P-M-T",
        tables: 0,
        parts: &[Router, Router, Router, Router, Policer, Mirror, Tunnel],
    },
    Chain { name: "R1-P-N1", tables: 1, parts: &[Router, Policer, Napt] },
    Chain { name: "list", tables: 0, parts: &[List] },
    Chain { name: "napt", tables: 1, parts: &[NAPT] },
    Chain { name: "firewall", tables: 1, parts: &[FIREWALL] },
    Chain { name: "firewall-flows", tables: 1, parts: &[FIREWALL_FLOWS] },
    Chain { name: "lb", tables: 1, parts: &[LB] },
    Chain { name: "monitor", tables: 0, parts: &[MONITOR] },
    Chain { name: "monitor-flows", tables: 0, parts: &[MONITOR_FLOWS] },
    Chain { name: "limiter", tables: 0, parts: &[LIMITER] },
    Chain { name: "ddos-detect", tables: 0, parts: &[DETECTOR] },
    Chain { name: "syn-proxy", tables: 0, parts: &[PROXY] },
    // What operators put at the edge of a network.
    Chain { name: "edge", tables: 3, parts: &[List, FIREWALL_FLOWS, NAPT, LB, MONITOR, LIMITER] },
];

/// Bare forwarding.
pub(crate) const BARE: Chain = Chain { name: "bare", tables: 0, parts: &[] };

impl Chain {
    /// Its configuration for packets of a workload, from a source to a sink; of replies, from and to devices.
    pub(crate) fn text(&self, workload: &Workload, source: &str, sink: &str) -> String {
        let both = if workload.replies { "Both" } else { "" };
        let router = if workload.any_destination { "RI" } else { "R" };
        // Click's defaults, or flows that are soon forgotten.
        let lifetime = if workload.short_lived { "1, 1" } else { "300, 5" };
        let mut text = format!("require(nf);{FUNCTIONS}");
        let (mut there, mut back) = (source.to_owned(), "ToDump(back-out)".to_owned());
        for (at, part) in self.parts.iter().enumerate() {
            let i = at + 1;
            let mut returns = true;
            let function = match part {
                Router => format!("{router}{both}(172.16.{i}.1)"),
                Napt => format!("N{both}(30.0.{i}.1, {lifetime})"),
                List => list(&mut text, workload.replies),
                Homes => format!("Homes{both}({lifetime})"),
                Tunnel => format!("T{both}({i})"),
                Mirror => format!("M{both}({i})"),
                Policer => format!("P{both}"),
                Balancer => balancer(&mut text, workload.replies) + &format!("({lifetime})"),
                Part::Function(function) => {
                    returns = function.has_return_path;
                    function.text()
                }
            };
            let _ = writeln!(text, "f{i} :: {function};");
            if matches!(part, Part::Function(_)) && returns && !workload.replies {
                let _ = writeln!(text, "Idle -> [1] f{i}; f{i}[1] -> Discard;");
            }
            let _ = write!(there, " -> [0] f{i} [0]");
            if returns {
                back = format!("[1] f{i} [1] -> {back}");
            }
        }
        let _ = writeln!(text, "{there} -> {sink};");
        if workload.replies {
            let _ = writeln!(text, "FromDump(back-in, BURST 32) -> {back};");
        }
        text
    }
}

impl Function {
    fn text(&self) -> String {
        let servers = (0..128).map(server).collect::<Vec<_>>().join(" ");
        let arguments = self.arguments.replace("SERVERS", &servers);
        format!("{}({arguments})", self.class)
    }
}

/// One of 128 servers.
fn server(number: u32) -> String {
    format!("20.{}.{}.9", number % 10, number / 10)
}

/// Adds an access list.
fn list(text: &mut String, replies: bool) -> String {
    let rules = rules();
    let back = if replies { "input[1] -> [1] output;" } else { "" };
    let _ = writeln!(
        text,
        "elementclass F {{ input -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> IPFilter({rules})
           -> EtherEncap(0x0800, 02:00:00:02:01:01, 02:00:00:02:01:02) -> output; {back} }}"
    );
    "F".into()
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

/// Adds a load balancer.
fn balancer(text: &mut String, replies: bool) -> String {
    let pattern = |number| format!("- - {} - 0 1", server(number));
    let servers = (0..128).map(pattern).collect::<Vec<_>>().join(", ");
    let (input, back) = match replies {
        false => ("m", "lb[1] -> Discard;"),
        true => (
            "m, drop",
            "input[1] -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> [1] lb;
             lb[1] -> EtherEncap(0x0800, 02:00:00:03:02:01, 02:00:00:03:02:02) -> [1] output;",
        ),
    };
    let _ = writeln!(
        text,
        "elementclass B {{ $timeout, $guarantee | m :: RoundRobinIPMapper({servers});
           input -> Strip(14) -> CheckIPHeader(CHECKSUM true) -> lb :: IPRewriter({input}, MAPPING_CAPACITY 4194304,
             UDP_TIMEOUT $timeout, UDP_STREAMING_TIMEOUT $timeout, UDP_GUARANTEE $guarantee);
           lb[0] -> EtherEncap(0x0800, 02:00:00:03:01:01, 02:00:00:03:01:02) -> output; {back} }}"
    );
    "B".into()
}
