//! Rules as `iptables-save` and `iptables -S` print them: `-A FORWARD -s 10.0.0.0/8 -p tcp --dport 80 -j ACCEPT`.
//!
//! A rule means what the kernel makes of it: ports, flags and types are those of first fragments. What depends on more
//! than the packet (interfaces, connections, limits) is refused, and so are jumps to other chains.

use std::net::Ipv4Addr;
use std::ops::Range;

use ipnet::Ipv4Net;
use ir::IntervalSet;
use net::wire::{icmpv4, ip_protocol};

use super::expr::{Origin, PacketBytes, Pattern};
use super::text::Wrong;
use crate::argument::parse_ipv4;

const FRAGMENT: PacketBytes = PacketBytes::new(Origin::Network, 6, 2);
const PROTOCOL: PacketBytes = PacketBytes::new(Origin::Network, 9, 1);
const SOURCE: PacketBytes = PacketBytes::new(Origin::Network, 12, 4);
const DESTINATION: PacketBytes = PacketBytes::new(Origin::Network, 16, 4);
const SOURCE_PORT: PacketBytes = PacketBytes::new(Origin::Transport, 0, 2);
const DESTINATION_PORT: PacketBytes = PacketBytes::new(Origin::Transport, 2, 2);
const TYPE: PacketBytes = PacketBytes::new(Origin::Transport, 0, 1);
const CODE: PacketBytes = PacketBytes::new(Origin::Transport, 1, 1);
const FLAGS: PacketBytes = PacketBytes::new(Origin::Transport, 13, 1);

/// What a line of a dump is.
#[derive(Debug, PartialEq)]
pub(crate) enum DumpLine<'a> {
    /// `*filter`
    Table(&'a str),
    /// `:FORWARD DROP [0:0]`, `-P FORWARD DROP`: whether a chain passes what no rule decides.
    Policy(&'a str, bool),
    /// `-A FORWARD …`: a rule of a chain.
    Rule(&'a str),
    /// What says nothing of packets: `COMMIT`, the names of chains.
    Nothing,
}

impl<'a> DumpLine<'a> {
    /// Takes a line for one of a dump; none if it is not of that form.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        if let Some(table) = text.strip_prefix('*') {
            return Some(Self::Table(table));
        }
        let declared = text.strip_prefix(':');
        let mut words = uncounted(declared.unwrap_or(text)).split_ascii_whitespace();
        let policy = |word: Option<&str>| word == Some("ACCEPT");
        if declared.is_some() {
            let (chain, verdict) = (words.next()?, words.next());
            return Some(match verdict {
                Some("ACCEPT" | "DROP") => Self::Policy(chain, policy(verdict)),
                _ => Self::Nothing,
            });
        }
        match words.next()? {
            "-A" | "--append" => Some(Self::Rule(words.next().unwrap_or_default())),
            "-P" | "--policy" => Some(Self::Policy(words.next()?, policy(words.next()))),
            "-N" | "--new-chain" | "COMMIT" => Some(Self::Nothing),
            _ => None,
        }
    }
}

/// A rule without the counters before it.
fn uncounted(text: &str) -> &str {
    let counters = text.strip_prefix('[').and_then(|text| text.split_once("] "));
    counters.map_or(text, |(_, rule)| rule.trim_start())
}

/// Whether a text is a rule, and not what else patterns are written in.
pub(crate) fn is_rule(text: &str) -> bool {
    matches!(DumpLine::of(unquoted(text)), Some(DumpLine::Rule(_)))
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text)
}

/// A word with its place; quoted words have their quotes.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn range(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    fn wrong(self, message: impl Into<String>) -> Wrong {
        Wrong::new(self.range(), message)
    }
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(|c: char| !c.is_whitespace())?;
        let rest = &text[at..];
        let length = if rest.starts_with('"') {
            let mut escaped = false;
            let closing = rest.char_indices().skip(1).find(|&(_, c)| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            closing.map_or(rest.len(), |(end, _)| end + 1)
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        let word = Word { text: &rest[..length], start: at };
        at += length;
        Some(word)
    })
}

