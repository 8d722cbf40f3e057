//! Strategies for everything that a model is made of: well shaped, rarely well formed.

use std::sync::Arc;

use catena_ir as ir;
use ir::hash::HashFunction;
use ir::model::{BinaryOp, Block, CompareOp, FlowSide, Reg, Rule, StateDecl, StateKind, StateRef};
use ir::{Base, Cond, Expr, Field, IntervalSet, Model, Op, Reason};
use ir::{PrefixEntry, PrefixTable};
use net::Header;
use proptest::prelude::*;

pub(crate) const NAMES: &[&str] =
    &["count", "flow-map", "cells", "ttl-expired", "a b \"c\"\n", "", "é", "9"];

pub(crate) fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

pub(crate) fn any_header() -> impl Strategy<Value = Header> {
    prop::sample::select(&[Header::Mac, Header::Network, Header::Transport][..])
}

pub(crate) fn any_base() -> impl Strategy<Value = Base> {
    prop_oneof![
        Just(Base::Data),
        any_header().prop_map(Base::Header),
        Just(Base::Annotation),
        Just(Base::Meta),
    ]
}

pub(crate) fn any_field() -> impl Strategy<Value = Field> {
    let named: Vec<Field> = Field::all_named().map(|(_, field)| field).collect();
    prop_oneof![
        3 => prop::sample::select(named),
        1 => (any_base(), 0u16..600, 1u16..=128).prop_map(|(b, o, w)| Field::bits(b, o, w)),
    ]
}

pub(crate) fn any_number() -> impl Strategy<Value = u128> {
    prop_oneof![
        6 => 0u128..40,
        2 => any::<u32>().prop_map(u128::from),
        1 => any::<u128>(),
        1 => (1i128..70000).prop_map(|n| -n as u128),
    ]
}

pub(crate) fn any_set() -> impl Strategy<Value = IntervalSet> {
    let prefix = (any::<u32>(), 0u16..=32).prop_map(|(v, n)| IntervalSet::prefix(32, v.into(), n));
    let wide = (any::<u128>(), 0u16..=128).prop_map(|(v, n)| IntervalSet::prefix(128, v, n));
    let intervals = prop::collection::vec((any_number(), any_number()), 0..4);
    prop_oneof![
        any_number().prop_map(IntervalSet::single),
        (prefix.clone(), prefix).prop_map(|(a, b)| a.union(&b)),
        wide,
        intervals.prop_map(IntervalSet::from_intervals),
    ]
}

pub(crate) fn any_reg() -> impl Strategy<Value = Reg> {
    prop_oneof![4 => 0u16..4, 1 => any::<u16>()].prop_map(Reg)
}

pub(crate) fn any_state_ref() -> impl Strategy<Value = StateRef> {
    (0u16..4).prop_map(StateRef)
}

pub(crate) fn any_width() -> impl Strategy<Value = u16> {
    prop_oneof![4 => (1u16..=16).prop_map(|bytes| bytes * 8), 1 => 1u16..=128]
}

fn any_binary() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::*;
    prop::sample::select(&[Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Min, Max][..])
}

fn any_compare() -> impl Strategy<Value = CompareOp> {
    use CompareOp::*;
    prop::sample::select(&[Eq, Ne, Lt, Le, Gt, Ge][..])
}

fn any_leaf() -> impl Strategy<Value = Expr> {
    prop_oneof![
        3 => any_number().prop_map(Expr::Const),
        3 => any_field().prop_map(Expr::Field),
        2 => any_reg().prop_map(Expr::Reg),
        1 => any_header().prop_map(Expr::Position),
        1 => Just(Expr::Now),
        1 => (any_number(), any_number()).prop_map(|(a, b)| Expr::Random(a, b)),
    ]
}

/// The condition with these operands.
fn cond_of(expr: BoxedStrategy<Expr>) -> BoxedStrategy<Cond> {
    let key = prop::collection::vec(expr.clone(), 0..3);
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Cond::Const),
        6 => (expr.clone(), any_set()).prop_map(|(e, s)| Cond::Test(e, s)),
        3 => (any_compare(), expr.clone(), expr).prop_map(|(op, a, b)| Cond::Compare(op, a, b)),
        1 => (any_state_ref(), key).prop_map(|(s, k)| Cond::FlowExists(s, k)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let some = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            some.clone().prop_map(Cond::All),
            some.prop_map(Cond::Any),
            inner.prop_map(|c| Cond::Not(Box::new(c))),
        ]
    })
    .boxed()
}

pub(crate) fn any_expr() -> BoxedStrategy<Expr> {
    any_leaf()
        .prop_recursive(3, 12, 3, |inner| {
            let place = (any_base(), inner.clone(), inner.clone()).boxed();
            prop_oneof![
                6 => (any_binary(), inner.clone(), inner.clone())
                    .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
                1 => (any_base(), inner.clone(), any_width())
                    .prop_map(|(b, o, w)| Expr::load(b, o, w)),
                1 => place.clone().prop_map(|(b, o, n)| Expr::sum16(b, o, n)),
                1 => place.prop_map(|(base, o, n)| Expr::ByteSum {
                    base, offset: Box::new(o), length: Box::new(n),
                }),
                1 => (cond_of(inner.clone().boxed()), inner.clone(), inner.clone())
                    .prop_map(|(c, a, b)| Expr::choose(c, a, b)),
                1 => inner.clone().prop_map(Expr::fold16),
                1 => prop::collection::vec(inner, 0..3)
                    .prop_map(|all| Expr::Hash(HashFunction::MixedFnv1a, all)),
            ]
        })
        .boxed()
}

pub(crate) fn any_cond() -> BoxedStrategy<Cond> {
    cond_of(any_expr())
}

