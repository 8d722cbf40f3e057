//! Lemur's heuristic (§2.3.2), and improving a plan by exchanges.

use crate::choose::{Options, choose, gain};
use crate::plan::Plan;
use crate::policy::{NotPlaced, all_kinds, options, plan};
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::shape::{Shape, on_hosts};

/// By chain and function: the kind of device that it runs on.
pub(crate) type Kinds = Vec<Vec<Kind>>;

/// All on the switch that can be there, the rest on cards, and on cores.
pub(crate) fn hardware_first(problem: &Problem) -> Kinds {
    let has_card = problem.hosts.iter().any(|host| host.card.is_some());
    let kind = |function: &crate::problem::Function| match () {
        () if function.can(Kind::Switch) => Kind::Switch,
        () if has_card && function.can(Kind::Card) => Kind::Card,
        () => Kind::Core,
    };
    problem.chains.iter().map(|chain| chain.functions.iter().map(kind).collect()).collect()
}

/// Whether the switch holds what is to be there.
pub(crate) fn holds(switch: &dyn Switch, kinds: &Kinds) -> bool {
    let chains = kinds.iter().enumerate();
    let placed = chains.flat_map(|(chain, kinds)| {
        let there = kinds.iter().enumerate().filter(|(_, kind)| **kind == Kind::Switch);
        there.map(move |(function, _)| (chain, function))
    });
    switch.fits(&placed.collect::<Vec<_>>()).is_ok()
}

