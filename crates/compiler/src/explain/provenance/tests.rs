use ir::field::{eth, ip, meta};
use ir::model::Rule;
use ir::program::{End, Exit, StepId};
use ir::{Cond, Edge, Expr, FileId, Graph, IntervalSet, Model, Node, Op, Port};
use ir::{Processing, Program, Span};
use net::Header;

use super::*;
use crate::synthesize;

/// A chain of elements, one behind the other, each model with outputs enough; all outputs but the
/// first of each lead nowhere.
fn chain(models: &[(&str, usize)]) -> Graph {
    let span = Span::new(FileId(0), 0, 0);
    let node = |(i, (name, outputs)): (usize, &(&str, usize))| Node {
        name: (*name).to_string(),
        class: String::new(),
        config: String::new(),
        span,
        group: None,
        inputs: vec![Processing::Push; usize::from(i > 0)],
        outputs: vec![Processing::Push; *outputs],
    };
    let nodes: Vec<Node> = models.iter().enumerate().map(node).collect();
    let port = |node| Port { node, port: 0 };
    let edges = (1..nodes.len()).map(|i| Edge { from: port(i - 1), to: port(i), span });
    Graph { edges: edges.collect(), nodes, ..Graph::default() }
}

fn source() -> Model {
    Model { state: Vec::new(), inputs: Vec::new() }
}

/// Marks an IPv4 header behind Ethernet.
fn marker() -> Model {
    Model::from_block(vec![
        Op::when(meta::LEN.lt(34u8), vec![Op::drop("short")]),
        Op::Mark(Header::Network, 14.into()),
        Op::emit(0u8),
    ])
}

fn decrement() -> Model {
    Model::from_block(vec![
        Op::when(ip::TTL.le(1u8), vec![Op::drop("expired")]),
        ip::TTL.set(ip::TTL.get() - 1u8),
        Op::emit(0u8),
    ])
}

fn program(graph: &Graph, models: &[Model]) -> Program {
    let mut programs = synthesize(graph, models).programs;
    assert_eq!(programs.len(), 1);
    programs.remove(0)
}

/// The exit that ends so.
fn exit_of(program: &Program, ends: impl Fn(&End) -> bool) -> StepId {
    let mut exits = program.exits().filter(|(_, e)| ends(&e.end));
    exits.next().map(|e| e.0).unwrap_or_else(|| panic!("no such exit in {program}"))
}

const TWO_HOPS: [(&str, usize); 5] = [("in", 1), ("mark", 1), ("one", 1), ("two", 1), ("out", 0)];

fn two_hops() -> (Graph, Vec<Model>) {
    let models = vec![source(), marker(), decrement(), decrement(), Model::opaque("sends")];
    (chain(&TWO_HOPS), models)
}

fn visits(graph: &Graph, models: &[Model], program: &Program, step: StepId) -> Vec<Visit> {
    let path = Paths::of(program).shortest(step);
    let ir::program::Step::Exit(exit) = program.step(step) else { panic!("no exit") };
    Replayer::new(graph, models).visits(program, &path, exit)
}

#[test]
fn both_elements_wrote_what_was_added_up() {
    let (graph, models) = two_hops();
    let program = program(&graph, &models);
    let sent = exit_of(&program, |e| matches!(e, End::Push { .. }));
    let visits = visits(&graph, &models, &program, sent);
    let ttl = BitRange { space: Space::Entry, start: 14 * 8 + 64, width: 8 };
    let wrote = |v: &&Visit| v.writes.contains(&ttl);
    let by: Vec<usize> = visits.iter().filter(wrote).map(|v| v.at.node).collect();
    assert_eq!(by, [2, 3]);
    assert_eq!(visits.last().unwrap().network, Some(14));
    let chain = of_chain(&visits);
    assert_eq!((chain.elements, chain.decisions, chain.reads, chain.writes), (3, 3, 2, 2));
    let path = Paths::of(&program).shortest(sent);
    let ir::program::Step::Exit(exit) = program.step(sent) else { panic!("no exit") };
    let became = of_path(&program, &models, &path, exit);
    assert_eq!((became.elements, became.reads, became.writes), (1, 1, 1));
}

/// Packets that are short enough go on as they are; others are cut.
#[test]
fn the_length_tells_the_way_through_an_element() {
    let models = [
        source(),
        marker(),
        Model::from_block(vec![
            Op::when(meta::AVAIL_NET.le(1000u16), vec![Op::emit(0u8)]),
            Op::Truncate(ip::LEN.get()),
            Op::emit(0u8),
        ]),
        Model::opaque("sends"),
    ];
    let graph = chain(&[("in", 1), ("mark", 1), ("cut", 1), ("out", 0)]);
    let program = program(&graph, &models);
    for cut in [false, true] {
        let is = |e: &Exit| matches!(e.end, End::Push { .. }) && e.writes.length.is_some() == cut;
        let (step, _) = program.exits().find(|(_, e)| is(e)).expect("an exit");
        let visits = visits(&graph, &models, &program, step);
        assert_eq!(visits.iter().map(|v| v.cut).collect::<Vec<_>>(), [false, cut]);
    }
}

