//! Configuring rewriters.

use std::cell::OnceCell;
use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Span};

use super::mapper::Mapper;
use super::pattern::{Pattern, PatternRef, Patterns};
use super::peer::{Capacity, Peer};
use super::{Action, Choice, Common, Kind, Ports, Spec, Timeouts};
use crate::argument::{AnnotationOffset, Nanoseconds, parse_integer};
use crate::configure::{Arguments, Configure, Failed, Initialize};
use crate::flow_table::FlowTable;

/// Flows that a rewriter may hold if nothing is said: some hundred megabytes.
const CAPACITY: u64 = 1 << 22;
/// Longer timeouts are as good as this one, some decades.
const LONGEST: u64 = 1 << 60;

const KEYWORDS: &[&str] = &[
    "MAPPING_CAPACITY",
    "CAPACITY",
    "TIMEOUT",
    "GUARANTEE",
    "REAP_INTERVAL",
    "REAP_TIME",
    "REPLY_ANNO",
    "HANDLE_MIGRATION",
    "DST_ANNO",
    "TCP_TIMEOUT",
    "TCP_DONE_TIMEOUT",
    "TCP_NODATA_TIMEOUT",
    "TCP_GUARANTEE",
    "UDP_TIMEOUT",
    "UDP_STREAMING_TIMEOUT",
    "UDP_GUARANTEE",
    "REWRITE",
    "STREAMING_TIMEOUT",
];

impl Kind {
    fn keywords(self) -> &'static [&'static str] {
        match self {
            Kind::Ip => &KEYWORDS[..17],
            Kind::Tcp => &KEYWORDS[..13],
            Kind::Udp => {
                const {
                    &[
                        KEYWORDS[0],
                        KEYWORDS[1],
                        KEYWORDS[2],
                        KEYWORDS[3],
                        KEYWORDS[4],
                        KEYWORDS[5],
                        KEYWORDS[6],
                        KEYWORDS[7],
                        KEYWORDS[8],
                        KEYWORDS[13],
                        KEYWORDS[14],
                        KEYWORDS[15],
                        KEYWORDS[17],
                    ]
                }
            }
            Kind::Ping => &KEYWORDS[..9],
            Kind::Address | Kind::Pair => &KEYWORDS[..8],
        }
    }
}

/// Patterns found while specifications are taken apart; those written there become the
/// element's own.
enum PatternSource {
    Own(usize),
    Named(PatternRef),
}

/// Where answers arrive, if at another rewriter: its name, and where that stands.
type Reply = Option<(String, Span)>;

/// A pattern with its outputs and, for a rewriter, where answers arrive.
struct WithPorts {
    pattern: PatternSource,
    ports: Ports,
    reply: Reply,
}

fn syntax(arguments: &mut Arguments<'_, '_>, at: &Argument, message: &str, help: &str) {
    let error = Diagnostic::error("bad-argument", message).label(at.span, "");
    arguments.report(error.help(help));
}

/// Parses an output; more than 65,535 there are not.
fn output(word: &Argument, arguments: &mut Arguments<'_, '_>) -> Option<u16> {
    let number = parse_integer(&word.text).and_then(|n| u16::try_from(n).ok());
    if number.is_none() {
        arguments.error(word, format!("'{}' is not an output", word.text));
    }
    number
}

/// Complains about an output that is not connected.
fn check_output(
    port: u16,
    outputs: usize,
    word: &Argument,
    arguments: &mut Arguments<'_, '_>,
) -> bool {
    let well = usize::from(port) < outputs;
    if !well {
        arguments.error(
            word,
            format!("output {port} does not exist; outputs are numbered from 0 to {}", outputs - 1),
        );
    }
    well
}

/// Parses the pattern that some words are: its name, or its fields.
fn pattern(
    words: &[Argument],
    whole: &Argument,
    own: &mut Vec<Pattern>,
    arguments: &mut Arguments<'_, '_>,
) -> Option<PatternSource> {
    match words {
        [name] => {
            let cx = arguments.cx();
            let known = cx.names().find(cx.name(), &name.text, |m| m.pattern.clone());
            let group = known.and_then(|(element, index)| {
                Some(PatternRef { group: cx.shared::<Patterns>(&element)?, index })
            });
            if group.is_none() {
                let message = format!("there is no pattern '{}'", name.text);
                syntax(arguments, name, &message, "IPRewriterPatterns defines patterns");
            }
            group.map(PatternSource::Named)
        }
        [_, _] | [_, _, _] | [_, _, _, _] => {
            own.push(Pattern::parse(words, arguments)?);
            Some(PatternSource::Own(own.len() - 1))
        }
        _ => {
            let help = "a pattern is a name, or SADDR SPORT DADDR DPORT, or SADDR DADDR";
            syntax(arguments, whole, "this is not a pattern", help);
            None
        }
    }
}

