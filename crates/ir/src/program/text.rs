//! The text of programs, which reads back; see [`crate::text::parse_programs`].
//!
//! ```text
//! program behind [0] rt
//! elements 0 rt, 1 ck, 2 nat
//! state flows of "nat" at nat: flows 65536 (32, 16)
//! table 0 nat: flows of "nat" (32, 16, 32, 16)
//! table 1 rt: routes (32)
//!   10.0.0.0/8 => (0, 1)
//! l0: nat find table 0 (data[96+32], data[128+32]) binding 3 + 2
//!
//! s0: ck if data[0+4] == 4 s1 else s7
//! s1: rt switch data[128+32] {10.0.0.0/8} s2, {192.168.1.0..192.168.1.9} s3, else s7
//! s2: find l0 s4 else s7
//!   t9 = data[64+16] - 256
//! s4: exit visited [0] rt, [0] dt
//!   data[8..10] = t9
//!   data[10..12] = ~ones(t9 + ~data[80+16] + ~data[64+16])
//!   push [0] nat, slow path
//!   because cells
//! s7: exit visited [0] rt
//!   drop no-route at rt
//! ```
//!
//! A field of the data is written `data[64+8]`: 8 bits from bit 64 on, as the packet came in;
//! what is written is `data[8..9]`: bytes. `l0.1` is what the first lookup bound second. A table is
//! followed by its entries. A part of a program that was cut begins `program behind [0] rt from
//! continuation 3`, and reads `carried[0+32]` where another ended with `carried[0..4] = l0.0` and
//! `hand off to continuation 3`. `ones` is a ones' complement sum ([`super::OnesSum`]). Terms that are large, or not small and used more than once, are named
//! before the step that uses them first. Elements without a name are numbers: `#3`.
//!
//! Where conditions on the path say which header lies where, a comment behind `//` names the fields of a line
//! ([`crate::layout`]); what is written is named as it leaves. Comments are not read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter, Write as _};

use net::Header;

use super::{
    Atom, Barrier, ClassifyRule, Continuation, Effect, End, Entries, Exit, LookupId, Mark, OnesSum,
    Program, StateId, Step, StepId, Table, TableId, Term, TermId, Write,
};
use crate::graph::{Graph, NodeId, Port};
use crate::layout::{Kind, Layout, Layouts};
use crate::model::{BinaryOp, CompareOp, StateKind};
use crate::notation::{Notation, Number, Numbers};
use crate::text::{Constant, Name, level};
use crate::{Base, Field, IntervalSet};

/// Terms of more parts than this are named.
const MAX_INLINE: usize = 12;

impl Program {
    /// The text of the program, elements by their names in the graph, fields by their names in comments.
    pub fn text<'a>(&'a self, graph: &'a Graph) -> impl Display + 'a {
        let names = self.elements().into_iter();
        let name = |node: NodeId| Some((node, graph.nodes.get(node)?.name.as_str()));
        Text {
            program: self,
            names: names.filter_map(name).collect(),
            has_comments: true,
            is_portable: false,
        }
    }

    /// The same by names that are at hand otherwise.
    pub fn text_by<'a>(&'a self, names: &'a BTreeMap<NodeId, String>) -> impl Display + 'a {
        let names = names.iter().map(|(&node, n)| (node, n.as_str())).collect();
        Text { program: self, names, has_comments: true, is_portable: false }
    }

    /// A text that is the same wherever elements stand in a graph and rules in files, and whichever number a part has: for
    /// comparison, as it does not read back.
    pub fn portable_text<'a>(&'a self, name: impl Fn(NodeId) -> &'a str) -> impl Display + 'a {
        let names = self.elements().into_iter().map(|node| (node, name(node))).collect();
        Text { program: self, names, has_comments: false, is_portable: true }
    }

    /// All elements that it names.
    pub fn elements(&self) -> BTreeSet<NodeId> {
        let mut all = BTreeSet::from([self.entry.node]);
        all.extend(self.state.iter().map(|state| state.element));
        all.extend(self.tables.iter().map(|table| table.element));
        all.extend(self.lookups.iter().map(|lookup| lookup.element));
        for step in &self.steps {
            match step {
                Step::Test { element, .. }
                | Step::Switch { element, .. }
                | Step::Classify { element, .. } => drop(all.insert(*element)),
                Step::Lookup { .. } => {}
                Step::Exit(exit) => exit.all().for_each(|exit| {
                    all.extend(exit.visited.iter().map(|port| port.node));
                    all.extend(exit.effects.iter().filter_map(|effect| match effect {
                        Effect::Note { element, .. } => Some(*element),
                        Effect::Count { .. } | Effect::Update { .. } | Effect::Set { .. } => None,
                    }));
                    match exit.end {
                        End::Push { to, .. } => all.insert(to.node),
                        End::Drop { element, .. } => all.insert(element),
                        End::Handoff { .. } => false,
                    };
                }),
            }
        }
        all
    }
}

