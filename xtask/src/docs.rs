//! The documentation: what is generated of it, and the book that its pages make.

mod book;
mod reasons;

use std::fs;

use crate::Result;
use crate::command::{self, cargo, root};

/// What `catena` prints with these arguments.
const PRINTED: [(&str, &[&str]); 4] = [
    ("docs/control-protocol.json", &["ctl", "schema"]),
    ("docs/elements.md", &["elements", "--markdown"]),
    ("docs/commands.md", &["reference"]),
    ("docs/isp-edge.svg", &["graph", "examples/isp-edge.click", "--format", "svg"]),
];

/// Writes what is generated, and makes the pages a book if mdBook is there, or is to be installed.
pub(crate) fn run(install: bool) -> Result {
    for (path, made) in generated()? {
        fs::write(root().join(path), made)?;
    }
    book::build(install)
}

/// Says what of the generated pages is not as it would be written.
pub(crate) fn check() -> Result {
    let is_stale = |(path, made): &(&str, String)| {
        fs::read_to_string(root().join(path)).ok().as_ref() != Some(made)
    };
    let stale: Vec<&str> =
        generated()?.iter().filter(|p| is_stale(p)).map(|(path, _)| *path).collect();
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("not as `cargo xtask docs` writes them: {}", stale.join(", ")).into()),
    }
}

fn generated() -> Result<Vec<(&'static str, String)>> {
    let mut pages = vec![("docs/drop-reasons.md", reasons::page()?)];
    for (path, args) in PRINTED {
        let catena = ["run", "--quiet", "--package", "catena-cli", "--bin", "catena", "--"];
        pages.push((path, command::read(cargo(catena).args(args))?));
    }
    Ok(pages)
}
