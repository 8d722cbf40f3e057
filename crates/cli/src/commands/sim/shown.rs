//! What came of simulated runs, as text, JSON and plots.

use std::fmt::Write as _;
use std::path::Path;

use bench::plot::{Curves, Look, Scale};
use serde_json::{Value, json};
use sim::{Outlook, Report, Setup};
use view::table::Table;

use super::Common;
use super::asked::SimRequest;
use crate::failure::Failure;
use crate::outputs;

/// Runs and what they were asked for.
pub(super) struct Shown<'a> {
    pub(super) asked: &'a SimRequest,
    pub(super) common: &'a Common,
    pub(super) setups: &'a [Setup],
    pub(super) reports: &'a [Report],
    pub(super) oracles: &'a [(u64, Outlook)],
}

/// Notes that are shown as text.
const NOTES: usize = 8;

/// Microseconds; a dash where it is infinite.
fn us(time: Option<u64>) -> String {
    time.map_or("-".into(), |time| format!("{:.1}", time as f64 / 1e3))
}

impl Shown<'_> {
    /// All of it as JSON.
    pub(super) fn json(&self) -> Value {
        let oracles = self.oracles.iter().map(|(slo, of)| json!({"slo": slo, "cores": of.oracle}));
        json!({
            "trace": self.common.trace,
            "constants": self.asked.json(),
            "runs": self.reports,
            "oracle": oracles.collect::<Vec<_>>(),
        })
    }

    fn table(&self) -> String {
        let mut table = Table::new([
            "policy",
            "SLO us",
            "p50 us",
            "p99 us",
            "p99 with losses",
            "loss %",
            "cores",
            "dedicated",
            "lent",
            "idle",
            "broken windows",
        ]);
        for of in self.reports {
            table.row([
                of.policy.clone(),
                us(Some(of.slo)),
                us(of.latency.p50),
                us(of.latency.p99),
                us(of.with_losses.p99),
                format!("{:.3}", of.loss() * 100.0),
                format!("{:.2}", of.cores),
                format!("{:.2}", of.dedicated),
                format!("{:.2}", of.lent),
                format!("{:.2}", of.idle),
                format!("{} of {}", of.windows[1], of.windows[0]),
            ]);
        }
        for (slo, of) in self.oracles {
            let dash = || "-".to_string();
            let cores = format!("{:.2}", of.oracle);
            table.row([
                "oracle".into(),
                us(Some(*slo)),
                dash(),
                dash(),
                dash(),
                dash(),
                cores,
                dash(),
                dash(),
                dash(),
                dash(),
            ]);
        }
        table.render()
    }

    /// As people read it.
    pub(super) fn text(&self, is_one: bool) -> String {
        let mut text = String::new();
        if let (Some(of), Some(setup)) = (self.reports.first(), self.setups.first()) {
            let _ = writeln!(
                text,
                "{}: {} packets of {} flows in {:.3} s, through {} ({}) on {} cores of {:.2} GHz\n",
                self.common.trace,
                of.packets,
                of.flows,
                of.time as f64 / 1e9,
                setup.chain.name,
                setup.chain.source,
                setup.rack.cores(),
                setup.rack.core.hertz as f64 / 1e9,
            );
        }
        text.push_str(&self.table());
        let Some(of) = self.reports.first().filter(|_| is_one) else { return text };
        let orders = [
            ("times that flows were lent", of.lends),
            ("flows lent", of.lent_flows),
            ("chains split for a flow", of.splits),
            ("cores that only dealt", of.boosts),
            ("decisions", of.decisions),
            ("buckets and groups moved", of.moves),
            ("flows moved", of.migrated),
            ("changes of NICs", of.nic_updates),
            ("changes of the switch", of.switch_updates),
            ("packets out of order", of.out_of_order),
            ("packets with two owners", of.two_owners),
        ];
        text.push('\n');
        for (what, count) in orders.iter().filter(|(_, count)| *count > 0) {
            let _ = writeln!(text, "  {what}: {count}");
        }
        for note in of.notes.iter().take(NOTES) {
            let _ = writeln!(text, "  {:.3} s  {}", note.at as f64 / 1e9, note.why);
        }
        if of.notes.len() > NOTES {
            let _ = writeln!(text, "  and {} notes more: --json has them", of.notes.len() - NOTES);
        }
        text
    }

    /// The plot of a figure over SLOs.
    fn plot(
        &self,
        (title, label): (&str, &str),
        of: &dyn Fn(&Report) -> Option<f64>,
        is_log: bool,
    ) -> String {
        const LOOKS: [Look; 8] = [
            Look::Synthesised(2),
            Look::Elements(1),
            Look::Reference(0),
            Look::Synthesised(0),
            Look::Elements(0),
            Look::Reference(1),
            Look::Synthesised(1),
            Look::Elements(2),
        ];
        let mut names: Vec<&str> = Vec::new();
        for report in self.reports {
            if !names.contains(&report.policy.as_str()) {
                names.push(&report.policy);
            }
        }
        let points = |name: &str| {
            let own = self.reports.iter().filter(move |of| of.policy == name);
            own.filter_map(|report| Some((report.slo as f64 / 1e3, of(report)?)))
                .collect::<Vec<_>>()
        };
        let series =
            names.iter().zip(LOOKS).map(|(name, look)| (name.to_string(), look, points(name)));
        let series: Vec<_> = series.filter(|(.., points)| !points.is_empty()).collect();
        let values = || series.iter().flat_map(|(.., points)| points.iter().map(|point| point.1));
        let up = if is_log { Scale::log(label, values()) } else { Scale::linear(label, values()) };
        let across = Scale::linear("SLO [us]", self.reports.iter().map(|of| of.slo as f64 / 1e3));
        Curves { title: title.into(), across, up, series }.draw()
    }

    /// Writes the report into a folder.
    pub(super) fn write(&self, folder: &Path, is_one: bool) -> Result<(), Failure> {
        std::fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        outputs::write(&folder.join("report.json"), format!("{:#}\n", self.json()))?;
        outputs::write(&folder.join("report.txt"), self.text(is_one))?;
        if !is_one {
            let latency = |of: &Report| of.latency.p99.map(|time| time as f64 / 1e3);
            let svg = self.plot(("99th percentile of latency", "p99 [us]"), &latency, true);
            outputs::write(&folder.join("latency.svg"), svg)?;
            let svg = self.plot(("Cores on average", "cores"), &|of| Some(of.cores), false);
            outputs::write(&folder.join("cores.svg"), svg)?;
        }
        Ok(())
    }
}
