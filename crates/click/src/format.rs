//! The formatter: prints a file in its canonical form.
//!
//! Statements stand on lines of their own, two spaces deeper in each compound and group; at most one
//! blank line between them stays. What fits on a line is printed on it; else a chain breaks before its
//! arrows and a configuration after each comma. A compound or group that was written on one line stays
//! so if it fits, and a configuration whose first argument stands on a new line keeps one argument a
//! line. Comments are kept; arguments are not changed inside.

use std::ops::Range;

use ir::{Diagnostic, FileId, Sources, Span, has_errors};

use crate::ast::{
    ArrowKind, Chain, Class, Compound, Config, Declaration, ElementClass, Endpoint, Group, Name,
    Node, Ports, Statement,
};
use crate::config::{WrittenArgument, written_arguments};

/// Lines are at most this wide, in characters, where they can be broken.
const WIDTH: usize = 100;

/// Formats a file, or says why it cannot be read. The text that comes out parses to the same tree, and
/// formatting it again changes nothing.
pub fn format(sources: &mut Sources, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let (tree, diagnostics) = crate::parse(sources, file);
    if has_errors(&diagnostics) {
        return Err(diagnostics);
    }
    let text = sources.text(file).clone();
    let mut printer = Printer {
        text: &text,
        comments: &tree.comments,
        output: String::with_capacity(text.len()),
        column: 0,
        level: 0,
        pending: Gap::None,
        fresh: true,
        ended: false,
        flat: false,
    };
    // Only what has to go on one line can be too long.
    let _ = printer.block(&tree.statements, 0, 0, text.len());
    if !printer.output.is_empty() {
        printer.output.push('\n');
    }
    Ok(printer.output)
}

/// What comes before the next text.
#[derive(Clone, Copy)]
enum Gap {
    None,
    Space,
    Line { level: usize, blank: bool },
}

/// It does not go on one line.
struct TooLong;

type Printed = Result<(), TooLong>;

struct Printer<'a> {
    text: &'a str,
    /// Those that are not printed yet.
    comments: &'a [Span],
    output: String,
    /// Characters on the current line.
    column: usize,
    /// The depth of indentation of the current line.
    level: usize,
    pending: Gap,
    /// Nothing but indentation stands on the current line.
    fresh: bool,
    /// A comment hides what would follow on the current line.
    ended: bool,
    /// Everything must go on the current line.
    flat: bool,
}

impl<'a> Printer<'a> {
    // Text

    fn put(&mut self, text: &str) -> Printed {
        match std::mem::replace(&mut self.pending, Gap::None) {
            Gap::None => {}
            Gap::Space => {
                self.output.push(' ');
                self.column += 1;
            }
            Gap::Line { .. } if self.flat => return Err(TooLong),
            Gap::Line { level, blank } => {
                if !self.output.is_empty() {
                    self.output.push_str(if blank { "\n\n" } else { "\n" });
                }
                self.output.extend(std::iter::repeat_n("  ", level));
                self.column = 2 * level;
                self.level = level;
                self.fresh = true;
                self.ended = false;
            }
        }
        self.fresh &= text.is_empty();
        self.output.push_str(text);
        match text.rfind(['\n', '\r']) {
            Some(_) if self.flat => return Err(TooLong),
            Some(newline) => self.column = text[newline..].chars().count(),
            None => self.column += text.chars().count(),
        }
        // The semicolon or comma that follows has to fit, too.
        if self.flat && self.column >= WIDTH { Err(TooLong) } else { Ok(()) }
    }

    fn space(&mut self) {
        if let (Gap::None, false) = (self.pending, self.fresh) {
            self.pending = Gap::Space;
        }
    }

    fn line(&mut self, level: usize) {
        self.pending = Gap::Line { level, blank: false };
    }

