//! The experiments: which chains, which traffic, and what is measured.

use engine::session::Path as Execution;

use crate::support::{self, Chain, Data, RuleSet, Running, Spread, percentile};

/// Numbers of network functions in figure 7.7.
const LENGTHS: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// Frame sizes of figure 7.8, in bytes without FCS.
const SIZES: [u32; 7] = [60, 128, 256, 512, 800, 1024, 1500];
/// Frame sizes of figures 7.11 and 7.12.
const ISP_SIZES: [u32; 4] = [64, 128, 256, 1500];
/// Access lists of figures 7.11 and 7.12; the thesis has 251, 713 and 8,550 rules.
pub(crate) const RULES: [u32; 3] = [250, 700, 8500];
/// The family of those lists.
pub(crate) const FAMILY: &str = "acl1";
/// Ethernet addresses, which no chain looks at.
const MACS: &str = "02:00:00:00:01:01, 02:00:00:00:01:02";

/// How much is measured.
pub(crate) struct Effort {
    pub(crate) rounds: u32,
    /// Packets of a chain in a round.
    pub(crate) packets: u64,
}

/// Who carries the packets of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Elements, in a chain that does nothing or next to nothing, for comparison.
    Reference,
    /// Each element's native code.
    Elements,
    /// The program that the chain becomes.
    Synthesised,
}

/// What a chain's rounds came to.
pub(crate) struct Cell {
    /// Nanoseconds per packet, one of each round.
    pub(crate) times: Vec<f64>,
    /// Nanoseconds per burst, ascending, of each round.
    bursts: Vec<Vec<f64>>,
}

impl Cell {
    pub(crate) fn time(&self) -> Spread {
        Spread::of(self.times.iter().copied())
    }

    /// Gigabits of frames of this size per second.
    pub(crate) fn gigabits(&self, size: u32) -> Spread {
        Spread::of(self.times.iter().map(|t| f64::from(size) * 8.0 / t))
    }

    /// Millions of packets per second.
    pub(crate) fn megapackets(&self) -> Spread {
        Spread::of(self.times.iter().map(|t| 1e3 / t))
    }

    /// Percentiles 1, 25, 50, 75 and 99 of the time of a burst, in microseconds: the median round's.
    pub(crate) fn percentiles(&self) -> [f64; 5] {
        [0.01, 0.25, 0.5, 0.75, 0.99]
            .map(|p| Spread::of(self.bursts.iter().map(|b| percentile(b, p))).median / 1e3)
    }

    /// How much longer the 99th percentile of a round's bursts took than the median one.
    pub(crate) fn tail(&self) -> Spread {
        Spread::of(self.bursts.iter().map(|b| percentile(b, 0.99) / percentile(b, 0.5)))
    }
}

/// Measurements of one kind of chain.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) carrier: Carrier,
    /// One for each of the figure's numbers.
    pub(crate) cells: Vec<Cell>,
}

/// What a figure shows.
pub(crate) struct Figure {
    pub(crate) xs: Vec<u32>,
    pub(crate) series: Vec<Series>,
}

/// A series to measure: its name, who carries, and its chain for a number of the figure's.
struct Plan<'a>(String, Carrier, Box<dyn Fn(u32) -> Chain + 'a>);

fn plan<'a>(name: &str, carrier: Carrier, chain: impl Fn(u32) -> Chain + 'a) -> Plan<'a> {
    Plan(name.to_string(), carrier, Box::new(chain))
}

/// The same chains carried by elements and synthesised.
fn both<'a>(name: &str, chain: impl Fn(u32) -> Chain + Clone + 'a) -> [Plan<'a>; 2] {
    [
        plan(&format!("{name}, elements"), Carrier::Elements, chain.clone()),
        plan(&format!("{name}, synthesised"), Carrier::Synthesised, chain),
    ]
}

/// Measures every chain of a figure once in each round; bursts one by one too, if asked for.
fn measure(
    data: &Data,
    effort: &Effort,
    xs: &[u32],
    plans: Vec<Plan<'_>>,
    each_burst: bool,
) -> Figure {
    let start = |Plan(_, carrier, chain): &Plan<'_>, x: u32| {
        let path = match carrier {
            Carrier::Synthesised => Execution::Synthesised,
            Carrier::Reference | Carrier::Elements => Execution::Native,
        };
        (data.start(&chain(x), path), Vec::new())
    };
    let mut running: Vec<(Running, Vec<Vec<f64>>)> =
        plans.iter().flat_map(|plan| xs.iter().map(move |x| start(plan, *x))).collect();
    for _ in 0..effort.rounds {
        for (chain, bursts) in &mut running {
            chain.warm();
            chain.measure(effort.packets);
            if each_burst {
                let mut taken = chain.bursts(effort.packets);
                taken.sort_by(f64::total_cmp);
                bursts.push(taken);
            }
        }
    }
    let mut cells = running.into_iter().map(|(r, bursts)| Cell { times: r.samples, bursts });
    let series = plans
        .into_iter()
        .map(|Plan(name, carrier, _)| Series {
            name,
            carrier,
            cells: cells.by_ref().take(xs.len()).collect(),
        })
        .collect();
    Figure { xs: xs.to_vec(), series }
}

