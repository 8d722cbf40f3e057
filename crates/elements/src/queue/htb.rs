//! Hierarchical token buckets (M. Devera, 2002): which of many classes sends next.
//!
//! Classes form trees. Each has two buckets: that of its rate, and that of its ceiling. A class is *blocked* while the
//! bucket of its ceiling is empty. Otherwise it *may send* while that of its rate is not, and *may borrow* while it is. A
//! leaf sends if it may send, or if an ancestor may send and every class below that may borrow: this ancestor lends.

use crate::token_bucket::{BucketLevel, BucketShape, Burst};

/// Rates of a class, in bytes a second, and what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    pub rate: u64,
    pub ceil: u64,
    /// Bytes that may come at once, at the rate and at the ceiling.
    pub burst: u64,
    pub ceil_burst: u64,
    /// Of leaves that borrow or send alike, those with the lowest number come first.
    pub priority: u8,
    /// Bytes that a leaf sends in its turn.
    pub quantum: u32,
}

/// A quantum is at least so large, so that few turns suffice for any packet.
pub(crate) const LEAST_QUANTUM: u32 = 1000;

/// A bucket with its rate.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    shape: BucketShape,
    level: BucketLevel,
}

/// What a class has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub packets: u64,
    pub bytes: u64,
    /// Packets that a class below sent on this one's account, and that this one sent or let through on another's.
    pub lent: u64,
    pub borrowed: u64,
}

struct Class {
    parent: Option<usize>,
    rates: Rates,
    tokens: Bucket,
    ceil_tokens: Bucket,
    counts: Counts,
}

/// What a class may do now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Blocked,
    MayBorrow,
    MaySend,
}

struct Leaf {
    class: usize,
    /// What is left of its turn on each level; negative after a packet that was longer.
    deficits: Vec<i64>,
}

/// See the module. Classes and leaves have numbers in the order in which they were added.
#[derive(Default)]
pub(crate) struct Hierarchy {
    classes: Vec<Class>,
    leaves: Vec<Leaf>,
    /// For each level and priority, the leaf whose turn it is.
    turns: Vec<[usize; PRIORITIES]>,
    /// Leaves that may send; empty but in [`Hierarchy::next`].
    candidates: Vec<Candidate>,
}

struct Candidate {
    rank: Rank,
    leaf: usize,
    lender: usize,
    length: u64,
}

/// Priorities are below.
pub(crate) const PRIORITIES: usize = 8;

/// Trees are at most so high.
pub(crate) const LEVELS: usize = 8;

/// A leaf that may send: the level of whoever accounts for it, which is 0 if it is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    level: usize,
    priority: u8,
}

/// What a bucket of a class holds, to be moved.
pub(crate) type Held = [BucketLevel; 2];

impl Bucket {
    fn new(rate: u64, burst: u64) -> Self {
        let shape = Burst::Tokens(burst).at(rate);
        Self { shape, level: shape.full(0) }
    }

    fn fill(&mut self, now: u64) {
        self.level = self.shape.fill(self.level, now);
    }

    fn take(&mut self, bytes: u64) {
        self.level = self.shape.take(self.level, bytes);
    }

    fn has_token(&self) -> bool {
        self.shape.has_token(self.level)
    }

    /// When it has a token.
    fn time(&self) -> u64 {
        self.shape.time_of(self.level, 1)
    }
}

impl Class {
    fn mode(&self) -> Mode {
        match (self.ceil_tokens.has_token(), self.tokens.has_token()) {
            (false, _) => Mode::Blocked,
            (true, true) => Mode::MaySend,
            (true, false) => Mode::MayBorrow,
        }
    }
}

impl Hierarchy {
    /// Adds a class below another. Which are leaves is known once all are there: see [`Hierarchy::finish`].
    pub(crate) fn add(&mut self, parent: Option<usize>, rates: Rates) -> usize {
        self.classes.push(Class {
            parent,
            rates,
            tokens: Bucket::new(rates.rate, rates.burst),
            ceil_tokens: Bucket::new(rates.ceil, rates.ceil_burst),
            counts: Counts::default(),
        });
        self.classes.len() - 1
    }

