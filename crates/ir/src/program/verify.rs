//! Well-formedness of programs.
//!
//! A program that is well formed never makes its interpreter fault on account of its own shape:
//! whatever it refers to is there, steps only lead forwards, and what a lookup bound is used only
//! where every path goes through the lookup's hit. Whether the bytes that are written are there
//! depends on the packet.

use std::collections::BTreeSet;
use std::sync::Arc;

use net::{CARRIED, annotation};

use super::{
    Atom, ClassifyRule, Effect, End, Entries, Exit, LookupId, Mark, Program, StateId, Step, StepId,
    Table, TableId, Term, TermId, Write, Writes,
};
use crate::diagnostic::Severity;
use crate::field::{Base, Field};
use crate::interval::IntervalSet;
use crate::model::StateKind;
use crate::verify::Problem;

/// How far the data's start may move, in bytes.
const MAX_SHIFT: i32 = 1 << 16;

/// Everything that is wrong with a program, in its order.
pub fn verify(program: &Program) -> Vec<Problem> {
    let mut verifier =
        Verifier { program, problems: Vec::new(), place: String::new(), bound: Vec::new() };
    verifier.terms();
    verifier.widths();
    verifier.state();
    verifier.tables();
    verifier.lookups();
    // What follows looks into what was found to be there.
    if verifier.problems.is_empty() {
        verifier.steps();
    }
    verifier.problems
}

/// Whether nothing is wrong with a program; see [`verify`] for what is.
pub fn is_well_formed(program: &Program) -> bool {
    verify(program).is_empty()
}

/// A set of lookups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lookups(Vec<u64>);

impl Lookups {
    fn insert(&mut self, lookup: LookupId) {
        let at = usize::from(lookup.0) / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (lookup.0 % 64);
    }

    fn contains(&self, lookup: LookupId) -> bool {
        self.0.get(usize::from(lookup.0) / 64).is_some_and(|bits| bits >> (lookup.0 % 64) & 1 == 1)
    }

    fn union(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(mine, its)| *mine |= its);
    }

    fn intersect(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(mine, its)| *mine &= its);
    }

    /// One that is here and not there.
    fn missing_in(&self, other: &Self) -> Option<u16> {
        let mine = (0..self.0.len() as u16 * 64).map(LookupId).filter(|l| self.contains(*l));
        mine.into_iter().find(|l| !other.contains(*l)).map(|l| l.0)
    }
}

struct Verifier<'a> {
    program: &'a Program,
    problems: Vec<Problem>,
    place: String,
    /// The lookups that each term is made from.
    bound: Vec<Lookups>,
}

