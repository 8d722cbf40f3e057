//! Drawing a chain: boxes inside boxes, in layers from top to bottom, with few crossings.
//!
//! Each compound is laid out by itself and then is a box in the one around it, so compounds stay
//! together and whatever is inside stays inside. Pure: sizes in, places out.

mod layered;
mod order;
mod place;
mod rank;

#[cfg(test)]
mod tests;

use layered::{Edge, Item, Link, MARGIN, Placed, layered};

/// A place; x grows to the right, y downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A piece of a route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Segment {
    /// Straight on.
    Line(Point),
    /// A cubic curve with its two control points.
    Curve(Point, Point, Point),
}

/// The route of a wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Route {
    pub(crate) start: Point,
    pub(crate) segments: Vec<Segment>,
}

/// Where a box stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A box without boxes inside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Element {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The compound that it stands in.
    pub(crate) inside: Option<usize>,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

/// A box around others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compound {
    /// The compound that it stands in.
    pub(crate) inside: Option<usize>,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Space for its title.
    pub(crate) title: f64,
}

/// An end of a wire. A compound's port is met from outside and from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    /// A port of an element.
    Element(usize, usize),
    /// An input of a compound: a wire leads to it outside, and from it inside.
    Input(usize, usize),
    /// An output of a compound: a wire leads to it inside, and from it outside.
    Output(usize, usize),
}

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) from: End,
    pub(crate) to: End,
}

/// What is to be drawn. Compounds stand behind those that they are inside of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diagram {
    pub(crate) elements: Vec<Element>,
    pub(crate) compounds: Vec<Compound>,
    pub(crate) wires: Vec<Wire>,
}

/// Where everything stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) elements: Vec<Rect>,
    pub(crate) compounds: Vec<Rect>,
    /// Left end of each compound's title.
    pub(crate) titles: Vec<Point>,
    /// Inputs and outputs of each compound.
    pub(crate) ports: Vec<[Vec<Point>; 2]>,
    /// The route of each wire; empty if its ends are not in one compound.
    pub(crate) routes: Vec<Route>,
}

/// Least distance between ports of a box.
pub(crate) const PORT_PITCH: f64 = 16.0;
/// Height of a compound's title.
const TITLE: f64 = 26.0;
/// Space between parts of a picture that are not connected.
const PARTS: f64 = 44.0;

impl Element {
    /// Where port `port` of `count` stands on the edge, from the left.
    pub(crate) fn port(width: f64, port: usize, count: usize) -> f64 {
        width * (port as f64 + 0.5) / count.max(1) as f64
    }
}

/// A compound, or the whole picture, laid out with its upper left corner at 0.
#[derive(Debug, Default)]
struct Inside {
    width: f64,
    height: f64,
    elements: Vec<(usize, Point)>,
    compounds: Vec<(usize, Point)>,
    wires: Vec<(usize, Route)>,
    inputs: Vec<f64>,
    outputs: Vec<f64>,
    title: f64,
}