impl Display for Program {
    /// Elements are numbers, since their names are not at hand, and fields have no names; see [`Program::text`].
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Text { program: self, names: BTreeMap::new(), has_comments: false, is_portable: false }
            .fmt(f)
    }
}

struct Text<'a> {
    program: &'a Program,
    names: BTreeMap<NodeId, &'a str>,
    /// Whether fields are named in comments: the program must be well formed.
    has_comments: bool,
    /// Whether numbers of elements, places in files and the number of the part are left out.
    is_portable: bool,
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { program, names, has_comments, is_portable } = self;
        let fields = has_comments.then(|| Fields::of(program));
        let named = named(program);
        let printer = Printer { program, names, named, fields, is_portable: *is_portable };
        let mut lines = Lines { to: f, fields: printer.fields.as_ref() };
        write!(lines, "{}", By(|f| printer.program(f)))
    }
}

/// Which terms are written once and referred to by name.
fn named(program: &Program) -> Vec<bool> {
    let n = program.terms.len();
    let mut uses = vec![0u32; n];
    let mut use_all = |terms: &[TermId]| {
        for term in terms {
            if let Some(count) = uses.get_mut(term.0 as usize) {
                *count += 1;
            }
        }
    };
    program.terms.iter().for_each(|term| use_all(&term.operands()));
    program.lookups.iter().for_each(|lookup| use_all(&lookup.key));
    program.steps.iter().for_each(|step| use_all(&step.terms()));
    let (mut named, mut sizes) = (vec![false; n], vec![1usize; n]);
    for (i, term) in program.terms.iter().enumerate() {
        let part = |o: &TermId| match named.get(o.0 as usize) {
            Some(false) => sizes[o.0 as usize],
            _ => 1,
        };
        sizes[i] = 1 + term.operands().iter().map(part).sum::<usize>();
        named[i] = sizes[i] > MAX_INLINE || (sizes[i] > 1 && uses[i] > 1);
    }
    named
}

struct Printer<'a> {
    program: &'a Program,
    names: &'a BTreeMap<NodeId, &'a str>,
    named: Vec<bool>,
    fields: Option<Fields>,
    is_portable: bool,
}

/// Names of the fields that a line is about.
struct Fields {
    layouts: Layouts,
    /// The step that the line belongs to, or that uses it first.
    step: Cell<Option<StepId>>,
    /// Names of the line so far.
    line: RefCell<Vec<String>>,
}

impl Fields {
    fn of(program: &Program) -> Self {
        let layouts = Layouts::of(program);
        Self { layouts, step: Cell::new(None), line: RefCell::default() }
    }

    /// Names bits of the data in a layout, if it is known which field they are.
    fn name(&self, layout: &Layout, start: i32, width: u32) {
        let Some(name) = layout.name(start, width) else { return };
        let header = &layout.headers()[name.header];
        // What asks for the type of frames does not know yet what is behind it.
        let is_framed = layout.headers()[0].kind == Kind::Ethernet;
        let is_guess = header.assumed && is_framed && self.layouts.asks_type();
        let mut line = self.line.borrow_mut();
        if !is_guess && !line.contains(&name.text) {
            line.push(name.text);
        }
    }

    /// Names a field of the packet as it came in.
    fn read(&self, field: Field) {
        if let (Some(step), Base::Data) = (self.step.get(), field.base) {
            self.name(self.layouts.at(step), field.offset.into(), field.width.into());
        }
    }

    /// Names bytes of the packet as it leaves.
    fn written(&self, layout: &Layout, write: &Write) {
        let (start, width) = (8 * write.offset, 8 * u32::from(write.length));
        let parts = match layout.name(start, width) {
            Some(_) => vec![(start, width)],
            None => layout.parts(start, width),
        };
        parts.into_iter().for_each(|(start, width)| self.name(layout, start, width));
    }
}

