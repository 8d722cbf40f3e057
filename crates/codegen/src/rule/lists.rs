//! The steps of a segment as lists of rules that lead to each other.
//!
//! A step becomes a list: rules in order of precedence, and where each leads. Where a table's row decides later steps,
//! a list stands for a step and the rows that were found. Lists replace the rules that lead to them where
//! that takes no more rules, or where the device has but one list.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::layout::Layout;
use ir::program::{
    Atom, Effect, End, Entries, Exit, Lookup, LookupId, Program, Step, StepId, Term, TermId,
};
use ir::{IntervalSet, NodeId, Span};

use super::{Conditions, Key, input_bits, layout_of, live};
use crate::number::{Rows, evaluate, ones};
use crate::{Lack, Segment};

/// Lists of a segment.
const MOST_LISTS: usize = 1 << 16;

/// Rules are compared with those before them up to so many.
const MOST_COMPARED: usize = 256;

/// The packets of a step.
#[derive(Clone, Copy)]
pub(crate) struct Packets<'a> {
    pub(crate) program: &'a Program,
    /// Which header lies where in them.
    pub(crate) layout: &'a Layout,
}

/// A device that matches rules: which fields it sees, and which ends of paths it can do.
pub(crate) trait Matcher {
    /// Its fields.
    type Key: Key;
    /// Where it sees a number.
    type Seen;
    /// What it does at the end of a path.
    type Exit: Default;

    /// Rules of one list.
    const MOST_RULES: usize;

    /// Where a number of packets is seen.
    ///
    /// # Errors
    /// What the device lacks.
    fn find(&self, packets: Packets<'_>, term: TermId) -> Result<Self::Seen, Lack>;

    /// Conditions of which one holds exactly where a number is in a set. A rule may say of which protocols it is.
    ///
    /// # Errors
    /// How many there would be, if they can be counted.
    fn within(
        &self,
        packets: Packets<'_>,
        seen: &Self::Seen,
        set: &IntervalSet,
        protocols: Option<&[u8]>,
    ) -> Result<Vec<Conditions<Self::Key>>, Option<usize>>;

    /// The field that a number is the whole of, and where it is there.
    fn field(seen: &Self::Seen) -> Option<(Self::Key, &Conditions<Self::Key>)>;

    /// Whether a number is that of the protocol that IPv4 carries.
    fn is_protocol(seen: &Self::Seen) -> bool;

    /// Whether a number can be asked for outside of a rule on several.
    fn asks(_: &Self::Seen) -> bool {
        true
    }

    /// What it does where packets are sent.
    ///
    /// # Errors
    /// What it cannot do.
    fn sends(&self, packets: Packets<'_>, exit: &Exit, rows: &Rows) -> Result<Self::Exit, Lack>;

    /// Whether rules count packets.
    fn counts(&self) -> bool {
        true
    }

    /// Whether rules lead to other lists.
    fn leads(&self) -> bool {
        true
    }
}

/// The element that decides something, and its rule.
pub(crate) type Origin = Option<(NodeId, Option<Span>)>;

/// A rule of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListRule<K> {
    /// Rules of lower order come first; those of one order do not meet, or lead to one place.
    pub(crate) order: usize,
    pub(crate) when: Conditions<K>,
    /// The list or exit that it leads to, by index.
    pub(crate) to: usize,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) enum Node<K, E> {
    /// A list in order of precedence; its last rule matches everything.
    List { step: StepId, lines: Vec<ListRule<K>> },
    /// The end of a path.
    Exit { step: StepId, exit: E },
}

/// Whether a step can be decided.
pub(crate) fn decide<M: Matcher>(
    matcher: &M,
    packets: Packets<'_>,
    step: StepId,
) -> Result<(), Lack> {
    let program = packets.program;
    let width = |term: TermId| program.width(term).max(1);
    let sight = Sight { matcher, packets };
    match program.step(step) {
        Step::Exit(_) => Ok(()),
        Step::Test { atom: Atom::Test(term, set), .. } => {
            if is_found(program, *term) {
                return Ok(());
            }
            let cases = vec![((**set).clone(), 0), (set.complement(width(*term)), 1)];
            sight.switched(*term, cases).map(drop)
        }
        Step::Test { atom: Atom::Compare(_, a, b), .. } => {
            match is_found(program, *a) && is_found(program, *b) {
                true => Ok(()),
                false => Err(comparison(packets, [*a, *b])),
            }
        }
        Step::Switch { on, cases, .. } => {
            if is_found(program, *on) {
                return Ok(());
            }
            let all = IntervalSet::union_of(cases.iter().map(|case| &case.0));
            let rest = (all.complement(width(*on)), 0);
            let cases = cases.iter().enumerate().map(|(i, case)| (case.0.clone(), i + 1));
            sight.switched(*on, cases.chain([rest]).collect()).map(drop)
        }
        Step::Classify { keys, rules, .. } => {
            let mut count = 0;
            for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
                count += sight.conjunctions(keys, cube)?.len();
                room::<M>(count)?;
            }
            Ok(())
        }
        Step::Lookup { lookup, .. } => sight.prefixes(*lookup).map(drop),
    }
}

