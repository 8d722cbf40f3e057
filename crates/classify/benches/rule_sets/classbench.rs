//! Rule sets in the manner of ClassBench (Taylor and Turner): read from its files, or made from
//! parameters that were taken from its seeds, with traces that match them.
#![allow(dead_code, reason = "shared by benches and tests that each use a part")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use catena_classify::{Cube, Key, RuleSet};
use fastrand::Rng;

/// Source and destination address, source and destination port, protocol. Ports and protocol
/// leave a number for packets that have none.
pub(crate) const FIVE: [u32; 5] = [u32::MAX, u32::MAX, 65536, 65536, 256];

/// A range of ports.
#[derive(Clone, Copy, Debug)]
enum Ports {
    /// All of them.
    Any,
    /// 1024 and up.
    High,
    /// One of the flavour's well-known ports.
    Exact,
    /// One of the flavour's ranges.
    Range,
}
use Ports::{Any, Exact, High, Range};

/// What the rules of a kind of device look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flavour {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Lengths of the source's and the destination's prefix, with a weight.
    lengths: &'static [(u8, u8, u32)],
    /// Source port, destination port, protocol, with a weight.
    services: &'static [(Ports, Ports, Option<u8>, u32)],
    ports: &'static [u32],
    ranges: &'static [(u32, u32)],
    /// How likely addresses part at a bit, of the source and of the destination: in the first
    /// 8 bits, up to bit 24, and beyond.
    branching: [[f64; 3]; 2],
}

/// Access lists of providers: pairs of hosts and small networks.
pub(crate) const ACL: Flavour = Flavour {
    name: "acl",
    lengths: &[
        (32, 32, 287),
        (31, 32, 138),
        (32, 31, 126),
        (31, 31, 44),
        (32, 30, 38),
        (23, 32, 34),
        (32, 22, 32),
        (31, 22, 21),
        (30, 32, 20),
        (31, 23, 19),
        (24, 31, 17),
        (32, 24, 16),
        (32, 21, 12),
        (30, 22, 11),
        (24, 32, 9),
        (31, 25, 8),
        (29, 23, 5),
        (23, 16, 5),
        (23, 28, 4),
        (22, 17, 4),
        (24, 15, 4),
        (22, 16, 3),
        (24, 14, 2),
        (23, 3, 2),
        (0, 24, 1),
    ],
    services: &[
        (Any, Exact, Some(6), 579),
        (Any, Any, Some(6), 163),
        (Any, Range, Some(6), 111),
        (Any, Any, None, 82),
        (Any, Any, Some(1), 30),
        (Any, Exact, Some(17), 11),
        (Any, Range, Some(17), 2),
    ],
    ports: &[1521, 1526, 1221, 1433, 135, 1525, 14753, 1711, 1724, 1704, 20, 1712, 80, 443, 25, 53],
    ranges: &[
        (1600, 1649),
        (1300, 1349),
        (1300, 1350),
        (7500, 7599),
        (32200, 32207),
        (2200, 2210),
        (1025, 65535),
        (5001, 65535),
        (8000, 8100),
        (20000, 20010),
    ],
    branching: [[0.35, 0.5, 0.8], [0.2, 0.35, 0.75]],
};

