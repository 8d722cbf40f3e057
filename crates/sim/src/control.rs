//! What policies see of the simulated rack, and how their orders are executed, each after the time that its device takes.

use std::ops::Range;

use scale::{
    Action, Core, CoreMapper, CoreSeen, Group, GroupSeen, Guarded, Nanos, Note, Observation,
    Policy, Prefix, Role, Scaler, Server, ServerSeen,
};

use crate::cell::Unit;
use crate::event::Event;
use crate::scheme::Mode;
use crate::world::{NOTES, World};

/// A policy, and what it is for.
pub(crate) struct Site {
    pub(crate) policy: Guarded<Scaler>,
    pub(crate) cores: Range<u32>,
    /// Its groups; those of the whole rack come and go.
    units: Option<Range<u32>>,
    /// When it was asked last.
    asked: u64,
}

/// Nanoseconds of its room that a core is given at once at the most.
const DEPTH: f64 = 1e6;

/// A core that new flows go to. Room is given as it passes: flows are short beside the time between decisions, and one after another,
/// each core would get all flows until it is full.
pub(crate) struct CoreRoom {
    core: u32,
    /// Packets a second for which there is room.
    room: f64,
    /// Packets that it may be given now.
    packets: f64,
    /// Since when that is so.
    since: u64,
}

impl CoreRoom {
    fn new(core: u32, room: f64) -> Self {
        Self { core, room, packets: 0.0, since: 0 }
    }

    fn refill(&mut self, now: u64) {
        let passed = ((now - self.since) as f64).min(DEPTH);
        self.packets = (self.packets + self.room * passed / 1e9).min(self.room * DEPTH / 1e9);
        self.since = now;
    }
}

/// An order in progress.
pub(crate) enum Effect {
    /// A group goes to a core, and becomes a part of another group there.
    Move { group: u32, to: u32, into: Option<u32> },
    /// Flows of a core go to another one.
    Migrate { from: u32, to: u32, flows: Vec<u32> },
    /// New flows go to these cores.
    Place(Vec<CoreRoom>),
    /// A core goes when it has nothing any more.
    Release(u32),
}

