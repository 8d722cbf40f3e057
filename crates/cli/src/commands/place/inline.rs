//! A chain that stands in a manifest: the configuration that it means, with its wires and the libraries of the manifest.

use std::collections::BTreeSet;
use std::fmt::Write;

use ::click::ast::{Node, Statement};
use engine::session;
use ir::{Diagnostic, FileId, Sources, Span};
use placement::{Click, Traffic};

/// The configuration.
pub(super) struct Inline {
    pub(super) file: FileId,
    /// What of it was written elsewhere.
    pieces: Vec<Piece>,
    /// Where the manifest has the chain.
    span: Span,
}

/// Bytes that were written elsewhere.
struct Piece {
    start: usize,
    file: FileId,
    /// By byte: where it was written.
    places: Vec<u32>,
}

impl Inline {
    /// Of a chain, with functions that have a file of their own.
    pub(super) fn of(
        chain: &Click<'_>,
        text: &str,
        bodies: &[(&str, FileId)],
        sources: &mut Sources,
        is_in_rack: &dyn Fn(&str) -> bool,
    ) -> Self {
        let (mut made, mut pieces) = (String::new(), Vec::new());
        for (library, _) in &chain.require {
            let _ = writeln!(made, "require(library {library})");
        }
        for (name, file) in bodies {
            let body = sources.text(*file);
            let _ = write!(made, "elementclass {name} {{\n#line 1 \"{}\"\n", sources.name(*file));
            let places = (0..=body.len() as u32).collect();
            pieces.push(Piece { start: made.len(), file: *file, places });
            let _ = write!(made, "{body}\n}}\n");
        }
        let names = Names::of(text);
        let wire = |of: fn(&Traffic) -> Option<&String>, usual: &str| {
            chain.traffic.iter().find_map(of).map_or_else(|| usual.to_string(), String::clone)
        };
        let (from, to) = (wire(|of| of.from.as_ref(), IN), wire(|of| of.to.as_ref(), OUT));
        let (mut begins, mut ends) = (names.begins, names.ends);
        let is_end = |name: &String| is_in_rack(name) && !names.declared.contains(name);
        let is_single = names.is_single && !begins.iter().chain(&ends).any(is_end);
        if is_single {
            begins.insert(from.clone());
            ends.insert(to.clone());
        }
        let is_wire = |name: &&String| {
            let is_it = |of: &Option<String>| of.as_ref() == Some(name);
            let named = chain.traffic.iter().any(|of| is_it(&of.from) || is_it(&of.to));
            named || **name == IN || **name == OUT || is_in_rack(name)
        };
        let all: BTreeSet<&String> = begins.union(&ends).collect();
        for name in all.into_iter().filter(|name| !names.declared.contains(*name)).filter(is_wire) {
            made.push_str(&session::wire(name, begins.contains(name), ends.contains(name)));
        }
        if is_single {
            let _ = writeln!(made, "{from} ->");
        }
        let of = chain.span.file;
        let line = sources.line_column(of, chain.span.start).line;
        let _ = writeln!(made, "#line {line} \"{}\"", sources.name(of));
        let places = aligned(text, sources.slice(chain.span), chain.span.start);
        let text = text.trim_end().trim_end_matches(';');
        pieces.push(Piece { start: made.len(), file: of, places });
        let _ = match is_single {
            true => writeln!(made, "{text}\n-> {to};"),
            false => writeln!(made, "{text};"),
        };
        let name = sources.name(of).to_string();
        Self { file: sources.add(name, made), pieces, span: chain.span }
    }

    /// Errors where people wrote what is wrong.
    pub(super) fn placed(&self, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        for label in found.iter_mut().flat_map(|of| &mut of.labels) {
            if label.span.file == self.file {
                label.span = self.origin(label.span).unwrap_or(self.span);
            }
        }
        found
    }

    fn origin(&self, span: Span) -> Option<Span> {
        let piece = self.pieces.iter().rfind(|of| of.start <= span.start as usize)?;
        let place = |at: u32| piece.places.get((at as usize).checked_sub(piece.start)?).copied();
        let start = place(span.start)?;
        // The end is that of the last byte.
        let end =
            place(span.end.saturating_sub(1).max(span.start))? + u32::from(span.end > span.start);
        Some(Span { file: piece.file, start, end })
    }
}

/// By byte of a text: where it stands as it was written, which differs in white space.
fn aligned(text: &str, written: &str, start: u32) -> Vec<u32> {
    let (text, written) = (text.as_bytes(), written.as_bytes());
    let mut at = usize::from(written.first().is_some_and(|quote| matches!(quote, b'\'' | b'"')));
    let mut places = Vec::with_capacity(text.len() + 1);
    for byte in text {
        if !byte.is_ascii_whitespace() {
            let found = written.get(at..).and_then(|rest| rest.iter().position(|of| of == byte));
            at += found.unwrap_or(0);
        }
        places.push(start + at.min(written.len()) as u32);
        at += 1;
    }
    places.push(start + at.min(written.len()) as u32);
    places
}

/// The wires of a chain that names none.
const IN: &str = "in";
const OUT: &str = "out";

/// Names of elements in a text.
#[derive(Default)]
struct Names {
    /// With which paths begin.
    begins: BTreeSet<String>,
    /// With which paths end.
    ends: BTreeSet<String>,
    declared: BTreeSet<String>,
    /// Whether it is one path of functions, without an end.
    is_single: bool,
}

impl Names {
    fn of(text: &str) -> Self {
        let mut sources = Sources::new();
        let file = sources.add("", text);
        let (parsed, _) = ::click::parse(&mut sources, file);
        let mut names = Self::default();
        for statement in &parsed.statements {
            match statement {
                Statement::Declaration(all) => {
                    names.declared.extend(all.names.iter().map(|name| name.text.clone()));
                }
                Statement::Chain(chain) => {
                    let last = chain.stages.len().saturating_sub(1);
                    for (at, stage) in chain.stages.iter().enumerate() {
                        for endpoint in stage {
                            match &endpoint.node {
                                Node::Name { name, config: None } => {
                                    if at == 0 {
                                        names.begins.insert(name.text.clone());
                                    }
                                    if at == last {
                                        names.ends.insert(name.text.clone());
                                    }
                                }
                                Node::Declaration { name, .. } => {
                                    names.declared.insert(name.text.clone());
                                }
                                _ => {}
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        let is_end = |name: &String| name == IN || name == OUT;
        names.is_single = matches!(parsed.statements[..], [Statement::Chain(_)])
            && !names.begins.iter().chain(&names.ends).any(is_end);
        names
    }
}
