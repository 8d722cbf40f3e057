//! What a device does of a program, and what is left to cores.
//!
//! A device decides what it can. A condition that it cannot test it is *spared*, if nearly all
//! packets take one branch: it goes on as if they did, and the core that takes the packet tests the condition first.
//! So a device may be wrong about a packet, but never decides its fate: a class ends on a
//! device only if all conditions on the path were tested there, or are [trusted](Ends::trust).
//! Metron leaves to cores all rules behind the first that its hardware cannot express (§3.3.1); here those are
//! left whose packets need a core.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use codegen::{Lack, Presumption, Segment, Target};
use ir::field::{ip, ip6, meta, udp};
use ir::layout::{Layout, Layouts};
use ir::model::{CompareOp, Reason};
use ir::program::{Atom, Continuation, End, Exit, LookupId, Step, StepId, Term, Writes};
use ir::{Field, IntervalSet, NodeId, Port, Program};

use super::presumed::{
    LEAST_FRAME, Paddings, Presumed, atom, leave_padding, paddings, presume, truth, uncut,
};
use super::wire::to_wire;
use super::{Lookups, Partition, Refused, partition, reach, restrict};

/// What lies around a program that is divided.
pub struct Ends<'a> {
    /// Whether an input port of the chain leads to a wire that the device sends to.
    pub is_wire: &'a dyn Fn(Port) -> bool,
    /// What need not be tested, as frames are known to be so where they come in.
    pub trust: &'a dyn Fn(&Lack) -> bool,
    /// Bytes that IP packets have at most, if that is known where they come in.
    pub mtu: Option<u16>,
    /// By step of the program: what is left to cores as the device has no room for it.
    pub full: &'a BTreeMap<StepId, Lack>,
    /// The device's ports at which packets come in.
    pub ingress: Vec<u32>,
    /// Numbers of continuations begin here.
    pub first: Continuation,
}

/// A program that is divided between a device and cores.
#[derive(Clone, Debug)]
pub struct Offload {
    /// What the device does.
    pub segment: Segment,
    /// The parts that cores go on with, by their continuations.
    pub continuations: Vec<Program>,
    /// What becomes of each class, by exit of the program.
    pub classes: Vec<Class>,
    /// Where packets are handed off.
    pub handoffs: BTreeMap<Continuation, Handoff>,
    /// By step of the segment: the step of the program that it is, if packets are not handed off there.
    origins: Vec<Option<StepId>>,
    /// The program of packets for which holds what is trusted, if anything is.
    pub(super) trusted: Option<Program>,
    /// Lengths that packets are not cut to.
    pub(super) paddings: Paddings,
}

impl Offload {
    /// The step of the program that one of the segment is; none where packets are handed off.
    pub fn origin(&self, step: StepId) -> Option<StepId> {
        self.origins.get(step.0 as usize).copied().flatten()
    }

    /// What cores go on with where packets are handed off, by the program that was divided. What they ask before, as the device
    /// was spared it or presumed it, is not part of it, nor what they do with the few packets of which that does not hold.
    pub fn goes_on(&self, program: &Program, to: Continuation) -> Option<Program> {
        let steps = reach(program, [self.handoffs.get(&to)?.at]);
        Some(restrict(program, &[], &steps, &BTreeMap::new()).normal())
    }

    /// Notes that an artefact leaves packets undecided that come to an exit of the segment: those that it hands off, or
    /// is done with, are fewer, or none.
    pub(super) fn leave(&mut self, step: StepId, lack: Lack, artefact: &Program) {
        let Step::Exit(exit) = self.segment.program.step(step) else { return };
        let is_made = artefact.exits().any(|(_, other)| match (other.end, exit.end) {
            (End::Handoff { to: a }, End::Handoff { to: b }) => a == b,
            _ => other == &**exit,
        });
        let at = match exit.end {
            End::Handoff { to } => self.handoffs.get(&to).and_then(|handoff| handoff.exit),
            _ => self.origin(step),
        };
        let Some(class) = self.classes.iter_mut().find(|class| Some(class.exit) == at) else {
            return;
        };
        if !is_made {
            class.done = false;
            class.decided.clear();
            class.stays.clear();
            class.stops.clear();
        }
        let stay = Stay { element: element(&self.segment.program, step), lack };
        class.stays.insert(stay.clone());
        class.stops.insert(stay);
    }
}

