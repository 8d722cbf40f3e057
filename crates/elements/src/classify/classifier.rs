//! Classifier.

use std::sync::Arc;

use click::config::Argument;
use ir::{IntervalSet, Model, Op, Reason};
use net::Batch;

use crate::classify::pattern::{
    Filter, Origin, PacketBytes, Pattern, Rule, Text, Version, Vocabulary, Wrong,
};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::listing::{self, Slice};
use crate::reconfigure::Reconfigure;

element! {
    /// Classifier(PATTERN, ...) -- sorts packets by their bytes
    ///
    /// Has an output for each pattern and sends a packet to the output of the first pattern that
    /// it matches. Packets that match none are dropped.
    ///
    /// A pattern is a list of clauses `OFFSET/VALUE` or `OFFSET/VALUE%MASK` that must all hold.
    /// OFFSET is the decimal position of a byte; VALUE and MASK are an even number of
    /// hexadecimal digits, where `?` stands for a digit that does not matter. Only bits that are
    /// set in MASK are compared. `!` before a clause negates it. Bytes beyond the end of a packet
    /// equal nothing. The pattern `-` matches every packet.
    ///
    /// = HANDLERS
    ///
    /// program (read): how packets are sorted.
    /// rules (read): the patterns with their numbers, one a line.
    /// rule_replace `N PATTERN` (write): replaces the Nth pattern, counted from 1.
    /// config (read, write): the configuration; what is written takes its place.
    ///
    /// = EXAMPLE
    ///
    /// Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -) sends ARP requests to output 0,
    /// ARP replies to output 1, IP packets to output 2, and everything else to output 3.
    ///
    /// = SEE ALSO
    ///
    /// IPClassifier, IPFilter
    Classifier {
        category: Classify, ports: "1/-", processing: "h/h",
        samples: [
            ("12/0800, -", 1, 2),
            ("12/0806 20/0001, 12/0806 20/0002, 12/0800", 1, 3),
            ("!0/4?%f0, 0/45 !23/11 !23/06, 16/0a00??01%ff00ffff", 1, 3),
            ("0/45 9/06, 0/45 9/11, 0/45 9/01, 0/46, 0/47, 12/0a, 12/12 13/1a, 16/12, 16/0a, -", 1, 10)
        ]
    }
}

/// See [`Classifier::CLASS`].
pub(crate) struct Classifier(RuleClassifier);

/// No rule matched.
pub(crate) const NO_MATCH: Reason = Reason("no-match");

/// The last byte that a clause can look at.
const MAX_OFFSET: usize = 4095;

impl Classifier {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        RuleClassifier::configure(cx, Version::V4, NO_MATCHES, Self::rules).map(Self)
    }

    fn rules(cx: &mut Configure<'_>) -> Result<Vec<Rule>, Failed> {
        patterns(cx, Version::V4, |argument, _| parse(&argument.text))
    }
}

/// Why packets are dropped that no pattern matches.
pub(crate) const NO_MATCHES: &[Reason] = &[NO_MATCH];

