//! The page about the scaling of Quadrant and of Metron: method, figures, and what was reached.

use std::fmt::Write as _;

use bench::plot::{Look, Scale};
use sim::Report;
use sim::experiments::scaling::{CHAINS, FASTER, INJECTED, SLOS, SWEPT, Trial, injected, metron_9};

use super::each;
use super::page::{Page, number, us};
use crate::failure::Failure;

/// What was run.
pub(super) struct Ran {
    trials: Vec<(Trial, Report)>,
    nine: Report,
}

/// A microsecond.
const US: u64 = 1000;

impl Ran {
    pub(super) fn new() -> Result<Self, Failure> {
        let all = Trial::all();
        // The longest first.
        let mut runs: Vec<Option<&Trial>> = vec![None];
        runs.extend(all.iter().rev().map(Some));
        let mut reports = each(&runs, |trial| trial.map_or_else(metron_9, Trial::run))?;
        let rest = reports.split_off(1);
        let nine = reports.pop().ok_or_else(|| "a run broke off".to_string())?;
        Ok(Self { trials: all.into_iter().rev().zip(rest).collect(), nine })
    }

    /// Seconds of figure 9, without those after its end in which cores become empty.
    fn seconds(&self) -> &[sim::Second] {
        let end = INJECTED.last().map_or(0, |(end, _)| *end as usize);
        &self.nine.seconds[..end.min(self.nine.seconds.len())]
    }

    fn report(&self, trial: &Trial) -> Option<&Report> {
        self.trials.iter().find(|(of, _)| of == trial).map(|(_, report)| report)
    }

