//! First-match rules against other such rules, or against a decision tree over their keys: by regions.
//!
//! A region is a box: what each key can be by itself. Of a list only those rules count there that meet it, up
//! to one that holds all of it. A tree cuts regions itself. For two lists they are cut in two until what is left of both
//! is the same rules, or few. So the effort is that of growing such a tree, or less where lists
//! are alike, however many rules there are.

use std::collections::HashMap;
use std::rc::Rc;

use ir::IntervalSet;
use ir::program::{Atom, TermId};

use super::decisions::{Decisions, Node, NodeRef};
use super::first_match::{Exhausted, FEW, Piece, Rules, SAMPLES, Sample, Space, inside, spend};

/// Intervals of a key that are kept of all regions that lead to one pair.
const MAX_UNION: usize = 1 << 12;

/// Rules that are left at a leaf, at most, where a tree decides what a list does.
const MANY: usize = 64;

/// Two targets that packets of some regions come to.
pub(crate) struct Meeting {
    /// By the one.
    pub(crate) a: NodeRef,
    /// By the other.
    pub(crate) b: NodeRef,
    /// What keys can be there, each by itself.
    pub(crate) within: Piece,
    /// Some of the regions.
    pub(crate) samples: Vec<Sample>,
}

/// Meetings by their targets.
pub(crate) struct Meetings {
    keys: usize,
    found: HashMap<(NodeRef, NodeRef), MeetingParts>,
    order: Vec<(NodeRef, NodeRef)>,
}

struct MeetingParts {
    within: Vec<Vec<(u128, u128)>>,
    samples: Vec<Sample>,
}

impl Meetings {
    pub(crate) fn new(space: &Space) -> Self {
        Self { keys: space.keys.len(), found: HashMap::new(), order: Vec::new() }
    }

    pub(crate) fn add(&mut self, a: NodeRef, b: NodeRef, piece: &Piece, before: [usize; 2]) {
        let of = self.found.entry((a, b)).or_insert_with(|| {
            self.order.push((a, b));
            MeetingParts { within: vec![Vec::new(); self.keys], samples: Vec::new() }
        });
        for (all, set) in of.within.iter_mut().zip(piece) {
            all.extend(set.intervals());
            if all.len() > 2 * MAX_UNION {
                *all = IntervalSet::from_intervals(std::mem::take(all)).intervals().to_vec();
                if let (true, [first, .., last]) = (all.len() > MAX_UNION, &all[..]) {
                    *all = vec![(first.0, last.1)];
                }
            }
        }
        if of.samples.len() < SAMPLES {
            of.samples.push(Sample { piece: piece.clone(), before });
        }
    }

    /// In the order in which they were met.
    pub(crate) fn all(mut self) -> Vec<Meeting> {
        let meeting = |(a, b)| {
            let of = self.found.remove(&(a, b))?;
            let within = of.within.into_iter().map(IntervalSet::from_intervals).collect();
            Some(Meeting { a, b, within, samples: of.samples })
        };
        self.order.into_iter().filter_map(meeting).collect()
    }
}

/// Whether a node asks for one of these keys alone.
pub(crate) fn asks(node: &Node, keys: &[TermId]) -> bool {
    matches!(node, Node::Test(Atom::Test(on, _), ..) | Node::Switch(on, ..) if keys.contains(on))
}

