//! Steps of segments as instructions and tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::layout::{Layout, Layouts};
use ir::program::{Atom, Entries, LookupId, Program, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, PrefixTable, Span};

use super::code::{Code, Label, Line as Instruction};
use super::exit::{self, Ends};
use super::number::{Numbers, found};
use super::table::{self, Call, Line, Table};
use crate::headers::{Instance, Need, Placed, once, placed, tags};
use crate::number::{Rows, behind};
use crate::rule;
use crate::{Device, Lack, Presumed, Presumption, Segment};

/// Numbers of arms and classes.
const MOST_STEPS: usize = 1 << 16;
/// The greatest port: a tag names it.
const MOST_PORT: u32 = 4094;

/// Where a test leads while it is only asked whether it can be done.
const NOWHERE: Ends = Ends { send: 0, hand_off: 0 };

/// Whether a step can be decided, and what has to hold of packets for that.
pub(super) fn decides(
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumption>, Lack> {
    let places = placed(layout);
    let mut code = Code::default();
    let read = BTreeSet::new();
    let mut numbers = Numbers { program, placed: &places, facts: None, code: &mut code, read };
    let key = |numbers: &mut Numbers<'_>, term: TermId, sets: Vec<Option<IntervalSet>>| {
        let keys = [table::key(numbers, term)?];
        let call = Call { action: String::new(), arguments: Vec::new() };
        let line = |set| Line { sets: vec![set], call: call.clone(), origin: String::new() };
        let lines: Vec<Line> = sets.into_iter().map(line).collect();
        let is_exact = table::is_exact(&keys, &lines);
        table::entries(&keys, lines, is_exact).map(drop)
    };
    match program.step(step) {
        Step::Exit(_) => {}
        Step::Test { atom, .. } => {
            if let Atom::Test(term, set) = atom
                && let Some(ip) = numbers.verified(*term)
            {
                let mut needs = ip.needs.clone();
                if *set != Arc::new(IntervalSet::single(0xffff))
                    && set.complement(16) != IntervalSet::single(0xffff)
                {
                    return Err(Lack::Checksum);
                }
                // Its header has no options: what follows it says so.
                let transport = places.iter().find(|of| of.instance == Instance::Transport);
                let options = transport.map(|of| of.needs.clone()).ok_or(Lack::Checksum)?;
                needs.extend(options.into_iter().filter(|need| need.0.width == 4));
                return Ok(presumptions(needs));
            }
            match (numbers.branch(atom, 0, 0), atom) {
                (Ok(()), _) => {}
                (Err(Lack::Match(..)), Atom::Test(term, set)) => {
                    key(&mut numbers, *term, vec![Some((**set).clone())])?;
                }
                (Err(lack), _) => return Err(lack),
            }
        }
        Step::Switch { on, cases, .. } => {
            let all: Vec<_> = cases.iter().map(|case| (&case.0, 0)).collect();
            let jumps = numbers.number(*on).and_then(|width| numbers.decide(width, &all, 0));
            match jumps {
                Err(Lack::Match(..)) => {
                    let sets = cases.iter().map(|case| Some(case.0.clone())).collect();
                    key(&mut numbers, *on, sets)?;
                }
                jumps => jumps?,
            }
        }
        Step::Classify { keys, rules, .. } => {
            for (at, term) in keys.iter().enumerate() {
                let tests = rules.iter().flat_map(|rule| rule.cubes.iter().flatten());
                let sets = tests.filter(|test| usize::from(test.0) == at);
                key(&mut numbers, *term, sets.map(|test| Some(test.1.clone())).collect())?;
            }
        }
        Step::Lookup { lookup, .. } => {
            let (of, _) = routes(program, *lookup)?;
            key(&mut numbers, of, Vec::new())?;
        }
    }
    let read = numbers.read;
    let needs =
        places.iter().filter(|of| read.contains(&of.instance)).flat_map(|of| of.needs.clone());
    Ok(presumptions(needs.collect()))
}

