//! The power of two choices (Metron §2.3.3): two servers are asked for their loads, and the less loaded takes the chain
//! if it can; else both are out, and two others are asked. For fleets where nobody knows all loads.

use std::collections::BTreeMap;

use crate::heuristic::hardware_first;
use crate::options::EXACT;
use crate::plan::{Placed, Plan, Site};
use crate::policy::{NotPlaced, at_best_rates};
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::rack::Rack;
use crate::seat::{Left, Needs};
use crate::shape::Shape;

/// A plan, and how many loads were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbedPlan {
    /// The plan.
    pub plan: Plan,
    /// How often a server was asked.
    pub loads: usize,
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        // The constants of Knuth's MMIX; the high bits are the better ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Places each chain on one of two servers.
///
/// # Errors
/// Why there is no plan.
pub fn two_choices(
    problem: &Problem,
    switch: &dyn Switch,
    seed: u64,
) -> Result<ProbedPlan, NotPlaced> {
    let rack = Rack::of(problem);
    let mut random = Random(seed);
    let mut left = Left::all(problem);
    let mut on_switch: Vec<(usize, usize)> = Vec::new();
    let (mut placed, mut limits, mut loads) = (Vec::new(), Vec::new(), 0);
    for (at, (chain, kinds)) in problem.chains.iter().zip(hardware_first(problem)).enumerate() {
        // What keeps no state goes to the switch as long as that has room, else it stays with the rest.
        let before = on_switch.len();
        let there = kinds.iter().enumerate().filter(|(_, kind)| **kind == Kind::Switch);
        on_switch.extend(there.map(|(function, _)| (at, function)));
        let kinds = match switch.fits(&on_switch) {
            Ok(()) => kinds,
            Err(_) => {
                on_switch.truncate(before);
                let kinds = kinds.into_iter().enumerate();
                let away = kinds.map(|(function, kind)| match chain.can(function, Kind::Core) {
                    true => Kind::Core,
                    false => kind,
                });
                let kinds: Vec<Kind> = away.collect();
                let there = kinds.iter().enumerate().filter(|(_, kind)| **kind == Kind::Switch);
                on_switch.extend(there.map(|(function, _)| (at, function)));
                switch.fits(&on_switch).map_err(|_| NotPlaced::Infeasible)?;
                kinds
            }
        };
        let mut out = Vec::new();
        let (placed_now, limit) = loop {
            let mut two = Vec::new();
            while two.len() < 2 && out.len() + two.len() < problem.hosts.len() {
                let host = random.below(problem.hosts.len());
                if !out.contains(&host) && !two.contains(&host) {
                    two.push(host);
                }
            }
            if two.is_empty() {
                return Err(NotPlaced::Infeasible);
            }
            loads += two.len();
            let load =
                |host: &usize| 1.0 - left.cores[*host] as f64 / problem.hosts[*host].cores as f64;
            two.sort_by(|a, b| load(a).total_cmp(&load(b)));
            let mut all = two.iter().filter_map(|host| {
                on_host(&rack, chain, &kinds, *host)
                    .filter(|(placed, _)| fits(problem, chain, placed, &left, *host))
            });
            if let Some(found) = all.next() {
                break found;
            }
            drop(all);
            out.extend(two);
        };
        left.take(&Needs::of(problem, chain, &placed_now), chain.slo.min);
        limits.push(limit);
        placed.push(placed_now);
    }
    let plan = at_best_rates(problem, placed, &limits).ok_or(NotPlaced::Infeasible)?;
    Ok(ProbedPlan { plan, loads })
}

/// A chain on one server with as few cores as its least rate needs, and the rate that they allow.
fn on_host(rack: &Rack<'_>, chain: &Chain, kinds: &[Kind], host: usize) -> Option<(Placed, f64)> {
    let problem = rack.whole;
    let site = |kind: &Kind| match kind {
        Kind::Switch => Some(Site::Switch),
        Kind::Card => problem.hosts[host].card.as_ref().map(|_| Site::Card(host)),
        Kind::Core => Some(Site::Core(host)),
    };
    let sites = kinds.iter().map(site).collect::<Option<Vec<Site>>>()?;
    let shape = Shape::of(problem, chain, sites);
    if chain.slo.delay.is_some_and(|delay| shape.delay > delay * (1.0 + EXACT)) {
        return None;
    }
    let needed = |group: usize| {
        let one = shape.core_rate(problem, group);
        ((chain.slo.min / one - EXACT).ceil() as usize).max(1)
    };
    let cores: Vec<usize> = (0..shape.groups.len()).map(needed).collect();
    let mut groups = shape.groups.iter().zip(&cores);
    if groups.any(|(group, cores)| *cores > 1 && !group.replicates) {
        return None;
    }
    let limit = shape.rate(problem, chain, &cores);
    let cores = cores.into_iter().map(|cores| BTreeMap::from([(host, cores)])).collect();
    Some((Placed { sites: shape.sites, cores, rate: 0.0 }, limit))
}

fn fits(problem: &Problem, chain: &Chain, placed: &Placed, left: &Left, host: usize) -> bool {
    let need = Needs::of(problem, chain, placed).on(host);
    let carries = |(load, room): (&f64, &f64)| load * chain.slo.min <= room * (1.0 + EXACT);
    need.cores <= left.cores[host] && need.loads.iter().zip(&left.rates[host]).all(carries)
}
