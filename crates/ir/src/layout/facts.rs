//! What the conditions on the paths to each step of a program say of the packet's headers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use net::Header as Mark;

use super::{Evidence, Layout, Start};
use crate::field::{eth, meta};
use crate::model::CompareOp;
use crate::program::numbers::Range;
use crate::program::{Atom, ClassifyRule, End, Program, Step, StepId, Term, TermId};
use crate::{Base, Field, IntervalSet};

/// Wider numbers tell no header from another.
const WIDEST: u16 = 64;
/// Sets of more intervals are forgotten.
const MOST_INTERVALS: usize = 64;

/// The numbers that parts of the packet as it came in can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// By first bit and width.
    bits: BTreeMap<(u16, u16), Rc<IntervalSet>>,
    /// Where headers are marked, as [`Term::Position`].
    marks: [Option<Rc<IntervalSet>>; 3],
    /// How many bytes of data there are.
    length: Option<Rc<IntervalSet>>,
    /// Numbers that are no greater than that.
    within: BTreeSet<TermId>,
}

/// What a term is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum About {
    Bits(u16, u16),
    Mark(Mark),
    Length,
}

impl About {
    fn of(program: &Program, term: TermId) -> Option<Self> {
        let field = match program.terms.get(term.0 as usize)? {
            Term::Position(header) => return Some(Self::Mark(*header)),
            Term::Input(field) if *field == meta::LEN => return Some(Self::Length),
            Term::Input(field) => *field,
            Term::Slice { of, low, width } => {
                let Term::Input(field) = program.terms.get(of.0 as usize)? else { return None };
                let (low, width) = (u16::from(*low), u16::from(*width));
                let before = field.width.checked_sub(low + width).filter(|_| width > 0)?;
                Field::bits(field.base, field.offset + before, width)
            }
            _ => return None,
        };
        let fits = field.base == Base::Data && field.width <= WIDEST;
        fits.then_some(Self::Bits(field.offset, field.width))
    }

    fn width(self) -> u16 {
        match self {
            Self::Bits(_, width) => width,
            Self::Mark(_) | Self::Length => 32,
        }
    }
}

impl Facts {
    /// Where a header is marked, in bytes from the first data byte, if that is known.
    pub fn position(&self, header: Mark) -> Option<i32> {
        let at = self.marks[header as usize].as_ref()?.as_single()?;
        (at != 0x8000_0000).then_some(at as u32 as i32)
    }

    /// What is known if a number is in a set besides.
    pub fn with(mut self, program: &Program, term: TermId, set: &IntervalSet) -> Self {
        if let Some(about) = About::of(program, term) {
            self.learn(about, set);
        }
        self
    }

    /// The least number of bytes of data that there are. What lies before may be read.
    pub fn least_length(&self, program: &Program) -> u32 {
        let tested = self.length.as_ref().and_then(|set| IntervalSet::min(set)).unwrap_or(0);
        let compared = self.within.iter().filter_map(|term| self.range(program, *term));
        let least = compared.fold(tested as i128, |least, (low, _)| least.max(low));
        u32::try_from(least).unwrap_or(u32::MAX)
    }

    /// What numbers a term can be.
    pub fn range(&self, program: &Program, term: TermId) -> Range {
        let known = |term: TermId| {
            let set = self.known(About::of(program, term)?)?;
            Some((
                i128::try_from(IntervalSet::min(set)?).ok()?,
                i128::try_from(IntervalSet::max(set)?).ok()?,
            ))
        };
        program.numbers_where(term, known).range
    }

    fn known(&self, about: About) -> Option<&Rc<IntervalSet>> {
        match about {
            About::Bits(offset, width) => self.bits.get(&(offset, width)),
            About::Mark(header) => self.marks[header as usize].as_ref(),
            About::Length => self.length.as_ref(),
        }
    }

    fn learn(&mut self, about: About, set: &IntervalSet) {
        let set = match self.known(about) {
            Some(known) => known.intersect(set),
            None if set.intervals().len() > MOST_INTERVALS || set.is_full(about.width()) => return,
            None => set.clone(),
        };
        let set = Rc::new(set);
        match about {
            About::Bits(offset, width) => drop(self.bits.insert((offset, width), set)),
            About::Mark(header) => self.marks[header as usize] = Some(set),
            About::Length => self.length = Some(set),
        }
    }

