//! Which tables have to come behind which.
//!
//! After Jose et al., "Compiling Packet Programs to Reconfigurable Switches" (NSDI 2015): a table that looks up, reads
//! or writes what an earlier one writes lies in a later stage. One that writes what an earlier one reads, or that is
//! applied or not depending on how an earlier one ended, may share its stage. Tables that no packet meets both of do
//! not depend on each other.

use std::fmt;

use super::bits::Bits;
use super::containers::Allocation;
use super::pipeline::{Decision, FieldId, Pipeline, TableId};

/// Why a table comes behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DependenceKind {
    /// It writes what the earlier one reads.
    Reverse,
    /// How the earlier one ends decides whether it is applied.
    Control,
    /// It writes what the earlier one writes, too, or other fields of the same register.
    Write,
    /// Its actions read what the earlier one writes.
    Action,
    /// It looks up what the earlier one writes, or that decides whether it is applied.
    Match,
}

impl DependenceKind {
    /// How many stages later it lies at least.
    pub fn stages(self) -> u32 {
        match self {
            Self::Reverse | Self::Control => 0,
            Self::Write | Self::Action | Self::Match => 1,
        }
    }
}

impl fmt::Display for DependenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reverse => "reverse",
            Self::Control => "control",
            Self::Write => "write",
            Self::Action => "action",
            Self::Match => "match",
        })
    }
}

/// A table has to come behind another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The earlier table.
    pub from: TableId,
    /// The later one.
    pub to: TableId,
    /// Why, by the kind that costs most.
    pub kind: DependenceKind,
    /// The fields in question.
    pub fields: Vec<FieldId>,
}

/// What a table reads and writes.
struct Uses {
    matched: Bits,
    read: Bits,
    written: Bits,
    registers: Bits,
    /// Fields that decide about it and are read there first.
    conditions: Bits,
}

/// The dependences of a pipeline's tables, by the later table: at most one for each earlier table.
pub fn dependences(pipeline: &Pipeline, allocation: &Allocation) -> Vec<Vec<Dependence>> {
    let tables = &pipeline.tables;
    let mut asked: Vec<Vec<u32>> = vec![Vec::new(); pipeline.branches.len()];
    let uses: Vec<Uses> = tables
        .iter()
        .map(|table| {
            let index = |field: &FieldId| field.0 as usize;
            let actions = || table.actions.iter();
            let written = Bits::of(actions().flat_map(|action| action.writes.iter().map(index)));
            let registers = written.iter().flat_map(|at| allocation.of[at].iter());
            let registers = Bits::of(registers.map(|&register| register as usize));
            let mut conditions = Bits::default();
            for guard in &table.guards {
                let branch = guard.branch.0 as usize;
                if guard.arms.iter().all(|arm| asked[branch].contains(arm)) {
                    continue;
                }
                asked[branch].extend(&guard.arms);
                if let Decision::Fields(fields) = &pipeline.branches[branch].on {
                    fields.iter().for_each(|field| conditions.insert(index(field)));
                }
            }
            Uses {
                matched: Bits::of(table.keys.iter().map(|key| index(&key.field))),
                read: Bits::of(actions().flat_map(|action| action.reads.iter().map(index))),
                written,
                registers,
                conditions,
            }
        })
        .collect();
    let mut all: Vec<Vec<Dependence>> = Vec::with_capacity(tables.len());
    for (to, table) in tables.iter().enumerate() {
        let mut here = Vec::new();
        let later = &uses[to];
        let to_id = TableId(to as u32);
        for (from, earlier) in uses[..to].iter().enumerate() {
            let from_id = TableId(from as u32);
            if pipeline.exclusive(from_id, to_id) {
                continue;
            }
            // Decided by fields that the earlier table writes before they are read.
            let mut decided = Bits::default();
            let mut controlled = table.after.contains(&from_id);
            for guard in &table.guards {
                let branch = &pipeline.branches[guard.branch.0 as usize];
                match &branch.on {
                    Decision::Fields(fields) if from < branch.at as usize => fields
                        .iter()
                        .map(|field| field.0 as usize)
                        .filter(|at| earlier.written.contains(*at))
                        .for_each(|at| decided.insert(at)),
                    Decision::Fields(_) => {}
                    Decision::Outcome(by) => controlled |= *by == from_id,
                }
            }
            let both = |a: &Bits, b: &Bits| -> Vec<FieldId> {
                a.iter().filter(|at| b.contains(*at)).map(|at| FieldId(at as u32)).collect()
            };
            let found = if earlier.written.meets(&later.matched) || earlier.written.meets(&decided)
            {
                let mut looked_up = later.matched.clone();
                looked_up.add(&decided);
                Some((DependenceKind::Match, both(&looked_up, &earlier.written)))
            } else if earlier.written.meets(&later.read) {
                Some((DependenceKind::Action, both(&later.read, &earlier.written)))
            } else if earlier.registers.meets(&later.registers) {
                let shared = |at: &usize| {
                    allocation.of[*at].iter().any(|register| {
                        earlier.registers.contains(*register as usize)
                            && later.registers.contains(*register as usize)
                    })
                };
                let mut fields = earlier.written.clone();
                fields.add(&later.written);
                let fields = fields.iter().filter(shared).map(|at| FieldId(at as u32));
                Some((DependenceKind::Write, fields.collect()))
            } else if controlled {
                Some((DependenceKind::Control, Vec::new()))
            } else {
                let mut read = earlier.matched.clone();
                read.add(&earlier.read);
                read.add(&earlier.conditions);
                let fields = both(&read, &later.written);
                (!fields.is_empty()).then_some((DependenceKind::Reverse, fields))
            };
            if let Some((kind, fields)) = found {
                here.push(Dependence { from: from_id, to: to_id, kind, fields });
            }
        }
        all.push(here);
    }
    all
}
