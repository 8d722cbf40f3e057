//! Ironside's core mapper (§4.3.2): at the end of each epoch, what a core cannot do in the next one goes to auxiliary cores.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, Flow, Nanos, Note, Observation, Policy, Waiting};
use crate::frontier::Frontier;

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Epochs of an SLO (§4.3.2: an epoch is half of it; no packet stays longer than two).
    pub epochs: u64,
    /// Whether a flow goes to the first core that has room for it, rather than to the one that is being filled. The text deals
    /// in order: its example does not come out otherwise.
    pub first_fit: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { epochs: 2, first_fit: false }
    }
}

/// Most packets of a flow that two cores do in an epoch if one runs the last functions of the chain, by how many these are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Splits(pub Vec<u32>);

impl Splits {
    /// How many of the last functions are to go: the fewest that suffice; nothing if none do.
    pub fn functions(&self, packets: u32) -> Option<u32> {
        self.0.iter().position(|most| packets <= *most).map(|at| at as u32 + 1)
    }

    /// How many of the last functions are to go if none suffice: those with which most is done.
    pub fn best(&self) -> u32 {
        let best = self.0.iter().enumerate().max_by_key(|(at, most)| (**most, usize::MAX - *at));
        best.map_or(0, |(at, _)| at as u32 + 1)
    }
}

/// Who does what of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deal {
    /// By flow of the queue: 0 stays, 1 goes to the first auxiliary core, and so on.
    pub parts: Vec<u32>,
    /// By part: flows and packets.
    pub loads: Vec<(u32, u32)>,
    /// Flows that no core can do alone, by their place in the queue.
    pub whales: Vec<usize>,
}

impl Deal {
    /// Deals a queue in parts that a core can do in an epoch, whole flows only and in the order of arrival. There are at most
    /// `most` parts; the last one takes what is left.
    pub fn of(&mut self, queue: &[Waiting], frontier: &Frontier, most: usize, first_fit: bool) {
        self.parts.clear();
        self.loads.clear();
        self.whales.clear();
        let alone = frontier.packets(1);
        self.loads.push((0, 0));
        // Parts before this one are closed.
        let mut open = 0;
        for (at, waiting) in queue.iter().enumerate() {
            if waiting.packets > alone {
                self.whales.push(at);
            }
            let fits = |(flows, packets): &(u32, u32)| {
                *flows == 0 || frontier.covers(flows + 1, packets.saturating_add(waiting.packets))
            };
            let found = self.loads[open..].iter().position(fits).map(|at| open + at);
            let part = found.unwrap_or_else(|| {
                if self.loads.len() < most {
                    self.loads.push((0, 0));
                }
                self.loads.len() - 1
            });
            let load = &mut self.loads[part];
            *load = (load.0 + 1, load.1.saturating_add(waiting.packets));
            self.parts.push(part as u32);
            // A part is closed when the next is begun, or when it has no room for one more packet of one more flow.
            let is_full = |(flows, packets): (u32, u32)| {
                !first_fit || !frontier.covers(flows + 1, packets.saturating_add(1))
            };
            while open + 1 < self.loads.len() && is_full(self.loads[open]) {
                open += 1;
            }
        }
    }
}

/// The core mapper of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoreMapper {
    core: Core,
    epoch: Nanos,
    frontier: Frontier,
    splits: Splits,
    first_fit: bool,
    #[serde(skip)]
    deal: Deal,
    notes: Vec<Note>,
}

impl CoreMapper {
    /// That of a core.
    pub fn new(
        core: Core,
        slo: Nanos,
        settings: &Settings,
        frontier: Frontier,
        splits: Splits,
    ) -> Self {
        let epoch = slo / settings.epochs.max(1);
        let (deal, notes, first_fit) = (Deal::default(), Vec::new(), settings.first_fit);
        Self { core, epoch: epoch.max(1), frontier, splits, first_fit, deal, notes }
    }

    /// Whether the core does so much in an epoch.
    pub fn covers(&self, flows: u32, packets: u32) -> bool {
        self.frontier.covers(flows, packets)
    }
}

impl Policy for CoreMapper {
    fn period(&self) -> Nanos {
        self.epoch
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let (from, mut deal) = (self.core, std::mem::take(&mut self.deal));
        let spare: Vec<Core> = seen.spare().map(|of| of.core).collect();
        deal.of(&seen.queue, &self.frontier, spare.len() + 1, self.first_fit);
        let mut free = spare.iter().copied();
        let mut actions: Vec<Action> = Vec::new();
        for part in 1..deal.loads.len() {
            let Some(to) = free.next() else { break };
            let of_part = deal.parts.iter().zip(&seen.queue).filter(|(at, _)| **at == part as u32);
            let flows: Vec<Flow> = of_part.map(|(_, waiting)| waiting.flow).collect();
            actions.push(Action::Lend { from, to, flows });
        }
        for at in &deal.whales {
            let Waiting { flow, packets } = seen.queue[*at];
            let functions = self.splits.functions(packets);
            if functions.is_none() {
                let why = format!(
                    "flow {}: {packets} packets in an epoch are too many for any split",
                    flow.0
                );
                self.notes.push(Note { at: now, why });
            }
            let functions = functions.unwrap_or_else(|| self.splits.best());
            let part = deal.parts[*at] as usize;
            let owner = if part == 0 { from } else { spare.get(part - 1).copied().unwrap_or(from) };
            if functions > 0
                && let Some(to) = free.next()
            {
                actions.push(Action::SplitChain { from: owner, to, flow, functions });
            }
        }
        self.deal = deal;
        actions
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CoreSeen, Role, US};

