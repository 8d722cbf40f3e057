//! What a placement of one chain's functions means: which of them share a core, what a packet
//! costs there, and how often it passes each link.

use crate::plan::Site;
use crate::problem::{Chain, Edge, Problem, Replication};

/// Functions of a chain next to each other on the cores of a host: they run to completion on one core
/// (Lemur §2.3.2, "subgroup").
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The host.
    pub host: usize,
    /// The functions, in order.
    pub functions: Vec<usize>,
    /// Cycles for each packet of the chain: those of each function, by the share of packets that come there.
    pub cycles: f64,
    /// Whether more than one core can run it.
    pub replicates: bool,
}

/// What each packet of a chain puts on a host, whichever core it comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Bits on the link towards the host, for each bit of the chain.
    pub inward: f64,
    /// Bits on the link back to the switch.
    pub outward: f64,
    /// Cycles on the card.
    pub card: f64,
}

/// Functions next to each other on a host's cores and card: packets come from the switch and go back there.
#[derive(Clone, Debug, PartialEq)]
pub struct Island {
    /// The host.
    pub host: usize,
    /// The functions, in order.
    pub functions: Vec<usize>,
    /// Its groups.
    pub groups: Vec<usize>,
    /// What packets of the chain put on the host for it.
    pub load: Load,
}

/// A chain's functions at their sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// By function: where it runs.
    pub sites: Vec<Site>,
    /// Groups, by their first functions.
    pub groups: Vec<Group>,
    /// Islands, by their first functions.
    pub islands: Vec<Island>,
    /// How often a packet leaves the switch at most.
    pub bounces: usize,
    /// How long a packet takes at most: over links, and on cores that have nothing else to do.
    pub delay: f64,
}

/// How many cores each group has, and the rate that they allow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    /// By group.
    pub cores: Vec<usize>,
    /// Bits a second.
    pub rate: f64,
}

/// By function: the first of those that are joined to it by edges of a kind.
fn roots(chain: &Chain, joins: impl Fn(&Edge) -> bool) -> Vec<usize> {
    let mut first: Vec<usize> = (0..chain.functions.len()).collect();
    let root = |first: &[usize], mut at: usize| {
        while first[at] != at {
            at = first[at];
        }
        at
    };
    for edge in chain.edges.iter().filter(|edge| joins(edge)) {
        let (a, b) = (root(&first, edge.from), root(&first, edge.to));
        first[a.max(b)] = a.min(b);
    }
    (0..first.len()).map(|at| root(&first, at)).collect()
}

impl Shape {
    /// What it means that functions run at some sites.
    pub fn of(problem: &Problem, chain: &Chain, sites: Vec<Site>) -> Self {
        let shares = chain.shares();
        let groups = groups(problem, chain, &sites, &shares);
        let (islands, island_of) = islands(chain, &sites, &groups);
        let mut shape = Self { groups, islands, bounces: 0, delay: 0.0, sites };
        let sites = &shape.sites;
        let over = |host: usize| {
            let of = &problem.hosts[host];
            of.link_delay + problem.packet_bits * problem.tagged() / of.link_rate
        };
        // By function, of a packet that comes there: how long it took until then, and its bounces.
        let mut latest = vec![(0.0_f64, 0_usize); sites.len()];
        for to in 0..sites.len() {
            let entry = (to == 0).then_some((None, 1.0, (0.0, 0)));
            let before = chain.edges.iter().filter(|edge| edge.to == to);
            let before = before
                .map(|edge| (Some(edge.from), shares[edge.from] * edge.share, latest[edge.from]));
            let (mut delay, mut bounces) = (0.0_f64, 0);
            for (from, share, (so_far, so_often)) in before.chain(entry) {
                let mut took = so_far;
                let mut often = so_often;
                let site = from.map_or(Site::Switch, |from| sites[from]);
                if site.host() != sites[to].host() {
                    if let (Some(host), Some(from)) = (site.host(), from) {
                        shape.islands[island_of[from]].load.outward += share * problem.tagged();
                        took += over(host);
                    }
                    if let Some(host) = sites[to].host() {
                        shape.islands[island_of[to]].load.inward += share * problem.tagged();
                        took += over(host);
                        often += 1;
                    }
                }
                delay = delay.max(took);
                bounces = bounces.max(often);
            }
            let function = &chain.functions[to];
            match sites[to] {
                Site::Switch => {}
                Site::Core(host) => {
                    delay += function.core_cycles / problem.hosts[host].hertz + function.waits;
                }
                Site::Card(host) => {
                    shape.islands[island_of[to]].load.card += shares[to] * function.card_cycles;
                    let card = problem.hosts[host].card.as_ref();
                    delay += function.card_cycles / card.map_or(f64::MIN_POSITIVE, |c| c.hertz);
                }
            }
            latest[to] = (delay, bounces);
            if !chain.edges.iter().any(|edge| edge.from == to) {
                if let Some(host) = sites[to].host() {
                    shape.islands[island_of[to]].load.outward += shares[to] * problem.tagged();
                    delay += over(host);
                }
                shape.delay = shape.delay.max(delay);
                shape.bounces = shape.bounces.max(bounces);
            }
        }
        shape
    }

