//! Diagnostics as people read them: the lines that they are about, with carets.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use ir::{Diagnostic, FileId, Label, Severity, Sources, Span};

use crate::paint::{plain, styled};

/// Renders diagnostics with their lines and carets.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let render = |d| {
        let text = renderer.render(&report(d, sources)) + "\n\n";
        if colour { styled(&text) } else { text }
    };
    diagnostics.iter().map(render).collect()
}

/// Bytes of a message that are shown: it may quote a name of any length.
const MAX_MESSAGE: usize = 1000;
/// Bytes of source text that are shown of a line, before and after a label.
const MAX_LINE: usize = 3000;
/// Bytes that a label spans, as shown.
const MAX_SPAN: usize = 4096;
/// Lines that a label spans, as shown.
const MAX_LINES: usize = 8;
/// Bytes within which labels are shown together.
const MAX_PIECE: usize = 1 << 16;

fn report<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(clipped(&diagnostic.message)).id(diagnostic.code);
    let mut group = Group::with_title(title);
    for cluster in clusters(&diagnostic.labels, sources) {
        let text = sources.text(cluster.file);
        let mut snippet = Snippet::source(&text[cluster.window.clone()])
            .line_start(
                sources.line_column(cluster.file, cluster.window.start as u32).line as usize,
            )
            .path(plain(sources.name(cluster.file)));
        for i in cluster.labels {
            let label = &diagnostic.labels[i];
            let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let shown = shown(text, label.span);
            let shown = shown.start.max(cluster.window.start)..shown.end.min(cluster.window.end);
            let at = shown.start - cluster.window.start
                ..shown.end.max(shown.start) - cluster.window.start;
            snippet = snippet.annotation(kind.span(at).label(clipped(&label.message)));
        }
        group = group.element(snippet);
    }
    let mut report = vec![group];
    if let Some(help) = &diagnostic.help {
        report[0] =
            std::mem::replace(&mut report[0], Group::with_title(Level::HELP.secondary_title("")))
                .element(Level::HELP.message(clipped(help)));
    }
    report
}

/// As much of a message as is shown.
fn clipped(message: &str) -> Cow<'_, str> {
    let message = plain(message);
    match message.len() <= MAX_MESSAGE {
        true => message,
        false => Cow::Owned(format!("{}…", &message[..boundary(&message, MAX_MESSAGE)])),
    }
}

/// Labels that are shown in one piece of source text.
struct Cluster {
    file: FileId,
    /// Whole lines around all of them.
    window: Range<usize>,
    labels: Vec<usize>,
}

/// Labels of one file are shown together unless they lie far apart.
fn clusters(labels: &[Label], sources: &Sources) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let file = label.span.file;
        let own = window(sources.text(file), label.span);
        let near = clusters.iter_mut().find(|c| {
            let joined = c.window.start.min(own.start)..c.window.end.max(own.end);
            c.file == file && joined.len() <= MAX_PIECE
        });
        match near {
            Some(cluster) => {
                cluster.window =
                    cluster.window.start.min(own.start)..cluster.window.end.max(own.end);
                cluster.labels.push(i);
            }
            None => clusters.push(Cluster { file, window: own, labels: vec![i] }),
        }
    }
    clusters
}

/// The bytes of a span that are shown, at character boundaries. White space around it is left
/// out, and of one that goes over many lines only the start is shown.
fn shown(text: &str, span: Span) -> Range<usize> {
    let start = boundary(text, (span.start as usize).min(text.len()));
    let end = boundary(text, (span.end as usize).clamp(start, text.len()));
    let inner = &text[start..end];
    let trimmed = inner.trim();
    if trimmed.is_empty() {
        return start..end.min(start + 1);
    }
    let start = start + (inner.len() - inner.trim_start().len());
    let lines = trimmed.split_inclusive('\n').take(MAX_LINES);
    let end = start + lines.map(str::len).sum::<usize>();
    start..start + text[start..boundary(text, end.min(start + MAX_SPAN))].trim_end().len()
}

/// The whole lines around a span: a snippet need not carry all of a large file.
fn window(text: &str, span: Span) -> Range<usize> {
    let Range { start, end } = shown(text, span);
    let from = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let to = text[end..].find('\n').map_or(text.len(), |i| end + i);
    // A line that is itself enormous is cut around the span.
    boundary(text, from.max(start.saturating_sub(MAX_LINE)))..boundary(text, to.min(end + MAX_LINE))
}

fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}
