//! Container runtimes: what starts a program in a network namespace that is there, perhaps with a root file system of its own,
//! which is made from the program alone.

mod oci;
mod plain;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, Journal, Namespace, image};

/// What starts programs.
pub trait Runtime: Sync + Send {
    /// The name that users know it by.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn summary(&self) -> &'static str;

    /// Its version, if it is here.
    ///
    /// # Errors
    /// What it needs.
    fn look(&self) -> Result<String, String>;

    /// Whether it runs in Catena's tests.
    fn is_tested(&self) -> bool {
        true
    }

    /// Whether programs have a root file system of their own.
    fn has_root(&self) -> bool {
        true
    }

    /// A program that will run in a namespace, on the input and output of this command.
    ///
    /// # Errors
    /// If its configuration cannot be written.
    fn command(&self, at: &Place<'_>, arguments: &[String]) -> Result<Command, Failure>;

    /// Ends at once what a command has started.
    fn end(&self, _at: &Place<'_>) {}
}

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Whose processes these are.
    pub journal: &'a Journal,
    /// Its network.
    pub namespace: &'a Namespace,
    /// The program, on this host.
    pub program: &'a Path,
    /// Its root file system, if it has one.
    pub root: Option<&'a Root>,
}

impl Place<'_> {
    /// What a runtime knows the container by.
    fn id(&self) -> String {
        format!("catena-{}", self.namespace.name)
    }

    /// The folder of what is written for it.
    fn bundle(&self) -> PathBuf {
        self.journal.folder().join("containers").join(&self.namespace.name)
    }

    fn root(&self) -> Result<&Root, Failure> {
        self.root.ok_or_else(|| Failure::Impossible("a container without files".into()))
    }
}

/// A root file system: a program with its shared libraries.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    /// The program in it.
    program: String,
    /// Variables of its environment.
    environment: Vec<String>,
}

impl Root {
    /// Writes one, which goes with the journal.
    ///
    /// # Errors
    /// If a library is not found, or a file cannot be written.
    pub fn of(program: &Path, journal: &Journal) -> Result<Self, Failure> {
        let path = crate::launch::journal_files(journal).join("root");
        let (program, environment) = image::lay_out(program, &path)?;
        Ok(Self { path, program, environment })
    }
}

/// All of them.
pub fn all() -> [Box<dyn Runtime>; 3] {
    [Box::new(plain::Plain), Box::new(oci::Oci::RUNC), Box::new(oci::Oci::CRUN)]
}

/// The one of a name.
///
/// # Errors
/// If there is none, in words.
pub fn find(name: &str) -> Result<Box<dyn Runtime>, String> {
    let names = all().map(|runtime| runtime.name());
    let found = all().into_iter().find(|runtime| runtime.name() == name);
    found.ok_or_else(|| match ir::nearest(name, names) {
        Some(near) => format!("there is no container runtime '{name}': did you mean '{near}'?"),
        None => format!("there is no container runtime '{name}'; they are {}", names.join(", ")),
    })
}

/// The version of a program, or that it is needed.
fn version_of(program: &'static str, package: &str) -> Result<String, String> {
    match crate::run(Command::new(program).arg("--version"), "") {
        Ok(said) => {
            let line = said.lines().next().unwrap_or_default().trim();
            Ok(line.replace(" version", ""))
        }
        Err(_) => Err(format!("the program {program} (Debian: {package})")),
    }
}
