//! Two programs side by side: every path through one under what it says of the packet, through the
//! other.
//!
//! A question whose answer is not known is asked: the comparison goes on under either answer. So
//! what is found equal is equal for every packet. What is found different may be so because too
//! little was known: it counts only once a packet shows it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ir::IntervalSet;
use ir::program::{Atom, LookupId, TermId};

use super::Around;
use super::arena::Condition;
use super::decisions::{Classify, Decisions, Egress, Node, NodeRef, Outcome};
use super::first_match::{Exhausted, Pair, Piece, Rules, Space};
use super::knowledge::Knowledge;

/// Differences after which the comparison ends.
const MAX_MISMATCHES: usize = 40;
/// Steps on one path; programs beyond are not compared.
const MAX_DEPTH: u32 = 20_000;
/// Effort to find a key that rules before another leave to it.
const POINTS: u64 = 400_000;
/// Effort to look at all that leads somewhere, where some of it is known to differ.
const SUSPECTED: u64 = 1_000_000;

/// What was assumed on a path.
#[derive(Clone, Debug)]
pub(crate) enum Assumed {
    /// A condition held or not.
    Atom(Atom, bool),
    /// A number was in a set.
    Set(TermId, IntervalSet),
    /// A lookup found a flow or not.
    Lookup(LookupId, bool),
    /// A classification led to a node.
    Class(NodeRef, NodeRef),
    /// Perhaps: keys in a piece. A hint, no condition.
    Hint(Vec<TermId>, Piece),
}

/// A path on which two programs seem to differ.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    /// What was assumed.
    pub(crate) path: Vec<Assumed>,
    /// The exit of the one.
    pub(crate) a: NodeRef,
    /// The exit of the other.
    pub(crate) b: NodeRef,
}

/// The comparison.
pub(crate) struct Product<'a> {
    pub(crate) decisions: &'a mut Decisions,
    knowledge: Knowledge,
    path: Vec<Assumed>,
    equal: HashSet<(NodeRef, NodeRef, u64)>,
    pub(crate) mismatches: Vec<Mismatch>,
    /// Paths that end in code of elements' own, of which nothing is known here.
    pub(crate) left_open: Vec<Mismatch>,
    around: &'a dyn Around,
    /// How often ends were the same only because no flow was found: that is not remembered.
    by_miss: u64,
    /// Pairs of steps that were looked at.
    pub(crate) visited: u64,
    budget: u64,
    /// Pairs of exits whose terms were found equal or not under what is known.
    outcomes: HashMap<(NodeRef, NodeRef, u64), bool>,
}

impl<'a> Product<'a> {
    /// A comparison that looks at about `budget` pairs of steps and pieces of rules at the most.
    pub(crate) fn new(decisions: &'a mut Decisions, around: &'a dyn Around, budget: u64) -> Self {
        Self {
            decisions,
            around,
            left_open: Vec::new(),
            by_miss: 0,
            knowledge: Knowledge::default(),
            path: Vec::new(),
            equal: HashSet::new(),
            mismatches: Vec::new(),
            visited: 0,
            budget,
            outcomes: HashMap::new(),
        }
    }

    /// Compares two nodes for every packet that is left. What differs is added to `mismatches`.
    pub(crate) fn compare(&mut self, a: NodeRef, b: NodeRef) -> Result<(), Exhausted> {
        self.compare_at(a, b, 0)
    }

    fn node(&self, node: NodeRef) -> Node {
        self.decisions.node(node).clone()
    }

    fn known(&self, term: TermId) -> IntervalSet {
        self.knowledge.known(&self.decisions.arena, term)
    }

    /// Where a node leads for sure.
    fn settle(&self, mut at: NodeRef) -> NodeRef {
        loop {
            at = match self.decisions.node(at) {
                Node::Test(atom, yes, no) => {
                    match self.knowledge.truth(&self.decisions.arena, atom) {
                        Some(true) => *yes,
                        Some(false) => *no,
                        None => return at,
                    }
                }
                Node::Switch(on, cases, otherwise) => {
                    let known = self.known(*on);
                    let mut meeting = cases.iter().filter(|(set, _)| set.intersects(&known));
                    match (meeting.next(), meeting.next()) {
                        (None, _) => *otherwise,
                        (Some((set, to)), None) if known.is_subset(set) => *to,
                        _ => return at,
                    }
                }
                Node::Flow(lookup, hit, miss) => match self.knowledge.lookup(*lookup) {
                    Some(true) => *hit,
                    Some(false) => *miss,
                    None => return at,
                },
                Node::Classify(list) => {
                    let mut known = self.knowledge.classes().filter(|(class, _)| *class == at);
                    match known.next().map(|(_, to)| to).or_else(|| self.certain(list)) {
                        Some(to) => to,
                        None => return at,
                    }
                }
                Node::Exit(_) => return at,
            };
        }
    }

