//! What is placed, and where there is room for it.
//!
//! Rates are in bits a second, delays in seconds, costs in cycles a packet.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::Slack;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The switch in front of the servers.
    Switch,
    /// A SmartNIC: a card between the switch and a host's cores.
    Card,
    /// The cores of a host.
    Core,
}

impl Kind {
    /// All, with their names.
    pub const ALL: [(&str, Self); 3] =
        [("switch", Self::Switch), ("card", Self::Card), ("core", Self::Core)];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, kind)| kind == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// A network function of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name, that no other function of the chain has.
    pub name: String,
    /// The kinds of devices that can run it.
    pub runs_on: Vec<Kind>,
    /// What a packet costs on a core.
    pub core_cycles: f64,
    /// What a packet costs on a card.
    pub card_cycles: f64,
    /// Whether several cores can run it at once, as no state is shared by all packets.
    pub replicates: bool,
    /// Entries of the switch's tables that it takes there.
    pub entries: u64,
    /// Flows whose state it keeps, and takes along when it moves.
    pub flows: u64,
    /// Seconds that a packet waits on a core besides: to reach a process of its own and to come back.
    pub waits: f64,
}

impl Function {
    /// Whether a kind of device can run it.
    pub fn can(&self, kind: Kind) -> bool {
        self.runs_on.contains(&kind)
    }
}

/// A connection of two functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The function that packets come from.
    pub from: usize,
    /// The function that they go to.
    pub to: usize,
    /// The share of the packets leaving the first that go there.
    pub share: f64,
}

/// What a chain has to get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// The rate that it gets at least.
    pub min: f64,
    /// The rate beyond which nothing is gained.
    pub max: f64,
    /// How long a packet may take at most.
    pub delay: Option<f64>,
    /// What a bit a second above the least rate is worth.
    pub price: f64,
}

/// What is wished of where a chain's functions run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// On one of these kinds of devices only.
    Only(usize, Vec<Kind>),
    /// On none of these kinds of devices.
    Never(usize, Vec<Kind>),
    /// On the same device: the switch, a card, or a server's cores.
    Together(usize, usize),
    /// On different devices.
    Apart(usize, usize),
}

/// A chain: functions without a circle, of which packets enter the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Its functions, each behind those that lead to it.
    pub functions: Vec<Function>,
    /// How they are connected.
    pub edges: Vec<Edge>,
    /// What it has to get.
    pub slo: Slo,
    /// What is wished of where its functions run.
    pub wishes: Vec<Wish>,
}

impl Chain {
    /// Functions that shall be together with one, directly or by others; that one, too.
    pub(crate) fn companions(&self, function: usize) -> Vec<usize> {
        let mut all = vec![function];
        let mut next = 0;
        while let Some(at) = all.get(next).copied() {
            next += 1;
            for wish in &self.wishes {
                if let Wish::Together(a, b) = *wish
                    && (a == at || b == at)
                {
                    let other = if a == at { b } else { a };
                    if !all.contains(&other) {
                        all.push(other);
                    }
                }
            }
        }
        all
    }

    /// The kinds of devices that can run a function, and that wishes allow: those about functions that shall be together with
    /// it, too.
    pub fn kinds(&self, function: usize) -> Vec<Kind> {
        let mut kinds = self.own_kinds(function);
        for other in self.companions(function) {
            let own = self.own_kinds(other);
            kinds.retain(|kind| own.contains(kind));
        }
        kinds
    }

    /// The same, by wishes about the function itself.
    fn own_kinds(&self, function: usize) -> Vec<Kind> {
        let allows = |wish: &Wish, kind| match wish {
            Wish::Only(of, kinds) => *of != function || kinds.contains(&kind),
            Wish::Never(of, kinds) => *of != function || !kinds.contains(&kind),
            Wish::Together(..) | Wish::Apart(..) => true,
        };
        let kinds = self.functions[function].runs_on.iter().copied();
        kinds.filter(|kind| self.wishes.iter().all(|wish| allows(wish, *kind))).collect()
    }

    /// Whether a kind of device can run a function, and wishes allow it.
    pub fn can(&self, function: usize, kind: Kind) -> bool {
        self.kinds(function).contains(&kind)
    }