    /// Prints on one line, or not at all.
    fn try_flat(&mut self, print: impl FnOnce(&mut Self) -> Printed) -> bool {
        let (length, column, pending) = (self.output.len(), self.column, self.pending);
        let (comments, level, flat, fresh) = (self.comments, self.level, self.flat, self.fresh);
        // The line may start with this text.
        if let Gap::Line { .. } = pending
            && self.put("").is_err()
        {
            self.pending = pending;
            return false;
        }
        self.flat = true;
        let fits = print(self).is_ok();
        self.flat = flat;
        if !fits {
            self.output.truncate(length);
            (self.column, self.pending) = (column, pending);
            (self.comments, self.level, self.fresh) = (comments, level, fresh);
        }
        fits
    }

    // Comments

    fn written(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    /// The next comment that starts before byte `limit`.
    fn next_comment(&mut self, limit: usize) -> Option<Span> {
        let (&first, rest) = self.comments.split_first()?;
        if first.start as usize >= limit {
            return None;
        }
        self.comments = rest;
        Some(first)
    }

    fn comment(&mut self, comment: Span) -> Printed {
        let text = self.written(comment);
        if text.starts_with('#') {
            let blank = matches!(self.pending, Gap::Line { blank: true, .. });
            self.pending = Gap::Line { level: 0, blank };
        }
        if text.starts_with("/*") {
            self.put(text)?;
            if text.len() < 4 || !text.ends_with("*/") {
                self.put(" */")?;
            }
            self.space();
            return Ok(());
        }
        self.put(text.trim_end())?;
        if self.flat {
            return Err(TooLong);
        }
        self.ended = true;
        Ok(())
    }

    /// Prints the comments before byte `limit` inside a statement, whose lines go on at `level`.
    fn comments_inside(&mut self, limit: usize, level: usize) -> Printed {
        while let Some(comment) = self.next_comment(limit) {
            if !self.flat && stands_alone(self.text, comment.start as usize) {
                self.line(level);
            } else {
                self.space();
            }
            self.comment(comment)?;
            if !self.flat && !self.written(comment).starts_with("/*") {
                self.line(level);
            }
        }
        Ok(())
    }

    /// Prints the comments before byte `limit` between statements. `end` is where what was printed last
    /// ends in the source.
    fn comments_between(&mut self, limit: usize, level: usize, end: &mut usize) -> Printed {
        while let Some(comment) = self.next_comment(limit) {
            let start = comment.start as usize;
            let newlines = self.newlines(*end, start);
            if newlines == 0 && !self.output.is_empty() && !self.ended {
                self.pending = Gap::Space;
            } else {
                self.item(level, *end, start);
            }
            self.comment(comment)?;
            *end = (*end).max(comment.end as usize);
        }
        Ok(())
    }

    /// Starts a line for what starts at byte `start`, with a blank line before it if the source has one.
    fn item(&mut self, level: usize, end: usize, start: usize) {
        let opening = matches!(self.pending, Gap::Line { .. });
        let blank = !opening && self.newlines(end, start) > 1;
        self.pending = Gap::Line { level, blank };
    }

    fn newlines(&self, from: usize, to: usize) -> usize {
        let between = self.text.get(from..to).unwrap_or("").as_bytes();
        let ends = |(i, &b): (usize, &u8)| match b {
            b'\n' => true,
            b'\r' => between.get(i + 1) != Some(&b'\n'),
            _ => false,
        };
        between.iter().enumerate().filter(|&item| ends(item)).count()
    }

    // Statements

    /// Statements on lines of their own, between the bytes `start` and `end` of the source.
    fn block(
        &mut self,
        statements: &[Statement],
        level: usize,
        start: usize,
        end: usize,
    ) -> Printed {
        let mut last = start;
        // No blank line comes first.
        self.line(level);
        for statement in statements {
            let span = statement.span();
            self.comments_between(span.start as usize, level, &mut last)?;
            self.item(level, last, span.start as usize);
            if !self.try_flat(|p| p.statement(statement, level)) {
                self.statement(statement, level)?;
            }
            let is_compound = matches!(
                statement,
                Statement::ElementClass(ElementClass { class: Class::Compound(_), .. })
            );
            if !is_compound {
                self.put(";")?;
            }
            last = span.end as usize;
        }
        self.comments_between(end, level, &mut last)
    }

    fn statement(&mut self, statement: &Statement, level: usize) -> Printed {
        match statement {
            Statement::Declaration(declaration) => self.declaration(declaration, level),
            Statement::Chain(chain) => self.chain(chain, level),
            Statement::ElementClass(ElementClass { name, class, .. }) => {
                self.put("elementclass")?;
                self.space();
                self.name(name, level)?;
                self.space();
                self.class(class, level)
            }
            Statement::Define(define) => {
                self.put("define")?;
                self.config(&define.config)
            }
            Statement::Require(require) => {
                self.put("require")?;
                self.config(&require.config)
            }
        }
    }

    fn name(&mut self, name: &Name, level: usize) -> Printed {
        self.comments_inside(name.span.start as usize, level + 1)?;
        self.put(&name.text)
    }

    fn class(&mut self, class: &Class, level: usize) -> Printed {
        match class {
            Class::Named(name) => self.name(name, level),
            Class::Compound(compound) => self.compound(compound, level),
        }
    }

    fn declaration(&mut self, declaration: &Declaration, level: usize) -> Printed {
        for (index, name) in declaration.names.iter().enumerate() {
            if index > 0 {
                self.put(",")?;
                self.space();
            }
            self.name(name, level)?;
        }
        self.space();
        self.put("::")?;
        self.space();
        self.class(&declaration.class, level)?;
        self.optional_config(&declaration.config)
    }

    fn chain(&mut self, chain: &Chain, level: usize) -> Printed {
        for (index, stage) in chain.stages.iter().enumerate() {
            let Some(first) = stage.first() else { continue };
            if index > 0 {
                let arrow = &chain.arrows[index - 1];
                let before = &chain.stages[index - 1][..];
                let implied = matches!(before, [Endpoint { node: Node::Input, outputs: None, .. }]);
                if !implied {
                    self.comments_inside(first.span.start as usize, level + 1)?;
                }
                if implied {
                    // The chain starts with the arrow.
                } else if self.flat {
                    self.space();
                } else {
                    self.line(level + 1);
                }
                match &arrow.kind {
                    ArrowKind::Single => self.put("->")?,
                    ArrowKind::Double => self.put("=>")?,
                    ArrowKind::Context(text) => self.put(&format!("~{text}>"))?,
                }
                let ends = matches!(stage[..], [Endpoint { node: Node::Output, inputs: None, .. }]);
                if !ends {
                    self.space();
                }
            }
            let inner = if index > 0 && !self.flat { level + 1 } else { level };
            if self.flat || !self.try_flat(|p| p.stage(stage, inner)) {
                self.stage(stage, inner)?;
            }
        }
        Ok(())
    }

    fn stage(&mut self, stage: &[Endpoint], level: usize) -> Printed {
        for (index, endpoint) in stage.iter().enumerate() {
            if index > 0 {
                self.put(",")?;
                self.comments_inside(endpoint.span.start as usize, level + 1)?;
                if self.flat {
                    self.space();
                } else {
                    self.line(level + 1);
                }
            }
            if self.flat || !self.try_flat(|p| p.endpoint(endpoint, level)) {
                let level = if index > 0 { level + 1 } else { level };
                self.endpoint(endpoint, level)?;
            }
        }
        Ok(())
    }

    fn endpoint(&mut self, endpoint: &Endpoint, level: usize) -> Printed {
        if let Some(ports) = &endpoint.inputs {
            self.ports(ports, level)?;
            if !matches!(endpoint.node, Node::Output) {
                self.space();
            }
        }
        match &endpoint.node {
            Node::Name { name, config } => {
                self.name(name, level)?;
                self.optional_config(config)?;
            }
            Node::Declaration { name, class, config } => {
                self.name(name, level)?;
                self.space();
                self.put("::")?;
                self.space();
                self.class(class, level)?;
                self.optional_config(config)?;
            }
            Node::Compound { compound, config } => {
                self.compound(compound, level)?;
                self.optional_config(config)?;
            }
            Node::Group(group) => self.group(group, level)?,
            Node::Input | Node::Output => {}
        }
        match &endpoint.outputs {
            Some(ports) => self.ports(ports, level),
            None => Ok(()),
        }
    }

    fn ports(&mut self, ports: &Ports, level: usize) -> Printed {
        self.comments_inside(ports.span.start as usize, level + 1)?;
        let mut text = String::from("[");
        for (index, range) in ports.ranges.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text += &range.first.to_string();
            if range.last > range.first {
                text += &format!("-{}", range.last);
            }
        }
        if ports.open {
            let single = ports.ranges.last().is_some_and(|range| range.first == range.last);
            text.push(if single { '-' } else { ',' });
        }
        text.push(']');
        self.put(&text)
    }

