//! Priorities that keep what is there: of entries, their order counts and not the numbers.
//!
//! A compiler numbers priorities without gaps, so that one rule more shifts all behind it. Here each of its priorities, a *level*,
//! is given a number anew: as many entries as possible keep the one that they have on the switch, and the others
//! lie evenly between. Where nothing is there, that leaves gaps for what will come.

use std::collections::{BTreeMap, HashMap};

use codegen::openflow::codec::Stats;
use codegen::openflow::{Bits, FlowEntry};

/// One more than the greatest priority.
const END: i64 = 1 << 16;

/// Gives entries other priorities in the same order, near to those of what is there. Those of table 0 stay: there they meet entries
/// of others first.
pub(super) fn keep(entries: &mut [FlowEntry], there: &[Stats]) {
    let mut old: HashMap<(u8, &[Bits]), u16> = HashMap::new();
    for Stats { flow, .. } in there {
        old.insert((flow.table, &flow.when), flow.priority);
    }
    let mut tables: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.flow.table > 0) {
        tables.entry(entry.flow.table).or_default().push(at);
    }
    for all in tables.values() {
        let mut levels: Vec<u16> = all.iter().map(|&at| entries[at].flow.priority).collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        let level = |priority: u16| levels.partition_point(|other| *other > priority);
        // By level and number that is there: how many entries would keep it.
        let mut kept: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        for flow in all.iter().map(|&at| &entries[at].flow) {
            if let Some(&number) = old.get(&(flow.table, &flow.when[..])) {
                *kept.entry((level(flow.priority), number)).or_default() += 1;
            }
        }
        let numbers = numbers(levels.len(), &best(levels.len(), &kept));
        let new: Vec<u16> =
            all.iter().map(|&at| numbers[level(entries[at].flow.priority)]).collect();
        for (&at, number) in all.iter().zip(new) {
            entries[at].flow.priority = number;
        }
    }
}

/// Levels with numbers of which most entries keep theirs: later levels have lower numbers, and there is one for each level
/// between.
fn best(levels: usize, kept: &BTreeMap<(usize, u16), usize>) -> Vec<(usize, u16)> {
    // With one subtracted for each level before, numbers may be alike, and must not rise.
    let shifted = |level: usize, number: u16| i64::from(number) + level as i64;
    let fits = |&(level, number): &(usize, u16)| {
        (levels as i64 - 1..END).contains(&shifted(level, number))
    };
    let all: Vec<((usize, u16), usize)> =
        kept.iter().map(|(at, count)| (*at, *count)).filter(|(at, _)| fits(at)).collect();
    // By shifted number from the greatest on: the best sum that ends at it or above, and where. A tree of prefixes.
    let mut tree: Vec<(usize, Option<usize>)> = vec![(0, None); END as usize + 1];
    let mut before: Vec<Option<usize>> = Vec::with_capacity(all.len());
    let mut sums: Vec<usize> = Vec::with_capacity(all.len());
    let mut begin = 0;
    while begin < all.len() {
        // Candidates of one level exclude each other.
        let level = all[begin].0.0;
        let end = begin + all[begin..].partition_point(|of| of.0.0 == level);
        for &((level, number), count) in &all[begin..end] {
            let mut at = (END - shifted(level, number)) as usize;
            let mut found = (0, None);
            while at > 0 {
                found = found.max(tree[at]);
                at &= at - 1;
            }
            before.push(found.1);
            sums.push(found.0 + count);
        }
        for (candidate, &((level, number), _)) in all[begin..end].iter().enumerate() {
            let mut at = (END - shifted(level, number)) as usize;
            while at < tree.len() {
                tree[at] = tree[at].max((sums[begin + candidate], Some(begin + candidate)));
                at += at & at.wrapping_neg();
            }
        }
        begin = end;
    }
    let mut chosen = Vec::new();
    let mut next = (0..all.len()).max_by_key(|&at| sums[at]);
    while let Some(at) = next {
        chosen.push(all[at].0);
        next = before[at];
    }
    chosen.reverse();
    chosen
}

/// A number for each level: those that are given, and others evenly between.
fn numbers(levels: usize, given: &[(usize, u16)]) -> Vec<u16> {
    let given = given.iter().map(|&(level, number)| (level as i64, i64::from(number)));
    let ends = given.chain([(levels as i64, -1)]);
    let mut numbers = Vec::with_capacity(levels);
    let (mut last, mut from) = (-1, END);
    for (level, number) in ends {
        let (steps, room) = (level - last, from - number);
        for step in 1..=steps {
            numbers.push(u16::try_from(from - room * step / steps).unwrap_or(0));
        }
        (last, from) = (level, number);
    }
    numbers.truncate(levels);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(levels: usize, there: &[(usize, u16, usize)]) -> Vec<u16> {
        let kept = there.iter().map(|&(level, number, count)| ((level, number), count)).collect();
        let numbers = numbers(levels, &best(levels, &kept));
        assert_eq!(numbers.len(), levels);
        assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
        numbers
    }

    #[test]
    fn what_is_new_leaves_gaps() {
        assert_eq!(order(3, &[]), [49152, 32768, 16384]);
        assert!(order(0, &[]).is_empty());
        assert_eq!(order(1 << 16, &[]).last(), Some(&0));
    }

    #[test]
    fn what_is_there_is_kept() {
        assert_eq!(order(3, &[(0, 300, 1), (1, 200, 1), (2, 100, 1)]), [300, 200, 100]);
        // One more between.
        assert_eq!(order(4, &[(0, 300, 1), (2, 200, 1), (3, 100, 1)]), [300, 250, 200, 100]);
        // No room between: the fewer move.
        assert_eq!(order(4, &[(0, 3, 1), (2, 2, 5), (3, 1, 5)])[2..], [2, 1]);
        // Turned around.
        assert_eq!(order(2, &[(0, 7, 1), (1, 9, 2)])[1], 9);
        // No room below, and above.
        assert_eq!(order(3, &[(0, 1, 1)])[2..].len(), 1);
        assert_eq!(order(3, &[(2, u16::MAX, 1)]).len(), 3);
    }

    #[test]
    fn order_holds_whatever_is_there() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..3000 {
            let levels = random.usize(1..30);
            let most = [40, 300, u16::MAX][random.usize(..3)];
            let count = random.usize(..60);
            let all: Vec<_> = (0..count)
                .map(|_| (random.usize(..levels), random.u16(..=most), random.usize(1..9)))
                .collect();
            order(levels, &all);
        }
    }
}
