//! The parse graph of a program: the headers that it looks at, in which order and by which fields
//! they are found, what is done with their fields, and how many of their bytes must be there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Header, Kind, Layout, Layouts, Name, Select};
use crate::field::meta;
use crate::model::BinaryOp;
use crate::program::{Atom, End, Exit, Program, Step, StepId, Term, TermId};
use crate::{Base, Field, IntervalSet};

/// What a program does with a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// It decides where packets go, or is looked up.
    pub decides: bool,
    /// Values are computed from it.
    pub read: bool,
    /// It is written.
    pub written: bool,
}

/// Bytes of a header that must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// So many bytes reach to the end of the last field that is looked at.
    pub needed: u16,
    /// The numbers of bytes, from the header's start on, whose presence is tested: lengths of the
    /// packet on which paths part.
    pub tested: BTreeSet<u16>,
    /// Its fields that the packet's length is compared with.
    pub compared: BTreeSet<String>,
}

/// A header that a program looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderUse {
    /// `ip`, `inner.ip`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Number of tunnels that it is in.
    pub depth: u8,
    /// Where it may lie, in bytes from the first data byte.
    pub offsets: BTreeSet<i32>,
    /// Whether it may have options.
    pub options: bool,
    /// Its fields that the program uses, by name, and what it does with them.
    pub fields: BTreeMap<String, Usage>,
    /// Whether a checksum over its bytes is computed.
    pub summed: bool,
    /// How many of its bytes must be there.
    pub availability: Availability,
}

/// One header follows another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The header before, by index; `None` if the packet begins with `to`.
    pub from: Option<usize>,
    /// The header that follows.
    pub to: usize,
    /// What says so; `None` if nothing that was tested does, and elements take it for granted.
    pub select: Option<Select>,
}

/// What a parser of a program's packets must extract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseGraph {
    /// The headers, in the order of their offsets.
    pub headers: Vec<HeaderUse>,
    /// Which follows which, in order.
    pub edges: Vec<Edge>,
    /// Bits of the packet that lie in no header that is known: first bits and widths.
    pub unnamed: BTreeSet<(i32, u32)>,
    /// Lengths of the packet on which paths part, other than those that some header takes.
    pub lengths: BTreeSet<u128>,
}

/// A header at one place, as bits of a set number them.
type Position = (usize, i32, u16);

struct Builder<'a> {
    program: &'a Program,
    layouts: &'a Layouts,
    headers: Vec<HeaderUse>,
    numbers: HashMap<String, usize>,
    edges: BTreeSet<Edge>,
    places: Vec<Position>,
    unnamed: BTreeSet<(i32, u32)>,
    lengths: BTreeSet<u128>,
    /// Those of them that some header takes.
    attributed: BTreeSet<u128>,
    inputs: Inputs,
}

impl ParseGraph {
    /// The parse graph of a program.
    pub fn of(program: &Program, layouts: &Layouts) -> Self {
        let mut builder = Builder {
            program,
            layouts,
            headers: Vec::new(),
            numbers: HashMap::new(),
            edges: BTreeSet::new(),
            places: Vec::new(),
            unnamed: BTreeSet::new(),
            lengths: BTreeSet::new(),
            attributed: BTreeSet::new(),
            inputs: Inputs::of(program),
        };
        // What is looked at behind a step, by the places' numbers.
        let mut below: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); program.steps.len()];
        for (index, step) in program.steps.iter().enumerate().rev() {
            let at = StepId(index as u32);
            if layouts.facts(at).is_none() {
                continue;
            }
            let mut seen: BTreeSet<usize> = BTreeSet::new();
            for next in step.next() {
                seen.extend(below.get(next.0 as usize).into_iter().flatten());
            }
            builder.step(at, step, &mut seen);
            builder.lengths(at, step, &below);
            below[index] = seen;
        }
        builder.end()
    }

    /// The header of that name.
    pub fn header(&self, name: &str) -> Option<&HeaderUse> {
        self.headers.iter().find(|header| header.name == name)
    }
}

