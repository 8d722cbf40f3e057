//! What the lanes of a burst change, in the order of packets: flows, cache entries, and what elements change that take packets at
//! once. Lanes whose results do not hold any more walk again.

use std::rc::Rc;

use elements::flow_access::Numbers;
use ir::program::{LookupId, StepId};
use net::Packet;
use smallvec::SmallVec;

use crate::StageContext;
use crate::pipeline::cache::Member;
use crate::pipeline::lanes::{LANES, Packets, lanes_of};
use crate::pipeline::plan::Update;
use crate::pipeline::{Copied, DROP, MayChange, NONE, Pipeline, Target, exit};
use crate::router::{Delivery, Taker};

impl Pipeline {
    /// Lanes where what later lanes find may change, and lanes that may have to wait for this.
    pub(super) fn barriers(&self, all: u32) -> u32 {
        let cells = self.cell_lanes() & all;
        // Lanes that walk again may come to use cells.
        let cells_matter = cells != 0 || self.tables.len() > 0;
        let matters = |may: MayChange| may.flows || may.cells && cells_matter;
        let barriers = self.burst.used.iter().filter(|p| matters(self.barriers[**p as usize]));
        let wait = if self.cells_wait { cells } else { 0 };
        barriers.fold(wait, |lanes, &plan| lanes | self.burst.planned[plan as usize])
    }

    /// Whether any of these lanes, which wait for their turn, may change cells.
    pub(super) fn may_change_cells(&self, these: u32) -> bool {
        let with = |plan: &u32| self.barriers[*plan as usize].cells;
        let mut plans = self.burst.used.iter().filter(|plan| with(plan));
        plans.any(|&plan| self.burst.planned[plan as usize] & these != 0)
    }

    /// Lanes that an element takes whatever happens before: they found no flow, and those that they looked for in vain are
    /// looked for by that element again.
    fn fixed(&self) -> u32 {
        let Self { burst, targets, program, .. } = self;
        let found = burst.cached | self.passed_gates();
        let found = burst.found.iter().fold(found, |lanes, found| lanes | found.lanes);
        let mut fixed = 0;
        for &plan in burst.used.iter().filter(|plan| self.barriers[**plan as usize].flows) {
            let mut lanes = burst.planned[plan as usize] & !found;
            lanes &= if self.plans[plan as usize].cells.is_empty() { u32::MAX } else { 0 };
            let Some(target) = self.target_of(plan) else { continue };
            let Target { to, taker, .. } = targets[usize::from(target)];
            for (lookup, looked_up) in program.lookups.iter().zip(&burst.looked_up) {
                if taker != Taker::Element || lookup.element != to.node {
                    lanes &= !looked_up;
                }
            }
            fixed |= lanes;
        }
        fixed
    }

    /// Finds out what plans do to flows; gives the lanes that do anything to one.
    pub(super) fn updates(&mut self, these: u32, now: u64) -> u32 {
        let Self { plans, burst, lanes, .. } = self;
        let (mut changing, mut touching) = (0, 0);
        for &plan in &burst.used {
            let planned = burst.planned[plan as usize] & these;
            if planned == 0 {
                continue;
            }
            for update in &plans[plan as usize].updates {
                let found = &burst.found[usize::from(update.lookup.0)];
                changing |= update.changes(lanes, found, now) & planned;
                touching |= planned & !found.settled;
            }
        }
        burst.touching = burst.touching & !these | touching & !changing;
        burst.changing = burst.changing & !these | changing;
        changing | touching
    }

    /// The target of a plan.
    fn target_of(&self, plan: u32) -> Option<u16> {
        self.outcomes[self.plans[plan as usize].outcome as usize].target
    }

    /// Lanes with a cache entry that change nothing but by prolonging the flows that it was made from.
    fn simple(&self, with_cells: u32) -> u32 {
        let Self { burst, by_copies, targets, .. } = self;
        let is_simple = |plan: &&u32| {
            let may_change = self.target_of(**plan).map(|t| targets[usize::from(t)].may_change());
            !by_copies[**plan as usize].or(may_change.unwrap_or_default()).any()
        };
        let plans = burst.used.iter().filter(is_simple);
        let planned = plans.fold(0, |lanes, plan| lanes | burst.planned[*plan as usize]);
        planned & burst.cached & !(with_cells | burst.changing | burst.touching)
    }

