//! IPFilter.

use std::ops::Range;

use click::config::Argument;
use ir::{Diagnostic, FileId, Model, Reason, Severity};
use net::Batch;

use crate::argument::parse_integer;
use crate::classify::classifier::{NO_MATCH, RuleClassifier};
use crate::classify::pattern::iptables::DumpLine;
use crate::classify::pattern::{
    Pattern, Rule, Text, Version, Vocabulary, Word, Wrong, class_bench, iptables, nftables,
    parse_words, words,
};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::listing::Slice;

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
    /// of the keyword ACTION. Their column of flags is not looked at. They may also stand among the
    /// arguments. In files, empty lines and lines that start with # do not count.
    ///
    /// A file may be what `nft list ruleset` prints: the rules of the chain CHAIN count, in capitals or not, of a
    /// table of IPv4 (ip or inet), then its policy. Matches of addresses, protocols, ports, flags, types, codepoints and
    /// other numbers of IPv4's header are read, with sets, named ones as they stand in the file, ranges and concatenations.
    /// Ports, types and flags are those of first fragments, as where Linux puts fragments together.
    /// Matches of IPv6 match nothing. Counters, logs and comments mean nothing. Rules that depend on more than the packet,
    /// jump or have verdict maps are not read. A rule of nftables may also stand among the arguments, behind the word `nft`:
    /// `nft ip saddr 10.0.0.0/8 tcp dport 22 accept`.
    ///
    /// A file may also be what `iptables-save` or `iptables -S` prints: the rules of the chain CHAIN in
    /// the table filter count, then its policy; those of other chains and tables do not. ACCEPT is
    /// `allow`; DROP and REJECT are `deny`, and nothing is sent for REJECT. Tests of addresses, protocol,
    /// ports, flags of TCP, ICMP types and fragments are read. Rules that depend on more than the
    /// packet, or jump to other chains, are not, and have to be changed or, with LENIENT, are left out.
    ///
    /// Thousands of rules are looked up in a structure that fits them; the time that it takes
    /// hardly grows with their number. A rule that is inserted, removed or replaced while packets
    /// pass is added to it or taken out.
    ///
    /// = KEYWORDS
    ///
    /// ACTION (an action, default allow): what ClassBench's rules do.
    /// DENIED (number): the output on which packets leave that a rule denies or no rule matches, instead of being dropped.
    /// CHAIN (word, default FORWARD): the chain of iptables or nftables whose rules are read.
    /// LENIENT (bool, default false): whether lines of files that cannot be read are left out, with a
    /// warning for each. What is left out may have allowed or denied something.
    /// CACHING (bool): accepted and without effect.
    ///
    /// = HANDLERS
    ///
    /// program (read): the rules and how they are evaluated.
    /// rules (read): the rules with their numbers, one a line.
    /// rule_insert `N ACTION PATTERN` (write): inserts a rule, which becomes the Nth, from 1 on.
    /// rule_remove `N` (write): removes the Nth rule.
    /// rule_replace `N ACTION PATTERN` (write): replaces the Nth rule.
    /// config (read, write): the configuration; what is written takes its place.
    /// cache_hits_count, cache_misses_count, cache_total_count (read): -1, as there is no cache.
    /// cache_hits_ratio, cache_misses_ratio (read): likewise.
    ///
    /// = EXAMPLE
    ///
    /// IPFilter(deny src net 10.0.0.0/8, allow tcp dst port www or https, 1 icmp, drop all)
    ///
    /// IPFilter(deny src net 10.0.0.0/8, file firewall.rules)
    ///
    /// = SEE ALSO
    ///
    /// IPClassifier, IP6Filter, Classifier, CheckIPHeader, AddressInfo, PortInfo
    IPFilter {
        category: Classify, ports: "1/-", processing: "h/h",
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

element! {
    /// IP6Filter(ACTION PATTERN, ... [KEYWORDS]) -- filters IPv6 packets by their headers
    ///
    /// Does with IPv6 what IPFilter does with IPv4: rules, actions, files, keywords and handlers are the same. See
    /// IP6Classifier for patterns. A list of rules may speak of both versions and be given to both elements: tests of one
    /// hold for no packet of the other. The IPv6 header must have been marked, by CheckIP6Header or MarkIP6Header; a packet
    /// without one fails every test.
    ///
    /// Rules of ClassBench, iptables and nftables, and the policies of their chains, are those of IPv4: they are read and
    /// match nothing.
    ///
    /// Many rules are looked up in a structure as long as all of them look at 8 numbers at most, of which an address takes one
    /// for each 32 bits of its prefix; else they are tested one after the other.
    ///
    /// = KEYWORDS
    ///
    /// ACTION, DENIED, CHAIN, LENIENT, CACHING: as for IPFilter.
    ///
    /// = HANDLERS
    ///
    /// program (read): the rules and how they are evaluated.
    /// rules (read): the rules with their numbers, one a line.
    /// rule_insert `N ACTION PATTERN` (write): inserts a rule, which becomes the Nth, from 1 on.
    /// rule_remove `N` (write): removes the Nth rule.
    /// rule_replace `N ACTION PATTERN` (write): replaces the Nth rule.
    /// config (read, write): the configuration; what is written takes its place.
    /// cache_hits_count, cache_misses_count, cache_total_count (read): -1, as there is no cache.
    /// cache_hits_ratio, cache_misses_ratio (read): likewise.
    ///
    /// = IPV6
    ///
    /// Filtered; extension headers and fragments are as in IP6Classifier. Programs decide on packets without extension
    /// headers.
    ///
    /// = EXAMPLE
    ///
    /// IP6Filter(deny src net 2001:db8:bad::/48, allow tcp dst port 80 or 443, allow icmp6 type echo)
    ///
    /// = SEE ALSO
    ///
    /// IP6Classifier, IPFilter, CheckIP6Header, AddressInfo, PortInfo
    IP6Filter {
        category: Classify, ports: "1/-", processing: "h/h",
        samples: [
            ("allow tcp, drop udp, 1 icmp6", 1, 2),
            ("deny src 2001:db8::1, allow dst net 2001:db8::/32, allow src net 10/8, deny all, allow tcp", 1, 1),
            ("0 src ::1 && dst port 1, 1 src 2001:db8::2 && dst port 2, 0 src net fe80::/10 && dst port 3, \
              1 tcp dst 2001:db8::/64 and port 4, 0 udp", 1, 2)
        ]
    }
}

/// See [`IPFilter::CLASS`].
pub(crate) type IPFilter = HeaderFilter<false>;
/// See [`IP6Filter::CLASS`].
pub(crate) type IP6Filter = HeaderFilter<true>;

/// Filters packets of IPv4, or of IPv6.
pub(crate) struct HeaderFilter<const IPV6: bool> {
    rule_classifier: RuleClassifier,
    keywords: Keywords,
}

/// What keywords say.
#[derive(Clone, Copy, Default)]
struct Keywords {
    /// The arm of rules without an action.
    default: u32,
    /// The output of packets that are denied, if it is not to drop them.
    denied: Option<u32>,
}

/// A rule said so.
const DENIED: Reason = Reason("denied");

/// Why packets are dropped, by how much their arm is beyond the outputs.
const REASONS: &[Reason] = &[NO_MATCH, DENIED];

impl<const IPV6: bool> HeaderFilter<IPV6> {
    const VERSION: Version = if IPV6 { Version::V6 } else { Version::V4 };

    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut keywords = Keywords::default();
        let mut rule_classifier = RuleClassifier::configure(cx, Self::VERSION, REASONS, |cx| {
            Self::rules(cx, &mut keywords)
        })?;
        rule_classifier.set_denied(keywords.denied);
        Ok(Self { rule_classifier, keywords })
    }

    /// Reads the rules and the keywords.
    fn rules(cx: &mut Configure<'_>, keywords: &mut Keywords) -> Result<Vec<Rule>, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["ACTION", "DENIED", "CHAIN", "LENIENT", "CACHING"]);
        arguments.keyword::<bool>("CACHING");
        let is_lenient = arguments.keyword("LENIENT").unwrap_or(false);
        let chain = arguments.keyword_argument("CHAIN").map(|argument| argument.text);
        *keywords = Keywords::default();
        if let Some(argument) = arguments.keyword_argument("DENIED") {
            keywords.denied = arguments.parse::<u32>("DENIED", &argument);
            if keywords.denied.is_some_and(|port| port as usize >= outputs) {
                let message = format!("there is no output {}", argument.text);
                arguments.error(&argument, message);
            }
        }
        if let Some(argument) = arguments.keyword_argument("ACTION") {
            match words(&argument.text).first().map(|&word| action(word, outputs)) {
                Some(Ok(arm)) => keywords.default = arm,
                Some(Err(wrong)) => arguments.report(wrong.diagnostic(&Text::Argument(&argument))),
                None => {}
            }
        }
        let chain = chain.unwrap_or_else(|| "FORWARD".to_string());
        let mut reader = Reader {
            version: Self::VERSION,
            outputs,
            default: keywords.default,
            chain,
            is_lenient,
            left_out: 0,
            rules: Vec::new(),
        };
        for argument in arguments.rest() {
            let (first, rest) = argument.split_word();
            if first.text == "file" {
                reader.read_file(&mut arguments, &rest);
            } else {
                reader.read(&mut arguments, Text::Argument(&argument));
            }
        }
        arguments.finish()?;
        Ok(reader.rules)
    }

    /// The arguments that say what differs from what is usual.
    fn arguments(&self) -> Vec<String> {
        let Keywords { default, denied } = self.keywords;
        let action = match default.checked_sub(self.rule_classifier.outputs() as u32) {
            Some(_) => Some("ACTION drop".to_string()),
            None => (default > 0).then(|| format!("ACTION {default}")),
        };
        action.into_iter().chain(denied.map(|port| format!("DENIED {port}"))).collect()
    }
}

