//! Blocks of steps.

use std::sync::Arc;

use ir::field::meta;
use ir::program::{ClassifyRule, Entries, LookupId, Step, StepId, Term, TermId};
use ir::{IntervalSet, NodeId, PrefixTable};

use super::super::insn::{self, Cond, Op};
use super::super::lease;
use super::super::object::{Map, MapKind};
use super::number::size;
use super::{ABORT, Emitter, KEY, Label, MAP_LOOKUP, STACK};
use crate::Lack;
use crate::number::{Rows, behind};

/// Tables of prefixes that split their keys into more ranges are maps.
const RANGES: usize = 64;
/// Lists of more conjunctions are trees that are walked.
const CUBES: usize = 16;

/// Where numbers from here on lead, up to where the next begin.
type Segment = (u128, Label);

/// Where all numbers from `least` to `most` lead, in order.
fn segments(
    mut intervals: Vec<(u128, u128, Label)>,
    otherwise: Label,
    (least, most): (u128, u128),
) -> Vec<Segment> {
    intervals.retain(|(low, high, _)| *low <= most && *high >= least);
    intervals.sort_unstable();
    let mut all: Vec<Segment> = Vec::new();
    let mut add = |from: u128, to: Label| match all.last() {
        Some((_, last)) if *last == to => {}
        _ => all.push((from, to)),
    };
    let mut next = Some(least);
    for (low, high, to) in intervals {
        let low = low.max(least);
        if next.is_some_and(|next| next < low) {
            add(next.unwrap_or(least), otherwise);
        }
        add(low, to);
        next = high.checked_add(1).filter(|next| *next <= most);
    }
    if let Some(next) = next {
        add(next, otherwise);
    }
    all
}

/// A number that is compared: registers, and the most that the lower one can be.
#[derive(Clone, Copy)]
struct Compared {
    /// The upper 64 bits, if there are any.
    high: Option<u8>,
    low: u8,
    most: u64,
    /// A register that may be used.
    free: u8,
}

/// A segment of one number between two that lead to one place.
fn alone(all: &[Segment]) -> Option<usize> {
    let is_alone = |three: &[Segment]| three[0].1 == three[2].1 && three[1].0 + 1 == three[2].0;
    all.windows(3).position(is_alone).map(|at| at + 1)
}

impl Emitter<'_, '_> {
    /// Goes where the interval that a number lies in leads.
    pub(super) fn scan(
        &mut self,
        term: TermId,
        intervals: Vec<(u128, u128, Label)>,
        otherwise: Label,
        depth: u8,
    ) -> Result<(), Lack> {
        match self.program.term(term) {
            Term::Const(value) => {
                let found = intervals.iter().find(|(low, high, _)| low <= value && value <= high);
                self.goto(found.map_or(otherwise, |found| found.2));
                return Ok(());
            }
            Term::Input(field)
                if *field == meta::LEN && self.scan_length(&intervals, otherwise) =>
            {
                return Ok(());
            }
            Term::Map(of, mapping) => {
                let mut sets: Vec<(u128, u128, Label)> = Vec::new();
                for (low, high, label) in intervals {
                    let set = mapping.preimage(&IntervalSet::range(low, high));
                    sets.extend(set.intervals().iter().map(|(low, high)| (*low, *high, label)));
                }
                return self.scan(*of, sets, otherwise, depth);
            }
            _ => {}
        }
        if self.exact(term).is_ok() {
            // Whoever reads this does not know what was tested before.
            let most = self.most(term);
            let all = segments(intervals, otherwise, (0, most.into()));
            if let [(_, to)] = all[..] {
                self.goto(to);
                return Ok(());
            }
            let low = self.value(term, depth)?;
            let free = self.register(depth + 1)?;
            self.search(Compared { high: None, low, most, free }, &all);
            return Ok(());
        }
        if !self.is_in_pieces(term) {
            return Err(Lack::Number("numbers of more than 64 bits"));
        }
        let most = self.program.numbers_where(term, |_| None).bounds.1;
        let all = segments(intervals, otherwise, (0, most));
        if let [(_, to)] = all[..] {
            self.goto(to);
            return Ok(());
        }
        let high = self.bits(term, 64, 64, depth)?;
        let low = self.bits(term, 0, 64, depth + 1)?;
        let free = self.register(depth + 2)?;
        self.search(Compared { high: Some(high), low, most: u64::MAX, free }, &all);
        Ok(())
    }

