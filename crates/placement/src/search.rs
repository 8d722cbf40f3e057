//! The best plan that is found in some time, with what no plan exceeds.

use crate::choose::{Chosen, OnSwitch, Task, choose};
use crate::dual::{Asking, Dual, UNIT, dual};
use crate::heuristic::{self, hardware_first, holds, until_it_fits};
use crate::options::{self, Maker, Options};
use crate::pack::{Packed, Packer};
use crate::plan::{Bound, Plan};
use crate::policy::NotPlaced;
use crate::problem::{Chain, Kind, Problem, Switch};
use crate::rack::Rack;
use crate::seat::Left;

/// More chains or functions than this are not looked at in every combination.
pub(crate) const MANY: usize = 64;

/// Parts of a search that are looked at at most: each holds what is left open.
const NODES: usize = 1 << 17;

/// What was found, and what no plan of the options exceeds, in Gb/s times price.
pub(crate) struct Outcome {
    pub packed: Option<Packed>,
    pub bound: f64,
    /// Whether time ended it.
    pub was_ended: bool,
}

fn asking<'a>(problem: &'a Problem, options: &'a [Options]) -> Vec<Asking<'a>> {
    problem.chains.iter().zip(options).collect()
}

/// The best plan of some options. `None` if a chain has none at all, or prices show that not all chains find a place.
pub(crate) fn best_of(
    rack: &Rack<'_>,
    options: &[Options],
    switch: &dyn Switch,
    known: Option<Packed>,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Outcome> {
    best_or_any(rack, options, switch, known, false, go_on)
}

fn best_or_any(
    rack: &Rack<'_>,
    options: &[Options],
    switch: &dyn Switch,
    known: Option<Packed>,
    any: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Outcome> {
    let problem = rack.whole;
    let room = Left::all(problem).by_pool(rack);
    let asking = asking(problem, options);
    let dual = dual(&room, &asking, go_on)?;
    if dual.bound < -1e-6 {
        return None;
    }
    let packer = Packer::new(rack, options, &dual);
    let fits = |placed: &OnSwitch| switch.holds(&placed.iter().copied().collect::<Vec<_>>());
    let mut best = known;
    let mut was_ended = false;
    let mut ask = || {
        let on = go_on();
        was_ended |= !on;
        on
    };
    // What is quick first: with many chains it is all that there is.
    if let Some(packed) = packer.pack(&mut || !any && ask())
        && best.as_ref().is_none_or(|best| packed.gain > best.gain)
        && fits(&packed.on_switch())
    {
        best = Some(packed);
    }
    let mut bound = dual.bound;
    if asking.len() <= MANY && !(any && best.is_some()) {
        let above = best.as_ref().map_or(f64::NEG_INFINITY, |best| best.gain);
        let task = Task { room: &room, asking: &asking, dual: &dual, above, any, nodes: NODES };
        let mut realize = |choices: &[usize]| {
            let packed = packer.realize(choices)?;
            Some((packed.gain, packed))
        };
        let Chosen { best: chosen, bound: left } = choose(&task, &fits, &mut realize, &mut ask);
        bound = bound.min(left);
        if let Some((_, packed)) = chosen {
            best = Some(packed);
        }
    }
    Some(Outcome { packed: best, bound, was_ended })
}

/// What is known of how good a plan is. Chains of which not every placement was looked at may gain all that they ask for.
fn bound_of(problem: &Problem, options: &[Options], dual: Option<&Dual>, found: &Outcome) -> Bound {
    let gain = found.packed.as_ref().map_or(0.0, |packed| packed.gain);
    let mut more = 0.0;
    for (at, (chain, options)) in problem.chains.iter().zip(options).enumerate() {
        if !options.is_all() {
            let all = chain.slo.price * (chain.slo.max - chain.slo.min) / UNIT;
            more += (all - dual.map_or(0.0, |dual| dual.values[at])).max(0.0);
        }
    }
    match found.bound + more {
        bound if bound <= gain * (1.0 + 1e-7) + 1e-7 => Bound::Best,
        bound => Bound::AtMost(bound * UNIT),
    }
}

/// Whether there is any plan; `None` if that was not found out.
pub(crate) fn feasible(
    problem: &Problem,
    switch: &dyn Switch,
    maker: &mut Maker,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<bool> {
    let rack = Rack::of(problem);
    let options: Vec<Options> =
        problem.chains.iter().map(|chain| maker.all(&rack, chain)).collect();
    let is_all = options.iter().all(Options::is_all);
    if options.iter().any(|of| of.allowed.is_empty()) {
        return is_all.then_some(false);
    }
    match best_or_any(&rack, &options, switch, None, true, go_on) {
        Some(found) if found.packed.is_some() => Some(true),
        // Nothing was left out, and nothing that hosts may hold after all.
        Some(found) => {
            let is_proven = !found.was_ended && found.bound == f64::NEG_INFINITY && is_all;
            is_proven.then_some(false)
        }
        None => is_all.then_some(false),
    }
}

/// The problem without what the switch never holds: functions for which it has no room beside those that can be nowhere else.
fn possible(problem: &Problem, switch: &dyn Switch) -> Problem {
    let mut less = problem.clone();
    let chains = problem.chains.iter().enumerate();
    let all: Vec<(usize, usize)> =
        chains.flat_map(|(at, chain)| (0..chain.functions.len()).map(move |of| (at, of))).collect();
    let kinds = |(chain, function): (usize, usize)| problem.chains[chain].kinds(function);
    let (bound, free): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|of| kinds(*of).contains(&Kind::Switch))
        .partition(|of| kinds(*of).len() == 1);
    if free.len() <= ASKED_ONE_BY_ONE && switch.holds(&bound) {
        for (chain, function) in free {
            let with: Vec<_> = bound.iter().copied().chain([(chain, function)]).collect();
            if !switch.holds(&with) {
                let on = &mut less.chains[chain].functions[function].runs_on;
                on.retain(|kind| *kind != Kind::Switch);
            }
        }
    }
    less
}

/// Functions that can run on the switch alone.
fn bound_to_switch(problem: &Problem) -> Vec<(usize, usize)> {
    let of = |(at, chain): (usize, &Chain)| {
        let bound = (0..chain.functions.len()).filter(|of| chain.kinds(*of) == [Kind::Switch]);
        bound.map(move |function| (at, function)).collect::<Vec<_>>()
    };
    problem.chains.iter().enumerate().flat_map(of).collect()
}

/// Functions about which the switch is asked one by one.
const ASKED_ONE_BY_ONE: usize = 512;

/// Options of all chains.
///
/// # Errors
/// Which chain has none.
fn all_options(
    rack: &Rack<'_>,
    problem: &Problem,
    by_switch: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Options>, NotPlaced> {
    let all = options::all(rack, problem, by_switch, go_on);
    match all.iter().position(|of| of.allowed.is_empty()) {
        Some(chain) if all[chain].is_all() => Err(NotPlaced::Alone(chain)),
        Some(chain) => Err(NotPlaced::TooMany(chain)),
        None => Ok(all),
    }
}

/// The best of all plans, as long as there is time to prove it.
pub(crate) fn exact(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let problem = &possible(problem, switch);
    let rack = Rack::of(problem);
    // What the switch holds does not matter until the best plan is too much for it.
    let plain = all_options(&rack, problem, false, go_on)?;
    let found = best_of(&rack, &plain, &crate::problem::Roomy, None, go_on);
    let found = found.ok_or(NotPlaced::Infeasible)?;
    let bound = bound_of(problem, &plain, None, &found);
    let none = if found.was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
    let Some(packed) = &found.packed else { return Err(none) };
    let on_switch: Vec<_> = packed.on_switch().into_iter().collect();
    if switch.holds(&on_switch) {
        return Ok(packed.plan(bound));
    }
    let known = heuristic::packed(&rack, switch, go_on).ok();
    let by_switch = all_options(&rack, problem, true, go_on)?;
    let found = best_of(&rack, &by_switch, switch, known, go_on).ok_or(NotPlaced::Infeasible)?;
    let bound = bound_of(problem, &by_switch, None, &found);
    let none = if found.was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
    found.packed.map(|packed| packed.plan(bound)).ok_or(none)
}

/// A plan at once, then Lemur's heuristic, then better ones as long as there is time.
pub(crate) fn improved(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let problem = &possible(problem, switch);
    let rack = Rack::of(problem);
    let all = all_options(&rack, problem, false, go_on)?;
    let hardware = hardware_first(problem);
    let is_roomy = holds(switch, &hardware);
    let mut known = None;
    if problem.chains.len() <= MANY {
        known = heuristic::packed(&rack, switch, go_on).ok();
    }
    if is_roomy {
        let found = best_of(&rack, &all, switch, known, go_on).ok_or(NotPlaced::Infeasible)?;
        let bound = bound_of(problem, &all, None, &found);
        let none = if found.was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
        return found.packed.map(|packed| packed.plan(bound)).ok_or(none);
    }
    // Only what the switch holds together is put there.
    let kept = until_it_fits(problem, switch, hardware, go_on);
    let kept = kept.ok_or_else(|| match switch.fits(&bound_to_switch(problem)) {
        Err(why) => NotPlaced::Switch(why),
        Ok(()) => NotPlaced::Infeasible,
    })?;
    let mut maker = Maker::new(false);
    let less: Vec<Options> = problem
        .chains
        .iter()
        .zip(&kept)
        .map(|(chain, kept)| {
            let kinds = kept.iter().enumerate().map(|(at, kept)| {
                let mut kinds = chain.kinds(at);
                kinds.retain(|kind| *kind != Kind::Switch || *kept == Kind::Switch);
                kinds
            });
            maker.of(&rack, chain, &kinds.collect::<Vec<_>>())
        })
        .collect();
    let less = best_of(&rack, &less, switch, known, go_on);
    let known = less.and_then(|found| found.packed);
    // What no plan exceeds if the switch holds all, or that it does not.
    let options = match problem.chains.len() <= MANY {
        true => all_options(&rack, problem, true, go_on)?,
        false => all,
    };
    let found = best_of(&rack, &options, switch, known, go_on).ok_or(NotPlaced::Infeasible)?;
    let bound = bound_of(problem, &options, None, &found);
    let none = if found.was_ended { NotPlaced::Interrupted } else { NotPlaced::Infeasible };
    found.packed.map(|packed| packed.plan(bound)).ok_or(none)
}
