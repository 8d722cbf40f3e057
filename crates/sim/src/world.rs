//! The path of a packet through the simulated rack: switch, link, receive queue, batches, and cores that lend flows.

use scale::{Action, Core, CoreSeen, Flow, Nanos, Observation, Policy, Role, Waiting};

use crate::cell::{Cell, Packet, STAYS, Unit};
use crate::chain::mapper_cycles;
use crate::control::{CoreRoom, Effect, Site};
use crate::event::{Event, Events};
use crate::flows::{Flows, Loan};
use crate::report::{Report, Tally};
use crate::scheme::{Mode, Setup};
use crate::trace::{Arrival, Trace};

/// Nanoseconds between two looks for flows that are silent, and for how long they must be.
pub(crate) const EXPIRY: Nanos = 1_000_000_000;
/// Nanoseconds after the last packet in which what waits may still leave.
const DRAIN: Nanos = 2_000_000_000;
/// A batch of ours lasts this part of an epoch at the most.
const SHARE: u64 = 4;
/// Notes that are kept.
pub(crate) const NOTES: usize = 2000;

/// A rack with packets in it.
pub(crate) struct World<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) now: u64,
    pub(crate) events: Events,
    pub(crate) flows: Flows,
    pub(crate) cells: Vec<Cell>,
    pub(crate) units: Vec<Unit>,
    /// By class: its group.
    pub(crate) classes: Vec<u32>,
    /// By prefix: its server, once there is one.
    pub(crate) prefixes: Vec<Option<u16>>,
    pub(crate) sites: Vec<Site>,
    pub(crate) ingress: scale::IngressMapper,
    pub(crate) effects: Vec<Option<Effect>>,
    /// Where new flows go.
    pub(crate) places: Vec<CoreRoom>,
    /// Packets that came before the last decision, and how many an active flow brought between the last two.
    pub(crate) before: u64,
    pub(crate) brings: f64,
    pub(crate) tally: Tally,
    /// By server: until when its link is busy.
    links: Vec<u64>,
    /// Nanoseconds of an epoch, and of the windows in which flows are active or not.
    pub(crate) epoch: Nanos,
    prefix_bits: u32,
    counts: u64,
    active: u32,
    pub(crate) packets: u64,
    /// Scratch.
    waiting: Vec<Waiting>,
}