/// Whether an exit can be done, and what the device tests before.
pub(super) fn does(
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumed>, Lack> {
    let Step::Exit(of) = program.step(step) else { return Ok(Vec::new()) };
    let places = placed(layout);
    let mut code = Code::default();
    let read = BTreeSet::new();
    let mut numbers = Numbers { program, placed: &places, facts: None, code: &mut code, read };
    let needs = once(exit::exit(&mut numbers, of, step.0, None, &NOWHERE)?);
    // What is written behind a frame's end does not leave.
    let is_tested = |need: &Need| need.0 != ir::field::meta::LEN;
    Ok(needs.into_iter().filter(is_tested).map(|(field, set)| Presumed::In(field, set)).collect())
}

fn presumptions(needs: Vec<Need>) -> Vec<Presumption> {
    let one = |(field, set): Need| {
        let lack = (field == ir::field::meta::LEN).then_some(Lack::Length);
        Presumption { when: Vec::new(), holds: Presumed::In(field, set), lack }
    };
    let is_asked =
        |need: &Need| need.0 != ir::field::meta::LEN || IntervalSet::min(&need.1) > Some(14);
    once(needs).into_iter().filter(is_asked).map(one).collect()
}

fn routes(program: &Program, lookup: LookupId) -> Result<(TermId, Arc<PrefixTable>), Lack> {
    let asked = program.lookups.get(usize::from(lookup.0)).ok_or(Lack::Flows)?;
    let table = program.tables.get(usize::from(asked.table.0)).ok_or(Lack::Flows)?;
    let Entries::Prefixes(prefixes) = &table.entries else { return Err(Lack::Flows) };
    let &[key] = &asked.key[..] else { return Err(Lack::Found) };
    Ok((key, Arc::clone(prefixes)))
}

type Failure = (StepId, Lack);

/// Writes the pipeline of a device.
pub(super) struct Builder<'a> {
    device: &'a Device<'a>,
    pub(super) code: Code,
    pub(super) tables: Vec<Table>,
    /// Actions that keep what a lookup found: their names, and what they set.
    pub(super) actions: BTreeMap<String, Vec<(String, u16)>>,
    /// Types that say that a tag follows, first and second.
    pub(super) tags: [BTreeSet<u128>; 2],
    /// Where segments begin, by their ports.
    pub(super) starts: Vec<(Vec<u32>, Label)>,
    pub(super) ends: Ends,
    pub(super) lost: Label,
}

