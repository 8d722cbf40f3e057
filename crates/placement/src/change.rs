//! From the last plan to the next: when a chain, an SLO or a profile changes, or a server fails, as little is moved as
//! possible.

use std::collections::BTreeMap;

use crate::check::check;
use crate::dual::{UNIT, dual};
use crate::options::{self, EXACT};
use crate::pack::{Packed, Packer};
use crate::plan::{Bound, Placed, Plan, Site};
use crate::policy::{NotPlaced, at_best_rates};
use crate::problem::{Chain, Problem, Switch};
use crate::rack::Rack;
use crate::search::improved;
use crate::seat::{Left, Seat, gain};
use crate::shape::Shape;

/// The share by which a plan must be better than one with fewer moves.
pub const WORTH: f64 = 0.03;

/// What a moved function costs, in bits a second times price.
pub const MOVE: f64 = 1e7;

/// A step from one plan to the next: a chain is put on its new places, then packets go there, then it leaves the old.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The chain.
    pub chain: usize,
    /// Whether its new places have room while it is still on the old ones; if not, it falls short of its least rate until it
    /// is there.
    pub keeps_its_least: bool,
}

/// A plan after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The plan.
    pub plan: Plan,
    /// Chains and functions that were elsewhere.
    pub moved: Vec<(usize, usize)>,
    /// What to do, in this order.
    pub steps: Vec<Step>,
}

/// A problem in which some hosts are down.
pub fn without_hosts(problem: &Problem, down: &[usize]) -> Problem {
    let mut less = problem.clone();
    for &host in down {
        (less.hosts[host].cores, less.hosts[host].card) = (0, None);
    }
    less
}

