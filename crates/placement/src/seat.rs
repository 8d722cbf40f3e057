//! Which hosts of a pool run what was placed on it, and the rates that links and cards then allow.

use std::collections::BTreeMap;

use crate::dual::UNIT;
use crate::linear::{Compare, Program, Solved};
use crate::options::{Choice, EXACT};
use crate::plan::{Placed, Site};
use crate::problem::{Chain, Problem, Wish};
use crate::rack::{LANES, Rack};
use crate::shape::Shape;

/// By host: its cores, and what of them is left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub cores: Vec<usize>,
    /// Bits a second of the link towards it, of the link back, and of cycles of its card.
    pub rates: Vec<[f64; 3]>,
}

impl Left {
    /// All of it.
    pub(crate) fn all(problem: &Problem) -> Self {
        let hosts = 0..problem.hosts.len();
        let rates = hosts.map(|host| {
            let link = problem.link_rate(host);
            [link, link, problem.card_rate(host, 1.0)]
        });
        Self {
            cores: problem.hosts.iter().map(|host| host.cores).collect(),
            rates: rates.collect(),
        }
    }

    /// By pool, in Gb/s.
    pub(crate) fn by_pool(&self, rack: &Rack<'_>) -> Vec<[f64; 4]> {
        let of = |pool: &Vec<usize>| {
            let mut sum = [0.0; 4];
            for &host in pool {
                sum[0] += self.cores[host] as f64;
                let rates = sum[1..].iter_mut().zip(self.rates[host]);
                rates.for_each(|(sum, rate)| *sum += rate.max(0.0) / UNIT);
            }
            sum
        };
        rack.pools.iter().map(of).collect()
    }

    /// What is left of one host, and nothing of others.
    pub(crate) fn clone_of(&self, host: usize) -> Self {
        let mut cores = vec![0; self.cores.len()];
        cores[host] = self.cores[host];
        Self { cores, rates: self.rates.clone() }
    }

    fn change(&mut self, needs: &Needs, rate: f64, sign: f64) {
        for (host, need) in &needs.0 {
            let left = &mut self.cores[*host];
            *left = left.saturating_add_signed((sign as isize) * need.cores as isize);
            let left = self.rates[*host].iter_mut().zip(need.loads);
            left.for_each(|(left, load)| *left += sign * load * rate);
        }
    }

    /// Whether there is room for what a chain needs at a rate, with cores that it gives back.
    pub(crate) fn holds(&self, needs: &Needs, rate: f64, back: Option<&Needs>) -> bool {
        needs.0.iter().all(|&(host, need)| {
            let back = back.map_or(0, |back| back.on(host).cores);
            let mut room = self.rates[host].iter().zip(need.loads);
            need.cores <= self.cores[host] + back
                && room.all(|(room, load)| load * rate <= room * (1.0 + EXACT))
        })
    }

    /// Takes what a chain needs at a rate.
    pub(crate) fn take(&mut self, needs: &Needs, rate: f64) {
        self.change(needs, rate, -1.0);
    }

    /// Gives it back.
    pub(crate) fn give(&mut self, needs: &Needs, rate: f64) {
        self.change(needs, rate, 1.0);
    }
}

/// What a chain needs of a host: cores, and what each bit takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Need {
    pub cores: usize,
    pub loads: [f64; 3],
}

/// The same by host, in their order: chains are on few.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Needs(pub Vec<(usize, Need)>);

impl Needs {
    /// Of a placed chain.
    pub(crate) fn of(problem: &Problem, chain: &Chain, placed: &Placed) -> Self {
        Self::in_shape(&Shape::of(problem, chain, placed.sites.clone()), placed)
    }

