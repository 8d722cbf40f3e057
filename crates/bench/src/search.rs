//! Throughput search: the greatest loads that a system forwards with no more than a given loss, after MLRsearch
//! (RFC 9971).
//!
//! A load is tried several times, and most of the trials decide whether it is a lower bound (no more loss than the
//! goal allows) or an upper bound. The search goes by ratios: it first brackets the throughput with single trials,
//! starting from what the system forwards when it is offered too much, then halves the bracket with as many trials as
//! the goal asks for, and confirms both of its ends. It draws no random numbers and reads no clock, so the same
//! answers of a system lead to the same trials.

use std::collections::BTreeMap;

use crate::report::DISTURBED;

/// What a trial at a load came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Packets offered.
    pub offered: u64,
    /// Of them, packets lost.
    pub lost: u64,
}

impl Trial {
    /// The share of packets that were lost.
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 { 0.0 } else { self.lost as f64 / self.offered as f64 }
    }
}

/// What throughput is searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The greatest share of packets that may be lost: 0 for the non-drop rate (NDR), 0.005 for the partial drop rate
    /// (PDR).
    pub loss_ratio: f64,
    /// How far apart the bounds may lie, as a share of the lower one.
    pub width: f64,
    /// Trials that decide about a load: half of them or more.
    pub trials: u32,
}

/// The loads of a search, in packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least load that is tried.
    pub min: f64,
    /// The greatest load that is tried; the search begins with it.
    pub max: f64,
}

/// What was found for a goal. Loads are packets per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalResult {
    /// The greatest load whose loss is within the goal, below the upper bound; `None` if even the least load has more.
    pub lower: Option<f64>,
    /// The least load whose loss is not; `None` if even the greatest load is within the goal.
    pub upper: Option<f64>,
    /// The conditional throughput: what is forwarded at the lower bound.
    pub throughput: f64,
    /// Trials that this goal took, besides those of goals before.
    pub trials: u32,
    /// Whether the bounds are as close as the goal asks, or at an end of the range.
    pub complete: bool,
}

/// How often what a search begins with is tried at the most.
const FIRST: usize = 3;

/// What a search begins with, and which share of the time was taken from it: it is tried again while it is disturbed or
/// worth nothing, and the best counts.
///
/// # Errors
/// The first error of an attempt.
pub(crate) fn best_of<T, E>(
    mut attempt: impl FnMut() -> Result<(T, f64), E>,
    worth: impl Fn(&T) -> f64,
) -> Result<(T, f64), E> {
    let is_good = |of: &(T, f64)| of.1 <= DISTURBED && worth(&of.0) > 0.0;
    let mut best = attempt()?;
    for _ in 1..FIRST {
        if is_good(&best) {
            break;
        }
        let again = attempt()?;
        if is_good(&again) || worth(&again.0) >= worth(&best.0) {
            best = again;
        }
    }
    Ok(best)
}

/// The bracket is so many times as wide before each load is tried several times.
const COARSE: f64 = 8.0;
/// Trials of a goal at the most: a system whose loss does not grow with the load would take any number.
const MOST_TRIALS: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
}

/// Finds the throughput for each goal; the strictest comes first. `trial` offers a load.
///
/// # Errors
/// The first error of a trial.
pub fn search<E>(
    goals: &[Goal],
    range: Range,
    trial: impl FnMut(f64) -> Result<Trial, E>,
) -> Result<Vec<GoalResult>, E> {
    let mut search = Search { trials: BTreeMap::new(), count: 0, range, trial };
    let first = search.offer(range.max)?;
    let forwarded = range.max * (1.0 - first.loss_ratio());
    let mut found: Vec<GoalResult> = Vec::new();
    for goal in goals {
        let before = if found.is_empty() { 0 } else { search.count };
        let limit = before + MOST_TRIALS;
        let mut bracket = match found.last().and_then(|found| found.lower) {
            // What is within a stricter goal is within this one.
            Some(lower) => Bracket::around(lower, lower.ln(), goal.width, range),
            None => {
                let coarse = Goal { width: COARSE * goal.width, trials: 1, ..*goal };
                let middle = forwarded.clamp(range.min, range.max).ln();
                let mut bracket = Bracket::around(
                    (middle - coarse.width / 2.0).exp(),
                    middle,
                    coarse.width / 2.0,
                    range,
                );
                search.narrow(&coarse, &mut bracket, limit)?;
                bracket.halve_first = bracket.lower < bracket.upper;
                bracket.confirmed = (false, false);
                bracket
            }
        };
        search.narrow(goal, &mut bracket, limit)?;
        let (has_lower, has_upper) = bracket.confirmed;
        let lower = has_lower.then_some(bracket.lower);
        let upper = has_upper.then_some(bracket.upper);
        found.push(GoalResult {
            lower,
            upper,
            throughput: lower.map_or(0.0, |load| search.throughput(load, goal)),
            trials: search.count - before,
            complete: search.count < limit,
        });
    }
    Ok(found)
}

