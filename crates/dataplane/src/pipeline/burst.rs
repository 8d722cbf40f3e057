//! A burst on its way through a program: all lanes at once as far as possible, one by one where
//! flows must be asked or changed, and then all that is written.

use std::rc::Rc;

use ir::program::{Effect, Exit, Step, StepId};
use net::Packet;

use super::cache::{FlowCache, Line, Member, OFTEN, SLOTS, Tagged, Ways};
use super::classifiers::Key;
use super::lanes::{Column, Keys, LANES, Packets, Spare, for_lanes, lanes_of, sum};
use super::plan::Node;
use super::watch::{SHARE, Seen};
use super::write::{place, write};
use super::{DROP, Pipeline};

/// Instead of a site's number.
const NO_SITE: u16 = u16::MAX;
/// Instead of a line's number.
const NO_LINE: u32 = u32::MAX;
/// For fewer lanes that are in the flow cache, elements go on once they have begun.
const FEW: usize = 12;

/// Where the lanes of a burst are.
#[derive(Default)]
pub(super) struct Burst {
    /// By step: the lanes that come to it.
    masks: Vec<u32>,
    /// Steps that lanes come to, as bits.
    active: Vec<u64>,
    /// By plan: the lanes that it is for.
    planned: Vec<u32>,
    /// Plans that have lanes, in the order in which they got them.
    used: Vec<u32>,
    /// By lane: the step at which it goes on alone.
    alone: [u32; LANES],
    /// By lane: the site at which it is, or [`NO_SITE`], its key, its hash, and which conditions
    /// hold.
    sites: [u16; LANES],
    keys: [[u64; 2]; LANES],
    hashes: [u64; LANES],
    holds: [u32; LANES],
    /// By lane: where in the flow cache it says what becomes of it, or [`NO_LINE`].
    lines: [u32; LANES],
    /// Whether the flow cache is what it was when it was asked.
    current: bool,
    /// What lanes took from the flow cache.
    slots: [Column; SLOTS],
    members: Vec<Member>,
    /// Lanes that were at a site.
    asked: u32,
    /// Lanes that are in the flow cache, or were not and must go on alone.
    at_sites: u32,
    pub(super) seen: Seen,
    spare: Spare,
}

impl Burst {
    pub(super) fn new(steps: usize, plans: usize) -> Self {
        Self {
            masks: vec![0; steps],
            active: vec![0; steps.div_ceil(64)],
            planned: vec![0; plans],
            ..Self::default()
        }
    }

    #[inline]
    fn send(&mut self, to: StepId, lanes: u32) {
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
    }

    /// Asks the flow cache what becomes of lanes that come to a step with a site; gives those that are there.
    fn ask(
        &mut self,
        (step, site): (usize, u16),
        keys: &Keys,
        cache: &FlowCache,
        lanes: u32,
    ) -> u32 {
        let (mut ways, mut tagged) = ([Ways::default(); LANES], [Tagged::default(); LANES]);
        // Each loop touches memory that the one before brought near.
        for lane in lanes_of(lanes) {
            let key = [keys.words[0][lane], keys.words[1][lane]];
            let hash = cache.hash(key, site);
            ways[lane] = cache.ways(hash);
            cache.prefetch_tags(ways[lane]);
            (self.keys[lane], self.hashes[lane]) = (key, hash);
            (self.holds[lane], self.sites[lane]) = (keys.holds[lane], site);
            self.alone[lane] = step as u32;
        }
        for lane in lanes_of(lanes) {
            tagged[lane] = cache.tagged(ways[lane], self.hashes[lane]);
        }
        let mut found = 0;
        for lane in lanes_of(lanes) {
            let among = (ways[lane], tagged[lane]);
            let line = cache.find_tagged(among, self.keys[lane], site, self.holds[lane]);
            self.lines[lane] = line.map_or(NO_LINE, |at| at as u32);
            found |= u32::from(line.is_some()) << lane;
            if line.is_none() {
                cache.prefetch_missed(self.hashes[lane]);
            }
        }
        self.asked |= lanes;
        self.at_sites |= found;
        found
    }

    /// Where in the flow cache it said what becomes of a lane when it was asked.
    #[inline]
    fn line(&self, lane: usize) -> Option<usize> {
        Some(self.lines[lane]).filter(|&at| at != NO_LINE).map(|at| at as usize)
    }

