//! The order of boxes within their layers: few crossings.

use super::layered::Network;

/// Sweeps over the layers of small graphs and of large ones; the best order met counts.
const SWEEPS: [usize; 2] = [24, 6];
/// Above so many vertices, neighbours are not exchanged one by one.
const SMALL: usize = 4000;

/// Orders every layer of the network.
pub(super) fn order(net: &mut Network) {
    for r in 0..net.layers.len() {
        net.spread(r);
    }
    let mut best = net.layers.clone();
    let mut fewest = crossings(net);
    for sweep in 0..SWEEPS[usize::from(net.len() > SMALL)] {
        if fewest == 0 && sweep > 1 {
            break;
        }
        let layers = net.layers.len();
        if sweep % 2 == 0 {
            (0..layers).for_each(|r| sort(net, r, true));
        } else {
            (0..layers).rev().for_each(|r| sort(net, r, false));
        }
        if net.len() <= SMALL {
            exchange(net);
        }
        let found = crossings(net);
        if found < fewest {
            (fewest, best) = (found, net.layers.clone());
        }
    }
    net.layers = best;
    for r in 0..net.layers.len() {
        net.spread(r);
    }
}

/// Sorts a layer by the mean place of each vertex's neighbours in the layer above or below.
/// Vertices without any stay where they are.
fn sort(net: &mut Network, r: usize, above: bool) {
    if net.fixed[r] {
        return;
    }
    let mean = |v: usize| {
        let arcs = if above { &net.up[v] } else { &net.down[v] };
        let places = arcs.iter().chain(&net.beside[v]).map(|a| net.x[a.other] + a.there - a.here);
        let n = (arcs.len() + net.beside[v].len()) as f64;
        (n > 0.0).then(|| places.sum::<f64>() / n + net.width[v] / 2.0)
    };
    let mut keyed: Vec<(f64, usize)> =
        net.layers[r].iter().filter_map(|&v| mean(v).map(|m| (m, v))).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sorted = keyed.into_iter().map(|(_, v)| v);
    let layer = net.layers[r]
        .iter()
        .map(|&v| if mean(v).is_some() { sorted.next().unwrap_or(v) } else { v })
        .collect();
    net.layers[r] = layer;
    net.spread(r);
}

/// Exchanges neighbours in a layer where that saves crossings.
fn exchange(net: &mut Network) {
    for _ in 0..4 {
        let mut better = false;
        for r in (0..net.layers.len()).filter(|&r| !net.fixed[r]).collect::<Vec<_>>() {
            for i in 1..net.layers[r].len() {
                let (a, b) = (net.layers[r][i - 1], net.layers[r][i]);
                if pair(net, a, b) > pair(net, b, a) {
                    net.layers[r].swap(i - 1, i);
                    better = true;
                }
            }
            net.spread(r);
        }
        if !better {
            break;
        }
    }
}

/// Crossings between the arcs of two neighbours, `a` standing left of `b`.
fn pair(net: &Network, a: usize, b: usize) -> usize {
    let count = |a: &[super::layered::Arc], b: &[super::layered::Arc]| {
        let end = |arc: &super::layered::Arc| net.x[arc.other] + arc.there;
        a.iter().map(|p| b.iter().filter(|q| end(q) < end(p)).count()).sum::<usize>()
    };
    // What a lane stands beside pulls it too.
    let strain = |left: usize, right: usize| {
        let wrong = |arcs: &[super::layered::Arc], other: usize, is_left: bool| {
            let far = |arc: &&super::layered::Arc| {
                arc.other != other && (net.x[arc.other] > net.x[other]) == is_left
            };
            arcs.iter().filter(far).count()
        };
        wrong(&net.beside[left], right, true) + wrong(&net.beside[right], left, false)
    };
    count(&net.up[a], &net.up[b]) + count(&net.down[a], &net.down[b]) + strain(a, b)
}

/// Crossings of all arcs between neighbouring layers.
pub(super) fn crossings(net: &Network) -> usize {
    (1..net.layers.len()).map(|r| crossings_above(net, r)).sum()
}

fn crossings_above(net: &Network, r: usize) -> usize {
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for &v in &net.layers[r] {
        ends.extend(net.up[v].iter().map(|a| (net.x[a.other] + a.there, net.x[v] + a.here)));
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut lower: Vec<f64> = ends.iter().map(|e| e.1).collect();
    lower.sort_by(f64::total_cmp);
    lower.dedup();
    // Inversions, counted with a Fenwick tree over the lower ends.
    let mut tree = vec![0usize; lower.len() + 1];
    let mut total = 0;
    for (seen, &(_, x)) in ends.iter().enumerate() {
        let rank = lower.partition_point(|&l| l < x) + 1;
        let (mut at, mut not_after) = (rank, 0);
        while at > 0 {
            not_after += tree[at];
            at &= at - 1;
        }
        total += seen - not_after;
        let mut at = rank;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    total
}
