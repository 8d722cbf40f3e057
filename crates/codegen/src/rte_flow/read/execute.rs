//! Symbolic execution of rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ir::model::BinaryOp;
use ir::program::{
    Atom, ClassifyRule, Continuation, End, Exit, OnesSum, Program, Step, StepId, Term, TermId,
    Write, Writes,
};
use ir::{Base, Field, IntervalSet, Port, Reason};
use net::annotation;

use super::sight::{Match, Question, Sight};
use super::text::{self, Act, Entry};
use crate::Device;
use crate::draft::{At, Draft, Failure, Rule, data, joined};
use crate::rte_flow::UNMARKED;

/// Groups that a packet passes: each may ask a number of its own of what is not certain.
const MOST_JUMPS: u16 = (annotation::SIZE / 2) as u16;

/// Why a packet is dropped of which the rules do not say what becomes.
const LOST: Reason = Reason("no-flow-rule");

/// Why execution stops: a question that is open, or what is not understood.
enum Stop {
    Ask(Box<Question>),
    Fail(Failure),
}

impl From<Box<Question>> for Stop {
    fn from(question: Box<Question>) -> Self {
        Self::Ask(question)
    }
}

/// A packet before the rules of a group, or before a rule's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Position {
    Group { group: u32, jumps: u16, sight: Sight },
    Acts { entry: usize, jumps: u16, sight: Sight },
}

struct Execution<'a> {
    entries: &'a [Entry],
    /// By group, in order of precedence: indexes of rules.
    groups: BTreeMap<u32, Vec<usize>>,
    /// By rule: the first that does the same.
    alike: Vec<usize>,
    device: &'a Device<'a>,
    segment: usize,
    draft: Draft,
    made: HashMap<Position, At>,
    /// Numbers by width, value and mask.
    sets: HashMap<(u16, u128, u128), IntervalSet>,
}

/// The program that the rules are for packets of a segment.
pub(super) fn program(
    driver: &str,
    entries: &[Entry],
    device: &Device<'_>,
    segment: usize,
) -> Result<Program, Failure> {
    let of = &device.segments[segment];
    let mut found: Option<Program> = None;
    for &port in &of.ingress {
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.port == port) {
            groups.entry(entry.group).or_default().push(at);
        }
        for group in groups.values_mut() {
            group.sort_by_key(|&at| entries[at].priority);
        }
        let mut first: HashMap<&[Act], usize> = HashMap::new();
        let alike = entries.iter().enumerate();
        let alike = alike.map(|(at, entry)| *first.entry(&entry.acts).or_insert(at)).collect();
        let execution = Execution {
            entries,
            groups,
            alike,
            device,
            segment,
            draft: Draft::new(&of.program),
            made: HashMap::new(),
            sets: HashMap::new(),
        };
        let program = execution.run()?;
        match &found {
            None => found = Some(program),
            Some(other) if other.steps == program.steps && other.terms == program.terms => {}
            Some(_) => {
                let message = format!("ports {} and {port} are treated differently", of.ingress[0]);
                return Err((0, message));
            }
        }
    }
    found.ok_or_else(|| (0, format!("{driver}: segment {segment} has no port")))
}

