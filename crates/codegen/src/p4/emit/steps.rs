//! Steps of segments as tables and conditions.
//!
//! A test that fits a condition is an `if`; whatever chooses among more is a table. A step that one condition alone leads
//! to stands in its branch. Others are arms: the metadata holds the number of the arm that a packet goes on at, which is
//! tested before each, in an order in which each stands behind those that lead to it (Lemur §2.5.2.2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::layout::{Facts, Layout, Layouts};
use ir::program::{Atom, Entries, LookupId, Program, Step, StepId, Term, TermId};
use ir::{IntervalSet, NodeId, PrefixTable, Span};

use super::super::Arch;
use super::exit;
use super::headers::{Instance, Need, Placed, placed, tags};
use super::number::{Expr, Numbers, Rows, found};
use super::pipeline::{
    Action, CLASS, Call, Entry, Key, Kind, Match, Pipeline, Statement, Table, When, masked,
    prefixes,
};
use crate::{Device, Lack, Presumed, Presumption, Segment};

/// Entries of a table.
const MOST_ENTRIES: usize = 1 << 17;
/// Prefixes that one range may become.
const MOST_PREFIXES: usize = 64;
/// The widest key that Tofino matches by ranges.
const RANGE_WIDTH: u16 = 20;
/// Branches within branches.
const MOST_DEPTH: usize = 12;
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
        before: None,
        variables: 0,
    };
    let mut needed: BTreeSet<Instance> = BTreeSet::new();
    let mut key = |numbers: &mut Numbers<'_>, term: TermId, sets: &[&IntervalSet]| {
        let of = numbers.whole(term)?;
        for set in sets {
            matches(arch, set, of.width, kind(arch, of.width, sets.iter().copied(), true))?;
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
        before: None,
        variables: 0,
    };
    let needs = once(exit::needs(&mut numbers, step)?);
    is_in_frame(arch, &needs)?;
    // A header that is cut off is not extracted, and nothing is written to it.
    let is_tested = |need: &Need| arch == Arch::V1model || need.0 != ir::field::meta::LEN;
    Ok(needs.into_iter().filter(is_tested).map(|(field, set)| Presumed::In(field, set)).collect())
}

