//! The normal form of programs: what no step needs is gone, equal terms are one, and all else is
//! numbered as steps need it first. Programs that differ in numbers alone have the same.

use foldhash::{HashMap, HashMapExt};

use super::{
    Atom, Effect, Entries, Exit, Lookup, LookupId, Mark, Program, StateId, StateOf, Step, Table,
    TableId, Term, TermId,
};

impl Program {
    /// The program in normal form.
    ///
    /// # Panics
    /// If the program refers to what it does not have; see [`super::verify`].
    pub fn normal(self) -> Self {
        let Program { entry, continuation, terms, state, tables, lookups, mut steps } = self;
        let mut normal = Normal {
            of_terms: vec![None; terms.len()],
            of_lookups: vec![None; lookups.len()],
            of_tables: vec![None; tables.len()],
            of_state: vec![None; state.len()],
            from: (terms, lookups, tables, state),
            terms: Vec::new(),
            index: HashMap::new(),
            lookups: Vec::new(),
            tables: Vec::new(),
            state: Vec::new(),
        };
        for step in &mut steps {
            normal.step(step);
        }
        let Normal { terms, lookups, tables, state, .. } = normal;
        Self { entry, continuation, terms, state, tables, lookups, steps }
    }
}

struct Normal {
    from: (Vec<Term>, Vec<Lookup>, Vec<Table>, Vec<StateOf>),
    of_terms: Vec<Option<TermId>>,
    of_lookups: Vec<Option<LookupId>>,
    of_tables: Vec<Option<TableId>>,
    of_state: Vec<Option<StateId>>,
    terms: Vec<Term>,
    index: HashMap<Term, TermId>,
    lookups: Vec<Lookup>,
    tables: Vec<Table>,
    state: Vec<StateOf>,
}

impl Normal {
    fn step(&mut self, step: &mut Step) {
        step.map_refs(|named| match named {
            Ref::Lookup(lookup) => *lookup = self.lookup(*lookup),
            Ref::Table(table) => *table = self.table(*table),
            Ref::State(state) => *state = self.state(*state),
        });
        step.map_terms(|term| self.term(term));
    }

    /// On an explicit stack, as terms may be nested as deeply as a chain is long.
    fn term(&mut self, root: TermId) -> TermId {
        let mut waiting = vec![root];
        while let Some(&at) = waiting.last() {
            let place = at.0 as usize;
            if self.of_terms[place].is_some() {
                waiting.pop();
                continue;
            }
            let term = &self.from.0[place];
            let mut needs = term.operands();
            if let Term::Bound(lookup, _) = term
                && self.of_lookups[usize::from(lookup.0)].is_none()
            {
                needs.extend(&self.from.1[usize::from(lookup.0)].key);
            }
            needs.retain(|need| self.of_terms[need.0 as usize].is_none());
            if !needs.is_empty() {
                waiting.extend(needs.into_iter().rev());
                continue;
            }
            let mut term = term.clone();
            term.map_operands(|operand| self.made(operand));
            match &mut term {
                Term::Bound(lookup, _) => *lookup = self.found(*lookup),
                Term::Cell(cells, _) => *cells = self.state(*cells),
                _ => {}
            }
            let next = TermId(self.terms.len() as u32);
            let id = *self.index.entry(term).or_insert_with_key(|term| {
                self.terms.push(term.clone());
                next
            });
            self.of_terms[place] = Some(id);
            waiting.pop();
        }
        self.made(root)
    }

    /// A term that was numbered already.
    fn made(&self, term: TermId) -> TermId {
        self.of_terms[term.0 as usize].unwrap_or(term)
    }

    fn lookup(&mut self, lookup: LookupId) -> LookupId {
        if self.of_lookups[usize::from(lookup.0)].is_none() {
            let key = self.from.1[usize::from(lookup.0)].key.clone();
            for term in key {
                self.term(term);
            }
        }
        self.found(lookup)
    }

    /// A lookup whose key was numbered already.
    fn found(&mut self, lookup: LookupId) -> LookupId {
        let at = usize::from(lookup.0);
        if let Some(known) = self.of_lookups[at] {
            return known;
        }
        let mut new = self.from.1[at].clone();
        new.table = self.table(new.table);
        new.key.iter_mut().for_each(|term| *term = self.made(*term));
        self.lookups.push(new);
        let id = LookupId(self.lookups.len() as u16 - 1);
        self.of_lookups[at] = Some(id);
        id
    }

    fn table(&mut self, table: TableId) -> TableId {
        let at = usize::from(table.0);
        if let Some(known) = self.of_tables[at] {
            return known;
        }
        let mut new = self.from.2[at].clone();
        if let Entries::Flows(state) = &mut new.entries {
            *state = self.state(*state);
        }
        self.tables.push(new);
        let id = TableId(self.tables.len() as u16 - 1);
        self.of_tables[at] = Some(id);
        id
    }

