//! Terms that are added to those of a program, each once.

use std::collections::HashMap;

use ir::model::BinaryOp;
use ir::program::{Term, TermId};
use ir::{Base, Field};

/// The terms of a program.
pub(super) struct Terms {
    all: Vec<Term>,
    known: HashMap<Term, TermId>,
}

/// Bits of the packet as it came in.
pub(super) fn data(offset: u16, width: u16) -> Field {
    Field::bits(Base::Data, offset, width)
}

impl Terms {
    #[allow(clippy::mutable_key_type, reason = "what a range map caches is no part of what it is")]
    pub(super) fn new(all: Vec<Term>) -> Self {
        let known = (0..).map(TermId).zip(&all).map(|(id, term)| (term.clone(), id)).collect();
        Self { all, known }
    }

    /// A term; its operands are some already.
    pub(super) fn add(&mut self, term: Term) -> TermId {
        let next = TermId(self.all.len() as u32);
        let id = *self.known.entry(term.clone()).or_insert(next);
        if id == next {
            self.all.push(term);
        }
        id
    }

    pub(super) fn input(&mut self, field: Field) -> TermId {
        self.add(Term::Input(field))
    }

    pub(super) fn constant(&mut self, value: u128) -> TermId {
        self.add(Term::Const(value))
    }

    /// An operation on a term and a number.
    pub(super) fn with(&mut self, op: BinaryOp, term: TermId, number: u128) -> TermId {
        let number = self.constant(number);
        self.add(Term::Binary(op, term, number))
    }

    pub(super) fn into_all(self) -> Vec<Term> {
        self.all
    }
}