    /// The page.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::new(BEGINNING);
        self.goals(&mut page);
        self.seven(&mut page);
        self.six(&mut page);
        self.eight(&mut page);
        self.sweep(&mut page);
        self.nine(&mut page);
        page
    }

    fn p99(&self, trial: &Trial) -> Option<u64> {
        self.report(trial)?.latency.p99
    }

    /// Of a chain: what Metron reaches, and Quadrant's run that is below that by the least, or the fastest if none is.
    fn pair(&self, chain: usize) -> Option<(&Report, &Report)> {
        let metron = self.report(&Trial::metron(chain))?;
        let all = SLOS.iter().filter_map(|slo| self.report(&Trial::quadrant(chain, *slo)));
        let below = all.clone().filter(|of| of.latency.p99 <= metron.latency.p99);
        let near = below.max_by_key(|of| of.latency.p99);
        Some((metron, near.or(all.min_by_key(|of| of.latency.p99))?))
    }

    fn goals(&self, page: &mut Page) {
        page.put("\n## Goals\n");
        page.head(2, ["goal", "", "here"]);
        let mut goal = |what: &str, is_met: bool, here: String| {
            page.row([what.into(), if is_met { "met" } else { "missed" }.into(), here]);
        };
        for (number, (name, ..)) in CHAINS.iter().enumerate() {
            let kept = SLOS
                .iter()
                .filter(|slo| {
                    self.p99(&Trial::quadrant(number, **slo)).is_some_and(|p99| p99 <= **slo)
                })
                .count();
            let what = format!("figure 3.7, {name}: p99 within SLOs of 70 to 190 µs");
            goal(&what, kept == SLOS.len(), format!("{kept} of {}", SLOS.len()));
        }
        let all: Vec<u64> =
            FASTER.iter().filter_map(|(share, _)| self.p99(&Trial::faster(*share))).collect();
        let (low, high) = (all.iter().min().copied(), all.iter().max().copied());
        let is_flat = low.zip(high).is_some_and(|(low, high)| high as f64 <= 1.1 * low as f64);
        let within = high.is_some_and(|high| high <= SLOS[0]);
        goal(
            "figure 3.8: p99 within 10 % whatever share of flows is faster",
            is_flat,
            format!("{} to {} µs", us(low), us(high)),
        );
        goal("figure 3.8: p99 within the SLO of 70 µs", within, format!("{} µs", us(high)));
        for (chain, more) in [(0, 12.0), (1, 23.0)] {
            let Some((metron, quadrant)) = self.pair(chain) else { continue };
            let found = (quadrant.cores / metron.cores - 1.0) * 100.0;
            goal(
                &format!(
                    "figure 3.6, {}: cores beside Metron's +{more:.0} % ± 15",
                    CHAINS[chain].0
                ),
                (found - more).abs() <= 15.0,
                format!("{found:+.0} %"),
            );
        }
        let cores: Vec<f64> = self.seconds().iter().map(|of| of.cores).collect();
        let (low, high) =
            cores.iter().fold((f64::MAX, 0.0_f64), |(low, high), of| (low.min(*of), high.max(*of)));
        goal(
            "Metron's figure 9: between 1 and 6 cores",
            low < 2.0 && high > 5.0 && high <= 6.0,
            format!("{low:.1} to {high:.1}"),
        );
        let share = self.nine.loss() * 100.0;
        goal(
            "Metron's figure 9: less than 1 % of all packets lost",
            share < 1.0,
            format!("{share:.2} %"),
        );
    }

    fn seven(&self, page: &mut Page) {
        page.put("\n## Quadrant's figure 3.7: latency by SLO\n");
        page.put("p99 in µs, and cores. The thesis prints curves without numbers.");
        page.head(1, ["chain", "70 µs", "100 µs", "130 µs", "160 µs", "190 µs"]);
        let mut series = Vec::new();
        for (chain, ((name, ..), look)) in CHAINS.iter().zip(LOOKS).enumerate() {
            let of = SLOS.map(|slo| self.report(&Trial::quadrant(chain, slo)));
            let [a, b, c, d, e] = of.map(pair);
            page.row([(*name).into(), a, b, c, d, e]);
            let points = SLOS
                .iter()
                .zip(of)
                .filter_map(|(slo, of)| Some((*slo as f64 / 1e3, of?.latency.p99? as f64 / 1e3)));
            series.push(((*name).to_string(), look, points.collect::<Vec<_>>()));
        }
        let slos: Vec<f64> = SLOS.iter().map(|slo| *slo as f64 / 1e3).collect();
        let line = slos.iter().map(|slo| (*slo, *slo)).collect();
        series.push(("SLO".into(), Look::Reference(0), line));
        page.plot(
            "scaling-3-7.svg",
            "Figure 3.7: Quadrant",
            ("p99 [us]", false),
            Scale::linear("SLO [us]", slos),
            series,
        );
    }

    fn six(&self, page: &mut Page) {
        page.put("\n## Quadrant's figure 3.6: cores beside Metron's\n");
        page.put(
            "Quadrant's run whose p99 is the nearest below Metron's, as in the thesis; the fastest one where none is below.",
        );
        page.head(
            1,
            ["chain", "Metron p99", "cores", "Quadrant SLO", "p99", "cores", "more", "theirs"],
        );
        for (chain, (name, ..)) in CHAINS.iter().enumerate() {
            let Some((metron, quadrant)) = self.pair(chain) else { continue };
            let more = format!("{:+.0} %", (quadrant.cores / metron.cores - 1.0) * 100.0);
            let theirs = ["+12 %", "+23 %", "–"][chain];
            page.row([
                (*name).into(),
                us(metron.latency.p99),
                number(metron.cores),
                (quadrant.slo / US).to_string(),
                us(quadrant.latency.p99),
                number(quadrant.cores),
                more,
                theirs.into(),
            ]);
        }
    }

    fn eight(&self, page: &mut Page) {
        page.put("\n## Quadrant's figure 3.8: flows that become faster\n");
        page.put("Chain 1, SLO 70 µs; so many flows are faster by 30 % for half of their time.");
        page.head(1, ["flows", "p99 µs", "theirs", "cores"]);
        for (share, theirs) in FASTER {
            let Some(of) = self.report(&Trial::faster(share)) else { continue };
            page.row([format!("{share} %"), us(of.latency.p99), number(theirs), number(of.cores)]);
        }
    }

    fn sweep(&self, page: &mut Page) {
        page.put("\n## Alpha and beta\n");
        page.put(
            "The thesis does not print them. Chain 2, SLO 70 µs: p99 in µs and cores, with the last factor of equation 3.4 and without.",
        );
        page.head(2, ["alpha", "beta", "with", "without"]);
        for (alpha, beta) in SWEPT {
            let of = |adjust| pair(self.report(&Trial::swept((alpha, beta), adjust)));
            page.row([alpha.to_string(), beta.to_string(), of(true), of(false)]);
        }
    }

    fn nine(&self, page: &mut Page) {
        page.put("\n## Metron's figure 9: a load that changes\n");
        page.put(NINE);
        let rate = |packets: u64| packets as f64 / injected(1.0);
        let points = |of: fn(&sim::Second) -> f64| {
            let all = self.seconds().iter().enumerate();
            all.map(|(at, second)| (at as f64, of(second))).collect::<Vec<_>>()
        };
        let served = self.seconds().iter().enumerate();
        let served = served.map(|(at, second)| (at as f64, rate(second.packets))).collect();
        let offered = INJECTED.iter().map(|(at, gbps)| (*at as f64, *gbps)).collect();
        let across = || Scale::linear("s", [0.0, 105.0]);
        page.plot(
            "scaling-9-rate.svg",
            "Figure 9: Metron, throughput",
            ("Gbps", false),
            across(),
            vec![
                ("injected".into(), Look::Reference(0), offered),
                ("done".into(), Look::Synthesised(2), served),
            ],
        );
        page.plot(
            "scaling-9-cores.svg",
            "Figure 9: Metron, cores",
            ("cores", false),
            across(),
            vec![("cores".into(), Look::Synthesised(2), points(|of| of.cores))],
        );
        page.head(1, ["s", "Gbps done", "lost %", "cores"]);
        for (at, second) in self.seconds().iter().enumerate().step_by(5) {
            let lost = second.lost as f64 / (second.lost + second.packets).max(1) as f64;
            page.row([
                at.to_string(),
                format!("{:.2}", rate(second.packets)),
                format!("{:.2}", lost * 100.0),
                number(second.cores),
            ]);
        }
        let mut decisions = String::new();
        for note in &self.nine.notes {
            let _ = writeln!(decisions, "{:.1} s: {}", note.at as f64 / 1e9, note.why);
        }
        if !decisions.is_empty() {
            page.put(&format!("\nDecisions:\n\n```text\n{}```", decisions));
        }
    }
}

