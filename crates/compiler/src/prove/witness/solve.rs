//! Finding a packet for which conditions hold.

use std::rc::Rc;

use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, Term, TermId};
use ir::{Base, IntervalSet};

use super::values::{Memo, sum16};
use super::{Random, Values, Witness};
use crate::prove::{Arena, Classify, NodeRef};

/// Repairs of a packet.
const REPAIRS: usize = 120;
/// Terms nested deeper than this are not looked into.
const MAX_DEPTH: u32 = 200;

/// A condition that a packet is to meet.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// A number is in a set.
    Set(TermId, IntervalSet),
    /// Two numbers compare so, or not.
    Compare(CompareOp, TermId, TermId, bool),
    /// Rules lead to a target.
    Class(Rc<Classify>, NodeRef),
    /// Keys in a set are a good start.
    Hint(Vec<TermId>, Vec<IntervalSet>),
}

/// Finds a packet for which all goals are met, beginning with each of `seeds` in turn, `attempts`
/// times in all.
pub(crate) fn solve(
    arena: &Arena,
    goals: &[Goal],
    seeds: &[Witness],
    attempts: usize,
    random: &mut Random,
) -> Option<Values> {
    let goals = merge(goals);
    if goals.iter().any(|goal| is_hopeless(goal, &goals)) {
        return None;
    }
    (0..attempts).find_map(|attempt| {
        let start = match seeds.get(attempt % seeds.len().max(1)) {
            Some(seed) => seed.clone(),
            None => Witness::new(vec![0; 60]),
        };
        let memo = Memo::new(arena);
        let mut search = Search { arena, values: Values::new(start), memo, random };
        search.repair(&goals)
    })
}

/// What a key may be by a rule and by the goals.
fn wanted(key: TermId, set: &IntervalSet, goals: &[Goal]) -> IntervalSet {
    let wanted = goals.iter().find_map(|goal| match goal {
        Goal::Set(term, wanted) if *term == key => Some(wanted),
        _ => None,
    });
    wanted.map_or_else(|| set.clone(), |wanted| wanted.intersect(set))
}

/// Whether a rule leads to a target and is not ruled out by the goals.
fn leads(classify: &Classify, rule: usize, target: NodeRef, goals: &[Goal]) -> bool {
    let (cube, to) = &classify.rules[rule];
    let possible = |(key, set): &(u8, IntervalSet)| {
        !wanted(classify.keys[usize::from(*key)], set, goals).is_empty()
    };
    *to == target && cube.iter().all(possible)
}

fn is_hopeless(goal: &Goal, goals: &[Goal]) -> bool {
    match goal {
        Goal::Set(_, set) => set.is_empty(),
        Goal::Class(classify, target) if *target != classify.otherwise => {
            !(0..classify.rules.len()).any(|rule| leads(classify, rule, *target, goals))
        }
        _ => false,
    }
}

/// Goals on one number become one.
fn merge(goals: &[Goal]) -> Vec<Goal> {
    let mut merged: Vec<Goal> = Vec::new();
    for goal in goals {
        if let Goal::Set(term, set) = goal {
            let same = merged.iter_mut().find_map(|m| match m {
                Goal::Set(t, s) if t == term => Some(s),
                _ => None,
            });
            if let Some(known) = same {
                *known = known.intersect(set);
                continue;
            }
        }
        merged.push(goal.clone());
    }
    merged
}

struct Search<'a> {
    arena: &'a Arena,
    values: Values,
    memo: Memo,
    random: &'a mut Random,
}

