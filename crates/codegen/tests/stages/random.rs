//! Pipelines put together at random.

use catena_codegen::stages::{
    Action, Allocation, Decision, FieldId, Guard, Key, MatchKind, Pipeline, Stages, Table, TableId,
    dependences, place, simplified,
};
use fastrand::Rng;

use super::checker::{check, fit, ordered};
use super::tofino;

pub(super) fn pipeline(random: &mut Rng, tables: usize, entries: u64) -> Pipeline {
    let mut all = Pipeline::default();
    for at in 0..random.usize(3..16) {
        let bits = random.choice([1, 3, 8, 8, 9, 16, 32, 48, 128]).unwrap();
        let header = random.choice([None, Some("a"), Some("b")]).unwrap();
        all.field(&format!("f{at}"), bits, header);
    }
    let count = all.fields.len() as u32;
    for at in 0..tables {
        if random.u8(..4) == 0 {
            let on = match random.bool() && at > 0 {
                true => Decision::Outcome(TableId(random.u32(..at as u32))),
                false => Decision::Fields(vec![FieldId(random.u32(..count))]),
            };
            all.branch(on);
        }
        let fields = |random: &mut Rng, most: usize| -> Vec<FieldId> {
            (0..random.usize(..=most)).map(|_| FieldId(random.u32(..count))).collect()
        };
        let kinds = [
            MatchKind::Exact,
            MatchKind::Exact,
            MatchKind::Exact,
            MatchKind::Lpm,
            MatchKind::Ternary,
        ];
        let kind = random.choice(kinds).unwrap();
        let keys = fields(random, 3).into_iter().map(|field| Key { field, kind }).collect();
        let action = |random: &mut Rng| Action {
            name: "act".into(),
            reads: fields(random, 1),
            writes: fields(random, 2),
            data: random.choice([0, 8, 32, 48, 200]).unwrap(),
        };
        let actions = (0..random.usize(..3)).map(|_| action(random)).collect();
        let mut guards: Vec<Guard> = Vec::new();
        for (number, _) in (0..).zip(&all.branches) {
            if random.u8(..3) == 0 {
                let arms = vec![random.u32(..3)];
                guards.push(Guard { branch: catena_codegen::stages::BranchId(number), arms });
            }
        }
        let after = match at > 0 && random.u8(..6) == 0 {
            true => vec![TableId(random.u32(..at as u32))],
            false => Vec::new(),
        };
        all.table(Table {
            name: format!("t{at}"),
            origin: format!("line {at}"),
            keys,
            actions,
            entries: random.u64(..entries),
            guards,
            after,
            counters: random.u8(..4) == 0,
            meters: random.u8(..8) == 0,
        });
    }
    assert_eq!(all.check(), Ok(()));
    all
}

#[test]
fn placements_respect_dependences_and_room() {
    let stages = tofino();
    let mut placed = 0;
    for seed in 0..400 {
        let random = &mut Rng::with_seed(seed);
        let tables = random.usize(1..40);
        let all = pipeline(random, tables, 20_000);
        let Ok(placement) = place(&all, &stages) else { continue };
        placed += 1;
        check(&all, &stages, &placement)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}\n{all:#?}"));
        assert_eq!(
            place(&all, &stages).as_ref(),
            Ok(&placement),
            "seed {seed}: it depends on more than the pipeline"
        );
        for (table, place) in placement.places.iter().enumerate() {
            // Whatever lies in one stage, and not in the first, has a reason to.
            let behind = place
                .depends
                .as_ref()
                .map(|d| placement.places[d.from.0 as usize].last + d.kind.stages());
            let bound = behind == Some(place.first) || place.lacks.is_some() || place.first == 0;
            assert!(
                bound || place.first < place.last,
                "seed {seed}: table {table} could lie earlier"
            );
        }
        let short = simplified(&all);
        assert_eq!(short.check(), Ok(()), "seed {seed}");
        let placement = place(&short, &stages)
            .unwrap_or_else(|why| panic!("seed {seed}: {}", why.said(&short)));
        check(&short, &stages, &placement)
            .unwrap_or_else(|why| panic!("seed {seed}, simplified: {why}"));
    }
    assert!(placed > 300, "{placed} are placed");
}

