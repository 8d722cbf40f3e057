//! Functions of several chains together on one device: whether it has room for some of them.
//!
//! Each function has the pipeline that it would have alone. Together, a table in front tells packets of chains apart, and
//! the one behind all sends them on. Functions follow each other by the number of their path, which those write that
//! decide. Tables of functions of which a packet meets only one are one table, if they have the same shape; the path
//! is a part of its key then.
//!
//! All that might be there is joined once. What is there is a part of that, so fewer functions never take more.

use std::collections::{BTreeSet, HashMap};

use super::fit::{At, fit, holds};
use super::hardware::{Hardware, Room};
use super::pipeline::{
    Action, Branch, BranchId, Decision, Field, FieldId, Guard, Key, MatchKind, Pipeline, Table,
    TableId,
};
use crate::Lack;

/// A function that a device could have.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The tables that it would be alone.
    pub pipeline: Pipeline,
    /// Places where it hands packets to cores: each takes a number of tags.
    pub numbers: usize,
    /// Whether it has several outputs.
    pub forks: bool,
}

/// A chain of functions.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Those that the device could have.
    pub all: Vec<Option<Member>>,
    /// From which function to which later one packets go.
    pub edges: Vec<(usize, usize)>,
}

/// What some functions take of a device, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Stages, if it has some.
    pub stages: Option<(usize, usize)>,
    /// Tables, if these are there in a fixed order.
    pub tables: Option<(usize, usize)>,
    /// Numbers of tags.
    pub numbers: (usize, usize),
}

/// What tables are compared by: keys, actions, guards of its own function, and whether it counts or meters.
type Shape = (Vec<Key>, Vec<Action>, Vec<Guard>, Vec<TableId>, bool, bool);

/// All functions that a device could have, joined.
#[derive(Clone, Debug)]
pub struct Joint {
    hardware: Option<Hardware>,
    names: HashMap<(usize, usize), String>,
    edges: Vec<Vec<(usize, usize)>>,
    numbers: HashMap<(usize, usize), usize>,
    pipeline: Pipeline,
    /// By table: whose it is, with the entries of each. That of the device itself is nobody's.
    owners: Vec<Vec<((usize, usize), u64)>>,
    /// By function: fields of its headers.
    headers: HashMap<(usize, usize), Vec<FieldId>>,
    /// Fields that chains and their paths are distinguished by.
    path: [FieldId; 2],
    /// Functions alone on the device that need nothing that distinguishes packets.
    alone: HashMap<(usize, usize), Pipeline>,
}

/// An 802.1Q tag holds 4,094 numbers.
const NUMBERS: usize = 4094;

/// Functions that follow each other have metadata of their own; so many further on, packets need it no more.
const REUSED: usize = 3;

/// Where a packet leaves, and whether it does.
const ENDS: [&str; 2] = ["egress port", "drop"];

/// What tells packets of chains apart, where a program has it.
const STEERED: [&str; 3] = ["tag.vid", "ipv4.src", "ipv4.dst"];

/// What was built so far.
struct Joining {
    all: Pipeline,
    /// By name and width.
    fields: HashMap<(String, u32), FieldId>,
    shapes: Vec<Shape>,
    owners: Vec<Vec<((usize, usize), u64)>>,
    path: [FieldId; 2],
    /// Functions so far: each has a number.
    functions: u32,
    /// By function: its last table.
    last: HashMap<(usize, usize), TableId>,
}

