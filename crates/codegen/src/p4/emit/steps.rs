//! Steps of segments as tables and conditions.
//!
//! [`nodes`](super::nodes) says which steps become which table. Metadata holds the number of the table that a packet meets
//! next (`at`), the step at which it goes on there (`arm`), which of several lists of entries it is looked up in (`list`),
//! and what was found (`next`). Tables of a level are exclusive (Lemur §2.5.2.2). A test that is no set of masks is an `if`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::layout::Layout;
use ir::program::{Atom, Entries, LookupId, Program, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, PrefixTable, Span};

use super::super::Arch;
use super::checksum;
use super::exit;
use super::nodes::{self, Spec, Tree};
use super::number::{Expr, Numbers, Rows, found};
use super::part::Part;
use super::pipeline::{
    Action, CLASS, Call, Entry, Key, Kind, Match, Pipeline, Statement, Table, When,
};
use crate::headers::{Instance, Need, once, placed, tags};
use crate::number::ones;
use crate::rule::prefixes;
use crate::{Device, Lack, Presumed, Presumption, Segment};

/// Entries of a table.
const MOST_ENTRIES: usize = 1 << 17;
/// Prefixes that one range may become.
const MOST_PREFIXES: usize = 64;
/// The widest key that Tofino matches by ranges.
const RANGE_WIDTH: u16 = 20;
/// Bits of the number of a list of entries among those of a table: with an IPv4 address a row of TCAM.
const LIST: u16 = 12;
const MOST_LISTS: usize = 1 << LIST;
/// Arms that one chain of conditions tells apart.
const MOST_ARMS: usize = 64;
/// Numbers of arms and classes.
const MOST_STEPS: usize = 1 << 16;

/// A row of a table that is made: what each key has to be, `None` if that does not matter.
struct Line {
    sets: Vec<Option<IntervalSet>>,
    call: Call,
    origin: String,
}

/// Whether a step can be decided, and what has to hold of packets for that.
pub(super) fn decides(
    arch: Arch,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumption>, Lack> {
    let (places, rows) = (placed(layout), Rows::new());
    let mut numbers = Numbers {
        arch,
        program,
        placed: &places,
        facts: None,
        rows: &rows,
        slots: None,
        sums: None,
        before: None,
        variables: 0,
    };
    let mut needed: BTreeSet<Instance> = BTreeSet::new();
    let mut key = |numbers: &mut Numbers<'_>, term: TermId, sets: &[&IntervalSet]| {
        let of = numbers.whole(term)?;
        let kind = kind(arch, of.width, sets.iter().copied(), true);
        for set in sets {
            matches(arch, set, of.width, kind)?;
        }
        needed.extend(of.needs);
        Ok(())
    };
    match program.step(step) {
        Step::Exit(_) => {}
        Step::Test { atom, .. } => match (numbers.condition(atom), atom) {
            (Ok(of), Atom::Test(term, _)) => {
                if let Some(ip) = numbers.verified(*term) {
                    let mut needs = ip.needs.clone();
                    let transport = places.iter().find(|of| of.instance == Instance::Transport);
                    // Its header has no options: what follows it says so.
                    let options = transport.map(|of| of.needs.clone()).ok_or(Lack::Checksum)?;
                    needs.extend(options.into_iter().filter(|need| need.0.width == 4));
                    return presumptions(arch, needs);
                }
                needed.extend(of.needs);
            }
            (Ok(of), Atom::Compare(..)) => needed.extend(of.needs),
            (Err(Lack::Match(..)), Atom::Test(term, set)) => {
                key(&mut numbers, *term, &[set])?;
            }
            (Err(lack), _) => return Err(lack),
        },
        Step::Switch { on, cases, .. } => {
            key(&mut numbers, *on, &cases.iter().map(|case| &case.0).collect::<Vec<_>>())?;
        }
        Step::Classify { keys, rules, .. } => {
            for (at, term) in keys.iter().enumerate() {
                let tests = rules.iter().flat_map(|rule| rule.cubes.iter().flatten());
                let sets: Vec<_> =
                    tests.filter(|test| usize::from(test.0) == at).map(|test| &test.1).collect();
                key(&mut numbers, *term, &sets)?;
            }
        }
        Step::Lookup { lookup, .. } => {
            let (of, _) = routes(program, *lookup)?;
            key(&mut numbers, of, &[])?;
        }
    }
    let needs =
        places.iter().filter(|of| needed.contains(&of.instance)).flat_map(|of| of.needs.clone());
    presumptions(arch, needs.collect())
}