/// Whether all that an exit does can be done.
pub(crate) fn does<M: Matcher>(
    matcher: &M,
    packets: Packets<'_>,
    step: StepId,
) -> Result<(), Lack> {
    let program = packets.program;
    let Step::Exit(exit) = program.step(step) else { return Ok(()) };
    if !exit.copies.is_empty() {
        return Err(Lack::Copy);
    }
    for effect in &exit.effects {
        match effect {
            Effect::Set { .. } => return Err(Lack::Cells),
            Effect::Update { .. } => return Err(Lack::Flows),
            // Rules count packets, and say for whom.
            Effect::Count { .. } | Effect::Note { .. } if matcher.counts() => {}
            Effect::Count { .. } | Effect::Note { .. } => return Err(Lack::Count),
        }
    }
    match exit.end {
        End::Drop { .. } if matcher.counts() => Ok(()),
        End::Drop { .. } => Err(Lack::Count),
        End::Handoff { .. } if exit.writes.carried.is_empty() => Ok(()),
        End::Handoff { .. } => Err(Lack::Found),
        End::Push { .. } => {
            // Any row will do: its numbers are constants.
            let rows = program.lookups.iter().zip(0..).filter_map(|(lookup, at)| {
                let entries = &program.tables.get(usize::from(lookup.table.0))?.entries;
                let Entries::Prefixes(table) = entries else { return None };
                let row = table.entries().next().map_or_else(Vec::new, |entry| entry.row.to_vec());
                Some((LookupId(at), padded(row, lookup)))
            });
            matcher.sends(packets, exit, &rows.collect()).map(drop)
        }
    }
}

/// A row with all the numbers that a lookup finds.
fn padded(mut row: Vec<u128>, lookup: &Lookup) -> std::sync::Arc<[u128]> {
    row.resize(lookup.values.into(), 0);
    row.into()
}

/// Whether a number is known once rows were found.
fn is_found(program: &Program, term: TermId) -> bool {
    let rows: Rows = (0..program.lookups.len() as u16).map(|l| (LookupId(l), [].into())).collect();
    evaluate(program, term, &rows, None).is_some()
}

