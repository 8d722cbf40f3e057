//! From the last plan to the next: when a chain, an SLO or a profile changes, or a server fails, as little is moved as
//! possible.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::check::is_possible;
use crate::dual::{UNIT, dual};
use crate::options::{self, EXACT};
use crate::pack::{Packed, Packer};
use crate::plan::{Placed, Plan, Site};
use crate::policy::{NotPlaced, at_rates_of, trimmed};
use crate::problem::{Chain, Problem, Switch};
use crate::rack::Rack;
use crate::search::{MANY, improved};
use crate::seat::{Left, Needs, Seat, gain};
use crate::shape::Shape;

/// The share by which a plan must be better than one with fewer moves.
pub const WORTH: f64 = 0.03;

/// What a moved function costs, in bits a second times price.
pub const MOVE: f64 = 1e7;

/// What a core costs that is given to another group, in the same unit.
const CORE: f64 = 1e6;

/// What a flow costs whose state moves, in the same unit.
const FLOW: f64 = 100.0;

/// How long it takes until a chain that was built runs on other cores, in seconds: that of a router with long lists
/// (`perf/swaps.md`).
const START: f64 = 0.25;

/// How long an entry of the switch takes, in seconds: one of 4,000 on Open vSwitch (`perf/targets.md`).
const ENTRY: f64 = 5e-6;

/// How long the state of a flow takes that moves to other cores, in seconds: one of 100,000, one by one (`perf/swaps.md`).
const FLOWS: f64 = 7e-7;

/// A step from one plan to the next: a chain is put on its new places, then packets go there, then it leaves the old.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The chain.
    pub chain: usize,
    /// Whether its new places have room while it is still on the old ones; if not, it falls short of its least rate until it
    /// is there.
    pub keeps_its_least: bool,
    /// What it gets until then, in bits a second, if that is less than its least rate.
    pub meanwhile: f64,
    /// How long the step takes, in seconds.
    pub takes: f64,
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
    changed(problem, switch, (last, down), problem.chains.len() <= MANY, go_on)
}

