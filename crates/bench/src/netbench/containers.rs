//! Containers of a test, as arrays of a shell: the file of Ara's framework (listing 4.1, table 4.3).
//!
//! ```text
//! LXC_CONT_NAMES=( c0 c1 )
//! LXC_CONT_MACS=( 02:00:00:00:00:10 02:00:00:00:00:11 )
//! LXC_CONT_IPS=( 10.0.3.10 10.0.3.11 )
//! LXC_CONT_OTHER_IPS=( 10.0.3.11 10.0.3.10 )
//! LXC_CONT_OTHER_MACS=( 02:00:00:00:00:11 02:00:00:00:00:10 )
//! LXC_CONT_CMDNAMES=( send recv )
//! ```

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::str::FromStr;

use ir::{Diagnostic, FileId, Span, nearest};
use net::wire::EtherAddr;
use serde::{Deserialize, Serialize};

use super::application::Role;

/// An application in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its IP address.
    pub ip: Ipv4Addr,
    /// Its MAC address.
    pub mac: String,
    /// What its application does.
    pub role: Role,
}

/// The begin of all names.
const PREFIX: &str = "LXC_CONT_";
/// Arrays that say what is to be done.
const USED: [&str; 6] = ["NAMES", "MACS", "IPS", "OTHER_IPS", "OTHER_MACS", "CMDNAMES"];
/// Arrays about devices and sockets, which Catena makes itself.
const UNUSED: [&str; 4] = ["VFS", "NMASKS", "VFPCIS", "SOCKS"];

/// Whether a text is such a file, and not a test set.
pub fn is_listing(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(PREFIX))
}

/// Words of arrays, with their places.
struct Arrays<'a> {
    file: FileId,
    /// Bytes of the text.
    length: usize,
    all: BTreeMap<&'a str, Vec<(&'a str, usize)>>,
    found: Vec<Diagnostic>,
}

