//! A burst on its path through a program: all lanes at once, lookups in flow tables included; then, in the order of
//! packets, what they change in those tables; and last all that is written.
//!
//! The walk changes nothing, so a lane's result holds as long as no lane before it changes a flow that it found. Where
//! one does, the lanes that found that flow walk again.

mod commit;

use elements::flow_access::FoundFlows;
use ir::program::StepId;
use net::Packet;
use smallvec::SmallVec;

use super::cache::{Bucket, FlowCache, Member, SLOTS, Tagged};
use super::classifiers::Key;
use super::lanes::{Binding, Column, Keys, LANES, Lanes, Packets, Spare, for_lanes, lanes_of, sum};
use super::plan::{Node, Plan};
use super::write::{copy, place, write};
use super::{DROP, NONE, Outcome, Pipeline};
use crate::StageContext;
use crate::router::Delivery;

/// Instead of a site's number.
const NO_SITE: u16 = u16::MAX;

/// Where the lanes of a burst are.
#[derive(Default)]
pub(super) struct Burst {
    /// By step: the lanes that come to it.
    masks: Vec<u32>,
    /// Steps that lanes come to, as bits.
    active: Vec<u64>,
    /// By plan: the lanes that it is for.
    pub(super) planned: Vec<u32>,
    /// Plans that have lanes, in the order in which they got them.
    pub(super) used: Vec<u32>,
    /// By lane: its plan, or [`NONE`] if it goes on alone.
    pub(super) plan_of: [u32; LANES],
    /// By lane: the step at which it goes on alone.
    alone: [u32; LANES],
    /// By lane: the site at which it is, or [`NO_SITE`], its key, its hash, and which conditions
    /// hold.
    pub(super) sites: [u16; LANES],
    pub(super) keys: [[u64; 2]; LANES],
    pub(super) hashes: [u64; LANES],
    pub(super) holds: [u32; LANES],
    /// By lane: the entry of the flow cache that says what becomes of it.
    entries: [u32; LANES],
    /// What lanes took from the flow cache.
    slots: [Column; SLOTS],
    pub(super) members: Vec<Member>,
    /// By lookup: what it found.
    pub(super) found: Vec<FoundFlows>,
    bindings: Vec<Binding>,
    /// By lookup: the lanes that looked it up since the burst began.
    pub(super) looked_up: Vec<u32>,
    /// Gates, and the lanes that wait there.
    pub(super) parked: Vec<(StepId, u32)>,
    /// Lanes that go on alone.
    pub(super) single: u32,
    /// Lanes that were at a site.
    asked: u32,
    /// Lanes that are in the flow cache.
    pub(super) cached: u32,
    /// Whether entries were removed from the flow cache since the burst began.
    pub(super) removed: bool,
    /// Lanes that looked up flows.
    flows: u32,
    /// Lanes that plans were executed for before others were decided.
    finished: u32,
    /// Whether packets behind must wait until these came to rest.
    pub(super) ended: bool,
    /// Lanes that prolong flows and change nothing else of them.
    touching: u32,
    /// Lanes that change more of them.
    changing: u32,
    /// What came of packets that were taken through elements.
    out: Vec<Delivery>,
    pub(super) spare: Spare,
}

impl Burst {
    pub(super) fn new(
        steps: usize,
        plans: usize,
        bindings: Vec<Binding>,
        found: Vec<FoundFlows>,
    ) -> Self {
        Self {
            masks: vec![0; steps],
            active: vec![0; steps.div_ceil(64)],
            planned: vec![0; plans],
            found,
            looked_up: vec![0; bindings.len()],
            bindings,
            ..Self::default()
        }
    }

    #[inline]
    pub(super) fn send(&mut self, to: StepId, lanes: u32) {
        if lanes != 0 {
            self.masks[to.0 as usize] |= lanes;
            self.active[to.0 as usize / 64] |= 1 << (to.0 % 64);
        }
    }

    #[inline]
    fn plan(&mut self, plan: u32, lanes: u32) {
        let planned = &mut self.planned[plan as usize];
        if *planned == 0 {
            self.used.push(plan);
        }
        *planned |= lanes;
        for_lanes(lanes, |lane| self.plan_of[lane] = plan);
    }

