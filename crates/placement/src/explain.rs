//! Why chains cannot be placed: a least set of demands that conflict, and the least that each must yield.
//!
//! A demand is in the set only if there is a plan without it, and a relaxation is shown only if there is a plan with it.

use crate::options::Maker;
use crate::problem::{Problem, Switch, Wish};
use crate::search::feasible;

/// What a chain demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// A chain's least rate.
    Least(usize),
    /// A chain's delay.
    Delay(usize),
    /// A wish of a chain.
    Wish(usize, usize),
}

impl Demand {
    fn all(problem: &Problem) -> Vec<Self> {
        let of = |chain: usize| {
            let slo = &problem.chains[chain].slo;
            let wishes = 0..problem.chains[chain].wishes.len();
            let least = (slo.min > 0.0).then_some(Demand::Least(chain));
            let delay = slo.delay.map(|_| Demand::Delay(chain));
            least.into_iter().chain(delay).chain(wishes.map(move |at| Demand::Wish(chain, at)))
        };
        (0..problem.chains.len()).flat_map(of).collect()
    }

    /// In words.
    pub fn words(self, problem: &Problem) -> String {
        let name = |chain: usize| &problem.chains[chain].name;
        match self {
            Demand::Least(chain) => {
                format!("chain {}: min {}", name(chain), rate(problem.chains[chain].slo.min))
            }
            Demand::Delay(chain) => {
                let delay = problem.chains[chain].slo.delay.unwrap_or_default();
                format!("chain {}: delay {}", name(chain), time(delay))
            }
            Demand::Wish(chain, wish) => {
                let of = &problem.chains[chain];
                let function = |at: usize| &of.functions[at].name;
                let kinds = |kinds: &[crate::problem::Kind]| {
                    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
                };
                let what = match &of.wishes[wish] {
                    Wish::Only(at, on) => format!("{} only on {}", function(*at), kinds(on)),
                    Wish::Never(at, on) => format!("{} never on {}", function(*at), kinds(on)),
                    Wish::Together(a, b) => {
                        format!("{} and {} together", function(*a), function(*b))
                    }
                    Wish::Apart(a, b) => format!("{} and {} apart", function(*a), function(*b)),
                };
                format!("chain {}: {what}", name(chain))
            }
        }
    }
}

fn rate(bits: f64) -> String {
    format!("{:.3} Gb/s", bits / 1e9)
}

fn time(seconds: f64) -> String {
    format!("{:.1} us", seconds * 1e6)
}

/// A change with which all chains are placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// What is changed, in words.
    pub words: String,
    /// The share by which it is changed: the least first.
    pub share: f64,
    /// Whether less was shown not to suffice, up to a hundredth.
    pub is_least: bool,
}

/// Why chains cannot be placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// Demands that conflict.
    pub conflict: Vec<Demand>,
    /// Whether it was shown that they conflict, and that there is a plan without any one of them.
    pub is_proven: bool,
    /// Changes of which each suffices.
    pub ways: Vec<Way>,
}

impl Explanation {
    /// In words, line by line.
    pub fn words(&self, problem: &Problem) -> String {
        let conflict = self.conflict.iter().map(|of| format!("  {}", of.words(problem)));
        let proof = match self.is_proven {
            true => "without any one of these, the others have a plan",
            false => "fewer of these may conflict already: the time was over",
        };
        let mut lines = vec![format!("these demands conflict ({proof}):")];
        lines.extend(conflict);
        lines.push(match self.ways.is_empty() {
            true => "no single change was found that suffices".into(),
            false => "each of these suffices:".into(),
        });
        lines.extend(self.ways.iter().map(|way| {
            let unproven = if way.is_least { "" } else { " (less may suffice)" };
            format!("  {}{unproven}", way.words)
        }));
        lines.join("\n")
    }
}

/// A problem without some of its demands.
fn without(problem: &Problem, dropped: &[Demand]) -> Problem {
    let mut less = problem.clone();
    // Wishes from the last one on, so that the others keep their places.
    let mut dropped = dropped.to_vec();
    dropped.sort_unstable_by(|a, b| b.cmp(a));
    for demand in dropped {
        match demand {
            Demand::Least(chain) => less.chains[chain].slo.min = 0.0,
            Demand::Delay(chain) => less.chains[chain].slo.delay = None,
            Demand::Wish(chain, wish) => drop(less.chains[chain].wishes.remove(wish)),
        }
    }
    less
}