impl Joint {
    /// Joins functions of chains. Without hardware, only tags are bounded.
    pub fn new(chains: &[Members], hardware: Option<Hardware>) -> Self {
        let staged = !matches!(&hardware, Some(Hardware { room: Room::Tables(_), .. }));
        let mut all = Pipeline::default();
        let path = [all.field("chain", 16, None), all.field("path", 16, None)];
        let mut joining = Joining {
            all,
            fields: HashMap::new(),
            shapes: Vec::new(),
            owners: Vec::new(),
            path,
            functions: 0,
            last: HashMap::new(),
        };
        let mut joint = Self {
            hardware,
            names: HashMap::new(),
            edges: chains.iter().map(|chain| chain.edges.clone()).collect(),
            numbers: HashMap::new(),
            pipeline: Pipeline::default(),
            owners: Vec::new(),
            headers: HashMap::new(),
            path,
            alone: HashMap::new(),
        };
        let mut levels: Vec<Vec<((usize, usize), &Member)>> = Vec::new();
        for (number, chain) in chains.iter().enumerate() {
            let mut level = vec![0; chain.all.len()];
            for to in 0..chain.all.len() {
                let before = chain.edges.iter().filter(|edge| edge.1 == to && edge.0 < to);
                level[to] = before.map(|edge| level[edge.0] + 1).max().unwrap_or(0);
            }
            for (at, member) in chain.all.iter().enumerate() {
                let Some(member) = member else { continue };
                let key = (number, at);
                joint.names.insert(key, member.name.clone());
                joint.numbers.insert(key, member.numbers);
                joint.alone.insert(key, member.pipeline.clone());
                levels.resize_with(levels.len().max(level[at] + 1), Vec::new);
                levels[level[at]].push((key, member));
                let fields = joining.headers(&member.pipeline);
                joint.headers.insert(key, fields);
            }
        }
        if staged {
            joining.steer(levels.iter().map(Vec::len).sum());
        }
        let chain = joining.all.branch(Decision::Fields(vec![path[0]]));
        for (level, members) in levels.iter().enumerate() {
            let arm = joining.all.branch(Decision::Fields(vec![path[1]]));
            let start = joining.all.tables.len();
            for (key, member) in members {
                let before = chains[key.0].edges.iter().filter(|edge| edge.1 == key.1);
                let before = before.filter_map(|edge| joining.last.get(&(key.0, edge.0)).copied());
                // Tables that are there in an order keep that of functions; stages that of what these decide.
                let before = if staged { Vec::new() } else { before.collect() };
                joining.member((*key, before), member, (chain, arm), (level, start, staged));
            }
        }
        if staged {
            joining.leave(levels.iter().map(Vec::len).sum());
        }
        (joint.pipeline, joint.owners) = (joining.all, joining.owners);
        joint
    }

    /// Whether there is room for some functions, by chain and function; and what they take.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn fit(&self, placed: &[(usize, usize)]) -> Result<Taken, String> {
        let there: BTreeSet<(usize, usize)> = placed.iter().copied().collect();
        let numbers = self.numbers(&there);
        if numbers > NUMBERS {
            return Err(format!("no tag left: {numbers} of {NUMBERS}"));
        }
        let mut taken = Taken { numbers: (numbers, NUMBERS), ..Taken::default() };
        let Some(hardware) = &self.hardware else { return Ok(taken) };
        let (pipeline, owners) = self.pipeline(&there);
        let fit = fit(&pipeline, hardware);
        match (&fit.at, &hardware.room) {
            (At::Stages(placement), Room::Stages(stages)) => {
                taken.stages = Some((placement.stages as usize, stages.count as usize));
            }
            (At::Tables(all), Room::Tables(fixed)) => {
                let used: BTreeSet<usize> = all.iter().map(|of| of.fixed).collect();
                taken.tables = Some((used.len(), fixed.len()));
            }
            _ => {}
        }
        let Some(misfit) = fit.misfit else { return Ok(taken) };
        let critical: Vec<TableId> = match &fit.at {
            At::Stages(placement) => placement.critical.clone(),
            _ => misfit.table.into_iter().collect(),
        };
        let mut names: Vec<&str> = Vec::new();
        for key in critical.iter().flat_map(|table| &owners[table.0 as usize]) {
            let name = self.names[key].as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(NAMED);
        let mut who = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if more > 0 {
            who = format!("{who} and {more} more");
        }
        Err(match &misfit.lack {
            Lack::Room("stages", needed, there) if *needed != usize::MAX => {
                format!("no stage left: {needed} of {there}, needed by {who}")
            }
            Lack::Room(what, needed, there) if *needed != usize::MAX => {
                format!("no room for {who}: {needed} of {there} {what}")
            }
            _ if who.is_empty() => misfit.why,
            _ => format!("no room for {who}: {}", misfit.why),
        })
    }

    /// Whether there is room for some functions: [`Joint::fit`] in less time, as it does not say why not.
    pub fn holds(&self, placed: &[(usize, usize)]) -> bool {
        let there: BTreeSet<(usize, usize)> = placed.iter().copied().collect();
        let hardware = self.hardware.as_ref();
        self.numbers(&there) <= NUMBERS
            && hardware.is_none_or(|hardware| holds(&self.pipeline(&there).0, hardware))
    }

    /// The same functions on a device with more stages; nothing if it has none.
    pub fn with_stages(&self, more: u32) -> Option<Self> {
        let mut joint = self.clone();
        let Room::Stages(stages) = &mut joint.hardware.as_mut()?.room else { return None };
        stages.count += more;
        Some(joint)
    }

