//! Decision graphs of programs as one: equal steps, and equal graphs behind them, are one node.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use ir::field::meta;
use ir::model::{BinaryOp, StateKind};
use ir::program::{
    Atom, Barrier, Continuation, Effect, End, Exit, LookupId, Mark, Program, StateOf, Step, StepId,
    Term, TermId, Write,
};
use ir::{Base, Field, IntervalSet, NodeId, Reason};

use super::arena::{Arena, Condition, Lookup, ends};

/// Index of a [`Node`].
pub(crate) type NodeRef = u32;

/// A conjunction: for some keys, by index, the numbers that match.
pub(crate) type Cube = Vec<(u8, IntervalSet)>;

/// First-match rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Classify {
    /// What rules look at.
    pub(crate) keys: Vec<TermId>,
    /// Conjunctions in order of precedence, and where they lead.
    pub(crate) rules: Vec<(Cube, NodeRef)>,
    /// Where packets go that no rule matches.
    pub(crate) otherwise: NodeRef,
}

/// Sets of more intervals than this are not united to describe where rules lead.
const MAX_UNION: usize = 256;

impl Classify {
    /// What the keys of all rules that lead to a target may be, where that is not anything.
    pub(crate) fn around(&self, target: NodeRef) -> Vec<(TermId, IntervalSet)> {
        let mut sets: Vec<Option<Vec<(u128, u128)>>> = vec![Some(Vec::new()); self.keys.len()];
        if self.otherwise == target {
            return Vec::new();
        }
        for (cube, _) in self.rules.iter().filter(|rule| rule.1 == target) {
            for (key, intervals) in sets.iter_mut().enumerate() {
                let set = cube.iter().find(|(k, _)| usize::from(*k) == key);
                match (set, &mut *intervals) {
                    (Some((_, set)), Some(all)) => all.extend_from_slice(set.intervals()),
                    (None, _) => *intervals = None,
                    _ => {}
                }
            }
        }
        let united = self.keys.iter().zip(sets).filter_map(|(&key, intervals)| {
            let set = IntervalSet::from_intervals(intervals?);
            let few = set.intervals().len() <= MAX_UNION;
            let hull = || ends(&set).map(|(low, high)| IntervalSet::range(low, high));
            Some((key, if few { set.clone() } else { hull()? }))
        });
        united.collect()
    }

    /// Where keys lead.
    pub(crate) fn first(&self, keys: &[u128]) -> NodeRef {
        let matches = |cube: &Cube| {
            cube.iter().all(|(k, set)| keys.get(usize::from(*k)).is_some_and(|&v| set.contains(v)))
        };
        self.rules.iter().find(|rule| matches(&rule.0)).map_or(self.otherwise, |rule| rule.1)
    }
}

/// A step in its normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// Where a condition leads.
    Test(Atom, NodeRef, NodeRef),
    /// Where the first set that holds a number leads.
    Switch(TermId, Rc<[(IntervalSet, NodeRef)]>, NodeRef),
    /// Where the first rule leads.
    Classify(Rc<Classify>),
    /// Where a lookup leads that finds a flow, and one that does not.
    Flow(LookupId, NodeRef, NodeRef),
    /// An end.
    Exit(Rc<Outcome>),
}

/// An element's or a place's name, by which two graphs are compared.
pub(crate) type Name = u32;

/// How a path ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Egress {
    /// At an input port, and whether natively.
    Push(Name, usize, bool),
    /// Dropped at an element.
    Drop(Name, Reason),
    /// With another part of the program.
    Handoff(Continuation),
    /// Dropped, wherever and for whatever reason.
    Gone,
    /// With an element's native code, as a flow holds what its configuration does not make: two chains are compared
    /// without such flows.
    Unexpected,
}

