//! Packets partitioned by what a program asks of them, until it does the same with all of a part or there
//! are as many parts as there may be.
//!
//! What distinguishes most is asked first: fields, each at once with all its sets, then lists of
//! rules, which are halved where that leaves the fewest rules on both sides. Of parts that could
//! be partitioned further, packets come to some of the ends that are told of them; so all is sound, and
//! how exact it is a matter of how many parts there may be.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use ir::program::StepId;
use ir::{Cube, Field, HeaderSpace, IntervalSet};

use super::questions::{Conjunction, Question, Questions, Rules};
use super::{ETH_TYPE, IP_VERSION, MOST_CUBES, Standing, standing};

/// Steps and conjunctions that are looked at, all in all.
const MOST_WORK: usize = 1 << 22;
/// Conjunctions of a list that are looked at to choose where to halve it.
const SAMPLE: usize = 64;
/// Sets into which packets are partitioned at once by what tells where rules lead.
const MOST_TOLD: usize = 16;

/// Packets that are not distinguished.
pub(super) struct Region {
    pub(super) cube: Cube,
    /// The exits that they may leave by.
    pub(super) exits: Vec<StepId>,
    /// The steps that look flows up for them.
    pub(super) lookups: BTreeSet<usize>,
    known: Known,
    /// What is asked next.
    next: Option<Next>,
}

/// What is known of the packets of a region, and of the regions that it is partitioned into.
#[derive(Clone, Default)]
struct Known {
    /// By step, the only set that they are in.
    decided: Rc<BTreeMap<usize, usize>>,
    /// By step, what they may match.
    lists: BTreeMap<usize, Rc<List>>,
    /// Lists that were halved: what tells by itself where packets go was made use of before.
    halved: BTreeSet<usize>,
    /// Steps by which they are not partitioned further.
    left: BTreeSet<usize>,
}

/// Conjunctions of a list that packets may match, and where those go that match none of them.
struct List {
    some: Vec<usize>,
    last: StepId,
}

/// What parts a region.
#[derive(Clone, Copy)]
struct Next {
    step: usize,
    by: By,
    /// Whether that distinguishes exits, and not only what leaves from what is dropped.
    tells_exits: bool,
}

/// How they are partitioned; what comes last is asked first, so that it is known which fields there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Rules,
    /// Ethernet's type: this one, and all others.
    Type(u128),
    Number,
    /// A number that all frames have.
    Kind,
}

/// Disjoint regions that hold all packets that leave.
pub(super) fn regions(questions: &Questions) -> Vec<Region> {
    let (first, mut work) = Region::new(questions, Cube::default(), Known::default(), None);
    let mut all = vec![Some(first)];
    // In the order in which they are partitioned: earlier ones first where nothing else decides.
    let mut waiting = BinaryHeap::new();
    let mut done = Vec::new();
    let wait = |at: usize, all: &[Option<Region>], waiting: &mut BinaryHeap<_>| {
        if let Some(region) = &all[at] {
            waiting.push((region.rank(), Reverse(at)));
        }
    };
    wait(0, &all, &mut waiting);
    while let Some((_, Reverse(at))) = waiting.pop() {
        let Some(region) = all[at].take() else { continue };
        let room = MOST_CUBES.saturating_sub(waiting.len() + done.len());
        let Some(next) = region.next.filter(|_| work < MOST_WORK && room > 1) else {
            done.push(region);
            continue;
        };
        let mut parts = region.partition(next, questions, room).unwrap_or_default();
        if parts.is_empty() {
            let mut known = region.known;
            known.left.insert(next.step);
            parts = vec![Region::new(questions, region.cube, known, None)];
        }
        for (part, more) in parts {
            work += more;
            if !part.exits.is_empty() {
                all.push(Some(part));
                wait(all.len() - 1, &all, &mut waiting);
            }
        }
    }
    done.iter_mut().for_each(|region| region.narrow(questions));
    done
}

