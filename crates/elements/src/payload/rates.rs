//! How often rules match, by address.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use net::flow::FlowHash;

use super::snort::{Rate, RateKind, Track};
use crate::lru_table::LruTable;

/// Counts that are kept; beyond, those that did not change for longest go.
const MOST: usize = 65_536;
const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Count {
    /// In nanoseconds.
    begin: u64,
    matches: u32,
}

/// See the module.
pub(crate) struct Rates {
    counts: LruTable<Count>,
    hash: FlowHash,
}

impl Rates {
    pub(crate) fn new() -> Self {
        let seed = std::hash::RandomState::new().build_hasher().finish();
        Self { counts: LruTable::default(), hash: FlowHash::new(seed) }
    }

    /// Counts a match of a rule; whether it is one of those that its rate lets count.
    pub(crate) fn counts(
        &mut self,
        rule: u32,
        rate: &Rate,
        (src, dst): (IpAddr, IpAddr),
        now: u64,
    ) -> bool {
        let address = if rate.track == Track::Source { src } else { dst };
        let mut hasher = self.hash.build_hasher();
        match address {
            IpAddr::V4(of) => hasher.write_u32(of.to_bits()),
            IpAddr::V6(of) => hasher.write_u128(of.to_bits()),
        }
        let key = u128::from(rule) << 64 | u128::from(hasher.finish());
        let known = self.counts.get(key).copied();
        let is_over = |c: &Count| now.saturating_sub(c.begin) >= SECOND * u64::from(rate.seconds);
        let mut count = known.filter(|c| !is_over(c)).unwrap_or(Count { begin: now, matches: 0 });
        count.matches = count.matches.saturating_add(1);
        self.counts.insert(key, count, 0);
        if self.counts.len() > MOST
            && let Some((oldest, _)) = self.counts.oldest(0)
        {
            self.counts.remove(oldest);
        }
        match rate.kind {
            RateKind::Filter => count.matches > rate.count,
            RateKind::Limit => count.matches <= rate.count,
            RateKind::Threshold => count.matches.is_multiple_of(rate.count),
            RateKind::Both => count.matches == rate.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_count_as_rates_say() {
        let all = |kind| {
            let mut rates = Rates::new();
            let rate = Rate { kind, track: Track::Source, count: 2, seconds: 10 };
            let mut counts = |of: u8, second: u64| {
                let ends = ([10, 0, 0, of].into(), [10, 0, 0, 9].into());
                rates.counts(3, &rate, ends, second * SECOND)
            };
            (0..5).for_each(|at| {
                counts(1, at);
            });
            let first: Vec<bool> = (5..10).map(|at| counts(2, at)).collect();
            (first, counts(2, 16))
        };
        assert_eq!(all(RateKind::Filter), (vec![false, false, true, true, true], false));
        assert_eq!(all(RateKind::Limit), (vec![true, true, false, false, false], true));
        assert_eq!(all(RateKind::Threshold), (vec![false, true, false, true, false], false));
        assert_eq!(all(RateKind::Both), (vec![false, true, false, false, false], false));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut rates = Rates::new();
        let rate = Rate { kind: RateKind::Limit, track: Track::Destination, count: 1, seconds: 1 };
        for at in 0..70_000u32 {
            assert!(rates.counts(0, &rate, ([1, 1, 1, 1].into(), IpAddr::V4(at.into())), 0));
        }
        assert_eq!(rates.counts.len(), MOST);
    }
}
