//! Tables: the steps of a segment as lists of entries that lead to each other.
//!
//! A step becomes a node: entries in order of precedence, and where each leads. Where a table's row
//! decides later steps, a node stands for a step and the rows that were found. A node whose entries
//! cost no more in the lists that lead to it than in a table of its own is put there. The rest lie in
//! tables by the longest path to them; nodes of one table are told apart by a number.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::layout::Layout;
use ir::program::{Atom, Effect, End, Entries, Exit, LookupId, Program, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, Span};

use super::Dialect;
use super::action::{Action, actions};
use super::condition::{Conditions, Match, Seen, Sight, lack};
use crate::number::{Rows, evaluate, ones};
use crate::rule::{input_bits, layout_of, live};
use crate::{Lack, Segment};

/// Entries of a node, and of all.
const MOST_LINES: usize = 1 << 20;

/// Nodes of a segment.
const MOST_NODES: usize = 1 << 16;

/// Entries of a group are compared with each other up to so many.
const MOST_COMPARED: usize = 64;

/// Where entries lead: a node, by index.
type NodeIndex = usize;

/// The element that decides something, and its rule.
pub(super) type Origin = Option<(NodeId, Option<Span>)>;

/// An entry of a node.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Entries of lower order come first; those of one order do not meet, or lead to one node.
    pub(super) order: usize,
    pub(super) when: Conditions,
    pub(super) to: NodeIndex,
    pub(super) origin: Origin,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Decides.
    Table { step: StepId, lines: Vec<Line> },
    /// Ends a path.
    Exit {
        step: StepId,
        actions: Vec<Action>,
        /// What must be known of packets for these actions.
        needs: Conditions,
    },
}

/// The nodes of a segment.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeIndex,
    /// Tables, each the nodes in it; exits are in none.
    pub(super) levels: Vec<Vec<NodeIndex>>,
}

/// Whether a step can be decided.
pub(super) fn decide(
    dialect: Dialect,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<(), Lack> {
    let sight = Sight { dialect, program, layout };
    match program.step(step) {
        Step::Exit(_) => Ok(()),
        Step::Test { atom: Atom::Test(term, set), .. } => {
            if found(program, *term) {
                return Ok(());
            }
            let seen = sight.find(*term)?;
            let cases =
                vec![((**set).clone(), 0), (set.complement(program.width(*term).max(1)), 1)];
            switched(&sight, *term, &seen, cases).map(drop)
        }
        Step::Test { atom: Atom::Compare(_, a, b), .. } => {
            match found(program, *a) && found(program, *b) {
                true => Ok(()),
                false => Err(comparison(program, layout, [*a, *b])),
            }
        }
        Step::Switch { on, cases, .. } => {
            if found(program, *on) {
                return Ok(());
            }
            let seen = sight.find(*on)?;
            let cases = cases.iter().enumerate().map(|(i, case)| (case.0.clone(), i + 1));
            let cases: Vec<_> = cases.collect();
            let all = IntervalSet::union_of(cases.iter().map(|case| &case.0));
            let rest = (all.complement(program.width(*on).max(1)), 0);
            switched(&sight, *on, &seen, cases.into_iter().chain([rest]).collect()).map(drop)
        }
        Step::Classify { keys, rules, .. } => {
            let mut count = 0;
            for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
                count += conjunctions(&sight, keys, cube)?.len();
                room(count)?;
            }
            Ok(())
        }
        Step::Lookup { lookup, .. } => prefixes(&sight, *lookup).map(drop),
    }
}

/// Whether all that an exit does can be done.
pub(super) fn does(
    dialect: Dialect,
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
            // Entries count packets; their cookie says for whom.
            Effect::Count { .. } | Effect::Note { .. } => {}
        }
    }
    match exit.end {
        End::Drop { .. } => Ok(()),
        End::Handoff { .. } if exit.writes.carried.is_empty() => Ok(()),
        End::Handoff { .. } => Err(Lack::Found),
        End::Push { .. } => {
            // Any row will do: its numbers are constants.
            let row = |lookup: &ir::program::Lookup| -> std::sync::Arc<[u128]> {
                let mut row =
                    match program.tables.get(usize::from(lookup.table.0)).map(|t| &t.entries) {
                        Some(Entries::Prefixes(table)) => {
                            table.entries().next().map_or(Vec::new(), |entry| entry.row.to_vec())
                        }
                        _ => Vec::new(),
                    };
                row.resize(lookup.values.into(), 0);
                row.into()
            };
            let prefixes = program.lookups.iter().enumerate().filter_map(|(at, lookup)| {
                let id = LookupId(at as u16);
                program.flows(id).is_none().then(|| (id, row(lookup)))
            });
            actions(dialect, program, layout, exit, &prefixes.collect()).map(drop)
        }
    }
}

