//! Which table lies in which stage.
//!
//! Stage by stage, tables whose dependences allow it are put in, those first that most stages have to follow. A table
//! for which memory is short may be divided: a packet that finds nothing in one part looks it up in the next. A few
//! orders of precedence are tried, small pipelines also exhaustively, and the shortest result is taken.

use std::cmp::Reverse;
use std::fmt;

use super::containers::Allocation;
use super::demand::{Amounts, Demand, Resource, Shortage, Taken};
use super::dependence::{Dependence, dependences};
use super::hardware::Stages;
use super::pipeline::{Pipeline, TableId};

/// A part of a table in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TablePart {
    /// The stage, from 0.
    pub stage: u32,
    /// The table.
    pub table: TableId,
    /// How many of its entries.
    pub entries: u64,
}

/// Where a table lies, and why no earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageRange {
    /// The stage of its first part.
    pub first: u32,
    /// The stage of its last part.
    pub last: u32,
    /// The dependence that keeps it from lying earlier, or would if there were more room.
    pub depends: Option<Dependence>,
    /// What is short in the stage before, where dependences would allow it.
    pub lacks: Option<Shortage>,
}

/// A pipeline in stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Stages that are needed. They may be more than there are.
    pub stages: u32,
    /// Stages that dependences alone ask for.
    pub depth: u32,
    /// Stages that any placement takes at least.
    pub bound: u32,
    /// Parts, in order of stages.
    pub parts: Vec<TablePart>,
    /// By table.
    pub places: Vec<StageRange>,
    /// By stage: what is taken.
    pub taken: Vec<Amounts>,
    /// By width of registers: how many are taken.
    pub registers: Vec<u32>,
    /// The tables, from the first stage to the last, that make the last one so late.
    pub critical: Vec<TableId>,
}

/// Why a pipeline cannot be placed in however many stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplaceable {
    /// The pipeline is not well formed.
    Malformed(String),
    /// A table needs more than a whole stage has.
    Table(TableId, Shortage),
    /// Bits of fields for which there are no registers.
    Fields(u32),
    /// Stages would be too many to be looked at.
    Long,
}

impl Unplaceable {
    /// In words.
    pub fn said(&self, pipeline: &Pipeline) -> String {
        match self {
            Self::Malformed(why) => why.clone(),
            Self::Table(table, Shortage { resource, needed, free }) => {
                let table = &pipeline.tables[table.0 as usize];
                format!(
                    "table '{}' ({}) needs {needed} {resource}; a stage has {free}",
                    table.name, table.origin
                )
            }
            Self::Long => format!("more than {MOST_STAGES} stages would be needed"),
            Self::Fields(bits) => {
                let all: u32 = pipeline.fields.iter().map(|field| field.bits).sum();
                format!("registers hold {} of {all} bits of fields", all.saturating_sub(*bits))
            }
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {} free", self.needed, self.resource, self.free)
    }
}

/// Stages that are looked at. A pipeline that needs more is given up there.
const MOST_STAGES: u32 = 1 << 10;

/// Pipelines up to this length are placed exhaustively, within so many steps.
const SMALL: usize = 12;
const MOST_STEPS: u32 = 4000;

/// How a table is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Division {
    /// Wherever there is too little room for it.
    Eager,
    /// Only if no stage has room for it.
    Needed,
}

/// What goes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// What most stages have to follow.
    Height,
    /// What takes most memory.
    Size,
}

struct Problem<'a> {
    stages: &'a Stages,
    widths: Vec<u32>,
    demands: Vec<Demand>,
    /// By table: what it takes if it is not divided.
    whole: Vec<Amounts>,
    dependences: Vec<Vec<Dependence>>,
    /// By table: stages that have to follow it.
    height: Vec<u32>,
    /// By table: the largest share of a stage's memory that it takes, in thousandths.
    size: Vec<u32>,
}

/// Places a pipeline.
///
/// # Errors
/// Why no number of stages would do.
pub fn place(pipeline: &Pipeline, stages: &Stages) -> Result<Placement, Unplaceable> {
    pipeline.check().map_err(Unplaceable::Malformed)?;
    let allocation = Allocation::new(pipeline, stages).map_err(Unplaceable::Fields)?;
    let problem = Problem::new(pipeline, stages, dependences(pipeline, &allocation))?;
    let bound = problem.bound();
    let mut best: Option<Vec<TablePart>> = None;
    let end = |parts: &[TablePart]| parts.iter().map(|part| part.stage + 1).max().unwrap_or(0);
    for plan in PLANS {
        let Some(parts) = problem.schedule(plan, MOST_STAGES) else { continue };
        if best.as_ref().is_none_or(|best| end(&parts) < end(best)) {
            best = Some(parts);
        }
        if best.as_ref().is_some_and(|best| end(best) <= bound) {
            break;
        }
    }
    let mut parts = best.ok_or(Unplaceable::Long)?;
    if end(&parts) > bound && problem.demands.len() <= SMALL {
        parts = problem.search(end(&parts)).unwrap_or(parts);
    }
    problem.settle(&mut parts);
    Ok(problem.explain(parts, bound, allocation.taken))
}