/// Why a device leaves a class, or some of its packets, to a core.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stay {
    /// The element that asks or acts.
    pub element: NodeId,
    /// What the device lacks for it.
    pub lack: Lack,
}

/// A place where a device hands packets off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// Why.
    pub why: Vec<Stay>,
    /// The exit of the program that they come to, if what the device was spared holds.
    pub exit: Option<StepId>,
    /// The step of the program at which cores go on then.
    pub at: StepId,
    /// Whether the device decides that step itself for other packets: these are out of the ordinary.
    pub is_odd: bool,
}

/// Where packets of a class are taken care of. They may come to its exit on several paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The exit, by the program that was divided.
    pub exit: StepId,
    /// Some are done with on the device.
    pub done: bool,
    /// Some are left to cores, which decide nothing again but what the device was spared: why.
    pub decided: BTreeSet<Stay>,
    /// Some are left to cores that have to decide, too: why.
    pub stays: BTreeSet<Stay>,
    /// Where the device stops: the others are about what it was spared.
    pub stops: BTreeSet<Stay>,
}

impl Class {
    fn new(exit: StepId) -> Self {
        let (decided, stays, stops) = Default::default();
        Self { exit, done: false, decided, stays, stops }
    }

    /// Why cores see most of its packets.
    pub fn why(&self) -> Option<&Stay> {
        self.stops.first().or(self.decided.first()).or(self.stays.first())
    }
}

/// What a core asks before it goes on where a device stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    /// A step of the program, which the device was spared, or whose numbers are wanted.
    Step(StepId),
    /// What the device presumed as it decided a step; a number counts these.
    Presumed(StepId, usize),
}

/// A place in a program that is divided. In this order, each leads to those behind it only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// On the device, which was spared conditions, and looked up what a core looks up again. So many
    /// conditions are left to test there before an exit.
    Device { at: StepId, left: Reverse<usize>, before: Vec<Asked> },
    /// On a core, before it goes on where the device stopped: what it asks first, and which condition of the first of
    /// that.
    Again { left: Reverse<usize>, within: usize, before: Vec<Asked>, to: StepId },
    /// On a core.
    Core(StepId),
}

impl Position {
    fn stopped(before: Vec<Asked>, to: StepId) -> Self {
        match before.len() {
            0 => Position::Core(to),
            left => Position::Again { left: Reverse(left), within: 0, before, to },
        }
    }
}

/// Divides a program, as [`super::from_wire`] makes it, between devices of a target and cores.
pub fn offload(program: &Program, target: &dyn Target, ends: &Ends<'_>) -> Offload {
    let mut dividing = Dividing::new(program, target, ends);
    loop {
        let (whole, places, cuts) = dividing.whole();
        let Some(cuts) = cuts else { return dividing.nothing() };
        let parts = partition(&whole, &cuts, ends.first);
        if parts.refused.is_empty() {
            return dividing.divided(parts, &places);
        }
        // What cannot be cut here is cut before.
        for &(step, why) in &parts.refused {
            dividing.stop_before(step, why, &places, &whole);
        }
    }
}

struct Dividing<'a> {
    program: &'a Program,
    /// The same with what the wire shows of exits only, and packets' ends uncut if the target cannot.
    on_wire: Program,
    paddings: Paddings,
    /// By step of that: what the target lacks.
    lacks: Vec<Option<Lack>>,
    /// By step of that: what the target presumes if it decides it, and lacks to test that.
    presumed: Vec<Vec<Presumed>>,
    /// By step of that: what the target tests before.
    tested: BTreeMap<StepId, Vec<Atom>>,
    layouts: Layouts,
    ends: &'a Ends<'a>,
    lookups: Lookups,
    /// By step: the lookups that are wanted from there on.
    live: BTreeMap<StepId, BTreeSet<LookupId>>,
    /// By step: how many exits to wires it leads to.
    gains: Vec<usize>,
    /// Steps at which the device stops although it could go on: why.
    stops: BTreeMap<StepId, Refused>,
}