/// What a rule tests and whether it passes what it matches.
pub(crate) fn parse(text: &str) -> Result<(bool, Pattern), Wrong> {
    let inner = unquoted(text);
    let rule = uncounted(inner);
    let offset = usize::from(inner.len() != text.len()) + inner.len() - rule.len();
    let mut parser = Parser { words: Vec::new(), at: 0, tests: Vec::new(), protocol: None };
    parser.words = words(rule).map(|word| Word { start: word.start + offset, ..word }).collect();
    let end = text.len()..text.len();
    match parser.rule()? {
        Some(verdict) => Ok((verdict, Pattern::all(parser.tests))),
        None => Err(Wrong::new(end, "the rule decides nothing")
            .help("a rule that decides ends with '-j ACCEPT', '-j DROP' or '-j REJECT'")),
    }
}

/// The rule as text that holds no comma outside of quotes, and no comment.
pub(crate) fn normal(text: &str) -> String {
    let words: Vec<&str> = words(uncounted(unquoted(text))).map(|word| word.text).collect();
    let mut normal = Vec::with_capacity(words.len());
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        match (word, words.get(at + 1)) {
            ("-m", Some(&"comment")) | ("--comment", Some(_)) => at += 2,
            _ => {
                normal.push(word);
                at += 1;
            }
        }
    }
    let normal = normal.join(" ");
    if normal.contains(',') { format!("'{normal}'") } else { normal }
}

struct Parser<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    tests: Vec<Pattern>,
    /// The protocol that the rule asks for.
    protocol: Option<u8>,
}

