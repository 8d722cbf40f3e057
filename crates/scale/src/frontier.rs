//! Frontiers: how much a core can do, as flows against packets.

use serde::{Deserialize, Serialize};

/// For each number of flows, the greatest amount of packets that a core does: in an epoch, or in a second.
///
/// More flows never allow more packets. Beyond the last number of flows, a core does nothing in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frontier {
    /// By number of flows, from none on.
    packets: Vec<u32>,
}

impl Frontier {
    /// Through points of flows and packets that were done: each point allows as many packets with fewer flows.
    pub fn through(points: &[(u32, u32)]) -> Self {
        let most =
            points.iter().map(|(flows, _)| *flows).max().map_or(0, |flows| flows as usize + 1);
        let mut packets = vec![0; most.min(MOST_FLOWS)];
        for (flows, done) in points {
            if let Some(at) = packets.get_mut(*flows as usize) {
                *at = (*at).max(*done);
            }
        }
        for at in (1..packets.len()).rev() {
            packets[at - 1] = packets[at - 1].max(packets[at]);
        }
        Self { packets }
    }

    /// The greatest number of packets with so many flows.
    pub fn packets(&self, flows: u32) -> u32 {
        self.packets.get(flows as usize).copied().unwrap_or(0)
    }

    /// Whether a core does so much.
    pub fn covers(&self, flows: u32, packets: u32) -> bool {
        packets <= self.packets(flows)
    }

    /// Whether a core does so much, where flows are an average.
    pub fn covers_average(&self, flows: f64, packets: f64) -> bool {
        packets <= f64::from(self.packets(flows.max(0.0).ceil() as u32))
    }

    /// As much for any number of flows: the least that was seen (`static-safe`), or the most (`static-unsafe`).
    pub fn flat(&self, least: bool) -> Self {
        let seen = self.packets.iter().copied().filter(|packets| *packets > 0);
        let level = if least { seen.min() } else { seen.max() }.unwrap_or(0);
        Self { packets: vec![level; MOST_FLOWS] }
    }

    /// Where the number of packets changes: flows, and packets that are done with up to so many.
    pub fn corners(&self) -> impl Iterator<Item = (u32, u32)> {
        let next = |at: usize| self.packets.get(at + 1).copied().unwrap_or(0);
        let all = self.packets.iter().enumerate();
        all.filter(move |(at, packets)| **packets != next(*at)).map(|(at, p)| (at as u32, *p))
    }
}

/// Flows of a frontier at the most.
const MOST_FLOWS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_flows_never_allow_more_packets() {
        let frontier = Frontier::through(&[(1, 160), (20, 96), (10, 90), (80, 64)]);
        assert_eq!(
            [0, 1, 2, 10, 20, 21, 80, 81].map(|f| frontier.packets(f)),
            [160, 160, 96, 96, 96, 64, 64, 0]
        );
        assert!(frontier.covers(55, 64) && !frontier.covers(55, 65));
        assert!(!frontier.covers_average(20.1, 80.0) && frontier.covers_average(20.0, 96.0));
        assert_eq!(frontier.flat(true).packets(1000), 64);
        assert_eq!(frontier.flat(false).packets(1000), 160);
        assert_eq!(frontier.corners().collect::<Vec<_>>(), [(1, 160), (20, 96), (80, 64)]);
    }

    #[test]
    fn nothing_hostile_takes_all_memory() {
        assert_eq!(Frontier::through(&[(u32::MAX, 7)]).packets(1), 0);
        assert_eq!(Frontier::through(&[]).packets(0), 0);
    }
}
