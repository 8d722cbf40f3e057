//! The pattern language of IPClassifier and IPFilter.
//!
//! ```text
//! pattern ::= either | either "?" pattern ":" pattern
//! either  ::= both (("or" | "||") both)*
//! both    ::= factor (("and" | "&&")? factor)*
//! factor  ::= ("not" | "!") factor | "(" pattern ")" | test
//! test    ::= "true" | "false" | qualifier* ("[" POS (":" LEN)? "]")? ("&" MASK)? relation? value
//! ```
//!
//! A test that has no qualifiers takes over those of the test before it.

use super::expr::Pattern;
use super::primitive::{
    Carried, Data, Field, ICMP_TYPE, ICMP6, ICMP6_TYPE, Kind, Op, Primitive, Sides, Vocabulary,
};
use super::text::{Word, Wrong, words};
use super::version::Version;

/// Patterns nested deeper than this are refused.
const MAX_DEPTH: usize = 128;

/// Parses a pattern.
pub(crate) fn parse(text: &str, vocabulary: &Vocabulary<'_>) -> Result<Pattern, Wrong> {
    let words = words(text);
    if let [word] = words[..]
        && matches!(word.text, "-" | "any" | "all")
    {
        return Ok(Pattern::Const(true));
    }
    parse_words(&words, text.len(), vocabulary)
}

/// Parses words of a text that ends at byte `end`.
pub(crate) fn parse_words(
    words: &[Word<'_>],
    end: usize,
    vocabulary: &Vocabulary<'_>,
) -> Result<Pattern, Wrong> {
    let mut parser = Parser { words, at: 0, end, vocabulary, carried: Carried::default() };
    let pattern = parser.pattern(0)?;
    match parser.peek() {
        None => Ok(pattern),
        Some(word) => Err(parser.stray(word)),
    }
}

struct Parser<'w, 't, 'v> {
    words: &'w [Word<'t>],
    at: usize,
    /// Where the text ends.
    end: usize,
    vocabulary: &'v Vocabulary<'v>,
    carried: Carried,
}