impl<'a> Parser<'a> {
    fn rule(&mut self) -> Result<Option<bool>, Wrong> {
        let mut verdict = None;
        let mut negated: Option<Word<'a>> = None;
        // What tests need a protocol for stands behind it, but `-m multiport` may stand anywhere.
        while let Some(word) = self.next() {
            if word.text == "!" {
                negated = Some(word);
                continue;
            }
            let not = negated.take();
            let takes_not = !matches!(
                word.text,
                "-A" | "--append"
                    | "-m"
                    | "--match"
                    | "-j"
                    | "--jump"
                    | "--comment"
                    | "--reject-with"
            );
            if let Some(not) = not.filter(|_| !takes_not) {
                return Err(not.wrong(format!("'{}' cannot be negated", word.text)));
            }
            let not = not.is_some();
            match word.text {
                "-A" | "--append" | "--comment" | "--reject-with" => drop(self.value(word)?),
                "-s" | "--source" | "--src" => self.network(SOURCE, word, not)?,
                "-d" | "--destination" | "--dst" => self.network(DESTINATION, word, not)?,
                "--src-range" => self.range(SOURCE, word, not)?,
                "--dst-range" => self.range(DESTINATION, word, not)?,
                "-p" | "--protocol" => self.protocol(word, not)?,
                "-f" | "--fragment" => {
                    let later = IntervalSet::range(1, 0x1fff);
                    let first = IntervalSet::single(0);
                    let set = if not { first } else { later };
                    self.tests.push(Pattern::test(FRAGMENT, 0x1fff, set));
                }
                "--sport" | "--source-port" | "--sports" | "--source-ports" => {
                    let set = self.ports(word, not)?;
                    self.tests.push(Pattern::test(SOURCE_PORT, 0xffff, set));
                }
                "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
                    let set = self.ports(word, not)?;
                    self.tests.push(Pattern::test(DESTINATION_PORT, 0xffff, set));
                }
                "--ports" => {
                    let set = self.ports(word, not)?;
                    let of = |place| Pattern::test(place, 0xffff, set.clone());
                    let sides = [of(SOURCE_PORT), of(DESTINATION_PORT)];
                    self.tests.push(if not { Pattern::all(sides) } else { Pattern::any(sides) });
                }
                "--tcp-flags" => {
                    let (mask, value) = (self.value(word)?, self.value(word)?);
                    self.flags(word, flags(mask)?, flags(value)?, not)?;
                }
                "--syn" => self.flags(word, 0x17, 0x02, not)?,
                "--icmp-type" => self.icmp(word, not)?,
                "-m" | "--match" => {
                    let module = self.value(word)?;
                    match module.text {
                        "tcp" | "udp" | "icmp" | "comment" | "multiport" | "iprange" => {}
                        "state" | "conntrack" => {
                            return Err(module
                                .wrong(format!("'{}' depends on the state of a connection", module.text))
                                .help("the network function Firewall keeps connections: `require(nf)`"));
                        }
                        other => {
                            return Err(
                                module.wrong(format!("matches of '{other}' are not supported"))
                            );
                        }
                    }
                }
                "-i" | "--in-interface" | "-o" | "--out-interface" => {
                    return Err(word.wrong("the rule depends on an interface"));
                }
                "-j" | "--jump" => {
                    let target = self.value(word)?;
                    verdict = Some(match target.text {
                        "ACCEPT" => true,
                        "DROP" | "REJECT" => false,
                        other => {
                            let message = format!("'{other}' neither accepts nor drops packets");
                            return Err(target
                                .wrong(message)
                                .help("rules with ACCEPT, DROP and REJECT are read; jumps are not followed"));
                        }
                    });
                }
                other => return Err(word.wrong(format!("'{other}' is not supported"))),
            }
        }
        match negated {
            Some(not) => Err(not.wrong("nothing follows that could be negated")),
            None => Ok(verdict),
        }
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn value(&mut self, of: Word<'a>) -> Result<Word<'a>, Wrong> {
        self.next().ok_or_else(|| of.wrong(format!("a value is missing after '{}'", of.text)))
    }

    fn network(&mut self, place: PacketBytes, of: Word<'a>, not: bool) -> Result<(), Wrong> {
        let value = self.value(of)?;
        let (address, length) = value.text.split_once('/').unwrap_or((value.text, "32"));
        let network = parse_ipv4(address).and_then(|address| match length.parse::<u8>() {
            Ok(length) => Ipv4Net::new(address, length).ok(),
            Err(_) => Ipv4Net::with_netmask(address, parse_ipv4(length)?).ok(),
        });
        let Some(network) = network else {
            let why = match value.text.contains(':') {
                true => "is an IPv6 address: rules are those of IPv4",
                false => "is not an IPv4 address or network",
            };
            return Err(value.wrong(format!("'{}' {why}", value.text)));
        };
        let [low, high] = [network.network(), network.broadcast()].map(Ipv4Addr::to_bits);
        self.number(place, u32::MAX, (low, high), not);
        Ok(())
    }

    fn range(&mut self, place: PacketBytes, of: Word<'a>, not: bool) -> Result<(), Wrong> {
        let value = self.value(of)?;
        let (low, high) = value.text.split_once('-').unwrap_or((value.text, value.text));
        match (parse_ipv4(low), parse_ipv4(high)) {
            (Some(low), Some(high)) if low <= high => {
                self.number(place, u32::MAX, (low.to_bits(), high.to_bits()), not);
                Ok(())
            }
            _ => Err(value.wrong(format!("'{}' is not a range of IPv4 addresses", value.text))),
        }
    }

    /// Tests that a number is in a range, or is not.
    fn number(&mut self, place: PacketBytes, mask: u32, (low, high): (u32, u32), not: bool) {
        let set = IntervalSet::range(low.into(), high.into());
        let set = if not { set.complement(8 * u16::from(place.length)) } else { set };
        if !set.intervals().contains(&(0, mask.into())) {
            self.tests.push(Pattern::test(place, mask, set));
        }
    }

    fn protocol(&mut self, of: Word<'a>, not: bool) -> Result<(), Wrong> {
        let value = self.value(of)?;
        let number = match value.text {
            "all" => Some(0),
            "udplite" => Some(136),
            text => text.parse().ok().or_else(|| ip_protocol::by_name(&text.to_ascii_lowercase())),
        };
        match number {
            // The kernel takes protocol 0 for any.
            Some(0) if not => Err(value.wrong("the rule matches no packet")),
            Some(0) => Ok(()),
            Some(number) => {
                self.protocol = Some(number).filter(|_| !not);
                self.number(PROTOCOL, 0xff, (number.into(), number.into()), not);
                Ok(())
            }
            None => Err(value.wrong(format!("'{}' is not a protocol", value.text))),
        }
    }

    /// A port, a range `LOW:HIGH`, or several, separated by commas.
    fn ports(&mut self, of: Word<'a>, not: bool) -> Result<IntervalSet, Wrong> {
        let value = self.value(of)?;
        if !matches!(self.protocol, Some(6 | 17 | 33 | 132 | 136)) {
            return Err(of
                .wrong(format!("'{}' needs a protocol with ports before it", of.text))
                .help("such as '-p tcp'"));
        }
        let port = |text: &str, otherwise: u16| match text {
            "" => Some(otherwise),
            text => text.parse::<u16>().ok(),
        };
        let range = |text: &str| {
            let (low, high) = match text.split_once(':') {
                Some((low, high)) => (port(low, 0)?, port(high, u16::MAX)?),
                None => (text.parse().ok()?, text.parse().ok()?),
            };
            (low <= high).then_some((u128::from(low), u128::from(high)))
        };
        let ranges: Option<Vec<_>> = value.text.split(',').map(range).collect();
        let Some(ranges) = ranges else {
            return Err(value
                .wrong(format!("'{}' is not a port or a range of ports", value.text))
                .help("ports are numbers: '80', '1024:65535', '80,443'"));
        };
        let set = IntervalSet::from_intervals(ranges);
        Ok(if not { set.complement(16) } else { set })
    }

    fn flags(&mut self, of: Word<'a>, mask: u8, value: u8, not: bool) -> Result<(), Wrong> {
        if self.protocol != Some(6) {
            return Err(of.wrong(format!("'{}' needs '-p tcp' before it", of.text)));
        }
        if value & !mask != 0 || mask == 0 {
            return Err(of.wrong("flags that are to be set are not among those that are looked at"));
        }
        let others = (0..=0xffu8).filter(|flags| (flags & mask == value) != not);
        let set =
            others.map(|flags| u128::from(flags & mask)).map(|flags| (flags, flags)).collect();
        self.tests.push(Pattern::test(FLAGS, mask.into(), IntervalSet::from_intervals(set)));
        Ok(())
    }

    /// `TYPE` or `TYPE/CODE`.
    fn icmp(&mut self, of: Word<'a>, not: bool) -> Result<(), Wrong> {
        let value = self.value(of)?;
        if self.protocol != Some(ip_protocol::ICMP) {
            return Err(of.wrong("'--icmp-type' needs '-p icmp' before it"));
        }
        if matches!(value.text, "any" | "255") {
            return match not {
                true => Err(value.wrong("the rule matches no packet")),
                false => Ok(()),
            };
        }
        let (kind, code) =
            value.text.split_once('/').map_or((value.text, None), |(k, c)| (k, Some(c)));
        let kind = kind.parse::<u8>().ok().or_else(|| icmpv4::type_by_name(kind));
        let code = code.map(str::parse::<u8>).transpose();
        let (Some(kind), Ok(code)) = (kind, code) else {
            return Err(value.wrong(format!("'{}' is not a type of ICMP", value.text)));
        };
        let single = |number: u8, not: bool| {
            let set = IntervalSet::single(number.into());
            if not { set.complement(8) } else { set }
        };
        let test = |place, number: u8| Pattern::test(place, 0xff, single(number, not));
        match code {
            None => self.tests.push(test(TYPE, kind)),
            Some(code) if not => {
                // Both bytes have to be there, as the kernel has it.
                let there = Pattern::test(CODE, 0xff, IntervalSet::full(8));
                self.tests.push(there);
                self.tests.push(Pattern::any([test(TYPE, kind), test(CODE, code)]));
            }
            Some(code) => self.tests.extend([test(TYPE, kind), test(CODE, code)]),
        }
        Ok(())
    }
}

/// Flags of TCP by their names, or as a number.
fn flags(word: Word<'_>) -> Result<u8, Wrong> {
    let flag = |name: &str| match name {
        "FIN" => Some(0x01),
        "SYN" => Some(0x02),
        "RST" => Some(0x04),
        "PSH" => Some(0x08),
        "ACK" => Some(0x10),
        "URG" => Some(0x20),
        "ALL" => Some(0x3f),
        "NONE" => Some(0),
        _ => None,
    };
    let flags = word.text.split(',').try_fold(0, |flags, name| Some(flags | flag(name)?));
    flags.ok_or_else(|| word.wrong(format!("'{}' are not flags of TCP", word.text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let Err(wrong) = parse(text) else { panic!("{text} was read") };
        format!("{}: {}", &text[wrong.range.clone()], wrong.message)
    }

    #[test]
    fn lines_of_dumps_are_distinguished() {
        assert_eq!(DumpLine::of("*filter"), Some(DumpLine::Table("filter")));
        assert_eq!(DumpLine::of(":FORWARD DROP [12:3]"), Some(DumpLine::Policy("FORWARD", false)));
        assert_eq!(DumpLine::of(":web - [0:0]"), Some(DumpLine::Nothing));
        assert_eq!(DumpLine::of("-P FORWARD ACCEPT"), Some(DumpLine::Policy("FORWARD", true)));
        assert_eq!(DumpLine::of("-A FORWARD -j DROP"), Some(DumpLine::Rule("FORWARD")));
        assert_eq!(DumpLine::of("[7:9] -A INPUT -j DROP"), Some(DumpLine::Rule("INPUT")));
        assert_eq!(DumpLine::of("COMMIT"), Some(DumpLine::Nothing));
        for text in ["", "allow tcp", "@10.0.0.0/8", "-", "- all", "[1:2]", ":"] {
            assert_eq!(DumpLine::of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        for (text, why) in [
            ("-A F -i eth0 -j DROP", "-i: the rule depends on an interface"),
            (
                "-A F -m state --state NEW -j ACCEPT",
                "state: 'state' depends on the state of a connection",
            ),
            ("-A F -m limit --limit 1/s -j ACCEPT", "limit: matches of 'limit' are not supported"),
            (
                "-A F -s 2001:db8::/32 -j DROP",
                "2001:db8::/32: '2001:db8::/32' is an IPv6 address: rules are those of IPv4",
            ),
            (
                "-A F -s 10.0.0.0/33 -j DROP",
                "10.0.0.0/33: '10.0.0.0/33' is not an IPv4 address or network",
            ),
            (
                "-A F -s 10.0.0.0/255.0.255.0 -j DROP",
                "10.0.0.0/255.0.255.0: '10.0.0.0/255.0.255.0' is not an IPv4 address or network",
            ),
            ("-A F --dport 80 -j DROP", "--dport: '--dport' needs a protocol with ports before it"),
            ("-A F -p tcp --dport http -j DROP", "http: 'http' is not a port or a range of ports"),
            ("-A F -p tcp --dport 9:8 -j DROP", "9:8: '9:8' is not a port or a range of ports"),
            ("-A F -p udp --syn -j DROP", "--syn: '--syn' needs '-p tcp' before it"),
            ("-A F -j web", "web: 'web' neither accepts nor drops packets"),
            ("-A F -j LOG", "LOG: 'LOG' neither accepts nor drops packets"),
            ("-A F -p tcp", ": the rule decides nothing"),
            ("-A F -p", "-p: a value is missing after '-p'"),
            ("-A F ! -j DROP", "!: '-j' cannot be negated"),
            ("-A F -j DROP !", "!: nothing follows that could be negated"),
            ("[1:2] -A F -p nonesuch -j DROP", "nonesuch: 'nonesuch' is not a protocol"),
            ("-A F ! -p all -j DROP", "all: the rule matches no packet"),
        ] {
            assert_eq!(wrong(text), why, "{text}");
        }
    }

    #[test]
    fn a_rule_is_kept_without_its_comment_and_quoted_where_it_has_commas() {
        let text = "[1:2] -A F -p tcp -m comment --comment \"a \\\" -j, b\" -m multiport --dports 80,443 -j DROP";
        assert!(parse(text).is_ok());
        let kept = normal(text);
        assert_eq!(kept, "'-A F -p tcp -m multiport --dports 80,443 -j DROP'");
        assert_eq!(parse(&kept), parse(text));
        assert_eq!(normal("-A F -j DROP"), "-A F -j DROP");
        assert!(is_rule(&kept) && !is_rule("allow tcp"));
    }

    #[test]
    fn rules_become_conjunctions() {
        assert_eq!(parse("-A F -p all -s 0.0.0.0/0 -j ACCEPT"), Ok((true, Pattern::Const(true))));
        let (verdict, Pattern::All(tests)) = parse(
            "-A F -s 10.0.0.0/8 ! -d 10.1.2.3 -p tcp -m tcp --dport 1024: --tcp-flags SYN,ACK SYN -j DROP",
        )
        .unwrap() else {
            panic!("no conjunction")
        };
        assert_eq!((verdict, tests.len()), (false, 5));
    }
}
