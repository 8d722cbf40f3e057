//! Scripts as instructions.

use click::config::Argument;
use ir::{Diagnostic, nearest};

use crate::configure::Arguments;
use crate::element::HandlerCalls;
use crate::handler_call::element_of;

/// A text that is subject to substitution.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// Whether a layer of quotation marks is removed afterwards.
    pub(super) unquote: bool,
}

/// Where printed text goes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Output,
    File { path: String, append: bool },
}

/// Where a goto leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    At(usize),
    End,
    Exit,
    Stop,
    Error,
}

#[derive(Clone, Debug)]
pub(super) enum Instruction {
    /// Where a script starts that does not start by waiting.
    Initial,
    /// Waits for so many steps.
    Pause(u32),
    /// Waits for a time.
    Wait(String),
    Print {
        text: Text,
        target: Target,
        newline: bool,
    },
    Read(Text),
    Write(Text),
    /// Sets a variable.
    Set(usize, Text),
    /// Sets a variable at the start.
    Init {
        variable: usize,
        text: Text,
        export: bool,
    },
    Label(String),
    Goto {
        label: Label,
        condition: String,
    },
    End,
    Exit,
    Stop,
    Error(Text),
    /// Sets the variable `_` and ends.
    Return(usize, Text),
}

impl Instruction {
    /// The texts that values are put into.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, other) = match self {
            Self::Initial
            | Self::Pause(_)
            | Self::Label(_)
            | Self::End
            | Self::Exit
            | Self::Stop => (None, None),
            Self::Wait(text) | Self::Goto { condition: text, .. } => (Some(text), None),
            Self::Print { text, target: Target::File { path, .. }, .. } => {
                (Some(&text.text), Some(path))
            }
            Self::Print { text, .. }
            | Self::Read(text)
            | Self::Write(text)
            | Self::Set(_, text)
            | Self::Init { text, .. }
            | Self::Error(text)
            | Self::Return(_, text) => (Some(&text.text), None),
        };
        one.into_iter().chain(other).map(String::as_str)
    }

    /// Whether it stops the driver.
    pub(super) fn stops_driver(&self) -> bool {
        match self {
            Self::Stop => true,
            Self::Write(call) => {
                matches!(call.text.split_whitespace().next(), Some("stop" | ".stop"))
            }
            _ => false,
        }
    }
}

/// A script's instructions and the names of its variables.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) variables: Vec<String>,
}

const NAMES: [&str; 32] = [
    "append",
    "end",
    "error",
    "errorq",
    "exit",
    "export",
    "exportq",
    "goto",
    "init",
    "initq",
    "label",
    "loop",
    "pause",
    "print",
    "printn",
    "printnq",
    "printq",
    "read",
    "readq",
    "return",
    "returnq",
    "save",
    "set",
    "setq",
    "stop",
    "wait",
    "wait_for",
    "wait_step",
    "wait_stop",
    "wait_time",
    "write",
    "writeq",
];

impl Program {
    /// Parses a script; `driver` says that its end stops the driver.
    pub(super) fn parse(arguments: &mut Arguments<'_, '_>, driver: bool) -> Self {
        let mut program = Self::default();
        let mut jumps = Vec::new();
        for argument in arguments.rest() {
            let (name, rest) = argument.split_word();
            if name.text.is_empty() {
                continue;
            }
            match program.instruction(&name.text, &rest) {
                Ok(instruction) => {
                    if let Instruction::Goto { .. } = instruction
                        && name.text == "goto"
                    {
                        // One more if the first instruction has to be preceded by another.
                        let at = program.instructions.len().max(1);
                        jumps.push((at, rest.split_word().0));
                    }
                    program.add(instruction);
                }
                Err(why) => {
                    let error = Diagnostic::error("bad-instruction", why).label(argument.span, "");
                    let known = NAMES.contains(&name.text.as_str());
                    let near = (!known).then(|| nearest(&name.text, NAMES)).flatten();
                    arguments.report(match near {
                        Some(near) => error.help(format!("did you mean {near}?")),
                        None => error,
                    });
                }
            }
        }
        for (at, name) in jumps {
            match (program.find_label(&name.text), &mut program.instructions[at]) {
                (Some(found), Instruction::Goto { label, .. }) => *label = found,
                _ => {
                    let message = format!("no label named '{}'", name.text);
                    let error = Diagnostic::error("unknown-label", message).label(name.span, "");
                    arguments.report(error);
                }
            }
        }
        if program.instructions.is_empty() && driver {
            program.add(Instruction::Pause(1));
        }
        program.add(if driver { Instruction::Stop } else { Instruction::End });
        program
    }

    fn add(&mut self, instruction: Instruction) {
        if self.instructions.is_empty()
            && !matches!(instruction, Instruction::Pause(_) | Instruction::Wait(_))
        {
            self.instructions.push(Instruction::Initial);
        }
        self.instructions.push(instruction);
    }