/// Loads between which the throughput is thought to be.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    lower: f64,
    upper: f64,
    /// Whether each was found to be a bound.
    confirmed: (bool, bool),
    /// Whether it is halved before its ends are confirmed: it is likely right.
    halve_first: bool,
}

impl Bracket {
    /// From a load to `width` above the middle, both in the range; widths and `middle` are logarithms.
    fn around(lower: f64, middle: f64, width: f64, range: Range) -> Self {
        Self {
            lower: lower.clamp(range.min, range.max),
            upper: (middle + width).exp().clamp(range.min, range.max),
            confirmed: (false, false),
            halve_first: false,
        }
    }
}

struct Search<F> {
    /// By load: the bits of positive numbers are in their order.
    trials: BTreeMap<u64, Vec<Trial>>,
    count: u32,
    range: Range,
    trial: F,
}

impl<E, F: FnMut(f64) -> Result<Trial, E>> Search<F> {
    fn offer(&mut self, load: f64) -> Result<Trial, E> {
        let trial = (self.trial)(load)?;
        self.count += 1;
        self.trials.entry(load.to_bits()).or_default().push(trial);
        Ok(trial)
    }

    /// What the trials at a load say of it, if there were enough. A load is an upper bound if more than half of the
    /// trials that decide lost too much, and a lower bound if the others can no longer make it one.
    fn classify(&self, load: f64, goal: &Goal) -> Option<Bound> {
        let trials = self.trials.get(&load.to_bits())?;
        let good = trials.iter().filter(|t| t.loss_ratio() <= goal.loss_ratio).count();
        let (bad, all) = (trials.len() - good, trials.len().max(goal.trials as usize));
        match () {
            () if 2 * bad > all => Some(Bound::Upper),
            () if 2 * good >= all => Some(Bound::Lower),
            () => None,
        }
    }

    /// Tries a load until it is decided.
    fn decide(&mut self, load: f64, goal: &Goal) -> Result<Bound, E> {
        loop {
            match self.classify(load, goal) {
                Some(bound) => return Ok(bound),
                None => self.offer(load)?,
            };
        }
    }

