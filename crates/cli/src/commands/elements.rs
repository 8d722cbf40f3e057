//! `catena elements`: the reference of elements.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::stdout;
use std::process::ExitCode;

use clap::Args;
use elements::element::{Category, Class};
use elements::registry::{CLASSES, find};
use ir::nearest;
use serde_json::{Value, json};
use view::paint::Paint;

use crate::manual::{Block, Manual};
use crate::terminal::{colours, print};

/// List elements, or print the manual of one
#[derive(Args, Debug)]
pub(crate) struct Elements {
    /// Element class
    name: Option<String>,
    /// Print the whole reference as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn main(args: &Elements) -> Result<ExitCode, String> {
    let paint = Paint(colours(&stdout()));
    let Some(name) = &args.name else {
        print(&if args.json {
            format!("{:#}\n", Value::Array(CLASSES.iter().map(|c| to_json(c)).collect()))
        } else if args.markdown {
            markdown()
        } else {
            list(paint)
        });
        return Ok(ExitCode::SUCCESS);
    };
    let Some(class) = find(name) else {
        let near = match nearest(name, CLASSES.iter().map(|c| c.name)) {
            Some(near) => format!("did you mean {near}?"),
            None => "'catena elements' lists all".to_string(),
        };
        return Err(format!("there is no element '{name}'; {near}"));
    };
    print(&if args.json {
        format!("{:#}\n", to_json(class))
    } else if args.markdown {
        page(class)
    } else {
        manual(class, paint)
    });
    Ok(ExitCode::SUCCESS)
}

fn categories() -> BTreeMap<Category, Vec<&'static Class>> {
    let mut categories: BTreeMap<Category, Vec<&Class>> = BTreeMap::new();
    for class in CLASSES {
        categories.entry(class.category).or_default().push(class);
    }
    categories
}

fn list(paint: Paint) -> String {
    let width = CLASSES.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (category, classes) in categories() {
        let _ = writeln!(text, "{}", paint.bold(category.title()));
        for class in classes {
            let pad = " ".repeat(width - class.name.len());
            let summary = Manual::of(class).summary;
            let _ = writeln!(text, "  {}{pad}  {summary}", paint.cyan(class.name));
        }
        text.push('\n');
    }
    text + "'catena elements NAME' prints the manual of one.\n"
}

/// `1 input and 1 to 2 outputs` for `1/1-2`.
fn ports(class: &Class) -> String {
    let (inputs, outputs) = class.ports.split_once('/').unwrap_or((class.ports, "="));
    let side = |spec: &str, noun: &str| match spec.split_once('-') {
        _ if spec == "=" => format!("as many {noun}s"),
        Some(("", "")) => format!("any number of {noun}s"),
        Some((low, "")) => format!("{low} or more {noun}s"),
        Some((low, high)) => format!("{low} to {high} {noun}s"),
        None if spec == "1" => format!("1 {noun}"),
        None if spec == "0" => format!("no {noun}s"),
        None => format!("{spec} {noun}s"),
    };
    format!("{} and {}", side(inputs, "input"), side(outputs, "output"))
}

/// `push to push` for `h/h`.
fn processing(class: &Class) -> String {
    let name = |c: char| match c {
        'h' => Some("push"),
        'l' => Some("pull"),
        'a' => Some("agnostic"),
        _ => None,
    };
    let side = |spec: &str| {
        let mut names: Vec<&str> = spec.chars().filter_map(name).collect();
        names.dedup();
        names.join(", then ")
    };
    let (inputs, outputs) = class.processing.split_once('/').unwrap_or((class.processing, ""));
    let (inputs, outputs) = (side(inputs), side(outputs));
    if outputs.is_empty() || inputs == outputs {
        inputs
    } else {
        format!("{inputs} inputs, {outputs} outputs")
    }
}

/// The manual for a terminal.
fn manual(class: &Class, paint: Paint) -> String {
    let manual = Manual::of(class);
    let mut text = format!("{}\n    {}\n\n", paint.bold(&manual.signature), manual.summary);
    write_blocks(&mut text, &manual.body, paint);
    let _ = writeln!(text, "{}", paint.bold("PORTS"));
    let _ = writeln!(text, "    {}, {} ({})\n", ports(class), processing(class), class.processing);
    for (title, blocks) in &manual.sections {
        let _ = writeln!(text, "{}", paint.bold(title));
        write_blocks(&mut text, blocks, paint);
    }
    text
}

