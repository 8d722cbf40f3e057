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
    of: fn(&Cell) -> Option<f64>,
    is_log: bool,
    /// The others of a cell, as words.
    rest: fn(&Cell) -> String,
}

fn pairs(cell: &Cell) -> String {
    format!("{0}vs{0}", cell.pairs)
}

fn asked(cell: &Cell) -> String {
    cell.rate.map_or(String::new(), |rate| format!(", {} packets/s asked", grouped(rate)))
}

fn cores(cell: &Cell) -> String {
    let plural = if cell.cores == 1 { "" } else { "s" };
    format!("{} core{plural} of the switch", cell.cores)
}

const DIMENSIONS: [Dimension; 5] = [
    Dimension {
        name: "bytes of a frame",
        of: |cell| Some(cell.size as f64),
        is_log: true,
        rest: |c| format!("{}, bursts of {}{}, {}", pairs(c), c.burst, asked(c), cores(c)),
    },
    Dimension {
        name: "packets of a burst",
        of: |cell| Some(cell.burst as f64),
        is_log: true,
        rest: |c| format!("{}, {} bytes{}, {}", pairs(c), c.size, asked(c), cores(c)),
    },
    Dimension {
        name: "pairs of applications",
        of: |cell| Some(cell.pairs as f64),
        is_log: false,
        rest: |c| format!("{} bytes, bursts of {}{}, {}", c.size, c.burst, asked(c), cores(c)),
    },
    Dimension {
        name: "Mpps that each sender is asked for",
        of: |cell| cell.rate.map(|rate| rate as f64 / 1e6),
        is_log: false,
        rest: |c| format!("{}, {} bytes, bursts of {}, {}", pairs(c), c.size, c.burst, cores(c)),
    },
    Dimension {
        name: "cores of the switch",
        of: |cell| Some(cell.cores as f64),
        is_log: false,
        rest: |c| format!("{}, {} bytes, bursts of {}{}", pairs(c), c.size, c.burst, asked(c)),
    },
];

/// What figures show of a cell.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(&CellResult) -> Option<f64>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "Throughput",
        unit: "Mpps",
        of: |result| Some(result.of_throughput(|t| t.received_rate)?.median / 1e6),
    },
    Quantity {
        name: "Throughput",
        unit: "Gb/s",
        of: |result| Some(result.gigabits(result.of_throughput(|t| t.received_rate)?.median)),
    },
    Quantity {
        name: "Throughput of a pair",
        unit: "Mpps",
        of: |result| {
            let pairs = result.cell.pairs as f64;
            Some(result.of_throughput(|t| t.received_rate)?.median / 1e6 / pairs)
        },
    },
    Quantity {
        name: "Round trip, median",
        unit: "µs",
        of: |result| result.round_trips().map(|trips| trips.p50 as f64 / 1e3),
    },
];

