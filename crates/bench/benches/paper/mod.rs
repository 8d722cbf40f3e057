//! A page about a paper's experiments: text, tables and plots, that a bench writes from what it measured.
#![allow(dead_code, reason = "each bench takes what it needs")]

use std::fmt::Write;
use std::path::PathBuf;

/// The page and its plots.
pub(crate) struct Page {
    text: String,
    /// File names and what is in them.
    plots: Vec<(&'static str, String)>,
}

impl Page {
    /// A page that begins with this text.
    pub(crate) fn beginning(text: String) -> Self {
        Self { text, plots: Vec::new() }
    }

    /// What was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Appends a line, or several.
    pub(crate) fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{text}");
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.put(format_args!("| {} |", cells.join(" | ")));
    }

    /// A table's head: the first column is text, the others are numbers.
    pub(crate) fn head(&mut self, columns: &[impl AsRef<str>]) {
        let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
        self.put(format_args!("| {} |", columns.join(" | ")));
        self.put(format_args!("|---|{}", "---:|".repeat(columns.len() - 1)));
    }

    pub(crate) fn plot(&mut self, file: &'static str, title: &str, svg: String) {
        self.put(format_args!("\n![{title}]({file})\n"));
        self.plots.push((file, svg));
    }

    /// Writes the page and its plots into a folder, or prints the page.
    #[allow(clippy::print_stdout)]
    pub(crate) fn finish(&self, name: &str, folder: Option<PathBuf>) {
        let Some(folder) = folder else {
            print!("{}", self.text);
            return;
        };
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text)
                .unwrap_or_else(|e| panic!("{}: {e}", folder.join(name).display()));
        };
        write(name, &self.text);
        self.plots.iter().for_each(|(name, svg)| write(name, svg));
    }
}

/// A number with commas between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