impl Region {
    /// Packets of a cube, of which something is known already; `changed` is the only field of which
    /// more is known than when lists of conjunctions were made. Also returns how much was looked at.
    fn new(
        questions: &Questions,
        cube: Cube,
        mut known: Known,
        changed: Option<Field>,
    ) -> (Self, usize) {
        let (mut exits, mut lookups, mut next) = (Vec::new(), BTreeSet::new(), None);
        let mut work = 0;
        let before = std::mem::take(&mut known.lists);
        walk(questions, |step, question| {
            work += 1;
            let mut open = None;
            let to = match question {
                Question::End => {
                    exits.push(StepId(step as u32));
                    Vec::new()
                }
                Question::Other(to) => {
                    if questions.tables.contains_key(&step) {
                        lookups.insert(step);
                    }
                    to.clone()
                }
                Question::Number(field, sets) => {
                    let some = known.sets(&cube, step, *field, sets);
                    if some.len() > 1 {
                        let of_all = [ETH_TYPE, IP_VERSION].iter().any(|known| known.holds(*field));
                        let by = if of_all { By::Kind } else { By::Number };
                        open = asked(&cube, *field, by);
                    }
                    some.into_iter().flat_map(|set| &sets[set].1).copied().collect()
                }
                Question::Rules(rules) => {
                    let list = List::of(rules, &cube, before.get(&step).map(|l| &**l), changed);
                    work += list.some.len();
                    let to = list.steps(rules);
                    if to.len() > 1 {
                        let asked =
                            || rules.fields.iter().filter_map(|f| asked(&cube, *f, By::Rules));
                        let by_type = asked().find(|by| matches!(by, By::Type(_)));
                        open = by_type.or_else(|| asked().next());
                    }
                    known.lists.insert(step, Rc::new(list));
                    to
                }
            };
            if let Some(by) = open.filter(|_| !known.left.contains(&step)) {
                let mut on: Vec<_> = to.iter().filter(|to| questions.leads_on(**to)).collect();
                on.sort_unstable();
                on.dedup();
                let this = Next { step, by, tells_exits: on.len() > 1 };
                if next.is_none_or(|next: Next| this.rank() > next.rank()) {
                    next = Some(this);
                }
            }
            to
        });
        (Self { cube, exits, lookups, known, next }, work)
    }

    /// When it is partitioned: greater ones first.
    fn rank(&self) -> (Option<(By, bool)>, usize) {
        let rules = self.next.and_then(|next| self.known.lists.get(&next.step));
        (self.next.map(Next::rank), rules.map_or(0, |list| list.some.len()))
    }

    /// The parts of a region, with how much was looked at; `None` if it cannot be partitioned so, or
    /// into more than there is room for.
    fn partition(
        &self,
        next: Next,
        questions: &Questions,
        room: usize,
    ) -> Option<Vec<(Self, usize)>> {
        let mut is_halved = false;
        let (field, sets) = match (next.by, &questions.steps[next.step]) {
            (By::Type(kind), _) => {
                let kind = IntervalSet::single(kind);
                (ETH_TYPE.field, vec![kind.clone(), kind.complement(16)])
            }
            (_, Question::Number(field, sets)) => {
                (*field, sets.iter().map(|(set, _)| set.clone()).collect())
            }
            (_, Question::Rules(rules)) => {
                let leads_on = |step| questions.leads_on(step);
                is_halved = self.known.halved.contains(&next.step);
                let list = self.known.lists.get(&next.step)?;
                let parts = list.parts(rules, &self.cube, leads_on, is_halved)?;
                is_halved = parts.is_halved;
                (parts.field, parts.sets)
            }
            _ => return None,
        };
        let all = HeaderSpace::from(self.cube.clone());
        let mut cubes = Vec::new();
        for (at, set) in sets.iter().enumerate() {
            let part = all.intersect(&HeaderSpace::test(field, set), room).ok()?;
            cubes.extend(part.cubes().iter().map(|cube| (at, cube.clone())));
        }
        if !(2..=room).contains(&cubes.len()) {
            return None;
        }
        let part = |(at, cube): (usize, Cube)| {
            let is_known = |(of, set): &_| *of == field || self.cube.get(*of) == Some(set);
            let changed = cube.fields().iter().all(is_known).then_some(field);
            let mut known = self.known.clone();
            if matches!(next.by, By::Number | By::Kind) {
                Rc::make_mut(&mut known.decided).insert(next.step, at);
            }
            if is_halved {
                known.halved.insert(next.step);
            }
            Self::new(questions, cube, known, changed)
        };
        Some(cubes.into_iter().map(part).collect())
    }

