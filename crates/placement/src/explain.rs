//! Why chains cannot be placed: a least set of demands that conflict, and the least that each must yield.
//!
//! A demand is in the set only if there is a plan without it, and a relaxation is shown only if there is a plan with it: one change,
//! or two of which neither suffices alone.

use crate::options::Maker;
use crate::problem::{Kind, Problem, Relief, Roomy, Switch, Wish};
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
pub struct Remedy {
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
    /// Demands that conflict even without those.
    pub others: Vec<Demand>,
    /// Changes of which each suffices.
    pub remedies: Vec<Remedy>,
}

impl Explanation {
    /// In words, line by line.
    pub fn words(&self, problem: &Problem) -> String {
        let shown = |all: &[Demand]| {
            let some = all.iter().take(SHOWN).map(|of| format!("  {}", of.words(problem)));
            let more = all.len().saturating_sub(SHOWN);
            let more = (more > 0).then(|| format!("  and {more} more"));
            some.chain(more).collect::<Vec<_>>()
        };
        let proof = match self.is_proven {
            true => "without any one of these, the others have a plan",
            false => "fewer of these may conflict already: the time was over",
        };
        let mut lines = vec![match self.conflict.is_empty() {
            true => {
                "no demand is to blame: without any of them there is no plan either".to_string()
            }
            false => format!("these demands conflict ({proof}):"),
        }];
        lines.extend(shown(&self.conflict));
        if !self.others.is_empty() {
            lines.push("without all of these, these conflict:".into());
            lines.extend(shown(&self.others));
        }
        lines.push(match self.remedies.is_empty() {
            true => "no change, and no two together, were found that suffice".into(),
            false => "each of these suffices:".into(),
        });
        lines.extend(self.remedies.iter().map(|remedy| {
            let unproven = if remedy.is_least { "" } else { " (less may suffice)" };
            format!("  {}{unproven}", remedy.words)
        }));
        lines.join("\n")
    }
}

/// Demands that are shown of a set.
const SHOWN: usize = 20;

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

/// A change of what is demanded, or of what there is.
#[derive(Clone, Copy)]
enum Change {
    Demand(Demand),
    Cores(usize),
    Link(usize),
    Stages,
    Entries(usize, usize),
}

/// Cores, and stages, that are added at most.
const MORE: usize = 8;

impl Change {
    /// The greatest share that is tried, and the least that differs from another.
    fn most(self, problem: &Problem) -> (f64, f64) {
        let by_hundredths = |most: f64| (most, most / 128.0);
        match self {
            Change::Demand(Demand::Least(_)) => by_hundredths(1.0),
            Change::Demand(Demand::Delay(_)) => by_hundredths(7.0),
            Change::Demand(Demand::Wish(..)) => (1.0, 1.0),
            Change::Cores(host) => {
                let one = 1.0 / problem.hosts[host].cores.max(1) as f64;
                (MORE as f64 * one, one)
            }
            Change::Link(_) => by_hundredths(3.0),
            Change::Stages => (1.0, 1.0 / MORE as f64),
            Change::Entries(..) => by_hundredths(1.0),
        }
    }

    /// Whole things of a share.
    fn count(self, problem: &Problem, share: f64) -> usize {
        (share / self.most(problem).1).round() as usize
    }

    /// Whether placements are others then.
    fn changes_rack(self) -> bool {
        matches!(self, Change::Cores(_) | Change::Link(_))
    }

    /// Changes a problem, or the switch, by a share.
    fn apply(self, problem: &mut Problem, share: f64) -> Option<Relief> {
        match self {
            Change::Demand(Demand::Least(chain)) => problem.chains[chain].slo.min *= 1.0 - share,
            Change::Demand(Demand::Delay(chain)) => {
                let delay = &mut problem.chains[chain].slo.delay;
                *delay = delay.map(|delay| delay * (1.0 + share));
            }
            // Numbers of wishes change when one is left out: whoever asks leaves out all at once.
            Change::Demand(Demand::Wish(..)) => {}
            Change::Cores(host) => problem.hosts[host].cores += self.count(problem, share),
            Change::Link(host) => problem.hosts[host].link_rate *= 1.0 + share,
            Change::Stages => return Some(Relief::Stages(self.count(problem, share))),
            Change::Entries(chain, function) => {
                return Some(Relief::Entries(chain, function, 1.0 - share));
            }
        }
        None
    }

