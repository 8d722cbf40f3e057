//! Chains: stages between arrows, endpoints, ports.

use ir::{Diagnostic, Span};

use super::{Lost, MAX_PORT, Parsed, Parser};
use crate::ast::{
    Arrow, ArrowKind, Chain, Class, Declaration, Endpoint, Node, PortRange, Ports, Statement,
};
use crate::lexer::{Token, TokenKind};

impl Parser<'_> {
    pub(super) fn chain(&mut self, statements: &mut Vec<Statement>) {
        let start = self.token.start;
        self.end = start;
        let mut stages: Vec<Vec<Endpoint>> = Vec::with_capacity(2);
        let mut arrows = Vec::new();
        let lost = loop {
            let mut stage = Vec::with_capacity(1);
            let lost = self.stage(&mut stage, stages.is_empty()).is_err();
            let skipped = stage.is_empty();
            if !skipped {
                stages.push(stage);
            }
            let Some(arrow) = self.arrow() else { break lost };
            if skipped {
                // `a -> -> b` was reported; the second arrow connects.
                arrows.truncate(stages.len().saturating_sub(1));
            }
            if let (Some(stage), false) = (stages.get(1..).and_then(<[_]>::last), skipped)
                && let Some(endpoint) = stage.iter().find(|e| matches!(e.node, Node::Output))
            {
                let span = endpoint.span.to(arrow.span);
                self.report(
                    Diagnostic::error("implicit-port", "no element stands between two arrows")
                        .label(span, "ports alone mean `output` here, which ends a chain")
                        .help("name the element that the ports belong to"),
                );
            }
            if !stages.is_empty() {
                arrows.push(arrow);
            }
        };
        arrows.truncate(stages.len().saturating_sub(1));
        if lost {
            self.recover();
        }
        if stages.is_empty() {
            return;
        }
        self.check_useless_ports(&stages);
        let span = self.span_from(start);
        statements.push(match Self::as_declaration(stages, span) {
            Ok(declaration) => Statement::Declaration(declaration),
            Err(stages) => Statement::Chain(Chain { stages, arrows, span }),
        });
        if !lost {
            self.end_of_chain();
        }
    }

    /// Ports that face away from the chain connect nothing.
    fn check_useless_ports(&mut self, stages: &[Vec<Endpoint>]) {
        let ends = [(stages.first(), true), (stages.last(), false)];
        for (stage, first) in ends {
            for endpoint in stage.into_iter().flatten() {
                let (ports, message) = match (first, &endpoint.node) {
                    (true, Node::Output) | (false, Node::Input) => continue,
                    (true, _) => (&endpoint.inputs, "input ports at the start of a chain"),
                    (false, _) => (&endpoint.outputs, "output ports at the end of a chain"),
                };
                if let Some(ports) = ports {
                    let span = ports.span;
                    self.report(
                        Diagnostic::error("useless-port", message)
                            .label(span, "nothing is connected to them here")
                            .help("remove them, or connect them with `->`"),
                    );
                }
            }
        }
    }

    /// A stage alone in its statement that spreads its class over its names.
    fn as_declaration(
        mut stages: Vec<Vec<Endpoint>>,
        span: Span,
    ) -> Result<Declaration, Vec<Vec<Endpoint>>> {
        let [stage] = &mut stages[..] else { return Err(stages) };
        let bare = |e: &Endpoint| e.inputs.is_none() && e.outputs.is_none();
        let Some((last, before)) = stage.split_last() else { return Err(stages) };
        let spreads = bare(last)
            && matches!(last.node, Node::Declaration { .. })
            && before.iter().all(|e| bare(e) && matches!(e.node, Node::Name { config: None, .. }));
        if !spreads {
            return Err(stages);
        }
        let mut names = Vec::with_capacity(stage.len());
        let mut declared = None;
        for endpoint in stage.drain(..) {
            match endpoint.node {
                Node::Name { name, .. } => names.push(name),
                Node::Declaration { name, class, config } => {
                    names.push(name);
                    declared = Some((class, config));
                }
                _ => {}
            }
        }
        match declared {
            Some((class, config)) => Ok(Declaration { names, class, config, span }),
            None => Err(stages),
        }
    }

    fn end_of_chain(&mut self) {
        match self.token.kind {
            TokenKind::Semicolon => {
                self.bump();
            }
            TokenKind::End
            | TokenKind::Identifier
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::OpenBracket
            | TokenKind::CloseParen
            | TokenKind::Bars
            | TokenKind::ElementClass
            | TokenKind::Require
            | TokenKind::Provide
            | TokenKind::Define => {}
            _ => {
                let error = self.expected("`->`, `,` or `;`");
                self.report(error);
                self.recover();
            }
        }
    }

    fn arrow(&mut self) -> Option<Arrow> {
        let kind = match self.token.kind {
            TokenKind::Arrow => ArrowKind::Single,
            TokenKind::DoubleArrow => ArrowKind::Double,
            TokenKind::ContextArrow => {
                let text = self.token_text(self.token);
                ArrowKind::Context(text[1..text.len() - 1].to_owned())
            }
            TokenKind::Dash | TokenKind::Unknown => {
                let text = self.token_text(self.token);
                if !matches!(text, "-" | "=" | ">" | "→" | "⟶" | "⇒") {
                    return None;
                }
                let start = self.token.start;
                self.bump();
                if self.at(TokenKind::Unknown) && self.token_text(self.token) == ">" {
                    self.bump();
                }
                let span = self.span_from(start);
                self.report(
                    Diagnostic::error("unexpected-token", "this is not an arrow")
                        .label(span, "expected `->`")
                        .help("did you mean `->`?"),
                );
                return Some(Arrow { kind: ArrowKind::Single, span });
            }
            _ => return None,
        };
        let arrow = self.bump();
        Some(Arrow { kind, span: self.span(arrow) })
    }

    /// Endpoints with commas between them.
    fn stage(&mut self, stage: &mut Vec<Endpoint>, first: bool) -> Parsed<()> {
        loop {
            let endpoint = self.endpoint(first, stage.is_empty())?;
            stage.push(endpoint);
            if self.eat(TokenKind::Comma).is_none() {
                return Ok(());
            }
        }
    }

    fn endpoint(&mut self, first: bool, leading: bool) -> Parsed<Endpoint> {
        let start = self.token.start;
        let inputs = self.ports();
        let node = match self.token.kind {
            TokenKind::Identifier => self.named_node()?,
            TokenKind::OpenBrace => {
                let compound = self.compound()?;
                let config = self.optional_config();
                Node::Compound { compound, config }
            }
            TokenKind::OpenParen => Node::Group(self.group()?),
            kind => return self.implicit(start, inputs, first, leading, kind),
        };
        let outputs = self.ports();
        Ok(Endpoint { inputs, node, outputs, span: self.span_from(start) })
    }

    /// An endpoint without an element: the input or output of what encloses the chain.
    fn implicit(
        &mut self,
        start: usize,
        ports: Option<Ports>,
        first: bool,
        leading: bool,
        next: TokenKind,
    ) -> Parsed<Endpoint> {
        let ends_statement = matches!(
            next,
            TokenKind::Semicolon
                | TokenKind::CloseBrace
                | TokenKind::CloseParen
                | TokenKind::Bars
                | TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Define
                | TokenKind::End
        );
        let implied = if next == TokenKind::Comma {
            ports.is_some()
        } else if next.is_arrow() {
            first && (ports.is_some() || leading)
        } else {
            !first && ends_statement && (ports.is_some() || leading)
        };
        if implied && self.nested() {
            let span = match &ports {
                Some(ports) => ports.span,
                None => Span::new(self.file, start, start),
            };
            return Ok(if first {
                Endpoint { inputs: None, node: Node::Input, outputs: ports, span }
            } else {
                Endpoint { inputs: ports, node: Node::Output, outputs: None, span }
            });
        }
        let mut error = self.expected("an element");
        if implied {
            error = error.help(if first {
                "only inside a compound or group may a chain start with its input"
            } else {
                "only inside a compound or group may a chain end with its output"
            });
        } else if ports.is_some() {
            error = error.help("ports stand before or after an element: `[0] name [1]`");
        } else if next.is_arrow() && !first {
            error = error.help("remove one of the arrows, or put an element between them");
        }
        self.report(error);
        Err(Lost)
    }

    fn named_node(&mut self) -> Parsed<Node> {
        let token = self.bump();
        let name = self.name(token);
        let colon = self.at(TokenKind::Unknown) && self.token_text(self.token) == ":";
        if colon {
            let span = self.span(self.token);
            self.report(
                Diagnostic::error("unexpected-token", "a declaration takes two colons")
                    .label(span, "expected `::`")
                    .help(format!("write `{} :: Class`", name.text)),
            );
        } else if !self.at(TokenKind::Colons) {
            let config = self.optional_config();
            return Ok(Node::Name { name, config });
        }
        self.bump();
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if name.text.split('/').any(digits) {
            self.report(
                Diagnostic::error(
                    "bad-element-name",
                    format!("element name `{}` is a number", name.text),
                )
                .label(name.span, "")
                .help("names have at least one letter, also between slashes"),
            );
        }
        let class = match self.token.kind {
            TokenKind::Identifier => {
                let class = self.bump();
                Class::Named(self.name(class))
            }
            TokenKind::OpenBrace => Class::Compound(self.compound()?),
            _ => {
                let error = self.expected("an element class");
                self.report(error.help(format!("write `{} :: Class`", name.text)));
                return Err(Lost);
            }
        };
        let config = self.optional_config();
        Ok(Node::Declaration { name, class, config })
    }

    // Ports

    fn ports(&mut self) -> Option<Ports> {
        let open = self.eat(TokenKind::OpenBracket)?;
        let mut ranges: Vec<PortRange> = Vec::with_capacity(1);
        let mut unbounded = false;
        loop {
            if let Some(close) = self.eat(TokenKind::CloseBracket) {
                if ranges.is_empty() {
                    let span = Span::new(self.file, close.start, close.start);
                    ranges.push(PortRange { first: 0, last: 0, span });
                }
                unbounded = true;
                break;
            }
            let Some(range) = self.port_range(&mut unbounded) else {
                self.skip_ports(open);
                break;
            };
            ranges.push(range);
            if self.eat(TokenKind::CloseBracket).is_some() {
                break;
            }
            if unbounded || self.eat(TokenKind::Comma).is_none() {
                let error = self.expected(if unbounded { "`]`" } else { "`,` or `]`" });
                self.report(error);
                self.skip_ports(open);
                break;
            }
        }
        if ranges.is_empty() {
            let span = self.span_from(open.start);
            ranges.push(PortRange { first: 0, last: 0, span });
        }
        Some(Ports { ranges, open: unbounded, span: self.span_from(open.start) })
    }

    /// `2`, `2-4` or `2-`, the last of which sets `unbounded`.
    fn port_range(&mut self, unbounded: &mut bool) -> Option<PortRange> {
        let start = self.token.start;
        let first = self.port()?;
        let mut last = first;
        if self.eat(TokenKind::Dash).is_some() {
            if self.at(TokenKind::CloseBracket) {
                *unbounded = true;
            } else {
                last = self.port()?;
            }
        }
        let span = self.span_from(start);
        if last < first {
            self.report(
                Diagnostic::error("bad-port", "the range of ports runs backwards")
                    .label(span, "")
                    .help(format!("write `{last}-{first}`")),
            );
            last = first;
        }
        Some(PortRange { first, last, span })
    }

    fn port(&mut self) -> Option<u32> {
        if !self.at(TokenKind::Identifier) {
            let error = self.expected("a port number");
            self.report(error);
            return None;
        }
        let token = self.bump();
        let text = self.token_text(token);
        let parsed = if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            u32::from_str_radix(hex, 16)
        } else if text.len() > 1 && text.starts_with('0') {
            u32::from_str_radix(text, 8)
        } else {
            text.parse()
        };
        match parsed {
            Ok(port) if port <= MAX_PORT => Some(port),
            _ => {
                let message = if text.bytes().all(|b| b.is_ascii_digit()) {
                    format!("port numbers go up to {MAX_PORT}")
                } else {
                    "ports are numbers".to_owned()
                };
                let span = self.span(token);
                self.report(
                    Diagnostic::error("bad-port", format!("`{text}` is not a port number"))
                        .label(span, message),
                );
                Some(0)
            }
        }
    }

    /// Goes past the `]` that belongs to `open`, if there is one before the statement ends.
    fn skip_ports(&mut self, open: Token) {
        loop {
            match self.token.kind {
                TokenKind::CloseBracket => {
                    self.bump();
                    return;
                }
                TokenKind::Identifier
                | TokenKind::Comma
                | TokenKind::Dash
                | TokenKind::Variable
                | TokenKind::Unknown => {
                    self.bump();
                }
                TokenKind::End => {
                    self.unclosed.push(self.span(open));
                    return;
                }
                _ => return,
            }
        }
    }
}
