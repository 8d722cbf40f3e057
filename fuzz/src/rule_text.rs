//! Lists of rules that elements read from files.

use elements::configure::Files;
use ir::{FileId, Sources};

use crate::chain;

/// What `iptables-save` and `nft list ruleset` print, strictly and with what cannot be read left out.
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

/// Configures an element that reads the file `rules`.
fn configure(element: &str, data: &[u8]) {
    let mut sources = Sources::new();
    let file = sources.add("fuzz.click", format!("Idle -> {element} -> Discard;"));
    let mut files = Rules { text: String::from_utf8_lossy(data).into_owned(), read: None };
    chain::elaborate(&mut sources, file, &compiler::Options::default(), &mut files);
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