impl Execution<'_> {
    fn of(&self) -> &Program {
        &self.device.segments[self.segment].program
    }

    fn run(mut self) -> Result<Program, Failure> {
        let root = self.at(Position::Group { group: 0, jumps: 0, sight: Sight::default() })?;
        let of = &self.device.segments[self.segment].program;
        Ok(self.draft.program(root, of))
    }

    /// The step of a place.
    fn at(&mut self, place: Position) -> Result<At, Failure> {
        if let Some(&at) = self.made.get(&place) {
            return Ok(at);
        }
        let made = match place {
            Position::Group { group, jumps, sight } => self.group(group, jumps, sight),
            Position::Acts { entry, jumps, sight } => self.act(entry, jumps, sight),
        };
        let at = match made {
            Ok(at) => at,
            Err(Stop::Fail(failure)) => return Err(failure),
            Err(Stop::Ask(question)) => {
                let with = |sight| match place {
                    Position::Group { group, jumps, .. } => Position::Group { group, jumps, sight },
                    Position::Acts { entry, jumps, .. } => Position::Acts { entry, jumps, sight },
                };
                let yes = self.at(with(question.yes))?;
                let no = self.at(with(question.no))?;
                self.draft.test(question.atom, yes, no)?
            }
        };
        self.made.insert(place, at);
        Ok(at)
    }

    /// The rules of a group.
    fn group(&mut self, group: u32, jumps: u16, sight: Sight) -> Result<At, Stop> {
        let all = self.groups.get(&group).cloned().unwrap_or_default();
        // Which of the rules that may match does, where that is not certain.
        let chance = Field::bits(Base::Annotation, 16 * jumps, 16);
        let mut rules: Vec<(usize, Vec<(Field, IntervalSet)>)> = Vec::new();
        let mut last = None;
        let bits = all.iter().flat_map(|&at| &self.entries[at].when);
        let apart: BTreeSet<text::ItemField> =
            bits.filter(|bits| bits.has_many_gaps()).map(|bits| bits.place).collect();
        for (number, &at) in all.iter().enumerate() {
            let entry = &self.entries[at];
            let Match::Where { sets, certain } = sight.matches(&mut self.draft.terms, entry)?
            else {
                continue;
            };
            let mut all = Vec::new();
            for (field, bits) in sets {
                for (part, low) in parts(field, apart.contains(&bits.place)) {
                    let ones = u128::MAX >> (128 - part.width);
                    let (value, mask) = (bits.value >> low & ones, bits.mask >> low & ones);
                    if mask != 0 {
                        let set = self.numbers(part.width, value, mask);
                        all.push((part, set.map_err(|why| Stop::Fail((entry.line, why)))?));
                    }
                }
            }
            if !certain {
                let number = u16::try_from(number + 1).map_err(|_| {
                    Stop::Fail((entry.line, "there are too many rules in a group".into()))
                })?;
                all.push((chance, IntervalSet::single(number.into())));
            }
            if all.is_empty() {
                last = Some(at);
                break;
            }
            rules.push((at, all));
        }
        let acts = |this: &mut Self, at: usize| {
            let place = Position::Acts { entry: this.alike[at], jumps, sight };
            this.at(place).map_err(Stop::Fail)
        };
        let otherwise = match last {
            Some(at) => acts(self, at)?,
            // Without a mark, cores decide it from the start; in later groups nothing says what becomes of it.
            None if group == 0 => self.handoff(UNMARKED).map_err(Stop::Fail)?,
            None => self.draft.lost(LOST).map_err(Stop::Fail)?,
        };
        let mut all = Vec::with_capacity(rules.len());
        for (at, sets) in rules {
            all.push(Rule { entry: at, sets, to: acts(self, at)? });
        }
        // Rules in front of the last that do what it does decide nothing.
        while all.last().is_some_and(|rule| rule.to == otherwise) {
            all.pop();
        }
        self.decide(joined(all), otherwise).map_err(Stop::Fail)
    }

    fn numbers(&mut self, width: u16, value: u128, mask: u128) -> Result<IntervalSet, String> {
        if let Some(set) = self.sets.get(&(width, value, mask)) {
            return Ok(set.clone());
        }
        let set = IntervalSet::masked(width, value, mask);
        let set = set.ok_or_else(|| format!("the mask {mask:#x} has too many gaps"))?;
        self.sets.insert((width, value, mask), set.clone());
        Ok(set)
    }

    /// The step at which the first rule counts.
    fn decide(&mut self, rules: Vec<Rule<Field>>, otherwise: At) -> Result<At, Failure> {
        let element = self.of().entry.node;
        let mut fields: Vec<Field> =
            rules.iter().flat_map(|rule| rule.sets.iter().map(|set| set.0)).collect();
        fields.sort_unstable();
        fields.dedup();
        match &fields[..] {
            [] => Ok(otherwise),
            &[field] => {
                let on = self.draft.terms.input(field);
                let sets = rules.iter().map(|rule| (&rule.sets[0].1, rule.to));
                self.draft.switch(on, field.width, sets, otherwise)
            }
            fields => {
                let keys = fields.iter().map(|field| self.draft.terms.input(*field)).collect();
                let key = |field: Field| fields.binary_search(&field).unwrap_or(0) as u8;
                let (mut arms, mut index) = (Vec::new(), HashMap::new());
                let mut all = Vec::with_capacity(rules.len());
                for (number, rule) in (0..).zip(rules) {
                    let arm = *index.entry(rule.to).or_insert_with(|| {
                        arms.push(StepId(rule.to as u32));
                        arms.len() as u32 - 1
                    });
                    let cube = rule.sets.into_iter().map(|(field, set)| (key(field), set));
                    let cubes = Arc::new([cube.collect()]);
                    all.push(ClassifyRule { cubes, arm, number, span: None });
                }
                let (rules, otherwise) = (all.into(), StepId(otherwise as u32));
                self.draft.step(Step::Classify {
                    table: None,
                    keys,
                    rules,
                    arms,
                    otherwise,
                    element,
                })
            }
        }
    }

    fn handoff(&mut self, to: Continuation) -> Result<At, Failure> {
        self.draft.exit(Exit::handoff(to, Vec::new()))
    }

    /// Executes the actions of a rule.
    fn act(&mut self, at: usize, jumps: u16, sight: Sight) -> Result<At, Stop> {
        let entry = &self.entries[at];
        let fail = |message: &str| Err(Stop::Fail((entry.line, message.to_string())));
        let (mut mark, mut count, mut fate) = (None, None, None);
        let mut changes = Changes::default();
        for act in &entry.acts {
            let twice = match act {
                Act::Mark(id) => mark.replace(*id).is_some(),
                Act::Count(id) => count.replace(*id).is_some(),
                Act::Queue(_) | Act::Drop | Act::Jump(_) => fate.replace(act).is_some(),
                Act::Destination(address) => changes.destination.replace(*address).is_some(),
                Act::Source(address) => changes.source.replace(*address).is_some(),
                Act::PopTag => std::mem::replace(&mut changes.popped, true),
                Act::Age => {
                    changes.aged = changes.aged.saturating_add(1);
                    false
                }
            };
            if twice {
                return fail("an action stands there twice, or packets would end twice");
            }
        }
        match (fate, mark) {
            (None, _) => fail("nothing determines where packets go"),
            (Some(Act::Jump(_)), _) if mark.is_some() || changes != Changes::default() => {
                fail("packets are changed before they go on in another group")
            }
            (Some(Act::Jump(group)), _) => {
                if *group <= entry.group {
                    return fail("it leads back");
                }
                if jumps + 1 >= MOST_JUMPS {
                    return fail("too many groups are passed");
                }
                let place = Position::Group { group: *group, jumps: jumps + 1, sight };
                self.at(place).map_err(Stop::Fail)
            }
            (Some(Act::Queue(0)), _) if changes != Changes::default() => {
                fail("cores are given packets that were changed")
            }
            (Some(Act::Queue(0)), None) => self.handoff(UNMARKED).map_err(Stop::Fail),
            (Some(Act::Queue(0)), Some(mark)) => match u16::try_from(mark) {
                Ok(mark @ 1..) => self.handoff(Continuation(mark)).map_err(Stop::Fail),
                _ => fail("no packet goes on at such a mark"),
            },
            (Some(_), Some(_)) => fail("a packet is marked that no core sees"),
            (Some(fate), None) => {
                let exit = count.and_then(|count| self.counted(count));
                self.end(entry.line, fate, exit, &changes, sight)
            }
        }
    }

    /// The exit of the segment that a counter is of.
    fn counted(&self, id: u32) -> Option<Exit> {
        let step = self.of().steps.get((id & 0xff_ffff) as usize)?;
        match step {
            Step::Exit(exit) if id >> 24 == self.segment as u32 + 1 => Some((**exit).clone()),
            _ => None,
        }
    }

    fn end(
        &mut self,
        line: usize,
        fate: &Act,
        exit: Option<Exit>,
        changes: &Changes,
        sight: Sight,
    ) -> Result<At, Stop> {
        let fail = |message: String| Err(Stop::Fail((line, message)));
        let Some(exit) = exit else { return fail("its counter is no exit's".into()) };
        match (fate, exit.end) {
            (Act::Drop, End::Drop { .. }) => self.draft.exit(exit).map_err(Stop::Fail),
            (Act::Drop, _) => self.draft.lost(LOST).map_err(Stop::Fail),
            (Act::Queue(queue), end @ (End::Push { .. } | End::Drop { .. })) => {
                let port = u32::from(*queue) - 1;
                let leads = |to: &Port| self.device.egress.get(to) == Some(&port);
                let end = match end {
                    End::Push { to, .. } if leads(&to) => end,
                    _ => match self.device.egress.keys().copied().find(leads) {
                        Some(to) => End::Push { to, native: true },
                        None => {
                            return fail(format!("queue {queue} leads to no port of the chain"));
                        }
                    },
                };
                self.leave(changes, Exit { end, ..exit }, sight)
            }
            _ => fail("its counter is of packets that cores take".into()),
        }
    }

    /// An exit of a packet that changes.
    fn leave(&mut self, changes: &Changes, exit: Exit, sight: Sight) -> Result<At, Stop> {
        let terms = &mut self.draft.terms;
        let mut bytes: BTreeMap<i32, (u8, TermId)> = BTreeMap::new();
        let mut start = 0;
        if changes.popped {
            match sight.tagged(terms)? {
                Some(true) => start = 4,
                Some(false) => {}
                None => return self.draft.lost(LOST).map_err(Stop::Fail),
            }
        }
        for (at, value) in [(0, changes.destination), (6, changes.source)] {
            let value = match value {
                Some(value) => terms.constant(value),
                None if start != 0 => terms.input(data(8 * at, 48)),
                None => continue,
            };
            bytes.insert(start + i32::from(at), (6, value));
        }
        let mut lives = None;
        if changes.aged > 0 {
            let Some(ip) = sight.ip(terms)? else {
                return self.draft.lost(LOST).map_err(Stop::Fail);
            };
            let ttl = terms.input(data(8 * ip + 64, 8));
            let left = terms.with(BinaryOp::Sub, ttl, changes.aged.into());
            bytes.insert(i32::from(ip) + 8, (1, left));
            let checksum = terms.input(data(8 * ip + 80, 16));
            let constant = 0xffff - 0x100 * u16::from(changes.aged);
            let (complement, minus) = (true, vec![checksum]);
            let sum = OnesSum { complement, minus, constant, ..OnesSum::default() };
            bytes.insert(i32::from(ip) + 10, (2, terms.add(Term::OnesSum(sum))));
            lives = Some(Atom::Test(ttl, IntervalSet::range(changes.aged.into(), 255).into()));
        }
        let write = |(offset, (length, value))| Write { offset, length, value };
        let bytes = bytes.into_iter().map(write).collect();
        let writes = Writes { start, bytes, ..Writes::default() };
        let left = self.draft.exit(Exit { writes, ..exit }).map_err(Stop::Fail)?;
        let Some(lives) = lives else { return Ok(left) };
        // Nothing says what a card makes of less than no time to live.
        let lost = self.draft.lost(LOST).map_err(Stop::Fail)?;
        self.draft.test(lives, left, lost).map_err(Stop::Fail)
    }
}

/// What is done to a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Changes {
    destination: Option<u128>,
    source: Option<u128>,
    popped: bool,
    aged: u8,
}

/// A field as a whole, or byte by byte: each part, and its lowest bit.
fn parts(field: Field, apart: bool) -> impl Iterator<Item = (Field, u16)> {
    let byte = move |first: u16| {
        let width = (field.width - first).min(8);
        (Field::bits(field.base, field.offset + first, width), field.width - first - width)
    };
    let whole = (!apart).then_some((field, 0));
    whole.into_iter().chain((0..field.width).step_by(8).filter(move |_| apart).map(byte))
}
