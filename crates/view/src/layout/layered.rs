//! A flat graph in layers, from top to bottom (after Sugiyama, Tagawa and Toda, 1981).

use super::order;
use super::place;
use super::rank;
use super::{Point, Route, Segment};

/// A box to be placed.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Where arcs come in, from the left edge.
    pub(super) inputs: Vec<f64>,
    /// Where arcs go out, from the left edge.
    pub(super) outputs: Vec<f64>,
    /// Ports of the surrounding box stand in the first or the last layer, in their order.
    pub(super) edge: Option<Edge>,
}

/// A side of the surrounding box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Top,
    Bottom,
}

/// From an output of an item to an input of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
}

/// Where everything came to stand.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Upper left corners of the items.
    pub(super) corners: Vec<Point>,
    /// The route of each link.
    pub(super) routes: Vec<Route>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// One end of an arc between neighbouring layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) other: usize,
    /// Offset of the end at this vertex.
    pub(super) here: f64,
    /// Offset of the end at the other.
    pub(super) there: f64,
    /// How straight it should be.
    pub(super) weight: f64,
}

/// The layered graph: items, and the bends of arcs that span several layers.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) width: Vec<f64>,
    pub(super) rank: Vec<usize>,
    /// Left edge.
    pub(super) x: Vec<f64>,
    pub(super) up: Vec<Vec<Arc>>,
    pub(super) down: Vec<Vec<Arc>>,
    /// What a vertex should stand next to in its own layer.
    pub(super) beside: Vec<Vec<Arc>>,
    pub(super) layers: Vec<Vec<usize>>,
    /// Layers whose order is given.
    pub(super) fixed: Vec<bool>,
    items: usize,
}

/// Space between boxes of a layer.
const GAP: f64 = 26.0;
/// Space around bends.
const LANE: f64 = 12.0;
/// Least space between layers.
const LAYER_GAP: f64 = 38.0;
/// Space between a box and the edge of the surrounding one.
pub(super) const MARGIN: f64 = 16.0;
/// Bends in all; the longest arcs of a huge graph are drawn without.
const MAX_BENDS: usize = 100_000;

impl Network {
    pub(super) fn len(&self) -> usize {
        self.width.len()
    }

    fn add(&mut self, width: f64, rank: usize) -> usize {
        self.width.push(width);
        self.rank.push(rank);
        self.x.push(0.0);
        self.up.push(Vec::new());
        self.down.push(Vec::new());
        self.beside.push(Vec::new());
        self.len() - 1
    }

    fn connect(&mut self, (upper, at): (usize, f64), (lower, to): (usize, f64)) {
        let bends = usize::from(upper >= self.items) + usize::from(lower >= self.items);
        let weight = [1.0, 2.0, 8.0][bends];
        self.down[upper].push(Arc { other: lower, here: at, there: to, weight });
        self.up[lower].push(Arc { other: upper, here: to, there: at, weight });
    }

    /// Where a vertex has one arc below and the other has one above, they should stand in line.
    fn straighten(&mut self) {
        for v in 0..self.len() {
            if let [arc] = self.down[v][..]
                && self.up[arc.other].len() == 1
            {
                let weight = arc.weight.max(6.0);
                self.down[v][0].weight = weight;
                self.up[arc.other][0].weight = weight;
            }
        }
    }

    /// The least distance between the left edges of neighbours.
    pub(super) fn separation(&self, left: usize, right: usize) -> f64 {
        let gap = if left < self.items && right < self.items { GAP } else { LANE };
        self.width[left] + gap
    }

    /// Places a layer's vertices side by side, around 0.
    pub(super) fn spread(&mut self, r: usize) {
        let mut x = 0.0;
        let layer = std::mem::take(&mut self.layers[r]);
        for (i, &v) in layer.iter().enumerate() {
            if i > 0 {
                x += self.separation(layer[i - 1], v);
            }
            self.x[v] = x;
        }
        if let Some(&last) = layer.last() {
            let middle = (self.x[last] + self.width[last]) / 2.0;
            layer.iter().for_each(|&v| self.x[v] -= middle);
        }
        self.layers[r] = layer;
    }
}

/// The vertices that a link passes, and whether it goes back up.
struct Chain {
    bends: Vec<usize>,
    backward: bool,
}

/// Lays a graph out.
pub(super) fn layered(items: &[Item], links: &[Link]) -> Placed {
    let arcs: Vec<(usize, usize)> = links.iter().map(|l| (l.from.0, l.to.0)).collect();
    let mut ranks = rank::assign(items.len(), &arcs);
    let (layers, fixed) = edges_apart(items, &mut ranks.rank);
    let mut net = Network { items: items.len(), ..Network::default() };
    for (item, &rank) in items.iter().zip(&ranks.rank) {
        net.add(item.width, rank);
    }
    let chains = chains(&mut net, items, links, &ranks.backward);
    net.straighten();
    net.fixed = fixed;
    net.layers = discovered(&net, layers);
    order::order(&mut net);
    place::place(&mut net);
    drawn(&net, items, links, &chains)
}

