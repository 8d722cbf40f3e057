//! Packets that go through a program ahead of those before them, up to their exits, changing nothing: what they look up
//! is brought near for all of them at once. What they found holds as long as no flow changes.

use std::rc::Rc;

use ir::program::StepId;
use net::Packet;

use super::Counted;
use super::cache::FlowCache;
use super::classifiers::Classifiers;
use super::plan::Site;
use super::scalar::Scalar;
use super::tables::Tables;

/// As many as the processor waits for at once, about.
const MOST: usize = 16;

/// See the module.
pub(super) struct Scouts {
    program: Counted,
    classifiers: Rc<Classifiers>,
    all: Vec<Scout>,
    /// How many are out.
    out: usize,
}

pub(super) struct Scout {
    scalar: Scalar,
    lane: usize,
    at: StepId,
    /// The conditions on the packet that decided on its way.
    relevant: u32,
}

impl Scouts {
    pub(super) fn new(program: &Counted, classifiers: &Rc<Classifiers>) -> Self {
        let (program, classifiers) = (Rc::clone(program), Rc::clone(classifiers));
        Self { program, classifiers, all: Vec::new(), out: 0 }
    }

    /// Forgets what they found.
    pub(super) fn recall(&mut self) {
        self.out = 0;
    }

    /// Whether a lane is ahead.
    pub(super) fn know(&self, lane: usize) -> bool {
        self.all[..self.out].iter().any(|scout| scout.lane == lane)
    }

    /// Sends lanes ahead, each from its step on; a lane's site may be asked which conditions decide.
    pub(super) fn send<'a>(
        &mut self,
        lanes: impl Iterator<Item = (usize, StepId, Option<&'a Site>)>,
        packets: &[Packet],
        (tables, cache): (&Tables, &FlowCache),
        now: u64,
    ) {
        let mut sites = [None; MOST];
        self.out = 0;
        for ((lane, at, site), of) in lanes.zip(&mut sites) {
            if self.all.len() == self.out {
                let scalar = Scalar::new(Rc::clone(&self.program), Rc::clone(&self.classifiers));
                self.all.push(Scout { scalar, lane, at, relevant: 0 });
            }
            let scout = &mut self.all[self.out];
            (scout.lane, scout.at, scout.relevant, *of) = (lane, at, 0, site);
            scout.scalar.start(now);
            self.out += 1;
        }
        let out = &mut self.all[..self.out];
        let mut lookups = [None; MOST];
        loop {
            // Each loop touches memory that the one before brought near.
            for ((scout, site), lookup) in out.iter_mut().zip(sites).zip(&mut lookups) {
                let (packet, relevant) = (&packets[scout.lane], &mut scout.relevant);
                let deciding = |step| *relevant |= site.map_or(0, |site| site.deciding(step));
                scout.at = scout.scalar.walk_on(scout.at, packet, deciding);
                *lookup = scout.scalar.ask(scout.at, packet);
                if let Some(lookup) = *lookup {
                    tables.expect(lookup, scout.scalar.asked());
                }
            }
            if lookups.iter().all(Option::is_none) {
                break;
            }
            for (scout, lookup) in out.iter().zip(lookups) {
                lookup.inspect(|&lookup| tables.approach(lookup, scout.scalar.asked()));
            }
            for (scout, lookup) in out.iter_mut().zip(lookups) {
                if let Some(lookup) = lookup {
                    scout.at = scout.scalar.look_up(scout.at, lookup, tables);
                }
            }
        }
        for scout in out {
            for (table, number) in scout.scalar.members(tables) {
                tables.prefetch_changes(table, number);
                cache.prefetch_flow(table, number);
            }
        }
    }

    /// Takes the place of one that was sent ahead with a lane; gives its exit, and the conditions that decided on its way.
    pub(super) fn take_over(&mut self, lane: usize, scalar: &mut Scalar) -> Option<(StepId, u32)> {
        let scout = self.all[..self.out].iter_mut().find(|scout| scout.lane == lane)?;
        std::mem::swap(&mut scout.scalar, scalar);
        Some((scout.at, scout.relevant))
    }
}