/// Each once; of lengths the greatest.
fn once(needs: Vec<Need>) -> Vec<Need> {
    let mut all: Vec<Need> = Vec::new();
    for (field, set) in needs {
        match all.iter_mut().find(|known| known.0 == field) {
            Some(known) => known.1 = known.1.intersect(&set),
            None => all.push((field, set)),
        }
    }
    // Lengths come first.
    all.sort_by_key(|need| need.0 != ir::field::meta::LEN);
    all
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

fn routes(program: &Program, lookup: LookupId) -> Result<(TermId, Arc<PrefixTable>), Lack> {
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
        masks += match masked(set, width) {
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
    let most = super::number::ones(width);
    let set = set.intersect(&IntervalSet::range(0, most));
    Ok(match kind {
        Kind::Exact | Kind::Lpm => set.as_single().map(Match::Exact).into_iter().collect(),
        Kind::Range => {
            set.intervals().iter().map(|(low, high)| Match::Range(*low, *high)).collect()
        }
        Kind::Ternary => match masked(&set, width) {
            Some((value, mask)) => vec![Match::Masked(value, mask)],
            None => {
                let all = prefixes(&set, width, MOST_ENTRIES.min(1 << 12));
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
}

type Failure = (StepId, Lack);

/// A segment on its way into the pipeline.
struct Part<'a> {
    segment: &'a Segment,
    /// What its steps are counted from.
    base: u32,
    layouts: Layouts,
    places: Vec<Vec<Placed>>,
    /// By step: how many branches lead to it, and whether tables do.
    branches: Vec<usize>,
    arms: BTreeSet<StepId>,
    /// Arms that the statements that are made lead to.
    led: BTreeSet<StepId>,
    wanted: Vec<BTreeSet<LookupId>>,
}

/// By step: the lookups whose numbers are used there or behind.
fn wanted(program: &Program) -> Vec<BTreeSet<LookupId>> {
    let mut of_terms: Vec<BTreeSet<LookupId>> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let mut set: BTreeSet<LookupId> = term
            .operands()
            .iter()
            .flat_map(|operand| of_terms[operand.0 as usize].clone())
            .collect();
        if let Term::Bound(lookup, _) = term {
            set.insert(*lookup);
        }
        of_terms.push(set);
    }
    let mut all = vec![BTreeSet::new(); program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        let mut terms = match step {
            Step::Exit(exit) => exit::terms(exit),
            step => step.terms(),
        };
        if let Step::Lookup { lookup, .. } = step {
            terms.extend(&program.lookups[usize::from(lookup.0)].key);
        }
        let mut set: BTreeSet<LookupId> =
            step.next().flat_map(|next| all[next.0 as usize].clone()).collect();
        if let Step::Lookup { lookup, .. } = step {
            set.remove(lookup);
        }
        set.extend(terms.iter().flat_map(|term| of_terms[term.0 as usize].clone()));
        all[at] = set;
    }
    all
}

impl<'a> Builder<'a> {
    pub(super) fn new(arch: Arch, device: &'a Device<'a>) -> Self {
        Self { arch, device, pipeline: Pipeline::default() }
    }

    /// Adds all segments.
    pub(super) fn build(&mut self) -> Result<(), (usize, StepId, Lack)> {
        let mut base = 0;
        self.pipeline.metadata.extend([("arm".into(), 16), (CLASS.into(), 16)]);
        self.pipeline.headers.insert(Instance::Ethernet);
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
        let program = &segment.program;
        let count = program.steps.len();
        let mut part = Part {
            segment,
            base,
            layouts: Layouts::of(program),
            places: segment.layouts.iter().map(placed).collect(),
            branches: vec![0; count],
            arms: BTreeSet::new(),
            led: BTreeSet::new(),
            wanted: wanted(program),
        };
        for layout in &segment.layouts {
            for (known, tag) in self.pipeline.tags.iter_mut().zip(tags(layout)) {
                known.insert(tag);
            }
        }
        for at in (0..count as u32).map(StepId) {
            for next in program.step(at).next() {
                match self.is_branch(&part, at) {
                    true => part.branches[next.0 as usize] += 1,
                    false => drop(part.arms.insert(next)),
                }
            }
        }
        let more = (0..count as u32).map(StepId).filter(|at| part.branches[at.0 as usize] > 1);
        let more: Vec<StepId> = more.collect();
        part.arms.extend(more);
        let mut statements = self.step(&mut part, StepId(0), 0)?;
        // Each stands behind those that lead to it, beside those that do not.
        let mut level: BTreeMap<StepId, usize> = BTreeMap::new();
        let mut levels: Vec<Vec<(u32, Vec<Statement>)>> = Vec::new();
        for at in (0..count as u32).map(StepId) {
            let mut next = 0;
            if at.0 > 0 {
                let Some(own) = level.get(&at).copied() else { continue };
                let inner = self.step(&mut part, at, 1)?;
                levels.resize_with(levels.len().max(own + 1), Vec::new);
                levels[own].push((part.base + at.0, inner));
                next = own + 1;
            }
            for to in std::mem::take(&mut part.led) {
                let known = level.entry(to).or_insert(next);
                *known = next.max(*known);
            }
        }
        let arms = levels.iter().flat_map(|level| level.chunks(MOST_ARMS));
        statements.extend(arms.map(|arms| Statement::Arms(arms.to_vec())));
        Ok(statements)
    }

    fn numbers<'p>(&self, part: &'p Part<'a>, at: StepId, rows: &'p Rows) -> Numbers<'p> {
        let placed = part.places.get(at.0 as usize).map_or(&[][..], Vec::as_slice);
        Numbers {
            arch: self.arch,
            program: &part.segment.program,
            placed,
            facts: part.facts(at),
            rows,
            before: None,
            variables: 0,
        }
    }

    /// Whether a step is an `if`.
    fn is_branch(&self, part: &Part<'a>, at: StepId) -> bool {
        let Step::Test { atom, .. } = part.segment.program.step(at) else { return false };
        self.numbers(part, at, &Rows::new()).condition(atom).is_ok()
    }

    fn comment(&self, element: NodeId, span: Option<Span>) -> String {
        (self.device.origin)(element, span).replace(['\n', '\r'], " ")
    }

    /// Statements that lead to a step.
    fn lead(
        &mut self,
        part: &mut Part<'a>,
        to: StepId,
        depth: usize,
    ) -> Result<Vec<Statement>, Failure> {
        let is_exit = matches!(part.segment.program.step(to), Step::Exit(_));
        if !is_exit && (part.arms.contains(&to) || depth >= MOST_DEPTH) {
            part.led.insert(to);
            return Ok(vec![Statement::Go(part.base + to.0)]);
        }
        match is_exit {
            true => Ok(vec![Statement::Call(self.call(part, to, None)?)]),
            false => self.step(part, to, depth),
        }
    }

    /// A call of the action that leads to a step, or does what an exit does.
    fn call(
        &mut self,
        part: &mut Part<'a>,
        to: StepId,
        row: Option<(LookupId, &Arc<[u128]>)>,
    ) -> Result<Call, Failure> {
        let mut rows = Rows::new();
        if let Some((lookup, row)) = row {
            rows.insert(lookup, Arc::clone(row));
        }
        let to = part.behind(to, &rows);
        let number = part.base + to.0;
        let Step::Exit(exit) = part.segment.program.step(to) else {
            part.arms.insert(to);
            part.led.insert(to);
            return Ok(self.go(part, to, row));
        };
        let mut numbers = self.numbers(part, to, &rows);
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
    fn go(&mut self, part: &Part<'a>, to: StepId, row: Option<(LookupId, &Arc<[u128]>)>) -> Call {
        let mut action = Action {
            name: String::new(),
            parameters: vec![("arm".into(), 16)],
            body: vec!["meta.arm = arm;".into()],
            reads: BTreeSet::new(),
            writes: BTreeSet::from(["meta.arm".into()]),
        };
        let mut arguments = vec![u128::from(part.base + to.0)];
        let mut name = "go".to_string();
        if let Some((lookup, row)) =
            row.filter(|(lookup, _)| part.wanted[to.0 as usize].contains(lookup))
        {
            let program = &part.segment.program;
            name = format!("go_found{}", lookup.0);
            for index in 0..program.lookups[usize::from(lookup.0)].values {
                let width = program.bound_width(lookup, index).max(1);
                let (field, parameter) = (found(lookup, index), format!("value{index}"));
                let of = field.trim_start_matches("meta.").to_string();
                match self.pipeline.metadata.iter_mut().find(|known| known.0 == of) {
                    Some(known) => known.1 = known.1.max(width),
                    None => self.pipeline.metadata.push((of, width)),
                }
                action.body.push(format!("{field} = {parameter};"));
                action.parameters.push((parameter, width));
                action.writes.insert(field);
                arguments.push(row.get(usize::from(index)).copied().unwrap_or(0));
            }
        }
        Call { action: self.pipeline.action(&name, action), arguments }
    }

    fn step(
        &mut self,
        part: &mut Part<'a>,
        at: StepId,
        depth: usize,
    ) -> Result<Vec<Statement>, Failure> {
        let segment = part.segment;
        let program = &segment.program;
        let fail = |lack: Lack| (at, lack);
        let none = Rows::new();
        match program.step(at) {
            Step::Exit(_) => Ok(vec![Statement::Call(self.call(part, at, None)?)]),
            Step::Test { atom, yes, no, element } => {
                let mut numbers = self.numbers(part, at, &none);
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
                        let call = self.call(part, to, None)?;
                        let line = Line { sets: vec![Some(few)], call, origin };
                        self.table(part, at, ("test", *element), vec![of], vec![line], otherwise)
                    }
                    (Err(lack), _) => Err(fail(lack)),
                }
            }
            Step::Switch { on, cases, otherwise, element } => {
                let of = self.numbers(part, at, &none).whole(*on).map_err(fail)?;
                let mut lines = Vec::new();
                for (set, to) in cases {
                    let origin = self.comment(*element, None);
                    let call = self.call(part, *to, None)?;
                    lines.push(Line { sets: vec![Some(set.clone())], call, origin });
                }
                self.table(part, at, ("switch", *element), vec![of], lines, *otherwise)
            }
            Step::Classify { keys, rules, arms, otherwise, element, .. } => {
                let mut numbers = self.numbers(part, at, &none);
                let of = keys.iter().map(|key| numbers.whole(*key)).collect::<Result<Vec<_>, _>>();
                let of = of.map_err(fail)?;
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let call = self.call(part, arms[rule.arm as usize], None)?;
                    let origin = self.comment(*element, rule.span);
                    for cube in rule.cubes.iter() {
                        let mut sets = vec![None; keys.len()];
                        for (key, set) in cube {
                            sets[usize::from(*key)] = Some(set.clone());
                        }
                        lines.push(Line { sets, call: call.clone(), origin: origin.clone() });
                    }
                }
                self.table(part, at, ("rules", *element), of, lines, *otherwise)
            }
            Step::Lookup { lookup, hit, miss } => {
                let (key, table) = routes(program, *lookup).map_err(fail)?;
                let element = program.lookups[usize::from(lookup.0)].element;
                let of = self.numbers(part, at, &none).number(key, table.width()).map_err(fail)?;
                let mut entries = Vec::new();
                let mut all: Vec<_> = table.entries().collect();
                all.sort_by_key(|entry| std::cmp::Reverse(entry.length));
                let origin = self.comment(element, None);
                for entry in all {
                    let call = self.call(part, *hit, Some((*lookup, &entry.row)))?;
                    let matches = vec![Match::Prefix(entry.prefix, entry.length)];
                    entries.push(Entry { matches, call, origin: origin.clone() });
                }
                let otherwise = self.call(part, *miss, None)?;
                self.apply(part, at, ("routes", element), vec![(of, Kind::Lpm)], entries, otherwise)
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
        part: &mut Part<'a>,
        at: StepId,
        of: (&str, NodeId),
        keys: Vec<Expr>,
        mut lines: Vec<Line>,
        otherwise: StepId,
    ) -> Result<Vec<Statement>, Failure> {
        let mut default = self.call(part, otherwise, None)?;
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
        self.apply(part, at, of, chosen, entries, default)
    }

    fn apply(
        &mut self,
        part: &Part<'a>,
        at: StepId,
        (what, element): (&str, NodeId),
        of: Vec<(Expr, Kind)>,
        entries: Vec<Entry>,
        otherwise: Call,
    ) -> Result<Vec<Statement>, Failure> {
        let number = part.base + at.0;
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

impl Part<'_> {
    fn facts(&self, at: StepId) -> Option<&Facts> {
        self.layouts.facts(at)
    }

    /// Where a packet gets to whose lookup found a row, as far as only this decides.
    fn behind(&self, mut at: StepId, rows: &Rows) -> StepId {
        let program = &self.segment.program;
        let none = Vec::new();
        let numbers = Numbers {
            arch: Arch::Tna,
            program,
            placed: &none,
            facts: None,
            rows,
            before: None,
            variables: 0,
        };
        loop {
            let next = match program.step(at) {
                Step::Test { atom: Atom::Test(term, set), yes, no, .. }
                    if exit::is_found(program, *term) =>
                {
                    numbers.value(*term).map(|value| if set.contains(value) { *yes } else { *no })
                }
                Step::Switch { on, cases, otherwise, .. } if exit::is_found(program, *on) => {
                    numbers.value(*on).map(|value| {
                        let case = cases.iter().find(|case| case.0.contains(value));
                        case.map_or(*otherwise, |case| case.1)
                    })
                }
                _ => None,
            };
            match next {
                Some(next) if next > at => at = next,
                _ => return at,
            }
        }
    }
}
