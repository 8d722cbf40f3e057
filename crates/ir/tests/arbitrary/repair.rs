//! Makes any model well formed: what must not be is replaced by the nearest thing that may.

use std::sync::Arc;

use catena_ir as ir;
use ir::model::{Block, Reg, Rule, StateDecl, StateKind, StateRef};
use ir::{Base, Cond, Expr, Field, Model, Op, Reason, field};
use ir::{PrefixEntry, PrefixTable};

/// Bytes of the shortest packet that a guarded model does not drop.
pub(crate) const SHORTEST: u16 = 64;
const REGISTERS: u16 = 4;
const COUNTER: StateRef = StateRef(0);
const CELLS: StateRef = StateRef(1);
const FLOWS: StateRef = StateRef(2);
const CELL_COUNT: u128 = 4;

/// A well-formed model that does much the same. If it is `guarded`, packets that are short are
/// dropped first and the headers are marked.
pub(crate) fn well_formed(model: &Model, guarded: bool) -> Model {
    let state = |name, kind| StateDecl { owner: None, name, kind };
    let cells = StateKind::Cells { width: 32, initial: vec![0, 1, 2, 3] };
    Model {
        state: vec![
            state("count", StateKind::Counter),
            state("cells", cells),
            state("flows", StateKind::Flows { capacity: 2, widths: Vec::new() }),
        ],
        inputs: model.inputs.iter().map(|b| input(b, guarded)).collect(),
    }
}

fn input(block: &Block, guarded: bool) -> Block {
    let mut ops: Block = (0..REGISTERS).map(|i| Op::Let(Reg(i), Expr::from(i))).collect();
    if guarded {
        ops.push(Op::when(field::meta::LEN.lt(SHORTEST), vec![Op::drop("short")]));
        ops.push(Op::Mark(net::Header::Mac, 0u8.into()));
        ops.push(Op::Mark(net::Header::Network, 14u8.into()));
        ops.push(Op::Mark(net::Header::Transport, 34u8.into()));
    } else {
        ops.extend(block.iter().take(1).filter(|op| matches!(op, Op::Opaque(_))).cloned());
    }
    ops.extend(block.iter().cloned());
    let mut repaired = self::block(&ops, 0, &mut guarded.clone());
    if !ends(&repaired) {
        repaired.push(Op::emit(0u8));
    }
    repaired
}

fn ends(block: &Block) -> bool {
    block.last().is_some_and(|op| match op {
        Op::Emit(_) | Op::Drop(_) | Op::Opaque(_) | Op::Break => true,
        Op::If(..) | Op::Match { .. } => op.blocks().all(ends),
        _ => false,
    })
}

/// `changed` says that no `opaque` may follow.
fn block(ops: &Block, loops: usize, changed: &mut bool) -> Block {
    let mut repaired = Vec::new();
    for op in ops {
        if let Some(op) = self::op(op, loops, changed) {
            repaired.push(op);
        }
        if ends(&repaired) {
            break;
        }
    }
    repaired
}

fn op(op: &Op, loops: usize, changed: &mut bool) -> Option<Op> {
    let pure = matches!(op, Op::Opaque(_) | Op::Let(..) if !random(op));
    let late = *changed;
    *changed |= !pure;
    let mut inner = |b: &Block| block(b, loops, &mut true.clone());
    Some(match op {
        Op::Let(r, e) => Op::Let(reg(*r), expr(e)),
        Op::Set(f, e) => {
            let field = match place(*f) {
                place if place.base == Base::Meta => field::meta::TIMESTAMP,
                place => place,
            };
            let value = match expr(e) {
                Expr::Const(c) => Expr::Const(c & field.max()),
                e => e,
            };
            Op::Set(field, value)
        }
        Op::Store { base, offset, width, value } => Op::Store {
            base: bytes(*base),
            offset: expr(offset) & 7u8,
            width: whole(*width),
            value: expr(value) & 0xffu8,
        },
        Op::If(c, a, b) => Op::If(cond(c), inner(a), inner(b)),
        Op::Match { rules, arms, otherwise } if !arms.is_empty() => Op::Match {
            rules: rules
                .iter()
                .map(|r| Rule {
                    when: cond(&r.when).into(),
                    arm: r.arm % arms.len() as u32,
                    ..r.clone()
                })
                .collect(),
            arms: arms.iter().map(&mut inner).collect(),
            otherwise: inner(otherwise),
        },
        Op::Match { .. } => return None,
        Op::Lookup { table, key, bind, miss } => Op::Lookup {
            table: Arc::new(self::table(table, bind.len())),
            key: expr(key),
            bind: bind.iter().copied().map(reg).collect(),
            miss: inner(miss),
        },
        Op::Repeat { body, .. } if loops >= 3 => Op::If(Cond::Const(true), inner(body), vec![]),
        Op::Repeat { limit, body } => Op::Repeat {
            limit: limit.max(&1) % 4 + 1,
            body: block(body, loops + 1, &mut true.clone()),
        },
        Op::Break if loops == 0 => return None,
        Op::Expect(c) => Op::Expect(cond(c)),
        Op::Pull(e) => Op::Pull(expr(e) & 3u8),
        Op::Truncate(e) => Op::Truncate(expr(e).max(60u8)),
        Op::Extend(e) => Op::Extend(expr(e) & 15u8),
        Op::Mark(h, e) => Op::Mark(*h, expr(e) & 31u8),
        Op::Count(_) => Op::Count(COUNTER),
        Op::Read(r, _, e) => Op::Read(reg(*r), CELLS, expr(e) % CELL_COUNT),
        Op::Write(_, i, e) => Op::Write(CELLS, expr(i) % CELL_COUNT, expr(e) & 9u8),
        Op::FlowLookup { key, value, common, miss, .. } => Op::FlowLookup {
            flows: FLOWS,
            key: exprs(key),
            value: value.iter().take(1).copied().map(reg).collect(),
            common: common.iter().take(1).copied().map(reg).collect(),
            miss: inner(miss),
        },
        Op::FlowUpdate { key, expiry, guarantee, .. } => Op::FlowUpdate {
            flows: FLOWS,
            key: exprs(key),
            common: vec![0u8.into()],
            expiry: expr(expiry),
            guarantee: expr(guarantee),
        },
        Op::FlowInsert { forward, reverse, expiry, guarantee, full, .. } => {
            let side = |s: &ir::model::FlowSide| ir::model::FlowSide {
                key: exprs(&s.key),
                value: vec![7u8.into()],
            };
            Op::FlowInsert {
                flows: FLOWS,
                forward: side(forward),
                reverse: side(reverse),
                common: vec![0u8.into()],
                expiry: expr(expiry),
                guarantee: expr(guarantee),
                full: inner(full),
            }
        }
        Op::Allocate { bind, range: (a, b), start, key, exhausted, .. } => {
            let bind = reg(*bind);
            let mut key = exprs(key);
            key.push(bind.into());
            Op::Allocate {
                bind,
                range: (*a.min(b), *a.max(b)),
                start: expr(start),
                flows: FLOWS,
                key,
                exhausted: inner(exhausted),
            }
        }
        Op::EmitCopy(e) => Op::EmitCopy(expr(e)),
        Op::Emit(e) => Op::Emit(expr(e)),
        Op::Opaque(_) if late => Op::Drop(Reason("late")),
        Op::Break | Op::Unmark(_) | Op::Fresh | Op::Note(_) | Op::Drop(_) | Op::Opaque(_) => {
            op.clone()
        }
    })
}

