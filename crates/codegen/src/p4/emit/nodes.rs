//! Which steps become which tables.
//!
//! Steps that a table is made of are a node: a tree of tests, switches and short lists becomes rows of masks, a longer
//! list and a lookup are tables of their own. Nodes lie in levels, each behind those that lead to it. Nodes of a level
//! that are trees become one table, with the node's number, the arm, in its key. Lookups of one table that stand behind
//! different arms become one behind all of them, and lookups of different tables by the same number become one with the
//! table's number in its key; what a packet does with what was found is decided by the next table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ir::program::{Atom, LookupId, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, Span};

use super::number::Rows;
use super::part::{Part, masks};
use super::steps::routes;
use crate::headers::Instance;

/// Rows of a tree.
const MOST_ROWS: usize = 512;
/// Steps of a path through a tree.
const MOST_DEPTH: usize = 40;
/// Bits of the keys of a table of trees.
const MOST_BITS: u32 = 320;
/// Lookups that a program may have for some to be joined.
const MOST_LOOKUPS: usize = 1 << 12;

/// What numbers have to be.
type Tests = Vec<(TermId, IntervalSet)>;

/// A row of a tree: what numbers have to be, the headers that they lie in, and where it leads.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) tests: BTreeMap<TermId, (StepId, IntervalSet)>,
    pub(super) needs: BTreeSet<Instance>,
    pub(super) to: StepId,
    /// What short lookups on the path found.
    pub(super) found: Rows,
    pub(super) from: (NodeId, Option<Span>),
}

/// A tree: where it begins, behind which lookup and what was found there, and its rows.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) step: StepId,
    pub(super) found: Option<(StepId, u16)>,
    pub(super) rows: Vec<Row>,
}

/// A table that is made.
#[derive(Clone, Debug)]
pub(super) enum Spec {
    /// Trees, with the arm in the key if there are several.
    Trees(Vec<Tree>),
    /// One step, by itself.
    Step(StepId),
    /// Lookups by one number: by list of entries, the steps. The number is that of the table that decides next.
    Lookups(Vec<Vec<StepId>>, u16),
}

/// What a lookup that is joined with others finds: by entry, the longest prefixes first, and by what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JoinedLookup {
    /// By entry: the number of where it leads.
    pub(super) of: Vec<u16>,
    /// By number: where that is. The first is where a packet goes for which there is no entry.
    pub(super) to: Vec<StepId>,
}

/// Tables in their levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// By level: tables, with their numbers.
    pub(super) levels: Vec<Vec<(u16, Spec)>>,
    /// By step: the number of its table, and that of the list in it.
    pub(super) at: BTreeMap<StepId, (u16, u16)>,
    /// By lookup that is joined: what it finds.
    pub(super) found: BTreeMap<StepId, JoinedLookup>,
    /// By lookup that is joined: the number of its table.
    pub(super) slots: BTreeMap<LookupId, u16>,
}

/// A lookup that may be joined with others.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Asked {
    /// The number that is looked up, as it is written.
    key: String,
    /// Which table, and where its entries lead.
    table: u16,
    of: Vec<u16>,
}

impl Plan {
    /// Whether a table has more than one list of entries.
    pub(super) fn has_lists(&self, table: u16) -> bool {
        let is = |(number, spec): &(u16, Spec)| {
            *number == table && matches!(spec, Spec::Lookups(lists, _) if lists.len() > 1)
        };
        self.levels.iter().flatten().any(is)
    }
}

struct Planner<'p, 'a> {
    part: &'p Part<'a>,
    plan: Plan,
    trees: BTreeMap<StepId, Vec<Row>>,
    asked: BTreeMap<StepId, Asked>,
    /// By step: those that it leads to.
    next: BTreeMap<StepId, BTreeSet<StepId>>,
    /// Behind a lookup: trees by what was found.
    behind: BTreeMap<StepId, Vec<Vec<Row>>>,
}

/// Which tables a part becomes; numbers are given from `first` on.
pub(super) fn plan(part: &Part<'_>, first: u16) -> Plan {
    let mut planner = Planner {
        part,
        plan: Plan::default(),
        trees: BTreeMap::new(),
        asked: BTreeMap::new(),
        next: BTreeMap::new(),
        behind: BTreeMap::new(),
    };
    planner.discover();
    let levels = planner.levels();
    planner.tables(&levels, first);
    planner.plan
}