impl<'a> World<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Self {
        let rack = &setup.rack;
        let mut cells = Vec::new();
        for (server, cores) in rack.servers.iter().enumerate() {
            cells.extend((0..*cores).map(|_| Cell::new(server as u32)));
        }
        let epoch = (setup.slo / setup.settings.core_mapper.epochs.max(1)).max(1);
        let prefix_bits = setup.settings.ingress_mapper.length(rack.entries);
        let most = rack.servers.iter().max().copied().unwrap_or(0);
        let mut world = Self {
            setup,
            now: 0,
            events: Events::default(),
            flows: Flows::new(),
            cells,
            units: Vec::new(),
            classes: Vec::new(),
            prefixes: vec![None; 1 << prefix_bits],
            sites: Vec::new(),
            ingress: scale::IngressMapper::new(&setup.settings.ingress_mapper, most),
            effects: Vec::new(),
            places: Vec::new(),
            before: 0,
            brings: 1.0,
            tally: Tally::default(),
            links: vec![0; rack.servers.len()],
            epoch,
            prefix_bits,
            counts: 0,
            active: 0,
            packets: 0,
            waiting: Vec::new(),
        };
        world.begin();
        world.events.plan(EXPIRY, Event::Expire);
        world
    }

    /// Runs a trace, and says what came of it.
    pub(crate) fn run(mut self, trace: &mut dyn Trace) -> Result<Report, String> {
        let mut end = 0;
        while let Some((arrival, number)) = trace.next_numbered()? {
            while let Some((at, event)) = self.events.next(arrival.at) {
                self.now = at;
                self.happen(event);
            }
            self.now = arrival.at;
            end = arrival.at;
            self.arrive(&arrival, number);
        }
        // Policies are not asked any more: without packets they would see a rack that is idle.
        self.sites.clear();
        self.close(end);
        while let Some((at, event)) = self.events.next(end + DRAIN) {
            self.now = at;
            self.happen(event);
        }
        let time = end.saturating_sub(self.setup.warmup);
        let events = self.events.planned() + self.packets;
        let Setup { scheme, slo, seed, .. } = self.setup;
        Ok(Report::of(&scheme.name, *slo, *seed, time, self.tally, events))
    }

    /// Counts the time of cores up to the end of the trace.
    fn close(&mut self, end: u64) {
        self.now = end;
        for core in 0..self.cells.len() {
            self.role(core as u32, self.cells[core].role);
            self.cells[core].since = u64::MAX;
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Core(core) => self.turn(core),
            Event::Epoch(core) => self.auxiliary_epoch(core),
            Event::Decide(site) => self.decide(site as usize),
            Event::Effect(number) => self.effect(number as usize),
            Event::Started(core) => {
                if self.cells[core as usize].role == Role::Starting {
                    self.role(core, Role::Dedicated);
                    self.wake(core, self.now);
                }
            }
            Event::Expire => {
                let (flows, units, cells) = (&mut self.flows, &mut self.units, &mut self.cells);
                let is_flows = self.setup.scheme.mode == Mode::Flows;
                self.tally.most_alive = self.tally.most_alive.max(flows.alive());
                flows.expire(self.now.saturating_sub(EXPIRY), |number| {
                    if is_flows
                        && let Some(unit) = units.get_mut(number as usize).filter(|of| of.is_used)
                    {
                        unit.is_used = false;
                        cells[unit.core as usize].owned -= 1;
                    }
                });
                if !self.sites.is_empty() {
                    self.events.plan(self.now + EXPIRY, Event::Expire);
                }
            }
        }
    }

    /// Gives a core a role, and counts the time that it had the one before.
    pub(crate) fn role(&mut self, core: u32, role: Role) {
        let cell = &mut self.cells[core as usize];
        let time = u128::from(self.now.saturating_sub(cell.since.max(self.setup.warmup)));
        let counts = |role| !matches!(role, Role::Spare);
        match cell.role {
            Role::Dedicated | Role::Starting => self.tally.dedicated += time,
            Role::Auxiliary => self.tally.lent += time,
            Role::Spare => {}
        }
        if counts(cell.role) && cell.since != u64::MAX {
            self.tally.used(cell.since, self.now);
        }
        self.active = self.active + u32::from(counts(role)) - u32::from(counts(cell.role));
        self.tally.most_cores = self.tally.most_cores.max(self.active);
        if cell.since != u64::MAX {
            cell.since = self.now;
        }
        cell.role = role;
    }

    /// The group of a flow.
    fn unit(&mut self, flow: u32, is_new: bool) -> u32 {
        let rack = &self.setup.rack;
        let (hash, prefix) = (self.flows[flow].hash, self.flows[flow].prefix as usize);
        match self.setup.scheme.mode {
            Mode::Classes => self.classes[(hash % rack.classes) as usize],
            Mode::Buckets => {
                let server = match self.prefixes[prefix] {
                    Some(server) => u32::from(server),
                    None => self.steer(prefix),
                };
                server * rack.buckets + hash % rack.buckets
            }
            Mode::Flows => {
                if is_new {
                    self.place(flow);
                }
                flow
            }
        }
    }

    fn arrive(&mut self, arrival: &Arrival, number: Option<u32>) {
        self.packets += 1;
        let (flow, is_new) = self.flows.find(arrival.key, number, self.prefix_bits);
        self.tally.flows += u64::from(is_new);
        let group = self.unit(flow, is_new);
        let window = arrival.at / self.epoch;
        let state = &mut self.flows[flow];
        let number = state.sent;
        state.sent = state.sent.wrapping_add(1);
        state.seen = arrival.at;
        state.recent += 1;
        let is_active = state.window != window;
        state.window = window;
        let unit = &mut self.units[group as usize];
        unit.packets += 1;
        unit.active += u64::from(is_active);
        let core = unit.next.unwrap_or(unit.core);
        let cell = &mut self.cells[core as usize];
        cell.seen.packets += 1;
        cell.seen.active += u64::from(is_active);
        let rack = &self.setup.rack;
        let link = &mut self.links[cell.server as usize];
        *link =
            (*link).max(arrival.at) + u64::from(arrival.size) * 8_000_000_000 / rack.link.max(1);
        let ready = *link + rack.wire / 2;
        let (at, size) = (arrival.at, arrival.size);
        let packet = Packet { at, ready, flow, group, number, size, last: 0 };
        if unit.next.is_none() {
            self.enqueue(core, packet);
        } else if unit.held.len() < rack.ring {
            state.pending += 1;
            unit.held.push_back(packet);
        } else {
            self.lose(&packet, core);
        }
    }

    /// A packet is lost that was not counted as pending.
    fn lose(&mut self, packet: &Packet, core: u32) {
        self.cells[core as usize].seen.lost += 1;
        self.tally.passed(self.now, true);
        if packet.at >= self.setup.warmup {
            self.tally.left(packet.at, None, self.setup.slo);
        }
    }

    /// A packet comes to the receive queue of a core.
    fn enqueue(&mut self, core: u32, packet: Packet) {
        let cell = &mut self.cells[core as usize];
        if cell.ring.len() >= self.setup.rack.ring {
            self.lose(&packet, core);
            return;
        }
        cell.ring.push_back(packet);
        self.units[packet.group as usize].pending += 1;
        self.flows[packet.flow].pending += 1;
        self.wake(core, packet.ready);
    }

    /// Has a core look for packets at a time, unless it will anyway.
    pub(crate) fn wake(&mut self, core: u32, at: u64) {
        let cell = &mut self.cells[core as usize];
        if !cell.is_planned && matches!(cell.role, Role::Dedicated | Role::Auxiliary) {
            cell.is_planned = true;
            self.events.plan(at.max(self.now), Event::Core(core));
        }
    }

    /// A packet that was pending has left, or is lost.
    fn gone(&mut self, packet: &Packet) {
        self.flows[packet.flow].pending -= 1;
        let unit = &mut self.units[packet.group as usize];
        unit.pending -= 1;
        if unit.pending == 0 && unit.next.is_some() {
            self.settle(packet.group);
        }
    }

    /// A group's old core has none of its packets left: the new one goes on.
    pub(crate) fn settle(&mut self, group: u32) {
        let unit = &mut self.units[group as usize];
        let Some(to) = unit.next.take() else { return };
        let from = std::mem::replace(&mut unit.core, to);
        unit.ordered = None;
        let held = std::mem::take(&mut unit.held);
        let into = unit.into.take();
        self.cells[from as usize].owned -= 1;
        self.cells[to as usize].owned += 1;
        if let Some(into) = into {
            self.join(group, into);
        }
        for packet in held {
            self.flows[packet.flow].pending -= 1;
            self.enqueue(to, packet);
        }
        self.retire(from);
    }

    /// Lets a core go that has nothing any more.
    pub(crate) fn retire(&mut self, core: u32) {
        let cell = &mut self.cells[core as usize];
        if cell.retires && cell.owned == 0 && cell.is_empty() && cell.debt == 0 {
            cell.retires = false;
            self.role(core, Role::Spare);
        }
    }

    /// A core's batch is done: its packets leave, and it takes the next.
    fn turn(&mut self, core: u32) {
        let mut batch = std::mem::take(&mut self.cells[core as usize].batch);
        for (packet, to) in batch.drain(..) {
            let is_first = packet.last == 0 || to != STAYS;
            self.flows[packet.flow].working -= u32::from(is_first);
            if to != STAYS {
                self.cells[to as usize].expected -= 1;
                self.cells[to as usize].queue.push_back(packet);
                self.wake(to, self.now);
                continue;
            }
            let state = &mut self.flows[packet.flow];
            // Of a packet that left before an earlier one.
            let is_late = (state.left.wrapping_sub(packet.number) as i32) > 0;
            state.left = packet.number.wrapping_add(1);
            self.tally.passed(self.now, false);
            if packet.at >= self.setup.warmup {
                self.tally.out_of_order += u64::from(is_late);
                let latency = self.now + self.setup.rack.wire.div_ceil(2) - packet.at;
                self.tally.left(packet.at, Some(latency), self.setup.slo);
            }
            self.gone(&packet);
        }
        self.cells[core as usize].batch = batch;
        self.start(core);
    }

    /// A core takes its next batch, or waits. It counts as planned meanwhile: what it gives itself does not wake it.
    fn start(&mut self, core: u32) {
        let is_software = self.setup.scheme.mapper.is_some();
        if !matches!(self.cells[core as usize].role, Role::Dedicated | Role::Auxiliary) {
            self.cells[core as usize].is_planned = false;
            return;
        }
        if is_software {
            self.pull(core);
            let cell = &self.cells[core as usize];
            if self.now >= cell.epoch_end {
                self.end_epoch(core);
            }
        }
        self.take(core, is_software);
        let cell = &mut self.cells[core as usize];
        cell.is_planned = false;
        if cell.batch.is_empty() && cell.debt == 0 {
            if let Some(first) = cell.ring.front() {
                let ready = first.ready;
                self.wake(core, ready);
            } else {
                self.retire(core);
            }
            return;
        }
        let time = self.setup.rack.core.time(std::mem::take(&mut cell.debt)).max(1);
        cell.seen.busy += time;
        if !cell.batch.is_empty() {
            cell.seen.batches.add(time);
        }
        if self.now >= self.setup.warmup {
            self.tally.busy += u128::from(time);
        }
        self.wake(core, self.now + time);
    }

    /// Fills the batch of a core, and adds what it costs to its debt.
    fn take(&mut self, core: u32, is_software: bool) {
        let Setup { chain, rack, .. } = self.setup;
        let count = chain.functions.len();
        let cell = &mut self.cells[core as usize];
        let (mut batch, mut passed) = (std::mem::take(&mut cell.batch), Vec::new());
        let queue = if is_software { &mut cell.queue } else { &mut cell.ring };
        let mut cycles = 0;
        // A batch that lasts as long as an epoch would be late for the next one.
        let most = match self.setup.scheme.ours {
            true => rack.core.cycles(self.epoch) / SHARE,
            false => u64::MAX,
        };
        while batch.len() < rack.core.batch && cycles < most {
            let Some(mut packet) = queue.pop_front_if(|of| of.ready <= self.now || is_software)
            else {
                break;
            };
            let state = &mut self.flows[packet.flow];
            let is_first = packet.last == 0;
            let mut to = STAYS;
            let mut own = match packet.last {
                0 => chain.all(packet.size),
                last => chain.cycles(packet.size, count - usize::from(last)..count),
            };
            if is_first {
                if let Some((loan, last)) = state.split {
                    passed.push(loan);
                    own = chain.cycles(packet.size, 0..count - usize::from(last));
                    (to, packet.last) = (loan.core, last);
                }
                let is_elsewhere = state.core.is_some_and(|of| of != core);
                self.tally.two_owners += u64::from(is_elsewhere && state.working > 0);
                own += match state.core {
                    None => chain.setup + chain.touch,
                    Some(_) if is_elsewhere => chain.adopt + chain.touch,
                    Some(_) if self.now - state.served > chain.cools => chain.touch,
                    Some(_) => 0,
                };
                state.core = Some(core);
                state.served = self.now;
            }
            state.working += u32::from(is_first);
            self.units[packet.group as usize].busy += own;
            cycles += own;
            batch.push((packet, to));
        }
        if !batch.is_empty() {
            cycles += rack.core.poll + if is_software { rack.core.take } else { 0 };
        }
        let cell = &mut self.cells[core as usize];
        cell.batch = batch;
        cell.debt += cycles;
        for loan in passed {
            self.cells[loan.core as usize].expected += 1;
        }
    }

    /// Whether a loan still holds.
    fn holds(&self, loan: Loan) -> bool {
        let cell = &self.cells[loan.core as usize];
        cell.turn == loan.turn && cell.role == Role::Auxiliary
    }

    /// Takes what is in the receive queue into software, and forwards packets of flows that were lent.
    fn pull(&mut self, core: u32) {
        let rack = &self.setup.rack;
        let mut pulled = 0;
        while let Some(packet) =
            self.cells[core as usize].ring.pop_front_if(|of| of.ready <= self.now)
        {
            pulled += 1;
            let loan = self.flows[packet.flow].loan.filter(|loan| self.holds(*loan));
            self.flows[packet.flow].loan = loan;
            let to = loan.map_or(core, |loan| loan.core);
            self.put(to, packet);
        }
        let batches = u64::div_ceil(pulled, rack.core.batch.max(1) as u64);
        self.cells[core as usize].debt += batches * (rack.core.poll + rack.core.put);
    }

    /// Puts a packet that is pending into a core's software queue.
    fn put(&mut self, core: u32, packet: Packet) {
        if self.cells[core as usize].queue.len() >= self.setup.rack.queue {
            self.lose(&packet, core);
            self.gone(&packet);
            return;
        }
        self.cells[core as usize].queue.push_back(packet);
        self.wake(core, self.now);
    }

    /// At the end of an epoch: what the core cannot do in the next one is lent.
    fn end_epoch(&mut self, core: u32) {
        let scheme = &self.setup.scheme;
        let Some(mut mapper) = self.cells[core as usize].mapper.take() else { return };
        self.cells[core as usize].epoch_end = self.now + self.epoch;
        self.counts += 1;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear();
        for packet in &self.cells[core as usize].queue {
            if packet.last > 0 {
                continue;
            }
            let state = &mut self.flows[packet.flow];
            if state.met.0 != self.counts {
                state.met = (self.counts, waiting.len() as u32);
                waiting.push(Waiting { flow: Flow(packet.flow), packets: 0 });
            }
            waiting[state.met.1 as usize].packets += 1;
        }
        let queued = self.cells[core as usize].queue.len();
        let total = waiting.iter().map(|of| of.packets).sum();
        let is_too_much = !mapper.covers(waiting.len() as u32, total);
        let cell = &mut self.cells[core as usize];
        let is_dedicated = cell.role == Role::Dedicated;
        let was_on = cell.boost.is_on();
        let is_on = scheme.boost
            && is_dedicated
            && cell.boost.epoch(
                &self.setup.settings.boost,
                is_too_much,
                !is_too_much && cell.ring.is_empty(),
            );
        self.tally.boosts += u64::from(is_on && !was_on);
        if is_too_much {
            cell.debt += mapper_cycles(queued);
            let spare = self.spare_beside(core);
            let seen = Observation {
                at: self.now,
                cores: spare,
                queue: waiting,
                ..Observation::default()
            };
            for action in mapper.decide(self.now, &seen) {
                self.lend(action);
            }
            waiting = seen.queue;
            self.note(mapper.notes());
        }
        if is_on && !self.cells[core as usize].queue.is_empty() {
            // Its own share goes to one more.
            if let Some(to) = self.spare_beside(core).first().map(|of| of.core) {
                let queue = &self.cells[core as usize].queue;
                let mut own: Vec<Flow> = queue.iter().map(|of| Flow(of.flow)).collect();
                own.sort_unstable();
                own.dedup();
                self.lend(Action::Lend { from: Core(core), to, flows: own });
            }
        }
        if scheme.on_demand && is_dedicated && is_too_much {
            let cell = &mut self.cells[core as usize];
            let waits = cell.boost.epoch(&self.setup.settings.boost, true, false);
            if waits {
                cell.boost = scale::Boost::default();
                self.ask(core);
            }
        }
        self.waiting = waiting;
        self.cells[core as usize].mapper = Some(mapper);
    }

    /// Cores of the same server that nobody uses.
    fn spare_beside(&self, core: u32) -> Vec<CoreSeen> {
        let server = self.cells[core as usize].server;
        let first = self.setup.rack.first(server as usize);
        let all = first..first + self.setup.rack.servers[server as usize];
        let spare = all.filter(|of| self.cells[*of as usize].role == Role::Spare);
        spare.map(|of| CoreSeen::idle(Core(of), Role::Spare)).collect()
    }

    /// An auxiliary core begins.
    fn recruit(&mut self, core: u32) -> Loan {
        self.role(core, Role::Auxiliary);
        let ready = self.now + self.setup.rack.wake;
        let cell = &mut self.cells[core as usize];
        cell.turn = cell.turn.wrapping_add(1);
        cell.epoch_end = ready + self.epoch;
        let turn = cell.turn;
        self.events.plan(ready + self.epoch, Event::Epoch(core));
        self.wake(core, ready);
        Loan { core, turn }
    }

    /// Executes what a core mapper ordered.
    fn lend(&mut self, action: Action) {
        match action {
            Action::Lend { from: Core(from), to: Core(to), flows } => {
                let loan = self.recruit(to);
                self.tally.lends += 1;
                self.tally.lent_flows += flows.len() as u64;
                for flow in &flows {
                    self.flows[flow.0].loan = Some(loan);
                }
                let queue = std::mem::take(&mut self.cells[from as usize].queue);
                let mut kept = std::collections::VecDeque::with_capacity(queue.len());
                let mut batches = 0;
                for packet in queue {
                    // Of a packet whose first functions are done, the rest stays here.
                    if self.flows[packet.flow].loan == Some(loan) && packet.last == 0 {
                        batches += 1;
                        self.put(to, packet);
                    } else {
                        kept.push_back(packet);
                    }
                }
                let core = &self.setup.rack.core;
                let cell = &mut self.cells[from as usize];
                cell.queue = kept;
                cell.debt += u64::div_ceil(batches, core.batch.max(1) as u64) * core.put;
            }
            Action::SplitChain { to: Core(to), flow, functions, .. } => {
                let has_split = self.flows[flow.0].split.is_some();
                if !has_split {
                    let loan = self.recruit(to);
                    self.tally.splits += 1;
                    self.flows[flow.0].split = Some((loan, functions as u8));
                    self.cells[to as usize].split_of = Some(flow.0);
                }
            }
            _ => {}
        }
    }

    /// An epoch of an auxiliary core ends: without packets, its flows return and it does its other work again.
    fn auxiliary_epoch(&mut self, core: u32) {
        let cell = &mut self.cells[core as usize];
        if cell.role != Role::Auxiliary {
            return;
        }
        if cell.is_empty() {
            cell.turn = cell.turn.wrapping_add(1);
            if let Some(flow) = cell.split_of.take() {
                self.flows[flow].split = None;
            }
            self.role(core, Role::Spare);
        } else {
            self.events.plan(self.now + self.epoch, Event::Epoch(core));
        }
    }
}