impl<'a> Dividing<'a> {
    fn new(program: &'a Program, target: &dyn Target, ends: &'a Ends<'a>) -> Self {
        let layouts = Layouts::of(program);
        let mut on_wire = program.clone();
        let mut is_done = vec![false; program.steps.len()];
        for (step, done) in on_wire.steps.iter_mut().zip(&mut is_done) {
            if let Step::Exit(exit) = step {
                *done = to_wire(exit, &ends.is_wire);
            }
        }
        let paddings = if target.cuts() { Paddings::new() } else { paddings(program, &layouts) };
        leave_padding(&mut on_wire, &paddings);
        let (mut lacks, mut presumed, mut tested) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (at, is_done) in (0..).map(StepId).zip(is_done) {
            let layout = layouts.at(at);
            let found = match on_wire.step(at) {
                _ if ends.full.contains_key(&at) => Err(ends.full[&at].clone()),
                Step::Exit(_) if !is_done => Err(Lack::Element),
                Step::Exit(_) => target.does(&on_wire, at, layout).map(|conditions| {
                    let itself = |holds| Presumption { when: Vec::new(), holds, lack: None };
                    conditions.into_iter().map(itself).collect()
                }),
                _ => target.decides(&on_wire, at, layout),
            };
            let facts = layouts.facts(at);
            let all = found.iter().flatten().filter(|one| one.lack.is_none());
            let tests: Vec<Atom> = all.map(|one| atom(&mut on_wire.terms, &one.holds)).collect();
            if !tests.is_empty() {
                tested.insert(at, tests);
            }
            if let Some(tests) = tested.get_mut(&at) {
                let is_known = |atom: &Atom| truth(facts?, &on_wire, atom);
                tests.retain(|atom| is_known(atom) != Some(true));
            }
            let all = found.as_ref().map_or(&[][..], Vec::as_slice).iter();
            let mut asked: Vec<Presumed> =
                all.filter_map(|one| presume(&mut on_wire, facts, one)).collect();
            asked.extend(uncut(program, at, &paddings, &mut on_wire.terms));
            presumed.push(asked);
            let lack = found.err();
            lacks.push(match program.step(at) {
                Step::Test { atom: atom @ Atom::Compare(..), .. }
                    if is_about_lengths(program, atom, layout) =>
                {
                    lack.map(|_| Lack::Length)
                }
                _ => lack,
            });
        }
        for (at, lack) in idle_lookups(program, &lacks) {
            lacks[at] = Some(lack);
        }
        let lookups = Lookups::of(program);
        let all = (0..program.steps.len() as u32).map(StepId).collect();
        let live = lookups.live(program, &all);
        let gains = gains(program, &ends.is_wire);
        let stops = BTreeMap::new();
        Self {
            program,
            on_wire,
            paddings,
            lacks,
            presumed,
            tested,
            layouts,
            ends,
            lookups,
            live,
            gains,
            stops,
        }
    }

    /// Whether flows are looked up at a step.
    fn is_of_flows(&self, at: StepId) -> bool {
        let step = self.program.step(at);
        matches!(step, Step::Lookup { lookup, .. } if self.program.flows(*lookup).is_some())
    }

    /// Where nearly all packets go at a condition that the device cannot test: those that are as they should be, or
    /// else where most exits are.
    fn usual(&self, at: StepId) -> Option<StepId> {
        let gain = |to: &StepId| self.gains[to.0 as usize];
        match self.program.step(at) {
            step @ (Step::Test { .. } | Step::Switch { .. }) => {
                let all: Vec<StepId> = step.next().collect();
                // The first of several that are alike.
                let most = || all.iter().copied().rev().max_by_key(gain);
                let sound = self.sound_side(at).filter(|side| gain(side) > 0);
                sound.or_else(most).filter(|usual| gain(usual) > 0)
            }
            Step::Classify { .. } | Step::Lookup { .. } | Step::Exit(_) => None,
        }
    }

