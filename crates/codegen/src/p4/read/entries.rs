//! Entries: from JSON in P4Runtime's terms, and whether commands say the same.

use std::collections::HashMap;

use serde_json::Value;

use super::syntax::{Control, Table};
use crate::Unread;

/// How an entry matches a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Match {
    Any,
    Exact(u128),
    Prefix(u128, u16),
    Masked(u128, u128),
    Range(u128, u128),
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) matches: Vec<Match>,
    /// The action's index in its control, and its arguments.
    pub(super) action: usize,
    pub(super) arguments: Vec<u128>,
    pub(super) priority: u32,
}

/// By table: entries, those that come first in front.
pub(super) type Entries = Vec<Vec<Entry>>;

fn text<'v>(of: &'v Value, key: &str) -> Result<&'v str, String> {
    of.get(key).and_then(Value::as_str).ok_or_else(|| format!("'{key}' is missing"))
}

fn number(of: &Value, key: &str, width: u16) -> Result<u128, String> {
    let written = text(of, key)?;
    let value = written.strip_prefix("0x").and_then(|hex| u128::from_str_radix(hex, 16).ok());
    let value = value.ok_or_else(|| format!("'{written}' is no hexadecimal number"))?;
    fits(value, width)
}

fn fits(value: u128, width: u16) -> Result<u128, String> {
    match value <= u128::MAX >> (128 - width) {
        true => Ok(value),
        false => Err(format!("{value:#x} has more than {width} bits")),
    }
}

fn matched(of: &Value, kind: &str, width: u16) -> Result<Match, String> {
    let inner = of.get(kind).ok_or_else(|| format!("it is matched by '{kind}'"))?;
    let ones = |length: u16| u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
    match kind {
        "exact" => Ok(Match::Exact(number(inner, "value", width)?)),
        "lpm" => {
            let length = inner.get("prefix_len").and_then(Value::as_u64);
            let length = length
                .and_then(|length| u16::try_from(length).ok())
                .filter(|length| *length <= width);
            let length = length.ok_or("'prefix_len' is no length of a prefix")?;
            let value = number(inner, "value", width)?;
            match value & !ones(length) & u128::MAX >> (128 - width) {
                0 => Ok(Match::Prefix(value, length)),
                _ => Err("bits behind the prefix are set".into()),
            }
        }
        "ternary" => {
            let (value, mask) = (number(inner, "value", width)?, number(inner, "mask", width)?);
            match value & !mask {
                0 => Ok(Match::Masked(value, mask)),
                _ => Err("bits outside the mask are set".into()),
            }
        }
        "range" => {
            let (low, high) = (number(inner, "low", width)?, number(inner, "high", width)?);
            match low <= high {
                true => Ok(Match::Range(low, high)),
                false => Err("a range ends before it begins".into()),
            }
        }
        _ => Err(format!("'{kind}' is no match kind")),
    }
}

/// Whether entries of a table have priorities.
fn has_priorities(table: &Table) -> bool {
    table.keys.iter().any(|key| key.2 == "ternary" || key.2 == "range")
}

fn any(kind: &str) -> Result<Match, String> {
    match kind {
        "exact" => Err("an exact match is missing".into()),
        _ => Ok(Match::Any),
    }
}

struct Context<'a> {
    control: &'a Control,
    /// By table and key.
    widths: &'a [Vec<u16>],
    tables: HashMap<String, usize>,
    actions: HashMap<String, usize>,
}