    /// The same, of a chain that has this shape there.
    pub(crate) fn in_shape(shape: &Shape, placed: &Placed) -> Self {
        let mut needs = Self::default();
        for island in &shape.islands {
            let groups = || island.groups.iter().flat_map(|group| &placed.cores[*group]);
            let all: usize = groups().map(|(_, cores)| cores).sum();
            let load = [island.load.inward, island.load.outward, island.load.card];
            if all == 0 {
                needs.add(island.host, 0, load);
            }
            for (host, cores) in groups() {
                let share = *cores as f64 / all as f64;
                needs.add(*host, *cores, load.map(|load| share * load));
            }
        }
        needs
    }

    /// What is needed of one host.
    pub(crate) fn on(&self, host: usize) -> Need {
        let found = self.0.binary_search_by_key(&host, |(host, _)| *host);
        found.map_or_else(|_| Need::default(), |at| self.0[at].1)
    }

    /// Whether a host is one of them.
    fn are_on(&self, host: usize) -> bool {
        self.0.binary_search_by_key(&host, |(host, _)| *host).is_ok()
    }

    fn add(&mut self, host: usize, cores: usize, loads: [f64; 3]) {
        let at = match self.0.binary_search_by_key(&host, |(host, _)| *host) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (host, Need::default()));
                at
            }
        };
        let need = &mut self.0[at].1;
        need.cores += cores;
        need.loads.iter_mut().zip(loads).for_each(|(sum, load)| *sum += load);
    }
}

/// A chain on hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seat {
    pub sites: Vec<Site>,
    /// By group and host.
    pub groups: Vec<BTreeMap<usize, usize>>,
    pub needs: Needs,
}

/// Which hosts a chain had rather: those with a greater number.
pub(crate) type Prefer<'a> = &'a dyn Fn(usize) -> f64;

/// Finds hosts for a chain's islands, each as a whole if that is possible.
pub(crate) fn seat(
    rack: &Rack<'_>,
    chain: &Chain,
    (shape, choice): (&Shape, &Choice),
    left: &Left,
    prefer: Prefer<'_>,
) -> Option<Seat> {
    let mut seat = Seat {
        sites: shape.sites.clone(),
        groups: vec![BTreeMap::new(); shape.groups.len()],
        needs: Needs::default(),
    };
    let needs = |island: usize| -> usize {
        shape.islands[island].groups.iter().map(|group| choice.cores[*group]).sum()
    };
    let mut order: Vec<usize> = (0..shape.islands.len()).collect();
    order.sort_by_key(|island| std::cmp::Reverse(needs(*island)));
    let mut hosts_of: Vec<Vec<usize>> = vec![Vec::new(); shape.islands.len()];
    for at in order {
        let island = &shape.islands[at];
        let (barred, bound) = bounds(chain, shape, at, &hosts_of);
        let load = [island.load.inward, island.load.outward, island.load.card];
        let room = |host: usize, share: f64| {
            let taken = seat.needs.on(host).loads;
            let all = left.rates[host].iter().zip(load).zip(taken);
            all.into_iter().all(|((left, load), taken)| {
                let used = chain.slo.min * (load * share + taken);
                used <= left + EXACT * (1.0 + used)
            })
        };
        let free = |host: usize| left.cores[host].saturating_sub(seat.needs.on(host).cores);
        let pool = rack.pools[island.host / LANES].iter().copied();
        let pool = pool.filter(|host| !barred.contains(host));
        let pool: Vec<usize> = pool.filter(|host| bound.is_none_or(|of| of == *host)).collect();
        let cores = needs(at);
        let fitting = pool.iter().filter(|host| free(**host) >= cores && room(**host, 1.0));
        // Where the chain is already, packets of it are together.
        let rank = |host: usize| (seat.needs.are_on(host), prefer(host));
        let first = fitting.copied().reduce(|best, host| {
            let (a, b) = (rank(best), rank(host));
            match a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)) {
                std::cmp::Ordering::Less => host,
                _ => best,
            }
        });
        let mut on: BTreeMap<usize, usize> = BTreeMap::new();
        match first {
            Some(host) => drop(on.insert(host, cores)),
            None if shape.spreads(island) => {
                let mut by_room = pool;
                by_room.sort_by_key(|host| (std::cmp::Reverse(free(*host)), *host));
                let mut missing = cores;
                for host in by_room {
                    let mut takes = free(host).min(missing);
                    while takes > 0 && !room(host, takes as f64 / cores as f64) {
                        takes -= 1;
                    }
                    if takes > 0 {
                        on.insert(host, takes);
                        missing -= takes;
                    }
                }
                if missing > 0 {
                    return None;
                }
            }
            None => return None,
        }
        let first = *on.keys().next()?;
        for function in &island.functions {
            let site = &mut seat.sites[*function];
            *site = match site {
                Site::Card(_) => Site::Card(first),
                _ => Site::Core(first),
            };
        }
        for group in &island.groups {
            seat.groups[*group] = match island.groups[..] {
                [_] => on.clone(),
                _ => BTreeMap::from([(first, choice.cores[*group])]),
            };
        }
        for (host, here) in &on {
            let share = if cores == 0 { 1.0 } else { *here as f64 / cores as f64 };
            seat.needs.add(*host, *here, load.map(|load| share * load));
        }
        hosts_of[at] = on.into_keys().collect();
    }
    Some(seat)
}