    /// What is asked again at a step: what was spared and presumed, and lookups whose numbers are wanted.
    fn asked(&self, before: &[Asked], to: StepId) -> Vec<Asked> {
        let mut wanted = self.live[&to].clone();
        let mut asked = Vec::new();
        for &one in before.iter().rev() {
            if let Asked::Presumed(step, number) = one
                && self.is_of_others(&self.presumed[step.0 as usize][number], to)
            {
                continue;
            }
            if let Asked::Step(step) = one {
                match self.program.step(step) {
                    Step::Lookup { lookup, .. } => {
                        if !wanted.remove(lookup) {
                            continue;
                        }
                        let key = &self.program.lookups[usize::from(lookup.0)].key;
                        wanted.extend(self.lookups.of_all(key));
                    }
                    of => wanted.extend(self.lookups.of_all(&of.terms())),
                }
            }
            asked.push(one);
        }
        asked.reverse();
        asked
    }

    /// Whether what is presumed is of packets that do not come to a step: what distinguishes them was decided before.
    fn is_of_others(&self, presumed: &Presumed, to: StepId) -> bool {
        let Some(facts) = self.layouts.facts(to) else { return false };
        let when = &presumed.atoms[..presumed.atoms.len() - 1];
        when.iter().any(|atom| truth(facts, &self.on_wire, atom) == Some(false))
    }

    /// Adds what is presumed where the device decides a step, if it is not asked before.
    fn presume(&self, at: StepId, before: &mut Vec<Asked>) {
        for (number, presumed) in self.presumed[at.0 as usize].iter().enumerate() {
            let holds = &presumed.atoms[presumed.atoms.len() - 1..];
            let is_asked = |asked: &Asked| match asked {
                Asked::Presumed(step, number) => {
                    let other = &self.presumed[step.0 as usize][*number].atoms;
                    *other == presumed.atoms || other[..] == *holds
                }
                Asked::Step(step) => match self.program.step(*step) {
                    Step::Test { atom, yes, .. } => {
                        holds == [atom.clone()] && self.usual(*step) == Some(*yes)
                    }
                    _ => false,
                },
            };
            if !before.iter().any(is_asked) {
                before.push(Asked::Presumed(at, number));
            }
        }
    }

    /// Where a place leads, if its step of the program leads to `next`.
    fn lead(&self, place: &Position, next: StepId) -> Position {
        match place {
            Position::Device { at, before, .. } => {
                let mut before = before.clone();
                self.presume(*at, &mut before);
                if self.is_of_flows(*at)
                    && matches!(self.program.step(*at), Step::Lookup { miss, .. } if *miss == next)
                {
                    // Without a lease nothing is known: whether there is a flow is up to those who own it.
                    return Position::stopped(self.asked(&before, *at), *at);
                }
                if matches!(self.program.step(*at), Step::Lookup { hit, .. } if *hit == next) {
                    before.push(Asked::Step(*at));
                }
                self.settle(next, before)
            }
            Position::Again { before, to, .. } => match self.usually(before[0]) == Some(next) {
                true => Position::stopped(before[1..].to_vec(), *to),
                false => Position::Core(next),
            },
            Position::Core(_) => Position::Core(next),
        }
    }

    /// Where what is asked leads nearly always; nowhere else than on, for what was presumed.
    fn usually(&self, asked: Asked) -> Option<StepId> {
        match asked {
            Asked::Presumed(..) => None,
            Asked::Step(step) => match self.program.step(step) {
                Step::Lookup { hit, .. } => Some(*hit),
                _ => self.usual(step),
            },
        }
    }

    /// The places that a place leads to, by what its step of the program leads to.
    fn leads(&self, place: &Position) -> Vec<(StepId, Position)> {
        let at = self.step_of(place);
        if let Position::Device { at, left: Reverse(left @ 1..), before } = place {
            let (left, before) = (Reverse(left - 1), before.clone());
            let stopped = Position::stopped(before.clone(), *at);
            return vec![(*at, Position::Device { at: *at, left, before }), (*at, stopped)];
        }
        if let Position::Again { left, within, before, to } = place
            && let Asked::Presumed(step, number) = before[0]
        {
            let rest = Position::stopped(before[1..].to_vec(), *to);
            return match *within + 1 == self.presumed[step.0 as usize][number].atoms.len() {
                // What the device decided is decided anew if it presumed wrongly.
                true => vec![(at, rest), (at, Position::Core(at))],
                false => {
                    let (left, before) = (*left, before.clone());
                    let next = Position::Again { left, within: within + 1, before, to: *to };
                    vec![(at, next), (at, rest)]
                }
            };
        }
        self.program.step(at).next().map(|next| (next, self.lead(place, next))).collect()
    }

