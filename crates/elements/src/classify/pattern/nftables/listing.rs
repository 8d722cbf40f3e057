//! What `nft list ruleset` prints: tables with chains and sets.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::token::{Token, tokens};
use super::{Rule, rule};
use crate::classify::pattern::text::Wrong;

/// A named set.
pub(super) struct Set<'a> {
    /// Its elements.
    pub(super) tokens: Vec<Token<'a>>,
    /// Whether packets or time change it.
    pub(super) changes: bool,
}

/// The sets of a table by name.
pub(super) type Sets<'a> = HashMap<&'a str, Set<'a>>;

/// A chain of a table whose packets are IPv4, among others.
pub(crate) struct Chain<'a> {
    name: Token<'a>,
    /// Of a chain that the kernel calls by itself: whether what no rule decides passes, and what says so.
    pub(crate) policy: Option<(bool, Range<usize>)>,
    rules: Vec<Vec<Token<'a>>>,
    sets: Rc<Sets<'a>>,
}

impl<'a> Chain<'a> {
    /// What it is called.
    pub(crate) fn name(&self) -> &'a str {
        self.name.text
    }

    /// Where its name stands.
    pub(crate) fn named_at(&self) -> Range<usize> {
        self.name.range()
    }

    /// Its rules, each with where it stands.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (Range<usize>, Result<Rule, Wrong>)> {
        self.rules.iter().filter_map(|tokens| {
            let (first, last) = (tokens.first()?, tokens.last()?);
            let range = first.start..last.range().end;
            Some((range.clone(), rule(tokens, &self.sets, range.end)))
        })
    }
}

/// Whether a file is such a listing.
pub(crate) fn is_listing(content: &str) -> bool {
    let mut lines = content.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("table") => line.contains('{'),
            Some("flush") => words.next() == Some("ruleset"),
            _ => false,
        }
    })
}

/// The chains of all tables of IPv4.
///
/// # Errors
/// What is not of a listing's form.
pub(crate) fn chains(content: &str) -> Result<Vec<Chain<'_>>, Wrong> {
    let all = tokens(content);
    let mut reader = Reader { tokens: &all, at: 0, end: content.len() };
    let mut chains = Vec::new();
    while let Some(token) = reader.statement() {
        match token.text {
            "flush" => drop(reader.line()),
            "table" => reader.table(&mut chains)?,
            other => {
                return Err(token
                    .wrong(format!("'{other}' is not supported"))
                    .help("`nft list ruleset` prints what is read"));
            }
        }
    }
    Ok(chains)
}

struct Reader<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    /// Where the text ends.
    end: usize,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += usize::from(token.is_some());
        token
    }

    fn needed(&mut self, what: &str) -> Result<Token<'a>, Wrong> {
        let end = self.end;
        self.next().ok_or_else(|| Wrong::new(end..end, format!("{what} is missing")))
    }

    /// The first token of the next statement.
    fn statement(&mut self) -> Option<Token<'a>> {
        while let Some(token) = self.next() {
            if !matches!(token.text, "\n" | ";") {
                return Some(token);
            }
        }
        None
    }

    /// The rest of a statement, which ends with the line unless that is within brackets.
    fn line(&mut self) -> Vec<Token<'a>> {
        let (mut line, mut depth) = (Vec::new(), 0usize);
        while let Some(token) = self.tokens.get(self.at).copied() {
            match token.text {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                "\n" | ";" if depth == 0 => break,
                _ => {}
            }
            self.at += 1;
            line.push(token);
        }
        line
    }

    fn open(&mut self) -> Result<(), Wrong> {
        match self.needed("'{'")? {
            Token { text: "{", .. } => Ok(()),
            other => Err(other.wrong(format!("'{{' belongs here, not '{}'", other.text))),
        }
    }

    /// The first token of the next statement of a block, unless the block ends.
    fn within(&mut self) -> Result<Option<Token<'a>>, Wrong> {
        let end = self.end;
        let token = self.statement().ok_or_else(|| Wrong::new(end..end, "'}' is missing"))?;
        Ok((token.text != "}").then_some(token))
    }

    fn table(&mut self, chains: &mut Vec<Chain<'a>>) -> Result<(), Wrong> {
        let mut family = self.needed("the table's name")?;
        let has_family = matches!(family.text, "ip" | "ip6" | "inet" | "arp" | "bridge" | "netdev");
        if has_family {
            self.needed("the table's name")?;
        } else {
            family.text = "ip";
        }
        self.open()?;
        let (mut own, mut sets) = (Vec::new(), Sets::new());
        while let Some(token) = self.within()? {
            match token.text {
                "chain" => own.push(self.chain()?),
                "set" => {
                    let name = self.needed("the set's name")?;
                    sets.insert(name.text, self.set()?);
                }
                // Counters, maps, comments and the like.
                _ => drop(self.line()),
            }
        }
        if matches!(family.text, "ip" | "inet") {
            let sets = Rc::new(sets);
            let chain =
                |(name, policy, rules)| Chain { name, policy, rules, sets: Rc::clone(&sets) };
            chains.extend(own.into_iter().map(chain));
        }
        Ok(())
    }

    #[expect(
        clippy::type_complexity,
        reason = "the parts of a chain before its table's sets are known"
    )]
    fn chain(
        &mut self,
    ) -> Result<(Token<'a>, Option<(bool, Range<usize>)>, Vec<Vec<Token<'a>>>), Wrong> {
        let name = self.needed("the chain's name")?;
        self.open()?;
        let (mut policy, mut rules) = (None, Vec::new());
        while let Some(first) = self.within()? {
            let rest = self.line();
            match (first.text, rest.first()) {
                ("type", _) if policy.is_none() => policy = Some((true, first.range())),
                ("type" | "comment" | "devices" | "flags", _) => {}
                ("policy", Some(verdict)) => {
                    policy = Some((verdict.text == "accept", first.start..verdict.range().end));
                }
                _ => rules.push([vec![first], rest].concat()),
            }
        }
        Ok((name, policy, rules))
    }

    fn set(&mut self) -> Result<Set<'a>, Wrong> {
        self.open()?;
        let mut set = Set { tokens: Vec::new(), changes: false };
        while let Some(first) = self.within()? {
            let rest = self.line();
            match first.text {
                "flags" => {
                    set.changes |= rest.iter().any(|t| matches!(t.text, "dynamic" | "timeout"));
                }
                "elements" => {
                    let is_mark = |token: &&Token<'_>| matches!(token.text, "=" | "{" | "}" | "\n");
                    set.tokens.extend(rest.iter().filter(|token| !is_mark(token)));
                    set.tokens.push(Token { text: ",", start: first.start });
                }
                _ => {}
            }
        }
        set.tokens.pop();
        Ok(set)
    }
}