/// Reads rules of elements that have an output for each pattern.
pub(crate) fn patterns(
    cx: &mut Configure<'_>,
    version: Version,
    parse: impl Fn(&Argument, &Vocabulary<'_>) -> Result<Pattern, Wrong>,
) -> Result<Vec<Rule>, Failed> {
    let (outputs, span, element) = (cx.outputs(), cx.span(), cx.name());
    let mut arguments = cx.arguments(&[]);
    let patterns = arguments.rest();
    if let Err(error) = check_count(patterns.len(), outputs) {
        arguments.report(error.label(span, ""));
    }
    let mut rules = Vec::with_capacity(patterns.len());
    for (arm, argument) in (0u32..).zip(&patterns) {
        let names = arguments.cx().names();
        let vocabulary = Vocabulary { names, element, version, has_others: true };
        match parse(argument, &vocabulary) {
            Ok(pattern) => {
                let text = argument.text.as_str().into();
                rules.push(Rule { pattern, arm, text, span: Some(argument.span) });
            }
            Err(wrong) => arguments.report(wrong.diagnostic(&Text::Argument(argument))),
        }
    }
    arguments.finish()?;
    Ok(rules)
}

/// A classifier has an output for each pattern.
fn check_count(patterns: usize, outputs: usize) -> Result<(), ir::Diagnostic> {
    if patterns == outputs {
        return Ok(());
    }
    let message = format!("{patterns} patterns are given, {outputs} outputs are connected");
    Err(ir::Diagnostic::error("bad-argument", message).help("there is one output a pattern"))
}

/// Parses a list of clauses.
fn parse(text: &str) -> Result<Pattern, Wrong> {
    if text == "-" {
        return Ok(Pattern::Const(true));
    }
    let mut at = 0;
    let mut clauses = Vec::new();
    let mut negated = false;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if c == '!' && !negated {
            negated = true;
            at += 1;
            continue;
        }
        let end = text[at..].find(char::is_whitespace).map_or(text.len(), |n| at + n);
        let clause = clause(&text[at..end]).map_err(|wrong| Wrong::new(at..end, wrong))?;
        clauses.push(if negated { clause.not() } else { clause });
        negated = false;
        at = end;
    }
    if negated {
        return Err(Wrong::new(text.len()..text.len(), "a clause is missing after '!'"));
    }
    Ok(Pattern::all(clauses))
}

