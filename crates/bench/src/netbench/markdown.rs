//! The results as a page of Markdown with figures beside it.

use std::fmt::Write as _;

use super::results::Results;

impl Results {
    /// The results as Markdown, and figures beside it: their names, which begin with `name`, and their texts. `again` are the
    /// commands that measure this anew.
    pub fn markdown(&self, name: &str, again: &[String]) -> (String, Vec<(String, String)>) {
        let mut text = String::from("# Networks between containers\n\n");
        let _ = writeln!(
            text,
            "Which virtual switch gives applications in network namespaces how much: measured by `catena netbench`, {} of each\n\
             cell, in an order that seed {} drew. Tables have medians, with the least and the greatest. The parameters and quantities\n\
             are explained in [Measure networks between containers](howto-netbench.md). The statements are those of chapter 5 of\n\
             Gabriele Ara's thesis on user-space networking between containers. To repeat it:\n\n```sh root\n{}\n```",
            self.runs(),
            self.seed,
            again.join("\n")
        );
        for remark in self.remarks.iter().chain(&self.failures()) {
            let _ = writeln!(text, "\n- {remark}");
        }
        let _ = writeln!(text, "\n## Statements\n\n{}", self.statements_table().markdown());
        let recommendations = self.recommendations();
        if !recommendations.is_empty() {
            let _ = writeln!(text, "## Which to take\n");
            recommendations.iter().for_each(|of| _ = writeln!(text, "- {of}"));
        }
        if let Some(table) = self.throughput_table() {
            let _ = writeln!(text, "\n## Throughput\n\n{}", table.markdown());
        }
        if let Some(table) = self.round_trip_table() {
            let _ = writeln!(text, "\n## Round trips\n\n{}", table.markdown());
        }
        if let Some(table) = self.start_table() {
            let _ = writeln!(text, "\n## Start\n\n{}", table.markdown());
        }
        let (figures, left_out) = self.figures();
        let _ = writeln!(text, "\n## Figures\n");
        let mut files = Vec::new();
        for (number, (title, svg)) in figures.into_iter().enumerate() {
            let file = format!("{name}-{}.svg", number + 1);
            let _ = writeln!(text, "![{title}]({file})\n");
            files.push((file, svg));
        }
        if left_out > 0 {
            let _ = writeln!(text, "{left_out} more figures are left out.\n");
        }
        let _ = writeln!(text, "## How it was measured\n");
        self.facts().iter().for_each(|(name, value)| _ = writeln!(text, "- {name}: {value}"));
        (text, files)
    }
}