/// What is missing where a number is to be tested.
pub(crate) fn lack(packets: Packets<'_>, term: TermId) -> Lack {
    let Packets { program, layout } = packets;
    if program.verifies(term) {
        return Lack::Checksum;
    }
    if let Some(field) = input_bits(program, term) {
        return match field {
            ir::field::meta::LEN => Lack::Length,
            _ => Lack::Field(layout.name_of(field).map_or(field.to_string(), |name| name.text)),
        };
    }
    match program.term(term) {
        Term::Sum16 { .. } => Lack::Checksum,
        Term::OnesSum(_) => Lack::Number("a ones' complement sum"),
        Term::Bound(..) => Lack::Found,
        Term::Cell(..) => Lack::Cells,
        Term::Position(_) => Lack::Number("where a header is"),
        Term::Hash(..) => Lack::Number("a hash"),
        Term::Map(..) => Lack::Number("what a range map yields"),
        Term::Now => Lack::Clock,
        of => {
            let worst = of.operands().into_iter().map(|of| lack(packets, of));
            let is_field = |lack: &Lack| matches!(lack, Lack::Field(_));
            worst.filter(|lack| !is_field(lack)).min().unwrap_or(Lack::Number("a sum"))
        }
    }
}

/// What is missing where two numbers are to be compared.
fn comparison(packets: Packets<'_>, terms: [TermId; 2]) -> Lack {
    match terms.map(|term| lack(packets, term)) {
        [Lack::Length, _] | [_, Lack::Length] => Lack::Length,
        [Lack::Checksum, _] | [_, Lack::Checksum] => Lack::Checksum,
        _ => Lack::Comparison,
    }
}

fn room<M: Matcher>(count: usize) -> Result<(), Lack> {
    match count > M::MOST_RULES {
        true => Err(Lack::Room("rules", count, M::MOST_RULES)),
        false => Ok(()),
    }
}

/// What a device sees of a step's packets.
struct Sight<'a, M> {
    matcher: &'a M,
    packets: Packets<'a>,
}

/// Conditions and where they lead.
type Cases<M> = Vec<(Conditions<<M as Matcher>::Key>, usize)>;

impl<M: Matcher> Sight<'_, M> {
    /// What a number is called in a message.
    fn called(&self, term: TermId) -> String {
        let Packets { program, layout } = self.packets;
        let name = input_bits(program, term).and_then(|field| layout.name_of(field));
        name.map_or_else(|| "a number".into(), |name| name.text)
    }

    /// Conditions in order, each with where it leads; the last matches everything.
    fn switched(&self, on: TermId, cases: Vec<(IntervalSet, usize)>) -> Result<Cases<M>, Lack> {
        let seen = self.matcher.find(self.packets, on)?;
        if !M::asks(&seen) {
            return Err(lack(self.packets, on));
        }
        let mut targets: BTreeMap<usize, IntervalSet> = BTreeMap::new();
        for (set, to) in cases.into_iter().filter(|case| !case.0.is_empty()) {
            let all = targets.entry(to).or_default();
            *all = all.union(&set);
        }
        let of = |set: &IntervalSet| self.matcher.within(self.packets, &seen, set, None);
        let mut all: Vec<_> = targets.iter().map(|(to, set)| (*to, of(set))).collect();
        // What costs most, or cannot be said, is what is left.
        let cost = |of: &Result<Vec<_>, _>| of.as_ref().map_or(usize::MAX, Vec::len);
        all.sort_by_key(|(to, of)| (cost(of), *to));
        let last = all.pop();
        let mut found = Vec::new();
        for (to, conditions) in all {
            let conditions = conditions.map_err(|count| Lack::Match(self.called(on), count))?;
            found.extend(conditions.into_iter().map(|when| (when, to)));
        }
        found.extend(last.map(|(to, _)| (Conditions::default(), to)));
        Ok(found)
    }

    /// Conjunctions for a rule's cube.
    fn conjunctions(
        &self,
        keys: &[TermId],
        cube: &[(u8, IntervalSet)],
    ) -> Result<Vec<Conditions<M::Key>>, Lack> {
        let program = self.packets.program;
        let packets =
            Packets { program, layout: &layout_of(program, self.packets.layout, keys, cube) };
        let mut all = Vec::with_capacity(cube.len());
        for (key, set) in cube {
            let term = *keys.get(usize::from(*key)).ok_or(Lack::Element)?;
            all.push((self.matcher.find(packets, term)?, term, set));
        }
        let protocols = all.iter().find(|(seen, ..)| M::is_protocol(seen)).map(|(_, _, set)| {
            let all = set.intervals().iter().flat_map(|&(low, high)| low..=high).take(4);
            all.filter_map(|protocol| u8::try_from(protocol).ok()).collect::<Vec<u8>>()
        });
        let mut conjunctions = vec![Conditions::default()];
        for (seen, term, set) in all {
            let alternatives = self
                .matcher
                .within(packets, &seen, set, protocols.as_deref())
                .map_err(|count| Lack::Match(self.called(term), count))?;
            room::<M>(conjunctions.len().saturating_mul(alternatives.len().max(1)))?;
            let both = conjunctions
                .iter()
                .flat_map(|one| alternatives.iter().filter_map(|other| one.and(other)));
            conjunctions = both.collect();
        }
        Ok(conjunctions)
    }

    /// The field that prefixes are looked up in, with what it needs.
    fn prefixes(&self, lookup: LookupId) -> Result<(M::Key, Conditions<M::Key>), Lack> {
        let program = self.packets.program;
        let asked = program.lookups.get(usize::from(lookup.0)).ok_or(Lack::Flows)?;
        let table = program.tables.get(usize::from(asked.table.0)).ok_or(Lack::Flows)?;
        let Entries::Prefixes(_) = table.entries else { return Err(Lack::Flows) };
        let &[key] = &asked.key[..] else { return Err(Lack::Found) };
        let seen = self.matcher.find(self.packets, key)?;
        match M::field(&seen) {
            Some((field, needs)) => Ok((field, needs.clone())),
            None => Err(lack(self.packets, key)),
        }
    }
}

