//! Fewer tables that do the same.

use super::bits::Bits;
use super::containers::Allocation;
use super::dependence::dependences;
use super::pipeline::{
    Action, Branch, Decision, FieldId, Key, MatchKind, Pipeline, Table, TableId,
};

/// Leaves out tables that do nothing, and makes one table of those of exclusive arms that have one shape: the arm
/// becomes a part of its key.
///
/// Tables are numbered anew. Entries of a table that was merged are those of all its parts, each with the numbers of
/// its arm.
pub fn simplified(pipeline: &Pipeline) -> Pipeline {
    let mut simple = without_idle(pipeline);
    while let Some((into, from)) = pair(&simple) {
        simple = merged(&simple, into, from);
    }
    simple
}

/// A number for each table that is kept.
fn renumbered(kept: &[bool]) -> Vec<u32> {
    let mut next = 0;
    kept.iter()
        .map(|kept| {
            let number = next;
            next += u32::from(*kept);
            number
        })
        .collect()
}

/// The pipeline with its tables in another order; each table's number becomes `number[table]`.
fn with_tables(pipeline: &Pipeline, tables: Vec<Table>, number: &[u32], at: &[u32]) -> Pipeline {
    let renumber = |table: &TableId| TableId(number[table.0 as usize]);
    let mut new = Pipeline { fields: pipeline.fields.clone(), tables, branches: Vec::new() };
    for (branch, &at) in pipeline.branches.iter().zip(at) {
        let on = match &branch.on {
            Decision::Fields(fields) => Decision::Fields(fields.clone()),
            Decision::Outcome(table) => Decision::Outcome(renumber(table)),
        };
        new.branches.push(Branch { at, on });
    }
    for table in &mut new.tables {
        table.after = table.after.iter().map(renumber).collect();
        table.after.sort_unstable();
        table.after.dedup();
    }
    new
}

fn without_idle(pipeline: &Pipeline) -> Pipeline {
    let decides = |at: usize| {
        let by = |table: &TableId| table.0 as usize == at;
        pipeline.branches.iter().any(|b| matches!(&b.on, Decision::Outcome(table) if by(table)))
            || pipeline.tables.iter().any(|table| table.after.iter().any(by))
    };
    let kept: Vec<bool> = pipeline
        .tables
        .iter()
        .enumerate()
        .map(|(at, table)| !table.is_idle() || decides(at))
        .collect();
    let number = renumbered(&kept);
    let count = kept.iter().filter(|kept| **kept).count() as u32;
    let tables =
        pipeline.tables.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(t, _)| t.clone());
    let at = |at: u32| number.get(at as usize).copied().unwrap_or(count);
    let at: Vec<u32> = pipeline.branches.iter().map(|branch| at(branch.at)).collect();
    with_tables(pipeline, tables.collect(), &number, &at)
}

/// The branch on fields whose arms tell two tables apart, if nothing else does.
fn apart(pipeline: &Pipeline, a: &Table, b: &Table) -> Option<usize> {
    let mut found = None;
    if a.guards.len() != b.guards.len() || a.after != b.after {
        return None;
    }
    for (one, other) in a.guards.iter().zip(&b.guards) {
        if one == other {
            continue;
        }
        let on_fields = |branch: usize| matches!(pipeline.branches[branch].on, Decision::Fields(_));
        let branch = one.branch.0 as usize;
        let disjoint = !one.arms.iter().any(|arm| other.arms.contains(arm));
        if one.branch != other.branch || !disjoint || !on_fields(branch) || found.is_some() {
            return None;
        }
        found = Some(branch);
    }
    found
}

/// What tables are compared by.
fn shape(pipeline: &Pipeline, table: &Table, branch: usize) -> (Vec<Key>, Vec<Action>, bool, bool) {
    let mut keys = table.keys.clone();
    // The arm may be in the key already, of tables that were merged.
    if let Decision::Fields(fields) = &pipeline.branches[branch].on {
        keys.retain(|key| !fields.contains(&key.field));
    }
    keys.sort_unstable();
    let sorted = |mut fields: Vec<FieldId>| {
        fields.sort_unstable();
        fields.dedup();
        fields
    };
    let mut actions: Vec<Action> = table
        .actions
        .iter()
        .map(|action| Action {
            name: String::new(),
            reads: sorted(action.reads.clone()),
            writes: sorted(action.writes.clone()),
            data: action.data,
        })
        .collect();
    actions.sort_by(|a, b| (&a.writes, &a.reads, a.data).cmp(&(&b.writes, &b.reads, b.data)));
    actions.dedup();
    (keys, actions, table.counters, table.meters)
}

