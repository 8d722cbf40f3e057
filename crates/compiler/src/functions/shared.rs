//! Whether a network function can run on several cores at once: each core has its own copy of its elements, and its own part
//! of what they keep.

use std::collections::BTreeSet;

use ir::Model;
use ir::model::{Block, Cond, Expr, Op, Reg, StateKind};

/// What of an element all packets share, in words, so that one core has to have all of them; nothing, if it keeps nothing
/// but counts, flows and their parts, and numbers that decide nothing. `owns_parts` says that cores get parts of what it allocates,
/// such as ports.
///
/// An element whose model says nothing may keep anything.
pub fn shared(model: &Model, owns_parts: bool) -> Option<String> {
    if model.is_opaque() && !model.inputs.is_empty() {
        return Some("its model does not say what it keeps".into());
    }
    if owns_parts {
        return None;
    }
    let mut looking = Looking { model, taken: BTreeSet::new(), found: None };
    model.inputs.iter().for_each(|block| looking.block(block));
    looking.found.map(|cells| format!("packets depend on each other by its '{cells}'"))
}

struct Looking<'a> {
    model: &'a Model,
    /// Registers that hold what came from cells, and the cells' name.
    taken: BTreeSet<(Reg, &'static str)>,
    found: Option<&'static str>,
}

impl Looking<'_> {
    fn block(&mut self, block: &Block) {
        for op in block {
            match op {
                Op::Read(to, state, _) => {
                    let cells = self.model.state.get(usize::from(state.0));
                    let cells = cells.filter(|of| matches!(of.kind, StateKind::Cells { .. }));
                    if let Some(cells) = cells.filter(|of| self.writes(of.name)) {
                        self.taken.insert((*to, cells.name));
                    }
                }
                Op::Let(to, value) => {
                    if let Some(cells) = self.of(value) {
                        self.taken.insert((*to, cells));
                    }
                }
                Op::If(condition, yes, no) if yes.iter().chain(no).any(decides) => {
                    self.found = self.found.or(self.of_condition(condition));
                }
                Op::Emit(port) | Op::EmitCopy(port) => self.found = self.found.or(self.of(port)),
                _ => {}
            }
            op.blocks().for_each(|block| self.block(block));
        }
    }

    /// Whether packets change cells.
    fn writes(&self, cells: &str) -> bool {
        fn any(block: &Block, is_it: &dyn Fn(&Op) -> bool) -> bool {
            block.iter().any(|op| is_it(op) || op.blocks().any(|block| any(block, is_it)))
        }
        let is_it = |op: &Op| match op {
            Op::Write(state, ..) => {
                self.model.state.get(usize::from(state.0)).is_some_and(|of| of.name == cells)
            }
            _ => false,
        };
        self.model.inputs.iter().any(|block| any(block, &is_it))
    }

    /// The cells that a number depends on.
    fn of(&self, value: &Expr) -> Option<&'static str> {
        match value {
            Expr::Reg(reg) => self.taken.iter().find(|(of, _)| of == reg).map(|(_, cells)| *cells),
            Expr::Binary(_, a, b) => self.of(a).or_else(|| self.of(b)),
            Expr::Choose(condition, a, b) => {
                self.of_condition(condition).or_else(|| self.of(a)).or_else(|| self.of(b))
            }
            Expr::Load { offset, .. } => self.of(offset),
            Expr::Fold16(of) => self.of(of),
            Expr::Hash(_, all) => all.iter().find_map(|one| self.of(one)),
            _ => None,
        }
    }

    fn of_condition(&self, condition: &Cond) -> Option<&'static str> {
        match condition {
            Cond::Test(value, _) => self.of(value),
            Cond::Compare(_, a, b) => self.of(a).or_else(|| self.of(b)),
            Cond::All(all) | Cond::Any(all) => all.iter().find_map(|one| self.of_condition(one)),
            Cond::Not(one) => self.of_condition(one),
            Cond::Const(_) | Cond::FlowExists(..) => None,
        }
    }
}

/// Whether an operation is seen from outside: it does something to the packet.
fn decides(op: &Op) -> bool {
    match op {
        Op::Let(..) | Op::Write(..) | Op::Read(..) | Op::Count(_) | Op::Note(_) => false,
        op => op.blocks().next().is_none() || op.blocks().any(|block| block.iter().any(decides)),
    }
}

#[cfg(test)]
mod tests {
    use ir::IntervalSet;
    use ir::model::StateRef;

    use super::*;

    fn cells(model: &mut Model) -> StateRef {
        model.declare("next", StateKind::Cells { width: 32, initial: vec![0] })
    }

    #[test]
    fn what_packets_share_keeps_a_function_on_one_core() {
        // Packets take turns: the cell chooses the port.
        let mut turns = Model::default();
        let next = cells(&mut turns);
        turns.inputs = vec![vec![
            Op::Read(Reg(0), next, Expr::Const(0)),
            Op::Write(next, Expr::Const(0), Expr::from(Reg(0)) + 1u32),
            Op::Emit(Reg(0).into()),
        ]];
        assert!(shared(&turns, false).is_some_and(|why| why.contains("'next'")));
        // Cores that get parts of it share nothing.
        assert_eq!(shared(&turns, true), None);
        // So does a bucket: whether there is something in it decides.
        let is_empty = Expr::from(Reg(0)).is_in(IntervalSet::single(0));
        let mut bucket = turns.clone();
        bucket.inputs[0][2] =
            Op::If(is_empty, vec![Op::Emit(0u8.into())], vec![Op::Emit(1u8.into())]);
        assert!(shared(&bucket, false).is_some());
        assert!(shared(&Model::opaque("depends on time"), false).is_some());
    }

    #[test]
    fn numbers_that_decide_nothing_are_not_shared() {
        // An identification that is counted up.
        let mut counted = Model::default();
        let next = cells(&mut counted);
        counted.inputs = vec![vec![
            Op::Read(Reg(0), next, Expr::Const(0)),
            Op::Write(next, Expr::Const(0), Expr::from(Reg(0)) + 1u32),
            Op::Set(ir::field::ip::ID, Reg(0).into()),
            Op::Emit(0u8.into()),
        ]];
        assert_eq!(shared(&counted, false), None);
        // A cell that packets read and nobody writes.
        let mut constant = Model::default();
        let next = cells(&mut constant);
        constant.inputs =
            vec![vec![Op::Read(Reg(0), next, Expr::Const(0)), Op::Emit(Reg(0).into())]];
        assert_eq!(shared(&constant, false), None);
    }
}