/// Every region of the keys in which a tree leads to one leaf and a list to one target; `false` if it is no tree that
/// decides what the list does, as many rules are left at a leaf.
pub(crate) fn walk(
    decisions: &Decisions,
    list: &Rules,
    tree: NodeRef,
    space: &Space,
    budget: &mut u64,
    mut sink: impl FnMut(&Piece, NodeRef, NodeRef),
) -> Result<bool, Exhausted> {
    let places: HashMap<TermId, usize> = space.keys.iter().copied().zip(0..).collect();
    let all: Rc<[u32]> = (0..list.len() as u32 - 1).collect();
    let mut waiting = vec![(tree, space.all.clone(), all)];
    while let Some((mut at, piece, rules)) = waiting.pop() {
        // Where keys lead that are in a set, and the rest of them.
        let (key, cases, otherwise) = loop {
            let asked = match decisions.node(at) {
                Node::Test(Atom::Test(on, set), yes, no) => {
                    places.get(on).map(|key| (*key, vec![(&**set, *yes)], *no))
                }
                Node::Switch(on, cases, otherwise) => places.get(on).map(|key| {
                    (*key, cases.iter().map(|(set, to)| (set, *to)).collect(), *otherwise)
                }),
                _ => None,
            };
            let Some((key, cases, otherwise)) = asked else { break (0, Vec::new(), at) };
            let met: Vec<(&IntervalSet, NodeRef)> =
                cases.into_iter().filter(|(set, _)| set.intersects(&piece[key])).collect();
            match met.first() {
                None => at = otherwise,
                Some((set, to)) if piece[key].is_subset(set) => at = *to,
                Some(_) => break (key, met, otherwise),
            }
        };
        if cases.is_empty() {
            spend(budget, 1 + rules.len() / 16)?;
            match list.only(&rules, &piece) {
                Some(rule) => sink(&piece, rule, otherwise),
                None if rules.len() > MANY => return Ok(false),
                None => {
                    list.walk(&rules, piece, budget, |piece, rule| sink(&piece, rule, otherwise))?;
                }
            }
            continue;
        }
        let mut rest = piece[key].clone();
        let mut parts = Vec::with_capacity(cases.len() + 1);
        for (set, to) in cases {
            parts.push((rest.intersect(set), to));
            rest = rest.subtract(set);
        }
        parts.push((rest, otherwise));
        for (part, to) in parts.into_iter().filter(|part| !part.0.is_empty()) {
            spend(budget, 1 + rules.len() / 16)?;
            let mut there = piece.clone();
            there[key] = part;
            let left = list.meeting(&rules, &there, key);
            waiting.push((to, there, left));
        }
    }
    Ok(true)
}

/// How two lists are cut: at which number of which key.
fn cut(lists: [(&Rules, &[u32]); 2], piece: &Piece) -> Option<(usize, u128)> {
    let count = lists[0].1.len() + lists[1].1.len();
    let mut best: Option<(usize, usize, u128)> = None;
    for (key, all) in piece.iter().enumerate() {
        let (least, most) = (all.min()?, all.max()?);
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for (low, high) in lists.iter().flat_map(|(list, some)| list.ends(some, key)) {
            lows.push(low);
            highs.push(high);
        }
        // Where rules begin or end: half of that on either side.
        let begin = lows.iter().copied().filter(|low| *low > least);
        let end = highs.iter().filter(|high| **high < most).map(|high| high + 1);
        let mut cuts: Vec<u128> = begin.chain(end).collect();
        if cuts.is_empty() {
            continue;
        }
        let middle = cuts.len() / 2;
        let cut = *cuts.select_nth_unstable(middle).1;
        let untested = count - lows.len();
        let below = untested + lows.iter().filter(|low| **low < cut).count();
        let from = untested + highs.iter().filter(|high| **high >= cut).count();
        let worst = below.max(from);
        if best.is_none_or(|best| worst < best.0) {
            best = Some((worst, key, cut));
        }
    }
    let (worst, key, cut) = best?;
    // A cut that hardly separates rules is none.
    (worst < count - count / 16).then_some((key, cut))
}

/// Whether a region is one for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// Its packets come to its targets.
    Exact,
    /// Rules that are left of both lists in one order count as regions, whatever earlier ones leave of them.
    Near,
}

