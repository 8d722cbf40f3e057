//! Simpler policies, for comparison (Lemur §2.6.1): none uses what its description does not give.

use crate::heuristic::{Kinds, hardware_first, holds, lemur};
use crate::plan::{Placed, Plan, Site};
use crate::policy::{NotPlaced, all_kinds, at_best_rates, settle};
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::shape::Shape;

/// A chain's functions on kinds of devices of one host.
fn on_host(problem: &Problem, chain: &Chain, kinds: &[Kind], host: usize) -> Option<Shape> {
    let site = |kind: &Kind| match kind {
        Kind::Switch => Some(Site::Switch),
        Kind::Card => problem.hosts[host].card.as_ref().map(|_| Site::Card(host)),
        Kind::Core => Some(Site::Core(host)),
    };
    let sites = kinds.iter().map(site).collect::<Option<Vec<Site>>>()?;
    Some(Shape::of(problem, chain, sites))
}

/// Each chain on one host: that with most cores left when it is its turn.
fn shapes(problem: &Problem, kinds: &Kinds) -> Result<Vec<Shape>, NotPlaced> {
    let mut left: Vec<i64> = problem.hosts.iter().map(|host| host.cores as i64).collect();
    let mut shapes = Vec::new();
    for (chain, kinds) in problem.chains.iter().zip(kinds) {
        let hosts = (0..left.len()).rev();
        let on = hosts.filter_map(|host| Some((host, on_host(problem, chain, kinds, host)?)));
        // The first of those with most.
        let best = on.max_by_key(|(host, _)| left[*host]).ok_or(NotPlaced::Infeasible)?;
        best.1.groups.iter().for_each(|group| left[group.host] -= 1);
        shapes.push(best.1);
    }
    Ok(shapes)
}

/// Cores while they are handed out.
struct Cores<'a> {
    problem: &'a Problem,
    shapes: &'a [Shape],
    /// By chain and group.
    given: Vec<Vec<usize>>,
    /// By host.
    left: Vec<usize>,
}

impl<'a> Cores<'a> {
    /// One for each group.
    fn one_each(problem: &'a Problem, shapes: &'a [Shape]) -> Result<Self, NotPlaced> {
        let mut cores = Self {
            problem,
            shapes,
            given: shapes.iter().map(|shape| vec![0; shape.groups.len()]).collect(),
            left: problem.hosts.iter().map(|host| host.cores).collect(),
        };
        for (chain, shape) in shapes.iter().enumerate() {
            for group in 0..shape.groups.len() {
                if !cores.give(chain, group) {
                    return Err(NotPlaced::Infeasible);
                }
            }
        }
        Ok(cores)
    }

    fn give(&mut self, chain: usize, group: usize) -> bool {
        let left = &mut self.left[self.shapes[chain].groups[group].host];
        let there = *left > 0;
        if there {
            *left -= 1;
            self.given[chain][group] += 1;
        }
        there
    }

    /// Gives one more to a chain's slowest group. Whether it takes one.
    fn speed_up(&mut self, chain: usize) -> bool {
        let shape = &self.shapes[chain];
        let rate =
            |&group: &usize| self.given[chain][group] as f64 * shape.core_rate(self.problem, group);
        let slowest = (0..shape.groups.len()).min_by(|a, b| rate(a).total_cmp(&rate(b)));
        slowest.is_some_and(|group| shape.groups[group].replicates && self.give(chain, group))
    }

    fn rate(&self, chain: usize) -> f64 {
        self.shapes[chain].rate(self.problem, &self.problem.chains[chain], &self.given[chain])
    }

    /// Spare cores to one chain after the other, as long as any takes one.
    fn evenly(&mut self) {
        let chains = 0..self.shapes.len();
        while chains.clone().filter(|&chain| self.speed_up(chain)).count() > 0 {}
    }
}

fn evenly(problem: &Problem, switch: &dyn Switch, kinds: &Kinds) -> Result<Plan, NotPlaced> {
    if !holds(switch, kinds) {
        return Err(NotPlaced::Infeasible);
    }
    let shapes = shapes(problem, kinds)?;
    let mut cores = Cores::one_each(problem, &shapes)?;
    cores.evenly();
    let given = cores.given;
    settle(problem, &shapes, given)
}

