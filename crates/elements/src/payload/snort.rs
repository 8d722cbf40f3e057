//! Rules of Snort 2: what packets they are about, which contents they look for, and what becomes of packets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ipnet::Ipv4Net;
use ir::IntervalSet;

use crate::argument::parse_ipv4;
use detection::Detection;
use options::Reading;

pub(crate) mod detection;
mod expression;
mod options;

/// What a rule does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// Lets them pass, whatever other rules say.
    Pass,
    Drop,
    Alert,
}

/// Least and greatest number.
pub(crate) type Range = (u32, u32);

/// Bits of flows that rules may name.
const MOST_BITS: u32 = 128;

/// What a rule demands of its flow's bits, or does to them once it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowBits {
    Set(u128),
    Unset(u128),
    Toggle(u128),
    All(u128),
    Any(u128),
    NotAny(u128),
    NotAll(u128),
}

impl FlowBits {
    /// Whether they are as it demands.
    pub(crate) fn holds(self, bits: u128) -> bool {
        match self {
            Self::All(of) => bits & of == of,
            Self::Any(of) => bits & of != 0,
            Self::NotAny(of) => bits & of == 0,
            Self::NotAll(of) => bits & of != of,
            Self::Set(_) | Self::Unset(_) | Self::Toggle(_) => true,
        }
    }

    /// What they are then.
    pub(crate) fn applied(self, bits: u128) -> u128 {
        match self {
            Self::Set(of) => bits | of,
            Self::Unset(of) => bits & !of,
            Self::Toggle(of) => bits ^ of,
            Self::All(_) | Self::Any(_) | Self::NotAny(_) | Self::NotAll(_) => bits,
        }
    }
}

/// Of whose packets a rate counts matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Track {
    Source,
    Destination,
}

/// Which matches count, of those of an address within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateKind {
    /// Those after so many: `detection_filter`.
    Filter,
    /// The first ones.
    Limit,
    /// One of so many.
    Threshold,
    /// The first of these.
    Both,
}

/// A rate that decides which matches count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub kind: RateKind,
    pub track: Track,
    pub count: u32,
    pub seconds: u32,
}

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub action: Action,
    /// Any of IP if none.
    pub protocol: Option<u8>,
    pub src: IntervalSet,
    pub src_port: IntervalSet,
    pub dst: IntervalSet,
    pub dst_port: IntervalSet,
    /// Whether source and destination may be exchanged.
    pub both: bool,
    /// Whether it is about packets of connections that are there.
    pub established: bool,
    /// Whether it is about what clients say to servers, or what servers say to clients.
    pub to_server: Option<bool>,
    /// Whether it is also about what several packets of a stream hold together.
    pub in_streams: bool,
    pub detections: Vec<Detection>,
    /// What it demands of its flow's bits, and does to them.
    pub bits: Vec<FlowBits>,
    /// Whether it only changes its flow's bits.
    pub is_silent: bool,
    pub rate: Option<Rate>,
    /// Of the payload, of the URI.
    pub size: Option<Range>,
    pub uri_size: Option<Range>,
    pub icmp_type: Option<Range>,
    pub icmp_code: Option<Range>,
    pub gid: u32,
    pub sid: u32,
    pub rev: u32,
    pub priority: u32,
    pub message: String,
    pub class: String,
}

/// What is wrong with a line, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub at: usize,
    pub message: String,
}

/// Why a line is no rule here.
enum Refused {
    Wrong(Wrong),
    /// It has an option that is not supported.
    Option(String),
}

/// The rules of files.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    pub rules: Vec<Rule>,
    /// Rules that are left out, by what is not supported.
    pub left_out: BTreeMap<String, usize>,
    /// Variables that nothing defines: they mean any.
    pub undefined: BTreeSet<String>,
    variables: HashMap<String, String>,
    /// The bits of flows, by name.
    bits: HashMap<String, u32>,
}

/// Variables within variables.
const DEEPEST: usize = 8;
/// Options of a rule, and bytes that it may look for.
const MOST_OPTIONS: usize = 256;