/// A step, and the rows that were found on the path to it as far as they matter.
type StepRows = (StepId, Rows);

struct Builder<'a, M> {
    matcher: &'a M,
    segment: &'a Segment,
    live: Vec<BTreeSet<LookupId>>,
    known: HashMap<StepRows, usize>,
    waiting: BTreeMap<StepRows, usize>,
}

impl<M: Matcher> Builder<'_, M> {
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
        let place: StepRows = (step, rows.collect());
        let next = self.known.len();
        let index = *self.known.entry(place.clone()).or_insert(next);
        if index == next {
            self.waiting.insert(place, index);
        }
        index
    }

    fn make(&mut self, (step, rows): &StepRows) -> Result<Node<M::Key, M::Exit>, Lack> {
        let (matcher, segment, step) = (self.matcher, self.segment, *step);
        let program = &segment.program;
        let layout = segment.layouts.get(step.0 as usize).ok_or(Lack::Element)?;
        let packets = Packets { program, layout };
        let sight = Sight { matcher, packets };
        let width = |term: TermId| program.width(term).max(1);
        let lines = match program.step(step) {
            Step::Exit(exit) => {
                let exit = match exit.end {
                    End::Push { .. } => matcher.sends(packets, exit, rows)?,
                    _ => M::Exit::default(),
                };
                return Ok(Node::Exit { step, exit });
            }
            Step::Test { atom: Atom::Test(term, set), yes, no, element } => {
                let (yes, no) = (self.node(*yes, rows), self.node(*no, rows));
                let cases = vec![((**set).clone(), yes), (set.complement(width(*term)), no)];
                apart(sight.switched(*term, cases)?, *element)
            }
            Step::Test { atom: Atom::Compare(_, a, b), .. } => {
                return Err(comparison(packets, [*a, *b]));
            }
            Step::Switch { on, cases, otherwise, element } => {
                let mut left = IntervalSet::full(width(*on));
                let mut all = Vec::with_capacity(cases.len() + 1);
                for (set, to) in cases {
                    all.push((set.intersect(&left), self.node(*to, rows)));
                    left = left.subtract(set);
                }
                all.push((left, self.node(*otherwise, rows)));
                apart(sight.switched(*on, all)?, *element)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                let arms: Vec<usize> = arms.iter().map(|arm| self.node(*arm, rows)).collect();
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let &to = arms.get(rule.arm as usize).ok_or(Lack::Element)?;
                    let origin = Some((*element, rule.span));
                    for cube in rule.cubes.iter() {
                        let all = sight.conjunctions(keys, cube)?.into_iter();
                        lines.extend(all.map(|when| ListRule { order: 0, when, to, origin }));
                    }
                    room::<M>(lines.len())?;
                }
                grouped(&mut lines);
                let order = lines.last().map_or(0, |line| line.order + 1);
                let (when, to) = (Conditions::default(), self.node(*otherwise, rows));
                lines.push(ListRule { order, when, to, origin: Some((*element, None)) });
                lines
            }
            Step::Lookup { lookup, hit, miss } => {
                let (key, needs) = sight.prefixes(*lookup)?;
                let asked = &program.lookups[usize::from(lookup.0)];
                let Entries::Prefixes(table) = &program.tables[usize::from(asked.table.0)].entries
                else {
                    return Err(Lack::Flows);
                };
                let bits = u32::from(key.width());
                let origin = Some((asked.element, None));
                let mut lines = Vec::new();
                for entry in table.entries() {
                    let mut found = rows.clone();
                    found.insert(*lookup, padded(entry.row.to_vec(), asked));
                    let to = self.node(*hit, &found);
                    let mask = ones(bits) & !ones(bits - u32::from(entry.length));
                    let when = needs.and(&Conditions::masked(key, entry.prefix, mask));
                    let order = usize::from(key.width() - entry.length);
                    lines.extend(when.map(|when| ListRule { order, when, to, origin }));
                }
                lines.sort_by_key(|line| line.order);
                let (when, to) = (Conditions::default(), self.node(*miss, rows));
                lines.push(ListRule { order: usize::from(key.width()) + 1, when, to, origin });
                lines
            }
        };
        Ok(Node::List { step, lines })
    }
}