    /// Whether replicas of a group may be on several hosts: nothing else of its island is bound to one.
    pub(crate) fn spreads(&self, island: &Island) -> bool {
        let on_card = |at: &usize| matches!(self.sites[*at], Site::Card(_));
        match island.groups[..] {
            [group] => self.groups[group].replicates && !island.functions.iter().any(on_card),
            _ => false,
        }
    }

    /// The functions on the switch.
    pub fn on_switch(&self) -> impl Iterator<Item = usize> + '_ {
        let sites = self.sites.iter().enumerate();
        sites.filter(|(_, site)| **site == Site::Switch).map(|(function, _)| function)
    }

    /// What one core gives a group, in bits a second of the chain.
    pub fn core_rate(&self, problem: &Problem, group: usize) -> f64 {
        problem.core_rate(self.groups[group].host, self.groups[group].cycles)
    }

    /// The rate that some cores of each group allow, at most the chain's greatest.
    pub fn rate(&self, problem: &Problem, chain: &Chain, cores: &[usize]) -> f64 {
        let of = |(group, cores): (usize, &usize)| *cores as f64 * self.core_rate(problem, group);
        cores.iter().enumerate().map(of).fold(chain.slo.max, f64::min)
    }

    /// All allocations of cores of which none gives more than another with fewer cores, by growing rates. Groups that
    /// spread have at most `in_all` cores; `at_once` are on one host.
    pub(crate) fn allocations(
        &self,
        problem: &Problem,
        chain: &Chain,
        in_all: impl Fn(usize) -> usize,
        at_once: impl Fn(usize) -> usize,
    ) -> Vec<Allocation> {
        let rates: Vec<f64> =
            (0..self.groups.len()).map(|group| self.core_rate(problem, group)).collect();
        let mut cap = chain.slo.max;
        for (group, rate) in self.groups.iter().zip(&rates) {
            if !group.replicates {
                cap = cap.min(*rate);
            }
        }
        // What one link and card carry, of what is behind one.
        for island in self.islands.iter().filter(|island| !self.spreads(island)) {
            let Load { inward, outward, card } = island.load;
            cap = cap.min(problem.link_rate(island.host) / inward.max(outward));
            if card > 0.0 {
                cap = cap.min(problem.card_rate(island.host, card));
            }
        }
        let mut steps = vec![cap];
        for (group, rate) in self.groups.iter().zip(&rates).filter(|(group, _)| group.replicates) {
            let most = in_all(group.host).min((cap / rate).ceil().max(1.0) as usize);
            steps.extend((1..=most).map(|cores| cores as f64 * rate).filter(|rate| *rate < cap));
        }
        steps.sort_by(f64::total_cmp);
        let mut found: Vec<Allocation> = Vec::new();
        for rate in steps {
            let needed = |one: &f64| ((rate / one - CEIL_ERROR).ceil() as usize).max(1);
            let cores: Vec<usize> = rates.iter().map(needed).collect();
            let fits = self.islands.iter().all(|island| {
                let all: usize = island.groups.iter().map(|group| cores[*group]).sum();
                let room = match self.spreads(island) {
                    true => in_all(island.host),
                    false => at_once(island.host),
                };
                all <= room
            });
            if !fits {
                break;
            }
            match found.last_mut() {
                Some(last) if last.cores == cores => last.rate = rate,
                _ => found.push(Allocation { cores, rate }),
            }
        }
        found
    }
}

/// How far a quotient of rates may be above a whole number and still be that.
const CEIL_ERROR: f64 = 1e-9;

fn groups(problem: &Problem, chain: &Chain, sites: &[Site], shares: &[f64]) -> Vec<Group> {
    let forks = chain.forks();
    let on_core = |at: usize| matches!(sites[at], Site::Core(_));
    let roots = roots(chain, |edge| on_core(edge.from) && sites[edge.from] == sites[edge.to]);
    let mut groups: Vec<Group> = Vec::new();
    let mut of_root = vec![usize::MAX; sites.len()];
    for (at, site) in sites.iter().enumerate() {
        let Site::Core(host) = *site else { continue };
        if roots[at] == at {
            of_root[at] = groups.len();
            groups.push(Group { host, functions: Vec::new(), cycles: 0.0, replicates: true });
        }
        let group = &mut groups[of_root[roots[at]]];
        let function = &chain.functions[at];
        group.functions.push(at);
        group.cycles += shares[at] * function.core_cycles;
        group.replicates &=
            function.replicates && (problem.replication == Replication::Model || !forks[at]);
    }
    groups
}

/// Islands, and by function its island.
fn islands(chain: &Chain, sites: &[Site], groups: &[Group]) -> (Vec<Island>, Vec<usize>) {
    let host = |at: usize| sites[at].host();
    let roots = roots(chain, |edge| host(edge.from).is_some() && host(edge.from) == host(edge.to));
    let mut islands: Vec<Island> = Vec::new();
    let mut island_of = vec![usize::MAX; sites.len()];
    for at in 0..sites.len() {
        let Some(host) = host(at) else { continue };
        if roots[at] == at {
            island_of[at] = islands.len();
            let load = Load::default();
            islands.push(Island { host, functions: Vec::new(), groups: Vec::new(), load });
        }
        island_of[at] = island_of[roots[at]];
        islands[island_of[at]].functions.push(at);
    }
    for (number, group) in groups.iter().enumerate() {
        islands[island_of[group.functions[0]]].groups.push(number);
    }
    (islands, island_of)
}
