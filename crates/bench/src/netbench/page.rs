//! The results as a page of HTML with figures.

use std::collections::BTreeMap;

use view::svg::escape;
use view::table::grouped;

use super::Cell;
use super::results::{CellResult, Results};
use crate::page::Page;
use crate::plot::{Curves, Look, Point, Ranking, Scale};
use crate::report::distribution;
use crate::statistics::latencies;

/// How switches look, in their order.
const LOOKS: [Look; 8] = [
    Look::Reference(0),
    Look::Elements(1),
    Look::Synthesised(1),
    Look::Reference(1),
    Look::Elements(0),
    Look::Synthesised(0),
    Look::Elements(2),
    Look::Synthesised(2),
];

/// Figures of a kind that a page has at most.
const MOST: usize = 24;

/// A dimension of the matrix that figures go along.
struct Dimension {
    name: &'static str,
    of: fn(&Cell, burst: usize) -> Option<f64>,
    is_log: bool,
    /// Whether the others of a cell say this dimension, too.
    others: [bool; 5],
}

/// A cell in words: its pairs, bytes, burst, rate that is asked for, and cores, those that are wanted.
fn words(cell: &Cell, burst: usize, rate: Option<u64>, wanted: [bool; 5]) -> String {
    let plural = if cell.cores == 1 { "" } else { "s" };
    let all = [
        Some(format!("{0}vs{0}", cell.pairs)),
        Some(format!("{} bytes", cell.size)),
        Some(format!("bursts of {burst}")),
        rate.map(|rate| format!("{} packets/s asked", grouped(rate))),
        Some(format!("{} core{plural} of the switch", cell.cores)),
    ];
    let wanted = all.into_iter().zip(wanted).filter_map(|(text, wanted)| text.filter(|_| wanted));
    wanted.collect::<Vec<_>>().join(", ")
}

const DIMENSIONS: [Dimension; 5] = [
    Dimension {
        name: "bytes of a frame",
        of: |cell, _| Some(cell.size as f64),
        is_log: true,
        others: [true, false, true, true, true],
    },
    Dimension {
        name: "packets of a burst",
        of: |_, burst| Some(burst as f64),
        is_log: true,
        others: [true, true, false, true, true],
    },
    Dimension {
        name: "pairs of applications",
        of: |cell, _| Some(cell.pairs as f64),
        is_log: false,
        others: [false, true, true, true, true],
    },
    Dimension {
        name: "Mpps that each sender is asked for",
        of: |cell, _| cell.rate.map(|rate| rate as f64 / 1e6),
        is_log: false,
        others: [true, true, true, false, true],
    },
    Dimension {
        name: "cores of the switch",
        of: |cell, _| Some(cell.cores as f64),
        is_log: false,
        others: [true, true, true, true, false],
    },
];

/// What figures show of a cell.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(&CellResult) -> Option<f64>,
    /// Whether it is of clients, which have bursts and rates of their own.
    is_of_clients: bool,
}

impl Quantity {
    fn burst(&self, cell: &Cell) -> usize {
        if self.is_of_clients { cell.latency_burst } else { cell.burst }
    }

    /// The rate that a cell asked for, if it asked for one.
    fn rate(&self, cell: &Cell) -> Option<u64> {
        if self.is_of_clients { None } else { cell.rate }
    }
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "Throughput",
        unit: "Mpps",
        of: |result| Some(result.of_throughput(|t| t.received_rate)?.median / 1e6),
        is_of_clients: false,
    },
    Quantity {
        name: "Throughput",
        unit: "Gb/s",
        of: |result| Some(result.gigabits(result.of_throughput(|t| t.received_rate)?.median)),
        is_of_clients: false,
    },
    Quantity {
        name: "Throughput of a pair",
        unit: "Mpps",
        of: |result| {
            let pairs = result.cell.pairs as f64;
            Some(result.of_throughput(|t| t.received_rate)?.median / 1e6 / pairs)
        },
        is_of_clients: false,
    },
    Quantity {
        name: "Round trip, median",
        unit: "µs",
        of: |result| result.round_trips().map(|trips| trips.p50 as f64 / 1e3),
        is_of_clients: true,
    },
];

/// What series of figures are of: a switch, and how it was loaded where that differs.
struct Labels {
    /// Of each cell.
    of: Vec<String>,
    /// Each once.
    all: Vec<String>,
}

