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
use super::first_match::{Exhausted, FEW, Piece, Rules, Sample, Space};
use super::knowledge::Knowledge;
use super::regions::{self, Exactness, Meeting, Meetings};

/// Differences after which the comparison ends.
const MAX_MISMATCHES: usize = 40;
/// Steps on one path; programs beyond are not compared.
const MAX_DEPTH: u32 = 20_000;
/// Effort to find a key that rules before another leave to it.
const POINTS: u64 = 400_000;
/// Effort to look at all that leads somewhere, where some of it is known to differ.
const SUSPECTED: u64 = 1_000_000;

/// Rules of lists that are compared with trees at once: of fewer, tests are followed one by one.
const LONG: usize = 48;

/// A list that was passed says something of another one if it is no more than so many times as long.
const ALIKE: usize = 16;

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
    /// Of how many no more are looked for.
    most: usize,
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
    /// Where a classification may lead.
    possible: HashMap<Asked, Rc<[Meeting]>>,
}

/// A classification, another that was passed and where it led, and what is known of the keys of both.
type Asked = (NodeRef, Option<(NodeRef, NodeRef)>, Piece);

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
            most: MAX_MISMATCHES,
            visited: 0,
            budget,
            outcomes: HashMap::new(),
            possible: HashMap::new(),
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
        if a == b || self.mismatches.len() >= self.most {
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
            (Node::Classify(x), y) if self.is_tree(&x, &y) => {
                if !self.beside_tree(a, &x, b, depth, |rule, leaf| (rule, leaf))? {
                    self.split(y, depth, |to, this, depth| this.compare_at(a, to, depth))?;
                }
            }
            (x, Node::Classify(y)) if self.is_tree(&y, &x) => {
                if !self.beside_tree(b, &y, a, depth, |rule, leaf| (leaf, rule))? {
                    self.split(x, depth, |to, this, depth| this.compare_at(to, b, depth))?;
                }
            }
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

    /// Looks for no more than so many mismatches more.
    fn at_most(
        &mut self,
        count: usize,
        go: impl FnOnce(&mut Self) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        let most = self.most.min(self.mismatches.len() + count);
        let before = std::mem::replace(&mut self.most, most);
        let result = go(self);
        self.most = before;
        result
    }

    /// Goes on with what leads there for certain.
    fn each(
        &mut self,
        space: &Space,
        parts: &[Piece],
        mut go: impl FnMut(&mut Self) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        self.at_most(MAX_MISMATCHES, |this| {
            parts.iter().try_for_each(|part| {
                let exactly = this.exactly(space, part);
                this.under_all(exactly, &mut go)
            })
        })
    }

    /// Goes where a classification may lead that only one program asks.
    fn one(
        &mut self,
        at: NodeRef,
        list: &Rc<Classify>,
        depth: u32,
        go: impl Fn(NodeRef, &mut Self, u32) -> Result<(), Exhausted>,
    ) -> Result<(), Exhausted> {
        // Another classification may have been passed, of some of the keys: that with most in common says most.
        let passed = self.knowledge.classes().filter_map(|(class, to)| {
            let Node::Classify(other) = self.decisions.node(class) else { return None };
            let common = list.keys.iter().filter(|key| other.keys.contains(key)).count();
            let rank = (common, other.rules.len(), class);
            let is_alike = common == list.keys.len().min(other.keys.len())
                && other.rules.len() <= ALIKE * list.rules.len();
            (list.rules.len() > FEW && is_alike).then_some((rank, Rc::clone(other), to))
        });
        let passed = passed.max_by_key(|(rank, ..)| *rank);
        let other = passed.as_ref().map(|(_, other, _)| &**other);
        let space = Space::new(other.into_iter().chain([&**list]), |key| self.known(key));
        let before = passed.as_ref().map(|((.., class), _, came)| (*class, *came));
        let known = (at, before, space.all.clone());
        let possible = match self.possible.get(&known) {
            Some(possible) => Rc::clone(possible),
            None => {
                let (rules, mut found) = (space.rules(list), Meetings::new(&space));
                match &passed {
                    Some((_, other, came)) => {
                        let lists = [&space.rules(other), &rules];
                        let wanted = |a, _| a == *came;
                        let near = Exactness::Near;
                        regions::meet(
                            lists,
                            &space,
                            near,
                            &mut self.budget,
                            wanted,
                            |part, a, b, at| {
                                found.add(a, b, part, at);
                            },
                        )?;
                    }
                    None => rules.parts(&space, &mut self.budget, |part, to| {
                        found.add(to, to, part, [0, 0]);
                    })?,
                }
                let possible: Rc<[Meeting]> = found.all().into();
                self.possible.insert(known, Rc::clone(&possible));
                possible
            }
        };
        for meeting in possible.iter() {
            let (before, target) = (self.mismatches.len(), meeting.b);
            let assumed = self.met(&space, meeting, &[(at, target)]);
            self.at_most(1, |this| this.under_all(assumed, &mut |this| go(target, this, depth)))?;
            if self.mismatches.len() == before {
                continue;
            }
            // Perhaps too little was known: again, with just what leads there.
            self.mismatches.truncate(before);
            let (rules, mut parts) = (space.rules(list), Vec::new());
            let (first, came) = match &passed {
                Some((_, other, came)) => (space.rules(other), Some(*came)),
                None => (Rules::none(), None),
            };
            let (lists, exact) = ([&first, &rules], Exactness::Exact);
            let wanted = |a, b| came.is_none_or(|came| a == came) && b == target;
            regions::meet(lists, &space, exact, &mut self.budget, wanted, |part, _, _, _| {
                parts.push(part.clone());
            })?;
            self.each(&space, &parts, |this| go(target, this, depth))?;
        }
        Ok(())
    }

    /// Whether a node begins a tree that a long list is compared with at once.
    fn is_tree(&self, list: &Classify, node: &Node) -> bool {
        list.rules.len() >= LONG && regions::asks(node, &list.keys)
    }

    /// Goes where a classification in one program and a tree of tests of its keys in the other may lead;
    /// `false` if it is no tree that decides what the list does.
    fn beside_tree(
        &mut self,
        at: NodeRef,
        list: &Rc<Classify>,
        tree: NodeRef,
        depth: u32,
        sides: impl Fn(NodeRef, NodeRef) -> (NodeRef, NodeRef),
    ) -> Result<bool, Exhausted> {
        let space = Space::new([&**list], |key| self.known(key));
        let rules = space.rules(list);
        let mut found = Meetings::new(&space);
        let budget = &mut self.budget;
        let decides = regions::walk(self.decisions, &rules, tree, &space, budget, |part, a, b| {
            if a != b {
                found.add(a, b, part, [0, 0]);
            }
        })?;
        if !decides {
            return Ok(false);
        }
        let mut unclear: HashSet<(NodeRef, NodeRef)> = HashSet::new();
        for meeting in found.all() {
            let (before, (rule, leaf)) = (self.mismatches.len(), (meeting.a, meeting.b));
            self.meeting(&space, &meeting, &[(at, rule)], sides(rule, leaf), depth)?;
            if self.mismatches.len() > before {
                self.mismatches.truncate(before);
                unclear.insert((rule, leaf));
            }
        }
        if unclear.is_empty() {
            return Ok(true);
        }
        // Perhaps too little was known: again, with just what leads there.
        let mut parts = Vec::new();
        regions::walk(
            self.decisions,
            &rules,
            tree,
            &space,
            &mut self.budget,
            |part, rule, leaf| {
                if unclear.contains(&(rule, leaf)) {
                    parts.push((part.clone(), rule, leaf));
                }
            },
        )?;
        self.at_most(MAX_MISMATCHES, |this| {
            parts.into_iter().try_for_each(|(part, rule, leaf)| {
                let (exactly, (a, b)) = (this.exactly(&space, &part), sides(rule, leaf));
                this.under_all(exactly, &mut |this| this.compare_at(a, b, depth))
            })
        })?;
        Ok(true)
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
        let (lists, mut found) = ([&here, &there], Meetings::new(&space));
        let (near, wanted) = (Exactness::Near, |a, b| a != b);
        let met = regions::meet(lists, &space, near, &mut self.budget, wanted, |part, a, b, at| {
            found.add(a, b, part, at);
        });
        if let Err(exhausted) = met {
            // Not all can be looked at. Some of what was changed can.
            let changed = here.changed(&there, &space, &mut { POINTS });
            for (part, to_a, to_b) in changed {
                let found = self.suspects(&space, &part, to_a, to_b, depth);
                self.mismatches.extend(found);
            }
            return Err(exhausted);
        }
        for meeting in found.all() {
            let before = self.mismatches.len();
            let classes = [(a, meeting.a), (b, meeting.b)];
            self.meeting(&space, &meeting, &classes, (meeting.a, meeting.b), depth)?;
            if self.mismatches.len() == before {
                continue;
            }
            self.mismatches.truncate(before);
            // Perhaps too little was known: again, with just what leads there. Where that is too
            // much to look at, some of it has to do.
            let mut suspects = Vec::new();
            for sample in &meeting.samples {
                if let Ok(Some(part)) = here.part_of(&there, sample, &mut { POINTS }) {
                    suspects.extend(self.suspects(&space, &part, meeting.a, meeting.b, depth));
                }
            }
            let whole = self.budget;
            if !suspects.is_empty() {
                self.budget = whole.min(SUSPECTED);
            }
            let given = self.budget;
            let result = self.each_region(lists, &space, (meeting.a, meeting.b), depth);
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

    /// Goes on with two targets that packets of some regions come to.
    fn meeting(
        &mut self,
        space: &Space,
        meeting: &Meeting,
        classes: &[(NodeRef, NodeRef)],
        (a, b): (NodeRef, NodeRef),
        depth: u32,
    ) -> Result<(), Exhausted> {
        let assumed = self.met(space, meeting, classes);
        self.at_most(1, |this| this.under_all(assumed, &mut |this| this.compare_at(a, b, depth)))
    }

    /// What is known of packets of some regions, and where classifications led.
    fn met(
        &self,
        space: &Space,
        meeting: &Meeting,
        classes: &[(NodeRef, NodeRef)],
    ) -> Vec<Assumed> {
        let mut assumed = self.exactly(space, &meeting.within);
        let hint = |sample: &Sample| Assumed::Hint(space.keys.clone(), sample.piece.clone());
        assumed.extend(meeting.samples.iter().map(hint));
        assumed.extend(classes.iter().map(|&(class, to)| Assumed::Class(class, to)));
        assumed
    }

    /// Goes on with every region in which two lists lead to two targets.
    fn each_region(
        &mut self,
        lists: [&Rules; 2],
        space: &Space,
        targets: (NodeRef, NodeRef),
        depth: u32,
    ) -> Result<(), Exhausted> {
        let mut parts = Vec::new();
        let (exact, wanted) = (Exactness::Exact, |a, b| (a, b) == targets);
        regions::meet(lists, space, exact, &mut self.budget, wanted, |part, _, _, _| {
            parts.push(part.clone());
        })?;
        self.each(space, &parts, |this| this.compare_at(targets.0, targets.1, depth))
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

    /// Whether an element's native code takes packets there that a program leaves to it.
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