pub(crate) fn hw_preferred(problem: &Problem, switch: &dyn Switch) -> Result<Plan, NotPlaced> {
    evenly(problem, switch, &hardware_first(problem))
}

pub(crate) fn sw_preferred(problem: &Problem, switch: &dyn Switch) -> Result<Plan, NotPlaced> {
    let mut kinds = hardware_first(problem);
    for (chain, kinds) in problem.chains.iter().zip(&mut kinds) {
        for (at, kind) in kinds.iter_mut().enumerate() {
            if chain.can(at, Kind::Core) {
                *kind = Kind::Core;
            }
        }
    }
    evenly(problem, switch, &kinds)
}

/// By chain the fewest groups, and of these the greatest rate with one core for each.
pub(crate) fn min_bounce(problem: &Problem, switch: &dyn Switch) -> Result<Plan, NotPlaced> {
    let mut kinds = Kinds::new();
    for (at, chain) in problem.chains.iter().enumerate() {
        let mut best: Option<(usize, f64, Vec<Kind>)> = None;
        for kinds in all_kinds(chain).ok_or(NotPlaced::TooMany(at))? {
            let hosts = 0..problem.hosts.len();
            let mut shapes = hosts.filter_map(|host| on_host(problem, chain, &kinds, host));
            let Some(shape) = shapes.next() else { continue };
            let groups = shape.groups.len();
            let rate = shape.rate(problem, chain, &vec![1; groups]);
            let is_better = best.as_ref().is_none_or(|(fewest, most, _)| {
                groups < *fewest || groups == *fewest && rate > *most
            });
            if is_better {
                best = Some((groups, rate, kinds));
            }
        }
        kinds.push(best.ok_or(NotPlaced::Infeasible)?.2);
    }
    evenly(problem, switch, &kinds)
}

pub(crate) fn greedy(problem: &Problem, switch: &dyn Switch) -> Result<Plan, NotPlaced> {
    let kinds = hardware_first(problem);
    if !holds(switch, &kinds) {
        return Err(NotPlaced::Infeasible);
    }
    let shapes = shapes(problem, &kinds)?;
    let mut cores = Cores::one_each(problem, &shapes)?;
    for (at, chain) in problem.chains.iter().enumerate() {
        while cores.rate(at) < chain.slo.min * (1.0 - 1e-9) {
            if !cores.speed_up(at) {
                return Err(NotPlaced::Infeasible);
            }
        }
    }
    for (at, chain) in problem.chains.iter().enumerate() {
        while cores.rate(at) < chain.slo.max && cores.speed_up(at) {}
    }
    let given = cores.given;
    settle(problem, &shapes, given)
}

/// What every function costs where nothing is known of it, in cycles (more than most cost).
const ANY_CYCLES: f64 = 20_000.0;

/// A plan made as if every function cost the same, at the rates that it really has.
pub(crate) fn no_profile(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let mut blind = problem.clone();
    for function in blind.chains.iter_mut().flat_map(|chain| &mut chain.functions) {
        function.core_cycles = ANY_CYCLES;
    }
    let plan = lemur(&blind, switch, go_on)?;
    at_real_rates(problem, &plan).ok_or(NotPlaced::Infeasible)
}

/// A plan with the same placements and cores at the best rates of another problem.
pub fn at_real_rates(problem: &Problem, plan: &Plan) -> Option<Plan> {
    let limit = |(chain, placed): (&Chain, &Placed)| {
        let shape = Shape::of(problem, chain, placed.sites.clone());
        let is_late = chain.slo.delay.is_some_and(|delay| shape.delay > delay * (1.0 + 1e-9));
        let cores: Vec<usize> = placed.cores.iter().map(|on| on.values().sum()).collect();
        (!is_late).then(|| shape.rate(problem, chain, &cores))
    };
    let limits = problem.chains.iter().zip(&plan.chains).map(limit).collect::<Option<Vec<f64>>>();
    at_best_rates(problem, plan.chains.clone(), &limits?)
}

/// The heuristic, with one core for each group.
pub(crate) fn no_core_allocation(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let mut single = problem.clone();
    for function in single.chains.iter_mut().flat_map(|chain| &mut chain.functions) {
        function.replicates = false;
    }
    lemur(&single, switch, go_on)
}