/// Explains why chains cannot be placed. `None` if they can be, or nothing was found in time.
pub fn explain(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Explanation> {
    let mut maker = Maker::new(true);
    let mut test = |problem: &Problem, go_on: &mut dyn FnMut() -> bool| {
        if go_on() { feasible(problem, switch, &mut maker, go_on) } else { None }
    };
    let all = Demand::all(problem);
    if test(problem, go_on)? {
        return None;
    }
    // Demands are left out chain by chain, then one by one, as long as the rest conflicts.
    let mut dropped: Vec<Demand> = Vec::new();
    let mut is_proven = true;
    let by_chain = (0..problem.chains.len()).map(|chain| {
        let of = all.iter().copied().filter(|demand| match demand {
            Demand::Least(of) | Demand::Delay(of) | Demand::Wish(of, _) => *of == chain,
        });
        of.collect::<Vec<Demand>>()
    });
    let one_by_one = all.iter().map(|demand| vec![*demand]);
    let mut necessary = Vec::new();
    for (is_one, some) in
        by_chain.map(|some| (false, some)).chain(one_by_one.map(|one| (true, one)))
    {
        if some.is_empty() || some.iter().all(|of| dropped.contains(of)) {
            continue;
        }
        let fewer: Vec<Demand> = dropped.iter().chain(&some).copied().collect();
        match test(&without(problem, &fewer), go_on) {
            Some(false) => dropped = fewer,
            Some(true) if is_one => necessary.extend(some),
            Some(true) => {}
            None => is_proven &= !is_one,
        }
    }
    let conflict: Vec<Demand> = all.iter().copied().filter(|of| !dropped.contains(of)).collect();
    is_proven &= conflict.iter().all(|of| necessary.contains(of));
    let mut ways = Vec::new();
    for demand in &conflict {
        ways.extend(match *demand {
            Demand::Least(chain) => {
                let min = problem.chains[chain].slo.min;
                let changed = |share: f64| {
                    let mut less = problem.clone();
                    less.chains[chain].slo.min = min * (1.0 - share);
                    less
                };
                least(&changed, 1.0, &mut test, go_on).map(|(share, is_least)| {
                    let (old, new) = (rate(min), rate(min * (1.0 - share)));
                    let words = format!("chain {}: min {old} -> {new}", problem.chains[chain].name);
                    Way { words, share, is_least }
                })
            }
            Demand::Delay(chain) => {
                let delay = problem.chains[chain].slo.delay.unwrap_or_default();
                let changed = |share: f64| {
                    let mut more = problem.clone();
                    more.chains[chain].slo.delay = Some(delay * (1.0 + share));
                    more
                };
                least(&changed, 7.0, &mut test, go_on).map(|(share, is_least)| {
                    let (old, new) = (time(delay), time(delay * (1.0 + share)));
                    let words =
                        format!("chain {}: delay {old} -> {new}", problem.chains[chain].name);
                    Way { words, share, is_least }
                })
            }
            Demand::Wish(..) => {
                let fewer = without(problem, &[*demand]);
                (test(&fewer, go_on) == Some(true)).then(|| Way {
                    words: format!("without the wish of {}", demand.words(problem)),
                    share: 1.0,
                    is_least: true,
                })
            }
        });
    }
    // More cores, or more of a link, where that is; placements are others then.
    let mut maker_of_more = Maker::new(true);
    let mut test = |problem: &Problem, go_on: &mut dyn FnMut() -> bool| {
        maker_of_more.clear();
        if go_on() { feasible(problem, switch, &mut maker_of_more, go_on) } else { None }
    };
    let mut seen: Vec<&crate::problem::Host> = Vec::new();
    for (at, host) in problem.hosts.iter().enumerate() {
        let is_alike = |of: &&crate::problem::Host| {
            (of.cores, of.hertz, of.link_rate) == (host.cores, host.hertz, host.link_rate)
        };
        if seen.iter().any(is_alike) {
            continue;
        }
        seen.push(host);
        for more in 1..=MORE_CORES {
            let mut larger = problem.clone();
            larger.hosts[at].cores += more;
            match test(&larger, go_on) {
                Some(false) => {}
                Some(true) => {
                    let cores = if more == 1 { "core" } else { "cores" };
                    let words = format!("{}: {more} more {cores}", host.name);
                    let share = more as f64 / host.cores as f64;
                    ways.push(Way { words, share, is_least: true });
                    break;
                }
                None => break,
            }
        }
        let changed = |share: f64| {
            let mut larger = problem.clone();
            larger.hosts[at].link_rate *= 1.0 + share;
            larger
        };
        if let Some((share, is_least)) = least(&changed, 3.0, &mut test, go_on) {
            let (old, new) = (rate(host.link_rate), rate(host.link_rate * (1.0 + share)));
            ways.push(Way {
                words: format!("{}: link {old} -> {new}", host.name),
                share,
                is_least,
            });
        }
    }
    ways.sort_by(|a, b| a.share.total_cmp(&b.share));
    Some(Explanation { conflict, is_proven, ways })
}

/// Cores that are added at most.
const MORE_CORES: usize = 8;

/// Steps towards the least change.
const STEPS: usize = 7;

/// Whether there is a plan, if that was found out in time.
type Test<'a> = &'a mut dyn FnMut(&Problem, &mut dyn FnMut() -> bool) -> Option<bool>;

/// The least change that suffices, up to a hundredth of the most; and whether less was shown not to.
fn least(
    changed: &dyn Fn(f64) -> Problem,
    most: f64,
    test: Test<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(f64, bool)> {
    if test(&changed(most), go_on) != Some(true) {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    let mut is_least = true;
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        match test(&changed(middle), go_on) {
            Some(true) => high = middle,
            Some(false) => low = middle,
            None => (low, is_least) = (middle, false),
        }
    }
    Some((high, is_least))
}
