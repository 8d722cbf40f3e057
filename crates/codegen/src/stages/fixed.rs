//! Which table of a device holds which table of a pipeline, where the device's tables are there in a fixed order.

use std::fmt;

use super::containers::Allocation;
use super::dependence::dependences;
use super::hardware::{FixedTable, Mode};
use super::pipeline::{Key, MatchKind, Pipeline, Table, TableId};

/// A table of a pipeline in one of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The device's table, by index.
    pub fixed: usize,
    /// What it holds then, by index.
    pub mode: usize,
}

/// Why a table of a device does not take one of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is none behind those that have to come before.
    None,
    /// It does not match a field.
    Field(String),
    /// It matches whole numbers of a field only.
    Exact(String),
    /// It does not write a field.
    Write(String),
    /// More entries than it holds.
    Entries(u64, u64),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is none"),
            Self::Field(name) => write!(f, "{name} is not matched"),
            Self::Exact(name) => write!(f, "{name} is matched by whole numbers only"),
            Self::Write(name) => write!(f, "{name} is not written"),
            Self::Entries(needed, there) => write!(f, "{needed} entries, {there} fit"),
        }
    }
}

/// A table of a pipeline for which a device has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unassigned {
    /// The table.
    pub table: TableId,
    /// Why each of the device's tables that are left does not take it, by index.
    pub refused: Vec<(usize, Refused)>,
}

/// Finds a table of a device for each table of a pipeline: behind those that it depends on. Tables share one only if a packet
/// meets one of them at most.
///
/// # Errors
/// The first table for which there is none.
pub fn assign(pipeline: &Pipeline, fixed: &[FixedTable]) -> Result<Vec<Assignment>, Unassigned> {
    // There are no registers: only fields conflict.
    let allocation = Allocation {
        of: (0..pipeline.fields.len() as u32).map(|field| vec![field]).collect(),
        taken: Vec::new(),
    };
    let dependences = dependences(pipeline, &allocation);
    let mut all: Vec<Assignment> = Vec::with_capacity(pipeline.tables.len());
    // By table of the device: which it holds, and these as one.
    let mut held: Vec<Option<(Vec<TableId>, Table)>> = vec![None; fixed.len()];
    for (at, dependences) in dependences.iter().enumerate() {
        // A packet goes through one table after the other, whatever kind the dependence is of.
        let behind =
            dependences.iter().map(|d| all[d.from.0 as usize].fixed + 1).max().unwrap_or(0);
        let mut refused = Vec::new();
        let table = TableId(at as u32);
        let of = &pipeline.tables[at];
        let shares = |held: &Option<(Vec<TableId>, Table)>| {
            let mut all = held.iter().flat_map(|(all, _)| all);
            all.all(|other| pipeline.exclusive(*other, table))
        };
        let found = (behind..fixed.len()).filter(|&index| shares(&held[index])).find_map(|index| {
            let both = held[index].as_ref().map(|(_, one)| together(one, of));
            match takes(pipeline, both.as_ref().unwrap_or(of), &fixed[index]) {
                Ok(mode) => Some(Assignment { fixed: index, mode }),
                Err(why) => {
                    refused.push((index, why));
                    None
                }
            }
        });
        let found = found.ok_or(Unassigned { table, refused })?;
        held[found.fixed] = Some(match held[found.fixed].take() {
            None => (vec![table], of.clone()),
            Some((mut all, one)) => {
                all.push(table);
                (all, together(&one, of))
            }
        });
        all.push(found);
    }
    Ok(all)
}

/// Two tables as one: a key that only one of them has is masked where entries are the other's.
fn together(one: &Table, other: &Table) -> Table {
    let mut keys: Vec<Key> = Vec::new();
    for (key, theirs) in
        one.keys.iter().map(|key| (key, other)).chain(other.keys.iter().map(|key| (key, one)))
    {
        let same = theirs.keys.iter().find(|of| of.field == key.field).map(|of| of.kind);
        let whole = |kind| matches!(kind, MatchKind::Exact | MatchKind::Optional);
        let kind = match same {
            Some(kind) if kind == key.kind => kind,
            None if whole(key.kind) => MatchKind::Optional,
            Some(kind) if whole(kind) && whole(key.kind) => MatchKind::Optional,
            _ => MatchKind::Ternary,
        };
        if !keys.iter().any(|of| of.field == key.field) {
            keys.push(Key { field: key.field, kind });
        }
    }
    let actions = one.actions.iter().chain(&other.actions).cloned().collect();
    let entries = one.entries.saturating_add(other.entries);
    Table { keys, actions, entries, ..one.clone() }
}

/// In which of its modes a table of a device holds one of a pipeline.
fn takes(pipeline: &Pipeline, table: &Table, fixed: &FixedTable) -> Result<usize, Refused> {
    if let Some(sets) = &fixed.sets {
        let written = table.actions.iter().flat_map(|action| &action.writes);
        let mut names = written.map(|field| pipeline.name(*field));
        // What tables hand on is no field of the packet.
        let other =
            names.find(|name| !name.starts_with("meta") && !sets.iter().any(|set| set == name));
        if let Some(other) = other {
            return Err(Refused::Write(other.into()));
        }
    }
    // What it refuses, and how many keys it matches.
    let holds = |mode: &Mode| {
        for (matched, key) in table.keys.iter().enumerate() {
            let name = pipeline.name(key.field);
            let known = |all: &[String]| all.iter().any(|known| known == name);
            if mode.fields.as_ref().is_some_and(|fields| !known(fields)) {
                return Err((matched, Refused::Field(name.into())));
            }
            let whole = matches!(key.kind, MatchKind::Exact | MatchKind::Optional);
            if !whole && known(&mode.exact) {
                return Err((matched, Refused::Exact(name.into())));
            }
        }
        match mode.entries {
            Some(most) if table.entries > most => {
                Err((table.keys.len(), Refused::Entries(table.entries, most)))
            }
            _ => Ok(()),
        }
    };
    let mut nearest = (0, Refused::None);
    for (index, mode) in fixed.modes.iter().enumerate() {
        match holds(mode) {
            Ok(()) => return Ok(index),
            Err(why) if why.0 > nearest.0 || nearest.1 == Refused::None => nearest = why,
            Err(_) => {}
        }
    }
    Err(nearest.1)
}
