//! Rules of Snort 2: what packets they are about, which contents they look for, and what becomes of packets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ipnet::Ipv4Net;
use ir::IntervalSet;

use crate::argument::parse_ipv4;

/// What a rule does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// Lets them pass, whatever other rules say.
    Pass,
    Drop,
    Alert,
}

/// A part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Payload,
    Method,
    /// With percent-encoded bytes decoded.
    Uri,
    RawUri,
    Header,
    Cookie,
    /// What comes behind a request's headers.
    ClientBody,
    StatusCode,
    StatusMessage,
    /// What comes behind a response's headers.
    FileData,
}

impl Buffer {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::FileData as usize + 1;

    fn of(option: &str) -> Option<Self> {
        Some(match option {
            "http_method" => Self::Method,
            "http_uri" => Self::Uri,
            "http_raw_uri" => Self::RawUri,
            "http_header" | "http_raw_header" => Self::Header,
            "http_cookie" => Self::Cookie,
            "http_client_body" => Self::ClientBody,
            "http_stat_code" => Self::StatusCode,
            "http_stat_msg" => Self::StatusMessage,
            _ => return None,
        })
    }
}

/// Bytes that a rule looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// In lower case if `any_case`.
    pub bytes: Vec<u8>,
    pub any_case: bool,
    /// Whether they must not be there.
    pub negated: bool,
    pub buffer: Buffer,
    /// From the buffer's start: where the search begins, and how many bytes it may take.
    pub offset: i64,
    pub depth: Option<i64>,
    /// The same from the end of the match before, if any is told.
    pub distance: Option<i64>,
    pub within: Option<i64>,
}

impl Content {
    /// Whether the match before says where it is looked for.
    pub(crate) fn is_relative(&self) -> bool {
        self.distance.is_some() || self.within.is_some()
    }
}

/// Least and greatest number.
pub(crate) type Range = (u32, u32);

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
    pub contents: Vec<Content>,
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
            contents: Vec::new(),
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
        let mut sticky = Buffer::Payload;
        let within = |refused| match refused {
            Refused::Wrong(Wrong { at, message }) => wrong(open + 1 + at, message),
            other => other,
        };
        for (at, name, value) in options(&text[open + 1..close]).map_err(within)? {
            rule.option((open + 1 + at, name, value), &mut sticky)?;
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

/// A quoted string without its escapes.
fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    Some(text)
}