    /// The condition that is tested at a place, if it is not the program's.
    fn test(&self, place: &Position) -> Option<&Atom> {
        match place {
            Position::Device { at, left: Reverse(left), .. } => {
                let tests = self.tested.get(at)?;
                tests.get(tests.len().checked_sub(*left)?)
            }
            Position::Again { within, before, .. } => match before[0] {
                Asked::Presumed(step, number) => {
                    self.presumed[step.0 as usize][number].atoms.get(*within)
                }
                Asked::Step(_) => None,
            },
            Position::Core(_) => None,
        }
    }

    /// The step of the program that a place is, or is about.
    fn step_of(&self, place: &Position) -> StepId {
        match place {
            Position::Device { at, .. } | Position::Core(at) => *at,
            Position::Again { before, .. } => match before[0] {
                Asked::Step(at) | Asked::Presumed(at, _) => at,
            },
        }
    }

    /// Where a packet on the device goes on: past what the device is spared, to where it decides, is done, or stops.
    fn settle(&self, mut at: StepId, mut before: Vec<Asked>) -> Position {
        loop {
            before = self.asked(&before, at);
            let (step, lack) = (self.program.step(at), &self.lacks[at.0 as usize]);
            let is_exit = matches!(step, Step::Exit(_));
            let is_free = before.iter().all(|asked| self.is_trusted(*asked));
            let usual = match lack {
                _ if self.stops.contains_key(&at) => return Position::stopped(before, at),
                None if is_free || !is_exit => {
                    let left = Reverse(self.tested.get(&at).map_or(0, Vec::len));
                    return Position::Device { at, left, before };
                }
                None => None,
                Some(_) => self.usual(at),
            };
            let Some(usual) = usual else { return Position::stopped(before, at) };
            before.push(Asked::Step(at));
            at = usual;
        }
    }

    /// Whether what would be asked need not be: it is a lookup, or trusted.
    fn is_trusted(&self, asked: Asked) -> bool {
        match asked {
            Asked::Presumed(step, number) => {
                (self.ends.trust)(&self.presumed[step.0 as usize][number].lack)
            }
            Asked::Step(step) => match self.program.step(step) {
                Step::Lookup { .. } => true,
                _ => {
                    let lack = self.lacks[step.0 as usize].as_ref();
                    let side = self.sound_side(step);
                    lack.is_some_and(self.ends.trust) && side.is_some() && side == self.usual(step)
                }
            },
        }
    }

    /// Where packets go at a condition whose lengths are sound, whose checksums are right, and whose IPv4 headers have no
    /// options; none if that says nothing of it.
    fn sound_side(&self, at: StepId) -> Option<StepId> {
        let Step::Test { atom, yes, no, .. } = self.program.step(at) else { return None };
        let side = |holds| Some(if holds { *yes } else { *no });
        let layout = self.layouts.at(at);
        let (term, set) = match atom {
            Atom::Compare(CompareOp::Le, ..) if is_about_lengths(self.program, atom, layout) => {
                return side(true);
            }
            Atom::Compare(..) => return None,
            Atom::Test(term, set) => (*term, set),
        };
        match self.program.term(term) {
            Term::Sum16 { .. } => return side(set.contains(0xffff)),
            Term::Input(field) => match layout.name_of(*field).and_then(|name| name.field) {
                Some(ip::HL) => return side(set.contains(5)),
                Some(ip::VERSION) => return side(set.contains(4)),
                _ => {}
            },
            _ => {}
        }
        if !is_about_lengths(self.program, atom, layout) {
            return None;
        }
        let (low, high) = self.layouts.facts(at)?.range(self.program, term)?;
        let known = IntervalSet::range(u128::try_from(low).ok()?, u128::try_from(high).ok()?);
        let (inside, outside) = (known.intersect(set), known.subtract(set));
        match (self.is_rest(&outside, &inside), self.is_rest(&inside, &outside)) {
            (true, false) => side(true),
            (false, true) => side(false),
            _ => None,
        }
    }

