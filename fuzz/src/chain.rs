//! Whole configurations: names, compounds, ports, arguments.

use elements::configure::Files;
use ir::{FileId, Sources, has_errors};

/// Elaboration and the elements' arguments: every configuration is a chain or a list of errors.
pub fn chain(data: &[u8]) {
    let mut sources = Sources::new();
    let file = sources.add("fuzz.click", String::from_utf8_lossy(data));
    let options = compiler::Options {
        variables: vec![("given".into(), "1, $given".into())],
        devices: vec![compiler::Device {
            name: "given".into(),
            class: "{ Idle -> output }".into(),
        }],
        ..compiler::Options::default()
    };
    elaborate(&mut sources, file, &options, &mut OneFile { rules: None });
}

/// Elaborates a configuration: it is made, or what is said against it has a place.
pub(crate) fn elaborate(
    sources: &mut Sources,
    file: FileId,
    options: &compiler::Options,
    files: &mut dyn Files,
) {
    let (chain, mut diagnostics) = compiler::elaborate(sources, file, options, files);
    let made = chain.is_some_and(|chain| {
        compiler::instantiate(&chain, sources, files, &mut diagnostics).is_some()
    });
    assert!(made || has_errors(&diagnostics), "nothing is said against it: {diagnostics:?}");
    for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
        assert!(sources.text(label.span.file).get(label.span.range()).is_some(), "{label:?}");
        sources.landmark(label.span);
    }
}

/// A file system with the configuration itself, as `self`, and one other file.
struct OneFile {
    rules: Option<FileId>,
}

impl Files for OneFile {
    fn read(&mut self, sources: &mut Sources, from: FileId, path: &str) -> Result<FileId, String> {
        match path {
            "self" => Ok(from),
            "rules" => Ok(*self.rules.get_or_insert_with(|| {
                sources
                    .add("rules", "allow src 10.0.0.0/8\n@1.2.3.4/32 0.0.0.0/0 0 : 65535\n# x\nall")
            })),
            _ => Err("there is no such file".into()),
        }
    }
}
