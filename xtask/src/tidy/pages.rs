//! Rules about texts: links lead somewhere, and nothing names the machine it was written on.

use super::rules::{MACHINE_PATHS, THIS_FILE};
use super::tree::Tree;
use super::{Finding, at};

/// Links between the repository's pages lead somewhere.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in
            prose(text).flat_map(|(line, text)| targets(text).map(move |t| (line, t)))
        {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let Some(file) = resolve(path, file) else {
                found.push(at(path, line, format!("`{target}` leads out of the repository")));
                continue;
            };
            if !tree.holds(&file) {
                found.push(at(path, line, format!("`{target}` leads nowhere")));
            } else if !anchor.is_empty()
                && tree.text(&file).is_some_and(|text| !headings(text).any(|slug| slug == anchor))
            {
                found.push(at(path, line, format!("`{target}`: {file} has no such heading")));
            }
        }
    }
    found
}

/// Every page of `docs/` is a chapter of the book.
pub(super) fn chapters(tree: &Tree) -> Vec<Finding> {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let summary = tree.text(SUMMARY).unwrap_or_default();
    let chapters: Vec<String> =
        summary.lines().flat_map(targets).filter_map(|target| resolve(SUMMARY, target)).collect();
    let is_page = |path: &str| {
        path.strip_prefix("docs/").is_some_and(|name| name.ends_with(".md") && !name.contains('/'))
    };
    let pages = tree.texts().map(|(path, _)| path).filter(|path| is_page(path) && *path != SUMMARY);
    pages
        .filter(|page| !chapters.iter().any(|chapter| chapter == page))
        .map(|page| at(page, 0, format!("is no chapter of {SUMMARY}")))
        .collect()
}

/// The changelog has a place for the next change.
pub(super) fn changelog(tree: &Tree) -> Vec<Finding> {
    let has = |text: &str| text.lines().any(|line| line == "## [Unreleased]");
    if tree.text("CHANGELOG.md").is_some_and(has) {
        return Vec::new();
    }
    vec![at("CHANGELOG.md", 0, "needs a heading `## [Unreleased]`")]
}

/// No text names a path of the machine it was written on.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| *path != THIS_FILE) {
        for (number, line) in text.lines().enumerate() {
            for start in MACHINE_PATHS {
                let absolute = line.match_indices(start).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || "._-/$}".contains(c))
                });
                if absolute {
                    found.push(at(
                        path,
                        number + 1,
                        format!("names `{start}…`, a path of one machine"),
                    ));
                }
            }
        }
    }
    found
}

/// The lines of a page that are not code, numbered from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().map(|(number, line)| (number + 1, line)).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// What the links of a line point at: `[text](target)` and `[name]: target`.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline.chain(defined.map(|(_, target)| target.trim()))
}

/// A link's path from the root; `None` when it leads out of the repository.
pub(crate) fn resolve(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors that a page's headings make.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| line.strip_prefix('#')).map(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let page = "[a](b.md) [b](../LICENSE) [c](c.md)\n```\n[d](d.md)\n```\n\
                    ![e](../../e.svg) [f](https://example.org/f)\n[g]: b.md#a-part-of-b\n[h](b.md#h) [i](#Title)\n[j](../docs/)\n";
        let tree = Tree::of(&[
            ("docs/a.md", page),
            ("docs/b.md", "# B\n\n## A part, of *B*!\n"),
            ("LICENSE", ""),
        ]);
        assert_eq!(
            messages(links(&tree)),
            [
                "docs/a.md:1: `c.md` leads nowhere",
                "docs/a.md:5: `../../e.svg` leads out of the repository",
                "docs/a.md:7: `b.md#h`: docs/b.md has no such heading",
                "docs/a.md:7: `#Title`: docs/a.md has no such heading",
            ]
        );
    }

    #[test]
    fn pages_are_chapters() {
        let tree = Tree::of(&[
            ("docs/SUMMARY.md", "# B\n\n- [A](a.md)\n"),
            ("docs/a.md", "# A\n"),
            ("docs/b.md", "# B\n"),
            ("docs/decisions/0001-c.md", "# C\n"),
        ]);
        assert_eq!(messages(chapters(&tree)), ["docs/b.md: is no chapter of docs/SUMMARY.md"]);
    }

    #[test]
    fn the_changelog_awaits_changes() {
        assert!(changelog(&Tree::of(&[("CHANGELOG.md", "# C\n\n## [Unreleased]\n")])).is_empty());
        assert_eq!(changelog(&Tree::of(&[("CHANGELOG.md", "# C\n")])).len(), 1);
        assert_eq!(changelog(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for start in MACHINE_PATHS {
            let text = format!("x\nsee {start}me/x\n");
            assert!(
                messages(machine_paths(&Tree::of(&[("a.toml", &text)])))[0].starts_with("a.toml:2")
            );
            let url = format!("https://example.org{start}x");
            assert!(machine_paths(&Tree::of(&[("a.md", &url)])).is_empty());
        }
    }
}