    /// Whether these are lengths of no packet that others are the lengths of: too short for its headers, or longer
    /// than its link takes.
    fn is_rest(&self, rest: &IntervalSet, lengths: &IntervalSet) -> bool {
        let (Some(least), Some(most)) = (lengths.min(), lengths.max()) else { return false };
        let longest = self.ends.mtu.map(u128::from);
        rest.intervals().iter().all(|&(low, high)| {
            high < least && least <= LEAST_FRAME
                || low > most && longest.is_some_and(|mtu| most >= mtu)
        })
    }

    /// The program of packets for which all that is trusted holds; others are dropped. None if nothing is.
    fn as_trusted(&self) -> Option<Program> {
        let presumed = |index: usize| {
            self.presumed[index].iter().filter(|presumed| (self.ends.trust)(&presumed.lack))
        };
        let count = self.program.steps.len();
        let mut starts = Vec::with_capacity(count);
        let mut end = 0;
        for index in 0..count {
            starts.push(StepId(end));
            end += 1 + presumed(index).map(|presumed| presumed.atoms.len() as u32).sum::<u32>();
        }
        let broken = StepId(end);
        let (mut steps, mut any) = (Vec::new(), false);
        for (index, step) in self.program.steps.iter().enumerate() {
            let at = StepId(index as u32);
            for Presumed { atoms, .. } in presumed(index) {
                let element = element(self.program, at);
                let rest = StepId((steps.len() + atoms.len()) as u32);
                for (number, atom) in atoms.iter().enumerate() {
                    let is_last = number + 1 == atoms.len();
                    let yes = StepId(steps.len() as u32 + 1);
                    let no = if is_last { broken } else { rest };
                    steps.push(Step::Test { atom: atom.clone(), yes, no, element });
                }
                any = true;
            }
            let (mut step, usual) = (step.clone(), self.usual(at));
            let is_spared = usual.is_some() && self.is_trusted(Asked::Step(at));
            step.map_next(|next| match is_spared && Some(next) != usual {
                true => broken,
                false => starts[next.0 as usize],
            });
            any |= is_spared;
            steps.push(step);
        }
        let (element, reason) = (self.program.entry.node, Reason("not-trusted"));
        let end = End::Drop { element, reason };
        let (effects, copies, visited) = (Vec::new(), Vec::new(), Vec::new());
        let exit = Exit { effects, writes: Writes::default(), end, barrier: None, visited, copies };
        steps.push(Step::Exit(Box::new(exit)));
        let terms = self.on_wire.terms.clone();
        any.then(|| Program { steps, terms, ..self.program.clone() })
    }

    /// The program with what the device is spared behind what it decides: its places by step, and the
    /// steps where the device stops; none if it does nothing.
    fn whole(&self) -> (Program, Vec<Position>, Option<BTreeSet<StepId>>) {
        let root = self.settle(StepId(0), Vec::new());
        let is_device = |place: &Position| matches!(place, Position::Device { .. });
        let stopped = !is_device(&root);
        let mut places: BTreeMap<Position, Vec<(StepId, Position)>> = BTreeMap::new();
        let mut stops = BTreeSet::new();
        let mut open = vec![root.clone()];
        while let Some(place) = open.pop() {
            if places.contains_key(&place) {
                continue;
            }
            let mut leads = Vec::new();
            for (next, there) in self.leads(&place) {
                if is_device(&place) && !is_device(&there) {
                    stops.insert(there.clone());
                }
                open.push(there.clone());
                leads.push((next, there));
            }
            places.insert(place, leads);
        }
        let ids: BTreeMap<&Position, StepId> = places.keys().zip((0..).map(StepId)).collect();
        let step = |(place, leads): (&Position, &Vec<(StepId, Position)>)| {
            let at = self.step_of(place);
            if let Some(atom) = self.test(place) {
                let (yes, no) = (ids[&leads[0].1], ids[&leads[1].1]);
                return Step::Test {
                    atom: atom.clone(),
                    yes,
                    no,
                    element: element(self.program, at),
                };
            }
            let from =
                if let Position::Device { .. } = place { &self.on_wire } else { self.program };
            let mut step = from.step(at).clone();
            let leads: BTreeMap<StepId, StepId> =
                leads.iter().map(|(next, there)| (*next, ids[there])).collect();
            step.map_next(|next| leads[&next]);
            step
        };
        let steps = places.iter().map(step).collect();
        let mut whole = Program { steps, ..self.program.clone() };
        whole.terms.clone_from(&self.on_wire.terms);
        let cuts = (!stopped).then(|| stops.iter().map(|place| ids[place]).collect());
        (whole, places.into_keys().collect(), cuts)
    }

