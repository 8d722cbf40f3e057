//! Plain tables.

use std::fmt::Write;

use crate::svg::escape;

/// A table with a header; columns of numbers are aligned to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles.
    pub fn new<const N: usize>(titles: [&str; N]) -> Self {
        Self { rows: vec![titles.map(str::to_string).to_vec()] }
    }

    /// A table with as many columns as there are titles.
    pub fn titled(titles: &[&str]) -> Self {
        Self { rows: vec![titles.iter().map(|title| title.to_string()).collect()] }
    }

    /// Adds a row to a table with as many columns.
    pub fn cells(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Whether it has no rows but the titles.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Whether columns hold nothing but numbers and their marks.
    fn numeric(&self) -> Vec<bool> {
        let is_part =
            |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | '-' | ' ' | '%' | '?' | '*');
        let column = |c: usize| self.rows[1..].iter().all(|row| row[c].chars().all(is_part));
        (0..self.rows[0].len()).map(column).collect()
    }

    /// The table as HTML; cells of numbers have the class `number`.
    pub fn html(&self) -> String {
        let numeric = self.numeric();
        let mut text = String::from("<table>\n");
        for (number, row) in self.rows.iter().enumerate() {
            let name = if number == 0 { "th" } else { "td" };
            text.push_str("<tr>");
            for (cell, is_number) in row.iter().zip(&numeric) {
                let class = if *is_number { " class=\"number\"" } else { "" };
                let _ = write!(text, "<{name}{class}>{}</{name}>", escape(cell));
            }
            text.push_str("</tr>\n");
        }
        text + "</table>\n"
    }

    /// The table as Markdown; columns of numbers are aligned to the right.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
            if number == 0 {
                let lines = self.numeric().into_iter().map(|is| if is { "---:|" } else { "---|" });
                let _ = writeln!(text, "|{}", lines.collect::<String>());
            }
        }
        text
    }

    /// The table as text, two spaces in front of each line.
    pub fn render(&self) -> String {
        let columns = self.rows[0].len();
        let width = |c: usize| self.rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric = self.numeric();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for c in 0..columns {
                let pad = " ".repeat(widths[c] - row[c].chars().count());
                let cell = if numeric[c] { pad + &row[c] } else { row[c].clone() + &pad };
                line.push_str("  ");
                line.push_str(&cell);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Columns of a terminal that nobody widened.
pub const WIDTH: usize = 80;

/// A text as lines that fit a terminal; those behind the first are indented by two more.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for (number, line) in lines(text, WIDTH - indent - 2).into_iter().enumerate() {
        let more = if number > 0 { 2 } else { 0 };
        let _ = writeln!(out, "{:1$}{line}", "", indent + more);
    }
    out
}

/// A text in lines of so many characters at most, as far as its words allow; at least one line.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in text.split_whitespace() {
        let last = all.last_mut().filter(|last| {
            last.is_empty() || last.chars().count() + 1 + word.chars().count() <= width
        });
        match last {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => all.push(word.to_string()),
        }
    }
    all
}

/// A number with commas between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_at_words() {
        assert_eq!(lines("a bb ccc dddddd e", 6), ["a bb", "ccc", "dddddd", "e"]);
        assert_eq!(lines("", 6), [""]);
        let text = wrapped(&"word ".repeat(20), 4);
        assert!(
            text.lines().count() == 2 && text.lines().all(|line| line.len() <= WIDTH),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_grouped_and_aligned() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        let mut table = Table::new(["element", "packets"]);
        table.row(["a".into(), grouped(1000)]);
        table.row(["long".into(), grouped(2)]);
        assert_eq!(table.render(), "  element  packets\n  a          1,000\n  long           2\n");
        let mut table = Table::new(["a<b", "Mpps"]);
        table.row(["&".into(), "1.5 *3 %".into()]);
        let head = "<table>\n<tr><th>a&lt;b</th><th class=\"number\">Mpps</th></tr>\n";
        let row = "<tr><td>&amp;</td><td class=\"number\">1.5 *3 %</td></tr>\n</table>\n";
        assert_eq!(table.html(), format!("{head}{row}"));
    }
}