/// Gives ports of the surrounding box layers of their own; the number of layers, and which are in
/// order already.
fn edges_apart(items: &[Item], rank: &mut [usize]) -> (usize, Vec<bool>) {
    let top = items.iter().any(|i| i.edge == Some(Edge::Top));
    let inner = |(i, _): &(&Item, &usize)| i.edge.is_none();
    let first = items.iter().zip(rank.iter()).filter(inner).map(|(_, r)| *r).min().unwrap_or(0);
    for (item, r) in items.iter().zip(rank.iter_mut()) {
        if item.edge.is_none() {
            *r = *r - first + usize::from(top);
        }
    }
    let last = items.iter().zip(rank.iter()).filter(inner).map(|(_, r)| *r + 1).max();
    let last = last.unwrap_or(usize::from(top));
    for (item, r) in items.iter().zip(rank.iter_mut()) {
        match item.edge {
            Some(Edge::Top) => *r = 0,
            Some(Edge::Bottom) => *r = last,
            None => {}
        }
    }
    let layers = rank.iter().map(|r| r + 1).max().unwrap_or(0);
    let mut fixed = vec![false; layers];
    for (item, &r) in items.iter().zip(rank.iter()) {
        fixed[r] |= item.edge.is_some();
    }
    (layers, fixed)
}

/// Breaks links into arcs between neighbouring layers.
fn chains(net: &mut Network, items: &[Item], links: &[Link], backward: &[bool]) -> Vec<Chain> {
    let reach = |l: &Link| net.rank[l.from.0].abs_diff(net.rank[l.to.0]);
    let mut reaches: Vec<usize> = links.iter().map(reach).collect();
    reaches.sort_unstable();
    let mut budget = MAX_BENDS;
    let afforded = reaches.iter().take_while(|&&r| {
        let fits = r <= budget;
        budget = budget.saturating_sub(r);
        fits
    });
    let longest = afforded.last().copied().unwrap_or(0);
    let mut chains = Vec::with_capacity(links.len());
    for (link, &turned) in links.iter().zip(backward) {
        let (from, to) = (link.from.0, link.to.0);
        let (above, below) = (net.rank[from], net.rank[to]);
        let (out, into) = (items[from].outputs[link.from.1], items[to].inputs[link.to.1]);
        let back = turned || above >= below;
        let mut bends = Vec::new();
        if above.abs_diff(below) <= longest {
            if back {
                bends = (below..=above).rev().map(|r| net.add(0.0, r)).collect();
                for pair in bends.windows(2) {
                    net.connect((pair[1], 0.0), (pair[0], 0.0));
                }
                for (bend, item, at) in [(bends[0], from, out), (bends[bends.len() - 1], to, into)]
                {
                    let (here, there, weight) = (0.0, at, 0.3);
                    net.beside[bend].push(Arc { other: item, here, there, weight });
                }
            } else {
                bends = (above + 1..below).map(|r| net.add(0.0, r)).collect();
                let mut last = (from, out);
                for &bend in &bends {
                    net.connect(last, (bend, 0.0));
                    last = (bend, 0.0);
                }
                net.connect(last, (to, into));
            }
        }
        chains.push(Chain { bends, backward: back });
    }
    chains
}

/// Layers in the order in which a walk along the arcs meets their vertices.
fn discovered(net: &Network, layers: usize) -> Vec<Vec<usize>> {
    let mut lanes: Vec<Vec<usize>> = vec![Vec::new(); net.items];
    for v in net.items..net.len() {
        net.beside[v].iter().for_each(|a| lanes[a.other].push(v));
    }
    let mut order = vec![Vec::new(); layers];
    let mut met = vec![false; net.len()];
    let mut starts: Vec<usize> = (0..net.len()).filter(|&v| net.up[v].is_empty()).collect();
    starts.sort_by_key(|&v| (v >= net.items, v));
    for start in starts.into_iter().chain(0..net.len()) {
        let mut stack = vec![start];
        while let Some(v) = stack.pop() {
            if std::mem::replace(&mut met[v], true) {
                continue;
            }
            order[net.rank[v]].push(v);
            let mut next: Vec<&Arc> = net.down[v].iter().collect();
            next.sort_by(|a, b| b.here.total_cmp(&a.here));
            stack.extend(next.into_iter().map(|a| a.other));
            if v < net.items {
                stack.extend(lanes[v].iter().rev());
            }
        }
    }
    // Ports of the surrounding box stay in the order in which they are given.
    for (layer, fixed) in order.iter_mut().zip(&net.fixed) {
        if *fixed {
            layer.sort_unstable();
        }
    }
    order
}

