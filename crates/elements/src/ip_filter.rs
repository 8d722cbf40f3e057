//! IPFilter.

use click::config::Argument;
use ir::{Diagnostic, Model, Reason};
use net::Batch;

use crate::argument::parse_integer;
use crate::classifier::{self, NO_MATCH};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::pattern::{
    Filter, Pattern, Rule, Text, Vocabulary, Word, Wrong, class_bench, parse_words, words,
};

element! {
    /// IPFilter(ACTION PATTERN, ... [KEYWORDS]) -- filters IP packets by their headers
    ///
    /// Packets are tested against the patterns in order, and the action of the first that matches
    /// decides. Packets that match none are dropped. An action is a number, the output that the
    /// packet leaves on; `allow`, which is output 0; or `deny` or `drop`. See IPClassifier for
    /// patterns; an action without a pattern takes every packet. The IP header must have been
    /// marked, by CheckIPHeader or MarkIPHeader; a packet without one fails every test.
    ///
    /// `file PATH` in place of a rule stands for all rules of a file, one a line: either an
    /// action and a pattern, as above, or a rule of ClassBench:
    ///
    /// `@SRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK FLAGS/MASK`
    ///
    /// with the ranges of source and destination ports. Such rules have no action; they take that
    /// of the keyword ACTION. Their column of flags is not looked at. Empty lines and lines that
    /// start with # do not count.
    ///
    /// Thousands of rules are looked up in a structure that fits them; the time that it takes
    /// hardly grows with their number.
    ///
    /// = KEYWORDS
    ///
    /// ACTION (an action, default allow): what ClassBench's rules do.
    /// CACHING (bool): accepted and without effect.
    ///
    /// = HANDLERS
    ///
    /// program (read): the rules and how they are carried out.
    /// cache_hits_count, cache_misses_count, cache_total_count, cache_hits_ratio,
    /// cache_misses_ratio (read): -1, as there is no cache.
    ///
    /// = EXAMPLE
    ///
    /// IPFilter(deny src net 10.0.0.0/8, allow tcp dst port www or https, 1 icmp, drop all)
    ///
    /// IPFilter(deny src net 10.0.0.0/8, file firewall.rules)
    ///
    /// = SEE ALSO
    ///
    /// IPClassifier, Classifier, CheckIPHeader, AddressInfo, PortInfo
    IPFilter {
        ports: "1/-", processing: "h/h",
        samples: [
            ("allow tcp, drop udp, 1 icmp", 1, 2),
            ("1 src net 192.168.0.0/16 || src net 127.0.0.0/8, \
              allow tcp && dst host 10.0.0.1 && dst port www && (syn && !ack || src port > 1023 && ack), \
              allow udp && src port domain && dst port > 1023, allow icmp type echo-reply, \
              drop tcp && dst port >= 135 && dst port <= 139, 2 udp && dst port 123, 1 all", 1, 3),
            ("deny src 10.0.0.1, allow dst net 10.0.0.0/8, deny all, allow tcp", 1, 1),
            ("0 src 10.0.0.1 && dst port 1, 1 src 10.0.0.2 && dst port 2, 0 src 10.0.0.3 && dst port 3, \
              1 tcp dst 10.0.0.0/30 and port 4, 0 udp", 1, 2)
        ]
    }
}

/// See [`IPFilter::CLASS`].
pub(crate) struct IPFilter {
    filter: Filter,
    outputs: usize,
}

/// A rule said so.
const DENIED: Reason = Reason("denied");

/// Why packets are dropped, by how much their arm is beyond the outputs.
const REASONS: &[Reason] = &[NO_MATCH, DENIED];

impl IPFilter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["ACTION", "CACHING"]);
        arguments.keyword::<bool>("CACHING");
        let default = arguments.keyword_argument("ACTION");
        let default = default.and_then(|argument| {
            let action = words(&argument.text).first().map(|&word| action(word, outputs));
            match action? {
                Ok(arm) => Some(arm),
                Err(wrong) => {
                    arguments.report(wrong.diagnostic(&Text::Argument(&argument)));
                    None
                }
            }
        });
        let mut reader = Reader { outputs, default: default.unwrap_or(0), rules: Vec::new() };
        for argument in arguments.rest() {
            let (first, rest) = argument.split_word();
            if first.text == "file" {
                reader.read_file(&mut arguments, &rest);
            } else {
                reader.read(&mut arguments, Text::Argument(&argument));
            }
        }
        arguments.finish()?;
        Ok(Self { filter: Filter::new(reader.rules, outputs as u32), outputs })
    }
}