/// Rules of which the last alone meets others.
fn apart<K>(cases: Vec<(Conditions<K>, usize)>, element: NodeId) -> Vec<ListRule<K>> {
    let last = cases.len().saturating_sub(1);
    let origin = Some((element, None));
    let line = |(at, (when, to))| ListRule { order: usize::from(at == last), when, to, origin };
    cases.into_iter().enumerate().map(line).collect()
}

/// Gives rules in order as few different orders as a look at their neighbours allows.
fn grouped<K: Key>(lines: &mut [ListRule<K>]) {
    let (mut begin, mut order) = (0, 0);
    for at in 0..lines.len() {
        let (before, rest) = lines.split_at_mut(at);
        let Some(line) = rest.first_mut() else { break };
        let group = &before[begin..];
        let apart = |other: &ListRule<K>| other.to == line.to || !other.when.meets(&line.when);
        if at > begin && !(group.len() < MOST_COMPARED && group.iter().all(apart)) {
            (begin, order) = (at, order + 1);
        }
        line.order = order;
    }
}

/// The lists of a segment.
pub(crate) struct Lists<K, E> {
    pub(crate) nodes: Vec<Node<K, E>>,
    pub(crate) root: usize,
    /// Lists that others still lead to, and the first: each before those that it leads to.
    pub(crate) order: Vec<usize>,
}

