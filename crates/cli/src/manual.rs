//! Manuals of elements, taken apart.
//!
//! A manual's first line is `Signature -- summary`. Prose follows, then sections that start with
//! `= NAME`. In sections that list things, an item is `NAME (KIND): text`.

use elements::element::Class;

/// An element's manual.
pub(crate) struct Manual {
    /// `Strip(LENGTH)`.
    pub(crate) signature: String,
    /// One line.
    pub(crate) summary: String,
    /// What it does.
    pub(crate) body: Vec<Block>,
    /// Further sections with their titles in capitals.
    pub(crate) sections: Vec<(String, Vec<Block>)>,
}

/// A piece of a manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Running text.
    Text(String),
    /// A thing with its description.
    Item { name: String, text: String },
    /// Lines that stay as they are.
    Code(Vec<String>),
}

impl Manual {
    pub(crate) fn of(class: &Class) -> Self {
        Self::read(class.manual)
    }

    /// Takes a manual apart. As in comments, lines may start with the space behind the slashes.
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.lines().map(|l| l.strip_prefix(' ').unwrap_or(l).trim_end());
        let first = lines.next().unwrap_or_default();
        let (signature, summary) = first.split_once(" -- ").unwrap_or((first, ""));
        let mut manual = Self {
            signature: signature.trim().to_string(),
            summary: summary.trim().to_string(),
            body: Vec::new(),
            sections: Vec::new(),
        };
        let mut title: Option<&str> = None;
        let mut collected = Vec::new();
        for line in lines.chain(["= "]) {
            let Some(next) = line.strip_prefix("= ").or_else(|| (line == "=").then_some("")) else {
                collected.push(line);
                continue;
            };
            let blocks = blocks(&std::mem::take(&mut collected), title);
            match title {
                None => manual.body = blocks,
                Some(title) => manual.sections.push((title.to_string(), blocks)),
            }
            title = Some(next.trim());
        }
        manual
    }

    /// The elements named under SEE ALSO.
    pub(crate) fn related(&self) -> impl Iterator<Item = &str> {
        let sections = self.sections.iter().filter(|(title, _)| title == "SEE ALSO");
        let texts = sections.flat_map(|(_, blocks)| blocks).filter_map(|b| match b {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.flat_map(|t| t.split(',')).map(|name| name.trim().trim_end_matches('.'))
    }
}

fn blocks(lines: &[&str], title: Option<&str>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the next line begins something new.
    let mut fresh = true;
    let verbatim = title.is_some_and(|t| t.starts_with("EXAMPLE"));
    let is_file = title.is_some_and(|t| t.starts_with("FILE "));
    for line in lines {
        let indented = line.starts_with("  ");
        if line.trim().is_empty() {
            fresh = true;
            if let Some(Block::Code(code)) = blocks.last_mut() {
                code.push(String::new());
            }
            continue;
        }
        if indented || is_file || verbatim && looks_like_code(line) {
            let line =
                line.strip_prefix("    ").or_else(|| line.strip_prefix("  ")).unwrap_or(line);
            match blocks.last_mut() {
                Some(Block::Code(code)) => code.push(line.to_string()),
                _ => blocks.push(Block::Code(vec![line.to_string()])),
            }
            fresh = true;
            continue;
        }
        let item = title.filter(|t| !t.starts_with("SEE") && !verbatim).and_then(|_| item(line));
        match (item, blocks.last_mut()) {
            (Some((name, text)), _) => blocks.push(Block::Item { name, text }),
            (None, Some(Block::Text(text) | Block::Item { text, .. })) if !fresh => {
                text.push(' ');
                text.push_str(line.trim());
            }
            _ => blocks.push(Block::Text(line.trim().to_string())),
        }
        fresh = false;
    }
    for block in &mut blocks {
        if let Block::Code(code) = block {
            while code.last().is_some_and(String::is_empty) {
                code.pop();
            }
        }
    }
    blocks
}

fn looks_like_code(line: &str) -> bool {
    line.contains("->") || line.contains("::") || line.ends_with(';') || line.ends_with(',')
}

/// ``NAME `ARGUMENTS`, OTHER (kind): text``.
fn item(line: &str) -> Option<(String, String)> {
    let (name, text) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let (words, kind) = match name.split_once(" (") {
        Some((words, kind)) => (words, kind.strip_suffix(')')?),
        None => (name, ""),
    };
    let is_word = |w: &str| {
        let named = |c: char| c.is_ascii_alphanumeric() || "_$*.<>-".contains(c);
        !w.is_empty() && w.chars().all(named)
    };
    let bare = |w| match str::strip_suffix(w, '`') {
        Some(of) => of.split_once(" `").map_or(w, |(name, _)| name),
        None => w,
    };
    let plain = words.split(", ").map(bare).all(is_word);
    // Prose before a colon has spaces between its words, and rarely a single one.
    let shouts = words.chars().any(|c| c.is_ascii_uppercase() || c == '_' || c == '*');
    (plain && (!kind.is_empty() || shouts || words.chars().all(|c| !c.is_whitespace())))
        .then(|| (name.replace('`', ""), text.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_items_and_code_are_distinguished() {
        let lines = [
            "CAPACITY (number, default 1000): most that",
            "may wait: no more.",
            "A, B: both.",
            "set `N` (write): the Nth.",
            "",
            "These are all.",
        ];
        let item = |name: &str, text: &str| Block::Item { name: name.into(), text: text.into() };
        assert_eq!(
            blocks(&lines, Some("KEYWORDS")),
            [
                item("CAPACITY (number, default 1000)", "most that may wait: no more."),
                item("A, B", "both."),
                item("set N (write)", "the Nth."),
                Block::Text("These are all.".into())
            ]
        );
        assert_eq!(
            blocks(&["So:", "", "  a -> b;", "", "  c;", "", "and so on"], None),
            [
                Block::Text("So:".into()),
                Block::Code(vec!["a -> b;".into(), String::new(), "c;".into()]),
                Block::Text("and so on".into())
            ]
        );
    }

    #[test]
    fn every_manual_has_its_parts() {
        for class in elements::registry::CLASSES {
            let manual = Manual::of(class);
            assert!(manual.signature.starts_with(class.name), "{}", class.name);
            assert!(!manual.summary.is_empty() && !manual.body.is_empty(), "{}", class.name);
            for (title, _) in &manual.sections {
                assert!(
                    !title.is_empty() && *title == title.to_uppercase(),
                    "{}: '{title}'",
                    class.name
                );
            }
        }
    }
}