/// Collects rules.
struct Reader {
    version: Version,
    outputs: usize,
    /// The arm of rules without an action.
    default: u32,
    /// The chain of iptables that is read.
    chain: String,
    /// Whether lines that cannot be read are left out.
    is_lenient: bool,
    /// How many of a file were.
    left_out: usize,
    rules: Vec<Rule>,
}

/// Lines of a file that are left out are shown one by one, up to this many.
const MOST_SHOWN: usize = 50;

impl Reader {
    /// Reads a rule, reporting what is wrong with it.
    fn read(&mut self, arguments: &mut Arguments<'_, '_>, text: Text<'_>) {
        let element = arguments.cx().name();
        let (names, version) = (arguments.cx().names(), self.version);
        let vocabulary = Vocabulary { names, element, version, has_others: true };
        match rule(text.as_str(), self.outputs, self.default, &vocabulary) {
            Ok((arm, pattern)) => {
                let span = Some(text.span());
                let written = match iptables::is_rule(text.as_str()) {
                    true => iptables::normal(text.as_str()).into(),
                    false => text.as_str().into(),
                };
                self.rules.push(Rule { pattern, arm, text: written, span });
            }
            Err(wrong) if matches!(text, Text::Line(..)) => self.wrong(arguments, wrong, text),
            Err(wrong) => arguments.report(wrong.diagnostic(&text)),
        }
    }