/// An [`Effect`] by names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Counts.
    Count(String, &'static str, TermId),
    /// Notes.
    Note(Name, Reason),
    /// Writes a cell.
    Set(String, &'static str, u16, TermId),
    /// Updates a flow.
    Update(LookupId, Vec<TermId>, TermId, TermId),
}

/// An [`Exit`] as far as it can be told from outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    /// Where it ends.
    pub(crate) egress: Egress,
    /// Where the data starts.
    pub(crate) start: i32,
    /// Its length; `None` if it ends where it did.
    pub(crate) length: Option<TermId>,
    /// Bytes that change, by place.
    pub(crate) bytes: BTreeMap<i32, TermId>,
    /// Bytes of the annotation area that change.
    pub(crate) annotations: BTreeMap<i32, TermId>,
    /// Bytes that are handed over with it.
    pub(crate) carried: BTreeMap<i32, TermId>,
    /// Marks.
    pub(crate) marks: [Option<Option<TermId>>; 3],
    /// The packet's type and timestamp, if they change.
    pub(crate) properties: [Option<TermId>; 2],
    /// Counts, notes and cells in any order, then updates in theirs.
    pub(crate) changes: Vec<Change>,
    /// The input ports that packets came through.
    pub(crate) visited: Vec<(Name, usize)>,
    /// What becomes of copies, in the order in which they leave.
    pub(crate) copies: Vec<Outcome>,
}

/// What of two programs is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Everything: packets, counters, reasons, state, the elements on the path.
    Whole,
    /// Which packets come out where.
    Packets,
}

/// The nodes of two programs.
#[derive(Default)]
pub(crate) struct Decisions {
    pub(crate) arena: Arena,
    nodes: Vec<Node>,
    /// Leaves of all that is asked at a node and behind it.
    leaves: Vec<u128>,
    ids: HashMap<Node, NodeRef>,
    names: Vec<String>,
    name_ids: HashMap<String, Name>,
}

/// The identity of a table does not include its size: that is compared when it is imported.
/// The flows of a lookup. Prefixes are looked up in programs that were not lowered only.
fn table(program: &Program, lookup: LookupId) -> (String, &'static str) {
    program.flows_of(lookup).map_or_else(Default::default, name_of)
}

fn name_of(state: &StateOf) -> (String, &'static str) {
    (state.owner.clone(), state.name)
}

impl Decisions {
    /// A node.
    pub(crate) fn node(&self, node: NodeRef) -> &Node {
        &self.nodes[node as usize]
    }

    /// Leaves of all that is asked at a node and behind it.
    pub(crate) fn leaves(&self, node: NodeRef) -> u128 {
        self.leaves[node as usize]
    }

    /// The text of a name.
    pub(crate) fn name(&self, name: Name) -> &str {
        &self.names[name as usize]
    }

    fn add_name(&mut self, name: String) -> Name {
        let next = self.names.len() as Name;
        let id = *self.name_ids.entry(name.clone()).or_insert(next);
        if id == next {
            self.names.push(name);
        }
        id
    }

    /// Adds a program, and says where it starts. `name` tells what an element is called, and `end`
    /// what the one is that a packet comes to, perhaps natively: those of two programs that are
    /// called alike are taken for the same.
    pub(crate) fn import(
        &mut self,
        program: &Program,
        view: View,
        name: &dyn Fn(NodeId) -> String,
        end: &dyn Fn(NodeId, bool) -> String,
    ) -> NodeRef {
        let mut import = Import {
            to: self,
            program,
            view,
            name,
            end,
            terms: Vec::with_capacity(program.terms.len()),
            lookups: vec![None; program.lookups.len()],
        };
        for term in &program.terms {
            let term = import.term(term);
            import.terms.push(term);
        }
        let mut nodes = vec![NodeRef::MAX; program.steps.len()];
        // Steps lead to later steps only.
        for (i, step) in program.steps.iter().enumerate().rev() {
            nodes[i] = import.step(step, &nodes);
        }
        nodes[0]
    }

