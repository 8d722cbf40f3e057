//! The documentation: what is generated of it, and the book that its pages make.

mod book;
mod reasons;

use std::env;
use std::fs::{self, File};
use std::path::Path;

use serde_json::{Map, Value};

use crate::Result;
use crate::command::{self, cargo, root};
use crate::gate::HISTORY;

/// What `catena` prints with these arguments.
const PRINTED: [(&str, &[&str]); 7] = [
    ("docs/bench-report.json", &["bench", "--schema", "report"]),
    ("docs/cost-profile.json", &["bench", "--schema", "costs"]),
    ("docs/control-protocol.json", &["ctl", "schema"]),
    ("docs/elements.md", &["elements", "--markdown"]),
    ("docs/nfs.md", &["nfs", "--markdown"]),
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
    let is_stale = |(path, made): &(String, String)| {
        fs::read_to_string(root().join(path)).ok().as_ref() != Some(made)
    };
    let stale: Vec<String> =
        generated()?.into_iter().filter(is_stale).map(|(path, _)| path).collect();
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("not as `cargo xtask docs` writes them: {}", stale.join(", ")).into()),
    }
}

fn generated() -> Result<Vec<(String, String)>> {
    let mut pages = vec![("docs/drop-reasons.md".to_owned(), reasons::page()?)];
    // As tests have it: of one package alone, dependencies have other features, and all would be built once more.
    let build = ["build", "--quiet", "--workspace", "--bin", "catena", "--example", "history"];
    command::read(&mut cargo(build))?;
    let own = env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new(""));
    for (path, args) in PRINTED {
        let mut catena = command::at_root(beside.join("catena"));
        pages.push((path.to_owned(), command::read(catena.args(args))?));
    }
    let mut example = command::at_root(beside.join("examples/history"));
    let history = File::open(root().join(HISTORY)).map_err(|why| format!("{HISTORY}: {why}"))?;
    let made: Map<String, Value> = serde_json::from_str(&command::read(example.stdin(history))?)?;
    let text = |text: Value| text.as_str().map(str::to_owned).unwrap_or_default();
    pages.extend(made.into_iter().map(|(name, made)| (format!("perf/{name}"), text(made))));
    Ok(pages)
}