    /// One number is no greater than another.
    fn learn_order(&mut self, program: &Program, (low, high): (TermId, TermId)) {
        let (least, most) = (self.range(program, low), self.range(program, high));
        let about = |term| About::of(program, term);
        if let (Some(about), Some((least @ 0.., _))) = (about(high), least) {
            self.learn(
                about,
                &IntervalSet::range(least as u128, u128::MAX >> (128 - about.width())),
            );
        }
        if let (Some(about), Some((0.., most))) = (about(low), most) {
            self.learn(about, &IntervalSet::range(0, most as u128));
        }
        if about(high) == Some(About::Length) {
            self.within.insert(low);
        }
    }

    /// What holds of packets of both.
    fn join(&mut self, other: &Self) {
        fn either(known: &mut Rc<IntervalSet>, other: &Rc<IntervalSet>) -> bool {
            if known != other {
                *known = Rc::new(known.union(other));
            }
            known.intervals().len() <= MOST_INTERVALS
        }
        self.bits.retain(|at, known| other.bits.get(at).is_some_and(|other| either(known, other)));
        self.within.retain(|term| other.within.contains(term));
        let others = other.marks.iter().chain([&other.length]);
        for (known, other) in self.marks.iter_mut().chain([&mut self.length]).zip(others) {
            if let Some(set) = known
                && !other.as_ref().is_some_and(|other| either(set, other))
            {
                *known = None;
            }
        }
    }

    fn is_contradiction(&self) -> bool {
        let sets = self.bits.values().chain(self.marks.iter().chain([&self.length]).flatten());
        sets.into_iter().any(|set| set.is_empty())
    }
}

impl Evidence for Facts {
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet> {
        let (start, width) = (u16::try_from(start).ok()?, u16::try_from(width).ok()?);
        if let Some(set) = self.bits.get(&(start, width)) {
            return Some((**set).clone());
        }
        let (end, mut at, mut value) = (start.checked_add(width)?, start, 0);
        while at < end {
            // Part of a wider run, or a run that is one of several.
            let runs = self.bits.range(..=(at, u16::MAX)).rev();
            let run =
                runs.take_while(|((from, _), _)| at - from < WIDEST).find_map(|(run, set)| {
                    let until = (run.0 + run.1).min(end);
                    let part = (until > at).then(|| part(set, *run, (at, until - at)))?;
                    Some((part?, until))
                });
            let (set, until) = run?;
            if (at, until) == (start, end) {
                return Some(set);
            }
            value = value << (until - at) | set.as_single()?;
            at = until;
        }
        Some(IntervalSet::single(value))
    }
}

/// The numbers of a part of some bits; `None` if nothing is known of them.
fn part(set: &IntervalSet, all: (u16, u16), part: (u16, u16)) -> Option<IntervalSet> {
    let behind = all.0 + all.1 - part.0 - part.1;
    let mask = u128::MAX >> (128 - part.1);
    let shifted = set.intervals().iter().map(|(low, high)| (low >> behind, high >> behind));
    let same = |(low, high): (u128, u128)| {
        (low & !mask == high & !mask).then_some((low & mask, high & mask))
    };
    Some(IntervalSet::from_intervals(shifted.map(same).collect::<Option<_>>()?))
}

/// The layouts of the packets that come to the steps of a program.
#[derive(Clone, Debug)]
pub struct Layouts {
    facts: Vec<Option<Facts>>,
    layouts: Vec<Layout>,
    begins: Begins,
}

/// Where headers begin, as far as what is known of packets does not say so.
#[derive(Clone, Debug)]
struct Begins {
    /// Where the exits that a step leads to mark them, by step.
    marks: Vec<Marks>,
    /// Where most network headers are.
    usual: Option<i32>,
    /// Whether the program asks for the type of Ethernet frames.
    asks_type: bool,
}

impl Begins {
    /// Where a step's packets have their network header, if that is known.
    fn network(&self, step: usize, facts: &Facts) -> Option<i32> {
        let marked = self.marks[step].network.filter(|at| *at >= 0);
        facts.position(Mark::Network).or(marked)
    }