/// Lays a diagram out.
pub(crate) fn layout(diagram: &Diagram) -> Layout {
    let n = diagram.compounds.len();
    let mut members = vec![Members::default(); n + 1];
    let index = |inside: Option<usize>| inside.unwrap_or(n);
    for (i, e) in diagram.elements.iter().enumerate() {
        members[index(e.inside)].elements.push(i);
    }
    for (i, c) in diagram.compounds.iter().enumerate() {
        members[index(c.inside)].compounds.push(i);
    }
    for (i, wire) in diagram.wires.iter().enumerate() {
        let from = match wire.from {
            End::Element(e, _) => diagram.elements[e].inside,
            End::Input(c, _) => Some(c),
            End::Output(c, _) => diagram.compounds[c].inside,
        };
        let to = match wire.to {
            End::Element(e, _) => diagram.elements[e].inside,
            End::Input(c, _) => diagram.compounds[c].inside,
            End::Output(c, _) => Some(c),
        };
        if from == to {
            members[index(from)].wires.push(i);
        }
    }
    let mut insides: Vec<Option<Inside>> = (0..n).map(|_| None).collect();
    for c in (0..n).rev() {
        insides[c] = Some(compound(diagram, c, &members[c], &insides));
    }
    let whole = picture(diagram, &members[n], &insides);
    let mut layout = Layout {
        width: whole.width,
        height: whole.height,
        elements: vec![Rect::default(); diagram.elements.len()],
        compounds: vec![Rect::default(); n],
        titles: vec![Point::default(); n],
        ports: vec![Default::default(); n],
        routes: vec![Route::default(); diagram.wires.len()],
    };
    let mut work = vec![(&whole, Point::default())];
    while let Some((inside, at)) = work.pop() {
        let moved = |p: &Point| Point { x: p.x + at.x, y: p.y + at.y };
        for (e, place) in &inside.elements {
            let (Point { x, y }, e) = (moved(place), *e);
            let Element { width, height, .. } = diagram.elements[e];
            layout.elements[e] = Rect { x, y, width, height };
        }
        for (w, route) in &inside.wires {
            layout.routes[*w] = route.moved(at);
        }
        for (c, place) in &inside.compounds {
            let (Point { x, y }, c) = (moved(place), *c);
            let Some(own) = &insides[c] else { continue };
            layout.compounds[c] = Rect { x, y, width: own.width, height: own.height };
            layout.titles[c] = Point { x: x + own.title, y: y + TITLE * 0.68 };
            layout.ports[c] = [(&own.inputs, y), (&own.outputs, y + own.height)]
                .map(|(ports, y)| ports.iter().map(|p| Point { x: x + p, y }).collect());
            work.push((own, Point { x, y }));
        }
    }
    layout
}

#[derive(Clone, Debug, Default)]
struct Members {
    elements: Vec<usize>,
    compounds: Vec<usize>,
    wires: Vec<usize>,
}

/// The boxes and wires of a compound as the flat layout takes them.
struct Content {
    items: Vec<Item>,
    /// Wires with their index in the diagram.
    links: Vec<(usize, Link)>,
    elements: usize,
    compounds: usize,
}

fn content(
    diagram: &Diagram,
    members: &Members,
    insides: &[Option<Inside>],
    (inputs, outputs): (usize, usize),
) -> Content {
    let mut items = Vec::new();
    for &e in &members.elements {
        let Element { width, height, inputs, outputs, .. } = diagram.elements[e];
        let ports = |n| (0..n).map(|p| Element::port(width, p, n)).collect();
        items.push(Item {
            width,
            height,
            inputs: ports(inputs),
            outputs: ports(outputs),
            edge: None,
        });
    }
    for &c in &members.compounds {
        let Some(own) = &insides[c] else { continue };
        let (inputs, outputs) = (own.inputs.clone(), own.outputs.clone());
        items.push(Item { width: own.width, height: own.height, inputs, outputs, edge: None });
    }
    let (elements, compounds) = (members.elements.len(), members.compounds.len());
    let tops = elements + compounds;
    for (edge, n) in [(Edge::Top, inputs), (Edge::Bottom, outputs)] {
        let port =
            Item { inputs: vec![0.0], outputs: vec![0.0], edge: Some(edge), ..Item::default() };
        items.extend(std::iter::repeat_n(port, n));
    }
    let element = |e: usize| members.elements.binary_search(&e).ok();
    let compound = |c: usize| members.compounds.binary_search(&c).ok().map(|i| elements + i);
    let links = members.wires.iter().filter_map(|&w| {
        let Wire { from, to } = diagram.wires[w];
        let from = match from {
            End::Element(e, p) => (element(e)?, p),
            End::Input(_, p) => (tops + p, 0),
            End::Output(c, p) => (compound(c)?, p),
        };
        let to = match to {
            End::Element(e, p) => (element(e)?, p),
            End::Input(c, p) => (compound(c)?, p),
            End::Output(_, p) => (tops + inputs + p, 0),
        };
        let exists = items[from.0].outputs.len() > from.1 && items[to.0].inputs.len() > to.1;
        exists.then_some((w, Link { from, to }))
    });
    let links = links.collect();
    Content { items, links, elements, compounds }
}

