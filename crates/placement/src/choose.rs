//! The best choice of one option for each chain: a linear program with integers, solved by branch and
//! bound over what its relaxation leaves open.
//!
//! Chains meet in cores, links, cards and the switch alone. Each option has two columns: at the chain's least rate,
//! and at the rate that its cores allow; what is between is a mixture. The shares of a chain's columns add up to 1. The relaxation
//! bounds all plans, so the gap to it is known at any time. Options that prices (`dual`) show to be too dear are
//! left out.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use crate::dual::{Asking, Dual, Room, UNIT, value};
use crate::linear::{Column, Compare, Program, Solved};
use crate::options::Choice;
use crate::shape::Shape;

/// What is chosen.
pub(crate) struct Task<'a> {
    /// By pool: what there is of it.
    pub room: &'a [Room],
    /// Chains with their options.
    pub asking: &'a [Asking<'a>],
    /// Prices, to leave out what is too dear.
    pub dual: &'a Dual,
    /// Only what gains more than this, in Gb/s times price, is of interest.
    pub above: f64,
    /// Whether any plan will do.
    pub any: bool,
    /// Parts of the search that are looked at at most.
    pub nodes: usize,
}

/// Functions of chains on the switch: by chain and function.
pub(crate) type OnSwitch = BTreeSet<(usize, usize)>;

/// What was chosen.
pub(crate) struct Chosen<T> {
    /// What is gained, and the plan; `None` if none was found that gains more than asked for.
    pub best: Option<(f64, T)>,
    /// What no choice gains more than.
    pub bound: f64,
}

/// Chooses one option for each chain so that most is gained. `fits` says whether the switch holds what is put
/// there; `realize` makes a plan of choices on the hosts, with what it gains. `go_on` is asked before each step and ends the search with the
/// best choice so far.
pub(crate) fn choose<T>(
    task: &Task<'_>,
    fits: &dyn Fn(&OnSwitch) -> bool,
    realize: Realize<'_, T>,
    go_on: &mut dyn FnMut() -> bool,
) -> Chosen<T> {
    let mut search =
        Search { task, fits, realize, conflicts: Vec::new(), best: None, left: f64::NEG_INFINITY };
    let all = task.asking.iter().map(|(_, options)| options.allowed.clone()).collect();
    let mut open = BinaryHeap::new();
    let mut nodes = 0;
    // Without time for one step, prices alone bound what can be gained.
    match go_on() || task.above == f64::NEG_INFINITY {
        true => open.extend(search.relax(all)),
        false => search.left = task.dual.bound,
    }
    while let Some(node) = open.pop() {
        if search.is_beaten(node.bound) || task.any && search.best.is_some() {
            break;
        }
        nodes += 1;
        let has_none = nodes < FIRST && search.gain() == f64::NEG_INFINITY;
        if nodes > task.nodes || !go_on() && !has_none {
            search.left = search.left.max(node.bound);
            break;
        }
        // Conflicts may have been found since it was solved.
        if node.conflicts < search.conflicts.len() {
            open.extend(search.relax(node.allowed));
            continue;
        }
        match search.branch(&node) {
            Some(halves) => open.extend(halves.into_iter().filter_map(|half| search.relax(half))),
            // All shares are 0 or 1, but the switch or the hosts may not hold it.
            None if search.conflicts.len() > node.conflicts => {
                open.extend(search.relax(node.allowed))
            }
            None => match search.apart(&node) {
                Some(halves) => {
                    open.extend(halves.into_iter().filter_map(|half| search.relax(half)))
                }
                None => search.left = search.left.max(node.bound),
            },
        }
    }
    let gain = search.best.as_ref().map_or(task.above, |(gain, _)| *gain);
    Chosen { bound: search.left.max(gain), best: search.best }
}

/// Parts that are looked at for a first plan, even if there is no time.
const FIRST: usize = 50;

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

