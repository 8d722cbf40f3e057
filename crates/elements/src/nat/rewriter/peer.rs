//! What rewriters know of one another: which of them share a capacity, and hence a table of
//! flows.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use super::{Kind, Timeouts, Tracking};
use crate::flow_access::{Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, GroupOf, Leasable};
use crate::flow_table::{self, Flow, FlowTable, GroupFlows};

/// How many flows a rewriter may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// So many.
    Own(u64),
    /// What another rewriter (its full name) may hold, together with that one.
    Of(String),
}

/// The flows of rewriters that share a capacity.
pub(crate) struct FlowSet {
    pub table: FlowTable,
    members: Vec<Member>,
}

/// The flows of a [`FlowSet`] that go to another.
pub(crate) struct HandedOver {
    table: flow_table::HandedOver,
    members: Vec<Member>,
}

/// One of the rewriters.
#[derive(Clone)]
struct Member {
    name: String,
    kind: Kind,
    timeouts: Timeouts,
    /// Of the table's classes, those with these timeouts.
    classes: [u16; 5],
}

impl FlowSet {
    fn new(capacity: u64) -> Self {
        Self { table: FlowTable::new(capacity), members: Vec::new() }
    }

    fn add(&mut self, peer: &Peer) -> Option<u8> {
        let number = u8::try_from(self.members.len()).ok()?;
        let (name, kind, timeouts) = (peer.name.clone(), peer.kind, peer.timeouts);
        let classes = timeouts.classes.map(|(t, g)| self.table.class(t, g));
        self.members.push(Member { name, kind, timeouts, classes });
        Some(number)
    }

    /// The classes of a rewriter's flows; see [`Timeouts`].
    #[inline]
    pub(crate) fn classes(&self, member: u8) -> [u16; 5] {
        self.members[usize::from(member)].classes
    }

    /// Gives away all flows as they stand.
    pub(crate) fn hand_over(&mut self) -> HandedOver {
        HandedOver { table: self.table.hand_over(), members: self.members.clone() }
    }

    /// Takes the flows of another set: as they are, unless rewriters have other numbers here.
    pub(crate) fn take_over(&mut self, from: HandedOver, now: u64) {
        let same = |a: &Member, b: &Member| a.name == b.name && a.kind == b.kind;
        let number_of =
            |old: &Member| self.members.iter().position(|new| same(old, new)).map(|n| n as u8);
        let numbers: Vec<Option<u8>> = from.members.iter().map(number_of).collect();
        let other_timeouts = from.members.iter().zip(&numbers).any(|(old, new)| {
            new.is_some_and(|new| self.members[usize::from(new)].timeouts != old.timeouts)
        });
        // A class is in order as long as its flows' times are rounded alike.
        let other_timeouts = other_timeouts || from.table.tick != self.table.tick();
        self.table.take_over(from.table);
        if numbers.iter().zip(0..).any(|(new, old)| *new != Some(old)) {
            self.table.renumber(|old| numbers.get(usize::from(old)).copied().flatten());
        }
        if other_timeouts {
            self.table.change_timeouts();
        }
        for member in &mut self.members {
            member.classes = member.timeouts.classes.map(|(t, g)| self.table.class(t, g));
        }
        self.expire(now);
    }

    /// Tells the time, before anything is done at that time; what takes long is done bit by bit, some at each call.
    #[inline]
    pub(crate) fn expire(&mut self, now: u64) {
        self.table.expire(now);
        if self.table.is_mixed() {
            self.regroup();
        }
    }

    fn regroup(&mut self) {
        let members = &self.members;
        self.table.regroup(|flow| class_of(members, flow));
    }

    /// Gives away the flows of a group of traffic classes.
    pub(crate) fn export_group(&mut self, group: u16) -> GroupFlows {
        self.table.export_group(group)
    }

    /// Takes in flows of the same rewriters of another worker.
    pub(crate) fn import_group(&mut self, flows: GroupFlows, now: u64) {
        let members = &self.members;
        self.table.import_group(flows, now, |flow| class_of(members, flow));
    }

    /// The flows as declared state, of a group or all: what is done bit by bit is done at once.
    pub(crate) fn export(&mut self, group: Option<u16>) -> ir::state::Flows {
        while self.table.is_mixed() {
            self.regroup();
        }
        self.table.export(group)
    }

    /// Takes over declared flows.
    pub(crate) fn import(&mut self, flows: &ir::state::Flows) {
        let members = &self.members;
        let class_of = |flow: &Flow| class_of(members, flow);
        self.table.import(flows, class_of, |flow| deltas(members, flow));
    }
}

/// The rewriter that a flow belongs to.
fn owner<'a>(members: &'a [Member], flow: &Flow) -> Option<&'a Member> {
    members.get(usize::from(flow.key(0).map >> 8))
}

fn class_of(members: &[Member], flow: &Flow) -> Option<u16> {
    let member = owner(members, flow)?;
    Some(member.classes[member.kind.tracking(flow.protocol).class(flow.state)])
}

fn deltas(members: &[Member], flow: &Flow) -> [u16; 2] {
    owner(members, flow).map_or([0, 0], |member| member.kind.deltas(flow))
}