    /// Has the device stop before a step of the whole that it cannot be cut at.
    fn stop_before(&mut self, at: StepId, why: Refused, places: &[Position], whole: &Program) {
        for (step, before) in whole.steps.iter().zip(places) {
            if let Position::Device { at: stop, .. } = before
                && step.next().any(|next| next == at)
            {
                self.stops.insert(*stop, why);
            }
        }
    }

    /// All is left to cores.
    fn nothing(&self) -> Offload {
        let mut whole = self.program.clone();
        whole.continuation = Some(self.ends.first);
        let handoff = Exit::handoff(self.ends.first, Vec::new());
        let front = Program { steps: vec![Step::Exit(Box::new(handoff))], ..self.program.clone() };
        let parts = Partition {
            front: front.normal(),
            front_steps: vec![StepId(0)],
            continuations: vec![whole],
            refused: Vec::new(),
        };
        self.divided(parts, &[Position::Core(StepId(0))])
    }

    fn divided(&self, parts: Partition, places: &[Position]) -> Offload {
        let mut classes: BTreeMap<StepId, Class> =
            self.program.exits().map(|(exit, _)| (exit, Class::new(exit))).collect();
        let (mut layouts, mut origins, mut handoffs) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (step, number) in parts.front_steps.iter().zip((0..).map(StepId)) {
            let place = &places[step.0 as usize];
            let at = self.step_of(place);
            let is_device = matches!(place, Position::Device { .. });
            origins.push(is_device.then_some(at));
            layouts.push(if is_device { self.layouts.at(at).clone() } else { Layout::default() });
            match place {
                Position::Device { left, .. } => {
                    if *left == Reverse(0)
                        && let Some(class) = classes.get_mut(&at)
                    {
                        class.done = true;
                    }
                }
                Position::Core(at) | Position::Again { to: at, .. } => {
                    let before: &[Asked] =
                        if let Position::Again { before, .. } = place { before } else { &[] };
                    let why = self.left(before, *at, &mut classes);
                    let exit = classes.contains_key(at).then_some(*at);
                    if let Step::Exit(end) = parts.front.step(number)
                        && let End::Handoff { to } = end.end
                    {
                        let is_odd =
                            self.lacks[at.0 as usize].is_none() && !self.stops.contains_key(at);
                        handoffs.insert(to, Handoff { why, exit, at: *at, is_odd });
                    }
                }
            }
        }
        let segment = Segment { program: parts.front, layouts, ingress: self.ends.ingress.clone() };
        Offload {
            segment,
            continuations: parts.continuations,
            classes: classes.into_values().collect(),
            handoffs,
            origins,
            trusted: self.as_trusted(),
            paddings: self.paddings.clone(),
        }
    }

    /// Notes what is left to cores where the device stops. Gives the reasons.
    fn left(
        &self,
        before: &[Asked],
        to: StepId,
        classes: &mut BTreeMap<StepId, Class>,
    ) -> Vec<Stay> {
        let stay = |step: StepId| {
            let stop = self.stops.get(&step).map(|why| Lack::HandOff(why.to_string()));
            let lack = stop.or_else(|| self.lacks[step.0 as usize].clone())?;
            Some(Stay { element: element(self.program, step), lack })
        };
        let missed = |step: StepId| {
            let lack = self.is_of_flows(step).then_some(Lack::Lease)?;
            Some(Stay { element: element(self.program, step), lack })
        };
        let stopped = stay(to).or_else(|| missed(to));
        let mut reasons = Vec::new();
        // Those for which what the device was spared, or presumed, does not hold.
        for &asked in before {
            let (reason, others) = match asked {
                Asked::Presumed(step, number) => {
                    let lack = self.presumed[step.0 as usize][number].lack.clone();
                    (Stay { element: element(self.program, step), lack }, vec![step])
                }
                Asked::Step(step) => {
                    let Some(reason) = stay(step) else { continue };
                    let usual = self.usually(asked);
                    let others = self.program.step(step).next();
                    (reason, others.filter(|next| Some(*next) != usual).collect())
                }
            };
            for exit in reach(self.program, others) {
                if let Some(class) = classes.get_mut(&exit) {
                    class.stays.insert(reason.clone());
                }
            }
            reasons.push(reason);
        }
        reasons.extend(stopped.clone());
        match classes.get_mut(&to) {
            Some(class) => {
                class.decided.extend(reasons.iter().cloned());
                class.stops.extend(stopped);
            }
            None => {
                let reason = stopped.or_else(|| reasons.first().cloned());
                for exit in reach(self.program, [to]) {
                    if let Some(class) = classes.get_mut(&exit) {
                        class.stays.extend(reason.clone());
                        class.stops.extend(reason.clone());
                    }
                }
            }
        }
        reasons
    }
}