    /// What was where exits write.
    pub(crate) fn places(&mut self, exits: &[NodeRef]) -> Vec<TermId> {
        let mut places = Vec::new();
        for &exit in exits {
            let Node::Exit(outcome) = self.node(exit).clone() else { continue };
            for outcome in outcome.copies.iter().chain([&*outcome]) {
                let bytes = outcome.bytes.keys().filter_map(|&at| unchanged(Base::Data, at));
                let rest = outcome.annotations.keys();
                let rest = rest.filter_map(|&at| unchanged(Base::Annotation, at));
                places.extend(bytes.chain(rest).map(|term| self.arena.make(term)));
            }
        }
        places
    }

    /// An exit in words; `end` gives those for an end's name.
    pub(crate) fn describe(&self, node: NodeRef, end: &dyn Fn(&str) -> String) -> String {
        let Node::Exit(outcome) = self.node(node) else { return "further on".into() };
        match &outcome.egress {
            Egress::Push(name, port, _) => format!("at {} [{port}]", end(self.name(*name))),
            Egress::Drop(name, reason) => format!("dropped at '{}' ({reason})", self.name(*name)),
            Egress::Handoff(to) => format!("handed off to {to}"),
            Egress::Gone => "dropped".into(),
            Egress::Unexpected => "with flows that are not expected".into(),
        }
    }