    fn instruction(&mut self, name: &str, rest: &Argument) -> Result<Instruction, String> {
        let (base, unquote) = match name.strip_suffix('q') {
            Some(base) => (base, true),
            None => (name, false),
        };
        let text = |text: &str| Text { text: text.to_string(), unquote };
        let bare = |instruction| match rest.text.is_empty() {
            true => Ok(instruction),
            false => Err(format!("{name} takes no argument")),
        };
        let pauses = matches!(name, "pause" | "wait_step" | "wait_stop");
        Ok(match base {
            _ if pauses || name == "wait" && rest.text.is_empty() => match rest.text.as_str() {
                "" => Instruction::Pause(1),
                count => {
                    Instruction::Pause(count.parse().map_err(|_| format!("{name} takes a number"))?)
                }
            },
            "wait" | "wait_time" | "wait_for" if !unquote => Instruction::Wait(rest.text.clone()),
            "print" | "printn" => {
                let (target, printed) = redirection(&rest.text);
                Instruction::Print { text: text(&printed), target, newline: base == "print" }
            }
            "save" | "append" if !unquote => {
                let (handler, file) = rest.split_word();
                let path = match file.text.as_str() {
                    "" => "-".to_string(),
                    path => path.to_string(),
                };
                let target = Target::File { path, append: name == "append" };
                Instruction::Print { text: text(&handler.text), target, newline: true }
            }
            "read" => Instruction::Read(text(&rest.text)),
            "write" => Instruction::Write(text(&rest.text)),
            "set" | "init" | "export" => {
                let (variable, value) = rest.split_word();
                if variable.text.is_empty() || base == "set" && value.text.is_empty() {
                    return Err(format!("{name} takes a variable and a text"));
                }
                let variable = self.variable(&variable.text);
                match base {
                    "set" => Instruction::Set(variable, text(&value.text)),
                    _ => {
                        let export = base == "export";
                        Instruction::Init { variable, text: text(&value.text), export }
                    }
                }
            }
            "return" => Instruction::Return(self.variable("_"), text(&rest.text)),
            "label" if !unquote => {
                let (label, extra) = rest.split_word();
                if label.text.is_empty() || !extra.text.is_empty() {
                    return Err("label takes a name".to_string());
                }
                Instruction::Label(label.text)
            }
            "goto" if !unquote => {
                let condition = rest.split_word().1.text;
                Instruction::Goto { label: Label::At(0), condition }
            }
            "loop" if !unquote => {
                bare(Instruction::Goto { label: Label::At(0), condition: String::new() })?
            }
            "end" if !unquote => bare(Instruction::End)?,
            "exit" if !unquote => bare(Instruction::Exit)?,
            "stop" if !unquote => bare(Instruction::Stop)?,
            "error" => Instruction::Error(text(&rest.text)),
            _ => return Err(format!("no instruction is named '{name}'")),
        })
    }

    /// The handlers that the script calls.
    pub(super) fn handler_calls(&self) -> HandlerCalls {
        let mut names = Vec::new();
        // Names that variables make up are known when the script runs.
        let mut is_computed = false;
        let mut call = |handler: &str| match handler.contains('$') {
            true => is_computed = true,
            false => names.extend(Some(element_of(handler).to_string()).filter(|n| !n.is_empty())),
        };
        for instruction in &self.instructions {
            if let Instruction::Read(text) | Instruction::Write(text) = instruction {
                call(&Argument::bare(&text.text).split_word().0.text);
            }
            for text in instruction.texts() {
                // What is written may itself be a call (COUNT_CALL).
                let words = text.split_whitespace().filter(|word| !word.contains('$'));
                words.filter(|word| word.contains('.')).for_each(&mut call);
                for inserted in text.split("$(").skip(1) {
                    let end = |c: char| c.is_whitespace() || c == ')';
                    call(inserted.trim_start().split(end).next().unwrap_or_default());
                }
            }
        }
        if is_computed { HandlerCalls::Any } else { HandlerCalls::Of(names) }
    }

    /// The index of a variable, which is made if there is none of that name.
    fn variable(&mut self, name: &str) -> usize {
        self.variables.iter().position(|v| v == name).unwrap_or_else(|| {
            self.variables.push(name.to_string());
            self.variables.len() - 1
        })
    }

    /// Where a label stands; labels of the script hide those that are always there.
    pub(super) fn find_label(&self, name: &str) -> Option<Label> {
        let own = |i: &Instruction| matches!(i, Instruction::Label(label) if label == name);
        self.instructions.iter().position(own).map(Label::At).or(match name {
            "begin" | "loop" => Some(Label::At(0)),
            "end" => Some(Label::End),
            "exit" => Some(Label::Exit),
            "stop" => Some(Label::Stop),
            "error" | "errorq" => Some(Label::Error),
            _ => None,
        })
    }
}

/// Takes `>FILE` or `>>FILE` off the front of what is printed.
fn redirection(text: &str) -> (Target, String) {
    let (append, rest) = match (text.strip_prefix(">>"), text.strip_prefix('>')) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return (Target::Output, text.to_string()),
    };
    let (path, rest) = Argument::bare(rest).split_word();
    let path = String::from_utf8_lossy(&path.unquote()).into_owned();
    (Target::File { path, append }, rest.text)
}
