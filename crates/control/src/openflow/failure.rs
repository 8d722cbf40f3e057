//! Why a switch is not reached, or refuses what it is given: in words, with what to do.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use codegen::openflow::codec;

use super::{Foreign, Mark};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody is reached there.
    Unreachable(ErrorKind, String),
    /// The connection broke off.
    Closed,
    /// No answer came in this time, to what.
    Silent(Duration, &'static str),
    /// What the peer sends is no OpenFlow 1.3.
    Malformed(String),
    /// The switch speaks other versions: those that it names.
    Version(Vec<u8>),
    /// The switch refuses something; nothing was changed.
    Refused(Refusal),
    /// An entry of others stands where one of the chain's has to stand; nothing was changed.
    Taken(Box<Foreign>),
    /// The connection broke off when all was sent and nothing was confirmed: the switch has what it had, or what it was sent.
    Unconfirmed,
}

/// What a switch refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked of it.
    pub what: String,
    /// The number of the entry, from 1, of how many, what it is and where it comes from.
    pub entry: Option<(usize, usize, String, Arc<str>)>,
    /// What it says.
    pub error: codec::Error,
    /// The entries that a table has room for, if that is what lacks.
    pub room: Option<u32>,
}

/// What an error says (OpenFlow 1.3 §7.4.4), and what to do.
fn words(kind: u16, code: u16) -> (&'static str, &'static str) {
    match (kind, code) {
        (0, 0) => ("no version in common", "ovs-vsctl set bridge BRIDGE protocols=OpenFlow13"),
        (0, 1) | (1, 5) | (2, 6) | (3, 7) | (4, 11) | (5, 4) => (
            "permission denied",
            "the connection may only read: connect to the bridge's management socket as root",
        ),
        (1, 2) => ("it does not know this kind of statistics", "take a switch with OpenFlow 1.3"),
        (1, 3) | (1, 4) => (
            "it does not know bundles",
            "without ONF's extension 230 no change is all or nothing: load what `catena compile` writes by the switch's own tools",
        ),
        (1, 10) => ("it is a slave of another controller", "make Catena's connection the master"),
        (2, 4) => {
            ("there is no such port", "the topology's port numbers have to be those of the switch")
        }
        (2, _) => ("it does not take one of the actions", "try `target: openflow` in the topology"),
        (3, _) => {
            ("it does not take one of the instructions", "try `target: openflow` in the topology")
        }
        (4, 6) => ("it does not know one of the fields", "try `target: openflow` in the topology"),
        (4, 8) => (
            "it matches one of the fields by whole numbers only",
            "try `target: openflow` in the topology",
        ),
        (4, 9) => (
            "a field lacks the one that says that it is there",
            "try `target: openflow` in the topology",
        ),
        (4, _) => ("it does not take one of the matches", "try `target: openflow` in the topology"),
        (5, 1) => ("the table is full", "remove entries of others, or leave more to cores"),
        (5, 2) => ("it has no such table", "try a switch with more tables"),
        (5, 3) => ("an entry of others overlaps", "remove it"),
        (5, _) => ("it cannot do that to entries", "`catena offload --status` shows what it has"),
        (0xffff, 2301) => ("bundles are not permitted", "connect as root"),
        (0xffff, 2303..=2306) => ("it does not keep such bundles", "try again"),
        (0xffff, 2312) => ("the bundle is too large", "leave more to cores"),
        (0xffff, 2313) => ("an entry in the bundle was refused", "`ovs-vswitchd`'s log shows more"),
        (0xffff, 2314) => ("the bundle waited too long", "try again"),
        (0xffff, 2315) => ("another bundle is being committed", "try again"),
        _ => ("it does not say why in words", "the switch's log may say more"),
    }
}

impl Refusal {
    /// What the error says, and what to do.
    pub fn words(&self) -> (&'static str, &'static str) {
        words(self.error.kind, self.error.code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (why, mend) = self.words();
        let codec::Error { kind, code, .. } = self.error;
        write!(f, "the switch refuses {}", self.what)?;
        if let Some((number, of, entry, origin)) = &self.entry {
            write!(f, ": entry {number} of {of}, of {origin}: {why}")?;
            if let Some(room) = self.room {
                write!(f, ", it has room for {room} entries")?;
            }
            return write!(
                f,
                " (OpenFlow error type {kind}, code {code})\n  {entry}\nnothing was changed; {mend}"
            );
        }
        write!(f, ": {why} (OpenFlow error type {kind}, code {code}); nothing was changed; {mend}")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreachable(kind, why) => {
                let mend = match kind {
                    ErrorKind::NotFound => {
                        "there is no such socket: is ovs-vswitchd running, and does the bridge have this name?"
                    }
                    ErrorKind::PermissionDenied => {
                        "no permission: only root may change what a bridge does; run it with sudo"
                    }
                    ErrorKind::ConnectionRefused => {
                        "nobody listens there: is ovs-vswitchd running? A bridge listens after `ovs-vsctl set-controller BRIDGE ptcp:6653`"
                    }
                    ErrorKind::TimedOut | ErrorKind::WouldBlock => "nobody answers there",
                    _ => return write!(f, "the switch is not reached: {why}"),
                };
                f.write_str(mend)
            }
            Failure::Closed => f.write_str("the switch closed the connection; nothing was changed"),
            Failure::Silent(patience, what) => {
                write!(f, "the switch did not answer {what} within {} s; nothing was changed", patience.as_secs())
            }
            Failure::Malformed(why) => {
                write!(f, "what answers there does not speak OpenFlow 1.3: {why}; nothing was changed")
            }
            Failure::Version(theirs) => {
                let theirs: Vec<String> = theirs.iter().map(|version| match version {
                    1 => "1.0".to_string(),
                    n => format!("1.{}", n - 1),
                }).collect();
                write!(
                    f,
                    "the switch speaks OpenFlow {}, not 1.3: `ovs-vsctl set bridge BRIDGE protocols=OpenFlow13,…` adds it",
                    if theirs.is_empty() { "of other versions".to_string() } else { theirs.join(", ") },
                )
            }
            Failure::Refused(refusal) => write!(f, "{refusal}"),
            Failure::Taken(foreign) => {
                let (whose, mend) = match Mark::is_any_on(foreign.stats.flow.cookie) {
                    true => ("another chain's", "`catena offload --remove` of that chain takes it away"),
                    false => ("others'", "`ovs-ofctl --strict del-flows` takes it away"),
                };
                write!(
                    f,
                    "an entry of {whose} stands where {} has to stand:\n  {}\nnothing was changed; {mend}",
                    foreign.meets.origin, foreign.stats.flow
                )
            }
            Failure::Unconfirmed => f.write_str(
                "the connection broke off before the switch confirmed: it has either what it had or all of what is new; \
                 `catena offload --status` shows which",
            ),
        }
    }
}

impl std::error::Error for Failure {}