impl World<'_> {
    /// Sets up policies, and what they begin with.
    pub(crate) fn begin(&mut self) {
        let setup = self.setup;
        let rack = &setup.rack;
        let most = rack.cores();
        let initial = (setup.initial as u32).clamp(1, most);
        let scaler = || Guarded::new(setup.scaler(), &setup.settings.guards);
        match setup.scheme.mode {
            Mode::Buckets => {
                for (server, cores) in rack.servers.iter().enumerate() {
                    let first = rack.first(server);
                    let units = server as u32 * rack.buckets..(server as u32 + 1) * rack.buckets;
                    for _ in units.clone() {
                        self.units.push(Unit { core: first, is_used: true, ..Unit::default() });
                        self.cells[first as usize].owned += 1;
                    }
                    let cores = first..first + cores;
                    self.sites.push(Site { policy: scaler(), cores, units: Some(units), asked: 0 });
                }
            }
            Mode::Classes => {
                self.classes = (0..rack.classes).map(|class| class % initial).collect();
                for core in 0..initial {
                    let classes = (0..rack.classes as u16)
                        .filter(|of| u32::from(*of) % initial == core)
                        .collect();
                    self.units.push(Unit { core, classes, is_used: true, ..Unit::default() });
                    self.cells[core as usize].owned += 1;
                }
                self.sites.push(Site { policy: scaler(), cores: 0..most, units: None, asked: 0 });
            }
            Mode::Flows => {
                self.places = (0..initial).map(|core| CoreRoom::new(core, f64::INFINITY)).collect();
                self.sites.push(Site { policy: scaler(), cores: 0..most, units: None, asked: 0 });
            }
        }
        if setup.scheme.mode != Mode::Buckets {
            (0..initial).for_each(|core| self.role(core, Role::Dedicated));
        }
        if let Some(kind) = setup.scheme.mapper {
            let (frontier, splits) = setup.frontier(kind);
            for core in 0..most {
                let mapper = CoreMapper::new(
                    Core(core),
                    setup.slo,
                    &setup.settings.core_mapper,
                    frontier.clone(),
                    splits.clone(),
                );
                self.cells[core as usize].mapper = Some(mapper);
            }
        }
        for (number, site) in self.sites.iter().enumerate() {
            self.events.plan(site.policy.period(), Event::Decide(number as u32));
        }
    }

    /// A server gets its first traffic: it begins with so many cores.
    fn open(&mut self, server: usize) {
        let rack = &self.setup.rack;
        let (first, cores) = (rack.first(server), rack.servers[server]);
        let is_first = self.prefixes.iter().flatten().next().is_none();
        let count = if is_first { (self.setup.initial as u32).clamp(1, cores) } else { 1 };
        for core in first..first + count {
            self.role(core, Role::Dedicated);
        }
        let units = server as u32 * rack.buckets..(server as u32 + 1) * rack.buckets;
        for (at, unit) in units.enumerate() {
            let to = first + at as u32 % count;
            let from = std::mem::replace(&mut self.units[unit as usize].core, to);
            self.cells[from as usize].owned -= 1;
            self.cells[to as usize].owned += 1;
        }
    }

    /// The server of a prefix that was not seen before.
    pub(crate) fn steer(&mut self, prefix: usize) -> u32 {
        let rack = &self.setup.rack;
        let dedicated = |server: usize| {
            let first = rack.first(server);
            let cells = &self.cells[first as usize..(first + rack.servers[server]) as usize];
            cells.iter().filter(|of| matches!(of.role, Role::Dedicated | Role::Starting)).count()
                as u32
        };
        let seen =
            |server| ServerSeen { server: Server(server as u32), dedicated: dedicated(server) };
        let servers: Vec<ServerSeen> = (0..rack.servers.len()).map(seen).collect();
        let unseen = vec![Prefix(prefix as u32)];
        let seen = Observation { at: self.now, servers, unseen, ..Observation::default() };
        let to = self.ingress.decide(self.now, &seen).into_iter().find_map(|action| match action {
            Action::Steer { to: Server(to), .. } => Some(to),
            _ => None,
        });
        let server = to.unwrap_or(0) as usize;
        if seen.servers.get(server).is_none_or(|of| of.dedicated == 0) {
            self.open(server);
        }
        self.tally.switch_updates += 1;
        self.prefixes[prefix] = Some(server as u16);
        server as u32
    }

    /// Gives a new flow a core, from the list that the ingress has.
    pub(crate) fn place(&mut self, flow: u32) {
        if self.units.len() <= flow as usize {
            self.units.resize(flow as usize + 1, Unit::default());
        }
        // Nothing is known of the flow: it is taken for one of those until the last decision.
        let (now, brings) = (self.now, self.brings);
        self.places.iter_mut().for_each(|of| of.refill(now));
        if self.places.iter().all(|of| of.packets <= 0.0)
            && let Some(spare) = self.detached()
        {
            self.places.push(spare);
        }
        let count = self.places.len();
        let open = self.places.iter().position(|of| of.packets > 0.0 && of.room.is_finite());
        // Before the first decision, and where all are full, flows are spread.
        let Some(at) = open.or_else(|| (flow as usize).checked_rem(count)) else { return };
        self.places[at].packets -= brings;
        let core = self.places[at].core;
        self.admit(core);
        self.units[flow as usize] = Unit { core, is_used: true, ..Unit::default() };
        self.cells[core as usize].owned += 1;
    }

    /// A chain that waits detached on a spare core: it starts at once (Quadrant §3.4.3).
    fn detached(&self) -> Option<CoreRoom> {
        let most = self.setup.settings.guards.most;
        let used = self.cells.iter().filter(|of| of.role != Role::Spare).count();
        let spare = self.cells.iter().position(|of| of.role == Role::Spare)?;
        let room = self.setup.settings.quadrant.most * self.setup.most();
        let mut place = CoreRoom::new(spare as u32, room);
        place.refill(self.now);
        (used < most).then_some(place)
    }

    /// A group becomes a part of another one on the same core.
    pub(crate) fn join(&mut self, group: u32, into: u32) {
        let (from, to) = (self.units[group as usize].core, self.units[into as usize].core);
        if from != to
            || !self.units[into as usize].is_used
            || self.units[into as usize].next.is_some()
        {
            return;
        }
        let classes = std::mem::take(&mut self.units[group as usize].classes);
        classes.iter().for_each(|class| self.classes[usize::from(*class)] = into);
        self.units[into as usize].classes.extend(classes);
        self.units[group as usize].is_used = false;
        self.cells[from as usize].owned -= 1;
    }

    pub(crate) fn note(&mut self, notes: Vec<Note>) {
        let room = NOTES.saturating_sub(self.tally.notes.len());
        self.tally.notes.extend(notes.into_iter().take(room));
    }

    /// What a policy sees, since it was asked last.
    fn observation(&mut self, site: usize) -> Observation {
        let of = &self.sites[site];
        let time = self.now.saturating_sub(of.asked).max(1);
        let second = |count: u64| count as f64 * 1e9 / time as f64;
        let epochs = time as f64 / self.epoch as f64;
        let (mode, core_costs) = (self.setup.scheme.mode, &self.setup.rack.core);
        let mut cores = Vec::with_capacity(of.cores.len());
        for core in of.cores.clone() {
            let cell = &mut self.cells[core as usize];
            let seen = &mut cell.seen;
            let load = (seen.busy as f64 / time as f64).min(1.0);
            let flows = match mode {
                Mode::Flows => f64::from(cell.owned),
                _ => seen.active as f64 / epochs,
            };
            cores.push(CoreSeen {
                core: Core(core),
                // One that goes is neither to be used nor to be ordered.
                role: if cell.retires { Role::Auxiliary } else { cell.role },
                load,
                rate: second(seen.packets),
                flows,
                queued: (cell.ring.len() + cell.queue.len()) as u32,
                lost: seen.lost,
                useful: load,
                batch_p99: seen.batches.percentile(990, 0).unwrap_or(0),
            });
            (seen.busy, seen.packets, seen.active, seen.lost) = (0, 0, 0, 0);
            seen.batches.clear();
        }
        let mut groups = Vec::new();
        if mode != Mode::Flows {
            let units = of.units.clone().unwrap_or(0..self.units.len() as u32);
            for group in units {
                let unit = &mut self.units[group as usize];
                if unit.is_used {
                    groups.push(GroupSeen {
                        group: Group(group),
                        core: Core(unit.core),
                        load: core_costs.time(unit.busy) as f64 / time as f64,
                        rate: second(unit.packets),
                        flows: unit.active as f64 / epochs,
                        parts: unit.classes.len().max(1) as u32,
                        operations: 0,
                        next: unit.ordered.map(Core),
                    });
                }
                (unit.busy, unit.packets, unit.active) = (0, 0, 0);
            }
        }
        self.sites[site].asked = self.now;
        Observation { at: self.now, cores, groups, ..Observation::default() }
    }

    /// Asks the server mapper of a core at once.
    pub(crate) fn ask(&mut self, core: u32) {
        let server = self.cells[core as usize].server as usize;
        if let Some(site) = self.sites.get(server)
            && self.now > site.asked + self.setup.rack.nic_update
        {
            self.decide_now(server);
        }
    }

    pub(crate) fn decide(&mut self, site: usize) {
        let Some(of) = self.sites.get(site) else { return };
        self.events.plan(self.now + of.policy.period(), Event::Decide(site as u32));
        let is_used = |core: u32| self.cells[core as usize].role != Role::Spare;
        if of.cores.clone().any(is_used) {
            self.decide_now(site);
        }
    }

    fn decide_now(&mut self, site: usize) {
        let window = self.now - self.sites[site].asked;
        let seen = self.observation(site);
        let policy = &mut self.sites[site].policy;
        let actions = policy.decide(self.now, &seen);
        let notes = policy.notes();
        self.note(notes);
        self.tally.decisions += u64::from(!actions.is_empty());
        let rack = &self.setup.rack;
        let after = match self.setup.scheme.mode {
            Mode::Buckets => rack.nic_update,
            Mode::Classes => rack.controller + rack.switch_update,
            Mode::Flows => rack.controller,
        };
        let mut busy = self.busy(&actions);
        let mut places = Vec::new();
        for action in actions {
            let effect = match action {
                Action::Add(Core(core)) => {
                    self.role(core, Role::Starting);
                    self.events.plan(self.now + rack.start, Event::Started(core));
                    continue;
                }
                Action::Release(Core(core)) => Effect::Release(core),
                Action::Move { group: Group(group), to: Core(to), .. } => {
                    self.units[group as usize].ordered = Some(to);
                    Effect::Move { group, to, into: None }
                }
                Action::Split { group: Group(group), to: Core(to), .. } => {
                    let half = self.halve(group);
                    self.units[half as usize].ordered = Some(to);
                    Effect::Move { group: half, to, into: None }
                }
                Action::Merge { group: Group(group), to: Core(to), into: Group(into), .. } => {
                    self.units[group as usize].ordered = Some(to);
                    Effect::Move { group, to, into: Some(into) }
                }
                Action::Migrate { from: Core(from), to: Core(to), rate } => {
                    let packets = rate * window as f64 / 1e9;
                    Effect::Migrate { from, to, flows: take(&mut busy[from as usize], packets) }
                }
                Action::Place { to: Core(to), room } => {
                    places.push(CoreRoom::new(to, room));
                    continue;
                }
                // Orders of core mappers and of the ingress are executed where these are asked.
                _ => continue,
            };
            self.after(after, effect);
        }
        if !places.is_empty() {
            self.after(after, Effect::Place(places));
        }
    }

    fn after(&mut self, time: Nanos, effect: Effect) {
        self.effects.push(Some(effect));
        self.events.plan(self.now + time, Event::Effect(self.effects.len() as u32 - 1));
    }

    /// Every second class of a group becomes a group of its own, on the same core.
    fn halve(&mut self, group: u32) -> u32 {
        let unit = &mut self.units[group as usize];
        let core = unit.core;
        let mut half = Vec::new();
        let mut at = 0;
        unit.classes.retain(|class| {
            at += 1;
            if at % 2 == 0 {
                half.push(*class);
            }
            at % 2 == 1
        });
        let number = match self.units.iter().position(|of| !of.is_used && of.pending == 0) {
            Some(free) => free,
            None => {
                self.units.push(Unit::default());
                self.units.len() - 1
            }
        };
        half.iter().for_each(|class| self.classes[usize::from(*class)] = number as u32);
        self.units[number] = Unit { core, classes: half, is_used: true, ..Unit::default() };
        self.cells[core as usize].owned += 1;
        number as u32
    }

    pub(crate) fn effect(&mut self, number: usize) {
        match self.effects[number].take() {
            Some(Effect::Move { group, to, into }) => {
                match self.setup.scheme.mode {
                    Mode::Classes => self.tally.switch_updates += 1,
                    _ => self.tally.nic_updates += 1,
                }
                self.tally.moves += 1;
                self.units[group as usize].into = into;
                self.shift(group, to);
            }
            Some(Effect::Migrate { from, to, flows }) => self.migrate(from, to, &flows),
            Some(Effect::Place(places)) => self.places = places,
            Some(Effect::Release(core)) if self.cells[core as usize].role == Role::Dedicated => {
                self.cells[core as usize].retires = true;
                if self.places.len() > 1 {
                    self.places.retain(|of| of.core != core);
                }
                self.retire(core);
            }
            Some(Effect::Release(_)) | None => {}
        }
    }

    /// Whether a core can have packets of its own: one that was let go meanwhile comes back, unless others use it.
    fn admit(&mut self, core: u32) -> bool {
        self.cells[core as usize].retires = false;
        match self.cells[core as usize].role {
            Role::Dedicated | Role::Starting => true,
            Role::Auxiliary => false,
            Role::Spare => {
                self.role(core, Role::Dedicated);
                true
            }
        }
    }

    /// From now on, packets of a group go to another core; they wait until its old one has none left.
    fn shift(&mut self, group: u32, to: u32) {
        let is_admitted = self.admit(to);
        let unit = &mut self.units[group as usize];
        if unit.core == to || !unit.is_used || !is_admitted {
            unit.ordered = None;
            return;
        }
        unit.next = Some(to);
        if unit.pending == 0 {
            self.settle(group);
        }
    }

    /// By core: flows with packets since the last decision, and how many, of cores that flows are to leave. Counts anew.
    fn busy(&mut self, actions: &[Action]) -> Vec<Vec<(u32, u32)>> {
        let mut all = vec![Vec::new(); self.cells.len()];
        if self.setup.scheme.mode != Mode::Flows {
            return all;
        }
        let mut is_left = vec![false; self.cells.len()];
        for action in actions {
            if let Action::Migrate { from: Core(from), .. } = action {
                is_left[*from as usize] = true;
            }
        }
        let mut active = 0u64;
        for flow in 0..self.flows.end() as u32 {
            let recent = std::mem::take(&mut self.flows[flow].recent);
            active += u64::from(recent > 0);
            let Some(unit) = self.units.get(flow as usize).filter(|_| recent > 0) else { continue };
            if unit.is_used && unit.next.is_none() && is_left[unit.core as usize] {
                all[unit.core as usize].push((flow, recent));
            }
        }
        let before = std::mem::replace(&mut self.before, self.packets);
        self.brings = (self.packets - before) as f64 / active.max(1) as f64;
        all
    }

    /// Moves flows to another core.
    fn migrate(&mut self, from: u32, to: u32, flows: &[u32]) {
        for flow in flows {
            let unit = &self.units[*flow as usize];
            if unit.is_used && unit.core == from && unit.next.is_none() {
                self.tally.migrated += 1;
                self.tally.switch_updates += 1;
                self.shift(*flow, to);
            }
        }
    }
}

/// Takes flows with so many packets together.
fn take(busy: &mut Vec<(u32, u32)>, packets: f64) -> Vec<u32> {
    let (mut left, mut taken) = (packets, Vec::new());
    busy.retain(|(flow, recent)| {
        let fits = left > 0.0 && f64::from(*recent) <= 2.0 * left;
        if fits {
            left -= f64::from(*recent);
            taken.push(*flow);
        }
        !fits
    });
    taken
}