/// Hosts that an island must not be on, as another that it is apart from is there; and the one that it must be on.
fn bounds(
    chain: &Chain,
    shape: &Shape,
    at: usize,
    hosts_of: &[Vec<usize>],
) -> (Vec<usize>, Option<usize>) {
    let island_of = |function: usize| {
        shape.islands.iter().position(|island| island.functions.contains(&function))
    };
    let other = |a: usize, b: usize| {
        let (a, b) = (island_of(a)?, island_of(b)?);
        match (a == at, b == at) {
            (true, false) => Some(b),
            (false, true) => Some(a),
            _ => None,
        }
    };
    let mut barred = Vec::new();
    for edge in &chain.edges {
        barred.extend(other(edge.from, edge.to).into_iter().flat_map(|of| &hosts_of[of]));
    }
    let mut bound = None;
    for wish in &chain.wishes {
        match *wish {
            Wish::Apart(a, b) if shape.sites[a].kind() == shape.sites[b].kind() => {
                barred.extend(other(a, b).into_iter().flat_map(|of| &hosts_of[of]));
            }
            Wish::Together(a, b) => {
                bound = bound.or(other(a, b).and_then(|of| hosts_of[of].first().copied()));
            }
            _ => {}
        }
    }
    (barred, bound)
}

impl Seat {
    /// The chain in a plan.
    pub(crate) fn placed(&self, rate: f64) -> Placed {
        Placed { sites: self.sites.clone(), cores: self.groups.clone(), rate }
    }
}

/// A link or card that is full, and what each bit of which chain takes of it.
type Full<'a> = (&'a (usize, usize), &'a Vec<(usize, f64)>);

/// Chains that meet on full links are solved for together up to this number.
const TOGETHER: usize = 100;