    /// The same functions, of which one has only a share of its entries.
    pub fn with_entries(&self, function: (usize, usize), share: f64) -> Self {
        let mut joint = self.clone();
        let less = |entries: &mut u64| *entries = (*entries as f64 * share).ceil() as u64;
        let owners = joint.owners.iter_mut().flatten();
        owners.filter(|(key, _)| *key == function).for_each(|(_, entries)| less(entries));
        let alone = joint.alone.get_mut(&function).into_iter().flat_map(|of| &mut of.tables);
        alone.for_each(|table| less(&mut table.entries));
        joint
    }

    /// Numbers of tags that some functions take.
    fn numbers(&self, there: &BTreeSet<(usize, usize)>) -> usize {
        let mut numbers: usize = there.iter().filter_map(|key| self.numbers.get(key)).sum();
        for (chain, edges) in self.edges.iter().enumerate() {
            let is_cut = |edge: &&(usize, usize)| {
                there.contains(&(chain, edge.0)) != there.contains(&(chain, edge.1))
            };
            numbers += edges.iter().filter(is_cut).count();
        }
        numbers
    }

    /// What some functions are together, and whose the tables are.
    fn pipeline(&self, there: &BTreeSet<(usize, usize)>) -> (Pipeline, Vec<Vec<(usize, usize)>>) {
        let known: Vec<&(usize, usize)> =
            there.iter().filter(|key| self.names.contains_key(key)).collect();
        match known[..] {
            [] => (Pipeline::default(), Vec::new()),
            [one] => {
                let alone = self.alone[one].clone();
                let owners = vec![vec![*one]; alone.tables.len()];
                (alone, owners)
            }
            _ => self.part(there),
        }
    }

    /// The part of the pipeline that is of some functions, and whose its tables are.
    fn part(&self, there: &BTreeSet<(usize, usize)>) -> (Pipeline, Vec<Vec<(usize, usize)>>) {
        let mut number: Vec<u32> = Vec::new();
        let mut is_kept: Vec<bool> = Vec::new();
        let mut tables: Vec<Table> = Vec::new();
        let mut owners = Vec::new();
        for (table, own) in self.pipeline.tables.iter().zip(&self.owners) {
            number.push(tables.len() as u32);
            let kept: Vec<_> = own.iter().filter(|(key, _)| there.contains(key)).collect();
            is_kept.push(!kept.is_empty() || own.is_empty());
            if !is_kept.last().copied().unwrap_or_default() {
                continue;
            }
            let mut table = table.clone();
            match kept[..] {
                [] => {}
                [(_, entries)] => {
                    table.entries = *entries;
                    table.keys.retain(|key| key.field != self.path[1]);
                }
                _ => {
                    table.entries = kept
                        .iter()
                        .fold(0, |sum: u64, (_, more)| sum.saturating_add(*(more.max(&1))));
                }
            }
            tables.push(table);
            owners.push(kept.iter().map(|(key, _)| *key).collect());
        }
        number.push(tables.len() as u32);
        for table in &mut tables {
            table.after.retain(|of| is_kept[of.0 as usize]);
            table.after.iter_mut().for_each(|of| of.0 = number[of.0 as usize]);
        }
        let branch = |of: &Branch| Branch {
            at: number[of.at as usize],
            on: match &of.on {
                Decision::Outcome(table) => Decision::Outcome(TableId(number[table.0 as usize])),
                on => on.clone(),
            },
        };
        let mut pipeline = Pipeline {
            fields: self.pipeline.fields.clone(),
            branches: self.pipeline.branches.iter().map(branch).collect(),
            tables,
        };
        self.compact(&mut pipeline, there);
        (pipeline, owners)
    }

