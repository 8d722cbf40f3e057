//! How a plan is found.

use std::fmt;

use crate::choose::{Chosen, Options, choose, rates};
use crate::plan::{Bound, Placed, Plan};
use crate::problem::{Chain, Kind, Problem, Roomy, Switch};
use crate::shape::{Shape, on_hosts};
use crate::{baseline, heuristic};

/// How a plan is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Lemur's heuristic, then improved as long as there is time.
    Improved,
    /// The best of all plans (Lemur's "brute force", found by branch and bound).
    Exact,
    /// Lemur's heuristic alone (§2.3.2).
    Lemur,
    /// All on the switch that can be there, spare cores by turns.
    HwPreferred,
    /// All on cores that can be there.
    SwPreferred,
    /// The fewest groups.
    MinBounce,
    /// All on the switch that can be there; cores for the least rates first, then chain after chain.
    Greedy,
    /// The heuristic, as if every function cost the same.
    NoProfile,
    /// The heuristic, with one core for each group.
    NoCoreAllocation,
}

impl Policy {
    /// All, with their names.
    pub const ALL: [(&str, Self); 9] = [
        ("improved", Self::Improved),
        ("exact", Self::Exact),
        ("lemur", Self::Lemur),
        ("hw-preferred", Self::HwPreferred),
        ("sw-preferred", Self::SwPreferred),
        ("min-bounce", Self::MinBounce),
        ("greedy", Self::Greedy),
        ("no-profile", Self::NoProfile),
        ("no-core-allocation", Self::NoCoreAllocation),
    ];

    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(of, _)| *of == name).map(|(_, policy)| *policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, policy)| policy == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlaced {
    /// The problem itself is wrong, in words.
    Faults(Vec<String>),
    /// No placement of this chain meets its SLO, whatever the others take.
    Alone(usize),
    /// The policy finds no plan that gives every chain its SLO.
    Infeasible,
    /// The search ended before it found one.
    Interrupted,
    /// A chain has more placements than are looked at.
    TooMany(usize),
}

impl NotPlaced {
    /// In words.
    pub fn words(&self, problem: &Problem) -> String {
        let name = |chain: &usize| &problem.chains[*chain].name;
        match self {
            NotPlaced::Faults(faults) => faults.join("\n"),
            NotPlaced::Alone(chain) => format!(
                "no placement of chain {} meets its SLO, not even with all devices to itself",
                name(chain)
            ),
            NotPlaced::Infeasible => "not all chains get their least rates and delays".into(),
            NotPlaced::Interrupted => "no plan was found in time".into(),
            NotPlaced::TooMany(chain) => format!(
                "chain {} has more than {MAX_PLACEMENTS} placements: another policy than exact takes it",
                name(chain)
            ),
        }
    }
}

/// Finds a plan. `go_on` is asked from time to time; what was found until it says no is the answer.
///
/// # Errors
/// Why there is none.
pub fn place(
    problem: &Problem,
    switch: &dyn Switch,
    policy: Policy,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let faults = problem.faults();
    if !faults.is_empty() {
        return Err(NotPlaced::Faults(faults));
    }
    match policy {
        Policy::Exact => exact(problem, switch, go_on),
        Policy::Lemur => heuristic::lemur(problem, switch),
        Policy::Improved => heuristic::improved(problem, switch, go_on),
        Policy::HwPreferred => baseline::hw_preferred(problem, switch),
        Policy::SwPreferred => baseline::sw_preferred(problem, switch),
        Policy::MinBounce => baseline::min_bounce(problem, switch),
        Policy::Greedy => baseline::greedy(problem, switch),
        Policy::NoProfile => baseline::no_profile(problem, switch),
        Policy::NoCoreAllocation => baseline::no_core_allocation(problem, switch),
    }
}

/// Placements of a chain that are looked at.
const MAX_PLACEMENTS: usize = 1 << 20;

