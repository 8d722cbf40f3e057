//! Memory latency: chains of loads, each of which needs the one before.
//!
//! A buffer holds, at each place that is visited, the number of the next place: no load can begin before the last has
//! ended. In which order places are visited says what is measured. In equal steps, hardware prefetches; in random order
//! it cannot; in random order within windows of a few pages it cannot either, but addresses are translated by the TLB
//! next to the core.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::caches::Cache;
use crate::machine::Meter;
use crate::statistics::Samples;

/// Bytes of a cache line on the machines that are known.
const LINE: usize = 64;
/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes of a window: 64 pages, the least number of entries that the first TLB of a server has.
const WINDOW: usize = 256 << 10;
/// Bytes of a place's number.
const WORD: usize = size_of::<u32>();

/// In which order places are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// In equal steps of so many bytes.
    Stride(usize),
    /// Random, line by line.
    Random,
    /// Random within windows of 256 KiB, one window after the other.
    Windows,
    /// Random, one line of each page.
    Pages,
}

impl Order {
    /// The orders of a latency curve.
    pub const CURVE: [Self; 7] = [
        Self::Stride(64),
        Self::Stride(256),
        Self::Stride(1024),
        Self::Stride(1500),
        Self::Stride(4096),
        Self::Windows,
        Self::Random,
    ];

    /// Its name in tables.
    pub fn title(self) -> String {
        match self {
            Self::Stride(bytes) => format!("{bytes} B"),
            Self::Random => "random".into(),
            Self::Windows => "windows".into(),
            Self::Pages => "pages".into(),
        }
    }

    /// Places in a working set of so many bytes, in the order in which they are visited, as numbers of words.
    fn places(self, bytes: usize) -> Vec<u32> {
        let mut random = fastrand::Rng::with_seed(1);
        let every = |step: usize| (0..bytes.div_ceil(step)).map(move |i| (i * step / WORD) as u32);
        match self {
            Self::Stride(step) => every(step).collect(),
            Self::Random => {
                let mut all: Vec<u32> = every(LINE).collect();
                random.shuffle(&mut all);
                all
            }
            Self::Windows => {
                let mut all: Vec<u32> = every(LINE).collect();
                let mut windows: Vec<&mut [u32]> = all.chunks_mut(WINDOW / LINE).collect();
                random.shuffle(&mut windows);
                windows.iter_mut().for_each(|window| random.shuffle(window));
                windows.concat()
            }
            Self::Pages => {
                // Lines of all sets of each cache, as dense lines have.
                let line = |i: usize| (i + i / (PAGE / LINE)) % (PAGE / LINE) * LINE;
                let pages = 0..bytes / PAGE;
                let mut all: Vec<u32> =
                    pages.map(|i| ((i * PAGE + line(i)) / WORD) as u32).collect();
                random.shuffle(&mut all);
                all
            }
        }
    }
}

/// What visits places in a circle.
pub trait Loads {
    /// Nanoseconds of a load; places are numbers of words.
    fn visit(&mut self, places: &[u32]) -> Samples;
}

/// This machine's memory.
pub struct Memory<'a> {
    next: Vec<u32>,
    meter: &'a dyn Meter,
}

/// Samples of each latency.
const SAMPLES: usize = 15;
/// Nanoseconds of a sample.
const SAMPLE: f64 = 300_000.0;
/// Loads before anything is measured, at the most: enough to fill any cache.
const WARM: usize = 4 << 20;

impl<'a> Memory<'a> {
    /// A buffer of so many bytes, without huge pages: a translation is of a page of 4 KiB.
    pub fn new(bytes: usize, meter: &'a dyn Meter) -> Self {
        // The kernel may give huge pages to large buffers when they are first written to. Where it cannot be told not
        // to, translations look cheaper than they are.
        let were_disabled = rustix::thread::transparent_huge_pages_are_disabled();
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        let next = vec![u32::MAX; bytes / WORD];
        let _ = rustix::thread::disable_transparent_huge_pages(were_disabled == Ok(true));
        Self { next, meter }
    }

    fn follow(&self, mut at: u32, loads: usize) -> u32 {
        for _ in 0..loads {
            at = self.next[at as usize];
        }
        black_box(at)
    }