    /// Has lanes go on alone from a step.
    pub(super) fn go_alone(&mut self, at: StepId, lanes: u32) {
        // What was looked up on the path here must be looked up again.
        let start = |lane: usize| self.flows >> lane & 1 == 1;
        for lane in lanes_of(lanes & !self.asked) {
            self.alone[lane] = if start(lane) { 0 } else { at.0 };
        }
    }

    /// Has lanes start again.
    fn unplan(&mut self, lanes: u32) {
        for &plan in &self.used {
            self.planned[plan as usize] &= !lanes;
        }
        self.forget(lanes);
    }

    /// Forgets what becomes of lanes.
    fn forget(&mut self, lanes: u32) {
        for_lanes(lanes, |lane| (self.plan_of[lane], self.sites[lane]) = (NONE, NO_SITE));
        self.asked &= !lanes;
        self.cached &= !lanes;
        self.flows &= !lanes;
        self.found.iter_mut().for_each(|found| found.lanes &= !lanes);
    }

    /// Asks the flow cache what becomes of lanes that come to a step with a site; gives those that are there.
    fn ask(
        &mut self,
        (step, site): (usize, u16),
        keys: &Keys,
        cache: &FlowCache,
        lanes: u32,
    ) -> u32 {
        let (mut buckets, mut tagged) = ([Bucket::default(); LANES], [Tagged::default(); LANES]);
        // Each loop touches memory that the one before prefetched.
        for lane in lanes_of(lanes) {
            let key = [keys.words[0][lane], keys.words[1][lane]];
            let hash = cache.hash(key, site);
            buckets[lane] = cache.bucket(hash);
            cache.prefetch_bucket(buckets[lane]);
            (self.keys[lane], self.hashes[lane]) = (key, hash);
            (self.holds[lane], self.sites[lane]) = (keys.holds[lane], site);
            self.alone[lane] = step as u32;
        }
        for lane in lanes_of(lanes) {
            tagged[lane] = cache.tagged(buckets[lane], self.hashes[lane]);
        }
        let mut found = 0;
        for lane in lanes_of(lanes) {
            let among = (buckets[lane], tagged[lane]);
            match cache.find_tagged(among, self.keys[lane], site, self.holds[lane]) {
                Some(at) => {
                    found |= 1 << lane;
                    self.entries[lane] = at as u32;
                    let entry = cache.entry(at);
                    for (column, &number) in self.slots.iter_mut().zip(&entry.slots) {
                        column[lane] = number;
                    }
                    self.plan(entry.plan, 1 << lane);
                }
                None => cache.prefetch_missed(self.hashes[lane]),
            }
        }
        self.asked |= lanes;
        self.cached |= found;
        cache.asked(lanes.count_ones(), found.count_ones());
        found
    }
}

impl Pipeline {
    /// Takes at most [`LANES`] packets through the program, up to one that must come to rest before the next is decided;
    /// gives the number of those that are done.
    pub(super) fn chunk(
        &mut self,
        packets: &mut [Packet],
        now: u64,
        cx: &mut StageContext<'_>,
    ) -> usize {
        let all = u32::MAX >> (LANES - packets.len().clamp(1, LANES));
        if !self.tables.log.is_empty() {
            let cache = &mut self.cache;
            if !self.tables.log.take(|table, number| cache.kill(table, number)) {
                cache.clear();
            }
        }
        self.burst.forget(u32::MAX);
        self.burst.removed = false;
        self.burst.looked_up.fill(0);
        self.gates.iter_mut().for_each(|group| group.passed = 0);
        let mut spare = std::mem::take(&mut self.burst.spare);
        self.burst.single = {
            let packets = &Packets::new(packets, &mut spare);
            self.lanes.start(packets);
            self.lanes.tell_time(now);
            for &(reg, cells, index) in &self.cell_columns.steady {
                let held = self.cells.get(cells, index) as u32;
                self.lanes.set(reg, u32::MAX, &[held; LANES]);
            }
            self.walk(packets, all, now)
        };
        self.burst.spare = spare;
        let from = self.decided.len();
        self.decided.resize(from + packets.len(), DROP);
        let mut ordered = self.burst.single | self.burst.asked;
        if !self.arrivals.is_empty() {
            ordered |= self.barriers(all) | self.updates(u32::MAX, now);
        }
        self.burst.ended = false;
        let done = match ordered & all {
            0 => {
                self.pass_cells(all);
                all
            }
            ordered => {
                let done = self.commit(packets, ordered, (from, now), cx);
                self.burst.ended = done.is_some();
                done.unwrap_or(all)
            }
        };
        self.cells_wait = self.cells_wait || self.may_change_cells(done);
        self.finish(packets, done, from, cx);
        for plan in self.burst.used.drain(..) {
            self.burst.planned[plan as usize] = 0;
        }
        let count = done.count_ones() as usize;
        self.take_back(count);
        self.decided.truncate(from + count);
        count
    }

