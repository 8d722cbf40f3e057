//! Diagnostics for people and for programs.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use ir::{Diagnostic, Severity, Sources, Span};
use serde_json::{Value, json};

/// Renders diagnostics with their lines and carets.
pub(crate) fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    diagnostics.iter().map(|d| renderer.render(&report(d, sources)) + "\n\n").collect()
}

/// Lines of context that a long text is cut down to around its labels.
const CONTEXT: usize = 200;

fn report<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let mut group = Group::with_title(title);
    for (i, label) in diagnostic.labels.iter().enumerate() {
        // One snippet a label: labels may lie in different files, and far apart.
        let text = sources.text(label.span.file);
        let (window, first_line) = window(text, label.span, sources);
        let start = (label.span.start as usize).clamp(window.start, window.end) - window.start;
        let end = (label.span.end as usize).clamp(window.start + start, window.end) - window.start;
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(start..end).label(label.message.as_str());
        group = group.element(
            Snippet::source(&text[window])
                .line_start(first_line)
                .path(sources.name(label.span.file))
                .annotation(annotation),
        );
    }
    let mut report = vec![group];
    if let Some(help) = &diagnostic.help {
        report[0] =
            std::mem::replace(&mut report[0], Group::with_title(Level::HELP.secondary_title("")))
                .element(Level::HELP.message(help.as_str()));
    }
    report
}

/// The whole lines around a span, and the number of the first: a snippet need not carry all of a
/// large file.
fn window(text: &str, span: Span, sources: &Sources) -> (std::ops::Range<usize>, usize) {
    let start = (span.start as usize).min(text.len());
    let end = (span.end as usize).clamp(start, text.len()).min(start + 4096);
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at += 1;
        }
        at
    };
    let (start, end) = (boundary(start), boundary(end));
    let from = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let to = text[end..].find('\n').map_or(text.len(), |i| end + i);
    // A line that is itself enormous is cut around the span.
    let from = boundary(from.max(start.saturating_sub(CONTEXT * 16)));
    let to = boundary(to.min(end + CONTEXT * 16).min(text.len()));
    (from..to, sources.line_column(span.file, from as u32).line as usize)
}

/// Diagnostics as an array, for editors.
#[allow(dead_code, reason = "the check command prints it")]
pub(crate) fn to_json(diagnostics: &[Diagnostic], sources: &Sources) -> Value {
    let place = |span: Span| {
        let start = sources.line_column(span.file, span.start);
        let end = sources.line_column(span.file, span.end);
        json!({
            "file": sources.name(span.file),
            "line": start.line, "column": start.column,
            "end_line": end.line, "end_column": end.column,
        })
    };
    let diagnostic = |d: &Diagnostic| {
        let labels: Vec<Value> = d
            .labels
            .iter()
            .map(|l| {
                let mut value = place(l.span);
                value["message"] = json!(l.message);
                value
            })
            .collect();
        json!({
            "severity": d.severity.to_string(), "code": d.code, "message": d.message,
            "labels": labels, "help": d.help,
        })
    };
    Value::Array(diagnostics.iter().map(diagnostic).collect())
}