/// Parses `OFFSET/VALUE%MASK`.
fn clause(text: &str) -> Result<Pattern, String> {
    let Some((offset, value)) = text.split_once('/') else {
        return Err(format!("'{text}' is not a clause such as 12/0800"));
    };
    let (value, mask) = match value.split_once('%') {
        Some((value, mask)) => (value, Some(mask)),
        None => (value, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let offset: Option<usize> = offset.parse().ok().filter(|_| digits(offset));
    let offset = offset.ok_or_else(|| format!("'{text}' does not start with a decimal offset"))?;
    let values = nibbles(value)?;
    let masks = mask.map(nibbles).transpose()?;
    if masks.as_ref().is_some_and(|m| m.len() != values.len()) {
        return Err("the mask does not have as many digits as the value".to_string());
    }
    if offset + values.len() > MAX_OFFSET {
        return Err(format!("the clause looks beyond byte {MAX_OFFSET}"));
    }
    let bytes = values.iter().enumerate().map(|(i, &(value, known))| {
        let mask = masks.as_ref().map_or(0xff, |m| m[i].0 & m[i].1) & known;
        (value & mask, mask)
    });
    let bytes: Vec<(u8, u8)> = bytes.collect();
    // Whole words are compared where the clause has them; bytes that do not matter need not be.
    let mut tests = Vec::new();
    for (i, run) in bytes.chunks(4).enumerate() {
        let (Some(first), Some(last)) =
            (run.iter().position(|b| b.1 != 0), run.iter().rposition(|b| b.1 != 0))
        else {
            continue;
        };
        let number = |part: fn(&(u8, u8)) -> u8| {
            run[first..=last].iter().fold(0u32, |n, b| n << 8 | u32::from(part(b)))
        };
        let place = PacketBytes::new(
            Origin::Data,
            (offset + 4 * i + first) as u16,
            (last - first + 1) as u8,
        );
        let value = IntervalSet::single(u128::from(number(|b| b.0)));
        tests.push(Pattern::test(place, number(|b| b.1), value));
    }
    Ok(Pattern::all(tests))
}

/// Bytes from hexadecimal digits, and which of their bits the digits say anything about.
fn nibbles(text: &str) -> Result<Vec<(u8, u8)>, String> {
    let nibble = |c: char| match c {
        '?' => Ok((0, 0)),
        _ => c.to_digit(16).map(|d| (d as u8, 0xf)).ok_or(c),
    };
    let nibbles: Result<Vec<(u8, u8)>, char> = text.chars().map(nibble).collect();
    let nibbles = nibbles.map_err(|c| format!("'{c}' is not a hexadecimal digit"))?;
    if nibbles.len() % 2 == 1 {
        return Err(format!("'{text}' has an odd number of hexadecimal digits"));
    }
    if nibbles.is_empty() {
        return Err("the value has no hexadecimal digits".to_string());
    }
    let byte = |pair: &[(u8, u8)]| (pair[0].0 << 4 | pair[1].0, pair[0].1 << 4 | pair[1].1);
    Ok(nibbles.chunks_exact(2).map(byte).collect())
}

/// Sorts packets by rules, which handlers change while it does.
pub(crate) struct RuleClassifier {
    filter: Filter,
    outputs: usize,
    /// Why packets are dropped, by how much their arm is beyond the outputs.
    reasons: &'static [Reason],
    /// The output that they leave on instead, if there is one.
    denied: Option<u32>,
    around: Reconfigure,
    /// The configuration as it was written, unless single rules were changed since.
    config: Option<Arc<str>>,
    /// How often rules were changed.
    changes: u64,
}

/// The handlers of elements with an output for each pattern.
pub(crate) const HANDLERS: &[Handler] = &[
    Handler::read("program"),
    Handler::read("rules"),
    Handler::write("rule_replace"),
    Handler::both("config"),
];

impl RuleClassifier {
    /// Sorts by the rules that `read` yields.
    pub(crate) fn configure(
        cx: &mut Configure<'_>,
        version: Version,
        reasons: &'static [Reason],
        read: impl FnOnce(&mut Configure<'_>) -> Result<Vec<Rule>, Failed>,
    ) -> Result<Self, Failed> {
        let (around, outputs, config) =
            (Reconfigure::new(cx), cx.outputs(), Some(cx.text().into()));
        let filter = Filter::new(read(cx)?, outputs as u32, version);
        Ok(Self { filter, outputs, reasons, denied: None, around, config, changes: 0 })
    }

    /// Sends what would be dropped to an output, if there is one.
    pub(crate) fn set_denied(&mut self, output: Option<u32>) {
        self.denied = output;
    }

    /// How many outputs there are.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Sends packets to the outputs of their arms; arms beyond the outputs drop them.
    pub(crate) fn push(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        let Self { filter, outputs, reasons, denied, .. } = self;
        let mut arms = filter.arms(batch).iter();
        cx.each(batch, |_, _| {
            let arm = arms.next().map_or(0, |&arm| arm as usize);
            match arm.checked_sub(*outputs) {
                None => Verdict::To(arm),
                Some(drop) => match denied {
                    Some(output) => Verdict::To(*output as usize),
                    None => Verdict::Drop(reasons[drop.min(reasons.len() - 1)]),
                },
            }
        });
    }

    /// What [`Self::push`] means.
    pub(crate) fn model(&self) -> Model {
        let deny = |reason| match self.denied {
            Some(output) => vec![Op::emit(output)],
            None => vec![Op::Drop(reason)],
        };
        let emits = (0..self.outputs).map(|port| vec![Op::emit(port)]);
        let denies = self.reasons.iter().map(|&reason| deny(reason));
        self.filter.model(emits.chain(denies).collect(), deny(NO_MATCH))
    }

    /// Reads `program`, `rules` and `config`; `keywords` are those arguments that are no rules.
    pub(crate) fn read(&self, handler: &str, keywords: &[String]) -> Result<String, String> {
        match self.list(handler, 0, keywords) {
            Some(_) => Ok(listing::whole(|from| self.list(handler, from, keywords))),
            None => Err(format!("handler '{handler}' is not readable")),
        }
    }

    /// A slice of the same.
    pub(crate) fn list(&self, handler: &str, from: u64, keywords: &[String]) -> Option<Slice> {
        let rules = self.filter.rules().len();
        let rule = |at: usize| self.filter.rule(at).map_or("", |rule| &rule.text);
        let arm = |arm: u32| match arm as usize {
            port if port < self.outputs => format!("[{port}]"),
            _ => self.denied.map_or("drop".to_string(), |port| format!("[{port}]")),
        };
        let argument = |at: usize| {
            let comma = if at == 0 { "" } else { ", " };
            match at.checked_sub(keywords.len()) {
                None => format!("{comma}{}", keywords[at]),
                Some(at) => format!("{comma}{}", rule(at)),
            }
        };
        let slice = match (handler, &self.config) {
            ("program", _) => Slice::of_parts(rules + 2, from, |at| self.filter.describe(at, arm)),
            ("rules", _) => Slice::of_parts(rules, from, |at| format!("{} {}\n", at + 1, rule(at))),
            ("config", Some(config)) => Slice::of_text(Arc::clone(config)),
            ("config", None) => Slice::of_parts(keywords.len() + rules, from, argument),
            _ => return None,
        };
        Some(Slice { version: self.changes, ..slice })
    }

    /// Writes `rule_insert`, `rule_remove` and `rule_replace`; `parse` makes an arm and a pattern
    /// of a rule that is to have this index.
    pub(crate) fn change(
        &mut self,
        handler: &str,
        value: &str,
        parse: impl Fn(&str, usize, &Vocabulary<'_>) -> Result<(u32, Pattern), Wrong>,
    ) -> Result<(), String> {
        let (number, text) =
            value.trim().split_once(char::is_whitespace).unwrap_or((value.trim(), ""));
        let (text, insert) = (text.trim(), handler == "rule_insert");
        let most = self.filter.rules().len() + usize::from(insert);
        let index = number.parse().ok().filter(|n| (1..=most).contains(n)).map(|n: usize| n - 1);
        let index = index.ok_or_else(|| match (number, most) {
            ("", _) => "the number of a rule is missing".to_string(),
            (_, 0) => "there are no rules".to_string(),
            _ => format!("'{number}' is not the number of a rule, from 1 to {most}"),
        })?;
        let mut rules = Vec::new();
        if handler == "rule_remove" {
            if !text.is_empty() {
                return Err(format!("'{text}' is too much: rule_remove takes a number"));
            }
        } else if text.is_empty() {
            return Err("a rule is missing behind its number".to_string());
        } else {
            let (names, element) = (self.around.names(), self.around.name());
            let version = self.filter.version();
            let vocabulary = Vocabulary { names, element, version, has_others: true };
            let (arm, pattern) =
                parse(text, index, &vocabulary).map_err(|wrong| match wrong.help {
                    Some(help) => format!("{} ({help})", wrong.message),
                    None => wrong.message,
                })?;
            rules.push(Rule { pattern, arm, text: text.into(), span: None });
        }
        self.filter.splice(index, usize::from(!insert), rules);
        (self.config, self.changes) = (None, self.changes + 1);
        Ok(())
    }

    /// Writes `config`: replaces the rules by those that `read` yields.
    pub(crate) fn reconfigure(
        &mut self,
        config: &str,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Configure<'_>) -> Result<Vec<Rule>, Failed>,
    ) -> Result<(), String> {
        let mut rules = self.around.read(config, cx, read)?;
        rules.iter_mut().for_each(|rule| rule.span = None);
        self.filter.set(rules);
        (self.config, self.changes) = (Some(config.trim().into()), self.changes + 1);
        Ok(())
    }
}

impl Element for Classifier {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.0.push(batch, cx);
    }

    fn model(&self) -> Model {
        self.0.model()
    }

    fn handlers(&self) -> &'static [Handler] {
        HANDLERS
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        self.0.read(handler, &[])
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        self.0.list(handler, from, &[])
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "config" => self.0.reconfigure(value, cx, Self::rules),
            _ => self.0.change(handler, value, |text, arm, _| Ok((arm as u32, parse(text)?))),
        }
    }
}
