//! The best choice of one option for each chain: a linear program with integers, solved by branch and
//! bound over what its relaxation leaves open.
//!
//! An option is a placement of a chain with its cores. Chains meet in cores, links, cards and the
//! switch alone. By option there are a share `x` and a rate above the least `s`: the shares of a chain
//! add up to 1, and `s` is at most `x` times what the option allows. The relaxation bounds all plans, so
//! the gap to it is known at any time.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use microlp::{
    ComparisonOp, OptimizationDirection, Problem as Linear, Solution, SolveOutcome, Variable,
};

use crate::problem::{Chain, Problem, Switch};
use crate::shape::{Allocation, Load, Shape};

/// A placement of a chain with its cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Which of the chain's placements.
    pub shape: usize,
    /// Cores of its groups.
    pub cores: Vec<usize>,
    /// Cores by host.
    pub on_host: Vec<usize>,
    /// The rate that the cores allow.
    pub rate: f64,
}

/// A chain's placements, and the options that they make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Placements.
    pub shapes: Vec<Shape>,
    /// Options that meet the chain's least rate and its delay.
    pub choices: Vec<Choice>,
}

impl Options {
    /// The options of some placements. Those that gain nothing over others are left out; with
    /// `by_switch`, only if those others put no other functions on the switch.
    pub fn of(
        problem: &Problem,
        chain: &Chain,
        shapes: impl IntoIterator<Item = Shape>,
        by_switch: bool,
    ) -> Self {
        let mut options = Self::default();
        for shape in shapes {
            if chain.slo.delay.is_some_and(|delay| shape.delay > delay * (1.0 + EXACT)) {
                continue;
            }
            let number = options.shapes.len();
            let mut is_used = false;
            for Allocation { cores, rate } in shape.allocations(problem, chain) {
                if rate < chain.slo.min * (1.0 - EXACT) {
                    continue;
                }
                let mut on_host = vec![0; problem.hosts.len()];
                for (group, cores) in shape.groups.iter().zip(&cores) {
                    on_host[group.host] += cores;
                }
                let new = Choice { shape: number, cores, on_host, rate };
                is_used |= options.add(&shape, new, by_switch);
            }
            if is_used {
                options.shapes.push(shape);
            }
        }
        options.compact();
        options
    }

    /// Adds an option unless another is as good, and removes those that it is as good as.
    fn add(&mut self, shape: &Shape, new: Choice, by_switch: bool) -> bool {
        let shapes = &self.shapes;
        // An option of the placement at hand is not among those kept yet.
        let of = |choice: &Choice| shapes.get(choice.shape).unwrap_or(shape);
        if self.choices.iter().any(|old| is_as_good((of(old), old), (shape, &new), by_switch)) {
            return false;
        }
        self.choices.retain(|old| {
            let old_shape = shapes.get(old.shape).unwrap_or(shape);
            !is_as_good((shape, &new), (old_shape, old), by_switch)
        });
        self.choices.push(new);
        true
    }

    /// Without placements that no option has.
    fn compact(&mut self) {
        let used: BTreeSet<usize> = self.choices.iter().map(|choice| choice.shape).collect();
        let numbers: Vec<usize> = used.into_iter().collect();
        let shapes = numbers.iter().map(|&number| self.shapes[number].clone()).collect();
        self.shapes = shapes;
        for choice in &mut self.choices {
            choice.shape = numbers.binary_search(&choice.shape).unwrap_or(0);
        }
        let key = |choice: &Choice| (choice.on_host.iter().sum::<usize>(), choice.shape);
        self.choices.sort_by(|a, b| key(a).cmp(&key(b)).then(a.rate.total_cmp(&b.rate)));
    }
}

/// Relative error up to which numbers are the same.
const EXACT: f64 = 1e-9;

