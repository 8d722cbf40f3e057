//! What every layout must hold.

use proptest::prelude::*;

use super::*;

/// Any diagram: elements and compounds in compounds, with wires between ports that exist.
fn diagrams() -> impl Strategy<Value = Diagram> {
    let compound = (any::<prop::sample::Index>(), 0..3usize, 0..3usize, 0.0..150.0f64);
    let element =
        (any::<prop::sample::Index>(), 20.0..200.0f64, 10.0..80.0f64, 0..4usize, 0..4usize);
    let wire = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let parts = (
        prop::collection::vec(compound, 0..5),
        prop::collection::vec(element, 0..25),
        prop::collection::vec(wire, 0..60),
    );
    parts.prop_map(|(compounds, elements, wires)| {
        let mut diagram = Diagram::default();
        for (i, (inside, inputs, outputs, title)) in compounds.into_iter().enumerate() {
            let inside = inside.index(i + 1).checked_sub(1);
            diagram.compounds.push(Compound { inside, inputs, outputs, title });
        }
        let n = diagram.compounds.len();
        for (inside, width, height, inputs, outputs) in elements {
            let inside = inside.index(n + 1).checked_sub(1);
            diagram.elements.push(Element { width, height, inside, inputs, outputs });
        }
        // Ends of wires by the compound that the wire stands in.
        let mut from: Vec<Vec<End>> = vec![Vec::new(); n + 1];
        let mut to = from.clone();
        for (i, e) in diagram.elements.iter().enumerate() {
            let at = e.inside.unwrap_or(n);
            from[at].extend((0..e.outputs).map(|p| End::Element(i, p)));
            to[at].extend((0..e.inputs).map(|p| End::Element(i, p)));
        }
        for (i, c) in diagram.compounds.iter().enumerate() {
            let at = c.inside.unwrap_or(n);
            from[i].extend((0..c.inputs).map(|p| End::Input(i, p)));
            to[at].extend((0..c.inputs).map(|p| End::Input(i, p)));
            from[at].extend((0..c.outputs).map(|p| End::Output(i, p)));
            to[i].extend((0..c.outputs).map(|p| End::Output(i, p)));
        }
        let all: Vec<(usize, End)> = from
            .iter()
            .enumerate()
            .flat_map(|(at, ends)| ends.iter().map(move |e| (at, *e)))
            .collect();
        for (a, b) in wires {
            if all.is_empty() {
                break;
            }
            let (at, from) = all[a.index(all.len())];
            if !to[at].is_empty() {
                diagram.wires.push(Wire { from, to: to[at][b.index(to[at].len())] });
            }
        }
        diagram
    })
}

fn apart(a: &Rect, b: &Rect) -> bool {
    let e = 1e-6;
    a.x + a.width <= b.x + e
        || b.x + b.width <= a.x + e
        || a.y + a.height <= b.y + e
        || b.y + b.height <= a.y + e
}

fn within(inner: &Rect, outer: &Rect) -> bool {
    let e = 1e-6;
    inner.x >= outer.x - e
        && inner.y >= outer.y - e
        && inner.x + inner.width <= outer.x + outer.width + e
        && inner.y + inner.height <= outer.y + outer.height + e
}

/// Where an end of a wire stands, as the boxes say.
fn place(diagram: &Diagram, layout: &Layout, end: End, output: bool) -> Point {
    match end {
        End::Element(e, p) => {
            let (rect, element) = (layout.elements[e], &diagram.elements[e]);
            let n = if output { element.outputs } else { element.inputs };
            let y = rect.y + if output { rect.height } else { 0.0 };
            Point { x: rect.x + Element::port(rect.width, p, n), y }
        }
        End::Input(c, p) => layout.ports[c][0][p],
        End::Output(c, p) => layout.ports[c][1][p],
    }
}