impl Labels {
    fn new(results: &Results) -> Self {
        const WORDS: [&str; 2] = ["I/O", "direction"];
        const NUMBERS: [&str; 4] = ["touch", "s", "warm-up", "RTT asked/s"];
        let dimensions = results.dimensions();
        let label = |cell: &Cell| {
            let more = dimensions.iter().filter_map(|(name, of)| {
                let is_word = WORDS.contains(name);
                let number = || NUMBERS.contains(name).then(|| format!(", {name} {}", of(cell)));
                if is_word { Some(format!(", {}", of(cell))) } else { number() }
            });
            cell.switch.clone() + &more.collect::<String>()
        };
        let of: Vec<String> = results.cells.iter().map(|result| label(&result.cell)).collect();
        let mut all: Vec<String> = Vec::new();
        for label in &of {
            if !all.contains(label) {
                all.push(label.clone());
            }
        }
        Self { of, all }
    }

    fn look(&self, label: &str) -> Look {
        let at = self.all.iter().position(|known| known == label).unwrap_or(0);
        LOOKS[at % LOOKS.len()]
    }

    fn series(&self, group: &BTreeMap<&str, Vec<Point>>) -> Vec<(String, Look, Vec<Point>)> {
        let all = self.all.iter().filter_map(|label| {
            let mut points = group.get(label.as_str())?.clone();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Some((label.clone(), self.look(label), points))
        });
        all.collect()
    }
}

impl Results {
    /// The results as a page. `csv` and `json` are the names of files beside it.
    pub fn page(&self, csv: &str, json: &str) -> String {
        let mut page = Page::begin("Networks between containers");
        page.put(format_args!(
            "<p>Measured by <code>catena netbench</code>: {} of each cell, in an order that seed {} drew. \
             All samples are in <a href=\"{csv}\">{csv}</a> and <a href=\"{json}\">{json}</a>.</p>",
            self.runs(),
            self.seed
        ));
        for remark in self.remarks.iter().chain(&self.failures()) {
            page.remark(remark);
        }
        if self.interrupted {
            page.remark("interrupted: this is what was measured until then");
        }
        if let Some(table) = self.throughput_table() {
            page.heading("Throughput");
            page.0.push_str(&table.html());
        }
        if let Some(table) = self.round_trip_table() {
            page.heading("Round trips");
            let rate = self.common(|cell| cell.latency_rate).map(grouped);
            let rate =
                rate.map_or(String::new(), |r| format!("At {r} packets a second of each pair. "));
            page.put(format_args!("<p>{rate}Times count from when packets were due.</p>"));
            page.0.push_str(&table.html());
        }
        let recommendations = self.recommendations();
        if !recommendations.is_empty() {
            page.heading("Which to take");
            let items = recommendations.iter().map(|text| format!("<li>{}</li>", escape(text)));
            page.put(format_args!("<ul>{}</ul>", items.collect::<String>()));
        }
        page.heading("Figures");
        let (figures, left_out) = self.figures();
        figures.iter().for_each(|(_, svg)| page.0.push_str(svg));
        if left_out > 0 {
            page.put(format_args!("<p>{left_out} more figures are left out.</p>"));
        }
        page.heading("Statements of Ara's thesis");
        page.0.push_str(&self.statements_table().html());
        page.heading("How it was measured");
        page.put(format_args!("<table>"));
        for (name, value) in self.facts() {
            let (name, value) = (escape(name), escape(&value));
            page.put(format_args!("<tr><td>{name}</td><td>{value}</td></tr>"));
        }
        page.put(format_args!("</table>"));
        page.end()
    }

    /// All figures, each with its title; and how many are left out.
    pub(super) fn figures(&self) -> (Vec<(String, String)>, usize) {
        let labels = Labels::new(self);
        let (mut all, mut left_out) = (Vec::new(), 0);
        for quantity in &QUANTITIES {
            left_out += self.along(quantity, &labels, &mut all);
        }
        self.distributions(&labels, &mut all);
        (all, left_out)
    }