/// Heights of the layers, and the routes of the links.
fn drawn(net: &Network, items: &[Item], links: &[Link], chains: &[Chain]) -> Placed {
    let left = (0..net.len()).map(|v| net.x[v]).fold(f64::INFINITY, f64::min);
    let right = (0..net.len()).map(|v| net.x[v] + net.width[v]).fold(f64::NEG_INFINITY, f64::max);
    let mut placed = Placed { width: (right - left).max(0.0), ..Placed::default() };
    let x = |v: usize| net.x[v] - left;
    let heights: Vec<f64> = net
        .layers
        .iter()
        .map(|l| l.iter().filter(|v| **v < net.items).map(|&v| items[v].height).fold(0.0, f64::max))
        .collect();
    // Arcs that go far to the side get more height to do it in.
    let mut tops = Vec::with_capacity(heights.len());
    let mut y = 0.0;
    for (r, height) in heights.iter().enumerate() {
        if r > 0 {
            let shifts = net.layers[r].iter().flat_map(|&v| {
                net.up[v].iter().map(move |a| (net.x[v] + a.here - net.x[a.other] - a.there).abs())
            });
            let widest = shifts.fold(0.0, f64::max);
            let gap = LAYER_GAP + (widest * 0.08).min(70.0);
            let edge = net.fixed[r] || net.fixed[r - 1];
            y += if edge { gap - LAYER_GAP * 0.25 } else { gap };
        }
        tops.push(y);
        y += height;
    }
    placed.height = y;
    let corner = |v: usize| {
        let r = net.rank[v];
        Point { x: x(v), y: tops[r] + (heights[r] - items[v].height) / 2.0 }
    };
    placed.corners = (0..items.len()).map(corner).collect();
    for (link, chain) in links.iter().zip(chains) {
        let ((from, output), (to, input)) = (link.from, link.to);
        let start = placed.corners[from];
        let start =
            Point { x: start.x + items[from].outputs[output], y: start.y + items[from].height };
        let end = placed.corners[to];
        let end = Point { x: end.x + items[to].inputs[input], y: end.y };
        let mut route = Route { start, segments: Vec::new() };
        let span = |r: usize| (tops[r], tops[r] + heights[r]);
        route.line(Point { x: start.x, y: span(net.rank[from]).1 });
        if chain.backward && !chain.bends.is_empty() {
            let lane = |&v: &usize| (x(v), span(net.rank[v]));
            let (first, (_, bottom)) = lane(&chain.bends[0]);
            route.turn(Point { x: first, y: bottom }, 1.0);
            for (i, bend) in chain.bends.iter().enumerate() {
                let (at, (top, bottom)) = lane(bend);
                if i > 0 {
                    route.curve(Point { x: at, y: bottom });
                }
                route.line(Point { x: at, y: top });
            }
            route.turn(Point { x: end.x, y: span(net.rank[to]).0 }, -1.0);
        } else {
            for &bend in &chain.bends {
                let (top, bottom) = span(net.rank[bend]);
                route.curve(Point { x: x(bend), y: top });
                route.line(Point { x: x(bend), y: bottom });
            }
            route.curve(Point { x: end.x, y: span(net.rank[to]).0 });
        }
        route.line(end);
        placed.routes.push(route);
    }
    placed
}

impl Route {
    fn end(&self) -> Point {
        match self.segments.last() {
            None => self.start,
            Some(Segment::Line(p) | Segment::Curve(_, _, p)) => *p,
        }
    }

    fn line(&mut self, to: Point) {
        if self.end() != to {
            self.segments.push(Segment::Line(to));
        }
    }

    /// On to a point of the next layer, leaving and arriving upright.
    fn curve(&mut self, to: Point) {
        let from = self.end();
        let middle = (from.y + to.y) / 2.0;
        let (a, b) = (Point { x: from.x, y: middle }, Point { x: to.x, y: middle });
        self.segments.push(Segment::Curve(a, b, to));
    }

    /// Turns around within the gap below (`direction` 1) or above (-1).
    fn turn(&mut self, to: Point, direction: f64) {
        let from = self.end();
        let depth = direction * LAYER_GAP * 0.8;
        let (a, b) = (Point { x: from.x, y: from.y + depth }, Point { x: to.x, y: to.y + depth });
        self.segments.push(Segment::Curve(a, b, to));
    }
}
