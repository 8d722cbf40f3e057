//! What was measured, as a page with tables and plots.

use bench::plot::{Groups, Lines, Look, Scale, Shape};

use crate::experiments::{Carrier, Cell, Effort, Example, FAMILY, Figure, RULES, Series};
use crate::paper::{Page, thousands};
use crate::support::Spread;

impl Page {
    pub(crate) fn new(effort: &Effort) -> Self {
        Self::beginning(format!(
            "# SNF's experiments on Catena

SNF (*Synthesized Network Functions*, chapter 7 of Georgios Katsikas's doctoral thesis on NFV service chains) was the
first system that turned a chain of network functions into one. These are its experiments, on Catena: each chain element
by element and *synthesised*, in the same rounds. Written by a program from what it measured; to repeat it:

```sh
cargo xtask figures snf
```

It needs the shared data folder (`CATENA_SHARED`, or `../shared`) with the chains, access lists and traffic.

## Method

- One core, in memory: frames are copied from memory into pooled buffers, go through the chain in bursts of 32, and are
  given back by a device that keeps nothing. No network card takes part.
- {} rounds of {} packets. A round measures each chain of an experiment once, after all frames of its traffic went
  through it unmeasured, so that what the machine does meanwhile touches all alike. Tables give the median round, with
  the least and the greatest in brackets; ratios and differences are taken within rounds.
- Times per packet, and the throughputs made of them, are the thread's CPU time. Gbit/s counts the bits of the frames as
  figure 7.8 names their sizes: without frame check sequence, preamble and gap. So counted, a line of 40 Gbit/s is full
  at 28.6 Gbit/s of 60-byte frames (59.5 Mpps) and at 39.4 Gbit/s of 1,500-byte frames.
- Latencies are *times per burst*: how long the chain takes for a burst of 32 frames by the wall's clock (which adds
  about 25 ns), at full load. They leave out what the thesis measured end to end: network cards, queues before them,
  the wire and the generator. They are comparable among themselves, not with its microseconds.
- The machine: {}.

## What differs from the thesis

| | the thesis | here |
|---|---|---|
| machine | 8 cores of an Intel Xeon E5-2667 v3, four 10-Gbit/s ports, two machines that send and receive | one core, no ports |
| element by element | FastClick | Catena without synthesis |
| access lists | made with ClassBench, of 251, 713 and 8,550 rules | {}, {} and {} rules made from the ClassBench seed `{FAMILY}` |
| traffic of routers and NAPTs | not stated | 10,000 flows of TCP and UDP |
| traffic of the ISP chains | frames of varying length that reach every rule | frames of each size that reach every rule |

The thesis prints its curves without numbers; what its text states of them stands beside each table.

",
            effort.rounds,
            thousands(effort.packets),
            machine(),
            RULES[0],
            RULES[1],
            thousands(RULES[2].into()),
        ))
    }

