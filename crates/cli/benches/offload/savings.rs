//! What cores do for the chains of SNF's figures 7.14 to 7.16, of Metron's figures 6 and 7 and of the examples, alone and behind devices.

use lab::front::Front;

use crate::cases::{Cases, RULES};
use crate::cores::{Behind, Case, Loads, measure};
use crate::paper::{Page, thousands};
use crate::support::Spread;

/// How much is measured.
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// Packets of a chain in a round.
    pub(crate) packets: u64,
}

const FRONTS: [Front; 2] =
    [Front { target: "ovs", trusting: true }, Front { target: "ebpf", trusting: false }];

/// Bytes of frames.
const SIZE: usize = 64;

const EXAMPLES: [(&str, &str, &str); 7] = [
    ("ten-routers", "lan.pcap.gz", "lan.pcap.gz"),
    ("snf-motivating", "lan.pcap.gz", "lan.pcap.gz"),
    ("nested-nats", "lan.pcap.gz", "lan.pcap.gz"),
    ("isp-edge", "isp-customers.pcap.gz", "isp-customers.pcap.gz"),
    ("published/metron-firewall-dpi", "../lan.pcap.gz", "lan.pcap.gz"),
    ("published/lemur-subchain-7", "../isp-customers.pcap.gz", "isp-customers.pcap.gz"),
    ("published/quadrant-chain-1", "../isp-customers.pcap.gz", "isp-customers.pcap.gz"),
];

fn ratio(samples: &[f64], to: &[f64]) -> String {
    let Spread { median, least, greatest } = Spread::of_ratios(samples, to);
    format!("{median:.2} ({least:.2}–{greatest:.2})")
}

fn share(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// What cores do behind a device: the share of frames that they see, their time, and how many times more it is without the device.
fn cells(whole: &[f64], behind: Option<&Behind>) -> [String; 3] {
    let Some(behind) = behind else { return ["not divided".into(), "–".into(), "–".into()] };
    let times = behind.times();
    let mut seen = share(1.0 - behind.done);
    if behind.decided > 0.0 {
        seen += &format!(", {} decided", share(behind.decided));
    }
    if behind.done < 1.0 {
        seen += &format!(", {:.1} in a row", behind.in_a_row);
    }
    if !behind.is_proven {
        seen += ", not proven";
    }
    match times.is_empty() {
        true => [seen, "no core".into(), "–".into()],
        false => [seen, Spread::of(times.iter().copied()).to_string(), ratio(whole, &times)],
    }
}

fn table(page: &mut Page, cases: &[Case], loads: &[Loads]) {
    page.head(&[
        "chain",
        "a core alone, ns",
        "switch: cores see",
        "a core behind it, ns",
        "alone / behind",
        "XDP: cores see",
        "a core behind it, ns",
        "alone / behind",
        "the program, ns",
    ]);
    for (case, loads) in cases.iter().zip(loads) {
        let whole = &loads.whole;
        let [switch, xdp] = [0, 1].map(|at| loads.behind.get(at).and_then(Option::as_ref));
        let program =
            xdp.map_or("–".into(), |xdp| Spread::of(xdp.program.iter().copied()).to_string());
        let cells = [
            vec![case.name.clone(), whole.time().to_string()],
            cells(&whole.times, switch).to_vec(),
            cells(&whole.times, xdp).to_vec(),
            vec![program],
        ];
        page.row(cells.concat());
    }
}

/// What a burst takes.
fn bursts(page: &mut Page, cases: &[Case], loads: &[Loads]) {
    page.put(format_args!(
        "\nMicroseconds that a core takes for a burst of 32 frames, at full load: median / 99th percentile of a round, median of rounds.\n"
    ));
    page.head(&["chain", "alone", "behind the switch", "behind XDP"]);
    for (case, loads) in cases.iter().zip(loads) {
        let said = |load: &crate::cores::Load| {
            let [median, late] = [0, 1].map(|at| load.burst(at).median / 1e3);
            format!("{median:.2} / {late:.2}")
        };
        let behind = loads.behind.iter().map(|behind| {
            let load = behind.as_ref().and_then(|behind| behind.load.as_ref());
            load.map_or("–".into(), said)
        });
        page.row([case.name.clone(), said(&loads.whole)].into_iter().chain(behind));
    }
}

/// By round: a core's times alone, and behind each device.
type Times<'a> = (&'a [f64], Vec<Option<Vec<f64>>>);