    // Compounds and groups

    /// Whether the author wrote it on one line.
    fn is_one_line(&self, span: Span) -> bool {
        !self.written(span).contains(['\n', '\r'])
    }

    fn enclosed(
        &mut self,
        span: Span,
        level: usize,
        opener: &str,
        print: impl FnOnce(&mut Self, usize) -> Printed,
    ) -> Printed {
        if self.flat && !self.is_one_line(span) {
            return Err(TooLong);
        }
        self.comments_inside(span.start as usize, level + 1)?;
        self.put(opener)?;
        // What is inside is as deep as the line that opens it.
        let level = self.level;
        print(self, level)?;
        if self.flat {
            self.comments_inside(span.end as usize - 1, level + 1)?;
            self.space();
        } else {
            self.line(level);
        }
        self.put(if opener == "{" { "}" } else { ")" })
    }

    fn group(&mut self, group: &Group, level: usize) -> Printed {
        self.enclosed(group.span, level, "(", |p, level| {
            let span = group.span;
            p.statements(&group.statements, level, span.start as usize + 1, span.end as usize - 1)
        })
    }

    fn compound(&mut self, compound: &Compound, level: usize) -> Printed {
        self.enclosed(compound.span, level, "{", |p, level| {
            for (index, body) in compound.bodies.iter().enumerate() {
                if index > 0 {
                    p.separator(level)?;
                }
                let mut start = body.span.start as usize;
                for (index, parameter) in body.parameters.iter().enumerate() {
                    if index > 0 {
                        p.put(",")?;
                    }
                    p.space();
                    if let Some(keyword) = &parameter.keyword {
                        p.name(keyword, level)?;
                        p.space();
                    }
                    p.comments_inside(parameter.variable.span.start as usize, level + 1)?;
                    p.put("$")?;
                    p.put(&parameter.variable.text)?;
                    start = parameter.variable.span.end as usize;
                }
                if !body.parameters.is_empty() {
                    p.space();
                    p.put("|")?;
                }
                p.statements(&body.statements, level, start, body.span.end as usize)?;
            }
            if let Some(dots) = compound.extends {
                p.separator(level)?;
                p.space();
                p.comments_inside(dots.start as usize, level + 1)?;
                p.put("...")?;
                if !p.flat {
                    let end = compound.span.end as usize - 1;
                    p.comments_between(end, level + 1, &mut (dots.end as usize))?;
                }
            }
            Ok(())
        })
    }

