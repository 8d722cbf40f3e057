//! The frame of scaling: what a policy sees, what it may order, and the trait that all policies have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Nanoseconds since the run began.
pub type Nanos = u64;
/// Nanoseconds of a microsecond.
pub const US: Nanos = 1_000;
/// Nanoseconds of a millisecond.
pub const MS: Nanos = 1_000_000;
/// Nanoseconds of a second.
pub const S: Nanos = 1_000_000_000;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A core.
    Core,
    /// What moves as one: a bucket of a NIC's table, or a group of traffic classes.
    Group,
    /// A flow that waits at a core.
    Flow,
    /// A server.
    Server,
    /// A prefix of destination addresses.
    Prefix
}

/// What a core is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It polls a receive queue of its own.
    Dedicated,
    /// Nobody uses it.
    Spare,
    /// It was ordered and is not ready yet.
    Starting,
    /// It has flows that another core lent.
    Auxiliary,
}

/// A core, since the last observation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreSeen {
    /// Which.
    pub core: Core,
    /// What it is for.
    pub role: Role,
    /// Share of its time with packets, 0 to 1.
    pub load: f64,
    /// Packets a second that arrived for it.
    pub rate: f64,
    /// Flows that were active in an epoch, on average.
    pub flows: f64,
    /// Packets that wait.
    pub queued: u32,
    /// Packets that were lost before it.
    pub lost: u64,
    /// Share of polls that found packets, 0 to 1.
    pub useful: f64,
    /// 99th percentile of the time that a batch took.
    pub batch_p99: Nanos,
}

impl CoreSeen {
    /// A core that has nothing to do.
    pub fn idle(core: Core, role: Role) -> Self {
        let (load, rate, flows, useful) = (0.0, 0.0, 0.0, 0.0);
        Self { core, role, load, rate, flows, queued: 0, lost: 0, useful, batch_p99: 0 }
    }
}

/// A bucket or group, since the last observation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSeen {
    /// Which.
    pub group: Group,
    /// The core that owns it.
    pub core: Core,
    /// Share of a core's time that it took.
    pub load: f64,
    /// Packets a second.
    pub rate: f64,
    /// Flows that were active in an epoch, on average.
    pub flows: f64,
    /// Parts into which it can be divided: traffic classes, or flows.
    pub parts: u32,
    /// Equal for groups whose classes have equal write operations.
    pub operations: u32,
    /// Where an earlier order takes it that is still in progress.
    pub next: Option<Core>,
}

impl GroupSeen {
    /// Whether an earlier order to move it is still in progress.
    pub fn moves(&self) -> bool {
        self.next.is_some()
    }
}

/// A server, as its own mapper reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSeen {
    /// Which.
    pub server: Server,
    /// Its dedicated cores.
    pub dedicated: u32,
}

/// A flow with packets in a core's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which.
    pub flow: Flow,
    /// Its packets that wait.
    pub packets: u32,
}

/// What a policy sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// When it was made.
    pub at: Nanos,
    /// Cores that the policy may use, in ascending order.
    pub cores: Vec<CoreSeen>,
    /// Buckets or groups, in ascending order.
    pub groups: Vec<GroupSeen>,
    /// Servers, in ascending order.
    pub servers: Vec<ServerSeen>,
    /// Prefixes that no server has yet.
    pub unseen: Vec<Prefix>,
    /// The queue of the one core that a core mapper is for, flow by flow in the order of arrival.
    pub queue: Vec<Waiting>,
}

impl Observation {
    /// Cores that have or get packets of their own.
    pub fn dedicated(&self) -> impl Iterator<Item = &CoreSeen> {
        self.cores.iter().filter(|of| matches!(of.role, Role::Dedicated | Role::Starting))
    }

    /// Cores that nobody uses.
    pub fn spare(&self) -> impl Iterator<Item = &CoreSeen> {
        self.cores.iter().filter(|of| of.role == Role::Spare)
    }

    /// A core.
    pub fn core(&self, core: Core) -> Option<&CoreSeen> {
        self.cores.iter().find(|of| of.core == core)
    }
}

/// What a policy orders. Orders of one decision are executed in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// A spare core becomes a dedicated one.
    Add(Core),
    /// A dedicated core that owns nothing becomes spare.
    Release(Core),
    /// A bucket or group moves.
    Move {
        /// Which.
        group: Group,
        /// Its owner.
        from: Core,
        /// Its next owner.
        to: Core,
    },
    /// Half of a group becomes a new one at another core; the other half stays.
    Split {
        /// Which.
        group: Group,
        /// Its owner.
        from: Core,
        /// The owner of the half that goes.
        to: Core,
    },
    /// A group becomes part of another one.
    Merge {
        /// Which.
        group: Group,
        /// Its owner.
        from: Core,
        /// What it becomes a part of.
        into: Group,
        /// The owner of that.
        to: Core,
    },
    /// Packets of flows that wait go to an auxiliary core, with those of these flows that follow.
    Lend {
        /// The lender.
        from: Core,
        /// The auxiliary core.
        to: Core,
        /// The flows.
        flows: Vec<Flow>,
    },
    /// The last network functions run on an auxiliary core for a flow that is too much for one.
    SplitChain {
        /// The core with the flow.
        from: Core,
        /// The core of the last functions.
        to: Core,
        /// The flow.
        flow: Flow,
        /// How many of the last functions go.
        functions: u32,
    },
    /// A core only pulls and deals, or runs the chain again.
    Boost {
        /// Which.
        core: Core,
        /// Whether it is to begin.
        on: bool,
    },
    /// Packets to a prefix go to a server.
    Steer {
        /// The prefix.
        prefix: Prefix,
        /// The server.
        to: Server,
    },
    /// Flows that have so many packets a second together move.
    Migrate {
        /// Their owner.
        from: Core,
        /// Their next owner.
        to: Core,
        /// Packets a second.
        rate: f64,
    },
    /// New flows go to a core.
    Place {
        /// Which.
        to: Core,
        /// For how many packets a second there is room.
        room: f64,
    },
}