fn near(a: Point, b: Point) -> bool {
    (a.x - b.x).abs() < 1e-6 && (a.y - b.y).abs() < 1e-6
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boxes_stand_apart_inside_their_compounds_and_wires_meet_them(diagram in diagrams()) {
        let layout = layout(&diagram);
        let page = Rect { x: 0.0, y: 0.0, width: layout.width, height: layout.height };
        let boxes: Vec<(Option<usize>, Rect)> = diagram
            .elements
            .iter()
            .map(|e| e.inside)
            .zip(layout.elements.iter().copied())
            .chain(diagram.compounds.iter().map(|c| c.inside).zip(layout.compounds.iter().copied()))
            .collect();
        for (i, (inside, rect)) in boxes.iter().enumerate() {
            prop_assert!(rect.x.is_finite() && rect.y.is_finite());
            let around = inside.map_or(page, |c| layout.compounds[c]);
            prop_assert!(within(rect, &around), "{rect:?} leaves {around:?}");
            for (other, b) in &boxes[..i] {
                prop_assert!(other != inside || apart(rect, b), "{rect:?} overlaps {b:?}");
            }
        }
        for (wire, route) in diagram.wires.iter().zip(&layout.routes) {
            prop_assert!(near(route.start, place(&diagram, &layout, wire.from, true)), "{wire:?}");
            prop_assert!(near(route.end_point(), place(&diagram, &layout, wire.to, false)), "{wire:?}");
        }
    }

    #[test]
    fn the_same_diagram_is_laid_out_the_same(diagram in diagrams()) {
        prop_assert_eq!(format!("{:?}", layout(&diagram)), format!("{:?}", layout(&diagram)));
    }
}

fn element(inputs: usize, outputs: usize) -> Element {
    Element { width: 60.0, height: 20.0, inside: None, inputs, outputs }
}

fn wire(from: (usize, usize), to: (usize, usize)) -> Wire {
    Wire { from: End::Element(from.0, from.1), to: End::Element(to.0, to.1) }
}

#[test]
fn a_chain_is_a_straight_line() {
    let elements = vec![element(1, 1); 20];
    let wires = (1..20).map(|i| wire((i - 1, 0), (i, 0))).collect();
    let layout = layout(&Diagram { elements, compounds: vec![], wires });
    assert!(layout.elements.windows(2).all(|w| w[0].x == w[1].x && w[0].y < w[1].y));
}

#[test]
fn wires_do_not_cross_where_they_need_not() {
    // A splitter whose outputs are declared in another order than what they lead to.
    let mut elements = vec![element(0, 4)];
    elements.extend(vec![element(1, 0); 4]);
    let wires = [3, 1, 4, 2].into_iter().enumerate().map(|(o, to)| wire((0, o), (to, 0))).collect();
    let layout = layout(&Diagram { elements, compounds: vec![], wires });
    let x = |i: usize| layout.elements[i].x;
    assert!(x(3) < x(1) && x(1) < x(4) && x(4) < x(2));
}

#[test]
fn large_chains_are_laid_out() {
    // A chain, a fan, a ring with chords and many loose elements, of ten thousand elements each.
    let n = 10_000;
    let chain: Vec<Wire> = (1..n).map(|i| wire((i - 1, 0), (i, 0))).collect();
    let fan: Vec<Wire> = (1..n).map(|i| wire((0, i), (i, 0))).collect();
    let ring: Vec<Wire> = (0..n)
        .flat_map(|i| [wire((i, 0), ((i + 1) % n, 0)), wire((i, 1), ((i * 7 + 3) % n, 0))])
        .collect();
    for (wires, outputs) in [(chain, 1), (fan, n), (ring, 2), (Vec::new(), 0)] {
        let mut elements = vec![element(1, outputs.min(2)); n];
        elements[0] = element(1, outputs);
        let layout = layout(&Diagram { elements, compounds: vec![], wires });
        assert!(layout.width.is_finite() && layout.height.is_finite());
    }
}
