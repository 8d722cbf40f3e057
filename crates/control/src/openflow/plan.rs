//! What has to change on a switch: what it has, compared with what it shall have.

use std::collections::{HashMap, HashSet};

use codegen::openflow::codec::Stats;
use codegen::openflow::{Flow, FlowEntry, Key};

use super::{Mark, order};

/// An entry whose key stays, and that does something else, or counts for somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is there.
    pub from: Stats,
    /// What shall be there.
    pub to: FlowEntry,
}

impl Change {
    /// Whether packets meet something else: not only who counts them changes.
    pub fn is_of_packets(&self) -> bool {
        !self.from.flow.does_as(&self.to.flow) || self.from.timeouts != [0, 0]
    }
}

/// An entry that is not of the chain, and takes packets of which an entry of the chain takes some, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// What is there.
    pub stats: Stats,
    /// An entry of the chain that it meets.
    pub meets: FlowEntry,
}

impl Foreign {
    /// Whether both have one table, priority and match: a switch can only have one of them.
    pub fn conflicts(&self) -> bool {
        self.stats.flow.key() == self.meets.flow.key()
    }

    /// Whether it may come before the chain's entry.
    pub fn comes_first(&self) -> bool {
        self.stats.flow.priority >= self.meets.flow.priority
    }
}

/// What a switch lacks, and what it has too much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Entries that are not there.
    pub add: Vec<FlowEntry>,
    /// Entries that are there and other than they shall be.
    pub change: Vec<Change>,
    /// Entries of the chain that shall not be there.
    pub remove: Vec<Flow>,
    /// Entries that are there as they shall be.
    pub stay: Vec<Stats>,
    /// Entries of others that meet entries of the chain.
    pub foreign: Vec<Foreign>,
}

impl Plan {
    /// Compares all entries of a switch with those that the chain of a mark shall have. Priorities of
    /// these may become others, where that keeps what is there: their order stays.
    pub fn new(there: Vec<Stats>, mut entries: Vec<FlowEntry>, mark: Mark) -> Self {
        mark.put_on(&mut entries);
        let (own, others): (Vec<Stats>, Vec<Stats>) =
            there.into_iter().partition(|stats| mark.is_on(stats.flow.cookie));
        order::keep(&mut entries, &own);
        let mut own: HashMap<OwnedKey, Stats> =
            own.into_iter().map(|stats| (owned(stats.flow.key()), stats)).collect();
        let mut plan = Self { foreign: foreign(others, &entries), ..Self::default() };
        for entry in entries {
            match own.remove(&owned(entry.flow.key())) {
                None => plan.add.push(entry),
                Some(from) => {
                    let change = Change { from, to: entry };
                    match change.is_of_packets() || change.from.flow.cookie != change.to.flow.cookie
                    {
                        true => plan.change.push(change),
                        false => plan.stay.push(change.from),
                    }
                }
            }
        }
        plan.remove = own.into_values().map(|stats| stats.flow).collect();
        plan.remove.sort_by(|a, b| a.key().cmp(&b.key()));
        plan
    }

    /// Whether the switch has what it shall have.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.change.is_empty() && self.remove.is_empty()
    }

    /// Whether the switch has nothing of the chain.
    pub fn is_all_new(&self) -> bool {
        self.change.is_empty() && self.remove.is_empty() && self.stay.is_empty()
    }
}

type OwnedKey = (u8, u16, Vec<codegen::openflow::Bits>);

fn owned((table, priority, when): Key<'_>) -> OwnedKey {
    (table, priority, when.to_vec())
}

/// Entries of others that meet the chain's, each with one of these: the one in whose place it stands, or the first.
fn foreign(others: Vec<Stats>, entries: &[FlowEntry]) -> Vec<Foreign> {
    let mut tables: HashMap<u8, Vec<&FlowEntry>> = HashMap::new();
    for entry in entries {
        tables.entry(entry.flow.table).or_default().push(entry);
    }
    let keys: HashSet<Key<'_>> = entries.iter().map(|entry| entry.flow.key()).collect();
    let one = |stats: Stats| {
        let table = tables.get(&stats.flow.table)?;
        let conflicts = keys.contains(&stats.flow.key());
        let meets = table.iter().find(|entry| match conflicts {
            true => entry.flow.key() == stats.flow.key(),
            false => entry.flow.meets(&stats.flow),
        })?;
        let meets = (*meets).clone();
        Some(Foreign { stats, meets })
    };
    others.into_iter().filter_map(one).collect()
}
