//! Lists of rules that elements read from files.

use elements::configure::Files;
use ir::{FileId, Sources, has_errors};

/// What `iptables-save` prints, strictly and with what cannot be read left out.
pub fn iptables(data: &[u8]) {
    configure("IPFilter(file rules)", data);
    configure("IPFilter(file rules, LENIENT true)", data);
}

/// Rules of Snort, likewise.
pub fn snort(data: &[u8]) {
    configure("SnortFilter(rules)", data);
    configure("SnortFilter(rules, LENIENT true)", data);
}

/// Lists of hosts and paths, likewise.
pub fn urls(data: &[u8]) {
    configure("URLFilter(rules)", data);
    configure("URLFilter(rules, LENIENT true)", data);
}

/// Configures an element that reads the file `rules`: it is made, or what is said against it has a place.
fn configure(element: &str, data: &[u8]) {
    let mut sources = Sources::new();
    let file = sources.add("fuzz.click", format!("Idle -> {element} -> Discard;"));
    let mut files = Rules { text: String::from_utf8_lossy(data).into_owned(), read: None };
    let options = compiler::Options::default();
    let (chain, mut diagnostics) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let made = chain.is_some_and(|chain| {
        compiler::instantiate(&chain, &mut sources, &mut files, &mut diagnostics).is_some()
    });
    assert!(made || has_errors(&diagnostics), "nothing is said against it: {diagnostics:?}");
    for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
        assert!(sources.text(label.span.file).get(label.span.range()).is_some(), "{label:?}");
        sources.landmark(label.span);
    }
}

/// A file system with one file.
struct Rules {
    text: String,
    read: Option<FileId>,
}

impl Files for Rules {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        match path {
            "rules" => {
                Ok(*self.read.get_or_insert_with(|| sources.add("rules", self.text.as_str())))
            }
            _ => Err("there is no such file".into()),
        }
    }
}
