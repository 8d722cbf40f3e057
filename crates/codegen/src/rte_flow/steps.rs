//! Steps as patterns: the decisions of a segment, flattened to lists of patterns in order of precedence.
//!
//! What a path decides becomes one conjunction. A card with groups keeps a list by itself, and jumps there, where
//! several patterns lead to it and it is long.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::layout::Layout;
use ir::program::{Atom, Effect, End, Entries, LookupId, Program, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, Span};

use super::Driver;
use super::action::{Action, actions};
use super::field::{Conditions, Key, Seen, Sight, lack};
use crate::number::{Rows, evaluate, ones};
use crate::rule::{input_bits, layout_of, live};
use crate::{Lack, Segment};

/// Patterns of one list.
const MOST_LINES: usize = 1 << 16;

/// Lists of a segment.
const MOST_NODES: usize = 1 << 14;

/// Patterns of a list are compared with each other up to so many.
const MOST_COMPARED: usize = 256;

/// The element that decides something, and its rule.
pub(super) type Origin = Option<(NodeId, Option<Span>)>;

/// A pattern of a list, and where it leads: to another list or an exit, by index. Those before it take precedence.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) when: Conditions,
    pub(super) to: usize,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A list; its last pattern matches everything.
    List { step: StepId, lines: Vec<Line> },
    /// The end of a path.
    Exit { step: StepId, actions: Vec<Action> },
}

/// Whether a step can be decided.
pub(super) fn decide(sight: &Sight<'_>, step: StepId) -> Result<(), Lack> {
    let program = sight.program;
    let width = |term: TermId| program.width(term).max(1);
    match program.step(step) {
        Step::Exit(_) => Ok(()),
        Step::Test { atom: Atom::Test(term, set), .. } => {
            if found(program, *term) {
                return Ok(());
            }
            let cases = vec![((**set).clone(), 0), (set.complement(width(*term)), 1)];
            switched(sight, *term, cases).map(drop)
        }
        Step::Test { atom: Atom::Compare(_, a, b), .. } => {
            match found(program, *a) && found(program, *b) {
                true => Ok(()),
                false => Err(comparison(program, sight.layout, [*a, *b])),
            }
        }
        Step::Switch { on, cases, .. } => {
            if found(program, *on) {
                return Ok(());
            }
            let all = IntervalSet::union_of(cases.iter().map(|case| &case.0));
            let rest = (all.complement(width(*on)), 0);
            let cases = cases.iter().enumerate().map(|(i, case)| (case.0.clone(), i + 1));
            switched(sight, *on, cases.chain([rest]).collect()).map(drop)
        }
        Step::Classify { keys, rules, .. } => {
            let mut count = 0;
            for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
                count += conjunctions(sight, keys, cube)?.len();
                room(count)?;
            }
            Ok(())
        }
        Step::Lookup { lookup, .. } => prefixes(sight, *lookup).map(drop),
    }
}

