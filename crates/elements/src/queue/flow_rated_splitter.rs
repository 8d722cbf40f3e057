//! FlowRatedSplitter.

use click::config::Argument;
use ir::{Diagnostic, Model, Reason};
use net::flow::FlowHash;
use net::{Batch, Packet};

use crate::argument::{BytesPerSecond, FromArgument, Nanoseconds, parse_value};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::listing::{self, ROWS, Record, Slice};
use crate::lru_table::{LruKey, LruTable};
use crate::names::Names;
use crate::plumbing::flow_key::{FlowKey, Seen};
use crate::token_bucket::{BucketLevel, BucketShape, Burst};

element! {
    /// FlowRatedSplitter(RATE, PER flow|src|dst [, KEYWORDS]) -- limits the bandwidth of each flow or host
    ///
    /// Expects Ethernet frames, with VLAN tags or without. Each flow or address has a token bucket of its own: frames of
    /// up to RATE bytes a second (or bits: `10Mbps`) leave on output 0. What exceeds that leaves on output 1 if there is
    /// one, and counts as `rate-exceeded`. Whole frames are counted, without checksum and preamble. A frame
    /// passes if its bucket holds a byte, and may leave it in debt: after a pause come at most the bytes of a full bucket
    /// and one frame.
    ///
    /// PER says what has a bucket. With `flow`, it is what has the same addresses, protocol and ports, in one
    /// direction; fragments are a flow without ports. With `src` or `dst`, it is the source or destination address, or
    /// the network that it is in. The protocol and ports of IPv6 are found behind extension headers. All frames without a
    /// valid IP packet have one bucket together, so that nothing passes unlimited.
    ///
    /// Memory is bounded: CAPACITY buckets are kept, each with at most 144 bytes. A new key replaces the one that has
    /// been silent for longest, in constant time. A key that was replaced begins with a full bucket when it comes again.
    /// This gives it nothing if it was silent until its bucket was full, which `evicted_early` does not count.
    ///
    /// Each worker has buckets of its own. A flow has all its packets at one worker, but those from or to an address
    /// may be spread over workers, each of which lets RATE pass.
    ///
    /// = KEYWORDS
    ///
    /// PER (flow, src or dst): what has a bucket.
    /// IPV4_PREFIX (number, default 32): with src or dst, how many bits of an address count.
    /// IPV6_PREFIX (number, default 64): the same for IPv6, where a host chooses the last 64 bits itself.
    /// BURST_DURATION (time, default 20ms): a full bucket holds so much time's bytes.
    /// BURST_BYTES (number): the same as a number of bytes.
    /// CAPACITY (number, default 65536): how many buckets are kept.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate in bytes a second; 0 means without limit. A bucket keeps what it holds. What came in
    /// since its last packet is counted at the new rate.
    /// keys (read): a line for each key: bytes that passed, bytes that exceeded the rate, and the key. Those that
    /// exceeded it most come first.
    /// key_count (read): how many keys are kept.
    /// exceeded, exceeded_bytes (read): frames that exceeded the rate, and their bytes.
    /// evicted (read): keys that made room for others.
    /// evicted_early (read): those of them whose buckets were not full.
    ///
    /// When a chain replaces another, buckets stay if PER and prefixes are the same.
    ///
    /// = EXAMPLE
    ///
    /// FromDevice(lan) -> FlowRatedSplitter(10Mbps, PER src, CAPACITY 1000000) -> ToDevice(wan);
    ///
    /// = SEE ALSO
    ///
    /// BandwidthRatedSplitter, BandwidthMeter, FlowMonitor
    FlowRatedSplitter {
        category: Queue, ports: "1/1-2", processing: "h/h",
        samples: [("1000, PER flow", 1, 2), ("100, PER src, BURST_BYTES 200, CAPACITY 2", 1, 1)]
    }
}

/// Why frames do not pass.
const EXCEEDED: Reason = Reason("rate-exceeded");

/// How much time's bytes come at once, in nanoseconds, unless it is configured.
const BURST: u64 = 20_000_000;

/// What has a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Flow,
    /// Bits of an address that count, of IPv4 and IPv6.
    Source([u8; 2]),
    Destination([u8; 2]),
}

/// The key of all frames that have no other. No packet has a port without a protocol.
const OTHER: FlowKey = {
    let mut key = FlowKey::NONE;
    key.src_port = 1;
    key
};

impl LruKey for FlowKey {
    const UNUSED: Self = Self::NONE;

