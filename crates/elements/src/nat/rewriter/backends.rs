//! Backends: the servers that new flows are spread over, and which of them gets the next one.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;

use ir::hash::HashFunction;
use ir::model::{Block, StateKind};
use ir::{Expr, Op, Reason, StateValue};

use super::Joined;
use super::model::{BACKEND, Builder, FOUND, HASH, TURN};
use super::users::Users;
use crate::argument::parse_ipv4;
use crate::element_state::ElementState;
use crate::flow_table::{Flow, FlowTable, Key};

/// No backend takes new flows.
pub(crate) const NO_BACKEND: Reason = Reason("no-backend");

/// Name of the declared state that says which backends there are.
pub(crate) const BACKENDS_STATE: &str = "backends";
/// Name of the declared state that has a backend for each hash or turn.
const TABLE_STATE: &str = "table";
/// Name of the declared state that has the next turn and how many turns there are.
const TURN_STATE: &str = "turn";
/// Of a number in [`BACKENDS_STATE`], that the backend is drained.
const DRAINED: u64 = 1 << 48;
/// Where the weight, less one, stands in such a number.
const WEIGHT: u32 = 49;
/// Weights are at most so large.
pub(crate) const MOST_WEIGHT: u16 = 1000;

/// How a new flow's backend is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// By a hash of the flow in Maglev's table.
    Maglev,
    /// By a hash of the source address in Maglev's table.
    SourceHash,
    /// One after the other.
    RoundRobin,
    /// The one that has the fewest flows.
    LeastConnections,
}

impl Policy {
    /// All, with their names.
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("maglev", Self::Maglev),
        ("source-hash", Self::SourceHash),
        ("round-robin", Self::RoundRobin),
        ("least-connections", Self::LeastConnections),
    ];
}

/// Address and port of a server, as `address << 16 | port`; port 0 leaves the packet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Backend(u64);

impl Backend {
    /// Reads `ADDR` or `ADDR:PORT`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, port) = match text.split_once(':') {
            Some((address, port)) => (address, port.parse::<u16>().ok().filter(|&p| p != 0)?),
            None => (text, 0),
        };
        let address = parse_ipv4(address).filter(|a| !a.is_unspecified())?;
        Some(Self(u64::from(address.to_bits()) << 16 | u64::from(port)))
    }

    pub(crate) fn address(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// 0 if it is that of packets.
    pub(crate) fn port(self) -> u16 {
        self.0 as u16
    }

    /// The key of a flow that goes there.
    #[inline]
    pub(crate) fn direct(self, mut key: Key) -> Key {
        key.set_dst(self.address());
        if self.port() != 0 {
            key.set_dst_port(self.port());
        }
        key
    }

    fn has(self, flow: &Flow) -> bool {
        let to = flow.rewritten(0);
        to.dst() == self.address() && (self.port() == 0 || to.dst_port() == self.port())
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Ipv4Addr::from_bits(self.address()))?;
        if self.port() != 0 { write!(f, ":{}", self.port()) } else { Ok(()) }
    }
}

/// A backend with its weight: it takes so many times the flows of one that has weight 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weighted {
    pub backend: Backend,
    pub weight: u16,
}

impl Weighted {
    /// Reads `ADDR`, `ADDR:PORT` or either with `*WEIGHT`, and says whether a weight is written.
    pub(crate) fn parse(text: &str) -> Option<(Self, bool)> {
        let (backend, weight) = match text.split_once('*') {
            Some((backend, weight)) => (backend, Some(weight)),
            None => (text, None),
        };
        let number = weight.map_or(Some(1), |weight| weight.parse().ok())?;
        let weight_fits = (1..=MOST_WEIGHT).contains(&number);
        let backend = Backend::parse(backend).filter(|_| weight_fits)?;
        Some((Self { backend, weight: number }, weight.is_some()))
    }

    fn number(self) -> u64 {
        self.backend.0 | (u64::from(self.weight) - 1) << WEIGHT
    }

    fn from_number(number: u64) -> Self {
        let weight = (number >> WEIGHT) as u16 + 1;
        Self { backend: Backend(number & (DRAINED - 1)), weight }
    }
}

impl std::fmt::Display for Weighted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.backend)?;
        if self.weight > 1 { write!(f, "*{}", self.weight) } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    of: Weighted,
    is_drained: bool,
}

