//! What the ingress control is made of, before it is written: tables with their entries, actions, and the block that
//! applies them.

use std::collections::BTreeSet;

use ir::program::StepId;

use super::checksum::Sums;
use crate::headers::Instance;

/// How a key of a table is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exact,
    Lpm,
    Ternary,
    Range,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lpm => "lpm",
            Self::Ternary => "ternary",
            Self::Range => "range",
        }
    }
}

/// A key of a table.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) width: u16,
    pub(super) kind: Kind,
}

/// What an entry matches of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Match {
    Any,
    Exact(u128),
    /// A number, and how many of its first bits count.
    Prefix(u128, u16),
    /// A number and its mask.
    Masked(u128, u128),
    Range(u128, u128),
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) action: usize,
    pub(super) arguments: Vec<u128>,
}

/// An entry of a table; the first that matches counts, of prefixes the longest.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) matches: Vec<Match>,
    pub(super) call: Call,
    pub(super) origin: String,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) origin: String,
    pub(super) keys: Vec<Key>,
    pub(super) entries: Vec<Entry>,
    pub(super) otherwise: Call,
    /// The step of its segment that it is.
    pub(super) step: StepId,
}

impl Table {
    /// Whether entries have priorities.
    pub(super) fn has_priorities(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, Kind::Ternary | Kind::Range))
    }

    /// The actions that it has, in order.
    pub(super) fn actions(&self) -> BTreeSet<usize> {
        self.entries.iter().map(|entry| entry.call.action).chain([self.otherwise.action]).collect()
    }
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Action {
    pub(super) name: String,
    /// Parameters and their widths.
    pub(super) parameters: Vec<(String, u16)>,
    pub(super) body: Vec<String>,
    pub(super) reads: BTreeSet<String>,
    pub(super) writes: BTreeSet<String>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub(super) text: String,
    /// Fields that it reads, and headers that have to be there.
    pub(super) reads: BTreeSet<String>,
    pub(super) needs: BTreeSet<Instance>,
}

/// A statement of the control's block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// The step that follows; its element, file and line.
    Step(StepId, String),
    If(When, Vec<Statement>, Vec<Statement>),
    /// What packets do by the number of the table that they are at. None of these leads to another.
    Arms(Vec<(u32, Vec<Statement>)>),
    Apply(usize),
    Call(Call),
    /// A local variable gets a number, that is made from these fields.
    Set(String, String, BTreeSet<String>),
}

/// The ingress control.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipeline {
    pub(super) tables: Vec<Table>,
    pub(super) actions: Vec<Action>,
    /// What follows from where a frame came in: ports, and the statements for them.
    pub(super) segments: Vec<(Vec<u32>, Vec<Statement>)>,
    /// Local variables and their widths.
    pub(super) variables: Vec<(String, u16)>,
    /// Metadata and their widths.
    pub(super) metadata: Vec<(String, u16)>,
    /// Headers that are read or written.
    pub(super) headers: BTreeSet<Instance>,
    /// Types that say that a tag follows, first and second.
    pub(super) tags: [BTreeSet<u128>; 2],
    /// The words that the parser takes off checksums.
    pub(super) sums: Sums,
    /// Whether a checksum is verified.
    pub(super) verifies: bool,
}

/// The metadata that holds the number under which a packet is counted.
pub(super) const CLASS: &str = "class";

impl Pipeline {
    /// Headers that the parser extracts: those that are looked at or written, and what lies in front of them.
    pub(super) fn extracted(&self) -> BTreeSet<Instance> {
        let mut all = self.headers.clone();
        all.extend([Instance::Ethernet, Instance::Tag]);
        if [Instance::Tcp, Instance::Udp, Instance::Icmp].iter().any(|of| all.contains(of)) {
            all.insert(Instance::Transport);
        }
        for (tags, instance) in self.tags.iter().zip([Instance::Vlan, Instance::InnerVlan]) {
            if !tags.is_empty() {
                all.insert(instance);
            }
        }
        all
    }

    /// The action of that shape.
    pub(super) fn action(&mut self, name: &str, mut action: Action) -> usize {
        let same =
            |known: &Action| (&known.parameters, &known.body) == (&action.parameters, &action.body);
        if let Some(known) = self.actions.iter().position(same) {
            return known;
        }
        let is_taken = |name: &String| self.actions.iter().any(|known| known.name == *name);
        let numbered = (2..).map(|number| format!("{name}{number}"));
        action.name = [name.to_string()]
            .into_iter()
            .chain(numbered)
            .find(|name| !is_taken(name))
            .unwrap_or_default();
        self.actions.push(action);
        self.actions.len() - 1
    }
}
