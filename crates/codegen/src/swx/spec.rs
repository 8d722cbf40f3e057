//! The language of specifications, as far as it is used here: what a `.spec` and the entries of a table say.
//!
//! One statement a line; words are separated by blanks. Names are not resolved, and instructions are kept as text.

use std::collections::HashSet;
use std::fmt;

/// A line, from 1, and what is wrong there.
pub type Failure = (usize, String);

/// Lines of a text.
const MOST_LINES: usize = 1 << 20;
/// Words of a line.
const MOST_WORDS: usize = 80;
/// Characters of a name or an instruction, as the library has them.
const MOST_NAME: usize = 63;
const MOST_INSTRUCTION: usize = 255;

/// Fields in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Fields and their widths in bits: whole bytes, at most 128 bits.
    pub fields: Vec<(String, u16)>,
}

/// Something that is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its line.
    pub line: usize,
    /// Its text, with one blank between words.
    pub text: String,
}

/// An action of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its line.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// The struct of its arguments, if it has some.
    pub arguments: Option<String>,
    /// What it does.
    pub instructions: Vec<Instruction>,
}

/// How a key is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// All bits.
    Exact,
    /// Those of the entry's mask.
    Wildcard,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its line.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// What is looked up.
    pub keys: Vec<(String, Match)>,
    /// The actions of its entries.
    pub actions: Vec<String>,
    /// The action where no entry matches, which has no arguments and stays.
    pub default: String,
    /// How many entries it is made for.
    pub size: u32,
}

/// An array of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Its name.
    pub name: String,
    /// How many.
    pub size: u32,
    /// What they hold at first.
    pub initial: u64,
}

/// A pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Structs of headers, metadata and arguments.
    pub structs: Vec<Struct>,
    /// Headers: names and structs.
    pub headers: Vec<(String, String)>,
    /// The struct of the metadata.
    pub metadata: String,
    /// Arrays of registers.
    pub registers: Vec<Registers>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// What is executed for each packet.
    pub instructions: Vec<Instruction>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its line.
    pub line: usize,
    /// Values of the keys and their masks; no mask where all bits count.
    pub matches: Vec<(u128, Option<u128>)>,
    /// Its priority: 0 comes first.
    pub priority: u32,
    /// Its action.
    pub action: String,
    /// Arguments by name.
    pub arguments: Vec<(String, u128)>,
    /// Of keys, then of arguments: whether the number is written with the 32 digits that the library wants of 128 bits.
    pub wide: Vec<bool>,
}

impl fmt::Display for TableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_wide = |at: usize| self.wide.get(at).copied().unwrap_or(false);
        let number = |f: &mut fmt::Formatter<'_>, at: usize, value: u128| match is_wide(at) {
            true => write!(f, "{value:#034x}"),
            false => write!(f, "{value:#x}"),
        };
        f.write_str("match")?;
        for (at, (value, mask)) in self.matches.iter().enumerate() {
            f.write_str(" ")?;
            number(f, at, *value)?;
            if let Some(mask) = mask {
                f.write_str("/")?;
                number(f, at, *mask)?;
            }
        }
        if self.matches.iter().any(|of| of.1.is_some()) {
            write!(f, " priority {}", self.priority)?;
        }
        write!(f, " action {}", self.action)?;
        for (at, (name, value)) in (self.matches.len()..).zip(&self.arguments) {
            write!(f, " {name} ")?;
            number(f, at, *value)?;
        }
        Ok(())
    }
}

/// Lines with their words, without comments.
struct Lines<'a> {
    all: std::vec::IntoIter<(usize, Vec<&'a str>)>,
    last: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            if line > MOST_LINES {
                return Err((line, format!("there are more than {MOST_LINES} lines")));
            }
            let is_comment = |word: &&str| word.starts_with(['#', ';']) || word.starts_with("//");
            let words: Vec<&str> =
                text.split_ascii_whitespace().take_while(|word| !is_comment(word)).collect();
            if words.len() > MOST_WORDS {
                return Err((line, format!("there are more than {MOST_WORDS} words")));
            }
            if !words.is_empty() {
                all.push((line, words));
            }
        }
        Ok(Self { all: all.into_iter(), last: 0 })
    }

    fn next(&mut self) -> Option<(usize, Vec<&'a str>)> {
        let next = self.all.next()?;
        self.last = next.0;
        Some(next)
    }

    /// The lines of a block, up to the one with its closing brace.
    fn block(&mut self) -> Result<Vec<(usize, Vec<&'a str>)>, Failure> {
        let (mut all, mut depth) = (Vec::new(), 0);
        loop {
            let Some((line, words)) = self.next() else {
                return Err((self.last, "'}' is missing".into()));
            };
            match &words[..] {
                ["}"] if depth == 0 => return Ok(all),
                ["}"] => depth -= 1,
                [.., "{"] => depth += 1,
                _ => {}
            }
            all.push((line, words));
        }
    }
}