/// Parses `PATTERN FOUTPUT ROUTPUT [ELEMENT]`, or, without a pattern, the outputs alone.
fn with_ports(
    words: &[Argument],
    whole: &Argument,
    own: &mut Vec<Pattern>,
    keep: bool,
    arguments: &mut Arguments<'_, '_>,
) -> Option<(Option<PatternSource>, Ports, Reply)> {
    let mut words = words;
    let mut reply = None;
    if let [.., last] = words
        && parse_integer(&last.text).is_none()
        && let Some(name) = arguments.cx().resolve(&last.text)
    {
        reply = Some((name, last.span));
        words = &words[..words.len() - 1];
    }
    let [fields @ .., forward_word, reply_word] = words else {
        syntax(arguments, whole, "two outputs are missing", "they come last: FOUTPUT ROUTPUT");
        return None;
    };
    let (forward, back) = (output(forward_word, arguments), output(reply_word, arguments));
    let found = match keep {
        true if fields.is_empty() => None,
        true => {
            syntax(arguments, whole, "too many words", "write: keep FOUTPUT ROUTPUT");
            return None;
        }
        false => Some(pattern(fields, whole, own, arguments)?),
    };
    let ports = Ports { forward: forward?, reply: back? };
    let outputs = arguments.cx().outputs();
    let is_rewriter = outputs > 0;
    if is_rewriter {
        let forward = check_output(ports.forward, outputs, forward_word, arguments);
        let back = reply.is_some() || check_output(ports.reply, outputs, reply_word, arguments);
        if !forward || !back {
            return None;
        }
    }
    Some((found, ports, reply))
}

/// Parses a mapper's `PATTERN FOUTPUT ROUTPUT`.
pub(crate) fn parse_mapped(
    words: &[Argument],
    whole: &Argument,
    own: &mut Vec<Pattern>,
    arguments: &mut Arguments<'_, '_>,
) -> Option<MappedParts> {
    let (found, ports, reply) = with_ports(words, whole, own, false, arguments)?;
    if let Some((_, span)) = reply {
        let error = Diagnostic::error("bad-argument", "a mapper's answers go where its user's do");
        arguments.report(error.label(span, ""));
        return None;
    }
    Some(MappedParts(WithPorts { pattern: found?, ports, reply: None }, whole.span))
}

/// What [`parse_mapped`] found, to be joined with the element's own patterns.
pub(crate) struct MappedParts(WithPorts, Span);

impl MappedParts {
    /// The pattern and its outputs.
    pub(crate) fn resolve(self, own: &Rc<Patterns>) -> super::Mapped {
        super::Mapped { pattern: self.0.pattern.resolve(own), ports: self.0.ports, span: self.1 }
    }
}

impl PatternSource {
    fn resolve(self, own: &Rc<Patterns>) -> PatternRef {
        match self {
            PatternSource::Own(index) => PatternRef { group: Rc::clone(own), index },
            PatternSource::Named(pattern) => pattern,
        }
    }
}

enum Parsed {
    Drop,
    Pass(u16),
    Keep(Ports, Reply),
    Pattern(WithPorts),
    Map(Rc<Mapper>),
    Inbound(Rc<Mapper>),
}

/// The mapper of this name.
fn mapper(name: &Argument, arguments: &mut Arguments<'_, '_>) -> Option<Rc<Mapper>> {
    let cx = arguments.cx();
    let element = cx.resolve(&name.text);
    element.as_deref().and_then(|e| cx.shared::<Mapper>(e))
}

/// Whether a mapper is no more than its pattern.
fn is_plain(mapper: &Mapper) -> bool {
    matches!(mapper.choice, Choice::Only) && !mapper.mapped.is_empty()
}

