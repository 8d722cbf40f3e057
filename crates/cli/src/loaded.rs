//! What commands load that look at a chain without running it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use compiler::Chain;
use compiler::partition::Wires;
use engine::Closed;
use ir::{FileId, Model, Severity, Sources, has_errors};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::variables;

/// A chain, what its elements mean, and how long it took to find out.
pub(crate) struct Loaded {
    pub(crate) sources: Sources,
    pub(crate) file: FileId,
    pub(crate) chain: Chain,
    pub(crate) models: Vec<Model>,
    /// By element: whether programs can look flows up in a table that it keeps.
    pub(crate) tables: Vec<bool>,
    /// By element: whether it makes packets of which nothing but their bytes is known.
    frames: Vec<bool>,
    pub(crate) elaboration: Duration,
}

/// Reads the chain of a file.
pub(crate) fn load(limits: &Limits, variables: &[String], name: &str) -> Result<Loaded, Failure> {
    let mut sources = Sources::new();
    let mut files = limits.disk();
    let file = files.configuration(&mut sources, name)?;
    let options = limits.options(variables::all(variables)?);
    let start = Instant::now();
    let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let mut made_of = None;
    if let Some(chain) = &chain
        && let Some(mut made) = compiler::instantiate(chain, &mut sources, &mut files, &mut found)
    {
        let before = found.len();
        let beside = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let mut closed = Closed::beside(beside);
        made.initialize(chain, &mut sources, &mut files, &mut closed, &mut found);
        // Devices are not opened: what they cannot do does not matter.
        let mut at = 0;
        found.retain(|d| {
            at += 1;
            at <= before || d.code != "device"
        });
        let elements = || made.elements.iter();
        let models: Vec<Model> = elements().map(|element| element.model()).collect();
        let frames: Vec<bool> = elements().map(|element| element.receives_frames()).collect();
        let tables: Vec<bool> = made.elements.iter().map(|e| e.flows().is_some()).collect();
        made_of = Some((models, tables, frames));
    }
    let elaboration = start.elapsed();
    found.retain(|d| d.severity == Severity::Error);
    match (chain, made_of.filter(|_| !has_errors(&found))) {
        (Some(chain), Some((models, tables, frames))) => {
            Ok(Loaded { sources, file, chain, models, tables, frames, elaboration })
        }
        _ => Err(Failure::of(found, sources)),
    }
}

impl Loaded {
    /// Where the chain meets wires.
    pub(crate) fn wires(&self) -> Wires {
        Wires::of(&self.chain.graph, |node| self.frames[node])
    }
}