    /// Where rules lead for sure.
    fn certain(&self, list: &Classify) -> Option<NodeRef> {
        let mut keys: Vec<Option<IntervalSet>> = vec![None; list.keys.len()];
        for (cube, target) in &list.rules {
            let (mut possible, mut certain) = (true, true);
            for (key, set) in cube {
                let key = usize::from(*key);
                let known = keys[key].get_or_insert_with(|| self.known(list.keys[key]));
                possible &= known.intersects(set);
                certain &= known.is_subset(set);
            }
            match (possible, certain) {
                (_, true) => return Some(*target),
                (true, false) => return None,
                (false, false) => {}
            }
        }
        Some(list.otherwise)
    }

    fn compare_at(&mut self, a: NodeRef, b: NodeRef, depth: u32) -> Result<(), Exhausted> {
        if a == b || self.mismatches.len() >= MAX_MISMATCHES {
            return Ok(());
        }
        let (a, b) = (self.settle(a), self.settle(b));
        if a == b {
            return Ok(());
        }
        self.visited += 1;
        self.budget = self.budget.checked_sub(1).ok_or(Exhausted)?;
        if depth > MAX_DEPTH {
            return Err(Exhausted);
        }
        let leaves = self.decisions.leaves(a) | self.decisions.leaves(b);
        let print = self.knowledge.fingerprint(&self.decisions.arena, leaves);
        if self.equal.contains(&(a, b, print)) {
            return Ok(());
        }
        let before = (self.mismatches.len(), self.by_miss);
        let excluding = self.knowledge.take_excluding();
        let result = self.compare_apart(a, b, print, depth + 1);
        let within = self.knowledge.take_excluding();
        self.knowledge.exclude_by(excluding | within);
        result?;
        // What is remembered holds wherever the same is known of these leaves.
        if (self.mismatches.len(), self.by_miss) == before && within & !leaves == 0 {
            self.equal.insert((a, b, print));
        }
        Ok(())
    }

    /// Compares two nodes of which neither is known to lead on.
    fn compare_apart(
        &mut self,
        a: NodeRef,
        b: NodeRef,
        print: u64,
        depth: u32,
    ) -> Result<(), Exhausted> {
        // What is not known as it is asked may be once what is known is put into the question.
        if let Some(to) = self.answer(a) {
            return self.compare_at(to, b, depth);
        }
        if let Some(to) = self.answer(b) {
            return self.compare_at(a, to, depth);
        }
        match (self.node(a), self.node(b)) {
            (Node::Exit(x), Node::Exit(y)) => {
                let known = self.outcomes.get(&(a, b, print)).copied();
                let by_miss = self.by_miss;
                let same = known.unwrap_or_else(|| self.same(&x, &y));
                if self.by_miss == by_miss {
                    self.outcomes.insert((a, b, print), same);
                }
                if !same {
                    let open = self.is_left_open(&x) || self.is_left_open(&y);
                    let to = if open { &mut self.left_open } else { &mut self.mismatches };
                    if to.len() < MAX_MISMATCHES {
                        to.push(Mismatch { path: self.path.clone(), a, b });
                    }
                }
            }
            (Node::Classify(x), Node::Classify(y)) => self.both(a, &x, b, &y, depth)?,
            // A classification is best met by the other: first what stands before it there.
            (
                Node::Classify(_) | Node::Exit(_),
                y @ (Node::Test(..) | Node::Switch(..) | Node::Flow(..)),
            ) => {
                self.split(y, depth, |to, this, depth| this.compare_at(a, to, depth))?;
            }
            (x @ (Node::Test(..) | Node::Switch(..) | Node::Flow(..)), _) => {
                self.split(x, depth, |to, this, depth| this.compare_at(to, b, depth))?;
            }
            (Node::Classify(x), Node::Exit(_)) => {
                self.one(a, &x, depth, |to, this, depth| this.compare_at(to, b, depth))?;
            }
            (Node::Exit(_), Node::Classify(y)) => {
                self.one(b, &y, depth, |to, this, depth| this.compare_at(a, to, depth))?;
            }
        }
        Ok(())
    }