fn times<'a>(cases: &[Case], loads: &'a [Loads], name: &str) -> Option<Times<'a>> {
    let at = cases.iter().position(|case| case.name == name)?;
    let behind = loads[at].behind.iter().map(|of| of.as_ref().map(Behind::times));
    Some((&loads[at].whole.times, behind.collect()))
}

fn snf(cases: &Cases<'_>, effort: &Effort) -> Page {
    let mut chains = vec![cases.forwarding(SIZE)];
    chains.extend(RULES.map(|rules| cases.classifier(rules, SIZE)));
    chains.extend(RULES.map(|rules| cases.isp(rules, SIZE)));
    let loads = measure(&chains, &FRONTS, effort.rounds, effort.packets);
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
SNF's chains of an ISP: an access list, a router and a NAPT. Its switch (NoviFlow 1132) classifies, and four servers modify. *classifier* is what the
chains read, and frames leave by it (figure 7.14); *isp* is the whole (figure 7.16). What remains of it behind a device is the
modification (figure 7.15). The lists have {}, {} and {} rules (SNF's 251, 713 and 8,550), and traffic reaches each rule.

{}
",
        RULES[0],
        RULES[1],
        thousands(RULES[2].into()),
        method(effort)
    ));
    table(&mut page, &chains, &loads);
    bursts(&mut page, &chains, &loads);
    page.put(format_args!(""));
    page.head(&["8,500 rules to 250", "a core alone", "behind the switch", "behind XDP"]);
    for kind in ["classifier", "isp"] {
        let of = |rules: u32| times(&chains, &loads, &format!("{kind} {rules}"));
        let (Some(small), Some(large)) = (of(RULES[0]), of(RULES[2])) else { continue };
        let behind = small.1.iter().zip(&large.1).map(|pair| match pair {
            (Some(small), Some(large)) if !small.is_empty() && !large.is_empty() => {
                ratio(large, small)
            }
            _ => "–".into(),
        });
        let row = [kind.to_string(), ratio(large.0, small.0)];
        page.row(row.into_iter().chain(behind));
    }
    page.put(format_args!(
        "
The thesis: with the switch, the chain is as fast at 8,550 rules as at 251, and about twice as fast as in software for 64-byte frames. The switch as classifier
alone is 22 to 48 % faster than software at 8,550 rules, and not faster with fewer. Its 99th percentiles stay below 800 µs. Software here
remembers whole flows, so that the length of a list matters less.

What is left of *isp* behind a device is the NAPT. At 250 and 700 rules it takes a core a fifth to a third less than the whole chain, and at 8,500 about as long: the
spread is wide, as the whole takes from 209 to 518 ns in different rounds. Taking tags off and putting others on costs besides."
    ));
    page
}

fn firewall(cases: &Cases<'_>, effort: &Effort) -> Page {
    let chains = [
        cases.forwarding(SIZE),
        cases.firewall(SIZE),
        cases.firewall_then_forwarding(SIZE),
        cases.firewall_and_dpi(),
    ];
    let loads = measure(&chains, &FRONTS, effort.rounds, effort.packets);
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
A firewall of 1,000 rules (ClassBench, acl1; Metron's are of a campus), alone, with a core behind that forwards what passes, as in Metron's experiment, and with DPI
behind: Snort's community rules, and frames of 512 bytes whose payloads are random text. Traffic reaches each rule that others do not shadow.

{}
",
        method(effort)
    ));
    table(&mut page, &chains, &loads);
    bursts(&mut page, &chains, &loads);
    page.put(format_args!(
        "
Metron: with the rules on the switch one core forwards 40 Gbit/s, where OpenBox takes 9 cores and the emulated E2 11. With DPI, 10 cores do 40 Gbit/s, and the others
at most 25 with 16. Its latency is 2.9 to 4.7 times lower with one core for the firewall alone. Here a core is spared the firewall altogether if nothing
is behind it (*firewall 64*). A core that only forwards what passes takes longer than one that does all: the list takes it less than taking tags off and putting them on.
DPI is by far the most of that chain, and is done on cores in both."
    ));
    page
}