impl Builder<'_> {
    fn number(&mut self, header: &Header) -> usize {
        let Self { headers, numbers, .. } = self;
        let number = *numbers.entry(header.name()).or_insert_with(|| {
            headers.push(HeaderUse {
                name: header.name(),
                kind: header.kind,
                depth: header.depth,
                offsets: BTreeSet::new(),
                options: false,
                fields: BTreeMap::new(),
                summed: false,
                availability: Availability::default(),
            });
            headers.len() - 1
        });
        headers[number].offsets.insert(header.offset);
        headers[number].options |= header.kind == Kind::Ipv4 && header.options != Some(false);
        number
    }

    /// Notes a header, all that are before it, and where it lies.
    fn look(&mut self, layout: &Layout, index: usize, seen: &mut BTreeSet<usize>) -> usize {
        let mut before = None;
        for (position, header) in layout.headers()[..=index].iter().enumerate() {
            let number = self.number(header);
            if position < index {
                // A parser that goes on extracts it whole.
                let needed = &mut self.headers[number].availability.needed;
                *needed = (*needed).max(header.kind.length());
            }
            self.edges.insert(Edge { from: before, to: number, select: header.select });
            before = Some(number);
            let place = (number, header.offset, header.length);
            let at = self.places.iter().position(|known| *known == place).unwrap_or_else(|| {
                self.places.push(place);
                self.places.len() - 1
            });
            seen.insert(at);
        }
        before.unwrap_or(0)
    }

    fn using(
        &mut self,
        layout: &Layout,
        (start, width): (i32, u32),
        seen: &mut BTreeSet<usize>,
        note: impl Fn(&mut Usage),
    ) {
        let parts = match layout.name(start, width) {
            Some(_) => vec![(start, width)],
            None => layout.parts(start, width),
        };
        for (start, width) in parts {
            let Some(Name { text, header, .. }) = layout.name(start, width) else {
                self.unnamed.insert((start, width));
                continue;
            };
            let number = self.look(layout, header, seen);
            let used = &mut self.headers[number];
            let end = start + width as i32 - 8 * layout.headers()[header].offset;
            let needed = &mut used.availability.needed;
            *needed = (*needed).max(u16::try_from((end + 7) / 8).unwrap_or(0));
            // Parts of a field are that field.
            let name = text.split('[').next().unwrap_or(&text);
            note(used.fields.entry(name.to_string()).or_default());
        }
    }

    fn terms(
        &mut self,
        layout: &Layout,
        terms: &[TermId],
        seen: &mut BTreeSet<usize>,
        note: impl Fn(&mut Usage) + Copy,
    ) {
        let inputs = self.inputs.of_all(terms);
        for field in inputs.fields {
            self.using(layout, (field.offset.into(), field.width.into()), seen, note);
        }
        for (offset, length) in inputs.sums {
            let at = i32::from(offset);
            let Some(index) = layout.headers().iter().position(|header| header.offset == at) else {
                continue;
            };
            let number = self.look(layout, index, seen);
            let header = &mut self.headers[number];
            header.summed = true;
            let length = u16::try_from(length).unwrap_or(0).min(layout.headers()[index].length);
            header.availability.needed = header.availability.needed.max(length);
        }
    }

    fn step(&mut self, at: StepId, step: &Step, seen: &mut BTreeSet<usize>) {
        let (program, layouts) = (self.program, self.layouts);
        let layout = layouts.at(at);
        let decides = |usage: &mut Usage| usage.decides = true;
        match step {
            Step::Exit(exit) => {
                self.terms(layout, &exit.terms(), seen, |usage| usage.read = true);
                if matches!(exit.end, End::Push { .. }) {
                    self.written(at, exit, seen);
                }
            }
            Step::Lookup { lookup, .. } => {
                if let Some(lookup) = program.lookups.get(usize::from(lookup.0)) {
                    self.terms(layout, &lookup.key, seen, decides);
                }
            }
            step => self.terms(layout, &step.terms(), seen, decides),
        }
    }

    fn written(&mut self, at: StepId, exit: &Exit, seen: &mut BTreeSet<usize>) {
        let layouts = self.layouts;
        let Some(facts) = layouts.facts(at) else { return };
        let layout = layouts.at(at);
        let leaving = layout.leaving(self.program, &exit.writes, facts);
        for write in &exit.writes.bytes {
            for (start, width) in leaving.parts(8 * write.offset, 8 * u32::from(write.length)) {
                let here = layout.name(start, width);
                let place = |layout: &Layout, name: &Name| {
                    let header = layout.headers()[name.header];
                    (header.kind, header.offset)
                };
                let there = leaving.name(start, width).map(|name| place(&leaving, &name));
                if here.map(|name| place(layout, &name)) == there && there.is_some() {
                    self.using(layout, (start, width), seen, |usage| usage.written = true);
                }
            }
        }
    }

    /// Attributes tests of the packet's length to headers.
    fn lengths(&mut self, at: StepId, step: &Step, below: &[BTreeSet<usize>]) {
        let cases: Vec<(&IntervalSet, StepId)> = match step {
            Step::Test { atom: Atom::Test(_, set), yes, .. } => vec![(set, *yes)],
            Step::Switch { cases, .. } => cases.iter().map(|(set, to)| (set, *to)).collect(),
            Step::Test { atom: Atom::Compare(_, a, b), .. } => {
                if self.length(*a).or(self.length(*b)).is_some() {
                    self.compared(at, [*a, *b]);
                }
                return;
            }
            _ => return,
        };
        let (on, rest) = match step {
            Step::Test { atom: Atom::Test(on, _), no, .. } => (*on, *no),
            Step::Switch { on, otherwise, .. } => (*on, *otherwise),
            _ => return,
        };
        let Some(subtracted) = self.length(on) else { return };
        let bounds: BTreeSet<u128> = cases
            .iter()
            .flat_map(|(set, _)| set.intervals())
            .flat_map(|(low, high)| [*low, high.saturating_add(1)])
            .filter(|bound| (1..=u128::from(u32::MAX)).contains(bound))
            .collect();
        for bound in bounds {
            let to = cases.iter().find(|(set, _)| set.contains(bound)).map_or(rest, |case| case.1);
            let length = bound + subtracted;
            self.lengths.insert(length);
            for place in &below[to.0 as usize] {
                let (number, offset, bytes) = self.places[*place];
                let of_it = i128::try_from(length).unwrap_or(i128::MAX) - i128::from(offset);
                if (1..=i128::from(bytes)).contains(&of_it) {
                    self.headers[number].availability.tested.insert(of_it as u16);
                    self.attributed.insert(length);
                }
            }
        }
    }

    /// What is subtracted from the packet's length to make a number, if it is made so.
    fn length(&self, term: TermId) -> Option<u128> {
        let of = |term: TermId| self.program.terms.get(term.0 as usize);
        let is_length = |term: TermId| of(term) == Some(&Term::Input(meta::LEN));
        match of(term)? {
            Term::Input(field) => (*field == meta::LEN).then_some(0),
            Term::Binary(BinaryOp::Sub, a, b) if is_length(*a) => match of(*b)? {
                Term::Const(by) => u128::from(u32::try_from(*by).ok()?).into(),
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(&mut self, at: StepId, terms: [TermId; 2]) {
        let layout = self.layouts.at(at);
        for field in self.inputs.of_all(&terms).fields {
            let Some(name) = layout.name_of(field) else { continue };
            let header = layout.headers()[name.header].name();
            if let Some(number) = self.numbers.get(&header) {
                self.headers[*number].availability.compared.insert(name.text);
            }
        }
    }

    /// The graph, with headers in the order of their offsets.
    fn end(self) -> ParseGraph {
        let mut order: Vec<usize> = (0..self.headers.len()).collect();
        let place = |number: &usize| {
            let header = &self.headers[*number];
            (header.depth, header.offsets.first().copied(), header.kind)
        };
        order.sort_by_key(place);
        let mut new = vec![0; order.len()];
        for (to, from) in order.iter().enumerate() {
            new[*from] = to;
        }
        let tested: BTreeSet<(Option<usize>, usize)> =
            self.edges.iter().filter(|e| e.select.is_some()).map(|e| (e.from, e.to)).collect();
        let mut edges: Vec<Edge> = self
            .edges
            .iter()
            .filter(|edge| edge.select.is_some() || !tested.contains(&(edge.from, edge.to)))
            .map(|edge| Edge { from: edge.from.map(|n| new[n]), to: new[edge.to], ..*edge })
            .collect();
        edges.sort_unstable();
        let mut headers = self.headers;
        let mut sorted: Vec<(usize, HeaderUse)> =
            headers.drain(..).enumerate().map(|(from, header)| (new[from], header)).collect();
        sorted.sort_by_key(|(to, _)| *to);
        ParseGraph {
            headers: sorted.into_iter().map(|(_, header)| header).collect(),
            edges,
            unnamed: self.unnamed,
            lengths: &self.lengths - &self.attributed,
        }
    }
}

/// What of the packet terms are made from.
struct Inputs(Vec<Made>);

/// What of the packet a term is made from.
#[derive(Clone, Default)]
struct Made {
    fields: BTreeSet<Field>,
    /// Sums over the packet's bytes: their first byte, and the number of bytes if it is fixed.
    sums: BTreeSet<(u16, u128)>,
}

impl Inputs {
    fn of(program: &Program) -> Self {
        let mut all: Vec<Made> = Vec::with_capacity(program.terms.len());
        for term in &program.terms {
            let mut made = Made::default();
            for of in term.operands() {
                if let Some(other) = all.get(of.0 as usize) {
                    made.fields.extend(&other.fields);
                    made.sums.extend(&other.sums);
                }
            }
            match term {
                Term::Input(field) if field.base == Base::Data => {
                    made.fields.insert(*field);
                }
                Term::Sum16 { offset, length } => {
                    let length = match program.terms.get(length.0 as usize) {
                        Some(Term::Const(length)) => *length,
                        _ => u128::MAX,
                    };
                    made.sums.insert((*offset, length));
                }
                _ => {}
            }
            all.push(made);
        }
        Self(all)
    }

    fn of_all(&self, terms: &[TermId]) -> Made {
        let mut made = Made::default();
        for other in terms.iter().filter_map(|term| self.0.get(term.0 as usize)) {
            made.fields.extend(&other.fields);
            made.sums.extend(&other.sums);
        }
        made
    }
}
