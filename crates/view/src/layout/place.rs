//! Horizontal places: vertices near what they are connected to, in their order, without overlap.

use super::layered::{Arc, Network};

/// Rounds of moving every layer towards its neighbours.
const ROUNDS: usize = 24;

/// Moves the vertices of every layer; their order stays.
pub(super) fn place(net: &mut Network) {
    let layers = net.layers.len();
    for round in 0..ROUNDS {
        let last = round + 4 >= ROUNDS;
        let (above, below) = if last { (true, true) } else { (round % 2 == 0, round % 2 == 1) };
        if round % 2 == 0 {
            (0..layers).for_each(|r| settle(net, r, above, below));
        } else {
            (0..layers).rev().for_each(|r| settle(net, r, above, below));
        }
    }
    align(net);
}

/// Puts vertices exactly below the one that they continue, where there is room.
fn align(net: &mut Network) {
    for r in 1..net.layers.len() {
        for i in 0..net.layers[r].len() {
            let layer = &net.layers[r];
            let v = layer[i];
            let [arc] = net.up[v][..] else { continue };
            if net.down[arc.other].len() != 1 {
                continue;
            }
            let at = net.x[arc.other] + arc.there - arc.here;
            let left = i.checked_sub(1).map(|l| layer[l]);
            let free = |v: usize, w: usize, gap: f64| gap >= net.separation(v, w);
            let right = layer.get(i + 1).copied();
            if left.is_none_or(|l| free(l, v, at - net.x[l]))
                && right.is_none_or(|w| free(v, w, net.x[w] - at))
            {
                net.x[v] = at;
            }
        }
    }
}

/// Finds the least squares places of a layer: each vertex wants the mean of where its arcs would
/// be upright, and keeps its distance from its neighbours.
fn settle(net: &mut Network, r: usize, above: bool, below: bool) {
    let layer = &net.layers[r];
    let mut offset = 0.0;
    // Blocks of vertices that touch: sum of weighted wishes, sum of weights, members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(layer.len());
    let mut offsets = Vec::with_capacity(layer.len());
    for (i, &v) in layer.iter().enumerate() {
        if i > 0 {
            offset += net.separation(layer[i - 1], v);
        }
        offsets.push(offset);
        let (wish, weight) = wish(net, v, above, below);
        let mut block = ((wish - offset) * weight, weight, 1);
        while let Some(&(sum, weight, members)) = blocks.last()
            && sum / weight >= block.0 / block.1
        {
            block = (block.0 + sum, block.1 + weight, block.2 + members);
            blocks.pop();
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|&(sum, weight, n)| std::iter::repeat_n(sum / weight, n));
    let places: Vec<f64> = places.zip(&offsets).map(|(at, offset)| at + offset).collect();
    for (i, at) in places.into_iter().enumerate() {
        let v = net.layers[r][i];
        net.x[v] = at;
    }
}

/// Where a vertex would like its left edge, and how much.
fn wish(net: &Network, v: usize, above: bool, below: bool) -> (f64, f64) {
    let up = if above { &net.up[v][..] } else { &[] };
    let down = if below { &net.down[v][..] } else { &[] };
    let (mut sum, mut weight) = (0.0, 0.0);
    for Arc { other, here, there, weight: w } in up.iter().chain(down).chain(&net.beside[v]) {
        sum += w * (net.x[*other] + there - here);
        weight += w;
    }
    if weight > 0.0 { (sum / weight, weight) } else { (net.x[v], 0.01) }
}