    /// Leaves out branches that no table depends on, and fields that nobody uses.
    fn compact(&self, pipeline: &mut Pipeline, there: &BTreeSet<(usize, usize)>) {
        let mut is_asked = vec![false; pipeline.branches.len()];
        let guards = pipeline.tables.iter().flat_map(|table| &table.guards);
        guards.for_each(|guard| is_asked[guard.branch.0 as usize] = true);
        let mut renamed = vec![BranchId(0); is_asked.len()];
        let mut branches = Vec::new();
        for (at, branch) in pipeline.branches.drain(..).enumerate() {
            renamed[at] = BranchId(branches.len() as u32);
            if is_asked[at] {
                branches.push(branch);
            }
        }
        pipeline.branches = branches;
        let mut is_used = vec![false; pipeline.fields.len()];
        let mut visit = |field: FieldId| is_used[field.0 as usize] = true;
        there.iter().flat_map(|key| self.headers.get(key)).flatten().for_each(|of| visit(*of));
        for branch in &pipeline.branches {
            if let Decision::Fields(fields) = &branch.on {
                fields.iter().for_each(|of| visit(*of));
            }
        }
        for table in &pipeline.tables {
            table.keys.iter().for_each(|key| visit(key.field));
            let actions = table.actions.iter();
            actions.flat_map(|a| a.reads.iter().chain(&a.writes)).for_each(|of| visit(*of));
        }
        let mut number = vec![FieldId(0); is_used.len()];
        let mut fields: Vec<Field> = Vec::new();
        for (at, field) in pipeline.fields.drain(..).enumerate() {
            number[at] = FieldId(fields.len() as u32);
            if is_used[at] {
                fields.push(field);
            }
        }
        pipeline.fields = fields;
        let renumber = |field: &mut FieldId| *field = number[field.0 as usize];
        for branch in &mut pipeline.branches {
            if let Decision::Fields(fields) = &mut branch.on {
                fields.iter_mut().for_each(renumber);
            }
        }
        for table in &mut pipeline.tables {
            table.guards.iter_mut().for_each(|guard| {
                guard.branch = renamed[guard.branch.0 as usize];
            });
            table.keys.iter_mut().for_each(|key| renumber(&mut key.field));
            for action in &mut table.actions {
                action.reads.iter_mut().chain(&mut action.writes).for_each(renumber);
            }
        }
    }
}

/// Functions that are named.
const NAMED: usize = 4;

impl Joining {
    fn named(&mut self, name: &str, of: &Field) -> FieldId {
        let new = || (name.to_string(), of.bits);
        *self
            .fields
            .entry(new())
            .or_insert_with(|| self.all.field(name, of.bits, of.header.as_deref()))
    }

    /// The fields of a function's headers.
    fn headers(&mut self, of: &Pipeline) -> Vec<FieldId> {
        let headers = of.fields.iter().filter(|field| field.header.is_some());
        headers.map(|field| self.named(&field.name, field)).collect()
    }

    /// Fields of some names, as far as there are any.
    fn those(&self, names: &[&str]) -> Vec<FieldId> {
        let all = (0..).map(FieldId).zip(&self.all.fields);
        all.filter(|(_, field)| names.contains(&field.name.as_str())).map(|(id, _)| id).collect()
    }

    fn own(&mut self, table: Table) {
        self.shapes.push(Shape::default());
        self.owners.push(Vec::new());
        self.all.table(table);
    }

    /// What distinguishes packets that come in, or come back.
    fn steer(&mut self, functions: usize) {
        let fields = self.those(&STEERED).into_iter();
        let keys = fields.map(|field| Key { field, kind: MatchKind::Ternary });
        let writes = self.path.to_vec();
        self.own(Table {
            name: "steer".into(),
            origin: "where packets of chains are distinguished".into(),
            keys: keys.collect(),
            actions: vec![Action { name: "steer".into(), writes, data: 32, ..Action::default() }],
            entries: 2 * functions as u64,
            ..Table::default()
        });
    }

    /// What sends them on.
    fn leave(&mut self, functions: usize) {
        let writes = self.those(&ENDS);
        let keys = self.path.map(|field| Key { field, kind: MatchKind::Exact });
        self.own(Table {
            name: "leave".into(),
            origin: "where packets of chains leave".into(),
            keys: keys.to_vec(),
            actions: vec![Action { name: "leave".into(), writes, data: 12, ..Action::default() }],
            entries: 2 * functions as u64,
            ..Table::default()
        });
    }