/// Whether an exit can be done, and what the device tests before.
pub(super) fn does(
    arch: Arch,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumed>, Lack> {
    let (places, rows) = (placed(layout), Rows::new());
    let mut numbers = Numbers {
        arch,
        program,
        placed: &places,
        facts: None,
        rows: &rows,
        slots: None,
        sums: None,
        before: None,
        variables: 0,
    };
    let needs = once(exit::needs(&mut numbers, step)?);
    is_in_frame(arch, &needs)?;
    // A header that is cut off is not extracted, and nothing is written to it.
    let is_tested = |need: &Need| arch == Arch::V1model || need.0 != ir::field::meta::LEN;
    Ok(needs.into_iter().filter(is_tested).map(|(field, set)| Presumed::In(field, set)).collect())
}

/// Where headers end at most that a Tofino extracts: its parser drops a frame that ends before, and each has 60 bytes
/// (IEEE 802.3 §3.2.7). IPv6 is looked at without tags only, and nothing behind it.
const LAST_BYTE: u128 = 54;

/// Whether headers are never cut off, where that is not tested.
fn is_in_frame(arch: Arch, needs: &[Need]) -> Result<(), Lack> {
    let length = needs.iter().find(|need| need.0 == ir::field::meta::LEN);
    let is_long = length.is_some_and(|need| IntervalSet::min(&need.1) > Some(LAST_BYTE));
    if arch == Arch::Tna && is_long { Err(Lack::Length) } else { Ok(()) }
}

fn presumptions(arch: Arch, needs: Vec<Need>) -> Result<Vec<Presumption>, Lack> {
    let one = |(field, set): Need| {
        let is_length = field == ir::field::meta::LEN;
        let lack = (is_length && arch == Arch::Tna).then_some(Lack::Length);
        Presumption { when: Vec::new(), holds: Presumed::In(field, set), lack }
    };
    let needs = once(needs);
    is_in_frame(arch, &needs)?;
    let needs = needs.into_iter();
    let is_asked =
        |need: &Need| need.0 != ir::field::meta::LEN || IntervalSet::min(&need.1) > Some(14);
    Ok(needs.filter(is_asked).map(one).collect())
}

pub(super) fn routes(
    program: &Program,
    lookup: LookupId,
) -> Result<(TermId, Arc<PrefixTable>), Lack> {
    let asked = program.lookups.get(usize::from(lookup.0)).ok_or(Lack::Flows)?;
    let table = program.tables.get(usize::from(asked.table.0)).ok_or(Lack::Flows)?;
    let Entries::Prefixes(prefixes) = &table.entries else { return Err(Lack::Flows) };
    let &[key] = &asked.key[..] else { return Err(Lack::Found) };
    Ok((key, Arc::clone(prefixes)))
}

/// How a key is matched by these sets.
fn kind<'s>(
    arch: Arch,
    width: u16,
    sets: impl Iterator<Item = &'s IntervalSet>,
    all_say: bool,
) -> Kind {
    let (mut exact, mut ranges, mut masks) = (all_say, 0, 0);
    for set in sets {
        exact &= set.as_single().is_some();
        ranges += set.intervals().len();
        masks += match set.as_masked(width) {
            Some(_) => 1,
            None => prefixes(set, width, MOST_PREFIXES).map_or(MOST_PREFIXES, |all| all.len()),
        };
    }
    match exact {
        true => Kind::Exact,
        false if masks > ranges && (arch == Arch::V1model || width <= RANGE_WIDTH) => Kind::Range,
        false => Kind::Ternary,
    }
}