/// The next plan when a host fails: only chains that have to move do, if they find a place.
///
/// # Errors
/// Why there is none.
pub fn backup(
    problem: &Problem,
    switch: &dyn Switch,
    plan: &Plan,
    down: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Changed, NotPlaced> {
    let last: Vec<Option<Placed>> = plan.chains.iter().cloned().map(Some).collect();
    changed(problem, switch, (&last, &[down]), false, go_on)
}

/// How one plan becomes another when a host fails.
pub fn transition(problem: &Problem, plan: &Plan, down: usize, next: Plan) -> Changed {
    let last: Vec<Option<Placed>> = plan.chains.iter().cloned().map(Some).collect();
    let less = without_hosts(problem, &[down]);
    let chains = less.chains.iter().zip(&last);
    let seats: Vec<_> = chains.map(|(chain, last)| held(&less, chain, last)).collect();
    let steps = steps(problem, (&last, &seats), &[down], &next);
    Changed { moved: moved(&last, &next), steps, plan: next }
}

fn changed(
    problem: &Problem,
    switch: &dyn Switch,
    (last, down): (&[Option<Placed>], &[usize]),
    all_anew: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Changed, NotPlaced> {
    let faults = problem.faults();
    if !faults.is_empty() {
        return Err(NotPlaced::Faults(faults));
    }
    let less = match down {
        [] => Cow::Borrowed(problem),
        _ => Cow::Owned(without_hosts(problem, down)),
    };
    let seats: Vec<Option<Held>> =
        problem.chains.iter().zip(last).map(|(chain, last)| held(&less, chain, last)).collect();
    let kept = repaired(&less, switch, last, &seats, go_on);
    let best = |go_on| improved(&less, switch, go_on).map(|plan| trimmed(&less, plan));
    let of = |plan: &Plan| gained(&less, plan);
    let plan = match kept {
        // Of many chains, those that have a place keep it: what all anew would gain takes too long to be found out.
        Some(kept) if !all_anew => kept,
        Some(kept) => match best(go_on) {
            Ok(best) => {
                let moves = |plan: &Plan| price(problem, last, plan) / UNIT;
                let (gain, more) = (of(&kept), of(&best) - moves(&best) + moves(&kept));
                if more > gain + WORTH * gain.abs() { best } else { kept }
            }
            Err(_) => kept,
        },
        None => best(go_on)?,
    };
    let steps = steps(problem, (last, &seats), down, &plan);
    Ok(Changed { moved: moved(last, &plan), steps, plan })
}

/// What the change from the last plan to the next costs, in bits a second times price.
fn price(problem: &Problem, last: &[Option<Placed>], plan: &Plan) -> f64 {
    let mut price = 0.0;
    for (chain, function) in moved(last, plan) {
        price += MOVE + FLOW * problem.chains[chain].functions[function].flows as f64;
    }
    for (last, now) in last.iter().zip(&plan.chains) {
        let cores = |placed: &Placed| {
            let mut by_host = BTreeMap::new();
            let all = placed.cores.iter().flatten();
            all.for_each(|(host, cores)| *by_host.entry(*host).or_insert(0_usize) += cores);
            by_host
        };
        if let Some(last) = last {
            let before = cores(last);
            for (host, now) in cores(now) {
                let more = now.saturating_sub(before.get(&host).copied().unwrap_or(0));
                price += CORE * more as f64;
            }
        }
    }
    price
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

/// Hosts whose cores or cards a chain is on.
fn hosts(placed: &Placed) -> impl Iterator<Item = usize> {
    let of_cores = placed.cores.iter().flat_map(BTreeMap::keys).copied();
    of_cores.chain(placed.sites.iter().filter_map(|site| site.host()))
}

/// What a chain takes where it is.
#[derive(Clone)]
struct Held {
    needs: Needs,
    /// The rate that its cores allow.
    limit: f64,
    /// By group: cores that its least rate does not need.
    spare: Vec<usize>,
}

impl Held {
    fn of(problem: &Problem, chain: &Chain, shape: &Shape, placed: &Placed) -> Self {
        // Replicas on several hosts keep theirs.
        let spare = |(group, on): (usize, &BTreeMap<usize, usize>)| {
            let needed = chain.slo.min / shape.core_rate(problem, group) * (1.0 - EXACT);
            let given: usize = on.values().sum();
            if on.len() == 1 { given - (needed.ceil() as usize).clamp(1, given) } else { 0 }
        };
        let cores: Vec<usize> = placed.cores.iter().map(|on| on.values().sum()).collect();
        Self {
            needs: Needs::in_shape(shape, placed),
            limit: shape.rate(problem, chain, &cores),
            spare: placed.cores.iter().enumerate().map(spare).collect(),
        }
    }
}

/// The same, if it still has its SLO there.
fn held(problem: &Problem, chain: &Chain, last: &Option<Placed>) -> Option<Held> {
    let placed = last.as_ref()?;
    let is_there =
        |host: usize| problem.hosts.get(host).is_some_and(|of| of.cores > 0 || of.card.is_some());
    if !hosts(placed).all(is_there) || is_possible(problem, chain, placed).is_err() {
        return None;
    }
    let shape = Shape::of(problem, chain, placed.sites.clone());
    let mut with_groups = shape.groups.iter().zip(&placed.cores);
    let is_one = |on: &BTreeMap<usize, usize>| on.values().sum::<usize>() == 1;
    let may_be = with_groups.all(|(group, on)| group.replicates || is_one(on))
        && chain.slo.delay.is_none_or(|delay| shape.delay <= delay * (1.0 + EXACT));
    let held = may_be.then(|| Held::of(problem, chain, &shape, placed))?;
    (held.limit >= chain.slo.min * (1.0 - EXACT)).then_some(held)
}

/// A chain in the next plan: where it was, or elsewhere.
type Next<'a> = (Cow<'a, Placed>, Cow<'a, Held>);

/// The last plan with chains placed anew only where they must be.
fn repaired(
    problem: &Problem,
    switch: &dyn Switch,
    last: &[Option<Placed>],
    seats: &[Option<Held>],
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Plan> {
    let mut left = Left::all(problem);
    let mut held: Vec<Option<Next<'_>>> = vec![None; problem.chains.len()];
    for (at, chain) in problem.chains.iter().enumerate() {
        if let (Some(placed), Some(of)) = (&last[at], &seats[at])
            && left.holds(&of.needs, chain.slo.min, None)
        {
            left.take(&of.needs, chain.slo.min);
            held[at] = Some((Cow::Borrowed(placed), Cow::Borrowed(of)));
        }
    }
    let missing: Vec<usize> = (0..held.len()).filter(|at| held[*at].is_none()).collect();
    if !missing.is_empty() {
        let free: usize = left.cores.iter().sum();
        let mut seats = match free >= missing.len() {
            true => seated(problem, &missing, (&left, false), go_on),
            false => None,
        };
        if seats.is_none() {
            // Others have more cores than their least rates need.
            let mut more = left.clone();
            for (placed, of) in held.iter().flatten() {
                for (on, spare) in placed.cores.iter().zip(&of.spare) {
                    on.keys().for_each(|host| more.cores[*host] += spare);
                }
            }
            seats = seated(problem, &missing, (&more, true), go_on);
            let taken = seats.iter().flatten().flat_map(|seat| &seat.needs.0);
            for (host, need) in taken {
                let short = need.cores.saturating_sub(left.cores[*host]);
                left.cores[*host] -= need.cores - short;
                give_up(problem, &mut held, *host, short)?;
            }
        }
        for (at, seat) in missing.iter().zip(seats?) {
            let placed = seat.placed(0.0);
            let chain = &problem.chains[*at];
            let shape = Shape::of(problem, chain, placed.sites.clone());
            let of = Held::of(problem, chain, &shape, &placed);
            held[*at] = Some((Cow::Owned(placed), Cow::Owned(of)));
        }
    }
    let held = held.into_iter().collect::<Option<Vec<Next<'_>>>>()?;
    let (placed, held): (Vec<_>, Vec<_>) = held.into_iter().unzip();
    let limits: Vec<f64> = held.iter().map(|of| of.limit).collect();
    let needs: Vec<&Needs> = held.iter().map(|of| &of.needs).collect();
    let placed = placed.into_iter().map(Cow::into_owned).collect();
    let plan = at_rates_of(problem, placed, &needs, &limits)?;
    let on_switch = plan.chains.iter().enumerate().flat_map(|(chain, placed)| {
        let sites = placed.sites.iter().enumerate();
        let there = sites.filter(|(_, site)| **site == Site::Switch);
        there.map(move |(function, _)| (chain, function))
    });
    switch.holds(&on_switch.collect::<Vec<_>>()).then_some(plan)
}

/// Places for some chains in what is left, as if they were all; with no more than their least rates need, if others have to
/// give up cores for them.
fn seated(
    problem: &Problem,
    chains: &[usize],
    (left, is_least): (&Left, bool),
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Vec<Seat>> {
    let mut part = Problem {
        chains: chains.iter().map(|at| problem.chains[*at].clone()).collect(),
        hosts: problem.hosts.clone(),
        ..*problem
    };
    if is_least {
        part.chains.iter_mut().for_each(|chain| chain.slo.max = chain.slo.min.max(1.0));
    }
    let rack = Rack::of(&part);
    let options = options::all(&rack, &part, false, go_on);
    let asking: Vec<_> = part.chains.iter().zip(&options).collect();
    let dual = dual(&left.by_pool(&rack), &asking, go_on)?;
    let Packed { seats, .. } = Packer::within(&rack, &options, &dual, left.clone()).pack(go_on)?;
    Some(seats)
}

/// Takes so many cores of a host from chains that have more than their least rates need, each where least is lost.
fn give_up(
    problem: &Problem,
    held: &mut [Option<Next<'_>>],
    host: usize,
    cores: usize,
) -> Option<()> {
    for _ in 0..cores {
        let mut least: Option<(f64, usize, usize)> = None;
        for (at, of) in held.iter().enumerate() {
            let Some((placed, of)) = of else { continue };
            if of.needs.on(host).cores == 0 {
                continue;
            }
            let chain = &problem.chains[at];
            let shape = Shape::of(problem, chain, placed.sites.clone());
            for (group, spare) in of.spare.iter().enumerate() {
                if *spare > 0 && placed.cores[group].contains_key(&host) {
                    let mut fewer: Vec<usize> =
                        placed.cores.iter().map(|on| on.values().sum()).collect();
                    fewer[group] -= 1;
                    let lost = of.limit - shape.rate(problem, chain, &fewer);
                    let lost = chain.slo.price * lost;
                    if least.is_none_or(|(least, ..)| lost < least) {
                        least = Some((lost, at, group));
                    }
                }
            }
        }
        let (_, at, group) = least?;
        let (placed, of) = held[at].as_mut()?;
        *placed.to_mut().cores[group].get_mut(&host)? -= 1;
        let chain = &problem.chains[at];
        let shape = Shape::of(problem, chain, placed.sites.clone());
        *of = Cow::Owned(Held::of(problem, chain, &shape, placed));
    }
    Some(())
}

/// The rate that is left of a placed chain without some hosts.
fn rate_without(problem: &Problem, chain: usize, placed: &Placed, down: &[usize]) -> f64 {
    let of = &problem.chains[chain];
    let rest = |on: &BTreeMap<usize, usize>| -> usize {
        on.iter().filter(|(host, _)| !down.contains(host)).map(|(_, cores)| cores).sum()
    };
    let cores: Vec<usize> = placed.cores.iter().map(rest).collect();
    let on_lost_card = |site: &Site| matches!(site, Site::Card(host) if down.contains(host));
    match placed.sites.iter().any(on_lost_card) {
        true => 0.0,
        false => Shape::of(problem, of, placed.sites.clone()).rate(problem, of, &cores),
    }
}

/// How long a chain takes to its new places, in seconds.
fn takes(chain: &Chain, last: Option<&Placed>, now: &Placed) -> f64 {
    let mut takes = START;
    for (at, function) in chain.functions.iter().enumerate() {
        let before = last.and_then(|last| last.sites.get(at));
        if before != Some(&now.sites[at]) {
            takes += match (before, now.sites[at]) {
                (_, Site::Switch) => ENTRY * function.entries as f64,
                (Some(_), _) => FLOWS * function.flows as f64,
                (None, _) => 0.0,
            };
        }
    }
    takes
}

/// Chains that change in an order in which as many as possible keep their least rates.
fn steps(
    problem: &Problem,
    (last, seats): (&[Option<Placed>], &[Option<Held>]),
    down: &[usize],
    plan: &Plan,
) -> Vec<Step> {
    let is_up = |placed: &Placed| hosts(placed).all(|host| !down.contains(&host));
    let is_same = |last: &Option<Placed>, now: &Placed| {
        last.as_ref().is_some_and(|last| (&last.sites, &last.cores) == (&now.sites, &now.cores))
    };
    if last.iter().zip(&plan.chains).all(|(last, now)| is_same(last, now)) {
        return Vec::new();
    }
    let mut left = Left::all(problem);
    down.iter().for_each(|host| left.cores[*host] = 0);
    let needs = |chain: usize, placed: &Placed| Needs::of(problem, &problem.chains[chain], placed);
    let mut waiting = Vec::new();
    for (chain, (last, now)) in last.iter().zip(&plan.chains).enumerate() {
        let min = problem.chains[chain].slo.min;
        let was = last.as_ref().filter(|last| is_up(last)).map(|last| match &seats[chain] {
            Some(held) => Cow::Borrowed(&held.needs),
            None => Cow::Owned(needs(chain, last)),
        });
        if let Some(was) = &was {
            left.take(was, min);
        }
        if !is_same(last, now) {
            waiting.push((chain, was, needs(chain, now)));
        }
    }
    let mut steps = Vec::new();
    while !waiting.is_empty() {
        // On the same host cores are handed over one by one.
        let fits = |(chain, was, now): &(usize, Option<Cow<'_, Needs>>, Needs)| {
            left.holds(now, problem.chains[*chain].slo.min, was.as_deref())
        };
        let at = waiting.iter().position(fits);
        let (chain, was, now) = waiting.remove(at.unwrap_or(0));
        let of = &problem.chains[chain];
        if let Some(was) = &was {
            left.give(was, of.slo.min);
        }
        left.take(&now, of.slo.min);
        // Where its host failed, what is left of its replicas may be enough.
        let meanwhile = match (&last[chain], &was) {
            (None, _) => 0.0,
            (Some(_), Some(_)) if at.is_some() => of.slo.min,
            (Some(_), Some(_)) => 0.0,
            (Some(last), None) => rate_without(problem, chain, last, down).min(of.slo.min),
        };
        // What was nowhere has no rate to keep.
        let is_new = last[chain].is_none();
        let has_enough = is_new || meanwhile >= of.slo.min * (1.0 - EXACT);
        let keeps_its_least = at.is_some() && has_enough;
        let takes = takes(of, last[chain].as_ref(), &plan.chains[chain]);
        steps.push(Step { chain, keeps_its_least, meanwhile, takes });
    }
    steps
}