    /// Nanoseconds of some loads, and where they end.
    fn time(&self, at: u32, loads: usize) -> (f64, u32) {
        let begin = self.meter.cpu_time();
        let end = self.follow(at, loads);
        (self.meter.cpu_time().saturating_sub(begin) as f64, end)
    }
}

impl Loads for Memory<'_> {
    fn visit(&mut self, places: &[u32]) -> Samples {
        for (&from, &to) in places.iter().zip(places.iter().cycle().skip(1)) {
            self.next[from as usize] = to;
        }
        let Some(&first) = places.first() else { return Samples::of(Vec::new()) };
        let at = self.follow(first, places.len().clamp(1000, WARM));
        let (first, mut at) = self.time(at, 1000);
        let loads = ((SAMPLE / (first / 1000.0).max(0.3)) as usize).max(1000);
        let mut values = Vec::new();
        for _ in 0..SAMPLES {
            let (time, end) = self.time(at, loads);
            values.push(time / loads as f64);
            at = end;
        }
        Samples::of(values)
    }
}

/// The latency at a size of the working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of the working set.
    pub bytes: usize,
    /// Nanoseconds of a load, by the orders of [`Order::CURVE`].
    pub times: Vec<Samples>,
}

/// The latency of a level of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// `L1`, `L2`, `L3` or `memory`.
    pub name: String,
    /// Bytes that it holds; nothing for main memory.
    pub size: Option<usize>,
    /// Bytes of the working set that was measured.
    pub measured: usize,
    /// Nanoseconds of a load that it answers.
    pub time: Samples,
}

/// What translating an address takes beyond what the first TLB takes, which is part of each load's latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Translation {
    /// Pages that were visited.
    pub pages: usize,
    /// Nanoseconds of a load, one of each page.
    pub paged: Samples,
    /// Nanoseconds of a load of as many lines side by side.
    pub dense: Samples,
}

impl Translation {
    /// Nanoseconds of a translation.
    pub fn cost(&self) -> f64 {
        (self.paged.median - self.dense.median).max(0.0)
    }
}

/// What memory takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// By the size of the working set.
    pub curve: Vec<Point>,
    /// Caches, the first level first, and main memory.
    pub levels: Vec<Level>,
    /// By the second TLB: more pages than the first has entries.
    pub second_tlb: Translation,
    /// By the page tables: more pages than the second has entries.
    pub walk: Translation,
}

/// Pages that the first TLB does not hold and the second does: 96 entries and 1,536 are usual. Their lines fit into half
/// of the first cache.
const BEYOND_FIRST: usize = 256;
/// Pages that no TLB holds.
const BEYOND_SECOND: usize = 16_384;

/// Bytes that must be measured to be beyond all caches; not more than the machine can spare.
pub fn largest(caches: &[Cache], available: usize) -> usize {
    let last = caches.last().map_or(8 << 20, |cache| cache.size);
    let wanted = (8 * last).next_power_of_two().clamp(BEYOND_SECOND * PAGE, 1 << 30);
    let spare = available / 4;
    if wanted <= spare { wanted } else { (spare.max(2) / 2 + 1).next_power_of_two().max(8 << 20) }
}

