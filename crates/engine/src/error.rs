//! What can go wrong, for programs: each kind has a code that stays, and a text for people.

use std::fmt;

use dataplane::io::DispatchMode;

use crate::findings::Findings;

/// Why something was not done. What ran before runs on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What is wrong with a configuration.
    Configuration(Findings),
    /// Why a configuration cannot be read.
    Unreadable(String),
    /// No chain was found in a configuration of this name: a file that is about to be written, most likely.
    Empty(String),
    /// The configuration came from the standard input, which cannot be read again.
    SpentInput,
    /// The new configuration would end, or come to rest, where the running one does not; why.
    EndsSooner(String),
    /// No other configuration has run.
    NothingBefore,
    /// There is no such handler, or why it refuses.
    Handler(String),
    /// There are no groups to move.
    NoGroups {
        /// How packets find their workers.
        mode: DispatchMode,
    },
    /// There is no group of this number, only so many.
    NoGroup {
        /// The number.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// There is no worker of this number, only so many.
    NoWorker {
        /// The number.
        worker: usize,
        /// How many there are.
        workers: usize,
    },
    /// A worker stands by, so that groups cannot go to it.
    StandsBy {
        /// Its number.
        worker: usize,
    },
    /// The number of workers cannot change where packets find them in this mode, or as the instance was
    /// started.
    FixedWorkers {
        /// How packets find their workers.
        mode: DispatchMode,
        /// How many workers there are.
        workers: usize,
    },
    /// There cannot be so many workers.
    WorkerCount {
        /// How many are wanted.
        wanted: usize,
        /// How many there can be.
        most: usize,
    },
    /// A worker is to stand by that has groups, or that is the first, which frames of no group come to.
    StillNeeded {
        /// Its number.
        worker: usize,
        /// How many groups it has.
        groups: usize,
    },
    /// A worker does not come to an end with what it has received.
    NotDrained {
        /// Its number.
        worker: usize,
    },
    /// A worker is dead.
    WorkerDead,
    /// No policy scales the run.
    NoScaling,
    /// Devices were opened without the means to have faults.
    NoFaults,
    /// Why faults are not understood.
    Faults(String),
    /// Why a pattern for packets or flows is not understood.
    Filter(String),
    /// Why the name of a connection is not understood, or what of it is not there.
    Connection(String),
    /// There is no connection of elements that this text names.
    NoConnection(String),
    /// A filter that is to choose one flow chooses another number of them.
    FlowChoice {
        /// The filter.
        filter: String,
        /// How many it chooses.
        chosen: usize,
    },
    /// There is no element of this name that has flows.
    NoFlows(String),
    /// The flow has ended already.
    FlowEnded,
    /// State of another run that cannot be taken over; why.
    State(String),
    /// A request that is not understood.
    Request(String),
    /// A reply that is not understood.
    Reply(String),
    /// Client and instance use different versions of the control protocol, or one says none.
    Version {
        /// The client's.
        client: Option<u32>,
        /// The instance's.
        instance: Option<u32>,
    },
    /// There are as many clients as there can be.
    TooManyClients(usize),
    /// Anything else: the system, a device, the kernel.
    Other(String),
}

macro_rules! codes {
    ($($pattern:pat => $code:literal, $meaning:literal;)*) => {
        /// The codes of all kinds of error, and what each means, in the order of [`Error`].
        pub const CODES: &[(&str, &str)] = &[$(($code, $meaning)),*];

        impl Error {
            /// A name of the kind of error, which does not change.
            pub fn code(&self) -> &'static str {
                match self {
                    $($pattern => $code,)*
                }
            }
        }
    };
}

