//! What the rounds of a measurement came to.

use bench::plot::{Groups, Look, Scale, Shape};
use bench::profile::counters::{Missing, reasons};
use bench::profile::formula::{BySource, Decomposition, Source, decompose};
use bench::statistics::Spread;

use crate::paper::Page;
use crate::testbed::{Measured, Profile};

/// Measurements of one kind, one of each round.
#[derive(Default)]
pub(crate) struct Cell(pub(crate) Vec<Measured>);

impl Cell {
    fn spread(&self, of: impl Fn(&Measured) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.0.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }

    /// Percentiles of the latency in each round in which anything came.
    fn percentiles(&self) -> impl Iterator<Item = [f64; 5]> {
        let came = self.0.iter().filter(|measured| measured.arrived.lost < 1.0);
        came.map(|measured| measured.arrived.percentiles)
    }

    /// A percentile of the latency, by its place in [`Arrived::percentiles`](crate::testbed::Arrived).
    pub(crate) fn percentile(&self, index: usize) -> Spread {
        Spread::of(self.percentiles().map(|all| all[index]))
    }

    /// The median latency in microseconds.
    pub(crate) fn median(&self) -> Spread {
        self.percentile(2)
    }

    /// Percentiles of the latency, each of the median round.
    pub(crate) fn shape(&self) -> Shape {
        Shape::Box([0, 1, 2, 3, 4].map(|index| self.percentile(index).median))
    }

    /// The 99th less the 1st percentile, in microseconds.
    pub(crate) fn jitter(&self) -> Spread {
        Spread::of(self.percentiles().map(|[first, .., last]| last - first))
    }

    /// Per cent of the packets that did not come, in the worst round.
    pub(crate) fn lost(&self) -> f64 {
        let worst = self.0.iter().map(|measured| measured.arrived.lost * 100.0);
        worst.fold(0.0, f64::max)
    }

    /// Packets that came, in thousands per second.
    pub(crate) fn rate(&self) -> Spread {
        Spread::of(self.0.iter().map(|measured| measured.arrived.rate / 1e3))
    }

    /// Whether the sender was slower than asked in a round.
    pub(crate) fn is_slower(&self) -> bool {
        self.0.iter().any(|measured| measured.arrived.slower)
    }

    /// What the profiler found.
    pub(crate) fn profiled(&self, of: impl Fn(&Profile) -> f64) -> Option<Spread> {
        self.spread(|measured| measured.profile.as_ref().map(&of))
    }

    /// Events of a packet.
    fn events(&self, source: Source) -> Option<Spread> {
        self.spread(|measured| measured.profile.as_ref()?.events.get(source))
    }

    fn formula(&self, costs: &BySource) -> Vec<Decomposition> {
        let profiles = self.0.iter().filter_map(|measured| measured.profile.as_ref());
        profiles.map(|profile| decompose(&profile.events, costs)).collect()
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = &Missing> {
        let profiles = self.0.iter().filter_map(|measured| measured.profile.as_ref());
        profiles.flat_map(|profile| &profile.missing)
    }
}

/// Levels of memory, in the columns of tables 6.4 and 6.7.
const LEVELS: [Source; 4] = [Source::L1, Source::L2, Source::L3, Source::Memory];

/// The columns of [`profile`].
pub(crate) const PROFILE: [&str; 6] = [
    "RunTime, µs",
    "system calls",
    "context switches",
    "these by the formula, µs",
    "the whole formula, µs",
    "L1/L2/L3/DRAM references",
];

/// What the profiler found of a packet: the cells of a row.
pub(crate) fn profile(cell: &Cell, costs: &BySource) -> [String; 6] {
    let text = |spread: Option<Spread>| spread.map_or(String::new(), two);
    let found = cell.formula(costs);
    let time = |found: &Decomposition| -> Option<f64> {
        let of = |source| found.terms.iter().find(|term| term.source == source)?.time;
        Some((of(Source::ContextSwitch)? + of(Source::SystemCall)?) / 1e3)
    };
    let of_system: Vec<f64> = found.iter().filter_map(time).collect();
    let whole: Vec<f64> =
        found.iter().filter(|f| f.is_complete()).map(|found| found.total / 1e3).collect();
    let some = |values: Vec<f64>| (!values.is_empty()).then(|| Spread::of(values));
    let references: Option<Vec<String>> = LEVELS
        .map(|level| Some(format!("{:.0}", cell.events(level)?.median)))
        .into_iter()
        .collect();
    [
        text(cell.profiled(|profile| profile.run)),
        text(cell.events(Source::SystemCall)),
        text(cell.events(Source::ContextSwitch)),
        text(some(of_system)),
        text(some(whole)),
        references.map_or(String::new(), |all| all.join("/")),
    ]
}

/// Says why columns are empty.
pub(crate) fn explain_empty<'a>(page: &mut Page, cells: impl IntoIterator<Item = &'a Cell>) {
    let missing: Vec<Missing> = cells.into_iter().flat_map(Cell::missing).cloned().collect();
    for reason in reasons(&missing) {
        page.put(format_args!("\nEmpty columns: {reason}."));
    }
}

/// A spread with two decimal places.
pub(crate) fn two(spread: Spread) -> String {
    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.least, spread.greatest)
}

/// The latencies of cells as boxes: rows are series, columns groups.
pub(crate) fn boxes(
    title: &str,
    across: &str,
    groups: Vec<String>,
    series: Vec<(String, Look, Vec<&Cell>)>,
) -> String {
    let all = series.iter().flat_map(|(.., cells)| cells);
    let all = all.flat_map(|cell| [0, 1, 2, 3, 4].map(|index| cell.percentile(index).median));
    let up = Scale::log("µs from when a frame was due", all);
    let shapes = |cells: Vec<&Cell>| cells.into_iter().map(Cell::shape).collect();
    let series = series.into_iter().map(|(name, look, cells)| (name, look, shapes(cells)));
    Groups { title: title.into(), across: across.into(), groups, up, series: series.collect() }
        .draw()
}