    /// Reads a file of rules.
    fn read_file(&mut self, arguments: &mut Arguments<'_, '_>, path: &Argument) {
        if path.text.is_empty() {
            return arguments.error(path, "'file' is followed by a path");
        }
        let Some((file, content)) = arguments.read_file(path) else { return };
        let before = self.rules.len();
        self.left_out = 0;
        match nftables::is_listing(&content) {
            true => self.read_listing(arguments, path, (file, &content)),
            false => self.read_lines(arguments, path, (file, &content)),
        }
        if self.left_out > 0 {
            let (left_out, read) = (self.left_out, self.rules.len() - before);
            let message = format!("{left_out} lines are left out, {read} rules are read");
            let warning = Diagnostic::warning("rules-left-out", message);
            arguments.report(warning.label(path.span, "of this file"));
        }
    }

    /// Reads a file that has a rule on each line.
    fn read_lines(
        &mut self,
        arguments: &mut Arguments<'_, '_>,
        path: &Argument,
        (file, content): (FileId, &str),
    ) {
        let mut at = 0;
        // Of a dump of iptables: whether its table filters, the policy of the chain, and another chain that has rules.
        let (mut filters, mut policy, mut other) = (true, None, None);
        let mut is_there = false;
        for line in content.split_inclusive('\n') {
            let start = at + line.len() - line.trim_start().len();
            at += line.len();
            let line = line.trim();
            let text = Text::Line(line, file, start);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match DumpLine::of(line) {
                None => self.read(arguments, text),
                Some(DumpLine::Table(table)) => filters = table == "filter",
                Some(DumpLine::Policy(chain, passes)) if filters && chain == self.chain => {
                    (policy, is_there) = (Some((passes, text)), true);
                }
                Some(DumpLine::Rule(chain)) if filters && chain == self.chain => {
                    is_there = true;
                    self.read(arguments, text);
                }
                Some(DumpLine::Rule(chain)) if filters => other = Some(chain),
                Some(DumpLine::Policy(..) | DumpLine::Rule(_) | DumpLine::Nothing) => {}
            }
        }
        if let (Some(other), false) = (other, is_there) {
            self.other_chain(arguments, path, other);
        }
        if let Some((passes, text)) = policy {
            self.policy(arguments, passes, text, 0..text.as_str().len());
        }
    }