#[test]
fn conditions_are_what_all_packets_of_a_class_have() {
    let (graph, models) = two_hops();
    let program = program(&graph, &models);
    let all = conditions(&program);
    let of = |step: StepId| &all.iter().find(|c| c.0 == step).unwrap().1;
    let sent = of(exit_of(&program, |e| matches!(e, End::Push { .. })));
    let ttl = |known: &Conditions| {
        let is_ttl = |t: &ir::program::TermId| matches!(program.term(*t), Term::Input(f) if f.offset == 14 * 8 + 64);
        known.iter().find_map(|(asked, c)| match asked {
            ConditionSubject::Number(t) if is_ttl(t) => Some((*c.set).clone()),
            _ => None,
        })
    };
    assert_eq!(ttl(sent), Some(IntervalSet::range(3, 255)));
    let late = exit_of(&program, |e| matches!(e, End::Drop { element: 3, .. }));
    assert_eq!(ttl(of(late)), Some(IntervalSet::single(2)));
    // Every exit that has conditions can be told exactly here.
    for (step, known) in &all {
        assert!(Alternatives::of(&program).at(*step, known, 64).is_some());
    }
}

#[test]
fn rules_are_told_by_their_numbers() {
    let span = |n: usize| Some(Span::new(FileId(0), n, n + 1));
    let rule = |n: u32| Rule {
        when: Cond::Test(Expr::Field(eth::TYPE), IntervalSet::single(u128::from(n) * 2)).into(),
        arm: n % 2,
        text: "rule".into(),
        span: span(n as usize),
    };
    let matches = Op::Match {
        rules: (0..20).map(rule).collect(),
        arms: vec![vec![Op::emit(0u8)], vec![Op::drop("odd")]],
        otherwise: vec![Op::drop("none")],
    };
    let guard = Op::when(meta::LEN.lt(14u8), vec![Op::drop("short")]);
    let models = [source(), Model::from_block(vec![guard, matches]), Model::opaque("sends")];
    let graph = chain(&[("in", 1), ("rules", 1), ("out", 0)]);
    let program = program(&graph, &models);
    let all = conditions(&program);
    let sent = exit_of(&program, |e| matches!(e, End::Push { .. }));
    let known = &all.iter().find(|c| c.0 == sent).unwrap().1;
    let rules = &known[&ConditionSubject::Rules(1)];
    assert!(!rules.unmatched && rules.set.contains(18) && !rules.set.contains(17));
    let none = exit_of(&program, |e| matches!(e, End::Drop { reason, .. } if reason.0 == "none"));
    let known = &all.iter().find(|c| c.0 == none).unwrap().1;
    assert!(known[&ConditionSubject::Rules(1)].unmatched);
    let visits = visits(&graph, &models, &program, sent);
    assert_eq!((visits[0].tables, visits[0].reads.len()), (1, 1));
}

#[test]
fn places_overlap_only_in_one_space() {
    let place = |space, start, width| BitRange { space, start, width };
    let a = place(Space::Entry, -16, 17);
    assert!(a.overlaps(&place(Space::Entry, 0, 8)) && !a.overlaps(&place(Space::Entry, 1, 8)));
    assert!(!a.overlaps(&place(Space::Annotation, 0, 8)));
    assert!(!place(Space::Meta, 0, 8).is_packet());
}

#[test]
fn broken_programs_do_no_harm() {
    let graph = chain(&[("in", 1), ("out", 0)]);
    let models = [source(), Model::opaque("sends")];
    let empty = Program {
        continuation: None,
        tables: Vec::new(),
        entry: Port { node: 7, port: 3 },
        terms: Vec::new(),
        state: Vec::new(),
        lookups: Vec::new(),
        steps: Vec::new(),
    };
    assert!(conditions(&empty).is_empty());
    let paths = Paths::of(&empty);
    assert_eq!(paths.count(StepId(3)), 0);
    let exit = Exit {
        effects: Vec::new(),
        writes: ir::program::Writes::default(),
        end: End::Drop { element: 9, reason: ir::Reason("lost") },
        barrier: None,
        visited: vec![Port { node: 9, port: 0 }],
        copies: Vec::new(),
    };
    let visits = Replayer::new(&graph, &models).visits(&empty, &Path::default(), &exit);
    assert_eq!(visits.len(), 1);
}
