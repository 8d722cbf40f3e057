//! Mappers: what chooses one of several patterns for a new flow.

use std::cell::Cell;

use ir::model::{Rule, StateKind};
use ir::{Cond, Expr, IntervalSet, Op, Reason, Span, StateValue};

use super::backends::{Backends, NO_BACKEND};
use super::model::{Builder, FORWARD, FOUND, HASH, REPLY, TURN};
use super::pattern::{New, PatternRef, Patterns};
use super::pool::Pool;
use super::{EXHAUSTED, Ports};
use crate::element_state::ElementState;
use crate::flow_table::{FlowTable, Hashed};

/// A pattern with the outputs that its flows use.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub pattern: PatternRef,
    pub ports: Ports,
    /// Where both were written.
    pub span: Span,
}

/// How a mapper chooses.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The next one in turn that has a free mapping.
    Turn(Cell<usize>),
    /// By the source address, on a ring.
    Source(Ring),
    /// One pattern, whose destination is that of a backend.
    Backends(Backends),
    /// None of them: a mapping of a pool. The pattern leaves all as it is, and keeps the turn.
    Pool(Pool),
    /// The first pattern: rewriters use it as if it was written there.
    Only,
}

/// What a mapper element shares with rewriters.
#[derive(Debug)]
pub(crate) struct Mapper {
    /// The element's full name.
    pub name: String,
    pub own: std::rc::Rc<Patterns>,
    pub mapped: Vec<Mapped>,
    pub choice: Choice,
}

/// Name of the declared state that [`Choice::Turn`] is.
pub(crate) const TURN_STATE: &str = "turn";

/// Points on the circle of hashes, each of a server, so that few sources move to another server
/// when one is added or removed: a hash belongs to the first point at or after it.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Ascending, with the server's index.
    points: Vec<(u32, usize)>,
}

/// The numbers of the C library's `random` with this seed: an additive feedback generator, which
/// Click makes the points from.
fn random_numbers(seed: i32) -> impl Iterator<Item = u32> {
    let seed = if seed == 0 { 1 } else { seed };
    let mut state: Vec<i32> = vec![seed];
    for i in 1..31 {
        // 16807 x mod 2^31 - 1, with a sign that a negative seed may bring in.
        let next = 16807 * i64::from(state[i - 1]) % 0x7fff_ffff;
        state.push(next.rem_euclid(0x7fff_ffff) as i32);
    }
    let mut at = 3;
    let step = move || {
        let sum = state[at % 31].wrapping_add(state[(at + 28) % 31]);
        state[at % 31] = sum;
        at += 1;
        (sum as u32) >> 1
    };
    std::iter::repeat_with(step).skip(310)
}

impl Ring {
    /// Points for servers with these identifiers.
    pub(crate) fn new(points_each: usize, seed: i32, servers: &[u16]) -> Self {
        let last = servers.iter().copied().max().unwrap_or(0);
        let mut random = random_numbers(seed);
        let mut points = Vec::with_capacity(points_each * servers.len());
        // Every identifier takes its points from the sequence, used or not, so that a server's
        // do not depend on which others there are.
        for identifier in 0..=last {
            let server = servers.iter().position(|&id| id == identifier);
            for point in random.by_ref().take(points_each) {
                points.extend(server.map(|server| (point, server)));
            }
        }
        points.sort_by_key(|&(point, _)| point);
        Self { points }
    }

    /// Where a source address lies on the circle.
    fn hash(src: u32) -> u32 {
        let swapped = src.swap_bytes();
        let spread = (src >> 24).wrapping_mul(src >> 24) << 24;
        swapped.wrapping_add(spread) % 0x7fff_ffff
    }

    fn hash_model(src: Expr) -> Expr {
        let byte = |shift: u8| (src.clone() >> shift) & 0xffu8;
        let swapped = (byte(0) << 24u8) | (byte(8) << 16u8) | (byte(16) << 8u8) | byte(24);
        let spread = (byte(24) * byte(24)) << 24u8;
        ((swapped + spread) & u32::MAX) % 0x7fff_ffffu32
    }

    /// The server of hashes beyond the last point: in Click, whose points stand in a balanced
    /// tree, that of the root.
    fn beyond(&self) -> usize {
        let n = self.points.len();
        let Some(height) = n.checked_ilog2() else { return 0 };
        let full = (1usize << height) - 1;
        let left = full / 2 + (n - full).min((1 << height) / 2);
        self.points[left.min(n - 1)].1
    }

