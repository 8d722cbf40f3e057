//! Which table of a device holds which table of a pipeline, where the device's tables are there in a fixed order.

use std::fmt;

use super::containers::Allocation;
use super::dependence::dependences;
use super::hardware::{FixedTable, Mode};
use super::pipeline::{MatchKind, Pipeline, TableId};

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

/// Finds a table of a device for each table of a pipeline: behind those that it depends on, and none twice.
///
/// # Errors
/// The first table for which there is none.
pub fn assign(pipeline: &Pipeline, fixed: &[FixedTable]) -> Result<Vec<Assignment>, Unassigned> {
    // There are no registers: only fields are in each other's way.
    let allocation = Allocation {
        of: (0..pipeline.fields.len() as u32).map(|field| vec![field]).collect(),
        taken: Vec::new(),
    };
    let dependences = dependences(pipeline, &allocation);
    let mut all: Vec<Assignment> = Vec::with_capacity(pipeline.tables.len());
    let mut taken = vec![false; fixed.len()];
    for (at, dependences) in dependences.iter().enumerate() {
        // A packet goes through one table after the other, whatever kind the dependence is of.
        let behind =
            dependences.iter().map(|d| all[d.from.0 as usize].fixed + 1).max().unwrap_or(0);
        let mut refused = Vec::new();
        let found = (behind..fixed.len()).filter(|&index| !taken[index]).find_map(|index| {
            match takes(pipeline, at, &fixed[index]) {
                Ok(mode) => Some(Assignment { fixed: index, mode }),
                Err(why) => {
                    refused.push((index, why));
                    None
                }
            }
        });
        let table = TableId(at as u32);
        let found = found.ok_or(Unassigned { table, refused })?;
        taken[found.fixed] = true;
        all.push(found);
    }
    Ok(all)
}

/// In which of its modes a table of a device holds one of a pipeline.
fn takes(pipeline: &Pipeline, at: usize, fixed: &FixedTable) -> Result<usize, Refused> {
    let table = &pipeline.tables[at];
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
