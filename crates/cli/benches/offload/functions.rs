//! Metron's table 1: which network functions devices can be given, found by dividing the examples of the library.

use std::path::Path;

use compiler::library::{FUNCTIONS, find};
use lab::divided::{Extent, Loaded, Taken};
use lab::front::Front;

use crate::CATENA;
use crate::paper::Page;

pub(crate) const TITLE: &str = "Metron's table 1: what devices can be given";

/// Metron's rows: its network functions, whether hardware can be given them, and the library's.
const METRON: [(&str, &str, &[&str]); 12] = [
    ("L2/L3 switch, router", "yes", &["Router", "IPv4Fwd", "IPv6Fwd"]),
    ("firewall, access control list", "hybrid", &["ACL", "Firewall"]),
    ("carrier-grade NA(P)T, IPv4 to IPv6", "no", &["NAPT", "NAT64", "NPTv6"]),
    ("broadband remote access server", "partially", &["PPPoETunnel", "PPPoEDetunnel", "Limiter"]),
    ("evolved packet core", "partially", &["GTPTunnel", "GTPDetunnel"]),
    ("intrusion detection and prevention", "partially", &["UrlFilter"]),
    ("load balancer", "hybrid", &["LB", "DirectLB"]),
    ("flow monitor", "yes", &["Monitor", "Mirror"]),
    ("DDoS detection and prevention", "yes", &["DDoSDetect"]),
    ("congestion control (RED, ECN)", "yes", &["AQM"]),
    ("deep packet inspection", "no", &["DPI"]),
    ("IP security, virtual private network", "yes", &["ESPTunnel", "ESPDetunnel"]),
];

/// Reasons that are shown of a function.
const REASONS: usize = 3;

/// By target: what devices do where nothing is trusted of frames, and where all is that can be.
type Row = Vec<[Option<Taken>; 2]>;

fn row(name: &str, folder: &Path) -> Row {
    let function = find(name).unwrap_or_else(|| panic!("the library has no {name}"));
    let loaded = Loaded::example(CATENA, function, folder);
    let taken = |target: &'static str| {
        let front = |trusting| Front { target, trusting };
        [false, true].map(|trusting| Some(loaded.taken(&loaded.divide(front(trusting))?)))
    };
    codegen::targets().iter().map(|target| taken(target.label())).collect()
}

fn cell(taken: &[Option<Taken>; 2]) -> String {
    let letter = |taken: &Option<Taken>| {
        taken.as_ref().map_or(Extent::Nothing, |taken| taken.extent).letter()
    };
    format!("{} {}", letter(&taken[0]), letter(&taken[1]))
}

/// Divides the examples of all functions, and writes what devices do of them.
pub(crate) fn section(folder: &Path) -> Page {
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
Metron's table 1 states which network functions hardware can be given. Here that is found by dividing the example of each function of the
[library](nfs.md) for each target. No device takes part and nothing is measured: the result is the same every time.

| | a device does of a function's classes |
|---|---|
| W | the whole: all end there |
| L | those of flows that a core gave a [lease](howto-offload.md#flows-that-cores-know) of, and others; a flow's first packets are a core's |
| P | part: some that leave the chain end there |
| D | decides: it drops packets and finds classes, but all that leaves comes from cores |
| – | nothing |

The first letter is for frames of which nothing is known; so `openflow`, which tests neither lengths nor checksums, ends no
class. The second one is for ports that are [trusted](howto-offload.md#what-a-core-still-asks) in all four things, which is
what Metron takes for granted. Left out are classes of rare packets: fragments, IP options, and what is not as a device takes for
granted.
"
    ));
    let targets: Vec<String> =
        codegen::targets().iter().map(|of| format!("`{}`", of.label())).collect();
    let heads = ["Metron's function", "Metron", "here"].map(String::from);
    page.head(&heads.into_iter().chain(targets).collect::<Vec<_>>());
    let mut all = Vec::new();
    let mut put = |page: &mut Page, [metron, says]: [&str; 2], name: &'static str| {
        eprintln!("  {name} …");
        let row = row(name, folder);
        let cells = [
            metron.to_string(),
            says.to_string(),
            format!("[{name}](nfs.md#{})", name.to_lowercase()),
        ];
        page.row(cells.into_iter().chain(row.iter().map(cell)));
        all.push((name, row));
    };
    for (metron, says, names) in METRON {
        for (at, name) in names.iter().enumerate() {
            let words = if at == 0 { [metron, says] } else { ["", ""] };
            put(&mut page, words, name);
        }
    }
    let is_named = |name: &str| METRON.iter().any(|(_, _, names)| names.contains(&name));
    for function in FUNCTIONS.iter().filter(|of| !is_named(of.name)) {
        put(&mut page, ["", ""], function.name);
    }
    page.put(format_args!(
        "
What is left to cores and why, for eBPF, which tests lengths and checksums itself. The three most frequent reasons are shown, with the number of
classes that they are about.
"
    ));
    page.head(&["function", "classes", "end there", "decided there", "what cores are for"]);
    let at = codegen::targets().iter().position(|of| of.label() == "ebpf");
    for (name, row) in &all {
        let Some(Some([Some(taken), _])) = at.map(|at| row.get(at)) else { continue };
        let mut why: Vec<_> = taken.why.iter().collect();
        why.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let said = why.iter().take(REASONS).map(|(why, count)| format!("{why} ({count})"));
        let said = said.collect::<Vec<_>>().join("; ");
        let numbers = [taken.all, taken.done, taken.decided].map(|n| n.to_string());
        let said = if said.is_empty() { "rare packets".into() } else { said };
        page.row([vec![(*name).to_string()], numbers.to_vec(), vec![said]].concat());
    }
    page.put(format_args!(
        "
Metron says *yes* of flow monitors, congestion control, and IPsec, as there are devices made for them. Targets here are given what programs express:
a `Monitor` that keeps flows, queues and ciphers stay on cores, behind a device that finds their packets. Metron says *no* of NAPT, as
it keeps state; XDP programs translate flows that a core leased to them. Functions that read payloads (DPI, encryption, deduplication) are *P*
for what passes them unread, such as ARP. Where Metron leaves all rules behind the first that a device does not take, only those stay here
whose packets it may take."
    ));
    page
}