fn wrong(at: usize, message: impl Into<String>) -> Refused {
    Refused::Wrong(Wrong { at, message: message.into() })
}

impl RuleSet {
    /// Reads a line: a rule, a variable (`ipvar`, `portvar`, `var`), a comment, or nothing. Rules that need what is not
    /// supported are left out and counted.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub(crate) fn read(&mut self, line: &str) -> Result<(), Wrong> {
        let start = line.len() - line.trim_start().len();
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let mut words = text.split_ascii_whitespace();
        match words.next() {
            Some("ipvar" | "portvar" | "var") => {
                let (Some(name), Some(value)) = (words.next(), words.next()) else {
                    let message = "expected a name and what it stands for".to_string();
                    return Err(Wrong { at: start, message });
                };
                // What stands behind a list without spaces is part of it.
                let value = words.fold(value.to_string(), |all, word| all + word);
                self.variables.insert(name.to_string(), value);
                return Ok(());
            }
            Some(word @ ("include" | "config" | "preprocessor" | "output")) => {
                *self.left_out.entry(word.to_string()).or_default() += 1;
                return Ok(());
            }
            _ => {}
        }
        match self.rule(text) {
            Ok(rule) => self.rules.push(rule),
            Err(Refused::Option(option)) => *self.left_out.entry(option).or_default() += 1,
            Err(Refused::Wrong(Wrong { at, message })) => {
                return Err(Wrong { at: start + at, message });
            }
        }
        Ok(())
    }

    fn rule(&mut self, text: &str) -> Result<Rule, Refused> {
        let open = text.find('(').ok_or_else(|| wrong(0, "a rule has options in parentheses"))?;
        let words = header(&text[..open]);
        let [action, protocol, src, src_port, direction, dst, dst_port] = words[..] else {
            let message = "a rule begins with ACTION PROTOCOL ADDRESS PORT -> ADDRESS PORT";
            return Err(wrong(0, message));
        };
        let known = match action.1 {
            "alert" | "log" => Action::Alert,
            "pass" => Action::Pass,
            "drop" | "block" | "reject" | "sdrop" => Action::Drop,
            "activate" | "dynamic" => return Err(Refused::Option(action.1.to_string())),
            other => return Err(wrong(action.0, format!("'{other}' is not an action"))),
        };
        let number = match protocol.1 {
            "ip" => None,
            "tcp" => Some(6),
            "udp" => Some(17),
            "icmp" => Some(1),
            other => {
                return Err(wrong(
                    protocol.0,
                    format!("'{other}' is not a protocol: ip, tcp, udp, icmp"),
                ));
            }
        };
        let both = match direction.1 {
            "->" => false,
            "<>" => true,
            _ => return Err(wrong(direction.0, "expected -> or <>")),
        };
        let mut rule = Rule {
            action: known,
            protocol: number,
            src: self.addresses(src, 0)?,
            src_port: self.ports(src_port, 0)?,
            dst: self.addresses(dst, 0)?,
            dst_port: self.ports(dst_port, 0)?,
            both,
            established: false,
            to_server: None,
            in_streams: true,
            detections: Vec::new(),
            bits: Vec::new(),
            is_silent: false,
            rate: None,
            size: None,
            uri_size: None,
            icmp_type: None,
            icmp_code: None,
            gid: 1,
            sid: 0,
            rev: 0,
            priority: 3,
            message: String::new(),
            class: String::new(),
        };
        let close = text.rfind(')').filter(|&at| at > open && at + 1 == text.len());
        let close = close.ok_or_else(|| wrong(text.len(), "the options' ')' is missing"))?;
        let mut reading = Reading::new(&mut self.bits);
        let within = |refused| match refused {
            Refused::Wrong(Wrong { at, message }) => wrong(open + 1 + at, message),
            other => other,
        };
        for (at, name, value) in options(&text[open + 1..close]).map_err(within)? {
            rule.option((open + 1 + at, name, value), &mut reading)?;
        }
        Ok(rule)
    }

    /// Parts of a list in brackets, or the whole, with what `!` says; `None` if any is meant.
    fn set(
        &mut self,
        (at, text): (usize, &str),
        depth: usize,
        width: u16,
        one: &dyn Fn(&str) -> Option<IntervalSet>,
    ) -> Result<IntervalSet, Refused> {
        if depth > DEEPEST {
            return Err(wrong(at, "lists and variables are nested too deep"));
        }
        if let Some(rest) = text.strip_prefix('!') {
            return Ok(self.set((at + 1, rest), depth + 1, width, one)?.complement(width));
        }
        if text == "any" {
            return Ok(IntervalSet::full(width));
        }
        if let Some(name) = text.strip_prefix('$') {
            let Some(value) = self.variables.get(name).cloned() else {
                self.undefined.insert(name.to_string());
                return Ok(IntervalSet::full(width));
            };
            // What is wrong in it is wrong where it is used.
            return self.set((at, &value), depth + 1, width, one);
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (mut all, mut none) = (Vec::new(), Vec::new());
            for part in parts(inner) {
                let part = part.trim();
                match part.strip_prefix('!') {
                    Some(part) => none.push(self.set((at, part), depth + 1, width, one)?),
                    None => all.push(self.set((at, part), depth + 1, width, one)?),
                }
            }
            let all = match all.is_empty() && !none.is_empty() {
                true => IntervalSet::full(width),
                false => IntervalSet::union_of(&all),
            };
            return Ok(all.subtract(&IntervalSet::union_of(&none)));
        }
        one(text).ok_or_else(|| {
            wrong(
                at,
                format!(
                    "'{text}' is neither {}",
                    match width {
                        32 => "an IPv4 address nor a network",
                        _ => "a port nor a range of ports",
                    }
                ),
            )
        })
    }

    fn addresses(&mut self, word: (usize, &str), depth: usize) -> Result<IntervalSet, Refused> {
        if word.1.contains("::") || word.1.matches(':').count() > 1 {
            return Err(Refused::Option("IPv6 address".to_string()));
        }
        self.set(word, depth, 32, &|text| {
            if let Some(address) = parse_ipv4(text) {
                return Some(IntervalSet::single(address.to_bits().into()));
            }
            let network: Ipv4Net = text.parse().ok()?;
            let (low, high) = (network.network().to_bits(), network.broadcast().to_bits());
            Some(IntervalSet::range(low.into(), high.into()))
        })
    }

    fn ports(&mut self, word: (usize, &str), depth: usize) -> Result<IntervalSet, Refused> {
        self.set(word, depth, 16, &|text| {
            let (low, high) = text.split_once(':').unwrap_or((text, text));
            let port = |text: &str, open: u16| match text {
                "" => Some(open),
                text => text.parse::<u16>().ok(),
            };
            let (low, high) = (port(low, 0)?, port(high, u16::MAX)?);
            (low <= high && !text.is_empty() && text != ":")
                .then(|| IntervalSet::range(low.into(), high.into()))
        })
    }
}