impl<'t> Parser<'_, 't, '_> {
    fn peek(&self) -> Option<Word<'t>> {
        self.words.get(self.at).copied()
    }

    fn next_is(&self, texts: &[&str]) -> bool {
        self.peek().is_some_and(|word| texts.contains(&word.text))
    }

    /// Steps over the next word if it is one of these.
    fn eat(&mut self, texts: &[&str]) -> bool {
        let found = self.next_is(texts);
        self.at += usize::from(found);
        found
    }

    /// The bytes of the next word, or the end of the text.
    fn here(&self) -> std::ops::Range<usize> {
        self.peek().map_or(self.end..self.end, Word::range)
    }

    fn stray(&self, word: Word<'_>) -> Wrong {
        let text = word.text;
        let wrong = Wrong::new(word.range(), format!("'{text}' has no place here"));
        let range = text
            .split_once('-')
            .is_some_and(|(low, high)| low.parse::<u32>().is_ok() && high.parse::<u32>().is_ok());
        match text {
            _ if range => {
                let (low, high) = text.split_once('-').unwrap_or_default();
                wrong.help(format!(
                    "a range is written with two comparisons: 'port >= {low} and port <= {high}'"
                ))
            }
            "none" => wrong.help("a pattern that matches no packet is 'false'"),
            ":" => wrong.help("':' follows a '?'"),
            ")" => wrong.help("no '(' is open"),
            "-" | "any" | "all" => wrong.help(format!(
                "'{text}' stands alone; within a pattern, what matches every packet is 'true'"
            )),
            _ => wrong,
        }
    }

    fn pattern(&mut self, depth: usize) -> Result<Pattern, Wrong> {
        if depth > MAX_DEPTH {
            return Err(Wrong::new(self.here(), "the pattern is nested too deeply"));
        }
        let condition = self.either(depth)?;
        if !self.eat(&["?"]) {
            return Ok(condition);
        }
        let then = self.pattern(depth + 1)?;
        if !self.eat(&[":"]) {
            let wrong = Wrong::new(self.here(), "':' is missing after '?'");
            return Err(wrong.help("a colon has spaces around it: 'tcp ? syn : udp'"));
        }
        let otherwise = self.pattern(depth + 1)?;
        Ok(Pattern::choose(condition, then, otherwise))
    }

    fn either(&mut self, depth: usize) -> Result<Pattern, Wrong> {
        let mut any = vec![self.both(depth)?];
        while self.eat(&["or", "||"]) {
            any.push(self.both(depth)?);
        }
        Ok(Pattern::any(any))
    }

    fn both(&mut self, depth: usize) -> Result<Pattern, Wrong> {
        let mut all = vec![self.factor(depth)?];
        while self.eat(&["and", "&&"])
            || self.peek().is_some() && !self.next_is(&[")", "or", "||", "?", ":"])
        {
            all.push(self.factor(depth)?);
        }
        Ok(Pattern::all(all))
    }

    fn factor(&mut self, depth: usize) -> Result<Pattern, Wrong> {
        let mut negated = false;
        while self.eat(&["not", "!"]) {
            negated = !negated;
        }
        let open = self.here();
        let pattern = if self.eat(&["("]) {
            let inner = self.pattern(depth + 1)?;
            if !self.eat(&[")"]) {
                return Err(Wrong::new(open, "this parenthesis is not closed"));
            }
            inner
        } else if self.peek().is_none() || self.next_is(&[")", "or", "||", "and", "&&", "?", ":"]) {
            let after = self.at.checked_sub(1).and_then(|i| self.words.get(i));
            let after = after.map_or(String::new(), |w| format!(" after '{}'", w.text));
            return Err(Wrong::new(self.here(), format!("a test is missing{after}")));
        } else {
            self.test(&mut negated)?
        };
        Ok(if negated { pattern.not() } else { pattern })
    }

    fn test(&mut self, negated: &mut bool) -> Result<Pattern, Wrong> {
        if self.eat(&["true"]) {
            return Ok(Pattern::Const(true));
        }
        if self.eat(&["false"]) {
            return Ok(Pattern::Const(false));
        }
        let first = self.at;
        let start = self.here().start;
        let mut primitive = Primitive::default();
        self.qualifiers(&mut primitive, negated)?;
        if self.at != first {
            self.carried = Carried::default();
        }
        if self.carried.ether {
            primitive.ether = Some(true);
        }
        if self.at > first && primitive.kind.is_none() && self.next_is(&["["]) {
            self.brackets(&mut primitive)?;
        }
        // What could start a mask or a relation is one only if something follows.
        let more = |parser: &Self| parser.at + 1 < parser.words.len();
        if self.next_is(&["&"]) && more(self) {
            let mask = self.words[self.at + 1];
            primitive.mask = self.vocabulary.mask(mask.text, primitive.ether);
            if primitive.mask.is_none() {
                return Err(Wrong::new(mask.range(), format!("'{}' is not a mask", mask.text)));
            }
            self.at += 2;
        }
        if more(self) {
            (primitive.op, primitive.negated) = match self.peek().map_or("", |w| w.text) {
                "=" | "==" => (Op::Equal, false),
                "!=" => (Op::Equal, true),
                ">" => (Op::Greater, false),
                "<=" => (Op::Greater, true),
                "<" => (Op::Less, false),
                ">=" => (Op::Less, true),
                _ => (primitive.op, false),
            };
            self.eat(&["=", "==", "!=", ">", "<=", "<", ">="]);
        }
        self.value(&mut primitive)?;
        if self.at == first {
            let Some(word) = self.peek() else {
                return Err(Wrong::new(self.here(), "a test is missing"));
            };
            let wrong = self.stray(word);
            return Err(match self.vocabulary.nearest(word.text) {
                Some(near) if wrong.help.is_none() => wrong.help(format!("did you mean '{near}'?")),
                _ => wrong,
            });
        }
        let end = self.words.get(self.at - 1).map_or(self.end, |w| w.range().end);
        let next = self.peek();
        primitive.finish(&mut self.carried, self.vocabulary.version).map_err(|message| {
            // A value that is none (`port 1-1023`) is what the error is about.
            let value =
                next.filter(|w| !["and", "&&", "or", "||", ")", "?", ":"].contains(&w.text));
            match value {
                Some(word) if primitive.lacks_value => {
                    let stray = self.stray(word);
                    Wrong { message: format!("{message}: '{}' is none", word.text), ..stray }
                }
                _ => Wrong::new(start..end, message),
            }
        })
    }

    fn qualifiers(&mut self, primitive: &mut Primitive, negated: &mut bool) -> Result<(), Wrong> {
        while let Some(word) = self.peek() {
            let twice = |what: &str| Wrong::new(word.range(), format!("{what} is given twice"));
            let kind = Kind::named(word.text);
            let protocol = kind.is_none().then(|| self.vocabulary.qualifying_protocol(word.text));
            match (word.text, kind, protocol.flatten()) {
                (_, Some(kind), _) => {
                    let is_icmp6 = primitive.protocol == Some(ICMP6);
                    let kind = match kind {
                        Kind::Field(ICMP_TYPE) if is_icmp6 => Kind::Field(ICMP6_TYPE),
                        kind => kind,
                    };
                    if primitive.kind.replace(kind).is_some() {
                        return Err(twice("what is tested"));
                    }
                    if let Some(protocol) = kind.protocol() {
                        primitive.set_protocol(protocol).map_err(|()| twice("the protocol"))?;
                    }
                }
                (_, _, Some(protocol)) => {
                    primitive.set_protocol(protocol).map_err(|()| twice("the protocol"))?;
                }
                ("src" | "dst" | "dest", ..) => {
                    let (sides, length) = self.sides();
                    if primitive.sides.replace(sides).is_some() {
                        return Err(twice("'src' or 'dst'"));
                    }
                    self.at += length - 1;
                }
                ("ip" | "ether", ..) => {
                    if primitive.ether.is_some() {
                        break;
                    }
                    primitive.ether = Some(word.text == "ether");
                    primitive.version = (word.text == "ip").then_some(Version::V4);
                }
                ("ip6", ..) if self.vocabulary.has_others && primitive.ether.is_none() => {
                    (primitive.ether, primitive.version) = (Some(false), Some(Version::V6));
                }
                ("not" | "!", ..) => *negated = !*negated,
                _ => break,
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `src`, `dst`, `src or dst`, `src and dst`, and how many words that is.
    fn sides(&self) -> (Sides, usize) {
        let text = |i: usize| self.words.get(self.at + i).map_or("", |w| w.text);
        match (text(0), text(1), text(2)) {
            ("src", "and" | "&&", "dst" | "dest") => (Sides::Both, 3),
            ("src", "or" | "||", "dst" | "dest") => (Sides::Either, 3),
            ("src", ..) => (Sides::Source, 1),
            _ => (Sides::Destination, 1),
        }
    }

    fn brackets(&mut self, primitive: &mut Primitive) -> Result<(), Wrong> {
        let open = self.here();
        let start = self.at + 1;
        let Some(length) = self.words[start..].iter().position(|w| w.text == "]") else {
            return Err(Wrong::new(open, "this bracket is not closed"));
        };
        let inside = &self.words[start..start + length];
        self.at = start + length + 1;
        let range = open.start..self.words[start + length].range().end;
        let text: String = inside.iter().map(|w| w.text).collect();
        let number = |text: &str| {
            u16::try_from(crate::argument::parse_integer(text)?).ok().filter(|n| *n < 8192)
        };
        let field = if let Some((at, length)) = text.split_once(':') {
            number(at).zip(number(length))
        } else if let Some((at, last)) = text.split_once(',') {
            number(at).zip(number(last)).and_then(|(a, l)| Some((a, (l + 1).checked_sub(a)?)))
        } else {
            number(&text).map(|at| (at, 1))
        };
        let Some((offset, length)) = field else {
            let wrong = Wrong::new(range, format!("'[{text}]' names no bytes"));
            return Err(wrong.help("write [POS] or [POS:LEN], counted in bytes"));
        };
        if !(1..=4).contains(&length) {
            return Err(Wrong::new(range, "a field has 1 to 4 bytes"));
        }
        let field = Field::Raw { protocol: primitive.protocol, offset, length: length as u8 };
        primitive.kind = Some(Kind::Field(field));
        Ok(())
    }

    fn value(&mut self, primitive: &mut Primitive) -> Result<(), Wrong> {
        let Some(word) = self.peek() else { return Ok(()) };
        let wrong = |message| Wrong::new(word.range(), message);
        let known =
            Primitive { protocol: primitive.protocol.or(self.carried.icmp6()), ..*primitive };
        let data = self.vocabulary.data(word.text, &known).map_err(wrong)?;
        let text = |i: usize| self.words.get(self.at + i).map_or("", |w| w.text);
        match data {
            Some(Data::Host(address)) if text(1) == "mask" => {
                let Some(mask) = self.vocabulary.address(text(2)) else {
                    let range = self.words.get(self.at + 2).map_or(word.range(), |w| w.range());
                    return Err(Wrong::new(
                        range,
                        "'mask' is followed by a mask such as 255.0.0.0",
                    ));
                };
                primitive.data = Data::Net(address, mask);
                self.at += 3;
            }
            Some(data) => {
                primitive.data = data;
                self.at += 1;
            }
            None if primitive.op != Op::Equal || primitive.negated => {
                return Err(wrong(format!("'{}' cannot be compared with", word.text)));
            }
            None => {}
        }
        Ok(())
    }
}