    /// Lengths are compared by the frame's end, which the verifier learns from.
    fn scan_length(&mut self, intervals: &[(u128, u128, Label)], otherwise: Label) -> bool {
        let all = segments(intervals.to_vec(), otherwise, (0, meta::LEN.max()));
        let Some(most) = all.last().map(|last| last.0) else { return false };
        if all.len() > 4 || most > 0x7fff {
            return false;
        }
        for pair in all.windows(2) {
            let ((_, to), (next, _)) = (pair[0], pair[1]);
            if self.checked.is_none_or(|checked| u128::from(checked) < next) {
                self.short(next as u32, to);
            }
        }
        let to = all.last().map_or(otherwise, |last| last.1);
        self.goto(to);
        true
    }

    /// Goes where a number leads that is one of these, in order.
    pub(super) fn lead(&mut self, reg: u8, numbers: Vec<Segment>) {
        let of = Compared { high: None, low: reg, most: u32::MAX.into(), free: 0 };
        self.search(of, &numbers);
    }

    /// By halves. Three segments of which the outer ones lead to one place, and the inner one is a
    /// number, are one comparison.
    fn search(&mut self, of: Compared, all: &[Segment]) {
        match *all {
            [] => {}
            [(_, to)] => self.goto(to),
            [(_, a), (number, to), (next, b)] if a == b && number + 1 == next => {
                self.equal(of, number, to);
                self.goto(a);
            }
            _ if of.high.is_some()
                && let Some(at) = alone(all) =>
            {
                self.equal(of, all[at].0, all[at].1);
                let rest = [&all[..at], &all[at + 2..]].concat();
                self.search(of, &rest);
            }
            _ => {
                let middle = all.len() / 2;
                let (below, from) = (&all[..middle], &all[middle..]);
                match *below {
                    [(_, to)] => {
                        self.less(of, from[0].0, to);
                        self.search(of, from);
                    }
                    _ => {
                        let lower = self.label();
                        self.less(of, from[0].0, lower);
                        self.search(of, from);
                        self.bind(lower);
                        self.search(of, below);
                    }
                }
            }
        }
    }

    fn equal(&mut self, of: Compared, number: u128, to: Label) {
        match of.high {
            None => self.jump_number(Cond::Eq, of.low, number as u64, of.most, to, of.free),
            Some(high) => {
                let other = self.label();
                self.jump_number(Cond::Ne, high, (number >> 64) as u64, u64::MAX, other, of.free);
                self.jump_number(Cond::Eq, of.low, number as u64, u64::MAX, to, of.free);
                self.bind(other);
            }
        }
    }

    fn less(&mut self, of: Compared, number: u128, to: Label) {
        let Some(high) = of.high else {
            return self.jump_number(Cond::Lt, of.low, number as u64, of.most, to, of.free);
        };
        let (upper, lower) = ((number >> 64) as u64, number as u64);
        self.jump_number(Cond::Lt, high, upper, u64::MAX, to, of.free);
        if lower != 0 {
            let other = self.label();
            self.jump_number(Cond::Ne, high, upper, u64::MAX, other, of.free);
            self.jump_number(Cond::Lt, of.low, lower, u64::MAX, to, of.free);
            self.bind(other);
        }
    }