    /// Changes flows as these lanes say, in order. Gives the lanes that are done if others must wait until these came to
    /// rest.
    pub(super) fn commit(
        &mut self,
        packets: &mut [Packet],
        ordered: u32,
        (from, now): (usize, u64),
        cx: &mut StageContext<'_>,
    ) -> Option<u32> {
        self.prefetch_changes(ordered, now);
        let mut with_cells = self.cell_lanes();
        let ordered = ordered | with_cells & u32::MAX >> (LANES - packets.len());
        let may_end = self.may_end || self.cells_wait || cx.is_watched();
        let fixed = if may_end { 0 } else { self.fixed() };
        self.burst.finished = fixed;
        self.finish(packets, fixed, from, cx);
        let mut simple = self.simple(with_cells);
        // Lanes whose results do not hold any more.
        let mut stale = 0;
        let (mut left, all) = (ordered, u32::MAX >> (LANES - packets.len()) & !fixed);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            if stale >> lane & 1 == 1 {
                self.walk_again(packets, stale & u32::MAX << lane, now);
                with_cells = self.cell_lanes();
                simple = self.simple(with_cells);
                stale = 0;
            }
            if self.burst.cached >> lane & 1 == 1 {
                let holds = self.prolong(lane, now);
                if holds && simple >> lane & 1 == 1 && self.tables.log.is_empty() {
                    continue;
                }
                if !holds {
                    self.walk_again(packets, 1 << lane, now);
                    with_cells = self.cell_lanes();
                    simple = self.simple(with_cells);
                }
            }
            let plan = self.burst.plan_of[lane];
            let mut together = 1u32 << lane;
            if plan != NONE {
                together |= self.collect_updates(lane, left, stale);
            }
            let uses_cells = with_cells & together != 0;
            let before = !(u32::MAX << lane);
            // The burst ends here if cells may change first.
            if uses_cells && (self.cells_wait || self.may_change_cells(before)) {
                return Some(before);
            }
            let mut copies = MayChange::default();
            let target = if plan == NONE {
                // It may come to gates itself.
                stale |= self.take_back(lane) & !together;
                self.run_alone((lane, &mut packets[lane]), (from, now), &mut copies, cx)
            } else {
                copies = self.by_copies[plan as usize];
                self.update(together, now);
                if with_cells != 0 {
                    self.pass_cells(together);
                }
                left &= !together;
                for lane in lanes_of(together & !self.burst.changing & !fixed) {
                    if self.is_frequent(lane) {
                        self.remember(packets, lane, now);
                    }
                }
                self.target_of(plan)
            };
            let later = all & (u32::MAX << together.ilog2() << 1);
            let matter_later = with_cells & later != 0;
            if copies.flows || copies.cells && matter_later {
                return Some(u32::MAX >> (LANES - 1 - lane));
            }
            self.cells_wait |= copies.cells;
            stale |= self.changed() & later;
            left |= stale;
            let may_change = target.map(|t| self.targets[usize::from(t)].may_change());
            let MayChange { flows, cells } = may_change.unwrap_or_default();
            // Where no packet behind depends on it, this one waits for its turn; not if the burst must not end early.
            let waits = !flows && (!cells || !matter_later && fixed == 0);
            self.cells_wait |= cells && waits;
            if let Some(target) = target.filter(|_| !waits) {
                let run = self.collect_run(lane, target, left & !stale, now);
                left &= !run;
                stale |= if cells { self.take_back(run.ilog2() as usize + 1) } else { 0 };
                let ends = self.run_ahead(packets, (run, target), from, cx);
                stale = (stale | self.changed() | self.missed(target)) & later & !run;
                left |= stale;
                if ends {
                    return Some(u32::MAX >> run.leading_zeros());
                }
            }
        }
        None
    }

    /// A lane that goes to a target where flows change, and those right behind it of these lanes that go there, too, and
    /// have found none of the flows that change there.
    fn collect_run(&mut self, first: usize, target: u16, lanes: u32, now: u64) -> u32 {
        let mut run = 1u32 << first;
        for lane in first + 1..LANES {
            let plan = self.burst.plan_of[lane];
            let is_walked = lanes & !self.burst.cached & 1 << lane != 0 && plan != NONE;
            if !is_walked || self.target_of(plan) != Some(target) || !self.tables.log.is_empty() {
                break;
            }
            let Target { changes, changes_cells, .. } = &self.targets[usize::from(target)];
            let uses_cells = || self.cell_lanes() >> lane & 1 == 1;
            if *changes_cells && uses_cells() {
                break;
            }
            let depends = self.burst.found.iter().zip(0..).any(|(found, lookup)| {
                let table = || self.tables.of(LookupId(lookup));
                found.lanes >> lane & 1 == 1 && table().is_some_and(|t| changes[usize::from(t)])
            });
            if depends {
                break;
            }
            self.update(1 << lane, now);
            self.pass_cells(1 << lane);
            run |= 1 << lane;
        }
        run
    }

    /// Takes lanes at once to their target and on, to where nothing changes flows any more; whether packets behind them
    /// must wait nevertheless.
    fn run_ahead(
        &mut self,
        packets: &mut [Packet],
        (run, target): (u32, u16),
        from: usize,
        cx: &mut StageContext<'_>,
    ) -> bool {
        self.finish(packets, run & !self.burst.finished, from, cx);
        let mut batch = cx.core.batch();
        for lane in lanes_of(run) {
            let place = cx.core.pool.alloc(0);
            batch.push(std::mem::replace(&mut packets[lane], place));
            self.decided[from + lane] = DROP;
        }
        let Target { to, taker, loops, .. } = self.targets[usize::from(target)];
        let mut out = std::mem::take(&mut self.burst.out);
        let arrivals = Rc::clone(&self.arrivals);
        let ends = cx.run_ahead(Delivery { to, batch, taker, loops }, &arrivals, &mut out);
        let count: usize = out.iter().map(|delivery| delivery.batch.len()).sum();
        if count > run.count_ones() as usize {
            let at = from + run.trailing_zeros() as usize;
            self.extra.extend(out.drain(..).map(|delivery| (at, delivery)));
        }
        let mut places = lanes_of(run);
        for Delivery { to, mut batch, taker, loops } in out.drain(..) {
            // As the program's packets leave for an element.
            let has_stage = taker != Taker::Stage || cx.has_stage(to);
            let taker = if has_stage { taker } else { Taker::Element };
            let target = self.target(to, taker, loops, cx.surroundings());
            for (packet, lane) in batch.drain().zip(&mut places) {
                cx.core.pool.recycle(std::mem::replace(&mut packets[lane], packet));
                self.decided[from + lane] = target;
            }
            cx.core.recycle_batch(batch);
        }
        self.burst.out = out;
        ends
    }

    /// Lanes that looked for flows in vain in tables that changed on the path to a target, and go elsewhere.
    fn missed(&self, target: u16) -> u32 {
        let changes = &self.targets[usize::from(target)].changes;
        let mut missed = 0;
        for ((found, lanes), lookup) in self.burst.found.iter().zip(&self.burst.looked_up).zip(0..)
        {
            if self.tables.of(LookupId(lookup)).is_some_and(|t| changes[usize::from(t)]) {
                missed |= lanes & !found.lanes;
            }
        }
        let plan = |lane: usize| Some(self.burst.plan_of[lane]).filter(|plan| *plan != NONE);
        let same = |lane: &usize| plan(*lane).and_then(|p| self.target_of(p)) == Some(target);
        lanes_of(missed).filter(same).fold(missed, |missed, lane| missed & !(1 << lane))
    }

    /// Has lanes walk again whose results do not hold any more.
    #[cold]
    fn walk_again(&mut self, packets: &[Packet], lanes: u32, now: u64) {
        let lanes = lanes | self.take_back(lanes.trailing_zeros() as usize);
        self.burst.unplan(lanes);
        let mut spare = std::mem::take(&mut self.burst.spare);
        let alone = self.walk(&Packets::new(packets, &mut spare), lanes, now);
        self.burst.spare = spare;
        self.burst.single = self.burst.single & !lanes | alone;
        self.updates(lanes, now);
    }

    /// Takes note of the flows that changed; gives the lanes that found one of them.
    #[inline]
    fn changed(&mut self) -> u32 {
        if self.tables.log.is_empty() { 0 } else { self.find_changed() }
    }

    #[cold]
    fn find_changed(&mut self) -> u32 {
        let Self { tables, cache, burst, lanes, .. } = self;
        burst.removed = true;
        let mut stale = 0;
        let all = tables.log.take(|table, number| {
            cache.kill(table, number);
            for &lookup in tables.lookups(table) {
                let found = &burst.found[usize::from(lookup)];
                if found.lanes != 0 {
                    stale |= lanes.equal(&found.numbers, number) & found.lanes;
                }
            }
        });
        if all {
            return stale;
        }
        cache.clear();
        u32::MAX
    }

    /// A lane and those behind it of the lanes that are `left` whose flows can be updated together, up to one that is
    /// stale: as far as no lane finds a flow that one before it changes.
    fn collect_updates(&self, first: usize, left: u32, stale: u32) -> u32 {
        let Self { burst, tables, lanes: columns, barriers, .. } = self;
        // Bits of a hash of the flows that change.
        let mut marks = [0u64; 32];
        let (mut together, mut changing) = (0u32, 0u32);
        let left = left | 1 << first;
        for lane in first..LANES {
            let (bit, plan) = (1 << lane, burst.plan_of[lane]);
            let has_update = left & bit != 0;
            let is_single =
                || burst.cached & bit != 0 || plan == NONE || barriers[plan as usize].any();
            if left >> lane == 0 || stale & bit != 0 || has_update && is_single() {
                break;
            }
            let changes = has_update && burst.changing & bit != 0;
            if changing == 0 && !changes {
                together |= left & bit;
                continue;
            }
            for (found, lookup) in burst.found.iter().zip(0..) {
                let Some(table) = tables.of(LookupId(lookup)) else { continue };
                if found.lanes & bit == 0 {
                    continue;
                }
                let number = found.numbers[lane];
                let hash = (number ^ u32::from(table) << 24).wrapping_mul(0x9e37_79b9) >> 21;
                let (word, mark) = (&mut marks[hash as usize / 64], 1 << (hash % 64));
                let is_it = |&other: &u16| {
                    let found = &burst.found[usize::from(other)];
                    columns.equal(&found.numbers, number) & found.lanes & changing != 0
                };
                if *word & mark != 0 && tables.lookups(table).iter().any(is_it) {
                    return together;
                }
                if changes {
                    *word |= mark;
                }
            }
            together |= left & bit;
            changing |= u32::from(changes) << lane;
        }
        together
    }

    /// Updates the flows of lanes as their plans say: table by table, each in the order of packets.
    fn update(&mut self, these: u32, now: u64) {
        let Self { plans, burst, lanes, tables, .. } = self;
        let these = these & (burst.changing | burst.touching);
        if these == 0 {
            return;
        }
        for (table, number) in tables.all().iter().zip(0..) {
            let lookups = tables.lookups(number);
            let is_found = |lookup: &u16| burst.found[usize::from(*lookup)].lanes & these != 0;
            if !lookups.iter().any(is_found) {
                continue;
            }
            let mut table = table.borrow_mut();
            let (mut plan, mut updates) = (NONE, SmallVec::<[&Update; 2]>::new());
            for lane in lanes_of(these) {
                if burst.plan_of[lane] != plan {
                    plan = burst.plan_of[lane];
                    let all = plans[plan as usize].updates.iter();
                    updates.clear();
                    updates.extend(all.filter(|update| tables.of(update.lookup) == Some(number)));
                }
                for Update { lookup, common, expiry, guarantee } in &updates {
                    let flow = burst.found[usize::from(lookup.0)].numbers[lane];
                    if burst.changing >> lane & 1 == 0 {
                        table.prolong(flow, now);
                        continue;
                    }
                    let numbers: Numbers =
                        common.iter().map(|&reg| lanes.column(reg)[lane].into()).collect();
                    let times = [expiry, guarantee].map(|time| time.at(lanes, lane, now));
                    table.update(flow, &numbers, times[0], times[1], now);
                }
            }
        }
    }

    /// Prefetches what updates of flows change. Each loop touches memory that the one before prefetched, so that the
    /// processor waits for all lanes at once.
    fn prefetch_changes(&self, ordered: u32, now: u64) {
        let Self { plans, burst, tables, cache, .. } = self;
        for &plan in &burst.used {
            for Update { lookup, .. } in &plans[plan as usize].updates {
                let found = &burst.found[usize::from(lookup.0)];
                let table = tables.of(*lookup).unwrap_or_default();
                for lane in lanes_of(burst.planned[plan as usize] & ordered & !found.settled) {
                    tables.prefetch_changes(table, found.numbers[lane]);
                }
            }
        }
        let is_old = |at: &usize| cache.entry(*at).until < now;
        let entries = || lanes_of(burst.cached & ordered).map(|lane| burst.entries[lane] as usize);
        let members = || entries().filter(is_old).flat_map(|at| cache.members(at));
        entries().filter(is_old).for_each(|at| cache.prefetch_members(at));
        members().for_each(|m| tables.prefetch(m.table, m.number));
        members().for_each(|m| tables.prefetch_changes(m.table, m.number));
    }

    /// Prolongs the flows that a lane's cache entry was made from, if that must be; `false` if the entry does not hold
    /// any more.
    #[inline]
    fn prolong(&mut self, lane: usize, now: u64) -> bool {
        let at = self.burst.entries[lane] as usize;
        let (key, site) = (self.burst.keys[lane], self.burst.sites[lane]);
        if !self.cache.is(at, key, site, self.burst.holds[lane]) {
            return false;
        }
        self.cache.entry(at).until >= now || self.prolong_members(at, now)
    }

    #[cold]
    fn prolong_members(&mut self, at: usize, now: u64) -> bool {
        let expiry = |m: &Member| self.tables.expiry(m.table, m.number);
        if self.cache.members(at).any(|m| expiry(&m) <= now) {
            self.cache.remove(at);
            self.burst.removed = true;
            return false;
        }
        let mut until = now | self.tick;
        for member in self.cache.members(at) {
            let expiry = match member.prolonged {
                true => self.tables.prolong(member.table, member.number, now),
                false => self.tables.expiry(member.table, member.number),
            };
            until = until.min(expiry.saturating_sub(1));
        }
        self.cache.set_until(at, until);
        true
    }

    /// Whether a cache entry pays for a lane's flow: it came often lately, and nothing changed that the entry would depend
    /// on.
    #[inline]
    fn is_frequent(&mut self, lane: usize) -> bool {
        let site = self.sites.get(usize::from(self.burst.sites[lane]));
        let site = site.filter(|_| self.burst.cached >> lane & 1 == 0);
        site.is_some_and(|site| self.cache.is_frequent(self.burst.hashes[lane], site.one_of))
    }

    /// Takes a lane alone from its step to its exit, and does what that says; gives its target. Says what
    /// may change until its copies have come to rest.
    #[inline(never)]
    fn run_alone(
        &mut self,
        (lane, packet): (usize, &mut Packet),
        (from, now): (usize, u64),
        copies_change: &mut MayChange,
        cx: &mut StageContext<'_>,
    ) -> Option<u16> {
        self.scalar.start(now);
        let step = StepId(self.burst.alone[lane]);
        let step = self.scalar.walk(step, packet, &self.tables);
        let program = Rc::clone(&self.program);
        let exit = exit(&program, step)?;
        let number = self.outcome_of[step.0 as usize] as usize;
        self.scalar.update(exit, packet, &self.tables);
        let sets = self.scalar.sets(exit, packet);
        let first = number - exit.copies.len();
        *copies_change = self.copies_change(number, exit.copies.len());
        for (outcome, leaving) in self.outcomes[first..=number].iter_mut().zip(exit.all()) {
            outcome.packets += 1;
            for (sum, length) in outcome.sums.iter_mut().zip(&outcome.lengths) {
                *sum = sum.wrapping_add(self.scalar.value(*length, packet) as u64);
            }
            match outcome.target {
                None => outcome.dropped_bytes += self.scalar.length(leaving, packet),
                Some(_) if std::ptr::eq(leaving, exit) => self.scalar.write(exit, packet),
                Some(target) => {
                    let mut copy = cx.core.pool.copy(packet);
                    self.scalar.write(leaving, &mut copy);
                    let (before, order) = (from + lane, self.copies.len());
                    self.copies.push(Copied { before, order, target, packet: copy });
                }
            }
        }
        for (cells, index, number) in sets {
            self.cells.set(cells, index, number);
        }
        let target = self.outcomes[number].target;
        self.decided[from + lane] = target.unwrap_or(DROP);
        target
    }
}