    #[inline]
    fn hash(&self, hash: &FlowHash) -> u64 {
        std::hash::BuildHasher::hash_one(hash, self)
    }
}

impl Per {
    #[inline]
    fn key(self, packet: &Packet) -> FlowKey {
        let Some(Seen { key, .. }) = Seen::of_frame(packet) else { return OTHER };
        match self {
            Per::Flow => key,
            Per::Source(bits) => key.network(true, bits[usize::from(key.is_ipv6)]),
            Per::Destination(bits) => key.network(false, bits[usize::from(key.is_ipv6)]),
        }
    }

    fn show(self, key: &FlowKey) -> String {
        match self {
            _ if *key == OTHER => "other".to_string(),
            Per::Flow => key.to_string(),
            Per::Source(bits) | Per::Destination(bits) => {
                let most = if key.is_ipv6 { 128 } else { 32 };
                match bits[usize::from(key.is_ipv6)] {
                    bits if bits < most => format!("{}/{bits}", key.src()),
                    _ => key.src().to_string(),
                }
            }
        }
    }
}

/// What is kept of a key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bucket: BucketLevel,
    passed: u64,
    exceeded: u64,
    /// The group of the last packet ([`Packet::group`]).
    group: u16,
}

type Table = LruTable<Entry, FlowKey>;

/// What moves to another element.
struct Moved {
    per: Per,
    /// The one that was silent for longest comes first.
    entries: Vec<(FlowKey, Entry)>,
}

/// See [`FlowRatedSplitter::CLASS`].
pub(crate) struct FlowRatedSplitter {
    per: Per,
    burst: Burst,
    shape: BucketShape,
    most: usize,
    table: Table,
    counts: Counts,
    /// Keys of a batch and their hashes; empty but in [`Element::push`].
    keys: Vec<(FlowKey, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    exceeded: u64,
    exceeded_bytes: u64,
    evicted: u64,
    evicted_early: u64,
}

/// Bits of an address of at most `MOST`.
struct Bits<const MOST: u8>(u8);

impl<const MOST: u8> FromArgument for Bits<MOST> {
    const EXPECTED: &'static str =
        if MOST > 32 { "a number from 0 to 128" } else { "a number from 0 to 32" };

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let bits = u8::from_argument(argument, names, element).ok().filter(|bits| *bits <= MOST);
        bits.map(Self).ok_or_else(|| format!("'{}' is not {}", argument.text, Self::EXPECTED))
    }
}

const HELP: &str = "write PER flow, PER src or PER dst";

/// What has a bucket, if it is said.
fn per(arguments: &mut Arguments<'_, '_>) -> Option<Per> {
    let word = arguments.keyword_argument("PER");
    let ipv4 = arguments.keyword_argument("IPV4_PREFIX");
    let ipv6 = arguments.keyword_argument("IPV6_PREFIX");
    let four = ipv4.as_ref().and_then(|bits| arguments.parse::<Bits<32>>("IPV4_PREFIX", bits));
    let six = ipv6.as_ref().and_then(|bits| arguments.parse::<Bits<128>>("IPV6_PREFIX", bits));
    let bits = [four.map_or(32, |bits| bits.0), six.map_or(64, |bits| bits.0)];
    let word = word?;
    match word.text.as_str() {
        "flow" => {
            if let Some(prefix) = ipv4.or(ipv6) {
                arguments.error(&prefix, "PER flow takes no prefix");
            }
        }
        "src" => return Some(Per::Source(bits)),
        "dst" => return Some(Per::Destination(bits)),
        other => {
            let message = format!("there is no bucket per '{other}'");
            let error = Diagnostic::error("bad-argument", message).label(word.span, "");
            arguments.report(error.help(HELP));
        }
    }
    Some(Per::Flow)
}