/// Lookups of flows that lead to no wire that the device could send to if it found one: what it lacks there.
fn idle_lookups(program: &Program, lacks: &[Option<Lack>]) -> Vec<(usize, Lack)> {
    let mut leads: Vec<Result<(), Option<Lack>>> = vec![Err(None); program.steps.len()];
    let mut idle = Vec::new();
    for (at, step) in program.steps.iter().enumerate().rev() {
        let next = |next: StepId| leads[next.0 as usize].clone();
        leads[at] = match (&lacks[at], step) {
            (Some(lack), _) => Err(Some(lack.clone())),
            (None, Step::Exit(exit)) if matches!(exit.end, End::Push { .. }) => Ok(()),
            (None, Step::Exit(_)) => Err(None),
            (None, Step::Lookup { hit, lookup, .. }) if program.flows(*lookup).is_some() => {
                if let Err(Some(lack)) = next(*hit) {
                    idle.push((at, lack));
                }
                next(*hit)
            }
            (None, step) => {
                let all: Vec<_> = step.next().map(next).collect();
                let lack = all.iter().find_map(|one| one.clone().err().flatten());
                if all.contains(&Ok(())) { Ok(()) } else { Err(lack) }
            }
        };
    }
    idle
}

/// Whether a condition is on lengths alone: on those that headers state, or the packet's.
fn is_about_lengths(program: &Program, atom: &Atom, layout: &Layout) -> bool {
    let mut terms = atom.operands();
    while let Some(term) = terms.pop() {
        let is_length = |field: Field| {
            let name = layout.name_of(field).and_then(|name| name.field);
            field == meta::LEN || name.is_some_and(|name| LENGTHS.contains(&name))
        };
        match program.term(term) {
            Term::Input(field) if !is_length(*field) => return false,
            of => terms.extend(of.operands()),
        }
    }
    true
}

const LENGTHS: [Field; 4] = [ip::LEN, ip::HL, ip6::PLEN, udp::LEN];

/// The element that asks, or at which packets end.
pub(super) fn element(program: &Program, step: StepId) -> NodeId {
    match program.step(step) {
        Step::Test { element, .. }
        | Step::Switch { element, .. }
        | Step::Classify { element, .. } => *element,
        Step::Lookup { lookup, .. } => program.lookups[usize::from(lookup.0)].element,
        Step::Exit(exit) => match exit.end {
            End::Push { to, .. } => to.node,
            End::Drop { element, .. } => element,
            End::Handoff { .. } => program.entry.node,
        },
    }
}

/// By step: how many exits to wires it leads to.
fn gains(program: &Program, is_wire: &impl Fn(Port) -> bool) -> Vec<usize> {
    let mut exits: Vec<BTreeSet<StepId>> = vec![BTreeSet::new(); program.steps.len()];
    for (index, step) in program.steps.iter().enumerate().rev() {
        let mut here: BTreeSet<StepId> =
            step.next().flat_map(|next| exits[next.0 as usize].iter().copied()).collect();
        if let Step::Exit(exit) = step
            && matches!(exit.end, End::Push { to, .. } if is_wire(to))
        {
            here.insert(StepId(index as u32));
        }
        exits[index] = here;
    }
    exits.iter().map(BTreeSet::len).collect()
}