    /// The name of the end that packets of an exit come to.
    pub(crate) fn end_name(&self, node: NodeRef) -> Option<&str> {
        match self.node(node) {
            Node::Exit(outcome) => match &outcome.egress {
                Egress::Push(name, ..) => Some(self.name(*name)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn add(&mut self, node: Node) -> NodeRef {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let id = self.nodes.len() as NodeRef;
        let of = |terms: &[TermId]| terms.iter().fold(0, |l, &t| l | self.arena.leaves(t));
        let leaves = match &node {
            Node::Test(atom, yes, no) => {
                self.arena.atom_leaves(atom) | self.leaves(*yes) | self.leaves(*no)
            }
            Node::Switch(on, cases, otherwise) => {
                cases.iter().fold(self.arena.leaves(*on) | self.leaves(*otherwise), |l, c| {
                    l | self.leaves(c.1)
                })
            }
            Node::Classify(classify) => classify
                .rules
                .iter()
                .fold(of(&classify.keys) | self.leaves(classify.otherwise), |l, r| {
                    l | self.leaves(r.1)
                }),
            Node::Flow(lookup, hit, miss) => {
                self.arena.lookup_leaves(*lookup) | self.leaves(*hit) | self.leaves(*miss)
            }
            Node::Exit(outcome) => of(&outcome.terms()),
        };
        self.nodes.push(node.clone());
        self.leaves.push(leaves);
        self.ids.insert(node, id);
        id
    }
}

#[cfg(test)]
impl Outcome {
    /// Nothing is left.
    pub(super) fn gone() -> Self {
        Self {
            egress: Egress::Gone,
            start: 0,
            length: None,
            bytes: BTreeMap::new(),
            annotations: BTreeMap::new(),
            carried: BTreeMap::new(),
            marks: [None; 3],
            properties: [None; 2],
            changes: Vec::new(),
            visited: Vec::new(),
            copies: Vec::new(),
        }
    }
}

impl Outcome {
    /// The terms that it is made from.
    pub(crate) fn terms(&self) -> Vec<TermId> {
        let changes = self.changes.iter().flat_map(|change| match change {
            Change::Count(.., term) | Change::Set(.., term) => vec![*term],
            Change::Note(..) => Vec::new(),
            Change::Update(_, common, expiry, guarantee) => {
                common.iter().chain([expiry, guarantee]).copied().collect()
            }
        });
        self.length
            .into_iter()
            .chain(self.bytes.values().copied())
            .chain(self.annotations.values().copied())
            .chain(self.carried.values().copied())
            .chain(self.marks.iter().flatten().flatten().copied())
            .chain(self.properties.iter().flatten().copied())
            .chain(changes)
            .chain(self.copies.iter().flat_map(Outcome::terms))
            .collect()
    }

    /// Whether two ends of one shape do the same when `equal` says which terms are.
    pub(crate) fn agrees(
        &self,
        other: &Outcome,
        arena: &mut Arena,
        equal: &mut dyn FnMut(&mut Arena, TermId, TermId) -> bool,
    ) -> bool {
        if self.copies.len() != other.copies.len() {
            return false;
        }
        for (copy, other) in self.copies.iter().zip(&other.copies) {
            if !copy.agrees(other, arena, equal) {
                return false;
            }
        }
        let length = |o: &Outcome, arena: &mut Arena| match o.length {
            Some(length) => length,
            None => left(arena, o.start),
        };
        let (a, b) = (length(self, arena), length(other, arena));
        if !equal(arena, a, b) {
            return false;
        }
        for (x, y, base) in [
            (&self.bytes, &other.bytes, Base::Data),
            (&self.annotations, &other.annotations, Base::Annotation),
            (&self.carried, &other.carried, Base::Carried),
        ] {
            for &at in x.keys().chain(y.keys().filter(|at| !x.contains_key(at))) {
                let mut byte = |of: &BTreeMap<i32, TermId>| match of.get(&at) {
                    Some(&term) => Some(term),
                    None => Some(arena.make(unchanged(base, at)?)),
                };
                match (byte(x), byte(y)) {
                    (Some(a), Some(b)) if equal(arena, a, b) => {}
                    _ => return false,
                }
            }
        }
        for (a, b) in self.marks.iter().zip(&other.marks) {
            let same = match (a, b) {
                (Some(Some(a)), Some(Some(b))) => equal(arena, *a, *b),
                (a, b) => a == b,
            };
            if !same {
                return false;
            }
        }
        for ((a, b), field) in
            self.properties.iter().zip(&other.properties).zip([meta::TYPE, meta::TIMESTAMP])
        {
            let before = arena.make(Term::Input(field));
            if !equal(arena, a.unwrap_or(before), b.unwrap_or(before)) {
                return false;
            }
        }
        self.changes.len() == other.changes.len()
            && self.changes.iter().zip(&other.changes).all(|pair| match pair {
                (Change::Count(x, n, a), Change::Count(y, m, b)) => {
                    (x, n) == (y, m) && equal(arena, *a, *b)
                }
                (Change::Set(x, n, i, a), Change::Set(y, m, j, b)) => {
                    (x, n, i) == (y, m, j) && equal(arena, *a, *b)
                }
                (Change::Update(x, c, e, g), Change::Update(y, d, f, h)) => {
                    x == y
                        && c.len() == d.len()
                        && c.iter().zip(d).all(|(&a, &b)| equal(arena, a, b))
                        && equal(arena, *e, *f)
                        && equal(arena, *g, *h)
                }
                (a, b) => a == b,
            })
    }
}

/// The length of what is left when only the start of the data moves.
fn left(arena: &mut Arena, start: i32) -> TermId {
    let all = arena.make(Term::Input(meta::LEN));
    let start = arena.constant(i128::from(start) as u128);
    arena.make(Term::Binary(BinaryOp::Sub, all, start))
}

/// A byte of the packet or of its annotations as it came in, if it is one.
fn unchanged(base: Base, at: i32) -> Option<Term> {
    let bit = u16::try_from(at).ok()?.checked_mul(8)?;
    Some(Term::Input(Field::bits(base, bit, 8)))
}

/// Cases without what earlier ones hold.
fn apart(mut cases: Vec<(IntervalSet, NodeRef)>) -> Vec<(IntervalSet, NodeRef)> {
    let mut all: Vec<(u128, u128)> =
        cases.iter().flat_map(|case| case.0.intervals()).copied().collect();
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
        let mut covered = IntervalSet::empty();
        for (set, _) in &mut cases {
            let own = set.subtract(&covered);
            covered = covered.union(set);
            *set = own;
        }
    }
    cases
}

struct Import<'a> {
    to: &'a mut Decisions,
    program: &'a Program,
    view: View,
    name: &'a dyn Fn(NodeId) -> String,
    end: &'a dyn Fn(NodeId, bool) -> String,
    terms: Vec<TermId>,
    lookups: Vec<Option<LookupId>>,
}

impl Import<'_> {
    fn of(&self, term: TermId) -> TermId {
        self.terms[term.0 as usize]
    }

    fn atom(&self, atom: &Atom) -> Atom {
        match atom {
            Atom::Test(term, set) => Atom::Test(self.of(*term), set.clone()),
            Atom::Compare(op, a, b) => Atom::Compare(*op, self.of(*a), self.of(*b)),
        }
    }

    fn lookup(&mut self, lookup: LookupId) -> LookupId {
        let known = self.lookups[usize::from(lookup.0)];
        known.unwrap_or_else(|| {
            let of = &self.program.lookups[usize::from(lookup.0)];
            let key = of.key.iter().map(|&t| self.of(t)).collect();
            let id = self.to.arena.add_lookup(Lookup { table: table(self.program, lookup), key });
            self.lookups[usize::from(lookup.0)] = Some(id);
            id
        })
    }

    fn term(&mut self, term: &Term) -> TermId {
        let of = |t: &TermId| self.terms[t.0 as usize];
        let made = match term {
            // As if a lookup that always hits bound it.
            Term::Cell(cells, index) => {
                let state = &self.program.state[usize::from(cells.0)];
                let width = match state.kind {
                    StateKind::Cells { width, .. } => width,
                    StateKind::Counter | StateKind::Flows { .. } => 128,
                };
                let key = vec![self.to.arena.constant((*index).into())];
                let lookup = self.to.arena.add_lookup(Lookup { table: name_of(state), key });
                self.to.arena.declare_width(lookup, 0, width);
                Term::Bound(lookup, 0)
            }
            Term::Bound(lookup, index) => {
                // Common cells are counted from 128 on, however many values stand before them.
                let of = &self.program.lookups[usize::from(lookup.0)];
                let flows = self.program.flows_of(*lookup);
                let width = flows.map_or(128, |flows| flows.kind.width((*index).into()));
                let index = match index.checked_sub(of.values) {
                    Some(cell) => 128 | cell,
                    None => *index,
                };
                let lookup = self.lookup(*lookup);
                self.to.arena.declare_width(lookup, index, width);
                Term::Bound(lookup, index)
            }
            Term::Sum16 { offset, length } => Term::Sum16 { offset: *offset, length: of(length) },
            Term::Binary(op, a, b) => Term::Binary(*op, of(a), of(b)),
            Term::Slice { of: t, low, width } => {
                Term::Slice { of: of(t), low: *low, width: *width }
            }
            Term::Concat { high, low, width } => {
                Term::Concat { high: of(high), low: of(low), width: *width }
            }
            Term::OnesSum(sum) => {
                let mut sum = sum.clone();
                sum.map_operands(|t| of(&t));
                Term::OnesSum(sum)
            }
            Term::NonZero(t) => Term::NonZero(of(t)),
            Term::Choose(atom, a, b) => Term::Choose(self.atom(atom), of(a), of(b)),
            Term::Map(number, table) => Term::Map(of(number), Arc::clone(table)),
            Term::Hash(function, all) => Term::Hash(*function, all.iter().map(of).collect()),
            other => other.clone(),
        };
        self.to.arena.make(made)
    }

    fn step(&mut self, step: &Step, nodes: &[NodeRef]) -> NodeRef {
        let at = |step: &StepId| nodes[step.0 as usize];
        let node = match step {
            Step::Test { atom, yes, no, .. } => {
                let (yes, no) = (at(yes), at(no));
                match self.to.arena.condition(self.atom(atom)) {
                    Condition::Const(true) => return yes,
                    Condition::Const(false) => return no,
                    _ if yes == no => return yes,
                    Condition::Is(atom) => Node::Test(atom, yes, no),
                    Condition::Not(atom) => Node::Test(atom, no, yes),
                }
            }
            Step::Switch { on, cases, otherwise, .. } => {
                let (on, otherwise) = (self.of(*on), at(otherwise));
                return self.switch(on, cases.iter().map(|c| (c.0.clone(), at(&c.1))), otherwise);
            }
            Step::Classify { keys, rules, arms, otherwise, .. } => {
                let rules: Vec<(Cube, NodeRef)> = rules
                    .iter()
                    .flat_map(|rule| {
                        let arm = at(&arms[rule.arm as usize]);
                        rule.cubes.iter().map(move |cube| (cube.clone(), arm))
                    })
                    .collect();
                let otherwise = at(otherwise);
                if rules.iter().all(|rule| rule.1 == otherwise) {
                    return otherwise;
                }
                let keys = keys.iter().map(|&key| self.of(key)).collect();
                Node::Classify(Rc::new(Classify { keys, rules, otherwise }))
            }
            Step::Lookup { lookup, hit, miss } => {
                let (hit, miss) = (at(hit), at(miss));
                if hit == miss {
                    return hit;
                }
                Node::Flow(self.lookup(*lookup), hit, miss)
            }
            Step::Exit(exit) => Node::Exit(Rc::new(self.exit(exit))),
        };
        self.to.add(node)
    }

    /// A switch whose cases are disjoint, one a target, in order of their least numbers.
    fn switch(
        &mut self,
        on: TermId,
        cases: impl Iterator<Item = (IntervalSet, NodeRef)>,
        otherwise: NodeRef,
    ) -> NodeRef {
        let range = self.to.arena.range(on);
        let cases = apart(cases.collect());
        let mut intervals: BTreeMap<NodeRef, Vec<(u128, u128)>> = BTreeMap::new();
        let mut covered = Vec::new();
        for (set, to) in cases {
            let set = set.intersect(&range);
            covered.extend_from_slice(set.intervals());
            if to != otherwise && !set.is_empty() {
                intervals.entry(to).or_default().extend_from_slice(set.intervals());
            }
        }
        let mut cases: Vec<(IntervalSet, NodeRef)> =
            intervals.into_iter().map(|(to, set)| (IntervalSet::from_intervals(set), to)).collect();
        cases.sort_by_key(|case| ends(&case.0));
        let rest = range.subtract(&IntervalSet::from_intervals(covered));
        if rest.is_empty() && cases.len() == 1 {
            return cases[0].1;
        }
        match &cases[..] {
            [] => otherwise,
            [(set, to)] => match self.to.arena.condition(Atom::Test(on, set.clone().into())) {
                Condition::Const(true) => *to,
                Condition::Const(false) => otherwise,
                Condition::Is(atom) => self.to.add(Node::Test(atom, *to, otherwise)),
                Condition::Not(atom) => self.to.add(Node::Test(atom, otherwise, *to)),
            },
            _ => self.to.add(Node::Switch(on, cases.into(), otherwise)),
        }
    }

    fn bytes(&mut self, writes: &[Write], base: Base) -> BTreeMap<i32, TermId> {
        let mut bytes = BTreeMap::new();
        for write in writes {
            let value = self.of(write.value);
            let length = u32::from(write.length);
            for i in 0..length {
                let at = write.offset + i as i32;
                let byte = self.to.arena.slice(value, 8 * (length - 1 - i), 8);
                let same = unchanged(base, at);
                match same.is_some_and(|same| *self.to.arena.term(byte) == same) {
                    true => bytes.remove(&at),
                    false => bytes.insert(at, byte),
                };
            }
        }
        bytes
    }

    fn exit(&mut self, exit: &Exit) -> Outcome {
        let writes = &exit.writes;
        let whole = self.view == View::Whole;
        let gone = matches!(exit.end, End::Drop { .. });
        let egress = match exit.end {
            End::Push { .. } if !whole && exit.barrier == Some(Barrier::Unexpected) => {
                Egress::Unexpected
            }
            End::Push { to, native } => {
                let name = self.to.add_name((self.end)(to.node, native));
                Egress::Push(name, to.port, native)
            }
            End::Handoff { to } => Egress::Handoff(to),
            End::Drop { .. } if !whole => Egress::Gone,
            End::Drop { element, reason } => {
                Egress::Drop(self.to.add_name((self.name)(element)), reason)
            }
        };
        let mut changes = Vec::new();
        for effect in &exit.effects {
            changes.push(match effect {
                Effect::Count { .. } | Effect::Note { .. } if !whole => continue,
                Effect::Count { counter, length } => {
                    let (owner, name) = name_of(&self.program.state[usize::from(counter.0)]);
                    Change::Count(owner, name, self.of(*length))
                }
                Effect::Note { element, reason } => {
                    Change::Note(self.to.add_name((self.name)(*element)), *reason)
                }
                Effect::Set { cells, index, value } => {
                    let (owner, name) = name_of(&self.program.state[usize::from(cells.0)]);
                    Change::Set(owner, name, *index, self.of(*value))
                }
                Effect::Update { lookup, common, expiry, guarantee } => {
                    let common = common.iter().map(|&t| self.of(t)).collect();
                    Change::Update(
                        self.lookup(*lookup),
                        common,
                        self.of(*expiry),
                        self.of(*guarantee),
                    )
                }
            });
        }
        changes.sort_by(|a, b| match (a, b) {
            (Change::Update(..), Change::Update(..)) => std::cmp::Ordering::Equal,
            (a, b) => a.cmp(b),
        });
        let visited = exit
            .visited
            .iter()
            .filter(|_| whole)
            .map(|port| (self.to.add_name((self.name)(port.node)), port.port))
            .collect();
        let kept = |term: Option<TermId>, unchanged: Field, arena: &Arena| {
            term.filter(|&t| *arena.term(t) != Term::Input(unchanged))
        };
        let length = writes.length.map(|length| self.of(length)).filter(|_| whole || !gone);
        let length = length.filter(|&l| l != left(&mut self.to.arena, writes.start));
        let mut outcome = Outcome {
            egress,
            start: if whole || !gone { writes.start } else { 0 },
            length,
            bytes: BTreeMap::new(),
            annotations: BTreeMap::new(),
            carried: BTreeMap::new(),
            marks: [None; 3],
            properties: [None; 2],
            changes,
            visited,
            copies: exit.copies.iter().map(|copy| self.exit(copy)).collect(),
        };
        if gone {
            return outcome;
        }
        outcome.bytes = self.bytes(&writes.bytes, Base::Data);
        outcome.annotations = self.bytes(&writes.annotations, Base::Annotation);
        outcome.carried = self.bytes(&writes.carried, Base::Carried);
        outcome.marks = writes.marks.map(|mark| match mark {
            Mark::Keep => None,
            Mark::Clear => Some(None),
            Mark::At(term) => Some(Some(self.of(term))),
        });
        let packet_type = writes.packet_type.map(|t| self.of(t));
        let timestamp = writes.timestamp.map(|t| self.of(t));
        outcome.properties = [
            kept(packet_type, meta::TYPE, &self.to.arena),
            kept(timestamp, meta::TIMESTAMP, &self.to.arena),
        ];
        outcome
    }
}

/// The state that two programs share by name and that is not the same in both.
pub(crate) fn unlike_state(a: &Program, b: &Program) -> Option<String> {
    for one in &a.state {
        let same = |other: &&ir::program::StateOf| {
            (&other.owner, other.name) == (&one.owner, one.name) && other.kind != one.kind
        };
        if let Some(other) = b.state.iter().find(same) {
            let kind = |kind: &StateKind| match kind {
                StateKind::Counter => "a counter".to_string(),
                StateKind::Cells { initial, .. } => format!("{} cells", initial.len()),
                StateKind::Flows { capacity, .. } => format!("a table of {capacity} flows"),
            };
            let (x, y) = (kind(&one.kind), kind(&other.kind));
            return Some(format!("{} of '{}' is {x} here and {y} there", one.name, one.owner));
        }
    }
    None
}
