//! Every configuration of the conformance corpus parses, and formatting keeps its meaning.

mod shape;

use std::env;
use std::path::PathBuf;

use ir::has_errors;

/// The folder of shared data; `None`, with the reason on standard error, if it is not there.
#[allow(clippy::print_stderr)]
fn shared(folder: &str) -> Option<PathBuf> {
    let root = env::var_os("CATENA_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    assert!(env::var_os("CATENA_SHARED").is_none(), "{} is missing", path.display());
    eprintln!("not run: {} is missing (set CATENA_SHARED)", path.display());
    None
}

/// The cases that the language itself refuses; the others are refused by what elements mean.
const SYNTAX_ERRORS: [&str; 1] = ["error-unclosed-paren"];

#[test]
fn every_conformance_case_parses() {
    let Some(folder) = shared("conformance") else { return };
    let mut cases = 0;
    for entry in folder.read_dir().expect("readable folder") {
        let path = entry.expect("readable entry").path().join("case.click");
        let Ok(bytes) = std::fs::read(&path) else { continue };
        cases += 1;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (tree, diagnostics) = shape::parsed(&text);
        let name = path.parent().and_then(|p| p.file_name()).unwrap_or_default().to_string_lossy();
        let expected = SYNTAX_ERRORS.contains(&&*name);
        assert_eq!(has_errors(&diagnostics), expected, "{name}: {diagnostics:#?}");
        assert!(!tree.statements.is_empty(), "{name}");
        if expected {
            continue;
        }
        let formatted = shape::formatted(&text);
        assert_eq!(shape::shape_of(&text), shape::shape_of(&formatted), "{name}");
        assert_eq!(formatted, shape::formatted(&formatted), "{name}");
    }
    assert!(cases > 0, "no case in {}", folder.display());
}
