//! The latency formula of SCC: what a packet takes, as the sum of data accesses, address translation, context switches
//! and system calls.
//!
//! The formula is that of §6.2.1.3 of G. P. Katsikas, *NFV Service Chains at the Speed of the Underlying Commodity
//! Hardware* (KTH, 2018). Each event of a packet counts with the latency that a probe measured for it. Accesses of modern
//! processors overlap, so the sum may be more than what a packet really takes.

use serde::{Deserialize, Serialize};

/// What a packet spends time in: the terms of the formula, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Loads that the first-level cache answers.
    L1,
    /// Loads that the second-level cache answers.
    L2,
    /// Loads that the last-level cache answers.
    L3,
    /// Loads that main memory answers.
    Memory,
    /// Address translations that the first TLB answers.
    Tlb1,
    /// Address translations that the second TLB answers.
    Tlb2,
    /// Address translations that walk the page tables.
    Walk,
    /// Context switches.
    ContextSwitch,
    /// System calls.
    SystemCall,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::L1,
        Self::L2,
        Self::L3,
        Self::Memory,
        Self::Tlb1,
        Self::Tlb2,
        Self::Walk,
        Self::ContextSwitch,
        Self::SystemCall,
    ];

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::L1 => "L1 hits",
            Self::L2 => "L2 hits",
            Self::L3 => "L3 hits",
            Self::Memory => "memory accesses",
            Self::Tlb1 => "first-level TLB hits",
            Self::Tlb2 => "second-level TLB hits",
            Self::Walk => "page walks",
            Self::ContextSwitch => "context switches",
            Self::SystemCall => "system calls",
        }
    }
}

/// A value for each source, where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BySource([Option<f64>; 9]);

impl BySource {
    /// These values; the others are not known.
    pub fn of(values: &[(Source, f64)]) -> Self {
        let mut all = Self::default();
        values.iter().for_each(|(source, value)| all.set(*source, Some(*value)));
        all
    }

    /// The value for a source.
    pub fn get(&self, source: Source) -> Option<f64> {
        self.0[source as usize]
    }

    /// Sets the value for a source.
    pub fn set(&mut self, source: Source, value: Option<f64>) {
        self.0[source as usize] = value;
    }

    /// Events of a packet, from those of each process of a chain and the packets that it processed: the sum over
    /// processes. What is not known of one is not known of the chain.
    pub fn per_packet(processes: &[(Self, u64)]) -> Self {
        let mut all = Self::default();
        for source in Source::ALL {
            let of_process = |(counts, packets): &(Self, u64)| {
                let count = counts.get(source).filter(|_| *packets > 0)?;
                Some(count / *packets as f64)
            };
            let sum: Option<f64> = processes.iter().map(of_process).sum();
            all.set(source, sum.filter(|_| !processes.is_empty()));
        }
        all
    }
}

/// A term of the formula.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// What it is of.
    pub source: Source,
    /// Events of a packet.
    pub count: Option<f64>,
    /// Nanoseconds of an event.
    pub cost: Option<f64>,
    /// Nanoseconds of a packet; nothing if events or their cost are not known.
    pub time: Option<f64>,
}

/// What a packet takes by the formula.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decomposition {
    /// The terms, in the order of [`Source::ALL`].
    pub terms: Vec<Term>,
    /// The sum of those that are known, in nanoseconds.
    pub total: f64,
}

impl Decomposition {
    /// The share of the total that a source has; nothing if it is not known.
    pub fn share(&self, source: Source) -> Option<f64> {
        let term = self.terms.iter().find(|term| term.source == source)?;
        term.time.filter(|_| self.total > 0.0).map(|time| time / self.total)
    }

    /// Whether every term is known.
    pub fn is_complete(&self) -> bool {
        self.terms.iter().all(|term| term.time.is_some())
    }
}

