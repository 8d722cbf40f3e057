//! Checking a plan without trusting whoever made it: every constraint is computed anew, in another manner
//! than plans are made.

use std::collections::BTreeMap;

use crate::plan::{Placed, Plan, Site};
use crate::problem::{Chain, Edge, Kind, Problem, Replication, Slo, Switch};

/// A constraint, and how much of it a plan leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Slack {
    /// Which chain alone it is about.
    pub chain: Option<usize>,
    /// What is limited, in words.
    pub what: String,
    /// How much is used.
    pub used: f64,
    /// How much there is.
    pub limit: f64,
    /// The unit of both.
    pub unit: &'static str,
}

impl Slack {
    /// The share of the limit that is left, below 0 if it is exceeded.
    pub fn left(&self) -> f64 {
        1.0 - self.used / self.limit
    }
}

/// By how much of itself a limit may be exceeded: plans are computed in floating point.
const ERROR: f64 = 1e-6;

/// Checks a plan: every constraint with its slack.
///
/// # Errors
/// What it violates, in words.
pub fn check(
    problem: &Problem,
    switch: &dyn Switch,
    plan: &Plan,
) -> Result<Vec<Slack>, Vec<String>> {
    let mut wrong = problem.faults();
    if plan.chains.len() != problem.chains.len() {
        wrong.push(format!(
            "the plan has {} chains, {} are to be placed",
            plan.chains.len(),
            problem.chains.len()
        ));
    }
    let mut slacks = Vec::new();
    let hosts = problem.hosts.len();
    let mut cores = vec![0_usize; hosts];
    let mut links = vec![[0.0_f64; 2]; hosts];
    let mut cards = vec![0.0_f64; hosts];
    let mut on_switch = Vec::new();
    for (at, (chain, placed)) in problem.chains.iter().zip(&plan.chains).enumerate() {
        let name = &chain.name;
        if let Err(why) = is_possible(problem, chain, placed) {
            wrong.push(format!("chain {name}: {why}"));
            continue;
        }
        let Slo { min, max, delay, .. } = chain.slo;
        let limit = |what: &str, used, limit, unit| Slack {
            chain: Some(at),
            what: format!("chain {name}: {what}"),
            used,
            limit,
            unit,
        };
        if min > 0.0 {
            slacks.push(limit("least rate", min, placed.rate.max(f64::MIN_POSITIVE), "bit/s"));
        }
        slacks.push(limit("greatest rate", placed.rate, max, "bit/s"));
        let paths = Paths { problem, chain, sites: &placed.sites };
        if let Some(delay) = delay {
            slacks.push(limit("delay", paths.delay(), delay, "s"));
        }
        let traffic = paths.traffic();
        for (first, (host, cycles, members)) in paths.groups(&traffic) {
            // `is_possible` made sure that there are as many numbers of cores.
            let number = paths.firsts().iter().position(|of| *of == first).unwrap_or(0);
            let given = placed.cores.get(number).copied().unwrap_or(0);
            cores[host] += given;
            let rate = problem.hosts[host].hertz * given as f64 * (1.0 - problem.headroom);
            let used = placed.rate / problem.packet_bits * cycles;
            let of = chain.functions[first].name.clone();
            let cores = if given == 1 { "core" } else { "cores" };
            let what = format!("cycles of {given} {cores} of {of}");
            slacks.push(limit(&what, used, rate, "cycles/s"));
            if given > 1 && !members.iter().all(|&member| replicates(problem, chain, member)) {
                wrong
                    .push(format!("chain {name}: {of} is on {given} cores and does not replicate"));
            }
        }
        for (function, site) in placed.sites.iter().enumerate() {
            match site {
                Site::Switch => on_switch.push((at, function)),
                Site::Card(host) => {
                    let packets = placed.rate / problem.packet_bits * traffic[function];
                    cards[*host] += packets * chain.functions[function].card_cycles;
                }
                Site::Core(_) => {}
            }
        }
        for (from, to, share) in paths.hops(&traffic) {
            if from.host() != to.host() {
                from.host().into_iter().for_each(|host| links[host][1] += share * placed.rate);
                to.host().into_iter().for_each(|host| links[host][0] += share * placed.rate);
            }
        }
    }
    for (at, host) in problem.hosts.iter().enumerate() {
        let limit = |what: &str, used, limit, unit| Slack {
            chain: None,
            what: format!("{}: {what}", host.name),
            used,
            limit,
            unit,
        };
        slacks.push(limit("cores", cores[at] as f64, host.cores as f64, "cores"));
        let room = host.link_rate * (1.0 - problem.headroom);
        slacks.push(limit("link from the switch", links[at][0], room, "bit/s"));
        slacks.push(limit("link to the switch", links[at][1], room, "bit/s"));
        if let Some(card) = &host.card {
            let room = card.hertz * (1.0 - problem.headroom);
            slacks.push(limit("card", cards[at], room, "cycles/s"));
        }
    }
    for slack in &slacks {
        if slack.used > slack.limit * (1.0 + ERROR) {
            let Slack { what, used, limit, unit, .. } = slack;
            wrong.push(format!("{what}: {used:.6e} {unit} of {limit:.6e}"));
        }
    }
    if let Err(why) = switch.fits(&on_switch) {
        wrong.push(why);
    }
    if wrong.is_empty() { Ok(slacks) } else { Err(wrong) }
}

fn replicates(problem: &Problem, chain: &Chain, function: usize) -> bool {
    let ends =
        |of: fn(&Edge) -> usize| chain.edges.iter().filter(|edge| of(edge) == function).count();
    let forks = ends(|edge| edge.from) > 1 || ends(|edge| edge.to) > 1;
    chain.functions[function].replicates && !(forks && problem.replication == Replication::Lemur)
}