/// Firewalls: one of the addresses is mostly wild.
pub(crate) const FW: Flavour = Flavour {
    name: "fw",
    lengths: &[
        (0, 31, 177),
        (0, 32, 137),
        (1, 32, 104),
        (1, 31, 66),
        (0, 30, 51),
        (31, 0, 44),
        (32, 0, 36),
        (32, 1, 28),
        (2, 32, 25),
        (30, 0, 21),
        (31, 1, 18),
        (32, 32, 17),
        (31, 32, 9),
        (32, 31, 9),
        (0, 0, 8),
        (1, 0, 7),
        (0, 1, 7),
        (32, 2, 7),
        (27, 0, 6),
        (29, 0, 6),
        (21, 0, 5),
        (23, 0, 5),
        (31, 31, 4),
        (20, 0, 4),
        (32, 22, 4),
        (32, 30, 4),
        (28, 32, 4),
        (27, 1, 3),
    ],
    services: &[
        (Any, Exact, Some(6), 418),
        (Any, Exact, Some(17), 129),
        (Exact, Any, Some(17), 100),
        (Any, Any, Some(6), 81),
        (Any, Any, Some(47), 45),
        (High, High, Some(6), 37),
        (Any, Any, Some(1), 34),
        (Exact, Exact, Some(17), 25),
        (High, High, Some(17), 20),
        (Exact, High, Some(17), 19),
        (High, Exact, Some(17), 19),
        (Any, Any, None, 11),
        (High, Range, Some(17), 1),
    ],
    ports: &[22, 80, 25, 53, 123, 544, 2105, 21, 750, 161, 443, 23, 119, 88, 7648, 69, 67, 24032],
    ranges: &[(33434, 33600)],
    branching: [[0.4, 0.55, 0.85], [0.45, 0.6, 0.85]],
};

/// Chains of a Linux firewall: everything between the two.
pub(crate) const IPC: Flavour = Flavour {
    name: "ipc",
    lengths: &[
        (32, 32, 66),
        (31, 32, 36),
        (23, 32, 32),
        (24, 32, 26),
        (23, 24, 24),
        (32, 31, 24),
        (25, 32, 19),
        (24, 31, 18),
        (0, 31, 18),
        (24, 24, 17),
        (0, 32, 15),
        (24, 23, 15),
        (25, 31, 15),
        (32, 24, 14),
        (23, 25, 14),
        (1, 32, 14),
        (24, 25, 13),
        (32, 25, 13),
        (23, 0, 13),
        (24, 0, 11),
        (25, 23, 11),
        (23, 26, 10),
        (0, 25, 10),
        (0, 24, 8),
        (23, 16, 8),
        (32, 0, 8),
        (24, 16, 8),
        (32, 26, 8),
        (30, 32, 7),
        (22, 24, 7),
        (1, 23, 7),
        (17, 24, 6),
        (31, 24, 6),
    ],
    services: &[
        (Any, Any, None, 312),
        (Any, Exact, Some(17), 208),
        (Any, Exact, Some(6), 132),
        (Exact, Any, Some(17), 81),
        (Exact, Any, Some(6), 76),
        (Any, High, Some(17), 57),
        (Any, Any, Some(6), 21),
        (Any, Range, Some(6), 17),
        (Range, Any, Some(6), 14),
        (Any, Any, Some(1), 11),
        (Any, Range, Some(17), 6),
        (Exact, Exact, Some(17), 3),
        (Range, Any, Some(17), 3),
        (High, Any, Some(17), 3),
        (Any, Any, Some(47), 2),
    ],
    ports: &[
        69, 514, 80, 9003, 53, 25, 1433, 137, 162, 113, 143, 161, 22, 119, 139, 5550, 443, 110,
    ],
    ranges: &[(109, 110), (20, 23), (20, 21), (1645, 1646), (1812, 1813), (5000, 5001), (20, 2511)],
    branching: [[0.3, 0.5, 0.8], [0.3, 0.5, 0.8]],
};

/// All flavours.
pub(crate) const FLAVOURS: [Flavour; 3] = [ACL, FW, IPC];

/// The addresses of one with the services of another.
pub(crate) const MIXED: [Flavour; 6] = [
    ACL.with_services_of(&FW, "acl-fw"),
    ACL.with_services_of(&IPC, "acl-ipc"),
    FW.with_services_of(&ACL, "fw-acl"),
    FW.with_services_of(&IPC, "fw-ipc"),
    IPC.with_services_of(&ACL, "ipc-acl"),
    IPC.with_services_of(&FW, "ipc-fw"),
];