    /// Has a line say what becomes of a lane.
    #[inline(always)]
    fn take(&mut self, lane: usize, line: &Line) {
        for (column, &number) in self.slots.iter_mut().zip(&line.slots) {
            column[lane] = number;
        }
        self.plan(line.plan, 1 << lane);
    }
}

impl Pipeline {
    /// Takes at most [`LANES`] packets through the program, until one changes what later ones may
    /// find; the number of those that are done.
    pub(super) fn chunk(&mut self, packets: &mut [Packet], now: u64) -> usize {
        let all = u32::MAX >> (LANES - packets.len().clamp(1, LANES));
        if !self.tables.log.is_empty() {
            self.forget_changed();
        }
        self.scouts.recall();
        self.burst.current = true;
        self.burst.send(StepId(0), all);
        let alone = self.walk_together(packets);
        let ordered = if self.tables.len() == 0 { 0 } else { self.barriers() };
        let mut done = all;
        let from = self.decided.len();
        self.decided.resize(from + packets.len(), DROP);
        if alone | ordered != 0 {
            done = self.walk_alone(packets, (alone, ordered), from, now);
        }
        self.finish(packets, done, from);
        let count = done.count_ones() as usize;
        self.decided.truncate(from + count);
        count
    }

    /// Takes all lanes as far as they can go at once; gives those that must go on alone.
    fn walk_together(&mut self, packets: &[Packet]) -> u32 {
        let Self { lanes, nodes, asks, plans, sites, burst, classifiers, cache, .. } = self;
        let mut alone = 0;
        let mut spare = std::mem::take(&mut burst.spare);
        let packets = &Packets::new(packets, &mut spare);
        lanes.start(packets);
        (burst.asked, burst.at_sites) = (0, 0);
        for word in 0..burst.active.len() {
            while burst.active[word] != 0 {
                let at = word * 64 + burst.active[word].trailing_zeros() as usize;
                burst.active[word] &= burst.active[word] - 1;
                let mut mask = std::mem::take(&mut burst.masks[at]);
                if let Some(number) = asks[at] {
                    let site = &sites[usize::from(number)];
                    lanes.compute(&site.needs, packets, &[]);
                    let keys = lanes.keys(&site.key, &site.conditions);
                    let found = burst.ask((at, number), &keys, cache, mask & !burst.asked);
                    alone |= found;
                    mask &= !found;
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
                    Node::Exit(plan) => {
                        lanes.compute(&plans[*plan as usize].needs, packets, &[]);
                        burst.plan(*plan, mask);
                    }
                    Node::Scalar => {
                        for lane in lanes_of(mask & !burst.asked) {
                            (burst.sites[lane], burst.alone[lane]) = (NO_SITE, at as u32);
                            burst.lines[lane] = NO_LINE;
                        }
                        burst.at_sites |= mask & burst.asked;
                        alone |= mask;
                    }
                }
            }
        }
        burst.spare = spare;
        alone
    }

    /// Lanes whose plan changes what later lanes may find.
    fn barriers(&self) -> u32 {
        let barriers = self.burst.used.iter().filter(|plan| self.is_barrier(**plan));
        barriers.fold(0, |lanes, &plan| lanes | self.burst.planned[plan as usize])
    }

    #[inline]
    fn is_barrier(&self, plan: u32) -> bool {
        self.barriers[plan as usize]
    }

    #[inline]
    fn target_of(&self, plan: u32) -> Option<u16> {
        self.outcomes[self.plans[plan as usize].outcome as usize].target
    }