impl<K: Key, E: Default> Lists<K, E> {
    /// # Errors
    /// What the device lacks, and at which step.
    pub(crate) fn new<M: Matcher<Key = K, Exit = E>>(
        matcher: &M,
        segment: &Segment,
    ) -> Result<Self, (StepId, Lack)> {
        let (known, waiting) = (HashMap::new(), BTreeMap::new());
        let live = live(&segment.program);
        let mut builder = Builder { matcher, segment, live, known, waiting };
        let root = builder.node(StepId(0), &Rows::new());
        let (mut nodes, mut order) = (BTreeMap::new(), Vec::new());
        // Steps lead to later ones: what is in order of steps is in order of the lists.
        while let Some((place, index)) = builder.waiting.pop_first() {
            let node = builder.make(&place).map_err(|lack| (place.0, lack))?;
            let count = builder.known.len();
            if count > MOST_LISTS {
                return Err((place.0, Lack::Room("lists", count, MOST_LISTS)));
            }
            nodes.insert(index, node);
            order.push(index);
        }
        let mut lists = Self { nodes: nodes.into_values().collect(), root, order };
        lists.merge::<M>(matcher.leads())?;
        Ok(lists)
    }

    pub(crate) fn lines(&self, node: usize) -> &[ListRule<K>] {
        match &self.nodes[node] {
            Node::List { lines, .. } => lines,
            Node::Exit { .. } => &[],
        }
    }

    /// Puts lists in the place of the rules that lead to them: all, or those for which that takes no more rules.
    fn merge<M: Matcher>(&mut self, leads: bool) -> Result<(), (StepId, Lack)> {
        let mut leading = vec![0usize; self.nodes.len()];
        for line in (0..self.nodes.len()).flat_map(|node| self.lines(node)) {
            leading[line.to] += 1;
        }
        let mut merged = vec![false; self.nodes.len()];
        for &node in self.order.clone().iter().rev() {
            let Node::List { step, lines } = &self.nodes[node] else { continue };
            let step = *step;
            let lines = self.expanded::<M>(lines, &merged).map_err(|lack| (step, lack))?;
            let (times, size) = (leading[node], lines.len());
            merged[node] =
                node != self.root && (!leads || times.saturating_mul(size) <= times + size + 1);
            if let Node::List { lines: old, .. } = &mut self.nodes[node] {
                *old = lines;
            }
        }
        let nodes = &self.nodes;
        self.order.retain(|&node| !merged[node] && matches!(nodes[node], Node::List { .. }));
        Ok(())
    }

    fn expanded<M: Matcher>(
        &self,
        lines: &[ListRule<K>],
        merged: &[bool],
    ) -> Result<Vec<ListRule<K>>, Lack> {
        // Within an order, rules keep that of the lists that they lead to.
        let mut all: Vec<((usize, usize), ListRule<K>)> = Vec::with_capacity(lines.len());
        for line in lines {
            if !merged[line.to] {
                all.push(((line.order, 0), line.clone()));
                continue;
            }
            for inner in self.lines(line.to) {
                let Some(when) = line.when.and(&inner.when) else { continue };
                let origin = match (line.origin, inner.origin) {
                    // A rule says more than an element.
                    (outer @ Some((_, Some(_))), Some((_, None)) | None) => outer,
                    (outer, inner) => inner.or(outer),
                };
                let key = (line.order, inner.order);
                all.push((key, ListRule { order: 0, when, to: inner.to, origin }));
                room::<M>(all.len())?;
            }
        }
        all.sort_by_key(|(key, _)| *key);
        Ok(simplified(all))
    }
}

/// Leaves out rules that decide nothing, and numbers orders without gaps.
fn simplified<K: Key>(mut lines: Vec<((usize, usize), ListRule<K>)>) -> Vec<ListRule<K>> {
    let Some(last) = lines.pop() else { return Vec::new() };
    while lines.last().is_some_and(|(_, line)| line.to == last.1.to) {
        lines.pop();
    }
    lines.push(last);
    let compares = lines.len() <= MOST_COMPARED;
    let mut kept: Vec<ListRule<K>> = Vec::with_capacity(lines.len());
    let (mut order, mut before) = (0, None);
    for (key, mut line) in lines {
        if compares && kept.iter().any(|earlier| earlier.when.covers(&line.when)) {
            continue;
        }
        order += usize::from(before.replace(key).is_some_and(|before| before != key));
        line.order = order;
        kept.push(line);
    }
    kept
}