    /// Takes lanes from the first step as far as they can go at once; gives those that must go on alone.
    fn walk(&mut self, packets: &Packets<'_>, lanes: u32, now: u64) -> u32 {
        self.burst.send(StepId(0), lanes);
        let mut alone = self.walk_on(packets, now);
        while let Some(misfits) = self.pass_gates(packets, now) {
            alone |= misfits | self.walk_on(packets, now);
        }
        alone
    }

    /// Takes lanes from where they were sent to exits, to gates, or to where they go on alone; gives the last.
    fn walk_on(&mut self, packets: &Packets<'_>, now: u64) -> u32 {
        let Self { lanes, nodes, asks, plans, sites, burst, classifiers, cache, tables, .. } = self;
        let mut alone = 0;
        for word in 0..burst.active.len() {
            while burst.active[word] != 0 {
                let at = word * 64 + burst.active[word].trailing_zeros() as usize;
                burst.active[word] &= burst.active[word] - 1;
                let mut mask = std::mem::take(&mut burst.masks[at]);
                if let Some(number) = asks[at] {
                    let site = &sites[usize::from(number)];
                    lanes.compute(&site.needs, packets, &[]);
                    let keys = lanes.keys(&site.key, &site.conditions);
                    mask &= !burst.ask((at, number), &keys, cache, mask & !burst.asked);
                }
                match &nodes[at] {
                    Node::Tests { needs, conds, no, yes } => {
                        let (mut rest, holds) = (mask, lanes.tests(needs, packets, conds));
                        for (no, holds) in no.iter().zip(holds) {
                            burst.send(*no, rest & !holds);
                            rest &= holds;
                        }
                        burst.send(*yes, rest);
                    }
                    Node::Cases { needs, cases, otherwise } => {
                        lanes.compute(needs, packets, &[]);
                        let mut rest = mask;
                        for (cond, to) in cases {
                            let holds = lanes.mask(cond);
                            burst.send(*to, rest & holds);
                            rest &= !holds;
                        }
                        burst.send(*otherwise, rest);
                    }
                    Node::Switch { needs, of, steps } => {
                        lanes.compute(needs, packets, &[]);
                        let mut to = [0; LANES];
                        steps.find_all(lanes.column(*of), &mut to);
                        lanes_of(mask).for_each(|lane| burst.send(StepId(to[lane]), 1 << lane));
                    }
                    Node::Classify { needs, keys, arms, otherwise } => {
                        lanes.compute(needs, packets, &[]);
                        let mut numbers: [Key; LANES] = [[0; _]; LANES];
                        let mut count = 0;
                        for (numbers, lane) in numbers.iter_mut().zip(lanes_of(mask)) {
                            for (number, key) in numbers.iter_mut().zip(keys) {
                                *number = lanes.column(*key)[lane];
                            }
                            count += 1;
                        }
                        let mut found = [None; LANES];
                        let step = StepId(at as u32);
                        classifiers.lookup_batch(step, &numbers[..count], &mut found);
                        for (lane, arm) in lanes_of(mask).zip(found) {
                            let to = arm.and_then(|arm| arms.get(arm as usize));
                            burst.send(*to.unwrap_or(otherwise), 1 << lane);
                        }
                    }
                    Node::Flow { needs, lookup, key, hit, miss } => {
                        lanes.compute(needs, packets, &[]);
                        let number = usize::from(lookup.0);
                        let found = &mut burst.found[number];
                        let key = key.iter().map(|&key| lanes.column(key));
                        tables.find_all(*lookup, key, (mask, now), found);
                        let hits = found.lanes & mask;
                        let Binding { values, numbers, derived } = &burst.bindings[number];
                        for &(reg, index) in numbers {
                            let number = match index.checked_sub(*values) {
                                None => found.values.get(usize::from(index)),
                                Some(index) => found.common.get(usize::from(index)),
                            };
                            lanes.set(reg, hits, number.unwrap_or(&[0; LANES]));
                        }
                        // What was computed for lanes that were here before must be for these as well.
                        if burst.looked_up[number] != 0 {
                            lanes.forget(derived);
                        }
                        burst.looked_up[number] |= mask;
                        burst.flows |= mask;
                        burst.send(*hit, hits);
                        burst.send(*miss, mask & !hits);
                    }
                    Node::Exit(plan) => {
                        lanes.compute(&plans[*plan as usize].needs, packets, &[]);
                        burst.plan(*plan, mask);
                    }
                    Node::Gate(_) => burst.parked.push((StepId(at as u32), mask)),
                    Node::Scalar => {
                        burst.go_alone(StepId(at as u32), mask);
                        alone |= mask;
                    }
                }
            }
        }
        alone
    }