fn name(line: usize, of: &str) -> Result<String, Failure> {
    let is_name = of.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    match is_name && !of.is_empty() && of.len() <= MOST_NAME {
        true => Ok(of.into()),
        false => Err((line, format!("'{}' is no name", of.escape_debug()))),
    }
}

/// A number as the library reads it: decimal, or hexadecimal behind 0x.
#[must_use]
pub fn number(of: &str) -> Option<u128> {
    let (digits, radix) = match of.strip_prefix("0x").or_else(|| of.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (of, 10),
    };
    let is_digits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    // A leading 0 makes a number octal there.
    let is_octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    if !is_digits || is_octal { None } else { u128::from_str_radix(digits, radix).ok() }
}

fn size(line: usize, of: &str) -> Result<u32, Failure> {
    let size = number(of).and_then(|size| u32::try_from(size).ok());
    size.filter(|size| *size <= 1 << 20)
        .ok_or_else(|| (line, format!("'{}' is no size", of.escape_debug())))
}

fn instructions(all: Vec<(usize, Vec<&str>)>) -> Result<Vec<Instruction>, Failure> {
    let one = |(line, words): (usize, Vec<&str>)| {
        let text = words.join(" ");
        match text.len() <= MOST_INSTRUCTION {
            true => Ok(Instruction { line, text }),
            false => Err((line, "the instruction is too long".to_string())),
        }
    };
    all.into_iter().map(one).collect()
}

fn fields(all: Vec<(usize, Vec<&str>)>) -> Result<Vec<(String, u16)>, Failure> {
    let mut fields: Vec<(String, u16)> = Vec::new();
    let mut names = HashSet::new();
    for (line, words) in all {
        let [kind, field] = words[..] else {
            return Err((line, "'bit<N> name' was expected".into()));
        };
        let bits = kind.strip_prefix("bit<").and_then(|rest| rest.strip_suffix('>'));
        let bits = bits.and_then(|bits| bits.parse::<u16>().ok());
        let bits = bits.filter(|bits| (8..=128).contains(bits) && bits % 8 == 0);
        let bits = bits.ok_or_else(|| (line, "a field has whole bytes, at most 16".to_string()))?;
        let field = name(line, field)?;
        if !names.insert(field.clone()) {
            return Err((line, format!("'{field}' is declared twice")));
        }
        fields.push((field, bits));
    }
    Ok(fields)
}

fn table(line: usize, of: &str, all: Vec<(usize, Vec<&str>)>) -> Result<Table, Failure> {
    let mut table = Table {
        line,
        name: name(line, of)?,
        keys: Vec::new(),
        actions: Vec::new(),
        default: String::new(),
        size: 0,
    };
    let mut inside = "";
    for (line, words) in all {
        match (inside, &words[..]) {
            ("", [block @ ("key" | "actions"), "{"]) => inside = block,
            ("key" | "actions", ["}"]) => inside = "",
            ("key", [key, kind]) => {
                let kind = match *kind {
                    "exact" => Match::Exact,
                    "wildcard" => Match::Wildcard,
                    _ => return Err((line, "'exact' or 'wildcard' was expected".into())),
                };
                table.keys.push((name(line, key)?, kind));
            }
            ("actions", [action]) => table.actions.push(name(line, action)?),
            ("", ["default_action", action, "args", "none", "const"]) => {
                table.default = name(line, action)?;
            }
            ("", ["size", of]) => table.size = size(line, of)?,
            _ => return Err((line, "this is no part of a table".into())),
        }
    }
    match table.keys.is_empty() || table.default.is_empty() || table.size == 0 {
        true => Err((line, "a table has keys, a default action and a size".into())),
        false => Ok(table),
    }
}