    /// Takes lanes through one by one, in order; gives the lanes that are done.
    fn walk_alone(
        &mut self,
        packets: &mut [Packet],
        (alone, ordered): (u32, u32),
        from: usize,
        now: u64,
    ) -> u32 {
        let mut barrier = None;
        let taken = if ordered == 0 { self.take_lines(alone, now) } else { 0 };
        for lane in lanes_of((alone | ordered) & !taken) {
            let before = (1u32 << lane) - 1;
            if lane >= packets.len() {
                return before;
            }
            let target = if alone >> lane & 1 == 0 {
                self.planned_target(lane)
            } else {
                if !self.tables.log.is_empty() {
                    self.forget_changed();
                }
                // Flows that packets behind a barrier belong to may be gone.
                let line = if barrier.is_none() { self.find_line(lane, now) } else { None };
                match line {
                    Some(at) => self.take_line(lane, at),
                    None if self.leaves_to_elements(lane, barrier) => {
                        self.decided[from + lane] = self.elements;
                        Some(self.elements)
                    }
                    None if barrier == Some(self.elements) => return before,
                    None => {
                        if barrier.is_none() && !self.scouts.know(lane) && self.fills(lane) {
                            self.send_scouts(lane, packets, now);
                        }
                        match self.carry_out((lane, &mut packets[lane]), barrier, from, now) {
                            Some(target) => target,
                            None => return before,
                        }
                    }
                }
            };
            if let Some(barrier) = barrier
                && target != Some(barrier)
            {
                self.unplan(lane);
                return before;
            }
            barrier = target.filter(|&t| self.targets[usize::from(t)].is_barrier());
        }
        u32::MAX >> (LANES - packets.len().clamp(1, LANES))
    }

    /// Whether elements take a packet all the way: those whose flow was not seen often lately, and after
    /// them others that are not in the flow cache. Working out what becomes of a flow pays if the
    /// flow comes again.
    fn leaves_to_elements(&mut self, lane: usize, barrier: Option<u16>) -> bool {
        let (hash, site) = (self.burst.hashes[lane], self.burst.sites[lane]);
        match barrier {
            _ if site == NO_SITE => false,
            None => self.comes_seldom(hash) && !self.fills(lane),
            Some(target) if target == self.elements => match self.look_up(lane) {
                None => {
                    self.comes_seldom(hash);
                    true
                }
                Some(_) => self.few_known(lane),
            },
            Some(_) => false,
        }
    }

    /// Whether a flow that was looked up in vain did not come often lately.
    fn comes_seldom(&mut self, hash: u64) -> bool {
        let times = self.cache.miss(hash);
        self.burst.seen.new += usize::from(times == 0);
        times < OFTEN
    }

    /// Whether so many lanes behind this one that are not in the flow cache are of flows that came often that it pays
    /// to add them all.
    fn fills(&self, lane: usize) -> bool {
        let (mut missed, mut again) = (0, 0);
        for lane in lanes_of(self.burst.at_sites & u32::MAX << lane << 1) {
            if self.look_up(lane).is_none() {
                missed += 1;
                again += usize::from(self.cache.missed(self.burst.hashes[lane]) == OFTEN);
            }
        }
        again * SHARE > missed
    }

    /// Whether so few lanes from this one on are in the flow cache that to begin anew with them
    /// costs more than it saves.
    fn few_known(&self, from: usize) -> bool {
        let lanes = lanes_of(self.burst.at_sites & u32::MAX << from);
        lanes.filter(|&lane| self.look_up(lane).is_some()).count() < FEW
    }

    fn planned_target(&self, lane: usize) -> Option<u16> {
        let is_of = |plan: &&u32| self.burst.planned[**plan as usize] >> lane & 1 == 1;
        self.target_of(*self.burst.used.iter().find(is_of)?)
    }

    fn unplan(&mut self, lane: usize) {
        for &plan in &self.burst.used {
            self.burst.planned[plan as usize] &= !(1 << lane);
        }
    }

    /// Sends those lanes ahead that are not in the flow cache, from one on.
    fn send_scouts(&mut self, from: usize, packets: &[Packet], now: u64) {
        let lanes = lanes_of(self.burst.at_sites & u32::MAX << from);
        let unknown = lanes.filter(|&lane| self.look_up(lane).is_none());
        let unknown = unknown.fold(0, |lanes, lane| lanes | 1 << lane);
        let Self { burst, sites, scouts, tables, cache, .. } = self;
        let lanes = lanes_of(unknown).map(|lane| {
            let site = sites.get(usize::from(burst.sites[lane]));
            (lane, StepId(burst.alone[lane]), site)
        });
        scouts.send(lanes, packets, (tables, cache), now);
    }

    /// Brings the flow cache up to date with the tables.
    #[cold]
    fn forget_changed(&mut self) {
        self.scouts.recall();
        self.burst.current = false;
        let cache = &mut self.cache;
        if !self.tables.log.take(|table, number| cache.kill(table, number)) {
            cache.clear();
        }
    }

