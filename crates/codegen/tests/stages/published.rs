//! Pipelines that were published, with the stages that they took.
//!
//! Tables, keys, sizes and fields are written by hand: after the chains of Lemur (chapter 2 of Wang's dissertation, 2023)
//! and the P4 program that it published for four of them (`src/expected_optimal.p4`).

use catena_codegen::stages::{Pipeline, Stages, Table, place, simplified};

use super::checker::check;
use super::lemur::{action, four_chains, four_chains_in_one, nats, nats_in_one};
use super::tofino;

/// Places a pipeline: stages, and what dependences ask for.
fn stages(pipeline: &Pipeline, tofino: &Stages) -> (u32, u32) {
    let placement = place(pipeline, tofino).unwrap_or_else(|why| panic!("{}", why.said(pipeline)));
    check(pipeline, tofino, &placement).unwrap();
    (placement.stages, placement.depth)
}

#[test]
fn four_chains_as_published_take_seven_stages_or_one_more() {
    let (stages, depth) = stages(&four_chains(), &tofino());
    // Tofino's compiler: 7.
    assert!((7..=8).contains(&stages), "{stages} stages, {depth} by dependences");
}

#[test]
fn ten_nats_as_published_take_twelve_stages_or_one_more() {
    // Tofino's compiler: ten in 12, and not eleven.
    let (ten, depth) = stages(&nats(10), &tofino());
    assert!((12..=13).contains(&ten), "{ten} stages, {depth} by dependences");
    let (eleven, _) = stages(&nats(11), &tofino());
    assert!(eleven > 12, "{eleven} stages");
}

#[test]
fn eleven_nats_are_one_table_and_fit_six_stages() {
    let one = simplified(&nats_in_one(11));
    assert_eq!(one.tables.len(), 3, "{one:#?}");
    assert_eq!(one.tables[1].entries, 22_000);
    let (all, depth) = stages(&one, &tofino());
    assert!(all <= 6, "{all} stages, {depth} by dependences");
}

#[test]
fn four_chains_fit_five_stages() {
    let (all, depth) = stages(&four_chains_in_one(), &tofino());
    assert!(all <= 5, "{all} stages, {depth} by dependences");
}

#[test]
fn eight_tables_that_write_bytes_of_one_header_take_four_stages() {
    let mut all = Pipeline::default();
    for at in 0..8 {
        let field = all.field(&format!("h.f{at}"), 8, Some("h"));
        all.table(Table {
            name: format!("t{at}"),
            actions: vec![action(&[], &[field], 8)],
            ..Table::default()
        });
    }
    assert_eq!(stages(&all, &tofino()), (4, 4));
}