/// Whether all that an exit does can be done.
pub(super) fn does(
    driver: &Driver,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<(), Lack> {
    let Step::Exit(exit) = program.step(step) else { return Ok(()) };
    if !exit.copies.is_empty() {
        return Err(Lack::Copy);
    }
    for effect in &exit.effects {
        match effect {
            Effect::Set { .. } => return Err(Lack::Cells),
            Effect::Update { .. } => return Err(Lack::Flows),
            // Rules count packets, and say for whom.
            Effect::Count { .. } | Effect::Note { .. } if driver.counts => {}
            Effect::Count { .. } | Effect::Note { .. } => return Err(Lack::Count),
        }
    }
    match exit.end {
        End::Drop { .. } if driver.counts => Ok(()),
        End::Drop { .. } => Err(Lack::Count),
        End::Handoff { .. } if exit.writes.carried.is_empty() => Ok(()),
        End::Handoff { .. } => Err(Lack::Found),
        End::Push { .. } => {
            // Any row will do: its numbers are constants.
            let rows = program.lookups.iter().zip(0..).filter_map(|(lookup, at)| {
                let entries = &program.tables.get(usize::from(lookup.table.0))?.entries;
                let Entries::Prefixes(table) = entries else { return None };
                let row = table.entries().next().map_or_else(Vec::new, |e| e.row.to_vec());
                Some((LookupId(at), padded(row, lookup.values)))
            });
            actions(driver, program, layout, exit, &rows.collect()).map(drop)
        }
    }
}

fn padded(mut row: Vec<u128>, values: u8) -> std::sync::Arc<[u128]> {
    row.resize(values.into(), 0);
    row.into()
}

/// Whether a number is known once rows were found.
fn found(program: &Program, term: TermId) -> bool {
    let rows: Rows = (0..program.lookups.len() as u16).map(|l| (LookupId(l), [].into())).collect();
    evaluate(program, term, &rows, None).is_some()
}

fn comparison(program: &Program, layout: &Layout, terms: [TermId; 2]) -> Lack {
    match terms.map(|term| lack(program, layout, term)) {
        [Lack::Length, _] | [_, Lack::Length] => Lack::Length,
        [Lack::Checksum, _] | [_, Lack::Checksum] => Lack::Checksum,
        _ => Lack::Comparison,
    }
}

fn room(count: usize) -> Result<(), Lack> {
    match count > MOST_LINES {
        true => Err(Lack::Room("patterns", count, MOST_LINES)),
        false => Ok(()),
    }
}

/// What a number is called in a message.
fn called(sight: &Sight<'_>, term: TermId) -> String {
    let name = input_bits(sight.program, term).and_then(|field| sight.layout.name_of(field));
    name.map_or_else(|| "a number".into(), |name| name.text)
}

/// Conditions in order, each with where it leads; the last matches everything.
fn switched(
    sight: &Sight<'_>,
    on: TermId,
    cases: Vec<(IntervalSet, usize)>,
) -> Result<Vec<(Conditions, usize)>, Lack> {
    let seen = sight.find(on)?;
    if seen == Seen::Offset {
        return Err(lack(sight.program, sight.layout, on));
    }
    let mut targets: BTreeMap<usize, IntervalSet> = BTreeMap::new();
    for (set, to) in cases.into_iter().filter(|case| !case.0.is_empty()) {
        let all = targets.entry(to).or_default();
        *all = all.union(&set);
    }
    let of = |set: &IntervalSet| sight.within(&seen, set, None);
    let mut all: Vec<_> = targets.iter().map(|(to, set)| (*to, of(set))).collect();
    // What costs most, or cannot be said, is what is left.
    let cost = |of: &Result<Vec<Conditions>, _>| of.as_ref().map_or(usize::MAX, Vec::len);
    all.sort_by_key(|(to, of)| (cost(of), *to));
    let last = all.pop();
    let mut found = Vec::new();
    for (to, conditions) in all {
        let conditions = conditions.map_err(|count| Lack::Match(called(sight, on), count))?;
        found.extend(conditions.into_iter().map(|when| (when, to)));
    }
    found.extend(last.map(|(to, _)| (Conditions::default(), to)));
    Ok(found)
}

/// Conjunctions for a rule's cube.
fn conjunctions(
    sight: &Sight<'_>,
    keys: &[TermId],
    cube: &[(u8, IntervalSet)],
) -> Result<Vec<Conditions>, Lack> {
    let layout = layout_of(sight.program, sight.layout, keys, cube);
    let sight = Sight { layout: &layout, ..*sight };
    let mut all = Vec::with_capacity(cube.len());
    for (key, set) in cube {
        let term = *keys.get(usize::from(*key)).ok_or(Lack::Element)?;
        all.push((sight.find(term)?, term, set));
    }
    let protocols = all.iter().find_map(|(seen, _, set)| {
        let Seen::Bits { key: Key::Protocol, .. } = seen else { return None };
        let all = set.intervals().iter().flat_map(|&(low, high)| low..=high).take(4);
        Some(all.filter_map(|protocol| u8::try_from(protocol).ok()).collect::<Vec<u8>>())
    });
    let mut conjunctions = vec![Conditions::default()];
    for (seen, term, set) in all {
        let alternatives = sight
            .within(&seen, set, protocols.as_deref())
            .map_err(|count| Lack::Match(called(&sight, term), count))?;
        room(conjunctions.len().saturating_mul(alternatives.len().max(1)))?;
        let both = conjunctions
            .iter()
            .flat_map(|one| alternatives.iter().filter_map(|other| one.and(other)));
        conjunctions = both.collect();
    }
    Ok(conjunctions)
}

/// The field that prefixes are looked up in, with what it needs.
fn prefixes(sight: &Sight<'_>, lookup: LookupId) -> Result<(Key, Conditions), Lack> {
    let program = sight.program;
    let asked = program.lookups.get(usize::from(lookup.0)).ok_or(Lack::Flows)?;
    let table = program.tables.get(usize::from(asked.table.0)).ok_or(Lack::Flows)?;
    let Entries::Prefixes(_) = table.entries else { return Err(Lack::Flows) };
    let &[key] = &asked.key[..] else { return Err(Lack::Found) };
    match sight.find(key)? {
        Seen::Bits { key, low: 0, width, needs } if width == key.width() => Ok((key, needs)),
        _ => Err(lack(program, sight.layout, key)),
    }
}

/// A step, and the rows that were found on the path to it as far as they matter.
type Place = (StepId, Rows);

struct Builder<'a> {
    driver: &'a Driver,
    segment: &'a Segment,
    live: Vec<BTreeSet<LookupId>>,
    known: HashMap<Place, usize>,
    waiting: BTreeMap<Place, usize>,
}

