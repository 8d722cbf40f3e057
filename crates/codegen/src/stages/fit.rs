//! Whether a pipeline fits a device, of whatever kind it is.

use super::fixed::{Assignment, Refused, Unassigned, assign};
use super::hardware::{Hardware, Room};
use super::pipeline::{Pipeline, TableId};
use super::place::{self, Placement, Unplaceable, place};
use crate::Lack;

/// Where tables lie.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// In stages, perhaps more than there are.
    Stages(Box<Placement>),
    /// Each in a table of the device.
    Tables(Vec<Assignment>),
    /// Nowhere: a table does not fit, or the device has no tables.
    Nowhere,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The table that would have to go.
    pub table: Option<TableId>,
    /// What the device lacks for it.
    pub lack: Lack,
    /// In words.
    pub why: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Where tables lie.
    pub at: At,
    /// What does not fit; nothing, if all does.
    pub misfit: Option<Misfit>,
}

/// Whether a pipeline fits a device, without saying where tables lie and what does not fit.
pub(super) fn holds(pipeline: &Pipeline, hardware: &Hardware) -> bool {
    match &hardware.room {
        Room::Stages(stages) => place::holds(pipeline, stages),
        Room::Tables(_) | Room::Instructions(_) => fit(pipeline, hardware).misfit.is_none(),
    }
}

/// Whether a pipeline fits a device.
pub fn fit(pipeline: &Pipeline, hardware: &Hardware) -> Fit {
    let nowhere = |misfit: Misfit| Fit { at: At::Nowhere, misfit: Some(misfit) };
    match &hardware.room {
        Room::Stages(stages) => match place(pipeline, stages) {
            Ok(placement) => {
                let (needed, there) = (placement.stages, stages.count);
                let misfit = (needed > there).then(|| Misfit {
                    table: placement.critical.last().copied(),
                    lack: Lack::Room("stages", needed as usize, there as usize),
                    why: format!("{needed} stages are needed; {} has {there}", hardware.name),
                });
                Fit { at: At::Stages(Box::new(placement)), misfit }
            }
            Err(why) => {
                let (table, lack) = match &why {
                    Unplaceable::Table(table, short) => {
                        let (needed, free) = (short.needed as usize, short.free as usize);
                        (Some(*table), Lack::Room(short.resource.name(), needed, free))
                    }
                    Unplaceable::Fields(left) => (
                        None,
                        Lack::Room("bits of fields that have no register", *left as usize, 0),
                    ),
                    Unplaceable::Long | Unplaceable::Malformed(_) => {
                        (None, Lack::Room("stages", usize::MAX, stages.count as usize))
                    }
                };
                nowhere(Misfit { table, lack, why: why.said(pipeline) })
            }
        },
        Room::Tables(fixed) => match assign(pipeline, fixed) {
            Ok(all) => Fit { at: At::Tables(all), misfit: None },
            Err(Unassigned { table, refused }) => {
                let of = &pipeline.tables[table.0 as usize];
                let (tables, there) = (pipeline.tables.len(), fixed.len());
                // What is short of room says most, then what is nearest to being taken: the last.
                let short = refused.iter().find(|(_, why)| matches!(why, Refused::Entries(..)));
                let lack = match short.or(refused.last()).map(|(_, why)| why) {
                    Some(Refused::Entries(needed, there)) => {
                        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                        Lack::Room("entries", number(*needed), number(*there))
                    }
                    Some(Refused::Field(name)) => Lack::Field(name.clone()),
                    Some(Refused::Exact(name)) => Lack::Field(format!("a part of {name}")),
                    Some(Refused::Write(name)) => Lack::Write(name.clone()),
                    Some(Refused::None) | None => Lack::Room("tables", tables, there),
                };
                let each: Vec<String> = refused
                    .iter()
                    .take(8)
                    .map(|(at, why)| format!("'{}': {why}", fixed[*at].name))
                    .collect();
                let each = match each.is_empty() {
                    true if there == 1 => "There is one".into(),
                    true => format!("There are {there}"),
                    false => each.join("; "),
                };
                let why = format!(
                    "no table of {} holds table '{}' ({}). {each}",
                    hardware.name, of.name, of.origin
                );
                nowhere(Misfit { table: Some(table), lack, why })
            }
        },
        Room::Instructions(_) => Fit { at: At::Nowhere, misfit: None },
    }
}
