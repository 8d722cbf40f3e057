//! What frames carry between a switch and the cores, and what a switch counted.

use std::collections::BTreeMap;
use std::fmt::Write;

use compiler::Synthesis;
use compiler::partition::{Divided, Handoff};
use ir::program::{Continuation, End, Step, StepId};
use serde_json::{Value, json};

use super::Offloaded;
use crate::paint::Paint;
use crate::synth::{Cost, Report};
use crate::table::{Table, grouped};

/// Packets and bytes that a switch counted, by part and exit of what it was given.
pub type Counted = BTreeMap<(usize, StepId), [u64; 2]>;

/// Packets of one fate.
struct Line {
    part: usize,
    class: Option<usize>,
    what: String,
    place: &'static str,
    counted: [u64; 2],
}

impl Offloaded<'_> {
    /// The tags that frames carry, and what they mean.
    pub fn tags(&self, server: &str, limit: usize, paint: Paint) -> String {
        let all: Vec<(Continuation, String)> = self.handoffs().collect();
        let mut text = String::new();
        let between = paint.bold(&format!("{} ↔ {server}", self.target));
        let _ = writeln!(text, "{between}  frames carry an 802.1ad tag in front of all else");
        let mut table = Table::new(["VLAN ID", "to", "what it holds"]);
        let shown = if limit == 0 { usize::MAX } else { limit };
        for (to, what) in all.iter().take(shown) {
            table.row([to.0.to_string(), "cores".into(), what.clone()]);
        }
        let mut ports: Vec<(u32, String)> =
            self.compiled.egress.iter().map(|(to, port)| (*port, self.wire(*to))).collect();
        ports.sort();
        ports.dedup();
        for (port, wire) in ports {
            table.row([port.to_string(), "the switch".into(), format!("leaves by {wire}")]);
        }
        text.push_str(&table.render());
        let more = all.len().saturating_sub(shown);
        if more > 0 {
            let note = format!("… {more} more to cores; --limit 0 shows all");
            let _ = writeln!(text, "  {}", paint.dim(&note));
        }
        text
    }

    /// The same for programs.
    pub fn tags_json(&self) -> Value {
        self.handoffs().map(|(to, what)| json!({ "vlan_id": to.0, "means": what })).collect()
    }

    fn handoffs(&self) -> impl Iterator<Item = (Continuation, String)> + '_ {
        self.compiled.parts.iter().flat_map(move |part| {
            let classes = Classes::of(self, part);
            let all = part.offload.handoffs.iter();
            all.map(|(to, handoff)| (*to, classes.said(self, handoff))).collect::<Vec<_>>()
        })
    }

    /// What a switch counted, by class, most packets first.
    pub fn counted(&self, counted: &Counted, limit: usize, paint: Paint) -> String {
        let lines = self.lines(counted);
        let mut text = String::new();
        let mut table = Table::new(["class", "which", "where", "packets", "bytes"]);
        let shown = if limit == 0 { usize::MAX } else { limit };
        for line in lines.iter().take(shown) {
            let [packets, bytes] = line.counted;
            table.row([
                line.class.map_or(String::new(), |class| class.to_string()),
                line.what.clone(),
                line.place.into(),
                grouped(packets),
                grouped(bytes),
            ]);
        }
        text.push_str(&table.render());
        let more = lines.len().saturating_sub(shown);
        if more > 0 {
            let _ =
                writeln!(text, "  {}", paint.dim(&format!("… {more} more; --limit 0 shows all")));
        }
        text
    }

    /// The same for programs.
    pub fn counted_json(&self, counted: &Counted) -> Value {
        let line = |line: Line| {
            json!({
                "wires": self.compiled.parts[line.part].wires,
                "class": line.class,
                "ends": line.what,
                "where": line.place,
                "packets": line.counted[0],
                "bytes": line.counted[1],
            })
        };
        self.lines(counted).into_iter().map(line).collect()
    }

    fn lines(&self, counted: &Counted) -> Vec<Line> {
        let mut lines: BTreeMap<(usize, Option<usize>, String), Line> = BTreeMap::new();
        for (number, part) in self.compiled.parts.iter().enumerate() {
            let classes = Classes::of(self, part);
            let program = &part.offload.segment.program;
            for (&(_, step), counts) in counted.range((number, StepId(0))..(number + 1, StepId(0)))
            {
                let Some(Step::Exit(exit)) = program.steps.get(step.0 as usize) else { continue };
                let (class, what, place) = match exit.end {
                    End::Handoff { to } => {
                        let handoff = part.offload.handoffs.get(&to);
                        let class = handoff.and_then(|h| h.exit).and_then(|at| classes.class(at));
                        let place = if class.is_some() { "decided there" } else { "stays" };
                        let what = handoff.map_or(String::new(), |h| classes.said(self, h));
                        (class.map(|class| class.0), what, place)
                    }
                    _ => match part.offload.origin(step).and_then(|at| classes.class(at)) {
                        Some((class, what)) => (Some(class), what, "done there"),
                        None => continue,
                    },
                };
                let line = lines.entry((number, class, what.clone())).or_insert(Line {
                    part: number,
                    class,
                    what,
                    place,
                    counted: [0; 2],
                });
                for (sum, more) in line.counted.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(*more);
                }
            }
        }
        let mut lines: Vec<Line> = lines.into_values().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.counted[0]));
        lines
    }
}

/// The classes of a part, as `catena synth` numbers and calls them.
pub(super) struct Classes(BTreeMap<StepId, (usize, String)>);

impl Classes {
    pub(super) fn of(all: &Offloaded<'_>, part: &Divided) -> Self {
        let synthesis = Synthesis { programs: vec![part.program.clone()], ..Synthesis::default() };
        let Offloaded { chain, sources, models, .. } = *all;
        let report = Report::of(chain, sources, "", models, &synthesis, Cost::default());
        let classes = report.programs.iter().flat_map(|became| &became.classes);
        Self(classes.map(|class| (class.step, (class.number, all.said(&report, class)))).collect())
    }

    pub(super) fn class(&self, at: StepId) -> Option<(usize, String)> {
        self.0.get(&at).cloned()
    }

    /// What a core does that a packet is handed to.
    pub(super) fn said(&self, all: &Offloaded<'_>, handoff: &Handoff) -> String {
        let why = handoff.why.last().map(|stay| all.reason(stay)).unwrap_or_default();
        match handoff.exit.and_then(|at| self.class(at)) {
            Some((number, said)) => format!("class {number}, {said}; {why}"),
            None => format!("decided by cores: {why}"),
        }
    }
}
