//! Why programs are not attached: in words, with what to do.

use std::fmt;
use std::io;

use dataplane::io::Rejected;

/// Why something was not done.
#[derive(Debug)]
pub enum Failure {
    /// There is no network namespace of this name.
    NoNamespace(String, io::Error),
    /// There is no interface of this name.
    NoInterface(String),
    /// Only root may do that.
    Permission,
    /// The kernel refuses a program or map.
    Rejected(Rejected),
    /// A program of others is attached to an interface: its name and number.
    Taken(String, String, u32),
    /// A program of another chain is attached to an interface.
    OtherChain(String),
    /// The chain's program is attached, and runs elsewhere than the topology says.
    Mode(String),
    /// The kernel refuses to attach a program to an interface.
    Refused(String, io::Error),
    /// The kernel does not say what is attached.
    Unknown(io::Error),
    /// Something was changed, and could not be changed back: by which interface, and why it was to be.
    Half(String, Box<Failure>),
}

impl Failure {
    /// Of what the kernel says of an interface.
    pub(super) fn of(interface: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Failure::Permission,
            _ => Failure::Refused(interface.into(), error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Failure::Permission,
            _ => Failure::Unknown(error),
        }
    }
}

impl From<Rejected> for Failure {
    fn from(rejected: Rejected) -> Self {
        // The verifier has a log to say what it does not permit.
        match rejected.error.kind() {
            io::ErrorKind::PermissionDenied if rejected.log.is_empty() => Failure::Permission,
            _ => Failure::Rejected(rejected),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoNamespace(name, why) => {
                write!(f, "no network namespace '{name}': {why}; `ip netns add {name}` makes one")
            }
            Failure::NoInterface(name) => write!(
                f,
                "there is no interface '{name}': a port of XDP has the name of its interface; `ip link` shows them"
            ),
            Failure::Permission => f.write_str(
                "no permission: programs are loaded and attached by root; run it with sudo",
            ),
            Failure::Rejected(rejected) => write!(f, "{rejected}"),
            Failure::Taken(interface, name, id) => {
                let name = if name.is_empty() { "without a name" } else { name };
                write!(
                    f,
                    "a program of others is attached to '{interface}' ({name}, id {id}); nothing was changed. `ip link set \
                     {interface} xdp off` takes it away, if whoever attached it does without it"
                )
            }
            Failure::OtherChain(interface) => write!(
                f,
                "a program of another chain is attached to '{interface}'; nothing was changed. `catena offload --remove` of that \
                 chain takes it away"
            ),
            Failure::Mode(interface) => write!(
                f,
                "the chain's program on '{interface}' runs in another mode than the topology says; nothing was changed. --remove \
                 it first: no interface changes from one mode to the other without a gap"
            ),
            Failure::Refused(interface, why) => {
                let driver = match why.raw_os_error() {
                    Some(95) => {
                        ": its driver runs no XDP programs, `control: xdp:generic` has the kernel's stack run them"
                    }
                    _ => "",
                };
                write!(
                    f,
                    "the kernel does not attach the program to '{interface}': {why}{driver}; nothing was changed"
                )
            }
            Failure::Unknown(why) => write!(f, "the kernel does not say what is attached: {why}"),
            Failure::Half(interface, why) => write!(
                f,
                "{why}; what was changed at '{interface}' before could not be changed back: --install or --remove sets it right"
            ),
        }
    }
}

impl std::error::Error for Failure {}
