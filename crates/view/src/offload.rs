//! What a device does of a chain, and what is left to cores: for people and programs.

mod carried;
mod followed;
mod picture;

use std::collections::BTreeSet;
use std::fmt::Write;

use compiler::Synthesis;
use compiler::partition::{self, Compiled, Divided, Share, Stay};
use compiler::prove::Verdict;
use ir::program::End;
use ir::{Model, Port, Sources};
use serde_json::{Value, json};

use crate::paint::{Paint, count};
use crate::synth::text::destination;
use crate::synth::{Class, Cost, Report};
use crate::table::Table;

pub use carried::Counted;
pub use followed::Places;

/// What is reported of a chain that was compiled for a device.
pub struct Offloaded<'a> {
    /// The chain.
    pub chain: &'a compiler::Chain,
    /// Its text.
    pub sources: &'a Sources,
    /// What its elements mean.
    pub models: &'a [Model],
    /// The target's name.
    pub target: &'a str,
    /// What it became.
    pub compiled: &'a Compiled,
    /// By part: what became of packets of a capture, if there is one.
    pub shares: &'a [Option<Share>],
}

/// Where a class is taken care of, at best.
fn place(class: &partition::Class) -> &'static str {
    match (class.done, class.decided.is_empty(), class.stays.is_empty()) {
        (true, ..) => "done there",
        (false, false, _) => "decided there",
        (false, true, false) => "stays",
        (false, true, true) => "trusted not to come",
    }
}

/// `1 class`, `2 classes`.
fn classes_of(n: usize) -> String {
    if n == 1 { "1 class".into() } else { format!("{n} classes") }
}

