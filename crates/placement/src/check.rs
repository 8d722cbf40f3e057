//! Checking a plan without trusting whoever made it: every constraint is computed anew, in another manner
//! than plans are made.

use std::collections::BTreeMap;

use crate::plan::{Placed, Plan, Site};
use crate::problem::{Chain, Edge, Kind, Problem, Replication, Slo, Switch, Wish};

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
    if !wrong.is_empty() {
        return Err(wrong);
    }
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
            slacks.push(limit("delay", paths.delay(&placed.cores), delay, "s"));
        }
        let traffic = paths.traffic();
        let firsts = firsts(&paths.leaders());
        for (first, (_, cycles, members)) in paths.groups(&traffic) {
            // `is_possible` made sure that there are as many numbers of cores.
            let number = firsts.iter().position(|of| *of == first).unwrap_or(0);
            let on = &placed.cores[number];
            let given: usize = on.values().sum();
            on.iter().for_each(|(host, given)| cores[*host] += given);
            // Each core has the same share of the packets: the slowest decides.
            let hertz = on.keys().map(|host| problem.hosts[*host].hertz);
            let hertz = hertz.fold(f64::INFINITY, f64::min);
            let rate = hertz * given as f64 * (1.0 - problem.headroom);
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
        let of_function = paths.hosts(&placed.cores);
        for (from, to, share) in paths.hops(&traffic) {
            if paths.site(from).host() == paths.site(to).host() {
                continue;
            }
            for (end, direction) in [(from, 1), (to, 0)] {
                for (host, part) in end.map_or(&[][..], |at| &of_function[at]) {
                    let packets = share * part * placed.rate / problem.packet_bits;
                    links[*host][direction] += packets * (problem.packet_bits + problem.tag_bits);
                }
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
    slacks.extend(switch.used(&on_switch));
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
pub(crate) fn is_possible(problem: &Problem, chain: &Chain, placed: &Placed) -> Result<(), String> {
    if placed.sites.len() != chain.functions.len() {
        return Err(format!("{} of {} functions", placed.sites.len(), chain.functions.len()));
    }
    if !(placed.rate >= 0.0 && placed.rate.is_finite()) {
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
    let paths = Paths { problem, chain, sites: &placed.sites };
    let leaders = paths.leaders();
    let firsts = firsts(&leaders);
    let is_empty = |on: &BTreeMap<usize, usize>| on.is_empty() || on.values().any(|of| *of == 0);
    if placed.cores.len() != firsts.len() || placed.cores.iter().any(is_empty) {
        return Err(format!("{} groups of functions have {:?} cores", firsts.len(), placed.cores));
    }
    for (first, on) in firsts.iter().zip(&placed.cores) {
        let name = &chain.functions[*first].name;
        if on.keys().any(|host| *host >= problem.hosts.len()) {
            return Err(format!("{name} is on no host"));
        }
        if !on.keys().any(|host| Some(*host) == placed.sites[*first].host()) {
            return Err(format!("{name} has no core where it is"));
        }
    }
    // Where replicas are on several hosts, what is next to them must be on none of these.
    let on = |at: usize| {
        let group = leaders[at].and_then(|first| firsts.iter().position(|of| *of == first));
        let alone = placed.sites[at].host().filter(|_| group.is_none());
        let cores = group.into_iter().flat_map(|group| placed.cores[group].keys().copied());
        cores.chain(alone)
    };
    let meet = |a: usize, b: usize| on(a).any(|host| on(b).any(|other| other == host));
    for edge in &chain.edges {
        let (from, to) = (edge.from, edge.to);
        let is_one = leaders[from].is_some() && leaders[from] == leaders[to];
        let is_beside = on(from).count() == 1 && on(from).eq(on(to));
        if !is_one && !is_beside && meet(from, to) {
            let name = |at: usize| &chain.functions[at].name;
            return Err(format!(
                "{} and {} are next to each other on a host, and not in one group",
                name(edge.from),
                name(edge.to)
            ));
        }
    }
    for wish in &chain.wishes {
        let name = |at: usize| &chain.functions[at].name;
        let kind = |at: usize| placed.sites[at].kind();
        let is_same = |a: usize, b: usize| kind(a) == kind(b) && on(a).eq(on(b));
        let meets =
            |a: usize, b: usize| kind(a) == kind(b) && (kind(a) == Kind::Switch || meet(a, b));
        match wish {
            Wish::Only(at, kinds) if !kinds.contains(&kind(*at)) => {
                return Err(format!("{} is on a {}, against a wish", name(*at), kind(*at)));
            }
            Wish::Never(at, kinds) if kinds.contains(&kind(*at)) => {
                return Err(format!("{} is on a {}, against a wish", name(*at), kind(*at)));
            }
            Wish::Together(a, b) if !is_same(*a, *b) => {
                return Err(format!("{} and {} are not together", name(*a), name(*b)));
            }
            Wish::Apart(a, b) if meets(*a, *b) => {
                return Err(format!("{} and {} are not apart", name(*a), name(*b)));
            }
            _ => {}
        }
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

    /// Where a function is; packets come from the switch and go back there.
    fn site(&self, end: Option<usize>) -> Site {
        end.map_or(Site::Switch, |at| self.sites[at])
    }

    /// By function: the hosts that run it, with their shares of the packets.
    fn hosts(&self, cores: &[BTreeMap<usize, usize>]) -> Vec<Vec<(usize, f64)>> {
        let leaders = self.leaders();
        let firsts = firsts(&leaders);
        let of = |at: usize| {
            let group = leaders[at].and_then(|first| firsts.iter().position(|of| *of == first));
            let Some(group) = group else {
                return self.sites[at].host().into_iter().map(|host| (host, 1.0)).collect();
            };
            let all: usize = cores[group].values().sum();
            let share = |(host, of): (&usize, &usize)| (*host, *of as f64 / all as f64);
            cores[group].iter().map(share).collect()
        };
        (0..self.sites.len()).map(of).collect()
    }

    /// All that packets go from and to, with their share; they come from the switch and end there.
    fn hops(&self, traffic: &[f64]) -> Vec<(Option<usize>, Option<usize>, f64)> {
        let mut hops = vec![(None, Some(0), 1.0)];
        for edge in &self.chain.edges {
            hops.push((Some(edge.from), Some(edge.to), traffic[edge.from] * edge.share));
        }
        for last in self.lasts() {
            hops.push((Some(last), None, traffic[last]));
        }
        hops
    }

    fn lasts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sites.len()).filter(|at| !self.chain.edges.iter().any(|edge| edge.from == *at))
    }

    /// The longest that a packet takes, over the slowest of the hosts that run a function.
    fn delay(&self, cores: &[BTreeMap<usize, usize>]) -> f64 {
        let hosts = &self.problem.hosts;
        let on = self.hosts(cores);
        let link = |at: Option<usize>| {
            let of = |(host, _): &(usize, f64)| {
                hosts[*host].link_delay
                    + (self.problem.packet_bits + self.problem.tag_bits) / hosts[*host].link_rate
            };
            at.map_or(0.0, |at| on[at].iter().map(of).fold(0.0, f64::max))
        };
        let over =
            |a: Option<usize>, b: Option<usize>| match self.site(a).host() == self.site(b).host() {
                true => 0.0,
                false => link(a) + link(b),
            };
        // By function: what is left from its arrival there on. Edges lead to later functions only.
        let mut left = vec![0.0_f64; self.sites.len()];
        for at in (0..self.sites.len()).rev() {
            let function = &self.chain.functions[at];
            let here = match self.sites[at] {
                Site::Switch => 0.0,
                Site::Core(_) => {
                    let of = |(host, _): &(usize, f64)| function.core_cycles / hosts[*host].hertz;
                    on[at].iter().map(of).fold(0.0, f64::max)
                }
                Site::Card(host) => {
                    let card = hosts[host].card.as_ref();
                    function.card_cycles / card.map_or(f64::MIN_POSITIVE, |card| card.hertz)
                }
            };
            let edges = self.chain.edges.iter().filter(|edge| edge.from == at);
            let behind = edges.map(|edge| over(Some(at), Some(edge.to)) + left[edge.to]);
            left[at] = here + behind.reduce(f64::max).unwrap_or_else(|| over(Some(at), None));
        }
        over(None, Some(0)) + left[0]
    }

    /// By function on cores: the first of those that it runs to completion with.
    fn leaders(&self) -> Vec<Option<usize>> {
        let sites = self.sites.iter().enumerate();
        let own = |(at, site): (usize, &Site)| matches!(site, Site::Core(_)).then_some(at);
        let mut leader: Vec<Option<usize>> = sites.map(own).collect();
        // As often as it takes: chains are short.
        loop {
            let mut changed = false;
            for edge in &self.chain.edges {
                let (Some(a), Some(b)) = (leader[edge.from], leader[edge.to]) else { continue };
                if self.sites[edge.from] == self.sites[edge.to] && a != b {
                    (leader[edge.from], leader[edge.to]) = (Some(a.min(b)), Some(a.min(b)));
                    changed = true;
                }
            }
            if !changed {
                return leader;
            }
        }
    }

    /// By first function.
    fn groups(&self, traffic: &[f64]) -> BTreeMap<usize, Members> {
        let mut groups: BTreeMap<usize, Members> = BTreeMap::new();
        for (at, leader) in self.leaders().into_iter().enumerate() {
            let Some(leader) = leader else { continue };
            let host = self.sites[at].host().unwrap_or(0);
            let group = groups.entry(leader).or_insert((host, 0.0, Vec::new()));
            group.1 += traffic[at] * self.chain.functions[at].core_cycles;
            group.2.push(at);
        }
        groups
    }
}

/// The first functions of groups, in order.
fn firsts(leaders: &[Option<usize>]) -> Vec<usize> {
    let all = leaders.iter().enumerate();
    all.filter(|(at, leader)| **leader == Some(*at)).map(|(at, _)| at).collect()
}