impl Spec {
    /// Reads a specification.
    ///
    /// # Errors
    /// The first line that is none of the language, or declares a name again.
    pub fn read(text: &str) -> Result<Self, Failure> {
        let mut lines = Lines::of(text)?;
        let mut spec = Self::default();
        let mut names: HashSet<(&str, String)> = HashSet::new();
        let mut is_done = false;
        while let Some((line, words)) = lines.next() {
            let declared = match &words[..] {
                ["struct", of, "{"] => {
                    let fields = fields(lines.block()?)?;
                    spec.structs.push(Struct { name: name(line, of)?, fields });
                    Some(("struct", *of))
                }
                ["header", header, "instanceof", of] => {
                    spec.headers.push((name(line, header)?, name(line, of)?));
                    Some(("header", *header))
                }
                ["metadata", "instanceof", of] => {
                    spec.metadata = name(line, of)?;
                    Some(("metadata", ""))
                }
                ["regarray", of, "size", count, "initval", initial] => {
                    let initial = number(initial).and_then(|value| u64::try_from(value).ok());
                    let initial =
                        initial.ok_or_else(|| (line, "a number was expected".to_string()))?;
                    let (name, size) = (name(line, of)?, size(line, count)?);
                    spec.registers.push(Registers { name, size, initial });
                    Some(("regarray", *of))
                }
                ["action", of, "args", rest @ .., "{"] => {
                    let arguments = match rest {
                        ["none"] => None,
                        ["instanceof", of] => Some(name(line, of)?),
                        _ => return Err((line, "'none' or 'instanceof' was expected".into())),
                    };
                    let instructions = instructions(lines.block()?)?;
                    spec.actions.push(Action {
                        line,
                        name: name(line, of)?,
                        arguments,
                        instructions,
                    });
                    Some(("action", *of))
                }
                ["table", of, "{"] => {
                    let table = table(line, of, lines.block()?)?;
                    spec.tables.push(table);
                    Some(("table", *of))
                }
                ["apply", "{"] if !is_done => {
                    spec.instructions = instructions(lines.block()?)?;
                    is_done = true;
                    None
                }
                _ => {
                    return Err((
                        line,
                        format!("'{}' is not known there", words[0].escape_debug()),
                    ));
                }
            };
            if let Some((kind, of)) = declared
                && !names.insert((kind, of.into()))
            {
                return Err((line, format!("{kind} '{of}' is declared twice")));
            }
        }
        match is_done {
            true => Ok(spec),
            false => Err((lines.last, "'apply' is missing".into())),
        }
    }
}

/// Reads the entries of a table.
///
/// # Errors
/// The first line that is no entry.
pub fn entries(text: &str) -> Result<Vec<TableEntry>, Failure> {
    let mut lines = Lines::of(text)?;
    let mut all = Vec::new();
    while let Some((line, words)) = lines.next() {
        let fail = |why: &str| (line, why.to_string());
        let at = words.iter().position(|word| *word == "action");
        let at = at.ok_or_else(|| fail("'action' is missing"))?;
        let (matched, acted) = words.split_at(at);
        let [first, matched @ ..] = matched else { return Err(fail("'match' was expected")) };
        if *first != "match" {
            return Err(fail("'match' was expected"));
        }
        let (matched, priority) = match matched {
            [matched @ .., "priority", priority] => {
                let priority = number(priority).and_then(|of| u32::try_from(of).ok());
                (matched, priority.ok_or_else(|| fail("a priority is a number"))?)
            }
            matched => (matched, 0),
        };
        let one = |word: &&str| match word.split_once('/') {
            Some((value, mask)) => Some((number(value)?, Some(number(mask)?))),
            None => Some((number(word)?, None)),
        };
        let matches = matched.iter().map(one).collect::<Option<Vec<_>>>();
        let matches = matches.ok_or_else(|| fail("a key is 'value' or 'value/mask'"))?;
        let [_, action, arguments @ ..] = acted else { return Err(fail("an action was expected")) };
        if arguments.len() % 2 != 0 {
            return Err(fail("an argument is a name and a number"));
        }
        let one = |pair: &[&str]| Some((name(line, pair[0]).ok()?, number(pair[1])?));
        let arguments = arguments.chunks(2).map(one).collect::<Option<Vec<_>>>();
        let arguments = arguments.ok_or_else(|| fail("an argument is a name and a number"))?;
        let is_wide = |word: &&str| word.split('/').all(|number| number.len() == 34);
        let argued = acted.iter().skip(3).step_by(2);
        let wide = matched.iter().chain(argued).map(is_wide).collect();
        let action = name(line, action)?;
        all.push(TableEntry { line, matches, priority, action, arguments, wide });
    }
    Ok(all)
}
