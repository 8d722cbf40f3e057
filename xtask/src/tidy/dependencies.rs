//! The rules of `deny.toml` that need no tool: licences, banned packages, sources.

use serde_json::Value;
use spdx::{Expression, ParseMode};
use toml::Table;

use super::tree::Tree;
use super::{Finding, at};
use crate::Result;
use crate::command::{self, cargo};

const RULES: &str = "deny.toml";

/// Every dependency, whatever the platform and features, has an allowed licence and source.
pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let rules: Table = tree.text(RULES).ok_or("deny.toml is missing")?.parse()?;
    let metadata = command::read(&mut cargo(["metadata", "--format-version=1", "--all-features"]))?;
    judge(&rules, &serde_json::from_str(&metadata)?)
}

fn judge(rules: &Table, metadata: &Value) -> Result<Vec<Finding>> {
    let list = |section: &str, key: &str| -> Vec<toml::Value> {
        let list = rules.get(section).and_then(|section| section.get(key)?.as_array());
        list.cloned().unwrap_or_default()
    };
    let licences = list("licenses", "allow");
    let licences: Vec<&str> = licences.iter().filter_map(toml::Value::as_str).collect();
    let registries = list("sources", "allow-registry");
    let registries: Vec<&str> = registries.iter().filter_map(toml::Value::as_str).collect();
    let banned = list("bans", "deny");
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().ok_or("cargo metadata lists no packages")? {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            None => found.push(at(RULES, 0, format!("`{name}` names no licence"))),
            Some(licence) if !allowed(licence, &licences) => {
                found.push(at(RULES, 0, format!("`{name}`: licence `{licence}` is not allowed")));
            }
            Some(_) => {}
        }
        if let Some(source) = package["source"].as_str()
            && !registries.iter().any(|registry| source.strip_prefix("registry+") == Some(registry))
        {
            found.push(at(RULES, 0, format!("`{name}` comes from `{source}`")));
        }
        // Who may depend on one that others may not, `cargo xtask deny` sees.
        for ban in banned.iter().filter(|ban| {
            ban.get("crate").and_then(|c| c.as_str()) == Some(name) && ban.get("wrappers").is_none()
        }) {
            let instead = ban.get("reason").and_then(|reason| reason.as_str()).unwrap_or("banned");
            found.push(at(RULES, 0, format!("`{name}` is banned: {instead}")));
        }
    }
    Ok(found)
}

/// Whether an SPDX expression can be met with the allowed licences.
fn allowed(expression: &str, licences: &[&str]) -> bool {
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|wanted| {
            let id = wanted.license.id();
            wanted.addition.is_none() && id.is_some_and(|id| licences.contains(&id.name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn licence_expressions_are_met_or_not() {
        let licences = ["MIT", "Apache-2.0", "Unicode-3.0"];
        for good in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert!(allowed(good, &licences), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND NCSA", "Apache-2.0 WITH LLVM-exception", "no licence", ""] {
            assert!(!allowed(bad, &licences), "{bad}");
        }
    }

    #[test]
    fn packages_are_judged_by_licence_source_and_name() {
        let rules: Table = "licenses.allow = ['MIT']\nsources.allow-registry = ['https://r']\n\
                            bans.deny = [{ crate = 'c', reason = 'std has it' }]"
            .parse()
            .unwrap();
        let metadata = serde_json::json!({ "packages": [
            { "name": "own", "license": "MIT", "source": null },
            { "name": "a", "license": "MIT", "source": "registry+https://r" },
            { "name": "b", "license": null, "source": "git+https://r" },
            { "name": "c", "license": "GPL-2.0", "source": "registry+https://r" },
        ]});
        assert_eq!(
            messages(judge(&rules, &metadata).unwrap()),
            [
                "deny.toml: `b` names no licence",
                "deny.toml: `b` comes from `git+https://r`",
                "deny.toml: `c`: licence `GPL-2.0` is not allowed",
                "deny.toml: `c` is banned: std has it",
            ]
        );
    }
}