    fn separator(&mut self, level: usize) -> Printed {
        if self.flat {
            self.space();
        } else {
            self.line(level);
        }
        self.put("||")
    }

    /// Statements inside delimiters that stand at `level`.
    fn statements(
        &mut self,
        statements: &[Statement],
        level: usize,
        start: usize,
        end: usize,
    ) -> Printed {
        if !self.flat {
            return self.block(statements, level + 1, start, end);
        }
        for (index, statement) in statements.iter().enumerate() {
            if index > 0 {
                self.put(";")?;
            }
            self.space();
            self.comments_inside(statement.span().start as usize, level + 1)?;
            self.statement(statement, level)?;
        }
        self.comments_inside(end, level + 1)
    }

    // Configurations

    fn optional_config(&mut self, config: &Option<Config>) -> Printed {
        config.as_ref().map_or(Ok(()), |config| self.config(config))
    }

    fn config(&mut self, config: &Config) -> Printed {
        let written = self.written(config.span);
        if written != config.text {
            // Line directives inside: better not touched.
            self.put("(")?;
            self.put(written)?;
            return self.put(")");
        }
        let (arguments, dangling) = written_arguments(written);
        if self.flat || !self.try_flat(|p| p.config_line(written, &arguments, &dangling)) {
            if self.flat {
                return self.config_line(written, &arguments, &dangling);
            }
            return self.config_lines(written, &arguments, &dangling);
        }
        Ok(())
    }

