//! Mistakes in the files of a device, line by line: reading or the proof must find them.

use std::collections::BTreeMap;
use std::path::Path;

use codegen::File;
use compiler::partition::{Site, Trust, compile};
use compiler::prove::Verdict;
use ir::{NodeId, Span};

use crate::programs::chain;
use crate::targets::wires;

/// Chains that most mistakes are made in.
pub const CHAINS: &[&str] = &["p4/router", "p4/filter", "p4/vlans"];

/// A mistake: what it is called, how the names of files end that it is made in, and a line with it; nothing where the line
/// has no place for it.
pub type Mistake = (&'static str, &'static str, fn(&str) -> Option<String>);

/// A hexadecimal number behind words, changed.
pub fn change(line: &str, word: &str, how: impl Fn(u128) -> u128) -> Option<String> {
    let from = line.find(word)? + word.len();
    let rest = line[from..].strip_prefix("0x")?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    let number = u128::from_str_radix(&rest[..end], 16).ok()?;
    Some(format!("{}{:#x}{}", &line[..from], how(number), &rest[end..]))
}

/// A line with something else in the place of what stands there.
pub fn replace(line: &str, what: &str, by: &str) -> Option<String> {
    line.contains(what).then(|| line.replacen(what, by, 1))
}

/// Makes each mistake wherever there is a place for it, in chains for a target, and wants each to be found somewhere. The
/// file `beside` says the same as others; it is left out where it is not the one with the mistake.
pub fn are_found(
    target: &str,
    trust: &[Trust],
    chains: &[&str],
    mistakes: &[Mistake],
    beside: &str,
) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = codegen::target(target).unwrap();
    let mut found: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for name in chains {
        let (of, models) = chain(&root.join("filetests").join(name).with_extension("click"));
        let graph = &of.graph;
        let wires = wires(graph, &models);
        let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
        let site = Site::numbered(&wires, trust);
        let compiled = |files| compile(graph, &models, &wires, target, &site, &origin, files);
        let right = compiled(None).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(right.parts.iter().all(|part| part.proof.holds()), "{name}");
        for (mistake, ending, how) in mistakes {
            let mut files = right.files.clone();
            files.retain(|file| file.name != beside || *ending == beside);
            for at in (0..files.len()).filter(|&at| files[at].name.ends_with(ending)) {
                let text = std::str::from_utf8(&files[at].contents).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                for line in 0..lines.len() {
                    let Some(wrong) = how(lines[line]).filter(|wrong| wrong != lines[line]) else {
                        continue;
                    };
                    let mut lines = lines.clone();
                    lines[line] = &wrong;
                    let contents = (lines.join("\n") + "\n").into_bytes();
                    let mut files = files.clone();
                    files[at] = File { contents, ..files[at].clone() };
                    let is_found = match compiled(Some(files)) {
                        Err(_) => true,
                        // What is given up is not written either.
                        Ok(of) => of.parts.iter().any(|part| match &part.proof.together.verdict {
                            Verdict::Different(_) | Verdict::Unproven(_) => true,
                            Verdict::Equal => false,
                        }),
                    };
                    found.entry(mistake).or_default()[usize::from(!is_found)] += 1;
                }
            }
        }
    }
    for (mistake, ..) in mistakes {
        let is_found = found.get(mistake).is_some_and(|counts| counts[0] > 0);
        assert!(is_found, "{mistake}: nothing was found, of {found:?}");
    }
}