    /// Leaves packets out that match no rule that leads on, if all others are dropped.
    fn narrow(&mut self, questions: &Questions) {
        for (&step, list) in &self.known.lists {
            let Question::Rules(rules) = &questions.steps[step] else { continue };
            if questions.leads_on(list.last) || self.passes_by(step, questions) {
                continue;
            }
            for (at, &field) in rules.fields.iter().enumerate() {
                if asked(&self.cube, field, By::Rules) != Some(By::Rules) {
                    continue;
                }
                let leading = list.some.iter().map(|&of| &rules.conjunctions[of]);
                let leading = leading.filter(|one| questions.leads_on(one.to));
                let Some(sets) = leading.map(|one| one.set(at)).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let any = sets.iter().flat_map(|set| set.intervals()).copied().collect();
                let any = HeaderSpace::test(field, &IntervalSet::from_intervals(any));
                let space = HeaderSpace::from(self.cube.clone()).intersect(&any, 1);
                if let Some([cube]) = space.ok().as_ref().map(HeaderSpace::cubes) {
                    self.cube = cube.clone();
                }
            }
        }
    }

    /// Whether packets may leave that do not come to this step.
    fn passes_by(&self, without: usize, questions: &Questions) -> bool {
        let mut leaves = false;
        let mut known = self.known.clone();
        walk(questions, |step, question| match question {
            _ if step == without => Vec::new(),
            Question::End => {
                leaves = true;
                Vec::new()
            }
            Question::Other(to) => to.clone(),
            Question::Number(field, sets) => {
                let some = known.sets(&self.cube, step, *field, sets);
                some.into_iter().flat_map(|set| &sets[set].1).copied().collect()
            }
            Question::Rules(rules) => {
                self.known.lists.get(&step).map_or_else(Vec::new, |list| list.steps(rules))
            }
        });
        leaves
    }
}

/// Visits the steps that packets of a class may come to; `to` tells where they go on.
fn walk(questions: &Questions, mut to: impl FnMut(usize, &Question) -> Vec<StepId>) {
    let mut reached = vec![false; questions.steps.len()];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for (step, question) in questions.steps.iter().enumerate() {
        if reached[step] && questions.leads_on(StepId(step as u32)) {
            to(step, question).iter().for_each(|to| reached[to.0 as usize] = true);
        }
    }
}

/// What packets are partitioned by to ask about a field.
fn asked(cube: &Cube, field: Field, by: By) -> Option<By> {
    match standing(cube, field) {
        Standing::There => Some(by),
        Standing::In(kind) => Some(By::Type(kind)),
        Standing::Missing => None,
    }
}

impl Next {
    /// What is asked first.
    fn rank(self) -> (By, bool) {
        (self.by, self.tells_exits)
    }
}

