//! Reading a configuration and the libraries that it requires.

use std::collections::HashMap;
use std::ops::Range;

use click::ast::{File, RequirementKind, Statement};
use elements::configure::Files;
use ir::{Diagnostic, FileId, Sources, Span};

use crate::frontend::report::Report;
use crate::library;

/// More libraries than this are not read.
const MAX_LIBRARIES: usize = 256;

/// A configuration with its libraries, parsed.
pub(crate) struct Loaded {
    /// The configuration itself, then the libraries.
    pub(crate) files: Vec<File>,
    /// Which file each `require(library …)` means.
    pub(crate) libraries: HashMap<Span, usize>,
    /// Which files [`library::PACKAGE`] is, if it is required.
    pub(crate) functions: Range<usize>,
}

pub(crate) fn load(
    sources: &mut Sources,
    file: FileId,
    files: &mut dyn Files,
    report: &mut Report,
) -> Loaded {
    let mut ids = vec![file];
    let mut tokens = 0;
    let mut loaded = Loaded { files: Vec::new(), libraries: HashMap::new(), functions: 0..0 };
    // A file is parsed after all that was known before it, so that the list only grows.
    while let Some(&id) = ids.get(loaded.files.len()) {
        let (parsed, diagnostics) = click::parse(sources, id);
        tokens += parsed.tokens;
        if tokens > click::MAX_TOKENS && ids.len() > 1 {
            let message = format!(
                "the configuration and its libraries have more than {} tokens and arguments",
                click::MAX_TOKENS
            );
            let error = Diagnostic::error("file-too-large", message);
            report.add(error.label(Span::new(id, 0, 0), "the limit is reached in this file"));
            break;
        }
        for diagnostic in diagnostics {
            report.add_message(diagnostic);
        }
        if loaded.functions.is_empty() && requires_functions(&parsed.statements) {
            loaded.functions = ids.len()..ids.len() + library::FUNCTIONS.len();
            ids.extend(library::FUNCTIONS.iter().map(|of| sources.add(of.source(), of.text)));
        }
        for (path, span) in required_libraries(&parsed.statements) {
            let read = files.read(sources, id, path);
            let known = read.as_ref().ok().and_then(|read| ids.iter().position(|id| id == read));
            let read = match read {
                Ok(_) if known.is_none() && ids.len() > MAX_LIBRARIES => {
                    Err(format!("more than {MAX_LIBRARIES} libraries are required"))
                }
                read => read,
            };
            match read {
                Ok(library) => {
                    loaded.libraries.insert(span, known.unwrap_or(ids.len()));
                    if known.is_none() {
                        ids.push(library);
                    }
                }
                Err(why) => {
                    let message = format!("library '{path}' cannot be read: {why}");
                    report.add(
                        Diagnostic::error("unreadable-file", message)
                            .label(span, "required here")
                            .help("the path is relative to the file that requires it"),
                    );
                }
            }
        }
        loaded.files.push(parsed);
    }
    loaded
}

/// Whether statements at file scope require the library of network functions.
fn requires_functions(statements: &[Statement]) -> bool {
    let is = |kind: &RequirementKind| matches!(kind, RequirementKind::Package(name) if name == library::PACKAGE);
    statements.iter().any(|statement| {
        matches!(statement, Statement::Require(require) if require.requirements.iter().any(|r| is(&r.kind)))
    })
}

/// The libraries that statements at file scope require.
fn required_libraries(statements: &[Statement]) -> Vec<(&str, Span)> {
    let mut libraries = Vec::new();
    for statement in statements {
        let Statement::Require(require) = statement else { continue };
        for requirement in &require.requirements {
            if let RequirementKind::Library(path) = &requirement.kind {
                libraries.push((path.as_str(), requirement.span));
            }
        }
    }
    libraries
}