    fn queue(packets: &[u32]) -> Vec<Waiting> {
        let flow =
            |(at, packets): (usize, &u32)| Waiting { flow: Flow(at as u32), packets: *packets };
        packets.iter().enumerate().map(flow).collect()
    }

    fn seen(queue: Vec<Waiting>, spare: u32) -> Observation {
        let cores = (1..=spare).map(|core| CoreSeen::idle(Core(core), Role::Spare)).collect();
        Observation { queue, cores, ..Observation::default() }
    }

    /// The chain of figure 4.3, with the tuple of the example.
    fn figure_4_3() -> Frontier {
        Frontier::through(&[(2, 160), (12, 128), (26, 96), (80, 64)])
    }

    /// §4.3.2: a backlog of 55 flows and 220 packets, where <55, 64> was measured, goes to three cores. The sums by core
    /// are those of the text, which prints no sizes of flows. The second core could have had the small flows of the third:
    /// so the text deals in order.
    #[test]
    fn the_example_of_ironside_is_dealt_as_printed() {
        let mut packets = vec![4; 17];
        packets.extend([3; 9]);
        packets.extend([4; 14].iter().chain(&[3; 8]));
        packets.extend([20, 5, 4, 4, 4, 4, 4]);
        let queue = queue(&packets);
        assert_eq!((queue.len(), queue.iter().map(|of| of.packets).sum::<u32>()), (55, 220));
        let frontier = Frontier::through(&[(12, 128), (26, 96), (55, 64)]);
        let mut deal = Deal::default();
        deal.of(&queue, &frontier, 9, false);
        assert_eq!(deal.loads, [(26, 95), (22, 80), (7, 45)]);
        deal.of(&queue, &frontier, 9, true);
        assert_eq!(deal.loads, [(26, 95), (25, 93), (4, 32)], "first fit fills the second core");
    }

    #[test]
    fn what_fits_stays() {
        let mut mapper = CoreMapper::new(
            Core(0),
            400 * US,
            &Settings::default(),
            figure_4_3(),
            Splits::default(),
        );
        assert_eq!(mapper.period(), 200 * US);
        assert_eq!(mapper.decide(0, &seen(queue(&[2; 32]), 4)), []);
        let lent = mapper.decide(0, &seen(queue(&[2; 33]), 4));
        let [Action::Lend { from: Core(0), to: Core(1), flows }] = &lent[..] else { panic!() };
        assert_eq!(flows, &[Flow(32)]);
        let none = seen(queue(&[2; 33]), 0);
        assert_eq!(mapper.decide(0, &none), [], "there is no core to lend to");
    }

    #[test]
    fn whales_split_the_chain_by_the_fewest_functions_that_suffice() {
        let splits = Splits(vec![200, 300]);
        let mut mapper =
            CoreMapper::new(Core(0), 400 * US, &Settings::default(), figure_4_3(), splits);
        for (packets, functions, notes) in [(170, 1, 0), (250, 2, 0), (900, 2, 1)] {
            let expected =
                Action::SplitChain { from: Core(0), to: Core(1), flow: Flow(0), functions };
            assert_eq!(mapper.decide(0, &seen(queue(&[packets]), 2)), [expected]);
            assert_eq!(mapper.notes().len(), notes);
        }
    }

    #[test]
    fn each_flow_has_one_owner_and_each_part_fits() {
        let mut random = fastrand::Rng::with_seed(1);
        let frontier = figure_4_3();
        let mut deal = Deal::default();
        for _ in 0..500 {
            let packets: Vec<u32> = (0..random.usize(..300)).map(|_| random.u32(1..9)).collect();
            let queue = queue(&packets);
            deal.of(&queue, &frontier, usize::MAX, random.bool());
            assert_eq!(deal.parts.len(), queue.len());
            assert_eq!(
                deal.loads.iter().map(|load| load.1).sum::<u32>(),
                packets.iter().sum::<u32>()
            );
            assert!(
                deal.loads
                    .iter()
                    .all(|(flows, packets)| *flows == 0 || frontier.covers(*flows, *packets))
            );
        }
    }
}
