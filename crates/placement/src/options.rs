//! A chain's options: placements on pools with their cores, of which none is worse than another in everything.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::plan::Site;
use crate::problem::{Chain, Kind, Problem};
use crate::rack::{LANES, Rack};
use crate::search::MANY;
use crate::shape::{Allocation, Shape};

/// A placement of a chain with its cores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// Which of the chain's placements.
    pub shape: usize,
    /// Cores of its groups.
    pub cores: Vec<usize>,
    /// Cores by pool.
    pub on_pool: Vec<usize>,
    /// The rate that the cores allow.
    pub rate: f64,
}

/// Placements, and the choices that they make.
#[derive(Debug, Default)]
pub(crate) struct Front {
    pub shapes: Vec<Shape>,
    /// By placement and pool: what each bit takes of links towards hosts, of those back, and of cards.
    pub loads: Vec<Vec<[f64; 3]>>,
    /// By growing cores.
    pub choices: Vec<Choice>,
    /// Whether every placement was looked at.
    pub is_all: bool,
}

/// What a chain can choose from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    front: Rc<Front>,
    /// Choices that meet its least rate.
    pub allowed: Vec<usize>,
}

/// Relative error up to which numbers are the same.
pub(crate) const EXACT: f64 = 1e-9;

impl Options {
    pub(crate) fn choice(&self, number: usize) -> (&Shape, &Choice) {
        let choice = &self.front.choices[number];
        (&self.front.shapes[choice.shape], choice)
    }

    /// By pool: what each bit takes.
    pub(crate) fn loads(&self, number: usize) -> &[[f64; 3]] {
        &self.front.loads[self.front.choices[number].shape]
    }

    pub(crate) fn is_all(&self) -> bool {
        self.front.is_all
    }
}

/// Where a chain's functions can run, and whether that is all.
type Sites = (Vec<Vec<Site>>, bool);

/// Options of chains, made once for those that are alike.
pub(crate) struct Maker {
    by_switch: bool,
    made: BTreeMap<String, Rc<Front>>,
}

impl Maker {
    /// With `by_switch`, an option is worse than another only if that puts no more on the switch.
    pub(crate) fn new(by_switch: bool) -> Self {
        Self { by_switch, made: BTreeMap::new() }
    }

    /// All options of a chain.
    pub(crate) fn all(&mut self, rack: &Rack<'_>, chain: &Chain) -> Options {
        let kinds = (0..chain.functions.len()).map(|at| chain.kinds(at));
        self.of(rack, chain, &kinds.collect::<Vec<_>>())
    }

    /// Those with each function on one of some kinds of devices.
    pub(crate) fn of(&mut self, rack: &Rack<'_>, chain: &Chain, kinds: &[Vec<Kind>]) -> Options {
        self.made(rack, chain, kinds, &|chain| rack.sites(chain, kinds))
    }

    /// Only those with all on the switch that can be there, and with all on cores: these take no time.
    pub(crate) fn few(&mut self, rack: &Rack<'_>, chain: &Chain) -> Options {
        self.made(rack, chain, &[], &|chain| {
            let first = |kinds: [Kind; 3]| {
                let one = |at| vec![kinds.into_iter().find(|kind| chain.can(at, *kind))];
                let all = (0..chain.functions.len()).map(one);
                all.map(|of| of.into_iter().flatten().collect()).collect::<Vec<Vec<Kind>>>()
            };
            let both = [
                first([Kind::Switch, Kind::Card, Kind::Core]),
                first([Kind::Core, Kind::Switch, Kind::Card]),
            ];
            (both.iter().flat_map(|kinds| rack.sites(chain, kinds).0).collect(), false)
        })
    }

    fn made(
        &mut self,
        rack: &Rack<'_>,
        chain: &Chain,
        kinds: &[Vec<Kind>],
        sites: &dyn Fn(&Chain) -> Sites,
    ) -> Options {
        let mut general = Chain { name: String::new(), ..chain.clone() };
        (general.slo.min, general.slo.price) = (0.0, 1.0);
        general.functions.iter_mut().for_each(|of| (of.entries, of.flows) = (0, 0));
        let key = format!("{general:?} {kinds:?}");
        let by_switch = self.by_switch;
        let front = self.made.entry(key);
        let front =
            front.or_insert_with(|| Rc::new(front_of(rack, &general, sites(&general), by_switch)));
        let enough = |number: &usize| front.choices[*number].rate >= chain.slo.min * (1.0 - EXACT);
        let allowed = (0..front.choices.len()).filter(enough).collect();
        Options { front: Rc::clone(front), allowed }
    }
}

