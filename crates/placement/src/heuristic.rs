//! Lemur's heuristic (§2.3.2).

use crate::options::{Maker, Options};
use crate::pack::Packed;
use crate::plan::{Bound, Plan};
use crate::policy::NotPlaced;
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::rack::Rack;
use crate::search::{MANY, best_of, improved};
use crate::shape::Shape;

/// By chain and function: the kind of device that it runs on.
pub(crate) type Kinds = Vec<Vec<Kind>>;

/// All on the switch that can be there, the rest on cards, and on cores.
pub(crate) fn hardware_first(problem: &Problem) -> Kinds {
    let has_card = problem.hosts.iter().any(|host| host.card.is_some());
    let kind = |chain: &Chain, at: usize| match () {
        () if chain.can(at, Kind::Switch) => Kind::Switch,
        () if has_card && chain.can(at, Kind::Card) => Kind::Card,
        () => Kind::Core,
    };
    let of = |chain: &Chain| (0..chain.functions.len()).map(|at| kind(chain, at)).collect();
    problem.chains.iter().map(of).collect()
}

/// Whether the switch holds what is to be there.
pub(crate) fn holds(switch: &dyn Switch, kinds: &Kinds) -> bool {
    let chains = kinds.iter().enumerate();
    let placed = chains.flat_map(|(chain, kinds)| {
        let there = kinds.iter().enumerate().filter(|(_, kind)| **kind == Kind::Switch);
        there.map(move |(function, _)| (chain, function))
    });
    switch.holds(&placed.collect::<Vec<_>>())
}

