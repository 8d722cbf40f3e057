//! A check of placements that shares no code with what makes them.

use std::collections::{BTreeMap, BTreeSet};

use catena_codegen::stages::{
    Allocation, Decision, FieldId, MatchKind, Pipeline, Placement, Resource, Stages, Table, TableId,
};

/// Whether no packet meets both tables.
fn exclusive(a: &Table, b: &Table) -> bool {
    a.guards.iter().any(|x| {
        b.guards
            .iter()
            .any(|y| x.branch == y.branch && x.arms.iter().all(|arm| !y.arms.contains(arm)))
    })
}

fn writes(table: &Table) -> BTreeSet<FieldId> {
    table.actions.iter().flat_map(|action| action.writes.iter().copied()).collect()
}

/// How many stages behind another a table has to lie; `None` if it does not matter.
fn distance(pipeline: &Pipeline, registers: &Allocation, from: usize, to: usize) -> Option<u32> {
    let (a, b) = (&pipeline.tables[from], &pipeline.tables[to]);
    if exclusive(a, b) {
        return None;
    }
    let written = writes(a);
    let mut reads: BTreeSet<FieldId> = b.keys.iter().map(|key| key.field).collect();
    reads.extend(b.actions.iter().flat_map(|action| &action.reads));
    let mut control = b.after.contains(&TableId(from as u32));
    for guard in &b.guards {
        let branch = &pipeline.branches[guard.branch.0 as usize];
        match &branch.on {
            Decision::Fields(fields) if (from as u32) < branch.at => reads.extend(fields),
            Decision::Fields(_) => {}
            Decision::Outcome(table) => control |= table.0 as usize == from,
        }
    }
    let registers = |table: &Table| -> BTreeSet<u32> {
        writes(table).iter().flat_map(|field| registers.of[field.0 as usize].clone()).collect()
    };
    if !written.is_disjoint(&reads) || !registers(a).is_disjoint(&registers(b)) {
        return Some(1);
    }
    let mut earlier: BTreeSet<FieldId> = a.keys.iter().map(|key| key.field).collect();
    earlier.extend(a.actions.iter().flat_map(|action| &action.reads));
    for guard in &a.guards {
        let asked = pipeline.tables[..from].iter().flat_map(|t| &t.guards);
        let before: BTreeSet<u32> =
            asked.filter(|g| g.branch == guard.branch).flat_map(|g| g.arms.clone()).collect();
        if let Decision::Fields(fields) = &pipeline.branches[guard.branch.0 as usize].on
            && guard.arms.iter().any(|arm| !before.contains(arm))
        {
            earlier.extend(fields);
        }
    }
    (control || !earlier.is_disjoint(&writes(b))).then_some(0)
}

/// What a part of a table takes of a stage, without the crossbar.
fn demand(
    pipeline: &Pipeline,
    table: &Table,
    entries: u64,
    stages: &Stages,
) -> BTreeMap<Resource, u64> {
    let mut all = BTreeMap::from([(Resource::Tables, 1)]);
    let keys: BTreeMap<FieldId, MatchKind> =
        table.keys.iter().rev().map(|key| (key.field, key.kind)).collect();
    let width = |field: &FieldId| u64::from(pipeline.fields[field.0 as usize].bits);
    let acting = table.actions.iter().filter(|action| !action.writes.is_empty()).count() as u64;
    all.insert(Resource::Instructions, acting);
    let data = table.actions.iter().map(|action| u64::from(action.data)).max().unwrap_or(0);
    let inside = data <= u64::from(stages.immediate_bits);
    let rows = u64::from(stages.sram.rows);
    let entries = if keys.is_empty() { 1 } else { entries };
    let (mut sram, mut maps) = (0, 0);
    if keys.values().any(|kind| *kind != MatchKind::Exact) {
        let bits: u64 = keys
            .iter()
            .map(|(f, kind)| width(f) * (1 + u64::from(*kind == MatchKind::Range)))
            .sum();
        let wide = bits.div_ceil(u64::from(stages.tcam.bits));
        all.insert(Resource::TernaryTables, 1);
        all.insert(Resource::Tcam, wide * entries.div_ceil(u64::from(stages.tcam.rows)));
        let bytes: u64 = keys.keys().map(|field| width(field).div_ceil(8)).sum();
        all.insert(
            Resource::TernaryGroups,
            wide.min(bytes.div_ceil(u64::from(stages.ternary_group_bytes))),
        );
        if acting > 1 || data > 0 {
            sram += entries.div_ceil(2 * rows);
        }
    } else if !keys.is_empty() {
        all.insert(Resource::HashGroups, 1);
        let choice = u64::from(usize::BITS - table.actions.len().leading_zeros());
        let entry =
            keys.keys().map(width).sum::<u64>() + 4 + choice + if inside { data } else { 17 };
        let row = u64::from(stages.sram.bits);
        let formats = (1..=8u64).filter(|wide| wide * row >= entry);
        let blocks = |wide: u64| {
            let in_row = wide * row / entry;
            let full = in_row * rows * u64::from(stages.hash_occupancy);
            wide * (entries * 100).div_ceil(full).max(u64::from(stages.hash_ways))
        };
        // The format holds most entries in a block.
        let best = formats.max_by(|a, b| {
            let (x, y) = ((a * row / entry) * b, (b * row / entry) * a);
            x.cmp(&y).then(b.cmp(a))
        });
        sram += blocks(best.unwrap_or_else(|| entry.div_ceil(row)));
    }
    if !inside && !keys.is_empty() {
        let mut piece = 8;
        while piece < data {
            piece *= 2;
        }
        let row = u64::from(stages.sram.bits);
        sram += match piece <= row {
            true => entries.div_ceil(rows * (row / piece)),
            false => entries.div_ceil(rows) * piece.div_ceil(row),
        };
    }
    if table.counters {
        all.insert(Resource::Statistics, 1);
        maps += entries.div_ceil(2 * rows) + 1;
    }
    if table.meters {
        all.insert(Resource::Meters, 1);
        maps += entries.div_ceil(rows) + 1;
    }
    all.insert(Resource::Sram, sram + maps);
    all.insert(Resource::MapRams, maps);
    all
}