impl Known {
    /// The sets of a question that packets may be in, by index.
    fn sets(
        &mut self,
        cube: &Cube,
        step: usize,
        field: Field,
        sets: &[(IntervalSet, Vec<StepId>)],
    ) -> Vec<usize> {
        if let Some(&set) = self.decided.get(&step) {
            return vec![set];
        }
        let is_free = !cube.fields().iter().any(|(known, _)| known.overlaps(field));
        if is_free || !matches!(standing(cube, field), Standing::There) {
            return (0..sets.len()).collect();
        }
        let meets = |set: &IntervalSet| match cube.get(field) {
            Some(known) => known.intersects(set),
            None => {
                let space = HeaderSpace::from(cube.clone());
                space.is_disjoint(&HeaderSpace::test(field, set), MOST_CUBES) != Ok(true)
            }
        };
        let some: Vec<usize> = (0..sets.len()).filter(|&set| meets(&sets[set].0)).collect();
        if let [only] = some[..] {
            Rc::make_mut(&mut self.decided).insert(step, only);
        }
        some
    }
}

impl List {
    /// What packets of a cube may match, if `before` is what they did when only less was known, of
    /// this field if it was one.
    fn of(rules: &Rules, cube: &Cube, before: Option<&Self>, changed: Option<Field>) -> Self {
        let sets = known_sets(rules, cube);
        let changed =
            before.and(changed).and_then(|field| rules.fields.iter().position(|f| *f == field));
        let fits = |(of, set): &(usize, IntervalSet)| {
            changed.is_some_and(|changed| changed != *of)
                || sets[*of].as_ref().is_none_or(|known| known.intersects(set))
        };
        let mut list = Self { some: Vec::new(), last: rules.otherwise };
        let mut add = |at: usize| {
            let one = &rules.conjunctions[at];
            if one.sets.iter().all(fits) {
                if covers(one, &sets) {
                    list.last = one.to;
                    return false;
                }
                list.some.push(at);
            }
            true
        };
        let _ = match before {
            Some(before) => {
                let all = before.some.iter().all(|at| add(*at));
                if all {
                    list.last = before.last;
                }
                all
            }
            None => (0..rules.conjunctions.len()).all(&mut add),
        };
        // These change nothing.
        while list.some.last().is_some_and(|&at| rules.conjunctions[at].to == list.last) {
            list.some.pop();
        }
        list
    }