/// Latency and cores.
fn pair(of: Option<&Report>) -> String {
    of.map_or("–".into(), |of| format!("{} / {}", us(of.latency.p99), number(of.cores)))
}

/// How chains look.
const LOOKS: [Look; 3] = [Look::Synthesised(2), Look::Elements(1), Look::Elements(2)];

const BEGINNING: &str = "\
# The scaling of Quadrant and of Metron, simulated

Quadrant (chapter 3 of Jianfeng Wang's doctoral thesis) moves flows between cores so that estimated latencies stay within an SLO. Metron splits and merges groups of
traffic classes. These are the figures of their evaluations of scaling, as [`catena sim`](howto-sim.md) simulates them. Written by a program, with [Ironside's
evaluation](ironside.md); to repeat both:

```sh
cargo xtask figures ironside
```

## Method

- Quadrant's testbed: 8 servers of 32 cores at 2.4 GHz; links do not limit it. 600 flows at the same time send 18 Gbps in packets of 1,024 bytes. Flows come and go 20
  times as fast as in the thesis (200 a second, 3 s each): 3 s until the most are there, 2 s more are measured. The controller decides every 50 ms, as there.
- Costs are not printed. A chain costs what fills the cores that Metron is printed to use on average (3.2 and 11.7) to 70 %; chain 3, of which nothing is printed, costs
  as much as chain 1. A batch costs 2,143 cycles more for each network function under Quadrant: the printed switch between processes.
- Metron decides by the load, with the constants of its authors' balancer. It begins with all flows; 8 s pass before 2 s are measured.
- A moved flow waits until its old core has none of its packets. Fetching its state from a database, as Quadrant does, is not simulated.
- Chosen with results in sight: links of 100 Gbps a server, as 20 Gbps lost packets when most flows were faster; that a new flow is taken for an active one, as chain 1 had 11
  cores instead of 4 before; and chain and SLO of the sweep, as others showed no difference.
";

const NINE: &str = "\
An ACL and a NAPT on one server behind a link of 10 Gbps. The text has a start on 4 cores, sudden rises at 10, 17, 42, 70 and 97 s, a lag between 84 and 90 s, and 1 to 6
cores; the rest of the curve is ours. A packet costs what fills six cores to 75 % at 10 Gbps.";