    fn state(&mut self, state: StateId) -> StateId {
        let at = usize::from(state.0);
        if let Some(known) = self.of_state[at] {
            return known;
        }
        self.state.push(self.from.3[at].clone());
        let id = StateId(self.state.len() as u16 - 1);
        self.of_state[at] = Some(id);
        id
    }
}

/// What a step names besides terms and steps.
#[derive(Debug)]
pub enum Ref<'a> {
    /// A lookup.
    Lookup(&'a mut LookupId),
    /// A table of rules.
    Table(&'a mut TableId),
    /// A counter or cells.
    State(&'a mut StateId),
}

impl Exit {
    fn map_refs(&mut self, to: &mut impl FnMut(Ref<'_>)) {
        self.copies.iter_mut().for_each(|copy| copy.map_refs(to));
        for effect in &mut self.effects {
            match effect {
                Effect::Count { counter: state, .. } | Effect::Set { cells: state, .. } => {
                    to(Ref::State(state));
                }
                Effect::Update { lookup, .. } => to(Ref::Lookup(lookup)),
                Effect::Note { .. } => {}
            }
        }
    }

    fn map_terms(&mut self, to: &mut impl FnMut(TermId) -> TermId) {
        self.copies.iter_mut().for_each(|copy| copy.map_terms(to));
        for effect in &mut self.effects {
            match effect {
                Effect::Count { length: term, .. } | Effect::Set { value: term, .. } => {
                    *term = to(*term);
                }
                Effect::Note { .. } => {}
                Effect::Update { common, expiry, guarantee, .. } => {
                    common.iter_mut().for_each(|c| *c = to(*c));
                    (*expiry, *guarantee) = (to(*expiry), to(*guarantee));
                }
            }
        }
        let writes = &mut self.writes;
        let bytes = writes.bytes.iter_mut().chain(&mut writes.annotations);
        for write in bytes.chain(&mut writes.carried) {
            write.value = to(write.value);
        }
        for term in [&mut writes.length, &mut writes.packet_type, &mut writes.timestamp] {
            *term = term.map(&mut *to);
        }
        for mark in &mut writes.marks {
            if let Mark::At(at) = mark {
                *at = to(*at);
            }
        }
    }
}

impl Step {
    /// Replaces what it names besides terms and steps.
    pub fn map_refs(&mut self, mut to: impl FnMut(Ref<'_>)) {
        match self {
            Step::Lookup { lookup, .. } => to(Ref::Lookup(lookup)),
            Step::Classify { table: Some(table), .. } => to(Ref::Table(table)),
            Step::Exit(exit) => exit.map_refs(&mut to),
            Step::Test { .. } | Step::Switch { .. } | Step::Classify { .. } => {}
        }
    }

    /// Replaces the terms that it names itself; not those of a lookup's key.
    pub fn map_terms(&mut self, mut to: impl FnMut(TermId) -> TermId) {
        match self {
            Step::Test { atom, .. } => atom.map_operands(&mut to),
            Step::Switch { on, .. } => *on = to(*on),
            Step::Classify { keys, .. } => keys.iter_mut().for_each(|k| *k = to(*k)),
            Step::Lookup { .. } => {}
            Step::Exit(exit) => exit.map_terms(&mut to),
        }
    }
}

impl Atom {
    fn map_operands(&mut self, to: &mut impl FnMut(TermId) -> TermId) {
        match self {
            Atom::Test(t, _) => *t = to(*t),
            Atom::Compare(_, a, b) => (*a, *b) = (to(*a), to(*b)),
        }
    }
}

impl Term {
    /// Replaces the terms that it is made from.
    pub fn map_operands(&mut self, mut to: impl FnMut(TermId) -> TermId) {
        match self {
            Term::Const(_)
            | Term::Input(_)
            | Term::Position(_)
            | Term::Bound(..)
            | Term::Cell(..)
            | Term::Now => {}
            Term::Sum16 { length: t, .. } | Term::Slice { of: t, .. } => *t = to(*t),
            Term::NonZero(t) | Term::Map(t, _) => *t = to(*t),
            Term::OnesSum(sum) => sum.map_operands(to),
            Term::Binary(_, a, b) | Term::Concat { high: a, low: b, .. } => {
                (*a, *b) = (to(*a), to(*b));
            }
            Term::Choose(atom, a, b) => {
                atom.map_operands(&mut to);
                (*a, *b) = (to(*a), to(*b));
            }
            Term::Hash(_, all) => all.iter_mut().for_each(|t| *t = to(*t)),
        }
    }
}