    /// Table 7.1.
    pub(crate) fn elements(&mut self, example: &Example) {
        self.put(format_args!(
            "## Table 7.1: what elements cost

The example chain of figure 7.5: a NAPT, a firewall on layer 4 and a balancer on layer 3, for UDP datagrams to the port
that the firewall allows. An element's time is the difference that it makes at the end of the elements before it; where
it stands in the chain more than once, it is the mean of them. The thesis gives cycles of one 3.2-GHz core, so only the
columns' proportions compare. Its chain checks no IP headers; Catena's does, as each of its NFs would have to.
"
        ));
        self.head(&[
            "operation",
            "element",
            "times in the chain",
            "ns per packet",
            "thesis, cycles",
        ]);
        let mut seen: Vec<&str> = Vec::new();
        for step in &example.steps {
            if seen.contains(&step.operation) {
                continue;
            }
            seen.push(step.operation);
            let added: Vec<&Vec<f64>> = example
                .steps
                .iter()
                .zip(&example.added)
                .filter_map(|(s, added)| (s.operation == step.operation).then_some(added))
                .collect();
            let mean =
                |round: usize| added.iter().map(|a| a[round]).sum::<f64>() / added.len() as f64;
            let spread = Spread::of((0..example.elements.len()).map(mean));
            self.row([
                step.operation.to_string(),
                format!("`{}`", step.class()),
                added.len().to_string(),
                spread.to_string(),
                step.cycles.map_or("–".into(), |c| c.to_string()),
            ]);
        }
        let whole = |samples: &[f64]| Spread::of(samples.iter().copied()).to_string();
        let ratio = Spread::of_ratios(&example.elements, &example.synthesised);
        let steps = example.steps.len().to_string();
        let row = |name: &str, steps: &str, time: String, cycles: &str| {
            [format!("**{name}**"), String::new(), steps.into(), time, cycles.into()]
        };
        self.row(row("the chain, element by element", &steps, whole(&example.elements), "2014"));
        self.row(row("the chain, synthesised", "", whole(&example.synthesised), "695"));
        self.row(row("ratio", "", ratio.to_string(), "2.9"));
        self.put(format_args!(
            "\nThe thesis's rows without checksums and with one checksum for all writes are costs of elements that Catena does not
have: a synthesised chain's checksums are updated once, by what it writes.
"
        ));
    }

    /// Figure 7.7.
    pub(crate) fn lengths(&mut self, figure: &Figure) {
        let title = "Figure 7.7: throughput of chains by their length, 60-byte frames";
        self.put(format_args!("## {title}"));
        let lines = throughput(title, "network functions in the chain", figure, |_| 60);
        self.plot("snf-7-7.svg", title, lines.draw());
        self.put(format_args!("Nanoseconds per packet:\n"));
        self.table("NFs", figure, |cell, _| cell.time().to_string());
        self.put(format_args!("\nMillions of packets per second / Gbit/s:\n"));
        self.table("NFs", figure, |cell, _| rate(cell, 60));
        let [bare, routers, fused_routers, napts, fused_napts, _] = &figure.series[..] else {
            return;
        };
        let ten = |series: &Series| series.cells.len() - 1;
        let ratio =
            |a: &Cell, b: &Cell| format!("{:.2}", Spread::of_ratios(&a.times, &b.times).median);
        self.put(format_args!(""));
        self.head(&["ratio", "routers", "NAPTs"]);
        for (name, of) in [("ten to one, elements", 0), ("ten to one, synthesised", 1)] {
            let pair = [[routers, napts], [fused_routers, fused_napts]][of];
            let cells = pair.map(|s| ratio(&s.cells[ten(s)], &s.cells[0]));
            self.row([vec![name.to_string()], cells.to_vec()].concat());
        }
        for (name, at) in
            [("one, synthesised, to forwarding", 0), ("ten, synthesised, to forwarding", 9)]
        {
            let cells = [fused_routers, fused_napts].map(|s| ratio(&s.cells[at], &bare.cells[at]));
            self.row([vec![name.to_string()], cells.to_vec()].concat());
        }
        let cells = [(routers, fused_routers), (napts, fused_napts)]
            .map(|(slow, fast)| ratio(&slow.cells[9], &fast.cells[9]));
        self.row([vec!["ten, elements to synthesised".to_string()], cells.to_vec()].concat());
        self.put(format_args!(
            "\nThe thesis: its ports are full at 31.5 Gbit/s. Chains of one and of two FastClick routers fill them, ten reach less
than 10 Gbit/s; chains of FastClick NAPTs fall faster. SNF fills the ports at every length, for NAPTs with bursts of 128
and, with bursts of 32, up to six of them. (On 8 cores.)
"
        ));
    }