    /// Takes what becomes of lanes from the flow cache, in order, up to one that is not there or
    /// changes what is there; gives those that were taken.
    #[inline(never)]
    fn take_lines(&mut self, lanes: u32, now: u64) -> u32 {
        let mut old = 0;
        for lane in lanes_of(lanes & self.burst.at_sites) {
            let line = self.burst.line(lane);
            let is_old = |at: usize| self.cache.line(at).until < now;
            old |= u32::from(line.is_some_and(is_old)) << lane;
        }
        if old != 0 {
            self.prefetch_flows(old);
        }
        let mut taken = 0;
        for lane in lanes_of(lanes) {
            let Some(at) = self.burst.line(lane) else { break };
            if !self.is_good(at, now) || self.is_barrier(self.cache.line(at).plan) {
                break;
            }
            self.take_line(lane, at);
            taken |= 1 << lane;
        }
        taken
    }

    /// Brings near what prolonging the flows of these lanes touches. Each loop touches memory that
    /// the one before brought near, so that the processor waits for all lanes at once.
    #[inline(never)]
    fn prefetch_flows(&self, lanes: u32) {
        let lines = || lanes_of(lanes).filter_map(|lane| self.burst.line(lane));
        let members = || lines().flat_map(|at| self.cache.members(at));
        lines().for_each(|at| self.cache.prefetch_members(at));
        members().for_each(|m| self.tables.prefetch(m.table, m.number));
        members().for_each(|m| self.tables.prefetch_changes(m.table, m.number));
    }

    /// Where in the flow cache it says what becomes of a lane, if that is good.
    #[inline(always)]
    fn find_line(&mut self, lane: usize, now: u64) -> Option<usize> {
        let at = self.look_up(lane)?;
        self.is_good(at, now).then_some(at)
    }

    /// Where in the flow cache it says what becomes of a lane.
    #[inline(always)]
    fn look_up(&self, lane: usize) -> Option<usize> {
        let burst = &self.burst;
        if burst.current {
            return burst.line(lane);
        }
        let (hash, key, site) = (burst.hashes[lane], burst.keys[lane], burst.sites[lane]);
        self.cache.find(hash, key, site, burst.holds[lane])
    }

    /// Whether what a line says still holds.
    #[inline(always)]
    fn is_good(&mut self, at: usize, now: u64) -> bool {
        self.cache.line(at).until >= now || self.prolong(at, now)
    }

    /// Takes what becomes of a lane from the flow cache; gives the target.
    #[inline(always)]
    fn take_line(&mut self, lane: usize, at: usize) -> Option<u16> {
        self.burst.seen.hits += 1;
        let line = self.cache.line(at);
        self.burst.take(lane, line);
        self.target_of(line.plan)
    }