/// Applies the formula: events of a packet, times nanoseconds of an event.
pub fn decompose(counts: &BySource, costs: &BySource) -> Decomposition {
    let term = |source| {
        let (count, cost) = (counts.get(source), costs.get(source));
        // What does not happen takes no time, whatever it would cost.
        let time = if count == Some(0.0) { count } else { count.zip(cost).map(|(n, c)| n * c) };
        Term { source, count, cost, time }
    };
    let terms: Vec<Term> = Source::ALL.map(term).to_vec();
    let total = terms.iter().filter_map(|term| term.time).sum();
    Decomposition { terms, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads of a packet that L1, L2, L3 and DRAM answered.
    type Loads = [f64; 4];

    fn counts(loads: Loads) -> BySource {
        let sources = [Source::L1, Source::L2, Source::L3, Source::Memory];
        BySource::of(&sources.into_iter().zip(loads).collect::<Vec<_>>())
    }

    /// The worst latency of each level in figure 6.3 of the thesis.
    const FIGURE_6_3: Loads = [1.18, 5.0, 14.3, 71.7];

    /// Table 6.4: microseconds, loads, and per cent of the latency.
    const TABLE_6_4: [(f64, Loads, [f64; 4]); 4] = [
        (259.14, [3836., 182., 70., 3557.], [1.71, 0.25, 0.37, 97.06]),
        (216.97, [3653., 179., 65., 2964.], [1.99, 0.29, 0.41, 96.60]),
        (25.45, [581., 23., 14., 340.], [2.73, 0.31, 0.77, 95.70]),
        (8.01, [3250., 95., 163., 7.], [47.35, 0.04, 27.16, 0.06]),
    ];

    /// Table 6.7: microseconds and loads for batches of 1 to 256 frames.
    const TABLE_6_7: [(f64, Loads); 9] = [
        (216.97, [3653., 179., 65., 2964.]),
        (126.94, [2048., 138., 49., 1731.]),
        (117.47, [1872., 125., 46., 1603.]),
        (101.05, [1601., 115., 42., 1378.]),
        (95.23, [1503., 119., 41., 1298.]),
        (84.20, [1315., 110., 38., 1148.]),
        (85.88, [1331., 113., 40., 1170.]),
        (94.31, [1471., 145., 46., 1284.]),
        (155.0, [2564., 252., 81., 2109.]),
    ];

    #[test]
    fn totals_are_the_theses_with_the_latencies_of_its_figure() {
        // The router on DPDK is below: a quarter of its latency is address translation, whose counts are not printed.
        let rows = TABLE_6_4[..3].iter().map(|(total, loads, _)| (*total, *loads)).chain(TABLE_6_7);
        for (total, loads) in rows {
            let found = decompose(&counts(loads), &counts(FIGURE_6_3)).total / 1e3;
            assert!((found / total - 1.0).abs() < 0.012, "{total}: {found}");
        }
    }

    /// The latencies that table 6.4 used for the router in user space: shares times the total, by loads. They are those of
    /// figure 6.3 to two digits: 1.18, 3.5, 13.7 and 70.7 ns.
    fn implied() -> Loads {
        let (total, loads, shares) = TABLE_6_4[1];
        let cost = |(load, share)| share / 100.0 * total * 1e3 / load;
        let found: Vec<f64> = loads.into_iter().zip(shares).map(cost).collect();
        found.try_into().unwrap()
    }

    #[test]
    fn one_row_of_the_thesis_predicts_the_others_within_rounding() {
        let costs = counts(implied());
        // Table 6.4 leaves 0.6 and 0.7 % to address translation, which has no column.
        for (total, loads) in TABLE_6_7.into_iter().chain([(TABLE_6_4[0].0, TABLE_6_4[0].1)]) {
            let share = decompose(&counts(loads), &costs).total / 1e3 / total;
            assert!((0.9920..0.9950).contains(&share), "{total}: {share}");
        }
        // The shares of the router behind the software switch, of its whole latency.
        let (total, loads, shares) = TABLE_6_4[0];
        let found = decompose(&counts(loads), &costs);
        for (term, share) in found.terms.iter().zip(shares) {
            let part = term.time.unwrap() / total / 10.0;
            assert!((part - share).abs() < 0.05, "{:?}: {part} {share}", term.source);
        }
    }

    #[test]
    fn shares_of_the_kernels_and_the_dpdk_router_are_the_theses() {
        // Loads are printed as whole numbers: 14 of L3 may be 14.4.
        let of = |row: usize, level: usize| {
            let (total, loads, shares) = TABLE_6_4[row];
            let found = decompose(&counts(loads), &counts(implied()));
            (found.terms[level].time.unwrap() / total / 10.0, shares[level])
        };
        for (row, level, tolerance) in
            [(2, 0, 0.05), (2, 1, 0.01), (2, 2, 0.03), (2, 3, 1.3), (3, 0, 0.7), (3, 2, 0.8)]
        {
            let (found, printed) = of(row, level);
            assert!((found - printed).abs() < tolerance, "{row} {level}: {found} {printed}");
        }
        // L2 and DRAM of the last row are not per cent but parts of one: 95 loads of L2 are 4 % of 8 µs, not 0.04 %.
        for (level, tolerance) in [(1, 0.5), (3, 0.5)] {
            let (found, printed) = of(3, level);
            assert!((found - 100.0 * printed).abs() < tolerance, "{level}: {found} {printed}");
        }
    }

    #[test]
    fn a_router_more_costs_what_the_thesis_says() {
        // §6.3.2.1: 11,647 accesses of main memory are 835 µs.
        let loads = BySource::of(&[(Source::Memory, 11_647.0)]);
        let found = decompose(&loads, &counts(FIGURE_6_3));
        assert_eq!((found.total / 1e3).round(), 835.0);
    }

    #[test]
    fn processes_add_up_by_their_own_packets() {
        // Table 6.2: a context switch takes 1000 ns, a system call 41.
        let process = |switches: f64, calls: f64, packets: u64| {
            let counts =
                BySource::of(&[(Source::ContextSwitch, switches), (Source::SystemCall, calls)]);
            (counts, packets)
        };
        let per_packet = BySource::per_packet(&[process(10., 200., 100), process(10., 100., 50)]);
        let costs = BySource::of(&[(Source::ContextSwitch, 1000.0), (Source::SystemCall, 41.0)]);
        let found = decompose(&per_packet, &costs);
        assert!((found.total - (0.3 * 1000.0 + 4.0 * 41.0)).abs() < 1e-9, "{found:?}");
        assert!((found.share(Source::SystemCall).unwrap() - 164.0 / 464.0).abs() < 1e-9);
        // A process without packets has no events of a packet, and no processes have none.
        let idle = BySource::per_packet(&[process(10., 1., 1), process(1., 1., 0)]);
        assert_eq!((idle, BySource::per_packet(&[])), Default::default());
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let known = BySource::of(&[(Source::L1, 10.0), (Source::L2, 2.0), (Source::Walk, 0.0)]);
        let found = decompose(&known, &BySource::of(&[(Source::L1, 1.5)]));
        assert_eq!((found.total, found.is_complete()), (15.0, false));
        assert_eq!(found.share(Source::L2), None);
        // What does not happen takes no time even if its cost is not known.
        assert_eq!(found.share(Source::Walk), Some(0.0));
        let none = decompose(&BySource::default(), &BySource::default());
        assert_eq!((none.total, none.share(Source::L1)), (0.0, None));
        let all: Vec<_> = Source::ALL.map(|source| (source, 1.0)).to_vec();
        assert!(decompose(&BySource::of(&all), &BySource::of(&all)).is_complete());
    }
}
