//! Paths through a program, so many that each of its edges is on one.

use std::collections::HashMap;

use ir::IntervalSet;

use super::Random;
use crate::prove::{Assumed, Decisions, Knowledge, Node, NodeRef};

/// How many times a node is passed before paths end there.
const VISITS: u32 = 6;
/// Rules of a classification, and cases of a switch, that are taken at one visit.
const RULES: usize = 48;
const CASES: usize = 24;
/// Steps on one path.
const MAX_DEPTH: u32 = 20_000;

/// What must be assumed for a packet to take a path, for each of at most `limit` paths.
pub(crate) fn paths(
    decisions: &Decisions,
    start: NodeRef,
    limit: usize,
    random: &mut Random,
) -> Vec<Vec<Assumed>> {
    let mut search = Search {
        decisions,
        knowledge: Knowledge::default(),
        path: Vec::new(),
        visits: HashMap::new(),
        most: 0,
        found: Vec::new(),
        limit,
        random,
    };
    // First one to each exit, as far as they are found at once, then more.
    for most in [1, VISITS] {
        search.most = most;
        search.visits.clear();
        search.visit(start, 0);
    }
    search.found
}

struct Search<'a> {
    decisions: &'a Decisions,
    knowledge: Knowledge,
    path: Vec<Assumed>,
    visits: HashMap<NodeRef, u32>,
    /// How many times a node may be passed. If it is once, paths that end before an exit are not
    /// told.
    most: u32,
    found: Vec<Vec<Assumed>>,
    limit: usize,
    random: &'a mut Random,
}

impl Search<'_> {
    fn visit(&mut self, node: NodeRef, depth: u32) {
        if self.found.len() >= self.limit {
            return;
        }
        let visits = self.visits.entry(node).or_default();
        *visits += 1;
        if *visits > self.most || depth > MAX_DEPTH {
            if self.most > 1 {
                self.found.push(self.path.clone());
            }
            return;
        }
        let depth = depth + 1;
        match self.decisions.node(node) {
            Node::Exit(_) => self.found.push(self.path.clone()),
            Node::Test(atom, yes, no) => {
                self.under(vec![Assumed::Atom(atom.clone(), true)], *yes, depth);
                self.under(vec![Assumed::Atom(atom.clone(), false)], *no, depth);
            }
            Node::Switch(on, cases, otherwise) => {
                let taken = self.sample(cases.len(), CASES);
                for case in taken {
                    let (set, to) = &cases[case];
                    self.under(vec![Assumed::Set(*on, set.clone())], *to, depth);
                }
                let covered = cases.iter().flat_map(|c| c.0.intervals()).copied().collect();
                let range = self.decisions.arena.range(*on);
                let rest = range.subtract(&IntervalSet::from_intervals(covered));
                self.under(vec![Assumed::Set(*on, rest)], *otherwise, depth);
            }
            Node::Flow(lookup, hit, miss) => {
                self.under(vec![Assumed::Lookup(*lookup, false)], *miss, depth);
                self.under(vec![Assumed::Lookup(*lookup, true)], *hit, depth);
            }
            Node::Classify(list) => {
                // Every place that rules lead to, by whichever rule, and then some of the rules.
                let mut targets: Vec<NodeRef> = vec![list.otherwise];
                for (_, to) in &list.rules {
                    if !targets.contains(to) && targets.len() < RULES {
                        targets.push(*to);
                    }
                }
                for to in targets {
                    let around = list.around(to);
                    let sets = around.into_iter().map(|(key, set)| Assumed::Set(key, set));
                    let class = std::iter::once(Assumed::Class(node, to));
                    self.under(sets.chain(class).collect(), to, depth);
                }
                let taken = self.sample(list.rules.len(), RULES);
                for rule in taken {
                    let (cube, to) = &list.rules[rule];
                    let key = |k: &u8| list.keys[usize::from(*k)];
                    let sets = cube.iter().map(|(k, set)| Assumed::Set(key(k), set.clone()));
                    self.under(sets.collect(), *to, depth);
                }
            }
        }
    }

    /// Some of the first `n` numbers.
    fn sample(&mut self, n: usize, most: usize) -> Vec<usize> {
        match n <= most {
            true => (0..n).collect(),
            false => (0..most).map(|_| self.random.below(n)).collect(),
        }
    }

    fn under(&mut self, assumed: Vec<Assumed>, to: NodeRef, depth: u32) {
        let (level, length) = (self.knowledge.level(), self.path.len());
        let arena = &self.decisions.arena;
        let possible = assumed.into_iter().all(|assumed| {
            let possible = match &assumed {
                Assumed::Atom(atom, holds) => self.knowledge.learn(arena, atom, *holds),
                Assumed::Set(term, set) => self.knowledge.learn_set(arena, *term, set),
                Assumed::Lookup(lookup, hit) => {
                    let known = self.knowledge.lookup(*lookup);
                    self.knowledge.learn_lookup(*lookup, *hit);
                    known.is_none_or(|known| known == *hit)
                }
                Assumed::Class(..) | Assumed::Hint(..) => true,
            };
            self.path.push(assumed);
            possible
        });
        if possible {
            self.visit(to, depth);
        }
        self.path.truncate(length);
        self.knowledge.forget(level);
    }
}