/// Whether one option takes no more of anything than another, and gives as much.
fn is_as_good(one: (&Shape, &Choice), other: (&Shape, &Choice), by_switch: bool) -> bool {
    let more = |a: f64, b: f64| a > b + EXACT * (1.0 + b.abs());
    let ((shape, one), (other_shape, other)) = (one, other);
    let loads = shape.loads.iter().zip(&other_shape.loads);
    !more(other.rate, one.rate)
        && one.on_host.iter().zip(&other.on_host).all(|(a, b)| a <= b)
        && !loads.clone().any(|(a, b)| {
            more(a.inward, b.inward) || more(a.outward, b.outward) || more(a.card, b.card)
        })
        && (!by_switch || {
            let there: BTreeSet<usize> = other_shape.on_switch().collect();
            shape.on_switch().all(|function| there.contains(&function))
        })
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// By chain: which of its options.
    pub options: Vec<usize>,
    /// By chain: its rate.
    pub rates: Vec<f64>,
    /// What is gained: rates above the least, times their prices.
    pub gain: f64,
    /// What no choice gains more than.
    pub bound: f64,
}

/// Functions that a switch cannot hold together.
type Conflict = BTreeSet<(usize, usize)>;

/// Chooses one option for each chain so that most is gained; `go_on` is asked before each step and ends
/// the search with the best choice so far. `None` if there is none, or none was found until then.
pub fn choose(
    problem: &Problem,
    options: &[Options],
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Chosen> {
    let mut search = Search { problem, options, switch, conflicts: Vec::new(), best: None };
    let all = options.iter().map(|of| (0..of.choices.len()).collect()).collect();
    let mut open = BinaryHeap::new();
    open.extend(search.relax(all));
    let mut left = f64::NEG_INFINITY;
    while let Some(node) = open.pop() {
        if search.is_beaten(node.bound) {
            break;
        }
        if !go_on() {
            left = node.bound;
            break;
        }
        // Conflicts may have been found since it was solved.
        if node.conflicts < search.conflicts.len() {
            open.extend(search.relax(node.allowed));
            continue;
        }
        match search.branch(&node) {
            Some(halves) => open.extend(halves.into_iter().filter_map(|half| search.relax(half))),
            None => {
                // All shares are 0 or 1, but the switch may not hold it.
                if !search.offer(&node) {
                    open.extend(search.relax(node.allowed));
                }
            }
        }
    }
    let best = search.best?;
    Some(Chosen { bound: best.gain.max(left), ..best })
}

/// Allowed options of each chain, and the best of their relaxation.
struct Node {
    allowed: Vec<Vec<usize>>,
    /// By chain: the shares of its allowed options.
    shares: Vec<Vec<f64>>,
    bound: f64,
    conflicts: usize,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

struct Search<'a> {
    problem: &'a Problem,
    options: &'a [Options],
    switch: &'a dyn Switch,
    conflicts: Vec<Conflict>,
    best: Option<Chosen>,
}

impl Search<'_> {
    fn is_beaten(&self, bound: f64) -> bool {
        self.best.as_ref().is_some_and(|best| bound <= best.gain + GAP * (1.0 + best.gain.abs()))
    }

    fn choice(&self, chain: usize, option: usize) -> (&Shape, &Choice) {
        let options = &self.options[chain];
        let choice = &options.choices[option];
        (&options.shapes[choice.shape], choice)
    }

    /// Solves the relaxation; `None` if it has no solution, or none that gains enough.
    fn relax(&mut self, allowed: Vec<Vec<usize>>) -> Option<Node> {
        let problem = self.problem;
        let mut linear = Linear::new(OptimizationDirection::Maximize);
        let mut shares: Vec<Vec<Variable>> = Vec::new();
        let hosts = problem.hosts.len();
        let mut cores: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); hosts];
        let mut loads: Vec<[Vec<(Variable, f64)>; 3]> = vec![Default::default(); hosts];
        for (at, (chain, allowed)) in problem.chains.iter().zip(&allowed).enumerate() {
            let mut of_chain = Vec::new();
            for &option in allowed {
                let (shape, choice) = self.choice(at, option);
                let above = (choice.rate - chain.slo.min).max(0.0) / UNIT;
                let min = chain.slo.min / UNIT;
                let share = linear.add_var(0.0, (0.0, 1.0));
                let extra = linear.add_var(chain.slo.price, (0.0, above));
                linear.add_constraint([(extra, 1.0), (share, -above)], ComparisonOp::Le, 0.0);
                of_chain.push(share);
                for host in 0..hosts {
                    if choice.on_host[host] > 0 {
                        cores[host].push((share, choice.on_host[host] as f64));
                    }
                    for (of, terms) in per_bit(&shape.loads[host]).into_iter().zip(&mut loads[host])
                    {
                        if of > 0.0 {
                            terms.extend([(share, of * min), (extra, of)]);
                        }
                    }
                }
            }
            let one = of_chain.iter().map(|share| (*share, 1.0));
            linear.add_constraint(one, ComparisonOp::Eq, 1.0);
            shares.push(of_chain);
        }
        for host in 0..hosts {
            let there = &problem.hosts[host];
            linear.add_constraint(&cores[host], ComparisonOp::Le, there.cores as f64);
            for (terms, room) in loads[host].iter().zip(room(problem, host)) {
                linear.add_constraint(terms, ComparisonOp::Le, room / UNIT);
            }
        }
        for conflict in &self.conflicts {
            let chains: BTreeSet<usize> = conflict.iter().map(|(chain, _)| *chain).collect();
            let mut terms = Vec::new();
            for &chain in &chains {
                for (option, share) in allowed[chain].iter().zip(&shares[chain]) {
                    if puts(self.choice(chain, *option).0, chain, conflict) {
                        terms.push((*share, 1.0));
                    }
                }
            }
            linear.add_constraint(terms, ComparisonOp::Le, chains.len() as f64 - 1.0);
        }
        let solution = solve(&linear)?;
        let bound = solution.objective() * UNIT;
        if self.is_beaten(bound) {
            return None;
        }
        let shares = shares.iter().map(|of| of.iter().map(|share| solution[*share]).collect());
        let shares: Vec<Vec<f64>> = shares.collect();
        let node = Node { allowed, shares, bound, conflicts: self.conflicts.len() };
        self.offer(&node);
        Some(node)
    }

    /// Takes each chain's option with the greatest share for a plan. Whether the switch holds it.
    fn offer(&mut self, node: &Node) -> bool {
        let greatest = |(allowed, shares): (&Vec<usize>, &Vec<f64>)| {
            let shares = allowed.iter().zip(shares);
            shares.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(option, _)| *option)
        };
        let options: Vec<usize> = node.allowed.iter().zip(&node.shares).map(greatest).collect();
        let chosen: Vec<(&Shape, &Choice)> =
            options.iter().enumerate().map(|(chain, option)| self.choice(chain, *option)).collect();
        for host in 0..self.problem.hosts.len() {
            let cores: usize = chosen.iter().map(|(_, choice)| choice.on_host[host]).sum();
            if cores > self.problem.hosts[host].cores {
                return true;
            }
        }
        let limits: Vec<f64> = chosen.iter().map(|(_, choice)| choice.rate).collect();
        let shapes: Vec<&Shape> = chosen.iter().map(|(shape, _)| *shape).collect();
        let Some(rates) = rates(self.problem, &shapes, &limits) else { return true };
        let gain = gain(self.problem, &rates);
        if self.best.as_ref().is_some_and(|best| gain <= best.gain) {
            return true;
        }
        let placed: Conflict = shapes
            .iter()
            .enumerate()
            .flat_map(|(chain, shape)| shape.on_switch().map(move |function| (chain, function)))
            .collect();
        if self.conflicts.iter().any(|known| known.is_subset(&placed)) {
            return true;
        }
        if !self.fits(&placed) {
            let conflict = self.least(placed);
            self.conflicts.push(conflict);
            return false;
        }
        self.best = Some(Chosen { options, rates, gain, bound: f64::INFINITY });
        true
    }

    fn fits(&self, placed: &Conflict) -> bool {
        let placed: Vec<(usize, usize)> = placed.iter().copied().collect();
        self.switch.fits(&placed).is_ok()
    }

    /// A part of what does not fit that would fit without any one of its functions.
    fn least(&self, mut placed: Conflict) -> Conflict {
        for one in placed.clone() {
            placed.remove(&one);
            if self.fits(&placed) {
                placed.insert(one);
            }
        }
        placed
    }

    /// Two halves of the allowed options of a chain whose shares are broken; `None` if all are whole.
    fn branch(&self, node: &Node) -> Option<[Vec<Vec<usize>>; 2]> {
        let broken = |shares: &Vec<f64>| 1.0 - shares.iter().copied().fold(0.0, f64::max);
        let worst = node.shares.iter().enumerate().map(|(chain, shares)| (chain, broken(shares)));
        let (chain, by) = worst.max_by(|a, b| a.1.total_cmp(&b.1))?;
        if by < WHOLE {
            return None;
        }
        let allowed = &node.allowed[chain];
        // Options are ordered by their cores: those on either side of the average are apart.
        let position = |(at, share): (usize, &f64)| at as f64 * share;
        let middle: f64 = node.shares[chain].iter().enumerate().map(position).sum();
        let cut = (middle.floor() as usize + 1).clamp(1, allowed.len() - 1);
        let half = |options: &[usize]| {
            let mut all = node.allowed.clone();
            all[chain] = options.to_vec();
            all
        };
        Some([half(&allowed[..cut]), half(&allowed[cut..])])
    }
}