/// Takes functions from the switch until it holds the rest: the cheapest that suffices alone, or the cheapest of all
/// and on (phase 1).
fn until_it_fits(problem: &Problem, switch: &dyn Switch, mut kinds: Kinds) -> Option<Kinds> {
    let mut candidates: Vec<(f64, usize, usize)> = Vec::new();
    for (at, chain) in problem.chains.iter().enumerate() {
        for (function, share) in chain.shares().into_iter().enumerate() {
            let of = &chain.functions[function];
            if kinds[at][function] == Kind::Switch && of.can(Kind::Core) {
                candidates.push((of.core_cycles * share, at, function));
            }
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    while !holds(switch, &kinds) {
        for &(_, chain, function) in &candidates {
            kinds[chain][function] = Kind::Core;
            if holds(switch, &kinds) {
                return Some(kinds);
            }
            kinds[chain][function] = Kind::Switch;
        }
        if candidates.is_empty() {
            return None;
        }
        let (_, chain, function) = candidates.remove(0);
        kinds[chain][function] = Kind::Core;
    }
    Some(kinds)
}

/// A chain's groups with all hosts taken for the first.
fn shape(problem: &Problem, chain: &Chain, kinds: &[Kind]) -> Option<Shape> {
    let sites = on_hosts(problem, kinds).into_iter().next()?;
    Some(Shape::of(problem, chain, sites))
}

/// Functions on the switch between two groups, all of which can leave it.
fn between(chain: &Chain, kinds: &[Kind], from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let on_switch = |at: usize| kinds[at] == Kind::Switch;
    let mut behind = vec![false; kinds.len()];
    for edge in &chain.edges {
        behind[edge.to] |= on_switch(edge.to)
            && (from.contains(&edge.from) || on_switch(edge.from) && behind[edge.from]);
    }
    let mut before = vec![false; kinds.len()];
    for edge in chain.edges.iter().rev() {
        before[edge.from] |= on_switch(edge.from)
            && (to.contains(&edge.to) || on_switch(edge.to) && before[edge.to]);
    }
    let between: Vec<usize> = (0..kinds.len()).filter(|&at| behind[at] && before[at]).collect();
    let can_leave = between.iter().all(|&at| chain.functions[at].can(Kind::Core));
    (can_leave && !between.is_empty()).then_some(between)
}

/// Joins of two groups of a chain: the kinds then.
fn joins(problem: &Problem, chain: &Chain, kinds: &[Kind]) -> Vec<(Joined, Vec<Kind>)> {
    let Some(before) = shape(problem, chain, kinds) else { return Vec::new() };
    let mut found = Vec::new();
    for (a, one) in before.groups.iter().enumerate() {
        for (b, other) in before.groups.iter().enumerate() {
            if a == b {
                continue;
            }
            let Some(between) = between(chain, kinds, &one.functions, &other.functions) else {
                continue;
            };
            let mut joined = kinds.to_vec();
            between.iter().for_each(|&at| joined[at] = Kind::Core);
            let Some(after) = shape(problem, chain, &joined) else { continue };
            let holds_both = |functions: &[usize]| {
                functions.contains(&one.functions[0]) && functions.contains(&other.functions[0])
            };
            let Some(group) = after.groups.iter().position(|group| holds_both(&group.functions))
            else {
                continue;
            };
            let most = |shape: &Shape| {
                shape.allocations(problem, chain).last().map_or(0.0, |last| last.rate)
            };
            let one_core = after.core_rate(problem, group);
            let replicates = after.groups[group].replicates;
            found.push((
                Joined {
                    apart: before.core_rate(problem, a).min(before.core_rate(problem, b)),
                    two_cores: if replicates { 2.0 * one_core } else { one_core },
                    most: if replicates { f64::INFINITY } else { one_core },
                    chain_before: most(&before),
                    chain_after: most(&after),
                },
                joined,
            ));
        }
    }
    found
}

/// What joining two groups means, in bits a second.
struct Joined {
    /// With a core for each of the two.
    apart: f64,
    /// With two cores for both.
    two_cores: f64,
    /// With as many cores for both as one likes.
    most: f64,
    /// The chain if it had all cores of the hosts, before.
    chain_before: f64,
    /// And after.
    chain_after: f64,
}

impl Joined {
    /// What the chain loses.
    fn cost(&self) -> f64 {
        self.chain_before - self.chain_after
    }
}

/// Joins groups as long as a rule allows it, those first that cost the chain least (phase 2).
fn coalesced(problem: &Problem, kinds: &Kinds, rule: impl Fn(&Joined, &Chain) -> bool) -> Kinds {
    let mut kinds = kinds.clone();
    for (chain, kinds) in problem.chains.iter().zip(&mut kinds) {
        let allowed = |kinds: &[Kind]| {
            let joins = joins(problem, chain, kinds).into_iter();
            let allowed = joins.filter(|(joined, _)| rule(joined, chain));
            allowed.min_by(|(a, _), (b, _)| a.cost().total_cmp(&b.cost()))
        };
        while let Some((_, joined)) = allowed(kinds) {
            *kinds = joined;
        }
    }
    kinds
}

/// Cores and rates by which most is gained, with functions where they are (phase 3).
fn allocate(
    problem: &Problem,
    switch: &dyn Switch,
    kinds: &Kinds,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Plan> {
    let chains = problem.chains.iter().zip(kinds);
    let all: Vec<Options> =
        chains.map(|(chain, kinds)| options(problem, chain, [kinds], false)).collect();
    let chosen = choose(problem, &all, switch, go_on)?;
    Some(plan(&all, &chosen, false))
}

fn gained(problem: &Problem, plan: &Plan) -> f64 {
    gain(problem, &plan.chains.iter().map(|chain| chain.rate).collect::<Vec<_>>())
}

/// The best of some.
fn best(problem: &Problem, plans: impl IntoIterator<Item = Plan>) -> Option<Plan> {
    let mut best: Option<(f64, Plan)> = None;
    for plan in plans {
        let gained = gained(problem, &plan);
        if best.as_ref().is_none_or(|(most, _)| gained > *most) {
            best = Some((gained, plan));
        }
    }
    best.map(|(_, plan)| plan)
}

/// Lemur's heuristic.
pub(crate) fn lemur(problem: &Problem, switch: &dyn Switch) -> Result<Plan, NotPlaced> {
    let first = until_it_fits(problem, switch, hardware_first(problem));
    let mut plain = first.ok_or(NotPlaced::Infeasible)?;
    let strict = |joined: &Joined| joined.two_cores > joined.apart;
    let aggressive =
        coalesced(problem, &plain, |joined, chain| strict(joined) || joined.most >= chain.slo.min);
    let conservative = coalesced(problem, &plain, |joined, _| {
        strict(joined) || joined.chain_after >= joined.chain_before
    });
    let mut all = || true;
    let three = [&plain, &aggressive, &conservative];
    let plans = three.into_iter().filter_map(|kinds| allocate(problem, switch, kinds, &mut all));
    if let Some(plan) = best(problem, plans.collect::<Vec<_>>()) {
        return Ok(plan);
    }
    // Cores are missing: the join that costs the least rate frees one.
    loop {
        let mut least: Option<(f64, usize, Vec<Kind>)> = None;
        for (at, (chain, kinds)) in problem.chains.iter().zip(&plain).enumerate() {
            for (joined, kinds) in joins(problem, chain, kinds) {
                let cost = joined.cost();
                if least.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    least = Some((cost, at, kinds));
                }
            }
        }
        let (_, chain, kinds) = least.ok_or(NotPlaced::Infeasible)?;
        plain[chain] = kinds;
        if let Some(plan) = allocate(problem, switch, &plain, &mut || true) {
            return Ok(plan);
        }
    }
}

/// Lemur's heuristic, then two chains at a time placed anew, as long as that gains something.
pub(crate) fn improved(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let chains = &problem.chains;
    let mut every: Vec<Option<Options>> = vec![None; chains.len()];
    let mut all = |chain: usize| {
        let made = every[chain].get_or_insert_with(|| match all_kinds(&chains[chain]) {
            Some(kinds) => options(problem, &chains[chain], &kinds, false),
            None => Options::default(),
        });
        made.clone()
    };
    let mut plan_now = match lemur(problem, switch) {
        Ok(plan) => plan,
        // With few chains all can be placed anew at once.
        Err(_) if chains.len() <= 4 => {
            let options: Vec<Options> = (0..chains.len()).map(&mut all).collect();
            let chosen = choose(problem, &options, switch, go_on).ok_or(NotPlaced::Infeasible)?;
            plan(&options, &chosen, false)
        }
        Err(why) => return Err(why),
    };
    let kept = |plan: &Plan, chain: usize| {
        let shape = Shape::of(problem, &chains[chain], plan.chains[chain].sites.clone());
        Options::of(problem, &chains[chain], [shape], false)
    };
    let mut changed = true;
    while changed {
        changed = false;
        for a in 0..chains.len() {
            for b in a..chains.len() {
                if !go_on() {
                    return Ok(plan_now);
                }
                let options: Vec<Options> = (0..chains.len())
                    .map(|chain| match chain == a || chain == b {
                        true => all(chain),
                        false => kept(&plan_now, chain),
                    })
                    .collect();
                let Some(chosen) = choose(problem, &options, switch, go_on) else { continue };
                let before = gained(problem, &plan_now);
                if chosen.gain > before + before.abs().max(1.0) * 1e-6 {
                    plan_now = plan(&options, &chosen, false);
                    changed = true;
                }
            }
        }
    }
    Ok(plan_now)
}
