//! Functions of several chains together.

use catena_codegen::stages::{
    Action, Field, FieldId, Hardware, Joint, Key, MatchKind, Member, Members, Pipeline, Table,
    place,
};
use fastrand::Rng;

use super::lemur::functions;
use super::{random, tofino};

fn device(name: &str) -> Option<Hardware> {
    Some(Hardware::known(name).expect("it is there"))
}

fn all(members: &Members) -> Vec<(usize, usize)> {
    (0..members.all.len()).map(|at| (0, at)).collect()
}

#[test]
fn eleven_nats_in_branches_fit_together() {
    let chain = functions(11);
    let joint = Joint::new(std::slice::from_ref(&chain), device("tofino-1"));
    let taken = joint.fit(&all(&chain)).expect("it fits");
    let stages = taken.stages.expect("it has stages");
    // What distinguishes chains, the filter, one table of all NATs, the router, and what sends on.
    assert!((4..=6).contains(&stages.0), "{stages:?}");
    // With one NAT on a core its tags count.
    let less: Vec<_> = all(&chain).into_iter().filter(|of| of.1 != 3).collect();
    assert_eq!(joint.fit(&less).map(|taken| taken.numbers.0), Ok(2));
}

#[test]
fn what_has_no_stage_is_named_with_what_needs_them() {
    // Each writes what the next one reads, and decides.
    let function = |at: usize| {
        let mut pipeline = Pipeline::default();
        let header = pipeline.field("h", 8, Some("h"));
        let drop = pipeline.field("drop", 3, Some("deparser"));
        let act = Action { writes: vec![header, drop], data: 8, ..Action::default() };
        let key = Key { field: header, kind: MatchKind::Exact };
        let name = format!("t{at}");
        pipeline.table(Table {
            name,
            keys: vec![key],
            actions: vec![act],
            entries: 9,
            ..Table::default()
        });
        Some(Member { name: format!("f{at} of c"), pipeline, numbers: 0, forks: false })
    };
    let chain = |count: usize| Members {
        all: (0..count).map(function).collect(),
        edges: (1..count).map(|to| (to - 1, to)).collect(),
    };
    let fit = |chains: &[Members], placed: &[(usize, usize)]| {
        let taken = Joint::new(chains, device("tofino-1")).fit(placed)?;
        Ok::<_, String>(taken.stages.map_or(0, |of| of.0))
    };
    // One behind the other, between what distinguishes packets and what sends them on.
    assert_eq!(fit(&[chain(10)], &all(&chain(10))), Ok(12));
    let why = fit(&[chain(11)], &all(&chain(11))).unwrap_err();
    assert_eq!(
        why,
        "no stage left: 13 of 12, needed by f0 of c, f1 of c, f2 of c, f3 of c and 7 more"
    );
    // Chains beside each other are in the same stages, and functions that are alike in one table.
    let both: Vec<_> = (0..2).flat_map(|chain| (0..10).map(move |at| (chain, at))).collect();
    assert_eq!(fit(&[chain(10), chain(10)], &both), Ok(12));
}

#[test]
fn chains_share_tables_that_are_there_as_long_as_these_have_room() {
    let member = |entries: u64| {
        let mut pipeline = Pipeline::default();
        let field = pipeline.field("ip_src", 32, None);
        let keys = vec![Key { field, kind: MatchKind::Ternary }];
        pipeline.table(Table {
            name: "0".into(),
            keys,
            entries,
            counters: true,
            ..Table::default()
        });
        let pipeline = Some(Member { name: "ACL".into(), pipeline, numbers: 0, forks: false });
        Members { all: vec![pipeline], edges: Vec::new() }
    };
    let fit = |device_name: &str, entries: u64| {
        Joint::new(&[member(entries), member(300)], device(device_name)).fit(&[(0, 0), (1, 0)])
    };
    // One table with 512 rules of IPv4.
    let taken = fit("hp-5130", 200).expect("they fit");
    assert_eq!(taken.tables, Some((1, 1)));
    let why = fit("hp-5130", 213).unwrap_err();
    assert!(why.contains("513 of 512 entries"), "{why}");
    // 55 tables of 4,096.
    assert_eq!(fit("noviflow-1132", 3796).map(|taken| taken.tables), Ok(Some((1, 55))));
    assert_eq!(fit("noviflow-1132", 3797).map(|taken| taken.tables), Ok(Some((2, 55))));
}

/// Functions at random in chains at random: joined, they are well formed, and take no fewer stages than any of them.
#[test]
fn no_fewer_stages_than_each_function_needs() {
    let mut random = Rng::with_seed(21);
    let tofino = tofino();
    for round in 0..300 {
        let mut chains = Vec::new();
        for chain in 0..random.usize(1..4) {
            let mut members = Members::default();
            for at in 0..random.usize(1..5) {
                let count = random.usize(1..6);
                let mut pipeline = random::pipeline(&mut random, count, 900);
                for (number, field) in pipeline.fields.iter_mut().enumerate() {
                    *field = Field { name: format!("meta{number}"), header: None, ..field.clone() };
                }
                // Tables that do nothing are left out.
                let fields = pipeline.fields.len() as u32;
                for table in &mut pipeline.tables {
                    table.counters = true;
                    let writes = vec![FieldId(random.u32(..fields))];
                    table.actions.push(Action { writes, ..Action::default() });
                }
                let name = format!("{at} of {chain}");
                let (numbers, forks) = (random.usize(..3), random.bool());
                let member = Member { name, pipeline, numbers, forks };
                members.all.push((random.u8(..5) > 0).then_some(member));
                if at > 0 {
                    members.edges.push((random.usize(..at), at));
                }
            }
            chains.push(members);
        }
        let joint = Joint::new(&chains, device("tofino-1"));
        for _ in 0..4 {
            let mut placed = Vec::new();
            let mut deepest = 0;
            for (chain, members) in chains.iter().enumerate() {
                for (at, member) in members.all.iter().enumerate() {
                    let Some(member) = member.as_ref().filter(|_| random.bool()) else { continue };
                    placed.push((chain, at));
                    let alone = place(&member.pipeline, &tofino);
                    deepest = deepest.max(alone.map_or(0, |alone| alone.depth as usize));
                }
            }
            let fit = joint.fit(&placed);
            assert_eq!(joint.holds(&placed), fit.is_ok(), "{round}");
            match fit {
                Ok(taken) => assert!(taken.stages.is_some_and(|of| of.0 >= deepest), "{round}"),
                Err(why) => assert!(why.starts_with("no "), "{round}: {why}"),
            }
        }
    }
}