    /// Reads what `nft list ruleset` prints.
    fn read_listing(
        &mut self,
        arguments: &mut Arguments<'_, '_>,
        path: &Argument,
        (file, content): (FileId, &str),
    ) {
        let text = Text::Line(content, file, 0);
        let chains = match nftables::chains(content) {
            Ok(chains) => chains,
            Err(wrong) => return arguments.report(wrong.diagnostic(&text)),
        };
        let is_it = |chain: &&nftables::Chain<'_>| chain.name().eq_ignore_ascii_case(&self.chain);
        let mut found = chains.iter().filter(is_it);
        let (Some(chain), second) = (found.next(), found.next()) else {
            return match chains.first() {
                Some(other) => self.other_chain(arguments, path, other.name()),
                None => arguments.error(path, "no table of IPv4 has a chain here"),
            };
        };
        if let Some(second) = second {
            let message = format!("there is another chain '{}'", second.name());
            let error = Diagnostic::error("bad-argument", message);
            arguments.report(error.label(text.locate(second.named_at()), ""));
        }
        for (range, rule) in chain.rules() {
            match rule {
                Ok(nftables::Rule { passes, pattern, text: written }) => {
                    let verdict = if passes { "allow" } else { "deny" };
                    match action(Word { text: verdict, start: range.start }, self.outputs) {
                        Ok(arm) => {
                            let span = Some(text.locate(range));
                            let pattern = of_ipv4(self.version, pattern);
                            self.rules.push(Rule { pattern, arm, text: written.into(), span });
                        }
                        Err(wrong) => arguments.report(wrong.diagnostic(&text)),
                    }
                }
                Err(wrong) => self.wrong(arguments, wrong, text),
            }
        }
        if let Some((passes, range)) = chain.policy.clone() {
            self.policy(arguments, passes, text, range);
        }
    }

    /// Reports what is wrong with a rule of a file; it is an error, or the rule is left out.
    fn wrong(&mut self, arguments: &mut Arguments<'_, '_>, wrong: Wrong, text: Text<'_>) {
        if !self.is_lenient {
            return arguments.report(wrong.diagnostic(&text));
        }
        self.left_out += 1;
        if self.left_out <= MOST_SHOWN {
            arguments.report(Diagnostic { severity: Severity::Warning, ..wrong.diagnostic(&text) });
        }
    }

