//! `catena reference`: the reference of commands as Markdown, from their own help.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

use crate::terminal::print;

/// Prints the page.
pub(crate) fn main(mut program: Command) -> ExitCode {
    program.build();
    let mut text = String::from(
        "# Commands\n\nThis page is generated from `catena --help` and from the help of each command.\n\n\
         | command | what it does |\n|---|---|\n",
    );
    for command in commands(&program) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = command.get_name();
        let _ = writeln!(text, "| [`{name}`](#catena-{name}) | {} |", cell(&about));
    }
    for command in commands(&program) {
        page(&mut text, command, &format!("catena {}", command.get_name()), 2);
    }
    print(&text);
    ExitCode::SUCCESS
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set())
}

/// A command, its arguments and its commands.
fn page(text: &mut String, command: &Command, name: &str, level: usize) {
    let about = command.get_long_about().or(command.get_about());
    let _ = write!(text, "\n{} {name}\n\n", "#".repeat(level));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    for (i, part) in about.map(ToString::to_string).iter().flat_map(|a| a.split("\n\n")).enumerate()
    {
        // What is set in columns stays as it is.
        match part.lines().any(|line| line.starts_with("  ")) {
            true => _ = write!(text, "```text\n{part}\n```\n\n"),
            false if i == 0 => _ = write!(text, "{}.\n\n", escape(part.trim_end_matches('.'))),
            false => _ = write!(text, "{}\n\n", escape(part)),
        }
    }
    let _ = writeln!(text, "```text\n{usage}\n```");
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let mut arguments = command.get_arguments().filter(shown).peekable();
    if arguments.peek().is_some() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for arg in arguments {
        let _ = writeln!(text, "| {} | {} |", written(arg), cell(&meaning(arg)));
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(text, "\n```text\n{after}\n```\n");
    }
    for command in commands(command) {
        page(text, command, &format!("{name} {}", command.get_name()), level + 1);
    }
}

/// How an argument is written: `-w`, `--write FILE`.
fn written(arg: &Arg) -> String {
    let value = match (arg.get_action(), arg.get_value_names()) {
        (ArgAction::Set | ArgAction::Append, Some([name, ..])) => name.to_string(),
        _ => String::new(),
    };
    let (short, long) = (arg.get_short(), arg.get_long());
    let mut names: Vec<String> = short.map(|c| format!("-{c}")).into_iter().collect();
    names.extend(long.map(|name| format!("--{name}")));
    let names = names.join(", ");
    let space = if names.is_empty() || value.is_empty() { "" } else { " " };
    format!("`{}`", format!("{names}{space}{value}").replace('|', "\\|"))
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> =
        arg.get_possible_values().iter().map(|v| format!("`{}`", v.get_name())).collect();
    if !choices.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue) {
        let _ = write!(text, "; one of {}", choices.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !defaults.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue) {
        let _ = write!(text, " (default: `{}`)", defaults.join(" "));
    }
    text
}

/// Text in a table: its paragraphs follow each other as sentences.
fn cell(text: &str) -> String {
    let paragraph = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<String> = text.split("\n\n").map(paragraph).collect();
    escape(&paragraphs.join(". ").replace(".. ", ". ")).replace('|', "\\|")
}

/// Text that Markdown does not take for HTML.
fn escape(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}
