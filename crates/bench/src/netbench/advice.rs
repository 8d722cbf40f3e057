//! What results advise: the switch for a pattern of traffic, and which of Ara's statements they bear out.

use std::collections::BTreeMap;
use std::time::Duration;

use view::table::grouped;

use super::results::{CellResult, Results};
use crate::statistics::Spread;

/// What somebody needs of a network between containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Pairs of applications.
    pub pairs: usize,
    /// Bytes of a frame.
    pub size: usize,
    /// The round trip that 99 of 100 packets may take at most.
    pub p99: Option<Duration>,
}

/// The fabric that is no switch.
const LIMIT: &str = "direct";

/// A cell, and what is chosen by.
struct Candidate<'a> {
    of: &'a CellResult,
    received: Spread,
    /// The 99th percentile of round trips in nanoseconds, if they were measured.
    p99: Option<u64>,
}

impl<'a> Candidate<'a> {
    /// Round trips may have been measured by themselves, in other cells: then the latest of these counts.
    fn new(results: &'a Results, of: &'a CellResult) -> Option<Self> {
        let received = of.of_throughput(|throughput| throughput.received_rate)?;
        let p99 = |of: &CellResult| of.round_trips().map(|trips| trips.p99);
        let alike = |other: &&CellResult| {
            let of_network = |of: &super::Cell| {
                let load = (of.pairs, of.size, of.cores, of.direction, of.peer);
                (of.switch.clone(), of.io.clone(), load)
            };
            of_network(&other.cell) == of_network(&of.cell)
        };
        let p99 = p99(of).or_else(|| results.cells.iter().filter(alike).filter_map(p99).max());
        Some(Self { of, received, p99 })
    }

    /// What it is called where I/O modes, bursts, cores or hosts differ.
    fn name(&self, results: &Results) -> String {
        const SAID: [&str; 4] = ["I/O", "burst", "cores", "peer"];
        let mut name = self.of.cell.switch.clone();
        for (dimension, of) in results.dimensions() {
            if SAID.contains(&dimension) {
                let is_name = dimension == "I/O";
                let title = if is_name { String::new() } else { format!("{dimension} ") };
                name += &format!(", {title}{}", of(&self.of.cell));
            }
        }
        name
    }

    fn figures(&self) -> String {
        let rate = grouped(self.received.median.round() as u64);
        let p99 = self.p99.map(|p99| format!(", p99 {:.1} µs", p99 as f64 / 1e3));
        format!("{rate} packets/s{}", p99.unwrap_or_default())
    }
}

impl Results {
    /// The switch for a pattern, with the reason; that there is none, with the reason.
    pub fn recommended(&self, pattern: &Pattern) -> String {
        let of = format!("{0}vs{0}, {1} bytes", pattern.pairs, pattern.size);
        let (here, limits): (Vec<_>, Vec<_>) = self
            .cells
            .iter()
            .filter(|of| (of.cell.pairs, of.cell.size) == (pattern.pairs, pattern.size))
            .filter_map(|of| Candidate::new(self, of))
            .partition(|candidate| candidate.of.cell.switch != LIMIT);
        let bound = pattern.p99.map(|bound| bound.as_nanos());
        let within = |candidate: &Candidate<'_>| {
            bound.is_none_or(|bound| candidate.p99.is_some_and(|p99| u128::from(p99) <= bound))
        };
        let (mut fit, late): (Vec<_>, Vec<_>) = here.into_iter().partition(within);
        let bound = pattern.p99.map_or(String::new(), |bound| format!(", p99 at most {bound:?}"));
        fit.sort_by(|a, b| b.received.median.total_cmp(&a.received.median));
        let Some(best) = fit.first() else {
            let least = late.iter().filter(|of| of.p99.is_some()).min_by_key(|of| of.p99);
            return match least {
                Some(least) => format!(
                    "{of}{bound}: none. The nearest is {}: {}",
                    least.name(self),
                    least.figures()
                ),
                None => format!("{of}{bound}: no measurement decides"),
            };
        };
        // Where ranges overlap, figures do not tell who is faster; round trips may.
        let ties = fit.iter().filter(|other| other.received.greatest >= best.received.least);
        let best = ties.min_by_key(|of| of.p99.unwrap_or(u64::MAX)).unwrap_or(best);
        let mut text = format!("{of}{bound}: {}: {}", best.name(self), best.figures());
        if let Some(limit) = limits.iter().map(|of| of.received.median).reduce(f64::max) {
            text += &format!(", {:.0} % of no switch", 100.0 * best.received.median / limit);
        }
        let next = fit.iter().find(|other| !std::ptr::eq(*other, best));
        if let Some(next) = next {
            text += &format!("; next {}: {}", next.name(self), next.figures());
        }
        let faster = late.iter().filter(|other| other.received.median > best.received.median);
        let faster = faster.max_by(|a, b| a.received.median.total_cmp(&b.received.median));
        if let Some(faster) = faster {
            text +=
                &format!("; {} is faster, but too late: {}", faster.name(self), faster.figures());
        }
        text
    }

    /// A recommendation for each number of pairs and size that was measured.
    pub fn recommendations(&self) -> Vec<String> {
        let mut patterns: Vec<(usize, usize)> = Vec::new();
        for result in self.cells.iter().filter(|of| of.cell.switch != LIMIT) {
            let pattern = (result.cell.pairs, result.cell.size);
            if !patterns.contains(&pattern) && Candidate::new(self, result).is_some() {
                patterns.push(pattern);
            }
        }
        patterns.sort_unstable();
        let advice = |(pairs, size)| self.recommended(&Pattern { pairs, size, p99: None });
        patterns.into_iter().map(advice).collect()
    }
}