impl Action {
    /// The core that gets work.
    pub fn to(&self) -> Option<Core> {
        match self {
            Self::Move { to, .. }
            | Self::Split { to, .. }
            | Self::Merge { to, .. }
            | Self::Lend { to, .. }
            | Self::SplitChain { to, .. }
            | Self::Migrate { to, .. }
            | Self::Place { to, .. } => Some(*to),
            Self::Add(_) | Self::Release(_) | Self::Boost { .. } | Self::Steer { .. } => None,
        }
    }

    /// The core that work goes away from.
    pub fn from(&self) -> Option<Core> {
        match self {
            Self::Move { from, .. }
            | Self::Split { from, .. }
            | Self::Merge { from, .. }
            | Self::Lend { from, .. }
            | Self::SplitChain { from, .. }
            | Self::Migrate { from, .. } => Some(*from),
            _ => None,
        }
    }

    /// The buckets or groups that it changes.
    pub fn groups(&self) -> impl Iterator<Item = Group> {
        let (one, other) = match self {
            Self::Move { group, .. } | Self::Split { group, .. } => (Some(*group), None),
            Self::Merge { group, into, .. } => (Some(*group), Some(*into)),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(core) => write!(f, "add core {core}"),
            Self::Release(core) => write!(f, "release core {core}"),
            Self::Move { group, from, to } => {
                write!(f, "move group {group} from core {from} to core {to}")
            }
            Self::Split { group, from, to } => {
                write!(f, "split group {group} of core {from}: half goes to core {to}")
            }
            Self::Merge { group, from, into, to } => {
                write!(f, "merge group {group} of core {from} into group {into} of core {to}")
            }
            Self::Lend { from, to, flows } => {
                write!(f, "lend {} flows of core {from} to core {to}", flows.len())
            }
            Self::SplitChain { from, to, flow, functions } => write!(
                f,
                "run the last {functions} functions for flow {flow} of core {from} on core {to}"
            ),
            Self::Boost { core, on } => {
                write!(f, "{} boost of core {core}", if *on { "begin" } else { "end" })
            }
            Self::Steer { prefix, to } => write!(f, "steer prefix {prefix} to server {to}"),
            Self::Migrate { from, to, rate } => {
                write!(f, "move flows with {rate:.0} packets/s from core {from} to core {to}")
            }
            Self::Place { to, room } => {
                write!(f, "place new flows on core {to}, which has room for {room:.0} packets/s")
            }
        }
    }
}

/// Orders as people read them: moves between the same cores that follow each other are one.
pub fn told(actions: &[Action]) -> Vec<String> {
    let between = |action: &Action| match action {
        Action::Move { from, to, .. } => Some((*from, *to)),
        _ => None,
    };
    let runs = actions.chunk_by(|a, b| between(a).is_some() && between(a) == between(b));
    runs.map(|run| match (run, between(&run[0])) {
        ([_, _, ..], Some((from, to))) => {
            let groups: Vec<String> =
                run.iter().flat_map(Action::groups).map(|group| group.to_string()).collect();
            format!("move groups {} from core {from} to core {to}", groups.join(", "))
        }
        _ => run[0].to_string(),
    })
    .collect()
}

/// Why something was decided, or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: Nanos,
    /// What was seen, what was foreseen and what followed.
    pub why: String,
}

/// A policy: observations in, decisions out. Time is passed in, and nothing else decides: the same observations give the same
/// decisions. Its state is its value: serialised and read back, it goes on where it was.
pub trait Policy {
    /// How often it is to be asked.
    fn period(&self) -> Nanos;

    /// Decides by what is seen, once for each observation.
    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action>;

    /// Takes what there is to say of decisions since it was last asked.
    fn notes(&mut self) -> Vec<Note> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_that_follow_each_other_are_told_as_one() {
        let shift =
            |group, from, to| Action::Move { group: Group(group), from: Core(from), to: Core(to) };
        let actions = [
            Action::Add(Core(2)),
            shift(1, 0, 2),
            shift(5, 0, 2),
            shift(7, 1, 2),
            Action::Release(Core(1)),
        ];
        let expected = [
            "add core 2",
            "move groups 1, 5 from core 0 to core 2",
            "move group 7 from core 1 to core 2",
            "release core 1",
        ];
        assert_eq!(told(&actions), expected);
        assert_eq!(told(&[]), [""; 0]);
    }
}