impl Content {
    /// Takes what was placed over, with its upper left corner at `at`.
    fn adopt(
        &self,
        placed: &Placed,
        parts: &[usize],
        links: &[usize],
        at: Point,
        members: &Members,
        into: &mut Inside,
    ) {
        for (corner, &item) in placed.corners.iter().zip(parts) {
            let corner = Point { x: corner.x + at.x, y: corner.y + at.y };
            if item < self.elements {
                into.elements.push((members.elements[item], corner));
            } else if item < self.elements + self.compounds {
                into.compounds.push((members.compounds[item - self.elements], corner));
            }
        }
        for (route, &link) in placed.routes.iter().zip(links) {
            into.wires.push((self.links[link].0, route.moved(at)));
        }
    }

    /// Lays out some of the items and the links between them.
    fn lay(&self, parts: &[usize], links: &[usize]) -> Placed {
        if let ([item], []) = (parts, links) {
            let Item { width, height, .. } = self.items[*item];
            return Placed { corners: vec![Point::default()], routes: Vec::new(), width, height };
        }
        let mut place = vec![usize::MAX; self.items.len()];
        parts.iter().enumerate().for_each(|(i, &item)| place[item] = i);
        let items: Vec<Item> = parts.iter().map(|&p| self.items[p].clone()).collect();
        let end = |(item, port): (usize, usize)| (place[item], port);
        let links: Vec<Link> = links
            .iter()
            .map(|&l| &self.links[l].1)
            .map(|l| Link { from: end(l.from), to: end(l.to) })
            .collect();
        layered(&items, &links)
    }

    /// The items of each connected part with its links; items without links come last, one by one.
    fn parts(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let n = self.items.len();
        let mut leader: Vec<usize> = (0..n).collect();
        fn find(leader: &mut [usize], mut v: usize) -> usize {
            while leader[v] != v {
                leader[v] = leader[leader[v]];
                v = leader[v];
            }
            v
        }
        for (_, link) in &self.links {
            let (a, b) = (find(&mut leader, link.from.0), find(&mut leader, link.to.0));
            leader[a.max(b)] = a.min(b);
        }
        let mut parts: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); n];
        for v in 0..n {
            let part = find(&mut leader, v);
            parts[part].0.push(v);
        }
        for (i, (_, link)) in self.links.iter().enumerate() {
            let part = find(&mut leader, link.from.0);
            parts[part].1.push(i);
        }
        parts.retain(|(items, _)| !items.is_empty());
        parts.sort_by_key(|(_, links)| links.is_empty());
        parts
    }
}

/// Lays a compound out.
fn compound(diagram: &Diagram, c: usize, members: &Members, insides: &[Option<Inside>]) -> Inside {
    let Compound { inputs, outputs, title, .. } = diagram.compounds[c];
    let content = content(diagram, members, insides, (inputs, outputs));
    // All that is connected to the ports stands in one picture; what has no wires comes below.
    let mut wired = vec![false; content.items.len()];
    wired[content.elements + content.compounds..].fill(true);
    for (_, link) in &content.links {
        (wired[link.from.0], wired[link.to.0]) = (true, true);
    }
    let (rest, loose): (Vec<usize>, Vec<usize>) = (0..wired.len()).partition(|&i| wired[i]);
    let links: Vec<usize> = (0..content.links.len()).collect();
    let placed = content.lay(&rest, &links);
    let mut inside = Inside::default();
    let ports = placed.corners[placed.corners.len() - inputs - outputs..].iter().map(|p| p.x);
    let ports: Vec<f64> = ports.map(|x| x + MARGIN).collect();
    let (top, bottom) = ports.split_at(inputs);
    let (title_at, needed) = title_place(top, title, placed.width + 2.0 * MARGIN);
    inside.width = needed.max(placed.width + 2.0 * MARGIN).max(48.0);
    // With input ports, the first layer is the upper edge itself.
    let head = if inputs > 0 { 0.0 } else { TITLE };
    let foot = if outputs > 0 { 0.0 } else { MARGIN };
    content.adopt(&placed, &rest, &links, Point { x: MARGIN, y: head }, members, &mut inside);
    inside.height = (head + placed.height + foot).max(TITLE + MARGIN);
    inside.title = title_at;
    (inside.inputs, inside.outputs) = (top.to_vec(), bottom.to_vec());
    let mut shelf = Shelf::below(&inside, MARGIN);
    for item in loose {
        let placed = content.lay(&[item], &[]);
        let at = shelf.put(&mut inside, &placed, GAP_LOOSE);
        content.adopt(&placed, &[item], &[], at, members, &mut inside);
    }
    if shelf.used {
        inside.height = shelf.y + shelf.height + MARGIN;
    }
    // The outputs move down with the edge.
    for (w, route) in &mut inside.wires {
        let end = route.end_point();
        if matches!(diagram.wires[*w].to, End::Output(own, _) if own == c) && end.y < inside.height
        {
            route.segments.push(Segment::Line(Point { x: end.x, y: inside.height }));
        }
    }
    inside
}