impl Planner<'_, '_> {
    /// Finds the nodes.
    fn discover(&mut self) {
        let part = self.part;
        let program = &part.segment.program;
        let mut waiting = BTreeSet::from([StepId(0)]);
        while let Some(at) = waiting.pop_first() {
            let mut next: BTreeSet<StepId> = BTreeSet::new();
            match program.step(at) {
                Step::Exit(_) => {}
                Step::Lookup { lookup, hit, miss } if !part.is_short(at) => {
                    if let Some((asked, found)) = self.lookup(*lookup, *hit, *miss) {
                        if found.to.len() <= MOST_ROWS {
                            let trees: Vec<Vec<Row>> =
                                found.to.iter().map(|to| self.tree(*to)).collect();
                            next.extend(trees.iter().flatten().map(|row| row.to));
                            self.behind.insert(at, trees);
                            self.asked.insert(at, asked);
                        } else {
                            next.extend(&found.to);
                        }
                        self.plan.found.insert(at, found);
                    }
                }
                _ if part.is_condition(at) && !part.is_short(at) => {
                    next.extend(part.leaves(at));
                }
                step => match part.is_short(at) {
                    true => {
                        let rows = self.tree(at);
                        next.extend(rows.iter().map(|row| row.to));
                        self.trees.insert(at, rows);
                    }
                    false => next.extend(step.next()),
                },
            }
            next.retain(|to| !matches!(program.step(*to), Step::Exit(_)));
            waiting.extend(next.iter().filter(|to| !self.next.contains_key(to)));
            self.next.insert(at, next);
        }
    }

