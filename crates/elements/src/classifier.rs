//! Classifier.

use click::config::Argument;
use ir::{IntervalSet, Model, Op, Reason};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::pattern::{Filter, Origin, Pattern, Place, Rule, Text, Wrong};

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
        ports: "1/-", processing: "h/h",
        samples: [
            ("12/0800, -", 1, 2),
            ("12/0806 20/0001, 12/0806 20/0002, 12/0800", 1, 3),
            ("!0/4?%f0, 0/45 !23/11 !23/06, 16/0a00??01%ff00ffff", 1, 3),
            ("0/45 9/06, 0/45 9/11, 0/45 9/01, 0/46, 0/47, 12/0a, 12/12 13/1a, 16/12, 16/0a, -", 1, 10)
        ]
    }
}

/// See [`Classifier::CLASS`].
pub(crate) struct Classifier {
    filter: Filter,
    outputs: usize,
}

/// No rule matched.
pub(crate) const NO_MATCH: Reason = Reason("no-match");

/// The last byte that a clause can look at.
const MAX_OFFSET: usize = 4095;

impl Classifier {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let span = cx.span();
        let mut arguments = cx.arguments(&[]);
        let patterns = arguments.rest();
        check_count(patterns.len(), outputs).map_err(|error| {
            arguments.report(error.label(span, ""));
            Failed
        })?;
        let mut rules = Vec::with_capacity(patterns.len());
        for (arm, argument) in (0u32..).zip(&patterns) {
            match parse(argument) {
                Ok(pattern) => {
                    let text = argument.text.as_str().into();
                    rules.push(Rule { pattern, arm, text, span: Some(argument.span) });
                }
                Err(wrong) => arguments.report(wrong.diagnostic(&Text::Argument(argument))),
            }
        }
        arguments.finish()?;
        Ok(Self { filter: Filter::new(rules, outputs as u32), outputs })
    }
}

/// A classifier has an output for each pattern.
pub(crate) fn check_count(patterns: usize, outputs: usize) -> Result<(), ir::Diagnostic> {
    if patterns == outputs {
        return Ok(());
    }
    let message = format!("{patterns} patterns are given, {outputs} outputs are connected");
    Err(ir::Diagnostic::error("bad-argument", message).help("there is one output a pattern"))
}

/// Parses a list of clauses.
fn parse(argument: &Argument) -> Result<Pattern, Wrong> {
    if argument.text == "-" {
        return Ok(Pattern::Const(true));
    }
    let (text, mut at) = (argument.text.as_str(), 0);
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
        let place =
            Place::new(Origin::Data, (offset + 4 * i + first) as u16, (last - first + 1) as u8);
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

/// Sends packets to the outputs of their arms; arms beyond the outputs drop them, by `reasons`.
pub(crate) fn push(
    filter: &mut Filter,
    batch: &mut Batch,
    outputs: usize,
    reasons: &[Reason],
    cx: &mut Context<'_>,
) {
    let mut arms = filter.arms(batch).iter();
    cx.each(batch, |_, _| {
        let arm = arms.next().map_or(0, |&arm| arm as usize);
        match arm.checked_sub(outputs) {
            None => Verdict::To(arm),
            Some(drop) => Verdict::Drop(reasons[drop.min(reasons.len() - 1)]),
        }
    });
}

/// What [`push`] means.
pub(crate) fn model(filter: &Filter, outputs: usize, reasons: &[Reason]) -> Model {
    let emits = (0..outputs).map(|port| vec![Op::emit(port)]);
    let drops = reasons.iter().map(|&reason| vec![Op::Drop(reason)]);
    filter.model(emits.chain(drops).collect(), vec![Op::Drop(NO_MATCH)])
}

/// The handlers of classifying elements.
pub(crate) const HANDLERS: &[Handler] = &[Handler::read("program")];

/// The text of the handler `program`.
pub(crate) fn program(filter: &Filter, outputs: usize) -> String {
    filter.describe(|arm| match arm as usize {
        port if port < outputs => format!("[{port}]"),
        _ => "drop".to_string(),
    })
}

impl Element for Classifier {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        push(&mut self.filter, batch, self.outputs, &[NO_MATCH], cx);
    }

    fn model(&self) -> Model {
        model(&self.filter, self.outputs, &[NO_MATCH])
    }

    fn handlers(&self) -> &'static [Handler] {
        HANDLERS
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(program(&self.filter, self.outputs))
    }
}