/// Shares are whole up to this.
const WHOLE: f64 = 1e-6;

/// Gains are the same up to this share.
const GAP: f64 = 1e-7;

/// Rates are solved for in Gb/s, so that numbers are near 1.
const UNIT: f64 = 1e9;

/// Whether a chain's placement puts all on the switch that a conflict has of that chain.
fn puts(shape: &Shape, chain: usize, conflict: &Conflict) -> bool {
    let mut of_chain = conflict.iter().filter(|(of, _)| *of == chain);
    of_chain.all(|(_, function)| shape.sites[*function].host().is_none())
}

/// What each bit of a chain takes of a host's link in both directions, and of its card.
fn per_bit(load: &Load) -> [f64; 3] {
    [load.inward, load.outward, load.card]
}

/// What a host has of that.
fn room(problem: &Problem, host: usize) -> [f64; 3] {
    let link = problem.link_rate(host);
    [link, link, problem.card_rate(host, 1.0)]
}

/// The optimum; `None` if there is none.
fn solve(linear: &Linear) -> Option<Solution> {
    match linear.solve() {
        Ok(SolveOutcome::Solution(solution)) => Some(solution),
        _ => None,
    }
}

/// What chains gain by their rates.
pub fn gain(problem: &Problem, rates: &[f64]) -> f64 {
    let of = |(chain, rate): (&Chain, &f64)| chain.slo.price * (rate - chain.slo.min);
    problem.chains.iter().zip(rates).map(of).sum()
}