/// The words before the options, with their places: lists in brackets may have spaces.
fn header(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut start, mut depth) = (Vec::new(), None, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c.is_ascii_whitespace() && depth == 0 {
            words.extend(start.take().map(|from| (from, &text[from..at])));
        } else {
            start.get_or_insert(at);
        }
    }
    words.extend(start.map(|from| (from, &text[from..])));
    words
}

/// What commas part, outside of brackets within.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// An option's place, name and value.
type RuleOption<'a> = (usize, &'a str, &'a str);

/// The options of a rule. A semicolon within quotes, or behind a backslash, ends none.
fn options(text: &str) -> Result<Vec<RuleOption<'_>>, Refused> {
    let (mut all, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                let option = &text[from..at];
                let start = from + option.len() - option.trim_start().len();
                let (name, value) = option.split_once(':').unwrap_or((option, ""));
                all.push((start, name.trim(), value.trim()));
                from = at + 1;
            }
            _ => {}
        }
        if all.len() > MOST_OPTIONS {
            return Err(wrong(from, format!("there are more than {MOST_OPTIONS} options")));
        }
    }
    match (quoted, text[from..].trim()) {
        (true, _) => Err(wrong(from, "a quotation mark is missing")),
        (_, "") => Ok(all),
        _ => Err(wrong(from, "an option ends with ';'")),
    }
}

