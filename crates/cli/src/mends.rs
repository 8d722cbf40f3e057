//! Which option or command mends what the engine says is wrong.

use engine::Error;

/// The text of an error of this kind ([`Error::code`]) with what mends it on the command line.
pub(crate) fn mended(text: &str, code: &str) -> String {
    let mend = match code {
        "ends-sooner" => "--force has it replace the one that runs all the same",
        "spent-input" => "`catena ctl swap FILE` takes a file",
        "no-groups" => {
            "start with `catena run --dispatch tags=mac` (or tags=vlan), which makes some"
        }
        "no-faults" => "'catena run --faults none' lets them have some later",
        "fixed-workers" => {
            "start with `catena run --workers N`, with --dispatch hash (the default), without --interpret, and with \
             interfaces that are neither TAP's nor DPDK's"
        }
        "worker-count" => "--cores says which, otherwise all that the process may use",
        "no-connection" => "`catena graph` draws those there are",
        "protocol-version" => "use the release of `catena` that the instance was started with",
        "flow-choice" => "`catena ctl flows` lists them",
        _ => return text.to_string(),
    };
    format!("{text}; {mend}")
}

/// The same for an error at hand.
pub(crate) fn of(error: &Error) -> String {
    mended(&error.to_string(), error.code())
}