impl Context<'_> {
    fn table(&self, name: &str) -> Result<usize, String> {
        self.tables.get(name).copied().ok_or_else(|| format!("there is no table '{name}'"))
    }

    fn action(&self, table: usize, name: &str) -> Result<usize, String> {
        let found = self
            .actions
            .get(name)
            .copied()
            .ok_or_else(|| format!("there is no action '{name}'"))?;
        let is_own = self.control.tables[table].actions.contains(&self.control.actions[found].name);
        if is_own { Ok(found) } else { Err(format!("the table has no action '{name}'")) }
    }

    fn entry(&self, of: &Value) -> Result<(usize, Entry), String> {
        let at = self.table(text(of, "table")?)?;
        let table = &self.control.tables[at];
        let empty = Vec::new();
        let all = of.get("match").and_then(Value::as_array).unwrap_or(&empty);
        let mut matches = Vec::with_capacity(table.keys.len());
        let mut used = 0;
        for ((_, name, kind), width) in table.keys.iter().zip(&self.widths[at]) {
            let mut mine =
                all.iter().filter(|of| text(of, "field").is_ok_and(|field| field == name));
            match (mine.next(), mine.next()) {
                (None, _) => matches.push(any(kind)?),
                (Some(of), None) => {
                    used += 1;
                    matches
                        .push(matched(of, kind, *width).map_err(|why| format!("{name}: {why}"))?);
                }
                _ => return Err(format!("'{name}' is matched twice")),
            }
        }
        if used != all.len() {
            let is_key = |name: &str| table.keys.iter().any(|key| key.1 == name);
            let other =
                all.iter().filter_map(|of| text(of, "field").ok()).find(|name| !is_key(name));
            return Err(format!("'{}' is no key of '{}'", other.unwrap_or_default(), table.name));
        }
        let action = of.get("action").ok_or("'action' is missing")?;
        let index = self.action(at, text(action, "name")?)?;
        let parameters = &self.control.actions[index].parameters;
        let given = action.get("params").and_then(Value::as_array).unwrap_or(&empty);
        if given.len() != parameters.len() {
            return Err("its action has other parameters".into());
        }
        let mut arguments = Vec::new();
        for ((name, width), of) in parameters.iter().zip(given) {
            if text(of, "name")? != name {
                return Err(format!("'{name}' was expected as a parameter"));
            }
            arguments.push(number(of, "value", *width)?);
        }
        let priority = match (has_priorities(table), of.get("priority")) {
            (false, None) => 0,
            (true, Some(priority)) => {
                let priority = priority.as_u64().and_then(|priority| u32::try_from(priority).ok());
                priority
                    .filter(|priority| *priority > 0)
                    .ok_or("'priority' is no number from 1 on")?
            }
            (true, None) => return Err("'priority' is missing".into()),
            (false, Some(_)) => return Err("entries of this table have no priority".into()),
        };
        Ok((at, Entry { matches, action: index, arguments, priority }))
    }

    /// A line of commands.
    fn command(&self, line: &str) -> Result<(usize, Entry), String> {
        let mut words = line.split_whitespace();
        let mut next = || words.next().ok_or_else(|| "a word is missing".to_string());
        if next()? != "table_add" {
            return Err("'table_add' was expected".into());
        }
        let at = self.table(next()?)?;
        let action = self.action(at, next()?)?;
        let table = &self.control.tables[at];
        let hex = |word: &str, width: u16| {
            let value = word.strip_prefix("0x").and_then(|hex| u128::from_str_radix(hex, 16).ok());
            fits(value.ok_or_else(|| format!("'{word}' is no hexadecimal number"))?, width)
        };
        let mut matches = Vec::new();
        for ((_, _, kind), width) in table.keys.iter().zip(&self.widths[at]) {
            let word = next()?;
            let two = |sign: &str| {
                word.split_once(sign).ok_or_else(|| format!("'{word}' has no '{sign}'"))
            };
            let all = u128::MAX >> (128 - width);
            matches.push(match kind.as_str() {
                "exact" => Match::Exact(hex(word, *width)?),
                "lpm" => {
                    let (value, length) = two("/")?;
                    let length = length.parse().map_err(|_| format!("'{length}' is no length"))?;
                    if length == 0 {
                        Match::Any
                    } else {
                        Match::Prefix(hex(value, *width)?, length)
                    }
                }
                "ternary" => {
                    let (value, mask) = two("&&&")?;
                    match (hex(value, *width)?, hex(mask, *width)?) {
                        (0, 0) => Match::Any,
                        (value, mask) => Match::Masked(value, mask),
                    }
                }
                _ => {
                    let (low, high) = two("->")?;
                    match (hex(low, *width)?, hex(high, *width)?) {
                        (0, high) if high == all => Match::Any,
                        (low, high) => Match::Range(low, high),
                    }
                }
            });
        }
        if next()? != "=>" {
            return Err("'=>' was expected".into());
        }
        let mut arguments = Vec::new();
        for (_, width) in &self.control.actions[action].parameters {
            arguments.push(hex(next()?, *width)?);
        }
        let priority = match has_priorities(table) {
            true => next()?.parse().map_err(|_| "a priority was expected".to_string())?,
            false => 0,
        };
        match next() {
            Err(_) => Ok((at, Entry { matches, action, arguments, priority })),
            Ok(word) => Err(format!("'{word}' was not expected")),
        }
    }
}

/// What matches whatever comes is the same however it is written.
fn plain(of: Match, width: u16) -> Match {
    match of {
        Match::Prefix(_, 0) | Match::Masked(_, 0) => Match::Any,
        Match::Range(0, high) if high == u128::MAX >> (128 - width) => Match::Any,
        of => of,
    }
}

/// Puts first what counts first.
fn sort(table: &Table, entries: &mut [Entry]) {
    let length = |entry: &Entry| {
        let lengths = entry
            .matches
            .iter()
            .map(|of| if let Match::Prefix(_, length) = of { *length } else { 0 });
        lengths.max().unwrap_or(0)
    };
    match has_priorities(table) {
        true => entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority)),
        false => entries.sort_by_key(|entry| std::cmp::Reverse(length(entry))),
    }
}