    fn server(&self, src: u32) -> usize {
        let at = self.points.partition_point(|&(point, _)| point < Self::hash(src));
        self.points.get(at).map_or_else(|| self.beyond(), |&(_, server)| server)
    }

    /// The hashes of each server.
    fn shares(&self, servers: usize) -> Vec<IntervalSet> {
        let mut shares = vec![Vec::new(); servers];
        let mut from = 0u128;
        for &(point, server) in &self.points {
            shares[server].push((from, u128::from(point)));
            from = u128::from(point) + 1;
        }
        shares[self.beyond()].push((from, u128::from(u32::MAX)));
        shares.into_iter().map(IntervalSet::from_intervals).collect()
    }
}

impl Mapper {
    /// The key of answers to a new flow, and the outputs; see [`PatternRef::choose`].
    pub(crate) fn choose(
        &self,
        new: &New<'_>,
        table: &mut FlowTable,
        now: u64,
        mut random: impl FnMut(u64, u64) -> u64,
    ) -> Result<(Hashed, Ports), Reason> {
        if let Choice::Pool(pool) = &self.choice {
            return pool.choose(new, table, now, &self.own.next[0], random);
        }
        let directed;
        let new = match &self.choice {
            Choice::Backends(backends) => {
                let backend = backends.choose(new.key, table).ok_or(NO_BACKEND)?;
                directed = backend.direct(*new.key);
                &New { key: &directed, ..*new }
            }
            _ => new,
        };
        let mut attempt = |mapped: &Mapped| {
            let reply = mapped.pattern.choose(new, table, now, &mut random)?;
            Some((reply, mapped.ports))
        };
        let chosen = match &self.choice {
            Choice::Turn(turn) => self.mapped.iter().find_map(|_| {
                let mapped = &self.mapped[turn.get() % self.mapped.len()];
                turn.set((turn.get() + 1) % self.mapped.len());
                attempt(mapped)
            }),
            Choice::Source(ring) => attempt(&self.mapped[ring.server(new.key.src())]),
            Choice::Backends(_) | Choice::Pool(_) | Choice::Only => attempt(&self.mapped[0]),
        };
        chosen.ok_or(EXHAUSTED)
    }

    /// The output of packets for which no backend is active; without it, they are dropped.
    pub(crate) fn rejects_to(&self) -> Option<u16> {
        match &self.choice {
            Choice::Backends(backends) => backends.rejects_to,
            _ => None,
        }
    }

    /// The pool that it has instead of patterns.
    pub(crate) fn pool(&self) -> Option<&Pool> {
        match &self.choice {
            Choice::Pool(pool) => Some(pool),
            _ => None,
        }
    }

    /// The same in the model; `fail` ends the packet's path where no mapping is free, `none` where there is no backend.
    pub(crate) fn model(&self, b: &mut Builder, fail: Vec<Op>, none: Vec<Op>) -> Vec<Op> {
        let rule = |i: usize, when: Cond| {
            let text = self.mapped[i].pattern.pattern().unparse().into();
            Rule { when: when.into(), arm: i as u32, text, span: Some(self.mapped[i].span) }
        };
        let ports = |mapped: &Mapped| {
            [
                Op::Let(FORWARD, mapped.ports.forward.into()),
                Op::Let(REPLY, mapped.ports.reply.into()),
            ]
        };
        match &self.choice {
            Choice::Backends(backends) => {
                let mapped = &self.mapped[0];
                let mut block = backends.model(b, &self.name, none);
                let [.., dst_port] = b.key();
                b.direct(Some(Backends::destination(dst_port)));
                block.extend(mapped.pattern.model(b, fail, None));
                b.direct(None);
                block.extend(ports(mapped));
                block
            }
            Choice::Pool(_) => {
                let mut block = vec![Op::Opaque("maps endpoints of a pool")];
                block.extend(self.mapped[0].pattern.model(b, fail, None));
                block.extend(ports(&self.mapped[0]));
                block
            }
            Choice::Only => {
                let mut block = self.mapped[0].pattern.model(b, fail, None);
                block.extend(ports(&self.mapped[0]));
                block
            }
            Choice::Turn(_) => {
                let kind = StateKind::Cells { width: 64, initial: vec![0] };
                let turn = b.declare(&self.name, TURN_STATE, kind);
                let count = self.mapped.len();
                let arms = self.mapped.iter().map(|mapped| {
                    let taken = vec![Op::Let(FOUND, 0u8.into())];
                    let mut arm = vec![Op::Let(FOUND, 1u8.into())];
                    arm.extend(mapped.pattern.model(b, taken, Some(FOUND)));
                    arm.extend(ports(mapped));
                    arm.push(Op::when(Expr::from(FOUND).ne(0u8), vec![Op::Break]));
                    arm
                });
                let arms = arms.collect();
                let rules = (0..count).map(|i| rule(i, Expr::from(TURN).eq(i)));
                vec![
                    Op::Let(FOUND, 0u8.into()),
                    Op::Repeat {
                        limit: count as u32,
                        body: vec![
                            Op::Read(TURN, turn, 0u8.into()),
                            Op::Write(turn, 0u8.into(), (Expr::from(TURN) + 1u8) % count),
                            Op::Match { rules: rules.collect(), arms, otherwise: Vec::new() },
                        ],
                    },
                    Op::when(Expr::from(FOUND).eq(0u8), fail),
                ]
            }
            Choice::Source(ring) => {
                let [_, src, ..] = b.key();
                let shares = ring.shares(self.mapped.len()).into_iter().enumerate();
                let rules = shares.map(|(i, share)| rule(i, Expr::from(HASH).is_in(share)));
                let rules = rules.collect();
                let arms = self.mapped.iter().map(|mapped| {
                    let mut arm = mapped.pattern.model(b, fail.clone(), None);
                    arm.extend(ports(mapped));
                    arm
                });
                let arms = arms.collect();
                vec![
                    Op::Let(HASH, Ring::hash_model(src)),
                    Op::Match { rules, arms, otherwise: fail },
                ]
            }
        }
    }