/// The next plan. `last` has each chain where it was, if it was placed; hosts in `down` have failed.
///
/// # Errors
/// Why there is none.
pub fn change(
    problem: &Problem,
    switch: &dyn Switch,
    last: &[Option<Placed>],
    down: &[usize],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Changed, NotPlaced> {
    let faults = problem.faults();
    if !faults.is_empty() {
        return Err(NotPlaced::Faults(faults));
    }
    let less = without_hosts(problem, down);
    let kept = repaired(&less, switch, last, go_on);
    // Without down hosts nothing more is known to be gained than by the best plan that is found.
    let best = improved(&less, switch, go_on);
    let of = |plan: &Plan| gained(&less, plan);
    let plan = match (kept, best) {
        (Some(kept), Ok(best)) => {
            let moves = |plan: &Plan| moved(last, plan).len() as f64 * MOVE / UNIT;
            let (gain, more) = (of(&kept), of(&best) - moves(&best) + moves(&kept));
            if more > gain + WORTH * gain.abs() { best } else { kept }
        }
        (Some(kept), Err(_)) => kept,
        (None, best) => best?,
    };
    let steps = steps(problem, last, down, &plan);
    Ok(Changed { moved: moved(last, &plan), steps, plan })
}

fn gained(problem: &Problem, plan: &Plan) -> f64 {
    let rates: Vec<f64> = plan.chains.iter().map(|chain| chain.rate).collect();
    gain(&problem.chains, &rates)
}

/// Functions that were placed, and are elsewhere.
fn moved(last: &[Option<Placed>], plan: &Plan) -> Vec<(usize, usize)> {
    let of = |(chain, (last, now)): (usize, (&Option<Placed>, &Placed))| {
        let before = last.iter().flat_map(|last| last.sites.iter());
        let both = before.zip(&now.sites).enumerate();
        let elsewhere = both.filter(|(_, (a, b))| a != b);
        elsewhere.map(move |(function, _)| (chain, function)).collect::<Vec<_>>()
    };
    last.iter().zip(&plan.chains).enumerate().flat_map(of).collect()
}

/// The last plan with chains placed anew only where they must be.
fn repaired(
    problem: &Problem,
    switch: &dyn Switch,
    last: &[Option<Placed>],
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Plan> {
    let mut left = Left::all(problem);
    let mut placed: Vec<Option<Placed>> = vec![None; problem.chains.len()];
    for (at, (chain, last)) in problem.chains.iter().zip(last).enumerate() {
        let Some(last) = last else { continue };
        let seat = Seat::of(problem, chain, last);
        let carries = |(host, loads): (&usize, &[f64; 3])| {
            let room = left.rates[*host].iter();
            room.zip(loads).all(|(room, load)| load * chain.slo.min <= room * (1.0 + EXACT))
        };
        let holds = seat.cores.iter().all(|(host, cores)| left.cores[*host] >= *cores)
            && seat.loads.iter().all(carries);
        if holds && is_enough(problem, chain, last) {
            left.take(&seat, chain.slo.min);
            placed[at] = Some(last.clone());
        }
    }
    let missing: Vec<usize> = (0..placed.len()).filter(|at| placed[*at].is_none()).collect();
    if !missing.is_empty() {
        // Those that have no place are placed as if they were all.
        let chains = missing.iter().map(|at| problem.chains[*at].clone()).collect();
        let part = Problem { chains, ..problem.clone() };
        let rack = Rack::of(&part);
        let options = options::all(&rack, &part, false, go_on);
        let asking: Vec<_> = part.chains.iter().zip(&options).collect();
        let dual = dual(&left.by_pool(&rack), &asking, go_on)?;
        let packer = Packer::within(&rack, &options, &dual, left);
        let Packed { seats, .. } = packer.pack(go_on)?;
        for (at, seat) in missing.iter().zip(&seats) {
            placed[*at] = Some(seat.placed(0.0));
        }
    }
    let placed = placed.into_iter().collect::<Option<Vec<Placed>>>()?;
    let limits = problem.chains.iter().zip(&placed).map(|(chain, placed)| {
        let shape = Shape::of(problem, chain, placed.sites.clone());
        let cores: Vec<usize> = placed.cores.iter().map(|on| on.values().sum()).collect();
        shape.rate(problem, chain, &cores)
    });
    let limits: Vec<f64> = limits.collect();
    let plan = at_best_rates(problem, placed, &limits)?;
    check(problem, switch, &plan).ok()?;
    Some(Plan { bound: Bound::Unknown, ..plan })
}

/// Whether a placed chain still has its SLO where it is.
fn is_enough(problem: &Problem, chain: &Chain, placed: &Placed) -> bool {
    let shape = Shape::of(problem, chain, placed.sites.clone());
    let hosts = placed.cores.iter().flat_map(BTreeMap::keys);
    let sites = placed.sites.iter().filter_map(|site| site.host());
    let is_there =
        |host: usize| problem.hosts.get(host).is_some_and(|of| of.cores > 0 || of.card.is_some());
    let cores: Vec<usize> = placed.cores.iter().map(|on| on.values().sum()).collect();
    let mut with_groups = shape.groups.iter().zip(&cores);
    hosts.copied().chain(sites).all(is_there)
        && placed.cores.len() == shape.groups.len()
        && with_groups.all(|(group, cores)| *cores == 1 || group.replicates)
        && (0..chain.functions.len()).all(|at| chain.can(at, placed.sites[at].kind()))
        && shape.rate(problem, chain, &cores) >= chain.slo.min * (1.0 - EXACT)
        && chain.slo.delay.is_none_or(|delay| shape.delay <= delay * (1.0 + EXACT))
}

/// Whether what is left of a placed chain without some hosts still gives its least rate.
fn is_enough_without(problem: &Problem, chain: usize, placed: &Placed, down: &[usize]) -> bool {
    let of = &problem.chains[chain];
    let rest = |on: &BTreeMap<usize, usize>| -> usize {
        on.iter().filter(|(host, _)| !down.contains(host)).map(|(_, cores)| cores).sum()
    };
    let cores: Vec<usize> = placed.cores.iter().map(rest).collect();
    let on_lost_card = |site: &Site| matches!(site, Site::Card(host) if down.contains(host));
    let shape = Shape::of(problem, of, placed.sites.clone());
    !placed.sites.iter().any(on_lost_card)
        && shape.rate(problem, of, &cores) >= of.slo.min * (1.0 - EXACT)
}

/// Chains that change in an order in which as many as possible keep their least rates.
fn steps(problem: &Problem, last: &[Option<Placed>], down: &[usize], plan: &Plan) -> Vec<Step> {
    let less = without_hosts(problem, down);
    let mut left = Left::all(&less);
    let is_up = |placed: &Placed| {
        placed.cores.iter().flat_map(BTreeMap::keys).all(|host| !down.contains(host))
    };
    let seat = |chain: usize, placed: &Placed| Seat::of(problem, &problem.chains[chain], placed);
    let mut waiting = Vec::new();
    for (chain, (last, now)) in last.iter().zip(&plan.chains).enumerate() {
        let min = problem.chains[chain].slo.min;
        let was = last.as_ref().filter(|last| is_up(last));
        if let Some(was) = was {
            left.take(&seat(chain, was), min);
        }
        let same = last
            .as_ref()
            .is_some_and(|last| (&last.sites, &last.cores) == (&now.sites, &now.cores));
        if !same {
            waiting.push((chain, was));
        }
    }
    let mut steps = Vec::new();
    while !waiting.is_empty() {
        let fits = |(chain, was): &(usize, Option<&Placed>)| {
            let new = seat(*chain, &plan.chains[*chain]);
            let min = problem.chains[*chain].slo.min;
            let carries = |(host, loads): (&usize, &[f64; 3])| {
                let room = left.rates[*host].iter();
                room.zip(loads).all(|(room, load)| load * min <= room * (1.0 + EXACT))
            };
            // On the same host cores are handed over one by one.
            let old = was.map(|was| seat(*chain, was).cores).unwrap_or_default();
            let free = |host: &usize| left.cores[*host] + old.get(host).copied().unwrap_or(0);
            new.cores.iter().all(|(host, cores)| free(host) >= *cores)
                && new.loads.iter().all(carries)
        };
        let at = waiting.iter().position(fits);
        let (chain, was) = waiting.remove(at.unwrap_or(0));
        let min = problem.chains[chain].slo.min;
        if let Some(was) = was {
            left.give(&seat(chain, was), min);
        }
        left.take(&seat(chain, &plan.chains[chain]), min);
        // Where its host failed, what is left of its replicas may be enough.
        let has_rest =
            |last: &Placed| was.is_some() || is_enough_without(problem, chain, last, down);
        let keeps_its_least = at.is_some() && last[chain].as_ref().is_none_or(has_rest);
        steps.push(Step { chain, keeps_its_least });
    }
    steps
}
