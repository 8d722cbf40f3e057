//! A rack by pools: hosts that are alike, taken together as if they had one link, one card and all cores.
//!
//! A plan for pools bounds plans for hosts, and what is searched does not grow with the number of hosts. Which
//! host runs what is decided afterwards (`seat`).

use crate::plan::Site;
use crate::problem::{Chain, Host, Kind, Problem, Wish};
use crate::shape::Shape;

/// Hosts by pools.
pub(crate) struct Rack<'a> {
    /// What is placed, and where.
    pub whole: &'a Problem,
    /// Two hosts for each pool, and no chains: functions of a chain that are next to each other and on both of them
    /// are on different hosts.
    pub lanes: Problem,
    /// By pool: its hosts.
    pub pools: Vec<Vec<usize>>,
    /// By host.
    pub pool_of: Vec<usize>,
}

/// Lanes of a pool.
pub(crate) const LANES: usize = 2;

/// Sites of a chain's functions that are looked at.
const MAX_SITES: usize = 1 << 17;

/// Islands of more functions are not cut, nor those of more chains.
const MAX_CUT: (usize, usize) = (6, 64);

impl<'a> Rack<'a> {
    pub(crate) fn of(whole: &'a Problem) -> Self {
        let mut pools: Vec<Vec<usize>> = Vec::new();
        for (at, host) in whole.hosts.iter().enumerate() {
            let is_alike = |of: &Host| Host { name: String::new(), ..of.clone() };
            let mut all = pools.iter_mut();
            match all.find(|pool| is_alike(&whole.hosts[pool[0]]) == is_alike(host)) {
                Some(pool) => pool.push(at),
                None => pools.push(vec![at]),
            }
        }
        let lanes = pools.iter().flat_map(|pool| [pool[0]; LANES]);
        let lanes = Problem {
            chains: Vec::new(),
            hosts: lanes.map(|host| whole.hosts[host].clone()).collect(),
            packet_bits: whole.packet_bits,
            tag_bits: whole.tag_bits,
            replication: whole.replication,
            headroom: whole.headroom,
        };
        let mut pool_of = vec![0; whole.hosts.len()];
        for (pool, hosts) in pools.iter().enumerate() {
            hosts.iter().for_each(|host| pool_of[*host] = pool);
        }
        Self { whole, lanes, pools, pool_of }
    }

    /// A pool's cores.
    pub(crate) fn cores(&self, pool: usize) -> usize {
        self.pools[pool].iter().map(|host| self.whole.hosts[*host].cores).sum()
    }

    /// Where a chain's functions can run, each on one of some kinds of devices; and whether that is all.
    pub(crate) fn sites(&self, chain: &Chain, kinds: &[Vec<Kind>]) -> (Vec<Vec<Site>>, bool) {
        let mut all: Vec<Vec<Site>> = vec![Vec::new()];
        for (at, kinds) in kinds.iter().enumerate() {
            let mut next = Vec::new();
            for sites in &all {
                let before = chain.edges.iter().filter(|edge| edge.to == at);
                let beside: Vec<usize> =
                    before.filter_map(|edge| sites[edge.from].host()).collect();
                let pools = 0..self.pools.len();
                for site in kinds.iter().flat_map(|kind| self.of_kind(*kind, pools.clone())) {
                    // Functions next to each other off the switch are on one host, cuts apart.
                    if site.host().is_none_or(|on| beside.iter().all(|host| *host == on)) {
                        next.push(sites.iter().copied().chain([site]).collect());
                    }
                }
            }
            all = next;
            if all.len() > MAX_SITES {
                return (Vec::new(), false);
            }
        }
        let mut is_all = true;
        let mut cut = Vec::new();
        let is_cut = self.whole.hosts.len() > 1 && self.whole.chains.len() <= MAX_CUT.1;
        for sites in all.iter().filter(|_| is_cut) {
            is_all &= self.cuts(chain, sites, &mut cut);
            if all.len() + cut.len() > MAX_SITES {
                cut.clear();
                is_all = false;
                break;
            }
        }
        all.append(&mut cut);
        all.retain(|sites| is_wished(chain, sites));
        (all, is_all)
    }