impl Results {
    /// The results as a page. `csv` and `json` are the names of files beside it.
    pub fn page(&self, csv: &str, json: &str) -> String {
        let mut page = Page::begin("Networks between containers");
        page.put(format_args!(
            "<p>Measured by <code>catena netbench</code>: {} runs of {} s of each cell, in an order that seed {} drew. \
             All samples are in <a href=\"{csv}\">{csv}</a> and <a href=\"{json}\">{json}</a>.</p>",
            self.repeat, self.seconds, self.seed
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
            page.put(format_args!(
                "<p>At {} packets a second of each pair, counted from when packets were due.</p>",
                grouped(self.latency_rate)
            ));
            page.0.push_str(&table.html());
        }
        page.heading("Figures");
        for quantity in &QUANTITIES {
            self.figures(&mut page, quantity);
        }
        self.distributions(&mut page);
        self.facts(&mut page);
        page.end()
    }

    fn switches(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for result in &self.cells {
            if !all.contains(&result.cell.switch.as_str()) {
                all.push(&result.cell.switch);
            }
        }
        all
    }

    fn look(&self, switch: &str) -> Look {
        let at = self.switches().iter().position(|known| *known == switch).unwrap_or(0);
        LOOKS[at % LOOKS.len()]
    }

    /// A quantity along each dimension that has several values; side by side, where none has.
    fn figures(&self, page: &mut Page, quantity: &Quantity) {
        let (mut is_drawn, mut count) = (false, 0);
        for dimension in &DIMENSIONS {
            let mut groups: BTreeMap<String, BTreeMap<&str, Vec<Point>>> = BTreeMap::new();
            for result in &self.cells {
                let cell = &result.cell;
                if let (Some(x), Some(y)) = ((dimension.of)(cell), (quantity.of)(result)) {
                    let group = groups.entry((dimension.rest)(cell)).or_default();
                    let points = group.entry(&cell.switch).or_default();
                    // Cells that differ in bursts of clients alone have the same throughput.
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
                let plot = Curves {
                    title: format!("{}: {rest}", quantity.name),
                    across: scale(dimension.name, xs),
                    up: Scale::linear(quantity.unit, ys),
                    series: self.series(&group),
                };
                page.0.push_str(&plot.draw());
            }
        }
        if count > MOST {
            page.put(format_args!("<p>{} more figures are left out.</p>", count - MOST));
        }
        if is_drawn {
            return;
        }
        let bars = self.cells.iter().filter_map(|result| {
            let switch = &result.cell.switch;
            Some((switch.clone(), self.look(switch), (quantity.of)(result)?))
        });
        let bars: Vec<_> = bars.collect();
        if bars.len() > 1 {
            let ranking = Ranking { title: quantity.name.into(), unit: quantity.unit.into(), bars };
            page.0.push_str(&ranking.draw());
        }
    }

    fn series(&self, group: &BTreeMap<&str, Vec<Point>>) -> Vec<(String, Look, Vec<Point>)> {
        let all = self.switches();
        let all = all.iter().filter_map(|switch| {
            let mut points = group.get(switch)?.clone();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Some(((*switch).to_string(), self.look(switch), points))
        });
        all.collect()
    }

    /// How round trips are distributed, for each set of parameters.
    fn distributions(&self, page: &mut Page) {
        let mut groups: BTreeMap<String, BTreeMap<&str, Vec<Point>>> = BTreeMap::new();
        for result in &self.cells {
            let mut all = latencies();
            let trips = result.samples.iter().filter_map(|sample| sample.round_trips.as_ref());
            for (value, count) in trips.flat_map(|trips| &trips.distribution) {
                all.saturating_record_n(*value, *count);
            }
            let cell = &result.cell;
            let name =
                format!("{}, {} bytes, bursts of {}", pairs(cell), cell.size, cell.latency_burst);
            let left = 1.0 / all.len().max(1) as f64;
            let points = distribution(&all)
                .into_iter()
                .map(|(share, value)| (1.0 / (1.0 - share).max(left), value as f64 / 1e3));
            let points: Vec<Point> = points.collect();
            if !all.is_empty() {
                groups.entry(name).or_default().entry(&cell.switch).or_insert(points);
            }
        }
        for (name, group) in groups.iter().take(MOST) {
            let points = || group.values().flatten();
            let plot = Curves {
                title: format!("Round trips: {name}"),
                across: Scale::percentiles("percentile", points().map(|point| point.0)),
                up: Scale::log("µs", points().map(|point| point.1)),
                series: self.series(group),
            };
            page.0.push_str(&plot.draw());
        }
    }

    fn facts(&self, page: &mut Page) {
        let machine = &self.machine;
        page.heading("How it was measured");
        page.put(format_args!("<table>"));
        let mut fact = |name: &str, value: String| {
            page.put(format_args!("<tr><td>{}</td><td>{}</td></tr>", escape(name), escape(&value)));
        };
        fact("processor", machine.processor.clone());
        fact("CPUs", machine.cpus.to_string());
        fact("virtual machine", if machine.is_virtual { "yes" } else { "no" }.into());
        fact("governor", machine.governor.clone().unwrap_or_else(|| "not known".into()));
        fact("isolated CPUs", machine.isolated.clone().unwrap_or_else(|| "none".into()));
        fact("kernel", machine.kernel.clone());
        fact("I/O mode of applications", self.io.clone());
        fact("payloads", if self.touches { "written and read" } else { "not touched" }.into());
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
        page.put(format_args!("</table>"));
    }
}
