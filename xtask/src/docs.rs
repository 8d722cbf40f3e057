//! What is generated of the documentation: the reference of elements, from the elements' own manuals, the
//! schema of the control protocol, from its types, and the README's picture, from an example.

use std::fs;

use crate::Result;
use crate::command::{self, cargo, root};

/// What is generated, and the arguments of `catena` that print it.
const PAGES: [(&str, &[&str]); 3] = [
    ("docs/control-protocol.json", &["ctl", "schema"]),
    ("docs/elements.md", &["elements", "--markdown"]),
    ("docs/isp-edge.svg", &["graph", "examples/isp-edge.click", "--format", "svg"]),
];

/// Writes the pages, or, to check, says which are not what would be written.
pub(crate) fn run(check: bool) -> Result {
    let mut stale = Vec::new();
    for (path, args) in PAGES {
        let catena = ["run", "--quiet", "--package", "catena-cli", "--bin", "catena", "--"];
        let made = command::read(cargo(catena).args(args))?;
        if !check {
            fs::write(root().join(path), made)?;
        } else if fs::read_to_string(root().join(path)).ok().as_ref() != Some(&made) {
            stale.push(path);
        }
    }
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("not as `cargo xtask docs` writes them: {}", stale.join(", ")).into()),
    }
}