/// A segment that becomes a part of the pipeline.
struct Part<'a> {
    segment: &'a Segment,
    /// What its steps are counted from.
    base: u32,
    layouts: Layouts,
    places: Vec<Vec<Placed>>,
    /// By step: its label, and whether something leads there.
    labels: Vec<Label>,
    led: BTreeSet<StepId>,
    live: Vec<BTreeSet<LookupId>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(device: &'a Device<'a>) -> Self {
        let mut code = Code::default();
        let ends = Ends { send: code.label(), hand_off: code.label() };
        let lost = code.label();
        Self {
            device,
            code,
            tables: Vec::new(),
            actions: BTreeMap::new(),
            tags: Default::default(),
            starts: Vec::new(),
            ends,
            lost,
        }
    }

    /// Writes all segments.
    pub(super) fn build(&mut self) -> Result<(), (usize, StepId, Lack)> {
        let device = self.device;
        let mut base = 0;
        self.code.headers.insert(Instance::Ethernet);
        let ports = device.egress.values().chain([&device.cores]);
        if let Some(port) = ports.copied().find(|port| *port > MOST_PORT) {
            return Err((
                0,
                StepId(0),
                Lack::Room("as the port", port as usize, MOST_PORT as usize),
            ));
        }
        for (index, segment) in device.segments.iter().enumerate() {
            let start = self.part(segment, base).map_err(|(step, lack)| (index, step, lack))?;
            self.starts.push((segment.ingress.clone(), start));
            base += segment.program.steps.len() as u32;
            if base as usize > MOST_STEPS {
                return Err((index, StepId(0), Lack::Room("steps", base as usize, MOST_STEPS)));
            }
        }
        Ok(())
    }

    fn part(&mut self, segment: &'a Segment, base: u32) -> Result<Label, Failure> {
        let program = &segment.program;
        for layout in &segment.layouts {
            for (known, tag) in self.tags.iter_mut().zip(tags(layout)) {
                known.insert(tag);
            }
        }
        let mut part = Part {
            segment,
            base,
            layouts: Layouts::of(program),
            places: segment.layouts.iter().map(placed).collect(),
            labels: program.steps.iter().map(|_| self.code.label()).collect(),
            led: BTreeSet::from([StepId(0)]),
            live: rule::live(program),
        };
        // Each stands behind those that lead to it.
        for at in (0..program.steps.len() as u32).map(StepId) {
            if part.led.contains(&at) {
                self.code.place(part.labels[at.0 as usize]);
                self.step(&mut part, at).map_err(|lack| (at, lack))?;
            }
        }
        Ok(part.labels[0])
    }

    fn comment(&self, element: NodeId, span: Option<Span>) -> String {
        (self.device.origin)(element, span).replace(['\n', '\r'], " ")
    }

    fn step(&mut self, part: &mut Part<'a>, at: StepId) -> Result<(), Lack> {
        let segment = part.segment;
        let program = &segment.program;
        let element = match program.step(at) {
            Step::Exit(exit) => match exit.end {
                ir::program::End::Drop { element, .. } => Some(element),
                _ => None,
            },
            Step::Test { element, .. }
            | Step::Switch { element, .. }
            | Step::Classify { element, .. } => Some(*element),
            Step::Lookup { lookup, .. } => Some(program.lookups[usize::from(lookup.0)].element),
        };
        if let Some(element) = element {
            let comment = Instruction::Comment(self.comment(element, None));
            self.code.lines.push(comment);
        }
        let from = self.code.lines.len();
        let placed = part.places.get(at.0 as usize).map_or(&[][..], Vec::as_slice);
        // Tables are added meanwhile, too.
        let mut code = std::mem::take(&mut self.code);
        let mut numbers = Numbers {
            program,
            placed,
            facts: part.layouts.facts(at),
            code: &mut code,
            read: BTreeSet::new(),
        };
        let mut led = BTreeSet::new();
        let labels = &part.labels;
        let mut to = |step: StepId| {
            led.insert(step);
            labels[step.0 as usize]
        };
        let otherwise = match program.step(at) {
            Step::Exit(of) => {
                let port = match of.end {
                    ir::program::End::Push { to, .. } => {
                        Some(self.device.egress.get(&to).copied().ok_or(Lack::Element)?)
                    }
                    ir::program::End::Handoff { to } if u32::from(to.0) > MOST_PORT => {
                        return Err(Lack::Room("continuations", to.0.into(), MOST_PORT as usize));
                    }
                    _ => None,
                };
                exit::exit(&mut numbers, of, part.base + at.0, port, &self.ends)?;
                numbers.read.clear();
                self.lost
            }
            Step::Test { atom, yes, no, .. } => {
                let (y, n) = (to(*yes), to(*no));
                match (numbers.branch(atom, y, n), atom) {
                    (Err(Lack::Match(..)), Atom::Test(term, set)) => {
                        numbers.code.lines.truncate(from);
                        let lines = vec![(vec![Some((**set).clone())], *yes, None)];
                        self.table(part, at, "test", &mut numbers, &[*term], lines, *no)?;
                    }
                    (done, _) => done?,
                }
                n
            }
            Step::Switch { on, cases, otherwise, .. } => {
                let other = to(*otherwise);
                let all: Vec<_> = cases.iter().map(|(set, step)| (set, to(*step))).collect();
                let jumps = numbers.number(*on);
                match jumps.and_then(|width| numbers.decide(width, &all, other)) {
                    Err(Lack::Match(..)) => {
                        numbers.code.lines.truncate(from);
                        let line = |(set, step): &(IntervalSet, StepId)| {
                            (vec![Some(set.clone())], *step, None)
                        };
                        let lines = cases.iter().map(line).collect();
                        self.table(part, at, "switch", &mut numbers, &[*on], lines, *otherwise)?;
                    }
                    done => done?,
                }
                other
            }
            Step::Classify { keys, rules, arms, otherwise, .. } => {
                let mut lines = Vec::new();
                for rule in rules.iter() {
                    let step = arms[rule.arm as usize];
                    to(step);
                    for cube in rule.cubes.iter() {
                        let mut sets = vec![None; keys.len()];
                        for (key, set) in cube {
                            sets[usize::from(*key)] = Some(set.clone());
                        }
                        lines.push((sets, step, rule.span));
                    }
                }
                let other = to(*otherwise);
                self.table(part, at, "rules", &mut numbers, keys, lines, *otherwise)?;
                other
            }
            Step::Lookup { lookup, hit, miss } => {
                let miss = (*miss, to(*miss));
                let arms = self.lookup(part, at, &mut numbers, *lookup, *hit, miss)?;
                led.extend(arms);
                miss.1
            }
        };
        // What is read has to be there.
        let unsure = numbers.unsure();
        let read = std::mem::take(&mut numbers.read);
        code.headers.extend(read);
        let guards = unsure
            .into_iter()
            .map(|header| Instruction::Jump("jmpnv", otherwise, format!("h.{}", header.name())));
        code.lines.splice(from..from, guards);
        self.code = code;
        part.led.extend(led);
        Ok(())
    }

    /// A table, and where its arms lead.
    #[allow(clippy::too_many_arguments, reason = "what a table is made of")]
    fn table(
        &mut self,
        part: &Part<'a>,
        at: StepId,
        what: &str,
        numbers: &mut Numbers<'_>,
        terms: &[TermId],
        mut lines: Vec<(Vec<Option<IntervalSet>>, StepId, Option<Span>)>,
        mut otherwise: StepId,
    ) -> Result<(), Lack> {
        let element = match numbers.program.step(at) {
            Step::Test { element, .. }
            | Step::Switch { element, .. }
            | Step::Classify { element, .. } => *element,
            _ => numbers.program.entry.node,
        };
        // Behind one that takes all comes none.
        if let Some(last) = lines.iter().position(|line| line.0.iter().all(Option::is_none)) {
            otherwise = lines[last].1;
            lines.truncate(last);
        }
        while lines.last().is_some_and(|line| line.1 == otherwise) {
            lines.pop();
        }
        let used: Vec<usize> = (0..terms.len())
            .filter(|key| lines.iter().any(|line| line.0[*key].is_some()))
            .collect();
        let mut arms: Vec<StepId> = Vec::new();
        let lines: Vec<Line> = lines
            .into_iter()
            .map(|(mut sets, step, span)| {
                let arm = arms.iter().position(|arm| *arm == step).unwrap_or_else(|| {
                    arms.push(step);
                    arms.len() - 1
                });
                let arguments = vec![("arm".to_string(), arm as u128 + 1)];
                Line {
                    sets: used.iter().map(|key| sets[*key].take()).collect(),
                    call: Call { action: "go".into(), arguments },
                    origin: self.comment(element, span),
                }
            })
            .collect();
        let keys = used.iter().map(|key| table::key(numbers, terms[*key]));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let is_exact = table::is_exact(&keys, &lines);
        let entries = table::entries(&keys, lines, is_exact)?;
        if entries.is_empty() {
            numbers.code.go(part.labels[otherwise.0 as usize]);
            return Ok(());
        }
        let fields = table::load(numbers, &keys)?;
        self.apply(part, numbers, (what, at, element), (fields, is_exact), entries);
        self.arms(part, numbers, &arms, otherwise)
    }

    fn apply(
        &mut self,
        part: &Part<'a>,
        numbers: &mut Numbers<'_>,
        (what, at, element): (&str, StepId, NodeId),
        (keys, is_exact): (Vec<table::Field>, bool),
        entries: Vec<table::Entry>,
    ) {
        let origin = self.comment(element, None);
        // Ten routers with the same routes have one table.
        let same = self.tables.iter().position(|of| of.is(&keys, is_exact, &entries));
        let same = same.unwrap_or_else(|| {
            let name = format!("{what}{}", part.base + at.0);
            self.tables.push(Table { name, origins: Vec::new(), keys, is_exact, entries });
            self.tables.len() - 1
        });
        let table = &mut self.tables[same];
        if !table.origins.contains(&origin) {
            table.origins.push(origin);
        }
        let found = numbers.code.label();
        if table.is_long() {
            numbers.code.run(format!("table {}", table.front().name));
            numbers.code.jump("jmph", found, String::new());
        }
        numbers.code.run(format!("table {}", table.name));
        numbers.code.place(found);
    }

    /// Goes to the arm that a table set; it set 0 where no entry matches.
    fn arms(
        &mut self,
        part: &Part<'a>,
        numbers: &mut Numbers<'_>,
        arms: &[StepId],
        otherwise: StepId,
    ) -> Result<(), Lack> {
        let to = numbers.code.number(0)?;
        let label = |step: &StepId| part.labels[step.0 as usize];
        if let [arm] = arms {
            numbers.code.jump("jmpneq", label(&otherwise), "m.arm 0x1".into());
            numbers.code.go(label(arm));
            return Ok(());
        }
        numbers.code.run(format!("mov {to} m.arm"));
        let sets: Vec<IntervalSet> =
            (1..=arms.len()).map(|arm| IntervalSet::single(arm as u128)).collect();
        let cases: Vec<_> = sets.iter().zip(arms).map(|(set, arm)| (set, label(arm))).collect();
        numbers.decide(32, &cases, label(&otherwise))
    }

    /// A table of routes, whose entries keep what is found where that is used later; the steps that it leads to.
    fn lookup(
        &mut self,
        part: &Part<'a>,
        at: StepId,
        numbers: &mut Numbers<'_>,
        lookup: LookupId,
        hit: StepId,
        (miss, label): (StepId, Label),
    ) -> Result<Vec<StepId>, Lack> {
        let program = numbers.program;
        let (term, table) = routes(program, lookup)?;
        let asked = &program.lookups[usize::from(lookup.0)];
        let mut rows: Vec<_> = table.entries().collect();
        rows.sort_by_key(|entry| std::cmp::Reverse(entry.length));
        let origin = self.comment(asked.element, None);
        let key = table::key(numbers, term)?;
        let name = format!("found{}_{}", part.base, lookup.0);
        let mut kept: Vec<(String, u16)> = Vec::new();
        for index in 0..asked.values {
            let width = match program.bound_width(lookup, index).max(1).next_multiple_of(8) {
                width @ ..=64 => width,
                _ => 128,
            };
            kept.push((found(lookup, index), width));
        }
        let mut arms: Vec<StepId> = Vec::new();
        let mut lines = Vec::new();
        for entry in rows {
            let found = Rows::from([(lookup, Arc::clone(&entry.row))]);
            let step = behind(program, hit, &found);
            let arm = arms.iter().position(|arm| *arm == step).unwrap_or_else(|| {
                arms.push(step);
                arms.len() - 1
            });
            let mut arguments = vec![("arm".to_string(), arm as u128 + 1)];
            let is_wanted = part.live[step.0 as usize].contains(&lookup);
            if is_wanted {
                let row = entry.row.iter().copied().chain(std::iter::repeat(0));
                arguments.extend(kept.iter().map(|(name, _)| name.clone()).zip(row));
            }
            let action = if is_wanted { name.clone() } else { "go".into() };
            lines.push(Line {
                sets: vec![Some(IntervalSet::prefix(table.width(), entry.prefix, entry.length))],
                call: Call { action, arguments },
                origin: origin.clone(),
            });
        }
        if lines.iter().any(|line| line.call.action == name) {
            numbers.code.found.extend(kept.iter().cloned());
            self.actions.insert(name, kept);
        }
        let keys = [key];
        let entries = table::entries(&keys, lines, false)?;
        if entries.is_empty() {
            numbers.code.go(label);
            return Ok(Vec::new());
        }
        let fields = table::load(numbers, &keys)?;
        self.apply(part, numbers, ("routes", at, asked.element), (fields, false), entries);
        self.arms(part, numbers, &arms, miss)?;
        Ok(arms)
    }
}