    /// What a lookup finds, if it may be joined with others.
    fn lookup(&self, lookup: LookupId, hit: StepId, miss: StepId) -> Option<(Asked, JoinedLookup)> {
        let part = self.part;
        let program = &part.segment.program;
        let (key, table) = routes(program, lookup).ok()?;
        let of = part.numbers(hit, &Rows::new()).number(key, table.width()).ok()?;
        let mut to = vec![miss];
        let mut entries: Vec<_> = table.entries().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.length));
        let mut numbers = Vec::with_capacity(entries.len());
        for entry in entries {
            let rows = Rows::from([(lookup, Arc::clone(&entry.row))]);
            let leads = part.behind(hit, &rows);
            let known = to[1..].iter().position(|known| *known == leads);
            numbers.push(known.map_or(to.len(), |at| at + 1) as u16);
            if known.is_none() {
                to.push(leads);
            }
        }
        let asked = Asked {
            key: of.text,
            table: program.lookups[usize::from(lookup.0)].table.0,
            of: numbers.clone(),
        };
        Some((asked, JoinedLookup { of: numbers, to }))
    }

    /// The rows of the tree that begins at a step; one that leads there if it is no tree.
    fn tree(&self, at: StepId) -> Vec<Row> {
        let program = &self.part.segment.program;
        let start = Row {
            tests: BTreeMap::new(),
            needs: BTreeSet::new(),
            to: at,
            found: Rows::new(),
            from: (program.entry.node, None),
        };
        if matches!(program.step(at), Step::Exit(_)) || !self.part.is_short(at) {
            return vec![start];
        }
        // Steps that several lead to are cut off where the tree would be too large, then all but the first.
        for cut in [Cut::Nothing, Cut::Shared, Cut::All] {
            let mut rows = Vec::new();
            let known = BTreeMap::new();
            if self.grow(at, start.clone(), &known, (cut, at, 0), &mut rows).is_some() {
                return rows;
            }
        }
        vec![start]
    }

    /// Adds the rows behind a step; `None` if there are too many.
    fn grow(
        &self,
        at: StepId,
        row: Row,
        known: &BTreeMap<TermId, IntervalSet>,
        (cut, root, depth): (Cut, StepId, usize),
        rows: &mut Vec<Row>,
    ) -> Option<()> {
        let part = self.part;
        let program = &part.segment.program;
        let at = part.behind(at, &row.found);
        let is_cut = match cut {
            Cut::Nothing => false,
            Cut::Shared => part.leading[at.0 as usize] > 1,
            Cut::All => true,
        };
        let step = program.step(at);
        if at != root && (is_cut || matches!(step, Step::Exit(_)) || !self.part.is_short(at)) {
            rows.push(Row { to: at, ..row });
            return (rows.len() <= MOST_ROWS || cut == Cut::All).then_some(());
        }
        if depth >= MOST_DEPTH {
            return None;
        }
        let needs = part.needed(at);
        // Tests of one after the other, then what is left.
        let mut all: Vec<(Tests, StepId, Option<Span>)> = Vec::new();
        let mut found: Vec<(LookupId, Arc<[u128]>)> = Vec::new();
        let (otherwise, element) = match step {
            Step::Test { atom: Atom::Test(term, set), yes, no, element } => {
                let width = program.width(*term).max(1);
                let rest = set.complement(width);
                let (set, to, otherwise) = match masks(&rest, width) < masks(set, width) {
                    true => (rest, *no, *yes),
                    false => ((**set).clone(), *yes, *no),
                };
                all.push((vec![(*term, set)], to, None));
                (otherwise, *element)
            }
            Step::Switch { on, cases, otherwise, element } => {
                all.extend(cases.iter().map(|(set, to)| (vec![(*on, set.clone())], *to, None)));
                (*otherwise, *element)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                for rule in rules.iter() {
                    for cube in rule.cubes.iter() {
                        let tests =
                            cube.iter().map(|(key, set)| (keys[usize::from(*key)], set.clone()));
                        all.push((tests.collect(), arms[rule.arm as usize], rule.span));
                    }
                }
                (*otherwise, *element)
            }
            Step::Lookup { lookup, hit, miss } => {
                let (key, table) = routes(program, *lookup).ok()?;
                let mut entries: Vec<_> = table.entries().collect();
                entries.sort_by_key(|entry| std::cmp::Reverse(entry.length));
                for entry in entries {
                    let set = IntervalSet::prefix(table.width(), entry.prefix, entry.length);
                    all.push((vec![(key, set)], *hit, None));
                    found.push((*lookup, Arc::clone(&entry.row)));
                }
                (*miss, program.lookups[usize::from(lookup.0)].element)
            }
            Step::Exit(_) | Step::Test { .. } => return None,
        };
        let mut left = known.clone();
        let is_single = all.iter().all(|(tests, ..)| tests.len() == 1);
        for (number, (tests, to, span)) in all.into_iter().enumerate() {
            let mut row = Row { from: (element, span), ..row.clone() };
            row.found.extend(found.get(number).cloned());
            let mut known = left.clone();
            let (mut is_empty, mut is_sure) = (false, true);
            for (term, set) in &tests {
                let width = program.width(*term).max(1);
                let before = known.get(term).cloned().unwrap_or_else(|| IntervalSet::full(width));
                let now = before.intersect(set);
                is_empty |= now.is_empty();
                if now != before {
                    is_sure = false;
                    let tested = row.tests.get(term).map(|test| &test.1);
                    let tested = tested.map_or(set.clone(), |tested| tested.intersect(set));
                    row.tests.insert(*term, (at, tested));
                }
                known.insert(*term, now);
            }
            if is_empty {
                continue;
            }
            row.needs.extend(&needs);
            self.grow(to, row, &known, (cut, root, depth + 1), rows)?;
            if is_sure {
                return Some(());
            }
            if is_single && let [(term, set)] = &tests[..] {
                let width = program.width(*term).max(1);
                let before = left.get(term).cloned().unwrap_or_else(|| IntervalSet::full(width));
                left.insert(*term, before.subtract(set));
            }
        }
        let row = Row { from: (element, None), ..row };
        self.grow(otherwise, row, &left, (cut, root, depth + 1), rows)
    }

    /// Levels of nodes: each behind those that lead to it, lookups of one table in one level.
    fn levels(&mut self) -> BTreeMap<StepId, usize> {
        let mut groups: HashMap<&Asked, Vec<StepId>> = HashMap::new();
        if self.asked.len() <= MOST_LOOKUPS {
            self.asked.iter().for_each(|(at, asked)| groups.entry(asked).or_default().push(*at));
        }
        let mut groups: Vec<Vec<StepId>> =
            groups.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        let nodes = self.next.len();
        loop {
            let mut level: BTreeMap<StepId, usize> = self.next.keys().map(|at| (*at, 0)).collect();
            let mut changed = true;
            let mut rounds = 0;
            while std::mem::take(&mut changed) && rounds <= nodes {
                rounds += 1;
                for (at, next) in &self.next {
                    // What was found is decided in between.
                    let behind = level[at] + if self.asked.contains_key(at) { 2 } else { 1 };
                    for to in next {
                        if level[to] < behind {
                            level.insert(*to, behind);
                            changed = true;
                        }
                    }
                }
                for group in &groups {
                    let last = group.iter().map(|at| level[at]).max().unwrap_or(0);
                    for at in group {
                        changed |= level.insert(*at, last) != Some(last);
                    }
                }
            }
            if !changed {
                return level;
            }
            // Some lookups of one table follow one another.
            let most = 2 * nodes;
            let before = groups.len();
            groups.retain(|group| level[&group[0]] <= most);
            if groups.len() == before {
                groups.clear();
            }
        }
    }

    /// Gives tables to the nodes of each level.
    fn tables(&mut self, levels: &BTreeMap<StepId, usize>, first: u16) {
        let mut number = first;
        let end = levels.values().max().map_or(0, |last| last + 1);
        // One more for what lookups of the last level lead to.
        let mut made: Vec<Vec<(u16, Spec)>> = vec![Vec::new(); end + 1];
        let mut give = |made: &mut Vec<Vec<(u16, Spec)>>, level: usize, spec: Spec| {
            made[level].push((number, spec));
            number += 1;
            number - 1
        };
        for level in 0..end {
            let here: Vec<StepId> =
                levels.iter().filter(|(_, of)| **of == level).map(|(at, _)| *at).collect();
            let mut lookups: BTreeMap<String, Vec<(Asked, Vec<StepId>)>> = BTreeMap::new();
            for at in &here {
                let Some(asked) = self.asked.get(at) else { continue };
                let lists = lookups.entry(asked.key.clone()).or_default();
                match lists.iter_mut().find(|list| list.0 == *asked) {
                    Some(list) => list.1.push(*at),
                    None => lists.push((asked.clone(), vec![*at])),
                }
            }
            for lists in lookups.into_values() {
                let lists: Vec<Vec<StepId>> = lists.into_iter().map(|list| list.1).collect();
                // A lookup by itself does at once what ends there.
                let program = &self.part.segment.program;
                let alone = lists.iter().flatten().count() == 1;
                let mut trees = Vec::new();
                for at in lists.iter().flatten() {
                    let rows = self.behind.get(at).cloned().unwrap_or_default();
                    for (rows, found) in rows.into_iter().zip(0..) {
                        let to = self.plan.found[at].to[usize::from(found)];
                        if !alone || !matches!(program.step(to), Step::Exit(_)) {
                            trees.push(Tree { step: to, found: Some((*at, found)), rows });
                        }
                    }
                }
                let then = match trees.is_empty() {
                    true => 0,
                    false => give(&mut made, level + 1, Spec::Trees(trees)),
                };
                let table = give(&mut made, level, Spec::Lookups(lists.clone(), then));
                for (list, number) in lists.iter().zip(0..) {
                    for at in list {
                        self.plan.at.insert(*at, (table, number));
                        if let Step::Lookup { lookup, .. } = self.part.segment.program.step(*at) {
                            self.plan.slots.insert(*lookup, table);
                        }
                    }
                }
            }
            for at in here {
                if self.asked.contains_key(&at) {
                    continue;
                }
                let Some(rows) = self.trees.get(&at).cloned() else {
                    let table = give(&mut made, level, Spec::Step(at));
                    self.plan.at.insert(at, (table, 0));
                    continue;
                };
                // With another tree if that leaves the key narrow.
                let tree = Tree { step: at, found: None, rows };
                let part = self.part;
                let with = made[level].iter_mut().find_map(|(number, spec)| match spec {
                    Spec::Trees(all) if part.bits(all.iter().chain([&tree])) <= MOST_BITS => {
                        Some((*number, all))
                    }
                    _ => None,
                });
                let table = match with {
                    Some((number, all)) => {
                        all.push(tree);
                        number
                    }
                    None => give(&mut made, level, Spec::Trees(vec![tree])),
                };
                self.plan.at.insert(at, (table, 0));
            }
        }
        made.retain(|level| !level.is_empty());
        self.plan.levels = made;
    }
}

/// Where trees are cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Nothing,
    Shared,
    All,
}