/// Measures latencies: working sets up to `largest` bytes for the curve, if it is wanted, and one within each level.
///
/// Nothing is returned if it was stopped.
pub fn measure(
    loads: &mut dyn Loads,
    (caches, largest): (&[Cache], usize),
    with_curve: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Option<Latencies> {
    let mut curve = Vec::new();
    let sizes = std::iter::successors(Some(PAGE), |size| Some(size * 2));
    for bytes in sizes.take_while(|size| with_curve && *size <= largest) {
        let mut times = Vec::new();
        for order in Order::CURVE {
            if is_stopped() {
                return None;
            }
            times.push(loads.visit(&order.places(bytes)));
        }
        curve.push(Point { bytes, times });
    }
    let mut levels = Vec::new();
    let sizes = caches.iter().map(|cache| (format!("L{}", cache.level), Some(cache.size)));
    for (name, size) in sizes.chain([("memory".to_string(), None)]) {
        if is_stopped() {
            return None;
        }
        // Half a cache leaves room for what else it holds, and is more than the level before has.
        let measured = size.map_or(largest, |size| (size / 2).clamp(LINE, largest));
        let time = loads.visit(&Order::Windows.places(measured));
        levels.push(Level { name, size, measured, time });
    }
    let mut translation = |pages: usize| {
        let pages = pages.min(largest / PAGE);
        let paged = loads.visit(&Order::Pages.places(pages * PAGE));
        let dense = loads.visit(&Order::Windows.places(pages * LINE));
        (!is_stopped()).then_some(Translation { pages, paged, dense })
    };
    let second_tlb = translation(BEYOND_FIRST)?;
    let walk = translation(BEYOND_SECOND)?;
    Some(Latencies { curve, levels, second_tlb, walk })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::profile::formula::{BySource, Source, decompose};

    /// Sets of lines or pages, the one that was used last first.
    struct Lru {
        sets: Vec<Vec<u64>>,
        associativity: usize,
    }

    impl Lru {
        fn new(entries: usize, associativity: usize) -> Self {
            Self { sets: vec![Vec::new(); entries / associativity], associativity }
        }

        /// Whether it holds this; it does from now on.
        fn has(&mut self, key: u64) -> bool {
            let sets = self.sets.len() as u64;
            let set = &mut self.sets[(key % sets) as usize];
            let found = set.iter().position(|held| *held == key);
            match found {
                Some(at) => set[..=at].rotate_right(1),
                None => {
                    set.insert(0, key);
                    set.truncate(self.associativity);
                }
            }
            found.is_some()
        }
    }

    /// A machine whose latencies are known.
    struct Simulated {
        caches: Vec<(Lru, Source)>,
        tlbs: Vec<(Lru, Source)>,
        costs: BySource,
        counts: BySource,
        loads: u64,
    }

    const SIMULATED: [(usize, usize); 3] = [(32 << 10, 8), (256 << 10, 8), (2 << 20, 16)];

    impl Simulated {
        fn new() -> Self {
            let sources = [Source::L1, Source::L2, Source::L3];
            let cache =
                |((bytes, associativity), source)| (Lru::new(bytes / LINE, associativity), source);
            let costs = [1.0, 4.0, 14.0, 80.0, 0.0, 2.0, 10.0, 1000.0, 40.0];
            Self {
                caches: SIMULATED.into_iter().zip(sources).map(cache).collect(),
                tlbs: vec![(Lru::new(64, 64), Source::Tlb1), (Lru::new(1024, 8), Source::Tlb2)],
                costs: BySource::of(&Source::ALL.into_iter().zip(costs).collect::<Vec<_>>()),
                counts: BySource::of(&Source::ALL.map(|source| (source, 0.0))),
                loads: 0,
            }
        }

        fn load(&mut self, word: u32) -> f64 {
            let address = word as u64 * WORD as u64;
            let mut answer = |all: &mut Vec<(Lru, Source)>, key: u64, last: Source| {
                // Inclusive: what a level does not hold it gets.
                let hit =
                    all.iter_mut().find_map(|(held, source)| held.has(key).then_some(*source));
                let source = hit.unwrap_or(last);
                self.counts.set(source, self.counts.get(source).map(|count| count + 1.0));
                self.costs.get(source).unwrap()
            };
            let translated = answer(&mut self.tlbs, address / PAGE as u64, Source::Walk);
            let loaded = answer(&mut self.caches, address / LINE as u64, Source::Memory);
            self.loads += 1;
            translated + loaded
        }
    }

    impl Loads for Simulated {
        fn visit(&mut self, places: &[u32]) -> Samples {
            places.iter().for_each(|&place| {
                self.load(place);
            });
            let time: f64 = places.iter().map(|&place| self.load(place)).sum();
            Samples::of(vec![time / places.len() as f64])
        }
    }

    fn caches() -> Vec<Cache> {
        let cache = |((size, _), level)| Cache { level, size, line: LINE, shared: String::new() };
        SIMULATED.into_iter().zip(1..).map(cache).collect()
    }

    #[test]
    fn latencies_of_a_known_machine_are_found() {
        let mut machine = Simulated::new();
        let found = measure(&mut machine, (&caches(), 64 << 20), false, &|| false).unwrap();
        let levels: Vec<_> =
            found.levels.iter().map(|l| (l.name.as_str(), l.time.median)).collect();
        let expected = [("L1", 1.0), ("L2", 4.0), ("L3", 14.0), ("memory", 80.0)];
        for ((name, time), (level, cost)) in levels.iter().zip(expected) {
            // A new page in 64 costs a walk.
            assert!(*name == level && (cost - 0.01..cost + 0.3).contains(time), "{levels:?}");
        }
        let translations = [found.second_tlb.cost(), found.walk.cost()];
        assert!((1.9..2.1).contains(&translations[0]), "{translations:?}");
        assert!((9.0..10.1).contains(&translations[1]), "{translations:?}");
        assert_eq!(found.curve, []);
    }

    #[test]
    fn a_curve_rises_where_caches_end() {
        let mut machine = Simulated::new();
        let found = measure(&mut machine, (&caches(), 4 << 20), true, &|| false).unwrap();
        let at = |bytes: usize, order: Order| {
            let column = Order::CURVE.iter().position(|o| *o == order).unwrap();
            let point = found.curve.iter().find(|point| point.bytes == bytes).unwrap();
            point.times[column].median
        };
        assert_eq!(found.curve.len(), 11);
        assert_eq!(at(4096, Order::Random), 1.0);
        assert_eq!(at(128 << 10, Order::Stride(64)), 4.0);
        assert!(at(4 << 20, Order::Random) > 80.0);
        // Strides of a page use few of a cache's sets.
        assert!(at(512 << 10, Order::Stride(4096)) > at(512 << 10, Order::Stride(64)) + 1.0);
    }

    #[test]
    fn the_formula_gives_the_time_of_loads_whose_misses_are_known() {
        let mut machine = Simulated::new();
        let mut random = fastrand::Rng::with_seed(7);
        let (packets, mut time) = (1000, 0.0);
        for packet in 0..packets {
            // Headers, a table entry somewhere, and the same counter for all.
            for word in [packet * 512, packet * 512 + 16, random.u32(..1 << 22), 0] {
                time += machine.load(word);
            }
        }
        let counts = BySource::per_packet(&[(machine.counts, packets.into())]);
        let found = decompose(&counts, &machine.costs);
        assert!((found.total - time / f64::from(packets)).abs() < 1e-6, "{found:?}");
        // By construction: the counter is always in the first cache but once; all others are new lines but few.
        let count = |source| counts.get(source).unwrap();
        assert!((0.999..1.01).contains(&count(Source::L1)), "{counts:?}");
        assert!((2.99..=3.001).contains(&count(Source::Memory)), "{counts:?}");
        assert_eq!((count(Source::SystemCall), machine.loads), (0.0, 4000));
    }

    #[test]
    fn each_order_visits_each_place_once() {
        for (order, places) in [
            (Order::Stride(64), 8192),
            (Order::Stride(1500), 350),
            (Order::Random, 8192),
            (Order::Windows, 8192),
            (Order::Pages, 128),
        ] {
            let mut all = order.places(512 << 10);
            if order == Order::Windows {
                let of = |place: &u32| *place as usize * WORD / WINDOW;
                assert_eq!(all.windows(2).filter(|pair| of(&pair[0]) != of(&pair[1])).count(), 1);
                assert!(!all.is_sorted());
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), places, "{order:?}");
            assert!(all.iter().all(|place| (*place as usize) < (512 << 10) / WORD));
        }
        let mut pages: Vec<_> = Order::Pages.places(1 << 20).iter().map(|p| p / 1024).collect();
        pages.sort_unstable();
        assert_eq!(pages, (0..256).collect::<Vec<_>>());
    }

    #[test]
    fn a_buffer_is_beyond_the_caches_and_within_the_memory() {
        let last = |size| vec![Cache { level: 3, size, line: 64, shared: String::new() }];
        assert_eq!(largest(&last(20 << 20), usize::MAX), 256 << 20);
        assert_eq!(largest(&last(1 << 20), usize::MAX), 64 << 20);
        assert_eq!(largest(&last(1 << 30), usize::MAX), 1 << 30);
        assert_eq!(largest(&[], usize::MAX), 64 << 20);
        assert_eq!(largest(&last(20 << 20), 256 << 20), 64 << 20);
        assert_eq!(largest(&last(20 << 20), 0), 8 << 20);
    }

    #[test]
    fn it_ends_when_it_is_stopped() {
        assert_eq!(measure(&mut Simulated::new(), (&caches(), 1 << 20), true, &|| true), None);
    }
}