/// What entries match for a set.
fn matches(_: Arch, set: &IntervalSet, width: u16, kind: Kind) -> Result<Vec<Match>, Lack> {
    let most = ones(width.into());
    let set = set.intersect(&IntervalSet::range(0, most));
    Ok(match kind {
        Kind::Exact | Kind::Lpm => set.as_single().map(Match::Exact).into_iter().collect(),
        Kind::Range => {
            set.intervals().iter().map(|(low, high)| Match::Range(*low, *high)).collect()
        }
        Kind::Ternary => match set.as_masked(width) {
            Some((value, mask)) => vec![Match::Masked(value, mask)],
            None => {
                let all = prefixes(&set, width, MOST_ENTRIES.min(1 << 12)).ok();
                let all = all.ok_or_else(|| Lack::Match("a number".into(), None))?;
                all.into_iter().map(|(value, mask)| Match::Masked(value, mask)).collect()
            }
        },
    })
}

/// Makes the pipeline of a device.
pub(super) struct Builder<'a> {
    arch: Arch,
    device: &'a Device<'a>,
    pub(super) pipeline: Pipeline,
    /// Numbers of tables that were given.
    tables: u16,
}

type Failure = (StepId, Lack);

impl<'a> Builder<'a> {
    pub(super) fn new(arch: Arch, device: &'a Device<'a>) -> Self {
        Self { arch, device, pipeline: Pipeline::default(), tables: 0 }
    }

    /// Adds all segments.
    pub(super) fn build(&mut self) -> Result<(), (usize, StepId, Lack)> {
        let mut base = 0;
        self.pipeline.metadata.extend(
            [("at", 16), ("arm", 16), ("next", 16), ("list", LIST), (CLASS, 16)]
                .map(|(name, width)| (name.to_string(), width)),
        );
        self.pipeline.headers.insert(Instance::Ethernet);
        if self.arch == Arch::Tna {
            for segment in &self.device.segments {
                let places: Vec<_> = segment.layouts.iter().map(placed).collect();
                checksum::taken_off(&segment.program, &places, &mut self.pipeline.sums);
            }
            for (header, words) in &self.pipeline.sums {
                self.pipeline.headers.insert(*header);
                self.pipeline.headers.extend(words.iter().map(|word| word.0));
                self.pipeline.metadata.extend(checksum::metadata(*header));
            }
        }
        for (index, segment) in self.device.segments.iter().enumerate() {
            let statements =
                self.part(segment, base).map_err(|(step, lack)| (index, step, lack))?;
            self.pipeline.segments.push((segment.ingress.clone(), statements));
            base += segment.program.steps.len() as u32;
            if base as usize > MOST_STEPS {
                return Err((index, StepId(0), Lack::Room("steps", base as usize, MOST_STEPS)));
            }
        }
        Ok(())
    }

    fn part(&mut self, segment: &'a Segment, base: u32) -> Result<Vec<Statement>, Failure> {
        for layout in &segment.layouts {
            for (known, tag) in self.pipeline.tags.iter_mut().zip(tags(layout)) {
                known.insert(tag);
            }
        }
        let mut part = Part::new(self.arch, segment, base, self.pipeline.sums.clone());
        part.plan = nodes::plan(&part, self.tables + 1);
        let mut statements = Vec::new();
        for (number, level) in part.plan.levels.iter().enumerate() {
            let mut arms = Vec::new();
            for (table, spec) in level {
                self.tables = self.tables.max(*table);
                let inner = match spec {
                    Spec::Trees(trees) => self.trees(&part, *table, trees)?,
                    Spec::Step(at) => self.step(&part, *at, 0)?,
                    Spec::Lookups(lists, then) => self.lookups(&part, *table, lists, *then)?,
                };
                match number {
                    0 => statements.extend(inner),
                    _ => arms.push((u32::from(*table), inner)),
                }
            }
            statements.extend(arms.chunks(MOST_ARMS).map(|arms| Statement::Arms(arms.to_vec())));
        }
        Ok(statements)
    }