fn weighted<'a, T>(choices: &'a [T], weight: impl Fn(&T) -> u32, random: &mut Rng) -> &'a T {
    let total: u32 = choices.iter().map(&weight).sum();
    let mut left = random.u32(..total);
    for choice in choices {
        match left.checked_sub(weight(choice)) {
            Some(rest) => left = rest,
            None => return choice,
        }
    }
    &choices[0]
}

impl Flavour {
    /// An address below one of the nodes of a random tree: whether it branches at a node is the
    /// node's own, so that addresses share prefixes as those of sites and networks do.
    fn address(&self, side: usize, seed: u64, random: &mut Rng) -> u32 {
        let mut path = 1u64;
        for depth in 0..32 {
            let phase = if depth < 8 { 0 } else { usize::from(depth >= 24) + 1 };
            let mut node =
                Rng::with_seed(seed ^ (path << 2 | side as u64).wrapping_mul(0x9e37_79b9));
            let branches = node.f64() < self.branching[side][phase];
            let bit = if branches { random.u8(..10) < node.u8(2..9) } else { node.bool() };
            path = path << 1 | u64::from(bit);
        }
        path as u32
    }

    /// The same addresses with the services of another kind.
    pub(crate) const fn with_services_of(self, other: &Self, name: &'static str) -> Self {
        let Self { services, ports, ranges, .. } = *other;
        Self { name, services, ports, ranges, ..self }
    }

    fn ports(&self, ports: Ports, random: &mut Rng) -> (u32, u32) {
        match ports {
            Any => (0, 65536),
            High => (1024, 65535),
            // Popular ports come first; one of six is any port.
            Exact => {
                let index = random.usize(..self.ports.len()).min(random.usize(..self.ports.len()));
                let any = random.u8(..6) == 0;
                let port = if any { random.u32(1..65536) } else { self.ports[index] };
                (port, port)
            }
            Range => self.ranges[random.usize(..self.ranges.len())],
        }
    }

    /// Makes so many different rules, those with long prefixes first.
    ///
    /// # Panics
    /// If the flavour does not have so many.
    pub(crate) fn rules(&self, count: usize, seed: u64) -> RuleSet {
        let mut random = Rng::with_seed(seed);
        let mut seen = HashSet::new();
        let mut cubes = Vec::with_capacity(count);
        let (all, mut tries) = (RuleSet::new(&FIVE, 0).everything(0), 0);
        while cubes.len() < count {
            tries += 1;
            assert!(tries < 100 * (count + 100), "{} has no {count} different rules", self.name);
            let &(source, destination, _) = weighted(self.lengths, |l| l.2, &mut random);
            let &(from, to, protocol, _) = weighted(self.services, |s| s.3, &mut random);
            let mut cube = all;
            for (d, length) in [source, destination].into_iter().enumerate() {
                let free = u32::MAX.checked_shr(u32::from(length)).unwrap_or(0);
                let address = self.address(d, seed, &mut random);
                (cube.low[d], cube.high[d]) = (address & !free, address | free);
            }
            (cube.low[2], cube.high[2]) = self.ports(from, &mut random);
            (cube.low[3], cube.high[3]) = self.ports(to, &mut random);
            if let Some(protocol) = protocol {
                (cube.low[4], cube.high[4]) = (protocol.into(), protocol.into());
            }
            if seen.insert((cube.low, cube.high)) {
                cubes.push((u16::from(64 - source - destination) / 4, cube));
            }
        }
        cubes.sort_by_key(|c| c.0);
        collect(cubes.into_iter().map(|c| c.1))
    }
}

/// Rules made to hurt: in every dimension, ranges that overlap as much as they can.
pub(crate) const HOSTILE: [&str; 4] = ["overlapping", "nested", "wild", "middle"];