impl FlowAccess for FlowSet {
    fn expire(&mut self, now: u64) {
        FlowSet::expire(self, now);
    }

    fn count(&self) -> usize {
        self.table.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        self.table.find(key, now)
    }

    fn regroup(&mut self, group_of: &mut GroupOf<'_>) -> usize {
        let members = &self.members;
        self.table.set_groups(|flow| {
            let [mut there, mut back] = [0, 1].map(|side| flow.key(side).tuple());
            let protocol = match owner(members, flow)?.kind {
                Kind::Ip | Kind::Tcp | Kind::Udp => flow.protocol,
                Kind::Ping => {
                    // Identifiers stand where those who ask have their port.
                    (there.dst_port, back.src_port) = (0, std::mem::take(&mut back.dst_port));
                    1
                }
                Kind::Address | Kind::Pair => return group_of(None),
            };
            group_of(Some(([there, back], protocol)))
        })
    }

    fn key_columns(&self) -> &'static [u8] {
        self.table.key_columns()
    }

    fn find_all(&self, key: &[&Column], lanes: u32, now: u64, found: &mut FoundFlows) {
        self.table.find_all(key, lanes, now, found);
    }

    fn update(
        &mut self,
        number: u32,
        common: &[u128],
        expiry: u64,
        guarantee: u64,
        now: u64,
    ) -> bool {
        FlowAccess::update(&mut self.table, number, common, expiry, guarantee, now)
    }

    fn expiry(&self, number: u32) -> u64 {
        FlowAccess::expiry(&self.table, number)
    }

    fn prefetch(&self, number: u32) {
        self.table.prefetch(number);
    }

    fn prefetch_changes(&self, number: u32) {
        self.table.prefetch_changes(number);
    }

    fn prolong(&mut self, number: u32, now: u64) -> u64 {
        self.table.prolong(number, now)
    }

    fn leasable(
        &self,
        from: u64,
        most: usize,
        now: u64,
        each: &mut dyn FnMut(Leasable),
    ) -> Option<u64> {
        self.table.leasable(from, most, now, each)
    }

    fn watch(&mut self, log: &Rc<FlowLog>, table: u16) {
        FlowAccess::watch(&mut self.table, log, table);
    }
}

/// A rewriter's place in a [`FlowSet`].
#[derive(Clone)]
pub(crate) struct Joined {
    pub set: Rc<RefCell<FlowSet>>,
    /// Full name of the rewriter that the capacity belongs to.
    pub root: String,
    /// The rewriter's number among those that share.
    pub member: u8,
}

/// What a rewriter shares with other elements.
pub(crate) struct Peer {
    pub name: String,
    pub kind: Kind,
    pub outputs: usize,
    pub timeouts: Timeouts,
    /// Whether packets get what their flow says, and not the destination annotation alone.
    pub rewrites: bool,
    pub capacity: Capacity,
    pub joined: OnceCell<Joined>,
}

/// More rewriters that refer to one another than this are taken for a circle.
const LONGEST: usize = 256;

impl Peer {
    /// Finds the flows of a rewriter, once all are configured.
    ///
    /// # Errors
    /// What is wrong with its capacity.
    pub(crate) fn join(&self, find: &dyn Fn(&str) -> Option<Rc<Peer>>) -> Result<Joined, String> {
        if let Some(joined) = self.joined.get() {
            return Ok(joined.clone());
        }
        let joined = match &self.capacity {
            Capacity::Own(capacity) => {
                let mut set = FlowSet::new(*capacity);
                set.add(self);
                let set = Rc::new(RefCell::new(set));
                Joined { set, root: self.name.clone(), member: 0 }
            }
            Capacity::Of(name) => {
                let mut root = find(name).ok_or_else(|| format!("'{name}' is not a rewriter"))?;
                for _ in 0..LONGEST {
                    let Capacity::Of(name) = &root.capacity else { break };
                    root = find(name).ok_or_else(|| format!("'{name}' is not a rewriter"))?;
                }
                if matches!(root.capacity, Capacity::Of(_)) {
                    return Err("rewriters share each other's capacity in a circle".to_string());
                }
                let Joined { set, root, .. } = root.join(find)?;
                let member = set.borrow_mut().add(self);
                let member = member.ok_or("at most 256 rewriters can share a capacity")?;
                Joined { set, root, member }
            }
        };
        Ok(self.joined.get_or_init(|| joined).clone())
    }
}

impl Kind {
    /// How connections of a protocol are followed.
    #[inline]
    pub(crate) fn tracking(self, protocol: u8) -> Tracking {
        match self {
            Kind::Ip if protocol == 6 => Tracking::Tcp,
            Kind::Tcp => Tracking::Tcp,
            Kind::Ip | Kind::Udp => Tracking::Udp,
            Kind::Address | Kind::Pair | Kind::Ping => Tracking::None,
        }
    }

    /// The lower byte of a key's map.
    #[inline]
    pub(crate) fn map(self, protocol: u8) -> u8 {
        match self {
            Kind::Ip => protocol,
            Kind::Tcp => 6,
            Kind::Ping => 1,
            Kind::Udp | Kind::Address | Kind::Pair => 0,
        }
    }
}
