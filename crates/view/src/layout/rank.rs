//! Which layer each box stands in.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// The layers of a directed graph of `n` boxes, cycles allowed: most arcs lead to a later layer,
/// and `backward` lists the others. Layers count from 0 without gaps.
pub(super) struct Ranks {
    pub(super) rank: Vec<usize>,
    pub(super) backward: Vec<bool>,
}

pub(super) fn assign(n: usize, arcs: &[(usize, usize)]) -> Ranks {
    let backward = feedback(n, arcs);
    let forward: Vec<(usize, usize)> = arcs
        .iter()
        .zip(&backward)
        .filter(|((from, to), _)| from != to)
        .map(|(&(from, to), &back)| if back { (to, from) } else { (from, to) })
        .collect();
    let (next, previous) = adjacency(n, &forward);
    let order = topological(n, &next, &previous);
    let mut rank = vec![0; n];
    for &v in &order {
        rank[v] = previous[v].iter().map(|&p| rank[p] + 1).max().unwrap_or(0);
    }
    // The longest path leaves boxes far above what they lead to; those that lead to more than
    // comes to them sink, and then the others rise to meet what they come from.
    for _ in 0..4 {
        for &v in order.iter().rev() {
            let latest = next[v].iter().map(|&s| rank[s] - 1).min();
            if let Some(latest) = latest
                && next[v].len() > previous[v].len()
            {
                rank[v] = latest;
            }
        }
        for &v in &order {
            let earliest = previous[v].iter().map(|&p| rank[p] + 1).max();
            if let Some(earliest) = earliest
                && previous[v].len() >= next[v].len()
            {
                rank[v] = earliest;
            }
        }
    }
    let used: BTreeSet<usize> = rank.iter().copied().collect();
    let used: Vec<usize> = used.into_iter().collect();
    for r in &mut rank {
        *r = used.partition_point(|u| u < r);
    }
    Ranks { rank, backward }
}

fn adjacency(n: usize, arcs: &[(usize, usize)]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let (mut next, mut previous) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for &(from, to) in arcs {
        next[from].push(to);
        previous[to].push(from);
    }
    (next, previous)
}

/// The boxes of an acyclic graph, each after all that lead to it.
fn topological(n: usize, next: &[Vec<usize>], previous: &[Vec<usize>]) -> Vec<usize> {
    let mut waits: Vec<usize> = previous.iter().map(Vec::len).collect();
    let mut ready: VecDeque<usize> = (0..n).filter(|&v| waits[v] == 0).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(v) = ready.pop_front() {
        order.push(v);
        for &s in &next[v] {
            waits[s] -= 1;
            if waits[s] == 0 {
                ready.push_back(s);
            }
        }
    }
    debug_assert_eq!(order.len(), n, "a cycle was left");
    order
}

/// Which arcs to turn around so that no cycle is left: few, and only such as lie on cycles.
/// In each strongly connected component, boxes are lined up greedily (Eades, Lin and Smyth,
/// 1993); of equals, the one nearest to a source comes first.
fn feedback(n: usize, arcs: &[(usize, usize)]) -> Vec<bool> {
    let (next, previous) = adjacency(n, arcs);
    let component = components(n, &next);
    let distance = distances(n, &next, &previous);
    let mut place = vec![0usize; n];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); n];
    for v in 0..n {
        members[component[v]].push(v);
    }
    for members in members.iter().filter(|m| m.len() > 1) {
        line_up(members, &component, &next, &previous, &distance, &mut place);
    }
    arcs.iter()
        .map(|&(from, to)| component[from] == component[to] && place[from] >= place[to])
        .collect()
}

