//! Why a command fails, for people and for programs.

use std::io::stderr;
use std::process::ExitCode;

use engine::control::protocol;
use engine::{Error, Findings, control};
use ir::{Diagnostic, Sources};
use serde_json::{Value, json};
use view::diagnostics;

use crate::mends;
use crate::terminal::{colours, print, print_error};

/// Why a command fails.
pub(crate) enum Failure {
    /// In words.
    Message(String),
    /// What is wrong with the command line.
    Usage(String),
    /// What is wrong with a configuration.
    Findings(Findings),
    /// What is wrong with a configuration, as an instance reports it: as text, and for programs.
    Reported(String, Vec<protocol::Diagnostic>),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Message(why)
    }
}

impl From<Error> for Failure {
    fn from(refusal: Error) -> Self {
        match refusal {
            Error::Configuration(findings) => Self::Findings(findings),
            refusal => Self::Message(mends::of(&refusal)),
        }
    }
}

impl From<bench::Failed> for Failure {
    fn from(why: bench::Failed) -> Self {
        match why {
            bench::Failed::Chain(findings) => Self::Findings(findings),
            bench::Failed::Message(why) => why.into(),
            bench::Failed::Interrupted => Self::Message("interrupted: nothing is reported".into()),
        }
    }
}

impl From<control::Failure> for Failure {
    fn from(why: control::Failure) -> Self {
        match why {
            control::Failure::Refused(refusal) if refusal.diagnostics.is_empty() => {
                Self::Message(mends::mended(&refusal.message, &refusal.code))
            }
            control::Failure::Refused(refusal) => {
                Self::Reported(refusal.message, refusal.diagnostics)
            }
            control::Failure::Misunderstood(why) => why.into(),
            why => Self::Message(why.to_string()),
        }
    }
}

impl Failure {
    /// Of diagnostics, with the texts that they point into.
    pub(crate) fn of(diagnostics: Vec<Diagnostic>, sources: Sources) -> Self {
        Self::Findings(Findings { diagnostics, sources })
    }

    /// The exit status.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            // As clap has it.
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// As people read it. Diagnostics say for themselves which are errors.
    pub(crate) fn text(&self, colour: bool) -> String {
        match self {
            Self::Message(why) | Self::Usage(why) => format!("error: {why}\n"),
            Self::Findings(Findings { diagnostics, sources }) => {
                diagnostics::render(diagnostics, sources, colour)
            }
            Self::Reported(text, _) => format!("{text}\n"),
        }
    }

    /// As programs read it, whatever the command: a document of diagnostics.
    pub(crate) fn json(&self) -> Value {
        let all = match self {
            Self::Message(why) | Self::Usage(why) => vec![protocol::Diagnostic {
                severity: "error".to_string(),
                code: "failed".to_string(),
                message: why.clone(),
                labels: Vec::new(),
                help: None,
            }],
            Self::Findings(findings) => findings.reported(),
            Self::Reported(_, all) => all.clone(),
        };
        let count = |severity: &str| all.iter().filter(|d| d.severity == severity).count();
        json!({ "errors": count("error"), "warnings": count("warning"), "diagnostics": all })
    }

    /// Shows it: on the standard error, or where the JSON goes that was asked for.
    pub(crate) fn print(&self, as_json: bool) {
        match as_json {
            true => print(&format!("{}\n", self.json())),
            false => print_error(&self.text(colours(&stderr()))),
        }
    }
}
