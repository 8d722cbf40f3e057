//! What an image has of this host's files, and the shared libraries among them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// What an image has.
pub(super) struct Parts {
    /// What is started here, to see that it is an NF, with its arguments.
    pub(super) tried: (PathBuf, Vec<String>),
    /// What is started in the image, with its arguments.
    pub(super) entry: Vec<String>,
    /// Files: where they are here, and where in the image.
    pub(super) files: Vec<(PathBuf, PathBuf)>,
    /// Shared libraries, at the same places.
    pub(super) libraries: BTreeSet<PathBuf>,
    /// Variables of the environment, beside those by which libraries are found.
    pub(super) variables: Vec<String>,
}

/// What a program's own loader would load for it here, and itself.
pub(super) fn libraries(loader: &str, program: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    if !Path::new(loader).exists() {
        return Err(Failure::Impossible(format!(
            "{}: its loader {loader} is not on this host",
            program.display()
        )));
    }
    let listed = crate::run(Command::new(loader).arg("--list").arg(program), "")?;
    let mut found = BTreeSet::from([PathBuf::from(loader)]);
    for line in listed.lines() {
        let (name, place) = line.trim().split_once(" => ").unwrap_or(("", line.trim()));
        if place.starts_with("not found") {
            return Err(Failure::Impossible(format!(
                "{}: the shared library {name} is not found: install it, or name its folder in LD_LIBRARY_PATH",
                program.display()
            )));
        }
        let place = place.rsplit_once(" (0x").map_or(place, |(path, _)| path);
        // The kernel's own has no file.
        if place.starts_with('/') {
            found.insert(PathBuf::from(place));
        }
    }
    Ok(found)
}