    fn layout(&self, step: usize, facts: &Facts) -> Layout {
        let network = self.network(step, facts).or(self.usual);
        let transport = facts.position(Mark::Transport).or(self.marks[step].transport);
        let mut start = Start::of(facts, network, transport);
        if self.asks_type && start.frame.is_none() && network.is_none() {
            start.frame = Some(0);
        }
        Layout::parse(facts, start)
    }
}

impl Layouts {
    /// What holds on all paths to each step. Where nothing on them says where the network header is,
    /// it is taken to be where the exits that they lead to mark it, else where most do.
    pub fn of(program: &Program) -> Self {
        let facts = facts(program);
        let asks_type = program.steps.iter().flat_map(Step::terms).any(|term| {
            let about = About::of(program, term);
            about == Some(About::Bits(eth::TYPE.offset, eth::TYPE.width))
        });
        let mut begins = Begins { marks: marks(program), usual: None, asks_type };
        let mut votes: BTreeMap<i32, usize> = BTreeMap::new();
        for (step, _) in program.exits() {
            let step = step.0 as usize;
            if let Some(at) = facts[step].as_ref().and_then(|facts| begins.network(step, facts)) {
                *votes.entry(at).or_default() += 1;
            }
        }
        begins.usual = votes.into_iter().max_by_key(|&(at, n)| (n, -at)).map(|vote| vote.0);
        let layout = |(step, facts): (usize, &Option<Facts>)| {
            facts.as_ref().map_or_else(Layout::default, |facts| begins.layout(step, facts))
        };
        let layouts = facts.iter().enumerate().map(layout).collect();
        Self { facts, layouts, begins }
    }

    /// Whether the program asks for the type of Ethernet frames.
    pub fn asks_type(&self) -> bool {
        self.begins.asks_type
    }

    /// The layout of packets that come to a step.
    pub fn at(&self, step: StepId) -> &Layout {
        &self.layouts[step.0 as usize]
    }

    /// The layout of those of them of which more is known.
    pub fn narrowed(&self, step: StepId, facts: &Facts) -> Layout {
        self.begins.layout(step.0 as usize, facts)
    }

    /// What is known of packets that come to a step; `None` if none do.
    pub fn facts(&self, step: StepId) -> Option<&Facts> {
        self.facts[step.0 as usize].as_ref()
    }
}

/// What is known at each step that packets come to.
fn facts(program: &Program) -> Vec<Option<Facts>> {
    let mut at: Vec<Option<Facts>> = vec![None; program.steps.len()];
    if let Some(first) = at.first_mut() {
        *first = Some(Facts::default());
    }
    let mut lists = Lists::default();
    for (index, step) in program.steps.iter().enumerate() {
        let Some(known) = at[index].clone() else { continue };
        let mut go = |to: StepId, learnt: &[(TermId, IntervalSet)], orders: &[_]| {
            let mut known = known.clone();
            for (term, set) in learnt {
                if let Some(about) = About::of(program, *term) {
                    known.learn(about, set);
                }
            }
            for order in orders {
                known.learn_order(program, *order);
            }
            if known.is_contradiction() {
                return;
            }
            match at.get_mut(to.0 as usize) {
                Some(Some(there)) => there.join(&known),
                Some(there) => *there = Some(known),
                None => {}
            }
        };
        let rest = |term: TermId, set: &IntervalSet| {
            let about = About::of(program, term);
            about.map(|about| (term, set.complement(about.width())))
        };
        match step {
            Step::Test { atom: Atom::Test(term, set), yes, no, .. } => {
                go(*yes, &[(*term, (**set).clone())], &[]);
                go(*no, rest(*term, set).as_slice(), &[]);
            }
            Step::Test { atom: Atom::Compare(op, a, b), yes, no, .. } => {
                go(*yes, &[], &orders(*op, true, (*a, *b)));
                go(*no, &[], &orders(*op, false, (*a, *b)));
            }
            Step::Switch { on, cases, otherwise, .. } => {
                for (set, to) in cases {
                    go(*to, &[(*on, set.clone())], &[]);
                }
                let all = IntervalSet::union_of(cases.iter().map(|case| &case.0));
                go(*otherwise, rest(*on, &all).as_slice(), &[]);
            }
            Step::Classify { keys, rules, arms, otherwise, .. } => {
                let sets = lists.arms(program, keys, rules, arms.len());
                for (arm, sets) in arms.iter().zip(sets) {
                    go(*arm, sets, &[]);
                }
                go(*otherwise, &[], &[]);
            }
            step => step.next().for_each(|to| go(to, &[], &[])),
        }
    }
    at
}

