//! What starts a fabric, step by step: executed, or shown as lines of a shell.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{LOG, Site};
use crate::process::run;
use crate::{Failure, Process, log};

/// A step.
#[derive(Debug)]
pub enum Step {
    /// Commands of `ip` in the fabric's namespace.
    Ip(String),
    /// A folder that is made.
    Folder(PathBuf),
    /// A file that is written.
    Write(PathBuf, String),
    /// A command that ends, and its input.
    Run(Command, String),
    /// A process that stays.
    Start(Command),
    /// What this program does itself, in words.
    Own(String),
}

/// Executes steps; the processes that stay.
pub(super) fn execute(steps: Vec<Step>, at: &Site<'_>) -> Result<Vec<Process>, Failure> {
    let mut processes = Vec::new();
    for step in steps {
        match step {
            Step::Ip(commands) => at.namespace.ip(at.journal, &commands)?,
            Step::Folder(path) => std::fs::create_dir(&path).map_err(Failure::at(&path))?,
            Step::Write(path, text) => {
                std::fs::write(&path, text).map_err(Failure::at(&path))?;
            }
            Step::Run(command, input) => drop(run(&mut at.journal.marked(command), &input)?),
            Step::Start(mut command) => {
                let [output, errors] = log::open(at.journal.folder(), LOG)?;
                command.process_group(0).stdin(Stdio::null()).stdout(output).stderr(errors);
                processes.push(at.journal.start_as_is(&mut command)?);
            }
            Step::Own(_) => {}
        }
    }
    Ok(processes)
}

/// A word of a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./,:=@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A command as people would type it.
pub fn shown(command: &Command) -> String {
    let mut text = String::new();
    if let Some(folder) = command.get_current_dir() {
        let _ = write!(text, "cd {} && ", quoted(&folder.to_string_lossy()));
    }
    for (name, value) in command.get_envs() {
        let value = value.unwrap_or_default().to_string_lossy();
        let _ = write!(text, "{}={} ", name.to_string_lossy(), quoted(&value));
    }
    text += &quoted(&command.get_program().to_string_lossy());
    for word in command.get_args() {
        let _ = write!(text, " {}", quoted(&word.to_string_lossy()));
    }
    text
}

/// What comes after a command that reads this.
fn input(text: &str) -> String {
    match text.is_empty() {
        true => "\n".into(),
        false => format!(" <<'END'\n{}\nEND\n", text.trim_end()),
    }
}

/// Commands of `ip` in a namespace.
pub(super) fn ip(namespace: &str, commands: &str) -> String {
    match commands.is_empty() {
        true => String::new(),
        false => format!("ip -n {} -batch -{}", quoted(namespace), input(commands)),
    }
}

impl Step {
    /// As lines of a shell.
    pub(super) fn lines(&self, namespace: &str) -> String {
        let path = |path: &Path| quoted(&path.to_string_lossy());
        match self {
            Self::Ip(commands) => ip(namespace, commands),
            Self::Folder(folder) => format!("mkdir {}\n", path(folder)),
            Self::Write(file, text) => format!("cat >{}{}", path(file), input(text)),
            Self::Run(command, text) => shown(command) + &input(text),
            // Some say nothing when they are there.
            Self::Start(command) => shown(command) + " &\nsleep 1\n",
            Self::Own(what) => format!("# catena itself: {what}\n"),
        }
    }
}