/// Two tables that may be one.
fn pair(pipeline: &Pipeline) -> Option<(usize, usize)> {
    let tables = &pipeline.tables;
    let allocation = Allocation {
        of: (0..pipeline.fields.len() as u32).map(|field| vec![field]).collect(),
        taken: Vec::new(),
    };
    let all = dependences(pipeline, &allocation);
    // By table: all that it comes behind.
    let mut behind: Vec<Bits> = Vec::with_capacity(tables.len());
    for of in &all {
        let mut here = Bits::default();
        for dependence in of {
            here.insert(dependence.from.0 as usize);
            here.add(&behind[dependence.from.0 as usize]);
        }
        behind.push(here);
    }
    let decides = |at: usize| {
        let by = |table: &TableId| table.0 as usize == at;
        pipeline.branches.iter().any(|b| matches!(&b.on, Decision::Outcome(table) if by(table)))
            || tables.iter().any(|table| table.after.iter().any(by))
    };
    for into in 0..tables.len() {
        for from in into + 1..tables.len() {
            let Some(branch) = apart(pipeline, &tables[into], &tables[from]) else { continue };
            let same =
                shape(pipeline, &tables[into], branch) == shape(pipeline, &tables[from], branch);
            // A table that something is between cannot be applied where the other is. What the arm is read from
            // has to be as it was at the branch.
            let fields = match &pipeline.branches[branch].on {
                Decision::Fields(fields) => fields,
                Decision::Outcome(_) => continue,
            };
            let at = pipeline.branches[branch].at as usize;
            let changed = tables[at.min(from)..from].iter().any(|table| {
                table.actions.iter().flat_map(|action| &action.writes).any(|w| fields.contains(w))
            });
            if same && !behind[from].contains(into) && !changed && !decides(into) && !decides(from)
            {
                return Some((into, from));
            }
        }
    }
    None
}

/// Makes one table of two.
fn merged(pipeline: &Pipeline, into: usize, from: usize) -> Pipeline {
    let (a, b) = (&pipeline.tables[into], &pipeline.tables[from]);
    let Some(branch) = apart(pipeline, a, b) else { return pipeline.clone() };
    let Decision::Fields(fields) = &pipeline.branches[branch].on else { return pipeline.clone() };
    let mut one = a.clone();
    if !one.name.contains(&b.name) {
        one.name = format!("{}+{}", a.name, b.name);
    }
    if !one.origin.contains(&b.origin) {
        one.origin = format!("{}, {}", a.origin, b.origin);
    }
    one.entries = a.entries.max(1).saturating_add(b.entries.max(1));
    for guard in &mut one.guards {
        if guard.branch.0 as usize == branch {
            let other = b.guards.iter().find(|other| other.branch == guard.branch);
            guard.arms.extend(other.iter().flat_map(|other| &other.arms));
            guard.arms.sort_unstable();
        }
    }
    for field in fields {
        if !one.keys.iter().any(|key| key.field == *field) {
            one.keys.push(Key { field: *field, kind: MatchKind::Exact });
        }
    }
    // Tables between them that the second comes behind move in front of the first.
    let n = pipeline.tables.len();
    let allocation = Allocation {
        of: (0..pipeline.fields.len() as u32).map(|field| vec![field]).collect(),
        taken: Vec::new(),
    };
    let all = dependences(pipeline, &allocation);
    let mut needed = vec![false; n];
    needed[from] = true;
    for at in (into + 1..=from).rev() {
        if needed[at] {
            all[at].iter().for_each(|d| needed[d.from.0 as usize] = true);
        }
    }
    let moved = (into + 1..from).filter(|&at| needed[at]);
    let stay = (into + 1..from).filter(|&at| !needed[at]);
    let order: Vec<usize> =
        (0..into).chain(moved).chain([into]).chain(stay).chain(from + 1..n).collect();
    let mut number = vec![0; n];
    order.iter().zip(0..).for_each(|(&old, new)| number[old] = new);
    number[from] = number[into];
    let tables = order.iter().map(|&old| match old == into {
        true => one.clone(),
        false => pipeline.tables[old].clone(),
    });
    // A branch stays behind those that write what it depends on, and in front of what is in its arms.
    let at = |(index, branch): (usize, &Branch)| {
        let fields = match &branch.on {
            Decision::Outcome(table) => return number[table.0 as usize] + 1,
            Decision::Fields(fields) => fields,
        };
        let before = 0..branch.at as usize;
        let writes = |old: &usize| {
            let mut written =
                pipeline.tables[*old].actions.iter().flat_map(|action| &action.writes);
            written.any(|field| fields.contains(field))
        };
        let inside = |old: &usize| {
            pipeline.tables[*old].guards.iter().any(|guard| guard.branch.0 as usize == index)
        };
        let behind = before.filter(writes).map(|old| number[old] + 1).max().unwrap_or(0);
        (0..n).filter(inside).map(|old| number[old]).min().map_or(behind, |first| behind.min(first))
    };
    let at: Vec<u32> = pipeline.branches.iter().enumerate().map(at).collect();
    with_tables(pipeline, tables.collect(), &number, &at)
}