/// Fields that a table sees on the exact crossbar.
fn seen(pipeline: &Pipeline, table: &Table) -> BTreeSet<FieldId> {
    let mut all = BTreeSet::new();
    if table.keys.iter().all(|key| key.kind == MatchKind::Exact) {
        all.extend(table.keys.iter().map(|key| key.field));
    }
    for guard in &table.guards {
        if let Decision::Fields(fields) = &pipeline.branches[guard.branch.0 as usize].on {
            all.extend(fields);
        }
    }
    all
}

/// Whether tables with all their entries fit a stage together.
pub(crate) fn fit(
    pipeline: &Pipeline,
    stages: &Stages,
    here: &[(TableId, u64)],
) -> Result<(), String> {
    let mut all: BTreeMap<Resource, u64> = BTreeMap::new();
    let mut fields = BTreeSet::new();
    for (table, entries) in here {
        let table = &pipeline.tables[table.0 as usize];
        for (resource, amount) in demand(pipeline, table, *entries, stages) {
            *all.entry(resource).or_default() += amount;
        }
        fields.extend(seen(pipeline, table));
    }
    let bytes = fields.iter().map(|f| u64::from(pipeline.fields[f.0 as usize].bits.div_ceil(8)));
    all.insert(Resource::ExactCrossbar, bytes.sum());
    match all.iter().find(|(resource, amount)| **amount > u64::from(resource.of(stages))) {
        Some((resource, amount)) => Err(format!("{amount} {resource}")),
        None => Ok(()),
    }
}

/// Whether tables may lie in these stages, the first and the last of each.
pub(crate) fn ordered(
    pipeline: &Pipeline,
    registers: &Allocation,
    at: &[(u32, u32)],
) -> Result<(), String> {
    for to in 0..at.len() {
        for from in 0..to {
            if let Some(distance) = distance(pipeline, registers, from, to)
                && at[from].1 + distance > at[to].0
            {
                return Err(format!("table {to} is not {distance} behind table {from}: {at:?}"));
            }
        }
    }
    Ok(())
}

/// Whether a placement is right.
pub(crate) fn check(
    pipeline: &Pipeline,
    stages: &Stages,
    placement: &Placement,
) -> Result<(), String> {
    let registers =
        Allocation::new(pipeline, stages).map_err(|left| format!("{left} bits are left"))?;
    let mut at = vec![(u32::MAX, 0); pipeline.tables.len()];
    let mut entries = vec![0; pipeline.tables.len()];
    let mut by_stage: BTreeMap<u32, Vec<(TableId, u64)>> = BTreeMap::new();
    for part in &placement.parts {
        let table = part.table.0 as usize;
        at[table] = (at[table].0.min(part.stage), at[table].1.max(part.stage));
        entries[table] += part.entries;
        let here = by_stage.entry(part.stage).or_default();
        if here.iter().any(|(other, _)| *other == part.table) {
            return Err(format!("table {table} is twice in stage {}", part.stage));
        }
        here.push((part.table, part.entries));
    }
    for (table, entries) in pipeline.tables.iter().zip(&entries) {
        let all = if table.keys.is_empty() { 1 } else { table.entries.max(1) };
        if *entries != all {
            return Err(format!("{}: {entries} of {all} entries are placed", table.name));
        }
    }
    ordered(pipeline, &registers, &at)?;
    for (stage, here) in &by_stage {
        fit(pipeline, stages, here).map_err(|why| format!("stage {stage}: {why}"))?;
    }
    let end = at.iter().map(|at| at.1 + 1).max().unwrap_or(0);
    match end == placement.stages && placement.bound <= end && placement.depth <= placement.bound {
        true => Ok(()),
        false => Err(format!(
            "{end} stages are taken, {} and {} are told",
            placement.stages, placement.bound
        )),
    }
}