    /// By function: the share of the chain's packets that come there.
    pub fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.functions.len()];
        if let Some(first) = shares.first_mut() {
            *first = 1.0;
        }
        for from in 0..shares.len() {
            for edge in self.edges.iter().filter(|edge| edge.from == from) {
                shares[edge.to] += shares[from] * edge.share;
            }
        }
        shares
    }

    /// By function: whether packets branch or merge there.
    pub fn forks(&self) -> Vec<bool> {
        let count = |at: usize, end: fn(&Edge) -> usize| {
            self.edges.iter().filter(|edge| end(edge) == at).count()
        };
        (0..self.functions.len())
            .map(|at| count(at, |edge| edge.from) > 1 || count(at, |edge| edge.to) > 1)
            .collect()
    }

    /// What is wrong with it, in words; nothing of a chain that can be placed.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let (count, name) = (self.functions.len(), |at: usize| &self.functions[at].name);
        if count == 0 {
            return vec!["it has no function".into()];
        }
        for edge in &self.edges {
            if edge.from >= count || edge.to >= count || edge.from >= edge.to {
                return vec!["functions are not in the order in which packets come to them".into()];
            }
            if !(edge.share > 0.0 && edge.share <= 1.0) {
                faults.push(format!(
                    "{} of the packets go from {} to {}: a share is above 0 and at most 1",
                    edge.share,
                    name(edge.from),
                    name(edge.to)
                ));
            }
        }
        for at in 0..count {
            if at > 0 && !self.edges.iter().any(|edge| edge.to == at) {
                faults.push(format!("no packet comes to {}", name(at)));
            }
            let out = || self.edges.iter().filter(|edge| edge.from == at).map(|edge| edge.share);
            if out().count() > 0 && out().sum::<f64>() > 1.0 + SHARE_ERROR {
                faults.push(format!("the shares behind {} add up to more than 1", name(at)));
            }
        }
        for wish in &self.wishes {
            let named = match wish {
                Wish::Only(of, _) | Wish::Never(of, _) => [*of, *of],
                Wish::Together(a, b) | Wish::Apart(a, b) => [*a, *b],
            };
            if named.iter().any(|of| *of >= count) {
                return vec!["a wish is about no function of it".into()];
            }
        }
        for (at, function) in self.functions.iter().enumerate() {
            let is_free = function.runs_on.is_empty() || self.wishes.is_empty();
            if !is_free && self.kinds(at).is_empty() {
                faults.push(format!("wishes leave no kind of device for {}", function.name));
            }
            if function.runs_on.is_empty() {
                faults.push(format!("nothing can run {}", function.name));
            }
            for (kind, cycles) in
                [(Kind::Core, function.core_cycles), (Kind::Card, function.card_cycles)]
            {
                if function.can(kind) && !(cycles.is_finite() && cycles >= 0.0) {
                    faults.push(format!("{} takes {cycles} cycles on a {kind}", function.name));
                }
            }
        }
        let Slo { min, max, delay, price } = self.slo;
        if !(min >= 0.0 && min.is_finite() && max.is_finite()) {
            faults.push("its rates are no numbers of bits a second".into());
        }
        if min > max {
            faults.push("its least rate is above the greatest".into());
        }
        if delay.is_some_and(|delay| delay.is_nan() || delay <= 0.0) {
            faults.push("its delay is no time above 0".into());
        }
        if !(price > 0.0 && price.is_finite()) {
            faults.push("its price is not above 0".into());
        }
        faults
    }
}

/// How far the shares of a branch may be from adding up to 1: they are written in decimals.
const SHARE_ERROR: f64 = 1e-6;

/// A card that runs functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Its cycles in a second, of all its cores.
    pub hertz: f64,
}

/// Cores that are behind the same interface: of a server, or of one of its sockets.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Cores that functions can have.
    pub cores: usize,
    /// A core's cycles in a second.
    pub hertz: f64,
    /// What the link to the switch carries in each direction.
    pub link_rate: f64,
    /// How long a packet takes over the link, without its transmission.
    pub link_delay: f64,
    /// The card, if it runs functions.
    pub card: Option<Card>,
}

/// Which groups of functions more than one core may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// Those whose functions all replicate.
    #[default]
    Model,
    /// Of these, those without branches and merges (Lemur §2.3.2).
    Lemur,
}

/// What has to be placed where, and by which rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Chains.
    pub chains: Vec<Chain>,
    /// Hosts behind the switch.
    pub hosts: Vec<Host>,
    /// A packet's length, without tags.
    pub packet_bits: f64,
    /// What the tag adds to it on links between the switch and hosts.
    pub tag_bits: f64,
    /// Which groups more than one core may run.
    pub replication: Replication,
    /// The share of a core's and a link's capacity that is left unused.
    pub headroom: f64,
}