/// Lines with the names of their fields behind them.
struct Lines<'a, 'f> {
    to: &'a mut Formatter<'f>,
    fields: Option<&'a Fields>,
}

impl fmt::Write for Lines<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive('\n') {
            let Some(line) = part.strip_suffix('\n') else {
                self.to.write_str(part)?;
                continue;
            };
            self.to.write_str(line)?;
            let names = self.fields.map(|fields| fields.line.take()).unwrap_or_default();
            if !names.is_empty() {
                write!(self.to, "  // {}", names.join(", "))?;
            }
            self.to.write_str("\n")?;
        }
        Ok(())
    }
}

/// Something that is printed by a function.
struct By<F: Fn(&mut Formatter<'_>) -> fmt::Result>(F);

impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> Display for By<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    things: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    things.into_iter().enumerate().try_for_each(|(i, thing)| {
        f.write_str(if i == 0 { "" } else { ", " })?;
        each(f, thing)
    })
}

/// A field as the packet came in. Those of the data have no names: what stands where the program
/// begins is another matter than where fields' names count from.
struct InputField(Field);

impl Display for InputField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Field { base: Base::Data, offset, width } => write!(f, "data[{offset}+{width}]"),
            field => field.fmt(f),
        }
    }
}

impl Display for StepId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl Display for Continuation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "continuation {}", self.0)
    }
}

impl Display for TableId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.0)
    }
}

/// Widths in bits: `(32, 16)`.
struct Widths<'a>(&'a [u16]);

impl Display for Widths<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        list(f, self.0, |f, width| write!(f, "{width}"))?;
        f.write_str(")")
    }
}

/// `== 6` or `in {6, 17}`.
fn in_set(f: &mut Formatter<'_>, notation: Notation, set: &IntervalSet) -> fmt::Result {
    match (set.as_single(), notation) {
        (Some(value), Notation::Decimal) => write!(f, "== {}", Constant(value)),
        (Some(value), _) => write!(f, "== {}", Number(notation, value)),
        (None, _) => write!(f, "in {}", Numbers(notation, set)),
    }
}

impl Display for LookupId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "l{}", self.0)
    }
}

