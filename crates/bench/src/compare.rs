//! Two reports compared: what became slower, and how sure that is.

use serde::{Deserialize, Serialize};
use view::table::Table;

use crate::report::{Report, Throughput};
use crate::statistics::ratio;

/// What two reports come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each figure that both have.
    pub figures: Vec<Figure>,
    /// Why they may not compare.
    pub remarks: Vec<String>,
}

/// A figure in both reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is of, with its unit.
    pub name: String,
    /// In the old report.
    pub old: f64,
    /// In the new one.
    pub new: f64,
    /// New to old.
    pub ratio: f64,
    /// The ratio's confidence interval of 95 %; for throughput, the least and the greatest that the bounds allow.
    pub confidence: (f64, f64),
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is better by more than the tolerance, and the confidence interval leaves no doubt that it is better.
    Better,
    /// It may be the same.
    Same,
    /// It is worse by more than the tolerance, and the confidence interval leaves no doubt that it is worse.
    Worse,
}

impl Figure {
    fn new(
        name: String,
        (old, new): (f64, f64),
        (ratio, confidence): (f64, (f64, f64)),
        how: (bool, f64),
    ) -> Self {
        let (more_is_better, tolerance) = how;
        // As a cost: above 1 is worse.
        let cost = |ratio: f64| if more_is_better { 1.0 / ratio } else { ratio };
        let (a, b) = (cost(confidence.0), cost(confidence.1));
        let verdict = match () {
            () if cost(ratio) > 1.0 + tolerance && a.min(b) > 1.0 => Verdict::Worse,
            () if cost(ratio) < 1.0 / (1.0 + tolerance) && a.max(b) < 1.0 => Verdict::Better,
            () => Verdict::Same,
        };
        Self { name, old, new, ratio, confidence, verdict }
    }
}

/// Compares two reports; differences up to `tolerance`, a share, count as none.
pub fn compare(old: &Report, new: &Report, tolerance: f64) -> Comparison {
    let mut figures = Vec::new();
    if let (Some(before), Some(after)) = (&old.cost, &new.cost) {
        let (before, after) = (&before.time, &after.time);
        let found = ratio(&after.values, &before.values);
        let medians = (before.median, after.median);
        figures.push(Figure::new("ns per packet".into(), medians, found, (false, tolerance)));
    }
    figures.extend(rates((&old.throughput, &new.throughput), "", tolerance));
    for before in &old.sizes {
        let Some(after) = new.sizes.iter().find(|at| at.size == before.size) else { continue };
        let of = format!(", frames of {} bytes", before.size);
        figures.extend(rates((&before.throughput, &after.throughput), &of, tolerance));
    }
    for before in &old.latency {
        let Some(after) = new.latency.iter().find(|load| load.percent == before.percent) else {
            continue;
        };
        for (name, before_all, after_all) in
            [("p50", &before.p50, &after.p50), ("p99", &before.p99, &after.p99)]
        {
            let found = ratio(&after_all.values, &before_all.values);
            let values = (before_all.median / 1e3, after_all.median / 1e3);
            let name = format!("{name} at {} % of NDR, µs", before.percent);
            figures.push(Figure::new(name, values, found, (false, tolerance)));
        }
    }
    // A report without a figure has nothing to compare there.
    figures.retain(|figure| figure.ratio.is_finite());
    Comparison { figures, remarks: remarks(old, new) }
}

/// The throughputs that both have.
fn rates(
    (old, new): (&[Throughput], &[Throughput]),
    of: &str,
    tolerance: f64,
) -> impl Iterator<Item = Figure> {
    old.iter().filter_map(move |before| {
        let after = new.iter().find(|after| after.goal == before.goal)?;
        let (old_lower, new_lower) = (before.lower?, after.lower?);
        let (old_upper, new_upper) =
            (before.upper.unwrap_or(old_lower), after.upper.unwrap_or(new_lower));
        let found =
            (after.throughput / before.throughput, (new_lower / old_upper, new_upper / old_lower));
        let values = (before.throughput / 1e6, after.throughput / 1e6);
        let name = format!("{} Mpps{of}", before.goal);
        Some(Figure::new(name, values, found, (true, tolerance)))
    })
}

fn remarks(old: &Report, new: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut differ = |what: &str, a: &str, b: &str| {
        if a != b {
            remarks.push(format!("{what} differs: {a} before, {b} now"));
        }
    };
    differ("the chain", &old.chain, &new.chain);
    differ("the processor", &old.environment.processor, &new.environment.processor);
    differ("the kernel", &old.environment.kernel, &new.environment.kernel);
    let build = |report: &Report| if report.environment.debug_build { "debug" } else { "release" };
    differ("the build", build(old), build(new));
    differ("the arrival process", &old.arrivals, &new.arrivals);
    if old.traffic != new.traffic {
        remarks.push("the traffic differs".into());
    }
    remarks
}

impl Comparison {
    /// Whether anything is worse.
    pub fn is_worse(&self) -> bool {
        self.figures.iter().any(|figure| figure.verdict == Verdict::Worse)
    }

    /// The comparison as a table.
    pub fn render(&self) -> String {
        let mut table = Table::new(["", "old", "new", "new / old", "(95 %)", ""]);
        for figure in &self.figures {
            let verdict = match figure.verdict {
                Verdict::Better => "better",
                Verdict::Same => "",
                Verdict::Worse => "WORSE",
            };
            let (low, high) = figure.confidence;
            table.row([
                figure.name.clone(),
                format!("{:.3}", figure.old),
                format!("{:.3}", figure.new),
                format!("{:.3}", figure.ratio),
                format!("{low:.3}–{high:.3}"),
                verdict.into(),
            ]);
        }
        let remarks: String = self.remarks.iter().map(|remark| format!("! {remark}\n")).collect();
        table.render() + &remarks
    }
}
