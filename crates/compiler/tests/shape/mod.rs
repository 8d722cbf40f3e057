//! What the tests of this folder have in common: files in memory and on disk, and text for
//! diagnostics.
#![allow(dead_code)] // Each test uses its part.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use catena_compiler::{Chain, Device, Options, elaborate};
use elements::configure::Files;
use ir::{Diagnostic, FileId, Port, Processing, Sources};

/// Files that exist only in a test.
#[derive(Default)]
pub(crate) struct Memory {
    texts: HashMap<String, String>,
    ids: HashMap<String, FileId>,
}

impl Memory {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let texts = files.iter().map(|&(n, t)| (n.to_owned(), t.to_owned())).collect();
        Memory { texts, ids: HashMap::new() }
    }
}

impl Files for Memory {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        if let Some(&id) = self.ids.get(path) {
            return Ok(id);
        }
        let text = self.texts.get(path).ok_or("No such file or directory")?;
        let id = sources.add(path, text.as_str());
        self.ids.insert(path.to_owned(), id);
        Ok(id)
    }
}

/// Files beside the one that names them.
pub(crate) struct Folder {
    root: PathBuf,
    ids: HashMap<PathBuf, FileId>,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Self {
        Folder { root: root.to_owned(), ids: HashMap::new() }
    }
}

impl Files for Folder {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        let path = self.root.join(path);
        if let Some(&id) = self.ids.get(&path) {
            return Ok(id);
        }
        let text = std::fs::read_to_string(&path).map_err(|why| why.to_string())?;
        let id = sources.add(path.display().to_string(), text);
        self.ids.insert(path, id);
        Ok(id)
    }
}

/// The chain of a text, with what is said about it.
pub(crate) fn chain(text: &str) -> (Option<Chain>, Vec<String>) {
    chain_with(text, &[], &[])
}

/// The chain of a text with libraries and variables.
pub(crate) fn chain_with(
    text: &str,
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
) -> (Option<Chain>, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("t", text);
    let options = Options {
        variables: variables.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect(),
        ..Options::default()
    };
    let (chain, diagnostics) = elaborate(&mut sources, file, &options, &mut Memory::of(files));
    (chain, diagnostics.iter().map(|d| show(&sources, d)).collect())
}

/// The chain of a text that is right, with devices.
pub(crate) fn on_devices(text: &str, devices: &[&str]) -> Chain {
    let mut sources = Sources::new();
    let file = sources.add("t", text);
    let device = |name: &&str| Device {
        name: name.to_string(),
        class: format!("{{ FromDevice({name}) -> output; input -> ToDevice({name}) }}"),
    };
    let devices = devices.iter().map(device).collect();
    let options = Options { devices, ..Options::default() };
    let (chain, found) = elaborate(&mut sources, file, &options, &mut Memory::default());
    let said: Vec<String> = found.iter().map(|d| show(&sources, d)).collect();
    assert_eq!(said, Vec::<String>::new(), "in {text}");
    chain.expect("there are no errors")
}

/// The chain of a text that is right.
pub(crate) fn good(text: &str) -> Chain {
    let (chain, said) = chain(text);
    assert_eq!(said, Vec::<String>::new(), "in {text}");
    chain.expect("there are no errors")
}

/// `error[code] t:1 message | t:2 label | help: …`
pub(crate) fn show(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let mut text = format!("{}[{}]", diagnostic.severity, diagnostic.code);
    for (index, label) in diagnostic.labels.iter().enumerate() {
        let place = sources.landmark(label.span);
        text += &if index == 0 {
            format!(" {place}: {}", diagnostic.message)
        } else {
            format!(" | {place}")
        };
        let under = sources.slice(label.span).replace('\n', " ");
        text += &format!(" `{under}`");
        if !label.message.is_empty() {
            text += &format!(" {}", label.message);
        }
    }
    if let Some(help) = &diagnostic.help {
        text += &format!(" | help: {help}");
    }
    text
}

/// `name :: Class(config)` for each element.
pub(crate) fn elements(chain: &Chain) -> Vec<String> {
    let nodes = chain.graph.nodes.iter();
    nodes
        .map(|n| match n.config.as_str() {
            "" => format!("{} :: {}", n.name, n.class),
            config => format!("{} :: {}({config})", n.name, n.class),
        })
        .collect()
}

/// `a [0] -> [1] b` for each edge, `=>` standing for pull.
pub(crate) fn edges(chain: &Chain) -> Vec<String> {
    let nodes = &chain.graph.nodes;
    let edges = chain.graph.edges.iter();
    edges
        .map(|e| {
            let Port { node: from, port: output } = e.from;
            let Port { node: to, port: input } = e.to;
            let arrow = match nodes[from].outputs[output] {
                Processing::Pull => "=>",
                _ => "->",
            };
            let name = |node: usize, port: usize| match port {
                0 => nodes[node].name.clone(),
                port => format!("{}[{port}]", nodes[node].name),
            };
            format!("{} {arrow} {}", name(from, output), name(to, input))
        })
        .collect()
}

/// Fails unless two chains have the same elements and connections.
pub(crate) fn assert_same(a: &Chain, b: &Chain) {
    let sorted = |chain: &Chain| {
        let mut edges = edges(chain);
        edges.sort();
        edges
    };
    assert_eq!(elements(a), elements(b));
    assert_eq!(sorted(a), sorted(b));
}