/// So many rules of a kind of [`HOSTILE`].
pub(crate) fn hostile(kind: &str, count: usize, seed: u64) -> RuleSet {
    let mut random = Rng::with_seed(seed);
    let mut range = |greatest: u32| match kind {
        "overlapping" => {
            let (a, b) = (random.u32(..=greatest), random.u32(..=greatest));
            (a.min(b), a.max(b))
        }
        "nested" => {
            let free = greatest.checked_shr(random.u32(..34)).unwrap_or(0);
            let low = random.u32(..=greatest) & !free;
            (low, (low | free).min(greatest))
        }
        "wild" if random.bool() => (0, greatest),
        "wild" => {
            let host = random.u32(..=greatest);
            (host, host)
        }
        _ => {
            let half = random.u32(..=greatest / 2);
            (half, greatest - half)
        }
    };
    let mut cubes = vec![RuleSet::new(&FIVE, 0).everything(0); count];
    for cube in &mut cubes {
        for (d, &greatest) in FIVE.iter().enumerate() {
            (cube.low[d], cube.high[d]) = range(greatest);
        }
    }
    collect(cubes.into_iter())
}

fn collect(cubes: impl ExactSizeIterator<Item = Cube>) -> RuleSet {
    let mut rules = RuleSet::new(&FIVE, cubes.len());
    for (rule, cube) in (0..).zip(cubes) {
        rules.push(Cube { rule, ..cube }).expect("room");
    }
    rules
}

/// Reads a ClassBench file; flags are left aside.
pub(crate) fn read(text: &str) -> Option<RuleSet> {
    let all = RuleSet::new(&FIVE, 0).everything(0);
    let parse = |line: &str| -> Option<Cube> {
        let mut cube = all;
        let mut columns = line.strip_prefix('@')?.split('\t');
        for d in 0..2 {
            let (address, length) = columns.next()?.split_once('/')?;
            let address = u32::from(address.parse::<std::net::Ipv4Addr>().ok()?);
            let free = u32::MAX.checked_shr(length.parse().ok()?).unwrap_or(0);
            (cube.low[d], cube.high[d]) = (address & !free, address | free);
        }
        for d in 2..4 {
            let (low, high) = columns.next()?.split_once(" : ")?;
            let range = (low.parse().ok()?, high.parse().ok()?);
            if range != (0, 65535) {
                (cube.low[d], cube.high[d]) = range;
            }
        }
        let (protocol, mask) = columns.next()?.split_once('/')?;
        if mask == "0xFF" {
            let protocol = u32::from_str_radix(protocol.strip_prefix("0x")?, 16).ok()?;
            (cube.low[4], cube.high[4]) = (protocol, protocol);
        }
        Some(cube)
    };
    let cubes: Option<Vec<Cube>> = text.lines().map(parse).collect();
    Some(collect(cubes?.into_iter()))
}

/// Keys that match rules: each a random point of a rule's cube, rules chosen at random. With
/// `burst` above 1, a key repeats as a flow's packets do, on average so many times.
pub(crate) fn trace(rules: &RuleSet, count: usize, burst: usize, seed: u64) -> Vec<Key> {
    let mut random = Rng::with_seed(seed);
    let mut keys: Vec<Key> = Vec::with_capacity(count);
    while keys.len() < count {
        let again = burst > 1 && !keys.is_empty() && random.usize(..burst) > 0;
        let key = if again {
            keys[keys.len() - 1 - random.usize(..keys.len().min(64))]
        } else {
            let cube = &rules.cubes()[random.usize(..rules.cubes().len())];
            std::array::from_fn(|d| match d {
                // Packets with ports: absence is for the tests of elements.
                2 | 3 => random.u32(cube.low[d].min(65535)..=cube.high[d].min(65535)),
                4 => random.u32(cube.low[d].min(255)..=cube.high[d].min(255)),
                _ => random.u32(cube.low[d]..=cube.high[d]),
            })
        };
        keys.push(key);
    }
    keys
}

/// The folder of shared data, if there is one: `CATENA_SHARED`, or next to the repository.
pub(crate) fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("CATENA_SHARED").map_or_else(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}