    pub(crate) fn export(&self, to: &mut ElementState) {
        self.own.export(to);
        if let Choice::Turn(turn) = &self.choice {
            to.set(&self.name, TURN_STATE, StateValue::Cells(vec![turn.get() as u128]));
        }
        if let Choice::Backends(backends) = &self.choice {
            backends.export(&self.name, to);
        }
    }

    pub(crate) fn import(&self, from: &ElementState) {
        self.own.import(from);
        if let (Choice::Turn(turn), [value]) =
            (&self.choice, from.declared.cells(&self.name, TURN_STATE))
        {
            turn.set(usize::try_from(*value).unwrap_or(0));
        }
        if let Choice::Backends(backends) = &self.choice {
            backends.import(&self.name, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_c_library() {
        // `srandom(1); random()…`, and `srandom(0xbadbeef)`, as glibc prints them.
        let first: Vec<u32> = random_numbers(1).take(3).collect();
        assert_eq!(first, [1_804_289_383, 846_930_886, 1_681_692_777]);
    }

    #[test]
    fn a_ring_gives_every_hash_to_one_server() {
        let ring = Ring::new(3, 0xbad_beef, &[10, 20, 30]);
        let points: Vec<u32> = ring.points.iter().map(|p| p.0).collect();
        let known = [
            168_280_911,
            415_512_310,
            749_378_577,
            929_637_219,
            1_182_803_024,
            1_603_465_845,
            1_933_259_662,
            1_972_728_306,
            2_001_720_758,
        ];
        assert_eq!(points, known);
        let shares = ring.shares(3);
        let mut random = fastrand::Rng::with_seed(1);
        for src in (0..1000).map(|_| random.u32(..)).chain([0, u32::MAX, 0x0909_01aa]) {
            let hash = u128::from(Ring::hash(src));
            let owners: Vec<usize> = (0..3).filter(|&i| shares[i].contains(hash)).collect();
            assert_eq!(owners, [ring.server(src)]);
        }
        // Beyond the last point.
        assert_eq!((Ring::hash(0x0909_01aa), ring.server(0x0909_01aa)), (2_063_665_418, 2));
    }

    #[test]
    fn removing_a_server_moves_only_its_sources() {
        let (all, fewer) = (Ring::new(20, 7, &[1, 2, 3]), Ring::new(20, 7, &[1, 3]));
        let mut moved = 0;
        for src in (0..2000u32).map(|n| n.wrapping_mul(2_654_435_761)) {
            let before = all.server(src);
            let after = [0, 2][fewer.server(src)];
            if Ring::hash(src) <= fewer.points[fewer.points.len() - 1].0 && before != 1 {
                moved += usize::from(before != after);
            }
        }
        assert_eq!(moved, 0);
    }
}