/// Whether a number is known once rows were found.
fn found(program: &Program, term: TermId) -> bool {
    let rows: Rows = (0..program.lookups.len() as u16).map(|l| (LookupId(l), [].into())).collect();
    evaluate(program, term, &rows, None).is_some()
}

fn comparison(program: &Program, layout: &Layout, terms: [TermId; 2]) -> Lack {
    let worst = terms.map(|term| match input_bits(program, term) {
        Some(field) if field.base == ir::Base::Data => Lack::Comparison,
        _ => lack(program, layout, term),
    });
    match worst {
        [Lack::Length, _] | [_, Lack::Length] => Lack::Length,
        [Lack::Checksum, _] | [_, Lack::Checksum] => Lack::Checksum,
        _ => Lack::Comparison,
    }
}

fn room(count: usize) -> Result<(), Lack> {
    match count > MOST_LINES {
        true => Err(Lack::Room("entries", count, MOST_LINES)),
        false => Ok(()),
    }
}

/// What a key is called in a message.
fn called(sight: &Sight<'_>, term: TermId) -> String {
    let name = input_bits(sight.program, term).and_then(|field| sight.layout.name_of(field));
    name.map_or_else(|| "a number".into(), |name| name.text)
}

/// Conditions in order, each with where it leads; the last matches everything.
fn switched(
    sight: &Sight<'_>,
    on: TermId,
    seen: &Seen,
    cases: Vec<(IntervalSet, NodeIndex)>,
) -> Result<Vec<(Conditions, NodeIndex)>, Lack> {
    let mut targets: BTreeMap<NodeIndex, IntervalSet> = BTreeMap::new();
    for (set, to) in cases.into_iter().filter(|case| !case.0.is_empty()) {
        let all = targets.entry(to).or_default();
        *all = all.union(&set);
    }
    let of = |set: &IntervalSet| sight.within(seen, set, None);
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
    let numbers: Vec<(TermId, &IntervalSet)> =
        cube.iter().filter_map(|(key, set)| Some((*keys.get(usize::from(*key))?, set))).collect();
    let layout = layout_of(sight.program, sight.layout, keys, cube);
    let sight = Sight { layout: &layout, ..*sight };
    let mut all = Vec::with_capacity(numbers.len());
    for (term, set) in numbers {
        all.push((sight.find(term)?, term, set));
    }
    let protocols = all.iter().find_map(|(seen, _, set)| {
        let Seen::Bits { field: Match::IpProto, .. } = seen else { return None };
        let all = set.intervals().iter().flat_map(|&(low, high)| low..=high).take(4);
        Some(all.filter_map(|protocol| u8::try_from(protocol).ok()).collect::<Vec<u8>>())
    });
    let mut conjunctions = vec![Conditions::default()];
    for (seen, term, set) in all {
        let alternatives = sight
            .within(&seen, set, protocols.as_deref())
            .map_err(|count| Lack::Match(called(&sight, term), count))?;
        room(conjunctions.len().saturating_mul(alternatives.len().max(1)))?;
        conjunctions = conjunctions
            .iter()
            .flat_map(|one| alternatives.iter().filter_map(|other| one.and(other)))
            .collect();
    }
    Ok(conjunctions)
}

/// The field that prefixes are looked up in, with what it needs.
fn prefixes(sight: &Sight<'_>, lookup: LookupId) -> Result<(Match, Conditions), Lack> {
    let program = sight.program;
    let asked = program.lookups.get(usize::from(lookup.0)).ok_or(Lack::Flows)?;
    let table = program.tables.get(usize::from(asked.table.0)).ok_or(Lack::Flows)?;
    let Entries::Prefixes(_) = table.entries else { return Err(Lack::Flows) };
    let &[key] = &asked.key[..] else { return Err(Lack::Found) };
    match sight.find(key)? {
        Seen::Bits { field, low: 0, width, needs } if width == field.width() => Ok((field, needs)),
        _ => Err(lack(program, sight.layout, key)),
    }
}

/// A step, and the rows that were found on the path to it as far as they matter.
type Place = (StepId, Rows);

struct Builder<'a> {
    dialect: Dialect,
    segment: &'a Segment,
    live: Vec<BTreeSet<LookupId>>,
    index: HashMap<Place, NodeIndex>,
    waiting: BTreeMap<Place, NodeIndex>,
    count: usize,
}