    /// Draws a quantity along each dimension that has several values; side by side, where none has. How many figures are left
    /// out.
    fn along(
        &self,
        quantity: &Quantity,
        labels: &Labels,
        all: &mut Vec<(String, String)>,
    ) -> usize {
        let (mut is_drawn, mut count) = (false, 0);
        for dimension in &DIMENSIONS {
            let mut groups: BTreeMap<String, BTreeMap<&str, Vec<Point>>> = BTreeMap::new();
            for (result, label) in self.cells.iter().zip(&labels.of) {
                let cell = &result.cell;
                let burst = quantity.burst(cell);
                if let (Some(x), Some(y)) = ((dimension.of)(cell, burst), (quantity.of)(result)) {
                    let rest = words(cell, burst, quantity.rate(cell), dimension.others);
                    let group = groups.entry(rest).or_default();
                    let points = group.entry(label).or_default();
                    // Cells that differ in what is not of this quantity are measured again and again.
                    if points.iter().all(|point| point.0 != x) {
                        points.push((x, y));
                    }
                }
            }
            for (rest, group) in groups {
                let xs = || group.values().flatten().map(|point| point.0);
                let Some(first) = xs().next() else { continue };
                if xs().all(|x| x == first) {
                    continue;
                }
                is_drawn = true;
                count += 1;
                if count > MOST {
                    continue;
                }
                let ys = group.values().flatten().map(|point| point.1);
                let scale = if dimension.is_log {
                    Scale::log
                } else {
                    |label: &str, values| Scale::linear(label, values)
                };
                let (xs, ys): (Vec<f64>, Vec<f64>) = (xs().collect(), ys.collect());
                let title = format!("{}: {rest}", quantity.name);
                let plot = Curves {
                    title: title.clone(),
                    across: scale(dimension.name, xs),
                    up: Scale::linear(quantity.unit, ys),
                    series: labels.series(&group),
                };
                all.push((title, plot.draw()));
            }
        }
        if is_drawn {
            return count.saturating_sub(MOST);
        }
        let bars = self.cells.iter().zip(&labels.of).filter_map(|(result, label)| {
            Some((label.clone(), labels.look(label), (quantity.of)(result)?))
        });
        let bars: Vec<_> = bars.collect();
        if bars.len() > 1 {
            let ranking = Ranking { title: quantity.name.into(), unit: quantity.unit.into(), bars };
            all.push((quantity.name.into(), ranking.draw()));
        }
        0
    }

    /// How round trips are distributed, for each set of parameters.
    fn distributions(&self, labels: &Labels, all: &mut Vec<(String, String)>) {
        let mut groups: BTreeMap<String, BTreeMap<&str, Vec<Point>>> = BTreeMap::new();
        for (result, label) in self.cells.iter().zip(&labels.of) {
            let mut trips_of = latencies();
            let trips = result.samples.iter().filter_map(|sample| sample.round_trips.as_ref());
            for (value, count) in trips.flat_map(|trips| &trips.distribution) {
                trips_of.saturating_record_n(*value, *count);
            }
            let cell = &result.cell;
            let name = words(cell, cell.latency_burst, None, [true, true, true, false, true]);
            let left = 1.0 / trips_of.len().max(1) as f64;
            let points = distribution(&trips_of)
                .into_iter()
                .map(|(share, value)| (1.0 / (1.0 - share).max(left), value as f64 / 1e3));
            let points: Vec<Point> = points.collect();
            if !trips_of.is_empty() {
                groups.entry(name).or_default().entry(label).or_insert(points);
            }
        }
        for (name, group) in groups.iter().take(MOST) {
            let points = || group.values().flatten();
            let title = format!("Round trips: {name}");
            let plot = Curves {
                title: title.clone(),
                across: Scale::percentiles("percentile", points().map(|point| point.0)),
                up: Scale::log("µs", points().map(|point| point.1)),
                series: labels.series(group),
            };
            all.push((title, plot.draw()));
        }
    }

    /// How it was measured.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let mut all = Vec::new();
        let mut fact = |name, value| all.push((name, value));
        fact("processor", machine.processor.clone());
        fact("CPUs", machine.cpus.to_string());
        fact("virtual machine", if machine.is_virtual { "yes" } else { "no" }.into());
        fact("governor", machine.governor.clone().unwrap_or_else(|| "not known".into()));
        fact("isolated CPUs", machine.isolated.clone().unwrap_or_else(|| "none".into()));
        fact("kernel", machine.kernel.clone());
        for host in &self.hosts {
            let machine = &host.machine;
            let of = format!(
                "{}: {}, {} CPUs, Linux {}, at {}",
                host.name, machine.processor, machine.cpus, machine.kernel, host.uplink
            );
            fact("host", of);
        }
        if !self.settings.is_empty() {
            fact("settings meanwhile", self.settings.join("; "));
        }
        let mut modes: Vec<&str> = self.cells.iter().map(|of| of.cell.io.as_str()).collect();
        modes.sort_unstable();
        modes.dedup();
        fact("I/O modes of applications", modes.join(", "));
        if let Some(touches) = self.common(|cell| cell.touches) {
            fact("payloads", if touches { "written and read" } else { "not touched" }.into());
        }
        let mut versions: Vec<String> = Vec::new();
        for result in &self.cells {
            let version = format!("{}: {}", result.cell.switch, result.version);
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        fact("switches", versions.join(", "));
        let build = if machine.debug_build { ", a debug build" } else { "" };
        let commit =
            machine.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
        fact("Catena", format!("{}{commit}{build}", machine.version));
        fact("command", machine.command.join(" "));
        fact("seconds since 1970", machine.unix_time.to_string());
        all
    }
}
