//! `catena nfs`: the library of network functions.

mod learned;

use std::fmt::Write;
use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use compiler::library::{FUNCTIONS, Function, PACKAGE, find};
use elements::registry;
use ir::nearest;
use serde_json::{Value, json};
use view::paint::Paint;

use crate::commands::elements::{escape, markdown_blocks, plain, sections, write_blocks};
use crate::failure::Failure;
use crate::manual::{Block, Manual};
use crate::terminal::{colours, print};

use learned::Learned;

/// List network functions, or print the manual of one
///
/// These are compounds over elements that `require(nf)` makes known. A manual ends with what the example becomes:
/// its programs, what of it is opaque to them, and what each target does of its traffic classes.
#[derive(Args, Debug)]
pub(crate) struct Nfs {
    /// Network function
    name: Option<String>,
    /// Print the function's Click text
    #[arg(long, requires = "name", conflicts_with_all = ["json", "markdown"])]
    text: bool,
    /// Write the example, and the files that it reads, to a folder
    #[arg(long, short, value_name = "DIR", requires = "name", conflicts_with_all = ["text", "json", "markdown"])]
    output: Option<PathBuf>,
    /// Print the whole catalogue as Markdown
    #[arg(long, conflicts_with_all = ["json", "name"])]
    markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A function with its manual.
struct Entry {
    function: &'static Function,
    manual: Manual,
}

/// Runs the command.
pub(crate) fn main(args: &Nfs) -> Result<ExitCode, Failure> {
    let paint = Paint(colours(&stdout()));
    let Some(name) = &args.name else {
        let entries = || FUNCTIONS.iter().map(Entry::of);
        print(&if args.json {
            format!("{:#}\n", Value::Array(entries().map(|of| of.summary()).collect()))
        } else if args.markdown {
            markdown()?
        } else {
            list(paint)
        });
        return Ok(ExitCode::SUCCESS);
    };
    let Some(function) = find(name) else {
        let near = match nearest(name, FUNCTIONS.iter().map(|of| of.name)) {
            Some(near) => format!("did you mean {near}?"),
            None => "'catena nfs' lists all".to_string(),
        };
        return Err(format!("there is no network function '{name}'; {near}").into());
    };
    let entry = Entry::of(function);
    if let Some(folder) = &args.output {
        return entry.write(folder).map(|()| ExitCode::SUCCESS).map_err(Failure::from);
    }
    print(&if args.text {
        function.text.to_string()
    } else if args.json {
        format!("{:#}\n", entry.to_json(&Learned::of(&entry)?))
    } else {
        entry.text(&Learned::of(&entry)?, paint)
    });
    Ok(ExitCode::SUCCESS)
}

fn list(paint: Paint) -> String {
    let width = FUNCTIONS.iter().map(|of| of.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in FUNCTIONS.iter().map(Entry::of) {
        let name = entry.function.name;
        let pad = " ".repeat(width - name.len());
        let _ = writeln!(text, "  {}{pad}  {}", paint.cyan(name), entry.manual.summary);
    }
    text + "\n'require(nf);' makes them known to a configuration; 'catena nfs NAME' prints the manual of one.\n"
}

impl Entry {
    fn of(function: &'static Function) -> Self {
        let comment = function.text.lines().map_while(|line| line.strip_prefix("//"));
        let text: Vec<&str> = comment.collect();
        Self { function, manual: Manual::read(&text.join("\n")) }
    }

    /// The example, as a configuration.
    fn example(&self) -> String {
        let of = self.manual.sections.iter().find(|(title, _)| title == "EXAMPLE");
        format!("require({PACKAGE});\n{}", of.map_or(String::new(), |(_, blocks)| code(blocks)))
    }

    /// The files that it reads: their names and what stands in them.
    fn files(&self) -> impl Iterator<Item = (&str, String)> {
        self.manual
            .sections
            .iter()
            .filter_map(|(title, blocks)| Some((title.strip_prefix("FILE ")?, code(blocks))))
    }

    /// Writes the example and its files.
    fn write(&self, folder: &Path) -> Result<(), String> {
        let told = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
        fs::create_dir_all(folder).map_err(|why| told(folder, why))?;
        let name = self.function.file.to_string();
        let example = [(name, self.example())];
        let files = self.files().map(|(name, text)| (name.to_string(), text));
        for (name, text) in example.into_iter().chain(files) {
            let path = folder.join(name);
            dataplane::guarded_path::write(&path, text).map_err(|why| told(&path, why))?;
            print(&format!("{}\n", path.display()));
        }
        Ok(())
    }

    fn summary(&self) -> Value {
        json!({
            "name": self.function.name,
            "signature": self.manual.signature,
            "summary": self.manual.summary,
        })
    }

    fn to_json(&self, learned: &Learned) -> Value {
        let files: serde_json::Map<String, Value> =
            self.files().map(|(name, text)| (name.to_string(), json!(text))).collect();
        let mut sections = sections(&self.manual);
        sections.retain(|title, _| title != "EXAMPLE" && !title.starts_with("FILE "));
        let mut value = self.summary();
        value["description"] = json!(plain(&self.manual.body));
        value["sections"] = Value::Object(sections);
        value["example"] = json!(self.example());
        value["files"] = Value::Object(files);
        value["example_becomes"] = learned.to_json();
        value
    }

    /// The manual for a terminal.
    fn text(&self, learned: &Learned, paint: Paint) -> String {
        let manual = &self.manual;
        let mut text = format!("{}\n    {}\n\n", paint.bold(&manual.signature), manual.summary);
        write_blocks(&mut text, &manual.body, paint);
        for (title, blocks) in &manual.sections {
            let _ = writeln!(text, "{}", paint.bold(title));
            if title == "EXAMPLE" {
                let lines = self.example().lines().map(str::to_string).collect();
                write_blocks(&mut text, &[Block::Code(lines)], paint);
            } else {
                write_blocks(&mut text, blocks, paint);
            }
        }
        let _ = writeln!(text, "{}", paint.bold("THE EXAMPLE BECOMES"));
        for line in learned.lines() {
            let _ = writeln!(text, "    {line}");
        }
        text
    }

    /// The manual as Markdown.
    fn page(&self, learned: &Learned) -> String {
        let manual = &self.manual;
        let mut text = format!("## {}\n\n`{}`", self.function.name, manual.signature);
        let _ = write!(text, " — {}\n\n", escape(&manual.summary));
        markdown_blocks(&mut text, &manual.body);
        for (title, blocks) in &manual.sections {
            let (first, rest) = title.split_at(title.len().min(1));
            let title = match title.strip_prefix("FILE ") {
                _ if title == "IPV6" => "IPv6".to_string(),
                Some(name) => format!("File `{name}`"),
                None => format!("{first}{}", rest.to_lowercase()),
            };
            if title == "See also" {
                let links: Vec<String> = manual.related().map(link).collect();
                let _ = write!(text, "*See also:* {}.\n\n", links.join(", "));
                continue;
            }
            let _ = write!(text, "**{title}**\n\n");
            match &*title {
                "Example" => {
                    let _ = write!(text, "```click\n{}```\n\n", self.example());
                }
                _ if title.starts_with("File ") => {
                    let _ = write!(text, "```text\n{}```\n\n", code(blocks));
                }
                _ => markdown_blocks(&mut text, blocks),
            }
            text.truncate(text.trim_end().len());
            text.push_str("\n\n");
        }
        text.push_str("**The example becomes**\n\n");
        for line in learned.lines() {
            let _ = writeln!(text, "- {}", escape(&line));
        }
        text
    }
}

/// Lines that stay as they are.
fn code(blocks: &[Block]) -> String {
    let lines = blocks.iter().filter_map(|block| match block {
        Block::Code(lines) => Some(lines),
        _ => None,
    });
    lines.flatten().map(|line| format!("{line}\n")).collect()
}

/// A link to the manual of a network function or an element.
fn link(name: &str) -> String {
    if find(name).is_some() {
        format!("[{name}](#{})", name.to_lowercase())
    } else if registry::find(name).is_some() {
        format!("[{name}](elements.md#{})", name.to_lowercase())
    } else {
        escape(name)
    }
}

/// The catalogue: `docs/nfs.md`.
fn markdown() -> Result<String, Failure> {
    let mut text = String::from(
        "# Network functions\n\nThe library of network functions: compounds in the Click language over \
         [elements](elements.md), built into `catena`. `require(nf);` makes them known to a configuration. A class of \
         the same name that a configuration defines itself counts instead, as with elements. `catena nfs NAME` prints \
         a manual on the terminal, and `catena nfs NAME --text` the Click text. This page is written by \
         `catena nfs --markdown`.\n\nWhat an example becomes is found by compiling it. A class is a set of packets that \
         end alike. What is opaque takes the code of an element instead of a program, and so do packets that programs leave to \
         elements, such as those with IP options or that begin a flow. For each target, a class is done \
         there, decided there (a core acts without deciding again) or left to cores; nothing is trusted of frames. A \
         target is left out if there is nothing that it could be given.\n\n\
         | network function | what it does |\n|---|---|\n",
    );
    let mut pages = String::new();
    for entry in FUNCTIONS.iter().map(Entry::of) {
        let name = entry.function.name;
        let summary = entry.manual.summary.replace('|', "\\|");
        let _ = writeln!(text, "| [{name}](#{}) | {summary} |", name.to_lowercase());
        let _ = write!(pages, "\n{}", entry.page(&Learned::of(&entry)?));
    }
    Ok(text + &pages)
}