/// The rates of chains by which most is gained, each at least its least and at most a limit; `None` if links and cards
/// do not carry even the least. `left` is what they share.
pub(crate) fn rates(
    chains: &[&Chain],
    needs: &[&Needs],
    limits: &[f64],
    left: &Left,
) -> Option<Vec<f64>> {
    let is_low = |(chain, limit): (&&Chain, &f64)| *limit < chain.slo.min * (1.0 - EXACT);
    if chains.iter().zip(limits).any(is_low) {
        return None;
    }
    let mut rates: Vec<f64> =
        chains.iter().zip(limits).map(|(chain, limit)| limit.max(chain.slo.min)).collect();
    let mut used: BTreeMap<(usize, usize), Vec<(usize, f64)>> = BTreeMap::new();
    for (chain, needs) in needs.iter().enumerate() {
        for (host, need) in &needs.0 {
            for (at, load) in need.loads.iter().enumerate().filter(|(_, load)| **load > 0.0) {
                used.entry((*host, at)).or_default().push((chain, *load));
            }
        }
    }
    // Only what is full at the limits matters.
    let sum = |terms: &[(usize, f64)], rates: &[f64]| {
        terms.iter().map(|(chain, load)| rates[*chain] * load).sum::<f64>()
    };
    let room = |(host, at): (usize, usize)| left.rates[host][at];
    used.retain(|key, terms| sum(terms, &rates) > room(*key) * (1.0 + EXACT));
    let mut part: Vec<usize> = (0..chains.len()).collect();
    fn root(part: &[usize], mut at: usize) -> usize {
        while part[at] != at {
            at = part[at];
        }
        at
    }
    for terms in used.values() {
        for pair in terms.windows(2) {
            let (a, b) = (root(&part, pair[0].0), root(&part, pair[1].0));
            part[a.max(b)] = a.min(b);
        }
    }
    let mut parts: BTreeMap<usize, Vec<Full<'_>>> = BTreeMap::new();
    for (key, terms) in &used {
        parts.entry(root(&part, terms[0].0)).or_default().push((key, terms));
    }
    for of_part in parts.values() {
        let mut members: Vec<usize> =
            of_part.iter().flat_map(|(_, terms)| terms.iter().map(|(chain, _)| *chain)).collect();
        members.sort_unstable();
        members.dedup();
        let limit = |chain: usize| limits[chain].max(chains[chain].slo.min);
        if members.len() <= TOGETHER {
            let mut linear = Program::most();
            let mut of_chain = BTreeMap::new();
            for &chain in &members {
                let bounds = (chains[chain].slo.min / UNIT, limit(chain) / UNIT);
                of_chain.insert(chain, linear.column(chains[chain].slo.price, bounds));
            }
            for (key, terms) in of_part {
                let terms: Vec<_> =
                    terms.iter().map(|(chain, load)| (of_chain[chain], *load)).collect();
                linear.row(terms, Compare::Most, room(**key) / UNIT);
            }
            match linear.solve() {
                Solved::Best(found) => {
                    for (chain, rate) in of_chain {
                        // It may be below by what the solver does not tell apart.
                        let (least, most) = (chains[chain].slo.min, limit(chain));
                        rates[chain] = (found.of(rate) * UNIT).clamp(least, most);
                    }
                    continue;
                }
                Solved::Infeasible => return None,
                // As if they were too many.
                Solved::Unknown => {}
            }
        }
        // One after the other, those first that gain most by what they take.
        members.iter().for_each(|chain| rates[*chain] = chains[*chain].slo.min);
        if of_part.iter().any(|(key, terms)| sum(terms, &rates) > room(**key) * (1.0 + EXACT)) {
            return None;
        }
        let worth = |chain: usize| {
            let of = |(_, terms): &Full<'_>| {
                terms.iter().filter(|(of, _)| *of == chain).map(|(_, load)| *load).sum::<f64>()
            };
            chains[chain].slo.price / of_part.iter().map(of).sum::<f64>()
        };
        members.sort_by(|a, b| worth(*b).total_cmp(&worth(*a)).then(a.cmp(b)));
        for chain in members {
            let mut more = limit(chain) - rates[chain];
            for (key, terms) in of_part {
                for (_, load) in terms.iter().filter(|(of, _)| *of == chain) {
                    more = more.min((room(**key) - sum(terms, &rates)) / load);
                }
            }
            rates[chain] += more.max(0.0);
        }
    }
    Some(rates)
}

/// What chains gain by their rates, in Gb/s times price.
pub(crate) fn gain<'c>(chains: impl IntoIterator<Item = &'c Chain>, rates: &[f64]) -> f64 {
    let of = |(chain, rate): (&Chain, &f64)| chain.slo.price * (rate - chain.slo.min) / UNIT;
    chains.into_iter().zip(rates).map(of).sum()
}
