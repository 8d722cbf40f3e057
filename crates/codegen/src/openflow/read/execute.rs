//! Symbolic execution of flow entries.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ir::model::BinaryOp;
use ir::program::{
    Atom, ClassifyRule, Continuation, End, Exit, OnesSum, Program, Step, StepId, Term, TermId,
    Write, Writes,
};
use ir::{IntervalSet, Port, Reason};

use super::sight::{Question, Seen, Sight};
use super::text::{Act, Bits, Entry, Name};
use crate::Device;
use crate::draft::{self, At, Draft, Failure, data, joined};

/// Why a packet is dropped that no entry takes.
const LOST: Reason = Reason("no-flow-entry");

/// A field, or one of its bytes, from 1: of a mask with many gaps each byte is looked at by itself.
type Part = (Name, u16);

/// An entry whose conditions depend on the packet.
type Rule = draft::Rule<Part>;

/// Entries with their arms, the fields that they look at, and those that are known.
type Shape = (Vec<(usize, u32)>, Vec<Part>, Vec<Name>);

/// What tables hand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Machine {
    table: u8,
    register: u32,
    metadata: u64,
}

/// What was done to a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Changes {
    popped: bool,
    /// Type, ID and priority of a tag that was put on.
    pushed: Option<(u16, u16, u8)>,
    /// In order of their names.
    set: BTreeMap<Name, u128>,
    aged: u8,
}

/// A packet in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Packet {
    /// The tag in front of all else, with which it came back from a server.
    back: Option<u32>,
    sight: Sight,
    changes: Changes,
    /// Where it was sent, and as what.
    sent: Option<(u32, Changes)>,
}

/// A place in an entry's actions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Position {
    Table(Machine, Packet),
    /// Before an action of an entry.
    Act(usize, usize, Machine, Packet),
    /// Behind the last one of an entry.
    End(usize, Packet),
}

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

struct Execution<'a> {
    entries: &'a [Entry],
    /// By table, in order of precedence: indexes of entries.
    tables: &'a BTreeMap<u8, Vec<usize>>,
    /// By entry: the first that does the same.
    alike: &'a [usize],
    device: &'a Device<'a>,
    segment: usize,
    port: u32,
    draft: Draft,
    /// Entries that may match there, in order of precedence.
    lists: HashMap<Machine, Arc<[usize]>>,
    made: HashMap<Position, At>,
    /// Numbers by width, value and mask.
    sets: HashMap<(u16, u128, u128), IntervalSet>,
    /// Rules by entries and arms, the fields that they look at, and those that are known.
    rules: HashMap<Shape, Arc<[ClassifyRule]>>,
}

/// The program that the entries are for packets of a segment.
pub(super) fn program(
    entries: &[Entry],
    device: &Device<'_>,
    segment: usize,
) -> Result<Program, Failure> {
    let of = &device.segments[segment];
    let mut found: Option<Program> = None;
    let mut tables: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        tables.entry(entry.table).or_default().push(at);
    }
    for table in tables.values_mut() {
        table.sort_by_key(|&at| std::cmp::Reverse(entries[at].priority));
    }
    let mut first: HashMap<(u64, &[Act]), usize> = HashMap::new();
    let alike = entries.iter().enumerate();
    let alike: Vec<usize> = alike
        .map(|(at, entry)| *first.entry((entry.cookie, &entry.acts[..])).or_insert(at))
        .collect();
    for &number in &of.ingress {
        let server = device.servers.returns.get(&number);
        let (port, back) = server.map_or((number, None), |&server| (server, Some(number)));
        let execution = Execution {
            entries,
            tables: &tables,
            alike: &alike,
            device,
            segment,
            port,
            draft: Draft::new(&of.program),
            lists: HashMap::new(),
            made: HashMap::new(),
            sets: HashMap::new(),
            rules: HashMap::new(),
        };
        let program = execution.run(back)?;
        match &found {
            None => found = Some(program),
            Some(other) if other.steps == program.steps && other.terms == program.terms => {}
            Some(_) => {
                let message = format!("ports {} and {port} are treated differently", of.ingress[0]);
                return Err((0, message));
            }
        }
    }
    found.ok_or_else(|| (0, format!("segment {segment} has no port")))
}