/// The rates of chains by which most is gained, each at least its least and at most a limit; `None` if links and cards
/// do not carry even the least.
pub fn rates(problem: &Problem, shapes: &[&Shape], limits: &[f64]) -> Option<Vec<f64>> {
    let mut linear = Linear::new(OptimizationDirection::Maximize);
    let mut of_chain = Vec::new();
    for (chain, limit) in problem.chains.iter().zip(limits) {
        if *limit < chain.slo.min * (1.0 - EXACT) {
            return None;
        }
        let bounds = (chain.slo.min / UNIT, limit.max(chain.slo.min) / UNIT);
        of_chain.push(linear.add_var(chain.slo.price, bounds));
    }
    for host in 0..problem.hosts.len() {
        for (at, room) in room(problem, host).into_iter().enumerate() {
            let terms = of_chain.iter().zip(shapes);
            let terms = terms.map(|(rate, shape)| (*rate, per_bit(&shape.loads[host])[at]));
            let terms: Vec<(Variable, f64)> = terms.filter(|(_, of)| *of > 0.0).collect();
            if !terms.is_empty() {
                linear.add_constraint(terms, ComparisonOp::Le, room / UNIT);
            }
        }
    }
    let solution = solve(&linear)?;
    Some(of_chain.iter().map(|rate| solution[*rate] * UNIT).collect())
}
