//! What the example of a network function becomes: found by compiling it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use compiler::partition::{self, Class, NotCompiled, Site};
use compiler::prove::{Assurance, BUDGET, assure_programs};
use elements::configure::{Files, Zeroizing};
use ir::model::Block;
use ir::program::End;
use ir::{FileId, Model, Op, Sources};
use serde_json::{Value, json};
use view::paint::count;

use super::Entry;
use crate::failure::Failure;
use crate::loaded::make;

/// What an example becomes.
pub(super) struct Learned {
    programs: usize,
    /// Of the programs.
    proven: usize,
    /// Traffic classes of all programs.
    classes: usize,
    /// Elements whose models do not say what becomes of some packets, with the reason.
    opaque: BTreeSet<(String, &'static str)>,
    /// Others whose native code takes packets that programs do not decide.
    left: BTreeSet<String>,
    targets: Vec<Taken>,
}

/// What a target does of the classes.
struct Taken {
    target: &'static str,
    done: usize,
    decided: usize,
    left: usize,
}

/// The files of an example.
struct Shelf<'a>(&'a Entry);

impl Files for Shelf<'_> {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        let found = self.0.files().find(|(name, _)| *name == path);
        let (name, text) = found.ok_or("the manual has no such file")?;
        Ok(sources.add(name, text))
    }

    fn key(&mut self, _: &Sources, _: FileId, path: &str) -> Result<Zeroizing<String>, String> {
        let found = self.0.files().find(|(name, _)| *name == path);
        let (_, text) = found.ok_or("the manual has no such file")?;
        Ok(Zeroizing::new(text.to_string()))
    }

    /// No packet is sealed.
    fn entropy(&mut self) -> Result<[u8; 16], String> {
        Ok([0; 16])
    }
}

impl Learned {
    /// Compiles the example.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of(entry: &Entry) -> Result<Self, Failure> {
        let mut sources = Sources::new();
        let file = sources.add(entry.function.file, entry.example());
        let options = compiler::Options::default();
        let made = make(&mut sources, &mut Shelf(entry), file, &options, PathBuf::new());
        let made = made.map_err(|found| Failure::of(found, sources))?;
        let (graph, models) = (&made.chain.graph, &made.models);
        let programs = compiler::synthesize(graph, models).programs;
        let assured = assure_programs(graph, models, &programs, BUDGET);
        let exits = || programs.iter().flat_map(ir::Program::exits);
        let wires = made.wires();
        let site = Site::numbered(&wires, &[]);
        let origin = |node: usize, _| graph.nodes[node].name.clone();
        let mut targets = Vec::new();
        for target in codegen::targets() {
            let taken = partition::compile(graph, models, &wires, *target, &site, &origin, None);
            let compiled = match taken {
                Ok(compiled) => compiled,
                Err(NotCompiled::NoWires) => continue,
                Err(why) => return Err(format!("{}: {why}", target.label()).into()),
            };
            let classes = || compiled.parts.iter().flat_map(|part| &part.offload.classes);
            let of = |is: fn(&&Class) -> bool| classes().filter(is).count();
            targets.push(Taken {
                target: target.label(),
                done: of(|class| class.done),
                decided: of(|class| !class.done && !class.decided.is_empty()),
                left: of(|class| !class.done && class.decided.is_empty()),
            });
        }
        let (mut opaque, mut left) = (BTreeSet::new(), BTreeSet::new());
        for (_, exit) in exits() {
            let End::Push { to, .. } = exit.end else { continue };
            let node = &graph.nodes[to.node];
            if node.outputs.is_empty() {
                continue;
            }
            match reasons(&models[to.node], to.port) {
                reasons if reasons.is_empty() => drop(left.insert(node.class.clone())),
                reasons => opaque.extend(reasons.into_iter().map(|why| (node.class.clone(), why))),
            }
        }
        Ok(Self {
            programs: programs.len(),
            proven: assured.iter().filter(|(_, is)| matches!(is, Assurance::Proven)).count(),
            classes: exits().count(),
            opaque,
            left,
            targets,
        })
    }

    /// In words, one thing a line.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} with {}, {} proven",
            count(self.programs, "program"),
            match self.classes {
                1 => "1 class".to_string(),
                n => format!("{n} classes"),
            },
            if self.proven == self.programs { "all".to_string() } else { self.proven.to_string() },
        )];
        lines.extend(self.opaque.iter().map(|(class, why)| format!("opaque: {class} {why}")));
        if self.opaque.is_empty() {
            lines.push("opaque: nothing".to_string());
        }
        let left: Vec<&str> = self.left.iter().map(String::as_str).collect();
        if !left.is_empty() {
            lines.push(format!("left to elements: some packets of {}", left.join(", ")));
        }
        lines.extend(self.targets.iter().map(|of| {
            let Taken { target, done, decided, left } = of;
            format!("{target}: {done} done, {decided} decided, {left} left")
        }));
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        let target = |of: &Taken| {
            let Taken { target, done, decided, left } = of;
            json!({ "target": target, "done": done, "decided": decided, "left": left })
        };
        json!({
            "programs": self.programs,
            "proven": self.proven,
            "classes": self.classes,
            "opaque": self.opaque.iter()
                .map(|(class, why)| json!({ "element": class, "why": why }))
                .collect::<Vec<_>>(),
            "left_to_elements": self.left,
            "targets": self.targets.iter().map(target).collect::<Vec<_>>(),
        })
    }
}

/// Why a model does not say what becomes of some packets of an input.
fn reasons(model: &Model, port: usize) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if let Some(block) = model.input(port) {
        collect(block, &mut reasons);
    }
    reasons
}

fn collect(block: &Block, reasons: &mut Vec<&'static str>) {
    for op in block {
        if let Op::Opaque(why) = op {
            reasons.push(why);
        }
        op.blocks().for_each(|block| collect(block, reasons));
    }
}