/// Takes functions from the switch until it holds the rest: the cheapest that suffices alone, or the cheapest of all
/// and on (phase 1). Of very many, as few of the cheapest as suffice together.
pub(crate) fn until_it_fits(
    problem: &Problem,
    switch: &dyn Switch,
    mut kinds: Kinds,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Kinds> {
    if holds(switch, &kinds) {
        return Some(kinds);
    }
    let mut candidates: Vec<(f64, usize, usize)> = Vec::new();
    for (at, chain) in problem.chains.iter().enumerate() {
        for (function, share) in chain.shares().into_iter().enumerate() {
            let of = &chain.functions[function];
            if kinds[at][function] == Kind::Switch && chain.can(function, Kind::Core) {
                candidates.push((of.core_cycles * share, at, function));
            }
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let all = kinds.clone();
    let without = |count: usize| {
        let mut kinds = all.clone();
        let first = candidates.iter().take(count);
        first.for_each(|(_, chain, function)| kinds[*chain][*function] = Kind::Core);
        kinds
    };
    let fewest = |count: &mut (usize, usize)| {
        while count.0 < count.1 {
            let middle = count.0.midpoint(count.1);
            match holds(switch, &without(middle)) {
                true => count.1 = middle,
                false => count.0 = middle + 1,
            }
        }
        let kinds = without(count.1);
        holds(switch, &kinds).then_some(kinds)
    };
    if candidates.len() > MANY {
        return fewest(&mut (0, candidates.len()));
    }
    for removed in 0..candidates.len() {
        for &(_, chain, function) in &candidates[removed..] {
            if !go_on() {
                return fewest(&mut (removed, candidates.len()));
            }
            kinds[chain][function] = Kind::Core;
            if holds(switch, &kinds) {
                return Some(kinds);
            }
            kinds[chain][function] = Kind::Switch;
        }
        let (_, chain, function) = candidates[removed];
        kinds[chain][function] = Kind::Core;
    }
    holds(switch, &kinds).then_some(kinds)
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
    let can_leave = between.iter().all(|&at| chain.can(at, Kind::Core));
    (can_leave && !between.is_empty()).then_some(between)
}

/// Joins of two groups of a chain: the kinds then.
fn joins(rack: &Rack<'_>, chain: &Chain, kinds: &[Kind]) -> Vec<(Joined, Vec<Kind>)> {
    let Some(before) = rack.first(chain, kinds) else { return Vec::new() };
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
            let Some(after) = rack.first(chain, &joined) else { continue };
            let holds_both = |functions: &[usize]| {
                functions.contains(&one.functions[0]) && functions.contains(&other.functions[0])
            };
            let Some(group) = after.groups.iter().position(|group| holds_both(&group.functions))
            else {
                continue;
            };
            let most = |shape: &Shape| rack.most(chain, shape);
            let one_core = after.core_rate(&rack.lanes, group);
            let replicates = after.groups[group].replicates;
            found.push((
                Joined {
                    apart: before.core_rate(&rack.lanes, a).min(before.core_rate(&rack.lanes, b)),
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
fn coalesced(
    rack: &Rack<'_>,
    kinds: &Kinds,
    rule: impl Fn(&Joined, &Chain) -> bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Kinds {
    let mut kinds = kinds.clone();
    for (chain, kinds) in rack.whole.chains.iter().zip(&mut kinds) {
        let allowed = |kinds: &[Kind]| {
            let joins = joins(rack, chain, kinds).into_iter();
            let allowed = joins.filter(|(joined, _)| rule(joined, chain));
            allowed.min_by(|(a, _), (b, _)| a.cost().total_cmp(&b.cost()))
        };
        while go_on()
            && let Some((_, joined)) = allowed(kinds)
        {
            *kinds = joined;
        }
    }
    kinds
}

/// Cores and rates by which most is gained, with functions where they are (phase 3).
fn allocate(
    rack: &Rack<'_>,
    switch: &dyn Switch,
    kinds: &Kinds,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Packed> {
    let mut maker = Maker::new(false);
    let chains = rack.whole.chains.iter().zip(kinds);
    let all: Vec<Options> = chains
        .map(|(chain, kinds)| {
            let one: Vec<Vec<Kind>> = kinds.iter().map(|kind| vec![*kind]).collect();
            maker.of(rack, chain, &one)
        })
        .collect();
    best_of(rack, &all, switch, None, go_on)?.packed
}

/// Lemur's heuristic.
pub(crate) fn lemur(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let rack = Rack::of(problem);
    match packed(&rack, switch, go_on) {
        Ok(packed) => Ok(packed.plan(Bound::Unknown)),
        // Whatever there is, rather than nothing.
        Err(NotPlaced::Interrupted) => improved(problem, switch, go_on),
        Err(why) => Err(why),
    }
}

/// The same, on a rack.
pub(crate) fn packed(
    rack: &Rack<'_>,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Packed, NotPlaced> {
    let problem = rack.whole;
    let first = until_it_fits(problem, switch, hardware_first(problem), go_on);
    let mut plain = first.ok_or(NotPlaced::Infeasible)?;
    let strict = |joined: &Joined| joined.two_cores > joined.apart;
    let aggressive = coalesced(
        rack,
        &plain,
        |joined, chain| strict(joined) || joined.most >= chain.slo.min,
        go_on,
    );
    let conservative = coalesced(
        rack,
        &plain,
        |joined, _| strict(joined) || joined.chain_after >= joined.chain_before,
        go_on,
    );
    let mut best: Option<Packed> = None;
    for kinds in [&plain, &aggressive, &conservative] {
        if let Some(packed) = allocate(rack, switch, kinds, go_on)
            && best.as_ref().is_none_or(|best| packed.gain > best.gain)
        {
            best = Some(packed);
        }
    }
    if let Some(best) = best {
        return Ok(best);
    }
    // Cores are missing: the join that costs the least rate frees one.
    while go_on() {
        let mut least: Option<(f64, usize, Vec<Kind>)> = None;
        for (at, (chain, kinds)) in problem.chains.iter().zip(&plain).enumerate() {
            for (joined, kinds) in joins(rack, chain, kinds) {
                let cost = joined.cost();
                if least.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    least = Some((cost, at, kinds));
                }
            }
        }
        let (_, chain, kinds) = least.ok_or(NotPlaced::Infeasible)?;
        plain[chain] = kinds;
        if let Some(packed) = allocate(rack, switch, &plain, go_on) {
            return Ok(packed);
        }
    }
    Err(NotPlaced::Interrupted)
}
