//! What a packet's delay consists of.

use crate::plan::{Placed, Site};
use crate::problem::{Chain, Problem};
use crate::shape::Shape;

/// The delay of the longest path of a chain, in its parts. [`Waiting`] is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Over links, in seconds.
    pub propagation: f64,
    /// Of its bits onto links.
    pub transmission: f64,
    /// On cores and cards that have nothing else to do, and on the path to processes of their own and back.
    pub execution: f64,
    /// How often it passes a link.
    pub passes: usize,
}

impl Delay {
    /// Of a chain whose functions run at some sites.
    pub fn of(problem: &Problem, chain: &Chain, sites: &[Site]) -> Self {
        let over = |delay: Self, host: Option<usize>| {
            let Some(host) = host.and_then(|host| problem.hosts.get(host)) else { return delay };
            Self {
                propagation: delay.propagation + host.link_delay,
                transmission: delay.transmission
                    + problem.packet_bits * problem.tagged() / host.link_rate,
                passes: delay.passes + 1,
                ..delay
            }
        };
        let between = |delay: Self, from: Option<usize>, to: Option<usize>| match from == to {
            true => delay,
            false => over(over(delay, from), to),
        };
        let longest = |a: Self, b: Self| if b.total() > a.total() { b } else { a };
        // By function: when its packets leave it.
        let mut latest: Vec<Self> = Vec::with_capacity(sites.len());
        let mut whole = Self::default();
        for (to, site) in sites.iter().enumerate() {
            let before = chain.edges.iter().filter(|edge| edge.to == to && edge.from < to);
            let before =
                before.map(|edge| between(latest[edge.from], sites[edge.from].host(), site.host()));
            let first = between(Self::default(), None, site.host());
            let mut delay = before.reduce(longest).unwrap_or(first);
            let function = &chain.functions[to];
            delay.execution += match site {
                Site::Switch => 0.0,
                Site::Core(host) => {
                    function.core_cycles / problem.hosts[*host].hertz + function.waits
                }
                Site::Card(host) => {
                    let card = problem.hosts[*host].card.as_ref();
                    function.card_cycles / card.map_or(f64::MIN_POSITIVE, |card| card.hertz)
                }
            };
            latest.push(delay);
            if !chain.edges.iter().any(|edge| edge.from == to) {
                whole = longest(whole, between(delay, site.host(), None));
            }
        }
        whole
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.propagation + self.transmission + self.execution
    }
}

/// What packets wait for on cores, at the rate of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// In queues of cores on average, if packets come at random and each takes as long (M/D/1); infinite if a core has no time left.
    pub queues: f64,
    /// For the others of a full batch on each core. Cycles of a function count by the share of packets that come there: this is
    /// the mean of all packets, and one that meets every function waits longer.
    pub batch: f64,
}

/// Packets of a batch.
pub const BATCH: f64 = 32.0;

impl Waiting {
    /// Of a placed chain.
    pub fn of(problem: &Problem, chain: &Chain, placed: &Placed) -> Self {
        let shape = Shape::of(problem, chain, placed.sites.clone());
        let mut waiting = Self::default();
        for (group, on) in shape.groups.iter().zip(&placed.cores) {
            let hertz = on.keys().filter_map(|host| problem.hosts.get(*host)).map(|of| of.hertz);
            let each = group.cycles / hertz.fold(f64::INFINITY, f64::min);
            let cores: usize = on.values().sum();
            let load = placed.rate / problem.packet_bits * each / cores as f64;
            waiting.queues += match load < 1.0 - 1e-6 {
                true => each * load / (2.0 * (1.0 - load)),
                false => f64::INFINITY,
            };
            waiting.batch += (BATCH - 1.0) * each;
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Replication;
    use crate::problem::{Edge, Function, Host, Kind, Slo};

    #[test]
    fn the_parts_add_up_to_the_delay_of_plans() {
        let function = |name: &str, core_cycles| Function {
            name: name.into(),
            runs_on: vec![Kind::Switch, Kind::Core],
            core_cycles,
            card_cycles: core_cycles,
            replicates: true,
            entries: 0,
            flows: 0,
            waits: 0.0,
        };
        let edge = |from, to, share| Edge { from, to, share };
        let chain = Chain {
            name: "c".into(),
            functions: ["a", "b", "c", "d"].map(|name| function(name, 2000.0)).to_vec(),
            edges: vec![edge(0, 1, 0.5), edge(0, 2, 0.5), edge(1, 3, 1.0), edge(2, 3, 1.0)],
            slo: Slo { min: 0.0, max: 1e9, delay: None, price: 1.0 },
            wishes: Vec::new(),
        };
        let host = |name: &str| Host {
            name: name.into(),
            cores: 4,
            hertz: 2e9,
            link_rate: 1e10,
            link_delay: 1e-6,
            card: None,
        };
        let problem = Problem {
            chains: vec![chain.clone()],
            hosts: vec![host("x"), host("y")],
            packet_bits: 12_000.0,
            tag_bits: 32.0,
            replication: Replication::Model,
            headroom: 0.0,
        };
        for sites in [
            [Site::Switch; 4],
            [Site::Core(0); 4],
            [Site::Core(0), Site::Core(0), Site::Switch, Site::Core(0)],
            [Site::Core(0), Site::Core(1), Site::Switch, Site::Switch],
            [Site::Switch, Site::Core(1), Site::Core(0), Site::Core(1)],
        ] {
            let shape = Shape::of(&problem, &chain, sites.to_vec());
            let delay = Delay::of(&problem, &chain, &sites);
            assert!(
                (shape.delay - delay.total()).abs() < 1e-12,
                "{sites:?}: {delay:?} {}",
                shape.delay
            );
        }
        // 6,000 cycles a packet, 3 us, on two cores: half loaded at 4 Gb/s, which is a packet in 3 us.
        let sites = vec![Site::Core(0); 4];
        let cores = vec![BTreeMap::from([(0, 2)])];
        let at = |rate| {
            Waiting::of(
                &problem,
                &chain,
                &Placed { sites: sites.clone(), cores: cores.clone(), rate },
            )
        };
        assert!((at(4e9).queues - 1.5e-6).abs() < 1e-12, "{:?}", at(4e9));
        assert!((at(4e9).batch - 93e-6).abs() < 1e-12, "{:?}", at(4e9));
        assert_eq!(at(8e9).queues, f64::INFINITY);
    }
}