impl Builder<'_> {
    /// The node of a step, once those that rows decide are passed.
    fn node(&mut self, mut step: StepId, rows: &Rows) -> usize {
        let program = &self.segment.program;
        let of = |term: TermId| evaluate(program, term, rows, None);
        loop {
            let next = match program.step(step) {
                Step::Test { atom, yes, no, .. } => {
                    let holds = match atom {
                        Atom::Test(term, set) => of(*term).map(|value| set.contains(value)),
                        Atom::Compare(op, a, b) => of(*a).zip(of(*b)).map(|(a, b)| op.holds(a, b)),
                    };
                    holds.map(|holds| if holds { *yes } else { *no })
                }
                Step::Switch { on, cases, otherwise, .. } => of(*on).map(|value| {
                    let case = cases.iter().find(|case| case.0.contains(value));
                    case.map_or(*otherwise, |case| case.1)
                }),
                _ => None,
            };
            match next {
                Some(next) if next > step => step = next,
                _ => break,
            }
        }
        let live = &self.live[step.0 as usize];
        let rows = rows.iter().filter(|row| live.contains(row.0)).map(|(l, r)| (*l, r.clone()));
        let place: Place = (step, rows.collect());
        let next = self.known.len();
        let index = *self.known.entry(place.clone()).or_insert(next);
        if index == next {
            self.waiting.insert(place, index);
        }
        index
    }

    fn make(&mut self, (step, rows): &Place) -> Result<Node, Lack> {
        let (driver, segment, step) = (self.driver, self.segment, *step);
        let program = &segment.program;
        let layout = segment.layouts.get(step.0 as usize).ok_or(Lack::Element)?;
        let sight = Sight { driver, program, layout };
        let width = |term: TermId| program.width(term).max(1);
        let of =
            |element: NodeId| move |(when, to)| Line { when, to, origin: Some((element, None)) };
        let lines = match program.step(step) {
            Step::Exit(exit) => {
                let actions = match exit.end {
                    End::Push { .. } => actions(driver, program, layout, exit, rows)?,
                    _ => Vec::new(),
                };
                return Ok(Node::Exit { step, actions });
            }
            Step::Test { atom: Atom::Test(term, set), yes, no, element } => {
                let (yes, no) = (self.node(*yes, rows), self.node(*no, rows));
                let cases = vec![((**set).clone(), yes), (set.complement(width(*term)), no)];
                switched(&sight, *term, cases)?.into_iter().map(of(*element)).collect()
            }
            Step::Test { atom: Atom::Compare(_, a, b), .. } => {
                return Err(comparison(program, layout, [*a, *b]));
            }
            Step::Switch { on, cases, otherwise, element } => {
                let mut left = IntervalSet::full(width(*on));
                let mut all = Vec::with_capacity(cases.len() + 1);
                for (set, to) in cases {
                    all.push((set.intersect(&left), self.node(*to, rows)));
                    left = left.subtract(set);
                }
                all.push((left, self.node(*otherwise, rows)));
                switched(&sight, *on, all)?.into_iter().map(of(*element)).collect()
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                let arms: Vec<usize> = arms.iter().map(|arm| self.node(*arm, rows)).collect();
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let &to = arms.get(rule.arm as usize).ok_or(Lack::Element)?;
                    let origin = Some((*element, rule.span));
                    for cube in rule.cubes.iter() {
                        let all = conjunctions(&sight, keys, cube)?.into_iter();
                        lines.extend(all.map(|when| Line { when, to, origin }));
                    }
                    room(lines.len())?;
                }
                lines.push(of(*element)((Conditions::default(), self.node(*otherwise, rows))));
                lines
            }
            Step::Lookup { lookup, hit, miss } => {
                let (key, needs) = prefixes(&sight, *lookup)?;
                let asked = &program.lookups[usize::from(lookup.0)];
                let Entries::Prefixes(table) = &program.tables[usize::from(asked.table.0)].entries
                else {
                    return Err(Lack::Flows);
                };
                let mut entries: Vec<_> = table.entries().collect();
                entries.sort_by_key(|entry| std::cmp::Reverse(entry.length));
                let bits = u32::from(key.width());
                let mut lines = Vec::new();
                for entry in entries {
                    let mut found = rows.clone();
                    found.insert(*lookup, padded(entry.row.to_vec(), asked.values));
                    let to = self.node(*hit, &found);
                    let mask = ones(bits) & !ones(bits - u32::from(entry.length));
                    let when = needs.and(&Conditions::masked(key, entry.prefix, mask));
                    lines.extend(when.map(|when| of(asked.element)((when, to))));
                }
                lines.push(of(asked.element)((Conditions::default(), self.node(*miss, rows))));
                lines
            }
        };
        Ok(Node::List { step, lines })
    }
}

