//! What clients of the control socket show to people.

use std::collections::BTreeSet;

use dataplane::trace::{Fate, Seen, Step};
use engine::Findings;
use engine::control::{PacketTrace, Presenter};
use net::Header;
use serde_json::Value;
use view::diagnostics;
use view::explain::{Story, brief_of, tell, to_json};
use view::paint::Paint;
use view::synth::{Cost, Report};

/// Reports, explanations and diagnostics as the command line shows them.
pub(crate) struct Words;

impl Presenter for Words {
    fn findings(&self, findings: &Findings) -> String {
        diagnostics::render(&findings.diagnostics, &findings.sources, false)
    }

    fn packet_trace(&self, packet_trace: &PacketTrace<'_>, colours: bool) -> (Value, String) {
        let PacketTrace { configuration, models, synthesis, trace, entrance, .. } = packet_trace;
        let (chain, sources) = (configuration.chain(), configuration.sources());
        let report = synthesis.map(|synthesis| {
            Report::of(chain, sources, configuration.name(), models, synthesis, Cost::default())
        });
        let first = trace.steps.first().and_then(|step| step.before.as_ref());
        let is_frame = |seen: &Seen| seen.header_offset(Header::Mac) == Some(0);
        let said = first.map_or(String::new(), |seen| brief_of(seen.data(), is_frame(seen)));
        let packets = [(said, entrance.to_string())];
        let (graph, packets, report) = (&chain.graph, &packets[..], report.as_ref());
        let story = Story { graph, sources, trace, packets, report };
        let mut text = tell(&story, Paint(colours));
        if let Some(why) = packet_trace.unfinished {
            let waits = |step: &&Step| {
                step.outcomes.iter().any(|o| (&o.fate, o.next) == (&Fate::Kept, None))
            };
            let names = trace.steps.iter().filter(waits).map(|s| graph.nodes[s.node].name.as_str());
            let held: BTreeSet<&str> = names.collect();
            let held: Vec<&str> = held.into_iter().collect();
            text.push_str(&match held.is_empty() {
                true => format!("  not traced any further: {why}\n"),
                false => {
                    format!("  held in {}, and not traced any further: {why}\n", held.join(", "))
                }
            });
        }
        if let Some(worker) = packet_trace.worker {
            text.push_str(&format!("  at worker {worker}\n"));
        }
        match packet_trace.agrees {
            Some(true) => text.push_str("  the program did the same\n"),
            Some(false) => {
                text.push_str("  THE PROGRAM WOULD HAVE DONE SOMETHING ELSE; please report this\n")
            }
            None => {}
        }
        (to_json(&story), text)
    }
}