/// Whether functions can run where they are, and groups have cores.
fn is_possible(problem: &Problem, chain: &Chain, placed: &Placed) -> Result<(), String> {
    if placed.sites.len() != chain.functions.len() {
        return Err(format!("{} of {} functions", placed.sites.len(), chain.functions.len()));
    }
    if !placed.rate.is_finite() {
        return Err("it has no rate".into());
    }
    for (function, site) in chain.functions.iter().zip(&placed.sites) {
        let name = &function.name;
        let (kind, host) = match site {
            Site::Switch => (Kind::Switch, None),
            Site::Card(host) => (Kind::Card, Some(host)),
            Site::Core(host) => (Kind::Core, Some(host)),
        };
        if !function.runs_on.contains(&kind) {
            return Err(format!("{name} does not run on a {kind}"));
        }
        if let Some(&host) = host {
            let there = problem.hosts.get(host).ok_or(format!("{name} is on no host"))?;
            if kind == Kind::Card && there.card.is_none() {
                return Err(format!("{name} is on the card of {}, which has none", there.name));
            }
        }
    }
    let groups = Paths { problem, chain, sites: &placed.sites }.firsts().len();
    if placed.cores.len() != groups || placed.cores.contains(&0) {
        return Err(format!("{groups} groups of functions have {:?} cores", placed.cores));
    }
    Ok(())
}

struct Paths<'a> {
    problem: &'a Problem,
    chain: &'a Chain,
    sites: &'a [Site],
}

/// A group's host, its cycles for each packet of the chain, and its functions.
type Members = (usize, f64, Vec<usize>);

impl Paths<'_> {
    /// By function: the share of packets that come there.
    fn traffic(&self) -> Vec<f64> {
        let mut traffic = vec![0.0; self.sites.len()];
        traffic[0] = 1.0;
        // Edges lead to later functions only.
        for to in 1..traffic.len() {
            let edges = self.chain.edges.iter().filter(|edge| edge.to == to);
            traffic[to] = edges.map(|edge| traffic[edge.from] * edge.share).sum();
        }
        traffic
    }

    /// All that packets go from and to, with their share; they come from the switch and end there.
    fn hops(&self, traffic: &[f64]) -> Vec<(Site, Site, f64)> {
        let mut hops = vec![(Site::Switch, self.sites[0], 1.0)];
        for edge in &self.chain.edges {
            let share = traffic[edge.from] * edge.share;
            hops.push((self.sites[edge.from], self.sites[edge.to], share));
        }
        for last in self.lasts() {
            hops.push((self.sites[last], Site::Switch, traffic[last]));
        }
        hops
    }

    fn lasts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sites.len()).filter(|at| !self.chain.edges.iter().any(|edge| edge.from == *at))
    }

    /// The longest that a packet takes.
    fn delay(&self) -> f64 {
        let hosts = &self.problem.hosts;
        let over = |a: Site, b: Site| match a.host() == b.host() {
            true => 0.0,
            false => {
                let hosts = a.host().into_iter().chain(b.host()).map(|host| &hosts[host]);
                hosts.map(|of| of.link_delay + self.problem.packet_bits / of.link_rate).sum()
            }
        };
        // By function: what is left from its arrival there on. Edges lead to later functions only.
        let mut left = vec![0.0_f64; self.sites.len()];
        for at in (0..self.sites.len()).rev() {
            let (function, site) = (&self.chain.functions[at], self.sites[at]);
            let here = match site {
                Site::Switch => 0.0,
                Site::Core(host) => function.core_cycles / hosts[host].hertz,
                Site::Card(host) => {
                    let card = hosts[host].card.as_ref();
                    function.card_cycles / card.map_or(f64::MIN_POSITIVE, |card| card.hertz)
                }
            };
            let edges = self.chain.edges.iter().filter(|edge| edge.from == at);
            let behind = edges.map(|edge| over(site, self.sites[edge.to]) + left[edge.to]);
            left[at] = here + behind.reduce(f64::max).unwrap_or_else(|| over(site, Site::Switch));
        }
        over(Site::Switch, self.sites[0]) + left[0]
    }

    /// By function on cores: the first of those that it runs to completion with.
    fn leaders(&self) -> BTreeMap<usize, usize> {
        let on_core = |at: &usize| matches!(self.sites[*at], Site::Core(_));
        let mut leader: BTreeMap<usize, usize> =
            (0..self.sites.len()).filter(on_core).map(|at| (at, at)).collect();
        // As often as it takes: chains are short.
        loop {
            let mut changed = false;
            for edge in &self.chain.edges {
                let ends = (leader.get(&edge.from).copied(), leader.get(&edge.to).copied());
                let (Some(a), Some(b)) = ends else { continue };
                if self.sites[edge.from] == self.sites[edge.to] && a != b {
                    leader.insert(edge.from, a.min(b));
                    leader.insert(edge.to, a.min(b));
                    changed = true;
                }
            }
            if !changed {
                return leader;
            }
        }
    }

    /// The first functions of groups, in order.
    fn firsts(&self) -> Vec<usize> {
        let leaders = self.leaders();
        leaders.iter().filter(|(at, leader)| at == leader).map(|(at, _)| *at).collect()
    }

    /// By first function.
    fn groups(&self, traffic: &[f64]) -> BTreeMap<usize, Members> {
        let mut groups: BTreeMap<usize, Members> = BTreeMap::new();
        for (at, leader) in self.leaders() {
            let host = self.sites[at].host().unwrap_or(0);
            let group = groups.entry(leader).or_insert((host, 0.0, Vec::new()));
            group.1 += traffic[at] * self.chain.functions[at].core_cycles;
            group.2.push(at);
        }
        groups
    }
}