/// Every region in which two lists lead to one target each, of those that are wanted.
pub(crate) fn meet(
    [a, b]: [&Rules; 2],
    space: &Space,
    exactness: Exactness,
    budget: &mut u64,
    wanted: impl Fn(NodeRef, NodeRef) -> bool,
    mut sink: impl FnMut(&Piece, NodeRef, NodeRef, [usize; 2]),
) -> Result<(), Exhausted> {
    let mut sink_if = |piece: &Piece, x: NodeRef, y: NodeRef, before| {
        if wanted(x, y) {
            sink(piece, x, y, before);
        }
    };
    let numbers = a.numbers(b);
    let all = |list: &Rules| -> Rc<[u32]> { (0..list.len() as u32 - 1).collect() };
    let mut waiting = vec![(space.all.clone(), [all(a), all(b)])];
    while let Some((piece, [here, there])) = waiting.pop() {
        spend(budget, 1 + (here.len() + there.len()) / 16)?;
        if let (Some(x), Some(y)) = (a.only(&here, &piece), b.only(&there, &piece)) {
            sink_if(&piece, x, y, [0, 0]);
            continue;
        }
        let same = |(x, y): (&u32, &u32)| numbers[0][*x as usize] == numbers[1][*y as usize];
        if here.len() > FEW && here.len() == there.len() && here.iter().zip(there.iter()).all(same)
        {
            let targets = |at: usize| {
                let of = |list: &Rules, some: &[u32]| {
                    list.target(some.get(at).map_or(list.len() - 1, |at| *at as usize))
                };
                (of(a, &here), of(b, &there))
            };
            let is_whole = here.last().is_some_and(|&last| a.holds(last, &piece));
            let all = 0..here.len() + usize::from(!is_whole);
            let counts = |at: &usize| wanted(targets(*at).0, targets(*at).1);
            let mut unlike = all.filter(counts).peekable();
            if exactness == Exactness::Near || unlike.peek().is_none() {
                for at in unlike {
                    let (x, y) = targets(at);
                    let (part, before) = match here.get(at) {
                        Some(&rule) => {
                            (inside(&piece, a.cube(rule)), [rule as usize, there[at] as usize])
                        }
                        None => (Some(piece.clone()), [a.len() - 1, b.len() - 1]),
                    };
                    if let Some(part) = part {
                        sink_if(&part, x, y, before);
                    }
                }
                continue;
            }
        }
        let few = here.len() + there.len() <= FEW;
        let cut = if few { None } else { cut([(a, &here), (b, &there)], &piece) };
        let Some((key, cut)) = cut else {
            let mut parts = Vec::new();
            a.walk(&here, piece, budget, |part, x| parts.push((part, x)))?;
            for (part, x) in parts {
                b.walk(&there, part, budget, |part, y| sink_if(&part, x, y, [0, 0]))?;
            }
            continue;
        };
        for half in [IntervalSet::range(0, cut - 1), IntervalSet::range(cut, u128::MAX)] {
            let part = piece[key].intersect(&half);
            if part.is_empty() {
                continue;
            }
            let mut narrower = piece.clone();
            narrower[key] = part;
            let left = [a.meeting(&here, &narrower, key), b.meeting(&there, &narrower, key)];
            waiting.push((narrower, left));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ir::program::Term;
    use ir::{Base, Field};
    use proptest::prelude::*;

    use super::super::decisions::{Classify, Cube, Outcome};
    use super::*;

    /// For some keys, a least number and how many more.
    type Ranges = Vec<(u8, u128, u128)>;

    /// Numbers that a key can be.
    const MOST: u128 = 15;

    fn classify(rules: Vec<(Ranges, NodeRef)>) -> Classify {
        let cube = |c: Ranges| {
            let mut cube: Cube = Vec::new();
            for (key, low, length) in c {
                if cube.iter().all(|(k, _)| *k != key) {
                    cube.push((key, IntervalSet::range(low, (low + length).min(MOST))));
                }
            }
            cube
        };
        let rules = rules.into_iter().map(|(c, target)| (cube(c), target)).collect();
        Classify { keys: vec![TermId(0), TermId(1)], rules, otherwise: 0 }
    }

    fn pairs(a: &Rules, b: &Rules, space: &Space) -> HashSet<(NodeRef, NodeRef)> {
        let mut found = HashSet::new();
        let sink = |_: &Piece, a, b, _: [usize; 2]| _ = found.insert((a, b));
        meet([a, b], space, Exactness::Near, &mut 100_000, |_, _| true, sink)
            .expect("it is little work");
        found
    }

    fn lists() -> impl Strategy<Value = (Classify, Classify)> {
        let cube = proptest::collection::vec((0u8..2, 0u128..=MOST, 0u128..9), 0..3);
        let rules = proptest::collection::vec((cube, 0u32..3), 0..24);
        (rules.clone(), rules, any::<u32>()).prop_map(|(a, b, mix)| {
            // Mostly the same rules, so that what they share plays a part.
            let mut other = a.clone();
            for (i, rule) in b.into_iter().enumerate() {
                match mix >> i & 3 {
                    0 if i < other.len() => drop(other.remove(i)),
                    1 => other.insert(i.min(other.len()), rule),
                    _ => {}
                }
            }
            (classify(a), classify(other))
        })
    }

    fn all(low: u128) -> impl Iterator<Item = [u128; 2]> {
        (low..=MOST).flat_map(|x| (0..=MOST).map(move |y| [x, y]))
    }

    fn is_in(piece: &Piece, keys: [u128; 2]) -> bool {
        piece[0].contains(keys[0]) && piece[1].contains(keys[1])
    }

    proptest! {
        #[test]
        fn regions_are_those_of_all_packets((a, b) in lists(), low in 0u128..4) {
            let known = |key: TermId| IntervalSet::range(if key.0 == 0 { low } else { 0 }, MOST);
            let space = Space::new([&a, &b], known);
            let (ra, rb) = (space.rules(&a), space.rules(&b));
            let found = pairs(&ra, &rb, &space);
            let mut regions = Vec::new();
            let sink = |piece: &Piece, a, b, _: [usize; 2]| regions.push((piece.clone(), a, b));
            meet([&ra, &rb], &space, Exactness::Exact, &mut 100_000, |a, b| a != b, sink).expect("it is little work");
            for keys in all(low) {
                let (x, y) = (a.first(&keys), b.first(&keys));
                prop_assert!(found.contains(&(x, y)), "{x} and {y} at {keys:?}");
                let mut at = regions.iter().filter(|region| is_in(&region.0, keys));
                prop_assert_eq!(at.next().map(|(_, a, b)| (*a, *b)), (x != y).then_some((x, y)));
                prop_assert!(at.next().is_none());
            }
        }

        #[test]
        fn a_tree_is_where_its_leaves_are((a, _) in lists(), cuts in proptest::collection::vec((0usize..2, 1..=MOST, 0usize..8), 1..20)) {
            let mut decisions = Decisions::default();
            let mut key = |bit| decisions.arena.make(Term::Input(Field::bits(Base::Data, bit, 4)));
            let (keys, other) = ([key(0), key(4)], key(8));
            let list = Classify { keys: keys.to_vec(), ..a };
            let range = IntervalSet::range(0, MOST);
            let nowhere = decisions.add(Node::Exit(Rc::new(Outcome::gone())));
            // What is no key is not asked here: such steps are leaves.
            let leaf = |number: u128| Atom::Test(other, IntervalSet::single(number).into());
            let mut nodes = vec![nowhere];
            nodes.extend((0..4).map(|number| {
                decisions.add(Node::Test(leaf(number), nowhere, nowhere))
            }));
            let mut tree = nodes[0];
            for (key, cut, to) in cuts {
                let below = Atom::Test(keys[key], IntervalSet::range(0, cut - 1).into());
                let to = nodes[to % nodes.len()];
                tree = decisions.add(Node::Test(below, to, tree));
                nodes.push(tree);
            }
            let leads = |numbers: [u128; 2]| {
                let mut at = tree;
                while let Node::Test(Atom::Test(on, set), yes, no) = decisions.node(at)
                    && let Some(key) = keys.iter().position(|key| key == on)
                {
                    at = if set.contains(numbers[key]) { *yes } else { *no };
                }
                at
            };
            let space = Space::new([&list], |_| range.clone());
            let rules = space.rules(&list);
            let mut regions = Vec::new();
            let decides = walk(&decisions, &rules, tree, &space, &mut 1_000_000, |piece, rule, leaf| {
                regions.push((piece.clone(), rule, leaf));
            }).expect("it is little work");
            prop_assert!(decides);
            for numbers in all(0) {
                let at: Vec<_> = regions.iter().filter(|region| is_in(&region.0, numbers)).collect();
                let [(_, rule, leaf)] = at[..] else { panic!("{} regions at {numbers:?}", at.len()) };
                prop_assert_eq!((*rule, *leaf), (list.first(&numbers), leads(numbers)));
            }
        }
    }

    #[test]
    fn two_rules_that_changed_places_are_all_that_differs() {
        let mut rules: Vec<(Ranges, NodeRef)> =
            (0..64).map(|i| (vec![(0, i % 8, 0), (1, i / 8, 0)], 1 + (i % 3) as u32)).collect();
        let one = classify(rules.clone());
        rules.swap(3, 50);
        let other = classify(rules);
        let space = Space::new([&one], |_| IntervalSet::range(0, MOST));
        // They exclude one another.
        assert!(
            pairs(&space.rules(&one), &space.rules(&other), &space).iter().all(|(a, b)| a == b)
        );
    }

    #[test]
    fn a_shadowed_rule_may_go_and_another_may_not() {
        let wide = (vec![(0, 0, 4)], 1);
        let narrow = (vec![(0, 1, 1)], 2);
        let last = (vec![(1, 3, 0)], 3);
        let all = classify(vec![wide.clone(), narrow.clone(), last.clone()]);
        let less = classify(vec![wide.clone(), last.clone()]);
        let swapped = classify(vec![narrow, wide, last]);
        let space = Space::new([&all], |_| IntervalSet::range(0, MOST));
        let differ = |a: &Classify, b: &Classify| {
            pairs(&space.rules(a), &space.rules(b), &space).iter().any(|(a, b)| a != b)
        };
        assert!(!differ(&all, &less) && !differ(&less, &all));
        assert!(differ(&all, &swapped) && differ(&swapped, &less));
    }
}