    /// The table of trees.
    fn trees(
        &mut self,
        part: &Part<'a>,
        table: u16,
        trees: &[Tree],
    ) -> Result<Vec<Statement>, Failure> {
        let first = trees.first().map_or(StepId(0), |tree| tree.step);
        let none = Rows::new();
        // What was found by different lookups is distinguished by the arm, too.
        let arm = |tree: &Tree| part.base + tree.found.map_or(tree.step, |found| found.0).0;
        let arms: BTreeSet<u32> = trees.iter().map(arm).collect();
        let mut keys: Vec<Expr> = Vec::new();
        let mut column = |of: Expr| match keys.iter().position(|known| known.text == of.text) {
            Some(at) => at,
            None => {
                keys.push(of);
                keys.len() - 1
            }
        };
        let mut lines = Vec::new();
        // Where headers are there comes first: fields are read of those that are.
        let mut needs: BTreeSet<Instance> = BTreeSet::new();
        trees.iter().flat_map(|tree| &tree.rows).for_each(|row| needs.extend(&row.needs));
        if arms.len() > 1 {
            column(Expr::variable("meta.arm".into(), 16));
        }
        let mut rows = Vec::new();
        for tree in trees {
            for row in &tree.rows {
                rows.push((arm(tree), tree.found, row));
            }
        }
        if trees.iter().any(|tree| tree.found.is_some()) {
            column(Expr::variable("meta.next".into(), 16));
        }
        for need in &needs {
            column(Expr::valid(*need));
        }
        for (arm, found, row) in rows {
            let mut sets = BTreeMap::new();
            if arms.len() > 1 {
                let at = column(Expr::variable("meta.arm".into(), 16));
                sets.insert(at, IntervalSet::single(arm.into()));
            }
            if let Some((_, found)) = found {
                let at = column(Expr::variable("meta.next".into(), 16));
                sets.insert(at, IntervalSet::single(found.into()));
            }
            for need in &row.needs {
                sets.insert(column(Expr::valid(*need)), IntervalSet::single(1));
            }
            for (term, (at, set)) in &row.tests {
                let of = part.numbers(*at, &none).whole(*term).map_err(|lack| (*at, lack))?;
                let at = column(Expr { needs: BTreeSet::new(), ..of });
                let set = match sets.get(&at) {
                    Some(known) => set.intersect(known),
                    None => set.clone(),
                };
                sets.insert(at, set);
            }
            lines.push((sets, row, self.comment(row.from.0, row.from.1)));
        }
        let count = keys.len();
        let mut made = Vec::new();
        for (mut sets, row, origin) in lines {
            let call = self.call(part, row.to, &row.found)?;
            let sets = (0..count).map(|at| sets.remove(&at)).collect();
            made.push(Line { sets, call, origin });
        }
        let Some(last) = made.pop() else { return Ok(Vec::new()) };
        let from = trees.first().and_then(|tree| tree.rows.first()).map(|row| row.from.0);
        let element = from.unwrap_or(part.segment.program.entry.node);
        self.table(first, ("decide", element, table.into()), keys, made, last.call)
    }