impl FlowRatedSplitter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "RATE",
            "PER",
            "IPV4_PREFIX",
            "IPV6_PREFIX",
            "BURST_DURATION",
            "BURST_BYTES",
            "CAPACITY",
        ]);
        let rate: BytesPerSecond = arguments.required("RATE");
        let per = per(&mut arguments);
        let duration: Option<Nanoseconds> = arguments.keyword("BURST_DURATION");
        let bytes: Option<u32> = arguments.keyword("BURST_BYTES");
        if duration.is_some() && bytes.is_some() {
            let span = arguments.cx().span();
            let message = "BURST_DURATION and BURST_BYTES exclude each other";
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        let capacity = arguments.keyword_argument("CAPACITY");
        let most = capacity.as_ref().and_then(|most| arguments.parse::<u32>("CAPACITY", most));
        let most = most.unwrap_or(1 << 16);
        if let (0, Some(capacity)) = (most, &capacity) {
            arguments.error(capacity, "at least one bucket must be kept");
        }
        arguments.claim("CAPACITY", Table::BYTES_EACH * u64::from(most));
        arguments.finish()?;
        // Whoever asks a Limiter for something else may not have thought of it.
        let Some(per) = per else {
            let error = Diagnostic::error("missing-argument", "PER is missing: what has a bucket");
            cx.report(error.label(cx.span(), "").help(HELP));
            return Err(Failed);
        };
        let burst = match bytes {
            Some(bytes) => Burst::Tokens(bytes.into()),
            None => Burst::Duration(duration.map_or(BURST, |duration| duration.0)),
        };
        Ok(Self {
            per,
            burst,
            shape: burst.at(rate.0),
            most: most as usize,
            table: Table::default(),
            counts: Counts::default(),
            keys: Vec::new(),
        })
    }

    /// Adds a key that is not there, as the newest.
    fn add(&mut self, key: FlowKey, entry: Entry, now: u64) {
        if self.table.len() >= self.most
            && let Some((oldest, entry)) = self.table.oldest(0)
        {
            let bucket = self.shape.fill(entry.bucket, now);
            self.counts.evicted += 1;
            self.counts.evicted_early += u64::from(!self.shape.is_full(bucket));
            self.table.remove(oldest);
        }
        self.table.insert(key, entry, 0);
    }

    /// Whether a frame passes.
    #[inline]
    fn passes(&mut self, (key, hash): (FlowKey, u64), packet: &Packet, now: u64) -> bool {
        let (shape, length) = (self.shape, packet.len() as u64);
        let count = |entry: &mut Entry| {
            entry.group = packet.group();
            let bucket = shape.fill(entry.bucket, now);
            let passes = shape.has_token(bucket);
            if passes {
                entry.bucket = shape.take(bucket, length);
                entry.passed += length;
            } else {
                entry.bucket = bucket;
                entry.exceeded += length;
            }
            passes
        };
        if let Some(number) = self.table.number(key, hash) {
            self.table.renew_number(number, 0);
            return self.table.value_mut(number).is_none_or(count);
        }
        let mut entry = Entry { bucket: shape.full(now), passed: 0, exceeded: 0, group: 0 };
        let passes = count(&mut entry);
        self.add(key, entry, now);
        passes
    }

    /// Prefetches what a batch needs, so that it waits for memory once and not packet by packet.
    fn prefetch(&mut self, batch: &Batch) {
        self.keys.clear();
        for packet in batch.iter() {
            let key = self.per.key(packet);
            let hash = self.table.hash(key);
            self.table.prefetch_bucket(hash);
            self.keys.push((key, hash));
        }
        for &(key, hash) in &self.keys {
            if let Some(number) = self.table.number(key, hash) {
                self.table.prefetch(number);
            }
        }
    }
}