#[cfg(test)]
mod tests {
    use super::detection::{Buffer, Number};
    use super::*;

    fn read(text: &str) -> RuleSet {
        let mut set = RuleSet::default();
        text.lines().for_each(|line| set.read(line).unwrap());
        set
    }

    fn refused(text: &str) -> Wrong {
        RuleSet::default().read(text).unwrap_err()
    }

    #[test]
    fn a_rule_is_read() {
        let set = read(concat!(
            "ipvar HOME_NET [10.0.0.0/8, !10.1.0.0/16]\n",
            "drop tcp $HOME_NET 1024: -> !192.0.2.1 [80,8000:8080,!8001] ",
            r#"(msg:"a \"b\"; c"; flow:to_server,established; content:"x|3B 0d0A|\;"; offset:2; "#,
            r#"content:!"Y"; nocase; distance:1; within:9; http_uri; dsize:<99; sid:7; rev:2;)"#,
        ));
        let [rule] = &set.rules[..] else { panic!("{set:?}") };
        assert_eq!((rule.action, rule.protocol, rule.established), (Action::Drop, Some(6), true));
        assert_eq!((rule.message.as_str(), rule.sid, rule.size), ("a \"b\"; c", 7, Some((0, 98))));
        assert!(rule.src.contains(0x0a00_0001) && !rule.src.contains(0x0a01_0001));
        assert!(rule.dst_port.contains(8002) && !rule.dst_port.contains(8001));
        assert!(!rule.dst.contains(0xc000_0201) && rule.dst.contains(1));
        let [Detection::Content(first), Detection::Content(second)] = &rule.detections[..] else {
            panic!("{rule:?}")
        };
        assert_eq!(
            (&first.bytes[..], first.offset, rule.to_server),
            (&b"x;\r\n;"[..], Number::Known(2), Some(true))
        );
        assert_eq!(
            (&second.bytes[..], second.negated, second.buffer),
            (&b"y"[..], true, Buffer::Uri)
        );
        let known = |number| Some(Number::Known(number));
        assert_eq!((second.distance, second.within), (known(1), known(9)));
    }

    #[test]
    fn what_is_not_supported_is_counted_by_name() {
        let set = read(concat!(
            "alert tcp any any -> any any (pcre:\"/x(?!y)/\"; sid:1;)\n",
            "alert tcp any any -> any any (content:\"x\"; pcre:\"/(;)\\1/\"; sid:2;)\n",
            "alert udp any any -> any $DNS (content:\"x\"; byte_test:1,>,2,3,dce; sid:3;)\n",
            "include other.rules\n",
        ));
        let left_out: Vec<_> = set.left_out.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(
            left_out,
            [
                ("byte_test dce", 1),
                ("include", 1),
                ("pcre with backreferences", 1),
                ("pcre with look-around", 1)
            ]
        );
        assert!(set.rules.is_empty() && set.undefined.contains("DNS"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let of = |text: &str| {
            let Wrong { at, message } = refused(text);
            format!("{at}: {message}")
        };
        let rule = |options: &str| of(&format!("alert tcp any any -> any any ({options})"));
        assert!(of("alert tcp any any any any (sid:1;)").starts_with("0: a rule begins"));
        assert_eq!(of("warn tcp any any -> any any (sid:1;)"), "0: 'warn' is not an action");
        assert!(
            of("alert tcp 10.0.0.0/33 any -> any any (sid:1;)").starts_with("10: '10.0.0.0/33'")
        );
        assert!(
            of("alert tcp any 70000 -> any any (sid:1;)")
                .starts_with("14: '70000' is neither a port")
        );
        assert_eq!(rule("sid:1"), "30: an option ends with ';'");
        assert_eq!(rule("content:\"x; sid:1;"), "30: a quotation mark is missing");
        assert_eq!(rule("nocase; sid:1;"), "30: nocase stands behind a content");
        assert!(rule("content:\"|0|\";").starts_with("30: '\"|0|\"' is not a quoted string"));
        assert!(of("alert tcp any any -> any any (sid:1; ").ends_with("')' is missing"));
    }
}