/// Reads the entries of a control's tables, whose keys have these widths.
pub(super) fn entries(
    json: &[u8],
    commands: Option<&[u8]>,
    control: &Control,
    widths: &[Vec<u16>],
    name: &str,
) -> Result<Entries, Unread> {
    let unread = |file: &str, line, message| Unread { file: file.into(), line, message };
    let names = |all: &mut dyn Iterator<Item = &String>| -> HashMap<String, usize> {
        all.zip(0..).map(|(of, at)| (format!("{name}.{of}"), at)).collect()
    };
    let context = Context {
        control,
        widths,
        tables: names(&mut control.tables.iter().map(|table| &table.name)),
        actions: names(&mut control.actions.iter().map(|action| &action.name)),
    };
    let file = super::super::ENTRIES;
    let value: Value = serde_json::from_slice(json)
        .map_err(|why| unread(file, why.line(), "it is no JSON".into()))?;
    let all = value.get("entries").and_then(Value::as_array);
    let all = all.ok_or_else(|| unread(file, 0, "'entries' is missing".into()))?;
    let mut found: Entries = vec![Vec::new(); control.tables.len()];
    // Each stands on a line of its own behind the first, as it is written.
    for (line, of) in (2..).zip(all) {
        let (table, mut entry) = context.entry(of).map_err(|why| unread(file, line, why))?;
        for (of, width) in entry.matches.iter_mut().zip(&widths[table]) {
            *of = plain(*of, *width);
        }
        found[table].push(entry);
    }
    for (table, entries) in control.tables.iter().zip(&mut found) {
        if entries.len() > table.size {
            let message =
                format!("'{}' has {} entries, {} fit", table.name, entries.len(), table.size);
            return Err(unread(file, 0, message));
        }
        sort(table, entries);
        let is_twice = |pair: &[Entry]| match has_priorities(table) {
            true => pair[0].priority == pair[1].priority,
            false => false,
        };
        if entries.windows(2).any(is_twice) {
            let message = format!("entries of '{}' have one priority", table.name);
            return Err(unread(file, 0, message));
        }
        if !has_priorities(table) {
            let mut seen: Vec<&Vec<Match>> = entries.iter().map(|entry| &entry.matches).collect();
            seen.sort_unstable_by_key(|matches| format!("{matches:?}"));
            if seen.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(unread(file, 0, format!("entries of '{}' match the same", table.name)));
            }
        }
    }
    if let Some(commands) = commands {
        same(commands, &context, &found)?;
    }
    Ok(found)
}

/// Whether the commands say the same.
fn same(commands: &[u8], context: &Context<'_>, found: &Entries) -> Result<(), Unread> {
    let file = super::super::COMMANDS;
    let unread = |line, message: String| Unread { file: file.into(), line, message };
    let text = std::str::from_utf8(commands).map_err(|_| unread(0, "it is no UTF-8".into()))?;
    let mut all: Vec<Vec<(usize, Entry)>> = vec![Vec::new(); found.len()];
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim_start().starts_with('#') || text.trim().is_empty() {
            continue;
        }
        let (table, mut entry) = context.command(text).map_err(|why| unread(line, why))?;
        for (of, width) in entry.matches.iter_mut().zip(&context.widths[table]) {
            *of = plain(*of, *width);
        }
        all[table].push((line, entry));
    }
    for ((mine, theirs), table) in all.iter_mut().zip(found).zip(&context.control.tables) {
        // There, lower priorities come first.
        if has_priorities(table) {
            mine.sort_by_key(|entry| entry.1.priority);
            if let Some(pair) =
                mine.windows(2).find(|pair| pair[0].1.priority == pair[1].1.priority)
            {
                return Err(unread(pair[1].0, "two entries have one priority".into()));
            }
        } else {
            let key = |entry: &Entry| format!("{:?}", entry.matches);
            let order: HashMap<String, usize> = theirs.iter().map(key).zip(0..).collect();
            mine.sort_by_key(|entry| order.get(&key(&entry.1)).copied().unwrap_or(usize::MAX));
        }
        if mine.len() != theirs.len() {
            let message =
                format!("'{}' has {} entries here, {} there", table.name, mine.len(), theirs.len());
            return Err(unread(0, message));
        }
        for ((line, a), b) in mine.iter().zip(theirs) {
            if (&a.matches, a.action, &a.arguments) != (&b.matches, b.action, &b.arguments) {
                return Err(unread(
                    *line,
                    format!("{} says something else", super::super::ENTRIES),
                ));
            }
        }
    }
    Ok(())
}