impl Verifier<'_> {
    fn error(&mut self, code: &'static str, message: impl Into<String>) {
        let (severity, place) = (Severity::Error, self.place.clone());
        self.problems.push(Problem { severity, code, place, message: message.into() });
    }

    fn terms(&mut self) {
        for (i, term) in self.program.terms.iter().enumerate() {
            self.place = format!("t{i}");
            let mut bound = Lookups::default();
            for operand in term.operands() {
                match self.bound.get(operand.0 as usize) {
                    Some(its) => bound.union(its),
                    None => self.error("no-such-term", format!("t{} is not before it", operand.0)),
                }
            }
            self.term(term, &mut bound);
            self.bound.push(bound);
        }
    }

    fn term(&mut self, term: &Term, bound: &mut Lookups) {
        match term {
            Term::Input(field) => self.input(*field),
            Term::Bound(lookup, index) => match self.program.lookups.get(usize::from(lookup.0)) {
                Some(l) if u16::from(*index) < u16::from(l.values) + u16::from(l.common) => {
                    bound.insert(*lookup);
                }
                Some(_) => self.error("not-bound", format!("{lookup} binds no {index}")),
                None => self.error("no-such-lookup", format!("there is no {lookup}")),
            },
            Term::Cell(cells, index) => self.cell(*cells, *index),
            Term::Slice { low, width, .. } => {
                if !(1..=128).contains(&(u16::from(*low) + u16::from(*width))) || *width == 0 {
                    self.error("bad-width", format!("there are no bits {low}+{width}"));
                }
            }
            Term::Concat { width, .. } if !(1..128).contains(width) => {
                self.error("bad-width", format!("{width} lower bits"));
            }
            Term::Const(_)
            | Term::Concat { .. }
            | Term::Position(_)
            | Term::Sum16 { .. }
            | Term::Binary(..)
            | Term::OnesSum(_)
            | Term::NonZero(_)
            | Term::Choose(..)
            | Term::Map(..)
            | Term::Hash(..)
            | Term::Now => {}
        }
    }

    /// What sums take off are words, and lower parts have no more bits than there is room for.
    fn widths(&mut self) {
        if !self.problems.is_empty() {
            return;
        }
        let numbers = self.program.numbers();
        let width = |term: &TermId| numbers[term.0 as usize].width;
        for (i, term) in self.program.terms.iter().enumerate() {
            let problem = match term {
                Term::OnesSum(sum) => {
                    let wide = sum.minus.iter().map(width).find(|width| *width > 16);
                    wide.map(|wide| format!("a word of {wide} bits is taken off"))
                }
                Term::Concat { low, width: room, .. } => {
                    let wide = Some(width(low)).filter(|width| *width > (*room).into());
                    wide.map(|wide| format!("{wide} bits are more than {room}"))
                }
                _ => None,
            };
            if let Some(problem) = problem {
                self.place = format!("t{i}");
                self.error("bad-width", problem);
            }
        }
    }

    fn input(&mut self, field: Field) {
        let (_, end) = field.byte_range();
        let there = match field.base {
            _ if !(1..=128).contains(&field.width) => false,
            Base::Header(_) => {
                return self.error("unresolved", format!("{field} counts from a header"));
            }
            Base::Data => true,
            Base::Annotation => end <= annotation::SIZE,
            Base::Carried => end <= CARRIED,
            Base::Meta => field.name().is_some(),
        };
        if !there {
            self.error("no-such-field", format!("there is no {field}"));
        }
    }

    fn state(&mut self) {
        for (i, state) in self.program.state.iter().enumerate() {
            self.place = format!("state {i}");
            let same = |s: &super::StateOf| s.owner == state.owner && s.name == state.name;
            if self.program.state[..i].iter().any(same) {
                let message = format!("{} of {} stands here twice", state.name, state.owner);
                self.error("duplicate-state", message);
            }
        }
    }

    fn kind(&self, state: StateId) -> Option<&StateKind> {
        self.program.state.get(usize::from(state.0)).map(|s| &s.kind)
    }

    fn tables(&mut self) {
        for (i, table) in self.program.tables.iter().enumerate() {
            self.place = format!("table {i}");
            if let Some(width) = table.widths.iter().find(|w| !(1..=128).contains(*w)) {
                self.error("bad-width", format!("a key of {width} bits"));
            }
            let is_twice = self.program.tables[..i].iter().any(|other| other.is_same(table));
            if is_twice {
                self.error("duplicate-table", "it stands here twice");
            }
            match &table.entries {
                Entries::Flows(state) => {
                    if !matches!(self.kind(*state), Some(StateKind::Flows { .. })) {
                        self.error("wrong-state", format!("state {} is no flows", state.0));
                    }
                }
                Entries::Prefixes(prefixes) => {
                    if table.widths != [prefixes.width()] {
                        let message = format!("prefixes of {} bits", prefixes.width());
                        self.error("bad-width", message);
                    }
                }
                Entries::Rules(rules) => self.rules(rules, table.widths.len()),
            }
        }
    }

    fn lookups(&mut self) {
        for (i, lookup) in self.program.lookups.iter().enumerate() {
            self.place = format!("l{i}");
            self.exist(&lookup.key);
            let table = self.program.tables.get(usize::from(lookup.table.0));
            match table.map(|table| (&table.entries, table.widths.len())) {
                None => {
                    self.error("no-such-table", format!("there is no table {}", lookup.table.0))
                }
                Some((Entries::Rules(_), _)) => {
                    self.error("wrong-table", "rules bind no numbers: they lead to steps");
                }
                Some((_, keys)) if keys != lookup.key.len() => {
                    self.error("wrong-table", format!("the table has {keys} keys"));
                }
                Some((Entries::Prefixes(_), _)) if lookup.common > 0 => {
                    self.error("wrong-table", "rows of prefixes have no common cells");
                }
                Some(_) => {}
            }
        }
    }

    /// Whether all these terms exist.
    fn exist(&mut self, terms: &[TermId]) -> bool {
        match terms.iter().find(|t| t.0 as usize >= self.program.terms.len()) {
            Some(term) => self.error("no-such-term", format!("there is no t{}", term.0)),
            None => return true,
        }
        false
    }

    /// These terms are computed where only so many lookups have hit.
    fn computed(&mut self, terms: &[TermId], hit: &Lookups) {
        if !self.exist(terms) {
            return;
        }
        for term in terms {
            if let Some(lookup) = self.bound[term.0 as usize].missing_in(hit) {
                let message = format!("t{} needs l{lookup}, which may not have hit", term.0);
                self.error("unbound", message);
            }
        }
    }

    fn steps(&mut self) {
        let n = self.program.steps.len();
        if n == 0 {
            self.place = "steps".into();
            self.error("no-steps", "there is nothing to do");
        }
        // For each step, the lookups that hit on every path to it, and those made on some path.
        let mut reached: Vec<Option<(Lookups, Lookups)>> = vec![None; n];
        if let Some(first) = reached.first_mut() {
            *first = Some(Default::default());
        }
        for (i, step) in self.program.steps.iter().enumerate() {
            self.place = format!("s{i}");
            let Some((hit, made)) = reached[i].take() else {
                self.error("unreachable", "nothing leads here");
                continue;
            };
            self.step(step, &hit, &made);
            let (mut after, mut with) = (made.clone(), hit.clone());
            if let Step::Lookup { lookup, .. } = step {
                after.insert(*lookup);
                with.insert(*lookup);
            }
            let hits = match step {
                Step::Lookup { hit, miss, .. } if hit != miss => Some(*hit),
                _ => None,
            };
            for next in step.next() {
                let StepId(to) = next;
                if to as usize <= i || to as usize >= n {
                    self.error("bad-step", format!("{next} does not stand behind it"));
                    continue;
                }
                let hit = if hits == Some(next) { &with } else { &hit };
                match &mut reached[to as usize] {
                    Some((all, some)) => {
                        all.intersect(hit);
                        some.union(&after);
                    }
                    new => *new = Some((hit.clone(), after.clone())),
                }
            }
        }
    }

    fn step(&mut self, step: &Step, hit: &Lookups, made: &Lookups) {
        self.computed(&step.terms(), hit);
        match step {
            Step::Test { atom, .. } => {
                if let Atom::Test(_, set) = atom {
                    self.set(set);
                }
            }
            Step::Switch { cases, .. } => {
                let mut all = IntervalSet::empty();
                for (set, step) in cases {
                    self.set(set);
                    if set.intersects(&all) {
                        self.error("overlap", format!("the case of {step} meets another"));
                    }
                    all = all.union(set);
                }
            }
            Step::Classify { table, keys, rules, arms, .. } => {
                self.classify(*table, keys, rules, arms.len());
            }
            Step::Lookup { lookup, .. } => match self.program.lookups.get(usize::from(lookup.0)) {
                Some(asked) => {
                    self.computed(&asked.key, hit);
                    if made.contains(*lookup) {
                        self.error("repeated-lookup", format!("{lookup} was made before"));
                    }
                }
                None => self.error("no-such-lookup", format!("there is no {lookup}")),
            },
            Step::Exit(exit) => self.exit(exit, hit),
        }
    }

    fn set(&mut self, set: &IntervalSet) {
        if set.is_empty() {
            self.error("empty-set", "no number is in the empty set");
        }
    }

    fn classify(
        &mut self,
        table: Option<TableId>,
        keys: &[TermId],
        rules: &Arc<[ClassifyRule]>,
        arms: usize,
    ) {
        for rule in rules.iter().filter(|rule| rule.arm as usize >= arms) {
            self.error("no-such-arm", format!("rule {} has no arm", rule.number));
        }
        let Some(TableId(id)) = table else { return self.rules(rules, keys.len()) };
        // Its rules were looked at already.
        match self.program.tables.get(usize::from(id)) {
            Some(Table { widths, entries: Entries::Rules(entries), .. })
                if widths.len() == keys.len() && Arc::ptr_eq(entries, rules) => {}
            Some(_) => self.error("wrong-table", format!("table {id} has other rules or keys")),
            None => self.error("no-such-table", format!("there is no table {id}")),
        }
    }

    fn rules(&mut self, rules: &[ClassifyRule], keys: usize) {
        for rule in rules {
            for cube in rule.cubes.iter() {
                let mut seen = vec![false; keys];
                for (key, set) in cube {
                    self.set(set);
                    match seen.get_mut(usize::from(*key)) {
                        Some(seen) if !*seen => *seen = true,
                        _ => self.error("bad-cube", format!("key {key} of rule {}", rule.number)),
                    }
                }
            }
        }
    }

    fn exit(&mut self, exit: &Exit, hit: &Lookups) {
        let entry = self.program.entry;
        let hands_off = matches!(exit.end, End::Handoff { .. });
        if hands_off {
            self.handoff(exit);
        } else if !exit.writes.carried.is_empty() {
            self.error("bad-end", "what is carried is for another part of the program");
        }
        for copy in &exit.copies {
            self.copy(copy, exit, hit);
        }
        let untouched = hands_off || exit.end == End::Push { to: entry, native: true };
        let begins = exit.visited.first().map_or(untouched, |&first| first == entry);
        if !begins {
            self.error("bad-path", "the path does not begin at the entry");
        }
        self.leaving(exit, hit);
    }

    /// A copy: it comes from an element that the packet, or another copy, came to.
    fn copy(&mut self, copy: &Exit, exit: &Exit, hit: &Lookups) {
        if !copy.copies.is_empty() {
            self.error("bad-copy", "a copy has copies");
        }
        if matches!(copy.end, End::Handoff { .. }) || !copy.writes.carried.is_empty() {
            self.error("bad-copy", "a copy is handed off");
        }
        let from = copy.visited.first();
        let comes = |other: &Exit| {
            !std::ptr::eq(other, copy) && from.is_some_and(|from| other.visited.contains(from))
        };
        if !exit.all().any(comes) {
            self.error("bad-copy", "a copy comes from nowhere");
        }
        self.leaving(copy, hit);
    }

    /// What holds for the packet and for copies.
    fn leaving(&mut self, exit: &Exit, hit: &Lookups) {
        let mut set = BTreeSet::new();
        for effect in &exit.effects {
            match effect {
                Effect::Set { cells, index, .. } => {
                    self.cell(*cells, *index);
                    if !set.insert((cells, index)) {
                        self.error("overlap", format!("cell {index} is set twice"));
                    }
                }
                Effect::Count { counter, .. } => {
                    if !matches!(self.kind(*counter), Some(StateKind::Counter)) {
                        self.error("wrong-state", format!("state {} is no counter", counter.0));
                    }
                }
                Effect::Note { .. } => {}
                Effect::Update { lookup, .. } => {
                    if self.program.flows(*lookup).is_none() {
                        self.error("wrong-table", format!("{lookup}, to update, is in no flows"));
                    }
                    if !hit.contains(*lookup) {
                        self.error("unbound", format!("{lookup}, to update, may not have hit"));
                    }
                }
            }
        }
        self.writes(&exit.writes);
        if matches!(exit.end, End::Drop { .. }) && exit.barrier.is_some() {
            self.error("bad-end", "a drop is no barrier");
        }
    }

    fn cell(&mut self, cells: StateId, index: u16) {
        match self.kind(cells) {
            Some(StateKind::Cells { initial, .. }) if usize::from(index) < initial.len() => {}
            Some(StateKind::Cells { .. }) => {
                self.error("out-of-bounds", format!("state {} has no cell {index}", cells.0));
            }
            _ => self.error("wrong-state", format!("state {} is no cells", cells.0)),
        }
    }

    fn handoff(&mut self, exit: &Exit) {
        let carried = exit.writes.carried.clone();
        self.disjoint(&carried, 0, CARRIED as i32, "carried");
        let End::Handoff { to } = exit.end else { return };
        if *exit != Exit::handoff(to, carried) {
            self.error("bad-end", "a packet that is handed off is as it came in");
        }
        if self.program.continuation == Some(to) {
            self.error("bad-end", format!("it is handed off to where it came from, {to}"));
        }
    }

    fn writes(&mut self, writes: &Writes) {
        if writes.start.unsigned_abs() >= MAX_SHIFT.unsigned_abs() {
            self.error("bad-start", format!("the data starts at {}", writes.start));
        }
        self.disjoint(&writes.bytes, -MAX_SHIFT, i32::MAX, "data");
        self.disjoint(&writes.annotations, 0, annotation::SIZE as i32, "anno");
        for mark in writes.marks {
            if let Mark::At(term) = mark
                && let Some(Term::Const(value)) = self.program.terms.get(term.0 as usize)
                && i32::try_from(*value as i128).is_err()
                && u32::try_from(*value).is_err()
            {
                self.error("bad-mark", format!("a header at {value}"));
            }
        }
    }

    fn disjoint(&mut self, writes: &[Write], first: i32, end: i32, base: &str) {
        let mut from = i64::from(first);
        for write in writes {
            let (offset, length) = (write.offset, write.length);
            if !(1..=16).contains(&length) {
                self.error("bad-width", format!("{base}[{offset}] of {length} bytes"));
            }
            if i64::from(offset) < from {
                let message = format!("{base}[{offset}] of {length} bytes meets what is before");
                self.error("overlap", message);
            }
            from = i64::from(offset) + i64::from(length);
        }
        if from > i64::from(end) {
            self.error("out-of-bounds", format!("{base} is written up to byte {from}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrefixTable;
    use crate::field::{eth, ip, meta};
    use crate::program::interp::tests::with_flows;
    use crate::program::{Barrier, Lookup, OnesSum};

    /// The codes of what is wrong with the program after a change.
    fn codes(change: impl FnOnce(&mut Program)) -> Vec<&'static str> {
        let mut program = with_flows();
        change(&mut program);
        verify(&program).iter().map(|p| p.code).collect()
    }

    fn exit(program: &mut Program, step: usize) -> &mut Exit {
        match &mut program.steps[step] {
            Step::Exit(exit) => exit,
            other => panic!("{other:?}"),
        }
    }

    fn single(value: u128) -> IntervalSet {
        IntervalSet::single(value)
    }

    #[test]
    fn what_is_well_formed_has_no_problems() {
        assert_eq!(verify(&with_flows()), []);
    }

    #[test]
    fn broken_terms_are_found() {
        let with = |term: Term| codes(|p| p.terms.push(term));
        let (next, three) = (TermId(8), TermId(3));
        assert_eq!(with(Term::NonZero(next)), ["no-such-term"]);
        assert_eq!(with(Term::Bound(LookupId(1), 0)), ["no-such-lookup"]);
        assert_eq!(with(Term::Bound(LookupId(0), 2)), ["not-bound"]);
        assert_eq!(with(Term::Slice { of: three, low: 100, width: 29 }), ["bad-width"]);
        assert_eq!(with(Term::Slice { of: three, low: 1, width: 0 }), ["bad-width"]);
        assert_eq!(with(Term::Concat { high: three, low: three, width: 0 }), ["bad-width"]);
        let hundred = TermId(6);
        let minus = |term| Term::OnesSum(OnesSum { minus: vec![term], ..OnesSum::default() });
        assert_eq!(with(minus(hundred)), Vec::<&str>::new());
        let wide = Term::Const(1 << 16);
        let taken = codes(|p| p.terms.extend([wide, minus(TermId(p.terms.len() as u32))]));
        assert_eq!(taken, ["bad-width"]);
        assert_eq!(with(Term::Concat { high: three, low: hundred, width: 6 }), ["bad-width"]);
        assert_eq!(with(Term::Concat { high: three, low: hundred, width: 7 }), Vec::<&str>::new());
        assert_eq!(with(Term::Input(ip::TTL)), ["unresolved"]);
        let beyond = Field::bytes(Base::Annotation, 47, 2);
        assert_eq!(with(Term::Input(beyond)), ["no-such-field"]);
        assert_eq!(with(Term::Input(Field { width: 31, ..meta::LEN })), ["no-such-field"]);
        assert_eq!(with(Term::Input(Field { width: 0, ..eth::TYPE })), ["no-such-field"]);
        assert_eq!(with(Term::Input(Field { width: 129, ..eth::TYPE })), ["no-such-field"]);
    }

    #[test]
    fn broken_state_is_found() {
        assert_eq!(codes(|p| p.state.swap(0, 1))[0], "wrong-state");
        assert_eq!(codes(|p| p.state[1].name = "flows"), ["duplicate-state"]);
        assert_eq!(codes(|p| p.lookups[0].key[0] = TermId(99)), ["no-such-term"]);
        // Also where no step makes the lookup.
        let other = |p: &Program| Lookup { key: vec![TermId(99)], ..p.lookups[0].clone() };
        assert_eq!(codes(|p| p.lookups.push(other(p))), ["no-such-term"]);
        let count = Effect::Count { counter: StateId(0), length: TermId(0) };
        assert_eq!(codes(|p| exit(p, 1).effects[0] = count), ["wrong-state"]);
    }

    #[test]
    fn broken_tables_are_found() {
        assert_eq!(codes(|p| p.tables.push(p.tables[0].clone())), ["duplicate-table"]);
        assert_eq!(codes(|p| p.tables.clear())[0], "no-such-table");
        assert_eq!(codes(|p| p.tables[0].widths[0] = 129), ["bad-width"]);
        assert_eq!(codes(|p| p.tables[0].widths.push(8)), ["wrong-table"]);
        assert_eq!(codes(|p| p.tables[0].entries = Entries::Flows(StateId(1)))[0], "wrong-state");
        let prefixes = |width, common| {
            codes(|p| {
                let table = PrefixTable::new(width, []);
                p.tables[0].entries = Entries::Prefixes(Arc::new(table));
                p.lookups[0].common = common;
                p.lookups[0].values = 2 - common;
                exit(p, 1).effects.remove(1);
            })
        };
        assert_eq!(prefixes(8, 0), Vec::<&str>::new());
        assert_eq!(prefixes(8, 1), ["wrong-table"]);
        assert_eq!(prefixes(9, 0), ["bad-width"]);
        let update = |p: &mut Program| {
            p.tables[0].entries = Entries::Prefixes(Arc::new(PrefixTable::new(8, [])));
            (p.lookups[0].values, p.lookups[0].common) = (2, 0);
        };
        assert_eq!(codes(update), ["wrong-table"]);
    }

    #[test]
    fn lookups_are_used_where_they_hit() {
        let update = |p: &mut Program| exit(p, 1).effects[1].clone();
        assert_eq!(codes(|p| exit(p, 2).writes.timestamp = Some(TermId(4))), ["unbound"]);
        assert_eq!(
            codes(|p| {
                let effect = update(p);
                exit(p, 2).effects.push(effect);
            }),
            ["unbound", "unbound"]
        );
        // Both paths lead to one exit.
        let both = |p: &mut Program| {
            p.steps.pop();
            p.steps[0] = Step::Lookup { lookup: LookupId(0), hit: StepId(1), miss: StepId(1) };
        };
        assert!(codes(both).contains(&"unbound"));
        // A second lookup, made from what the first bound.
        let second = |p: &mut Program, on_hit: bool| {
            let key = vec![TermId(1)];
            p.lookups.push(Lookup { key, ..p.lookups[0].clone() });
            let (hit, miss) = if on_hit { (1, 3) } else { (3, 1) };
            let steps = p.steps.split_off(1);
            p.steps[0] = Step::Lookup { lookup: LookupId(0), hit: StepId(hit), miss: StepId(miss) };
            let (hit, miss) = (StepId(2), StepId(3));
            p.steps.push(Step::Lookup { lookup: LookupId(1), hit, miss });
            p.steps.extend(steps);
        };
        assert_eq!(codes(|p| second(p, true)), Vec::<&str>::new());
        assert!(codes(|p| second(p, false)).contains(&"unbound"));
        let again = |p: &mut Program| {
            second(p, true);
            p.steps[1] = Step::Lookup { lookup: LookupId(0), hit: StepId(2), miss: StepId(3) };
        };
        assert_eq!(codes(again), ["repeated-lookup"]);
    }

    #[test]
    fn broken_steps_are_found() {
        assert_eq!(codes(|p| p.steps.clear()), ["no-steps"]);
        assert_eq!(codes(|p| p.steps.push(p.steps[2].clone())), ["unreachable"]);
        let flow =
            |hit, miss| Step::Lookup { lookup: LookupId(0), hit: StepId(hit), miss: StepId(miss) };
        assert_eq!(codes(|p| p.steps[0] = flow(1, 3)), ["bad-step", "unreachable"]);
        assert_eq!(codes(|p| p.steps[0] = flow(0, 2)), ["bad-step", "unreachable"]);
        let instead = |step: Step| {
            codes(|p| {
                p.steps.truncate(1);
                p.steps[0] = step;
                let end = with_flows().steps.pop();
                p.steps.extend(end);
            })
        };
        let (on, element, otherwise) = (TermId(0), 0, StepId(1));
        let switch = |cases| Step::Switch { on, cases, otherwise, element };
        assert_eq!(instead(switch(vec![(single(1), StepId(1))])), Vec::<&str>::new());
        let twice = vec![(single(1), StepId(1)), (IntervalSet::range(0, 5), StepId(1))];
        assert_eq!(instead(switch(twice)), ["overlap"]);
        assert_eq!(instead(switch(vec![(IntervalSet::empty(), StepId(1))])), ["empty-set"]);
        let classify = |keys: Vec<TermId>, cube: Vec<(u8, IntervalSet)>, arm| {
            let rules = [ClassifyRule { cubes: [cube].into(), arm, number: 0, span: None }].into();
            let arms = vec![StepId(1)];
            instead(Step::Classify { table: None, keys, rules, arms, otherwise, element })
        };
        let cube = vec![(0, single(1))];
        assert_eq!(classify(vec![on], cube.clone(), 0), Vec::<&str>::new());
        assert_eq!(classify(vec![on], cube.clone(), 1), ["no-such-arm"]);
        assert_eq!(classify(vec![on], vec![(1, single(1))], 0), ["bad-cube"]);
        assert_eq!(classify(vec![on], [cube.clone(), cube.clone()].concat(), 0), ["bad-cube"]);
        // The rules are those of the table.
        let rules =
            || [ClassifyRule { cubes: [cube.clone()].into(), arm: 0, number: 0, span: None }];
        let of = |table, rules| {
            let (keys, arms) = (vec![on], vec![StepId(1)]);
            Step::Classify { table: Some(TableId(table)), keys, rules, arms, otherwise, element }
        };
        let table: Arc<[ClassifyRule]> = rules().into();
        let with = |step: Step| {
            codes(|p| {
                let entries = Entries::Rules(Arc::clone(&table));
                p.tables.push(Table { element: 0, widths: vec![8], entries });
                p.steps.remove(1);
                p.steps[0] = step;
            })
        };
        assert_eq!(with(of(1, Arc::clone(&table))), Vec::<&str>::new());
        assert_eq!(with(of(1, rules().into())), ["wrong-table"]);
        assert_eq!(with(of(0, Arc::clone(&table))), ["wrong-table"]);
        assert_eq!(with(of(2, Arc::clone(&table))), ["no-such-table"]);
    }

    #[test]
    fn broken_exits_are_found() {
        let write = |offset, length| Write { offset, length, value: TermId(3) };
        let bytes = |all: Vec<Write>| codes(|p| exit(p, 2).writes.bytes = all);
        assert_eq!(bytes(vec![write(-4, 4), write(0, 16)]), Vec::<&str>::new());
        assert_eq!(bytes(vec![write(0, 4), write(3, 1)]), ["overlap"]);
        assert_eq!(bytes(vec![write(4, 1), write(0, 1)]), ["overlap"]);
        assert_eq!(bytes(vec![write(0, 17)]), ["bad-width"]);
        let annotations = |all| codes(|p| exit(p, 2).writes.annotations = all);
        assert_eq!(annotations(vec![write(47, 1)]), Vec::<&str>::new());
        assert_eq!(annotations(vec![write(47, 2)]), ["out-of-bounds"]);
        assert_eq!(codes(|p| exit(p, 2).writes.start = 1 << 20), ["bad-start"]);
        assert_eq!(codes(|p| exit(p, 2).visited.clear()), ["bad-path"]);
        let handed_back = |p: &mut Program| {
            exit(p, 2).visited.clear();
            exit(p, 2).end = End::Push { to: p.entry, native: true };
        };
        assert_eq!(codes(handed_back), Vec::<&str>::new());
        assert_eq!(codes(|p| exit(p, 2).barrier = Some(Barrier::Cells)), ["bad-end"]);
        let mark = |value| {
            codes(|p| {
                p.terms.push(Term::Const(value));
                exit(p, 2).writes.marks[1] = Mark::At(TermId(8));
            })
        };
        assert_eq!(mark(-3i128 as u128), Vec::<&str>::new());
        assert_eq!(mark(1 << 40), ["bad-mark"]);
    }
}