    /// Adds a function behind the tables of earlier levels, from `start` on beside others of its level.
    fn member(
        &mut self,
        (key, before): ((usize, usize), Vec<TableId>),
        member: &Member,
        (chain, arm): (BranchId, BranchId),
        (level, start, staged): (usize, usize, bool),
    ) {
        let of = &member.pipeline;
        if of.check().is_err() {
            return;
        }
        let written: BTreeSet<FieldId> = of
            .tables
            .iter()
            .flat_map(|table| table.actions.iter().flat_map(|action| action.writes.clone()))
            .collect();
        let is_end = |field: &FieldId| ENDS.contains(&of.name(*field));
        let drops = written.iter().any(|field| of.name(*field) == "drop");
        let decides = member.forks || member.numbers > 0 || drops;
        let fields: Vec<FieldId> = of
            .fields
            .iter()
            .enumerate()
            .map(|(at, field)| {
                let is_own = field.header.is_none()
                    && !field.name.ends_with("$valid")
                    && written.contains(&FieldId(at as u32));
                match is_own {
                    true => self.named(&format!("{}@{}", field.name, level % REUSED), field),
                    false => self.named(&field.name, field),
                }
            })
            .collect();
        let mapped = |all: &[FieldId], more: Option<FieldId>| {
            let kept = all.iter().filter(|field| !staged || !is_end(field));
            let mut all: Vec<FieldId> =
                kept.map(|field| fields[field.0 as usize]).chain(more).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let number = self.functions;
        self.functions += 1;
        let mut named: BTreeSet<TableId> =
            of.tables.iter().flat_map(|table| table.after.iter().copied()).collect();
        named.extend(of.branches.iter().filter_map(|branch| match branch.on {
            Decision::Outcome(table) => Some(table),
            Decision::Fields(_) => None,
        }));
        let mut branches: Vec<BranchId> = Vec::new();
        let mut tables: Vec<TableId> = Vec::new();
        let mut next = start;
        for (at, table) in of.tables.iter().enumerate() {
            for branch in &of.branches[branches.len()..] {
                if branch.at as usize > at {
                    break;
                }
                let on = match &branch.on {
                    Decision::Fields(all) => Decision::Fields(mapped(all, None)),
                    Decision::Outcome(of) => Decision::Outcome(tables[of.0 as usize]),
                };
                let mut known = arm.0 as usize + 1..self.all.branches.len();
                let known = known.find(|known| {
                    let of = &self.all.branches[*known];
                    of.at as usize >= next && of.on == on
                });
                let id = match known {
                    Some(known) => {
                        next = self.all.branches[known].at as usize;
                        BranchId(known as u32)
                    }
                    None => {
                        self.all.branches.push(Branch { at: next as u32, on });
                        BranchId(self.all.branches.len() as u32 - 1)
                    }
                };
                branches.push(id);
            }
            let guard = |guard: &Guard| {
                let branch = branches[guard.branch.0 as usize];
                Guard { branch, arms: guard.arms.clone() }
            };
            let action = |action: &Action| {
                let ends = staged && decides && action.writes.iter().any(is_end);
                Action {
                    name: String::new(),
                    reads: mapped(&action.reads, None),
                    writes: mapped(&action.writes, ends.then_some(self.path[1])),
                    data: action.data,
                }
            };
            let mut actions: Vec<Action> = table.actions.iter().map(action).collect();
            actions
                .sort_by(|a, b| (&a.writes, &a.reads, a.data).cmp(&(&b.writes, &b.reads, b.data)));
            actions.dedup();
            let keys = table.keys.iter();
            let mut keys: Vec<Key> = keys
                .map(|key| Key { field: fields[key.field.0 as usize], kind: key.kind })
                .collect();
            keys.sort_unstable();
            let does = |action: &Action| !action.writes.is_empty();
            if !actions.iter().any(does)
                && !table.counters
                && !table.meters
                && !named.contains(&TableId(at as u32))
            {
                tables.push(TableId(u32::MAX));
                continue;
            }
            let mut after: Vec<TableId> =
                table.after.iter().map(|of| tables[of.0 as usize]).collect();
            if table.after.is_empty() {
                after.extend(&before);
            }
            let guards = table.guards.iter().map(guard).collect();
            let shape: Shape = (keys, actions, guards, after, table.counters, table.meters);
            let mut those = next..self.shapes.len();
            let same = those.find(|at| staged && self.shapes[*at] == shape);
            let of = |all: &mut Table, branch: BranchId, own: u32| {
                let guard = all.guards.iter_mut().find(|guard| guard.branch == branch);
                if let Some(guard) = guard
                    && !guard.arms.contains(&own)
                {
                    guard.arms.push(own);
                }
            };
            let index = match same {
                Some(same) => {
                    let one = &mut self.all.tables[same];
                    of(one, chain, key.0 as u32);
                    of(one, arm, number);
                    let path = Key { field: self.path[1], kind: MatchKind::Exact };
                    if !one.keys.contains(&path) {
                        one.keys.push(path);
                    }
                    self.owners[same].push((key, table.entries));
                    same
                }
                None => {
                    let own = [
                        Guard { branch: chain, arms: vec![key.0 as u32] },
                        Guard { branch: arm, arms: vec![number] },
                    ];
                    self.all.table(Table {
                        name: table.name.clone(),
                        origin: table.origin.clone(),
                        keys: shape.0.clone(),
                        actions: shape.1.clone(),
                        entries: table.entries,
                        guards: own.into_iter().chain(shape.2.iter().cloned()).collect(),
                        after: shape.3.clone(),
                        counters: table.counters,
                        meters: table.meters,
                    });
                    self.shapes.push(shape);
                    self.owners.push(vec![(key, table.entries)]);
                    self.shapes.len() - 1
                }
            };
            tables.push(TableId(index as u32));
            self.last.insert(key, TableId(index as u32));
            next = index + 1;
        }
    }
}