/// Whether a pipeline can be placed in the stages that there are: what [`place`] finds, without saying where and why.
pub(super) fn holds(pipeline: &Pipeline, stages: &Stages) -> bool {
    if pipeline.tables.len() <= SMALL {
        return place(pipeline, stages).is_ok_and(|placement| placement.stages <= stages.count);
    }
    let Ok(allocation) = Allocation::new(pipeline, stages) else { return false };
    let dependences = dependences(pipeline, &allocation);
    let Ok(problem) = Problem::new(pipeline, stages, dependences) else { return false };
    problem.bound() <= stages.count
        && PLANS.into_iter().any(|plan| problem.schedule(plan, stages.count).is_some())
}

/// Orders of precedence that are tried.
const PLANS: [(Order, Division); 4] = [
    (Order::Height, Division::Needed),
    (Order::Height, Division::Eager),
    (Order::Size, Division::Needed),
    (Order::Size, Division::Eager),
];

impl<'a> Problem<'a> {
    fn new(
        pipeline: &Pipeline,
        stages: &'a Stages,
        dependences: Vec<Vec<Dependence>>,
    ) -> Result<Self, Unplaceable> {
        let tables = &pipeline.tables;
        let widths: Vec<u32> = pipeline.fields.iter().map(|field| field.bits).collect();
        let demands: Vec<Demand> =
            tables.iter().map(|table| Demand::new(pipeline, table, stages)).collect();
        let empty = Taken::default();
        for (at, demand) in demands.iter().enumerate() {
            let least = demand.amounts(demand.step(stages).min(demand.entries), stages);
            if let Some(short) = empty.lacks(demand, &least, &widths, stages) {
                return Err(Unplaceable::Table(TableId(at as u32), short));
            }
        }
        let whole: Vec<Amounts> =
            demands.iter().map(|demand| demand.amounts(demand.entries, stages)).collect();
        let memory = [Resource::Sram, Resource::Tcam, Resource::MapRams];
        let share = |amounts: &Amounts| {
            let of = |resource: Resource| {
                let all = u64::from(resource.of(stages).max(1));
                u64::from(amounts[resource as usize]) * 1000 / all
            };
            u32::try_from(memory.into_iter().map(of).max().unwrap_or(0)).unwrap_or(u32::MAX)
        };
        let size: Vec<u32> = whole.iter().map(share).collect();
        let mut height: Vec<u32> = size.iter().map(|size| size.saturating_sub(1) / 1000).collect();
        for to in (0..tables.len()).rev() {
            for dependence in &dependences[to] {
                let from = dependence.from.0 as usize;
                let own = size[from].saturating_sub(1) / 1000;
                height[from] = height[from].max(height[to] + dependence.kind.stages() + own);
            }
        }
        Ok(Self { stages, widths, demands, whole, dependences, height, size })
    }

    /// Stages by dependences alone, counting a table of several stages as one.
    fn depth(&self) -> u32 {
        let mut first = vec![0; self.demands.len()];
        for (to, dependences) in self.dependences.iter().enumerate() {
            let behind = |d: &Dependence| first[d.from.0 as usize] + d.kind.stages();
            first[to] = dependences.iter().map(behind).max().unwrap_or(0);
        }
        first.iter().map(|first| first + 1).max().unwrap_or(0)
    }

    fn bound(&self) -> u32 {
        let mut sum = [0u64; Resource::ALL.len()];
        for amounts in &self.whole {
            sum.iter_mut().zip(amounts).for_each(|(sum, more)| *sum += u64::from(*more));
        }
        // Fields of the crossbar may be shared: they are no bound.
        let stages = Resource::ALL.into_iter().map(|resource| {
            sum[resource as usize].div_ceil(u64::from(resource.of(self.stages).max(1)))
        });
        let memory = u32::try_from(stages.max().unwrap_or(0)).unwrap_or(u32::MAX);
        let longest = self.height.iter().max().map_or(0, |height| height + 1);
        memory.max(longest).max(self.depth())
    }

