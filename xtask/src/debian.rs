//! The Debian packages that tests need, listed in `debian-packages.txt`.

use std::fs;
use std::process::Command;

use crate::Result;
use crate::command::{self, root};

/// Installs what is missing where it can, and elsewhere says what to run.
pub(crate) fn install() -> Result {
    let list = fs::read_to_string(root().join("debian-packages.txt"))?;
    let wanted = names(&list);
    if wanted.is_empty() {
        println!("no packages are needed");
        return Ok(());
    }
    let Ok(output) =
        Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Status}\n"]).output()
    else {
        println!(
            "not a Debian system; the tests need what these packages hold: {}",
            wanted.join(" ")
        );
        return Ok(());
    };
    let missing = missing(&wanted, &String::from_utf8_lossy(&output.stdout));
    if missing.is_empty() {
        println!("all installed: {}", wanted.join(" "));
        return Ok(());
    }
    if !is_root() {
        println!("some tests will fail without these packages; to install them, run:");
        println!("  sudo apt-get install --yes {}", missing.join(" "));
        return Ok(());
    }
    command::run(apt_get().arg("update").arg("--quiet=2"))?;
    command::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(&missing))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// The names in the list: the first word of each line, up to a `#`.
fn names(list: &str) -> Vec<&str> {
    list.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next()).collect()
}

/// Those of `wanted` that dpkg's `name status` lines do not show as installed.
fn missing<'a>(wanted: &[&'a str], statuses: &str) -> Vec<&'a str> {
    let installed = |name: &&str| {
        statuses.lines().any(|line| {
            line.split_once(' ').is_some_and(|(n, s)| n == *name && s == "install ok installed")
        })
    };
    wanted.iter().copied().filter(|name| !installed(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_remark() {
        assert_eq!(names("# all\n\ntcpdump # reads captures\n  dot\n"), ["tcpdump", "dot"]);
    }

    #[test]
    fn a_removed_package_is_missing() {
        let statuses = "tcpdump install ok installed\ndot deinstall ok config-files\n";
        assert_eq!(missing(&["tcpdump", "dot", "jq"], statuses), ["dot", "jq"]);
    }
}