fn front_of(rack: &Rack<'_>, chain: &Chain, (all, is_all): Sites, by_switch: bool) -> Front {
    let pools = rack.pools.len();
    let lanes = &rack.lanes;
    let in_all: Vec<usize> = (0..pools).map(|pool| rack.cores(pool)).collect();
    let mut front = Front { is_all, ..Front::default() };
    let mut found: Vec<(Choice, f64)> = Vec::new();
    for sites in all {
        let shape = Shape::of(lanes, chain, sites);
        if chain.slo.delay.is_some_and(|delay| shape.delay > delay * (1.0 + EXACT)) {
            continue;
        }
        let mut loads = vec![[0.0; 3]; pools];
        for island in &shape.islands {
            let of = island.load;
            let sum = loads[island.host / LANES].iter_mut();
            sum.zip([of.inward, of.outward, of.card]).for_each(|(sum, of)| *sum += of);
        }
        let number = front.shapes.len();
        let weight: f64 = loads.iter().flatten().sum();
        let on_lane = |lane: usize| in_all[lane / LANES];
        let at_once = |lane: usize| lanes.hosts[lane].cores;
        let before = found.len();
        for Allocation { cores, rate } in shape.allocations(lanes, chain, on_lane, at_once) {
            let mut on_pool = vec![0; pools];
            for (group, cores) in shape.groups.iter().zip(&cores) {
                on_pool[group.host / LANES] += cores;
            }
            if on_pool.iter().zip(&in_all).all(|(used, there)| used <= there) {
                found.push((Choice { shape: number, cores, on_pool, rate }, weight));
            }
        }
        if found.len() > before {
            front.shapes.push(shape);
            front.loads.push(loads);
        }
    }
    // None is as good as one before it that is better.
    let cores = |choice: &Choice| choice.on_pool.iter().sum::<usize>();
    found.sort_by(|(a, a_load), (b, b_load)| {
        let loads = a_load.total_cmp(b_load);
        cores(a).cmp(&cores(b)).then(loads).then(b.rate.total_cmp(&a.rate))
    });
    for (choice, _) in found {
        let is_worse = front.choices.iter().any(|old| front.is_as_good(old, &choice, by_switch));
        if !is_worse {
            front.choices.push(choice);
        }
    }
    front.compact();
    front
}

impl Front {
    /// Whether one choice takes no more of anything than another, and gives as much.
    fn is_as_good(&self, one: &Choice, other: &Choice, by_switch: bool) -> bool {
        let more = |a: f64, b: f64| a > b + EXACT * (1.0 + b.abs());
        let loads = self.loads[one.shape].iter().flatten();
        !more(other.rate, one.rate)
            && one.on_pool.iter().zip(&other.on_pool).all(|(a, b)| a <= b)
            && loads.zip(self.loads[other.shape].iter().flatten()).all(|(a, b)| !more(*a, *b))
            && (!by_switch || one.shape == other.shape || {
                let there: BTreeSet<usize> = self.shapes[other.shape].on_switch().collect();
                self.shapes[one.shape].on_switch().all(|function| there.contains(&function))
            })
    }

    /// Without placements that no choice has.
    fn compact(&mut self) {
        let used: BTreeSet<usize> = self.choices.iter().map(|choice| choice.shape).collect();
        let numbers: Vec<usize> = used.into_iter().collect();
        self.shapes = numbers.iter().map(|number| self.shapes[*number].clone()).collect();
        self.loads = numbers.iter().map(|number| self.loads[*number].clone()).collect();
        for choice in &mut self.choices {
            choice.shape = numbers.binary_search(&choice.shape).unwrap_or(0);
        }
    }
}

/// Options of all chains; of many chains, a few of those that there is no time for.
pub(crate) fn all(
    rack: &Rack<'_>,
    problem: &Problem,
    by_switch: bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Vec<Options> {
    let mut maker = Maker::new(by_switch);
    let is_few = problem.chains.len() <= MANY;
    let of = |chain| match is_few || go_on() {
        true => maker.all(rack, chain),
        false => maker.few(rack, chain),
    };
    problem.chains.iter().map(of).collect()
}