/// The backends of a mapper, which handlers add, drain and remove.
pub(crate) struct Backends {
    policy: Policy,
    /// A hash of what the configuration names: state of another configuration is not taken over.
    configured: u64,
    members: RefCell<Vec<Member>>,
    /// Those that take new flows, in ascending order.
    active: RefCell<Vec<Weighted>>,
    /// Indices of `active` by hash or turn; all 0 without any.
    table: RefCell<Box<[u16]>>,
    turn: Cell<u64>,
    users: Users,
    /// The rewriters' output of packets that would begin a flow while none is active; without it, they are dropped.
    pub(crate) rejects_to: Option<u16>,
    /// Whether packets keep their destination port.
    keeps_ports: Cell<bool>,
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backends").field("members", &self.members).finish_non_exhaustive()
    }
}

fn hash(numbers: &[u128]) -> u64 {
    HashFunction::MixedFnv1a.hash(numbers.iter().copied())
}

/// Maglev's table (Eisenbud and others, NSDI 2016, §3.4): each backend takes the slots of a permutation of its own, as
/// many at a time as its weight is, and in turn with the others, as far as they are free. `size` is a prime.
fn maglev(active: &[Weighted], size: usize) -> Box<[u16]> {
    const FREE: u16 = u16::MAX;
    let m = size as u64;
    let mut walks: Vec<(u64, u64, u16)> = active
        .iter()
        .map(|&Weighted { backend: Backend(b), weight }| {
            (hash(&[b.into(), 0]) % m, hash(&[b.into(), 1]) % (m - 1) + 1, weight)
        })
        .collect();
    let mut table = vec![FREE; size].into_boxed_slice();
    let mut left = size;
    while left > 0 && !walks.is_empty() {
        for ((at, step, weight), index) in walks.iter_mut().zip(0..) {
            for _ in 0..usize::from(*weight).min(left) {
                while table[*at as usize] != FREE {
                    *at = (*at + *step) % m;
                }
                table[*at as usize] = index;
                left -= 1;
            }
        }
    }
    table
}

/// Turns in which each backend comes as often as its weight is, spread as evenly as can be: whoever waited for most goes
/// next. They repeat until the table is full.
fn turns(active: &[Weighted], size: usize) -> Box<[u16]> {
    let total = weight_of(active);
    let mut waited = vec![0i64; active.len()];
    let mut table = Vec::with_capacity(size);
    while table.len() < total.min(size) {
        for (waited, of) in waited.iter_mut().zip(active) {
            *waited += i64::from(of.weight);
        }
        // The first of those that waited for most.
        let next = (0..active.len()).rev().max_by_key(|&index| waited[index]).unwrap_or(0);
        waited[next] -= total as i64;
        table.push(next as u16);
    }
    (0..size).map(|slot| table[slot % table.len()]).collect()
}

fn weight_of(backends: &[Weighted]) -> usize {
    backends.iter().map(|of| usize::from(of.weight)).sum()
}

impl Backends {
    /// Backends that all take new flows, with a table of so many slots, a prime.
    pub(crate) fn new(policy: Policy, size: usize, backends: &[Weighted]) -> Self {
        let numbers: Vec<u128> = backends.iter().map(|of| of.number().into()).collect();
        let member = |&of: &Weighted| Member { of, is_drained: false };
        let all = Self {
            policy,
            configured: hash(&numbers),
            members: RefCell::new(backends.iter().map(member).collect()),
            active: RefCell::default(),
            table: RefCell::new(vec![0; size].into_boxed_slice()),
            turn: Cell::new(0),
            users: Users::default(),
            rejects_to: None,
            keeps_ports: Cell::new(false),
        };
        all.spread();
        all
    }

    /// Allows no backend with a port from now on; one that has a port.
    pub(crate) fn forbid_ports(&self) -> Option<Backend> {
        self.keeps_ports.set(true);
        self.members.borrow().iter().map(|m| m.of.backend).find(|backend| backend.port() != 0)
    }