impl Builder<'_> {
    fn program(&self) -> &Program {
        &self.segment.program
    }

    /// The node of a step, once those that rows decide are passed.
    fn node(&mut self, mut step: StepId, rows: &Rows) -> NodeIndex {
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
        let rows: Rows =
            rows.iter().filter(|row| live.contains(row.0)).map(|(l, r)| (*l, r.clone())).collect();
        let place = (step, rows);
        if let Some(&index) = self.index.get(&place) {
            return index;
        }
        let index = self.count;
        self.count += 1;
        self.index.insert(place.clone(), index);
        self.waiting.insert(place, index);
        index
    }

    fn make(&mut self, (step, rows): &Place) -> Result<Node, Lack> {
        let segment = self.segment;
        let (program, step) = (&segment.program, *step);
        let layout = segment.layouts.get(step.0 as usize).ok_or(Lack::Element)?;
        let sight = Sight { dialect: self.dialect, program, layout };
        let width = |term: TermId| program.width(term).max(1);
        let lines = match program.step(step) {
            Step::Exit(exit) => return self.exit(step, exit, layout, rows),
            Step::Test { atom: Atom::Test(term, set), yes, no, element } => {
                let seen = sight.find(*term)?;
                let (yes, no) = (self.node(*yes, rows), self.node(*no, rows));
                let cases = vec![((**set).clone(), yes), (set.complement(width(*term)), no)];
                ordered(switched(&sight, *term, &seen, cases)?, *element)
            }
            Step::Test { atom: Atom::Compare(_, a, b), .. } => {
                return Err(comparison(program, layout, [*a, *b]));
            }
            Step::Switch { on, cases, otherwise, element } => {
                let seen = sight.find(*on)?;
                let mut left = IntervalSet::full(width(*on));
                let mut all = Vec::with_capacity(cases.len() + 1);
                for (set, to) in cases {
                    all.push((set.intersect(&left), self.node(*to, rows)));
                    left = left.subtract(set);
                }
                all.push((left, self.node(*otherwise, rows)));
                ordered(switched(&sight, *on, &seen, all)?, *element)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                let arms: Vec<NodeIndex> = arms.iter().map(|arm| self.node(*arm, rows)).collect();
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let &to = arms.get(rule.arm as usize).ok_or(Lack::Element)?;
                    for cube in rule.cubes.iter() {
                        for when in conjunctions(&sight, keys, cube)? {
                            let origin = Some((*element, rule.span));
                            lines.push(Line { order: rule.number as usize, when, to, origin });
                        }
                    }
                    room(lines.len())?;
                }
                grouped(&mut lines);
                let order = lines.last().map_or(0, |line| line.order + 1);
                let to = self.node(*otherwise, rows);
                let origin = Some((*element, None));
                lines.push(Line { order, when: Conditions::default(), to, origin });
                lines
            }
            Step::Lookup { lookup, hit, miss } => {
                let (field, needs) = prefixes(&sight, *lookup)?;
                let asked = &program.lookups[usize::from(lookup.0)];
                let Entries::Prefixes(table) = &program.tables[usize::from(asked.table.0)].entries
                else {
                    return Err(Lack::Flows);
                };
                let bits = u32::from(field.width());
                let mut lines = Vec::new();
                for entry in table.entries() {
                    let mut row = entry.row.to_vec();
                    row.resize(asked.values.into(), 0);
                    let mut found = rows.clone();
                    found.insert(*lookup, row.into());
                    let to = self.node(*hit, &found);
                    let mask = ones(bits) & !ones(bits - u32::from(entry.length));
                    let when = needs.and(&Conditions::masked(field, entry.prefix, mask));
                    let order = usize::from(field.width() - entry.length);
                    let origin = Some((asked.element, None));
                    lines.extend(when.map(|when| Line { order, when, to, origin }));
                }
                lines.sort_by_key(|line| line.order);
                let to = self.node(*miss, rows);
                let order = usize::from(field.width()) + 1;
                let origin = Some((asked.element, None));
                lines.push(Line { order, when: Conditions::default(), to, origin });
                lines
            }
        };
        Ok(Node::Table { step, lines })
    }

    fn exit(&self, step: StepId, exit: &Exit, layout: &Layout, rows: &Rows) -> Result<Node, Lack> {
        let (actions, needs) = match exit.end {
            End::Push { .. } => actions(self.dialect, self.program(), layout, exit, rows)?,
            _ => Default::default(),
        };
        Ok(Node::Exit { step, actions, needs })
    }
}

/// Entries of which the last alone meets others.
fn ordered(all: Vec<(Conditions, NodeIndex)>, element: NodeId) -> Vec<Line> {
    let last = all.len().saturating_sub(1);
    let line = |(i, (when, to))| Line {
        order: usize::from(i == last),
        when,
        to,
        origin: Some((element, None)),
    };
    all.into_iter().enumerate().map(line).collect()
}