    /// The earliest stage by dependences, with the dependence, if all earlier tables are placed.
    fn earliest(&self, table: usize, last: &[Option<u32>]) -> Option<(u32, Option<&Dependence>)> {
        let mut earliest: (u32, Option<&Dependence>) = (0, None);
        for dependence in &self.dependences[table] {
            let stage = last[dependence.from.0 as usize]? + dependence.kind.stages();
            // Of equals, that which costs most.
            let better = match earliest.1 {
                None => true,
                Some(other) => (stage, dependence.kind) > (earliest.0, other.kind),
            };
            if better {
                earliest = (stage, Some(dependence));
            }
        }
        Some(earliest)
    }

    fn fits(&self, taken: &Taken, table: usize, amounts: &Amounts) -> Option<Shortage> {
        taken.lacks(&self.demands[table], amounts, &self.widths, self.stages)
    }

    /// The most entries, up to those that are left, for which a stage has room.
    fn most(&self, taken: &Taken, table: usize, left: u64) -> Option<u64> {
        let demand = &self.demands[table];
        let fits =
            |entries: u64| self.fits(taken, table, &demand.amounts(entries, self.stages)).is_none();
        let step = demand.step(self.stages);
        let (mut low, mut high) = (0, left.div_ceil(step));
        while low < high {
            let middle = (low + high).div_ceil(2);
            match fits((middle * step).min(left)) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        (low > 0).then(|| (low * step).min(left))
    }

    /// Puts tables into at most so many stages.
    fn schedule(&self, (order, division): (Order, Division), most: u32) -> Option<Vec<TablePart>> {
        let n = self.demands.len();
        let mut waiting: Vec<usize> = (0..n).collect();
        let key = |&at: &usize| match order {
            Order::Height => (Reverse(self.height[at]), Reverse(self.size[at]), at),
            Order::Size => (Reverse(self.size[at]), Reverse(self.height[at]), at),
        };
        waiting.sort_by_key(key);
        let mut left: Vec<u64> = self.demands.iter().map(|demand| demand.entries).collect();
        let mut last: Vec<Option<u32>> = vec![None; n];
        let mut parts = Vec::new();
        for stage in 0..most {
            let mut taken = Taken::default();
            let mut divided = vec![false; n];
            // Once more where tables were put whose stage others may share.
            let mut again = true;
            while std::mem::take(&mut again) {
                waiting.retain(|&table| {
                    let ready = || self.earliest(table, &last).is_some_and(|(at, _)| at <= stage);
                    if divided[table] || !ready() {
                        return true;
                    }
                    let demand = &self.demands[table];
                    let begun = left[table] < demand.entries;
                    let amounts = match begun {
                        true => demand.amounts(left[table], self.stages),
                        false => self.whole[table],
                    };
                    let mut entries = left[table];
                    if self.fits(&taken, table, &amounts).is_some() {
                        let must = begun || self.size[table] > 1000;
                        if !must && division == Division::Needed {
                            return true;
                        }
                        let Some(most) = self.most(&taken, table, left[table]) else { return true };
                        entries = most;
                    }
                    let amounts = demand.amounts(entries, self.stages);
                    taken.take(demand, &amounts, &self.widths);
                    parts.push(TablePart { stage, table: TableId(table as u32), entries });
                    left[table] -= entries;
                    divided[table] = true;
                    if left[table] > 0 {
                        return true;
                    }
                    last[table] = Some(stage);
                    again = true;
                    false
                });
            }
            if waiting.is_empty() {
                return Some(parts);
            }
        }
        None
    }

    /// Tries all placements of whole tables that take fewer stages.
    fn search(&self, end: u32) -> Option<Vec<TablePart>> {
        if self.size.iter().any(|size| *size > 1000) {
            return None;
        }
        let mut search = Search {
            problem: self,
            end,
            last: vec![None; self.demands.len()],
            taken: vec![Taken::default(); end as usize],
            best: None,
            steps: 0,
        };
        search.table(0);
        let best = search.best?;
        let part = |(table, stage): (usize, u32)| TablePart {
            stage,
            table: TableId(table as u32),
            entries: self.demands[table].entries,
        };
        Some(best.into_iter().enumerate().map(part).collect())
    }

    /// What is taken of stages.
    fn taken(&self, parts: &[TablePart]) -> Vec<Taken> {
        let end = parts.iter().map(|part| part.stage + 1).max().unwrap_or(0);
        let mut taken = vec![Taken::default(); end as usize];
        for part in parts {
            let demand = &self.demands[part.table.0 as usize];
            let amounts = demand.amounts(part.entries, self.stages);
            taken[part.stage as usize].take(demand, &amounts, &self.widths);
        }
        taken
    }

    /// The last stage of each table, and the first.
    fn ends(&self, parts: &[TablePart]) -> (Vec<Option<u32>>, Vec<u32>) {
        let mut last = vec![None; self.demands.len()];
        let mut first = vec![u32::MAX; self.demands.len()];
        for part in parts {
            let at = part.table.0 as usize;
            last[at] = last[at].max(Some(part.stage));
            first[at] = first[at].min(part.stage);
        }
        (last, first)
    }

    /// Moves tables to the earliest stages that have room, so that each has a reason to lie where it does.
    fn settle(&self, parts: &mut [TablePart]) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for table in 0..self.demands.len() {
                let mut own = (0..parts.len()).filter(|&at| parts[at].table.0 as usize == table);
                let (Some(at), None) = (own.next(), own.next()) else { continue };
                let (last, _) = self.ends(parts);
                let Some((earliest, _)) = self.earliest(table, &last) else { continue };
                if earliest >= parts[at].stage {
                    continue;
                }
                let taken = self.taken(parts);
                let room = (earliest..parts[at].stage).find(|&stage| {
                    self.fits(&taken[stage as usize], table, &self.whole[table]).is_none()
                });
                if let Some(stage) = room {
                    parts[at].stage = stage;
                    moved = true;
                }
            }
        }
        parts.sort_unstable();
    }

    fn explain(&self, parts: Vec<TablePart>, bound: u32, registers: Vec<u32>) -> Placement {
        let (last, first) = self.ends(&parts);
        let taken = self.taken(&parts);
        let mut places = Vec::with_capacity(self.demands.len());
        for table in 0..self.demands.len() {
            let (first, last_stage) = (first[table], last[table].unwrap_or(0));
            let (earliest, depends) = self.earliest(table, &last).unwrap_or((0, None));
            let demand = &self.demands[table];
            let least = match first == last_stage {
                true => self.whole[table],
                false => demand.amounts(demand.step(self.stages).min(demand.entries), self.stages),
            };
            let before = first.checked_sub(1).filter(|before| *before >= earliest);
            let lacks = before.and_then(|at| self.fits(&taken[at as usize], table, &least));
            places.push(StageRange { first, last: last_stage, depends: depends.cloned(), lacks });
        }
        let mut critical = Vec::new();
        let end = parts.iter().map(|part| part.stage + 1).max().unwrap_or(0);
        // Of those that lie last, the one that is held back by dependences rather than room.
        let mut at = (0..places.len())
            .filter(|&table| places[table].last + 1 == end)
            .min_by_key(|&table| (places[table].lacks.is_some(), table));
        while let Some(table) = at {
            critical.push(TableId(table as u32));
            at = places[table].depends.as_ref().map(|depends| depends.from.0 as usize);
        }
        critical.reverse();
        Placement {
            stages: end,
            depth: self.depth(),
            bound,
            places,
            taken: taken.iter().map(|taken| *taken.amounts()).collect(),
            parts,
            registers,
            critical,
        }
    }
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    /// Placements have to take fewer stages.
    end: u32,
    last: Vec<Option<u32>>,
    taken: Vec<Taken>,
    best: Option<Vec<u32>>,
    steps: u32,
}

impl Search<'_> {
    /// Places a table and those behind it.
    fn table(&mut self, table: usize) {
        let problem = self.problem;
        if table == self.last.len() {
            let all: Vec<u32> = self.last.iter().flatten().copied().collect();
            self.end = all.iter().map(|stage| stage + 1).max().unwrap_or(0);
            self.best = Some(all);
            return;
        }
        let Some((earliest, _)) = problem.earliest(table, &self.last) else { return };
        let demand = &problem.demands[table];
        let mut stage = earliest;
        while stage + problem.height[table] + 1 < self.end {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return;
            }
            let before = &self.taken[stage as usize];
            if problem.fits(before, table, &problem.whole[table]).is_none() {
                let mut with = before.clone();
                with.take(demand, &problem.whole[table], &problem.widths);
                let before = std::mem::replace(&mut self.taken[stage as usize], with);
                self.last[table] = Some(stage);
                self.table(table + 1);
                self.last[table] = None;
                self.taken[stage as usize] = before;
            }
            stage += 1;
        }
    }
}