/// The bytes of a content: text, with hexadecimal numbers between bars.
fn bytes(value: &str) -> Option<Vec<u8>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(&b) = inner.get(at) {
        at += 1;
        match b {
            b'\\' => {
                all.push(*inner.get(at)?);
                at += 1;
            }
            b'|' => {
                let length = inner[at..].iter().position(|&b| b == b'|')?;
                let text = std::str::from_utf8(&inner[at..at + length]).ok()?;
                for word in text.split_ascii_whitespace() {
                    let digits = word.as_bytes().chunks(2);
                    for pair in digits {
                        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
                        all.push(u8::from_str_radix(pair, 16).ok()?);
                    }
                }
                at += length + 1;
            }
            b => all.push(b),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `N`, `<N`, `>N` or `N<>M`.
fn range(value: &str) -> Option<Range> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    if let Some((low, high)) = value.split_once("<>") {
        return Some((number(low)?, number(high)?)).filter(|(low, high)| low <= high);
    }
    Some(match (value.strip_prefix('<'), value.strip_prefix('>')) {
        (Some(n), _) => (0, number(n)?.checked_sub(1)?),
        (_, Some(n)) => (number(n)?.checked_add(1)?, u32::MAX),
        _ => (number(value)?, number(value)?),
    })
}

impl Rule {
    fn option(
        &mut self,
        (at, name, value): RuleOption<'_>,
        sticky: &mut Buffer,
    ) -> Result<(), Refused> {
        let bad = |what: &str| wrong(at, format!("'{value}' is not {what} for {name}"));
        let number = || value.parse::<u32>().map_err(|_| bad("a number"));
        let some_range = || range(value).ok_or_else(|| bad("a number, <N, >N or N<>M"));
        match name {
            "content" | "uricontent" => {
                let (negated, quoted) = match value.strip_prefix('!') {
                    Some(rest) => (true, rest.trim()),
                    None => (false, value),
                };
                if quoted.starts_with('"') && !quoted.ends_with('"') {
                    return Err(Refused::Option("content with modifiers of Snort 3".to_string()));
                }
                let bytes = bytes(quoted).ok_or_else(|| bad("a quoted string"))?;
                let buffer = if name == "content" { *sticky } else { Buffer::Uri };
                self.contents.push(Content {
                    bytes,
                    any_case: false,
                    negated,
                    buffer,
                    offset: 0,
                    depth: None,
                    distance: None,
                    within: None,
                });
            }
            "nocase" | "offset" | "depth" | "distance" | "within" => {
                let content = self.contents.last_mut();
                let content =
                    content.ok_or_else(|| wrong(at, format!("{name} stands behind a content")))?;
                if name == "nocase" {
                    content.any_case = true;
                    content.bytes.make_ascii_lowercase();
                    return Ok(());
                }
                // The name of a number that is read from the packet.
                if value.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    return Err(Refused::Option(format!("{name} of a variable")));
                }
                let number: i64 = value.parse::<i32>().map_err(|_| bad("a number"))?.into();
                match name {
                    "offset" => content.offset = number,
                    "depth" => content.depth = Some(number),
                    "distance" => content.distance = Some(number),
                    _ => content.within = Some(number),
                }
            }
            "fast_pattern" | "rawbytes" | "reference" | "metadata" => {}
            "file_data" => *sticky = Buffer::FileData,
            "pkt_data" => *sticky = Buffer::Payload,
            "msg" => self.message = unquoted(value).ok_or_else(|| bad("a quoted string"))?,
            "classtype" => self.class = value.to_string(),
            "sid" => self.sid = number()?,
            "gid" => self.gid = number()?,
            "rev" => self.rev = number()?,
            "priority" => self.priority = number()?,
            "dsize" => self.size = Some(some_range()?),
            "urilen" => {
                let length = value.split(',').next().unwrap_or_default().trim();
                self.uri_size = Some(range(length).ok_or_else(|| bad("a length"))?);
            }
            "itype" => self.icmp_type = Some(some_range()?),
            "icode" => self.icmp_code = Some(some_range()?),
            "flow" => {
                for word in value.split(',').map(str::trim) {
                    match word {
                        "established" => self.established = true,
                        "to_server" | "to_client" | "from_server" | "from_client" | "stateless"
                        | "no_stream" | "only_stream" => {}
                        other => return Err(Refused::Option(format!("flow {other}"))),
                    }
                }
            }
            _ => match Buffer::of(name) {
                Some(buffer) => match self.contents.last_mut() {
                    Some(content) => content.buffer = buffer,
                    None => return Err(wrong(at, format!("{name} stands behind a content"))),
                },
                None => return Err(Refused::Option(name.to_string())),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
        let [first, second] = &rule.contents[..] else { panic!("{rule:?}") };
        assert_eq!((&first.bytes[..], first.offset), (&b"x;\r\n;"[..], 2));
        assert_eq!(
            (&second.bytes[..], second.negated, second.buffer),
            (&b"y"[..], true, Buffer::Uri)
        );
        assert_eq!((second.distance, second.within), (Some(1), Some(9)));
    }

    #[test]
    fn what_is_not_supported_is_counted_by_name() {
        let set = read(concat!(
            "alert tcp any any -> any any (pcre:\"/x/\"; sid:1;)\n",
            "alert tcp any any -> any any (content:\"x\"; pcre:\"/;/\"; sid:2;)\n",
            "alert udp any any -> any $DNS (content:\"x\"; byte_test:1,>,2,3; sid:3;)\n",
            "include other.rules\n",
        ));
        let left_out: Vec<_> = set.left_out.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(left_out, [("byte_test", 1), ("include", 1), ("pcre", 2)]);
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