    /// Figure 7.8.
    pub(crate) fn sizes(&mut self, figure: &Figure) {
        let title = "Figure 7.8: throughput of ten NFs by frame size";
        self.put(format_args!("## {title}"));
        let lines = throughput(title, "frame size, bytes", figure, |size| size);
        self.plot("snf-7-8.svg", title, lines.draw());
        self.put(format_args!("Nanoseconds per packet:\n"));
        self.table("bytes", figure, |cell, _| cell.time().to_string());
        self.put(format_args!("\nMillions of packets per second / Gbit/s:\n"));
        self.table("bytes", figure, rate);
        self.put(format_args!(
            "\nThe traffic's 10,000 frames do not fit the second-level cache once they are large, so forwarding too takes longer with
their size.

The thesis: SNF fills its 40 Gbit/s with frames larger than 128 bytes, FastClick with frames larger than 800 to 1,000
bytes. (On 8 cores.)
"
        ));
    }

    /// Figure 7.11.
    pub(crate) fn stages(&mut self, classification: &Figure, modification: &Figure) {
        self.put(format_args!(
            "## Figure 7.11: time per burst of the ISP chains' stages

The chains are access list, router and NAPT. (a) is what they read: Strip, CheckIPHeader, IPFilter, GetIPAddress and
RadixIPLookup, without a write. (b) is what they write: DecIPTTL, FixIPSrc, IPRewriter and EtherEncap, with the Strip,
CheckIPHeader and IPFragmenter that these need, without the access list; the lists differ by their traffic only.
"
        ));
        let title = "Figure 7.11a: microseconds to classify a burst of 32";
        self.plot("snf-7-11a.svg", title, bursts(title, classification).draw());
        self.percentiles(classification);
        let title = "Figure 7.11b: microseconds to modify a burst of 32";
        self.plot("snf-7-11b.svg", title, bursts(title, modification).draw());
        self.percentiles(modification);
        self.put(format_args!(
            "\nThe thesis, at 5 Gbit/s: with the largest list, the 1st to 50th percentiles of SNF's classification are 10 to 20 times
below FastClick's, the 99th 2 to 3 times; from the 1st to the 99th percentile there are three orders of magnitude with
SNF and four with FastClick. Modification takes 0.1 to 2 µs, the 99th percentile is ten times the median, and SNF is no
faster than FastClick.
"
        ));
    }

    /// Figure 7.12.
    pub(crate) fn edge(&mut self, figure: &Figure) {
        self.put(format_args!("## Figure 7.12: the whole ISP chains"));
        let title = "Figure 7.12a: throughput of the ISP chains";
        self.plot("snf-7-12a.svg", title, bars(title, figure).draw());
        self.put(format_args!("Nanoseconds per packet:\n"));
        self.table("bytes", figure, |cell, _| cell.time().to_string());
        self.put(format_args!("\nMillions of packets per second / Gbit/s:\n"));
        self.table("bytes", figure, rate);
        let title = "Figure 7.12b: microseconds per burst of 32 of the ISP chains";
        self.plot("snf-7-12b.svg", title, bursts(title, figure).draw());
        self.percentiles(figure);
        self.put(format_args!(
            "\nThe thesis, on 8 cores: with 250 rules FastClick is as fast as SNF; with 713 and 8,550 it loses a factor of 1.5 to 10.
SNF's throughput is up to 8.5 times FastClick's, its median latency 1.1 to 12 times lower and below 300 µs, and its 99th
percentile, where slightly above 1 ms, 1.8 to 3.5 times lower.
"
        ));
        self.put(format_args!(
            "How much longer the 99th percentile of the bursts took than the median burst:\n"
        ));
        self.table("bytes", figure, |cell, _| {
            let tail = cell.tail();
            format!("{:.2} ({:.2}–{:.2})", tail.median, tail.least, tail.greatest)
        });
    }

    /// A figure's cells: a row for each of its numbers, a column for each series.
    fn table(&mut self, what: &str, figure: &Figure, cell: impl Fn(&Cell, u32) -> String) {
        let names = figure.series.iter().map(|s| s.name.as_str());
        self.head(&std::iter::once(what).chain(names).collect::<Vec<_>>());
        for (index, x) in figure.xs.iter().enumerate() {
            let cells = figure.series.iter().map(|s| cell(&s.cells[index], *x));
            self.row(std::iter::once(x.to_string()).chain(cells));
        }
    }