    fn words(self, problem: &Problem, share: f64) -> String {
        let plural = |count: usize, what: &str| match count {
            1 => format!("1 more {what}"),
            more => format!("{more} more {what}s"),
        };
        let name = |chain: usize| &problem.chains[chain].name;
        match self {
            Change::Demand(Demand::Least(chain)) => {
                let min = problem.chains[chain].slo.min;
                format!("chain {}: min {} -> {}", name(chain), rate(min), rate(min * (1.0 - share)))
            }
            Change::Demand(Demand::Delay(chain)) => {
                let delay = problem.chains[chain].slo.delay.unwrap_or_default();
                let longer = time(delay * (1.0 + share));
                format!("chain {}: delay {} -> {longer}", name(chain), time(delay))
            }
            Change::Demand(demand @ Demand::Wish(..)) => {
                format!("without the wish of {}", demand.words(problem))
            }
            Change::Cores(host) => {
                let more = plural(self.count(problem, share), "core");
                format!("{}: {more}", problem.hosts[host].name)
            }
            Change::Link(host) => {
                let of = &problem.hosts[host];
                let faster = rate(of.link_rate * (1.0 + share));
                format!("{}: link {} -> {faster}", of.name, rate(of.link_rate))
            }
            Change::Stages => {
                format!("the switch: {}", plural(self.count(problem, share), "stage"))
            }
            Change::Entries(chain, function) => {
                let of = &problem.chains[chain].functions[function];
                let fewer = (of.entries as f64 * (1.0 - share)).ceil();
                format!("{} of chain {} in {fewer} of {} entries", of.name, name(chain), of.entries)
            }
        }
    }
}

/// Asks whether there is a plan.
struct Asking<'a> {
    problem: &'a Problem,
    switch: &'a dyn Switch,
    maker: Maker,
}

impl Asking<'_> {
    /// Whether there is a plan of a problem, if that was found out in time.
    fn ask(&mut self, problem: &Problem, go_on: &mut dyn FnMut() -> bool) -> Option<bool> {
        if go_on() { feasible(problem, self.switch, &mut self.maker, go_on) } else { None }
    }

    /// A least set of demands that conflict, without some that are left out, and whether it is proven to be that.
    /// Demands are left out chain by chain, then one by one, as long as the rest conflicts.
    fn conflict(
        &mut self,
        all: &[Demand],
        without_those: &[Demand],
        go_on: &mut dyn FnMut() -> bool,
    ) -> (Vec<Demand>, bool) {
        let mut dropped: Vec<Demand> = without_those.to_vec();
        let mut is_proven = true;
        let by_chain = (0..self.problem.chains.len()).map(|chain| {
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
            let new: Vec<Demand> = some.into_iter().filter(|of| !dropped.contains(of)).collect();
            if new.is_empty() {
                continue;
            }
            if !go_on() {
                is_proven = false;
                break;
            }
            let fewer: Vec<Demand> = dropped.iter().chain(&new).copied().collect();
            match self.ask(&without(self.problem, &fewer), go_on) {
                Some(false) => dropped = fewer,
                Some(true) if is_one => necessary.extend(new),
                Some(true) => {}
                None => is_proven &= !is_one,
            }
        }
        let conflict = all.iter().copied().filter(|of| !dropped.contains(of));
        let conflict: Vec<Demand> = conflict.collect();
        is_proven &= conflict.iter().all(|of| necessary.contains(of));
        (conflict, is_proven)
    }

    /// Whether there is one with some changes.
    fn with(&mut self, changes: &[(Change, f64)], go_on: &mut dyn FnMut() -> bool) -> Option<bool> {
        if !go_on() {
            return None;
        }
        let mut problem = self.problem.clone();
        let mut switch: Option<Box<dyn Switch>> = None;
        let mut dropped = Vec::new();
        for (change, share) in changes {
            if let Change::Demand(demand @ Demand::Wish(..)) = change {
                dropped.push(*demand);
            }
            if let Some(relief) = change.apply(&mut problem, *share) {
                let of = switch.as_deref().unwrap_or(self.switch);
                switch = Some(of.relieved(relief)?);
            }
        }
        let problem = without(&problem, &dropped);
        let switch = switch.as_deref().unwrap_or(self.switch);
        match changes.iter().any(|(of, _)| of.changes_rack()) {
            true => feasible(&problem, switch, &mut Maker::new(true), go_on),
            false => feasible(&problem, switch, &mut self.maker, go_on),
        }
    }

    /// The least share of a change that suffices beside others, and whether less was shown not to.
    fn least(
        &mut self,
        change: Change,
        others: &[(Change, f64)],
        go_on: &mut dyn FnMut() -> bool,
    ) -> (f64, bool) {
        let (most, step) = change.most(self.problem);
        let (mut low, mut high) = (0, (most / step).round() as usize);
        let mut is_least = true;
        while low + 1 < high {
            let middle = low.midpoint(high);
            let with: Vec<_> =
                others.iter().copied().chain([(change, middle as f64 * step)]).collect();
            match self.with(&with, go_on) {
                Some(true) => high = middle,
                Some(false) => low = middle,
                None => (low, is_least) = (middle, false),
            }
        }
        (high as f64 * step, is_least)
    }

    /// Changes that may help: of demands that conflict, and of what there is, once of what is alike.
    fn changes(&self, conflict: &[Demand], go_on: &mut dyn FnMut() -> bool) -> Vec<Change> {
        let problem = self.problem;
        let mut all: Vec<Change> = conflict.iter().copied().map(Change::Demand).collect();
        for (at, host) in problem.hosts.iter().enumerate() {
            let is_alike = |of: &crate::problem::Host| {
                (of.cores, of.hertz, of.link_rate) == (host.cores, host.hertz, host.link_rate)
            };
            if !problem.hosts[..at].iter().any(is_alike) {
                all.extend([Change::Cores(at), Change::Link(at)]);
            }
        }
        // The switch, if chains have a place on one that holds all.
        let is_it = self.switch.relieved(Relief::Stages(0)).is_some()
            && feasible(problem, &Roomy, &mut Maker::new(true), go_on) == Some(true);
        if is_it {
            all.push(Change::Stages);
            let mut lists = Vec::new();
            for (at, chain) in problem.chains.iter().enumerate() {
                for (function, of) in chain.functions.iter().enumerate() {
                    if of.entries > 1 && chain.can(function, Kind::Switch) {
                        lists.push((std::cmp::Reverse(of.entries), at, function));
                    }
                }
            }
            lists.sort_unstable();
            lists.truncate(LISTS);
            all.extend(lists.into_iter().map(|(_, at, function)| Change::Entries(at, function)));
        }
        all
    }
}

