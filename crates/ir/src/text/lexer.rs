//! Tokens.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Number(u128),
    /// An address and its width in bits.
    Address(u128, u16),
    Text(String),
    Symbol(&'static str),
    End,
    /// What is wrong with it.
    Bad(&'static str),
}

const SYMBOLS: &[&str] = &[
    "..", "<<", ">>", "=>", "==", "!=", "<=", ">=", "&&", "||", "{", "}", "(", ")", "[", "]", ",",
    ":", "=", "+", "-", "*", "/", "%", "&", "|", "^", "<", ">", "!", "~", "#", ".",
];

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn in_name(c: char) -> bool {
    in_word(c) || c == '-'
}

/// Whether a name needs no quotes.
pub(super) fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(in_name)
}

/// The name that a text begins with; it may hold hyphens.
pub(super) fn name(text: &str) -> &str {
    let end = text.find(|c| !in_name(c)).unwrap_or(text.len());
    Some(&text[..end]).filter(|n| is_word(n)).unwrap_or("")
}

pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) position: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start().len();
            let comment = if rest[space..].starts_with("//") {
                rest[space..].find('\n').unwrap_or(rest.len() - space)
            } else {
                0
            };
            if space + comment == 0 {
                return;
            }
            self.position += space + comment;
        }
    }

    /// The next token and the bytes it takes.
    pub(super) fn next(&mut self) -> (Token<'a>, Range<usize>) {
        self.skip_space();
        let (token, length) = self.token();
        let start = self.position;
        self.position += length;
        (token, start..self.position)
    }

    fn token(&self) -> (Token<'a>, usize) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return (Token::End, 0) };
        if let Some(address) = address(rest) {
            return address;
        }
        if first.is_ascii_digit() {
            return number(rest);
        }
        if first == '"' {
            return text(rest);
        }
        let word = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        if word > 0 {
            return (Token::Word(&rest[..word]), word);
        }
        match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None => (Token::Bad("no token begins with this character"), first.len_utf8()),
        }
    }
}

fn number(rest: &str) -> (Token<'static>, usize) {
    let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
    let digits = &rest[..length];
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    match value {
        Ok(value) => (Token::Number(value), length),
        Err(_) => (Token::Bad("this is not a number of at most 128 bits"), length),
    }
}

/// An address: what has two colons or three dots.
fn address(rest: &str) -> Option<(Token<'static>, usize)> {
    let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != ':' && c != '.');
    let run = &rest[..end.unwrap_or(rest.len())];
    let run = &run[..run.find("..").unwrap_or(run.len())];
    let count = |wanted| run.bytes().filter(|&b| b == wanted).count();
    let token = if count(b':') >= 2 {
        let ethernet = || {
            let bytes = run
                .split(':')
                .map(|b| u8::from_str_radix(b, 16).ok().filter(|_| b.len() == 2).map(u128::from));
            bytes.collect::<Option<Vec<_>>>().filter(|b| b.len() == 6)
        };
        match (ethernet(), run.parse::<Ipv6Addr>()) {
            (Some(bytes), _) => Token::Address(bytes.iter().fold(0, |a, b| a << 8 | b), 48),
            (None, Ok(address)) => Token::Address(address.to_bits(), 128),
            (None, Err(_)) => Token::Bad("this is neither an IPv6 nor an Ethernet address"),
        }
    } else if count(b'.') == 3 {
        match run.parse::<Ipv4Addr>() {
            Ok(address) => Token::Address(address.to_bits().into(), 32),
            Err(_) => Token::Bad("this is not an IPv4 address"),
        }
    } else {
        return None;
    };
    Some((token, run.len()))
}

/// A quoted text with Rust's escapes.
fn text(rest: &str) -> (Token<'static>, usize) {
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (Token::Text(value), at + 1),
            '\\' => {
                let Some((_, escape)) = chars.next() else { break };
                value.push(match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0' => '\0',
                    '\\' | '"' | '\'' => escape,
                    'u' => {
                        let digits: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|&c| c == '{')
                            .take_while(|&c| c != '}')
                            .take(8)
                            .collect();
                        match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                            Some(c) => c,
                            None => return (Token::Bad("there is no such character"), at + 2),
                        }
                    }
                    _ => return (Token::Bad("there is no such escape"), at + 1),
                });
            }
            c => value.push(c),
        }
    }
    (Token::Bad("this quote is not closed"), rest.len())
}