/// Every assignment of a chain's functions to kinds of devices.
pub(crate) fn all_kinds(chain: &Chain) -> Option<Vec<Vec<Kind>>> {
    let mut all: Vec<Vec<Kind>> = vec![Vec::new()];
    for function in &chain.functions {
        let with = |kinds: &Vec<Kind>| {
            let kinds = kinds.clone();
            let one = move |kind: &Kind| kinds.iter().chain([kind]).copied().collect();
            function.runs_on.iter().map(one)
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MAX_PLACEMENTS {
            return None;
        }
    }
    Some(all)
}

/// A chain's options with its functions on some kinds of devices.
pub(crate) fn options<'k>(
    problem: &Problem,
    chain: &Chain,
    kinds: impl IntoIterator<Item = &'k Vec<Kind>>,
    by_switch: bool,
) -> Options {
    let sites = kinds.into_iter().flat_map(|kinds| on_hosts(problem, kinds));
    let shapes = sites.map(|sites| Shape::of(problem, chain, sites));
    Options::of(problem, chain, shapes, by_switch)
}

/// The plan that was chosen.
pub(crate) fn plan(options: &[Options], chosen: &Chosen, is_all: bool) -> Plan {
    let chains = options.iter().zip(&chosen.options).zip(&chosen.rates);
    let placed = |((options, option), rate): ((&Options, &usize), &f64)| {
        let choice = &options.choices[*option];
        let sites = options.shapes[choice.shape].sites.clone();
        Placed { sites, cores: choice.cores.clone(), rate: *rate }
    };
    let bound = match is_all {
        true if chosen.bound <= chosen.gain => Bound::Best,
        true => Bound::AtMost(chosen.bound),
        false => Bound::Unknown,
    };
    Plan { chains: chains.map(placed).collect(), bound }
}

/// A plan with these placements and cores, at the best rates.
pub(crate) fn settle(
    problem: &Problem,
    shapes: &[Shape],
    cores: Vec<Vec<usize>>,
) -> Result<Plan, NotPlaced> {
    let chains = problem.chains.iter().zip(shapes).zip(&cores);
    let limits: Vec<f64> =
        chains.map(|((chain, shape), cores)| shape.rate(problem, chain, cores)).collect();
    let is_late = |(chain, shape): (&Chain, &Shape)| {
        chain.slo.delay.is_some_and(|delay| shape.delay > delay * (1.0 + 1e-9))
    };
    if problem.chains.iter().zip(shapes).any(is_late) {
        return Err(NotPlaced::Infeasible);
    }
    let all: Vec<&Shape> = shapes.iter().collect();
    let rates = rates(problem, &all, &limits).ok_or(NotPlaced::Infeasible)?;
    let placed = shapes.iter().zip(cores).zip(rates);
    let placed =
        placed.map(|((shape, cores), rate)| Placed { sites: shape.sites.clone(), cores, rate });
    Ok(Plan { chains: placed.collect(), bound: Bound::Unknown })
}

fn exact(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let kinds = problem.chains.iter().enumerate();
    let kinds = kinds.map(|(at, chain)| all_kinds(chain).ok_or(NotPlaced::TooMany(at)));
    let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    let all = |by_switch| {
        let chains = problem.chains.iter().zip(&kinds);
        chains
            .map(|(chain, kinds)| options(problem, chain, kinds, by_switch))
            .collect::<Vec<Options>>()
    };
    // What the switch holds does not matter until the best plan is too much for it.
    let plain = all(false);
    if let Some(chain) = plain.iter().position(|of| of.choices.is_empty()) {
        return Err(NotPlaced::Alone(chain));
    }
    let mut was_ended = false;
    let mut ask = || {
        let on = go_on();
        was_ended |= !on;
        on
    };
    let chosen = choose(problem, &plain, &Roomy, &mut ask);
    let found = chosen.map(|chosen| plan(&plain, &chosen, true));
    let none = if was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
    let found = found.ok_or(none)?;
    if fits(problem, switch, &found) {
        return Ok(found);
    }
    let by_switch = all(true);
    let mut was_ended = false;
    let mut ask = || {
        let on = go_on();
        was_ended |= !on;
        on
    };
    let chosen = choose(problem, &by_switch, switch, &mut ask);
    let none = if was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
    chosen.map(|chosen| plan(&by_switch, &chosen, true)).ok_or(none)
}

/// Whether the switch holds what a plan puts there.
pub(crate) fn fits(problem: &Problem, switch: &dyn Switch, plan: &Plan) -> bool {
    let chains = 0..problem.chains.len();
    let placed = chains.zip(&plan.chains).flat_map(|(chain, placed)| {
        let sites = placed.sites.iter().enumerate();
        sites.filter(|(_, site)| site.host().is_none()).map(move |(function, _)| (chain, function))
    });
    switch.fits(&placed.collect::<Vec<_>>()).is_ok()
}