impl Problem {
    /// What is wrong with it, in words.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for chain in &self.chains {
            let of = |fault| format!("chain {}: {fault}", chain.name);
            faults.extend(chain.faults().into_iter().map(of));
        }
        for host in &self.hosts {
            let positive = |number: f64| number > 0.0 && number.is_finite();
            let card = host.card.as_ref().is_none_or(|card| positive(card.hertz));
            if !positive(host.hertz) || !positive(host.link_rate) || !card {
                faults
                    .push(format!("host {}: a clock or the link's rate is not above 0", host.name));
            }
            if !(host.link_delay >= 0.0 && host.link_delay.is_finite()) {
                faults.push(format!("host {}: the link's delay is no time", host.name));
            }
        }
        if !(self.packet_bits > 0.0 && self.packet_bits.is_finite()) {
            faults.push("packets have no length".into());
        }
        if !(self.tag_bits >= 0.0 && self.tag_bits.is_finite()) {
            faults.push("tags have no length".into());
        }
        if !(0.0..1.0).contains(&self.headroom) {
            faults.push("the headroom is not between 0 and 1".into());
        }
        faults
    }

    /// Bits on a link for each bit of packets: with their tags.
    pub(crate) fn tagged(&self) -> f64 {
        1.0 + self.tag_bits / self.packet_bits
    }

    /// Packets of that length in a second that a core of a host can give so many cycles each.
    pub(crate) fn core_rate(&self, host: usize, cycles: f64) -> f64 {
        self.hosts[host].hertz * (1.0 - self.headroom) * self.packet_bits / cycles
    }

    /// The same of a host's card.
    pub(crate) fn card_rate(&self, host: usize, cycles: f64) -> f64 {
        let hertz = self.hosts[host].card.as_ref().map_or(0.0, |card| card.hertz);
        hertz * (1.0 - self.headroom) * self.packet_bits / cycles
    }

    /// What a host's link can carry in each direction.
    pub(crate) fn link_rate(&self, host: usize) -> f64 {
        self.hosts[host].link_rate * (1.0 - self.headroom)
    }
}

/// Whether a switch can hold some functions together.
pub trait Switch: Sync {
    /// Whether it can hold these: the chain and the function of each, in order.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String>;

    /// The same, without saying why not: what a search asks again and again.
    fn holds(&self, placed: &[(usize, usize)]) -> bool {
        self.fits(placed).is_ok()
    }

    /// The same switch with more room, or with less to hold; nothing if that is not known of it.
    fn relieved(&self, _by: Relief) -> Option<Box<dyn Switch>> {
        None
    }

    /// What these take of what it has, if it holds them: for those who look at a plan.
    fn used(&self, _placed: &[(usize, usize)]) -> Vec<Slack> {
        Vec::new()
    }
}

/// What would give a switch room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relief {
    /// So many stages more.
    Stages(usize),
    /// Tables of a chain's function with a share of their entries.
    Entries(usize, usize, f64),
}

/// A switch that holds whatever it can run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roomy;

impl Switch for Roomy {
    fn fits(&self, _: &[(usize, usize)]) -> Result<(), String> {
        Ok(())
    }
}

/// A switch whose tables are in a fixed order, such as most OpenFlow switches: functions that packets pass without
/// leaving the switch are in that order. Each function there takes one of a limited number of tags, as VLAN
/// numbers are.
#[derive(Clone, Debug, Default)]
pub struct FixedOrder {
    /// By chain and function: the place of its table, if there is one for it.
    pub tables: Vec<Vec<Option<usize>>>,
    /// By chain: how functions are connected.
    pub edges: Vec<Vec<Edge>>,
    /// Tags that there are.
    pub tags: usize,
}

impl Switch for FixedOrder {
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String> {
        if placed.len() > self.tags {
            return Err(format!("the switch needs {} tags of {}", placed.len(), self.tags));
        }
        let table = |(chain, function): (usize, usize)| self.tables[chain][function];
        let there: std::collections::BTreeSet<(usize, usize)> = placed.iter().copied().collect();
        for &(chain, function) in placed {
            let Some(after) = table((chain, function)) else {
                return Err(format!(
                    "the switch has no table for function {function} of chain {chain}"
                ));
            };
            let before = self.edges[chain].iter().filter(|edge| edge.to == function);
            for from in before.map(|edge| (chain, edge.from)).filter(|from| there.contains(from)) {
                if table(from).is_none_or(|before| before >= after) {
                    return Err(format!(
                        "function {} of chain {chain} comes before {function}, and its table does not",
                        from.1
                    ));
                }
            }
        }
        Ok(())
    }
}
