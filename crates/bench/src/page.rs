//! A report as a page of HTML with plots, that needs nothing else.

use std::fmt::Write as _;

use view::svg::escape;
use view::table::Table;

use crate::machine::Clock;
use crate::plot::{Curves, Groups, Look, Ranking, Scale, Shape};
use crate::report::{Cost, Report, Share, Throughput, bits};
use crate::statistics::{Spread, mpps};

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;margin:.6rem 0}
th,td{padding:.2rem .8rem .2rem 0;text-align:left;font-variant-numeric:tabular-nums;vertical-align:top}
.number{text-align:right}th{font-weight:600;border-bottom:1px solid #8886}
.remark{border-left:4px solid #c9702a;padding-left:.7rem}
svg{max-width:100%;height:auto;margin:.6rem 0}code{overflow-wrap:anywhere}
";

impl Report {
    /// The report as a page. `raw` is the name of a file beside it that has all samples.
    pub fn page(&self, raw: &str) -> String {
        let mut page = Page::begin(&self.chain);
        page.put(format_args!(
            "<p>Measured by <code>catena bench</code> {1}. All samples are in <a href=\"{0}\">{0}</a>.</p>",
            escape(raw),
            escape(&self.place)
        ));
        for remark in &self.remarks {
            page.remark(remark);
        }
        self.figures(&mut page);
        self.beside(&mut page);
        self.by_length(&mut page);
        self.by_size(&mut page);
        self.latencies(&mut page);
        page.shares("What network functions take", &self.functions, Look::Elements(1));
        page.shares("What the programs take in their place", &self.programs, Look::Synthesised(1));
        self.facts(&mut page);
        page.end()
    }

    fn figures(&self, page: &mut Page) {
        page.heading("Throughput and cost");
        page.0.push_str(&self.throughput_table().html());
        if let Some(each) = self.by_core() {
            page.put(format_args!("<p>{each}.</p>"));
        }
        let Some(Cost { time, bare, cycles, .. }) = &self.cost else {
            page.put(format_args!(
                "<p>For each packet that comes in, {:.2} leave.</p>",
                self.forwarded
            ));
            return;
        };
        let cycles = cycles.map_or_else(String::new, |cycles| format!(", {cycles:.0} cycles"));
        page.put(format_args!(
            "<p>A packet takes {:.1} ns ({:.1}–{:.1}){cycles}; {:.1} ns of it without the chain. For each packet that comes \
             in, {:.2} leave.</p>",
            time.median, time.confidence.0, time.confidence.1, bare.median, self.forwarded
        ));
    }

    fn beside(&self, page: &mut Page) {
        if self.peers.is_empty() {
            return;
        }
        page.heading("Beside other systems");
        page.0.push_str(&self.peers_table().html());
        for peer in &self.peers {
            page.put(format_args!("<p>{}.</p>", escape(&peer.describe())));
            for why in peer.remarks() {
                page.remark(&why);
            }
        }
    }

    /// Throughput against the length of chains, where chains of several lengths were measured.
    fn by_length(&self, page: &mut Page) {
        let own = (self.length, self.chain.as_str(), &self.throughput);
        let peers =
            self.peers.iter().map(|peer| (peer.length, peer.name.as_str(), &peer.throughput));
        let mut chains: Vec<(usize, &str, &Vec<Throughput>)> = std::iter::once(own)
            .chain(peers)
            .filter(|(.., found)| !found.is_empty())
            .filter_map(|(length, name, found)| Some((length?, name, found)))
            .collect();
        chains.sort_by_key(|(length, ..)| *length);
        if chains.first().map(|(length, ..)| length) == chains.last().map(|(length, ..)| length) {
            return;
        }
        page.heading("Throughput by chain length");
        let rate =
            |found: &[Throughput], goal: usize| found.get(goal).map_or(0.0, |t| t.throughput);
        let mut table = Table::new(["network functions", "chain", "NDR, Mpps", "PDR, Mpps"]);
        for (length, name, found) in &chains {
            let [ndr, pdr] = [0, 1].map(|goal| mpps(rate(found, goal)));
            table.row([length.to_string(), (*name).to_string(), ndr, pdr]);
        }
        page.0.push_str(&table.html());
        let groups = chains.iter().map(|(length, _, found)| (length.to_string(), &found[..], 1e-6));
        page.bounds(("Throughput by chain length", "network functions", "Mpps"), groups.collect());
    }

    fn by_size(&self, page: &mut Page) {
        if self.sizes.is_empty() {
            return;
        }
        page.heading("Throughput by frame size");
        page.0.push_str(&self.sizes_table().html());
        let groups = self.sizes.iter().map(|at| {
            let gigabits = bits(1.0, at.frame_size).0 / 1e9;
            (at.size.clone(), &at.throughput[..], gigabits)
        });
        let titles = ("Throughput by frame size", "frame size, bytes", "Gbit/s (layer 2)");
        page.bounds(titles, groups.collect());
    }

    fn latencies(&self, page: &mut Page) {
        if self.latency.is_empty() {
            return;
        }
        page.heading("Latency under load");
        page.0.push_str(&self.latency_table().html());
        // The share of packets that are left halves from point to point: the last ones are few.
        let looks =
            [Look::Reference(0), Look::Synthesised(0), Look::Synthesised(1), Look::Elements(1)];
        let mut series = Vec::new();
        for (load, look) in self.latency.iter().zip(looks.into_iter().cycle()) {
            let most = load.packets.max(1) as f64;
            let points = load.distribution.iter().map(|&(share, latency)| {
                ((1.0 / (1.0 - share).max(1.0 / most)), latency.max(1) as f64 / 1e3)
            });
            series.push((format!("{} % of NDR", load.percent), look, points.collect::<Vec<_>>()));
        }
        let points = || series.iter().flat_map(|(_, _, points)| points);
        let plot = Curves {
            title: "Latency by percentile".into(),
            across: Scale::percentiles("percentile of packets", points().map(|p| p.0)),
            up: Scale::log("µs from when a packet was due", points().map(|p| p.1)),
            series: series.clone(),
        };
        page.0.push_str(&plot.draw());
    }

    fn facts(&self, page: &mut Page) {
        page.heading("What was measured, and on what");
        let machine = &self.environment;
        page.0.push_str("<table>\n");
        let mut fact = |name: &str, value: String| {
            page.put(format_args!("<tr><td>{name}</td><td>{}</td></tr>", escape(&value)));
        };
        for source in &self.traffic {
            fact("traffic", source.describe());
        }
        fact("arrivals while latencies were taken", self.arrivals.clone());
        let kind = if machine.is_virtual { ", a virtual machine" } else { "" };
        let cpu = machine.cpu.map_or_else(String::new, |cpu| format!("; measured on CPU {cpu}"));
        fact("processor", format!("{}, {}{kind}{cpu}", machine.processor, machine.count_of_cpus()));
        fact("kernel", format!("Linux {}", machine.kernel));
        fact("isolated CPUs", machine.isolated.clone().unwrap_or_else(|| "none".into()));
        fact(
            "frequency governor",
            machine.governor.clone().unwrap_or_else(|| "not to be seen".into()),
        );
        let clock = machine.clock.as_ref().map_or_else(|| "unknown".into(), Clock::describe);
        fact("clock", clock);
        let load = machine.load_average.map_or("unknown".into(), |load| format!("{load}"));
        fact("threads that ran in the minute before", load);
        fact("most CPU time that went elsewhere", format!("{:.1} %", 100.0 * self.disturbed()));
        let commit =
            machine.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
        let build = if machine.debug_build { ", a debug build" } else { "" };
        fact("Catena", format!("{}{commit}{build}", machine.version));
        fact("seed", self.seed.to_string());
        fact("command", machine.command.join(" "));
        fact("seconds since 1970", machine.unix_time.to_string());
        page.0.push_str("</table>\n");
    }
}

/// A page that is being written.
pub(crate) struct Page(pub(crate) String);

impl Page {
    /// Its head.
    pub(crate) fn begin(title: &str) -> Self {
        let (mut page, title) = (Self(String::new()), escape(title));
        page.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}: measured by Catena</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>"
        ));
        page
    }

    /// The whole page.
    pub(crate) fn end(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }

    pub(crate) fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{text}");
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.put(format_args!("<h2>{text}</h2>"));
    }

    pub(crate) fn remark(&mut self, text: &str) {
        self.put(format_args!("<p class=\"remark\">{}</p>", escape(text)));
    }

    /// NDR and PDR with the bounds of the search, by group: its name, what was found, and what a packet per second is in the
    /// unit.
    fn bounds(
        &mut self,
        (title, across, unit): (&str, &str, &str),
        groups: Vec<(String, &[Throughput], f64)>,
    ) {
        let bars = |goal: usize| -> Vec<Spread> {
            let bar = |(_, found, scale): &(String, &[Throughput], f64)| {
                let Some(found) = found.get(goal) else { return Spread::of([0.0]) };
                let [least, greatest] = [found.lower, found.upper]
                    .map(|bound| scale * bound.unwrap_or(found.throughput));
                Spread { median: scale * found.throughput, least, greatest }
            };
            groups.iter().map(bar).collect()
        };
        let all = [("NDR", Look::Synthesised(0), bars(0)), ("PDR", Look::Elements(0), bars(1))];
        let most = all.iter().flat_map(|(.., bars)| bars).map(|bar| bar.greatest);
        let plot = Groups {
            title: format!("{title}, with the search's bounds"),
            across: across.into(),
            up: Scale::linear(unit, most),
            groups: groups.iter().map(|(name, ..)| name.clone()).collect(),
            series: all
                .into_iter()
                .map(|(name, look, bars)| {
                    (name.into(), look, bars.into_iter().map(Shape::Bar).collect())
                })
                .collect(),
        };
        self.0.push_str(&plot.draw());
    }

    fn shares(&mut self, title: &str, shares: &[Share], look: Look) {
        if shares.is_empty() {
            return;
        }
        self.heading(title);
        let bars = shares.iter().map(|share| (share.name.clone(), look, share.time)).collect();
        let plot = Ranking {
            title: "Time of bursts that were timed".into(),
            unit: "ns per packet".into(),
            bars,
        };
        self.0.push_str(&plot.draw());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::machine::Environment;
    use crate::report::{AtSize, Latency, Percentiles, Traffic};
    use crate::statistics::Samples;

    /// A measurement of which nothing was measured.
    pub(crate) fn report() -> Report {
        let samples = || Samples::of(vec![100.0, 101.0, 99.0]);
        let cost =
            || Cost { time: samples(), bare: samples(), cycles: Some(210.0), disturbed: 0.2 };
        let throughput = |goal: &str| Throughput {
            goal: goal.into(),
            loss_ratio: 0.0,
            lower: Some(9e6),
            upper: None,
            throughput: 9e6,
            trials: 12,
            complete: true,
            disturbed: 0.0,
            disturbed_trials: 0,
        };
        let found = || vec![throughput("NDR"), throughput("PDR")];
        let percentiles = Percentiles {
            min: 0,
            p50: 2000,
            p90: 3000,
            p99: 4000,
            p99_9: 5000,
            p99_99: 6000,
            max: 7000,
            mean: 2100.0,
            pdv: 5000,
        };
        let latency = Latency {
            percent: 90,
            rate: 8.1e6,
            offered: 1000,
            lost: 3,
            packets: 997,
            percentiles,
            distribution: vec![(0.0, 0), (0.5, 2000), (0.9, 3000), (1.0, 7000)],
            histogram: None,
            p50: samples(),
            p99: samples(),
            disturbed: 0.0,
            disturbed_parts: 0,
        };
        let size = AtSize {
            size: "imix".into(),
            frame_size: 362.0,
            cost: Some(cost()),
            throughput: found(),
        };
        let share = Share { name: "<b>&nf</b>".into(), time: 40.0, packets: 992 };
        Report {
            bench: crate::report::VERSION,
            chain: "a <script>.click".into(),
            length: Some(1),
            place: crate::report::in_memory(),
            cores: 1,
            environment: Environment {
                command: vec!["catena".into(), "bench".into()],
                ..Environment::default()
            },
            seed: 7,
            arrivals: "poisson".into(),
            traffic: vec![Traffic {
                name: "in".into(),
                origin: "capture".into(),
                frames: 10,
                bytes: 600,
            }],
            frame_size: 64.0,
            cost: Some(cost()),
            throughput: found(),
            latency: vec![latency],
            sizes: vec![size],
            functions: vec![share],
            programs: Vec::new(),
            peers: Vec::new(),
            forwarded: 1.0,
            by_tester: false,
            remarks: vec!["a & b".into()],
        }
    }

    #[test]
    fn what_a_core_takes_is_left_out_where_the_tester_is_the_limit() {
        let mut live = Report { cost: None, ..report() };
        assert!(live.by_core().unwrap().contains("NDR of a core: 9.000 Mpps, 111.1 ns"));
        live.by_tester = true;
        assert!(live.by_core().is_none());
    }

    #[test]
    fn a_page_is_whole_and_means_nothing_else() {
        let page = report().page("r.json");
        assert!(
            !page.contains("<script>") && !page.contains("<b>") && !page.contains("NaN"),
            "{page}"
        );
        for part in [
            "a &lt;script&gt;.click",
            "a &amp; b",
            "&lt;b&gt;&amp;nf&lt;/b&gt;",
            "href=\"r.json\"",
            "99.9 %",
            "poisson",
        ] {
            assert!(page.contains(part), "{part} is missing: {page}");
        }
        for (element, count) in [("svg", 3), ("table", 4), ("body", 1), ("html", 1)] {
            let (begins, ends) = (format!("<{element}"), format!("</{element}>"));
            assert_eq!(page.matches(&ends).count(), count, "{element}");
            assert_eq!(page.matches(&begins).count(), count, "{element}");
        }
        // What took a fifth of the time is said where it was.
        assert_eq!(page.matches("*20 %").count(), 1);
    }

    #[test]
    fn throughput_is_also_said_by_core() {
        let on = |cores, cost| {
            let environment = Environment { frequency: Some(2e9), ..Environment::default() };
            Report { cores, cost, environment, ..report() }.by_core()
        };
        let two = "NDR of each of 2 cores: 4.500 Mpps, 222.2 ns, 444 cycles for a packet";
        assert_eq!(on(2, report().cost).as_deref(), Some(two));
        let live = "NDR of a core: 9.000 Mpps, 111.1 ns, 222 cycles for a packet";
        assert_eq!(on(1, None).as_deref(), Some(live));
        assert_eq!((on(1, report().cost), on(0, None)), (None, None));
    }

    #[test]
    fn throughput_is_drawn_over_the_length_of_chains() {
        let chain = |name: &str, length| {
            let mut peer = crate::report::PeerReport::new(name.into(), None, "a chain".into());
            (peer.length, peer.throughput) = (length, report().throughput);
            peer
        };
        let page = |peers| Report { peers, ..report() }.page("r.json");
        let title = "Throughput by chain length";
        let several = page(vec![chain("four.click", Some(4)), chain("two.click", Some(2))]);
        assert!(several.matches(title).count() >= 2, "{several}");
        let rows = ["1", "2", "4"].map(|n| several.find(&format!("<td class=\"number\">{n}</td>")));
        assert!(rows[0] < rows[1] && rows[1] < rows[2] && rows[0].is_some(), "{rows:?}");
        // One length, and what is no chain of functions, is no curve.
        for peers in [vec![chain("b.click", Some(1))], vec![chain("kernel", None)], Vec::new()] {
            assert!(!page(peers).contains(title));
        }
    }

    #[test]
    fn a_report_of_little_is_a_page_too() {
        let empty = Report {
            latency: Vec::new(),
            sizes: Vec::new(),
            functions: Vec::new(),
            throughput: Vec::new(),
            ..report()
        };
        let page = empty.page("r.json");
        assert!(page.ends_with("</body>\n</html>\n") && !page.contains("<svg"), "{page}");
    }
}