/// Which of two numbers is no greater than the other, if they compare so or do not.
fn orders(op: CompareOp, holds: bool, (a, b): (TermId, TermId)) -> Vec<(TermId, TermId)> {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    match (op, holds) {
        (Lt | Le, true) | (Gt | Ge, false) => vec![(a, b)],
        (Gt | Ge, true) | (Lt | Le, false) => vec![(b, a)],
        (Eq, true) | (Ne, false) => vec![(a, b), (b, a)],
        (Eq, false) | (Ne, true) => Vec::new(),
    }
}

/// What is known of packets that a list of rules sends to an arm.
type Arms = Vec<Vec<(TermId, IntervalSet)>>;

/// Lists of rules that have been looked at: steps share them.
#[derive(Default)]
struct Lists(HashMap<(*const ClassifyRule, Vec<TermId>), Arms>);

impl Lists {
    fn arms(
        &mut self,
        program: &Program,
        keys: &[TermId],
        rules: &std::sync::Arc<[ClassifyRule]>,
        arms: usize,
    ) -> &Arms {
        self.0.entry((rules.as_ptr(), keys.to_vec())).or_insert_with(|| {
            let narrow = |term: TermId| {
                let about = About::of(program, term);
                about.is_some_and(|about| about == About::Length || about.width() <= 16)
            };
            let mut all: Vec<Vec<Option<IntervalSet>>> = vec![Vec::new(); arms];
            for rule in rules.iter() {
                let Some(arm) = all.get_mut(rule.arm as usize) else { continue };
                for cube in rule.cubes.iter() {
                    let set = |key: usize| {
                        let in_cube = cube.iter().find(|(k, _)| usize::from(*k) == key)?;
                        narrow(keys[key]).then(|| in_cube.1.clone())
                    };
                    if arm.is_empty() {
                        *arm = (0..keys.len()).map(set).collect();
                        continue;
                    }
                    for (key, known) in arm.iter_mut().enumerate() {
                        let (Some(old), Some(more)) = (known.take(), set(key)) else { continue };
                        let both = if more.is_subset(&old) { old } else { old.union(&more) };
                        *known = Some(both).filter(|set| set.intervals().len() <= MOST_INTERVALS);
                    }
                }
            }
            let known = |arm: Vec<Option<IntervalSet>>| {
                keys.iter().copied().zip(arm).filter_map(|(key, set)| Some((key, set?))).collect()
            };
            all.into_iter().map(known).collect()
        })
    }
}

/// Where the exits that a step leads to mark headers, if those that do agree.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    network: Option<i32>,
    transport: Option<i32>,
}

fn marks(program: &Program) -> Vec<Marks> {
    use crate::program::Mark::At;
    // `None` where nothing is marked, `Some(None)` where exits differ.
    type Agreed = Option<Option<i32>>;
    let join = |a: Agreed, b: Agreed| match (a, b) {
        (Some(a), Some(b)) => Some(a.filter(|a| Some(*a) == b)),
        (a, b) => a.or(b),
    };
    let mut all: Vec<[Agreed; 2]> = vec![[None; 2]; program.steps.len()];
    for (index, step) in program.steps.iter().enumerate().rev() {
        all[index] = match step {
            Step::Exit(exit) if matches!(exit.end, End::Push { .. }) => {
                [Mark::Network, Mark::Transport].map(|header| {
                    let At(term) = exit.writes.marks[header as usize] else { return None };
                    let Term::Const(at) = program.terms.get(term.0 as usize)? else { return None };
                    i32::try_from(*at as i128).ok().filter(|at| *at >= 0).map(Some)
                })
            }
            step => step.next().fold([None; 2], |marks, to| {
                let other = all.get(to.0 as usize).copied().unwrap_or_default();
                [join(marks[0], other[0]), join(marks[1], other[1])]
            }),
        };
    }
    let marks = |[network, transport]: [Agreed; 2]| Marks {
        network: network.flatten(),
        transport: transport.flatten(),
    };
    all.into_iter().map(marks).collect()
}