/// A statement of Ara's, and what results say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What is stated.
    pub text: &'static str,
    /// Whether it holds here; nothing if it was not measured.
    pub holds: Option<bool>,
    /// The figures.
    pub evidence: String,
}

/// Cells that agree in all but what `vary` sets alike, with a value each.
type Varied<'a, T> = Vec<(T, &'a CellResult)>;

impl Results {
    /// Groups of cells that are the same once `same` has made them so, in the order of `key`.
    fn varied<T: PartialOrd>(
        &self,
        key: impl Fn(&CellResult) -> Option<T>,
        same: impl Fn(&mut super::Cell),
    ) -> Vec<Varied<'_, T>> {
        let mut groups: BTreeMap<String, Varied<'_, T>> = BTreeMap::new();
        for result in &self.cells {
            let Some(value) = key(result) else { continue };
            let mut cell = result.cell.clone();
            same(&mut cell);
            groups.entry(format!("{cell:?}")).or_default().push((value, result));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        }
        groups.retain(|group| group.len() > 1);
        groups
    }

    /// Ara's statements (chapter 5), and whether they hold here.
    pub fn statements(&self) -> Vec<Statement> {
        vec![
            self.sockets(),
            self.bypass(),
            self.bursts(),
            self.pairs(),
            self.asked(),
            self.digits(),
        ]
    }

    /// Table 5.2.
    fn sockets(&self) -> Statement {
        let text = "Of sockets, raw ones with many frames in a system call are the fastest.";
        const SOCKETS: [&str; 4] = ["af-packet-mmsg", "af-packet", "udp-mmsg", "udp"];
        let rank = |result: &CellResult| {
            rate(result)?;
            SOCKETS.iter().position(|io| *io == result.cell.io)
        };
        let groups = self.varied(rank, |cell| cell.io.clear());
        let groups: Vec<_> = groups.iter().filter(|group| group[0].0 == 0).collect();
        let ratio = |group: &&Varied<'_, usize>| {
            let others = group[1..].iter().filter_map(|(_, result)| rate(result));
            Some(rate(group[0].1)? / others.reduce(f64::max)?)
        };
        let ratios: Vec<f64> = groups.iter().filter_map(ratio).collect();
        let evidence = match range(&ratios) {
            Some(range) => format!("{range} times the next best socket, in {} cells", ratios.len()),
            None => "sockets were not compared: --io udp,udp-mmsg,af-packet,af-packet-mmsg".into(),
        };
        judged(text, &ratios, |ratio| *ratio >= 1.0, evidence)
    }

    /// Table 5.2 beside figure 5.2.
    fn bypass(&self) -> Statement {
        let text = "I/O by the kernel is far behind what goes past it: it has less than half of the throughput.";
        let is_past = |result: &CellResult| {
            let cell = &result.cell;
            rate(result)?;
            match (cell.switch.as_str(), cell.io.as_str()) {
                ("linux-bridge", "af-packet-mmsg") => Some(false),
                ("catena", "af-xdp") => Some(true),
                _ => None,
            }
        };
        let groups = self.varied(is_past, |cell| {
            cell.switch.clear();
            cell.io.clear();
        });
        let ratio = |group: &Varied<'_, bool>| {
            let past = group.iter().filter(|(is_past, _)| *is_past);
            let kernel = group.iter().find(|(is_past, _)| !is_past)?;
            Some(past.filter_map(|(_, of)| rate(of)).reduce(f64::max)? / rate(kernel.1)?)
        };
        let ratios: Vec<f64> = groups.iter().filter_map(ratio).collect();
        let evidence = match range(&ratios) {
            Some(range) => {
                format!("past the kernel {range} times the Linux bridge with raw sockets")
            }
            None => "no switch past the kernel was measured beside the Linux bridge".into(),
        };
        judged(text, &ratios, |ratio| *ratio > 2.0, evidence)
    }

    /// Figures 5.2 and 5.3.
    fn bursts(&self) -> Statement {
        let text = "Bursts of 32 and of 256 packets have nearly the same throughput: within 10 %.";
        let burst = |result: &CellResult| {
            rate(result)?;
            Some(result.cell.burst).filter(|burst| [32, 256].contains(burst))
        };
        let same = |cell: &mut super::Cell| (cell.burst, cell.latency_burst) = (0, 0);
        let ratios: Vec<f64> = self.varied(burst, same).iter().filter_map(ends).collect();
        let evidence = match range(&ratios) {
            Some(range) => format!(
                "bursts of 256 have {range} times the throughput, in {} cells",
                ratios.len()
            ),
            None => "not both were measured: --burst 32,256".into(),
        };
        judged(text, &ratios, |ratio| (0.9..=1.1).contains(ratio), evidence)
    }

    /// Figures 5.5 and 5.6.
    fn pairs(&self) -> Statement {
        let text = "With more pairs of applications, each pair has less throughput.";
        let pairs = |result: &CellResult| rate(result).map(|_| result.cell.pairs);
        let groups = self.varied(pairs, |cell| cell.pairs = 0);
        let ratio = |group: &Varied<'_, usize>| {
            let (few, many) = (group.first()?, group.last()?);
            Some(ends(group)? * few.0 as f64 / many.0 as f64)
        };
        let ratios: Vec<f64> = groups.iter().filter_map(ratio).collect();
        let evidence = match range(&ratios) {
            Some(range) => {
                format!(
                    "a pair of the most has {range} times what one of the fewest has, in {} cells",
                    ratios.len()
                )
            }
            None => "one number of pairs was measured only: --pairs 1,2,4".into(),
        };
        judged(text, &ratios, |ratio| *ratio < 1.0, evidence)
    }

    /// Figure 5.1.
    fn asked(&self) -> Statement {
        let text = "What is asked for comes up to a maximum; what is beyond is lost.";
        let asked = |result: &CellResult| rate(result).and(result.cell.rate);
        let groups = self.varied(asked, |cell| cell.rate = None);
        // Below the maximum, 99 of 100 packets that are asked for come.
        let kept = |(_, result): &(u64, &CellResult)| {
            let wanted = result.cell.rate? as f64 * result.cell.pairs as f64;
            Some(rate(result)? / wanted)
        };
        let follows = |group: &Varied<'_, u64>| {
            let shares: Vec<f64> = group.iter().filter_map(kept).collect();
            let below = shares.iter().take_while(|share| **share >= 0.99).count();
            let most = group.iter().filter_map(|(_, of)| rate(of)).fold(0.0, f64::max);
            // Beyond, no rate has much less than the maximum.
            let beyond = group[below..].iter().filter_map(|(_, of)| rate(of));
            beyond.fold(1.0_f64, |least, rate| least.min(rate / most))
        };
        let ratios: Vec<f64> = groups.iter().map(follows).collect();
        let evidence = match range(&ratios) {
            Some(range) => format!(
                "beyond the maximum, at least {range} of it comes, in {} cells",
                ratios.len()
            ),
            None => "one rate was measured only: --rate 100k..2M+200k".into(),
        };
        judged(text, &ratios, |ratio| *ratio >= 0.9, evidence)
    }

    /// Figures 5.9 and 5.10.
    fn digits(&self) -> Statement {
        let text = "Round trips below 10 µs are for ports past the kernel alone, at bursts of 4 packets or less.";
        let mut below: Vec<String> = Vec::new();
        let (mut holds, mut is_measured) = (true, false);
        for result in self.cells.iter().filter(|result| result.cell.latency_burst <= 4) {
            let Some(trips) = result.round_trips() else { continue };
            is_measured = true;
            let is_past = result.cell.io == "af-xdp";
            if trips.p50 < 10_000 {
                holds &= is_past;
                let name = format!("{} ({})", result.cell.switch, result.cell.io);
                if !below.contains(&name) {
                    below.push(name);
                }
            }
        }
        let evidence = match (is_measured, below.is_empty()) {
            (false, _) => "round trips of small bursts were not measured: --latency-burst 4".into(),
            (true, true) => "no median is below 10 µs here".to_string(),
            (true, false) => format!("medians below 10 µs: {}", below.join(", ")),
        };
        let holds = is_measured.then_some(holds && !below.is_empty());
        Statement { text, holds, evidence }
    }
}

