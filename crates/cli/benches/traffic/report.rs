//! What was measured, as lines for people, JSON, and a table for `perf/`.

use std::fmt::Write as _;

use serde_json::json;

use crate::Run;
use crate::support::Spread;

/// What the time of synthesised chains may be in relation to the better of the others.
const SLOWER: f64 = 1.05;
/// What the worst stretch of synthesised chains may be in relation to their median.
const WORSE: f64 = 1.3;

/// What a variant took in all rounds.
pub(crate) struct Taken {
    pub(crate) time: Spread,
    /// Nanoseconds per packet in each round, and before the traffic had settled.
    means: Vec<f64>,
    starts: Vec<f64>,
    /// The worst stretch in relation to the median one, of what each stretch took at least.
    pub(crate) worst: f64,
}

impl Taken {
    pub(crate) fn of(runs: &[Run]) -> Self {
        let means: Vec<f64> = runs.iter().map(Run::mean).collect();
        let starts = runs.iter().map(|run| run.start).collect();
        let least = |at: usize| Spread::of(runs.iter().map(|run| run.stretches[at])).least;
        let stretches = Spread::of((0..runs[0].stretches.len()).map(least));
        let worst = stretches.greatest / stretches.median;
        Self { time: Spread::of(means.iter().copied()), means, starts, worst }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "median": self.time.median, "least": self.time.least, "greatest": self.time.greatest,
            "start": Spread::of(self.starts.iter().copied()).median, "worst_stretch": self.worst,
        })
    }
}

/// How what programs sent compares with what elements sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Output {
    Same,
    /// The same packets in another order: elements that split a batch send each part on its own.
    OtherOrder,
    Different,
}

impl Output {
    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherOrder => "other order",
            Self::Different => "different",
        }
    }
}

/// What a chain took under some traffic.
pub(crate) struct Finding {
    pub(crate) chain: &'static str,
    pub(crate) traffic: String,
    /// How many packets were measured in each round, and how many were sent in all.
    pub(crate) packets: u64,
    pub(crate) sent: u64,
    pub(crate) bare: Taken,
    pub(crate) elements: Taken,
    pub(crate) synthesised: Taken,
    /// What FastClick took in each round, if it is there.
    pub(crate) fastclick: Vec<f64>,
    pub(crate) output: Output,
}

impl Finding {
    /// What stands above the lines.
    pub(crate) fn header() -> String {
        format!(
            "{:<12} {:<22} {:>6} {:>9} {:>22} {:>22} {:>6} {:>6} {:>12}",
            "chain",
            "traffic",
            "bare",
            "FastClick",
            "elements",
            "synthesised",
            "ratio",
            "start",
            "worst stretch"
        )
    }

    /// The time of synthesised chains in relation to elements, or to FastClick if that is faster.
    fn ratio(&self) -> f64 {
        let to = |others: &[f64]| Spread::of_ratios(&self.synthesised.means, others).median;
        // Without FastClick there is no second number.
        to(&self.elements.means).max(to(&self.fastclick))
    }

    /// The same until the traffic had settled, to elements.
    fn start(&self) -> f64 {
        Spread::of_ratios(&self.synthesised.starts, &self.elements.starts).median
    }

    fn is_slower(&self) -> bool {
        self.ratio() > SLOWER
    }

    fn is_uneven(&self) -> bool {
        self.synthesised.worst > WORSE
    }

    /// Whether it is neither slower nor uneven, and right.
    pub(crate) fn passes(&self) -> bool {
        !self.is_slower() && !self.is_uneven() && self.output != Output::Different
    }

    fn fastclick(&self) -> Option<f64> {
        let is_there = !self.fastclick.is_empty();
        is_there.then(|| Spread::of(self.fastclick.iter().copied()).median)
    }

    pub(crate) fn line(&self) -> String {
        format!(
            "{:<12} {:<22} {:>6.1} {:>9} {:>22} {:>22} {:>6.2} {:>6.2} {:>5.2} {:>6.2}{}{}{}",
            self.chain,
            self.traffic,
            self.bare.time.median,
            self.fastclick().map_or("-".to_owned(), |time| format!("{time:.1}")),
            self.elements.time.to_string(),
            self.synthesised.time.to_string(),
            self.ratio(),
            self.start(),
            self.elements.worst,
            self.synthesised.worst,
            if self.is_slower() { "  slower" } else { "" },
            if self.is_uneven() { "  uneven" } else { "" },
            match self.output {
                Output::Same => String::new(),
                output => format!("  output: {}", output.name()),
            },
        )
    }

    pub(crate) fn json(&self) -> String {
        json!({
            "chain": self.chain, "traffic": self.traffic, "packets": self.packets, "sent": self.sent,
            "bare": self.bare.json(), "elements": self.elements.json(), "synthesised": self.synthesised.json(),
            "fastclick": self.fastclick(), "ratio": self.ratio(), "start_ratio": self.start(),
            "slower": self.is_slower(), "uneven": self.is_uneven(), "output": self.output.name(),
        })
        .to_string()
    }
}

/// A table in Markdown, with a row for each traffic and a column for each chain: nanoseconds per packet of elements and
/// of programs; what does not pass is marked.
pub(crate) fn table(findings: &[Finding]) -> String {
    let mut chains: Vec<&str> = Vec::new();
    for finding in findings {
        if !chains.contains(&finding.chain) {
            chains.push(finding.chain);
        }
    }
    let mut table = format!("| traffic | bare | {} |\n|---|---:|", chains.join(" | "));
    table.push_str(&"---:|".repeat(chains.len()));
    for row in findings.chunk_by(|a, b| a.traffic == b.traffic) {
        let bare = Spread::of(row.iter().map(|finding| finding.bare.time.median)).median;
        let _ = write!(table, "\n| {} | {bare:.0} |", row[0].traffic);
        for chain in &chains {
            let Some(finding) = row.iter().find(|finding| finding.chain == *chain) else {
                table.push_str(" |");
                continue;
            };
            let [elements, synthesised] =
                [&finding.elements, &finding.synthesised].map(|taken| taken.time.median);
            let slower = if finding.is_slower() { "**" } else { "" };
            let uneven = if finding.is_uneven() { "~" } else { "" };
            let _ = write!(table, " {elements:.0} / {slower}{synthesised:.0}{slower}{uneven} |");
        }
    }
    table.push('\n');
    table
}