/// Parses an input's specification.
fn specification(
    argument: &Argument,
    own: &mut Vec<Pattern>,
    arguments: &mut Arguments<'_, '_>,
) -> Option<Parsed> {
    let words: Vec<Argument> = argument.words().collect();
    let Some((first, rest)) = words.split_first() else {
        arguments.error(argument, "an input specification is missing");
        return None;
    };
    match first.text.as_str() {
        "drop" | "discard" => {
            if !rest.is_empty() {
                syntax(arguments, argument, "too many words", "write: drop");
                return None;
            }
            Some(Parsed::Drop)
        }
        "pass" | "passthrough" | "nochange" => match rest {
            [] => Some(Parsed::Pass(0)),
            [word] => {
                let port = output(word, arguments)?;
                let outputs = arguments.cx().outputs();
                check_output(port, outputs, word, arguments).then_some(Parsed::Pass(port))
            }
            _ => {
                syntax(arguments, argument, "too many words", "write: pass OUTPUT");
                None
            }
        },
        "keep" => {
            let (_, ports, reply) = with_ports(rest, argument, own, true, arguments)?;
            Some(Parsed::Keep(ports, reply))
        }
        "pattern" | "xpattern" => {
            let (found, ports, reply) = with_ports(rest, argument, own, false, arguments)?;
            Some(Parsed::Pattern(WithPorts { pattern: found?, ports, reply }))
        }
        "inbound" => {
            let found = match rest {
                [name] => mapper(name, arguments),
                _ => None,
            };
            match found {
                // A pool that is one pattern lets nothing in that belongs to no flow.
                Some(mapper) if is_plain(&mapper) => Some(Parsed::Drop),
                Some(mapper) if mapper.pool().is_some() => Some(Parsed::Inbound(mapper)),
                _ => {
                    let help = "write: inbound POOL, with the name of a PoolMapper";
                    syntax(arguments, argument, "no pool is named", help);
                    None
                }
            }
        }
        name => {
            let cx = arguments.cx();
            let element = cx.resolve(name);
            let mapper = element.as_deref().and_then(|e| cx.shared::<Mapper>(e));
            match (mapper, element) {
                (Some(mapper), _) if rest.is_empty() => {
                    let outputs = arguments.cx().outputs();
                    let ports = mapper.mapped.iter().flat_map(|m| [m.ports.forward, m.ports.reply]);
                    let well = ports
                        .chain(mapper.rejects_to())
                        .max()
                        .is_none_or(|p| check_output(p, outputs, first, arguments));
                    if well && is_plain(&mapper) {
                        // With a turn of its own, as if the pattern was written here.
                        own.push(mapper.mapped[0].pattern.pattern().clone());
                        return Some(Parsed::Pattern(WithPorts {
                            pattern: PatternSource::Own(own.len() - 1),
                            ports: mapper.mapped[0].ports,
                            reply: None,
                        }));
                    }
                    well.then_some(Parsed::Map(mapper))
                }
                (Some(_), _) => {
                    arguments.error(argument, "nothing is expected behind the mapper's name");
                    None
                }
                (None, Some(_)) => {
                    arguments.error(first, format!("'{name}' is not a mapper"));
                    None
                }
                (None, None) => {
                    let message = format!("unknown input specification '{name}'");
                    let help = "it is drop, pass OUTPUT, keep FOUTPUT ROUTPUT, \
                                pattern PATTERN FOUTPUT ROUTPUT, or the name of a mapper";
                    syntax(arguments, first, &message, help);
                    None
                }
            }
        }
    }
}

/// Complains about a pattern that this kind of rewriter cannot execute.
fn check_pattern(kind: Kind, pattern: &Pattern, at: &Argument, arguments: &mut Arguments<'_, '_>) {
    let (well, only) = match kind {
        Kind::Address => (pattern.changes_only_source(), "source addresses"),
        Kind::Pair => (pattern.changes_only_addresses(), "addresses"),
        _ => (true, ""),
    };
    if !well {
        let class = arguments.cx().class().to_string();
        let message = format!("{class} can change {only} only: write - for the rest");
        arguments.error(at, message);
    }
}