    /// Median and 99th percentile of bursts.
    fn percentiles(&mut self, figure: &Figure) {
        self.put(format_args!("Microseconds, median / 99th percentile:\n"));
        self.table("bytes", figure, |cell, _| {
            let [_, _, median, _, last] = cell.percentiles();
            format!("{median:.2} / {last:.2}")
        });
    }
}

fn rate(cell: &Cell, size: u32) -> String {
    format!("{:.1} / {:.1}", cell.megapackets().median, cell.gigabits(size).median)
}

/// Looks of a figure's series: each carrier's in shades.
fn looks(figure: &Figure) -> Vec<Look> {
    let mut shades = [0; 3];
    let look = |series: &Series| {
        let (shade, look): (_, fn(usize) -> Look) = match series.carrier {
            Carrier::Reference => (&mut shades[0], Look::Reference),
            Carrier::Elements => (&mut shades[1], Look::Elements),
            Carrier::Synthesised => (&mut shades[2], Look::Synthesised),
        };
        *shade += 1;
        look(*shade - 1)
    };
    figure.series.iter().map(look).collect()
}

fn throughput(
    title: &'static str,
    across: &'static str,
    figure: &Figure,
    size: impl Fn(u32) -> u32,
) -> Lines {
    let points = |s: &Series| -> Vec<Spread> {
        s.cells.iter().zip(&figure.xs).map(|(cell, x)| cell.gigabits(size(*x))).collect()
    };
    let series: Vec<_> = figure
        .series
        .iter()
        .zip(looks(figure))
        .map(|(s, look)| (s.name.clone(), look, points(s)))
        .collect();
    let all = series.iter().flat_map(|(_, _, points)| points).map(|p| p.greatest);
    let up = Scale::linear("Gbit/s on one core", all);
    Lines { title: title.into(), across: across.into(), xs: figure.xs.clone(), up, series }
}

fn bars(title: &'static str, figure: &Figure) -> Groups {
    let rate = |s: &Series, i: usize| s.cells[i].gigabits(figure.xs[i]);
    let groups = 0..figure.xs.len();
    let all = figure.series.iter().flat_map(|s| groups.clone().map(|i| rate(s, i).greatest));
    let up = Scale::linear("Gbit/s on one core", all);
    let series = figure.series.iter().zip(looks(figure)).map(|(s, look)| {
        (s.name.clone(), look, groups.clone().map(|i| Shape::Bar(rate(s, i))).collect())
    });
    let series = series.collect();
    Groups {
        title: title.into(),
        across: "frame size, bytes".into(),
        groups: figure.xs.iter().map(u32::to_string).collect(),
        up,
        series,
    }
}

fn bursts(title: &'static str, figure: &Figure) -> Groups {
    let all = figure.series.iter().flat_map(|s| &s.cells).flat_map(Cell::percentiles);
    let up = Scale::log("µs per burst of 32", all);
    let series = figure.series.iter().zip(looks(figure)).map(|(s, look)| {
        (s.name.clone(), look, s.cells.iter().map(|c| Shape::Box(c.percentiles())).collect())
    });
    let series = series.collect();
    Groups {
        title: title.into(),
        across: "frame size, bytes".into(),
        groups: figure.xs.iter().map(u32::to_string).collect(),
        up,
        series,
    }
}

/// The processor, as the system tells it.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name));
        line.and_then(|l| l.split_once(':')).map(|(_, value)| value.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let flags = field("flags").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
    let guest = if has("hypervisor") { ", a virtual machine that shares its host" } else { "" };
    let wide = if has("avx512f") { " with AVX-512" } else { "" };
    format!("{model}{wide}, {cores} cores{guest}; the other core was not kept idle")
}