pub(crate) fn write_blocks(text: &mut String, blocks: &[Block], paint: Paint) {
    for (i, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(words) => wrap(text, words, "    "),
            Block::Item { name, text: words } => {
                let _ = writeln!(text, "    {}", paint.cyan(name));
                wrap(text, words, "        ");
            }
            Block::Code(lines) => {
                for line in lines {
                    let line =
                        if line.is_empty() { String::new() } else { format!("      {line}") };
                    let _ = writeln!(text, "{}", paint.green(&line));
                }
            }
        }
        let in_list = |b: Option<&Block>| matches!(b, Some(Block::Item { .. }));
        if !(in_list(Some(block)) && in_list(blocks.get(i + 1))) {
            text.push('\n');
        }
    }
}

/// Running text in lines of at most 80 characters.
fn wrap(text: &mut String, words: &str, indent: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > 80 {
            let _ = writeln!(text, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(text, "{indent}{line}");
    }
}

/// The reference of all elements: `docs/elements.md`.
fn markdown() -> String {
    let mut text = String::from(
        "# Elements\n\nEvery element class that configurations can name, from the elements' own manuals. \
         `catena elements NAME` prints a manual on the terminal. This page is written by \
         `catena elements --markdown`.\n",
    );
    for (category, classes) in categories() {
        let _ =
            write!(text, "\n## {}\n\n| element | what it does |\n|---|---|\n", category.title());
        for class in classes {
            let summary = Manual::of(class).summary.replace('|', "\\|");
            let _ =
                writeln!(text, "| [{}](#{}) | {summary} |", class.name, class.name.to_lowercase());
        }
    }
    text.push_str("\n## Manuals\n");
    for class in CLASSES {
        text.push('\n');
        text.push_str(&page(class));
    }
    text
}

/// One element's manual as Markdown.
fn page(class: &Class) -> String {
    let manual = Manual::of(class);
    let mut text = format!("### {}\n\n`{}`", class.name, manual.signature);
    let _ = write!(text, " — {}\n\n", escape(&manual.summary));
    let linked: Vec<&str> = manual.related().collect();
    markdown_blocks(&mut text, &manual.body);
    let _ = writeln!(text, "*Ports:* {}, {}.", ports(class), processing(class));
    for (title, blocks) in &manual.sections {
        if title == "SEE ALSO" {
            let links: Vec<String> = linked
                .iter()
                .map(|name| match find(name) {
                    Some(class) => format!("[{name}](#{})", class.name.to_lowercase()),
                    None => escape(name),
                })
                .collect();
            let _ = write!(text, "\n*See also:* {}.\n", links.join(", "));
            continue;
        }
        let (first, rest) = title.split_at(title.len().min(1));
        let _ = write!(text, "\n**{first}{}**\n\n", rest.to_lowercase());
        markdown_blocks(&mut text, blocks);
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

pub(crate) fn markdown_blocks(text: &mut String, blocks: &[Block]) {
    for (i, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(words) => {
                let _ = writeln!(text, "{}\n", escape(words));
            }
            Block::Item { name, text: words } => {
                let (name, kind) = match name.split_once(" (") {
                    Some((name, kind)) => (name, format!(" ({}", escape(kind))),
                    None => (name.as_str(), String::new()),
                };
                let _ = writeln!(text, "- `{name}`{kind}: {}", escape(words));
                if !matches!(blocks.get(i + 1), Some(Block::Item { .. })) {
                    text.push('\n');
                }
            }
            Block::Code(lines) => {
                let _ = writeln!(text, "```click\n{}\n```\n", lines.join("\n"));
            }
        }
    }
}

/// Text in which no character means anything to Markdown.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut code = false;
    for c in text.chars() {
        code ^= c == '`';
        if !code && matches!(c, '*' | '_' | '<' | '>' | '[' | ']' | '|' | '\\' | '$') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn to_json(class: &Class) -> Value {
    let manual = Manual::of(class);
    json!({
        "name": class.name,
        "category": class.category.title(),
        "signature": manual.signature,
        "summary": manual.summary,
        "ports": class.ports,
        "processing": class.processing,
        "flow": class.flow,
        "description": plain(&manual.body),
        "sections": sections(&manual),
    })
}

/// Text without colours and indentation.
pub(crate) fn plain(blocks: &[Block]) -> String {
    let mut text = String::new();
    write_blocks(&mut text, blocks, Paint(false));
    let lines: Vec<&str> = text.lines().map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
    lines.join("\n").trim_end().to_string()
}

/// Sections by title.
pub(crate) fn sections(manual: &Manual) -> serde_json::Map<String, Value> {
    let section = |(title, blocks): &(String, Vec<Block>)| (title.clone(), json!(plain(blocks)));
    manual.sections.iter().map(section).collect()
}
