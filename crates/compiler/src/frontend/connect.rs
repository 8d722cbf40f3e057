//! Arrows between port lists: which output goes to which input.

use click::ast::{ArrowKind, Ports};
use ir::{Diagnostic, Span};

/// The ports by which a chain enters or leaves an endpoint.
#[derive(Clone, Copy)]
pub(crate) enum PortSpec<'a> {
    /// None are written.
    Unwritten,
    /// As written.
    Written(&'a Ports),
    /// The first so many: what a group has.
    First(u32),
}

impl PortSpec<'_> {
    fn count(self) -> usize {
        match self {
            PortSpec::Unwritten => 0,
            PortSpec::Written(ports) => {
                ports.ranges.iter().map(|r| (r.last - r.first) as usize + 1).sum()
            }
            PortSpec::First(count) => count as usize,
        }
    }

    fn is_open(self) -> bool {
        matches!(self, PortSpec::Written(ports) if ports.open)
    }

    /// The ports in order, those beyond an open end included.
    fn numbers(self) -> Box<dyn Iterator<Item = u32> + 'static> {
        match self {
            PortSpec::Unwritten => Box::new(std::iter::once(0)),
            PortSpec::Written(ports) => {
                let ranges: Vec<_> = ports.ranges.iter().map(|r| (r.first, r.last)).collect();
                Box::new(ranges.into_iter().flat_map(|(first, last)| first..=last))
            }
            PortSpec::First(count) => Box::new(0..count.max(1)),
        }
    }

    fn last(self) -> u32 {
        match self {
            PortSpec::Unwritten => 0,
            PortSpec::Written(ports) => ports.ranges.last().map_or(0, |r| r.last),
            PortSpec::First(count) => count.saturating_sub(1),
        }
    }
}

/// One side of an arrow: the endpoints between its commas.
pub(crate) struct Side<'a> {
    /// The ports of each endpoint.
    pub(crate) ports: Vec<PortSpec<'a>>,
    /// Where the side is written.
    pub(crate) span: Span,
}

impl Side<'_> {
    /// How many ports are written at least, an unwritten port counting as one.
    fn minimum(&self) -> usize {
        self.ports.iter().map(|p| p.count().max(1)).sum()
    }

    fn open(&self) -> usize {
        self.ports.iter().filter(|p| p.is_open()).count()
    }

    /// Every (endpoint, port) in order; `extra` more where the list is open, or, if nothing is
    /// open, at the single endpoint without ports.
    fn pins(&self, extra: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let single = self.open() == 0;
        self.ports.iter().enumerate().flat_map(move |(endpoint, &ports)| {
            let more = if ports.is_open() || single { extra as u32 } else { 0 };
            let last = ports.last();
            ports
                .numbers()
                .chain((1..=more).map(move |n| last.saturating_add(n)))
                .map(move |port| (endpoint, port))
        })
    }
}

/// A connection of an (endpoint, port) to another.
pub(crate) type Pair = ((usize, u32), (usize, u32));

/// Which ports an arrow connects. Stops after `limit` connections.
pub(crate) fn connect(
    outputs: &Side<'_>,
    inputs: &Side<'_>,
    (arrow, arrow_span): (&ArrowKind, Span),
    limit: usize,
    mut report: impl FnMut(Diagnostic),
) -> Vec<Pair> {
    let (from, to) = (outputs.minimum(), inputs.minimum());
    let mut open = [outputs.open() > 0, inputs.open() > 0];
    if outputs.open() + inputs.open() > 1 {
        report(
            Diagnostic::error("open-ports", "only one open port list can be at an arrow")
                .label(outputs.span, "")
                .label(inputs.span, "")
                .help("write the last port, as in `[0-3]`"),
        );
        return Vec::new();
    }
    let double = *arrow == ArrowKind::Double;
    if double {
        // `=>` extends an endpoint without ports to as many as the other side has.
        let bare = |side: &Side<'_>| matches!(side.ports[..], [PortSpec::Unwritten]);
        open[0] |= bare(outputs) && to > 1;
        open[1] |= bare(inputs) && from > 1;
    }
    let many = [from > 1 || open[0], to > 1 || open[1]];
    if many == [true, true] {
        let mismatch = if !open[0] && !open[1] && from != to {
            Some(format!("{from} outputs are connected to {to} inputs"))
        } else if !open[1] && to < from {
            Some(format!("{from} or more outputs are connected to {to} inputs"))
        } else if !open[0] && from < to {
            Some(format!("{from} outputs are connected to {to} or more inputs"))
        } else {
            None
        };
        if !double {
            report(
                Diagnostic::error("many-to-many", "many outputs meet many inputs at `->`")
                    .label(arrow_span, "")
                    .label(outputs.span, count(from, "output"))
                    .label(inputs.span, count(to, "input"))
                    .help("`=>` connects them one to one, in order"),
            );
        } else if let Some(message) = mismatch {
            report(
                Diagnostic::error("port-mismatch", message)
                    .label(arrow_span, "")
                    .label(outputs.span, count(from, "output"))
                    .label(inputs.span, count(to, "input")),
            );
        }
    }
    let mut left = outputs.pins(if open[0] { to.saturating_sub(from) } else { 0 });
    let mut right = inputs.pins(if open[1] { from.saturating_sub(to) } else { 0 });
    match many {
        [true, true] | [false, false] => left.zip(right).take(limit).collect(),
        [true, false] => match right.next() {
            Some(right) => left.map(|left| (left, right)).take(limit).collect(),
            None => Vec::new(),
        },
        [false, true] => match left.next() {
            Some(left) => right.map(|right| (left, right)).take(limit).collect(),
            None => Vec::new(),
        },
    }
}

/// `1 input`, `2 inputs`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