impl Printer<'_> {
    fn program(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "program behind {}", self.port(self.program.entry))?;
        match self.program.continuation {
            Some(continuation) if !self.is_portable => writeln!(f, " from {continuation}")?,
            _ => writeln!(f)?,
        }
        if !self.names.is_empty() && !self.is_portable {
            f.write_str("elements ")?;
            list(f, self.names, |f, (node, name)| write!(f, "{node} {}", Name(name)))?;
            writeln!(f)?;
        }
        for (i, state) in self.program.state.iter().enumerate() {
            let (id, element) = (self.state(StateId(i as u16)), self.node(state.element));
            write!(f, "state {id} at {element}: ")?;
            match &state.kind {
                StateKind::Counter => writeln!(f, "counter")?,
                StateKind::Flows { capacity, widths } => {
                    writeln!(f, "flows {capacity} {}", Widths(widths))?;
                }
                StateKind::Cells { width, initial } => {
                    write!(f, "cells {width} (")?;
                    list(f, initial, |f, &value| Constant(value).fmt(f))?;
                    writeln!(f, ")")?;
                }
            }
        }
        for (i, table) in self.program.tables.iter().enumerate() {
            self.table(f, TableId(i as u16), table)?;
        }
        let mut shown = BTreeSet::new();
        for (i, lookup) in self.program.lookups.iter().enumerate() {
            let used = |step: &Step| matches!(step, Step::Lookup { lookup, .. } if usize::from(lookup.0) == i);
            self.go_to(self.program.steps.iter().position(used));
            self.definitions(f, &lookup.key, &mut shown)?;
            write!(
                f,
                "{}: {} find {} ",
                LookupId(i as u16),
                self.node(lookup.element),
                lookup.table
            )?;
            self.tuple(f, &lookup.key)?;
            writeln!(f, " binding {} + {}", lookup.values, lookup.common)?;
        }
        writeln!(f)?;
        for (i, step) in self.program.steps.iter().enumerate() {
            self.go_to(Some(i));
            self.definitions(f, &step.terms(), &mut shown)?;
            write!(f, "{}: ", StepId(i as u32))?;
            self.step(f, step)?;
        }
        Ok(())
    }

    /// What is printed from now on belongs to that step.
    fn go_to(&self, step: Option<usize>) {
        if let Some(fields) = &self.fields {
            fields.step.set(step.map(|step| StepId(step as u32)));
        }
    }

    fn table(&self, f: &mut Formatter<'_>, id: TableId, table: &Table) -> fmt::Result {
        write!(f, "{id} {}: ", self.node(table.element))?;
        match &table.entries {
            Entries::Flows(state) => {
                writeln!(f, "{} {}", self.state(*state), Widths(&table.widths))
            }
            Entries::Prefixes(prefixes) => {
                writeln!(f, "routes {}", Widths(&table.widths))?;
                let notation = Notation::of_width(prefixes.width());
                prefixes.entries().try_for_each(|entry| {
                    write!(f, "  {}/{} => (", Number(notation, entry.prefix), entry.length)?;
                    list(f, entry.row.iter(), |f, &number| Constant(number).fmt(f))?;
                    writeln!(f, ")")
                })
            }
            Entries::Rules(rules) => {
                writeln!(f, "rules {}", Widths(&table.widths))?;
                self.rules(f, rules, |f, key, set| {
                    let width = table.widths.get(key).copied().unwrap_or(128);
                    write!(f, "key {key} ")?;
                    in_set(f, Notation::of_width(width), set)
                })
            }
        }
    }

    fn rules(
        &self,
        f: &mut Formatter<'_>,
        rules: &[ClassifyRule],
        test: impl Fn(&mut Formatter<'_>, usize, &IntervalSet) -> fmt::Result,
    ) -> fmt::Result {
        for rule in rules {
            write!(f, "  {}: ", rule.number)?;
            for (i, cube) in rule.cubes.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { " || " })?;
                for (i, (key, set)) in cube.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { " && " })?;
                    test(f, usize::from(*key), set)?;
                }
                f.write_str(if cube.is_empty() { "true" } else { "" })?;
            }
            f.write_str(if rule.cubes.is_empty() { "false" } else { "" })?;
            write!(f, " arm {}", rule.arm)?;
            match rule.span {
                Some(span) if !self.is_portable => {
                    writeln!(f, " span {}: {}..{}", span.file.0, span.start, span.end)?
                }
                _ => writeln!(f)?,
            }
        }
        Ok(())
    }

    fn node(&self, node: NodeId) -> impl Display + '_ {
        By(move |f| match self.names.get(&node) {
            Some(name) => Name(name).fmt(f),
            None => write!(f, "#{node}"),
        })
    }

    fn port(&self, port: Port) -> impl Display + '_ {
        By(move |f| write!(f, "[{}] {}", port.port, self.node(port.node)))
    }

    fn state(&self, state: StateId) -> impl Display + '_ {
        By(move |f| match self.program.state.get(usize::from(state.0)) {
            Some(of) => write!(f, "{} of {:?}", Name(of.name), of.owner),
            None => write!(f, "#{}", state.0),
        })
    }

    /// The terms with names that these are made from, as far as they were not shown yet.
    fn definitions(
        &self,
        f: &mut Formatter<'_>,
        terms: &[TermId],
        shown: &mut BTreeSet<TermId>,
    ) -> fmt::Result {
        let (mut waiting, mut seen) = (terms.to_vec(), BTreeSet::new());
        while let Some(term) = waiting.pop() {
            if let Some(made) = self.program.terms.get(term.0 as usize)
                && !shown.contains(&term)
                && seen.insert(term)
            {
                waiting.extend(made.operands());
            }
        }
        for term in seen {
            shown.insert(term);
            if self.named[term.0 as usize] {
                writeln!(f, "  t{} = {}", term.0, By(|f| self.made(f, term, level::OR)))?;
            }
        }
        Ok(())
    }

    fn tuple(&self, f: &mut Formatter<'_>, terms: &[TermId]) -> fmt::Result {
        f.write_str("(")?;
        list(f, terms, |f, &term| self.term(f, term, level::OR))?;
        f.write_str(")")
    }

    /// A term, by its name if it has one.
    fn term(&self, f: &mut Formatter<'_>, term: TermId, least: u8) -> fmt::Result {
        match self.named.get(term.0 as usize) {
            Some(false) => self.made(f, term, least),
            _ => write!(f, "t{}", term.0),
        }
    }

    fn value(&self, term: TermId) -> impl Display + '_ {
        By(move |f| self.term(f, term, level::OR))
    }

    /// What a term is made from.
    fn made(&self, f: &mut Formatter<'_>, term: TermId, least: u8) -> fmt::Result {
        match self.program.term(term) {
            Term::Const(value) => Constant(*value).fmt(f),
            Term::Input(field) => {
                self.fields.iter().for_each(|fields| fields.read(*field));
                InputField(*field).fmt(f)
            }
            Term::Position(header) => write!(f, "position({})", Base::Header(*header)),
            Term::Bound(lookup, index) => write!(f, "{lookup}.{index}"),
            Term::Cell(cells, index) => write!(f, "cell({}, {index})", self.state(*cells)),
            Term::Sum16 { offset, length } => {
                write!(f, "sum16({offset}, {})", self.value(*length))
            }
            Term::Binary(BinaryOp::Add | BinaryOp::Sub, ..) if self.is_portable => {
                let mut parts = [Vec::new(), Vec::new()];
                self.addends(term, false, &mut parts);
                parts.iter_mut().for_each(|all| all.sort());
                write!(f, "({} less {})", parts[0].join(" + "), parts[1].join(" + "))
            }
            Term::Binary(op, a, b) => match op.operator() {
                Some((operator, level)) => {
                    f.write_str(if level < least { "(" } else { "" })?;
                    self.term(f, *a, level)?;
                    write!(f, " {operator} ")?;
                    self.term(f, *b, level + 1)?;
                    f.write_str(if level < least { ")" } else { "" })
                }
                None => {
                    f.write_str(if *op == BinaryOp::Min { "min" } else { "max" })?;
                    self.tuple(f, &[*a, *b])
                }
            },
            Term::Slice { of, low, width } => {
                self.term(f, *of, level::UNARY + 1)?;
                write!(f, ".bits({low}+{width})")
            }
            Term::Concat { high, low, width } => {
                write!(f, "concat({}, {}, {width})", self.value(*high), self.value(*low))
            }
            Term::OnesSum(sum) => self.ones_sum(f, sum),
            Term::NonZero(sum) => write!(f, "nonzero({})", self.value(*sum)),
            Term::Choose(atom, yes, no) => {
                f.write_str("choose(")?;
                self.atom(f, atom)?;
                write!(f, ", {}, {})", self.value(*yes), self.value(*no))
            }
            Term::Map(of, table) => {
                write!(f, "map({}, ", self.value(*of))?;
                for (low, high, value) in table.intervals() {
                    let numbers = IntervalSet::range(*low, *high);
                    write!(f, "{} {}, ", Numbers(self.notation(*of), &numbers), Constant(*value))?;
                }
                f.write_str("else 0)")
            }
            Term::Hash(function, numbers) => {
                f.write_str(function.name())?;
                self.tuple(f, numbers)
            }
            Term::Now => f.write_str("now"),
        }
    }

    /// What a sum adds and takes off. In which order depends on numbers of terms, so on the program around it.
    fn addends(&self, term: TermId, is_off: bool, parts: &mut [Vec<String>; 2]) {
        let is_named = |of: TermId| self.named.get(of.0 as usize).is_none_or(|named| *named);
        let Term::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = self.program.term(term)
        else {
            return parts[usize::from(is_off)].push(self.value(term).to_string());
        };
        for (of, is_off) in [(*a, is_off), (*b, is_off != (*op == BinaryOp::Sub))] {
            match is_named(of) {
                true => parts[usize::from(is_off)].push(self.value(of).to_string()),
                false => self.addends(of, is_off, parts),
            }
        }
    }

    fn ones_sum(&self, f: &mut Formatter<'_>, sum: &OnesSum) -> fmt::Result {
        f.write_str(if sum.complement { "~ones(" } else { "ones(" })?;
        let plus = sum.plus.iter().map(|term| ("", *term));
        let minus = sum.minus.iter().map(|term| ("~", *term));
        for (i, (sign, term)) in plus.chain(minus).enumerate() {
            f.write_str(if i == 0 { sign } else { " + " })?;
            f.write_str(if i == 0 { "" } else { sign })?;
            self.term(f, term, level::UNARY)?;
        }
        match sum.constant {
            0 => f.write_str(")"),
            constant => write!(f, " + {constant})"),
        }
    }

    /// How the numbers that a term is compared with are written: as addresses if the term is a
    /// field as wide as one.
    fn notation(&self, term: TermId) -> Notation {
        match self.program.terms.get(term.0 as usize) {
            Some(Term::Input(Field { base: Base::Data, width, .. })) => Notation::of_width(*width),
            Some(Term::Input(field)) => Notation::of(*field),
            _ => Notation::Decimal,
        }
    }

    fn test(&self, f: &mut Formatter<'_>, term: TermId, set: &IntervalSet) -> fmt::Result {
        self.term(f, term, level::NUMBER)?;
        f.write_str(" ")?;
        in_set(f, self.notation(term), set)
    }

    fn atom(&self, f: &mut Formatter<'_>, atom: &Atom) -> fmt::Result {
        match atom {
            Atom::Test(term, set) => self.test(f, *term, set),
            Atom::Compare(op, a, b) => {
                // What is equal to a constant is a test.
                let constant = matches!(self.program.terms.get(b.0 as usize), Some(Term::Const(_)));
                let marked = *op == CompareOp::Eq && constant;
                f.write_str(if marked { "compare(" } else { "" })?;
                self.term(f, *a, level::NUMBER)?;
                write!(f, " {} ", op.operator())?;
                self.term(f, *b, level::NUMBER)?;
                f.write_str(if marked { ")" } else { "" })
            }
        }
    }

    fn step(&self, f: &mut Formatter<'_>, step: &Step) -> fmt::Result {
        match step {
            Step::Test { atom, yes, no, element } => {
                write!(f, "{} if ", self.node(*element))?;
                self.atom(f, atom)?;
                writeln!(f, " {yes} else {no}")
            }
            Step::Switch { on, cases, otherwise, element } => {
                write!(f, "{} switch {} ", self.node(*element), self.value(*on))?;
                for (set, step) in cases {
                    write!(f, "{} {step}, ", Numbers(self.notation(*on), set))?;
                }
                writeln!(f, "else {otherwise}")
            }
            Step::Classify { table, keys, rules, arms, otherwise, element } => {
                write!(f, "{} classify ", self.node(*element))?;
                if let Some(table) = table {
                    write!(f, "{table} ")?;
                }
                self.tuple(f, keys)?;
                f.write_str(" arms ")?;
                list(f, arms, |f, step| step.fmt(f))?;
                writeln!(f, " else {otherwise}")?;
                if table.is_some() {
                    return Ok(());
                }
                // The fields of all rules stand behind the keys.
                self.go_to(None);
                self.rules(f, rules, |f, key, set| match keys.get(key) {
                    // Of equal keys the first is meant.
                    Some(term) if keys.iter().position(|k| k == term) == Some(key) => {
                        self.test(f, *term, set)
                    }
                    _ => {
                        write!(f, "key {key} ")?;
                        in_set(f, Notation::Decimal, set)
                    }
                })
            }
            Step::Lookup { lookup, hit, miss } => writeln!(f, "find {lookup} {hit} else {miss}"),
            Step::Exit(exit) => {
                f.write_str("exit ")?;
                for copy in &exit.copies {
                    f.write_str("copy ")?;
                    self.exit(f, copy)?;
                    f.write_str("  ")?;
                }
                self.exit(f, exit)
            }
        }
    }

    /// An exit without its copies.
    fn exit(&self, f: &mut Formatter<'_>, exit: &Exit) -> fmt::Result {
        f.write_str(if exit.visited.is_empty() { "visited" } else { "visited " })?;
        list(f, &exit.visited, |f, &port| self.port(port).fmt(f))?;
        writeln!(f)?;
        for effect in &exit.effects {
            self.effect(f, effect)?;
        }
        let writes = &exit.writes;
        if writes.start != 0 {
            writeln!(f, "  start {}", writes.start)?;
        }
        if let Some(length) = writes.length {
            writeln!(f, "  length {}", self.value(length))?;
        }
        let fields = self.fields.as_ref().filter(|_| !writes.bytes.is_empty());
        let leaving = fields.and_then(|fields| {
            let (step, layouts) = (fields.step.get()?, &fields.layouts);
            let facts = layouts.facts(step)?;
            Some((fields, layouts.at(step).leaving(self.program, writes, facts)))
        });
        let spaces =
            [("data", &writes.bytes), ("anno", &writes.annotations), ("carried", &writes.carried)];
        for (base, all) in spaces {
            for write in all {
                if let (Some((fields, leaving)), "data") = (&leaving, base) {
                    fields.written(leaving, write);
                }
                let Write { offset, length, value } = write;
                let end = i64::from(*offset) + i64::from(*length);
                writeln!(f, "  {base}[{offset}..{end}] = {}", self.value(*value))?;
            }
        }
        let headers = [Header::Mac, Header::Network, Header::Transport];
        for (header, mark) in headers.into_iter().zip(writes.marks) {
            let header = Base::Header(header);
            match mark {
                Mark::Keep => {}
                Mark::Clear => writeln!(f, "  unmark {header}")?,
                Mark::At(term) => writeln!(f, "  mark {header} at {}", self.value(term))?,
            }
        }
        if let Some(term) = writes.packet_type {
            writeln!(f, "  type = {}", self.value(term))?;
        }
        if let Some(term) = writes.timestamp {
            writeln!(f, "  timestamp = {}", self.value(term))?;
        }
        match exit.end {
            End::Push { to, native: false } => writeln!(f, "  push {}", self.port(to))?,
            End::Push { to, native: true } => writeln!(f, "  push {}, slow path", self.port(to))?,
            End::Drop { element, reason } => {
                writeln!(f, "  drop {} at {}", Name(reason.0), self.node(element))?;
            }
            End::Handoff { to } => writeln!(f, "  hand off to {to}")?,
        }
        match exit.barrier {
            None => Ok(()),
            Some(Barrier::Opaque(why)) => {
                writeln!(f, "  because {} {why:?}", Barrier::Opaque("").code())
            }
            Some(why) => writeln!(f, "  because {}", why.code()),
        }
    }

    fn effect(&self, f: &mut Formatter<'_>, effect: &Effect) -> fmt::Result {
        match effect {
            Effect::Count { counter, length } => {
                writeln!(f, "  count {} by {}", self.state(*counter), self.value(*length))
            }
            Effect::Note { element, reason } => {
                writeln!(f, "  note {} at {}", Name(reason.0), self.node(*element))
            }
            Effect::Update { lookup, common, expiry, guarantee } => {
                write!(f, "  update {lookup} common ")?;
                self.tuple(f, common)?;
                let (expiry, guarantee) = (self.value(*expiry), self.value(*guarantee));
                writeln!(f, " expiry {expiry} guarantee {guarantee}")
            }
            Effect::Set { cells, index, value } => {
                writeln!(f, "  set {} [{index}] = {}", self.state(*cells), self.value(*value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::anno;
    use crate::model::Reason;
    use crate::program::{Lookup, StateOf, Writes};

    #[test]
    fn a_program_reads_well() {
        let t = TermId;
        let bits = |offset, width| Term::Input(Field::bits(Base::Data, offset, width));
        let lookup = LookupId(0);
        let terms = vec![
            bits(0, 4),
            bits(128, 32),
            bits(64, 16),
            Term::Const(256),
            Term::Binary(BinaryOp::Sub, t(2), t(3)),
            Term::Bound(lookup, 1),
            Term::Binary(BinaryOp::Add, t(4), t(5)),
            Term::OnesSum(OnesSum {
                complement: true,
                plus: vec![t(6)],
                minus: vec![t(2)],
                constant: 5,
            }),
            Term::Input(anno::PAINT),
            Term::Binary(BinaryOp::Mul, t(6), t(3)),
            Term::Choose(Atom::Compare(CompareOp::Lt, t(2), t(3)), t(9), t(8)),
            Term::Now,
        ];
        let set = IntervalSet::single;
        let rule = |cubes: Vec<_>, number| ClassifyRule {
            cubes: cubes.into(),
            arm: 0,
            number,
            span: None,
        };
        let cube = vec![(0, set(4)), (1, IntervalSet::prefix(32, 0x0a00_0000, 8))];
        let port = |node, port| Port { node, port };
        let writes = Writes {
            start: -4,
            length: Some(t(3)),
            bytes: vec![Write { offset: -2, length: 2, value: t(7) }],
            annotations: vec![Write { offset: 16, length: 1, value: t(10) }],
            carried: Vec::new(),
            marks: [Mark::Clear, Mark::At(t(3)), Mark::Keep],
            packet_type: None,
            timestamp: Some(t(11)),
        };
        let update = Effect::Update { lookup, common: vec![t(5)], expiry: t(11), guarantee: t(3) };
        let effects = vec![Effect::Count { counter: StateId(1), length: t(3) }, update];
        let end = |end, writes, effects, barrier| {
            let visited = vec![port(0, 0), port(1, 2)];
            Step::Exit(Box::new(Exit { effects, writes, end, barrier, visited, copies: vec![] }))
        };
        let push = End::Push { to: port(1, 2), native: true };
        let drop = End::Drop { element: 1, reason: Reason("no-route") };
        let s = StepId;
        let steps = vec![
            Step::Classify {
                table: None,
                keys: vec![t(0), t(1)],
                rules: vec![rule(vec![cube, vec![(0, set(6))]], 0), rule(vec![vec![]], 5)].into(),
                arms: vec![s(1)],
                otherwise: s(4),
                element: 0,
            },
            Step::Test { atom: Atom::Test(t(0), set(4).into()), yes: s(2), no: s(4), element: 1 },
            Step::Lookup { lookup, hit: s(3), miss: s(4) },
            end(push, writes, effects, Some(Barrier::Cells)),
            end(drop, Writes::default(), Vec::new(), None),
        ];
        let state = |name, kind| StateOf { owner: "nat".into(), element: 1, name, kind };
        let program = Program {
            continuation: None,
            entry: port(0, 0),
            terms,
            state: vec![
                state("flows", StateKind::Flows { capacity: 8, widths: Vec::new() }),
                state("hits", StateKind::Counter),
            ],
            tables: vec![Table {
                element: 1,
                widths: vec![32, 4],
                entries: Entries::Flows(StateId(0)),
            }],
            lookups: vec![Lookup {
                table: TableId(0),
                key: vec![t(1), t(0)],
                values: 2,
                common: 1,
                element: 1,
            }],
            steps,
        };
        let expected = r#"program behind [0] #0
state flows of "nat" at #1: flows 8 ()
state hits of "nat" at #1: counter
table 0 #1: flows of "nat" (32, 4)
l0: #1 find table 0 (data[128+32], data[0+4]) binding 2 + 1

s0: #0 classify (data[0+4], data[128+32]) arms s1 else s4
  0: data[0+4] == 4 && data[128+32] in {10.0.0.0/8} || data[0+4] == 6 arm 0
  5: true arm 0
s1: #1 if data[0+4] == 4 s2 else s4
s2: find l0 s3 else s4
  t6 = data[64+16] - 256 + l0.1
s3: exit visited [0] #0, [2] #1
  count hits of "nat" by 256
  update l0 common (l0.1) expiry now guarantee 256
  start -4
  length 256
  data[-2..0] = ~ones(t6 + ~data[64+16] + 5)
  anno[16..17] = choose(data[64+16] < 256, t6 * 256, anno.paint)
  unmark mac
  mark net at 256
  timestamp = now
  push [2] #1, slow path
  because cells
s4: exit visited [0] #0, [2] #1
  drop no-route at #1
"#;
        assert_eq!(program.to_string(), expected);
        // By names, it is the same with another number, and with the parts of sums in another order.
        let portable =
            |program: &Program| program.portable_text(|node| ["rt", "nat"][node]).to_string();
        let mut other = program.clone();
        other.continuation = Some(Continuation(7));
        other.terms[4] = Term::Binary(BinaryOp::Add, t(2), t(5));
        other.terms[6] = Term::Binary(BinaryOp::Sub, t(4), t(3));
        assert_ne!(other.to_string(), program.to_string());
        assert_eq!(portable(&other), portable(&program));
        other.terms[6] = Term::Binary(BinaryOp::Sub, t(3), t(4));
        assert_ne!(portable(&other), portable(&program));
        assert_ne!(program.portable_text(|_| "nat").to_string(), portable(&program));
    }

    #[test]
    fn deep_terms_take_no_stack_and_broken_programs_are_shown_too() {
        let terms: Vec<Term> = std::iter::once(Term::Const(1))
            .chain((0..100_000).map(|i| Term::NonZero(TermId(i))))
            .chain([Term::NonZero(TermId(u32::MAX))])
            .collect();
        let on = TermId(terms.len() as u32 - 1);
        let deep = TermId(on.0 - 1);
        let key = vec![deep];
        let step = Step::Switch { on, cases: Vec::new(), otherwise: StepId(9), element: 7 };
        let entry = Port { node: 3, port: 0 };
        let lookups = vec![Lookup { table: TableId(3), key, values: 0, common: 0, element: 0 }];
        let (state, tables) = (Vec::new(), Vec::new());
        let program =
            Program { entry, continuation: None, terms, state, tables, lookups, steps: vec![step] };
        let text = program.to_string();
        assert!(text.contains("s0: #7 switch nonzero(t4294967295) else s9"), "{text}");
    }
}