/// Throughput of chains of routers and of NAPTs by their length.
pub(crate) fn lengths(data: &Data, effort: &Effort) -> Figure {
    let mix = data.mix(60);
    let routers = |n| Chain::new(format!("{n} routers"), support::routers(n), &mix);
    let napts = |n| Chain::new(format!("{n} NAPTs"), support::napts(n), &mix);
    let bare = |_| Chain::new("forwarding", String::new(), &mix);
    let mut plans = vec![plan("forwarding", Carrier::Reference, bare)];
    plans.extend(both("routers", routers));
    plans.extend(both("NAPTs", napts));
    let wide = |n| Chain { burst: 128, ..napts(n) };
    plans.push(plan("NAPTs, synthesised, bursts of 128", Carrier::Synthesised, wide));
    measure(data, effort, &LENGTHS, plans, false)
}

/// Throughput of ten routers and of ten NAPTs by frame size.
pub(crate) fn sizes(data: &Data, effort: &Effort) -> Figure {
    let chain = |name, body: fn(u32) -> String, n| {
        move |size: u32| Chain::new(name, body(n), &data.mix(size as usize))
    };
    let bare = chain("forwarding", support::routers, 0);
    let mut plans = vec![plan("forwarding", Carrier::Reference, bare)];
    plans.extend(both("10 routers", chain("10 routers", support::routers, 10)));
    plans.extend(both("10 NAPTs", chain("10 NAPTs", support::napts, 10)));
    measure(data, effort, &SIZES, plans, false)
}

/// The three ISP chains' parts, or the whole of them, by elements and synthesised.
fn isp<'a>(data: &'a Data, body: fn(RuleSet) -> String) -> Vec<Plan<'a>> {
    let mut plans = Vec::new();
    for (name, carrier) in [("elements", Carrier::Elements), ("synthesised", Carrier::Synthesised)]
    {
        for rules in RULES {
            let set = (FAMILY, rules);
            let chain =
                move |size: u32| Chain::new("isp", body(set), &data.reaching(set, size as usize));
            plans.push(plan(&format!("{rules} rules, {name}"), carrier, chain));
        }
    }
    plans
}

/// Chains that do nothing, to compare with: their name and what stands in them.
fn reference<'a>(data: &'a Data, name: &'static str, body: &'static str) -> Plan<'a> {
    let traffic = move |size: u32| data.reaching((FAMILY, RULES[0]), size as usize);
    plan(name, Carrier::Reference, move |size| Chain::new(name, body.into(), &traffic(size)))
}

/// Time to classify a burst in the ISP chains: what they read, and no write.
pub(crate) fn classification(data: &Data, effort: &Effort) -> Figure {
    let read = |set| {
        format!(
            "-> Strip(14) -> CheckIPHeader -> IPFilter(file {}) -> GetIPAddress(16)
             -> RadixIPLookup(0.0.0.0/0 0, 10.0.0.0/8 0, 20.0.0.0/8 0, 40.0.0.0/8 0, 60.0.0.0/8 0,
                  80.0.0.0/8 0, 100.0.0.0/8 0, 120.0.0.0/8 0, 160.0.0.0/8 0, 200.0.0.0/8 0)",
            support::list(set)
        )
    };
    let mut plans = vec![
        reference(data, "empty element", "-> Null()"),
        reference(
            data,
            "classifier without conditions",
            "-> Strip(14) -> CheckIPHeader -> IPFilter(allow all)",
        ),
    ];
    plans.extend(isp(data, read));
    measure(data, effort, &ISP_SIZES, plans, true)
}

/// Time to modify a burst in the ISP chains: what they write, and no decision but the NAPT's own.
pub(crate) fn modification(data: &Data, effort: &Effort) -> Figure {
    let write = |_| {
        format!(
            "-> Strip(14) -> CheckIPHeader -> DecIPTTL -> FixIPSrc(172.16.1.1) -> IPFragmenter(1500)
             -> IPRewriter(pattern 30.0.1.1 1024-65535 - - 0 0) -> EtherEncap(0x0800, {MACS})"
        )
    };
    let mut plans = vec![reference(data, "empty element", "-> Null()")];
    plans.extend(isp(data, write));
    measure(data, effort, &ISP_SIZES, plans, true)
}

/// Throughput of the whole ISP chains, and the time of their bursts.
pub(crate) fn edge(data: &Data, effort: &Effort) -> Figure {
    let mut plans = vec![reference(data, "forwarding", "")];
    plans.extend(isp(data, support::isp));
    measure(data, effort, &ISP_SIZES, plans, true)
}

/// An operation of the example chain (figure 7.5): its name in table 7.1, the cycles it takes there
/// if it is in it, the element, and the output that leads on.
pub(crate) struct Step {
    pub(crate) operation: &'static str,
    pub(crate) cycles: Option<u32>,
    element: String,
    output: &'static str,
}