    /// Where packets may go on.
    fn steps(&self, rules: &Rules) -> Vec<StepId> {
        let mut all = vec![self.last];
        for &at in &self.some {
            let to = rules.conjunctions[at].to;
            if all.last() != Some(&to) {
                all.push(to);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The sets of a field by which packets are partitioned best. Unless `is_halved`, that may be those
    /// that tell by themselves where packets go on.
    fn parts(
        &self,
        rules: &Rules,
        cube: &Cube,
        leads_on: impl Fn(StepId) -> bool,
        is_halved: bool,
    ) -> Option<Parts> {
        let sets = known_sets(rules, cube);
        let step = self.some.len().div_ceil(SAMPLE).max(1);
        let sample = || self.some.iter().step_by(step).map(|&at| &rules.conjunctions[at]);
        let is_open = |at: &usize| {
            let Some(known) = &sets[*at] else { return false };
            sample().any(|one| one.set(*at).is_some_and(|set| !known.is_subset(set)))
        };
        let open: Vec<usize> = (0..rules.fields.len()).filter(is_open).collect();
        let is_alone = open.len() == 1 && step == 1;
        if is_alone || !is_halved {
            let steps = self.steps(rules).into_iter().filter(|to| leads_on(*to)).count();
            // How many steps packets may go on to that match a rule, all in all.
            let before = steps * sample().count();
            let told = open.iter().filter_map(|&at| {
                let sets = self.told(rules, at, &sets, &leads_on);
                let to = |one: &Conjunction| {
                    let least = one.set(at).and_then(IntervalSet::min).unwrap_or(0);
                    let of = sets.iter().find(|(set, _)| set.contains(least));
                    of.map_or(steps, |(_, to)| to.len())
                };
                let after: usize = sample().map(to).sum();
                let is_worth_it = sets.len() <= MOST_TOLD && 4 * after < 3 * before;
                (is_alone || is_worth_it).then_some((after, at, sets))
            });
            if let Some((_, at, sets)) = told.min_by_key(|told| (told.0, told.1)) {
                let sets = sets.into_iter().map(|(set, _)| set).collect();
                return Some(Parts { field: rules.fields[at], sets, is_halved });
            }
        }
        let halved = open.into_iter().filter_map(|at| {
            let (cost, halves) = halves(sets[at].as_ref()?, sample().map(|one| one.set(at)))?;
            Some((cost, at, halves))
        });
        let (_, at, halves) = halved.min_by_key(|half| (half.0, half.1))?;
        Some(Parts { field: rules.fields[at], sets: halves.into(), is_halved: true })
    }

    /// The numbers of a field as disjoint sets, for each the steps that packets may go on to that
    /// lead on.
    fn told(
        &self,
        rules: &Rules,
        field: usize,
        sets: &[Option<IntervalSet>],
        leads_on: impl Fn(StepId) -> bool,
    ) -> Vec<(IntervalSet, Vec<StepId>)> {
        let is_sure = |one: &Conjunction| {
            let covered = |(of, set): &(usize, IntervalSet)| {
                *of == field || sets[*of].as_ref().is_some_and(|known| known.is_subset(set))
            };
            one.is_exact && one.sets.iter().all(covered)
        };
        let some = self.some.iter().map(|&at| (at, is_sure(&rules.conjunctions[at])));
        let mut told: BTreeMap<Vec<StepId>, Vec<(u128, u128)>> = BTreeMap::new();
        for (set, mut steps) in rules.by(field, some, self.last) {
            steps.retain(|step| leads_on(*step));
            told.entry(steps).or_default().extend_from_slice(set.intervals());
        }
        let set = |(steps, all)| (IntervalSet::from_intervals(all), steps);
        told.into_iter().map(set).collect()
    }
}

/// Disjoint sets of a field that packets are partitioned by.
struct Parts {
    field: Field,
    sets: Vec<IntervalSet>,
    /// Whether that, or what was done before, leaves to each rule what it asks for.
    is_halved: bool,
}

/// What is known of a field in two parts, with the fewest rules on both sides that ask for these sets;
/// and how many that are.
fn halves<'a>(
    known: &IntervalSet,
    asked: impl Iterator<Item = Option<&'a IntervalSet>> + Clone,
) -> Option<(usize, [IntervalSet; 2])> {
    let (least, most) = (known.min()?, known.max()?);
    let ends = |set: &'a IntervalSet| {
        let ends = |&(low, high): &(u128, u128)| [Some(low), high.checked_add(1)];
        set.intervals().iter().flat_map(ends).flatten()
    };
    let mut edges: Vec<u128> = asked.clone().flatten().flat_map(ends).collect();
    edges.retain(|edge| least < *edge && *edge <= most);
    edges.sort_unstable();
    let edge = *edges.get(edges.len() / 2)?;
    let halves = [IntervalSet::range(0, edge - 1), IntervalSet::range(edge, u128::MAX)];
    let [below, above] = halves
        .each_ref()
        .map(|half| asked.clone().filter(|set| set.is_none_or(|set| set.intersects(half))).count());
    Some((below + above + below.max(above), halves))
}

/// By index of a list's fields, what is known of those that can be asked for.
fn known_sets(rules: &Rules, cube: &Cube) -> Vec<Option<IntervalSet>> {
    let known = |field: &Field| {
        asked(cube, *field, By::Rules).filter(|by| *by == By::Rules)?;
        match cube.get(*field) {
            Some(set) => Some(set.clone()),
            None if cube.fields().iter().any(|(known, _)| known.overlaps(*field)) => None,
            None => Some(IntervalSet::full(field.width)),
        }
    };
    rules.fields.iter().map(known).collect()
}

/// Whether all packets match a conjunction.
fn covers(one: &Conjunction, sets: &[Option<IntervalSet>]) -> bool {
    let holds = |(of, set): &(usize, IntervalSet)| {
        sets[*of].as_ref().is_some_and(|known| known.is_subset(set))
    };
    one.is_exact && one.sets.iter().all(holds)
}