const GAP_LOOSE: f64 = 18.0;

/// Lays the outermost boxes out, the connected parts side by side.
fn picture(diagram: &Diagram, members: &Members, insides: &[Option<Inside>]) -> Inside {
    let content = content(diagram, members, insides, (0, 0));
    let parts = content.parts();
    let placed: Vec<Placed> =
        parts.iter().map(|(items, links)| content.lay(items, links)).collect();
    // Rows about as wide as the picture is high, or as the widest part.
    let area: f64 = placed.iter().map(|p| (p.width + PARTS) * (p.height + PARTS)).sum();
    let widest = placed.iter().map(|p| p.width).fold(0.0, f64::max);
    let limit = widest.max(area.sqrt() * 1.3);
    let mut whole = Inside { width: limit, ..Inside::default() };
    let mut shelf = Shelf { x: 0.0, y: 0.0, height: 0.0, limit, left: 0.0, used: false };
    let (mut width, mut first_loose) = (0.0f64, true);
    for ((items, links), placed) in parts.iter().zip(&placed) {
        let gap = if links.is_empty() { GAP_LOOSE } else { PARTS };
        if links.is_empty() && std::mem::take(&mut first_loose) && shelf.used {
            shelf.next(PARTS);
        }
        let at = shelf.put(&mut whole, placed, gap);
        width = width.max(at.x + placed.width);
        content.adopt(placed, items, links, at, members, &mut whole);
    }
    whole.width = width;
    whole.height = shelf.y + shelf.height;
    whole
}

/// Places boxes in rows.
struct Shelf {
    x: f64,
    y: f64,
    height: f64,
    limit: f64,
    left: f64,
    used: bool,
}

impl Shelf {
    fn below(inside: &Inside, margin: f64) -> Self {
        let limit = inside.width - margin;
        Self { x: margin, y: inside.height, height: 0.0, limit, left: margin, used: false }
    }

    fn next(&mut self, gap: f64) {
        (self.x, self.y, self.height) = (self.left, self.y + self.height + gap, 0.0);
    }

    fn put(&mut self, inside: &mut Inside, placed: &Placed, gap: f64) -> Point {
        if self.x > self.left && self.x + placed.width > self.limit {
            self.next(gap);
        }
        let at = Point { x: self.x, y: self.y };
        self.x += placed.width + gap;
        self.height = self.height.max(placed.height);
        inside.width = inside.width.max(at.x + placed.width + self.left);
        self.used = true;
        at
    }
}

/// Where a title stands between the ports on the upper edge, and how wide the box must be.
fn title_place(ports: &[f64], title: f64, width: f64) -> (f64, f64) {
    let space = 8.0;
    let mut left = 10.0;
    for &port in ports {
        if left + title + space <= port {
            return (left, left + title + space);
        }
        left = port + space + 2.0;
    }
    (left, (left + title + space).max(width))
}

impl Route {
    fn moved(&self, by: Point) -> Route {
        let moved = |p: Point| Point { x: p.x + by.x, y: p.y + by.y };
        let segment = |s: &Segment| match *s {
            Segment::Line(p) => Segment::Line(moved(p)),
            Segment::Curve(a, b, p) => Segment::Curve(moved(a), moved(b), moved(p)),
        };
        let segments = self.segments.iter().map(segment).collect();
        Route { start: moved(self.start), segments }
    }

    /// Where it ends.
    pub(crate) fn end_point(&self) -> Point {
        match self.segments.last() {
            None => self.start,
            Some(Segment::Line(p) | Segment::Curve(_, _, p)) => *p,
        }
    }
}