    /// The table of lookups that are joined, or of one.
    fn lookups(
        &mut self,
        part: &Part<'a>,
        table: u16,
        lists: &[Vec<StepId>],
        then: u16,
    ) -> Result<Vec<Statement>, Failure> {
        let program = &part.segment.program;
        let alone = lists.iter().flatten().count() == 1;
        let mut entries = Vec::new();
        let (mut key, mut needs, mut missed) = (None, BTreeSet::new(), None);
        let mut origin = None;
        let wanted = lists.iter().flatten().any(|at| match program.step(*at) {
            Step::Lookup { lookup, .. } => {
                let to = part.plan.found.get(at).into_iter().flat_map(|found| &found.to);
                to.into_iter().any(|to| part.wanted[to.0 as usize].contains(lookup))
            }
            _ => false,
        });
        for (list, number) in lists.iter().zip(0_u16..) {
            for at in list {
                let Step::Lookup { lookup, .. } = program.step(*at) else { continue };
                let (of, routes) = routes(program, *lookup).map_err(|lack| (*at, lack))?;
                let of = part.numbers(*at, &Rows::new()).number(of, routes.width());
                let of = of.map_err(|lack| (*at, lack))?;
                needs.extend(of.needs.iter().copied());
                key = Some(Expr { needs: BTreeSet::new(), ..of });
            }
            let Some(at) = list.first() else { continue };
            let (Step::Lookup { lookup, .. }, Some(found)) =
                (program.step(*at), part.plan.found.get(at))
            else {
                continue;
            };
            let (_, routes) = routes(program, *lookup).map_err(|lack| (*at, lack))?;
            let element = program.lookups[usize::from(lookup.0)].element;
            origin.get_or_insert(element);
            let mut all: Vec<_> = routes.entries().collect();
            all.sort_by_key(|entry| std::cmp::Reverse(entry.length));
            let width = |index: u8| program.bound_width(*lookup, index).max(1);
            let values = if wanted { program.lookups[usize::from(lookup.0)].values } else { 0 };
            let widths: Vec<u16> = (0..values).map(width).collect();
            let text = self.comment(element, None);
            for (entry, next) in all.into_iter().zip(&found.of) {
                let to = found.to[usize::from(*next)];
                let call = match program.step(to) {
                    Step::Exit(_) if alone => {
                        self.call(part, to, &Rows::from([(*lookup, Arc::clone(&entry.row))]))?
                    }
                    _ => self.found(table, then, *next, &widths, &entry.row),
                };
                let mut matches = vec![Match::Prefix(entry.prefix, entry.length)];
                if lists.len() > 1 {
                    matches.insert(0, Match::Exact(number.into()));
                }
                entries.push(Entry { matches, call, origin: text.clone() });
            }
            if missed.is_none() {
                missed = Some(match program.step(found.to[0]) {
                    Step::Exit(_) if alone => self.call(part, found.to[0], &Rows::new())?,
                    _ => self.found(table, then, 0, &widths, &[]),
                });
            }
        }
        let first = lists.iter().flatten().next().copied().unwrap_or(StepId(0));
        let (Some(key), Some(missed), Some(element)) = (key, missed, origin) else {
            return Ok(Vec::new());
        };
        if entries.len() > MOST_ENTRIES {
            return Err((first, Lack::Room("entries", entries.len(), MOST_ENTRIES)));
        }
        if lists.len() > MOST_LISTS {
            return Err((first, Lack::Room("lists", lists.len(), MOST_LISTS)));
        }
        // Whole numbers need no prefixes.
        let width = key.width;
        let mut kind = Kind::Lpm;
        if entries.iter().all(
            |of| matches!(of.matches.last(), Some(Match::Prefix(_, length)) if *length == width),
        ) {
            kind = Kind::Exact;
            for of in entries.iter_mut().flat_map(|of| of.matches.last_mut()) {
                if let Match::Prefix(value, _) = *of {
                    *of = Match::Exact(value);
                }
            }
        }
        let mut keys = vec![(Expr { needs, ..key }, kind)];
        if lists.len() > 1 {
            keys.insert(0, (Expr::variable("meta.list".into(), LIST), Kind::Exact));
        }
        self.apply(first, ("routes", element, table.into()), keys, entries, missed)
    }

    /// Keeps what was found, and goes on at the table that decides by it.
    fn found(&mut self, table: u16, then: u16, next: u16, widths: &[u16], row: &[u128]) -> Call {
        let mut action = Action {
            name: String::new(),
            parameters: vec![("next".into(), 16)],
            body: vec!["meta.next = next;".into(), format!("meta.at = 16w{then:#x};")],
            reads: BTreeSet::new(),
            writes: BTreeSet::from(["meta.next".into(), "meta.at".into()]),
        };
        let mut arguments = vec![u128::from(next)];
        for (index, &width) in (0_u8..).zip(widths) {
            let value = row.get(usize::from(index)).copied().unwrap_or(0);
            self.keep(&mut action, &mut arguments, &found(table, index), (width, value));
        }
        Call { action: self.pipeline.action("found", action), arguments }
    }

    /// An action gets a parameter that it keeps in metadata.
    fn keep(
        &mut self,
        action: &mut Action,
        arguments: &mut Vec<u128>,
        field: &str,
        (width, value): (u16, u128),
    ) {
        let of = field.trim_start_matches("meta.").to_string();
        match self.pipeline.metadata.iter_mut().find(|known| known.0 == of) {
            Some(known) => known.1 = known.1.max(width),
            None => self.pipeline.metadata.push((of, width)),
        }
        let is_value = |of: &&(String, u16)| of.0.starts_with("value");
        let parameter = format!("value{}", action.parameters.iter().filter(is_value).count());
        action.body.push(format!("{field} = {parameter};"));
        action.parameters.push((parameter, width));
        action.writes.insert(field.into());
        arguments.push(value);
    }

    fn comment(&self, element: NodeId, span: Option<Span>) -> String {
        (self.device.origin)(element, span).replace(['\n', '\r'], " ")
    }