/// Packets per second that came.
fn rate(result: &CellResult) -> Option<f64> {
    result.of_throughput(|throughput| throughput.received_rate).map(|of| of.median)
}

/// The rate of the last of a group to that of the first.
fn ends<T>(group: &Varied<'_, T>) -> Option<f64> {
    Some(rate(group.last()?.1)? / rate(group.first()?.1)?)
}

/// The least and the greatest.
fn range(ratios: &[f64]) -> Option<String> {
    let least = ratios.iter().copied().reduce(f64::min)?;
    let greatest = ratios.iter().copied().reduce(f64::max)?;
    Some(match format!("{least:.2}") == format!("{greatest:.2}") {
        true => format!("{least:.2}"),
        false => format!("{least:.2} to {greatest:.2}"),
    })
}

/// A statement that holds if it does of each ratio.
fn judged(
    text: &'static str,
    ratios: &[f64],
    holds: impl Fn(&f64) -> bool,
    evidence: String,
) -> Statement {
    Statement { text, holds: (!ratios.is_empty()).then(|| ratios.iter().all(holds)), evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netbench::matrix::tests::cell;
    use crate::netbench::results::{RoundTrips, Sample, Throughput};
    use crate::netbench::{Cell, results};

    /// A cell with a rate and a 99th percentile in microseconds.
    fn result(cell: Cell, rates: &[f64], p99: u64) -> CellResult {
        let sample = |rate: &f64| Sample {
            throughput: Some(Throughput { received_rate: *rate, ..Throughput::default() }),
            round_trips: Some(RoundTrips {
                distribution: vec![(p99 * 1000, 100)],
                ..RoundTrips::default()
            }),
            ..Sample::default()
        };
        CellResult {
            cell,
            version: String::new(),
            has_processes: false,
            samples: rates.iter().map(sample).collect(),
            failures: Vec::new(),
        }
    }

    fn all(cells: Vec<CellResult>) -> Results {
        Results { version: results::VERSION, cells, ..Results::default() }
    }

    #[test]
    fn the_fastest_that_is_in_time_is_recommended() {
        let results = all(vec![
            result(cell("direct"), &[4e6], 5),
            result(cell("a"), &[2e6, 2.1e6, 2.1e6], 90),
            result(cell("b"), &[1e6], 20),
            result(cell("c"), &[1.9e6, 2e6, 2.2e6], 60),
        ]);
        let recommended = |p99: Option<u64>, size| {
            let p99 = p99.map(Duration::from_micros);
            results.recommended(&Pattern { pairs: 1, size, p99 })
        };
        // The ranges of a and c overlap, and c has the shorter round trips.
        let text = recommended(None, 64);
        assert!(text.starts_with("1vs1, 64 bytes: c: 2,000,000 packets/s, p99 60"), "{text}");
        assert!(text.contains("50 % of no switch; next a: "), "{text}");
        let text = recommended(Some(30), 64);
        assert!(text.starts_with("1vs1, 64 bytes, p99 at most 30µs: b: 1,000,000"), "{text}");
        assert!(text.contains("is faster, but too late"), "{text}");
        let text = recommended(Some(10), 64);
        assert!(text.contains("none. The nearest is b: "), "{text}");
        // Round trips of a by themselves count for its throughput.
        let mut apart = results.clone();
        let mut trips = result(Cell { latency_burst: 4, ..cell("a") }, &[1.0], 25);
        trips.samples.iter_mut().for_each(|sample| sample.throughput = None);
        apart.cells[1].samples.iter_mut().for_each(|sample| sample.round_trips = None);
        apart.cells.push(trips);
        let p99 = Some(Duration::from_micros(30));
        let text = apart.recommended(&Pattern { pairs: 1, size: 64, p99 });
        assert!(text.starts_with("1vs1, 64 bytes, p99 at most 30µs: a: 2,100,000"), "{text}");
        assert!(recommended(None, 128).contains("no measurement decides"));
        assert_eq!(results.recommendations().len(), 1);
    }

    #[test]
    fn statements_hold_or_do_not_or_were_not_measured() {
        let nothing = all(vec![result(Cell { latency_burst: 32, ..cell("a") }, &[1e6], 50)]);
        assert!(
            nothing.statements().iter().all(|of| of.holds.is_none()),
            "{:?}",
            nothing.statements()
        );
        let with = |rate: f64, set: &dyn Fn(&mut Cell)| {
            let mut cell = cell("linux-bridge");
            set(&mut cell);
            result(cell, &[rate], 50)
        };
        let of = |cells: Vec<CellResult>, number: usize| {
            all(cells).statements().swap_remove(number).holds
        };
        let io = |rate, io: &'static str| with(rate, &move |cell| cell.io = io.into());
        assert_eq!(of(vec![io(2.0, "af-packet-mmsg"), io(1.0, "udp")], 0), Some(true));
        assert_eq!(of(vec![io(1.0, "af-packet-mmsg"), io(2.0, "udp-mmsg")], 0), Some(false));
        let xdp = |rate| with(rate, &|c| (c.switch, c.io) = ("catena".into(), "af-xdp".into()));
        assert_eq!(of(vec![io(1.0, "af-packet-mmsg"), xdp(3.0)], 1), Some(true));
        assert_eq!(of(vec![io(1.0, "af-packet-mmsg"), xdp(1.5)], 1), Some(false));
        let burst = |rate, burst| with(rate, &move |cell| cell.burst = burst);
        assert_eq!(of(vec![burst(1.0, 32), burst(1.05, 256)], 2), Some(true));
        assert_eq!(of(vec![burst(1.0, 32), burst(1.2, 256)], 2), Some(false));
        let pairs = |rate, pairs| with(rate, &move |cell| cell.pairs = pairs);
        assert_eq!(of(vec![pairs(1.0, 1), pairs(1.5, 2)], 3), Some(true));
        assert_eq!(of(vec![pairs(1.0, 1), pairs(2.5, 2)], 3), Some(false));
        let asked = |rate, asked| with(rate, &move |cell| cell.rate = Some(asked));
        assert_eq!(of(vec![asked(10.0, 10), asked(15.0, 20), asked(14.5, 30)], 4), Some(true));
        assert_eq!(of(vec![asked(10.0, 10), asked(15.0, 20), asked(5.0, 30)], 4), Some(false));
        let trip = |io: &str, p50| {
            let cell = Cell { io: io.into(), latency_burst: 4, ..cell("a") };
            vec![result(cell, &[1.0], p50)]
        };
        assert_eq!(of(trip("af-xdp", 9), 5), Some(true));
        assert_eq!(of(trip("af-packet", 9), 5), Some(false));
        assert_eq!(of(trip("af-packet", 20), 5), Some(false));
    }
}