    /// Makes the table anew.
    fn spread(&self) {
        let members = self.members.borrow();
        let mut active: Vec<Weighted> =
            members.iter().filter(|m| !m.is_drained).map(|m| m.of).collect();
        active.sort_unstable();
        let size = self.size();
        *self.table.borrow_mut() = match self.policy {
            _ if active.is_empty() => vec![0; size].into_boxed_slice(),
            Policy::Maglev | Policy::SourceHash => maglev(&active, size),
            Policy::RoundRobin => turns(&active, size),
            Policy::LeastConnections => vec![0; size].into_boxed_slice(),
        };
        self.turn.set(self.turn.get() % self.turns(&active).max(1));
        *self.active.borrow_mut() = active;
    }

    fn size(&self) -> usize {
        self.table.borrow().len()
    }

    /// Slots of the table that have a turn: of each backend, a multiple of its weight.
    fn turns(&self, active: &[Weighted]) -> u64 {
        let total = weight_of(active);
        self.size().checked_div(total).map_or(0, |each| each * total) as u64
    }

    /// All, and whether they are drained.
    pub(crate) fn all(&self) -> Vec<(Backend, bool)> {
        self.members.borrow().iter().map(|m| (m.of.backend, m.is_drained)).collect()
    }

    /// How large the sum of the backends' weights may be.
    pub(crate) fn most(&self) -> usize {
        self.size().min(usize::from(u16::MAX))
    }