    /// Does what plans say to these lanes.
    fn finish(
        &mut self,
        packets: &mut [Packet],
        these: u32,
        from: usize,
        cx: &mut StageContext<'_>,
    ) {
        let Self { lanes, plans, burst, outcomes, decided, cell_columns, copies, .. } = self;
        let mut used: SmallVec<[(&Plan, u32); 8]> = SmallVec::new();
        let (mut uses_cells, mut has_copies) = (false, false);
        for &number in &burst.used {
            let planned = &mut burst.planned[number as usize];
            if *planned & these != 0 {
                let plan = &plans[number as usize];
                uses_cells |= !plan.cells.is_empty();
                has_copies |= !plan.copies.is_empty();
                used.push((plan, *planned & these));
                *planned &= !these;
            }
        }
        if used.is_empty() {
            return;
        }
        if uses_cells {
            lanes.forget(&cell_columns.derived);
        }
        if used.iter().any(|(plan, _)| !lanes.knows(&plan.needs)) {
            let all = &Packets::new(packets, &mut burst.spare);
            for (plan, _) in &used {
                lanes.compute(&plan.needs, all, &burst.slots);
            }
        }
        if has_copies {
            for &(plan, mask) in &used {
                copy(plan, (lanes, mask), (packets, from), (outcomes, copies), cx);
            }
        }
        let decided = &mut decided[from..];
        let mut windows = [0; LANES];
        for &(plan, mask) in &used {
            let outcome = &mut outcomes[plan.outcome as usize];
            outcome.count(plan, lanes, packets, mask);
            if let Some(target) = outcome.target {
                for_lanes(mask, |lane| decided[lane] = target);
                place(plan, lanes, packets, mask, &mut windows);
            }
        }
        write(used.iter().copied(), lanes, packets, &windows);
    }
}

impl Outcome {
    /// Counts packets of these lanes, which come to it by a plan.
    pub(super) fn count(&mut self, plan: &Plan, lanes: &Lanes, packets: &[Packet], mask: u32) {
        self.packets += u64::from(mask.count_ones());
        for (total, length) in self.sums.iter_mut().zip(&plan.lengths) {
            *total = total.wrapping_add(sum(lanes.column(*length), mask));
        }
        if self.target.is_none() {
            for lane in lanes_of(mask) {
                let left = packets[lane].len() as i64 - i64::from(plan.start);
                let left = u64::try_from(left).unwrap_or(0);
                let length = plan.length.map_or(u64::MAX, |l| lanes.column(l)[lane].into());
                self.dropped_bytes += left.min(length);
            }
        }
    }
}
