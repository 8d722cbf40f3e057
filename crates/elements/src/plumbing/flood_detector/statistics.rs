//! What tells floods from other traffic: rates of packets to each destination, and the entropy of addresses.
//!
//! Time goes on in intervals of a quarter of a second, and the last second is judged. No clock is asked: packets bring
//! their time.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use net::flow::FlowHash;

use crate::plumbing::space_saving::SpaceSaving;

/// Nanoseconds of an interval.
pub(super) const INTERVAL: u64 = SECOND / INTERVALS as u64;
/// Intervals that are judged together.
const INTERVALS: usize = 4;
pub(super) const SECOND: u64 = 1_000_000_000;
/// Counts of a histogram of addresses.
const BUCKETS: usize = 1024;
/// Bits that tell sources apart.
const SOURCE_BITS: usize = 256;
/// Seconds after which what is usual is known.
const LEARNED: u32 = 10;
/// Packets without which a second says nothing about entropy.
const ENOUGH: u32 = 1000;
/// The share of a new value in what is usual.
const SHARE: f32 = 0.1;
/// Mean deviations, and parts of all, that an entropy is away from what is usual in a flood.
const DEVIATIONS: f32 = 6.0;
const LEAST_CHANGE: f32 = 0.05;
/// How often more packets than usual come in a flood that entropy shows.
const MORE: f32 = 2.0;

/// What a packet counts as, and what a flood consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// SYNs.
    Syn,
    Udp,
    Icmp,
    /// All other packets.
    Other,
    /// Many sources and few destinations, whatever the packets are.
    Distributed,
}

/// Those that are counted by destination.
const COUNTED: [Kind; 4] = [Kind::Syn, Kind::Udp, Kind::Icmp, Kind::Other];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Syn => "syn-flood",
            Kind::Udp => "udp-flood",
            Kind::Icmp => "icmp-flood",
            Kind::Other => "packet-flood",
            Kind::Distributed => "distributed-flood",
        }
    }
}

/// What makes a flood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Packets a second to a destination, by kind.
    pub rates: [u64; 4],
    /// How many times as many packets as usual, SYNs excepted.
    pub factor: u64,
    /// Distinct sources, SYNs excepted.
    pub sources: u32,
    /// Nanoseconds without the signs of a flood, after which it is over.
    pub hold: u64,
}

/// What is counted of packets to a destination.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: [u32; 4],
    /// FIN and RST.
    ended: u32,
}

/// A destination.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Destination {
    counts: [Count; INTERVALS],
    sources: [u64; SOURCE_BITS / 64],
    /// Packets since sources are counted, the source that may have most of them, and by how many it leads (Boyer and
    /// Moore 1981).
    packets: u32,
    main: u32,
    lead: u32,
    /// Packets a second, and for how many seconds they were averaged.
    usual: [f32; 4],
    seconds: u32,
    /// A bit for each kind of flood that it is the victim of.
    floods: u8,
}

/// A flood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flood {
    pub kind: Kind,
    pub victim: IpAddr,
    pub since: u64,
    /// When its signs were last seen.
    pub seen: u64,
    /// Packets in the last second with its signs, and the most in any.
    pub rate: u64,
    pub peak: u64,
    /// Distinct sources then, as far as they are told apart.
    pub sources: u32,
}

/// A value's usual height and deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    mean: f32,
    deviation: f32,
}

/// Entropy of addresses of the packets of a second.
pub(super) struct Entropy {
    sources: Box<[u32; BUCKETS]>,
    destinations: Box<[u32; BUCKETS]>,
    packets: u32,
    /// Of the last second with enough packets, between 0 and 1.
    pub last: [f32; 2],
    usual: [Usual; 2],
    usual_packets: f32,
    seconds: u32,
}

/// See the module.
pub(super) struct Statistics {
    hash: FlowHash,
    limits: Limits,
    pub destinations: SpaceSaving<u128, Destination>,
    pub entropy: Entropy,
    pub floods: Vec<Flood>,
    /// When the interval began, if one did, and which it is of its second.
    start: Option<u64>,
    at: usize,
}

/// That something about a flood changed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Begin(Flood),
    End(Flood),
}

/// What a packet is to the statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub kind: Kind,
    pub src: IpAddr,
    pub dst: IpAddr,
    /// Whether it ends a connection: FIN or RST.
    pub ends: bool,
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(of) => of.to_ipv6_mapped().to_bits(),
        IpAddr::V6(of) => of.to_bits(),
    }
}