    /// Statements that lead to a step.
    fn lead(
        &mut self,
        part: &Part<'a>,
        to: StepId,
        depth: usize,
    ) -> Result<Vec<Statement>, Failure> {
        match part.is_within(to, depth) {
            true => self.step(part, to, depth),
            false => Ok(vec![Statement::Call(self.call(part, to, &Rows::new())?)]),
        }
    }

    /// A call of the action that leads to a step, or does what an exit does.
    fn call(&mut self, part: &Part<'a>, to: StepId, rows: &Rows) -> Result<Call, Failure> {
        let to = part.behind(to, rows);
        let number = part.base + to.0;
        let Step::Exit(exit) = part.segment.program.step(to) else {
            return Ok(self.go(part, to, rows));
        };
        let mut numbers = part.numbers(to, rows);
        let port = match exit.end {
            ir::program::End::Push { to: port, .. } => {
                let port = self.device.egress.get(&port).copied();
                Some(port.filter(|port| *port < 512).ok_or((to, Lack::Element))?)
            }
            ir::program::End::Handoff { to: place } if place.0 > 4094 => {
                return Err((to, Lack::Room("continuations", place.0.into(), 4094)));
            }
            _ => None,
        };
        let done = exit::action(&mut numbers, exit, number, port).map_err(|lack| (to, lack))?;
        let name = match exit.end {
            ir::program::End::Drop { .. } => "discard",
            ir::program::End::Handoff { .. } => "hand_off",
            ir::program::End::Push { .. } => "leave",
        };
        self.pipeline.headers.extend(done.headers);
        let action = self.pipeline.action(name, done.action);
        Ok(Call { action, arguments: done.arguments })
    }

    /// Goes on at an arm, with what a lookup found if that is wanted there.
    fn go(&mut self, part: &Part<'a>, to: StepId, rows: &Rows) -> Call {
        let (table, list) = part.plan.at.get(&to).copied().unwrap_or_default();
        let mut action = Action {
            name: String::new(),
            parameters: vec![("at".into(), 16), ("arm".into(), 16)],
            body: vec!["meta.at = at;".into(), "meta.arm = arm;".into()],
            reads: BTreeSet::new(),
            writes: BTreeSet::from(["meta.at".into(), "meta.arm".into()]),
        };
        let mut arguments = vec![u128::from(table), u128::from(part.base + to.0)];
        let mut name = "go".to_string();
        if part.plan.has_lists(table) {
            name.push_str("_list");
            action.parameters.push(("list".into(), LIST));
            action.body.push("meta.list = list;".into());
            action.writes.insert("meta.list".into());
            arguments.push(list.into());
        }
        let wanted = &part.wanted[to.0 as usize];
        for (lookup, row) in rows.iter().filter(|(lookup, _)| wanted.contains(lookup)) {
            let program = &part.segment.program;
            name.push_str("_found");
            for index in 0..program.lookups[usize::from(lookup.0)].values {
                let width = program.bound_width(*lookup, index).max(1);
                let value = row.get(usize::from(index)).copied().unwrap_or(0);
                let field = part.found(*lookup, index);
                self.keep(&mut action, &mut arguments, &field, (width, value));
            }
        }
        Call { action: self.pipeline.action(&name, action), arguments }
    }