/// Whether an operation may draw a number.
fn random(op: &Op) -> bool {
    op.to_string().contains("random")
}

fn reg(r: Reg) -> Reg {
    Reg(r.0 % REGISTERS)
}

fn whole(width: u16) -> u16 {
    width.div_ceil(8) * 8
}

fn bytes(base: Base) -> Base {
    if base == Base::Meta { Base::Annotation } else { base }
}

/// A field that ends where short packets do, or before.
fn place(f: Field) -> Field {
    let bytes = match f.base {
        Base::Meta => return field::meta::LEN,
        Base::Annotation | Base::Carried => 48,
        Base::Data | Base::Header(net::Header::Mac) => SHORTEST,
        Base::Header(net::Header::Network) => SHORTEST - 14,
        Base::Header(net::Header::Transport) => SHORTEST - 34,
    };
    let width = f.width.min(96);
    Field { offset: f.offset * 7 % (bytes * 8 - width + 1), width, ..f }
}

fn table(table: &PrefixTable, bound: usize) -> PrefixTable {
    let width = table.width();
    let entries = table.entries().map(|e| {
        let length = e.length.min(width);
        let all = u128::MAX >> (128 - width);
        let free = 1u128.checked_shl((width - length).into()).map_or(u128::MAX, |n| n - 1);
        let mut row = e.row.to_vec();
        row.resize(bound.max(row.len()), 0);
        PrefixEntry { prefix: e.prefix & all & !free, length, row: row.into(), span: None }
    });
    PrefixTable::new(width, entries)
}

fn exprs(all: &[Expr]) -> Vec<Expr> {
    all.iter().map(expr).collect()
}

fn expr(e: &Expr) -> Expr {
    match e {
        Expr::Field(f) => Expr::Field(place(*f)),
        Expr::Reg(r) => Expr::Reg(reg(*r)),
        Expr::Load { base, offset, width } => {
            Expr::load(bytes(*base), expr(offset) & 15u8, whole(*width))
        }
        Expr::Binary(op, a, b) => Expr::Binary(*op, Box::new(expr(a)), Box::new(expr(b))),
        Expr::Choose(c, a, b) => Expr::choose(cond(c), expr(a), expr(b)),
        Expr::Sum16 { base, offset, length } => {
            Expr::sum16(bytes(*base), expr(offset) & 7u8, expr(length) & 7u8)
        }
        Expr::ByteSum { base, offset, length } => Expr::ByteSum {
            base: bytes(*base),
            offset: Box::new(expr(offset) & 7u8),
            length: Box::new(expr(length) & 7u8),
        },
        Expr::Fold16(sum) => expr(sum).fold16(),
        Expr::Hash(function, all) => Expr::Hash(*function, exprs(all)),
        Expr::Random(a, b) => {
            let (a, b) = (*a as u64, *b as u64);
            Expr::Random(a.min(b).into(), a.max(b).into())
        }
        Expr::Const(_) | Expr::Position(_) | Expr::Now => e.clone(),
    }
}

fn cond(c: &Cond) -> Cond {
    match c {
        Cond::Const(_) => c.clone(),
        Cond::Test(e, set) => Cond::Test(expr(e), set.clone()),
        Cond::Compare(op, a, b) => Cond::Compare(*op, expr(a), expr(b)),
        Cond::All(all) => Cond::All(all.iter().map(cond).collect()),
        Cond::Any(any) => Cond::Any(any.iter().map(cond).collect()),
        Cond::Not(c) => Cond::Not(Box::new(cond(c))),
        Cond::FlowExists(_, key) => Cond::FlowExists(FLOWS, exprs(key)),
    }
}