    /// A chain's placement with all that is off the switch in the first pool that can run it.
    pub(crate) fn first(&self, chain: &Chain, kinds: &[Kind]) -> Option<Shape> {
        let sites = kinds.iter().map(|kind| {
            let all = self.of_kind(*kind, 0..self.pools.len());
            all.first().copied()
        });
        Some(Shape::of(&self.lanes, chain, sites.collect::<Option<Vec<Site>>>()?))
    }

    /// The rate of a placement with all cores.
    pub(crate) fn most(&self, chain: &Chain, shape: &Shape) -> f64 {
        let in_all = |lane: usize| self.cores(lane / LANES);
        let at_once = |lane: usize| self.lanes.hosts[lane].cores;
        let all = shape.allocations(&self.lanes, chain, in_all, at_once);
        all.last().map_or(0.0, |last| last.rate)
    }

    fn of_kind(&self, kind: Kind, pools: std::ops::Range<usize>) -> Vec<Site> {
        let has_card = |pool: &usize| self.lanes.hosts[LANES * pool].card.is_some();
        match kind {
            Kind::Switch => vec![Site::Switch],
            Kind::Card => pools.filter(has_card).map(|pool| Site::Card(LANES * pool)).collect(),
            Kind::Core => pools.map(|pool| Site::Core(LANES * pool)).collect(),
        }
    }

    /// Adds what comes of sites by putting parts of islands that do not replicate on other hosts: parts that do can
    /// have several cores then. Whether that is all.
    fn cuts(&self, chain: &Chain, sites: &[Site], found: &mut Vec<Vec<Site>>) -> bool {
        let shape = Shape::of(&self.lanes, chain, sites.to_vec());
        let mut all = vec![sites.to_vec()];
        for island in &shape.islands {
            let others: Vec<usize> = (0..self.pools.len())
                .filter(|pool| self.pools[*pool].len() > 1 || LANES * pool != island.host)
                .collect();
            if island.groups.iter().all(|group| shape.groups[*group].replicates)
                || island.functions.len() > MAX_CUT.0
                || others.is_empty()
            {
                continue;
            }
            let whole = all.clone();
            for parts in 1_usize..1 << (island.functions.len() - 1) {
                let leaves = |at: usize| at > 0 && parts >> (at - 1) & 1 == 1;
                for pool in &others {
                    // Another host of the same pool, or one of another.
                    let to = LANES * pool + usize::from(LANES * pool == island.host);
                    for sites in &whole {
                        let mut sites = sites.clone();
                        for (at, function) in island.functions.iter().enumerate() {
                            if leaves(at) {
                                sites[*function] = match sites[*function] {
                                    Site::Core(_) => Site::Core(to),
                                    site => site,
                                };
                            }
                        }
                        all.push(sites);
                    }
                }
                if all.len() > MAX_SITES {
                    return false;
                }
            }
        }
        let helps = |sites: &Vec<Site>| {
            let shape = Shape::of(&self.lanes, chain, sites.clone());
            let group_of = |at| shape.groups.iter().find(|group| group.functions.contains(&at));
            // Two groups that replicate gain nothing by being apart.
            !chain.edges.iter().any(|edge| match (group_of(edge.from), group_of(edge.to)) {
                (Some(a), Some(b)) => a.host != b.host && a.replicates && b.replicates,
                _ => false,
            })
        };
        found.extend(all.into_iter().skip(1).filter(helps));
        true
    }
}

/// Whether sites are as wishes have them that can be seen before hosts are known.
fn is_wished(chain: &Chain, sites: &[Site]) -> bool {
    chain.wishes.iter().all(|wish| match *wish {
        Wish::Together(a, b) => sites[a] == sites[b],
        Wish::Apart(a, b) => sites[a].kind() != sites[b].kind() || !is_joined(chain, sites, a, b),
        Wish::Only(..) | Wish::Never(..) => true,
    })
}

/// Whether two functions are on the same device wherever that is.
fn is_joined(chain: &Chain, sites: &[Site], a: usize, b: usize) -> bool {
    if sites[a] == Site::Switch {
        return true;
    }
    let mut seen = vec![a];
    let mut next = 0;
    while let Some(at) = seen.get(next).copied() {
        next += 1;
        for edge in &chain.edges {
            for (from, to) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if from == at && sites[to].host() == sites[a].host() && !seen.contains(&to) {
                    seen.push(to);
                }
            }
        }
    }
    seen.contains(&b)
}
