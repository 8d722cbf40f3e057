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
    let (mut figures, mut missing) = (Vec::new(), Vec::new());
    match (&old.cost, &new.cost) {
        (Some(before), Some(after)) => {
            let (before, after) = (&before.time, &after.time);
            let found = ratio(&after.values, &before.values);
            let medians = (before.median, after.median);
            figures.push(Figure::new("ns per packet".into(), medians, found, (false, tolerance)));
        }
        (Some(_), None) => missing.push("ns per packet".to_string()),
        (None, _) => {}
    }
    let mut add_rates = |old: &[Throughput], new: &[Throughput], of: &str| {
        for before in old {
            let name = format!("{} Mpps{of}", before.goal);
            match new.iter().find(|after| after.goal == before.goal) {
                Some(after) => figures.extend(rate((before, after), name, tolerance)),
                None => missing.push(name),
            }
        }
    };
    add_rates(&old.throughput, &new.throughput, "");
    for before in &old.sizes {
        let after = new.sizes.iter().find(|at| at.size == before.size);
        let after = after.map_or(&[][..], |after| &after.throughput);
        let of = format!(", frames of {} bytes", before.size);
        add_rates(&before.throughput, after, &of);
    }
    for before in &old.latency {
        let Some(after) = new.latency.iter().find(|load| load.percent == before.percent) else {
            missing.push(format!("latency at {} % of NDR", before.percent));
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
    let mut remarks = remarks(old, new);
    if !missing.is_empty() {
        remarks.push(format!("not in the new report: {}", missing.join("; ")));
    }
    Comparison { figures, remarks }
}

/// A throughput of both; one that is no longer found is worse, whatever the tolerance.
fn rate(
    (before, after): (&Throughput, &Throughput),
    name: String,
    tolerance: f64,
) -> Option<Figure> {
    let old_lower = before.lower?;
    let old_upper = before.upper.unwrap_or(old_lower);
    let confidence = after
        .lower
        .map_or((0.0, 0.0), |lower| (lower / old_upper, after.upper.unwrap_or(lower) / old_lower));
    let found = (after.throughput / before.throughput, confidence);
    let values = (before.throughput / 1e6, after.throughput / 1e6);
    Some(Figure::new(name, values, found, (true, tolerance)))
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
    differ("the place", &old.place, &new.place);
    differ("the number of cores", &old.cores.to_string(), &new.cores.to_string());
    if old.traffic != new.traffic {
        remarks.push("the traffic differs".into());
    }
    remarks
}

impl Comparison {
    /// Whether there is nothing that both have: nothing is known of better or worse.
    pub fn is_empty(&self) -> bool {
        self.figures.is_empty()
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::report;

    #[test]
    fn what_is_no_longer_found_is_worse() {
        let (old, mut new) = (report(), report());
        assert!(!compare(&old, &new, 0.05).is_worse());
        (new.throughput[0].lower, new.throughput[0].throughput) = (None, 0.0);
        let found = compare(&old, &new, 1e9);
        let ndr = found.figures.iter().find(|figure| figure.name == "NDR Mpps").unwrap();
        assert_eq!((ndr.verdict, ndr.ratio, ndr.confidence), (Verdict::Worse, 0.0, (0.0, 0.0)));
        assert!(found.is_worse() && found.render().contains("WORSE"), "{}", found.render());
        // What was found only now is nothing to compare with.
        assert!(!compare(&new, &old, 0.05).figures.iter().any(|figure| figure.name == "NDR Mpps"));
    }

    #[test]
    fn what_only_one_report_has_is_remarked() {
        let (old, mut new) = (report(), report());
        (new.cost, new.cores, new.place) = (None, 2, "elsewhere".into());
        new.latency.clear();
        new.throughput.pop();
        new.sizes.clear();
        let found = compare(&old, &new, 0.05);
        let said = found.remarks.join("\n");
        for words in [
            "the place differs: in memory",
            "the number of cores differs: 1 before, 2 now",
            "not in the new report: ns per packet; PDR Mpps; NDR Mpps, frames of imix bytes; PDR Mpps, frames of imix \
             bytes; latency at 90 % of NDR",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!found.is_empty() && !found.is_worse());
        new.throughput.clear();
        assert!(compare(&old, &new, 0.05).is_empty());
    }
}