    /// Says that a file has rules of another chain only.
    fn other_chain(&self, arguments: &mut Arguments<'_, '_>, path: &Argument, other: &str) {
        let message = format!("there are rules of the chain {other}, and none of {}", self.chain);
        let error = Diagnostic::error("bad-argument", message).label(path.span, "read here");
        arguments.report(error.help(format!("CHAIN {other} reads those")));
    }

    /// Adds what becomes of packets that no rule decides on.
    fn policy(
        &mut self,
        arguments: &mut Arguments<'_, '_>,
        passes: bool,
        text: Text<'_>,
        range: Range<usize>,
    ) {
        let pattern = of_ipv4(self.version, Pattern::Const(true));
        let span = Some(text.locate(range));
        let (verdict, written) = if passes { ("allow", "allow all") } else { ("deny", "deny all") };
        match action(Word { text: verdict, start: 0 }, self.outputs) {
            Ok(arm) => self.rules.push(Rule { pattern, arm, text: written.into(), span }),
            Err(wrong) => arguments.report(wrong.diagnostic(&text)),
        }
    }
}

/// A pattern that tells of IPv4, as it is in a version of IP.
fn of_ipv4(version: Version, pattern: Pattern) -> Pattern {
    match version {
        Version::V4 => pattern,
        Version::V6 => Pattern::Const(false),
    }
}

/// Parses an action and a pattern, or a rule of ClassBench, which leads to `default`.
pub(crate) fn rule(
    text: &str,
    outputs: usize,
    default: u32,
    vocabulary: &Vocabulary<'_>,
) -> Result<(u32, Pattern), Wrong> {
    if text.starts_with('@') {
        let pattern = class_bench::parse(text).map(|pattern| of_ipv4(vocabulary.version, pattern));
        return pattern.map(|pattern| (default, pattern)).ok_or_else(|| {
            let wrong = Wrong::new(0..text.len(), "this is not a rule of ClassBench");
            wrong.help("'@SRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK FLAGS/MASK'")
        });
    }
    let is_iptables = iptables::is_rule(text);
    if is_iptables || nftables::is_rule(text) {
        let (passes, pattern) = match is_iptables {
            true => iptables::parse(text)?,
            false => nftables::parse(text)?,
        };
        let verdict = if passes { "allow" } else { "deny" };
        let pattern = of_ipv4(vocabulary.version, pattern);
        return Ok((action(Word { text: verdict, start: 0 }, outputs)?, pattern));
    }
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

impl<const IPV6: bool> Element for HeaderFilter<IPV6> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.rule_classifier.push(batch, cx);
    }

    fn model(&self) -> Model {
        self.rule_classifier.model()
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("program"),
                Handler::read("rules"),
                Handler::write("rule_insert"),
                Handler::write("rule_remove"),
                Handler::write("rule_replace"),
                Handler::both("config"),
                Handler::count("cache_hits_count"),
                Handler::count("cache_misses_count"),
                Handler::count("cache_total_count"),
                Handler::read("cache_hits_ratio"),
                Handler::read("cache_misses_ratio"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        if handler.starts_with("cache_") {
            return Ok("-1".to_string());
        }
        self.rule_classifier.read(handler, &self.arguments())
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        self.rule_classifier.list(handler, from, &self.arguments())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        if handler == "config" {
            let mut keywords = Keywords::default();
            self.rule_classifier.reconfigure(value, cx, |cx| Self::rules(cx, &mut keywords))?;
            self.rule_classifier.set_denied(keywords.denied);
            self.keywords = keywords;
            return Ok(());
        }
        let (outputs, default) = (self.rule_classifier.outputs(), self.keywords.default);
        self.rule_classifier
            .change(handler, value, |text, _, vocabulary| rule(text, outputs, default, vocabulary))
    }
}
