//! Pipelines that were published, with the stages that they took.
//!
//! Tables, keys, sizes and fields are written by hand: after the chains of Lemur (chapter 2 of Wang's dissertation, 2023)
//! and the P4 program that it published for four of them (`src/expected_optimal.p4`).

use catena_codegen::stages::{Decision, MatchKind, Pipeline, Stages, Table, place, simplified};

use super::checker::check;
use super::lemur::{Lemur, action, nats, nats_in_one};
use super::tofino;

use MatchKind::{Exact, Lpm, Ternary};

/// Places a pipeline: stages, and what dependences ask for.
fn stages(pipeline: &Pipeline, tofino: &Stages) -> (u32, u32) {
    let placement = place(pipeline, tofino).unwrap_or_else(|why| panic!("{}", why.said(pipeline)));
    check(pipeline, tofino, &placement).unwrap();
    (placement.stages, placement.depth)
}

/// The program that Lemur published for four chains: Limiter -> NAT, Encrypt -> Tunnel, Limiter -> ACL, and
/// Detunnel -> Decrypt, each to IPv4Fwd. What is encrypted or limited runs on cores.
fn four_chains() -> Pipeline {
    let mut lemur = Lemur::new();
    lemur.begin();
    let arms = lemur.branch(&["spi", "si", "drop", "controller"]);
    lemur.arm(arms, &[0], |lemur| {
        lemur.initialise(&[]);
        let vlan = lemur.branch(&["vlan.valid"]);
        lemur.arm(vlan, &[1], |lemur| {
            let pop = lemur.act(&["vlan.type"], &["eth.type", "vlan.valid"], 0);
            lemur.table("detunnel", &[], vec![pop], 0);
        });
        lemur.next();
    });
    lemur.arm(arms, &[1], Lemur::forward);
    lemur.arm(arms, &[2], |lemur| {
        lemur.initialise(&[]);
        let hit = lemur.act(&[], &["acl_miss"], 0);
        let miss = lemur.act(&[], &["acl_miss", "drop"], 0);
        let keys =
            [("ip.src", Ternary), ("ip.dst", Ternary), ("tcp.src", Ternary), ("tcp.dst", Ternary)];
        lemur.table("acl", &keys, vec![hit, miss], 50);
        lemur.forward();
    });
    lemur.arm(arms, &[3], |lemur| {
        lemur.initialise(&[]);
        let push =
            lemur.act(&["eth.type"], &["vlan.valid", "vlan.tci", "vlan.type", "eth.type"], 16);
        lemur.table("tunnel", &[], vec![push], 0);
        lemur.forward();
    });
    lemur.arm(arms, &[4], |lemur| {
        lemur.initialise(&[]);
        lemur.nat();
        lemur.forward();
    });
    lemur.end();
    lemur.all
}

/// The four chains as one would lower them: one table that steers, what NFs write comes from entries, one table of
/// routes behind all arms, and tags that are pushed beside it.
fn four_chains_in_one() -> Pipeline {
    let mut lemur = Lemur::new();
    let arm = lemur.all.field("arm", 8, None);
    let steer = action(&[], &[arm], 8);
    lemur.table(
        "steer",
        &[("nsh.valid", Ternary), ("nsh.spi", Ternary), ("nsh.si", Ternary), ("ip.dst", Ternary)],
        vec![steer],
        20,
    );
    let arms = lemur.all.branch(Decision::Fields(vec![arm]));
    lemur.arm(arms, &[0], |lemur| {
        let pop = lemur.act(&["vlan.type"], &["eth.type", "vlan.valid"], 0);
        lemur.table("detunnel", &[], vec![pop], 0);
    });
    lemur.arm(arms, &[1], |lemur| {
        let keys =
            [("ip.src", Ternary), ("ip.dst", Ternary), ("tcp.src", Ternary), ("tcp.dst", Ternary)];
        let drop = lemur.act(&[], &["discard"], 0);
        lemur.table("acl", &keys, vec![drop], 50);
    });
    lemur.arm(arms, &[2], |lemur| {
        let push =
            lemur.act(&["eth.type"], &["vlan.valid", "vlan.tci", "vlan.type", "eth.type"], 16);
        lemur.table("tunnel", &[], vec![push], 0);
    });
    lemur.arm(arms, &[3], |lemur| {
        let out = lemur.act(&[], &["ip.src", "tcp.src"], 48);
        let back = lemur.act(&[], &["ip.dst", "tcp.dst"], 48);
        let five = ["ip.src", "ip.dst", "ip.proto", "tcp.src", "tcp.dst"].map(|name| (name, Exact));
        lemur.table("nat", &five, vec![out, back], 2000);
    });
    lemur.arm(arms, &[1, 2, 3, 4], |lemur| {
        let hit = lemur.act(&[], &["eth.src", "eth.dst", "egress"], 105);
        lemur.table("forward", &[("ip.dst", Lpm)], vec![hit], 5000);
    });
    lemur.arm(arms, &[0, 5], |lemur| {
        let nsh = ["nsh.valid", "nsh.proto", "nsh.spi", "nsh.si", "eth.type", "egress"];
        let push = lemur.act(&[], &nsh, 32);
        lemur.table("encapsulate", &[], vec![push], 0);
    });
    lemur.all
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