impl Search<'_> {
    fn repair(&mut self, goals: &[Goal]) -> Option<Values> {
        // A class has several hints; one is taken.
        let hints: Vec<&Goal> = goals.iter().filter(|g| matches!(g, Goal::Hint(..))).collect();
        if let Some(Goal::Hint(keys, sets)) = hints.get(self.random.below(hints.len())) {
            self.put_in(keys, sets);
        }
        for _ in 0..REPAIRS {
            // Sums last: they depend on all the rest. Rules after numbers: there may be many.
            let is_class = |goal: &&Goal| matches!(goal, Goal::Class(..));
            let mut broken: Vec<&Goal> =
                goals.iter().filter(|goal| !is_class(goal) && !self.met(goal)).collect();
            if broken.iter().all(|goal| self.is_sum(goal)) {
                broken.extend(goals.iter().filter(|goal| is_class(goal) && !self.met(goal)));
            }
            if broken.is_empty() {
                return Some(self.values.clone());
            }
            let plain = broken.iter().filter(|g| !self.is_sum(g)).count();
            let first = broken.iter().find(|g| plain == 0 || !self.is_sum(g));
            let goal = match self.random.once_in(4) {
                true => broken[self.random.below(broken.len())],
                false => first?,
            };
            self.meet(goal, goals);
        }
        None
    }

    fn is_sum(&self, goal: &Goal) -> bool {
        let sum = |t: &TermId| matches!(self.arena.term(*t), Term::Sum16 { .. } | Term::OnesSum(_));
        match goal {
            Goal::Set(term, _) => sum(term),
            Goal::Compare(_, a, b, _) => sum(a) || sum(b),
            Goal::Class(..) | Goal::Hint(..) => false,
        }
    }

    fn value(&mut self, term: TermId) -> u128 {
        self.values.value_in(self.arena, term, &mut self.memo)
    }

    fn met(&mut self, goal: &Goal) -> bool {
        match goal {
            Goal::Set(term, set) => set.contains(self.value(*term)),
            Goal::Compare(op, a, b, holds) => op.holds(self.value(*a), self.value(*b)) == *holds,
            Goal::Class(classify, target) => {
                let keys: Vec<u128> = classify.keys.iter().map(|&k| self.value(k)).collect();
                classify.first(&keys) == *target
            }
            Goal::Hint(..) => true,
        }
    }

    fn put_in(&mut self, keys: &[TermId], sets: &[IntervalSet]) {
        for (key, set) in keys.iter().zip(sets) {
            let current = self.value(*key);
            if !set.contains(current)
                && let Some(value) = self.pick(set, current)
            {
                self.assign(*key, value, 0);
            }
        }
    }

    /// A number of a set: mostly one at an edge.
    fn pick(&mut self, set: &IntervalSet, current: u128) -> Option<u128> {
        let intervals = set.intervals();
        let &(low, high) = intervals.get(self.random.below(intervals.len()))?;
        Some(match self.random.below(8) {
            0 | 1 => low,
            2 | 3 => high,
            4 => low.saturating_add(1).min(high),
            // The closest.
            5 => {
                let near = |&(low, high): &(u128, u128)| current.clamp(low, high);
                let closest = intervals.iter().map(near).min_by_key(|&n| n.abs_diff(current));
                closest.unwrap_or(low)
            }
            _ => match (high - low).checked_add(1) {
                Some(count) => low + self.random.wide() % count,
                None => self.random.wide(),
            },
        })
    }

    fn meet(&mut self, goal: &Goal, goals: &[Goal]) {
        match goal {
            Goal::Set(term, set) => {
                let current = self.value(*term);
                if let Some(value) = self.pick(set, current) {
                    self.assign(*term, value, 0);
                }
            }
            Goal::Compare(op, a, b, holds) => self.compare(*op, *a, *b, *holds, 0),
            Goal::Class(classify, target) => {
                // A rule that leads there and that the other goals do not rule out.
                let rules = &classify.rules;
                let from = self.random.below(rules.len());
                let possible = (from..rules.len())
                    .chain(0..from)
                    .find(|&rule| leads(classify, rule, *target, goals));
                match possible.map(|rule| &rules[rule].0) {
                    Some(cube) => {
                        for (key, set) in cube {
                            let key = classify.keys[usize::from(*key)];
                            self.put_in(&[key], &[wanted(key, set, goals)]);
                        }
                    }
                    // No rule may match: any other packet.
                    None => {
                        let key = classify.keys[self.random.below(classify.keys.len())];
                        let range = self.arena.range(key);
                        if let Some(value) = self.pick(&range, 0) {
                            self.assign(key, value, 0);
                        }
                    }
                }
            }
            Goal::Hint(..) => {}
        }
    }

    fn compare(&mut self, op: CompareOp, a: TermId, b: TermId, holds: bool, depth: u32) {
        let (x, y) = (self.value(a), self.value(b));
        let up = |n: u128| IntervalSet::range(n, u128::MAX);
        let down = |n: u128| IntervalSet::range(0, n);
        let except = |n: u128| IntervalSet::single(n).complement(128);
        let above = |n: u128| n.checked_add(1).map_or(IntervalSet::empty(), up);
        let below = |n: u128| n.checked_sub(1).map_or(IntervalSet::empty(), down);
        // What the left side may be, and what the right side may be.
        let (left, right) = match (op, holds) {
            (CompareOp::Eq, true) | (CompareOp::Ne, false) => {
                (IntervalSet::single(y), IntervalSet::single(x))
            }
            (CompareOp::Eq, false) | (CompareOp::Ne, true) => (except(y), except(x)),
            (CompareOp::Le, true) | (CompareOp::Gt, false) => (down(y), up(x)),
            (CompareOp::Lt, true) | (CompareOp::Ge, false) => (below(y), above(x)),
            (CompareOp::Ge, true) | (CompareOp::Lt, false) => (up(y), down(x)),
            (CompareOp::Gt, true) | (CompareOp::Le, false) => (above(y), below(x)),
        };
        let (term, set, current) = match self.random.once_in(2) {
            true => (a, left, x),
            false => (b, right, y),
        };
        let set = set.intersect(&self.arena.range(term));
        if let Some(value) = self.pick(&set, current) {
            self.assign(term, value, depth + 1);
        }
    }

    /// Changes the packet so that a term becomes a number, or comes close.
    fn assign(&mut self, term: TermId, value: u128, depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        let depth = depth + 1;
        self.memo.forget();
        match self.arena.term(term).clone() {
            Term::Const(_) | Term::Hash(..) | Term::Cell(..) => {}
            Term::Input(field) => {
                let (_, end) = field.byte_range();
                if field.base == Base::Data && end > self.values.witness.frame.len() && end < 9000 {
                    self.values.witness.frame.resize(end, 0);
                }
                if !self.values.set_input(field, value) {
                    self.set_mark(field, value);
                }
            }
            Term::Position(header) => {
                let at = value as u32 as i32;
                let mark = (at != i32::MIN).then_some(at);
                self.values.witness.marks[header as usize] = mark;
            }
            Term::Bound(lookup, index) => {
                let (_, most) = self.arena.bounds(term);
                self.values.bound.insert((lookup, index), value & most);
            }
            Term::Sum16 { offset, length } => {
                let length = self.value(length);
                self.assign_sum(offset.into(), length as usize, value);
                self.memo.forget();
            }
            Term::Binary(op, a, b) => self.assign_binary(term, (op, a, b), value, depth),
            Term::Slice { of, low, width } => {
                let mask = ((1u128 << width) - 1) << low;
                let rest = self.value(of) & !mask;
                self.assign(of, rest | (value << low & mask), depth);
            }
            Term::Concat { high, low, width } => {
                self.assign(high, value >> width, depth);
                self.assign(low, value & ((1 << width) - 1), depth);
            }
            Term::OnesSum(sum) => {
                let Some(of) = sum.only() else { return };
                let (inner, now) = (self.value(of), self.value(term));
                let more = inner.wrapping_add((value + 0xffff - now) % 0xffff);
                // What is summed may have no room for more, but for less.
                let less = more.checked_sub(0xffff).filter(|_| self.random.once_in(2));
                self.assign(of, less.unwrap_or(more), depth);
            }
            Term::NonZero(of) => self.assign(of, value, depth),
            Term::Map(of, table) => {
                let numbers = table.preimage(&IntervalSet::single(value));
                let numbers = numbers.intersect(&self.arena.range(of));
                let current = self.value(of);
                if let Some(number) = self.pick(&numbers, current) {
                    self.assign(of, number, depth);
                }
            }
            Term::Choose(atom, a, b) => {
                let holds = match &atom {
                    Atom::Test(t, set) => set.contains(self.value(*t)),
                    Atom::Compare(op, x, y) => op.holds(self.value(*x), self.value(*y)),
                };
                if self.random.once_in(6) {
                    match &atom {
                        Atom::Test(t, set) => {
                            let range = self.arena.range(*t);
                            let other =
                                if holds { range.subtract(set) } else { set.intersect(&range) };
                            let current = self.value(*t);
                            if let Some(value) = self.pick(&other, current) {
                                self.assign(*t, value, depth);
                            }
                        }
                        Atom::Compare(op, x, y) => self.compare(*op, *x, *y, !holds, depth),
                    }
                } else {
                    self.assign(if holds { a } else { b }, value, depth);
                }
            }
            Term::Now => self.values.witness.now = value as u64,
        }
    }

    /// Marks a header, or moves its mark, so that so many bytes are behind it.
    fn set_mark(&mut self, field: ir::Field, value: u128) {
        let witness = &mut self.values.witness;
        let end = witness.frame.len() as i32;
        let layout = witness.layout();
        let network = layout.network();
        let behind = || Some(network?.offset + i32::from(network?.length));
        let at = |available: u128| i32::try_from(available).ok().map(|n| end - n);
        match field {
            meta::AVAIL_MAC => witness.marks[0] = at(value),
            meta::AVAIL_NET => witness.marks[1] = at(value),
            meta::AVAIL_TRANSPORT => witness.marks[2] = at(value),
            meta::HAS_MAC => witness.marks[0] = (value == 1).then_some(0),
            meta::HAS_NET => {
                witness.marks[1] = (value == 1).then(|| network.map_or(0, |header| header.offset))
            }
            meta::HAS_TRANSPORT => witness.marks[2] = (value == 1).then(|| behind().unwrap_or(0)),
            _ => {}
        }
    }

    fn assign_binary(
        &mut self,
        term: TermId,
        (op, a, b): (BinaryOp, TermId, TermId),
        value: u128,
        depth: u32,
    ) {
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                let sum = self.arena.linear(term);
                let Some(&(of, factor)) = sum.terms.get(self.random.below(sum.terms.len())) else {
                    return;
                };
                if of == term {
                    return;
                }
                let others = self.value(term).wrapping_sub(self.value(of).wrapping_mul(factor));
                let wanted = value.wrapping_sub(others);
                let (_, most) = self.arena.bounds(of);
                let wanted = match factor {
                    u128::MAX => Some(wanted.wrapping_neg()),
                    factor => wanted.checked_div(factor),
                };
                if let Some(wanted) = wanted {
                    self.assign(of, wanted.min(most), depth);
                }
            }
            BinaryOp::And => {
                let (of, mask) = match self.arena.as_constant(a) {
                    Some(mask) => (b, mask),
                    None => (a, self.value(b)),
                };
                let rest = self.value(of) & !mask;
                self.assign(of, rest | (value & mask), depth);
            }
            BinaryOp::Min | BinaryOp::Max => {
                let (x, y) = (self.value(a), self.value(b));
                let chosen = if (op == BinaryOp::Min) == (x <= y) { a } else { b };
                self.assign(chosen, value, depth);
            }
            BinaryOp::Xor => {
                let other = self.value(b);
                self.assign(a, value ^ other, depth);
            }
            BinaryOp::Or => {
                let other = self.value(b);
                self.assign(a, value & !other, depth);
            }
            BinaryOp::Rem => {
                let (x, y) = (self.value(a), self.value(b));
                self.assign(a, x.wrapping_sub(x.checked_rem(y).unwrap_or(0)) + value, depth);
            }
            BinaryOp::Div | BinaryOp::Shl | BinaryOp::Shr => {}
        }
    }

    /// Changes a word of some bytes so that their sum becomes this. Where a header's checksum is
    /// likely, that word is taken first.
    fn assign_sum(&mut self, at: usize, length: usize, value: u128) {
        let frame = &mut self.values.witness.frame;
        let Some(bytes) = at.checked_add(length).and_then(|end| frame.get_mut(at..end)) else {
            return;
        };
        let words = bytes.len() / 2;
        if words == 0 {
            return;
        }
        // IPv4's is the sixth word; TCP's the ninth, UDP's the fourth and ICMP's the second.
        let likely = [5, 5, 5, 5, 5, 8, 3, 1];
        let word = match self.random.below(2 * likely.len()) {
            n if n < likely.len() && likely[n] < words => likely[n],
            _ => self.random.below(words),
        };
        let word = if words > 5 && words <= 30 && !self.random.once_in(4) { 5 } else { word };
        let now = sum16(bytes);
        let old = u128::from(bytes[2 * word]) << 8 | u128::from(bytes[2 * word + 1]);
        let mut new = (old + value + 2 * 0xffff - now) % 0xffff;
        if new == 0 && self.random.once_in(2) {
            new = 0xffff;
        }
        bytes[2 * word..2 * word + 2].copy_from_slice(&(new as u16).to_be_bytes());
    }
}
