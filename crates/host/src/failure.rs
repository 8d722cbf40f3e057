//! What goes wrong on a host.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why something on a host was not made or taken down.
#[derive(Debug)]
pub enum Failure {
    /// Only root may.
    NotRoot,
    /// A program is not there, which is in this package.
    NoProgram(String, &'static str),
    /// A command failed: which, and what it said.
    Command(String, String),
    /// Something of this name is there that was not made here.
    Taken(String),
    /// A journal is held by a process that runs, if its number is known.
    Held(PathBuf, Option<u32>),
    /// The system refuses something on a file.
    File(PathBuf, io::Error),
    /// What is asked for cannot be made, in words.
    Impossible(String),
    /// It was interrupted.
    Interrupted,
}

impl Failure {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |why| Self::File(path.to_path_buf(), why)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => f.write_str("network namespaces and links are made by root: use sudo"),
            Self::NoProgram(program, package) => write!(
                f,
                "there is no program '{program}': install Debian's package {package} (`apt-get install {package}`)"
            ),
            Self::Command(command, said) => write!(f, "`{command}` failed: {}", said.trim_end()),
            Self::Taken(what) => write!(
                f,
                "{what} is there already and was not made here: nothing of it is touched; choose another name"
            ),
            Self::Held(path, Some(process)) => {
                write!(f, "{} is held by process {process}, which runs", path.display())
            }
            Self::Held(path, None) => {
                write!(f, "{} is held by a process that runs", path.display())
            }
            Self::File(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Impossible(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Failure {}