impl Offloaded<'_> {
    /// For people.
    pub fn text(&self, limit: usize, paint: Paint) -> String {
        let mut text = String::new();
        for (number, part) in self.compiled.parts.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            self.part(
                part,
                self.shares.get(number).and_then(Option::as_ref),
                limit,
                paint,
                &mut text,
            );
        }
        let size = |file: &codegen::File| {
            format!("{} ({})", file.name, count(file.contents.len(), "byte"))
        };
        let files: Vec<String> = self.compiled.files.iter().map(size).collect();
        let _ = writeln!(text, "\n{}  {}", paint.bold("artefact"), files.join(", "));
        text
    }

    fn part(
        &self,
        part: &Divided,
        share: Option<&Share>,
        limit: usize,
        paint: Paint,
        text: &mut String,
    ) {
        let Self { chain, sources, models, .. } = *self;
        let synthesis = Synthesis { programs: vec![part.program.clone()], ..Synthesis::default() };
        let report = Report::of(chain, sources, "", models, &synthesis, Cost::default());
        let classes = || part.offload.classes.iter();
        let of = |what: &str| classes().filter(|class| place(class) == what).count();
        let _ = writeln!(
            text,
            "{}  {}: {} done there, {} decided there, {} left to cores",
            paint.bold(&format!("{} → {}", part.wires.join(", "), self.target)),
            classes_of(part.offload.classes.len()),
            of("done there"),
            of("decided there"),
            of("stays"),
        );
        let mut table = Table::new(["class", "which", "where", "why"]);
        let shown = match limit {
            0 => usize::MAX,
            limit => limit,
        };
        for class in report.programs.iter().flat_map(|became| &became.classes).take(shown) {
            let Some(fate) = classes().find(|fate| fate.exit == class.step) else { continue };
            let why = match fate.done || !fate.decided.is_empty() {
                true => None,
                // The report for programs has all.
                false => fate.why().map(|stay| self.reason(stay)),
            };
            table.row([
                class.number.to_string(),
                self.said(&report, class),
                place(fate).to_string(),
                why.unwrap_or_default(),
            ]);
        }
        text.push_str(&table.render());
        let more = part.offload.classes.len().saturating_sub(shown);
        if more > 0 {
            let _ =
                writeln!(text, "  {}", paint.dim(&format!("… {more} more; --limit 0 shows all")));
        }
        let _ = writeln!(
            text,
            "  handed to cores at {}; {}",
            count(part.offload.handoffs.len(), "place"),
            self.proof(part),
        );
        for stay in &part.full {
            let _ = writeln!(text, "  no room: {}", self.reason(stay));
        }
        let spared = Self::spared(part);
        if !spared.is_empty() {
            let _ =
                writeln!(text, "  where the class is decided there, cores do the rest: {spared}");
        }
        if let Some(share) = share {
            let percent = |n: u64| format!("{:.1} %", n as f64 * 100.0 / share.all().max(1) as f64);
            let _ = writeln!(
                text,
                "  of {}: {} done there, {} decided there, {} left to cores",
                count(usize::try_from(share.all()).unwrap_or(usize::MAX), "packet"),
                percent(share.done),
                percent(share.decided),
                percent(share.left),
            );
        }
    }

    fn proof(&self, part: &Divided) -> String {
        match &part.proof.together.verdict {
            Verdict::Equal if part.proof.untrusted.is_none() => {
                "device and cores together are proven to do what the chain does".into()
            }
            Verdict::Equal => {
                "device and cores together are proven to do what the chain does, where trust is right".into()
            }
            Verdict::Different(_) => "device and cores together DIFFER from the chain".into(),
            Verdict::Unproven(why) => format!("not proven: {why}"),
        }
    }

    /// What becomes of a class, by the device's port where it leaves the chain.
    fn said(&self, report: &Report<'_>, class: &Class<'_>) -> String {
        match class.exit.end {
            End::Push { to, .. } => match self.port(to) {
                Some(port) => format!("leaves by {} (port {port})", self.wire(to)),
                None => destination(report, class),
            },
            _ => destination(report, class),
        }
    }

    fn port(&self, to: Port) -> Option<u32> {
        self.compiled.egress.get(&to).copied()
    }

    fn wire(&self, to: Port) -> String {
        let graph = &self.chain.graph;
        let next = graph.successors(Port { node: to.node, port: 0 }).next();
        let end = next.map_or(to.node, |next| next.node);
        graph.nodes[end].config.clone()
    }

    /// `CheckIPHeader@4 (fw.click:2): checksums are not verified`
    fn reason(&self, stay: &Stay) -> String {
        let node = &self.chain.graph.nodes[stay.element];
        format!("{} ({}): {}", node.name, self.sources.landmark(node.span), stay.lack)
    }

    /// What a device cannot do for packets of which it finds the class; each once.
    fn spared(part: &Divided) -> String {
        let decided = part.offload.classes.iter().flat_map(|class| &class.decided);
        let all: BTreeSet<String> = decided.map(|stay| stay.lack.to_string()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let reasons = |stays: &BTreeSet<Stay>| -> Vec<Value> {
            let said = |stay: &Stay| {
                let node = &self.chain.graph.nodes[stay.element];
                json!({
                    "element": node.name,
                    "place": self.sources.landmark(node.span),
                    "lacks": stay.lack.to_string(),
                })
            };
            stays.iter().map(said).collect()
        };
        let part = |(part, share): (&Divided, Option<&Share>)| {
            let Self { chain, sources, models, .. } = *self;
            let synthesis =
                Synthesis { programs: vec![part.program.clone()], ..Synthesis::default() };
            let report = Report::of(chain, sources, "", models, &synthesis, Cost::default());
            let classes: Vec<Value> = report
                .programs
                .iter()
                .flat_map(|became| &became.classes)
                .filter_map(|class| {
                    let all = &part.offload.classes;
                    let fate = all.iter().find(|fate| fate.exit == class.step)?;
                    Some(json!({
                        "class": class.number,
                        "ends": self.said(&report, class),
                        "where": place(fate),
                        "done": fate.done,
                        "decided": reasons(&fate.decided),
                        "stays": reasons(&fate.stays),
                    }))
                })
                .collect();
            json!({
                "wires": part.wires,
                "classes": classes,
                "no_room": reasons(&part.full),
                "handoffs": part.offload.handoffs.len(),
                "proven": part.proof.holds(),
                "proof": self.proof(part),
                "packets": share.map(|share| json!({
                    "done": share.done, "decided": share.decided, "left": share.left,
                })),
            })
        };
        let shares = self.shares.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let parts: Vec<Value> = self.compiled.parts.iter().zip(shares).map(part).collect();
        let file =
            |file: &codegen::File| json!({ "name": file.name, "bytes": file.contents.len() });
        let files: Vec<Value> = self.compiled.files.iter().map(file).collect();
        json!({ "target": self.target, "parts": parts, "files": files })
    }
}