    /// All arguments on one line.
    fn config_line(
        &mut self,
        written: &str,
        arguments: &[WrittenArgument],
        dangling: &[Range<usize>],
    ) -> Printed {
        if arguments.first().is_some_and(|first| first.starts_line) {
            return Err(TooLong);
        }
        self.put("(")?;
        for (index, argument) in arguments.iter().enumerate() {
            for comment in &argument.before {
                self.comment_text(&written[comment.clone()])?;
                self.space();
            }
            let empty = argument.text.is_empty();
            if empty {
                self.pending = Gap::None;
                self.put(",")?;
            } else {
                self.put(&written[argument.text.clone()])?;
            }
            for comment in &argument.after {
                self.space();
                self.comment_text(&written[comment.clone()])?;
            }
            if !empty && index + 1 < arguments.len() {
                self.put(",")?;
            }
            self.space();
        }
        if arguments.is_empty() {
            self.pending = Gap::None;
        }
        for comment in dangling {
            self.comment_text(&written[comment.clone()])?;
            self.space();
        }
        self.pending = Gap::None;
        self.put(")")
    }

    fn comment_text(&mut self, text: &str) -> Printed {
        if self.flat && !text.starts_with("/*") {
            return Err(TooLong);
        }
        self.put(text.trim_end())?;
        self.ended = !text.starts_with("/*");
        Ok(())
    }

    /// One argument a line.
    fn config_lines(
        &mut self,
        written: &str,
        arguments: &[WrittenArgument],
        dangling: &[Range<usize>],
    ) -> Printed {
        let level = self.level;
        self.put("(")?;
        for (index, argument) in arguments.iter().enumerate() {
            self.line(level + 1);
            for comment in &argument.before {
                let text = &written[comment.clone()];
                self.comment_text(text)?;
                self.space();
                let tail = &written[comment.end..];
                let blank = tail.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(tail.len());
                if !text.starts_with("/*") || tail[..blank].contains(['\n', '\r']) {
                    self.line(level + 1);
                }
            }
            if !argument.text.is_empty() {
                self.put(&written[argument.text.clone()])?;
            }
            if index + 1 < arguments.len() || argument.text.is_empty() {
                self.put(",")?;
            }
            for comment in &argument.after {
                if self.ended || stands_alone(written, comment.start) {
                    self.line(level + 1);
                } else {
                    self.space();
                }
                self.comment_text(&written[comment.clone()])?;
            }
        }
        for comment in dangling {
            self.line(level + 1);
            self.comment_text(&written[comment.clone()])?;
        }
        self.line(level);
        self.put(")")
    }
}

/// Whether only white space stands before byte `at` on its line.
fn stands_alone(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let start = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
    before[start..].trim().is_empty()
}