/// A timeout in nanoseconds, the last given of several keywords that mean the same.
fn timeout(arguments: &mut Arguments<'_, '_>, names: &[&'static str], kind: Kind) -> Option<u64> {
    let known = names.iter().filter(|n| kind.keywords().contains(n));
    let given = known.filter_map(|name| arguments.keyword::<Nanoseconds>(name)).last();
    given.map(|time| time.0.min(LONGEST))
}

fn timeouts(kind: Kind, arguments: &mut Arguments<'_, '_>) -> Timeouts {
    const SECOND: u64 = 1_000_000_000;
    const GUARANTEE: u64 = 5 * SECOND;
    let a = arguments;
    let of = |timeout: u64, guarantee: u64| (timeout.max(guarantee), guarantee);
    match kind {
        Kind::Ip | Kind::Tcp => {
            let nodata = timeout(a, &["TCP_NODATA_TIMEOUT"], kind).unwrap_or(300 * SECOND);
            let data = timeout(a, &["TIMEOUT", "TCP_TIMEOUT"], kind).unwrap_or(86_400 * SECOND);
            let done = timeout(a, &["TCP_DONE_TIMEOUT"], kind).unwrap_or(240 * SECOND);
            let tcp = timeout(a, &["TCP_GUARANTEE", "GUARANTEE"], kind).unwrap_or(GUARANTEE);
            let udp = timeout(a, &["UDP_TIMEOUT"], kind).unwrap_or(300 * SECOND);
            let streaming = timeout(a, &["UDP_STREAMING_TIMEOUT"], kind).unwrap_or(udp);
            let other = timeout(a, &["UDP_GUARANTEE"], kind).unwrap_or(GUARANTEE);
            Timeouts {
                classes: [
                    of(nodata, tcp),
                    of(data, tcp),
                    of(done, tcp),
                    of(udp, other),
                    of(streaming, other),
                ],
            }
        }
        Kind::Udp => {
            let rpc = timeout(a, &["UDP_TIMEOUT", "TIMEOUT"], kind).unwrap_or(300 * SECOND);
            let streaming = timeout(a, &["UDP_STREAMING_TIMEOUT", "STREAMING_TIMEOUT"], kind);
            let guarantee = timeout(a, &["UDP_GUARANTEE", "GUARANTEE"], kind).unwrap_or(GUARANTEE);
            let rpc = of(rpc, guarantee);
            let streaming = streaming.map_or(rpc, |s| of(s, guarantee));
            Timeouts { classes: [rpc, rpc, rpc, rpc, streaming] }
        }
        Kind::Address | Kind::Pair | Kind::Ping => {
            let default = if kind == Kind::Ping { 300 } else { 7200 };
            let other = timeout(a, &["TIMEOUT"], kind).unwrap_or(default * SECOND);
            let guarantee = timeout(a, &["GUARANTEE"], kind).unwrap_or(GUARANTEE);
            Timeouts { classes: [of(other, guarantee); 5] }
        }
    }
}

fn capacity(kind: Kind, arguments: &mut Arguments<'_, '_>) -> Capacity {
    let given = arguments.keyword_argument("MAPPING_CAPACITY");
    let given = arguments.keyword_argument("CAPACITY").or(given);
    let Some(given) = given else { return Capacity::Own(CAPACITY) };
    if let Some(capacity) = parse_integer(&given.text).and_then(|c| u64::try_from(c).ok()) {
        return Capacity::Own(capacity);
    }
    let cx = arguments.cx();
    match cx.resolve(&given.text) {
        Some(name) if name == cx.name() => Capacity::Own(CAPACITY),
        Some(name) => Capacity::Of(name),
        None => {
            let message = format!("'{}' is neither a number nor an element", given.text);
            let help = format!("write a number of flows, or the {kind:?}Rewriter to share with");
            syntax(arguments, &given, &message, &help.replace("IpRewriter", "IPRewriter"));
            Capacity::Own(0)
        }
    }
}

impl Common {
    /// Takes a rewriter's arguments apart.
    pub(super) fn configure(kind: Kind, cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (inputs, outputs, span) = (cx.inputs(), cx.outputs(), cx.span());
        let name = cx.name().to_string();
        let mut arguments = cx.arguments(kind.keywords());
        let capacity = capacity(kind, &mut arguments);
        let timeouts = timeouts(kind, &mut arguments);
        // Flows expire on their own here; nothing reaps them now and then.
        arguments.keyword::<Nanoseconds>("REAP_INTERVAL");
        arguments.keyword::<Nanoseconds>("REAP_TIME");
        arguments.keyword::<bool>("HANDLE_MIGRATION");
        let dst_annotation = match kind {
            Kind::Address | Kind::Pair => true,
            _ => arguments.keyword("DST_ANNO").unwrap_or(true),
        };
        let rewrites = kind != Kind::Ip || arguments.keyword("REWRITE").unwrap_or(true);
        let reply_annotation = arguments.keyword::<AnnotationOffset<1>>("REPLY_ANNO").map(|a| a.0);
        let written = arguments.rest();
        if written.len() != inputs {
            let error = format!(
                "{inputs} input specifications are needed, one for each input; {} are given",
                written.len()
            );
            arguments.report(Diagnostic::error("bad-argument", error).label(span, ""));
        }
        let mut own = Vec::new();
        let parsed: Vec<Option<Parsed>> =
            written.iter().map(|a| specification(a, &mut own, &mut arguments)).collect();
        let own = Rc::new(Patterns::new(&name, own));
        let mut specs = Vec::new();
        for (parsed, argument) in parsed.into_iter().zip(&written) {
            let (action, reply) = match parsed {
                None | Some(Parsed::Drop) => (Action::Drop, None),
                Some(Parsed::Pass(output)) => (Action::Pass(output), None),
                Some(Parsed::Keep(ports, reply)) => (Action::Keep(ports), reply),
                Some(Parsed::Pattern(found)) => {
                    (Action::Pattern(found.pattern.resolve(&own), found.ports), found.reply)
                }
                Some(Parsed::Map(mapper)) => (Action::Map(mapper), None),
                Some(Parsed::Inbound(mapper)) => (Action::Inbound(mapper), None),
            };
            let spec = Spec { action, reply, reply_member: None };
            if let Action::Map(mapper) = &spec.action
                && matches!(mapper.choice, Choice::Backends(_))
                && matches!(kind, Kind::Address | Kind::Pair)
            {
                let class = arguments.cx().class().to_string();
                let message = format!("{class} cannot spread flows over backends");
                let help = "IPRewriter, TCPRewriter, UDPRewriter and ICMPPingRewriter can";
                syntax(&mut arguments, argument, &message, help);
            }
            if let Action::Map(mapper) = &spec.action
                && let Choice::Backends(backends) = &mapper.choice
                && !rewrites
                && let Some(backend) = backends.forbid_ports()
            {
                let message = format!("the backend {backend} has a port, and packets keep theirs");
                syntax(&mut arguments, argument, &message, "write addresses alone");
            }
            if spec.action.pool().is_some() && !matches!(kind, Kind::Ip | Kind::Tcp | Kind::Ping) {
                let class = arguments.cx().class().to_string();
                let message = format!("{class} cannot allocate from a pool");
                let help = "IPRewriter, TCPRewriter and ICMPPingRewriter can";
                syntax(&mut arguments, argument, &message, help);
            }
            for pattern in Common::patterns(&spec) {
                check_pattern(kind, pattern.pattern(), argument, &mut arguments);
            }
            specs.push(spec);
        }
        arguments.finish()?;
        cx.claim(None, span, FlowTable::EMPTY)?;
        let peer = Rc::new(Peer {
            name: name.clone(),
            kind,
            outputs,
            timeouts,
            rewrites,
            capacity,
            joined: OnceCell::new(),
        });
        cx.share(Rc::clone(&peer));
        let failures = vec![0; specs.len()];
        Ok(Self {
            name,
            kind,
            specs,
            peer,
            joined: None,
            timeouts,
            rewrites,
            dst_annotation,
            reply_annotation,
            failures,
        })
    }

    /// Finds the other rewriters that this one has to do with.
    pub(super) fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let mut failed = false;
        let mut error = |cx: &mut Initialize<'_>, span, message: String| {
            failed = true;
            cx.report(Diagnostic::error("bad-argument", message).label(span, ""));
        };
        let joined = match self.peer.join(&|name| cx.shared::<Peer>(name)) {
            Ok(joined) => joined,
            Err(message) => {
                let span = cx.span;
                error(cx, span, message);
                return Err(Failed);
            }
        };
        for spec in &mut self.specs {
            let Some((name, span)) = &spec.reply else { continue };
            let Some(other) = cx.shared::<Peer>(name).filter(|other| other.kind == self.kind)
            else {
                error(cx, *span, format!("'{name}' is not a rewriter of the same class"));
                continue;
            };
            match other.join(&|name| cx.shared::<Peer>(name)) {
                Ok(at) if Rc::ptr_eq(&at.set, &joined.set) => {
                    spec.reply_member = Some(at.member);
                }
                Ok(_) => error(
                    cx,
                    *span,
                    format!("'{name}' must share this rewriter's MAPPING_CAPACITY"),
                ),
                Err(message) => error(cx, *span, message),
            }
            let (Action::Keep(ports) | Action::Pattern(_, ports)) = &spec.action else { continue };
            if usize::from(ports.reply) >= other.outputs {
                error(cx, *span, format!("'{name}' has no output {}", ports.reply));
            }
        }
        let mut set = joined.set.borrow_mut();
        for spec in &self.specs {
            let member = spec.reply_member.unwrap_or(joined.member);
            for pattern in Self::patterns(spec) {
                if let Some(pool) = pattern.pattern().pool(member, self.kind == Kind::Ping) {
                    set.table.watch(pool);
                }
            }
        }
        drop(set);
        for spec in &self.specs {
            if let Action::Map(mapper) = &spec.action
                && let Choice::Backends(backends) = &mapper.choice
            {
                backends.used_by(&joined);
            }
        }
        for pool in self.specs.iter().filter_map(|spec| spec.action.pool()) {
            pool.used_by(&joined);
        }
        self.joined = Some(joined);
        if failed { Err(Failed) } else { Ok(()) }
    }
}