    pub(in crate::ebpf) fn step(&mut self, at: StepId, step: &Step) -> Result<(), Lack> {
        if let Some(layouts) = self.layouts {
            match layouts.facts(at) {
                Some(facts) => self.facts = facts.clone(),
                // No packet comes here.
                None => {
                    self.goto(ABORT);
                    return Ok(());
                }
            }
        }
        match step {
            Step::Test { atom, .. } if lease::timed(self.program, atom).is_some() => {
                match lease::promise(self.program, step) {
                    Some((_, next)) => self.goto(next.0),
                    // Where it leads is not known yet.
                    None if self.around.device.is_none() => {}
                    None => return Err(Lack::Clock),
                }
                Ok(())
            }
            Step::Test { atom, yes, no, .. } => self.test(atom, yes.0, no.0, 0),
            Step::Switch { on, cases, otherwise, .. } => {
                let to = |(set, step): &(IntervalSet, StepId)| -> Vec<(u128, u128, Label)> {
                    set.intervals().iter().map(|(low, high)| (*low, *high, step.0)).collect()
                };
                self.scan(*on, cases.iter().flat_map(to).collect(), otherwise.0, 0)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                self.rules((at, *element), keys, rules, (arms, *otherwise))
            }
            Step::Lookup { lookup, hit, miss } => self.look_up(*lookup, *hit, *miss),
            Step::Exit(exit) => self.exit(at, exit),
        }
    }

    /// Rule by rule, if there are few.
    fn rules(
        &mut self,
        (at, element): (StepId, NodeId),
        keys: &[TermId],
        rules: &[ClassifyRule],
        (arms, otherwise): (&[StepId], StepId),
    ) -> Result<(), Lack> {
        let cubes: usize = rules.iter().map(|rule| rule.cubes.len()).sum();
        if cubes > CUBES {
            return self.walk(at, keys, rules, (arms, otherwise));
        }
        let known = self.facts.clone();
        for rule in rules {
            self.block(at, element, rule.span);
            for cube in rule.cubes.iter() {
                let next = self.label();
                // What is there is asked before it is looked at.
                let is_length =
                    |key: u8| *self.program.term(keys[usize::from(key)]) == Term::Input(meta::LEN);
                let mut tests: Vec<&(u8, IntervalSet)> = cube.iter().collect();
                tests.sort_by_key(|test| !is_length(test.0));
                for (key, set) in tests {
                    let (term, holds) = (keys[usize::from(*key)], self.label());
                    let intervals = set.intervals().iter().map(|(l, h)| (*l, *h, holds)).collect();
                    self.scan(term, intervals, next, 0)?;
                    self.bind(holds);
                    self.facts = self.facts.clone().with(self.program, term, set);
                }
                self.goto(arms[rule.arm as usize].0);
                self.bind(next);
                self.facts = known.clone();
                // A rule that takes all: no packet comes to the next.
                if self.checked.is_none() {
                    self.lines.pop();
                    return Ok(());
                }
            }
        }
        self.goto(otherwise.0);
        Ok(())
    }

    pub(super) fn wanted_at(&self, step: StepId, lookup: LookupId) -> Vec<u8> {
        let all = self.wanted.get(step.0 as usize).into_iter().flatten();
        all.filter(|(of, _)| *of == lookup).map(|(_, index)| *index).collect()
    }

    fn look_up(&mut self, lookup: LookupId, hit: StepId, miss: StepId) -> Result<(), Lack> {
        let asked = &self.program.lookups[usize::from(lookup.0)];
        let table = match &self.program.tables[usize::from(asked.table.0)].entries {
            Entries::Prefixes(table) => Arc::clone(table),
            Entries::Flows(_) => return self.look_up_flow(lookup, hit, miss),
            Entries::Rules(_) => return Err(Lack::Found),
        };
        let Some(&key) = asked.key.first() else { return Err(Lack::Found) };
        let (rows, ranges) = table.ranges();
        if ranges.len() > RANGES {
            return self.look_up_in_map(lookup, key, &table, hit, miss);
        }
        let labels: Vec<Label> = rows.iter().map(|_| self.label()).collect();
        let intervals =
            ranges.iter().map(|(low, high, row)| (*low, *high, labels[*row as usize])).collect();
        self.scan(key, intervals, miss.0, 0)?;
        for (row, label) in rows.iter().zip(labels) {
            self.bind(label);
            if self.checked.is_none() {
                self.lines.pop();
                continue;
            }
            let to = behind(self.program, hit, &Rows::from([(lookup, Arc::clone(row))]));
            for index in self.wanted_at(to, lookup) {
                let at = self.bound(lookup, index)?;
                let value = row.get(usize::from(index)).copied().unwrap_or(0);
                for (at, half) in [(at, value as u64), (at + 8, (value >> 64) as u64)] {
                    match i32::try_from(half) {
                        Ok(half) => {
                            self.op(insn::store_number(insn::DOUBLE, STACK, at, half));
                        }
                        Err(_) => {
                            self.set(1, half);
                            self.op(insn::store(STACK, at, 1));
                        }
                    }
                }
            }
            self.goto(to.0);
        }
        Ok(())
    }