    /// Makes leaves of the classes that have no children.
    pub(crate) fn finish(&mut self) {
        let is_leaf = |class: &usize| self.classes.iter().all(|c| c.parent != Some(*class));
        let leaf = |class| Leaf { class, deficits: vec![0; LEVELS + 1] };
        self.leaves = (0..self.classes.len()).filter(is_leaf).map(leaf).collect();
        self.turns = vec![[0; PRIORITIES]; LEVELS + 1];
    }

    /// The classes of the leaves.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.leaves.iter().map(|leaf| leaf.class)
    }

    pub(crate) fn rates(&self, class: usize) -> Rates {
        self.classes[class].rates
    }

    pub(crate) fn counts(&self, class: usize) -> Counts {
        self.classes[class].counts
    }

    /// Changes the rates of a class; what its buckets hold stays, as far as it fits.
    pub(crate) fn change(&mut self, class: usize, rates: Rates) {
        let class = &mut self.classes[class];
        class.rates = rates;
        class.tokens.shape = Burst::Tokens(rates.burst).at(rates.rate);
        class.ceil_tokens.shape = Burst::Tokens(rates.ceil_burst).at(rates.ceil);
    }

    /// What a class holds and has done.
    pub(crate) fn held(&self, class: usize) -> (Held, Counts) {
        let class = &self.classes[class];
        ([class.tokens.level, class.ceil_tokens.level], class.counts)
    }

    /// Takes over what a class held and had done.
    pub(crate) fn restore(&mut self, class: usize, held: Held, counts: Counts) {
        let [tokens, ceil] = held;
        let class = &mut self.classes[class];
        (class.tokens.level, class.ceil_tokens.level, class.counts) = (tokens, ceil, counts);
    }

    /// How many classes are above.
    pub(crate) fn depth(&self, class: usize) -> usize {
        let above = |class: &usize| self.classes[*class].parent;
        std::iter::successors(above(&class), above).count()
    }

    /// The class that accounts for what a leaf sends now, if it may send.
    fn lender(&self, leaf: usize) -> Option<usize> {
        let mut at = self.leaves[leaf].class;
        loop {
            match self.classes[at].mode() {
                Mode::Blocked => return None,
                Mode::MaySend => return Some(at),
                Mode::MayBorrow => at = self.classes[at].parent?,
            }
        }
    }

    /// The level on which a leaf sends on this class's account: lower ones come first.
    fn level(&self, leaf: usize, lender: usize) -> usize {
        if lender == self.leaves[leaf].class { 0 } else { LEVELS - self.depth(lender) }
    }

    /// The leaf that sends now, of those that have a packet: `ready` gives its length.
    /// What it sends counts from then on.
    pub(crate) fn next(
        &mut self,
        now: u64,
        mut ready: impl FnMut(usize) -> Option<u64>,
    ) -> Option<usize> {
        for class in &mut self.classes {
            class.tokens.fill(now);
            class.ceil_tokens.fill(now);
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for leaf in 0..self.leaves.len() {
            if let Some(lender) = self.lender(leaf)
                && let Some(length) = ready(leaf)
            {
                let priority = self.classes[self.leaves[leaf].class].rates.priority;
                let rank = Rank { level: self.level(leaf, lender), priority };
                candidates.push(Candidate { rank, leaf, lender, length });
            }
        }
        let sends = candidates.iter().map(|candidate| candidate.rank).min().map(|first| {
            candidates.retain(|candidate| candidate.rank == first);
            self.turn(first, &candidates)
        });
        self.candidates = candidates;
        sends
    }

    /// The leaf that sends next by deficit round robin, of some of one rank; at least one.
    fn turn(&mut self, rank: Rank, candidates: &[Candidate]) -> usize {
        let turn = &mut self.turns[rank.level][usize::from(rank.priority)];
        let mut place = candidates.partition_point(|c| c.leaf < *turn);
        loop {
            let Candidate { leaf, lender, length, .. } = candidates[place % candidates.len()];
            let Leaf { class, deficits } = &mut self.leaves[leaf];
            let deficit = &mut deficits[rank.level];
            if *deficit <= 0 {
                *deficit += i64::from(self.classes[*class].rates.quantum);
            }
            if *deficit > 0 {
                *deficit -= length as i64;
                *turn = if *deficit > 0 { leaf } else { leaf + 1 };
                self.charge(leaf, lender, length);
                return leaf;
            }
            place += 1;
        }
    }

    fn charge(&mut self, leaf: usize, lender: usize, bytes: u64) {
        let (mut at, mut is_borrowed) = (Some(self.leaves[leaf].class), true);
        while let Some(number) = at {
            let class = &mut self.classes[number];
            if number == lender {
                is_borrowed = false;
                class.counts.lent += u64::from(number != self.leaves[leaf].class);
            }
            if is_borrowed {
                class.counts.borrowed += 1;
            } else {
                class.tokens.take(bytes);
            }
            class.ceil_tokens.take(bytes);
            class.counts.packets += 1;
            class.counts.bytes += bytes;
            at = class.parent;
        }
    }

    /// When the first of the leaves that may not send now may; counted from the last call of [`Hierarchy::next`].
    pub(crate) fn time_of_next(&self) -> Option<u64> {
        let blocked = (0..self.leaves.len()).filter(|leaf| self.lender(*leaf).is_none());
        blocked.map(|leaf| self.time_of(self.leaves[leaf].class)).min()
    }

    /// When a class may send, on its own account or another's.
    fn time_of(&self, class: usize) -> u64 {
        let Class { parent, tokens, ceil_tokens, .. } = &self.classes[class];
        let borrows = parent.map_or(u64::MAX, |parent| self.time_of(parent));
        tokens.time().min(borrows).max(ceil_tokens.time())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The rules as one would write them down: exact levels, negative in debt, and all classes looked at anew.
    struct Reference {
        parents: Vec<Option<usize>>,
        rates: Vec<Rates>,
        leaves: Vec<usize>,
        /// Billionths of a byte at the rate and at the ceiling.
        levels: Vec<[i128; 2]>,
        filled: u64,
        /// By leaf and level.
        deficits: HashMap<(usize, usize), i64>,
        /// By level and priority.
        turns: HashMap<(usize, u8), usize>,
    }

    const BYTE: i128 = 1_000_000_000;

    impl Reference {
        fn new(parents: &[Option<usize>], rates: &[Rates]) -> Self {
            let has_child = |class: &usize| parents.contains(&Some(*class));
            let full = |r: &Rates| [i128::from(r.burst) * BYTE, i128::from(r.ceil_burst) * BYTE];
            Self {
                parents: parents.to_vec(),
                rates: rates.to_vec(),
                leaves: (0..parents.len()).filter(|class| !has_child(class)).collect(),
                levels: rates.iter().map(full).collect(),
                filled: 0,
                deficits: HashMap::new(),
                turns: HashMap::new(),
            }
        }

        fn path(&self, class: usize) -> Vec<usize> {
            match self.parents[class] {
                None => vec![class],
                Some(parent) => [vec![class], self.path(parent)].concat(),
            }
        }

        fn next(&mut self, now: u64, heads: &[Option<u64>]) -> Option<usize> {
            let passed = i128::from(now - self.filled);
            self.filled = now;
            for (level, r) in self.levels.iter_mut().zip(&self.rates) {
                level[0] = (level[0] + passed * i128::from(r.rate)).min(i128::from(r.burst) * BYTE);
                level[1] =
                    (level[1] + passed * i128::from(r.ceil)).min(i128::from(r.ceil_burst) * BYTE);
            }
            // Who may send, and how many classes from the leaf on only borrow.
            let mut found = Vec::new();
            for (leaf, &class) in self.leaves.iter().enumerate() {
                let Some(length) = heads[leaf] else { continue };
                let path = self.path(class);
                let Some(borrowers) = path.iter().position(|&c| self.levels[c][0] >= BYTE) else {
                    continue;
                };
                if path[..=borrowers].iter().any(|&c| self.levels[c][1] < BYTE) {
                    continue;
                }
                let above = path.len() - 1 - borrowers;
                let level = if borrowers == 0 { 0 } else { LEVELS - above };
                found.push((level, self.rates[class].priority, leaf, borrowers, length));
            }
            let &(level, priority, ..) = found.iter().min_by_key(|(l, p, ..)| (*l, *p))?;
            let turn = self.turns.entry((level, priority)).or_insert(0);
            for leaf in (*turn..).map(|place| place % self.leaves.len()) {
                let of = |f: &&(usize, u8, usize, usize, u64)| {
                    (f.0, f.1, f.2) == (level, priority, leaf)
                };
                let Some(&(.., borrowers, length)) = found.iter().find(of) else { continue };
                let class = self.leaves[leaf];
                let deficit = self.deficits.entry((leaf, level)).or_insert(0);
                if *deficit <= 0 {
                    *deficit += i64::from(self.rates[class].quantum);
                }
                if *deficit <= 0 {
                    continue;
                }
                *deficit -= length as i64;
                *turn = if *deficit <= 0 { leaf + 1 } else { leaf };
                for (place, class) in self.path(class).into_iter().enumerate() {
                    let bytes = i128::from(length) * BYTE;
                    self.levels[class][0] -= if place >= borrowers { bytes } else { 0 };
                    self.levels[class][1] -= bytes;
                }
                return Some(leaf);
            }
            None
        }
    }

    fn hierarchy(parents: &[Option<usize>], rates: &[Rates]) -> Hierarchy {
        let mut hierarchy = Hierarchy::default();
        for (parent, rates) in parents.iter().zip(rates) {
            hierarchy.add(*parent, *rates);
        }
        hierarchy.finish();
        hierarchy
    }

    fn some_rates() -> impl Strategy<Value = Rates> {
        let (rate, more) = (1_000u64..1_000_000, 0u64..1_000_000);
        let burst = 1u64..5_000;
        (rate, more, burst.clone(), burst, 0u8..3, 1000u32..3000).prop_map(
            |(rate, more, burst, ceil_burst, priority, quantum)| Rates {
                rate,
                ceil: rate + more,
                burst,
                ceil_burst,
                priority,
                quantum,
            },
        )
    }

    proptest! {
        #[test]
        fn leaves_send_in_the_order_of_the_rules(
            tree in proptest::collection::vec((0usize..4, some_rates()), 1..9),
            steps in proptest::collection::vec(
                (0u64..5_000_000, proptest::collection::vec(proptest::option::of(60u64..1500), 9)),
                1..200,
            ),
        ) {
            let parent = |(at, (back, _)): (usize, &(usize, Rates))| at.checked_sub(back + 1);
            let parents: Vec<Option<usize>> = tree.iter().enumerate().map(parent).collect();
            let rates: Vec<Rates> = tree.iter().map(|(_, rates)| *rates).collect();
            let mut tree = hierarchy(&parents, &rates);
            let mut reference = Reference::new(&parents, &rates);
            prop_assert_eq!(tree.leaves().collect::<Vec<_>>(), reference.leaves.clone());
            let mut now = 1_000_000_000;
            for (wait, heads) in steps {
                now += wait;
                let sends = tree.next(now, |leaf| heads[leaf]);
                prop_assert_eq!(sends, reference.next(now, &heads));
                // When nothing may be sent, something may at the time that is stated, and not before.
                let (all, everywhere) = (|_| Some(100), [Some(100); 9]);
                while let Some(leaf) = tree.next(now, all) {
                    prop_assert_eq!(Some(leaf), reference.next(now, &everywhere));
                }
                prop_assert_eq!(reference.next(now, &everywhere), None);
                let time = tree.time_of_next().expect("all leaves are blocked");
                prop_assert!(time > now);
                prop_assert_eq!(tree.next(time - 1, all), None);
                prop_assert_eq!(reference.next(time - 1, &everywhere), None);
                let sends = tree.next(time, all);
                prop_assert!(sends.is_some());
                prop_assert_eq!(sends, reference.next(time, &everywhere));
                now = time;
            }
        }
    }

    const MBPS: u64 = 125_000;

    fn rates(rate: u64, ceil: u64, priority: u8, quantum: u32) -> Rates {
        let (rate, ceil) = (rate * MBPS, ceil * MBPS);
        Rates { rate, ceil, burst: rate / 100, ceil_burst: ceil / 100, priority, quantum }
    }

    /// Bytes that each leaf sends in a second, in the long run, of those that have packets of 1000 bytes; in units of
    /// what one megabit a second is.
    fn sent(tree: &mut Hierarchy, busy: &[bool]) -> Vec<f64> {
        let (begin, end) = (2_000_000_000, 3_000_000_000);
        let mut sent = vec![0; busy.len()];
        let mut now = 1_000_000_000;
        while now < end {
            match tree.next(now, |leaf| busy[leaf].then_some(1000)) {
                Some(leaf) if now >= begin => sent[leaf] += 1000,
                Some(_) => {}
                None => now = tree.time_of_next().unwrap_or(end).max(now + 1),
            }
        }
        sent.iter().map(|bytes| f64::from(*bytes) / MBPS as f64).collect()
    }

    fn near(found: &[f64], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= expected / 100.0, "{found} for {expected}");
        }
    }

    #[test]
    fn each_class_has_its_rate_within_a_percent_and_spare_rate_goes_by_priority_and_quantum() {
        let below = |leaves: [Rates; 3]| {
            let parents = [None, Some(0), Some(0), Some(0)];
            let [one, two, three] = leaves;
            hierarchy(&parents, &[rates(10, 10, 0, 1000), one, two, three])
        };
        let alike = || below([rates(2, 10, 1, 3000), rates(3, 10, 1, 1500), rates(5, 10, 1, 1500)]);
        near(&sent(&mut alike(), &[true; 3]), &[2.0, 3.0, 5.0]);
        // 5 are left over, and are shared as 2 : 1.
        let (third, idle) = (5.0 / 3.0, [true, true, false]);
        near(&sent(&mut alike(), &idle), &[2.0 + 2.0 * third, 3.0 + third, 0.0]);
        let ranked =
            || below([rates(2, 10, 1, 1500), rates(3, 10, 0, 1500), rates(5, 10, 1, 1500)]);
        near(&sent(&mut ranked(), &idle), &[2.0, 8.0, 0.0]);
        near(&sent(&mut ranked(), &[true; 3]), &[2.0, 3.0, 5.0]);
        let capped = || below([rates(2, 10, 1, 1500), rates(3, 4, 0, 1500), rates(5, 10, 1, 1500)]);
        near(&sent(&mut capped(), &idle), &[6.0, 4.0, 0.0]);
        near(&sent(&mut capped(), &[false, true, false]), &[0.0, 4.0, 0.0]);
        let mut changed = alike();
        changed.change(3, rates(1, 1, 1, 1500));
        near(&sent(&mut changed, &[false, false, true]), &[0.0, 0.0, 1.0]);
    }

    #[test]
    fn rate_is_borrowed_from_the_nearest_ancestor_that_has_some() {
        // A link of two customers with two services each.
        let parents = [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)];
        let tree = || {
            let service = |rate| rates(rate, 10, 0, 1500);
            let classes = [10, 6, 4, 4, 2, 3, 1].map(service);
            hierarchy(&parents, &classes)
        };
        near(&sent(&mut tree(), &[true; 4]), &[4.0, 2.0, 3.0, 1.0]);
        // What a service leaves goes to the other of the same customer.
        near(&sent(&mut tree(), &[true, false, true, true]), &[6.0, 0.0, 3.0, 1.0]);
        near(&sent(&mut tree(), &[true, false, false, false]), &[10.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_burst_comes_at_once() {
        let burst = |burst, ceil_burst| Rates { burst, ceil_burst, ..rates(1, 2, 0, 1500) };
        for (of, most) in [(burst(10_000, 20_000), 20), (burst(10_000, 5_000), 5)] {
            // The parent lends what the rate's bucket does not hold.
            let mut tree = hierarchy(&[None, Some(0)], &[burst(50_000, 50_000), of]);
            for now in [5_000_000_000, 6_000_000_000] {
                let at_once = std::iter::from_fn(|| tree.next(now, |_| Some(1000))).count();
                assert_eq!(at_once, most);
            }
        }
    }
}