/// The fewest stages, by trying all.
fn best(pipeline: &Pipeline, stages: &Stages, most: u32) -> u32 {
    let registers = Allocation::new(pipeline, stages).unwrap();
    let n = pipeline.tables.len();
    let mut best = most;
    for code in 0..u64::from(most).pow(n as u32) {
        let at: Vec<u32> = (0..n as u32)
            .map(|i| (code / u64::from(most).pow(i) % u64::from(most)) as u32)
            .collect();
        let end = at.iter().max().map_or(0, |last| last + 1);
        if end >= best {
            continue;
        }
        let pairs: Vec<(u32, u32)> = at.iter().map(|stage| (*stage, *stage)).collect();
        let fits = (0..end).all(|stage| {
            let here: Vec<(TableId, u64)> = (0..n)
                .filter(|&table| at[table] == stage)
                .map(|table| (TableId(table as u32), pipeline.tables[table].entries.max(1)))
                .collect();
            fit(pipeline, stages, &here).is_ok()
        });
        if fits && ordered(pipeline, &registers, &pairs).is_ok() {
            best = end;
        }
    }
    best
}

#[test]
fn tiny_pipelines_take_as_few_stages_as_any_placement() {
    // Little of everything, so that room matters.
    let mut stages = tofino();
    (stages.tables, stages.sram.blocks, stages.tcam.blocks, stages.hash_groups) = (3, 16, 6, 2);
    let mut longer = 0;
    for seed in 0..200 {
        let random = &mut Rng::with_seed(seed);
        let tables = random.usize(2..6);
        let all = pipeline(random, tables, 3000);
        let Ok(placement) = place(&all, &stages) else { continue };
        check(&all, &stages, &placement).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        // Tables of more than a stage cannot be placed whole.
        let whole =
            all.tables.iter().zip(0..).all(|(table, at)| {
                fit(&all, &stages, &[(TableId(at), table.entries.max(1))]).is_ok()
            });
        if whole {
            let best = best(&all, &stages, placement.stages);
            assert_eq!(best, placement.stages, "seed {seed}");
            longer += u32::from(best > placement.depth);
        }
    }
    assert!(longer > 10, "room matters for {longer} of them only");
}

#[test]
fn dependences_are_those_of_the_fields() {
    let mut all = Pipeline::default();
    let [x, y, z] = ["x", "y", "z"].map(|name| all.field(name, 32, None));
    let table = |name: &str, key: FieldId, reads: &[FieldId], writes: &[FieldId]| Table {
        name: name.into(),
        keys: vec![Key { field: key, kind: MatchKind::Exact }],
        actions: vec![Action {
            name: "act".into(),
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            data: 0,
        }],
        entries: 1,
        ..Table::default()
    };
    all.table(table("a", x, &[], &[y]));
    all.table(table("match", y, &[], &[]));
    all.table(table("action", x, &[y], &[z]));
    all.table(table("write", x, &[], &[y]));
    all.table(table("reverse", x, &[], &[x]));
    let registers = Allocation::new(&all, &tofino()).unwrap();
    let found = dependences(&all, &registers);
    let on_a: Vec<String> = found
        .iter()
        .flat_map(|all| all.iter().filter(|d| d.from == TableId(0)))
        .map(|d| {
            format!("{} {} {}", all.tables[d.to.0 as usize].name, d.kind, all.name(d.fields[0]))
        })
        .collect();
    assert_eq!(on_a, ["match match y", "action action y", "write write y", "reverse reverse x"]);
    assert_eq!(place(&all, &tofino()).unwrap().stages, 3);
}
