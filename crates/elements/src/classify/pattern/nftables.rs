//! Rules as `nft list ruleset` prints them: `ip saddr 10.0.0.0/8 tcp dport { 80, 443 } accept`. Among rules of other
//! languages they begin with the word `nft`.
//!
//! A rule means what the kernel makes of it for IPv4: ports, flags and types are those of first fragments, and what asks
//! for IPv6 matches nothing. What depends on more than the packet (interfaces, connections, limits) is refused, and so are
//! jumps and verdict maps. Counters, logs and comments mean nothing here.

mod key;
mod listing;
mod token;

use ir::IntervalSet;

use super::expr::Pattern;
use super::text::Wrong;
use key::{FLAGS, Key, PROTOCOL, flags, test};
pub(crate) use listing::{Chain, chains, is_listing};
use listing::{Set, Sets};
use token::{Token, tokens};

/// A rule that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Rule {
    /// Whether it lets pass what it matches.
    pub(crate) passes: bool,
    pub(crate) pattern: Pattern,
    /// It without what means nothing, and with the elements of sets in the place of their names.
    pub(crate) text: String,
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text)
}

/// Whether a text is a rule of nftables, and not what else patterns are written in.
pub(crate) fn is_rule(text: &str) -> bool {
    unquoted(text).split_ascii_whitespace().next() == Some("nft")
}

/// What a rule tests and whether it passes what it matches.
pub(crate) fn parse(text: &str) -> Result<(bool, Pattern), Wrong> {
    let inner = unquoted(text);
    let offset = usize::from(inner.len() != text.len());
    let mut all = tokens(inner);
    all.iter_mut().for_each(|token| token.start += offset);
    let rest = all.get(1..).unwrap_or_default();
    let rule = rule(rest, &Sets::default(), text.len())?;
    Ok((rule.passes, rule.pattern))
}

/// Reads a rule, which ends at this byte.
fn rule(tokens: &[Token<'_>], sets: &Sets<'_>, end: usize) -> Result<Rule, Wrong> {
    let tokens: Vec<Token<'_>> = tokens.iter().copied().filter(|t| t.text != "\n").collect();
    let mut parser = Parser { tokens: &tokens, at: 0, sets, tests: Vec::new(), text: Vec::new() };
    let passes = parser.rule()?.ok_or_else(|| {
        Wrong::new(end..end, "the rule decides nothing")
            .help("a rule that decides ends with 'accept', 'drop' or 'reject'")
    })?;
    let text = format!("nft {}", parser.text.join(" "));
    let text = if text.contains(',') { format!("'{text}'") } else { text };
    Ok(Rule { passes, pattern: Pattern::all(parser.tests), text })
}

/// What may stand behind `log`.
const LOG_OPTIONS: [&str; 6] = ["prefix", "level", "group", "snaplen", "queue-threshold", "flags"];

/// How the number of a key is compared.
enum Comparison<'a> {
    Is(bool),
    /// `<`, `<=`, `>` or `>=`.
    Order(Token<'a>),
}

struct Parser<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    sets: &'t Sets<'a>,
    tests: Vec<Pattern>,
    /// What is kept of the rule's text.
    text: Vec<&'a str>,
}

