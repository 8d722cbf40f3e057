//! Which hosts of a pool run what was placed on it, and the rates that links and cards then allow.

use std::collections::BTreeMap;

use crate::dual::UNIT;
use crate::linear::{Compare, Program};
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

    fn change(&mut self, seat: &Seat, rate: f64, sign: f64) {
        for (host, cores) in &seat.cores {
            let left = &mut self.cores[*host];
            *left = left.saturating_add_signed((sign as isize) * *cores as isize);
        }
        for (host, loads) in &seat.loads {
            let left = self.rates[*host].iter_mut().zip(loads);
            left.for_each(|(left, load)| *left += sign * load * rate);
        }
    }

    /// Whether there is room for what a chain needs at a rate, with cores that it gives back.
    pub(crate) fn holds(&self, seat: &Seat, rate: f64, back: &BTreeMap<usize, usize>) -> bool {
        let free = |host: &usize| self.cores[*host] + back.get(host).copied().unwrap_or(0);
        let carries = |(host, loads): (&usize, &[f64; 3])| {
            let room = self.rates[*host].iter();
            room.zip(loads).all(|(room, load)| load * rate <= room * (1.0 + EXACT))
        };
        seat.cores.iter().all(|(host, cores)| free(host) >= *cores)
            && seat.loads.iter().all(carries)
    }

    /// Takes what a chain needs at a rate.
    pub(crate) fn take(&mut self, seat: &Seat, rate: f64) {
        self.change(seat, rate, -1.0);
    }

    /// Gives it back.
    pub(crate) fn give(&mut self, seat: &Seat, rate: f64) {
        self.change(seat, rate, 1.0);
    }
}

/// A chain on hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seat {
    pub sites: Vec<Site>,
    /// By group and host.
    pub groups: Vec<BTreeMap<usize, usize>>,
    /// By host: cores.
    pub cores: BTreeMap<usize, usize>,
    /// By host: what each bit takes.
    pub loads: BTreeMap<usize, [f64; 3]>,
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
        cores: BTreeMap::new(),
        loads: BTreeMap::new(),
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
            let taken = seat.loads.get(&host).copied().unwrap_or_default();
            let all = left.rates[host].iter().zip(load).zip(taken);
            all.into_iter().all(|((left, load), taken)| {
                let used = chain.slo.min * (load * share + taken);
                used <= left + EXACT * (1.0 + used)
            })
        };
        let free = |host: usize| {
            left.cores[host] - seat.cores.get(&host).copied().unwrap_or(0).min(left.cores[host])
        };
        let pool = rack.pools[island.host / LANES].iter().copied();
        let pool = pool.filter(|host| !barred.contains(host));
        let pool: Vec<usize> = pool.filter(|host| bound.is_none_or(|of| of == *host)).collect();
        let cores = needs(at);
        let fitting = pool.iter().filter(|host| free(**host) >= cores && room(**host, 1.0));
        // Where the chain is already, packets of it are together.
        let rank = |host: usize| (seat.cores.contains_key(&host), prefer(host));
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
            *seat.cores.entry(*host).or_default() += here;
            let sum = seat.loads.entry(*host).or_default();
            sum.iter_mut().zip(load).for_each(|(sum, load)| *sum += share * load);
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

    /// What a placed chain takes.
    pub(crate) fn of(problem: &Problem, chain: &Chain, placed: &Placed) -> Self {
        Self::on(&Shape::of(problem, chain, placed.sites.clone()), placed)
    }

    /// The same, of a chain that has this shape there.
    pub(crate) fn on(shape: &Shape, placed: &Placed) -> Self {
        let mut seat = Self {
            sites: placed.sites.clone(),
            groups: placed.cores.clone(),
            cores: BTreeMap::new(),
            loads: BTreeMap::new(),
        };
        for island in &shape.islands {
            let mut on = BTreeMap::new();
            for group in &island.groups {
                for (host, cores) in &placed.cores[*group] {
                    *on.entry(*host).or_insert(0) += cores;
                    *seat.cores.entry(*host).or_default() += cores;
                }
            }
            let all: usize = on.values().sum();
            if all == 0 {
                on.insert(island.host, 0);
            }
            let load = [island.load.inward, island.load.outward, island.load.card];
            for (host, cores) in on {
                let share = if all == 0 { 1.0 } else { cores as f64 / all as f64 };
                let sum = seat.loads.entry(host).or_default();
                sum.iter_mut().zip(load).for_each(|(sum, load)| *sum += share * load);
            }
        }
        seat
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
    seats: &[&Seat],
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
    for (chain, seat) in seats.iter().enumerate() {
        for (host, loads) in &seat.loads {
            for (at, load) in loads.iter().enumerate().filter(|(_, load)| **load > 0.0) {
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
        if members.len() > TOGETHER {
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
            continue;
        }
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
        let found = linear.solve().best()?;
        for (chain, rate) in of_chain {
            // It may be below by what the solver does not tell apart.
            let (least, most) = (chains[chain].slo.min, limit(chain));
            rates[chain] = (found.of(rate) * UNIT).clamp(least, most);
        }
    }
    Some(rates)
}

/// What chains gain by their rates, in Gb/s times price.
pub(crate) fn gain<'c>(chains: impl IntoIterator<Item = &'c Chain>, rates: &[f64]) -> f64 {
    let of = |(chain, rate): (&Chain, &f64)| chain.slo.price * (rate - chain.slo.min) / UNIT;
    chains.into_iter().zip(rates).map(of).sum()
}