/// Lists of rules that are shortened: the longest.
const LISTS: usize = 8;

/// Changes that do not suffice alone and are tried in pairs, and pairs that are shown.
const PAIRED: usize = 16;
const PAIRS: usize = 6;

/// Explains why chains cannot be placed. `None` if they can be, or nothing was found in time.
pub fn explain(
    problem: &Problem,
    switch: &dyn Switch,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Explanation> {
    let mut asking = Asking { problem, switch, maker: Maker::new(true) };
    let all = Demand::all(problem);
    if asking.ask(problem, go_on)? {
        return None;
    }
    let (conflict, is_proven) = asking.conflict(&all, &[], go_on);
    // What is left without these may conflict, too.
    let others = match asking.ask(&without(problem, &conflict), go_on) {
        Some(false) => asking.conflict(&all, &conflict, go_on).0,
        _ => Vec::new(),
    };
    let both: Vec<Demand> = conflict.iter().chain(&others).copied().collect();
    let mut remedies = Vec::new();
    let mut alone_not = Vec::new();
    for change in asking.changes(&both, go_on) {
        let (most, _) = change.most(problem);
        match asking.with(&[(change, most)], go_on) {
            Some(true) => {
                let (share, is_least) = asking.least(change, &[], go_on);
                remedies.push(Remedy { words: change.words(problem, share), share, is_least });
            }
            Some(false) => alone_not.push(change),
            None => {}
        }
    }
    // Two of those that do not suffice alone: as little of the first as the second allows, then of the second.
    alone_not.truncate(PAIRED);
    let mut pairs = Vec::new();
    for (at, &one) in alone_not.iter().enumerate() {
        for &other in &alone_not[at + 1..] {
            let both = [one, other].map(|change| (change, change.most(problem).0));
            if pairs.len() == PAIRS || asking.with(&both, go_on) != Some(true) {
                continue;
            }
            let (first, is_least) = asking.least(one, &both[1..], go_on);
            let (second, is_second) = asking.least(other, &[(one, first)], go_on);
            let words =
                format!("{}, and {}", one.words(problem, first), other.words(problem, second));
            pairs.push(Remedy { words, share: first + second, is_least: is_least && is_second });
        }
    }
    remedies.extend(pairs);
    remedies.sort_by(|a, b| a.share.total_cmp(&b.share));
    Some(Explanation { conflict, is_proven, others, remedies })
}