impl<'a> Parser<'a, '_> {
    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text)
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, text: &str) -> bool {
        let is_it = self.peek() == Some(text);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self, of: Token<'a>) -> Result<Token<'a>, Wrong> {
        self.next().ok_or_else(|| of.wrong(format!("a value is missing after '{}'", of.text)))
    }

    /// Keeps the text from a token to the last that was taken.
    fn keep(&mut self, from: usize) {
        self.text.extend(self.tokens[from..self.at].iter().map(|token| token.text));
    }

    /// Whether the rule passes what it matches, if it decides.
    fn rule(&mut self) -> Result<Option<bool>, Wrong> {
        let mut verdict = None;
        while let Some(token) = self.next() {
            if verdict.is_some() && token.text != "comment" {
                return Err(token.wrong("this stands behind the verdict"));
            }
            match token.text {
                "accept" | "drop" | "reject" => {
                    verdict = Some(token.text == "accept");
                    self.text.push(token.text);
                    if token.text == "reject" {
                        self.reject()?;
                    }
                }
                "comment" => drop(self.value(token)?),
                "counter" => self.options(&["packets", "bytes", "name"])?,
                "log" => self.options(&LOG_OPTIONS)?,
                _ => self.matches(token)?,
            }
        }
        Ok(verdict)
    }

    /// Options with a value each, which mean nothing here.
    fn options(&mut self, names: &[&str]) -> Result<(), Wrong> {
        while let Some(option) = self.tokens.get(self.at).copied() {
            if !names.contains(&option.text) {
                break;
            }
            self.at += 1;
            let value = self.value(option)?;
            // `flags tcp sequence,options`
            if option.text == "flags" && matches!(value.text, "tcp" | "ip") {
                self.value(value)?;
                while self.take(",") {
                    self.value(value)?;
                }
            }
        }
        Ok(())
    }

    /// `with icmp type port-unreachable`: what is sent is nothing here.
    fn reject(&mut self) -> Result<(), Wrong> {
        if self.take("with") {
            let Some(kind) = self.next() else { return Ok(()) };
            self.take("type");
            self.value(kind)?;
        }
        Ok(())
    }

    /// A match: keys, a comparison, and what they are compared with. Its first token was taken.
    fn matches(&mut self, first: Token<'a>) -> Result<(), Wrong> {
        let from = self.at - 1;
        if first.text == "tcp" && self.take("flags") {
            self.flags(first)?;
            self.keep(from);
            return Ok(());
        }
        let mut keys = vec![self.key(first)?];
        while self.take(".") {
            let next = self.value(first)?;
            keys.push(self.key(next)?);
        }
        if self.take("&") {
            let value = self.value(first)?;
            let masked = match (&keys[..], key::number(value.text)) {
                ([key], Some(mask)) => key.masked(mask),
                _ => None,
            };
            let wrong = || value.wrong(format!("'{}' is not a mask of this", value.text));
            keys = vec![masked.ok_or_else(wrong)?];
        }
        let comparison = self.comparison();
        self.keep(from);
        let from = self.at;
        let value = self.value(first)?;
        let elements: Vec<&[Token<'a>]> = if value.text == "vmap" {
            return Err(value.wrong("verdict maps are not supported"));
        } else if let Some(name) = value.text.strip_prefix('@') {
            let set = match self.sets.get(name) {
                Some(Set { changes: false, tokens }) => tokens,
                Some(_) => return Err(value.wrong(format!("packets change the set '{name}'"))),
                None => return Err(value.wrong(format!("there is no set '{name}'"))),
            };
            self.text.push("{");
            self.text.extend(set.iter().map(|token| token.text));
            self.text.push("}");
            split(set)
        } else if value.text == "{" {
            let length = self.tokens[self.at..].iter().position(|token| token.text == "}");
            let length = length.ok_or_else(|| value.wrong("the set does not end"))?;
            let inner = &self.tokens[self.at..self.at + length];
            self.at += length + 1;
            self.keep(from);
            split(inner)
        } else {
            // As many as keys, with a dot between each two.
            self.at = from + 2 * keys.len() - 1;
            let missing = || first.wrong(format!("a value is missing after '{}'", first.text));
            let values = self.tokens.get(from..self.at).ok_or_else(missing)?;
            self.keep(from);
            vec![values]
        };
        for key in &keys {
            self.push(key.needs());
        }
        self.compare(&keys, &comparison, &elements)
    }

    fn key(&mut self, first: Token<'a>) -> Result<Key, Wrong> {
        match first.text {
            "ct" => Err(first
                .wrong("the rule depends on the state of a connection")
                .help("the network function Firewall keeps connections: `require(nf)`")),
            "iif" | "oif" | "iifname" | "oifname" | "iifgroup" | "oifgroup" => {
                Err(first.wrong("the rule depends on an interface"))
            }
            "jump" | "goto" | "return" | "continue" | "queue" => Err(first
                .wrong(format!("'{}' neither accepts nor drops packets", first.text))
                .help("rules with accept, drop and reject are read; jumps are not followed")),
            header => {
                let supported = matches!(
                    header,
                    "ip" | "ip6"
                        | "icmp"
                        | "icmpv6"
                        | "meta"
                        | "th"
                        | "tcp"
                        | "udp"
                        | "sctp"
                        | "dccp"
                        | "udplite"
                );
                if !supported {
                    return Err(first.wrong(format!("'{header}' is not supported")));
                }
                let field = self.value(first)?;
                Key::of(header, field.text).ok_or_else(|| {
                    let range = first.start..field.range().end;
                    Wrong::new(range, format!("'{header} {}' is not supported", field.text))
                })
            }
        }
    }

    /// Takes a comparison; without one, numbers are to be the same.
    fn comparison(&mut self) -> Comparison<'a> {
        let comparison = match self.tokens.get(self.at) {
            Some(Token { text: "==" | "eq", .. }) => Comparison::Is(true),
            Some(Token { text: "!=" | "ne", .. }) => Comparison::Is(false),
            Some(&token) if matches!(token.text, "<" | "<=" | ">" | ">=") => {
                Comparison::Order(token)
            }
            _ => return Comparison::Is(true),
        };
        self.at += 1;
        comparison
    }

    fn push(&mut self, test: Pattern) {
        if test != Pattern::Const(true) && !self.tests.contains(&test) {
            self.tests.push(test);
        }
    }

    /// Adds the test of keys against elements.
    fn compare(
        &mut self,
        keys: &[Key],
        comparison: &Comparison<'a>,
        elements: &[&[Token<'a>]],
    ) -> Result<(), Wrong> {
        if let &[key] = keys {
            let mut ranges = Vec::with_capacity(elements.len());
            for element in elements {
                if let [value, options @ ..] = element {
                    check_options(options)?;
                    ranges.push(key.range(*value)?);
                }
            }
            let set = match (comparison, &ranges[..]) {
                (Comparison::Is(true), _) => IntervalSet::from_intervals(ranges),
                (Comparison::Is(false), _) => {
                    IntervalSet::from_intervals(ranges).complement(key.width())
                }
                (Comparison::Order(order), &[(low, high)]) if low == high => {
                    key.ordered(order.text, low)
                }
                (Comparison::Order(order), _) => {
                    return Err(order.wrong("only single numbers are greater or less than others"));
                }
            };
            self.push(key.holds(set));
            return Ok(());
        }
        let is = match comparison {
            Comparison::Is(is) => *is,
            Comparison::Order(order) => {
                return Err(order.wrong("only single numbers are greater or less than others"));
            }
        };
        // One element is met with all keys, or each is missed with one.
        let mut met = Vec::with_capacity(elements.len());
        for element in elements {
            let mut parts = Vec::with_capacity(keys.len());
            let mut rest = *element;
            for (number, key) in keys.iter().enumerate() {
                let (value, more) = match (number, rest) {
                    (0, [value, more @ ..]) => (value, more),
                    (_, [dot, value, more @ ..]) if dot.text == "." => (value, more),
                    _ => {
                        let of = element.first().or(self.tokens.last());
                        let message =
                            format!("{} values are needed, with dots between", keys.len());
                        return Err(match of {
                            Some(of) => of.wrong(message),
                            None => Wrong::new(0..0, message),
                        });
                    }
                };
                let set = IntervalSet::from_intervals(vec![key.range(*value)?]);
                parts.push(key.holds(if is { set } else { set.complement(key.width()) }));
                rest = more;
            }
            check_options(rest)?;
            met.push(if is { Pattern::all(parts) } else { Pattern::any(parts) });
        }
        if is {
            self.push(Pattern::any(met));
        } else {
            keys.iter().for_each(|key| self.push(key.is_there()));
            self.tests.extend(met);
        }
        Ok(())
    }

    /// `tcp flags …`, whose masks have forms of their own.
    fn flags(&mut self, of: Token<'a>) -> Result<(), Wrong> {
        self.push(test(PROTOCOL, IntervalSet::single(6)));
        // The flags of a mask that are set are tested.
        let masked = |mask: u8, holds: &dyn Fn(u8) -> bool| {
            let all = (0..=u8::MAX).filter(|&flags| flags & !mask == 0 && holds(flags));
            let set = all.map(|flags| (flags.into(), flags.into())).collect();
            match mask {
                0 => Pattern::Const(holds(0)),
                _ => Pattern::test(FLAGS, mask.into(), IntervalSet::from_intervals(set)),
            }
        };
        let test = if self.take("&") {
            let mask = self.flag_list(of)?;
            let is = match self.comparison() {
                Comparison::Is(is) => is,
                Comparison::Order(order) => return Err(order.wrong("flags have no order")),
            };
            let value = self.flag_list(of)?;
            masked(mask, &|flags| (flags == value) == is)
        } else if self.take("{") {
            let mut all = Vec::new();
            while !self.take("}") {
                all.push(self.flag_list(of)?);
                self.take(",");
            }
            masked(u8::MAX, &|flags| all.contains(&flags))
        } else {
            let comparison = match self.peek() {
                Some("==") => Some(true),
                Some("!=") => Some(false),
                _ => None,
            };
            self.at += usize::from(comparison.is_some());
            let none = comparison.is_none() && self.take("!");
            let value = self.flag_list_with_commas(of)?;
            if self.take("/") {
                let mask = self.flag_list_with_commas(of)?;
                masked(mask, &|flags| (flags == value) == (comparison != Some(false)))
            } else {
                match comparison {
                    Some(is) => masked(u8::MAX, &|flags| (flags == value) == is),
                    None => masked(value, &|flags| (flags != 0) != none),
                }
            }
        };
        self.push(test);
        Ok(())
    }

    /// `syn`, `syn | ack` or `(fin | syn)`.
    fn flag_list(&mut self, of: Token<'a>) -> Result<u8, Wrong> {
        let in_brackets = self.take("(");
        let mut all = flags(self.value(of)?)?;
        while self.take("|") {
            all |= flags(self.value(of)?)?;
        }
        if in_brackets && !self.take(")") {
            return Err(of.wrong("a bracket is not closed"));
        }
        Ok(all)
    }

    /// The same, or `fin,syn`.
    fn flag_list_with_commas(&mut self, of: Token<'a>) -> Result<u8, Wrong> {
        let mut all = self.flag_list(of)?;
        while self.take(",") {
            all |= self.flag_list(of)?;
        }
        Ok(all)
    }
}

/// The elements of a set.
fn split<'a, 't>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    tokens.split(|token| token.text == ",").filter(|element| !element.is_empty()).collect()
}

/// What may stand behind an element: `comment "…"`, `counter packets 1 bytes 2`.
fn check_options(options: &[Token<'_>]) -> Result<(), Wrong> {
    let first = options.first();
    match first.map(|token| token.text) {
        None | Some("comment" | "counter") => Ok(()),
        Some(text) => Err(options[0].wrong(format!("'{text}' is not supported in a set"))),
    }
}

#[cfg(test)]
mod tests;
