//! What a placement of one chain's functions means: which of them share a core, what a packet
//! costs there, and how often it passes each link.

use crate::plan::Site;
use crate::problem::{Chain, Kind, Problem, Replication};

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
    /// How often it passes the link towards the host.
    pub inward: f64,
    /// How often it passes the link back to the switch.
    pub outward: f64,
    /// Cycles on the card.
    pub card: f64,
}

/// A chain's functions at their sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// By function: where it runs.
    pub sites: Vec<Site>,
    /// Groups, by their first functions.
    pub groups: Vec<Group>,
    /// By host.
    pub loads: Vec<Load>,
    /// How often a packet leaves the switch at most.
    pub bounces: usize,
    /// How long a packet takes at most: over links, and on cores that have nothing else to do.
    pub delay: f64,
}

/// How many cores each group has, and the rate that they allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// By group.
    pub cores: Vec<usize>,
    /// Bits a second.
    pub rate: f64,
}

impl Shape {
    /// What it means that functions run at some sites.
    pub fn of(problem: &Problem, chain: &Chain, sites: Vec<Site>) -> Self {
        let shares = chain.shares();
        let mut shape = Self {
            groups: groups(problem, chain, &sites, &shares),
            loads: vec![Load::default(); problem.hosts.len()],
            bounces: 0,
            delay: 0.0,
            sites,
        };
        let sites = &shape.sites;
        let over = |host: usize| {
            let of = &problem.hosts[host];
            of.link_delay + problem.packet_bits / of.link_rate
        };
        // By function, of a packet that comes there: how long it took until then, and its bounces.
        let mut latest = vec![(0.0_f64, 0_usize); sites.len()];
        for to in 0..sites.len() {
            let entry = (to == 0).then_some((Site::Switch, 1.0, (0.0, 0)));
            let before = chain.edges.iter().filter(|edge| edge.to == to);
            let before = before
                .map(|edge| (sites[edge.from], shares[edge.from] * edge.share, latest[edge.from]));
            let (mut delay, mut bounces) = (0.0_f64, 0);
            for (from, share, (so_far, so_often)) in before.chain(entry) {
                let mut took = so_far;
                let mut often = so_often;
                if from.host() != sites[to].host() {
                    if let Some(host) = from.host() {
                        shape.loads[host].outward += share;
                        took += over(host);
                    }
                    if let Some(host) = sites[to].host() {
                        shape.loads[host].inward += share;
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
                Site::Core(host) => delay += function.core_cycles / problem.hosts[host].hertz,
                Site::Card(host) => {
                    shape.loads[host].card += shares[to] * function.card_cycles;
                    let card = problem.hosts[host].card.as_ref();
                    delay += function.card_cycles / card.map_or(f64::MIN_POSITIVE, |c| c.hertz);
                }
            }
            latest[to] = (delay, bounces);
            if !chain.edges.iter().any(|edge| edge.from == to) {
                if let Some(host) = sites[to].host() {
                    shape.loads[host].outward += shares[to];
                    delay += over(host);
                }
                shape.delay = shape.delay.max(delay);
                shape.bounces = shape.bounces.max(bounces);
            }
        }
        shape
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

    /// All allocations of cores of which none gives more than another with fewer cores, by growing rates.
    pub fn allocations(&self, problem: &Problem, chain: &Chain) -> Vec<Allocation> {
        let rates: Vec<f64> =
            (0..self.groups.len()).map(|group| self.core_rate(problem, group)).collect();
        let alone = self.groups.iter().zip(&rates).filter(|(group, _)| !group.replicates);
        let cap = alone.map(|(_, rate)| *rate).fold(chain.slo.max, f64::min);
        let steps = self.groups.iter().zip(&rates).filter(|(group, _)| group.replicates).flat_map(
            |(group, rate)| {
                let cores = 1..=problem.hosts[group.host].cores;
                cores.map(move |cores| cores as f64 * rate)
            },
        );
        let mut steps: Vec<f64> = steps.filter(|rate| *rate < cap).chain([cap]).collect();
        steps.sort_by(f64::total_cmp);
        let mut found: Vec<Allocation> = Vec::new();
        for rate in steps {
            let needed = |one: &f64| ((rate / one - CEIL_ERROR).ceil() as usize).max(1);
            let cores: Vec<usize> = rates.iter().map(needed).collect();
            let mut left: Vec<usize> = problem.hosts.iter().map(|host| host.cores).collect();
            let fits = self.groups.iter().zip(&cores).all(|(group, cores)| {
                let there = &mut left[group.host];
                *there >= *cores && {
                    *there -= cores;
                    true
                }
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
    // By function: the first function of its group.
    let mut first: Vec<usize> = (0..sites.len()).collect();
    let root = |first: &[usize], mut at: usize| {
        while first[at] != at {
            at = first[at];
        }
        at
    };
    for edge in &chain.edges {
        if matches!(sites[edge.from], Site::Core(_)) && sites[edge.from] == sites[edge.to] {
            let (a, b) = (root(&first, edge.from), root(&first, edge.to));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut of_root = vec![usize::MAX; sites.len()];
    for (at, site) in sites.iter().enumerate() {
        let Site::Core(host) = *site else { continue };
        let root = root(&first, at);
        if root == at {
            of_root[at] = groups.len();
            groups.push(Group { host, functions: Vec::new(), cycles: 0.0, replicates: true });
        }
        let group = &mut groups[of_root[root]];
        let function = &chain.functions[at];
        group.functions.push(at);
        group.cycles += shares[at] * function.core_cycles;
        group.replicates &=
            function.replicates && (problem.replication == Replication::Model || !forks[at]);
    }
    groups
}

/// All placements on hosts that follow from which kind of device runs each function.
pub fn on_hosts(problem: &Problem, kinds: &[Kind]) -> Vec<Vec<Site>> {
    let mut all: Vec<Vec<Site>> = vec![Vec::new()];
    for kind in kinds {
        let hosts = || problem.hosts.iter().enumerate();
        let sites: Vec<Site> = match kind {
            Kind::Switch => vec![Site::Switch],
            Kind::Core => hosts().map(|(host, _)| Site::Core(host)).collect(),
            Kind::Card => {
                let cards = hosts().filter(|(_, host)| host.card.is_some());
                cards.map(|(host, _)| Site::Card(host)).collect()
            }
        };
        let with = |one: &Vec<Site>| {
            let one = one.clone();
            sites.iter().map(move |site| one.iter().chain([site]).copied().collect())
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MAX_PLACES {
            return Vec::new();
        }
    }
    all
}

/// Ways to give a chain's functions to hosts that are looked at.
const MAX_PLACES: usize = 1 << 16;