/// Makes a plan of choices, with what it gains.
type Realize<'a, T> = &'a mut dyn FnMut(&[usize]) -> Option<(f64, T)>;

struct Search<'a, T> {
    task: &'a Task<'a>,
    fits: &'a dyn Fn(&OnSwitch) -> bool,
    realize: Realize<'a, T>,
    conflicts: Vec<OnSwitch>,
    best: Option<(f64, T)>,
    /// The most that may be gained by what was not looked at.
    left: f64,
}

impl<T> Search<'_, T> {
    fn gain(&self) -> f64 {
        self.best.as_ref().map_or(self.task.above, |(gain, _)| *gain)
    }

    fn is_beaten(&self, bound: f64) -> bool {
        let gain = self.gain();
        gain.is_finite() && bound <= gain + GAP * (1.0 + gain.abs())
    }

    fn choice(&self, chain: usize, option: usize) -> (&Shape, &Choice) {
        self.task.asking[chain].1.choice(option)
    }

    /// Solves the relaxation; `None` if it has no solution, or none that gains enough.
    fn relax(&mut self, mut allowed: Vec<Vec<usize>>) -> Option<Node> {
        let Task { asking, room, dual, .. } = self.task;
        for ((asking, allowed), most) in asking.iter().zip(&mut allowed).zip(&dual.values) {
            let dear = |of: usize| {
                let lost = most - value(&dual.prices, *asking, of).0;
                self.is_beaten(dual.bound - lost)
            };
            allowed.retain(|of| !dear(*of));
            if allowed.is_empty() {
                return None;
            }
        }
        let mut linear = Program::most();
        let mut columns: Vec<Vec<[Column; 2]>> = Vec::new();
        let mut used: Vec<[Vec<(Column, f64)>; 4]> = vec![Default::default(); room.len()];
        for ((chain, options), allowed) in asking.iter().zip(&allowed) {
            let mut of_chain = Vec::new();
            for &option in allowed {
                let (_, choice) = options.choice(option);
                let min = chain.slo.min / UNIT;
                let rates = [min, (choice.rate / UNIT).max(min)];
                let both =
                    rates.map(|rate| linear.column(chain.slo.price * (rate - min), (0.0, 1.0)));
                of_chain.push(both);
                for ((pool, loads), used) in options.loads(option).iter().enumerate().zip(&mut used)
                {
                    for (column, rate) in both.iter().zip(rates) {
                        let of = [choice.on_pool[pool] as f64]
                            .into_iter()
                            .chain(loads.iter().map(|load| load * rate));
                        for (terms, of) in used.iter_mut().zip(of).filter(|(_, of)| *of > 0.0) {
                            terms.push((*column, of));
                        }
                    }
                }
            }
            let one = of_chain.iter().flatten().map(|column| (*column, 1.0));
            linear.row(one, Compare::Same, 1.0);
            columns.push(of_chain);
        }
        for (terms, room) in used.iter().flatten().zip(room.iter().flatten()) {
            if !terms.is_empty() {
                linear.row(terms.iter().copied(), Compare::Most, *room);
            }
        }
        for conflict in &self.conflicts {
            let chains: BTreeSet<usize> = conflict.iter().map(|(chain, _)| *chain).collect();
            let mut terms = Vec::new();
            for &chain in &chains {
                for (option, columns) in allowed[chain].iter().zip(&columns[chain]) {
                    if puts(self.choice(chain, *option).0, chain, conflict) {
                        terms.extend(columns.iter().map(|column| (*column, 1.0)));
                    }
                }
            }
            linear.row(terms, Compare::Most, chains.len() as f64 - 1.0);
        }
        let (bound, shares) = match linear.solve() {
            Solved::Infeasible => return None,
            Solved::Best(found) => {
                let share =
                    |both: &[Column; 2]| both.iter().map(|column| found.of(*column)).sum::<f64>();
                let of_chain = |of: &Vec<[Column; 2]>| of.iter().map(share).collect();
                (found.objective, columns.iter().map(of_chain).collect::<Vec<Vec<f64>>>())
            }
            // Prices bound it all the same; which options are best is open.
            Solved::Unknown => {
                let even = |of: &Vec<[Column; 2]>| vec![1.0 / of.len() as f64; of.len()];
                (dual.bound, columns.iter().map(even).collect())
            }
        };
        if self.is_beaten(bound) {
            return None;
        }
        let node = Node { allowed, shares, bound, conflicts: self.conflicts.len() };
        self.offer(&node);
        Some(node)
    }

    /// Each chain's option with the greatest share.
    fn greatest(node: &Node) -> Vec<usize> {
        let greatest = |(allowed, shares): (&Vec<usize>, &Vec<f64>)| {
            let shares = allowed.iter().zip(shares);
            shares.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(option, _)| *option)
        };
        node.allowed.iter().zip(&node.shares).map(greatest).collect()
    }

    /// Makes a plan of the options with the greatest shares, if it can be better than the best so far.
    fn offer(&mut self, node: &Node) {
        let options = Self::greatest(node);
        let mut most = 0.0;
        for (chain, option) in options.iter().enumerate() {
            let slo = &self.task.asking[chain].0.slo;
            let rate = self.choice(chain, *option).1.rate.max(slo.min);
            most += slo.price * (rate - slo.min) / UNIT;
        }
        for (pool, room) in self.task.room.iter().enumerate() {
            let of = options.iter().enumerate();
            let cores: usize =
                of.map(|(chain, option)| self.choice(chain, *option).1.on_pool[pool]).sum();
            if cores as f64 > room[0] {
                return;
            }
        }
        if self.is_beaten(most) {
            return;
        }
        let placed: OnSwitch = (options.iter().enumerate())
            .flat_map(|(chain, option)| {
                let there = self.choice(chain, *option).0.on_switch();
                there.map(move |function| (chain, function))
            })
            .collect();
        if self.conflicts.iter().any(|known| known.is_subset(&placed)) {
            return;
        }
        if !(self.fits)(&placed) {
            let conflict = self.least(placed);
            self.conflicts.push(conflict);
            return;
        }
        if let Some((gain, plan)) = (self.realize)(&options)
            && gain > self.gain()
        {
            self.best = Some((gain, plan));
        }
    }

    /// A part of what does not fit that would fit without any one of its functions.
    fn least(&self, mut placed: OnSwitch) -> OnSwitch {
        for one in placed.clone() {
            placed.remove(&one);
            if (self.fits)(&placed) {
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
        Some(halves(node, chain, allowed[..cut].to_vec(), allowed[cut..].to_vec()))
    }

    /// The option that a chain has, apart from all others; `None` if no chain has another.
    fn apart(&self, node: &Node) -> Option<[Vec<Vec<usize>>; 2]> {
        let chain = node.allowed.iter().position(|allowed| allowed.len() > 1)?;
        let has = Self::greatest(node)[chain];
        let (one, others) = node.allowed[chain].iter().partition(|option| **option == has);
        Some(halves(node, chain, one, others))
    }
}

fn halves(node: &Node, chain: usize, one: Vec<usize>, other: Vec<usize>) -> [Vec<Vec<usize>>; 2] {
    [one, other].map(|options| {
        let mut all = node.allowed.clone();
        all[chain] = options;
        all
    })
}

/// Shares are whole up to this.
const WHOLE: f64 = 1e-6;

/// Gains are the same up to this share.
const GAP: f64 = 1e-7;

/// Whether a chain's placement puts all on the switch that a conflict has of that chain.
fn puts(shape: &Shape, chain: usize, conflict: &OnSwitch) -> bool {
    let mut of_chain = conflict.iter().filter(|(of, _)| *of == chain);
    of_chain.all(|(_, function)| shape.sites[*function].host().is_none())
}