impl Element for FlowRatedSplitter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if self.shape.rate() == 0 {
            return;
        }
        self.prefetch(batch);
        let (now, mut place) = (cx.now(), 0);
        cx.each(batch, |packet, _| {
            let key = self.keys[place];
            place += 1;
            if self.passes(key, packet, now) {
                return Verdict::Pass;
            }
            self.counts.exceeded += 1;
            self.counts.exceeded_bytes += packet.len() as u64;
            Verdict::Reject(1, EXCEEDED)
        });
    }

    fn model(&self) -> Model {
        Model::opaque("limits flows one by one")
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        let per = self.per;
        if to.is_all() {
            let Counts { exceeded, exceeded_bytes, evicted, evicted_early } = self.counts;
            to.numbers = vec![exceeded, exceeded_bytes, evicted, evicted_early];
            to.native = Some(Box::new(Moved { per, entries: self.table.drain() }));
        } else if let (Some(group), false) = (to.group(), to.is_copy()) {
            let all = self.table.iter().map(|(key, entry)| (key, *entry));
            let entries = Vec::from_iter(all.filter(|(_, entry)| entry.group == group));
            for (key, _) in &entries {
                self.table.remove(*key);
            }
            to.native = Some(Box::new(Moved { per, entries }));
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, now: u64) {
        if let Some([exceeded, exceeded_bytes, evicted, evicted_early]) = from.counts() {
            self.counts = Counts { exceeded, exceeded_bytes, evicted, evicted_early };
        }
        let moved = from.take_native::<Moved>().filter(|moved| moved.per == self.per);
        for (key, entry) in moved.into_iter().flat_map(|moved| moved.entries) {
            // What an address had elsewhere does not count twice.
            if self.table.get(key).is_none() {
                self.add(key, entry, now);
            }
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("rate"),
                Handler::read("keys"),
                Handler::count("key_count"),
                Handler::count("exceeded"),
                Handler::count("exceeded_bytes"),
                Handler::count("evicted"),
                Handler::count("evicted_early"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        let number = match handler {
            "rate" => self.shape.rate(),
            "key_count" => self.table.len() as u64,
            "exceeded" => self.counts.exceeded,
            "exceeded_bytes" => self.counts.exceeded_bytes,
            "evicted" => self.counts.evicted,
            "evicted_early" => self.counts.evicted_early,
            _ => return Ok(listing::whole(|from| self.list(handler, from, cx))),
        };
        Ok(number.to_string())
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        if handler != "keys" {
            return None;
        }
        let (entries, next) = self.table.part(from, ROWS);
        let row = |(key, entry): (FlowKey, &Entry)| {
            let Entry { passed, exceeded, .. } = entry;
            Record::Row(!exceeded, format!("{passed:>15} {exceeded:>15} {}", self.per.show(&key)))
        };
        Some(Slice { records: entries.map(row).collect(), next, ..Slice::default() })
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let rate: BytesPerSecond = parse_value(value)?;
        self.shape = self.burst.at(rate.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use net::Pool;
    use net::notation::parse;
    use proptest::prelude::*;

    use super::*;

    fn splitter(per: Per, rate: u64, burst: Burst, most: usize) -> FlowRatedSplitter {
        let (table, counts, keys) = (Table::default(), Counts::default(), Vec::new());
        FlowRatedSplitter { per, burst, shape: burst.at(rate), most, table, counts, keys }
    }

    fn pass(splitter: &mut FlowRatedSplitter, packet: &Packet, now: u64) -> bool {
        let key = splitter.per.key(packet);
        let hash = splitter.table.hash(key);
        splitter.passes((key, hash), packet, now)
    }

    fn packet(pool: &mut Pool, host: u32, length: usize) -> Packet {
        let mut frame = parse("udp 10.0.0.1:5 > 192.0.2.2:53").expect("the packet is well-formed");
        frame[26..30].copy_from_slice(&host.to_be_bytes());
        frame.resize(length.max(frame.len()), 0);
        pool.packet(&frame)
    }

    /// Buckets by host, as one would write them down: debts are negative, and no bucket shares anything with another.
    #[derive(Default)]
    struct Reference {
        /// Parts of a byte of which a second has so many at one byte a second, and when that was.
        buckets: HashMap<u32, (i128, u64)>,
        /// The one that was silent for longest comes first.
        order: Vec<u32>,
    }

    impl Reference {
        fn passes(
            &mut self,
            host: u32,
            length: usize,
            now: u64,
            (rate, burst, most): (u64, u64, usize),
        ) -> bool {
            const BYTE: i128 = 1_000_000_000;
            let full = i128::from(burst) * BYTE;
            self.order.retain(|&known| known != host);
            if !self.buckets.contains_key(&host) && self.buckets.len() == most {
                self.buckets.remove(&self.order.remove(0));
            }
            self.order.push(host);
            let (level, filled) = self.buckets.entry(host).or_insert((full, now));
            *level = (*level + i128::from(now - *filled) * i128::from(rate)).min(full);
            *filled = now;
            let passes = *level >= BYTE;
            *level -= if passes { length as i128 * BYTE } else { 0 };
            passes
        }
    }

    proptest! {
        #[test]
        fn each_host_has_a_bucket_of_its_own(
            steps in proptest::collection::vec((0u32..6, 60usize..1500, 0u64..50_000_000), 0..400),
            rate in 1u64..1_000_000, burst in 1u64..5_000, most in 1usize..7,
        ) {
            let mut pool = Pool::new();
            let bits = [32, 64];
            let mut splitter = splitter(Per::Source(bits), rate, Burst::Tokens(burst), most);
            let (mut reference, mut now) = (Reference::default(), 1_000_000_000);
            for (host, length, wait) in steps {
                now += wait;
                let packet = packet(&mut pool, host, length);
                let expected = reference.passes(host, packet.len(), now, (rate, burst, most));
                prop_assert_eq!(pass(&mut splitter, &packet, now), expected);
                prop_assert!(splitter.table.len() <= most);
            }
        }
    }

    #[test]
    fn a_million_hosts_have_the_rate_each_and_take_the_memory_that_is_stated() {
        const HOSTS: u32 = 1_000_000;
        const { assert!(Table::BYTES_EACH <= 144) };
        let mut pool = Pool::new();
        let burst = Burst::Tokens(100);
        let mut splitter = splitter(Per::Source([32, 64]), 1_000, burst, HOSTS as usize);
        let mut packet = packet(&mut pool, 0, 100);
        let mut passed = [0u32; 3];
        // The bucket is full at first, is in no debt after it, and half full after 50 ms.
        for (round, now) in [0, 1_000_000, 51_000_000].into_iter().enumerate() {
            for host in 0..HOSTS {
                packet.data_mut()[26..30].copy_from_slice(&host.to_be_bytes());
                passed[round] += u32::from(pass(&mut splitter, &packet, 1_000_000_000 + now));
            }
        }
        assert_eq!(passed, [HOSTS, HOSTS, 0]);
        let Counts { evicted, evicted_early, .. } = splitter.counts;
        assert_eq!((splitter.table.len(), evicted, evicted_early), (HOSTS as usize, 0, 0));
    }

    #[test]
    fn the_rate_is_kept_within_a_percent_over_a_second() {
        let mut pool = Pool::new();
        let burst = Burst::Duration(BURST);
        for rate in [125_000u64, 1_250_000, 125_000_000] {
            let mut splitter = splitter(Per::Flow, rate, burst, 10);
            let packets = [1, 2, 3].map(|host| packet(&mut pool, host, 1000));
            let mut passed = [0u64; 3];
            // Thrice the rate, after the bucket was emptied.
            let step = 1_000_000_000_000 / (3 * rate);
            let mut now = 1_000_000_000;
            let end = now + 2_000_000_000;
            while now < end {
                for (packet, passed) in packets.iter().zip(&mut passed) {
                    let passes = pass(&mut splitter, packet, now);
                    *passed += u64::from(passes && now >= end - 1_000_000_000) * 1000;
                }
                now += step;
            }
            for passed in passed {
                assert!(passed.abs_diff(rate) <= rate / 100, "{passed} of {rate}");
            }
        }
    }

    /// Passed and exceeded bytes of each host that is kept.
    fn counts(splitter: &FlowRatedSplitter) -> Vec<(String, u64, u64)> {
        let all = splitter.table.iter();
        let mut all: Vec<_> =
            all.map(|(key, e)| (splitter.per.show(&key), e.passed, e.exceeded)).collect();
        all.sort();
        all
    }

    #[test]
    fn buckets_move_all_or_those_of_a_group() {
        let mut pool = Pool::new();
        let per = Per::Source([32, 64]);
        let new = |per| splitter(per, 1000, Burst::Tokens(100), 10);
        let mut old = new(per);
        for host in [1, 2, 2, 3] {
            let mut packet = packet(&mut pool, host, 100);
            packet.set_group(host as u16 % 2);
            pass(&mut old, &packet, 5);
        }
        let even = ("0.0.0.2".to_string(), 100, 100);
        let odd = [1, 3].map(|host| (format!("0.0.0.{host}"), 100, 0));

        let mut copy = ElementState::copy(crate::element_state::Scope::All);
        old.export("x", &mut copy);
        assert!(copy.native.is_none() && old.table.len() == 3);
        let mut moved = ElementState::new(crate::element_state::Scope::Group(0));
        old.export("x", &mut moved);
        assert_eq!(counts(&old), odd);
        let mut of_group = new(per);
        of_group.import("x", &mut moved, 5);
        assert_eq!(counts(&of_group), [even]);
        assert!(!pass(&mut of_group, &packet(&mut pool, 2, 100), 5), "its bucket is empty");

        let mut moved = ElementState::new(crate::element_state::Scope::All);
        old.export("x", &mut moved);
        let mut another = new(Per::Flow);
        another.import("x", &mut moved, 5);
        assert_eq!(counts(&another), [], "keys of another kind are forgotten");
        let mut all = new(per);
        let mut moved = ElementState::new(crate::element_state::Scope::All);
        of_group.export("x", &mut moved);
        all.import("x", &mut moved, 5);
        assert_eq!(all.table.len(), 1);
    }
}