    /// Says whose flows the backends have.
    pub(crate) fn used_by(&self, joined: &Joined) {
        if self.policy == Policy::LeastConnections {
            joined.set.borrow_mut().table.count_destinations();
        }
        self.users.add(joined);
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// What a flow is hashed by.
    fn hashed(&self, key: &Key) -> u128 {
        let src = u128::from(key.src());
        match self.policy {
            Policy::SourceHash => src,
            _ => {
                let ports = u128::from(key.src_port()) << 16 | u128::from(key.dst_port());
                u128::from(key.map & 0xff) << 96 | src << 64 | u128::from(key.dst()) << 32 | ports
            }
        }
    }

    /// The backend of a new flow.
    pub(crate) fn choose(&self, key: &Key, table: &FlowTable) -> Option<Backend> {
        let active = self.active.borrow();
        if active.is_empty() {
            return None;
        }
        let slots = self.table.borrow();
        let slot = match self.policy {
            Policy::Maglev | Policy::SourceHash => {
                (hash(&[self.hashed(key)]) % slots.len() as u64) as usize
            }
            Policy::RoundRobin => {
                let turn = self.turn.get();
                self.turn.set((turn + 1) % self.turns(&active));
                turn as usize
            }
            Policy::LeastConnections => {
                let flows = |of: &Weighted| table.flows_to(of.backend.address(), of.backend.port());
                // Flows divided by weight, without dividing.
                let load = |a: &&Weighted, b: &&Weighted| {
                    (flows(a) * u64::from(b.weight)).cmp(&(flows(b) * u64::from(a.weight)))
                };
                return active.iter().min_by(load).map(|of| of.backend);
            }
        };
        active.get(usize::from(slots[slot])).map(|of| of.backend)
    }

    /// The same in the model: binds the destination of a new flow, or fails.
    pub(crate) fn model(&self, b: &mut Builder<'_>, mapper: &str, fail: Block) -> Block {
        let [map, src, src_port, dst, dst_port] = b.key();
        let table = b.declare(mapper, TABLE_STATE, self.table_kind());
        let slot = match self.policy {
            Policy::LeastConnections => return vec![Op::Opaque("counts flows of backends")],
            Policy::RoundRobin => {
                let turn = b.declare(mapper, TURN_STATE, self.turn_kind());
                let next = Expr::from(TURN) + 1u8;
                let turns = Expr::from(FOUND);
                vec![
                    Op::Read(TURN, turn, 0u8.into()),
                    Op::Read(FOUND, turn, 1u8.into()),
                    Op::Read(BACKEND, table, TURN.into()),
                    Op::Write(turn, 0u8.into(), Expr::choose(next.clone().lt(turns), next, 0u8)),
                ]
            }
            Policy::Maglev | Policy::SourceHash => {
                let number = match self.policy {
                    Policy::SourceHash => src,
                    _ => {
                        let ports = (src_port << 16u8) | dst_port;
                        let addresses = (src << 64u8) | (dst << 32u8);
                        ((map & 0xffu8) << 96u8) | addresses | ports
                    }
                };
                let hash = Expr::Hash(HashFunction::MixedFnv1a, vec![number]);
                vec![Op::Let(HASH, hash % self.size()), Op::Read(BACKEND, table, HASH.into())]
            }
        };
        let mut block = slot;
        block.push(Op::when(Expr::from(BACKEND).eq(0u8), fail));
        block
    }

    /// The destination that [`Backends::model`] bound.
    pub(crate) fn destination(dst_port: Expr) -> [Expr; 2] {
        let port = || Expr::from(BACKEND) & 0xffffu16;
        [Expr::from(BACKEND) >> 16u8, Expr::choose(port().eq(0u8), dst_port, port())]
    }

    /// The backend of each slot, 0 for none.
    fn slots(&self) -> Vec<u128> {
        let (active, table) = (self.active.borrow(), self.table.borrow());
        let backend =
            |&index: &u16| active.get(usize::from(index)).map_or(0, |of| of.backend.0.into());
        table.iter().map(backend).collect()
    }

    fn turns_state(&self) -> Vec<u128> {
        vec![self.turn.get().into(), self.turns(&self.active.borrow()).into()]
    }

    fn list(&self) -> Vec<u128> {
        let number = |m: &Member| (m.of.number() | if m.is_drained { DRAINED } else { 0 }).into();
        let members = self.members.borrow();
        std::iter::once(self.configured.into()).chain(members.iter().map(number)).collect()
    }

    fn table_kind(&self) -> StateKind {
        StateKind::Cells { width: 48, initial: self.slots() }
    }

    fn turn_kind(&self) -> StateKind {
        StateKind::Cells { width: 64, initial: self.turns_state() }
    }

    /// The state that a mapper declares.
    pub(crate) fn declare(&self, model: &mut ir::Model) {
        model.declare(BACKENDS_STATE, StateKind::Cells { width: 64, initial: self.list() });
        model.declare(TABLE_STATE, self.table_kind());
        model.declare(TURN_STATE, self.turn_kind());
    }

    pub(crate) fn export(&self, mapper: &str, to: &mut ElementState) {
        to.set(mapper, BACKENDS_STATE, StateValue::Cells(self.list()));
        to.set(mapper, TABLE_STATE, StateValue::Cells(self.slots()));
        to.set(mapper, TURN_STATE, StateValue::Cells(self.turns_state()));
    }

    /// Takes over what handlers changed and whose turn it is, if the configuration named the same backends.
    pub(crate) fn import(&self, mapper: &str, from: &ElementState) {
        let Some((configured, numbers)) = from.declared.cells(mapper, BACKENDS_STATE).split_first()
        else {
            return;
        };
        let member = |&number: &u128| {
            let number = number as u64;
            Member { of: Weighted::from_number(number), is_drained: number & DRAINED != 0 }
        };
        let members: Vec<Member> = numbers.iter().map(member).collect();
        let weight: usize = members.iter().map(|m| usize::from(m.of.weight)).sum();
        let is_allowed = |m: &Member| m.of.backend.port() == 0 || !self.keeps_ports.get();
        let fits = weight <= self.most() && members.iter().all(is_allowed);
        if *configured != u128::from(self.configured) || !fits {
            return;
        }
        if *self.members.borrow() != members {
            *self.members.borrow_mut() = members;
            self.spread();
        }
        if let [turn, ..] = *from.declared.cells(mapper, TURN_STATE) {
            let turns = self.turns(&self.active.borrow());
            self.turn.set(u64::try_from(turn).unwrap_or(0) % turns.max(1));
        }
    }

    /// Has a backend take new flows; it may be one that is drained. One that is known keeps its weight unless
    /// another is written.
    pub(crate) fn add(&self, (of, has_weight): (Weighted, bool)) -> Result<(), String> {
        let most = self.most();
        if self.keeps_ports.get() && of.backend.port() != 0 {
            return Err(format!("{} has a port, and packets keep theirs", of.backend));
        }
        let mut members = self.members.borrow_mut();
        let known = members.iter().position(|m| m.of.backend == of.backend);
        let others = members.iter().filter(|m| m.of.backend != of.backend);
        let others: usize = others.map(|m| usize::from(m.of.weight)).sum();
        let kept = known.filter(|_| !has_weight).map(|at| members[at].of.weight);
        let member =
            Member { of: Weighted { weight: kept.unwrap_or(of.weight), ..of }, is_drained: false };
        if others + usize::from(member.of.weight) > most {
            return Err(format!("the weights of all are {most} at the most; SIZE allows no more"));
        }
        match known {
            Some(at) => members[at] = member,
            None => members.push(member),
        }
        drop(members);
        self.spread();
        Ok(())
    }

    /// Has a backend keep its flows and take no new ones.
    pub(crate) fn drain(&self, backend: Backend) -> Result<(), String> {
        let mut members = self.members.borrow_mut();
        let member = members.iter_mut().find(|m| m.of.backend == backend);
        member.ok_or_else(|| unknown(backend))?.is_drained = true;
        drop(members);
        self.spread();
        Ok(())
    }

    /// Forgets a backend and its flows: their next packets begin new ones.
    pub(crate) fn remove(&self, backend: Backend) -> Result<(), String> {
        let mut members = self.members.borrow_mut();
        let at = members.iter().position(|m| m.of.backend == backend);
        members.remove(at.ok_or_else(|| unknown(backend))?);
        drop(members);
        self.spread();
        self.users.each(|_, set| set.table.retain(|flow| !backend.has(flow)));
        Ok(())
    }

    /// A line for each backend: what it takes, and how many flows it has.
    pub(crate) fn describe(&self, now: u64) -> String {
        let members = self.members.borrow();
        let mut counts = vec![0u64; members.len()];
        self.users.each(|_, set| {
            let mut from = Some(0);
            while let Some(at) = from {
                from = set
                    .table
                    .visit(at, usize::MAX, |flow| {
                        let lives = flow.expiry() > now;
                        let counted = counts.iter_mut().zip(members.iter()).filter(|_| lives);
                        counted.filter(|(_, m)| m.of.backend.has(flow)).for_each(|(n, _)| *n += 1);
                    })
                    .0;
            }
        });
        let line = |(m, n): (&Member, u64)| {
            let takes = if m.is_drained { "drained" } else { "active" };
            format!("{} {takes} {n}\n", m.of)
        };
        members.iter().zip(counts).map(line).collect()
    }
}

fn unknown(backend: Backend) -> String {
    format!("there is no backend {backend}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backends(policy: Policy, count: u8) -> Backends {
        let all: Vec<Weighted> = (1..=count).map(|n| weighted(n, 1)).collect();
        Backends::new(policy, 16_381, &all)
    }

    fn weighted(n: u8, weight: u16) -> Weighted {
        Weighted { backend: numbered(n), weight }
    }

    fn numbered(n: u8) -> Backend {
        Backend::parse(&format!("10.0.0.{n}")).unwrap()
    }

    fn key(n: u32) -> Key {
        Key::new(6, 0x0808_0000 + n / 7, 1024 + (n % 60_000) as u16, 0xcb00_7101, 443)
    }

    fn chosen(of: &Backends, flows: u32) -> Vec<Backend> {
        let table = FlowTable::new(1);
        (0..flows).map(|n| of.choose(&key(n), &table).unwrap()).collect()
    }

    /// How far the most and the least loaded are from an even share.
    fn imbalance(of: &Backends, count: u8, flows: u32) -> f64 {
        let chosen = chosen(of, flows);
        let even = f64::from(flows) / f64::from(count);
        let share = |n| chosen.iter().filter(|&&b| b == numbered(n)).count() as f64;
        (1..=count).map(|n| (share(n) / even - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn flows_are_spread_evenly() {
        for policy in [Policy::Maglev, Policy::RoundRobin] {
            for count in [1, 2, 7, 10] {
                let worst = imbalance(&backends(policy, count), count, 100_000);
                assert!(worst < 0.05, "{policy:?} with {count}: {worst}");
            }
        }
        let worst = imbalance(&backends(Policy::SourceHash, 2), 2, 700_000);
        assert!(worst < 0.05, "by source: {worst}");
    }

    #[test]
    fn shares_follow_weights() {
        let weights = [1, 2, 3, 10, 1, 20];
        let of: Vec<Weighted> = (1..).zip(weights).map(|(n, weight)| weighted(n, weight)).collect();
        let total = f64::from(weights.iter().sum::<u16>());
        for policy in [Policy::Maglev, Policy::RoundRobin, Policy::SourceHash] {
            let all = Backends::new(policy, 16_381, &of);
            let flows = 1_000_000;
            let chosen = chosen(&all, flows);
            for of in &of {
                let found = chosen.iter().filter(|b| **b == of.backend).count() as f64;
                let share = f64::from(flows) * f64::from(of.weight) / total;
                assert!(
                    (found / share - 1.0).abs() < 0.05,
                    "{policy:?}, {of}: {found} for {share}"
                );
            }
        }
    }

    #[test]
    fn turns_are_spread_evenly() {
        let of = [weighted(1, 5), weighted(2, 1), weighted(3, 1)];
        assert_eq!(turns(&of, 9).to_vec(), [0, 0, 1, 0, 2, 0, 0, 0, 0]);
        assert_eq!(Backends::new(Policy::RoundRobin, 17, &of).turns(&of), 14);
    }

    #[test]
    fn weights_are_read_kept_and_bounded() {
        let read =
            |text: &str| Weighted::parse(text).map(|(of, written)| (of.to_string(), written));
        assert_eq!(read("10.0.0.1"), Some(("10.0.0.1".into(), false)));
        assert_eq!(read("10.0.0.1:80*1"), Some(("10.0.0.1:80".into(), true)));
        assert_eq!(read("10.0.0.1*1000"), Some(("10.0.0.1*1000".into(), true)));
        for wrong in ["10.0.0.1*0", "10.0.0.1*1001", "10.0.0.1*", "*3", "10.0.0.1*-1", "1*2*3"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let all = Backends::new(Policy::Maglev, 251, &[weighted(1, 100), weighted(2, 100)]);
        assert!(all.add((weighted(3, 52), true)).is_err());
        assert!(all.add((weighted(1, 152), true)).is_err());
        assert!(all.add((weighted(1, 151), true)).is_ok());
        all.drain(numbered(1)).unwrap();
        let mut state = ElementState::declared(ir::Store::new());
        all.export("x", &mut state);
        let other = Backends::new(Policy::Maglev, 251, &[weighted(1, 100), weighted(2, 100)]);
        other.import("x", &state);
        assert_eq!(other.list(), all.list());
        assert_eq!(other.describe(0), "10.0.0.1*151 drained 0\n10.0.0.2*100 active 0\n");
        let unlike = Backends::new(Policy::Maglev, 251, &[weighted(1, 1), weighted(2, 100)]);
        unlike.import("x", &state);
        assert_ne!(unlike.list(), all.list(), "another configuration");
    }

    #[test]
    fn a_backend_that_leaves_moves_few_flows_of_others() {
        let all = backends(Policy::Maglev, 100);
        let before = chosen(&all, 50_000);
        for gone in [1, 37, 100].map(numbered) {
            all.drain(gone).unwrap();
            let after = chosen(&all, 50_000);
            assert!(!after.contains(&gone));
            let others = before.iter().zip(&after).filter(|(b, _)| **b != gone);
            let moved = others.clone().filter(|(b, a)| a != b).count();
            assert!(moved * 50 <= others.count(), "{moved} flows moved");
            all.add((Weighted { backend: gone, weight: 7 }, false)).unwrap();
            assert_eq!(chosen(&all, 50_000), before);
        }
    }

    #[test]
    fn the_order_of_backends_does_not_matter() {
        let [one, two, three] = [(1, 1), (2, 5), (3, 2)].map(|(n, weight)| weighted(n, weight));
        let a = Backends::new(Policy::Maglev, 251, &[one, two, three]);
        let b = Backends::new(Policy::Maglev, 251, &[three, one, two]);
        assert_eq!(chosen(&a, 2000), chosen(&b, 2000));
    }

    #[test]
    fn without_active_backends_none_is_chosen() {
        for (_, policy) in Policy::ALL {
            let all = backends(policy, 2);
            all.remove(numbered(1)).unwrap();
            all.drain(numbered(2)).unwrap();
            assert_eq!(all.choose(&key(1), &FlowTable::new(1)), None);
            assert!(all.slots().iter().all(|&slot| slot == 0));
            assert!(all.remove(numbered(1)).is_err());
        }
    }
}