fn any_numbers() -> impl Strategy<Value = Vec<Expr>> {
    prop::collection::vec(any_expr(), 0..3)
}

fn any_regs() -> impl Strategy<Value = Vec<Reg>> {
    prop::collection::vec(any_reg(), 0..3)
}

fn any_side() -> impl Strategy<Value = FlowSide> {
    (any_numbers(), any_numbers()).prop_map(|(key, value)| FlowSide { key, value })
}

fn any_table() -> impl Strategy<Value = Arc<PrefixTable>> {
    let entry = (any_number(), 0u16..40, prop::collection::vec(any_number(), 0..3)).prop_map(
        |(prefix, length, row)| PrefixEntry { prefix, length, row: row.into(), span: None },
    );
    (1u16..=128, prop::collection::vec(entry, 0..4))
        .prop_map(|(width, entries)| Arc::new(PrefixTable::new(width, entries)))
}

fn any_simple_op() -> BoxedStrategy<Op> {
    let e = any_expr;
    prop_oneof![
        4 => (any_reg(), e()).prop_map(|(r, x)| Op::Let(r, x)),
        4 => (any_field(), e()).prop_map(|(f, x)| Op::Set(f, x)),
        1 => (any_base(), e(), any_width(), e())
            .prop_map(|(base, offset, width, value)| Op::Store { base, offset, width, value }),
        1 => Just(Op::Break),
        1 => any_cond().prop_map(Op::Expect),
        1 => e().prop_map(Op::Pull),
        1 => e().prop_map(Op::Truncate),
        1 => e().prop_map(Op::Extend),
        1 => (any_header(), e()).prop_map(|(h, x)| Op::Mark(h, x)),
        1 => any_header().prop_map(Op::Unmark),
        1 => Just(Op::Fresh),
        1 => any_state_ref().prop_map(Op::Count),
        1 => (any_reg(), any_state_ref(), e()).prop_map(|(r, s, x)| Op::Read(r, s, x)),
        1 => (any_state_ref(), e(), e()).prop_map(|(s, i, x)| Op::Write(s, i, x)),
        1 => (any_state_ref(), any_numbers(), any_numbers(), e(), e()).prop_map(
            |(flows, key, common, expiry, guarantee)| Op::FlowUpdate { flows, key, common, expiry, guarantee }),
        1 => any_name().prop_map(|n| Op::Note(Reason(n))),
        1 => e().prop_map(Op::EmitCopy),
        2 => e().prop_map(Op::Emit),
        1 => any_name().prop_map(|n| Op::Drop(Reason(n))),
        1 => any_name().prop_map(Op::Opaque),
    ]
    .boxed()
}

pub(crate) fn any_op() -> BoxedStrategy<Op> {
    any_simple_op()
        .prop_recursive(3, 16, 3, |inner| {
            let block = prop::collection::vec(inner, 0..3);
            let rule = (any_cond(), 0u32..3, prop::sample::select(NAMES)).prop_map(
                |(when, arm, text)| Rule { when: when.into(), arm, text: text.into(), span: None });
            let rules = prop::collection::vec(rule, 0..3);
            let arms = prop::collection::vec(block.clone(), 0..3);
            prop_oneof![
                3 => (any_cond(), block.clone(), block.clone()).prop_map(|(c, a, b)| Op::If(c, a, b)),
                1 => (rules, arms, block.clone()).prop_map(|(rules, arms, otherwise)| Op::Match {
                    rules: rules.into(), arms, otherwise,
                }),
                1 => (any_table(), any_expr(), any_regs(), block.clone())
                    .prop_map(|(table, key, bind, miss)| Op::Lookup { table, key, bind, miss }),
                1 => (0u32..5, block.clone()).prop_map(|(limit, body)| Op::Repeat { limit, body }),
                1 => (any_state_ref(), any_numbers(), any_regs(), any_regs(), block.clone()).prop_map(
                    |(flows, key, value, common, miss)| Op::FlowLookup { flows, key, value, common, miss }),
                1 => (any_state_ref(), any_side(), any_side(), any_numbers(), any_expr(), any_expr(), block.clone())
                    .prop_map(|(flows, forward, reverse, common, expiry, guarantee, full)| Op::FlowInsert {
                        flows, forward, reverse, common, expiry, guarantee, full,
                    }),
                1 => (any_reg(), (0u128..300, 0u128..300), any_expr(), any_state_ref(), any_numbers(), block)
                    .prop_map(|(bind, range, start, flows, key, exhausted)| Op::Allocate {
                        bind, range, start, flows, key, exhausted,
                    }),
            ]
        })
        .boxed()
}

pub(crate) fn any_block() -> impl Strategy<Value = Block> {
    prop::collection::vec(any_op(), 0..5)
}

pub(crate) fn any_state() -> impl Strategy<Value = StateDecl> {
    let kind = prop_oneof![
        Just(StateKind::Counter),
        (1u16..=128, prop::collection::vec(0u128..9, 0..4))
            .prop_map(|(width, initial)| StateKind::Cells { width, initial }),
        (0u64..4, prop::collection::vec(1u16..=128, 0..3))
            .prop_map(|(capacity, widths)| StateKind::Flows { capacity, widths }),
    ];
    let owner = prop::option::of(any_name().prop_map(String::from));
    (owner, any_name(), kind).prop_map(|(owner, name, kind)| StateDecl { owner, name, kind })
}

pub(crate) fn any_model() -> impl Strategy<Value = Model> {
    (prop::collection::vec(any_state(), 0..4), prop::collection::vec(any_block(), 0..3))
        .prop_map(|(state, inputs)| Model { state, inputs })
}