/// Gives entries, in the order of rules, as few different orders as a look at their neighbours allows.
fn grouped(lines: &mut [Line]) {
    let (mut begin, mut order) = (0, 0);
    for at in 0..lines.len() {
        let (before, rest) = lines.split_at_mut(at);
        let Some(line) = rest.first_mut() else { break };
        let group = &before[begin..];
        let apart = |other: &Line| other.to == line.to || !other.when.meets(&line.when);
        if at > begin && !(group.len() < MOST_COMPARED && group.iter().all(apart)) {
            (begin, order) = (at, order + 1);
        }
        line.order = order;
    }
}

impl Graph {
    /// # Errors
    /// What the switch lacks, and at which step.
    pub(super) fn new(dialect: Dialect, segment: &Segment) -> Result<Self, (StepId, Lack)> {
        let program = &segment.program;
        let mut builder = Builder {
            dialect,
            segment,
            live: live(program),
            index: HashMap::new(),
            waiting: BTreeMap::new(),
            count: 0,
        };
        let root = builder.node(StepId(0), &Rows::new());
        let mut nodes: BTreeMap<NodeIndex, Node> = BTreeMap::new();
        // Steps lead to later ones: what is in order of steps is in order of the graph.
        let mut order = Vec::new();
        while let Some((place, index)) = builder.waiting.pop_first() {
            let node = builder.make(&place).map_err(|lack| (place.0, lack))?;
            if builder.count > MOST_NODES {
                let lack = Lack::Room("states", builder.count, MOST_NODES);
                return Err((place.0, lack));
            }
            nodes.insert(index, node);
            order.push(index);
        }
        let mut graph = Self { nodes: nodes.into_values().collect(), root, levels: Vec::new() };
        graph.merge(&order).map_err(|lack| (StepId(0), lack))?;
        graph.layer(&order);
        Ok(graph)
    }

    fn lines(&self, node: NodeIndex) -> &[Line] {
        match &self.nodes[node] {
            Node::Table { lines, .. } => lines,
            Node::Exit { .. } => &[],
        }
    }

    /// Puts nodes in the place of entries that lead to them where that takes no more entries.
    fn merge(&mut self, order: &[NodeIndex]) -> Result<(), Lack> {
        let mut leading = vec![0usize; self.nodes.len()];
        for line in (0..self.nodes.len()).flat_map(|node| self.lines(node)) {
            leading[line.to] += 1;
        }
        let mut merged = vec![false; self.nodes.len()];
        for &node in order.iter().rev() {
            let Node::Table { lines, .. } = &self.nodes[node] else { continue };
            let lines = match lines.iter().any(|line| merged[line.to]) {
                true => simplified(self.expanded(lines, &merged)),
                false => simplified(lines.clone()),
            };
            room(lines.len())?;
            let (times, size) = (leading[node], lines.len());
            merged[node] = node != self.root && times.saturating_mul(size) <= times + size + 1;
            if let Node::Table { lines: old, .. } = &mut self.nodes[node] {
                *old = lines;
            }
        }
        Ok(())
    }

    fn expanded(&self, lines: &[Line], merged: &[bool]) -> Vec<Line> {
        // Within an order, entries keep that of the nodes that they lead to.
        let mut all: Vec<((usize, usize), Line)> = Vec::with_capacity(lines.len());
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
                all.push((key, Line { order: 0, when, to: inner.to, origin }));
            }
        }
        all.sort_by_key(|(key, _)| *key);
        dense(all)
    }

    /// Tells where nodes lie that others still lead to.
    fn layer(&mut self, order: &[NodeIndex]) {
        let mut depth: Vec<Option<usize>> = vec![None; self.nodes.len()];
        depth[self.root] = Some(0);
        for &node in order {
            let Some(above) = depth[node] else { continue };
            for line in self.lines(node) {
                depth[line.to] = depth[line.to].max(Some(above + 1));
            }
        }
        for &node in order {
            let (Some(level), Node::Table { .. }) = (depth[node], &self.nodes[node]) else {
                continue;
            };
            if self.levels.len() <= level {
                self.levels.resize(level + 1, Vec::new());
            }
            self.levels[level].push(node);
        }
    }
}

/// Numbers orders without gaps.
fn dense<K: PartialEq>(all: Vec<(K, Line)>) -> Vec<Line> {
    let mut last: Option<K> = None;
    let mut order = 0;
    let number = |(key, mut line): (K, Line)| {
        if last.as_ref().is_some_and(|last| *last != key) {
            order += 1;
        }
        last = Some(key);
        line.order = order;
        line
    };
    all.into_iter().map(number).collect()
}

/// Leaves out entries that decide nothing.
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
    let all = lines.into_iter().map(|line| (line.order, line)).collect();
    dense(all)
}