impl Execution<'_> {
    fn of(&self) -> &Program {
        &self.device.segments[self.segment].program
    }

    fn run(mut self, back: Option<u32>) -> Result<Program, Failure> {
        let machine = Machine { table: 0, register: 0, metadata: 0 };
        let (sight, changes) = Default::default();
        let packet = Packet { back, sight, changes, sent: None };
        let root = self.at(Position::Table(machine, packet))?;
        let of = &self.device.segments[self.segment].program;
        Ok(self.draft.program(root, of))
    }

    /// The step of a place.
    fn at(&mut self, place: Position) -> Result<At, Failure> {
        if let Some(&at) = self.made.get(&place) {
            return Ok(at);
        }
        let made = match &place {
            Position::Table(machine, packet) => self.table(*machine, packet),
            Position::Act(entry, act, machine, packet) => self.act(*entry, *act, *machine, packet),
            Position::End(entry, packet) => self.end(*entry, packet),
        };
        let at = match made {
            Ok(at) => at,
            Err(Stop::Fail(failure)) => return Err(failure),
            Err(Stop::Ask(question)) => {
                let with = |sight: Sight| {
                    let mut place = place.clone();
                    match &mut place {
                        Position::Table(_, packet)
                        | Position::Act(.., packet)
                        | Position::End(_, packet) => packet.sight = sight,
                    }
                    place
                };
                let yes = self.at(with(question.yes))?;
                let no = self.at(with(question.no))?;
                self.draft.test(question.atom, yes, no)?
            }
        };
        self.made.insert(place, at);
        Ok(at)
    }

    fn table(&mut self, machine: Machine, packet: &Packet) -> Result<At, Stop> {
        let (entries, port) = (self.entries, self.port);
        let known_there = |name: Name| match name {
            Name::InPort => Some(u128::from(port)),
            Name::Vlan => packet.back.map(|tag| 0x1000 | u128::from(tag)),
            Name::Register => Some(machine.register.into()),
            Name::Metadata => Some(machine.metadata.into()),
            _ => None,
        };
        let contradicts = |bits: &Bits, value: u128| value & bits.mask != bits.value;
        let all = self.lists.entry(machine).or_insert_with(|| {
            let all = self.tables.get(&machine.table).into_iter().flatten().copied();
            let wrong =
                |bits: &Bits| known_there(bits.name).is_some_and(|value| contradicts(bits, value));
            // A tag in front may be there or not.
            let wrong = |bits: &Bits| bits.name != Name::Vlan && wrong(bits);
            all.filter(|&at| !entries[at].when.iter().any(wrong)).collect()
        });
        let all = Arc::clone(all);
        let known = |name| known_there(name).or_else(|| packet.changes.set.get(&name).copied());
        let mut fields: BTreeMap<Name, Seen> = BTreeMap::new();
        let mut rules: Vec<(usize, Vec<(Part, IntervalSet)>)> = Vec::new();
        let mut seen_before: HashSet<Vec<(Part, IntervalSet)>> = HashSet::new();
        let mut last = None;
        let bits = all.iter().flat_map(|&at| &entries[at].when);
        let apart: BTreeSet<Name> =
            bits.filter(|bits| bits.has_many_gaps()).map(|bits| bits.name).collect();
        'entries: for &at in &*all {
            let entry = &entries[at];
            // What is known without a look at the packet comes first.
            let wrong =
                |bits: &Bits| known(bits.name).is_some_and(|value| contradicts(bits, value));
            if entry.when.iter().any(wrong) {
                continue;
            }
            let mut sets = Vec::new();
            for bits in entry.when.iter().filter(|bits| known(bits.name).is_none()) {
                let touched = packet.changes.popped || packet.changes.pushed.is_some();
                let moved = matches!(bits.name, Name::Vlan | Name::Priority | Name::EthType);
                let aged = packet.changes.aged > 0 && bits.name == Name::Ttl;
                if (touched && moved) || aged {
                    let message = format!("{:?} is matched after it was changed", bits.name);
                    return Err(Stop::Fail((entry.line, message)));
                }
                let seen = match fields.get(&bits.name) {
                    Some(seen) => *seen,
                    None => {
                        let seen = packet.sight.field(&mut self.draft.terms, bits.name)?;
                        fields.insert(bits.name, seen);
                        seen
                    }
                };
                let (width, value, mask) = match seen {
                    Seen::Constant(value) if value & bits.mask == bits.value => continue,
                    Seen::Constant(_) => continue 'entries,
                    Seen::Bits(_) => (bits.name.width(), bits.value, bits.mask),
                    Seen::Tag(_) if bits.mask & 0x1000 & !bits.value != 0 => continue 'entries,
                    Seen::Tag(_) => (12, bits.value & 0xfff, bits.mask & 0xfff),
                };
                for (part, low, width) in parts(width, apart.contains(&bits.name)) {
                    let low_bits = u128::MAX >> (128 - width);
                    let (value, mask) = (value >> low & low_bits, mask >> low & low_bits);
                    if mask == 0 {
                        continue;
                    }
                    let set = match self.sets.get(&(width, value, mask)) {
                        Some(set) => set.clone(),
                        None => {
                            let set = IntervalSet::masked(width, value, mask).ok_or_else(|| {
                                let message = format!("the mask of {:?} has gaps", bits.name);
                                Stop::Fail((entry.line, message))
                            })?;
                            self.sets.insert((width, value, mask), set.clone());
                            set
                        }
                    };
                    sets.push(((bits.name, part), set));
                }
            }
            if sets.is_empty() {
                last = Some(at);
                break;
            }
            // An entry that matches what an earlier one does never counts.
            if seen_before.insert(sets.clone()) {
                rules.push((at, sets));
            }
        }
        let otherwise = match last {
            Some(at) => {
                self.at(Position::Act(at, 0, machine, packet.clone())).map_err(Stop::Fail)?
            }
            None => self.draft.lost(LOST).map_err(Stop::Fail)?,
        };
        let mut known: HashMap<usize, At> = HashMap::new();
        let mut all: Vec<Rule> = Vec::with_capacity(rules.len());
        for (entry, sets) in rules {
            // Entries that do the same lead to one step.
            let first = self.alike[entry];
            let to = match known.get(&first) {
                Some(&to) => to,
                None => {
                    let place = Position::Act(first, 0, machine, packet.clone());
                    let to = self.at(place).map_err(Stop::Fail)?;
                    known.insert(first, to);
                    to
                }
            };
            all.push(Rule { entry, sets, to });
        }
        // Rules in front of the last that do what it does decide nothing.
        while all.last().is_some_and(|rule| rule.to == otherwise) {
            all.pop();
        }
        self.decide(&fields, joined(all), otherwise).map_err(Stop::Fail)
    }

    /// The step at which the first rule counts.
    fn decide(
        &mut self,
        fields: &BTreeMap<Name, Seen>,
        rules: Vec<Rule>,
        otherwise: At,
    ) -> Result<At, Failure> {
        let element = self.of().entry.node;
        let mut names: Vec<Part> = rules.iter().flat_map(|r| r.sets.iter().map(|s| s.0)).collect();
        names.sort_unstable();
        names.dedup();
        let field = |(name, byte): &Part| match fields.get(name) {
            Some(Seen::Bits(field) | Seen::Tag(field)) if *byte > 0 => {
                let first = 8 * (byte - 1);
                Some(data(field.offset + first, (field.width - first).min(8)))
            }
            Some(Seen::Bits(field) | Seen::Tag(field)) => Some(*field),
            _ => None,
        };
        let term = |this: &mut Self, part: &Part| match field(part) {
            Some(field) => this.draft.terms.input(field),
            None => this.draft.terms.constant(0),
        };
        match &names[..] {
            [] => Ok(otherwise),
            [name] => {
                let on = term(self, name);
                let width = field(name).map_or(1, |field| field.width);
                let sets = rules.iter().map(|rule| (&rule.sets[0].1, rule.to));
                self.draft.switch(on, width, sets, otherwise)
            }
            names => {
                let keys = names.iter().map(|name| term(self, name)).collect();
                let mut arms: Vec<StepId> = Vec::new();
                let mut index: HashMap<At, u32> = HashMap::new();
                let mut arm = |to: At| {
                    *index.entry(to).or_insert_with(|| {
                        arms.push(StepId(to as u32));
                        arms.len() as u32 - 1
                    })
                };
                let key: Vec<(usize, u32)> =
                    rules.iter().map(|rule| (rule.entry, arm(rule.to))).collect();
                let arm_of: Vec<u32> = key.iter().map(|(_, arm)| *arm).collect();
                let constant = |(name, seen): (&Name, &Seen)| {
                    matches!(seen, Seen::Constant(_)).then_some(*name)
                };
                let constants = fields.iter().filter_map(constant).collect();
                // Packets that differ in where their headers lie share rules.
                let rules =
                    self.rules.entry((key, names.to_vec(), constants)).or_insert_with(|| {
                        let place = |name: Part| names.binary_search(&name).unwrap_or(0) as u8;
                        let rule = |((number, rule), arm): ((u32, Rule), u32)| {
                            let cube = rule.sets.into_iter().map(|(name, set)| (place(name), set));
                            let cubes = Arc::new([cube.collect()]);
                            ClassifyRule { cubes, arm, number, span: None }
                        };
                        (0..).zip(rules).zip(arm_of).map(rule).collect()
                    });
                let rules = Arc::clone(rules);
                let otherwise = StepId(otherwise as u32);
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

    /// Executes an action, and those behind it.
    fn act(
        &mut self,
        at: usize,
        index: usize,
        mut machine: Machine,
        packet: &Packet,
    ) -> Result<At, Stop> {
        let entry = &self.entries[at];
        let fail = |message: String| Stop::Fail((entry.line, message));
        let Some(act) = entry.acts.get(index) else {
            return self.at(Position::End(at, packet.clone())).map_err(Stop::Fail);
        };
        let mut packet = packet.clone();
        let changes = &mut packet.changes;
        match *act {
            Act::Goto(table) if table > machine.table => {
                machine.table = table;
                return self.at(Position::Table(machine, packet)).map_err(Stop::Fail);
            }
            Act::Goto(_) => return Err(fail("'goto_table' leads back".into())),
            Act::Set(Name::Register, value) => machine.register = value as u32,
            Act::Set(Name::Metadata, value) => machine.metadata = value as u64,
            Act::Metadata(value, mask) => {
                machine.metadata = machine.metadata & !mask | value & mask;
            }
            Act::Output(port) if port == self.port => {}
            Act::Output(_) | Act::Back => {
                let to = if let Act::Output(port) = *act { port } else { self.port };
                if packet.sent.is_some() {
                    return Err(fail("a packet is sent twice".into()));
                }
                if packet.back.is_some() {
                    return Err(fail("a packet leaves with the tag that it came back with".into()));
                }
                packet.sent = Some((to, packet.changes.clone()));
            }
            Act::PopTag if packet.back.is_some() => packet.back = None,
            Act::PopTag => {
                if changes.popped || changes.pushed.is_some() {
                    return Err(fail("a second tag is popped, or one that was pushed".into()));
                }
                changes.popped = packet.sight.tagged(&mut self.draft.terms)?;
            }
            Act::PushTag(tag) => {
                if changes.pushed.is_some() {
                    return Err(fail("two tags are pushed".into()));
                }
                changes.pushed = Some((tag, 0, 0));
            }
            Act::Set(Name::Vlan, value) => match &mut changes.pushed {
                Some((_, id, _)) if value & 0x1000 != 0 => *id = value as u16 & 0xfff,
                _ => return Err(fail("a VLAN ID is set of a tag that was not pushed".into())),
            },
            Act::Set(Name::Priority, value) => match &mut changes.pushed {
                Some((_, _, priority)) => *priority = value as u8,
                None => {
                    return Err(fail("a priority is set of a tag that was not pushed".into()));
                }
            },
            Act::Set(name, value) => drop(changes.set.insert(name, value)),
            // What is read is of packets that are within their limits; which meter that is, the exit is asked.
            Act::Meter(_) if matches!(entry.acts.last(), Some(Act::Goto(_))) => {
                return Err(fail("'meter' stands where packets go on in another table".into()));
            }
            Act::Meter(_) => {}
            Act::Age => return self.age(at, index, machine, packet),
        }
        self.at(Position::Act(at, index + 1, machine, packet)).map_err(Stop::Fail)
    }

    /// Counts the time to live down; a packet for which that is not possible goes no further.
    fn age(
        &mut self,
        at: usize,
        index: usize,
        machine: Machine,
        mut packet: Packet,
    ) -> Result<At, Stop> {
        let line = self.entries[at].line;
        if !packet.sight.is_ip_frame(&mut self.draft.terms)? {
            return self.at(Position::Act(at, index + 1, machine, packet)).map_err(Stop::Fail);
        }
        let end = Position::End(at, packet.clone());
        let Some(ip) = packet.sight.ip(&mut self.draft.terms)? else {
            return self.at(end).map_err(Stop::Fail);
        };
        let aged = packet.changes.aged.checked_add(1).filter(|aged| *aged < u8::MAX);
        let aged = aged.ok_or_else(|| Stop::Fail((line, "'dec_ttl' too often".into())))?;
        packet.changes.aged = aged;
        let ttl = self.draft.terms.input(data(8 * ip + 64, 8));
        let lives = IntervalSet::range(u128::from(aged) + 1, 255);
        let yes = self.at(Position::Act(at, index + 1, machine, packet)).map_err(Stop::Fail)?;
        let no = self.at(end).map_err(Stop::Fail)?;
        self.draft.test(Atom::Test(ttl, lives.into()), yes, no).map_err(Stop::Fail)
    }

    /// The exit behind an entry.
    fn end(&mut self, at: usize, packet: &Packet) -> Result<At, Stop> {
        let entry = &self.entries[at];
        let fail = |message: String| Stop::Fail((entry.line, message));
        let place = self.segment as u64 + 1;
        // What stands above 36 bits is of who installed the entry.
        let step = (entry.cookie & 0xff_ffff) as u32;
        let exit = match self.of().steps.get(step as usize) {
            Some(Step::Exit(exit)) if entry.cookie >> 24 & 0xfff == place => exit.clone(),
            // Packets may be lost at other entries.
            _ if packet.sent.is_none() => return self.draft.lost(LOST).map_err(Stop::Fail),
            _ => return Err(fail(format!("cookie {:#x} is no exit's", entry.cookie))),
        };
        let mut given = entry.acts.iter().filter_map(|act| match act {
            Act::Meter(meter) => Some(meter),
            _ => None,
        });
        let meter = self.device.meters.get(&(self.segment, StepId(step)));
        if given.next() != meter || given.next().is_some() {
            let wanted = meter.map_or("no meter".into(), |meter| format!("meter {meter} alone"));
            return Err(fail(format!("packets of exit {step} are to pass {wanted}")));
        }
        let Some((port, changes)) = &packet.sent else {
            let end = match exit.end {
                end @ End::Drop { .. } => end,
                _ => return self.draft.lost(LOST).map_err(Stop::Fail),
            };
            return self.draft.exit(Exit { end, ..*exit }).map_err(Stop::Fail);
        };
        if self.device.server_ports().any(|server| server == *port)
            && let Changes { popped: false, pushed: Some((0x88a8, id, _)), set, aged: 0 } = changes
            && set.is_empty()
        {
            if !matches!(exit.end, End::Handoff { .. }) {
                return Err(fail(format!("exit {step} hands no packet off")));
            }
            if self.device.towards(Continuation(*id)) != *port {
                return Err(fail(format!("packets for {id} are handed off by port {port}")));
            }
            let handoff = Exit::handoff(Continuation(*id), Vec::new());
            return self.draft.exit(Exit { effects: exit.effects, ..handoff }).map_err(Stop::Fail);
        }
        let end = self.pushed(&exit.end, *port);
        let end = end.ok_or_else(|| fail(format!("port {port} does not lead out of the chain")))?;
        if matches!(exit.end, End::Handoff { .. }) {
            return Err(fail(format!("exit {step} hands packets off")));
        }
        self.leave(packet, changes, Exit { end, ..*exit })
    }

    /// The input port behind a device's port; the one of an exit, if it is that.
    fn pushed(&self, end: &End, port: u32) -> Option<End> {
        let leads = |to: &Port| self.device.egress.get(to) == Some(&port);
        match end {
            End::Push { to, .. } if leads(to) => Some(*end),
            _ => {
                let to = self.device.egress.keys().find(|to| leads(to))?;
                Some(End::Push { to: *to, native: true })
            }
        }
    }

    /// An exit of a packet that changes.
    fn leave(&mut self, packet: &Packet, changes: &Changes, exit: Exit) -> Result<At, Stop> {
        let mut bytes: BTreeMap<i32, (u8, TermId)> = BTreeMap::new();
        let start = self.frame(changes, &mut bytes);
        if changes.aged > 0 || changes.set.keys().any(|n| matches!(n, Name::Dscp | Name::Ecn)) {
            self.header(&packet.sight, changes, &mut bytes)?;
        }
        let write = |(offset, (length, value))| Write { offset, length, value };
        let bytes = bytes.into_iter().map(write).collect();
        let writes = Writes { start, bytes, ..Writes::default() };
        self.draft.exit(Exit { writes, ..exit }).map_err(Stop::Fail)
    }

    /// Writes to the IPv4 header.
    fn header(
        &mut self,
        sight: &Sight,
        changes: &Changes,
        bytes: &mut BTreeMap<i32, (u8, TermId)>,
    ) -> Result<(), Box<Question>> {
        let terms = &mut self.draft.terms;
        let Some(ip) = sight.ip(terms)? else { return Ok(()) };
        if sight.is_zero_protocol(terms, ip)? {
            return Ok(());
        }
        let (dscp, ecn) = (changes.set.get(&Name::Dscp), changes.set.get(&Name::Ecn));
        let service = match (dscp, ecn) {
            (Some(dscp), Some(ecn)) => Some(((8, 8), dscp << 2 | ecn)),
            (Some(dscp), None) => Some(((8, 6), *dscp)),
            (None, Some(ecn)) => Some(((14, 2), *ecn)),
            (None, None) => None,
        };
        // With the time to live the checksum changes in any case.
        if let Some((place, value)) = service
            && changes.aged == 0
            && sight.is_same_service(terms, ip, place, value)?
        {
            return Ok(());
        }
        let first = 8 * ip;
        let checksum = terms.input(data(first + 80, 16));
        let mut sum = OnesSum { complement: true, minus: vec![checksum], ..OnesSum::default() };
        if changes.aged > 0 {
            let ttl = terms.input(data(first + 64, 8));
            let left = terms.with(BinaryOp::Sub, ttl, changes.aged.into());
            bytes.insert(i32::from(ip) + 8, (1, left));
            sum.constant = 0xffff - 0x100 * u16::from(changes.aged);
        }
        if service.is_some() {
            let mut part = |value: Option<&u128>, offset, width| match value {
                Some(value) => terms.constant(*value),
                None => terms.input(data(first + offset, width)),
            };
            let (high, low) = (part(dscp, 8, 6), part(ecn, 14, 2));
            let service = terms.add(Term::Concat { high, low, width: 2 });
            bytes.insert(i32::from(ip) + 1, (1, service));
            let high = terms.input(data(first, 8));
            sum.plus.push(terms.add(Term::Concat { high, low: service, width: 8 }));
            sum.minus.push(terms.input(data(first, 16)));
        }
        let sum = terms.add(Term::OnesSum(sum));
        bytes.insert(i32::from(ip) + 10, (2, sum));
        Ok(())
    }

    /// Writes to the header of the frame, and where the packet starts then.
    fn frame(&mut self, changes: &Changes, bytes: &mut BTreeMap<i32, (u8, TermId)>) -> i32 {
        let terms = &mut self.draft.terms;
        let start = 4 * (i32::from(changes.popped) - i32::from(changes.pushed.is_some()));
        for (at, name) in [(0, Name::EthDst), (48, Name::EthSrc)] {
            let value = match changes.set.get(&name) {
                Some(value) => terms.constant(*value),
                None if start != 0 => terms.input(data(at, 48)),
                None => continue,
            };
            bytes.insert(start + i32::from(at) / 8, (6, value));
        }
        if let Some((tag, id, priority)) = changes.pushed {
            let control = u128::from(priority) << 13 | u128::from(id);
            let value = terms.constant(u128::from(tag) << 16 | control);
            bytes.insert(start + 12, (4, value));
        }
        start
    }
}

/// A field of so many bits as a whole, or byte by byte: the number of each part, its lowest bit and how many it has.
fn parts(width: u16, apart: bool) -> impl Iterator<Item = (u16, u16, u16)> {
    let byte = move |first: u16| {
        let part = (width - first).min(8);
        (first / 8 + 1, width - first - part, part)
    };
    let whole = (!apart).then_some((0, 0, width));
    whole.into_iter().chain((0..width).step_by(8).filter(move |_| apart).map(byte))
}