fn address(bits: u128) -> IpAddr {
    IpAddr::from(bits.to_be_bytes()).to_canonical()
}

impl Destination {
    fn sum(&self) -> Count {
        let mut sum = Count::default();
        for count in &self.counts {
            for (sum, packets) in sum.packets.iter_mut().zip(count.packets) {
                *sum = sum.saturating_add(packets);
            }
            sum.ended = sum.ended.saturating_add(count.ended);
        }
        sum
    }

    /// About how many sources it had, by linear counting (Whang et al. 1990).
    fn source_count(&self) -> u32 {
        let set: u32 = self.sources.iter().map(|word| word.count_ones()).sum();
        let free = (SOURCE_BITS as u32 - set).max(1) as f32;
        (-(SOURCE_BITS as f32) * (free / SOURCE_BITS as f32).ln()).round() as u32
    }

    /// Whether three quarters of its packets come from one source.
    fn has_one_source(&self) -> bool {
        self.lead > self.packets / 2
    }

    /// Notes where a packet came from.
    fn add_source(&mut self, hash: u32) {
        let source = hash as usize % SOURCE_BITS;
        self.sources[source / 64] |= 1 << (source % 64);
        self.packets = self.packets.saturating_add(1);
        match (self.main == hash, self.lead) {
            (true, _) => self.lead = self.lead.saturating_add(1),
            (false, 0) => (self.main, self.lead) = (hash, 1),
            (false, _) => self.lead -= 1,
        }
    }

    /// Whether the last second has the signs of a flood.
    fn is_flooded(&self, kind: usize, sum: &Count, sources: u32, limits: &Limits) -> bool {
        let packets = u64::from(sum.packets[kind]);
        // A flood goes on at half its rate.
        let goes_on = self.floods & 1 << kind != 0;
        let least = if goes_on { limits.rates[kind] / 2 } else { limits.rates[kind] };
        if packets < least.max(1) {
            return false;
        }
        if kind == Kind::Syn as usize {
            // Who opens connections closes them, too.
            return u64::from(sum.ended) * 2 <= packets;
        }
        let is_more = goes_on
            || self.seconds < LEARNED
            || packets as f32 >= self.usual[kind] * limits.factor as f32;
        is_more && sources >= limits.sources && !self.has_one_source()
    }
}

impl Entropy {
    fn new() -> Self {
        Self {
            sources: Box::new([0; BUCKETS]),
            destinations: Box::new([0; BUCKETS]),
            packets: 0,
            last: [0.0; 2],
            usual: [Usual::default(); 2],
            usual_packets: 0.0,
            seconds: 0,
        }
    }

