//! How a plan is found.

use std::collections::BTreeMap;
use std::fmt;

use crate::check::check;
use crate::options::EXACT;
use crate::plan::{Bound, Placed, Plan};
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::seat::{Left, Needs, rates};
use crate::shape::Shape;
use crate::two_choices::two_choices;
use crate::{baseline, heuristic, search};

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
    /// Each chain on the less loaded of two servers (Metron §2.3.3).
    TwoChoices,
    /// The heuristic, as if every function cost the same.
    NoProfile,
    /// The heuristic, with one core for each group.
    NoCoreAllocation,
}

impl Policy {
    /// All, with their names.
    pub const ALL: [(&str, Self); 10] = [
        ("improved", Self::Improved),
        ("exact", Self::Exact),
        ("lemur", Self::Lemur),
        ("hw-preferred", Self::HwPreferred),
        ("sw-preferred", Self::SwPreferred),
        ("min-bounce", Self::MinBounce),
        ("greedy", Self::Greedy),
        ("two-choices", Self::TwoChoices),
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
    /// The switch does not hold what can run nowhere else: why, in words.
    Switch(String),
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
            NotPlaced::Switch(why) => {
                format!("the switch does not hold what can run nowhere else: {why}")
            }
            NotPlaced::Interrupted => "no plan was found in time".into(),
            NotPlaced::TooMany(chain) => format!(
                "chain {} can be placed in more than {MAX_PLACEMENTS} manners: wishes make them fewer",
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
    let trimmed = |plan: Plan| trimmed(problem, plan);
    let plan = match policy {
        Policy::Exact => return search::exact(problem, switch, go_on).map(trimmed),
        Policy::Lemur => return heuristic::lemur(problem, switch, go_on).map(trimmed),
        Policy::Improved => return search::improved(problem, switch, go_on).map(trimmed),
        Policy::HwPreferred => baseline::hw_preferred(problem, switch),
        Policy::SwPreferred => baseline::sw_preferred(problem, switch),
        Policy::MinBounce => baseline::min_bounce(problem, switch),
        Policy::Greedy => baseline::greedy(problem, switch),
        Policy::TwoChoices => two_choices(problem, switch, 1).map(|asked| asked.plan),
        Policy::NoProfile => baseline::no_profile(problem, switch, go_on),
        Policy::NoCoreAllocation => baseline::no_core_allocation(problem, switch, go_on),
    }?;
    // The simple ones do not know of wishes: what is against one is no plan.
    match check(problem, switch, &plan) {
        Ok(_) => Ok(plan),
        Err(_) => Err(NotPlaced::Infeasible),
    }
}

/// A plan without cores that its rates do not need: of plans that gain as much, that with fewer cores is better. Replicas on
/// several hosts keep theirs, as these share packets by their cores.
pub(crate) fn trimmed(problem: &Problem, mut plan: Plan) -> Plan {
    for (chain, placed) in problem.chains.iter().zip(&mut plan.chains) {
        let shape = Shape::of(problem, chain, placed.sites.clone());
        for (group, on) in placed.cores.iter_mut().enumerate() {
            if on.len() == 1 {
                let needed = placed.rate / shape.core_rate(problem, group) * (1.0 - EXACT);
                // A float becomes the nearest number that there is.
                let needed = (needed.ceil() as usize).max(1);
                on.values_mut().for_each(|cores| *cores = needed.min(*cores));
            }
        }
    }
    plan
}

/// Assignments of a chain's functions to kinds of devices that are looked at.
const MAX_PLACEMENTS: usize = 1 << 17;

/// Every assignment of a chain's functions to kinds of devices.
pub(crate) fn all_kinds(chain: &Chain) -> Option<Vec<Vec<Kind>>> {
    let mut all: Vec<Vec<Kind>> = vec![Vec::new()];
    for at in 0..chain.functions.len() {
        let kinds = chain.kinds(at);
        let with = |before: &Vec<Kind>| {
            let before = before.clone();
            let one = move |kind: &Kind| before.iter().chain([kind]).copied().collect();
            kinds.iter().map(one).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MAX_PLACEMENTS {
            return None;
        }
    }
    Some(all)
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
    let placed: Vec<Placed> = shapes
        .iter()
        .zip(cores)
        .map(|(shape, cores)| {
            let groups = shape.groups.iter().zip(cores);
            let cores = groups.map(|(group, cores)| BTreeMap::from([(group.host, cores)]));
            Placed { sites: shape.sites.clone(), cores: cores.collect(), rate: 0.0 }
        })
        .collect();
    at_best_rates(problem, placed, &limits).ok_or(NotPlaced::Infeasible)
}

/// A plan of placed chains, each at a rate of at most a limit.
pub(crate) fn at_best_rates(
    problem: &Problem,
    placed: Vec<Placed>,
    limits: &[f64],
) -> Option<Plan> {
    let of = problem.chains.iter().zip(&placed);
    let needs: Vec<Needs> = of.map(|(chain, placed)| Needs::of(problem, chain, placed)).collect();
    at_rates_of(problem, placed, &needs.iter().collect::<Vec<_>>(), limits)
}

/// The same, where it is known what they take.
pub(crate) fn at_rates_of(
    problem: &Problem,
    mut placed: Vec<Placed>,
    needs: &[&Needs],
    limits: &[f64],
) -> Option<Plan> {
    let chains: Vec<&Chain> = problem.chains.iter().collect();
    let rates = rates(&chains, needs, limits, &Left::all(problem))?;
    placed.iter_mut().zip(rates).for_each(|(placed, rate)| placed.rate = rate);
    Some(Plan { chains: placed, bound: Bound::Unknown })
}