/// Gives each member of a strongly connected component its place in a line.
fn line_up(
    members: &[usize],
    component: &[usize],
    next: &[Vec<usize>],
    previous: &[Vec<usize>],
    distance: &[usize],
    place: &mut [usize],
) {
    let own = component[members[0]];
    let inside = |v: &&usize| component[**v] == own;
    let mut left: BTreeSet<usize> = members.iter().copied().collect();
    let mut degree = std::collections::BTreeMap::new();
    for &v in members {
        let outgoing = next[v].iter().filter(inside).filter(|&&s| s != v).count() as isize;
        let incoming = previous[v].iter().filter(inside).filter(|&&p| p != v).count() as isize;
        degree.insert(v, (incoming, outgoing));
    }
    // Sinks come last, then sources first, then whoever gives the most beyond what it takes.
    let key = |v: usize, (incoming, outgoing): (isize, isize)| {
        let class = if outgoing == 0 {
            0
        } else if incoming == 0 {
            1
        } else {
            2
        };
        (class, Reverse(outgoing - incoming), distance[v], v)
    };
    let mut queue: BTreeSet<_> = degree.iter().map(|(&v, &d)| key(v, d)).collect();
    let (mut first, mut last) = (0, members.len() - 1);
    while let Some((class, _, _, v)) = queue.pop_first() {
        left.remove(&v);
        if class == 0 {
            place[v] = last;
            last = last.saturating_sub(1);
        } else {
            place[v] = first;
            first += 1;
        }
        let neighbours = next[v].iter().map(|&s| (s, true));
        for (w, after) in neighbours.chain(previous[v].iter().map(|&p| (p, false))) {
            if w == v || !left.contains(&w) {
                continue;
            }
            let d = degree.get_mut(&w).expect("members have degrees");
            queue.remove(&key(w, *d));
            *(if after { &mut d.0 } else { &mut d.1 }) -= 1;
            queue.insert(key(w, *d));
        }
    }
}

/// Arcs from the nearest box that nothing leads to; what none of them reaches counts from the
/// first box declared.
fn distances(n: usize, next: &[Vec<usize>], previous: &[Vec<usize>]) -> Vec<usize> {
    let mut distance = vec![usize::MAX; n];
    let mut queue: VecDeque<usize> = (0..n).filter(|&v| previous[v].is_empty()).collect();
    queue.iter().for_each(|&v| distance[v] = 0);
    for start in 0..n {
        while let Some(v) = queue.pop_front() {
            for &s in &next[v] {
                if distance[s] == usize::MAX {
                    distance[s] = distance[v] + 1;
                    queue.push_back(s);
                }
            }
        }
        if distance[start] == usize::MAX {
            distance[start] = 0;
            queue.push_back(start);
        }
    }
    distance
}

/// The strongly connected component of each box (Tarjan, without recursion).
fn components(n: usize, next: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; n], vec![0; n]);
    let (mut component, mut count, mut counter) = (vec![NEW; n], 0, 0);
    let mut stack = Vec::new();
    for root in 0..n {
        let mut work = if index[root] == NEW { vec![(root, 0)] } else { Vec::new() };
        while let Some((v, at)) = work.pop() {
            if at == 0 {
                (index[v], low[v]) = (counter, counter);
                counter += 1;
                stack.push(v);
            }
            if let Some(&s) = next[v].get(at) {
                work.push((v, at + 1));
                if index[s] == NEW {
                    work.push((s, 0));
                } else if component[s] == NEW {
                    low[v] = low[v].min(index[s]);
                }
                continue;
            }
            if low[v] == index[v] {
                while let Some(member) = stack.pop() {
                    component[member] = count;
                    if member == v {
                        break;
                    }
                }
                count += 1;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: usize, arcs: &[(usize, usize)]) -> Vec<usize> {
        assign(n, arcs).rank
    }

    #[test]
    fn arcs_lead_to_later_layers() {
        assert_eq!(ranks(4, &[(0, 1), (1, 2), (0, 2), (2, 3)]), [0, 1, 2, 3]);
        assert_eq!(ranks(0, &[]), [0usize; 0]);
    }

    #[test]
    fn a_source_stands_right_above_what_it_feeds() {
        assert_eq!(ranks(4, &[(0, 1), (1, 2), (3, 2)]), [0, 1, 2, 1]);
    }

    #[test]
    fn only_arcs_on_cycles_are_turned_around() {
        // A source feeds two boxes that exchange packets with a third.
        let arcs = [(0, 1), (1, 3), (3, 1), (4, 2), (2, 3), (3, 2), (3, 5)];
        let found = assign(6, &arcs);
        let back: Vec<_> =
            arcs.iter().zip(&found.backward).filter(|(_, b)| **b).map(|(a, _)| *a).collect();
        assert_eq!(back, [(3, 1), (3, 2)]);
        assert_eq!(found.rank[1], found.rank[2]);
    }

    #[test]
    fn a_loop_to_itself_and_a_ring_are_laid_out() {
        assert_eq!(assign(1, &[(0, 0)]).backward, [true]);
        let ring: Vec<_> = (0..1000).map(|v| (v, (v + 1) % 1000)).collect();
        let found = assign(1000, &ring);
        assert_eq!(found.backward.iter().filter(|b| **b).count(), 1);
        assert_eq!(found.rank.iter().max(), Some(&999));
    }
}