    /// Prolongs the flows that a line was made from; `false` if one expired.
    #[cold]
    fn prolong(&mut self, at: usize, now: u64) -> bool {
        let expiry = |m: &Member| self.tables.expiry(m.table, m.number);
        if self.cache.members(at).any(|m| expiry(&m) <= now) {
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

    /// Takes a lane from a step on to its exit, and does what that says. Behind a barrier only
    /// what goes the same way is done, whatever the packets before do there.
    #[inline(never)]
    fn carry_out(
        &mut self,
        (lane, packet): (usize, &mut Packet),
        barrier: Option<u16>,
        from: usize,
        now: u64,
    ) -> Option<Option<u16>> {
        let (step, site) = (StepId(self.burst.alone[lane]), self.burst.sites[lane]);
        let site = self.sites.get(usize::from(site)).map(|of| (site, of));
        self.burst.seen.lines += usize::from(site.is_some());
        let mut relevant = 0;
        let step = match self.scouts.take_over(lane, &mut self.scalar) {
            Some((exit, decided)) => {
                relevant = decided;
                exit
            }
            None => {
                self.scalar.start(now);
                self.scalar.walk(step, packet, &self.tables, |step| {
                    relevant |= site.map_or(0, |(_, site)| site.deciding(step));
                })
            }
        };
        let program = Rc::clone(&self.program);
        let Step::Exit(exit) = program.step(step) else { return None };
        let number = self.outcome_of[step.0 as usize];
        let target = self.outcomes[number as usize].target;
        if let Some(barrier) = barrier {
            let changes = &self.targets[usize::from(barrier)].changes;
            let changed = |l| self.tables.of(l).is_some_and(|t| changes[usize::from(t)]);
            if target != Some(barrier) || self.scalar.hits.iter().any(|&l| changed(l)) {
                return None;
            }
        }
        let changed = self.scalar.update(exit, packet, &self.tables);
        let cached = site.and_then(|(number, site)| Some((number, site.exit(step)?)));
        if let Some((site, cached)) = cached
            && let Some(slots) = self.scalar.slots(&cached.slots, packet)
        {
            let relevant = relevant | cached.deciding;
            let line = Line {
                key: self.burst.keys[lane],
                until: now | self.tick,
                relevant,
                holds: self.burst.holds[lane] & relevant,
                plan: cached.plan,
                site,
                flows: 0,
                slots,
            };
            if !changed && !self.scalar.missed {
                self.remember(lane, exit, line);
            }
            // It is written with the packets of other lanes.
            self.burst.take(lane, &line);
            return Some(target);
        }
        let outcome = &mut self.outcomes[number as usize];
        outcome.packets += 1;
        for (sum, length) in outcome.sums.iter_mut().zip(&outcome.lengths) {
            *sum = sum.wrapping_add(self.scalar.value(*length, packet) as u64);
        }
        match target {
            None => outcome.dropped_bytes += self.scalar.length(exit, packet),
            Some(_) => self.scalar.write(exit, packet),
        }
        self.decided[from + lane] = target.unwrap_or(DROP);
        Some(target)
    }

    /// Adds what becomes of a lane to the flow cache, which holds for as long as the flows that were found on its way.
    fn remember(&mut self, lane: usize, exit: &Exit, mut line: Line) {
        self.burst.members.clear();
        for &lookup in &self.scalar.hits {
            let Some(found) = self.scalar.found(lookup) else { continue };
            let Some(table) = self.tables.of(lookup) else { continue };
            let prolonged = exit
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Update { lookup: l, .. } if *l == lookup));
            let number = found.number;
            line.until = line.until.min(self.tables.expiry(table, number).saturating_sub(1));
            self.burst.members.push(Member { table, number, prolonged });
        }
        if !self.tables.log.is_empty() {
            self.forget_changed();
        }
        self.cache.insert(self.burst.hashes[lane], line, &self.burst.members);
        self.burst.current = false;
    }

    /// Does what plans say to the lanes that are done.
    fn finish(&mut self, packets: &mut [Packet], done: u32, from: usize) {
        let Self { lanes, plans, burst, outcomes, decided, .. } = self;
        let needs = |plan: &u32| &plans[*plan as usize].needs;
        if burst.used.iter().any(|plan| !lanes.knows(needs(plan))) {
            let all = &Packets::new(packets, &mut burst.spare);
            for plan in &burst.used {
                lanes.compute(needs(plan), all, &burst.slots);
            }
        }
        let decided = &mut decided[from..];
        let mut windows = [0; LANES];
        for &number in &burst.used {
            let mask = &mut burst.planned[number as usize];
            *mask &= done;
            let (plan, mask) = (&plans[number as usize], *mask);
            let outcome = &mut outcomes[plan.outcome as usize];
            outcome.packets += u64::from(mask.count_ones());
            for (total, length) in outcome.sums.iter_mut().zip(&plan.lengths) {
                *total = total.wrapping_add(sum(lanes.column(*length), mask));
            }
            let Some(target) = outcome.target else {
                for lane in lanes_of(mask) {
                    let left = packets[lane].len() as i64 - i64::from(plan.start);
                    let left = u64::try_from(left).unwrap_or(0);
                    let length = plan.length.map_or(u64::MAX, |l| lanes.column(l)[lane].into());
                    outcome.dropped_bytes += left.min(length);
                }
                continue;
            };
            for_lanes(mask, |lane| decided[lane] = target);
            place(plan, lanes, packets, mask, &mut windows);
        }
        let all = burst
            .used
            .iter()
            .map(|&number| (&plans[number as usize], burst.planned[number as usize]));
        write(all, lanes, packets, &windows);
        burst.used.drain(..).for_each(|number| burst.planned[number as usize] = 0);
    }
}