codes! {
    Error::Configuration(_) => "configuration", "The configuration is wrong; its diagnostics say where, each with a code of its own.";
    Error::Unreadable(_) => "unreadable", "A configuration cannot be read.";
    Error::Empty(_) => "empty-configuration", "There is no chain in the configuration.";
    Error::SpentInput => "spent-input", "The configuration came from the standard input, which cannot be read again.";
    Error::EndsSooner(_) => "ends-sooner", "The new configuration ends or comes to rest, the running one does not, and the change was not forced.";
    Error::NothingBefore => "nothing-before", "No other configuration has run.";
    Error::Handler(_) => "handler", "There is no such handler, or it refuses.";
    Error::NoGroups { .. } => "no-groups", "There are no groups of traffic classes.";
    Error::NoGroup { .. } => "no-group", "There is no group of this number.";
    Error::NoWorker { .. } => "no-worker", "There is no worker of this number.";
    Error::StandsBy { .. } => "stands-by", "The worker stands by; it must take packets first.";
    Error::FixedWorkers { .. } => "fixed-workers", "The number of workers cannot change.";
    Error::WorkerCount { .. } => "worker-count", "There cannot be so many workers.";
    Error::StillNeeded { .. } => "still-needed", "A worker that has groups, or the first one, cannot stand by.";
    Error::NotDrained { .. } => "not-drained", "A worker does not come to an end with what it has received; asked again, a move goes on.";
    Error::WorkerDead => "worker-dead", "A worker's thread is gone.";
    Error::NoScaling => "no-scaling", "No policy scales the run.";
    Error::NoFaults => "no-faults", "Devices were opened without the means to have faults.";
    Error::Faults(_) => "faults", "The faults are not understood.";
    Error::Filter(_) => "filter", "The pattern for packets or flows is not understood.";
    Error::Connection(_) => "connection", "The name of a connection is not understood, or names something that is not there.";
    Error::NoConnection(_) => "no-connection", "No connection of elements has this name.";
    Error::NoFlows(_) => "no-flows", "There is no element of this name that has flows.";
    Error::FlowChoice { .. } => "flow-choice", "A filter that is to choose one flow chooses another number of them.";
    Error::FlowEnded => "flow-ended", "The flow has ended already.";
    Error::State(_) => "state", "State of another run cannot be taken over; the message states why.";
    Error::Request(_) => "request", "The request is not understood.";
    Error::Reply(_) => "reply", "The reply is not understood; a client reports this.";
    Error::Version { .. } => "protocol-version", "Client and instance use different versions of the control protocol.";
    Error::TooManyClients(_) => "too-many-clients", "There are as many clients as there can be.";
    Error::Other(_) => "other", "Anything else: the system, a device, the kernel.";
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Configuration(findings) => findings.fmt(f),
            Error::Empty(name) => write!(f, "{name}: it is empty; no chain was found in it"),
            Error::SpentInput => f.write_str("the standard input was read to its end"),
            Error::EndsSooner(why) => f.write_str(why),
            Error::Request(why) => write!(f, "not a request: {why}"),
            Error::Reply(why) => write!(f, "not a reply: {why}"),
            Error::Version { client, instance } => {
                let version = |version: &Option<u32>| match version {
                    Some(version) => format!("version {version}"),
                    None => "no version".to_string(),
                };
                let (client, instance) = (version(client), version(instance));
                write!(
                    f,
                    "the client uses {client} of the control protocol, and the instance {instance}"
                )
            }
            Error::NothingBefore => f.write_str("no other configuration has run"),
            Error::NoGroups { mode } => write!(
                f,
                "there are no groups of traffic classes to move where packets find their workers by {mode}"
            ),
            Error::NoGroup { group, groups } => {
                write!(f, "there is no group {group}, only 0 to {}", groups.saturating_sub(1))
            }
            Error::NoWorker { worker, workers } => {
                write!(f, "there is no worker {worker}, only 0 to {}", workers.saturating_sub(1))
            }
            Error::StandsBy { worker } => {
                write!(f, "worker {worker} stands by, and takes no packets")
            }
            Error::FixedWorkers { mode: DispatchMode::Hash, workers } => write!(
                f,
                "the number of workers, {workers}, is fixed: the run did not begin with a number that can change"
            ),
            Error::FixedWorkers { mode, workers } => write!(
                f,
                "the number of workers, {workers}, is fixed where packets find them by {mode}"
            ),
            Error::WorkerCount { wanted, most } => {
                write!(
                    f,
                    "there can be 1 to {most} workers, not {wanted}: one for each CPU of the run"
                )
            }
            Error::StillNeeded { worker: 0, .. } => {
                f.write_str("the first worker cannot stand by: frames of no group come to it")
            }
            Error::StillNeeded { worker, groups } => {
                write!(f, "worker {worker} cannot stand by: {groups} groups are with it")
            }
            Error::NotDrained { worker } => {
                write!(f, "worker {worker} does not come to an end with what it has received")
            }
            Error::WorkerDead => f.write_str("the worker is dead"),
            Error::NoScaling => f.write_str("no policy scales the run: it began without --scale"),
            Error::NoFaults => f.write_str("devices cannot have faults"),
            Error::State(why) => write!(f, "the state cannot be taken over: {why}"),
            Error::NoConnection(text) => write!(f, "there is no connection '{text}'"),
            Error::FlowChoice { filter, chosen } => {
                write!(f, "'{filter}' chooses {chosen} flows, not one")
            }
            Error::TooManyClients(most) => write!(
                f,
                "{most} clients are connected, and there can be no more: end a capture, a trace or a `top`, \
                 and try again"
            ),
            Error::NoFlows(name) => write!(f, "there is no element '{name}' that has flows"),
            Error::FlowEnded => f.write_str("the flow has ended already"),
            Error::Unreadable(why)
            | Error::Handler(why)
            | Error::Faults(why)
            | Error::Filter(why)
            | Error::Connection(why)
            | Error::Other(why) => f.write_str(why.trim_end()),
        }
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<&str> for Error {
    fn from(why: &str) -> Self {
        Self::Other(why.to_string())
    }
}
