//! A packet on its path over a device and cores.

use std::fmt::Write;

use compiler::partition::{Divided, DividedPath};
use ir::program::{End, Step, StepId};
use serde_json::{Value, json};

use super::Offloaded;
use super::carried::Classes;
use crate::paint::Paint;

/// What an artefact has for a step of a segment, in words: tables and entries, or instructions.
pub type Places<'a> = &'a dyn Fn(usize, StepId) -> Option<String>;

impl Offloaded<'_> {
    /// For people: at which port the packet comes in, what the device decides where, with which tag it goes on, and what
    /// cores do then.
    pub fn followed(
        &self,
        (number, wire): (usize, &str),
        followed: &DividedPath,
        places: Places<'_>,
        (server, paint): (&str, Paint),
    ) -> String {
        let part = &self.compiled.parts[number];
        let mut text = format!("{}  comes in from {wire}\n", paint.bold(self.target));
        for (said, places) in self.steps(number, followed, places) {
            let _ = writeln!(text, "  ● {said}");
            for place in places {
                let _ = writeln!(text, "  │   {}", paint.dim(&place));
            }
        }
        match followed.tag {
            None => {
                let _ = writeln!(text, "  → {}: no core sees it", self.end(part, followed));
            }
            Some(tag) => {
                let _ = writeln!(text, "  → {}", self.handed(part, followed));
                let server = paint.bold(server);
                let _ = writeln!(text, "{server}  a core goes on by VLAN ID {}", tag.0);
                for &element in &followed.cores {
                    let _ = writeln!(text, "  ● {}", self.at(element));
                }
                let _ = writeln!(text, "  → {}", self.end(part, followed));
            }
        }
        text
    }

    /// For programs.
    pub fn followed_json(
        &self,
        (number, wire): (usize, &str),
        followed: &DividedPath,
        places: Places<'_>,
    ) -> Value {
        let part = &self.compiled.parts[number];
        let steps = self.steps(number, followed, places);
        let step = |(said, places): (String, Vec<String>)| json!({ "at": said, "places": places });
        json!({
            "device": self.target,
            "wire": wire,
            "steps": steps.into_iter().map(step).collect::<Vec<_>>(),
            "vlan_id": followed.tag.map(|tag| tag.0),
            "cores": followed.cores.iter().map(|&element| self.at(element)).collect::<Vec<_>>(),
            "ends": self.end(part, followed),
        })
    }

    /// What the device decides, each element once in a row, and what it has for that.
    fn steps(
        &self,
        number: usize,
        followed: &DividedPath,
        places: Places<'_>,
    ) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        let program = &self.compiled.parts[number].offload.segment.program;
        for &(step, element) in &followed.device {
            let place = places(number, step);
            let said = match program.step(step) {
                Step::Exit(exit) => match exit.end {
                    End::Handoff { .. } => "handed to cores".to_string(),
                    End::Drop { .. } => format!("dropped by {}", self.at(element)),
                    End::Push { .. } => "sent".to_string(),
                },
                _ => self.at(element),
            };
            match all.last_mut() {
                Some((last, places)) if *last == said => places.extend(place),
                _ => all.push((said, place.into_iter().collect())),
            }
        }
        all
    }

    fn at(&self, element: usize) -> String {
        let node = &self.chain.graph.nodes[element];
        format!("{} ({})", node.name, self.sources.landmark(node.span))
    }

    /// What becomes of it.
    fn end(&self, part: &Divided, followed: &DividedPath) -> String {
        let class = followed.exit.and_then(|exit| Classes::of(self, part).class(exit));
        class.map_or_else(
            || "decided by elements".into(),
            |(number, said)| format!("class {number}, {said}"),
        )
    }

    fn handed(&self, part: &Divided, followed: &DividedPath) -> String {
        let handoff = followed.tag.and_then(|tag| part.offload.handoffs.get(&tag));
        let said = handoff.map(|handoff| Classes::of(self, part).said(self, handoff));
        let tag = followed.tag.map_or(0, |tag| tag.0);
        format!("to cores with VLAN ID {tag}: {}", said.unwrap_or_default())
    }
}
