//! What the host launcher and netbench are given: manifests, test sets, files of containers, and results.

use std::path::PathBuf;

use bench::netbench::results::Results;
use bench::netbench::test_set::TestSet;
use bench::netbench::{advice::Pattern, containers};
use host::HostChain;
use host::manifest::Files;
use ir::{Diagnostic, FileId};

/// Errors stand within the text.
fn within(text: &str, found: &[Diagnostic]) {
    assert!(!found.is_empty(), "it is refused without a reason");
    for error in found {
        assert!(error.span().is_none_or(|at| at.end as usize <= text.len()), "{error:?}");
    }
}

/// Whatever a manifest names is there.
struct Any;

impl Files for Any {
    fn text(&mut self, _: &str) -> Result<String, String> {
        Ok("input -> output".into())
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        Some(name.to_string())
    }

    fn program(&mut self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }

    fn image(&mut self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

/// A manifest of a host chain.
pub fn host_chain(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(found) = HostChain::parse(FileId(0), &text, &mut Any) {
        within(&text, &found);
    }
}

/// What a server of Redis says to the host service, and an address of one.
pub fn redis(data: &[u8]) {
    let count = host::state::count_replies(data);
    assert!(count <= data.len());
    let text = String::from_utf8_lossy(data);
    let _ = host::state::Server::parse(&text);
    assert_eq!(host::state::without_passwords(&text).len(), text.len());
}

/// A test set of netbench.
pub fn test_set(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match TestSet::parse(FileId(0), &text, (2, false)) {
        Ok(set) => assert!(set.sets.iter().all(|set| set.cells(2).is_ok())),
        Err(found) => within(&text, &found),
    }
}

/// A file of containers.
pub fn containers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match containers::parse(FileId(0), &text) {
        Ok((pairs, _)) => {
            assert!(
                !pairs.is_empty()
                    && pairs.chunks(2).all(|pair| {
                        matches!(pair, [a, b] if a.role.is_active() && b.role == a.role.peer())
                    })
            );
        }
        Err(found) => within(&text, &found),
    }
}

/// Results of netbench: whatever they hold, they can be shown.
pub fn results(data: &[u8]) {
    let Ok(results) = Results::read(&String::from_utf8_lossy(data)) else { return };
    let _ = (results.render(), results.csv(), results.page("csv", "json"), results.costs());
    let _ = results.recommended(&Pattern { pairs: 1, size: 64, p99: None });
    let _ = results.markdown("page", &[]);
}