impl<'a> Arrays<'a> {
    fn wrong(&mut self, at: usize, length: usize, message: String) -> &mut Diagnostic {
        let span = Span::new(self.file, at, (at + length).min(self.length));
        self.found.push(Diagnostic::error("containers", message).label(span, ""));
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn read(file: FileId, text: &'a str) -> Self {
        let mut arrays = Self { file, length: text.len(), all: BTreeMap::new(), found: Vec::new() };
        // The array that is open: its name, unless nobody wants it.
        let mut open: Option<(Option<&'a str>, usize)> = None;
        let mut line_begin = 0;
        for line in text.split_inclusive('\n') {
            let begin = line_begin;
            line_begin += line.len();
            let code = line.find('#').map_or(line, |at| &line[..at]);
            let mut rest = code;
            let at = |rest: &str| begin + (rest.as_ptr() as usize - line.as_ptr() as usize);
            loop {
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                let Some((name, _)) = open else {
                    let end =
                        rest.find("=(").filter(|end| !rest[..*end].contains(char::is_whitespace));
                    let Some(end) = end else {
                        let length = rest.trim_end().len();
                        let what = "an array such as `LXC_CONT_NAMES=( c0 c1 )` is expected here";
                        arrays.wrong(at(rest), length, what.into());
                        break;
                    };
                    open = Some((arrays.name(&rest[..end], at(rest)), at(rest)));
                    rest = &rest[end + 2..];
                    continue;
                };
                if let Some(after) = rest.strip_prefix(')') {
                    (open, rest) = (None, after);
                    continue;
                }
                let end = rest.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(rest.len());
                let word = rest[..end].trim_matches(['"', '\'']);
                if let Some(name) = name {
                    arrays.all.entry(name).or_default().push((word, at(rest)));
                }
                rest = &rest[end..];
            }
        }
        if let Some((_, at)) = open {
            arrays.wrong(at, 1, "this array has no `)`".into());
        }
        arrays
    }

    /// What an array is called without its prefix, if somebody wants it.
    fn name(&mut self, full: &'a str, at: usize) -> Option<&'a str> {
        let known = || USED.iter().chain(&UNUSED);
        let name = full.strip_prefix(PREFIX).filter(|name| known().any(|known| known == name));
        if name.is_none() {
            let names: Vec<String> = known().map(|name| format!("{PREFIX}{name}")).collect();
            let near = nearest(full, names.iter().map(String::as_str));
            let help =
                near.map_or_else(|| names.join(", "), |near| format!("did you mean {near}?"));
            let error = self.wrong(at, full.len(), format!("there is no array '{full}'"));
            *error = error.clone().help(help);
        }
        name.filter(|name| USED.contains(name))
    }

    /// A word as something else; what it is not, if it is not.
    fn value<T: FromStr>(&mut self, array: &str, number: usize, what: &str) -> Option<T> {
        let (word, at) = *self.all.get(array)?.get(number)?;
        let value = word.parse().ok();
        if value.is_none() {
            self.wrong(at, word.len(), format!("'{word}' is no {what}"));
        }
        value
    }
}

/// Reads a file: the containers of pairs, two of a pair one after the other, the one that sends or asks first; and remarks
/// about what is left out.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(file: FileId, text: &str) -> Result<(Vec<Container>, Vec<String>), Vec<Diagnostic>> {
    let mut arrays = Arrays::read(file, text);
    let count = arrays.all.get("NAMES").map_or(0, Vec::len);
    for name in USED {
        let has = arrays.all.get(name).map_or(0, Vec::len);
        if has != count || count == 0 {
            let at = arrays.all.get(name).and_then(|words| words.first()).map_or(0, |word| word.1);
            let message = match has {
                0 => format!("there is no value in {PREFIX}{name}"),
                _ => format!("{PREFIX}{name} has {has} values, and {PREFIX}NAMES has {count}"),
            };
            arrays.wrong(at, 1, message);
        }
    }
    if !arrays.found.is_empty() {
        return Err(arrays.found);
    }
    let mut all = Vec::new();
    for number in 0..count {
        let name = arrays.all["NAMES"][number].0.to_string();
        let own: (Option<Ipv4Addr>, Option<EtherAddr>) = (
            arrays.value("IPS", number, "IPv4 address"),
            arrays.value("MACS", number, "MAC address"),
        );
        let other: (Option<Ipv4Addr>, Option<EtherAddr>) = (
            arrays.value("OTHER_IPS", number, "IPv4 address"),
            arrays.value("OTHER_MACS", number, "MAC address"),
        );
        let role = arrays.value("CMDNAMES", number, "application: send, recv, client or server");
        if let ((Some(ip), Some(mac)), (Some(other), Some(other_mac)), Some(role)) =
            (own, other, role)
        {
            let container = Container { name, ip, mac: mac.to_string(), role };
            all.push((container, other, other_mac.to_string()));
        }
    }
    let same = |arrays: &mut Arrays<'_>, array: &str, number: usize, what: &str| {
        let (word, at) = arrays.all[array][number];
        if arrays.all[array][..number].iter().any(|(other, _)| *other == word) {
            arrays.wrong(at, word.len(), format!("two containers have the {what} {word}"));
        }
    };
    for number in 0..count {
        same(&mut arrays, "NAMES", number, "name");
        same(&mut arrays, "IPS", number, "IP address");
        same(&mut arrays, "MACS", number, "MAC address");
    }
    if !arrays.found.is_empty() {
        return Err(arrays.found);
    }
    let (mut pairs, mut remarks) = (Vec::new(), Vec::new());
    for (number, (container, other, other_mac)) in all.iter().enumerate() {
        let Some(peer) = all.iter().find(|(peer, ..)| peer.ip == *other) else {
            let name = &container.name;
            remarks.push(format!("{name} is left out: {other} is no container of this host"));
            continue;
        };
        let (at, length) =
            (arrays.all["OTHER_IPS"][number].1, arrays.all["OTHER_IPS"][number].0.len());
        let name = |container: &Container| container.name.clone();
        if peer.0.mac != *other_mac {
            let (word, at) = arrays.all["OTHER_MACS"][number];
            let message = format!("the MAC address of {} is {}", name(&peer.0), peer.0.mac);
            arrays.wrong(at, word.len(), message);
        } else if peer.1 != container.ip {
            let message = format!(
                "{} is the other of {}, and not in reverse",
                name(&peer.0),
                name(container)
            );
            arrays.wrong(at, length, message);
        } else if peer.0.role != container.role.peer() {
            let (word, at) = arrays.all["CMDNAMES"][number];
            let message = format!("the other of '{word}' is to be '{}'", container.role.peer());
            arrays.wrong(at, word.len(), message);
        } else if container.role.is_active() {
            pairs.extend([container.clone(), peer.0.clone()]);
        }
    }
    if arrays.found.is_empty() && pairs.is_empty() {
        arrays.wrong(0, 1, "there is no pair of containers of this host".into());
    }
    if arrays.found.is_empty() { Ok((pairs, remarks)) } else { Err(arrays.found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three containers, of which one speaks with another host.
    const THREE: &str = "\
# Two here, and one whose peer is elsewhere.
LXC_CONT_NAMES=(
    a b
    c )
LXC_CONT_VFS=( v0 v1 v2 )
LXC_CONT_MACS=( 02:00:00:00:01:00 02:00:00:00:01:01 \"02:00:00:00:01:02\" )
LXC_CONT_IPS=(192.0.2.1 192.0.2.2 192.0.2.3)
LXC_CONT_SOCKS=( s0 s1 s2 )
LXC_CONT_OTHER_IPS=( 192.0.2.2 192.0.2.1 192.0.2.9 )
LXC_CONT_OTHER_MACS=( 02:00:00:00:01:01 02:00:00:00:01:00 02:00:00:00:01:09 ) # who they speak with
LXC_CONT_CMDNAMES=( recv send send )
";

    #[test]
    fn pairs_begin_with_who_sends_and_others_are_left_out() {
        assert!(is_listing(THREE) && !is_listing("kind: TestSet\n"));
        let (pairs, remarks) = parse(FileId(0), THREE).unwrap();
        let names: Vec<(&str, Role)> = pairs.iter().map(|c| (c.name.as_str(), c.role)).collect();
        assert_eq!(names, [("b", Role::Send), ("a", Role::Recv)]);
        assert_eq!(
            (pairs[0].ip, pairs[0].mac.as_str()),
            (Ipv4Addr::new(192, 0, 2, 2), "02:00:00:00:01:01")
        );
        assert_eq!(remarks, ["c is left out: 192.0.2.9 is no container of this host"]);
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (from, to, expected) in [
            (
                "192.0.2.1 192.0.2.2 192.0.2.3",
                "192.0.2.1 192.0.2.256 192.0.2.3",
                "'192.0.2.256' is no IPv4",
            ),
            ("192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.1 192.0.2.2", "LXC_CONT_IPS has 2 values"),
            (
                "192.0.2.1 192.0.2.2 192.0.2.3",
                "192.0.2.1 192.0.2.1 192.0.2.3",
                "two containers have the IP",
            ),
            ("recv send send", "recv client send", "the other of 'recv' is to be 'send'"),
            ("recv send send", "recv sned send", "'sned' is no application"),
            (
                "02:00:00:00:01:01 02:00:00:00:01:00 02",
                "02:00:00:00:01:01 02:00:00:00:01:07 02",
                "the MAC address of a is",
            ),
            ("192.0.2.2 192.0.2.1 192.0.2.9", "192.0.2.2 192.0.2.3 192.0.2.1", "not in reverse"),
            ("LXC_CONT_NAMES=(", "LXC_CONT_NAME=(", "there is no array 'LXC_CONT_NAME'"),
            ("LXC_CONT_NAMES=(", "", "an array such as"),
            ("send send )", "send send", "this array has no `)`"),
            (
                "192.0.2.2 192.0.2.1 192.0.2.9",
                "192.0.2.7 192.0.2.8 192.0.2.9",
                "no pair of containers",
            ),
        ] {
            assert!(THREE.contains(from), "{from}");
            let text = THREE.replacen(from, to, 1);
            let found = parse(FileId(0), &text).unwrap_err();
            assert!(found[0].message.contains(expected), "{to}: {found:?}");
            assert!(found[0].span().unwrap().end as usize <= text.len());
        }
        assert!(parse(FileId(0), "").is_err());
    }
}