    fn step(
        &mut self,
        part: &Part<'a>,
        at: StepId,
        depth: usize,
    ) -> Result<Vec<Statement>, Failure> {
        let segment = part.segment;
        let program = &segment.program;
        let fail = |lack: Lack| (at, lack);
        let none = Rows::new();
        match program.step(at) {
            Step::Exit(_) => Ok(vec![Statement::Call(self.call(part, at, &Rows::new())?)]),
            Step::Test { atom, yes, no, element } => {
                let mut numbers = part.numbers(at, &none);
                match (numbers.condition(atom), atom) {
                    (Ok(when), _) => {
                        if when.text.contains("checksum_error") {
                            self.pipeline.verifies = true;
                            self.pipeline.headers.insert(Instance::Ipv4);
                        }
                        let when = self.guarded(&when);
                        let comment = Statement::Step(at, self.comment(*element, None));
                        let yes = self.lead(part, *yes, depth + 1)?;
                        let no = self.lead(part, *no, depth + 1)?;
                        Ok(vec![comment, Statement::If(when, yes, no)])
                    }
                    (Err(_), Atom::Test(term, set)) => {
                        let width = program.width(*term).max(1);
                        let rest = set.complement(width);
                        let (few, to, otherwise) =
                            match rest.intervals().len() < set.intervals().len() {
                                true => (rest, *no, *yes),
                                false => ((**set).clone(), *yes, *no),
                            };
                        let of = numbers.whole(*term).map_err(fail)?;
                        let origin = self.comment(*element, None);
                        let call = self.call(part, to, &Rows::new())?;
                        let line = Line { sets: vec![Some(few)], call, origin };
                        let otherwise = self.call(part, otherwise, &Rows::new())?;
                        let name = ("test", *element, part.base + at.0);
                        self.table(at, name, vec![of], vec![line], otherwise)
                    }
                    (Err(lack), _) => Err(fail(lack)),
                }
            }
            Step::Switch { on, cases, otherwise, element } => {
                let of = part.numbers(at, &none).whole(*on).map_err(fail)?;
                let mut lines = Vec::new();
                for (set, to) in cases {
                    let origin = self.comment(*element, None);
                    let call = self.call(part, *to, &Rows::new())?;
                    lines.push(Line { sets: vec![Some(set.clone())], call, origin });
                }
                let otherwise = self.call(part, *otherwise, &Rows::new())?;
                let name = ("switch", *element, part.base + at.0);
                self.table(at, name, vec![of], lines, otherwise)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                let mut numbers = part.numbers(at, &none);
                let of = keys.iter().map(|key| numbers.whole(*key)).collect::<Result<Vec<_>, _>>();
                let of = of.map_err(fail)?;
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let call = self.call(part, arms[rule.arm as usize], &Rows::new())?;
                    let origin = self.comment(*element, rule.span);
                    for cube in rule.cubes.iter() {
                        let mut sets = vec![None; keys.len()];
                        for (key, set) in cube {
                            sets[usize::from(*key)] = Some(set.clone());
                        }
                        lines.push(Line { sets, call: call.clone(), origin: origin.clone() });
                    }
                }
                let otherwise = self.call(part, *otherwise, &Rows::new())?;
                let name = ("rules", *element, part.base + at.0);
                self.table(at, name, of, lines, otherwise)
            }
            Step::Lookup { lookup, hit, miss } => {
                let (key, table) = routes(program, *lookup).map_err(fail)?;
                let element = program.lookups[usize::from(lookup.0)].element;
                let of = part.numbers(at, &none).number(key, table.width()).map_err(fail)?;
                let mut entries = Vec::new();
                let mut all: Vec<_> = table.entries().collect();
                all.sort_by_key(|entry| std::cmp::Reverse(entry.length));
                let origin = self.comment(element, None);
                for entry in all {
                    let call =
                        self.call(part, *hit, &Rows::from([(*lookup, Arc::clone(&entry.row))]))?;
                    let matches = vec![Match::Prefix(entry.prefix, entry.length)];
                    entries.push(Entry { matches, call, origin: origin.clone() });
                }
                let otherwise = self.call(part, *miss, &Rows::new())?;
                let name = ("lookup", element, part.base + at.0);
                self.apply(at, name, vec![(of, Kind::Lpm)], entries, otherwise)
            }
        }
    }

    /// A condition with what has to be there for it.
    fn guarded(&mut self, when: &Expr) -> When {
        self.uses(when);
        let mut all = valid(&when.needs);
        all.push(when.text.clone());
        let text = all.join(" && ");
        When { text, reads: when.reads.clone(), needs: when.needs.clone() }
    }

    fn uses(&mut self, of: &Expr) {
        let is_read = |instance: &Instance| {
            let prefix = format!("hdr.{}.", instance.name());
            of.reads.iter().any(|read| read.starts_with(&prefix))
        };
        self.pipeline.headers.extend(Instance::ALL.into_iter().filter(is_read));
    }

    fn table(
        &mut self,
        at: StepId,
        of: (&str, NodeId, u32),
        keys: Vec<Expr>,
        mut lines: Vec<Line>,
        mut default: Call,
    ) -> Result<Vec<Statement>, Failure> {
        // Behind one that takes all comes none.
        if let Some(last) = lines.iter().position(|line| line.sets.iter().all(Option::is_none)) {
            default = lines[last].call.clone();
            lines.truncate(last);
        }
        while lines.last().is_some_and(|line| line.call == default) {
            lines.pop();
        }
        let is_used = |key: usize| lines.iter().any(|line| line.sets[key].is_some());
        let used: Vec<usize> = (0..keys.len()).filter(|key| is_used(*key)).collect();
        let mut chosen: Vec<(Expr, Kind)> = Vec::new();
        for &key in &used {
            let sets = lines.iter().filter_map(|line| line.sets[key].as_ref());
            let all_say = lines.iter().all(|line| line.sets[key].is_some());
            let kind = kind(self.arch, keys[key].width, sets, all_say);
            chosen.push((keys[key].clone(), kind));
        }
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: BTreeSet<Vec<u128>> = BTreeSet::new();
        for line in lines {
            let mut all: Vec<Vec<Match>> = vec![Vec::new()];
            for (&key, (of, kind)) in used.iter().zip(&chosen) {
                let some = match &line.sets[key] {
                    None => vec![Match::Any],
                    Some(set) => {
                        matches(self.arch, set, of.width, *kind).map_err(|lack| (at, lack))?
                    }
                };
                let both = |one: &Vec<Match>| -> Vec<Vec<Match>> {
                    some.iter().map(|more| one.iter().copied().chain([*more]).collect()).collect()
                };
                if all.len().saturating_mul(some.len()) > MOST_ENTRIES {
                    return Err((at, Lack::Room("entries", MOST_ENTRIES + 1, MOST_ENTRIES)));
                }
                all = all.iter().flat_map(both).collect();
            }
            for matches in all {
                // Of exact matches the first counts.
                let numbers: Vec<u128> = matches
                    .iter()
                    .filter_map(|of| if let Match::Exact(value) = of { Some(*value) } else { None })
                    .collect();
                if numbers.len() == matches.len() && !seen.insert(numbers) {
                    continue;
                }
                entries.push(Entry {
                    matches,
                    call: line.call.clone(),
                    origin: line.origin.clone(),
                });
            }
            if entries.len() > MOST_ENTRIES {
                return Err((at, Lack::Room("entries", entries.len(), MOST_ENTRIES)));
            }
        }
        self.apply(at, of, chosen, entries, default)
    }

    fn apply(
        &mut self,
        at: StepId,
        (what, element, number): (&str, NodeId, u32),
        of: Vec<(Expr, Kind)>,
        entries: Vec<Entry>,
        otherwise: Call,
    ) -> Result<Vec<Statement>, Failure> {
        let origin = self.comment(element, None);
        let mut statements = vec![Statement::Step(at, origin.clone())];
        if entries.is_empty() {
            statements.push(Statement::Call(otherwise));
            return Ok(statements);
        }
        let mut keys = Vec::new();
        let mut needs: BTreeSet<Instance> = BTreeSet::new();
        let mut sets = Vec::new();
        for (index, (of, kind)) in of.into_iter().enumerate() {
            self.uses(&of);
            needs.extend(&of.needs);
            let text = match of.is_plain() {
                true => of.text.clone(),
                false => {
                    let name = format!("key{number}_{index}");
                    self.pipeline.variables.push((name.clone(), of.width));
                    sets.push(Statement::Set(name.clone(), of.text.clone(), of.reads.clone()));
                    name
                }
            };
            keys.push(Key { text, width: of.width, kind });
        }
        let name = format!("{what}{number}");
        let failed = otherwise.clone();
        self.pipeline.tables.push(Table { name, origin, keys, entries, otherwise, step: at });
        sets.push(Statement::Apply(self.pipeline.tables.len() - 1));
        if needs.is_empty() {
            statements.extend(sets);
            return Ok(statements);
        }
        let when = When { text: valid(&needs).join(" && "), reads: BTreeSet::new(), needs };
        statements.push(Statement::If(when, sets, vec![Statement::Call(failed)]));
        Ok(statements)
    }
}

/// Conditions that headers are there.
fn valid(needs: &BTreeSet<Instance>) -> Vec<String> {
    needs.iter().map(|need| format!("hdr.{}.isValid()", need.name())).collect()
}
