//! Prices of cores, links and cards: with the right ones each chain chooses for itself, and what is gained
//! then bounds every plan (Lagrangian relaxation).
//!
//! The least bound is found by cutting planes: few numbers, however many chains and hosts there are.

use crate::linear::{Compare, Program};
use crate::options::Options;
use crate::problem::Chain;

/// Of a pool: its cores, links towards hosts, links back, and cards. Rates are in Gb/s.
pub(crate) type Room = [f64; 4];

/// Rates are solved for in Gb/s, so that numbers are near 1.
pub(crate) const UNIT: f64 = 1e9;

/// A chain and its options.
pub(crate) type Asking<'a> = (&'a Chain, &'a Options);

/// Prices, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Dual {
    /// By pool: a core's price, and those of a Gb/s.
    pub prices: Vec<Room>,
    /// What no plan gains more than, in Gb/s times price, if the options are all.
    pub bound: f64,
    /// By chain: what it gains at most at these prices, once what it takes is paid.
    pub values: Vec<f64>,
}

/// What a chain gains by a choice at some prices, and whether by its greatest rate.
pub(crate) fn value(prices: &[Room], (chain, options): Asking<'_>, choice: usize) -> (f64, bool) {
    let (_, of) = options.choice(choice);
    let (mut cores, mut per_bit) = (0.0, 0.0);
    for (pool, price) in prices.iter().enumerate() {
        cores += price[0] * of.on_pool[pool] as f64;
        let load = options.loads(choice)[pool];
        per_bit += load.iter().zip(&price[1..]).map(|(load, price)| load * price).sum::<f64>();
    }
    let (min, rate) = (chain.slo.min / UNIT, of.rate.max(chain.slo.min) / UNIT);
    let least = -min * per_bit;
    let most = chain.slo.price * (rate - min) - rate * per_bit;
    (least.max(most) - cores, most > least)
}

/// The best choice of a chain at some prices.
pub(crate) fn best(prices: &[Room], asking: Asking<'_>) -> Option<(f64, usize, bool)> {
    let all = asking.1.allowed.iter().map(|choice| {
        let (value, is_most) = value(prices, asking, *choice);
        (value, *choice, is_most)
    });
    all.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
}

/// Cutting planes that are made at most.
const ROUNDS: usize = 200;

/// The bound is good enough when less than this share of it is left to be gained.
const ENOUGH: f64 = 1e-5;

/// Prices by which the bound is least, or near it. A chain without any option has none.
pub(crate) fn dual(
    room: &[Room],
    asking: &[Asking<'_>],
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Dual> {
    let limits = limits(room.len(), asking);
    let evaluate = |prices: &[Room]| {
        let mut slope: Vec<f64> = room.iter().flatten().copied().collect();
        let mut bound: f64 =
            room.iter().zip(prices).map(|(room, price)| dot(room, price)).sum::<f64>();
        let mut values = Vec::with_capacity(asking.len());
        for &(chain, options) in asking {
            let (value, choice, is_most) = best(prices, (chain, options))?;
            let (_, of) = options.choice(choice);
            let rate = if is_most { of.rate.max(chain.slo.min) } else { chain.slo.min } / UNIT;
            for (pool, loads) in options.loads(choice).iter().enumerate() {
                slope[4 * pool] -= of.on_pool[pool] as f64;
                for (at, load) in loads.iter().enumerate() {
                    slope[4 * pool + 1 + at] -= load * rate;
                }
            }
            bound += value;
            values.push(value);
        }
        Some((Dual { prices: prices.to_vec(), bound, values }, slope))
    };
    let mut planes: Vec<(f64, Vec<f64>)> = Vec::new();
    let plane = |found: &Dual, slope: Vec<f64>| {
        let at: f64 = found.prices.iter().flatten().zip(&slope).map(|(a, b)| a * b).sum();
        (found.bound - at, slope)
    };
    let (mut least, slope) = evaluate(&vec![[0.0; 4]; room.len()])?;
    planes.push(plane(&least, slope));
    for _ in 0..ROUNDS {
        if !go_on() {
            break;
        }
        let Some((under, target)) = lowest(&planes, &limits) else { break };
        if least.bound - under <= ENOUGH * (1.0 + least.bound.abs()) || least.bound < 0.0 {
            break;
        }
        // Between the lowest point of the planes and the best so far: steps that are too long do harm.
        let mut prices = least.prices.clone();
        for (price, target) in prices.iter_mut().flatten().zip(&target) {
            *price += STEP * (target - *price);
        }
        let (found, slope) = evaluate(&prices)?;
        planes.push(plane(&found, slope));
        if found.bound < least.bound {
            least = found;
        }
    }
    Some(least)
}

/// How far to go to the lowest point of the planes.
const STEP: f64 = 0.6;

fn dot(a: &Room, b: &Room) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What prices are below.
fn limits(pools: usize, asking: &[Asking<'_>]) -> Vec<f64> {
    let price = asking.iter().map(|(chain, _)| chain.slo.price).fold(0.0, f64::max);
    let rate = asking.iter().map(|(chain, _)| chain.slo.max / UNIT).fold(0.0, f64::max);
    let core = 10.0 * price * rate.max(1.0);
    (0..4 * pools).map(|at| if at % 4 == 0 { core } else { 100.0 * price }).collect()
}

/// The lowest point above all planes, and how high it is.
fn lowest(planes: &[(f64, Vec<f64>)], limits: &[f64]) -> Option<(f64, Vec<f64>)> {
    let mut linear = Program::least();
    let prices: Vec<_> = limits.iter().map(|limit| linear.column(0.0, (0.0, *limit))).collect();
    let height = linear.column(1.0, (f64::NEG_INFINITY, f64::INFINITY));
    for (at_zero, slope) in planes {
        let terms = prices.iter().zip(slope).map(|(price, slope)| (*price, -slope));
        linear.row(terms.chain([(height, 1.0)]), Compare::Least, *at_zero);
    }
    let found = linear.solve().best()?;
    Some((found.of(height), prices.iter().map(|price| found.of(*price)).collect()))
}