fn stateful(cases: &Cases<'_>, effort: &Effort) -> Page {
    let chains = [cases.forwarding(SIZE), cases.stateful()];
    let loads = measure(&chains, &FRONTS, effort.rounds, effort.packets);
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
A router with 3,117 routes, one for each destination in Metron's trace (here, addresses of a full routing table), a NAPT, and a balancer of two servers; 10,000 flows, 64-byte
frames. A device finds the route.

{}
",
        method(effort)
    ));
    table(&mut page, &chains, &loads);
    bursts(&mut page, &chains, &loads);
    page.put(format_args!(
        "
| figure 7b | here |
|---|---|
| Metron | *behind* in the table: the route is known, and the tag says which worker's packet it is |
| without hardware offloading | *alone* |
| without hardware dispatching | a core more, which does nothing else and takes half a microsecond a frame: [dispatch](../perf/dispatch.md) |

Metron reaches what its server forwards (75 Gbit/s) with two cores; OpenBox gains 5.4 Gbit/s with each core up to 67, the emulated E2 4.9 up to 53. The
times above are those of one core. Most of this chain is flows, which a core looks for in either case: it saves little."
    ));
    page
}

fn examples(cases: &Cases<'_>, effort: &Effort) -> Page {
    let chains = EXAMPLES.map(|example| cases.example(example));
    let loads = measure(&chains, &FRONTS, effort.rounds, effort.packets);
    let mut page = Page::beginning(String::new());
    page.put(format_args!(
        "
What a device saves cores of each example, for frames of the capture that it reads from its customers' or hosts' side. No core gave leases, so the first NAPT
or balancer of a chain is a core's; with [leases](howto-offload.md#flows-that-cores-know), flows that are known end in XDP.

{}
",
        method(effort)
    ));
    table(&mut page, &chains, &loads);
    page.put(format_args!(
        "
Gallium (SIGCOMM 2020), which divides middleboxes between a programmable switch and a server, states that 21 to 79 % of cycles are saved, and 31 % of latency. Chains without state
save all of a core's time here (*quadrant-chain-1*), or most (*lemur-subchain-7*). Chains whose packets come to NAPTs save nothing."
    ));
    page
}

/// How times were measured.
fn method(effort: &Effort) -> String {
    format!(
        "Times are CPU nanoseconds a frame that comes in, of one core in memory: frames are copied into buffers, go through the chain in bursts of 32, and are given back. Programs and elements take bursts, whichever are faster, as in `catena run`. \
         Behind a device, cores get the frames that it does not end, with the tag of the place where it stopped; taking tags off and putting them on counts. {} rounds by turns of {} packets; medians, \
         with the least and the greatest. The switch is OpenFlow with Open vSwitch's extensions, trusted; XDP tests all itself. *The program* is the time of the XDP program by test runs in the \
         kernel, without that of an empty one. *In a row* are frames that come to cores with one tag, on the average; *decided* those for which cores act without deciding.",
        effort.rounds,
        thousands(effort.packets)
    )
}

/// All sections.
pub(crate) fn sections(cases: &Cases<'_>, effort: &Effort) -> Vec<(&'static str, Page)> {
    vec![
        ("SNF's figures 7.14 to 7.16: access lists on a switch", snf(cases, effort)),
        ("Metron's figure 6: a firewall of 1,000 rules, and DPI", firewall(cases, effort)),
        ("Metron's figure 7: 3,117 routes, NAPT and balancer", stateful(cases, effort)),
        ("What is saved of each example", examples(cases, effort)),
    ]
}