    /// Moves the ends of a bracket until both are bounds and close, or one is at an end of the range.
    fn narrow(&mut self, goal: &Goal, bracket: &mut Bracket, limit: u32) -> Result<(), E> {
        let Range { min, max } = self.range;
        let mut step = goal.width;
        while self.count < limit {
            let is_close = (bracket.upper / bracket.lower).ln() <= goal.width * 1.000_001;
            match bracket.confirmed {
                _ if bracket.halve_first && !is_close => self.halve(goal, bracket)?,
                (false, _) => match self.decide(bracket.lower, goal)? {
                    Bound::Lower => bracket.confirmed.0 = true,
                    Bound::Upper => {
                        (bracket.upper, bracket.confirmed.1) = (bracket.lower, true);
                        if bracket.lower <= min {
                            return Ok(());
                        }
                        bracket.lower = (bracket.lower * (-step).exp()).max(min);
                        (step, bracket.halve_first) = (2.0 * step, false);
                    }
                },
                (_, false) => match self.decide(bracket.upper, goal)? {
                    Bound::Upper => bracket.confirmed.1 = true,
                    Bound::Lower => {
                        (bracket.lower, bracket.confirmed.0) = (bracket.upper, true);
                        if bracket.upper >= max {
                            return Ok(());
                        }
                        bracket.upper = (bracket.upper * step.exp()).min(max);
                        (step, bracket.halve_first) = (2.0 * step, false);
                    }
                },
                _ if !is_close => self.halve(goal, bracket)?,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn halve(&mut self, goal: &Goal, bracket: &mut Bracket) -> Result<(), E> {
        let middle = (bracket.lower * bracket.upper).sqrt();
        match self.decide(middle, goal)? {
            Bound::Lower => (bracket.lower, bracket.confirmed.0) = (middle, true),
            Bound::Upper => (bracket.upper, bracket.confirmed.1) = (middle, true),
        }
        Ok(())
    }

    /// What is forwarded at a lower bound: the load less the greatest loss of the better half of its trials.
    fn throughput(&self, load: f64, goal: &Goal) -> f64 {
        let mut losses: Vec<f64> =
            self.trials[&load.to_bits()].iter().map(Trial::loss_ratio).collect();
        losses.sort_by(f64::total_cmp);
        let deciding = losses.len().max(goal.trials as usize).div_ceil(2);
        load * (1.0 - losses[deciding.min(losses.len()) - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NDR: Goal = Goal { loss_ratio: 0.0, width: 0.005, trials: 3 };
    const PDR: Goal = Goal { loss_ratio: 0.005, ..NDR };
    const RANGE: Range = Range { min: 1e3, max: 1e8 };

    /// A device that forwards all up to a limit, and when it is offered more, `overloaded` of the limit.
    fn device(limit: f64, overloaded: f64) -> impl FnMut(f64) -> Result<Trial, ()> {
        move |load| {
            let offered = (load * 0.3) as u64;
            let forwarded = if load <= limit { load } else { limit * overloaded } * 0.3;
            Ok(Trial { offered, lost: offered.saturating_sub(forwarded as u64) })
        }
    }

    #[test]
    fn a_known_limit_is_found_within_one_per_cent_in_twenty_trials() {
        for exponent in 0..200 {
            let limit = 2e4 * 1.04f64.powi(exponent);
            for overloaded in [1.0, 0.99, 0.9, 0.5] {
                let found = search(&[NDR], RANGE, device(limit, overloaded)).unwrap()[0];
                assert!(found.complete && found.trials <= 20, "{limit} {overloaded} {found:?}");
                let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
                assert!(lower <= limit && upper > limit, "{limit} {overloaded} {found:?}");
                assert!((found.throughput / limit - 1.0).abs() < 0.01, "{limit} {found:?}");
                assert!((upper / lower).ln() <= NDR.width * 1.01, "{found:?}");
            }
        }
    }

    #[test]
    fn more_loss_allows_more_load() {
        let limit = 12_345_678.0;
        let found = search(&[NDR, PDR], RANGE, device(limit, 1.0)).unwrap();
        let [ndr, pdr] = found[..] else { panic!("{found:?}") };
        assert!(pdr.lower > ndr.lower && pdr.trials < 10, "{found:?}");
        // At the limit / 0.995, half a per cent is lost, and the limit is forwarded.
        let most = limit / 0.995;
        assert!(pdr.lower.unwrap() <= most && pdr.upper.unwrap() > most, "{pdr:?}");
        assert!((pdr.throughput / limit - 1.0).abs() < 0.01, "{pdr:?}");
    }

    #[test]
    fn ends_of_the_range_are_no_bounds() {
        let fast = search(&[NDR, PDR], RANGE, device(1e9, 1.0)).unwrap();
        for found in fast {
            assert_eq!((found.lower, found.upper), (Some(RANGE.max), None));
            assert!(found.complete);
        }
        let dead = search(&[NDR, PDR], RANGE, device(1.0, 1.0)).unwrap();
        for found in dead {
            assert_eq!((found.lower, found.upper, found.throughput), (None, Some(RANGE.min), 0.0));
            assert!(found.complete);
        }
    }

    #[test]
    fn a_trial_that_was_disturbed_does_not_decide() {
        let limit = 3e6;
        // Every fifth trial loses packets whatever the load is.
        let (mut device, mut count) = (device(limit, 1.0), 0);
        let disturbed = |load| {
            count += 1;
            let trial = device(load)?;
            let lost = if count % 5 == 0 { trial.lost.max(trial.offered / 10) } else { trial.lost };
            Ok::<_, ()>(Trial { lost, ..trial })
        };
        let found = search(&[NDR], RANGE, disturbed).unwrap()[0];
        assert!((found.throughput / limit - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn what_a_search_begins_with_is_tried_again_if_it_was_disturbed() {
        let tries = |all: &[(f64, f64)]| {
            let mut left = all.iter();
            let best = best_of(|| left.next().copied().ok_or("too often"), |rate| *rate);
            (best, all.len() - left.len())
        };
        assert_eq!(tries(&[(2e6, 0.0), (9e6, 0.0)]), (Ok((2e6, 0.0)), 1));
        assert_eq!(tries(&[(4e4, 0.6), (2e6, 0.0)]), (Ok((2e6, 0.0)), 2));
        assert_eq!(tries(&[(2e6, 0.6), (1e6, 0.0)]), (Ok((1e6, 0.0)), 2));
        assert_eq!(tries(&[(0.0, 0.0), (2e6, 0.6), (1e6, 0.7)]), (Ok((2e6, 0.6)), 3));
        assert_eq!(tries(&[(0.0, 0.0); 5]), (Ok((0.0, 0.0)), 3));
        assert_eq!(tries(&[(0.0, 0.0)]), (Err("too often"), 1));
    }

    #[test]
    fn a_search_ends_whatever_a_system_does() {
        let mut random = fastrand::Rng::with_seed(7);
        let erratic = |_| Ok::<_, ()>(Trial { offered: 100, lost: random.u64(..2) });
        let found = search(&[NDR, PDR], RANGE, erratic).unwrap();
        assert!(found.iter().all(|found| found.trials <= MOST_TRIALS + NDR.trials), "{found:?}");
        assert_eq!(search(&[NDR], RANGE, |_| Err("gone")), Err("gone"));
    }
}