    /// Of a histogram, divided by the most that it can be.
    fn of(counts: &[u32; BUCKETS], packets: u32) -> f32 {
        let all = packets as f32;
        let parts = counts.iter().filter(|&&count| count > 0).map(|&count| count as f32 / all);
        let entropy: f32 = parts.map(|part| -part * part.log2()).sum();
        let most = all.min(BUCKETS as f32).log2();
        if most > 0.0 { (entropy / most).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Judges a second: whether sources are spread, and destinations gathered, as never before. Gives the packets.
    fn judge(&mut self) -> Option<u32> {
        let packets = std::mem::take(&mut self.packets);
        if packets == 0 {
            return None;
        }
        let found = [&self.sources, &self.destinations].map(|counts| Self::of(counts, packets));
        self.sources.fill(0);
        self.destinations.fill(0);
        if packets < ENOUGH {
            return None;
        }
        self.last = found;
        let is_away = |of: usize, sign: f32| {
            let Usual { mean, deviation } = self.usual[of];
            let change = (found[of] - mean) * sign;
            change > LEAST_CHANGE && change > DEVIATIONS * deviation
        };
        let is_more = packets as f32 > self.usual_packets * MORE;
        if self.seconds >= LEARNED && is_more && is_away(0, 1.0) && is_away(1, -1.0) {
            return Some(packets);
        }
        // A plain mean at first, which moves on later.
        self.seconds = self.seconds.saturating_add(1);
        let share = SHARE.max(1.0 / self.seconds as f32);
        for (usual, found) in self.usual.iter_mut().zip(found) {
            let away = (found - usual.mean).abs();
            usual.mean += share * (found - usual.mean);
            if self.seconds > 1 {
                usual.deviation += share * (away - usual.deviation);
            }
        }
        self.usual_packets += share * (packets as f32 - self.usual_packets);
        None
    }
}

impl Statistics {
    pub(super) fn new(destinations: usize, limits: Limits) -> Self {
        Self {
            hash: FlowHash::new(std::hash::RandomState::new().build_hasher().finish()),
            limits,
            destinations: SpaceSaving::new(destinations),
            entropy: Entropy::new(),
            floods: Vec::new(),
            start: None,
            at: 0,
        }
    }

    /// Bytes that so many destinations take.
    pub(super) fn bytes_of(destinations: usize) -> u64 {
        SpaceSaving::<u128, Destination>::bytes_of(destinations) + 2 * 4 * BUCKETS as u64
    }

    /// Everything, which is not needed here any more.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(1, self.limits))
    }

    /// Goes on from other statistics, with these limits.
    pub(super) fn follow(&mut self, other: Self) {
        if other.destinations.most() == self.destinations.most() {
            *self = Self { limits: self.limits, ..other };
        }
    }

    /// Counts a packet. Gives whether it is of a flood.
    pub(super) fn count(&mut self, packet: &Counted) -> bool {
        let (src, dst) = (bits(packet.src), bits(packet.dst));
        let hash = |of: u128| self.hash.two((of >> 64) as u64, of as u64);
        let (from, to) = (hash(src), hash(dst));
        self.entropy.packets = self.entropy.packets.saturating_add(1);
        self.entropy.sources[from as usize % BUCKETS] += 1;
        self.entropy.destinations[to as usize % BUCKETS] += 1;
        let (_, destination) = self.destinations.add(dst, 1, Destination::default());
        let count = &mut destination.counts[self.at];
        let kind = packet.kind as usize;
        if let Some(packets) = count.packets.get_mut(kind) {
            *packets = packets.saturating_add(1);
        }
        count.ended = count.ended.saturating_add(packet.ends.into());
        destination.add_source((from >> 32) as u32);
        destination.floods & 1 << kind != 0
    }

    /// Lets time go on to that of a packet, and shows what changed meanwhile.
    pub(super) fn advance(&mut self, time: u64, mut show: impl FnMut(Event)) {
        let start = self.start.get_or_insert(time);
        // A clock that was set back begins anew.
        if time.saturating_add(SECOND) < *start {
            *start = time;
            self.floods.iter_mut().for_each(|flood| flood.seen = flood.seen.min(time));
        }
        let start = *start;
        let passed = time.saturating_sub(start) / INTERVAL;
        if passed == 0 {
            return;
        }
        // After so many, nothing is left that counts.
        for step in 1..=passed.min(INTERVALS as u64 + 1) {
            self.close(start + step * INTERVAL, &mut show);
        }
        self.start = Some(start + passed * INTERVAL);
        if passed > INTERVALS as u64 + 1 {
            self.end(start + passed * INTERVAL, &mut show);
        }
    }

    /// Judges the last second at the end of an interval, and begins the next.
    fn close(&mut self, now: u64, show: &mut impl FnMut(Event)) {
        let next = (self.at + 1) % INTERVALS;
        let is_second = next == 0;
        let (mut most, mut busiest) = (0, None);
        for entry in 0..self.destinations.len() {
            let (&key, destination) = self.destinations.at_mut(entry);
            let sum = destination.sum();
            let all: u64 = sum.packets.iter().map(|&packets| u64::from(packets)).sum();
            let sources = destination.source_count();
            if all > most {
                (most, busiest) = (all, Some((key, sources)));
            }
            for kind in COUNTED {
                let n = kind as usize;
                if destination.is_flooded(n, &sum, sources, &self.limits) {
                    destination.floods |= 1 << n;
                    let rate = u64::from(sum.packets[n]);
                    see(&mut self.floods, kind, address(key), rate, sources, now, show);
                }
            }
            if is_second {
                if destination.floods == 0 {
                    destination.seconds = destination.seconds.saturating_add(1);
                    let share = SHARE.max(1.0 / destination.seconds as f32);
                    for (usual, packets) in destination.usual.iter_mut().zip(sum.packets) {
                        *usual += share * (packets as f32 - *usual);
                    }
                }
                destination.sources = Default::default();
                (destination.packets, destination.lead) = (0, 0);
            }
            destination.counts[next] = Count::default();
        }
        if is_second
            && let Some(packets) = self.entropy.judge()
            && let Some((key, sources)) = busiest
        {
            let kind = Kind::Distributed;
            see(&mut self.floods, kind, address(key), packets.into(), sources, now, show);
        }
        self.at = next;
        self.end(now, show);
    }

    /// Ends floods whose signs were not seen for long.
    fn end(&mut self, now: u64, show: &mut impl FnMut(Event)) {
        let hold = self.limits.hold;
        for flood in self.floods.extract_if(.., |of| now.saturating_sub(of.seen) >= hold) {
            let key = bits(flood.victim);
            if let Some(destination) = self.destinations.get_mut(&key) {
                destination.floods &= !(1 << flood.kind as usize);
            }
            show(Event::End(flood));
        }
    }
}

/// Notes the signs of a flood.
fn see(
    floods: &mut Vec<Flood>,
    kind: Kind,
    victim: IpAddr,
    rate: u64,
    sources: u32,
    now: u64,
    show: &mut impl FnMut(Event),
) {
    if let Some(flood) = floods.iter_mut().find(|of| of.kind == kind && of.victim == victim) {
        (flood.seen, flood.rate, flood.sources) = (now, rate, sources);
        flood.peak = flood.peak.max(rate);
        return;
    }
    let flood = Flood { kind, victim, since: now, seen: now, rate, peak: rate, sources };
    floods.push(flood);
    show(Event::Begin(flood));
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { rates: [1000, 20_000, 1000, 50_000], factor: 4, sources: 64, hold: 10 * SECOND };

    /// Traffic of many kinds, and what was seen of it.
    struct Run {
        statistics: Statistics,
        rng: fastrand::Rng,
        events: Vec<(u64, Event)>,
    }

    impl Run {
        fn new() -> Self {
            let (statistics, rng) = (Statistics::new(256, LIMITS), fastrand::Rng::with_seed(1));
            Self { statistics, rng, events: Vec::new() }
        }

        fn packet(&mut self, time: u64, counted: Counted) -> bool {
            let events = &mut self.events;
            self.statistics.advance(time, |event| events.push((time, event)));
            self.statistics.count(&counted)
        }

        /// A second of ordinary traffic: 400 connections of 10 packets to 50 servers, and UDP of 30 clients. After
        /// each millisecond comes what `more` adds. Gives how many of the ordinary packets were taken for a flood's.
        fn second(&mut self, second: u64, mut more: impl FnMut(&mut Self, u64)) -> usize {
            let mut wrong = 0;
            for millisecond in 0..1000 {
                let time = second * SECOND + millisecond * 1_000_000;
                for n in 0..4 {
                    let src = IpAddr::from([192, 168, 0, self.rng.u8(..)]);
                    let dst = IpAddr::from([10, 0, 0, self.rng.u8(..50)]);
                    let kind = match (n, millisecond % 10) {
                        (0, 0 | 2 | 4 | 6) => Kind::Syn,
                        (1 | 2, _) => Kind::Other,
                        _ => Kind::Udp,
                    };
                    let ends = n == 1 && matches!(millisecond % 10, 1 | 3 | 5 | 7);
                    wrong += usize::from(self.packet(time, Counted { kind, src, dst, ends }));
                }
                more(self, time);
            }
            wrong
        }

        fn begun(&self) -> Vec<(Kind, IpAddr)> {
            let begin = |(_, event): &(u64, Event)| match event {
                Event::Begin(of) => Some((of.kind, of.victim)),
                Event::End(_) => None,
            };
            self.events.iter().filter_map(begin).collect()
        }
    }

    fn any(rng: &mut fastrand::Rng) -> IpAddr {
        IpAddr::from(rng.u32(..).to_be_bytes())
    }

    const VICTIM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));

    /// After 20 ordinary seconds, so many packets a millisecond for 5 seconds, and 15 ordinary seconds.
    fn attack(each: usize, packet: impl Fn(&mut fastrand::Rng) -> Counted) -> Run {
        let mut run = Run::new();
        for second in 0..40 {
            run.second(second, |run, time| {
                for _ in 0..if (20..25).contains(&second) { each } else { 0 } {
                    let counted = packet(&mut run.rng);
                    run.packet(time, counted);
                }
            });
        }
        run
    }

    fn is_found(run: &Run, kind: Kind) {
        assert!(run.begun().contains(&(kind, VICTIM)), "{:?}", run.events);
        let (begin, end) = (run.events[0], run.events[run.events.len() - 1]);
        let within = |time: u64, least: u64, most: u64| {
            assert!((least * SECOND..most * SECOND + INTERVAL).contains(&time), "{time}");
        };
        within(begin.0, 20, 21);
        within(end.0, 34, 36);
        assert!(matches!(end.1, Event::End(_)) && run.statistics.floods.is_empty());
        assert!(run.begun().iter().all(|(_, victim)| *victim == VICTIM));
    }

    #[test]
    fn floods_are_found_within_a_second_and_end() {
        let packet = |kind, rng: &mut fastrand::Rng| Counted {
            kind,
            src: any(rng),
            dst: VICTIM,
            ends: false,
        };
        is_found(&attack(2, |rng| packet(Kind::Syn, rng)), Kind::Syn);
        is_found(&attack(2, |rng| packet(Kind::Icmp, rng)), Kind::Icmp);
        is_found(&attack(30, |rng| packet(Kind::Udp, rng)), Kind::Udp);
        is_found(&attack(60, |rng| packet(Kind::Other, rng)), Kind::Other);
        // Below all rates, entropy shows it.
        is_found(&attack(15, |rng| packet(Kind::Udp, rng)), Kind::Distributed);
    }

    #[test]
    fn packets_of_a_flood_are_told_from_others() {
        let mut run = Run::new();
        let mut steered = 0;
        for second in 0..4 {
            let wrong = run.second(second, |run, time| {
                for _ in 0..if second > 0 { 5 } else { 0 } {
                    let src = any(&mut run.rng);
                    let counted = Counted { kind: Kind::Syn, src, dst: VICTIM, ends: false };
                    steered += usize::from(run.packet(time, counted));
                }
            });
            // Only SYNs to the victim: a fiftieth of 400.
            assert!(wrong < 30, "{wrong}");
        }
        // All but a quarter of a second.
        assert!(steered > 13_500, "{steered} of 15,000");
    }

    #[test]
    fn busy_servers_and_long_downloads_are_no_floods() {
        // 5,000 connections a second that end, and a download from one server.
        let run = attack(20, |rng| {
            let n = rng.u8(..4);
            let kind = [Kind::Syn, Kind::Other, Kind::Other, Kind::Other][usize::from(n)];
            Counted { kind, src: any(rng), dst: VICTIM, ends: n == 1 }
        });
        assert!(!run.begun().iter().any(|(kind, _)| *kind != Kind::Distributed));
        let src = IpAddr::from([1, 1, 1, 1]);
        let run = attack(100, |_| Counted { kind: Kind::Udp, src, dst: VICTIM, ends: false });
        assert!(run.events.is_empty(), "{:?}", run.events);
    }

    #[test]
    fn ordinary_traffic_is_no_flood_and_time_may_jump() {
        let mut run = Run::new();
        for second in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 500, 501, 3, 502, 1 << 33] {
            assert_eq!(run.second(second, |_, _| {}), 0);
        }
        assert!(run.events.is_empty(), "{:?}", run.events);
        // A flood that is followed by silence ends with the next packet, and a clock that is set back hides none.
        let mut run = Run::new();
        let syn = |src| Counted { kind: Kind::Syn, src, dst: VICTIM, ends: false };
        for start in [50 * SECOND, 0] {
            for n in 0..3000 {
                let src = any(&mut run.rng);
                run.packet(start + n * SECOND / 2000, syn(src));
            }
            assert_eq!(run.statistics.floods.len(), 1, "{start}");
            let last = Counted { kind: Kind::Udp, ..syn(VICTIM) };
            run.packet(start + 100 * SECOND, last);
            assert!(run.statistics.floods.is_empty());
        }
    }

    #[test]
    fn destinations_without_end_do_not_hide_a_victim() {
        let mut run = Run::new();
        for time in 0..400_000u64 {
            let (src, other) = (any(&mut run.rng), any(&mut run.rng));
            let dst = if time % 10 == 0 { VICTIM } else { other };
            run.packet(time * 10_000, Counted { kind: Kind::Syn, src, dst, ends: false });
        }
        assert_eq!(run.begun(), [(Kind::Syn, VICTIM)]);
    }
}
