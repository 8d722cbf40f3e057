//! Max-min fairness: no chain gets more as long as one with less could have it.
//!
//! By progressive filling: all chains are raised together as far as there is a plan; those that cannot be raised
//! further keep what they have, and the others go on.

use crate::options::Maker;
use crate::plan::{Bound, Plan};
use crate::policy::{NotPlaced, trimmed};
use crate::problem::{Problem, Switch};
use crate::search::{feasible, improved};

/// Steps towards the greatest rate of a level: the last is a millionth of the range.
const STEPS: usize = 20;

/// The share by which a chain is raised to see whether it can be.
const MORE: f64 = 1e-3;

/// A problem in which each chain gets at least a rate, or all that it asks for.
fn raised(problem: &Problem, rates: &[f64]) -> Problem {
    let mut raised = problem.clone();
    for (chain, rate) in raised.chains.iter_mut().zip(rates) {
        chain.slo.min = chain.slo.min.max(rate.min(chain.slo.max));
    }
    raised
}

/// Finds a plan by which the least rate of all chains is as great as possible, then the second least, and on; what is
/// left goes to where it gains most. Until `go_on` says no.
///
/// # Errors
/// Why there is none.
pub fn fair(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Plan, NotPlaced> {
    let faults = problem.faults();
    if !faults.is_empty() {
        return Err(NotPlaced::Faults(faults));
    }
    let mut plan = improved(problem, switch, go_on)?;
    let slo = |chain: usize| problem.chains[chain].slo;
    let mut rates: Vec<f64> = problem.chains.iter().map(|chain| chain.slo.min).collect();
    let mut active: Vec<usize> =
        (0..rates.len()).filter(|chain| slo(*chain).max > slo(*chain).min).collect();
    let mut maker = Maker::new(true);
    let mut can = |rates: &[f64], go_on: &mut dyn FnMut() -> bool| {
        go_on() && feasible(&raised(problem, rates), switch, &mut maker, go_on) == Some(true)
    };
    let all = |rates: &[f64], active: &[usize], rate: f64| {
        let mut with = rates.to_vec();
        active.iter().for_each(|chain| with[*chain] = with[*chain].max(rate.min(slo(*chain).max)));
        with
    };
    while !active.is_empty() && go_on() {
        let most = active.iter().map(|chain| slo(*chain).max).fold(0.0, f64::max);
        let (mut low, mut high) =
            (active.iter().map(|chain| rates[*chain]).fold(f64::INFINITY, f64::min), most);
        if can(&all(&rates, &active, most), go_on) {
            low = most;
        }
        for _ in 0..STEPS {
            if high - low <= low * MORE / 10.0 {
                break;
            }
            let middle = f64::midpoint(low, high);
            match can(&all(&rates, &active, middle), go_on) {
                true => low = middle,
                false => high = middle,
            }
        }
        rates = all(&rates, &active, low);
        // Those that others do not keep from more.
        let before = active.len();
        let more: Vec<usize> = active
            .iter()
            .copied()
            .filter(|chain| {
                let rate = rates[*chain] * (1.0 + MORE) + 1.0;
                rate <= slo(*chain).max && can(&all(&rates, &[*chain], rate), go_on)
            })
            .collect();
        active = more;
        if active.len() == before {
            break;
        }
    }
    if let Ok(found) = improved(&raised(problem, &rates), switch, go_on) {
        plan = found;
    }
    Ok(trimmed(problem, Plan { bound: Bound::Unknown, ..plan }))
}