    /// The question of a test with what is known put into it.
    fn put_in(&mut self, atom: &Atom) -> Condition {
        let arena = &mut self.decisions.arena;
        let resolved = match atom {
            Atom::Test(term, set) => Atom::Test(self.knowledge.resolve(arena, *term), set.clone()),
            Atom::Compare(op, a, b) => {
                let (a, b) = (self.knowledge.resolve(arena, *a), self.knowledge.resolve(arena, *b));
                Atom::Compare(*op, a, b)
            }
        };
        arena.condition(resolved)
    }

    /// Where a test or switch leads for sure once what is known is put into its question.
    fn answer(&mut self, at: NodeRef) -> Option<NodeRef> {
        match self.node(at) {
            Node::Test(atom, yes, no) => {
                let holds = match self.put_in(&atom) {
                    Condition::Const(holds) => Some(holds),
                    Condition::Is(atom) => self.knowledge.truth(&self.decisions.arena, &atom),
                    Condition::Not(atom) => {
                        self.knowledge.truth(&self.decisions.arena, &atom).map(|holds| !holds)
                    }
                };
                holds.map(|holds| if holds { yes } else { no })
            }
            Node::Switch(on, cases, otherwise) => {
                let resolved = self.knowledge.resolve(&mut self.decisions.arena, on);
                let known = self.known(resolved);
                let mut meeting = cases.iter().filter(|(set, _)| set.intersects(&known));
                match (meeting.next(), meeting.next()) {
                    (None, _) => Some(otherwise),
                    (Some((set, to)), None) if known.is_subset(set) => Some(*to),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Goes on under an assumption, if it can hold.
    fn under(
        &mut self,
        assumed: Assumed,
        go: impl FnOnce(&mut Self) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        let level = self.knowledge.level();
        let possible = match &assumed {
            Assumed::Atom(atom, holds) => {
                let put_in = self.put_in(atom);
                let arena = &self.decisions.arena;
                let also = match &put_in {
                    Condition::Const(value) => value == holds,
                    Condition::Is(atom) => self.knowledge.learn(arena, atom, *holds),
                    Condition::Not(atom) => self.knowledge.learn(arena, atom, !holds),
                };
                also && self.knowledge.learn(arena, atom, *holds)
            }
            Assumed::Set(term, set) => {
                let resolved = self.knowledge.resolve(&mut self.decisions.arena, *term);
                let arena = &self.decisions.arena;
                self.knowledge.learn_set(arena, resolved, set)
                    && self.knowledge.learn_set(arena, *term, set)
            }
            Assumed::Lookup(lookup, hit) => {
                self.knowledge.learn_lookup(*lookup, *hit);
                true
            }
            Assumed::Class(class, to) => {
                self.knowledge.learn_class(*class, *to);
                true
            }
            Assumed::Hint(..) => true,
        };
        let result = match possible {
            true => {
                self.path.push(assumed);
                let result = go(self);
                self.path.pop();
                result
            }
            false => Ok(()),
        };
        self.knowledge.forget(level);
        result
    }

    /// Asks a question and goes on with each answer.
    fn split(
        &mut self,
        node: Node,
        depth: u32,
        go: impl Fn(NodeRef, &mut Self, u32) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        match node {
            Node::Test(atom, yes, no) => {
                self.under(Assumed::Atom(atom.clone(), true), |this| go(yes, this, depth))?;
                self.under(Assumed::Atom(atom, false), |this| go(no, this, depth))
            }
            Node::Switch(on, cases, otherwise) => {
                let mut rest = self.known(on);
                for (set, to) in cases.iter() {
                    if rest.intersects(set) {
                        let both = rest.intersect(set);
                        self.under(Assumed::Set(on, both), |this| go(*to, this, depth))?;
                    }
                }
                let covered = cases.iter().flat_map(|c| c.0.intervals()).copied().collect();
                rest = rest.subtract(&IntervalSet::from_intervals(covered));
                match rest.is_empty() {
                    true => Ok(()),
                    false => self.under(Assumed::Set(on, rest), |this| go(otherwise, this, depth)),
                }
            }
            Node::Flow(lookup, hit, miss) => {
                self.under(Assumed::Lookup(lookup, true), |this| go(hit, this, depth))?;
                self.under(Assumed::Lookup(lookup, false), |this| go(miss, this, depth))
            }
            Node::Classify(_) | Node::Exit(_) => Ok(()),
        }
    }

    fn around(&self, list: &Classify, target: NodeRef) -> Vec<Assumed> {
        list.around(target).into_iter().map(|(key, set)| Assumed::Set(key, set)).collect()
    }

    /// Goes on under all of some assumptions.
    fn under_all(
        &mut self,
        mut assumed: Vec<Assumed>,
        go: &mut dyn FnMut(&mut Self) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        match assumed.pop() {
            None => go(self),
            Some(last) => self.under(last, |this| this.under_all(assumed, go)),
        }
    }

    fn exactly(&self, space: &Space, piece: &Piece) -> Vec<Assumed> {
        let sets = space.keys.iter().zip(piece).zip(&space.all);
        let narrower = sets.filter(|((_, set), all)| set != all);
        narrower.map(|((&key, set), _)| Assumed::Set(key, set.clone())).collect()
    }

    /// Goes where a classification may lead that only one program asks.
    fn one(
        &mut self,
        at: NodeRef,
        list: &Rc<Classify>,
        depth: u32,
        go: impl Fn(NodeRef, &mut Self, u32) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        // Another classification of the same keys may have been passed.
        let passed =
            self.knowledge.classes().find_map(|(class, to)| match self.decisions.node(class) {
                Node::Classify(other) if other.keys == list.keys => Some((Rc::clone(other), to)),
                _ => None,
            });
        let space = Space::new([&**list], |key| self.known(key));
        let rules = space.rules(list);
        let possible: Vec<(NodeRef, Vec<Piece>)> = match &passed {
            Some((other, came)) => {
                let pairs = space.rules(other).pairs(&rules, &space, &mut self.budget)?;
                let pairs = pairs.into_iter().filter(|p| p.a == *came);
                let pieces = |p: Pair| p.samples.into_iter().map(|s| s.piece).collect();
                pairs.map(|p| (p.b, pieces(p))).collect()
            }
            None => rules.targets(&space),
        };
        for (target, samples) in possible {
            let before = self.mismatches.len();
            let mut assumed = self.around(list, target);
            assumed.extend(samples.iter().map(|s| Assumed::Hint(space.keys.clone(), s.clone())));
            assumed.push(Assumed::Class(at, target));
            self.under_all(assumed, &mut |this| go(target, this, depth))?;
            if self.mismatches.len() == before {
                continue;
            }
            // Perhaps too little was known: again, with just what leads there.
            self.mismatches.truncate(before);
            for rule in (0..rules.len()).filter(|&rule| rules.target(rule) == target) {
                for piece in rules.effective(rule, &space, &mut self.budget)? {
                    let exactly = self.exactly(&space, &piece);
                    self.under_all(exactly, &mut |this| go(target, this, depth))?;
                }
            }
        }
        Ok(())
    }

    /// Goes where classifications in both programs may lead.
    fn both(
        &mut self,
        a: NodeRef,
        x: &Rc<Classify>,
        b: NodeRef,
        y: &Rc<Classify>,
        depth: u32,
    ) -> Result<(), Exhausted> {
        let space = Space::new([&**x, &**y], |key| self.known(key));
        let (here, there) = (space.rules(x), space.rules(y));
        let pairs = match here.pairs(&there, &space, &mut self.budget) {
            Ok(pairs) => pairs,
            Err(exhausted) => {
                // Not all can be looked at. Some of what was changed can.
                let changed = here.changed(&there, &space, &mut { POINTS });
                for (part, to_a, to_b) in changed {
                    let found = self.suspects(&space, &part, to_a, to_b, depth);
                    self.mismatches.extend(found);
                }
                return Err(exhausted);
            }
        };
        for pair in pairs {
            if pair.a == pair.b {
                continue;
            }
            let before = self.mismatches.len();
            let mut assumed = self.around(x, pair.a);
            assumed.extend(self.around(y, pair.b));
            let hint = |piece: &Piece| Assumed::Hint(space.keys.clone(), piece.clone());
            assumed.extend(pair.samples.iter().map(|sample| hint(&sample.piece)));
            assumed.extend([Assumed::Class(a, pair.a), Assumed::Class(b, pair.b)]);
            self.under_all(assumed, &mut |this| this.compare_at(pair.a, pair.b, depth))?;
            if self.mismatches.len() == before {
                continue;
            }
            self.mismatches.truncate(before);
            // Perhaps too little was known: again, with just what leads there. Where that is too
            // much to look at, some of it has to do.
            let mut suspects = Vec::new();
            for sample in &pair.samples {
                if let Ok(Some(part)) = here.part_of(&there, sample, &mut { POINTS }) {
                    suspects.extend(self.suspects(&space, &part, pair.a, pair.b, depth));
                }
            }
            let whole = self.budget;
            if !suspects.is_empty() {
                self.budget = whole.min(SUSPECTED);
            }
            let given = self.budget;
            let result = self.each_part(&here, &there, &space, &pair, depth);
            self.budget = whole - (given - self.budget);
            if result.is_err() {
                if suspects.is_empty() {
                    return result;
                }
                self.mismatches.truncate(before);
                self.mismatches.extend(suspects);
            }
        }
        Ok(())
    }

    /// Goes on with every part of two lists' rules that leads to two targets.
    fn each_part(
        &mut self,
        here: &Rules,
        there: &Rules,
        space: &Space,
        pair: &Pair,
        depth: u32,
    ) -> Result<(), Exhausted> {
        for rule in (0..here.len()).filter(|&rule| here.target(rule) == pair.a) {
            for piece in here.effective(rule, space, &mut self.budget)? {
                let mut parts = Vec::new();
                there.walk(piece, &mut self.budget, |part, to| {
                    if to == pair.b {
                        parts.push(part);
                    }
                })?;
                for part in parts {
                    let exactly = self.exactly(space, &part);
                    self.under_all(exactly, &mut |this| this.compare_at(pair.a, pair.b, depth))?;
                }
            }
        }
        Ok(())
    }

    /// Differences behind two targets where keys lead there for certain.
    fn suspects(
        &mut self,
        space: &Space,
        part: &Piece,
        a: NodeRef,
        b: NodeRef,
        depth: u32,
    ) -> Vec<Mismatch> {
        let before = std::mem::take(&mut self.mismatches);
        let (visited, budget) = (self.visited, std::mem::replace(&mut self.budget, SUSPECTED));
        let exactly = self.exactly(space, part);
        // What is cut short may have found some all the same.
        let _ = self.under_all(exactly, &mut |this| this.compare_at(a, b, depth));
        (self.visited, self.budget) = (visited, budget);
        std::mem::replace(&mut self.mismatches, before)
    }

    /// Whether an element's own code takes packets there that a program leaves to it.
    fn is_left_open(&self, outcome: &Outcome) -> bool {
        let is_open = |outcome: &Outcome| match &outcome.egress {
            Egress::Push(name, _, native) => {
                *native && self.around.is_left_open(self.decisions.name(*name))
            }
            _ => false,
        };
        outcome.copies.iter().chain([outcome]).any(is_open)
    }

    fn same_egress(&mut self, x: &Egress, y: &Egress) -> bool {
        match (x, y) {
            // What follows an element that makes a flow was compared for packets of flows.
            (Egress::Push(a, p, true), Egress::Push(b, q, true)) if a != b && p == q => {
                let name = |name| self.decisions.name(name);
                let tables = self.around.tables(name(*a), name(*b));
                let table = |lookup| &*self.decisions.arena.lookup(lookup).table.0;
                let missed = self.knowledge.missed().any(|lookup| tables.contains(&table(lookup)));
                self.by_miss += u64::from(missed);
                missed
            }
            _ => x == y,
        }
    }

    /// Whether two ends are the same under what is known.
    fn same(&mut self, x: &Outcome, y: &Outcome) -> bool {
        let shape = |o: &Outcome| (o.start, o.visited.clone(), o.changes.len());
        let ends = x.copies.iter().chain([x]).zip(y.copies.iter().chain([y]));
        for (x, y) in ends {
            if shape(x) != shape(y) || !self.same_egress(&x.egress, &y.egress) {
                return false;
            }
        }
        let knowledge = &self.knowledge;
        let arena = &mut self.decisions.arena;
        x.agrees(y, arena, &mut |arena, a, b| {
            a == b || knowledge.resolve(arena, a) == knowledge.resolve(arena, b)
        })
    }
}
