//! What commands load that look at a chain without running it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use compiler::partition::Wires;
use compiler::{Chain, Options};
use elements::configure::{Files, Zeroizing};
use engine::Closed;
use ir::{Diagnostic, FileId, Model, Severity, Sources, has_errors};

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
    load_between(limits, variables, name, [].into_iter())
}

/// Reads the chain of a file. A device that no element is for replaces the element of its name.
pub(crate) fn load_between<'a>(
    limits: &Limits,
    variables: &[String],
    name: &str,
    devices: impl Iterator<Item = &'a String>,
) -> Result<Loaded, Failure> {
    let mut sources = Sources::new();
    let mut files = limits.disk();
    let file = files.configuration(&mut sources, name)?;
    let mut options = limits.options(variables::all(variables)?);
    options.devices = devices.map(|name| engine::session::device(name)).collect();
    let start = Instant::now();
    let beside = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_path_buf);
    match make(&mut sources, &mut files, file, &options, beside) {
        Ok(ModelledChain { chain, models, tables, frames, .. }) => {
            let elaboration = start.elapsed();
            Ok(Loaded { sources, file, chain, models, tables, frames, elaboration })
        }
        Err(found) => Err(Failure::of(found, sources)),
    }
}

/// A chain whose elements were made to know what they mean.
pub(crate) struct ModelledChain {
    pub(crate) chain: Chain,
    pub(crate) models: Vec<Model>,
    /// By element: whether programs can look flows up in a table that it keeps.
    tables: Vec<bool>,
    /// By element: whether it makes packets of which nothing but their bytes is known.
    frames: Vec<bool>,
    /// By element: whether workers get parts of what it allocates.
    pub(crate) owns_parts: Vec<bool>,
    /// A digest of what elements read: files, keys and variables.
    pub(crate) digest: u64,
}

/// Files, with a digest of what was read.
struct Digested<'a> {
    files: &'a mut dyn Files,
    digest: DefaultHasher,
}

impl Files for Digested<'_> {
    fn read(&mut self, sources: &mut Sources, from: FileId, path: &str) -> Result<FileId, String> {
        let file = self.files.read(sources, from, path)?;
        sources.text(file).hash(&mut self.digest);
        Ok(file)
    }

    fn key(
        &mut self,
        sources: &Sources,
        from: FileId,
        path: &str,
    ) -> Result<Zeroizing<String>, String> {
        let key = self.files.key(sources, from, path)?;
        key.hash(&mut self.digest);
        Ok(key)
    }

    fn variable(&mut self, name: &str) -> Result<Zeroizing<String>, String> {
        let value = self.files.variable(name)?;
        value.hash(&mut self.digest);
        Ok(value)
    }

    fn entropy(&mut self) -> Result<[u8; 16], String> {
        self.files.entropy()
    }
}

impl ModelledChain {
    /// Where the chain meets wires.
    pub(crate) fn wires(&self) -> Wires {
        Wires::of(&self.chain.graph, |node| self.frames[node])
    }
}

/// Makes the elements of a chain that was read. Files that these open are looked for in a folder, too.
///
/// # Errors
/// All that is wrong.
pub(crate) fn make(
    sources: &mut Sources,
    files: &mut dyn Files,
    file: FileId,
    options: &Options,
    beside: PathBuf,
) -> Result<ModelledChain, Vec<Diagnostic>> {
    let (chain, mut found) = compiler::elaborate(sources, file, options, files);
    let mut made_of = None;
    let mut files = Digested { files, digest: DefaultHasher::new() };
    if let Some(chain) = &chain
        && let Some(mut made) = compiler::instantiate(chain, sources, &mut files, &mut found)
    {
        let before = found.len();
        let mut closed = Closed::beside(beside);
        made.initialize(chain, sources, &mut files, &mut closed, &mut found);
        // Devices are not opened: what they cannot do does not matter.
        let mut at = 0;
        found.retain(|d| {
            at += 1;
            at <= before || d.code != "device"
        });
        made_of = Some(made.elements);
    }
    found.retain(|d| d.severity == Severity::Error);
    match (chain, made_of.filter(|_| !has_errors(&found))) {
        (Some(chain), Some(elements)) => Ok(ModelledChain {
            chain,
            models: elements.iter().map(|element| element.model()).collect(),
            tables: elements.iter().map(|element| element.flows().is_some()).collect(),
            frames: elements.iter().map(|element| element.receives_frames()).collect(),
            digest: files.digest.finish(),
            owns_parts: elements.iter().map(|element| !element.owned().is_empty()).collect(),
        }),
        _ => Err(found),
    }
}

impl Loaded {
    /// Where the chain meets wires.
    pub(crate) fn wires(&self) -> Wires {
        Wires::of(&self.chain.graph, |node| self.frames[node])
    }
}