/// Collects rules.
struct Reader {
    outputs: usize,
    /// The arm of rules without an action.
    default: u32,
    rules: Vec<Rule>,
}

impl Reader {
    /// Reads a rule, reporting what is wrong with it.
    fn read(&mut self, arguments: &mut Arguments<'_, '_>, text: Text<'_>) {
        let element = arguments.cx().name();
        let vocabulary = Vocabulary { names: arguments.cx().names(), element };
        match rule(text.as_str(), self.outputs, &vocabulary) {
            Ok((arm, pattern)) => {
                let span = Some(text.span());
                self.rules.push(Rule { pattern, arm, text: text.as_str().into(), span });
            }
            Err(wrong) => arguments.report(wrong.diagnostic(&text)),
        }
    }

    /// Reads a file of rules.
    fn read_file(&mut self, arguments: &mut Arguments<'_, '_>, path: &Argument) {
        if path.text.is_empty() {
            return arguments.error(path, "'file' is followed by a path");
        }
        let Some((file, content)) = arguments.read_file(path) else { return };
        let mut at = 0;
        for line in content.split_inclusive('\n') {
            let start = at + line.len() - line.trim_start().len();
            at += line.len();
            let line = line.trim();
            let text = Text::Line(line, file, start);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !line.starts_with('@') {
                self.read(arguments, text);
            } else if let Some(pattern) = class_bench::parse(line) {
                let (arm, span) = (self.default, Some(text.span()));
                self.rules.push(Rule { pattern, arm, text: line.into(), span });
            } else {
                let error = Diagnostic::error("bad-pattern", "this is not a rule of ClassBench");
                arguments.report(
                    error
                        .label(text.span(), "")
                        .help("'@SRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK FLAGS/MASK'"),
                );
            }
        }
    }
}

/// Parses an action and a pattern.
fn rule(text: &str, outputs: usize, vocabulary: &Vocabulary<'_>) -> Result<(u32, Pattern), Wrong> {
    let words = words(text);
    let Some((&first, rest)) = words.split_first() else {
        return Err(Wrong::new(0..0, "a rule is missing"));
    };
    let arm = action(first, outputs)?;
    let pattern = match rest {
        [] => Pattern::Const(true),
        [word] if matches!(word.text, "-" | "any" | "all") => Pattern::Const(true),
        rest => parse_words(rest, text.len(), vocabulary)?,
    };
    Ok((arm, pattern))
}

/// The arm that an action means.
fn action(word: Word<'_>, outputs: usize) -> Result<u32, Wrong> {
    let wrong = |message| Err(Wrong::new(word.range(), message));
    let port = match word.text {
        "deny" | "drop" => return Ok(outputs as u32 + 1),
        "allow" => Some(0),
        text => parse_integer(text),
    };
    let Some(port) = port else {
        let wrong = Wrong::new(word.range(), format!("'{}' is not an action", word.text));
        return Err(wrong.help("a rule starts with allow, deny, drop or the number of an output"));
    };
    match u32::try_from(port) {
        Ok(port) if (port as usize) < outputs => Ok(port),
        _ if outputs == 0 => wrong("no output is connected".to_string()),
        _ => wrong(format!("there is no output {port}: the last is {}", outputs - 1)),
    }
}

impl Element for IPFilter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        classifier::push(&mut self.filter, batch, self.outputs, REASONS, cx);
    }

    fn model(&self) -> Model {
        classifier::model(&self.filter, self.outputs, REASONS)
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("program"),
                Handler::count("cache_hits_count"),
                Handler::count("cache_misses_count"),
                Handler::count("cache_total_count"),
                Handler::read("cache_hits_ratio"),
                Handler::read("cache_misses_ratio"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match handler {
            "program" => Ok(classifier::program(&self.filter, self.outputs)),
            _ => Ok("-1".to_string()),
        }
    }
}