/// The lists of a segment.
pub(super) struct Lists {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    /// Those that are kept, each before those that it leads to.
    pub(super) order: Vec<usize>,
}

impl Lists {
    /// # Errors
    /// What the card lacks, and at which step.
    pub(super) fn new(driver: &Driver, segment: &Segment) -> Result<Self, (StepId, Lack)> {
        let (known, waiting) = (HashMap::new(), BTreeMap::new());
        let live = live(&segment.program);
        let mut builder = Builder { driver, segment, live, known, waiting };
        let root = builder.node(StepId(0), &Rows::new());
        let (mut nodes, mut order) = (BTreeMap::new(), Vec::new());
        // Steps lead to later ones: what is in order of steps is in order of the lists.
        while let Some((place, index)) = builder.waiting.pop_first() {
            let node = builder.make(&place).map_err(|lack| (place.0, lack))?;
            if builder.known.len() > MOST_NODES {
                let lack = Lack::Room("lists", builder.known.len(), MOST_NODES);
                return Err((place.0, lack));
            }
            nodes.insert(index, node);
            order.push(index);
        }
        let mut lists = Self { nodes: nodes.into_values().collect(), root, order };
        lists.flatten(driver)?;
        Ok(lists)
    }

    fn lines(&self, node: usize) -> &[Line] {
        match &self.nodes[node] {
            Node::List { lines, .. } => lines,
            Node::Exit { .. } => &[],
        }
    }

    /// Puts lists in the place of the patterns that lead to them: all, or those for which that takes no more rules.
    fn flatten(&mut self, driver: &Driver) -> Result<(), (StepId, Lack)> {
        let mut leading = vec![0usize; self.nodes.len()];
        for line in (0..self.nodes.len()).flat_map(|node| self.lines(node)) {
            leading[line.to] += 1;
        }
        let mut merged = vec![false; self.nodes.len()];
        for &node in self.order.clone().iter().rev() {
            let Node::List { step, lines } = &self.nodes[node] else { continue };
            let (step, lines) = (*step, self.expanded(lines, &merged));
            room(lines.len()).map_err(|lack| (step, lack))?;
            let (times, size) = (leading[node], lines.len());
            merged[node] = node != self.root
                && (!driver.groups || times.saturating_mul(size) <= times + size + 1);
            if let Node::List { lines: old, .. } = &mut self.nodes[node] {
                *old = lines;
            }
        }
        let nodes = &self.nodes;
        self.order.retain(|&node| !merged[node] && matches!(nodes[node], Node::List { .. }));
        Ok(())
    }

    fn expanded(&self, lines: &[Line], merged: &[bool]) -> Vec<Line> {
        let mut all: Vec<Line> = Vec::with_capacity(lines.len());
        for line in lines {
            if !merged[line.to] {
                all.push(line.clone());
                continue;
            }
            for inner in self.lines(line.to) {
                let Some(when) = line.when.and(&inner.when) else { continue };
                let origin = match (line.origin, inner.origin) {
                    // A rule says more than an element.
                    (outer @ Some((_, Some(_))), Some((_, None)) | None) => outer,
                    (outer, inner) => inner.or(outer),
                };
                all.push(Line { when, to: inner.to, origin });
                if all.len() > MOST_LINES {
                    return all;
                }
            }
        }
        simplified(all)
    }
}

/// Leaves out patterns that decide nothing.
fn simplified(mut lines: Vec<Line>) -> Vec<Line> {
    let Some(last) = lines.pop() else { return lines };
    while lines.last().is_some_and(|line| line.to == last.to) {
        lines.pop();
    }
    lines.push(last);
    if lines.len() <= MOST_COMPARED {
        let mut kept: Vec<Line> = Vec::with_capacity(lines.len());
        for line in lines {
            if !kept.iter().any(|earlier| earlier.when.covers(&line.when)) {
                kept.push(line);
            }
        }
        lines = kept;
    }
    lines
}

/// Priorities of a list's patterns, 0 first: neighbours that do not meet, or lead to one place, share one.
pub(super) fn priorities(lines: &[Line]) -> Vec<usize> {
    let (mut begin, mut priority) = (0, 0);
    let mut all = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let apart = |other: &Line| other.to == line.to || !other.when.meets(&line.when);
        let group = &lines[begin..at];
        if at > begin && !(group.len() < MOST_COMPARED && group.iter().all(apart)) {
            (begin, priority) = (at, priority + 1);
        }
        all.push(priority);
    }
    all
}
