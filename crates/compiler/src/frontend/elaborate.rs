//! Elaboration: a parsed file becomes a flat chain.

use std::collections::HashMap;

use click::config::Argument;
use elements::configure::{DEFAULT_MEMORY, Files};
use ir::{Diagnostic, FileId, Graph, NodeId, Sources, Span};

use crate::frontend::report::Report;
use crate::frontend::stand_ins::Device;
use crate::frontend::{check, expand, load, ports, processing, scope, stand_ins};

/// What is decided outside of the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Variables with their values (`VAR=VALUE`): they override what the file defines.
    pub variables: Vec<(String, String)>,
    /// Devices. One that no element is for replaces the element of its name, which stands for it where there
    /// is none.
    pub devices: Vec<Device>,
    /// What reading it and making its elements may take.
    pub limits: Limits,
    /// Reads an environment variable that elements name; none can be read without it.
    pub environment: Option<fn(&str) -> Option<String>>,
}

/// What a configuration may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all texts that are read: the configuration, its libraries, lists of rules.
    pub text: u64,
    /// Bytes of memory that its elements take when they are made, for each worker.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { text: 64 << 20, memory: DEFAULT_MEMORY }
    }
}

impl Options {
    /// Variables alone.
    pub fn of(variables: Vec<(String, String)>) -> Self {
        Self { variables, ..Self::default() }
    }
}

/// A chain whose compounds are expanded and whose ports are checked.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Elements, compounds and connections.
    pub graph: Graph,
    /// The arguments of each element, by node.
    pub arguments: Vec<Vec<Argument>>,
    /// Packages that the configuration requires.
    pub requirements: Vec<String>,
    /// What making its elements may take.
    pub(crate) limits: Limits,
    names: HashMap<String, NodeId>,
}

impl Chain {
    /// The element of that full name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }
}

/// Reads a configuration and the libraries that it requires and works out the chain they mean.
///
/// The chain is whole only if no diagnostic is an error. With errors it may still be there, so
/// that its elements can be configured and *their* errors reported too; elements of unknown
/// classes are in it under the name that was written.
pub fn elaborate(
    sources: &mut Sources,
    file: FileId,
    options: &Options,
    files: &mut dyn Files,
) -> (Option<Chain>, Vec<Diagnostic>) {
    let mut report = Report::default();
    let mut loaded = load::load(sources, file, files, &mut report);
    if report.failed() {
        // Whatever the parser skipped would be missed and reported again.
        return (None, report.diagnostics);
    }
    let (chain, found) = work_out(&loaded, file, options);
    let devices = match &chain {
        Some(chain) => stand_ins::unused(&options.devices, &chain.arguments),
        None => Vec::new(),
    };
    let (chain, found) = match stand_ins::replace(&mut loaded.files[0], &devices, sources) {
        true => work_out(&loaded, file, options),
        false => (chain, found),
    };
    report.diagnostics.extend(found);
    (chain, report.diagnostics)
}

/// The chain that files mean.
fn work_out(
    loaded: &load::Loaded,
    file: FileId,
    options: &Options,
) -> (Option<Chain>, Vec<Diagnostic>) {
    let mut report = Report::default();
    let span = Span::new(file, 0, 0);
    let scopes = scope::resolve(loaded, span, &mut report);
    let variables =
        options.variables.iter().map(|(name, value)| (name.as_str(), Argument::bare(value)));
    let Some(mut flat) = expand::expand(&scopes, variables, &mut report) else {
        return (None, report.diagnostics);
    };
    ports::connect(&mut flat, &mut report);
    processing::resolve(&mut flat, &mut report);
    if !report.failed() {
        check::check(&flat, &mut report);
    }
    let chain = Chain {
        graph: flat.graph,
        arguments: flat.arguments,
        requirements: scopes.requirements,
        limits: options.limits,
        names: flat.names,
    };
    (Some(chain), report.diagnostics)
}