impl Step {
    fn new(operation: &'static str, cycles: u32, element: impl Into<String>) -> Self {
        let cycles = (cycles > 0).then_some(cycles);
        Self { operation, cycles, element: element.into(), output: "" }
    }

    /// The class of the element.
    pub(crate) fn class(&self) -> &str {
        let class = self.element.rsplit(":: ").next().unwrap_or_default();
        class.split('(').next().unwrap_or_default()
    }
}

/// NAPT, firewall on layer 4, balancer on layer 3: what UDP to port 1234 goes through.
fn example() -> Vec<Step> {
    let first = || {
        [
            Step::new("Strip Ethernet Header", 59, "Strip(14)"),
            Step::new("Check IP Header", 0, "CheckIPHeader()"),
        ]
    };
    let last = || {
        [
            Step::new("Decrement IP TTL", 81, "DecIPTTL()"),
            Step::new("IP Fragmentation", 48, "IPFragmenter(1500)"),
            Step::new("Encapsulate Ethernet", 70, format!("EtherEncap(0x0800, {MACS})")),
        ]
    };
    let classify = Step::new("Classify IP Traffic", 150, "c :: IPClassifier(tcp, udp)");
    let napt = "napt :: IPRewriter(pattern 30.0.1.1 1024-65535 - - 0 1)";
    let mut steps = Vec::from(first());
    steps.push(Step { output: "[1]", ..classify });
    steps.push(Step::new("Rewrite Flow", 365, napt));
    steps.extend(last());
    steps.extend(first());
    let filter = "IPFilter(allow udp && dst port 1234)";
    steps.push(Step::new("Filter IP Traffic", 155, filter));
    steps.extend(last());
    steps.extend(first());
    steps.push(Step::new("Read IP Address", 55, "GetIPAddress(16)"));
    steps.push(Step::new("Destination IP LookUp", 150, "RadixIPLookup(20.0.0.0/8 0)"));
    steps.push(Step::new("Rewrite Flow", 365, "lb :: IPRewriter(servers)"));
    steps.extend(last());
    steps
}

/// The first steps of the example chain, with what their side outputs lead to.
fn beginning(steps: &[Step], data: &Data) -> Chain {
    let body: String = steps.iter().map(|s| format!("-> {} {} ", s.element, s.output)).collect();
    let has = |name: &str| steps.iter().any(|s| s.element.starts_with(name));
    let mut beside = String::new();
    if has("c ::") {
        beside += &format!(
            "c[0] -> tcp :: IPRewriter(pattern 30.0.1.2 1024-65535 - - 0 1) -> DecIPTTL
               -> IPFragmenter(1500) -> EtherEncap(0x0800, {MACS}) -> ToDump(tcp);
             tcp[1] -> Discard;\n"
        );
    }
    if has("napt ::") {
        beside += "napt[1] -> Discard;\n";
    }
    if has("lb ::") {
        beside += "servers :: RoundRobinIPMapper(- - 192.168.1.1 - 0 1, - - 192.168.1.2 - 0 1);
                   lb[1] -> Discard;\n";
    }
    let traffic = std::rc::Rc::new(data.udp(60).to_udp_port(1234));
    Chain { beside, ..Chain::new("example", body, &traffic) }
}

/// What the elements of the example chain cost, and the whole of it.
pub(crate) struct Example {
    pub(crate) steps: Vec<Step>,
    /// Nanoseconds per packet that each step adds, one of each round.
    pub(crate) added: Vec<Vec<f64>>,
    /// The whole chain but for forwarding, by elements and synthesised.
    pub(crate) elements: Vec<f64>,
    pub(crate) synthesised: Vec<f64>,
}

/// The example chain's elements: each is the difference that it makes at the end of those before it.
pub(crate) fn elements(data: &Data, effort: &Effort) -> Example {
    // Differences of a few nanoseconds need more rounds than sums do.
    let effort = &Effort { rounds: effort.rounds * 3, ..*effort };
    let steps = example();
    let whole = steps.len();
    let lengths: Vec<u32> = (0..=whole as u32).collect();
    let chain = |n: u32| beginning(&steps[..n as usize], data);
    let plans = vec![plan("elements", Carrier::Elements, chain)];
    let figure = measure(data, effort, &lengths, plans, false);
    let plans = vec![
        plan("forwarding", Carrier::Reference, |_| chain(0)),
        plan("elements", Carrier::Elements, chain),
        plan("synthesised", Carrier::Synthesised, chain),
    ];
    let compared = measure(data, effort, &[whole as u32], plans, false);
    let minus = |a: &Cell, b: &Cell| a.times.iter().zip(&b.times).map(|(a, b)| a - b).collect();
    let added = figure.series[0].cells.windows(2).map(|pair| minus(&pair[1], &pair[0])).collect();
    let [bare, elements, synthesised] = [0, 1, 2].map(|i| &compared.series[i].cells[0]);
    Example { added, elements: minus(elements, bare), synthesised: minus(synthesised, bare), steps }
}