    /// In a map of the kernel's for prefixes: the key is the prefix's length and the number in network
    /// byte order, the value the row's numbers, 16 bytes each with the lowest first.
    fn look_up_in_map(
        &mut self,
        lookup: LookupId,
        key: TermId,
        table: &PrefixTable,
        hit: StepId,
        miss: StepId,
    ) -> Result<(), Lack> {
        let asked = &self.program.lookups[usize::from(lookup.0)];
        let width = table.width();
        if !matches!(width, 8 | 16 | 32 | 64 | 128) {
            return Err(Lack::Match("a prefix".into(), Some(table.len())));
        }
        let bytes = usize::from(width / 8);
        let number = self.map_of_prefixes(lookup, table, asked.values.max(1).into(), bytes);
        if let Ok((_, most)) = self.exact(key)
            && width < 64
            && most >> width != 0
        {
            return Err(Lack::Match("a prefix".into(), Some(table.len())));
        }
        self.op(insn::store_number(insn::WORD, STACK, KEY, width.into()));
        let mut low = u32::from(width);
        for (offset, piece) in super::number::pieces((KEY + 4).into(), bytes) {
            low -= 8 * u32::from(piece);
            let reg = self.bits(key, low, 8 * u32::from(piece), 0)?;
            if piece > 1 {
                self.op(insn::from_network(reg, 8 * i32::from(piece)));
            }
            // Behind four bytes, eight are not aligned: in halves.
            if piece == 8 {
                self.op(insn::store_memory(insn::WORD, STACK, offset as i16, reg));
                self.op(insn::alu_number(Op::Rsh, reg, 32));
                self.op(insn::store_memory(insn::WORD, STACK, offset as i16 + 4, reg));
            } else {
                self.op(insn::store_memory(size(piece), STACK, offset as i16, reg));
            }
        }
        self.ops(insn::load_map(1, number as i32));
        self.op(insn::copy(2, STACK));
        self.op(insn::advance(2, KEY.into()));
        self.op(insn::call(MAP_LOOKUP));
        self.jump_number(Cond::Eq, 0, 0, u64::MAX, miss.0, 0);
        for index in self.wanted_at(hit, lookup) {
            let at = self.bound(lookup, index)?;
            for half in [0, 8] {
                let from = 16 * i16::from(index) + half;
                self.op(insn::load_stored(1, 0, from));
                self.op(insn::store(STACK, at + half, 1));
            }
        }
        self.goto(hit.0);
        Ok(())
    }

    fn map_of_prefixes(
        &mut self,
        lookup: LookupId,
        table: &PrefixTable,
        numbers: usize,
        bytes: usize,
    ) -> usize {
        if let Some(known) = self.tables.get(&lookup) {
            return *known;
        }
        let of = self.program.lookups[usize::from(lookup.0)].table;
        let entry = |entry: &ir::PrefixEntry| {
            let mut key = u32::from(entry.length).to_le_bytes().to_vec();
            key.extend(&entry.prefix.to_be_bytes()[16 - bytes..]);
            let mut value: Vec<u8> =
                entry.row.iter().take(numbers).flat_map(|number| number.to_le_bytes()).collect();
            value.resize(16 * numbers, 0);
            (key, value)
        };
        let map = Map {
            name: format!("routes{}_{}", self.number, of.0),
            kind: MapKind::LpmTrie,
            key: 4 + bytes as u32,
            value: 16 * numbers as u32,
            room: table.len() as u32,
            // Room is taken as entries come.
            flags: 1,
            entries: table.entries().map(entry).collect(),
        };
        let same = self.around.maps.iter().position(|other| other.name == map.name);
        let number = same.unwrap_or_else(|| self.map(map));
        self.tables.insert(lookup, number);
        number
    }
}
